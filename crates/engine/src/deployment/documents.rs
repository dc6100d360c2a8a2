//! Forms, and resources that are only kept, in a deployment. Of both the engine reads the id and the version tag and nothing
//! else.

use std::borrow::Cow;
use std::collections::BTreeMap;

use protocol::{
    DeploymentResource, DeploymentValue, FormIntent, FormMetadata, FormValue, Key, Payload, Rejection, ResourceIntent,
    ResourceMetadata, ResourceValue, Text,
};

use super::Resources;
use crate::deployment::checksum::checksum;
use crate::execution::Execution;
use crate::name::{start_of, too_long};
use crate::state::LatestVersion;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Form,
    Resource,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Form => "form",
            Kind::Resource => "resource",
        }
    }
}

/// A form or a resource as its file names it.
pub(super) struct Document {
    pub kind: Kind,
    pub id: Text,
    /// Empty when there is none.
    pub version_tag: Text,
}

/// Reads the id and the version tag; says what is wrong with the file otherwise.
pub(super) fn read(kind: Kind, resource: &DeploymentResource) -> Result<Document, String> {
    let noun = kind.name();
    let broken = |why: String| format!("Failed to parse {noun} JSON. '{}': {why}", resource.resource_name);
    let text = std::str::from_utf8(&resource.resource).map_err(|error| {
        broken(format!("Expected a text in UTF-8, but byte {} is none of one.", error.valid_up_to()))
    })?;
    // Some editors begin a file in UTF-8 with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let members = feel::json::split_object(text).map_err(|error| broken(error.to_string()))?;
    let member = |wanted: &str| {
        let value = members.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value);
        let value = value.filter(|value| *value != "null");
        value.map(|value| scalar(value).ok_or_else(|| broken(format!("Expected '{wanted}' to be a text.")))).transpose()
    };
    let id = member("id")?.ok_or_else(|| format!("Expected the {noun} id to be present, but none given"))?;
    if id.trim().is_empty() {
        return Err(format!("Expected the {noun} id to be filled, but it is blank"));
    }
    let version_tag = member("versionTag")?.unwrap_or_default();
    Ok(Document { kind, id: (&*id).into(), version_tag: (&*version_tag).into() })
}

/// The text that a value is: of a text what is in the quotes, of a number or truth value how it is written as JSON.
fn scalar(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes().first()? {
        b'"' => feel::json::read_string(value),
        b'{' | b'[' => None,
        _ => Some(Cow::Borrowed(value)),
    }
}

/// What holds for the documents of a deployment together.
pub(super) fn check(
    execution: &Execution<'_>,
    value: &DeploymentValue,
    documents: &[(Document, usize)],
) -> Result<(), Rejection> {
    let mut ids = BTreeMap::new();
    for (document, index) in documents {
        let (noun, id) = (document.kind.name(), &document.id);
        let resource = &value.resources[*index].resource_name;
        for (what, text) in [("id", id), ("version tag", &document.version_tag)] {
            if let Some(but) = too_long(text, execution.limits.name_bytes_max) {
                let start = start_of(text);
                return Err(Rejection::invalid_argument(format!(
                    "Expected the {noun} {what} '{start}…' of resource '{resource}' to have {but}; choose a shorter one"
                )));
            }
        }
        if let Some(other) = ids.insert((noun, id), resource) {
            return Err(Rejection::invalid_argument(format!(
                "Expected to deploy new resources, but encountered the following errors:\n\
                 Expected the {noun} ids to be unique within a deployment but found a duplicated id '{id}' in the resources \
                 '{other}' and '{resource}'."
            )));
        }
    }
    Ok(())
}

/// Whether the deployment of a document would change nothing: the newest version has the same file.
pub(super) fn is_duplicate(
    execution: &Execution<'_>,
    deployment: &DeploymentValue,
    document: &Document,
    resource: usize,
) -> bool {
    let resource = &deployment.resources[resource];
    let tables = &execution.state.tables;
    let Some(latest) = latest(execution, deployment, document) else { return false };
    let key = latest.key.raw();
    match document.kind {
        Kind::Form => tables.forms.get(&key).is_some_and(|row| {
            row.metadata.resource_name == resource.resource_name && *row.resource == *resource.resource
        }),
        Kind::Resource => tables.resources.get(&key).is_some_and(|row| {
            row.metadata.resource_name == resource.resource_name && *row.resource.as_bytes() == *resource.resource
        }),
    }
}

