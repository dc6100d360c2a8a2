//! One open-loop run at a fixed rate.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::availability::AvailabilityReport;
use crate::error::LoadError;
use crate::figures::{Figures, Irregularities, Measured, MessageCounts, Second};
use crate::link::AddressReport;
use crate::process_statistics::{ProcessUse, Usage};
use crate::schedule::{Pacer, Schedule};
use crate::session::Session;
use crate::silence::SilenceReport;
use crate::starter::keep_schedule;

/// The report lists no seconds after this; the run continues.
const SERIES_LIMIT_SECONDS: usize = 7_200;
/// More outstanding instances than this many seconds of the rate show that the server does not keep up.
const OVERLOAD_SECONDS: f64 = 2.0;

const STARTER_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How a trial is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialPlan {
    pub rate: f64,
    pub warm_up: Duration,
    pub duration: Duration,
    pub drain_limit: Duration,
    /// End as soon as the server clearly does not keep up; `work` is what the tasks of an instance take.
    pub give_up_when_overloaded: Option<Duration>,
}

/// The figures of a run at a fixed rate, over the time after its warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// Intended sends per second: creations, in the profile `messages` publications.
    pub target_rate: f64,
    /// Length of the measurement, shorter than asked for when it was given up.
    pub seconds: f64,
    /// All instances.
    #[serde(flatten)]
    pub sum: Measured,
    /// The instances of each process, when there are several.
    pub by_process: Vec<ProcessReport>,
    /// What became of the messages, if there are any.
    pub messages: Option<MessageCounts>,
    /// How long the last instances took after the last send, in seconds.
    pub drain_seconds: f64,
    /// Instances outstanding at the start of the measurement.
    pub outstanding_at_start: usize,
    /// Instances outstanding at its end.
    pub outstanding_at_end: usize,
    /// In the profile `messages`, instances that still waited for a message at its end.
    pub waiting: usize,
    /// When a sample of the instances could be found, if that was asked for.
    pub availability: Option<AvailabilityReport>,
    /// What became of the commands at each address, from the start of the warm-up.
    pub by_address: Vec<AddressReport>,
    /// The longest times without any acknowledgement, from the start of the warm-up to the end of the measurement.
    pub silence: SilenceReport,
    /// Failures and surprises, also outside the measured time.
    pub irregularities: Irregularities,
    /// Processor time and memory of the server.
    pub server: Option<ProcessUse>,
    /// Microseconds of processor time of the server for each completed instance.
    pub server_cpu_microseconds_per_instance: Option<f64>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
    /// Microseconds of processor time of the load generator for each completed instance.
    pub own_cpu_microseconds_per_instance: Option<f64>,
    /// Second by second, from the start of the warm-up.
    pub series: Vec<Second>,
}

/// The figures of the instances of one process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// The shape of the process.
    pub process: String,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
}

impl Session {
    /// Runs at a fixed rate.
    pub async fn trial(&self, plan: &TrialPlan) -> Result<RateReport, LoadError> {
        self.tracker.forget_irregularities();
        if self.sender.profile.sends_messages() {
            let schedule = Schedule { start: Duration::ZERO, end: plan.warm_up + plan.duration, rate: plan.rate };
            self.make_beforehand(self.waiting.saturating_add(schedule.total())).await?;
        }
        let start = self.timeline.now() + Duration::from_millis(5);
        let window_start = start + plan.warm_up;
        let planned_end = window_start + plan.duration;
        self.tracker.open_window(window_start, planned_end);
        self.tracker.listen(start, planned_end);
        self.addresses.forget();
        if let Some(availability) = &self.sender.availability {
            availability.open(window_start, planned_end, plan.rate);
        }
        let mut starter = self.start(Schedule { start, end: planned_end, rate: plan.rate })?;

        let mut series = Series::new(self, start, plan);
        let overloaded = series.watch_until(window_start).await;
        let outstanding_at_start = self.tracker.outstanding();
        let before = Usage::take(&self.server_pids)?;
        let overloaded = overloaded || series.watch_until(planned_end).await;
        let after = Usage::take(&self.server_pids)?;
        let window_end = planned_end.min(self.timeline.now()).max(window_start);
        let outstanding_at_end = self.tracker.outstanding();
        let silence = self.tracker.silence();
        if overloaded {
            self.tracker.close_window(window_end);
        } else {
            // It ends with the schedule, after counting what it could not send.
            let _ = tokio::time::timeout(STARTER_ENDS_WITHIN, &mut starter.0).await;
        }
        drop(starter);
        let drain_seconds = self.drain(window_end + plan.drain_limit, &mut series).await;
        let unfinished = self.tracker.forget_instances();
        let availability = match &self.sender.availability {
            Some(availability) => Some(availability.finish().await),
            None => None,
        };
        let (server, own) = after.since(&before);
        let (by_kind, sum) = self.tracker.figures(0);
        let seconds = (window_end - window_start).as_secs_f64();
        let sum = Measured { unfinished: unfinished.iter().sum(), ..sum.measured(seconds) };
        let completed = sum.completed;
        Ok(RateReport {
            target_rate: plan.rate,
            seconds,
            sum,
            by_process: self.by_process(&by_kind, &unfinished, seconds),
            messages: self.tracker.messages(),
            drain_seconds,
            outstanding_at_start,
            outstanding_at_end,
            waiting: self.tracker.made_beforehand(),
            availability,
            by_address: self.addresses.report(),
            silence,
            irregularities: self.tracker.irregularities(),
            server_cpu_microseconds_per_instance: server.and_then(|server| server.cpu_microseconds_per(completed)),
            server,
            own_cpu_microseconds_per_instance: own.and_then(|own| own.cpu_microseconds_per(completed)),
            own,
            series: series.seconds,
        })
    }

