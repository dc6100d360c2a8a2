//! Completes the jobs that an earlier run left, and watches in which order they come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::ActivatedJob;
use serde::Serialize;

use crate::connection::{connect, describe_server};
use crate::error::LoadError;
use crate::figures::{Failures, Latencies, Quantiles};
use crate::instances::RecentKeys;
use crate::options::{DrainOptions, Options};
use crate::process_statistics::{ProcessUse, Usage};
use crate::report::Context;
use crate::schedule::Timeline;
use crate::worker::{Failed, JobObserver, Source, WorkerSettings, Workers};

/// The bits of a key below its partition.
const COUNTER_BITS: u32 = 51;
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
    /// Jobs that came to a worker after one of the same partition with a greater key.
    pub out_of_order: u64,
    /// Jobs that came a second time.
    pub duplicate_jobs: u64,
    /// Jobs that no stream took and the poll beside the streams found.
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
}

#[derive(Clone)]
struct Drained {
    timeline: Timeline,
    state: Arc<Mutex<State>>,
}

struct State {
    first: Option<Duration>,
    last: Duration,
    last_completed: Duration,
    received: u64,
    completed: u64,
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
    let connections = options.connections.min(drain.worker.workers);
    let clients = connect(options, connections).await?;
    let server = describe_server(&clients[0], options.request_timeout).await?;
    let before = Usage::take(&options.server_pids)?;
    let drained = Drained::new(Timeline::start_now());
    let settings = WorkerSettings {
        job_type: drain.job_type.clone(),
        options: drain.worker.clone(),
        request_timeout: options.request_timeout,
        completions_in_flight: None,
    };
    let workers = Workers::start(&clients, &settings, &drained);
    drained.wait_for_end(drain, options.progress).await;
    drop(workers);
    let (server_use, own) = Usage::take(&options.server_pids)?.since(&before);
    let report = drained.report(server_use, own);
    let note = (report.received == 0).then(|| format!("No job of type \"{}\" came.", drain.job_type));
    Ok((Context::new(server, &[], None, note), report))
}

impl Drained {
    fn new(timeline: Timeline) -> Self {
        Drained {
            timeline,
            state: Arc::new(Mutex::new(State {
                first: None,
                last: Duration::ZERO,
                last_completed: Duration::ZERO,
                received: 0,
                completed: 0,
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

    async fn wait_for_end(&self, drain: &DrainOptions, progress: bool) {
        let mut reported = (0, Duration::ZERO);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.timeline.now();
            let (completed, last) = {
                let state = self.state();
                (state.completed, state.last.max(state.last_completed))
            };
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
        DrainReport {
            first_job_milliseconds: state.first.map(|first| first.as_secs_f64() * 1e3),
            received: state.received,
            completed: state.completed,
            seconds,
            completed_per_second: if seconds > 0.0 { state.completed as f64 / seconds } else { 0.0 },
            out_of_order: state.out_of_order,
            duplicate_jobs: state.duplicates,
            polled_beside_streams: state.polled_beside_streams,
            completion_latency: state.completion.quantiles(),
            rejected_completions: state.rejected_completions.clone(),
            failed_streams: state.failed_streams.clone(),
            server,
            own,
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
        let mut state = self.state();
        state.completed += 1;
        state.last_completed = now;
        state.completion.record(now.saturating_sub(sent));
    }

    fn failed(&self, _job: Option<Duration>, failed: Failed<'_>) {
        let mut state = self.state();
        match failed {
            Failed::Stream(status) => state.failed_streams.record(status),
            Failed::Completion(status) => state.rejected_completions.record(status),
            Failed::Unconfirmed => state.completed += 1,
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
