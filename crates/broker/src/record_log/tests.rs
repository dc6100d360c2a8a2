use protocol::{Key, Payload, Record, RecordType, VariableIntent, VariableValue};

use std::fs::File;
use std::path::Path;

use super::format::HEADER_BYTES;
use super::*;

const PARTITION: PartitionId = PartitionId(3);

fn options(directory: &Path, segment_bytes: u64) -> RecordLogOptions {
    RecordLogOptions::for_test(PARTITION, directory, segment_bytes)
}

fn record(position: u64) -> Record {
    let value = VariableValue {
        name: "amount".into(),
        value: "12.5".into(),
        scope_key: Key::NONE,
        process_instance_key: Key::NONE,
        process_definition_key: Key::NONE,
        bpmn_process_id: "order".into(),
        tenant_id: protocol::DEFAULT_TENANT.into(),
    };
    Record {
        position,
        source_position: 1,
        key: Key::NONE,
        timestamp: 1,
        record_type: RecordType::Event,
        operation_reference: None,
        payload: Payload::Variable(VariableIntent::Created, Box::new(value)),
    }
}

fn write(writer: &mut RecordWriter, positions: impl IntoIterator<Item = u64>) {
    for position in positions {
        writer.append(&record(position));
    }
    writer.flush().expect("the disk has room");
}

fn read(log: &Arc<RecordLog>, after: u64) -> Vec<u64> {
    let mut reader = RecordReader::after(log.clone(), after);
    std::iter::from_fn(|| reader.next().expect("readable")).map(|record| record.position).collect()
}

#[test]
fn records_come_back_in_order_over_segments_and_restarts() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("new");
    for position in 1..=20 {
        write(&mut writer, [position * 2]);
    }
    assert!(log.segments.lock().len() > 3, "several segments");
    let expected: Vec<u64> = (1..=20).map(|position| position * 2).collect();
    assert_eq!(read(&log, 0), expected);
    assert_eq!(read(&log, 17), (9..=20).map(|position| position * 2).collect::<Vec<_>>());
    assert_eq!(read(&log, 40), Vec::<u64>::new());
    drop((log, writer));
    // The state is at position 10: everything behind it is derived again, and skipped.
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 10).expect("intact");
    write(&mut writer, (6..=21).map(|position| position * 2));
    assert_eq!(read(&log, 0), (1..=21).map(|position| position * 2).collect::<Vec<_>>());
}

#[test]
fn a_reader_follows_the_writer() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("new");
    let mut reader = RecordReader::after(log, 0);
    for position in 1..=50 {
        assert_eq!(reader.next().expect("readable"), None);
        write(&mut writer, [position]);
        assert_eq!(reader.next().expect("readable").map(|record| record.position), Some(position));
    }
}

#[test]
fn every_torn_end_is_cut_off_and_derived_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), 0).expect("new");
    write(&mut writer, 1..=3);
    let path = log.segments.lock()[0].path.clone();
    let length = log.segments.lock()[0].length_bytes;
    drop((log, writer));
    let intact = std::fs::read(&path).expect("readable");
    assert_eq!(intact.len() as u64, length);
    for length in (HEADER_BYTES..intact.len()).step_by(7) {
        std::fs::write(&path, &intact[..length]).expect("writable");
        let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), 0).expect("a torn end is no error");
        write(&mut writer, 1..=4);
        assert_eq!(read(&log, 0), [1, 2, 3, 4], "torn at {length}");
    }
    for flipped in HEADER_BYTES..intact.len() {
        let mut damaged = intact.clone();
        damaged[flipped] ^= 0x10;
        std::fs::write(&path, damaged).expect("writable");
        let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), 0).expect("unsynced damage is cut");
        write(&mut writer, 1..=4);
        assert_eq!(read(&log, 0), [1, 2, 3, 4], "flipped at {flipped}");
    }
}

#[test]
fn segments_behind_a_torn_one_are_derived_again_too() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("new");
    for position in 1..=20 {
        write(&mut writer, [position]);
    }
    let second = log.segments.lock()[1].clone();
    drop((log, writer));
    let file = File::options().write(true).open(&second.path).expect("there");
    file.set_len(second.length_bytes - 1).expect("writable");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("unsynced damage is cut");
    assert!(log.last_position() < second.last);
    write(&mut writer, 1..=20);
    assert_eq!(read(&log, 0), (1..=20).collect::<Vec<_>>());
}

#[test]
fn segments_behind_a_first_one_that_was_lost_are_derived_again_too() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("new");
    for position in 1..=20 {
        write(&mut writer, [position]);
    }
    let first = log.segments.lock()[0].clone();
    drop((log, writer));
    // The power failed before anything was synced, and the disk had written the later segments only.
    std::fs::write(&first.path, []).expect("writable");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("nothing of it was synced");
    write(&mut writer, 1..=20);
    assert_eq!(read(&log, 0), (1..=20).collect::<Vec<_>>());
}

