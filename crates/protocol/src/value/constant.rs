//! What exported records of Zeebe say about things that there are none of here yet: always the same, so it is kept nowhere.

use serde::Serialize;

use crate::Payload;

/// Behind the fields of a value, those that are always the same.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Constants {
    /// Of a job: no listener's, and without a result that says more than its variables.
    Job(JobConstants),
    /// Of a deployment: no forms and other resources.
    Deployment(DeploymentConstants),
}

impl Constants {
    /// Those of a value; none where there are none.
    pub(crate) fn of(payload: &Payload) -> Option<Constants> {
        match payload {
            Payload::Job(..) => Some(Constants::Job(JobConstants::default())),
            Payload::Deployment(..) => Some(Constants::Deployment(DeploymentConstants::default())),
            _ => None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobConstants {
    job_listener_event_type: &'static str,
    job_to_user_task_migration: bool,
    result: JobResult,
}

impl Default for JobConstants {
    fn default() -> Self {
        let result = JobResult { result_type: "USER_TASK", ..JobResult::default() };
        JobConstants { job_listener_event_type: "UNSPECIFIED", job_to_user_task_migration: false, result }
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobResult {
    #[serde(rename = "type")]
    result_type: &'static str,
    denied: bool,
    denied_reason: &'static str,
    corrected_attributes: [&'static str; 0],
    corrections: JobCorrections,
    activate_elements: [&'static str; 0],
    cancel_remaining_instances: bool,
    completion_condition_fulfilled: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobCorrections {
    assignee: &'static str,
    candidate_groups_list: [&'static str; 0],
    candidate_users_list: [&'static str; 0],
    due_date: &'static str,
    follow_up_date: &'static str,
    priority: i32,
}

impl Default for JobCorrections {
    fn default() -> Self {
        JobCorrections {
            assignee: "",
            candidate_groups_list: [],
            candidate_users_list: [],
            due_date: "",
            follow_up_date: "",
            priority: -1,
        }
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeploymentConstants {
    form_metadata: [&'static str; 0],
    resource_metadata: [&'static str; 0],
}
