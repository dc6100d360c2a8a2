//! Exporters of a running node.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::{
    ExporterState, ExporterStatus, Health, Node, NodeOptions, Pause, Role, SubmitError, WriteThrottleOptions,
};
use exporters::{
    Context, Controller, Delivery, Exporter, ExporterConfiguration, ExporterError, Opening, PartitionExporter,
    RecordFilter, Resume,
};
use protocol::*;
use serde_json::{Map, Value};
use support::*;

/// Keeps what it gets, and on demand fails, does not come back, or takes its time.
#[derive(Default)]
struct Target {
    /// Partition, position, number.
    records: Mutex<Vec<(PartitionId, u64, u64)>>,
    failing: AtomicBool,
    blocking: AtomicBool,
    slow: AtomicBool,
    /// Up to where it has the records of each partition, if it is one that knows that itself.
    places: Option<Mutex<BTreeMap<PartitionId, RecordPlace>>>,
}

impl Target {
    /// The numbers of the records of a partition, each once.
    fn numbers(&self, partition: u16) -> Vec<u64> {
        let records = self.records.lock().expect("not poisoned");
        let of_partition = records.iter().filter(|(of, ..)| of.0 == partition);
        let mut numbers: Vec<u64> = of_partition.map(|(_, _, number)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

struct ToTarget(Arc<Target>);

struct PartitionToTarget(PartitionId, Arc<Target>, Option<Controller>);

impl Exporter for ToTarget {
    fn configure(&mut self, _context: &mut Context) -> Result<(), ExporterError> {
        Ok(())
    }

    fn partition(&self, partition: PartitionId) -> Box<dyn PartitionExporter> {
        Box::new(PartitionToTarget(partition, self.0.clone(), None))
    }
}

impl PartitionExporter for PartitionToTarget {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        self.2 = Some(opening.controller);
        let place = self.1.places.as_ref().and_then(|of| of.lock().expect("not poisoned").get(&self.0).copied());
        Ok(place.map_or(Resume::AsTheNodeSays, Resume::After))
    }

    fn export(&mut self, delivery: &Delivery<'_>, _: Duration) -> Result<(), ExporterError> {
        while self.1.blocking.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.1.failing.load(Ordering::Relaxed) {
            return Err(ExporterError::target("warehouse", "reach its target", "it is closed on Sundays"));
        }
        if self.1.slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let record = delivery.record;
        self.1.records.lock().expect("not poisoned").push((self.0, record.position, record.number));
        if let Some(places) = &self.1.places {
            places.lock().expect("not poisoned").insert(self.0, delivery.place());
        }
        self.2.as_ref().expect("opened before").acknowledge(delivery.place());
        Ok(())
    }

    fn flush_at(&self) -> Option<Duration> {
        None
    }

    fn flush(&mut self, _: Duration) -> Result<(), ExporterError> {
        Ok(())
    }

    fn close(&mut self, _: Duration) -> Result<(), ExporterError> {
        Ok(())
    }
}

fn exporter(name: &str, target: &Arc<Target>) -> ExporterConfiguration {
    let target = target.clone();
    let factory = Arc::new(move || Box::new(ToTarget(target.clone())) as Box<dyn Exporter>);
    ExporterConfiguration::of_factory(name, factory, Map::new()).expect("a good name")
}

fn warehouse(target: &Arc<Target>) -> ExporterConfiguration {
    exporter("warehouse", target)
}

fn status(node: &Node, name: &str) -> ExporterStatus {
    node.exporters().statuses().into_iter().find(|status| status.name == name).expect("there is one")
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
        // Of a line that is being written, nothing is read.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect::<Vec<_>>()
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
    assert!(std::fs::read(&path).expect("readable").ends_with(b"\n"), "the last line is whole");
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
fn exporters_that_would_write_the_same_file_are_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path().join("data");
    let lines = |name: &str, path: &str| {
        let path = directory.path().join(path).to_str().expect("UTF-8").to_owned();
        let arguments = Map::from_iter([("path".to_owned(), Value::from(path))]);
        ExporterConfiguration::of_class(name, "JsonLines", arguments).expect("known")
    };
    for path in ["{partition}.jsonl", "./2.jsonl"] {
        let exporters = vec![lines("all", path), lines("second", "2.jsonl")];
        let refused = Node::start(NodeOptions { exporters, partition_count: 2, ..options(&data) });
        let refused = refused.expect_err("they share the file of partition 2").to_string();
        assert!(refused.contains("'second'") && refused.contains("the exporter 'all' writes too"), "{refused}");
        assert!(!data.exists(), "nothing was changed");
    }
    let exporters = vec![lines("all", "{partition}.jsonl"), lines("third", "3.jsonl")];
    let options = NodeOptions { exporters, partition_count: 2, ..options(&data) };
    start(options).stop().expect("a clean stop");
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
        matches!(&status.state(), ExporterState::Failing(reason) if reason.contains("closed on Sundays")),
        "{status:?}"
    );
    assert!(status.partitions[0].lag_records > 100, "{status:?}");
    // A restart changes nothing.
    node.crash();
    let node = start(small);
    let client = node.client();
    eventually("the failure", || matches!(node.exporters().statuses()[0].state(), ExporterState::Failing(_)));
    assert!(segments() > 8);

    target.failing.store(false, Ordering::Relaxed);
    eventually("the exporter to catch up", || node.exporters().statuses()[0].partitions[0].lag_records == 0);
    eventually("deletion", || segments() <= 2);
    eventually("room", || {
        submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}")).is_ok()
    });
    node.stop().expect("a clean stop");
    let records = target.records.lock().expect("not poisoned");
    let mut positions: Vec<u64> = records.iter().map(|(_, position, _)| *position).collect();
    let exported = positions.len();
    positions.sort_unstable();
    positions.dedup();
    assert!(exported - positions.len() < 1_000, "only what was not acknowledged came again");
}

