//! The file of a note, mapped into memory.
//!
//! Words of 64 bits, little-endian. A header (magic, version and partition, checksum), the note (index of the entry, or 0
//! when nothing is being applied; number and count; key; process instance; length of the command's name and the name;
//! checksum) and what is kept over starts (the note of the last end, how often it was the same entry, checksum).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::{Command, Key, PartitionId};

use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::private::PRIVATE_FILE;

use super::{Applying, Ended, FILE_NAME};

const MAGIC: u64 = u64::from_le_bytes(*b"osmiaapp");
const VERSION: u32 = 1;
/// A page on most systems; the file is as long.
const FILE_BYTES: usize = 4096;
const WORDS: usize = FILE_BYTES / 8;

/// Magic, version and partition, checksum.
const HEADER: usize = 0;
const HEADER_WORDS: usize = 3;
/// The note has cache lines of its own.
const NOTE: usize = 8;
/// Index, number and count, key, process instance, length of the name, name, checksum.
pub(super) const NOTE_WORDS: usize = 5 + NAME_WORDS + 1;
/// Room for the longest value type, a space and the longest intent; more is cut.
const NAME_WORDS: usize = 9;
const NAME_BYTES: usize = NAME_WORDS * 8;
/// A note without its checksum, how often, checksum.
const KEPT: usize = 32;
const KEPT_WORDS: usize = NOTE_WORDS + 1;

/// The fields of a note between its index and its checksum.
pub(super) type Fields = [u64; NOTE_WORDS - 2];

#[derive(Debug)]
pub(crate) struct Memory {
    /// Belongs to this value alone, which unmaps it when it is dropped.
    words: &'static [AtomicU64; WORDS],
}

impl Memory {
    /// Maps the file, which is made when it is absent or damaged.
    pub fn open(path: &Path, partition: PartitionId) -> Result<Self, DataDirectoryError> {
        let io = |action| move |source| DataDirectoryError::Io { action, path: path.to_owned(), source };
        let sound = match std::fs::read(path) {
            Ok(bytes) => check_header(&words(&bytes), bytes.len(), path, partition)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err("it is new".to_owned()),
            Err(error) => return Err(io("read")(error)),
        };
        if let Err(problem) = sound {
            if path.exists() {
                tracing::warn!(
                    file = %path.display(), problem,
                    "the note of what was being applied is damaged and starts anew: whether the last process ended while \
                     it applied a command is not known"
                );
            }
            if let Some(directory) = path.parent() {
                state::create_directory(directory).map_err(io("create"))?;
            }
            // Written and not only made longer: later stores must not need room on the disk.
            let content = empty(partition);
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(PRIVATE_FILE);
            options.open(path).and_then(|mut file| file.write_all(&content)).map_err(io("write"))?;
        }
        let file = File::options().read(true).write(true).open(path).map_err(io("open"))?;
        Ok(Memory { words: map(&file).map_err(io("map"))? })
    }

    /// Notes what comes next. In the middle of it nothing is noted, so a note is never half of one and half of another.
    #[inline]
    pub fn note(&self, index: u64, fields: &Fields) {
        let mut content = [0; NOTE_WORDS - 1];
        content[0] = index;
        content[1..].copy_from_slice(fields);
        self.clear();
        let checksum = checksum(&content);
        for (word, value) in self.words[NOTE + 1..].iter().zip(content[1..].iter().chain([&checksum])) {
            // Each after those before it.
            word.store(value.to_le(), Ordering::Release);
        }
        self.words[NOTE].store(index.to_le(), Ordering::Release);
    }

    /// Nothing is being applied.
    #[inline]
    pub fn clear(&self) {
        self.words[NOTE].store(0, Ordering::Release);
    }

    /// Keeps for later starts how often the process ended.
    pub fn keep(&self, ended: Option<&Ended>) {
        let words = ended.map_or([0; KEPT_WORDS], encode_ended);
        for (word, value) in self.words[KEPT..].iter().zip(words) {
            word.store(value.to_le(), Ordering::Release);
        }
    }

    /// The index of the entry that is being applied, and which of its commands; none when nothing is.
    pub fn place(&self) -> Option<(u64, u64)> {
        let [index, number] = [NOTE, NOTE + 1].map(|word| u64::from_le(self.words[word].load(Ordering::Acquire)));
        (index > 0).then_some((index, number))
    }

    /// What is being applied, if anything is. A note that changes meanwhile is none.
    pub fn current(&self) -> Option<Applying> {
        let words = &self.words[NOTE..NOTE + NOTE_WORDS];
        let words: Vec<u64> = words.iter().map(|word| u64::from_le(word.load(Ordering::Acquire))).collect();
        decode(&words)
    }

    /// At which entry the process ended, the last time included.
    pub fn ended(&self) -> Option<Ended> {
        let words: Vec<u64> = self.words.iter().map(|word| u64::from_le(word.load(Ordering::Acquire))).collect();
        ended(&words)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let address = std::ptr::from_ref(self.words).cast_mut().cast();
        // SAFETY: the range was mapped by `map` with this length, nothing else refers to it, and nothing uses it after
        // this. The result says only whether the range was valid.
        unsafe { libc::munmap(address, FILE_BYTES) };
    }
}

