//! A worker that fails or ignores every job of its type, and instances of another process whose workers behave.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::{ActivatedJob, FailJobRequest, StreamActivatedJobsRequest};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::{Request, Status};

use crate::connection::connect;
use crate::error::LoadError;
use crate::figures::{Failures, Irregularities, Latencies, Quantiles, Second};
use crate::link::Client;
use crate::model::{RunNames, Tag};
use crate::options::{MisbehavingOptions, Misbehaviour, Options};
use crate::own_thread::OwnThread;
use crate::process_statistics::{ProcessUse, Usage};
use crate::profile::Kind;
use crate::report::Context;
use crate::schedule::{Pacer, Schedule, Timeline};
use crate::session::{SETTLE, Session, creator, deploy};
use crate::starter::Creator;
use crate::timers::BesideReport;
use crate::worker::{StreamUser, milliseconds, stream_jobs};

/// How many creations, and how many failures, of the misbehaving client may be unanswered at once.
const IN_FLIGHT: usize = 256;
const WORKER_NAME: &str = "osmia-load-misbehaving";
const BEFORE_START: Duration = Duration::from_millis(5);

/// What a worker that misbehaves did to the others.
#[derive(Clone, Debug, Serialize)]
pub struct MisbehavingReport {
    /// How it misbehaved.
    pub behaviour: Misbehaviour,
    /// Intended instances per second of the process that is measured.
    pub rate: f64,
    /// Intended instances per second of the process with the misbehaving worker.
    pub rate_beside: f64,
    /// The process that is measured, alone.
    pub before: BesideReport,
    /// The same while the worker misbehaves.
    pub while_there: BesideReport,
    /// Processor time and memory of the server, alone with the measured process.
    pub server_before: Option<ProcessUse>,
    /// The same while the worker misbehaves.
    pub server_while_there: Option<ProcessUse>,
    /// Processor time and memory of the load generator while it misbehaves.
    pub own: Option<ProcessUse>,
    /// What the misbehaving worker did.
    pub worker: MisbehavedReport,
    /// Jobs that the misbehaving worker was given, as a share of all jobs that were given or completed meanwhile.
    pub share_of_jobs: f64,
    /// Failures and surprises of the measured process.
    pub irregularities: Irregularities,
    /// The measured process second by second, from the start of the warm-up.
    pub series: Vec<Second>,
}

/// What a misbehaving worker and the creations for it did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MisbehavedReport {
    /// Instances created for it.
    pub created: u64,
    /// Creations that failed.
    pub rejected_creations: Failures,
    /// Creations that were never sent, because too many were unanswered.
    pub held_back: u64,
    /// Jobs that it was given, counting repetitions.
    pub received: u64,
    /// Failures that were acknowledged.
    pub failed: u64,
    /// Those that left no retries, so that there is an incident.
    pub incidents: u64,
    /// Failures that were refused.
    pub rejected_failures: Failures,
    /// Streams that ended with an error.
    pub failed_streams: Failures,
    /// From the sending of a failure to its acknowledgement.
    pub failure_latency: Quantiles,
}

/// Counted on the thread of the misbehaving client.
#[derive(Clone)]
struct Misbehaved {
    timeline: Timeline,
    state: Arc<Mutex<(MisbehavedReport, Latencies)>>,
}

impl Misbehaved {
    fn state(&self) -> MutexGuard<'_, (MisbehavedReport, Latencies)> {
        self.state.lock().expect("nothing that holds the counts panics")
    }

    fn report(&self) -> MisbehavedReport {
        let state = self.state();
        MisbehavedReport { failure_latency: state.1.quantiles(), ..state.0.clone() }
    }
}

