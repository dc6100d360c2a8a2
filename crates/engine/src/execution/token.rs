//! Tokens: element instances on their way.

use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess};
use protocol::{Key, Payload, ProcessInstanceIntent, ProcessInstanceValue};

use super::step::Step;
use super::{Execution, Outcome};
use crate::state::ElementInstance;

/// An element instance on its way, with what every part of its life needs.
pub(crate) struct Token {
    pub key: Key,
    pub instance: Arc<ElementInstance>,
    pub process: Arc<ExecutableProcess>,
    pub element: ElementIndex,
}

impl Token {
    /// The living instance with this key, if it is (still) there.
    pub fn find(execution: &Execution<'_>, key: Key) -> Outcome<Option<Token>> {
        let Some(instance) = execution.state.element_instance(key) else { return Ok(None) };
        let is_orphan = |execution: &Execution<'_>| execution.state.is_banned(instance.value.process_instance_key);
        let (process, element) = match execution.element_of(&instance.value) {
            Ok(found) => found,
            // A banned instance does not keep its definition.
            Err(_) if is_orphan(execution) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        Ok(Some(Token { key, instance, process, element }))
    }

    pub fn element(&self) -> &bpmn::model::Element {
        self.process.element(self.element)
    }

    pub fn value(&self) -> &Arc<ProcessInstanceValue> {
        &self.instance.value
    }

    pub fn transition(&self, execution: &mut Execution<'_>, intent: ProcessInstanceIntent) {
        execution.emit(self.key, Payload::ProcessInstance(intent, self.instance.value.clone()));
    }
}

/// The value of an instance of `element` in `scope`, which belongs to the same process instance as `of`.
pub(crate) fn value_of(
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
    of: &ProcessInstanceValue,
    without_token: bool,
) -> ProcessInstanceValue {
    let target = process.element(element);
    ProcessInstanceValue {
        element_id: (&target.id).into(),
        flow_scope_key: scope,
        bpmn_element_type: target.element_type,
        bpmn_event_type: target.event_type,
        without_token,
        ..of.clone()
    }
}

/// Lets a token arrive at `element`, which lies in the same scope as `of`.
pub(crate) fn arrive(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
    of: &ProcessInstanceValue,
) {
    let value = value_of(process, element, scope, of, false);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// Begins `element` in `scope` without a token of a sequence flow.
pub(crate) fn begin(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
    of: &ProcessInstanceValue,
) {
    let value = value_of(process, element, scope, of, true);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// The work of the element begins.
pub(crate) fn activated(execution: &mut Execution<'_>, token: &Token) {
    token.transition(execution, ProcessInstanceIntent::ElementActivated);
}
