//! Deployed processes with their workers, ready to be loaded.

use std::sync::Arc;
use std::time::Duration;

use gateway_interface::{DeployResourceRequest, Resource};
use tokio::sync::Semaphore;
use tonic::{Request, Status};

use crate::availability::Availability;
use crate::beforehand::{Beforehand, Tags};
use crate::connection::{Server, connect, connect_more, describe_server};
use crate::error::{LoadError, refused};
use crate::figures::Failures;
use crate::ledger::{Header, Ledger};
use crate::link::{Addresses, Client, Links};
use crate::model::{Payload, RunNames, Tag, bpmn};
use crate::options::{Options, Work};
use crate::profile::Kind;
use crate::publisher::{InstanceObserver, Publisher};
use crate::rest::Rest;
use crate::schedule::{FOR_EVER, Timeline};
use crate::starter::{Creator, Sender, Turn};
use crate::tracker::{MADE_BEFOREHAND_LIMIT, Tracker};
use crate::worker::{WorkerSettings, Workers};

/// How long new streams have to become known everywhere, and new subscriptions to open.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);
/// How long the test instances may take in each attempt, in addition to the time of the workers.
const SETTLE_ATTEMPT: Duration = Duration::from_secs(10);
/// How long the last instances may take after a run.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
/// Creations in flight of instances that are made beforehand.
const BEFOREHAND_IN_FLIGHT: usize = 512;

/// Everything that a trial needs.
pub(crate) struct Session {
    pub timeline: Timeline,
    pub server: Server,
    pub names: RunNames,
    pub kinds: Arc<[Kind]>,
    pub process_ids: Arc<[Arc<str>]>,
    pub tracker: Tracker,
    pub sender: Sender,
    pub creations_in_flight: Arc<Semaphore>,
    /// Instances that wait for messages beyond those whose messages come.
    pub waiting: u64,
    pub server_pids: Vec<u32>,
    pub progress: bool,
    /// Counts what is sent to each.
    pub addresses: Addresses,
    _workers: Workers,
}

impl Session {
    /// Connects, deploys, starts the workers and lets some instances run through.
    /// What is created and completed is written into the ledger, when there is one.
    pub async fn open(options: &Options, work: &Work, ledger: Option<Ledger>) -> Result<Self, LoadError> {
        let creators = connect(options, options.connections).await?;
        let worker_connections = options.connections.min(work.worker.workers);
        let workers = connect_more(worker_connections, creators.addresses()).await?;
        let server = describe_server(creators.any(), options.request_timeout).await?;
        let names = RunNames::unique();
        let kinds: Arc<[Kind]> = work.profile.kinds(work.timer).into();
        let process_ids = deploy(creators.any(), &kinds, &names, options.request_timeout).await?;
        if let Some(ledger) = &ledger {
            let process_ids = process_ids.iter().map(ToString::to_string).collect();
            let job_timeout = work.worker.job_timeout;
            ledger.begin(Header { job_type: names.job_type.clone(), job_timeout, process_ids }).await;
        }
        let timeline = Timeline::start_now();
        let tracker = Tracker::new(timeline, work, Arc::clone(&process_ids));
        let rest = options.rest.as_ref().map(Rest::new);
        let addresses = rest.as_ref().map_or(creators.addresses(), Rest::addresses).clone();
        let publisher = Publisher {
            clients: creators.clone(),
            rest: rest.clone(),
            message: names.message.as_str().into(),
            time_to_live: work.message_ttl,
            request_timeout: options.request_timeout,
        };
        let settings = WorkerSettings {
            job_type: names.job_type.clone(),
            options: work.worker.clone(),
            request_timeout: options.request_timeout,
            completions_in_flight: None,
            rest: rest.clone(),
            ledger: ledger.clone(),
        };
        let observer = InstanceObserver { tracker: tracker.clone(), publisher: publisher.clone() };
        let session = Session {
            timeline,
            server,
            sender: Sender {
                profile: work.profile,
                kinds: Arc::clone(&kinds),
                creator: Creator {
                    rest,
                    ledger,
                    ..creator(options, creators, Arc::clone(&process_ids), work.payload_bytes)
                },
                publisher,
                tracker: tracker.clone(),
                availability: options.availability.as_ref().map(|wanted| {
                    Availability::new(wanted, timeline, Arc::clone(&process_ids), options.request_timeout)
                }),
            },
            tracker,
            names,
            process_ids,
            creations_in_flight: Arc::new(Semaphore::new(work.creations_in_flight)),
            waiting: work.waiting,
            server_pids: options.server_pids.clone(),
            progress: options.progress,
            addresses,
            _workers: Workers::start(&workers, &settings, &observer),
            kinds,
        };
        let attempt = (SETTLE_ATTEMPT + work.lasts()).min(options.settle_limit);
        session.settle(attempt, options.settle_limit).await?;
        Ok(session)
    }

