//! What commands take and answer.

use readmodel::enumerations::{JOB_KINDS, LISTENER_EVENT_TYPES, LISTENER_SOURCES};

use super::shape::Shape::{Any, Binaries, Boolean, Integer, Key, Long, Names, Object, Objects, Text, Texts, Variables};
use super::shape::{Property, always, nullable, optional, schema_of_object};
use super::{Described, JSON};

/// A command or a question that is not answered from the read model.
struct Command {
    name: &'static str,
    summary: &'static str,
    request: Option<&'static [Property]>,
    answer: Option<&'static [Property]>,
}

pub(super) const PROBLEM: &[Property] = &[
    always("type", Text),
    always("title", Text),
    always("status", Integer),
    always("detail", Text),
    always("instance", Text),
];

const REFERENCE: Property = optional("operationReference", Long);
const BUSINESS_ID: Property = optional("businessId", Text);
const TENANT_ID: Property = optional("tenantId", Text);

const VARIABLE_INSTRUCTIONS: Property =
    optional("variableInstructions", Objects(&[always("variables", Variables), optional("scopeId", Text)]));

const EVALUATED_OUTPUTS: &[Property] = &[
    always("outputId", Text),
    always("outputName", Text),
    always("outputValue", Text),
    always("ruleId", Text),
    always("ruleIndex", Integer),
];

const EVALUATED_DECISIONS: &[Property] = &[
    always("decisionDefinitionId", Text),
    always("decisionDefinitionKey", Key),
    always("decisionDefinitionName", Text),
    always("decisionDefinitionVersion", Integer),
    always("decisionDefinitionType", Text),
    always("output", Text),
    always("tenantId", Text),
    always(
        "matchedRules",
        Objects(&[
            always("ruleId", Text),
            always("ruleIndex", Integer),
            always("evaluatedOutputs", Objects(EVALUATED_OUTPUTS)),
        ]),
    ),
    always(
        "evaluatedInputs",
        Objects(&[always("inputId", Text), always("inputName", Text), always("inputValue", Text)]),
    ),
    always("decisionEvaluationInstanceKey", Text),
];

const JOB_RESULT: &[Property] = &[
    optional("type", Names(&["userTask", "adHocSubProcess"])),
    optional("denied", Boolean),
    optional("deniedReason", Text),
    optional(
        "corrections",
        Object(&[
            optional("assignee", Text),
            optional("dueDate", Text),
            optional("followUpDate", Text),
            optional("candidateUsers", Texts),
            optional("candidateGroups", Texts),
            optional("priority", Integer),
        ]),
    ),
    optional("activateElements", Objects(&[optional("elementId", Text), optional("variables", Variables)])),
    optional("isCompletionConditionFulfilled", Boolean),
    optional("isCancelRemainingInstances", Boolean),
];

const LISTENED_TASK: &[Property] = &[
    always("action", Text),
    nullable("assignee", Text),
    always("candidateGroups", Texts),
    always("candidateUsers", Texts),
    always("changedAttributes", Texts),
    nullable("dueDate", Text),
    nullable("followUpDate", Text),
    nullable("formKey", Key),
    nullable("priority", Integer),
    nullable("userTaskKey", Key),
];

const JOBS: &[Property] = &[
    always("type", Text),
    always("processDefinitionId", Text),
    always("processDefinitionVersion", Integer),
    always("elementId", Text),
    always("customHeaders", Variables),
    always("worker", Text),
    always("retries", Integer),
    always("deadline", Long),
    always("variables", Variables),
    always("tenantId", Text),
    always("physicalTenantId", Text),
    always("jobKey", Key),
    always("processInstanceKey", Key),
    always("processDefinitionKey", Key),
    always("elementInstanceKey", Key),
    always("kind", Names(JOB_KINDS)),
    always("listenerEventType", Names(LISTENER_EVENT_TYPES)),
    nullable("userTask", Object(LISTENED_TASK)),
    always("tags", Texts),
    nullable("rootProcessInstanceKey", Key),
    nullable("businessId", Text),
    always("priority", Integer),
    nullable("jobLeaseToken", Text),
];

