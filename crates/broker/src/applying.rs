//! What a partition is about to apply, noted where the end of the process cannot take it.
//!
//! A command is in the log before it is applied. One that ends the process (an overflow of the stack, exhausted memory)
//! would therefore end it again at every start, with all its partitions. So the processing thread notes each command
//! before it is applied in a file that is mapped into memory: plain stores, without a call of the system, that survive the
//! process because the page belongs to the file. (A power loss may take them, but no command causes one.) The next start
//! reads there which entry ended the process, and counts; the third time in a row the partition is left out.
//!
//! A command that takes very long is as bad: whoever waits for the node kills it, and the next start meets the command again. So a
//! command that was slow counts like one that ended the process, until a checkpoint holds what it did.
//!
//! A command that panics does not count: the engine catches that and bans its instance.

mod memory;
#[cfg(debug_assertions)]
mod planted;
mod refused;
mod times;
mod watcher;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::{Decision, Engine, Subject, Watch};
use protocol::{Command, Key, PartitionId};
use replication::{LogStore, reading};

use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::paths::Paths;
use crate::replication_loop::group_of;

use memory::{Memory, NOTE_WORDS};

pub(crate) use refused::{REFUSED_MAX, RefusedCommands};
pub use refused::{RefusedCommand, RefusedError};
pub(crate) use times::CommandTimes;
pub(crate) use watcher::{LongCommand, Notes, Watcher};

/// A partition is left out when the process has ended so often in a row at the same entry. A process that is killed from
/// outside, and killed again while it recovers, may twice have been at the same entry by chance.
pub(crate) const ENDS_MAX: u32 = 3;
/// The name of the file in the partition's directory.
pub(crate) const FILE_NAME: &str = "applying";

/// What was being applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applying {
    /// Index of the entry in the partition's log.
    pub index: u64,
    /// Number of the command in the entry, from 1; 0 while the entry was read and no command had begun.
    pub number: u32,
    /// How many commands the entry has; 0 while it was read.
    pub commands: u32,
    /// The entity that the command is about.
    pub key: Key,
    /// The process instance that the command names; none when it names none.
    pub process_instance: Key,
    /// Value type and intent of the command, as in the record schema; empty while the entry was read.
    pub command: String,
}

impl fmt::Display for Applying {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.number == 0 {
            return write!(formatter, "entry {} of the log", self.index);
        }
        write!(formatter, "command {} of {} in entry {} of the log", self.number, self.commands, self.index)
    }
}

/// The process ended while something was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What it was, the last time.
    pub applying: Applying,
    /// How often in a row it was this entry.
    pub times: u32,
}

impl Ended {
    /// Whether the next start leaves the partition out.
    pub fn is_poisoned(&self) -> bool {
        self.times >= ENDS_MAX
    }
}

/// The note of one partition, open for writing.
#[derive(Debug)]
pub(crate) struct ApplyingNote {
    memory: Arc<Memory>,
    ended: Option<Ended>,
    /// Whether that entry was applied since the start, but slowly.
    was_slow: bool,
}

impl ApplyingNote {
    /// Opens the note of a partition and counts the end of the process that it reports, if any.
    ///
    /// A note that a power loss left damaged is dropped: all that is lost is that the last process ended. One of another
    /// version is refused by name.
    pub fn open(path: &Path, partition: PartitionId) -> Result<Self, DataDirectoryError> {
        let memory = Arc::new(Memory::open(path, partition)?);
        let ended = memory.ended();
        memory.keep(ended.as_ref());
        memory.clear();
        Ok(ApplyingNote { memory, ended, was_slow: false })
    }

    /// What those read who watch what is being applied.
    pub fn memory(&self) -> Arc<Memory> {
        self.memory.clone()
    }

    /// At which entry the process ended, if nothing has been applied beyond it since.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// An entry is read, to be applied.
    #[inline]
    pub fn begin(&self, index: u64) {
        self.memory.note(index, &[0; NOTE_WORDS - 2]);
    }

    /// Everything up to an entry is applied.
    #[inline]
    pub fn applied(&mut self, index: u64) {
        self.memory.clear();
        if !self.was_slow && self.ended.as_ref().is_some_and(|ended| ended.applying.index <= index) {
            self.forget();
        }
    }

    /// A command took so long that whoever waits for the node may kill it before a checkpoint holds what it did. The first of such
    /// commands is kept: the next start meets it first. But an entry that ended the process and is still to be applied keeps
    /// its count. Otherwise each start would replace the one by the other, and neither would reach [`ENDS_MAX`].
    #[cold]
    pub fn slow(&mut self, applying: Applying) {
        let is_end_ahead = self.ended.as_ref().is_some_and(|ended| ended.applying.index > applying.index);
        if self.was_slow || is_end_ahead {
            return;
        }
        self.was_slow = true;
        let before = self.ended.as_ref().filter(|ended| ended.applying.index == applying.index);
        let times = before.map_or(0, |ended| ended.times).saturating_add(1);
        self.ended = Some(Ended { applying, times });
        self.memory.keep(self.ended.as_ref());
    }

    /// A checkpoint holds everything up to an entry.
    pub fn checkpointed(&mut self, index: u64) {
        if self.was_slow && self.ended.as_ref().is_some_and(|ended| ended.applying.index <= index) {
            self.forget();
        }
    }

    /// The process went beyond the entry at which it had ended, or stops as it should.
    pub fn forget(&mut self) {
        self.was_slow = false;
        if self.ended.take().is_some() {
            self.memory.keep(None);
        }
    }