/// Maps a file of [`FILE_BYTES`] bytes.
fn map(file: &File) -> io::Result<&'static [AtomicU64; WORDS]> {
    let (protection, descriptor) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
    // SAFETY: a new mapping at an address of the system's choice changes nothing that exists; the descriptor is open until
    // the call returns, and the mapping outlives it.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), FILE_BYTES, protection, libc::MAP_SHARED, descriptor, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping begins at a page, is as long as the array, and lives until the owner unmaps it. All bits are valid
    // for atomic integers, which may change at any time. The file has all of its bytes on the disk, and the lock on the
    // data directory keeps other processes from cutting it.
    Ok(unsafe { &*address.cast::<[AtomicU64; WORDS]>() })
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// CRC-32, and a bit so that zeros never look sound.
#[inline]
fn checksum(words: &[u64]) -> u64 {
    let mut bytes = [0; KEPT_WORDS * 8];
    let bytes = &mut bytes[..words.len() * 8];
    for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    u64::from(crc32fast::hash(bytes)) | 1 << 32
}

fn header(partition: PartitionId) -> [u64; HEADER_WORDS] {
    let kind = u64::from(VERSION) | u64::from(partition.0) << 32;
    [MAGIC, kind, checksum(&[MAGIC, kind])]
}

fn empty(partition: PartitionId) -> Vec<u8> {
    let mut bytes: Vec<u8> = header(partition).iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(FILE_BYTES, 0);
    bytes
}

/// Whether the file is ours; the inner error says how it is damaged.
fn check_header(
    words: &[u64],
    length: usize,
    path: &Path,
    partition: PartitionId,
) -> Result<Result<(), String>, DataDirectoryError> {
    if length != FILE_BYTES {
        return Ok(Err(format!("it has {length} bytes and not {FILE_BYTES}")));
    }
    let [magic, kind, found] = [words[HEADER], words[HEADER + 1], words[HEADER + 2]];
    if magic != MAGIC || found != checksum(&[magic, kind]) {
        return Ok(Err("its header is damaged".to_owned()));
    }
    let version = kind & u64::from(u32::MAX);
    if version != u64::from(VERSION) || kind != header(partition)[1] {
        let found = format!(
            "a file '{FILE_NAME}' of format {version} of partition {} for partition {partition} ({})",
            kind >> 32,
            path.display()
        );
        let directory = path.parent().unwrap_or(path).to_owned();
        return Err(DataDirectoryError::UnknownFormat { directory, found });
    }
    Ok(Ok(()))
}

/// Reads the bytes of a file: at which entry the process ended, including the last time.
pub(super) fn read(bytes: &[u8], path: &Path, partition: PartitionId) -> Result<Option<Ended>, DataDirectoryError> {
    let words = words(bytes);
    Ok(check_header(&words, bytes.len(), path, partition)?.ok().and_then(|()| ended(&words)))
}

fn ended(words: &[u64]) -> Option<Ended> {
    let kept = decode_ended(&words[KEPT..KEPT + KEPT_WORDS]);
    let Some(applying) = decode(&words[NOTE..NOTE + NOTE_WORDS]) else { return kept };
    let before = kept.filter(|kept| kept.applying.index == applying.index).map_or(0, |kept| kept.times);
    Some(Ended { applying, times: before.saturating_add(1) })
}

/// The fields of a note about a command.
#[inline]
pub(super) fn encode(number: u32, commands: u32, command: &Command, process_instance: Key) -> Fields {
    let name = [command.payload.value_type().name(), " ", command.payload.intent_name()];
    encode_fields(number, commands, command.key, process_instance, &name)
}

#[inline]
fn encode_fields(number: u32, commands: u32, key: Key, process_instance: Key, name: &[&str]) -> Fields {
    let mut text = [0; NAME_BYTES];
    let mut length = 0;
    for part in name {
        let end = (length + part.len()).min(NAME_BYTES);
        text[length..end].copy_from_slice(&part.as_bytes()[..end - length]);
        length = end;
    }
    let mut fields = [0; NOTE_WORDS - 2];
    fields[0] = u64::from(number) | u64::from(commands) << 32;
    fields[1] = key.raw().cast_unsigned();
    fields[2] = process_instance.raw().cast_unsigned();
    fields[3] = length as u64;
    for (field, bytes) in fields[4..].iter_mut().zip(text.as_chunks::<8>().0) {
        *field = u64::from_le_bytes(*bytes);
    }
    fields
}

/// Reads a note; none when nothing was being applied, or when it is not whole.
fn decode(words: &[u64]) -> Option<Applying> {
    let (found, content) = words.split_last()?;
    (*found == checksum(content)).then(|| decode_fields(content)).flatten()
}

fn decode_fields(content: &[u64]) -> Option<Applying> {
    let [index, numbers, key, process_instance, length, name @ ..] = content else { return None };
    let text: Vec<u8> = name.iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = text.get(..usize::try_from(*length).ok()?)?;
    (*index > 0).then(|| Applying {
        index: *index,
        number: (numbers & u64::from(u32::MAX)) as u32,
        commands: (numbers >> 32) as u32,
        key: Key::from_raw(key.cast_signed()),
        process_instance: Key::from_raw(process_instance.cast_signed()),
        command: String::from_utf8_lossy(name).into_owned(),
    })
}

fn encode_ended(ended: &Ended) -> [u64; KEPT_WORDS] {
    let Applying { index, number, commands, key, process_instance, command } = &ended.applying;
    let mut words = [0; KEPT_WORDS];
    words[0] = *index;
    let fields = encode_fields(*number, *commands, *key, *process_instance, &[command]);
    words[1..NOTE_WORDS - 1].copy_from_slice(&fields);
    words[NOTE_WORDS - 1] = u64::from(ended.times);
    words[NOTE_WORDS] = checksum(&words[..NOTE_WORDS]);
    words
}

fn decode_ended(words: &[u64]) -> Option<Ended> {
    let (found, content) = words.split_last()?;
    let (times, note) = content.split_last()?;
    let applying = (*found == checksum(content)).then(|| decode_fields(note)).flatten()?;
    Some(Ended { applying, times: u32::try_from(*times).ok()? })
}