#[test]
fn deletion_stops_at_what_is_needed_and_keeps_the_position() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("new");
    for position in 1..=20 {
        write(&mut writer, [position]);
    }
    let third = log.segments.lock()[2].clone();
    assert_eq!(log.delete_up_to(third.base).expect("deletable"), 2);
    assert_eq!(read(&log, 0).first(), Some(&(third.base + 1)));
    let behind = log.bytes_behind(third.base);
    assert!(behind > 0 && log.bytes_behind(20) == 0);
    log.delete_up_to(u64::MAX).expect("deletable");
    log.sync().expect("syncable");
    drop((log, writer));
    let (log, _writer) = RecordLog::open(options(directory.path(), 300), 20).expect("intact");
    assert_eq!(log.last_position(), 20);
}

#[test]
fn other_files_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(RecordLog::open(RecordLogOptions { partition: PartitionId(1), ..options(directory.path(), 300) }, 0));
    let error = RecordLog::open(options(directory.path(), 300), 0).expect_err("of another partition");
    assert!(error.to_string().contains("it belongs to partition 1"), "{error}");
}

#[test]
fn records_that_cannot_be_written_are_kept_and_written_later() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), 0).expect("new");
    write(&mut writer, 1..=2);
    let path = log.segments.lock()[0].path.clone();
    let writable = std::mem::replace(&mut writer.file, Box::new(File::open(&path).expect("readable")));
    writer.append(&record(3));
    let error = writer.flush().expect_err("the file is open for reading only").to_string();
    assert!(error.starts_with(&format!("Could not write to {}", path.display())), "{error}");
    writer.append(&record(4));
    assert_eq!(read(&log, 0), [1, 2], "readers see nothing of it");
    writer.file = writable;
    writer.flush().expect("it works again");
    assert_eq!(read(&log, 0), [1, 2, 3, 4]);
}

#[test]
fn after_a_failed_sync_everything_is_written_again_if_it_proves_itself() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), 0).expect("new");
    write(&mut writer, 1..=5);
    log.sync().expect("in order");
    write(&mut writer, 6..=9);
    let fail_sync = || log.segments.lock()[0].sync_failed = true;
    let Segment { path, synced_bytes: synced, .. } = log.segments.lock()[0].clone();
    fail_sync();
    log.sync().expect("what is read back is intact");
    assert!(!log.segments.lock()[0].sync_failed);
    assert_eq!(read(&log, 0), (1..=9).collect::<Vec<_>>());

    // The system lost a part of what it could not write.
    write(&mut writer, 10..=12);
    let mut bytes = std::fs::read(&path).expect("there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).expect("writable");
    fail_sync();
    let error = log.sync().expect_err("a record is damaged");
    assert!(matches!(error, RecordLogError::Damaged { offset, .. } if offset > synced), "{error}");
}

#[test]
fn a_segment_that_cannot_be_made_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 0).expect("new");
    // A directory is in the way of the next segment.
    let obstacle = directory.path().join(format!("{:020}.records", 5));
    std::fs::create_dir(&obstacle).expect("writable");
    (1..=5).for_each(|position| writer.append(&record(position)));
    writer.flush().expect_err("the next segment cannot be made");
    writer.flush().expect("the records themselves are written");
    assert_eq!(read(&log, 0), [1, 2, 3, 4, 5]);
    write(&mut writer, [6]);
    assert_eq!(log.segments.lock().len(), 2);
    assert_eq!(read(&log, 0), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn nothing_is_written_for_nobody() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let unread = || RecordLogOptions { is_read: false, ..options(directory.path(), 300) };
    let (log, mut writer) = RecordLog::open(unread(), 0).expect("new");
    write(&mut writer, 1..=50);
    let bytes: u64 = log.segments.lock().iter().map(|segment| segment.length_bytes).sum();
    assert_eq!(bytes, HEADER_BYTES as u64);
    assert_eq!(log.bytes_behind(0), 0);
    drop((log, writer));
    // A reader gets what comes after the checkpoint of the state, whether it is derived again or new.
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 40).expect("intact");
    write(&mut writer, 41..=60);
    assert_eq!(read(&log, 0), (41..=60).collect::<Vec<_>>());
    drop((log, writer));
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), 50).expect("intact");
    write(&mut writer, 51..=61);
    assert_eq!(read(&log, 0), (41..=61).collect::<Vec<_>>());
}

#[test]
fn a_piece_is_announced_when_it_is_written_and_synced_when_it_is_told() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (sender, pieces) = crossbeam_channel::bounded(1);
    let options = RecordLogOptions { write_back: Some(sender), ..options(directory.path(), 1 << 30) };
    let (log, mut writer) = RecordLog::open(options, 0).expect("new");
    let mut position = 0;
    while pieces.is_empty() {
        assert!(log.unsynced_bytes() < 2 * write_back::PIECE_BYTES, "it was never announced");
        write(&mut writer, position + 1..=position + 100);
        position += 100;
    }
    assert!(log.unsynced_bytes() >= write_back::PIECE_BYTES);
    log.sync().expect("the disk works");
    assert_eq!(log.unsynced_bytes(), 0);
}

#[test]
fn a_record_that_no_reader_would_accept_is_not_written_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), 0).unwrap();
    write(&mut writer, 1..=2);
    writer.record_limit_bytes = 20;
    writer.append(&record(3));
    writer.append(&record(4));
    let error = writer.flush().expect_err("it is too large");
    assert!(error.to_string().starts_with("The record at position 3 of partition 3 has "), "{error}");
    writer.flush().expect_err("what is behind it must not be written either");
    assert_eq!(read(&log, 0), [1, 2]);
}
