//! The read model as a consumer of records.
//!
//! What is taken is in memory until the next transaction. One comes at once after a pause, and as soon as somebody waits for it. As
//! long as nobody does, at least a tenth of a second passes between two of them, and more the more they write: a small one costs
//! as much as some hundred rows, and writes whole pages. What a transaction wrote survives a crash of the process at once, and a
//! loss of power after the next checkpoint; only then it is acknowledged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exporters::{Context, Controller, Delivery, Exporter, ExporterError, Opening, PartitionExporter, Resume};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use protocol::{ElementEvent, PartitionId, Payload, PurgeIntent, Record, RecordPlace, Subject, Timestamp};

use crate::audited::Audited;
use crate::check::Check;
use crate::database;
use crate::fold::{Fold, process_instance};
use crate::follower::Follower;
use crate::model::ReadModel;
use crate::progress::Progress;
use crate::rebuild::{self, History};
use crate::retention::{Deletion, Retention};
use crate::source::Source;
use crate::store::Store;

/// While nobody waits, so much time passes between two transactions, and at least as much as the last one took. So long other readers
/// of a server may miss what happened.
const PAUSE: Duration = Duration::from_millis(100);
/// After each row that it wrote, the next transaction waits so much longer, beyond that pause: who writes 25,000 rows a second waits
/// until most instances that began in a transaction also end in it, because one that is written twice costs a third more.
const PAUSE_PER_ROW_UNDER_LOAD: Duration = Duration::from_micros(40);
const PAUSE_UNDER_LOAD_MAX: Duration = Duration::from_millis(250);
/// Who waits for it has the next transaction come sooner: after so many times as long as the last one took. Many searches beside much
/// work would otherwise have the thread write small transactions all the time, each of which costs as much as some hundred rows.
const PAUSE_OF_AWAITED: u32 = 4;
const PAUSE_OF_AWAITED_MAX: Duration = Duration::from_millis(25);
/// For so long a transaction that deletes what is not kept lets those go before who wait. One of them waits always, when there are many.
const DELETION_WAITS_MAX: Duration = Duration::from_millis(100);
/// How often what was written is made durable: often, so that there is never much of it, which would hold up the log.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked how far another node is that writes the rows, while somebody waits for it, and after trouble with that.
const FOLLOW_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How often it is looked what the check of the file came to.
const CHECK_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The name under which a node lists the read model among its consumers.
pub const NAME: &str = "read-model";

/// The consumer of all partitions.
pub(crate) struct ReadModelExporter {
    pub model: Arc<ReadModel>,
    pub retention: Retention,
    pub audited: Audited,
}

impl Exporter for ReadModelExporter {
    fn configure(&mut self, _: &mut Context) -> Result<(), ExporterError> {
        Ok(())
    }

    /// Searches would find nothing new.
    fn stops_when_paused(&self) -> bool {
        false
    }

    /// Each node has files of its own; a server is written by leaders.
    fn is_local(&self) -> bool {
        self.model.source().is_local()
    }

    fn partition(&self, partition: PartitionId) -> Box<dyn PartitionExporter> {
        Box::new(PartitionConsumer {
            partition,
            source: self.model.source().clone(),
            retention: self.retention,
            audited: self.audited,
            progress: self.model.progress(partition),
            metrics: PartitionMetrics::new(partition),
            check: None,
            look_at: None,
            lacks: None,
            damage: None,
            follower: self.model.source().server().map(|server| Follower::new(server.clone(), partition)),
            open: None,
        })
    }
}

struct PartitionConsumer {
    partition: PartitionId,
    source: Source,
    progress: Arc<Progress>,
    metrics: PartitionMetrics,
    retention: Retention,
    audited: Audited,
    /// The check of the file as it was found, begun once.
    check: Option<Check>,
    /// When to look what the check came to; none when that is known.
    look_at: Option<Duration>,
    /// Records up to there are gone that the rows lack.
    lacks: Option<RecordPlace>,
    /// What is wrong with the file: it is to be set aside.
    damage: Option<String>,
    /// How far other nodes are that write the rows; none of rows that are this node's alone.
    follower: Option<Follower>,
    open: Option<Open>,
}

struct Open {
    store: Store,
    fold: Fold,
    opening: Opening,
    /// Up to where records were taken.
    taken: RecordPlace,
    /// When the first record came that searches do not show yet.
    waiting_since: Option<Duration>,
    /// When the next transaction may begin.
    not_before: Duration,
    /// When it may begin if somebody waits for it.
    not_before_if_awaited: Duration,
    /// Where a transaction was put off, because it would have ended amid variables that somebody set.
    put_off_at: Option<RecordPlace>,
    /// When what was written is to be made durable, if anything was.
    checkpoint_at: Option<Duration>,
    deletion: Deletion,
}

