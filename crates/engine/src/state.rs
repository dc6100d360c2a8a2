//! The state of a partition: what the events so far have made true.

mod document;
mod due;
pub(crate) mod life;
mod owners_of_work;
pub(crate) mod owning_instance;
mod rows;
mod usage;

pub(crate) use crate::feature_level::FeatureLevel;
pub(crate) use document::append_variable;
pub(crate) use due::{Due, queue_of, still_due};
pub(crate) use rows::*;
pub(crate) use usage::{EarlyVariables, Usage, item_bytes, living_of, variable_bytes};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpmn::model::Behavior;
use minicbor::{Decode, Encode};
use protocol::{BpmnElementType, Key, PartitionId, ProcessInstanceValue, Timestamp};

use self::owners_of_work::OwnersOfWork;
use crate::definitions::Definitions;
use crate::feature_level::Rules;

state::tables! {
    /// All tables of a partition. Keys are raw [`Key`]s unless said otherwise.
    pub(crate) struct Tables {
        /// Versions of processes by definition key.
        pub processes: state::Table<i64, ProcessRow> = 1,
        /// The newest version by tenant and BPMN process id.
        pub latest_processes: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 2,
        /// Definition keys by tenant, BPMN process id and version.
        pub process_versions: state::Table<(Arc<str>, Arc<str>, i32), i64> = 3,
        /// Living element instances.
        pub element_instances: state::Table<i64, ElementInstance> = 4,
        /// Children by (scope, child).
        pub children: state::Table<(i64, i64), ()> = 5,
        /// Tokens that wait at a joining gateway: how often each flow was taken, by (scope, gateway id, flow id).
        pub waiting_tokens: state::Table<(i64, Arc<str>, Arc<str>), u32> = 6,
        /// Variables by (scope, name).
        pub variables: state::Table<(i64, Arc<str>), VariableRow> = 7,
        /// Living jobs.
        pub jobs: state::Table<i64, JobRow> = 8,
        /// Jobs to be activated, by tenant and type, oldest first.
        pub available_jobs: state::Queue<(Arc<str>, Arc<str>), i64, ()> = 9,
        /// Activated jobs by the end of their activation.
        pub job_deadlines: state::Queue<(), (i64, i64), ()> = 10,
        /// Jobs that were pushed and are not known to be delivered, by (node, number of the stream, number of the push). It may have been
        /// completed or activated again since: that is so when the job's row names another owner.
        pub pushed_jobs: state::Table<(u32, u64, u64), i64> = 152,
        /// The same of polls, by (node, number of the request, place in the answer).
        pub polled_jobs: state::Table<(u32, u64, u64), i64> = 153,
        /// Failed jobs by the end of their back-off.
        pub job_backoffs: state::Queue<(), (i64, i64), ()> = 11,
        /// Open incidents.
        pub incidents: state::Table<i64, IncidentRow> = 12,
        /// Open streams of workers by (node, number).
        pub job_streams: state::Table<(u32, u64), JobStreamRow> = 13,
        /// Streams by (tenant, type, node, number).
        pub job_streams_by_type: state::Table<(Arc<str>, Arc<str>, u32, u64), ()> = 14,
        /// The stream that was served last, by tenant and type, so that streams take turns.
        pub served_streams: state::Table<(Arc<str>, Arc<str>), ServedStream> = 15,
        /// Instances that were banned after a failure of the engine.
        pub banned_instances: state::Table<i64, BanRow> = 16,
        /// Interrupted work by its position in the queue.
        pub work: state::Table<u64, WorkRow> = 17,
        /// Commands for other partitions by (partition, sequence), until acknowledged.
        pub outbox: state::Queue<u16, u64, OutboxRow> = 18,
        /// The last sequence given to a command, by receiving partition.
        pub outbox_sequences: state::Table<u16, u64> = 19,
        /// What was received last, by sending partition.
        pub inbox_sequences: state::Table<u16, InboxRow> = 20,
        /// Distributions under way.
        pub distributions: state::Table<i64, DistributionRow> = 21,
        /// Partitions that have not acknowledged, by (distribution, partition).
        pub pending_distributions: state::Table<(i64, u16), ()> = 22,
        /// Instances whose result a client waits for.
        pub awaited_results: state::Table<i64, AwaitedResult> = 23,
        /// Open timers.
        pub timers: state::Table<i64, TimerRow> = 24,
        /// Timers by what waits: (element instance or, for start events, definition; timer).
        pub timers_by_owner: state::Table<(i64, i64), ()> = 25,
        /// Timers by their due date.
        pub due_timers: state::Queue<(), (i64, i64), ()> = 26,
        /// Triggers whose element has not begun yet, by (element instance, trigger).
        pub event_triggers: state::Table<(i64, i64), EventTriggerRow> = 27,
        /// Items of multi-instance bodies whose inner instance has not ended, as JSON texts by (body, loop counter).
        pub loop_items: state::Table<(i64, u32), Arc<str>> = 28,
        /// Results of inner instances of long loops, as JSON texts by (body, loop counter), until the body completes.
        pub loop_outputs: state::Table<(i64, u32), Arc<str>> = 59,
        /// Definition keys by deployment and BPMN process id.
        pub processes_by_deployment: state::Table<(i64, Arc<str>), i64> = 29,
        /// The newest definition key by tenant, BPMN process id and version tag.
        pub processes_by_version_tag: state::Table<(Arc<str>, Arc<str>, Arc<str>), i64> = 30,
        /// Buffered messages.
        pub messages: state::Table<i64, MessageRow> = 31,
        /// Buffered messages by (address, message), so first in, first out.
        pub messages_by_address: state::Table<(MessageAddress, i64), ()> = 32,
        /// Ids of buffered messages, by (address, id).
        pub message_ids: state::Table<(MessageAddress, Arc<str>), ()> = 33,
        /// Buffered messages by their deadline.
        pub message_deadlines: state::Queue<(), (i64, i64), ()> = 34,
        /// Which processes a buffered message was correlated to, by (message, BPMN process id).
        pub message_correlations: state::Table<(i64, Arc<str>), ()> = 35,
        /// Waits for messages, where the messages arrive, by (element instance, message name).
        pub message_subscriptions: state::Table<(i64, Arc<str>), MessageSubscriptionRow> = 36,
        /// The element instances that wait and are not being correlated, by address and BPMN process id, oldest first.
        pub waiting_subscriptions: state::Queue<(MessageAddress, Arc<str>), i64, ()> = 37,
        /// How many of them there are, by (address, BPMN process id).
        pub waiting_processes: state::Table<(MessageAddress, Arc<str>), u32> = 38,
        /// Of waits that nothing interrupts and that are being correlated: they take messages meanwhile that are not kept. By
        /// (address, BPMN process id, element instance).
        pub busy_subscriptions: state::Table<(MessageAddress, Arc<str>, i64), ()> = 46,
        /// Waits for messages, where the element instances live, by (element instance, message name).
        pub process_message_subscriptions: state::Table<(i64, Arc<str>), ProcessMessageSubscriptionRow> = 39,
        /// Waits of start events, by (definition, message name).
        pub message_start_subscriptions: state::Table<(i64, Arc<str>), MessageStartEventSubscriptionRow> = 40,
        /// Definitions that messages start, by (tenant, message name, definition).
        pub message_started_processes: state::Table<(Arc<str>, Arc<str>, i64), ()> = 41,
        /// The living instance that a message with a correlation key started, by (tenant, BPMN process id, correlation key).
        pub message_locks: state::Table<(Arc<str>, Arc<str>, Arc<str>), i64> = 42,
        /// The correlation key of the message that started an instance.
        pub message_lock_keys: state::Table<i64, Arc<str>> = 43,
        /// A buffered message up to which all messages of its address were correlated to a process, by (address, BPMN
        /// process id).
        pub message_cursors: state::Table<(MessageAddress, Arc<str>), i64> = 44,
        /// Buffered messages up to there that were rejected and may be correlated again, by ((address, BPMN process id), message).
        pub released_messages: state::Table<((MessageAddress, Arc<str>), i64), ()> = 45,
        /// Runtime instructions of living instances, by (process instance, BPMN id of the element after which); the id
        /// is empty when it happens.
        pub runtime_instructions: state::Table<(i64, Arc<str>), ()> = 60,
        /// How many process instances live, by definition. A banned one is not counted unless another one called it.
        pub living_instances: state::Table<i64, u64> = 61,
        /// The newest version that was deleted and is newer than those that are there, by tenant and BPMN process id.
        pub deleted_versions: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 62,
        /// Definitions that are deleted as soon as nothing uses them.
        pub deleting_processes: state::Table<i64, DeletingProcess> = 63,
        /// Versions of graphs of decisions by key.
        pub decision_requirements: state::Table<i64, DecisionRequirementsRow> = 64,
        /// The newest version of a graph by tenant and id.
        pub latest_decision_requirements: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 65,
        /// Keys of graphs by tenant, id and version.
        pub decision_requirements_versions: state::Table<(Arc<str>, Arc<str>, i32), i64> = 66,
        /// Versions of decisions by key.
        pub decisions: state::Table<i64, DecisionRow> = 67,
        /// The newest version of a decision by tenant and id.
        pub latest_decisions: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 68,
        /// Keys of decisions by tenant, id and version.
        pub decision_versions: state::Table<(Arc<str>, Arc<str>, i32), i64> = 69,
        /// The decisions of a version of a graph, by (graph, decision).
        pub decisions_by_requirements: state::Table<(i64, i64), ()> = 70,
        /// Keys of decisions by deployment and id.
        pub decisions_by_deployment: state::Table<(i64, Arc<str>), i64> = 71,
        /// The newest key of a decision by tenant, id and version tag.
        pub decisions_by_version_tag: state::Table<(Arc<str>, Arc<str>, Arc<str>), i64> = 72,
        /// How often a node began to lead the partition, by its number.
        pub node_starts: state::Table<u32, u64> = 73,
        /// The cluster that the partition belongs to, and by what it routes, since it knows.
        pub cluster: state::Table<(), ClusterRow> = 74,
        /// Messages whose senders wait for the instance that takes them.
        pub awaited_correlations: state::Table<i64, AwaitedCorrelation> = 75,
        /// Living user tasks.
        pub user_tasks: state::Table<i64, UserTaskRow> = 120,
        /// Versions of forms, by key.
        pub forms: state::Table<i64, FormRow> = 90,
        /// The newest version of a form by tenant and id.
        pub latest_forms: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 91,
        /// Keys of forms by tenant, id and version.
        pub form_versions: state::Table<(Arc<str>, Arc<str>, i32), i64> = 92,
        /// Keys of forms by deployment and id.
        pub forms_by_deployment: state::Table<(i64, Arc<str>), i64> = 93,
        /// The newest key of a form by tenant, id and version tag.
        pub forms_by_version_tag: state::Table<(Arc<str>, Arc<str>, Arc<str>), i64> = 94,
        /// The newest version of a form that was deleted and is newer than those that are there, by tenant and id.
        pub deleted_form_versions: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 95,
        /// Versions of resources that are only kept, by key.
        pub resources: state::Table<i64, ResourceRow> = 96,
        /// The newest version of a resource by tenant and id.
        pub latest_resources: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 97,
        /// Keys of resources by tenant, id and version.
        pub resource_versions: state::Table<(Arc<str>, Arc<str>, i32), i64> = 98,
        /// Keys of resources by deployment and id.
        pub resources_by_deployment: state::Table<(i64, Arc<str>), i64> = 99,
        /// The newest key of a resource by tenant, id and version tag.
        pub resources_by_version_tag: state::Table<(Arc<str>, Arc<str>, Arc<str>), i64> = 100,
        /// The newest version of a resource that was deleted and is newer than those that are there, by tenant and id.
        pub deleted_resource_versions: state::Table<(Arc<str>, Arc<str>), LatestVersion> = 101,
        /// Waits for signals by what waits: (element instance or, for start events, definition; subscription).
        pub signal_subscriptions: state::Table<(i64, i64), SignalSubscriptionRow> = 80,
        /// What waits for a signal, by its tenant and name, oldest subscription first.
        pub signal_receivers: state::Queue<(Arc<str>, Arc<str>), i64, i64> = 81,
        /// Waits for conditions by what waits: (element instance or, for start events, definition; subscription).
        pub conditional_subscriptions: state::Table<(i64, i64), ConditionalSubscriptionRow> = 130,
        /// Such waits of element instances, by (process instance, name of a variable that the condition reads, scope, subscription).
        /// The name is empty when it reads none, so that any variable matters.
        pub conditional_variables: state::Table<(i64, Arc<str>, i64, i64), ()> = 131,
        /// The same, each once: (process instance, scope, subscription).
        pub conditional_scopes: state::Table<(i64, i64, i64), ()> = 134,
        /// How many of them there are, by process instance.
        pub conditional_counts: state::Table<i64, u32> = 132,
        /// The definitions of start events that wait for conditions, by (tenant, subscription).
        pub conditional_start_events: state::Table<(Arc<str>, i64), i64> = 133,
        /// What was completed and may be undone, by (process instance, subscription).
        pub compensation_subscriptions: state::Queue<i64, i64, CompensationSubscriptionRow> = 110,
        /// The same by where it was completed: (scope, subscription).
        pub compensation_scopes: state::Queue<i64, i64, ()> = 111,
        /// The same as long as nothing has it undone.
        pub compensable: state::Queue<i64, i64, ()> = 112,
        /// The same by (scope, BPMN id of the activity, subscription).
        pub compensable_activities: state::Queue<(i64, Arc<str>), i64, ()> = 113,
        /// The subscription of the instance of an activity that was completed.
        pub compensation_activities: state::Table<i64, i64> = 114,
        /// What an event has undone and what is not done yet, by (throw event, subscription).
        pub compensation_throw_events: state::Queue<i64, i64, ()> = 115,
        /// The subscription that an instance of a handler undoes.
        pub compensation_handlers: state::Table<i64, i64> = 116,
        /// Where a throw event is that undoes what happened inside of activities.
        pub compensations: state::Table<i64, CompensationRow> = 117,
        /// Living instances that nobody called, by ((tenant, BPMN process id, business id), process instance), if they have a
        /// business id. It has more bytes than other names, and the tenant fewer.
        pub business_ids: state::Table<(BusinessId, i64), ()> = 140,
        /// The listeners of the user tasks of all processes, by configuration: of the current one, and of those by which something
        /// goes that has begun.
        pub global_listeners: state::Table<i64, GlobalListenersRow> = 150,
        /// How many changes of user tasks go by a configuration.
        pub pinned_global_listeners: state::Table<i64, u32> = 151,
    }
}

