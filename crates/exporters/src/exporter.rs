//! What every exporter does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::{PartitionId, Record, RecordPlace, RecordSource, Subject, Timestamp};

use crate::{Arguments, Controller, ExporterError, RecordFilter, WrittenFile};

/// What an exporter learns when it is configured.
#[derive(Debug)]
pub struct Context {
    /// The exporter's name in the configuration.
    pub name: String,
    /// Its arguments. What it does not take is refused by name.
    pub arguments: Arguments,
    /// The records it will get. The exporter may narrow it.
    pub filter: RecordFilter,
    /// The directory of the node for files of exporters. It may not be there yet when the exporter is configured.
    pub directory: PathBuf,
}

/// A consumer of the record stream: its settings, and whatever its partitions share.
pub trait Exporter: Send {
    /// The names below `index` among its arguments that are its own, and not value types.
    fn index_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks the arguments. An error ends the start of the node.
    ///
    /// # Errors
    /// When an argument is missing or wrong.
    fn configure(&mut self, context: &mut Context) -> Result<(), ExporterError>;

    /// The files that it writes, on a node with partitions from 1 up to this one. No other exporter of the node may write
    /// them.
    fn files(&self, _last: PartitionId) -> Vec<WrittenFile> {
        Vec::new()
    }

    /// Whether it stops while an operator has exporting paused. What belongs to the node itself goes on.
    fn stops_when_paused(&self) -> bool {
        true
    }

    /// Whether what it makes of the records stays with this node, so that each replica of a partition has its own. What all
    /// nodes have in common gets the records from the leader of the partition alone.
    fn is_local(&self) -> bool {
        false
    }

    /// The consumer of the records of one partition. Each has a thread of its own.
    fn partition(&self, partition: PartitionId) -> Box<dyn PartitionExporter>;
}

/// What this node is for a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It decides.
    Leader,
    /// It holds a replica. The records are the same.
    Follower,
}

/// What an exporter learns of its partition when it is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The partition.
    pub partition: PartitionId,
    /// Its incarnation.
    pub incarnation: u64,
    /// What this node is for it now.
    pub role: Role,
    /// Up to where the node knows that nothing is needed again.
    pub acknowledged: RecordPlace,
    /// Before the first record that there still is: what an exporter lacks up to there does not come as a record any more.
    pub beginning: RecordPlace,
    /// What the exporter gave with its last acknowledgement.
    pub metadata: Arc<[u8]>,
    /// To acknowledge, from any thread.
    pub controller: Controller,
}

/// Where an opened exporter goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Behind what the node knows to be acknowledged.
    AsTheNodeSays,
    /// Behind this place, which the exporter keeps itself, together with what it made of the records.
    After(RecordPlace),
    /// It lost what it made of the records, or lacks some that are gone: it is told what lives
    /// ([`PartitionExporter::take_living`]) and goes on behind that.
    FromState,
}

/// A record that is handed over.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The record.
    pub record: &'a Record,
    /// Where it comes from.
    pub source: &'a RecordSource,
}

impl Delivery<'_> {
    /// The place behind it: what is acknowledged when it is not needed again.
    pub fn place(&self) -> RecordPlace {
        self.record.place(self.source.incarnation)
    }
}

/// Takes the records of one partition, on a thread of its own: however long it takes, it holds up nobody else.
///
/// `now` is the time since the start of the node, the same for all partitions.
pub trait PartitionExporter: Send {
    /// Connects to the target, and says where it goes on. Called again, with growing pauses, until it succeeds, and again after
    /// an [`ExporterError::Lost`]: what is not acknowledged then comes again.
    ///
    /// # Errors
    /// When the target is not there.
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError>;

    /// Takes the next record. It may be kept back to be sent with others; what must not be lost is acknowledged only when the
    /// target has it.
    ///
    /// # Errors
    /// When the record was not taken. It comes again, after a pause that grows.
    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError>;

    /// Whether it wants records about this. The others are not read, and it is told when they are behind.
    fn wants(&self, _subject: &Subject) -> bool {
        true
    }

    /// Takes the next record as it is encoded, if that is enough to know what it wants of it; otherwise `false`, and it is asked
    /// whether it wants the record. Only what follows the record before without a gap is offered, and only to exporters whose filter
    /// lets everything through. It is asked between records, as [`Self::wants`] is, so it waits for nothing.
    fn take_encoded(&mut self, _subject: &Subject, _encoded: &[u8], _place: RecordPlace, _now: Duration) -> bool {
        false
    }

    /// The last records up to this place were none that it wants. `true` when it acknowledges the place itself; otherwise the node
    /// takes care of that as soon as everything before them is acknowledged.
    fn passed(&mut self, _place: RecordPlace) -> bool {
        false
    }

    /// Takes the next record of what lives, after [`Resume::FromState`]. It is no part of the stream: it says how things are at
    /// the place that [`PartitionExporter::living_told`] names in the end. After an [`ExporterError::Lost`] all of them come
    /// again.
    ///
    /// # Errors
    /// When it was not taken. It comes again, after a pause that grows.
    fn take_living(&mut self, _record: &Record, _now: Duration) -> Result<(), ExporterError> {
        Ok(())
    }

    /// All that lives was told, as it was at this place and time. The records behind it come next.
    ///
    /// # Errors
    /// When that could not be noted. It is told again, after a pause that grows.
    fn living_told(&mut self, _place: RecordPlace, _at: Timestamp, _now: Duration) -> Result<(), ExporterError> {
        Ok(())
    }

    /// Records up to this place, which the exporter has not had, are gone. Told before the next record.
    ///
    /// # Errors
    /// [`ExporterError::Lost`] by who would rather be opened again and told what lives.
    fn records_missing(&mut self, _up_to: RecordPlace, _now: Duration) -> Result<(), ExporterError> {
        Ok(())
    }

    /// When [`PartitionExporter::flush`] is to be called, if no record comes before; none while there is no need. It is looked
    /// at after every call and after at most 1,000 records.
    fn flush_at(&self) -> Option<Duration>;

    /// Until when it does not want to be woken for each record that is written: many are handed over together then, which costs
    /// less. What was written meanwhile comes a few milliseconds late at most, or at once after [`Controller::wake`]. None, or
    /// a time that is over, when records are to come as they are written.
    fn rests_until(&self) -> Option<Duration> {
        None
    }

    /// The time that the exporter asked for has come: what it kept back may be sent now.
    ///
    /// # Errors
    /// When the target does not take what was kept back. It is called again, after a pause that grows.
    fn flush(&mut self, now: Duration) -> Result<(), ExporterError>;

    /// Another node leads the partition, and its exporter takes the records: this one is not open. Called from time to time,
    /// and after [`Controller::wake`]. Returns when it wants to be called again.
    fn follow(&mut self, _controller: &Controller, _now: Duration) -> Option<Duration> {
        None
    }

    /// What this node is for the partition has changed. Told before the next record.
    fn role_changed(&mut self, _role: Role) {}

    /// Sends what was kept back and lets go of the target.
    ///
    /// # Errors
    /// When that fails. What was not acknowledged comes again with the next start.
    fn close(&mut self, now: Duration) -> Result<(), ExporterError>;
}
