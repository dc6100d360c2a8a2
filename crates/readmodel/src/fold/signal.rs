//! Signals: as long as somebody waits for one, there is a row.

use protocol::{SignalSubscriptionIntent, SignalSubscriptionValue};

use super::Fold;
use crate::batch::SignalSubscriptionRow;

impl Fold {
    pub(super) fn signal_subscription(
        &mut self,
        key: i64,
        intent: SignalSubscriptionIntent,
        value: &SignalSubscriptionValue,
    ) {
        use SignalSubscriptionIntent::{Created, Migrated};
        // For those of start events of processes no instance waits.
        if !value.catch_event_instance_key.is_some() {
            return;
        }
        let row = matches!(intent, Created | Migrated).then(|| SignalSubscriptionRow {
            element_instance: value.catch_event_instance_key.raw(),
            element_id: value.catch_event_id.clone(),
            signal_name: value.signal_name.clone(),
        });
        self.batch.signal_subscriptions.insert(key, row);
    }
}
