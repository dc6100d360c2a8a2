//! Compensation: what was completed is undone once, by one handler, the oldest first, and before the event that has it undone goes
//! on; and everything in its scope is. Otherwise a booking is cancelled twice, or stays.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{
    CompensationSubscriptionIntent, CompensationSubscriptionValue, Key, Payload, ProcessInstanceIntent,
    ProcessInstanceValue, Record, RecordType,
};

use crate::model::COMPENSATE;

#[derive(Debug, PartialEq, Eq)]
enum State {
    Completed,
    Triggered,
}

struct Subscription {
    state: State,
    value: CompensationSubscriptionValue,
}

/// What can be undone.
#[derive(Default)]
pub struct Compensation {
    open: BTreeMap<Key, Subscription>,
    /// The activities that can be, or could be, undone: each has one subscription.
    activities: BTreeSet<Key>,
    /// Handlers that began, and whether they have completed.
    handlers: BTreeMap<Key, bool>,
    /// What an event had undone last in a scope.
    last: BTreeMap<(Key, Key), Key>,
}

impl Compensation {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::CompensationSubscription(intent, value) => self.subscription(*intent, record.key, value),
            Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value) => {
                if let Some(has_completed) = self.handlers.get_mut(&record.key) {
                    *has_completed = true;
                }
                if value.element_id.starts_with(COMPENSATE) {
                    self.event_completed(record.key, value);
                }
            }
            _ => {}
        }
    }

    fn subscription(
        &mut self,
        intent: CompensationSubscriptionIntent,
        key: Key,
        value: &CompensationSubscriptionValue,
    ) {
        let activity = &value.compensable_activity_id;
        let before = self.open.get(&key).map(|subscription| &subscription.state);
        match intent {
            CompensationSubscriptionIntent::Created => {
                let is_new = self.activities.insert(value.compensable_activity_instance_key);
                assert!(is_new && before.is_none(), "'{activity}' {key} can be undone twice");
                self.open.insert(key, Subscription { state: State::Completed, value: value.clone() });
            }
            CompensationSubscriptionIntent::Triggered => {
                assert!(before == Some(&State::Completed), "'{activity}' {key} is undone when it was {before:?}");
                self.triggered(key, value);
                self.open.insert(key, Subscription { state: State::Triggered, value: value.clone() });
            }
            CompensationSubscriptionIntent::Completed => {
                assert!(before == Some(&State::Triggered), "'{activity}' {key} was undone when it was {before:?}");
                let handler = value.compensation_handler_instance_key;
                let is_done = value.compensation_handler_id.is_empty() || self.handlers.get(&handler) == Some(&true);
                assert!(is_done, "'{activity}' {key} was undone before its handler {handler} was done");
                self.open.remove(&key);
            }
            CompensationSubscriptionIntent::Deleted => drop(self.open.remove(&key)),
            CompensationSubscriptionIntent::Migrated => {
                if let Some(subscription) = self.open.get_mut(&key) {
                    subscription.value = value.clone();
                }
            }
        }
    }

    fn triggered(&mut self, key: Key, value: &CompensationSubscriptionValue) {
        let (event, activity) = (value.throw_event_instance_key, &value.compensable_activity_id);
        assert!(key < event, "'{activity}' {key} is undone by {event}, which began before it was completed");
        if !value.compensation_handler_id.is_empty() {
            let handler = value.compensation_handler_instance_key;
            let before = self.handlers.insert(handler, false);
            assert!(before.is_none(), "the handler {handler} undoes '{activity}' {key} and something else");
        }
        let before = self.last.insert((event, value.compensable_activity_scope_key), key);
        assert!(before.is_none_or(|before| before < key), "'{activity}' {key} is undone after {before:?}");
    }

    /// Nothing is left of what it was to have undone.
    fn event_completed(&mut self, event: Key, value: &ProcessInstanceValue) {
        let mut scopes = BTreeSet::from([value.flow_scope_key]);
        for (key, subscription) in &self.open {
            let of = &subscription.value;
            if subscription.state == State::Triggered && of.throw_event_instance_key == event {
                let handler = of.compensation_handler_instance_key;
                assert!(
                    of.compensation_handler_id.is_empty() && scopes.insert(of.compensable_activity_instance_key),
                    "{event} completed while '{}' {key} is being undone by {handler}",
                    of.compensable_activity_id
                );
            }
        }
        let left = self.open.iter().find(|(key, subscription)| {
            let is_inside = scopes.contains(&subscription.value.compensable_activity_scope_key);
            subscription.state == State::Completed && is_inside && **key < event
        });
        assert!(left.is_none(), "{event} completed, and {:?} was not undone", left.map(|(key, of)| (key, &of.value)));
        self.last.retain(|(of, _), _| *of != event);
    }
}
