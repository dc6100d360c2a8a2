//! What operators do: they modify and migrate instances, and deploy and delete versions of a process.

use std::collections::BTreeSet;

use protocol::*;

use super::{Ask, Clients, Kind, TENANT, resource};
use crate::model;
use crate::oracle::Accounting;

/// What operators remember.
#[derive(Default)]
pub(super) struct Operators {
    /// How many versions they deployed.
    versions: u64,
    /// Instances that they modified: how these end is not predicted.
    modified: BTreeSet<Key>,
}

impl Clients {
    /// One intervention, if there are operators.
    pub(super) fn operate(&mut self, accounting: &Accounting) -> Option<Ask> {
        self.operators.as_ref()?;
        if self.is_finishing {
            return self.cancel_modified(accounting);
        }
        match self.chance.below(8) {
            0..=3 => self.modify(accounting),
            4..=5 => self.migrate(accounting),
            6 => self.deploy_version(),
            _ => self.delete(accounting),
        }
    }

    /// What an operator started may wait for something that never comes.
    fn cancel_modified(&mut self, accounting: &Accounting) -> Option<Ask> {
        let modified = &mut self.operators.as_mut()?.modified;
        modified.retain(|instance| accounting.process_of(*instance).is_some());
        let instance = modified.first().copied()?;
        Some(self.cancel_instance(instance))
    }

    fn any_root(&mut self, accounting: &Accounting) -> Option<Key> {
        let roots: Vec<Key> = accounting.roots().collect();
        (!roots.is_empty()).then(|| *self.chance.choose(&roots))
    }

    /// Ends something in an instance, begins something, or both.
    fn modify(&mut self, accounting: &Accounting) -> Option<Ask> {
        let instance = self.any_root(accounting)?;
        let (alive, ids) = (accounting.elements_in(instance), accounting.element_ids(accounting.process_of(instance)?));
        let mut value = ProcessInstanceModificationValue {
            process_instance_key: instance,
            tenant_id: TENANT.into(),
            ..ProcessInstanceModificationValue::default()
        };
        let (ends, begins) = (!self.chance.one_in(3), !self.chance.one_in(3));
        if ends && !alive.is_empty() {
            let element_instance_key = self.chance.choose(&alive).0;
            let instruction = ModificationTerminateInstruction { element_instance_key, ..Default::default() };
            value.terminate_instructions.push(instruction);
        }
        if begins && !ids.is_empty() {
            let element_id = (*self.chance.choose(&ids)).clone();
            let instruction = ModificationActivateInstruction { element_id, ..Default::default() };
            value.activate_instructions.push(instruction);
        }
        self.operators.as_mut()?.modified.insert(instance);
        let payload = Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value));
        Some(self.ask(Kind::Other("modify"), instance.partition()?, instance, payload))
    }

    /// Lets an instance continue with another version.
    fn migrate(&mut self, accounting: &Accounting) -> Option<Ask> {
        let targets = accounting.definitions(model::VERSIONED);
        let of = |key: &Key| accounting.process_of(*key).is_some_and(|process| process.as_str() == model::VERSIONED);
        let instances: Vec<Key> = accounting.roots().filter(of).collect();
        if targets.is_empty() || instances.is_empty() {
            return None;
        }
        let (instance, target) = (*self.chance.choose(&instances), *self.chance.choose(&targets));
        let ids: BTreeSet<&Text> = accounting.elements_in(instance).into_iter().map(|(_, of)| &of.id).collect();
        let mapping =
            |id: &Text| MigrationMappingInstruction { source_element_id: id.clone(), target_element_id: id.clone() };
        let value = ProcessInstanceMigrationValue {
            process_instance_key: instance,
            target_process_definition_key: target,
            mapping_instructions: ids.into_iter().map(mapping).collect(),
            tenant_id: TENANT.into(),
        };
        let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
        Some(self.ask(Kind::Other("migrate"), instance.partition()?, instance, payload))
    }

    fn deploy_version(&mut self) -> Option<Ask> {
        let operators = self.operators.as_mut()?;
        operators.versions += 1;
        let value = DeploymentValue {
            resources: vec![resource(model::VERSIONED, &model::versioned(operators.versions))],
            tenant_id: TENANT.into(),
            ..DeploymentValue::default()
        };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        Some(self.ask(Kind::Other("deploy a version"), PartitionId(1), Key::NONE, payload))
    }

    fn delete(&mut self, accounting: &Accounting) -> Option<Ask> {
        let process = if self.chance.one_in(10) { model::STARTED } else { model::VERSIONED };
        let definitions = accounting.definitions(process);
        if definitions.is_empty() {
            return None;
        }
        let value = ResourceDeletionValue { resource_key: *self.chance.choose(&definitions), tenant_id: TENANT.into() };
        let payload = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
        Some(self.ask(Kind::Other("delete"), PartitionId(1), Key::NONE, payload))
    }
}
