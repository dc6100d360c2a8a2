//! Values about conditions that events wait for.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::json;
use crate::{Key, Text};

/// The wait of an element instance, or of a start event of a process, for a condition.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalSubscriptionValue {
    /// The element instance whose variables the condition sees; none for a start event of a process.
    #[n(0)]
    pub scope_key: Key,
    /// The same.
    #[n(1)]
    pub element_instance_key: Key,
    #[n(2)]
    pub process_instance_key: Key,
    #[n(3)]
    pub process_definition_key: Key,
    #[n(4)]
    pub bpmn_process_id: Text,
    /// BPMN id of the event.
    #[n(5)]
    pub catch_event_id: Text,
    #[n(6)]
    pub interrupting: bool,
    /// The expression with its `=`.
    #[n(7)]
    pub condition: Text,
    /// The variables that the condition reads; any, if it reads none.
    #[n(8)]
    pub variable_names: Vec<Text>,
    /// What must happen to one of them, `create` or `update`; either, if nothing is said.
    #[n(9)]
    pub variable_events: Vec<Text>,
    #[n(10)]
    pub tenant_id: Text,
    /// What has changed, where more conditions may see it than one command looks at. Without it, the subscription itself is
    /// looked at.
    #[n(11)]
    #[serde(skip)]
    pub changes: Vec<ConditionalChange>,
    /// The subscription that was looked at last for these changes.
    #[n(12)]
    #[serde(skip)]
    pub looked_at: Option<ConditionalPlace>,
    /// The last key when the variables changed: subscriptions with higher ones were opened later, and saw the changes then.
    #[n(13)]
    #[serde(skip)]
    pub until: Option<Key>,
}

/// Variables of one scope to which the same has happened.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ConditionalChange {
    #[n(0)]
    pub scope_key: Key,
    /// What has happened, `create` or `update`.
    #[n(1)]
    pub event: Text,
    /// Their names, each once and in order.
    #[n(2)]
    pub names: Vec<Text>,
}

/// Where a subscription is in the order in which they are looked at: outer scopes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct ConditionalPlace {
    #[n(0)]
    pub scope_key: Key,
    #[n(1)]
    pub subscription_key: Key,
}

/// Which processes start because the condition of a start event holds for variables.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalEvaluationValue {
    /// The only definition whose start events are looked at; none for those of all.
    #[n(0)]
    pub process_definition_key: Key,
    /// Variables that the conditions see and the instances get, a JSON object.
    #[n(1)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(2)]
    pub tenant_id: Text,
    /// What was started, in the order of the subscriptions.
    #[n(3)]
    pub started_process_instances: Vec<ConditionalStartedProcessInstance>,
}

/// An instance that a condition started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalStartedProcessInstance {
    #[n(0)]
    pub process_definition_key: Key,
    #[n(1)]
    pub process_instance_key: Key,
}
