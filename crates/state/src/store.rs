//! The file of a partition, and reading from it.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions, RoTxn, WithoutTls};
use parking_lot::Mutex;

use crate::checkpoint::CheckpointStatistics;
use crate::error::{CorruptionError, StoreError};
use crate::file_length::{self, Newest};
use crate::format::{self, Header};
use crate::key::{SmallKey, TableKey};
use crate::migration::{Migration, Schema};
use crate::value::TableValue;

/// The name that LMDB gives the file inside its directory.
pub(crate) const FILE_NAME: &str = "data.mdb";

/// The most that a file reserves.
const MAP_SIZE_MAX_BYTES: usize = 1 << 40;
/// What all files of a process reserve together at most: half of what a process has.
const ADDRESS_SPACE_BYTES: usize = 1 << 46;
/// Below this, less address space is no help.
const MAP_SIZE_MIN_BYTES: usize = 1 << 30;
const MAP_SIZE_STEP_BYTES: usize = 1 << 20;

/// A table's place in the file and its name in messages.
#[derive(Clone, Copy, Debug)]
pub struct TableId {
    /// The first byte of every key of the table in the file.
    pub number: u8,
    /// The name in error messages and dumps.
    pub name: &'static str,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The layout of the tables. A file with an older one is migrated, one that takes a newer program is refused.
    pub schema: Schema,
    /// The address space reserved for the file, which is also the most that it can grow to until it is opened again. Where
    /// less is available, it is smaller.
    pub map_size_bytes: usize,
    /// The file's part of a table is kept in memory as long as it has at most this many entries.
    pub small_table_entries: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            schema: Schema { version: 1, oldest_reader: 1, steps: &[] },
            map_size_bytes: MAP_SIZE_MAX_BYTES,
            small_table_entries: 32,
        }
    }
}

impl StoreOptions {
    /// The address space for each store when one process has this many.
    pub fn map_size_of(stores: u16) -> usize {
        let share = ADDRESS_SPACE_BYTES / usize::from(stores.max(1));
        // LMDB needs whole pages of the system's size.
        (share & !(MAP_SIZE_STEP_BYTES - 1)).min(MAP_SIZE_MAX_BYTES)
    }
}

/// What the last checkpoint left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The index of the last log entry whose effects are in the file; 0 for a new one.
    pub applied: u64,
    /// What the owner handed in with the checkpoint; empty for a new file.
    pub metadata: Vec<u8>,
}

pub(crate) struct StateFile {
    pub(crate) path: PathBuf,
    pub(crate) env: Env<WithoutTls>,
    pub(crate) database: Database<Bytes, Bytes>,
    /// The state of the file that the tables see; replaced only when a checkpoint is released.
    reader: Mutex<RoTxn<'static, WithoutTls>>,
    pub(crate) schema: Schema,
    small_table_entries: usize,
    recovered: Recovered,
    pub(crate) last_checkpoint: Mutex<Option<CheckpointStatistics>>,
}

struct Shared {
    file: Option<StateFile>,
    /// Whether `fault` holds something, so that the common answer costs one load.
    faulted: AtomicBool,
    fault: Mutex<Option<StoreError>>,
    /// The tables that were opened, for messages about entries whose table is known only by number.
    tables: Mutex<Vec<TableId>>,
}

/// The durable base of a partition's tables, or nothing at all for tables in memory. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("file", &self.0.file.as_ref().map(|file| &file.path)).finish()
    }
}

/// A store that others may close.
#[derive(Clone, Debug)]
pub struct StoreHandle(Weak<Shared>);

impl StoreHandle {
    /// As [`Store::hold`]; nothing when the store was closed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn hold(&self) -> Result<Option<(Store, Recovered)>, StoreError> {
        self.0.upgrade().map_or(Ok(None), |shared| Store(shared).hold())
    }
}

impl Store {
    /// A handle that does not keep the file open.
    pub fn handle(&self) -> StoreHandle {
        StoreHandle(Arc::downgrade(&self.0))
    }

