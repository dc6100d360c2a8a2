//! What every log must do, and what the log in a directory does about damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raft::eraftpb::{Entry, HardState};
use replication::{
    Anchor, GroupId, GroupWrite, LogError, LogOptions, LogStore, MemoryLog, Message, NodeId, Options, Position,
    RaftEngineLog, Replicas, WriteBatch,
};

const A: GroupId = GroupId(0);
const B: GroupId = GroupId(7);

fn entries(range: std::ops::Range<u64>, term: u64) -> Vec<Entry> {
    range
        .map(|index| {
            let data = format!("entry {index} of term {term}").into_bytes().into();
            Entry { index, term, data, ..Entry::default() }
        })
        .collect()
}

fn hard_state(term: u64, commit: u64) -> HardState {
    HardState { term, commit, ..HardState::default() }
}

fn anchor(index: u64, term: u64) -> Anchor {
    let mut anchor = Anchor { compacted: Position { index, term }, membership_index: index, ..Anchor::default() };
    anchor.membership.voters = vec![1, 2, index + 3];
    anchor
}

fn create() -> GroupWrite {
    GroupWrite::Replace { hard_state: hard_state(1, 0), anchor: anchor(0, 0), entries: Vec::new() }
}

fn append(entries: Vec<Entry>) -> GroupWrite {
    GroupWrite::Append { entries, hard_state: None, anchor: None }
}

fn write(log: &impl LogStore, writes: Vec<(GroupId, GroupWrite)>) {
    log.write(&WriteBatch { writes }).expect("the write is fine");
}

fn read(log: &impl LogStore, group: GroupId, from: u64, to: u64) -> Vec<Entry> {
    log.read(group, from, to, u64::MAX).expect("the entries are there")
}

/// What every implementation of the trait must do. `reopen` simulates a restart.
fn conforms<L: LogStore>(open: impl Fn() -> L, reopen: impl Fn(L) -> L) {
    let log = open();
    assert_eq!(log.groups().expect("readable"), []);
    assert!(log.load(A).expect("readable").is_none());
    let report = log.write(&WriteBatch::default()).expect("an empty write is fine");
    assert_eq!(report.bytes, 0);

    // Two groups in one write, creation and entries together.
    write(&log, vec![(B, create()), (A, create()), (A, append(entries(1..4, 1))), (B, append(entries(1..11, 1)))]);
    // A newer leader replaces a suffix.
    write(
        &log,
        vec![(B, GroupWrite::Append { entries: entries(6..9, 2), hard_state: Some(hard_state(2, 5)), anchor: None })],
    );
    let log = reopen(log);
    assert_eq!(log.groups().expect("readable"), [A, B]);
    let stored = log.load(B).expect("readable").expect("the group is there");
    assert_eq!((stored.hard_state, stored.anchor, stored.last_index), (hard_state(2, 5), anchor(0, 0), 8));
    assert_eq!(read(&log, B, 1, 9), [entries(1..6, 1), entries(6..9, 2)].concat());
    assert_eq!(read(&log, B, 7, 7), []);
    assert_eq!(log.read(B, 1, 9, 1).expect("at least one entry").len(), 1);
    assert!(matches!(log.read(B, 1, 10, u64::MAX), Err(LogError::OutOfRange { wanted: 9, last_index: 8, .. })));

    // Compaction; reading below it is refused, also after a restart.
    let compact = GroupWrite::Append { entries: Vec::new(), hard_state: None, anchor: Some(anchor(6, 2)) };
    write(&log, vec![(B, compact)]);
    let log = reopen(log);
    assert_eq!(log.load(B).expect("readable").expect("the group is there").anchor, anchor(6, 2));
    assert!(matches!(log.read(B, 6, 9, u64::MAX), Err(LogError::OutOfRange { wanted: 6, first_index: 7, .. })));
    assert_eq!(read(&log, B, 7, 9), entries(7..9, 2));
    let compact_all = GroupWrite::Append { entries: Vec::new(), hard_state: None, anchor: Some(anchor(8, 2)) };
    write(&log, vec![(B, compact_all)]);
    let log = reopen(log);
    assert_eq!(log.load(B).expect("readable").expect("the group is there").last_index, 8);
    write(&log, vec![(B, append(entries(9..12, 3)))]);
    assert_eq!(read(&log, B, 9, 12), entries(9..12, 3));

    // A snapshot behind and one before the end of the log; then the log continues directly after it.
    for (index, write_after_restart) in [(20, true), (30, false), (15, true)] {
        let replace =
            GroupWrite::Replace { hard_state: hard_state(4, index), anchor: anchor(index, 4), entries: Vec::new() };
        write(&log, vec![(B, replace)]);
        if write_after_restart {
            assert_eq!(log.load(B).expect("readable").expect("the group is there").last_index, index);
        }
        write(&log, vec![(B, append(entries(index + 1..index + 9, 4)))]);
        assert_eq!(read(&log, B, index + 1, index + 9), entries(index + 1..index + 9, 4));
    }
    let log = reopen(log);
    let stored = log.load(B).expect("readable").expect("the group is there");
    assert_eq!((stored.anchor, stored.last_index), (anchor(15, 4), 23));
    assert_eq!(read(&log, B, 16, 24), entries(16..24, 4));

    // Removal, and another creation.
    write(&log, vec![(B, GroupWrite::Remove)]);
    let log = reopen(log);
    assert_eq!(log.groups().expect("readable"), [A]);
    assert!(log.load(B).expect("readable").is_none());
    write(&log, vec![(B, create()), (B, append(entries(1..3, 9)))]);
    log.reclaim_space().expect("reclaiming is fine");
    let log = reopen(log);
    assert_eq!(read(&log, B, 1, 3), entries(1..3, 9));
    assert_eq!(read(&log, A, 1, 4), entries(1..4, 1));
}

