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
                return super::change::broken(state, format!("work {} is not in the queue", value.sequence));
            }
            state.tables.work.delete(&value.sequence);
            state.owners_of_work.dequeued(value.sequence);
            super::change::count_down(state, "work", 1, |counters| &mut counters.work_entries);
        }
        WorkIntent::Abandoned => {
            value.commands.iter().for_each(|command| abandoned(state, &command.payload, command.key))
        }
        WorkIntent::Continue => super::change::not_an_event(state, intent.name()),
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

#[cfg(test)]
mod tests {
    use protocol::PartitionId;

    use super::*;
    use crate::state::{Counters, FeatureLevel, Tables};

    fn enqueue(state: &mut State, process_instance_key: Key) {
        let sequence = state.counters.work_in + 1;
        apply(state, WorkIntent::Enqueued, &WorkValue { sequence, process_instance_key, ..WorkValue::default() });
    }

    #[test]
    fn entries_of_an_instance_are_counted_as_they_come_and_go() {
        let directory = tempfile::tempdir().unwrap();
        let store = ::state::Store::open(directory.path(), &::state::StoreOptions::default()).unwrap();
        let counters = Counters::new(FeatureLevel::NEWEST);
        let mut state = State::new(Tables::open(&store), counters, PartitionId(1));
        let [one, other] = [1, 2].map(|number| Key::new(PartitionId(1), number));
        let counts = |state: &State| (state.entries_of_work(one).len(), state.entries_of_work(other).len());
        for commits in [false, true, false, true] {
            let before = counts(&state);
            state.begin();
            [one, other, one].into_iter().for_each(|instance| enqueue(&mut state, instance));
            assert_eq!(counts(&state), (before.0 + 2, before.1 + 1));
            if commits {
                state.commit().unwrap();
                continue;
            }
            state.rollback();
            assert_eq!(counts(&state), before);
            // The numbers are given again, to others.
            state.begin();
            enqueue(&mut state, other);
            assert_eq!(counts(&state), (before.0, before.1 + 1));
            state.rollback();
        }
        state.begin();
        apply(&mut state, WorkIntent::Dequeued, &WorkValue { sequence: 1, ..WorkValue::default() });
        assert_eq!(counts(&state), (3, 2));
        state.rollback();
        assert_eq!(counts(&state), (4, 2));
        // As after a start.
        state.owners_of_work = Default::default();
        assert_eq!(counts(&state), (4, 2));
    }
}
