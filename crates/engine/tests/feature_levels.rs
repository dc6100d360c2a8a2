//! Each feature level leads to the records that it always led to, byte by byte: `tests/levels` keeps, for each level, a log and
//! the records that came of it when the level was new. The test level stands for the next one.

mod edges;
mod ownership;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::{self, Partition, Refusing, TENANT};
use engine::{Engine, EngineOptions, Fault, FeatureLevel, Limits, Output};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

fn file(level: FeatureLevel, what: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/levels");
    let name = if level == FeatureLevel::TEST { "test".to_owned() } else { level.to_string() };
    directory.join(format!("{name}.{what}"))
}

fn at(first_level: FeatureLevel) -> EngineOptions {
    EngineOptions { first_level, newest_level: FeatureLevel::TEST, ..support::options() }
}

/// Pieces with their lengths before them.
fn join(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut joined = Vec::new();
    for piece in pieces {
        joined.extend_from_slice(&u32::try_from(piece.len()).expect("small").to_le_bytes());
        joined.extend_from_slice(&piece);
    }
    joined
}

fn split(mut joined: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while let Some((length, rest)) = joined.split_first_chunk::<4>() {
        let (piece, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        pieces.push(piece);
        joined = rest;
    }
    assert!(joined.is_empty(), "the file is whole");
    pieces
}

fn settings(bytes: u64) -> Payload {
    Payload::Settings(
        SettingsIntent::Change,
        SettingsValue { root_variable_bytes_max: bytes, ..SettingsValue::default() },
    )
}

fn raise(level: u32) -> Payload {
    Payload::FeatureLevel(FeatureLevelIntent::Raise, FeatureLevelValue { level })
}

fn bootstrap() -> Payload {
    let value = ClusterValue {
        cluster_id: "c1".into(),
        active_partitions: [1, 2].map(PartitionId).into(),
        correlation_partition_count: 2,
    };
    Payload::Cluster(ClusterIntent::Bootstrap, Box::new(value))
}

fn correlation() -> Payload {
    let value = MessageCorrelationValue {
        name: "nobody".into(),
        correlation_key: "k".into(),
        variables: "{}".into(),
        tenant_id: TENANT.into(),
        ..MessageCorrelationValue::default()
    };
    Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, Box::new(value))
}