/// Tenant, BPMN process id and business id.
pub(crate) type BusinessId = (Arc<str>, Arc<str>, Arc<str>);

/// Numbers that every event may move; they are saved with each checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Counters {
    /// Counter of the last key.
    #[n(0)]
    pub key: u64,
    /// Position of the last record or command.
    #[n(1)]
    pub position: u64,
    /// Position in the work queue of the last entry put in.
    #[n(2)]
    pub work_in: u64,
    /// Time of the last batch.
    #[n(3)]
    pub timestamp: Timestamp,
    /// Open incidents.
    #[n(4)]
    pub incidents: u64,
    /// Banned instances; while it is zero, no lookup is made.
    #[n(5)]
    pub banned_instances: u64,
    /// Registered streams; while it is zero, no lookup is made.
    #[n(6)]
    pub job_streams: u64,
    /// Entries in the work queue.
    #[n(7)]
    pub work_entries: u64,
    /// Instances whose result a client waits for; while it is zero, no lookup is made.
    #[n(8)]
    pub awaited_results: u64,
    /// Open timers.
    #[n(9)]
    pub timers: u64,
    /// Buffered messages.
    #[n(10)]
    pub messages: u64,
    /// Open subscriptions to messages that arrive here.
    #[n(11)]
    pub message_subscriptions: u64,
    /// Living instances that a message with a correlation key started; while it is zero, no lookup is made.
    #[n(12)]
    pub message_locks: u64,
    /// Runtime instructions of living instances; while it is zero, no lookup is made.
    #[n(13)]
    pub runtime_instructions: u64,
    /// Definitions that can be deleted because nothing uses them any more; while it is zero, no lookup is made.
    #[n(14)]
    pub unused_processes: u64,
    /// By which rules commands are processed.
    #[n(15)]
    pub feature_level: FeatureLevel,
    /// The life of the partition's data: 1 at first, and one that is higher after a restore or a purge.
    #[n(16)]
    pub incarnation: u64,
    /// Bytes that the variables of a root process instance and of all that it called may have; none for the limit of the
    /// feature level.
    #[n(17)]
    pub root_variable_bytes_max: Option<u64>,
    /// Where the clock of the cluster stands still.
    #[n(18)]
    pub pinned_clock: Option<Timestamp>,
    /// Number of the last record.
    #[n(19)]
    pub records: u64,
    /// By how many partitions messages are routed, as the state's row of the cluster says it; none before that is known.
    #[n(20)]
    pub correlation_partition_count: Option<u16>,
    /// Messages whose senders wait for the instance that takes them; while it is zero, no lookup is made.
    #[n(21)]
    pub awaited_correlations: u64,
    /// Whether no two living instances of a process that nobody called may have the same business id.
    #[n(22)]
    pub business_ids_are_unique: bool,
    /// The configuration of the global listeners; none while there are none, and then no lookup is made.
    #[n(23)]
    pub global_listeners: Option<Key>,
    /// Jobs of polls that are not known to be delivered.
    #[n(24)]
    pub polled_jobs: u64,
}

