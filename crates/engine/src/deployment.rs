//! DEPLOYMENT CREATE: resources become versions of processes, decisions and forms, here and on every other partition.

mod checksum;
mod decisions;
mod documents;

use self::checksum::checksum;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpmn::Deployed;
use bpmn::model::ExecutableProcess;
use dmn::DecisionRequirementsGraph;
use documents::Document;
use protocol::{
    Command, DeploymentIntent, DeploymentResource, DeploymentValue, Key, Payload, ProcessIntent, ProcessMetadata,
    ProcessValue, Rejection, Text,
};

use crate::execution::{Execution, Outcome};
use crate::name::{start_of, too_long};
use crate::payload_bytes::deployment_bytes;
use crate::{conditional, distribution, message, routing, signal, timer};

/// Bytes of all resources of a deployment: it must fit a message.
const DEPLOYMENT_BYTES_MAX: usize = 4 << 20;
/// Resources of a deployment.
const RESOURCES_MAX: usize = 1_000;
/// Bytes of the processes of a deployment, where each has the whole file that it is in: so each is kept.
const PROCESS_BYTES_MAX: usize = 32 << 20;

pub(crate) fn create(execution: &mut Execution<'_>, command: &Command, value: &DeploymentValue) -> Outcome {
    if command.source.is_some() {
        accept_distributed(execution, command.key, value);
        return Ok(());
    }
    check_resources(execution, value)?;
    let key = execution.state.next_key();
    let Found { processes, compiled, graphs, documents } = read_resources(execution, value)?;
    // What is deployed together is versioned together, so that it can be called as one.
    let is_new = processes
        .iter()
        .any(|(process, resource)| duplicate_of(execution, value, process, *resource).is_none())
        || graphs.iter().any(|(graph, resource)| !decisions::is_duplicate(execution, value, graph, *resource))
        || documents.iter().any(|(document, resource)| !documents::is_duplicate(execution, value, document, *resource));
    let mut deployed = DeploymentValue { deployment_key: key, awaiting: execution.request, ..value.clone() };
    for (process, resource) in processes {
        let duplicate = if is_new { None } else { duplicate_of(execution, value, &process, resource) };
        let metadata = duplicate.unwrap_or_else(|| new_version(execution, value, key, &process, resource));
        deployed.processes_metadata.push(metadata);
    }
    for (graph, resource) in graphs {
        decisions::version(execution, &mut deployed, &graph, resource, is_new);
    }
    for (document, resource) in documents {
        documents::version(execution, &mut deployed, &document, resource, is_new);
    }
    check_size(execution, &deployed)?;
    replace_start_events(execution, &deployed, compiled)?;
    decisions::emit(execution, &deployed);
    documents::emit(execution, &deployed);
    let payload = Payload::Deployment(DeploymentIntent::Created, Box::new(deployed.clone()));
    execution.emit(key, payload.clone());
    if is_new && routing::has_other_partitions(execution) {
        distribution::check_distributions(execution)?;
        // The deploying client is answered when every partition has it.
        distribution::start(execution, key, Payload::Deployment(DeploymentIntent::Create, Box::new(deployed)));
    } else {
        execution.reply(key, payload);
    }
    Ok(())
}

/// What goes to other partitions must fit their log, with everything that is said of each process and decision.
fn check_size(execution: &Execution<'_>, deployed: &DeploymentValue) -> Result<(), Rejection> {
    let bytes = deployment_bytes(deployed) as u64;
    // The envelope of the command is counted where it is sent.
    let bytes_max = execution.limits.outbox_command_bytes_max.saturating_sub(1_000);
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Rejection::invalid_argument(format!(
        "Expected the resources of a deployment to have at most {bytes_max} bytes together with the names of their {} processes \
         and {} decisions, but they have about {bytes}; deploy them one by one, or choose shorter ids",
        deployed.processes_metadata.len(),
        deployed.decisions_metadata.len()
    )))
}

/// Another partition decided versions and keys; here they only become true.
fn accept_distributed(execution: &mut Execution<'_>, key: Key, value: &DeploymentValue) {
    emit_processes(execution, value, compile_deployed(value));
    decisions::emit(execution, value);
    documents::emit(execution, value);
    execution.emit(key, Payload::Deployment(DeploymentIntent::Created, Box::new(value.clone())));
}

