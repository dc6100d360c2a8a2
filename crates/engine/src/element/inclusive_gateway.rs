//! Inclusive gateway: which flows are taken, and when a joining one begins.

use std::collections::VecDeque;

use bpmn::model::{Behavior, ElementIndex, ExecutableProcess, FlowIndex};
use protocol::{ErrorType, Key, ProcessInstanceValue};

use super::{Token, arrive};
use crate::execution::{Execution, Outcome};
use crate::incident::Problem;
use crate::variable::expression;

/// All flows whose condition holds, else the default flow.
pub(super) fn choose_flows(
    execution: &Execution<'_>,
    token: &Token,
    default: Option<FlowIndex>,
) -> Result<Vec<FlowIndex>, Problem> {
    let outgoing = &token.element().outgoing;
    let mut chosen = Vec::with_capacity(outgoing.len());
    for flow in outgoing.iter().filter(|flow| Some(**flow) != default) {
        let holds = match &token.process.flow(*flow).condition {
            None => true,
            Some(condition) => expression::boolean(execution, token.key, condition)?,
        };
        if holds {
            chosen.push(*flow);
        }
    }
    if chosen.is_empty() {
        chosen.extend(default);
    }
    if chosen.is_empty() && !outgoing.is_empty() {
        return Err(Problem::new(
            ErrorType::ConditionError,
            "Expected at least one condition to evaluate to true, or to have a default flow",
        ));
    }
    Ok(chosen)
}

/// Whether a joining gateway begins: a token has arrived, and no further one can, by whatever is active in the scope.
pub(super) fn can_begin(
    execution: &Execution<'_>,
    process: &ExecutableProcess,
    gateway: ElementIndex,
    scope: Key,
) -> bool {
    let taken = tokens_at(execution, process, gateway, scope);
    let incoming = process.element(gateway).incoming.len();
    if taken.len() == incoming {
        return true;
    }
    !taken.is_empty() && !can_be_reached(process, gateway, active_elements(execution, process, gateway, scope), &taken)
}

/// The incoming flows by which tokens wait at the gateway.
fn tokens_at(
    execution: &Execution<'_>,
    process: &ExecutableProcess,
    gateway: ElementIndex,
    scope: Key,
) -> Vec<FlowIndex> {
    let definition = process.element(gateway);
    let has_token = |flow: &&FlowIndex| {
        let place = (scope.raw(), definition.id.clone(), process.flow(**flow).id.clone());
        execution.state.tables.waiting_tokens.contains(&place)
    };
    definition.incoming.iter().filter(has_token).copied().collect()
}

/// The elements of a scope, other than the gateway, where something lives or a token is about to arrive.
fn active_elements(
    execution: &Execution<'_>,
    process: &ExecutableProcess,
    gateway: ElementIndex,
    scope: Key,
) -> Vec<ElementIndex> {
    let tables = &execution.state.tables;
    let range = (scope.raw(), i64::MIN)..=(scope.raw(), i64::MAX);
    let mut active: Vec<ElementIndex> = tables
        .children
        .range(range)
        .filter_map(|((_, child), _)| {
            let child = tables.element_instances.get(&child)?;
            process.element_by_id.get(&*child.value.element_id).copied()
        })
        .collect();
    let start = (scope.raw(), "".into(), "".into());
    let end = (scope.raw() + 1, "".into(), "".into());
    let on_their_way = tables.waiting_tokens.range(start..end);
    active.extend(on_their_way.filter_map(|((_, target, _), _)| process.element_by_id.get(&target).copied()));
    active.retain(|element| *element != gateway);
    active.sort();
    active.dedup();
    active
}

/// Whether a path leads from one of the elements to the gateway, other than by a flow whose token is there already.
fn can_be_reached(
    process: &ExecutableProcess,
    gateway: ElementIndex,
    from: Vec<ElementIndex>,
    taken: &[FlowIndex],
) -> bool {
    let mut seen = vec![false; process.elements.len()];
    let mut open = VecDeque::from(from);
    while let Some(index) = open.pop_front() {
        if index == gateway {
            return true;
        }
        if std::mem::replace(&mut seen[index.0 as usize], true) {
            continue;
        }
        let element = process.element(index);
        let flows = element.outgoing.iter().filter(|flow| !taken.contains(flow));
        open.extend(flows.map(|flow| process.flow(*flow).target));
        open.extend(&element.boundary_events);
        if let Behavior::LinkThrowEvent { target } = element.behavior {
            open.push_back(target);
        }
    }
    false
}

/// A path of the scope ended somewhere: gateways that waited for it may begin now.
pub(super) fn look_again(execution: &mut Execution<'_>, scope: Key, of: &ProcessInstanceValue) -> Outcome {
    let process = execution.process(of)?;
    if !process.has_joining_inclusive_gateway {
        return Ok(());
    }
    let indexes = (0..).map(ElementIndex).zip(&process.elements);
    let joins = indexes.filter(|(_, element)| {
        matches!(element.behavior, Behavior::InclusiveGateway { .. }) && element.incoming.len() > 1
    });
    for (gateway, _) in joins {
        if !tokens_at(execution, &process, gateway, scope).is_empty() && can_begin(execution, &process, gateway, scope)
        {
            arrive(execution, &process, gateway, scope, of);
        }
    }
    Ok(())
}
