//! Jobs of polls on their way to clients.

use std::sync::Arc;

use protocol::{PartitionId, Request};

use crate::client::Client;
use crate::shared::Shared;

/// Jobs of a poll on their way to a client. Dropped when they are with the client, or were given back.
pub struct Delivery {
    shared: Arc<Shared>,
    partition: PartitionId,
    poll: u64,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.shared.polls.end(self.partition, self.poll);
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Delivery").field("partition", &self.partition).field("poll", &self.poll).finish()
    }
}

impl Client {
    /// The jobs of an answered poll are on their way. While one of them is not delivered, the partition keeps them for this
    /// node: should the node be gone, other workers get them at once.
    pub fn delivery(&self, partition: PartitionId, poll: Request) -> Delivery {
        Delivery { shared: self.shared.clone(), partition, poll: poll.number }
    }
}
