//! What one transaction writes: the newest state of each row that changed since the last one, so that a row that changes ten
//! times is written once.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{RecordPlace, Text};

use crate::dictionary::ElementId;

/// A process instance. What never changes is only written with a new row.
#[derive(Debug)]
pub(crate) struct ProcessInstanceRow {
    pub definition: i64,
    pub parent: Option<i64>,
    pub parent_element: Option<i64>,
    pub root: i64,
    pub state: u8,
    pub start: i64,
    pub end: Option<i64>,
    pub tags: Option<String>,
}

#[derive(Debug)]
pub(crate) struct ElementInstanceRow {
    pub instance: i64,
    pub scope: i64,
    pub element: ElementId,
    pub state: u8,
    pub start: i64,
    pub end: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct VariableRow {
    pub instance: i64,
    pub scope: i64,
    pub name: Text,
    pub value: Text,
}

#[derive(Debug)]
pub(crate) struct JobRow {
    pub instance: i64,
    pub element_instance: i64,
    pub element: ElementId,
    /// Whether the job moved to another element.
    pub is_moved: bool,
    pub job_type: Text,
    pub worker: Text,
    /// None while it is what it was.
    pub state: Option<u8>,
    pub retries: i32,
    pub deadline: Option<i64>,
    pub created: Option<i64>,
    pub updated: i64,
    pub end: Option<i64>,
    pub error_code: Option<Text>,
    pub error_message: Option<Text>,
    pub headers: Text,
}

#[derive(Debug)]
pub(crate) struct IncidentRow {
    pub instance: i64,
    pub element_instance: i64,
    pub element: ElementId,
    pub job: Option<i64>,
    pub error_type: u8,
    pub message: Text,
    pub state: u8,
    pub created: i64,
}

#[derive(Debug)]
pub(crate) struct SubscriptionRow {
    pub is_start: bool,
    pub definition: Option<i64>,
    pub process_id: Text,
    pub instance: Option<i64>,
    pub element_instance: Option<i64>,
    pub element_id: Text,
    pub message_name: Text,
    pub correlation_key: Option<Text>,
    pub state: u8,
    pub updated: i64,
    pub tenant: Text,
}

#[derive(Debug)]
pub(crate) struct CorrelationRow {
    pub subscription: i64,
    pub message: i64,
    pub message_name: Text,
    pub correlation_key: Option<Text>,
    pub time: i64,
    pub definition: Option<i64>,
    pub process_id: Text,
    pub instance: Option<i64>,
    pub element_instance: Option<i64>,
    pub element_id: Text,
    pub tenant: Text,
}

#[derive(Debug)]
pub(crate) struct DecisionInstanceRow {
    pub evaluation: i64,
    pub instance_key: Text,
    pub definition: i64,
    pub id: Text,
    pub name: Text,
    pub version: i32,
    pub decision_type: u8,
    pub root_definition: i64,
    pub requirements: i64,
    pub state: u8,
    pub date: i64,
    pub failure: Option<Text>,
    pub result: Text,
    pub details: String,
    pub process_definition: Option<i64>,
    pub process_instance: Option<i64>,
    pub element_instance: Option<i64>,
    pub tenant: Text,
}

/// How the counters of an element change.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub active: i64,
    pub completed: i64,
    pub canceled: i64,
    pub incidents: i64,
}

/// How the incidents of an element instance change.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Troubled {
    /// Incidents there and in what it contains or calls.
    pub incidents: i64,
    /// Its own newest one; `Some(None)` when that is resolved.
    pub own: Option<Option<i64>>,
}

/// What is not yet written.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub process_instances: BTreeMap<i64, ProcessInstanceRow>,
    pub instance_incidents: BTreeMap<i64, i64>,
    pub element_instances: BTreeMap<i64, ElementInstanceRow>,
    pub element_incidents: BTreeMap<i64, Troubled>,
    pub counters: BTreeMap<ElementId, Counted>,
    pub sequence_flows: BTreeSet<(i64, ElementId)>,
    pub variables: BTreeMap<i64, VariableRow>,
    pub jobs: BTreeMap<i64, JobRow>,
    pub incidents: BTreeMap<i64, IncidentRow>,
    pub subscriptions: BTreeMap<i64, SubscriptionRow>,
    pub correlations: Vec<CorrelationRow>,
    pub decision_instances: Vec<DecisionInstanceRow>,
    /// Rows that are written at once, because they are rare: definitions and new elements.
    pub definitions: usize,
    /// Of the values, about.
    pub bytes: usize,
    /// Up to where it goes.
    pub place: Option<RecordPlace>,
}

impl Batch {
    /// How many rows it writes, about.
    pub fn rows(&self) -> usize {
        self.process_instances.len()
            + self.instance_incidents.len()
            + self.element_instances.len()
            + self.sequence_flows.len()
            + self.variables.len()
            + self.jobs.len()
            + self.incidents.len()
            + self.subscriptions.len()
            + self.correlations.len()
            + self.decision_instances.len()
            + self.definitions
    }
}
