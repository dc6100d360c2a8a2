//! Signals: who gets them, on every partition, and what else happens.

use crate::support;
use std::collections::BTreeMap;

use crate::cluster::{self, Cluster};
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
const START_EVENTS: &[&str] = &["signal_subscriptions", "signal_receivers"];

fn broadcast(name: &str, variables: &str) -> Payload {
    let value = SignalValue {
        signal_name: name.into(),
        variables: variables.into(),
        tenant_id: support::TENANT.into(),
        rest: None,
    };
    Payload::Signal(SignalIntent::Broadcast, Box::new(value))
}

fn send(cluster: &mut Cluster, partition: u16, name: &str, variables: &str) -> Result<Key, Rejection> {
    let reply = cluster.submit(partition, Key::NONE, broadcast(name, variables)).expect("it is answered at once");
    cluster.settle();
    match reply.rejection {
        Some(rejection) => Err(rejection),
        None => Ok(reply.key),
    }
}

fn waiting(id: &str) -> String {
    ProcessBuilder::new(id).start("s").catch_event("wait", Event::Signal("go")).end("e").to_xml()
}

fn started(id: &str) -> String {
    ProcessBuilder::new(id).start_event("s", Event::Signal("go")).service_task("t", "work").end("e").to_xml()
}

/// How often each element of a type of event was triggered, by its id.
fn triggered(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for record in cluster.events() {
        if let Payload::ProcessEvent(ProcessEventIntent::Triggering, value) = &record.payload {
            *count.entry(value.target_element_id.to_string()).or_default() += 1;
        }
    }
    count
}

fn completed(cluster: &Cluster, element_id: &str) -> usize {
    let is_meant = |record: &&Record| {
        matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)
            if *value.element_id == *element_id)
    };
    cluster.events().filter(is_meant).count()
}

fn incidents(cluster: &Cluster) -> Vec<(Key, String)> {
    let created = cluster.events().filter_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, value) => Some((record.key, value.error_message.to_string())),
        _ => None,
    });
    created.collect()
}

fn check(cluster: &Cluster, stays: &[&str]) {
    assert_eq!(cluster.rows_but(&[STAYS, stays].concat()), Vec::<String>::new());
    cluster.check();
}

#[test]
fn a_signal_reaches_all_that_wait_on_every_partition_once() {
    let mut cluster = Cluster::new(3);
    cluster.deploy(&waiting("p"));
    for partition in [1, 1, 2, 2, 3] {
        cluster.create(partition, "p", "{}");
    }
    let key = send(&mut cluster, 2, "go", "{\"a\":1}").expect("broadcast");
    assert_eq!(key.partition(), Some(PartitionId(2)));
    assert_eq!((cluster.count("SIGNAL", "BROADCASTED"), completed(&cluster, "p")), (3, 5));
    let values = cluster.events().filter(|record| record.payload.value_type() == ValueType::Variable).count();
    assert_eq!(values, 5, "each has what the signal brings");
    check(&cluster, &[]);
}

#[test]
fn what_is_sent_again_reaches_nobody_again() {
    let mut cluster = Cluster::new(3);
    cluster.deploy(&waiting("p"));
    cluster.create(3, "p", "{}");
    let reply = cluster.submit(1, Key::NONE, broadcast("go", ""));
    assert_eq!(reply.expect("an answer").rejection, None);
    cluster.send_again();
    cluster.settle();
    assert_eq!((cluster.count("SIGNAL", "BROADCASTED"), completed(&cluster, "p")), (3, 1));
    cluster.create(3, "p", "{}");
    cluster.send_again();
    cluster.settle();
    assert_eq!(completed(&cluster, "p"), 1, "an instance that came later does not get what came before");
}

