//! Searched: what searches find on a node is what the records say, wherever the node crashed and whatever was lost. Every counter
//! that is kept is what the rows say; an instance has an incident if one is open in it, or in what is inside of it or called. A read
//! model that was lost, or lacks records that are gone, has all of what lives, as the records say it, and nothing that is not
//! true; and it says that something may be missing, and only then. Otherwise people would decide by what is not so.

use std::collections::BTreeMap;

use protocol::{PartitionId, Record};
use replication::NodeId;

use crate::node::Shown;
use crate::rows;

/// How many rows that differ are named.
const NAMED_MAX: usize = 4;

/// How far the read model of each node is.
#[derive(Default)]
pub struct Searched {
    reached: BTreeMap<(NodeId, PartitionId), u64>,
}

impl Searched {
    /// Searches on a node find what happened up to a place. `records` are all of the partition.
    pub fn shown(&mut self, node: NodeId, shown: &Shown, records: &[Record]) {
        let partition = shown.partition;
        self.reached.insert((node, partition), shown.place.number);
        let Some(found) = &shown.rows else { return };
        assert!(
            shown.wrong_counts.is_empty(),
            "up to record {} of {partition}, node {node} counts wrongly: {:#?}",
            shown.place.number,
            shown.wrong_counts
        );
        let number = usize::try_from(shown.place.number).expect("few records");
        let directory = rows::scratch();
        let mut expected = rows::folded(&records[..number], partition, directory.path());
        allow_definitions_ahead(found, &mut expected, partition, records, number);
        let closing = rows::closing(&records[..number]);
        let (found_living, living) = (rows::living(found, &closing), rows::living(&expected, &closing));
        let about = format!("up to record {number} of {partition}, searches on node {node}");
        compare(&about, &found_living, &living, true);
        if shown.remark.is_none() {
            compare(&about, found, &expected, true);
        } else {
            compare(&about, &rows::alone(found), &rows::alone(&expected), false);
        }
    }

    /// Whether a node's read model has the newest record of a partition.
    pub fn is_complete(&self, node: NodeId, partition: PartitionId, records: &[Record]) -> bool {
        let newest = records.last().map_or(0, |record| record.number);
        self.reached.get(&(node, partition)).copied().unwrap_or(0) >= newest
    }

    /// A node starts: what its read model has is seen when it is open.
    pub fn started(&mut self, node: NodeId) {
        self.reached.retain(|(of, _), _| *of != node);
    }
}

/// Definitions are written at once, before the transaction that says how far the rows are. After a crash between the two they
/// are those of a later place, all of the same one.
fn allow_definitions_ahead(
    found: &rows::Rows,
    expected: &mut rows::Rows,
    partition: PartitionId,
    records: &[Record],
    number: usize,
) {
    let definitions = |rows: &rows::Rows| -> rows::Rows {
        rows.iter().filter(|(name, _)| rows::is_definition(name)).cloned().collect()
    };
    let found = definitions(found);
    if found == definitions(expected) {
        return;
    }
    let ahead = (number + 1..=records.len()).filter(|up_to| rows::defines(&records[up_to - 1]));
    for up_to in ahead {
        let directory = rows::scratch();
        let later = definitions(&rows::folded(&records[..up_to], partition, directory.path()));
        if later == found {
            expected.retain(|(name, _)| !rows::is_definition(name));
            expected.extend(later);
            return;
        }
    }
}

fn compare(about: &str, found: &rows::Rows, expected: &rows::Rows, is_whole: bool) {
    let more: Vec<_> = found.difference(expected).take(NAMED_MAX).collect();
    let less: Vec<_> = expected.difference(found).take(NAMED_MAX).collect();
    assert!(
        more.is_empty() && (less.is_empty() || !is_whole),
        "{about} find what is not so: {more:#?}; and do not find: {less:#?}"
    );
}
