//! Who did what: an entry for each thing that was done with user tasks and running instances, and for what was refused of it.

use protocol::{
    Actor, Key, Payload, ProcessInstanceMigrationIntent, ProcessInstanceModificationIntent, Record, RecordType,
    RejectionType, UserTaskIntent,
};

use super::{Fold, some_key};
use crate::batch::AuditRow;
use crate::enumerations::{
    ACTOR_TYPES, AUDIT_CATEGORIES, AUDIT_ENTITY_TYPES, AUDIT_OPERATION_TYPES, AUDIT_RESULTS, number_of,
};

/// What was done, with what, and where.
struct Done {
    operation: &'static str,
    entity: &'static str,
    category: &'static str,
    process_instance: Key,
    element_instance: Key,
    definition: Key,
    user_task: Key,
}

impl Fold {
    /// Notes what a record says of somebody's doing, if it says that.
    pub(super) fn audit(&mut self, record: &Record) {
        let result = match &record.record_type {
            RecordType::Event => "SUCCESS",
            RecordType::Rejection(rejection) if rejection.rejection_type == RejectionType::InvalidState => "FAIL",
            RecordType::Rejection(_) => return,
        };
        let Some(done) = done(record) else { return };
        let (actor_type, actor_id) = match &record.actor {
            Actor::Anonymous => ("ANONYMOUS", None),
            Actor::System => ("UNKNOWN", None),
            Actor::User(of) => ("USER", Some(of.id().clone())),
            Actor::Client(of) => ("CLIENT", Some(of.id().clone())),
        };
        let number = |enumeration, name| number_of(enumeration, name).unwrap_or_default();
        // Records of a partition have positions of their own, as its entities have counters.
        let key = Key::new(self.partition, record.position).raw();
        let row = AuditRow {
            entity: record.key.raw(),
            entity_type: number(AUDIT_ENTITY_TYPES, done.entity),
            operation: number(AUDIT_OPERATION_TYPES, done.operation),
            result: number(AUDIT_RESULTS, result),
            category: number(AUDIT_CATEGORIES, done.category),
            time: record.timestamp,
            actor_type: number(ACTOR_TYPES, actor_type),
            actor_id,
            definition: some_key(done.definition),
            instance: some_key(done.process_instance),
            element_instance: some_key(done.element_instance),
            user_task: some_key(done.user_task),
            batch_operation: record.batch_operation_reference.and_then(some_key),
        };
        self.batch.audits.insert(key, row);
    }
}

fn done(record: &Record) -> Option<Done> {
    let is_refused = record.record_type != RecordType::Event;
    let of_instance = |operation, process_instance, definition| Done {
        operation,
        entity: "PROCESS_INSTANCE",
        category: "DEPLOYED_RESOURCES",
        process_instance,
        element_instance: Key::NONE,
        definition,
        user_task: Key::NONE,
    };
    match &record.payload {
        Payload::UserTask(intent, value) => {
            let assigns = || if value.assignee.is_empty() { "UNASSIGN" } else { "ASSIGN" };
            let operation = match (intent, is_refused) {
                (UserTaskIntent::Assigned, false) | (UserTaskIntent::Assign, true) => assigns(),
                (UserTaskIntent::Claim, true) => "ASSIGN",
                (UserTaskIntent::Updated, false) | (UserTaskIntent::Update, true) => "UPDATE",
                (UserTaskIntent::Completed, false) | (UserTaskIntent::Complete, true) => "COMPLETE",
                _ => return None,
            };
            Some(Done {
                operation,
                entity: "USER_TASK",
                category: "USER_TASKS",
                process_instance: value.process_instance_key,
                element_instance: value.element_instance_key,
                definition: value.process_definition_key,
                user_task: record.key,
            })
        }
        Payload::ProcessInstanceModification(intent, value) => {
            let is_it = (*intent, is_refused) == (ProcessInstanceModificationIntent::Modified, false);
            is_it.then(|| of_instance("MODIFY", value.process_instance_key, Key::NONE))
        }
        Payload::ProcessInstanceMigration(intent, value) => {
            let is_it = (*intent, is_refused) == (ProcessInstanceMigrationIntent::Migrated, false);
            is_it.then(|| of_instance("MIGRATE", value.process_instance_key, value.target_process_definition_key))
        }
        _ => None,
    }
}
