use protocol::{
    IncarnationIntent, IncarnationValue, Key, Payload, PurgeIntent, PurgeValue, Record, VariableIntent, VariableValue,
};

use std::fs::File;
use std::path::Path;

use super::format::HEADER_BYTES;
use super::*;

const PARTITION: PartitionId = PartitionId(3);

fn options(directory: &Path, segment_bytes: u64) -> RecordLogOptions {
    RecordLogOptions::for_test(PARTITION, directory, segment_bytes)
}

fn place(number: u64) -> RecordPlace {
    RecordPlace { incarnation: 1, position: number, number }
}

/// A new record stream, or that of a state at the place with a number.
fn open(options: RecordLogOptions, number: u64) -> (Arc<RecordLog>, RecordWriter) {
    RecordLog::open(options, place(number)).expect("intact")
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
    let payload = Payload::Variable(VariableIntent::Created, Box::new(value));
    Record { source_position: position, ..Record::event(position, 1, Key::NONE, payload) }
}

fn write(writer: &mut RecordWriter, positions: impl IntoIterator<Item = u64>) {
    for position in positions {
        writer.append(&record(position));
    }
    writer.flush().expect("the disk has room");
}

/// The next record.
fn next(reader: &mut RecordReader) -> Option<Read> {
    reader.next(|_| Answer::Read).expect("readable").map(|next| match next {
        Next::Read(read) => read,
        Next::Passed(..) | Next::Taken(..) => panic!("all are to be read"),
    })
}

fn read(log: &Arc<RecordLog>, after: u64) -> Vec<u64> {
    let mut reader = RecordReader::after(log.clone(), place(after));
    let positions = std::iter::from_fn(|| next(&mut reader)).map(|read| read.record.position).collect();
    assert_eq!(reader.take_gap(), None);
    positions
}

/// Writes records of which every second position is that of a command.
fn write_numbers(writer: &mut RecordWriter, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        writer.append(&Record { number, ..record(number * 2) });
        writer.flush().expect("the disk has room");
    }
}

/// Behind the record with a number of such a stream.
fn sparse(number: u64) -> RecordPlace {
    RecordPlace { position: number * 2, ..place(number) }
}

/// The positions of all records behind a place, and what is missing before them.
fn read_on(log: &Arc<RecordLog>, after: RecordPlace) -> (Vec<u64>, Vec<(u64, u64)>) {
    let mut reader = RecordReader::after(log.clone(), after);
    let (mut positions, mut gaps) = (Vec::new(), Vec::new());
    loop {
        let read = next(&mut reader);
        gaps.extend(reader.take_gap().map(|gap| (gap.after.number, gap.up_to.number)));
        match read {
            Some(read) => positions.push(read.record.position),
            None => return (positions, gaps),
        }
    }
}

#[test]
fn records_come_back_in_order_over_segments_and_restarts() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    write_numbers(&mut writer, 1..=20);
    assert!(log.segments.lock().len() > 3, "several segments");
    let positions = |numbers: std::ops::RangeInclusive<u64>| numbers.map(|number| number * 2).collect::<Vec<_>>();
    assert_eq!(read_on(&log, sparse(0)), (positions(1..=20), vec![]));
    assert_eq!(read_on(&log, RecordPlace { position: 17, ..sparse(8) }), (positions(9..=20), vec![]));
    assert_eq!(read_on(&log, sparse(20)), (vec![], vec![]));
    drop((log, writer));
    // The state is behind the fifth record: everything behind it is derived again, and skipped.
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), sparse(5)).expect("intact");
    write_numbers(&mut writer, 6..=21);
    assert_eq!(read_on(&log, sparse(0)), (positions(1..=21), vec![]));
}

