//! What the workers see of the instances of a run with a surge. A job's variables say which creation it belongs to and
//! when that was sent, so all that is kept of an instance is whether it completed.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use gateway_interface::ActivatedJob;
use serde::Serialize;

use super::plan::{Phase, Plan};
use super::sender::Numbers;
use crate::figures::{Failures, Latencies};
use crate::model::{Tag, task_number};
use crate::profile::Kind;
use crate::schedule::Timeline;
use crate::worker::{Failed, JobObserver, Source};

/// Numbers from here on belong to instances created before the run.
pub(super) const FIRST_TEST_NUMBER: u32 = u32::MAX - 0xffff;

/// The instances of one phase that completed.
#[derive(Clone, Debug)]
pub(super) struct Completed {
    /// Completed in the phase, whenever they were created.
    pub count: u64,
    /// From the intended time of the creation, of the instances that were intended in the phase.
    pub since_intended: Latencies,
    /// From its sending.
    pub since_sent: Latencies,
}

/// Failures and surprises, in all phases.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SurgeIrregularities {
    /// Completions that failed for good.
    pub rejected_completions: Failures,
    /// Completions that were sent again because the server had too much to do.
    pub repeated_completions: u64,
    /// Completions that may have been done or not; they were not sent again.
    pub unknown_completions: Failures,
    /// Streams and polls that ended with an error.
    pub failed_streams: Failures,
    /// Instances whose last completion was acknowledged twice.
    pub completed_twice: u64,
    /// Jobs of instances that this run did not create.
    pub unknown_jobs: u64,
    /// Jobs that no stream took, found by the poll that runs alongside.
    pub polled_beside_streams: u64,
}

pub(super) struct State {
    pub phases: Vec<Completed>,
    pub second: Latencies,
    pub second_completed: u64,
    pub completed: u64,
    pub tests_completed: u64,
    pub irregularities: SurgeIrregularities,
}

/// Shared by the workers and the run.
#[derive(Clone)]
pub(super) struct Completions {
    timeline: Timeline,
    last_task: u16,
    run: Arc<OnceLock<Run>>,
    state: Arc<Mutex<State>>,
}

/// What exists from the start of the first phase.
struct Run {
    plan: Plan,
    completed: Numbers,
}

/// A job between its arrival and the answer to its completion.
pub(super) struct Job {
    number: u32,
    sent: u32,
    is_last: bool,
}

impl Completions {
    pub fn new(timeline: Timeline, kind: Kind) -> Self {
        let completed = Completed { count: 0, since_intended: Latencies::new(), since_sent: Latencies::new() };
        Completions {
            timeline,
            last_task: kind.tasks(),
            run: Arc::new(OnceLock::new()),
            state: Arc::new(Mutex::new(State {
                phases: vec![completed; Phase::ALL.len()],
                second: Latencies::new(),
                second_completed: 0,
                completed: 0,
                tests_completed: 0,
                irregularities: SurgeIrregularities::default(),
            })),
        }
    }

    /// Called before the first creation of the plan. Returns the set that will hold the creations whose instances
    /// completed.
    pub fn begin(&self, plan: &Plan) -> Numbers {
        let run = self.run.get_or_init(|| Run { plan: plan.clone(), completed: Numbers::up_to(plan.total()) });
        run.completed.clone()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing that holds the state panics")
    }

    fn is_planned(&self, number: u32) -> bool {
        self.run.get().is_some_and(|run| u64::from(number) < run.plan.total())
    }

    /// The last job of an instance was completed. Without a time it counts, but adds no latency.
    fn instance_completed(&self, job: &Job) {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let run = match self.run.get() {
            Some(run) if job.number < FIRST_TEST_NUMBER => run,
            _ => {
                state.tests_completed += 1;
                return;
            }
        };
        if !run.completed.insert(job.number) {
            state.irregularities.completed_twice += 1;
            return;
        }
        state.completed += 1;
        state.second_completed += 1;
        if let Some(place) = run.plan.place_at(now) {
            state.phases[place].count += 1;
        }
        let since_intended = now.saturating_sub(run.plan.intended(u64::from(job.number)));
        let phase = &mut state.phases[run.plan.place_of(u64::from(job.number))];
        phase.since_intended.record(since_intended);
        phase.since_sent.record(now.saturating_sub(Duration::from_micros(u64::from(job.sent))));
        state.second.record(since_intended);
    }
}

impl JobObserver for Completions {
    type Job = Option<Job>;

    fn received(&self, source: Source, job: &ActivatedJob) -> Option<Job> {
        if source == Source::BesideStreams {
            self.state().irregularities.polled_beside_streams += 1;
        }
        let known = Tag::find(&job.variables)
            .map(Tag::send)
            .filter(|(number, _)| *number >= FIRST_TEST_NUMBER || self.is_planned(*number));
        let Some((number, sent)) = known else {
            self.state().irregularities.unknown_jobs += 1;
            return None;
        };
        Some(Job { number, sent, is_last: task_number(&job.element_id) == Some(self.last_task) })
    }

    fn completing(&self, _job: &mut Option<Job>) {}

    fn completed(&self, job: Option<Job>) {
        if let Some(job) = job.filter(|job| job.is_last) {
            self.instance_completed(&job);
        }
    }

    fn failed(&self, _job: Option<Option<Job>>, failed: Failed<'_>) {
        let found = &mut self.state().irregularities;
        match failed {
            Failed::Stream(status) => found.failed_streams.record(status),
            Failed::Completion(status) => found.rejected_completions.record(status),
            Failed::WillRepeat => found.repeated_completions += 1,
            Failed::Unknown(status) => found.unknown_completions.record(status),
        }
    }
}
