//! Raft groups over one shared log.
//!
//! A node holds one replica in each of many Raft groups. [`Replicas`] drives all of them; their entries go into one
//! [`LogStore`] with one synced write per round. Entries are opaque bytes: what they mean is decided by the state machine
//! of the caller, which applies what [`Round::committed`] hands out.
//!
//! Nothing here has a thread, a clock or a socket (only [`RaftEngineLog`] has files, and a thread that prepares the next one). Time passes when [`Replicas::tick`] is
//! called, messages travel through the caller's [`Outbox`], and chance comes from [`Options::seed`]. So a simulation drives
//! the same code as production, and a seed repeats a run.
//!
//! # The life of a group's data
//!
//! 1. [`Replicas::propose`] gives an entry to the leader; a [`Replicas::round`] makes it durable and hands it out when it
//!    is committed: with one voter in the same call.
//! 2. The state machine applies it, and from time to time makes a durable checkpoint: [`Replicas::applied`].
//! 3. [`Replicas::compact`] drops entries up to the checkpoint; [`LogStore::reclaim_space`] frees their space.
//! 4. A follower that needs dropped entries gets the checkpoint instead ([`Round::snapshots_to_send`]).
//! 5. After a restart, [`Replicas::create_group`] with the checkpoint's index hands out again what is behind it.
//!
//! # What the log vouches for
//!
//! An entry is acknowledged to the leader, and handed out, only after its batch was synced. If a write fails, nothing of it
//! is acknowledged and the next round repeats it. If a sync fails, it is unknown what the disk holds, and the log refuses
//! everything from then on: the process must stop.

mod error;
mod group;
mod group_storage;
mod log_store;
mod logger;
mod memory_log;
mod message;
mod options;
mod proposals;
mod raft_engine_log;
pub mod reading;
mod replicas;
mod round;
mod snapshot;
mod types;

pub use error::{DecodeError, LogError, ProposeError, ReplicationError, StepError};
pub use log_store::{Anchor, GroupWrite, LogStore, SpaceReport, StoredGroup, WriteBatch, WriteReport};
pub use memory_log::{CrashPoint, MemoryLog};
pub use message::{Frame, Message, Outbox, Transport};
pub use options::Options;
pub use raft_engine_log::{LogOptions, RaftEngineLog};
pub use replicas::{Replicas, check_applied};
pub use round::{Committed, RoleChange, Round, SnapshotRequest};
pub use snapshot::{
    SnapshotChunk, SnapshotError, SnapshotReceiver, SnapshotSink, SnapshotSource, SnapshotStream, StagedSnapshot,
};
pub use types::{Entry, GroupId, GroupStatus, MemberProgress, Membership, MembershipChange, NodeId, Position, Role};
