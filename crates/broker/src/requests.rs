//! Requests that wait for their answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::PartitionId;

use crate::flow_control::Admission;
use crate::submit_error::SubmitError;
use crate::turns::SenderId;
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
    requests: HashMap<u64, WaitingRequest>,
    /// How many are parked, and the bytes of all commands that are kept.
    parked: usize,
    kept_bytes: usize,
    /// When the first of those whose connection was lost is given up.
    doubted_at: Option<Instant>,
    closed: bool,
}

struct WaitingRequest {
    function: ReplyFunction,
    progress: Progress,
    /// Kept while it may have to be sent to another leader.
    command: Option<KeptCommand>,
    /// Until when it waits for a leader, counted from when it was first seen to wait.
    gives_up_at: Option<Instant>,
    /// From when on its outcome counts as unknown, because a connection was lost.
    doubted_at: Option<Instant>,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It waits for a leader.
    Parked,
    /// It was given to the leader of this term, at another node if one is named. When a batch of a later term is applied, it is either applied or
    /// lost.
    Sent { term: u64, to: Option<u32> },
    /// It is applied, and its answer comes later.
    Applied,
}

/// A command that this node may have to send to another leader.
#[derive(Debug, Clone)]
pub(crate) struct KeptCommand {
    /// The encoded command.
    pub bytes: Bytes,
    /// How it is admitted.
    pub admission: Admission,
    /// Who sends it.
    pub sender: SenderId,
}

/// How long a command waits for a leader.
const PARKED_MAX: Duration = Duration::from_millis(500);
/// Commands of a partition that wait for a leader at a time.
const PARKED_COMMANDS_MAX: usize = 10_000;
/// Bytes of the commands of a partition that other nodes have not answered yet.
const KEPT_BYTES_MAX: usize = 64 << 20;

impl Requests {
    pub fn new(partition: PartitionId, limit_requests: usize) -> Self {
        Requests { partition, limit_requests, waiting: Mutex::default() }
    }

    /// Registers a request whose command goes to this node, which leads in a term; or gives the function back with the
    /// reason why not.
    pub fn wait(&self, number: u64, term: u64, reply: ReplyFunction) -> Result<(), (ReplyFunction, SubmitError)> {
        self.register(number, Progress::Sent { term, to: None }, reply, None)
    }

    /// Registers a request whose command waits for a leader, or goes to another node.
    pub fn park(
        &self,
        number: u64,
        command: KeptCommand,
        reply: ReplyFunction,
    ) -> Result<(), (ReplyFunction, SubmitError)> {
        self.register(number, Progress::Parked, reply, Some(command))
    }