#[test]
fn a_stream_goes_on_behind_a_state_that_was_received_meanwhile() {
    // Also where nothing was written before, and where nothing is missing.
    for (written, received) in [(5, 9), (0, 9), (5, 5)] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
        write_numbers(&mut writer, 1..=written);
        let mut reader = RecordReader::after(log.clone(), sparse(0));
        assert_eq!(std::iter::from_fn(|| next(&mut reader)).count() as u64, written);
        // What was not flushed is part of the gap.
        writer.append(&Record { number: 6, ..record(12) });
        drop(writer);
        let mut writer = log.go_on_behind(sparse(received)).expect("the disk has room");
        assert!(next(&mut reader).is_none());
        let gap = (received > written).then_some((written, received));
        let noted = |reader: &mut RecordReader| reader.take_gap().map(|gap| (gap.after.number, gap.up_to.number));
        assert_eq!(noted(&mut reader), gap, "before there is a record behind it");
        write_numbers(&mut writer, received + 1..=received + 2);
        let behind: Vec<u64> = std::iter::from_fn(|| next(&mut reader)).map(|read| read.record.number).collect();
        assert_eq!((behind, noted(&mut reader)), (vec![received + 1, received + 2], None));
        let all = read_on(&log, sparse(0));
        assert_eq!(all.1, Vec::from_iter(gap));
        drop((log, writer));
        let (log, _) = RecordLog::open(options(directory.path(), 1 << 20), sparse(received)).expect("intact");
        // Those of the last command are hidden until they are derived again.
        assert_eq!(log.last_place().number, received + 1, "a restart finds the same");
        assert_eq!(read_on(&log, sparse(0)).1, Vec::from_iter(gap));
    }
}

#[test]
fn a_restart_knows_what_is_missing_before_a_received_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    write_numbers(&mut writer, 1..=5);
    drop(writer);
    // Nothing follows the first state that was received, and the second one takes its place.
    drop(log.go_on_behind(sparse(9)).expect("the disk has room"));
    let mut writer = log.go_on_behind(sparse(12)).expect("the disk has room");
    write_numbers(&mut writer, 13..=14);
    let missing =
        |log: &RecordLog, after: u64| log.missing_after(sparse(after)).map(|gap| (gap.after.number, gap.up_to.number));
    let expected = [(3, Some((5, 12))), (5, Some((5, 12))), (7, Some((7, 12))), (12, None)];
    for (after, gap) in expected {
        assert_eq!(missing(&log, after), gap, "behind {after}");
    }
    log.sync().expect("the disk works");
    drop((log, writer));
    let (log, _) = RecordLog::open(options(directory.path(), 1 << 20), sparse(13)).expect("intact");
    for (after, gap) in expected {
        assert_eq!(missing(&log, after), gap, "behind {after}, after a restart");
    }
    assert_eq!(log.delete_up_to(sparse(5).position).expect("deletable"), 1);
}

#[test]
fn a_reader_follows_the_writer() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    let mut reader = RecordReader::after(log, place(0));
    for position in 1..=50 {
        assert_eq!(next(&mut reader), None);
        write(&mut writer, [position]);
        assert_eq!(next(&mut reader).map(|read| read.record.position), Some(position));
    }
}

#[test]
fn every_torn_end_is_cut_off_and_derived_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    write(&mut writer, 1..=3);
    let path = log.segments.lock()[0].path.clone();
    let length = log.segments.lock()[0].length_bytes;
    drop((log, writer));
    let intact = std::fs::read(&path).expect("readable");
    assert_eq!(intact.len() as u64, length);
    for length in (HEADER_BYTES..intact.len()).step_by(7) {
        std::fs::write(&path, &intact[..length]).expect("writable");
        let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
        write(&mut writer, 1..=4);
        assert_eq!(read(&log, 0), [1, 2, 3, 4], "torn at {length}");
    }
    for flipped in HEADER_BYTES..intact.len() {
        let mut damaged = intact.clone();
        damaged[flipped] ^= 0x10;
        std::fs::write(&path, damaged).expect("writable");
        let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
        write(&mut writer, 1..=4);
        assert_eq!(read(&log, 0), [1, 2, 3, 4], "flipped at {flipped}");
    }
}

