//! Handing out available jobs: one queue per tenant and type feeds streams and polls alike, oldest first.
//!
//! Invariant: while a queue holds a job, no stream of its type has credit left. Whatever adds a job or credit calls
//! [`deliver`], so it needs to look at streams only when the queue was empty before.

use std::collections::BTreeSet;
use std::sync::Arc;

use protocol::{
    Command, ErrorType, JobBatchIntent, JobBatchValue, JobKind, JobOwner, JobStreamIntent, JobStreamValue, JobValue,
    Key, Payload, Text, WorkValue,
};

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::incident;
use crate::output::Push;
use crate::state::State;
use crate::user_task::listener;
use crate::variable::document;

/// The queue of one tenant and type.
#[derive(Clone, Debug)]
pub(crate) struct JobQueue {
    tenant_id: Text,
    job_type: Text,
    /// Whether streams can have credit although the queue has jobs.
    may_have_credit: bool,
}

impl JobQueue {
    pub fn of(job: &JobValue) -> Self {
        Self::of_names(&job.tenant_id, &job.job_type)
    }

    pub fn of_names(tenant_id: &Text, job_type: &Text) -> Self {
        JobQueue { tenant_id: tenant_id.clone(), job_type: job_type.clone(), may_have_credit: true }
    }

    pub fn id(&self) -> (Arc<str>, Arc<str>) {
        (self.tenant_id.shared().clone(), self.job_type.shared().clone())
    }

    pub fn has_jobs(&self, state: &State) -> bool {
        !state.tables.available_jobs.is_empty(&self.id())
    }

    /// The queue after a job was added; `had_jobs` tells whether others were waiting before.
    pub fn after_insertion(mut self, had_jobs: bool) -> Self {
        self.may_have_credit = !had_jobs;
        self
    }
}

/// Gives available jobs to streams that have credit; the remaining ones are announced to pollers.
pub(crate) fn deliver(execution: &mut Execution<'_>, queue: &JobQueue) {
    if !queue.may_have_credit {
        return;
    }
    let queue_id = queue.id();
    let mut has_delivered = false;
    while !execution.state.tables.available_jobs.is_empty(&queue_id) {
        let Some(stream) = next_stream(&execution.state, &queue_id) else {
            execution.announce_jobs(&queue.tenant_id, &queue.job_type);
            return;
        };
        if has_delivered && execution.is_over_budget() {
            return deliver_later(execution, &stream);
        }
        has_delivered = true;
        if !push_to(execution, &queue_id, &stream) {
            return;
        }
    }
}

/// The rest waits its turn in the work queue, as a grant that grants nothing more.
fn deliver_later(execution: &mut Execution<'_>, stream: &JobStreamValue) {
    let value = JobStreamValue { stream: stream.stream, ..JobStreamValue::default() };
    let command = Command::new(Key::NONE, Payload::JobStream(JobStreamIntent::Grant, Box::new(value)));
    let commands = vec![command.following(&execution.origin)];
    execution.enqueue(WorkValue { commands, rounds: execution.rounds, ..WorkValue::default() });
}

/// The next stream in turn that has credit.
fn next_stream(state: &State, (tenant, job_type): &(Arc<str>, Arc<str>)) -> Option<JobStreamValue> {
    if state.counters.job_streams == 0 {
        return None;
    }
    let served = state
        .tables
        .served_streams
        .get(&(tenant.clone(), job_type.clone()))
        .map_or((0, 0), |served| (served.stream.node, served.stream.number.saturating_add(1)));
    let first = (tenant.clone(), job_type.clone(), 0, 0);
    let turn = (tenant.clone(), job_type.clone(), served.0, served.1);
    let end = (tenant.clone(), job_type.clone(), u32::MAX, u64::MAX);
    let streams = &state.tables.job_streams_by_type;
    streams.range(turn.clone()..end).chain(streams.range(first..turn)).find_map(|((_, _, node, number), _)| {
        let row = state.tables.job_streams.get(&(node, number))?;
        row.value.has_credit().then(|| row.value.clone())
    })
}

