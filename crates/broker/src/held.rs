//! Commands that start work and wait until their partition has room for them.
//!
//! A surge is so met by waiting first: the gateway reads no further from clients with many unanswered requests, so most of
//! it stays where it is made and costs nothing. Those who sent what waits take turns (`turns.rs`), and only what is above
//! the limits of this queue is refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use parking_lot::Mutex;

use crate::cluster::RefusedCommand;
use crate::entrance::Entrance;
use crate::flow_control::{Admission, Refusal};
use crate::inbox::{Inbound, QueuedCommand};
use crate::requests::KeptCommand;
use crate::submit_error::SubmitError;
use crate::turns::{HeldCommand, SenderId, Turns};

/// Commands that wait for room in one partition.
#[derive(Debug)]
pub(crate) struct Held {
    turns: Mutex<Turns>,
    /// How many there are, read without the lock: nearly always none.
    count: AtomicUsize,
}

impl Held {
    pub fn new(limit_commands: usize, limit_bytes: usize) -> Self {
        Held { turns: Mutex::new(Turns::new(limit_commands, limit_bytes)), count: AtomicUsize::new(0) }
    }

    /// Whether nothing waits. What comes next must not overtake what does.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Takes what waits; its requests are answered by the caller.
    pub fn drain(&self) -> impl Iterator<Item = HeldCommand> + use<> {
        let mut turns = self.turns.lock();
        self.count.store(0, Ordering::Release);
        turns.drain()
    }

    /// Adds a command, and returns those for which there is no room.
    fn push(&self, sender: SenderId, command: HeldCommand) -> Vec<HeldCommand> {
        let mut turns = self.turns.lock();
        let refused = turns.push(sender, command);
        self.count.store(turns.len(), Ordering::Release);
        refused
    }
}

impl Entrance {
    /// Lets a command wait until there is room. When too much waits already, the commands that have to make room are
    /// refused, or this one is.
    pub fn hold(&self, sender: SenderId, command: HeldCommand, refusal: &Refusal, inbox: &Sender<Inbound>) {
        let refused = self.held.push(sender, command);
        // What took the room may have given it back before the command was there to be found.
        self.admit_held(inbox);
        // The leadership may have ended meanwhile: nothing that is held may wait for another one.
        if !self.is_open() {
            self.pass_on_held();
        }
        for HeldCommand { request, .. } in refused {
            self.fail(request, &self.refuse(refusal));
        }
    }

    /// Admits waiting commands while there is room. Called whenever room was given back.
    pub fn admit_held(&self, inbox: &Sender<Inbound>) {
        if self.held.is_empty() {
            return;
        }
        let mut refused = Vec::new();
        let mut turns = self.held.turns.lock();
        while let Some(next) = turns.next() {
            let admitted = self.limiter.admit(Admission::Growth, next.bytes.len(), self.unwritable());
            if admitted.as_ref().is_err_and(Refusal::is_passing) {
                break;
            }
            let Some(HeldCommand { request, bytes, .. }) = turns.take() else { break };
            match admitted {
                Ok(permit) => {
                    let command =
                        QueuedCommand { partition: self.id, bytes, permit: Some(permit), term: Some(self.term()) };
                    if inbox.send(Inbound::Command(command)).is_err() {
                        refused.push((request, SubmitError::Stopped));
                    }
                }
                Err(refusal) => refused.push((request, self.refuse(&refusal))),
            }
        }
        self.held.count.store(turns.len(), Ordering::Release);
        drop(turns);
        for (request, error) in refused {
            self.fail(request, &error);
        }
    }