#[test]
fn what_a_crash_left_of_the_last_command_is_read_when_all_of_it_is_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let options = || options(directory.path(), 1 << 20);
    let (log, mut writer) = open(options(), 0);
    // Two commands, with two and three records.
    let derived: Vec<Record> = (1..)
        .zip([(1, 2), (1, 3), (4, 5), (4, 6), (4, 7)])
        .map(|(number, (source_position, position))| Record { number, source_position, ..record(position) })
        .collect();
    derived.iter().for_each(|record| writer.append(record));
    writer.flush().expect("the disk has room");
    let path = log.segments.lock()[0].path.clone();
    drop((log, writer));
    let bytes = std::fs::read(&path).expect("readable");
    for length in HEADER_BYTES..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).expect("writable");
        let (log, mut writer) = open(options(), 0);
        assert_eq!(
            log.last_place().position,
            read_on(&log, place(0)).0.last().copied().unwrap_or(0),
            "nobody is behind"
        );
        let left = read_on(&log, place(0)).0;
        assert!([vec![], vec![2, 3]].contains(&left), "{left:?} of {length} bytes");
        assert!(writer.last_position() >= left.last().copied().unwrap_or(0), "what is there is not forgotten");
        // One batch for each command, of which readers are never shown a part.
        derived[..2].iter().for_each(|record| writer.append(record));
        writer.flush().expect("the disk has room");
        assert_eq!(read_on(&log, place(0)), (vec![2, 3], vec![]), "of {length} bytes");
        derived[2..].iter().for_each(|record| writer.append(record));
        writer.flush().expect("the disk has room");
        assert_eq!(read_on(&log, place(0)), (vec![2, 3, 5, 6, 7], vec![]), "of {length} bytes");
        assert_eq!(std::fs::read(&path).expect("readable"), bytes);
    }
    // A new version begins a segment of its own, behind what is left; the power fails again when it has derived none, some or all.
    let three = HEADER_BYTES + (bytes.len() - HEADER_BYTES) / 5 * 3;
    for (length, derived_meanwhile) in [(three, 0), (three, 4), (three, 5), (bytes.len(), 0)] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let of = |version: &str| RecordLogOptions {
            broker_version: version.into(),
            ..RecordLogOptions { directory: directory.path().to_owned(), ..options() }
        };
        std::fs::write(directory.path().join(path.file_name().expect("it has a name")), &bytes[..length])
            .expect("writable");
        let (log, mut writer) = RecordLog::open(of("8.9.1"), place(0)).expect("intact");
        derived[..derived_meanwhile].iter().for_each(|record| writer.append(record));
        writer.flush().expect("the disk has room");
        drop((log, writer));
        let (log, mut writer) = RecordLog::open(of("8.9.1"), place(0)).expect("intact");
        assert_eq!(read_on(&log, place(0)), (vec![2, 3], vec![]), "of {length} bytes, {derived_meanwhile} derived");
        derived.iter().for_each(|record| writer.append(record));
        writer.flush().expect("the disk has room");
        assert_eq!(read_on(&log, place(0)), (vec![2, 3, 5, 6, 7], vec![]));
    }
    // What the state holds is never derived again.
    for (position, number, readable) in [(3, 2, vec![2, 3]), (7, 5, vec![2, 3, 5, 6, 7])] {
        let (log, writer) = RecordLog::open(options(), RecordPlace { position, ..place(number) }).expect("intact");
        assert_eq!((read_on(&log, place(0)).0, writer.last_position()), (readable, 7));
    }
}

#[test]
fn segments_behind_a_torn_one_are_derived_again_too() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    for position in 1..=20 {
        write(&mut writer, [position]);
    }
    let second = log.segments.lock()[1].clone();
    drop((log, writer));
    let file = File::options().write(true).open(&second.path).expect("there");
    file.set_len(second.length_bytes - 1).expect("writable");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    assert!(log.last_place().position < second.last.position);
    write(&mut writer, 1..=20);
    assert_eq!(read(&log, 0), (1..=20).collect::<Vec<_>>());
}

