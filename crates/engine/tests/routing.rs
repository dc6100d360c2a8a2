//! The id of the cluster, and by which partitions is routed, are part of the state: given once, known to every partition, and
//! stronger than the options of whoever applies the log.

use crate::support;
use engine::{Engine, EngineOptions, Output};
use model_builder::ProcessBuilder;
use protocol::*;

const CLUSTER: &str = "c1";

fn options(partition: u16, first_partition_count: u16) -> EngineOptions {
    EngineOptions::new(PartitionId(partition), first_partition_count)
}

fn value(active: &[u16], correlation_partition_count: u16) -> ClusterValue {
    ClusterValue {
        cluster_id: CLUSTER.into(),
        active_partitions: active.iter().copied().map(PartitionId).collect(),
        correlation_partition_count,
    }
}

fn bootstrap(value: ClusterValue) -> Command {
    let payload = Payload::Cluster(ClusterIntent::Bootstrap, Box::new(value));
    Command { request: Some(Request { node: 0, number: 1 }), ..Command::new(Key::NONE, payload) }
}

fn apply(engine: &mut Engine, command: Command) -> Output {
    let (mut output, index) = (Output::default(), engine.applied() + 1);
    let batch = CommandBatch { timestamp: index as i64, commands: vec![command] };
    engine.apply(index, &batch, &mut output).expect("the state is sound");
    output
}

fn refusal(engine: &mut Engine, command: Command) -> String {
    let output = apply(engine, command);
    let rejection = output.replies.iter().find_map(|reply| reply.rejection.as_ref());
    rejection.map(|rejection| rejection.reason.to_string()).unwrap_or_default()
}

#[test]
fn every_partition_learns_of_the_cluster_once() {
    let mut engines: Vec<_> = (1..=3).map(|partition| Engine::in_memory(options(partition, 3))).collect();
    assert_eq!(engines[1].bootstrap_command(CLUSTER), None, "the first partition tells the others");
    let command = engines[0].bootstrap_command(CLUSTER).expect("nothing is known yet");
    let sends = apply(&mut engines[0], command.clone()).sends;
    assert_eq!(sends.iter().map(|send| send.partition.0).collect::<Vec<_>>(), [2, 3]);
    for send in sends {
        let engine = &mut engines[usize::from(send.partition.0) - 1];
        for acknowledgement in apply(engine, send.command).sends {
            apply(&mut engines[0], acknowledgement.command);
        }
    }
    for engine in &engines {
        assert_eq!(engine.cluster(), Some(value(&[1, 2, 3], 3)));
        assert_eq!(engine.bootstrap_command(CLUSTER), None);
    }
    assert!(engines[0].outbox_partitions().is_empty(), "all have it");
    let other = ClusterValue { cluster_id: "c2".into(), ..value(&[1, 2, 3], 3) };
    let reason = refusal(&mut engines[0], bootstrap(other));
    assert!(reason.contains("the id 'c2', but it has the id 'c1', which never changes"), "{reason}");
    assert_eq!(engines[0].cluster(), Some(value(&[1, 2, 3], 3)));
}

#[test]
fn what_could_not_be_routed_by_is_refused() {
    let mut engine = Engine::in_memory(options(1, 3));
    let nameless = ClusterValue { cluster_id: Text::default(), ..value(&[1], 1) };
    for (value, expected) in [
        (nameless, "Expected the id of a cluster to have 1 to 255 bytes, but it has 0"),
        (value(&[2, 1], 2), "different ones of 1 to 4095 in ascending order"),
        (value(&[1, 1], 1), "different ones of 1 to 4095 in ascending order"),
        (value(&[1, 5_000], 1), "different ones of 1 to 4095 in ascending order"),
        (value(&[2, 3], 2), "Expected partition 1 and the partitions 1 to 2"),
        (value(&[1, 3], 2), "Expected partition 1 and the partitions 1 to 2"),
        (value(&[1, 2], 0), "Expected partition 1 and the partitions 1 to 0"),
        (value(&[], 0), "Expected partition 1 and the partitions 1 to 0"),
    ] {
        let reason = refusal(&mut engine, bootstrap(value.clone()));
        assert!(reason.contains(expected), "{value:?}: {reason}");
        assert_eq!(engine.cluster(), None);
    }
    let reason = refusal(&mut Engine::in_memory(options(2, 3)), bootstrap(value(&[1, 2, 3], 3)));
    assert!(
        reason.contains("bootstrapped on partition 1, which tells the others, but this is partition 2"),
        "{reason}"
    );
}

/// The commands of a partition that was bootstrapped, applied again by somebody who was started with another number.
#[test]
fn another_number_of_partitions_in_the_options_changes_no_result() {
    let mut partition = support::Partition::with_options(options(1, 4));
    partition.apply(vec![bootstrap(value(&[1, 2, 3], 2))]);
    let process = ProcessBuilder::new("waits").start("s").receive_task("r", "paid", "= id").end("e");
    let deployed = partition.deploy("p.bpmn", process.to_xml().as_bytes());
    let targets = |output: &Output| output.sends.iter().map(|send| send.partition.0).collect::<Vec<_>>();
    assert_eq!(targets(&deployed), [2, 3], "deployments go to the active partitions");
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let created: Vec<Vec<u16>> = keys
        .iter()
        .map(|id| {
            let variables = format!("{{\"id\":\"{id}\"}}");
            targets(&partition.create("waits", &variables, ProcessInstanceCreationIntent::Create))
        })
        .collect();
    for (id, targets) in keys.iter().zip(&created) {
        let expected: &[u16] = if partition_for_correlation_key(id, 2).0 == 2 { &[2] } else { &[] };
        assert_eq!(targets, expected, "messages of '{id}' arrive at one of the two partitions that count for them");
    }
    for count in [1, 2, 9] {
        let mut again = Engine::in_memory(options(1, count));
        let mut records = Vec::new();
        for (index, batch) in (1..).zip(&partition.batches) {
            let mut output = Output::default();
            again.apply(index, batch, &mut output).expect("the state is sound");
            records.append(&mut output.records);
        }
        assert!(records == partition.records, "with {count} partitions in the options");
        assert_eq!(again.state_hash().expect("readable"), partition.engine.state_hash().expect("readable"));
    }
}
