//! Credit of job streams, in jobs and in bytes.

use crate::support::{self, Partition};
use engine::Output;
use protocol::*;

/// A partition with a stream, and this many jobs with about this many bytes of variables behind it.
fn partition(granted: JobAmount, jobs: usize, variable_bytes: usize) -> (Partition, u64) {
    let mut partition = Partition::new();
    let model = std::fs::read("tests/scenarios/models/one-task.bpmn").expect("the model is there");
    partition.deploy("one-task.bpmn", &model);
    partition.stream_of(1, "work", granted, JobStreamIntent::Add);
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(variable_bytes));
    let create = |partition: &mut Partition| {
        pushed(&partition.create("one-task", &variables, ProcessInstanceCreationIntent::Create))
    };
    let pushed = (0..jobs).map(|_| create(&mut partition).bytes).sum();
    (partition, pushed)
}

fn pushed(output: &Output) -> JobAmount {
    output.pushes.iter().map(|push| JobAmount::of(&push.job)).fold(JobAmount::default(), JobAmount::plus)
}

#[test]
fn bytes_of_large_jobs_use_up_a_stream_before_their_number_does() {
    let granted = JobAmount { jobs: 128, bytes: 4 << 20 };
    let (mut partition, bytes) = partition(granted, 20, 1 << 20);
    // The last one goes as long as there is a byte left.
    assert!((4 << 20..6 << 20).contains(&bytes), "{bytes} bytes are under way");
    let more = JobAmount { jobs: 256, bytes: 8 << 20 };
    let next = pushed(&partition.stream_of(1, "work", more, JobStreamIntent::Grant));
    assert!((8 << 20..10 << 20).contains(&(bytes + next.bytes)), "{next:?}");
    partition.check();
}

#[test]
fn a_job_of_any_size_goes_to_a_stream_with_a_byte_of_credit() {
    let (mut partition, bytes) = partition(JobAmount { jobs: 2, bytes: 1 }, 2, 1 << 20);
    assert!((1 << 20..2 << 20).contains(&bytes), "one job: {bytes} bytes");
    let enough = JobAmount { jobs: 2, bytes: bytes + 1 };
    assert_eq!(pushed(&partition.stream_of(1, "work", enough, JobStreamIntent::Grant)).jobs, 1);
}

#[test]
fn jobs_that_go_together_fit_the_credit_with_the_name_of_their_worker() {
    let (_, bytes) = partition(JobAmount { jobs: 3, bytes: u64::MAX }, 3, 10);
    let (mut partition, _) = partition(JobAmount::default(), 3, 10);
    let short_by_one = JobAmount { jobs: 3, bytes: bytes - 1 };
    let output = partition.stream_of(1, "work", short_by_one, JobStreamIntent::Grant);
    let together = output.records.iter().filter_map(|record| match &record.payload {
        Payload::JobBatch(_, batch) => Some(batch.jobs.len()),
        _ => None,
    });
    assert_eq!(together.collect::<Vec<_>>(), [2, 1], "the last one goes as long as there is a byte left");
}

#[test]
fn grants_that_are_lost_late_or_repeated_change_nothing() {
    let granted = |jobs| JobAmount { jobs, bytes: u64::MAX };
    let (mut partition, _) = partition(granted(2), 12, 10);
    let mut grant = |jobs| pushed(&partition.stream_of(1, "work", granted(jobs), JobStreamIntent::Grant)).jobs;
    assert_eq!(grant(4), 2);
    assert_eq!(grant(4), 0, "it came twice");
    assert_eq!(grant(3), 0, "it came late");
    // The one to 6 was lost.
    assert_eq!(grant(8), 4);
    assert_eq!(grant(0), 0);
    partition.check();
}

#[test]
fn a_stream_that_is_registered_again_keeps_its_totals() {
    let granted = JobAmount { jobs: 5, bytes: u64::MAX };
    let (mut partition, _) = partition(granted, 8, 10);
    partition.stream_of(1, "work", JobAmount::default(), JobStreamIntent::Remove);
    let value = JobStreamValue {
        stream: StreamId { node: 0, number: 1 },
        job_type: "work".into(),
        worker: "worker".into(),
        timeout: 60_000,
        tenant_ids: vec![support::TENANT.into()],
        granted: JobAmount { jobs: 7, bytes: u64::MAX },
        used: JobAmount { jobs: 5, bytes: 1_000 },
        ..JobStreamValue::default()
    };
    let added = partition.submit(Key::NONE, Payload::JobStream(JobStreamIntent::Add, Box::new(value)));
    assert_eq!(pushed(&added).jobs, 2);
    // What was granted before the change of leader, and arrives after it.
    assert_eq!(
        pushed(&partition.stream_of(1, "work", JobAmount { jobs: 7, bytes: 9 }, JobStreamIntent::Grant)).jobs,
        0
    );
}

/// No job can have such a type, so the stream is not missed.
#[test]
fn a_stream_for_a_type_that_is_too_long_is_refused_with_the_limit() {
    let mut partition = Partition::new();
    for bytes in [513, 2_000] {
        let output = partition.stream(1, &"t".repeat(bytes), 1, JobStreamIntent::Add);
        let rejection = output.replies[0].rejection.as_ref().expect("a refusal");
        let expected = format!("at most 512 bytes, but it has {bytes}");
        assert!(rejection.reason.contains(&expected), "{}", rejection.reason);
        assert_eq!(partition.engine.statistics().job_streams, 0);
    }
    assert_eq!(partition.stream(1, &"t".repeat(512), 1, JobStreamIntent::Add).replies[0].rejection, None);
}
