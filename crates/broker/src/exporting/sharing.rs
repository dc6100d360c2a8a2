//! What the nodes of a cluster say to each other of their exporters: the leader of a partition what it keeps for each, the
//! others the same of what they heard, and all whether exporting is paused.
//!
//! What is said was kept on a disk before, so it is true for ever: whoever goes on there misses nothing. That it comes late,
//! or not at all, only repeats records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use exporters::{Kept, METADATA_LIMIT_BYTES};
use minicbor::{Decode, Encode};
use parking_lot::{Mutex, RwLock};
use protocol::{PartitionId, RecordPlace};

use super::Keeper;
use super::progress::ExporterProgress;

/// A cluster has no more exporters that its nodes have in common.
pub const SHARED_EXPORTERS_MAX: usize = 64;
/// Bytes of the name of an exporter.
const NAME_BYTES_MAX: usize = 64;
/// What is known already is said again after so long, because what was sent may not have come.
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What a node keeps for the exporters of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Said {
    /// The partition.
    #[n(0)]
    pub partition: u16,
    /// Raft's term in which the node says so.
    #[n(1)]
    pub term: u64,
    /// Whether the node leads the partition.
    #[n(2)]
    pub leads: bool,
    /// Of each exporter.
    #[n(3)]
    pub kept: Vec<SaidPlace>,
    /// Whether the node has all records that they need.
    #[n(4)]
    pub has_records: bool,
}

/// What a node keeps for an exporter and a partition.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SaidPlace {
    #[n(0)]
    name: String,
    #[n(1)]
    incarnation: u64,
    #[n(2)]
    position: u64,
    #[n(3)]
    number: u64,
    #[cbor(n(4), with = "minicbor::bytes")]
    metadata: Vec<u8>,
}

impl SaidPlace {
    fn new(name: &str, kept: &Kept) -> SaidPlace {
        let RecordPlace { incarnation, position, number } = kept.acknowledged;
        SaidPlace { name: name.to_owned(), incarnation, position, number, metadata: kept.metadata.to_vec() }
    }

    pub fn kept(&self) -> Kept {
        let (incarnation, position, number) = (self.incarnation, self.position, self.number);
        Kept { acknowledged: RecordPlace { incarnation, position, number }, metadata: self.metadata.as_slice().into() }
    }
}

impl Said {
    /// Why it cannot be from a node of this version; none when it can.
    pub fn problem(&self) -> Option<&'static str> {
        let is_large = |said: &SaidPlace| said.metadata.len() > METADATA_LIMIT_BYTES;
        if self.kept.len() > SHARED_EXPORTERS_MAX {
            Some("it names more exporters than a cluster may have")
        } else if self.kept.iter().any(|said| said.name.len() > NAME_BYTES_MAX) {
            Some("the name of an exporter is longer than it may be")
        } else if self.kept.iter().any(is_large) {
            Some("the metadata of an exporter is larger than it may be")
        } else {
            None
        }
    }
}

/// An exporter that the nodes have in common, and a partition.
#[derive(Debug)]
struct Shared {
    progress: Arc<ExporterProgress>,
    keeper: Arc<Keeper>,
}

/// The exporters of a node that belong to the whole cluster.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    exporters: RwLock<Vec<Shared>>,
    /// The nodes that have said something of a partition since the start, and whether they have all records that are needed.
    heard: Mutex<BTreeMap<(u32, PartitionId), bool>>,
    /// What leaders keep for exporters that this node does not have.
    foreign: Mutex<BTreeMap<(PartitionId, String), u64>>,
    /// The exporters of other nodes that this node does not have.
    foreign_names: Mutex<BTreeSet<String>>,
}

impl Sharing {
    /// One more exporter and partition.
    pub fn add(&self, progress: Arc<ExporterProgress>, keeper: Arc<Keeper>) {
        self.exporters.write().push(Shared { progress, keeper });
    }