impl Open {
    /// Whether what came since the last transaction changes nothing that searches show.
    fn is_unchanged(&self) -> bool {
        self.fold.batch.rows() == 0 && self.fold.batch.living_told_at.is_none()
    }

    /// When the next transaction may begin.
    fn may_write_at(&self, is_awaited: bool) -> Duration {
        match is_awaited {
            // Nothing is written.
            true if self.is_unchanged() => Duration::ZERO,
            true => self.not_before_if_awaited,
            false => self.not_before,
        }
    }

    /// When a little of what is not kept may be deleted; none when everything is kept.
    fn may_delete_at(&self, is_awaited: bool) -> Option<Duration> {
        let waits = if is_awaited { DELETION_WAITS_MAX } else { Duration::ZERO };
        self.deletion.at().map(|at| at + waits)
    }

    /// Whether a transaction would end amid variables that somebody set, of which records behind them say so. Readers get to see
    /// all records of a command at once, so these come before the next flush; if none came, there are none.
    fn is_amid_variables(&mut self) -> bool {
        self.fold.is_amid_variables() && self.put_off_at.replace(self.taken) != Some(self.taken)
    }
}

impl PartitionConsumer {
    /// What was taken is lost, and the file too when the error says damage.
    fn failed(damage: &mut Option<String>, action: &'static str) -> impl FnOnce(database::Error) -> ExporterError {
        move |source| {
            if source.is_damage() {
                *damage = Some(source.to_string());
            }
            ExporterError::lost(NAME, action, source)
        }
    }

    /// Gives up the file when the check found it damaged.
    fn look_at_check(&mut self, now: Duration) -> Result<(), ExporterError> {
        let Some(check) = self.check.as_ref().filter(|_| self.look_at.is_some_and(|at| at <= now)) else {
            return Ok(());
        };
        self.look_at = (!check.has_ended()).then_some(now + CHECK_LOOK_INTERVAL);
        if let Some(damage) = check.take_damage() {
            self.damage = Some(damage.clone());
            return Err(ExporterError::lost(NAME, "go on with its file, which is damaged", damage));
        }
        Ok(())
    }

    /// Deletes a little of what is not kept, somewhat later if somebody waits for the fold.
    fn delete(&mut self, now: Duration) -> Result<(), ExporterError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.may_delete_at(self.progress.is_awaited()).is_none_or(|at| at > now) {
            return Ok(());
        }
        let clock = jiff::Timestamp::now().as_millisecond();
        let deleted = open
            .deletion
            .step(&open.store.database, now, clock)
            .map_err(Self::failed(&mut self.damage, "delete what is not kept any more"))?;
        if deleted.instances > 0 || deleted.goes_on {
            self.metrics.deleted.increment(deleted.instances);
            open.checkpoint_at.get_or_insert(now + CHECKPOINT_INTERVAL);
        }
        Ok(())
    }

    fn commit(&mut self, now: Duration) -> Result<(), ExporterError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.is_unchanged() {
            // Nothing that searches show has changed. The place is written with the next checkpoint.
            open.checkpoint_at.get_or_insert(now + CHECKPOINT_INTERVAL);
            self.progress.reached(open.taken.position);
            return Ok(());
        }
        let begin = Instant::now();
        open.store.write(&open.fold.batch).map_err(Self::failed(&mut self.damage, "write a transaction"))?;
        let (duration, rows) = (begin.elapsed(), u32::try_from(open.fold.batch.rows()).unwrap_or(u32::MAX));
        self.metrics.transactions.record(duration.as_secs_f64());
        if let Some(since) = open.waiting_since.take() {
            self.metrics.delays.record((now.saturating_sub(since) + duration).as_secs_f64());
        }
        self.metrics.rows.increment(rows.into());
        open.fold.written();
        open.not_before = now + duration + pause_after(rows).max(duration);
        open.not_before_if_awaited = (now + duration + pause_if_awaited(duration)).min(open.not_before);
        open.checkpoint_at.get_or_insert(now + CHECKPOINT_INTERVAL);
        self.progress.reached(open.taken.position);
        self.metrics.position.set(open.taken.position as f64);
        Ok(())
    }

    /// Writes what is left and makes everything durable, which is acknowledged then.
    fn checkpoint(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.commit(now)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        let begin = Instant::now();
        // Of records that changed nothing, the place alone.
        open.store.write(&open.fold.batch).map_err(Self::failed(&mut self.damage, "write its place"))?;
        open.fold.written();
        let is_short = open.store.checkpoint().map_err(Self::failed(&mut self.damage, "make its file durable"))?;
        self.metrics.checkpoints.record(begin.elapsed().as_secs_f64());
        // A search that is under way may be in the way of a part of the write-ahead log.
        open.checkpoint_at = (!is_short).then_some(now + CHECKPOINT_INTERVAL);
        open.opening.controller.acknowledge(open.store.place);
        Ok(())
    }
}

