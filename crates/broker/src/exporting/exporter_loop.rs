//! What the thread of an exporter and a partition does between two waits, driven by calls.
//!
//! Nothing here has a thread or a clock of its own, so a simulation drives the same code as production.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::{Fault, LivingRecords};
use exporters::{Delivery, ExporterError, Opening, PartitionExporter, RecordFilter, Resume, Role};
use protocol::{Record, RecordPlace, Timestamp};

use super::progress::Call;
use super::{ExporterProgress, ExporterState, Keeper};
use crate::record_log::{Answer, Gap, Next, Offer, Read, RecordLogError, RecordReader};
use crate::state_handle::StateHandle;

/// Records that are exported before the exporter may flush.
pub(super) const TURN_RECORDS: usize = 1_000;
/// Pause after a first and, at most, after a repeated failure.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// An exporter that wants to flush all the time may do so after this pause.
const FLUSH_PAUSE: Duration = Duration::from_millis(1);
/// How often it is looked whether records have come up to which the leader's exporter is.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// For so long a leader that lacks records waits for another one that may have them.
const LACKS_WAIT: Duration = Duration::from_secs(10);

/// Feeds an exporter with the records of a partition.
pub struct ExporterLoop {
    exporter: Box<dyn PartitionExporter>,
    filter: RecordFilter,
    progress: Arc<ExporterProgress>,
    keeper: Arc<Keeper>,
    role: Role,
    /// None until the exporter is open.
    reader: Option<RecordReader>,
    /// A record that was read and not exported yet.
    next: Option<Read>,
    /// The state of the partition, for an exporter that has to be told what lives.
    state: Option<StateHandle>,
    /// What lives, as long as it is told.
    living: Option<Living>,
    /// Records up to there are gone that the exporter did not want to go on behind: what lives has to be told as of there at least, or
    /// it would come to the same place again.
    gone: RecordPlace,
    /// The last record that the exporter took.
    exported: RecordPlace,
    /// The last record that the exporter took or that was none of its concern.
    seen: RecordPlace,
    /// Of opening, reading and exporting.
    pub(super) retry: Retry,
    /// Of flushing.
    flush_retry: Retry,
    /// No flush before this time, because one has just been.
    flush_not_before: Duration,
    /// When it wants to be called while another node's exporter gets the records.
    follow_at: Option<Duration>,
    /// Since when records are missing here that another node may have.
    lacks_since: Option<Duration>,
    /// What it acknowledges is kept.
    is_kept: bool,
}

/// What lives, and what of it was read and not told yet.
struct Living {
    records: LivingRecords,
    slice: VecDeque<Record>,
    /// Of the state, as long as that is not replaced.
    number: u64,
}

/// When something that failed is tried again.
#[derive(Debug)]
pub(super) struct Retry {
    /// Why it failed, and when it is tried again.
    failure: Option<(String, Duration)>,
    pause: Duration,
}

impl Retry {
    fn new() -> Self {
        Retry { failure: None, pause: RETRY_PAUSE.0 }
    }

    /// It works, but what failed before may fail again: the next pause goes on growing.
    fn goes_on(&mut self) {
        self.failure = None;
    }

    fn note(&mut self, result: Result<(), String>, now: Duration) {
        match result {
            Ok(()) => *self = Retry::new(),
            Err(reason) => {
                self.failure = Some((reason, now + self.pause));
                self.pause = (self.pause * 2).min(RETRY_PAUSE.1);
            }
        }
    }

    pub fn at(&self) -> Option<Duration> {
        self.failure.as_ref().map(|(_, at)| *at)
    }

    fn is_waiting(&self, now: Duration) -> bool {
        self.at().is_some_and(|at| now < at)
    }
}

