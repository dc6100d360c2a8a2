//! Values about ad-hoc sub-processes.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::json;
use crate::{Key, Text};

/// What an ad-hoc sub-process is to do next.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdHocSubProcessInstructionValue {
    #[n(0)]
    pub ad_hoc_sub_process_instance_key: Key,
    /// Elements that begin, each in an inner instance of its own.
    #[n(1)]
    pub activate_elements: Vec<AdHocSubProcessActivateElement>,
    /// Whether the inner instances that are there are terminated.
    #[n(2)]
    pub cancel_remaining_instances: bool,
    #[n(3)]
    pub tenant_id: Text,
    /// Whether nothing further is to begin.
    #[n(4)]
    pub completion_condition_fulfilled: bool,
}

/// An element that begins.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdHocSubProcessActivateElement {
    /// BPMN id.
    #[n(0)]
    pub element_id: Text,
    /// Variables of its inner instance, a JSON object.
    #[n(1)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
}