/// Activates jobs from the front of the queue for a stream, as many as its credit in jobs and bytes holds, and the
/// first one whatever its size. Returns whether jobs left the queue.
fn push_to(execution: &mut Execution<'_>, queue: &(Arc<str>, Arc<str>), stream: &JobStreamValue) -> bool {
    let credit = stream.granted.minus(stream.used);
    let request = Activation {
        worker: &stream.worker,
        timeout: stream.timeout,
        fetch_variables: &stream.fetch_variables,
        jobs_max: usize::try_from(credit.jobs).unwrap_or(usize::MAX),
        bytes_max: usize::try_from(credit.bytes).unwrap_or(usize::MAX).min(execution.limits.job_batch_bytes_max),
    };
    let taken = take_jobs(execution, queue, &request);
    if taken.keys.is_empty() {
        return taken.removed > 0;
    }
    let first = stream.used.jobs.saturating_add(1);
    let jobs: Vec<Arc<JobValue>> = taken.jobs.iter().cloned().map(Arc::new).collect();
    for (number, (key, job)) in (first..).zip(taken.keys.iter().zip(jobs)) {
        execution.output.pushes.push(Push { stream: stream.stream, number, key: *key, job });
    }
    let batch = JobBatchValue {
        job_type: stream.job_type.clone(),
        worker: stream.worker.clone(),
        timeout: stream.timeout,
        max_jobs_to_activate: taken.keys.len() as i32,
        job_keys: taken.keys,
        jobs: taken.jobs,
        truncated: false,
        tenant_ids: stream.tenant_ids.clone(),
        fetch_variables: stream.fetch_variables.clone(),
        owner: Some(JobOwner::Stream(stream.stream, first)),
    };
    let key = execution.state.next_key();
    execution.emit(key, Payload::JobBatch(JobBatchIntent::Activated, Box::new(batch)));
    true
}

/// The wanted names in their order, each once.
fn each_once(wanted: &[Text]) -> Vec<Text> {
    let mut seen = BTreeSet::new();
    wanted.iter().filter(|name| seen.insert(*name)).cloned().collect()
}

/// What an activation asks for.
pub(crate) struct Activation<'a> {
    pub worker: &'a Text,
    pub timeout: i64,
    pub fetch_variables: &'a [Text],
    pub jobs_max: usize,
    pub bytes_max: usize,
}

/// Jobs that can be activated together.
#[derive(Default)]
pub(crate) struct Taken {
    pub keys: Vec<Key>,
    /// The jobs as the worker gets them.
    pub jobs: Vec<JobValue>,
    /// Whether there are more that did not fit.
    pub truncated: bool,
    /// How many left the queue without being taken: too large, or of a banned instance.
    pub removed: usize,
}

/// Reads jobs from the front of a queue as they look when activated. A job that is too large for any message becomes an
/// incident, so that it does not block the others.
pub(crate) fn take_jobs(
    execution: &mut Execution<'_>,
    queue: &(Arc<str>, Arc<str>),
    activation: &Activation<'_>,
) -> Taken {
    let mut taken = Taken::default();
    let mut too_large = Vec::new();
    let mut banned = Vec::new();
    let mut bytes = 0;
    let wanted = each_once(activation.fetch_variables);
    for (key, _) in execution.state.tables.available_jobs.iter(queue).take(activation.jobs_max) {
        let has_some = !taken.keys.is_empty() || !too_large.is_empty() || !banned.is_empty();
        if has_some && execution.is_over_budget() {
            taken.truncated = true;
            break;
        }
        let Some(row) = execution.state.tables.jobs.get(&key) else { continue };
        if execution.state.is_banned(row.value.process_instance_key) {
            banned.push(Key::from_raw(key));
            continue;
        }
        let mut job = (*row.value).clone();
        job.worker = activation.worker.clone();
        let job_bytes_max = execution.limits.job_bytes_max;
        let charge = |steps| execution.used.count_reads(steps);
        let (state, element_instance) = (&execution.state, job.element_instance_key);
        // Much more may be visible than any job may have.
        let Some(variables) = document::collect_within(state, element_instance, &wanted, job_bytes_max, charge) else {
            too_large.push((Key::from_raw(key), job));
            continue;
        };
        job.variables = variables.into();
        if job.job_kind == JobKind::TaskListener {
            let over = listener::variables_of_change(&execution.state, job.element_instance_key);
            job.variables = document::laid_over(&over, &job.variables, &wanted, charge);
        }
        let size = job.message_bytes();
        if size > job_bytes_max {
            // There can be many.
            job.variables = Text::default();
            too_large.push((Key::from_raw(key), job));
            continue;
        }
        if bytes + size > activation.bytes_max && !taken.keys.is_empty() {
            taken.truncated = true;
            break;
        }
        bytes += size;
        job.deadline = execution.timestamp.saturating_add(activation.timeout);
        taken.keys.push(Key::from_raw(key));
        taken.jobs.push(job);
    }
    taken.removed = too_large.len() + banned.len();
    // The jobs behind them could have used their room.
    taken.truncated |= taken.removed > 0;
    for key in banned {
        super::is_cancelled_as_banned(execution, key);
    }
    for (key, job) in too_large {
        let message = format!(
            "Expected to activate job with key '{key}' with at most {} bytes, but with its variables it has more; \
             reduce the variables that are visible to it",
            execution.limits.job_bytes_max
        );
        incident::raise_for_job(execution, key, &job, Problem::new(ErrorType::MessageSizeExceeded, message));
    }
    taken
}
