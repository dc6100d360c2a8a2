//! Commands for partitions that another node leads.
//!
//! The command travels, not the call of the client: it is encoded once, and the leader's entrance admits it by its own
//! limits, in turns with the commands of other connections at all nodes. The answer comes from the replica of the client's
//! node, which applies the command as all replicas do. What certainly was not taken is sent to the next leader; what was
//! given to a leader is never given to another one.

use std::sync::Arc;
use std::time::Instant;

use peers::{NodeNumber, SendError};
use protocol::{Command, PartitionId, Request};

use crate::cluster::{ForwardedCommand, RefusedCommand};
use crate::entrance::{Entrance, Lead};
use crate::flow_control::{Admission, Refusal};
use crate::inbox::{Inbound, QueuedCommand};
use crate::requests::KeptCommand;
use crate::shared::Shared;
use crate::status::{Health, Role};
use crate::submit_error::SubmitError;
use crate::turns::{HeldCommand, SenderId};

impl Entrance {
    /// Sends a parked command to whoever leads; without a leader it stays parked.
    pub fn send_on(&self, shared: &Shared, number: u64) {
        let Lead { term, leader } = self.lead();
        match leader {
            Some(node) if node != self.node => self.send_to(node, term, number),
            Some(_) if self.is_open() => self.take_parked(shared, number, term),
            // Nobody leads, or this node does not yet.
            Some(_) | None => {}
        }
    }

    /// Sends all parked commands to whoever leads.
    pub fn send_parked(&self, shared: &Shared) {
        for number in self.requests.parked() {
            self.send_on(shared, number);
        }
    }

    /// This node follows, or looks for, the leader of a term.
    pub fn follow(&self, shared: &Shared, leader: Option<u32>, term: u64) {
        self.set_lead(term, leader);
        self.set_role(Role::Follower);
        if leader.is_some() && !self.health().has_stopped() {
            self.set_health(Health::Healthy);
        }
        self.send_parked(shared);
    }

    /// Everything before a leadership is applied: commands may come in, unless it has ended meanwhile.
    pub fn begin_leadership(&self, shared: &Shared, leadership: u64) {
        self.set_health(Health::Healthy);
        if self.open(leadership) {
            self.send_parked(shared);
        }
    }

    /// The leadership has ended, or ends before it began: nothing comes in any more, and what waits for room goes to whoever
    /// leads next.
    pub fn end_leadership(&self) {
        self.close();
        self.pass_on_held();
    }

    /// A command was parked, and this node leads now.
    fn take_parked(&self, shared: &Shared, number: u64, term: u64) {
        let Some(KeptCommand { bytes, admission, sender }) = self.requests.send(number, term, None) else { return };
        let request = Request { node: self.node, number };
        self.take_in(shared, (request, term), sender, admission, bytes.into());
    }

    fn send_to(&self, node: u32, term: u64, number: u64) {
        let Some(port) = &self.port else { return };
        let Some(KeptCommand { bytes, admission, sender }) = self.requests.send(number, term, Some(node)) else {
            return;
        };
        let (partition, origin, sender) = (self.id, self.node, sender.0);
        let request = Some(number);
        let command = ForwardedCommand { partition, origin, sender, request, term, admission, bytes: &bytes };
        match port.send_command(node, &command) {
            Ok(()) => {}
            Err(SendError::Full { .. }) => {
                let reason = format!(
                    "partition {partition} is led by node {node}, which takes commands more slowly than they come; try again \
                     after a pause"
                );
                let error = SubmitError::ResourceExhausted { partition, reason };
                self.fail(Request { node: self.node, number }, &error);
            }
            Err(SendError::TooLarge { .. }) => {
                let reason = format!(
                    "the command is too large to be sent to node {node}, which leads partition {partition}; send less data, \
                     for example fewer or smaller variables"
                );
                let error = SubmitError::ResourceExhausted { partition, reason };
                self.fail(Request { node: self.node, number }, &error);
            }
            // Its successor gets it.
            Err(SendError::Unreachable(_) | SendError::Unknown(_)) => {
                tracing::trace!(%partition, node, "a command waits, because its leader cannot be reached");
                self.requests.park_again(number);
            }
        }
    }

