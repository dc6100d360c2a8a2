//! The state of a partition as a stream, as replicas send it and checkpoints are restored from it.
//!
//! With an even first byte the rest says where a sound stream is damaged: it must be refused. With an odd one the rest is
//! the content of a stream whose checksums are all right: whatever it says, it is refused or can be read.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use state::{Queue, Store, StoreOptions, Table};

state::tables! {
    struct Tables {
        numbers: Table<u64, u64> = 1,
        texts: Table<String, String> = 2,
        queue: Queue<u64, u64, ()> = 3,
    }
}

static SOUND: OnceLock<Vec<u8>> = OnceLock::new();

fn options() -> StoreOptions {
    StoreOptions { map_size_bytes: 1 << 24, ..StoreOptions::default() }
}

fn sound() -> Vec<u8> {
    let directory = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let mut tables = Tables::open(&Store::open(directory.path(), &options()).expect("a new store"));
    for number in 0..40 {
        tables.numbers.insert_new(number, number * 3);
        tables.texts.insert_new(format!("name {number}"), "x".repeat(number as usize * 20));
    }
    tables.commit().expect("it fits");
    let written = tables.freeze(7, b"metadata".to_vec()).expect("it freezes").write().expect("there is room");
    drop(tables.release(written).expect("it was written"));
    let mut stream = Vec::new();
    tables.store().snapshot_to(&mut stream).expect("it is readable");
    stream
}

/// A stream with entries that the input makes up, under right checksums.
fn made_up(input: &[u8]) -> Vec<u8> {
    let mut stream = b"osmstate".to_vec();
    let mut add = |key: &[u8], record: &[u8]| {
        stream.extend((key.len() as u16).to_le_bytes());
        stream.extend((record.len() as u32).to_le_bytes());
        stream.extend(key);
        stream.extend(record);
    };
    let sealed = |key: &[u8], value: &[u8]| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(key);
        hasher.update(value);
        [&hasher.finalize().to_le_bytes(), value].concat()
    };
    let mut rest = input;
    let mut header = 1_u32.to_le_bytes().to_vec();
    let header_bytes = rest.len().min(16);
    let mut body = 1_u32.to_le_bytes().to_vec();
    body.extend(&rest[..header_bytes]);
    rest = &rest[header_bytes..];
    header.extend(sealed(&[0], &body));
    add(&[0], &header);
    let mut entries = 0_u64;
    while let [key_length, value_length, behind @ ..] = rest {
        let (key_length, value_length) = (usize::from(*key_length), usize::from(*value_length));
        let Some((key, behind)) = behind.split_at_checked(key_length) else { break };
        let Some((value, behind)) = behind.split_at_checked(value_length) else { break };
        add(key, &sealed(key, value));
        entries += 1;
        rest = behind;
    }
    stream.extend(0_u16.to_le_bytes());
    stream.extend(entries.to_le_bytes());
    let checksum = crc32fast::hash(&stream);
    stream.extend(checksum.to_le_bytes());
    stream
}

/// Restores and reads everything; false when the stream is refused.
fn restore(stream: &[u8]) -> bool {
    let directory = tempfile::tempdir_in("/dev/shm").expect("there is room");
    if Store::restore_from(directory.path(), &options(), stream).is_err() {
        return false;
    }
    let store = Store::open(directory.path(), &options()).expect("what was restored can be opened");
    let tables = Tables::open(&store);
    let _ = tables.numbers.iter().count();
    let _ = tables.numbers.get(&1);
    let _ = tables.texts.iter().count();
    let _ = tables.texts.get(&"name 1".to_owned());
    let _ = tables.queue.iter(&0).count();
    let _ = tables.queue.first(&1);
    let mut copy = Vec::new();
    let _ = store.snapshot_to(&mut copy);
    true
}

fuzz_target!(|input: &[u8]| {
    let Some((mode, input)) = input.split_first() else { return };
    if mode % 2 == 1 {
        restore(&made_up(input));
        return;
    }
    let sound = SOUND.get_or_init(sound);
    let mut stream = sound.clone();
    for edit in input.chunks_exact(4).take(8) {
        let place = usize::from(u16::from_be_bytes([edit[1], edit[2]])) % (stream.len() + 1);
        match edit[0] % 4 {
            0 => stream.get_mut(place).into_iter().for_each(|byte| *byte = edit[3]),
            1 => stream.truncate(place),
            2 => stream.insert(place, edit[3]),
            _ => drop(stream.drain(place..(place + usize::from(edit[3])).min(stream.len()))),
        }
    }
    let is_taken = restore(&stream);
    // What is behind the end of the stream is not read.
    assert!(!is_taken || stream.starts_with(sound), "a damaged stream was taken");
});
