//! Inclusive gateway: which flows are taken, and when a joining one begins.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bpmn::model::{Behavior, ElementIndex, ExecutableProcess, FlowIndex};
use protocol::{ErrorType, Key, ProcessInstanceValue};

use crate::execution::problem::Problem;
use crate::execution::token::{Token, arrive};
use crate::execution::waiting_joins::Awaited;
use crate::execution::{Execution, Outcome};
use crate::state::State;
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

/// Whether a joining gateway begins: a token has arrived, and nothing active in the scope can send another one.
pub(super) fn can_begin(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    gateway: ElementIndex,
    scope: Key,
) -> bool {
    let known = execution.waiting_joins.0.get(&(scope, gateway)).copied();
    let mut search = Search { state: &execution.state, process, gateway, scope, seen: BTreeSet::new(), reads: 1 };
    if !search.has_token() {
        execution.used.count_reads(search.reads);
        return false;
    }
    let still_awaited = known.and_then(|known| known.by).is_some_and(|(child, flow)| search.is_awaited(child, flow));
    let awaited = if still_awaited { known } else { search.next(known.map_or(Key::NONE, |known| known.passed)) };
    execution.used.count_reads(search.reads);
    if let Some(awaited) = awaited {
        execution.waiting_joins.0.insert((scope, gateway), awaited);
    }
    awaited.is_none()
}

/// Looks for what a joining gateway waits for.
struct Search<'a> {
    state: &'a State,
    process: &'a ExecutableProcess,
    gateway: ElementIndex,
    scope: Key,
    /// Elements that were looked at.
    seen: BTreeSet<ElementIndex>,
    /// Entries of the state and sequence flows that were looked at.
    reads: u64,
}

impl Search<'_> {
    fn has_token(&self) -> bool {
        let id = self.process.element(self.gateway).id.clone();
        self.state.tables.waiting_tokens.prefix(&(self.scope.raw(), id)).next().is_some()
    }

    fn has_token_by(&mut self, flow: FlowIndex) -> bool {
        self.reads += 1;
        let token =
            (self.scope.raw(), self.process.element(self.gateway).id.clone(), self.process.flow(flow).id.clone());
        self.state.tables.waiting_tokens.contains(&token)
    }

    /// Whether what was found before still holds.
    fn is_awaited(&mut self, child: Key, flow: FlowIndex) -> bool {
        self.reads += 1;
        self.state.tables.children.contains(&(self.scope.raw(), child.raw())) && !self.has_token_by(flow)
    }

    /// The next child, or else a token about to arrive somewhere, from which a path leads to the gateway by a flow without
    /// a token.
    fn next(&mut self, mut passed: Key) -> Option<Awaited> {
        let tables = &self.state.tables;
        let from = passed.raw().saturating_add(1).max(0);
        for ((_, child), _) in tables.children.range((self.scope.raw(), from)..(self.scope.raw(), i64::MAX)) {
            self.reads += 2;
            let instance = tables.element_instances.get(&child);
            let element = instance.and_then(|child| self.process.element_by_id.get(&*child.value.element_id).copied());
            if let Some(flow) = element.and_then(|element| self.find_way_from(element)) {
                return Some(Awaited { passed, by: Some((Key::from_raw(child), flow)) });
            }
            passed = Key::from_raw(child);
        }
        let mut next: (i64, Arc<str>, Arc<str>) = (self.scope.raw(), Arc::default(), Arc::default());
        while let Some(((scope, target, _), _)) = tables.waiting_tokens.first_from(&next)
            && scope == self.scope.raw()
        {
            self.reads += 1;
            let element = self.process.element_by_id.get(&target).copied();
            if element.is_some_and(|element| self.find_way_from(element).is_some()) {
                return Some(Awaited { passed, by: None });
            }
            // Everything with the same target is skipped at once.
            next = (scope, format!("{target}\0").into(), Arc::default());
        }
        None
    }

    /// The last flow of a path from an element to the gateway, if it has no token yet. Elements that were seen lead nowhere.
    fn find_way_from(&mut self, element: ElementIndex) -> Option<FlowIndex> {
        let mut open = VecDeque::from([element]);
        while let Some(index) = open.pop_front() {
            if index == self.gateway || !self.seen.insert(index) {
                continue;
            }
            let element = self.process.element(index);
            for flow in &element.outgoing {
                let target = self.process.flow(*flow).target;
                self.reads += 1;
                if target == self.gateway && !self.has_token_by(*flow) {
                    return Some(*flow);
                }
                open.push_back(target);
            }
            open.extend(&element.boundary_events);
            if let Behavior::LinkThrowEvent { target } = element.behavior {
                open.push_back(target);
            }
        }
        None
    }
}

/// A path of the scope ended: gateways that waited for it may begin now.
pub(super) fn look_again(execution: &mut Execution<'_>, scope: Key, of: &ProcessInstanceValue) -> Outcome {
    let process = execution.process(of)?;
    if process.joining_inclusive_gateways.is_empty() {
        return Ok(());
    }
    let Some(instance) = execution.state.element_instance(scope) else { return Ok(()) };
    let enclosing = process.find(&instance.value.element_id, instance.value.bpmn_element_type);
    for &gateway in &process.joining_inclusive_gateways {
        if process.element(gateway).flow_scope == enclosing && can_begin(execution, &process, gateway, scope) {
            arrive(execution, &process, gateway, scope, of);
        }
    }
    Ok(())
}
