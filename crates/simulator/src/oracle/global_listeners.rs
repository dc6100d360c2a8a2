//! Global listeners: partition 1 decides which there are, every other partition makes the same changes in the same order, and who
//! is told of a change finds it everywhere. Otherwise what happens to a user task would go by where its instance happens to be.

use std::collections::BTreeMap;

use engine::Reply;
use protocol::{
    GlobalListenerEventType, GlobalListenerIntent, GlobalListenerValue, JobListenerEventType, PartitionId, Payload,
    Record, RecordType, Text,
};

/// What the records say of them.
pub struct GlobalListeners {
    /// The changes that partition 1 made, in their order.
    changes: Vec<(GlobalListenerIntent, GlobalListenerValue)>,
    /// How far every partition is.
    partitions: BTreeMap<PartitionId, Here>,
}

/// What there is on a partition.
#[derive(Default)]
struct Here {
    /// How many of the changes were made.
    changes: usize,
    /// The present listeners, by their ids.
    listeners: BTreeMap<Text, GlobalListenerValue>,
}

impl GlobalListeners {
    /// There is none yet.
    pub fn new(partitions: u16) -> Self {
        let partitions = (1..=partitions).map(|number| (PartitionId(number), Here::default())).collect();
        GlobalListeners { changes: Vec::new(), partitions }
    }

    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record) {
        let Payload::GlobalListener(intent, value) = &record.payload else { return };
        if record.record_type != RecordType::Event {
            return;
        }
        let here = self.partitions.entry(partition).or_default();
        if partition == PartitionId::DEPLOYMENT {
            self.changes.push((*intent, (**value).clone()));
        }
        let decided = self.changes.get(here.changes);
        assert!(
            decided.is_some_and(|(of, decided)| of == intent && decided == &**value),
            "on {partition} the global listener {value:?} is {}, and partition 1 decided {decided:?}",
            intent.name()
        );
        here.changes += 1;
        let before = match intent {
            GlobalListenerIntent::Deleted => here.listeners.remove(&value.id),
            _ => here.listeners.insert(value.id.clone(), (**value).clone()),
        };
        let is_new = *intent == GlobalListenerIntent::Created;
        assert!(before.is_none() == is_new, "on {partition} '{}' is {}, and was {before:?}", value.id, intent.name());
    }

    /// A client is told of a change.
    pub fn answered(&self, reply: &Reply) {
        let Payload::GlobalListener(intent, value) = &reply.payload else { return };
        if reply.rejection.is_some() {
            return;
        }
        let place = self.changes.iter().position(|(_, change)| change.config_key == value.config_key);
        for (partition, here) in &self.partitions {
            assert!(
                place.is_some_and(|place| place < here.changes),
                "a client was told that the global listener '{}' is {}, and {partition} does not have that",
                value.id,
                intent.name()
            );
        }
    }

    /// The retries of those that listen to an event on a partition, in the order in which they are asked: before those of the model,
    /// and behind them.
    pub fn listening(&self, partition: PartitionId, event: JobListenerEventType) -> [Vec<i32>; 2] {
        [false, true].map(|is_after| self.listening_there(partition, event, is_after))
    }

    fn listening_there(&self, partition: PartitionId, event: JobListenerEventType, is_after: bool) -> Vec<i32> {
        let here = self.partitions.get(&partition).into_iter().flat_map(|here| here.listeners.values());
        let listens = |listener: &&GlobalListenerValue| {
            let mut event_types = listener.event_types.iter();
            let is_of = |of: &GlobalListenerEventType| of.name().eq_ignore_ascii_case(event.name());
            listener.after_non_global == is_after
                && event_types.any(|of| *of == GlobalListenerEventType::All || is_of(of))
        };
        let mut listening: Vec<&GlobalListenerValue> = here.filter(listens).collect();
        // They come in the order of their ids, and stay in it where one goes no sooner than the other.
        listening.sort_by_key(|listener| std::cmp::Reverse(listener.priority));
        listening.into_iter().map(|listener| listener.retries).collect()
    }

    /// At the end, when nothing happens to a user task: a partition has the present listeners and no others.
    pub fn check_rows(&self, partition: PartitionId, rows: &[String]) {
        let here = &self.partitions[&partition];
        assert!(
            here.changes == self.changes.len(),
            "{partition} has made {} of {} changes of global listeners",
            here.changes,
            self.changes.len()
        );
        let configurations = rows.iter().filter(|row| row.starts_with("global_listeners ")).count();
        assert!(
            configurations == usize::from(!here.listeners.is_empty()),
            "{partition} keeps {configurations} configurations of global listeners, and {} listen now",
            here.listeners.len()
        );
    }
}