fn small_files() -> LogOptions {
    LogOptions { file_bytes: 16 << 10, reclaim_above_bytes: 64 << 10 }
}

fn open(directory: &Path) -> RaftEngineLog {
    RaftEngineLog::open(directory, small_files()).expect("the directory is fine")
}

#[test]
fn the_log_in_memory_conforms() {
    conforms(MemoryLog::new, |log| log);
}

#[test]
fn the_log_in_a_directory_conforms() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    conforms(
        || open(directory.path()),
        |log| {
            drop(log);
            open(directory.path())
        },
    );
}

#[test]
fn space_of_compacted_entries_is_reclaimed_and_idle_groups_survive_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut log = open(directory.path());
    write(&log, vec![(A, create()), (A, append(entries(1..4, 1))), (B, create())]);
    let mut next = 1;
    for round in 0..200u64 {
        let mut new = entries(next..next + 4, 1);
        for entry in &mut new {
            entry.data = vec![round as u8; 1000].into();
        }
        next += 4;
        write(&log, vec![(B, append(new))]);
        let compact = GroupWrite::Append { entries: Vec::new(), hard_state: None, anchor: Some(anchor(next - 3, 1)) };
        write(&log, vec![(B, compact)]);
        if round % 10 == 9 {
            let report = log.reclaim_space().expect("reclaiming is fine");
            assert!(report.used_bytes <= 512 << 10, "{} bytes are in use", report.used_bytes);
        }
        if round % 50 == 49 {
            drop(log);
            log = open(directory.path());
        }
    }
    assert_eq!(read(&log, A, 1, 4), entries(1..4, 1));
    assert_eq!(read(&log, B, next - 2, next).len(), 2);
    assert_eq!(log.load(A).expect("readable").expect("the group is there").anchor, anchor(0, 0));
}

