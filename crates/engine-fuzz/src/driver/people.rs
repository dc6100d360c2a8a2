//! What people and applications do: with user tasks, signals, and what ad-hoc sub-processes do next.

use std::sync::Arc;

use protocol::*;

use super::{Driver, TENANT};
use crate::cluster::Outcome;
use crate::names::{SIGNALS, name};

/// The longest text of a user task and the longest list that a client wants.
const TEXT_BYTES_MAX: usize = 6 << 20;
const LIST_MAX: usize = 100_000;
/// Elements that a client chooses at once.
const CHOSEN_MAX: usize = 12_000;

impl Driver<'_, '_> {
    fn person(&mut self) -> Text {
        match self.choices.byte() {
            0..=149 => (self.choices.pick(&["ada", "ben", ""])).into(),
            _ => "p".repeat(self.choices.size(TEXT_BYTES_MAX)).into(),
        }
    }

    pub(super) fn user_task(&mut self) -> Outcome {
        if self.cluster.known.user_tasks.is_empty() && self.choices.percent(90) {
            return self.complete_jobs();
        }
        let key = self.key(|cluster| &cluster.known.user_tasks);
        let intents = [
            UserTaskIntent::Complete,
            UserTaskIntent::Complete,
            UserTaskIntent::Assign,
            UserTaskIntent::Claim,
            UserTaskIntent::Update,
        ];
        let intent = self.choices.pick(&intents);
        let mut value = UserTaskValue { assignee: self.person(), action: self.person(), ..UserTaskValue::default() };
        match intent {
            UserTaskIntent::Complete => value.variables = self.variables(),
            UserTaskIntent::Update => {
                let attributes = [
                    "candidateGroupsList",
                    "candidateUsersList",
                    "dueDate",
                    "followUpDate",
                    "priority",
                    "assignee",
                    "x",
                ];
                value.changed_attributes =
                    (0..self.choices.size(20)).map(|_| self.choices.pick(&attributes).into()).collect();
                value.candidate_users_list = (0..self.choices.size(LIST_MAX)).map(|_| "somebody".into()).collect();
                value.priority = self.choices.pick(&[50, 0, 100, -1, i32::MAX]);
                value.due_date = (self.choices.pick(&["2030-01-31T09:00:00Z", "", "yesterday"])).into();
            }
            _ => {}
        }
        self.submit(key, Payload::UserTask(intent, Box::new(value)))
    }

    pub(super) fn broadcast(&mut self) -> Outcome {
        let value = SignalValue {
            signal_name: name(&mut self.choices, SIGNALS).into(),
            variables: self.variables(),
            tenant_id: TENANT.into(),
            rest: None,
        };
        let partition = self.partition();
        self.submit_to(partition, Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value)))
    }

    fn chosen(&mut self, ad_hoc: Key) -> Vec<AdHocSubProcessActivateElement> {
        let known = self.cluster.known.choices.get(&ad_hoc).cloned().unwrap_or_default();
        let count = self.choices.size(CHOSEN_MAX);
        let is_unknown = known.is_empty() || self.choices.percent(5);
        let variables = if self.choices.percent(30) { self.variables() } else { Text::default() };
        // The same variables for thousands of elements are a case of their own.
        let variables = if count > 300 && variables.len() > 1_000 { Text::default() } else { variables };
        (0..count)
            .map(|number| {
                let element_id = if is_unknown { self.element_id() } else { known[number % known.len()].clone() };
                AdHocSubProcessActivateElement { element_id, variables: variables.clone() }
            })
            .collect()
    }

    pub(super) fn choose(&mut self) -> Outcome {
        if self.cluster.known.ad_hoc_sub_processes.is_empty() && self.choices.percent(90) {
            return self.complete_jobs();
        }
        let key = self.key(|cluster| &cluster.known.ad_hoc_sub_processes);
        let value = AdHocSubProcessInstructionValue {
            ad_hoc_sub_process_instance_key: key,
            activate_elements: self.chosen(key),
            cancel_remaining_instances: self.choices.percent(40),
            tenant_id: TENANT.into(),
            completion_condition_fulfilled: false,
        };
        let intent = AdHocSubProcessInstructionIntent::Activate;
        self.submit(key, Payload::AdHocSubProcessInstruction(intent, Box::new(value)))
    }

    /// All listeners agree.
    pub(super) fn agree(&mut self) -> Outcome {
        let jobs = self.cluster.known.jobs.clone();
        self.note(&format!("complete {} jobs", jobs.len()));
        for key in jobs {
            let partition = self.cluster.partition_of(key);
            self.cluster.submit(partition, key, Payload::Job(JobIntent::Complete, Arc::default()))?;
        }
        Ok(())
    }

    /// A listener of a user task, or a worker that takes itself for one, agrees, denies or corrects.
    fn complete_listener(&mut self) -> Outcome {
        let key = self.key(|cluster| &cluster.known.jobs);
        let mut corrections = JobResultCorrections {
            assignee: self.person(),
            candidate_users_list: (0..self.choices.size(LIST_MAX)).map(|_| "somebody".into()).collect(),
            priority: self.choices.pick(&[50, 0, 100, -1, i32::MAX]),
            due_date: (self.choices.pick(&["2030-01-31T09:00:00Z", "", "yesterday"])).into(),
            ..JobResultCorrections::default()
        };
        let attributes = ["assignee", "candidateUsersList", "priority", "dueDate", "x"];
        corrections.corrected_attributes =
            (0..self.choices.size(20)).map(|_| self.choices.pick(&attributes).into()).collect();
        let is_corrected = self.choices.percent(50);
        let result = JobResult {
            result_type: if self.choices.percent(95) {
                JobResultType::UserTask
            } else {
                JobResultType::AdHocSubProcess
            },
            denied: self.choices.percent(25),
            denied_reason: self.person(),
            corrections: is_corrected.then(|| Box::new(corrections)),
            ..JobResult::default()
        };
        let variables = if self.choices.percent(10) { self.variables() } else { Text::default() };
        let value = JobValue { variables, result: Some(Box::new(result)), ..JobValue::default() };
        self.submit(key, Payload::Job(JobIntent::Complete, Arc::new(value)))
    }

    /// The worker of an ad-hoc sub-process or a listener, or one that takes itself for it, says what is next.
    pub(super) fn complete_with_result(&mut self) -> Outcome {
        if self.choices.percent(50) {
            return self.complete_listener();
        }
        let key = self.key(|cluster| &cluster.known.jobs);
        let ad_hoc = self.cluster.known.of_jobs.get(&key).copied().unwrap_or(Key::NONE);
        let result = JobResult {
            activate_elements: self.chosen(ad_hoc),
            completion_condition_fulfilled: self.choices.percent(25),
            cancel_remaining_instances: self.choices.percent(40),
            ..JobResult::default()
        };
        let value = JobValue { variables: self.variables(), result: Some(Box::new(result)), ..JobValue::default() };
        self.submit(key, Payload::Job(JobIntent::Complete, Arc::new(value)))
    }
}
