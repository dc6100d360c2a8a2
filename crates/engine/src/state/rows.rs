//! What the tables hold.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use protocol::{
    BpmnElementType, ClusterValue, Command, CommandDistributionValue, CompensationSubscriptionValue,
    ConditionalSubscriptionValue, DecisionRequirementsMetadata, DecisionValue, FormMetadata, GlobalListenerValue,
    IncidentValue, JobIntent, JobOwner, JobStreamValue, JobValue, Key, MessageCorrelationValue,
    MessageStartEventSubscriptionValue, MessageSubscriptionValue, MessageValue, ProcessInstanceValue,
    ProcessMessageSubscriptionValue, ProcessMetadata, Request, ResourceMetadata, SignalSubscriptionValue, StreamId,
    Text, TimerValue, Timestamp, UserTaskValue, VariableDocumentValue,
};

use super::Usage;

/// Where an element instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum Lifecycle {
    #[n(0)]
    Activating,
    #[n(1)]
    Activated,
    #[n(2)]
    Completing,
    #[n(3)]
    Terminating,
}

impl Lifecycle {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activating => "ELEMENT_ACTIVATING",
            Self::Activated => "ELEMENT_ACTIVATED",
            Self::Completing => "ELEMENT_COMPLETING",
            Self::Terminating => "ELEMENT_TERMINATING",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ElementInstance {
    #[n(0)]
    pub lifecycle: Lifecycle,
    #[n(1)]
    #[cbor(with = "protocol::shared")]
    pub value: Arc<ProcessInstanceValue>,
    /// Living children.
    #[n(2)]
    pub children: u32,
    /// Sequence flows taken inside this scope whose target has not been entered.
    #[n(3)]
    pub tokens: u32,
    /// The job that does its work.
    #[n(4)]
    pub job: Key,
    /// The incident that stops it (not one of its job).
    #[n(5)]
    pub incident: Key,
    /// Whether variables live in this scope, or may.
    #[n(6)]
    pub has_variables: bool,
    /// What the job's worker gave back, until the element completes.
    #[n(7)]
    pub result: Option<Text>,
    /// The element that interrupted this scope: an event sub-process or a terminate end event. Nothing else begins in it.
    #[n(8)]
    pub interrupted_by: Option<Text>,
    /// Which events may still trigger something here.
    #[n(9)]
    pub gate: EventGate,
    /// Whether timers or message subscriptions were opened for it.
    #[n(10)]
    pub has_subscriptions: bool,
    /// Of a call activity: the instance that it called.
    #[n(11)]
    pub called_instance: Key,
    /// Of a process: how many calls led to it.
    #[n(12)]
    pub depth: u32,
    /// Of an inner instance: its number among its siblings, from 1; of a multi-instance body: the last number given.
    #[n(13)]
    pub loop_counter: u32,
    /// Of a multi-instance body: inner instances that completed.
    #[n(14)]
    pub completed_children: u32,
    /// Of a multi-instance body: inner instances that were terminated.
    #[n(15)]
    pub terminated_children: u32,
    /// Of a multi-instance body: how many items there are.
    #[n(16)]
    pub items: u32,
    /// Whether triggers may wait in it.
    #[n(17)]
    pub has_triggers: bool,
    /// Of a multi-instance body or an ad-hoc sub-process: bytes of its results that are not in its output collection yet.
    #[n(18)]
    pub output_bytes: u64,
    /// Of a called process: the root process instance of the calls that led to it.
    #[n(19)]
    pub root: Key,
    /// Of a root process: what it and all that it called take together.
    #[n(20)]
    pub usage: Usage,
    /// The user task that does its work.
    #[n(21)]
    pub user_task: Key,
    /// Of an ad-hoc sub-process: whether its worker said that nothing further begins.
    #[n(22)]
    pub is_completion_condition_fulfilled: bool,
    /// When it began.
    #[n(23)]
    pub begun: Timestamp,
    /// While it begins or completes: execution listeners for that whose jobs were completed.
    #[n(24)]
    pub listeners_done: u32,
    /// Of the tokens, those that wait at parallel joins and that elements took which a modification activated. They still
    /// count at their joins, but no longer hold this scope open.
    #[n(25)]
    pub tokens_passed_on: u32,
    /// Of a multi-instance body or an ad-hoc sub-process: how many results are not in its output collection yet.
    #[n(26)]
    pub outputs: u32,
}

impl ElementInstance {
    /// Whether this is a process that no other one called.
    #[inline]
    pub fn is_root(&self) -> bool {
        self.value.bpmn_element_type == BpmnElementType::Process && self.root.is_none()
    }

