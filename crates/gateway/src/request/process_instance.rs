//! Cancelling, modifying and migrating process instances.

use std::sync::Arc;

use protocol::{
    Key, MigrationMappingInstruction, ModificationActivateInstruction, ModificationMoveInstruction,
    ModificationTerminateInstruction, Payload, ProcessInstanceIntent, ProcessInstanceMigrationIntent,
    ProcessInstanceMigrationValue, ProcessInstanceModificationIntent, ProcessInstanceModificationValue,
    ProcessInstanceValue,
};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant_by_key;
use crate::validation::Target;

/// Wants an instance to end.
#[derive(Debug, Default)]
pub(crate) struct CancelProcessInstance {
    pub process_instance_key: i64,
    pub operation_reference: Option<u64>,
}

/// Wants elements of an instance to begin and to end.
#[derive(Debug, Default)]
pub(crate) struct ModifyProcessInstance {
    pub process_instance_key: i64,
    pub activate: Vec<ModificationActivateInstruction>,
    pub moves: Vec<ModificationMoveInstruction>,
    pub terminate: Vec<ModificationTerminateInstruction>,
    pub operation_reference: Option<u64>,
}

/// Wants an instance to go on with another definition.
#[derive(Debug, Default)]
pub(crate) struct MigrateProcessInstance {
    pub process_instance_key: i64,
    pub target_process_definition_key: i64,
    pub mapping: Vec<MigrationMappingInstruction>,
    pub operation_reference: Option<u64>,
}

impl Request for CancelProcessInstance {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target {
            intent: ProcessInstanceIntent::Cancel.name(),
            action: "cancel a process instance",
            kind: "process",
        };
        let payload = |process_instance_key| {
            let tenant_id = tenant_by_key();
            let value = ProcessInstanceValue { process_instance_key, tenant_id, ..ProcessInstanceValue::default() };
            Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::new(value))
        };
        Submission::by_key(router, target, self.process_instance_key, self.operation_reference, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for ModifyProcessInstance {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target {
            intent: ProcessInstanceModificationIntent::Modify.name(),
            action: "modify process instance",
            kind: "process instance",
        };
        let payload = |process_instance_key| {
            let value = ProcessInstanceModificationValue {
                process_instance_key,
                activate_instructions: self.activate,
                terminate_instructions: self.terminate,
                move_instructions: self.moves,
                tenant_id: tenant_by_key(),
                ..ProcessInstanceModificationValue::default()
            };
            Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value))
        };
        Submission::by_key(router, target, self.process_instance_key, self.operation_reference, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

impl Request for MigrateProcessInstance {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target {
            intent: ProcessInstanceMigrationIntent::Migrate.name(),
            action: "migrate process instance",
            kind: "process instance",
        };
        let payload = |process_instance_key| {
            let value = ProcessInstanceMigrationValue {
                process_instance_key,
                target_process_definition_key: Key::from_raw(self.target_process_definition_key),
                mapping_instructions: self.mapping,
                tenant_id: tenant_by_key(),
            };
            Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value))
        };
        Submission::by_key(router, target, self.process_instance_key, self.operation_reference, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}
