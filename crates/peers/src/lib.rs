//! The transport between the nodes of a cluster.
//!
//! Two nodes have three connections in each direction, one per [`Lane`], so that a snapshot of gigabytes never delays a
//! heartbeat. The node that sends dials; the node that listens only reads. A connection begins with a [`Hello`] that says
//! who dials, and a welcome or a refusal with a sentence. Frames follow, each with its length and a checksum.
//!
//! # Two halves
//!
//! What happens on a connection is decided by [`Outbound`] and [`Inbound`]: bytes in, bytes and events out, with the time
//! as an argument. They have no thread, clock or socket, so a simulation drives the same code. [`Mesh`] is the shell: a
//! thread per connection, blocking sockets, and a queue with a budget of bytes per peer and lane.
//!
//! # What a full queue means
//!
//! | lane | at its budget |
//! |---|---|
//! | [`Lane::Consensus`] | the frame is dropped; Raft sends again |
//! | [`Lane::Requests`] | the sender gets [`SendError::Full`] and refuses its client: nothing was proposed |
//! | [`Lane::Bulk`] | the sender waits |

mod connection;
mod frame;
mod hello;
mod identity;
mod lane;
mod mesh;
mod queue;
mod registry;

pub use connection::{Closed, Event, Inbound, Outbound};
pub use frame::{FrameError, FrameReader, KIND_MIN};
pub use hello::{Hello, HelloError, Refusal};
pub use identity::{DirectoryId, Identity, NodeNumber};
pub use lane::Lane;
pub use mesh::{Absence, Mesh, MeshError, MeshOptions, Receiver};
pub use queue::SendError;
pub use registry::Registry;
