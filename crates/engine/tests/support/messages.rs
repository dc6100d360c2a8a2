//! What tests of messages share.

use model_builder::{Event, ProcessBuilder};
use protocol::*;

use crate::cluster::Cluster;

/// What remains when everything has ended: definitions, and what partitions remember about each other.
const STAYS: &[&str] = &[
    "processes",
    "latest_processes",
    "process_versions",
    "processes_by_deployment",
    "message_start_subscriptions",
    "message_started_processes",
    "outbox_sequences",
    "inbox_sequences",
];

/// A process with a catch event for the message `m` with the correlation key in the variable `key`.
pub fn waiting(id: &str) -> String {
    ProcessBuilder::new(id).start("s").catch_event("wait", Event::Message("m", "=key")).end("e").to_xml()
}

/// Lets everything expire and cancels what lives; then nothing is left.
pub fn check_nothing_stays(cluster: &mut Cluster) {
    cluster.advance(1_000_000_000);
    let instances: Vec<Key> = cluster
        .events()
        .filter(|record| {
            matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value)
                if value.bpmn_element_type == BpmnElementType::Process)
        })
        .map(|record| record.key)
        .collect();
    for instance in instances {
        cluster.cancel(instance);
    }
    cluster.settle();
    // Cancelled instances may have let buffered messages start others.
    assert_eq!(cluster.rows_but(STAYS), Vec::<String>::new());
    let statistics: Vec<_> = cluster.nodes.iter().map(|node| node.engine.statistics()).collect();
    assert!(statistics.iter().all(|numbers| numbers.messages == 0 && numbers.message_subscriptions == 0));
    cluster.check();
}
