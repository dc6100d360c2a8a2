//! `osmia create`, `cancel`, `set-variables` and `migrate`.

use clap::Args;
use gateway_interface::{
    CancelProcessInstanceRequest, CreateProcessInstanceRequest, CreateProcessInstanceWithResultRequest,
    MigrateProcessInstanceRequest, ProcessInstanceCreationRuntimeInstruction, ProcessInstanceCreationStartInstruction,
    SetVariablesRequest, TerminateProcessInstanceInstruction, migrate_process_instance_request,
    process_instance_creation_runtime_instruction,
};
use serde_json::json;

use super::action::Action;
use super::modification::pair;
use crate::client::{Client, Outcome, milliseconds};
use crate::input::Variables;
use crate::output::{Output, document, key};

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// BPMN process id.
    #[arg(required_unless_present = "definition_key")]
    id: Option<String>,
    /// Key of the process definition, instead of an id and a version.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["id", "version"])]
    definition_key: Option<i64>,
    /// Variables: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
    /// Version of the process; the latest if none is given.
    #[arg(long)]
    version: Option<i32>,
    /// What the instance is called outside, an order number for example.
    #[arg(long, value_name = "ID")]
    business_id: Option<String>,
    /// Wait until the instance is completed and print its variables.
    #[arg(long)]
    with_result: bool,
    /// Start at this element instead of the start event; may be given several times.
    #[arg(long, value_name = "ELEMENT")]
    start_before: Vec<String>,
    /// End the instance after this element; may be given several times.
    #[arg(long, value_name = "ELEMENT")]
    terminate_after: Vec<String>,
}

impl Action for Create {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let creation = CreateProcessInstanceRequest {
            process_definition_key: self.definition_key.unwrap_or_default(),
            bpmn_process_id: self.id.unwrap_or_default(),
            version: self.version.unwrap_or(-1),
            variables: self.variables.into(),
            start_instructions: self.start_before.into_iter().map(start_before).collect(),
            runtime_instructions: self.terminate_after.into_iter().map(terminate_after).collect(),
            business_id: self.business_id,
            ..CreateProcessInstanceRequest::default()
        };
        if self.with_result {
            return create_with_result(client, creation, output).await;
        }
        let created = client.gateway.create_process_instance(client.request(creation)).await?.into_inner();
        let text = format!(
            "process instance {} of {} version {}",
            created.process_instance_key, created.bpmn_process_id, created.version
        );
        let json = || {
            json!({
                "processInstanceKey": key(created.process_instance_key),
                "processDefinitionKey": key(created.process_definition_key),
                "processDefinitionId": created.bpmn_process_id,
                "processDefinitionVersion": created.version,
                "tenantId": created.tenant_id,
                "businessId": created.business_id,
            })
        };
        Ok(output.say(text, json)?)
    }
}

/// Waits for the end of the instance and prints its variables; for people its key goes to standard error.
async fn create_with_result(mut client: Client, creation: CreateProcessInstanceRequest, output: &Output) -> Outcome {
    let request = CreateProcessInstanceWithResultRequest {
        request: Some(creation),
        request_timeout: milliseconds(client.timeout()),
        fetch_variables: Vec::new(),
    };
    let ended = client.gateway.create_process_instance_with_result(client.request(request)).await?.into_inner();
    let json = || {
        json!({
            "processInstanceKey": key(ended.process_instance_key),
            "processDefinitionKey": key(ended.process_definition_key),
            "processDefinitionId": ended.bpmn_process_id,
            "processDefinitionVersion": ended.version,
            "tenantId": ended.tenant_id,
            "businessId": ended.business_id,
            "variables": document(&ended.variables),
        })
    };
    output.note(format_args!("process instance {} is completed", ended.process_instance_key));
    Ok(output.say(&ended.variables, json)?)
}

fn start_before(element_id: String) -> ProcessInstanceCreationStartInstruction {
    ProcessInstanceCreationStartInstruction { element_id }
}

fn terminate_after(after_element_id: String) -> ProcessInstanceCreationRuntimeInstruction {
    use process_instance_creation_runtime_instruction::Instruction;
    let terminate = TerminateProcessInstanceInstruction { after_element_id };
    ProcessInstanceCreationRuntimeInstruction { instruction: Some(Instruction::Terminate(terminate)) }
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Key of the process instance.
    key: i64,
}

impl Action for Cancel {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = CancelProcessInstanceRequest { process_instance_key: self.key, operation_reference: None };
        client.gateway.cancel_process_instance(client.request(request)).await?;
        let json = || json!({ "processInstanceKey": key(self.key) });
        Ok(output.say(format_args!("process instance {} is being cancelled", self.key), json)?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct SetVariables {
    /// Key of the process instance or element instance.
    key: i64,
    /// The variables: a JSON object, @FILE, or - for standard input.
    variables: Variables,
    /// Set them in this scope only.
    #[arg(long)]
    local: bool,
}

impl Action for SetVariables {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = SetVariablesRequest {
            element_instance_key: self.key,
            variables: self.variables.into(),
            local: self.local,
            operation_reference: None,
        };
        client.gateway.set_variables(client.request(request)).await?;
        let json = || json!({ "elementInstanceKey": key(self.key) });
        Ok(output.say(format_args!("the variables of {} are set", self.key), json)?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Key of the process instance.
    pub key: i64,
    /// Key of the process definition to continue with.
    #[arg(long, value_name = "KEY")]
    to: i64,
    /// An element of the present definition and its place in the other; may be given several times.
    #[arg(long, required = true, value_name = "ELEMENT=ELEMENT", value_parser = pair)]
    pub map: Vec<(String, String)>,
}

impl Action for Migrate {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        use migrate_process_instance_request::{MappingInstruction, MigrationPlan};
        let mapping =
            |(source_element_id, target_element_id)| MappingInstruction { source_element_id, target_element_id };
        let request = MigrateProcessInstanceRequest {
            process_instance_key: self.key,
            migration_plan: Some(MigrationPlan {
                target_process_definition_key: self.to,
                mapping_instructions: self.map.into_iter().map(mapping).collect(),
            }),
            operation_reference: None,
        };
        client.gateway.migrate_process_instance(client.request(request)).await?;
        let json = || json!({ "processInstanceKey": key(self.key), "processDefinitionKey": key(self.to) });
        Ok(output.say(format_args!("process instance {} goes on with definition {}", self.key, self.to), json)?)
    }
}
