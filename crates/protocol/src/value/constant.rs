//! What exported records of Zeebe say besides the fields of a value: the same for most, so it is kept nowhere.

use serde::Serialize;

use crate::{AdHocSubProcessActivateElement, JobResult, JobResultCorrections, JobResultType, JobValue, Payload, Text};

/// Behind the fields of a value, those that are the same for most.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Constants<'a> {
    /// Of a job: most have a result that says no more than their variables.
    Job(JobConstants<'a>),
    /// Of a deployment: no forms and other resources.
    Deployment(DeploymentConstants),
}

impl<'a> Constants<'a> {
    /// Those of a value; none where there are none.
    pub(crate) fn of(payload: &'a Payload) -> Option<Self> {
        match payload {
            Payload::Job(_, job) => Some(Constants::Job(JobConstants::of(job))),
            Payload::Deployment(..) => Some(Constants::Deployment(DeploymentConstants::default())),
            _ => None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobConstants<'a> {
    job_to_user_task_migration: bool,
    result: Result<'a>,
}

impl<'a> JobConstants<'a> {
    fn of(job: &'a JobValue) -> Self {
        JobConstants { job_to_user_task_migration: false, result: Result::of(job.result.as_deref()) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Result<'a> {
    #[serde(rename = "type")]
    result_type: JobResultType,
    denied: bool,
    denied_reason: &'a str,
    corrected_attributes: &'a [Text],
    corrections: Corrections<'a>,
    activate_elements: &'a [AdHocSubProcessActivateElement],
    cancel_remaining_instances: bool,
    completion_condition_fulfilled: bool,
}

impl<'a> Result<'a> {
    /// That of a job that says none is that of a user task, as in the exported records of Zeebe.
    fn of(result: Option<&'a JobResult>) -> Self {
        let corrections = result.and_then(|result| result.corrections.as_deref());
        Result {
            result_type: result.map_or(JobResultType::UserTask, |result| result.result_type),
            denied: result.is_some_and(|result| result.denied),
            denied_reason: result.map_or("", |result| &result.denied_reason),
            corrected_attributes: corrections.map_or(&[], |corrections| &corrections.corrected_attributes),
            corrections: Corrections::of(corrections),
            activate_elements: result.map_or(&[], |result| &result.activate_elements),
            cancel_remaining_instances: result.is_some_and(|result| result.cancel_remaining_instances),
            completion_condition_fulfilled: result.is_some_and(|result| result.completion_condition_fulfilled),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Corrections<'a> {
    assignee: &'a str,
    candidate_groups_list: &'a [Text],
    candidate_users_list: &'a [Text],
    due_date: &'a str,
    follow_up_date: &'a str,
    priority: i32,
}

impl<'a> Corrections<'a> {
    fn of(corrections: Option<&'a JobResultCorrections>) -> Self {
        match corrections {
            Some(given) => Corrections {
                assignee: &given.assignee,
                candidate_groups_list: &given.candidate_groups_list,
                candidate_users_list: &given.candidate_users_list,
                due_date: &given.due_date,
                follow_up_date: &given.follow_up_date,
                priority: given.priority,
            },
            None => Corrections {
                assignee: "",
                candidate_groups_list: &[],
                candidate_users_list: &[],
                due_date: "",
                follow_up_date: "",
                priority: -1,
            },
        }
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeploymentConstants {
    form_metadata: [&'static str; 0],
    resource_metadata: [&'static str; 0],
}
