//! Lets many timers come due at the same moment, and measures how long it takes until all have fired, while other
//! instances run.

mod fired;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::Semaphore;

use crate::beforehand::Beforehand;
use crate::connection::connect;
use crate::error::LoadError;
use crate::figures::{Failures, Irregularities, Measured, Quantiles};
use crate::model::{RunNames, date};
use crate::options::{Options, TimersOptions, WorkerOptions};
use crate::own_thread::OwnThread;
use crate::process_statistics::{ProcessUse, Usage};
use crate::profile::Kind;
use crate::report::Context;
use crate::schedule::{FOR_EVER, Schedule, Timeline};
use crate::session::{SETTLE, Session, creator, deploy};
use crate::worker::{WorkerSettings, Workers};

pub use fired::FiredReport;

use fired::Fired;

/// How many completions of the jobs after the timers may be unanswered at once. More would only wait in the server,
/// ahead of the commands of the other instances.
const COMPLETIONS_IN_FLIGHT: usize = 128;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How timers of the same moment fired.
#[derive(Clone, Debug, Serialize)]
pub struct TimersReport {
    /// Instances that waited for a timer.
    pub created: u64,
    /// Time to create them, in seconds.
    pub creation_seconds: f64,
    /// Creations per second.
    pub created_per_second: f64,
    /// From sending to acknowledgement, in a closed loop: a slow server gets fewer requests.
    pub creation_latency: Quantiles,
    /// Creations that failed; each was replaced by another.
    pub rejected_creations: Failures,
    /// The moment at which all were due.
    pub due: String,
    /// How the timers fired and their instances completed.
    #[serde(flatten)]
    pub fired: FiredReport,
    /// Intended creations per second of the other process.
    pub rate_beside: f64,
    /// The other process before the due date.
    pub before: BesideReport,
    /// The other process from the due date until the last timer had fired.
    pub while_firing: BesideReport,
    /// The other process from then until the last instance with a timer had completed.
    pub while_completing: BesideReport,
    /// Failures and surprises of the other process.
    pub irregularities: Irregularities,
    /// Processor time and memory of the server from the due date to the completion of the last.
    pub server: Option<ProcessUse>,
    /// Microseconds of processor time of the server per completed instance of either process.
    pub server_cpu_microseconds_per_instance: Option<f64>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
    /// Second by second from the due date.
    pub series: Vec<TimersSecond>,
}

/// The other process in one span of time; an instance belongs to the span in which its creation was intended.
#[derive(Clone, Debug, Serialize)]
pub struct BesideReport {
    /// Length of the span.
    pub seconds: f64,
    /// What was measured in it.
    #[serde(flatten)]
    pub measured: Measured,
}

/// One second of firing timers; the last is shorter.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimersSecond {
    /// Its end, in seconds since the due date.
    pub until: f64,
    /// Timers that fired.
    pub fired: u64,
    /// Instances with a timer that completed.
    pub completed: u64,
    /// Instances of the other process that completed.
    pub completed_beside: u64,
    /// 99th percentile of the process latency of these, in milliseconds.
    pub p99_beside: f64,
}

