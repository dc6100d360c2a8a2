//! Who did what: an entry for each thing that was done with instances, tasks and what is deployed, and for what was refused of it.

use protocol::{
    Actor, BpmnElementType, DecisionEvaluationIntent, DecisionEvaluationValue, DecisionIntent,
    DecisionRequirementsIntent, FormIntent, IncidentIntent, IncidentValue, Key, Payload, ProcessInstanceCreationIntent,
    ProcessInstanceIntent, ProcessInstanceMigrationIntent, ProcessInstanceModificationIntent, ProcessIntent, Record,
    RecordType, RejectionType, ResourceIntent, UserTaskIntent, UserTaskValue, VariableDocumentIntent, VariableIntent,
};

use super::{Fold, some_key, some_text};
use crate::audited::{Doing, Noted};
use crate::batch::AuditRow;
use crate::enumerations::{ACTOR_TYPES, AUDIT_RESULTS, number_of};

/// What is read for the audit log alone.
pub(super) const READ: [ProcessInstanceIntent; 1] = [ProcessInstanceIntent::ElementTerminating];

/// Variables that a command set, as long as it may turn out that somebody set them from outside: which are not the outcome of
/// something else, says a record behind them.
#[derive(Debug, Default)]
pub(super) struct SetVariables {
    /// Of the command.
    source_position: u64,
    /// The number of the record that was read last: what is passed is none of those that a variable is set with.
    number: u64,
    /// The place of each record, the variable, the definition of its instance, and whether it is new.
    records: Vec<(u64, Key, Key, bool)>,
}

/// What was done, with what, and what the row says of it.
struct Done {
    doing: Doing,
    entity: Key,
    row: AuditRow,
}

impl Fold {
    /// Notes what a record says of somebody's doing, if it says that.
    pub(super) fn audit(&mut self, record: &Record) {
        // What lives is no news.
        if self.is_told_living {
            return;
        }
        let noted = match &record.actor {
            Actor::Anonymous => self.audited.anonymous,
            Actor::System => self.audited.engine,
            Actor::User(_) => self.audited.users,
            Actor::Client(_) => self.audited.clients,
        };
        if noted == Noted::NONE {
            return;
        }
        self.note_variables(record, noted);
        let done = match &record.record_type {
            RecordType::Event => self.done(record),
            RecordType::Rejection(rejection) => refused(record, rejection.rejection_type),
        };
        if let Some(done) = done.filter(|done| noted.has(done.doing)) {
            self.add_entry(record, record.position, done);
        }
    }

    /// Whether the last record may be one in the midst of variables that somebody set.
    pub(crate) fn is_amid_variables(&self) -> bool {
        !self.set_variables.records.is_empty()
    }

    /// What is passed says nothing of the variables before it.
    pub(super) fn end_variables(&mut self) {
        self.set_variables.records.clear();
    }

    fn note_variables(&mut self, record: &Record, noted: Noted) {
        let set = &mut self.set_variables;
        if set.source_position != record.source_position || record.number != set.number + 1 {
            set.source_position = record.source_position;
            set.records.clear();
        }
        set.number = record.number;
        match &record.payload {
            Payload::Variable(intent @ (VariableIntent::Created | VariableIntent::Updated), value) => {
                if noted.has(Doing::CreateVariable) || noted.has(Doing::UpdateVariable) {
                    let is_new = *intent == VariableIntent::Created;
                    set.records.push((record.position, record.key, value.process_definition_key, is_new));
                }
            }
            Payload::VariableDocument(VariableDocumentIntent::Updated, _) => {
                for (position, variable, definition, is_new) in std::mem::take(&mut set.records) {
                    let doing = if is_new { Doing::CreateVariable } else { Doing::UpdateVariable };
                    if noted.has(doing) {
                        self.add_variable(record, position, (variable, definition), doing);
                    }
                }
            }
            // Of a user task, this is said between the variables and the document.
            Payload::UserTask(UserTaskIntent::Updated, _) => {}
            _ => set.records.clear(),
        }
    }

    fn add_variable(&mut self, record: &Record, position: u64, (variable, definition): (Key, Key), doing: Doing) {
        // It is not written before the command's last record was taken.
        let Some(set) = self.batch.variables.get(&variable.raw()) else { return };
        let row = AuditRow {
            instance: Some(set.instance),
            element_instance: Some(set.scope),
            definition: some_key(definition),
            description: Some(set.name.clone()),
            ..AuditRow::default()
        };
        self.add_entry(record, position, Done { doing, entity: variable, row });
    }