#[test]
fn each_broadcast_starts_one_instance_in_the_whole_cluster() {
    let mut cluster = Cluster::new(3);
    cluster.deploy(&started("p"));
    assert_eq!(cluster.count("SIGNAL_SUBSCRIPTION", "CREATED"), 3, "every partition knows the start event");
    for partition in [1, 2, 3] {
        send(&mut cluster, partition, "go", "{\"a\":1}").expect("broadcast");
    }
    let instances: Vec<u16> = cluster
        .events()
        .filter(|record| {
            matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value)
                if value.bpmn_element_type == BpmnElementType::Process)
        })
        .filter_map(|record| record.key.partition().map(|partition| partition.0))
        .collect();
    assert_eq!(instances, [1, 2, 3], "where the broadcast began");
    cluster.complete_jobs();
    check(&cluster, START_EVENTS);
}

#[test]
fn the_newest_version_starts_and_after_its_deletion_the_one_before() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&started("p"));
    let other = ProcessBuilder::new("p").start_event("s", Event::Signal("other")).service_task("t", "work").end("e");
    cluster.deploy(&other.to_xml());
    send(&mut cluster, 1, "go", "").expect("broadcast");
    assert_eq!(triggered(&cluster).get("s"), None, "the version before does not wait any more");
    send(&mut cluster, 2, "other", "").expect("broadcast");
    assert_eq!(triggered(&cluster).get("s"), Some(&1));
    cluster.complete_jobs();
    let newest = cluster.events().filter_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, value) => Some(value.metadata.process_definition_key),
        _ => None,
    });
    let resource_key = newest.max().expect("a definition");
    let value = ResourceDeletionValue { resource_key, tenant_id: support::TENANT.into() };
    cluster.submit(1, Key::NONE, Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value)));
    cluster.settle();
    send(&mut cluster, 2, "other", "").expect("broadcast");
    send(&mut cluster, 2, "go", "").expect("broadcast");
    assert_eq!(triggered(&cluster).get("s"), Some(&2), "only the version that is left starts");
    cluster.complete_jobs();
    check(&cluster, START_EVENTS);
}

#[test]
fn events_interrupt_or_not() {
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder =
        builder.boundary("note", "t", Event::Signal("note")).non_interrupting().output("=n", "noted").end("en");
    let builder = builder.boundary("stop", "t", Event::Signal("=stopped")).end("es");
    let builder = builder.event_sub_process("inner").start_event("again", Event::Signal("note")).non_interrupting();
    cluster.deploy(&builder.end("ei").end_sub_process().to_xml());
    let instance = cluster.create(1, "p", "{\"stopped\":\"stop-1\"}");
    send(&mut cluster, 1, "note", "{\"n\":1}").expect("broadcast");
    send(&mut cluster, 1, "note", "{\"n\":2}").expect("broadcast");
    let expected = [("again".to_owned(), 2), ("note".to_owned(), 2)];
    assert_eq!(triggered(&cluster), BTreeMap::from(expected));
    send(&mut cluster, 1, "stop-1", "").expect("broadcast");
    send(&mut cluster, 1, "stop-1", "").expect("broadcast");
    assert_eq!(triggered(&cluster).get("stop"), Some(&1), "it waits no more");
    assert_eq!((completed(&cluster, "es"), completed(&cluster, "p")), (1, 1));
    assert!(cluster.cancel(instance).is_some(), "it has ended");
    check(&cluster, &[]);
}

