//! Checkpoints, crashes, damage and snapshots.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use state::{Checkpoint, LONGEST_KEY_BYTES, Queue, Schema, Store, StoreError, StoreOptions, Table, TableSet, Written};

state::tables! {
    struct Tables {
        numbers: Table<u64, u64> = 1,
        texts: Table<String, String> = 2,
        queue: Queue<u64, u64, ()> = 3,
    }
}

fn options() -> StoreOptions {
    StoreOptions { map_size_bytes: 1 << 30, ..StoreOptions::default() }
}

fn open(directory: &Path) -> Tables {
    Tables::open(&Store::open(directory, &options()).expect("the store opens"))
}

fn checkpoint(tables: &mut Tables, applied: u64) {
    let written = frozen(tables, applied).write().expect("the checkpoint is written");
    release(tables, written);
}

fn frozen(tables: &mut Tables, applied: u64) -> Checkpoint {
    tables.freeze(applied, vec![]).expect("the tables freeze")
}

fn release(tables: &mut Tables, written: Written) {
    drop(tables.release(written).expect("the checkpoint is released"));
}

fn overlay_entries(tables: &Tables) -> u64 {
    tables.statistics().layers.overlay_entries
}

#[test]
fn what_comes_and_goes_between_two_checkpoints_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    tables.numbers.insert_new(1, 10);
    tables.commit().unwrap();
    tables.numbers.update(&1, |number| *number += 1);
    tables.numbers.delete(&1);
    tables.commit().unwrap();
    assert_eq!(overlay_entries(&tables), 0);
    assert_eq!(tables.overlay_bytes(), 0);
}

#[test]
fn a_deleted_entry_does_not_come_back_from_a_layer_below() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    tables.numbers.insert_new(1, 10);
    tables.commit().unwrap();
    checkpoint(&mut tables, 1);

    // The value below is in the file.
    tables.numbers.put(1, 11);
    tables.numbers.delete(&1);
    tables.commit().unwrap();
    assert_eq!(tables.numbers.get(&1), None);
    // Inserted again above the mark, and deleted again: the mark must stay.
    tables.numbers.insert_new(1, 12);
    tables.numbers.delete(&1);
    tables.commit().unwrap();
    assert_eq!(tables.numbers.get(&1), None);

    // The mark itself is frozen; above it, the same again.
    let first = frozen(&mut tables, 2);
    tables.numbers.insert_new(1, 13);
    tables.commit().unwrap();
    tables.numbers.delete(&1);
    tables.commit().unwrap();
    assert_eq!(tables.numbers.get(&1), None);
    // The value below is frozen.
    tables.numbers.insert_new(2, 20);
    tables.commit().unwrap();
    let written = first.write().unwrap();
    release(&mut tables, written);
    let second = frozen(&mut tables, 3);
    tables.numbers.update(&2, |number| *number += 1);
    tables.numbers.delete(&2);
    tables.commit().unwrap();
    let written = second.write().unwrap();
    release(&mut tables, written);
    assert_eq!(tables.numbers.get(&2), None);
    assert!(tables.numbers.is_empty());
    checkpoint(&mut tables, 4);
    drop((tables, first, second));
    assert!(open(directory.path()).numbers.is_empty());
}

