//! Timers: as long as somebody waits for one, there is a row.

use protocol::{TimerIntent, TimerValue};

use super::Fold;
use crate::batch::TimerRow;

impl Fold {
    pub(super) fn timer(&mut self, key: i64, intent: TimerIntent, value: &TimerValue) {
        // For those of start events of processes no instance waits.
        if !value.element_instance_key.is_some() {
            return;
        }
        let row = match intent {
            TimerIntent::Created | TimerIntent::Migrated => Some(TimerRow {
                instance: value.process_instance_key.raw(),
                element_instance: value.element_instance_key.raw(),
                element_id: value.target_element_id.clone(),
                due: value.due_date,
                repetitions: value.repetitions,
            }),
            _ => None,
        };
        self.batch.timers.insert(key, row);
    }
}
