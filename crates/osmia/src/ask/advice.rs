//! What to do about incidents.

use serde_json::Value;

use super::rest::text;

/// What to do about an incident, by its kind.
pub(super) fn advice(incident: &Value) -> String {
    let key = text(incident, "incidentKey").unwrap_or("KEY");
    let resolve = format!("osmia resolve {key}");
    let scope = text(incident, "elementInstanceKey").unwrap_or("KEY");
    match text(incident, "errorType").unwrap_or_default() {
        "JOB_NO_RETRIES" | "EXECUTION_LISTENER_NO_RETRIES" | "TASK_LISTENER_NO_RETRIES" => {
            let job = text(incident, "jobKey").unwrap_or("JOB");
            format!(
                "Put right what the worker failed at, then give the job attempts: osmia update-retries {job} 1, and {resolve}"
            )
        }
        "IO_MAPPING_ERROR" | "CONDITION_ERROR" | "EXTRACT_VALUE_ERROR" => format!(
            "Set the variables that the expression needs: osmia set-variables {scope} '{{…}}', then {resolve}"
        ),
        "CALLED_ELEMENT_ERROR" => format!("Deploy the process that is called, then {resolve}"),
        "CALLED_DECISION_ERROR" | "FORM_NOT_FOUND" | "RESOURCE_NOT_FOUND" => {
            format!("Deploy what is missing, then {resolve}")
        }
        "DECISION_EVALUATION_ERROR" => {
            format!("Set the variables that the decision needs: osmia set-variables {scope} '{{…}}', then {resolve}")
        }
        "UNHANDLED_ERROR_EVENT" => {
            "Nothing catches the error. Migrate the instance to a version that does (osmia migrate), or move its token (osmia modify)"
                .to_owned()
        }
        "MESSAGE_SIZE_EXCEEDED" => format!("Make the variables smaller: osmia set-variables {scope} '{{…}}', then {resolve}"),
        _ => format!("Put right what the sentence says, then {resolve}"),
    }
}
