//! Activated jobs belong to somebody: what did not reach its owner goes to others at once, and nothing else does.

use crate::support::{self, Partition};
use engine::{Engine, EngineOptions, Limits, Output, StreamTotals, give_back_poll, remove_lost_stream};
use protocol::*;

const LIVES: u64 = 1 << NUMBER_BITS;

fn partition_with(options: EngineOptions) -> Partition {
    let mut partition = Partition::with_options(options);
    let model = std::fs::read("tests/scenarios/models/one-task.bpmn").expect("the model is there");
    partition.deploy("one-task.bpmn", &model);
    partition
}

fn stream_value(node: u32, number: u64, jobs: u64) -> JobStreamValue {
    JobStreamValue {
        stream: StreamId { node, number },
        job_type: "work".into(),
        worker: "worker".into(),
        timeout: 60_000,
        tenant_ids: vec![support::TENANT.into()],
        granted: JobAmount { jobs, bytes: u64::MAX },
        ..JobStreamValue::default()
    }
}

fn submit(partition: &mut Partition, intent: JobStreamIntent, value: &JobStreamValue) -> Output {
    partition.submit(Key::NONE, Payload::JobStream(intent, Box::new(value.clone())))
}

/// The connection of a stream took the jobs up to a push, and has room for so many in all.
fn grant(partition: &mut Partition, stream: StreamId, delivered: u64, jobs: u64) -> Output {
    let granted = JobAmount { jobs, bytes: u64::MAX };
    let value = JobStreamValue { stream, delivered, granted, ..JobStreamValue::default() };
    submit(partition, JobStreamIntent::Grant, &value)
}

fn create(partition: &mut Partition, count: usize) -> Vec<(StreamId, u64, Key)> {
    let create = |_| pushes(&partition.create("one-task", "{}", ProcessInstanceCreationIntent::Create));
    (0..count).flat_map(create).collect()
}

fn pushes(output: &Output) -> Vec<(StreamId, u64, Key)> {
    output.pushes.iter().map(|push| (push.stream, push.number, push.key)).collect()
}

/// The command of a leader, and what was interrupted by it.
fn lead(partition: &mut Partition, command: Command) -> Output {
    let payload = command.payload;
    partition.submit(command.key, payload)
}

fn yielded(output: &Output) -> Vec<Key> {
    let is_yielded = |record: &&Record| matches!(record.payload, Payload::Job(JobIntent::Yielded, _));
    output.records.iter().filter(is_yielded).map(|record| record.key).collect()
}

fn refusal(output: &Output) -> Option<String> {
    output.replies[0].rejection.as_ref().map(|rejection| rejection.reason.to_string())
}

fn complete(partition: &mut Partition, key: Key) -> Option<String> {
    refusal(&partition.job(key, JobIntent::Complete, JobValue::default()))
}

/// How many entries a table has.
fn rows(engine: &Engine, table: &str) -> usize {
    let mut dump = Vec::new();
    engine.dump(&mut dump).expect("readable");
    let table = format!("{table} ");
    String::from_utf8_lossy(&dump).lines().filter(|line| line.starts_with(&table)).count()
}

#[test]
fn a_lost_stream_gives_back_what_was_not_delivered_and_others_get_it_at_once() {
    let mut partition = partition_with(support::options());
    let (lost, other) = (stream_value(1, 7, 4), stream_value(2, 7, 0));
    submit(&mut partition, JobStreamIntent::Add, &lost);
    let pushed = create(&mut partition, 5);
    let numbers: Vec<u64> = pushed.iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "the fifth waits for credit");
    submit(&mut partition, JobStreamIntent::Add, &other);
    grant(&mut partition, lost.stream, 2, 4);
    // The other one has room for two.
    grant(&mut partition, other.stream, 0, 2);
    let keys: Vec<Key> = pushed.iter().map(|(.., key)| *key).collect();
    let rest = partition.engine.pushed_after(lost.stream, 0).collect::<Vec<_>>();
    assert_eq!(rest, [(3, keys[2]), (4, keys[3])]);

    let output = lead(&mut partition, remove_lost_stream(lost.stream));
    assert_eq!(yielded(&output), keys[2..]);
    // One place was taken by the fifth job when the credit came.
    assert_eq!(pushes(&output), [(other.stream, 2, keys[2])], "oldest first");
    assert_eq!(partition.engine.job_stream(lost.stream), None);
    assert!(partition.engine.has_available_jobs(support::TENANT, "work"), "a poll finds the other one");

    // It comes twice.
    let again = lead(&mut partition, remove_lost_stream(lost.stream));
    assert!(refusal(&again).is_some_and(|reason| reason.contains("no such stream")), "{:?}", again.replies);
    assert_eq!((yielded(&again), pushes(&again)), (vec![], vec![]));

    // Workers of the lost gateway go on: with the delivered job, and with one that another one has now, as after a time-out.
    assert_eq!(complete(&mut partition, keys[0]), None);
    assert_eq!(complete(&mut partition, keys[2]), None);
    let late = complete(&mut partition, keys[2]);
    assert!(late.is_some_and(|reason| reason.contains("no such job")), "only one of them completes it");
    // What was delivered stays with its worker until its time is over.
    assert_eq!(pushes(&grant(&mut partition, other.stream, 0, 10)), [(other.stream, 3, keys[3])]);
    assert_eq!(pushes(&partition.advance(60_000)).iter().filter(|(.., key)| *key == keys[1]).count(), 1);
    partition.check();
}

