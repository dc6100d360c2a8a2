//! What cases do to a node.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::*;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::node::Addresses;

/// What became of a case: what the node said, or what is wrong with it.
pub(crate) type Verdict = Result<String, String>;
pub(crate) type Client = GatewayClient<Channel>;

/// The largest answer that cases take.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long a request of a case may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is said is shown so far.
const SHOWN_CHARACTERS: usize = 160;

/// A node, as a case sees it.
#[derive(Clone)]
pub(crate) struct Victim {
    pub addresses: Addresses,
    pub binary: PathBuf,
    client: Client,
    created: Arc<Mutex<Vec<i64>>>,
    deployed: Arc<Mutex<Vec<i64>>>,
}

impl Victim {
    pub async fn connect(addresses: &Addresses, binary: PathBuf) -> Result<Victim, String> {
        let client = client(&addresses.grpc).await?;
        let (created, deployed) = (Arc::default(), Arc::default());
        Ok(Victim { addresses: addresses.clone(), binary, client, created, deployed })
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A separate connection.
    pub async fn another_client(&self) -> Result<Client, String> {
        client(&self.addresses.grpc).await
    }

    pub async fn deploy(&self, name: &str, content: impl Into<Vec<u8>>) -> Result<(), Status> {
        self.deploy_all(vec![Resource { name: name.to_owned(), content: content.into().into() }]).await
    }

    pub async fn deploy_all(&self, resources: Vec<Resource>) -> Result<(), Status> {
        let request = DeployResourceRequest { resources, tenant_id: String::new() };
        let response = self.client().deploy_resource(request).await?.into_inner();
        let keys = response.deployments.iter().filter_map(|deployed| match deployed.metadata.as_ref() {
            Some(deployment::Metadata::Process(process)) => Some(process.process_definition_key),
            _ => None,
        });
        self.deployed.lock().expect("no case panics here").extend(keys);
        Ok(())
    }

    pub async fn create(&self, id: &str, variables: &str) -> Result<i64, Status> {
        let created = self.client().create_process_instance(creation(id, variables)).await?.into_inner();
        self.created.lock().expect("no case panics here").push(created.process_instance_key);
        Ok(created.process_instance_key)
    }

    /// Ends what the case left: its instances, and the start events of its processes.
    pub async fn clean_up(&self) {
        let created = std::mem::take(&mut *self.created.lock().expect("no case panics here"));
        let deployed = std::mem::take(&mut *self.deployed.lock().expect("no case panics here"));
        for process_instance_key in created.into_iter().take(1_000) {
            // Many have ended, and a node that is dead cancels nothing.
            let request = CancelProcessInstanceRequest { process_instance_key, operation_reference: None };
            let _ = self.client().cancel_process_instance(request).await;
        }
        for resource_key in deployed.into_iter().take(1_000) {
            let request = DeleteResourceRequest { resource_key, ..DeleteResourceRequest::default() };
            let _ = self.client().delete_resource(request).await;
        }
    }

    /// Incidents so far.
    pub fn incidents(&self) -> f64 {
        let sum = |sum: f64, more: f64| sum + more;
        self.addresses.metric("zeebe_incident_events_total{", "created", sum).unwrap_or_default()
    }

    /// Waits until there are more incidents than before.
    pub async fn has_incident(&self, before: f64) -> Verdict {
        while self.incidents() <= before {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok("incident".to_owned())
    }

    /// A model that must not be carried out: the deployment is refused, or the creation is, or an incident says why not.
    pub async fn stops(&self, id: &str, xml: impl Into<Vec<u8>>, variables: &str) -> Verdict {
        let before = self.incidents();
        if let Err(status) = self.deploy(&format!("{}.bpmn", short(id, 40)), xml).await {
            return refusal(&status);
        }
        match self.create(id, variables).await {
            Err(status) => refusal(&status),
            Ok(_) => self.has_incident(before).await,
        }
    }

    /// A model that may be large or long, and is carried out or refused, whichever; others do not notice.
    pub async fn bears(&self, id: &str, xml: impl Into<Vec<u8>>, variables: &str) -> Verdict {
        if let Err(status) = self.deploy(&format!("{}.bpmn", short(id, 40)), xml).await {
            return refusal(&status);
        }
        match self.create(id, variables).await {
            Err(status) => refusal(&status),
            Ok(_) => Ok(format!("begun, {}", self.comes_to_rest().await)),
        }
    }

    /// A model whose instances must end.
    pub async fn ends(&self, id: &str, xml: impl Into<Vec<u8>>, variables: &str) -> Verdict {
        self.deploy(&format!("{}.bpmn", short(id, 40)), xml).await.map_err(|status| wrong("deployed", &status))?;
        let request = CreateProcessInstanceWithResultRequest {
            request: Some(creation(id, variables)),
            request_timeout: 20_000,
            fetch_variables: Vec::new(),
        };
        let result = self.client().create_process_instance_with_result(request).await;
        result.map(|_| "ended".to_owned()).map_err(|status| wrong("ended", &status))
    }

    /// Waits a while for a node that has nothing to do but the ordinary instances; says whether it came to that.
    pub async fn comes_to_rest(&self) -> &'static str {
        let sum = |sum: f64, more: f64| sum + more;
        let position = || self.addresses.metric("zeebe_stream_processor_records_total{", "", sum).unwrap_or_default();
        let mut before = position();
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = position();
            // What a hundred ordinary instances write in a second is far below.
            if now - before < 10_000.0 {
                return "at rest";
            }
            before = now;
        }
        "still busy"
    }
}

async fn client(grpc: &str) -> Result<Client, String> {
    let endpoint = Endpoint::from_shared(grpc.to_owned()).map_err(|error| error.to_string())?.timeout(REQUEST_LIMIT);
    let channel = endpoint.connect().await.map_err(|error| format!("no connection: {error}"))?;
    Ok(GatewayClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX))
}

pub(crate) fn creation(id: &str, variables: &str) -> CreateProcessInstanceRequest {
    CreateProcessInstanceRequest {
        bpmn_process_id: id.to_owned(),
        version: -1,
        variables: variables.to_owned(),
        ..CreateProcessInstanceRequest::default()
    }
}

/// The beginning of a text.
pub(crate) fn short(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// A refusal is right when it says why in a sentence, with a status that says whose mistake it is.
pub(crate) fn refusal(status: &Status) -> Verdict {
    let says_why = status.message().split(' ').count() >= 5;
    match status.code() {
        Code::InvalidArgument
        | Code::ResourceExhausted
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::OutOfRange
            if says_why =>
        {
            let message = status.message().replace('\n', " ");
            Ok(format!("{:?}: {}", status.code(), short(&message, SHOWN_CHARACTERS)))
        }
        _ => Err(wrong("refused with a reason", status)),
    }
}

/// A refusal with this status that contains these words.
pub(crate) fn refused<T>(outcome: Result<T, Status>, code: Code, words: &str) -> Verdict {
    match outcome {
        Ok(_) => Err(format!("it was not refused with '{words}'")),
        Err(status) if status.code() == code && status.message().contains(words) => refusal(&status),
        Err(status) => Err(wrong(&format!("refused with '{words}'"), &status)),
    }
}

/// Either carried out or refused with a reason.
pub(crate) fn answered<T>(outcome: Result<T, Status>) -> Verdict {
    match outcome {
        Ok(_) => Ok("carried out".to_owned()),
        Err(status) => refusal(&status),
    }
}

fn wrong(expected: &str, status: &Status) -> String {
    let said = short(&status.message().replace('\n', " "), SHOWN_CHARACTERS);
    format!("expected to be {expected}, but: {:?}: {said}", status.code())
}