#[test]
fn events_throw_with_their_own_variables() {
    let mut cluster = Cluster::new(2);
    let builder = ProcessBuilder::new("thrower").start("s").signal_throw("throw", "=name");
    let builder = builder.input("=secret", "told").signal_end("e", "over");
    cluster.deploy(&builder.to_xml());
    let catcher = ProcessBuilder::new("catcher").start("s").catch_event("wait", Event::Signal("go"));
    cluster.deploy(&catcher.catch_event("last", Event::Signal("over")).end("e").to_xml());
    cluster.create(2, "catcher", "{}");
    cluster.create(1, "thrower", "{\"name\":\"go\",\"secret\":7,\"other\":8}");
    cluster.settle();
    assert_eq!(completed(&cluster, "catcher"), 1);
    let brought: Vec<String> = cluster
        .events()
        .filter_map(|record| match &record.payload {
            Payload::ProcessEvent(ProcessEventIntent::Triggering, value) => Some(value.variables.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(brought, ["{\"told\":7}", "{}"]);
    check(&cluster, &[]);
}

#[test]
fn names_that_fail_are_incidents_that_can_be_resolved() {
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").catch_event("wait", Event::Signal("=name"));
    cluster.deploy(&builder.signal_throw("throw", "=thrown").end("e").to_xml());
    cluster.create(1, "p", "{\"name\":\"\",\"thrown\":5}");
    let [(incident, message)] = &incidents(&cluster)[..] else { panic!("an incident") };
    assert_eq!(message, "Expected the signal name of 'wait' to have 1 to 512 bytes, but it has 0");
    let instance = cluster.events().find_map(|record| match &record.payload {
        Payload::ProcessInstanceCreation(_, value) => Some(value.process_instance_key),
        _ => None,
    });
    let set = |variables: &str| {
        let value = VariableDocumentValue {
            scope_key: instance.expect("an instance"),
            update_semantics: VariableDocumentUpdateSemantics::Propagate,
            variables: variables.into(),
            tenant_id: support::TENANT.into(),
        };
        Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
    };
    let incident = *incident;
    cluster.submit(1, Key::NONE, set("{\"name\":\"go\"}"));
    cluster.submit(1, incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    send(&mut cluster, 1, "go", "").expect("broadcast");
    let [_, (incident, message)] = &incidents(&cluster)[..] else { panic!("another incident") };
    assert_eq!(message, "Expected result of the expression 'thrown' to be 'STRING', but was 'NUMBER'.");
    let incident = *incident;
    cluster.submit(1, Key::NONE, set("{\"thrown\":\"x\"}"));
    cluster.submit(1, incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    assert_eq!(completed(&cluster, "p"), 1);
    check(&cluster, &[]);
}

#[test]
fn what_cannot_be_broadcast_is_refused() {
    let mut cluster = Cluster::new(2);
    let long = "n".repeat(513);
    let refused = |cluster: &mut Cluster, name: &str, variables: &str| {
        let rejection = send(cluster, 1, name, variables).expect_err("refused");
        (rejection.rejection_type, rejection.reason.to_string())
    };
    let (kind, reason) = refused(&mut cluster, "", "");
    assert_eq!(kind, RejectionType::InvalidArgument);
    assert_eq!(reason, "Expected the name of a signal to have 1 to 512 bytes, but it has 0");
    assert_eq!(
        refused(&mut cluster, &long, "").1,
        "Expected the name of a signal to have 1 to 512 bytes, but it has 513"
    );
    assert_eq!(refused(&mut cluster, "go", "[1]").0, RejectionType::InvalidArgument);
    assert_eq!(cluster.count("SIGNAL", "BROADCASTED"), 0);
}

/// Between two parts of the receivers other commands have their turn, and those that come meanwhile do not get the signal.
#[test]
fn a_signal_to_ten_thousand_goes_out_in_parts() {
    const INSTANCES: usize = 10_000;
    let mut cluster = Cluster::new(1);
    let inner =
        ProcessBuilder::new("p").start("s").sub_process("each").multi_instance("=for i in 1..2000 return i", "i");
    let inner = inner.start("si").catch_event("wait", Event::Signal("go")).end("ei").end_sub_process();
    cluster.deploy(&inner.move_to("each").end("e").to_xml());
    cluster.deploy(&waiting("late"));
    for _ in 0..INSTANCES / 2_000 {
        cluster.create(1, "p", "{}");
    }
    let request = Some(Request { node: 9, number: 1 });
    let command = Command { request, ..Command::new(Key::NONE, broadcast("go", "{\"a\":1}")) };
    let before = cluster.nodes[0].records.len();
    cluster.apply_batch(1, vec![command]);
    let first = cluster.nodes[0].records.len() - before;
    assert!(first < 2_000, "the first part has {first} records");
    cluster.apply_batch(1, vec![Command::new(Key::NONE, cluster::creation("late", "{}"))]);
    cluster.work(1);
    assert_eq!((completed(&cluster, "ei"), completed(&cluster, "p")), (INSTANCES, INSTANCES / 2_000));
    assert_eq!((triggered(&cluster)["wait"], completed(&cluster, "late")), (INSTANCES, 0));
    send(&mut cluster, 1, "go", "").expect("broadcast");
    assert_eq!(completed(&cluster, "late"), 1);
    assert_eq!(cluster.nodes[0].engine.statistics().work_entries, 0);
    assert_eq!(cluster.rows_but(STAYS), Vec::<String>::new());
}

/// What one signal has begun is done before many others begin.
#[test]
fn a_signal_waits_until_there_is_room_in_the_work_queue() {
    let limits = Limits { work_entries_max: 2, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let again = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    cluster.deploy(&again.boundary("b", "t", Event::Signal("go")).non_interrupting().end("eb").to_xml());
    cluster.deploy(&ProcessBuilder::new("thrower").start("s").signal_throw("throw", "go").end("e").to_xml());
    for _ in 0..150 {
        cluster.create(1, "p", "{}");
    }
    let request = Some(Request { node: 9, number: 1 });
    let signal = || Command { request, ..Command::new(Key::NONE, broadcast("go", "")) };
    for _ in 0..3 {
        cluster.apply_batch(1, vec![signal()]);
    }
    cluster.apply_batch(1, vec![Command::new(Key::NONE, cluster::creation("thrower", "{}"))]);
    let refused: Vec<_> = cluster.nodes[0].replies.iter().filter_map(|reply| reply.rejection.clone()).collect();
    let [rejection] = &refused[..] else { panic!("the third one is refused: {refused:?}") };
    let expected = "Expected to broadcast a signal when what others have begun is done, but 2 entries of the work queue of \
                    partition 1 wait. Try again later.";
    assert_eq!((rejection.rejection_type, &*rejection.reason), (RejectionType::InvalidState, expected));
    let [(incident, message)] = &incidents(&cluster)[..] else { panic!("an incident of the event that throws") };
    assert_eq!(message, expected);
    let incident = *incident;
    cluster.work(1);
    assert_eq!(triggered(&cluster)["b"], 300);
    cluster.submit(1, incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    assert_eq!((triggered(&cluster)["b"], completed(&cluster, "thrower")), (450, 1));
}

/// A process that starts itself would never end; the instance that goes on after so many rounds is put aside.
#[test]
fn signals_that_cause_one_another_come_to_an_end() {
    let limits = Limits { continuations_max: 20, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let builder = ProcessBuilder::new("p").start_event("s", Event::Signal("go")).signal_end("e", "go");
    cluster.deploy(&builder.to_xml());
    send(&mut cluster, 1, "go", "").expect("broadcast");
    assert_eq!(cluster.count("ERROR", "CREATED"), 1);
    assert_eq!(cluster.nodes[0].engine.statistics().work_entries, 0);
    cluster.nodes[0].engine.audit().expect("what is counted is there");
}

/// What one instance has no room for is its own failure: the broadcast is not refused for it, and the others go on.
#[test]
fn an_instance_without_room_for_the_variables_is_put_aside_alone() {
    let limits = Limits { root_variable_bytes_max: 10_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder = builder.boundary("fill", "t", Event::Signal("=fill")).non_interrupting().end("filled");
    cluster.deploy(&builder.boundary("note", "t", Event::Signal("go")).non_interrupting().end("noted").to_xml());
    let text = |bytes: usize| "x".repeat(bytes);
    for (fill, bytes) in [("no", 10), ("no", 10), ("yes", 8_000), ("no", 10)] {
        cluster.create(1, "p", &format!("{{\"fill\":\"{fill}\",\"text\":\"{}\"}}", text(bytes)));
    }
    // What events bring is taken up to twice as much; what goes on with it is an incident.
    send(&mut cluster, 1, "yes", &format!("{{\"more\":\"{}\"}}", text(9_000))).expect("broadcast");
    assert_eq!((incidents(&cluster).len(), cluster.count("ERROR", "CREATED")), (1, 0));
    send(&mut cluster, 1, "go", &format!("{{\"text\":\"{}\"}}", text(4_000))).expect("broadcast");
    assert_eq!(completed(&cluster, "noted"), 3);
    assert_eq!(cluster.count("ERROR", "CREATED"), 1);
    cluster.nodes[0].engine.audit().expect("what is counted is there");
}