#[test]
fn a_crash_leaves_the_last_written_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    tables.numbers.insert_new(1, 1);
    tables.commit().unwrap();
    checkpoint(&mut tables, 7);
    tables.numbers.insert_new(2, 2);
    tables.commit().unwrap();
    let written = tables.freeze(8, b"exporter positions".to_vec()).unwrap().write().unwrap();
    tables.numbers.insert_new(3, 3);
    tables.commit().unwrap();
    drop((tables, written));

    let tables = open(directory.path());
    let recovered = tables.store().recovered();
    assert_eq!((recovered.applied, recovered.metadata.as_slice()), (8, b"exporter positions".as_slice()));
    assert_eq!(tables.numbers.iter().map(|(key, _)| key).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_checkpoint_that_fails_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let small = StoreOptions { map_size_bytes: 1 << 20, ..options() };
    let mut tables = Tables::open(&Store::open(directory.path(), &small).unwrap());
    tables.texts.insert_new("small".into(), "first".into());
    tables.commit().unwrap();
    checkpoint(&mut tables, 1);
    for key in 0..100 {
        tables.texts.insert_new(format!("large {key}"), "x".repeat(50_000));
    }
    tables.commit().unwrap();

    let checkpoint = frozen(&mut tables, 2);
    for _ in 0..2 {
        let error = checkpoint.write().expect_err("the file cannot hold this");
        assert!(error.is_file_full(), "{error}");
        assert!(error.to_string().contains("data.mdb has reached its largest size of 1048576 bytes"), "{error}");
        assert!(error.to_string().contains("data.mdb"), "{error}");
    }
    assert_eq!(tables.texts.iter().count(), 101);
    assert!(tables.fault().is_none(), "the tables go on");
    assert!(matches!(tables.freeze(3, vec![]), Err(StoreError::CheckpointUnderWay)));
    drop((tables, checkpoint));
    let tables = open(directory.path());
    assert_eq!(tables.store().recovered().applied, 1);
    assert_eq!(tables.texts.iter().count(), 1);
}

#[test]
fn a_file_that_is_nearly_full_says_so_until_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let small = StoreOptions { map_size_bytes: 1 << 20, ..options() };
    let mut tables = Tables::open(&Store::open(directory.path(), &small).unwrap());
    let write = |tables: &mut Tables, applied| {
        tables.commit().unwrap();
        let written = frozen(tables, applied).write().expect("it fits");
        let nearly_full = written.nearly_full();
        drop(tables.release(written).unwrap());
        nearly_full
    };
    for key in 0..50 {
        tables.texts.insert_new(format!("large {key}"), "x".repeat(16_000));
    }
    assert_eq!(write(&mut tables, 1), None);
    for key in 50..61 {
        tables.texts.insert_new(format!("large {key}"), "x".repeat(16_000));
    }
    let reason = write(&mut tables, 2).expect("less than a sixteenth is left");
    assert!(reason.contains("data.mdb uses") && reason.contains("its largest size is 1048576 bytes"), "{reason}");
    for key in 0..30 {
        tables.texts.delete(&format!("large {key}"));
    }
    assert_eq!(write(&mut tables, 3), None);
}

#[test]
fn a_rolled_back_command_leaves_no_trace() {
    let mut tables = Tables::in_memory();
    tables.numbers.insert_new(1, 1);
    tables.queue.insert(1, 5, ());
    tables.commit().unwrap();
    let before = (tables.state_hash().unwrap(), tables.statistics());
    tables.begin();
    tables.numbers.update(&1, |number| *number = 2);
    tables.numbers.delete(&1);
    tables.numbers.insert_new(1, 3);
    tables.numbers.insert_new(2, 4);
    tables.queue.remove(&1, &5);
    assert!(tables.queue.is_empty(&1));
    tables.texts.insert_new("x".repeat(LONGEST_KEY_BYTES + 1), String::new());
    let error = tables.commit().expect_err("the key is too long");
    assert!(error.concerns_one_command() && error.to_string().contains("texts"), "{error}");
    assert_eq!((tables.state_hash().unwrap(), tables.statistics()), before);
    assert_eq!(tables.queue.first(&1).map(|(key, _)| key), Some(5));
    tables.numbers.insert_new(9, 9);
    tables.commit().expect("the next command is not affected");
    assert!(matches!(tables.freeze(1, vec![]), Err(StoreError::NoFile { .. })));
}

#[test]
fn a_million_waiting_entries_leave_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    for key in 0..200_000 {
        tables.numbers.insert_new(key, key);
    }
    tables.commit().unwrap();
    assert!(tables.overlay_bytes() > 200_000 * 16);
    let checkpoint = frozen(&mut tables, 1);
    assert_eq!(overlay_entries(&tables), 0);
    let written = checkpoint.write().unwrap();
    assert_eq!(written.statistics().entries_written, 200_000);
    drop(checkpoint);
    release(&mut tables, written);
    let layers = tables.statistics().layers;
    assert_eq!(
        (layers.overlay_entries, layers.frozen_entries, layers.overlay_bytes, layers.frozen_bytes),
        (0, 0, 0, 0)
    );
    assert_eq!(tables.numbers.get(&123_456).as_deref(), Some(&123_456));
    assert_eq!(tables.numbers.range(1_000..1_010).count(), 10);
}

