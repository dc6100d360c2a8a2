//! What an exporter wrote, compared with the answers that clients got.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::accounting::Ledger;

/// What the lines of the file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every test file uses everything")]
pub enum Lines {
    /// Each is a record.
    Whole,
    /// Power was lost: what was not synced then may be there in part, with the same records whole behind it.
    MayBeTorn,
}

fn is_whole(record: &serde_json::Value) -> bool {
    const FIELDS: [&str; 13] = [
        "position",
        "sourceRecordPosition",
        "key",
        "timestamp",
        "partitionId",
        "recordType",
        "valueType",
        "intent",
        "rejectionType",
        "rejectionReason",
        "brokerVersion",
        "recordVersion",
        "value",
    ];
    FIELDS.iter().all(|field| record.get(field).is_some())
}

/// The exporter's file as a second source: every acknowledged deed is one record, and what was exported again after a
/// kill is the same record.
pub fn audit_records(path: &Path, lines: Lines, ledgers: &[Ledger]) {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let mut records = BTreeMap::new();
    for line in text.lines() {
        let record: serde_json::Value = match serde_json::from_str(line) {
            // A torn line may still be JSON, with two names run into one; no other is without one of these.
            Ok(record) if lines == Lines::MayBeTorn && !is_whole(&record) => continue,
            Ok(record) => record,
            Err(_) if lines == Lines::MayBeTorn => continue,
            Err(_) => panic!("no JSON: {line}"),
        };
        let place = (record["partitionId"].as_i64().unwrap(), record["position"].as_i64().unwrap());
        let before = records.insert(place, line);
        assert!(before.is_none_or(|before| before == line), "two records at {place:?}:\n{}\n{line}", before.unwrap());
    }
    let mut happened = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
    for line in records.values() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = match (record["valueType"].as_str().unwrap(), record["intent"].as_str().unwrap()) {
            ("PROCESS_INSTANCE", "ELEMENT_ACTIVATED") if record["value"]["bpmnElementType"] == "PROCESS" => 0,
            ("JOB", "COMPLETED") => 1,
            ("MESSAGE", "PUBLISHED") => 2,
            _ => continue,
        };
        assert!(happened[kind].insert(record["key"].as_i64().unwrap()), "it happened twice: {line}");
    }
    for ledger in ledgers {
        let (instances, jobs, messages) = ledger.acknowledged();
        for (kind, keys) in [instances, jobs, messages].iter().enumerate() {
            for key in keys {
                assert!(happened[kind].contains(key), "there is no record of {key} (kind {kind})");
            }
        }
    }
    println!("{} records, {} lines", records.len(), text.lines().count());
}