#[test]
fn a_throttled_node_takes_new_work_as_slowly_as_its_exporter_and_ends_what_is_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let throttle = WriteThrottleOptions { acceptable_records: 300, minimum_records_per_second: 1 };
    let options = NodeOptions {
        exporters: vec![warehouse(&target)],
        write_throttle: Some(throttle),
        ..options(directory.path())
    };
    let node = start(options);
    let client = node.client();
    deploy(&client, &one_task());
    create(&client, 1);
    let [first] = activate(&client, 1, 1, 60_000)[..] else { panic!("one job") };
    target.failing.store(true, Ordering::Relaxed);
    let create_one = || submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}"));
    let mut refusal = None;
    eventually("a refusal", || {
        refusal = create_one().err();
        refusal.is_some()
    });
    let refusal = refusal.expect("just seen");
    assert!(matches!(refusal, SubmitError::ResourceExhausted { .. }));
    let sentence = refusal.to_string();
    assert!(
        sentence.contains("records wait for the exporter 'warehouse', and 300 may, so new work is slowed down"),
        "{sentence}"
    );
    assert_eq!(complete(&client, first).expect("ending work is taken").rejection, None);
    target.failing.store(false, Ordering::Relaxed);
    eventually("the exporter to catch up", || node.exporters().statuses()[0].partitions[0].lag_records == 0);
    eventually("room", || create_one().is_ok());
    node.stop().expect("a clean stop");
}

#[test]
fn a_pause_keeps_the_records_across_restarts_and_names_itself_in_refusals() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let options = NodeOptions {
        exporters: vec![warehouse(&target)],
        exporter_backlog_limit_bytes: 1 << 20,
        segment_bytes: 64 << 10,
        checkpoint_interval: Duration::from_millis(50),
        ..options(directory.path())
    };
    let state = |node: &Node| status(node, "warehouse").state();
    let taken = || target.records.lock().expect("not poisoned").len();
    let node = start(options.clone());
    deploy(&node.client(), &one_task());
    eventually("an idle exporter", || status(&node, "warehouse").partitions[0].lag_records == 0 && taken() > 0);
    node.exporters().set_pause(Pause::Hard).expect("writable");
    eventually("the pause", || state(&node) == ExporterState::Paused);
    let before = taken();
    create(&node.client(), 1);
    node.crash();

    let node = start(options.clone());
    let client = node.client();
    eventually("the pause", || state(&node) == ExporterState::Paused);
    assert_eq!(node.exporters().pause(), Pause::Hard);
    let create_one = || submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}"));
    let mut refusal = None;
    eventually("a refusal", || {
        refusal = create_one().err();
        refusal.is_some()
    });
    let refusal = refusal.expect("just seen").to_string();
    assert!(
        refusal.contains("'warehouse', and its limit is 1048576 bytes; exporting is paused, which POST"),
        "{refusal}"
    );
    assert_eq!(taken(), before);
    node.exporters().set_pause(Pause::None).expect("writable");
    eventually("the exporter to catch up", || status(&node, "warehouse").partitions[0].lag_records == 0);
    eventually("room", || create_one().is_ok());
    let numbers = target.numbers(1);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "every record");
    node.stop().expect("a clean stop");
}