/// How long a transaction that somebody waits for waits behind one that took so long.
fn pause_if_awaited(duration: Duration) -> Duration {
    duration.saturating_mul(PAUSE_OF_AWAITED).min(PAUSE_OF_AWAITED_MAX)
}

/// How long the next transaction waits behind one with so many rows.
fn pause_after(rows: u32) -> Duration {
    PAUSE.max(PAUSE_PER_ROW_UNDER_LOAD.saturating_mul(rows).min(PAUSE_UNDER_LOAD_MAX))
}

impl PartitionExporter for PartitionConsumer {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        self.open = None;
        let store = self.source.open(self.partition, self.damage.as_deref());
        self.progress.set_trouble(store.as_ref().err().filter(|error| error.needs_operator()).map(ToString::to_string));
        let store = store.map_err(|error| ExporterError::target(NAME, "open its rows", error))?;
        self.damage = None;
        if let (Some(path), None) = (self.source.file(self.partition), &self.check) {
            self.check =
                Some(Check::begin(path).map_err(|error| ExporterError::target(NAME, "check its file", error))?);
            self.look_at = Some(Duration::ZERO);
        }
        let place = store.place;
        let history = History::read(&store.database).map_err(Self::failed(&mut self.damage, "read its rows"))?;
        let gone = self.lacks.take().unwrap_or_default().max(opening.beginning);
        let lacks = rebuild::lacks_records(place, gone);
        let is_rebuilding = history.is_rebuilding || lacks;
        if is_rebuilding {
            tracing::error!(
                partition = %self.partition, after = place.position, missing_up_to = gone.position,
                "the read model lacks records that are gone; what lives is read from the state, and searches lack what ended before"
            );
            self.metrics.rebuilds.increment(1);
            opening.controller.set_remark(History { is_rebuilding, ..history }.remark());
            rebuild::begin(&store.database).map_err(Self::failed(&mut self.damage, "make room for what lives"))?;
        } else {
            opening.controller.set_remark(history.remark());
        }
        let fold = Fold::new(&store.database, self.partition, self.audited);
        let mut fold = fold.map_err(Self::failed(&mut self.damage, "read its rows"))?;
        fold.is_told_living = is_rebuilding;
        self.progress.reached(place.position);
        self.progress.folded_by(opening.controller.clone());
        let deletion = Deletion::new(self.retention);
        let not_before = Duration::ZERO;
        self.open = Some(Open {
            store,
            fold,
            opening,
            taken: place,
            waiting_since: None,
            not_before,
            not_before_if_awaited: not_before,
            put_off_at: None,
            checkpoint_at: None,
            deletion,
        });
        Ok(if is_rebuilding { Resume::FromState } else { Resume::After(place) })
    }

    fn records_missing(&mut self, up_to: RecordPlace, now: Duration) -> Result<(), ExporterError> {
        // What ended before stays.
        self.commit(now)?;
        self.lacks = Some(up_to);
        Err(ExporterError::lost(NAME, "go on behind records that are gone", "it has to read what lives from the state"))
    }

    fn take_living(&mut self, record: &Record, now: Duration) -> Result<(), ExporterError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        // Until all was told, the rows go no further than before.
        let place = open.store.place;
        open.fold
            .take(&open.store.database, record, place)
            .map_err(Self::failed(&mut self.damage, "take what lives"))?;
        if open.fold.is_full() {
            self.commit(now)?;
        }
        Ok(())
    }

    fn living_told(&mut self, place: RecordPlace, at: Timestamp, now: Duration) -> Result<(), ExporterError> {
        // The last of it.
        self.commit(now)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        rebuild::forget_gone(&open.store.database)
            .map_err(Self::failed(&mut self.damage, "forget what does not live"))?;
        open.fold.batch.place = Some(place);
        open.fold.batch.living_told_at = Some(at);
        open.fold.is_told_living = false;
        open.taken = place;
        self.commit(now)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        let history = History { is_rebuilding: false, complete_since: Some(at) };
        open.opening.controller.set_remark(history.remark());
        tracing::warn!(
            partition = %self.partition, position = place.position,
            "the read model was made anew from the state; searches lack what ended before, and go on with the records behind it"
        );
        Ok(())
    }

    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let place = delivery.place();
        open.fold
            .take(&open.store.database, delivery.record, place)
            .map_err(Self::failed(&mut self.damage, "take a record"))?;
        open.taken = place;
        if matches!(delivery.record.payload, Payload::Purge(PurgeIntent::Purged, _)) {
            // Nothing is missing any more.
            open.opening.controller.set_remark(None);
        }
        if open.fold.batch.rows() > 0 {
            open.waiting_since.get_or_insert(now);
        }
        if open.fold.is_full() && !open.fold.is_amid_variables() {
            self.commit(now)?;
        }
        Ok(())
    }

    fn wants(&self, subject: &Subject) -> bool {
        self.open.as_ref().is_none_or(|open| open.fold.reads(subject))
    }

    fn take_encoded(&mut self, subject: &Subject, encoded: &[u8], place: RecordPlace, now: Duration) -> bool {
        let Some(open) = &mut self.open else { return false };
        if !process_instance::can_take(subject) || open.fold.is_full() {
            return false;
        }
        if !ElementEvent::peek(encoded).is_some_and(|event| open.fold.take_element(&event, place)) {
            return false;
        }
        open.taken = place;
        open.waiting_since.get_or_insert(now);
        true
    }

    fn passed(&mut self, place: RecordPlace) -> bool {
        let Some(open) = &mut self.open else { return false };
        // It is written with what comes before it, and acknowledged like that.
        open.fold.pass(place);
        open.taken = place;
        true
    }

    fn flush_at(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        let is_behind = self.progress.position() < open.taken.position;
        // Who waits for this is not kept waiting for the sake of a larger transaction.
        let commit = is_behind.then(|| open.may_write_at(self.progress.is_awaited_at(open.taken.position)));
        let delete = open.may_delete_at(self.progress.is_awaited());
        [commit, open.checkpoint_at, delete, self.look_at].into_iter().flatten().min()
    }

    fn rests_until(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        // What somebody waits for may be in the next record.
        Some(if self.progress.is_awaited() { open.not_before_if_awaited } else { open.not_before })
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.look_at_check(now)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.is_amid_variables() {
            return Ok(());
        }
        if open.may_write_at(self.progress.is_awaited_at(open.taken.position)) <= now {
            self.commit(now)?;
        }
        if self.open.as_ref().and_then(|open| open.checkpoint_at).is_some_and(|at| at <= now) {
            self.checkpoint(now)?;
        }
        self.delete(now)
    }

    fn follow(&mut self, controller: &Controller, now: Duration) -> Option<Duration> {
        let follower = self.follower.as_mut()?;
        // Who begins to wait calls again.
        self.progress.folded_by(controller.clone());
        if !self.progress.is_awaited() {
            return None;
        }
        match follower.position() {
            Ok(position) => {
                self.progress.reached(position);
                self.progress.is_awaited().then(|| now + FOLLOW_PAUSE.0)
            }
            Err(error) => {
                tracing::debug!(partition = %self.partition, %error, "how far the rows are written is not known");
                Some(now + FOLLOW_PAUSE.1)
            }
        }
    }

    fn close(&mut self, now: Duration) -> Result<(), ExporterError> {
        // What it reads now could not be made durable.
        self.check = None;
        // What is not written comes again.
        if !self.open.as_ref().is_some_and(|open| open.fold.is_amid_variables()) {
            self.checkpoint(now)?;
        }
        self.open = None;
        Ok(())
    }
}

