//! Tokens that wait at joining gateways: each moves to the flow that the plan names.

use std::sync::Arc;

use bpmn::model::{Element, ElementType, FlowIndex};
use protocol::{
    BpmnElementType, BpmnEventType, Key, Payload, ProcessInstanceIntent, ProcessInstanceValue, Rejection, Text,
};

use super::Migration;
use super::preconditions;
use crate::execution::Execution;
use crate::state::ElementInstance;

/// Tokens that wait after one sequence flow.
pub(super) struct WaitingToken {
    source_flow: Text,
    target_flow: Text,
    count: u32,
}

/// The tokens of a scope: all must wait at joining gateways and move to gateways of the same kind.
pub(super) fn waiting_tokens(
    execution: &Execution<'_>,
    migration: &Migration,
    scope: Key,
    instance: &ElementInstance,
) -> Result<Vec<WaitingToken>, Rejection> {
    if instance.tokens == 0 {
        return Ok(Vec::new());
    }
    let rows = execution.state.tables.waiting_tokens.prefix(&scope.raw());
    let source = &migration.source;
    // By gateway, because that comes first in the key.
    let mut at_gateways: Vec<(&Element, FlowIndex, u32)> = Vec::new();
    for ((_, gateway, flow), count) in rows {
        let gateway = source.element_by_id.get(&gateway).map(|gateway| source.element(*gateway));
        let (Some(gateway), Some(flow)) = (gateway, source.flow_by_id.get(&flow)) else { continue };
        if is_join(gateway) {
            at_gateways.push((gateway, *flow, *count));
        }
    }
    let waiting = at_gateways.iter().map(|(.., count)| *count).sum();
    preconditions::check_tokens(migration, instance.tokens, waiting)?;
    for of_gateway in at_gateways.chunk_by(|(left, ..), (right, ..)| left.id == right.id) {
        let gateway = of_gateway[0].0;
        preconditions::check_gateway_waits(migration, of_gateway.len(), gateway.incoming.len())?;
        check_gateway(migration, gateway)?;
    }
    at_gateways
        .into_iter()
        .map(|(gateway, flow, count)| {
            let source_flow = (&source.flow(flow).id).into();
            let target_flow = target_flow(migration, gateway, &source_flow)?;
            Ok(WaitingToken { source_flow, target_flow, count })
        })
        .collect()
}

fn is_join(element: &Element) -> bool {
    matches!(element.element_type, ElementType::ParallelGateway | ElementType::InclusiveGateway)
}

/// The gateway becomes one of the same kind that waits for at least as many flows.
fn check_gateway(migration: &Migration, gateway: &Element) -> Result<(), Rejection> {
    let process = &migration.target;
    let id = &gateway.id;
    let Some(target_id) = migration.mapped(id) else {
        return Err(migration.invalid_argument(&format!(
            "gateway '{id}' has at least one incoming sequence flow taken. Joining gateways with at least one incoming \
             sequence flow taken must be mapped to a gateway of the same type in the target process definition."
        )));
    };
    let target = process.element_by_id.get(&**target_id).map(|target| process.element(*target));
    let found = target.map_or(ElementType::SequenceFlow, |target| target.element_type);
    let Some(target) = target.filter(|target| target.element_type == gateway.element_type) else {
        return Err(migration.invalid_argument(&format!(
            "active element with id '{id}' and type '{}' is mapped to an element with id '{target_id}' and different type \
             '{}'. Elements must be mapped to elements of the same type.",
            gateway.element_type.name(),
            found.name()
        )));
    };
    if target.incoming.len() < gateway.incoming.len() {
        return Err(migration.invalid_argument(&format!(
            "target gateway with id '{target_id}' has less incoming sequence flows than the source gateway with id '{id}'. \
             Target gateway must have at least the same number of incoming sequence flows as the source gateway."
        )));
    }
    Ok(())
}

/// The flow must lead to the gateway that the source gateway is mapped to, or its token would wait for ever.
fn target_flow(migration: &Migration, gateway: &Element, source_flow: &Text) -> Result<Text, Rejection> {
    let gateway_id = &gateway.id;
    let Some(target_flow) = migration.mapped(source_flow) else {
        return Err(migration.invalid_argument(&format!(
            "joining gateway with id '{gateway_id}' has a taken sequence flow with id '{source_flow}'. Taken sequence flows \
             must be mapped to a sequence flow in the target process definition."
        )));
    };
    let process = &migration.target;
    let leads_to = process.flow_by_id.get(&**target_flow).map(|flow| &process.element(process.flow(*flow).target).id);
    let target_gateway = migration.mapped(gateway_id);
    if leads_to.is_none_or(|leads_to| target_gateway.is_none_or(|gateway| *gateway != **leads_to)) {
        return Err(migration.invalid_argument(&format!(
            "the taken sequence flow with id '{source_flow}' is mapped to '{target_flow}', which is no sequence flow that \
             leads to the gateway to which '{gateway_id}' is mapped. Map it to one of the incoming flows of that gateway."
        )));
    }
    Ok(target_flow.clone())
}

/// Takes back the tokens of the flows in the source and takes those in the target.
pub(super) fn migrate(
    execution: &mut Execution<'_>,
    scope: Key,
    source: &ProcessInstanceValue,
    target: &ProcessInstanceValue,
    tokens: &[WaitingToken],
) {
    for token in tokens {
        for _ in 0..token.count {
            emit(execution, ProcessInstanceIntent::SequenceFlowDeleted, scope, source, &token.source_flow);
            emit(execution, ProcessInstanceIntent::SequenceFlowTaken, scope, target, &token.target_flow);
        }
    }
}

fn emit(
    execution: &mut Execution<'_>,
    intent: ProcessInstanceIntent,
    scope: Key,
    of: &ProcessInstanceValue,
    flow: &Text,
) {
    let key = execution.state.next_key();
    let value = ProcessInstanceValue {
        element_id: flow.clone(),
        flow_scope_key: scope,
        bpmn_element_type: BpmnElementType::SequenceFlow,
        bpmn_event_type: BpmnEventType::Unspecified,
        without_token: false,
        ..of.clone()
    };
    execution.emit(key, Payload::ProcessInstance(intent, Arc::new(value)));
}
