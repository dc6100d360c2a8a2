//! `osmia deploy` and `delete`.

use std::path::PathBuf;

use clap::Args;
use gateway_interface::{
    DecisionMetadata, DecisionRequirementsMetadata, DeleteResourceRequest, DeployResourceRequest, Deployment,
    FormMetadata, ProcessMetadata, Resource, deployment,
};
use serde_json::{Value, json};

use super::action::Action;
use crate::client::{Client, Outcome};
use crate::models::{self, Model};
use crate::output::{Output, key};

#[derive(Debug, Args)]
pub(crate) struct Deploy {
    /// Files, directories with all the .bpmn, .dmn, .form and .rpa files in them, or - for one model on standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Name of the model on standard input, which determines its kind.
    #[arg(long, value_name = "NAME", default_value = "process.bpmn")]
    name: String,
}

impl Action for Deploy {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let resource = |model: Model| Resource { name: model.name, content: model.content.into() };
        let resources = models::read(&self.files, &self.name)?.into_iter().map(resource).collect();
        let request = DeployResourceRequest { resources, tenant_id: String::new() };
        let response = client.gateway.deploy_resource(client.request(request)).await?.into_inner();
        let described: Vec<(String, Value)> = response.deployments.iter().filter_map(describe).collect();
        let text = described.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("\n");
        let json = || {
            json!({
                "deploymentKey": key(response.key),
                "tenantId": response.tenant_id,
                "deployments": described.iter().map(|(_, json)| json.clone()).collect::<Vec<_>>(),
            })
        };
        Ok(output.say(text, json)?)
    }
}

/// What was deployed, for people and as JSON.
fn describe(deployed: &Deployment) -> Option<(String, Value)> {
    Some(match deployed.metadata.as_ref()? {
        deployment::Metadata::Process(process) => describe_process(process),
        deployment::Metadata::Decision(decision) => describe_decision(decision),
        deployment::Metadata::DecisionRequirements(graph) => describe_requirements(graph),
        deployment::Metadata::Form(form) => describe_form(form),
    })
}

fn describe_process(process: &ProcessMetadata) -> (String, Value) {
    let ProcessMetadata { bpmn_process_id: id, version, process_definition_key, resource_name, tenant_id } = process;
    let text = format!("process {id} version {version} key {process_definition_key} from {resource_name}");
    let json = json!({ "processDefinition": {
        "processDefinitionId": id,
        "processDefinitionVersion": version,
        "processDefinitionKey": key(*process_definition_key),
        "resourceName": resource_name,
        "tenantId": tenant_id,
    }});
    (text, json)
}

fn describe_decision(decision: &DecisionMetadata) -> (String, Value) {
    let text =
        format!("decision {} version {} key {}", decision.dmn_decision_id, decision.version, decision.decision_key);
    let json = json!({ "decisionDefinition": {
        "decisionDefinitionId": decision.dmn_decision_id,
        "name": decision.dmn_decision_name,
        "version": decision.version,
        "decisionDefinitionKey": key(decision.decision_key),
        "decisionRequirementsId": decision.dmn_decision_requirements_id,
        "decisionRequirementsKey": key(decision.decision_requirements_key),
        "tenantId": decision.tenant_id,
    }});
    (text, json)
}

fn describe_requirements(graph: &DecisionRequirementsMetadata) -> (String, Value) {
    let text = format!(
        "decisions {} version {} key {} from {}",
        graph.dmn_decision_requirements_id, graph.version, graph.decision_requirements_key, graph.resource_name
    );
    let json = json!({ "decisionRequirements": {
        "decisionRequirementsId": graph.dmn_decision_requirements_id,
        "decisionRequirementsName": graph.dmn_decision_requirements_name,
        "version": graph.version,
        "decisionRequirementsKey": key(graph.decision_requirements_key),
        "resourceName": graph.resource_name,
        "tenantId": graph.tenant_id,
    }});
    (text, json)
}

fn describe_form(form: &FormMetadata) -> (String, Value) {
    let text =
        format!("form {} version {} key {} from {}", form.form_id, form.version, form.form_key, form.resource_name);
    let json = json!({ "form": {
        "formId": form.form_id,
        "version": form.version,
        "formKey": key(form.form_key),
        "resourceName": form.resource_name,
        "tenantId": form.tenant_id,
    }});
    (text, json)
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Key of the resource: a process definition, for example.
    key: i64,
}

impl Action for Delete {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = DeleteResourceRequest { resource_key: self.key, operation_reference: None, delete_history: None };
        client.gateway.delete_resource(client.request(request)).await?;
        Ok(output.say(format_args!("resource {} is deleted", self.key), || json!({ "resourceKey": key(self.key) }))?)
    }
}
