//! What the gateway knows about the waiting jobs of one type, and who waits for them.
//!
//! Asking a partition costs a command in its log, so a request asks only where jobs may be. What is known is a hint that
//! may be outdated but never for long: a notification always outlives the answer that it overtook (a version counter
//! tells whether one came while the question was on its way), and a quiet partition is asked anyway every
//! [`PROBE_INTERVAL`].
//!
//! Invariant: while requests are parked and a partition may have jobs, a question to this partition is on its way, or a
//! request was woken to ask it, or [`JobType::tick`] will wake one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::PartitionId;
use tokio::sync::oneshot;

/// After how long a partition that said nothing is asked again.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// After how long a partition that did not take the question is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The place of a request in the order of those that wait for a type.
pub(crate) type Ticket = u64;

/// How an activation ended, as it matters to other requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The partition gave everything it had.
    Drained,
    /// The partition may have more.
    MayHaveMore,
    /// The partition did not take the question or did not answer.
    NotAnswered,
}

/// Hints about one type of jobs, and the requests parked for it.
pub(crate) struct JobType {
    state: Mutex<State>,
}

struct State {
    partitions: BTreeMap<PartitionId, Hint>,
    parked: BTreeMap<Ticket, oneshot::Sender<()>>,
    next_ticket: Ticket,
    next_start: usize,
}

struct Hint {
    may_have_jobs: bool,
    /// Notifications so far.
    version: u64,
    questions_in_flight: u32,
    /// When to ask although nothing is known.
    probe_at: Instant,
}

impl Hint {
    /// Of a partition that nobody asked yet.
    fn new() -> Self {
        Hint { may_have_jobs: true, version: 0, questions_in_flight: 0, probe_at: Instant::now() }
    }
}

impl JobType {
    pub(crate) fn new(partitions: impl Iterator<Item = PartitionId>) -> Self {
        JobType {
            state: Mutex::new(State {
                partitions: partitions.map(|id| (id, Hint::new())).collect(),
                parked: BTreeMap::new(),
                next_ticket: 0,
                next_start: 0,
            }),
        }
    }

    /// The node holds these partitions now: the ones that are new are asked.
    pub(crate) fn know(&self, partitions: &[PartitionId]) {
        let mut state = self.state.lock();
        if state.partitions.len() == partitions.len() {
            return;
        }
        for &partition in partitions {
            state.hint(partition);
        }
        state.wake_one();
    }

    /// A position in the order, and the partition to begin with: requests take turns, so that none is preferred.
    pub(crate) fn enter(&self) -> (Ticket, PartitionId) {
        let mut state = self.state.lock();
        state.next_ticket += 1;
        // A node that holds no partition yet has none to ask.
        state.next_start = (state.next_start + 1) % state.partitions.len().max(1);
        let start = state.partitions.keys().nth(state.next_start).copied().unwrap_or(PartitionId::DEPLOYMENT);
        (state.next_ticket, start)
    }

    /// The next partition in turn, from `start` on, that may have jobs and was not `asked` yet. Partitions that nobody is
    /// asking right now come first; a request that was only woken leaves the others to those who ask them.
    pub(crate) fn choose(&self, start: PartitionId, asked: &BTreeSet<PartitionId>, woken: bool) -> Option<PartitionId> {
        let state = self.state.lock();
        let candidates = || state.unasked(start, asked).filter(|(_, hint)| hint.may_have_jobs);
        candidates()
            .find(|(_, hint)| hint.questions_in_flight == 0)
            .or_else(|| if woken { None } else { candidates().next() })
            .map(|(id, _)| *id)
    }

    /// The next partition in turn, from `start` on, that was not `asked` yet, whatever the hints say.
    pub(crate) fn choose_any(&self, start: PartitionId, asked: &BTreeSet<PartitionId>) -> Option<PartitionId> {
        self.state.lock().unasked(start, asked).next().map(|(id, _)| *id)
    }

    /// Registers a question to a partition. The answer must be reported to it.
    pub(crate) fn ask(self: &Arc<Self>, partition: PartitionId) -> Question {
        let mut state = self.state.lock();
        let hint = state.hint(partition);
        hint.questions_in_flight += 1;
        Question { job_type: self.clone(), partition, version: hint.version, finding: Finding::NotAnswered }
    }

    /// Jobs became available in a partition.
    pub(crate) fn notify(&self, partition: PartitionId) {
        let mut state = self.state.lock();
        let hint = state.hint(partition);
        hint.version += 1;
        hint.may_have_jobs = true;
        state.wake_one();
    }

    /// Parks a request until there may be work for it; `None` when there is some now.
    pub(crate) fn park(&self, ticket: Ticket) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state.lock();
        if state.has_unasked() {
            return None;
        }
        let (waker, woken) = oneshot::channel();
        state.parked.insert(ticket, waker);
        Some(woken)
    }

    /// A parked request goes away. If it had been woken, another one gets the chance.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let mut state = self.state.lock();
        if state.parked.remove(&ticket).is_none() {
            state.wake_one();
        }
    }

    /// Lets parked requests ask partitions that have been quiet for too long.
    pub(crate) fn tick(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.parked.is_empty() {
            return;
        }
        for hint in state.partitions.values_mut() {
            if !hint.may_have_jobs && hint.probe_at <= now {
                hint.may_have_jobs = true;
            }
        }
        state.wake_one();
    }
}

impl State {
    fn hint(&mut self, partition: PartitionId) -> &mut Hint {
        self.partitions.entry(partition).or_insert_with(Hint::new)
    }

    /// In turn, from `start` on.
    fn unasked<'a>(
        &'a self,
        start: PartitionId,
        asked: &'a BTreeSet<PartitionId>,
    ) -> impl Iterator<Item = (&'a PartitionId, &'a Hint)> {
        let in_turn = self.partitions.range(start..).chain(self.partitions.range(..start));
        in_turn.filter(|(id, _)| !asked.contains(*id))
    }

    fn has_unasked(&self) -> bool {
        self.partitions.values().any(|hint| hint.may_have_jobs && hint.questions_in_flight == 0)
    }

    /// Wakes the request that has waited longest, if there is something to ask that no request is asking.
    fn wake_one(&mut self) {
        if !self.has_unasked() {
            return;
        }
        while let Some((_, waker)) = self.parked.pop_first() {
            if waker.send(()).is_ok() {
                return;
            }
        }
    }
}

/// A question on its way to a partition. Dropped without an answer it counts as not answered.
pub(crate) struct Question {
    job_type: Arc<JobType>,
    partition: PartitionId,
    version: u64,
    finding: Finding,
}

impl Question {
    /// Reports the answer.
    pub(crate) fn settle(mut self, finding: Finding) {
        self.finding = finding;
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut state = self.job_type.state.lock();
        let now = Instant::now();
        let hint = state.hint(self.partition);
        hint.questions_in_flight -= 1;
        let notified_meanwhile = hint.version != self.version;
        match self.finding {
            Finding::MayHaveMore => hint.may_have_jobs = true,
            Finding::Drained => {
                hint.may_have_jobs = notified_meanwhile;
                hint.probe_at = now + PROBE_INTERVAL;
            }
            // Not even a notification helps while the partition takes no questions.
            Finding::NotAnswered => {
                hint.may_have_jobs = false;
                hint.probe_at = now + RETRY_INTERVAL;
            }
        }
        state.wake_one();
    }
}

#[cfg(test)]
#[path = "job_type/tests.rs"]
mod tests;
