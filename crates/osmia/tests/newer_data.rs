//! Data that a newer version has written: the node refuses it by name and leaves it to that version, and so does the doctor.

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Server, creation, deploy, one_task, program, start_fails};

/// Files that say who uses the directory, or a state in it.
const LOCKS: [&str; 2] = ["LOCK", "lock.mdb"];
/// What stands before the name of the writer in the header of a state file: format, oldest reader, length of the name.
const BEFORE_WRITER_BYTES: usize = 9;
/// Behind it: checksum, schema, its oldest reader, and the index of the log.
const BEFORE_COUNTERS_BYTES: usize = 20;
/// The place of the feature level among the counters, which are all numbers up to there.
const FEATURE_LEVEL: usize = 15;

/// All files of a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).expect("readable"))),
        }
    }
    found
}

fn assert_unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, data: &Path, what: &str) {
    let is_of_data = |path: &&PathBuf| !LOCKS.iter().any(|name| path.ends_with(name));
    let after = contents(data);
    for path in before.keys().chain(after.keys()).filter(is_of_data) {
        assert!(before.get(path) == after.get(path), "{what} changed {}", path.display());
    }
}

/// CRC-32, as the formats have it.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// The header record of a state, as it lies in the file.
struct StateHeader {
    bytes: Vec<u8>,
    /// Where the name of the writer ends.
    behind_writer: usize,
}

impl StateHeader {
    /// Changes all headers in a state file: the present one, and those of checkpoints before.
    fn change(file: &Path, change: impl Fn(&mut StateHeader)) {
        let mut content = std::fs::read(file).expect("a state");
        let writer = format!("osmia {}", env!("CARGO_PKG_VERSION"));
        let names = content.windows(writer.len()).enumerate().filter(|(_, window)| *window == writer.as_bytes());
        let names: Vec<usize> = names.map(|(at, _)| at).collect();
        assert!(!names.is_empty(), "{} has no header", file.display());
        for name in names {
            let begin = name - BEFORE_WRITER_BYTES;
            // The B-tree has two bytes with the length of the record, six others, and the key of one byte before it.
            let length = usize::from(u16::from_le_bytes([content[begin - 9], content[begin - 8]]));
            let behind_writer = BEFORE_WRITER_BYTES + writer.len();
            let mut header = StateHeader { bytes: content[begin..begin + length].to_vec(), behind_writer };
            assert_eq!(header.checksum(), header.number(behind_writer), "of the header at {begin}");
            change(&mut header);
            let sealed = header.checksum();
            header.put(behind_writer, sealed);
            content[begin..begin + length].copy_from_slice(&header.bytes);
        }
        std::fs::write(file, content).expect("writable");
    }

    /// Over the key of the record and everything behind the place of the checksum.
    fn checksum(&self) -> u32 {
        checksum(&[&[0], &self.bytes[self.behind_writer + 4..]].concat())
    }