struct PartitionMetrics {
    /// From the arrival of a record until searches show it, of the first record of each transaction.
    delays: Histogram,
    transactions: Histogram,
    checkpoints: Histogram,
    rows: Counter,
    deleted: Counter,
    rebuilds: Counter,
    position: Gauge,
}

impl PartitionMetrics {
    fn new(partition: PartitionId) -> PartitionMetrics {
        let partition = partition.to_string();
        PartitionMetrics {
            delays: histogram!("osmia_read_model_delay_seconds", "partition" => partition.clone()),
            transactions: histogram!("osmia_read_model_transaction_duration_seconds", "partition" => partition.clone()),
            checkpoints: histogram!("osmia_read_model_checkpoint_duration_seconds", "partition" => partition.clone()),
            deleted: counter!("osmia_read_model_deleted_instances_total", "partition" => partition.clone()),
            rebuilds: counter!("osmia_read_model_rebuilds_total", "partition" => partition.clone()),
            rows: counter!("osmia_read_model_rows_total", "partition" => partition.clone()),
            position: gauge!("osmia_read_model_position", "partition" => partition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_wait_longer_the_more_they_write() {
        let waits = |rows| pause_after(rows).as_micros();
        assert_eq!(
            [0, 1, 2_500, 5_000, 6_250, u32::MAX].map(waits),
            [100_000, 100_000, 100_000, 200_000, 250_000, 250_000]
        );
    }
}
