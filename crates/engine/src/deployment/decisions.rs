//! Decisions and their graphs in a deployment.

use std::collections::BTreeMap;

use dmn::{DecisionRequirementsGraph, ValidationReport};
use protocol::{
    DecisionIntent, DecisionRequirementsIntent, DecisionRequirementsMetadata, DecisionRequirementsValue, DecisionValue,
    DeploymentValue, Key, Payload, Rejection, Text,
};

use super::Resources;
use crate::deployment::checksum::checksum;
use crate::execution::Execution;
use crate::name::{start_of, too_long};
use crate::state::LatestVersion;

/// The text about a file that cannot be deployed: a chunk for each problem, and how many further ones there are.
pub(super) fn paragraph(resource_name: &str, report: &ValidationReport) -> (Vec<String>, usize) {
    let chunk = |(index, problem): (usize, &dmn::Problem)| match index {
        0 => format!("'{resource_name}': {problem}"),
        _ => format!("\n{problem}"),
    };
    (report.problems.iter().enumerate().map(chunk).collect(), report.further_problems)
}

/// What holds for the decisions of a deployment together.
pub(super) fn check(
    execution: &Execution<'_>,
    value: &DeploymentValue,
    graphs: &[(DecisionRequirementsGraph, usize)],
) -> Result<(), Rejection> {
    let name_bytes_max = execution.limits.name_bytes_max;
    let (mut graph_ids, mut decision_ids) = (BTreeMap::new(), BTreeMap::new());
    for (graph, index) in graphs {
        let resource = &value.resources[*index].resource_name;
        let check_length = |what: &str, name: &str| match too_long(name, name_bytes_max) {
            Some(but) => {
                let start = start_of(name);
                Err(Rejection::invalid_argument(format!(
                    "Expected the {what} '{start}…' of resource '{resource}' to have {but}; choose a shorter one"
                )))
            }
            None => Ok(()),
        };
        let duplicated = |what: &str, id: &str, other: &Text| {
            Rejection::invalid_argument(format!(
                "Expected to deploy new resources, but encountered the following errors:\n\
                 Expected the {what} ids to be unique within a deployment but found a duplicated id '{id}' in the resources \
                 '{other}' and '{resource}'."
            ))
        };
        check_length("decision requirements id", graph.id())?;
        check_length("decision requirements name", graph.name())?;
        check_length("namespace", graph.namespace())?;
        if let Some(other) = graph_ids.insert(graph.id(), resource) {
            return Err(duplicated("decision requirements", graph.id(), other));
        }
        for decision in graph.decisions() {
            check_length("decision id", decision.id)?;
            check_length("decision name", decision.name)?;
            check_length("version tag", decision.version_tag.unwrap_or_default())?;
            if let Some(other) = decision_ids.insert(decision.id, resource) {
                return Err(duplicated("decision", decision.id, other));
            }
        }
    }
    Ok(())
}

/// Whether the deployment of a graph would change nothing: the newest version has the same file, and all its decisions are
/// the newest of theirs.
pub(super) fn is_duplicate(
    execution: &Execution<'_>,
    deployment: &DeploymentValue,
    graph: &DecisionRequirementsGraph,
    resource: usize,
) -> bool {
    let resource = &deployment.resources[resource];
    let tables = &execution.state.tables;
    let Some(latest) = latest_graph(execution, deployment, graph) else { return false };
    let is_same_file = tables
        .decision_requirements
        .get(&latest.key.raw())
        .is_some_and(|row| row.metadata.resource_name == resource.resource_name && *row.resource == *resource.resource);
    is_same_file
        && graph.decisions().all(|decision| {
            let latest_decision = latest_decision(execution, &deployment.tenant_id, decision.id);
            latest_decision.is_some_and(|decision| decision.decision_requirements_key == latest.key)
        })
}

fn latest_graph(
    execution: &Execution<'_>,
    deployment: &DeploymentValue,
    graph: &DecisionRequirementsGraph,
) -> Option<LatestVersion> {
    let name = (deployment.tenant_id.shared().clone(), graph.id().into());
    execution.state.tables.latest_decision_requirements.get(&name).map(|latest| (*latest).clone())
}

fn latest_decision(execution: &Execution<'_>, tenant: &Text, id: &str) -> Option<DecisionValue> {
    let tables = &execution.state.tables;
    let latest = tables.latest_decisions.get(&(tenant.shared().clone(), id.into()))?;
    tables.decisions.get(&latest.key.raw()).map(|row| row.value.clone())
}

/// The versions that a graph and its decisions get in the deployment, or have already if nothing is new.
pub(super) fn version(
    execution: &mut Execution<'_>,
    deployed: &mut DeploymentValue,
    graph: &DecisionRequirementsGraph,
    resource: usize,
    is_new: bool,
) {
    let resource = &deployed.resources[resource];
    let latest = latest_graph(execution, deployed, graph);
    let (key, version) = match latest {
        Some(latest) if !is_new => (latest.key, latest.version),
        latest => (execution.state.next_key(), latest.map_or(0, |latest| latest.version) + 1),
    };
    let metadata = DecisionRequirementsMetadata {
        decision_requirements_id: graph.id().into(),
        decision_requirements_name: graph.name().into(),
        decision_requirements_version: version,
        decision_requirements_key: key,
        namespace: graph.namespace().into(),
        resource_name: resource.resource_name.clone(),
        checksum: checksum(&resource.resource),
        duplicate: !is_new,
        tenant_id: deployed.tenant_id.clone(),
    };
    deployed.decision_requirements_metadata.push(metadata);
    for decision in graph.decisions() {
        let latest = latest_decision(execution, &deployed.tenant_id, decision.id);
        let value = match latest {
            Some(latest) if !is_new => DecisionValue { duplicate: true, ..latest },
            latest => DecisionValue {
                decision_id: decision.id.into(),
                decision_name: decision.name.into(),
                version: latest.map_or(0, |latest| latest.version) + 1,
                version_tag: decision.version_tag.unwrap_or_default().into(),
                decision_key: execution.state.next_key(),
                decision_requirements_id: graph.id().into(),
                decision_requirements_key: key,
                duplicate: false,
                deployment_key: deployed.deployment_key,
                tenant_id: deployed.tenant_id.clone(),
            },
        };
        deployed.decisions_metadata.push(value);
    }
}

/// The new graphs, each followed by its decisions.
pub(super) fn emit(execution: &mut Execution<'_>, deployment: &DeploymentValue) {
    let resources = Resources::of(deployment);
    for metadata in deployment.decision_requirements_metadata.iter().filter(|metadata| !metadata.duplicate) {
        let key = metadata.decision_requirements_key;
        let resource = resources.find(&metadata.resource_name, &metadata.checksum);
        let Some(resource) = resource else { continue };
        let value = DecisionRequirementsValue { metadata: metadata.clone(), resource: resource.resource.clone() };
        let created = Payload::DecisionRequirements(DecisionRequirementsIntent::Created, Box::new(value));
        execution.emit(key, created);
        emit_decisions(execution, deployment, key);
    }
}

fn emit_decisions(execution: &mut Execution<'_>, deployment: &DeploymentValue, graph: Key) {
    for decision in deployment.decisions_metadata.iter().filter(|value| value.decision_requirements_key == graph) {
        let created = Payload::Decision(DecisionIntent::Created, Box::new(decision.clone()));
        execution.emit(decision.decision_key, created);
    }
}