    fn register(
        &self,
        number: u64,
        progress: Progress,
        function: ReplyFunction,
        command: Option<KeptCommand>,
    ) -> Result<(), (ReplyFunction, SubmitError)> {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err((function, SubmitError::Stopped));
        }
        if waiting.requests.len() >= self.limit_requests {
            let reason = format!(
                "partition {} has {} requests that wait for an answer, and its limit is {} (most of them wait for the \
                 result of a process instance); try again when some of them are answered",
                self.partition,
                waiting.requests.len(),
                self.limit_requests
            );
            return Err((function, SubmitError::ResourceExhausted { partition: self.partition, reason }));
        }
        let bytes = command.as_ref().map_or(0, |command| command.bytes.len());
        let is_full = waiting.kept_bytes > 0 && waiting.kept_bytes + bytes > KEPT_BYTES_MAX;
        if command.is_some() && (is_full || waiting.parked >= PARKED_COMMANDS_MAX) {
            let reason = format!(
                "partition {} is led by another node or has no leader, and {} of its commands with {} bytes wait for an \
                 answer here; try again when some of them are answered",
                self.partition,
                waiting.requests.len(),
                waiting.kept_bytes
            );
            return Err((function, SubmitError::ResourceExhausted { partition: self.partition, reason }));
        }
        waiting.kept_bytes += bytes;
        waiting.parked += usize::from(progress == Progress::Parked);
        waiting
            .requests
            .insert(number, WaitingRequest { function, progress, command, gives_up_at: None, doubted_at: None });
        Ok(())
    }

    /// The function of an answered request; none if the request was forgotten or belongs to an earlier life of the node.
    pub fn take(&self, number: u64) -> Option<ReplyFunction> {
        self.waiting.lock().remove(number)
    }

    /// The answer is no longer wanted.
    pub fn forget(&self, number: u64) {
        drop(self.take(number));
    }

    /// The command of a request goes to the leader of a term. None when nobody waits any more, or when another thread has
    /// sent it already: it must not be carried out twice.
    pub fn send(&self, number: u64, term: u64, to: Option<u32>) -> Option<KeptCommand> {
        let mut waiting = self.waiting.lock();
        let is_parked = waiting.requests.get(&number)?.progress == Progress::Parked;
        is_parked.then(|| waiting.progress(number, Progress::Sent { term, to })).flatten()
    }

    /// The command of a request was certainly not taken: it waits for a leader again. `false` when it was not sent, or nobody
    /// waits any more.
    pub fn park_again(&self, number: u64) -> bool {
        let mut waiting = self.waiting.lock();
        let is_sent = |request: &WaitingRequest| matches!(request.progress, Progress::Sent { .. });
        waiting.requests.get(&number).is_some_and(is_sent) && waiting.progress(number, Progress::Parked).is_some()
    }

    /// The same of a command that was kept elsewhere until now.
    pub fn park_held(&self, number: u64, command: KeptCommand) {
        let mut waiting = self.waiting.lock();
        let bytes = command.bytes.len();
        let Some(request) = waiting.requests.get_mut(&number) else { return };
        let before = request.command.replace(command).map_or(0, |before| before.bytes.len());
        waiting.kept_bytes = waiting.kept_bytes + bytes - before;
        waiting.progress(number, Progress::Parked);
    }

    /// The requests that wait for a leader, in the order in which they came.
    pub fn parked(&self) -> Vec<u64> {
        let waiting = self.waiting.lock();
        if waiting.parked == 0 {
            return Vec::new();
        }
        waiting.numbers(|request| request.progress == Progress::Parked)
    }

    /// What was sent to this node and is not answered at some time has an unknown outcome then: it was lost with its connection,
    /// or its refusal was.
    pub fn doubt(&self, node: u32, until: Instant) {
        let mut waiting = self.waiting.lock();
        for request in waiting.requests.values_mut() {
            if matches!(request.progress, Progress::Sent { to: Some(to), .. } if to == node) {
                request.doubted_at = Some(request.doubted_at.map_or(until, |before| before.min(until)));
            }
        }
        waiting.doubted_at = Some(waiting.doubted_at.map_or(until, |before| before.min(until)));
    }

    /// Refuses what has waited for a leader for too long, and gives up what was lost with a connection.
    pub fn refuse_parked(&self, now: Instant) {
        let is_doubted = |request: &WaitingRequest| {
            matches!(request.progress, Progress::Sent { .. }) && request.doubted_at.is_some_and(|at| at <= now)
        };
        let is_due = self.waiting.lock().doubted_at.is_some_and(|at| at <= now);
        if is_due {
            let reason = "the connection to its leader was lost while the command was under way";
            let error = SubmitError::Unknown { partition: self.partition, reason };
            let _ = self.fail_where(is_doubted, &error);
            let mut waiting = self.waiting.lock();
            let is_sent = |request: &&WaitingRequest| matches!(request.progress, Progress::Sent { .. });
            let sent = waiting.requests.values().filter(is_sent);
            waiting.doubted_at = sent.filter_map(|request| request.doubted_at).min();
        }
        {
            let mut waiting = self.waiting.lock();
            if waiting.parked == 0 {
                return;
            }
            let parked = waiting.requests.values_mut().filter(|request| request.progress == Progress::Parked);
            for request in parked {
                request.gives_up_at.get_or_insert(now + PARKED_MAX);
            }
        }
        let is_late = |request: &WaitingRequest| {
            request.progress == Progress::Parked && request.gives_up_at.is_some_and(|at| at <= now)
        };
        let reason = "it has no leader that this node can reach; nothing was carried out".into();
        let _ = self.fail_where(is_late, &SubmitError::Unavailable { partition: self.partition, reason });
    }

    /// The command of a request is applied, and its answer comes later.
    pub fn applied(&self, number: u64) {
        self.waiting.lock().progress(number, Progress::Applied);
    }

    /// A batch of this term is about to be applied: what was given to earlier leaders and is not applied is lost.
    pub fn lost_before(&self, began: u64) {
        let is_lost = |request: &WaitingRequest| match request.progress {
            Progress::Sent { term, .. } => term < began,
            Progress::Parked | Progress::Applied => false,
        };
        let reason = "its leader changed while the command was under way, and the command was lost".into();
        let _ = self.fail_where(is_lost, &SubmitError::Unavailable { partition: self.partition, reason });
    }

    /// Batches were skipped, because the state was replaced: the outcome of what was sent before will not be known here.
    /// Says which these are.
    pub fn skipped(&self) -> Vec<u64> {
        let reason = "this node got the state of the partition from another one while the command was under way";
        let is_sent = |request: &WaitingRequest| request.progress != Progress::Parked;
        self.fail_where(is_sent, &SubmitError::Unknown { partition: self.partition, reason })
    }

    /// What was given to leaders of terms before this one, and is neither answered, applied nor lost.
    pub fn sent_before(&self, began: u64) -> Vec<u64> {
        let is_sent = |request: &WaitingRequest| match request.progress {
            Progress::Sent { term, .. } => term < began,
            Progress::Parked | Progress::Applied => false,
        };
        self.waiting.lock().numbers(is_sent)
    }

    /// Answers some requests with an error, and says which these are.
    fn fail_where(&self, is_meant: impl Fn(&WaitingRequest) -> bool, error: &SubmitError) -> Vec<u64> {
        let (numbers, functions): (Vec<_>, Vec<_>) = {
            let mut waiting = self.waiting.lock();
            let numbers = waiting.numbers(is_meant);
            numbers.into_iter().filter_map(|number| Some((number, waiting.remove(number)?))).unzip()
        };
        for function in functions {
            function(Err(error.clone()));
        }
        numbers
    }

    /// Answers all waiting requests with an error: their outcome will not be known here.
    pub fn fail_all(&self, error: &SubmitError) {
        let _ = self.fail_where(|_| true, error);
    }

    /// Answers all waiting requests and accepts no more.
    pub fn close(&self) {
        self.waiting.lock().closed = true;
        self.fail_all(&SubmitError::Stopped);
    }
}

