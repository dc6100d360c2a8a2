//! Values about forms, and about resources that the engine only keeps.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{Key, Text};

/// What a deployed form is called.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormMetadata {
    /// Id of the form.
    #[n(0)]
    pub form_id: Text,
    #[n(1)]
    pub version: i32,
    /// Version tag; empty when there is none.
    #[n(2)]
    pub version_tag: Text,
    /// This version.
    #[n(3)]
    pub form_key: Key,
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

/// A version of a form.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormValue {
    /// Its names.
    #[n(0)]
    #[serde(flatten)]
    pub metadata: FormMetadata,
    /// The file.
    #[n(1)]
    #[cbor(with = "super::shared_bytes")]
    #[serde(serialize_with = "super::base64")]
    pub resource: Arc<[u8]>,
}

/// What a deployed resource is called that the engine only keeps: a script of a robot.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetadata {
    /// Id of the resource.
    #[n(0)]
    pub resource_id: Text,
    #[n(1)]
    pub version: i32,
    /// Version tag; empty when there is none.
    #[n(2)]
    pub version_tag: Text,
    /// This version.
    #[n(3)]
    pub resource_key: Key,
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

/// A version of a resource; of the wish to read one only the key.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceValue {
    /// Its names.
    #[n(0)]
    #[serde(flatten)]
    pub metadata: ResourceMetadata,
    /// The file, which is a text.
    #[n(1)]
    pub resource_prop: Text,
}