#[test]
fn in_a_soft_pause_records_are_exported_and_kept() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let options = NodeOptions {
        exporters: vec![warehouse(&target)],
        segment_bytes: 64 << 10,
        checkpoint_interval: Duration::from_millis(50),
        ..options(directory.path())
    };
    let records = directory.path().join("partitions").join("1").join("records");
    let segments = || std::fs::read_dir(&records).expect("there").count();
    let caught_up = |node: &Node| status(node, "warehouse").partitions[0].lag_records == 0;
    let node = start(options.clone());
    deploy(&node.client(), &one_task());
    eventually("an idle exporter", || caught_up(&node));
    node.exporters().set_pause(Pause::Soft).expect("writable");
    eventually("the pause", || status(&node, "warehouse").state() == ExporterState::SoftPaused);
    while segments() < 6 {
        create(&node.client(), 1);
    }
    eventually("the export", || caught_up(&node));
    let numbers = target.numbers(1);
    node.crash();
    // What it acknowledged meanwhile does not count: it comes again.
    target.records.lock().expect("not poisoned").clear();
    let node = start(options);
    eventually("the export", || caught_up(&node) && target.numbers(1).last() >= numbers.last());
    let again = target.numbers(1);
    assert!(again.len() > numbers.len() / 2 && segments() >= 6, "{} of {}", again.len(), numbers.len());
    assert_eq!(again.windows(2).find(|pair| pair[1] != pair[0] + 1), None);
    node.exporters().set_pause(Pause::None).expect("writable");
    eventually("deletion", || segments() <= 2);
    node.stop().expect("a clean stop");
}

#[test]
fn an_exporter_whose_positions_are_all_damaged_says_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let options = NodeOptions { exporters: vec![warehouse(&target)], ..options(directory.path()) };
    let node = start(options.clone());
    deploy(&node.client(), &one_task());
    eventually("an idle exporter", || status(&node, "warehouse").partitions[0].lag_records == 0);
    node.stop().expect("a clean stop");
    let damage = |name: &str| {
        let path = directory.path().join("exporters").join(name);
        let mut bytes = std::fs::read(&path).expect("there");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(&path, bytes).expect("writable");
    };
    damage("warehouse.positions");
    let node = start(options.clone());
    assert_eq!(status(&node, "warehouse").partitions[0].remark, None, "what was saved before counts");
    node.stop().expect("a clean stop");
    damage("warehouse.positions");
    damage("warehouse.positions-before");
    target.records.lock().expect("not poisoned").clear();
    let node = start(options);
    let remark = status(&node, "warehouse").partitions[0].remark.clone().expect("it is told");
    assert!(remark.contains("Its positions were damaged") && remark.contains("began from 1 again"), "{remark}");
    eventually("all records", || target.numbers(1).first() == Some(&1));
    node.stop().expect("a clean stop");
}

#[test]
fn skipped_records_move_the_position_and_hold_nothing_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Arc::new(Target::default());
    let mut exporter = warehouse(&target);
    exporter.filter = RecordFilter::default().only_value_types([ValueType::Incident]);
    let filtered = NodeOptions { exporters: vec![exporter], ..options(directory.path()) };
    let node = start(filtered.clone());
    deploy(&node.client(), &one_task());
    create(&node.client(), 1);
    eventually("the position to move", || node.exporters().statuses()[0].partitions[0].lag_records == 0);
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
    // The log as it was before, but for another start, and an exporter that knows of what came after.
    start(of(&before)).stop().expect("a clean stop");
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

/// Creates instances on the partitions in turn until `done`.
fn work_until(node: &Node, what: &str, mut done: impl FnMut() -> bool) {
    let client = node.client();
    eventually(what, || {
        for partition in [1, 2].map(PartitionId) {
            let created = submit(&client, partition, creation(ProcessInstanceCreationIntent::Create, "{}"));
            created.expect("nothing holds up new work");
        }
        done()
    });
}

