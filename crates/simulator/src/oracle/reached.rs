//! Reached: a message that is not kept goes at once to an instance of each process that waits for it and will wait again, also
//! while another message is on its way there. Whoever sent it was told that it was taken.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{
    Key, MessageIntent, MessageSubscriptionIntent, MessageSubscriptionValue, MessageValue, PartitionId, Payload,
    Record, RecordType, Text,
};

/// A message that was published in this command.
struct Published {
    key: Key,
    /// The processes that are to get it.
    missed: BTreeSet<Text>,
}

/// Who waits for messages, where they arrive.
#[derive(Default)]
pub struct Reached {
    /// By partition, element instance and name of the message.
    open: BTreeMap<(PartitionId, Key, Text), MessageSubscriptionValue>,
    published: BTreeMap<PartitionId, Published>,
}

impl Reached {
    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::MessageSubscription(intent, value) => self.subscription(partition, *intent, value),
            Payload::Message(MessageIntent::Published, value) if value.time_to_live <= 0 => {
                self.published(partition, record.key, value);
            }
            Payload::Message(MessageIntent::Expired, _) => self.expired(partition, record.key),
            _ => {}
        }
    }

    fn subscription(
        &mut self,
        partition: PartitionId,
        intent: MessageSubscriptionIntent,
        value: &MessageSubscriptionValue,
    ) {
        let entry = (partition, value.element_instance_key, value.message_name.clone());
        match intent {
            MessageSubscriptionIntent::Created | MessageSubscriptionIntent::Migrated => {
                self.open.insert(entry, value.clone());
            }
            MessageSubscriptionIntent::Correlating => {
                if let Some(published) = self.published.get_mut(&partition)
                    && published.key == value.message_key
                {
                    published.missed.remove(&value.bpmn_process_id);
                }
            }
            MessageSubscriptionIntent::Deleted | MessageSubscriptionIntent::Rejected => {
                self.open.remove(&entry);
            }
            _ => {}
        }
    }

    fn published(&mut self, partition: PartitionId, key: Key, value: &MessageValue) {
        let waits = self.open.iter().filter(|((of, ..), waiting)| {
            *of == partition
                && !waiting.interrupting
                && waiting.message_name == value.name
                && waiting.correlation_key == value.correlation_key
        });
        let missed = waits.map(|(_, waiting)| waiting.bpmn_process_id.clone()).collect();
        self.published.insert(partition, Published { key, missed });
    }

    fn expired(&mut self, partition: PartitionId, key: Key) {
        if let Some(published) = self.published.remove(&partition).filter(|published| published.key == key) {
            let missed = published.missed;
            assert!(missed.is_empty(), "the message {key} is gone, and instances of {missed:?} wait for it");
        }
    }
}
