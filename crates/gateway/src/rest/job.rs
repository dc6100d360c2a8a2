//! Jobs in JSON.

use protocol::{JobValue, Key};

use super::ad_hoc_sub_process;
use super::json::JsonObject;
use super::object::{Object, Violations, invalid, path_key};
use crate::activation::WantedJobs;
use crate::outcome::Failure;
use crate::request::job::{
    AD_HOC_SUB_PROCESS, ChosenElements, CompleteJob, FailJob, ThrowError, USER_TASK, UpdateJob, WorkResult,
};
use crate::request::task_result::{Corrections, ListenedTask, TaskResult};
use crate::rest::no_answer::NoAnswer;
use crate::validation::excerpt;

type Read<T> = Result<T, NoAnswer>;

/// The bytes of a job in JSON besides its texts, about.
const JOB_BYTES: usize = 768;

pub(super) fn activation(body: &[u8]) -> Read<WantedJobs> {
    let mut object = Object::read(body)?;
    let mut violations = Violations::default();
    let job_type = object.take("type")?;
    let timeout: Option<i64> = object.take("timeout")?;
    let jobs_max: Option<i32> = object.take("maxJobsToActivate")?;
    let wanted = WantedJobs {
        job_type: violations.require_text("type", job_type).to_string(),
        timeout: violations.require_positive("timeout", timeout),
        jobs_max: violations.require_positive("maxJobsToActivate", jobs_max),
        worker: object.take("worker")?.unwrap_or_default(),
        fetch_variables: object.take("fetchVariable")?.unwrap_or_default(),
        tenant_ids: object.take("tenantIds")?.unwrap_or_default(),
        request_timeout: object.take("requestTimeout")?.unwrap_or_default(),
    };
    // There is one tenant, so both mean the same.
    let filter: Option<String> = object.take("tenantFilter")?;
    if let Some(other) = filter.filter(|filter| filter != "PROVIDED" && filter != "ASSIGNED") {
        let other = excerpt(&other);
        violations.add(format!("Unexpected value '{other}' for tenantFilter. It must be one of: PROVIDED, ASSIGNED."));
    }
    if object.take("withLease")?.unwrap_or(false) {
        return Err(Failure::Unsupported { with: "leases", remark: "." }.into());
    }
    object.finish()?;
    violations.check()?;
    Ok(wanted)
}

pub(super) fn completion(job_key: &str, body: &[u8]) -> Read<CompleteJob> {
    let mut object = Object::read(body)?;
    let result: Option<Object<'_>> = object.take("result")?;
    let result = result.map(self::result).transpose()?;
    let request = CompleteJob {
        job_key: path_key("jobKey", job_key)?,
        variables: object.take("variables")?.unwrap_or_default(),
        result,
    };
    if object.take::<String>("businessId")?.is_some() {
        return Err(Failure::Unsupported { with: "a business id", remark: "." }.into());
    }
    finish(object)?;
    Ok(request)
}

/// What a worker says besides variables: of a user task, unless the type is that of an ad-hoc sub-process.
fn result(mut object: Object<'_>) -> Read<WorkResult> {
    let result = match object.take::<String>("type")?.as_deref().unwrap_or(USER_TASK) {
        USER_TASK => WorkResult::UserTask(TaskResult {
            denied: object.take("denied")?.unwrap_or(false),
            denied_reason: object.take("deniedReason")?.unwrap_or_default(),
            corrections: object.take("corrections")?.map(corrections).transpose()?.unwrap_or_default(),
        }),
        AD_HOC_SUB_PROCESS => WorkResult::AdHocSubProcess(ChosenElements {
            activate: ad_hoc_sub_process::elements(&mut object, "activateElements")?,
            is_completion_condition_fulfilled: object.take("isCompletionConditionFulfilled")?.unwrap_or(false),
            is_cancel_remaining_instances: object.take("isCancelRemainingInstances")?.unwrap_or(false),
        }),
        other => {
            let other = excerpt(other);
            return Err(invalid(format!(
                "Unexpected value '{other}' for type. It must be one of: {USER_TASK}, {AD_HOC_SUB_PROCESS}."
            ))
            .into());
        }
    };
    object.finish()?;
    Ok(result)
}

