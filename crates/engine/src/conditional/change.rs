//! Variables change: the conditions that can see it are looked at, from the scopes of the changes inwards.
//!
//! Both are as many as clients like: what an instance waits for, and what one document sets. So every look is charged before it
//! is made, and what does not fit the command goes on in another one, behind the subscription that was looked at last.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use bpmn::model::{Trigger, VariableEvent};
use feel::Expression;
use protocol::{
    Command, ConditionalChange, ConditionalPlace, ConditionalSubscriptionIntent, ConditionalSubscriptionValue, Key,
    Payload, Text,
};

use super::subscription;
use crate::execution::step::Step;
use crate::execution::{Execution, Outcome};
use crate::state::{ANY_VARIABLE, State};
use crate::variable::expression;

/// Conditions that are evaluated before others have their turn.
const CONDITIONS_AT_ONCE_MAX: usize = 1_000;
/// Looks for conditions by the names of what changed; with more to look for, all conditions of the instance are gone through.
const LOOKS_BY_NAME_MAX: usize = 10_000;
/// Subscriptions that are taken from the state at a time.
const PLACES_AT_ONCE: usize = 256;
/// What a look into the state is charged, in steps of an expression.
pub(super) const LOOK_STEPS: u64 = 25;
/// What a further entry of an order that is gone through is charged.
pub(super) const ENTRY_STEPS: u64 = 5;

/// A variable that a scope got or that has another value there.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub scope: Key,
    pub name: Arc<str>,
    pub event: VariableEvent,
}

/// Looks at the conditions that read one of the variables and can see it, each once, and not inside of what an interrupting event
/// is about to end.
pub(crate) fn evaluate(execution: &mut Execution<'_>, process_instance: Key, changes: &[Change]) {
    if changes.is_empty() || subscription::count_of(&execution.state, process_instance) == 0 {
        return;
    }
    let mut changes = grouped(changes);
    let Some(outermost) = changes.iter().map(|change| change.scope_key).min() else { return };
    // Scopes are older than what is inside of them: nothing waits in one that has only just begun.
    if places(&execution.state, process_instance, Start::AtScope(outermost), 1).is_empty() {
        return;
    }
    let Some(found) = find_by_name(execution, process_instance, outermost, &mut changes) else {
        return Walk::of(process_instance, changes, None).through_all(execution);
    };
    let mut walk = Walk::of(process_instance, changes, None);
    for place in found {
        if !walk.visit(execution, place) {
            return;
        }
    }
}

/// CONDITIONAL_SUBSCRIPTION EVALUATE: the subscription itself, or the rest of those that may see changes. The first one is looked
/// at in any case, so that it ends.
pub(crate) fn go_on(execution: &mut Execution<'_>, key: Key, value: &ConditionalSubscriptionValue) -> Outcome {
    if execution.state.is_banned(value.process_instance_key) {
        return Ok(());
    }
    if value.changes.is_empty() {
        look_at_one(execution, ConditionalPlace { scope_key: value.scope_key, subscription_key: key });
        return Ok(());
    }
    let mut walk = Walk::of(value.process_instance_key, value.changes.clone(), value.looked_at);
    walk.until = value.until;
    walk.may_stop = false;
    walk.through_all(execution);
    Ok(())
}

/// Looks at the condition of a subscription that was opened.
pub(crate) fn look_at(execution: &mut Execution<'_>, process_instance_key: Key, place: ConditionalPlace) {
    if !execution.is_over_budget() {
        look_at_one(execution, place);
        return;
    }
    let value = ConditionalSubscriptionValue {
        process_instance_key,
        scope_key: place.scope_key,
        ..ConditionalSubscriptionValue::default()
    };
    enqueue(execution, place.subscription_key, value);
}

/// What happened to which variables, by scope.
fn grouped(changes: &[Change]) -> Vec<ConditionalChange> {
    let mut groups: BTreeMap<(Key, &str), BTreeSet<&Arc<str>>> = BTreeMap::new();
    for change in changes {
        groups.entry((change.scope, change.event.name())).or_default().insert(&change.name);
    }
    let groups = groups.into_iter().map(|((scope_key, event), names)| ConditionalChange {
        scope_key,
        event: event.into(),
        names: names.into_iter().map(|name| Text::from(name.clone())).collect(),
    });
    groups.collect()
}

