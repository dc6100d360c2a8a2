//! What other threads see of an exporter and one partition.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use exporters::{Controller, Kept};
use parking_lot::Mutex;
use protocol::{PartitionId, RecordPlace, Timestamp};

use super::pause::{Pause, PauseSwitch};
use crate::metrics::ExporterMetrics;
use crate::record_log::{Gap, RecordLog};

/// Of so many records that an exporter took and has not acknowledged, it is known when they happened.
const PENDING_MAX: usize = 1_000;

/// What an exporter is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExporterState {
    /// It connects to its target.
    Opening,
    /// It takes records.
    Exporting,
    /// It gets no records, because an operator paused exporting.
    Paused,
    /// It takes records, and they are kept although it has acknowledged them, because an operator paused exporting softly.
    SoftPaused,
    /// It failed and is tried again; the sentence says why.
    Failing(String),
    /// It does not come back from a call; the sentence says from which.
    Stuck(String),
    /// It gets no records, because another node leads the partition, and its exporter gets them.
    Following,
    /// It is closed.
    Closed,
}

impl ExporterState {
    /// The reason why no record is taken.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            ExporterState::Failing(reason) | ExporterState::Stuck(reason) => Some(reason),
            ExporterState::Opening
            | ExporterState::Exporting
            | ExporterState::Paused
            | ExporterState::SoftPaused
            | ExporterState::Following
            | ExporterState::Closed => None,
        }
    }
}

/// How an exporter is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExporterStatus {
    /// Its name.
    pub name: String,
    /// How it is with each partition.
    pub partitions: Vec<ExporterPosition>,
}

impl ExporterStatus {
    /// What it is doing: where it is in trouble, if it is anywhere.
    pub fn state(&self) -> ExporterState {
        let states = || self.partitions.iter().map(|partition| &partition.state);
        let troubled = states().find(|state| state.trouble().is_some());
        let opening = states().find(|state| **state == ExporterState::Opening);
        let working = states().find(|state| **state != ExporterState::Following);
        troubled.or(opening).or(working).or(states().next()).cloned().unwrap_or(ExporterState::Closed)
    }
}

/// How an exporter is with a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExporterPosition {
    /// The partition.
    pub partition: PartitionId,
    /// What it is doing.
    pub state: ExporterState,
    /// Position of the last record handed to it.
    pub exported: u64,
    /// Position up to which it needs no record again.
    pub acknowledged: u64,
    /// Position of the last record there is.
    pub last: u64,
    /// How many records there are behind the last one that it has acknowledged. Positions would not tell: they leave some out, and
    /// many where another life of the data begins.
    pub lag_records: u64,
    /// Time since the oldest record happened that it has taken and not acknowledged, or, if there is none, since the last one that it
    /// took or refused; 0 when it has acknowledged everything.
    pub lag_milliseconds: u64,
    /// How many records were missing where it came by, since the start of the node.
    pub missing_records: u64,
    /// The last place where records were missing, in a sentence.
    pub gap: Option<String>,
    /// What the exporter itself says of it.
    pub remark: Option<String>,
}

/// What an exporter that gets records only at the leader of its partition must know of the cluster.
pub trait Leadership: std::fmt::Debug + Send + Sync {
    /// Whether this node leads the partition.
    fn leads(&self) -> bool;

    /// Whether all other nodes that can be reached have said what they keep for the exporters of the partition.
    fn others_have_said(&self) -> bool;

    /// Whether another node that can be reached may lead the partition.
    fn others_can_lead(&self) -> bool;
}

/// What an exporter is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Open,
    Export,
    Flush,
    Close,
}

impl Call {
    const ALL: [Call; 4] = [Call::Open, Call::Export, Call::Flush, Call::Close];

    fn name(self) -> &'static str {
        match self {
            Call::Open => "connecting to its target",
            Call::Export => "taking a record",
            Call::Flush => "sending what it kept back",
            Call::Close => "closing",
        }
    }
}

/// A call that somebody saw, and since when.
#[derive(Debug, Clone, Copy)]
struct Seen {
    calls: u64,
    since: Duration,
}

