//! Connections that read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use protocol::PartitionId;
use rusqlite::{Connection, OpenFlags};

use crate::store::path_of;

/// The pages that a connection keeps in memory, in KiB.
const CACHE_KIB: i64 = 4 << 10;
/// So many steps of the database lie between two looks at the clock.
const STEPS: i32 = 2_000;
/// What a search may take.
pub(super) const TIME_MAX: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It took too long.
    #[error(
        "The search took longer than {} ms, because no index fits its filter and sort. Add a filter by key, state, process definition or date, or sort by key.",
        TIME_MAX.as_millis()
    )]
    TooLong,
    /// There is nothing to search in.
    #[error("Partition {0} has no read model on this node.")]
    NoPartition(PartitionId),
    /// The database cannot be read.
    #[error("The read model cannot be read: {0}.")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => Failure::TooLong,
            _ => Failure::Sqlite(error),
        }
    }
}

/// The connections of one thread, opened when they are needed.
pub struct Readers {
    directory: PathBuf,
    partitions: Vec<PartitionId>,
    open: BTreeMap<PartitionId, Reader>,
}

struct Reader {
    connection: Connection,
    deadline: Arc<parking_lot::Mutex<Option<Instant>>>,
    /// Its file was replaced.
    is_stale: Arc<AtomicBool>,
}

impl Readers {
    pub(crate) fn new(directory: PathBuf, partitions: Vec<PartitionId>) -> Readers {
        Readers { directory, partitions, open: BTreeMap::new() }
    }

    /// The partitions that can be searched.
    pub fn partitions(&self) -> &[PartitionId] {
        &self.partitions
    }

    /// Reads in a partition, for a limited time.
    pub(super) fn read<T>(
        &mut self,
        partition: PartitionId,
        deadline: Instant,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        if !self.partitions.contains(&partition) {
            return Err(Failure::NoPartition(partition));
        }
        if self.open.get(&partition).is_some_and(|reader| reader.is_stale.load(Ordering::Relaxed)) {
            self.open.remove(&partition);
        }
        if !self.open.contains_key(&partition) {
            let path = path_of(&self.directory, partition);
            self.open.insert(partition, Reader::open(&path)?);
        }
        let Some(reader) = self.open.get(&partition) else { return Err(Failure::NoPartition(partition)) };
        *reader.deadline.lock() = Some(deadline);
        let result = read(&reader.connection);
        *reader.deadline.lock() = None;
        if let Err(error) = &result
            && error.sqlite_error_code() != Some(rusqlite::ErrorCode::OperationInterrupted)
        {
            // Whatever it was, the next search begins with a new connection.
            reader.is_stale.store(true, Ordering::Relaxed);
        }
        Ok(result?)
    }
}

impl Reader {
    fn open(path: &std::path::Path) -> rusqlite::Result<Reader> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(&format!("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{CACHE_KIB};"))?;
        let deadline: Arc<parking_lot::Mutex<Option<Instant>>> = Arc::default();
        let until = deadline.clone();
        connection
            .progress_handler(STEPS, Some(move || until.lock().is_some_and(|deadline| Instant::now() > deadline)))?;
        Ok(Reader { connection, deadline, is_stale: Arc::default() })
    }
}
