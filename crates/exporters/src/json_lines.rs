//! An exporter for debugging: one line of JSON per record.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use protocol::{PartitionId, Record};

use crate::{Context, Controller, Exporter, ExporterError};

/// From this size on, lines are written although more records follow.
const BUFFER_LIMIT_BYTES: usize = 256 << 10;
/// Lines are synced, and acknowledged, at most this often: they are visible to readers long before.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How many bytes from the end of an existing file are searched for the last complete line, at a time.
const SEARCH_BYTES: u64 = 64 << 10;

/// Appends every record as one line of JSON to the file named by the argument `path`.
///
/// Lines are written within moments, and acknowledged when they are synced to disk (about once a second, and when the node
/// stops). After a crash the lines since the last acknowledgement are written again; so they are after a failed sync, for
/// the system may have forgotten them and still answer the next sync without an error.
pub struct JsonLines {
    name: String,
    path: PathBuf,
    target: Option<Target>,
    /// After a failed sync: the length of the file up to which it is known to be on disk.
    trusted_bytes: Option<u64>,
    sync_file: fn(&File) -> std::io::Result<()>,
}

impl Default for JsonLines {
    fn default() -> Self {
        JsonLines {
            name: String::new(),
            path: PathBuf::new(),
            target: None,
            trusted_bytes: None,
            sync_file: File::sync_data,
        }
    }
}

struct Target {
    controller: Controller,
    file: File,
    /// Length of the file up to the last complete line.
    length: u64,
    /// Length of the file up to which it is on disk.
    synced_length: u64,
    lines: Vec<u8>,
    /// The last position of each partition in `lines` or written and not synced.
    unacknowledged: BTreeMap<PartitionId, u64>,
    last_sync: Instant,
}

impl JsonLines {
    fn error(&self, action: &str, source: std::io::Error) -> ExporterError {
        ExporterError::target(&self.name, format!("{action} {}", self.path.display()), source)
    }

    fn target(&mut self) -> &mut Target {
        self.target.as_mut().expect("an exporter is opened before it is used")
    }

    fn write(&mut self) -> Result<(), ExporterError> {
        self.target().write().map_err(|error| self.error("write to", error))
    }

    fn sync(&mut self) -> Result<(), ExporterError> {
        let sync_file = self.sync_file;
        let target = self.target();
        let Err(error) = target.sync(sync_file) else { return Ok(()) };
        self.trusted_bytes = Some(target.synced_length);
        self.target = None;
        Err(ExporterError::lost(&self.name, format!("sync {}", self.path.display()), error))
    }
}

