//! What a later version wrote is not read as something else, or as nothing, in everything that partitions send each other. (Of what
//! all other tests did, some of each kind is looked at when they check their partitions.)

use crate::cluster::{Cluster, Message, creation};
use crate::support::unknown_variants::check;
use engine::Limits;
use model_builder::{Event, ProcessBuilder};
use protocol::*;

/// Partitions that have sent each other everything that they send, with steps in the queue.
fn history() -> Cluster {
    let mut cluster = Cluster::with_limits(2, Limits { steps_per_command_max: 1, ..Limits::default() });
    let process = ProcessBuilder::new("p")
        .start("start")
        .parallel_gateway("fork")
        .service_task("work", "work")
        .boundary("late", "work", Event::Duration("PT1H"))
        .end("too-late")
        .move_to("work")
        .end("done")
        .move_to("fork")
        .receive_task("receive", "paid", "= key")
        .end("received");
    cluster.deploy(&process.to_xml());
    let identity = Identity::new("worker", Some([9; 32])).expect("a short id");
    for (number, key) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let origin = Origin {
            operation_reference: Some(number as u64),
            actor: if number % 2 == 0 { Actor::User(identity.clone()) } else { Actor::Client(identity.clone()) },
            batch_operation_reference: Some(Key::new(PartitionId(1), 7)),
        };
        let command = Command::new(Key::NONE, creation("p", &format!("{{\"key\":\"{key}\"}}"))).following(&origin);
        cluster.apply(1, vec![Command { request: Some(Request { node: 1, number: number as u64 }), ..command }]);
        cluster.settle();
    }
    for key in ["a", "b"] {
        cluster.publish(&Message::new("paid", key).with("{\"x\":1}")).expect("it is taken");
    }
    cluster.settle();
    cluster.complete_jobs();
    cluster.advance(4_000_000);
    cluster
}

#[test]
fn an_unknown_number_in_a_command_or_record_is_an_error_or_stays_what_it_is() {
    let cluster = history();
    let (mut commands, mut records, mut nested) = (0, 0, 0);
    for node in &cluster.nodes {
        for command in node.batches.iter().flat_map(|batch| &batch.commands) {
            commands += check(command);
        }
        for record in &node.records {
            nested += usize::from(matches!(&record.payload, Payload::Outbox(_, value) if value.command.is_some()));
            nested += usize::from(matches!(&record.payload, Payload::Work(_, value) if !value.commands.is_empty()));
            records += check(record);
        }
    }
    assert!(commands > 500 && records > 3_000 && nested > 30, "{commands} {records} {nested}");
}
