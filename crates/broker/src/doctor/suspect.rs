//! The entry at which the process ended.

use engine::{Decision, Output, Subject, Watch};
use protocol::{Command, CommandBatch, Key, PartitionId, Timestamp};
use replication::{LogStore, RaftEngineLog, reading};

use super::Patient;
use crate::applying::{Applying, Ended, RefusedCommand, RefusedCommands, decide, describe};
use crate::replication_loop::group_of;

/// Bytes of the log to read at a time.
const READ_BYTES: u64 = 16 << 20;

/// What is known about an entry at which the process ended.
#[derive(Debug)]
pub struct Suspect {
    /// What was noted.
    pub ended: Ended,
    /// What it was, in words.
    pub description: String,
    /// Whether the next start leaves the partition out.
    pub is_left_out: bool,
    /// Whether the next start refuses it.
    pub is_refused: bool,
    /// The entry in the log; the error says why it cannot be read.
    pub entry: Result<Entry, String>,
}

/// An entry, and the command of it that was being applied.
#[derive(Debug)]
pub struct Entry {
    /// The Raft term in which it was proposed.
    pub term: u64,
    /// Its size in bytes.
    pub bytes: usize,
    /// CRC-32 of its content.
    pub checksum: u32,
    /// When its commands happen, in milliseconds since 1970; none when the entry was not decoded.
    pub timestamp: Option<Timestamp>,
    /// The command; none when the process ended while it read the entry.
    pub command: Option<CommandReport>,
    /// What the command is about.
    pub subject: Subject,
}

/// A command, decoded.
#[derive(Debug)]
pub struct CommandReport {
    /// Its value type in the record schema.
    pub value_type: &'static str,
    /// Its intent in the record schema.
    pub intent: &'static str,
    /// The entity that it is about; none when it makes one.
    pub key: Option<i64>,
    /// Its value as JSON, as exporters would see it.
    pub value: String,
}

impl CommandReport {
    fn of(command: &Command) -> Self {
        let value = serde_json::to_string(&command.payload);
        CommandReport {
            value_type: command.payload.value_type().name(),
            intent: command.payload.intent_name(),
            key: command.key.is_some().then(|| command.key.raw()),
            value: value.unwrap_or_else(|error| format!("(it cannot be written as JSON: {error})")),
        }
    }
}

/// One entry of the log.
pub(super) fn read_entry(
    log: &impl LogStore,
    partition: PartitionId,
    index: u64,
) -> Result<replication::Entry, String> {
    let end = index.checked_add(1).ok_or("there is no such index")?;
    let (mut entries, _) =
        reading::proposed(log, group_of(partition), index, end, 0).map_err(|error| error.to_string())?;
    entries.pop().ok_or_else(|| {
        format!("entry {index} of partition {partition} holds no commands, it is one of Raft's own; check the index")
    })
}

impl Patient {
    pub(super) fn suspect(&self, partition: PartitionId, ended: Ended, refused: Option<&RefusedCommands>) -> Suspect {
        let index = ended.applying.index;
        let applied = self.engine(partition).ok().flatten().map_or(0, |engine| engine.applied());
        let entry = self.entry(partition, &ended.applying, applied);
        let named = refused.into_iter().flat_map(|refused| refused.all());
        let subject = entry.as_ref().map(|entry| entry.subject.clone()).unwrap_or_default();
        Suspect {
            description: describe(&ended.applying, &subject),
            is_left_out: ended.is_poisoned() && index > applied,
            is_refused: named
                .filter(|refused| refused.index == index)
                .any(|refused| refused.is_about(ended.applying.number)),
            entry,
            ended,
        }
    }

    fn entry(&self, partition: PartitionId, applying: &Applying, applied: u64) -> Result<Entry, String> {
        let log = self.log()?.ok_or("there is no log")?;
        if applying.index <= applied {
            return Err(format!("entry {} is part of the state already", applying.index));
        }
        let entry = read_entry(log, partition, applying.index)?;
        let content = &entry.data;
        let mut report = Entry {
            term: entry.term,
            bytes: content.len(),
            checksum: crc32fast::hash(content),
            timestamp: None,
            command: None,
            subject: Subject::default(),
        };
        // An entry that ended the process while it was read would end this one too.
        if let Some(at) = (applying.number as usize).checked_sub(1) {
            let mut batch = protocol::decode_batch(content).map_err(|error| error.to_string())?;
            report.timestamp = Some(batch.timestamp);
            if at < batch.commands.len() {
                let command = batch.commands.swap_remove(at);
                report.subject = self.subject(log, partition, applying, &command)?;
                report.command = Some(CommandReport::of(&command));
            }
        }
        Ok(report)
    }

    /// What a command is about in the state right before it: everything up to there is applied in memory. That has worked
    /// before, or the process would have ended earlier.
    fn subject(
        &self,
        log: &RaftEngineLog,
        partition: PartitionId,
        applying: &Applying,
        command: &Command,
    ) -> Result<Subject, String> {
        let Some(mut engine) = self.engine(partition)? else { return Ok(Subject::default()) };
        let before = engine.subject(command);
        if before.process_instance.is_some() || command.key == Key::NONE {
            return Ok(before);
        }
        let refused = RefusedCommands::read(&self.paths().refused(partition), partition).unwrap_or_default();
        let mut output = Output::default();
        let (mut from, end) = (engine.applied() + 1, applying.index.saturating_add(1));
        while from < end {
            let read = reading::proposed(log, group_of(partition), from, end, READ_BYTES);
            let (entries, next) = read.map_err(|error| error.to_string())?;
            for entry in entries {
                let batch = protocol::decode_batch(&entry.data).map_err(|error| error.to_string())?;
                let batch = before_suspect(batch, entry.index, applying);
                let mut watch = Replaying { refused: refused.of(entry.index, &entry.data) };
                let applied = engine.apply_watched(entry.index, &batch, &mut watch, &mut output);
                applied.map_err(|fault| fault.to_string())?;
                output.clear();
            }
            from = next;
        }
        Ok(engine.subject(command))
    }
}

/// The commands before the one in question.
fn before_suspect(mut batch: CommandBatch, index: u64, applying: &Applying) -> CommandBatch {
    if index == applying.index {
        batch.commands.truncate((applying.number as usize).saturating_sub(1));
    }
    batch
}

/// Refuses what the node refuses, and notes nothing.
struct Replaying<'a> {
    refused: &'a [RefusedCommand],
}

impl Watch for Replaying<'_> {
    fn before(&mut self, number: u32, _command: &Command, _process_instance: Key) -> Decision<'_> {
        decide(self.refused, number)
    }
}
