//! Completes the jobs that an earlier run left, and watches in which order they come and how fast, alone or while other
//! instances run.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::ActivatedJob;
use serde::Serialize;

use crate::connection::{Server, connect, describe_server};
use crate::error::LoadError;
use crate::figures::{Failures, Irregularities, Latencies, Quantiles};
use crate::instances::RecentKeys;
use crate::options::{DrainBeside, DrainOptions, Options};
use crate::own_thread::OwnThread;
use crate::process_statistics::{ProcessUse, Usage};
use crate::report::Context;
use crate::schedule::{FOR_EVER, Schedule, Timeline};
use crate::session::Session;
use crate::timers::BesideReport;
use crate::trial::AbortOnDrop;
use crate::worker::{Failed, JobObserver, Source, WorkerSettings, Workers};

/// The bits of a key below its partition.
const COUNTER_BITS: u32 = 51;
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The report lists no seconds after this; the run continues.
const SERIES_LIMIT_SECONDS: usize = 7_200;
/// After this long without a job, the instances that run meanwhile are not counted.
const IDLE_AFTER: Duration = Duration::from_millis(200);
/// Other instances run at most this long while a backlog is drained.
const BESIDE_LIMIT: Duration = Duration::from_secs(24 * 3_600);

/// How a backlog of jobs was drained.
#[derive(Clone, Debug, Serialize)]
pub struct DrainReport {
    /// From opening the streams or polls to the first job, in milliseconds; none when no job came.
    pub first_job_milliseconds: Option<f64>,
    /// Jobs that came.
    pub received: u64,
    /// Jobs whose completion was acknowledged.
    pub completed: u64,
    /// From the first job to the last completion, in seconds.
    pub seconds: f64,
    /// Completions per second in that time.
    pub completed_per_second: f64,
    /// Completions in the slowest whole second; none when the backlog did not last for one.
    pub slowest_second: Option<u64>,
    /// Completions in the fastest.
    pub fastest_second: Option<u64>,
    /// Completions in each second since the first job; the last second is not a whole one.
    pub series: Vec<u64>,
    /// Jobs that came to a worker after one of the same partition with a greater key.
    pub out_of_order: u64,
    /// Jobs that came a second time.
    pub duplicate_jobs: u64,
    /// Jobs that no stream took, found by the poll that runs alongside.
    pub polled_beside_streams: u64,
    /// From the sending of a completion to its acknowledgement.
    pub completion_latency: Quantiles,
    /// Completions that failed.
    pub rejected_completions: Failures,
    /// Streams and polls that ended with an error.
    pub failed_streams: Failures,
    /// Processor time and memory of the server.
    pub server: Option<ProcessUse>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
    /// What ran meanwhile.
    pub beside: Option<DrainBesideReport>,
}

/// Instances at a fixed rate before and while a backlog was drained.
#[derive(Clone, Debug, Serialize)]
pub struct DrainBesideReport {
    /// Intended instances per second.
    pub rate: f64,
    /// Before the worker of the backlog came.
    pub before: BesideReport,
    /// From then until nothing of the backlog had come for 200 ms.
    pub while_draining: BesideReport,
    /// Processor time and memory of the server before.
    pub server_before: Option<ProcessUse>,
    /// Failures and surprises.
    pub irregularities: Irregularities,
}

#[derive(Clone)]
struct Drained {
    timeline: Timeline,
    state: Arc<Mutex<State>>,
}

struct State {
    began: Duration,
    first: Option<Duration>,
    last: Duration,
    last_completed: Duration,
    received: u64,
    completed: u64,
    by_second: Vec<u64>,
    out_of_order: u64,
    duplicates: u64,
    polled_beside_streams: u64,
    keys: RecentKeys,
    /// The greatest key by worker and partition; both are few.
    greatest: HashMap<(usize, i64), i64>,
    completion: Latencies,
    rejected_completions: Failures,
    failed_streams: Failures,
}

