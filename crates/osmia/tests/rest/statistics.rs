//! What is waited for and how much happened, incidents of a whole instance, and what a search must see at least.

use super::*;
use model_builder::ProcessBuilder;

/// A task, a timer, a message and a condition, side by side.
const SIDE_BY_SIDE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="t">
  <bpmn:message id="message" name="paid"><bpmn:extensionElements><zeebe:subscription correlationKey="=key" /></bpmn:extensionElements></bpmn:message>
  <bpmn:process id="side-by-side" isExecutable="true">
    <bpmn:startEvent id="start" />
    <bpmn:parallelGateway id="fork" />
    <bpmn:serviceTask id="pack"><bpmn:extensionElements><zeebe:taskDefinition type="pack" retries="2" /></bpmn:extensionElements></bpmn:serviceTask>
    <bpmn:boundaryEvent id="too-long" attachedToRef="pack"><bpmn:timerEventDefinition><bpmn:timeDuration xsi:type="bpmn:tFormalExpression">PT9H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>
    <bpmn:intermediateCatchEvent id="rest"><bpmn:timerEventDefinition><bpmn:timeDuration xsi:type="bpmn:tFormalExpression">PT5H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>
    <bpmn:intermediateCatchEvent id="money"><bpmn:messageEventDefinition messageRef="message" /></bpmn:intermediateCatchEvent>
    <bpmn:intermediateCatchEvent id="stock"><bpmn:conditionalEventDefinition><bpmn:condition>=stock &gt; 5</bpmn:condition></bpmn:conditionalEventDefinition></bpmn:intermediateCatchEvent>
    <bpmn:sequenceFlow id="e" sourceRef="fork" targetRef="stock" />
    <bpmn:sequenceFlow id="a" sourceRef="start" targetRef="fork" />
    <bpmn:sequenceFlow id="b" sourceRef="fork" targetRef="pack" />
    <bpmn:sequenceFlow id="c" sourceRef="fork" targetRef="rest" />
    <bpmn:sequenceFlow id="d" sourceRef="fork" targetRef="money" />
  </bpmn:process>
</bpmn:definitions>"#;