pub(crate) async fn run(options: &Options, timers: &TimersOptions) -> Result<(Context, TimersReport), LoadError> {
    let session = Session::open(options, &timers.work, None).await?;
    let names = RunNames::unique();
    let (due_seconds, due) = due_date(&Clocks::read(session.timeline), timers.due_in);
    let clients = connect(options, options.connections).await?;
    let kind = Kind::TimerTask { due: due_seconds };
    let process_ids = deploy(clients.any(), &[kind], &names, options.request_timeout).await?;
    let deployed = [&session.process_ids[..], &process_ids[..]].concat();
    let fired = Fired::new(session.timeline, due);
    let firing = workers(options.clone(), settings(options, timers, &names), fired.clone());
    let _firing = OwnThread::start("load-timers", firing).await?;
    tokio::time::sleep(SETTLE).await;
    let beforehand = Beforehand {
        creator: creator(options, clients, process_ids, timers.work.payload_bytes),
        kind: 0,
        timeline: session.timeline,
        in_flight: timers.in_flight,
        end: due.saturating_sub(timers.warm_up),
        progress: options.progress,
    };
    let made = beforehand.create(timers.timers, &fired).await;
    if made.created < timers.timers {
        return Err(LoadError::DueTooSoon {
            created: made.created,
            wanted: timers.timers,
            seconds: made.seconds as u64,
            failures: made.rejected.to_string(),
        });
    }
    let beside = session.beside(timers, due, &fired).await?;
    let fired = fired.report();
    let instances =
        fired.completed + beside.while_firing.measured.completed + beside.while_completing.measured.completed;
    let (server, own) = beside.used;
    let report = TimersReport {
        created: made.created,
        creation_seconds: made.seconds,
        created_per_second: made.created as f64 / made.seconds,
        creation_latency: made.latency.quantiles(),
        rejected_creations: made.rejected,
        due: date(due_seconds),
        fired,
        rate_beside: timers.rate,
        before: beside.before,
        while_firing: beside.while_firing,
        while_completing: beside.while_completing,
        irregularities: session.tracker.irregularities(),
        server_cpu_microseconds_per_instance: server.and_then(|server| server.cpu_microseconds_per(instances)),
        server,
        own,
        series: beside.series,
    };
    let context = Context::new(session.server.clone(), &deployed, Some(&session.names), Some(timers.work.to_string()));
    Ok((context, report))
}

/// The next full second after this delay, since the Unix epoch and on the timeline.
fn due_date(clocks: &Clocks, after: Duration) -> (u64, Duration) {
    let seconds = (clocks.since_epoch + after).as_secs() + 1;
    (seconds, clocks.timeline + (Duration::from_secs(seconds) - clocks.since_epoch))
}

/// The same moment on two clocks.
struct Clocks {
    timeline: Duration,
    since_epoch: Duration,
}

impl Clocks {
    fn read(timeline: Timeline) -> Self {
        // In this order, a pause between the two makes timers look late, never early.
        let timeline = timeline.now();
        Clocks { timeline, since_epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() }
    }
}

fn settings(options: &Options, timers: &TimersOptions, names: &RunNames) -> WorkerSettings {
    WorkerSettings {
        job_type: names.job_type.clone(),
        options: WorkerOptions {
            delay: Duration::ZERO,
            // Every job is read when it comes, so that its arrival shows when the timer fired.
            jobs_in_flight: usize::try_from(timers.timers).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS),
            job_timeout: timers.work.worker.job_timeout + timers.limit,
            ..timers.work.worker.clone()
        },
        request_timeout: options.request_timeout,
        completions_in_flight: Some(Arc::new(Semaphore::new(COMPLETIONS_IN_FLIGHT))),
        rest: None,
        ledger: None,
    }
}

struct Beside {
    before: BesideReport,
    while_firing: BesideReport,
    while_completing: BesideReport,
    used: (Option<ProcessUse>, Option<ProcessUse>),
    series: Vec<TimersSecond>,
}

