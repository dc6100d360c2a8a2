//! Requests at any node: what was committed is answered once, by the node of the client as long as that lives; what the node
//! says is not carried out never is; and nothing is carried out twice. Otherwise a client does again what was done, or waits
//! for ever.

use std::collections::BTreeMap;

use broker::SubmitError;
use protocol::{PartitionId, Payload, ProcessInstanceCreationIntent, Request};
use replication::NodeId;

/// All requests that nodes took from clients.
#[derive(Default)]
pub struct Requests(BTreeMap<(PartitionId, Request), Sent>);

struct Sent {
    /// The number that its client gave it.
    number: u64,
    gateway: NodeId,
    /// The index of the batch that carried it out.
    applied: Option<u64>,
    /// Its answer is the end of an instance, and never comes when that is cancelled.
    awaits_end: bool,
    outcome: Option<Outcome>,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    /// Its client was promised that nothing was carried out.
    NotDone(String),
    Unknown,
}

impl Requests {
    /// A node takes a command of a client.
    pub fn sent(&mut self, gateway: NodeId, partition: PartitionId, request: Request, number: u64) {
        let sent = Sent { number, gateway, applied: None, awaits_end: false, outcome: None };
        let before = self.0.insert((partition, request), sent);
        assert!(before.is_none(), "node {gateway} numbers two requests of {partition} {request:?}");
    }

    /// A batch was applied that nobody had applied before.
    pub fn applied(&mut self, partition: PartitionId, index: u64, data: &[u8]) {
        let Ok(batch) = protocol::decode_batch(data) else { return };
        for command in batch.commands.iter().filter(|command| command.source.is_none()) {
            let Some(request) = command.request else { continue };
            let Some(sent) = self.0.get_mut(&(partition, request)) else { continue };
            sent.awaits_end = matches!(
                command.payload,
                Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::CreateWithAwaitingResult, _)
            );
            let before = sent.applied.replace(index);
            let number = sent.number;
            assert!(before.is_none(), "request {number} is carried out at {partition}/{before:?} and at {index}");
            let is_possible = !matches!(sent.outcome, Some(Outcome::NotDone(_)));
            assert!(is_possible, "request {number} is carried out at {partition}/{index}, after {:?}", sent.outcome);
        }
    }

    /// The client gets an answer of the engine.
    pub fn answered(&mut self, partition: PartitionId, request: Request) {
        if let Some(sent) = self.0.get_mut(&(partition, request)) {
            let before = sent.outcome.replace(Outcome::Answered);
            assert!(before.is_none(), "request {} is answered after {before:?}", sent.number);
        }
    }

    /// The client gets an error of its node.
    pub fn refused(&mut self, partition: PartitionId, request: Request, error: &SubmitError) {
        let Some(sent) = self.0.get_mut(&(partition, request)) else { return };
        let text = error.to_string();
        let is_unknown = matches!(error, SubmitError::Stopped | SubmitError::Unknown { .. });
        let outcome = if is_unknown { Outcome::Unknown } else { Outcome::NotDone(text) };
        let (number, applied) = (sent.number, sent.applied);
        assert!(
            is_unknown || applied.is_none(),
            "request {number} was carried out at {partition}/{applied:?}, and its client hears {outcome:?}"
        );
        let before = sent.outcome.replace(outcome);
        assert!(before.is_none(), "request {number} gets {:?} after {before:?}", sent.outcome);
    }

    /// A node stops: nobody waits there any more.
    pub fn stopped(&mut self, gateway: NodeId) {
        for sent in self.0.values_mut().filter(|sent| sent.gateway == gateway) {
            sent.outcome.get_or_insert(Outcome::Unknown);
        }
    }

    /// At the end nobody waits at a node that is there for what was carried out.
    pub fn check(&self, gateway: NodeId) {
        let is_left = |sent: &Sent| {
            sent.gateway == gateway && sent.applied.is_some() && sent.outcome.is_none() && !sent.awaits_end
        };
        let left = self.0.iter().find(|(_, sent)| is_left(sent));
        if let Some(((partition, request), Sent { number, applied, .. })) = left {
            panic!(
                "request {number} ({request:?}) was carried out at {partition}/{applied:?}, and node {gateway} does not \
                 answer its client"
            );
        }
    }
}
