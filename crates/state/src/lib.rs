//! Typed ordered tables: a memory overlay over an embedded B-tree file.
//!
//! A partition declares its tables with [`tables!`]. Reads look into three layers, the upper hiding the lower:
//!
//! 1. the *overlay*: what was written since the last freeze;
//! 2. the *frozen overlay*: what a background thread is writing into the file right now, if a checkpoint is under way;
//! 3. the *file*: one LMDB tree, in the state of the last released checkpoint. Of each table it is known which is the last
//!    key there, and a table with few entries there is read from memory; so most lookups of absent keys end early.
//!
//! The life of a checkpoint: `freeze` moves the overlays aside (a few instructions per table), [`Checkpoint::write`] runs
//! on another thread and makes them durable with the applied log index in one synced transaction, `release` switches reads
//! to the new file and returns the frozen layer as [`Retired`], to be freed on that other thread. After a crash the file
//! holds exactly the last written checkpoint, and the log is applied again from its index.
//!
//! An entry inserted and deleted between two freezes leaves nothing behind. That holds only for entries that no layer below
//! can contain, which every overlay entry knows; any other deletion leaves a mark, or the old value would come back.
//!
//! Every write belongs to the current command, which ends with `commit` or `rollback`.

mod checkpoint;
mod error;
mod file_length;
mod format;
mod fronts;
mod hash;
mod key;
mod lower;
mod merge;
mod migration;
mod overlay;
mod queue;
mod snapshot;
mod store;
mod table;
mod table_set;
mod value;

pub use checkpoint::{Batch, Checkpoint, CheckpointStatistics, FrozenTable, Retired, Written};
pub use error::{CorruptionError, StoreError};
pub use key::{LONGEST_KEY_BYTES, PrefixedKey, SmallKey, TableKey};
pub use migration::{Migration, Schema, Step};
pub use queue::Queue;
pub use snapshot::{Snapshot, SnapshotSummary};
pub use store::{Recovered, Store, StoreHandle, StoreOptions, TableId, create_directory};
pub use table::{Entries, Table};
pub use table_set::{AnyTable, EntryVisitor, LayerSizes, Statistics, TableSet, TableSetCore};
#[doc(hidden)]
pub use table_set::{assert_table_numbers, dump, freeze, overlay_bytes, release, state_hash, statistics};
pub use value::{TableValue, decode_cbor, encode_cbor};
