//! From a request to its outcome: one command to one partition.

use std::marker::PhantomData;
use std::time::Duration;

use broker::{Client, PendingRequest, Reply, SubmitError};
use protocol::{Key, PartitionId, partition_for_correlation_key};
use tokio::sync::oneshot;

use crate::acknowledged::Acknowledged;
use crate::outcome::{Answered, Failure, Outcome, RecordPosition, Refusal};
use crate::request::{Request, Submission};
use crate::validation::{Target, route};

/// Hands requests to the partitions that have to do with them.
#[derive(Clone)]
pub(crate) struct Executor {
    pub client: Client,
    /// How long a partition may take to answer.
    pub request_timeout: Duration,
    pub acknowledged: Acknowledged,
}

/// Where commands go.
pub(crate) struct Router<'a>(&'a Client);

impl Router<'_> {
    /// For what may be done anywhere: the partitions take turns.
    pub(crate) fn next(&self) -> PartitionId {
        self.0.next_partition()
    }

    /// Where messages with this correlation key meet those who wait for them.
    pub(crate) fn of_correlation_key(&self, correlation_key: &str) -> PartitionId {
        partition_for_correlation_key(correlation_key, self.0.correlation_partition_count())
    }

    /// The key of a request and the partition that must know it.
    pub(crate) fn of_key(&self, target: Target, key: i64) -> Result<(PartitionId, Key), Failure> {
        route(target, key, self.0.partition_count())
    }
}

impl Executor {
    /// For the requests of somebody else.
    pub(crate) fn of_new_sender(&self) -> Self {
        Executor { client: self.client.new_sender(), acknowledged: self.acknowledged.clone(), ..*self }
    }

    /// Checks a request and hands its command to a partition.
    ///
    /// # Errors
    /// When it is wrong, whatever the state is.
    pub(crate) fn submit<R: Request>(&self, request: R) -> Result<Pending<R>, Failure> {
        let Submission { partition, command, limit } = request.submission(&Router(&self.client))?;
        let (sender, receiver) = oneshot::channel();
        let registration = self.client.submit(partition, command, move |result| {
            // Sending fails when the client has given up.
            let _ = sender.send(result);
        });
        Ok(Pending {
            partition,
            limit: limit.unwrap_or(self.request_timeout),
            receiver,
            registration: Some(registration),
            acknowledged: self.acknowledged.clone(),
            request: PhantomData,
        })
    }
}

impl Acknowledged {
    /// A partition answered. Says where its records end then, if the command wrote any.
    pub(crate) fn answered(&self, partition: PartitionId, reply: &Reply) -> Option<RecordPosition> {
        let at = reply.position.map(|position| RecordPosition { partition, position });
        at.into_iter().for_each(|at| self.note(at));
        at
    }
}

/// A command on its way, whose client waits for the answer. Dropped, the answer is not waited for any more.
///
/// Requests are prepared without waiting, so that what waits is small: futures are moved several times on their way
/// through the server.
pub(crate) struct Pending<R> {
    partition: PartitionId,
    limit: Duration,
    receiver: oneshot::Receiver<Result<Reply, SubmitError>>,
    registration: Option<PendingRequest>,
    acknowledged: Acknowledged,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Pending<R> {
    /// Waits for the answer.
    pub(crate) async fn outcome(mut self) -> Outcome<R::Answer> {
        let answer = tokio::time::timeout(self.limit, &mut self.receiver).await;
        if answer.is_ok() {
            // Answered: there is nothing to cancel.
            self.registration = None;
        }
        let partition = self.partition;
        let reply = match answer {
            Ok(Ok(Ok(reply))) => reply,
            Ok(Ok(Err(error))) => return Err(Failure::NotSubmitted(error)),
            Ok(Err(_)) => return Err(Failure::Stopped(partition)),
            Err(_) => return Err(Failure::TimedOut { partition, limit: self.limit, late: R::LATE }),
        };
        let at = self.acknowledged.answered(partition, &reply);
        if let Some(rejection) = reply.rejection {
            let (intent, key) = (reply.payload.intent_name(), reply.key);
            return Err(Failure::Rejected(Box::new(Refusal { intent, key, rejection, at })));
        }
        match R::answer(reply.key, reply.payload) {
            Ok(value) => Ok(Answered { value, at }),
            Err(payload) => Err(Failure::unreadable(&payload)),
        }
    }
}

impl<R> Drop for Pending<R> {
    fn drop(&mut self) {
        if let Some(registration) = self.registration.take() {
            registration.cancel();
        }
    }
}