    fn number(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn put(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// A format that programs of this one do not read.
    fn put_newer_format(&mut self) {
        let newer = self.number(0) + 1;
        self.put(0, newer);
        self.put(4, newer);
    }

    fn put_newer_schema(&mut self) {
        let newer = self.number(self.behind_writer + 4) + 1;
        self.put(self.behind_writer + 4, newer);
        self.put(self.behind_writer + 8, newer);
    }

    fn put_newer_level(&mut self) {
        let counters = &mut self.bytes[self.behind_writer + BEFORE_COUNTERS_BYTES..];
        // The head of the array, and numbers whose head says how many bytes follow.
        let mut at = if counters[0] == 0x98 { 2 } else { 1 };
        for _ in 0..FEATURE_LEVEL {
            at += match counters[at] & 0x1f {
                0..=23 => 1,
                24 => 2,
                25 => 3,
                26 => 5,
                _ => 9,
            };
        }
        assert_eq!(u32::from(counters[at]), newest_level(), "the level");
        counters[at] += 1;
    }
}

fn newest_level() -> u32 {
    engine::FeatureLevel::NEWEST.number()
}

/// Changes lines of the file `FORMAT`, and its checksum.
fn change_format_file(data: &Path, changes: &[(&str, &str)]) {
    let file = data.join("FORMAT");
    let text = std::fs::read_to_string(&file).expect("text");
    let mut lines = text.rsplit_once("checksum ").expect("the last line").0.to_owned();
    for (from, to) in changes {
        assert!(lines.contains(from), "'{from}' in {lines}");
        lines = lines.replace(from, to);
    }
    let sum = checksum(lines.as_bytes());
    std::fs::write(&file, format!("{lines}checksum {sum:08x}\n")).expect("writable");
}

/// Has a file say that it is of the next version, which this one cannot read: the two numbers behind its mark of eight bytes.
fn put_newer_version(file: &Path) {
    let mut content = std::fs::read(file).expect("there");
    for at in [8, 12] {
        let number = u32::from_le_bytes(content[at..at + 4].try_into().expect("four bytes"));
        content[at..at + 4].copy_from_slice(&(number + 1).to_le_bytes());
    }
    std::fs::write(file, content).expect("writable");
}

/// The last file of a directory by name.
fn last_file(directory: &Path, extension: &str) -> PathBuf {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("readable").path());
    entries.filter(|path| path.extension().is_some_and(|of| of == extension)).max().expect("a file")
}

fn append(file: &Path, bytes: &[u8]) {
    std::fs::File::options().append(true).open(file).expect("there").write_all(bytes).expect("writable");
}

/// Two partitions with checkpoints and records, and a record at the end of the first partition that a crash left half written: what
/// opens the records cuts it off.
async fn directory_with_data(data: &Path, configuration: &Path) {
    let server = Server::start(data, &["--partitions", "2", "--config", configuration.to_str().expect("text")]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "pay")).await;
    for _ in 0..2 {
        client.create_process_instance(creation("order", "{}")).await.expect("it is created");
    }
    assert_eq!(server.terminate(), Some(0));
    append(&last_file(&data.join("partitions/1/records"), "records"), &[200, 0, 0, 0, 1, 2, 3]);
}

/// What the doctor does with the log, whose end a crash left half written.
#[derive(PartialEq)]
enum Log {
    /// It is of the version of the state.
    LeftClosed,
    /// It is of this version, and opening it cuts off its end.
    Opened,
}