/// Entries that are needed for long are moved out of old files. When they are needed no more, the files that they were moved to
/// go, also after a start that found nothing moved and nothing compacted.
#[test]
fn space_of_moved_entries_is_reclaimed_after_a_start() {
    const ROUNDS: u64 = 400;
    const KEPT: u64 = 16;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = open(directory.path());
    write(&log, vec![(A, create()), (B, create())]);
    drop(log);
    let log = open(directory.path());
    let mut moved_bytes_max = 0;
    for next in 1..=ROUNDS {
        let mut new = entries(next..next + 1, 1);
        new[0].data = vec![b'x'; 8 << 10].into();
        let anchor = (next % KEPT == 0).then(|| anchor(next - 1, 1));
        write(&log, vec![(B, GroupWrite::Append { entries: new, hard_state: None, anchor })]);
        log.reclaim_space().expect("reclaiming is fine");
        let files = fs::read_dir(directory.path().join("files")).expect("readable").map(|file| file.expect("readable"));
        let moved = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "rewrite"));
        moved_bytes_max = moved_bytes_max.max(moved.map(|file| file.metadata().expect("there").len()).sum());
    }
    let needed_bytes = KEPT * (8 << 10);
    assert!(moved_bytes_max > 0, "entries were moved");
    assert!(
        moved_bytes_max <= 4 * needed_bytes,
        "{moved_bytes_max} bytes were moved, of which {needed_bytes} are needed"
    );
}

#[test]
fn a_second_user_and_another_format_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = open(directory.path());
    let refusal = |expected: &str| match RaftEngineLog::open(directory.path(), small_files()) {
        Ok(_) => panic!("the directory must be refused"),
        Err(error) => assert!(error.to_string().contains(expected), "{error}"),
    };
    refusal("in use by another process");
    drop(log);
    for (marker, expected) in [
        ("osmia raft log format 2\n", "log format 2"),
        ("other", "unknown format marker"),
        ("", "without a format marker"),
    ] {
        fs::write(directory.path().join("FORMAT"), marker).expect("writable");
        refusal(expected);
    }
}

/// Three batches in one file, closed cleanly. Returns the file and the offsets at which the batches start, and the end.
fn three_batches(directory: &Path) -> (PathBuf, Vec<usize>) {
    let log = open(directory);
    let file = directory.join("files").join("0000000000000001.raftlog");
    let mut ends = Vec::new();
    write(&log, vec![(A, create())]);
    for index in 1..4 {
        // Preallocated zeros follow the last batch, whose last byte (of a checksum) is hardly ever zero in this test.
        let bytes = fs::read(&file).expect("readable");
        ends.push(bytes.iter().rposition(|byte| *byte != 0).expect("a header") + 1);
        write(&log, vec![(A, append(entries(index..index + 1, 1)))]);
    }
    drop(log);
    ends.push(usize::try_from(fs::metadata(&file).expect("readable").len()).expect("small"));
    (file, ends)
}

#[test]
fn a_torn_tail_is_cut_off_wherever_it_is_torn() {
    let template = tempfile::tempdir().expect("a temporary directory");
    let (file, ends) = three_batches(template.path());
    let whole = fs::read(&file).expect("readable");
    for torn_at in ends[2] + 1..ends[3] {
        for zeros in [0, 4096] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            drop(open(directory.path()));
            let mut bytes = whole[..torn_at].to_vec();
            bytes.resize(torn_at + zeros, 0);
            fs::write(directory.path().join("files").join(file.file_name().expect("a name")), bytes).expect("writable");
            let log = open(directory.path());
            let last_index = log.load(A).expect("readable").expect("the group is there").last_index;
            if last_index == 3 {
                // The bytes torn off happened to be zeros.
                assert!(zeros > 0 && whole[torn_at..].iter().all(|byte| *byte == 0));
                continue;
            }
            assert_eq!(last_index, 2, "torn at {torn_at} with {zeros} zeros");
            write(&log, vec![(A, append(entries(3..5, 2)))]);
            drop(log);
            assert_eq!(read(&open(directory.path()), A, 1, 5), [entries(1..3, 1), entries(3..5, 2)].concat());
        }
    }
}

