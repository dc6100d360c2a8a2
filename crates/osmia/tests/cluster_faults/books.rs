//! Clients that publish messages, set variables, cancel, and keep books, through one gateway after the other.

use std::time::Duration;

use chance::Chance;

use crate::accounting::{Load, seed, settle};
use crate::cluster::{Cluster, all_led, eventually, is_whole, leaders};
use crate::support::Server;

const CLIENTS: usize = 6;
const PARTITIONS: usize = 3;

fn faults() -> usize {
    std::env::var("OSMIA_FAULTS").ok().and_then(|faults| faults.parse().ok()).unwrap_or(10)
}

fn server(servers: &[Option<Server>], node: usize) -> &Server {
    servers[node].as_ref().expect("it runs")
}

#[tokio::test(flavor = "multi_thread")]
async fn books_are_in_order_over_changes_of_leaders_and_gateways() {
    let seed = seed();
    let mut random = Chance::new(seed);
    let cluster = Cluster::new(PARTITIONS);
    let mut servers: Vec<_> = cluster.start_all().into_iter().map(Some).collect();
    eventually("all partitions are led", || all_led(server(&servers, 0), PARTITIONS as u64));
    let mut gateway = 0;
    let load = Load::begin(&server(&servers, gateway).grpc, CLIENTS, seed).await;
    for _ in 0..faults() {
        tokio::time::sleep(Duration::from_millis(random.within(200..1_500))).await;
        let led: Vec<_> = leaders(server(&servers, gateway)).into_values().collect();
        let node = if led.is_empty() { random.index(3) } else { random.copy_of(&led) };
        let other = (node + 1 + random.index(2)) % 3;
        // A gateway that stays sees other leaders come; one that dies is left for another one.
        if random.percent(50) || gateway == node {
            gateway = other;
        }
        let address = server(&servers, gateway).grpc.clone();
        if random.percent(60) {
            servers[node].take().expect("it runs").kill();
            load.go_on(&address);
            tokio::time::sleep(Duration::from_millis(random.within(0..1_500))).await;
            servers[node] = Some(cluster.start(node));
        } else {
            server(&servers, node).freeze();
            load.go_on(&address);
            tokio::time::sleep(Duration::from_millis(random.within(300..2_500))).await;
            server(&servers, node).signal("-CONT");
        }
        eventually("the cluster is whole", || {
            servers.iter().flatten().all(|server| is_whole(&server.management, 3, PARTITIONS))
        });
        if !load.is_content() {
            break;
        }
    }
    let mut ledgers = load.end().await;
    let totals = settle(&mut ledgers, &server(&servers, gateway).grpc).await;
    println!("{} faults, {totals:?}", faults());
    assert!(totals.created > faults() && totals.completed > faults() && totals.published > faults(), "{totals:?}");
    assert!(totals.unclear > 0, "no fault hit anything: {totals:?}");
    for server in servers.into_iter().flatten() {
        assert_eq!(server.terminate(), Some(0));
    }
}
