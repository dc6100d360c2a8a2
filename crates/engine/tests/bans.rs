//! Banned instances: which ones are banned, what they still do, and how they and what belongs to them end.

use std::collections::BTreeSet;

use crate::support::{self, Partition, describe};
use engine::{EngineOptions, Limits};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

/// With few steps for each command, so that a part of every change waits in the work queue.
fn partition(steps_per_command_max: usize, work_entries_max: u64) -> Partition {
    let limits = Limits { steps_per_command_max, work_entries_max, continuations_max: 200, ..Limits::default() };
    Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() })
}

fn deploy(partition: &mut Partition, process: &ProcessBuilder) {
    let output = partition.deploy("process.bpmn", process.to_xml().as_bytes());
    assert_eq!(output.replies[0].rejection, None);
}

fn create(partition: &mut Partition, process: &str) -> String {
    describe(&partition.create(process, "{}", ProcessInstanceCreationIntent::Create))
}

fn cancel(partition: &mut Partition, key: Key) -> String {
    describe(&partition.submit(key, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default())))
}

fn complete(partition: &mut Partition, job: &str) -> String {
    let key = partition.jobs[job];
    describe(&partition.job(key, JobIntent::Complete, JobValue::default()))
}

/// A loop of gateways that never waits, so that its instance is banned.
fn endless(builder: ProcessBuilder) -> ProcessBuilder {
    builder.exclusive_gateway("again").exclusive_gateway("and-again").connect_to("again")
}

/// A process that is banned while `waiting` waits in it.
fn breaking(id: &str, waiting: impl FnOnce(ProcessBuilder) -> ProcessBuilder) -> ProcessBuilder {
    endless(waiting(ProcessBuilder::new(id).start("start").parallel_gateway("fork")).move_to("fork"))
}

fn banned(partition: &Partition) -> Vec<Key> {
    let errors = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Error(_, error) => Some(error.process_instance_key),
        _ => None,
    });
    errors.collect()
}

fn check_everything_ended(partition: &Partition) {
    check_nothing_is_left(partition);
    partition.check();
}

fn check_nothing_is_left(partition: &Partition) {
    let keys = |wanted: &[ProcessInstanceIntent]| -> BTreeSet<Key> {
        let is_wanted = |record: &&Record| matches!(&record.payload, Payload::ProcessInstance(intent, _) if wanted.contains(intent));
        partition.records.iter().filter(is_wanted).map(|record| record.key).collect()
    };
    use ProcessInstanceIntent::{ElementActivating, ElementCompleted, ElementTerminated};
    assert_eq!(keys(&[ElementActivating]), keys(&[ElementCompleted, ElementTerminated]), "everything ends");
    let statistics = partition.engine.statistics();
    assert_eq!((statistics.banned_instances, statistics.work_entries), (0, 0));
    let mut dump = Vec::new();
    partition.engine.dump(&mut dump).expect("readable");
    let dump = String::from_utf8_lossy(&dump);
    let left = ["element_instances", "children", "jobs", "incidents", "timers", "variables", "living_instances"];
    for line in dump.lines() {
        assert!(!left.contains(&line.split(' ').next().unwrap_or_default()), "{line}");
    }
}

/// A process that takes more steps than one command, which is too much where no work may wait.
fn long(builder: ProcessBuilder) -> ProcessBuilder {
    (0..20).fold(builder, |builder, number| builder.manual_task(&format!("manual-{number}"))).end("end")
}

fn short() -> ProcessBuilder {
    ProcessBuilder::new("short").start("start").service_task("task", "work").end("end")
}

