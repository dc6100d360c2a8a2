//! Values about jobs.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::{JobOwner, json};
use crate::{AdHocSubProcessActivateElement, Key, Text, Timestamp};

/// One unit of work for a job worker.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobValue {
    /// Type of the job.
    #[n(0)]
    #[serde(rename = "type")]
    pub job_type: Text,
    /// Headers from the model, a JSON object.
    #[n(1)]
    #[serde(serialize_with = "json")]
    pub custom_headers: Text,
    /// Name of the worker that has it.
    #[n(2)]
    pub worker: Text,
    /// Attempts left.
    #[n(3)]
    pub retries: i32,
    /// Milliseconds to wait before the next attempt.
    #[n(4)]
    pub retry_backoff: i64,
    /// When the wait ends; -1 when there is none.
    #[n(5)]
    pub recurring_time: Timestamp,
    /// When the activation ends; -1 when not activated.
    #[n(6)]
    pub deadline: Timestamp,
    /// Milliseconds wanted by a change of the time-out; -1 when there is none.
    #[n(7)]
    pub timeout: i64,
    /// Message of the last failure or error.
    #[n(8)]
    pub error_message: Text,
    /// Code of a thrown error.
    #[n(9)]
    pub error_code: Text,
    /// BPMN id of the element.
    #[n(10)]
    pub element_id: Text,
    #[n(11)]
    pub element_instance_key: Key,
    #[n(12)]
    pub bpmn_process_id: Text,
    /// Version of the definition.
    #[n(13)]
    pub process_definition_version: i32,
    #[n(14)]
    pub process_definition_key: Key,
    /// What the job is for.
    #[n(15)]
    pub job_kind: JobKind,
    /// Attributes changed by an update.
    #[n(16)]
    pub changed_attributes: Vec<Text>,
    /// Tags of the instance.
    #[n(17)]
    pub tags: Vec<Text>,
    #[n(18)]
    pub process_instance_key: Key,
    /// Variables given to or by the worker, a JSON object.
    #[n(19)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(20)]
    pub tenant_id: Text,
    /// What the worker of an ad-hoc sub-process or of a listener of a user task says besides. Exported records give every job one.
    #[n(21)]
    #[serde(skip)]
    pub result: Option<Box<JobResult>>,
    /// Of a listener's job: what it listens to.
    #[n(22)]
    #[cbor(skip_if = "JobListenerEventType::is_unspecified")]
    pub job_listener_event_type: JobListenerEventType,
    /// The business id of the instance; empty when it has none.
    #[n(23)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// What a worker says besides variables: of an ad-hoc sub-process what it does next, of a listener of a user task whether
/// and how the transition happens.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode)]
pub struct JobResult {
    /// Elements of the ad-hoc sub-process that begin.
    #[n(0)]
    pub activate_elements: Vec<AdHocSubProcessActivateElement>,
    /// Whether the ad-hoc sub-process comes to its end.
    #[n(1)]
    pub completion_condition_fulfilled: bool,
    /// Whether what still runs is terminated.
    #[n(2)]
    pub cancel_remaining_instances: bool,
    /// What it is the result of.
    #[n(3)]
    #[cbor(skip_if = "JobResultType::is_ad_hoc_sub_process")]
    pub result_type: JobResultType,
    /// Whether the transition of the user task must not happen.
    #[n(4)]
    #[cbor(skip_if = "std::ops::Not::not")]
    pub denied: bool,
    /// Why.
    #[n(5)]
    #[cbor(skip_if = "str::is_empty")]
    pub denied_reason: Text,
    /// Attributes that the user task is to have instead.
    #[n(6)]
    pub corrections: Option<Box<JobResultCorrections>>,
}

/// What the result of a job is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobResultType {
    /// An ad-hoc sub-process.
    #[n(0)]
    #[default]
    AdHocSubProcess,
    /// A user task.
    #[n(1)]
    UserTask,
}

impl JobResultType {
    fn is_ad_hoc_sub_process(&self) -> bool {
        *self == Self::AdHocSubProcess
    }
}

