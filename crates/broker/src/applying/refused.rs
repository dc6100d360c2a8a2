//! Commands that an operator had refused.
//!
//! The list decides what a batch results in, as the batch itself does. So it must be the same on every replica, it is kept as
//! long as an entry of it may be applied again, and a damaged one stops the start. It names an entry by its index and the
//! checksum of its content: another entry at the same place is none of its business.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use protocol::PartitionId;

use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::write_atomically;

const FIRST_LINE: &str = "osmia refused commands format 1";
/// The most that can be refused: each of them is a bug of the product.
pub(crate) const REFUSED_MAX: usize = 1_000;

/// What the rejection says. It is part of the records, so it is the same wherever the batch is applied.
pub(super) const REASON: &str =
    "an operator had it refused with 'osmia doctor', because the process ended while it was applied";

/// One command, or all of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCommand {
    /// Index of the entry in the partition's log.
    pub index: u64,
    /// CRC-32 of the entry's content.
    pub checksum: u32,
    /// Number of the command in the entry, from 1; none for all of them.
    pub number: Option<u32>,
}

impl fmt::Display for RefusedCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(formatter, "command {number} in entry {} of the log", self.index),
            None => write!(formatter, "all commands in entry {} of the log", self.index),
        }
    }
}

impl RefusedCommand {
    pub(crate) fn is_about(&self, number: u32) -> bool {
        self.number.is_none_or(|refused| refused == number)
    }
}

/// The list cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum RefusedError {
    /// It is damaged or of another version.
    #[error(
        "The list of refused commands of partition {partition}, {}, cannot be read: {problem}. Without it the partition \
         would process what was refused, so the node does not start: restore the file, or copy it from another replica \
         of the partition.", path.display()
    )]
    Unreadable {
        partition: PartitionId,
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    File(#[from] DataDirectoryError),
}

/// The list of one partition, in the order of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RefusedCommands(Vec<RefusedCommand>);

impl RefusedCommands {
    /// Reads the list; an absent file is an empty one.
    pub fn read(path: &Path, partition: PartitionId) -> Result<Self, RefusedError> {
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RefusedCommands::default()),
            Err(source) => {
                return Err(DataDirectoryError::Io { action: "read", path: path.to_owned(), source }.into());
            }
        };
        parse(&text).map_err(|problem| RefusedError::Unreadable { partition, path: path.to_owned(), problem })
    }

    /// Replaces the list durably.
    pub fn write(&self, path: &Path) -> Result<(), DataDirectoryError> {
        write_atomically(path, self.to_text().as_bytes())
    }

    /// Adds a command, and drops what is before `applied`, which is never applied again.
    pub fn add(&mut self, refused: RefusedCommand, applied: u64) {
        self.0.retain(|other| other.index > applied && *other != refused);
        self.0.push(refused);
        self.0.sort_by_key(|refused| (refused.index, refused.number));
    }

    pub fn all(&self) -> &[RefusedCommand] {
        &self.0
    }

    /// What is refused of an entry.
    #[inline]
    pub fn of(&self, index: u64, content: &[u8]) -> &[RefusedCommand] {
        if self.0.is_empty() { &[] } else { self.find(index, content) }
    }

    fn find(&self, index: u64, content: &[u8]) -> &[RefusedCommand] {
        let from = self.0.partition_point(|refused| refused.index < index);
        let to = self.0.partition_point(|refused| refused.index <= index);
        let found = &self.0[from..to];
        if found.is_empty() || found.iter().any(|refused| refused.checksum != crc32fast::hash(content)) {
            return &[];
        }
        found
    }

    fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        for RefusedCommand { index, checksum, number } in &self.0 {
            let command = number.map_or_else(|| "all".to_owned(), |number| number.to_string());
            text.push_str(&format!("entry {index} content {checksum:08x} command {command}\n"));
        }
        let checksum = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("checksum {checksum:08x}\n"));
        text
    }
}

fn parse(text: &str) -> Result<RefusedCommands, String> {
    let first = text.lines().next().unwrap_or_default();
    if first != FIRST_LINE {
        return Err(format!(
            "it begins with '{}' and not with '{FIRST_LINE}'",
            first.chars().take(60).collect::<String>()
        ));
    }
    let content = text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n'));
    let (content, last) = content.ok_or("it ends early")?;
    let checksum = crc32fast::hash(format!("{content}\n").as_bytes());
    if last != format!("checksum {checksum:08x}") {
        return Err("its checksum is wrong".to_owned());
    }
    let line = |line: &str| parse_line(line).ok_or_else(|| format!("the line '{line}' cannot be read"));
    content.lines().skip(1).map(line).collect::<Result<_, _>>().map(RefusedCommands)
}

fn parse_line(line: &str) -> Option<RefusedCommand> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["entry", index, "content", checksum, "command", command] = words[..] else { return None };
    Some(RefusedCommand {
        index: index.parse().ok()?,
        checksum: u32::from_str_radix(checksum, 16).ok()?,
        number: if command == "all" { None } else { Some(command.parse().ok()?) },
    })
}