/// Both are asked for when they are due, and come when the job has failed, was activated again, and is due for the other.
#[test]
fn a_command_that_comes_too_late_for_a_job_bans_nobody() {
    let mut partition = Partition::new();
    deploy(&mut partition, &short());
    create(&mut partition, "short");
    partition.activate("work", 1);
    let (job, value) = (partition.jobs["task"], std::sync::Arc::<JobValue>::default);
    partition.job(job, JobIntent::Fail, JobValue { retries: 1, retry_backoff: 1_000, ..JobValue::default() });
    partition.time += 5_000;
    let late = partition.apply(vec![Command::of_system(job, Payload::Job(JobIntent::TimeOut, value()))]);
    let late = describe(&late);
    assert_eq!(banned(&partition), [], "{late}");
    let recurred = describe(&partition.advance(0));
    assert!(recurred.contains("RECURRED_AFTER_BACKOFF"), "{recurred}");
    partition.activate("work", 1);
    partition.time += 3_600_000;
    partition.apply(vec![Command::of_system(job, Payload::Job(JobIntent::RecurAfterBackoff, value()))]);
    assert_eq!(banned(&partition), [], "the other way round");
    let timed_out = describe(&partition.advance(0));
    assert!(timed_out.contains("TIMED_OUT"), "{timed_out}");
}

#[test]
fn the_ban_of_an_instance_whose_creation_was_rolled_back_hits_no_other() {
    let mut partition = partition(10, 0);
    deploy(&mut partition, &long(ProcessBuilder::new("long").start("start")));
    deploy(&mut partition, &short());
    let refused = create(&mut partition, "long");
    assert!(refused.contains("reply CREATE PROCESSING_ERROR"), "{refused}");
    assert_eq!(banned(&partition), [Key::NONE], "the reason is noted");
    create(&mut partition, "short");
    let completed = complete(&mut partition, "task");
    assert!(completed.contains("ELEMENT_COMPLETED PROCESS short"), "{completed}");
    check_everything_ended(&partition);
}

#[test]
fn the_ban_of_an_instance_whose_timer_was_rolled_back_hits_no_other() {
    let mut partition = partition(10, 0);
    deploy(&mut partition, &long(ProcessBuilder::new("long").start_event("start", Event::Cycle("R1/PT1S"))));
    deploy(&mut partition, &short());
    partition.advance(1_000);
    assert_eq!(banned(&partition), [Key::NONE], "the reason is noted");
    create(&mut partition, "short");
    let completed = complete(&mut partition, "task");
    assert!(completed.contains("ELEMENT_COMPLETED PROCESS short"), "{completed}");
    assert_eq!(partition.engine.statistics().banned_instances, 0);
}

#[test]
fn a_banned_caller_does_not_go_on_when_what_it_called_completes() {
    let mut partition = partition(3, 1_000);
    deploy(&mut partition, &ProcessBuilder::new("called").start("start").service_task("task", "work").end("end"));
    deploy(&mut partition, &breaking("caller", |builder| builder.call_activity("call", "called").end("end")));
    create(&mut partition, "caller");
    let caller = partition.elements["caller"];
    assert_eq!(banned(&partition), [caller]);
    let completed = complete(&mut partition, "task");
    assert!(completed.contains("ELEMENT_COMPLETED PROCESS called"), "{completed}");
    assert!(!completed.contains("CALL_ACTIVITY") && !completed.contains("ERROR"), "{completed}");
    let cancelled = cancel(&mut partition, caller);
    assert!(cancelled.contains("ELEMENT_TERMINATED CALL_ACTIVITY call"), "{cancelled}");
    assert!(cancelled.contains("ELEMENT_TERMINATED PROCESS caller"), "{cancelled}");
    check_everything_ended(&partition);
}