/// Attributes that a listener corrects; what is null stays.
fn corrections(mut object: Object<'_>) -> Read<Corrections> {
    let corrections = Corrections {
        assignee: object.take("assignee")?,
        due_date: object.take("dueDate")?,
        follow_up_date: object.take("followUpDate")?,
        candidate_users: object.take("candidateUsers")?,
        candidate_groups: object.take("candidateGroups")?,
        priority: object.take("priority")?,
    };
    object.finish()?;
    Ok(corrections)
}

pub(super) fn failure(job_key: &str, body: &[u8]) -> Read<FailJob> {
    let mut object = Object::read(body)?;
    let request = FailJob {
        job_key: path_key("jobKey", job_key)?,
        retries: object.take("retries")?.unwrap_or_default(),
        retry_back_off: object.take("retryBackOff")?.unwrap_or_default(),
        error_message: object.take("errorMessage")?.unwrap_or_default(),
        variables: object.take("variables")?.unwrap_or_default(),
    };
    finish(object)?;
    Ok(request)
}

pub(super) fn error(job_key: &str, body: &[u8]) -> Read<ThrowError> {
    let mut object = Object::read(body)?;
    let mut violations = Violations::default();
    let error_code = object.take("errorCode")?;
    let request = ThrowError {
        job_key: path_key("jobKey", job_key)?,
        error_code: violations.require_text("errorCode", error_code),
        error_message: object.take("errorMessage")?.unwrap_or_default(),
        variables: object.take("variables")?.unwrap_or_default(),
    };
    finish(object)?;
    violations.check()?;
    Ok(request)
}

pub(super) fn update(job_key: &str, body: &[u8]) -> Read<UpdateJob> {
    let mut object = Object::read(body)?;
    let changeset: Option<Object<'_>> = object.take("changeset")?;
    let operation_reference = object.take_operation_reference()?;
    finish(object)?;
    let mut request = UpdateJob { job_key: path_key("jobKey", job_key)?, operation_reference, ..UpdateJob::default() };
    if let Some(mut changeset) = changeset {
        request.retries = changeset.take("retries")?;
        request.timeout = changeset.take("timeout")?;
        if changeset.take::<i32>("priority")?.is_some() {
            return Err(Failure::Unsupported { with: "a priority", remark: "." }.into());
        }
        changeset.finish()?;
    }
    if request.retries.is_none() && request.timeout.is_none() {
        return Err(invalid("At least one of [retries, timeout] is required.").into());
    }
    Ok(request)
}

/// What all requests of workers may have, and nothing more.
fn finish(mut object: Object<'_>) -> Read<()> {
    if object.take::<String>("jobLeaseToken")?.is_some() {
        return Err(Failure::Unsupported { with: "a lease token", remark: "." }.into());
    }
    Ok(object.finish()?)
}

pub(super) fn activated(key: Key, job: &JobValue) -> JsonObject {
    let texts = job.variables.len() + job.custom_headers.len();
    let mut json = JsonObject::with_capacity(JOB_BYTES + texts);
    json.text("type", &job.job_type).text("processDefinitionId", &job.bpmn_process_id);
    json.number("processDefinitionVersion", job.process_definition_version).text("elementId", &job.element_id);
    json.variables("customHeaders", &job.custom_headers).text("worker", &job.worker);
    json.number("retries", job.retries).number("deadline", job.deadline).variables("variables", &job.variables);
    json.text("tenantId", &job.tenant_id).text("physicalTenantId", "default").key("jobKey", key);
    json.key("processInstanceKey", job.process_instance_key);
    json.key("processDefinitionKey", job.process_definition_key);
    json.key("elementInstanceKey", job.element_instance_key);
    json.text("kind", job.job_kind.name()).text("listenerEventType", job.job_listener_event_type.name());
    json.object_or_null("userTask", ListenedTask::of(job).map(listened_task)).texts("tags", &job.tags);
    // Jobs do not say to which root they belong.
    json.null("rootProcessInstanceKey").text_or_null("businessId", &job.business_id);
    json.number("priority", 0).null("jobLeaseToken");
    json
}

