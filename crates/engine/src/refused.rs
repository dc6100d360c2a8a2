//! What a partition asked of itself and refused: it must not be asked again unchanged, or it would be refused for ever, and
//! fill the log with it.

use protocol::{Command, JobIntent, Key, Payload, TimerIntent, WorkIntent, WorkValue};

use crate::dispatch::{ban, instances_of_work};
use crate::execution::Execution;
use crate::state::JobState;

/// Takes what a refused command was about off its queue, if it is still due there, and puts the instance aside. What was
/// refused because it is not due any more is left as it is. `is_noted` says that an ERROR record has the reason already.
pub(crate) fn take_off(execution: &mut Execution<'_>, command: &Command, is_noted: bool, reason: &str) {
    if command.request.is_some() || command.source.is_some() {
        return;
    }
    match &command.payload {
        Payload::Timer(TimerIntent::Trigger, _) => take_off_timer(execution, command.key, is_noted, reason),
        Payload::Job(JobIntent::TimeOut | JobIntent::RecurAfterBackoff, _) => {
            take_off_job(execution, command.key, is_noted, reason);
        }
        Payload::Work(WorkIntent::Continue, value) => take_off_work(execution, value, reason),
        _ => {}
    }
}

fn take_off_timer(execution: &mut Execution<'_>, key: Key, is_noted: bool, reason: &str) {
    let Some(row) = execution.state.tables.timers.get(&key.raw()) else { return };
    if row.value.due_date > execution.timestamp {
        return;
    }
    let value = row.value.clone();
    // A start event has no instance; the record tells why its timer does not come any more.
    put_aside(execution, value.process_instance_key, is_noted, reason);
    execution.emit(key, Payload::Timer(TimerIntent::Canceled, Box::new(value)));
}

fn take_off_job(execution: &mut Execution<'_>, key: Key, is_noted: bool, reason: &str) {
    let Some(job) = execution.state.job(key) else { return };
    let value = &job.value;
    let is_due = match job.state {
        JobState::Activated => value.deadline <= execution.timestamp,
        JobState::Failed => (0..=execution.timestamp).contains(&value.recurring_time),
        JobState::Activatable | JobState::ErrorThrown => false,
    };
    if is_due {
        put_aside(execution, value.process_instance_key, is_noted, reason);
        execution.emit(key, Payload::Job(JobIntent::Canceled, value.clone()));
    }
}

/// The instances of the entry are banned first: what it holds of others, and for other partitions, is still done. When
/// there are none, the entry itself goes.
fn take_off_work(execution: &mut Execution<'_>, value: &WorkValue, reason: &str) {
    let Some(row) = execution.state.tables.work.get(&value.sequence) else { return };
    let instances = instances_of_work(execution, &row);
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
