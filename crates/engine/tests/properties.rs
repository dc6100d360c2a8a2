//! Random block-structured models under random drivers: whatever happens, replicas are equal, the records alone rebuild
//! the state, keys are unique, and every instance ends or waits for a reason.

mod support;

#[path = "support/random_model.rs"]
mod random_model;

use std::collections::{BTreeMap, BTreeSet};

use engine::{EngineOptions, Limits};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use protocol::*;
use random_model::{Block, block, model};
use support::Partition;

/// What a client does next; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Action {
    Create(u8),
    Activate(u8),
    Stream(u8),
    Grant(u8),
    EndStream(u8),
    EndPoll(u8),
    Complete(u8, u8),
    Fail(u8, i32, i64),
    ThrowError(u8),
    Retries(u8),
    Resolve(u8),
    Cancel(u8),
    SetVariable(u8, bool),
    Wait(u16),
    Publish(u8, bool),
    Broadcast(bool),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => (0..4_u8).prop_map(Action::Create),
        3 => any::<u8>().prop_map(Action::Activate),
        1 => any::<u8>().prop_map(Action::Stream),
        1 => any::<u8>().prop_map(Action::Grant),
        1 => any::<u8>().prop_map(Action::EndStream),
        1 => any::<u8>().prop_map(Action::EndPoll),
        8 => (any::<u8>(), 0..4_u8).prop_map(|(job, choice)| Action::Complete(job, choice)),
        2 => (any::<u8>(), 0..3, prop_oneof![Just(0_i64), Just(500)]).prop_map(|(job, retries, backoff)| Action::Fail(job, retries, backoff)),
        1 => any::<u8>().prop_map(Action::ThrowError),
        1 => any::<u8>().prop_map(Action::Retries),
        2 => any::<u8>().prop_map(Action::Resolve),
        1 => any::<u8>().prop_map(Action::Cancel),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(scope, local)| Action::SetVariable(scope, local)),
        2 => (0..60_000_u16).prop_map(Action::Wait),
        2 => (0..3_u8, any::<bool>()).prop_map(|(key, is_buffered)| Action::Publish(key, is_buffered)),
        1 => any::<bool>().prop_map(Action::Broadcast),
    ]
}

/// The keys of everything that ever was; commands may name what is gone.
#[derive(Default)]
struct Seen {
    jobs: Vec<Key>,
    user_tasks: Vec<Key>,
    incidents: Vec<Key>,
    elements: Vec<Key>,
}

impl Seen {
    fn of(partition: &Partition) -> Seen {
        let mut seen = Seen::default();
        for record in partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
            match &record.payload {
                Payload::Job(JobIntent::Created, _) => seen.jobs.push(record.key),
                Payload::UserTask(UserTaskIntent::Creating, _) => seen.user_tasks.push(record.key),
                Payload::Incident(IncidentIntent::Created, _) => seen.incidents.push(record.key),
                Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, _) => seen.elements.push(record.key),
                _ => {}
            }
        }
        seen
    }
}

fn pick(keys: &[Key], number: u8) -> Key {
    // Mostly something recent, which is likely to live.
    keys.iter().rev().nth(usize::from(number) % keys.len().clamp(1, 12)).copied().unwrap_or(Key::new(PartitionId(1), 7))
}

