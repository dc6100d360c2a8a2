//! When new data can be found: for a sample of the instances, the time from the intended send of their creation until a
//! search by key and a search by filter find them.

mod searches;
mod together;

use std::fmt::{self, Formatter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;

use crate::figures::{Failures, Latencies, Quantiles};
use crate::model::Tag;
use crate::options::AvailabilityOptions;
use crate::report::{quantile_row, row};
use crate::schedule::Timeline;
use searches::Searches;
use together::Together;

/// Instances that are looked for at once; samples beyond are counted and left out.
const WANTED_MAX: u32 = 256;
/// The pause after a search that found nothing: a part of the time that has passed, between these. So the error is small
/// beside what is measured, and the searches are few. The shortest one depends on what is searched.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
const PAUSE_PART: u32 = 20;
/// Spreads the sample over the turns of a profile, whatever their number.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Looks for some of the instances of a run. Clones share what they found.
#[derive(Clone)]
pub(crate) struct Availability(Arc<Shared>);

struct Shared {
    timeline: Timeline,
    searches: Searches,
    together: Together,
    samples_per_second: f64,
    give_up_after: Duration,
    /// One instance of so many is looked for; none when it is zero.
    one_of: AtomicU64,
    room: Semaphore,
    process_ids: Arc<[Arc<str>]>,
    state: Mutex<State>,
}

struct State {
    window: (Duration, Duration),
    /// By process.
    found: Vec<Found>,
    left_out: u64,
    lost: u64,
    failures: Failures,
}

#[derive(Clone)]
struct Found {
    by_key: Latencies,
    by_filter: Latencies,
    after_acknowledgement: Latencies,
}

/// An instance that is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The number of its process.
    pub kind: usize,
    pub key: i64,
    /// In its variables.
    pub tag: Tag,
    /// When its creation was intended to be sent.
    pub intended: Duration,
}

/// How it is searched for.
#[derive(Clone, Copy, Debug)]
enum By {
    Key,
    Filter,
}

/// When instances could be found.
#[derive(Clone, Debug, Serialize)]
pub struct AvailabilityReport {
    /// What was searched.
    pub searched: String,
    /// All processes together.
    #[serde(flatten)]
    pub sum: FoundReport,
    /// The instances of each process, when there are several.
    pub by_process: Vec<FoundByProcess>,
    /// Instances of the sample that were not looked for, because too many searches ran already.
    pub left_out: u64,
    /// Instances that were acknowledged and not found in time.
    pub lost: u64,
    /// Searches that failed; they were made again.
    pub failures: Failures,
}

/// How long instances took to be found.
#[derive(Clone, Debug, Serialize)]
pub struct FoundReport {
    /// From the intended send of the creation until a search by key found the instance.
    pub by_key: Quantiles,
    /// The same by the definition and a variable; in Elasticsearch and OpenSearch by the variable's record.
    pub by_filter: Quantiles,
    /// From the acknowledgement of the creation until both had found it: what the read model adds to the commit.
    pub after_acknowledgement: Quantiles,
}

/// How long the instances of one process took to be found.
#[derive(Clone, Debug, Serialize)]
pub struct FoundByProcess {
    /// Its id.
    pub process: String,
    /// How long they took.
    #[serde(flatten)]
    pub found: FoundReport,
}

impl Availability {
    pub fn new(
        options: &AvailabilityOptions,
        timeline: Timeline,
        process_ids: Arc<[Arc<str>]>,
        request_timeout: Duration,
    ) -> Self {
        Availability(Arc::new(Shared {
            timeline,
            searches: Searches::new(options, request_timeout),
            together: Together::default(),
            samples_per_second: options.samples_per_second,
            give_up_after: options.give_up_after,
            one_of: AtomicU64::new(0),
            room: Semaphore::new(WANTED_MAX as usize),
            state: Mutex::new(State::new(Duration::ZERO, Duration::ZERO, process_ids.len())),
            process_ids,
        }))
    }

    /// Starts new figures of what is created in this span of time, at this rate.
    pub fn open(&self, start: Duration, end: Duration, rate: f64) {
        // A rate is at most a million, and a sample at least one in a thousand seconds.
        let one_of = (rate / self.0.samples_per_second).ceil().max(1.0) as u64;
        self.0.one_of.store(one_of, Ordering::Relaxed);
        *self.state() = State::new(start, end, self.0.process_ids.len());
    }

    /// The instance was acknowledged just now; looks for it if it belongs to the sample. `number` is that of the send.
    pub fn created(&self, number: u64, wanted: Wanted) {
        let one_of = self.0.one_of.load(Ordering::Relaxed);
        if one_of == 0 || !(number.wrapping_mul(SPREAD) >> 32).is_multiple_of(one_of) {
            return;
        }
        let (start, end) = self.state().window;
        if wanted.intended < start || wanted.intended >= end {
            return;
        }
        let (this, acknowledged) = (self.clone(), self.0.timeline.now());
        tokio::spawn(async move { this.find(wanted, acknowledged).await });
    }