/// Every partition has the deployment: the waiting client is answered.
pub(crate) fn fully_distributed(execution: &mut Execution<'_>, key: Key, value: &DeploymentValue) {
    execution.emit(key, Payload::Deployment(DeploymentIntent::FullyDistributed, Box::new(value.clone())));
    if let Some(request) = value.awaiting {
        execution.reply_to(request, key, Payload::Deployment(DeploymentIntent::Created, Box::new(value.clone())));
    }
}

/// As [`emit_processes`], where the timers of start events are kept: on the partition that decided the versions.
fn replace_start_events(
    execution: &mut Execution<'_>,
    deployment: &DeploymentValue,
    compiled: CompiledProcesses,
) -> Outcome {
    let new = || deployment.processes_metadata.iter().filter(|metadata| !metadata.duplicate);
    for metadata in new() {
        if let Some(previous) = latest(execution, metadata) {
            timer::start_event::close(execution, previous);
        }
    }
    emit_processes(execution, deployment, compiled);
    for metadata in new() {
        let Some(process) = execution.state.process(metadata.process_definition_key) else { continue };
        let timers = timer::start_event::prepare(execution, &process)?;
        timer::start_event::open(execution, metadata, timers);
    }
    Ok(())
}

/// The newest version of the process before this one.
fn latest(execution: &Execution<'_>, metadata: &ProcessMetadata) -> Option<Key> {
    let name = (metadata.tenant_id.shared().clone(), metadata.bpmn_process_id.shared().clone());
    execution.state.tables.latest_processes.get(&name).map(|latest| latest.key)
}

/// What another partition found valid, each file read once for all of its processes.
fn compile_deployed(deployment: &DeploymentValue) -> CompiledProcesses {
    let processes = deployment.processes_metadata.iter().filter(|metadata| !metadata.duplicate);
    let files: BTreeSet<_> = processes.map(|metadata| (&metadata.resource_name, &metadata.checksum)).collect();
    let resources = Resources::of(deployment);
    let resources = files.into_iter().filter_map(|(name, checksum)| resources.find(name, checksum));
    let parsed = resources.flat_map(|resource| bpmn::parse_deployed(&resource.resource_name, &resource.resource));
    parsed.flatten().map(|process| (process.id.clone(), process)).collect()
}

fn emit_processes(execution: &mut Execution<'_>, deployment: &DeploymentValue, mut compiled: CompiledProcesses) {
    let resources = Resources::of(deployment);
    for metadata in deployment.processes_metadata.iter().filter(|metadata| !metadata.duplicate) {
        let Some(resource) = resources.find(&metadata.resource_name, &metadata.checksum) else { continue };
        if let Some(previous) = latest(execution, metadata) {
            message::start_event::close(execution, previous);
            signal::start_event::close(execution, previous);
            conditional::start_event::close(execution, previous);
        }
        let value = ProcessValue { metadata: metadata.clone(), resource: resource.resource.clone() };
        execution.emit(metadata.process_definition_key, Payload::Process(ProcessIntent::Created, Box::new(value)));
        if let Some(process) = compiled.remove(metadata.bpmn_process_id.as_str()) {
            execution.state.keep_process(metadata.process_definition_key, process);
        }
        if let Some(process) = execution.state.process(metadata.process_definition_key) {
            message::start_event::open(execution, metadata, &process);
            signal::start_event::open(execution, metadata, &process);
            conditional::start_event::open(execution, metadata, &process);
        }
    }
}

fn check_resources(execution: &Execution<'_>, value: &DeploymentValue) -> Result<(), Rejection> {
    if value.resources.is_empty() {
        return Err(Rejection::invalid_argument("Expected to deploy at least one resource, but none given"));
    }
    if value.resources.len() > RESOURCES_MAX {
        return Err(Rejection::invalid_argument(format!(
            "Expected to deploy at most {RESOURCES_MAX} resources together, but {} were given; deploy them one by one",
            value.resources.len()
        )));
    }
    let bytes: usize = value.resources.iter().map(|resource| resource.resource.len()).sum();
    if bytes > DEPLOYMENT_BYTES_MAX {
        return Err(Rejection::invalid_argument(format!(
            "Expected to deploy resources of at most {DEPLOYMENT_BYTES_MAX} bytes together, but they have {bytes}; \
             deploy them one by one"
        )));
    }
    for resource in &value.resources {
        let name = &resource.resource_name;
        if name.is_empty() {
            return Err(Rejection::invalid_argument(
                "Expected to deploy resources with names, but the name of one is blank; name it like 'order.bpmn'",
            ));
        }
        if let Some(but) = too_long(name, execution.limits.name_bytes_max) {
            let start = start_of(name);
            return Err(Rejection::invalid_argument(format!(
                "Expected the names of resources to have {but}: '{start}…'; deploy the resource under a shorter name"
            )));
        }
    }
    Ok(())
}

