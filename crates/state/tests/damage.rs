//! Damaged snapshot streams are refused, wherever the damage is; what was there before stays.

use std::path::Path;

use state::{Store, StoreError, StoreOptions, Table};

state::tables! {
    struct Tables {
        numbers: Table<u64, u64> = 1,
        texts: Table<String, String> = 2,
    }
}

fn options() -> StoreOptions {
    StoreOptions { map_size_bytes: 1 << 26, ..StoreOptions::default() }
}

fn stream_of(directory: &Path) -> Vec<u8> {
    let mut tables = Tables::open(&Store::open(directory, &options()).expect("the store opens"));
    for number in 0..30 {
        tables.numbers.insert_new(number, number * 3);
        tables.texts.insert_new(format!("name {number}"), "x".repeat(number as usize * 7));
    }
    tables.commit().unwrap();
    let written = tables.freeze(7, b"metadata".to_vec()).unwrap().write().unwrap();
    drop(tables.release(written).unwrap());
    let mut stream = Vec::new();
    tables.store().snapshot_to(&mut stream).unwrap();
    stream
}

/// The same numbers in every run.
fn next_random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).expect("31 bits fit")
}

#[test]
fn a_damaged_stream_replaces_nothing() {
    let source = tempfile::tempdir().unwrap();
    let stream = stream_of(source.path());
    let target = tempfile::tempdir().unwrap();
    let recovered = Store::restore_from(target.path(), &options(), stream.as_slice()).expect("it is sound");
    assert_eq!((recovered.applied, recovered.metadata.as_slice()), (7, b"metadata".as_slice()));
    let mut state = 42;
    for round in 0..300 {
        let mut damaged = stream.clone();
        let place = next_random(&mut state) % damaged.len();
        match round % 4 {
            0 => damaged[place] ^= 1 << (next_random(&mut state) % 8),
            1 => damaged.truncate(place),
            2 => damaged.insert(place, next_random(&mut state).to_le_bytes()[0] | 1),
            _ => drop(damaged.drain(place..(place + 1 + next_random(&mut state) % 50).min(stream.len()))),
        }
        if damaged == stream {
            continue;
        }
        let refusal = Store::restore_from(target.path(), &options(), damaged.as_slice());
        let refusal = refusal.expect_err("a damaged stream is refused");
        assert!(!matches!(refusal, StoreError::NoFile { .. }), "{refusal}");
    }
    let tables = Tables::open(&Store::open(target.path(), &options()).expect("the old state stays"));
    assert_eq!((tables.numbers.iter().count(), tables.texts.iter().count()), (30, 30));
}