#[test]
fn segments_behind_a_first_one_that_was_lost_are_derived_again_too() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    for position in 1..=20 {
        write(&mut writer, [position]);
    }
    let first = log.segments.lock()[0].clone();
    drop((log, writer));
    // The power failed before anything was synced, and the disk had written the later segments only.
    std::fs::write(&first.path, []).expect("writable");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    write(&mut writer, 1..=20);
    assert_eq!(read(&log, 0), (1..=20).collect::<Vec<_>>());
}

#[test]
fn deletion_stops_at_what_is_needed_and_keeps_the_position() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    for position in 1..=20 {
        write(&mut writer, [position]);
    }
    let third = log.segments.lock()[2].clone();
    assert_eq!(log.delete_up_to(third.base.position).expect("deletable"), 2);
    assert_eq!(log.beginning(), third.base);
    assert_eq!(read(&log, third.base.position).first(), Some(&(third.base.position + 1)));
    let behind = log.bytes_behind(third.base.position);
    assert!(behind > 0 && log.bytes_behind(20) == 0);
    log.delete_up_to(u64::MAX).expect("deletable");
    log.sync().expect("syncable");
    drop((log, writer));
    let (log, _writer) = open(options(directory.path(), 300), 20);
    assert_eq!(log.last_place().position, 20);
}

#[test]
fn other_files_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(RecordLog::open(RecordLogOptions { partition: PartitionId(1), ..options(directory.path(), 300) }, place(0)));
    let error = RecordLog::open(options(directory.path(), 300), place(0)).expect_err("of another partition");
    assert!(error.to_string().contains("it belongs to partition 1"), "{error}");
}

#[test]
fn records_that_cannot_be_written_are_kept_and_written_later() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
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
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
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
    let (log, mut writer) = open(options(directory.path(), 250), 0);
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
    let (log, mut writer) = open(unread(), 0);
    write(&mut writer, 1..=50);
    let bytes: u64 = log.segments.lock().iter().map(|segment| segment.length_bytes).sum();
    assert_eq!(bytes, HEADER_BYTES as u64);
    assert_eq!(log.bytes_behind(0), 0);
    drop((log, writer));
    // A reader gets what comes after the checkpoint of the state, whether it is derived again or new.
    let (log, mut writer) = open(options(directory.path(), 300), 40);
    assert_eq!(log.beginning(), place(40), "nothing before is missing");
    write(&mut writer, 41..=60);
    assert_eq!(read(&log, 40), (41..=60).collect::<Vec<_>>());
    drop((log, writer));
    let (log, mut writer) = open(options(directory.path(), 300), 50);
    write(&mut writer, 51..=61);
    assert_eq!(read(&log, 40), (41..=61).collect::<Vec<_>>());
}

#[test]
fn a_piece_is_announced_when_it_is_written_and_synced_when_it_is_told() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (sender, pieces) = crossbeam_channel::bounded(1);
    let options = RecordLogOptions { write_back: Some(sender), ..options(directory.path(), 1 << 30) };
    let (log, mut writer) = open(options, 0);
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
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    write(&mut writer, 1..=2);
    writer.record_limit_bytes = 20;
    writer.append(&record(3));
    writer.append(&record(4));
    let error = writer.flush().expect_err("it is too large");
    assert!(error.to_string().starts_with("The record at position 3 of partition 3 has "), "{error}");
    writer.flush().expect_err("what is behind it must not be written either");
    assert_eq!(read(&log, 0), [1, 2]);
}