/// Something of everything whose results a change of the engine could touch.
fn history(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at(level));
    let order = ProcessBuilder::new("order")
        .start("start")
        .script_task(
            "numbers",
            "= {power: 1.7 ** 0.3, root: sqrt(2), exponential: exp(1.5), logarithm: log(10), part: 1 / 3}",
            "numbers",
        )
        .script_task(
            "times",
            "= {zone: string(date and time(\"2026-07-01T12:00:00@Europe/Berlin\")), sum: date(\"2024-02-29\") + duration(\"P1Y\")}",
            "times",
        )
        .parallel_gateway("fork")
        .service_task("ship", "ship")
        .retries("2")
        .multi_instance("= [1, 2]", "item")
        .parallel_gateway("join")
        .end("end")
        .move_to("fork")
        .receive_task("paid", "payment", "= id")
        .boundary("late", "paid", Event::Duration("PT1H"))
        .end("too-late")
        .move_to("paid")
        .connect_to("join");
    partition.deploy("order.bpmn", order.to_xml().as_bytes());
    let choice = ProcessBuilder::new("choice")
        .start("start")
        .exclusive_gateway("which")
        .condition("= amount > 10")
        .call_activity("call", "order")
        .end("end")
        .move_to("which")
        .condition("= amount < 5")
        .end("small");
    partition.deploy("choice.bpmn", choice.to_xml().as_bytes());
    partition.create("choice", "{\"amount\":12,\"id\":\"a\"}", ProcessInstanceCreationIntent::Create);
    partition.create("choice", "{\"amount\":7}", ProcessInstanceCreationIntent::Create);
    partition.create("order", "{\"id\":\"b\"}", ProcessInstanceCreationIntent::CreateWithAwaitingResult);
    let message = MessageValue {
        name: "payment".into(),
        correlation_key: "a".into(),
        time_to_live: 60_000,
        variables: "{\"paid\":true}".into(),
        tenant_id: TENANT.into(),
        ..MessageValue::default()
    };
    partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(message)));
    partition.stream(1, "ship", 2, JobStreamIntent::Add);
    partition.activate("ship", 5);
    for job in partition.jobs.values().copied().collect::<Vec<_>>() {
        let value = JobValue { retries: 1, error_message: "try again".into(), ..JobValue::default() };
        partition.job(job, JobIntent::Fail, value);
        partition.job(
            job,
            JobIntent::Complete,
            JobValue { variables: "{\"shipped\":1.50}".into(), ..JobValue::default() },
        );
    }
    partition.submit(Key::NONE, settings(2 << 20));
    partition.create("choice", "{\"amount\":1}", ProcessInstanceCreationIntent::Create);
    partition.advance(70_000);
    partition.advance(3_700_000);
    partition.submit(partition.instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    // What is deployed and published from the bootstrap on concerns another partition too.
    partition.submit(Key::NONE, correlation());
    partition.submit(Key::NONE, bootstrap());
    partition.submit(Key::NONE, bootstrap());
    partition.deploy("late.bpmn", ProcessBuilder::new("late").start("start").end("end").to_xml().as_bytes());
    partition.create("order", "{\"id\":\"a\"}", ProcessInstanceCreationIntent::Create);
    partition.create("order", "{\"id\":\"b\"}", ProcessInstanceCreationIntent::Create);
    user_tasks_and_signals(&mut partition);
    global_listeners(&mut partition);
    migration(&mut partition);
    owners(&mut partition);
    partition.deploy("long.bpmn", long_expression().as_bytes());
    partition.create("long", "{}", ProcessInstanceCreationIntent::Create);
    partition.check();
    partition
}

/// What does not reach its stream or poll is given back.
fn owners(partition: &mut Partition) {
    partition.stream(3, "ship", 3, JobStreamIntent::Add);
    partition.create("order", "{\"id\":\"c\"}", ProcessInstanceCreationIntent::Create);
    let stream = StreamId { node: 0, number: 3 };
    for (intent, delivered) in [(JobStreamIntent::Grant, 1), (JobStreamIntent::Yield, 1), (JobStreamIntent::Remove, 2)]
    {
        let used = JobAmount { jobs: 2, bytes: 0 };
        let value = JobStreamValue { stream, delivered, used, ..JobStreamValue::default() };
        partition.submit(Key::NONE, Payload::JobStream(intent, Box::new(value)));
    }
    partition.activate("ship", 1);
    partition.activate("ship", 1);
    let polls: Vec<Request> = partition.engine.lost_polls(|_| None).collect();
    for (poll, intent) in polls.iter().rev().zip([JobPollIntent::Yield, JobPollIntent::Acknowledge]) {
        let value = JobPollValue { node: poll.node, number: poll.number, job_keys: Vec::new() };
        partition.submit(Key::NONE, Payload::JobPoll(intent, Box::new(value)));
    }
    for kind in [ValueType::JobStream, ValueType::JobPoll] {
        let is_yielded =
            |record: &Record| record.payload.value_type() == kind && record.payload.intent_name() == "YIELDED";
        assert!(partition.records.iter().any(is_yielded), "{kind:?}");
    }
}

/// With so few steps for each command that an instance is banned soon, and ends in many commands.
fn at_with_few_steps(first_level: FeatureLevel) -> EngineOptions {
    let limits = Limits { steps_per_command_max: 3, continuations_max: 40, ..Limits::default() };
    EngineOptions { limits: Some(limits), ..at(first_level) }
}