#[test]
fn a_flipped_bit_before_the_last_batch_is_refused_with_file_and_place() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, ends) = three_batches(directory.path());
    let whole = fs::read(&file).expect("readable");
    for offset in 0..ends[2] {
        let mut bytes = whole.clone();
        bytes[offset] ^= 1 << (offset % 8);
        fs::write(&file, &bytes).expect("writable");
        match RaftEngineLog::open(directory.path(), small_files()) {
            Err(error @ LogError::Damaged { offset: at, .. }) => {
                let start = ends.iter().rev().find(|end| **end <= offset).copied().unwrap_or(0);
                let creation = 69..ends[0];
                let expected = if creation.contains(&offset) { 69 } else { start };
                assert_eq!(at, expected as u64, "bit in byte {offset}");
                assert!(error.to_string().contains("0000000000000001.raftlog"), "{error}");
            }
            Err(error) => panic!("byte {offset}: {error}"),
            Ok(_) => panic!("the flipped bit in byte {offset} went unnoticed"),
        }
        assert_eq!(fs::read(&file).expect("readable"), bytes, "a refusal must not change anything");
    }
    fs::write(&file, &whole).expect("writable");
    assert_eq!(read(&open(directory.path()), A, 1, 4), entries(1..4, 1));
}

/// The engine would make room for gigabytes, up to the next multiple of the alignment.
#[test]
fn an_alignment_in_the_header_of_an_empty_newest_file_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, _) = three_batches(directory.path());
    let newest = next_file(&file);
    let mut bytes = fs::read(&file).expect("readable")[..69].to_vec();
    bytes[64] = 2;
    bytes.resize(1_500, 0);
    fs::write(&newest, bytes).expect("writable");
    let refused = RaftEngineLog::open(directory.path(), small_files());
    let advice = refused.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(
        advice.ends_with(
            "restore this node's data from a backup. Only a node with other replicas may instead have its \
         data removed and catch up as a new replica."
        ),
        "{advice}"
    );
    let Err(LogError::Damaged { file, offset, problem }) = refused else { panic!("the alignment went unnoticed") };
    assert_eq!((file, offset), (newest, 0));
    assert!(problem.contains("names an alignment"), "{problem}");
}

/// The byte of the compression is the only one of a record that no checksum covers.
#[test]
fn a_bit_that_says_that_a_record_is_compressed_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, ends) = three_batches(directory.path());
    let whole = fs::read(&file).expect("readable");
    for start in &ends[..2] {
        let mut bytes = whole.clone();
        bytes[start + 7] ^= 1;
        fs::write(&file, &bytes).expect("writable");
        let refused = RaftEngineLog::open(directory.path(), small_files());
        let Err(LogError::Damaged { offset, problem, .. }) = refused else {
            panic!("the flipped bit in byte {} went unnoticed", start + 7);
        };
        assert_eq!(offset, *start as u64);
        assert!(problem.starts_with("the record's header names a compression"), "{problem}");
    }
}

#[test]
fn a_flipped_bit_in_the_header_before_a_single_record_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(&open(directory.path()), vec![(A, create())]);
    let signed = directory.path().join("files").join("0000000000000001.raftlog");
    let unsigned = next_file(&signed);
    for (file, header_bytes) in [(&signed, 69), (&unsigned, 61)] {
        if !file.exists() {
            // The engine starts a file with a torn header again, in an older version.
            fs::write(file, b"RAFT-LOG-FILE-HEAD").expect("writable");
            write(&open(directory.path()), vec![(A, append(entries(1..2, 1)))]);
        }
        let whole = fs::read(file).expect("readable");
        for offset in 0..header_bytes {
            let mut bytes = whole.clone();
            bytes[offset] ^= 1 << (offset % 8);
            fs::write(file, &bytes).expect("writable");
            let opened = RaftEngineLog::open(directory.path(), small_files()).map(|_| ());
            let Err(error @ LogError::Damaged { offset: 0, .. }) = opened else {
                panic!("the flipped bit in byte {offset} of {} went unnoticed: {opened:?}", file.display());
            };
            let record = format!("an intact record follows at byte {header_bytes}");
            assert!(error.to_string().contains(&record), "{error}");
        }
        fs::write(file, &whole).expect("writable");
    }
    assert_eq!(read(&open(directory.path()), A, 1, 2), entries(1..2, 1));
}