/// What other threads see of an exporter and one partition.
#[derive(Debug)]
pub struct ExporterProgress {
    name: String,
    log: Arc<RecordLog>,
    /// What was acknowledged when the node was started.
    kept_at_start: RecordPlace,
    pub(super) controller: Controller,
    pub(super) state: Mutex<ExporterState>,
    pub(super) exported: AtomicU64,
    /// When the record happened that was exported or tried last; at first the start of the node.
    exported_timestamp: AtomicI64,
    /// Of the records that it took and has not acknowledged, some, with the time at which they happened.
    pending: Mutex<VecDeque<(RecordPlace, Timestamp)>>,
    /// Counts the calls, above two bits that name the present one, below which is one bit for whether there is one.
    calls: AtomicU64,
    /// The call that is watched.
    seen: Mutex<Seen>,
    /// How long the exporter has not come back, once that is too long.
    stuck: Mutex<Option<(Call, Duration)>>,
    missing_records: AtomicU64,
    gap: Mutex<Option<(Gap, String)>>,
    /// Whether exporting is paused.
    pause: Option<Arc<PauseSwitch>>,
    /// Whether the exporter stops then.
    stops_when_paused: bool,
    /// Of an exporter that gets records only at the leader of the partition.
    leadership: Option<Arc<dyn Leadership>>,
    /// What was kept for it when the node was started: nothing for a new one.
    is_new: AtomicBool,
    /// What the leader keeps for it: what was said first and not taken yet, and what was said last.
    said: Mutex<VecDeque<Kept>>,
    /// Why the partition should be led by another node.
    lacks: Mutex<Option<String>>,
    pub(super) metrics: ExporterMetrics,
}

impl ExporterProgress {
    /// Of an exporter for which so much is kept of a partition; nothing for a new one, which begins where the stream does.
    /// `wake` is called after each acknowledgement.
    pub fn new(
        name: &str,
        kept: Option<Kept>,
        log: Arc<RecordLog>,
        now: Timestamp,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let is_new = AtomicBool::new(kept.is_none());
        let mut kept = kept.unwrap_or_else(|| Kept { acknowledged: log.beginning(), ..Kept::default() });
        let kept_at_start = kept.acknowledged;
        kept.acknowledged = log.resume_after(kept.acknowledged);
        ExporterProgress {
            name: name.to_owned(),
            kept_at_start,
            exported: AtomicU64::new(kept.acknowledged.position),
            controller: Controller::new(kept, wake),
            state: Mutex::new(ExporterState::Opening),
            exported_timestamp: AtomicI64::new(now),
            pending: Mutex::default(),
            calls: AtomicU64::new(0),
            seen: Mutex::new(Seen { calls: 0, since: Duration::ZERO }),
            stuck: Mutex::new(None),
            missing_records: AtomicU64::new(0),
            gap: Mutex::new(None),
            pause: None,
            stops_when_paused: false,
            leadership: None,
            is_new,
            said: Mutex::default(),
            lacks: Mutex::default(),
            metrics: ExporterMetrics::new(name, log.partition()),
            log,
        }
    }

    /// An operator may pause exporting, for which the exporter stops or not.
    pub fn with_pause(mut self, pause: Arc<PauseSwitch>, stops_when_paused: bool) -> Self {
        (self.pause, self.stops_when_paused) = (Some(pause), stops_when_paused);
        self
    }

    /// It gets records only while this node leads the partition. While another one does, it follows what that one says.
    pub fn with_leadership(mut self, leadership: Arc<dyn Leadership>) -> Self {
        self.leadership = Some(leadership);
        self
    }

    /// Whether it gets records only at the leader of the partition.
    pub fn is_shared(&self) -> bool {
        self.leadership.is_some()
    }

    /// Whether another node's exporter gets the records.
    pub fn is_elsewhere(&self) -> bool {
        self.leadership.as_ref().is_some_and(|leadership| !leadership.leads())
    }

