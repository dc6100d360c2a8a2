//! Follows every instance from its creation, or from the publication of its message, to the acknowledgement of its last
//! completion.

mod messages;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gateway_interface::ActivatedJob;
use tonic::Status;

use crate::figures::{Figures, Irregularities, Latencies, MessageCounts, Second};
use crate::instances::{Instance, Instances, Message, RecentKeys};
use crate::link::has_unknown_outcome;
use crate::model::{Tag, task_number};
use crate::options::Work;
use crate::profile::{Kind, WaitsFor};
use crate::schedule::Timeline;
use crate::silence::{Silence, SilenceReport};
use crate::worker::{Failed, Source};

/// Sends later than this after their intended time count as late.
const LATE: Duration = Duration::from_millis(10);
/// Instances made beforehand at once.
pub(crate) const MADE_BEFOREHAND_LIMIT: usize = 10_000_000;
/// Abandoned instances whose jobs may still come without being a surprise.
const GIVEN_UP_LIMIT: usize = 1_000_000;

/// Shared by the starter, which begins instances, and the workers, which end them.
#[derive(Clone)]
pub(crate) struct Tracker {
    timeline: Timeline,
    kinds: Arc<[Kind]>,
    process_ids: Arc<[Arc<str>]>,
    state: Arc<Mutex<State>>,
}

struct State {
    instances: Instances,
    /// Instances made beforehand whose message was not sent yet, oldest first. Only what is sent is outstanding.
    beforehand: VecDeque<Tag>,
    /// Those, and those that are just being created.
    not_counted: usize,
    given_up: HashSet<Tag>,
    received_keys: RecentKeys,
    completed_keys: RecentKeys,
    windows: Windows,
    irregularities: Irregularities,
    messages: MessageCounts,
    second: SecondSoFar,
    silence: Silence,
}

struct SecondSoFar {
    created: u64,
    published: u64,
    completed: u64,
    process: Latencies,
}

/// A span of time in which events count.
struct Window {
    start: Duration,
    end: Duration,
    /// By process, and at the end those of unknown instances.
    figures: Vec<Figures>,
}

/// In sequence, a few at most.
struct Windows(Vec<Window>);

impl Windows {
    /// The figures of a process in which an event of this time counts.
    fn at(&mut self, time: Duration, kind: usize) -> Option<&mut Figures> {
        let window = self.0.iter_mut().find(|window| window.start <= time && time < window.end)?;
        Some(&mut window.figures[kind])
    }
}

impl State {
    /// A send of the schedule is being made.
    fn sent(&mut self, kind: usize, intended: Duration, now: Duration) {
        if now.saturating_sub(intended) > LATE
            && let Some(figures) = self.windows.at(intended, kind)
        {
            figures.late_sends += 1;
        }
    }

    fn give_up(&mut self, tag: Tag) {
        if self.given_up.len() < GIVEN_UP_LIMIT {
            self.given_up.insert(tag);
        }
    }
}

/// A job between its arrival and the answer to its completion.
pub(crate) struct TrackedJob {
    key: i64,
    /// It came before; its times are those of the first copy.
    duplicate: bool,
    tag: Option<Tag>,
    received: Duration,
    sent: Duration,
}