pub(crate) async fn run(
    options: &Options,
    misbehaving: &MisbehavingOptions,
) -> Result<(Context, MisbehavingReport), LoadError> {
    let session = Session::open(options, &misbehaving.work, None).await?;
    let names = RunNames::unique();
    let clients = connect(options, 1).await?;
    let process_ids = deploy(clients.any(), &[Kind::OneTask], &names, options.request_timeout).await?;
    let deployed = [&session.process_ids[..], &process_ids[..]].concat();
    tokio::time::sleep(SETTLE).await;

    let start = session.timeline.now() + BEFORE_START;
    let alone = start + misbehaving.warm_up;
    let comes = alone + misbehaving.duration;
    let end = comes + misbehaving.duration;
    session.tracker.forget_irregularities();
    session.tracker.open_window(alone, comes);
    session.tracker.add_window(comes, end);
    session.tracker.take_second(0);
    let starter = session.start(Schedule { start, end, rate: misbehaving.rate })?;
    let mut series = Seconds { session: &session, start, taken: Vec::new() };
    series.watch_until(alone).await;
    let usages = [Usage::take(&options.server_pids)?];
    series.watch_until(comes).await;
    let usages = [usages[0].clone(), Usage::take(&options.server_pids)?];

    let state = Arc::new(Mutex::new((MisbehavedReport::default(), Latencies::new())));
    let misbehaved = Misbehaved { timeline: session.timeline, state };
    let client = MisbehavingClient {
        schedule: Schedule { start: comes, end, rate: misbehaving.rate_beside },
        options: misbehaving.clone(),
        request_timeout: options.request_timeout,
        job_type: names.job_type.clone(),
        misbehaved: misbehaved.clone(),
    };
    let bytes = misbehaving.work.payload_bytes;
    let begin = client.start(options.clone(), process_ids, bytes);
    let thread = OwnThread::start("load-misbehaving", begin).await?;
    series.watch_until(end).await;
    let after = Usage::take(&options.server_pids)?;
    let series = series.taken;
    let worker = misbehaved.report();
    drop((starter, thread));
    session.wait_for_the_last(end).await;

    let window = |number: usize, start: Duration, end: Duration| {
        let seconds = (end - start).as_secs_f64();
        BesideReport { seconds, measured: session.tracker.figures(number).1.measured(seconds) }
    };
    let (before, while_there) = (window(0, alone, comes), window(1, comes, end));
    let jobs = worker.received + while_there.measured.jobs_completed;
    let (server_while_there, own) = after.since(&usages[1]);
    let report = MisbehavingReport {
        behaviour: misbehaving.behaviour,
        rate: misbehaving.rate,
        rate_beside: misbehaving.rate_beside,
        before,
        while_there,
        server_before: usages[1].since(&usages[0]).0,
        server_while_there,
        own,
        share_of_jobs: if jobs > 0 { worker.received as f64 / jobs as f64 } else { 0.0 },
        worker,
        irregularities: session.tracker.irregularities(),
        series,
    };
    let note = Some(misbehaving.work.to_string());
    Ok((Context::new(session.server.clone(), &deployed, Some(&session.names), note), report))
}

impl MisbehavingReport {
    /// Without a single job the worker did not misbehave, and nothing was measured.
    pub(crate) fn failure(&self) -> Option<String> {
        (self.worker.received == 0 && self.worker.created > 0).then(|| {
            format!(
                "The worker that was to misbehave was given none of the jobs of {} instances, so the figures say nothing \
                 about it. Failed streams: {}.",
                self.worker.created, self.worker.failed_streams
            )
        })
    }
}

/// The seconds of the measured process.
struct Seconds<'a> {
    session: &'a Session,
    start: Duration,
    taken: Vec<Second>,
}

impl Seconds<'_> {
    async fn watch_until(&mut self, end: Duration) {
        loop {
            let next = self.taken.len() as u64 + 1;
            let due = self.start + Duration::from_secs(next);
            self.session.timeline.sleep_until(due.min(end)).await;
            if due > end {
                return;
            }
            let second = self.session.tracker.take_second(next);
            if self.session.progress {
                eprintln!(
                    "{:>5} s  completed {:>7}/s  outstanding {:>7}  process latency ms p50 {:>8.2}  p99 {:>8.2}",
                    second.second, second.completed, second.outstanding, second.p50, second.p99
                );
            }
            self.taken.push(second);
        }
    }
}

