//! Writing the frozen layer into the file, away from the engine's thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heed::RwTxn;

use crate::error::StoreError;
use crate::format::{self, Header};
use crate::key::TableKey;
use crate::store::{StateFile, Store, TableId, fill_length};
use crate::value::TableValue;

/// The frozen layer of one table.
pub trait FrozenTable: Send + Sync {
    /// Adds all entries to the write transaction.
    fn write(&self, batch: &mut Batch<'_>) -> Result<(), StoreError>;
}

/// The write transaction of a checkpoint.
pub struct Batch<'a> {
    file: &'a StateFile,
    transaction: RwTxn<'a>,
    record: Vec<u8>,
    entries_written: u64,
    entries_deleted: u64,
    bytes_written: u64,
}

impl Batch<'_> {
    pub(crate) fn put<K: TableKey, V: TableValue>(
        &mut self,
        table: TableId,
        key: &K,
        value: &V,
    ) -> Result<(), StoreError> {
        let key = format::encode_key(table, key);
        format::seal_record(&key, &mut self.record, |out| value.encode(out));
        let written = self.file.database.put(&mut self.transaction, &key, &self.record);
        written.map_err(|error| checkpoint_error(self.file, error))?;
        self.entries_written += 1;
        self.bytes_written += (key.len() + self.record.len()) as u64;
        Ok(())
    }

    pub(crate) fn delete<K: TableKey>(&mut self, table: TableId, key: &K) -> Result<(), StoreError> {
        let key = format::encode_key(table, key);
        let deleted = self.file.database.delete(&mut self.transaction, &key);
        if deleted.map_err(|error| checkpoint_error(self.file, error))? {
            self.entries_deleted += 1;
        }
        Ok(())
    }
}

fn checkpoint_error(file: &StateFile, error: heed::Error) -> StoreError {
    if let heed::Error::Mdb(heed::MdbError::MapFull) = error {
        return StoreError::FileFull { file: file.path.clone(), bytes: file.env.info().map_size };
    }
    StoreError::Checkpoint { file: file.path.clone(), source: Arc::new(error) }
}

/// Bytes of the pages that hold entries.
fn used_bytes(file: &StateFile, transaction: &RwTxn<'_>) -> heed::Result<u64> {
    let stat = file.database.stat(transaction)?;
    let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
    Ok(pages as u64 * u64::from(stat.page_size))
}

/// What a checkpoint did and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStatistics {
    /// The log index up to which the file now holds the state.
    pub applied: u64,
    /// Entries written into the file.
    pub entries_written: u64,
    /// Entries deleted from the file.
    pub entries_deleted: u64,
    /// Bytes of the keys and records written.
    pub bytes_written: u64,
    /// Bytes of the file's pages that hold entries now; others are used again.
    pub used_bytes: u64,
    /// The largest size that the file may have.
    pub file_bytes_max: u64,
    /// The length of the file when the checkpoint counted already, before the file was made as long as its tree says. Whoever
    /// cuts it there has what a process leaves that ends between the two.
    pub committed_file_bytes: u64,
    /// How long the background write took, with its sync.
    pub write: Duration,
    /// How long the engine's thread was held to freeze its tables.
    pub freeze_pause: Duration,
    /// How long the engine's thread was held to drop the frozen layer.
    pub release_pause: Duration,
}

/// A frozen state of all tables, to be written by a background thread.
#[must_use = "the tables keep the frozen layer until this checkpoint is written and released"]
pub struct Checkpoint {
    pub(crate) store: Store,
    pub(crate) number: u64,
    pub(crate) applied: u64,
    pub(crate) metadata: Vec<u8>,
    pub(crate) tables: Vec<Arc<dyn FrozenTable>>,
    pub(crate) freeze_pause: Duration,
}

/// Proof that a checkpoint is durable.
#[derive(Debug)]
#[must_use = "the tables keep the frozen layer until this is handed to their `release`"]
pub struct Written {
    pub(crate) store: Store,
    pub(crate) number: u64,
    pub(crate) statistics: CheckpointStatistics,
}

impl Written {
    /// What the checkpoint wrote.
    pub fn statistics(&self) -> CheckpointStatistics {
        self.statistics
    }