impl Exporter for JsonLines {
    fn configure(&mut self, context: &mut Context) -> Result<(), ExporterError> {
        self.name.clone_from(&context.name);
        if let Some(unknown) = context.arguments.keys().find(|key| *key != "path") {
            let problem = "is not known; the only argument of this exporter is 'path'";
            return Err(ExporterError::argument(&self.name, unknown, problem));
        }
        let path = context.arguments.get("path").and_then(|path| path.as_str());
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            let problem = "must be text that names the file to which the records are appended";
            return Err(ExporterError::argument(&self.name, "path", problem));
        };
        self.path = PathBuf::from(path);
        Ok(())
    }

    fn open(&mut self, controller: Controller) -> Result<(), ExporterError> {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path);
        let mut file = opened.map_err(|error| self.error("open", error))?;
        let length = match self.trusted_bytes {
            Some(trusted) => file.set_len(trusted).map(|()| trusted).map_err(|error| self.error("truncate", error))?,
            None => complete_length(&mut file).map_err(|error| self.error("read", error))?,
        };
        self.trusted_bytes = None;
        // Also of a file that is there already: the process that made it may have ended before it synced the name.
        sync_name(&self.path).map_err(|error| self.error("sync the directory of", error))?;
        self.target = Some(Target {
            controller,
            file,
            length,
            // What an earlier life of the node left here without a sync, it has not acknowledged.
            synced_length: length,
            lines: Vec::new(),
            unacknowledged: BTreeMap::new(),
            last_sync: Instant::now(),
        });
        Ok(())
    }

    fn export(&mut self, partition: PartitionId, record: &Record) -> Result<(), ExporterError> {
        if self.target().lines.len() >= BUFFER_LIMIT_BYTES {
            // Before the record is taken: after an error it comes again.
            self.write()?;
        }
        let json = record.to_json(partition);
        let json = json.map_err(|error| {
            let action = format!("write record {} of partition {partition} as JSON", record.position);
            ExporterError::target(&self.name, action, error)
        })?;
        let target = self.target();
        target.lines.extend_from_slice(json.as_bytes());
        target.lines.push(b'\n');
        target.unacknowledged.insert(partition, record.position);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExporterError> {
        self.write()?;
        if self.target().last_sync.elapsed() >= SYNC_INTERVAL {
            self.sync()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExporterError> {
        if self.target.is_some() {
            self.write()?;
            self.sync()?;
        }
        self.target = None;
        Ok(())
    }
}

/// Makes the name of a file survive a power loss: lines in a file without a name are lost, however well they are synced.
fn sync_name(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

impl Target {
    fn write(&mut self) -> std::io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        // An earlier attempt may have left a part of the lines behind.
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(&self.lines)?;
        self.length += self.lines.len() as u64;
        self.lines.clear();
        Ok(())
    }

    fn sync(&mut self, sync_file: fn(&File) -> std::io::Result<()>) -> std::io::Result<()> {
        self.last_sync = Instant::now();
        if self.unacknowledged.is_empty() {
            return Ok(());
        }
        sync_file(&self.file)?;
        self.synced_length = self.length;
        for (partition, position) in std::mem::take(&mut self.unacknowledged) {
            self.controller.acknowledge(partition, position);
        }
        Ok(())
    }
}

/// The length of the file up to its last line break: a line that a crash cut off is written again.
fn complete_length(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(SEARCH_BYTES);
        block.clear();
        file.seek(SeekFrom::Start(start))?;
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::{Key, Payload, RecordType, VariableIntent, VariableValue};
    use serde_json::{Map, Value};

    use super::*;
    use crate::RecordFilter;

    const PARTITION: PartitionId = PartitionId(2);

    fn record(position: u64) -> Record {
        let value = VariableValue {
            name: "amount".into(),
            value: "12.5".into(),
            scope_key: Key::new(PARTITION, 1),
            process_instance_key: Key::new(PARTITION, 1),
            process_definition_key: Key::NONE,
            bpmn_process_id: "order".into(),
            tenant_id: protocol::DEFAULT_TENANT.into(),
        };
        Record {
            position,
            source_position: position - 1,
            key: Key::new(PARTITION, position),
            timestamp: 1_700_000_000_000,
            record_type: RecordType::Event,
            operation_reference: None,
            payload: Payload::Variable(VariableIntent::Created, Box::new(value)),
        }
    }

    fn opened(path: &Path, controller: &Controller) -> JsonLines {
        let arguments = Map::from_iter([("path".to_owned(), Value::from(path.to_str().expect("UTF-8")))]);
        let mut context =
            Context { name: "debug".to_owned(), arguments, filter: RecordFilter::default(), partition_count: 2 };
        let mut exporter = JsonLines::default();
        exporter.configure(&mut context).expect("the path is given");
        exporter.open(controller.clone()).expect("the directory exists");
        exporter
    }

    #[test]
    fn lines_are_visible_when_flushed_and_acknowledged_when_synced() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("records.jsonl");
        let controller = Controller::new([0, 0]);
        let mut exporter = opened(&path, &controller);
        exporter.export(PARTITION, &record(5)).expect("buffered");
        exporter.export(PARTITION, &record(7)).expect("buffered");
        exporter.flush().expect("written");
        let text = std::fs::read_to_string(&path).expect("written");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["position"], 7);
        assert_eq!(lines[1]["valueType"], "VARIABLE");
        assert_eq!(lines[1]["value"]["name"], "amount");
        assert_eq!(controller.acknowledged(PARTITION), 0, "not synced yet");
        exporter.close().expect("synced");
        assert_eq!(controller.acknowledged(PARTITION), 7);
        assert_eq!(controller.acknowledged(PartitionId(1)), 0);
    }

    #[test]
    fn after_a_failed_sync_nothing_counts_that_was_not_written_again() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("records.jsonl");
        let controller = Controller::new([0, 0]);
        let mut exporter = opened(&path, &controller);
        exporter.export(PARTITION, &record(5)).expect("buffered");
        exporter.close().expect("synced");
        exporter.open(controller.clone()).expect("there");
        exporter.sync_file = |_| Err(std::io::Error::other("the disk is gone"));
        exporter.export(PARTITION, &record(7)).expect("buffered");
        exporter.write().expect("written");
        let error = exporter.sync().expect_err("the disk is gone");
        assert!(error.is_loss(), "{error}");
        // What the system forgot is not there any more, although it answers the next sync without an error.
        let length = std::fs::metadata(&path).expect("there").len();
        let forgetful = File::options().write(true).open(&path).expect("there");
        std::os::unix::fs::FileExt::write_all_at(&forgetful, &[0; 20], length - 20).expect("writable");
        exporter.sync_file = File::sync_data;
        exporter.open(controller.clone()).expect("there");
        exporter.write().expect("nothing to write");
        exporter.sync().expect("nothing to sync");
        assert_eq!(controller.acknowledged(PARTITION), 5, "the other record is lost");
        exporter.export(PARTITION, &record(7)).expect("buffered");
        exporter.close().expect("synced");
        assert_eq!(controller.acknowledged(PARTITION), 7);
        let text = std::fs::read_to_string(&path).expect("written");
        let positions = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["position"].clone());
        assert_eq!(positions.collect::<Vec<_>>(), [5, 7]);
    }

    #[test]
    fn a_line_cut_off_by_a_crash_is_replaced() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("records.jsonl");
        std::fs::write(&path, "{\"position\":1}\n{\"posi").expect("written");
        let mut exporter = opened(&path, &Controller::new([0, 0]));
        exporter.export(PARTITION, &record(5)).expect("buffered");
        exporter.close().expect("written");
        let text = std::fs::read_to_string(&path).expect("written");
        assert!(text.starts_with("{\"position\":1}\n{\"position\":5,"), "{text}");
    }

    #[test]
    fn unknown_arguments_are_refused_by_name() {
        let arguments = Map::from_iter([("file".to_owned(), Value::from("x"))]);
        let filter = RecordFilter::default();
        let mut context = Context { name: "debug".to_owned(), arguments, filter, partition_count: 1 };
        let error = JsonLines::default().configure(&mut context).expect_err("'file' is unknown");
        assert_eq!(
            error.to_string(),
            "The argument 'file' of the exporter 'debug' is not known; the only argument of this exporter is 'path'"
        );
    }
}
