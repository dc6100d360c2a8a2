//! An exporter for debugging: one line of JSON per record.

mod file;
mod tail;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::{PartitionId, RecordPlace};

use crate::{Context, Controller, Delivery, Exporter, ExporterError, Opening, PartitionExporter, Resume, WrittenFile};
use file::{LinesFile, Rotation};

/// From this size on, lines are written although more records follow.
const BUFFER_LIMIT_BYTES: usize = 256 << 10;
/// Lines are synced, and acknowledged, at most this often: they are visible to readers long before.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// In a path: gives each partition a file of its own.
const PARTITION_MARK: &str = "{partition}";
/// The smallest size at which files may be rotated.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// Files that may be kept.
const FILES_MAX: u64 = 10_000;
const KNOWN: &str =
    "'path', 'max-file-size', 'max-files', 'index', 'enabledRecordTypes', 'enabledValueTypes' and 'enabledIntents'";

/// Appends every record as one line of JSON to the file named by the argument `path`: lines of all partitions, or of one if
/// the path contains `{partition}`. With `max-file-size`, a file of that size gets the next name (`path.1`, the newest), and
/// the newest `max-files` (10) of those are kept.
///
/// Lines are written within moments, and acknowledged when they are synced to disk (about once a second, and when the node
/// stops). After a crash the lines since the last acknowledgement are written again; so they are after a failed sync, for
/// the system may have forgotten them and still answer the next sync without an error.
#[derive(Default)]
pub struct JsonLines {
    name: String,
    path: String,
    rotation: Option<Rotation>,
    /// Of all partitions, unless each has its own.
    shared: Option<Arc<Mutex<LinesFile>>>,
}

impl JsonLines {
    fn path_of(&self, partition: PartitionId) -> String {
        self.path.replace(PARTITION_MARK, &partition.to_string())
    }

    fn file(&self, path: &str) -> Arc<Mutex<LinesFile>> {
        Arc::new(Mutex::new(LinesFile::new(&self.name, PathBuf::from(path), self.rotation)))
    }
}

impl Exporter for JsonLines {
    fn configure(&mut self, context: &mut Context) -> Result<(), ExporterError> {
        self.name.clone_from(&context.name);
        let arguments = &mut context.arguments;
        let Some(path) = arguments.take_text("path")? else {
            let problem = "must be a text that names the file to which the records are appended";
            return Err(arguments.error("path", problem));
        };
        self.path = path;
        let file_bytes = arguments.take_bytes("max-file-size")?;
        let files = arguments.take_number("max-files", 1..=FILES_MAX)?;
        self.rotation = match (file_bytes, files) {
            (None, None) => None,
            (None, Some(_)) => return Err(arguments.error("max-files", "counts for nothing without 'max-file-size'")),
            (Some(file_bytes), files) if file_bytes >= FILE_BYTES_MIN => {
                Some(Rotation { file_bytes, files: files.unwrap_or(10) })
            }
            (Some(_), _) => {
                return Err(arguments.error("max-file-size", &format!("must be at least {FILE_BYTES_MIN} bytes")));
            }
        };
        std::mem::take(arguments).finish(KNOWN)?;
        if !self.path.contains(PARTITION_MARK) {
            self.shared = Some(self.file(&self.path));
        }
        Ok(())
    }

    fn files(&self, last: PartitionId) -> Vec<WrittenFile> {
        let numbered = self.rotation.map_or(0, |rotation| rotation.files);
        let written = |path: String| WrittenFile { argument: "path", path: path.into(), numbered };
        match &self.shared {
            Some(_) => vec![written(self.path.clone())],
            None => (1..=last.0).map(|partition| written(self.path_of(PartitionId(partition)))).collect(),
        }
    }

    fn partition(&self, partition: PartitionId) -> Box<dyn PartitionExporter> {
        let own = || self.file(&self.path_of(partition));
        let file = self.shared.clone().unwrap_or_else(own);
        Box::new(PartitionLines { name: self.name.clone(), partition, file, opened: None })
    }
}

/// The lines of one partition.
struct PartitionLines {
    name: String,
    partition: PartitionId,
    file: Arc<Mutex<LinesFile>>,
    opened: Option<Opened>,
}

struct Opened {
    controller: Controller,
    /// Which opening of the file it writes to.
    opening: u64,
    lines: Vec<u8>,
    /// The last record in `lines`.
    last: RecordPlace,
    /// When lines that are written are to be synced.
    sync_at: Option<Duration>,
}

impl PartitionLines {
    /// The lines that are kept back go into the file.
    fn write(&mut self, now: Duration) -> Result<(), ExporterError> {
        let opened = self.opened.as_mut().expect("an exporter is opened before it is used");
        let mut file = self.file.lock();
        file.check(opened.opening)?;
        if opened.lines.is_empty() {
            return Ok(());
        }
        file.append(&opened.lines)?;
        opened.lines.clear();
        file.note(self.partition, &opened.controller, opened.last);
        opened.sync_at = file.sync_at(self.partition, now);
        file.rotate_if_full()?;
        opened.sync_at = file.sync_at(self.partition, now);
        Ok(())
    }
}

impl PartitionExporter for PartitionLines {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        self.opened = None;
        let number = self.file.lock().open(self.partition)?;
        let controller = opening.controller;
        let last = opening.acknowledged;
        self.opened = Some(Opened { controller, opening: number, lines: Vec::new(), last, sync_at: None });
        Ok(Resume::AsTheNodeSays)
    }

    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError> {
        let opened = self.opened.as_mut().expect("an exporter is opened before it is used");
        if opened.lines.len() >= BUFFER_LIMIT_BYTES {
            // Before the record is taken: after an error it comes again.
            self.write(now)?;
        }
        let opened = self.opened.as_mut().expect("it stays open");
        let before = opened.lines.len();
        let Delivery { record, source } = delivery;
        record.write_json(source, &mut opened.lines).map_err(|error| {
            opened.lines.truncate(before);
            let action = format!("write record {} of partition {} as JSON", record.position, self.partition);
            ExporterError::target(&self.name, action, error)
        })?;
        opened.lines.push(b'\n');
        opened.last = delivery.place();
        Ok(())
    }

    fn flush_at(&self) -> Option<Duration> {
        let opened = self.opened.as_ref()?;
        // Readers see the lines as soon as nothing more follows at once.
        if opened.lines.is_empty() { opened.sync_at } else { Some(Duration::ZERO) }
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.write(now)?;
        let opened = self.opened.as_mut().expect("an exporter is opened before it is used");
        if opened.sync_at.is_some_and(|at| at <= now) {
            let mut file = self.file.lock();
            // Perhaps another partition did it meanwhile.
            if file.sync_at(self.partition, now).is_some_and(|at| at <= now) {
                file.sync()?;
            }
            opened.sync_at = file.sync_at(self.partition, now);
        }
        Ok(())
    }

    fn close(&mut self, now: Duration) -> Result<(), ExporterError> {
        if self.opened.is_some() {
            self.write(now)?;
            self.file.lock().sync()?;
        }
        self.opened = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
