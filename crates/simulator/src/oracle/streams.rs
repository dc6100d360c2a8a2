//! Credit adds up: a stream is never granted more than its worker offered, and never takes more jobs than it was granted,
//! nor more bytes but for one job. Otherwise a slow worker fills the memory of the node that holds its connection.

use std::collections::BTreeMap;

use protocol::{
    JobAmount, JobBatchIntent, JobOwner, JobStreamIntent, JobStreamValue, PartitionId, Payload, Record, RecordType,
    StreamId,
};

/// The open streams of all partitions.
#[derive(Default)]
pub struct Streams {
    open: BTreeMap<(PartitionId, StreamId), Credit>,
    /// What workers offered to take in all.
    offered: BTreeMap<(PartitionId, StreamId), JobAmount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Credit {
    granted: JobAmount,
    used: JobAmount,
    delivered: u64,
}

impl Streams {
    /// The worker of a stream says how much it can take in all.
    pub fn offered(&mut self, partition: PartitionId, stream: StreamId, total: JobAmount) {
        let offered = self.offered.entry((partition, stream)).or_default();
        *offered = offered.max(total);
    }

    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::JobStream(intent, value) => {
                let id = (partition, value.stream);
                match intent {
                    JobStreamIntent::Added => {
                        let JobStreamValue { granted, used, delivered, .. } = **value;
                        assert!(delivered <= used.jobs, "of {used:?}, {delivered} jobs of {id:?} are delivered");
                        let before = self.open.insert(id, Credit { granted, used, delivered });
                        assert!(before.is_none(), "the stream {id:?} was added twice");
                    }
                    JobStreamIntent::Granted => {
                        let credit = self.open.get_mut(&id).unwrap_or_else(|| panic!("no stream {id:?} is open"));
                        let (before, now) = (credit.granted, value.granted);
                        assert!(now == now.max(before), "the credit of {id:?} went down from {before:?} to {now:?}");
                        credit.granted = now;
                        credit.used = credit.used.max(value.used);
                        let (before, now, used) = (credit.delivered, value.delivered, credit.used.jobs);
                        assert!(
                            (before..=used).contains(&now),
                            "{now} of {used} jobs of {id:?} are delivered after {before}"
                        );
                        credit.delivered = now;
                    }
                    JobStreamIntent::Removed => drop(self.open.remove(&id)),
                    _ => {}
                }
                let offered = self.offered.get(&id).copied().unwrap_or_default();
                let granted = self.open.get(&id).map_or(offered, |credit| credit.granted);
                assert!(offered == offered.max(granted), "{id:?} was granted {granted:?}, and {offered:?} was offered");
            }
            Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                let Some(JobOwner::Stream(stream, first)) = batch.owner else { return };
                let id = (partition, stream);
                let credit = self.open.get_mut(&id).unwrap_or_else(|| panic!("no stream {id:?} is open"));
                let taken = batch.jobs.iter().map(JobAmount::of).fold(JobAmount::default(), JobAmount::plus);
                let left = credit.granted.minus(credit.used);
                let fits = taken.jobs <= left.jobs && left.bytes > 0 && (taken.jobs == 1 || taken.bytes <= left.bytes);
                assert!(fits, "the stream {id:?} took {taken:?}, and {left:?} was left");
                let pushed = credit.used.jobs;
                assert!(first == pushed + 1, "push {first} to the stream {id:?} came after {pushed}");
                credit.used = credit.used.plus(taken);
            }
            _ => {}
        }
    }

    /// Which are open.
    pub fn open(&self, partition: PartitionId) -> Vec<StreamId> {
        self.open.keys().filter(|(of, _)| *of == partition).map(|(_, stream)| *stream).collect()
    }

    /// How many are open.
    pub fn count(&self, partition: PartitionId) -> u64 {
        self.open.keys().filter(|(of, _)| *of == partition).count() as u64
    }

    /// At the end: the rows of a state's table of streams are the open streams, with their credit.
    pub fn check(&self, partition: PartitionId, rows: &[String]) {
        let rows: Vec<&String> = rows.iter().filter(|row| row.starts_with("job_streams ")).collect();
        let open: Vec<_> = self.open.iter().filter(|((of, _), _)| *of == partition).collect();
        assert!(
            rows.len() == open.len(),
            "{partition} has {} streams in its state, and {} are open: {rows:?}",
            rows.len(),
            open.len()
        );
        for ((_, stream), credit) in open {
            let key = format!("job_streams ({}, {}) ", stream.node, stream.number);
            let Credit { granted, used, delivered } = credit;
            let amounts = format!("granted: {granted:?}, used: {used:?}, delivered: {delivered}");
            let is_there = rows.iter().any(|row| row.starts_with(&key) && row.contains(&amounts));
            assert!(is_there, "{partition} has no stream {stream:?} with {amounts}: {rows:?}");
        }
    }
}