    /// The last written checkpoint as a store of its own, for tables that only read: it stays as it is while others go on.
    /// Nothing while no checkpoint was written. Until it is dropped, the file cannot reuse the room of what is replaced.
    ///
    /// # Errors
    /// When the file cannot be read, or there is none.
    pub fn hold(&self) -> Result<Option<(Store, Recovered)>, StoreError> {
        let file = self.file("hold")?;
        let reader = file.env.clone().static_read_txn().map_err(|error| file_error("read", &file.path, error))?;
        let header = file.database.get(&reader, format::HEADER_KEY);
        let Some(header) = header.map_err(|error| file_error("read", &file.path, error))? else { return Ok(None) };
        let recovered = Header::decode(header, &file.path, &file.schema)?.recovered;
        let held = Store::new(Some(StateFile {
            path: file.path.clone(),
            env: file.env.clone(),
            database: file.database,
            reader: Mutex::new(reader),
            schema: file.schema,
            small_table_entries: file.small_table_entries,
            recovered: recovered.clone(),
            last_checkpoint: Mutex::new(None),
        }));
        Ok(Some((held, recovered)))
    }

    /// A store without a file: everything lives in memory and nothing can be checkpointed.
    pub fn in_memory() -> Self {
        Self::new(None)
    }

    /// Opens the store in a directory, creating both if they do not exist.
    pub fn open(directory: &Path, options: &StoreOptions) -> Result<Self, StoreError> {
        let path = directory.join(FILE_NAME);
        create_directory(directory).map_err(|error| file_error("create", &path, error.into()))?;
        let env = map(directory, options.map_size_bytes).map_err(|error| file_error("open", &path, error))?;
        check_length(&env, &path)?;
        if env.info().last_txn_id == 0 {
            // The file's name must survive a power loss as surely as the first checkpoint in it.
            // LMDB leaves the first pages of a new file to the system, and the first checkpoint may be far off.
            // A start that was killed before this leaves it to the next one.
            let synced = File::open(&path).and_then(|file| file.sync_all()).and_then(|()| sync_directory(directory));
            synced.map_err(|error| file_error("create", &path, error.into()))?;
        }
        let read_error = |error| file_error("read", &path, error);
        migrate(&env, &path, &options.schema)?;
        let reader = env.clone().static_read_txn().map_err(read_error)?;
        let database = env
            .open_database::<Bytes, Bytes>(&reader, None)
            .map_err(read_error)?
            .ok_or_else(|| damaged(&path, "it has no main tree"))?;
        let recovered = match database.get(&reader, format::HEADER_KEY).map_err(read_error)? {
            Some(bytes) => Header::decode(bytes, &path, &options.schema)?.recovered,
            None if database.is_empty(&reader).map_err(read_error)? => Recovered::default(),
            None => {
                return Err(damaged(&path, "the record that names its format is missing"));
            }
        };
        Ok(Self::new(Some(StateFile {
            path,
            env,
            database,
            reader: Mutex::new(reader),
            schema: options.schema,
            small_table_entries: options.small_table_entries,
            recovered,
            last_checkpoint: Mutex::new(None),
        })))
    }

    fn new(file: Option<StateFile>) -> Self {
        Self(Arc::new(Shared {
            file,
            faulted: AtomicBool::new(false),
            fault: Mutex::new(None),
            tables: Mutex::default(),
        }))
    }

    /// What the file held when it was opened: from where the log must be applied again.
    pub fn recovered(&self) -> Recovered {
        self.0.file.as_ref().map(|file| file.recovered.clone()).unwrap_or_default()
    }

    /// The first error that a read or a write of the tables met.
    #[inline]
    pub fn fault(&self) -> Option<StoreError> {
        if !self.0.faulted.load(Ordering::Acquire) {
            return None;
        }
        self.0.fault.lock().clone()
    }

    #[inline]
    pub(crate) fn is_faulted(&self) -> bool {
        self.0.faulted.load(Ordering::Acquire)
    }

