//! The file of a partition: opened, checked, and set aside when it is damaged.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metrics::counter;
use protocol::{PartitionId, RecordPlace};
use rusqlite::{Connection, OpenFlags};

use crate::database::{Database, given};
use crate::gate::Gate;
use crate::migration::Format;
use crate::schema::APPLICATION_ID;
use crate::store::{LogLimits, Store};

/// The write-ahead log becomes no shorter than that when it begins anew: one that a long search made long gives its room back.
const LOG_BYTES_KEPT: u64 = 64 << 20;
/// The pages that a writer keeps in memory, in KiB.
const WRITER_CACHE_KIB: i64 = 8 << 10;
/// How long somebody who is in the way of a writer is waited for.
pub(crate) const WRITER_PATIENCE: Duration = Duration::from_secs(5);
/// Statements that are kept prepared.
const STATEMENTS: usize = 128;

/// Why a read model cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum StoreError {
    /// SQLite says so.
    #[error("the read model {path} cannot be used: {source}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    /// The directory cannot be changed.
    #[error("the directory of the read model cannot be changed: {path}: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
    /// It is of another version or partition.
    #[error("the read model {path} {problem}")]
    Other { path: PathBuf, problem: String },
}

impl StoreError {
    /// Whether nothing gets better until an operator changes something: it may not be read or written.
    pub(crate) fn needs_operator(&self) -> bool {
        use rusqlite::ErrorCode;
        use std::io::ErrorKind;
        match self {
            StoreError::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly)
            ),
            StoreError::Directory { source, .. } => matches!(
                source.kind(),
                ErrorKind::PermissionDenied
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::NotADirectory
                    | ErrorKind::AlreadyExists
            ),
            StoreError::Other { .. } => true,
        }
    }
}

/// Where the read model of a partition is.
pub(crate) fn path_of(directory: &Path, partition: PartitionId) -> PathBuf {
    directory.join(format!("partition-{partition}.sqlite"))
}

/// Opens the file, or makes a new one. A file that is damaged or was made by another version is set aside: it is said which, and
/// what there still is in the record stream is read again.
///
/// # Errors
/// When the directory or a new file cannot be written.
pub(crate) fn open(directory: &Path, partition: PartitionId) -> Result<Store, StoreError> {
    open_in_format(&Format::PRESENT, directory, partition)
}

/// As [`open`], in another format.
pub(crate) fn open_in_format(format: &Format, directory: &Path, partition: PartitionId) -> Result<Store, StoreError> {
    // What is in it is nobody else's business.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|source| StoreError::Directory { path: directory.to_owned(), source })?;
    let path = path_of(directory, partition);
    match open_checked(format, &path, partition) {
        Ok(store) => Ok(store),
        Err(error) if is_passing(&error) => Err(error),
        Err(error) => {
            set_aside(&path, partition, &error.to_string())?;
            open_checked(format, &path, partition)
        }
    }
}

/// Sets aside a file in which damage was found, and makes a new one.
///
/// # Errors
/// When the directory or a new file cannot be written.
pub(crate) fn open_instead(directory: &Path, partition: PartitionId, damage: &str) -> Result<Store, StoreError> {
    let path = path_of(directory, partition);
    set_aside(&path, partition, damage)?;
    open_checked(&Format::PRESENT, &path, partition)
}

fn open_checked(format: &Format, path: &Path, partition: PartitionId) -> Result<Store, StoreError> {
    let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    // What is of another format is not changed, and to prepare it would.
    connection.busy_timeout(WRITER_PATIENCE).map_err(failed)?;
    let version: i64 = pragma(&connection, "user_version").map_err(failed)?;
    let application: i64 = pragma(&connection, "application_id").map_err(failed)?;
    let is_new = (version, application) == (0, 0);
    let is_known = application == APPLICATION_ID && format.is_reached_from(version);
    if !is_new && !is_known {
        let (of, present) = (format!("{application:x}/{version}"), format!("{APPLICATION_ID:x}/{}", format.version));
        let problem = format!("has the format {of}, and this version has {present}");
        return Err(StoreError::Other { path: path.to_owned(), problem });
    }
    prepare(&connection).map_err(failed)?;
    if is_new {
        create(format, &connection, partition).map_err(failed)?;
    } else {
        format.migrate(&connection, version).map_err(failed)?;
    }
    let select = "SELECT partition, incarnation, position, number FROM place";
    let (of, place) = connection
        .query_row(select, [], |row| {
            let unsigned = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            let place = RecordPlace { incarnation: unsigned(1)?, position: unsigned(2)?, number: unsigned(3)? };
            Ok((row.get::<_, u16>(0)?, place))
        })
        .map_err(failed)?;
    if of != partition.0 {
        let problem = format!("is of partition {of}, but it lies where that of partition {partition} belongs");
        return Err(StoreError::Other { path: path.to_owned(), problem });
    }
    Ok(Store { database: Database::Sqlite(connection), place, gate: Gate::default(), log_limits: LogLimits::default() })
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    given::register(connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
         PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{WRITER_CACHE_KIB}; PRAGMA journal_size_limit = {LOG_BYTES_KEPT};"
    ))
}

fn create(format: &Format, connection: &Connection, partition: PartitionId) -> rusqlite::Result<()> {
    let Format { tables, version, .. } = format;
    connection.execute_batch(&format!(
        "BEGIN; {tables} INSERT INTO place VALUES (1, {partition}, 0, 0, 0);
         PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}; COMMIT;"
    ))
}

/// Whether the same file may be fine another time: nothing says that it is damaged.
fn is_passing(error: &StoreError) -> bool {
    use rusqlite::ErrorCode;
    match error {
        StoreError::Sqlite { source, .. } => !matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None
        ),
        StoreError::Directory { .. } => true,
        StoreError::Other { .. } => false,
    }
}

/// Whether there is no file yet, or none with tables: the node is about to make it.
pub(crate) fn is_being_made(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen)
        || matches!(error, rusqlite::Error::SqliteFailure(_, Some(said)) if said.starts_with("no such table"))
        || matches!(error, rusqlite::Error::SqlInputError { msg, .. } if msg.starts_with("no such table"))
}

/// Moves a file out of the way, with those that SQLite keeps beside it, and says so.
fn set_aside(path: &Path, partition: PartitionId, damage: &str) -> Result<(), StoreError> {
    let failed = |source| StoreError::Directory { path: path.to_owned(), source };
    let with = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let free = (1..).map(|count| format!(".damaged-{count}")).find(|suffix| !with(suffix).exists());
    let suffix = free.expect("there are more numbers than files");
    for beside in ["", "-wal"] {
        if with(beside).exists() {
            std::fs::rename(with(beside), with(&format!("{suffix}{beside}"))).map_err(failed)?;
        }
    }
    // Only an index of the other two.
    let _ = std::fs::remove_file(with("-shm"));
    counter!("osmia_read_model_set_aside_total", "partition" => partition.to_string()).increment(1);
    tracing::error!(
        %partition, damage, set_aside = %with(&suffix).display(),
        "the read model was set aside; a new one is made of what lives and of the records that are still there"
    );
    Ok(())
}
