//! A disk that fills up, whoever fills it, and gets space again; a disk that cannot be written at all.
//!
//! The disk is a small volume in memory. To mount it, each test runs itself again in its own mount namespace. Root may
//! create one, and anyone where the system allows it; elsewhere the tests report that they are skipped.

#[path = "support/accounting.rs"]
mod accounting;
mod support;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use accounting::{Client, Load, connect, end_and_settle, seed};
use chance::Chance;
use gateway_interface::{ActivatedJob, CreateProcessInstanceRequest};
use serde_json::Value;
use support::*;
use tonic::Code;

/// Set where the test may mount.
const INSIDE: &str = "OSMIA_TEST_MOUNTS";
const MEBIBYTE: u64 = 1 << 20;

/// Runs the test of this name again where it may mount. `true` there.
fn may_mount(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let place = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    for namespace in [&["--mount"][..], &["--mount", "--map-root-user"]] {
        let mut probe = Command::new("unshare");
        probe.args(namespace).args(["mount", "-t", "tmpfs", "probe"]).arg(place.path());
        if probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            let mut again = Command::new("unshare");
            again.args(namespace).arg(&program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
            assert!(again.status().unwrap().success(), "the test failed; its words are above");
            return false;
        }
    }
    println!("skipped: this user may not mount a volume, which this test needs");
    false
}

/// A mounted volume.
struct Volume {
    directory: tempfile::TempDir,
    hogs: usize,
}

