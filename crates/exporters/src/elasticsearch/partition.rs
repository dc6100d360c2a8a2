//! The consumer of one partition: collects records, and puts bulks of them on their way.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use protocol::{PartitionId, RecordPlace, Text, Timestamp};

use super::Target;
use super::bulk::{Addresses, Bulk};
use super::lane::Lane;
use super::sequence::Sequences;
use crate::{Delivery, ExporterError, Opening, PartitionExporter, Resume};

/// How long a record waits for room before it is told that there is none. The node reports who stays away for 10 s.
const ROOM_WAIT: Duration = Duration::from_secs(5);
/// How long a stopping node is made to wait for what is under way. It gives all exporters 10 s.
const CLOSE_WAIT: Duration = Duration::from_secs(4);
/// While something is under way, it is looked this often whether it is in trouble.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Sends the records of one partition.
pub(super) struct ElasticsearchPartition {
    target: Arc<Target>,
    partition: PartitionId,
    opened: Option<Opened>,
}

struct Opened {
    lane: Arc<Lane>,
    bulk: Bulk,
    addresses: Addresses,
    sequences: Sequences,
    /// The last record in the bulk.
    last: RecordPlace,
    /// When the first record came into the bulk.
    begun: Duration,
    /// When a bulk was put on its way last.
    sent: Option<Duration>,
    /// When it was looked for trouble last.
    looked: Duration,
    /// Trouble was told then. That it is over must be told too.
    is_in_trouble: bool,
}

impl ElasticsearchPartition {
    pub fn new(target: Arc<Target>, partition: PartitionId) -> ElasticsearchPartition {
        ElasticsearchPartition { target, partition, opened: None }
    }

    fn is_full(&self, bulk: &Bulk) -> bool {
        let limits = &self.target.settings.bulk;
        bulk.len() >= limits.records || bulk.body().len() >= limits.bytes
    }

    /// When the bulk is to be sent, if there is room.
    fn due_at(&self, opened: &Opened) -> Duration {
        match opened.sent {
            Some(sent) if !self.is_full(&opened.bulk) => sent + self.target.settings.bulk.delay,
            _ => Duration::ZERO,
        }
    }

