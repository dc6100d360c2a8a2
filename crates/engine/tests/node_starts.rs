//! Nodes number requests and streams from what a partition knows of them.

use crate::support::Partition;
use protocol::*;

#[test]
fn a_start_of_a_node_is_never_taken_twice() {
    let mut partition = Partition::new();
    assert_eq!((partition.engine.next_start(0), partition.engine.next_start(7)), (1, 1));
    for start in 1..=3 {
        let command = partition.engine.start_command(7);
        assert_eq!(command.actor, Actor::System);
        let repeated = command.clone();
        assert!(partition.apply(vec![command]).records.iter().all(|record| record.record_type == RecordType::Event));
        assert_eq!((partition.engine.next_start(0), partition.engine.next_start(7)), (1, start + 1));
        let records = partition.apply(vec![repeated]).records;
        let RecordType::Rejection(rejection) = &records[0].record_type else { panic!("{records:?}") };
        assert!(rejection.reason.contains(&format!("start {start} of node 7 to be a new one")), "{}", rejection.reason);
    }
    partition.check();
}
