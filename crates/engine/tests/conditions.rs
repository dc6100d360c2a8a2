//! Conditions: which changes have them looked at, how often they trigger, and what remains.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::{self, Cluster};
use crate::support;
use engine::Limits;
use model_builder::{Event, ProcessBuilder};
use protocol::*;

/// What remains when everything has ended: definitions with their start events, and what partitions remember about each other.
const STAYS: &[&str] = &[
    "processes",
    "latest_processes",
    "process_versions",
    "processes_by_deployment",
    "deleted_versions",
    "outbox_sequences",
    "inbox_sequences",
];
const START_EVENTS: &[&str] = &["conditional_subscriptions", "conditional_start_events"];

fn evaluation(definition: Key, variables: &str) -> Payload {
    let value = ConditionalEvaluationValue {
        process_definition_key: definition,
        variables: variables.into(),
        tenant_id: support::TENANT.into(),
        started_process_instances: Vec::new(),
    };
    Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluate, Box::new(value))
}

/// How many instances a client starts, or why none.
fn evaluate(cluster: &mut Cluster, partition: u16, definition: Key, variables: &str) -> Result<usize, Rejection> {
    let reply =
        cluster.submit(partition, Key::NONE, evaluation(definition, variables)).expect("it is answered at once");
    match (reply.rejection, reply.payload) {
        (Some(rejection), _) => Err(rejection),
        (None, Payload::ConditionalEvaluation(_, value)) => Ok(value.started_process_instances.len()),
        (None, other) => panic!("{other:?}"),
    }
}

fn set(cluster: &mut Cluster, scope_key: Key, variables: &str, update_semantics: VariableDocumentUpdateSemantics) {
    let tenant_id = support::TENANT.into();
    let value = VariableDocumentValue { scope_key, update_semantics, variables: variables.into(), tenant_id };
    let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
    let reply = cluster.submit(1, Key::NONE, payload).expect("it is answered at once");
    assert_eq!(reply.rejection, None);
    cluster.settle();
}

fn change(cluster: &mut Cluster, scope: Key, variables: &str) {
    set(cluster, scope, variables, VariableDocumentUpdateSemantics::Propagate);
}

/// How often each event was triggered, by its id.
fn triggered(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for record in cluster.events() {
        if let Payload::ConditionalSubscription(ConditionalSubscriptionIntent::Triggered, value) = &record.payload {
            *count.entry(value.catch_event_id.to_string()).or_default() += 1;
        }
    }
    count
}

/// The instances of an element, oldest first.
fn instances(cluster: &Cluster, element_id: &str) -> Vec<Key> {
    let activated = cluster.events().filter_map(|record| match &record.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, value)
            if *value.element_id == *element_id && value.bpmn_element_type != BpmnElementType::MultiInstanceBody =>
        {
            Some(record.key)
        }
        _ => None,
    });
    activated.collect()
}

fn newest_definition(cluster: &Cluster) -> Key {
    let created = cluster.events().filter_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, value) => Some(value.metadata.process_definition_key),
        _ => None,
    });
    created.max().expect("a definition")
}

fn check(cluster: &Cluster, stays: &[&str]) {
    assert_eq!(cluster.rows_but(&[STAYS, stays].concat()), Vec::<String>::new());
    cluster.check();
}

fn started(condition: &str) -> String {
    let builder = ProcessBuilder::new("p").start_event("s", Event::Condition(condition, ""));
    builder.service_task("t", "work").end("e").to_xml()
}

