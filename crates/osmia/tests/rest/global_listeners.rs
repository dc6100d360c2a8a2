//! Listeners of the user tasks of all processes: defined, found, changed and deleted, and asked by tasks of every partition.

use super::*;

const PATH: &str = "/v2/global-task-listeners";
const MODEL: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="listened" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
<userTask id="t"><extensionElements><zeebe:userTask/></extensionElements></userTask></process></definitions>"#;

fn create(connection: &mut Connection, body: &Value) -> Value {
    let answer = connection.ask("POST", PATH, &body.to_string());
    assert_eq!((answer.status, answer.header("content-type")), (201, Some(JSON)), "{}", answer.body);
    assert!(answer.header("osmia-position").is_some(), "it says what a search must have seen");
    answer.json()
}

/// The ids that a search finds, in its order.
fn found(connection: &mut Connection, body: &Value) -> Vec<String> {
    let found = connection.tell("POST", &format!("{PATH}/search"), &body.to_string());
    let items = found["items"].as_array().expect("items");
    assert_eq!(found["page"]["totalItems"], items.len(), "{found}");
    items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
}

fn start_task(connection: &mut Connection) -> String {
    let created = connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"listened"}"#);
    created["processInstanceKey"].as_str().expect("a key").to_owned()
}

/// Takes a job of a listener, which must be there, and has it done.
fn listen(connection: &mut Connection, job_type: &str) -> Value {
    let wanted = json!({"type": job_type, "timeout": 600_000, "maxJobsToActivate": 1, "requestTimeout": 60_000});
    let jobs = connection.tell("POST", "/v2/jobs/activation", &wanted.to_string());
    let job = jobs["jobs"][0].clone();
    let key = job["jobKey"].as_str().expect("a job of the listener");
    connection.done("POST", &format!("/v2/jobs/{key}/completion"), "{}");
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_defined_found_changed_and_deleted() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    let created =
        create(&mut connection, &json!({"id": "audit", "type": "log", "eventTypes": ["completing", "creating"]}));
    let expected = json!({"id": "audit", "source": "API", "eventTypes": ["completing", "creating"], "type": "log",
        "retries": 3, "afterNonGlobal": false, "priority": 50});
    assert_eq!(created, expected);
    // Whoever was answered finds it at once.
    assert_eq!(connection.tell("GET", &format!("{PATH}/audit"), ""), expected);
    let other = json!({"id": "b@c", "type": "late", "eventTypes": ["all"], "retries": 1, "afterNonGlobal": true, "priority": -4});
    create(&mut connection, &other);
    assert_eq!(connection.tell("GET", &format!("{PATH}/b%40c"), "")["priority"], -4);
    for (filter, ids) in [
        (json!({}), &["b@c", "audit"][..]),
        (json!({"id": "audit"}), &["audit"]),
        (json!({"type": {"$like": "l*"}, "retries": {"$lt": 3}}), &["b@c"]),
        (json!({"eventTypes": ["all"]}), &["b@c"]),
        (json!({"eventTypes": ["completing", {"$in": ["creating", "updating"]}]}), &["audit"]),
        (json!({"eventTypes": ["completing", "updating"]}), &[]),
        (json!({"afterNonGlobal": true}), &["b@c"]),
        (json!({"priority": {"$gte": 50}, "source": "API"}), &["audit"]),
        (json!({"source": {"$neq": "API"}}), &[]),
    ] {
        let search = json!({"filter": filter, "sort": [{"field": "priority", "order": "ASC"}]});
        assert_eq!(found(&mut connection, &search), ids, "{search}");
    }
    let sorts = ["id", "type", "afterNonGlobal", "source"].map(|field| json!({"field": field, "order": "DESC"}));
    assert_eq!(found(&mut connection, &json!({"sort": sorts})), ["b@c", "audit"]);

    // What is not said again is as usual.
    let update = r#"{"type":"log","eventTypes":["updating"],"priority":9}"#;
    let updated = connection.tell("PUT", &format!("{PATH}/b%40c"), update);
    let expected = json!({"id": "b@c", "source": "API", "eventTypes": ["updating"], "type": "log", "retries": 3,
        "afterNonGlobal": false, "priority": 9});
    assert_eq!(updated, expected);
    assert_eq!(connection.tell("GET", &format!("{PATH}/b@c"), ""), expected);
    assert_eq!(found(&mut connection, &json!({"filter": {"eventTypes": ["all"]}})), [""; 0]);
    connection.done("DELETE", &format!("{PATH}/audit"), "");
    assert_eq!(found(&mut connection, &json!({})), ["b@c"]);
    connection.refused(("GET", &format!("{PATH}/audit"), ""), 404, "NOT_FOUND", "with id 'audit' not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_listener_can_be_is_refused() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let whole = r#"{"id":"audit","type":"log","eventTypes":["all"]}"#;
    create(&mut connection, &serde_json::from_str(whole).expect("JSON"));
    let update = r#"{"type":"log","eventTypes":["all"]}"#;
    let nobody = format!("{PATH}/nobody");
    for (request, status, title, words) in [
        (("POST", PATH, whole), 409, "ALREADY_EXISTS", "but one with this id exists already"),
        (("POST", PATH, "{}"), 400, "INVALID_ARGUMENT", "No id provided. No type provided. No eventTypes provided."),
        (
            ("POST", PATH, r#"{"id":"a","type":"t","eventTypes":["done"]}"#),
            400,
            "Bad Request",
            "Unexpected value 'done'",
        ),
        (
            ("POST", PATH, r#"{"id":"a/b","type":"t","eventTypes":["all"]}"#),
            400,
            "INVALID_ARGUMENT",
            "The id 'a/b' has",
        ),
        (("POST", PATH, r#"{"id":1,"type":"t","eventTypes":["all"]}"#), 400, "Bad Request", "[id] cannot be parsed"),
        (
            ("POST", PATH, r#"{"id":"a","type":"t","eventTypes":["all"],"retries":0}"#),
            400,
            "INVALID_ARGUMENT",
            "The value for retries is '0' but must be > 0.",
        ),
        (("PUT", &nobody, update), 404, "NOT_FOUND", "but no global task listener with this id was found"),
        (("PUT", &nobody, "{}"), 400, "INVALID_ARGUMENT", "No type provided. No eventTypes provided."),
        (("DELETE", &nobody, ""), 404, "NOT_FOUND", "Expected to delete global task listener with id 'nobody'"),
        (("GET", &nobody, ""), 404, "NOT_FOUND", "Global task listener with id 'nobody' not found"),
        (
            ("POST", "/v2/global-task-listeners/search", r#"{"sort":[{"field":"retries"}]}"#),
            400,
            "INVALID_ARGUMENT",
            "Unknown sortBy: retries.",
        ),
        (
            ("POST", "/v2/global-task-listeners/search", r#"{"filter":{"eventTypes":["done"]}}"#),
            400,
            "Bad Request",
            "Unexpected value 'done' for enum field 'eventTypes'",
        ),
    ] {
        connection.refused(request, status, title, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_defines_listeners_besides_those_of_clients() {
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("osmia.yaml");
    let start = |listeners: &str| {
        std::fs::write(&file, format!("partitions: 2\nglobal-listeners:\n  user-task: {listeners}\n"))
            .expect("writable");
        let server = Server::start(&data.path().join("data"), &["--config", file.to_str().expect("a text")]);
        (Connection::open(&server), server)
    };
    // The leader of the first partition has them defined, a moment after the start.
    let until = |connection: &mut Connection, wanted: Value| {
        let end = std::time::Instant::now() + LIMIT;
        loop {
            let all = r#"{"sort":[{"field":"id"}]}"#;
            let items = connection.tell("POST", &format!("{PATH}/search"), all)["items"].clone();
            let pairs =
                items.as_array().expect("items").iter().map(|item| json!([item["id"], item["type"], item["source"]]));
            let found = Value::Array(pairs.collect());
            if found == wanted {
                return;
            }
            assert!(std::time::Instant::now() < end, "{found} instead of {wanted}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let (mut connection, server) =
        start(r#"[{id: one, type: x, event-types: [all]}, {id: two, type: x, event-types: [creating]}]"#);
    until(&mut connection, json!([["one", "x", "CONFIGURATION"], ["two", "x", "CONFIGURATION"]]));
    create(&mut connection, &json!({"id": "own", "type": "y", "eventTypes": ["all"]}));
    connection.done("DELETE", &format!("{PATH}/one"), "");
    let update = r#"{"type":"y","eventTypes":["all"]}"#;
    assert_eq!(connection.tell("PUT", &format!("{PATH}/two"), update)["source"], "API");
    drop((connection, server));
    let (mut connection, server) = start(r#"[{id: one, type: x, event-types: [all]}]"#);
    until(&mut connection, json!([["one", "x", "CONFIGURATION"], ["own", "y", "API"], ["two", "y", "API"]]));
    drop((connection, server));
    let (mut connection, _server) = start("[]");
    until(&mut connection, json!([["own", "y", "API"], ["two", "y", "API"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_every_partition_ask_it_also_after_a_restart_and_none_do_after_a_purge() {
    const PARTITIONS: usize = 3;
    let (server, data) = start(&["--partitions", "3", "--clock-control"]).await;
    let mut connection = Connection::open(&server);
    connection.deploy(&[("listened.bpmn", MODEL.as_bytes())]);
    create(&mut connection, &json!({"id": "audit", "type": "log", "eventTypes": ["canceling"]}));
    // Instances are created on all partitions in turn.
    let instances: Vec<String> = (0..PARTITIONS).map(|_| start_task(&mut connection)).collect();
    for instance in &instances {
        connection.done("POST", &format!("/v2/process-instances/{instance}/cancellation"), "");
    }
    let filter = json!({"filter": {"state": "CANCELING"}}).to_string();
    let tasks = connection.tell("POST", "/v2/user-tasks/search", &filter);
    assert_eq!(tasks["page"]["totalItems"], PARTITIONS, "all wait for the listener: {tasks}");
    drop(connection);
    server.kill();

    let server = Server::start(data.path(), &["--clock-control"]);
    let mut connection = Connection::open(&server);
    assert_eq!(found(&mut connection, &json!({})), ["audit"]);
    for _ in &instances {
        let job = listen(&mut connection, "log");
        assert_eq!((&job["kind"], &job["listenerEventType"]), (&json!("TASK_LISTENER"), &json!("CANCELING")));
    }
    let filter = json!({"filter": {"state": "TERMINATED"}}).to_string();
    let ended = connection.tell("POST", "/v2/process-instances/search", &filter);
    assert_eq!(ended["page"]["totalItems"], PARTITIONS, "{ended}");

    let (status, body) = server.http("POST", "/actuator/cluster/purge", "");
    assert_eq!(status, 202, "{body}");
    assert_eq!(found(&mut connection, &json!({})), [""; 0]);
    connection.deploy(&[("listened.bpmn", MODEL.as_bytes())]);
    for _ in 0..PARTITIONS {
        let instance = start_task(&mut connection);
        connection.done("POST", &format!("/v2/process-instances/{instance}/cancellation"), "");
    }
    let ended = connection.tell("POST", "/v2/process-instances/search", &filter);
    assert_eq!(ended["page"]["totalItems"], PARTITIONS, "nobody is asked any more: {ended}");
    create(&mut connection, &json!({"id": "audit", "type": "log", "eventTypes": ["creating"]}));
    start_task(&mut connection);
    assert_eq!(listen(&mut connection, "log")["listenerEventType"], "CREATING");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_of_the_configuration_are_there_again_when_a_purge_is_answered() {
    const PARTITIONS: usize = 2;
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("osmia.yaml");
    let listeners = "[{id: one, type: x, event-types: [creating]}, {id: two, type: y, event-types: [completing]}]";
    let configuration = format!("partitions: {PARTITIONS}\nglobal-listeners:\n  user-task: {listeners}\n");
    std::fs::write(&file, configuration).expect("writable");
    let flags = ["--clock-control", "--config", file.to_str().expect("a text")];
    let server = Server::start(&data.path().join("data"), &flags);
    let mut connection = Connection::open(&server);
    for round in 1..=3 {
        create(&mut connection, &json!({"id": "own", "type": "x", "eventTypes": ["all"]}));
        if round > 1 {
            connection.done("DELETE", &format!("{PATH}/one"), "");
        }
        let (status, body) = server.http("POST", "/actuator/cluster/purge", "");
        assert_eq!(status, 202, "round {round}: {body}");
        let sorted = json!({"sort": [{"field": "id"}]});
        assert_eq!(found(&mut connection, &sorted), ["one", "two"], "round {round}");
        assert_eq!(connection.tell("GET", &format!("{PATH}/two"), "")["source"], "CONFIGURATION");
        // The other partition has them too: instances are created on each in turn.
        connection.deploy(&[("listened.bpmn", MODEL.as_bytes())]);
        for _ in 0..PARTITIONS {
            start_task(&mut connection);
        }
        for _ in 0..PARTITIONS {
            assert_eq!(listen(&mut connection, "x")["listenerEventType"], "CREATING", "round {round}");
        }
    }
}