    /// Runs a few instances of each process through every partition, so that during the measurement every partition has
    /// the process and knows the workers.
    async fn settle(&self, attempt: Duration, limit: Duration) -> Result<(), LoadError> {
        tokio::time::sleep(SETTLE).await;
        let instances = u64::try_from(self.server.partitions).unwrap_or(1).max(1) * 2;
        let end = self.timeline.now() + limit;
        let mut tried = vec![0; self.kinds.len()];
        loop {
            self.tracker.open_window(self.timeline.now(), FOR_EVER);
            if self.sender.profile.sends_messages() {
                self.make_beforehand(instances).await?;
            }
            for kind in 0..self.kinds.len() {
                for number in 0..instances {
                    let (turn, now) = (Turn { kind, buffered: number % 2 == 0 }, self.timeline.now());
                    if let Some(tag) = self.sender.begin(turn, now) {
                        self.sender.send(turn, number, tag, now).await;
                    }
                }
            }
            let attempt_end = self.timeline.now() + attempt;
            while self.tracker.outstanding() > 0 && self.timeline.now() < attempt_end {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let (figures, _) = self.tracker.figures(0);
            // Stuck instances are neither waited for again nor counted.
            self.tracker.forget_instances();
            for (tried, figures) in tried.iter_mut().zip(&figures) {
                *tried += figures.created.max(figures.published);
            }
            if figures.iter().all(|figures| figures.completed == instances) {
                break;
            }
            if self.timeline.now() >= end {
                match figures.iter().position(|figures| figures.completed == 0) {
                    Some(kind) => return Err(self.nothing_completes(kind, tried[kind], limit)),
                    None => break,
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.tracker.forget_irregularities();
        Ok(())
    }

    /// Creates instances until this many wait for their message, as far as there is room.
    pub async fn make_beforehand(&self, instances: u64) -> Result<(), LoadError> {
        let wanted = instances.min(MADE_BEFOREHAND_LIMIT as u64);
        let missing = wanted.saturating_sub(self.tracker.made_beforehand() as u64);
        if missing == 0 {
            return Ok(());
        }
        let beforehand = Beforehand {
            creator: self.sender.creator.clone(),
            kind: 0,
            timeline: self.timeline,
            in_flight: BEFOREHAND_IN_FLIGHT,
            end: FOR_EVER,
            progress: self.progress,
        };
        let made = beforehand.create(missing, &WaitsForMessage(self.tracker.clone())).await;
        if made.created < missing {
            return Err(LoadError::NotCreated {
                created: made.created,
                wanted: missing,
                failures: made.rejected.to_string(),
            });
        }
        tokio::time::sleep(SETTLE).await;
        Ok(())
    }

    /// Waits for the instances that are outstanding at the end of a run, and abandons those that take too long.
    pub async fn wait_for_the_last(&self, end: Duration) {
        let limit = end + DRAIN_LIMIT;
        while self.tracker.outstanding() > 0 && self.timeline.now() < limit {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.tracker.forget_instances();
    }

    fn nothing_completes(&self, kind: usize, created: u64, limit: Duration) -> LoadError {
        let irregularities = self.tracker.irregularities();
        LoadError::NothingCompletes {
            process: self.process_ids[kind].to_string(),
            created,
            seconds: limit.as_secs(),
            failures: format!(
                "{}; creations: {}; publications: {}; completions: {}.",
                irregularities.failed_streams,
                either(&irregularities.rejected_creations, &irregularities.unknown_creations),
                irregularities.rejected_publications,
                either(&irregularities.rejected_completions, &irregularities.unknown_completions)
            ),
        }
    }
}

/// The failures that there are, those that were refused first.
fn either<'a>(rejected: &'a Failures, unknown: &'a Failures) -> &'a Failures {
    if rejected.total() > 0 { rejected } else { unknown }
}

/// Instances whose message is sent later.
#[derive(Clone)]
struct WaitsForMessage(Tracker);

impl Tags for WaitsForMessage {
    fn begin(&self, _number: u64) -> Option<Tag> {
        self.0.begin_beforehand(0)
    }

    fn created(&self, tag: Tag) {
        self.0.created_beforehand(tag);
    }

    fn failed(&self, tag: Tag, status: &Status) {
        self.0.creation_beforehand_failed(tag, status);
    }
}

/// Deploys processes under unique names, and returns these in the same order.
pub(crate) async fn deploy(
    client: &Client,
    kinds: &[Kind],
    names: &RunNames,
    timeout: Duration,
) -> Result<Arc<[Arc<str>]>, LoadError> {
    let process_ids: Vec<String> = kinds.iter().map(|kind| names.process_id(*kind)).collect();
    let resources = kinds.iter().zip(&process_ids).map(|(kind, process_id)| Resource {
        name: format!("{process_id}.bpmn"),
        content: bpmn(*kind, names).into_bytes().into(),
    });
    let mut request =
        Request::new(DeployResourceRequest { resources: resources.collect(), ..DeployResourceRequest::default() });
    request.set_timeout(timeout);
    client.clone().deploy_resource(request).await.map_err(|status| refused("DeployResource", &status))?;
    Ok(process_ids.into_iter().map(Arc::from).collect())
}

pub(crate) fn creator(
    options: &Options,
    clients: Links,
    process_ids: Arc<[Arc<str>]>,
    payload_bytes: usize,
) -> Creator {
    Creator {
        clients,
        rest: options.rest.as_ref().map(Rest::new),
        process_ids,
        payload: Arc::new(Payload::of_bytes(payload_bytes)),
        request_timeout: options.request_timeout,
        ledger: None,
    }
}
