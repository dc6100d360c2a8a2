//! Follows every instance from its creation to the acknowledgement of its last completion.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::ActivatedJob;
use tonic::Status;

use crate::figures::{Figures, Irregularities, Latencies, Second};
use crate::instances::{Instance, Instances, RecentKeys};
use crate::model::Tag;
use crate::options::Work;
use crate::schedule::Timeline;
use crate::worker::{Failed, JobObserver, Source};

/// Sends later than this after their intended time count as late.
const LATE: Duration = Duration::from_millis(10);

/// Shared by the starter, which begins instances, and the workers, which end them.
#[derive(Clone)]
pub(crate) struct Tracker {
    timeline: Timeline,
    tasks: u16,
    in_sequence: bool,
    state: Arc<Mutex<State>>,
}

struct State {
    instances: Instances,
    received_keys: RecentKeys,
    completed_keys: RecentKeys,
    /// Events in this span of time count.
    window: (Duration, Duration),
    figures: Figures,
    irregularities: Irregularities,
    second: SecondSoFar,
}

struct SecondSoFar {
    created: u64,
    completed: u64,
    process: Latencies,
}

impl State {
    fn measuring(&self, time: Duration) -> bool {
        self.window.0 <= time && time < self.window.1
    }
}

/// A job between its arrival and the answer to its completion.
pub(crate) struct TrackedJob {
    key: i64,
    /// It came before; its times are those of the first copy.
    duplicate: bool,
    tag: Option<Tag>,
    received: Duration,
    sent: Duration,
}