/// The resources of a deployment by what their metadata say of them. Several may have the same name, as on the reference;
/// the ids in those with the same content too would be the same, and are refused.
pub(super) struct Resources<'a>(BTreeMap<(&'a Text, Arc<[u8]>), &'a DeploymentResource>);

impl<'a> Resources<'a> {
    pub fn of(deployment: &'a DeploymentValue) -> Self {
        let resources = deployment.resources.iter();
        Resources(resources.map(|file| ((&file.resource_name, checksum(&file.resource)), file)).collect())
    }

    pub fn find(&self, name: &'a Text, checksum: &Arc<[u8]>) -> Option<&'a DeploymentResource> {
        self.0.get(&(name, checksum.clone())).copied()
    }
}

/// BPMN process id and version tag.
type Process = (Arc<str>, Option<Arc<str>>);

/// Compiled processes by their ids, which are unique within a deployment.
type CompiledProcesses = BTreeMap<Arc<str>, ExecutableProcess>;

/// What the resources of a deployment hold, each with the index of its resource.
struct Found {
    /// Executable processes.
    processes: Vec<(Process, usize)>,
    compiled: CompiledProcesses,
    /// Graphs of decisions.
    graphs: Vec<(DecisionRequirementsGraph, usize)>,
    /// Forms, and what is only kept.
    documents: Vec<(Document, usize)>,
}

/// What all resources hold; nothing when any resource is wrong.
fn read_resources(execution: &Execution<'_>, value: &DeploymentValue) -> Result<Found, Rejection> {
    let (mut files, mut graphs, mut documents, mut problems) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, resource) in value.resources.iter().enumerate() {
        let name = resource.resource_name.as_str();
        match resource_type(name)? {
            ResourceType::Bpmn => match bpmn::parse(name, &resource.resource) {
                Ok(processes) => files.push((index, processes)),
                Err(report) => problems.push(report.paragraph()),
            },
            ResourceType::Dmn => match dmn::parse(&resource.resource) {
                Ok(graph) => graphs.push((graph, index)),
                Err(report) => problems.push(decisions::paragraph(name, &report)),
            },
            ResourceType::Document(kind) => match documents::read(kind, resource) {
                Ok(document) => documents.push((document, index)),
                Err(problem) => problems.push((vec![problem], 0)),
            },
        }
    }
    let processes: BTreeSet<&str> =
        files.iter().flat_map(|(_, processes)| processes).map(|process| &*process.id).collect();
    let decisions: BTreeSet<&str> =
        graphs.iter().flat_map(|(graph, _)| graph.decisions()).map(|decision| decision.id).collect();
    let forms = documents.iter().filter(|(document, _)| document.kind == documents::Kind::Form);
    let forms: BTreeSet<&str> = forms.map(|(document, _)| document.id.as_str()).collect();
    let is_deployed = |what: Deployed<'_>| match what {
        Deployed::Process(id) => processes.contains(id),
        Deployed::Decision(id) => decisions.contains(id),
        Deployed::Form(id) => forms.contains(id),
    };
    for (index, processes) in &files {
        let name = value.resources[*index].resource_name.as_str();
        if let Err(report) = bpmn::check_deployment_bindings(name, processes, is_deployed) {
            problems.push(report.paragraph());
        }
    }
    if !problems.is_empty() {
        return Err(Rejection::invalid_argument(bpmn::render_paragraphs(problems)));
    }
    let mut processes: Vec<(Process, usize)> = Vec::new();
    let mut compiled = CompiledProcesses::new();
    for (index, found) in files {
        processes.extend(found.iter().map(|process| ((process.id.clone(), process.version_tag.clone()), index)));
        compiled.extend(found.into_iter().map(|process| (process.id.clone(), process)));
    }
    check_processes(execution, value, &processes)?;
    decisions::check(execution, value, &graphs)?;
    documents::check(execution, value, &documents)?;
    Ok(Found { processes, compiled, graphs, documents })
}

