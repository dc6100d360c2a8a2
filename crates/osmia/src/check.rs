//! `osmia check`: files are deployed to an engine in memory, so what is said here is what a node says.

use std::path::PathBuf;

use clap::Args;
use engine::{Engine, EngineOptions, Output};
use protocol::{
    Command, CommandBatch, DeploymentIntent, DeploymentResource, DeploymentValue, Key, PartitionId, Payload, Rejection,
    Request,
};
use serde_json::{Value, json};

use crate::models::{self, Model};
use crate::outcome::Outcome;
use crate::output;

/// What to check.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Files that are to be deployed together, directories with all the .bpmn, .dmn, .form and .rpa files in them, or - for one model on standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Name of the model on standard input, which tells its kind.
    #[arg(long, value_name = "NAME", default_value = "process.bpmn")]
    name: String,
    /// Print it as JSON, with the names that the REST API uses
    #[arg(long)]
    json: bool,
}

/// Why a node would not deploy the files.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.reason)]
pub(crate) struct Refused(pub Rejection);

/// Prints what the files hold, or fails with all that is wrong with them.
pub(crate) fn run(arguments: &CheckArguments) -> Outcome {
    let deployed = deploy(models::read(&arguments.files, &arguments.name)?)?;
    let (text, json): (Vec<String>, Vec<Value>) = describe(&deployed).into_iter().unzip();
    let output = output::Output::new(arguments.json);
    Ok(output.say(text.join("\n"), || json!({ "deployments": json }))?)
}

/// What would be deployed, for people and as JSON. Keys and versions are given by a node.
fn describe(deployed: &DeploymentValue) -> Vec<(String, Value)> {
    let mut described = Vec::new();
    for process in &deployed.processes_metadata {
        let (id, file) = (process.bpmn_process_id.as_str(), process.resource_name.as_str());
        let json = json!({ "processDefinition": { "processDefinitionId": id, "resourceName": file } });
        described.push((format!("process {id} in {file}"), json));
    }
    for graph in &deployed.decision_requirements_metadata {
        let (id, file) = (graph.decision_requirements_id.as_str(), graph.resource_name.as_str());
        let json = json!({ "decisionRequirements": { "decisionRequirementsId": id, "resourceName": file } });
        described.push((format!("decisions {id} in {file}"), json));
    }
    for form in &deployed.form_metadata {
        let (id, file) = (form.form_id.as_str(), form.resource_name.as_str());
        described.push((format!("form {id} in {file}"), json!({ "form": { "formId": id, "resourceName": file } })));
    }
    for resource in &deployed.resource_metadata {
        let (id, file) = (resource.resource_id.as_str(), resource.resource_name.as_str());
        let json = json!({ "resource": { "resourceId": id, "resourceName": file } });
        described.push((format!("resource {id} in {file}"), json));
    }
    described
}

fn deploy(models: Vec<Model>) -> Result<DeploymentValue, Box<dyn std::error::Error + Send + Sync>> {
    let resource =
        |model: Model| DeploymentResource { resource_name: model.name.as_str().into(), resource: model.content.into() };
    let value = DeploymentValue {
        resources: models.into_iter().map(resource).collect(),
        tenant_id: protocol::DEFAULT_TENANT.into(),
        ..DeploymentValue::default()
    };
    let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
    let request = Some(Request { node: 0, number: 1 });
    let batch = CommandBatch { timestamp: 0, commands: vec![Command { request, ..Command::new(Key::NONE, payload) }] };
    let mut output = Output::default();
    Engine::in_memory(EngineOptions::new(PartitionId(1), 1)).apply(1, &batch, &mut output)?;
    let reply = output.replies.into_iter().next().ok_or("Expected the engine to answer the check, but it did not.")?;
    match (reply.rejection, reply.payload) {
        (Some(rejection), _) => Err(Refused(rejection).into()),
        (None, Payload::Deployment(_, deployed)) => Ok(*deployed),
        (None, _) => Err("Expected the engine to answer the check with a deployment, but it did not.".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, content: &str) -> Result<DeploymentValue, String> {
        let model = Model { name: name.to_owned(), content: content.as_bytes().to_vec() };
        deploy(vec![model]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_is_checked_as_a_deployment_does() {
        let process = include_str!("demo.bpmn");
        let deployed = check("demo.bpmn", process).unwrap();
        assert_eq!(deployed.processes_metadata[0].bpmn_process_id.as_str(), "demo-order");
        let described =
            json!({ "processDefinition": { "processDefinitionId": "demo-order", "resourceName": "demo.bpmn" } });
        assert_eq!(describe(&deployed), [("process demo-order in demo.bpmn".to_owned(), described)]);
        let wrong = process.replace("zeebe:taskDefinition", "zeebe:taskDefinitoin");
        let refusal = check("demo.bpmn", &wrong).unwrap_err();
        assert!(refusal.contains("demo.bpmn") && refusal.contains("taskDefinitoin"), "{refusal}");
        assert!(check("demo.txt", process).is_err());
    }
}
