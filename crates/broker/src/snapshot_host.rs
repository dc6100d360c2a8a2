//! What sends and receives states talks to the log thread and the disk of its node.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use replication::{GroupId, Message, NodeId, SnapshotRequest};

use crate::inbox::Inbound;
use crate::shared::Shared;
use crate::snapshot_transfer::SnapshotHost;

/// Pause before a log that cannot be written is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The log thread and the disk.
pub(crate) struct NodeHost(pub Arc<Shared>);

impl SnapshotHost for NodeHost {
    fn message(&self, request: &SnapshotRequest, at: u64) -> Option<Message> {
        let (reply, answer) = crossbeam_channel::bounded(1);
        let request = Box::new(request.clone());
        self.0.inbox.send(Inbound::SnapshotMessage { request, at, reply }).ok()?;
        answer.recv().ok().flatten()
    }

    fn sent(&self, group: GroupId, to: NodeId, delivered: bool) {
        drop(self.0.inbox.send(Inbound::SnapshotSent { group, to, delivered }));
    }

    fn step(&self, message: Message) -> bool {
        while !self.is_stopping() {
            let (reply, answer) = crossbeam_channel::bounded(1);
            let inbound = Inbound::SnapshotReceived { message: Box::new(message.clone()), reply };
            if self.0.inbox.send(inbound).is_err() {
                return false;
            }
            match answer.recv() {
                Ok(Some(is_taken)) => return is_taken,
                Ok(None) => std::thread::sleep(RETRY_PAUSE),
                Err(_) => return false,
            }
        }
        false
    }

    fn spare_bytes(&self) -> u64 {
        let disk = self.0.disk.view();
        disk.free_bytes.saturating_sub(disk.low_bytes)
    }

    fn is_stopping(&self) -> bool {
        self.0.is_crashed() || self.0.stopping.load(Ordering::Acquire)
    }
}