    /// Records an error; the first one is kept, but damage replaces what only concerns a command.
    #[cold]
    pub(crate) fn fail(&self, error: StoreError) {
        let mut fault = self.0.fault.lock();
        if fault.as_ref().is_none_or(StoreError::concerns_one_command) {
            *fault = Some(error);
        }
        self.0.faulted.store(true, Ordering::Release);
    }

    /// Forgets an error that only concerned the command that was just rolled back.
    #[doc(hidden)]
    pub fn forgive_command(&self) {
        let mut fault = self.0.fault.lock();
        if fault.as_ref().is_some_and(StoreError::concerns_one_command) {
            *fault = None;
            self.0.faulted.store(false, Ordering::Release);
        }
    }

    /// Notes a table that was opened over this store; a second set of tables would not see the first one's checkpoints.
    pub(crate) fn name_table(&self, table: TableId) {
        let mut tables = self.0.tables.lock();
        assert!(
            tables.iter().all(|other| other.number != table.number),
            "invariant: a store is opened anew for each set of tables, and {} was opened before",
            table.name
        );
        tables.push(table);
    }

    pub(crate) fn table_name(&self, number: u8) -> &'static str {
        self.0.tables.lock().iter().find(|table| table.number == number).map_or("(unknown)", |table| table.name)
    }

    /// The size of the file in bytes; 0 in memory.
    pub fn file_bytes(&self) -> u64 {
        self.0.file.as_ref().and_then(|file| file.env.real_disk_size().ok()).unwrap_or(0)
    }

    pub(crate) fn small_table_entries(&self) -> usize {
        self.0.file.as_ref().map_or(0, |file| file.small_table_entries)
    }

    /// The last key of a table in the file.
    pub(crate) fn last_key<K: TableKey>(&self, table: TableId) -> Option<K> {
        let file = self.0.file.as_ref()?;
        let reader = file.reader.lock();
        let (encoded, _) = match file.database.get_lower_than(&reader, &[table.number + 1]) {
            Ok(entry) => entry?,
            Err(error) => return self.fail_read(error),
        };
        let mut key = encoded.strip_prefix(&[table.number])?;
        match K::decode(&mut key) {
            Ok(key) => Some(key),
            Err(reason) => self.fail_corrupt(table, format::hexadecimal(encoded), reason),
        }
    }

    pub(crate) fn file(&self, action: &'static str) -> Result<&StateFile, StoreError> {
        self.0.file.as_ref().ok_or(StoreError::NoFile { action })
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Reads one value from the file.
    pub(crate) fn read<K: TableKey, V: TableValue>(&self, table: TableId, key: &K) -> Option<V> {
        let file = self.0.file.as_ref()?;
        let encoded = format::encode_key(table, key);
        let reader = file.reader.lock();
        match file.database.get(&reader, &encoded) {
            Ok(Some(record)) => match format::open_record(&encoded, record).and_then(V::decode) {
                Ok(value) => Some(value),
                Err(reason) => self.fail_corrupt(table, format!("{key:?}"), reason),
            },
            Ok(None) => None,
            Err(error) => self.fail_read(error),
        }
    }

    pub(crate) fn contains<K: TableKey>(&self, table: TableId, key: &K) -> bool {
        let Some(file) = self.0.file.as_ref() else {
            return false;
        };
        let encoded = format::encode_key(table, key);
        let reader = file.reader.lock();
        match file.database.get(&reader, &encoded) {
            Ok(record) => record.is_some(),
            Err(error) => self.fail_read::<()>(error).is_some(),
        }
    }

    /// Decodes a value that `read_chunk` delivered.
    pub(crate) fn decode<K: TableKey, V: TableValue>(&self, table: TableId, key: &K, bytes: &[u8]) -> Option<V> {
        match V::decode(bytes) {
            Ok(value) => Some(value),
            Err(reason) => self.fail_corrupt(table, format!("{key:?}"), reason),
        }
    }

    /// Appends the next entries of a table to `chunk` and returns the last key, or `None` at the end of the range.
    pub(crate) fn read_chunk<K: TableKey>(
        &self,
        table: TableId,
        (start, end): (&Bound<SmallKey>, &Bound<SmallKey>),
        size: ChunkSize,
        chunk: &mut VecDeque<(K, Vec<u8>)>,
    ) -> Option<SmallKey> {
        let file = self.0.file.as_ref()?;
        let start = start.as_ref().map(|key| format::prefixed(table, key));
        let end = end.as_ref().map(|key| format::prefixed(table, key));
        let (table_start, table_end) = ([table.number], [table.number + 1]);
        let start = match &start {
            Bound::Unbounded => Bound::Included(table_start.as_slice()),
            bound => bound.as_ref().map(SmallKey::as_slice),
        };
        let end = match &end {
            Bound::Unbounded => Bound::Excluded(table_end.as_slice()),
            bound => bound.as_ref().map(SmallKey::as_slice),
        };
        let reader = file.reader.lock();
        let range = match file.database.range(&reader, &(start, end)) {
            Ok(range) => range,
            Err(error) => return self.fail_read(error),
        };
        let (mut entries, mut bytes) = (0, 0);
        for entry in range {
            let (encoded, record) = match entry {
                Ok(entry) => entry,
                Err(error) => return self.fail_read(error),
            };
            match decode_entry(encoded, record, size.content) {
                Ok(entry) => {
                    entries += 1;
                    bytes += entry.1.len();
                    chunk.push_back(entry);
                }
                Err(reason) => {
                    let readable = K::decode(&mut &encoded[1..]).map(|key| format!("{key:?}"));
                    let key = readable.unwrap_or_else(|_| format::hexadecimal(&encoded[1..]));
                    return self.fail_corrupt(table, key, reason);
                }
            }
            if entries >= size.entries || bytes >= size.bytes {
                return Some(SmallKey::from_slice(&encoded[1..]));
            }
        }
        None
    }

    /// Makes the tables see what the last checkpoint wrote.
    pub(crate) fn refresh(&self) -> Result<(), StoreError> {
        let file = self.file("read")?;
        let reader = file.env.clone().static_read_txn().map_err(|error| file_error("read", &file.path, error))?;
        *file.reader.lock() = reader;
        Ok(())
    }

    fn fail_corrupt<T>(&self, table: TableId, key: String, reason: CorruptionError) -> Option<T> {
        let file = self.0.file.as_ref().map(|file| file.path.clone()).unwrap_or_default();
        self.fail(StoreError::Corruption { table: table.name, key, file, reason });
        None
    }

    fn fail_read<T>(&self, error: heed::Error) -> Option<T> {
        let path = self.0.file.as_ref().map(|file| file.path.clone()).unwrap_or_default();
        self.fail(file_error("read", &path, error));
        None
    }
}

