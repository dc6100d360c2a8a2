//! Who did what, as it is searched.

use super::entity::{Entity, Kind, Scope, field, null, shown};
use crate::enumerations::{ACTOR_TYPES, AUDIT_CATEGORIES, AUDIT_ENTITY_TYPES, AUDIT_OPERATION_TYPES, AUDIT_RESULTS};

/// Who did what.
pub static AUDIT_LOGS: Entity = Entity {
    name: "audit log entry",
    // What was refused names the task alone.
    from: "audit_log r LEFT JOIN user_task t ON t.key = r.user_task_key \
           LEFT JOIN process_instance p ON p.key = coalesce(r.process_instance_key, t.process_instance_key) \
           LEFT JOIN process_definition d ON d.key = coalesce(r.process_definition_key, p.process_definition_key)",
    key: "r.key",
    key_field: "auditLogKey",
    scope: Scope::Every,
    fields: &[
        field("auditLogKey", "r.key", Kind::Key),
        field("entityKey", "r.entity_key", Kind::Key),
        field("entityType", "r.entity_type", Kind::Enumeration(AUDIT_ENTITY_TYPES)),
        field("operationType", "r.operation_type", Kind::Enumeration(AUDIT_OPERATION_TYPES)),
        field("batchOperationKey", "r.batch_operation_key", Kind::Key),
        null("batchOperationType"),
        field("timestamp", "r.time", Kind::Instant).required(),
        field("actorId", "r.actor_id", Kind::Text),
        field("actorType", "r.actor_type", Kind::Enumeration(ACTOR_TYPES)),
        null("agentElementId"),
        field("tenantId", "coalesce(r.tenant_id, d.tenant_id)", Kind::Text),
        field("result", "r.result", Kind::Enumeration(AUDIT_RESULTS)),
        field("category", "r.category", Kind::Enumeration(AUDIT_CATEGORIES)),
        field("processDefinitionId", "d.id", Kind::Text),
        field("processDefinitionKey", "coalesce(r.process_definition_key, p.process_definition_key)", Kind::Key),
        field("processInstanceKey", "coalesce(r.process_instance_key, t.process_instance_key)", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("elementInstanceKey", "coalesce(r.element_instance_key, t.element_instance_key)", Kind::Key),
        field("jobKey", "r.job_key", Kind::Key),
        field("userTaskKey", "r.user_task_key", Kind::Key),
        field("decisionRequirementsId", "r.decision_requirements_id", Kind::Text),
        field("decisionRequirementsKey", "r.decision_requirements_key", Kind::Key),
        field("decisionDefinitionId", "r.decision_definition_id", Kind::Text),
        field("decisionDefinitionKey", "r.decision_definition_key", Kind::Key),
        // The only thing that is done with a decision and is no version of it.
        field("decisionEvaluationKey", "CASE WHEN r.operation_type = 6 THEN r.entity_key END", Kind::Key),
        field("deploymentKey", "r.deployment_key", Kind::Key).unsorted(),
        field("formKey", "r.form_key", Kind::Key).unsorted(),
        field("resourceKey", "r.resource_key", Kind::Key).unsorted(),
        null("relatedEntityKey").unsorted(),
        null("relatedEntityType").unsorted(),
        field("entityDescription", "r.description", Kind::Text).unsorted(),
        null("inboundChannelType"),
        null("inboundChannelToolName"),
    ],
};