#[test]
fn what_is_missing_is_told_once_and_read_past() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 300), 0);
    write_numbers(&mut writer, 1..=20);
    let segments: Vec<Segment> = log.segments.lock().iter().cloned().collect();
    drop((log, writer));
    let (lost, behind) = (&segments[1], &segments[2]);
    std::fs::remove_file(&lost.path).expect("there");
    let gap = (lost.base.number, behind.base.number);
    let all_but_lost =
        |up_to: u64| (1..=up_to).filter(|number| *number <= gap.0 || *number > gap.1).map(|number| number * 2);
    // The state is behind all that was written, so nothing is derived again.
    let (log, mut writer) = RecordLog::open(options(directory.path(), 300), sparse(20)).expect("readable");
    write_numbers(&mut writer, 21..=22);
    assert_eq!(read_on(&log, sparse(0)), (all_but_lost(22).collect(), vec![gap]));
    assert_eq!(read_on(&log, lost.base), (all_but_lost(22).filter(|at| *at > lost.base.position).collect(), vec![gap]));
    let inside = sparse(gap.0 + 1);
    assert_eq!(read_on(&log, inside).1, [(inside.number, gap.1)], "from where the reader is");
    assert_eq!(read_on(&log, behind.base).1, []);
    drop((log, writer));
    // Of the end, too, and although nothing comes behind it.
    let last = segments.last().expect("there are several");
    for path in segments.iter().filter(|segment| segment.base >= behind.base).map(|segment| &segment.path) {
        drop(std::fs::remove_file(path));
    }
    let (log, _writer) = RecordLog::open(options(directory.path(), 300), sparse(30)).expect("readable");
    let (positions, gaps) = read_on(&log, sparse(0));
    assert_eq!((positions.last(), gaps.last()), (Some(&(gap.0 * 2)), Some(&(gap.0, 30))), "{last:?}");
}

#[test]
fn positions_of_commands_are_no_loss() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    write_numbers(&mut writer, 1..=5);
    drop((log, writer));
    // Behind the last record, the state has seen commands that left none.
    let checkpoint = RecordPlace { position: 900, ..place(5) };
    let (log, mut writer) = RecordLog::open(options(directory.path(), 1 << 20), checkpoint).expect("intact");
    assert_eq!(log.segments.lock().len(), 1, "nothing is missing, so the segment goes on");
    writer.append(&Record { number: 6, ..record(901) });
    writer.flush().expect("the disk has room");
    assert_eq!(read_on(&log, place(0)), (vec![2, 4, 6, 8, 10, 901], vec![]));
}

#[test]
fn what_is_hidden_is_not_read_behind_a_gap() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let options = || options(directory.path(), 1 << 20);
    // A stream that begins with a state of a hundred records, and of whose first command a crash left one.
    let (log, mut writer) = open(options(), 100);
    write(&mut writer, [101]);
    drop((log, writer));
    let (log, mut writer) = open(options(), 100);
    assert_eq!(read_on(&log, place(50)), (vec![], vec![(50, 100)]));
    write(&mut writer, [101, 102]);
    assert_eq!(read_on(&log, place(50)), (vec![101, 102], vec![(50, 100)]));
}

#[test]
fn records_keep_the_version_that_made_them() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let of = |version: &str| RecordLogOptions { broker_version: version.into(), ..options(directory.path(), 1 << 20) };
    let (_, mut writer) = open(of("8.9.0"), 0);
    write(&mut writer, 1..=3);
    drop(writer);
    // A start that writes nothing, and one that does.
    drop(open(of("8.9.1"), 3));
    let (log, mut writer) = open(of("8.9.2"), 3);
    write(&mut writer, 4..=5);
    let mut reader = RecordReader::after(log.clone(), place(0));
    let versions: Vec<String> =
        std::iter::from_fn(|| next(&mut reader)).map(|read| read.source.broker_version.to_string()).collect();
    assert_eq!(versions, ["8.9.0", "8.9.0", "8.9.0", "8.9.2", "8.9.2"]);
    assert_eq!(reader.take_gap(), None);
}

