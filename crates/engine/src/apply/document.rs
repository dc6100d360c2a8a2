//! Events of forms and of resources that are only kept: both are versions of a file with an id.

use std::sync::Arc;

use protocol::{FormIntent, FormValue, Key, ResourceIntent, ResourceValue, Text};

use super::change::{broken, not_an_event, versions};
use crate::state::{FormRow, LatestVersion, ResourceRow, State};

pub(super) fn apply_form(state: &mut State, intent: FormIntent, value: &FormValue) {
    let metadata = &value.metadata;
    let version = Version {
        key: metadata.form_key,
        number: metadata.version,
        id: &metadata.form_id,
        tag: &metadata.version_tag,
        deployment: metadata.deployment_key,
        tenant: &metadata.tenant_id,
    };
    let key = version.key.raw();
    let tables = &mut state.tables;
    let rows = &mut tables.forms;
    let mut kept = Kept {
        latest: &mut tables.latest_forms,
        versions: &mut tables.form_versions,
        by_deployment: &mut tables.forms_by_deployment,
        by_version_tag: &mut tables.forms_by_version_tag,
        deleted_versions: &mut tables.deleted_form_versions,
    };
    match intent {
        FormIntent::Created => {
            rows.insert_new(key, FormRow { metadata: metadata.clone(), resource: value.resource.to_vec() });
            kept.created(&version);
        }
        FormIntent::Deleted if !rows.contains(&key) => broken(state, format!("form {key} is not there")),
        FormIntent::Deleted => {
            rows.delete(&key);
            kept.deleted(&version, |key| {
                rows.get(&key.raw()).is_some_and(|row| row.metadata.version_tag == *version.tag)
            });
        }
    }
}

pub(super) fn apply_resource(state: &mut State, intent: ResourceIntent, value: &ResourceValue) {
    let metadata = &value.metadata;
    let version = Version {
        key: metadata.resource_key,
        number: metadata.version,
        id: &metadata.resource_id,
        tag: &metadata.version_tag,
        deployment: metadata.deployment_key,
        tenant: &metadata.tenant_id,
    };
    let key = version.key.raw();
    let tables = &mut state.tables;
    let rows = &mut tables.resources;
    let mut kept = Kept {
        latest: &mut tables.latest_resources,
        versions: &mut tables.resource_versions,
        by_deployment: &mut tables.resources_by_deployment,
        by_version_tag: &mut tables.resources_by_version_tag,
        deleted_versions: &mut tables.deleted_resource_versions,
    };
    match intent {
        ResourceIntent::Created => {
            rows.insert_new(key, ResourceRow { metadata: metadata.clone(), resource: value.resource_prop.clone() });
            kept.created(&version);
        }
        ResourceIntent::Deleted if !rows.contains(&key) => broken(state, format!("resource {key} is not there")),
        ResourceIntent::Deleted => {
            rows.delete(&key);
            kept.deleted(&version, |key| {
                rows.get(&key.raw()).is_some_and(|row| row.metadata.version_tag == *version.tag)
            });
        }
        ResourceIntent::Fetch | ResourceIntent::Fetched => not_an_event(state, intent.name()),
    }
}

/// The version of a document.
struct Version<'a> {
    key: Key,
    number: i32,
    id: &'a Text,
    /// Empty when there is none.
    tag: &'a Text,
    deployment: Key,
    tenant: &'a Text,
}

/// Keys by tenant, id and version tag.
type ByVersionTag = state::Table<(Arc<str>, Arc<str>, Arc<str>), i64>;

/// The tables that find the versions of the documents of one kind.
struct Kept<'a> {
    latest: &'a mut state::Table<(Arc<str>, Arc<str>), LatestVersion>,
    versions: &'a mut state::Table<(Arc<str>, Arc<str>, i32), i64>,
    by_deployment: &'a mut state::Table<(i64, Arc<str>), i64>,
    by_version_tag: &'a mut ByVersionTag,
    deleted_versions: &'a mut state::Table<(Arc<str>, Arc<str>), LatestVersion>,
}

impl Kept<'_> {
    fn created(&mut self, version: &Version<'_>) {
        let (key, number) = (version.key, version.number);
        let (tenant, id) = (version.tenant.shared().clone(), version.id.shared().clone());
        self.by_deployment.insert_new((version.deployment.raw(), id.clone()), key.raw());
        self.versions.insert_new((tenant.clone(), id.clone(), number), key.raw());
        if !version.tag.is_empty() {
            self.by_version_tag.put((tenant.clone(), id.clone(), version.tag.shared().clone()), key.raw());
        }
        let name = (tenant, id);
        if self.deleted_versions.get(&name).is_some_and(|deleted| deleted.version < number) {
            self.deleted_versions.delete(&name);
        }
        self.latest.put(name, LatestVersion { key, version: number });
    }

    /// What meant this version means the newest that is left. `has_tag` says whether a version has the same tag.
    fn deleted(&mut self, version: &Version<'_>, has_tag: impl Fn(Key) -> bool) {
        let (key, number) = (version.key, version.number);
        let name = (version.tenant.shared().clone(), version.id.shared().clone());
        self.by_deployment.delete(&(version.deployment.raw(), name.1.clone()));
        self.versions.delete(&(name.0.clone(), name.1.clone(), number));
        let by_tag = (name.0.clone(), name.1.clone(), version.tag.shared().clone());
        if self.by_version_tag.get(&by_tag).is_some_and(|meant| *meant == key.raw()) {
            match versions(self.versions, &name).map(|(_, key)| key).filter(|key| has_tag(*key)).last() {
                Some(left) => self.by_version_tag.put(by_tag, left.raw()),
                None => self.by_version_tag.delete(&by_tag),
            }
        }
        if self.latest.get(&name).is_none_or(|latest| latest.key != key) {
            return;
        }
        match versions(self.versions, &name).last() {
            Some((version, key)) => self.latest.put(name.clone(), LatestVersion { key, version }),
            None => self.latest.delete(&name),
        }
        if self.deleted_versions.get(&name).is_none_or(|deleted| deleted.version < number) {
            self.deleted_versions.put(name, LatestVersion { key, version: number });
        }
    }
}
