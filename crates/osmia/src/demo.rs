//! `--demo`: a small process that always runs, so that a newcomer has something to see. It uses the public interface
//! only, like any client.

use std::time::Duration;

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::{
    CompleteJobRequest, CreateProcessInstanceRequest, DeployResourceRequest, Resource, StreamActivatedJobsRequest,
};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::output::Output;

const PROCESS: &str = include_str!("demo.bpmn");
const PROCESS_ID: &str = "demo-order";
const FILE: &str = "demo-order.bpmn";
/// The job types of the process and how long their work takes.
const WORK: [(&str, Duration); 3] = [
    ("demo-check-stock", Duration::from_millis(300)),
    ("demo-charge-card", Duration::from_millis(700)),
    ("demo-reorder", Duration::from_millis(1500)),
];
const PAUSE: Duration = Duration::from_secs(1);
const JOB_TIMEOUT_MILLISECONDS: i64 = 30_000;

/// Deploys the process, then starts its client and workers in the background. They end with what is returned.
pub(crate) async fn start(
    address: &str,
    output: &Output,
) -> Result<JoinSet<()>, Box<dyn std::error::Error + Send + Sync>> {
    let channel = Endpoint::from_shared(address.to_owned())?.connect().await?;
    let mut gateway = GatewayClient::new(channel);
    let resource = Resource { name: FILE.to_owned(), content: PROCESS.into() };
    let request = DeployResourceRequest { resources: vec![resource], tenant_id: String::new() };
    gateway.deploy_resource(request).await?;
    let mut clients = JoinSet::new();
    for (job_type, delay) in WORK {
        clients.spawn(work(gateway.clone(), job_type, delay));
    }
    clients.spawn(create(gateway));
    // As with the line that the node is ready: it works without a reader too.
    let job_types = WORK.map(|(job_type, _)| job_type);
    let text = format!(
        "The demo creates an instance of '{PROCESS_ID}' every second and completes its jobs ({}).",
        job_types.join(", ")
    );
    let _ = output.say(&text, || json!({ "message": text, "processDefinitionId": PROCESS_ID, "jobTypes": job_types }));
    Ok(clients)
}

/// An order every second; every fourth is for something that is out of stock.
async fn create(mut gateway: GatewayClient<Channel>) {
    let mut interval = tokio::time::interval(PAUSE);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for order in 1u64.. {
        interval.tick().await;
        let request = CreateProcessInstanceRequest {
            bpmn_process_id: PROCESS_ID.to_owned(),
            version: -1,
            variables: format!("{{\"order\":{order},\"amount\":{}}}", 10 + order % 90),
            ..CreateProcessInstanceRequest::default()
        };
        if let Err(status) = gateway.create_process_instance(request).await {
            tracing::warn!(%status, "the demo cannot create an instance");
        }
    }
}

/// A worker: opens its stream again whenever it ends.
async fn work(gateway: GatewayClient<Channel>, job_type: &'static str, delay: Duration) {
    loop {
        if let Err(status) = stream(gateway.clone(), job_type, delay).await {
            tracing::debug!(%status, job_type, "the stream of a demo worker ended");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn stream(mut gateway: GatewayClient<Channel>, job_type: &str, delay: Duration) -> Result<(), Status> {
    let request = StreamActivatedJobsRequest {
        r#type: job_type.to_owned(),
        worker: "demo".to_owned(),
        timeout: JOB_TIMEOUT_MILLISECONDS,
        ..StreamActivatedJobsRequest::default()
    };
    let mut jobs = gateway.stream_activated_jobs(request).await?.into_inner();
    let mut stocked = 0u64;
    while let Some(job) = jobs.message().await? {
        stocked += 1;
        let variables = format!("{{\"inStock\":{}}}", !stocked.is_multiple_of(4));
        let mut gateway = gateway.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let request = CompleteJobRequest { job_key: job.key, variables, result: None };
            if let Err(status) = gateway.complete_job(request).await {
                tracing::debug!(%status, key = job.key, "the demo cannot complete a job");
            }
        });
    }
    Ok(())
}