    fn failed(&self, action: String, reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ExporterError {
        ExporterError::target(&self.target.name, action, reason)
    }

    /// Nothing of this partition is taken, for some reason.
    fn in_trouble(&self, reason: String) -> ExporterError {
        self.failed(format!("send records of partition {}", self.partition), reason)
    }

    /// Puts the bulk on its way, for which there must be room. The next one is for records of a version.
    fn send(&mut self, now: Duration, version: Text) -> Result<(), ExporterError> {
        let opened = self.opened.as_mut().expect("an exporter is opened before it is used");
        let bulk = opened.bulk.take(version);
        let (records, bytes, oldest) = (bulk.len(), bulk.body().len(), bulk.oldest());
        let sent = opened.lane.send(bulk, opened.last, opened.sequences.write());
        let latency = now.saturating_sub(opened.begun);
        opened.sent = Some(now);
        match sent {
            Ok(in_flight) => {
                opened.lane.metrics.sent(records, bytes, latency, in_flight);
                if let Some(age) = oldest.and_then(age_of) {
                    opened.lane.metrics.sent_behind(age);
                }
            }
            Err(error) => {
                // The bulk is gone, so its records have to come again.
                let action = format!("send records of partition {}", self.partition);
                return Err(ExporterError::lost(&self.target.name, action, error));
            }
        }
        Ok(())
    }

    /// Sends the bulk as soon as there is room, which is waited for a while.
    fn send_when_there_is_room(&mut self, now: Duration, version: Text) -> Result<(), ExporterError> {
        let opened = self.opened.as_ref().expect("an exporter is opened before it is used");
        if !opened.lane.wait_for_room(ROOM_WAIT) {
            let slow = || format!("the target has taken none of the bulks under way for {} s", ROOM_WAIT.as_secs());
            let reason = opened.lane.trouble().unwrap_or_else(slow);
            return Err(self.in_trouble(reason));
        }
        self.send(now, version)
    }
}

/// How long ago that was, by the clock of the system; none when its time has not come.
fn age_of(timestamp: Timestamp) -> Option<Duration> {
    let happened = UNIX_EPOCH + Duration::from_millis(u64::try_from(timestamp).ok()?);
    SystemTime::now().duration_since(happened).ok()
}

impl PartitionExporter for ElasticsearchPartition {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        self.release();
        self.target.client.reach().map_err(|problem| self.failed("reach the target".to_owned(), problem))?;
        let sequences = Sequences::read(&opening.metadata).map_err(|problem| {
            self.failed(format!("read the sequences that are kept of partition {}", self.partition), problem)
        })?;
        let lane = Lane::new(self.target.clone(), self.partition, opening.controller);
        self.opened = Some(Opened {
            lane,
            bulk: Bulk::new(protocol::BROKER_VERSION.into()),
            addresses: Addresses::new(self.target.settings.index.clone(), self.partition),
            sequences,
            last: opening.acknowledged,
            begun: Duration::ZERO,
            sent: None,
            looked: Duration::ZERO,
            is_in_trouble: false,
        });
        Ok(Resume::AsTheNodeSays)
    }

    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError> {
        let Delivery { record, source } = delivery;
        let opened = self.opened.as_ref().expect("an exporter is opened before it is used");
        let version = &source.broker_version;
        let is_of_another = !opened.bulk.is_empty() && opened.bulk.version() != version;
        if is_of_another || self.is_full(&opened.bulk) {
            // Before the record is taken: after an error it comes again.
            self.send_when_there_is_room(now, version.clone())?;
        }
        let opened = self.opened.as_mut().expect("it stays open");
        if opened.bulk.is_empty() {
            opened.begun = now;
            if opened.bulk.version() != version {
                opened.bulk = Bulk::new(version.clone());
            }
        }
        let of = record.payload.value_type();
        let sequence = opened.sequences.next(self.partition, of);
        if let Err(error) = opened.bulk.push(&mut opened.addresses, record, source, sequence) {
            let action = format!("write record {} of partition {} as JSON", record.position, self.partition);
            return Err(self.failed(action, error));
        }
        opened.sequences.count(of);
        opened.last = delivery.place();
        let opened = self.opened.as_ref().expect("it stays open");
        if self.is_full(&opened.bulk) && opened.lane.has_room() {
            self.send(now, version.clone())?;
        }
        Ok(())
    }

    fn flush_at(&self) -> Option<Duration> {
        let opened = self.opened.as_ref()?;
        let look = (!opened.lane.is_empty() || opened.is_in_trouble).then(|| opened.looked + LOOK_INTERVAL);
        // The time counts from the last bulk, so what comes after a silence goes at once. Without room there is no time: room is
        // made by an acknowledgement, after which this is asked again.
        let send = (!opened.bulk.is_empty() && opened.lane.has_room()).then(|| self.due_at(opened));
        [look, send].into_iter().flatten().min()
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        let opened = self.opened.as_ref().expect("an exporter is opened before it is used");
        let is_due = self.due_at(opened) <= now;
        if is_due && !opened.bulk.is_empty() && opened.lane.has_room() {
            let version = opened.bulk.version().clone();
            self.send(now, version)?;
        }
        let opened = self.opened.as_mut().expect("it stays open");
        opened.looked = now;
        let trouble = opened.lane.trouble();
        opened.is_in_trouble = trouble.is_some();
        match trouble {
            None => Ok(()),
            Some(reason) => Err(self.in_trouble(reason)),
        }
    }

    fn close(&mut self, now: Duration) -> Result<(), ExporterError> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let (lane, version) = (opened.lane.clone(), opened.bulk.version().clone());
        let until = Instant::now() + CLOSE_WAIT;
        if !opened.bulk.is_empty() && lane.wait_for_room(CLOSE_WAIT) {
            self.send(now, version)?;
        }
        let is_taken = lane.wait_until_empty(until.saturating_duration_since(Instant::now()));
        let rest = self.opened.as_ref().is_some_and(|opened| !opened.bulk.is_empty());
        self.release();
        if is_taken && !rest {
            return Ok(());
        }
        Err(self.in_trouble(lane.trouble().unwrap_or_else(|| "the target is too slow to take them now".to_owned())))
    }
}

impl ElasticsearchPartition {
    fn release(&mut self) {
        if let Some(opened) = self.opened.take() {
            opened.lane.close();
        }
    }
}

impl Drop for ElasticsearchPartition {
    fn drop(&mut self) {
        self.release();
    }
}
