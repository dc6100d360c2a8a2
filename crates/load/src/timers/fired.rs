//! What is known of each timer: whether it fired, how often, and when.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::ActivatedJob;
use serde::Serialize;
use tonic::Status;

use crate::beforehand::Tags;
use crate::figures::{Failures, Latencies, Quantiles};
use crate::model::Tag;
use crate::schedule::Timeline;
use crate::worker::{Failed, JobObserver, Source};

/// Creations that are tried at most.
const CREATIONS_LIMIT: u64 = 20_000_000;
/// The clocks of this tool and of the server may be so far apart by rounding alone.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(2);

/// How timers fired, seen by the jobs that follow them, and how their instances completed. Times count from the due date.
#[derive(Clone, Debug, Serialize)]
pub struct FiredReport {
    /// Timers that fired.
    pub fired: u64,
    /// Instances with a timer that completed.
    pub completed: u64,
    /// Instances that waited for a timer and whose job never came.
    pub lost: u64,
    /// Jobs that show that a timer fired again.
    pub repeated: u64,
    /// Jobs that came more than 2 ms before the due date. On another machine than the server its clock counts too.
    pub early: u64,
    /// When the first job came, in milliseconds.
    pub first_fired: Option<f64>,
    /// When the last job came, in milliseconds; none when some never came.
    pub last_fired: Option<f64>,
    /// When the last completion was acknowledged, in milliseconds; none when some never were.
    pub last_completed: Option<f64>,
    /// From the due date to the arrival of the job.
    pub fired_after: Quantiles,
    /// From the due date to the acknowledgement of the completion.
    pub completed_after: Quantiles,
    /// Jobs that came a second time.
    pub duplicate_jobs: u64,
    /// Jobs that no stream took, found by the poll that runs alongside.
    pub polled_beside_streams: u64,
    /// Completions that failed for good.
    pub rejected_completions: Failures,
    /// Completions that were sent again after an error that may pass.
    pub repeated_completions: u64,
    /// Streams and polls that ended with an error.
    pub failed_streams: Failures,
}

/// Shared by the creation of the instances and the workers.
#[derive(Clone)]
pub(crate) struct Fired {
    timeline: Timeline,
    due: Duration,
    state: Arc<Mutex<State>>,
}

struct State {
    /// By number of the creation.
    timers: Vec<Timer>,
    created: u64,
    /// Of those whose creation was acknowledged.
    created_and_fired: u64,
    created_and_completed: u64,
    fired: u64,
    completed: u64,
    repeated: u64,
    early: u64,
    first: Option<Duration>,
    last: Duration,
    last_completed: Duration,
    fired_after: Latencies,
    completed_after: Latencies,
    duplicates: u64,
    polled_beside_streams: u64,
    rejected_completions: Failures,
    repeated_completions: u64,
    failed_streams: Failures,
}

#[derive(Clone, Copy, Default)]
struct Timer {
    /// The creation was acknowledged.
    created: bool,
    /// The key of the first job.
    job: Option<i64>,
    completed: bool,
}

