//! Has the partitions forget everything, for tests that share a node.

use engine::Reply;
use protocol::{Command, Key, PartitionId, Payload, PurgeIntent, PurgeValue};

use crate::client::{Client, PendingRequest};
use crate::submit_error::SubmitError;

impl Client {
    /// Has a partition forget everything but itself. Its data then begin an incarnation that is at least this one.
    pub fn purge(
        &self,
        partition: PartitionId,
        incarnation: u64,
        reply: impl FnOnce(Result<Reply, SubmitError>) + Send + 'static,
    ) -> PendingRequest {
        let purge = Payload::Purge(PurgeIntent::Purge, PurgeValue { incarnation });
        self.submit(partition, Command::new(Key::NONE, purge), reply)
    }

    /// Has the global listeners defined that the configuration of the cluster defines, as a leader of the first partition does
    /// that begins. `None` when there are none to define.
    pub fn configure_global_listeners(
        &self,
        reply: impl FnOnce(Result<Reply, SubmitError>) + Send + 'static,
    ) -> Option<PendingRequest> {
        let configured = &self.shared.global_listeners;
        if configured.is_empty() {
            return None;
        }
        Some(self.submit(PartitionId::DEPLOYMENT, engine::configure_global_listeners(configured), reply))
    }

    /// A change of the cluster is completed: clients that wait for it find its number.
    pub fn complete_change(&self, change: u64) {
        *self.shared.last_completed_change.lock() = Some(change);
    }
}
