//! Commands that start work and wait until their partition has room for them.
//!
//! A surge is so met by waiting first: the gateway reads no further from clients with many unanswered requests, so most of
//! it stays where it is made and costs nothing. Only what is above the limits of this queue is refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use parking_lot::Mutex;

use crate::entrance::Entrance;
use crate::flow_control::{Admission, Refusal};
use crate::inbox::{Inbound, QueuedCommand};
use crate::submit_error::SubmitError;

/// Commands that wait for room in one partition, in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Held {
    waiting: Mutex<Waiting>,
    /// How many there are, read without the lock: nearly always none.
    count: AtomicUsize,
    limit_commands: usize,
    limit_bytes: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    commands: VecDeque<HeldCommand>,
    bytes: usize,
}

/// An encoded command whose request is registered.
#[derive(Debug)]
pub(crate) struct HeldCommand {
    /// The number of its request.
    pub number: u64,
    pub bytes: Vec<u8>,
}

impl Held {
    pub fn new(limit_commands: usize, limit_bytes: usize) -> Self {
        Held { waiting: Mutex::default(), count: AtomicUsize::new(0), limit_commands, limit_bytes }
    }

    /// Whether nothing waits. What comes next must not overtake what does.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Forgets what waits; its requests are answered by the caller.
    pub fn clear(&self) {
        let mut waiting = self.waiting.lock();
        *waiting = Waiting::default();
        self.count.store(0, Ordering::Release);
    }

    /// `false` when too much waits already.
    fn push(&self, command: HeldCommand) -> bool {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes.saturating_add(command.bytes.len());
        if waiting.commands.len() >= self.limit_commands || bytes > self.limit_bytes {
            return false;
        }
        waiting.bytes = bytes;
        waiting.commands.push_back(command);
        self.count.store(waiting.commands.len(), Ordering::Release);
        true
    }
}

impl Entrance {
    /// Lets a command wait until there is room. `false` when too much waits already.
    pub fn hold(&self, command: HeldCommand, inbox: &Sender<Inbound>) -> bool {
        let held = self.held.push(command);
        // What took the room may have given it back before the command was there to be found.
        self.admit_held(inbox);
        held
    }

    /// Admits waiting commands while there is room. Called whenever room was given back.
    pub fn admit_held(&self, inbox: &Sender<Inbound>) {
        if self.held.is_empty() {
            return;
        }
        let mut refused = Vec::new();
        let mut waiting = self.held.waiting.lock();
        while let Some(first) = waiting.commands.front() {
            let admitted = self.limiter.admit(Admission::Growth, first.bytes.len(), self.unwritable());
            if admitted.as_ref().is_err_and(Refusal::is_passing) {
                break;
            }
            let Some(HeldCommand { number, bytes }) = waiting.commands.pop_front() else { break };
            waiting.bytes -= bytes.len();
            match admitted {
                Ok(permit) => {
                    let command = QueuedCommand { partition: self.id, bytes, permit: Some(permit) };
                    if inbox.send(Inbound::Command(command)).is_err() {
                        refused.push((number, SubmitError::Stopped));
                    }
                }
                Err(refusal) => refused.push((number, self.refuse(&refusal))),
            }
        }
        self.held.count.store(waiting.commands.len(), Ordering::Release);
        drop(waiting);
        for (number, error) in refused {
            if let Some(reply) = self.requests.take(number) {
                reply(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use protocol::PartitionId;

    use crate::flow_control::{Backlog, Permit};
    use crate::shared::Shared;

    use super::*;

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
        let mut permits = take_all(entrance);
        for number in 1..=3_u8 {
            assert!(entrance.hold(HeldCommand { number: number.into(), bytes: vec![number] }, &shared.inbox));
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
        assert_eq!(entrance.held.waiting.lock().bytes, 0);
    }

    #[test]
    fn too_many_or_too_large_commands_do_not_wait() {
        let (shared, _inbox) = Shared::for_test(1, 1);
        let entrance = shared.entrance(PartitionId(1)).expect("it exists");
        let _permits = take_all(entrance);
        let command = |bytes| HeldCommand { number: 1, bytes: vec![0; bytes] };
        assert!(!entrance.hold(command(entrance.held.limit_bytes + 1), &shared.inbox));
        for _ in 0..entrance.held.limit_commands {
            assert!(entrance.hold(command(1), &shared.inbox));
        }
        assert!(!entrance.hold(command(1), &shared.inbox));
    }

    #[test]
    fn what_waits_is_refused_when_it_could_not_be_taken_any_more() {
        let (shared, inbox) = Shared::for_test(1, 1);
        let entrance = shared.entrance(PartitionId(1)).expect("it exists");
        let permits = take_all(entrance);
        let (sender, answers) = mpsc::channel();
        assert!(entrance.requests.wait(5, Box::new(move |answer| drop(sender.send(answer)))).is_ok());
        assert!(entrance.hold(HeldCommand { number: 5, bytes: vec![5] }, &shared.inbox));
        let backlog = Backlog { exporter: "slow".to_owned(), bytes: 2, limit_bytes: 1 };
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
