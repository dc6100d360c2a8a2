//! Events of decisions and their graphs.

use protocol::{DecisionIntent, DecisionRequirementsIntent, DecisionRequirementsValue, DecisionValue, Key};

use super::change::{Name, versions};
use crate::state::{DecisionRequirementsRow, DecisionRow, LatestVersion, State};

pub(super) fn apply_requirements(
    state: &mut State,
    intent: DecisionRequirementsIntent,
    value: &DecisionRequirementsValue,
) {
    let metadata = &value.metadata;
    let (key, version) = (metadata.decision_requirements_key, metadata.decision_requirements_version);
    let name = (metadata.tenant_id.shared().clone(), metadata.decision_requirements_id.shared().clone());
    let name_and_version = (name.0.clone(), name.1.clone(), version);
    let tables = &mut state.tables;
    match intent {
        DecisionRequirementsIntent::Created => {
            let row = DecisionRequirementsRow { metadata: metadata.clone(), resource: value.resource.to_vec() };
            tables.decision_requirements.insert_new(key.raw(), row);
            tables.decision_requirements_versions.put(name_and_version, key.raw());
            tables.latest_decision_requirements.put(name, LatestVersion { key, version });
        }
        DecisionRequirementsIntent::Deleted => {
            tables.decision_requirements.delete(&key.raw());
            state.definitions.forget_decision_requirements(key);
            if tables.decision_requirements_versions.get(&name_and_version).is_some_and(|meant| *meant == key.raw()) {
                tables.decision_requirements_versions.delete(&name_and_version);
            }
            if tables.latest_decision_requirements.get(&name).is_some_and(|latest| latest.key == key) {
                match versions(&tables.decision_requirements_versions, &name).last() {
                    Some((version, key)) => {
                        tables.latest_decision_requirements.put(name, LatestVersion { key, version });
                    }
                    None => tables.latest_decision_requirements.delete(&name),
                }
            }
        }
    }
}

pub(super) fn apply(state: &mut State, intent: DecisionIntent, value: &DecisionValue) {
    match intent {
        DecisionIntent::Created => created(state, value),
        DecisionIntent::Deleted => deleted(state, value),
    }
}

fn name_of(value: &DecisionValue) -> Name {
    (value.tenant_id.shared().clone(), value.decision_id.shared().clone())
}

fn created(state: &mut State, value: &DecisionValue) {
    let (key, name) = (value.decision_key, name_of(value));
    let tables = &mut state.tables;
    tables.decisions.insert_new(key.raw(), DecisionRow { value: value.clone() });
    tables.decisions_by_requirements.put((value.decision_requirements_key.raw(), key.raw()), ());
    tables.decisions_by_deployment.put((value.deployment_key.raw(), name.1.clone()), key.raw());
    if !value.version_tag.is_empty() {
        let by_tag = (name.0.clone(), name.1.clone(), value.version_tag.shared().clone());
        tables.decisions_by_version_tag.put(by_tag, key.raw());
    }
    tables.decision_versions.put((name.0.clone(), name.1.clone(), value.version), key.raw());
    tables.latest_decisions.put(name, LatestVersion { key, version: value.version });
}

fn deleted(state: &mut State, value: &DecisionValue) {
    let (key, name) = (value.decision_key, name_of(value));
    let tables = &mut state.tables;
    tables.decisions.delete(&key.raw());
    tables.decisions_by_requirements.delete(&(value.decision_requirements_key.raw(), key.raw()));
    tables.decisions_by_deployment.delete(&(value.deployment_key.raw(), name.1.clone()));
    let name_and_version = (name.0.clone(), name.1.clone(), value.version);
    if tables.decision_versions.get(&name_and_version).is_some_and(|meant| *meant == key.raw()) {
        tables.decision_versions.delete(&name_and_version);
    }
    let by_tag = (name.0.clone(), name.1.clone(), value.version_tag.shared().clone());
    if tables.decisions_by_version_tag.get(&by_tag).is_some_and(|meant| *meant == key.raw()) {
        let has_tag = |(_, key): &(i32, Key)| {
            let row = state.tables.decisions.get(&key.raw());
            row.is_some_and(|row| row.value.version_tag == value.version_tag)
        };
        match versions(&state.tables.decision_versions, &name).filter(has_tag).last() {
            Some((_, key)) => state.tables.decisions_by_version_tag.put(by_tag, key.raw()),
            None => state.tables.decisions_by_version_tag.delete(&by_tag),
        }
    }
    if state.tables.latest_decisions.get(&name).is_some_and(|latest| latest.key == key) {
        let previous = versions(&state.tables.decision_versions, &name).last();
        match previous {
            Some((version, key)) => state.tables.latest_decisions.put(name, LatestVersion { key, version }),
            None => state.tables.latest_decisions.delete(&name),
        }
    }
}
