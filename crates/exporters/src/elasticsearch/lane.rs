//! The way of a partition's bulks to the target: a few of them at the same time, each tried until it is taken.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use protocol::{PartitionId, RecordPlace};
use ureq::http::Method;

use super::Target;
use super::answer::{BULK_PATH, BulkAnswer, Verdict, is_about_content};
use super::bulk::Bulk;
use super::client::Answer;
use super::look;
use super::metrics::BulkMetrics;
use super::refusals::{Answers, AnswersByType, Refusals, Stop};
use super::rejected::RejectedLines;
use crate::{Controller, InFlight, MetadataTooLong, Ticket};

/// Takes bulks in order, and sends them on threads of its own, which end with it.
pub(super) struct Lane {
    target: Arc<Target>,
    partition: PartitionId,
    pub metrics: BulkMetrics,
    /// What the target refused lately.
    refusals: Mutex<Refusals>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    in_flight: InFlight,
    waiting: VecDeque<(Ticket, Bulk)>,
    senders: usize,
    /// Of the senders, those without a bulk.
    idle: usize,
    /// Why bulks are not taken.
    trouble: BTreeMap<Ticket, String>,
    is_closed: bool,
}

/// No bulk can be put on its way.
#[derive(Debug, thiserror::Error)]
pub(super) enum LaneError {
    #[error("no thread could be started: {0}")]
    Thread(#[from] std::io::Error),
    #[error(transparent)]
    Metadata(#[from] MetadataTooLong),
}

/// So many times a part may be refused or unanswered as a whole, before half of it is tried.
const WHOLE_TRIES_MAX: u32 = 3;

/// What became of a request.
enum Outcome {
    Taken,
    /// It is too large, or something in it makes it unreadable.
    Divide(Answer),
}

/// Why something of a part is left.
struct Failure {
    told: String,
    /// The target may refuse it, or take too long with it, only because there is so much of it.
    may_be_too_much: bool,
}

impl From<String> for Failure {
    fn from(told: String) -> Failure {
        Failure { told, may_be_too_much: false }
    }
}

impl Lane {
    pub fn new(target: Arc<Target>, partition: PartitionId, controller: Controller) -> Arc<Lane> {
        let state = State {
            in_flight: InFlight::new(controller),
            waiting: VecDeque::new(),
            senders: 0,
            idle: 0,
            trouble: BTreeMap::new(),
            is_closed: false,
        };
        let metrics = BulkMetrics::new(&target.name, partition);
        Arc::new(Lane {
            target,
            partition,
            metrics,
            refusals: Mutex::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Whether another bulk may be put on its way.
    pub fn has_room(&self) -> bool {
        self.is_free(&self.state.lock())
    }

    fn is_free(&self, state: &State) -> bool {
        state.in_flight.len() < self.target.settings.bulk.in_flight
    }

    /// Whether everything is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.state.lock().in_flight.is_empty()
    }

    /// Why something is not taken, if that is so.
    pub fn trouble(&self) -> Option<String> {
        self.state.lock().trouble.values().next().cloned()
    }

    /// Waits until there is room, but not longer than this. `true` when there is.
    pub fn wait_for_room(&self, at_most: Duration) -> bool {
        self.wait(at_most, |state| self.is_free(state))
    }

    /// Waits until everything is acknowledged, but not longer than this. `true` when it is.
    pub fn wait_until_empty(&self, at_most: Duration) -> bool {
        self.wait(at_most, |state| state.in_flight.is_empty())
    }

    fn wait(&self, at_most: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let until = Instant::now() + at_most;
        let mut state = self.state.lock();
        while !is_so(&state) {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return is_so(&state);
            }
        }
        true
    }

    /// Puts a bulk on its way, whose last record is at this place. Returns how many are not acknowledged.
    pub fn send(self: &Arc<Self>, bulk: Bulk, last: RecordPlace, metadata: Vec<u8>) -> Result<usize, LaneError> {
        let mut state = self.state.lock();
        if state.idle <= state.waiting.len() && state.senders < self.target.settings.bulk.in_flight {
            let lane = self.clone();
            let name = format!("sender {} {}", self.target.name, self.partition);
            std::thread::Builder::new().name(name).spawn(move || lane.run())?;
            state.senders += 1;
            state.idle += 1;
        }
        let ticket = state.in_flight.begin_with(last, metadata)?;
        state.waiting.push_back((ticket, bulk));
        self.changed.notify_all();
        Ok(state.in_flight.len())
    }

    /// Ends the threads, as soon as they come back from what they do. What is not acknowledged stays so.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// What a sender does until the lane is closed.
    fn run(&self) {
        while let Some((ticket, bulk)) = self.next() {
            let begin = Instant::now();
            let is_taken = self.deliver(ticket, bulk);
            let mut state = self.state.lock();
            state.idle += 1;
            if is_taken {
                state.trouble.remove(&ticket);
                state.in_flight.end(ticket);
                self.metrics.taken(begin.elapsed(), state.in_flight.len());
                self.changed.notify_all();
            }
        }
    }

    fn next(&self) -> Option<(Ticket, Bulk)> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(next) = state.waiting.pop_front() {
                state.idle -= 1;
                return Some(next);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Sends a bulk until all of it is taken or set aside, in parts if need be. `false` when the lane was closed before.
    fn deliver(&self, ticket: Ticket, bulk: Bulk) -> bool {
        let (first_pause, longest_pause) = self.target.settings.pauses;
        let mut pause = first_pause;
        let mut whole_tries = 0;
        let mut parts = vec![bulk];
        while let Some(part) = parts.last_mut() {
            // A panic on what one server answers must not hold up the partition for good, and without a word.
            let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(part)))
                .unwrap_or_else(|_| Err("it was sent, and reading the answer failed with a panic".to_owned().into()));
            let failure = match attempt {
                Ok(Outcome::Taken) => {
                    parts.pop();
                    (pause, whole_tries) = (first_pause, 0);
                    continue;
                }
                Ok(Outcome::Divide(_)) if part.len() > 1 => {
                    let rest = part.split_off_half();
                    parts.push(rest);
                    continue;
                }
                Ok(Outcome::Divide(answer)) => match self.reject_whole(part, &answer) {
                    Ok(()) => {
                        parts.pop();
                        continue;
                    }
                    Err(failure) => failure,
                },
                Err(Failure { told, may_be_too_much }) => {
                    whole_tries += u32::from(may_be_too_much);
                    if whole_tries == WHOLE_TRIES_MAX && part.len() > 1 {
                        whole_tries = 0;
                        let rest = part.split_off_half();
                        parts.push(rest);
                    }
                    told
                }
            };
            self.metrics.failed();
            let mut state = self.state.lock();
            state.trouble.insert(ticket, failure);
            if !self.pause(&mut state, pause) {
                return false;
            }
            pause = (pause * 2).min(longest_pause);
        }
        true
    }

    /// `false` when the lane was closed meanwhile.
    fn pause(&self, state: &mut MutexGuard<'_, State>, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !state.is_closed {
            if self.changed.wait_until(state, until).timed_out() {
                return true;
            }
        }
        false
    }

    /// Sends a part once. What is taken or set aside is not in it any more; an error says why something is left.
    fn attempt(&self, part: &mut Bulk) -> Result<Outcome, Failure> {
        let Target { client, schema, settings, .. } = &*self.target;
        schema.ensure(client, settings, part.version()).map_err(|error| error.to_string())?;
        let begin = Instant::now();
        let answer = client.send(Method::POST, BULK_PATH, "application/x-ndjson", part.body()).map_err(|error| {
            schema.forget();
            Failure { told: error.to_string(), may_be_too_much: true }
        })?;
        let duration = begin.elapsed();
        match answer.status.as_u16() {
            200 => {}
            413 => return Ok(Outcome::Divide(answer)),
            400 if is_about_content(&answer.body) => return Ok(Outcome::Divide(answer)),
            status => return Err(Failure { told: answer.told(), may_be_too_much: status == 429 }),
        }
        let items = BulkAnswer::read(&answer.body, part.len())?;
        self.metrics.answered(duration, items.took());
        if items.is_success() {
            self.judge(&answers_of(part, |_| Verdict::Taken));
            look::begin(&self.target, part.document(part.len() - 1).0, &self.metrics.answered_to_searchable);
            return Ok(Outcome::Taken);
        }
        let verdicts: Vec<Verdict> = (0..part.len()).map(|index| items.item(index).verdict()).collect();
        let total = part.len();
        let answers = answers_of(part, |index| verdicts[index]);
        if let Some(stop) = self.judge(&answers) {
            let last = verdicts.iter().rposition(|verdict| *verdict == Verdict::Rejected).map(|at| items.item(at));
            let reason = last.map_or_else(String::new, |item| {
                format!("status {} {}", item.status, item.error.map_or("", |error| error.get()))
            });
            part.retain(|index| verdicts[index] != Verdict::Taken);
            return Err(self.stopped(stop, &reason).into());
        }
        self.reject(part, &items, &verdicts)?;
        self.refusals.lock().count(&answers);
        part.retain(|index| verdicts[index] == Verdict::Again);
        match verdicts.iter().position(|verdict| *verdict == Verdict::Again) {
            None => Ok(Outcome::Taken),
            Some(first) => {
                let item = items.item(first);
                let (count, status, error) = (part.len(), item.status, item.error.map_or("", |error| error.get()));
                let error: String = error.chars().take(300).collect();
                Err(format!("{count} of {total} records were not taken, the first with status {status} {error}").into())
            }
        }
    }

    /// Whether what the target refused must be kept. What it took is counted then, and all of it if nothing was refused.
    fn judge(&self, answers: &AnswersByType) -> Option<Stop> {
        let mut refusals = self.refusals.lock();
        let stop = refusals.judge(Instant::now(), answers).filter(|_| self.target.settings.rejected.stops_when_many);
        if stop.is_some() || answers.values().all(|answers| answers.refused == 0) {
            let taken = |(of, answers): (&u8, &Answers)| (*of, Answers { taken: answers.taken, refused: 0 });
            refusals.count(&answers.iter().map(taken).collect());
        }
        stop
    }

    /// Why nothing is set aside, and the way out.
    fn stopped(&self, stop: Stop, reason: &str) -> String {
        let of = stop.of.map_or_else(String::new, |of| format!(" of value type {}", of.name()));
        let Answers { taken, refused } = stop.answers;
        let (total, reason) = (taken + refused, reason.chars().take(300).collect::<String>());
        let path = self.target.rejected.path().display();
        if stop.is_new {
            tracing::error!(
                exporter = self.target.name, partition = %self.partition, refused, total, reason,
                "the target refuses most records{of}, so the exporter stops and keeps them"
            );
        }
        format!(
            "the target refuses {refused} of the last {total} records{of}, the last of them with {reason}. So many are no odd records, \
             so none of them is set aside, and they are sent again until they are taken. Mend what the target says there (another \
             template, alias, mapping or data stream of that name), and the exporter goes on by itself; or set rejected.stopWhenMany to \
             false and start the node again, to have them written to {path}"
        )
    }

    /// Sets aside what is never taken.
    fn reject(&self, part: &Bulk, items: &BulkAnswer<'_>, verdicts: &[Verdict]) -> Result<(), String> {
        let is_rejected = |index: &usize| verdicts[*index] == Verdict::Rejected;
        let rejected: Vec<usize> = (0..part.len()).filter(is_rejected).collect();
        let Some(first) = rejected.first() else { return Ok(()) };
        let mut lines = RejectedLines::default();
        for index in &rejected {
            let item = items.item(*index);
            self.written(lines.push(part.document(*index), item.status, item.error))?;
        }
        let reason = items.item(*first).error.map_or("", |error| error.get());
        self.set_aside(&lines, rejected.len(), part.document(*first).0, reason)
    }

    /// Sets aside the only document of a part.
    fn reject_whole(&self, part: &Bulk, answer: &Answer) -> Result<(), String> {
        let answers = answers_of(part, |_| Verdict::Rejected);
        if let Some(stop) = self.judge(&answers) {
            return Err(self.stopped(stop, &answer.told()));
        }
        let mut lines = RejectedLines::default();
        let error = serde_json::value::to_raw_value(&answer.told()).expect("a text is JSON");
        self.written(lines.push(part.document(0), answer.status.as_u16(), Some(&error)))?;
        self.set_aside(&lines, 1, part.document(0).0, &answer.told())?;
        self.refusals.lock().count(&answers);
        Ok(())
    }

    fn set_aside(&self, lines: &RejectedLines, count: usize, first: &[u8], reason: &str) -> Result<(), String> {
        self.written(self.target.rejected.append(lines))?;
        self.metrics.rejected(count);
        let reason: String = reason.chars().take(1_000).collect();
        tracing::error!(
            exporter = self.target.name, partition = %self.partition, records = count,
            first = %String::from_utf8_lossy(first), reason, file = %self.target.rejected.path().display(),
            "records that the target refuses for what is in them were set aside; the others go on"
        );
        Ok(())
    }

    fn written<E: std::fmt::Display>(&self, result: Result<(), E>) -> Result<(), String> {
        result.map_err(|error| {
            let path = self.target.rejected.path().display();
            format!("records are refused by the target, and could not be written to {path}: {error}")
        })
    }
}

/// What the target did with the documents of a part, by value type.
fn answers_of(part: &Bulk, verdict: impl Fn(usize) -> Verdict) -> AnswersByType {
    let mut answers = AnswersByType::new();
    for index in 0..part.len() {
        let of = answers.entry(part.value_type(index) as u8).or_default();
        match verdict(index) {
            Verdict::Taken => of.taken += 1,
            Verdict::Rejected => of.refused += 1,
            Verdict::Again => {}
        }
    }
    answers
}