fn act(partition: &mut Partition, action: &Action) {
    let seen = Seen::of(partition);
    match action {
        Action::Create(choice) => {
            let variables = format!("{{\"choice\":{choice},\"key\":\"k{}\",\"items\":[1,2,3]}}", choice % 3);
            partition.create("random", &variables, ProcessInstanceCreationIntent::Create);
        }
        Action::Activate(count) => {
            partition.activate("work", i32::from(*count % 5) + 1);
        }
        Action::Stream(number) => {
            // A few jobs, or the bytes of a few.
            let granted = JobAmount { jobs: u64::from(number % 4), bytes: u64::from(*number) * 8 };
            partition.stream_of(u64::from(number % 3), "work", granted, JobStreamIntent::Add);
        }
        Action::Grant(number) => {
            let granted = JobAmount { jobs: u64::from(number / 3), bytes: u64::from(*number) * 64 };
            partition.stream_of(u64::from(number % 3), "work", granted, JobStreamIntent::Grant);
        }
        Action::EndStream(number) => {
            let stream = StreamId { node: 0, number: u64::from(number % 3) };
            let Some(totals) = partition.engine.job_stream(stream) else { return };
            let jobs = totals.used.jobs.saturating_sub(u64::from(number / 3 % 4));
            // Some pushes of a stream that goes on, or what it says of the last ones when it ends.
            let (intent, value) = match number % 2 {
                0 => (
                    JobStreamIntent::Yield,
                    JobStreamValue { stream, used: totals.used, delivered: jobs, ..JobStreamValue::default() },
                ),
                _ => (JobStreamIntent::Remove, JobStreamValue { stream, delivered: jobs, ..JobStreamValue::default() }),
            };
            partition.submit(Key::NONE, Payload::JobStream(intent, Box::new(value)));
        }
        Action::EndPoll(number) => {
            let polls: Vec<Request> = partition.engine.lost_polls(|_| None).collect();
            let Some(poll) = polls.get(usize::from(*number) % polls.len().max(1)) else { return };
            let intents =
                [JobPollIntent::Yield, JobPollIntent::Yield, JobPollIntent::Yield, JobPollIntent::Acknowledge];
            let job_keys = if number % 5 == 0 { vec![pick(&seen.jobs, *number)] } else { Vec::new() };
            let value = JobPollValue { node: poll.node, number: poll.number, job_keys };
            let payload = Payload::JobPoll(intents[usize::from(*number / 5) % 4], Box::new(value));
            partition.submit(Key::NONE, payload);
        }
        Action::Complete(job, choice) => {
            let variables = format!("{{\"choice\":{choice},\"job\":{job}}}").as_str().into();
            if choice % 2 == 0 && !seen.user_tasks.is_empty() {
                let intents =
                    [UserTaskIntent::Complete, UserTaskIntent::Assign, UserTaskIntent::Claim, UserTaskIntent::Update];
                let value = UserTaskValue {
                    assignee: format!("a{}", job % 2).as_str().into(),
                    priority: 7,
                    changed_attributes: vec!["priority".into()],
                    variables,
                    ..UserTaskValue::default()
                };
                let intent = intents[usize::from(*job) % intents.len()];
                partition.submit(pick(&seen.user_tasks, *job), Payload::UserTask(intent, Box::new(value)));
                return;
            }
            let key = pick(&seen.jobs, *job);
            let value = match is_of_task_listener(partition, key) {
                true => JobValue { result: listener_result(job.wrapping_add(*choice)), ..JobValue::default() },
                false => JobValue { variables, ..JobValue::default() },
            };
            partition.job(key, JobIntent::Complete, value);
        }
        Action::Fail(job, retries, retry_backoff) => {
            let value = JobValue { retries: *retries, retry_backoff: *retry_backoff, ..JobValue::default() };
            partition.job(pick(&seen.jobs, *job), JobIntent::Fail, value);
        }
        Action::ThrowError(job) => {
            partition.job(
                pick(&seen.jobs, *job),
                JobIntent::ThrowError,
                JobValue { error_code: "E".into(), ..JobValue::default() },
            );
        }
        Action::Retries(job) => {
            partition.job(
                pick(&seen.jobs, *job),
                JobIntent::UpdateRetries,
                JobValue { retries: 2, ..JobValue::default() },
            );
        }
        Action::Resolve(incident) => {
            let key = pick(&seen.incidents, *incident);
            partition.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()));
        }
        Action::Cancel(element) => {
            let key = pick(&seen.elements, *element);
            partition.submit(key, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
        }
        Action::SetVariable(element, local) => {
            let value = VariableDocumentValue {
                scope_key: pick(&seen.elements, *element),
                update_semantics: if *local {
                    VariableDocumentUpdateSemantics::Local
                } else {
                    VariableDocumentUpdateSemantics::Propagate
                },
                variables: "{\"choice\":2}".into(),
                tenant_id: support::TENANT.into(),
            };
            partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)));
        }
        Action::Wait(milliseconds) => {
            partition.advance(i64::from(*milliseconds));
        }
        Action::Publish(key, is_buffered) => {
            publish(partition, &format!("k{key}"), if *is_buffered { 30_000 } else { 0 });
        }
        Action::Broadcast(is_thrown) => broadcast(partition, if *is_thrown { "thrown" } else { "signal" }),
    }
}