    /// A command that no client waits for goes to the leader; it is lost when there is none.
    pub fn forward(&self, shared: &Shared, admission: Admission, bytes: &[u8]) -> Result<(), SubmitError> {
        let Lead { term, leader } = self.lead();
        let no_leader = || SubmitError::Unavailable {
            partition: self.id,
            reason: "it has no leader that this node can reach".into(),
        };
        let (Some(port), Some(node)) = (&shared.port, leader.filter(|node| *node != self.node)) else {
            return Err(no_leader());
        };
        let (partition, origin, sender, request) = (self.id, self.node, 0, None);
        let command = ForwardedCommand { partition, origin, sender, request, term, admission, bytes };
        port.send_command(node, &command).map_err(|_| no_leader())
    }

    /// Admits a command by the limits of the partition, which this node leads in a term.
    fn take_in(
        &self,
        shared: &Shared,
        (request, term): (Request, u64),
        sender: SenderId,
        admission: Admission,
        bytes: Vec<u8>,
    ) {
        match self.admit(admission, bytes.len()) {
            Ok(permit) => {
                let command = QueuedCommand { partition: self.id, bytes, permit: Some(permit), term: Some(term) };
                if shared.inbox.send(Inbound::Command(command)).is_err() {
                    self.fail(request, &SubmitError::Stopped);
                }
            }
            Err(refusal) if admission == Admission::Growth && refusal.is_passing() => {
                self.hold(sender, HeldCommand { request, sender, bytes }, &refusal, &shared.inbox);
            }
            Err(refusal) => self.fail(request, &self.refuse(&refusal)),
        }
    }

    /// The node that was taken for the leader has not taken a command.
    pub fn refused_elsewhere(&self, shared: &Shared, refusal: RefusedCommand) {
        let number = refusal.request;
        if !refusal.is_led_elsewhere {
            return self.fail(Request { node: self.node, number }, &refusal.error());
        }
        let before = self.lead();
        if !self.requests.park_again(number) {
            return;
        }
        // When the refusal was overtaken by news of the leader; otherwise the news sends it on.
        if before.leader.is_some_and(|node| node == self.node) || before.term > refusal.term {
            self.send_on(shared, number);
        }
    }
}

impl Shared {
    /// Takes a command of another node, or says why not.
    pub fn take_forwarded(&self, from: NodeNumber, command: &ForwardedCommand<'_>) {
        let ForwardedCommand { partition, origin, sender, request, term, admission, bytes } = *command;
        let Some(entrance) = self.entrances.get(partition) else {
            return tracing::debug!(%partition, %from, "a command for a partition that this node does not hold was dropped");
        };
        let Some(number) = request else { return self.take_internal(&entrance, admission, bytes) };
        let request = Request { node: origin, number };
        if !entrance.is_open() || entrance.term() != term {
            let error = entrance.not_led_here();
            let refusal = RefusedCommand { term, ..RefusedCommand::not_taken(partition, number, &error) };
            return entrance.refuse_elsewhere(request, &refusal);
        }
        let sender = SenderId::at(origin, sender);
        entrance.take_in(self, (request, term), sender, admission, bytes.to_vec());
    }

    /// Refuses commands that have waited for a leader for too long, and sends the others on. For many times a second.
    pub fn look_after_parked(&self, now: Instant) {
        for entrance in self.entrances.all().values() {
            entrance.requests.refuse_parked(now);
            entrance.send_parked(self);
        }
    }

    fn take_internal(&self, entrance: &Arc<Entrance>, admission: Admission, bytes: &[u8]) {
        if !entrance.is_open() {
            return;
        }
        // What is refused here is sent again by whoever needs it.
        let admitted: Result<_, Refusal> = entrance.admit(admission, bytes.len());
        if let Ok(permit) = admitted {
            let (partition, bytes, permit) = (entrance.id, bytes.to_vec(), Some(permit));
            drop(self.inbox.send(Inbound::Command(QueuedCommand { partition, bytes, permit, term: None })));
        }
    }

    /// A command of the node itself goes to the leader of a partition. What does not arrive is sent again by its sender.
    pub fn submit_to(&self, partition: PartitionId, command: &Command) {
        let Ok(entrance) = self.entrance(partition) else { return };
        if self.port.is_none() || entrance.lead().leader == Some(self.node) {
            drop(self.inbox.send(Inbound::Command(QueuedCommand::internal(partition, command))));
            return;
        }
        let (admission, bytes) = (Admission::of(&command.payload), protocol::encode_to_vec(command));
        if let Err(error) = entrance.forward(self, admission, &bytes) {
            tracing::debug!(%partition, %error, "a command of the node was not sent");
        }
    }
}
