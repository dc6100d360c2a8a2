//! Values about signals.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::json;
use crate::{Key, Text};

/// A signal that is broadcast.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalValue {
    #[n(0)]
    pub signal_name: Text,
    /// Variables for all that the signal reaches, a JSON object.
    #[n(1)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(2)]
    pub tenant_id: Text,
    /// Where a broadcast goes on that reaches many; none where it begins.
    #[n(3)]
    #[serde(skip)]
    pub rest: Option<SignalRest>,
}

/// The subscriptions that a broadcast has not reached yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SignalRest {
    /// The last subscription that it reached, or none.
    #[n(0)]
    pub after: Key,
    /// The last key that there was when the signal came: what was opened later does not get it.
    #[n(1)]
    pub up_to: Key,
    /// Whether it also starts instances: only one of the partitions does.
    #[n(2)]
    pub starts_instances: bool,
}

/// The wait of an element instance, or of a start event of a process, for a signal.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalSubscriptionValue {
    #[n(0)]
    pub process_definition_key: Key,
    #[n(1)]
    pub bpmn_process_id: Text,
    /// BPMN id of the event.
    #[n(2)]
    pub catch_event_id: Text,
    /// The element instance that waits; none for a start event of a process.
    #[n(3)]
    pub catch_event_instance_key: Key,
    #[n(4)]
    pub signal_name: Text,
    #[n(5)]
    pub tenant_id: Text,
}
