//! A disk that answers with errors, for a while or for good.
//!
//! A small library in front of the system's calls makes writes and syncs of chosen files fail. It is compiled by the test;
//! without a C compiler the tests say that they are skipped.

#[path = "support/accounting.rs"]
mod accounting;
mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use accounting::{Client, Load, connect, end_and_settle, seed};
use chance::Chance;
use support::*;
use tonic::Code;

const EIO: i32 = 5;
const EROFS: i32 = 30;

/// The file named by `OSMIA_FAULTS` holds lines of a call (`write`, `sync`, or `small` and `large` for writes of less
/// than 512 bytes and all others), a part of a path and the error.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int fault(const char *call, int fd) {
    char rules[1024], path[4096], link[64], name[32], part[256], *rest = NULL;
    const char *control = getenv("OSMIA_FAULTS");
    int saved = errno, code = 0, found = 0;
    int file = control ? open(control, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) { errno = saved; return 0; }
    ssize_t length = read(file, rules, sizeof rules - 1);
    close(file);
    if (length > 0) {
        rules[length] = 0;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        for (char *line = strtok_r(rules, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            if (sscanf(line, "%31s %255s %d", name, part, &code) == 3 && !strcmp(name, call) && strstr(path, part))
                found = code;
    }
    errno = saved;
    return found;
}

#define WRITES(name, bytes, parameters, arguments) \
    ssize_t name parameters { \
        static ssize_t (*real) parameters; \
        if (!real) real = (ssize_t (*) parameters) dlsym(RTLD_NEXT, #name); \
        int code = fault("write", fd); \
        if (!code) code = fault((bytes) < 512 ? "small" : "large", fd); \
        if (code) { errno = code; return -1; } \
        return real arguments; \
    }
#define SYNCS(name) \
    int name(int fd) { \
        static int (*real)(int); \
        if (!real) real = (int (*)(int)) dlsym(RTLD_NEXT, #name); \
        int code = fault("sync", fd); \
        if (code) { errno = code; return -1; } \
        return real(fd); \
    }

WRITES(write, length, (int fd, const void *data, size_t length), (fd, data, length))
WRITES(pwrite, length, (int fd, const void *data, size_t length, off_t at), (fd, data, length, at))
WRITES(pwrite64, length, (int fd, const void *data, size_t length, off64_t at), (fd, data, length, at))
WRITES(writev, 512, (int fd, const struct iovec *data, int count), (fd, data, count))
WRITES(pwritev, 512, (int fd, const struct iovec *data, int count, off_t at), (fd, data, count, at))
WRITES(pwritev64, 512, (int fd, const struct iovec *data, int count, off64_t at), (fd, data, count, at))
SYNCS(fsync)
SYNCS(fdatasync)
"#;

/// A node whose disk fails on demand.
struct Faulty {
    directory: tempfile::TempDir,
    library: PathBuf,
}

impl Faulty {
    /// None if there is no C compiler.
    fn new() -> Option<Faulty> {
        let directory = tempfile::tempdir().unwrap();
        let (source, library) = (directory.path().join("faults.c"), directory.path().join("faults.so"));
        fs::write(&source, LIBRARY).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).arg("-ldl");
        if !compiler.stderr(Stdio::inherit()).status().is_ok_and(|status| status.success()) {
            println!("skipped: there is no C compiler to build the library that injects errors");
            return None;
        }
        Some(Faulty { directory, library })
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn control(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    fn lines(&self) -> PathBuf {
        self.directory.path().join("lines")
    }

    fn start(&self, flags: &[&str]) -> Server {
        self.set("");
        // Without a reader no records would be written.
        let configuration = self.directory.path().join("osmia.yaml");
        let records = self.directory.path().join("records.jsonl");
        let yaml = format!("exporters:\n  audit:\n    type: json-lines\n    path: {}\n", records.display());
        fs::write(&configuration, yaml).unwrap();
        let mut command = command(&self.data(), flags);
        command.arg("--config").arg(configuration);
        command.env("LD_PRELOAD", &self.library).env("OSMIA_FAULTS", self.control());
        command.stderr(File::options().create(true).append(true).open(self.lines()).unwrap());
        Server::spawn(command)
    }

    /// From now on these calls fail.
    fn set(&self, rules: &str) {
        let new = self.directory.path().join("control.new");
        fs::write(&new, rules).unwrap();
        fs::rename(&new, self.control()).unwrap();
    }

    /// What the node wrote into its log.
    fn said(&self) -> String {
        fs::read_to_string(self.lines()).unwrap()
    }
}

async fn create(client: &mut Client) -> Result<i64, tonic::Status> {
    let created = client.create_process_instance(creation("order", "")).await?;
    Ok(created.into_inner().process_instance_key)
}

async fn with_instances(server: &Server, count: usize) -> (Client, Vec<i64>) {
    let mut client = connect(&server.grpc).await.unwrap();
    deploy(&mut client, one_task("order", "work")).await;
    let mut instances = Vec::new();
    for _ in 0..count {
        instances.push(create(&mut client).await.unwrap());
    }
    (client, instances)
}

/// Every instance is there, once: it can be cancelled once.
async fn all_there(server: &Server, instances: &[i64]) {
    let mut client = connect(&server.grpc).await.unwrap();
    for key in instances {
        let request = || gateway_interface::CancelProcessInstanceRequest {
            process_instance_key: *key,
            operation_reference: None,
        };
        client.cancel_process_instance(request()).await.expect("every acknowledged instance is there");
        let again = client.cancel_process_instance(request()).await.expect_err("it is cancelled");
        assert_eq!(again.code(), Code::NotFound);
    }
}

async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !check() {
        assert!(begin.elapsed() < LIMIT, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn checkpoints(server: &Server) -> f64 {
    let (_, text) = server.http("GET", "/metrics", "");
    let lines = text.lines().filter(|line| line.starts_with("zeebe_snapshot_count_total{"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_sync_of_the_log_nothing_is_acknowledged_and_the_process_ends() {
    let Some(disk) = Faulty::new() else { return };
    let server = disk.start(&["--partitions", "2"]);
    let (mut client, instances) = with_instances(&server, 50).await;
    disk.set(&format!("sync .raftlog {EIO}"));
    for _ in 0..5 {
        let status = create(&mut client).await.expect_err("nobody knows what is on the disk");
        assert!(matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled), "{status}");
        // A disk that works again makes no difference.
        disk.set("");
    }
    assert_eq!(server.wait(), Some(1), "the process ends by itself");
    let said = disk.said();
    assert!(said.contains("the log cannot be trusted any more: Syncing the log in"), "{said}");
    assert!(said.contains("Check the disk, then start again"), "{said}");

    let server = disk.start(&[]);
    all_there(&server, &instances).await;
    assert_eq!(server.terminate(), Some(0));
}

/// Writes of these files fail for a while. Nothing is acknowledged that is not in the log and in the record stream.
async fn fails_for_a_while(rules: &str, words: &str) {
    let Some(disk) = Faulty::new() else { return };
    let server = disk.start(&["--partitions", "1"]);
    let (mut client, mut instances) = with_instances(&server, 20).await;
    disk.set(rules);
    let mut waiting = connect(&server.grpc).await.unwrap();
    let waiting = tokio::spawn(async move { create(&mut waiting).await });
    let health = |server: &Server| server.http("GET", "/actuator/health/status", "").0;
    eventually("the trouble", || health(&server) == 503).await;
    let status = create(&mut client).await.expect_err("it would wait in vain");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains(words), "{status}");
    client.topology(gateway_interface::TopologyRequest {}).await.expect("reads go on");
    assert_eq!(server.http("GET", "/ready", "").0, 200, "a restart would not help");
    assert!(!waiting.is_finished(), "it is not written everywhere");

    disk.set("");
    instances.push(waiting.await.unwrap().expect("what waited is carried out"));
    eventually("the end of the trouble", || health(&server) == 200).await;
    instances.push(create(&mut client).await.expect("new work is taken again"));
    server.kill();
    let server = disk.start(&[]);
    all_there(&server, &instances).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_for_a_while_goes_on() {
    fails_for_a_while(&format!("write .raftlog {EIO}"), "its log cannot be written").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_stream_that_cannot_be_written_for_a_while_goes_on() {
    fails_for_a_while(&format!("write .records {EIO}"), "its record stream cannot be written").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_becomes_read_only_for_a_while_goes_on() {
    fails_for_a_while(&format!("write /data/ {EROFS}"), "its log cannot be written").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_that_fail_hold_nobody_up_and_are_made_later() {
    let Some(disk) = Faulty::new() else { return };
    let flags = ["--partitions", "2", "--checkpoint-interval", "100ms"];
    let server = disk.start(&flags);
    let (mut client, mut instances) = with_instances(&server, 20).await;
    // The errors may begin in the middle of a checkpoint. Its last write, a small one, must not be hit: see below.
    for rules in [format!("large data.mdb {EIO}"), format!("sync data.mdb {EIO}"), format!("sync .records {EIO}")] {
        disk.set(&rules);
        instances.push(create(&mut client).await.expect("checkpoints have time"));
        eventually("the trouble", || server.http("GET", "/actuator/health", "").1.contains("\"DOWN\"")).await;
        for _ in 0..20 {
            instances.push(create(&mut client).await.expect("checkpoints have time"));
        }
        let before = checkpoints(&server);
        disk.set("");
        eventually("a checkpoint", || checkpoints(&server) > before).await;
        eventually("health", || !server.http("GET", "/actuator/health", "").1.contains("\"DOWN\"")).await;
    }
    server.kill();
    let server = disk.start(&flags);
    all_there(&server, &instances).await;
}

/// LMDB gives up when the page that names the newest tree cannot be written: only opening the file again helps.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_file_that_has_to_be_opened_again_ends_the_process() {
    let Some(disk) = Faulty::new() else { return };
    let flags = ["--partitions", "1", "--checkpoint-interval", "100ms"];
    let server = disk.start(&flags);
    let (mut client, mut instances) = with_instances(&server, 20).await;
    disk.set(&format!("small data.mdb {EIO}"));
    while let Ok(key) = create(&mut client).await {
        instances.push(key);
    }
    disk.set("");
    assert_eq!(server.wait(), Some(1), "the process ends by itself");
    let said = disk.said();
    assert!(said.contains("the state of partition 1 has to be opened again"), "{said}");
    let server = disk.start(&flags);
    all_there(&server, &instances).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_at_random_under_load_lose_nothing_and_do_nothing_twice() {
    let Some(disk) = Faulty::new() else { return };
    let seed = seed();
    let mut random = Chance::new(seed);
    let flags = ["--partitions", "3", "--checkpoint-interval", "100ms"];
    let mut server = disk.start(&flags);
    let load = Load::begin(&server.grpc, 6, seed).await;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_millis(random.within(50..250))).await;
        let call = ["write", "write", "sync"][random.index(3)];
        let file = [".raftlog", ".records", "data.mdb", ".rewrite", "/partitions/2/"][random.index(5)];
        disk.set(&format!("{call} {file} {EIO}"));
        tokio::time::sleep(Duration::from_millis(random.within(50..500))).await;
        disk.set("");
        // An error may hit the page that names the newest tree of a state file.
        let may_end = call == "write" && ["data.mdb", "/partitions/2/"].contains(&file);
        if call == "sync" && file == ".raftlog" || !server.is_running() && may_end {
            assert_eq!(server.wait(), Some(1), "the process ends by itself");
        } else if random.below(3) == 0 {
            server.kill();
        } else {
            assert!(server.is_running() || may_end, "errors that pass do not end the node: {call} {file}");
            continue;
        }
        server = disk.start(&flags);
        load.go_on(&server.grpc);
        assert!(load.is_content());
    }
    end_and_settle(load, server).await;
}

/// A node's log lines are the least important of what it writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_log_lines_nobody_takes_works() {
    if !Path::new("/dev/full").exists() {
        println!("skipped: this system has no /dev/full");
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), &["--partitions", "2"]);
    command.args(["--log", "trace"]).stderr(File::options().write(true).open("/dev/full").unwrap());
    let server = Server::spawn(command);
    let (_, instances) = with_instances(&server, 5).await;
    all_there(&server, &instances).await;
    assert_eq!(server.terminate(), Some(0));
}