    /// Starts to keep a schedule.
    pub fn start(&self, schedule: Schedule) -> Result<AbortOnDrop, LoadError> {
        let pacer = Pacer::start(self.timeline, schedule)?;
        let in_flight = Arc::clone(&self.creations_in_flight);
        Ok(AbortOnDrop(tokio::spawn(keep_schedule(self.sender.clone(), self.timeline, schedule, pacer, in_flight))))
    }

    fn by_process(&self, figures: &[Figures], unfinished: &[u64], seconds: f64) -> Vec<ProcessReport> {
        if self.kinds.len() == 1 {
            return Vec::new();
        }
        let report = |(kind, figures): (usize, &Figures)| ProcessReport {
            process: self.kinds[kind].to_string(),
            measured: Measured { unfinished: unfinished[kind], ..figures.measured(seconds) },
        };
        figures.iter().enumerate().map(report).collect()
    }

    /// Waits for the last instances and says how long that took.
    async fn drain(&self, limit: Duration, series: &mut Series<'_>) -> f64 {
        let start = self.timeline.now();
        while self.tracker.outstanding() > 0 && self.timeline.now() < limit {
            tokio::time::sleep(Duration::from_millis(10)).await;
            series.take_if_due();
        }
        (self.timeline.now() - start).as_secs_f64()
    }
}

/// The starter ends with the trial, also when the trial ends early.
pub(crate) struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Series<'a> {
    session: &'a Session,
    seconds: Vec<Second>,
    next: u64,
    start: Duration,
    overload: Option<f64>,
}

impl<'a> Series<'a> {
    fn new(session: &'a Session, start: Duration, plan: &TrialPlan) -> Self {
        session.tracker.take_second(0);
        let overload =
            plan.give_up_when_overloaded.map(|work| plan.rate * (OVERLOAD_SECONDS + work.as_secs_f64()) + 100.0);
        Series { session, seconds: Vec::new(), next: 1, start, overload }
    }

    /// Takes a sample each second until then; true when it stopped early because of overload.
    async fn watch_until(&mut self, end: Duration) -> bool {
        loop {
            let due = self.start + Duration::from_secs(self.next);
            self.session.timeline.sleep_until(due.min(end)).await;
            self.take_if_due();
            let outstanding = self.session.tracker.outstanding() as f64;
            if self.overload.is_some_and(|limit| outstanding > limit) {
                return true;
            }
            if due >= end {
                return false;
            }
        }
    }

    fn take_if_due(&mut self) {
        if self.session.timeline.now() < self.start + Duration::from_secs(self.next) {
            return;
        }
        let second = self.session.tracker.take_second(self.next);
        self.next += 1;
        if self.session.progress {
            let (sent, done) = match self.session.sender.profile.sends_messages() {
                true => (second.published, "published"),
                false => (second.created, "created"),
            };
            eprintln!(
                "{:>5} s  {done} {sent:>7}/s  completed {:>7}/s  outstanding {:>7}  process latency ms p50 {:>8.2}  p99 {:>8.2}  max {:>8.2}",
                second.second, second.completed, second.outstanding, second.p50, second.p99, second.max
            );
        }
        if self.seconds.len() < SERIES_LIMIT_SECONDS {
            self.seconds.push(second);
        }
    }
}