/// A banned instance is cancelled, and once more while it ends.
fn history_of_a_ban(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at_with_few_steps(level));
    let builder = ProcessBuilder::new("banned").start("start").parallel_gateway("fork").sub_process("sub").start("in");
    let builder = builder.service_task("task", "work").multi_instance("= for item in 1..20 return item", "item");
    let builder = builder.end("out").end_sub_process().end("end").move_to("fork");
    let builder = builder.exclusive_gateway("again").exclusive_gateway("and-again").connect_to("again");
    partition.deploy("banned.bpmn", builder.to_xml().as_bytes());
    partition.create("banned", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.instance;
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    partition.apply(vec![Command::new(instance, cancel.clone())]);
    partition.submit(instance, cancel);
    partition.check();
    partition
}

/// Called instances are banned while they end, for a part of the end and for a listener.
fn history_of_called_instances(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at_with_few_steps(level));
    let many = ProcessBuilder::new("many").start("start").service_task("task", "work");
    let many = many.multi_instance("= for item in 1..20 return item", "item").end("end");
    let asked =
        ProcessBuilder::new("asked").start("start").user_task("ask").task_listener("canceling", "listen").end("end");
    for (process, id) in [(many, "many"), (asked, "asked")] {
        partition.deploy("called.bpmn", process.to_xml().as_bytes());
        let root = ProcessBuilder::new("root").start("start").call_activity("call", id).end("end");
        partition.deploy("root.bpmn", root.to_xml().as_bytes());
        partition.create("root", "{}", ProcessInstanceCreationIntent::Create);
        let root = partition.elements["root"];
        let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
        partition.apply(vec![Command::new(root, cancel)]);
        match id {
            "many" => {
                // Until its end has begun.
                for _ in 0..3 {
                    let command = partition.engine.continuation().expect("it has a long end");
                    partition.apply(vec![command]);
                }
                let command = partition.engine.continuation().expect("it has a long end");
                partition.refuse(vec![command]);
            }
            _ => {
                partition.go_on();
                let complete = Payload::Job(JobIntent::Complete, Default::default());
                let listener = partition.jobs["ask"];
                partition.refuse(vec![Command::new(listener, complete)]);
            }
        }
        partition.go_on();
    }
    partition.check();
    partition
}

/// What the other histories leave out: what is undone, modified, evaluated for clients, resolved, and at last forgotten.
fn history_of_more(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at(level));
    let builder = ProcessBuilder::new("trip").start("start").service_task("book", "book");
    let builder = builder.compensation("undo", "book", "handler", "unbook").exclusive_gateway("which");
    let builder = builder.condition("= refuses").compensation_throw("throw").end("undone").move_to("which");
    let builder = builder.condition("= not(refuses)").service_task("travel", "travel").end("end");
    partition.deploy("trip.bpmn", builder.to_xml().as_bytes());
    partition.create("trip", "{}", ProcessInstanceCreationIntent::Create);
    let (instance, book) = (partition.instance, partition.jobs["book"]);
    partition.job(book, JobIntent::Complete, JobValue::default());
    let refuses = VariableDocumentValue {
        scope_key: instance,
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: "{\"refuses\":true}".into(),
        tenant_id: TENANT.into(),
    };
    partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(refuses)));
    let incident = partition.incidents["which"];
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    let handler = partition.jobs["handler"];
    partition.job(handler, JobIntent::Complete, JobValue::default());
    partition.create("trip", "{\"refuses\":false}", ProcessInstanceCreationIntent::Create);
    let (instance, element) = (partition.instance, partition.elements["book"]);
    let value = ProcessInstanceModificationValue {
        process_instance_key: instance,
        activate_instructions: vec![ModificationActivateInstruction {
            element_id: "travel".into(),
            ..ModificationActivateInstruction::default()
        }],
        terminate_instructions: vec![ModificationTerminateInstruction {
            element_instance_key: element,
            ..Default::default()
        }],
        ..ProcessInstanceModificationValue::default()
    };
    let modify = Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value));
    partition.submit(instance, modify);
    let value = ExpressionValue {
        expression: "= {sum: sum(list), power: 1.7 ** 0.3, seen: refuses}".into(),
        variables: "{\"list\":[1, 2.50]}".into(),
        scope_key: instance,
        tenant_id: TENANT.into(),
        ..ExpressionValue::default()
    };
    partition.submit(Key::NONE, Payload::Expression(ExpressionIntent::Evaluate, Box::new(value)));
    partition.submit(Key::NONE, Payload::Clock(ClockIntent::Pin, ClockValue { time: partition.time + 60_000 }));
    let value = IncarnationValue { incarnation: 2, ..IncarnationValue::default() };
    partition.submit(Key::NONE, Payload::Incarnation(IncarnationIntent::Raise, Box::new(value)));
    partition.submit(Key::NONE, Payload::Purge(PurgeIntent::Purge, PurgeValue { incarnation: 3 }));
    partition.deploy("trip.bpmn", builder.to_xml().as_bytes());
    partition.create("trip", "{}", ProcessInstanceCreationIntent::Create);
    partition.check();
    partition
}