#[test]
fn nothing_that_is_thrown_is_caught_in_a_banned_caller() {
    let mut partition = partition(3, 1_000);
    deploy(&mut partition, &ProcessBuilder::new("called").start("start").service_task("task", "work").end("end"));
    let calling = |builder: ProcessBuilder| {
        let builder = builder.call_activity("call", "called").end("end");
        builder.boundary("failed", "call", Event::Error("E")).end("failed-end")
    };
    deploy(&mut partition, &breaking("caller", calling));
    create(&mut partition, "caller");
    let (caller, job) = (partition.elements["caller"], partition.jobs["task"]);
    let value = JobValue { error_code: "E".into(), ..JobValue::default() };
    let thrown = describe(&partition.job(job, JobIntent::ThrowError, value));
    assert!(thrown.contains("INCIDENT CREATED task UNHANDLED_ERROR_EVENT"), "{thrown}");
    assert!(!thrown.contains("PROCESS_EVENT"), "{thrown}");
    cancel(&mut partition, caller);
    check_everything_ended(&partition);
}

#[test]
fn the_cancellation_of_the_root_ends_banned_instances_below_it_and_what_they_called() {
    for steps_per_command_max in [1, 2, 3, 5, 1_000] {
        let mut partition = partition(steps_per_command_max, 1_000);
        deploy(&mut partition, &ProcessBuilder::new("leaf").start("start").service_task("task", "work").end("end"));
        let waiting = |builder: ProcessBuilder| {
            let builder = builder.call_activity("call-leaf", "leaf").end("end");
            let builder = builder.boundary("late", "call-leaf", Event::Duration("PT1H")).end("late-end");
            let builder = builder.move_to("fork").sub_process("sub").start("sub-start").service_task("own", "work");
            builder.end("sub-end").end_sub_process().end("other-end")
        };
        deploy(&mut partition, &breaking("middle", waiting));
        deploy(&mut partition, &ProcessBuilder::new("root").start("start").call_activity("call", "middle").end("end"));
        create(&mut partition, "root");
        let (root, middle) = (partition.elements["root"], partition.elements["middle"]);
        assert_eq!(banned(&partition), [middle]);
        let refused = cancel(&mut partition, middle);
        assert!(refused.contains("Cancel the root process instance"), "{refused}");
        let cancelled = cancel(&mut partition, root);
        assert!(cancelled.contains("ELEMENT_TERMINATED PROCESS root"), "{cancelled}");
        check_everything_ended(&partition);
    }
}

#[test]
fn a_banned_instance_ends_without_its_definition() {
    let mut partition = partition(3, 1_000);
    let waiting = |builder: ProcessBuilder| {
        let builder = builder.sub_process("sub").multi_instance("=[1, 2]", "item").start("sub-start");
        let builder = builder.service_task("task", "work").end("sub-end").end_sub_process().end("end");
        builder.boundary("late", "sub", Event::Duration("PT1H")).end("late-end")
    };
    deploy(&mut partition, &breaking("process", waiting));
    create(&mut partition, "process");
    let instance = partition.elements["process"];
    assert_eq!(banned(&partition), [instance]);
    let definition = partition.records.iter().find_map(|record| match &record.payload {
        Payload::ProcessInstance(_, value) => Some(value.process_definition_key),
        _ => None,
    });
    let value = ResourceDeletionValue { resource_key: definition.expect("created"), tenant_id: support::TENANT.into() };
    let deletion = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
    assert_eq!(partition.submit(Key::NONE, deletion).replies[0].rejection, None);
    let cancelled = cancel(&mut partition, instance);
    assert!(cancelled.contains("ELEMENT_TERMINATED MULTI_INSTANCE_BODY sub"), "{cancelled}");
    assert!(cancelled.contains("ELEMENT_TERMINATED PROCESS process"), "{cancelled}");
    check_everything_ended(&partition);
}

/// Puts an instance aside, as a failure of the engine would.
fn ban(partition: &mut Partition, process_instance_key: Key) {
    let value = ErrorValue {
        exception_message: "a broken invariant".into(),
        stacktrace: Text::default(),
        error_event_position: 0,
        process_instance_key,
    };
    let position = partition.engine.last_position() + 1;
    let payload = Payload::Error(ErrorIntent::Created, Box::new(value));
    partition.engine.replay(&Record::event(position, partition.time, Key::NONE, payload)).expect("the state is sound");
}

const NESTED: usize = 60;

