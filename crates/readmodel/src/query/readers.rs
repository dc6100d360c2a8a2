//! Connections that read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::PartitionId;
use rusqlite::{Connection, ErrorCode, OpenFlags};

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
            Some(ErrorCode::OperationInterrupted) => Failure::TooLong,
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
    /// The file that is open: one that was set aside has another place on the disk.
    file: (u64, u64),
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
        let path = path_of(&self.directory, partition);
        if self.open.get(&partition).is_some_and(|reader| file_at(&path) != Some(reader.file)) {
            self.open.remove(&partition);
        }
        let reader = match self.open.entry(partition) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => closed.insert(Reader::open(&path)?),
        };
        *reader.deadline.lock() = Some(deadline);
        let result = read(&reader.connection);
        *reader.deadline.lock() = None;
        if result.as_ref().is_err_and(|error| error.sqlite_error_code() != Some(ErrorCode::OperationInterrupted)) {
            // Whatever it was, the next search begins with a new connection.
            self.open.remove(&partition);
        }
        Ok(result?)
    }
}

/// What tells files apart that have had the same name.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl Reader {
    fn open(path: &Path) -> rusqlite::Result<Reader> {
        // Before it is opened: if it is replaced in between, the next search notices.
        let file = file_at(path).unwrap_or_default();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(&format!("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{CACHE_KIB};"))?;
        let deadline: Arc<parking_lot::Mutex<Option<Instant>>> = Arc::default();
        let until = deadline.clone();
        connection
            .progress_handler(STEPS, Some(move || until.lock().is_some_and(|deadline| Instant::now() > deadline)))?;
        Ok(Reader { connection, deadline, file })
    }
}