#[test]
fn a_damaged_segment_a_dead_target_a_slow_one_and_a_stuck_one_hold_up_nobody_else() {
    let directory = tempfile::tempdir().expect("temporary directory");
    // The node keeps acknowledged places once a second and may be killed before; the healthy one knows its own.
    let targets = ["healthy", "dead", "stuck", "slow"].map(|name| {
        let places = (name == "healthy").then(Mutex::default);
        (name, Arc::new(Target { places, ..Target::default() }))
    });
    let [(_, healthy), (_, dead), (_, stuck), (_, slow)] = &targets;
    let of = |backlog_limit_bytes: u64| NodeOptions {
        exporters: targets.iter().map(|(name, target)| exporter(name, target)).collect(),
        partition_count: 2,
        segment_bytes: 64 << 10,
        exporter_backlog_limit_bytes: backlog_limit_bytes,
        exporter_stuck_after: Duration::from_millis(50),
        checkpoint_interval: Duration::from_millis(100),
        ..options(directory.path())
    };
    let segments = |partition: u16| {
        let records = directory.path().join(format!("partitions/{partition}/records"));
        let mut paths: Vec<_> =
            std::fs::read_dir(records).expect("there").map(|entry| entry.expect("readable").path()).collect();
        paths.sort();
        paths
    };
    dead.failing.store(true, Ordering::Relaxed);
    stuck.blocking.store(true, Ordering::Relaxed);
    slow.slow.store(true, Ordering::Relaxed);
    let node = start(of(1 << 30));
    deploy(&node.client(), &one_task());
    work_until(&node, "several segments", || segments(1).len() > 4 && segments(2).len() > 4);
    // The healthy one gets everything, and each of the others says what is wrong with it.
    let is_done = |node: &Node| status(node, "healthy").partitions.iter().all(|of| of.lag_records == 0);
    eventually("the healthy exporter to have everything", || is_done(&node));
    let failing =
        |state: &ExporterState| matches!(state, ExporterState::Failing(reason) if reason.contains("on Sundays"));
    let is_stuck = |state: &ExporterState| matches!(state, ExporterState::Stuck(reason) if reason.starts_with("It has not come back from taking a record"));
    eventually("the stuck exporter to be noticed", || {
        status(&node, "stuck").partitions.iter().all(|of| is_stuck(&of.state))
    });
    assert!(status(&node, "dead").partitions.iter().all(|of| failing(&of.state)));
    assert_eq!(status(&node, "healthy").state(), ExporterState::Exporting);
    let whole: Vec<u64> = (1..=healthy.numbers(1).len() as u64).collect();
    assert_eq!(healthy.numbers(1), whole, "without a gap");
    assert!(stuck.numbers(1).is_empty() && segments(1).len() > 4, "nothing is deleted that others need");
    // The slow one is behind, and goes on.
    let taken = slow.numbers(1).len();
    assert!(taken < whole.len(), "it has all {taken} already");
    eventually("the slow exporter to get more", || slow.numbers(1).len() > taken);
    slow.slow.store(false, Ordering::Relaxed);
    // A node that is killed now has to read everything again, and finds a segment of partition 2 damaged.
    node.crash();
    assert!(segments(2).len() > 4);
    let damaged = &segments(2)[1];
    let mut bytes = std::fs::read(damaged).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(damaged, bytes).expect("writable");
    dead.failing.store(false, Ordering::Relaxed);
    let node = start(of(1 << 20));
    let trouble = |status: ExporterStatus| status.partitions.into_iter().map(|of| of.state).collect::<Vec<_>>();
    let is_damaged = |state: &ExporterState| matches!(state, ExporterState::Failing(reason) if reason.contains("is damaged at byte"));
    // The one that was dead has only partition 2 left that it cannot read; the healthy one had that already.
    eventually("the damage to be found", || {
        let states = trouble(status(&node, "dead"));
        states[0] == ExporterState::Exporting && is_damaged(&states[1])
    });
    eventually("partition 1 to be exported", || status(&node, "dead").partitions[0].lag_records == 0);
    create(&node.client(), 2);
    eventually("what comes now", || is_done(&node));
    assert!(healthy.numbers(2).len() as u64 == *healthy.numbers(2).last().expect("there are some"), "without a gap");
    // The stuck one lets new work be refused at its limit, by its name. What exists can still be ended.
    let client = node.client();
    let [job] = activate(&client, 1, 1, 60_000)[..] else { panic!("one job") };
    let mut refusal = None;
    eventually("a refusal", || {
        refusal = submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}")).err();
        refusal.is_some()
    });
    let refusal = refusal.expect("just seen").to_string();
    assert!(refusal.contains("of records for the exporter 'stuck', and its limit is 1048576 bytes"), "{refusal}");
    assert_eq!(complete(&client, job).expect("ending work is taken").rejection, None);
    // It comes back, and gets what there is. The damaged segment is moved away: what it held is missing, and that is said.
    stuck.blocking.store(false, Ordering::Relaxed);
    for name in ["stuck", "slow"] {
        eventually("it to catch up", || status(&node, name).partitions[0].lag_records == 0);
    }
    node.stop().expect("a clean stop");
    let whole = healthy.numbers(1);
    assert_eq!((stuck.numbers(1), dead.numbers(1), slow.numbers(1)), (whole.clone(), whole.clone(), whole));
    std::fs::rename(damaged, directory.path().join("moved-away")).expect("movable");
    let node = start(of(1 << 30));
    eventually("the healthy one to have what the start wrote", || is_done(&node));
    for (name, target) in [("dead", dead), ("stuck", stuck)] {
        // Something that is due may happen at any time, and reaches one before the other.
        let (mut missing, mut position) = (0, None);
        eventually("the rest, and that the others had more by what is missing", || {
            missing = healthy.numbers(2).len().saturating_sub(target.numbers(2).len());
            let of = position.insert(status(&node, name).partitions.remove(1));
            of.lag_records == 0 && missing > 0 && of.missing_records == missing as u64
        });
        let position = position.expect("it was looked at");
        assert!(position.gap.expect("it is said").contains(&format!("{missing} records are missing, from ")));
        assert_eq!(position.state, ExporterState::Exporting);
        assert_eq!(status(&node, name).partitions[0].missing_records, 0);
    }
    assert_eq!(status(&node, "healthy").partitions[1].missing_records, 0, "it had them before");
    node.stop().expect("a clean stop");
}

