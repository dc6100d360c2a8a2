//! A process that is killed at any moment, again and again, while clients work with it.

#[path = "support/accounting.rs"]
mod accounting;
#[path = "support/exported.rs"]
mod exported;
mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use accounting::{Load, seed, settle};
use chance::Chance;
use exported::{Lines, audit_records};
use support::*;

const CLIENTS: usize = 8;
const FLAGS: &[&str] = &["--partitions", "3", "--checkpoint-interval", "150ms", "--disk-reserve", "1MB", "--config"];

fn kills() -> usize {
    std::env::var("OSMIA_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(50)
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_under_load_lose_nothing_and_do_nothing_twice() {
    let seed = seed();
    let mut random = Chance::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let (data, records) = (directory.path().join("data"), directory.path().join("records.jsonl"));
    let configuration = directory.path().join("osmia.yaml");
    let yaml = format!("exporters:\n  audit:\n    type: json-lines\n    path: {}\n", records.display());
    std::fs::write(&configuration, yaml).unwrap();
    let flags = [FLAGS, &[configuration.to_str().unwrap()]].concat();

    let mut server = Server::start(&data, &flags);
    let load = Load::begin(&server.grpc, CLIENTS, seed).await;
    let begin = Instant::now();
    for _ in 0..kills() {
        tokio::time::sleep(Duration::from_millis(random.within(10..400))).await;
        server.kill();
        if random.below(4) == 0 {
            // Recovery is a moment like any other.
            let child = command(&data, &flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut child = child.expect("the binary starts");
            tokio::time::sleep(Duration::from_millis(random.within(0..120))).await;
            child.kill().expect("it is a child");
            child.wait().expect("it ends");
        }
        server = Server::start(&data, &flags);
        load.go_on(&server.grpc);
        if !load.is_content() {
            break;
        }
    }
    let mut ledgers = load.end().await;
    let killed = begin.elapsed();
    let totals = settle(&mut ledgers, &server.grpc).await;
    println!("{} kills in {killed:?}, settled after {:?}, {totals:?}", kills(), begin.elapsed());
    // How much there is depends on the speed of the machine, so this only says that the clients were at work.
    let least = kills() / 10;
    assert!(totals.created > least && totals.completed > least && totals.published > least, "{totals:?}");
    assert!(totals.unclear > 0, "no kill hit anything: {totals:?}");
    assert_eq!(server.terminate(), Some(0));
    audit_records(&records, Lines::Whole, &ledgers);
}