/// Starts a node and asks the doctor: both must say this, and leave everything as it is.
fn assert_refused(data: &Path, configuration: &Path, expected: &str, log: Log) {
    append(&last_file(&data.join("log/files"), "raftlog"), &[1, 2, 3]);
    let mut before = contents(data);
    let said = start_fails(data, &["--config", configuration.to_str().expect("text")]);
    assert!(said.contains(expected), "'{expected}' in: {said}");
    assert_unchanged(&before, data, "the start");
    let output = program().arg("doctor").arg("--data").arg(data).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "'{expected}' in: {said}");
    if log == Log::Opened {
        let (log, number) = (contents(&data.join("log")), before.len());
        before.retain(|path, content| log.get(path).is_none_or(|after| after == content));
        assert!(before.len() < number, "the end of the log was cut off");
        before.extend(log);
    }
    assert_unchanged(&before, data, "the doctor");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_newer_version_is_refused_by_name_and_left_as_it_is() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (data, configuration) = (directory.path().join("data"), directory.path().join("osmia.yaml"));
    let records = directory.path().join("records.jsonl");
    let exporters = format!("exporters:\n  debug:\n    type: json-lines\n    path: {}\n", records.display());
    std::fs::write(&configuration, exporters).expect("writable");
    directory_with_data(&data, &configuration).await;
    // The first partition is raised last: what opens it must not change anything before the second one is looked at.
    let state = data.join("partitions/2/state/data.mdb");
    let (kept_state, kept_format) =
        (std::fs::read(&state).expect("there"), std::fs::read(data.join("FORMAT")).expect("there"));
    let (level, newest) = (newest_level() + 1, newest_level());
    let unknown_level = format!(
        "Feature level {level} is not known: this build knows the levels up to {newest}. Use a build that knows it"
    );

    StateHeader::change(&state, StateHeader::put_newer_level);
    assert_refused(
        &data,
        &configuration,
        &format!("Partition 2 cannot go on with this build: {unknown_level}"),
        Log::LeftClosed,
    );
    std::fs::write(&state, &kept_state).expect("writable");

    let of_state = |what: &str| {
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "the state file {} has {what} 2, which takes a program that knows {what} 2 or a later one, and this program knows 1; \
             it was written by osmia {version}: start that version of the program or a newer one",
            state.display()
        )
    };
    StateHeader::change(&state, StateHeader::put_newer_format);
    assert_refused(&data, &configuration, &of_state("format"), Log::LeftClosed);
    std::fs::write(&state, &kept_state).expect("writable");
    StateHeader::change(&state, StateHeader::put_newer_schema);
    assert_refused(&data, &configuration, &of_state("schema"), Log::LeftClosed);
    std::fs::write(&state, &kept_state).expect("writable");

    change_format_file(&data, &[("format 1\n", "format 2\n"), ("oldest-reader 1\n", "oldest-reader 2\n")]);
    let found = format!("has format 2 of osmia {}, and this version understands format 1", env!("CARGO_PKG_VERSION"));
    assert_refused(&data, &configuration, &found, Log::LeftClosed);
    std::fs::write(data.join("FORMAT"), &kept_format).expect("writable");
    // As builds wrote it before format 1 was declared.
    change_format_file(&data, &[("data-format 1\n", "format 1\n"), ("draft 2\n", "")]);
    let found = format!(
        "The data directory {} has a line 'format' and none 'data-format', and this development build reads draft 2 of format 1 \
         alone. Nothing brings it over. Choose an empty directory as data directory.",
        data.display()
    );
    assert_refused(&data, &configuration, &found, Log::LeftClosed);
    std::fs::write(data.join("FORMAT"), &kept_format).expect("writable");
    change_format_file(&data, &[(&format!("feature-level {newest}\n"), &format!("feature-level {level}\n"))]);
    assert_refused(&data, &configuration, &unknown_level, Log::LeftClosed);
    std::fs::write(data.join("FORMAT"), &kept_format).expect("writable");

    let of_next = "its format is 2, which needs a version that reads 2 or newer, and this one reads 1";
    let in_the_way = [last_file(&data.join("partitions/2/records"), "records"), data.join("exporters/debug.positions")];
    for file in in_the_way {
        let kept = std::fs::read(&file).expect("there");
        put_newer_version(&file);
        assert_refused(&data, &configuration, of_next, Log::Opened);
        std::fs::write(&file, kept).expect("writable");
    }
    for (file, content, problem) in [
        ("RESTORED", "format 2\nincarnation 5\n", "its first line is 'format 2', and this version reads 'format 1'"),
        (
            "partitions/2/refused",
            "osmia refused commands format 2\n",
            "it begins with 'osmia refused commands format 2'",
        ),
    ] {
        let file = data.join(file);
        std::fs::write(&file, content).expect("writable");
        assert_refused(&data, &configuration, problem, Log::Opened);
        std::fs::remove_file(&file).expect("there");
    }

    let log_format = data.join("log/FORMAT");
    let kept = std::fs::read_to_string(&log_format).expect("text");
    std::fs::write(&log_format, kept.replace("format 1", "format 2")).expect("writable");
    assert_refused(&data, &configuration, "format 2", Log::LeftClosed);
    std::fs::write(&log_format, kept).expect("writable");
    // A mark, format and partition, and the checksum of both.
    let applying = data.join("partitions/2/applying");
    let kept = std::fs::read(&applying).expect("there");
    let mut newer = kept.clone();
    newer[8] += 1;
    let sum = checksum(&newer[..16]).to_le_bytes();
    newer[16..20].copy_from_slice(&sum);
    std::fs::write(&applying, newer).expect("writable");
    assert_refused(&data, &configuration, "a file 'applying' of format 2 of partition 2", Log::Opened);
    std::fs::write(&applying, kept).expect("writable");

    // As it was, it goes on.
    let server = Server::start(&data, &["--config", configuration.to_str().expect("text")]);
    let seen: Value = serde_json::from_str(&server.http("GET", "/actuator/health", "").1).expect("JSON");
    assert_eq!(seen["status"], "UP", "{seen:#}");
    assert_eq!(server.terminate(), Some(0));
}