/// Creates instances and is the only worker for their jobs.
struct MisbehavingClient {
    schedule: Schedule,
    options: MisbehavingOptions,
    request_timeout: Duration,
    job_type: String,
    misbehaved: Misbehaved,
}

impl MisbehavingClient {
    async fn start(
        self,
        options: Options,
        process_ids: Arc<[Arc<str>]>,
        payload_bytes: usize,
    ) -> Result<JoinSet<()>, LoadError> {
        let clients = connect(&options, options.connections).await?;
        let worker = clients.any().clone();
        let creator = creator(&options, clients, process_ids, payload_bytes);
        let pacer = Pacer::start(self.misbehaved.timeline, self.schedule)?;
        let client = Arc::new(self);
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&client).create(creator, pacer));
        let worker = MisbehavingWorker { of: client, client: worker, in_flight: Arc::new(Semaphore::new(IN_FLIGHT)) };
        tasks.spawn(async move { stream_jobs(&worker.client, &worker).await });
        Ok(tasks)
    }

    /// Keeps the schedule, without waiting for the server.
    async fn create(self: Arc<Self>, creator: Creator, pacer: Pacer) {
        let in_flight = Arc::new(Semaphore::new(IN_FLIGHT));
        let mut next = 0;
        loop {
            let now = self.misbehaved.timeline.now();
            while next < self.schedule.due(now) {
                let number = next;
                next += 1;
                let Ok(permit) = Arc::clone(&in_flight).try_acquire_owned() else {
                    self.misbehaved.state().0.held_back += 1;
                    continue;
                };
                let (creator, misbehaved) = (creator.clone(), self.misbehaved.clone());
                tokio::spawn(async move {
                    match creator.create(0, number, Tag(number), |_| ()).await {
                        Ok(_) => misbehaved.state().0.created += 1,
                        Err(status) => misbehaved.state().0.rejected_creations.record(&status),
                    }
                    drop(permit);
                });
            }
            if now >= self.schedule.end {
                return;
            }
            pacer.tick().await;
        }
    }
}

/// The worker, with its connection.
struct MisbehavingWorker {
    of: Arc<MisbehavingClient>,
    client: Client,
    /// Failures without an answer.
    in_flight: Arc<Semaphore>,
}

impl StreamUser for MisbehavingWorker {
    fn request(&self) -> StreamActivatedJobsRequest {
        StreamActivatedJobsRequest {
            r#type: self.of.job_type.clone(),
            worker: WORKER_NAME.to_owned(),
            timeout: milliseconds(self.of.options.job_timeout),
            ..StreamActivatedJobsRequest::default()
        }
    }

    async fn take(&self, job: ActivatedJob) {
        self.of.misbehaved.state().0.received += 1;
        if self.of.options.behaviour == Misbehaviour::Ignoring {
            return;
        }
        let permit = Arc::clone(&self.in_flight).acquire_owned().await.expect("the semaphore is never closed");
        let mut client = self.client.clone();
        let misbehaved = self.of.misbehaved.clone();
        let retries = (job.retries - 1).max(0);
        let mut request = Request::new(FailJobRequest {
            job_key: job.key,
            retries,
            error_message: "This worker fails every job.".to_owned(),
            ..FailJobRequest::default()
        });
        request.set_timeout(self.of.request_timeout);
        tokio::spawn(async move {
            let sent = misbehaved.timeline.now();
            let result = client.fail_job(request).await;
            let latency = misbehaved.timeline.now().saturating_sub(sent);
            let mut state = misbehaved.state();
            match result {
                Ok(_) => {
                    state.0.failed += 1;
                    state.0.incidents += u64::from(retries == 0);
                    state.1.record(latency);
                }
                Err(status) => state.0.rejected_failures.record(&status),
            }
            drop(state);
            drop(permit);
        });
    }

    fn ended(&self, status: &Status) {
        self.of.misbehaved.state().0.failed_streams.record(status);
    }
}