#[test]
fn what_a_restore_forgot_is_not_read_any_more() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (_, mut writer) = open(options(directory.path(), 300), 0);
    (1..=20).for_each(|position| write(&mut writer, [position]));
    drop(writer);
    let restored = RecordPlace { incarnation: 2, ..place(7) };
    for _ in 0..2 {
        let (log, mut writer) = RecordLog::open(options(directory.path(), 300), restored).expect("intact");
        write(&mut writer, [8, 9]);
        assert_eq!(read_on(&log, place(0)), ((1..=9).collect(), vec![]));
        // Who had more than there is now goes on where the new incarnation began; who had less, there.
        assert_eq!(log.resume_after(place(15)), restored);
        assert_eq!(log.resume_after(place(5)), place(5));
        let new = RecordPlace { incarnation: 2, ..place(9) };
        assert_eq!(log.resume_after(new), new);
        let mut reader = RecordReader::after(log.clone(), place(6));
        let incarnations: Vec<u64> =
            std::iter::from_fn(|| next(&mut reader)).map(|read| read.place().incarnation).collect();
        assert_eq!(incarnations, [1, 2, 2]);
    }
    let error = RecordLog::open(options(directory.path(), 300), place(20)).expect_err("an older state").to_string();
    assert!(
        error.contains("has records of incarnation 2 of partition 3, and the state is of incarnation 1"),
        "{error}"
    );
}

#[test]
fn segments_of_later_versions_are_read_if_they_say_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    write(&mut writer, 1..=3);
    let path = log.segments.lock()[0].path.clone();
    drop((log, writer));
    let intact = std::fs::read(&path).expect("readable");
    // Version, oldest reader, and eight more bytes of header.
    let later = |version: u8, oldest_reader: u8| {
        let mut bytes = intact[..HEADER_BYTES - 4].to_vec();
        (bytes[8], bytes[12], bytes[16]) = (version, oldest_reader, bytes[16] + 8);
        bytes.extend_from_slice(&[7; 8]);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes.extend_from_slice(&intact[HEADER_BYTES..]);
        bytes
    };
    std::fs::write(&path, later(3, 1)).expect("writable");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    write(&mut writer, 4..=5);
    assert_eq!(read(&log, 0), [1, 2, 3, 4, 5]);
    drop((log, writer));
    std::fs::write(&path, later(3, 2)).expect("writable");
    let error = RecordLog::open(options(directory.path(), 1 << 20), place(0)).expect_err("too new").to_string();
    assert!(error.contains("its format is 3, which needs a version that reads 2 or newer"), "{error}");
}

#[test]
fn a_raised_incarnation_begins_with_its_own_record() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 0);
    let raise = |incarnation| {
        Payload::Incarnation(
            IncarnationIntent::Raised,
            Box::new(IncarnationValue { incarnation, ..Default::default() }),
        )
    };
    // A purge begins one, too: what comes behind it is not what a restart would find at these places.
    let purged = Payload::Purge(PurgeIntent::Purged, PurgeValue { incarnation: 4 });
    let derive = |writer: &mut RecordWriter| {
        // In one batch with what comes before and after, and at the beginning of one.
        writer.append(&record(1));
        writer.append(&Record { payload: raise(2), ..record(2) });
        writer.append(&record(3));
        writer.append(&Record { payload: raise(3), ..record(4) });
        writer.flush().expect("the disk has room");
        writer.append(&Record { payload: purged.clone(), ..record(5) });
        write(writer, 6..=6);
    };
    derive(&mut writer);
    let check = |log: &Arc<RecordLog>| {
        let mut reader = RecordReader::after(log.clone(), place(0));
        let incarnations: Vec<u64> =
            std::iter::from_fn(|| next(&mut reader)).map(|read| read.place().incarnation).collect();
        assert_eq!((incarnations, reader.take_gap()), (vec![1, 2, 2, 3, 4, 4], None));
        assert_eq!(log.incarnation(), 4);
    };
    check(&log);
    drop((log, writer));
    // The state may be from before: the rest is derived again, and skipped.
    let (log, mut writer) = open(options(directory.path(), 1 << 20), 1);
    derive(&mut writer);
    check(&log);
}
