//! A partition whose data was restored begins another life: nobody confuses what belongs to the two.

use crate::cluster::Cluster;
use crate::support;
use engine::{Engine, Output};
use model_builder::ProcessBuilder;
use protocol::*;

fn process(id: &str) -> String {
    ProcessBuilder::new(id).start("start").service_task("task", "work").end("end").to_xml()
}

/// Deploys on the first partition; what goes to the others stays on the way.
fn deploy(cluster: &mut Cluster, id: &str) {
    let resource =
        DeploymentResource { resource_name: format!("{id}.bpmn").into(), resource: process(id).as_bytes().into() };
    let value =
        DeploymentValue { resources: vec![resource], tenant_id: support::TENANT.into(), ..DeploymentValue::default() };
    cluster.apply(1, vec![Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))]);
}

fn raise(incarnation: u64, key_counter: u64, position: u64) -> Command {
    let value = IncarnationValue { incarnation, key_counter, position };
    Command::of_system(Key::NONE, Payload::Incarnation(IncarnationIntent::Raise, Box::new(value)))
}

/// Puts the data of a partition back to what it was after some batches, as a restored backup would.
fn restore(cluster: &mut Cluster, partition: u16, batches: usize, incarnation: u64) {
    let node = cluster.node(partition);
    let (position, key_counter) = (node.engine.last_position(), 1_000);
    node.engine = Engine::in_memory(node.options);
    node.batches.truncate(batches);
    node.records.clear();
    for (index, batch) in node.batches.iter().enumerate() {
        let mut output = Output::default();
        node.engine.apply(index as u64 + 1, batch, &mut output).expect("the state is sound");
        node.records.append(&mut output.records);
    }
    cluster.apply(partition, vec![raise(incarnation, key_counter, position)]);
    assert_eq!(cluster.node(partition).engine.incarnation(), incarnation);
}

/// Sends again until nothing waits.
fn heal(cluster: &mut Cluster) {
    for _ in 0..5 {
        cluster.send_again();
        cluster.settle();
    }
    for node in &cluster.nodes {
        assert_eq!(node.engine.outbox_partitions(), [], "nothing waits for ever");
    }
    cluster.check();
}

fn processes(cluster: &mut Cluster, partition: u16) -> Vec<String> {
    let id = |record: &Record| match &record.payload {
        Payload::Process(ProcessIntent::Created, value) => Some(value.metadata.bpmn_process_id.to_string()),
        _ => None,
    };
    let mut ids: Vec<String> = cluster.node(partition).records.iter().filter_map(id).collect();
    ids.sort();
    ids
}

#[test]
fn a_restored_sender_is_neither_ignored_nor_confused_with_its_earlier_life() {
    let mut cluster = Cluster::new(2);
    deploy(&mut cluster, "a");
    cluster.settle();
    let backup = cluster.node(1).batches.len();
    // Both arrive, and are forgotten by the restored partition. One of their acknowledgements is late.
    deploy(&mut cluster, "b");
    deploy(&mut cluster, "c");
    let of_old_life = cluster.way.clone();
    for (partition, command) in std::mem::take(&mut cluster.way) {
        cluster.apply(partition.0, vec![command]);
    }
    let late = std::mem::take(&mut cluster.way);
    assert_eq!(late.len(), 2, "both are acknowledged");
    restore(&mut cluster, 1, backup, 2);
    deploy(&mut cluster, "d");
    deploy(&mut cluster, "e");
    cluster.way.splice(0..0, late);
    heal(&mut cluster);
    assert_eq!(processes(&mut cluster, 2), ["a", "b", "c", "d", "e"], "what is new has arrived, once");

    let before = cluster.node(2).records.len();
    cluster.way.extend(of_old_life);
    cluster.settle();
    let refused: Vec<Record> = cluster.node(2).records[before..].to_vec();
    assert_eq!(refused.len(), 2, "{refused:?}");
    for record in refused {
        let RecordType::Rejection(rejection) = record.record_type else { panic!("{:?}", record.payload) };
        assert!(rejection.reason.contains("from incarnation 2 of partition 1, but it is from incarnation 1"));
    }
}

#[test]
fn a_restored_receiver_does_not_wait_for_what_nobody_keeps() {
    let mut cluster = Cluster::new(2);
    deploy(&mut cluster, "a");
    cluster.settle();
    let backup = cluster.node(2).batches.len();
    deploy(&mut cluster, "b");
    cluster.settle();
    deploy(&mut cluster, "c");
    deploy(&mut cluster, "d");
    // A later one comes first, and must not make the others look old.
    let lost = std::mem::take(&mut cluster.way);
    restore(&mut cluster, 2, backup, 2);
    cluster.way.push(lost[1].clone());
    cluster.settle();
    heal(&mut cluster);
    assert_eq!(processes(&mut cluster, 2), ["a", "c", "d"]);
}

#[test]
fn keys_and_positions_of_an_earlier_life_are_not_given_away_again() {
    let mut cluster = Cluster::new(1);
    deploy(&mut cluster, "a");
    let (backup, position) = (cluster.node(1).batches.len(), cluster.node(1).engine.last_position());
    deploy(&mut cluster, "b");
    let last = cluster.node(1).engine.last_position();
    assert!(last > position);
    restore(&mut cluster, 1, backup, 7);
    let before = cluster.node(1).records.len();
    deploy(&mut cluster, "c");
    let records = &cluster.node(1).records[before..];
    assert!(records.iter().all(|record| record.position > last));
    let keys = records.iter().filter(|record| record.key.is_some() && record.record_type == RecordType::Event);
    assert!(keys.into_iter().all(|record| record.key.counter() > 1_000));
    for (incarnation, key_counter, position) in [(7, 0, 0), (3, 0, 0), (8, u64::MAX, 0), (8, 0, u64::MAX)] {
        cluster.apply(1, vec![raise(incarnation, key_counter, position)]);
        let last = cluster.node(1).records.last().expect("a rejection").clone();
        assert!(matches!(last.record_type, RecordType::Rejection(_)), "{incarnation} {key_counter} {position}");
    }
    cluster.check();
}
