//! A damaged log directory: refused by name, or opened with what was written, of which only the end of the last batch may be
//! missing. The input says what is damaged: for each edit a file, a place, and what stands there then.
#![no_main]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;
use std::{fs, process};

use libfuzzer_sys::fuzz_target;
use replication::{Anchor, GroupId, GroupWrite, LogOptions, LogStore, Position, RaftEngineLog, WriteBatch};
use raft::eraftpb::{Entry, HardState};

const GROUPS: [GroupId; 2] = [GroupId(0), GroupId(7)];
/// Entries of each group, one in each batch.
const ENTRIES: u64 = 12;
/// Bytes of an edit: file, kind, place (two), byte.
const EDIT_BYTES: usize = 5;

/// The files of a sound log, by their names.
static SOUND: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();

fn options() -> LogOptions {
    LogOptions { file_bytes: 1 << 10, reclaim_above_bytes: 4 << 10 }
}

fn entry(index: u64) -> Entry {
    let data = format!("entry {index}: {}", "x".repeat(index as usize * 10)).into_bytes().into();
    Entry { index, term: 1, data, ..Entry::default() }
}

fn sound() -> Vec<(String, Vec<u8>)> {
    let directory = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let log = RaftEngineLog::open(directory.path(), options()).expect("a new log");
    let create = || GroupWrite::Replace {
        hard_state: HardState { term: 1, ..HardState::default() },
        anchor: Anchor { compacted: Position { index: 0, term: 0 }, ..Anchor::default() },
        entries: Vec::new(),
    };
    let write = |writes| log.write(&WriteBatch { writes }).expect("the write is fine");
    write(GROUPS.iter().map(|group| (*group, create())).collect());
    for index in 1..=ENTRIES {
        let append = || GroupWrite::Append { entries: vec![entry(index)], hard_state: None, anchor: None };
        write(GROUPS.iter().map(|group| (*group, append())).collect());
    }
    drop(log);
    let mut files = Vec::new();
    collect(directory.path(), directory.path(), &mut files);
    files.sort();
    files
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for file in fs::read_dir(directory).expect("it is a directory") {
        let path = file.expect("readable").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("inside").to_str().expect("text").to_owned();
            files.push((name, fs::read(&path).expect("readable")));
        }
    }
}

fn damage(files: &mut [(String, Vec<u8>)], edits: &[u8]) {
    let count = files.len();
    for edit in edits.chunks_exact(EDIT_BYTES) {
        let content = &mut files[usize::from(edit[0]) % count].1;
        let place = usize::from(u16::from_be_bytes([edit[2], edit[3]])) % (content.len() + 1);
        match edit[1] % 5 {
            0 => content.get_mut(place).into_iter().for_each(|byte| *byte = edit[4]),
            1 => content.get_mut(place).into_iter().for_each(|byte| *byte ^= 1 << (edit[4] % 8)),
            2 => content.truncate(place),
            3 => content.insert(place, edit[4]),
            _ => content.resize(content.len() + usize::from(edit[4]) * 16, 0),
        }
    }
}

fn open_and_read(directory: &Path) {
    let Ok(log) = RaftEngineLog::open(directory, options()) else { return };
    let groups = log.groups().expect("the catalogue was read");
    let mut last = Vec::new();
    for group in groups {
        assert!(GROUPS.contains(&group), "{group:?} was never written");
        // An older file that ends between two records is whole by itself; what it lacks is found here.
        let Ok(stored) = log.load(group) else { return };
        let stored = stored.expect("the catalogue names it");
        assert!(stored.last_index <= ENTRIES, "entries that were never written");
        // Every byte was looked at when the log was opened, so nothing is found damaged now.
        let entries = log.read(group, 1, stored.last_index + 1, u64::MAX).expect("the entries can be read");
        let written: Vec<Entry> = (1..=stored.last_index).map(entry).collect();
        assert_eq!(entries, written, "other entries than were written");
        last.push(stored.last_index);
    }
    // Each batch has an entry of each group: both are there, or none is.
    assert!(last.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {last:?}");
}

fuzz_target!(|edits: &[u8]| {
    let sound = SOUND.get_or_init(|| {
        // Panics of the library below are caught by the log; only what comes out of it counts.
        std::panic::set_hook(Box::new(|_| {}));
        sound()
    });
    let mut files = sound.clone();
    damage(&mut files, &edits[..edits.len().min(EDIT_BYTES * 8)]);
    let directory = tempfile::tempdir_in("/dev/shm").expect("there is room");
    for (name, content) in &files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("it is inside")).expect("there is room");
        fs::write(path, content).expect("there is room");
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| open_and_read(directory.path()))) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        eprintln!("panic: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?"));
        process::abort();
    }
});