    async fn find(&self, wanted: Wanted, acknowledged: Duration) {
        let Ok(_room) = self.0.room.try_acquire() else {
            self.state().left_out += 1;
            return;
        };
        let (by_key, by_filter) = tokio::join!(
            self.until_found(acknowledged, wanted, By::Key),
            self.until_found(acknowledged, wanted, By::Filter),
        );
        let mut state = self.state();
        let (Some(by_key), Some(by_filter)) = (by_key, by_filter) else {
            state.lost += 1;
            return;
        };
        let found = &mut state.found[wanted.kind];
        found.by_key.record(by_key.saturating_sub(wanted.intended));
        found.by_filter.record(by_filter.saturating_sub(wanted.intended));
        found.after_acknowledgement.record(by_key.max(by_filter).saturating_sub(acknowledged));
    }

    /// Searches again and again, and returns when it was found.
    async fn until_found(&self, acknowledged: Duration, wanted: Wanted, by: By) -> Option<Duration> {
        if self.0.searches.are_made_together() {
            return self.found_with_others(acknowledged, wanted, by).await;
        }
        loop {
            let result = match by {
                By::Key => self.0.searches.by_key(wanted.key).await,
                By::Filter => {
                    let process_id = &self.0.process_ids[wanted.kind];
                    self.0.searches.by_filter(process_id, wanted.tag, wanted.key).await
                }
            };
            let now = self.0.timeline.now();
            match result {
                Ok(true) => return Some(now),
                Ok(false) => {}
                Err(status) => self.state().failures.record(&status),
            }
            let passed = now.saturating_sub(acknowledged);
            if passed > self.0.give_up_after {
                return None;
            }
            tokio::time::sleep((passed / PAUSE_PART).clamp(self.0.searches.shortest_pause(), LONGEST_PAUSE)).await;
        }
    }

    /// Waits for the last searches, and starts no more.
    pub async fn finish(&self) -> AvailabilityReport {
        self.0.one_of.store(0, Ordering::Relaxed);
        // Let those begin that were just spawned.
        tokio::task::yield_now().await;
        drop(self.0.room.acquire_many(WANTED_MAX).await);
        let state = self.state();
        let mut sum = Found::new();
        state.found.iter().for_each(|found| sum.add(found));
        let by_process =
            |(found, id): (&Found, &Arc<str>)| FoundByProcess { process: id.to_string(), found: found.report() };
        let by_process = match &state.found[..] {
            [_] => Vec::new(),
            found => found.iter().zip(self.0.process_ids.iter()).map(by_process).collect(),
        };
        AvailabilityReport {
            searched: self.0.searches.to_string(),
            sum: sum.report(),
            by_process,
            left_out: state.left_out,
            lost: state.lost,
            failures: state.failures.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nothing that holds the figures panics")
    }
}

impl State {
    fn new(start: Duration, end: Duration, processes: usize) -> Self {
        State {
            window: (start, end),
            found: vec![Found::new(); processes],
            left_out: 0,
            lost: 0,
            failures: Failures::default(),
        }
    }
}

impl Found {
    fn new() -> Self {
        Found { by_key: Latencies::new(), by_filter: Latencies::new(), after_acknowledgement: Latencies::new() }
    }

    fn add(&mut self, other: &Found) {
        self.by_key.add(&other.by_key);
        self.by_filter.add(&other.by_filter);
        self.after_acknowledgement.add(&other.after_acknowledgement);
    }

    fn report(&self) -> FoundReport {
        FoundReport {
            by_key: self.by_key.quantiles(),
            by_filter: self.by_filter.quantiles(),
            after_acknowledgement: self.after_acknowledgement.quantiles(),
        }
    }
}

impl AvailabilityReport {
    /// What makes the run fail: acknowledged instances that nobody finds.
    pub(crate) fn failure(&self) -> Option<String> {
        (self.lost > 0).then(|| {
            format!(
                "{} acknowledged instances were not found in {} in time; {} were. Searches that failed: {}.",
                self.lost, self.searched, self.sum.by_key.count, self.failures
            )
        })
    }

    pub(crate) fn write_text(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.sum.write_text(formatter)?;
        for part in &self.by_process {
            writeln!(formatter, "{}", part.process)?;
            part.found.write_text(formatter)?;
        }
        row(
            formatter,
            "searched",
            format_args!("{}; {} not found, {} of the sample left out", self.searched, self.lost, self.left_out),
        )?;
        match self.failures.total() {
            0 => Ok(()),
            _ => row(formatter, "failed searches", &self.failures),
        }
    }
}

impl FoundReport {
    fn write_text(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        quantile_row(formatter, "found by key", &self.by_key)?;
        quantile_row(formatter, "found by filter", &self.by_filter)?;
        quantile_row(formatter, "found after the acknowledgement", &self.after_acknowledgement)
    }
}
