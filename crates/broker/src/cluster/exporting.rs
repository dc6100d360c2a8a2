//! Exporters that the nodes of a cluster have in common: what is said of them between nodes.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use peers::NodeNumber;
use protocol::PartitionId;

use super::port::{ClusterPort, Contact};
use crate::entrance::Entrance;
use crate::exporting::{Exporters, Leadership, PauseChange, Said, Sent, Sharing};
use crate::inbox::Inbound;
use crate::shared::Shared;
use crate::status::Role;

/// What is kept for exporters is said at most this often.
const SAY_INTERVAL: Duration = Duration::from_secs(1);

/// The exporters of a node, for the thread that speaks with the other nodes.
pub(crate) struct Consumers {
    pub sharing: Arc<Sharing>,
    pub exporters: Exporters,
    sent: Sent,
    next_saying: Instant,
}

impl Consumers {
    pub fn new(sharing: Arc<Sharing>, exporters: Exporters) -> Self {
        Consumers { sharing, exporters, sent: Sent::default(), next_saying: Instant::now() }
    }

    /// From now on, what other nodes say is heard.
    pub fn listen(&self, shared: &Arc<Shared>, port: &ClusterPort) {
        // The port outlives the node.
        let (sharing, shared) = (Arc::downgrade(&self.sharing), Arc::downgrade(shared));
        port.take_exported(Box::new(move |from, payload| {
            if let (Some(sharing), Some(shared)) = (sharing.upgrade(), shared.upgrade()) {
                hear(&shared, &sharing, from, payload);
            }
        }));
    }

    /// Says what is kept for the exporters to who does not know it, if it is time for that.
    pub fn say(&mut self, shared: &Shared, port: &ClusterPort, now: Instant) {
        if now < self.next_saying {
            return;
        }
        self.next_saying = now + SAY_INTERVAL;
        self.hand_on(shared, port);
        let contacts = port.contacts();
        for entrance in shared.entrances.all().values() {
            // The term first: what is said later in it is true as well.
            let term = entrance.term();
            let said = self.sharing.say(entrance.id, term, entrance.is_open());
            for (node, contact) in &contacts {
                if !contact.is_connected {
                    self.sent.forget(node.0);
                } else if self.sent.is_news(node.0, &said, now)
                    && port.say_exported(*node, &protocol::encode_to_vec(&said))
                {
                    self.sent.note(node.0, said.clone(), now);
                }
            }
        }
    }

    /// Another node leads the partitions of which records that exporters need are missing here.
    fn hand_on(&self, shared: &Shared, port: &ClusterPort) {
        for (partition, reason) in self.exporters.lacking() {
            let Some(node) = successor(port, &self.sharing, partition) else { continue };
            if let Some(to) = port.configuration().and_then(|configuration| configuration.member(node)) {
                tracing::warn!(%partition, %node, reason, "the leadership goes to a node that has the records");
                drop(shared.inbox.send(Inbound::HandOver { partition, to: Some(to) }));
            }
        }
    }

    /// Takes over what operators said at other nodes.
    pub fn adopt_pause(&self, port: &ClusterPort) {
        let said = port.contacts().into_values().map(|contact| PauseChange::of_bits(contact.status.pause)).max();
        if let Some(change) = said
            && let Err(error) = self.exporters.adopt_pause(change)
        {
            tracing::warn!(%error, "a pause of exporting that was asked for at another node cannot be kept; trying again");
        }
    }
}

fn hear(shared: &Shared, sharing: &Sharing, from: NodeNumber, payload: &[u8]) {
    let said: Said = match protocol::decode(payload) {
        Ok(said) => said,
        Err(error) => return tracing::warn!(%from, %error, "what another node says of its exporters cannot be read"),
    };
    if let Some(problem) = said.problem() {
        return tracing::warn!(%from, problem, "what another node says of its exporters was dropped");
    }
    // What an earlier leader says is older than what this node knows.
    let entrance = shared.entrances.get(PartitionId(said.partition));
    if entrance.is_some_and(|entrance| !said.leads || said.term >= entrance.term()) {
        sharing.heard(from.0, &said);
    }
}

/// Who leads a partition, for the exporters of it.
#[derive(Debug)]
pub(crate) struct LeadershipOf {
    pub entrance: Arc<Entrance>,
    pub sharing: Weak<Sharing>,
}

impl LeadershipOf {
    fn port(&self) -> Option<&ClusterPort> {
        self.entrance.port.as_deref()
    }
}

impl Leadership for LeadershipOf {
    fn leads(&self) -> bool {
        self.entrance.is_open()
    }

    fn others_have_said(&self) -> bool {
        let (Some(port), Some(sharing)) = (self.port(), self.sharing.upgrade()) else { return true };
        let contacts = port.contacts();
        let now = Instant::now();
        contacts.iter().all(|(node, contact)| !contact.is_alive(now) || sharing.has_heard(node.0, self.entrance.id))
    }

    fn others_can_lead(&self) -> bool {
        let (Some(port), Some(sharing)) = (self.port(), self.sharing.upgrade()) else { return false };
        successor(port, &sharing, self.entrance.id).is_some()
    }
}

/// A node that may lead a partition and has all records that exporters need.
fn successor(port: &ClusterPort, sharing: &Sharing, partition: PartitionId) -> Option<NodeNumber> {
    let now = Instant::now();
    let follows = |replica: &super::ReplicaStatus| replica.partition == partition.0 && replica.role() == Role::Follower;
    let can_lead = |(node, contact): &(NodeNumber, Contact)| {
        let is_there = contact.is_alive(now) && contact.status.replicas.iter().any(follows);
        is_there && sharing.has_records(node.0, partition)
    };
    port.contacts().into_iter().find(can_lead).map(|(node, _)| node)
}
