//! A node that is served by a port.

use std::time::{Duration, Instant};

use peers::NodeNumber;
use protocol::PartitionId;
use replication::{Message, NodeId};

use super::messages::{ForwardedCommand, RefusedCommand};
use super::reached::{Reached, ReachedReplica};
use super::replacement::replace_here;
use super::served::Served;
use crate::entrance::Entrance;
use crate::inbox::Inbound;
use crate::shared::Shared;

/// After a connection is lost, an election that says what became of a command takes less.
const LOST_CONNECTION_MAX: Duration = Duration::from_secs(5);
/// When the connection is back and the leader is the same, what had arrived is applied in less.
const REGAINED_CONNECTION_MAX: Duration = Duration::from_secs(2);

impl Shared {
    /// What was sent to a node and is not answered by then has an unknown outcome.
    fn wait_no_longer_than(&self, node: NodeNumber, time: Duration) {
        let until = Instant::now() + time;
        for entrance in self.entrances.all().values() {
            entrance.requests.doubt(node.0, until);
        }
    }
}

impl Served for Shared {
    fn message(&self, message: Message, bytes: usize) {
        drop(self.inbox.send(Inbound::Message { message, bytes }));
    }

    fn disconnected(&self, node: NodeNumber) {
        self.wait_no_longer_than(node, LOST_CONNECTION_MAX);
    }

    fn reconnected(&self, node: NodeNumber) {
        self.wait_no_longer_than(node, REGAINED_CONNECTION_MAX);
    }

    fn unreachable(&self, member: NodeId) {
        drop(self.inbox.send(Inbound::Unreachable(member)));
    }

    fn gone(&self, member: NodeId) {
        drop(self.inbox.send(Inbound::Gone(member)));
    }

    fn everybody_has(&self, partition: PartitionId, term: u64, index: u64) {
        if self.entrances.get(partition).is_some_and(|known| known.term() == term) {
            drop(self.inbox.send(Inbound::EverybodyHas { partition, index }));
        }
    }

    fn command(&self, from: NodeNumber, command: &ForwardedCommand<'_>) {
        self.take_forwarded(from, command);
    }

    fn refused(&self, refusal: RefusedCommand) {
        if let Some(entrance) = self.entrances.get(PartitionId(refusal.partition)) {
            entrance.refused_elsewhere(self, refusal);
        }
    }

    fn replace(&self, node: NodeNumber) {
        let Some(port) = &self.port else { return };
        if let Err(error) = replace_here(self, port, node) {
            tracing::warn!(%error, %node, "the directory of a node was not replaced");
        }
    }

    fn reached(&self, question: u64) -> Reached {
        // The position last: it may be a later one than needed, and no earlier one.
        let replica = |entrance: &Entrance| {
            let (term, leads) = (entrance.term(), entrance.is_open());
            ReachedReplica { partition: entrance.id.0, term, leads, position: entrance.last_position() }
        };
        Reached { question, replicas: self.entrances.all().values().map(|entrance| replica(entrance)).collect() }
    }

    fn partition_count(&self) -> u16 {
        self.partition_count
    }
}
