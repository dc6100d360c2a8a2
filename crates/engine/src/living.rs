//! What lives, told as records: for who lost what it made of the record stream.
//!
//! The state of a checkpoint is read in slices, beside the engine, which goes on. The records say what a fold of the stream up to
//! that checkpoint would know of what lives: definitions, resources, global listeners, element instances, variables, jobs, user tasks,
//! incidents, open subscriptions and timers. They are no part of the stream: all have the place of the checkpoint.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use ::state::{StoreHandle, Table, TableKey, TableValue};
use protocol::{
    Command, ConditionalSubscriptionIntent, DecisionIntent, DecisionRequirementsIntent, DecisionRequirementsValue,
    FormIntent, FormValue, GlobalListenerIntent, IncidentIntent, JobIntent, Key, MessageStartEventSubscriptionIntent,
    PartitionId, Payload, ProcessInstanceIntent, ProcessInstanceValue, ProcessIntent, ProcessMessageSubscriptionIntent,
    ProcessValue, Record, RecordPlace, ResourceIntent, ResourceValue, SignalSubscriptionIntent, TimerIntent, Timestamp,
    UserTaskIntent, VariableIntent, VariableValue,
};

use crate::element_path::{self, LastPath};
use crate::state::{
    Counters, JobRow, ProcessMessageSubscriptionRow, State, SubscriptionState, Tables, UserTaskRow, UserTaskState,
    VariableRow,
};
use crate::{Fault, StoreError};

/// Rows that a slice reads at most, and bytes of them behind which it reads no further one.
const SLICE_ROWS_MAX: usize = 500;
const SLICE_BYTES_MAX: usize = 4 << 20;

/// The key of a table behind which the next slice begins.
type Behind<K> = Option<K>;

/// What is read next, in the order in which a fold needs it: each row names only what came before.
#[derive(Debug)]
enum Stage {
    Processes(Behind<i64>),
    DecisionRequirements(Behind<i64>),
    Decisions(Behind<i64>),
    Forms(Behind<i64>),
    Resources(Behind<i64>),
    GlobalListeners,
    ElementInstances(Behind<i64>),
    Variables(Behind<(i64, Arc<str>)>),
    Jobs(Behind<i64>),
    UserTasks(Behind<i64>),
    Incidents(Behind<i64>),
    Subscriptions(Behind<(i64, Arc<str>)>),
    StartSubscriptions(Behind<(i64, Arc<str>)>),
    Timers(Behind<i64>),
    Conditions(Behind<(i64, i64)>),
    Signals(Behind<(i64, i64)>),
    Over,
}

/// The state of a checkpoint, on its way into records. The file of the state keeps what is replaced meanwhile, until this is
/// dropped.
#[derive(Debug)]
pub struct LivingRecords {
    state: State,
    stage: Stage,
    /// What has a key and variables and is about to begin: the activation waits in the work queue.
    beginning: BTreeMap<i64, Arc<ProcessInstanceValue>>,
}

impl LivingRecords {
    /// Of the newest checkpoint of a partition; none while there is none, or when the state was closed.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn of(partition: PartitionId, store: &StoreHandle) -> Result<Option<LivingRecords>, Fault> {
        let fault = |source| Fault::Store { partition, source };
        let Some((store, recovered)) = store.hold().map_err(fault)? else { return Ok(None) };
        if recovered.metadata.is_empty() {
            return Ok(None);
        }
        let counters: Counters = protocol::decode(&recovered.metadata)
            .map_err(|error| Fault::Counters { partition, reason: error.to_string() })?;
        let state = State::new(Tables::open(&store), counters, partition);
        let beginning = beginning(&state);
        Ok(Some(LivingRecords { state, stage: Stage::Processes(None), beginning }))
    }

    /// Where the stream goes on: behind this.
    pub fn place(&self) -> RecordPlace {
        let Counters { incarnation, position, records, .. } = self.state.counters;
        RecordPlace { incarnation, position, number: records }
    }

    /// When it was like this.
    pub fn timestamp(&self) -> Timestamp {
        self.state.counters.timestamp
    }

    /// The next records; none when all was told. A slice may be empty.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn next_slice(&mut self) -> Result<Option<Vec<Record>>, Fault> {
        let partition = self.state.partition;
        let mut told = Vec::new();
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if matches!(stage, Stage::Over) {
            return Ok(None);
        }
        self.stage = Teller { state: &self.state, beginning: &self.beginning, told: &mut told }.tell(stage);
        match self.state.tables.fault() {
            Some(source) => Err(fault_of(partition, source)),
            None => Ok(Some(told)),
        }
    }
}

