//! Creating process instances.

use std::time::Duration;

use protocol::{
    Command, Key, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, ProcessInstanceResultValue,
    Rejection, RuntimeInstruction, Text,
};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant;
use crate::validation::{Variables, tags};

/// Wants a new process instance.
#[derive(Debug, Default)]
pub(crate) struct CreateProcessInstance {
    /// Empty when the key names the definition.
    pub bpmn_process_id: Text,
    /// -1 for the latest.
    pub version: i32,
    pub process_definition_key: i64,
    pub variables: Variables,
    pub tenant_id: String,
    /// Ids of elements.
    pub start_instructions: Vec<Text>,
    pub runtime_instructions: Vec<RuntimeInstruction>,
    pub tags: Vec<Text>,
    /// Empty for none.
    pub business_id: Text,
    pub operation_reference: Option<u64>,
}

/// The names of the variables of a result, in bytes, with one for each name. They are kept until the instance has ended, and looked
/// for then.
const RESULT_NAMES_BYTES_MAX: usize = 64 << 10;

/// The same, and to know what its variables are when it has ended.
#[derive(Debug, Default)]
pub(crate) struct CreateProcessInstanceWithResult {
    pub creation: CreateProcessInstance,
    /// The wanted variables; empty for all.
    pub fetch_variables: Vec<Text>,
    /// Milliseconds; the usual time when not above zero.
    pub request_timeout: i64,
}

impl Request for CreateProcessInstance {
    type Answer = Box<ProcessInstanceCreationValue>;

    const STARTS_WORK: bool = true;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        self.submission_of(router, ProcessInstanceCreationIntent::Create, Vec::new())
    }

    fn answer(_: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::ProcessInstanceCreation(_, value) => Ok(value),
            other => Err(other),
        }
    }
}

impl Request for CreateProcessInstanceWithResult {
    type Answer = Box<ProcessInstanceResultValue>;

    /// To wait for the end may take long, and it may come with something on the same connection.
    const STARTS_WORK: bool = false;

    const LATE: &'static str =
        "The process instance has most likely been created and goes on. Look for it before you create another one.";

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let limit = match u64::try_from(self.request_timeout) {
            Ok(milliseconds @ 1..) => Some(Duration::from_millis(milliseconds)),
            _ => None,
        };
        let bytes: usize = self.fetch_variables.iter().map(|name| name.len() + 1).sum();
        if bytes > RESULT_NAMES_BYTES_MAX {
            return Err(Failure::InvalidArgument(format!(
                "Expected the names of the variables to fetch to have at most {RESULT_NAMES_BYTES_MAX} bytes together, but they \
                 have {bytes}. Name fewer, or none for all variables."
            )));
        }
        let intent = ProcessInstanceCreationIntent::CreateWithAwaitingResult;
        let submission = self.creation.submission_of(router, intent, self.fetch_variables)?;
        Ok(Submission { limit, ..submission })
    }

    fn answer(_: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::ProcessInstanceResult(_, value) => Ok(value),
            other => Err(other),
        }
    }
}

impl CreateProcessInstance {
    fn submission_of(
        self,
        router: &Router<'_>,
        intent: ProcessInstanceCreationIntent,
        fetch_variables: Vec<Text>,
    ) -> Result<Submission, Failure> {
        if self.bpmn_process_id.is_empty() && self.process_definition_key <= 0 {
            let rejection = Rejection::invalid_argument(
                "Expected either a bpmn process id or a process definition key, but none given",
            );
            return Err(Failure::rejected(ProcessInstanceCreationIntent::Create.name(), Key::NONE, rejection));
        }
        let value = ProcessInstanceCreationValue {
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            tags: tags(self.tags)?,
            bpmn_process_id: self.bpmn_process_id,
            version: self.version,
            process_definition_key: Key::from_raw(self.process_definition_key),
            fetch_variables,
            start_instructions: self.start_instructions,
            runtime_instructions: self.runtime_instructions,
            business_id: self.business_id,
            ..ProcessInstanceCreationValue::default()
        };
        // Instances with one business id are all on one partition, which so can say whether there is one already.
        let partition = match value.business_id.is_empty() {
            true => router.next(),
            false => router.of_correlation_key(&value.business_id),
        };
        let payload = Payload::ProcessInstanceCreation(intent, Box::new(value));
        let command = Command { operation_reference: self.operation_reference, ..Command::new(Key::NONE, payload) };
        Ok(Submission::new(partition, command))
    }
}