#[test]
fn a_partition_that_is_added_while_the_node_runs_is_one_like_the_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Arc::new(Target::default());
    let options = || NodeOptions {
        partition_count: 3,
        exporters: vec![warehouse(&target)],
        checkpoint_interval: Duration::from_millis(50),
        ..options(directory.path())
    };
    let (first, third) = ([1, 2].map(PartitionId).into(), PartitionId(3));
    let none = Node::start_with(options(), &[].into()).expect("the node starts");
    assert_eq!(none.client().next_partition(), PartitionId(1), "which says that it is not there");
    none.stop().expect("it stops");
    let mut node = Node::start_with(options(), &first).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT), "{:?}", node.failure());
    let client = node.client();
    assert_eq!(client.partition_ids().map(|id| id.0).collect::<Vec<_>>(), [1, 2]);
    let refused = submit(&client, third, activation(1, 1_000)).expect_err("the partition is not here");
    assert!(refused.to_string().contains("this node does not hold it"), "{refused}");
    for (wrong, says) in [(PartitionId(2), "holds it already"), (PartitionId(4), "the partitions are 1 to 3")] {
        let refusal = node.add_partition(wrong).expect_err("it cannot be added").to_string();
        assert!(refusal.contains(says), "{refusal}");
    }

    let (_stream, jobs) = stream(&client);
    // A deployment is answered when all partitions have it.
    let (sender, answer) = std::sync::mpsc::channel();
    let deployment = client.clone();
    let deploying = std::thread::spawn(move || {
        deploy(&deployment, &one_task());
        let _ = sender.send(());
    });
    eventually("the second partition has the deployment", || !target.numbers(2).is_empty());
    assert!(answer.try_recv().is_err(), "the third partition cannot have it yet");
    node.add_partition(third).expect("there is room");
    deploying.join().expect("the deployment is complete");

    // Whoever opened a stream before gets the jobs of the new partition too, and exporters its records.
    let instances = [1, 2, 3].map(|partition| create(&client, partition));
    let pushed = jobs.wait(3);
    let mut partitions: Vec<_> = pushed.iter().map(|push| push.key.partition().expect("a job's key").0).collect();
    partitions.sort_unstable();
    assert_eq!(partitions, [1, 2, 3]);
    pushed.iter().for_each(|push| drop(complete(&client, push.key).expect("the job is there")));
    let status = |node: &Node| node.exporters().statuses().remove(0);
    eventually("all is exported", || {
        let partitions = status(&node).partitions;
        partitions.len() == 3 && partitions.iter().all(|of| of.exported > 0 && of.lag_records == 0)
    });
    let numbers = target.numbers(3);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "none is missing");
    node.stop().expect("it stops");

    // A start without it leaves its data alone, and what it has is there when it is added again.
    let mut node = Node::start_with(options(), &first).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT), "{:?}", node.failure());
    node.add_partition(third).expect("its data is there");
    assert!(node.wait_until_ready(LIMIT), "{:?}", node.failure());
    let client = node.client();
    let key = create(&client, 3);
    assert!(instances.iter().all(|before| *before != key), "no key is given twice");
    eventually("the new records are exported", || target.numbers(3).len() > numbers.len());
    node.stop().expect("it stops");
}
