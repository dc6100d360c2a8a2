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
        field("tenantId", "d.tenant_id", Kind::Text),
        field("result", "r.result", Kind::Enumeration(AUDIT_RESULTS)),
        field("category", "r.category", Kind::Enumeration(AUDIT_CATEGORIES)),
        field("processDefinitionId", "d.id", Kind::Text),
        field("processDefinitionKey", "coalesce(r.process_definition_key, p.process_definition_key)", Kind::Key),
        field("processInstanceKey", "coalesce(r.process_instance_key, t.process_instance_key)", Kind::Key),
        shown("rootProcessInstanceKey", "p.root_process_instance_key", Kind::Key),
        field("elementInstanceKey", "coalesce(r.element_instance_key, t.element_instance_key)", Kind::Key),
        null("jobKey"),
        field("userTaskKey", "r.user_task_key", Kind::Key),
        null("decisionRequirementsId"),
        null("decisionRequirementsKey"),
        null("decisionDefinitionId"),
        null("decisionDefinitionKey"),
        null("decisionEvaluationKey"),
        null("deploymentKey").unsorted(),
        null("formKey").unsorted(),
        null("resourceKey").unsorted(),
        null("relatedEntityKey").unsorted(),
        null("relatedEntityType").unsorted(),
        null("entityDescription").unsorted(),
        null("inboundChannelType"),
        null("inboundChannelToolName"),
    ],
};
