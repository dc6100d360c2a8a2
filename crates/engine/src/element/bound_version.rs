//! Which version of a definition the binding of a reference means.

use std::sync::Arc;

use bpmn::model::Binding;
use protocol::Key;

use crate::execution::Execution;
use crate::execution::token::Token;
use crate::state::{LatestVersion, Tables};

/// Keys by tenant, id and version tag.
type ByVersionTag = state::Table<(Arc<str>, Arc<str>, Arc<str>), i64>;

/// The tables that find definitions of one kind by their id.
pub(super) struct Versions<'a> {
    pub latest: &'a state::Table<(Arc<str>, Arc<str>), LatestVersion>,
    pub by_deployment: &'a state::Table<(i64, Arc<str>), i64>,
    pub by_version_tag: &'a ByVersionTag,
}

impl<'a> Versions<'a> {
    pub fn of_processes(tables: &'a Tables) -> Self {
        Versions {
            latest: &tables.latest_processes,
            by_deployment: &tables.processes_by_deployment,
            by_version_tag: &tables.processes_by_version_tag,
        }
    }

    pub fn of_decisions(tables: &'a Tables) -> Self {
        Versions {
            latest: &tables.latest_decisions,
            by_deployment: &tables.decisions_by_deployment,
            by_version_tag: &tables.decisions_by_version_tag,
        }
    }

    pub fn of_forms(tables: &'a Tables) -> Self {
        Versions {
            latest: &tables.latest_forms,
            by_deployment: &tables.forms_by_deployment,
            by_version_tag: &tables.forms_by_version_tag,
        }
    }

    pub fn of_resources(tables: &'a Tables) -> Self {
        Versions {
            latest: &tables.latest_resources,
            by_deployment: &tables.resources_by_deployment,
            by_version_tag: &tables.resources_by_version_tag,
        }
    }

    /// The key of the version that the binding means where the token is, if there is one.
    pub fn find(&self, execution: &Execution<'_>, token: &Token, id: &Arc<str>, binding: &Binding) -> Option<Key> {
        let tenant = token.value().tenant_id.shared().clone();
        match binding {
            Binding::Latest => self.latest.get(&(tenant, id.clone())).map(|latest| latest.key),
            Binding::Deployment => {
                let name = (deployment_of(execution, token).raw(), id.clone());
                self.by_deployment.get(&name).map(|key| Key::from_raw(*key))
            }
            Binding::VersionTag(tag) => {
                let name = (tenant, id.clone(), tag.clone());
                self.by_version_tag.get(&name).map(|key| Key::from_raw(*key))
            }
        }
    }
}

/// The deployment that has the process of the token.
pub(super) fn deployment_of(execution: &Execution<'_>, token: &Token) -> Key {
    let process = execution.state.tables.processes.get(&token.value().process_definition_key.raw());
    process.map_or(Key::NONE, |row| row.metadata.deployment_key)
}