fn is_of_task_listener(partition: &Partition, key: Key) -> bool {
    let created = partition.records.iter().find(|record| record.key == key);
    created.is_some_and(|record| match &record.payload {
        Payload::Job(_, job) => job.job_kind == JobKind::TaskListener,
        _ => false,
    })
}

/// Nothing, a denial, or a correction.
fn listener_result(choice: u8) -> Option<Box<JobResult>> {
    let corrections = JobResultCorrections {
        assignee: "c".into(),
        priority: 9,
        corrected_attributes: vec!["assignee".into(), "priority".into()],
        ..JobResultCorrections::default()
    };
    let result = JobResult { result_type: JobResultType::UserTask, ..JobResult::default() };
    match choice % 4 {
        1 => Some(Box::new(JobResult { denied: true, denied_reason: "no".into(), ..result })),
        3 => Some(Box::new(JobResult { corrections: Some(Box::new(corrections)), ..result })),
        _ => None,
    }
}

fn publish(partition: &mut Partition, correlation_key: &str, time_to_live: i64) {
    let value = MessageValue {
        name: "message".into(),
        correlation_key: correlation_key.into(),
        time_to_live,
        variables: "{\"message\":1}".into(),
        tenant_id: support::TENANT.into(),
        ..MessageValue::default()
    };
    partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)));
}

fn broadcast(partition: &mut Partition, name: &str) {
    let value = SignalValue {
        signal_name: name.into(),
        variables: "{\"signal\":1}".into(),
        tenant_id: support::TENANT.into(),
        rest: None,
    };
    partition.submit(Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value)));
}

/// Completes whatever can be completed until nothing happens any more, and cancels the rest, such as an instance with an
/// error that nothing catches. After that the state must be as before the first instance.
fn drain(partition: &mut Partition) {
    if complete_all(partition) {
        check_that_all_that_lives_waits(partition);
    }
    let roots: Vec<Key> = partition
        .records
        .iter()
        .filter(|record| {
            matches!(&record.payload, Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, _))
        })
        .filter_map(|record| match &record.payload {
            Payload::ProcessInstanceCreation(_, value) => Some(value.process_instance_key),
            _ => None,
        })
        .collect();
    for root in roots {
        partition.submit(root, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    }
    // What ends waits for the listeners of its user tasks.
    complete_all(partition);
    // Messages that nothing waits for any more expire.
    partition.advance(600_000);
}

/// Returns whether nothing happens any more.
fn complete_all(partition: &mut Partition) -> bool {
    for round in 0..20 {
        let seen = Seen::of(partition);
        for incident in seen.incidents {
            for job in &seen.jobs {
                partition.job(*job, JobIntent::UpdateRetries, JobValue { retries: 1, ..JobValue::default() });
            }
            partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
        }
        let before = partition.records.len();
        partition.advance(600_000);
        // Each message or signal can make a non-interrupting event begin something new, so there are not many.
        if round < 2 {
            for key in ["k0", "k1", "k2"] {
                publish(partition, key, 0);
            }
            broadcast(partition, "signal");
            broadcast(partition, "thrown");
        }
        let seen = Seen::of(partition);
        for job in seen.jobs {
            partition.job(job, JobIntent::Complete, JobValue::default());
        }
        for task in seen.user_tasks {
            partition.submit(task, Payload::UserTask(UserTaskIntent::Complete, Box::default()));
        }
        let events = partition.records[before..].iter().filter(|record| is_progress(record)).count();
        if events == 0 && partition.engine.continuation().is_none() {
            return true;
        }
    }
    false
}