/// Flips one bit in the file at the place where the bytes are found.
fn flip(directory: &Path, bytes: &[u8]) {
    let path = directory.join("data.mdb");
    let mut content = fs::read(&path).unwrap();
    let places: Vec<_> = content.windows(bytes.len()).enumerate().filter(|(_, window)| *window == bytes).collect();
    let place = places.last().expect("the file holds the bytes").0;
    content[place] ^= 1;
    fs::write(&path, content).unwrap();
}

#[test]
fn a_damaged_entry_is_named_and_stops_the_command() {
    for small_table_entries in [0, 32] {
        check_damaged_entry(&StoreOptions { small_table_entries, ..options() });
    }
}

fn check_damaged_entry(options: &StoreOptions) {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    tables.texts.insert_new("invoice".into(), "a text to be found".into());
    tables.texts.insert_new("order".into(), "another".into());
    tables.commit().unwrap();
    checkpoint(&mut tables, 1);
    drop(tables);
    flip(directory.path(), b"a text to be found");

    let mut tables = Tables::open(&Store::open(directory.path(), options).unwrap());
    tables.texts.put("order".into(), "changed".into());
    assert_eq!(tables.texts.get(&"invoice".into()), None);
    let error = tables.commit().expect_err("the command read a damaged entry").to_string();
    for part in ["texts", "invoice", "data.mdb", "checksum"] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
    assert_eq!(tables.texts.get(&"order".into()).as_deref().map(String::as_str), Some("another"));
    tables.rollback();
    assert!(tables.fault().is_some(), "damage is not forgotten");
    assert!(tables.state_hash().is_err());
    assert!(tables.store().snapshot_to(Vec::new()).unwrap_err().to_string().contains("texts"));
}

#[test]
fn an_unknown_version_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    tables.numbers.insert_new(1, 1);
    tables.commit().unwrap();
    checkpoint(&mut tables, 1);
    drop(tables);
    let newer = |schema| StoreOptions { schema, ..options() };
    let error = Store::open(directory.path(), &newer(Schema { version: 9, oldest_reader: 9, steps: &[] })).unwrap_err();
    assert!(matches!(error, StoreError::TooOldVersion { what: "schema", found: 1, known: 9, .. }), "{error}");

    // The header begins with its format, the oldest format whose programs read it, and the length and name of who wrote it.
    let path = directory.path().join("data.mdb");
    let mut content = fs::read(&path).unwrap();
    let name = b"osmia ";
    let places: Vec<_> = content.windows(name.len()).enumerate().filter(|(_, window)| *window == name).collect();
    let place = places.last().expect("the header is found").0 - 9;
    assert_eq!(content[place..place + 8], [1, 0, 0, 0, 1, 0, 0, 0]);
    content[place] = 77;
    fs::write(&path, &content).unwrap();
    Store::open(directory.path(), &options()).expect("a newer format that older programs may read");
    content[place + 4] = 76;
    fs::write(&path, &content).unwrap();
    let error = Store::open(directory.path(), &options()).unwrap_err();
    let StoreError::UnknownVersion { what: "format", found: 77, oldest_reader: 76, known: 1, .. } = &error else {
        panic!("{error}")
    };
    let version = env!("CARGO_PKG_VERSION");
    assert!(error.to_string().contains(&format!("it was written by osmia {version}: start that version")), "{error}");

    content[place..place + 8].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
    content[place + 9 + name.len() + version.len() + 1] ^= 1;
    fs::write(&path, &content).unwrap();
    assert!(matches!(Store::open(directory.path(), &options()), Err(StoreError::DamagedFile { .. })));
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    for key in 0..10_000 {
        tables.numbers.insert_new(key, key);
    }
    tables.commit().unwrap();
    checkpoint(&mut tables, 1);
    drop(tables);
    let path = directory.path().join("data.mdb");
    let length = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
    assert!(matches!(Store::open(directory.path(), &options()), Err(StoreError::DamagedFile { .. })));
}

/// What the tables hold.
type Texts = BTreeMap<String, String>;

