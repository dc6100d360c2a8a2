//! What the worker of a listener says of the change of a user task, and what it is told of the task.

use protocol::{JobKind, JobResult, JobResultCorrections, JobResultType, JobValue, Text};
use serde_json::Value;

/// What the worker of a listener of a user task says.
#[derive(Debug, Default)]
pub(crate) struct TaskResult {
    /// The change must not happen.
    pub denied: bool,
    /// Why.
    pub denied_reason: Text,
    /// What the task is to be instead; an absent attribute stays, an empty one is taken away.
    pub corrections: Corrections,
}

/// Attributes of a user task.
#[derive(Debug, Default)]
pub(crate) struct Corrections {
    pub assignee: Option<Text>,
    pub due_date: Option<Text>,
    pub follow_up_date: Option<Text>,
    pub candidate_users: Option<Vec<Text>>,
    pub candidate_groups: Option<Vec<Text>>,
    pub priority: Option<i32>,
}

impl From<TaskResult> for JobResult {
    fn from(result: TaskResult) -> Self {
        JobResult {
            result_type: JobResultType::UserTask,
            denied: result.denied,
            denied_reason: result.denied_reason,
            corrections: result.corrections.into_corrections().map(Box::new),
            ..JobResult::default()
        }
    }
}

impl Corrections {
    fn into_corrections(self) -> Option<JobResultCorrections> {
        let given = [
            ("assignee", self.assignee.is_some()),
            ("candidateGroupsList", self.candidate_groups.is_some()),
            ("candidateUsersList", self.candidate_users.is_some()),
            ("dueDate", self.due_date.is_some()),
            ("followUpDate", self.follow_up_date.is_some()),
            ("priority", self.priority.is_some()),
        ];
        let corrected_attributes: Vec<Text> =
            given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.into()).collect();
        (!corrected_attributes.is_empty()).then(|| JobResultCorrections {
            assignee: self.assignee.unwrap_or_default(),
            due_date: self.due_date.unwrap_or_default(),
            follow_up_date: self.follow_up_date.unwrap_or_default(),
            candidate_users_list: self.candidate_users.unwrap_or_default(),
            candidate_groups_list: self.candidate_groups.unwrap_or_default(),
            priority: self.priority.unwrap_or(JobResultCorrections::default().priority),
            corrected_attributes,
        })
    }
}

/// What the job of a listener tells of its user task, read from the headers that the engine gave it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ListenedTask {
    pub action: Option<String>,
    pub assignee: Option<String>,
    pub candidate_groups: Vec<Text>,
    pub candidate_users: Vec<Text>,
    pub changed_attributes: Vec<Text>,
    pub due_date: Option<String>,
    pub follow_up_date: Option<String>,
    pub form_key: Option<i64>,
    pub priority: Option<i32>,
    pub user_task_key: Option<i64>,
}

impl ListenedTask {
    /// That of a job; `None` when it is none of a listener of a user task.
    pub fn of(job: &JobValue) -> Option<Self> {
        if job.job_kind != JobKind::TaskListener {
            return None;
        }
        let headers: serde_json::Map<String, Value> = serde_json::from_str(&job.custom_headers).unwrap_or_default();
        let text = |name: &str| headers.get(&format!("io.camunda.zeebe:{name}")).and_then(Value::as_str);
        let list = |name: &str| {
            let names: Vec<String> = text(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            names.into_iter().map(Text::from).collect()
        };
        Some(ListenedTask {
            action: text("action").map(str::to_owned),
            assignee: text("assignee").map(str::to_owned),
            candidate_groups: list("candidateGroups"),
            candidate_users: list("candidateUsers"),
            changed_attributes: list("changedAttributes"),
            due_date: text("dueDate").map(str::to_owned),
            follow_up_date: text("followUpDate").map(str::to_owned),
            form_key: text("formKey").and_then(|key| key.parse().ok()),
            priority: text("priority").and_then(|priority| priority.parse().ok()),
            user_task_key: text("userTaskKey").and_then(|key| key.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_corrected_and_nothing_else() {
        let corrections = Corrections { assignee: Some(Text::default()), priority: Some(0), ..Corrections::default() };
        let result: JobResult = TaskResult { corrections, ..TaskResult::default() }.into();
        let corrections = result.corrections.unwrap();
        assert_eq!(corrections.corrected_attributes, ["assignee", "priority"].map(Text::from));
        assert_eq!((&*corrections.assignee, corrections.priority), ("", 0));
        let result: JobResult = TaskResult { denied: true, denied_reason: "r".into(), ..TaskResult::default() }.into();
        assert_eq!((result.denied, &*result.denied_reason, result.corrections), (true, "r", None));
        assert_eq!(result.result_type, JobResultType::UserTask);
    }

    #[test]
    fn a_listener_is_told_of_its_task() {
        let job = JobValue {
            job_kind: JobKind::TaskListener,
            custom_headers: r#"{"k":"v","io.camunda.zeebe:userTaskKey":"7","io.camunda.zeebe:priority":"50","io.camunda.zeebe:candidateUsers":"[\"a\",\"b\"]","io.camunda.zeebe:action":"complete"}"#.into(),
            ..JobValue::default()
        };
        let expected = ListenedTask {
            action: Some("complete".to_owned()),
            candidate_users: ["a", "b"].map(Text::from).to_vec(),
            priority: Some(50),
            user_task_key: Some(7),
            ..ListenedTask::default()
        };
        assert_eq!(ListenedTask::of(&job), Some(expected));
        assert_eq!(ListenedTask::of(&JobValue::default()), None);
    }
}
