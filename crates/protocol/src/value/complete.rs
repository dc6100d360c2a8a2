//! Values as exported records of Zeebe have them: with fields besides their own that are the same for most, so they are kept nowhere.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::{
    AdHocSubProcessActivateElement, Command, JobResult, JobResultCorrections, JobResultType, JobValue, Payload, Text,
};

/// The value of a payload with all its fields.
pub(crate) struct Complete<'a>(pub(crate) &'a Payload);

impl Serialize for Complete<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Payload::Job(_, job) => CompleteJob::of(job).serialize(serializer),
            payload => payload.serialize(serializer),
        }
    }
}

/// The value of a command that is on its way to other partitions; an empty object where it is told only once.
pub(super) fn command_value<S: Serializer>(command: &Option<Box<Command>>, serializer: S) -> Result<S::Ok, S::Error> {
    match command {
        Some(command) => Complete(&command.payload).serialize(serializer),
        None => serializer.serialize_map(Some(0))?.end(),
    }
}

/// Jobs within another value.
pub(super) fn jobs<S: Serializer>(jobs: &[JobValue], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(jobs.iter().map(CompleteJob::of))
}

/// A job with its result, which of most says no more than their variables.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompleteJob<'a> {
    #[serde(flatten)]
    job: &'a JobValue,
    job_to_user_task_migration: bool,
    result: CompleteResult<'a>,
}

impl<'a> CompleteJob<'a> {
    fn of(job: &'a JobValue) -> Self {
        CompleteJob { job, job_to_user_task_migration: false, result: CompleteResult::of(job.result.as_deref()) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompleteResult<'a> {
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

impl<'a> CompleteResult<'a> {
    /// That of a job that says none is that of a user task, as in the exported records of Zeebe.
    fn of(result: Option<&'a JobResult>) -> Self {
        let corrections = result.and_then(|result| result.corrections.as_deref());
        CompleteResult {
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