async fn side_by_side() -> (Server, tempfile::TempDir, Connection, String) {
    let (server, data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    connection.deploy(&[("side-by-side.bpmn", SIDE_BY_SIDE.as_bytes())]);
    let body = r#"{"processDefinitionId":"side-by-side","variables":{"key":"k-1"}}"#;
    let created = connection.tell("POST", "/v2/process-instances", body);
    let key = created["processInstanceKey"].as_str().expect("a key").to_owned();
    (server, data, connection, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_instance_waits_for_is_told_until_it_comes() {
    let (server, _data, mut connection, key) = side_by_side().await;
    let search = |connection: &mut Connection, filter: Value| {
        let body = json!({"filter": filter, "sort": [{"field": "elementId", "order": "ASC"}]}).to_string();
        connection.tell("POST", "/v2/element-instances/wait-states/search", &body)["items"].clone()
    };
    let until = std::time::Instant::now() + LIMIT;
    // The subscription is opened on the partition of its messages, which says so afterwards.
    let waiting = loop {
        let waiting = search(&mut connection, json!({"processInstanceKey": key}));
        if waiting.as_array().is_some_and(|items| items.len() >= 4) || std::time::Instant::now() > until {
            break waiting;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let seen: Vec<_> =
        waiting.as_array().expect("items").iter().map(|item| (&item["elementId"], &item["elementType"])).collect();
    assert_eq!(
        seen,
        [
            (&json!("money"), &json!("INTERMEDIATE_CATCH_EVENT")),
            (&json!("pack"), &json!("SERVICE_TASK")),
            (&json!("rest"), &json!("INTERMEDIATE_CATCH_EVENT")),
            (&json!("stock"), &json!("INTERMEDIATE_CATCH_EVENT"))
        ],
        "and not the event that may interrupt the task"
    );
    assert_eq!(
        waiting[0]["details"],
        json!({"waitStateType": "MESSAGE", "messageName": "paid", "correlationKey": "k-1"})
    );
    let job = &waiting[1]["details"];
    assert_eq!((&job["waitStateType"], &job["jobType"], &job["retries"]), (&json!("JOB"), &json!("pack"), &json!(2)));
    assert_eq!((&waiting[2]["bpmnProcessId"], &waiting[2]["tenantId"]), (&json!("side-by-side"), &json!("<default>")));
    let timer = &waiting[2]["details"];
    assert!(timer["dueDate"].as_i64() > Some(1_700_000_000_000) && timer["repetitions"] == 1, "{timer}");
    assert_eq!(
        search(&mut connection, json!({"waitStateType": "TIMER", "elementId": {"$in": ["rest", "money"]}}))[0],
        waiting[2]
    );

    assert_eq!(
        waiting[3]["details"],
        json!({"waitStateType": "CONDITION", "expression": "=stock > 5", "events": ["create", "update"]})
    );
    connection.done("PUT", &format!("/v2/element-instances/{key}/variables"), r#"{"variables":{"stock":6}}"#);

    let path = format!("/v2/process-instances/{key}/statistics/wait-states");
    let counts = |connection: &mut Connection| connection.tell("GET", &path, "")["items"].clone();
    let count = |id: &str| json!({"elementId": id, "waitingCount": 1});
    assert_eq!(counts(&mut connection), json!([count("money"), count("pack"), count("rest")]));
    let message = r#"{"name":"paid","correlationKey":"k-1","timeToLive":0}"#;
    connection.tell("POST", "/v2/messages/publication", message);
    // Who publishes does not wait for the instance, which may be on the other partition.
    let until = std::time::Instant::now() + LIMIT;
    while counts(&mut connection) != json!([count("pack"), count("rest")]) {
        assert!(std::time::Instant::now() < until, "{}", counts(&mut connection));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    connection.done("POST", &format!("/v2/process-instances/{key}/cancellation"), "");
    assert_eq!(search(&mut connection, json!({})), json!([]));
    connection.refused(
        ("GET", "/v2/process-instances/7/statistics/wait-states", ""),
        404,
        "NOT_FOUND",
        "Process instance with key '7' not found",
    );
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_counted_by_type_worker_time_and_error() {
    let (server, _data, mut connection, _key) = side_by_side().await;
    for _ in 0..3 {
        connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"order"}"#);
    }
    let mut worker = server.client().await;
    let mut jobs = Vec::new();
    while jobs.len() < 3 {
        jobs.extend(activate(&mut worker, poll("work", LONG_POLL)).await);
    }
    connection.done("POST", &format!("/v2/jobs/{}/completion", jobs[0].key), "");
    connection.done("POST", &format!("/v2/jobs/{}/failure", jobs[1].key), r#"{"retries":1,"errorMessage":"on fire"}"#);
    connection.done("POST", &format!("/v2/jobs/{}/error", jobs[2].key), r#"{"errorCode":"E","errorMessage":"wet"}"#);

    let (from, to) = ("2020-01-01T00:00:00Z", "2120-01-01T00:00:00Z");
    let global =
        connection.tell("GET", &format!("/v2/jobs/statistics/global?from={from}&to=2120-01-01T00%3A00%3A00Z"), "");
    let count = |of: &Value, name: &str| of[name]["count"].as_i64().expect("a number");
    assert_eq!(["created", "completed", "failed"].map(|name| count(&global, name)), [4, 1, 2]);
    assert!(global["completed"]["lastUpdatedAt"].is_string() && global["isIncomplete"] == false, "{global}");
    let pack = connection.tell("GET", &format!("/v2/jobs/statistics/global?from={from}&to={to}&jobType=pack"), "");
    assert_eq!((count(&pack, "created"), &pack["completed"]), (1, &json!({"count": 0, "lastUpdatedAt": null})));

    let mut ask = |what: &str, mut filter: Value, page: Value| {
        (filter["from"], filter["to"]) = (json!(from), json!(to));
        connection.tell(
            "POST",
            &format!("/v2/jobs/statistics/{what}"),
            &json!({"filter": filter, "page": page}).to_string(),
        )
    };
    let types = ask("by-types", json!({}), json!({}));
    assert_eq!((&types["items"][0]["jobType"], &types["items"][1]["jobType"]), (&json!("pack"), &json!("work")));
    assert_eq!((&types["items"][1]["workers"], &types["page"]["totalItems"]), (&json!(1), &json!(2)));
    let second = ask("by-types", json!({"jobType": {"$like": "*"}}), json!({"from": 1, "limit": 1}));
    assert_eq!(second["items"], json!([types["items"][1]]));
    let mut page = json!({"limit": 1});
    for of in types["items"].as_array().expect("items") {
        let next = ask("by-types", json!({}), page.clone());
        assert_eq!((&next["items"], &next["page"]["totalItems"]), (&json!([of]), &json!(2)));
        page["after"] = next["page"]["endCursor"].clone();
    }
    let end = ask("by-types", json!({}), page);
    assert_eq!((&end["items"], &end["page"]["endCursor"]), (&json!([]), &Value::Null));
    let workers = ask("by-workers", json!({"jobType": "work"}), json!({}));
    assert_eq!((workers["items"].as_array().map(Vec::len), count(&workers["items"][0], "failed")), (Some(1), 2));
    let times = ask("time-series", json!({"jobType": "work", "resolution": "P365D"}), json!({}));
    assert_eq!((times["items"].as_array().map(Vec::len), count(&times["items"][0], "created")), (Some(1), 3));
    let errors = ask("errors", json!({"jobType": "work"}), json!({}))["items"].clone();
    let error = |code: &str, message: &str| json!({"errorCode": code, "errorMessage": message, "workers": 1});
    assert_eq!(errors, json!([error("", "on fire"), error("E", "wet")]));
    assert_eq!(ask("errors", json!({"jobType": "work", "errorCode": "E"}), json!({}))["items"], json!([errors[1]]));
    for (what, body, words) in [
        ("by-types", "{}", "No filter provided."),
        ("by-types", r#"{"filter":{"from":"soon","to":"later"}}"#, "The provided from 'soon' cannot be parsed"),
        (
            "errors",
            r#"{"filter":{"from":"2020-01-01T00:00:00Z","to":"2021-01-01T00:00:00Z"}}"#,
            "No filter.jobType provided.",
        ),
        (
            "time-series",
            r#"{"filter":{"from":"2020-01-01T00:00:00Z","to":"2021-01-01T00:00:00Z","jobType":"a","resolution":"1h"}}"#,
            "resolution '1h'",
        ),
    ] {
        connection.refused(("POST", &format!("/v2/jobs/statistics/{what}"), body), 400, "INVALID_ARGUMENT", words);
    }
    let now = json!({"from": to, "to": to, "jobType": "work"});
    for what in ["by-types", "by-workers", "time-series", "errors"] {
        let body = json!({"filter": now}).to_string();
        assert_eq!(
            connection.tell("POST", &format!("/v2/jobs/statistics/{what}"), &body)["items"],
            json!([]),
            "{what}"
        );
    }
    let path = "/v2/process-definitions/statistics/message-subscriptions";
    let waiting = connection.tell("POST", path, r#"{"page":{"limit":1}}"#);
    assert_eq!((&waiting["items"][0]["activeSubscriptions"], &waiting["page"]["totalItems"]), (&json!(1), &json!(1)));
    let after = json!({"page": {"after": waiting["page"]["endCursor"]}}).to_string();
    assert_eq!(connection.tell("POST", path, &after)["items"], json!([]));
    let path = "/v2/process-definitions/statistics/process-instances-by-version";
    for (body, words) in [
        ("", "No filter provided."),
        ("{}", "No filter provided."),
        (r#"{"filter":{}}"#, "No filter.processDefinitionId provided."),
        (r#"{"filter":{"processDefinitionId":" "}}"#, "No filter.processDefinitionId provided."),
    ] {
        connection.refused(("POST", path, body), 400, "INVALID_ARGUMENT", words);
    }
    let answer = connection.ask("GET", "/v2/jobs/statistics/global?from=2020-01-01T00:00:00Z", "");
    assert!(answer.status == 400 && answer.body.contains("No to provided."), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_incidents_of_an_instance_are_resolved_at_once_and_counted_before() {
    let (server, _data, mut connection, key) = side_by_side().await;
    connection.tell(
        "POST",
        "/v2/process-instances",
        r#"{"processDefinitionId":"side-by-side","variables":{"key":"k-2"}}"#,
    );
    let mut worker = server.client().await;
    let mut jobs = Vec::new();
    while jobs.len() < 2 {
        jobs.extend(activate(&mut worker, poll("pack", LONG_POLL)).await);
    }
    for (job, message) in jobs.iter().zip(["a", "b"]) {
        let body = json!({"retries": 0, "errorMessage": message}).to_string();
        connection.done("POST", &format!("/v2/jobs/{}/failure", job.key), &body);
    }
    let path = "/v2/incidents/statistics/process-instances-by-error";
    for (order, expected) in [("ASC", ["a", "b"]), ("DESC", ["b", "a"])] {
        let body = json!({"sort": [{"field": "errorMessage", "order": order}]}).to_string();
        let items = connection.tell("POST", path, &body)["items"].clone();
        assert_eq!([&items[0]["errorMessage"], &items[1]["errorMessage"]], expected, "{order}");
    }
    connection.refused(
        ("POST", path, r#"{"sort":[{"field":"colour"}]}"#),
        400,
        "INVALID_ARGUMENT",
        "Unknown sortBy: colour.",
    );

    let resolution = format!("/v2/process-instances/{key}/incident-resolution");
    let resolved = connection.tell("POST", &resolution, "");
    assert_eq!(resolved, json!({"batchOperationKey": key, "batchOperationType": "RESOLVE_INCIDENT"}));
    let has_incident = |connection: &mut Connection, key: &str| {
        connection.tell("GET", &format!("/v2/process-instances/{key}"), "")["hasIncident"].clone()
    };
    assert_eq!(has_incident(&mut connection, &key), false);
    let again = activate(&mut worker, poll("pack", LONG_POLL)).await;
    assert_eq!(again.len(), 1, "the job has a retry again, and that of the other instance has none");
    assert_eq!((again[0].process_instance_key.to_string(), again[0].retries), (key, 1));
    let other = connection.tell("POST", "/v2/incidents/search", r#"{"filter":{"state":"ACTIVE"}}"#);
    assert_eq!(other["page"]["totalItems"], 1);
    connection.refused(
        ("POST", "/v2/process-instances/7/incident-resolution", ""),
        404,
        "NOT_FOUND",
        "Process instance with key '7' not found",
    );
}

/// Each element of the loop has an incident that comes again when it is resolved.
#[tokio::test(flavor = "multi_thread")]
async fn the_resolution_of_incidents_that_come_again_ends() {
    const ITEMS: usize = 250;
    let (_server, _data) = start(&[]).await;
    let mut connection = Connection::open(&_server);
    let builder = ProcessBuilder::new("troubled").start("start").service_task("task", "never").retries("= nothing");
    let model = builder.multi_instance(&format!("= for i in 1..{ITEMS} return i"), "item").end("end").to_xml();
    connection.deploy(&[("troubled.bpmn", model.as_bytes())]);
    let created = connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"troubled"}"#);
    let key = created["processInstanceKey"].as_str().expect("a key");
    let active = |connection: &mut Connection| {
        let filter = json!({"filter": {"state": "ACTIVE"}, "page": {"limit": 1_000}}).to_string();
        let found = connection.tell("POST", "/v2/incidents/search", &filter);
        let items = found["items"].as_array().expect("items");
        items.iter().map(|item| item["incidentKey"].as_str().expect("a key").to_owned()).collect::<Vec<_>>()
    };
    let until = std::time::Instant::now() + LIMIT;
    let before = loop {
        let before = active(&mut connection);
        if before.len() == ITEMS || std::time::Instant::now() > until {
            break before;
        }
    };
    assert_eq!(before.len(), ITEMS);
    connection.tell("POST", &format!("/v2/process-instances/{key}/incident-resolution"), "");
    let after = active(&mut connection);
    assert_eq!(after.len(), ITEMS);
    assert!(after.iter().all(|key| !before.contains(key)), "each was resolved, and is there again");
}

/// Instances, some with incidents, go from one version to the next.
#[tokio::test(flavor = "multi_thread")]
async fn counts_go_with_instances_that_migrate() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let model = |task: &str| {
        let builder = ProcessBuilder::new("moved").start("start").service_task(task, "move").end("end");
        builder.to_xml()
    };
    let deploy = |connection: &mut Connection, task: &str| {
        let deployed = connection.deploy(&[("moved.bpmn", model(task).as_bytes())]);
        let key = &deployed["deployments"][0]["processDefinition"]["processDefinitionKey"];
        key.as_str().expect("a key").to_owned()
    };
    let first = deploy(&mut connection, "old");
    for _ in 0..3 {
        connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"moved"}"#);
    }
    let mut worker = server.client().await;
    let mut jobs = Vec::new();
    while jobs.len() < 3 {
        jobs.extend(activate(&mut worker, poll("move", LONG_POLL)).await);
    }
    connection.done("POST", &format!("/v2/jobs/{}/failure", jobs[0].key), r#"{"retries":0,"errorMessage":"stuck"}"#);
    let second = deploy(&mut connection, "new");
    let elements = |connection: &mut Connection, definition: &str| {
        let path = format!("/v2/process-definitions/{definition}/statistics/element-instances");
        let items = connection.tell("POST", &path, "{}")["items"].clone();
        let items = items.as_array().expect("items").clone();
        let counted = items.iter().filter(|item| ["old", "new"].iter().any(|id| item["elementId"] == *id));
        counted.map(|item| ["active", "incidents", "completed"].map(|name| item[name].as_i64())).collect::<Vec<_>>()
    };
    let versions = |connection: &mut Connection| {
        let path = "/v2/process-definitions/statistics/process-instances-by-version";
        let body = r#"{"filter":{"processDefinitionId":"moved"}}"#;
        let items = connection.tell("POST", path, body)["items"].as_array().expect("items").clone();
        let names = ["activeInstancesWithIncidentCount", "activeInstancesWithoutIncidentCount"];
        let counts =
            items.iter().map(|item| (item["processDefinitionVersion"].as_i64(), names.map(|name| item[name].as_i64())));
        let mut counts: Vec<_> = counts.filter(|(_, counts)| *counts != [Some(0); 2]).collect();
        counts.sort_unstable();
        counts
    };
    let counted = |version: i64, with: i64, without: i64| (Some(version), [Some(with), Some(without)]);
    assert_eq!(versions(&mut connection), [counted(1, 1, 2)]);
    for job in &jobs[..2] {
        let body = json!({"targetProcessDefinitionKey": second, "mappingInstructions":
            [{"sourceElementId": "old", "targetElementId": "new"}]});
        let path = format!("/v2/process-instances/{}/migration", job.process_instance_key);
        connection.done("POST", &path, &body.to_string());
    }
    assert_eq!(versions(&mut connection), [counted(1, 0, 1), counted(2, 1, 1)]);
    assert_eq!(elements(&mut connection, &first), [[Some(1), Some(0), Some(0)]]);
    assert_eq!(elements(&mut connection, &second), [[Some(1), Some(1), Some(0)]], "each element once");
    connection.tell("POST", &format!("/v2/process-instances/{}/incident-resolution", jobs[0].process_instance_key), "");
    assert_eq!(versions(&mut connection), [counted(1, 0, 1), counted(2, 0, 2)]);
    let again = activate(&mut worker, poll("move", LONG_POLL)).await;
    for job in again.iter().chain(&jobs[1..]) {
        connection.done("POST", &format!("/v2/jobs/{}/completion", job.key), "");
    }
    assert_eq!(versions(&mut connection), []);
    assert_eq!(elements(&mut connection, &second), [[Some(0), Some(0), Some(2)]]);
}

/// All process instances, with headers.
fn search_with(connection: &mut Connection, headers: &str) -> Answer {
    connection.send(&format!(
        "POST /v2/process-instances/search HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    ));
    connection.read(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_sees_what_the_header_of_an_answer_says() {
    let (_server, _data, mut connection, _key) = side_by_side().await;
    let before = search_with(&mut connection, "").json()["page"]["totalItems"].as_u64().expect("a number");
    for count in 1..=20 {
        connection.send(&request("POST", "/v2/process-instances", r#"{"processDefinitionId":"order"}"#));
        let created = connection.read(true);
        let position = created.header("osmia-position").unwrap_or_else(|| panic!("{}", created.body)).to_owned();
        // It waits for this alone, not for what the gateway knows.
        let headers = format!("osmia-consistency: eventual\r\nosmia-position: {position}, 1-1\r\n");
        let found = search_with(&mut connection, &headers);
        assert_eq!(found.header("osmia-consistency"), None);
        assert_eq!(found.json()["page"]["totalItems"], before + count);
    }
    let wrong = search_with(&mut connection, "osmia-position: 3-1\r\n");
    assert!(wrong.status == 400 && wrong.body.contains("The partitions are 1 to 2."), "{}", wrong.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_waits_as_long_as_the_node_was_told() {
    let data = tempfile::tempdir().expect("a directory");
    // Longer than what a node does that was told nothing.
    let mut command = command(data.path(), &["--search-wait", "3s"]);
    command.env_remove("OSMIA_SEARCH_WAIT");
    let server = Server::spawn(command);
    let mut connection = Connection::open(&server);
    connection.deploy(&[("side-by-side.bpmn", SIDE_BY_SIDE.as_bytes())]);
    search_with(&mut connection, "");
    // Somebody else holds up what writes the rows.
    let file = data.path().join("read-model/partition-1.sqlite");
    let holder = rusqlite::Connection::open(file).expect("it is there");
    holder.execute_batch("BEGIN IMMEDIATE").expect("nothing is written");
    connection.send(&request("POST", "/v2/process-instances", r#"{"processDefinitionId":"side-by-side"}"#));
    assert_eq!(connection.read(true).status, 200);
    let begin = std::time::Instant::now();
    let ahead = search_with(&mut connection, "");
    assert_eq!((ahead.status, ahead.header("osmia-consistency")), (200, Some("eventual")), "it does not wait for ever");
    assert!(begin.elapsed() >= std::time::Duration::from_secs(3));
    // Nobody waits for what no answer has said.
    let never = search_with(&mut connection, "osmia-position: 1-999999999\r\n");
    assert!(
        never.status == 400 && never.body.contains("has 1-999999999, but partition 1 has come to"),
        "{}",
        never.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_for_tests_forgets_everything_and_another_does_not() {
    let (server, data) = start(&["--partitions", "3", "--clock-control"]).await;
    let mut connection = Connection::open(&server);
    connection.deploy(&[("side-by-side.bpmn", SIDE_BY_SIDE.as_bytes())]);
    let mut change = -1;
    for round in 0..3 {
        for (count, id) in ["order", "side-by-side"].iter().cycle().take(6).enumerate() {
            let body = json!({"processDefinitionId": id, "variables": {"key": format!("k-{count}")}}).to_string();
            connection.tell("POST", "/v2/process-instances", &body);
        }
        let message = r#"{"name":"later","correlationKey":"k","timeToLive":3600000,"messageId":"once"}"#;
        connection.tell("POST", "/v2/messages/publication", message);
        let (status, body) = server.http("POST", "/actuator/cluster/purge", "");
        assert_eq!(status, 202, "{body}");
        let id = serde_json::from_str::<Value>(&body).expect("JSON")["changeId"].as_i64().expect("a number");
        assert!(id > change, "round {round}");
        change = id;
        assert_eq!(connection.tell("GET", "/v2/topology", "")["lastCompletedChangeId"], id.to_string());
        for what in [
            "process-instances",
            "process-definitions",
            "element-instances",
            "jobs",
            "variables",
            "message-subscriptions",
            "element-instances/wait-states",
        ] {
            let found = connection.tell("POST", &format!("/v2/{what}/search"), "{}");
            assert_eq!(found["page"]["totalItems"], 0, "{what}: {found}");
        }
        connection.refused(
            ("POST", "/v2/process-instances", r#"{"processDefinitionId":"order"}"#),
            404,
            "NOT_FOUND",
            "order",
        );
        // The same again: versions begin anew, and what goes between partitions arrives.
        let deployed = connection.deploy(&[("side-by-side.bpmn", SIDE_BY_SIDE.as_bytes())]);
        assert_eq!(deployed["deployments"][0]["processDefinition"]["processDefinitionVersion"], 1, "{deployed}");
        let mut client = server.client().await;
        deploy(&mut client, one_task("order", "work")).await;
        let body = r#"{"processDefinitionId":"side-by-side","variables":{"key":"k"},"tags":["again"]}"#;
        let key = connection.tell("POST", "/v2/process-instances", body)["processInstanceKey"].clone();
        // The message may be on another partition, which is told of the instance a moment later and then says so.
        let waits = json!({"filter": {"processInstanceKey": key, "messageName": "paid"}}).to_string();
        let until = std::time::Instant::now() + LIMIT;
        while connection.tell("POST", "/v2/message-subscriptions/search", &waits)["page"]["totalItems"] != 1 {
            assert!(std::time::Instant::now() < until, "the instance waits for the message");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        connection.tell("POST", "/v2/messages/correlation", r#"{"name":"paid","correlationKey":"k"}"#);
        let of_instance = json!({"filter": {"processInstanceKey": key, "elementId": "money"}}).to_string();
        // The instance may be on another partition than the message, whose fold the search does not wait for.
        while connection.tell("POST", "/v2/element-instances/search", &of_instance)["items"][0]["state"] != "COMPLETED"
        {
            assert!(std::time::Instant::now() < until, "the message completes the event");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    server.kill();
    // Applied again from the log, it comes to the same.
    let server = Server::start(data.path(), &[]);
    let mut connection = Connection::open(&server);
    let until = std::time::Instant::now() + LIMIT;
    while connection.tell("POST", "/v2/process-instances/search", "{}")["page"]["totalItems"] != 1 {
        assert!(std::time::Instant::now() < until, "one instance is left");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let (status, body) = server.http("POST", "/actuator/cluster/purge", "");
    assert!(status == 403 && body.contains("Start it with --clock-control"), "{status} {body}");
    assert_eq!(connection.tell("POST", "/v2/process-instances/search", "{}")["page"]["totalItems"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_are_evaluated_with_what_is_given_and_in_a_scope() {
    let (_server, _data, mut connection, key) = side_by_side().await;
    let path = "/v2/expression/evaluation";
    let mut evaluate = |body: Value| connection.tell("POST", path, &body.to_string());
    let evaluated = evaluate(json!({"expression": "=a + 1.50", "variables": {"a": 1}}));
    assert_eq!(evaluated, json!({"expression": "=a + 1.50", "result": 2.5, "warnings": [], "referencedSecrets": []}));
    let in_scope = json!({"expression": "={k: key, mine: mine}", "scopeKey": key, "variables": {"mine": [true, null]}});
    assert_eq!(evaluate(in_scope)["result"], json!({"k": "k-1", "mine": [true, null]}));
    let given_first = json!({"expression": "=key", "scopeKey": key, "variables": {"key": "another"}});
    assert_eq!(evaluate(given_first)["result"], "another");
    let missing = evaluate(json!({"expression": "=nothing + 1"}));
    assert_eq!(missing["result"], Value::Null);
    assert!(missing["warnings"][0]["message"].as_str().is_some_and(|message| message.contains("nothing")), "{missing}");
    for (body, status, title, words) in [
        (r#"{"expression":"1 + 1"}"#, 400, "INVALID_ARGUMENT", "starts with '='"),
        (r#"{"expression":"=1 +"}"#, 400, "INVALID_ARGUMENT", "Failed to parse expression '=1 +'"),
        (
            r#"{"expression":"=1","scopeKey":"2251799813695555"}"#,
            404,
            "NOT_FOUND",
            "no such element instance was found",
        ),
        (
            r#"{"expression":"=count(for i in 1..9000000 return i)"}"#,
            400,
            "INVALID_ARGUMENT",
            "Failed to evaluate expression",
        ),
    ] {
        connection.refused(("POST", path, body), status, title, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_told() {
    let (server, _data) = start(&[]).await;
    let configuration = Connection::open(&server).tell("GET", "/v2/system/configuration", "");
    assert_eq!(configuration["deployment"], json!({"isMultiTenancyEnabled": false, "maxRequestSize": 4 << 20}));
    assert_eq!(configuration["components"]["active"], json!([]));
}
