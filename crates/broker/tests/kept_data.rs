//! What a node finds in its data directory that another run wrote: it goes on with what is in it.
//!
//! The first release keeps such directories in `tests/data`, for the versions after it.

mod support;
#[path = "kept_data/waits.rs"]
mod waits;

use std::path::Path;
use std::sync::mpsc;

use broker::{Client, FeatureLevel, Node, NodeOptions};
use exporters::ExporterConfiguration;
use model_builder::{Event, ProcessBuilder};
use protocol::*;
use replication::{GroupId, GroupWrite, LogOptions, LogStore, Position, RaftEngineLog, WriteBatch};
use serde_json::{Map, Value};
use support::*;

/// Instances that wait in a directory, for each partition and for each kind of wait.
const INSTANCES: usize = 2;

fn two_partitions(directory: &Path) -> NodeOptions {
    NodeOptions { partition_count: 2, ..options(directory) }
}

/// A process whose instances wait for a job, for a message of another partition, for time, and for a job again.
fn process() -> ProcessBuilder {
    one_task_until_it_is_shipped("order")
}

fn one_task_until_it_is_shipped(id: &str) -> ProcessBuilder {
    ProcessBuilder::new(id)
        .start("start")
        .service_task("pay", "pay")
        .receive_task("receive", "paid", "= key")
        .catch_event("later", Event::Duration("PT1S"))
        .service_task("ship", "ship")
        .end("end")
}

fn keys_of(jobs: &JobBatchValue) -> Vec<(Key, Key)> {
    jobs.job_keys.iter().zip(&jobs.jobs).map(|(key, job)| (*key, job.process_instance_key)).collect()
}

/// Jobs with their instances, from all partitions.
fn activate_of(client: &Client, job_type: &str) -> Vec<(Key, Key)> {
    let of_partition = |partition| {
        let value = JobBatchValue {
            job_type: job_type.into(),
            worker: "worker".into(),
            timeout: 600_000,
            max_jobs_to_activate: 100,
            tenant_ids: vec![DEFAULT_TENANT.into()],
            ..JobBatchValue::default()
        };
        let command = Command::new(Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)));
        match execute(client, PartitionId(partition), command).payload {
            Payload::JobBatch(JobBatchIntent::Activated, jobs) => keys_of(&jobs),
            other => panic!("unexpected answer {other:?}"),
        }
    };
    (1..=2).flat_map(of_partition).collect()
}

fn publish(client: &Client, key: &str) {
    publish_message(client, "paid", key, 600_000);
}

fn publish_message(client: &Client, name: &str, key: &str, time_to_live: i64) {
    let value = MessageValue {
        name: name.into(),
        correlation_key: key.into(),
        time_to_live,
        tenant_id: DEFAULT_TENANT.into(),
        ..MessageValue::default()
    };
    let payload = Payload::Message(MessageIntent::Publish, Box::new(value));
    execute(client, partition_for_correlation_key(key, 2), Command::new(Key::NONE, payload));
}

fn create_with(client: &Client, partition: u16, key: &str) -> Key {
    let command = creation(ProcessInstanceCreationIntent::Create, &format!("{{\"key\":\"{key}\"}}"));
    match execute(client, PartitionId(partition), command).payload {
        Payload::ProcessInstanceCreation(_, value) => value.process_instance_key,
        other => panic!("unexpected answer {other:?}"),
    }
}

/// What the keys of instances in a directory are called: how long they have come tells what they wait for.
fn name(kind: &str, partition: u16, number: usize) -> String {
    format!("{kind}-{partition}-{number}")
}

/// The partitions go on by the rules of the test level, the first one last.
fn raise(client: &Client) {
    let test = FeatureLevel::TEST.number();
    for level in client.feature_levels() {
        assert!(level.level < test, "the directory is of an older level");
        let (sender, answer) = mpsc::channel();
        client.raise_feature_level(level.partition, test, move |reply| drop(sender.send(reply))).expect("known");
        assert_eq!(answer.recv_timeout(LIMIT).expect("answered").expect("taken").rejection, None);
        eventually("the level", || {
            client.feature_levels().iter().any(|now| now.partition == level.partition && now.level == test)
        });
    }
}

/// An exporter to a file of lines.
fn with_exporter(directory: &Path, lines: &Path) -> NodeOptions {
    let arguments = Map::from_iter([("path".to_owned(), Value::from(lines.to_str().expect("UTF-8")))]);
    let exporter = ExporterConfiguration::of_class("lines", "JsonLines", arguments).expect("known");
    NodeOptions { exporters: vec![exporter], ..two_partitions(directory) }
}