/// Of saved counters, the number by which the others are understood.
#[derive(Decode)]
pub(crate) struct SavedLevel {
    #[n(15)]
    pub number: u32,
}

impl Counters {
    /// Those of a new partition.
    pub fn new(feature_level: FeatureLevel) -> Self {
        Counters {
            key: 0,
            position: 0,
            work_in: 0,
            timestamp: 0,
            incidents: 0,
            banned_instances: 0,
            job_streams: 0,
            work_entries: 0,
            awaited_results: 0,
            timers: 0,
            messages: 0,
            message_subscriptions: 0,
            message_locks: 0,
            runtime_instructions: 0,
            unused_processes: 0,
            feature_level,
            incarnation: 1,
            root_variable_bytes_max: None,
            pinned_clock: None,
            records: 0,
            correlation_partition_count: None,
            awaited_correlations: 0,
            business_ids_are_unique: false,
            global_listeners: None,
            polled_jobs: 0,
        }
    }
}

/// An event did not fit the state: the handler that emitted it, or the state itself, is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Misfit {
    /// The event, as in "JOB COMPLETED of 2251799813685250".
    pub event: String,
    /// What it did not find as it should be.
    pub reason: String,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Expected event {} to fit the state, but {}.", self.event, self.reason)
    }
}

/// Tables, counters and the compiled definitions that belong to them. Only [`crate::apply`] changes it.
#[derive(Debug)]
pub(crate) struct State {
    pub tables: Tables,
    pub counters: Counters,
    /// Counters at the start of the current command.
    saved_counters: Counters,
    pub definitions: Definitions,
    pub partition: PartitionId,
    /// The first event of the current command that did not fit. The command must not be committed with it.
    pub misfit: Option<Misfit>,
    /// The root process instance that takes more by the event applied last, with what it takes now.
    pub grown: Option<(Key, Usage)>,
    /// Variables of the current command whose scope has not begun.
    pub early_variables: EarlyVariables,
    pub owners_of_work: OwnersOfWork,
}

