use std::fs::File;
use std::path::Path;

use protocol::{Key, Payload, Record, RecordSource, VariableIntent, VariableValue};
use serde_json::{Map, Value, json};

use super::*;
use crate::{Arguments, Kept, RecordFilter, Role};

const PARTITION: PartitionId = PartitionId(2);
const START: Duration = Duration::from_secs(1);

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
    let payload = Payload::Variable(VariableIntent::Created, Box::new(value));
    Record::event(position, 1_700_000_000_000, Key::new(PARTITION, position), payload)
}

fn configured(arguments: Value) -> Result<JsonLines, ExporterError> {
    let Value::Object(arguments) = arguments else { panic!("a mapping") };
    let arguments = Arguments::new("debug", arguments);
    let mut context =
        Context { name: "debug".to_owned(), arguments, filter: RecordFilter::default(), directory: "/nowhere".into() };
    let mut exporter = JsonLines::default();
    exporter.configure(&mut context).map(|()| exporter)
}

fn lines_of(path: &Path) -> JsonLines {
    configured(json!({ "path": path })).expect("the path is given")
}

/// The consumer of a partition, and what it acknowledges.
struct Sink {
    partition: PartitionId,
    exporter: Box<dyn PartitionExporter>,
    controller: Controller,
}

impl Sink {
    fn new(exporter: &JsonLines, partition: PartitionId) -> Sink {
        let controller = Controller::new(Kept::default(), || {});
        let mut sink = Sink { partition, exporter: exporter.partition(partition), controller };
        sink.open();
        sink
    }

    fn open(&mut self) {
        let (kept, _) = self.controller.kept();
        let opening = Opening {
            partition: self.partition,
            incarnation: 1,
            role: Role::Leader,
            acknowledged: kept.acknowledged,
            beginning: RecordPlace::default(),
            metadata: kept.metadata,
            controller: self.controller.clone(),
        };
        assert_eq!(self.exporter.open(opening).expect("the directory exists"), Resume::AsTheNodeSays);
    }

    fn export(&mut self, position: u64) {
        let source = RecordSource::new(self.partition);
        let delivery = Delivery { record: &record(position), source: &source };
        self.exporter.export(&delivery, START).expect("buffered");
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.exporter.flush(now)
    }

    fn acknowledged(&self) -> u64 {
        self.controller.acknowledged().position
    }
}

/// Partition and position of each line.
fn lines(path: &Path) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(path).expect("there");
    let place = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["partitionId"].as_u64().expect("a number"), line["position"].as_u64().expect("a number"))
    };
    text.lines().map(place).collect()
}

#[test]
fn lines_are_visible_when_flushed_and_acknowledged_when_their_time_has_come() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let exporter = lines_of(&path);
    let (mut one, mut other) = (Sink::new(&exporter, PARTITION), Sink::new(&exporter, PartitionId(7)));
    assert_eq!(one.exporter.flush_at(), None, "nothing to do");
    one.export(5);
    one.export(7);
    assert!(one.exporter.flush_at().is_some_and(|at| at <= START), "at once");
    one.flush(START).expect("written");
    assert_eq!(lines(&path), [(2, 5), (2, 7)]);
    assert_eq!(one.acknowledged(), 0, "not synced yet");
    other.export(1);
    other.flush(START + SYNC_INTERVAL / 2).expect("written");
    let due = START + SYNC_INTERVAL;
    assert_eq!((one.exporter.flush_at(), other.exporter.flush_at()), (Some(due), Some(due)), "one sync is for both");
    one.flush(due).expect("synced");
    assert_eq!((one.acknowledged(), other.acknowledged()), (7, 1));
    assert_eq!(one.exporter.flush_at(), None);
    other.flush(due).expect("nothing to do any more");
    assert_eq!(other.exporter.flush_at(), None);
    one.export(9);
    one.exporter.close(due).expect("synced");
    assert_eq!(one.acknowledged(), 9);
    let text = std::fs::read_to_string(&path).expect("written");
    let line: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&line["valueType"], &line["value"]["name"]), (&json!("VARIABLE"), &json!("amount")));
    assert_eq!((&line["incarnation"], &line["number"]), (&json!(1), &json!(5)));
}

