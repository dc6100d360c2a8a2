//! Deployments reach every partition once and in order, whatever the way between partitions loses, doubles or reorders.

use crate::support;
use std::sync::Arc;

use engine::{Engine, EngineOptions, Output};
use proptest::prelude::*;
use protocol::*;

const PARTITIONS: u16 = 3;

struct Cluster {
    engines: Vec<Engine>,
    indexes: Vec<u64>,
    /// Commands on their way, with their target.
    way: Vec<(PartitionId, Command)>,
    replies: Vec<engine::Reply>,
    records: Vec<Vec<Record>>,
}

impl Cluster {
    fn new() -> Self {
        let options = |partition| EngineOptions { partition, first_partition_count: PARTITIONS, ..support::options() };
        Cluster {
            engines: (1..=PARTITIONS).map(|partition| Engine::in_memory(options(PartitionId(partition)))).collect(),
            indexes: vec![0; usize::from(PARTITIONS)],
            way: Vec::new(),
            replies: Vec::new(),
            records: vec![Vec::new(); usize::from(PARTITIONS)],
        }
    }

    fn apply(&mut self, partition: PartitionId, command: Command) {
        let at = usize::from(partition.0) - 1;
        self.indexes[at] += 1;
        let mut output = Output::default();
        let batch = CommandBatch { timestamp: self.indexes[at] as i64, commands: vec![command] };
        self.engines[at].apply(self.indexes[at], &batch, &mut output).expect("the state is sound");
        self.way.extend(output.sends.into_iter().map(|send| (send.partition, send.command)));
        self.replies.extend(output.replies);
        self.records[at].extend(output.records);
    }

    fn deploy(&mut self, number: u64, id: &str) {
        let xml = model_builder::ProcessBuilder::new(id)
            .start("s")
            .service_task("t", &format!("work-{number}"))
            .end("e")
            .to_xml();
        let value = DeploymentValue {
            resources: vec![DeploymentResource { resource_name: "p.bpmn".into(), resource: Arc::from(xml.as_bytes()) }],
            tenant_id: support::TENANT.into(),
            ..DeploymentValue::default()
        };
        let request = Some(Request { node: 0, number });
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        self.apply(PartitionId::DEPLOYMENT, Command { request, ..Command::new(Key::NONE, payload) });
    }

    fn send_again(&mut self) {
        for engine in &self.engines {
            for partition in engine.outbox_partitions() {
                self.way.extend(engine.outbox(partition, 0, 100).into_iter().map(|command| (partition, command)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_partition_gets_every_deployment_once(fates in prop::collection::vec(any::<u16>(), 200)) {
        let mut cluster = Cluster::new();
        for number in 1..=3 {
            cluster.deploy(number, "p");
        }
        cluster.deploy(4, "q");
        // First the way is bad, then it heals.
        for fate in &fates {
            if cluster.way.is_empty() {
                cluster.send_again();
            }
            if cluster.way.is_empty() {
                break;
            }
            let (partition, command) = cluster.way.remove(usize::from(*fate) % cluster.way.len());
            match fate % 5 {
                0 => {}
                1 => {
                    cluster.apply(partition, command.clone());
                    cluster.apply(partition, command);
                }
                _ => cluster.apply(partition, command),
            }
        }
        for _ in 0..10 {
            cluster.send_again();
            while !cluster.way.is_empty() {
                let (partition, command) = cluster.way.remove(0);
                cluster.apply(partition, command);
            }
        }
        let mut answered: Vec<u64> = cluster.replies.iter().map(|reply| reply.request.number).collect();
        answered.sort_unstable();
        prop_assert_eq!(answered, [1, 2, 3, 4], "each deployment is answered once");
        let created = |records: &[Record]| -> Vec<(Key, Text, i32)> {
            records
                .iter()
                .filter_map(|record| match &record.payload {
                    Payload::Process(ProcessIntent::Created, process) => {
                        Some((record.key, process.metadata.bpmn_process_id.clone(), process.metadata.version))
                    }
                    _ => None,
                })
                .collect()
        };
        let expected = created(&cluster.records[0]);
        prop_assert_eq!(expected.len(), 4);
        for records in &cluster.records[1..] {
            prop_assert_eq!(&created(records), &expected, "the same versions in the same order");
        }
        for engine in &cluster.engines {
            prop_assert!(engine.outbox_partitions().is_empty(), "nothing stays in the outbox");
        }
    }
}

/// A refused command from another partition was still received: it is not sent again, and positions continue.
#[test]
fn a_refused_command_from_another_partition_counts_as_received() {
    let mut cluster = Cluster::new();
    let source = Some(OutboxSource { partition: PartitionId(1), sequence: 1, incarnation: 1, is_oldest: false });
    let nowhere = Key::new(PartitionId(2), 99);
    let command = Command { source, ..Command::new(nowhere, Payload::Job(JobIntent::Complete, Arc::default())) };
    cluster.apply(PartitionId(2), command.clone());
    cluster.apply(PartitionId(2), command);
    let records = &cluster.records[1];
    let received = records.iter().filter(|record| matches!(record.payload, Payload::Outbox(OutboxIntent::Received, _)));
    assert_eq!(received.count(), 1, "it is taken once");
    let refused = records.iter().filter(|record| record.record_type != RecordType::Event);
    assert_eq!(refused.count(), 1, "it is refused once");
    assert!(
        records.is_sorted_by(|left, right| left.position < right.position),
        "each record has a position of its own"
    );
    assert_eq!(cluster.way.len(), 2, "each arrival is acknowledged");
}