#[test]
fn a_stream_that_is_closed_says_what_its_connection_took_last() {
    let mut partition = partition_with(support::options());
    let stream = stream_value(1, 7, 10);
    submit(&mut partition, JobStreamIntent::Add, &stream);
    let keys: Vec<Key> = create(&mut partition, 4).into_iter().map(|(.., key)| key).collect();
    let closed = JobStreamValue { stream: stream.stream, delivered: 3, ..JobStreamValue::default() };
    assert_eq!(yielded(&submit(&mut partition, JobStreamIntent::Remove, &closed)), [keys[3]]);
    assert_eq!(rows(&partition.engine, "pushed_jobs"), 0);
    // More than was pushed is never delivered.
    let next = JobStreamValue { stream: StreamId { node: 1, number: 8 }, ..stream };
    assert_eq!(pushes(&submit(&mut partition, JobStreamIntent::Add, &next)), [(next.stream, 1, keys[3])]);
    grant(&mut partition, next.stream, 100, 10);
    assert_eq!(partition.engine.job_stream(next.stream).map(|totals| totals.delivered), Some(1));
    let pushed = create(&mut partition, 1);
    assert_eq!(yielded(&lead(&mut partition, remove_lost_stream(next.stream))), [pushed[0].2]);
    partition.check();
}

#[test]
fn a_job_that_has_another_owner_by_now_is_not_taken_from_it() {
    let mut partition = partition_with(support::options());
    let (lost, other) = (stream_value(1, 7, 4), stream_value(2, 7, 0));
    submit(&mut partition, JobStreamIntent::Add, &lost);
    submit(&mut partition, JobStreamIntent::Add, &other);
    let keys: Vec<Key> = create(&mut partition, 4).into_iter().map(|(.., key)| key).collect();
    // The first one times out and goes to the other stream, the second is done, the third waits for its back-off.
    partition.job(keys[1], JobIntent::Complete, JobValue::default());
    partition.job(keys[2], JobIntent::Fail, JobValue { retries: 3, retry_backoff: 600_000, ..JobValue::default() });
    let longer = JobValue { timeout: 600_000, ..JobValue::default() };
    assert_eq!(refusal(&partition.job(keys[3], JobIntent::UpdateTimeout, longer)), None);
    let retries = JobValue { retries: 9, ..JobValue::default() };
    assert_eq!(refusal(&partition.job(keys[3], JobIntent::UpdateRetries, retries)), None);
    grant(&mut partition, other.stream, 0, 1);
    assert_eq!(pushes(&partition.advance(60_000)), [(other.stream, 1, keys[0])]);

    let output = lead(&mut partition, remove_lost_stream(lost.stream));
    assert_eq!(yielded(&output), [keys[3]], "updates leave a job with its owner");
    assert_eq!(rows(&partition.engine, "pushed_jobs"), 1, "the push to the other stream");
    // The same job twice to one stream: only the last push counts.
    grant(&mut partition, other.stream, 0, 10);
    partition.advance(60_000);
    let pushed: Vec<_> = partition.engine.pushed_after(other.stream, 0).collect();
    assert_eq!(pushed.iter().filter(|(_, key)| *key == keys[0]).count(), 2, "{pushed:?}");
    let missed =
        JobStreamValue { stream: other.stream, used: JobAmount { jobs: 1, bytes: 0 }, ..JobStreamValue::default() };
    assert_eq!(yielded(&submit(&mut partition, JobStreamIntent::Yield, &missed)), [], "push 1 is over");
    let output = lead(&mut partition, remove_lost_stream(other.stream));
    assert_eq!(yielded(&output).iter().filter(|key| **key == keys[0]).count(), 1);
    partition.check();
}