    /// Whether nothing was kept for it at the start, and it has not begun since.
    pub fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Acquire)
    }

    pub(super) fn set_begun(&self) {
        self.is_new.store(false, Ordering::Release);
    }

    /// Whether nothing was kept for it at the start and the other nodes have yet to say whether they have.
    pub(super) fn awaits_others(&self) -> bool {
        let leadership = self.leadership.as_ref().filter(|_| self.is_new());
        leadership.is_some_and(|leadership| !leadership.others_have_said())
    }

    /// Whether another node may lead the partition, and have records that are missing here.
    pub(super) fn others_can_lead(&self) -> bool {
        self.leadership.as_ref().is_some_and(|leadership| leadership.others_can_lead())
    }

    /// The leader of the partition keeps this for it. A new one believes others too, until the leader is heard.
    pub fn say(&self, kept: Kept, of_leader: bool) {
        let is_new = self.is_new();
        match of_leader {
            true if !self.is_elsewhere() => return,
            true => {}
            false if !is_new => return,
            // All of them have what the one who is furthest says.
            false if self.said.lock().iter().any(|said| said.acknowledged >= kept.acknowledged) => return,
            false => self.said.lock().clear(),
        }
        let mut said = self.said.lock();
        // The first one stays until it is taken: who is always a little late would never take any.
        said.truncate(1);
        said.push_back(kept);
        drop(said);
        self.controller.wake();
    }

    /// Takes what the leader keeps, as far as the records are there.
    pub(super) fn take_said(&self) {
        let last = self.log.last_place();
        let mut said = self.said.lock();
        while let Some(kept) = said.pop_front_if(|kept| kept.acknowledged <= last) {
            self.set_begun();
            self.controller.follow(kept);
        }
    }

    /// Whether something that the leader said waits for its records.
    pub(super) fn has_said(&self) -> bool {
        !self.said.lock().is_empty()
    }

    /// Why the partition should be led by another node: records that the exporter needs are not here, and may be there.
    pub fn lacks(&self) -> Option<String> {
        self.lacks.lock().clone()
    }

    pub(super) fn set_lacks(&self, lacks: Option<String>) {
        *self.lacks.lock() = lacks;
    }

    fn pause(&self) -> Pause {
        self.pause.as_ref().map_or(Pause::None, |pause| pause.get())
    }

    /// Whether it gets no records, because an operator paused exporting.
    pub fn is_paused(&self) -> bool {
        self.stops_when_paused && self.pause() == Pause::Hard
    }

    /// Whether its records are kept, because an operator paused exporting.
    pub fn is_held_back(&self) -> bool {
        self.is_paused() || self.pause() == Pause::Soft
    }

    /// The exporter's name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The partition.
    pub fn partition(&self) -> PartitionId {
        self.log.partition()
    }

    /// Its records.
    pub fn log(&self) -> &Arc<RecordLog> {
        &self.log
    }

    /// What was acknowledged when the node was started. The log must account for it.
    pub fn kept_at_start(&self) -> RecordPlace {
        self.kept_at_start
    }

    /// Where the exporter acknowledges.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The place up to which the exporter needs no record again.
    pub fn acknowledged(&self) -> RecordPlace {
        self.controller.acknowledged()
    }

    /// The place behind which records are kept for it: in a soft pause, also those that it has acknowledged.
    pub fn kept_from(&self) -> RecordPlace {
        if self.pause() == Pause::Soft { self.saved() } else { self.acknowledged() }
    }

    /// The place up to which nothing is needed again, whatever happens: a restart would go on behind it. What lies before may be
    /// deleted; what is only acknowledged may not, or a restart would miss it.
    pub fn saved(&self) -> RecordPlace {
        self.controller.saved()
    }

    /// How many records were missing where it came by.
    pub fn missing_records(&self) -> u64 {
        self.missing_records.load(Ordering::Relaxed)
    }

    /// Lets the exporter do something, watched by [`ExporterProgress::watch`].
    pub(super) fn call<R>(&self, call: Call, does: impl FnOnce() -> R) -> R {
        const STEP: u64 = 8;
        let number = (self.calls.load(Ordering::Relaxed) & !7).wrapping_add(STEP);
        self.calls.store(number | (call as u64) << 1 | 1, Ordering::Relaxed);
        let result = does();
        self.calls.store(number, Ordering::Relaxed);
        result
    }

    /// Looks whether the exporter is in the same call for too long. To be called from time to time, by another thread than
    /// the exporter's.
    pub fn watch(&self, now: Duration, stuck_after: Duration) {
        let calls = self.calls.load(Ordering::Relaxed);
        let mut seen = self.seen.lock();
        if calls != seen.calls {
            *seen = Seen { calls, since: now };
        }
        let for_so_long = now.saturating_sub(seen.since);
        let is_stuck = calls & 1 == 1 && for_so_long >= stuck_after;
        let mut stuck = self.stuck.lock();
        let was_stuck = stuck.is_some();
        *stuck = is_stuck.then(|| (Call::ALL[(calls >> 1 & 3) as usize], for_so_long));
        match (*stuck, was_stuck) {
            (Some((call, _)), false) => tracing::warn!(
                exporter = self.name, partition = %self.partition(),
                "the exporter does not come back from {}; records of this partition are kept for it meanwhile", call.name()
            ),
            (None, true) => {
                tracing::info!(exporter = self.name, partition = %self.partition(), "the exporter has come back");
            }
            _ => {}
        }
    }

    /// Records are missing, which is said once.
    pub(super) fn note_gap(&self, gap: Gap) {
        let mut noted = self.gap.lock();
        if noted.as_ref().is_some_and(|(before, _)| before.up_to >= gap.up_to) {
            return;
        }
        let (partition, sentence) = (self.partition(), format!("In the record stream, {gap}."));
        tracing::error!(
            exporter = self.name, %partition, missing = gap.records(), gap = %gap,
            "records that the exporter has not had are missing; it goes on behind them"
        );
        self.missing_records.fetch_add(gap.records(), Ordering::Relaxed);
        self.metrics.missing(gap.records());
        *noted = Some((gap, sentence));
    }

    /// What it has taken up to a place, or tried to, happened at this time.
    pub(super) fn note_exported(&self, place: RecordPlace, timestamp: Timestamp) {
        self.exported_timestamp.store(timestamp, Ordering::Relaxed);
        let mut pending = self.pending.lock();
        if pending.back().is_some_and(|(last, _)| *last >= place) {
            return;
        }
        if pending.len() == PENDING_MAX {
            // They become half as dense.
            let mut number = 0;
            pending.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        pending.push_back((place, timestamp));
    }

    /// It is opened, and takes again what comes behind its place.
    pub(super) fn forget_exported(&self) {
        self.pending.lock().clear();
    }

    fn pending_since(&self, acknowledged: RecordPlace) -> Option<Timestamp> {
        let mut pending = self.pending.lock();
        while pending.front().is_some_and(|(place, _)| *place <= acknowledged) {
            pending.pop_front();
        }
        pending.front().map(|(_, timestamp)| *timestamp)
    }

    /// How the exporter is doing at the time `now`.
    pub fn position(&self, now: Timestamp) -> ExporterPosition {
        let (acknowledged, last) = (self.acknowledged(), self.log.last_place());
        let since = self.pending_since(acknowledged).unwrap_or_else(|| self.exported_timestamp.load(Ordering::Relaxed));
        // How late another node's exporter is that one knows.
        let lag = if acknowledged < last && !self.is_elsewhere() { now.saturating_sub(since) } else { 0 };
        let stuck = self.stuck.lock().map(|(call, since)| {
            ExporterState::Stuck(format!("It has not come back from {} for {} s.", call.name(), since.as_secs()))
        });
        let state = || match self.state.lock().clone() {
            ExporterState::Exporting if self.pause() == Pause::Soft => ExporterState::SoftPaused,
            state => state,
        };
        ExporterPosition {
            partition: self.partition(),
            state: stuck.unwrap_or_else(state),
            exported: self.exported.load(Ordering::Relaxed),
            acknowledged: acknowledged.position,
            last: last.position,
            lag_records: last.number.saturating_sub(acknowledged.number),
            lag_milliseconds: u64::try_from(lag).unwrap_or(0),
            missing_records: self.missing_records(),
            gap: self.gap.lock().as_ref().map(|(_, sentence)| sentence.clone()),
            remark: self.controller.remark(),
        }
    }

    /// Publishes the numbers as they are at the time `now`.
    pub fn publish(&self, now: Timestamp) {
        let position = self.position(now);
        let lag = Duration::from_millis(position.lag_milliseconds);
        self.metrics.positions(position.exported, position.acknowledged, position.lag_records, lag);
        self.metrics.state(&position.state);
    }
}