#[test]
fn an_older_file_may_not_even_have_a_torn_tail() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = open(directory.path());
    write(&log, vec![(A, create())]);
    for index in 1..40 {
        let mut entry = entries(index..index + 1, 1);
        entry[0].data = vec![7; 1000].into();
        write(&log, vec![(A, append(entry))]);
    }
    drop(log);
    let file = directory.path().join("files").join("0000000000000001.raftlog");
    let whole = fs::read(&file).expect("readable");
    fs::write(&file, &whole[..whole.len() - 3]).expect("writable");
    assert!(matches!(RaftEngineLog::open(directory.path(), small_files()).map(|_| ()), Err(LogError::Damaged { .. })));
}

/// The name of the file behind that of [`three_batches`].
fn next_file(file: &Path) -> PathBuf {
    file.with_file_name("0000000000000002.raftlog")
}

#[test]
fn a_file_that_was_begun_on_a_full_disk_does_not_count() {
    for begun in [&b""[..], b"RAFT-LOG-FILE-HEADER", &[0; 4096]] {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, ends) = three_batches(directory.path());
        // The file before it was written to afterwards, and has room that was allocated ahead.
        let mut bytes = fs::read(&file).expect("readable");
        assert_eq!(bytes.len(), ends[3]);
        bytes.extend([0; 2048]);
        fs::write(&file, bytes).expect("writable");
        fs::write(next_file(&file), begun).expect("writable");
        let log = open(directory.path());
        assert_eq!(read(&log, A, 1, 4), entries(1..4, 1));
        write(&log, vec![(A, append(entries(4..6, 1)))]);
        drop(log);
        assert_eq!(read(&open(directory.path()), A, 1, 6), entries(1..6, 1));
    }
}

#[test]
fn a_newest_file_that_begins_anew_after_a_torn_header_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, _) = three_batches(directory.path());
    fs::write(next_file(&file), b"RAFT-LOG-FILE-HEAD").expect("writable");
    for index in [4, 6, 8] {
        let log = open(directory.path());
        assert_eq!(read(&log, A, 1, index), entries(1..index, 1));
        write(&log, vec![(A, append(entries(index..index + 2, 1)))]);
    }
}

#[test]
fn a_node_continues_after_a_restart_in_a_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut expected = Vec::new();
    for restart in 0..4u8 {
        let log = Arc::new(open(directory.path()));
        let mut replicas = Replicas::open(NodeId(1), log, Options::default()).expect("the options are fine");
        replicas.create_group(B, &[NodeId(1)], 0).expect("the group opens");
        let mut outbox: Vec<Message> = Vec::new();
        let mut handed_out = Vec::new();
        loop {
            let round = replicas.round(&mut outbox).expect("the log works");
            handed_out
                .extend(round.committed.into_iter().flat_map(|committed| committed.entries).map(|entry| entry.data));
            if !round.more {
                break;
            }
        }
        assert_eq!(handed_out, expected);
        for number in 0..10u8 {
            replicas.propose(B, vec![restart, number]).expect("the node leads");
            let round = replicas.round(&mut outbox).expect("the log works");
            expected
                .extend(round.committed.into_iter().flat_map(|committed| committed.entries).map(|entry| entry.data));
        }
        assert_eq!(expected.len(), 10 * (usize::from(restart) + 1));
    }
}