const DEPLOYED: &[Property] = &[
    nullable(
        "processDefinition",
        Object(&[
            always("processDefinitionId", Text),
            always("processDefinitionVersion", Integer),
            always("resourceName", Text),
            always("tenantId", Text),
            always("processDefinitionKey", Key),
        ]),
    ),
    nullable(
        "decisionDefinition",
        Object(&[
            always("decisionDefinitionId", Text),
            always("version", Integer),
            always("name", Text),
            always("tenantId", Text),
            always("decisionRequirementsId", Text),
            always("decisionDefinitionKey", Key),
            always("decisionRequirementsKey", Key),
        ]),
    ),
    nullable(
        "decisionRequirements",
        Object(&[
            always("decisionRequirementsId", Text),
            always("decisionRequirementsName", Text),
            always("version", Integer),
            always("resourceName", Text),
            always("tenantId", Text),
            always("decisionRequirementsKey", Key),
        ]),
    ),
    nullable(
        "form",
        Object(&[
            always("formId", Text),
            always("version", Integer),
            always("resourceName", Text),
            always("tenantId", Text),
            always("formKey", Key),
        ]),
    ),
    nullable(
        "resource",
        Object(&[
            always("resourceId", Text),
            always("resourceName", Text),
            always("version", Integer),
            always("tenantId", Text),
            always("resourceKey", Key),
        ]),
    ),
];

const GLOBAL_LISTENER: &[Property] = &[
    always("id", Text),
    always("source", Names(LISTENER_SOURCES)),
    always("eventTypes", Texts),
    always("type", Text),
    always("retries", Integer),
    always("afterNonGlobal", Boolean),
    always("priority", Integer),
];

const BROKERS: &[Property] = &[
    always("nodeId", Integer),
    always("brokerId", Text),
    always("host", Text),
    always("port", Integer),
    always(
        "partitions",
        Objects(&[
            always("partitionId", Integer),
            always("role", Names(&["leader", "follower", "inactive"])),
            always("health", Names(&["healthy", "unhealthy", "dead"])),
            always("state", Text),
        ]),
    ),
    always("version", Text),
];

