//! The polls of this node: which of their answers are with a client, for the partitions that keep the jobs of the others.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use protocol::{JobBatchIntent, PartitionId, Payload};

use crate::submit_error::SubmitError;
use engine::Reply;

/// The polls of a node by partition.
#[derive(Debug, Default)]
pub(crate) struct Polls(Mutex<BTreeMap<PartitionId, OfPartition>>);

#[derive(Debug, Default)]
struct OfPartition {
    /// Polls whose answer has not come, or is not with a client yet.
    open: BTreeSet<u64>,
    /// The last poll.
    last: u64,
}

impl Polls {
    /// A poll is on its way.
    pub fn begin(&self, partition: PartitionId, number: u64) {
        let mut all = self.0.lock();
        let polls = all.entry(partition).or_default();
        polls.open.insert(number);
        polls.last = polls.last.max(number);
    }

    /// The jobs of a poll are with a client, or were given back, or there were none.
    pub fn end(&self, partition: PartitionId, number: u64) {
        if let Some(polls) = self.0.lock().get_mut(&partition) {
            polls.open.remove(&number);
        }
    }

    /// The last poll up to which all have ended.
    pub fn ended(&self, partition: PartitionId) -> Option<u64> {
        let all = self.0.lock();
        let polls = all.get(&partition)?;
        Some(polls.open.first().map_or(polls.last, |first| first.saturating_sub(1)))
    }
}

/// Whether a command asks for jobs.
pub(crate) fn is_poll(payload: &Payload) -> bool {
    matches!(payload, Payload::JobBatch(JobBatchIntent::Activate, _))
}

/// Whether an answer has jobs, whose poll ends when a client has them.
pub(crate) fn has_jobs(answer: &Result<Reply, SubmitError>) -> bool {
    match answer {
        Ok(Reply { payload: Payload::JobBatch(_, batch), .. }) => !batch.jobs.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_have_ended_up_to_the_first_that_has_not() {
        let (polls, partition) = (Polls::default(), PartitionId(1));
        assert_eq!(polls.ended(partition), None);
        (5..=8).for_each(|number| polls.begin(partition, number));
        assert_eq!(polls.ended(partition), Some(4));
        polls.end(partition, 6);
        assert_eq!(polls.ended(partition), Some(4));
        polls.end(partition, 5);
        assert_eq!(polls.ended(partition), Some(6));
        [7, 8].into_iter().for_each(|number| polls.end(partition, number));
        assert_eq!(polls.ended(partition), Some(8));
    }
}
