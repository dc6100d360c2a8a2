//! All tables of a partition together: commands, checkpoints, inspection.

use std::fmt::Debug;
use std::io::{self, Write};
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Instant;

use crate::checkpoint::{Checkpoint, CheckpointStatistics, FrozenTable, Retired, Written};
use crate::error::StoreError;
use crate::hash::StateHasher;
use crate::store::{Store, TableId};

/// Called with every live entry: the table, the key and the value, each also encoded.
pub type EntryVisitor<'a> = dyn FnMut(TableId, (&dyn Debug, &[u8]), (&dyn Debug, &[u8])) -> io::Result<()> + 'a;

/// How much the layers in memory hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerSizes {
    /// Entries written or deleted since the last freeze.
    pub overlay_entries: u64,
    /// About how many bytes they take.
    pub overlay_bytes: u64,
    /// Entries that a checkpoint is writing.
    pub frozen_entries: u64,
    /// About how many bytes they take.
    pub frozen_bytes: u64,
}

impl AddAssign for LayerSizes {
    fn add_assign(&mut self, other: Self) {
        self.overlay_entries += other.overlay_entries;
        self.overlay_bytes += other.overlay_bytes;
        self.frozen_entries += other.frozen_entries;
        self.frozen_bytes += other.frozen_bytes;
    }
}

/// The state's size and what its last checkpoint cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// What is in memory.
    pub layers: LayerSizes,
    /// The size of the file in bytes; 0 in memory.
    pub file_bytes: u64,
    /// The last checkpoint that was released since the store was opened.
    pub last_checkpoint: Option<CheckpointStatistics>,
}

/// A table of any type, as the set of all tables sees it.
pub trait AnyTable {
    /// The number and name.
    fn id(&self) -> TableId;
    /// The length of the longest encoded key when each text in it takes at most this many bytes, without its end.
    fn longest_key_bytes(&self, text_bytes: usize) -> usize;
    /// Whether the current command has written here.
    fn is_command_open(&self) -> bool;
    /// Keeps what the current command wrote.
    fn commit(&mut self);
    /// Undoes what the current command wrote.
    fn rollback(&mut self);
    /// Freezes the overlay, if it holds anything.
    fn freeze(&mut self) -> Option<Arc<dyn FrozenTable>>;
    /// Gives up the frozen layer.
    fn release(&mut self) -> Option<Arc<dyn FrozenTable>>;
    /// How much the layers in memory hold.
    fn layer_sizes(&self) -> LayerSizes;
    /// Shows every live entry in order.
    fn visit(&self, visitor: &mut EntryVisitor<'_>) -> io::Result<()>;
}

/// What the set of all tables knows besides the tables.
#[derive(Debug)]
pub struct TableSetCore {
    store: Store,
    /// The number of the checkpoint under way.
    under_way: Option<u64>,
    checkpoints: u64,
}

impl TableSetCore {
    /// Starts with no checkpoint under way.
    pub fn new(store: &Store) -> Self {
        Self { store: store.clone(), under_way: None, checkpoints: 0 }
    }

