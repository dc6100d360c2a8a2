//! Commands that wait, in turns of those who sent them.
//!
//! Each sender has a queue of its own, and the queues take turns. So who sends a thousand commands at once delays others by
//! one of them, not by all; and when there is no more room, it is the commands of such a sender that are refused.

use std::collections::VecDeque;

use protocol::Request;

/// Who sends commands: a connection of a client, or (the default) the node itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SenderId(pub u64);

/// Senders of a node have numbers of so many bits; above them is the number of the node.
const SENDER_BITS: u32 = 40;

impl SenderId {
    /// A sender at another node.
    pub fn at(node: u32, sender: u64) -> SenderId {
        SenderId((u64::from(node) + 1) << SENDER_BITS | sender & ((1 << SENDER_BITS) - 1))
    }
}

/// An encoded command whose request is registered, at this node or at another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeldCommand {
    /// Its request.
    pub request: Request,
    /// Who sends it.
    pub sender: SenderId,
    pub bytes: Vec<u8>,
}

/// Commands of several senders, within limits.
#[derive(Debug)]
pub(crate) struct Turns {
    /// One for each sender that has a command here; the first one has the next turn.
    queues: VecDeque<Queue>,
    commands: usize,
    bytes: usize,
    limit_commands: usize,
    limit_bytes: usize,
}

/// What waits of one sender, in the order of its arrival. Never empty.
#[derive(Debug)]
struct Queue {
    sender: SenderId,
    commands: VecDeque<HeldCommand>,
    bytes: usize,
}

impl Turns {
    pub fn new(limit_commands: usize, limit_bytes: usize) -> Self {
        Turns { queues: VecDeque::new(), commands: 0, bytes: 0, limit_commands, limit_bytes }
    }

    /// How many commands wait.
    pub fn len(&self) -> usize {
        self.commands
    }

    /// Takes everything, and is empty afterwards.
    pub fn drain(&mut self) -> impl Iterator<Item = HeldCommand> + use<> {
        let all = std::mem::replace(self, Turns::new(self.limit_commands, self.limit_bytes));
        all.queues.into_iter().flat_map(|queue| queue.commands)
    }

    /// Adds a command. Returns those for which there is no room, which is nearly always none: this one, or newer ones of
    /// the sender that holds the most.
    pub fn push(&mut self, sender: SenderId, command: HeldCommand) -> Vec<HeldCommand> {
        let own = self.queues.iter().position(|queue| queue.sender == sender);
        let Some(pushed_out) = self.make_room(own, command.bytes.len()) else { return vec![command] };
        let own = own.unwrap_or_else(|| {
            self.queues.push_back(Queue { sender, commands: VecDeque::new(), bytes: 0 });
            self.queues.len() - 1
        });
        let queue = &mut self.queues[own];
        self.commands += 1;
        self.bytes += command.bytes.len();
        queue.bytes += command.bytes.len();
        queue.commands.push_back(command);
        pushed_out
    }

    /// The command whose turn it is.
    pub fn next(&self) -> Option<&HeldCommand> {
        self.queues.front()?.commands.front()
    }

    /// Takes the command whose turn it is. Its sender has its next turn after all others.
    pub fn take(&mut self) -> Option<HeldCommand> {
        let mut queue = self.queues.pop_front()?;
        let command = queue.commands.pop_front()?;
        self.commands -= 1;
        self.bytes -= command.bytes.len();
        queue.bytes -= command.bytes.len();
        if !queue.commands.is_empty() {
            self.queues.push_back(queue);
        }
        Some(command)
    }

