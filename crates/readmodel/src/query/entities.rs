//! Everything that can be searched.

use super::entity::{Entity, Field, Kind, Scope, exists, field, has, null, shown};
use crate::enumerations::{
    DECISION_TYPES, DEFINITION_STATES, ELEMENT_TYPES, ERROR_TYPES, EVALUATION_STATES, GLOBAL_EVENT_TYPES,
    INCIDENT_STATES, INSTANCE_STATES, JOB_KINDS, JOB_STATES, LISTENER_EVENT_TYPES, LISTENER_SOURCES,
    SUBSCRIPTION_STATES, SUBSCRIPTION_TYPES, USER_TASK_STATES, WAIT_STATE_TYPES,
};

const DEFINITIONS: &str = "SELECT key FROM process_definition";
const ELEMENTS: &str = "SELECT id FROM element";
const ELEMENTS_OF_DEFINITIONS: &str =
    "SELECT e.id FROM element e CROSS JOIN process_definition d ON d.key = e.process_definition_key";

const OF_ELEMENT_INSTANCES: &str = "p.key IN (SELECT x.process_instance_key FROM element_instance x \
     JOIN element y ON y.id = x.element WHERE {})";
const OF_INCIDENTS: &str = "p.key IN (SELECT x.process_instance_key FROM incident x WHERE x.state = 0 AND {})";
const OF_JOBS: &str = "p.key IN (SELECT x.process_instance_key FROM job x WHERE {})";

/// A field of the definition of a process instance.
const fn of_definition(name: &'static str, sql: &'static str, kind: Kind, column: &'static str) -> Field {
    field(name, sql, kind).via("p.process_definition_key", DEFINITIONS, column)
}

/// A field of the element that a row is about.
const fn of_element(name: &'static str, sql: &'static str, kind: Kind, column: &'static str) -> Field {
    field(name, sql, kind).via("r.element", ELEMENTS, column)
}

/// A field of the definition of the element that a row is about.
const fn of_element_definition(name: &'static str, sql: &'static str, kind: Kind, column: &'static str) -> Field {
    field(name, sql, kind).via("r.element", ELEMENTS_OF_DEFINITIONS, column)
}