impl Tracker {
    pub fn new(timeline: Timeline, work: &Work) -> Self {
        Tracker {
            timeline,
            tasks: work.profile.tasks(),
            in_sequence: work.profile.in_sequence(),
            state: Arc::new(Mutex::new(State {
                instances: Instances::with_limit(work.outstanding_instances),
                received_keys: RecentKeys::default(),
                completed_keys: RecentKeys::default(),
                window: (Duration::MAX, Duration::MAX),
                figures: Figures::new(),
                irregularities: Irregularities::default(),
                second: SecondSoFar { created: 0, completed: 0, process: Latencies::new() },
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing that holds the tracker panics")
    }

    /// Starts new figures for this span of time.
    pub fn open_window(&self, start: Duration, end: Duration) {
        let mut state = self.state();
        state.window = (start, end);
        state.figures = Figures::new();
    }

    /// Ends the window early, so that what comes after counts no more.
    pub fn close_window(&self, end: Duration) {
        let mut state = self.state();
        state.window.1 = state.window.1.min(end);
    }

    pub fn figures(&self) -> Figures {
        self.state().figures.clone()
    }

    pub fn irregularities(&self) -> Irregularities {
        self.state().irregularities.clone()
    }

    pub fn forget_irregularities(&self) {
        self.state().irregularities = Irregularities::default();
    }

    pub fn outstanding(&self) -> usize {
        self.state().instances.len()
    }

    /// Gives the outstanding instances up and says how many of them had been acknowledged.
    pub fn forget_instances(&self) -> u64 {
        self.state().instances.forget_all()
    }

    /// What happened since it was last asked.
    pub fn take_second(&self, second: u64) -> Second {
        let mut state = self.state();
        let quantiles = state.second.process.quantiles();
        let taken = Second {
            second,
            created: std::mem::take(&mut state.second.created),
            completed: std::mem::take(&mut state.second.completed),
            outstanding: state.instances.len(),
            p50: quantiles.p50,
            p99: quantiles.p99,
            max: quantiles.max,
        };
        state.second.process.reset();
        taken
    }

    /// A creation is about to be sent. None when too many instances are outstanding.
    pub fn begin(&self, intended: Duration) -> Option<Tag> {
        let now = self.timeline.now();
        let mut state = self.state();
        let tag = state.instances.insert(Instance {
            intended,
            command_sent: now,
            command_acknowledged: None,
            created: false,
            held: Duration::ZERO,
            tasks_left: self.tasks,
        })?;
        if state.measuring(intended) && now.saturating_sub(intended) > LATE {
            state.figures.late_sends += 1;
        }
        Some(tag)
    }

    /// Creations that were never sent.
    pub fn skipped(&self, intended: Duration, count: u64) {
        let mut state = self.state();
        if state.measuring(intended) {
            state.figures.skipped_sends += count;
        }
    }

    pub fn created(&self, tag: Tag, intended: Duration) {
        let now = self.timeline.now();
        let mut state = self.state();
        // A fast instance may be complete before the answer to its creation is read.
        if let Some(instance) = state.instances.get(tag) {
            instance.created = true;
            if instance.tasks_left == self.tasks {
                instance.command_acknowledged.get_or_insert(now);
            }
        }
        state.second.created += 1;
        if state.measuring(now) {
            state.figures.created += 1;
        }
        if state.measuring(intended) {
            state.figures.creation.record(now.saturating_sub(intended));
        }
    }

    pub fn creation_failed(&self, tag: Tag, status: &Status) {
        let mut state = self.state();
        state.instances.remove(tag);
        state.irregularities.rejected_creations.record(status);
    }

    fn task_completed(&self, state: &mut State, tag: Tag, job: &TrackedJob, now: Duration) {
        let Some(instance) = state.instances.get(tag) else {
            return;
        };
        instance.tasks_left = instance.tasks_left.saturating_sub(1);
        if instance.tasks_left > 0 {
            if self.in_sequence && instance.command_sent == job.sent {
                instance.command_acknowledged = Some(now);
            }
            return;
        }
        let Some(instance) = state.instances.remove(tag) else {
            return;
        };
        let latency = now.saturating_sub(instance.intended);
        state.second.completed += 1;
        state.second.process.record(latency);
        if state.measuring(now) {
            state.figures.completed += 1;
        }
        if state.measuring(instance.intended) {
            state.figures.process.record(latency);
            state.figures.overhead.record(latency.saturating_sub(instance.held));
        }
    }
}

impl JobObserver for Tracker {
    type Job = TrackedJob;

    fn received(&self, source: Source, job: &ActivatedJob) -> TrackedJob {
        let now = self.timeline.now();
        let mut state = self.state();
        let tag = Tag::find(&job.variables);
        let duplicate = !state.received_keys.insert(job.key);
        let mut tracked = TrackedJob { key: job.key, duplicate, tag: None, received: now, sent: now };
        if source == Source::BesideStreams {
            state.irregularities.polled_beside_streams += 1;
        }
        state.irregularities.duplicate_jobs += u64::from(duplicate);
        let measuring = state.measuring(now);
        let known = tag.and_then(|tag| state.instances.get(tag).map(|instance| (tag, instance)));
        let Some((tag, instance)) = known else {
            state.irregularities.unknown_jobs += u64::from(!duplicate);
            return tracked;
        };
        let since_command = now.saturating_sub(instance.command_sent);
        let since_acknowledgement =
            instance.command_acknowledged.map_or(Duration::ZERO, |time| now.saturating_sub(time));
        if measuring && !duplicate {
            let figures = &mut state.figures;
            figures.activation_from_command.record(since_command);
            figures.activation_from_acknowledgement.record(since_acknowledgement);
        }
        tracked.tag = Some(tag);
        tracked
    }

    fn completing(&self, job: &mut TrackedJob) {
        job.sent = self.timeline.now();
        if job.duplicate {
            return;
        }
        let Some(tag) = job.tag else { return };
        let mut state = self.state();
        let Some(instance) = state.instances.get(tag) else {
            return;
        };
        let held = job.sent.saturating_sub(job.received);
        if self.in_sequence {
            instance.held += held;
            instance.command_sent = job.sent;
            instance.command_acknowledged = None;
        } else {
            instance.held = instance.held.max(held);
        }
    }

    fn completed(&self, job: TrackedJob) {
        let now = self.timeline.now();
        let mut state = self.state();
        // Of the copies of a job that came twice, any may be the one whose completion is acknowledged.
        if !state.completed_keys.insert(job.key) {
            state.irregularities.completed_twice += 1;
            return;
        }
        if state.measuring(now) {
            state.figures.jobs_completed += 1;
            let latency = now.saturating_sub(job.sent);
            state.figures.completion.record(latency);
        }
        if let Some(tag) = job.tag {
            self.task_completed(&mut state, tag, &job, now);
        }
    }

    fn failed(&self, job: Option<TrackedJob>, failed: Failed<'_>) {
        let mut state = self.state();
        match failed {
            Failed::Stream(status) => state.irregularities.failed_streams.record(status),
            Failed::Completion(status) => state.irregularities.rejected_completions.record(status),
            Failed::WillRepeat => state.irregularities.repeated_completions += 1,
            Failed::Unconfirmed => {
                state.irregularities.unconfirmed_completions += 1;
                // Not timed, but the instance is most likely further.
                if let Some(job) = job
                    && state.completed_keys.insert(job.key)
                    && let Some(tag) = job.tag
                    && let Some(instance) = state.instances.get(tag)
                {
                    instance.tasks_left = instance.tasks_left.saturating_sub(1);
                    if instance.tasks_left == 0 {
                        state.instances.remove(tag);
                    }
                }
            }
        }
    }
}