/// What `kill -9` leaves behind: preallocated zeros, recycled files under their old and new names, nothing closed.
#[test]
fn a_killed_process_finds_everything_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = open(directory.path());
    write(&log, vec![(A, create()), (A, append(entries(1..4, 1))), (B, create())]);
    let (mut first, mut next) = (1, 1);
    for round in 0..300u64 {
        let mut new = entries(next..next + 1 + round % 5, 1);
        for entry in &mut new {
            entry.data = vec![round as u8; usize::try_from(round * 37 % 1500).expect("small")].into();
        }
        next += 1 + round % 5;
        write(&log, vec![(B, append(new))]);
        if round % 3 == 0 {
            first = next.saturating_sub(round % 7 + 1).max(first);
            let compact =
                GroupWrite::Append { entries: Vec::new(), hard_state: None, anchor: Some(anchor(first - 1, 1)) };
            write(&log, vec![(B, compact)]);
        }
        if round % 8 == 0 {
            log.reclaim_space().expect("reclaiming is fine");
        }
        if round % 5 != 0 {
            continue;
        }
        let image = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(image.path().join("files")).expect("writable");
        fs::copy(directory.path().join("FORMAT"), image.path().join("FORMAT")).expect("copyable");
        for file in fs::read_dir(directory.path().join("files")).expect("readable") {
            let file = file.expect("readable");
            fs::copy(file.path(), image.path().join("files").join(file.file_name())).expect("copyable");
        }
        let after_kill = open(image.path());
        assert_eq!(read(&after_kill, A, 1, 4), entries(1..4, 1));
        let stored = after_kill.load(B).expect("readable").expect("the group is there");
        assert_eq!((stored.anchor.compacted.index, stored.last_index), (first - 1, next - 1), "round {round}");
        assert_eq!(read(&after_kill, B, first, next), read(&log, B, first, next));
        write(&after_kill, vec![(B, append(entries(next..next + 2, 2)))]);
    }
}

#[test]
fn space_is_reclaimed_while_the_log_is_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = Arc::new(open(directory.path()));
    write(log.as_ref(), vec![(A, create()), (A, append(entries(1..4, 1))), (B, create())]);
    let done = Arc::new(AtomicBool::new(false));
    let background = {
        let (log, done) = (Arc::clone(&log), Arc::clone(&done));
        std::thread::spawn(move || {
            let mut reclaimed = 0u32;
            while !done.load(Ordering::Acquire) {
                log.reclaim_space().expect("reclaiming is fine");
                reclaimed += 1;
            }
            reclaimed
        })
    };
    let mut next = 1;
    for round in 0..400u64 {
        let mut new = entries(next..next + 3, 1);
        for entry in &mut new {
            entry.data = vec![round as u8; 700].into();
        }
        next += 3;
        let compact = GroupWrite::Append { entries: new, hard_state: None, anchor: Some(anchor(next.max(9) - 9, 1)) };
        write(log.as_ref(), vec![(B, compact)]);
    }
    done.store(true, Ordering::Release);
    assert!(background.join().expect("no panic") > 0);
    drop(log);
    let log = open(directory.path());
    assert_eq!(read(&log, A, 1, 4), entries(1..4, 1));
    assert_eq!(read(&log, B, next - 8, next).len(), 8);
}

/// The engine looks at the entries of the last record that it can read, and not at those before: what is opened can be read.
#[test]
fn what_a_damaged_end_leaves_can_be_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = LogOptions { file_bytes: 1 << 10, reclaim_above_bytes: 4 << 10 };
    let open = || RaftEngineLog::open(directory.path(), options);
    let data = |index: u64| format!("entry {index}: {}", "x".repeat(index as usize * 10)).into_bytes().into();
    let entry = |index| Entry { index, term: 1, data: data(index), ..Entry::default() };
    let log = open().expect("a new log");
    write(&log, vec![(A, create()), (B, create())]);
    for index in 1..=12 {
        let batch = || append(vec![entry(index)]);
        write(&log, vec![(A, batch()), (B, batch())]);
    }
    drop(log);
    let file = directory.path().join("files").join("0000000000000003.raftlog");
    let whole = fs::read(&file).expect("readable");
    let first = whole.windows(8).position(|bytes| bytes == b"entry 11").expect("the last but one");
    let mut opened = 0;
    // Somewhere there the header of the last record begins.
    for second in first + 100..first + 320 {
        let mut bytes = whole.clone();
        bytes[first] ^= 1;
        bytes[second] ^= 1;
        fs::write(&file, bytes).expect("writable");
        let Ok(log) = open() else { continue };
        opened += 1;
        for group in [A, B] {
            let last_index = log.load(group).expect("readable").expect("the group is there").last_index;
            let written: Vec<Entry> = (1..=last_index).map(entry).collect();
            assert_eq!(read(&log, group, 1, last_index + 1), written, "{first} and {second}");
        }
    }
    assert!(opened > 0, "the last two records may be damaged");
}

