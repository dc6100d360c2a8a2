//! Conditions: as long as somebody waits for one, there is a row.

use protocol::{ConditionalSubscriptionIntent, ConditionalSubscriptionValue};

use super::Fold;
use crate::batch::ConditionRow;

impl Fold {
    pub(super) fn condition(
        &mut self,
        key: i64,
        intent: ConditionalSubscriptionIntent,
        value: &ConditionalSubscriptionValue,
    ) {
        use ConditionalSubscriptionIntent::{Created, Migrated, Triggered};
        // For those of start events of processes no instance waits.
        if !value.element_instance_key.is_some() || (intent == Triggered && !value.interrupting) {
            return;
        }
        let row = matches!(intent, Created | Migrated).then(|| {
            let given = value.variable_events.iter().map(|event| &**event);
            let events: Vec<&str> =
                if value.variable_events.is_empty() { vec!["create", "update"] } else { given.collect() };
            self.batch.bytes += value.condition.len();
            ConditionRow {
                instance: value.process_instance_key.raw(),
                element_instance: value.element_instance_key.raw(),
                element_id: value.catch_event_id.clone(),
                expression: value.condition.clone(),
                events: serde_json::json!(events).to_string(),
            }
        });
        self.batch.conditions.insert(key, row);
    }
}
