//! Commands that talk to a running gateway.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::partition::{PartitionBrokerHealth, PartitionBrokerRole};
use gateway_interface::*;
use serde_json::json;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

use crate::arguments::{Activate, Create, Migrate, Modify, Publish, Server, Source};
use crate::configuration::Environment;

/// Where a client looks for the gateway; the first one that is set wins.
const ADDRESS_VARIABLES: [&str; 4] = ["OSMIA_ADDRESS", "ZEEBE_ADDRESS", "CAMUNDA_GRPC_ADDRESS", "ZEEBE_GRPC_ADDRESS"];
const DEFAULT_ADDRESS: &str = "127.0.0.1:26500";
/// Time that a client allows beyond the time limit given to the server.
const SLACK: Duration = Duration::from_secs(10);

/// Why a client command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("'{address}' is not an address. Use host:port or a URL like http://127.0.0.1:26500.")]
    Address { address: String },
    #[error("Cannot connect to {address}: {reason}. Is the server running, and is this its gRPC port?")]
    Connect { address: String, reason: String },
    #[error("Cannot read {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Evaluation(String),
    #[error("{}", describe(.0))]
    Refused(#[from] Status),
}

fn describe(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}

type Outcome<T = ()> = Result<T, ClientError>;

/// The address to use: the flag, else the environment, else this machine.
pub(crate) fn address(flag: Option<&str>, environment: &Environment) -> String {
    let configured = || ADDRESS_VARIABLES.iter().find_map(|name| environment.get(name));
    let address = flag.or_else(configured).unwrap_or(DEFAULT_ADDRESS);
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

/// A connected client.
pub(crate) struct Client {
    gateway: GatewayClient<Channel>,
    timeout: Duration,
}

impl Client {
    pub(crate) async fn connect(server: &Server) -> Outcome<Client> {
        let address = address(server.address.as_deref(), &Environment::of_process());
        let mut endpoint =
            Endpoint::from_shared(address.clone()).map_err(|_| ClientError::Address { address: address.clone() })?;
        if address.starts_with("https://") {
            let mut tls = ClientTlsConfig::new();
            if let Some(path) = &server.ca_certificate {
                let pem = std::fs::read(path).map_err(|source| ClientError::File { path: path.clone(), source })?;
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            endpoint = endpoint.tls_config(tls).map_err(|error| connect_error(&address, &error))?;
        }
        let channel = endpoint
            .connect_timeout(server.timeout)
            .connect()
            .await
            .map_err(|error| connect_error(&address, &error))?;
        let gateway = GatewayClient::new(channel).max_decoding_message_size(usize::MAX);
        Ok(Client { gateway, timeout: server.timeout })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout + SLACK);
        request
    }

    pub(crate) async fn topology(mut self) -> Outcome {
        let topology = self.gateway.topology(self.request(TopologyRequest {})).await?.into_inner();
        println!(
            "cluster {}: {} node(s), {} partition(s), {} replica(s) each, version {}",
            topology.cluster_id,
            topology.cluster_size,
            topology.partitions_count,
            topology.replication_factor,
            topology.gateway_version
        );
        for broker in &topology.brokers {
            println!("node {} at {}:{}, version {}", broker.node_id, broker.host, broker.port, broker.version);
            for partition in &broker.partitions {
                let role = name(PartitionBrokerRole::try_from(partition.role));
                let health = name(PartitionBrokerHealth::try_from(partition.health));
                println!("  partition {}: {role}, {health}", partition.partition_id);
            }
        }
        Ok(())
    }

    pub(crate) async fn deploy(mut self, files: Vec<PathBuf>) -> Outcome {
        let read = |path: PathBuf| {
            let content = std::fs::read(&path).map_err(|source| ClientError::File { path: path.clone(), source })?;
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            Ok(Resource { name, content: content.into() })
        };
        let resources = files.into_iter().map(read).collect::<Outcome<Vec<_>>>()?;
        let request = self.request(DeployResourceRequest { resources, tenant_id: String::new() });
        let response = self.gateway.deploy_resource(request).await?.into_inner();
        for deployment in response.deployments {
            match deployment.metadata {
                Some(deployment::Metadata::Process(process)) => println!(
                    "process {} version {} key {} from {}",
                    process.bpmn_process_id, process.version, process.process_definition_key, process.resource_name
                ),
                Some(deployment::Metadata::Decision(decision)) => println!(
                    "decision {} version {} key {}",
                    decision.dmn_decision_id, decision.version, decision.decision_key
                ),
                Some(deployment::Metadata::DecisionRequirements(graph)) => println!(
                    "decisions {} version {} key {} from {}",
                    graph.dmn_decision_requirements_id,
                    graph.version,
                    graph.decision_requirements_key,
                    graph.resource_name
                ),
                Some(deployment::Metadata::Form(_)) | None => {}
            }
        }
        Ok(())
    }

    pub(crate) async fn create(mut self, create: Create) -> Outcome {
        let request = CreateProcessInstanceRequest {
            bpmn_process_id: create.id,
            version: create.version,
            variables: create.variables,
            start_instructions: create.start_before.into_iter().map(start_before).collect(),
            runtime_instructions: create.terminate_after.into_iter().map(terminate_after).collect(),
            ..CreateProcessInstanceRequest::default()
        };
        if create.with_result {
            let request = self.request(CreateProcessInstanceWithResultRequest {
                request: Some(request),
                request_timeout: milliseconds(self.timeout),
                fetch_variables: Vec::new(),
            });
            let response = self.gateway.create_process_instance_with_result(request).await?.into_inner();
            eprintln!("process instance {} is completed", response.process_instance_key);
            println!("{}", response.variables);
        } else {
            let response = self.gateway.create_process_instance(self.request(request)).await?.into_inner();
            println!(
                "process instance {} of {} version {}",
                response.process_instance_key, response.bpmn_process_id, response.version
            );
        }
        Ok(())
    }

    pub(crate) async fn activate(mut self, activate: Activate) -> Outcome {
        let request = self.request(ActivateJobsRequest {
            r#type: activate.job_type,
            worker: activate.worker,
            timeout: milliseconds(activate.lock),
            max_jobs_to_activate: activate.max,
            request_timeout: milliseconds(self.timeout),
            ..ActivateJobsRequest::default()
        });
        let mut responses = self.gateway.activate_jobs(request).await?.into_inner();
        while let Some(response) = responses.message().await? {
            for job in response.jobs {
                println!("{}", job_json(&job));
            }
        }
        Ok(())
    }

    pub(crate) async fn cancel(mut self, key: i64) -> Outcome {
        let request = CancelProcessInstanceRequest { process_instance_key: key, operation_reference: None };
        self.gateway.cancel_process_instance(self.request(request)).await?;
        Ok(())
    }

    pub(crate) async fn complete(mut self, key: i64, variables: String) -> Outcome {
        let request = CompleteJobRequest { job_key: key, variables, result: None };
        self.gateway.complete_job(self.request(request)).await?;
        Ok(())
    }

    pub(crate) async fn fail(mut self, key: i64, retries: i32, message: String, backoff: Duration) -> Outcome {
        let request = FailJobRequest {
            job_key: key,
            retries,
            error_message: message,
            retry_back_off: milliseconds(backoff),
            variables: String::new(),
        };
        self.gateway.fail_job(self.request(request)).await?;
        Ok(())
    }

    pub(crate) async fn throw_error(mut self, key: i64, code: String, message: String) -> Outcome {
        let request =
            ThrowErrorRequest { job_key: key, error_code: code, error_message: message, variables: String::new() };
        self.gateway.throw_error(self.request(request)).await?;
        Ok(())
    }

    pub(crate) async fn update_retries(mut self, key: i64, retries: i32) -> Outcome {
        let request = UpdateJobRetriesRequest { job_key: key, retries, operation_reference: None };
        self.gateway.update_job_retries(self.request(request)).await?;
        Ok(())
    }

    pub(crate) async fn set_variables(mut self, key: i64, variables: String, local: bool) -> Outcome {
        let request = SetVariablesRequest { element_instance_key: key, variables, local, operation_reference: None };
        self.gateway.set_variables(self.request(request)).await?;
        Ok(())
    }

    /// Prints the output, or fails with what went wrong.
    pub(crate) async fn evaluate(mut self, decision_id: String, variables: String) -> Outcome {
        let request = EvaluateDecisionRequest { decision_id, variables, ..EvaluateDecisionRequest::default() };
        let response = self.gateway.evaluate_decision(self.request(request)).await?.into_inner();
        if !response.failure_message.is_empty() {
            return Err(ClientError::Evaluation(response.failure_message));
        }
        println!("{}", response.decision_output);
        Ok(())
    }

    pub(crate) async fn publish(mut self, publish: Publish) -> Outcome {
        let request = self.request(PublishMessageRequest {
            name: publish.name,
            correlation_key: publish.correlation_key,
            time_to_live: milliseconds(publish.time_to_live),
            message_id: publish.message_id,
            variables: publish.variables,
            tenant_id: String::new(),
        });
        let response = self.gateway.publish_message(request).await?.into_inner();
        println!("message {}", response.key);
        Ok(())
    }

    pub(crate) async fn modify(mut self, modify: Modify) -> Outcome {
        let request = self.request(modification(modify));
        self.gateway.modify_process_instance(request).await?;
        Ok(())
    }

    pub(crate) async fn migrate(mut self, migrate: Migrate) -> Outcome {
        use migrate_process_instance_request::{MappingInstruction, MigrationPlan};
        let mapping =
            |(source_element_id, target_element_id)| MappingInstruction { source_element_id, target_element_id };
        let request = self.request(MigrateProcessInstanceRequest {
            process_instance_key: migrate.key,
            migration_plan: Some(MigrationPlan {
                target_process_definition_key: migrate.to,
                mapping_instructions: migrate.map.into_iter().map(mapping).collect(),
            }),
            operation_reference: None,
        });
        self.gateway.migrate_process_instance(request).await?;
        Ok(())
    }

    pub(crate) async fn delete(mut self, key: i64) -> Outcome {
        let request = DeleteResourceRequest { resource_key: key, operation_reference: None, delete_history: None };
        self.gateway.delete_resource(self.request(request)).await?;
        Ok(())
    }

    pub(crate) async fn resolve(mut self, key: i64) -> Outcome {
        let request = ResolveIncidentRequest { incident_key: key, operation_reference: None };
        self.gateway.resolve_incident(self.request(request)).await?;
        Ok(())
    }
}

fn start_before(element_id: String) -> ProcessInstanceCreationStartInstruction {
    ProcessInstanceCreationStartInstruction { element_id }
}

fn terminate_after(after_element_id: String) -> ProcessInstanceCreationRuntimeInstruction {
    use process_instance_creation_runtime_instruction::Instruction;
    let terminate = TerminateProcessInstanceInstruction { after_element_id };
    ProcessInstanceCreationRuntimeInstruction { instruction: Some(Instruction::Terminate(terminate)) }
}

fn modification(modify: Modify) -> ModifyProcessInstanceRequest {
    use modify_process_instance_request::*;
    let variables = || match modify.variables.as_str() {
        "" => Vec::new(),
        variables => vec![VariableInstruction { variables: variables.to_owned(), scope_id: String::new() }],
    };
    let activate = |element_id| ActivateInstruction {
        element_id,
        ancestor_element_instance_key: modify.ancestor,
        variable_instructions: variables(),
    };
    let terminate = |source| match source {
        Source::Key(element_instance_key) => TerminateInstruction { element_instance_key, ..Default::default() },
        Source::Element(element_id) => TerminateInstruction { element_id, ..Default::default() },
    };
    let movement = |(source, target_element_id)| {
        let instruction = MoveInstruction {
            target_element_id,
            ancestor_element_instance_key: modify.ancestor,
            variable_instructions: variables(),
            ..Default::default()
        };
        match source {
            Source::Key(source_element_instance_key) => MoveInstruction { source_element_instance_key, ..instruction },
            Source::Element(source_element_id) => MoveInstruction { source_element_id, ..instruction },
        }
    };
    ModifyProcessInstanceRequest {
        process_instance_key: modify.key,
        activate_instructions: modify.activate.into_iter().map(activate).collect(),
        terminate_instructions: modify.terminate.into_iter().map(terminate).collect(),
        move_instructions: modify.moves.into_iter().map(movement).collect(),
        operation_reference: None,
    }
}

fn connect_error(address: &str, error: &tonic::transport::Error) -> ClientError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    ClientError::Connect { address: address.to_owned(), reason: cause.to_string() }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The name of an enumeration's value as words in a sentence.
fn name<T: fmt::Debug, E>(value: Result<T, E>) -> String {
    value.map_or_else(|_| "unknown".to_owned(), |value| format!("{value:?}").to_lowercase())
}

fn job_json(job: &ActivatedJob) -> serde_json::Value {
    let object = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_else(|_| json!(text));
    json!({
        "key": job.key,
        "type": job.r#type,
        "processInstanceKey": job.process_instance_key,
        "bpmnProcessId": job.bpmn_process_id,
        "processDefinitionVersion": job.process_definition_version,
        "processDefinitionKey": job.process_definition_key,
        "elementId": job.element_id,
        "elementInstanceKey": job.element_instance_key,
        "customHeaders": object(&job.custom_headers),
        "worker": job.worker,
        "retries": job.retries,
        "deadline": job.deadline,
        "variables": object(&job.variables),
        "tenantId": job.tenant_id,
        "tags": job.tags,
    })
}
