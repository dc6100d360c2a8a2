//! Values about operations on running instances and deployed resources.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::json;
use crate::{Key, Text};

/// A modification of an instance: all of it, or nothing.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInstanceModificationValue {
    #[n(0)]
    pub process_instance_key: Key,
    /// What is to end.
    #[n(1)]
    pub terminate_instructions: Vec<ModificationTerminateInstruction>,
    /// What is to begin.
    #[n(2)]
    pub activate_instructions: Vec<ModificationActivateInstruction>,
    /// What ends here and begins elsewhere.
    #[n(3)]
    pub move_instructions: Vec<ModificationMoveInstruction>,
    #[n(4)]
    pub tenant_id: Text,
    /// Once it is done: the scopes in which something began, and the scopes that enclose them.
    #[n(5)]
    pub ancestor_scope_keys: Vec<Key>,
    /// For each token that waits at a parallel join and that an activated element takes, the scope of both.
    #[n(6)]
    #[cbor(default)]
    #[serde(skip)]
    pub scopes_that_pass_on_tokens: Vec<Key>,
}

/// One element instance, or all of one element, that is to end.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModificationTerminateInstruction {
    /// The element instance; none when the element is named.
    #[n(0)]
    pub element_instance_key: Key,
    /// BPMN id of the element whose instances all end; empty when the instance is named.
    #[n(1)]
    pub element_id: Text,
}

/// An element that is to begin.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModificationActivateInstruction {
    /// BPMN id of the element.
    #[n(0)]
    pub element_id: Text,
    /// The element instance in which it begins, or one that encloses it; none to find it.
    #[n(1)]
    pub ancestor_scope_key: Key,
    /// Variables to set before.
    #[n(2)]
    pub variable_instructions: Vec<ModificationVariableInstruction>,
}

/// Variables of one scope.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModificationVariableInstruction {
    /// The variables, a JSON object.
    #[n(0)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    /// BPMN id of the scope; empty for the process instance.
    #[n(1)]
    pub element_id: Text,
}

/// Element instances that are to end, each with one of another element beginning in its place.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModificationMoveInstruction {
    /// BPMN id of the element whose instances end; empty when one instance is named.
    #[n(0)]
    pub source_element_id: Text,
    /// The element instance that ends; none when the element is named.
    #[n(1)]
    pub source_element_instance_key: Key,
    /// BPMN id of the element that begins.
    #[n(2)]
    pub target_element_id: Text,
    /// Variables to set before.
    #[n(3)]
    pub variable_instructions: Vec<ModificationVariableInstruction>,
    /// The element instance in which it begins, or one that encloses it; none to find it.
    #[n(4)]
    pub ancestor_scope_key: Key,
    /// Whether it begins in the same scope as the one that ended, whatever `ancestor_scope_key` says.
    #[n(5)]
    #[serde(rename = "inferAncestorScopeFromSourceHierarchy")]
    pub infer_ancestor_scope: bool,
    /// Whether the scope of the source is used as the ancestor.
    #[n(6)]
    #[serde(rename = "useSourceParentKeyAsAncestorScopeKey")]
    pub use_source_parent_as_ancestor: bool,
}

/// A migration to another version of the process.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInstanceMigrationValue {
    #[n(0)]
    pub process_instance_key: Key,
    /// The definition to continue with.
    #[n(1)]
    pub target_process_definition_key: Key,
    /// Which element becomes which.
    #[n(2)]
    pub mapping_instructions: Vec<MigrationMappingInstruction>,
    #[n(3)]
    pub tenant_id: Text,
}

/// One element of the present version and its place in the other.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationMappingInstruction {
    /// BPMN id in the present version.
    #[n(0)]
    pub source_element_id: Text,
    /// BPMN id in the other.
    #[n(1)]
    pub target_element_id: Text,
}

/// The wish to delete a deployed resource.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDeletionValue {
    /// The resource: a process definition, for example.
    #[n(0)]
    pub resource_key: Key,
    #[n(1)]
    pub tenant_id: Text,
}