/// What a listener corrects; of these, only what `corrected_attributes` names.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct JobResultCorrections {
    /// Who is to do it; empty for nobody.
    #[n(0)]
    pub assignee: Text,
    /// As in user tasks.
    #[n(1)]
    pub due_date: Text,
    /// As in user tasks.
    #[n(2)]
    pub follow_up_date: Text,
    /// Who may do it.
    #[n(3)]
    pub candidate_users_list: Vec<Text>,
    /// Groups whose members may do it.
    #[n(4)]
    pub candidate_groups_list: Vec<Text>,
    /// From 0 to 100; -1 when it stays.
    #[n(5)]
    pub priority: i32,
    /// The attributes by their names in the record schema.
    #[n(6)]
    pub corrected_attributes: Vec<Text>,
}

impl Default for JobResultCorrections {
    fn default() -> Self {
        JobResultCorrections {
            assignee: Text::default(),
            due_date: Text::default(),
            follow_up_date: Text::default(),
            candidate_users_list: Vec::new(),
            candidate_groups_list: Vec::new(),
            priority: -1,
            corrected_attributes: Vec::new(),
        }
    }
}

impl JobValue {
    /// About the bytes of the job in a message to a worker, never fewer. Credit of streams is counted in them.
    pub fn message_bytes(&self) -> usize {
        /// Numbers, and the tags and lengths of fields.
        const FIXED_BYTES: usize = 200;
        let texts = [
            &self.job_type,
            &self.custom_headers,
            &self.worker,
            &self.element_id,
            &self.bpmn_process_id,
            &self.variables,
            &self.tenant_id,
            &self.business_id,
        ];
        let tags: usize = self.tags.iter().map(|tag| tag.len() + 2).sum();
        FIXED_BYTES + tags + texts.iter().map(|text| text.len()).sum::<usize>()
    }
}

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobKind {
    /// The work of an element.
    #[n(0)]
    #[default]
    BpmnElement,
    /// Something to do before an element begins or after its work is done.
    #[n(1)]
    ExecutionListener,
    /// Something to do when a user task changes.
    #[n(2)]
    TaskListener,
    /// The choice of what an ad-hoc sub-process does next.
    #[n(3)]
    AdHocSubProcess,
}

impl JobKind {
    /// As clients know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BpmnElement => "BPMN_ELEMENT",
            Self::ExecutionListener => "EXECUTION_LISTENER",
            Self::TaskListener => "TASK_LISTENER",
            Self::AdHocSubProcess => "AD_HOC_SUB_PROCESS",
        }
    }
}

/// What a listener listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobListenerEventType {
    /// The job is none of a listener.
    #[n(0)]
    #[default]
    Unspecified,
    /// An element begins.
    #[n(1)]
    Start,
    /// The work of an element is done.
    #[n(2)]
    End,
    /// A user task is created.
    #[n(3)]
    Creating,
    /// A user task is assigned.
    #[n(4)]
    Assigning,
    /// Attributes of a user task change.
    #[n(5)]
    Updating,
    /// A user task is completed.
    #[n(6)]
    Completing,
    /// A user task is cancelled.
    #[n(7)]
    Canceling,
}

impl JobListenerEventType {
    /// Whether the job is none of a listener.
    pub fn is_unspecified(&self) -> bool {
        *self == Self::Unspecified
    }

    /// As clients know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::Start => "START",
            Self::End => "END",
            Self::Creating => "CREATING",
            Self::Assigning => "ASSIGNING",
            Self::Updating => "UPDATING",
            Self::Completing => "COMPLETING",
            Self::Canceling => "CANCELING",
        }
    }
}

