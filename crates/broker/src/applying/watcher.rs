//! Names commands that take long while they still run. Whoever waits for one of them learns what it is, also when it never ends.
//!
//! It reads the notes of what is being applied, so that nothing is added to what each command costs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::PartitionId;

use super::Applying;
use super::memory::Memory;

/// A command that takes longer is named; again whenever it has taken twice as long.
const NAMED_AFTER: Duration = Duration::from_secs(1);

/// The notes of all partitions of a node.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<BTreeMap<PartitionId, Arc<Memory>>>);

impl Notes {
    pub fn add(&self, partition: PartitionId, note: Arc<Memory>) {
        self.0.lock().insert(partition, note);
    }
}

/// What a partition has been applying for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LongCommand {
    pub partition: PartitionId,
    pub applying: Applying,
    /// How long it has been seen.
    pub seen_for: Duration,
}

/// What was applied at the last look, since when it has been seen, and how long it may take before it is named next.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The index of the entry and the number of the command.
    at: (u64, u64),
    since: Instant,
    named_after: Duration,
}

/// Looks at the notes from time to time.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    seen: BTreeMap<PartitionId, Seen>,
}

impl Watcher {
    /// The commands that were there at a look so long ago already, and still are.
    pub fn lasting(&mut self, notes: &Notes, now: Instant, at_least: Duration) -> Vec<LongCommand> {
        self.look(notes, now);
        let notes = notes.0.lock();
        let lasting = self.seen.iter().filter_map(|(partition, seen)| {
            let seen_for = now.duration_since(seen.since);
            let applying = notes.get(partition).filter(|_| seen_for >= at_least)?.current()?;
            Some(LongCommand { partition: *partition, applying, seen_for })
        });
        lasting.collect()
    }

    /// The commands that are to be named now.
    pub fn due(&mut self, notes: &Notes, now: Instant) -> Vec<LongCommand> {
        let mut lasting = self.lasting(notes, now, NAMED_AFTER);
        lasting.retain(|long| {
            let Some(seen) = self.seen.get_mut(&long.partition) else { return false };
            let is_due = long.seen_for >= seen.named_after;
            if is_due {
                seen.named_after = long.seen_for.saturating_mul(2);
            }
            is_due
        });
        lasting
    }

    /// Names in the log what takes long.
    pub fn name(&mut self, notes: &Notes, now: Instant) {
        for LongCommand { partition, applying, seen_for } in self.due(notes, now) {
            tracing::warn!(
                %partition, index = applying.index, number = applying.number, command = applying.command,
                key = applying.key.raw(), process_instance = applying.process_instance.raw(),
                seconds = seen_for.as_secs(),
                "a command takes long and is still being applied: {applying}; all others of the partition wait for it"
            );
        }
    }

    fn look(&mut self, notes: &Notes, now: Instant) {
        for (partition, note) in &*notes.0.lock() {
            let Some(at) = note.place() else {
                self.seen.remove(partition);
                continue;
            };
            if self.seen.get(partition).is_none_or(|seen| seen.at != at) {
                self.seen.insert(*partition, Seen { at, since: now, named_after: NAMED_AFTER });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Command, Key, Payload, WorkIntent};

    use super::super::{ApplyingNote, FILE_NAME};
    use super::*;

    #[test]
    fn a_command_is_named_while_it_runs_and_less_and_less_often() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let partition = PartitionId(2);
        let note = ApplyingNote::open(&directory.path().join(FILE_NAME), partition).expect("a directory");
        let (notes, mut watcher) = (Notes::default(), Watcher::default());
        notes.add(partition, note.memory());
        let command = Command::of_system(Key::NONE, Payload::Work(WorkIntent::Continue, Box::default()));
        let begin = Instant::now();
        let mut named_at = |milliseconds: u64| {
            let named = watcher.due(&notes, begin + Duration::from_millis(milliseconds));
            named.into_iter().map(|long| long.applying.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named_at(0), Vec::<String>::new(), "nothing is being applied");
        note.command(7, 3, 5, &command, Key::NONE);
        let expected = ["command 3 of 5 in entry 7 of the log"];
        assert_eq!((named_at(500).len(), named_at(1_400).len()), (0, 0), "it has not been seen for long");
        assert_eq!(named_at(1_600), expected);
        assert_eq!(named_at(2_000), Vec::<String>::new(), "that was said");
        assert_eq!(named_at(3_600), expected, "it has taken twice as long");
        note.command(7, 4, 5, &command, Key::NONE);
        assert_eq!(named_at(5_000), Vec::<String>::new(), "the next one has only begun");
        note.command(7, 4, 5, &command, Key::NONE);
        assert_eq!(named_at(6_100), ["command 4 of 5 in entry 7 of the log"]);
    }
}