/// The subscriptions that read what changed, outer scopes first, if they are found with few looks. Names that no condition reads
/// are taken out of the changes on the way.
fn find_by_name(
    execution: &Execution<'_>,
    process_instance: Key,
    outermost: Key,
    changes: &mut [ConditionalChange],
) -> Option<BTreeSet<ConditionalPlace>> {
    let read = names_that_are_read(execution, process_instance, changes)?;
    for change in changes.iter_mut() {
        change.names.retain(|name| read.contains(name.shared()));
    }
    let mut found = BTreeSet::new();
    let mut looks = 0;
    for name in read {
        execution.used.count_reads(LOOK_STEPS);
        let range = (process_instance.raw(), name.clone(), outermost.raw(), i64::MIN)
            ..=(process_instance.raw(), name, i64::MAX, i64::MAX);
        for ((_, _, scope, subscription), _) in execution.state.tables.conditional_variables.range(range) {
            looks += 1;
            if looks > LOOKS_BY_NAME_MAX {
                return None;
            }
            execution.used.count_reads(ENTRY_STEPS);
            found.insert(place(scope, subscription));
        }
    }
    Some(found)
}

/// Of the names that changed, those that a condition of the instance reads, and the one that stands for any. The two orders of names
/// are gone through together, so that it takes no more looks than the smaller one has names.
fn names_that_are_read(
    execution: &Execution<'_>,
    process_instance: Key,
    changes: &[ConditionalChange],
) -> Option<BTreeSet<Arc<str>>> {
    let changed = changes.iter().flat_map(|change| &change.names).map(Text::shared);
    let changed: BTreeSet<Arc<str>> = changed.cloned().collect();
    let table = &execution.state.tables.conditional_variables;
    let mut read = BTreeSet::new();
    let mut from: Arc<str> = Arc::from(ANY_VARIABLE);
    for _ in 0..LOOKS_BY_NAME_MAX {
        execution.used.count_reads(LOOK_STEPS);
        let first = table.first_from(&(process_instance.raw(), from.clone(), i64::MIN, i64::MIN));
        let Some(((_, name, _, _), _)) = first.filter(|((of, ..), _)| *of == process_instance.raw()) else {
            return Some(read);
        };
        let is_any = &*name == ANY_VARIABLE;
        let from_here = (Bound::Included(name.clone()), Bound::Unbounded);
        let mut next = changed.range(from_here).peekable();
        if next.next_if(|next| **next == name).is_some() || is_any {
            read.insert(name);
        }
        let Some(next) = next.next() else { return Some(read) };
        from = next.clone();
    }
    None
}

fn place(scope: i64, subscription: i64) -> ConditionalPlace {
    ConditionalPlace { scope_key: Key::from_raw(scope), subscription_key: Key::from_raw(subscription) }
}

/// Where subscriptions are taken from.
#[derive(Clone, Copy)]
enum Start {
    AtScope(Key),
    Behind(ConditionalPlace),
}

/// Some subscriptions of a process instance, outer scopes first.
fn places(state: &State, process_instance: Key, start: Start, count: usize) -> Vec<ConditionalPlace> {
    let instance = process_instance.raw();
    let first = match start {
        Start::AtScope(scope) => (instance, scope.raw(), i64::MIN),
        Start::Behind(place) => (instance, place.scope_key.raw(), place.subscription_key.raw().saturating_add(1)),
    };
    let range = first..=(instance, i64::MAX, i64::MAX);
    let rows = state.tables.conditional_scopes.range(range).take(count);
    rows.map(|((_, scope, subscription), _)| place(scope, subscription)).collect()
}

/// What a scope sees of the changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It lies in none of their scopes.
    Outside,
    /// The innermost of their scopes that it lies in.
    Inside(Key),
    /// What it lies in is about to be interrupted.
    Interrupted,
}

/// The way through subscriptions that may see changes, outer scopes first.
struct Walk {
    process_instance: Key,
    /// In the order of their scopes, each of which lies inside of the one before.
    changes: Vec<ConditionalChange>,
    looked_at: Option<ConditionalPlace>,
    /// The last key when the variables changed, if that was in another command.
    until: Option<Key>,
    evaluated: usize,
    /// Whether the rest may be left to another command.
    may_stop: bool,
    standings: BTreeMap<Key, Standing>,
}

impl Walk {
    fn of(process_instance: Key, changes: Vec<ConditionalChange>, looked_at: Option<ConditionalPlace>) -> Walk {
        let standings = BTreeMap::new();
        Walk { process_instance, changes, looked_at, until: None, evaluated: 0, may_stop: true, standings }
    }