fn latest(execution: &Execution<'_>, deployment: &DeploymentValue, document: &Document) -> Option<LatestVersion> {
    let name = (deployment.tenant_id.shared().clone(), document.id.shared().clone());
    let tables = &execution.state.tables;
    let latest = match document.kind {
        Kind::Form => tables.latest_forms.get(&name),
        Kind::Resource => tables.latest_resources.get(&name),
    };
    latest.map(|latest| (*latest).clone())
}

/// The number of the next version: that of a deleted one is not given again.
fn next_version(execution: &Execution<'_>, deployment: &DeploymentValue, document: &Document) -> i32 {
    let name = (deployment.tenant_id.shared().clone(), document.id.shared().clone());
    let tables = &execution.state.tables;
    let deleted = match document.kind {
        Kind::Form => tables.deleted_form_versions.get(&name),
        Kind::Resource => tables.deleted_resource_versions.get(&name),
    };
    let deleted = deleted.map_or(0, |deleted| deleted.version);
    latest(execution, deployment, document).map_or(0, |latest| latest.version).max(deleted) + 1
}

/// The version that a document gets in the deployment, or has already if nothing is new.
pub(super) fn version(
    execution: &mut Execution<'_>,
    deployed: &mut DeploymentValue,
    document: &Document,
    resource: usize,
    is_new: bool,
) {
    let latest = latest(execution, deployed, document).filter(|_| !is_new);
    let tables = &execution.state.tables;
    match (document.kind, latest) {
        (Kind::Form, Some(latest)) => {
            let Some(row) = tables.forms.get(&latest.key.raw()) else { return };
            deployed.form_metadata.push(FormMetadata { duplicate: true, ..row.metadata.clone() });
        }
        (Kind::Resource, Some(latest)) => {
            let Some(row) = tables.resources.get(&latest.key.raw()) else { return };
            deployed.resource_metadata.push(ResourceMetadata { duplicate: true, ..row.metadata.clone() });
        }
        (_, None) => new_version(execution, deployed, document, resource),
    }
}

fn new_version(execution: &mut Execution<'_>, deployed: &mut DeploymentValue, document: &Document, resource: usize) {
    let version = next_version(execution, deployed, document);
    let key = execution.state.next_key();
    let resource = &deployed.resources[resource];
    let metadata = ResourceMetadata {
        resource_id: document.id.clone(),
        version,
        version_tag: document.version_tag.clone(),
        resource_key: key,
        resource_name: resource.resource_name.clone(),
        checksum: checksum(&resource.resource),
        duplicate: false,
        deployment_key: deployed.deployment_key,
        tenant_id: deployed.tenant_id.clone(),
    };
    match document.kind {
        Kind::Form => deployed.form_metadata.push(FormMetadata {
            form_id: metadata.resource_id,
            version,
            version_tag: metadata.version_tag,
            form_key: key,
            resource_name: metadata.resource_name,
            checksum: metadata.checksum,
            duplicate: false,
            deployment_key: metadata.deployment_key,
            tenant_id: metadata.tenant_id,
        }),
        Kind::Resource => deployed.resource_metadata.push(metadata),
    }
}

/// The new forms and resources in the order of their keys, which is that of the files.
pub(super) fn emit(execution: &mut Execution<'_>, deployment: &DeploymentValue) {
    let mut created: Vec<(Key, Payload)> = Vec::new();
    let resources = Resources::of(deployment);
    for metadata in deployment.form_metadata.iter().filter(|metadata| !metadata.duplicate) {
        let Some(file) = resources.find(&metadata.resource_name, &metadata.checksum) else { continue };
        let value = FormValue { metadata: metadata.clone(), resource: file.resource.clone() };
        created.push((metadata.form_key, Payload::Form(FormIntent::Created, Box::new(value))));
    }
    for metadata in deployment.resource_metadata.iter().filter(|metadata| !metadata.duplicate) {
        let Some(file) = resources.find(&metadata.resource_name, &metadata.checksum) else { continue };
        let resource_prop = String::from_utf8_lossy(&file.resource).as_ref().into();
        let value = ResourceValue { metadata: metadata.clone(), resource_prop };
        created.push((metadata.resource_key, Payload::Resource(ResourceIntent::Created, Box::new(value))));
    }
    created.sort_by_key(|(key, _)| *key);
    for (key, payload) in created {
        execution.emit(key, payload);
    }
}
