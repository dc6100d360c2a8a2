//! What an exporter reports about its progress.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::RecordPlace;

/// Bytes of metadata that the node keeps for an exporter and partition.
pub const METADATA_LIMIT_BYTES: usize = 64 << 10;

/// What the node keeps for an exporter and partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Up to where nothing is needed again.
    pub acknowledged: RecordPlace,
    /// Whatever the exporter gave with it.
    pub metadata: Arc<[u8]>,
}

/// More metadata than the node keeps.
#[derive(Debug, thiserror::Error)]
#[error(
    "The metadata of an exporter has {0} bytes, and at most {METADATA_LIMIT_BYTES} are kept. Keep the rest in the target."
)]
pub struct MetadataTooLong(pub usize);

/// Called after each acknowledgement, and to end a rest.
type Wake = Arc<dyn Fn() + Send + Sync>;

/// Keeps the place up to which an exporter needs no record of a partition again. Clones share it, so an exporter may
/// acknowledge from threads of its own. An acknowledgement is for everything before it too: whoever has several requests under
/// way acknowledges in order ([`InFlight`](crate::InFlight)).
#[derive(Clone)]
pub struct Controller {
    shared: Arc<Mutex<Progress>>,
    wake: Wake,
}

#[derive(Debug, Default)]
struct Progress {
    kept: Kept,
    /// Grows with each change.
    version: u64,
    /// The acknowledged place that a restart would find.
    saved: RecordPlace,
    /// What operators should know of the exporter.
    remark: Option<String>,
}

impl Controller {
    /// Goes on from what is kept; `wake` is called after each acknowledgement, on the thread that made it, and by
    /// [`Controller::wake`].
    pub fn new(kept: Kept, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let saved = kept.acknowledged;
        Controller {
            shared: Arc::new(Mutex::new(Progress { kept, version: 0, saved, remark: None })),
            wake: Arc::new(wake),
        }
    }

    /// The exporter needs no record up to this place again. A place before the last one changes nothing.
    pub fn acknowledge(&self, place: RecordPlace) {
        if self.advance(place, None) {
            (self.wake)();
        }
    }

    /// As [`Controller::acknowledge`], and the node keeps some bytes with it, which the exporter gets when it is opened.
    ///
    /// # Errors
    /// When they are too many. Nothing is acknowledged then.
    pub fn acknowledge_with(&self, place: RecordPlace, metadata: Vec<u8>) -> Result<(), MetadataTooLong> {
        if metadata.len() > METADATA_LIMIT_BYTES {
            return Err(MetadataTooLong(metadata.len()));
        }
        if self.advance(place, Some(metadata)) {
            (self.wake)();
        }
        Ok(())
    }

    /// Moves the place without waking anybody.
    pub fn pass(&self, place: RecordPlace) {
        self.advance(place, None);
    }

    fn advance(&self, place: RecordPlace, metadata: Option<Vec<u8>>) -> bool {
        let mut progress = self.shared.lock();
        if place < progress.kept.acknowledged || (metadata.is_none() && place == progress.kept.acknowledged) {
            return false;
        }
        progress.kept.acknowledged = place;
        if let Some(metadata) = metadata {
            progress.kept.metadata = metadata.into();
        }
        progress.version += 1;
        true
    }

    /// The exporter itself says where it is, which may be before what it acknowledged.
    pub fn resume_after(&self, place: RecordPlace) {
        let mut progress = self.shared.lock();
        if progress.kept.acknowledged != place {
            progress.kept.acknowledged = place;
            progress.version += 1;
        }
        if place.position < progress.saved.position {
            progress.saved = place;
        }
    }

    /// The leader of the partition says what it keeps for the exporter, which may be before what this node knew: the exporter
    /// needs the records from there on, whoever leads next.
    pub fn follow(&self, kept: Kept) {
        let mut progress = self.shared.lock();
        if progress.kept == kept {
            return;
        }
        progress.saved = progress.saved.min(kept.acknowledged);
        progress.kept = kept;
        progress.version += 1;
    }

    /// What is acknowledged up to this place would be found by a restart. If the exporter went back meanwhile, it needs the records
    /// from there on.
    pub fn note_saved(&self, place: RecordPlace) {
        let mut progress = self.shared.lock();
        progress.saved = place.min(progress.kept.acknowledged);
    }

    /// The acknowledged place that a restart would find: nothing before it is needed again, whatever happens.
    pub fn saved(&self) -> RecordPlace {
        self.shared.lock().saved
    }

    /// Has the exporter's thread look at once whether there is something to do, though it rests
    /// ([`PartitionExporter::rests_until`](crate::PartitionExporter::rests_until)).
    pub fn wake(&self) {
        (self.wake)();
    }

    /// What operators should know, in a sentence, as long as it is true: it stands in the health of the node.
    pub fn set_remark(&self, remark: Option<String>) {
        self.shared.lock().remark = remark;
    }

    /// What operators should know of the exporter.
    pub fn remark(&self) -> Option<String> {
        self.shared.lock().remark.clone()
    }

    /// The acknowledged place.
    pub fn acknowledged(&self) -> RecordPlace {
        self.shared.lock().kept.acknowledged
    }

    /// What is to be kept, and a number that grows with each change of it.
    pub fn kept(&self) -> (Kept, u64) {
        let progress = self.shared.lock();
        (progress.kept.clone(), progress.version)
    }

    /// The number of [`Controller::kept`].
    pub fn version(&self) -> u64 {
        self.shared.lock().version
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Controller").field(&*self.shared.lock()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn only_progress_counts_and_wakes() {
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = woken.clone();
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let controller = Controller::new(Kept::default(), count);
        let place = |incarnation, position| RecordPlace { incarnation, position, number: position };
        controller.acknowledge(place(1, 5));
        controller.acknowledge(place(1, 4));
        controller.acknowledge(place(1, 5));
        assert_eq!((controller.acknowledged(), woken.load(Ordering::Relaxed)), (place(1, 5), 1));
        // After a restore, smaller positions are news.
        controller.acknowledge_with(place(2, 3), vec![7]).expect("short");
        assert_eq!(controller.kept().0, Kept { acknowledged: place(2, 3), metadata: [7].into() });
        controller.pass(place(2, 4));
        assert_eq!((controller.kept().0.metadata.as_ref(), woken.load(Ordering::Relaxed)), ([7].as_slice(), 2));
        let error = controller.acknowledge_with(place(2, 9), vec![0; METADATA_LIMIT_BYTES + 1]).expect_err("too long");
        assert_eq!(error.0, METADATA_LIMIT_BYTES + 1);
        assert_eq!(controller.acknowledged(), place(2, 4));
        let version = controller.version();
        controller.resume_after(place(2, 1));
        assert_eq!((controller.acknowledged(), controller.version()), (place(2, 1), version + 1));
        controller.note_saved(place(2, 4));
        assert_eq!(controller.saved(), place(2, 1), "what was saved before it went back is needed again");
    }
}
