//! The other nodes: how they become a cluster, and what they say to each other.

mod configuration;
mod founding;
mod joining;
mod messages;
mod port;
mod replacement;
mod report;
mod thread;

pub(crate) use configuration::{ClusterConfiguration, life};
pub(crate) use joining::ClosePort;
pub use joining::{JoinError, Joining};
pub(crate) use messages::{ForwardedCommand, RefusedCommand, ReplicaStatus};
pub(crate) use port::ClusterPort;
pub use replacement::ReplaceError;
pub(crate) use report::reports;
pub use report::{MemberReport, ReplicaReport};
pub(crate) use thread::ClusterThread;
