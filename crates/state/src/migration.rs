//! Versions of the tables' layout, and the steps from one to the next.
//!
//! A file says which version of the layout it has, and the oldest one whose programs may open it: a newer version that only adds
//! what older programs may ignore leaves that as it was. What a program may not open, it refuses by name. A file with an older
//! layout is brought to the present one when it is opened, step by step in one synced transaction: after a crash it is as it was.

use heed::types::Bytes;
use heed::{Database, RwTxn};

use crate::error::{CorruptionError, StoreError};
use crate::format;
use crate::key::SmallKey;
use crate::store::{TableId, file_error};

/// The layout of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Its version, from 1.
    pub version: u32,
    /// The oldest version whose programs read and write files of this one without losing anything.
    pub oldest_reader: u32,
    /// What brings older files to this version, oldest first, each from where the one before ends.
    pub steps: &'static [Step],
}

/// Brings files of one version to the next.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The version that it begins with; it ends with the next one.
    pub from: u32,
    /// What it does, for the log and for messages.
    pub name: &'static str,
    /// Does it.
    pub run: fn(&mut Migration<'_, '_>) -> Result<(), StoreError>,
}

impl Schema {
    /// The steps from an older version to this one; `None` when there is no way.
    pub(crate) fn steps_from(&self, version: u32) -> Option<&'static [Step]> {
        if version >= self.version {
            return Some(&[]);
        }
        let first = self.steps.iter().position(|step| step.from == version)?;
        let steps = &self.steps[first..];
        steps.iter().map(|step| step.from).eq(version..self.version).then_some(steps)
    }

    pub(crate) fn can_begin_at(&self, version: u32) -> bool {
        self.steps_from(version).is_some()
    }
}

/// A file that is being brought to another version.
pub struct Migration<'a, 'transaction> {
    pub(crate) database: Database<Bytes, Bytes>,
    pub(crate) transaction: &'a mut RwTxn<'transaction>,
    pub(crate) path: &'a std::path::Path,
}

/// An encoded entry of a table.
type Entry = (SmallKey, Vec<u8>);
/// Entries that are held in memory at once.
const ENTRIES_AT_ONCE: usize = 1_000;

impl Migration<'_, '_> {
    /// Gives every entry of a table to a function, which returns what is to be in its place: another value under the same key, or
    /// nothing. Keys and values are encoded.
    ///
    /// # Errors
    /// When the file cannot be read or written, or an entry is damaged or not understood.
    pub fn rewrite(
        &mut self,
        table: TableId,
        mut change: impl FnMut(&[u8], &[u8]) -> Result<Option<Vec<u8>>, CorruptionError>,
    ) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let entries = self.entries_after(table, after.as_ref())?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            after = Some(last.clone());
            for (key, value) in entries {
                match change(&key[1..], &value).map_err(|reason| self.damaged(table, &key, reason))? {
                    Some(changed) => self.put_raw(&key, &changed)?,
                    None => self.delete_raw(&key)?,
                }
            }
        }
    }

    /// Puts an entry into a table, in the place of one that may be there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put_raw(&format::prefixed(table, key), value)
    }

    fn put_raw(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let mut record = Vec::new();
        format::seal_record(key, &mut record, |out| out.extend_from_slice(value));
        let written = self.database.put(self.transaction, key, &record);
        written.map_err(|error| file_error("migrate", self.path, error))
    }

    fn delete_raw(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let deleted = self.database.delete(self.transaction, key);
        deleted.map(drop).map_err(|error| file_error("migrate", self.path, error))
    }

    fn entries_after(&self, table: TableId, after: Option<&SmallKey>) -> Result<Vec<Entry>, StoreError> {
        use std::ops::Bound;
        let (first, end) = ([table.number], [table.number.saturating_add(1)]);
        let start = after.map_or(Bound::Included(first.as_slice()), |key| Bound::Excluded(key.as_slice()));
        let read_error = |error| file_error("migrate", self.path, error);
        let range =
            self.database.range(self.transaction, &(start, Bound::Excluded(end.as_slice()))).map_err(read_error)?;
        let mut entries = Vec::new();
        for entry in range.take(ENTRIES_AT_ONCE) {
            let (key, record) = entry.map_err(read_error)?;
            let value = format::open_record(key, record).map_err(|reason| self.damaged(table, key, reason))?;
            entries.push((SmallKey::from_slice(key), value.to_vec()));
        }
        Ok(entries)
    }

    fn damaged(&self, table: TableId, key: &[u8], reason: CorruptionError) -> StoreError {
        let key = format::hexadecimal(&key[1..]);
        StoreError::Corruption { table: table.name, key, file: self.path.to_owned(), reason }
    }
}
