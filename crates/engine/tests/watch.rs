//! A watch sees every command before it is processed, and can have one refused.

use crate::support::{Partition, TENANT, options};
use engine::{Decision, Engine, EngineOptions, Output, Subject, Watch};
use model_builder::ProcessBuilder;
use protocol::*;

/// Writes down what it sees, and refuses one command of one batch.
#[derive(Default)]
struct Watcher {
    told: Vec<(u32, &'static str, Key)>,
    refused: Option<u32>,
}

impl Watch for Watcher {
    fn before(&mut self, number: u32, command: &Command, process_instance: Key) -> Decision<'_> {
        self.told.push((number, command.payload.intent_name(), process_instance));
        if self.refused == Some(number) { Decision::Refuse("an operator had it refused") } else { Decision::Process }
    }
}

fn creation(id: &str) -> Command {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: id.into(),
        version: -1,
        tenant_id: TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    Command::new(Key::NONE, Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value)))
}

fn completion(job: Key) -> Command {
    let value = JobValue { variables: "{\"paid\":true}".into(), ..JobValue::default() };
    let request = Some(Request { node: 0, number: 4_711 });
    Command { request, ..Command::new(job, Payload::Job(JobIntent::Complete, std::sync::Arc::new(value))) }
}

/// A partition with two instances that wait for their jobs.
fn partition() -> (Partition, Vec<Key>) {
    let mut partition = Partition::new();
    let process = ProcessBuilder::new("order").start("start").service_task("pay", "pay").end("end");
    partition.deploy("order.bpmn", process.to_xml().as_bytes());
    let mut jobs = Vec::new();
    for _ in 0..2 {
        partition.apply(vec![creation("order")]);
        jobs.push(partition.jobs["pay"]);
    }
    (partition, jobs)
}

/// Applies the partition's history and then one more batch under a watcher.
fn replay(partition: &Partition, last: &CommandBatch, watcher: &mut Watcher) -> (Engine, Output) {
    let mut engine = Engine::in_memory(options());
    let mut output = Output::default();
    for (index, batch) in (1..).zip(&partition.batches) {
        engine.apply(index, batch, &mut output).expect("the state is sound");
    }
    output.clear();
    let index = engine.applied() + 1;
    engine.apply_watched(index, last, watcher, &mut output).expect("the state is sound");
    (engine, output)
}

#[test]
fn each_command_is_announced_before_it_is_processed() {
    let (partition, jobs) = partition();
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    let commands = vec![completion(jobs[0]), Command::new(partition.instance, cancel), creation("order")];
    let mut watcher = Watcher::default();
    replay(&partition, &CommandBatch { timestamp: partition.time, commands }, &mut watcher);
    let expected = [(1, "COMPLETE", Key::NONE), (2, "CANCEL", partition.instance), (3, "CREATE", Key::NONE)];
    assert_eq!(watcher.told, expected);
}

#[test]
fn a_refused_command_leaves_a_rejection_and_a_banned_instance() {
    let (partition, jobs) = partition();
    let commands = vec![completion(jobs[0]), completion(jobs[1]), creation("order")];
    let batch = CommandBatch { timestamp: partition.time, commands };
    let refusing = || Watcher { refused: Some(2), ..Watcher::default() };
    let (engine, output) = replay(&partition, &batch, &mut refusing());

    let rejections: Vec<&Record> =
        output.records.iter().filter(|record| matches!(record.record_type, RecordType::Rejection(_))).collect();
    assert_eq!(rejections.len(), 1, "{rejections:?}");
    assert_eq!((rejections[0].key, rejections[0].payload.intent_name()), (jobs[1], "COMPLETE"));
    let RecordType::Rejection(rejection) = &rejections[0].record_type else { unreachable!("just filtered") };
    assert_eq!(rejection.rejection_type, RejectionType::ProcessingError);
    assert!(rejection.reason.ends_with("but this happened: an operator had it refused"), "{}", rejection.reason);
    let answered = output.replies.iter().filter(|reply| reply.key == jobs[1]);
    assert!(answered.map(|reply| reply.rejection.is_some()).eq([true]), "who waits for it is told");

    assert_eq!(engine.statistics().banned_instances, 1);
    let subject = engine.subject(&completion(jobs[1]));
    let expected = Subject { process_instance: Some(partition.instance), bpmn_process_id: Some("order".to_owned()) };
    assert_eq!(subject, expected, "the job is still there, with its instance");
    let named = |wanted: &str| output.records.iter().filter(|record| record.payload.intent_name() == wanted).count();
    assert_eq!(named("COMPLETED"), 1, "the other job was completed");
    assert_eq!(engine.subject(&completion(jobs[0])), Subject::default(), "and is gone");

    let (again, repeated) = replay(&partition, &batch, &mut refusing());
    assert_eq!(repeated.records, output.records, "the same refusal gives the same records");
    assert_eq!(again.state_hash().expect("readable"), engine.state_hash().expect("readable"));
}