#[test]
fn pushes_that_a_gateway_missed_are_given_back_while_its_stream_goes_on() {
    let mut partition = partition_with(support::options());
    let stream = stream_value(1, 7, 4);
    submit(&mut partition, JobStreamIntent::Add, &stream);
    let keys: Vec<Key> = create(&mut partition, 4).into_iter().map(|(.., key)| key).collect();
    let missed = JobStreamValue {
        stream: stream.stream,
        delivered: 1,
        used: JobAmount { jobs: 3, bytes: 0 },
        ..JobStreamValue::default()
    };
    assert_eq!(yielded(&submit(&mut partition, JobStreamIntent::Yield, &missed)), keys[1..3]);
    let again = submit(&mut partition, JobStreamIntent::Yield, &missed);
    assert!(refusal(&again).is_some_and(|reason| reason.contains("after push 1, up to push 3")), "{:?}", again.replies);
    let left: Vec<_> = partition.engine.pushed_after(stream.stream, 0).collect();
    assert_eq!(left, [(1, keys[0]), (4, keys[3])]);
    let next = grant(&mut partition, stream.stream, 4, 6);
    assert_eq!(pushes(&next), [(stream.stream, 5, keys[1]), (stream.stream, 6, keys[2])]);
    partition.check();
}

#[test]
fn many_jobs_are_given_back_in_slices() {
    let limits = Limits { steps_per_command_max: 3, ..Limits::default() };
    let mut partition = partition_with(EngineOptions { limits: Some(limits), ..support::options() });
    let stream = stream_value(1, 7, 20);
    submit(&mut partition, JobStreamIntent::Add, &stream);
    let keys: Vec<Key> = create(&mut partition, 20).into_iter().map(|(.., key)| key).collect();
    // A whole slice of them is over.
    for key in &keys[3..8] {
        assert_eq!(complete(&mut partition, *key), None);
    }
    let request = Some(Request { node: 0, number: 1_000 });
    let first = partition.apply(vec![Command { request, ..remove_lost_stream(stream.stream) }]);
    assert_eq!(yielded(&first), keys[..3]);
    // What is not given back yet keeps its numbers, so nobody else may have them.
    let again = submit_once(&mut partition, JobStreamIntent::Add, &stream);
    assert!(refusal(&again).is_some_and(|reason| reason.contains("add it again later")), "{:?}", again.replies);
    partition.go_on();
    let polled = partition.activate("work", 100);
    let Payload::JobBatch(_, batch) = &polled.replies[0].payload else { panic!("{:?}", polled.replies) };
    assert_eq!(batch.job_keys, [&keys[..3], &keys[8..]].concat());
    assert_eq!(rows(&partition.engine, "pushed_jobs"), 0);
    assert_eq!(refusal(&submit(&mut partition, JobStreamIntent::Add, &stream)), None);
    partition.check();
}

/// Without what was interrupted before.
fn submit_once(partition: &mut Partition, intent: JobStreamIntent, value: &JobStreamValue) -> Output {
    let command = Command::new(Key::NONE, Payload::JobStream(intent, Box::new(value.clone())));
    partition.apply(vec![Command { request: Some(Request { node: 0, number: 1_001 }), ..command }])
}

#[test]
fn a_stream_that_is_added_again_keeps_the_larger_totals() {
    let mut partition = partition_with(support::options());
    let stream = stream_value(1, 7, 4);
    submit(&mut partition, JobStreamIntent::Add, &stream);
    create(&mut partition, 6);
    let before = partition.records.len();
    let same = submit(&mut partition, JobStreamIntent::Add, &stream);
    assert_eq!((refusal(&same), same.records.len()), (None, 0), "nothing to note");
    assert_eq!(partition.records.len(), before);
    let Payload::JobStream(JobStreamIntent::Added, known) = &same.replies[0].payload else { panic!("{same:?}") };
    assert_eq!((known.granted.jobs, known.used.jobs, known.delivered), (4, 4, 0), "it is told what is known");
    let more = JobStreamValue { delivered: 3, ..stream_value(1, 7, 5) };
    assert_eq!(pushes(&submit(&mut partition, JobStreamIntent::Add, &more)).len(), 1);
    let totals = partition.engine.job_stream(stream.stream).expect("it is registered");
    assert_eq!((totals.granted.jobs, totals.used.jobs, totals.delivered), (5, 5, 3));
    let other = JobStreamValue { worker: "other".into(), ..more };
    let refused = refusal(&submit(&mut partition, JobStreamIntent::Add, &other));
    assert!(refused.as_ref().is_some_and(|reason| reason.contains("wants other jobs")), "{refused:?}");
    partition.check();
}