#[test]
fn every_partition_starts_instances_of_the_newest_version() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&started("=x > 1"));
    let first = newest_definition(&cluster);
    assert_eq!(cluster.count("CONDITIONAL_SUBSCRIPTION", "CREATED"), 2);
    assert_eq!(evaluate(&mut cluster, 1, Key::NONE, "{\"x\":2}"), Ok(1));
    assert_eq!(evaluate(&mut cluster, 2, first, "{\"x\":2}"), Ok(1));
    cluster.deploy(&started("=y > 1"));
    let second = newest_definition(&cluster);
    assert_eq!(cluster.count("CONDITIONAL_SUBSCRIPTION", "DELETED"), 2);
    assert_eq!(evaluate(&mut cluster, 2, Key::NONE, "{\"x\":2}"), Ok(0));
    assert_eq!(evaluate(&mut cluster, 2, first, "{\"x\":2}"), Ok(0), "the version before does not wait any more");
    assert_eq!(evaluate(&mut cluster, 2, second, "{\"x\":2,\"y\":2}"), Ok(1));
    cluster.complete_jobs();
    let value = ResourceDeletionValue { resource_key: second, tenant_id: support::TENANT.into() };
    cluster.submit(1, Key::NONE, Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value)));
    cluster.settle();
    assert_eq!(evaluate(&mut cluster, 2, Key::NONE, "{\"x\":2,\"y\":2}"), Ok(1), "the version that is left starts");
    cluster.complete_jobs();
    check(&cluster, START_EVENTS);
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&started("=x > 1"));
    let unknown = Key::new(PartitionId(1), 999);
    let rejection = evaluate(&mut cluster, 1, unknown, "{}").expect_err("refused");
    assert_eq!(rejection.rejection_type, RejectionType::NotFound);
    let sentence = format!(
        "Expected to evaluate conditional for process definition key '{unknown}', but no such process was found."
    );
    assert_eq!(&*rejection.reason, sentence);
    let rejection = evaluate(&mut cluster, 1, Key::NONE, "[1]").expect_err("refused");
    assert_eq!(rejection.rejection_type, RejectionType::InvalidArgument);
}