impl Fired {
    pub fn new(timeline: Timeline, due: Duration) -> Self {
        Fired {
            timeline,
            due,
            state: Arc::new(Mutex::new(State {
                timers: Vec::new(),
                created: 0,
                created_and_fired: 0,
                created_and_completed: 0,
                fired: 0,
                completed: 0,
                repeated: 0,
                early: 0,
                first: None,
                last: Duration::ZERO,
                last_completed: Duration::ZERO,
                fired_after: Latencies::new(),
                completed_after: Latencies::new(),
                duplicates: 0,
                polled_beside_streams: 0,
                rejected_completions: Failures::default(),
                repeated_completions: 0,
                failed_streams: Failures::default(),
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing that holds the state panics")
    }

    /// Whether the job of every instance that is known to have waited has come.
    pub fn have_all_fired(&self) -> bool {
        let state = self.state();
        state.created_and_fired == state.created
    }

    /// Whether every instance that is known to have waited has completed.
    pub fn have_all_completed(&self) -> bool {
        let state = self.state();
        state.created_and_completed == state.created
    }

    /// How many timers fired and how many of their instances completed.
    pub fn so_far(&self) -> (u64, u64) {
        let state = self.state();
        (state.fired, state.completed)
    }

    pub fn report(&self) -> FiredReport {
        let state = self.state();
        let after_due = |time: Duration| (time.as_secs_f64() - self.due.as_secs_f64()) * 1e3;
        let lost = state.created - state.created_and_fired;
        let all_completed = state.created_and_completed == state.created && state.created > 0;
        FiredReport {
            fired: state.fired,
            completed: state.completed,
            lost,
            repeated: state.repeated,
            early: state.early,
            first_fired: state.first.map(after_due),
            last_fired: (lost == 0 && state.fired > 0).then(|| after_due(state.last)),
            last_completed: all_completed.then(|| after_due(state.last_completed)),
            fired_after: state.fired_after.quantiles(),
            completed_after: state.completed_after.quantiles(),
            duplicate_jobs: state.duplicates,
            polled_beside_streams: state.polled_beside_streams,
            rejected_completions: state.rejected_completions.clone(),
            repeated_completions: state.repeated_completions,
            failed_streams: state.failed_streams.clone(),
        }
    }

    fn job_completed(&self, number: Option<usize>) {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(number) = number else { return };
        let timer = &mut state.timers[number];
        // Of a job that came twice one completion counts.
        if std::mem::replace(&mut timer.completed, true) {
            return;
        }
        state.completed += 1;
        state.last_completed = now;
        state.completed_after.record(now.saturating_sub(self.due));
        state.created_and_completed += u64::from(timer.created);
    }
}

impl Tags for Fired {
    fn begin(&self, number: u64) -> Option<Tag> {
        if number >= CREATIONS_LIMIT {
            return None;
        }
        let mut state = self.state();
        let length = usize::try_from(number).ok()? + 1;
        if state.timers.len() < length {
            state.timers.resize(length, Timer::default());
        }
        Some(Tag(number))
    }

    fn created(&self, tag: Tag) {
        let mut guard = self.state();
        let state = &mut *guard;
        let timer = &mut state.timers[tag.0 as usize];
        timer.created = true;
        state.created += 1;
        // Its job may have come before the answer to the creation, when the due date is near.
        state.created_and_fired += u64::from(timer.job.is_some());
        state.created_and_completed += u64::from(timer.completed);
    }

    /// The creation may have been carried out all the same, so the timer may fire; it need not.
    fn failed(&self, _tag: Tag, _status: &Status) {}
}

impl JobObserver for Fired {
    /// The number of the creation, if the job shows the first firing of its timer.
    type Job = Option<usize>;

    fn received(&self, source: Source, job: &ActivatedJob) -> Option<usize> {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        state.polled_beside_streams += u64::from(source == Source::BesideStreams);
        let number = usize::try_from(Tag::find(&job.variables)?.0).ok()?;
        let timer = state.timers.get_mut(number)?;
        match timer.job {
            Some(key) if key == job.key => {
                state.duplicates += 1;
                return Some(number);
            }
            Some(_) => {
                state.repeated += 1;
                return None;
            }
            None => timer.job = Some(job.key),
        }
        state.created_and_fired += u64::from(timer.created);
        state.fired += 1;
        state.first.get_or_insert(now);
        state.last = now;
        state.early += u64::from(now + CLOCK_TOLERANCE < self.due);
        state.fired_after.record(now.saturating_sub(self.due));
        Some(number)
    }

    fn completing(&self, _job: &mut Option<usize>) {}

    fn completed(&self, number: Option<usize>) {
        self.job_completed(number);
    }

    fn failed(&self, _number: Option<Option<usize>>, failed: Failed<'_>) {
        match failed {
            Failed::Stream(status) => self.state().failed_streams.record(status),
            Failed::Completion(status) | Failed::Unknown(status) => {
                self.state().rejected_completions.record(status);
            }
            Failed::WillRepeat => self.state().repeated_completions += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Payload;

    fn job(number: u64, key: i64) -> ActivatedJob {
        ActivatedJob { key, variables: Payload::of_bytes(100).variables(Tag(number)), ..ActivatedJob::default() }
    }

    #[test]
    fn lost_repeated_and_early_timers_are_counted() {
        let fired = Fired::new(Timeline::start_now(), Duration::from_secs(60));
        for number in 0..4 {
            let tag = fired.begin(number).expect("there is room");
            // The answer to the last creation got lost.
            if number < 3 {
                fired.created(tag);
            }
        }
        let receive = |number, key| {
            let job = fired.received(Source::Worker(0), &job(number, key));
            fired.completed(job);
        };
        receive(0, 10);
        receive(0, 10);
        receive(1, 11);
        receive(1, 12);
        receive(3, 13);
        receive(99, 14);
        assert!(!fired.have_all_fired());
        let report = fired.report();
        assert_eq!((report.fired, report.completed, report.lost), (3, 3, 1));
        assert_eq!((report.repeated, report.duplicate_jobs, report.early), (1, 1, 3));
        assert_eq!((report.last_fired, report.last_completed), (None, None));
        receive(2, 15);
        assert!(fired.have_all_fired() && fired.have_all_completed());
        let report = fired.report();
        assert_eq!(report.lost, 0);
        assert!(report.first_fired.is_some_and(|first| first < -1_000.0), "{report:?}");
        assert!(report.last_completed.is_some());
    }
}
