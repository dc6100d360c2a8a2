//! A consistent copy of the file as a stream, for a new replica.
//!
//! The stream is a magic number, then every entry of the file in order as it lies there (two bytes for the length of its key,
//! four for that of its record, key, record), the header record first, then a key of length 0, the number of entries and a
//! checksum over everything before it.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithoutTls};

use crate::error::StoreError;
use crate::format::{self, Header};
use crate::key::LONGEST_KEY_BYTES;
use crate::migration::Schema;
use crate::store::{FILE_NAME, Recovered, Store, StoreOptions, file_error, sync_directory};

const MAGIC: &[u8; 8] = b"osmstate";

/// Where a restored file grows until it is whole, inside the store's directory.
const UNFINISHED_DIRECTORY: &str = "unfinished-restore";

/// A restored file is written in transactions of about this many bytes, which bounds the memory it takes.
const RESTORE_TRANSACTION_BYTES: usize = 32 << 20;

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// The log index up to which the snapshot holds the state.
    pub applied: u64,
    /// The number of entries of all tables.
    pub entries: u64,
    /// The length of the stream.
    pub bytes: u64,
}

/// The state of the last written checkpoint, held still for a copy while the tables and further checkpoints go on. Until it is
/// dropped, the file cannot reuse the room of what it replaces.
pub struct Snapshot {
    store: Store,
    transaction: RoTxn<'static, WithoutTls>,
    held: Recovered,
}

impl Snapshot {
    /// The log index up to which the snapshot holds the state.
    pub fn applied(&self) -> u64 {
        self.held.applied
    }

    /// The owner's metadata of the checkpoint.
    pub fn metadata(&self) -> &[u8] {
        &self.held.metadata
    }

    /// Writes the snapshot to a stream.
    pub fn write_to(&self, out: impl Write) -> Result<SnapshotSummary, StoreError> {
        let file = self.store.file("copy")?;
        let read_error = |error| file_error("read", &file.path, error);
        let write_error = |error: io::Error| snapshot_error("write", error.to_string());
        let mut out = Checked::new(out);
        out.write(MAGIC).map_err(write_error)?;
        let mut entries = 0_u64;
        for entry in file.database.iter(&self.transaction).map_err(read_error)? {
            let (key, record) = entry.map_err(read_error)?;
            if key != format::HEADER_KEY {
                // Damage is found here, not on the replica that would start from it.
                format::open_record(key, record).map_err(|reason| StoreError::Corruption {
                    table: self.store.table_name(key[0]),
                    key: format::hexadecimal(&key[1..]),
                    file: file.path.clone(),
                    reason,
                })?;
                entries += 1;
            }
            write_entry(&mut out, key, record).map_err(write_error)?;
        }
        out.write(&0_u16.to_le_bytes()).map_err(write_error)?;
        out.write(&entries.to_le_bytes()).map_err(write_error)?;
        let checksum = out.hasher.clone().finalize();
        out.write(&checksum.to_le_bytes()).map_err(write_error)?;
        out.stream.flush().map_err(write_error)?;
        Ok(SnapshotSummary { applied: self.held.applied, entries, bytes: out.bytes })
    }
}

impl Store {
    /// Holds the state of the last written checkpoint for a copy. May be called and used on any thread.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let file = self.file("copy")?;
        let read_error = |error| file_error("read", &file.path, error);
        let transaction = file.env.clone().static_read_txn().map_err(read_error)?;
        let header = file.database.get(&transaction, format::HEADER_KEY).map_err(read_error)?;
        let header = header.ok_or_else(|| snapshot_error("write", "no checkpoint was written yet"))?;
        let held = Header::decode(header, &file.path, &file.schema)?.recovered;
        Ok(Snapshot { store: self.clone(), transaction, held })
    }

    /// Writes the state of the last written checkpoint to a stream.
    pub fn snapshot_to(&self, out: impl Write) -> Result<SnapshotSummary, StoreError> {
        self.snapshot()?.write_to(out)
    }

    /// Waits until nobody holds the store in a directory any more, but no longer than a limit. `false` when somebody still does.
    pub fn wait_until_closed(directory: &Path, limit: Duration) -> bool {
        // A directory that is not there holds no store.
        let Ok(canonical) = directory.canonicalize() else { return true };
        heed::env_closing_event(canonical).is_none_or(|closing| closing.wait_timeout(limit))
    }

    /// Replaces the store in a directory, which must not be open, by what a stream holds. The old file stays until the new
    /// one is whole and synced.
    pub fn restore_from(directory: &Path, options: &StoreOptions, stream: impl Read) -> Result<Recovered, StoreError> {
        let path = directory.join(FILE_NAME);
        let io_error = |error: io::Error| file_error("restore", &path, error.into());
        let unfinished = directory.join(UNFINISHED_DIRECTORY);
        fs::create_dir_all(&unfinished).map_err(io_error)?;
        let canonical = directory.canonicalize().map_err(io_error)?;
        if heed::env_closing_event(canonical).is_some() {
            return Err(snapshot_error("restore", format!("the store in {} is open", directory.display())));
        }
        fs::remove_dir_all(&unfinished).map_err(io_error)?;
        fs::create_dir_all(&unfinished).map_err(io_error)?;
        let restored = restore_into(&unfinished, &path, options, stream).and_then(|recovered| {
            fs::rename(unfinished.join(FILE_NAME), &path).map_err(io_error)?;
            Ok(recovered)
        });
        fs::remove_dir_all(&unfinished).map_err(io_error)?;
        sync_directory(directory).map_err(io_error)?;
        restored
    }
}