    /// The names of the exporters.
    pub fn names(&self) -> BTreeSet<String> {
        self.exporters.read().iter().map(|of| of.progress.name().to_owned()).collect()
    }

    /// What this node keeps on its disk for the exporters of a partition.
    pub fn say(&self, partition: PartitionId, term: u64, leads: bool) -> Said {
        let exporters = self.exporters.read();
        let of_partition = exporters.iter().filter(|of| of.progress.partition() == partition && !of.progress.is_new());
        let has_all = |of: &&Shared| of.progress.log().missing_after(of.progress.acknowledged()).is_none();
        let place = |of: &Shared| Some(SaidPlace::new(of.progress.name(), &of.keeper.kept(partition)?));
        let has_records = of_partition.clone().all(|of| has_all(&of));
        Said { partition: partition.0, term, leads, kept: of_partition.filter_map(place).collect(), has_records }
    }

    /// A node says what it keeps for the exporters of a partition, in a term that is not over.
    pub fn heard(&self, from: u32, said: &Said) {
        let partition = PartitionId(said.partition);
        let exporters = self.exporters.read();
        for place in &said.kept {
            let own =
                exporters.iter().find(|of| of.progress.partition() == partition && of.progress.name() == place.name);
            match own {
                Some(own) => own.progress.say(place.kept(), said.leads),
                None if said.leads => {
                    self.foreign.lock().insert((partition, place.name.clone()), place.position);
                }
                None => {}
            }
        }
        // Behind what it said, so that a new exporter does not begin between both.
        self.heard.lock().insert((from, partition), said.has_records);
        drop(exporters);
    }

    /// Whether a node has said something of a partition since the start.
    pub fn has_heard(&self, node: u32, partition: PartitionId) -> bool {
        self.heard.lock().contains_key(&(node, partition))
    }

    /// Whether a node has all records of a partition that exporters need, as it said last.
    pub fn has_records(&self, node: u32, partition: PartitionId) -> bool {
        self.heard.lock().get(&(node, partition)).is_some_and(|has_records| *has_records)
    }

    /// The other nodes have these exporters in all, as far as they were ever heard of.
    pub fn others_have(&self, names: &BTreeSet<String>) {
        let own = self.names();
        let foreign: BTreeSet<String> = names.difference(&own).take(SHARED_EXPORTERS_MAX).cloned().collect();
        self.foreign.lock().retain(|(_, name), _| foreign.contains(name));
        *self.foreign_names.lock() = foreign;
    }

    /// The exporter of other nodes that holds back the most records of a partition here, and the position up to which it needs
    /// nothing any more. A node that lacks it may be given it later.
    pub fn held_back(&self, partition: PartitionId) -> Option<(String, u64)> {
        let (names, known) = (self.foreign_names.lock(), self.foreign.lock());
        // Nothing is deleted before the leader has said where it is.
        let held = names.iter().map(|name| {
            let position = known.get(&(partition, name.clone())).copied().unwrap_or_default();
            (name.clone(), position)
        });
        held.min_by_key(|(_, position)| *position)
    }
}

/// What was sent to whom.
#[derive(Debug, Default)]
pub(crate) struct Sent(BTreeMap<(u32, u16), (Instant, Said)>);

impl Sent {
    /// Whether a node does not know this, or should hear it again.
    pub fn is_news(&self, node: u32, said: &Said, now: Instant) -> bool {
        self.0
            .get(&(node, said.partition))
            .is_none_or(|(at, before)| before != said || now.saturating_duration_since(*at) >= SAID_AGAIN_AFTER)
    }

    /// It was sent.
    pub fn note(&mut self, node: u32, said: Said, now: Instant) {
        self.0.insert((node, said.partition), (now, said));
    }

    /// A node has to hear everything again.
    pub fn forget(&mut self, node: u32) {
        self.0.retain(|(of, _), _| *of != node);
    }
}