    /// Makes room for a command of the sender with the queue `own`, with newest commands of the sender that holds the most
    /// of what is used up. None when that would leave it less than the other one holds then: senders that hold alike do not
    /// push each other out.
    fn make_room(&mut self, own: Option<usize>, bytes: usize) -> Option<Vec<HeldCommand>> {
        let missing_bytes = self.bytes.saturating_add(bytes).saturating_sub(self.limit_bytes);
        if missing_bytes == 0 && self.commands < self.limit_commands {
            return Some(Vec::new());
        }
        let amount = |commands: usize, bytes: usize| if missing_bytes > 0 { bytes } else { commands };
        let held = |queue: &Queue| amount(queue.commands.len(), queue.bytes);
        let wanted = own.map_or(0, |own| held(&self.queues[own])) + amount(1, bytes);
        let most = self.queues.iter_mut().max_by_key(|queue| held(queue))?;
        let (mut count, mut freed) = (0, 0);
        for command in most.commands.iter().rev() {
            if count > 0 && freed >= missing_bytes {
                break;
            }
            count += 1;
            freed += command.bytes.len();
        }
        if freed < missing_bytes || held(most) - amount(count, freed) < wanted {
            return None;
        }
        self.commands -= count;
        self.bytes -= freed;
        most.bytes -= freed;
        Some(most.commands.split_off(most.commands.len() - count).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: SenderId = SenderId(1);
    const BOB: SenderId = SenderId(2);
    const CAROL: SenderId = SenderId(3);

    fn command(number: u64, bytes: usize) -> HeldCommand {
        HeldCommand { request: Request { node: 7, number }, sender: SenderId::default(), bytes: vec![0; bytes] }
    }

    /// Pushes commands of one byte, and expects room for each.
    fn push_all(turns: &mut Turns, sender: SenderId, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            assert_eq!(turns.push(sender, command(number, 1)), [], "there is room for {number}");
        }
    }

    fn numbers(commands: impl IntoIterator<Item = HeldCommand>) -> Vec<u64> {
        commands.into_iter().map(|command| command.request.number).collect()
    }

    /// Takes everything. The sums are right at each step, and nobody has a queue who has nothing in it.
    fn take_all(turns: &mut Turns) -> Vec<u64> {
        let taken = std::iter::from_fn(|| {
            let commands: usize = turns.queues.iter().map(|queue| queue.commands.len()).sum();
            let sizes = turns.queues.iter().flat_map(|queue| &queue.commands).map(|command| command.bytes.len());
            assert_eq!((turns.commands, turns.bytes), (commands, sizes.sum()));
            assert!(turns.queues.iter().all(|queue| !queue.commands.is_empty()));
            let next = turns.next().map(|command| command.request.number);
            let taken = turns.take().map(|command| command.request.number);
            assert_eq!(next, taken);
            taken
        });
        let taken = taken.collect();
        assert_eq!((turns.len(), turns.bytes, turns.queues.len()), (0, 0, 0));
        taken
    }

    #[test]
    fn one_sender_is_served_in_its_order() {
        let mut turns = Turns::new(10, 10);
        push_all(&mut turns, ALICE, 1..=5);
        assert_eq!(take_all(&mut turns), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn senders_take_turns_and_keep_their_own_order() {
        let mut turns = Turns::new(100, 100);
        push_all(&mut turns, ALICE, 10..14);
        push_all(&mut turns, BOB, 20..22);
        assert_eq!(turns.take().map(|command| command.request.number), Some(10));
        push_all(&mut turns, CAROL, 30..31);
        push_all(&mut turns, BOB, 22..23);
        assert_eq!(take_all(&mut turns), [20, 11, 30, 21, 12, 22, 13]);
    }

    #[test]
    fn the_newest_of_whoever_holds_the_most_makes_room_for_who_holds_less() {
        let mut turns = Turns::new(5, 100);
        push_all(&mut turns, ALICE, 10..14);
        push_all(&mut turns, BOB, 20..21);
        assert_eq!(numbers(turns.push(BOB, command(21, 1))), [13]);
        assert_eq!(numbers(turns.push(CAROL, command(30, 1))), [12]);
        assert_eq!(take_all(&mut turns), [10, 20, 30, 11, 21]);
    }

    #[test]
    fn whoever_would_hold_more_than_it_leaves_is_refused_itself() {
        let mut turns = Turns::new(4, 100);
        push_all(&mut turns, ALICE, 10..13);
        push_all(&mut turns, BOB, 20..21);
        assert_eq!(numbers(turns.push(ALICE, command(13, 1))), [13]);
        assert_eq!(numbers(turns.push(BOB, command(21, 1))), [12]);
        assert_eq!(numbers(turns.push(BOB, command(22, 1))), [22], "both hold two");
        assert_eq!(numbers(turns.push(CAROL, command(30, 1))), [21]);
        assert_eq!(numbers(turns.push(SenderId(4), command(40, 1))), [11]);
        assert_eq!(numbers(turns.push(SenderId(5), command(50, 1))), [50], "nobody holds two");
        assert_eq!(take_all(&mut turns), [10, 20, 30, 40]);
    }

    #[test]
    fn bytes_are_taken_from_whoever_holds_the_most_of_them() {
        let mut turns = Turns::new(100, 100);
        push_all(&mut turns, ALICE, 10..30);
        for number in 40..44 {
            assert_eq!(turns.push(BOB, command(number, 20)), []);
        }
        assert_eq!(numbers(turns.push(BOB, command(44, 1))), [44]);
        assert_eq!(numbers(turns.push(CAROL, command(50, 30))), [42, 43], "as many as it takes");
        assert_eq!(turns.bytes, 90);
        assert_eq!(
            numbers(turns.push(ALICE, command(30, 11))),
            [30],
            "it would hold 31 bytes, and nobody could spare them"
        );
        assert_eq!(numbers(turns.push(CAROL, command(51, 101))), [51], "larger than everything");
        assert_eq!(turns.bytes, 90);
        assert_eq!(take_all(&mut turns)[..4], [10, 40, 50, 11]);
    }

    #[test]
    fn cleared_it_has_room_again() {
        let mut turns = Turns::new(2, 2);
        push_all(&mut turns, ALICE, 1..=2);
        drop(turns.drain());
        assert_eq!((turns.len(), turns.next()), (0, None));
        push_all(&mut turns, BOB, 3..=4);
        assert_eq!(take_all(&mut turns), [3, 4]);
    }
}