const COMMANDS: &[Command] = &[
    Command {
        name: "getTopology",
        summary: "The nodes of the cluster and their partitions.",
        request: None,
        answer: Some(&[
            always("brokers", Objects(BROKERS)),
            always("clusterId", Text),
            always("clusterSize", Integer),
            always("partitionsCount", Integer),
            always("replicationFactor", Integer),
            always("gatewayVersion", Text),
            always("lastCompletedChangeId", Text),
        ]),
    },
    Command {
        name: "getStatus",
        summary: "Whether at least one partition has a leader that is well.",
        request: None,
        answer: None,
    },
    Command {
        name: "getLicense",
        summary: "The licence of the server; there is none to buy.",
        request: None,
        answer: Some(&[
            always("validLicense", Boolean),
            always("licenseType", Text),
            always("isCommercial", Boolean),
            nullable("expiresAt", Text),
        ]),
    },
    Command {
        name: "getSystemConfiguration",
        summary: "What there is, and the limits of what is counted and taken.",
        request: None,
        answer: Some(&[
            always(
                "jobMetrics",
                Object(&[
                    always("enabled", Boolean),
                    always("exportInterval", Text),
                    always("maxWorkerNameLength", Integer),
                    always("maxJobTypeLength", Integer),
                    always("maxTenantIdLength", Integer),
                    always("maxUniqueKeys", Integer),
                ]),
            ),
            always("components", Object(&[always("active", Texts)])),
            always(
                "deployment",
                Object(&[always("isMultiTenancyEnabled", Boolean), always("maxRequestSize", Integer)]),
            ),
            always("authentication", Object(&[always("canLogout", Boolean), always("isLoginDelegated", Boolean)])),
            always("cloud", Object(&[nullable("stage", Text)])),
        ]),
    },
    Command {
        name: "getAuthentication",
        summary: "Who asks, and what they may do.",
        request: None,
        answer: Some(&[
            always("username", Text),
            nullable("displayName", Text),
            nullable("email", Text),
            always("authorizedComponents", Texts),
            always(
                "tenants",
                Objects(&[always("name", Text), always("tenantId", Text), nullable("description", Text)]),
            ),
            always("groups", Texts),
            always("roles", Texts),
            nullable("salesPlanType", Text),
            always("c8Links", Object(&[])),
            always("canLogout", Boolean),
        ]),
    },
    Command {
        name: "pinClock",
        summary: "Lets the clock of the node stand still; only with clock control.",
        request: Some(&[always("timestamp", Long)]),
        answer: None,
    },
    Command { name: "resetClock", summary: "Lets the clock of the node go on.", request: None, answer: None },
    Command {
        name: "createDeployment",
        summary: "Deploys processes, decisions, forms and resources that are only kept.",
        request: Some(&[always("resources", Binaries), TENANT_ID]),
        answer: Some(&[
            always("deploymentKey", Key),
            always("tenantId", Text),
            always("deployments", Objects(DEPLOYED)),
        ]),
    },
    Command {
        name: "deleteResource",
        summary: "Deletes a version of a process, of a form or of a resource, or the decisions of a file.",
        request: Some(&[optional("deleteHistory", Boolean), REFERENCE]),
        answer: Some(&[always("resourceKey", Key), nullable("batchOperation", Variables)]),
    },
    Command {
        name: "getResource",
        summary: "A resource that is only kept, without its content.",
        request: None,
        answer: Some(&[
            always("resourceName", Text),
            always("version", Integer),
            nullable("versionTag", Text),
            always("resourceId", Text),
            always("tenantId", Text),
            always("resourceKey", Key),
        ]),
    },
    Command {
        name: "getResourceContent",
        summary: "The content of a resource that is only kept, as it was deployed.",
        request: None,
        answer: Some(&[]),
    },
    Command { name: "getResourceContentBinary", summary: "The same as bytes.", request: None, answer: Some(&[]) },
    Command {
        name: "completeUserTask",
        summary: "Completes a user task.",
        request: Some(&[optional("variables", Variables), optional("action", Text)]),
        answer: None,
    },
    Command {
        name: "assignUserTask",
        summary: "Gives a user task to somebody.",
        request: Some(&[optional("assignee", Text), optional("allowOverride", Boolean), optional("action", Text)]),
        answer: None,
    },
    Command { name: "unassignUserTask", summary: "Gives a user task to nobody.", request: None, answer: None },
    Command {
        name: "updateUserTask",
        summary: "Changes attributes of a user task. What is null stays, what is empty is taken away.",
        request: Some(&[
            optional(
                "changeset",
                Object(&[
                    optional("candidateGroups", Texts),
                    optional("candidateUsers", Texts),
                    optional("dueDate", Text),
                    optional("followUpDate", Text),
                    optional("priority", Integer),
                ]),
            ),
            optional("action", Text),
        ]),
        answer: None,
    },
    Command {
        name: "createProcessInstance",
        summary: "Starts a process, and waits for its end if that is wanted.",
        request: Some(&[
            optional("processDefinitionId", Text),
            optional("processDefinitionKey", Key),
            optional("processDefinitionVersion", Integer),
            optional("variables", Variables),
            TENANT_ID,
            optional("startInstructions", Objects(&[always("elementId", Text)])),
            optional(
                "runtimeInstructions",
                Objects(&[optional("type", Names(&["TERMINATE_PROCESS_INSTANCE"])), always("afterElementId", Text)]),
            ),
            optional("tags", Texts),
            BUSINESS_ID,
            REFERENCE,
            optional("awaitCompletion", Boolean),
            optional("fetchVariables", Texts),
            optional("requestTimeout", Long),
        ]),
        answer: Some(&[
            always("processDefinitionId", Text),
            always("processDefinitionVersion", Integer),
            always("tenantId", Text),
            always("variables", Variables),
            always("processDefinitionKey", Key),
            always("processInstanceKey", Key),
            always("tags", Texts),
            nullable("businessId", Text),
        ]),
    },
    Command {
        name: "cancelProcessInstance",
        summary: "Terminates a process instance with all that it called.",
        request: Some(&[REFERENCE]),
        answer: None,
    },
    Command {
        name: "modifyProcessInstance",
        summary: "Activates, moves and terminates elements of a process instance.",
        request: Some(&[
            optional(
                "activateInstructions",
                Objects(&[
                    always("elementId", Text),
                    optional("ancestorElementInstanceKey", Key),
                    VARIABLE_INSTRUCTIONS,
                ]),
            ),
            optional(
                "moveInstructions",
                Objects(&[
                    always(
                        "sourceElementInstruction",
                        Object(&[
                            always("sourceType", Names(&["byId", "byKey"])),
                            optional("sourceElementId", Text),
                            optional("sourceElementInstanceKey", Key),
                        ]),
                    ),
                    optional(
                        "ancestorScopeInstruction",
                        Object(&[
                            always("ancestorScopeType", Names(&["direct", "inferred", "sourceParent"])),
                            optional("ancestorElementInstanceKey", Key),
                        ]),
                    ),
                    always("targetElementId", Text),
                    VARIABLE_INSTRUCTIONS,
                ]),
            ),
            optional(
                "terminateInstructions",
                Objects(&[optional("elementInstanceKey", Key), optional("elementId", Text)]),
            ),
            REFERENCE,
        ]),
        answer: None,
    },
    Command {
        name: "migrateProcessInstance",
        summary: "Lets a process instance go on by another definition.",
        request: Some(&[
            always("targetProcessDefinitionKey", Key),
            always("mappingInstructions", Objects(&[always("sourceElementId", Text), always("targetElementId", Text)])),
            REFERENCE,
        ]),
        answer: None,
    },
    Command {
        name: "createElementInstanceVariables",
        summary: "Sets variables, in the scope of an element instance or where they are.",
        request: Some(&[always("variables", Variables), optional("local", Boolean), REFERENCE]),
        answer: None,
    },
    Command {
        name: "activateJobs",
        summary: "Takes jobs of a type; waits for a first one if that is wanted.",
        request: Some(&[
            always("type", Text),
            always("timeout", Long),
            always("maxJobsToActivate", Integer),
            optional("worker", Text),
            optional("fetchVariable", Texts),
            optional("tenantIds", Texts),
            optional("requestTimeout", Long),
            optional("tenantFilter", Names(&["PROVIDED", "ASSIGNED"])),
            optional("withLease", Boolean),
        ]),
        answer: Some(&[always("jobs", Objects(JOBS))]),
    },
    Command {
        name: "activateAdHocSubProcessActivities",
        summary: "Activates elements of an ad-hoc sub-process.",
        request: Some(&[
            always("elements", Objects(&[always("elementId", Text), optional("variables", Variables)])),
            optional("cancelRemainingInstances", Boolean),
        ]),
        answer: None,
    },
    Command {
        name: "completeJob",
        summary: "Completes a job.",
        request: Some(&[
            optional("variables", Variables),
            optional("result", Object(JOB_RESULT)),
            BUSINESS_ID,
            optional("jobLeaseToken", Text),
        ]),
        answer: None,
    },
    Command {
        name: "failJob",
        summary: "Says that a job failed, and how often it may be tried again.",
        request: Some(&[
            optional("retries", Integer),
            optional("retryBackOff", Long),
            optional("errorMessage", Text),
            optional("variables", Variables),
            optional("jobLeaseToken", Text),
        ]),
        answer: None,
    },
    Command {
        name: "throwJobError",
        summary: "Throws a BPMN error by a job.",
        request: Some(&[
            always("errorCode", Text),
            optional("errorMessage", Text),
            optional("variables", Variables),
            optional("jobLeaseToken", Text),
        ]),
        answer: None,
    },
    Command {
        name: "updateJob",
        summary: "Changes the retries and the time-out of a job.",
        request: Some(&[
            always(
                "changeset",
                Object(&[optional("retries", Integer), optional("timeout", Long), optional("priority", Integer)]),
            ),
            REFERENCE,
            optional("jobLeaseToken", Text),
        ]),
        answer: None,
    },
    Command {
        name: "resolveIncident",
        summary: "Tries again what had led to an incident.",
        request: Some(&[REFERENCE]),
        answer: None,
    },
    Command {
        name: "resolveProcessInstanceIncidents",
        summary: "Tries again what had led to the incidents of a process instance and of those that it called; jobs without \
                  retries get one.",
        request: Some(&[]),
        answer: Some(&[always("batchOperationKey", Key), always("batchOperationType", Names(&["RESOLVE_INCIDENT"]))]),
    },
    Command {
        name: "publishMessage",
        summary: "Publishes a message, which is buffered for its time to live.",
        request: Some(&[
            always("name", Text),
            optional("correlationKey", Text),
            optional("messageId", Text),
            optional("timeToLive", Long),
            optional("variables", Variables),
            TENANT_ID,
            BUSINESS_ID,
        ]),
        answer: Some(&[always("tenantId", Text), always("messageKey", Key)]),
    },
    Command {
        name: "correlateMessage",
        summary: "Has a message taken by those that wait for it now, and tells the instance that took it first. It is not \
                  buffered.",
        request: Some(&[
            always("name", Text),
            optional("correlationKey", Text),
            optional("variables", Variables),
            TENANT_ID,
            BUSINESS_ID,
        ]),
        answer: Some(&[always("tenantId", Text), always("messageKey", Key), always("processInstanceKey", Key)]),
    },
    Command {
        name: "broadcastSignal",
        summary: "Broadcasts a signal to all that wait for it now. It is not buffered.",
        request: Some(&[always("signalName", Text), optional("variables", Variables), TENANT_ID]),
        answer: Some(&[always("tenantId", Text), always("signalKey", Key)]),
    },
    Command {
        name: "evaluateConditionals",
        summary: "Starts an instance for each conditional start event whose condition holds for the variables.",
        request: Some(&[always("variables", Variables), optional("processDefinitionKey", Key), TENANT_ID]),
        answer: Some(&[
            always("conditionalEvaluationKey", Key),
            always("tenantId", Text),
            always(
                "processInstances",
                Objects(&[always("processDefinitionKey", Key), always("processInstanceKey", Key)]),
            ),
        ]),
    },
    Command {
        name: "evaluateDecision",
        summary: "Evaluates a decision with all that it requires.",
        request: Some(&[
            optional("decisionDefinitionId", Text),
            optional("decisionDefinitionKey", Key),
            optional("variables", Variables),
            TENANT_ID,
        ]),
        answer: Some(&[
            always("decisionDefinitionId", Text),
            always("decisionDefinitionKey", Key),
            always("decisionDefinitionName", Text),
            always("decisionDefinitionVersion", Integer),
            always("decisionEvaluationKey", Key),
            always("decisionInstanceKey", Key),
            always("decisionRequirementsId", Text),
            always("decisionRequirementsKey", Key),
            always("evaluatedDecisions", Objects(EVALUATED_DECISIONS)),
            nullable("failedDecisionDefinitionId", Text),
            nullable("failureMessage", Text),
            always("output", Text),
            always("tenantId", Text),
        ]),
    },
    Command {
        name: "createGlobalTaskListener",
        summary: "Defines a listener of the user tasks of all processes.",
        request: Some(&[
            always("id", Text),
            always("type", Text),
            always("eventTypes", Texts),
            optional("retries", Integer),
            optional("afterNonGlobal", Boolean),
            optional("priority", Integer),
        ]),
        answer: Some(GLOBAL_LISTENER),
    },
    Command {
        name: "updateGlobalTaskListener",
        summary: "Changes a listener of the user tasks of all processes. What is not said gets its usual value.",
        request: Some(&[
            always("type", Text),
            always("eventTypes", Texts),
            optional("retries", Integer),
            optional("afterNonGlobal", Boolean),
            optional("priority", Integer),
        ]),
        answer: Some(GLOBAL_LISTENER),
    },
    Command {
        name: "deleteGlobalTaskListener",
        summary: "Deletes a listener of the user tasks of all processes.",
        request: None,
        answer: None,
    },
    Command {
        name: "evaluateExpression",
        summary: "Evaluates a FEEL expression, which begins with an equals sign, with the variables of an element instance and others.",
        request: Some(&[
            always("expression", Text),
            optional("scopeKey", Key),
            optional("variables", Variables),
            TENANT_ID,
        ]),
        answer: Some(&[
            always("expression", Text),
            nullable("result", Any),
            always("warnings", Objects(&[always("message", Text)])),
            always("referencedSecrets", Texts),
        ]),
    },
];

/// What is said of a command.
///
/// # Panics
/// When nothing is, which a test finds out.
pub(super) fn described(name: &str) -> Described {
    let command = COMMANDS.iter().find(|command| command.name == name).expect("every command is described");
    let media_type = if name == "createDeployment" { "multipart/form-data" } else { JSON };
    let answer = |properties| match name {
        // Whatever JSON was deployed.
        "getResourceContent" => (JSON, serde_json::json!({"type": "object", "additionalProperties": true})),
        "getResourceContentBinary" => {
            ("application/octet-stream", serde_json::json!({"type": "string", "format": "binary"}))
        }
        _ => (JSON, schema_of_object(properties)),
    };
    Described {
        summary: command.summary.to_owned(),
        request: command.request.map(|properties| (media_type, schema_of_object(properties))),
        query: Vec::new(),
        status: match command.answer {
            Some(_) if name == "createGlobalTaskListener" => "201",
            Some(_) => "200",
            None => "204",
        },
        answer: command.answer.map(answer),
    }
}