/// An expression of between 2,500,000 and 5,000,000 steps.
fn long_expression() -> String {
    let expression = "= count(for i in 1..500000 return i + 1)";
    ProcessBuilder::new("long").start("start").script_task("count", expression, "count").end("end").to_xml()
}

/// The test level cuts the message of this incident, which is longer than it lets one be.
fn incident(partition: &mut Partition) -> String {
    partition.create("choice", "{}", ProcessInstanceCreationIntent::Create);
    let message = partition.records.iter().rev().find_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, value) => Some(value.error_message.to_string()),
        _ => None,
    });
    message.expect("nothing leads on")
}

fn choice() -> ProcessBuilder {
    let builder = ProcessBuilder::new("choice").start("start").exclusive_gateway("which");
    let builder = builder.condition("= false").end("end").move_to("which");
    builder.condition("= 1 = 2").end("other")
}

/// The level is raised between two instances that meet the same trouble.
fn history_of_a_raise(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at(level));
    partition.deploy("choice.bpmn", choice().to_xml().as_bytes());
    incident(&mut partition);
    partition.submit(Key::NONE, raise(FeatureLevel::TEST.number()));
    incident(&mut partition);
    partition.check();
    partition
}

/// An ad-hoc sub-process goes on in another definition, and says what can be chosen there.
fn migration(partition: &mut Partition) {
    let model = |id: &str, ad_hoc: &str, task: &str| {
        let builder = ProcessBuilder::new(id).start("start").ad_hoc_sub_process(ad_hoc, &format!("=[\"{task}\"]"));
        builder.service_task(task, "work").end_sub_process().end("end").to_xml()
    };
    partition.deploy("before.bpmn", model("before", "ad", "task").as_bytes());
    partition.create("before", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.instance;
    partition.deploy("after.bpmn", model("after", "other", "job").as_bytes());
    let definition = newest_definition(partition);
    migrate(partition, instance, definition, &[("ad", "other"), ("task", "job")]);
}

/// The process that was deployed last.
fn newest_definition(partition: &Partition) -> Key {
    let created = |record: &Record| match &record.payload {
        Payload::Process(ProcessIntent::Created, value) => Some(value.metadata.process_definition_key),
        _ => None,
    };
    partition.records.iter().rev().find_map(created).unwrap_or(Key::NONE)
}

/// An instance goes on in another definition.
fn migrate(partition: &mut Partition, instance: Key, definition: Key, mapping: &[(&str, &str)]) {
    let instruction = |(from, to): &(&str, &str)| MigrationMappingInstruction {
        source_element_id: (*from).into(),
        target_element_id: (*to).into(),
    };
    let value = ProcessInstanceMigrationValue {
        process_instance_key: instance,
        target_process_definition_key: definition,
        mapping_instructions: mapping.iter().map(instruction).collect(),
        tenant_id: TENANT.into(),
    };
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
    partition.submit(instance, payload);
}

/// User tasks, signals, listeners, conditions, business ids and linked resources.
fn user_tasks_and_signals(partition: &mut Partition) {
    let approval = ProcessBuilder::new("approval")
        .start("start")
        .user_task("approve")
        .boundary("recalled", "approve", Event::Signal("recall"))
        .end("over")
        .move_to("approve")
        .catch_event("released", Event::Signal("release"))
        .end("end");
    partition.deploy("approval.bpmn", approval.to_xml().as_bytes());
    for _ in 0..3 {
        partition.create("approval", "{\"amount\":1}", ProcessInstanceCreationIntent::Create);
    }
    let tasks: Vec<Key> = partition
        .records
        .iter()
        .filter(|record| matches!(record.payload, Payload::UserTask(UserTaskIntent::Created, _)))
        .map(|record| record.key)
        .collect();
    let of_somebody = UserTaskValue { assignee: "somebody".into(), ..UserTaskValue::default() };
    let approved = UserTaskValue { variables: "{\"approved\":true}".into(), ..UserTaskValue::default() };
    for task in tasks.iter().take(2) {
        partition.submit(*task, Payload::UserTask(UserTaskIntent::Assign, Box::new(of_somebody.clone())));
        partition.submit(*task, Payload::UserTask(UserTaskIntent::Complete, Box::new(approved.clone())));
    }
    for name in ["recall", "release"] {
        let signal = SignalValue {
            signal_name: name.into(),
            variables: "{\"told\":true}".into(),
            tenant_id: TENANT.into(),
            ..SignalValue::default()
        };
        partition.submit(Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(signal)));
    }
    listeners_and_conditions(partition);
    business_ids(partition);
    linked_resources(partition);
}

