//! Files of older layouts are brought to the present one; those of newer ones are opened only where that loses nothing.

use std::path::Path;

use state::{CorruptionError, Migration, Schema, Step, Store, StoreError, StoreOptions, Table, TableId, TableValue};

state::tables! {
    struct Tables {
        numbers: Table<u64, u64> = 1,
        texts: Table<String, String> = 2,
    }
}

const NUMBERS: TableId = TableId { number: 1, name: "numbers" };

fn options() -> StoreOptions {
    StoreOptions { map_size_bytes: 1 << 30, ..StoreOptions::default() }
}

fn open(directory: &Path) -> Tables {
    Tables::open(&Store::open(directory, &options()).expect("the store opens"))
}

fn checkpoint(mut tables: Tables, applied: u64) {
    let written =
        tables.freeze(applied, vec![]).expect("the tables freeze").write().expect("the checkpoint is written");
    drop(tables.release(written).expect("the checkpoint is released"));
}

/// Doubles every number, forgets the odd ones, and fails while the first number is 13.
fn double(migration: &mut Migration<'_, '_>) -> Result<(), StoreError> {
    migration.rewrite(NUMBERS, |_, value| {
        let number = u64::decode(value)?;
        if number == 13 {
            return Err(CorruptionError::new("thirteen cannot be doubled"));
        }
        let mut doubled = Vec::new();
        (number * 2).encode(&mut doubled);
        Ok(number.is_multiple_of(2).then_some(doubled))
    })
}

/// Adds an entry that later layouts have.
fn add(migration: &mut Migration<'_, '_>) -> Result<(), StoreError> {
    let mut one = Vec::new();
    1_u64.encode(&mut one);
    migration.put(NUMBERS, &u64::MAX.to_be_bytes(), &one)
}

static STEPS: &[Step] =
    &[Step { from: 1, name: "double the numbers", run: double }, Step { from: 2, name: "add the last one", run: add }];

#[test]
fn an_older_layout_is_brought_to_the_present_one_wholly_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = open(directory.path());
    (0..3_000).for_each(|key| tables.numbers.insert_new(key, 1_000 + key));
    tables.numbers.insert_new(5_000, 13);
    tables.texts.insert_new("a".into(), "text".into());
    tables.commit().unwrap();
    checkpoint(tables, 7);
    let third = StoreOptions { schema: Schema { version: 3, oldest_reader: 3, steps: STEPS }, ..options() };
    let error = Store::open(directory.path(), &third).unwrap_err().to_string();
    assert!(error.contains("thirteen cannot be doubled"), "{error}");

    let mut tables = open(directory.path());
    assert_eq!(tables.numbers.get(&1).as_deref(), Some(&1_001), "nothing of it stayed");
    tables.numbers.delete(&5_000);
    tables.commit().unwrap();
    checkpoint(tables, 8);
    // Opening again changes nothing more.
    for _ in 0..2 {
        let store = Store::open(directory.path(), &third).expect("a way from there");
        assert_eq!(store.recovered().applied, 8);
        let tables = Tables::open(&store);
        assert_eq!(tables.numbers.get(&2).as_deref(), Some(&2_004));
        assert_eq!(tables.numbers.get(&u64::MAX).as_deref(), Some(&1));
        assert_eq!(tables.numbers.iter().count(), 1_501, "the odd ones are gone");
        assert_eq!(tables.texts.get(&"a".into()).as_deref().map(String::as_str), Some("text"));
    }
    let error = Store::open(directory.path(), &options()).unwrap_err();
    assert!(matches!(error, StoreError::UnknownVersion { what: "schema", found: 3, known: 1, .. }), "{error}");
    // A layout that older programs may read is not refused by them.
    let fourth = Schema { version: 4, oldest_reader: 3, steps: &[Step { from: 3, name: "nothing", run: |_| Ok(()) }] };
    drop(Store::open(directory.path(), &StoreOptions { schema: fourth, ..options() }).expect("one step"));
    drop(Store::open(directory.path(), &third).expect("what the fourth version wrote is readable for the third"));
}
