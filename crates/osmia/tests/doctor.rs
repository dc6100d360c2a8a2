//! A command that ends the process: the node starts without its partition, says which command it was, and an operator decides.
//!
//! The end is planted with a variable that only builds with debug assertions know.
#![cfg(debug_assertions)]

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{Server, activate, command, completion, creation, deploy, one_task, poll, program};
use tonic::Code;

const PARTITIONS: u16 = 3;

fn doctor(data: &Path, arguments: &[&str]) -> Output {
    program().arg("doctor").arg("--data").arg(data).args(arguments).output().expect("the binary starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn report(data: &Path) -> (bool, Value) {
    let output = doctor(data, &["--json"]);
    (output.status.success(), serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// A node that ends at every creation of an instance of `poison`.
fn poisoned(data: &Path) -> Command {
    let mut command = command(data, &["--partitions", "3"]);
    command.env("OSMIA_ABORT_AT", "poison");
    command
}

/// Runs a node that ends before it is ready; returns what it says.
fn ends(mut command: Command) -> String {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), None, "a signal ended it, it did not stop by itself: {}", text(&output));
    text(&output)
}

fn health(server: &Server) -> Value {
    serde_json::from_str(&server.http("GET", "/actuator/health", "").1).expect("JSON")
}

fn partition_health(health: &Value, partition: u64) -> &Value {
    &health["components"]["partitions"]["details"][format!("partition{partition}")]
}

/// Creates an instance on each partition in turn; returns the keys.
async fn create_everywhere(server: &Server, process: &str) -> Vec<i64> {
    let mut client = server.client().await;
    let mut keys = Vec::new();
    for _ in 0..PARTITIONS {
        let created = client.create_process_instance(creation(process, "{}")).await.expect("it is created");
        keys.push(created.into_inner().process_instance_key);
    }
    keys
}

fn partition_of(key: i64) -> u64 {
    (key >> 51).cast_unsigned()
}

/// Ends the node three times with a creation of `poison`; returns the partition and the instances that wait elsewhere and there.
async fn poison(data: &Path) -> (u64, Vec<i64>) {
    let server = Server::spawn(poisoned(data));
    let mut client = server.client().await;
    deploy(&mut client, one_task("healthy", "work")).await;
    deploy(&mut client, one_task("poison", "never")).await;
    let waiting = create_everywhere(&server, "healthy").await;
    let lost = client.create_process_instance(creation("poison", "{\"dose\":17}")).await.expect_err("nobody answers");
    assert!(matches!(lost.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal), "{lost}");
    assert_eq!(server.wait(), None, "a signal ended it");
    ends(poisoned(data));
    ends(poisoned(data));
    let (_, report) = report(data);
    let suspects = report["partitions"].as_array().expect("partitions").iter();
    let suspects: Vec<u64> = suspects
        .filter(|partition| partition["suspect"]["times"] == 3)
        .map(|partition| partition["partition"].as_u64().expect("a number"))
        .collect();
    assert_eq!(suspects.len(), 1, "one partition ended the process: {report:#}");
    (suspects[0], waiting)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_the_process_costs_one_partition_until_it_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path();
    let (partition, waiting) = poison(data).await;

    // The fourth start leaves the partition out; the others serve.
    let server = Server::spawn(poisoned(data));
    let seen = health(&server);
    assert_eq!((&seen["status"], server.http("GET", "/ready", "").0), (&"DOWN".into(), 200), "it serves: {seen:#}");
    assert_eq!(seen["components"]["liveness"]["status"], "UP", "a restart would help nobody: {seen:#}");
    for id in 1..=u64::from(PARTITIONS) {
        let expected = if id == partition { "DOWN" } else { "UP" };
        assert_eq!(partition_health(&seen, id)["status"], expected, "partition {id}: {seen:#}");
    }
    let message = partition_health(&seen, partition)["details"]["message"].as_str().expect("a reason").to_owned();
    for part in [
        "The process ended 3 times in a row while it applied command 1 of 1 in entry ",
        "PROCESS_INSTANCE_CREATION CREATE, process 'poison'",
        &format!("osmia doctor --data {} --refuse {partition}:", data.display()),
        &format!("--retry {partition}"),
    ] {
        assert!(message.contains(part), "'{part}' in: {message}");
    }
    let mut client = server.client().await;
    let jobs = activate(&mut client, poll("work", 1_000)).await;
    let mut alive: Vec<i64> = waiting.iter().copied().filter(|key| partition_of(*key) != partition).collect();
    let mut found: Vec<i64> = jobs.iter().map(|job| job.process_instance_key).collect();
    alive.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, alive, "the instances of the other partitions go on");
    let created = create_everywhere(&server, "healthy").await;
    assert!(created.iter().all(|key| partition_of(*key) != partition), "new ones go to the others: {created:?}");
    let more = activate(&mut client, poll("work", 1_000)).await;
    for job in jobs.iter().chain(&more) {
        client.complete_job(completion(job.key, "{}")).await.expect("the others go on");
    }
    let refused = text(&doctor(data, &[]));
    assert!(refused.contains("is in use by process"), "the doctor waits for the node to stop: {refused}");
    assert_eq!(server.terminate(), Some(0));

    // The doctor shows what it was; stopping as one should does not bring the partition back.
    let (healthy, report) = report(data);
    assert!(!healthy);
    let of_partition = &report["partitions"][usize::try_from(partition - 1).expect("small")];
    let suspect = &of_partition["suspect"];
    assert_eq!((&suspect["times"], &suspect["leftOut"]), (&Value::from(3), &Value::from(true)), "{report:#}");
    assert_eq!(suspect["entry"]["bpmnProcessId"], "poison");
    assert_eq!(suspect["entry"]["command"]["intent"], "CREATE");
    assert_eq!(suspect["entry"]["command"]["value"]["bpmnProcessId"], "poison");
    let index = suspect["index"].as_u64().expect("an index");
    assert!(of_partition["log"]["lastIndex"].as_u64() >= Some(index), "the log keeps it: {report:#}");
    let shown = text(&doctor(data, &[]));
    assert!(shown.contains("the next start leaves the partition out"), "{shown}");
    assert!(shown.contains("there is 1 problem"), "{shown}");

    // Refused: all partitions are there.
    let wrong = text(&doctor(data, &["--refuse", &format!("{partition}:{index}:2")]));
    assert!(wrong.contains("has no command 2, its commands are 1 to 1"), "{wrong}");
    let output = doctor(data, &["--refuse", &format!("{partition}:{index}:1")]);
    assert!(output.status.success() && text(&output).contains("run on each other node"), "{}", text(&output));
    let server = Server::spawn(poisoned(data));
    let seen = health(&server);
    for id in 1..=u64::from(PARTITIONS) {
        assert_eq!(partition_health(&seen, id)["status"], "UP", "{seen:#}");
    }
    let message = partition_health(&seen, partition)["details"]["message"].to_string();
    assert!(
        message.contains(&format!("Refused by an operator and not processed: command 1 in entry {index}")),
        "{message}"
    );
    let mut client = server.client().await;
    let jobs = activate(&mut client, poll("work", 1_000)).await;
    let there: Vec<i64> = jobs.iter().map(|job| job.process_instance_key).collect();
    let left: Vec<i64> = waiting.iter().copied().filter(|key| partition_of(*key) == partition).collect();
    assert_eq!(there, left, "everything else of the partition is there");
    assert_eq!(activate(&mut client, poll("never", -1)).await, [], "the refused instance was not created");
    assert_eq!(server.terminate(), Some(0));

    let (healthy, report) = self::report(data);
    assert!(healthy, "{report:#}");
    let moot = text(&doctor(data, &["--refuse", &format!("{partition}:{index}")]));
    assert!(moot.contains("so there is nothing to refuse"), "{moot}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_tried_again_when_an_operator_says_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path();
    let (partition, waiting) = poison(data).await;
    let output = doctor(data, &["--retry", &partition.to_string()]);
    assert!(output.status.success() && text(&output).contains("the process ended 3 time(s)"), "{}", text(&output));
    // It ends the process again, and is counted from the beginning.
    ends(poisoned(data));
    assert_eq!(report(data).1["partitions"][usize::try_from(partition - 1).expect("small")]["suspect"]["times"], 1);
    // This time what ended it is mended.
    let server = Server::start(data, &["--partitions", "3"]);
    let mut client = server.client().await;
    let jobs = activate(&mut client, poll("never", 1_000)).await;
    assert_eq!(jobs.len(), 1, "the instance is there");
    assert_eq!(activate(&mut client, poll("work", 1_000)).await.len(), waiting.len());
    assert_eq!(server.terminate(), Some(0));
    let (healthy, report) = report(data);
    assert!(healthy, "going beyond the entry forgets it: {report:#}");
}

/// What it leads to is in the tests of the broker (`a_directory_that_was_put_back_begins_another_life`).
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_was_put_back_is_noted() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path();
    let server = Server::start(data, &[]);
    assert!(text(&doctor(data, &["--restored"])).contains("is in use by process"));
    assert_eq!(server.terminate(), Some(0));
    let output = doctor(data, &["--restored"]);
    let said = text(&output);
    assert!(output.status.success() && said.contains("the partitions are at incarnation "), "{said}");
    let server = Server::start(data, &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("again", "work")).await;
    assert_eq!(server.terminate(), Some(0));
    assert!(report(data).0, "it is in good health");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_in_good_health_is_described_and_not_changed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let nothing = directory.path().join("nothing");
    let error = text(&doctor(&nothing, &[]));
    assert!(error.contains("no file 'FORMAT'") && !nothing.exists(), "{error}");
    let data = directory.path().join("data");
    // Records are only written if something reads them.
    let (file, records) = (directory.path().join("osmia.yaml"), directory.path().join("records.jsonl"));
    let exporters = format!("exporters:\n  debug:\n    type: json-lines\n    path: {}\n", records.display());
    std::fs::write(&file, exporters).expect("writable");
    let server = Server::start(&data, &["--partitions", "3", "--config", file.to_str().expect("text")]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("healthy", "work")).await;
    create_everywhere(&server, "healthy").await;
    assert_eq!(server.terminate(), Some(0));

    let (healthy, first) = report(&data);
    assert!(healthy, "{first:#}");
    assert_eq!((&first["format"], &first["node"], &first["starts"]), (&1.into(), &0.into(), &1.into()));
    for partition in first["partitions"].as_array().expect("partitions") {
        assert!(partition["suspect"].is_null() && partition["refused"] == Value::Array(Vec::new()), "{partition:#}");
        assert_eq!(
            partition["checkpoint"]["applied"], partition["log"]["lastIndex"],
            "a clean stop leaves a checkpoint"
        );
        assert_eq!(partition["checkpoint"]["lastPosition"], partition["records"]["lastPosition"], "{partition:#}");
        assert_eq!(partition["checkpoint"]["schema"], 1);
        let acknowledged = &first["exporters"]["debug"]["acknowledged"][partition["partition"].to_string()];
        assert_eq!(acknowledged["position"], partition["records"]["lastPosition"], "{first:#}");
        assert_eq!(acknowledged["incarnation"], 1);
    }
    assert_eq!(report(&data).1, first, "a look changes nothing");

    // A damaged list of refused commands stops the start by name, and the doctor says so too.
    let refused = data.join("partitions").join("2").join("refused");
    std::fs::write(&refused, "osmia refused commands format 1\nentry 5\n").expect("writable");
    let said = support::start_fails(&data, &[]);
    assert!(said.contains("The list of refused commands of partition 2") && said.contains("checksum"), "{said}");
    let (healthy, report) = report(&data);
    assert!(!healthy && report["partitions"][1]["refused"]["problem"].to_string().contains("checksum"), "{report:#}");
    std::fs::remove_file(&refused).expect("there");
    // A damaged note is no reason not to start.
    std::fs::write(data.join("partitions").join("1").join("applying"), "scribble").expect("writable");
    assert_eq!(Server::start(&data, &[]).terminate(), Some(0));
}