/// Sub-processes in each other, each with a signal that interrupts it, and some tasks in the innermost one.
fn nest(depth: usize, tasks: usize) -> ProcessBuilder {
    let mut builder = ProcessBuilder::new("nest").start("start");
    for level in 0..depth {
        builder = builder.sub_process(&format!("sub-{level}")).start(&format!("start-{level}"));
    }
    let items: Vec<String> = (0..tasks).map(|item| item.to_string()).collect();
    builder = builder.sub_process("item-sub").multi_instance(&format!("=[{}]", items.join(",")), "item");
    builder = builder.start("item-start").service_task("task", "work").end("item-end").end_sub_process();
    for level in (0..depth).rev() {
        let sub = format!("sub-{level}");
        builder = builder.end(&format!("end-{level}")).end_sub_process();
        builder = builder.boundary(&format!("on-{level}"), &sub, Event::Signal("stop"));
        builder = builder.end(&format!("on-{level}-end")).move_to(&sub);
    }
    builder.end("end")
}

fn with_three_steps() -> EngineOptions {
    let limits = Limits { steps_per_command_max: 3, ..Limits::default() };
    EngineOptions { limits: Some(limits), ..support::options() }
}

/// How many commands there are from the cancellation of a banned instance to its end, each of three steps at most, and how
/// many entries of the work queue waited for it before. When it `was_interrupted`, each of its sub-processes was to end.
fn cancellation(was_interrupted: bool) -> (usize, usize) {
    let mut partition = Partition::with_options(with_three_steps());
    deploy(&mut partition, &nest(NESTED, 60));
    partition.create("nest", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.elements["nest"];
    if was_interrupted {
        interrupt_each_sub_process(&mut partition);
    }
    let waiting = usize::try_from(partition.engine.statistics().work_entries).expect("small");
    ban(&mut partition, instance);
    let before = partition.batches.len();
    cancel(&mut partition, instance);
    check_nothing_is_left(&partition);
    (partition.batches.len() - before, waiting)
}

/// Goes on until all are told to end. What is in them waits to be told.
fn interrupt_each_sub_process(partition: &mut Partition) {
    let value = SignalValue { signal_name: "stop".into(), tenant_id: support::TENANT.into(), ..SignalValue::default() };
    let broadcast = Payload::Signal(SignalIntent::Broadcast, Box::new(value));
    let is_end = |record: &Record| {
        matches!(record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminating, _))
    };
    partition.apply(vec![Command::new(Key::NONE, broadcast)]);
    let mut told = 0;
    while told < NESTED {
        let command = partition.engine.continuation().expect("not all sub-processes are told to end");
        let output = partition.apply(vec![command]);
        told += output.records.iter().filter(|record| is_end(record)).count();
    }
}

/// What waited before the ban would end each part of the tree once more for each entry of the queue.
#[test]
fn an_instance_that_was_banned_with_much_to_do_ends_in_one_walk() {
    let (in_one_walk, none) = cancellation(false);
    assert_eq!(none, 0);
    let (commands, waiting) = cancellation(true);
    assert!(waiting > 0);
    assert!(commands <= in_one_walk + waiting, "{commands} instead of {in_one_walk} commands, and {waiting} entries");
}

