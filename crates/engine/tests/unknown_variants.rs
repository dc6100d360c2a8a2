//! What a later version wrote must not be read as something else, or as nothing: wherever a number in a command or record is one
//! that this version does not know, it is an error. Otherwise the number stays what it is.

use crate::cluster::{Cluster, Message, creation};
use engine::Limits;
use minicbor::{Decode, Encode};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

/// Where the integers of an encoded value are, with the lengths of their encodings.
fn integers(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (major, additional) = (bytes[at] >> 5, bytes[at] & 31);
        let extra = match additional {
            0..=23 => 0,
            24..=27 => 1 << (additional - 24),
            other => panic!("no definite length: {other}"),
        };
        let argument =
            bytes[at + 1..at + 1 + extra].iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let argument = if extra == 0 { usize::from(additional) } else { argument };
        match major {
            0 | 1 => found.push((at, 1 + extra)),
            2 | 3 => at += argument,
            _ => {}
        }
        at += 1 + extra;
    }
    found
}

/// Numbers that are no variant of anything, in the shortest encoding of each length.
const UNKNOWN: [&[u8]; 3] = [&[0x18, 119], &[0x19, 0x7f, 0xf1], &[0x1a, 0x7f, 0xff, 0xff, 0xf1]];

/// Puts each of the numbers in the place of each integer, and answers how often that was an error.
fn check<T: Encode<()> + for<'b> Decode<'b, ()> + std::fmt::Debug>(value: &T) -> usize {
    let bytes = encode_to_vec(value);
    let mut errors = 0;
    for (at, length) in integers(&bytes) {
        for unknown in UNKNOWN {
            let changed = [&bytes[..at], unknown, &bytes[at + length..]].concat();
            match decode::<T>(&changed) {
                Ok(read) => assert!(
                    encode_to_vec(&read) == changed,
                    "the number at {at} of {value:?} is read as something else or as nothing: {read:?}"
                ),
                Err(_) => errors += 1,
            }
        }
    }
    errors
}

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