/// More conditions than one command may evaluate are refused, and nothing is started.
#[test]
fn conditions_of_all_start_events_have_to_fit_one_command() {
    let limits = Limits { evaluation_steps_per_command: 50, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    for number in 0..20 {
        let builder = ProcessBuilder::new(&format!("p{number}"));
        let builder = builder.start_event("s", Event::Condition(&format!("=x > {number} and x < 100 + {number}"), ""));
        cluster.deploy(&builder.end("e").to_xml());
    }
    let rejection = evaluate(&mut cluster, 1, Key::NONE, "{\"x\":50}").expect_err("refused");
    assert_eq!(rejection.rejection_type, RejectionType::ExceededBatchRecordSize);
    assert_eq!(cluster.count("PROCESS_INSTANCE", "ELEMENT_ACTIVATING"), 0);
    let definition = newest_definition(&cluster);
    assert_eq!(evaluate(&mut cluster, 1, definition, "{\"x\":50}"), Ok(1));
}

#[test]
fn a_change_is_seen_by_what_lies_inside_of_its_scope() {
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").parallel_gateway("fork");
    let builder = builder.sub_process("left").start("ls").service_task("a", "work").end("le");
    let builder = builder.boundary("on-a", "a", Event::Condition("=x > 10", "")).end("ae").end_sub_process();
    let builder = builder.move_to("left").end("e1").move_to("fork").service_task("b", "work").end("e2");
    let builder = builder.boundary("on-b", "b", Event::Condition("=x > 10", "")).end("be");
    cluster.deploy(&builder.to_xml());
    let instance = cluster.create(1, "p", "{\"x\":1}");
    let [left] = instances(&cluster, "left")[..] else { panic!("one") };
    set(&mut cluster, left, "{\"x\":20}", VariableDocumentUpdateSemantics::Local);
    assert_eq!(triggered(&cluster), BTreeMap::from([("on-a".to_owned(), 1)]), "the other one cannot see it");
    change(&mut cluster, instance, "{\"x\":11}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("on-a".to_owned(), 1), ("on-b".to_owned(), 1)]));
    check(&cluster, &[]);
}

#[test]
fn what_is_inside_of_an_interrupted_scope_is_not_looked_at() {
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").sub_process("sub").start("is").service_task("t", "work");
    let builder = builder.end("ie").boundary("inner", "t", Event::Condition("=x > 10", "")).end("te").end_sub_process();
    let builder = builder.move_to("sub").end("e").boundary("outer", "sub", Event::Condition("=x > 20", "")).end("se");
    cluster.deploy(&builder.to_xml());
    let instance = cluster.create(1, "p", "{}");
    change(&mut cluster, instance, "{\"x\":30}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("outer".to_owned(), 1)]));
    assert_eq!(instances(&cluster, "te").len(), 0);
    check(&cluster, &[]);
}

/// A change evaluates nothing that does not read the variable, and what reads several that change once.
#[test]
fn a_condition_is_evaluated_no_more_often_than_needed() {
    let mut partition = support::Partition::new();
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder = builder.boundary("b", "t", Event::Condition("=x + y + z > 100", "")).non_interrupting().end("be");
    partition.deploy("p.bpmn", builder.to_xml().as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.instance;
    let mut spent = |variables: &str| {
        let value = VariableDocumentValue {
            scope_key: instance,
            update_semantics: VariableDocumentUpdateSemantics::Propagate,
            variables: variables.into(),
            tenant_id: support::TENANT.into(),
        };
        let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
        partition.submit(Key::NONE, payload).spent.evaluation_steps
    };
    assert_eq!(spent("{\"other\":1,\"xx\":2}"), 0);
    assert!(spent("{\"x\":1,\"y\":2,\"z\":3}") > 0);
    let once = spent("{\"x\":2}");
    assert!(once > 0);
    assert_eq!(spent("{\"x\":2}"), 0, "it has the value already");
    assert_eq!(spent("{\"x\":3,\"y\":4,\"z\":5}"), once, "three changes of one command");
}

#[test]
fn many_conditions_are_looked_at_in_parts_and_each_triggers_once() {
    const INSTANCES: usize = 1_000;
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").sub_process("each");
    let builder = builder.multi_instance("=for i in 1..1000 return i", "i").start("is").service_task("t", "work");
    let builder = builder.end("ie").boundary("b", "t", Event::Condition("=x >= i", "")).end("be").end_sub_process();
    cluster.deploy(&builder.move_to("each").end("e").to_xml());
    let instance = cluster.create(1, "p", "{}");
    change(&mut cluster, instance, "{\"x\":400}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("b".to_owned(), 400)]));
    change(&mut cluster, instance, "{\"x\":1000}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("b".to_owned(), INSTANCES)]));
    let rejected = cluster.nodes[0].records.iter().filter(|record| record.record_type != RecordType::Event);
    assert_eq!(rejected.count(), 0, "nothing is triggered that has ended");
    check(&cluster, &[]);
}

/// What is left of a change for later commands is not for conditions that are opened before them: those saw it already.
#[test]
fn a_condition_that_is_opened_after_a_change_triggers_once() {
    let limits = Limits { evaluation_steps_per_command: 5_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let builder = ProcessBuilder::new("p").start("s").sub_process("each");
    let builder = builder.multi_instance("=for i in 1..300 return i", "i").start("is").service_task("t", "work");
    let builder = builder.service_task("u", "more").end("ie");
    let builder = builder.boundary("never", "t", Event::Condition("=x > 100", "")).end("be");
    let builder = builder.boundary("once", "u", Event::Condition("=x > 0", "")).non_interrupting().end("oe");
    cluster.deploy(&builder.end_sub_process().move_to("each").end("e").to_xml());
    let scope_key = cluster.create(1, "p", "{\"x\":0}");
    let value = VariableDocumentValue {
        scope_key,
        update_semantics: VariableDocumentUpdateSemantics::Local,
        variables: "{\"x\":1}".into(),
        tenant_id: support::TENANT.into(),
    };
    let update = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
    let job = cluster.events().find(|record| matches!(record.payload, Payload::Job(JobIntent::Created, _)));
    let job = job.expect("there is a job").key;
    let complete = Payload::Job(JobIntent::Complete, Arc::default());
    cluster.apply_batch(1, vec![Command::new(Key::NONE, update), Command::new(job, complete)]);
    assert!(cluster.node(1).engine.continuation().is_some(), "the change is too much for one command");
    cluster.work(1);
    assert_eq!(triggered(&cluster), BTreeMap::from([("once".to_owned(), 1)]));
    // The next change is seen again.
    change(&mut cluster, scope_key, "{\"x\":2}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("once".to_owned(), 2)]));
    assert_eq!(cluster.cancel(scope_key), None);
    check(&cluster, &[]);
}

/// Clients set both: how many conditions wait, and how many variables one document sets.
#[test]
fn many_conditions_and_many_variables_take_commands_that_are_short() {
    const CONDITIONS: usize = 2_000;
    let limits = Limits::default();
    for (condition, names_read) in [("=now() > date and time(\"2100-01-01T00:00:00Z\")", 0), ("=a + b + x7 < i", 3)] {
        let mut cluster = Cluster::new(1);
        let builder = ProcessBuilder::new("p").start("s").sub_process("each");
        let builder = builder.multi_instance(&format!("=for i in 1..{CONDITIONS} return i"), "i");
        let builder = builder.start("is").catch_event("c", Event::Condition(condition, "")).end("ie").end_sub_process();
        cluster.deploy(&builder.move_to("each").end("e").to_xml());
        let instance = cluster.create(1, "p", "{\"a\":1,\"b\":1000000,\"x7\":1}");
        for variables in [1, 100, 10_000] {
            cluster.nodes[0].steps_max = 0;
            let batches = cluster.nodes[0].batches.len();
            let entries: Vec<String> = (0..variables).map(|number| format!("\"x{number}\":{variables}")).collect();
            change(&mut cluster, instance, &format!("{{{},\"a\":{variables}}}", entries.join(",")));
            let most = limits.evaluation_steps_per_command * 5 / 4;
            assert!(cluster.nodes[0].steps_max <= most, "{} steps in one command", cluster.nodes[0].steps_max);
            let commands = cluster.nodes[0].batches.len() - batches;
            let looks = CONDITIONS * (names_read + 3) * 60 + variables * 60;
            let commands_max = 2 + looks / limits.evaluation_steps_per_command as usize + CONDITIONS / 1_000;
            assert!(commands <= commands_max, "{commands} commands, and not {commands_max}");
        }
        assert_eq!(triggered(&cluster), BTreeMap::new());
        // The last one of the changes is what the conditions wait for.
        change(&mut cluster, instance, "{\"b\":-1000000}");
        let expected = if names_read == 0 { BTreeMap::new() } else { BTreeMap::from([("c".to_owned(), CONDITIONS)]) };
        assert_eq!(triggered(&cluster), expected);
        if names_read == 0 {
            assert_eq!(cluster.cancel(instance), None);
        }
        check(&cluster, &[]);
    }
}

#[test]
fn an_instance_waits_for_so_many_conditions_and_no_more() {
    let limits = Limits { conditional_subscriptions_max: 2, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder = builder.boundary("a", "t", Event::Condition("=a", "")).end("ae");
    let builder = builder.boundary("b", "t", Event::Condition("=b", "")).end("be");
    cluster.deploy(&builder.boundary("c", "t", Event::Condition("=c", "")).end("ce").to_xml());
    let instance = cluster.create(1, "p", "{}");
    let messages: Vec<String> = cluster
        .events()
        .filter_map(|record| match &record.payload {
            Payload::Incident(IncidentIntent::Created, value) => Some(value.error_message.to_string()),
            _ => None,
        })
        .collect();
    let sentence = format!(
        "Expected process instance '{instance}' to wait for at most 2 conditions at once, but 't' would make them more. Let \
         fewer of its elements wait for conditions at the same time."
    );
    assert_eq!(messages, [sentence]);
    assert_eq!(cluster.count("CONDITIONAL_SUBSCRIPTION", "CREATED"), 0);
    assert_eq!(cluster.cancel(instance), None);
    check(&cluster, &[]);
}

/// What takes more than a command may do does not hold, and keeps nobody from going on.
#[test]
fn a_condition_without_end_does_not_hold() {
    let mut cluster = Cluster::new(1);
    let endless = "=count(for i in 1..10000, j in 1..10000 return x + i + j) > 1";
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder = builder.boundary("endless", "t", Event::Condition(endless, "")).end("ee");
    cluster.deploy(&builder.boundary("b", "t", Event::Condition("=x > 1", "update")).end("be").to_xml());
    let instance = cluster.create(1, "p", "{\"x\":1}");
    change(&mut cluster, instance, "{\"x\":2}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("b".to_owned(), 1)]));
    assert_eq!((cluster.count("INCIDENT", "CREATED"), cluster.count("ERROR", "CREATED")), (0, 0));
    check(&cluster, &[]);
}

#[test]
fn a_migrated_instance_keeps_the_condition_that_it_waits_for() {
    let mut cluster = Cluster::new(1);
    let waiting = |id: &str, task: &str, kept: &str, condition: &str, other: &str| {
        let builder = ProcessBuilder::new(id).start("s").service_task(task, "work").end("e");
        let builder = builder.boundary(kept, task, Event::Condition(condition, "")).non_interrupting().end("ke");
        builder.boundary(other, task, Event::Condition("=other", "")).end("oe").to_xml()
    };
    cluster.deploy(&waiting("p", "a", "first", "=x > 1", "gone"));
    let instance = cluster.create(1, "p", "{}");
    cluster.deploy(&waiting("q", "b", "second", "=y > 1", "new"));
    let mapping = |from: &str, to: &str| MigrationMappingInstruction {
        source_element_id: from.into(),
        target_element_id: to.into(),
    };
    let value = ProcessInstanceMigrationValue {
        process_instance_key: instance,
        target_process_definition_key: newest_definition(&cluster),
        mapping_instructions: vec![mapping("a", "b"), mapping("first", "second")],
        ..ProcessInstanceMigrationValue::default()
    };
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
    assert_eq!(cluster.submit(1, instance, payload).expect("an answer").rejection, None);
    let counted = ["CREATED", "MIGRATED", "DELETED"].map(|intent| cluster.count("CONDITIONAL_SUBSCRIPTION", intent));
    assert_eq!(counted, [3, 1, 1]);
    change(&mut cluster, instance, "{\"y\":2}");
    assert_eq!(triggered(&cluster), BTreeMap::new(), "it waits for what it waited for");
    change(&mut cluster, instance, "{\"x\":2}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("second".to_owned(), 1)]));
    change(&mut cluster, instance, "{\"other\":true}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("new".to_owned(), 1), ("second".to_owned(), 1)]));
    check(&cluster, &[]);
}

#[test]
fn an_event_that_waits_for_a_condition_is_migrated() {
    let mut cluster = Cluster::new(1);
    let waiting = |id: &str, event: &str, condition: &str| {
        ProcessBuilder::new(id).start("s").catch_event(event, Event::Condition(condition, "")).end("e").to_xml()
    };
    cluster.deploy(&waiting("p", "first", "=x > 1"));
    let instance = cluster.create(1, "p", "{}");
    cluster.deploy(&waiting("q", "second", "=x > 999"));
    let value = ProcessInstanceMigrationValue {
        process_instance_key: instance,
        target_process_definition_key: newest_definition(&cluster),
        mapping_instructions: vec![MigrationMappingInstruction {
            source_element_id: "first".into(),
            target_element_id: "second".into(),
        }],
        ..ProcessInstanceMigrationValue::default()
    };
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
    assert_eq!(cluster.submit(1, instance, payload).expect("an answer").rejection, None);
    let counted = ["CREATED", "MIGRATED", "DELETED"].map(|intent| cluster.count("CONDITIONAL_SUBSCRIPTION", intent));
    assert_eq!(counted, [1, 1, 0]);
    change(&mut cluster, instance, "{\"x\":2}");
    assert_eq!(triggered(&cluster), BTreeMap::from([("second".to_owned(), 1)]));
    check(&cluster, &[]);
}

/// What a worker gives back, what a message brings and what an error leaves are changes too; the outputs of the activity that a
/// condition is attached to come too late for it.
#[test]
fn variables_change_in_many_ways() {
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder = builder.boundary("late", "t", Event::Condition("=done", "")).end("le");
    let builder = builder.event_sub_process("watch").start_event("on-done", Event::Condition("=done", ""));
    let builder = builder.non_interrupting().end("we").end_sub_process();
    cluster.deploy(&builder.to_xml());
    let noted = ProcessBuilder::new("q").start("s").catch_event("m", Event::Message("note", "=\"k\""));
    let noted = noted.event_sub_process("watch").start_event("on-note", Event::Condition("=noted > 1", "create"));
    cluster.deploy(&noted.end("we").end_sub_process().move_to("m").service_task("t", "other").end("e").to_xml());
    cluster.create(1, "p", "{}");
    cluster.create(1, "q", "{}");
    let job = cluster.events().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, _) => Some(record.key),
        _ => None,
    });
    let value = JobValue { variables: "{\"done\":true}".into(), ..JobValue::default() };
    cluster.submit(1, job.expect("a job"), Payload::Job(JobIntent::Complete, std::sync::Arc::new(value)));
    cluster.settle();
    assert_eq!(triggered(&cluster), BTreeMap::from([("on-done".to_owned(), 1)]));
    cluster.publish(&cluster::Message::new("note", "k").with("{\"noted\":2}")).expect("published");
    cluster.settle();
    assert_eq!(triggered(&cluster), BTreeMap::from([("on-done".to_owned(), 1), ("on-note".to_owned(), 1)]));
    check(&cluster, &[]);
}
