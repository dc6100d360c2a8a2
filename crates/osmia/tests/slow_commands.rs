//! A command that computes without end: the node says which one it is while it computes, stops without it, and after three starts
//! with it starts without its partition.
//!
//! The command is planted with a variable that only builds with debug assertions know.
#![cfg(debug_assertions)]

mod support;

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{LIMIT, Server, command, creation, deploy, one_task};

/// A node that computes for days when an instance of `slow` is created; its log goes to a file.
fn slow(data: &Path, log: &Path) -> Command {
    let mut command = command(data, &["--partitions", "1"]);
    command.env("OSMIA_COMPUTE_AT", "slow 1000000").stderr(File::create(log).expect("a directory"));
    command
}

fn wait_for(log: &Path, text: &str) {
    let begin = Instant::now();
    while !std::fs::read_to_string(log).expect("it is there").contains(text) {
        assert!(begin.elapsed() < LIMIT, "'{text}' is not in the log");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn terminate(child: &mut Child) -> Option<i32> {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill exists").success());
    child.wait().expect("it is a child").code()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_end_is_named_holds_up_no_stop_and_costs_its_partition_after_three_starts() {
    const NAMED: &str = "a command takes long and is still being applied: command 1 of 1 in entry";
    const STOPS: &str = "the node stops without the last checkpoint of the partition";
    let directory = tempfile::tempdir().expect("temporary directory");
    let (data, log) = (directory.path().join("data"), directory.path().join("log"));
    let server = Server::spawn(slow(&data, &log));
    let mut client = server.client().await;
    deploy(&mut client, one_task("slow", "never")).await;
    let created = tokio::spawn(async move { client.create_process_instance(creation("slow", "{}")).await });
    wait_for(&log, NAMED);
    assert_eq!(server.terminate(), Some(0));
    assert!(std::fs::read_to_string(&log).expect("it is there").contains(STOPS));
    assert!(created.await.expect("no panic").is_err(), "nobody answered");
    for start in 2..=3 {
        let mut child = slow(&data, &log).stdout(Stdio::null()).spawn().expect("the binary starts");
        wait_for(&log, NAMED);
        assert_eq!(terminate(&mut child), Some(0), "start {start}");
    }
    let server = Server::spawn(slow(&data, &log));
    let (_, health) = server.http("GET", "/actuator/health", "");
    assert!(health.contains("The process ended 3 times in a row while it applied command 1 of 1"), "{health}");
    assert_eq!(server.terminate(), Some(0));
}
