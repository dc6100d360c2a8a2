//! What the parts of the engine say to each other and to the outside: keys, commands, events, rejections and the record
//! schema. Nothing here knows how any of it is stored, replicated or executed.
//!
//! Everything that is written to a log or file is CBOR with numbered fields ([`minicbor`]): a field may be added at the
//! end as an option, a number is never used again for something else.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod actor;
mod codec;
mod command;
mod element_event;
mod element_path;
mod fields;
mod intent;
mod key;
mod payload;
mod record;
mod rejection;
mod routing;
pub mod shared;
mod text;
mod usual;
mod value;

pub use actor::{ACTOR_ID_BYTES_MAX, Actor, ActorIdError, ClaimsDigest, Identity};
pub use codec::{DecodeError, decode, encode, encode_to_vec};
pub use command::{
    BATCH_FORMAT, Command, CommandBatch, NUMBER_BITS, Origin, OutboxSource, Request, batch_timestamp, decode_batch,
    encode_batch, life_of,
};
pub use element_event::ElementEvent;
pub use element_path::ElementPath;
pub use intent::*;
pub use key::{Key, PartitionId, Timestamp};
pub use payload::{Payload, ValueType};
pub use record::{BROKER_VERSION, Record, RecordPlace, RecordSource, RecordType, Subject};
pub use rejection::{Rejection, RejectionType};
pub use routing::partition_for_correlation_key;
pub use text::Text;
pub use value::*;

/// The tenant of everything that names no tenant.
pub const DEFAULT_TENANT: &str = "<default>";