pub(crate) async fn run(options: &Options, drain: &DrainOptions) -> Result<(Context, DrainReport), LoadError> {
    let beside = match &drain.beside {
        Some(beside) => Some(Beside::start(options, beside).await?),
        None => None,
    };
    let (server, process_ids) = match &beside {
        Some(beside) => (beside.session.server.clone(), &beside.session.process_ids[..]),
        None => (server(options).await?, &[][..]),
    };
    let before = Usage::take(&options.server_pids)?;
    let drained = Drained::new(Timeline::start_now());
    let workers = OwnThread::start("load-drain", workers(options.clone(), drain.clone(), drained.clone())).await?;
    let set_idle = |is_idle| beside.as_ref().map_or((), |beside| beside.set_backlog_idle(is_idle));
    drained.wait_for_end(drain, options.progress, set_idle).await;
    drop(workers);
    let (server_use, own) = Usage::take(&options.server_pids)?.since(&before);
    let mut report = drained.report(server_use, own);
    let note = (report.received == 0).then(|| format!("No job of type \"{}\" came.", drain.job_type));
    let context = Context::new(server, process_ids, None, note);
    if let Some(beside) = beside {
        report.beside = Some(beside.finish(&before).await);
    }
    Ok((context, report))
}

async fn server(options: &Options) -> Result<Server, LoadError> {
    let clients = connect(options, 1).await?;
    describe_server(clients.any(), options.request_timeout).await
}

/// On a separate thread: a backlog comes so fast that the other instances would wait for this tool instead of the
/// server.
async fn workers(options: Options, drain: DrainOptions, drained: Drained) -> Result<Workers, LoadError> {
    let clients = connect(&options, options.connections.min(drain.worker.workers)).await?;
    let settings = WorkerSettings {
        job_type: drain.job_type,
        options: drain.worker,
        request_timeout: options.request_timeout,
        completions_in_flight: None,
        rest: None,
        ledger: None,
    };
    drained.begin();
    Ok(Workers::start(&clients, &settings, &drained))
}

/// Instances at a fixed rate, from some time before a backlog is drained.
struct Beside {
    session: Session,
    starter: AbortOnDrop,
    rate: f64,
    start: Duration,
    drain_start: Duration,
    /// When the last job of the backlog came, as far as known.
    idle_since: Cell<Option<Duration>>,
    usage: Usage,
}

impl Beside {
    async fn start(options: &Options, beside: &DrainBeside) -> Result<Self, LoadError> {
        let session = Session::open(options, &beside.work, None).await?;
        let now = session.timeline.now();
        let start = now + beside.warm_up;
        let drain_start = start + beside.duration;
        session.tracker.forget_irregularities();
        session.tracker.open_window(start, drain_start);
        session.tracker.add_window(drain_start, FOR_EVER);
        let starter = session.start(Schedule { start: now, end: drain_start + BESIDE_LIMIT, rate: beside.rate })?;
        session.timeline.sleep_until(start).await;
        let usage = Usage::take(&options.server_pids)?;
        session.timeline.sleep_until(drain_start).await;
        Ok(Beside { session, starter, rate: beside.rate, start, drain_start, idle_since: Cell::new(None), usage })
    }

    /// Whether no jobs of the backlog are coming right now.
    fn set_backlog_idle(&self, is_idle: bool) {
        if is_idle == self.idle_since.get().is_some() {
            return;
        }
        let now = self.session.timeline.now();
        self.idle_since.set(is_idle.then_some(now));
        self.session.tracker.end_window(if is_idle { now } else { FOR_EVER });
    }

    async fn finish(self, drain_began: &Usage) -> DrainBesideReport {
        let tracker = &self.session.tracker;
        let end = self.idle_since.get().unwrap_or_else(|| self.session.timeline.now()).max(self.drain_start);
        tracker.end_window(end);
        drop(self.starter);
        self.session.wait_for_the_last(self.session.timeline.now()).await;
        let window = |number: usize, start: Duration, end: Duration| {
            let seconds = (end - start).as_secs_f64();
            BesideReport { seconds, measured: tracker.figures(number).1.measured(seconds) }
        };
        DrainBesideReport {
            rate: self.rate,
            before: window(0, self.start, self.drain_start),
            while_draining: window(1, self.drain_start, end),
            server_before: drain_began.since(&self.usage).0,
            irregularities: tracker.irregularities(),
        }
    }
}