#[test]
fn after_a_failed_sync_nothing_counts_that_was_not_written_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let exporter = lines_of(&path);
    let file = exporter.shared.clone().expect("one for all");
    let (mut one, mut other) = (Sink::new(&exporter, PARTITION), Sink::new(&exporter, PartitionId(7)));
    one.export(5);
    one.exporter.close(START).expect("synced");
    one.open();
    file.lock().sync_file = |_| Err(std::io::Error::other("the disk is gone"));
    one.export(7);
    other.export(1);
    other.flush(START).expect("written");
    one.flush(START).expect("written");
    let error = one.flush(START + SYNC_INTERVAL).expect_err("the disk is gone");
    assert!(error.is_loss(), "{error}");
    // What the system forgot is not there any more, although it answers the next sync without an error.
    let length = std::fs::metadata(&path).expect("there").len();
    let forgetful = File::options().write(true).open(&path).expect("there");
    std::os::unix::fs::FileExt::write_all_at(&forgetful, &[0; 20], length - 20).expect("writable");
    file.lock().sync_file = File::sync_data;
    one.open();
    assert_eq!(lines(&path), [(2, 5)], "the others are lost");
    let error = other.flush(START + SYNC_INTERVAL * 2).expect_err("its line is lost too");
    assert!(error.is_loss(), "{error}");
    one.exporter.close(START).expect("nothing to sync");
    assert_eq!((one.acknowledged(), other.acknowledged()), (5, 0));
    one.open();
    other.open();
    one.export(7);
    one.exporter.close(START).expect("synced");
    other.export(1);
    other.exporter.close(START).expect("synced");
    assert_eq!((one.acknowledged(), other.acknowledged()), (7, 1));
    assert_eq!(lines(&path), [(2, 5), (2, 7), (7, 1)]);
}

#[test]
fn a_line_cut_off_by_a_crash_is_replaced() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    std::fs::write(&path, "{\"position\":1,\"partitionId\":2}\n{\"posi").expect("written");
    let mut sink = Sink::new(&lines_of(&path), PARTITION);
    sink.export(5);
    sink.exporter.close(START).expect("written");
    assert_eq!(lines(&path), [(2, 1), (2, 5)]);
}

/// Wherever the write of a record ends, also of one with line breaks inside, the next start finds what is whole.
#[test]
fn a_record_cut_anywhere_is_replaced_and_none_before_it() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let whole = "{\"position\":1,\"partitionId\":2}\n";
    for last in [
        "{\"position\":3,\"partitionId\":2,\"value\":\"{\\\"position\\\":9}\"}\n",
        "{\"position\":3,\"partitionId\":2,\"value\":{\n \"a\": [\n1,\n2]\n}}\n",
    ] {
        for length in 1..=last.len() {
            for lost in ["", "\0\0\0\0"] {
                std::fs::write(&path, format!("{whole}{}{lost}", &last[..length])).expect("written");
                let mut sink = Sink::new(&lines_of(&path), PARTITION);
                sink.export(5);
                sink.exporter.close(START).expect("written");
                let kept = if length == last.len() { [whole, last].concat() } else { whole.to_owned() };
                let text = std::fs::read_to_string(&path).expect("there");
                let added = text.strip_prefix(&*kept).unwrap_or_else(|| panic!("cut at {length}: {text}"));
                assert!(added.starts_with("{\"position\":5,") && added.ends_with("}\n"), "cut at {length}: {added}");
            }
        }
    }
    // The last record is found however long it is, and wherever the pieces end in which it is searched.
    for length in (1 << 16) - 30..(1 << 16) + 30 {
        std::fs::write(&path, format!("{whole}{{\"position\":3,\"value\":\"{}", "x".repeat(length))).expect("written");
        drop(Sink::new(&lines_of(&path), PARTITION));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), whole, "{length}");
    }
}

#[test]
fn line_breaks_of_clients_make_no_lines_and_no_records() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let mut sink = Sink::new(&lines_of(&path), PARTITION);
    let forged = "{\"x\":\n{\"position\":1,\"partitionId\":9,\"valueType\":\"FORGED\"}\r\n}";
    let job = protocol::JobValue { variables: forged.into(), ..protocol::JobValue::default() };
    let payload = Payload::Job(protocol::JobIntent::Created, Arc::new(job));
    let record = Record::event(5, 1_700_000_000_000, Key::NONE, payload);
    let source = RecordSource::new(PARTITION);
    sink.exporter.export(&Delivery { record: &record, source: &source }, START).expect("buffered");
    sink.exporter.close(START).expect("synced");
    assert_eq!(lines(&path), [(2, 5)]);
}

