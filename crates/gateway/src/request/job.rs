//! Completing, failing and changing jobs.

use std::sync::Arc;

use protocol::{JobIntent, JobResult, JobValue, Key, Payload, Rejection, Text};

use super::ad_hoc_sub_process::activate_elements;
use super::task_result::TaskResult;
use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::validation::{Target, Variables};

/// The work of a job is done.
#[derive(Debug, Default)]
pub(crate) struct CompleteJob {
    pub job_key: i64,
    pub variables: Variables,
    /// What the worker says besides.
    pub result: Option<WorkResult>,
}

/// The types of what a worker says, as clients name them.
pub(crate) const USER_TASK: &str = "userTask";
pub(crate) const AD_HOC_SUB_PROCESS: &str = "adHocSubProcess";

/// What a worker says besides variables.
#[derive(Debug)]
pub(crate) enum WorkResult {
    /// What an ad-hoc sub-process does next.
    AdHocSubProcess(ChosenElements),
    /// What becomes of the change of a user task.
    UserTask(TaskResult),
}

/// What an ad-hoc sub-process does next.
#[derive(Debug, Default)]
pub(crate) struct ChosenElements {
    /// Elements that begin, each with variables.
    pub activate: Vec<(Text, Variables)>,
    pub is_completion_condition_fulfilled: bool,
    pub is_cancel_remaining_instances: bool,
}

/// The work of a job failed.
#[derive(Debug, Default)]
pub(crate) struct FailJob {
    pub job_key: i64,
    /// How often it may be tried from now on.
    pub retries: i32,
    /// Milliseconds.
    pub retry_back_off: i64,
    pub error_message: Text,
    pub variables: Variables,
}

/// The work of a job ended with an error that the process knows.
#[derive(Debug, Default)]
pub(crate) struct ThrowError {
    pub job_key: i64,
    pub error_code: Text,
    pub error_message: Text,
    pub variables: Variables,
}

/// Wants a job to be tried this often.
#[derive(Debug, Default)]
pub(crate) struct UpdateJobRetries {
    pub job_key: i64,
    pub retries: i32,
    pub operation_reference: Option<u64>,
}

/// Wants more or less time for an activated job.
#[derive(Debug, Default)]
pub(crate) struct UpdateJobTimeout {
    pub job_key: i64,
    /// Milliseconds from now.
    pub timeout: i64,
    pub operation_reference: Option<u64>,
}

/// Wants a job to be tried this often and to have more or less time: both or neither happens.
#[derive(Debug, Default)]
pub(crate) struct UpdateJob {
    pub job_key: i64,
    pub retries: Option<i32>,
    /// Milliseconds from now.
    pub timeout: Option<i64>,
    pub operation_reference: Option<u64>,
}

impl Request for CompleteJob {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let result = match self.result {
            Some(WorkResult::UserTask(result)) => Some(Box::new(result.into())),
            Some(WorkResult::AdHocSubProcess(chosen)) => Some(Box::new(JobResult {
                activate_elements: activate_elements(chosen.activate)?,
                completion_condition_fulfilled: chosen.is_completion_condition_fulfilled,
                cancel_remaining_instances: chosen.is_cancel_remaining_instances,
                ..JobResult::default()
            })),
            None => None,
        };
        let value = JobValue { variables: self.variables.check()?, result, ..JobValue::default() };
        let target = Target { intent: JobIntent::Complete.name(), action: "complete job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Complete, Arc::new(value));
        Submission::by_key(router, target, self.job_key, None, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for FailJob {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let value = JobValue {
            variables: self.variables.check()?,
            retries: self.retries,
            retry_backoff: self.retry_back_off,
            error_message: self.error_message,
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::Fail.name(), action: "fail job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Fail, Arc::new(value));
        Submission::by_key(router, target, self.job_key, None, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for ThrowError {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let value = JobValue {
            variables: self.variables.check()?,
            error_code: self.error_code,
            error_message: self.error_message,
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::ThrowError.name(), action: "throw an error for job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::ThrowError, Arc::new(value));
        Submission::by_key(router, target, self.job_key, None, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for UpdateJobRetries {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let intent = JobIntent::UpdateRetries;
        if self.retries < 1 {
            let rejection = Rejection::invalid_argument(format!(
                "Expected to update retries of job with key '{}' with a positive amount of retries, but the amount given was '{}'",
                self.job_key, self.retries
            ));
            return Err(Failure::rejected(intent.name(), Key::from_raw(self.job_key), rejection));
        }
        let value = JobValue { retries: self.retries, ..JobValue::default() };
        let target = Target { intent: intent.name(), action: "update retries of job", kind: "job" };
        let payload = |_| Payload::Job(intent, Arc::new(value));
        Submission::by_key(router, target, self.job_key, self.operation_reference, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for UpdateJobTimeout {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let value = JobValue { timeout: self.timeout, ..JobValue::default() };
        let target = Target { intent: JobIntent::UpdateTimeout.name(), action: "update timeout of job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::UpdateTimeout, Arc::new(value));
        Submission::by_key(router, target, self.job_key, self.operation_reference, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for UpdateJob {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let changes = [("retries", self.retries.is_some()), ("timeout", self.timeout.is_some())];
        let value = JobValue {
            retries: self.retries.unwrap_or_default(),
            timeout: self.timeout.unwrap_or_default(),
            changed_attributes: changes
                .iter()
                .filter(|(_, changed)| *changed)
                .map(|(name, _)| (*name).into())
                .collect(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::Update.name(), action: "update job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Update, Arc::new(value));
        Submission::by_key(router, target, self.job_key, self.operation_reference, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}