#[test]
fn a_window_at_most_is_kept_of_a_stream() {
    let mut partition = partition_with(support::options());
    let stream = stream_value(1, 7, 8);
    submit(&mut partition, JobStreamIntent::Add, &stream);
    for round in 1..=10 {
        for (.., key) in create(&mut partition, 4) {
            complete(&mut partition, key);
        }
        grant(&mut partition, stream.stream, 4 * round, 4 * round + 8);
        assert_eq!(rows(&partition.engine, "pushed_jobs"), 0);
    }
    create(&mut partition, 20);
    assert_eq!(rows(&partition.engine, "pushed_jobs"), 8);
    partition.check();
}

/// Polls for jobs as a gateway of this node; returns the keys of the jobs.
fn poll(partition: &mut Partition, poll: Request, jobs_max: i32) -> Vec<Key> {
    let value = JobBatchValue {
        job_type: "work".into(),
        worker: "poll".into(),
        timeout: 60_000,
        max_jobs_to_activate: jobs_max,
        tenant_ids: vec![support::TENANT.into()],
        ..JobBatchValue::default()
    };
    let command = Command::new(Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)));
    let output = partition.apply(vec![Command { request: Some(poll), ..command }]);
    let Payload::JobBatch(_, batch) = &output.replies[0].payload else { panic!("{output:?}") };
    batch.job_keys.clone()
}

fn about_poll(partition: &mut Partition, intent: JobPollIntent, poll: Request, job_keys: &[Key]) -> Output {
    let value = JobPollValue { node: poll.node, number: poll.number, job_keys: job_keys.to_vec() };
    partition.submit(Key::NONE, Payload::JobPoll(intent, Box::new(value)))
}

#[test]
fn polls_whose_answers_are_not_delivered_give_their_jobs_back() {
    let mut partition = partition_with(support::options());
    create(&mut partition, 9);
    let polls = [1, 2, 3].map(|number| Request { node: 1, number: LIVES + number });
    let keys = polls.map(|request| poll(&mut partition, request, 3));
    // The client of the first went away after a part of the answer.
    let output = about_poll(&mut partition, JobPollIntent::Yield, polls[0], &keys[0][1..]);
    assert_eq!(yielded(&output), keys[0][1..]);
    // Somebody else has one of them when it is said again.
    let other = Request { node: 2, number: 5 };
    assert_eq!(poll(&mut partition, other, 1), keys[0][1..2]);
    let output = about_poll(&mut partition, JobPollIntent::Yield, polls[0], &keys[0][1..]);
    assert_eq!((yielded(&output), refusal(&output), output.records.len()), (vec![], None, 0));

    about_poll(&mut partition, JobPollIntent::Acknowledge, polls[0], &[]);
    assert_eq!(partition.engine.oldest_poll(1, 1), Some(polls[1]));
    let output = about_poll(&mut partition, JobPollIntent::Acknowledge, polls[0], &[]);
    assert_eq!((refusal(&output), output.records.len()), (None, 0), "nothing is new");
    assert_eq!(complete(&mut partition, keys[1][0]), None);

    // The node is gone. What it acknowledged, and what is done, is not given back.
    let lost: Vec<Request> = partition.engine.lost_polls(|node| (node == 2).then_some(0)).collect();
    assert_eq!(lost, polls[1..]);
    assert_eq!(partition.engine.lost_polls(|_| Some(1)).collect::<Vec<_>>(), [other], "of a life before");
    assert_eq!(yielded(&lead(&mut partition, give_back_poll(polls[1]))), keys[1][1..]);
    assert_eq!(yielded(&lead(&mut partition, give_back_poll(polls[2]))), keys[2]);
    let again = lead(&mut partition, give_back_poll(polls[2]));
    assert_eq!((refusal(&again), again.records.len()), (None, 0));
    assert_eq!(rows(&partition.engine, "polled_jobs"), 1, "the other node's");
    // The job that it delivered is completed by its worker, and one that was given back too, as long as nobody else did.
    assert_eq!((complete(&mut partition, keys[0][0]), complete(&mut partition, keys[2][0])), (None, None));
    partition.check();
}