impl Tracker {
    pub fn new(timeline: Timeline, work: &Work, process_ids: Arc<[Arc<str>]>) -> Self {
        let kinds: Arc<[Kind]> = work.profile.kinds(work.timer).into();
        let beforehand = if work.profile.sends_messages() { MADE_BEFOREHAND_LIMIT } else { 0 };
        Tracker {
            timeline,
            process_ids,
            state: Arc::new(Mutex::new(State {
                instances: Instances::with_limit(work.outstanding_instances + beforehand),
                beforehand: VecDeque::new(),
                not_counted: 0,
                given_up: HashSet::new(),
                received_keys: RecentKeys::default(),
                completed_keys: RecentKeys::default(),
                windows: Windows(Vec::new()),
                irregularities: Irregularities::default(),
                messages: MessageCounts::default(),
                second: SecondSoFar { created: 0, published: 0, completed: 0, process: Latencies::new() },
                silence: Silence::default(),
            })),
            kinds,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing that holds the tracker panics")
    }

    pub fn now(&self) -> Duration {
        self.timeline.now()
    }

    /// Starts new figures for this span of time, and forgets those of others.
    pub fn open_window(&self, start: Duration, end: Duration) {
        self.state().windows.0.clear();
        self.add_window(start, end);
    }

    /// Adds figures for this span of time after those that there are.
    pub fn add_window(&self, start: Duration, end: Duration) {
        let figures = vec![Figures::new(); self.kinds.len() + 1];
        self.state().windows.0.push(Window { start, end, figures });
    }

    /// Ends the last window early, so that nothing later counts.
    pub fn close_window(&self, end: Duration) {
        if let Some(window) = self.state().windows.0.last_mut() {
            window.end = window.end.min(end);
        }
    }

    /// Lets the last window end at this time, which may be later than it ended before.
    pub fn end_window(&self, end: Duration) {
        if let Some(window) = self.state().windows.0.last_mut() {
            window.end = end;
        }
    }

    /// The figures of each process in the window with this number, and their sum with those of unknown instances.
    pub fn figures(&self, window: usize) -> (Vec<Figures>, Figures) {
        let mut by_kind = self.state().windows.0[window].figures.clone();
        let mut sum = Figures::new();
        by_kind.iter().for_each(|figures| sum.add(figures));
        by_kind.truncate(self.kinds.len());
        (by_kind, sum)
    }

    pub fn irregularities(&self) -> Irregularities {
        self.state().irregularities.clone()
    }

    /// What became of the messages, if there are any.
    pub fn messages(&self) -> Option<MessageCounts> {
        self.kinds.iter().any(|kind| kind.waits_for_message()).then(|| self.state().messages)
    }

    pub fn forget_irregularities(&self) {
        let mut state = self.state();
        state.irregularities = Irregularities::default();
        state.messages = MessageCounts::default();
    }

    /// Looks for times without an acknowledgement in this span of time.
    pub fn listen(&self, start: Duration, end: Duration) {
        self.state().silence = Silence::between(start, end);
    }

    /// The times without an acknowledgement until now, or until the end of the span.
    pub fn silence(&self) -> SilenceReport {
        self.state().silence.report(self.timeline)
    }

    pub fn outstanding(&self) -> usize {
        let state = self.state();
        state.instances.len() - state.not_counted
    }

    /// Instances made beforehand whose message can be sent.
    pub fn made_beforehand(&self) -> usize {
        self.state().beforehand.len()
    }

    /// Abandons the outstanding instances and returns for each process how many of them had been acknowledged.
    pub fn forget_instances(&self) -> Vec<u64> {
        let mut guard = self.state();
        let state = &mut *guard;
        let mut acknowledged = vec![0; self.kinds.len()];
        let mut lost = 0;
        let mut tags = Vec::new();
        state.instances.forget_counted(|tag, instance| {
            if instance.acknowledged {
                acknowledged[instance.kind] += 1;
                if let Some(figures) = state.windows.at(instance.intended, instance.kind) {
                    figures.unfinished += 1;
                }
            }
            lost += u64::from(instance.message == Message::Acknowledged);
            tags.push(tag);
        });
        state.messages.lost += lost;
        tags.into_iter().for_each(|tag| state.give_up(tag));
        acknowledged
    }

    /// What happened since it was last asked.
    pub fn take_second(&self, second: u64) -> Second {
        let mut state = self.state();
        let quantiles = state.second.process.quantiles();
        let taken = Second {
            second,
            created: std::mem::take(&mut state.second.created),
            published: std::mem::take(&mut state.second.published),
            completed: std::mem::take(&mut state.second.completed),
            outstanding: state.instances.len() - state.not_counted,
            p50: quantiles.p50,
            p99: quantiles.p99,
            max: quantiles.max,
        };
        state.second.process.reset();
        taken
    }

    /// A creation is about to be sent, perhaps together with the message that the instance will wait for. None when too
    /// many instances are outstanding.
    pub fn begin(&self, kind: usize, buffered: bool, intended: Duration) -> Option<Tag> {
        let now = self.timeline.now();
        let mut state = self.state();
        let message = match self.kinds[kind].waits_before() {
            Some((_, WaitsFor::Message)) if buffered => Message::Sent,
            Some((_, WaitsFor::Message)) => Message::NotSent,
            _ => Message::None,
        };
        let instance = Instance::new(kind, self.kinds[kind].tasks(), message);
        let tag = state.instances.insert(Instance { intended, command_sent: now, buffered, ..instance })?;
        state.sent(kind, intended, now);
        Some(tag)
    }

    /// Sends of the schedule that were never made.
    pub fn skipped(&self, kind: usize, intended: Duration) {
        if let Some(figures) = self.state().windows.at(intended, kind) {
            figures.skipped_sends += 1;
        }
    }

    /// The send was put off for this long, because its intent had to be on the disk before: it counts from then.
    pub fn put_off(&self, tag: Tag, by: Duration) {
        if let Some(instance) = self.state().instances.get(tag) {
            instance.intended += by;
            instance.command_sent += by;
        }
    }

    /// The creation was acknowledged, with the key of the process instance.
    pub fn created(&self, kind: usize, tag: Tag, intended: Duration, key: i64) {
        let now = self.timeline.now();
        let mut state = self.state();
        state.silence.acknowledged(now, Some(key));
        // A fast instance may be complete before the answer to its creation is read.
        if let Some(instance) = state.instances.get(tag) {
            instance.acknowledged = true;
            if instance.tasks_left == self.kinds[kind].tasks() {
                instance.command_acknowledged.get_or_insert(now);
            }
        }
        state.second.created += 1;
        if let Some(figures) = state.windows.at(now, kind) {
            figures.created += 1;
        }
        if let Some(figures) = state.windows.at(intended, kind) {
            figures.creation.record(now.saturating_sub(intended));
        }
    }

    pub fn creation_failed(&self, tag: Tag, status: &Status) {
        let mut state = self.state();
        state.instances.remove(tag);
        // Even without an answer it may exist.
        state.give_up(tag);
        match has_unknown_outcome(status.code()) {
            true => state.irregularities.unknown_creations.record(status),
            false => state.irregularities.rejected_creations.record(status),
        }
    }

    fn task_completed(&self, state: &mut State, tag: Tag, job: &TrackedJob, now: Duration) -> Option<(usize, Tag)> {
        let instance = state.instances.get(tag)?;
        let kind = self.kinds[instance.kind];
        instance.tasks_left = instance.tasks_left.saturating_sub(1);
        if instance.tasks_left > 0 {
            if kind.in_sequence() && instance.command_sent == job.sent {
                instance.command_acknowledged = Some(now);
            }
            return wants_message(kind, instance).then_some((instance.kind, tag));
        }
        let instance = state.instances.remove(tag)?;
        let latency = now.saturating_sub(instance.intended);
        state.second.completed += 1;
        state.second.process.record(latency);
        if let Some(figures) = state.windows.at(now, instance.kind) {
            figures.completed += 1;
        }
        if let Some(figures) = state.windows.at(instance.intended, instance.kind) {
            figures.process.record(latency);
            figures.overhead.record(latency.saturating_sub(instance.held));
        }
        None
    }

    /// The process of a job's instance, by its name.
    fn kind_of(&self, job: &ActivatedJob) -> Option<Kind> {
        let named = self.process_ids.iter().position(|id| **id == job.bpmn_process_id)?;
        self.kinds.get(named).copied()
    }

    /// A job came.
    pub fn received(&self, source: Source, job: &ActivatedJob) -> TrackedJob {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let duplicate = !state.received_keys.insert(job.key);
        let mut tracked = TrackedJob { key: job.key, duplicate, tag: None, received: now, sent: now };
        state.irregularities.polled_beside_streams += u64::from(source == Source::BesideStreams);
        state.irregularities.duplicate_jobs += u64::from(duplicate);
        let known = Tag::find(&job.variables).map(|tag| (tag, state.instances.get(tag)));
        let (tag, instance) = match known {
            Some((tag, Some(instance))) => (tag, instance),
            unknown => {
                if !duplicate {
                    let tag = unknown.map(|(tag, _)| tag);
                    self.unknown(state, tag, job);
                }
                return tracked;
            }
        };
        if duplicate {
            tracked.tag = Some(tag);
            return tracked;
        }
        let kind = self.kinds[instance.kind];
        let task = task_number(&job.element_id).unwrap_or(instance.task_reached + 1);
        let waited_for = kind.waits_before().filter(|(before, _)| *before == task).map(|(_, waited_for)| waited_for);
        if kind.in_sequence() {
            let after_message = waited_for == Some(WaitsFor::Message);
            let without_message = matches!(instance.message, Message::NotCounted | Message::NotSent);
            if task != instance.task_reached + 1 || after_message && without_message {
                state.irregularities.unexpected_jobs += 1;
                state.messages.repeated += u64::from(after_message);
                return tracked;
            }
            instance.task_reached = task;
            if std::mem::take(&mut instance.unclear) {
                instance.tasks_left = kind.tasks().saturating_sub(task.saturating_sub(1));
            }
        }
        tracked.tag = Some(tag);
        let since_command = now.saturating_sub(instance.command_sent);
        let acknowledged = instance.command_acknowledged.unwrap_or(now);
        match waited_for {
            Some(WaitsFor::Timer(timer)) => instance.held += timer,
            Some(WaitsFor::Message) => {
                instance.message = Message::Correlated;
                state.messages.correlated += 1;
            }
            Some(WaitsFor::DueDate(_)) | None => {}
        }
        let Some(figures) = state.windows.at(now, instance.kind) else {
            return tracked;
        };
        match waited_for {
            Some(WaitsFor::Timer(timer)) => {
                figures.activation_after_timer.record(since_command.saturating_sub(timer));
            }
            Some(WaitsFor::Message) if instance.buffered => {
                figures.activation_after_buffered_message.record(since_command);
            }
            Some(WaitsFor::Message) => figures.activation_after_message.record(since_command),
            Some(WaitsFor::DueDate(_)) | None => {
                figures.activation_from_command.record(since_command);
                figures.activation_from_acknowledgement.record(now.saturating_sub(acknowledged));
            }
        }
        tracked
    }

    /// A job came for an instance that is not outstanding.
    fn unknown(&self, state: &mut State, tag: Option<Tag>, job: &ActivatedJob) {
        state.irregularities.unknown_jobs += 1;
        if tag.is_some_and(|tag| state.given_up.contains(&tag)) {
            return;
        }
        let task = task_number(&job.element_id);
        let after_message = self.kind_of(job).and_then(Kind::waits_before).is_some_and(|(before, waited_for)| {
            waited_for == WaitsFor::Message && task.is_none_or(|task| task == before)
        });
        state.messages.repeated += u64::from(after_message);
    }

    /// The completion of a job is about to be sent.
    pub fn completing(&self, job: &mut TrackedJob) {
        job.sent = self.timeline.now();
        if job.duplicate {
            return;
        }
        let Some(tag) = job.tag else { return };
        let mut state = self.state();
        let Some(instance) = state.instances.get(tag) else {
            return;
        };
        let held = job.sent.saturating_sub(job.received);
        if self.kinds[instance.kind].in_sequence() {
            instance.held += held;
            instance.command_sent = job.sent;
            instance.command_acknowledged = None;
        } else {
            instance.held = instance.held.max(held);
        }
    }

    /// The completion of a job was acknowledged. Returns process and tag of an instance whose message is to be
    /// published now.
    pub fn completed(&self, job: &TrackedJob) -> Option<(usize, Tag)> {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        state.silence.acknowledged(now, Some(job.key));
        // When a job came twice, the completion of either copy may be the acknowledged one.
        if !state.completed_keys.insert(job.key) {
            state.irregularities.completed_twice += 1;
            return None;
        }
        let instance = job.tag.and_then(|tag| state.instances.get(tag));
        let kind = instance.map_or(self.kinds.len(), |instance| instance.kind);
        if let Some(figures) = state.windows.at(now, kind) {
            figures.jobs_completed += 1;
            figures.completion.record(now.saturating_sub(job.sent));
        }
        self.task_completed(state, job.tag?, job, now)
    }

    /// Something did not succeed. Returns process and tag of an instance whose message is to be published now.
    pub fn failed(&self, job: Option<&TrackedJob>, failed: &Failed<'_>) -> Option<(usize, Tag)> {
        let mut guard = self.state();
        let state = &mut *guard;
        match failed {
            Failed::Stream(status) => state.irregularities.failed_streams.record(status),
            Failed::Completion(status) => state.irregularities.rejected_completions.record(status),
            Failed::WillRepeat => state.irregularities.repeated_completions += 1,
            Failed::Unknown(status) => {
                state.irregularities.unknown_completions.record(status);
                let tag = job?.tag?;
                let instance = state.instances.get(tag)?;
                let kind = self.kinds[instance.kind];
                // When the instance has moved on, its next job shows it. The last job has none after it.
                if kind.in_sequence() && instance.tasks_left > 1 {
                    instance.unclear = true;
                    let moved_on = Instance { tasks_left: instance.tasks_left - 1, ..instance.clone() };
                    return wants_message(kind, &moved_on).then_some((instance.kind, tag));
                }
                state.instances.remove(tag);
                state.give_up(tag);
            }
        }
        None
    }
}

/// Whether the message is to be published after this many tasks.
fn wants_message(kind: Kind, instance: &Instance) -> bool {
    let next = kind.tasks() - instance.tasks_left + 1;
    instance.message == Message::NotSent && kind.waits_before() == Some((next, WaitsFor::Message))
}