/// Jobs activated together.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobBatchValue {
    /// Type of the jobs.
    #[n(0)]
    #[serde(rename = "type")]
    pub job_type: Text,
    /// Name of the worker.
    #[n(1)]
    pub worker: Text,
    /// Milliseconds until the activation ends.
    #[n(2)]
    pub timeout: i64,
    /// How many are wanted.
    #[n(3)]
    pub max_jobs_to_activate: i32,
    /// Keys of the activated jobs.
    #[n(4)]
    pub job_keys: Vec<Key>,
    /// The activated jobs, in the order of the keys.
    #[n(5)]
    #[serde(serialize_with = "super::complete::jobs")]
    pub jobs: Vec<JobValue>,
    /// Whether more would have been there but did not fit a message.
    #[n(6)]
    pub truncated: bool,
    /// Tenants whose jobs are wanted.
    #[n(7)]
    pub tenant_ids: Vec<Text>,
    /// Variables wanted; empty for all.
    #[n(8)]
    pub fetch_variables: Vec<Text>,
    /// For whom they were activated, with the place of the first one; none in commands, and when nobody waits for the answer.
    #[n(9)]
    #[serde(skip)]
    pub owner: Option<JobOwner>,
}

/// A worker's open stream, as the partitions know it.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStreamValue {
    #[n(0)]
    pub stream: StreamId,
    /// Type of the jobs.
    #[n(1)]
    #[serde(rename = "type")]
    pub job_type: Text,
    /// Name of the worker.
    #[n(2)]
    pub worker: Text,
    /// Milliseconds until an activation ends.
    #[n(3)]
    pub timeout: i64,
    /// Variables wanted; empty for all.
    #[n(4)]
    pub fetch_variables: Vec<Text>,
    /// Tenants whose jobs are wanted.
    #[n(5)]
    pub tenant_ids: Vec<Text>,
    /// What the stream may have taken in all, raised with GRANT. A total, so that a grant may be lost or come twice.
    #[n(7)]
    pub granted: JobAmount,
    /// What was pushed to it in all: the last push has the number `used.jobs`.
    #[n(8)]
    pub used: JobAmount,
    /// Number of the last push up to which its connection took all jobs. Raised with GRANT. REMOVE gives back what was pushed
    /// after it; a stream that is lost has nothing to add to what the partition knows, so this is 0.
    #[n(9)]
    pub delivered: u64,
}

impl JobStreamValue {
    /// Whether both want the same jobs.
    pub fn wants_the_same(&self, other: &JobStreamValue) -> bool {
        self.job_type == other.job_type
            && self.worker == other.worker
            && self.timeout == other.timeout
            && self.fetch_variables == other.fetch_variables
            && self.tenant_ids == other.tenant_ids
    }

    /// Whether the stream may take a job. With any byte left it takes one of any size.
    pub fn has_credit(&self) -> bool {
        self.used.jobs < self.granted.jobs && self.used.bytes < self.granted.bytes
    }
}

/// Some jobs, and about the bytes that they take in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
pub struct JobAmount {
    /// How many.
    #[n(0)]
    pub jobs: u64,
    /// Their bytes.
    #[n(1)]
    pub bytes: u64,
}

impl JobAmount {
    /// One job of these bytes.
    pub fn of(job: &JobValue) -> Self {
        JobAmount { jobs: 1, bytes: job.message_bytes() as u64 }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: JobAmount) -> JobAmount {
        JobAmount { jobs: self.jobs.saturating_add(other.jobs), bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// What is left without the other; none where that has more.
    #[must_use]
    pub fn minus(self, other: JobAmount) -> JobAmount {
        JobAmount { jobs: self.jobs.saturating_sub(other.jobs), bytes: self.bytes.saturating_sub(other.bytes) }
    }

    /// The larger of each.
    #[must_use]
    pub fn max(self, other: JobAmount) -> JobAmount {
        JobAmount { jobs: self.jobs.max(other.jobs), bytes: self.bytes.max(other.bytes) }
    }
}

/// A worker's stream: the node whose gateway holds the connection, and a number that the gateway gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, Serialize)]
pub struct StreamId {
    /// Node of the gateway.
    #[n(0)]
    pub node: u32,
    /// Number of the stream at this gateway, with its node's [life](crate::life_of) above. No number is used twice.
    #[n(1)]
    pub number: u64,
}
