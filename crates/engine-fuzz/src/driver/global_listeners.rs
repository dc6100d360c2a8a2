//! Listeners of the user tasks of all processes: what clients and the configuration of the cluster want of them.

use protocol::*;

use super::{Driver, JOB_TYPES, name};
use crate::cluster::Outcome;

/// The longest name of a listener, and the most events that it is to listen to.
const TEXT_BYTES_MAX: usize = 6 << 20;
const EVENT_TYPES_MAX: usize = 100_000;
/// Listeners that are wanted at once, above the limit of those that there can be.
const LISTENERS_MAX: usize = 150;
/// The ids that most of them have, so that they meet.
const IDS: &[&str] = &["l0", "l1", "l2", "l3"];

impl Driver<'_, '_> {
    /// Creates, changes or deletes one or many, or has the configuration define some.
    pub(super) fn global_listener(&mut self) -> Outcome {
        match self.choices.below(8) {
            0 => self.create_many_listeners(),
            1 => self.configure_listeners(),
            _ => {
                let intents =
                    [GlobalListenerIntent::Create, GlobalListenerIntent::Update, GlobalListenerIntent::Delete];
                let intent = self.choices.pick(&intents);
                let listener = self.listener();
                self.change_listener(intent, listener)
            }
        }
    }

    fn change_listener(&mut self, intent: GlobalListenerIntent, listener: GlobalListenerValue) -> Outcome {
        let payload = Payload::GlobalListener(intent, Box::new(listener));
        self.submit_to(PartitionId::DEPLOYMENT, Key::NONE, payload)
    }

    fn text(&mut self, among: &[&str]) -> Text {
        match self.choices.byte() {
            0..=249 => name(&mut self.choices, among).into(),
            _ => "l".repeat(self.choices.size(TEXT_BYTES_MAX)).into(),
        }
    }

    fn listener(&mut self) -> GlobalListenerValue {
        let event_types = match self.choices.byte() {
            0..=239 => 1 + self.choices.below(4),
            _ => self.choices.size(EVENT_TYPES_MAX),
        };
        GlobalListenerValue {
            id: self.text(IDS),
            job_type: self.text(JOB_TYPES),
            retries: self.choices.pick(&[3, 1, 3, i32::MAX, 0, -1, i32::MIN]),
            event_types: (0..event_types).map(|_| self.choices.pick(&GlobalListenerEventType::EVERY)).collect(),
            after_non_global: self.choices.percent(30),
            priority: self.choices.pick(&[50, 50, 0, -1, i32::MAX, i32::MIN]),
            ..GlobalListenerValue::default()
        }
    }

    /// As many as there can be, or more.
    fn create_many_listeners(&mut self) -> Outcome {
        let count = 1 + self.choices.size(LISTENERS_MAX);
        let listener = self.listener();
        self.note(&format!("create {count} global listeners: {listener:?}"));
        for number in 0..count {
            let of_it = GlobalListenerValue { id: format!("m{number}").into(), ..listener.clone() };
            let payload = Payload::GlobalListener(GlobalListenerIntent::Create, Box::new(of_it));
            self.cluster.submit(PartitionId::DEPLOYMENT, Key::NONE, payload)?;
        }
        Ok(())
    }

    fn configure_listeners(&mut self) -> Outcome {
        let count = self.choices.size(LISTENERS_MAX);
        let has_ids = self.choices.percent(80);
        let mut task_listeners = Vec::new();
        for number in 0..count {
            let listener = self.listener();
            let id = if has_ids { format!("l{number}").into() } else { listener.id.clone() };
            task_listeners.push(GlobalListenerValue { id, ..listener });
        }
        let value = GlobalListenerBatchValue { global_listener_batch_key: Key::NONE, task_listeners };
        let payload = Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configure, Box::new(value));
        self.submit_to(PartitionId::DEPLOYMENT, Key::NONE, payload)
    }

    /// Nobody listens any more, so that the end of a user task waits for no listener but those of its model.
    pub(super) fn delete_listeners(&mut self) -> Outcome {
        for id in self.cluster.known.global_listeners.clone() {
            let listener = GlobalListenerValue { id, ..GlobalListenerValue::default() };
            self.change_listener(GlobalListenerIntent::Delete, listener)?;
        }
        Ok(())
    }
}
