//! Events of interrupted work, and of what was due and is given up.

use protocol::{Key, Payload, WorkIntent, WorkValue};

use crate::state::{State, WorkRow, queue_of, still_due};

pub(super) fn apply(state: &mut State, intent: WorkIntent, value: &WorkValue) {
    match intent {
        WorkIntent::Enqueued => {
            let row = WorkRow {
                process_instance_key: value.process_instance_key,
                commands: value.commands.clone(),
                rounds: value.rounds,
                is_part: value.is_part,
            };
            state.tables.work.insert_new(value.sequence, row);
            state.owners_of_work.enqueued(value.sequence, value.process_instance_key);
            state.counters.work_in = value.sequence;
            state.counters.work_entries += 1;
        }
        WorkIntent::Dequeued => {
            if !state.tables.work.contains(&value.sequence) {
                return super::broken(state, format!("work {} is not in the queue", value.sequence));
            }
            state.tables.work.delete(&value.sequence);
            state.owners_of_work.dequeued(value.sequence);
            super::count_down(state, "work", 1, |counters| &mut counters.work_entries);
        }
        WorkIntent::Abandoned => {
            value.commands.iter().for_each(|command| abandoned(state, &command.payload, command.key))
        }
        WorkIntent::Continue => super::not_an_event(state, intent.name()),
    }
}

/// What was due is not due any more. What it was due for stays as it is, if it is there at all.
fn abandoned(state: &mut State, payload: &Payload, key: Key) {
    let entries = still_due(state, payload, key, state.counters.timestamp);
    let Some(queue) = queue_of(payload) else { return };
    for entry in entries {
        queue.of_mut(&mut state.tables).remove(&(), &entry);
    }
}
