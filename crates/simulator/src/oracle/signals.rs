//! Signals reach whoever waits: each broadcast is made once on every partition, and brought once to each that waited there for
//! its name when it came; a start event begins one instance, on one partition. Otherwise somebody waits for ever for what
//! was said, or does twice what it was said once for.

use std::collections::{BTreeMap, BTreeSet};

use engine::Engine;
use protocol::{
    Key, PartitionId, Payload, ProcessEventIntent, ProcessEventValue, ProcessInstanceIntent, Record, RecordType,
    SignalIntent, SignalSubscriptionIntent, SignalSubscriptionValue, SignalValue, Text,
};

/// Who waits: the element instance, or the definition that a start event belongs to, and the event.
type Waiting = (Key, Text);

/// What there is of signals.
#[derive(Default)]
pub struct Signals {
    /// Where each broadcast was made.
    broadcasts: BTreeMap<Key, BTreeSet<PartitionId>>,
    /// Open subscriptions, by the partition.
    open: BTreeMap<(PartitionId, Key), SignalSubscriptionValue>,
    /// How often one that waits is still to be reached by what was said.
    due: BTreeMap<PartitionId, BTreeMap<(Waiting, Text), u64>>,
    /// What is said to those who can be reached: they are active. And their instances.
    active: BTreeMap<Key, Key>,
    /// Nothing reaches what is in these instances any more.
    banned: BTreeSet<Key>,
}

impl Signals {
    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::Signal(SignalIntent::Broadcasted, value) => self.broadcast(partition, record.key, value),
            Payload::SignalSubscription(intent, value) => self.subscription(partition, record.key, *intent, value),
            Payload::ProcessEvent(ProcessEventIntent::Triggering, value) => self.reach(partition, value),
            Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, value) => {
                self.active.insert(record.key, value.process_instance_key);
            }
            Payload::Error(_, value) => drop(self.banned.insert(value.process_instance_key)),
            Payload::ProcessInstance(
                ProcessInstanceIntent::ElementCompleting | ProcessInstanceIntent::ElementTerminating,
                _,
            ) => drop(self.active.remove(&record.key)),
            _ => {}
        }
    }

    fn broadcast(&mut self, partition: PartitionId, key: Key, value: &SignalValue) {
        let is_new = self.broadcasts.entry(key).or_default().insert(partition);
        assert!(is_new, "the signal {key} was broadcast twice on {partition}");
        let begins_here = key.partition() == Some(partition);
        let waiting = self.open.iter().filter(|((of, _), subscription)| {
            let starts = subscription.catch_event_instance_key == Key::NONE;
            *of == partition && subscription.signal_name == value.signal_name && (begins_here || !starts)
        });
        let due = self.due.entry(partition).or_default();
        for (_, subscription) in waiting {
            *due.entry((waits(subscription), value.variables.clone())).or_insert(0) += 1;
        }
    }

    fn subscription(
        &mut self,
        partition: PartitionId,
        key: Key,
        intent: SignalSubscriptionIntent,
        value: &SignalSubscriptionValue,
    ) {
        match intent {
            SignalSubscriptionIntent::Created | SignalSubscriptionIntent::Migrated => {
                self.open.insert((partition, key), value.clone());
            }
            SignalSubscriptionIntent::Deleted => {
                self.open.remove(&(partition, key));
                let gone = waits(value);
                self.due.entry(partition).or_default().retain(|(waiting, _), _| *waiting != gone);
            }
        }
    }

    /// Something reaches an event; which of them are those of signals, the subscriptions say.
    fn reach(&mut self, partition: PartitionId, event: &ProcessEventValue) {
        let waiting = (event.scope_key, event.target_element_id.clone());
        if !self.open.iter().any(|((of, _), subscription)| *of == partition && waits(subscription) == waiting) {
            return;
        }
        let due = self.due.entry(partition).or_default();
        let entry = (waiting, event.variables.clone());
        let times = due.get(&entry).copied().unwrap_or(0);
        let ((scope, id), variables) = &entry;
        assert!(
            times > 0,
            "'{id}' of {scope} was reached by a signal more often than it was broadcast: {variables:.100}"
        );
        match times {
            1 => drop(due.remove(&entry)),
            _ => drop(due.insert(entry, times - 1)),
        }
    }

    /// After a batch: when no work waits on a partition, everybody was reached.
    pub fn check(&self, partition: PartitionId, engine: &Engine) {
        if engine.statistics().work_entries > 0 {
            return;
        }
        let due = self.due.get(&partition).into_iter().flatten();
        // An element whose events wait for what it needs before it begins, or ends in an incident, can not be reached.
        let forgotten = due.map(|(entry, _)| entry).find(|((scope, _), _)| {
            let is_start = self.open.values().any(|open| open.process_definition_key == *scope);
            is_start || self.active.get(scope).is_some_and(|instance| !self.banned.contains(instance))
        });
        if let Some(((scope, id), variables)) = forgotten {
            panic!("'{id}' of {scope} waited for a signal that did not reach it: {variables:.100}");
        }
    }

    /// At the end: every broadcast was made everywhere.
    pub fn check_end(&self, partition: PartitionId) {
        let missing = self.broadcasts.iter().find(|(_, made)| !made.contains(&partition));
        assert!(missing.is_none(), "a signal was not broadcast on {partition}: {missing:?}");
    }
}

fn waits(subscription: &SignalSubscriptionValue) -> Waiting {
    let instance = subscription.catch_event_instance_key;
    let by = if instance == Key::NONE { subscription.process_definition_key } else { instance };
    (by, subscription.catch_event_id.clone())
}
