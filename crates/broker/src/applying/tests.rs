use super::*;

use protocol::{Payload, ProcessInstanceIntent};

const PARTITION: PartitionId = PartitionId(3);

fn cancel(instance: Key) -> Command {
    Command::new(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()))
}

/// The process begins to apply a command of an entry and ends: nothing is dropped, just as when it is killed.
fn end_at(path: &Path, index: u64) -> Option<Ended> {
    let note = ApplyingNote::open(path, PARTITION).expect("a directory");
    let found = note.ended().cloned();
    note.begin(index);
    let instance = Key::new(PARTITION, 17);
    let mut watching =
        Watching { note: &note, refused: &[], times: &CommandTimes::of(PartitionId(1)), index, commands: 9 };
    assert_eq!(watching.before(4, &cancel(instance), instance), Decision::Process);
    std::mem::forget(note);
    found
}

fn times(path: &Path) -> Option<u32> {
    read(path, PARTITION).expect("readable").map(|ended| ended.times)
}

#[test]
fn ends_at_the_same_entry_are_counted_and_described() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("partitions").join("3").join(FILE_NAME);
    assert_eq!(times(&path), None);
    assert_eq!(end_at(&path, 120), None, "a new note tells of nothing");
    assert_eq!(times(&path), Some(1), "who only reads counts the end that the next start will count");
    assert_eq!(times(&path), Some(1), "and does not change it");
    assert!(!end_at(&path, 120).expect("it ended").is_poisoned());
    assert!(!end_at(&path, 120).expect("it ended again").is_poisoned(), "two kills may hit the same entry");
    let ended = ApplyingNote::open(&path, PARTITION).expect("a directory").ended().cloned().expect("it ended again");
    let instance = Key::new(PARTITION, 17);
    let applying = Applying {
        index: 120,
        number: 4,
        commands: 9,
        key: instance,
        process_instance: instance,
        command: "PROCESS_INSTANCE CANCEL".to_owned(),
    };
    assert_eq!(ended, Ended { applying, times: 3 });
    assert!(ended.is_poisoned());
    assert_eq!(ended.applying.to_string(), "command 4 of 9 in entry 120 of the log");
    assert_eq!(times(&path), Some(3), "it stays so until somebody decides");
    assert_eq!(end_at(&path, 121).map(|ended| ended.times), Some(3));
    assert_eq!(times(&path), Some(1), "another entry is another count");
}

#[test]
fn going_beyond_an_entry_or_stopping_cleanly_forgets_it() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(FILE_NAME);
    end_at(&path, 7);
    let mut note = ApplyingNote::open(&path, PARTITION).expect("a directory");
    note.begin(6);
    note.applied(6);
    assert_eq!(note.ended().map(|ended| ended.times), Some(1), "it is not beyond");
    note.begin(7);
    note.applied(7);
    assert_eq!(note.ended(), None);
    drop(note);
    assert_eq!(times(&path), None);
    end_at(&path, 7);
    ApplyingNote::open(&path, PARTITION).expect("a directory").forget();
    assert_eq!(times(&path), None);
}

#[test]
fn an_entry_that_cannot_even_be_read_is_named_as_a_whole() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(FILE_NAME);
    let note = ApplyingNote::open(&path, PARTITION).expect("a directory");
    note.begin(55);
    std::mem::forget(note);
    let ended = read(&path, PARTITION).expect("readable").expect("it ended");
    assert_eq!((ended.applying.number, ended.applying.to_string().as_str()), (0, "entry 55 of the log"));
    let advice = advice(Path::new("/data"), PARTITION, &ended.applying);
    assert!(advice.contains("'osmia doctor --data /data --refuse 3:55'"), "{advice}");
}

#[test]
fn a_damaged_note_is_dropped_and_another_version_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(FILE_NAME);
    end_at(&path, 120);
    let intact = std::fs::read(&path).expect("there");
    // Every byte of the note: a damaged note reports nothing.
    for at in 64..64 + NOTE_WORDS * 8 {
        let mut torn = intact.clone();
        torn[at] ^= 0x20;
        std::fs::write(&path, torn).expect("writable");
        assert_eq!(read(&path, PARTITION).expect("readable"), None, "byte {at} is part of the note");
    }
    for (damage, bytes) in [("cut", &intact[..100]), ("zeros", &[0; 4096][..]), ("empty", &[][..])] {
        std::fs::write(&path, bytes).expect("writable");
        assert_eq!(ApplyingNote::open(&path, PARTITION).expect(damage).ended(), None);
        assert_eq!(end_at(&path, 9), None, "it is a new note");
        assert_eq!(times(&path), Some(1), "that works");
    }
    let error = ApplyingNote::open(&path, PartitionId(4)).expect_err("another partition's").to_string();
    assert!(error.contains("a file 'applying' of format 1 of partition 3 for partition 4"), "{error}");
}

