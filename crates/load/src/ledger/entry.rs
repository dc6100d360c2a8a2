//! The lines of a ledger.
//!
//! ```text
//! osmia-load-ledger 1
//! job-type TYPE
//! job-timeout MILLISECONDS
//! process NUMBER ID
//! TIME + TAG NUMBER      an instance of process NUMBER is about to be created
//! TIME = TAG KEY         its creation was acknowledged
//! TIME - TAG CODE        it was refused
//! TIME ? TAG CODE        nobody knows whether it was done
//! TIME ( JOB KEY         the job of instance KEY is about to be completed
//! TIME ) JOB             its completion was acknowledged
//! TIME ! JOB CODE        it was refused
//! TIME ~ JOB CODE        nobody knows whether it was done
//! ```
//!
//! TIME is in milliseconds since the Unix epoch, TAG has sixteen hexadecimal digits, keys are decimal, and CODE is the
//! name of a gRPC status.

use std::fmt::{self, Write};
use std::time::Duration;

use tonic::Status;

use crate::link::has_unknown_outcome;
use crate::model::Tag;
use crate::schedule::unix_milliseconds;

/// The first line: what it is, and the version of the format.
pub(super) const FIRST_LINE: &str = "osmia-load-ledger 1";

/// Which run a ledger is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub job_type: String,
    /// How long a job is locked for its worker.
    pub job_timeout: Duration,
    /// The processes, by their numbers.
    pub process_ids: Vec<String>,
}

/// One line after the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// In milliseconds since the Unix epoch.
    pub at: u64,
    pub what: What,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Creating { tag: Tag, kind: usize },
    Created { tag: Tag, key: i64 },
    NotCreated { tag: Tag, code: String },
    MaybeCreated { tag: Tag, code: String },
    Completing { job: i64, instance: i64 },
    Completed { job: i64 },
    NotCompleted { job: i64, code: String },
    MaybeCompleted { job: i64, code: String },
}

impl What {
    /// The outcome of a creation.
    pub fn of_creation(tag: Tag, result: &Result<i64, Status>) -> What {
        match result {
            Ok(key) => What::Created { tag, key: *key },
            Err(status) if has_unknown_outcome(status.code()) => What::MaybeCreated { tag, code: code(status) },
            Err(status) => What::NotCreated { tag, code: code(status) },
        }
    }

    /// The outcome of a completion.
    pub fn of_completion(job: i64, result: &Result<(), Status>) -> What {
        match result {
            Ok(()) => What::Completed { job },
            Err(status) if has_unknown_outcome(status.code()) => What::MaybeCompleted { job, code: code(status) },
            Err(status) => What::NotCompleted { job, code: code(status) },
        }
    }
}

fn code(status: &Status) -> String {
    gateway_interface::code_name(status.code()).to_owned()
}

impl Header {
    pub(super) fn write_to(&self, text: &mut String) {
        push(text, format_args!("{FIRST_LINE}\njob-type {}\n", self.job_type));
        push(text, format_args!("job-timeout {}\n", self.job_timeout.as_millis()));
        for (number, id) in self.process_ids.iter().enumerate() {
            push(text, format_args!("process {number} {id}\n"));
        }
    }

    /// Reads a line into it; none when it is no line of a header.
    pub(super) fn read(&mut self, line: &str) -> Option<()> {
        match line.split_once(' ')? {
            ("job-type", job_type) => self.job_type = job_type.to_owned(),
            ("job-timeout", milliseconds) => self.job_timeout = Duration::from_millis(milliseconds.parse().ok()?),
            ("process", process) => {
                let (number, id) = process.split_once(' ')?;
                if number.parse() != Ok(self.process_ids.len()) {
                    return None;
                }
                self.process_ids.push(id.to_owned());
            }
            _ => return None,
        }
        Some(())
    }
}

impl Entry {
    /// An entry of this moment.
    pub fn now(what: What) -> Entry {
        Entry { at: unix_milliseconds(), what }
    }

    pub(super) fn write_to(&self, text: &mut String) {
        push(text, format_args!("{} ", self.at));
        match &self.what {
            What::Creating { tag, kind } => push(text, format_args!("+ {tag} {kind}\n")),
            What::Created { tag, key } => push(text, format_args!("= {tag} {key}\n")),
            What::NotCreated { tag, code } => push(text, format_args!("- {tag} {code}\n")),
            What::MaybeCreated { tag, code } => push(text, format_args!("? {tag} {code}\n")),
            What::Completing { job, instance } => push(text, format_args!("( {job} {instance}\n")),
            What::Completed { job } => push(text, format_args!(") {job}\n")),
            What::NotCompleted { job, code } => push(text, format_args!("! {job} {code}\n")),
            What::MaybeCompleted { job, code } => push(text, format_args!("~ {job} {code}\n")),
        }
    }

    /// None when it is no line of a ledger.
    pub(super) fn read(line: &str) -> Option<Entry> {
        let mut words = line.split(' ');
        let at = words.next()?.parse().ok()?;
        let (sign, subject) = (words.next()?, words.next()?);
        let object = words.next();
        if words.next().is_some() {
            return None;
        }
        let tag = || Tag::parse(subject);
        let job = || subject.parse::<i64>().ok();
        let code = || object.map(str::to_owned);
        let what = match sign {
            "+" => What::Creating { tag: tag()?, kind: object?.parse().ok()? },
            "=" => What::Created { tag: tag()?, key: object?.parse().ok()? },
            "-" => What::NotCreated { tag: tag()?, code: code()? },
            "?" => What::MaybeCreated { tag: tag()?, code: code()? },
            "(" => What::Completing { job: job()?, instance: object?.parse().ok()? },
            ")" if object.is_none() => What::Completed { job: job()? },
            "!" => What::NotCompleted { job: job()?, code: code()? },
            "~" => What::MaybeCompleted { job: job()?, code: code()? },
            _ => return None,
        };
        Some(Entry { at, what })
    }
}

fn push(text: &mut String, arguments: fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let (tag, code) = (Tag(0xfeed_0000_0000_0001), || "UNAVAILABLE".to_owned());
        for what in [
            What::Creating { tag, kind: 3 },
            What::Created { tag, key: 1 << 60 },
            What::NotCreated { tag, code: code() },
            What::MaybeCreated { tag, code: code() },
            What::Completing { job: 5, instance: 6 },
            What::Completed { job: 5 },
            What::NotCompleted { job: 5, code: code() },
            What::MaybeCompleted { job: 5, code: code() },
        ] {
            let entry = Entry { at: 1_764_399_139_123, what };
            let mut text = String::new();
            entry.write_to(&mut text);
            assert_eq!(Entry::read(text.strip_suffix('\n').expect("a line")), Some(entry), "{text}");
        }
        for line in ["", "5 + 1 2", "5 ) 7 8", "x ) 7", "5 * 7", "5 ( 7", "5 ( 7 8 9"] {
            assert_eq!(Entry::read(line), None, "{line}");
        }
    }
}