/// Why a partition makes no progress.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Records(#[from] RecordLogError),
    #[error(transparent)]
    Exporter(#[from] ExporterError),
    #[error("What lives cannot be read: {0}")]
    State(#[from] Fault),
    #[error("What lives cannot be read: the partition has no checkpoint yet.")]
    NoCheckpoint,
    #[error("What lives cannot be read: a state that another node sent takes the place of the partition's state.")]
    ReplacedState,
    #[error("What lives cannot be read: the newest checkpoint ends with record {0}, before those that are gone.")]
    OldCheckpoint(u64),
    #[error("Nothing is kept for it here, and other nodes of the cluster have not said yet what they keep.")]
    OthersUnheard,
    #[error("On this node, {0}. Another node may have them and should lead the partition.")]
    Lacks(Gap),
}

impl Failure {
    fn is_loss(&self) -> bool {
        match self {
            Failure::Exporter(error) => error.is_loss(),
            // What was told of the state is not all of it: it is told again from the beginning.
            Failure::State(_) | Failure::NoCheckpoint | Failure::ReplacedState | Failure::OldCheckpoint(_) => true,
            Failure::Records(_) | Failure::OthersUnheard | Failure::Lacks(_) => false,
        }
    }
}

impl ExporterLoop {
    /// Goes on behind what the exporter has acknowledged. What it acknowledges is kept.
    pub fn new(
        exporter: Box<dyn PartitionExporter>,
        filter: RecordFilter,
        progress: Arc<ExporterProgress>,
        keeper: Arc<Keeper>,
    ) -> Self {
        let acknowledged = progress.acknowledged();
        let mut of = ExporterLoop {
            exporter,
            filter,
            progress,
            keeper,
            role: Role::Follower,
            reader: None,
            next: None,
            state: None,
            living: None,
            gone: RecordPlace::default(),
            exported: acknowledged,
            seen: acknowledged,
            retry: Retry::new(),
            flush_retry: Retry::new(),
            flush_not_before: Duration::ZERO,
            follow_at: None,
            lacks_since: None,
            is_kept: false,
        };
        of.keep();
        of
    }

    /// From now on, what the exporter acknowledges is kept. Where a new one begins that the nodes have in common, the leader
    /// decides: what was kept before would be believed by others.
    fn keep(&mut self) {
        let is_undecided = self.progress.is_shared() && self.progress.is_new();
        if !self.is_kept && !is_undecided {
            self.keeper.keep(self.progress.partition(), self.progress.controller.clone());
            self.is_kept = true;
        }
    }

    /// The state of the partition, from which an exporter is told what lives when it asks for that.
    pub fn with_state(mut self, state: StateHandle) -> Self {
        self.state = Some(state);
        self
    }

    /// A received state takes the place of the partition's state, which must not be held then: what lives is told again, of the
    /// new one.
    pub fn let_go_of_replaced_state(&mut self, now: Duration) {
        let is_current = |living: &Living| self.state.as_ref().is_some_and(|state| state.is_current(living.number));
        if self.living.as_ref().is_some_and(|living| !is_current(living)) {
            self.end(Err(Failure::ReplacedState), now, |of| &mut of.retry);
        }
    }

    #[cfg(test)]
    pub(super) fn living_is_held(&self) -> bool {
        self.living.is_some()
    }

    /// What others see of the exporter.
    pub fn progress(&self) -> &Arc<ExporterProgress> {
        &self.progress
    }

    /// What this node is for the partition.
    pub fn set_role(&mut self, role: Role) {
        if self.role != role {
            self.role = role;
            if self.reader.is_some() {
                self.exporter.role_changed(role);
            }
        }
    }

    /// Whether new records change nothing now.
    pub fn is_failing(&self) -> bool {
        self.retry.failure.is_some()
    }

    /// When there is something to do if no record comes before; none while there is nothing.
    pub fn deadline(&self) -> Option<Duration> {
        let save_at = self.keeper.save_at(self.progress.partition());
        [self.retry.at(), self.flush_at(), save_at, self.follow_at].into_iter().flatten().min()
    }

    /// Until when new records need not be told.
    pub fn rests_until(&self) -> Option<Duration> {
        self.reader.as_ref().and_then(|_| self.exporter.rests_until())
    }

    fn flush_at(&self) -> Option<Duration> {
        let wanted = self.reader.as_ref().and_then(|_| self.exporter.flush_at())?;
        Some(wanted.max(self.flush_not_before).max(self.flush_retry.at().unwrap_or_default()))
    }

    /// Opens the exporter, or exports some records, unless that waits to be tried again, and flushes if it is time. `true` when
    /// there is more to do at once.
    pub fn turn(&mut self, now: Duration, clock: Timestamp) -> bool {
        let mut more = false;
        self.let_go_of_replaced_state(now);
        if self.progress.is_elsewhere() {
            self.follow(now);
            return false;
        }
        self.follow_at = None;
        if self.progress.is_paused() {
            // What it has taken goes on its way. Nothing more comes to it, and what it failed with is past.
            self.retry = Retry::new();
        } else if !self.retry.is_waiting(now) {
            let result = self.open(now).and_then(|()| match self.living {
                Some(_) => self.tell_some(now),
                None => self.export_some(now, clock),
            });
            self.end(result.map(|more_here| more = more_here), now, |of| &mut of.retry);
        }
        if self.flush_at().is_some_and(|at| at <= now) {
            let exporter = &mut self.exporter;
            let result = self.progress.call(Call::Flush, || exporter.flush(now));
            self.flush_not_before = now + FLUSH_PAUSE;
            self.end(result.map_err(Failure::from), now, |of| &mut of.flush_retry);
        }
        // Nothing else moves the place past skipped records; but not while the exporter holds a record back.
        if self.reader.is_some() && self.progress.acknowledged() >= self.exported {
            self.progress.controller.pass(self.seen);
        }
        self.tell_state();
        more && self.retry.failure.is_none()
    }

    fn end(&mut self, result: Result<(), Failure>, now: Duration, retry: impl FnOnce(&mut Self) -> &mut Retry) {
        if result.as_ref().is_err_and(Failure::is_loss) {
            // What it has not acknowledged is lost: it is opened again and gets that again.
            self.reader = None;
            self.next = None;
            self.living = None;
            self.flush_retry = Retry::new();
            return self.retry.note(result.map_err(|error| error.to_string()), now);
        }
        if result.is_ok() && self.living.is_some() {
            // What fails in the middle of what lives would begin from the start again and again, without a pause that grows.
            return retry(self).goes_on();
        }
        retry(self).note(result.map_err(|error| error.to_string()), now);
    }

    /// Another node leads the partition: its exporter gets the records from here on, and goes on where this one is later.
    fn follow(&mut self, now: Duration) {
        self.close_target(now);
        (self.retry, self.flush_retry, self.lacks_since) = (Retry::new(), Retry::new(), None);
        self.progress.set_lacks(None);
        self.progress.take_said();
        self.keep();
        let look_at = self.progress.has_said().then(|| now + FOLLOW_INTERVAL);
        let call_at = self.exporter.follow(&self.progress.controller, now);
        self.follow_at = [call_at, look_at].into_iter().flatten().min();
        self.tell_state();
    }

    /// Lets go of the target, if it is open.
    fn close_target(&mut self, now: Duration) {
        if self.reader.take().is_none() {
            return;
        }
        (self.next, self.living) = (None, None);
        let (progress, exporter) = (&self.progress, &mut self.exporter);
        if let Err(error) = progress.call(Call::Close, || exporter.close(now)) {
            tracing::info!(
                exporter = progress.name(), partition = %progress.partition(), %error,
                "the exporter could not be closed; what it did not acknowledge comes again after the next start"
            );
        } else if progress.acknowledged() >= self.exported {
            progress.controller.pass(self.seen);
        }
    }

    /// Whether the exporter may begin here: in a cluster, only when it is known what other nodes keep for it, and that no other
    /// one has records that are missing here.
    fn check_begin(&mut self, now: Duration) -> Result<(), Failure> {
        let progress = &self.progress;
        if !progress.is_shared() {
            return Ok(());
        }
        if progress.awaits_others() {
            return Err(Failure::OthersUnheard);
        }
        progress.take_said();
        let missing = progress.log().missing_after(progress.acknowledged()).filter(|_| progress.others_can_lead());
        let Some(gap) = missing else {
            self.lacks_since = None;
            progress.set_lacks(None);
            return Ok(());
        };
        let failure = Failure::Lacks(gap);
        progress.set_lacks(Some(failure.to_string()));
        // Without another leader, records that are nowhere else hold up nothing: the gap is said as any other.
        let is_over = now.saturating_sub(*self.lacks_since.get_or_insert(now)) >= LACKS_WAIT;
        if !is_over {
            return Err(failure);
        }
        progress.set_lacks(None);
        Ok(())
    }

    fn open(&mut self, now: Duration) -> Result<(), Failure> {
        if self.reader.is_some() {
            return Ok(());
        }
        self.check_begin(now)?;
        self.begin()?;
        self.progress.set_begun();
        self.keep();
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let (progress, exporter) = (&self.progress, &mut self.exporter);
        let (kept, _) = progress.controller.kept();
        let opening = Opening {
            partition: progress.partition(),
            incarnation: progress.log().incarnation(),
            role: self.role,
            acknowledged: kept.acknowledged,
            beginning: progress.log().beginning(),
            metadata: kept.metadata,
            controller: progress.controller.clone(),
        };
        let place = match progress.call(Call::Open, || exporter.open(opening))? {
            Resume::AsTheNodeSays => kept.acknowledged,
            Resume::After(place) => place,
            Resume::FromState => {
                let state = self.state.as_ref().ok_or(Failure::NoCheckpoint)?;
                let (store, number) = state.get().ok_or(Failure::ReplacedState)?;
                let records = LivingRecords::of(progress.partition(), &store)?.ok_or(Failure::NoCheckpoint)?;
                let place = records.place();
                // Numbers go back when a partition was restored, and positions have gaps of their own.
                if (place.incarnation, place.number) < (self.gone.incarnation, self.gone.number) {
                    return Err(Failure::OldCheckpoint(place.position));
                }
                self.living = Some(Living { records, slice: VecDeque::new(), number });
                place
            }
        };
        let place = progress.log().resume_after(place);
        progress.controller.resume_after(place);
        let (partition, after) = (progress.partition(), place.position);
        tracing::debug!(exporter = progress.name(), %partition, after, "the exporter is open and gets the records from here on");
        self.reader = Some(RecordReader::after(progress.log().clone(), place));
        (self.next, self.exported, self.seen) = (None, place, place);
        progress.exported.store(place.position, Ordering::Relaxed);
        progress.forget_exported();
        Ok(())
    }

    /// Tells some of what lives. `true`, because the records come behind it.
    fn tell_some(&mut self, now: Duration) -> Result<bool, Failure> {
        let (progress, exporter) = (&self.progress, &mut self.exporter);
        let Some(living) = &mut self.living else { return Ok(true) };
        for _ in 0..TURN_RECORDS {
            if living.slice.is_empty() {
                match living.records.next_slice()? {
                    Some(slice) => living.slice = slice.into(),
                    None => {
                        let (place, at) = (living.records.place(), living.records.timestamp());
                        progress.call(Call::Export, || exporter.living_told(place, at, now))?;
                        self.living = None;
                        return Ok(true);
                    }
                }
            }
            let Some(record) = living.slice.front() else { continue };
            progress.call(Call::Export, || exporter.take_living(record, now))?;
            living.slice.pop_front();
        }
        Ok(true)
    }

    /// `true` when the partition has more records than were exported now.
    fn export_some(&mut self, now: Duration, clock: Timestamp) -> Result<bool, Failure> {
        let (progress, exporter) = (&self.progress, &mut self.exporter);
        let reader = self.reader.as_mut().expect("it was opened");
        let (mut exported, mut skipped, mut timestamp) = (0, 0, None);
        let mut result = Ok(true);
        let takes_encoded = self.filter == RecordFilter::default();
        for _ in 0..TURN_RECORDS {
            if progress.is_elsewhere() {
                break;
            }
            let kept = self.next.take().map(Next::Read);
            let next = kept.map_or_else(
                || reader.next(|offer| answer(exporter.as_mut(), offer, takes_encoded, now)),
                |read| Ok(Some(read)),
            );
            if let Some(gap) = reader.take_gap() {
                progress.note_gap(gap);
                if gap.records() > 0 {
                    let up_to = gap.up_to;
                    if let Err(error) = progress.call(Call::Export, || exporter.records_missing(up_to, now)) {
                        self.gone = up_to;
                        self.next = if let Ok(Some(Next::Read(read))) = next { Some(read) } else { None };
                        result = Err(error.into());
                        break;
                    }
                }
            }
            let read = match next {
                Ok(Some(Next::Read(read))) => read,
                Ok(Some(Next::Passed(place, at))) => {
                    skipped += 1;
                    (self.seen, timestamp) = (place, Some(at));
                    continue;
                }
                Ok(Some(Next::Taken(place, at))) => {
                    exported += 1;
                    (self.exported, self.seen, timestamp) = (place, place, Some(at));
                    continue;
                }
                Ok(None) => {
                    result = Ok(false);
                    break;
                }
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            };
            timestamp = Some(read.record.timestamp);
            if !self.filter.accepts(&read.record) {
                skipped += 1;
                self.seen = read.place();
                continue;
            }
            let delivery = Delivery { record: &read.record, source: &read.source };
            if let Err(error) = progress.call(Call::Export, || exporter.export(&delivery, now)) {
                self.next = Some(read);
                result = Err(error.into());
                break;
            }
            exported += 1;
            (self.exported, self.seen) = (read.place(), read.place());
        }
        if skipped > 0 && self.seen > self.exported && exporter.passed(self.seen) {
            self.exported = self.seen;
        }
        self.tell_exported(exported, skipped, timestamp, clock);
        result
    }

    /// Counts what was exported and skipped, the last of it at `timestamp`; none if that was nothing.
    fn tell_exported(&self, exported: u64, skipped: u64, timestamp: Option<Timestamp>, clock: Timestamp) {
        self.progress.exported.store(self.exported.position, Ordering::Relaxed);
        let Some(timestamp) = timestamp else { return };
        self.progress.note_exported(self.exported, timestamp);
        let latency = Duration::from_millis(u64::try_from(clock.saturating_sub(timestamp)).unwrap_or(0));
        self.progress.metrics.exported(exported, skipped, latency);
    }

    /// Says how the exporter is, and what of it is news.
    fn tell_state(&self) {
        let failure = [&self.retry, &self.flush_retry].into_iter().find_map(|retry| retry.failure.as_ref());
        let (progress, partition) = (&self.progress, self.progress.partition());
        let mut state = progress.state.lock();
        let failed_before = matches!(*state, ExporterState::Failing(_));
        match failure {
            None if progress.is_elsewhere() => *state = ExporterState::Following,
            None if progress.is_paused() => *state = ExporterState::Paused,
            // Before it was opened nobody knows whether its target is there.
            None if self.reader.is_none() => *state = ExporterState::Opening,
            None if *state == ExporterState::Exporting => {}
            None => {
                if failed_before {
                    tracing::info!(exporter = progress.name(), %partition, "the exporter works again");
                }
                *state = ExporterState::Exporting;
            }
            Some((reason, _)) => {
                if !failed_before {
                    tracing::warn!(
                        exporter = progress.name(), %partition, reason,
                        "the exporter fails; it is tried again until it works, and records are kept for it meanwhile"
                    );
                }
                *state = ExporterState::Failing(reason.clone());
            }
        }
    }

    /// Keeps what was acknowledged for the next start, if it is time for that.
    pub fn save(&self, now: Duration) {
        if self.keeper.save_at(self.progress.partition()).is_some_and(|at| at <= now) {
            self.keeper.save(now);
        }
    }

    /// Keeps what was acknowledged for the next start.
    pub fn save_now(&self, now: Duration) {
        self.keeper.save(now);
    }

    /// Exports what is left, as long as that works and `goes_on` says so, and closes the target.
    pub fn close(&mut self, now: impl Fn() -> Duration, clock: Timestamp, goes_on: impl Fn() -> bool) {
        let mut more = self.reader.is_some() && !self.progress.is_paused();
        while more && goes_on() {
            more = self.turn(now(), clock);
        }
        self.close_target(now());
        *self.progress.state.lock() = ExporterState::Closed;
    }
}

/// What an exporter makes of a record before it is read. Only one whose filter lets everything through may take it as it is.
fn answer(exporter: &mut dyn PartitionExporter, offer: &Offer<'_>, takes_encoded: bool, now: Duration) -> Answer {
    let is_offered = takes_encoded && offer.follows;
    if is_offered && exporter.take_encoded(&offer.subject, offer.encoded, offer.place, now) {
        return Answer::Taken;
    }
    if exporter.wants(&offer.subject) { Answer::Read } else { Answer::Pass }
}
