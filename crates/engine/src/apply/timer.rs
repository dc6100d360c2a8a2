//! Events of timers.

use protocol::{Key, TimerIntent, TimerValue};

use crate::state::{State, TimerRow};

pub(super) fn apply(state: &mut State, key: Key, intent: TimerIntent, value: &TimerValue) {
    let waiting = value.element_instance_key;
    let owner = if waiting.is_some() { waiting } else { value.process_definition_key }.raw();
    let due = (value.due_date, key.raw());
    match intent {
        TimerIntent::Created => {
            state.tables.timers.insert_new(key.raw(), TimerRow { value: value.clone() });
            state.tables.timers_by_owner.insert_new((owner, key.raw()), ());
            state.tables.due_timers.insert((), due, ());
            state.counters.timers += 1;
            if waiting.is_some() && state.element_instance(waiting).is_none_or(|waiting| !waiting.has_subscriptions) {
                super::change::change_element(state, owner, |instance| instance.has_subscriptions = true);
            }
        }
        TimerIntent::Triggered | TimerIntent::Canceled => {
            if !state.tables.timers.contains(&key.raw()) {
                return super::change::broken(state, format!("timer {key} is not there"));
            }
            state.tables.timers.delete(&key.raw());
            state.tables.timers_by_owner.delete(&(owner, key.raw()));
            state.tables.due_timers.remove(&(), &due);
            super::change::count_down(state, "timers", 1, |counters| &mut counters.timers);
        }
        TimerIntent::Migrated => {
            if !state.tables.timers.update(&key.raw(), |row| row.value = value.clone()) {
                super::change::broken(state, format!("timer {key} is not there"));
            }
        }
        TimerIntent::Trigger | TimerIntent::Cancel => super::change::not_an_event(state, intent.name()),
    }
}