/// What a scan reads of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Keys and values.
    Values,
    /// Keys alone, with empty values: those of large ones take no longer. Damage to the values is not found.
    Keys,
}

/// What is read at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSize {
    pub content: Content,
    /// At most so many entries.
    pub entries: usize,
    /// No more entries once their values have so many bytes: a single one can have megabytes.
    pub bytes: usize,
}

fn decode_entry<K: TableKey>(encoded: &[u8], record: &[u8], content: Content) -> Result<(K, Vec<u8>), CorruptionError> {
    let value = match content {
        Content::Values => format::open_record(encoded, record)?,
        Content::Keys => &[],
    };
    let mut key_bytes = &encoded[1..];
    let key = K::decode(&mut key_bytes)?;
    match key_bytes.len() {
        0 => Ok((key, value.to_vec())),
        left => Err(CorruptionError::new(format!("{left} bytes follow the end of the key"))),
    }
}

/// Opens the file, with less address space if less is available.
fn map(directory: &Path, map_size_bytes: usize) -> heed::Result<Env<WithoutTls>> {
    let mut size = map_size_bytes;
    loop {
        let mut environment = EnvOpenOptions::new().read_txn_without_tls();
        environment.map_size(size);
        // SAFETY: the file is mapped read-only and changed only through this environment: the broker's lock on the data
        // directory keeps other processes out, and heed refuses a second environment in this one.
        match unsafe { environment.open(directory) } {
            Err(heed::Error::Io(error))
                if error.kind() == std::io::ErrorKind::OutOfMemory && size / 2 >= MAP_SIZE_MIN_BYTES =>
            {
                size /= 2;
            }
            opened => return opened,
        }
    }
}

