//! Events of timers.

use protocol::{Key, TimerIntent, TimerValue};

use crate::state::{State, TimerRow};

pub(super) fn apply(state: &mut State, key: Key, intent: TimerIntent, value: &TimerValue) {
    let waiting = value.element_instance_key;
    let owner = if waiting.is_some() { waiting } else { value.process_definition_key }.raw();
    let place = (value.due_date, key.raw());
    match intent {
        TimerIntent::Created => {
            state.tables.timers.insert_new(key.raw(), TimerRow { value: value.clone() });
            state.tables.timers_by_owner.insert_new((owner, key.raw()), ());
            state.tables.due_timers.insert((), place, ());
            state.counters.timers += 1;
            if state.element_instance(waiting).is_some_and(|instance| !instance.has_subscriptions) {
                state.tables.element_instances.update(&owner, |instance| instance.has_subscriptions = true);
            }
        }
        TimerIntent::Triggered | TimerIntent::Canceled => {
            state.tables.timers.delete(&key.raw());
            state.tables.timers_by_owner.delete(&(owner, key.raw()));
            state.tables.due_timers.remove(&(), &place);
            state.counters.timers -= 1;
        }
        TimerIntent::Migrated => state.tables.timers.put(key.raw(), TimerRow { value: value.clone() }),
        TimerIntent::Trigger | TimerIntent::Cancel => {}
    }
}
