//! Where an element instance is, as records of some events say.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{IncidentIntent, Key, Payload, ProcessInstanceIntent, Record, RecordType};

/// The way to an element instance through scopes and calls. Of what is directly in a process instance that no other called, it
/// follows from the record itself and is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElementPath {
    /// For each process instance from the root one on: the element instances from it to the call activity, at last to the
    /// element instance itself.
    #[n(0)]
    pub element_instance_path: Vec<Vec<Key>>,
    /// The definitions of these process instances.
    #[n(1)]
    pub process_definition_path: Vec<Key>,
    /// Of each call activity on the way, its place among those of its process in the order of their ids, from 0.
    #[n(2)]
    pub calling_element_path: Vec<u32>,
}

impl ElementPath {
    /// How many element instances it goes through.
    pub fn len(&self) -> usize {
        self.element_instance_path.iter().map(Vec::len).sum()
    }

    /// Whether it leads nowhere.
    pub fn is_empty(&self) -> bool {
        self.element_instance_path.is_empty()
    }

    /// The path that a record says: none for records of which exporters know no path, empty for events that have none.
    pub fn of(record: &Record) -> Option<ElementPath> {
        let (element, process, definition) = match &record.payload {
            Payload::ProcessInstance(intent, value) => {
                let begins = *intent == ProcessInstanceIntent::ElementActivating;
                (begins.then_some(record.key), value.process_instance_key, value.process_definition_key)
            }
            Payload::Incident(intent, value) => {
                let is_there = *intent != IncidentIntent::Resolve && value.element_instance_key.is_some();
                let element = is_there.then_some(value.element_instance_key);
                (element, value.process_instance_key, value.process_definition_key)
            }
            _ => return None,
        };
        let Some(element) = element.filter(|_| record.record_type == RecordType::Event) else {
            return Some(ElementPath::default());
        };
        let from_the_record = || {
            let keys = if element == process { vec![process] } else { vec![process, element] };
            ElementPath {
                element_instance_path: vec![keys],
                process_definition_path: vec![definition],
                calling_element_path: Vec::new(),
            }
        };
        Some(record.path.as_deref().cloned().unwrap_or_else(from_the_record))
    }
}