/// Writes a new file from a stream, checks it on the way, and syncs it.
fn restore_into(
    directory: &Path,
    path: &Path,
    options: &StoreOptions,
    stream: impl Read,
) -> Result<Recovered, StoreError> {
    let heed_error = |error| file_error("restore", path, error);
    let mut environment = EnvOpenOptions::new().read_txn_without_tls();
    environment.map_size(options.map_size_bytes);
    // SAFETY: the file is not in use before it is whole, and is synced as a whole at the end; a crash before that leaves a
    // file that nobody opens.
    unsafe { environment.flags(EnvFlags::NO_SYNC) };
    // SAFETY: the directory was just created, and the broker's lock on the data directory keeps other processes out.
    let env = unsafe { environment.open(directory) }.map_err(heed_error)?;
    let recovered = Restore::new(env.clone(), path, options.schema)?.run(Checked::new(stream))?;
    env.force_sync().map_err(heed_error)?;
    Ok(recovered)
}

fn write_entry(out: &mut Checked<impl Write>, key: &[u8], record: &[u8]) -> io::Result<()> {
    let too_long = |_| io::Error::other("an entry is too long for a snapshot");
    out.write(&u16::try_from(key.len()).map_err(too_long)?.to_le_bytes())?;
    out.write(&u32::try_from(record.len()).map_err(too_long)?.to_le_bytes())?;
    out.write(key)?;
    out.write(record)
}

fn snapshot_error(action: &'static str, reason: impl Into<String>) -> StoreError {
    StoreError::Snapshot { action, reason: reason.into() }
}

/// A stream with its running checksum and length.
struct Checked<S> {
    stream: S,
    hasher: crc32fast::Hasher,
    bytes: u64,
}

impl<S> Checked<S> {
    fn new(stream: S) -> Self {
        Self { stream, hasher: crc32fast::Hasher::new(), bytes: 0 }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<S: Write> Checked<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count(bytes);
        self.stream.write_all(bytes)
    }
}

impl<S: Read> Checked<S> {
    fn read_array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], StoreError> {
        let mut bytes = [0; LENGTH];
        self.stream.read_exact(&mut bytes).map_err(read_error)?;
        self.count(&bytes);
        Ok(bytes)
    }

    /// Reads into a buffer that grows with what really arrives, so that a false length cannot exhaust the memory.
    fn read_into(&mut self, length: usize, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        buffer.clear();
        let read = self.stream.by_ref().take(length as u64).read_to_end(buffer).map_err(read_error)?;
        if read < length {
            return Err(read_error(io::ErrorKind::UnexpectedEof.into()));
        }
        self.count(buffer);
        Ok(())
    }
}

fn read_error(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => snapshot_error("restore", "the stream ends too early"),
        _ => snapshot_error("restore", error.to_string()),
    }
}

/// A restore into a new file.
struct Restore<'a> {
    env: Env<WithoutTls>,
    database: Database<Bytes, Bytes>,
    path: &'a Path,
    schema: Schema,
}

impl<'a> Restore<'a> {
    fn new(env: Env<WithoutTls>, path: &'a Path, schema: Schema) -> Result<Self, StoreError> {
        let write_error = |error| file_error("restore", path, error);
        let mut transaction = env.write_txn().map_err(write_error)?;
        let database = env.create_database(&mut transaction, None).map_err(write_error)?;
        transaction.commit().map_err(write_error)?;
        Ok(Self { env, database, path, schema })
    }

    fn run(&self, mut stream: Checked<impl Read>) -> Result<Recovered, StoreError> {
        let damaged = |reason: String| snapshot_error("restore", reason);
        let write_error = |error| file_error("restore", self.path, error);
        if stream.read_array::<8>()? != *MAGIC {
            return Err(damaged("the stream is not a snapshot of a state".into()));
        }
        let (mut key, mut record, mut recovered) = (Vec::new(), Vec::new(), None);
        let mut transaction = self.env.write_txn().map_err(write_error)?;
        let (mut entries, mut pending_bytes) = (0_u64, 0_usize);
        loop {
            let key_length = usize::from(u16::from_le_bytes(stream.read_array()?));
            if key_length == 0 {
                break;
            }
            if key_length > LONGEST_KEY_BYTES + 1 {
                return Err(damaged(format!("a key of {key_length} bytes is longer than any key can be")));
            }
            let record_length = u32::from_le_bytes(stream.read_array()?) as usize;
            stream.read_into(key_length, &mut key)?;
            stream.read_into(record_length, &mut record)?;
            match recovered {
                None if key == format::HEADER_KEY => {
                    recovered = Some(Header::decode(&record, self.path, &self.schema)?.recovered);
                }
                None => {
                    return Err(damaged("the record that names its format does not come first".into()));
                }
                Some(_) => {
                    let named =
                        |reason| damaged(format!("the entry {} is damaged: {reason}", format::hexadecimal(&key)));
                    format::open_record(&key, &record).map_err(named)?;
                    entries += 1;
                }
            }
            let put = self.database.put_with_flags(&mut transaction, PutFlags::APPEND, &key, &record);
            put.map_err(write_error)?;
            pending_bytes += key_length + record_length;
            if pending_bytes > RESTORE_TRANSACTION_BYTES {
                transaction.commit().map_err(write_error)?;
                transaction = self.env.write_txn().map_err(write_error)?;
                pending_bytes = 0;
            }
        }
        let announced = u64::from_le_bytes(stream.read_array()?);
        let computed = stream.hasher.clone().finalize();
        if u32::from_le_bytes(stream.read_array()?) != computed || announced != entries {
            return Err(damaged("the checksum of the stream is wrong".into()));
        }
        transaction.commit().map_err(write_error)?;
        recovered.ok_or_else(|| damaged("the stream holds no checkpoint".into()))
    }
}
