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
    pub business_id: Option<Text>,
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
    /// Whether it goes on behind an error that nobody caught, in a state that is what it was: it has no end any more.
    pub goes_on: bool,
    pub retries: i32,
    pub deadline: Option<i64>,
    pub created: Option<i64>,
    pub updated: i64,
    pub end: Option<i64>,
    pub error_code: Option<Text>,
    pub error_message: Option<Text>,
    pub headers: Text,
    pub kind: u8,
    pub listener_event_type: u8,
    /// Of a listener that is done: whether it denied.
    pub is_denied: Option<bool>,
    pub denied_reason: Option<Text>,
}

#[derive(Debug)]
pub(crate) struct UserTaskRow {
    pub instance: i64,
    pub element_instance: i64,
    pub element: ElementId,
    /// Whether the task moved to another element.
    pub is_moved: bool,
    /// Whether nothing but the state is true yet.
    pub is_announced: bool,
    /// None while it is what it was.
    pub state: Option<u8>,
    pub assignee: Option<Text>,
    pub candidate_groups: Vec<Text>,
    pub candidate_users: Vec<Text>,
    pub created: i64,
    pub completed: Option<i64>,
    pub follow_up: Option<i64>,
    pub due: Option<i64>,
    pub external_form: Option<Text>,
    pub form: Option<i64>,
    pub priority: i32,
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

/// A timer that is not due yet; none when it is gone.
pub(crate) type TimerChange = Option<TimerRow>;

#[derive(Debug)]
pub(crate) struct TimerRow {
    pub instance: i64,
    pub element_instance: i64,
    pub element_id: Text,
    pub due: i64,
    pub repetitions: i32,
}

/// A condition that an event waits for; none when it is gone.
pub(crate) type ConditionChange = Option<ConditionRow>;

#[derive(Debug)]
pub(crate) struct ConditionRow {
    pub instance: i64,
    pub element_instance: i64,
    pub element_id: Text,
    pub expression: Text,
    /// A JSON list.
    pub events: String,
}

/// The wait of an event for a signal; none when it is over.
pub(crate) type SignalSubscriptionChange = Option<SignalSubscriptionRow>;

#[derive(Debug)]
pub(crate) struct SignalSubscriptionRow {
    /// Of the instance that it belongs to, or the process instance itself.
    pub element_instance: i64,
    pub element_id: Text,
    pub signal_name: Text,
}

/// What jobs are counted by: the begin of a minute, their type, and the worker.
pub(crate) type JobGroup = (i64, Text, Text);

/// How often something happened, and when it did last.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Happened {
    pub count: i64,
    pub last: Option<i64>,
}

impl Happened {
    pub fn again(&mut self, at: i64) {
        self.count += 1;
        self.last = self.last.max(Some(at));
    }
}

/// How often jobs of a group were created, completed, and failed.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct JobsCounted {
    pub created: Happened,
    pub completed: Happened,
    pub failed: Happened,
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

/// What somebody did.
#[derive(Debug, Default)]
pub(crate) struct AuditRow {
    pub entity: i64,
    pub entity_type: u8,
    pub operation: u8,
    pub result: u8,
    pub category: u8,
    pub time: i64,
    pub actor_type: u8,
    pub actor_id: Option<Text>,
    pub definition: Option<i64>,
    pub instance: Option<i64>,
    pub element_instance: Option<i64>,
    pub user_task: Option<i64>,
    pub batch_operation: Option<i64>,
    pub job: Option<i64>,
    pub decision: Option<i64>,
    pub decision_id: Option<Text>,
    pub requirements: Option<i64>,
    pub requirements_id: Option<Text>,
    pub deployment: Option<i64>,
    pub form: Option<i64>,
    pub resource: Option<i64>,
    /// What the entity is called, or why it was refused.
    pub description: Option<Text>,
    /// Of what belongs to no process; of the others it is that of the definition.
    pub tenant: Option<Text>,
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
    /// Names that variables of a definition have, of those that may be new.
    pub variable_names: Vec<(i64, Text)>,
    pub jobs: BTreeMap<i64, JobRow>,
    pub user_tasks: BTreeMap<i64, UserTaskRow>,
    pub incidents: BTreeMap<i64, IncidentRow>,
    pub subscriptions: BTreeMap<i64, SubscriptionRow>,
    pub correlations: Vec<CorrelationRow>,
    pub timers: BTreeMap<i64, TimerChange>,
    pub conditions: BTreeMap<i64, ConditionChange>,
    pub signal_subscriptions: BTreeMap<i64, SignalSubscriptionChange>,
    pub audits: BTreeMap<i64, AuditRow>,
    /// Instances and decisions by the begin of the time for which they are counted.
    pub usage: BTreeMap<i64, (i64, i64)>,
    /// People by the same, as numbers.
    pub assignees: BTreeSet<(i64, i64)>,
    pub jobs_counted: BTreeMap<JobGroup, JobsCounted>,
    pub decision_instances: Vec<DecisionInstanceRow>,
    /// Rows that are written at once, because they are rare: definitions and new elements.
    pub definitions: usize,
    /// Of the values, about.
    pub bytes: usize,
    /// It ends what the state tells of what lives, as it was at this time.
    pub living_told_at: Option<i64>,
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
            + self.variable_names.len()
            + self.jobs.len()
            + self.user_tasks.len()
            + self.incidents.len()
            + self.subscriptions.len()
            + self.correlations.len()
            + self.timers.len()
            + self.conditions.len()
            + self.signal_subscriptions.len()
            + self.audits.len()
            + self.usage.len()
            + self.assignees.len()
            + self.jobs_counted.len()
            + self.decision_instances.len()
            + self.definitions
    }
}