/// The records of a partition in a file of lines, in their order.
fn records_of(partition: u16, lines: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(lines).expect("there");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    records.filter(|record| record["partitionId"] == partition).collect()
}

fn is_exported(node: &Node) -> bool {
    node.exporters().statuses()[0].partitions.iter().all(|partition| partition.lag_records == 0)
}

#[test]
fn the_records_of_a_directory_are_read_from_where_its_exporter_was() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path().join("data");
    write_with_records(&data, directory.path());
    let lines = directory.path().join("lines.jsonl");
    std::fs::remove_file(&lines).expect("what the run before exported");
    let node = start(with_exporter(&data, &lines));
    eventually("the records", || is_exported(&node));
    node.stop().expect("a clean stop");
    let text = std::fs::read_to_string(&lines).expect("there");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for partition in [1, 2] {
        let of_partition = records.iter().filter(|record| record["partitionId"] == partition);
        let numbers: Vec<u64> =
            of_partition.clone().map(|record| record["number"].as_u64().expect("a number")).collect();
        let (first, last) = (numbers[0], *numbers.last().expect("some"));
        assert!(first > 1, "what it had already does not come again");
        assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "nothing is missing");
        let created = of_partition.filter(|record| record["valueType"] == "JOB" && record["intent"] == "CREATED");
        assert_eq!(created.count(), INSTANCES, "jobs that were created while its target was away");
    }
}

#[test]
fn what_waits_in_a_directory_goes_on_to_its_end_at_a_newer_level() {
    let directory = tempfile::tempdir().expect("temporary directory");
    write(directory.path());
    let node = start(NodeOptions { newest_feature_level: FeatureLevel::TEST, ..two_partitions(directory.path()) });
    let client = node.client();
    raise(&client);
    let paid = activate_of(&client, "pay");
    assert_eq!(paid.len(), 2 * INSTANCES, "some wait for their first job");
    paid.iter().for_each(|(job, _)| assert_eq!(complete(&client, *job).expect("taken").rejection, None));
    for kind in ["job", "message"] {
        for (partition, number) in (1..=2).flat_map(|partition| (0..INSTANCES).map(move |number| (partition, number))) {
            publish(&client, &name(kind, partition, number));
        }
    }
    let all = 3 * 2 * INSTANCES;
    let mut ended = Vec::new();
    eventually("every instance", || {
        let shipped = activate_of(&client, "ship");
        shipped.iter().for_each(|(job, _)| assert_eq!(complete(&client, *job).expect("taken").rejection, None));
        ended.extend(shipped.into_iter().map(|(_, instance)| instance));
        ended.len() >= all
    });
    assert_eq!(ended.len(), all);
    for instance in ended {
        let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
        let partition = instance.partition().expect("a key of an instance");
        let reply = submit(&client, partition, Command::new(instance, cancel)).expect("taken");
        let rejection = reply.rejection.map(|rejection| rejection.rejection_type);
        assert_eq!(rejection, Some(RejectionType::NotFound), "{instance} has ended");
    }
    node.stop().expect("a clean stop");
}

/// As after a checkpoint of the second partition in a node that goes on.
fn compact(directory: &Path) {
    let report = broker::doctor::examine(directory).expect("readable");
    let index = report.partitions[1].checkpoint.as_ref().expect("readable").as_ref().expect("there").applied;
    let (group, log) =
        (GroupId(2), RaftEngineLog::open(&directory.join("log"), LogOptions::default()).expect("readable"));
    let mut anchor = log.load(group).expect("readable").expect("there").anchor;
    let term = log.read(group, index, index + 1, u64::MAX).expect("there")[0].term;
    anchor.compacted = Position { index, term };
    let write = GroupWrite::Append { entries: Vec::new(), hard_state: None, anchor: Some(anchor) };
    log.write(&WriteBatch { writes: vec![(group, write)] }).expect("writable");
}

#[test]
fn a_lost_state_is_refused_with_its_place_and_the_records_stay() {
    let directory = tempfile::tempdir().expect("temporary directory");
    write(directory.path());
    compact(directory.path());
    let (state, aside) = (directory.path().join("partitions/2/state"), directory.path().join("aside"));
    let records = || {
        let entries = std::fs::read_dir(directory.path().join("partitions/2/records")).expect("there");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        files.sort();
        files.into_iter().map(|path| (std::fs::read(&path).expect("readable"), path)).collect::<Vec<_>>()
    };
    let before = records();
    std::fs::rename(&state, &aside).expect("there");
    let refused = || Node::start(two_partitions(directory.path())).expect_err("the state is gone").to_string();
    let expected =
        format!("The state of partition 2 in {} holds everything up to entry 0, but its log", state.display());
    let error = refused();
    assert!(error.starts_with(&expected) && error.contains("Put that directory back as it was"), "{error}");
    std::fs::write(state.join("data.mdb"), "").expect("writable");
    let error = refused();
    assert!(error.starts_with(&expected), "{error}");
    assert!(records() == before, "nothing is dropped");
    std::fs::remove_dir_all(&state).expect("there");
    std::fs::rename(&aside, &state).expect("there");
    start(two_partitions(directory.path())).stop().expect("a clean stop");
}