impl Drained {
    fn new(timeline: Timeline) -> Self {
        Drained {
            timeline,
            state: Arc::new(Mutex::new(State {
                began: Duration::ZERO,
                first: None,
                last: Duration::ZERO,
                last_completed: Duration::ZERO,
                received: 0,
                completed: 0,
                by_second: Vec::new(),
                out_of_order: 0,
                duplicates: 0,
                polled_beside_streams: 0,
                keys: RecentKeys::default(),
                greatest: HashMap::new(),
                completion: Latencies::new(),
                rejected_completions: Failures::default(),
                failed_streams: Failures::default(),
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing that holds the state panics")
    }

    /// The streams or polls are about to be opened.
    fn begin(&self) {
        self.state().began = self.timeline.now();
    }

    /// Calls `set_idle` regularly with whether no jobs are coming right now.
    async fn wait_for_end(&self, drain: &DrainOptions, progress: bool, set_idle: impl Fn(bool)) {
        let mut reported = (0, Duration::ZERO);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.timeline.now();
            let (completed, last) = {
                let state = self.state();
                (state.completed, state.last.max(state.last_completed))
            };
            set_idle(now > last + IDLE_AFTER);
            if drain.jobs.is_some_and(|jobs| completed >= jobs) || now > last + drain.silence {
                return;
            }
            if progress && now >= reported.1 + Duration::from_secs(1) {
                let rate = completed - reported.0;
                eprintln!("{:>5} s  completed {completed:>9}  {rate:>7}/s", now.as_secs());
                reported = (completed, now);
            }
        }
    }

    fn report(&self, server: Option<ProcessUse>, own: Option<ProcessUse>) -> DrainReport {
        let state = self.state();
        let seconds = state.last_completed.saturating_sub(state.first.unwrap_or_default()).as_secs_f64();
        let whole = state.by_second.len().min(seconds as usize);
        let whole_seconds = &state.by_second[..whole];
        DrainReport {
            first_job_milliseconds: state.first.map(|first| first.saturating_sub(state.began).as_secs_f64() * 1e3),
            received: state.received,
            completed: state.completed,
            seconds,
            completed_per_second: if seconds > 0.0 { state.completed as f64 / seconds } else { 0.0 },
            slowest_second: whole_seconds.iter().copied().min(),
            fastest_second: whole_seconds.iter().copied().max(),
            series: state.by_second.clone(),
            out_of_order: state.out_of_order,
            duplicate_jobs: state.duplicates,
            polled_beside_streams: state.polled_beside_streams,
            completion_latency: state.completion.quantiles(),
            rejected_completions: state.rejected_completions.clone(),
            failed_streams: state.failed_streams.clone(),
            server,
            own,
            beside: None,
        }
    }
}

impl JobObserver for Drained {
    type Job = Duration;

    fn received(&self, source: Source, job: &ActivatedJob) -> Duration {
        let now = self.timeline.now();
        let mut state = self.state();
        state.first.get_or_insert(now);
        state.last = now;
        state.received += 1;
        if !state.keys.insert(job.key) {
            state.duplicates += 1;
        }
        match source {
            Source::Worker(worker) => {
                let greatest = state.greatest.entry((worker, job.key >> COUNTER_BITS)).or_insert(job.key);
                if job.key < *greatest {
                    state.out_of_order += 1;
                } else {
                    *greatest = job.key;
                }
            }
            Source::BesideStreams => state.polled_beside_streams += 1,
        }
        now
    }

    fn completing(&self, job: &mut Duration) {
        *job = self.timeline.now();
    }

    fn completed(&self, sent: Duration) {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        state.completed += 1;
        state.last_completed = now;
        let second = now.saturating_sub(state.first.unwrap_or(now)).as_secs() as usize;
        if second < SERIES_LIMIT_SECONDS {
            state.by_second.resize(state.by_second.len().max(second + 1), 0);
            state.by_second[second] += 1;
        }
        state.completion.record(now.saturating_sub(sent));
    }

    fn failed(&self, _job: Option<Duration>, failed: Failed<'_>) {
        let mut state = self.state();
        match failed {
            Failed::Stream(status) => state.failed_streams.record(status),
            Failed::Completion(status) | Failed::Unknown(status) => state.rejected_completions.record(status),
            Failed::WillRepeat => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_counts_by_worker_and_partition() {
        let drained = Drained::new(Timeline::start_now());
        let receive = |worker, partition: i64, counter| {
            drained.received(
                Source::Worker(worker),
                &ActivatedJob { key: (partition << COUNTER_BITS) + counter, ..ActivatedJob::default() },
            );
        };
        receive(0, 1, 5);
        receive(0, 2, 3);
        receive(0, 1, 6);
        receive(1, 1, 2);
        receive(0, 1, 1);
        let report = drained.report(None, None);
        assert_eq!((report.received, report.out_of_order, report.duplicate_jobs), (5, 1, 0));
    }
}
