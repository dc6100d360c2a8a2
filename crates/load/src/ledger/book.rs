//! A ledger that is read again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::entry::{Entry, FIRST_LINE, Header, What};
use crate::error::LoadError;
use crate::model::Tag;

/// The creations and completions of one ledger that an audit holds in memory, about 200 bytes each with what three nodes
/// say of them.
const RECORDS_MAX: usize = 20_000_000;
/// A line has no more bytes.
const LINE_BYTES_MAX: usize = 1_024;

/// All that a ledger says.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub header: Header,
    pub creations: HashMap<Tag, Creation>,
    /// By the keys of the jobs.
    pub completions: HashMap<i64, Completion>,
    /// The time of the last entry, in milliseconds since the Unix epoch.
    pub last_at: u64,
}

/// A creation that was about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Creation {
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    pub outcome: Outcome,
}

/// A completion that was about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// When, in milliseconds since the Unix epoch; of the acknowledgement if there was one.
    pub at: u64,
    /// The key of the process instance.
    pub instance: i64,
    pub is_acknowledged: bool,
}

/// What became of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Refused,
    Unknown,
    /// With this key of the process instance.
    Acknowledged(i64),
}

impl Book {
    /// Reads a file. The last line may be torn, when the tool was killed.
    pub fn read(path: &Path) -> Result<Book, LoadError> {
        let wrong = |reason: String| LoadError::Ledger { path: path.to_owned(), reason };
        let failed = |error: std::io::Error| wrong(error.to_string());
        let mut reader = BufReader::new(File::open(path).map_err(failed)?);
        let (mut book, mut line, mut number) = (Book::default(), String::new(), 0_u64);
        loop {
            line.clear();
            let read = reader.read_line(&mut line).map_err(failed)?;
            let Some(text) = line.strip_suffix('\n') else {
                break;
            };
            number += 1;
            let is_known = match number {
                _ if read > LINE_BYTES_MAX => None,
                1 => (text == FIRST_LINE).then_some(()),
                _ => book.take(text),
            };
            is_known.ok_or_else(|| wrong(format!("line {number} is not one of a ledger of version 1")))?;
            if book.creations.len() + book.completions.len() > RECORDS_MAX {
                return Err(wrong(format!("it has more than {RECORDS_MAX} creations and completions")));
            }
        }
        if book.header.process_ids.is_empty() {
            return Err(wrong("it names no process".to_owned()));
        }
        Ok(book)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        match Entry::read(line) {
            Some(entry) => self.add(entry),
            None => self.header.read(line),
        }
    }

    /// None when it is about something that was not intended before.
    pub fn add(&mut self, entry: Entry) -> Option<()> {
        let at = entry.at;
        self.last_at = self.last_at.max(at);
        match entry.what {
            What::Creating { tag, .. } => {
                let creation = Creation { at, outcome: Outcome::Unknown };
                // Each is sent once.
                return self.creations.insert(tag, creation).is_none().then_some(());
            }
            What::Created { tag, key } => self.creations.get_mut(&tag)?.outcome = Outcome::Acknowledged(key),
            What::NotCreated { tag, .. } => self.creations.get_mut(&tag)?.outcome = Outcome::Refused,
            What::MaybeCreated { tag, .. } => self.creations.get_mut(&tag)?.outcome = Outcome::Unknown,
            What::Completing { job, instance } => {
                // The same job may come again; what is known stays known.
                self.completions.entry(job).or_insert(Completion { at, instance, is_acknowledged: false });
            }
            What::Completed { job } => {
                let sent = self.completions.get_mut(&job)?;
                (sent.at, sent.is_acknowledged) = (at, true);
            }
            // A refusal of the second copy of a job says nothing of the first, and an acknowledgement stays.
            What::NotCompleted { job, .. } | What::MaybeCompleted { job, .. } => {
                self.completions.get_mut(&job)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "osmia-load-ledger 1\njob-type work\njob-timeout 5000\nprocess 0 one\n";

    fn read(lines: &str) -> Result<Book, LoadError> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), format!("{HEADER}{lines}")).expect("it is written");
        Book::read(file.path())
    }

    #[test]
    fn a_torn_last_line_is_an_intent_that_was_not_sent() {
        let book = read("5 + 0000000000000001 0\n6 + 00000000000").expect("a ledger");
        assert_eq!((book.creations.len(), book.last_at), (1, 5));
        let error = read("5 + 0000000000000001 0\n6 + 00000000000\n").expect_err("a wrong line").to_string();
        assert!(error.contains("line 6"), "{error}");
    }

    #[test]
    fn what_was_not_intended_has_no_outcome() {
        for lines in ["5 = 0000000000000001 7\n", "5 ) 7\n", "5 + 0000000000000001 0\n5 + 0000000000000001 0\n"] {
            assert!(read(lines).is_err(), "{lines}");
        }
    }

    #[test]
    fn an_acknowledged_completion_stays_so_when_its_job_came_twice() {
        let book =
            read("1 ( 7 8\n2 ~ 7 UNAVAILABLE\n3 ( 7 8\n4 ) 7\n5 ( 7 8\n6 ! 7 NOT_FOUND\n1 ( 9 8\n2 ! 9 NOT_FOUND\n");
        let book = book.expect("a ledger");
        assert_eq!(book.completions[&7], Completion { at: 4, instance: 8, is_acknowledged: true });
        assert!(!book.completions[&9].is_acknowledged);
    }
}
