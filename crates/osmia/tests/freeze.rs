//! A process that is frozen for a while, like a suspended machine, and continues.

#[path = "support/accounting.rs"]
mod accounting;
mod support;

use std::time::{Duration, Instant};

use accounting::{Load, connect, end_and_settle, seed};
use chance::Chance;
use support::*;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_process_goes_on_where_it_was() {
    let seed = seed();
    let mut random = Chance::new(seed);
    let data = tempfile::tempdir().unwrap();
    let flags = ["--partitions", "3", "--checkpoint-interval", "150ms", "--disk-reserve", "1MB"];
    let mut server = Server::start(data.path(), &flags);
    deploy(&mut server.client().await, one_task("probe", "probe")).await;
    let load = Load::begin(&server.grpc, 6, seed).await;
    for milliseconds in [1_000, 2_000, 5_000] {
        tokio::time::sleep(Duration::from_millis(random.within(200..600))).await;
        server.freeze();
        // A thread in the middle of something stops a moment later.
        tokio::time::sleep(Duration::from_millis(100)).await;
        // A frozen node does not answer, and a client that gives up learns so.
        let begin = Instant::now();
        let mut impatient = tonic::Request::new(gateway_interface::TopologyRequest {});
        impatient.set_timeout(Duration::from_millis(500));
        let answer = match tokio::time::timeout(Duration::from_millis(700), connect(&server.grpc)).await {
            Ok(Ok(mut client)) => client.topology(impatient).await,
            Ok(Err(_)) | Err(_) => Err(tonic::Status::deadline_exceeded("the connection is not made")),
        };
        let status = answer.expect_err("the node stands still");
        assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
        tokio::time::sleep(Duration::from_millis(milliseconds).saturating_sub(begin.elapsed())).await;
        server.signal("-CONT");

        let mut client = connect(&server.grpc).await.expect("it goes on");
        client.create_process_instance(creation("probe", "")).await.expect("it takes commands");
        let jobs = activate(&mut client, poll("probe", LONG_POLL)).await;
        assert_eq!(jobs.len(), 1, "jobs are activated");
        client.complete_job(completion(jobs[0].key, "")).await.expect("it was activated");
        let (code, body) = server.http("GET", "/actuator/health", "");
        assert_eq!(code, 200, "{body}");
        assert!(load.is_content());
    }
    assert!(server.is_running(), "it is the same process");
    end_and_settle(load, server).await;
}