/// What the first instance links is missing.
fn linked_resources(partition: &mut Partition) {
    let linked = ProcessBuilder::new("linked").start("start").service_task("robot", "robot").end("end").to_xml();
    let resource = r#"<zeebe:linkedResource resourceId="robot" resourceType="RPA" linkName="main"/>"#;
    let resources = format!("<zeebe:linkedResources>{resource}</zeebe:linkedResources>");
    let linked = linked.replacen("<zeebe:taskDefinition", &format!("{resources}<zeebe:taskDefinition"), 1);
    partition.deploy("linked.bpmn", linked.as_bytes());
    partition.create("linked", "{}", ProcessInstanceCreationIntent::Create);
    partition.deploy("robot.rpa", br#"{"id":"robot"}"#);
    partition.create("linked", "{}", ProcessInstanceCreationIntent::Create);
}

/// The process is called, too; the second instance with the business id is refused when that was asked for.
fn business_ids(partition: &mut Partition) {
    let value = SettingsValue { business_ids_are_unique: Some(true), ..SettingsValue::default() };
    partition.submit(Key::NONE, Payload::Settings(SettingsIntent::Change, value));
    for _ in 0..2 {
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: "choice".into(),
            version: -1,
            variables: "{\"amount\":12,\"id\":\"c\"}".into(),
            tenant_id: TENANT.into(),
            business_id: "b-1".into(),
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        partition.submit(Key::NONE, payload);
    }
}

/// Listeners of all user tasks, which run around those of the model, and by which a change goes that
/// has begun. The other partition never acknowledges any of it.
fn global_listeners(partition: &mut Partition) {
    let listener = |id: &str, after_non_global| GlobalListenerValue {
        id: id.into(),
        job_type: "global".into(),
        event_types: vec![GlobalListenerEventType::All],
        after_non_global,
        priority: if after_non_global { 1 } else { GlobalListenerValue::DEFAULT_PRIORITY },
        ..GlobalListenerValue::default()
    };
    let change = |partition: &mut Partition, intent, value| {
        partition.submit(Key::NONE, Payload::GlobalListener(intent, Box::new(value)));
    };
    for (id, is_after) in [("before", false), ("after", true), ("after", true)] {
        change(partition, GlobalListenerIntent::Create, listener(id, is_after));
    }
    partition.create("approval", "{\"amount\":2}", ProcessInstanceCreationIntent::Create);
    let complete = |partition: &mut Partition| {
        let created = |record: &Record| match &record.payload {
            Payload::Job(JobIntent::Created, value) if &*value.job_type == "global" => Some(record.key),
            _ => None,
        };
        let Some(job) = partition.records.iter().rev().find_map(created) else { return };
        partition.job(job, JobIntent::Complete, JobValue::default());
    };
    complete(partition);
    change(partition, GlobalListenerIntent::Delete, listener("after", true));
    change(partition, GlobalListenerIntent::Update, listener("before", true));
    complete(partition);
    let instance = partition.instance;
    partition.submit(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    change(partition, GlobalListenerIntent::Delete, listener("before", true));
    complete(partition);
}

fn listeners_and_conditions(partition: &mut Partition) {
    let watched = ProcessBuilder::new("watched")
        .start("start")
        .service_task("work", "work")
        .catch_event("enough", Event::Condition("= count > 2", ""))
        .user_task("review")
        .task_listener("completing", "completing")
        .end("end")
        .to_xml();
    let listener = r#"<zeebe:executionListener eventType="start" type="before" retries="2"/>"#;
    let listeners = format!("<zeebe:executionListeners>{listener}</zeebe:executionListeners>");
    let watched = watched.replacen("<zeebe:taskDefinition", &format!("{listeners}<zeebe:taskDefinition"), 1);
    partition.deploy("watched.bpmn", watched.as_bytes());
    partition.create("watched", "{\"count\":1}", ProcessInstanceCreationIntent::Create);
    for job_type in ["before", "work", "completing"] {
        partition.activate(job_type, 1);
        let created = |record: &Record| match &record.payload {
            Payload::Job(JobIntent::Created, value) if &*value.job_type == job_type => Some(record.key),
            _ => None,
        };
        let Some(job) = partition.records.iter().rev().find_map(created) else { continue };
        let value = JobValue { variables: "{\"count\":3}".into(), ..JobValue::default() };
        partition.job(job, JobIntent::Complete, value);
        let review = partition.records.iter().rev().find_map(|record| match &record.payload {
            Payload::UserTask(UserTaskIntent::Created, value) if &*value.element_id == "review" => Some(record.key),
            _ => None,
        });
        if let Some(review) = review {
            partition.submit(review, Payload::UserTask(UserTaskIntent::Complete, Default::default()));
        }
    }
}

fn encoded(batch: &CommandBatch) -> Vec<u8> {
    let commands: Vec<Vec<u8>> = batch.commands.iter().map(encode_to_vec).collect();
    encode_batch(batch.timestamp, commands.iter().map(Vec::as_slice))
}

/// What is kept: how the names of the files go on, whether the test level has it too, how the engine is set up, and what happened.
type History = (&'static str, bool, fn(FeatureLevel) -> EngineOptions, fn(FeatureLevel) -> Partition);

const HISTORIES: [History; 7] = [
    ("", false, at, history),
    ("ban.", false, at_with_few_steps, history_of_a_ban),
    ("more.", true, at, history_of_more),
    ("called.", false, at_with_few_steps, history_of_called_instances),
    ("ownership.", false, at, ownership::history),
    ("edges.", false, at, edges::history),
    ("raised.", false, at, history_of_a_raise),
];

#[test]
fn every_level_leads_to_the_records_that_it_always_led_to() {
    let mut unknown = Vec::new();
    for (level, (what, _, options, _)) in levels_with_histories() {
        let log = std::fs::read(file(level, &format!("{what}log"))).expect("each level has a log");
        let expected = std::fs::read(file(level, &format!("{what}records"))).expect("and its records");
        let refused = refused(level, what);
        let mut engine = Engine::in_memory(options(level));
        let mut expected = split(&expected).into_iter();
        for (index, batch) in (1..).zip(split(&log)) {
            let batch = decode_batch(batch).expect("a stored batch is readable");
            let mut output = Output::default();
            let mut watch = Refusing(refused.contains(&index));
            engine.apply_watched(index, &batch, &mut watch, &mut output).expect("the state is sound");
            for record in &output.records {
                let expected = expected.next().unwrap_or_default();
                assert_eq!(
                    encode_to_vec(record),
                    expected,
                    "level {level} {what} has another record at position {}:\n{record:?}\ninstead of\n{:?}",
                    record.position,
                    decode::<Record>(expected)
                );
            }
        }
        assert_eq!(expected.count(), 0, "level {level} {what} has fewer records");
        let state = state_after(level, what, &engine);
        unknown.extend((!STATES.lines().any(|known| known == state)).then_some(state));
    }
    assert!(
        unknown.is_empty(),
        "histories lead to other states, which shows in later records; these are not in tests/levels/states.tsv:\n{}\nIf rows have a \
         new field that is always empty in them, put the lines right",
        unknown.join("\n")
    );
}

/// The states that the histories led to when their levels were new.
const STATES: &str = include_str!("levels/states.tsv");

fn state_after(level: FeatureLevel, what: &str, engine: &Engine) -> String {
    let log = file(level, &format!("{what}log"));
    let name = log.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    format!("{name}\t{:032x}", engine.state_hash().expect("readable"))
}

/// Which batches of a history were refused: a line with the index for each. Most have no such file.
fn refused(level: FeatureLevel, what: &str) -> BTreeSet<u64> {
    let text = std::fs::read_to_string(file(level, &format!("{what}refused"))).unwrap_or_default();
    text.lines().map(|line| line.parse().expect("an index")).collect()
}

fn levels_with_histories() -> impl Iterator<Item = (FeatureLevel, History)> {
    let all = FeatureLevel::all().chain([FeatureLevel::TEST]);
    let all = all.flat_map(|level| HISTORIES.map(|history| (level, history)));
    all.filter(|(level, (_, is_of_test_level, ..))| *level != FeatureLevel::TEST || *is_of_test_level)
}

/// Writes the files of the newest level and of the test level, and of one that has none. Those of a level that was released must
/// never change.
#[test]
#[ignore = "writes files of the source"]
fn write_the_files_of_the_newest_level() {
    let mut states = String::new();
    for (level, (what, _, _, history)) in levels_with_histories() {
        let (log, records) = (file(level, &format!("{what}log")), file(level, &format!("{what}records")));
        if level < FeatureLevel::NEWEST && log.exists() {
            let name = log.file_name().and_then(|name| name.to_str()).expect("UTF-8");
            states.extend(
                STATES.lines().filter(|line| line.starts_with(&format!("{name}\t"))).map(|line| format!("{line}\n")),
            );
            continue;
        }
        let partition = history(level);
        states.push_str(&format!("{}\n", state_after(level, what, &partition.engine)));
        std::fs::create_dir_all(log.parent().expect("a directory")).expect("writable");
        std::fs::write(log, join(partition.batches.iter().map(encoded))).expect("writable");
        let refused: String = partition.refused.iter().map(|index| format!("{index}\n")).collect();
        if !refused.is_empty() {
            std::fs::write(file(level, &format!("{what}refused")), refused).expect("writable");
        }
        std::fs::write(records, join(partition.records.iter().map(encode_to_vec))).expect("writable");
    }
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/levels");
    std::fs::write(directory.join("states.tsv"), states).expect("writable");
}

#[test]
fn a_level_is_raised_by_a_command_and_never_lowered() {
    let mut partition = Partition::with_options(at(FeatureLevel::OLDEST));
    let refused = |output: &Output| output.replies[0].rejection.as_ref().map(|rejection| rejection.reason.to_string());
    partition.deploy("choice.bpmn", choice().to_xml().as_bytes());
    let whole = incident(&mut partition);
    let test = FeatureLevel::TEST.number();
    assert_eq!(refused(&partition.submit(Key::NONE, raise(test))), None);
    assert_eq!(partition.engine.feature_level(), FeatureLevel::TEST);
    let cut = incident(&mut partition);
    assert!(cut.chars().count() <= 41 && whole.len() > 50, "{cut}: {whole}");
    for level in [0, 1, test] {
        let reason = refused(&partition.submit(Key::NONE, raise(level))).expect("it is there already");
        assert!(reason.contains(&format!("at level {test} already, and a level is never lowered")), "{reason}");
    }
    assert_eq!(incident(&mut partition), cut, "the level stays");
    partition.check();
}

/// A build that does not know the level of a state does not open it, and the one that wrote it still does.
#[test]
fn a_state_at_a_newer_level_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut partition = Partition::with_options(at(FeatureLevel::OLDEST));
    partition.engine = Engine::open(at(FeatureLevel::OLDEST), directory.path()).expect("a new state");
    partition.submit(Key::NONE, raise(FeatureLevel::TEST.number()));
    let checkpoint = partition.engine.freeze().expect("none is under way");
    let written = checkpoint.write().expect("the disk takes it");
    drop(checkpoint);
    drop(partition.engine.release(written).expect("it can be read"));
    drop(partition);
    let fault = Engine::open(support::options(), directory.path()).expect_err("the level is not known").to_string();
    let expected =
        format!("Partition 1 cannot go on with this build: Feature level {} is not known", FeatureLevel::TEST);
    assert!(fault.starts_with(&expected), "{fault}");
    let engine = Engine::open(at(FeatureLevel::OLDEST), directory.path()).expect("it is sound");
    assert_eq!(engine.feature_level(), FeatureLevel::TEST);
}

#[test]
fn slips_in_expressions_are_refused() {
    let model = ProcessBuilder::new("slip").start("start").script_task("work", "= a not in [1]", "result").end("end");
    let decision = r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="g" name="G" namespace="n">
        <decision id="d" name="D"><variable name="d"/><literalExpression><text>a not in [1]</text></literalExpression></decision>
        </definitions>"#;
    let mut partition = Partition::new();
    for (name, content) in [("slip.bpmn", model.to_xml()), ("slip.dmn", decision.to_owned())] {
        let output = partition.deploy(name, content.as_bytes());
        let rejection = output.replies[0].rejection.as_ref().expect("the expression is a slip");
        assert!(rejection.reason.contains("not(…) around what is negated"), "{}", rejection.reason);
    }
}

#[test]
fn the_bytes_of_a_root_instance_are_a_setting() {
    let mut partition = Partition::new();
    partition
        .deploy("p.bpmn", ProcessBuilder::new("p").start("s").service_task("t", "work").end("e").to_xml().as_bytes());
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(2 << 20));
    let create = |partition: &mut Partition| {
        let output = partition.create("p", &variables, ProcessInstanceCreationIntent::Create);
        output.replies[0].rejection.as_ref().map(|rejection| rejection.reason.to_string())
    };
    assert_eq!(create(&mut partition), None);
    for (bytes, is_taken) in [(0, false), ((1 << 20) - 1, false), ((1 << 40) + 1, false), (1 << 20, true)] {
        let reply = &partition.submit(Key::NONE, settings(bytes)).replies[0];
        assert_eq!(reply.rejection.is_none(), is_taken, "{bytes}");
    }
    let reason = create(&mut partition).expect("it is too large now");
    assert!(reason.contains("to have at most 1048576 bytes together"), "{reason}");
    let settings = |bytes| SettingsValue { root_variable_bytes_max: bytes, ..SettingsValue::default() };
    assert_eq!(partition.engine.settings_command(settings(1 << 20)), None, "it is so already");
    assert!(partition.engine.settings_command(settings(2 << 20)).is_some());
    partition.check();
}

#[test]
fn a_build_does_not_go_on_by_rules_that_it_does_not_know() {
    for newer in [FeatureLevel::NEWEST.number() + 1, FeatureLevel::TEST.number()] {
        let mut engine = Engine::in_memory(support::options());
        let batch = CommandBatch { timestamp: 1, commands: vec![Command::of_system(Key::NONE, raise(newer))] };
        let fault = engine.apply(1, &batch, &mut Output::default()).expect_err("the level is not known");
        assert!(matches!(fault, Fault::FeatureLevel { .. }), "{fault}");
        let expected = format!("Partition 1 cannot go on with this build: Feature level {newer} is not known");
        assert!(fault.to_string().starts_with(&expected), "{fault}");
    }
}
