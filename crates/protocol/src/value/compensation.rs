//! The value about activities that may be undone.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::json;
use crate::{Key, Text};

/// What was completed and may be undone: an activity with a compensation handler, or one that contains such.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompensationSubscriptionValue {
    #[n(0)]
    pub tenant_id: Text,
    #[n(1)]
    pub process_instance_key: Key,
    #[n(2)]
    pub process_definition_key: Key,
    /// BPMN id of the activity that was completed.
    #[n(3)]
    pub compensable_activity_id: Text,
    /// BPMN id of the event that has it undone; empty before.
    #[n(4)]
    pub throw_event_id: Text,
    #[n(5)]
    pub throw_event_instance_key: Key,
    /// BPMN id of what undoes it; empty when only what happened inside of the activity is undone.
    #[n(6)]
    pub compensation_handler_id: Text,
    #[n(7)]
    pub compensation_handler_instance_key: Key,
    /// The element instance in which the activity was completed.
    #[n(8)]
    pub compensable_activity_scope_key: Key,
    #[n(9)]
    pub compensable_activity_instance_key: Key,
    /// A JSON object.
    #[n(10)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
}
