//! How entries lie in the file.
//!
//! One tree holds all tables: a key is the table's number followed by the encoded key, a record is a checksum over key and
//! value followed by the encoded value. Number 0 belongs to the header record, which comes first.

use std::path::Path;

use crate::error::{CorruptionError, StoreError};
use crate::key::{SmallKey, TableKey};
use crate::migration::Schema;
use crate::store::{Recovered, TableId, damaged};

/// The version of what this module describes.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// The oldest format whose programs read and write a file of this one without losing anything.
const FORMAT_OLDEST_READER: u32 = 1;
/// The oldest format that this program reads.
const OLDEST_READABLE_FORMAT: u32 = 1;
/// Who writes, for those who cannot read it.
const WRITER: &str = concat!("osmia ", env!("CARGO_PKG_VERSION"));

/// The key of the header record.
pub(crate) const HEADER_KEY: &[u8] = &[0];

const CHECKSUM_BYTES: usize = 4;

pub(crate) fn encode_key<K: TableKey>(table: TableId, key: &K) -> SmallKey {
    let mut encoded = SmallKey::new();
    encoded.push(table.number);
    key.encode(&mut encoded);
    encoded
}

pub(crate) fn prefixed(table: TableId, key: &[u8]) -> SmallKey {
    let mut prefixed = SmallKey::with_capacity(key.len() + 1);
    prefixed.push(table.number);
    prefixed.extend_from_slice(key);
    prefixed
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

/// Makes a record of what `encode_value` appends. The key is part of the checksum, so a record at a wrong place is found.
pub(crate) fn seal_record(key: &[u8], record: &mut Vec<u8>, encode_value: impl FnOnce(&mut Vec<u8>)) {
    record.clear();
    record.extend_from_slice(&[0; CHECKSUM_BYTES]);
    encode_value(record);
    let checksum = checksum(key, &record[CHECKSUM_BYTES..]);
    record[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks a record and returns the encoded value.
pub(crate) fn open_record<'a>(key: &[u8], record: &'a [u8]) -> Result<&'a [u8], CorruptionError> {
    let Some((stored, value)) = record.split_first_chunk::<CHECKSUM_BYTES>() else {
        return Err(CorruptionError::new(format!("its record has only {} bytes", record.len())));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), checksum(key, value));
    if stored != computed {
        return Err(CorruptionError::new(format!("its checksum is {computed:08x}, and {stored:08x} was stored")));
    }
    Ok(value)
}

/// What the header record says. Its first bytes are the same in all formats: the format's number, that of the oldest format whose
/// programs read it, and the name of the program that wrote it, with its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) schema_version: u32,
    pub(crate) recovered: Recovered,
}

impl Header {
    pub(crate) fn encode(schema: &Schema, applied: u64, metadata: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        seal_record(HEADER_KEY, &mut sealed, |out| {
            out.extend_from_slice(&schema.version.to_le_bytes());
            out.extend_from_slice(&schema.oldest_reader.to_le_bytes());
            out.extend_from_slice(&applied.to_le_bytes());
            out.extend_from_slice(metadata);
        });
        let mut bytes = FORMAT_VERSION.to_le_bytes().to_vec();
        bytes.extend_from_slice(&FORMAT_OLDEST_READER.to_le_bytes());
        bytes.push(u8::try_from(WRITER.len()).expect("the program's name is short"));
        bytes.extend_from_slice(WRITER.as_bytes());
        bytes.extend_from_slice(&sealed);
        bytes
    }

    /// Decodes a header that programs of this version may read; refuses any other by name. Its schema may be older than the one
    /// given, and is then to be migrated.
    pub(crate) fn decode(bytes: &[u8], path: &Path, schema: &Schema) -> Result<Self, StoreError> {
        let short = || damaged(path, "the record that names its format is too short");
        let (format_version, rest) = number(bytes).ok_or_else(short)?;
        let (oldest_reader, rest) = number(rest).ok_or_else(short)?;
        let (&length, rest) = rest.split_first().ok_or_else(short)?;
        let (writer, sealed) = rest.split_at_checked(usize::from(length)).ok_or_else(short)?;
        let writer = String::from_utf8_lossy(writer).into_owned();
        let check = |what, found, oldest_reader, known, is_too_old| {
            let (file, writer) = (path.to_owned(), writer.clone());
            match (oldest_reader > known, is_too_old) {
                (true, _) => Err(StoreError::UnknownVersion { file, what, found, oldest_reader, known, writer }),
                (false, true) => Err(StoreError::TooOldVersion { file, what, found, known, writer }),
                (false, false) => Ok(()),
            }
        };
        let is_too_old = format_version < OLDEST_READABLE_FORMAT;
        check("format", format_version, oldest_reader, FORMAT_VERSION, is_too_old)?;
        let body = open_record(HEADER_KEY, sealed)
            .map_err(|reason| damaged(path, format!("the record that names its format is: {reason}")))?;
        let (schema_version, body) = number(body).ok_or_else(short)?;
        let (oldest_reader, body) = number(body).ok_or_else(short)?;
        let (applied, metadata) = body.split_first_chunk::<8>().ok_or_else(short)?;
        let is_too_old = !schema.can_begin_at(schema_version);
        check("schema", schema_version, oldest_reader, schema.version, is_too_old)?;
        let recovered = Recovered { applied: u64::from_le_bytes(*applied), metadata: metadata.to_vec() };
        Ok(Self { schema_version, recovered })
    }
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(number, rest)| (u32::from_le_bytes(*number), rest))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing into a text does not fail");
        text
    })
}
