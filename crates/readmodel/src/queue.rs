//! Searches that wait for a thread, in turns of those who asked.
//!
//! Each connection has a queue of its own, and the queues take turns: whoever asks for a hundred searches
//! at once delays others by one. What only looks for a key waits in other queues, which have a thread of
//! their own, so that it never waits for a search that reads a whole table.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Condvar, Mutex};

/// So many searches may wait for a thread, and as many that only look for a key.
pub(crate) const WAITING_MAX: usize = 256;

/// Who asks: a connection of a client, or (the default) the node itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderId(pub u64);

/// What a search costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// It reads the row with a key.
    Key,
    /// It may read many rows.
    Any,
}

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// A place in the queue, for whoever waits. What is dropped before a thread takes it is not carried out.
#[derive(Debug)]
pub struct Place(Option<Arc<AtomicU8>>);

impl Place {
    /// Waits no longer: whether no thread has taken it.
    pub fn give_up(&self) -> bool {
        self.0.as_ref().is_some_and(|state| moved(state, GIVEN_UP))
    }

    /// It is carried out although nobody waits.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Only one of those who take it and who give it up does.
fn moved(state: &AtomicU8, to: u8) -> bool {
    state.compare_exchange(WAITING, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Tasks of several senders, and whether there will be more.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    by_key: Turns<T>,
    any: Turns<T>,
    is_closed: bool,
}

/// One queue for each sender that waits; the first one has the next turn. None is empty.
#[derive(Debug)]
struct Turns<T> {
    queues: VecDeque<(SenderId, VecDeque<Waiting<T>>)>,
    count: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    task: T,
    state: Arc<AtomicU8>,
}

impl<T> Turns<T> {
    fn new() -> Turns<T> {
        Turns { queues: VecDeque::new(), count: 0 }
    }

    /// Adds a task. Returns the one for which there is no room: this one, or the newest one of the sender
    /// that has the most, if it has more than this one would have then.
    fn push(&mut self, sender: SenderId, waiting: Waiting<T>) -> Option<Waiting<T>> {
        if self.count >= WAITING_MAX {
            self.forget();
        }
        let own = self.queues.iter().position(|(of, _)| *of == sender);
        let wanted = own.map_or(0, |own| self.queues[own].1.len()) + 1;
        let mut pushed_out = None;
        if self.count >= WAITING_MAX {
            match self.queues.iter_mut().map(|(_, queue)| queue).max_by_key(|queue| queue.len()) {
                Some(most) if most.len() > wanted => pushed_out = most.pop_back(),
                _ => return Some(waiting),
            }
            self.count -= 1;
        }
        match own {
            Some(own) => self.queues[own].1.push_back(waiting),
            None => self.queues.push_back((sender, VecDeque::from([waiting]))),
        }
        self.count += 1;
        pushed_out
    }

    /// Forgets what nobody waits for any longer.
    fn forget(&mut self) {
        for (_, queue) in &mut self.queues {
            queue.retain(|waiting| waiting.state.load(Ordering::Acquire) == WAITING);
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
        self.count = self.queues.iter().map(|(_, queue)| queue.len()).sum();
    }

    /// Takes the task whose turn it is. Its sender has its next turn after all others.
    fn take(&mut self) -> Option<T> {
        while let Some((sender, mut queue)) = self.queues.pop_front() {
            let next = loop {
                let Some(next) = queue.pop_front() else { break None };
                self.count -= 1;
                if moved(&next.state, TAKEN) {
                    break Some(next.task);
                }
            };
            if !queue.is_empty() {
                self.queues.push_back((sender, queue));
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl<T> Queue<T> {
    pub fn new() -> Queue<T> {
        let state = State { by_key: Turns::new(), any: Turns::new(), is_closed: false };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a task: its place, and the task for which there is no room, which may be this one.
    pub fn push(&self, sender: SenderId, cost: Cost, task: T) -> (Place, Option<T>) {
        let state = Arc::new(AtomicU8::new(WAITING));
        let waiting = Waiting { task, state: state.clone() };
        let mut queues = self.state.lock();
        let turns = match cost {
            Cost::Key => &mut queues.by_key,
            Cost::Any => &mut queues.any,
        };
        let pushed_out = turns.push(sender, waiting);
        drop(queues);
        // Those who serve searches of one cost only may wait too.
        self.changed.notify_all();
        (Place(Some(state)), pushed_out.map(|waiting| waiting.task))
    }

    /// Waits for the next task of this cost; whoever serves any looks for keys too while there is nothing
    /// else. None once the queue is closed and empty.
    pub fn take(&self, cost: Cost) -> Option<T> {
        let mut queues = self.state.lock();
        loop {
            let next = match cost {
                Cost::Key => queues.by_key.take(),
                Cost::Any => queues.any.take().or_else(|| queues.by_key.take()),
            };
            if next.is_some() || queues.is_closed {
                return next;
            }
            self.changed.wait(&mut queues);
        }
    }

    /// There will be no more tasks.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: SenderId = SenderId(1);
    const BOB: SenderId = SenderId(2);

    #[test]
    fn senders_take_turns_and_keys_wait_for_nobody() {
        let queue = Queue::new();
        let push = |sender, cost, task: &'static str| queue.push(sender, cost, task).0;
        let places = [
            push(ALICE, Cost::Any, "a1"),
            push(ALICE, Cost::Any, "a2"),
            push(ALICE, Cost::Any, "a3"),
            push(BOB, Cost::Any, "b1"),
            push(BOB, Cost::Key, "key"),
        ];
        assert_eq!(queue.take(Cost::Key), Some("key"));
        assert!(places[1].give_up(), "nobody has taken it");
        queue.close();
        let taken: Vec<&str> = std::iter::from_fn(|| queue.take(Cost::Any)).collect();
        assert_eq!(taken, ["a1", "b1", "a3"]);
        assert!(!places[0].give_up(), "it was taken");
    }

    #[test]
    fn whoever_waits_most_has_no_room_for_more() {
        let queue = Queue::new();
        let mut places: Vec<Place> = Vec::new();
        for number in 0..WAITING_MAX {
            let (place, refused) = queue.push(ALICE, Cost::Any, number);
            assert_eq!(refused, None);
            places.push(place);
        }
        let (_, refused) = queue.push(ALICE, Cost::Any, WAITING_MAX);
        assert_eq!(refused, Some(WAITING_MAX), "her own");
        let (of_bob, refused) = queue.push(BOB, Cost::Any, 1_000);
        assert_eq!(refused, Some(WAITING_MAX - 1), "the newest one of whoever has the most");
        drop(places.split_off(10));
        let (more, refused) = queue.push(ALICE, Cost::Any, 2_000);
        assert_eq!(refused, None, "what nobody waits for takes no room");
        queue.close();
        assert_eq!(std::iter::from_fn(|| queue.take(Cost::Any)).count(), 10 + 2);
        drop((of_bob, more));
    }
}