#[test]
fn a_refused_creation_leaves_nothing_but_its_rejection() {
    let (partition, _) = partition();
    let batch = CommandBatch { timestamp: partition.time, commands: vec![creation("order")] };
    let (engine, output) = replay(&partition, &batch, &mut Watcher { refused: Some(1), ..Watcher::default() });
    assert_eq!(output.records.len(), 1);
    let RecordType::Rejection(rejection) = &output.records[0].record_type else { panic!("{:?}", output.records) };
    assert_eq!(rejection.reason.to_string(), "Expected to process the command, but an operator had it refused");
    assert_eq!(engine.statistics().banned_instances, 0, "there is no instance to ban");
    let subject = engine.subject(&batch.commands[0]);
    assert_eq!(subject, Subject { process_instance: None, bpmn_process_id: Some("order".to_owned()) });
}

/// Refuses the first command about a message, and those of work.
#[derive(Default)]
struct Refusing {
    refused: Vec<String>,
    messages_max: usize,
    work_max: usize,
}

impl Watch for Refusing {
    fn before(&mut self, _number: u32, command: &Command, _process_instance: Key) -> Decision<'_> {
        let left = match &command.payload {
            Payload::MessageBatch(..) => &mut self.messages_max,
            Payload::Work(..) => &mut self.work_max,
            _ => return Decision::Process,
        };
        if *left == 0 {
            return Decision::Process;
        }
        *left -= 1;
        self.refused.push(command.payload.intent_name().to_owned());
        Decision::Refuse("an operator had it refused")
    }
}

/// An engine with messages that will expire, and the time when they do.
fn with_due_messages(count: usize) -> (Engine, Timestamp) {
    let mut partition = Partition::new();
    for number in 0..count {
        let value = MessageValue {
            name: "m".into(),
            correlation_key: format!("k{number}").into(),
            time_to_live: 1_000,
            tenant_id: TENANT.into(),
            ..MessageValue::default()
        };
        partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)));
    }
    let due = partition.time + 1_000;
    (partition.engine, due)
}

/// Does what a leader does by itself while there is something to do, and returns how many commands that took.
fn lead(engine: &mut Engine, now: Timestamp, watch: &mut impl Watch) -> usize {
    for count in 0..100 {
        let mut commands = engine.due_commands(now, 128);
        commands.extend(engine.continuation());
        if commands.is_empty() {
            return count;
        }
        let batch = CommandBatch { timestamp: now, commands };
        engine.apply_watched(engine.applied() + 1, &batch, watch, &mut Output::default()).expect("the state is sound");
    }
    panic!("what was refused is submitted again and again");
}

#[test]
fn messages_whose_expiry_was_refused_expire_one_by_one() {
    let (mut engine, due) = with_due_messages(5);
    let mut refusing = Refusing { messages_max: 50, ..Refusing::default() };
    lead(&mut engine, due, &mut refusing);
    assert_eq!(refusing.refused, ["EXPIRE"], "together they are not tried again");
    assert_eq!((engine.statistics().messages, engine.statistics().work_entries), (0, 0));
    assert_eq!(engine.next_due(), None);
}

#[test]
fn a_message_whose_expiry_is_refused_alone_too_stays_without_being_due() {
    let (mut engine, due) = with_due_messages(5);
    let mut refusing = Refusing { messages_max: 1, work_max: 1, ..Refusing::default() };
    lead(&mut engine, due, &mut refusing);
    assert_eq!(refusing.refused, ["EXPIRE", "CONTINUE"]);
    assert_eq!((engine.statistics().messages, engine.statistics().work_entries), (1, 0), "the others have expired");
    assert_eq!(engine.next_due(), None, "it does not come again");

    let (mut engine, due) = with_due_messages(1);
    let mut refusing = Refusing { messages_max: 1, ..Refusing::default() };
    assert_eq!(lead(&mut engine, due, &mut refusing), 1);
    assert_eq!((engine.statistics().messages, engine.next_due()), (1, None));
}

#[test]
fn an_acknowledgement_that_was_refused_still_empties_the_outbox() {
    let mut engine = Engine::in_memory(EngineOptions { first_partition_count: 2, ..options() });
    let process = ProcessBuilder::new("order").start("start").end("end").to_xml();
    let resource =
        DeploymentResource { resource_name: "order.bpmn".into(), resource: std::sync::Arc::from(process.as_bytes()) };
    let value = DeploymentValue { resources: vec![resource], tenant_id: TENANT.into(), ..DeploymentValue::default() };
    let deployment = Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
    let batch = CommandBatch { timestamp: 1, commands: vec![deployment] };
    engine.apply(1, &batch, &mut Output::default()).expect("the state is sound");
    assert_eq!(engine.outbox(PartitionId(2), 0, 10).len(), 1);

    let value = OutboxValue {
        partition: PartitionId(2),
        sequence: 1,
        distribution_key: Key::NONE,
        command: None,
        incarnation: 1,
    };
    let acknowledgement = Command::new(Key::NONE, Payload::Outbox(OutboxIntent::Acknowledge, Box::new(value)));
    let batch = CommandBatch { timestamp: 1, commands: vec![acknowledgement] };
    let mut refusing = Watcher { refused: Some(1), ..Watcher::default() };
    engine.apply_watched(2, &batch, &mut refusing, &mut Output::default()).expect("the state is sound");
    assert_eq!(engine.outbox_partitions(), [], "nothing is sent again");
}