/// The element instances of which a waiting activation says the key.
fn beginning(state: &State) -> BTreeMap<i64, Arc<ProcessInstanceValue>> {
    let mut beginning = BTreeMap::new();
    for (_, row) in state.tables.work.range(..) {
        for Command { key, payload, .. } in &row.commands {
            if let Payload::ProcessInstance(ProcessInstanceIntent::ActivateElement, value) = payload
                && key.is_some()
                && !value.element_id.is_empty()
            {
                beginning.insert(key.raw(), value.clone());
            }
        }
    }
    beginning
}

fn fault_of(partition: PartitionId, source: StoreError) -> Fault {
    Fault::Store { partition, source }
}

/// Reads a slice of a table and tells each row; `true` when there may be more.
fn slice<K: TableKey, V: TableValue>(
    table: &Table<K, V>,
    behind: &mut Behind<K>,
    mut tell: impl FnMut(&K, &V) -> usize,
) -> bool {
    let from = behind.take().map_or(Bound::Unbounded, Bound::Excluded);
    let (mut rows, mut bytes) = (0, 0);
    for (key, row) in table.range((from, Bound::Unbounded)) {
        bytes += tell(&key, &row);
        rows += 1;
        if rows >= SLICE_ROWS_MAX || bytes >= SLICE_BYTES_MAX {
            *behind = Some(key);
            return true;
        }
    }
    false
}

struct Teller<'a> {
    state: &'a State,
    beginning: &'a BTreeMap<i64, Arc<ProcessInstanceValue>>,
    told: &'a mut Vec<Record>,
}

/// Tells a slice of a table and gives the same stage behind it, or the next one.
macro_rules! stage {
    ($table:expr, $behind:ident, $stage:ident, $next:expr, $tell:expr) => {{
        let mut behind = $behind;
        if slice($table, &mut behind, $tell) { Stage::$stage(behind) } else { $next }
    }};
}