/// The keys and positions that were given after the copy are not given again.
#[test]
fn a_directory_that_was_put_back_begins_another_life() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (data, lines) = (directory.path().join("data"), directory.path().join("lines.jsonl"));
    let node = start(with_exporter(&data, &lines));
    deploy(&node.client(), &process());
    let before = create_with(&node.client(), 2, "a");
    eventually("the records", || is_exported(&node));
    node.stop().expect("a clean stop");
    let incarnation = broker::doctor::restored(&data, 1_800_000_000).expect("writable");
    assert_eq!(incarnation, 1_800_000_000);
    let of_first_life = [1, 2].map(|partition| records_of(partition, &lines).len());
    let raised = || {
        let records = [1, 2].into_iter().flat_map(|partition| records_of(partition, &lines));
        let raised = records.filter(|record| record["valueType"] == "INCARNATION" && record["intent"] == "RAISED");
        raised.map(|record| (record["partitionId"].clone(), record["incarnation"].clone())).collect::<Vec<_>>()
    };
    // Once, however often it is started.
    for _ in 0..2 {
        let node = start(with_exporter(&data, &lines));
        eventually("the other life", || is_exported(&node) && raised().len() == 2);
        let after = create_with(&node.client(), 2, "b");
        assert!(after.counter() > before.counter() + 1_000_000_000, "{before} and {after}");
        eventually("the records", || is_exported(&node));
        node.stop().expect("a clean stop");
        assert_eq!(raised(), [1, 2].map(|partition| (Value::from(partition), Value::from(incarnation))));
    }
    // Nothing comes between the copy and the new life: others may have other records of these positions.
    for (partition, of_first_life) in [1, 2].into_iter().zip(of_first_life) {
        let records = records_of(partition, &lines);
        assert_eq!(records[of_first_life]["intent"], "RAISED", "{}", records[of_first_life]);
        let is_of_new_life = |record: &Value| record["incarnation"] == incarnation;
        assert_eq!(records.iter().position(is_of_new_life), Some(of_first_life));
    }
    // What waited goes on, and a second copy gets a number of its own.
    let node = start(with_exporter(&data, &lines));
    assert!(activate_of(&node.client(), "pay").iter().any(|(_, instance)| *instance == before));
    node.stop().expect("a clean stop");
    assert_eq!(broker::doctor::restored(&data, 5).expect("writable"), 1_800_000_001);
}

/// Writes a directory in which instances wait for time, for messages and for jobs.
fn write(directory: &Path) {
    let node = Node::start(two_partitions(directory)).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT));
    let client = node.client();
    deploy(&client, &process());
    for kind in ["time", "message", "job"] {
        for (partition, number) in (1..=2).flat_map(|partition| (0..INSTANCES).map(move |number| (partition, number))) {
            create_with(&client, partition, &name(kind, partition, number));
        }
        if kind != "job" {
            activate_of(&client, "pay").iter().for_each(|(job, _)| drop(complete(&client, *job).expect("taken")));
        }
        if kind == "time" {
            (1..=2)
                .flat_map(|partition| (0..INSTANCES).map(move |number| name(kind, partition, number)))
                .for_each(|key| publish(&client, &key));
        }
    }
    // Some of it is in the state file alone, some in the log alone.
    node.stop().expect("a clean stop");
    let node = start(two_partitions(directory));
    deploy(&node.client(), &one_task_until_it_is_shipped("another"));
    node.crash();
}

/// Writes a directory with records that its exporter has not got yet.
fn write_with_records(data: &Path, directory: &Path) {
    let lines = directory.join("lines.jsonl");
    let create = |client: &Client| {
        for (partition, number) in (1..=2).flat_map(|partition| (0..INSTANCES).map(move |number| (partition, number))) {
            create_with(client, partition, &name("job", partition, number));
        }
    };
    let node = start(with_exporter(data, &lines));
    deploy(&node.client(), &process());
    create(&node.client());
    eventually("the records", || is_exported(&node));
    node.stop().expect("a clean stop");
    // Its target is away: what is written waits in the segments.
    let node = Node::start(with_exporter(data, &directory.join("away/lines.jsonl"))).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT));
    create(&node.client());
    node.crash();
}