    /// Whether something lives in this scope, or a token is on its way or waits that holds the scope open.
    pub fn is_held_open(&self) -> bool {
        self.children > 0 || self.tokens > self.tokens_passed_on
    }

    /// Whether this is one of the instances that a multi-instance body runs.
    pub fn is_inner_instance(&self) -> bool {
        self.loop_counter > 0 && self.value.bpmn_element_type != BpmnElementType::MultiInstanceBody
    }
}

/// Which events may still trigger something at an element instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum EventGate {
    /// All.
    #[n(0)]
    #[default]
    Open,
    /// Boundary events only: an interrupting event sub-process was triggered.
    #[n(1)]
    BoundaryOnly,
    /// None: an interrupting boundary event was triggered.
    #[n(2)]
    Closed,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct TimerRow {
    #[n(0)]
    pub value: TimerValue,
}

/// A trigger whose element has not begun yet.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct EventTriggerRow {
    #[n(0)]
    pub target_element_id: Text,
    /// JSON text; empty when the event brings none.
    #[n(1)]
    pub variables: Text,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct AwaitedResult {
    #[n(0)]
    pub request: Request,
    /// The variables wanted; empty for all.
    #[n(1)]
    pub fetch_variables: Vec<Text>,
}

/// A message whose sender waits for the instance that takes it.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct AwaitedCorrelation {
    /// What is told, without the variables.
    #[n(0)]
    pub value: MessageCorrelationValue,
    /// How many element instances it is on its way to.
    #[n(1)]
    pub under_way: u32,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct VariableRow {
    #[n(0)]
    pub key: Key,
    /// JSON text.
    #[n(1)]
    pub value: Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum JobState {
    #[n(0)]
    Activatable,
    #[n(1)]
    Activated,
    #[n(2)]
    Failed,
    #[n(3)]
    ErrorThrown,
}

impl JobState {
    /// The name in rejections.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activatable => "ACTIVATABLE",
            Self::Activated => "ACTIVATED",
            Self::Failed => "FAILED",
            Self::ErrorThrown => "ERROR_THROWN",
        }
    }
}

/// What the record of a thrown error has instead of the element when nothing catches it, as exporters know it.
pub(crate) const NO_CATCH_EVENT_FOUND: &str = "NO_CATCH_EVENT_FOUND";

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct JobRow {
    #[n(0)]
    pub state: JobState,
    #[n(1)]
    #[cbor(with = "protocol::shared")]
    pub value: Arc<JobValue>,
    /// The incident that stops it.
    #[n(2)]
    pub incident: Key,
    /// When it was created.
    #[n(3)]
    pub created: Timestamp,
    /// When it changed last; none when it did not.
    #[n(4)]
    pub changed: Option<Timestamp>,
    /// Of the events that say how a job is, the last one after its creation; none when there was none.
    #[n(5)]
    pub last_event: Option<JobIntent>,
    /// For whom it is activated; none when it is not, and when nobody waited for the answer.
    #[n(6)]
    pub owner: Option<JobOwner>,
}

/// Where a user task is in its life. It rests between commands, unless it waits for its listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum UserTaskState {
    #[n(0)]
    Creating,
    #[n(1)]
    Created,
    #[n(2)]
    Assigning,
    #[n(3)]
    Claiming,
    #[n(4)]
    Updating,
    #[n(5)]
    Completing,
    #[n(6)]
    Canceling,
}

impl UserTaskState {
    /// The name in rejections.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Created => "CREATED",
            Self::Assigning => "ASSIGNING",
            Self::Claiming => "CLAIMING",
            Self::Updating => "UPDATING",
            Self::Completing => "COMPLETING",
            Self::Canceling => "CANCELING",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct UserTaskRow {
    #[n(0)]
    pub state: UserTaskState,
    /// As it rests, or did last.
    #[n(1)]
    pub value: UserTaskValue,
    /// The change that is under way.
    #[n(2)]
    pub transition: Option<Box<UserTaskTransition>>,
    /// The variables that are about to be set in its scope.
    #[n(3)]
    pub variable_update: Option<Box<VariableUpdate>>,
}

/// A change of a user task that has begun.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct UserTaskTransition {
    /// The task as it is to be, with the action and the variables that come with the change. Its changed attributes are those
    /// that it began with.
    #[n(0)]
    pub value: UserTaskValue,
    /// Who gets it once it is created.
    #[n(1)]
    pub initial_assignee: Text,
    /// Who waits for the change.
    #[n(2)]
    pub awaiting: Option<Request>,
    /// How many of its listeners are done.
    #[n(3)]
    pub listeners_done: u32,
    /// The configuration of global listeners that it goes by; none when there were none.
    #[n(4)]
    pub listeners: Option<Key>,
}