/// Else each of them would take all steps once more.
#[test]
fn a_second_cancellation_waits_for_the_steps_of_the_first() {
    let mut partition = Partition::with_options(with_three_steps());
    deploy(&mut partition, &nest(NESTED, 60));
    partition.create("nest", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.elements["nest"];
    ban(&mut partition, instance);
    let first = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    partition.apply(vec![Command::new(instance, first)]);
    let second = cancel(&mut partition, instance);
    assert!(second.contains("a cancellation is in progress already"), "{second}");
    check_nothing_is_left(&partition);
}

/// What was lost by a failure is ended by another cancellation.
#[test]
fn an_instance_whose_end_was_lost_is_cancelled_again() {
    let mut partition = Partition::with_options(with_three_steps());
    deploy(&mut partition, &nest(NESTED, 60));
    partition.create("nest", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.elements["nest"];
    let first = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    partition.apply(vec![Command::new(instance, first)]);
    ban(&mut partition, instance);
    partition.go_on();
    let is_end = |record: &&Record| {
        record.key == instance
            && matches!(record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminated, _))
    };
    assert_eq!(partition.records.iter().filter(is_end).count(), 0, "the ban forgot the rest of the end");
    cancel(&mut partition, instance);
    assert_eq!(partition.records.iter().filter(is_end).count(), 1);
    check_nothing_is_left(&partition);
}

/// A root instance that is ending and waits for the one that it called, which was banned while it ended.
struct Waiting {
    partition: Partition,
    root: Key,
    called: Key,
}

impl Waiting {
    /// Banned for a part of its end.
    fn for_a_lost_step() -> Waiting {
        let mut partition = Partition::with_options(with_three_steps());
        deploy(&mut partition, &nest(NESTED, 60));
        let mut waiting = Waiting::for_an_instance_of(partition, "nest");
        let partition = &mut waiting.partition;
        let is_ending = |record: &Record| {
            record.key == waiting.called
                && matches!(record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminating, _))
        };
        while !partition.records.iter().any(is_ending) {
            let command = partition.engine.continuation().expect("the called instance is told to end");
            partition.apply(vec![command]);
        }
        let part_of_end = partition.engine.continuation().expect("it has a long end");
        partition.refuse(vec![part_of_end]);
        waiting
    }

    /// Banned for a listener of its end, so that nothing of it waited to be done.
    fn for_a_listener() -> Waiting {
        let mut partition = Partition::with_options(with_three_steps());
        let asked = ProcessBuilder::new("asked").start("start").user_task("ask").task_listener("canceling", "listen");
        deploy(&mut partition, &asked.end("end"));
        let mut waiting = Waiting::for_an_instance_of(partition, "asked");
        waiting.partition.go_on();
        let listener = waiting.partition.jobs["ask"];
        waiting.partition.refuse(vec![Command::new(listener, Payload::Job(JobIntent::Complete, Default::default()))]);
        waiting
    }

    fn for_an_instance_of(mut partition: Partition, process: &str) -> Waiting {
        deploy(&mut partition, &ProcessBuilder::new("root").start("start").call_activity("call", process).end("end"));
        partition.create("root", "{}", ProcessInstanceCreationIntent::Create);
        let (root, called) = (partition.elements["root"], partition.elements[process]);
        let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
        partition.apply(vec![Command::new(root, cancel)]);
        Waiting { partition, root, called }
    }
}

#[test]
fn a_called_instance_that_is_banned_while_it_ends_comes_to_its_end() {
    for of in [Waiting::for_a_lost_step, Waiting::for_a_listener] {
        let Waiting { mut partition, root, called } = of();
        assert_eq!(banned(&partition), [called]);
        partition.go_on();
        let refused = cancel(&mut partition, root);
        assert!(refused.contains("reply CANCEL NOT_FOUND"), "both have ended: {refused}");
        check_everything_ended(&partition);
    }
}

/// The end that the ban asks for is refused, too.
#[test]
fn the_lost_end_of_a_called_instance_can_be_asked_for_by_a_user() {
    let Waiting { mut partition, called, .. } = Waiting::for_a_lost_step();
    let early = cancel(&mut partition, called);
    assert!(early.contains("Cancel the root process instance"), "it is on its way: {early}");
    let Waiting { mut partition, called, .. } = Waiting::for_a_listener();
    let end = partition.engine.continuation().expect("asked for by the ban");
    partition.refuse(vec![end]);
    partition.go_on();
    let cancelled = cancel(&mut partition, called);
    assert!(cancelled.contains("ELEMENT_TERMINATED PROCESS root"), "{cancelled}");
    check_everything_ended(&partition);
}
