//! Events of signals and their subscriptions.

use protocol::{Key, SignalIntent, SignalSubscriptionIntent, SignalSubscriptionValue};

use super::change::{broken, change_element, not_an_event};
use crate::state::{SignalSubscriptionRow, State};

pub(super) fn apply(state: &mut State, intent: SignalIntent) {
    match intent {
        // A signal is not kept: it reaches who waits now.
        SignalIntent::Broadcasted => {}
        SignalIntent::Broadcast => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_subscription(
    state: &mut State,
    key: Key,
    intent: SignalSubscriptionIntent,
    value: &SignalSubscriptionValue,
) {
    let waiting = value.catch_event_instance_key;
    let owner = if waiting.is_some() { waiting } else { value.process_definition_key }.raw();
    let entry = (owner, key.raw());
    let name = (value.tenant_id.shared().clone(), value.signal_name.shared().clone());
    match intent {
        SignalSubscriptionIntent::Created => {
            state.tables.signal_subscriptions.insert_new(entry, SignalSubscriptionRow { value: value.clone() });
            state.tables.signal_receivers.insert(name, key.raw(), owner);
            if waiting.is_some() {
                change_element(state, owner, |instance| instance.has_subscriptions = true);
            }
        }
        SignalSubscriptionIntent::Deleted => {
            if !state.tables.signal_subscriptions.contains(&entry) {
                return broken(state, format!("signal subscription {key} is not there"));
            }
            state.tables.signal_subscriptions.delete(&entry);
            state.tables.signal_receivers.remove(&name, &key.raw());
        }
        // The name that it waits for stays.
        SignalSubscriptionIntent::Migrated => {
            if !state.tables.signal_subscriptions.update(&entry, |row| row.value = value.clone()) {
                broken(state, format!("signal subscription {key} is not there"));
            }
        }
    }
}
