//! What a partition asked of itself and refused: it must not be asked again unchanged, or it would be refused for ever, and
//! fill the log with it.

use protocol::{Command, JobIntent, Key, OutboxIntent, OutboxValue, Payload, TimerIntent, WorkIntent, WorkValue};

use crate::dispatch::ban;
use crate::execution::Execution;
use crate::execution::step::instances_of_work;
use crate::state::{JobState, still_due};
use crate::{distribution, due};

/// Takes what a refused command was about off its queue, if it is still due there, and puts the instance aside. What
/// was refused because it is no longer due is left as it is. `is_noted` says that an ERROR record already has the
/// reason.
pub(crate) fn take_off(execution: &mut Execution<'_>, command: &Command, is_noted: bool, reason: &str) {
    if command.request.is_some() || command.source.is_some() {
        return;
    }
    match &command.payload {
        Payload::Timer(TimerIntent::Trigger, _) => take_off_timer(execution, command.key, is_noted, reason),
        Payload::Job(intent @ (JobIntent::TimeOut | JobIntent::RecurAfterBackoff), _) => {
            take_off_job(execution, command.key, *intent, is_noted, reason);
        }
        Payload::Work(WorkIntent::Continue, value) => take_off_work(execution, value, reason),
        Payload::Outbox(OutboxIntent::Acknowledge, value) => take_off_acknowledged(execution, value),
        _ => {}
    }
    abandon(execution, command);
}

fn take_off_timer(execution: &mut Execution<'_>, key: Key, is_noted: bool, reason: &str) {
    let Some(row) = execution.state.tables.timers.get(&key.raw()) else { return };
    if row.value.due_date > execution.timestamp {
        return;
    }
    let value = row.value.clone();
    // A start event has no instance; the record says why its timer no longer fires.
    put_aside(execution, value.process_instance_key, is_noted, reason);
    execution.emit(key, Payload::Timer(TimerIntent::Canceled, Box::new(value)));
}

fn take_off_job(execution: &mut Execution<'_>, key: Key, asked: JobIntent, is_noted: bool, reason: &str) {
    let Some(job) = execution.state.job(key) else { return };
    let value = &job.value;
    let (is_due, due_for) = match job.state {
        JobState::Activated => (value.deadline <= execution.timestamp, JobIntent::TimeOut),
        JobState::Failed => ((0..=execution.timestamp).contains(&value.recurring_time), JobIntent::RecurAfterBackoff),
        JobState::Activatable | JobState::ErrorThrown => return,
    };
    // Behind a leader that was slow, a command comes when the job has failed or was activated again meanwhile. That the job is
    // due for something else by then says nothing against it.
    if is_due && asked == due_for {
        put_aside(execution, value.process_instance_key, is_noted, reason);
        if execution.state.element_instance(value.element_instance_key).is_some() {
            execution.emit(key, Payload::Job(JobIntent::Canceled, value.clone()));
        }
    }
}

/// What the other partition has is not sent again. A distribution that cannot continue with it is not told.
fn take_off_acknowledged(execution: &mut Execution<'_>, value: &OutboxValue) {
    let Some((sequence, _)) = distribution::newly_acknowledged(&execution.state, value).last().copied() else { return };
    let acknowledged = OutboxValue { sequence, distribution_key: Key::NONE, command: None, ..value.clone() };
    execution.emit(Key::NONE, Payload::Outbox(OutboxIntent::Acknowledged, Box::new(acknowledged)));
}

/// Whatever a refused command was about and is still due, although there may be nothing else left of it, leaves its queue.
/// Messages that were to expire together are tried once more, each alone, because only one of them may be the reason; one
/// that is refused alone stays, until an instance takes it.
fn abandon(execution: &mut Execution<'_>, command: &Command) {
    let Command { payload, key, .. } = command;
    let due = still_due(&execution.state, payload, *key, execution.timestamp);
    if due.is_empty() {
        return;
    }
    let abandoned = WorkValue { commands: vec![command.clone()], ..WorkValue::default() };
    execution.emit(Key::NONE, Payload::Work(WorkIntent::Abandoned, Box::new(abandoned)));
    let Payload::MessageBatch(..) = payload else { return };
    if due.len() < 2 {
        return;
    }
    for (_, message) in due {
        let commands = vec![due::expire(vec![Key::from_raw(message)])];
        execution.enqueue(WorkValue { commands, is_part: true, ..WorkValue::default() });
    }
}

/// The instances of the entry are banned first: what it holds of others, and for other partitions, is still done. When
/// there are none, the entry itself goes.
fn take_off_work(execution: &mut Execution<'_>, value: &WorkValue, reason: &str) {
    let Some(row) = execution.state.tables.work.get(&value.sequence) else { return };
    let instances = instances_of_work(&execution.state, &row);
    if instances.is_empty() {
        let dequeued = WorkValue { sequence: value.sequence, ..WorkValue::default() };
        execution.emit(Key::NONE, Payload::Work(WorkIntent::Dequeued, Box::new(dequeued)));
    }
    for instance in instances {
        ban(execution, instance, reason);
    }
}

fn put_aside(execution: &mut Execution<'_>, process_instance: Key, is_noted: bool, reason: &str) {
    let is_told = is_noted && process_instance.is_none();
    if !is_told && !execution.state.is_banned(process_instance) {
        ban(execution, process_instance, reason);
    }
}
