//! How far the leaders of all partitions are at a moment.
//!
//! All nodes are asked. A leader counts when a majority, itself included, has answered and nobody knows of a later term: then
//! no other leader can have committed anything before the question.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use protocol::PartitionId;

/// So many questions may wait for answers at once.
const QUESTIONS_MAX: usize = 10_000;

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Reached {
    /// The number of the question.
    #[n(0)]
    pub question: u64,
    /// Its replicas.
    #[n(1)]
    pub replicas: Vec<ReachedReplica>,
}

/// How far a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReachedReplica {
    /// The partition.
    #[n(0)]
    pub partition: u16,
    /// Raft's term.
    #[n(1)]
    pub term: u64,
    /// Whether it leads in that term, and has applied everything from before.
    #[n(2)]
    pub leads: bool,
    /// Position of the last record that is part of its state.
    #[n(3)]
    pub position: u64,
}

/// The position that each partition has reached at least.
pub type Positions = Vec<(PartitionId, u64)>;

type Told = Box<dyn FnOnce(Positions) + Send>;

/// Questions that wait for answers.
#[derive(Default)]
pub(crate) struct Questions {
    last: u64,
    waiting: BTreeMap<u64, Question>,
}

struct Question {
    answers: BTreeMap<u32, Vec<ReachedReplica>>,
    told: Told,
}

impl Questions {
    /// A question; none when too many wait. Then `told` is dropped.
    pub fn ask(&mut self, told: impl FnOnce(Positions) + Send + 'static) -> Option<u64> {
        if self.waiting.len() >= QUESTIONS_MAX {
            return None;
        }
        self.last += 1;
        self.waiting.insert(self.last, Question { answers: BTreeMap::new(), told: Box::new(told) });
        Some(self.last)
    }

    /// Nobody waits any more.
    pub fn forget(&mut self, question: u64) {
        self.waiting.remove(&question);
    }

    /// A node of so many answers. Returns who is to be told what, if that was the last answer that was needed.
    pub fn answered(
        &mut self,
        node: u32,
        reached: Reached,
        (nodes, partitions): (usize, u16),
    ) -> Option<(Told, Positions)> {
        let question = self.waiting.get_mut(&reached.question)?;
        question.answers.insert(node, reached.replicas);
        let positions = positions(&question.answers, nodes, partitions)?;
        let question = self.waiting.remove(&reached.question)?;
        Some((question.told, positions))
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Questions").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

/// What answers come to, once there are enough of them.
fn positions(answers: &BTreeMap<u32, Vec<ReachedReplica>>, nodes: usize, partitions: u16) -> Option<Positions> {
    if answers.len() * 2 <= nodes {
        return None;
    }
    (1..=partitions)
        .map(|partition| {
            let replicas = || answers.values().flatten().filter(|replica| replica.partition == partition);
            let term = replicas().map(|replica| replica.term).max()?;
            let is_led = replicas().any(|replica| replica.leads && replica.term == term);
            // Another node may have answered its client before the leader has applied the same.
            let position = replicas().map(|replica| replica.position).max()?;
            is_led.then_some((PartitionId(partition), position))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn replica(term: u64, leads: bool, position: u64) -> ReachedReplica {
        ReachedReplica { partition: 1, term, leads, position }
    }

    /// What comes of the answers of nodes, one after another, of three.
    fn told(answers: &[(u32, ReachedReplica)]) -> Vec<Option<u64>> {
        let (mut questions, (sender, told)) = (Questions::default(), mpsc::channel());
        let question = questions.ask(move |positions| sender.send(positions).expect("it is read")).expect("the first");
        let answer = |(node, replica): &(u32, ReachedReplica)| {
            let reached = Reached { question, replicas: vec![*replica] };
            let reached = protocol::decode(&protocol::encode_to_vec(&reached)).expect("it was encoded");
            if let Some((tell, positions)) = questions.answered(*node, reached, (3, 1)) {
                tell(positions);
            }
            told.try_recv().ok().map(|positions| positions[0].1)
        };
        answers.iter().map(answer).collect()
    }

    #[test]
    fn a_leader_counts_when_a_majority_knows_of_no_later_one() {
        let (old, new, behind) = (replica(3, true, 90), replica(4, true, 120), replica(3, false, 80));
        assert_eq!(told(&[(0, old), (1, behind)]), [None, Some(90)]);
        assert_eq!(
            told(&[(0, old), (0, old), (1, replica(3, false, 95))]),
            [None, None, Some(95)],
            "one is no majority"
        );
        assert_eq!(told(&[(0, old), (1, replica(4, false, 80)), (2, new)]), [None, None, Some(120)]);
        assert_eq!(told(&[(1, behind), (2, behind), (0, old)]), [None, None, Some(90)]);
        assert_eq!(told(&[(1, replica(4, false, 90)), (0, old)]), [None, None], "who leads does not know it yet");
    }

    #[test]
    fn questions_are_limited_and_forgotten() {
        let mut questions = Questions::default();
        let first = questions.ask(drop).expect("the first");
        (1..QUESTIONS_MAX).for_each(|_| assert!(questions.ask(drop).is_some()));
        assert_eq!(questions.ask(drop), None);
        questions.forget(first);
        assert!(questions.ask(drop).is_some());
        let answer = Reached { question: first, replicas: vec![replica(1, true, 1)] };
        assert!(questions.answered(0, answer, (1, 1)).is_none());
    }
}
