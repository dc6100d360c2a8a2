//! What is done to process instances.

use std::sync::Arc;

use protocol::*;

use super::{Driver, TENANT};
use crate::cluster::Outcome;
use crate::names::{PROCESSES, name};

impl Driver<'_, '_> {
    pub(super) fn create(&mut self) -> Outcome {
        let value = self.creation();
        let intents = [ProcessInstanceCreationIntent::Create, ProcessInstanceCreationIntent::CreateWithAwaitingResult];
        let intent = self.choices.pick(&intents);
        let partition = self.partition();
        self.submit_to(partition, Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)))
    }

    fn creation(&mut self) -> ProcessInstanceCreationValue {
        let processes = &self.cluster.known.processes;
        let bpmn_process_id = match self.choices.byte() {
            number @ 0..=239 if !processes.is_empty() => processes[usize::from(number) % processes.len()].clone(),
            _ => name(&mut self.choices, PROCESSES).into(),
        };
        ProcessInstanceCreationValue {
            bpmn_process_id,
            version: if self.choices.percent(10) { self.choices.pick(&[1, 2, i32::MAX]) } else { -1 },
            variables: self.variables(),
            tenant_id: TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        }
    }

    pub(super) fn create_with_instructions(&mut self) -> Outcome {
        let mut value = self.creation();
        for _ in 0..self.choices.size(300) {
            let id = self.element_id();
            value.start_instructions.push(id);
        }
        for _ in 0..self.choices.size(10) {
            let after_element_id = self.element_id();
            value.runtime_instructions.push(RuntimeInstruction { after_element_id, ..RuntimeInstruction::default() });
        }
        let partition = self.partition();
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        self.submit_to(partition, Key::NONE, payload)
    }

    pub(super) fn cancel(&mut self) -> Outcome {
        let key = self.key(|cluster| &cluster.known.instances);
        self.submit(key, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default()))
    }

    pub(super) fn cancel_all(&mut self) -> Outcome {
        let instances = std::mem::take(&mut self.cluster.known.instances);
        self.note(&format!("cancel {} instances", instances.len()));
        for key in instances {
            let partition = self.cluster.partition_of(key);
            let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
            self.cluster.submit(partition, key, payload)?;
        }
        Ok(())
    }

    pub(super) fn modify(&mut self) -> Outcome {
        let mut value = ProcessInstanceModificationValue {
            process_instance_key: self.key(|cluster| &cluster.known.instances),
            ..ProcessInstanceModificationValue::default()
        };
        for _ in 0..self.choices.size(200) {
            let instruction = self.activate_instruction();
            value.activate_instructions.push(instruction);
        }
        for _ in 0..self.choices.size(20) {
            let by_id = self.choices.percent(50);
            value.terminate_instructions.push(match by_id {
                true => ModificationTerminateInstruction {
                    element_id: self.element_id(),
                    ..ModificationTerminateInstruction::default()
                },
                false => ModificationTerminateInstruction {
                    element_instance_key: self.key(|cluster| &cluster.known.elements),
                    ..ModificationTerminateInstruction::default()
                },
            });
        }
        for _ in 0..self.choices.size(20) {
            let instruction = self.move_instruction();
            value.move_instructions.push(instruction);
        }
        let partition = self.cluster.partition_of(value.process_instance_key);
        let intent = ProcessInstanceModificationIntent::Modify;
        self.submit_to(partition, Key::NONE, Payload::ProcessInstanceModification(intent, Box::new(value)))
    }

    fn activate_instruction(&mut self) -> ModificationActivateInstruction {
        let element_id = self.element_id();
        let ancestor_scope_key = match self.choices.percent(30) {
            true => self.key(|cluster| &cluster.known.elements),
            false => Key::NONE,
        };
        let mut variable_instructions = Vec::new();
        for _ in 0..self.choices.size(3) {
            let element_id = if self.choices.percent(50) { self.element_id() } else { Text::default() };
            variable_instructions.push(ModificationVariableInstruction { variables: self.variables(), element_id });
        }
        ModificationActivateInstruction { element_id, ancestor_scope_key, variable_instructions }
    }

    fn move_instruction(&mut self) -> ModificationMoveInstruction {
        let by_key = self.choices.percent(50);
        let how = self.choices.below(3);
        ModificationMoveInstruction {
            source_element_id: if by_key { Text::default() } else { self.element_id() },
            source_element_instance_key: match by_key {
                true => self.key(|cluster| &cluster.known.elements),
                false => Key::NONE,
            },
            target_element_id: self.element_id(),
            infer_ancestor_scope: how == 1,
            use_source_parent_as_ancestor: how == 2,
            ..ModificationMoveInstruction::default()
        }
    }

    pub(super) fn migrate(&mut self) -> Outcome {
        let count = self.ids.len();
        let same = self.choices.percent(70);
        let mut mapping_instructions = Vec::new();
        for index in 0..count.min(2_000) {
            let source_element_id: Text = self.ids[index].as_str().into();
            let target_element_id = if same { source_element_id.clone() } else { self.element_id() };
            if !self.choices.percent(10) {
                mapping_instructions.push(MigrationMappingInstruction { source_element_id, target_element_id });
            }
        }
        let value = ProcessInstanceMigrationValue {
            process_instance_key: self.key(|cluster| &cluster.known.instances),
            target_process_definition_key: self.key(|cluster| &cluster.known.definitions),
            mapping_instructions,
            tenant_id: TENANT.into(),
        };
        let partition = self.cluster.partition_of(value.process_instance_key);
        let intent = ProcessInstanceMigrationIntent::Migrate;
        self.submit_to(partition, Key::NONE, Payload::ProcessInstanceMigration(intent, Box::new(value)))
    }
}