    fn add_entry(&mut self, record: &Record, position: u64, done: Done) {
        let (actor_type, actor_id) = match &record.actor {
            Actor::Anonymous => ("ANONYMOUS", None),
            Actor::System => ("UNKNOWN", None),
            Actor::User(of) => ("USER", Some(of.id().clone())),
            Actor::Client(of) => ("CLIENT", Some(of.id().clone())),
        };
        let is_refused = record.record_type != RecordType::Event;
        let has_failed =
            is_refused || matches!(record.payload, Payload::DecisionEvaluation(DecisionEvaluationIntent::Failed, _));
        let number = |enumeration, name| number_of(enumeration, name).unwrap_or_default();
        let (operation, entity_type, category) = done.doing.numbers();
        let row = AuditRow {
            entity: done.entity.raw(),
            entity_type,
            operation,
            result: number(AUDIT_RESULTS, if has_failed { "FAIL" } else { "SUCCESS" }),
            category,
            time: record.timestamp,
            actor_type: number(ACTOR_TYPES, actor_type),
            actor_id,
            batch_operation: record.batch_operation_reference.and_then(some_key),
            ..done.row
        };
        // Records of a partition have positions of their own, as its entities have counters.
        self.batch.audits.insert(Key::new(self.partition, position).raw(), row);
    }

    /// What an event says.
    fn done(&self, record: &Record) -> Option<Done> {
        let of_record = |doing, row| Some(Done { doing, entity: record.key, row });
        match &record.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminating, value) => {
                // The first that a cancellation does. Whatever else ends an instance says something else before.
                let is_first = record.position == record.source_position + 1;
                let is_root =
                    value.bpmn_element_type == BpmnElementType::Process && value.parent_process_instance_key.is_none();
                let row = of_instance(record.key, value.process_definition_key);
                (is_first && is_root).then_some(row).and_then(|row| of_record(Doing::CancelInstance, row))
            }
            Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, value) => {
                of_record(Doing::CreateInstance, of_instance(value.process_instance_key, value.process_definition_key))
            }
            Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, value) => {
                of_record(Doing::ModifyInstance, of_instance(value.process_instance_key, Key::NONE))
            }
            Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrated, value) => of_record(
                Doing::MigrateInstance,
                of_instance(value.process_instance_key, value.target_process_definition_key),
            ),
            Payload::Incident(IncidentIntent::Resolved, value) => of_record(Doing::ResolveIncident, of_incident(value)),
            Payload::UserTask(intent, value) => {
                let doing = match intent {
                    UserTaskIntent::Assigned => assignment(value),
                    UserTaskIntent::Updated => Doing::UpdateTask,
                    UserTaskIntent::Completed => Doing::CompleteTask,
                    _ => return None,
                };
                of_record(doing, of_task(record.key, value))
            }
            Payload::DecisionEvaluation(
                DecisionEvaluationIntent::Evaluated | DecisionEvaluationIntent::Failed,
                value,
            ) => of_record(Doing::EvaluateDecision, of_evaluation(value)),
            // All partitions have what is deployed, and one of them tells of it.
            _ if self.is_first => deployed(record),
            _ => None,
        }
    }
}

/// What a refusal says. Only what the state did not allow is an attempt; the rest are mistakes of whoever asked.
fn refused(record: &Record, rejection: RejectionType) -> Option<Done> {
    let is_migration = matches!(record.payload, Payload::ProcessInstanceMigration(..));
    if rejection != RejectionType::InvalidState && !(is_migration && rejection == RejectionType::ProcessingError) {
        return None;
    }
    let (doing, mut row) = match &record.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::Cancel, _) => {
            (Doing::CancelInstance, of_instance(record.key, Key::NONE))
        }
        Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, value) => {
            let row = of_instance(value.process_instance_key, value.target_process_definition_key);
            (Doing::MigrateInstance, row)
        }
        Payload::Incident(IncidentIntent::Resolve, value) => (Doing::ResolveIncident, of_incident(value)),
        Payload::UserTask(intent, value) => {
            let doing = match intent {
                UserTaskIntent::Assign => assignment(value),
                UserTaskIntent::Claim => Doing::AssignTask,
                UserTaskIntent::Update => Doing::UpdateTask,
                UserTaskIntent::Complete => Doing::CompleteTask,
                _ => return None,
            };
            (doing, of_task(record.key, value))
        }
        _ => return None,
    };
    row.description = Some(rejection.name().into());
    Some(Done { doing, entity: record.key, row })
}