impl Waiting {
    fn remove(&mut self, number: u64) -> Option<ReplyFunction> {
        let request = self.requests.remove(&number)?;
        self.parked -= usize::from(request.progress == Progress::Parked);
        self.kept_bytes -= request.command.map_or(0, |command| command.bytes.len());
        Some(request.function)
    }

    /// Notes how far a command has come, and gives it.
    fn progress(&mut self, number: u64, progress: Progress) -> Option<KeptCommand> {
        let request = self.requests.get_mut(&number)?;
        let before = std::mem::replace(&mut request.progress, progress);
        // A doubt is about the connection that it was sent over before.
        request.doubted_at = None;
        self.parked += usize::from(progress == Progress::Parked);
        self.parked -= usize::from(before == Progress::Parked);
        if progress == Progress::Applied {
            self.kept_bytes -= request.command.take().map_or(0, |command| command.bytes.len());
        }
        request.command.clone()
    }

    /// In the order in which they came.
    fn numbers(&self, is_meant: impl Fn(&WaitingRequest) -> bool) -> Vec<u64> {
        let meant = self.requests.iter().filter(|(_, request)| is_meant(request));
        let mut numbers: Vec<u64> = meant.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.waiting.lock().requests.len();
        formatter.debug_struct("Requests").field("partition", &self.partition).field("waiting", &waiting).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_given_to_one_leader_however_many_threads_send_it() {
        let requests = Requests::new(PartitionId(1), 8);
        let command = KeptCommand { bytes: Bytes::new(), admission: Admission::Growth, sender: SenderId::default() };
        assert!(requests.park(7, command, Box::new(drop)).is_ok());
        assert!(requests.send(7, 1, Some(2)).is_some());
        assert!(requests.send(7, 1, Some(2)).is_none(), "it is on its way already");
        assert!(requests.park_again(7), "the leader has not taken it");
        assert!(!requests.park_again(7), "it waits already");
        assert!(requests.send(7, 1, Some(2)).is_some());
        requests.doubt(2, Instant::now());
        assert!(requests.park_again(7), "the refusal came before the connection was lost");
        assert!(requests.send(7, 2, None).is_some());
        requests.doubt(2, Instant::now());
        requests.refuse_parked(Instant::now());
        assert_eq!(requests.sent_before(9), [7], "this node has it, whatever becomes of the connection");
        requests.applied(7);
        assert!(!requests.park_again(7) && requests.send(7, 3, None).is_none(), "it is carried out");
    }
}