    /// Why nothing should be added any more, if the file is nearly as large as it may be. A checkpoint that does not fit would
    /// never fit, and what ends needs room too.
    pub fn nearly_full(&self) -> Option<String> {
        let CheckpointStatistics { used_bytes, file_bytes_max, .. } = self.statistics;
        let path = self.store.file("write").ok()?.path.display();
        (used_bytes > file_bytes_max - file_bytes_max / HEADROOM_SHARE).then(|| {
            format!(
                "the state file {path} uses {used_bytes} bytes, and its largest size is {file_bytes_max} bytes; let instances end or \
                 cancel them, and delete what is not needed"
            )
        })
    }
}

/// This share of the file's largest size is kept for what ends.
const HEADROOM_SHARE: u64 = 16;

impl Checkpoint {
    /// The log index that the frozen state includes.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Writes everything in one synced transaction, together with the applied index and the metadata. After an error
    /// nothing of it is in the file and the tables still hold everything, so it can be tried again.
    pub fn write(&self) -> Result<Written, StoreError> {
        let started = Instant::now();
        let file = self.store.file("write")?;
        let write_error = |error| checkpoint_error(file, error);
        let transaction = file.env.write_txn().map_err(write_error)?;
        let mut batch =
            Batch { file, transaction, record: Vec::new(), entries_written: 0, entries_deleted: 0, bytes_written: 0 };
        for table in &self.tables {
            table.write(&mut batch)?;
        }
        let header = Header::encode(&file.schema, self.applied, &self.metadata);
        file.database.put(&mut batch.transaction, format::HEADER_KEY, &header).map_err(write_error)?;
        let used_bytes = used_bytes(file, &batch.transaction).map_err(write_error)?;
        let Batch { transaction, entries_written, entries_deleted, bytes_written, .. } = batch;
        transaction.commit().map_err(write_error)?;
        let committed_file_bytes = file.env.real_disk_size().map_err(write_error)?;
        fill_length(&file.env, &file.path).map_err(write_error)?;
        let statistics = CheckpointStatistics {
            applied: self.applied,
            entries_written,
            entries_deleted,
            bytes_written,
            used_bytes,
            file_bytes_max: file.env.info().map_size as u64,
            committed_file_bytes,
            write: started.elapsed(),
            freeze_pause: self.freeze_pause,
            release_pause: Duration::ZERO,
        };
        Ok(Written { store: self.store.clone(), number: self.number, statistics })
    }
}

/// The frozen layer after its release. Dropping it frees every entry, which takes a while: leave that to the background
/// thread.
#[must_use = "drop this on the background thread, where freeing the entries holds nobody up"]
pub struct Retired(
    #[expect(dead_code, reason = "held only to be dropped elsewhere")] pub(crate) Vec<Arc<dyn FrozenTable>>,
);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{StoreOptions, Table};

    crate::tables! {
        struct Tables {
            numbers: Table<u64, u64> = 1,
        }
    }

    /// Stands for a disk that is full at the first attempt, after other tables were written.
    struct FailsOnce(AtomicBool);

    impl FrozenTable for FailsOnce {
        fn write(&self, _: &mut Batch<'_>) -> Result<(), StoreError> {
            match self.0.swap(true, Ordering::Relaxed) {
                true => Ok(()),
                false => Err(StoreError::NoFile { action: "write (the disk is full)" }),
            }
        }
    }

    #[test]
    fn a_failed_checkpoint_can_be_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), &StoreOptions::default()).unwrap();
        let mut tables = Tables::open(&store);
        tables.numbers.insert_new(1, 10);
        tables.commit().unwrap();
        let mut checkpoint = tables.freeze(3, b"later".to_vec()).unwrap();
        checkpoint.tables.push(Arc::new(FailsOnce(AtomicBool::new(false))));
        checkpoint.write().expect_err("the disk is full");
        assert!(store.snapshot().is_err(), "nothing of a failed checkpoint is in the file");
        tables.numbers.update(&1, |number| *number += 1);
        tables.commit().unwrap();
        let written = checkpoint.write().expect("the disk has room again");
        drop(tables.release(written).unwrap());
        assert_eq!(tables.numbers.get(&1).as_deref(), Some(&11));
        let snapshot = store.snapshot().unwrap();
        assert_eq!((snapshot.applied(), snapshot.metadata()), (3, b"later".as_slice()));
    }
}