/// Process instances.
pub static PROCESS_INSTANCES: Entity = Entity {
    name: "process instance",
    from: "process_instance p LEFT JOIN process_definition d ON d.key = p.process_definition_key",
    key: "p.key",
    key_field: "processInstanceKey",
    scope: Scope::Every,
    fields: &[
        of_definition("processDefinitionId", "d.id", Kind::Text, "id"),
        of_definition("processDefinitionName", "d.name", Kind::Text, "name"),
        of_definition("processDefinitionVersion", "d.version", Kind::Integer, "version"),
        of_definition("processDefinitionVersionTag", "d.version_tag", Kind::Text, "version_tag"),
        field("startDate", "p.start_date", Kind::Instant).required(),
        field("endDate", "p.end_date", Kind::Instant),
        field("state", "p.state", Kind::Enumeration(INSTANCE_STATES)).required(),
        null("suspendedDate"),
        field("hasIncident", "(p.incidents > 0)", Kind::Boolean),
        of_definition("tenantId", "d.tenant_id", Kind::Text, "tenant_id"),
        field("processInstanceKey", "p.key", Kind::Key).required(),
        field("processDefinitionKey", "p.process_definition_key", Kind::Key).required(),
        field("parentProcessInstanceKey", "p.parent_process_instance_key", Kind::Key),
        field("parentElementInstanceKey", "p.parent_element_instance_key", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        shown("tags", "p.tags", Kind::List),
        field("businessId", "p.business_id", Kind::Text),
        exists("elementId", Kind::Text, OF_ELEMENT_INSTANCES, "y.element_id"),
        exists("elementInstanceState", Kind::Enumeration(INSTANCE_STATES), OF_ELEMENT_INSTANCES, "x.state"),
        exists("hasElementInstanceIncident", Kind::Boolean, OF_ELEMENT_INSTANCES, "(x.incidents > 0)"),
        exists("errorMessage", Kind::Text, OF_INCIDENTS, "x.error_message"),
        exists("incidentErrorHashCode", Kind::Integer, OF_INCIDENTS, "x.error_hash_code"),
        exists("hasRetriesLeft", Kind::Boolean, OF_JOBS, "(x.has_failed_with_retries_left > 0)"),
        // There are no batch operations that could have changed an instance.
        null("batchOperationId").hidden(),
        null("batchOperationKey").hidden(),
    ],
};

/// Element instances.
pub static ELEMENT_INSTANCES: Entity = Entity {
    name: "element instance",
    from: "element_instance r LEFT JOIN element e ON e.id = r.element \
           LEFT JOIN process_definition d ON d.key = e.process_definition_key \
           LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.key",
    key_field: "elementInstanceKey",
    scope: Scope::Every,
    fields: &[
        of_element_definition("processDefinitionId", "d.id", Kind::Text, "d.id"),
        field("startDate", "r.start_date", Kind::Instant).required(),
        field("endDate", "r.end_date", Kind::Instant),
        of_element("elementId", "e.element_id", Kind::Text, "element_id"),
        of_element("elementName", "coalesce(e.name, e.element_id)", Kind::Text, "coalesce(name, element_id)"),
        of_element("type", "e.type", Kind::Enumeration(ELEMENT_TYPES), "type"),
        field("state", "r.state", Kind::Enumeration(INSTANCE_STATES)).required(),
        field("hasIncident", "(r.incidents > 0)", Kind::Boolean),
        of_element_definition("tenantId", "d.tenant_id", Kind::Text, "d.tenant_id"),
        field("elementInstanceKey", "r.key", Kind::Key).required(),
        field("processInstanceKey", "r.process_instance_key", Kind::Key).required(),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        of_element("processDefinitionKey", "e.process_definition_key", Kind::Key, "process_definition_key"),
        field("incidentKey", "r.incident_key", Kind::Key),
        field("elementInstanceScopeKey", "r.scope_key", Kind::Key).hidden(),
    ],
};

/// Variables.
pub static VARIABLES: Entity = Entity {
    name: "variable",
    from: "variable r LEFT JOIN process_instance p ON p.key = r.process_instance_key \
           LEFT JOIN process_definition d ON d.key = p.process_definition_key",
    key: "r.key",
    key_field: "variableKey",
    scope: Scope::Every,
    fields: &OF_VARIABLES,
};

/// A variable that is asked for alone. Its value is never shortened, so nothing says whether it is.
pub static VARIABLE: Entity = Entity { fields: OF_VARIABLES.split_last().expect("fields").1, ..VARIABLES };

static OF_VARIABLES: [Field; 8] = [
    field("value", "r.value", Kind::Value).required().long(),
    field("name", "r.name", Kind::Text).required(),
    of_definition("tenantId", "d.tenant_id", Kind::Text, "tenant_id"),
    field("variableKey", "r.key", Kind::Key).required(),
    field("scopeKey", "r.scope_key", Kind::Key).required(),
    field("processInstanceKey", "r.process_instance_key", Kind::Key).required(),
    shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
    field("isTruncated", "r.value", Kind::IsTruncated).unsorted(),
];

/// Jobs.
pub static JOBS: Entity = Entity {
    name: "job",
    from: "job r LEFT JOIN element e ON e.id = r.element \
           LEFT JOIN process_definition d ON d.key = e.process_definition_key \
           LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.key",
    key_field: "jobKey",
    scope: Scope::Every,
    fields: &[
        shown("customHeaders", "r.custom_headers", Kind::Object),
        field("deadline", "r.deadline", Kind::Instant),
        field("deniedReason", "r.denied_reason", Kind::Text).long(),
        of_element("elementId", "e.element_id", Kind::Text, "element_id"),
        field("elementInstanceKey", "r.element_instance_key", Kind::Key).of_element_instance().required(),
        field("endTime", "r.end_time", Kind::Instant),
        field("errorCode", "r.error_code", Kind::Text),
        field("errorMessage", "r.error_message", Kind::Text).long(),
        field("hasFailedWithRetriesLeft", "(r.has_failed_with_retries_left > 0)", Kind::Boolean),
        field("isDenied", "(r.is_denied > 0)", Kind::Boolean),
        field("jobKey", "r.key", Kind::Key).required(),
        field("kind", "r.kind", Kind::Enumeration(JOB_KINDS)).required(),
        field("listenerEventType", "r.listener_event_type", Kind::Enumeration(LISTENER_EVENT_TYPES)),
        of_element_definition("processDefinitionId", "d.id", Kind::Text, "d.id"),
        of_element("processDefinitionKey", "e.process_definition_key", Kind::Key, "process_definition_key"),
        field("processInstanceKey", "r.process_instance_key", Kind::Key).required(),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        shown("businessId", "p.business_id", Kind::Text),
        field("retries", "r.retries", Kind::Integer).required(),
        field("state", "r.state", Kind::Enumeration(JOB_STATES)).required(),
        of_element_definition("tenantId", "d.tenant_id", Kind::Text, "d.tenant_id"),
        field("type", "r.type", Kind::Text).required(),
        field("worker", "r.worker", Kind::Text).required(),
        field("creationTime", "r.creation_time", Kind::Instant),
        field("lastUpdateTime", "r.last_update_time", Kind::Instant).required(),
        field("priority", "0", Kind::Integer),
    ],
};

/// Incidents.
pub static INCIDENTS: Entity = Entity {
    name: "incident",
    from: "incident r LEFT JOIN element e ON e.id = r.element \
           LEFT JOIN process_definition d ON d.key = e.process_definition_key \
           LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.key",
    key_field: "incidentKey",
    scope: Scope::Every,
    fields: &[
        of_element_definition("processDefinitionId", "d.id", Kind::Text, "d.id"),
        field("errorType", "r.error_type", Kind::Enumeration(ERROR_TYPES)).required(),
        field("errorMessage", "r.error_message", Kind::Text).required().long(),
        of_element("elementId", "e.element_id", Kind::Text, "element_id"),
        field("creationTime", "r.creation_time", Kind::Instant).required(),
        field("state", "r.state", Kind::Enumeration(INCIDENT_STATES)).required(),
        of_element_definition("tenantId", "d.tenant_id", Kind::Text, "d.tenant_id"),
        field("incidentKey", "r.key", Kind::Key).required(),
        of_element("processDefinitionKey", "e.process_definition_key", Kind::Key, "process_definition_key"),
        field("processInstanceKey", "r.process_instance_key", Kind::Key).required(),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("elementInstanceKey", "r.element_instance_key", Kind::Key).of_element_instance().required(),
        field("jobKey", "r.job_key", Kind::Key),
    ],
};

const OF_CANDIDATE_GROUPS: &str =
    "r.key IN (SELECT x.user_task_key FROM user_task_candidate x WHERE x.kind = 0 AND {})";
const OF_CANDIDATE_USERS: &str = "r.key IN (SELECT x.user_task_key FROM user_task_candidate x WHERE x.kind = 1 AND {})";

/// User tasks.
pub static USER_TASKS: Entity = Entity {
    name: "user task",
    from: "user_task r LEFT JOIN element e ON e.id = r.element \
           LEFT JOIN process_definition d ON d.key = e.process_definition_key \
           LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.key",
    key_field: "userTaskKey",
    scope: Scope::Every,
    fields: &[
        of_element("name", "coalesce(e.name, e.element_id)", Kind::Text, "coalesce(name, element_id)"),
        field("state", "r.state", Kind::Enumeration(USER_TASK_STATES)).unsorted(),
        field("assignee", "r.assignee", Kind::Text).unsorted(),
        of_element("elementId", "e.element_id", Kind::Text, "element_id").unsorted(),
        shown("candidateGroups", "r.candidate_groups", Kind::List),
        shown("candidateUsers", "r.candidate_users", Kind::List),
        of_element_definition("processDefinitionId", "d.id", Kind::Text, "d.id").unsorted(),
        field("creationDate", "r.creation_date", Kind::Instant).required(),
        field("completionDate", "r.completion_date", Kind::Instant),
        field("followUpDate", "r.follow_up_date", Kind::Instant),
        field("dueDate", "r.due_date", Kind::Instant),
        of_element_definition("tenantId", "d.tenant_id", Kind::Text, "d.tenant_id").unsorted(),
        shown("externalFormReference", "r.external_form_reference", Kind::Text),
        shown("processDefinitionVersion", "d.version", Kind::Integer),
        shown("customHeaders", "r.custom_headers", Kind::Object),
        field("userTaskKey", "r.key", Kind::Key).unsorted(),
        field("elementInstanceKey", "r.element_instance_key", Kind::Key).of_element_instance().unsorted(),
        shown("processName", "d.name", Kind::Text),
        of_element("processDefinitionKey", "e.process_definition_key", Kind::Key, "process_definition_key").unsorted(),
        field("processInstanceKey", "r.process_instance_key", Kind::Key).unsorted(),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("businessId", "p.business_id", Kind::Text),
        shown("formKey", "r.form_key", Kind::Key),
        shown("tags", "p.tags", Kind::List),
        field("priority", "r.priority", Kind::Integer).required(),
        has("candidateGroup", Kind::Text, OF_CANDIDATE_GROUPS, "x.name"),
        has("candidateUser", Kind::Text, OF_CANDIDATE_USERS, "x.name"),
    ],
};

/// Versions of forms.
pub static FORMS: Entity = Entity {
    name: "form",
    from: "form r",
    key: "r.key",
    key_field: "formKey",
    scope: Scope::Same,
    fields: &[
        field("tenantId", "r.tenant_id", Kind::Text),
        field("formId", "r.id", Kind::Text),
        shown("schema", "r.content", Kind::Text),
        field("version", "r.version", Kind::Integer),
        field("formKey", "r.key", Kind::Key),
    ],
};

/// Versions of resources that are only kept.
pub static RESOURCES: Entity = Entity {
    name: "resource",
    from: "resource r",
    key: "r.key",
    key_field: "resourceKey",
    scope: Scope::Same,
    fields: &[
        field("resourceName", "r.name", Kind::Text),
        field("version", "r.version", Kind::Integer),
        field("versionTag", "r.version_tag", Kind::Text),
        field("resourceId", "r.id", Kind::Text),
        field("tenantId", "r.tenant_id", Kind::Text),
        field("resourceKey", "r.key", Kind::Key),
        field("deploymentKey", "r.deployment_key", Kind::Key).unanswered(),
    ],
};

/// Names that variables of a process have had.
pub static VARIABLE_NAMES: Entity = Entity {
    name: "variable name",
    from: "variable_name r",
    key: "r.name",
    key_field: "name",
    scope: Scope::Every,
    fields: &[field("name", "r.name", Kind::Text).unsorted()],
};

const OF_LISTENER_EVENTS: &str = "r.key IN (SELECT x.listener_key FROM global_listener_event x WHERE {})";

/// Listeners of the user tasks of all processes.
pub static GLOBAL_LISTENERS: Entity = Entity {
    name: "global task listener",
    from: "global_listener r",
    key: "r.key",
    key_field: "id",
    scope: Scope::Same,
    fields: &[
        field("id", "r.id", Kind::Text),
        field("source", "r.source", Kind::Enumeration(LISTENER_SOURCES)),
        exists("eventTypes", Kind::Enumeration(GLOBAL_EVENT_TYPES), OF_LISTENER_EVENTS, "x.event_type"),
        shown("eventTypes", "r.event_types", Kind::List),
        field("type", "r.type", Kind::Text),
        field("retries", "r.retries", Kind::Integer).unsorted(),
        field("afterNonGlobal", "(r.after_non_global > 0)", Kind::Boolean),
        field("priority", "r.priority", Kind::Integer).required(),
    ],
};

/// Versions of processes.
pub static PROCESS_DEFINITIONS: Entity = Entity {
    name: "process definition",
    from: "process_definition r",
    key: "r.key",
    key_field: "processDefinitionKey",
    scope: Scope::Same,
    fields: &[
        field("name", "r.name", Kind::Text),
        field("resourceName", "r.resource_name", Kind::Text),
        field("version", "r.version", Kind::Integer),
        field("versionTag", "r.version_tag", Kind::Text),
        field("processDefinitionId", "r.id", Kind::Text),
        field("tenantId", "r.tenant_id", Kind::Text),
        field("processDefinitionKey", "r.key", Kind::Key),
        field(
            "hasStartForm",
            "(EXISTS (SELECT 1 FROM start_form s WHERE s.process_definition_key = r.key))",
            Kind::Boolean,
        )
        .unsorted(),
        field("state", "r.state", Kind::Enumeration(DEFINITION_STATES)).unsorted(),
        field(
            "isLatestVersion",
            "(r.version = (SELECT max(x.version) FROM process_definition x WHERE x.id = r.id AND x.tenant_id = r.tenant_id \
              AND x.state = 0))",
            Kind::Boolean,
        )
        .hidden(),
    ],
};

/// Versions of decisions.
pub static DECISION_DEFINITIONS: Entity = Entity {
    name: "decision definition",
    from: "decision_definition r LEFT JOIN decision_requirements q ON q.key = r.decision_requirements_key",
    key: "r.key",
    key_field: "decisionDefinitionKey",
    scope: Scope::Same,
    fields: &[
        field("decisionDefinitionId", "r.id", Kind::Text),
        field("decisionDefinitionKey", "r.key", Kind::Key),
        field("decisionRequirementsId", "r.decision_requirements_id", Kind::Text),
        field("decisionRequirementsKey", "r.decision_requirements_key", Kind::Key),
        field("decisionRequirementsName", "q.name", Kind::Text),
        field("decisionRequirementsVersion", "q.version", Kind::Integer),
        field("name", "r.name", Kind::Text),
        field("tenantId", "r.tenant_id", Kind::Text),
        field("version", "r.version", Kind::Integer),
        field(
            "isLatestVersion",
            "(r.version = (SELECT max(x.version) FROM decision_definition x WHERE x.id = r.id AND x.tenant_id = r.tenant_id))",
            Kind::Boolean,
        )
        .hidden(),
    ],
};

/// Versions of files with decisions.
pub static DECISION_REQUIREMENTS: Entity = Entity {
    name: "decision requirements definition",
    from: "decision_requirements r",
    key: "r.key",
    key_field: "decisionRequirementsKey",
    scope: Scope::Same,
    fields: &[
        field("decisionRequirementsId", "r.id", Kind::Text),
        field("decisionRequirementsKey", "r.key", Kind::Key),
        field("decisionRequirementsName", "r.name", Kind::Text),
        field("resourceName", "r.resource_name", Kind::Text),
        field("tenantId", "r.tenant_id", Kind::Text),
        field("version", "r.version", Kind::Integer),
    ],
};

/// What decisions came to.
pub static DECISION_INSTANCES: Entity = Entity {
    name: "decision instance",
    from: "decision_instance r LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.id",
    key_field: "decisionEvaluationInstanceKey",
    scope: Scope::Every,
    fields: &[
        field("businessId", "p.business_id", Kind::Text),
        field("decisionDefinitionId", "r.decision_definition_id", Kind::Text),
        field("decisionDefinitionKey", "r.decision_definition_key", Kind::Key),
        field("decisionDefinitionName", "r.decision_definition_name", Kind::Text),
        field("decisionDefinitionType", "r.decision_definition_type", Kind::Enumeration(DECISION_TYPES)),
        field("decisionDefinitionVersion", "r.decision_definition_version", Kind::Integer),
        field("decisionEvaluationInstanceKey", "r.instance_key", Kind::Text),
        field("decisionEvaluationKey", "r.evaluation_key", Kind::Key),
        field("elementInstanceKey", "r.element_instance_key", Kind::KeyOrMinusOne).of_element_instance(),
        field("evaluationDate", "r.evaluation_date", Kind::Instant).required(),
        field("evaluationFailure", "r.failure", Kind::Text),
        field("processDefinitionKey", "r.process_definition_key", Kind::KeyOrMinusOne),
        field("processInstanceKey", "r.process_instance_key", Kind::KeyOrMinusOne),
        shown("result", "r.result", Kind::Text),
        field("rootDecisionDefinitionKey", "r.root_decision_definition_key", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("state", "r.state", Kind::Enumeration(EVALUATION_STATES)),
        field("tenantId", "r.tenant_id", Kind::Text),
        field("decisionRequirementsKey", "r.decision_requirements_key", Kind::Key).hidden(),
    ],
};

/// Who waits for a message, or waited.
pub static MESSAGE_SUBSCRIPTIONS: Entity = Entity {
    name: "message subscription",
    from: "message_subscription r LEFT JOIN process_instance p ON p.key = r.process_instance_key \
           LEFT JOIN process_definition d ON d.key = r.process_definition_key",
    key: "r.key",
    key_field: "messageSubscriptionKey",
    scope: Scope::Every,
    fields: &[
        field("businessId", "p.business_id", Kind::Text),
        field("messageSubscriptionKey", "r.key", Kind::Key),
        field("processDefinitionId", "r.process_definition_id", Kind::Text),
        field("processDefinitionKey", "r.process_definition_key", Kind::Key),
        field("processInstanceKey", "r.process_instance_key", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("elementId", "r.element_id", Kind::Text),
        field("elementInstanceKey", "r.element_instance_key", Kind::Key).of_element_instance(),
        field("messageSubscriptionState", "r.state", Kind::Enumeration(SUBSCRIPTION_STATES)),
        field("lastUpdatedDate", "r.last_updated_date", Kind::Instant),
        field("messageName", "r.message_name", Kind::Text),
        field("correlationKey", "r.correlation_key", Kind::Text),
        field("messageSubscriptionType", "r.type", Kind::Enumeration(SUBSCRIPTION_TYPES)),
        shown("toolProperties", "NULL", Kind::Object),
        field("processDefinitionName", "d.name", Kind::Text),
        field("processDefinitionVersion", "d.version", Kind::Integer),
        null("toolName"),
        null("inboundConnectorType"),
        field("tenantId", "r.tenant_id", Kind::Text),
    ],
};

/// Messages that met who waited for them.
pub static CORRELATED_MESSAGE_SUBSCRIPTIONS: Entity = Entity {
    name: "correlated message subscription",
    from: "correlated_message_subscription r LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.id",
    key_field: "subscriptionKey",
    scope: Scope::Every,
    fields: &[
        field("businessId", "p.business_id", Kind::Text),
        field("correlationKey", "r.correlation_key", Kind::Text),
        field("correlationTime", "r.correlation_time", Kind::Instant),
        field("elementId", "r.element_id", Kind::Text),
        field("elementInstanceKey", "r.element_instance_key", Kind::Key).of_element_instance(),
        field("messageKey", "r.message_key", Kind::Key),
        field("messageName", "r.message_name", Kind::Text),
        field("partitionId", "(SELECT partition FROM place)", Kind::Integer),
        field("processDefinitionId", "r.process_definition_id", Kind::Text),
        field("processDefinitionKey", "r.process_definition_key", Kind::Key),
        field("processInstanceKey", "r.process_instance_key", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("subscriptionKey", "r.subscription_key", Kind::Key),
        field("tenantId", "r.tenant_id", Kind::Text),
    ],
};

/// The sequence flows that an instance took.
pub static SEQUENCE_FLOWS: Entity = Entity {
    name: "sequence flow",
    from: "sequence_flow r LEFT JOIN element e ON e.id = r.element \
           LEFT JOIN process_definition d ON d.key = e.process_definition_key \
           LEFT JOIN process_instance p ON p.key = r.process_instance_key",
    key: "r.element",
    key_field: "sequenceFlowId",
    scope: Scope::Every,
    fields: &[
        shown("sequenceFlowId", "(r.process_instance_key || '_' || e.element_id)", Kind::Text),
        field("processInstanceKey", "r.process_instance_key", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        shown("processDefinitionKey", "e.process_definition_key", Kind::Key),
        shown("processDefinitionId", "d.id", Kind::Text),
        shown("elementId", "e.element_id", Kind::Text),
        shown("tenantId", "d.tenant_id", Kind::Text),
    ],
};

/// What element instances wait for now, and processes for their own listeners. A job waits for its worker until it ends, and a user task for people; messages, timers,
/// conditions and signals are those of catch events, receive tasks and event-based gateways, not those that may interrupt something.
pub static WAIT_STATES: Entity = Entity {
    name: "wait state",
    from: "(SELECT j.key AS key, j.element_instance_key AS element_instance_key, 0 AS type, NULL AS target, \
           CAST(json_object('waitStateType', 'JOB', 'jobKey', CAST(j.key AS TEXT), 'jobType', j.type, 'jobKind', \
           CASE j.kind WHEN 1 THEN 'EXECUTION_LISTENER' WHEN 2 THEN 'TASK_LISTENER' WHEN 3 THEN 'AD_HOC_SUB_PROCESS' \
           ELSE 'BPMN_ELEMENT' END, 'listenerEventType', CASE j.listener_event_type WHEN 1 THEN 'START' WHEN 2 THEN 'END' \
           WHEN 3 THEN 'CREATING' WHEN 4 THEN 'ASSIGNING' WHEN 5 THEN 'UPDATING' WHEN 6 THEN 'COMPLETING' \
           WHEN 7 THEN 'CANCELING' END, 'retries', j.retries) AS TEXT) AS details, \
           j.process_instance_key AS process_instance_key \
           FROM job j WHERE j.state IN (0, 2, 3, 4, 6, 7, 8) \
           UNION ALL SELECT s.key, s.element_instance_key, 1, s.element_id, CAST(json_object('waitStateType', 'MESSAGE', \
           'messageName', s.message_name, 'correlationKey', s.correlation_key) AS TEXT), s.process_instance_key \
           FROM message_subscription s WHERE s.state IN (0, 3) AND s.type = 0 \
           UNION ALL SELECT t.key, t.element_instance_key, 2, t.element_id, CAST(json_object('waitStateType', 'TIMER', \
           'dueDate', t.due_date, 'repetitions', t.repetitions) AS TEXT), t.process_instance_key FROM timer t \
           UNION ALL SELECT c.key, c.element_instance_key, 3, c.element_id, CAST(json_object('waitStateType', 'CONDITION', \
           'expression', c.expression, 'events', json(c.events)) AS TEXT), c.process_instance_key FROM condition c \
           UNION ALL SELECT s.key, s.element_instance_key, 4, s.element_id, CAST(json_object('waitStateType', 'SIGNAL', \
           'signalName', s.signal_name) AS TEXT), s.process_instance_key FROM signal_subscription s \
           UNION ALL SELECT u.key, u.element_instance_key, 5, NULL, CAST(json_object('waitStateType', 'USER_TASK', \
           'taskKey', CAST(u.key AS TEXT), 'dueDate', instant_text(u.due_date)) AS TEXT), u.process_instance_key \
           FROM user_task u WHERE u.state IN (1, 2, 3, 4)) r \
           LEFT JOIN element_instance i ON i.key = r.element_instance_key \
           LEFT JOIN process_instance p ON p.key = r.process_instance_key \
           JOIN element e ON e.id = CASE WHEN i.key IS NOT NULL THEN i.element \
           WHEN r.element_instance_key = r.process_instance_key THEN (SELECT min(o.id) FROM element o \
           WHERE o.process_definition_key = p.process_definition_key AND o.type = 1) END \
           AND COALESCE(i.state, p.state) = 0 AND (r.target IS NULL OR r.target = e.element_id OR e.type = 16) \
           LEFT JOIN process_definition d ON d.key = e.process_definition_key",
    key: "r.key",
    key_field: "elementInstanceKey",
    scope: Scope::Every,
    fields: &[
        field("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("processInstanceKey", "r.process_instance_key", Kind::Key),
        field("elementInstanceKey", "r.element_instance_key", Kind::Key).of_element_instance().required(),
        field("elementId", "e.element_id", Kind::Text),
        field("elementType", "e.type", Kind::Enumeration(ELEMENT_TYPES)).unsorted(),
        shown("tenantId", "d.tenant_id", Kind::Text),
        shown("bpmnProcessId", "d.id", Kind::Text),
        shown("details", "r.details", Kind::Object),
        field("waitStateType", "r.type", Kind::Enumeration(WAIT_STATE_TYPES)).hidden(),
    ],
};