/// What an event says of something deployed or deleted.
fn deployed(record: &Record) -> Option<Done> {
    let of_resource = |is_new, entity, row| {
        let doing = if is_new { Doing::CreateResource } else { Doing::DeleteResource };
        Some(Done { doing, entity, row })
    };
    match &record.payload {
        Payload::Process(intent @ (ProcessIntent::Created | ProcessIntent::Deleted), value) => {
            let of = &value.metadata;
            let row = AuditRow {
                definition: some_key(of.process_definition_key),
                deployment: some_key(of.deployment_key),
                description: some_text(&of.resource_name),
                ..AuditRow::default()
            };
            of_resource(*intent == ProcessIntent::Created, of.process_definition_key, row)
        }
        Payload::DecisionRequirements(intent, value) => {
            let of = &value.metadata;
            let row = AuditRow {
                requirements: some_key(of.decision_requirements_key),
                requirements_id: some_text(&of.decision_requirements_id),
                description: some_text(&of.resource_name),
                tenant: some_text(&of.tenant_id),
                ..AuditRow::default()
            };
            of_resource(*intent == DecisionRequirementsIntent::Created, of.decision_requirements_key, row)
        }
        Payload::Decision(intent, of) => {
            let is_new = *intent == DecisionIntent::Created;
            let row = AuditRow {
                decision: some_key(of.decision_key),
                decision_id: some_text(&of.decision_id),
                requirements: some_key(of.decision_requirements_key),
                requirements_id: some_text(&of.decision_requirements_id),
                deployment: some_key(of.deployment_key),
                description: some_text(&of.decision_name),
                tenant: some_text(&of.tenant_id),
                ..AuditRow::default()
            };
            let doing = if is_new { Doing::CreateDecision } else { Doing::DeleteDecision };
            Some(Done { doing, entity: of.decision_key, row })
        }
        Payload::Form(intent, value) => {
            let of = &value.metadata;
            let row = AuditRow {
                form: some_key(of.form_key),
                deployment: some_key(of.deployment_key),
                description: some_text(&of.resource_name),
                tenant: some_text(&of.tenant_id),
                ..AuditRow::default()
            };
            of_resource(*intent == FormIntent::Created, of.form_key, row)
        }
        Payload::Resource(intent @ (ResourceIntent::Created | ResourceIntent::Deleted), value) => {
            let of = &value.metadata;
            let row = AuditRow {
                resource: some_key(of.resource_key),
                deployment: some_key(of.deployment_key),
                description: some_text(&of.resource_name),
                tenant: some_text(&of.tenant_id),
                ..AuditRow::default()
            };
            of_resource(*intent == ResourceIntent::Created, of.resource_key, row)
        }
        _ => None,
    }
}

fn of_instance(instance: Key, definition: Key) -> AuditRow {
    AuditRow { instance: some_key(instance), definition: some_key(definition), ..AuditRow::default() }
}

fn of_incident(value: &IncidentValue) -> AuditRow {
    AuditRow {
        element_instance: some_key(value.element_instance_key),
        job: some_key(value.job_key),
        ..of_instance(value.process_instance_key, value.process_definition_key)
    }
}

fn of_task(task: Key, value: &UserTaskValue) -> AuditRow {
    AuditRow {
        element_instance: some_key(value.element_instance_key),
        user_task: some_key(task),
        ..of_instance(value.process_instance_key, value.process_definition_key)
    }
}

fn of_evaluation(value: &DecisionEvaluationValue) -> AuditRow {
    AuditRow {
        element_instance: some_key(value.element_instance_key),
        decision: some_key(value.decision_key),
        decision_id: some_text(&value.decision_id),
        requirements: some_key(value.decision_requirements_key),
        requirements_id: some_text(&value.decision_requirements_id),
        tenant: some_text(&value.tenant_id),
        ..of_instance(value.process_instance_key, value.process_definition_key)
    }
}

fn assignment(value: &UserTaskValue) -> Doing {
    if value.assignee.is_empty() { Doing::UnassignTask } else { Doing::AssignTask }
}