#[test]
fn only_the_owner_reads_a_new_file_and_whoever_may_read_it_the_next_one() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let arguments = json!({ "path": path, "max-file-size": "64KB" });
    let mut sink = Sink::new(&configured(arguments).expect("right"), PARTITION);
    assert_eq!(mode(&path), 0o600);
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
    let full = directory.path().join("records.jsonl.1");
    for position in 1..10_000 {
        sink.export(position);
        sink.flush(START).expect("written");
        if full.exists() {
            break;
        }
    }
    assert_eq!((mode(&full), mode(&path)), (0o640, 0o640));
}

#[test]
fn the_end_of_a_file_that_is_not_of_records_is_left_alone() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("notes");
    let begun = ["", "{", "{\"position\":17", "{\"pos\0\0\0\0\0\0\0\0", "\0\0\0"];
    for rest in begun {
        std::fs::write(&path, format!("{{\"position\":1,\"partitionId\":2}}\n{rest}")).expect("written");
        let mut sink = Sink::new(&lines_of(&path), PARTITION);
        sink.export(5);
        sink.exporter.close(START).expect("written");
        assert_eq!(lines(&path), [(2, 1), (2, 5)], "after {rest:?}");
    }
    for foreign in ["milk, bread", "{\"position\":1}\n{\"name\":1}", "\n "] {
        std::fs::write(&path, foreign).expect("written");
        let error = LinesFile::new("debug", path.clone(), None).open(PARTITION).expect_err("not ours");
        let part = format!("'debug' could not write to {}: it is not a file of records", path.display());
        assert!(error.to_string().contains(&part) && error.to_string().ends_with("name another path"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), foreign);
    }
}

#[test]
fn a_full_file_gets_the_next_name_and_the_oldest_goes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let arguments = json!({ "path": path, "maxFileSize": "64KB", "max-files": 2 });
    let mut sink = Sink::new(&configured(arguments).expect("right"), PARTITION);
    let numbered = |number: u32| directory.path().join(format!("records.jsonl.{number}"));
    let mut position = 0;
    while !numbered(2).exists() || lines(&numbered(2))[0].1 == 1 {
        position += 1;
        sink.export(position);
        sink.flush(START).expect("written");
        assert!(position < 10_000, "it was never rotated");
    }
    assert!(!numbered(3).exists());
    sink.exporter.close(START).expect("synced");
    assert_eq!(sink.acknowledged(), position);
    let all: Vec<u64> =
        [numbered(2), numbered(1), path.clone()].iter().flat_map(|path| lines(path)).map(|(_, at)| at).collect();
    assert_eq!(all, (all[0]..=position).collect::<Vec<_>>(), "the newest, whole and in order");
    assert!(std::fs::metadata(numbered(1)).expect("there").len() >= 64 << 10);
    // A restart goes on in the newest file.
    let arguments = json!({ "path": path, "maxFileSize": "64KB", "max-files": 2 });
    let mut sink = Sink::new(&configured(arguments).expect("right"), PARTITION);
    sink.export(position + 1);
    sink.exporter.close(START).expect("synced");
    assert_eq!(lines(&path).last(), Some(&(2, position + 1)));
}

#[test]
fn partitions_have_files_of_their_own_if_the_path_says_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let exporter = lines_of(&directory.path().join("{partition}.jsonl"));
    for partition in [1, 2] {
        let mut sink = Sink::new(&exporter, PartitionId(partition));
        sink.export(5);
        sink.exporter.close(START).expect("synced");
        assert_eq!(lines(&directory.path().join(format!("{partition}.jsonl"))), [(u64::from(partition), 5)]);
    }
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    for (arguments, problem) in [
        (json!({ "path": "x", "file": "y" }), "'file' of the exporter 'debug' is not known; known are 'path'"),
        (json!({}), "'path' of the exporter 'debug' must be a text that names the file"),
        (json!({ "path": "x", "max-files": 3 }), "'max-files' of the exporter 'debug' counts for nothing without"),
        (
            json!({ "path": "x", "max-file-size": 10 }),
            "'max-file-size' of the exporter 'debug' must be at least 65536 bytes",
        ),
    ] {
        let error = configured(arguments).err().expect("wrong").to_string();
        assert!(error.contains(problem), "{error}");
    }
    let empty = Map::new();
    assert!(configured(Value::Object(empty)).is_err());
}
