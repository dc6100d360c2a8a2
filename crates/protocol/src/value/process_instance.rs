//! Values about running instances.

use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer};

use super::json;
use crate::{BpmnElementType, BpmnEventType, ErrorType, Key, Request, Text};

/// One element instance (or the taking of one sequence flow).
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInstanceValue {
    #[n(0)]
    pub bpmn_process_id: Text,
    /// Version of the process definition.
    #[n(1)]
    pub version: i32,
    #[n(2)]
    pub process_definition_key: Key,
    /// The instance that this belongs to.
    #[n(3)]
    pub process_instance_key: Key,
    /// BPMN id of the element or sequence flow.
    #[n(4)]
    pub element_id: Text,
    /// The element instance that contains this one; none for the process itself.
    #[n(5)]
    pub flow_scope_key: Key,
    /// Type of the element.
    #[n(6)]
    pub bpmn_element_type: BpmnElementType,
    /// The instance that called this one.
    #[n(7)]
    pub parent_process_instance_key: Key,
    /// The call activity that called this one.
    #[n(8)]
    pub parent_element_instance_key: Key,
    /// Tags given at creation.
    #[n(9)]
    pub tags: Vec<Text>,
    #[n(10)]
    pub tenant_id: Text,
    /// Kind of the event, if the element is one.
    #[n(11)]
    pub bpmn_event_type: BpmnEventType,
    /// Whether the element is entered otherwise than by a sequence flow, so that no token is used up: by a trigger, a link,
    /// a modification, or as an inner instance.
    #[n(12)]
    #[serde(skip)]
    pub without_token: bool,
    /// What the instance is called outside, given at creation and passed on to the processes that it calls; empty when it has
    /// none.
    #[n(13)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// The wish to create an instance.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInstanceCreationValue {
    /// BPMN process id; empty when the key names the definition.
    #[n(0)]
    pub bpmn_process_id: Text,
    /// Version; -1 for the latest.
    #[n(1)]
    pub version: i32,
    /// The definition, when it is named by key.
    #[n(2)]
    pub process_definition_key: Key,
    /// Variables of the root scope, a JSON object.
    #[n(3)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    /// With result: the variables wanted; empty for all.
    #[n(4)]
    pub fetch_variables: Vec<Text>,
    /// Ids of the elements to start at; empty for the none start event.
    #[n(5)]
    #[serde(serialize_with = "start_instructions")]
    pub start_instructions: Vec<Text>,
    #[n(6)]
    pub tags: Vec<Text>,
    /// The instance that was created.
    #[n(7)]
    pub process_instance_key: Key,
    #[n(8)]
    pub tenant_id: Text,
    /// Who waits for the result.
    #[n(9)]
    #[serde(skip)]
    pub awaiting: Option<Request>,
    /// What is to happen on the way.
    #[n(10)]
    pub runtime_instructions: Vec<RuntimeInstruction>,
    /// What the instance is called outside; empty when it has no such name.
    #[n(11)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// What is to happen to an instance on its way.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInstruction {
    /// What.
    #[n(0)]
    #[serde(rename = "type")]
    pub instruction_type: RuntimeInstructionType,
    /// BPMN id of the element after which it happens.
    #[n(1)]
    pub after_element_id: Text,
}

/// Kinds of [`RuntimeInstruction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RuntimeInstructionType {
    /// The instance ends.
    #[n(0)]
    #[default]
    TerminateProcessInstance,
}

/// A [`RuntimeInstruction`] that was carried out.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInstructionValue {
    #[n(0)]
    pub process_instance_key: Key,
    /// BPMN id of the element after which it happened.
    #[n(1)]
    pub element_id: Text,
    #[n(2)]
    pub tenant_id: Text,
}

/// In exported records every element to start at is an object of its own.
fn start_instructions<S: Serializer>(element_ids: &[Text], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct StartInstruction<'a> {
        element_id: &'a Text,
    }
    serializer.collect_seq(element_ids.iter().map(|element_id| StartInstruction { element_id }))
}

/// The result of an instance that a client waits for.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInstanceResultValue {
    #[n(0)]
    pub bpmn_process_id: Text,
    #[n(1)]
    pub version: i32,
    #[n(2)]
    pub process_definition_key: Key,
    #[n(3)]
    pub process_instance_key: Key,
    /// Variables of the root scope at the end, a JSON object.
    #[n(4)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(5)]
    pub tags: Vec<Text>,
    #[n(6)]
    pub tenant_id: Text,
    /// What the instance is called outside; empty when it has no such name.
    #[n(7)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// Work on many children of one element instance, done in slices.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInstanceBatchValue {
    #[n(0)]
    pub process_instance_key: Key,
    /// The element instance whose children are worked on.
    #[n(1)]
    pub batch_element_instance_key: Key,
    /// Where the next slice starts: the key of a child, or -1 for the first.
    #[n(2)]
    pub index: i64,
    #[n(3)]
    pub tenant_id: Text,
    /// The last child that is worked on, when those behind it are not meant.
    #[n(4)]
    #[serde(skip)]
    pub up_to: Option<Key>,
}

/// One variable of one scope.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VariableValue {
    #[n(0)]
    pub name: Text,
    /// JSON text of the value.
    #[n(1)]
    pub value: Text,
    /// The element instance that holds it.
    #[n(2)]
    pub scope_key: Key,
    #[n(3)]
    pub process_instance_key: Key,
    #[n(4)]
    pub process_definition_key: Key,
    #[n(5)]
    pub bpmn_process_id: Text,
    #[n(6)]
    pub tenant_id: Text,
}

/// The wish to set several variables.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VariableDocumentValue {
    /// The element instance to set them at.
    #[n(0)]
    pub scope_key: Key,
    /// Whether they may go to an outer scope.
    #[n(1)]
    pub update_semantics: VariableDocumentUpdateSemantics,
    /// The variables, a JSON object.
    #[n(2)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(3)]
    pub tenant_id: Text,
}

/// Where variables of a document go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VariableDocumentUpdateSemantics {
    /// To the nearest scope that has a variable of the name, else to the root.
    #[n(0)]
    Propagate,
    /// To the named scope itself.
    #[n(1)]
    Local,
}

/// Why an element instance cannot continue.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentValue {
    /// Kind of the problem.
    #[n(0)]
    pub error_type: ErrorType,
    /// The problem in a sentence.
    #[n(1)]
    pub error_message: Text,
    #[n(2)]
    pub bpmn_process_id: Text,
    #[n(3)]
    pub process_definition_key: Key,
    #[n(4)]
    pub process_instance_key: Key,
    /// BPMN id of the element.
    #[n(5)]
    pub element_id: Text,
    #[n(6)]
    pub element_instance_key: Key,
    /// The job, when the problem is one of a job.
    #[n(7)]
    pub job_key: Key,
    /// The scope whose variables matter.
    #[n(8)]
    pub variable_scope_key: Key,
    #[n(9)]
    pub tenant_id: Text,
}

/// A command that could not be processed at all; its instance is banned.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorValue {
    /// What went wrong.
    #[n(0)]
    pub exception_message: Text,
    /// Where, if known.
    #[n(1)]
    pub stacktrace: Text,
    /// Position of the command.
    #[n(2)]
    pub error_event_position: u64,
    /// The banned instance.
    #[n(3)]
    pub process_instance_key: Key,
}
