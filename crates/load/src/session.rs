//! A deployed process with its workers, ready to be loaded.

use std::sync::Arc;
use std::time::Duration;

use gateway_interface::{DeployResourceRequest, Resource};
use tokio::sync::Semaphore;
use tonic::Request;

use crate::connection::{Server, connect, describe_server};
use crate::error::{LoadError, refused};
use crate::model::{Payload, RunNames, bpmn};
use crate::options::{Options, Profile, Work};
use crate::schedule::Timeline;
use crate::starter::Creator;
use crate::tracker::Tracker;
use crate::worker::{Client, WorkerSettings, Workers};

/// How long new streams get to become known everywhere.
const STREAMS_SETTLE: Duration = Duration::from_millis(500);
/// How long the test instances may take at each attempt, beside the time of the workers.
const SETTLE_ATTEMPT: Duration = Duration::from_secs(2);

/// Everything that a trial needs.
pub(crate) struct Session {
    pub timeline: Timeline,
    pub server: Server,
    pub names: RunNames,
    pub tracker: Tracker,
    pub creator: Creator,
    pub creations_in_flight: Arc<Semaphore>,
    pub server_pids: Vec<u32>,
    pub progress: bool,
    _workers: Workers,
}

impl Session {
    /// Connects, deploys, starts the workers and lets some instances run through.
    pub async fn open(options: &Options, work: &Work) -> Result<Self, LoadError> {
        let creators = connect(options, options.connections).await?;
        let worker_connections = options.connections.min(work.worker.workers);
        let workers = connect(options, worker_connections).await?;
        let server = describe_server(&creators[0], options.request_timeout).await?;
        let names = deploy(&creators[0], work.profile, options.request_timeout).await?;
        let timeline = Timeline::start_now();
        let tracker = Tracker::new(timeline, work);
        let settings = WorkerSettings {
            job_type: names.job_type.clone(),
            options: work.worker.clone(),
            request_timeout: options.request_timeout,
        };
        let session = Session {
            timeline,
            server,
            tracker: tracker.clone(),
            creator: creator(options, creators, &names, work.payload_bytes),
            names,
            creations_in_flight: Arc::new(Semaphore::new(work.creations_in_flight)),
            server_pids: options.server_pids.clone(),
            progress: options.progress,
            _workers: Workers::start(&workers, &settings, &tracker),
        };
        let attempt = SETTLE_ATTEMPT + work.worker.delay * u32::from(work.profile.tasks());
        session.settle(attempt, options.settle_limit).await?;
        Ok(session)
    }

    /// Runs a few instances through every partition, so that the measurement neither meets a partition that
    /// lacks the process nor one that does not know the workers.
    async fn settle(&self, attempt: Duration, limit: Duration) -> Result<(), LoadError> {
        tokio::time::sleep(STREAMS_SETTLE).await;
        let instances = u64::try_from(self.server.partitions).unwrap_or(1).max(1) * 2;
        let end = self.timeline.now() + limit;
        let mut created = 0;
        loop {
            self.tracker.open_window(self.timeline.now(), Duration::MAX);
            for number in 0..instances {
                let now = self.timeline.now();
                if let Some(tag) = self.tracker.begin(now) {
                    self.creator.create_tracked(number, tag, now, &self.tracker).await;
                }
            }
            let attempt_end = self.timeline.now() + attempt;
            while self.tracker.outstanding() > 0 && self.timeline.now() < attempt_end {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let figures = self.tracker.figures();
            created += figures.created;
            // Those that are stuck are not waited for again, nor counted.
            self.tracker.forget_instances();
            if figures.completed == instances {
                break;
            }
            if self.timeline.now() >= end {
                if figures.completed > 0 {
                    break;
                }
                return Err(self.nothing_completes(created, limit));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.tracker.forget_irregularities();
        Ok(())
    }

    fn nothing_completes(&self, created: u64, limit: Duration) -> LoadError {
        let irregularities = self.tracker.irregularities();
        LoadError::NothingCompletes {
            created,
            seconds: limit.as_secs(),
            failures: format!(
                "{}; creations: {}; completions: {}.",
                irregularities.failed_streams, irregularities.rejected_creations, irregularities.rejected_completions
            ),
        }
    }
}

/// Deploys the process of a profile under names of its own.
pub(crate) async fn deploy(client: &Client, profile: Profile, timeout: Duration) -> Result<RunNames, LoadError> {
    let names = RunNames::unique(profile);
    let mut request = Request::new(DeployResourceRequest {
        resources: vec![Resource {
            name: format!("{}.bpmn", names.process_id),
            content: bpmn(profile, &names).into_bytes().into(),
        }],
        ..DeployResourceRequest::default()
    });
    request.set_timeout(timeout);
    client.clone().deploy_resource(request).await.map_err(|status| refused("DeployResource", &status))?;
    Ok(names)
}

pub(crate) fn creator(options: &Options, clients: Vec<Client>, names: &RunNames, payload_bytes: usize) -> Creator {
    Creator {
        clients,
        process_id: names.process_id.as_str().into(),
        payload: Arc::new(Payload::of_bytes(payload_bytes)),
        request_timeout: options.request_timeout,
    }
}