impl State {
    pub fn new(tables: Tables, counters: Counters, partition: PartitionId) -> Self {
        State {
            tables,
            counters,
            saved_counters: counters,
            definitions: Definitions::default(),
            partition,
            misfit: None,
            grown: None,
            early_variables: EarlyVariables::default(),
            owners_of_work: OwnersOfWork::default(),
        }
    }

    pub fn begin(&mut self) {
        self.tables.begin();
        self.definitions.begin();
        self.saved_counters = self.counters;
        self.early_variables = EarlyVariables::None;
    }

    /// Whether the current command made a key.
    fn is_of_this_command(&self, key: Key) -> bool {
        key.counter() > self.saved_counters.key
    }

    pub fn commit(&mut self) -> Result<(), state::StoreError> {
        self.tables.commit().inspect_err(|_| {
            self.counters = self.saved_counters;
            self.owners_of_work.rolled_back(self.counters.work_in);
        })
    }

    pub fn rollback(&mut self) {
        self.tables.rollback();
        // Keys that were given are given again, perhaps to other definitions.
        self.definitions.rollback();
        self.misfit = None;
        self.counters = self.saved_counters;
        self.owners_of_work.rolled_back(self.counters.work_in);
    }

    /// The rules of the feature level that the partition is at.
    pub fn rules(&self) -> &'static Rules {
        self.counters.feature_level.rules()
    }

    /// The entries of the work queue that belong to a process instance, oldest first.
    pub fn entries_of_work(&self, process_instance: Key) -> Vec<u64> {
        self.owners_of_work.entries(process_instance, &self.tables.work)
    }

    /// Whether anything of a process instance waits in the work queue that was not forgotten by its ban.
    pub fn has_waiting_work(&self, process_instance: Key) -> bool {
        let newest = self.entries_of_work(process_instance).pop();
        newest.is_some_and(|newest| !self.is_forgotten_work(process_instance, newest))
    }

    /// A key that no entity has.
    pub fn next_key(&mut self) -> Key {
        self.counters.key += 1;
        Key::new(self.partition, self.counters.key)
    }

    /// How often a node has begun to lead the partition.
    pub fn node_start(&self, node: u32) -> u64 {
        self.tables.node_starts.get(&node).map_or(0, |start| *start)
    }

    /// The compiled process of an element instance.
    pub fn process(&self, definition: Key) -> Option<Arc<bpmn::model::ExecutableProcess>> {
        self.definitions.process(definition, &self.tables)
    }

    /// A process that was just deployed need not be compiled again.
    pub(crate) fn keep_process(&self, definition: Key, process: bpmn::model::ExecutableProcess) {
        if let Some(row) = self.tables.processes.get(&definition.raw()) {
            self.definitions.keep_process(definition, process, row.resource.len());
        }
    }

    /// The compiled graph of decisions.
    pub fn decision_requirements(&self, key: Key) -> Option<dmn::DecisionRequirementsGraph> {
        self.definitions.decision_requirements(key, &self.tables)
    }

    pub fn element_instance(&self, key: Key) -> Option<Arc<ElementInstance>> {
        self.tables.element_instances.get(&key.raw())
    }

    pub fn job(&self, key: Key) -> Option<Arc<JobRow>> {
        self.tables.jobs.get(&key.raw())
    }

    pub fn user_task(&self, key: Key) -> Option<Arc<UserTaskRow>> {
        self.tables.user_tasks.get(&key.raw())
    }

    /// The global listeners of a configuration, in the order in which they run.
    pub fn global_listeners(&self, configuration: Option<Key>) -> Option<Arc<GlobalListenersRow>> {
        self.tables.global_listeners.get(&configuration?.raw())
    }

    /// The global listeners by which what begins now goes.
    pub fn current_global_listeners(&self) -> Option<Arc<GlobalListenersRow>> {
        self.global_listeners(self.counters.global_listeners)
    }

    /// Compares how many changes of user tasks are counted for each configuration of global listeners with those that there are.
    pub fn audit_global_listeners(&self) -> Result<(), String> {
        let mut found: BTreeMap<i64, u32> = BTreeMap::new();
        let transitions = self.tables.user_tasks.iter().filter_map(|(_, task)| task.transition.as_ref()?.listeners);
        transitions.for_each(|pinned| *found.entry(pinned.raw()).or_default() += 1);
        let counted: BTreeMap<i64, u32> =
            self.tables.pinned_global_listeners.iter().map(|(key, count)| (key, *count)).collect();
        if counted != found {
            return Err(format!(
                "changes of user tasks go by the global listeners {found:?}, but {counted:?} is counted"
            ));
        }
        let current = self.counters.global_listeners.map(Key::raw);
        let kept: BTreeSet<i64> = self.tables.global_listeners.iter().map(|(key, _)| key).collect();
        let used: BTreeSet<i64> = found.into_keys().chain(current).collect();
        if kept == used {
            Ok(())
        } else {
            Err(format!("the global listeners {kept:?} are kept, but {used:?} are used"))
        }
    }

    /// The variables of a scope itself, in the order of their names.
    pub fn variables_of(&self, scope: Key) -> impl Iterator<Item = (Arc<str>, Arc<VariableRow>)> + use<'_> {
        self.tables.variables.prefix(&scope.raw()).map(|((_, name), row)| (name, row))
    }

    /// Whether a scope holds any variable.
    pub fn holds_variables(&self, scope: Key) -> bool {
        self.tables.variables.prefix_keys(&scope.raw()).next().is_some()
    }

    /// The messages of an address that a process has not passed yet, oldest first.
    pub fn messages_behind_cursor(&self, process: &(MessageAddress, Arc<str>)) -> impl Iterator<Item = i64> + use<'_> {
        let from = self.tables.message_cursors.get(process).map_or(i64::MIN, |cursor| cursor.saturating_add(1));
        let range = (process.0.clone(), from)..=(process.0.clone(), i64::MAX);
        self.tables.messages_by_address.range(range).map(|((_, message), _)| message)
    }

    /// Whether the variables of a called process are the result of its call activity, because that lets them through.
    pub fn gives_variables_to_caller(&self, called: &ProcessInstanceValue) -> bool {
        let Some(caller) = self.element_instance(called.parent_element_instance_key) else { return false };
        let Some(process) = self.process(caller.value.process_definition_key) else { return false };
        let element = process.find(&caller.value.element_id, BpmnElementType::CallActivity);
        element.map(|index| process.element(index)).is_some_and(|element| match &element.behavior {
            Behavior::CallActivity(called) => !element.outputs.is_empty() || called.propagate_all_child_variables,
            _ => false,
        })
    }

    /// Whether the definition is being deleted, so that nothing may begin with it.
    pub fn is_deleting(&self, definition: Key) -> bool {
        self.tables.deleting_processes.contains(&definition.raw())
    }

    pub fn is_banned(&self, process_instance: Key) -> bool {
        self.counters.banned_instances > 0 && self.tables.banned_instances.contains(&process_instance.raw())
    }

    /// Whether the ban of a process instance forgot this entry of the work queue.
    pub fn is_forgotten_work(&self, process_instance: Key, sequence: u64) -> bool {
        let ban = self.tables.banned_instances.get(&process_instance.raw());
        ban.is_some_and(|ban| sequence <= ban.work_in)
    }
}

#[cfg(test)]
mod tests {
    use state::TableSet;

    use super::*;
    use crate::limits::Limits;

    /// Tenants have short names: the gateway takes the default one alone.
    const TENANT_BYTES_MAX: usize = 255;

    #[test]
    fn no_key_of_any_table_is_too_long_with_names_at_their_limit() {
        let name = Limits::default().name_bytes_max.max(bpmn::NAME_BYTES_MAX);
        let (mut with_text, mut longest) = (0, 0);
        Tables::in_memory().each(&mut |table| {
            let texts = table.longest_key_bytes(1) - table.longest_key_bytes(0);
            // No entity has more than three names of its own, so the fourth text of a key is the tenant.
            let tenant = if texts > 3 { name - TENANT_BYTES_MAX } else { 0 };
            let bytes = table.longest_key_bytes(name) - tenant;
            assert!(bytes <= state::LONGEST_KEY_BYTES, "a key of table {} can have {bytes} bytes", table.id().name);
            with_text += usize::from(texts > 0);
            longest = longest.max(bytes);
        });
        assert!(with_text > 20 && longest > 3 * name, "the keys with texts are looked at");
    }
}