    /// The store below the tables.
    #[inline]
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// All tables of a partition. Implemented by [`tables!`](crate::tables).
pub trait TableSet: Sized {
    /// What all tables share.
    fn core(&self) -> &TableSetCore;
    /// What all tables share.
    fn core_mut(&mut self) -> &mut TableSetCore;
    /// Shows each table in the order of declaration.
    fn each(&self, visitor: &mut dyn FnMut(&dyn AnyTable));
    /// Shows each table in the order of declaration.
    fn each_mut(&mut self, visitor: &mut dyn FnMut(&mut dyn AnyTable));
}

/// Freezes all tables; see the generated `freeze`.
#[doc(hidden)]
pub fn freeze(tables: &mut impl TableSet, applied: u64, metadata: Vec<u8>) -> Result<Checkpoint, StoreError> {
    let started = Instant::now();
    tables.core().store.file("checkpoint to")?;
    if let Some(fault) = tables.core().store.fault() {
        return Err(fault);
    }
    if tables.core().under_way.is_some() {
        return Err(StoreError::CheckpointUnderWay);
    }
    let mut is_command_open = false;
    tables.each(&mut |table| is_command_open |= table.is_command_open());
    if is_command_open {
        return Err(StoreError::CommandOpen);
    }
    let mut frozen = Vec::new();
    tables.each_mut(&mut |table| frozen.extend(table.freeze()));
    let core = tables.core_mut();
    core.checkpoints += 1;
    core.under_way = Some(core.checkpoints);
    Ok(Checkpoint {
        store: core.store.clone(),
        number: core.checkpoints,
        applied,
        metadata,
        tables: frozen,
        freeze_pause: started.elapsed(),
    })
}

/// Releases the frozen layer; see the generated `release`.
#[doc(hidden)]
pub fn release(tables: &mut impl TableSet, written: Written) -> Result<Retired, StoreError> {
    let started = Instant::now();
    let core = tables.core_mut();
    assert!(
        core.store.is_same(&written.store) && core.under_way == Some(written.number),
        "invariant: a checkpoint is released by the tables that it was frozen from"
    );
    core.store.refresh().inspect_err(|error| core.store.fail(error.clone()))?;
    core.under_way = None;
    let mut retired = Vec::new();
    tables.each_mut(&mut |table| retired.extend(table.release()));
    let release_pause = started.elapsed();
    let file = tables.core().store.file("release")?;
    *file.last_checkpoint.lock() = Some(CheckpointStatistics { release_pause, ..written.statistics });
    Ok(Retired(retired))
}

/// Sizes and times; see the generated `statistics`.
#[doc(hidden)]
pub fn statistics(tables: &impl TableSet) -> Statistics {
    let mut layers = LayerSizes::default();
    tables.each(&mut |table| layers += table.layer_sizes());
    let store = &tables.core().store;
    let last_checkpoint = store.file("measure").ok().and_then(|file| *file.last_checkpoint.lock());
    Statistics { layers, file_bytes: store.file_bytes(), last_checkpoint }
}

/// About how many bytes the overlay holds; see the generated `overlay_bytes`.
#[doc(hidden)]
pub fn overlay_bytes(tables: &impl TableSet) -> u64 {
    let mut bytes = 0;
    tables.each(&mut |table| bytes += table.layer_sizes().overlay_bytes);
    bytes
}

/// Hashes all live entries; see the generated `state_hash`.
#[doc(hidden)]
pub fn state_hash(tables: &impl TableSet) -> Result<u128, StoreError> {
    let mut hasher = StateHasher::new();
    let mut result = Ok(());
    tables.each(&mut |table| {
        let visited = table.visit(&mut |id, (_, key), (_, value)| {
            hasher.part(&[id.number]);
            hasher.part(key);
            hasher.part(value);
            Ok(())
        });
        result = std::mem::replace(&mut result, Ok(())).and(visited);
    });
    debug_assert!(result.is_ok(), "hashing does no input or output");
    tables.core().store.fault().map_or(Ok(hasher.finish()), Err)
}

/// Writes all live entries as text; see the generated `dump`.
#[doc(hidden)]
pub fn dump(tables: &impl TableSet, out: &mut dyn Write) -> io::Result<()> {
    let mut result = Ok(());
    tables.each(&mut |table| {
        if result.is_ok() {
            result = table.visit(&mut |id, (key, _), (value, _)| writeln!(out, "{} {key:?} = {value:?}", id.name));
        }
    });
    result?;
    tables.core().store.fault().map_or(Ok(()), |fault| Err(io::Error::other(fault)))
}

/// Refuses two tables with one number, and the numbers that the file's layout does not have.
#[doc(hidden)]
pub const fn assert_table_numbers(numbers: &[u8]) {
    let mut index = 0;
    while index < numbers.len() {
        assert!(numbers[index] != 0 && numbers[index] != u8::MAX, "a table's number is from 1 to 254");
        let mut other = index + 1;
        while other < numbers.len() {
            assert!(numbers[index] != numbers[other], "two tables have the same number");
            other += 1;
        }
        index += 1;
    }
}

/// Declares the tables of a partition, each with its number in the file. Numbers are from 1 to 254 and are never reused
/// for another table within one schema version.
///
/// ```
/// state::tables! {
///     /// What the partition knows.
///     pub struct Tables {
///         /// Counters by name.
///         pub counters: state::Table<u64, u64> = 1,
///         /// Counters by the time they are due.
///         pub due: state::Queue<(), (u64, u64), ()> = 2,
///     }
/// }
///
/// let mut tables = Tables::in_memory();
/// tables.begin();
/// tables.counters.insert_new(7, 1);
/// tables.commit()?;
/// # Ok::<(), state::StoreError>(())
/// ```
#[macro_export]
macro_rules! tables {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $( $(#[$field_meta:meta])* $field_visibility:vis $field:ident : $table:ty = $number:literal ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility struct $name {
            $( $(#[$field_meta])* $field_visibility $field: $table, )*
            table_set_core: $crate::TableSetCore,
        }

        const _: () = $crate::assert_table_numbers(&[$($number),*]);

        impl $crate::TableSet for $name {
            fn core(&self) -> &$crate::TableSetCore {
                &self.table_set_core
            }

            fn core_mut(&mut self) -> &mut $crate::TableSetCore {
                &mut self.table_set_core
            }

            fn each(&self, visitor: &mut dyn FnMut(&dyn $crate::AnyTable)) {
                $( visitor(&self.$field); )*
            }

            fn each_mut(&mut self, visitor: &mut dyn FnMut(&mut dyn $crate::AnyTable)) {
                $( visitor(&mut self.$field); )*
            }
        }

        #[allow(dead_code, reason = "an owner need not use every part of the interface")]
        impl $name {
            /// Opens the tables over a store. There must be only one such set of tables per store.
            $visibility fn open(store: &$crate::Store) -> Self {
                Self {
                    $( $field: <$table>::open(store, $number, stringify!($field)), )*
                    table_set_core: $crate::TableSetCore::new(store),
                }
            }

            /// Opens empty tables without a file.
            $visibility fn in_memory() -> Self {
                Self::open(&$crate::Store::in_memory())
            }

            /// The store below the tables.
            #[inline]
            $visibility fn store(&self) -> &$crate::Store {
                self.table_set_core.store()
            }

            /// The first error that a read or a write met, if any.
            #[inline]
            $visibility fn fault(&self) -> Option<$crate::StoreError> {
                self.store().fault()
            }

            /// Starts a command: from here on, everything is either committed or rolled back.
            #[inline]
            $visibility fn begin(&mut self) {
                debug_assert!(
                    true $( && !$crate::AnyTable::is_command_open(&self.$field) )*,
                    "the command before this one was neither committed nor rolled back"
                );
            }

            /// Keeps what the command wrote. If a read or a write met an error, the command is rolled back instead.
            #[inline]
            $visibility fn commit(&mut self) -> Result<(), $crate::StoreError> {
                if let Some(fault) = self.fault() {
                    self.rollback();
                    return Err(fault);
                }
                $( $crate::AnyTable::commit(&mut self.$field); )*
                Ok(())
            }

            /// Takes back everything that the command wrote, and the error that it met if only the command was at fault.
            $visibility fn rollback(&mut self) {
                $( $crate::AnyTable::rollback(&mut self.$field); )*
                self.store().forgive_command();
            }

            /// Freezes the state between two commands. The checkpoint is to be written by another thread, together with
            /// the index of the last applied log entry and the owner's metadata, and then handed to `release`. Only one
            /// can be under way.
            $visibility fn freeze(&mut self, applied: u64, metadata: Vec<u8>) -> Result<$crate::Checkpoint, $crate::StoreError> {
                $crate::freeze(self, applied, metadata)
            }

            /// Gives up the frozen layer, whose entries are now in the file. The answer is to be dropped elsewhere.
            $visibility fn release(&mut self, written: $crate::Written) -> Result<$crate::Retired, $crate::StoreError> {
                $crate::release(self, written)
            }

            /// About how many bytes the overlay holds, to decide when the next checkpoint is due.
            $visibility fn overlay_bytes(&self) -> u64 {
                $crate::overlay_bytes(self)
            }

            /// The state's size and what its last checkpoint cost.
            $visibility fn statistics(&self) -> $crate::Statistics {
                $crate::statistics(self)
            }

            /// A hash over all entries in order, with which replicas compare their states.
            $visibility fn state_hash(&self) -> Result<u128, $crate::StoreError> {
                $crate::state_hash(self)
            }

            /// Writes all entries as text, one a line, in order.
            $visibility fn dump(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
                $crate::dump(self, out)
            }
        }
    };
}