fn texts(tables: &Tables) -> Texts {
    tables.texts.iter().map(|(key, text)| (key, text.to_string())).collect()
}

/// A checkpoint whose last pages were taken at the end of the file and given back: large keys make the tree deep, so that a
/// deletion merges pages on several levels. It ends with what the tables hold, and the lengths of the file before and after it was made as long
/// as its tree says.
fn checkpoint_that_gives_pages_back(directory: &Path) -> (Texts, u64, u64) {
    let name = |key: u64| format!("{key:0400}");
    for seed in 270..400_u64 {
        let here = directory.join(seed.to_string());
        let mut tables = open(&here);
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        let keys = 20 + below(200);
        for round in 1..10 {
            if below(3) > 0 {
                let (first, count) = (below(keys), below(keys));
                for key in (first..(first + count).min(keys)).filter(|_| below(4) > 0) {
                    // Some have pages of their own.
                    let length = if key % 40 == 0 { 9_000 } else { 3 };
                    tables.texts.put(name(key), format!("{round:0length$}"));
                }
            }
            if below(2) == 0 {
                let (first, count) = (below(keys), below(keys));
                (first..(first + count).min(keys)).for_each(|key| tables.texts.delete(&name(key)));
            }
            tables.commit().unwrap();
            let written = frozen(&mut tables, round).write().expect("the checkpoint is written");
            let committed = written.statistics().committed_file_bytes;
            release(&mut tables, written);
            let length = fs::metadata(here.join("data.mdb")).unwrap().len();
            if committed < length && texts(&tables).len() > 10 {
                let held = texts(&tables);
                drop(tables);
                fs::rename(here.join("data.mdb"), directory.join("data.mdb")).unwrap();
                return (held, committed, length);
            }
        }
    }
    panic!("no checkpoint gave pages at the end of its file back");
}

#[test]
fn a_kill_between_a_checkpoint_and_the_length_of_its_file_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.mdb");
    let (held, committed, length) = checkpoint_that_gives_pages_back(directory.path());
    let cut = |bytes: u64| fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    // Also when the next start is killed before it has lengthened the file.
    for _ in 0..2 {
        cut(committed);
        let tables = open(directory.path());
        assert_eq!(fs::metadata(&path).unwrap().len(), length, "the file is as long as its tree says");
        assert_eq!(texts(&tables), held);
        assert!(tables.store().fault().is_none());
    }
    cut(committed);
    let mut tables = open(directory.path());
    for key in 0..300 {
        tables.numbers.put(key, 7);
    }
    tables.commit().unwrap();
    checkpoint(&mut tables, 100);
    drop(tables);
    let tables = open(directory.path());
    assert_eq!((tables.numbers.iter().count(), texts(&tables)), (300, held), "it goes on as any other");
}

