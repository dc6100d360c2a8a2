//! What the tables hold.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use protocol::{
    BpmnElementType, ClusterValue, Command, CommandDistributionValue, DecisionRequirementsMetadata, DecisionValue,
    IncidentValue, JobStreamValue, JobValue, Key, MessageStartEventSubscriptionValue, MessageSubscriptionValue,
    MessageValue, ProcessInstanceValue, ProcessMessageSubscriptionValue, ProcessMetadata, Request, StreamId, Text,
    TimerValue,
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
    #[cbor(default)]
    pub interrupted_by: Option<Text>,
    /// Which events may still trigger something here.
    #[n(9)]
    #[cbor(default)]
    pub gate: EventGate,
    /// Whether timers or message subscriptions were opened for it.
    #[n(10)]
    #[cbor(default)]
    pub has_subscriptions: bool,
    /// Of a call activity: the instance that it called.
    #[n(11)]
    #[cbor(default)]
    pub called_instance: Key,
    /// Of a process: how many calls led to it.
    #[n(12)]
    #[cbor(default)]
    pub depth: u32,
    /// Of an inner instance: its number among its siblings, from 1; of a multi-instance body: the last number given.
    #[n(13)]
    #[cbor(default)]
    pub loop_counter: u32,
    /// Of a multi-instance body: inner instances that completed.
    #[n(14)]
    #[cbor(default)]
    pub completed_children: u32,
    /// Of a multi-instance body: inner instances that were terminated.
    #[n(15)]
    #[cbor(default)]
    pub terminated_children: u32,
    /// Of a multi-instance body: how many items there are.
    #[n(16)]
    #[cbor(default)]
    pub items: u32,
    /// Whether triggers may wait in it.
    #[n(17)]
    #[cbor(default)]
    pub has_triggers: bool,
    /// Of a multi-instance body: bytes of its results that are not in its output collection yet.
    #[n(18)]
    #[cbor(default)]
    pub output_bytes: u64,
    /// Of a called process: the root process instance of the calls that led to it.
    #[n(19)]
    #[cbor(default)]
    pub root: Key,
    /// Of a root process: what it and all that it called take together.
    #[n(20)]
    #[cbor(default)]
    pub usage: Usage,
}

impl ElementInstance {
    /// Whether this is a process that no other one called.
    #[inline]
    pub fn is_root(&self) -> bool {
        self.value.bpmn_element_type == BpmnElementType::Process && self.root.is_none()
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
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct IncidentRow {
    #[n(0)]
    pub value: IncidentValue,
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

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct WorkRow {
    #[n(0)]
    pub process_instance_key: Key,
    #[n(1)]
    pub commands: Vec<Command>,
    #[n(2)]
    #[cbor(default)]
    pub rounds: u32,
    #[n(3)]
    #[cbor(default)]
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
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct MessageStartEventSubscriptionRow {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub value: MessageStartEventSubscriptionValue,
}

/// The cluster, and by which partitions is routed.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct ClusterRow {
    #[n(0)]
    pub value: ClusterValue,
}

state::cbor_values!(
    ClusterRow => |row| 50 + row.value.active_partitions.len() * 3,
    ElementInstance => |row| 200 + row.result.as_ref().map_or(0, |result| result.len()),
    TimerRow => |_| 150,
    EventTriggerRow => |row| row.variables.len(),
    VariableRow => |row| row.value.len(),
    JobRow => |row| 300 + row.value.variables.len(),
    IncidentRow => |row| row.value.error_message.len(),
    ProcessRow => |row| row.resource.len(),
    DecisionRequirementsRow => |row| row.resource.len(),
    DecisionRow => |_| 200,
    AwaitedResult,
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
);
