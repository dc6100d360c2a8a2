//! What people and applications do beside workers: they work on user tasks, broadcast signals, and choose what ad-hoc
//! sub-processes do next.

use protocol::*;

use super::{Ask, Clients, Kind, TENANT};
use crate::model::{self, AdHoc};
use crate::oracle::Accounting;

/// User tasks that are completed at once when everything is brought to its end.
const TASKS_AT_ONCE: usize = 5;

impl Clients {
    /// Something with one of the user tasks, or at the end the completion of some.
    pub(super) fn work_on_user_tasks(&mut self, accounting: &Accounting) -> Vec<Ask> {
        let tasks: Vec<Key> = accounting.user_tasks().collect();
        if self.is_finishing {
            return tasks.into_iter().take(TASKS_AT_ONCE).filter_map(|task| self.complete_user_task(task)).collect();
        }
        if tasks.is_empty() {
            return Vec::new();
        }
        let task = *self.chance.choose(&tasks);
        self.work_on_user_task(task).into_iter().collect()
    }

    fn work_on_user_task(&mut self, task: Key) -> Option<Ask> {
        let person = *self.chance.choose(&["ada", "ben", ""]);
        let value = UserTaskValue { assignee: person.into(), ..UserTaskValue::default() };
        let (kind, intent, value) = match self.chance.below(8) {
            0..=1 => ("assign", UserTaskIntent::Assign, value),
            2..=3 => ("claim", UserTaskIntent::Claim, value),
            4..=5 => {
                let priority = i32::try_from(self.chance.below(101)).unwrap_or(0);
                let changed_attributes = vec!["candidateUsersList".into(), "priority".into()];
                let candidate_users_list = vec![person.into(), "eve".into()];
                let value = UserTaskValue { priority, changed_attributes, candidate_users_list, ..value };
                ("update task", UserTaskIntent::Update, value)
            }
            _ => return self.complete_user_task(task),
        };
        Some(self.ask(Kind::Other(kind), task.partition()?, task, Payload::UserTask(intent, Box::new(value))))
    }

    fn complete_user_task(&mut self, task: Key) -> Option<Ask> {
        let variables = format!(r#"{{"done":{},"back":{}}}"#, self.chance.below(100), self.chance.below(100));
        let value = UserTaskValue { variables: variables.as_str().into(), ..UserTaskValue::default() };
        let payload = Payload::UserTask(UserTaskIntent::Complete, Box::new(value));
        Some(self.ask(Kind::Other("complete task"), task.partition()?, task, payload))
    }

    /// A signal for whoever waits; at the end only while somebody does.
    pub(super) fn broadcast(&mut self, accounting: &Accounting) -> Option<Ask> {
        if self.is_finishing && !accounting.waits_for_signals() {
            return None;
        }
        let starts = !self.is_finishing && self.chance.one_in(3);
        let variables = format!(r#"{{"signalled":"{}"}}"#, self.payload("signal"));
        let value = SignalValue {
            signal_name: if starts { model::START_SIGNAL } else { model::SIGNAL }.into(),
            variables: variables.as_str().into(),
            tenant_id: TENANT.into(),
            rest: None,
        };
        let partition = self.any_partition();
        let payload = Payload::Signal(SignalIntent::Broadcast, Box::new(value));
        Some(self.ask(Kind::Other("broadcast"), partition, Key::NONE, payload))
    }

    /// Chooses some of what an ad-hoc sub-process can do, and perhaps ends what it does.
    pub(super) fn choose(&mut self, accounting: &Accounting) -> Option<Ask> {
        let all: Vec<(Key, &Text)> = accounting.ad_hoc_sub_processes().collect();
        if all.is_empty() {
            return None;
        }
        let (key, id) = *self.chance.choose(&all);
        let choices = AdHoc::read(id)?.choices();
        let mut value = AdHocSubProcessInstructionValue {
            ad_hoc_sub_process_instance_key: key,
            cancel_remaining_instances: self.chance.one_in(3),
            tenant_id: TENANT.into(),
            ..AdHocSubProcessInstructionValue::default()
        };
        for _ in 0..1 + self.chance.below(3) {
            let element_id = self.chance.choose(&choices).as_str().into();
            let variables = if self.chance.one_in(2) { r#"{"chosen by":"a client"}"# } else { "" }.into();
            value.activate_elements.push(AdHocSubProcessActivateElement { element_id, variables });
        }
        let payload = Payload::AdHocSubProcessInstruction(AdHocSubProcessInstructionIntent::Activate, Box::new(value));
        Some(self.ask(Kind::Other("choose"), key.partition()?, key, payload))
    }
}