impl Session {
    /// Runs the other process until the timers have fired and their instances have completed.
    async fn beside(&self, timers: &TimersOptions, due: Duration, fired: &Fired) -> Result<Beside, LoadError> {
        let start = self.timeline.now() + Duration::from_millis(5);
        let before_start = due.saturating_sub(timers.warm_up).max(start);
        self.tracker.forget_irregularities();
        self.tracker.open_window(before_start, due);
        self.tracker.add_window(due, FOR_EVER);
        let starter = self.start(Schedule { start, end: due + timers.limit, rate: timers.rate })?;
        if self.progress {
            let left = due.saturating_sub(start).as_secs_f64();
            eprintln!("{} timers are due in {left:.1} s", timers.timers);
        }
        self.timeline.sleep_until(due).await;
        self.tracker.take_second(0);
        let usage = Usage::take(&self.server_pids)?;
        let limit = due + timers.limit;
        let mut series = Seconds::new(self, fired, due);
        let all_fired = series.watch_until(limit, Fired::have_all_fired).await;
        self.tracker.close_window(all_fired);
        self.tracker.add_window(all_fired, FOR_EVER);
        let end = series.watch_until(limit, Fired::have_all_completed).await;
        self.tracker.close_window(end);
        series.take(end);
        let used = Usage::take(&self.server_pids)?.since(&usage);
        drop(starter);
        self.wait_for_the_last(end).await;
        let report = |window, start, end: Duration| {
            let seconds = end.saturating_sub(start).as_secs_f64();
            let (_, figures) = self.tracker.figures(window);
            BesideReport { seconds, measured: figures.measured(seconds) }
        };
        Ok(Beside {
            before: report(0, before_start, due),
            while_firing: report(1, due, all_fired),
            while_completing: report(2, all_fired, end),
            used,
            series: series.taken,
        })
    }
}

/// The series of seconds from the due date.
struct Seconds<'a> {
    session: &'a Session,
    fired: &'a Fired,
    due: Duration,
    next: u64,
    so_far: (u64, u64),
    taken: Vec<TimersSecond>,
}

impl<'a> Seconds<'a> {
    fn new(session: &'a Session, fired: &'a Fired, due: Duration) -> Self {
        Seconds { session, fired, due, next: 1, so_far: (0, 0), taken: Vec::new() }
    }

    /// Takes a sample each second until the condition holds or the time is up, and returns when that was.
    async fn watch_until(&mut self, end: Duration, holds: fn(&Fired) -> bool) -> Duration {
        loop {
            let now = self.session.timeline.now();
            if now >= self.due + Duration::from_secs(self.next) {
                self.take(now);
            }
            if holds(self.fired) || now >= end {
                return now;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Takes a sample of what happened since the last one.
    fn take(&mut self, now: Duration) {
        let so_far = self.fired.so_far();
        let second = self.session.tracker.take_second(self.next);
        let taken = TimersSecond {
            until: now.saturating_sub(self.due).as_secs_f64(),
            fired: so_far.0 - self.so_far.0,
            completed: so_far.1 - self.so_far.1,
            completed_beside: second.completed,
            p99_beside: second.p99,
        };
        if self.session.progress {
            eprintln!(
                "{:>5.1} s  fired {:>7}  completed {:>7}  others: completed {:>5}  process latency ms p99 {:>8.2}",
                taken.until, taken.fired, taken.completed, taken.completed_beside, taken.p99_beside
            );
        }
        self.so_far = so_far;
        self.next += 1;
        self.taken.push(taken);
    }
}

/// The workers of the jobs after the timers, on a separate thread: the jobs come so fast that the other instances would
/// wait for this tool instead of the server.
async fn workers(options: Options, settings: WorkerSettings, fired: Fired) -> Result<Workers, LoadError> {
    let clients = connect(&options, options.connections.min(settings.options.workers)).await?;
    Ok(Workers::start(&clients, &settings, &fired))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_due_date_is_a_full_second_and_the_same_on_both_clocks() {
        let after = Duration::from_millis(2_500);
        let clocks = |milliseconds| Clocks {
            timeline: Duration::from_millis(700),
            since_epoch: Duration::from_millis(milliseconds),
        };
        assert_eq!(due_date(&clocks(1_000_000_100), after), (1_000_003, Duration::from_millis(3_600)));
        assert_eq!(due_date(&clocks(1_000_000_499), after), (1_000_003, Duration::from_millis(3_201)));
        assert_eq!(due_date(&clocks(1_000_000_500), after), (1_000_004, Duration::from_millis(4_200)));
    }
}
