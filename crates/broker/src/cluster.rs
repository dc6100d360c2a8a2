//! The other nodes: how they become a cluster, and what they say to each other.

mod agreement;
mod configuration;
mod exporting;
mod founding;
mod joining;
mod messages;
mod port;
mod reached;
mod replacement;
mod report;
mod served;
mod serving;
mod thread;

pub(crate) use agreement::checksums;
pub(crate) use configuration::{ClusterConfiguration, Membership, life};
pub(crate) use exporting::{Consumers, LeadershipOf};
pub(crate) use founding::{Empty, Founding};
pub(crate) use joining::ClosePort;
pub use joining::{JoinError, Joining};
pub(crate) use messages::{ForwardedCommand, NodeStatus, RefusedCommand, ReplicaStatus, kind};
pub(crate) use port::{ClusterPort, Received};
pub use reached::Positions;
pub use replacement::ReplaceError;
pub(crate) use report::reports;
pub use report::{MemberReport, ReplicaReport};
pub(crate) use served::Served;
pub(crate) use thread::ClusterThread;
