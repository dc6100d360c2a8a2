//! The ledger of a run: a file that says what was intended and what was acknowledged, for an audit afterwards.
//!
//! An intent is on the disk before its request is sent. Whatever ends the tool, the server can hold nothing of this run
//! that the file does not name. Outcomes follow without a wait; one that is missing is unknown.

mod book;
mod entry;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tonic::Status;

use crate::error::LoadError;
use crate::figures::{Latencies, Quantiles};

pub(crate) use book::{Book, Creation, Outcome};
pub(crate) use entry::{Entry, Header, What};

/// Lines that wait for the writer; further senders wait too.
const WAITING_LINES_MAX: usize = 16_384;
/// Lines that are written and synced together.
const BATCH_LINES_MAX: usize = 8_192;

/// Where a run is written down. Clones write into the same file.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<Shared>);

struct Shared {
    path: PathBuf,
    lines: mpsc::Sender<Line>,
    /// Why nothing can be written any more.
    failure: watch::Receiver<Option<String>>,
    waits: Mutex<Latencies>,
}

enum Line {
    Header(Header),
    Entry(Entry),
    /// Is answered when all before is on the disk.
    Sync(oneshot::Sender<()>),
}

impl Ledger {
    /// Creates the file and starts its writer. A ledger holds one run, so the file must be new.
    pub fn create(path: &Path) -> Result<Self, LoadError> {
        let failed = |error: std::io::Error| LoadError::Ledger { path: path.to_owned(), reason: error.to_string() };
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(failed)?;
        let (lines, to_write) = mpsc::channel(WAITING_LINES_MAX);
        let (failing, failure) = watch::channel(None);
        std::thread::Builder::new()
            .name("load-ledger".into())
            .spawn(move || {
                if let Err(error) = write(&file, to_write) {
                    // Nobody listens when the run has ended.
                    let _ = failing.send(Some(error.to_string()));
                }
            })
            .map_err(LoadError::Thread)?;
        let waits = Mutex::new(Latencies::new());
        Ok(Ledger(Arc::new(Shared { path: path.to_owned(), lines, failure, waits })))
    }

    /// Says which run it is. Comes before all else.
    pub async fn begin(&self, header: Header) {
        // A writer that has ended is found by what is intended next.
        let _ = self.0.lines.send(Line::Header(header)).await;
    }

    /// Writes down what is about to be sent, and returns when that is on the disk: how long it took.
    pub async fn intend(&self, what: What) -> Result<Duration, Status> {
        let start = Instant::now();
        let gone = || Status::failed_precondition("the ledger cannot be written, so the request was not sent");
        self.0.lines.send(Line::Entry(Entry::now(what))).await.map_err(|_| gone())?;
        self.sync().await.ok_or_else(gone)?;
        let waited = start.elapsed();
        self.0.waits.lock().expect("nothing that holds the latencies panics").record(waited);
        Ok(waited)
    }

    /// Writes down what became of it.
    pub async fn record(&self, what: What) {
        // Without it the outcome is unknown, and the run fails anyway.
        let _ = self.0.lines.send(Line::Entry(Entry::now(what))).await;
    }

    /// None when the writer has ended.
    async fn sync(&self) -> Option<()> {
        let (synced, wait) = oneshot::channel();
        self.0.lines.send(Line::Sync(synced)).await.ok()?;
        wait.await.ok()
    }

    /// Returns when the file cannot be written; else never.
    pub async fn failed(&self) -> LoadError {
        let mut failure = self.0.failure.clone();
        let reason = match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone(),
            Err(_) => std::future::pending().await,
        };
        LoadError::Ledger { path: self.0.path.clone(), reason: reason.unwrap_or_default() }
    }

    /// Waits until everything is on the disk.
    pub async fn finish(&self) -> Result<Quantiles, LoadError> {
        match self.sync().await {
            Some(()) => Ok(self.0.waits.lock().expect("nothing that holds the latencies panics").quantiles()),
            None => Err(self.failed().await),
        }
    }
}

/// Writes what there is, syncs it once for all who wait, and begins again.
fn write(mut file: &File, mut lines: mpsc::Receiver<Line>) -> std::io::Result<()> {
    let mut text = String::new();
    let mut waiting = Vec::new();
    while let Some(first) = lines.blocking_recv() {
        let mut next = Some(first);
        let mut count = 0;
        while let Some(line) = next {
            match line {
                Line::Header(header) => header.write_to(&mut text),
                Line::Entry(entry) => entry.write_to(&mut text),
                Line::Sync(synced) => waiting.push(synced),
            }
            count += 1;
            next = if count < BATCH_LINES_MAX { lines.try_recv().ok() } else { None };
        }
        file.write_all(text.as_bytes())?;
        text.clear();
        if !waiting.is_empty() {
            file.sync_data()?;
            // Who was dropped meanwhile does not wait.
            for synced in waiting.drain(..) {
                let _: Result<(), ()> = oneshot::Sender::send(synced, ());
            }
        }
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tag;

    fn header() -> Header {
        Header {
            job_type: "work".to_owned(),
            job_timeout: Duration::from_secs(60),
            process_ids: vec!["one".to_owned(), "two".to_owned()],
        }
    }

    #[tokio::test]
    async fn what_is_intended_is_in_the_file_before_it_is_sent() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger");
        let ledger = Ledger::create(&path).expect("a new file");
        ledger.begin(header()).await;
        for number in 1..=100 {
            ledger.intend(What::Creating { tag: Tag(number), kind: 1 }).await.expect("it is written");
            let book = Book::read(&path).expect("a ledger");
            assert_eq!(book.creations.len() as u64, number);
            assert_eq!(book.creations[&Tag(number)].outcome, Outcome::Unknown);
            let result = Ok(i64::try_from(number).expect("small"));
            ledger.record(What::of_creation(Tag(number), &result)).await;
        }
        let waits = ledger.finish().await.expect("it is written");
        assert_eq!(waits.count, 100);
        let book = Book::read(&path).expect("a ledger");
        assert_eq!(book.header, header());
        assert!(book.creations.iter().all(|(tag, found)| found.outcome == Outcome::Acknowledged(tag.0 as i64)));
        let error = Ledger::create(&path).err().expect("it is there already").to_string();
        assert!(error.contains("exists"), "{error}");
    }

    #[tokio::test]
    async fn nothing_is_sent_when_nothing_can_be_written() {
        // Whatever is written to it fails.
        let ledger = match OpenOptions::new().append(true).open("/dev/full") {
            Ok(file) => {
                let (lines, to_write) = mpsc::channel(WAITING_LINES_MAX);
                let (failing, failure) = watch::channel(None);
                std::thread::spawn(move || failing.send(write(&file, to_write).err().map(|error| error.to_string())));
                let waits = Mutex::new(Latencies::new());
                Ledger(Arc::new(Shared { path: "/dev/full".into(), lines, failure, waits }))
            }
            Err(error) => panic!("{error}"),
        };
        let refused = ledger.intend(What::Completing { job: 1, instance: 2 }).await.expect_err("the disk is full");
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
        let error = ledger.failed().await.to_string();
        assert!(error.contains("/dev/full") && error.contains("No space"), "{error}");
        assert!(ledger.finish().await.is_err());
    }
}
