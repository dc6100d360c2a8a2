//! Requests that wait for their answer.

use std::collections::HashMap;

use parking_lot::Mutex;
use protocol::PartitionId;

use crate::submit_error::SubmitError;
use engine::Reply;

/// Called once with the answer.
pub(crate) type ReplyFunction = Box<dyn FnOnce(Result<Reply, SubmitError>) + Send>;

/// The waiting requests of one partition, by their number.
pub(crate) struct Requests {
    partition: PartitionId,
    limit_requests: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    functions: HashMap<u64, ReplyFunction>,
    closed: bool,
}

impl Requests {
    pub fn new(partition: PartitionId, limit_requests: usize) -> Self {
        Requests { partition, limit_requests, waiting: Mutex::default() }
    }

    /// Registers a request, or gives the function back with the reason why not.
    pub fn wait(&self, number: u64, reply: ReplyFunction) -> Result<(), (ReplyFunction, SubmitError)> {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err((reply, SubmitError::Stopped));
        }
        if waiting.functions.len() >= self.limit_requests {
            let reason = format!(
                "partition {} has {} requests that wait for an answer, and its limit is {} (most of them wait for the \
                 result of a process instance); try again when some of them are answered",
                self.partition,
                waiting.functions.len(),
                self.limit_requests
            );
            return Err((reply, SubmitError::ResourceExhausted { partition: self.partition, reason }));
        }
        waiting.functions.insert(number, reply);
        Ok(())
    }

    /// The function of an answered request; none if the request was forgotten or belongs to an earlier life of the node.
    pub fn take(&self, number: u64) -> Option<ReplyFunction> {
        self.waiting.lock().functions.remove(&number)
    }

    /// The answer is no longer wanted.
    pub fn forget(&self, number: u64) {
        drop(self.take(number));
    }

    /// Answers all waiting requests with an error: their commands were lost, or their outcome will not be known here.
    pub fn fail_all(&self, error: &SubmitError) {
        let functions = std::mem::take(&mut self.waiting.lock().functions);
        let mut functions: Vec<_> = functions.into_iter().collect();
        // In the order in which they came.
        functions.sort_unstable_by_key(|(number, _)| *number);
        for (_, function) in functions {
            function(Err(error.clone()));
        }
    }

    /// Answers all waiting requests and accepts no more.
    pub fn close(&self) {
        self.waiting.lock().closed = true;
        self.fail_all(&SubmitError::Stopped);
    }
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.waiting.lock().functions.len();
        formatter.debug_struct("Requests").field("partition", &self.partition).field("waiting", &waiting).finish()
    }
}
