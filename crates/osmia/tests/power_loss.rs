//! A machine that loses power at any moment, again and again, while clients work with it: of what was written and not synced,
//! everything, nothing or any part is there afterwards, of names in directories too.

#[path = "support/accounting.rs"]
mod accounting;
#[path = "support/exported.rs"]
mod exported;
#[path = "support/power.rs"]
mod power;
mod support;

use std::process::Stdio;
use std::time::Duration;

use accounting::{Load, seed, settle};
use chance::Chance;
use exported::{Lines, audit_records};
use power::{Disk, Tearing};
use support::*;

const CLIENTS: usize = 6;
const FLAGS: &[&str] = &["--partitions", "3", "--checkpoint-interval", "150ms", "--disk-reserve", "1MB", "--config"];

fn losses() -> usize {
    std::env::var("OSMIA_POWER_LOSSES").ok().and_then(|losses| losses.parse().ok()).unwrap_or(15)
}

fn start(disk: &Disk, flags: &[&str]) -> Server {
    let mut command = command(&disk.root().join("data"), flags);
    disk.watch(&mut command);
    Server::spawn(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn power_losses_under_load_lose_nothing_and_do_nothing_twice() {
    let Some(mut disk) = Disk::new() else { return };
    let seed = seed();
    let mut random = Chance::new(seed);
    // The exporter's file is on the same disk.
    let configuration = tempfile::NamedTempFile::new().unwrap();
    let records = disk.root().join("records.jsonl");
    let yaml = format!("exporters:\n  audit:\n    type: json-lines\n    path: {}\n", records.display());
    std::fs::write(configuration.path(), yaml).unwrap();
    let flags = [FLAGS, &[configuration.path().to_str().unwrap()]].concat();

    let mut server = start(&disk, &flags);
    let load = Load::begin(&server.grpc, CLIENTS, seed).await;
    let mut unsynced = (0, 0);
    for _ in 0..losses() {
        tokio::time::sleep(Duration::from_millis(random.within(50..800))).await;
        server.kill();
        unsynced = lose_power(&mut disk, &mut random, unsynced);
        if random.below(4) == 0 {
            // Recovery is a moment like any other.
            interrupt_start(&disk, &flags, &mut random).await;
            unsynced = lose_power(&mut disk, &mut random, unsynced);
        }
        server = start(&disk, &flags);
        load.go_on(&server.grpc);
        assert!(load.is_content());
    }
    println!("{unsynced:?} changes of contents and names were not synced");
    assert!(unsynced.0 > 0 && unsynced.1 > 0, "nothing was ever lost: {unsynced:?}");
    let mut ledgers = load.end().await;
    let totals = settle(&mut ledgers, &server.grpc).await;
    println!("{totals:?}");
    assert!(totals.created > 0 && totals.completed > 0, "{totals:?}");
    assert_eq!(server.terminate(), Some(0));
    audit_records(&records, Lines::MayBeTorn, &ledgers);
}

/// A first start may end anywhere: the next one makes the directory again, or continues with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_may_lose_power_anywhere() {
    let Some(mut disk) = Disk::new() else { return };
    let seed = seed();
    let mut random = Chance::new(seed);
    let flags = ["--partitions", "2", "--disk-reserve", "1MB"];
    for _ in 0..losses() {
        interrupt_start(&disk, &flags, &mut random).await;
        lose_power(&mut disk, &mut random, (0, 0));
    }
    let server = start(&disk, &flags);
    let load = Load::begin(&server.grpc, 2, seed).await;
    tokio::time::sleep(Duration::from_millis(random.within(300..500))).await;
    server.kill();
    lose_power(&mut disk, &mut random, (0, 0));
    let server = start(&disk, &flags);
    load.go_on(&server.grpc);
    // On a slow machine nothing may have been done: then there is nothing to settle.
    let totals = settle(&mut load.end().await, &server.grpc).await;
    println!("{totals:?}");
    assert_eq!(server.terminate(), Some(0));
}

fn lose_power(disk: &mut Disk, random: &mut Chance, before: (usize, usize)) -> (usize, usize) {
    let tearing = [Tearing::Keeps, Tearing::Loses, Tearing::Mixes, Tearing::Mixes][random.index(4)];
    let (contents, names) = disk.settle(tearing, random);
    println!("power loss: {tearing:?} {contents} changes of contents and {names} of names");
    (before.0 + contents, before.1 + names)
}

async fn interrupt_start(disk: &Disk, flags: &[&str], random: &mut Chance) {
    let mut command = command(&disk.root().join("data"), flags);
    disk.watch(&mut command);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the binary starts");
    tokio::time::sleep(Duration::from_millis(random.within(0..300))).await;
    child.kill().expect("it is a child");
    child.wait().expect("it ends");
}
