//! Accounting: what was created is completed, terminated or still active, by the records and by the state alike. An
//! instance that is none of these is lost, and nobody would look for it.

use std::collections::{BTreeMap, BTreeSet};

use engine::Engine;
use protocol::{
    BpmnElementType, IncidentIntent, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessIntent, Record,
    RecordType, Text,
};

/// What the records say, as an operator would see it.
#[derive(Default)]
pub struct Accounting {
    created: u64,
    ended: u64,
    /// Instances that live, with their caller.
    active: BTreeMap<Key, (Key, Text)>,
    /// Open incidents, with their job if they are of one.
    incidents: BTreeMap<Key, (Key, Key)>,
    /// Element instances that live, but for the instances of processes.
    elements: BTreeMap<Key, Element>,
    /// The ids that elements of each process ever had.
    element_ids: BTreeMap<Text, BTreeSet<Text>>,
    /// Deployed definitions with the ids of their processes; nothing for those that were deleted.
    definitions: BTreeMap<Key, Option<Text>>,
}

/// An element instance that lives.
pub struct Element {
    /// Its process instance.
    pub instance: Key,
    /// The id in the model.
    pub id: Text,
}

impl Accounting {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::ProcessInstance(intent, value) => {
                let is_process = value.bpmn_element_type == BpmnElementType::Process;
                match intent {
                    ProcessInstanceIntent::ElementActivating => {
                        if is_process {
                            self.created += 1;
                            let entry = (value.parent_process_instance_key, value.bpmn_process_id.clone());
                            self.active.insert(record.key, entry);
                        } else {
                            let (instance, id) = (value.process_instance_key, value.element_id.clone());
                            self.element_ids.entry(value.bpmn_process_id.clone()).or_default().insert(id.clone());
                            self.elements.insert(record.key, Element { instance, id });
                        }
                    }
                    ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                        self.elements.remove(&record.key);
                        if is_process {
                            self.ended += 1;
                            self.active.remove(&record.key);
                        }
                    }
                    _ => {}
                }
            }
            Payload::Process(ProcessIntent::Created, value) => {
                // Every partition says so, perhaps after the first one has said that it is deleted.
                let id = value.metadata.bpmn_process_id.clone();
                self.definitions.entry(record.key).or_insert(Some(id));
            }
            Payload::Process(ProcessIntent::Deleting, _) => {
                self.definitions.insert(record.key, None);
            }
            Payload::Incident(IncidentIntent::Created, value) => {
                self.incidents.insert(record.key, (value.process_instance_key, value.job_key));
            }
            Payload::Incident(IncidentIntent::Resolved, _) => {
                self.incidents.remove(&record.key);
            }
            _ => {}
        }
    }

    /// How many instances there were.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Instances that live and were not called by others.
    pub fn roots(&self) -> impl Iterator<Item = Key> + '_ {
        self.active.iter().filter(|(_, (parent, _))| *parent == Key::NONE).map(|(key, _)| *key)
    }

    /// The process of an instance that lives.
    pub fn process_of(&self, instance: Key) -> Option<&Text> {
        self.active.get(&instance).map(|(_, process)| process)
    }

    /// What lives in an instance.
    pub fn elements_in(&self, instance: Key) -> Vec<(Key, &Element)> {
        self.elements.iter().filter(|(_, element)| element.instance == instance).map(|(key, of)| (*key, of)).collect()
    }

    /// The ids of all elements of a process that ever began.
    pub fn element_ids(&self, process: &Text) -> Vec<&Text> {
        self.element_ids.get(process).into_iter().flatten().collect()
    }

    /// The definitions of a process that were not deleted.
    pub fn definitions(&self, process: &str) -> Vec<Key> {
        let of =
            |(key, id): (&Key, &Option<Text>)| id.as_ref().is_some_and(|id| id.as_str() == process).then_some(*key);
        self.definitions.iter().filter_map(of).collect()
    }

    /// How many instances live.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Open incidents with their jobs.
    pub fn incidents(&self) -> impl Iterator<Item = (Key, Key)> + '_ {
        self.incidents.iter().map(|(incident, (_, job))| (*incident, *job))
    }

    /// At the end, on each node.
    pub fn check(&self, partition: PartitionId, engine: &Engine) {
        assert!(
            self.created == self.ended + self.active.len() as u64,
            "{} instances were created, {} ended and {} are active",
            self.created,
            self.ended,
            self.active.len()
        );
        let of =
            |keys: &mut dyn Iterator<Item = Key>| keys.filter(|key| key.partition() == Some(partition)).count() as u64;
        let incidents = of(&mut self.incidents.keys().copied());
        let statistics = engine.statistics();
        assert!(
            statistics.incidents == incidents,
            "{partition} has {} incidents in its state and {incidents} by its records",
            statistics.incidents
        );
    }
}