    fn command(&self, index: u64, number: u32, commands: u32, command: &Command, process_instance: Key) {
        let fields = memory::encode(number, commands, command, process_instance);
        self.memory.note(index, &fields);
    }
}

/// Reads a partition's note without changing it: at which entry the process ended, the next start's count included.
pub(crate) fn read(path: &Path, partition: PartitionId) -> Result<Option<Ended>, DataDirectoryError> {
    match std::fs::read(path) {
        Ok(bytes) => memory::read(&bytes, path, partition),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DataDirectoryError::Io { action: "read", path: path.to_owned(), source }),
    }
}

/// What lies between the log of a partition and its engine.
#[derive(Debug)]
pub(crate) struct Guard {
    pub note: ApplyingNote,
    pub refused: RefusedCommands,
    pub times: CommandTimes,
}

impl Guard {
    /// Looks on while an entry is applied.
    #[inline]
    pub fn watch(&self, index: u64, content: &[u8], commands: usize) -> Watching<'_> {
        let commands = u32::try_from(commands).unwrap_or(u32::MAX);
        let refused = self.refused.of(index, content);
        Watching { note: &self.note, refused, times: &self.times, index, commands }
    }

    /// Everything up to an entry is applied.
    #[inline]
    pub fn applied(&mut self, index: u64) {
        self.times.end();
        if let Some(slow) = self.times.take_slow() {
            self.note.slow(Applying { index, ..slow });
        }
        self.note.applied(index);
    }
}

/// Notes every command of an entry before it is processed, and has those refused that an operator named.
pub(crate) struct Watching<'a> {
    pub note: &'a ApplyingNote,
    /// The commands of this entry that are refused, most often none.
    pub refused: &'a [RefusedCommand],
    pub times: &'a CommandTimes,
    pub index: u64,
    pub commands: u32,
}

impl Watch for Watching<'_> {
    fn before(&mut self, number: u32, command: &Command, process_instance: Key) -> Decision<'_> {
        self.times.end();
        self.note.command(self.index, number, self.commands, command, process_instance);
        let decision = decide(self.refused, number);
        self.times.begin((number, self.commands), command, process_instance);
        #[cfg(debug_assertions)]
        if decision == Decision::Process {
            planted::strike(command);
        }
        decision
    }
}

/// Whether a command of an entry is processed, given what is refused of the entry.
#[inline]
pub(crate) fn decide(refused: &[RefusedCommand], number: u32) -> Decision<'static> {
    match refused.iter().any(|refused| refused.is_about(number)) {
        true => Decision::Refuse(refused::REASON),
        false => Decision::Process,
    }
}

/// What the process was doing when it ended, in words, with what else is known about the command.
pub(crate) fn describe(applying: &Applying, subject: &Subject) -> String {
    let mut about = Vec::new();
    if !applying.command.is_empty() {
        about.push(applying.command.clone());
    }
    if applying.key.is_some() {
        about.push(format!("key {}", applying.key));
    }
    let process_instance = subject.process_instance.or(Some(applying.process_instance).filter(|key| key.is_some()));
    about.extend(process_instance.map(|key| format!("process instance {key}")));
    about.extend(subject.bpmn_process_id.as_ref().map(|id| format!("process '{id}'")));
    if about.is_empty() { applying.to_string() } else { format!("{applying} ({})", about.join(", ")) }
}

/// The command that a note is about, read from the log.
pub(crate) fn noted_command(log: &impl LogStore, partition: PartitionId, applying: &Applying) -> Option<Command> {
    // An entry that ended the process while it was read is not read again.
    let at = usize::try_from(applying.number).ok()?.checked_sub(1)?;
    let (index, group) = (applying.index, group_of(partition));
    let (entries, _) = reading::proposed(log, group, index, index.checked_add(1)?, 0).ok()?;
    let mut batch = protocol::decode_batch(&entries.first()?.data).ok()?;
    (at < batch.commands.len()).then(|| batch.commands.swap_remove(at))
}

/// Why a partition is left out at the start; none when it is not.
pub(crate) fn reason_to_leave_out(
    log: &impl LogStore,
    paths: &Paths,
    partition: PartitionId,
    guard: &Guard,
    engine: &Engine,
) -> Option<String> {
    let ended = guard.note.ended().filter(|ended| ended.is_poisoned())?;
    let applying = &ended.applying;
    // Part of the state already: it is not applied again.
    if applying.index <= engine.applied() {
        return None;
    }
    let subject = noted_command(log, partition, applying).map(|command| engine.subject(&command)).unwrap_or_default();
    Some(format!(
        "The process ended {} times in a row while it applied {}, or soon after it had taken very long. {}",
        ended.times,
        describe(applying, &subject),
        advice(paths.directory(), partition, applying)
    ))
}

/// What an operator does about an entry that ends the process.
pub(crate) fn advice(directory: &Path, partition: PartitionId, applying: &Applying) -> String {
    let (directory, index) = (directory.display(), applying.index);
    let command = if applying.number == 0 { String::new() } else { format!(":{}", applying.number) };
    format!(
        "Stop the node, then look at it with 'osmia doctor --data {directory}', have it refused with \
         'osmia doctor --data {directory} --refuse {partition}:{index}{command}', or have it tried again with \
         'osmia doctor --data {directory} --retry {partition}'"
    )
}

#[cfg(test)]
mod tests;