/// What still lives when nothing happens any more waits for something: a job, an incident, a timer, a message, a signal or the
/// end of what is inside of it; or it has a token at a parallel join for which another one went elsewhere.
fn check_that_all_that_lives_waits(partition: &Partition) {
    let mut living: BTreeMap<Key, &ProcessInstanceValue> = BTreeMap::new();
    let mut waits: BTreeMap<Key, Key> = BTreeMap::new();
    let mut wait = |key: Key, element_instance: Key, is_over: bool| match is_over {
        true => waits.remove(&key),
        false => waits.insert(key, element_instance),
    };
    for record in partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
        let key = record.key;
        match &record.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) => {
                living.insert(key, value);
            }
            Payload::ProcessInstance(
                ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated,
                _,
            ) => {
                living.remove(&key);
            }
            Payload::Job(intent, value) => {
                let is_over = matches!(intent, JobIntent::Completed | JobIntent::Canceled | JobIntent::ErrorThrown);
                wait(key, value.element_instance_key, is_over);
            }
            Payload::UserTask(intent, value) => {
                let is_over = matches!(intent, UserTaskIntent::Completed | UserTaskIntent::Canceled);
                wait(key, value.element_instance_key, is_over);
            }
            Payload::Incident(intent, value) => {
                wait(key, value.element_instance_key, *intent == IncidentIntent::Resolved);
            }
            Payload::Timer(intent, value) => {
                wait(key, value.element_instance_key, *intent != TimerIntent::Created);
            }
            Payload::ProcessMessageSubscription(intent, value) => {
                use ProcessMessageSubscriptionIntent::{Correlated, Deleted, Deleting};
                let is_over = matches!(intent, Deleting | Deleted) || *intent == Correlated && value.interrupting;
                wait(key, value.element_instance_key, is_over);
            }
            Payload::SignalSubscription(intent, value) => {
                wait(key, value.catch_event_instance_key, *intent == SignalSubscriptionIntent::Deleted);
            }
            _ => {}
        }
    }
    let enclosing = living.values().map(|value| match value.flow_scope_key.is_some() {
        true => value.flow_scope_key,
        false => value.parent_element_instance_key,
    });
    let holding: BTreeSet<Key> = enclosing.chain(waits.into_values()).collect();
    let mut dump = Vec::new();
    partition.engine.dump(&mut dump).expect("readable");
    let dump = String::from_utf8_lossy(&dump);
    let has_token_at_join = |key: &Key| {
        let mut tokens = dump.lines().filter(|line| line.starts_with("waiting_tokens"));
        tokens.any(|line| line.contains(&key.raw().to_string()) && line.contains(random_model::PARALLEL_JOIN))
    };
    for (key, value) in &living {
        let waits = holding.contains(key) || has_token_at_join(key);
        assert!(waits, "'{}' waits for nothing and does not end", value.element_id);
    }
}

/// Whether an instance went on; the publishing and expiry of a message alone is none, and no signal is.
fn is_progress(record: &Record) -> bool {
    record.record_type == RecordType::Event
        && !matches!(record.payload.value_type(), ValueType::Message | ValueType::Signal)
}

fn check_accounting(partition: &Partition) {
    let (mut created, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut keys = BTreeSet::new();
    for record in partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
        match &record.payload {
            Payload::ProcessInstance(intent, _) => match intent {
                ProcessInstanceIntent::ElementActivating => {
                    assert!(created.insert(record.key), "an element instance is activated once");
                    assert!(keys.insert(record.key), "keys are unique");
                }
                ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                    assert!(ended.insert(record.key), "an element instance ends once");
                }
                _ => {}
            },
            Payload::Job(JobIntent::Created, _) | Payload::Incident(IncidentIntent::Created, _) => {
                assert!(keys.insert(record.key), "keys are unique");
            }
            Payload::Error(_, error) => panic!("an instance was banned: {}", error.exception_message),
            _ => {}
        }
    }
    assert_eq!(created, ended, "every element instance ends");
}

/// Ended instances leave nothing behind.
fn check_nothing_is_left(partition: &Partition) {
    const STAYS: &[&str] = &[
        "Counters",
        "processes",
        "latest_processes",
        "process_versions",
        "processes_by_deployment",
        "job_streams",
        "job_streams_by_type",
        "served_streams",
        "pushed_jobs",
        "polled_jobs",
    ];
    let mut dump = Vec::new();
    partition.engine.dump(&mut dump).expect("readable");
    let dump = String::from_utf8_lossy(&dump);
    let left: Vec<_> = dump
        .lines()
        .filter(|line| !STAYS.contains(&line.split(' ').next().unwrap_or("")))
        .map(|line| &line[..line.len().min(120)])
        .collect();
    assert!(left.is_empty(), "ended instances leave nothing: {left:#?}");
}

