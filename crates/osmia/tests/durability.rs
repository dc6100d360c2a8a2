//! What survives the end of a process, wanted or not.

mod support;

use std::collections::BTreeSet;

use gateway_interface::StreamActivatedJobsRequest;
use support::*;
use tonic::Code;

/// How long a job is locked, in milliseconds, by a clock that the test moves.
const LOCK: i64 = 3_600_000;

fn stream(timeout: i64) -> StreamActivatedJobsRequest {
    StreamActivatedJobsRequest {
        r#type: "work".to_owned(),
        worker: "test".to_owned(),
        timeout,
        ..StreamActivatedJobsRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_work_survives_kill_and_nothing_happens_twice() {
    const INSTANCES: usize = 20;
    let data = tempfile::tempdir().unwrap();
    let flags = ["--partitions", "3", "--clock-control"];
    let server = Server::start(data.path(), &flags);
    let mut client = server.client().await;
    let deployed = deploy(&mut client, one_task("order", "work")).await;
    assert_eq!(deployed.deployments.len(), 1);

    let mut jobs = client.stream_activated_jobs(stream(LOCK)).await.unwrap().into_inner();
    let mut instances = BTreeSet::new();
    for number in 0..INSTANCES {
        let created = client.create_process_instance(creation("order", &format!("{{\"n\":{number}}}"))).await.unwrap();
        instances.insert(created.into_inner().process_instance_key);
    }
    assert_eq!(instances.len(), INSTANCES, "keys are unique");
    let mut waiting = instances.clone();
    for _ in 0..INSTANCES / 2 {
        let job = jobs.message().await.unwrap().expect("a pushed job");
        client.complete_job(completion(job.key, "")).await.unwrap();
        assert!(waiting.remove(&job.process_instance_key), "pushed once");
    }
    server.kill();

    let server = Server::start(data.path(), &flags);
    let mut client = server.client().await;
    let (code, body) = server.http("POST", "/actuator/clock/add", &format!("{{\"offsetMilli\": {LOCK}}}"));
    assert_eq!(code, 200, "{body}");
    let mut jobs = client.stream_activated_jobs(stream(LOCK)).await.unwrap().into_inner();
    while !waiting.is_empty() {
        let next = tokio::time::timeout(LIMIT, jobs.message());
        let job = next.await.expect("the locks of the old worker end").unwrap().expect("a pushed job");
        assert!(waiting.remove(&job.process_instance_key), "a completed job came back");
        assert_eq!(job.custom_headers, r#"{"greeting":"hello"}"#);
        client.complete_job(completion(job.key, "")).await.unwrap();
        let again = client.complete_job(completion(job.key, "")).await.unwrap_err();
        assert_eq!(again.code(), Code::NotFound);
    }
    let created = client.create_process_instance(creation("order", "")).await.unwrap().into_inner();
    assert!(!instances.contains(&created.process_instance_key), "a key was used twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_streams_with_unavailable_and_stops_cleanly() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let mut jobs = client.stream_activated_jobs(stream(1_000)).await.unwrap().into_inner();
    let mut polled = client.activate_jobs(poll("other", 60_000)).await.unwrap().into_inner();
    let stopping = tokio::task::spawn_blocking(move || server.terminate());
    assert_eq!(jobs.message().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(polled.message().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(stopping.await.unwrap(), Some(0));

    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    client.create_process_instance(creation("order", "")).await.expect("the deployment is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_data_is_refused_by_name() {
    let data = tempfile::tempdir().unwrap();
    let _server = Server::start(data.path(), &[]);
    let refusal = start_fails(data.path(), &[]);
    assert!(refusal.contains(&data.path().display().to_string()), "{refusal}");
}
