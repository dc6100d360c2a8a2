//! A node that is served by a port.

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

impl Served for Shared {
    fn message(&self, message: Message, bytes: usize) {
        drop(self.inbox.send(Inbound::Message { message, bytes }));
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
