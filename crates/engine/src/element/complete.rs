//! An element's work is done: COMPLETING, COMPLETED, and on along the outgoing flows.

use std::sync::Arc;

use bpmn::model::{Behavior, FlowIndex};
use protocol::{
    BpmnElementType, BpmnEventType, Key, Payload, ProcessInstanceIntent, ProcessInstanceResultIntent,
    ProcessInstanceResultValue, ProcessInstanceValue,
};

use super::{Step, Token, arrive};
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;
use crate::variable::{document, mapping};

pub(super) fn complete(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    match token.instance.lifecycle {
        Lifecycle::Activated => token.transition(execution, ProcessInstanceIntent::ElementCompleting),
        // After the resolution of an incident.
        Lifecycle::Completing => {}
        Lifecycle::Activating | Lifecycle::Terminating => return Ok(()),
    }
    if let Err(problem) = mapping::apply_outputs(execution, &token) {
        crate::incident::raise_for_element(execution, &token, problem);
        return Ok(());
    }
    if token.value().bpmn_element_type == BpmnElementType::Process {
        answer_awaited_result(execution, &token);
        token.transition(execution, ProcessInstanceIntent::ElementCompleted);
        return Ok(());
    }
    token.transition(execution, ProcessInstanceIntent::ElementCompleted);
    let process = token.process.clone();
    take_flows(execution, &token, &process.element(token.element).outgoing);
    Ok(())
}

/// Takes the given flows out of a completed element, last in the document first as on the reference engine; without any,
/// the path ends here and perhaps its scope with it.
pub(super) fn take_flows(execution: &mut Execution<'_>, token: &Token, flows: &[FlowIndex]) {
    let scope = token.value().flow_scope_key;
    for flow in flows.iter().rev() {
        let flow = token.process.flow(*flow);
        let key = execution.state.next_key();
        let value = ProcessInstanceValue {
            element_id: (&flow.id).into(),
            bpmn_element_type: BpmnElementType::SequenceFlow,
            bpmn_event_type: BpmnEventType::Unspecified,
            ..(**token.value()).clone()
        };
        execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::SequenceFlowTaken, Arc::new(value)));
        arrive(execution, &token.process, flow.target, scope, token.value());
    }
    if flows.is_empty() {
        complete_scope_without_tokens(execution, scope);
    }
}

/// A scope is complete when nothing lives in it and no token is on its way.
pub(super) fn complete_scope_without_tokens(execution: &mut Execution<'_>, scope: Key) {
    if let Some(instance) = execution.state.element_instance(scope)
        && instance.children == 0
        && instance.tokens == 0
        && instance.lifecycle == Lifecycle::Activated
    {
        execution.steps.push_back(Step::Complete { key: scope });
    }
}

/// The variables of a process go to whoever created it and waits for them.
fn answer_awaited_result(execution: &mut Execution<'_>, token: &Token) {
    debug_assert!(matches!(token.element().behavior, Behavior::Container { .. }));
    if execution.state.counters.awaited_results == 0 {
        return;
    }
    let Some(awaited) = execution.state.tables.awaited_results.get(&token.key.raw()) else { return };
    let variables = document::collect(execution.state, token.key, &awaited.fetch_variables);
    let value = token.value();
    let result = ProcessInstanceResultValue {
        bpmn_process_id: value.bpmn_process_id.clone(),
        version: value.version,
        process_definition_key: value.process_definition_key,
        process_instance_key: value.process_instance_key,
        variables: variables.into(),
        tags: value.tags.clone(),
        tenant_id: value.tenant_id.clone(),
    };
    let payload = Payload::ProcessInstanceResult(ProcessInstanceResultIntent::Completed, Box::new(result));
    execution.reply_to(awaited.request, token.key, payload);
}