#[test]
fn refused_commands_survive_and_damage_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("refused");
    let mut list = RefusedCommands::read(&path, PARTITION).expect("an absent list is empty");
    assert_eq!(list.of(12, b"batch"), []);
    let refused = |index, number| RefusedCommand { index, checksum: crc32fast::hash(b"batch"), number };
    list.add(refused(12, Some(2)), 0);
    list.add(refused(9, None), 0);
    list.add(refused(12, Some(2)), 0);
    list.write(&path).expect("writable");
    let list = RefusedCommands::read(&path, PARTITION).expect("intact");
    assert_eq!(list.all(), [refused(9, None), refused(12, Some(2))]);
    assert_eq!(list.of(12, b"batch"), [refused(12, Some(2))]);
    assert_eq!(list.of(12, b"other"), [], "another entry came to be at this place");
    assert_eq!(list.of(11, b"batch"), []);
    let mut pruned = list.clone();
    pruned.add(refused(13, None), 9);
    assert_eq!(pruned.all(), [refused(12, Some(2)), refused(13, None)], "what a checkpoint holds is dropped");

    let text = std::fs::read_to_string(&path).expect("there");
    let damaged = [
        (text.replace("entry 12", "entry 13"), "its checksum is wrong"),
        (text.replace("format 1", "format 2"), "it begins with 'osmia refused commands format 2'"),
        (text[..text.len() - 1].to_owned(), "it ends early"),
        (String::new(), "it begins with ''"),
    ];
    for (content, problem) in damaged {
        std::fs::write(&path, &content).expect("writable");
        let error = RefusedCommands::read(&path, PARTITION).expect_err(&content).to_string();
        assert!(error.contains(problem) && error.contains("of partition 3"), "{error}");
    }
}

#[test]
fn a_refused_command_is_noted_and_not_processed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let note = ApplyingNote::open(&directory.path().join(FILE_NAME), PARTITION).expect("a directory");
    let command = cancel(Key::new(PARTITION, 1));
    let refused = [RefusedCommand { index: 5, checksum: 0, number: Some(2) }];
    let mut watching =
        Watching { note: &note, refused: &refused, times: &CommandTimes::of(PartitionId(1)), index: 5, commands: 3 };
    let decisions = [1, 2, 3].map(|number| watching.before(number, &command, Key::NONE) == Decision::Process);
    assert_eq!(decisions, [true, false, true]);
    let all = [RefusedCommand { index: 5, checksum: 0, number: None }];
    let mut watching =
        Watching { note: &note, refused: &all, times: &CommandTimes::of(PartitionId(1)), index: 5, commands: 3 };
    assert!([1, 2, 3].iter().all(|number| watching.before(*number, &command, Key::NONE) != Decision::Process));
}

/// Whoever waits for the node kills it before a checkpoint holds what the slow command did.
#[test]
fn a_slow_command_is_poison_at_its_third_start_unless_a_checkpoint_holds_it() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(FILE_NAME);
    let slow = |number| Applying {
        index: 8,
        number,
        commands: 2,
        key: Key::NONE,
        process_instance: Key::NONE,
        command: "VARIABLE_DOCUMENT UPDATE".to_owned(),
    };
    let apply_slowly = || {
        let mut note = ApplyingNote::open(&path, PARTITION).expect("a directory");
        note.begin(8);
        note.slow(slow(2));
        note.applied(8);
        note.begin(9);
        note.slow(Applying { index: 9, ..slow(1) });
        note.applied(9);
        note
    };
    for expected in [1, 2] {
        drop(apply_slowly());
        let ended = read(&path, PARTITION).expect("readable").expect("it was slow");
        assert_eq!((ended.times, ended.is_poisoned()), (expected, false));
        assert_eq!(ended.applying, slow(2), "the first one is what the next start meets first");
    }
    let mut note = apply_slowly();
    assert!(read(&path, PARTITION).expect("readable").expect("it was slow").is_poisoned(), "the third start");
    note.checkpointed(7);
    assert_eq!(times(&path), Some(3));
    note.checkpointed(8);
    assert_eq!(times(&path), None, "nobody applies it again");
    drop(apply_slowly());
    let mut note = ApplyingNote::open(&path, PARTITION).expect("a directory");
    note.begin(8);
    note.applied(8);
    assert_eq!(times(&path), None, "it was not slow this time");
}

/// Otherwise the two would take turns in the note, and every start would end the process.
#[test]
fn a_slow_command_keeps_the_count_of_an_entry_after_it_that_ends_the_process() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(FILE_NAME);
    let slow = Applying {
        index: 50,
        number: 1,
        commands: 1,
        key: Key::NONE,
        process_instance: Key::NONE,
        command: "VARIABLE_DOCUMENT UPDATE".to_owned(),
    };
    for expected in 1..=ENDS_MAX {
        let mut note = ApplyingNote::open(&path, PARTITION).expect("a directory");
        note.begin(50);
        note.slow(slow.clone());
        note.applied(50);
        note.checkpointed(50);
        note.begin(100);
        std::mem::forget(note);
        let ended = read(&path, PARTITION).expect("readable").expect("it ended");
        assert_eq!((ended.applying.index, ended.times), (100, expected));
    }
    let mut note = ApplyingNote::open(&path, PARTITION).expect("a directory");
    assert!(note.ended().expect("it ended").is_poisoned());
    note.begin(50);
    note.slow(slow);
    note.applied(50);
    note.begin(100);
    note.applied(100);
    assert_eq!(note.ended(), None, "it went beyond the entry");
}
