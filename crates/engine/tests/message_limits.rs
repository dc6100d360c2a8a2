//! Messages at the limits of their sizes and names.

use crate::cluster::{self, Cluster, Message};
use crate::support;
use engine::Limits;
use model_builder::{Event, ProcessBuilder};
use protocol::*;

const KEY_K: &str = "{\"key\":\"k\"}";

fn waiting(id: &str) -> String {
    ProcessBuilder::new(id).start("s").catch_event("wait", Event::Message("m", "=key")).end("e").to_xml()
}

fn started(id: &str) -> String {
    ProcessBuilder::new(id).start_event("s", Event::Message("m", "")).service_task("t", "work").end("e").to_xml()
}

#[test]
fn a_message_is_refused_when_its_variables_are_too_large_for_all_who_wait_together() {
    let limits = Limits { message_correlations_bytes_max: 10_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    for id in ["a", "b", "c"] {
        cluster.deploy(&waiting(id));
        cluster.create(1, id, KEY_K);
    }
    cluster.deploy(&started("d"));
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(2_600));
    let refused = cluster.publish(&Message::new("m", "k").with(&variables)).expect_err("four times is too much");
    assert_eq!(refused.rejection_type, RejectionType::InvalidArgument);
    assert!(
        refused.reason.starts_with("Expected the variables of a message to have at most 10000 bytes"),
        "{refused:?}"
    );
    let smaller = format!("{{\"text\":\"{}\"}}", "x".repeat(2_400));
    cluster.publish(&Message::new("m", "k").with(&smaller)).expect("four times fits");
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 3);
    cluster.check();
}

fn on_boundary(id: &str) -> String {
    let builder = ProcessBuilder::new(id).start("s").service_task("t", "work").end("e");
    builder.boundary("b", "t", Event::Message("m", "=key")).non_interrupting().end("eb").to_xml()
}

/// Two partitions, and the variables of instances that wait for messages of the second one.
fn with_two_partitions(limits: Limits) -> (Cluster, String, String) {
    let key = (0..).map(|number| format!("key{number}")).find(|key| partition_for_correlation_key(key, 2).0 == 2);
    let key = key.expect("one of the keys belongs there");
    let variables = format!("{{\"key\":\"{key}\"}}");
    (Cluster::with_limits(2, limits), key, variables)
}

/// Messages are on their way to many instances of a process: the next one goes to one of them.
#[test]
fn of_all_busy_instances_of_a_process_one_is_a_receiver() {
    let limits = Limits { message_correlations_bytes_max: 10_000, ..Limits::default() };
    let (mut cluster, key, variables) = with_two_partitions(limits);
    for id in ["p", "q"] {
        cluster.deploy(&on_boundary(id));
        for _ in 0..5 {
            cluster.create(1, id, &variables);
        }
    }
    cluster.settle();
    let message = Message::new("m", &key);
    for _ in 0..5 {
        cluster.publish(&message).expect("two wait");
    }
    let text = |bytes: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(bytes));
    cluster.publish(&message.with(&text(4_900))).expect("twice fits");
    let refused = cluster.publish(&message.with(&text(5_100))).expect_err("twice is too much");
    assert_eq!(refused.rejection_type, RejectionType::InvalidArgument);
    cluster.settle();
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 12);
    cluster.check();
}

/// What one instance waits for does not depend on the partition of another one that is busy.
#[test]
fn a_message_for_an_instance_that_waits_is_taken_while_the_partition_of_a_busy_one_does_not_acknowledge() {
    let limits = Limits { outbox_commands_max: 1, ..Limits::default() };
    let (mut cluster, key, variables) = with_two_partitions(limits);
    cluster.deploy(&on_boundary("p"));
    cluster.create(1, "p", &variables);
    cluster.settle();
    let message = Message::new("m", &key);
    cluster.publish(&message).expect("one waits");
    let refused = cluster.publish(&message).expect_err("its partition does not acknowledge");
    assert_eq!(refused.rejection_type, RejectionType::InvalidState);
    cluster.submit(2, Key::NONE, cluster::creation("p", &variables));
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 0);
    cluster.publish(&message).expect("another one waits");
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 1);
    cluster.settle();
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 2);
    cluster.check();
}

#[test]
fn work_that_carries_much_waits_in_entries_of_a_limited_size() {
    let limits = Limits { bytes_per_command: 20_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    for number in 0..20 {
        let id = format!("p{number}");
        cluster.deploy(&waiting(&id));
        cluster.create(1, &id, KEY_K);
    }
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(5_000));
    cluster.publish(&Message::new("m", "k").with(&variables)).expect("published");
    let bytes = cluster.events().filter(|record| matches!(record.payload, Payload::Work(WorkIntent::Enqueued, _)));
    let bytes: Vec<usize> = bytes.map(|record| encode_to_vec(record).len()).collect();
    assert!(bytes.len() >= 7 && bytes.iter().all(|bytes| *bytes <= 25_000), "{bytes:?}");
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 20);
    cluster.check();
}