fn run(block: &Block, actions: &[Action], steps_per_command_max: usize) -> Partition {
    let limits = Limits { steps_per_command_max, ..Limits::default() };
    let options = EngineOptions { limits: Some(limits), ..support::options() };
    let mut partition = Partition::with_options(options);
    for (name, content) in [("called.bpmn", random_model::called()), ("random.bpmn", model(block))] {
        let output = partition.deploy(name, content.as_bytes());
        assert!(output.replies[0].rejection.is_none(), "{:?}", output.replies[0].rejection);
    }
    for action in actions {
        act(&mut partition, action);
    }
    partition.check();
    drain(&mut partition);
    partition.check();
    check_accounting(&partition);
    assert_eq!(partition.engine.statistics().incidents, 0, "nothing is left to resolve");
    assert_eq!(partition.engine.statistics().work_entries, 0, "no work is left");
    check_nothing_is_left(&partition);
    partition
}

/// The random histories are worth something only if they get everywhere.
#[test]
fn random_histories_reach_every_element() {
    let mut runner = TestRunner::deterministic();
    let strategy = (block(true), prop::collection::vec(action(), 1..40));
    let mut seen = BTreeSet::new();
    for _ in 0..1_000 {
        let (block, actions) = strategy.new_tree(&mut runner).expect("a case").current();
        let partition = run(&block, &actions, Limits::default().steps_per_command_max);
        for record in partition.records {
            if let Payload::ProcessInstance(intent, value) = &record.payload {
                seen.insert(format!("{} {}", value.bpmn_element_type.name(), intent.name()));
            } else {
                seen.insert(format!("{} {}", record.payload.value_type().name(), record.payload.intent_name()));
            }
        }
    }
    let expected = [
        "BOUNDARY_EVENT ELEMENT_COMPLETED",
        "CALL_ACTIVITY ELEMENT_COMPLETED",
        "CALL_ACTIVITY ELEMENT_TERMINATED",
        "EVENT_BASED_GATEWAY ELEMENT_COMPLETED",
        "EVENT_SUB_PROCESS ELEMENT_COMPLETED",
        "EVENT_SUB_PROCESS ELEMENT_TERMINATED",
        "INCLUSIVE_GATEWAY ELEMENT_COMPLETED",
        "INTERMEDIATE_CATCH_EVENT ELEMENT_COMPLETED",
        "INTERMEDIATE_THROW_EVENT ELEMENT_COMPLETED",
        "MULTI_INSTANCE_BODY ELEMENT_COMPLETED",
        "MULTI_INSTANCE_BODY ELEMENT_TERMINATED",
        "PROCESS ELEMENT_TERMINATED",
        "RECEIVE_TASK ELEMENT_COMPLETED",
        "SUB_PROCESS ELEMENT_TERMINATED",
        "USER_TASK ASSIGNED",
        "USER_TASK ASSIGNMENT_DENIED",
        "USER_TASK CANCELED",
        "USER_TASK COMPLETED",
        "USER_TASK CORRECTED",
        "USER_TASK ELEMENT_TERMINATED",
        "USER_TASK UPDATED",
        "MESSAGE EXPIRED",
        "MESSAGE_SUBSCRIPTION CORRELATED",
        "MESSAGE_SUBSCRIPTION DELETED",
        "PROCESS_MESSAGE_SUBSCRIPTION CORRELATED",
        "PROCESS_MESSAGE_SUBSCRIPTION DELETED",
        "ESCALATION ESCALATED",
        "ESCALATION NOT_ESCALATED",
        "INCIDENT RESOLVED",
        "TIMER CANCELED",
        "TIMER TRIGGERED",
    ];
    let missing: Vec<_> = expected.into_iter().filter(|expected| !seen.contains(*expected)).collect();
    assert!(missing.is_empty(), "no history has any of {missing:?}");
}

/// `PROPTEST_CASES` runs more than the usual ones.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_any_model(block in block(true), actions in prop::collection::vec(action(), 1..40)) {
        run(&block, &actions, Limits::default().steps_per_command_max);
    }

    /// With hardly any room per command, everything goes through the work queue, with the same outcome.
    #[test]
    fn work_goes_on_in_slices(block in block(true), actions in prop::collection::vec(action(), 1..15)) {
        run(&block, &actions, 2);
    }
}
