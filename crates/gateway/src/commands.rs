//! The requests that are one command to one partition: how they are executed, and a file for each subject.

mod creation;
mod decision;
mod incident;
mod job;
mod message;
mod process_instance;
mod resource;
mod variable;

use std::time::Duration;

use broker::{PendingRequest, Reply, SubmitError};
use protocol::{Command, Key, PartitionId, Payload};
use tokio::sync::oneshot;
use tonic::{Code, Status};

use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{not_submitted, rejected, status};
use crate::validation::{Target, route};

/// A command on its way, whose client waits for the answer. Dropped, the answer is not waited for any more.
///
/// Requests are prepared without waiting, so that what waits is small: futures are moved several times on their way
/// through the server.
pub(crate) struct Pending {
    rpc: Rpc,
    partition: PartitionId,
    limit: Duration,
    receiver: oneshot::Receiver<Result<Reply, SubmitError>>,
    registration: Option<PendingRequest>,
}

impl Pending {
    /// Waits for the answer.
    pub(crate) async fn reply(mut self) -> Result<Reply, Status> {
        let answer = tokio::time::timeout(self.limit, &mut self.receiver).await;
        if answer.is_ok() {
            // Answered: there is nothing to cancel.
            self.registration = None;
        }
        let (rpc, partition) = (self.rpc, self.partition);
        match answer {
            Ok(Ok(Ok(reply))) => match &reply.rejection {
                None => Ok(reply),
                Some(rejection) => Err(rejected(reply.payload.intent_name(), rejection)),
            },
            Ok(Ok(Err(error))) => Err(not_submitted(rpc, &error)),
            Ok(Err(_)) => Err(status(
                Code::Unavailable,
                format!("Partition {partition} stopped before it answered {}. Please try again.", rpc.name()),
            )),
            Err(_) => Err(status(
                Code::DeadlineExceeded,
                format!(
                    "Time out between gateway and broker: partition {partition} did not answer {} within {} ms. The command may still be carried out.",
                    rpc.name(),
                    self.limit.as_millis()
                ),
            )),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(registration) = self.registration.take() {
            registration.cancel();
        }
    }
}

impl Service {
    /// Hands a command to a partition.
    pub(crate) fn execute(&self, rpc: Rpc, partition: PartitionId, command: Command, limit: Duration) -> Pending {
        let (sender, receiver) = oneshot::channel();
        let registration = self.client.submit(partition, command, move |result| {
            // Sending fails when the client has given up.
            let _ = sender.send(result);
        });
        Pending { rpc, partition, limit, receiver, registration: Some(registration) }
    }

    /// Hands a command about the entity of a key to the partition of the key.
    pub(crate) fn execute_by_key(
        &self,
        rpc: Rpc,
        target: Target,
        key: i64,
        operation_reference: Option<u64>,
        payload: impl FnOnce(Key) -> Payload,
    ) -> Result<Pending, Status> {
        let (partition, key) = route(target, key, self.client.partition_count())?;
        let command = Command { operation_reference, ..Command::new(key, payload(key)) };
        Ok(self.execute(rpc, partition, command, self.request_timeout))
    }
}
