//! Opens streams and long polls and leaves them alone, to see what they cost the server.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use gateway_interface::StreamActivatedJobsRequest;
use serde::Serialize;
use tokio::task::JoinSet;
use tonic::Request;

use crate::connection::{connect, describe_server};
use crate::error::LoadError;
use crate::figures::Failures;
use crate::link::Client;
use crate::model::RunNames;
use crate::options::{IdleOptions, Options, WorkerOptions};
use crate::process_statistics::{ProcessUse, Usage};
use crate::report::Context;
use crate::worker::{LONG_POLL, WorkerSettings, activate_request, milliseconds};

/// Streams and polls on one connection.
const PER_CONNECTION: usize = 100;
/// Different job types among them.
const JOB_TYPES: usize = 10;
const SETTLE: Duration = Duration::from_secs(2);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What idle clients cost.
#[derive(Clone, Debug, Serialize)]
pub struct IdleReport {
    /// Open streams.
    pub streams: usize,
    /// Long polls in flight.
    pub polls: usize,
    /// Length of the measurement.
    pub seconds: f64,
    /// Streams and polls that ended with an error.
    pub failures: Failures,
    /// Resident memory of the server before the clients came, in bytes.
    pub server_resident_bytes_before: Option<u64>,
    /// Processor time and memory of the server.
    pub server: Option<ProcessUse>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
}

pub(crate) async fn run(options: &Options, idle: &IdleOptions) -> Result<(Context, IdleReport), LoadError> {
    let fresh = Usage::take(&options.server_pids)?;
    let count = idle.streams + idle.polls;
    let clients = connect(options, count.div_ceil(PER_CONNECTION).max(1)).await?;
    let server = describe_server(clients.any(), options.request_timeout).await?;
    let failures = Arc::new(Mutex::new(Failures::default()));
    let names = RunNames::unique();
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let waiter = Waiter {
            client: clients.link(number).client.clone(),
            settings: WorkerSettings {
                job_type: format!("{}-{}", names.job_type, number % JOB_TYPES),
                options: WorkerOptions::default(),
                request_timeout: options.request_timeout,
                completions_in_flight: None,
                rest: None,
                ledger: None,
            },
            failures: Arc::clone(&failures),
        };
        if number < idle.streams {
            tasks.spawn(waiter.stream());
        } else {
            tasks.spawn(waiter.poll());
        }
    }
    tokio::time::sleep(SETTLE).await;
    if options.progress {
        eprintln!("{} streams and {} long polls are open", idle.streams, idle.polls);
    }
    let before = Usage::take(&options.server_pids)?;
    tokio::time::sleep(idle.duration).await;
    let after = Usage::take(&options.server_pids)?;
    let (server_use, own) = after.since(&before);
    let failures = failures.lock().expect("nothing that holds the failures panics").clone();
    let report = IdleReport {
        streams: idle.streams,
        polls: idle.polls,
        seconds: idle.duration.as_secs_f64(),
        failures,
        server_resident_bytes_before: fresh.since(&fresh).0.map(|server| server.resident_bytes),
        server: server_use,
        own,
    };
    Ok((Context::new(server, &[], None, None), report))
}

struct Waiter {
    client: Client,
    settings: WorkerSettings,
    failures: Arc<Mutex<Failures>>,
}

impl Waiter {
    async fn stream(mut self) {
        loop {
            let request = StreamActivatedJobsRequest {
                r#type: self.settings.job_type.clone(),
                worker: "osmia-load-idle".into(),
                timeout: milliseconds(self.settings.options.job_timeout),
                ..StreamActivatedJobsRequest::default()
            };
            match self.client.stream_activated_jobs(request).await {
                Ok(response) => {
                    let mut jobs = response.into_inner();
                    loop {
                        match jobs.message().await {
                            Ok(Some(_)) => {}
                            Ok(None) => {
                                break self.failed(&tonic::Status::ok("the server ended the stream")).await;
                            }
                            Err(status) => break self.failed(&status).await,
                        }
                    }
                }
                Err(status) => self.failed(&status).await,
            }
        }
    }

    async fn poll(mut self) {
        loop {
            let mut request = Request::new(activate_request(&self.settings, 32, Some(LONG_POLL)));
            request.set_timeout(LONG_POLL + self.settings.request_timeout);
            let ended = match self.client.activate_jobs(request).await {
                Ok(response) => response.into_inner().message().await.map(drop),
                Err(status) => Err(status),
            };
            if let Err(status) = ended {
                self.failed(&status).await;
            }
        }
    }

    async fn failed(&self, status: &tonic::Status) {
        self.failures.lock().expect("nothing that holds the failures panics").record(status);
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
    }
}
