//! The ledger of the load generator and its audit, against a node that is killed while it works.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::*;

/// Runs a node on the ports of an earlier one.
fn start_again(data: &Path, addresses: [&str; 3]) -> Server {
    let port = |address: &str| address.rsplit(':').next().expect("a port").to_owned();
    let [grpc, rest, management] = addresses.map(port);
    let mut command = program();
    command.args(["start", "--partitions", "2", "--disk-reserve", "1MB", "--data"]).arg(data);
    command.args(["--grpc-port", &grpc, "--http-port", &rest, "--management-port", &management]);
    command.env("OSMIA_LOG", "warn,raft_engine=error");
    Server::spawn(command)
}

fn audit(ledger: &Path, rest: &str, settle: &str) -> (bool, serde_json::Value) {
    let mut audit = program();
    audit.args(["load", "audit", "--json", "--settle", settle, "--address", rest, "--ledger"]).arg(ledger);
    let output = audit.output().expect("the binary starts");
    let report = serde_json::from_slice(&output.stdout);
    (output.status.success(), report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

/// Creations that were acknowledged.
fn acknowledged(ledger: &Path) -> usize {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    text.lines().filter(|line| line.contains(" = ")).count()
}

fn wait_for(ledger: &Path, count: usize) {
    let begin = Instant::now();
    while acknowledged(ledger) < count {
        assert!(begin.elapsed() < LIMIT, "{} of {count} are acknowledged", acknowledged(ledger));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn load(directory: &Path, ledger: &Path, grpc: &str, delay: &str) -> Command {
    let mut load = program();
    load.args(["load", "rate", "one-task", "--rate", "150", "--warm-up", "0s", "--duration", "8s", "--delay", delay]);
    load.args(["--job-timeout", "3s", "--gaps", "--address", grpc, "--json", "--fsync-directory"]).arg(directory);
    load.arg("--ledger").arg(ledger).stdout(Stdio::piped());
    load
}

#[test]
fn a_killed_node_loses_nothing_that_the_ledger_says_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let (data, ledger) = (directory.path().join("data"), directory.path().join("ledger"));
    let mut server = Server::start(&data, &["--partitions", "2", "--disk-reserve", "1MB"]);
    let (grpc, rest, management) = (server.grpc.clone(), server.rest.clone(), server.management.clone());
    let run = load(directory.path(), &ledger, &grpc, "20ms").spawn().expect("the binary starts");
    for _ in 0..2 {
        wait_for(&ledger, acknowledged(&ledger) + 250);
        server.kill();
        server = start_again(&data, [&grpc, &rest, &management]);
    }
    let output = run.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    let rate = &report["outcome"]["rate"];
    let counted = &rate["by_address"][0];
    assert!(counted["unknown"].as_u64() > Some(0), "the kills hit nothing: {counted}");
    let longest = rate["silence"]["longest"]["milliseconds"].as_f64();
    assert!(longest > Some(0.0) && rate["silence"]["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty()), "{rate}");

    let (clean, found) = audit(&ledger, &rest, "60s");
    assert!(clean, "{found:#}");
    assert!(found["creations_acknowledged"].as_u64() >= Some(200), "{found:#}");
    assert!(found["completions_acknowledged"].as_u64() >= Some(100), "{found:#}");
    assert_eq!(found["nodes"][0]["active"], 0, "{found:#}");

    // What the server never had is missed.
    let key = std::fs::read_to_string(&ledger).unwrap().lines().rev().find_map(|line| {
        let mut words = line.split(' ');
        (words.nth(1) == Some("=")).then(|| words.nth(1).expect("a key").parse::<i64>().expect("a key"))
    });
    let (never, job) = (key.expect("one was acknowledged") + 1_000_000, 77);
    let mut file = std::fs::OpenOptions::new().append(true).open(&ledger).unwrap();
    writeln!(file, "1 + ffffffffffffffff 0\n2 = ffffffffffffffff {never}\n3 ( {job} {never}\n4 ) {job}").unwrap();
    let (clean, found) = audit(&ledger, &rest, "1s");
    assert!(!clean, "{found:#}");
    assert_eq!((&found["lost"], &found["doubled"], &found["stuck"]), (&2.into(), &0.into(), &0.into()), "{found:#}");
    let sentence = found["findings"][0]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains(&never.to_string()) && sentence.contains(&rest), "{sentence}");
}

#[test]
fn an_audit_ends_what_a_killed_load_generator_left() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger");
    let server = Server::start(&directory.path().join("data"), &["--partitions", "2", "--disk-reserve", "1MB"]);
    // Its workers hold some jobs at any moment.
    let mut run = load(directory.path(), &ledger, &server.grpc, "500ms").spawn().expect("the binary starts");
    wait_for(&ledger, 200);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    let (clean, found) = audit(&ledger, &server.rest, "60s");
    assert!(clean, "{found:#}");
    assert!(found["completed_by_audit"].as_u64() > Some(0), "{found:#}");
    assert_eq!(found["nodes"][0]["instances"], found["nodes"][0]["completed"], "{found:#}");
    assert!(found["nodes"][0]["instances"].as_u64() >= found["creations_acknowledged"].as_u64(), "{found:#}");
}