#[test]
fn a_short_file_is_refused_from_the_page_on_that_its_tree_uses() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.mdb");
    let (held, committed, _) = checkpoint_that_gives_pages_back(directory.path());
    let whole = fs::read(&path).unwrap();
    let (mut opened, mut refused) = (0, 0);
    let lengths = (1..committed / 4096 - 1).map(|pages| committed - pages * 4096).chain([committed - 1]);
    for bytes in lengths {
        fs::write(&path, &whole[..usize::try_from(bytes).unwrap()]).unwrap();
        match Store::open(directory.path(), &options()) {
            Ok(store) => {
                assert_eq!(refused, 0, "less of the file is there than of one that was refused");
                assert_eq!(texts(&Tables::open(&store)), held);
                assert!(store.fault().is_none(), "{:?}", store.fault());
                opened += 1;
            }
            Err(StoreError::DamagedFile { reason, .. }) => {
                assert!(reason.contains("its tree uses page"), "{reason}");
                assert_eq!(fs::metadata(&path).unwrap().len(), bytes, "what is refused stays as it is");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > opened, "{refused} were refused, {opened} opened");
}

#[test]
fn a_snapshot_restores_to_an_equal_state() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut tables = open(from.path());
    for key in 0..5_000 {
        tables.numbers.insert_new(key * 3, key);
        tables.queue.insert(key % 7, key, ());
    }
    tables.texts.insert_new("größe".into(), "x".repeat(10_000));
    tables.commit().unwrap();
    checkpoint(&mut tables, 42);
    let hash = tables.state_hash().unwrap();
    let mut dump = Vec::new();
    tables.dump(&mut dump).unwrap();
    assert!(String::from_utf8(dump).unwrap().starts_with("numbers 0 = 0\nnumbers 3 = 1\n"));
    // What is not in a checkpoint is not in the snapshot.
    tables.numbers.delete(&0);
    tables.commit().unwrap();
    assert_ne!(tables.state_hash().unwrap(), hash);

    // Nor is what a later checkpoint writes while the snapshot is held.
    let snapshot = tables.store().snapshot().unwrap();
    checkpoint(&mut tables, 43);
    let mut stream = Vec::new();
    let summary = snapshot.write_to(&mut stream).unwrap();
    drop(snapshot);
    assert_eq!((summary.applied, summary.entries, summary.bytes), (42, 10_001, stream.len() as u64));

    // A replica with an older state, which a broken stream must leave as it is.
    let mut old = open(to.path());
    old.numbers.insert_new(1, 1);
    old.commit().unwrap();
    checkpoint(&mut old, 5);
    assert!(Store::restore_from(to.path(), &options(), &stream[..]).is_err(), "the store is open");
    drop(old);
    for length in [0, 7, 8, 20, stream.len() / 2, stream.len() - 1] {
        let error = Store::restore_from(to.path(), &options(), &stream[..length]).unwrap_err();
        assert!(error.to_string().contains("too early"), "{error}");
    }
    for place in [9, 30, 1_000, stream.len() - 10, stream.len() - 1] {
        let mut broken = stream.clone();
        broken[place] ^= 4;
        Store::restore_from(to.path(), &options(), &broken[..]).unwrap_err();
    }
    assert_eq!(open(to.path()).store().recovered().applied, 5);

    let recovered = Store::restore_from(to.path(), &options(), &stream[..]).unwrap();
    assert_eq!(recovered.applied, 42);
    let restored = open(to.path());
    assert_eq!(restored.state_hash().unwrap(), hash);
    assert_eq!(restored.store().recovered().applied, 42);
    let files: Vec<_> = fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "nothing unfinished is left: {files:?}");
}

#[test]
fn a_checkpoint_writes_while_the_owner_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    let mut expected = BTreeMap::new();
    let mut next = 0;
    for round in 1..=5 {
        for _ in 0..2_000 {
            tables.numbers.insert_new(next, round);
            expected.insert(next, round);
            next += 1;
        }
        tables.commit().unwrap();
        let checkpoint = frozen(&mut tables, round);
        let writer = std::thread::spawn(move || checkpoint.write());
        for key in (0..next).step_by(3) {
            tables.numbers.update(&key, |number| *number += 100);
            expected.entry(key).and_modify(|number| *number += 100);
            tables.numbers.delete(&(key + 1));
            expected.remove(&(key + 1));
        }
        tables.commit().unwrap();
        let written = writer.join().unwrap().unwrap();
        release(&mut tables, written);
        assert!(tables.numbers.iter().map(|(key, number)| (key, *number)).eq(expected.clone()));
    }
    let mut names = Vec::new();
    tables.each(&mut |table| names.push(table.id().name));
    assert_eq!(names, ["numbers", "texts", "queue"]);
}

#[test]
fn as_many_stores_open_in_one_process_as_a_node_may_have_partitions() {
    // More than fit if each reserves as much as one alone may.
    const STORES: u16 = 200;
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { map_size_bytes: StoreOptions::map_size_of(STORES), ..StoreOptions::default() };
    let stores: Vec<Tables> = (0..STORES)
        .map(|number| Tables::open(&Store::open(&directory.path().join(number.to_string()), &options).unwrap()))
        .collect();
    assert_eq!(stores.len(), usize::from(STORES));
    // No number of partitions takes more than half of the address space of a process, and each has room for much.
    for stores in 1..=4_095 {
        let size = StoreOptions::map_size_of(stores);
        assert!(size * usize::from(stores) <= 1 << 46 && size >= 16 << 30, "{stores} stores of {size} bytes");
    }
    assert_eq!(StoreOptions::map_size_of(3), 1 << 40);
}
