//! Ordinary instances at a fixed rate, in an open loop: each counts from its intended creation time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::*;
use model_builder::ProcessBuilder;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

const PROCESS: &str = "bystander";
/// How long an instance may take before it counts as one that never ended.
const INSTANCE_LIMIT: Duration = Duration::from_secs(100);
/// How many instances may be unfinished at once; further ones are not begun, and counted with the worst latency.
const IN_FLIGHT_MAX: usize = 5_000;
const PAUSE_BEFORE_AGAIN: Duration = Duration::from_millis(50);

/// What became of the instances since it was last asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// How long each of those took that ended.
    pub latencies: Vec<Duration>,
    /// Those that were refused or did not end, with what was said.
    pub failures: Vec<String>,
}

impl Seen {
    /// The latency that this many of a thousand instances did not exceed.
    pub fn quantile(&self, thousandths: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * thousandths).div_ceil(1_000).saturating_sub(1);
        sorted.get(place).copied().unwrap_or_default()
    }
}

/// Runs until it is dropped, with a runtime of its own: it must not wait for what the hostile clients make of theirs.
pub(crate) struct Bystander {
    seen: Arc<Mutex<Seen>>,
    stopping: Arc<AtomicBool>,
    runtime: Option<Runtime>,
    client: GatewayClient<Channel>,
}

impl Bystander {
    /// Deploys its process, and begins.
    pub async fn start(grpc: &str, rate: u64) -> Result<Bystander, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("bystander").enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime for ordinary instances: {error}"))?;
        let endpoint = Endpoint::from_shared(grpc.to_owned()).map_err(|error| error.to_string())?;
        let connected = runtime.spawn(async move { endpoint.connect().await }).await;
        let connected = connected.map_err(|error| error.to_string())?;
        let channel = connected.map_err(|error| format!("no connection for ordinary instances: {error}"))?;
        let mut client = GatewayClient::new(channel);
        let xml = ProcessBuilder::new(PROCESS).start("start").service_task("task", PROCESS).end("end").to_xml();
        let resources = vec![Resource { name: "bystander.bpmn".into(), content: xml.into_bytes().into() }];
        let request = DeployResourceRequest { resources, tenant_id: String::new() };
        client.deploy_resource(request).await.map_err(|status| format!("no ordinary process: {status}"))?;
        let (seen, stopping) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        runtime.spawn(work(client.clone()));
        runtime.spawn(create(client.clone(), rate, Arc::clone(&seen), Arc::clone(&stopping)));
        Ok(Bystander { seen, stopping, runtime: Some(runtime), client })
    }

    /// An instance that is not counted comes to its end. While the node has too much to do, it may ask to come again, as long as an
    /// instance may take.
    pub async fn one_more(&self) -> Result<(), String> {
        let until = Instant::now() + INSTANCE_LIMIT;
        loop {
            match self.client.clone().create_process_instance_with_result(instance()).await {
                Ok(_) => return Ok(()),
                Err(status) if status.code() == Code::ResourceExhausted && Instant::now() < until => {
                    tokio::time::sleep(PAUSE_BEFORE_AGAIN).await;
                }
                Err(status) => return Err(format!("an ordinary instance does not end: {status}")),
            }
        }
    }

    pub fn take(&self) -> Seen {
        std::mem::take(&mut lock(&self.seen))
    }

    /// What happens from now on is not counted: the node is about to be killed.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stop();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("nothing that counts panics")
}

fn instance() -> Request<CreateProcessInstanceWithResultRequest> {
    let creation = CreateProcessInstanceRequest {
        bpmn_process_id: PROCESS.to_owned(),
        version: -1,
        ..CreateProcessInstanceRequest::default()
    };
    let mut request = Request::new(CreateProcessInstanceWithResultRequest {
        request: Some(creation),
        request_timeout: i64::try_from(INSTANCE_LIMIT.as_millis()).unwrap_or(i64::MAX),
        fetch_variables: Vec::new(),
    });
    request.set_timeout(INSTANCE_LIMIT);
    request
}

async fn create(client: GatewayClient<Channel>, rate: u64, seen: Arc<Mutex<Seen>>, stopping: Arc<AtomicBool>) {
    let start = Instant::now();
    let in_flight = Arc::new(tokio::sync::Semaphore::new(IN_FLIGHT_MAX));
    for number in 0.. {
        let intended = start + Duration::from_micros(1_000_000 / rate.max(1)) * number;
        tokio::time::sleep_until(intended).await;
        if stopping.load(Ordering::Relaxed) {
            return;
        }
        let Ok(permit) = Arc::clone(&in_flight).try_acquire_owned() else {
            lock(&seen).failures.push(format!("{IN_FLIGHT_MAX} instances have no end yet"));
            continue;
        };
        let (mut client, seen, stopping) = (client.clone(), Arc::clone(&seen), Arc::clone(&stopping));
        tokio::spawn(async move {
            let ended: Result<_, Status> = client.create_process_instance_with_result(instance()).await;
            if !stopping.load(Ordering::Relaxed) {
                match ended {
                    Ok(_) => lock(&seen).latencies.push(intended.elapsed()),
                    Err(status) => lock(&seen).failures.push(format!("{:?}: {}", status.code(), status.message())),
                }
            }
            drop(permit);
        });
    }
}

/// Completes each job as it comes.
async fn work(client: GatewayClient<Channel>) {
    loop {
        let request = StreamActivatedJobsRequest {
            r#type: PROCESS.to_owned(),
            worker: PROCESS.to_owned(),
            timeout: 5_000,
            ..StreamActivatedJobsRequest::default()
        };
        if let Ok(response) = client.clone().stream_activated_jobs(request).await {
            let mut jobs = response.into_inner();
            while let Ok(Some(job)) = jobs.message().await {
                let mut client = client.clone();
                let completion = CompleteJobRequest { job_key: job.key, ..CompleteJobRequest::default() };
                tokio::spawn(async move { client.complete_job(completion).await });
            }
        }
        tokio::time::sleep(PAUSE_BEFORE_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_latencies() {
        let seen = Seen { latencies: (1..=200).rev().map(Duration::from_millis).collect(), failures: Vec::new() };
        assert_eq!(seen.quantile(500), Duration::from_millis(100));
        assert_eq!(seen.quantile(990), Duration::from_millis(198));
        assert_eq!(seen.quantile(1_000), Duration::from_millis(200));
        assert_eq!(Seen::default().quantile(990), Duration::ZERO);
    }
}
