//! Values about deployed resources.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::decision::{DecisionRequirementsMetadata, DecisionValue};
use super::form::{FormMetadata, ResourceMetadata};
use crate::{Key, Request, Text};

/// Resources that are deployed together.
#[derive(Clone, Debug, PartialEq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentValue {
    /// The files.
    #[n(0)]
    pub resources: Vec<DeploymentResource>,
    /// The processes found in them.
    #[n(1)]
    pub processes_metadata: Vec<ProcessMetadata>,
    #[n(2)]
    pub deployment_key: Key,
    #[n(3)]
    pub tenant_id: Text,
    /// Who waits until every partition has it.
    #[n(4)]
    #[serde(skip)]
    pub awaiting: Option<Request>,
    /// The decisions found in the files.
    #[n(5)]
    pub decisions_metadata: Vec<DecisionValue>,
    /// The graphs of decisions found in the files.
    #[n(6)]
    pub decision_requirements_metadata: Vec<DecisionRequirementsMetadata>,
    /// The forms found in the files.
    #[n(7)]
    #[cbor(skip_if = "Vec::is_empty")]
    pub form_metadata: Vec<FormMetadata>,
    /// The files that are only kept.
    #[n(8)]
    #[cbor(skip_if = "Vec::is_empty")]
    pub resource_metadata: Vec<ResourceMetadata>,
}

/// One file of a deployment.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentResource {
    /// File name.
    #[n(0)]
    pub resource_name: Text,
    /// Content.
    #[n(1)]
    #[cbor(with = "super::shared_bytes")]
    #[serde(serialize_with = "super::base64")]
    pub resource: Arc<[u8]>,
}

/// What a deployed process is called.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessMetadata {
    #[n(0)]
    pub bpmn_process_id: Text,
    #[n(1)]
    pub version: i32,
    /// Version tag; empty when there is none.
    #[n(2)]
    pub version_tag: Text,
    #[n(3)]
    pub process_definition_key: Key,
    /// File it came from.
    #[n(4)]
    pub resource_name: Text,
    /// Checksum of the file.
    #[n(5)]
    #[cbor(with = "super::shared_bytes")]
    #[serde(serialize_with = "super::base64")]
    pub checksum: Arc<[u8]>,
    /// Whether it is the same as the version before, so that no new version was made.
    #[n(6)]
    pub duplicate: bool,
    /// The deployment that made this version.
    #[n(7)]
    pub deployment_key: Key,
    #[n(8)]
    pub tenant_id: Text,
}

/// A version of a process.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessValue {
    /// Its names.
    #[n(0)]
    #[serde(flatten)]
    pub metadata: ProcessMetadata,
    /// The file.
    #[n(1)]
    #[cbor(with = "super::shared_bytes")]
    #[serde(serialize_with = "super::base64")]
    pub resource: Arc<[u8]>,
}
