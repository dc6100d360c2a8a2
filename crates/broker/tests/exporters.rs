//! Exporters of a running node.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exporters::{Context, Controller, Exporter, ExporterConfiguration, ExporterError, RecordFilter};
use osmia_broker::{ExporterState, Health, NodeOptions, Role, SubmitError};
use protocol::*;
use serde_json::{Map, Value};
use support::*;

/// Keeps what it gets and fails on demand.
#[derive(Default)]
struct Target {
    records: Mutex<Vec<(PartitionId, u64)>>,
    failing: AtomicBool,
}

struct ToTarget(Arc<Target>, Option<Controller>);

impl Exporter for ToTarget {
    fn configure(&mut self, _context: &mut Context) -> Result<(), ExporterError> {
        Ok(())
    }

    fn open(&mut self, controller: Controller) -> Result<(), ExporterError> {
        self.1 = Some(controller);
        Ok(())
    }

    fn export(&mut self, partition: PartitionId, record: &Record) -> Result<(), ExporterError> {
        if self.0.failing.load(Ordering::Relaxed) {
            return Err(ExporterError::target("warehouse", "reach its target", "it is closed on Sundays"));
        }
        self.0.records.lock().expect("not poisoned").push((partition, record.position));
        let controller = self.1.as_ref().expect("opened before");
        controller.acknowledge(partition, record.position);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExporterError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExporterError> {
        Ok(())
    }
}

fn warehouse(target: &Arc<Target>) -> ExporterConfiguration {
    let target = target.clone();
    let factory = Arc::new(move || Box::new(ToTarget(target.clone(), None)) as Box<dyn Exporter>);
    ExporterConfiguration::of_factory("warehouse", factory, Map::new()).expect("a good name")
}

#[test]
fn json_lines_has_every_record_in_order_within_moments() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("records.jsonl");
    let arguments = Map::from_iter([("path".to_owned(), Value::from(path.to_str().expect("UTF-8")))]);
    let exporter = ExporterConfiguration::of_class("debug", "JsonLines", arguments).expect("known");
    let data = directory.path().join("data");
    let with_exporter = NodeOptions { exporters: vec![exporter], partition_count: 2, ..options(&data) };
    let lines = || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect::<Vec<_>>()
    };
    let node = start(with_exporter.clone());
    deploy(&node.client(), &one_task());
    let instance = create(&node.client(), 2);
    let created = |line: &Value| line["intent"] == "CREATED" && line["value"]["processInstanceKey"] == instance.raw();
    eventually("the record of the instance", || lines().iter().any(created));
    node.crash();
    let node = start(with_exporter);
    create(&node.client(), 2);
    node.stop().expect("a clean stop");
    for partition in [1, 2] {
        let positions = lines()
            .iter()
            .filter(|line| line["partitionId"] == partition)
            .map(|line| line["position"].as_u64().expect("a number"))
            .collect::<Vec<_>>();
        // At least once: after the crash some come again, but none is left out.
        let mut once = positions.clone();
        once.sort_unstable();
        once.dedup();
        assert!(positions.ends_with(&once[once.len() - 1..]), "the last line is the newest record");
        assert!(positions.len() >= once.len() && once.len() > 3);
    }
}