/// Brings a file of an older layout to the present one, all of it or nothing.
fn migrate(env: &Env<WithoutTls>, path: &Path, schema: &Schema) -> Result<(), StoreError> {
    let error = |error| file_error("migrate", path, error);
    let reader = env.read_txn().map_err(error)?;
    let Some(database) = env.open_database::<Bytes, Bytes>(&reader, None).map_err(error)? else { return Ok(()) };
    let header = match database.get(&reader, format::HEADER_KEY).map_err(error)? {
        Some(bytes) => Header::decode(bytes, path, schema)?,
        None => return Ok(()),
    };
    drop(reader);
    let steps = schema.steps_from(header.schema_version).unwrap_or_default();
    if steps.is_empty() {
        return Ok(());
    }
    let mut transaction = env.write_txn().map_err(error)?;
    for step in steps {
        (step.run)(&mut Migration { database, transaction: &mut transaction, path })?;
    }
    let Recovered { applied, metadata } = header.recovered;
    let header = Header::encode(schema, applied, &metadata);
    database.put(&mut transaction, format::HEADER_KEY, &header).map_err(error)?;
    transaction.commit().and_then(|()| fill_length(env, path)).map_err(error)
}

/// Makes a file as long as its tree says that it is. A page at the end that a transaction took and gave back is counted, but
/// never written. A process that ends before this leaves that to the next start.
pub(crate) fn fill_length(env: &Env<WithoutTls>, path: &Path) -> heed::Result<()> {
    let needed = needed_bytes(env);
    if env.real_disk_size()? < needed {
        let file = File::options().write(true).open(path)?;
        file.set_len(needed)?;
        file.sync_all()?;
    }
    Ok(())
}

fn needed_bytes(env: &Env<WithoutTls>) -> u64 {
    (env.info().last_page_number as u64 + 1).saturating_mul(u64::from(env.stat().page_size))
}

/// A file that lacks pages of its tree would end the process at the first access to them, so it is refused here. One that only
/// lacks pages that were never written is made as long as its tree says.
fn check_length(env: &Env<WithoutTls>, path: &Path) -> Result<(), StoreError> {
    let info = env.info();
    if info.last_txn_id == 0 {
        return Ok(());
    }
    let length = env.real_disk_size().map_err(|error| file_error("read", path, error))?;
    let needed = needed_bytes(env);
    if length >= needed {
        return Ok(());
    }
    let newest = Newest {
        transaction: info.last_txn_id as u64,
        last_page: info.last_page_number as u64,
        page_bytes: env.stat().page_size as usize,
    };
    match file_length::missing(path, &newest).map_err(|error| file_error("read", path, error.into()))? {
        None => fill_length(env, path).map_err(|error| file_error("lengthen", path, error)),
        Some(lacks) => {
            Err(damaged(path, format!("it has {length} bytes, its newest checkpoint counts {needed}, and {lacks}")))
        }
    }
}

/// Creates a directory and those above it, so that the names of all that were missing survive a power loss. What is synced in a
/// directory is lost with its name.
///
/// # Errors
/// When the file system refuses.
pub fn create_directory(directory: &Path) -> std::io::Result<()> {
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::create_dir(directory) {
        Ok(()) => sync_directory(above),
        Err(_) if directory.is_dir() => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            create_directory(above)?;
            create_directory(directory)
        }
        Err(error) => Err(error),
    }
}

/// Makes the names in a directory survive a power loss.
pub(crate) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

pub(crate) fn file_error(action: &'static str, path: &Path, source: heed::Error) -> StoreError {
    StoreError::File { action, file: path.to_owned(), source: Arc::new(source) }
}

pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::DamagedFile { file: path.to_owned(), reason: reason.into() }
}
