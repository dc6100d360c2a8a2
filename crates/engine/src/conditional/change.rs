//! Variables change: the conditions that can see it are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use bpmn::model::{Trigger, VariableEvent};
use feel::Expression;
use protocol::{
    Command, ConditionalCandidate, ConditionalSubscriptionIntent, ConditionalSubscriptionValue, Key, Payload,
};

use super::subscription;
use crate::element::Step;
use crate::execution::{Execution, Outcome};
use crate::state::{ANY_VARIABLE, State};
use crate::variable::expression;

/// Conditions that are looked at before others have their turn.
const CONDITIONS_AT_ONCE_MAX: usize = 100;

/// A variable that a scope got or that has another value there.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub scope: Key,
    pub name: Arc<str>,
    pub event: VariableEvent,
}

/// A subscription that can see a change, with the scopes on the way to it, its own one last.
struct Candidate {
    way: Rc<[i64]>,
    subscription: i64,
}

/// Looks at the conditions that read one of the variables and can see it, each once: from the scope of a change inwards, and not
/// inside of what an interrupting event is about to end.
pub(crate) fn evaluate(execution: &mut Execution<'_>, process_instance: Key, changes: &[Change]) {
    if changes.is_empty() || subscription::count_of(&execution.state, process_instance) == 0 {
        return;
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for change in changes {
        let mut candidates = candidates_of(execution, process_instance, change);
        candidates.retain(|candidate| seen.insert(candidate.subscription));
        candidates.sort_by(|left, right| {
            let depths = left.way.len().cmp(&right.way.len());
            depths.then_with(|| left.way.cmp(&right.way)).then(left.subscription.cmp(&right.subscription))
        });
        found.extend(candidates);
    }
    look_at_all(execution, process_instance, &found);
}

/// The subscriptions that can see a change, in no order.
fn candidates_of(execution: &Execution<'_>, process_instance: Key, change: &Change) -> Vec<Candidate> {
    let state: &State = &execution.state;
    let mut candidates = Vec::new();
    let mut ways = Ways { from: change.scope, known: BTreeMap::new() };
    for name in [&*change.name, ANY_VARIABLE] {
        let rows = state.tables.conditional_variables.prefix(&(process_instance.raw(), Arc::from(name)));
        for ((_, _, subscription), scope) in rows {
            let Some(way) = ways.to(execution, Key::from_raw(*scope)) else { continue };
            let Some(row) = state.tables.conditional_subscriptions.get(&(*scope, subscription)) else { continue };
            let wanted = &row.value.variable_events;
            if wanted.is_empty() || wanted.iter().any(|wanted| **wanted == *change.event.name()) {
                candidates.push(Candidate { way, subscription });
            }
        }
    }
    candidates
}

/// The scopes from one to others inside of it, each found once: thousands of subscriptions may lie deep inside of the same.
struct Ways {
    from: Key,
    /// Nothing for a scope that does not lie inside.
    known: BTreeMap<i64, Option<Rc<[i64]>>>,
}

impl Ways {
    /// The scopes to another one, itself last, if it lies inside.
    fn to(&mut self, execution: &Execution<'_>, scope: Key) -> Option<Rc<[i64]>> {
        let mut unknown = Vec::new();
        let mut at = scope;
        let mut way = loop {
            if let Some(known) = self.known.get(&at.raw()) {
                break known.clone();
            }
            unknown.push(at.raw());
            if at == self.from {
                break Some(Rc::default());
            }
            execution.used.count_reads(1);
            match execution.state.element_instance(at) {
                Some(instance) => at = instance.value.flow_scope_key,
                None => break None,
            }
        };
        for scope in unknown.into_iter().rev() {
            way = way.map(|around| [&*around, &[scope]].concat().into());
            self.known.insert(scope, way.clone());
        }
        way
    }
}

fn look_at_all(execution: &mut Execution<'_>, process_instance: Key, candidates: &[Candidate]) {
    let mut interrupted = BTreeSet::new();
    for (count, candidate) in candidates.iter().enumerate() {
        if count == CONDITIONS_AT_ONCE_MAX || execution.is_over_budget() {
            return go_on_later(execution, process_instance, &candidates[count..]);
        }
        if candidate.way.iter().any(|scope| interrupted.contains(scope)) {
            continue;
        }
        let Some(scope) = candidate.way.last() else { continue };
        if look_at_one(execution, (*scope, candidate.subscription)) == Some(true) {
            interrupted.insert(*scope);
        }
    }
}

/// Looks at the conditions of subscriptions of an instance, each with its scope.
pub(crate) fn look_at(execution: &mut Execution<'_>, process_instance: Key, subscriptions: &[(Key, Key)]) {
    let candidates = subscriptions.iter();
    let candidates: Vec<Candidate> = candidates
        .map(|(scope, subscription)| Candidate { way: Rc::from([scope.raw()]), subscription: subscription.raw() })
        .collect();
    look_at_all(execution, process_instance, &candidates);
}

/// Whether the event is triggered and interrupts; nothing when its condition does not hold.
fn look_at_one(execution: &mut Execution<'_>, subscription: (i64, i64)) -> Option<bool> {
    let row = execution.state.tables.conditional_subscriptions.get(&subscription)?;
    if !holds(execution, &row.value) {
        return None;
    }
    let intent = ConditionalSubscriptionIntent::Trigger;
    let payload = Payload::ConditionalSubscription(intent, Box::new(row.value.clone()));
    let command = Command::new(Key::from_raw(subscription.1), payload);
    execution.steps.push_back(Step::Command(Box::new(command.following(&execution.origin))));
    Some(row.value.interrupting)
}

/// Whether the condition is true for the variables that its scope sees.
fn holds(execution: &Execution<'_>, value: &ConditionalSubscriptionValue) -> bool {
    let scope = value.scope_key;
    let Some(process) = execution.state.process(value.process_definition_key) else { return false };
    let event = process.find_event(&value.catch_event_id).and_then(|event| process.element(event).catch_event());
    match event.map(|event| &event.trigger) {
        Some(Trigger::Condition(definition)) if *definition.text == *value.condition => {
            expression::boolean(execution, scope, &definition.condition).unwrap_or(false)
        }
        // A migrated instance keeps the condition that it waits for.
        _ => {
            execution.used.count_reads(value.condition.len() as u64);
            let text = value.condition.strip_prefix('=').unwrap_or_default();
            let condition = Expression::parse(text);
            condition.is_ok_and(|condition| expression::boolean(execution, scope, &condition).unwrap_or(false))
        }
    }
}

/// The rest waits its turn behind what was begun.
fn go_on_later(execution: &mut Execution<'_>, process_instance_key: Key, rest: &[Candidate]) {
    let candidates = rest.iter().filter_map(|candidate| {
        let scope_key = Key::from_raw(*candidate.way.last()?);
        Some(ConditionalCandidate { scope_key, subscription_key: Key::from_raw(candidate.subscription) })
    });
    let candidates: Vec<ConditionalCandidate> = candidates.collect();
    let value =
        ConditionalSubscriptionValue { process_instance_key, candidates, ..ConditionalSubscriptionValue::default() };
    let payload = Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Evaluate, Box::new(value));
    let command = Command::new(Key::NONE, payload).following(&execution.origin);
    execution.steps.push_back(Step::Command(Box::new(command)));
}

/// CONDITIONAL_SUBSCRIPTION EVALUATE: the rest of what could see a change. The first one is looked at in any case, so that it
/// ends.
pub(crate) fn go_on(execution: &mut Execution<'_>, value: &ConditionalSubscriptionValue) -> Outcome {
    if execution.state.is_banned(value.process_instance_key) {
        return Ok(());
    }
    let mut candidates = value.candidates.iter();
    if let Some(first) = candidates.next() {
        look_at_one(execution, (first.scope_key.raw(), first.subscription_key.raw()));
    }
    let rest: Vec<(Key, Key)> = candidates.map(|rest| (rest.scope_key, rest.subscription_key)).collect();
    look_at(execution, value.process_instance_key, &rest);
    Ok(())
}