#[test]
fn a_failing_exporter_holds_segments_limits_new_work_and_catches_up() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let small = NodeOptions {
        exporters: vec![warehouse(&target)],
        segment_bytes: 64 << 10,
        exporter_backlog_limit_bytes: 1 << 20,
        checkpoint_interval: Duration::from_millis(100),
        ..options(directory.path())
    };
    let records = directory.path().join("partitions/1/records");
    let segments = || std::fs::read_dir(&records).expect("there").count();
    let node = start(small.clone());
    let client = node.client();
    deploy(&client, &one_task());
    create(&client, 1);
    let [first] = activate(&client, 1, 1, 60_000)[..] else { panic!("one job") };
    target.failing.store(true, Ordering::Relaxed);
    let mut refusal = None;
    eventually("a refusal", || {
        let answer = submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}"));
        refusal = answer.err();
        refusal.is_some()
    });
    let refusal = refusal.expect("just seen");
    assert!(matches!(refusal, SubmitError::ResourceExhausted { .. }));
    assert!(
        refusal.to_string().contains("of records for the exporter 'warehouse', and its limit is 1048576 bytes"),
        "{refusal}"
    );
    // Work that exists can still be ended.
    let ended = complete(&client, first).expect("ending work is taken");
    assert_eq!(ended.rejection, None);
    assert!(segments() > 8);
    let statuses = node.exporters().statuses();
    let status = &statuses[0];
    assert!(
        matches!(&status.state, ExporterState::Failing(reason) if reason.contains("closed on Sundays")),
        "{status:?}"
    );
    assert!(status.partitions[0].lag_records() > 100, "{status:?}");
    // A restart changes nothing.
    node.crash();
    let node = start(small);
    let client = node.client();
    eventually("the failure", || matches!(node.exporters().statuses()[0].state, ExporterState::Failing(_)));
    assert!(segments() > 8);

    target.failing.store(false, Ordering::Relaxed);
    eventually("the exporter to catch up", || node.exporters().statuses()[0].partitions[0].lag_records() == 0);
    eventually("deletion", || segments() <= 2);
    eventually("room", || {
        submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}")).is_ok()
    });
    node.stop().expect("a clean stop");
    let records = target.records.lock().expect("not poisoned");
    let mut positions: Vec<u64> = records.iter().map(|(_, position)| *position).collect();
    let exported = positions.len();
    positions.sort_unstable();
    positions.dedup();
    assert!(exported - positions.len() < 1_000, "only what was not acknowledged came again");
}

#[test]
fn skipped_records_move_the_position_and_hold_nothing_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let mut exporter = warehouse(&target);
    exporter.filter = RecordFilter::default().only_value_types(["INCIDENT".to_owned()]);
    let filtered = NodeOptions { exporters: vec![exporter], ..options(directory.path()) };
    let node = start(filtered.clone());
    deploy(&node.client(), &one_task());
    create(&node.client(), 1);
    eventually("the position to move", || node.exporters().statuses()[0].partitions[0].lag_records() == 0);
    assert!(target.records.lock().expect("not poisoned").is_empty());
    let moved_to = node.exporters().statuses()[0].partitions[0].acknowledged;
    assert!(moved_to > 5);
    node.stop().expect("a clean stop");
    let node = start(filtered);
    assert!(node.exporters().statuses()[0].partitions[0].acknowledged >= moved_to, "the position was kept");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("writable");
    for entry in std::fs::read_dir(from).expect("there") {
        let path = entry.expect("readable").path();
        let copied = to.join(path.file_name().expect("an entry has a name"));
        match path.is_dir() {
            true => copy(&path, &copied),
            false => drop(std::fs::copy(&path, &copied).expect("writable")),
        }
    }
}

#[test]
fn a_partition_whose_log_ends_before_what_was_exported_stops_alone() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (now, before) = (directory.path().join("now"), directory.path().join("before"));
    let target = Arc::new(Target::default());
    let of = |data: &Path| NodeOptions { exporters: vec![warehouse(&target)], partition_count: 2, ..options(data) };
    let node = start(of(&now));
    deploy(&node.client(), &one_task());
    create(&node.client(), 2);
    node.stop().expect("a clean stop");
    copy(&now, &before);
    let node = start(of(&now));
    create(&node.client(), 2);
    node.stop().expect("a clean stop");
    // The log as it was before, and an exporter that knows of what came after.
    let positions = Path::new("exporters").join("warehouse.positions");
    std::fs::copy(now.join(&positions), before.join(&positions)).expect("there");
    let node = start(of(&before));
    let views = node.partitions();
    let health: Vec<_> = views.iter().map(|view| (view.role, view.health)).collect();
    assert_eq!(health, [(Role::Leader, Health::Healthy), (Role::Inactive, Health::Dead)]);
    let client = node.client();
    for _ in 0..4 {
        assert_eq!(client.next_partition(), PartitionId(1), "what may be created anywhere goes to the other one");
    }
    create(&client, 1);
    let refused = submit(&client, PartitionId(2), creation(ProcessInstanceCreationIntent::Create, "{}"));
    assert!(matches!(refused, Err(SubmitError::Unavailable { .. })), "{refused:?}");
    node.stop().expect("a clean stop");
}