impl Volume {
    fn new(mebibytes: u64) -> Volume {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "osmia-test"]).arg(directory.path());
        assert!(mount.status().unwrap().success());
        Volume { directory, hogs: 0 }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn mount_again(&self, how: &str) {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", &format!("remount,{how}")]).arg(self.directory.path()).status().unwrap();
        assert!(status.success());
    }

    /// Fills the volume to the last byte, as another program would.
    fn fill(&mut self) {
        self.hogs += 1;
        let mut hog = File::create(self.directory.path().join(format!("hog{}", self.hogs))).unwrap();
        for chunk in [1 << 20, 4096, 1] {
            let chunk = vec![7; chunk];
            let error = loop {
                if let Err(error) = hog.write_all(&chunk) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
    }

    fn free(&mut self) {
        for number in 1..=std::mem::take(&mut self.hogs) {
            fs::remove_file(self.directory.path().join(format!("hog{number}"))).unwrap();
        }
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // The namespace takes the volume with it in any case.
        let _ = Command::new("umount").arg("-l").arg(self.directory.path()).status();
    }
}

fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !check() {
        assert!(begin.elapsed() < LIMIT, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn disk(server: &Server) -> Value {
    let (_, body) = server.http("GET", "/actuator/health", "");
    let health: Value = serde_json::from_str(&body).unwrap();
    health["components"]["diskSpace"].clone()
}

fn metric(server: &Server, name: &str) -> f64 {
    let (_, text) = server.http("GET", "/metrics", "");
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or_else(|| panic!("no metric {name}"))
}

async fn refuses_growth(client: &mut Client, words: &str) {
    let mut refusals = vec![client.create_process_instance(creation("order", "")).await.map(drop)];
    refusals.push(client.publish_message(message("paid", "bee", 60_000)).await.map(drop));
    let resource = one_task("late", "late");
    let request = gateway_interface::DeployResourceRequest { resources: vec![resource], tenant_id: String::new() };
    refusals.push(client.deploy_resource(request).await.map(drop));
    for refusal in refusals {
        let status = refusal.expect_err("there is no room for new work");
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains(words), "{status}");
    }
}

async fn jobs_of(client: &mut Client, count: usize) -> Vec<ActivatedJob> {
    let mut jobs = Vec::new();
    while jobs.len() < count {
        let more = activate(client, poll("work", LONG_POLL)).await;
        assert!(!more.is_empty(), "{count} jobs are there");
        jobs.extend(more);
    }
    jobs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_new_work_while_running_work_ends() {
    if !may_mount("a_full_disk_refuses_new_work_while_running_work_ends") {
        return;
    }
    let mut volume = Volume::new(96);
    let flags = [
        "--partitions",
        "2",
        "--disk-free-space-low",
        "16MB",
        "--disk-reserve",
        "16MB",
        "--checkpoint-interval",
        "300ms",
    ];
    let server = Server::start(&volume.data(), &flags);
    let mut client = connect(&server.grpc).await.unwrap();
    deploy(&mut client, one_task("order", "work")).await;
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(2_000));
    let mut instances = Vec::new();
    for _ in 0..200 {
        let created = client.create_process_instance(creation("order", &large)).await.unwrap().into_inner();
        instances.push(created.process_instance_key);
    }
    let reserve = volume.data().join("RESERVE");
    eventually("the reserve", || fs::metadata(&reserve).is_ok_and(|file| file.len() == 16 * MEBIBYTE));
    assert_eq!(disk(&server)["status"], "UP");
    assert_eq!(metric(&server, "osmia_disk_state"), 0.0);

    volume.fill();
    eventually("the low disk", || disk(&server)["status"] == "DOWN");
    refuses_growth(&mut client, "the disk of the data directory").await;
    refuses_growth(&mut client, "new work is taken only above 16 MiB; make room on it").await;
    assert_eq!(metric(&server, "osmia_disk_state"), 1.0);
    let mut jobs = jobs_of(&mut client, 64).await;
    for job in jobs.drain(..) {
        client.complete_job(completion(job.key, "{\"done\":true}")).await.expect("completions go on");
        instances.retain(|key| *key != job.process_instance_key);
    }
    for key in instances.drain(..50) {
        let request =
            gateway_interface::CancelProcessInstanceRequest { process_instance_key: key, operation_reference: None };
        client.cancel_process_instance(request).await.expect("cancellations go on");
    }
    client.topology(gateway_interface::TopologyRequest {}).await.expect("reads go on");
    // A checkpoint may fail before a piece of the reserve is given up for it.
    eventually("a healthy node on a low disk", || server.http("GET", "/actuator/health", "").0 == 200);
    assert_eq!(server.http("GET", "/ready", "").0, 200);
    let left = fs::metadata(&reserve).unwrap().len();
    assert!(left < 16 * MEBIBYTE, "the work went on in the reserve");

    // A process that is killed finds room for a start in the reserve.
    server.kill();
    volume.fill();
    let server = Server::start(&volume.data(), &flags);
    let mut client = connect(&server.grpc).await.unwrap();
    refuses_growth(&mut client, "the disk of the data directory").await;
    let jobs = jobs_of(&mut client, 32).await;
    for job in jobs {
        client.complete_job(completion(job.key, "")).await.expect("completions go on");
        instances.retain(|key| *key != job.process_instance_key);
    }

    volume.free();
    let begin = Instant::now();
    eventually("room for new work", || disk(&server)["status"] == "UP");
    let created = client.create_process_instance(creation("order", "")).await.expect("there is room").into_inner();
    println!("new work {:?} after there is room", begin.elapsed());
    instances.push(created.process_instance_key);
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 16 * MEBIBYTE, "the reserve is whole again");

    server.kill();
    let server = Server::start(&volume.data(), &flags);
    let mut client = connect(&server.grpc).await.unwrap();
    for key in instances {
        let request =
            gateway_interface::CancelProcessInstanceRequest { process_instance_key: key, operation_reference: None };
        client.cancel_process_instance(request).await.expect("every acknowledged instance is there");
    }
    assert!(activate(&mut client, poll("work", 1_000)).await.is_empty(), "nothing that ended comes back");
    assert_eq!(server.terminate(), Some(0));
}

/// Without marks and reserve, everything that is written meets the full disk itself: log, new log files, record segments,
/// checkpoints, positions and log lines.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_meets_the_full_disk_waits_and_goes_on() {
    if !may_mount("whatever_meets_the_full_disk_waits_and_goes_on") {
        return;
    }
    let seed = seed();
    let mut random = Chance::new(seed);
    // What is done between the rounds stays there: a quick machine does much.
    let mut volume = Volume::new(512);
    let configuration = volume.directory.path().join("osmia.yaml");
    let records = volume.directory.path().join("records.jsonl");
    let yaml = format!("exporters:\n  audit:\n    type: json-lines\n    path: {}\n", records.display());
    fs::write(&configuration, yaml).unwrap();
    let flags = [
        "--partitions",
        "3",
        "--disk-free-space-low",
        "0",
        "--disk-reserve",
        "0",
        "--checkpoint-interval",
        "100ms",
        "--config",
        configuration.to_str().unwrap(),
    ];
    let start = |volume: &Volume| {
        let lines = File::options().create(true).append(true).open(volume.directory.path().join("lines")).unwrap();
        let mut command = command(&volume.data(), &flags);
        command.args(["--log", "debug"]).stderr(lines);
        Server::spawn(command)
    };
    let mut server = start(&volume);
    let load = Load::begin(&server.grpc, 6, seed).await;
    for round in 0..8 {
        tokio::time::sleep(Duration::from_millis(random.within(100..400))).await;
        volume.fill();
        tokio::time::sleep(Duration::from_millis(random.within(300..1_200))).await;
        assert!(server.is_running(), "round {round}: a full disk does not end the node");
        if round % 2 == 0 {
            volume.free();
            continue;
        }
        server.kill();
        let refusal = start_fails(&volume.data(), &flags);
        assert!(refusal.contains("and a start needs at least") || refusal.contains("No space left"), "{refusal}");
        volume.free();
        server = start(&volume);
        load.go_on(&server.grpc);
        assert!(load.is_content());
    }
    end_and_settle(load, server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_does_not_fill_a_small_disk_by_itself() {
    if !may_mount("the_node_does_not_fill_a_small_disk_by_itself") {
        return;
    }
    let volume = Volume::new(256);
    // The room is looked at every 100 ms, in which a quick machine does much.
    let flags = ["--partitions", "2", "--checkpoint-interval", "200ms", "--disk-free-space-low", "128MB"];
    // A read model keeps what happened for ever.
    let server = Server::start(&volume.data(), &[&flags[..], &["--read-model", "none"]].concat());
    let mut client = connect(&server.grpc).await.unwrap();
    deploy(&mut client, one_task("order", "work")).await;
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    // Much more than the disk holds goes through it.
    for _ in 0..150 {
        let key = create_when_there_is_room(&mut client, creation("order", &large)).await;
        let request =
            gateway_interface::CancelProcessInstanceRequest { process_instance_key: key, operation_reference: None };
        client.cancel_process_instance(request).await.expect("it is there");
    }
    // What the last instances took may come back a moment later.
    let begin = Instant::now();
    while disk(&server)["status"] != "UP" {
        assert!(begin.elapsed() < LIMIT, "the room comes back with the next checkpoints");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{} of 256 MiB are free", metric(&server, "osmia_disk_free_bytes") as u64 / MEBIBYTE);
}

/// What the log forgets with a checkpoint may come a moment later than the next instance.
async fn create_when_there_is_room(client: &mut Client, creation: CreateProcessInstanceRequest) -> i64 {
    let limit = Instant::now() + LIMIT;
    loop {
        match client.create_process_instance(creation.clone()).await {
            Ok(created) => return created.into_inner().process_instance_key,
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                // Low, but not full: the reserve is not touched.
                assert!(status.message().contains("new work is taken only above"), "{status}");
                assert!(Instant::now() < limit, "there is no room again: {status}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_cannot_be_written_is_refused_by_name_and_left_as_it_is() {
    if !may_mount("a_disk_that_cannot_be_written_is_refused_by_name_and_left_as_it_is") {
        return;
    }
    let volume = Volume::new(96);
    let server = Server::start(&volume.data(), &[]);
    let mut client = connect(&server.grpc).await.unwrap();
    deploy(&mut client, one_task("order", "work")).await;
    let created = client.create_process_instance(creation("order", "")).await.unwrap().into_inner();
    server.kill();
    volume.mount_again("ro");
    let refusal = start_fails(&volume.data(), &[]);
    assert!(refusal.contains(&path_text(&volume.data().join("LOCK"))), "{refusal}");
    assert!(refusal.contains("Read-only file system"), "{refusal}");
    volume.mount_again("rw");
    let server = Server::start(&volume.data(), &[]);
    let mut client = connect(&server.grpc).await.unwrap();
    let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
    assert_eq!(jobs[0].process_instance_key, created.process_instance_key);
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}