    /// The partition is not led from here any more: what waits for room goes to whoever leads it next.
    pub fn pass_on_held(&self) {
        for HeldCommand { request, sender, bytes } in self.held.drain() {
            if request.node != self.node {
                let error = self.not_led_here();
                self.refuse_elsewhere(request, &RefusedCommand::not_taken(self.id, request.number, &error));
            } else if self.port.is_some() {
                let command = KeptCommand { bytes: bytes.into(), admission: Admission::Growth, sender };
                self.requests.park_held(request.number, command);
            } else {
                self.fail(request, &self.not_led_here());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use protocol::{PartitionId, Request};

    use crate::flow_control::{Backlog, FlowControlOptions, Permit};
    use crate::shared::Shared;

    use super::*;

    fn held(number: u64, bytes: Vec<u8>) -> HeldCommand {
        HeldCommand { request: Request { node: 7, number }, sender: SenderId::default(), bytes }
    }

    /// A command waits, or is refused because it cannot.
    fn hold(shared: &Shared, command: HeldCommand) {
        let entrance = shared.entrance(PartitionId(1)).expect("it exists");
        entrance.hold(SenderId::default(), command, &entrance.limiter.no_room(), &shared.inbox);
    }

    fn inbound(inbox: &crossbeam_channel::Receiver<Inbound>) -> Vec<(Vec<u8>, Permit)> {
        let command = |message| match message {
            Inbound::Command(QueuedCommand { bytes, permit: Some(permit), .. }) => (bytes, permit),
            other => panic!("unexpected {other:?}"),
        };
        inbox.try_iter().map(command).collect()
    }

    fn take_all(entrance: &Entrance) -> Vec<Permit> {
        std::iter::from_fn(|| entrance.limiter.admit(Admission::Growth, 1, None).ok()).collect()
    }

    #[test]
    fn what_waits_goes_in_by_its_turn_as_room_is_given_back() {
        let (shared, inbox) = Shared::for_test(1, 1);
        let entrance = shared.entrance(PartitionId(1)).expect("it exists");
        let mut permits = take_all(&entrance);
        for number in 1..=3_u8 {
            hold(&shared, held(number.into(), vec![number]));
        }
        assert!(!entrance.held.is_empty());
        assert!(inbound(&inbox).is_empty(), "there is no room");
        permits.truncate(permits.len() - 2);
        entrance.admit_held(&shared.inbox);
        let mut taken = inbound(&inbox);
        assert_eq!(taken.iter().map(|(bytes, _)| bytes[0]).collect::<Vec<_>>(), [1, 2]);
        taken.clear();
        entrance.admit_held(&shared.inbox);
        assert_eq!(inbound(&inbox).len(), 1);
        assert!(entrance.held.is_empty());
    }

    #[test]
    fn too_many_or_too_large_commands_are_refused() {
        let (shared, _inbox) = Shared::for_test(1, 1);
        let entrance = shared.entrance(PartitionId(1)).expect("it exists");
        let _permits = take_all(&entrance);
        let limits = FlowControlOptions::default();
        let refused = |number, bytes| {
            let (sender, answers) = mpsc::channel();
            assert!(entrance.requests.wait(number, 0, Box::new(move |answer| drop(sender.send(answer)))).is_ok());
            hold(&shared, held(number, vec![0; bytes]));
            answers.try_recv().is_ok_and(|answer| matches!(answer, Err(SubmitError::ResourceExhausted { .. })))
        };
        assert!(refused(0, limits.inflight_limit_bytes + 1));
        for number in 1..=limits.held_commands as u64 {
            assert!(!refused(number, 1));
        }
        assert!(refused(1_000, 1));
        assert_eq!(entrance.limiter.totals().1, 2);
    }

    #[test]
    fn what_waits_is_refused_when_it_could_not_be_taken_any_more() {
        let (shared, inbox) = Shared::for_test(1, 1);
        let entrance = shared.entrance(PartitionId(1)).expect("it exists");
        let permits = take_all(&entrance);
        let (sender, answers) = mpsc::channel();
        assert!(entrance.requests.wait(5, 0, Box::new(move |answer| drop(sender.send(answer)))).is_ok());
        hold(&shared, held(5, vec![5]));
        let backlog = Backlog { exporter: "slow".to_owned(), bytes: 2, limit_bytes: 1, is_paused: false };
        entrance.limiter.set_backlog(Some(backlog));
        drop(permits);
        entrance.admit_held(&shared.inbox);
        let refusal = answers.try_recv().expect("an answer").expect_err("a refusal");
        assert!(matches!(refusal, SubmitError::ResourceExhausted { .. }), "{refusal}");
        assert_eq!(entrance.limiter.totals().1, 1);
        assert!(inbound(&inbox).is_empty());
        assert_eq!(entrance.limiter.in_flight(), 0);
    }
}
