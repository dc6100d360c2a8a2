//! Ad-hoc sub-processes: whatever was chosen begins as often as it was chosen, what was to end does not live on, and the end does
//! not come before. Otherwise what a client was told is under way is done by nobody, or twice.

use std::collections::{BTreeMap, BTreeSet};

use engine::Engine;
use protocol::{
    AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue, BpmnElementType, JobListenerEventType, Key,
    PartitionId, Payload, ProcessInstanceIntent, ProcessInstanceModificationIntent, ProcessInstanceValue, Record,
    RecordType, Text, UserTaskIntent, UserTaskValue,
};

use super::global_listeners::GlobalListeners;
use crate::model::{AdHoc as Id, Listened};

/// Inner instances that begin before it is said that their elements were chosen.
const BEGUN_AT_ONCE_MAX: usize = 50;

/// One that lives.
#[derive(Default)]
struct Living {
    instance: Key,
    chosen: usize,
    begun: usize,
    /// By the elements, what clients have chosen and what began.
    chosen_by_clients: BTreeMap<Text, usize>,
    elements: BTreeMap<Text, usize>,
    inner: BTreeSet<Key>,
    /// How many inner instances were terminated before their elements began.
    ended_empty: usize,
    /// Inner instances that were to end.
    ending: BTreeSet<Key>,
    /// It waits for its end: what was chosen and has not begun will not.
    is_interrupted: bool,
}

/// All that there are.
#[derive(Default)]
pub struct AdHoc {
    living: BTreeMap<Key, Living>,
    /// The ad-hoc sub-process of each inner instance in which nothing has begun.
    empty: BTreeMap<Key, Key>,
    /// The scope of each element instance that lives.
    scopes: BTreeMap<Key, Key>,
    /// What operators change is not foreseen.
    modified: BTreeSet<Key>,
}

impl AdHoc {
    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record, global: &GlobalListeners) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::ProcessInstance(intent, value) => self.element(*intent, record.key, value),
            Payload::UserTask(UserTaskIntent::Canceling, task) => {
                let event = JobListenerEventType::Canceling;
                let of_model = Listened::read(&task.element_id).count(event);
                if of_model > 0 || global.listening(partition, event).iter().any(|listening| !listening.is_empty()) {
                    self.canceling(task);
                }
            }
            Payload::AdHocSubProcessInstruction(AdHocSubProcessInstructionIntent::Activated, value) => {
                self.chosen(value);
            }
            Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, value) => {
                self.modified.insert(value.process_instance_key);
            }
            _ => {}
        }
    }

    fn element(&mut self, intent: ProcessInstanceIntent, key: Key, value: &ProcessInstanceValue) {
        let (id, scope) = (&value.element_id, value.flow_scope_key);
        match intent {
            ProcessInstanceIntent::ElementActivating => drop(self.scopes.insert(key, scope)),
            ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                self.scopes.remove(&key);
            }
            _ => {}
        }
        match (intent, value.bpmn_element_type) {
            (ProcessInstanceIntent::ElementActivated, BpmnElementType::AdHocSubProcess) => {
                let living = self.living.entry(key).or_default();
                living.instance = value.process_instance_key;
                living.chosen += Id::read(id).map_or(0, |id| id.at_first);
            }
            (ProcessInstanceIntent::ElementCompleting, BpmnElementType::AdHocSubProcess) => {
                let living = self.living.remove(&key).unwrap_or_default();
                assert!(
                    living.is_right() || self.modified.contains(&living.instance),
                    "'{id}' {key} ends: {} were chosen, and {} began",
                    living.chosen,
                    living.begun
                );
            }
            (ProcessInstanceIntent::ElementTerminating, BpmnElementType::AdHocSubProcess) => {
                self.living.remove(&key);
            }
            (ProcessInstanceIntent::ElementActivating, BpmnElementType::AdHocSubProcessInnerInstance) => {
                self.empty.insert(key, scope);
                let Some(living) = self.living.get_mut(&scope) else { return };
                living.begun += 1;
                living.inner.insert(key);
            }
            (ProcessInstanceIntent::ElementActivating, BpmnElementType::EventSubProcess) => {
                if let Some(living) = self.living.get_mut(&scope) {
                    living.is_interrupted = true;
                }
            }
            (ProcessInstanceIntent::ElementActivating, _) => {
                if let Some(ad_hoc) = self.empty.remove(&scope)
                    && let Some(living) = self.living.get_mut(&ad_hoc)
                {
                    *living.elements.entry(id.clone()).or_insert(0) += 1;
                }
            }
            (
                ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated,
                BpmnElementType::AdHocSubProcessInnerInstance,
            ) => {
                let is_empty = self.empty.remove(&key).is_some();
                if let Some(living) = self.living.get_mut(&scope) {
                    let is_terminated = intent == ProcessInstanceIntent::ElementTerminated;
                    living.ended_empty += usize::from(is_empty && is_terminated);
                    living.inner.remove(&key);
                    living.ending.remove(&key);
                }
            }
            _ => {}
        }
    }

    /// What is around a user task ends when those have been asked who listen to its end.
    fn canceling(&mut self, task: &UserTaskValue) {
        let mut at = task.element_instance_key;
        while let Some(scope) = self.scopes.get(&at) {
            if let Some(living) = self.living.get_mut(scope) {
                living.inner.remove(&at);
                living.ending.remove(&at);
            }
            at = *scope;
        }
    }

    fn chosen(&mut self, value: &AdHocSubProcessInstructionValue) {
        let Some(living) = self.living.get_mut(&value.ad_hoc_sub_process_instance_key) else { return };
        let count = value.activate_elements.len();
        living.chosen += count;
        for element in &value.activate_elements {
            *living.chosen_by_clients.entry(element.element_id.clone()).or_insert(0) += 1;
        }
        if value.cancel_remaining_instances {
            let before = living.inner.len().saturating_sub(count.min(BEGUN_AT_ONCE_MAX));
            living.ending.extend(living.inner.iter().take(before));
        }
    }

    /// After a batch: when no work waits on a partition, what was said has happened.
    pub fn check(&self, partition: PartitionId, engine: &Engine) {
        if engine.statistics().work_entries > 0 {
            return;
        }
        for (key, living) in self.living.iter().filter(|(key, _)| key.partition() == Some(partition)) {
            if living.is_interrupted || self.modified.contains(&living.instance) {
                continue;
            }
            assert!(living.is_right(), "of {key} {} were chosen, and {} began", living.chosen, living.begun);
            let left = living.ending.iter().next();
            assert!(left.is_none(), "{left:?} in {key} was to end and lives");
            let begun = |id| living.elements.get(id).copied().unwrap_or_default();
            let missing = living.chosen_by_clients.iter().map(|(id, count)| count.saturating_sub(begun(id)));
            assert!(
                missing.sum::<usize>() <= living.ended_empty,
                "{:?} were chosen in {key}, and began less often: {:?}; {} were terminated before",
                living.chosen_by_clients,
                living.elements,
                living.ended_empty
            );
        }
    }
}

impl Living {
    fn is_right(&self) -> bool {
        self.chosen == self.begun
    }
}
