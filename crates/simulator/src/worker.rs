//! A worker on every node, with a stream on each partition that the node leads.

use std::sync::Arc;

use engine::Push;
use protocol::{Command, JobAmount, JobIntent, JobStreamIntent, JobStreamValue, JobValue, Key, Payload, StreamId};
use replication::NodeId;

use crate::chance::Chance;
use crate::model::JOB_TYPE;

/// The stream of a node in one of its lives.
pub fn stream(node: NodeId, life: u64) -> StreamId {
    StreamId { node: u32::try_from(node.0).expect("few nodes"), number: life }
}

/// What a stream may hold that its worker has not taken. The bytes are those of a few small jobs.
fn window(credit: u32) -> JobAmount {
    JobAmount { jobs: credit.into(), bytes: u64::from(credit) * 300 }
}

/// How much a stream may have taken in all when its worker has taken so much.
pub fn offer(taken: JobAmount, credit: u32) -> JobAmount {
    taken.plus(window(credit))
}

fn command(intent: JobStreamIntent, stream: StreamId, taken: JobAmount, credit: u32) -> Command {
    let value = JobStreamValue {
        stream,
        job_type: JOB_TYPE.into(),
        worker: "stream".into(),
        timeout: 3_000,
        tenant_ids: vec!["<default>".into()],
        granted: offer(taken, credit),
        used: taken,
        ..JobStreamValue::default()
    };
    Command::new(Key::NONE, Payload::JobStream(intent, Box::new(value)))
}

/// Registers the stream of a node's worker, which has taken so much in this life.
pub fn register(node: NodeId, life: u64, taken: JobAmount, credit: u32) -> Command {
    command(JobStreamIntent::Add, stream(node, life), taken, credit)
}

/// What a worker does with a job that was pushed to it: mostly it completes it, sometimes it forgets it. What it has taken
/// includes this one.
pub fn answer(push: &Push, taken: JobAmount, credit: u32, chance: &mut Chance) -> Vec<Command> {
    let mut commands = vec![command(JobStreamIntent::Grant, push.stream, taken, credit)];
    if chance.one_in(8) {
        // The grant before comes late, or once more.
        let before = taken.minus(JobAmount::of(&push.job));
        commands.push(command(JobStreamIntent::Grant, push.stream, before, credit));
    }
    let job = |intent, value| Command::new(push.key, Payload::Job(intent, Arc::new(value)));
    match chance.below(20) {
        0 => {}
        1 => commands.push(job(JobIntent::Fail, JobValue { retries: 2, ..JobValue::default() })),
        2 => commands.push(job(JobIntent::Yield, JobValue::default())),
        _ => commands.push(job(JobIntent::Complete, JobValue::default())),
    }
    commands
}

/// A job for a worker that is not there any more goes back.
pub fn yielded(push: &Push) -> Command {
    Command::new(push.key, Payload::Job(JobIntent::Yield, Arc::default()))
}
