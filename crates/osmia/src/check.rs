//! `osmia check`: files are deployed to an engine in memory, so what is said here is what a node says.

use std::path::PathBuf;

use clap::Args;
use engine::{Engine, EngineOptions, Output};
use protocol::{
    Command, CommandBatch, DeploymentIntent, DeploymentResource, DeploymentValue, Key, PartitionId, Payload, Request,
};

use crate::Outcome;
use crate::models::{self, Model};
use crate::output::print_line;

/// What to check.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Files that are to be deployed together, directories with all the models in them, or - for one model on standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Name of the model on standard input, which tells its kind.
    #[arg(long, value_name = "NAME", default_value = "process.bpmn")]
    name: String,
}

/// Prints what the files hold, or fails with all that is wrong with them.
pub(crate) fn run(arguments: &CheckArguments) -> Outcome {
    let deployed = deploy(models::read(&arguments.files, &arguments.name)?)?;
    for process in &deployed.processes_metadata {
        print_line(format_args!("process {} in {}", process.bpmn_process_id, process.resource_name))?;
    }
    for graph in &deployed.decision_requirements_metadata {
        print_line(format_args!("decisions {} in {}", graph.decision_requirements_id, graph.resource_name))?;
    }
    for form in &deployed.form_metadata {
        print_line(format_args!("form {} in {}", form.form_id, form.resource_name))?;
    }
    for resource in &deployed.resource_metadata {
        print_line(format_args!("resource {} in {}", resource.resource_id, resource.resource_name))?;
    }
    Ok(())
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
        (Some(rejection), _) => Err(rejection.reason.to_string().into()),
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
        let wrong = process.replace("zeebe:taskDefinition", "zeebe:taskDefinitoin");
        let refusal = check("demo.bpmn", &wrong).unwrap_err();
        assert!(refusal.contains("demo.bpmn") && refusal.contains("taskDefinitoin"), "{refusal}");
        assert!(check("demo.txt", process).is_err());
    }
}
