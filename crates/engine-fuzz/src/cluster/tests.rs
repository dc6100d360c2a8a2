//! Whether what must not be is seen.

use engine::{Limits, Output, Spent};
use protocol::*;

use super::{Broken, Cluster, PEAK_BYTES_MAX, RECORD_BYTES_MAX, RECORDS_MAX, TIMES_MAX, check};
use crate::measure::Cost;
use crate::memory::{Memory, measure};

fn cost() -> Cost {
    Cost {
        step: 0,
        name: "JOB COMPLETE".to_owned(),
        processor_nanoseconds: 0,
        memory: Memory::default(),
        spent: Spent::default(),
        records: 0,
        refusal: None,
        is_refused_at_once: false,
    }
}

/// What is wrong with a command of this cost.
fn wrong(cost: &Cost) -> Option<String> {
    check(cost, &Output::default(), &Limits::default()).err().map(|Broken(reason)| reason)
}

#[test]
fn each_bound_is_kept_by_its_value_and_broken_by_one_more() {
    let limits = Limits::default();
    type Set = fn(&mut Cost, u64);
    let bounds: [(&str, u64, Set); 7] = [
        ("bytes of memory", PEAK_BYTES_MAX, |cost, value| cost.memory.peak_bytes = value),
        ("allocations", TIMES_MAX, |cost, value| cost.memory.times = value),
        ("records", RECORDS_MAX as u64, |cost, value| cost.records = value as usize),
        ("bytes of records", RECORD_BYTES_MAX, |cost, value| cost.spent.record_bytes = value),
        ("steps of expressions", limits.evaluation_steps_per_command_max, |cost, value| {
            cost.spent.evaluation_steps = value;
        }),
        ("bytes read", limits.evaluation_bytes_read_per_command_max as u64, |cost, value| {
            cost.spent.evaluation_bytes_read = value;
        }),
        ("bytes built", limits.evaluation_bytes_built_per_command_max as u64, |cost, value| {
            cost.spent.evaluation_bytes_built = value;
        }),
    ];
    for (name, max, set) in bounds {
        let mut cost = cost();
        set(&mut cost, max);
        assert_eq!(wrong(&cost), None, "{name}");
        set(&mut cost, max + 1);
        assert_eq!(wrong(&cost), Some(format!("JOB COMPLETE: more {name} than {max}: {}", max + 1)));
    }
}

/// What is wrong with a command that leaves this record.
fn wrong_record(record_type: RecordType, payload: Payload) -> Option<String> {
    let record = Record { record_type, ..Record::event(1, 0, Key::NONE, payload) };
    let mut output = Output::default();
    output.records.push(record);
    check(&cost(), &output, &Limits::default()).err().map(|Broken(reason)| reason)
}

#[test]
fn bans_and_keys_that_no_model_can_be_blamed_for_are_seen() {
    let ban = |reason: &str| {
        let error = ErrorValue {
            exception_message: reason.into(),
            stacktrace: Text::default(),
            error_event_position: 1,
            process_instance_key: Key::NONE,
        };
        wrong_record(RecordType::Event, Payload::Error(ErrorIntent::Created, Box::new(error)))
    };
    assert!(ban("Expected process 'p' version 1 to have an element 'a', but it has none.").is_some());
    assert_eq!(ban("Expected process instance '1' to wait for something or to end some time, but"), None);
    let refused = |reason: &str| {
        let rejection = Rejection::invalid_argument(reason.to_owned());
        wrong_record(RecordType::Rejection(rejection), Payload::Job(JobIntent::Complete, Default::default()))
    };
    let mut long = Cluster::new(1, 1_000);
    let value = JobStreamValue { job_type: "t".repeat(600).into(), ..JobStreamValue::default() };
    let payload = Payload::JobStream(JobStreamIntent::Add, Box::new(value));
    long.submit(PartitionId(1), Key::NONE, payload)
        .expect("a name that is too long is refused with a reason of its own");
    assert!(
        refused("a key of table jobs is 1923 bytes long, and at most 1900 are allowed; use a shorter name").is_some()
    );
    assert_eq!(refused("Expected to complete job with key '1', but no such job was found"), None);
}

#[test]
fn memory_is_counted_while_it_is_held_and_when_it_is_moved() {
    let (_, memory) = measure(|| {
        let first = vec![0_u8; 1 << 20];
        drop(std::hint::black_box(first));
        let mut second: Vec<u8> = Vec::with_capacity(1 << 20);
        second.extend(std::iter::repeat_n(1, (1 << 20) + 1));
        std::hint::black_box(second).len()
    });
    // The second one is there twice while it grows, and the first is gone by then.
    assert!((3 << 20..4 << 20).contains(&memory.peak_bytes), "{memory:?}");
    assert!(memory.taken_bytes >= 4 << 20 && memory.times >= 3, "{memory:?}");
}