/// `raft-engine` knows the block that it read last by its file and place only, which both logs have.
#[test]
fn logs_that_are_read_by_the_same_thread_keep_their_entries_apart() {
    let directories = [tempfile::tempdir().expect("temporary directory"), tempfile::tempdir().expect("another")];
    let logs = directories.each_ref().map(|directory| open(directory.path()));
    for (log, term) in logs.iter().zip(1..) {
        write(log, vec![(A, create()), (A, append(entries(1..4, term)))]);
    }
    for (log, term) in logs.iter().zip(1..) {
        assert_eq!(read(log, A, 1, 4), entries(1..4, term));
    }
}

/// Its last sector may be on the disk and an earlier one not, whatever was in that.
#[test]
fn a_last_batch_that_is_torn_in_the_middle_is_cut_off() {
    let template = tempfile::tempdir().expect("a temporary directory");
    let (file, ends) = three_batches(template.path());
    let whole = fs::read(&file).expect("readable");
    for torn_at in ends[2]..ends[3] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        drop(open(directory.path()));
        let mut bytes = whole.clone();
        bytes[torn_at] ^= 0x55;
        fs::write(directory.path().join("files").join(file.file_name().expect("a name")), bytes).expect("writable");
        let log = open(directory.path());
        let last_index = log.load(A).expect("readable").expect("the group is there").last_index;
        assert_eq!(last_index, 2, "torn at {torn_at}");
        write(&log, vec![(A, append(entries(3..5, 2)))]);
        drop(log);
        assert_eq!(read(&open(directory.path()), A, 1, 5), [entries(1..3, 1), entries(3..5, 2)].concat());
    }
}

/// A file that was prepared has zeros behind its content, all of it when the process ended right after it was taken.
#[test]
fn zeros_behind_the_last_record_and_a_file_of_zeros_are_no_damage() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (file, _) = three_batches(directory.path());
    let content = fs::read(&file).expect("readable");
    let prepared_bytes = 1 << 20;
    for zeros in [1, 15, 5_000, prepared_bytes - content.len()] {
        fs::write(&file, [content.as_slice(), &vec![0; zeros]].concat()).expect("writable");
        assert_eq!(read(&open(directory.path()), A, 1, 4), entries(1..4, 1));
    }
    fs::write(&file, &content).expect("writable");
    fs::write(next_file(&file), vec![0; prepared_bytes]).expect("writable");
    for index in [4, 6] {
        let log = open(directory.path());
        assert_eq!(read(&log, A, 1, index), entries(1..index, 1));
        write(&log, vec![(A, append(entries(index..index + 2, 1)))]);
    }
    let left_behind = directory.path().join("next-file");
    fs::write(&left_behind, [0; 100]).expect("writable");
    assert_eq!(read(&open(directory.path()), A, 1, 8), entries(1..8, 1));
    assert!(!left_behind.exists(), "what a crash left of a file that was being prepared is removed");
}

#[test]
fn a_log_that_lost_its_files_is_refused_and_one_that_was_hardly_begun_goes_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = || RaftEngineLog::open(directory.path(), LogOptions::default());
    // The process stopped before the marker was written, with or without the directory.
    std::fs::write(directory.path().join("FORMAT"), "").expect("writable");
    std::fs::create_dir(directory.path().join("files")).expect("writable");
    drop(open().expect("nothing was logged"));
    std::fs::remove_dir_all(directory.path().join("files")).expect("there");
    let Err(error) = open() else { panic!("its files are gone") };
    assert!(matches!(error, LogError::FilesMissing { .. }), "{error}");
    assert!(error.to_string().contains("has lost its directory 'files'"), "{error}");
}
