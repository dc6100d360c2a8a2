//! Events of conditions and their subscriptions.

use protocol::{ConditionalEvaluationIntent, ConditionalSubscriptionIntent, ConditionalSubscriptionValue, Key};

use super::change::{broken, change_element, count_up, not_an_event, take_one};
use crate::state::{ConditionalSubscriptionRow, State, watched_names};

pub(super) fn apply(state: &mut State, intent: ConditionalEvaluationIntent) {
    match intent {
        // What it starts says so itself.
        ConditionalEvaluationIntent::Evaluated => {}
        ConditionalEvaluationIntent::Evaluate => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_subscription(
    state: &mut State,
    key: Key,
    intent: ConditionalSubscriptionIntent,
    value: &ConditionalSubscriptionValue,
) {
    let waiting = value.element_instance_key;
    let owner = if waiting.is_some() { waiting } else { value.process_definition_key }.raw();
    let entry = (owner, key.raw());
    match intent {
        ConditionalSubscriptionIntent::Created => {
            let row = ConditionalSubscriptionRow { value: value.clone() };
            state.tables.conditional_subscriptions.insert_new(entry, row);
            if waiting.is_none() {
                let start = (value.tenant_id.shared().clone(), key.raw());
                return state.tables.conditional_start_events.put(start, owner);
            }
            for name in watched_names(value) {
                let variable = (value.process_instance_key.raw(), name, owner, key.raw());
                state.tables.conditional_variables.put(variable, ());
            }
            state.tables.conditional_scopes.put((value.process_instance_key.raw(), owner, key.raw()), ());
            count_up(&mut state.tables.conditional_counts, value.process_instance_key.raw());
            change_element(state, owner, |instance| instance.has_subscriptions = true);
        }
        // What does not interrupt goes on waiting.
        ConditionalSubscriptionIntent::Triggered if !value.interrupting => {}
        ConditionalSubscriptionIntent::Triggered | ConditionalSubscriptionIntent::Deleted => {
            remove(state, entry, value);
        }
        // The condition that it waits for stays, and with it the variables.
        ConditionalSubscriptionIntent::Migrated => {
            if !state.tables.conditional_subscriptions.update(&entry, |row| row.value = value.clone()) {
                broken(state, format!("conditional subscription {key} is not there"));
            }
        }
        ConditionalSubscriptionIntent::Trigger | ConditionalSubscriptionIntent::Evaluate => {
            not_an_event(state, intent.name());
        }
    }
}

fn remove(state: &mut State, entry: (i64, i64), value: &ConditionalSubscriptionValue) {
    let (owner, key) = entry;
    if !state.tables.conditional_subscriptions.contains(&entry) {
        return broken(state, format!("conditional subscription {key} is not there"));
    }
    state.tables.conditional_subscriptions.delete(&entry);
    if value.element_instance_key.is_none() {
        return state.tables.conditional_start_events.delete(&(value.tenant_id.shared().clone(), key));
    }
    let process_instance = value.process_instance_key.raw();
    for name in watched_names(value) {
        state.tables.conditional_variables.delete(&(process_instance, name, owner, key));
    }
    state.tables.conditional_scopes.delete(&(process_instance, owner, key));
    if !take_one(&mut state.tables.conditional_counts, &process_instance) {
        broken(state, format!("conditional subscription {key} was not counted"));
    }
}