/// What holds for the processes of a deployment together. Each comes with the index of its resource.
fn check_processes(
    execution: &Execution<'_>,
    value: &DeploymentValue,
    found: &[(Process, usize)],
) -> Result<(), Rejection> {
    let mut resources_by_id = BTreeMap::new();
    let mut bytes = 0_usize;
    for ((id, _), index) in found {
        let resource = &value.resources[*index];
        if let Some(other) = resources_by_id.insert(id, &resource.resource_name) {
            return Err(Rejection::invalid_argument(format!(
                "Expected to deploy new resources, but encountered the following errors:\n\
                 Duplicated process id in resources '{other}' and '{}'",
                resource.resource_name
            )));
        }
        if id.len() > execution.limits.name_bytes_max {
            return Err(Rejection::invalid_argument(format!(
                "Expected process ids of at most {} bytes, but one of resource '{}' has {}",
                execution.limits.name_bytes_max,
                resource.resource_name,
                id.len()
            )));
        }
        bytes = bytes.saturating_add(resource.resource.len());
        if bytes > PROCESS_BYTES_MAX {
            return Err(Rejection::invalid_argument(format!(
                "Expected the {} processes of the deployment to have at most {PROCESS_BYTES_MAX} bytes together, where each \
                 has those of its whole resource, but with '{id}' of resource '{}' there are {bytes}; put fewer processes \
                 into each resource",
                found.len(),
                resource.resource_name
            )));
        }
    }
    Ok(())
}

enum ResourceType {
    Bpmn,
    Dmn,
    Document(documents::Kind),
}

fn resource_type(name: &str) -> Result<ResourceType, Rejection> {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "bpmn" | "xml" => Ok(ResourceType::Bpmn),
        "dmn" => Ok(ResourceType::Dmn),
        "form" => Ok(ResourceType::Document(documents::Kind::Form)),
        "rpa" => Ok(ResourceType::Document(documents::Kind::Resource)),
        _ => Err(Rejection::invalid_argument(format!(
            "Expected to deploy new resources, but encountered the following errors:\n\
             '{name}': unknown resource type; the name must end in .bpmn, .xml, .dmn, .form or .rpa"
        ))),
    }
}

/// The newest version of a process, when the deployment would change nothing.
fn duplicate_of(
    execution: &Execution<'_>,
    deployment: &DeploymentValue,
    (id, _): &Process,
    resource: usize,
) -> Option<ProcessMetadata> {
    let resource = &deployment.resources[resource];
    let tables = &execution.state.tables;
    let latest = tables.latest_processes.get(&(deployment.tenant_id.shared().clone(), id.clone()))?;
    let row = tables.processes.get(&latest.key.raw())?;
    let is_same = row.metadata.resource_name == resource.resource_name && *row.resource == *resource.resource;
    is_same.then(|| ProcessMetadata { duplicate: true, ..row.metadata.clone() })
}

/// The next version of a process.
fn new_version(
    execution: &mut Execution<'_>,
    deployment: &DeploymentValue,
    deployment_key: Key,
    (id, version_tag): &Process,
    resource: usize,
) -> ProcessMetadata {
    let resource = &deployment.resources[resource];
    let tables = &execution.state.tables;
    let name = (deployment.tenant_id.shared().clone(), id.clone());
    let latest = tables.latest_processes.get(&name);
    // The number of a deleted version is not given again.
    let deleted = tables.deleted_versions.get(&name).map_or(0, |deleted| deleted.version);
    let version = latest.map_or(0, |latest| latest.version).max(deleted) + 1;
    ProcessMetadata {
        bpmn_process_id: id.into(),
        version,
        version_tag: version_tag.as_ref().map(Text::from).unwrap_or_default(),
        process_definition_key: execution.state.next_key(),
        resource_name: resource.resource_name.clone(),
        checksum: checksum(&resource.resource),
        duplicate: false,
        deployment_key,
        tenant_id: deployment.tenant_id.clone(),
    }
}
