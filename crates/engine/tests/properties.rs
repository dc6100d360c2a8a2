//! Random block-structured models under random drivers: whatever happens, replicas are equal, the records alone rebuild
//! the state, keys are unique, and every instance ends or waits for a reason.

mod support;

use std::collections::BTreeSet;

use bpmn::builder::ProcessBuilder;
use engine::{EngineOptions, Limits};
use proptest::prelude::*;
use protocol::*;
use support::Partition;

/// A piece of a process with one entry and one exit.
#[derive(Clone, Debug)]
enum Block {
    Task,
    Manual,
    Sequence(Vec<Block>),
    Exclusive(Vec<Block>),
    Parallel(Vec<Block>),
    SubProcess(Box<Block>),
}

fn block() -> impl Strategy<Value = Block> {
    let leaf = prop_oneof![3 => Just(Block::Task), 1 => Just(Block::Manual)];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            several.clone().prop_map(Block::Sequence),
            several.clone().prop_map(Block::Exclusive),
            several.prop_map(Block::Parallel),
            inner.prop_map(|block| Block::SubProcess(Box::new(block))),
        ]
    })
}

/// Adds blocks to a process, numbering their elements.
struct Writer {
    builder: ProcessBuilder,
    count: usize,
}

impl Writer {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}", self.count)
    }

    fn add(&mut self, change: impl FnOnce(ProcessBuilder) -> ProcessBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    fn write(&mut self, block: &Block) {
        match block {
            Block::Task => {
                let id = self.id("task");
                self.add(|builder| builder.service_task(&id, "work"));
            }
            Block::Manual => {
                let id = self.id("manual");
                self.add(|builder| builder.manual_task(&id));
            }
            Block::Sequence(blocks) => blocks.iter().for_each(|block| self.write(block)),
            Block::SubProcess(block) => {
                let (id, start, end) = (self.id("sub"), self.id("start"), self.id("end"));
                self.add(|builder| builder.sub_process(&id).start(&start));
                self.write(block);
                self.add(|builder| builder.end(&end).end_sub_process());
            }
            Block::Exclusive(blocks) => self.write_branches(blocks, false),
            Block::Parallel(blocks) => self.write_branches(blocks, true),
        }
    }

    fn write_branches(&mut self, blocks: &[Block], parallel: bool) {
        let (fork, join) = (self.id("fork"), self.id("join"));
        let gateway = |builder: ProcessBuilder, id: &str| {
            if parallel { builder.parallel_gateway(id) } else { builder.exclusive_gateway(id) }
        };
        self.add(|builder| gateway(builder, &fork));
        for (index, block) in blocks.iter().enumerate() {
            self.add(|builder| {
                let builder = builder.move_to(&fork);
                match (parallel, index) {
                    (true, _) => builder,
                    (false, 0) => builder.default_flow(),
                    (false, _) => builder.condition(&format!("=choice = {index}")),
                }
            });
            self.write(block);
            // The first branch draws the join, the others lead to it.
            self.add(|builder| if index == 0 { gateway(builder, &join) } else { builder.connect_to(&join) });
        }
        self.add(|builder| builder.move_to(&join));
    }
}

fn model(block: &Block) -> String {
    let mut writer = Writer { builder: ProcessBuilder::new("random").start("start"), count: 0 };
    writer.write(block);
    writer.builder.end("end").to_xml()
}

/// What somebody outside does next; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Action {
    Create(u8),
    Activate(u8),
    Stream(u8),
    Grant(u8),
    Complete(u8, u8),
    Fail(u8, i32, i64),
    ThrowError(u8),
    Retries(u8),
    Resolve(u8),
    Cancel(u8),
    SetVariable(u8, bool),
    Wait(u16),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => (0..4_u8).prop_map(Action::Create),
        3 => any::<u8>().prop_map(Action::Activate),
        1 => any::<u8>().prop_map(Action::Stream),
        1 => any::<u8>().prop_map(Action::Grant),
        8 => (any::<u8>(), 0..4_u8).prop_map(|(job, choice)| Action::Complete(job, choice)),
        2 => (any::<u8>(), 0..3, prop_oneof![Just(0_i64), Just(500)]).prop_map(|(job, retries, backoff)| Action::Fail(job, retries, backoff)),
        1 => any::<u8>().prop_map(Action::ThrowError),
        1 => any::<u8>().prop_map(Action::Retries),
        2 => any::<u8>().prop_map(Action::Resolve),
        1 => any::<u8>().prop_map(Action::Cancel),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(scope, local)| Action::SetVariable(scope, local)),
        2 => (0..60_000_u16).prop_map(Action::Wait),
    ]
}

/// The keys of everything that ever was; commands may well name what is gone.
#[derive(Default)]
struct Seen {
    jobs: Vec<Key>,
    incidents: Vec<Key>,
    elements: Vec<Key>,
}

impl Seen {
    fn of(partition: &Partition) -> Seen {
        let mut seen = Seen::default();
        for record in partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
            match &record.payload {
                Payload::Job(JobIntent::Created, _) => seen.jobs.push(record.key),
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
            let variables = format!("{{\"choice\":{choice}}}");
            partition.create("random", &variables, ProcessInstanceCreationIntent::Create);
        }
        Action::Activate(count) => {
            partition.activate("work", i32::from(*count % 5) + 1);
        }
        Action::Stream(number) => {
            partition.stream(u64::from(number % 3), "work", u32::from(number % 4), JobStreamIntent::Add);
        }
        Action::Grant(number) => {
            partition.stream(u64::from(number % 3), "work", u32::from(number % 4), JobStreamIntent::Grant);
        }
        Action::Complete(job, choice) => {
            let variables = format!("{{\"choice\":{choice},\"job\":{job}}}").as_str().into();
            partition.job(pick(&seen.jobs, *job), JobIntent::Complete, JobValue { variables, ..JobValue::default() });
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
    }
}

/// Completes whatever can be completed, until nothing is left; then the state must be as before the first instance.
fn drain(partition: &mut Partition) {
    for _ in 0..200 {
        let seen = Seen::of(partition);
        for incident in seen.incidents {
            for job in &seen.jobs {
                partition.job(*job, JobIntent::UpdateRetries, JobValue { retries: 1, ..JobValue::default() });
            }
            partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
        }
        partition.advance(600_000);
        let before = partition.records.len();
        for job in Seen::of(partition).jobs {
            partition.job(job, JobIntent::Complete, JobValue::default());
        }
        let events =
            partition.records[before..].iter().filter(|record| record.record_type == RecordType::Event).count();
        if events == 0 {
            return;
        }
    }
    panic!("the instances do not end");
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

fn run(block: &Block, actions: &[Action], steps_per_command_max: usize) {
    let limits = Limits { steps_per_command_max, ..Limits::default() };
    let options = EngineOptions { limits, ..support::options() };
    let mut partition = Partition::with_options(options);
    let output = partition.deploy("random.bpmn", model(block).as_bytes());
    assert!(output.replies[0].rejection.is_none(), "{:?}", output.replies[0].rejection);
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
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_any_model(block in block(), actions in prop::collection::vec(action(), 1..40)) {
        run(&block, &actions, Limits::default().steps_per_command_max);
    }

    /// With hardly any room per command, everything goes through the work queue, with the same outcome.
    #[test]
    fn work_goes_on_in_slices(block in block(), actions in prop::collection::vec(action(), 1..15)) {
        run(&block, &actions, 2);
    }
}
