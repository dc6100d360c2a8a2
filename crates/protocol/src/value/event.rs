//! Values about events: timers, messages, escalations, and the triggers of catch events.

use minicbor::{Decode, Encode};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::json;
use crate::{Key, Request, Text, Timestamp};

/// A timer.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimerValue {
    #[n(0)]
    pub process_definition_key: Key,
    /// The element instance that waits; none for a start event of a process.
    #[n(1)]
    pub element_instance_key: Key,
    /// The instance; at a start event the one that was started, once it is.
    #[n(2)]
    pub process_instance_key: Key,
    /// When it is due.
    #[n(3)]
    pub due_date: Timestamp,
    /// BPMN id of the catch event.
    #[n(4)]
    pub target_element_id: Text,
    /// How often it is due, this time included; -1 for ever.
    #[n(5)]
    pub repetitions: i32,
    #[n(6)]
    pub tenant_id: Text,
}

/// A message that was published.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageValue {
    #[n(0)]
    pub name: Text,
    /// Correlation key; may be empty.
    #[n(1)]
    pub correlation_key: Text,
    /// Given by the publisher to have the message only once; empty for none.
    #[n(2)]
    pub message_id: Text,
    /// How many milliseconds it is kept.
    #[n(3)]
    pub time_to_live: i64,
    /// When it expires.
    #[n(4)]
    pub deadline: Timestamp,
    /// Variables for the instance that it is correlated to, a JSON object.
    #[n(5)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(6)]
    pub tenant_id: Text,
}

/// A message whose sender waits until it is known which instance takes it.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageCorrelationValue {
    #[n(0)]
    pub name: Text,
    /// Correlation key; may be empty.
    #[n(1)]
    pub correlation_key: Text,
    /// The message; none in the command.
    #[n(2)]
    pub message_key: Key,
    /// The instance that took it first; none before it is correlated.
    #[n(3)]
    pub process_instance_key: Key,
    /// Variables for the instances that it is correlated to, a JSON object.
    #[n(4)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(5)]
    pub tenant_id: Text,
    /// Who waits for the instance; only in the command and in the event that begins it.
    #[n(6)]
    #[serde(flatten, serialize_with = "who_waits")]
    pub awaiting: Option<Request>,
}

fn is_none(key: &Key) -> bool {
    key.is_none()
}

/// Exported records name a request by two numbers; -1 for none.
fn who_waits<S: Serializer>(request: &Option<Request>, serializer: S) -> Result<S::Ok, S::Error> {
    let (id, stream) = request.map_or((-1, -1), |request| (i128::from(request.number), i64::from(request.node)));
    let mut fields = serializer.serialize_map(Some(2))?;
    fields.serialize_entry("requestId", &id)?;
    fields.serialize_entry("requestStreamId", &stream)?;
    fields.end()
}

/// Messages that expire together.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageBatchValue {
    #[n(0)]
    pub message_keys: Vec<Key>,
}

/// The wait of an element instance for a message, where the message arrives: on the partition of the correlation key.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSubscriptionValue {
    #[n(0)]
    pub process_instance_key: Key,
    /// The element instance that waits.
    #[n(1)]
    pub element_instance_key: Key,
    #[n(2)]
    pub bpmn_process_id: Text,
    /// Name of the message.
    #[n(3)]
    pub message_name: Text,
    #[n(4)]
    pub correlation_key: Text,
    /// The message that is correlated.
    #[n(5)]
    pub message_key: Key,
    /// Whether the wait ends with the first message.
    #[n(6)]
    pub interrupting: bool,
    /// Variables of the message, a JSON object.
    #[n(7)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(8)]
    pub tenant_id: Text,
    /// The process definition of who waits.
    #[n(9)]
    #[cbor(skip_if = "is_none")]
    pub process_definition_key: Key,
    /// The business id of the instance that waits; empty when it has none.
    #[n(10)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// The wait of an element instance for a message, where the element instance lives.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessMessageSubscriptionValue {
    #[n(0)]
    pub process_instance_key: Key,
    /// The element instance that waits.
    #[n(1)]
    pub element_instance_key: Key,
    #[n(2)]
    pub bpmn_process_id: Text,
    /// The message that is correlated.
    #[n(3)]
    pub message_key: Key,
    /// Name of the message.
    #[n(4)]
    pub message_name: Text,
    #[n(5)]
    pub correlation_key: Text,
    /// BPMN id of the catch event.
    #[n(6)]
    pub element_id: Text,
    /// Whether the wait ends with the first message.
    #[n(7)]
    pub interrupting: bool,
    /// Variables of the message, a JSON object.
    #[n(8)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(9)]
    pub tenant_id: Text,
    /// The process definition of who waits.
    #[n(10)]
    #[cbor(skip_if = "is_none")]
    pub process_definition_key: Key,
    /// The business id of the instance that waits; empty when it has none.
    #[n(11)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// The wait of a process for a message that starts an instance.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageStartEventSubscriptionValue {
    #[n(0)]
    pub process_definition_key: Key,
    #[n(1)]
    pub bpmn_process_id: Text,
    /// BPMN id of the start event.
    #[n(2)]
    pub start_event_id: Text,
    /// Name of the message.
    #[n(3)]
    pub message_name: Text,
    /// The instance that was started.
    #[n(4)]
    pub process_instance_key: Key,
    /// Correlation key of the message.
    #[n(5)]
    pub correlation_key: Text,
    #[n(6)]
    pub message_key: Key,
    /// Variables of the message, a JSON object.
    #[n(7)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(8)]
    pub tenant_id: Text,
}

/// The trigger of a catch event.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessEventValue {
    /// The element instance that is triggered (for a boundary event the one it is attached to, for an event sub-process
    /// the one that contains it); for a start event of a process the definition.
    #[n(0)]
    pub scope_key: Key,
    /// BPMN id of the catch event.
    #[n(1)]
    pub target_element_id: Text,
    #[n(2)]
    pub process_definition_key: Key,
    #[n(3)]
    pub process_instance_key: Key,
    /// Variables that the event brings, a JSON object.
    #[n(4)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(5)]
    pub tenant_id: Text,
}

/// An escalation that was thrown.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalationValue {
    #[n(0)]
    pub process_instance_key: Key,
    #[n(1)]
    pub escalation_code: Text,
    /// BPMN id of the throwing element.
    #[n(2)]
    pub throw_element_id: Text,
    /// BPMN id of the catching element; empty when there is none.
    #[n(3)]
    pub catch_element_id: Text,
    #[n(4)]
    pub tenant_id: Text,
}

/// The items of a multi-instance body, or the result of one of its inner instances.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MultiInstanceValue {
    /// The items in order, each a JSON text.
    #[n(0)]
    pub input_collection: Vec<Text>,
    /// The result, a JSON text; empty where the items are evaluated.
    #[n(1)]
    #[serde(skip_serializing_if = "is_empty")]
    pub output_element: Text,
}

fn is_empty(text: &Text) -> bool {
    text.as_str().is_empty()
}