    /// Goes through all subscriptions of the instance, behind the one that was looked at last.
    fn through_all(mut self, execution: &mut Execution<'_>) {
        let Some(outermost) = self.changes.first().map(|change| change.scope_key) else { return };
        loop {
            let start = self.looked_at.map_or(Start::AtScope(outermost), Start::Behind);
            let places = places(&execution.state, self.process_instance, start, PLACES_AT_ONCE);
            let is_last = places.len() < PLACES_AT_ONCE;
            for place in places {
                if !self.visit(execution, place) {
                    return;
                }
            }
            if is_last {
                return;
            }
        }
    }

    /// Returns whether the next one can be visited; otherwise another command does that.
    fn visit(&mut self, execution: &mut Execution<'_>, place: ConditionalPlace) -> bool {
        let is_much = self.evaluated >= execution.at_once(CONDITIONS_AT_ONCE_MAX) || execution.is_over_budget();
        if is_much && self.may_stop {
            let state = &execution.state;
            let value = ConditionalSubscriptionValue {
                process_instance_key: self.process_instance,
                changes: std::mem::take(&mut self.changes),
                looked_at: self.looked_at,
                until: Some(self.until.unwrap_or_else(|| Key::new(state.partition, state.counters.key))),
                ..ConditionalSubscriptionValue::default()
            };
            enqueue(execution, Key::NONE, value);
            return false;
        }
        self.may_stop = true;
        self.looked_at = Some(place);
        let was_open = self.until.is_none_or(|until| place.subscription_key <= until);
        if was_open && self.sees_change(execution, place) {
            self.evaluated += 1;
            if look_at_one(execution, place) == Some(true) {
                self.standings.insert(place.scope_key, Standing::Interrupted);
            }
        }
        true
    }

    fn sees_change(&mut self, execution: &Execution<'_>, place: ConditionalPlace) -> bool {
        let Standing::Inside(innermost) = self.standing_of(execution, place.scope_key) else { return false };
        execution.used.count_reads(LOOK_STEPS);
        let row = (place.scope_key.raw(), place.subscription_key.raw());
        let Some(row) = execution.state.tables.conditional_subscriptions.get(&row) else { return false };
        let wanted = &row.value.variable_events;
        let names = &row.value.variable_names;
        let changes = self.changes.iter().take_while(|change| change.scope_key <= innermost);
        let mut changes = changes.filter(|change| wanted.is_empty() || wanted.contains(&change.event));
        changes.any(|change| {
            execution.used.count_reads((names.len() as u64).saturating_mul(ENTRY_STEPS));
            names.is_empty() || names.iter().any(|name| change.names.binary_search(name).is_ok())
        })
    }

    /// Each scope is looked at once: thousands of subscriptions may lie deep inside of the same.
    fn standing_of(&mut self, execution: &Execution<'_>, scope: Key) -> Standing {
        let mut unknown = Vec::new();
        let mut at = scope;
        let standing = loop {
            execution.used.count_reads(1);
            if let Some(known) = self.standings.get(&at) {
                break *known;
            }
            unknown.push(at);
            if self.changes.iter().any(|change| change.scope_key == at) {
                break Standing::Inside(at);
            }
            execution.used.count_reads(LOOK_STEPS);
            match execution.state.element_instance(at) {
                Some(instance) => at = instance.value.flow_scope_key,
                None => break Standing::Outside,
            }
        };
        self.standings.extend(unknown.into_iter().map(|scope| (scope, standing)));
        standing
    }
}

/// Whether the event is triggered and interrupts; nothing when its condition does not hold.
fn look_at_one(execution: &mut Execution<'_>, place: ConditionalPlace) -> Option<bool> {
    execution.used.count_reads(LOOK_STEPS);
    let subscription = (place.scope_key.raw(), place.subscription_key.raw());
    let row = execution.state.tables.conditional_subscriptions.get(&subscription)?;
    if !holds(execution, &row.value) {
        return None;
    }
    let intent = ConditionalSubscriptionIntent::Trigger;
    let payload = Payload::ConditionalSubscription(intent, Box::new(row.value.clone()));
    let command = Command::new(place.subscription_key, payload);
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
fn enqueue(execution: &mut Execution<'_>, key: Key, value: ConditionalSubscriptionValue) {
    let payload = Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Evaluate, Box::new(value));
    let command = Command::new(key, payload).following(&execution.origin);
    execution.steps.push_back(Step::Command(Box::new(command)));
}
