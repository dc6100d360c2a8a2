//! Messages whose senders wait for the instance that takes them.

use crate::cluster::Cluster;
use crate::shared::{check_nothing_stays, waiting};
use crate::support::TENANT;
use engine::Reply;
use model_builder::{Event, ProcessBuilder};
use protocol::*;

const KEY_K: &str = "{\"key\":\"k\"}";

fn correlation(name: &str, correlation_key: &str) -> Payload {
    let value = MessageCorrelationValue {
        name: name.into(),
        correlation_key: correlation_key.into(),
        variables: "{\"a\":1}".into(),
        tenant_id: TENANT.into(),
        ..MessageCorrelationValue::default()
    };
    Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, Box::new(value))
}

fn started(id: &str) -> String {
    ProcessBuilder::new(id).start_event("s", Event::Message("m", "")).service_task("t", "work").end("e").to_xml()
}

/// Where the messages of `k` arrive in a cluster of two partitions, and where they do not.
fn partitions() -> (u16, u16) {
    let here = partition_for_correlation_key("k", 2).0;
    (here, 3 - here)
}

/// The instance that took the message of an answer.
fn taken_by(reply: &Reply) -> Key {
    assert_eq!(reply.rejection, None);
    match &reply.payload {
        Payload::MessageCorrelation(MessageCorrelationIntent::Correlated, value) => {
            assert_eq!(value.message_key, reply.key);
            value.process_instance_key
        }
        other => panic!("unexpected answer {other:?}"),
    }
}

fn check_refused(reply: &Reply) {
    let rejection = reply.rejection.as_ref().expect("nothing takes it");
    assert_eq!(rejection.rejection_type, RejectionType::NotFound);
    assert_eq!(
        rejection.reason,
        "Expected to find subscription for message with name 'm' and correlation key 'k', but none was found."
    );
}

/// The events of messages, in their order.
fn events(cluster: &Cluster) -> Vec<String> {
    let events = cluster.events().filter_map(|record| match &record.payload {
        Payload::Message(..) | Payload::MessageCorrelation(..) | Payload::MessageStartEventSubscription(..) => {
            Some(format!("{} {}", record.payload.value_type().name(), record.payload.intent_name()))
        }
        Payload::MessageSubscription(intent, _) if intent.name() != "CREATED" => {
            Some(format!("MESSAGE_SUBSCRIPTION {}", intent.name()))
        }
        _ => None,
    });
    events.collect()
}

#[test]
fn an_instance_takes_the_message_and_its_key_is_the_answer() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    let instance = cluster.create(1, "p", KEY_K);
    let reply = cluster.submit(1, Key::NONE, correlation("m", "k")).expect("an answer");
    assert_eq!(taken_by(&reply), instance);
    let expected = [
        "MESSAGE_CORRELATION CORRELATING",
        "MESSAGE PUBLISHED",
        "MESSAGE_SUBSCRIPTION CORRELATING",
        "MESSAGE EXPIRED",
        "MESSAGE_SUBSCRIPTION CORRELATED",
        "MESSAGE_CORRELATION CORRELATED",
    ];
    assert_eq!(events(&cluster), expected);
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_message_that_nobody_waits_for_is_refused_and_not_kept() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    check_refused(&cluster.submit(1, Key::NONE, correlation("m", "k")).expect("an answer"));
    let expected = [
        "MESSAGE_CORRELATION CORRELATING",
        "MESSAGE PUBLISHED",
        "MESSAGE_CORRELATION NOT_CORRELATED",
        "MESSAGE EXPIRED",
    ];
    assert_eq!(events(&cluster), expected);
    cluster.create(1, "p", KEY_K);
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "CORRELATING"), 0, "it came too late");
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_instance_that_the_message_starts_is_told_at_once() {
    let mut cluster = Cluster::new(2);
    let (here, other) = partitions();
    cluster.deploy(&started("q"));
    cluster.deploy(&waiting("p"));
    cluster.create(other, "p", KEY_K);
    cluster.settle();
    let reply = cluster.submit(here, Key::NONE, correlation("m", "k")).expect("an answer before the other partition's");
    assert_eq!(taken_by(&reply).partition(), Some(PartitionId(here)));
    cluster.settle();
    assert_eq!(cluster.count("MESSAGE_CORRELATION", "CORRELATED"), 1);
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 1, "the waiting one has it too");
    // The started instance holds the lock, and nothing else waits.
    check_refused(&cluster.submit(here, Key::NONE, correlation("m", "k")).expect("an answer"));
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_instance_of_another_partition_is_awaited_and_the_first_one_told() {
    let mut cluster = Cluster::new(2);
    let (here, other) = partitions();
    cluster.deploy(&waiting("p"));
    cluster.deploy(&waiting("q"));
    let instances = [cluster.create(other, "p", KEY_K), cluster.create(other, "q", KEY_K)];
    cluster.settle();
    assert_eq!(
        cluster.submit(here, Key::NONE, correlation("m", "k")),
        None,
        "the answer comes from the other partition"
    );
    let before = cluster.node(here).replies.len();
    cluster.settle();
    let replies = cluster.node(here).replies.split_off(before);
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert!(instances.contains(&taken_by(&replies[0])));
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 2);
    assert_eq!(cluster.count("MESSAGE_CORRELATION", "CORRELATED"), 1);
    check_nothing_stays(&mut cluster);
}