impl Teller<'_> {
    fn tell(&mut self, stage: Stage) -> Stage {
        let state = self.state;
        let tables = &state.tables;
        match stage {
            Stage::Processes(behind) => {
                let next = Stage::DecisionRequirements(None);
                stage!(&tables.processes, behind, Processes, next, |key, row| {
                    self.process(*key, &row.metadata, &row.resource)
                })
            }
            Stage::DecisionRequirements(behind) => {
                let next = Stage::Decisions(None);
                stage!(&tables.decision_requirements, behind, DecisionRequirements, next, |key, row| {
                    let resource: Arc<[u8]> = row.resource.as_slice().into();
                    let value = Box::new(DecisionRequirementsValue { metadata: row.metadata.clone(), resource });
                    let intent = DecisionRequirementsIntent::Created;
                    self.record(*key, None, Payload::DecisionRequirements(intent, value));
                    row.resource.len()
                })
            }
            Stage::Decisions(behind) => stage!(&tables.decisions, behind, Decisions, Stage::Forms(None), |key, row| {
                self.record(*key, None, Payload::Decision(DecisionIntent::Created, Box::new(row.value.clone())));
                0
            }),
            Stage::Forms(behind) => stage!(&tables.forms, behind, Forms, Stage::Resources(None), |key, row| {
                let resource: Arc<[u8]> = row.resource.as_slice().into();
                let value = FormValue { metadata: row.metadata.clone(), resource };
                self.record(*key, None, Payload::Form(FormIntent::Created, Box::new(value)));
                row.resource.len()
            }),
            Stage::Resources(behind) => {
                stage!(&tables.resources, behind, Resources, Stage::GlobalListeners, |key, row| {
                    let value = ResourceValue { metadata: row.metadata.clone(), resource_prop: row.resource.clone() };
                    self.record(*key, None, Payload::Resource(ResourceIntent::Created, Box::new(value)));
                    row.resource.len()
                })
            }
            Stage::GlobalListeners => {
                // There are few.
                let listeners = state.current_global_listeners();
                for listener in listeners.iter().flat_map(|row| &row.listeners) {
                    let payload = Payload::GlobalListener(GlobalListenerIntent::Created, Box::new(listener.clone()));
                    self.record(listener.global_listener_key.raw(), None, payload);
                }
                Stage::ElementInstances(None)
            }
            living => self.tell_living(living),
        }
    }

    fn tell_living(&mut self, stage: Stage) -> Stage {
        let state = self.state;
        let tables = &state.tables;
        match stage {
            Stage::ElementInstances(behind) => {
                let next = Stage::Variables(None);
                stage!(&tables.element_instances, behind, ElementInstances, next, |key, row| {
                    let intent = ProcessInstanceIntent::ElementActivating;
                    self.record(*key, Some(row.begun), Payload::ProcessInstance(intent, row.value.clone()));
                    0
                })
            }
            Stage::Variables(behind) => {
                stage!(&tables.variables, behind, Variables, Stage::Jobs(None), |(scope, name), row| {
                    self.variable(*scope, name, row)
                })
            }
            Stage::Jobs(behind) => {
                stage!(&tables.jobs, behind, Jobs, Stage::UserTasks(None), |key, row| { self.job(*key, row) })
            }
            Stage::UserTasks(behind) => {
                stage!(&tables.user_tasks, behind, UserTasks, Stage::Incidents(None), |key, row| {
                    self.user_task(*key, row);
                    0
                })
            }
            Stage::Incidents(behind) => {
                stage!(&tables.incidents, behind, Incidents, Stage::Subscriptions(None), |key, row| {
                    let value = Box::new(row.value.clone());
                    self.record(*key, Some(row.created), Payload::Incident(IncidentIntent::Created, value));
                    row.value.error_message.len()
                })
            }
            Stage::Subscriptions(behind) => {
                let next = Stage::StartSubscriptions(None);
                stage!(&tables.process_message_subscriptions, behind, Subscriptions, next, |_, row| {
                    self.subscription(row)
                })
            }
            Stage::StartSubscriptions(behind) => {
                let next = Stage::Timers(None);
                stage!(&tables.message_start_subscriptions, behind, StartSubscriptions, next, |_, row| {
                    let intent = MessageStartEventSubscriptionIntent::Created;
                    let payload = Payload::MessageStartEventSubscription(intent, Box::new(row.value.clone()));
                    self.record(row.key.raw(), Some(row.created), payload);
                    0
                })
            }
            waiting => self.tell_waiting(waiting),
        }
    }

    /// What is waited for beside messages.
    fn tell_waiting(&mut self, stage: Stage) -> Stage {
        let tables = &self.state.tables;
        match stage {
            Stage::Timers(behind) => {
                stage!(&tables.timers, behind, Timers, Stage::Conditions(None), |key, row| {
                    self.record(*key, None, Payload::Timer(TimerIntent::Created, Box::new(row.value.clone())));
                    0
                })
            }
            Stage::Conditions(behind) => {
                stage!(&tables.conditional_subscriptions, behind, Conditions, Stage::Signals(None), |key, row| {
                    let intent = ConditionalSubscriptionIntent::Created;
                    let payload = Payload::ConditionalSubscription(intent, Box::new(row.value.clone()));
                    self.record(key.1, None, payload);
                    row.value.condition.len()
                })
            }
            Stage::Signals(behind) => {
                stage!(&tables.signal_subscriptions, behind, Signals, Stage::Over, |key, row| {
                    let intent = SignalSubscriptionIntent::Created;
                    let payload = Payload::SignalSubscription(intent, Box::new(row.value.clone()));
                    self.record(key.1, None, payload);
                    0
                })
            }
            over => over,
        }
    }

    /// A record of the checkpoint. What does not say when it was, was there by then.
    fn record(&mut self, key: i64, timestamp: Option<Timestamp>, payload: Payload) {
        let Counters { position, records, timestamp: now, .. } = self.state.counters;
        let key = Key::from_raw(key);
        let path = element_path::of(&mut LastPath::default(), self.state, key, &payload);
        let record = Record::event(position, timestamp.unwrap_or(now), key, payload);
        self.told.push(Record { number: records, path, ..record });
    }

    fn process(&mut self, key: i64, metadata: &protocol::ProcessMetadata, resource: &[u8]) -> usize {
        let value = ProcessValue { metadata: metadata.clone(), resource: resource.into() };
        self.record(key, None, Payload::Process(ProcessIntent::Created, Box::new(value.clone())));
        if self.state.is_deleting(Key::from_raw(key)) {
            self.record(key, None, Payload::Process(ProcessIntent::Deleting, Box::new(value)));
        }
        resource.len()
    }

    fn variable(&mut self, scope: i64, name: &Arc<str>, row: &VariableRow) -> usize {
        // Its variables may be there before it begins, and are not told again then.
        let begun = self.state.element_instance(Key::from_raw(scope)).map(|instance| instance.value.clone());
        let Some(instance) = begun.or_else(|| self.beginning.get(&scope).cloned()) else { return 0 };
        let value = VariableValue {
            name: name.clone().into(),
            value: row.value.clone(),
            scope_key: Key::from_raw(scope),
            process_instance_key: instance.process_instance_key,
            process_definition_key: instance.process_definition_key,
            bpmn_process_id: instance.bpmn_process_id.clone(),
            tenant_id: instance.tenant_id.clone(),
        };
        self.record(row.key.raw(), None, Payload::Variable(VariableIntent::Created, Box::new(value)));
        row.value.len()
    }

    /// Its creation, and behind it what happened to it last.
    fn job(&mut self, key: i64, row: &JobRow) -> usize {
        self.record(key, Some(row.created), Payload::Job(JobIntent::Created, row.value.clone()));
        if row.last_event.is_some() || row.changed.is_some() {
            let intent = row.last_event.unwrap_or(JobIntent::Updated);
            if intent == JobIntent::RecurredAfterBackoff {
                // Kept only of a job whose error stopped it.
                self.record(key, row.changed, Payload::Job(JobIntent::ErrorThrown, row.value.clone()));
            }
            self.record(key, row.changed, Payload::Job(intent, row.value.clone()));
        }
        row.value.custom_headers.len()
    }

    /// A task as it rests, and behind that the change that is under way.
    fn user_task(&mut self, key: i64, row: &UserTaskRow) {
        let change = match row.state {
            UserTaskState::Created => None,
            UserTaskState::Creating => Some(UserTaskIntent::Creating),
            UserTaskState::Assigning => Some(UserTaskIntent::Assigning),
            UserTaskState::Claiming => Some(UserTaskIntent::Claiming),
            UserTaskState::Updating => Some(UserTaskIntent::Updating),
            UserTaskState::Completing => Some(UserTaskIntent::Completing),
            UserTaskState::Canceling => Some(UserTaskIntent::Canceling),
        };
        let created = (row.value.creation_timestamp > 0).then_some(row.value.creation_timestamp);
        let mut value = row.value.clone();
        if let Some(transition) = row.transition.as_ref().filter(|_| row.state == UserTaskState::Creating) {
            // Its creation says who is to get it.
            value.assignee = transition.initial_assignee.clone();
        }
        for intent in [Some(UserTaskIntent::Created), change].into_iter().flatten() {
            self.record(key, created, Payload::UserTask(intent, Box::new(value.clone())));
        }
    }

    fn subscription(&mut self, row: &ProcessMessageSubscriptionRow) -> usize {
        // Searches know what was opened on both sides. Of what is being closed nobody knows whether it was, and it waits no more.
        if row.state != SubscriptionState::Open {
            return 0;
        }
        let has_correlated = row.value.message_key.is_some();
        let intent = if has_correlated {
            ProcessMessageSubscriptionIntent::Correlated
        } else {
            ProcessMessageSubscriptionIntent::Created
        };
        let payload = Payload::ProcessMessageSubscription(intent, Box::new(row.value.clone()));
        self.record(row.key.raw(), Some(row.changed), payload);
        row.value.variables.len()
    }
}