#[test]
fn a_poll_is_given_back_in_slices_although_a_slice_is_over() {
    let limits = Limits { steps_per_command_max: 3, ..Limits::default() };
    let mut partition = partition_with(EngineOptions { limits: Some(limits), ..support::options() });
    create(&mut partition, 12);
    let request = Request { node: 1, number: LIVES + 1 };
    let keys = poll(&mut partition, request, 12);
    for key in &keys[..5] {
        assert_eq!(complete(&mut partition, *key), None);
    }
    lead(&mut partition, give_back_poll(request));
    partition.go_on();
    assert_eq!(rows(&partition.engine, "polled_jobs"), 0);
    assert_eq!(poll(&mut partition, Request { node: 2, number: LIVES + 1 }, 12), keys[5..]);
    // Of one that is over as a whole nothing is left either.
    let over = Request { node: 2, number: LIVES + 1 };
    for key in &keys[5..] {
        assert_eq!(complete(&mut partition, *key), None);
    }
    lead(&mut partition, give_back_poll(over));
    partition.go_on();
    assert_eq!(rows(&partition.engine, "polled_jobs"), 0);
    partition.check();
}

#[test]
fn a_node_acknowledges_nothing_of_its_earlier_lives() {
    let mut partition = partition_with(support::options());
    create(&mut partition, 2);
    let (before, now) = (Request { node: 1, number: LIVES + 9 }, Request { node: 1, number: 2 * LIVES + 1 });
    let lost = poll(&mut partition, before, 1);
    poll(&mut partition, now, 1);
    about_poll(&mut partition, JobPollIntent::Acknowledge, now, &[]);
    assert_eq!(partition.engine.oldest_poll(1, 2), None);
    assert_eq!(partition.engine.lost_polls(|_| Some(2)).collect::<Vec<_>>(), [before]);
    assert_eq!(yielded(&lead(&mut partition, give_back_poll(before))), lost);
    partition.check();
}

#[test]
fn of_polls_that_nobody_acknowledges_the_oldest_count_as_delivered() {
    let limits = Limits { polled_jobs_max: 8, ..Limits::default() };
    let mut partition = partition_with(EngineOptions { limits: Some(limits), ..support::options() });
    create(&mut partition, 40);
    for number in 1..=20 {
        assert_eq!(poll(&mut partition, Request { node: 1, number }, 2).len(), 2);
        let kept = rows(&partition.engine, "polled_jobs");
        assert!(kept <= 8, "{kept} jobs are kept");
    }
    let kept: Vec<u64> = partition.engine.lost_polls(|_| None).map(|poll| poll.number).collect();
    assert_eq!(kept, [17, 18, 19, 20], "a quarter is forgotten at once");
    partition.check();
}

#[test]
fn leaders_and_gateways_find_streams_by_node_and_life() {
    let mut partition = partition_with(support::options());
    let ids = [(1, LIVES + 1), (1, LIVES + 2), (1, 2 * LIVES + 1), (2, 7), (3, u64::MAX), (u32::MAX, u64::MAX)];
    for (node, number) in ids {
        submit(&mut partition, JobStreamIntent::Add, &stream_value(node, number, 1));
    }
    let engine = &partition.engine;
    let lost = |life: &dyn Fn(u32) -> Option<u64>| {
        engine.lost_streams(life).map(|stream| (stream.node, stream.number)).collect::<Vec<_>>()
    };
    assert_eq!(lost(&|_| None), ids);
    assert_eq!(lost(&|node| (node <= 2).then_some(2)), [ids[0], ids[1], ids[3], ids[4], ids[5]]);
    assert_eq!(lost(&|_| Some(0)), []);
    let of_one: Vec<StreamTotals> = engine.job_streams_of(1).collect();
    assert_eq!(of_one.iter().map(|totals| totals.stream.number).collect::<Vec<_>>(), [ids[0].1, ids[1].1, ids[2].1]);
    assert_eq!(engine.job_streams_of(4).count(), 0);
    partition.check();
}
