//! Once: each job completes once, each timer fires once, each message correlates once with a process, each element instance ends
//! once, and of messages with the same id one at a time is there. Anything else is a payment made twice.

use std::collections::BTreeMap;

use protocol::{
    JobIntent, Key, MessageIntent, MessageStartEventSubscriptionIntent, Payload, ProcessInstanceIntent,
    ProcessMessageSubscriptionIntent, Record, RecordType, Text, TimerIntent,
};

/// What can happen once only.
#[derive(Default)]
pub struct Once {
    ended: BTreeMap<(&'static str, Key), &'static str>,
    correlated: BTreeMap<(Key, Text), Key>,
    /// Messages that wait, by name, correlation key and id.
    identified: BTreeMap<(Text, Text, Text), Key>,
}

impl Once {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            // A job whose error nobody caught waits for the resolution of its incident, and can be worked on again.
            Payload::Job(intent @ (JobIntent::Completed | JobIntent::Canceled), _) => {
                self.end("job", record.key, intent.name());
            }
            // A cycle goes on with a timer that has a key of its own.
            Payload::Timer(intent @ (TimerIntent::Triggered | TimerIntent::Canceled), _) => {
                self.end("timer", record.key, intent.name());
            }
            Payload::ProcessInstance(
                intent @ (ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated),
                _,
            ) => self.end("element instance", record.key, intent.name()),
            Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, value) => {
                self.correlate(value.message_key, &value.bpmn_process_id, record.key);
            }
            Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Correlated, value) => {
                self.correlate(value.message_key, &value.bpmn_process_id, record.key);
            }
            Payload::Message(intent, value) if !value.message_id.is_empty() => {
                let id = (value.name.clone(), value.correlation_key.clone(), value.message_id.clone());
                match intent {
                    MessageIntent::Published => {
                        let before = self.identified.insert(id, record.key);
                        assert!(
                            before.is_none(),
                            "the message {} was taken while {before:?} with the same id '{}' was there",
                            record.key,
                            value.message_id
                        );
                    }
                    _ => drop(self.identified.remove(&id)),
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, what: &'static str, key: Key, intent: &'static str) {
        let before = self.ended.insert((what, key), intent);
        assert!(before.is_none(), "the {what} {key} ended twice: {} and then {intent}", before.unwrap_or(""));
    }

    fn correlate(&mut self, message: Key, process: &Text, subscription: Key) {
        let before = self.correlated.insert((message, process.clone()), subscription);
        assert!(
            before.is_none(),
            "the message {message} was correlated twice with the process {process}: {before:?} and {subscription}"
        );
    }
}