#[test]
fn what_would_not_fit_the_log_of_another_partition_is_refused_where_it_would_be_sent() {
    let limits = Limits { outbox_command_bytes_max: 4_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(2, limits);
    cluster.deploy(&waiting("p"));
    let other = if partition_for_correlation_key("k", 2) == PartitionId(1) { 2 } else { 1 };
    cluster.create(other, "p", KEY_K);
    cluster.settle();
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(5_000));
    let refused = cluster.publish(&Message::new("m", "k").with(&variables)).expect_err("it cannot be sent");
    assert!(
        refused.reason.starts_with("Expected a command for another partition to have at most 4000 bytes"),
        "{refused:?}"
    );
    assert!(cluster.way.is_empty(), "nothing is sent");
    let large = waiting("large").replace("<bpmn:process ", &format!("<!--{}--><bpmn:process ", "x".repeat(4_000)));
    let resource = DeploymentResource { resource_name: "p.bpmn".into(), resource: large.as_bytes().into() };
    let value =
        DeploymentValue { resources: vec![resource], tenant_id: support::TENANT.into(), ..DeploymentValue::default() };
    let reply = cluster.submit(1, Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
    let refused = reply.and_then(|reply| reply.rejection).expect("refused");
    assert!(
        refused.reason.starts_with("Expected the resources of a deployment to have at most 3000 bytes"),
        "{refused:?}"
    );
    cluster.publish(&Message::new("m", "k")).expect("a smaller message is sent");
    cluster.settle();
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 1);
    cluster.check();
}

#[test]
fn names_at_their_limit_fit_every_key() {
    let name = |letter: &str| letter.repeat(512);
    // What a client gives may hold the characters that take twice their room in a key.
    let key = format!("{}{}", "\u{1}".repeat(100), "k".repeat(312));
    let mut cluster = Cluster::new(1);
    let id = name("p");
    let process = ProcessBuilder::new("P")
        .version_tag(&name("v"))
        .start(&name("s"))
        .catch_event(&name("c"), Event::Message(&name("m"), "=key"))
        .service_task(&name("t"), &name("j"))
        .multi_instance("=[1]", &name("i"))
        .output_collection(&name("o"), "=1")
        .end("end");
    cluster.deploy(&process.to_xml().replace("\"P\"", &format!("\"{id}\"")));
    let name_m = name("m");
    let message_id = name("d");
    let variables = format!("{{\"key\":\"{}\"}}", key.replace('\u{1}', "\\u0001"));
    // One is buffered, by its id, before the instance waits for it; one comes when it does.
    let buffered = Message { id: &message_id, ..Message::new(&name_m, &key).kept(100_000) };
    cluster.publish(&buffered).expect("published");
    cluster.create(1, &id, &variables);
    cluster.create(1, &id, &variables);
    cluster.publish(&Message::new(&name_m, &key).with(&variables)).expect("published");
    cluster.complete_jobs();
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 2);
    let ended = cluster.events().filter(|record| {
        matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    });
    assert_eq!(ended.count(), 2);
    let rejected = cluster.nodes[0].records.iter().filter(|record| record.record_type != RecordType::Event);
    assert_eq!(rejected.count(), 0);
    cluster.check();
}

fn deployment(xml: &str) -> Payload {
    let resource =
        DeploymentResource { resource_name: "p.bpmn".into(), resource: std::sync::Arc::from(xml.as_bytes()) };
    let tenant_id = support::TENANT.into();
    let value = DeploymentValue { resources: vec![resource], tenant_id, ..DeploymentValue::default() };
    Payload::Deployment(DeploymentIntent::Create, Box::new(value))
}

#[test]
fn deployments_are_refused_while_many_wait_for_a_partition_that_does_not_acknowledge() {
    let limits = Limits { pending_distributions_max: 2, ..Limits::default() };
    let mut cluster = Cluster::with_limits(2, limits);
    for id in ["a", "b"] {
        assert_eq!(cluster.submit(1, Key::NONE, deployment(&waiting(id))), None, "partition 2 has not acknowledged");
    }
    let refused = cluster.submit(1, Key::NONE, deployment(&waiting("c"))).and_then(|reply| reply.rejection);
    let refused = refused.expect("it is refused at once");
    assert_eq!(refused.rejection_type, RejectionType::InvalidState);
    let expected = "2 deployments and deletions before it wait, the oldest for partition 2, which does not acknowledge";
    assert!(refused.reason.contains(expected), "{refused:?}");
    assert_eq!(cluster.node(1).engine.outbox(PartitionId(2), 0, 10).len(), 2, "the outbox does not grow");
    cluster.settle();
    cluster.deploy(&waiting("c"));
    cluster.check();
}

#[test]
fn subscriptions_are_incidents_while_many_commands_wait_for_their_partition() {
    let limits = Limits { outbox_commands_max: 3, ..Limits::default() };
    let mut cluster = Cluster::with_limits(2, limits);
    cluster.deploy(&waiting("a"));
    let key = (0..).map(|number| format!("key{number}")).find(|key| partition_for_correlation_key(key, 2).0 == 2);
    let variables = format!("{{\"key\":\"{}\"}}", key.expect("one of the keys belongs there"));
    for _ in 0..4 {
        cluster.submit(1, Key::NONE, cluster::creation("a", &variables));
    }
    let incidents: Vec<(Key, Text)> = cluster
        .events()
        .filter_map(|record| match &record.payload {
            Payload::Incident(IncidentIntent::Created, incident) => Some((record.key, incident.error_message.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(incidents.len(), 1);
    let expected = "Expected partition 2 to acknowledge what it is sent, but 3 commands for it wait.";
    assert!(incidents[0].1.starts_with(expected), "{incidents:?}");
    assert_eq!(cluster.node(1).engine.outbox(PartitionId(2), 0, 10).len(), 3, "the outbox does not grow");
    cluster.settle();
    cluster.submit(1, incidents[0].0, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    cluster.settle();
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "CREATED"), 4);
    cluster.check();
}