/// The global listeners of a configuration.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct GlobalListenersRow {
    /// In the order in which they run.
    #[n(0)]
    pub listeners: Vec<GlobalListenerValue>,
}

impl GlobalListenersRow {
    /// Those with a higher priority run first, then by their ids.
    pub fn of(mut listeners: Vec<GlobalListenerValue>) -> Self {
        listeners.sort_by(|one, other| other.priority.cmp(&one.priority).then_with(|| one.id.cmp(&other.id)));
        GlobalListenersRow { listeners }
    }
}

/// The wish to set variables in the scope of a user task.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct VariableUpdate {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub value: VariableDocumentValue,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct IncidentRow {
    #[n(0)]
    pub value: IncidentValue,
    /// When it was created.
    #[n(1)]
    pub created: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ProcessRow {
    #[n(0)]
    pub metadata: ProcessMetadata,
    #[n(1)]
    #[cbor(with = "minicbor::bytes")]
    pub resource: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct LatestVersion {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub version: i32,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct DecisionRequirementsRow {
    #[n(0)]
    pub metadata: DecisionRequirementsMetadata,
    #[n(1)]
    #[cbor(with = "minicbor::bytes")]
    pub resource: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct DecisionRow {
    #[n(0)]
    pub value: DecisionValue,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct FormRow {
    #[n(0)]
    pub metadata: FormMetadata,
    #[n(1)]
    #[cbor(with = "minicbor::bytes")]
    pub resource: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ResourceRow {
    #[n(0)]
    pub metadata: ResourceMetadata,
    #[n(1)]
    pub resource: Text,
}

/// A definition that goes as soon as nothing uses it.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct DeletingProcess {
    /// The deletion.
    #[n(0)]
    pub deletion: Key,
    /// Whether it was used before but no longer is.
    #[n(1)]
    pub is_unused: bool,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct JobStreamRow {
    /// As registered, with what was granted and used since.
    #[n(0)]
    pub value: JobStreamValue,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ServedStream {
    #[n(0)]
    pub stream: StreamId,
}

/// A process instance that is banned.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct BanRow {
    /// The newest entry of the work queue at that time: the ban forgot what waited of the instance.
    #[n(0)]
    pub work_in: u64,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct WorkRow {
    #[n(0)]
    pub process_instance_key: Key,
    #[n(1)]
    pub commands: Vec<Command>,
    #[n(2)]
    pub rounds: u32,
    #[n(3)]
    pub is_part: bool,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct OutboxRow {
    #[n(0)]
    pub command: Command,
    #[n(1)]
    pub distribution: Key,
}

/// How far the commands of another partition were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct InboxRow {
    /// The incarnation of the sender.
    #[n(0)]
    pub incarnation: u64,
    /// The last sequence.
    #[n(1)]
    pub sequence: u64,
    /// This partition was restored since: what comes next is what the sender still keeps.
    #[n(2)]
    pub awaits_oldest: bool,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct DistributionRow {
    #[n(0)]
    pub value: CommandDistributionValue,
}

/// What a message and those who wait for it have in common: tenant, name, correlation key.
pub(crate) type MessageAddress = (Arc<str>, Arc<str>, Arc<str>);

/// Where messages and those who wait for them meet.
pub(crate) fn message_address(tenant_id: &Text, message_name: &Text, correlation_key: &Text) -> MessageAddress {
    (tenant_id.shared().clone(), message_name.shared().clone(), correlation_key.shared().clone())
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct MessageRow {
    #[n(0)]
    pub value: MessageValue,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct MessageSubscriptionRow {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub value: MessageSubscriptionValue,
    /// Whether a message is on its way to the element instance; it gets no other one until that is answered.
    #[n(2)]
    pub is_correlating: bool,
}

/// Where the wait of an element instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum SubscriptionState {
    #[n(0)]
    Opening,
    #[n(1)]
    Open,
    #[n(2)]
    Closing,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ProcessMessageSubscriptionRow {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub value: ProcessMessageSubscriptionValue,
    #[n(2)]
    pub state: SubscriptionState,
    /// When it changed last.
    #[n(3)]
    pub changed: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct MessageStartEventSubscriptionRow {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub value: MessageStartEventSubscriptionValue,
    /// When it was opened.
    #[n(2)]
    pub created: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct SignalSubscriptionRow {
    #[n(0)]
    pub value: SignalSubscriptionValue,
}

/// Stands for every variable among the names of those that a condition reads.
pub(crate) const ANY_VARIABLE: &str = "";

/// The variables whose changes are looked for, each once. A longer name than a variable can have changes never.
pub(crate) fn watched_names(value: &ConditionalSubscriptionValue) -> Vec<Arc<str>> {
    if value.variable_names.is_empty() {
        return vec![Arc::from(ANY_VARIABLE)];
    }
    let names = value.variable_names.iter().filter(|name| crate::name::key_bytes(name) <= bpmn::NAME_BYTES_MAX);
    names.map(Text::shared).cloned().collect()
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ConditionalSubscriptionRow {
    #[n(0)]
    pub value: ConditionalSubscriptionValue,
}

/// The cluster, and by which partitions is routed.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ClusterRow {
    #[n(0)]
    pub value: ClusterValue,
}

/// An activity that was completed and may be undone.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct CompensationSubscriptionRow {
    #[n(0)]
    pub value: CompensationSubscriptionValue,
    /// The position of the record that created it.
    #[n(1)]
    pub created: u64,
}

/// Where a compensation throw event is.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct CompensationRow {
    /// The instances of activities in which it undoes what happened, the innermost last.
    #[n(0)]
    pub scopes: Vec<Key>,
    /// The position of the record with which its work began.
    #[n(1)]
    pub begun: u64,
}

state::cbor_values!(
    CompensationRow => |row| 9 + row.scopes.len() * 9,
    CompensationSubscriptionRow => |_| 200,
    ClusterRow => |row| 50 + row.value.active_partitions.len() * 3,
    ElementInstance => |row| 200 + row.result.as_ref().map_or(0, |result| result.len()),
    TimerRow => |_| 150,
    EventTriggerRow => |row| row.variables.len(),
    VariableRow => |row| row.value.len(),
    JobRow => |row| 300 + row.value.variables.len(),
    UserTaskRow => |row| {
        let transition = row.transition.as_ref().map_or(0, |transition| crate::payload_bytes::user_task_bytes(&transition.value));
        let variables = row.variable_update.as_ref().map_or(0, |update| update.value.variables.len());
        300 + crate::payload_bytes::user_task_bytes(&row.value) + transition + variables
    },
    GlobalListenersRow => |row| row.listeners.iter().map(crate::payload_bytes::listener_bytes).sum(),
    IncidentRow => |row| row.value.error_message.len(),
    ProcessRow => |row| row.resource.len(),
    DecisionRequirementsRow => |row| row.resource.len(),
    DecisionRow => |_| 200,
    FormRow => |row| 200 + row.resource.len(),
    ResourceRow => |row| 200 + row.resource.len(),
    AwaitedCorrelation,
    AwaitedResult,
    BanRow,
    LatestVersion,
    InboxRow,
    DeletingProcess,
    JobStreamRow,
    ServedStream,
    WorkRow => |row| row.commands.len() * 300,
    OutboxRow => |_| 300,
    DistributionRow => |_| 300,
    MessageRow => |row| 200 + row.value.variables.len(),
    MessageSubscriptionRow => |row| 300 + row.value.variables.len(),
    ProcessMessageSubscriptionRow => |row| 300 + row.value.variables.len(),
    MessageStartEventSubscriptionRow => |_| 200,
    SignalSubscriptionRow => |_| 200,
    ConditionalSubscriptionRow => |row| 200 + row.value.condition.len(),
);

#[cfg(test)]
mod tests {
    use super::*;

    /// An optional field whose variant is not known would be read as nothing if its number were not passed by then.
    #[test]
    fn an_event_of_a_job_that_only_a_later_version_knows_is_an_error() {
        let row = JobRow {
            state: JobState::Activatable,
            value: Arc::default(),
            incident: Key::NONE,
            created: 0,
            changed: None,
            last_event: Some(JobIntent::TimedOut),
            owner: None,
        };
        let bytes = protocol::encode_to_vec(&row);
        assert_eq!(protocol::decode::<JobRow>(&bytes).expect("it is whole").last_event, row.last_event);
        let (last, before) = bytes.split_last().expect("it is the last field");
        assert!(*last < 24, "one byte");
        for unknown in [&[23][..], &[0x18, 119], &[0x19, 0x7f, 0xf1]] {
            let changed = [before, unknown].concat();
            assert!(protocol::decode::<JobRow>(&changed).is_err(), "{unknown:?}");
        }
    }
}
