//! The kinds and states that rows hold as numbers: each is the place of its name in a list. Lists only grow at their end,
//! because the numbers are in files.

use protocol::BpmnElementType;

/// Names by number.
pub type Enumeration = &'static [&'static str];

/// Of process instances and element instances.
pub const INSTANCE_STATES: Enumeration = &["ACTIVE", "COMPLETED", "TERMINATED", "SUSPENDED"];
pub(crate) const ACTIVE: u8 = 0;
pub(crate) const COMPLETED: u8 = 1;
pub(crate) const TERMINATED: u8 = 2;

/// Of jobs.
pub const JOB_STATES: Enumeration = &[
    "CREATED",
    "COMPLETED",
    "FAILED",
    "RETRIES_UPDATED",
    "TIMED_OUT",
    "CANCELED",
    "ERROR_THROWN",
    "TIMEOUT_UPDATED",
    "MIGRATED",
];

/// Of incidents.
pub const INCIDENT_STATES: Enumeration = &["ACTIVE", "RESOLVED", "MIGRATED", "PENDING", "UNKNOWN"];

/// Of user tasks.
pub const USER_TASK_STATES: Enumeration =
    &["CREATING", "CREATED", "ASSIGNING", "UPDATING", "COMPLETING", "COMPLETED", "CANCELING", "CANCELED", "FAILED"];

/// Of process definitions.
pub const DEFINITION_STATES: Enumeration = &["ACTIVE", "DELETED", "DRAINING"];

/// Of decision instances.
pub const EVALUATION_STATES: Enumeration = &["EVALUATED", "FAILED", "UNSPECIFIED", "UNKNOWN"];

/// Of decisions.
pub const DECISION_TYPES: Enumeration = &["DECISION_TABLE", "LITERAL_EXPRESSION", "UNSPECIFIED", "UNKNOWN"];

/// Of subscriptions to messages.
pub const SUBSCRIPTION_STATES: Enumeration = &["CREATED", "CORRELATED", "DELETED", "MIGRATED"];

/// What subscribes to a message.
pub const SUBSCRIPTION_TYPES: Enumeration = &["PROCESS_EVENT", "START_EVENT"];

/// Of jobs.
pub const JOB_KINDS: Enumeration = &["BPMN_ELEMENT", "EXECUTION_LISTENER", "TASK_LISTENER", "AD_HOC_SUB_PROCESS"];

/// Of jobs of listeners; the others are not specified.
pub const LISTENER_EVENT_TYPES: Enumeration =
    &["UNSPECIFIED", "START", "END", "CREATING", "ASSIGNING", "UPDATING", "COMPLETING", "CANCELING"];

/// What global listeners listen to, in the words of clients.
pub const GLOBAL_EVENT_TYPES: Enumeration = &["all", "creating", "assigning", "updating", "completing", "canceling"];

/// Where global listeners are defined.
pub const LISTENER_SOURCES: Enumeration = &["CONFIGURATION", "API"];

/// What an element instance waits for.
pub const WAIT_STATE_TYPES: Enumeration = &["JOB", "MESSAGE", "TIMER", "CONDITION", "SIGNAL", "USER_TASK"];

/// Of elements.
pub const ELEMENT_TYPES: Enumeration = &[
    "UNSPECIFIED",
    "PROCESS",
    "SUB_PROCESS",
    "EVENT_SUB_PROCESS",
    "START_EVENT",
    "INTERMEDIATE_CATCH_EVENT",
    "INTERMEDIATE_THROW_EVENT",
    "BOUNDARY_EVENT",
    "END_EVENT",
    "SERVICE_TASK",
    "RECEIVE_TASK",
    "USER_TASK",
    "MANUAL_TASK",
    "TASK",
    "EXCLUSIVE_GATEWAY",
    "PARALLEL_GATEWAY",
    "EVENT_BASED_GATEWAY",
    "INCLUSIVE_GATEWAY",
    "SEQUENCE_FLOW",
    "MULTI_INSTANCE_BODY",
    "CALL_ACTIVITY",
    "BUSINESS_RULE_TASK",
    "SCRIPT_TASK",
    "SEND_TASK",
    "AD_HOC_SUB_PROCESS",
    "AD_HOC_SUB_PROCESS_INNER_INSTANCE",
    "UNKNOWN",
];
/// The number of `PROCESS`.
pub(crate) const PROCESS: u8 = 1;
/// The number of `MULTI_INSTANCE_BODY`, which is no element of the model of its own.
pub(crate) const LOOP_BODY: u8 = 19;

/// Of incidents.
pub const ERROR_TYPES: Enumeration = &[
    "UNKNOWN",
    "IO_MAPPING_ERROR",
    "JOB_NO_RETRIES",
    "CONDITION_ERROR",
    "EXTRACT_VALUE_ERROR",
    "CALLED_ELEMENT_ERROR",
    "UNHANDLED_ERROR_EVENT",
    "MESSAGE_SIZE_EXCEEDED",
    "CALLED_DECISION_ERROR",
    "DECISION_EVALUATION_ERROR",
    "FORM_NOT_FOUND",
    "EXECUTION_LISTENER_NO_RETRIES",
    "TASK_LISTENER_NO_RETRIES",
    "AD_HOC_SUB_PROCESS_NO_RETRIES",
    "RESOURCE_NOT_FOUND",
    "UNSPECIFIED",
];

/// What was done.
pub const AUDIT_OPERATION_TYPES: Enumeration = &[
    "UNKNOWN", "ASSIGN", "CANCEL", "COMPLETE", "CREATE", "DELETE", "EVALUATE", "MIGRATE", "MODIFY", "RESOLVE",
    "RESUME", "SUSPEND", "UNASSIGN", "UPDATE",
];

/// With what something was done.
pub const AUDIT_ENTITY_TYPES: Enumeration = &[
    "UNKNOWN",
    "AUTHORIZATION",
    "BATCH",
    "DECISION",
    "GROUP",
    "INCIDENT",
    "MAPPING_RULE",
    "PROCESS_INSTANCE",
    "RESOURCE",
    "ROLE",
    "TENANT",
    "USER",
    "USER_TASK",
    "VARIABLE",
    "CLIENT",
];

/// What came of it.
pub const AUDIT_RESULTS: Enumeration = &["SUCCESS", "FAIL"];

/// To what it belongs.
pub const AUDIT_CATEGORIES: Enumeration = &["DEPLOYED_RESOURCES", "USER_TASKS", "ADMIN"];

/// Who did it.
pub const ACTOR_TYPES: Enumeration = &["ANONYMOUS", "UNKNOWN", "USER", "CLIENT"];

/// The number of a name; none for names that are not in the list.
pub fn number_of(enumeration: Enumeration, name: &str) -> Option<u8> {
    enumeration.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok())
}

/// The number of an element's type: records name it by the same.
pub(crate) fn number_of_element_type(of: BpmnElementType) -> u8 {
    of as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_the_numbers_of_their_names() {
        // The last one stands for what this version does not know.
        let (_, known) = ELEMENT_TYPES.split_last().expect("types");
        for (number, name) in (0..).zip(known) {
            let of: BpmnElementType = protocol::decode(&protocol::encode_to_vec(&number)).expect("it is a type");
            assert_eq!((number_of_element_type(of), of.name()), (number, *name));
        }
        protocol::decode::<BpmnElementType>(&protocol::encode_to_vec(&known.len())).expect_err("there are no more");
    }
}