#[test]
fn the_sender_learns_that_all_instances_had_ended() {
    let mut cluster = Cluster::new(2);
    let (here, other) = partitions();
    cluster.deploy(&waiting("p"));
    cluster.deploy(&waiting("q"));
    let instances = [cluster.create(other, "p", KEY_K), cluster.create(other, "q", KEY_K)];
    cluster.settle();
    assert_eq!(cluster.submit(here, Key::NONE, correlation("m", "k")), None);
    let before = cluster.node(here).replies.len();
    for instance in instances {
        assert_eq!(cluster.cancel(instance), None);
    }
    cluster.settle();
    let replies = cluster.node(here).replies.split_off(before);
    assert_eq!(replies.len(), 1, "{replies:?}");
    check_refused(&replies[0]);
    assert_eq!(cluster.count("MESSAGE_CORRELATION", "NOT_CORRELATED"), 1);
    check_nothing_stays(&mut cluster);
}

#[test]
fn one_instance_that_takes_the_message_is_enough() {
    let mut cluster = Cluster::new(2);
    let (here, other) = partitions();
    cluster.deploy(&waiting("p"));
    cluster.deploy(&waiting("q"));
    let ended = cluster.create(other, "p", KEY_K);
    let living = cluster.create(other, "q", KEY_K);
    cluster.settle();
    assert_eq!(cluster.submit(here, Key::NONE, correlation("m", "k")), None);
    assert_eq!(cluster.cancel(ended), None);
    let before = cluster.node(here).replies.len();
    cluster.settle();
    let replies = cluster.node(here).replies.split_off(before);
    assert_eq!(replies.iter().map(taken_by).collect::<Vec<_>>(), [living]);
    check_nothing_stays(&mut cluster);
}

#[test]
fn unusable_correlations_are_refused() {
    let mut cluster = Cluster::new(2);
    let (here, other) = partitions();
    let refused = |cluster: &mut Cluster, partition, payload| {
        cluster.submit(partition, Key::NONE, payload).and_then(|reply| reply.rejection).expect("refused")
    };
    let rejection = refused(&mut cluster, other, correlation("m", "k"));
    assert_eq!(rejection.rejection_type, RejectionType::InvalidState);
    assert!(
        rejection.reason.starts_with("Expected to correlate a message with correlation key 'k' on the partition of")
    );
    let rejection = refused(&mut cluster, here, correlation(&"x".repeat(513), "k"));
    assert_eq!(rejection.rejection_type, RejectionType::InvalidArgument);
    assert_eq!(cluster.events().count(), 0, "nothing happened");
}