fn listened_task(task: ListenedTask) -> JsonObject {
    let mut json = JsonObject::new();
    let text = |json: &mut JsonObject, name: &str, text: Option<String>| {
        json.text_or_null(name, text.as_deref().unwrap_or_default());
    };
    json.text("action", task.action.as_deref().unwrap_or_default());
    text(&mut json, "assignee", task.assignee);
    json.texts("candidateGroups", &task.candidate_groups).texts("candidateUsers", &task.candidate_users);
    json.texts("changedAttributes", &task.changed_attributes);
    text(&mut json, "dueDate", task.due_date);
    text(&mut json, "followUpDate", task.follow_up_date);
    text(&mut json, "formKey", task.form_key.map(|key| key.to_string()));
    match task.priority {
        Some(priority) => json.number("priority", priority),
        None => json.null("priority"),
    };
    text(&mut json, "userTaskKey", task.user_task_key.map(|key| key.to_string()));
    json
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;
    use serde_json::{Value, json};

    use super::*;

    fn problem<T: std::fmt::Debug>(outcome: Read<T>) -> String {
        match outcome {
            Err(NoAnswer::Problem(problem)) => problem.detail,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_completion_may_say_nothing() {
        for body in ["", "{}", r#"{"variables":null,"result":null}"#] {
            let request = completion("7", body.as_bytes()).unwrap();
            assert_eq!((request.job_key, request.result.is_some()), (7, false));
            assert_eq!(request.variables.check().unwrap(), "");
        }
        let request = completion("7", br#"{"variables":{"b":2},"result":{"type":"userTask"}}"#).unwrap();
        assert!(matches!(request.result, Some(WorkResult::UserTask(_))));
        assert_eq!(request.variables.check().unwrap(), r#"{"b":2}"#);
    }

    #[test]
    fn a_listener_denies_and_corrects() {
        let body = br#"{"result":{"denied":true,"deniedReason":"r","corrections":{"assignee":"","priority":null,"candidateUsers":["a"]}}}"#;
        let Some(WorkResult::UserTask(result)) = completion("7", body).unwrap().result else { panic!("a result") };
        assert_eq!((result.denied, &*result.denied_reason), (true, "r"));
        let Corrections { assignee, priority, candidate_users, candidate_groups, .. } = result.corrections;
        assert_eq!((assignee, priority), (Some("".into()), None));
        assert_eq!((candidate_users, candidate_groups), (Some(vec!["a".into()]), None));
        for (wrong, sentence) in [
            (r#"{"type":"other"}"#, "Unexpected value 'other' for type. It must be one of: userTask, adHocSubProcess."),
            (r#"{"activateElements":[]}"#, "Request property [activateElements]"),
            (r#"{"corrections":{"owner":"a"}}"#, "Request property [owner]"),
            (r#"{"corrections":{"priority":"high"}}"#, "Request property [priority]"),
            (r#"{"denied":"yes"}"#, "Request property [denied]"),
        ] {
            let found = problem(completion("7", format!(r#"{{"result":{wrong}}}"#).as_bytes()));
            assert!(found.starts_with(sentence), "{found}");
        }
    }

    #[test]
    fn a_worker_chooses_elements() {
        let body = br#"{"result":{"type":"adHocSubProcess","activateElements":[{"elementId":"a","variables":{"x":1}},
            {"elementId":"b"}],"isCompletionConditionFulfilled":false,"isCancelRemainingInstances":true}}"#;
        let request = completion("7", body).unwrap();
        let Some(WorkResult::AdHocSubProcess(chosen)) = request.result else { panic!("a choice") };
        let ids: Vec<&str> = chosen.activate.iter().map(|(id, _)| &**id).collect();
        assert_eq!(ids, ["a", "b"]);
        assert!(!chosen.is_completion_condition_fulfilled && chosen.is_cancel_remaining_instances);
        for wrong in [r#"{"activateElements":[{}]}"#, r#"{"activateElements":{}}"#, r#"{"other":1}"#] {
            let body = format!(r#"{{"result":{{"type":"adHocSubProcess",{}}}"#, &wrong[1..]);
            assert!(matches!(completion("7", body.as_bytes()), Err(NoAnswer::Problem(_))), "{body}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (key, body) in [("x", "{}"), ("7", r#"{"variables":[]}"#), ("7", r#"{"other":1}"#)] {
            assert!(matches!(completion(key, body.as_bytes()), Err(NoAnswer::Problem(_))), "{body}");
        }
        let outcome = completion("7", br#"{"jobLeaseToken":"t"}"#);
        assert!(matches!(outcome, Err(NoAnswer::Failure(Failure::Unsupported { .. }))));
    }

    #[test]
    fn jobs_are_asked_for_as_official_clients_do() {
        let body = br#"{"type":"t","worker":"default","timeout":300000,"maxJobsToActivate":3,"fetchVariable":["a"],"requestTimeout":10000,"tenantIds":["<default>"],"tenantFilter":"PROVIDED"}"#;
        let wanted = activation(body).unwrap();
        assert_eq!((&*wanted.job_type, &*wanted.worker, wanted.timeout, wanted.jobs_max), ("t", "default", 300_000, 3));
        assert_eq!((&wanted.fetch_variables[..], wanted.request_timeout), (&["a".to_owned()][..], 10_000));
        assert_eq!(wanted.tenant_ids, ["<default>"]);
        let wanted = activation(br#"{"type":"t","timeout":1,"maxJobsToActivate":1}"#).unwrap();
        assert_eq!((&*wanted.worker, wanted.request_timeout), ("", 0));
        for (body, sentence) in [
            ("{}", "No type provided. No timeout provided. No maxJobsToActivate provided."),
            (
                r#"{"type":" ","timeout":0,"maxJobsToActivate":-1}"#,
                "No type provided. The value for timeout is '0' but must be > 0. The value for maxJobsToActivate is '-1' but must be > 0.",
            ),
            (
                r#"{"type":"t","timeout":1,"maxJobsToActivate":1,"tenantFilter":"ALL"}"#,
                "Unexpected value 'ALL' for tenantFilter",
            ),
            (
                r#"{"type":"t","timeout":1,"maxJobsToActivate":1,"fetchVariables":[]}"#,
                "Request property [fetchVariables]",
            ),
        ] {
            let found = problem(activation(body.as_bytes()).map(|_| ()));
            assert!(found.starts_with(sentence), "{found}");
        }
    }

    #[test]
    fn failures_and_errors_have_their_parts() {
        let body = br#"{"retries":1,"errorMessage":"e","retryBackOff":1000,"variables":{}}"#;
        let request = failure("7", body).unwrap();
        assert_eq!((request.retries, request.retry_back_off, &*request.error_message), (1, 1_000, "e"));
        assert_eq!(failure("7", b"").unwrap().retries, 0, "as the protocol says");
        let request = error("7", br#"{"errorCode":"E","errorMessage":"m","variables":{"a":1}}"#).unwrap();
        assert_eq!((&*request.error_code, &*request.error_message), ("E", "m"));
        for body in ["", "{}", r#"{"errorCode":""}"#] {
            assert_eq!(problem(error("7", body.as_bytes())), "No errorCode provided.");
        }
    }

    #[test]
    fn an_update_changes_something() {
        let request = update("7", br#"{"changeset":{"retries":2},"operationReference":3}"#).unwrap();
        assert_eq!((request.retries, request.timeout, request.operation_reference), (Some(2), None, Some(3)));
        let request = update("7", br#"{"changeset":{"retries":null,"timeout":9000}}"#).unwrap();
        assert_eq!((request.retries, request.timeout), (None, Some(9_000)));
        for body in ["", "{}", r#"{"changeset":{}}"#, r#"{"changeset":{"retries":null}}"#] {
            assert_eq!(problem(update("7", body.as_bytes())), "At least one of [retries, timeout] is required.");
        }
        assert!(problem(update("7", br#"{"changeset":{"retries":1,"worker":"w"}}"#)).contains("[worker]"));
        assert!(problem(update("7", br#"{"changeset":2}"#)).contains("expected an object"));
    }

    #[test]
    fn an_activated_job_has_every_field() {
        let job = JobValue {
            job_type: "t".into(),
            variables: r#"{"a":1.0}"#.into(),
            deadline: 5,
            process_instance_key: Key::new(PartitionId(1), 2),
            tags: vec!["x".into()],
            ..JobValue::default()
        };
        let found: Value = serde_json::from_slice(&activated(Key::new(PartitionId(1), 1), &job).finish()).unwrap();
        assert_eq!((&found["jobKey"], &found["deadline"]), (&json!("2251799813685249"), &json!(5)));
        assert_eq!((&found["customHeaders"], &found["variables"]), (&json!({}), &json!({"a": 1.0})));
        assert_eq!((&found["kind"], &found["listenerEventType"]), (&json!("BPMN_ELEMENT"), &json!("UNSPECIFIED")));
        let mut names: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        let expected = "businessId customHeaders deadline elementId elementInstanceKey jobKey jobLeaseToken kind listenerEventType physicalTenantId priority processDefinitionId processDefinitionKey processDefinitionVersion processInstanceKey retries rootProcessInstanceKey tags tenantId type userTask variables worker";
        assert_eq!(names.join(" "), expected);
    }
}
