//! Jobs: found, waited for, given back, completed, failed, changed.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

const ACTIVATION: &str = "/v2/jobs/activation";

fn asking(job_type: &str, jobs_max: i32, request_timeout: i64) -> String {
    format!(
        r#"{{"type":"{job_type}","worker":"w","timeout":600000,"maxJobsToActivate":{jobs_max},"requestTimeout":{request_timeout},"fetchVariable":[],"tenantIds":["<default>"],"tenantFilter":"PROVIDED"}}"#
    )
}

fn create(connection: &mut Connection) {
    connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"order","variables":{"a":1.0,"b":2}}"#);
}

fn jobs(connection: &mut Connection, body: &str) -> Vec<Value> {
    connection.tell("POST", ACTIVATION, body)["jobs"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_all_partitions_come_as_one_object() {
    let (server, _data) = start(&["--partitions", "3"]).await;
    let mut connection = Connection::open(&server);
    assert!(jobs(&mut connection, &asking("work", 10, -1)).is_empty(), "there is nothing, and it is not waited for");
    assert!(jobs(&mut connection, &asking("work", 10, 1)).is_empty(), "nor for longer than was said");
    (0..6).for_each(|_| create(&mut connection));
    // Not to wait asks all partitions.
    let found = jobs(&mut connection, &asking("work", 10, -1));
    assert_eq!(found.len(), 6);
    let partition = |job: &Value| job["jobKey"].as_str().unwrap().parse::<i64>().unwrap() >> 51;
    let partitions: std::collections::BTreeSet<i64> = found.iter().map(partition).collect();
    assert_eq!(partitions.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    let job = &found[0];
    assert_eq!((&job["type"], &job["worker"], &job["retries"]), (&json!("work"), &json!("w"), &json!(3)));
    assert_eq!((&job["customHeaders"], &job["variables"]), (&json!({"greeting": "hello"}), &json!({"a": 1.0, "b": 2})));
    assert_eq!((&job["elementId"], &job["processDefinitionId"]), (&json!("task"), &json!("order")));
    assert_eq!(
        (&job["kind"], &job["tenantId"], &job["userTask"]),
        (&json!("BPMN_ELEMENT"), &json!("<default>"), &json!(null))
    );
    assert!(job["deadline"].is_i64() && job["elementInstanceKey"].is_string());

    // No more than wanted, with the wanted variables.
    create(&mut connection);
    create(&mut connection);
    let body = asking("work", 1, 0).replace(r#""fetchVariable":[]"#, r#""fetchVariable":["b"]"#);
    let found = jobs(&mut connection, &body);
    assert_eq!((found.len(), &found[0]["variables"]), (1, &json!({"b": 2})));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_nothing_waits_and_what_nobody_takes_is_given_back() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let mut waiting = Connection::open(&server);
    waiting.send(&request("POST", ACTIVATION, &asking("work", 1, LONG_POLL)));
    waiting.0.get_ref().set_read_timeout(Some(Duration::from_millis(200))).expect("a socket has time-outs");
    let nothing = waiting.0.read(&mut [0; 1]).expect_err("it waits");
    assert!(matches!(nothing.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{nothing}");
    waiting.0.get_ref().set_read_timeout(Some(LIMIT)).expect("a socket has time-outs");
    create(&mut connection);
    let answer = waiting.read(true);
    assert_eq!((answer.status, answer.json()["jobs"].as_array().unwrap().len()), (200, 1), "{}", answer.body);

    // Who goes away while waiting takes nothing along: the next one has the job at once, not after its time-out.
    let mut gone = Connection::open(&server);
    gone.send(&request("POST", ACTIVATION, &asking("work", 1, LONG_POLL)));
    parked(&server, 1).await;
    drop(gone);
    parked(&server, 0).await;
    create(&mut connection);
    assert_eq!(jobs(&mut connection, &asking("work", 1, LONG_POLL)).len(), 1);
}

/// Waits until so many requests for jobs wait.
async fn parked(server: &Server, count: usize) {
    let expected = format!("zeebe_long_polling_queued_current {count}");
    let begin = Instant::now();
    while !server.http("GET", "/actuator/prometheus", "").1.lines().any(|line| line == expected) {
        assert!(begin.elapsed() < LIMIT, "there are never {count} waiting requests");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_fail_and_are_tried_again() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    create(&mut connection);
    let job = jobs(&mut connection, &asking("work", 1, LONG_POLL)).remove(0);
    let path = format!("/v2/jobs/{}", job["jobKey"].as_str().unwrap());

    connection.done("PATCH", &path, r#"{"changeset":{"retries":7,"timeout":900000},"operationReference":5}"#);
    connection.refused(
        ("PATCH", &path, r#"{"changeset":{"retries":0}}"#),
        400,
        "INVALID_ARGUMENT",
        "to a positive number",
    );
    connection.refused(
        ("PATCH", &path, "{}"),
        400,
        "INVALID_ARGUMENT",
        "At least one of [retries, timeout] is required.",
    );
    let failure = format!("{path}/failure");
    connection.done("POST", &failure, r#"{"retries":2,"errorMessage":"not now","variables":{"seen":true}}"#);
    let job = jobs(&mut connection, &asking("work", 1, LONG_POLL)).remove(0);
    assert_eq!((&job["retries"], &job["variables"]["seen"]), (&json!(2), &json!(true)));

    // The protocol's way to say that there is no retry left.
    connection.done("POST", &failure, "{}");
    connection.refused(
        ("POST", &format!("{path}/completion"), ""),
        409,
        "INVALID_STATE",
        "Command 'COMPLETE' rejected with code 'INVALID_STATE'",
    );
    connection.refused(
        ("PATCH", &path, r#"{"changeset":{"timeout":1}}"#),
        409,
        "INVALID_STATE",
        "Command 'UPDATE' rejected with code 'INVALID_STATE'",
    );
    connection.done("PATCH", &path, r#"{"changeset":{"retries":1}}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_go_to_who_catches_them_or_become_an_incident() {
    let data = tempfile::tempdir().unwrap();
    let (records, settings) = (data.path().join("records.jsonl"), data.path().join("osmia.yaml"));
    let yaml = format!("exporters:\n  file:\n    type: json-lines\n    path: {}\n", records.display());
    std::fs::write(&settings, yaml).unwrap();
    let server = Server::start(&data.path().join("data"), &["--config", settings.to_str().unwrap()]);
    let mut connection = Connection::open(&server);
    let order = one_task("order", "work");
    connection.deploy(&[(&order.name, &order.content)]);
    create(&mut connection);
    let job = jobs(&mut connection, &asking("work", 1, LONG_POLL)).remove(0);
    let path = format!("/v2/jobs/{}", job["jobKey"].as_str().unwrap());
    let error = format!("{path}/error");
    connection.refused(("POST", &error, "{}"), 400, "INVALID_ARGUMENT", "No errorCode provided.");
    connection.done("POST", &error, r#"{"errorCode":"E","errorMessage":"m","variables":{"a":1}}"#);
    connection.refused(("POST", &error, r#"{"errorCode":"E"}"#), 409, "INVALID_STATE", "'THROW_ERROR' rejected");

    let search = format!(r#"{{"filter":{{"jobKey":{}}}}}"#, job["jobKey"]);
    let found = |connection: &mut Connection| connection.tell("POST", "/v2/jobs/search", &search)["items"][0].clone();
    let with_error = found(&mut connection);
    assert!(with_error["state"] == "ERROR_THROWN" && with_error["endTime"].is_string(), "{with_error}");
    let incident = incident_key(&records).await;
    let resolution = format!("/v2/incidents/{incident}/resolution");
    connection.done("POST", &resolution, r#"{"operationReference":3}"#);
    assert_eq!(jobs(&mut connection, &asking("work", 1, LONG_POLL))[0]["jobKey"], job["jobKey"], "it is there again");
    let handed_out = found(&mut connection);
    assert!(handed_out["endTime"].is_null(), "a worker has it: {handed_out}");
    connection.done("POST", &format!("{path}/failure"), r#"{"retries":2,"retryBackOff":600000}"#);
    let again = found(&mut connection);
    assert!(again["state"] == "FAILED" && again["endTime"].is_null(), "it has not ended: {again}");
    connection.refused(("POST", &resolution, ""), 404, "NOT_FOUND", "Command 'RESOLVE' rejected with code 'NOT_FOUND'");
}

/// Waits for the record of an incident.
async fn incident_key(records: &Path) -> i64 {
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(records).unwrap_or_default();
        // The last line may be on its way.
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut created = records.filter(|record| record["valueType"] == "INCIDENT" && record["intent"] == "CREATED");
        if let Some(incident) = created.next() {
            return incident["key"].as_i64().expect("a key");
        }
        assert!(begin.elapsed() < LIMIT, "there is no incident");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_workers_are_checked() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let job = "/v2/jobs/2251799813685300";
    let wanted = asking("work", 1, -1);
    for (method, path, body, status, title, words) in [
        (
            "POST",
            ACTIVATION.to_owned(),
            r#"{"type":"","timeout":0}"#.to_owned(),
            400,
            "INVALID_ARGUMENT",
            "No type provided. The value for timeout is '0' but must be > 0. No maxJobsToActivate provided.",
        ),
        (
            "POST",
            ACTIVATION.to_owned(),
            wanted.replace("<default>", "other"),
            400,
            "INVALID_ARGUMENT",
            "tenant identifier 'other'",
        ),
        (
            "POST",
            ACTIVATION.to_owned(),
            wanted.replace("PROVIDED", "ALL"),
            400,
            "INVALID_ARGUMENT",
            "Unexpected value 'ALL'",
        ),
        (
            "POST",
            ACTIVATION.to_owned(),
            wanted.replace("tenantFilter", "filter"),
            400,
            "Bad Request",
            "Request property [filter]",
        ),
        (
            "POST",
            ACTIVATION.to_owned(),
            wanted.replace("{\"type\"", "{\"withLease\":true,\"type\""),
            501,
            "UNIMPLEMENTED",
            "leases",
        ),
        (
            "POST",
            ACTIVATION.to_owned(),
            wanted.replace("\"work\"", &format!("\"{}\"", "x".repeat(20_000))),
            400,
            "INVALID_ARGUMENT",
            "at most 16384 bytes",
        ),
        ("POST", format!("{job}/failure"), "{}".to_owned(), 404, "NOT_FOUND", "Command 'FAIL' rejected"),
        (
            "POST",
            format!("{job}/failure"),
            r#"{"jobLeaseToken":"t"}"#.to_owned(),
            501,
            "UNIMPLEMENTED",
            "a lease token",
        ),
        (
            "POST",
            format!("{job}/error"),
            r#"{"errorCode":"E"}"#.to_owned(),
            404,
            "NOT_FOUND",
            "Command 'THROW_ERROR' rejected",
        ),
        (
            "PATCH",
            job.to_owned(),
            r#"{"changeset":{"retries":1}}"#.to_owned(),
            404,
            "NOT_FOUND",
            "Command 'UPDATE' rejected",
        ),
        (
            "PATCH",
            "/v2/jobs/0".to_owned(),
            r#"{"changeset":{"retries":1}}"#.to_owned(),
            404,
            "NOT_FOUND",
            "no such job was found",
        ),
        ("PATCH", "/v2/jobs/order".to_owned(), "{}".to_owned(), 400, "Bad Request", "Expected jobKey to be"),
    ] {
        connection.refused((method, &path, &body), status, title, words);
    }
}
