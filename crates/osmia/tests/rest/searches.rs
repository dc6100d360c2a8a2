//! Searches: what is acknowledged is found at once, on every partition, whatever happens to the node.

use super::*;

fn search(connection: &mut Connection, what: &str, body: &Value) -> Value {
    let answer = connection.ask("POST", &format!("/v2/{what}/search"), &body.to_string());
    assert_eq!((answer.status, answer.header("content-type")), (200, Some(JSON)), "{what} {body}: {}", answer.body);
    assert_eq!(answer.header("osmia-consistency"), None, "it waited until it saw what was acknowledged");
    answer.json()
}

fn keys(found: &Value, name: &str) -> Vec<String> {
    let items = found["items"].as_array().expect("items");
    items.iter().map(|item| item[name].as_str().expect("a key").to_owned()).collect()
}

fn create(connection: &mut Connection, variables: &Value) -> String {
    let body = json!({"processDefinitionId": "order", "variables": variables, "tags": ["t"]});
    let created = connection.ask("POST", "/v2/process-instances", &body.to_string()).json();
    created["processInstanceKey"].as_str().expect("a key").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_found_at_once() {
    let (server, _data) = start(&["--partitions", "3"]).await;
    let mut worker = server.client().await;
    let mut connection = Connection::open(&server);
    for count in 1..=30 {
        let key = create(&mut connection, &json!({"n": count, "text": "a"}));
        let path = format!("/v2/process-instances/{key}");
        let found = connection.ask("GET", &path, "");
        assert_eq!((found.status, &found.json()["state"]), (200, &json!("ACTIVE")), "{}", found.body);
        let all = search(&mut connection, "process-instances", &json!({"filter": {"state": "ACTIVE"}}));
        assert_eq!((&all["page"]["totalItems"], &all["page"]["hasMoreTotalItems"]), (&json!(count), &json!(false)));
        assert!(keys(&all, "processInstanceKey").contains(&key));
    }
    let mut jobs = Vec::new();
    while jobs.len() < 10 {
        jobs.extend(activate(&mut worker, poll("work", LONG_POLL)).await);
    }
    for job in &jobs[..10] {
        let answer =
            connection.ask("POST", &format!("/v2/jobs/{}/completion", job.key), r#"{"variables":{"done":1.50}}"#);
        assert_eq!(answer.status, 204);
        let instance = connection.ask("GET", &format!("/v2/process-instances/{}", job.process_instance_key), "").json();
        assert_eq!(instance["state"], "COMPLETED");
        assert!(instance["endDate"].as_str() >= instance["startDate"].as_str());
    }
    let by_value = |value: &str| json!({"filter": {"variables": [{"name": "done", "value": value}]}});
    for (value, count) in [("1.5", 10), ("1.50", 10), ("15e-1", 10), ("\"1.5\"", 0), ("2", 0)] {
        let found = search(&mut connection, "process-instances", &by_value(value));
        assert_eq!(found["page"]["totalItems"], count, "{value}");
    }
    for (filter, count) in [
        (json!({"name": "done", "value": "1.5"}), 10),
        (json!({"name": "done", "value": {"$neq": "15e-1"}}), 0),
        (json!({"name": "n", "value": {"$in": ["1", "2.0", "\"3\""]}}), 2),
        (json!({"name": "n", "isTruncated": false}), 30),
        (json!({"isTruncated": true}), 0),
    ] {
        let found = search(&mut connection, "variables", &json!({"filter": filter}));
        assert_eq!(found["page"]["totalItems"], count, "{filter}");
    }
    let many: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    for (test, count) in [("$in", 30), ("$notIn", 0)] {
        let filter = json!({"variables": [{"name": "n", "value": {test: many}}]});
        let found = search(&mut connection, "process-instances", &json!({"filter": filter}));
        assert_eq!(found["page"]["totalItems"], count, "{test}");
    }
    // The key of a partition that does not exist.
    let key = (4_i64 << 51) + 1;
    for path in ["process-instances", "variables", "user-tasks", "incidents", "element-instances"] {
        let path = format!("/v2/{path}/{key}");
        let (status, title, _) = connection.ask("GET", &path, "").problem(&path);
        assert_eq!((status, &*title), (404, "NOT_FOUND"), "{path}");
    }
    for path in ["call-hierarchy", "sequence-flows", "statistics/element-instances", "statistics/wait-states"] {
        let path = format!("/v2/process-instances/{key}/{path}");
        let (status, title, _) = connection.ask("GET", &path, "").problem(&path);
        assert_eq!((status, &*title), (404, "NOT_FOUND"), "{path}");
    }
    let path = format!("/v2/process-definitions/{}/statistics/element-instances", definition(&mut connection));
    let counts = connection.ask("POST", &path, "{}").json();
    let task = counts["items"].as_array().unwrap().iter().find(|item| item["elementId"] == "task").cloned();
    let task = task.unwrap_or_else(|| panic!("{counts}"));
    assert_eq!((&task["active"], &task["completed"], &task["incidents"]), (&json!(20), &json!(10), &json!(0)));
}

fn definition(connection: &mut Connection) -> String {
    keys(&search(connection, "process-definitions", &json!({})), "processDefinitionKey").remove(0)
}

/// A cursor holds what was sorted by, and must come back however long that is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_sorted_by_long_texts_has_pages_too() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut worker = server.client().await;
    let mut connection = Connection::open(&server);
    for _ in 0..4 {
        create(&mut connection, &json!({"long": "y".repeat(20_000)}));
    }
    let mut jobs = Vec::new();
    while jobs.len() < 4 {
        jobs.extend(activate(&mut worker, poll("work", LONG_POLL)).await);
    }
    for (job, first) in jobs.iter().zip(["b", "a", "d", "c"]) {
        let body = json!({"retries": 0, "errorMessage": format!("{first}{}", "x".repeat(20_000))}).to_string();
        connection.done("POST", &format!("/v2/jobs/{}/failure", job.key), &body);
    }
    for (what, field) in [("jobs", "errorMessage"), ("incidents", "errorMessage"), ("variables", "value")] {
        let (mut seen, mut after) = (Vec::new(), Value::Null);
        loop {
            let body = json!({"sort": [{"field": field, "order": "DESC"}], "page": {"limit": 1, "after": after}});
            let found = search(&mut connection, what, &body);
            let Some(item) = found["items"].as_array().and_then(|items| items.first()) else { break };
            seen.push(item[field].as_str().expect("a text").chars().next());
            after = found["page"]["endCursor"].clone();
        }
        let expected = if what == "variables" { ['"'; 4] } else { ['d', 'c', 'b', 'a'] };
        assert_eq!(seen, expected.map(Some), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_both_ways_over_all_partitions() {
    let (server, _data) = start(&["--partitions", "3"]).await;
    let mut connection = Connection::open(&server);
    let mut created: Vec<String> = (0..25).map(|n| create(&mut connection, &json!({"n": n}))).collect();
    created.sort_by_key(|key| key.parse::<i64>().unwrap());
    for (sort, is_reversed) in [(json!([]), false), (json!([{"field": "processInstanceKey", "order": "DESC"}]), true)] {
        let mut expected = created.clone();
        if is_reversed {
            expected.reverse();
        }
        let (mut pages, mut after) = (Vec::new(), Value::Null);
        loop {
            let body = json!({"sort": sort, "page": {"limit": 7, "after": after}});
            let page = search(&mut connection, "process-instances", &body);
            if page["items"].as_array().unwrap().is_empty() {
                assert_eq!(page["page"]["endCursor"], Value::Null);
                break;
            }
            after = page["page"]["endCursor"].clone();
            pages.push(page);
        }
        let read: Vec<String> = pages.iter().flat_map(|page| keys(page, "processInstanceKey")).collect();
        assert_eq!(read, expected);
        let body = json!({"sort": sort, "page": {"limit": 7, "before": pages[2]["page"]["startCursor"]}});
        let before = search(&mut connection, "process-instances", &body);
        assert_eq!(before["items"], pages[1]["items"]);
        let body = json!({"sort": sort, "page": {"limit": 7, "from": 14}});
        assert_eq!(search(&mut connection, "process-instances", &body)["items"], pages[2]["items"]);
    }
    let path = "/v2/process-instances/search";
    let (status, _, detail) = connection.ask("POST", path, r#"{"filter":{"colour":"red"}}"#).problem(path);
    assert_eq!((status, &*detail), (400, "Request property [colour] cannot be parsed"));
    let (status, title, detail) =
        connection.ask("GET", "/v2/process-instances/7", "").problem("/v2/process-instances/7");
    assert_eq!((status, &*title, &*detail), (404, "NOT_FOUND", "Process instance with key '7' not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_about_an_instance_is_there_also_after_a_kill_and_without_its_file() {
    let (server, data) = start(&["--partitions", "1"]).await;
    let mut worker = server.client().await;
    let mut connection = Connection::open(&server);
    let key = create(&mut connection, &json!({"n": 1, "long": "x".repeat(9_000)}));
    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    let failure = r#"{"retries":0,"errorMessage":"the printer is on fire"}"#;
    assert_eq!(connection.ask("POST", &format!("/v2/jobs/{}/failure", job.key), failure).status, 204);
    let of_instance = json!({"filter": {"processInstanceKey": key}});
    let look = |connection: &mut Connection| -> Vec<Value> {
        ["process-instances", "element-instances", "variables", "jobs", "incidents"]
            .iter()
            .map(|what| search(connection, what, &of_instance)["items"].clone())
            .collect()
    };
    let seen = look(&mut connection);
    let [instances, elements, variables, jobs, incidents] = &seen[..] else { panic!("five kinds") };
    assert_eq!((&instances[0]["hasIncident"], &instances[0]["tags"]), (&json!(true), &json!(["t"])));
    let task = elements.as_array().unwrap().iter().find(|element| element["elementId"] == "task").expect("the task");
    assert_eq!((&task["hasIncident"], &task["incidentKey"]), (&json!(true), &incidents[0]["incidentKey"]));
    assert_eq!((&jobs[0]["state"], &jobs[0]["retries"]), (&json!("FAILED"), &json!(0)));
    assert_eq!(incidents[0]["errorMessage"], "the printer is on fire");
    assert_eq!((&incidents[0]["errorType"], &incidents[0]["state"]), (&json!("JOB_NO_RETRIES"), &json!("ACTIVE")));
    let long = variables.as_array().unwrap().iter().find(|variable| variable["name"] == "long").expect("it is there");
    assert_eq!((&long["isTruncated"], long["value"].as_str().map(str::len)), (&json!(true), Some(8_191)));
    let whole = connection.ask("GET", &format!("/v2/variables/{}", long["variableKey"].as_str().unwrap()), "").json();
    assert_eq!((whole["value"].as_str().map(str::len), whole.get("isTruncated")), (Some(9_002), None));

    for (has_incident, count) in [(true, 1), (false, 0)] {
        let filter =
            json!({"filter": {"hasIncident": has_incident, "elementId": "task", "elementInstanceState": "ACTIVE"}});
        assert_eq!(search(&mut connection, "process-instances", &filter)["page"]["totalItems"], count, "{filter}");
    }

    let incident = incidents[0]["incidentKey"].as_str().unwrap().to_owned();
    let path = format!("/v2/element-instances/{}/incidents/search", task["elementInstanceKey"].as_str().unwrap());
    assert_eq!(keys(&connection.ask("POST", &path, "{}").json(), "incidentKey"), [incident.as_str()]);
    let path = format!("/v2/process-definitions/{}/statistics/element-instances", definition(&mut connection));
    for (filter, troubled) in [(json!({"processInstanceKey": key}), 1), (json!({"state": "COMPLETED"}), 0)] {
        let counts = connection.ask("POST", &path, &json!({"filter": filter}).to_string()).json();
        let task = counts["items"].as_array().unwrap().iter().find(|item| item["elementId"] == "task");
        let seen = task.map_or([json!(0), json!(0)], |task| [task["active"].clone(), task["incidents"].clone()]);
        assert_eq!(seen, [json!(0), json!(troubled)], "{filter}: {counts}");
    }
    let by_error = connection.ask("POST", "/v2/incidents/statistics/process-instances-by-error", "{}").json();
    let by_definition = json!({"filter": {"errorHashCode": by_error["items"][0]["errorHashCode"]}}).to_string();
    let path = "/v2/incidents/statistics/process-instances-by-definition";
    let by_definition = connection.ask("POST", path, &by_definition).json();
    let of = &by_definition["items"][0];
    assert_eq!((&of["processDefinitionId"], &of["activeInstancesWithErrorCount"]), (&json!("order"), &json!(1)));
    assert_eq!(of["processDefinitionName"], "order", "its id, because it has no name and the API no null here");
    let (status, _, detail) = connection.ask("POST", path, r#"{"filter":{}}"#).problem(path);
    assert!(status == 400 && detail.contains("errorHashCode"), "{status} {detail}");
    server.kill();
    let server = Server::start(data.path(), &[]);
    let mut connection = Connection::open(&server);
    let waiting = eventually(|| look(&mut connection) == seen);
    assert!(waiting, "{:?}", look(&mut connection));

    let path = format!("/v2/process-instances/{key}/incidents/search");
    assert_eq!(keys(&connection.ask("POST", &path, "").json(), "incidentKey"), [incident.as_str()]);
    assert_eq!(connection.ask("PATCH", &format!("/v2/jobs/{}", job.key), r#"{"changeset":{"retries":1}}"#).status, 204);
    assert_eq!(connection.ask("POST", &format!("/v2/incidents/{incident}/resolution"), "").status, 204);
    let instance = connection.ask("GET", &format!("/v2/process-instances/{key}"), "").json();
    assert_eq!(instance["hasIncident"], false);

    // A damaged file is set aside; what the stream still has is there again.
    server.kill();
    let file = data.path().join("read-model/partition-1.sqlite");
    std::fs::write(&file, "this is not a database, although it lies where one was").unwrap();
    let _ = std::fs::remove_file(data.path().join("read-model/partition-1.sqlite-wal"));
    let server = Server::start(data.path(), &["--log", "off"]);
    assert!(data.path().join("read-model/partition-1.sqlite.damaged-1").exists());
    let mut connection = Connection::open(&server);
    create(&mut connection, &json!({}));
    assert!(search(&mut connection, "process-instances", &json!({}))["page"]["totalItems"].as_u64() >= Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_bounded_and_the_next_page_goes_on_where_it_ends() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    for _ in 0..7 {
        create(&mut connection, &json!({"large": "x".repeat(3_900_000)}));
    }
    let mut page = |position: Value| {
        let body = json!({"page": position}).to_string();
        let answer = connection.ask("POST", "/v2/variables/search?truncateValues=false", &body);
        assert!(answer.status == 200 && answer.body.len() < 24 << 20, "{} {}", answer.status, answer.body.len());
        answer.json()
    };
    let first = page(json!({"limit": 100}));
    let second = page(json!({"limit": 100, "after": first["page"]["endCursor"]}));
    let (first_keys, second_keys) = (keys(&first, "variableKey"), keys(&second, "variableKey"));
    assert_eq!((first_keys.len(), second_keys.len()), (5, 2), "after 16 MiB it ends");
    let before = page(json!({"limit": 100, "before": second["page"]["endCursor"]}));
    let all: Vec<String> = first_keys.into_iter().chain(second_keys).collect();
    assert_eq!(keys(&before, "variableKey"), all[1..6], "backwards it ends at the other side");
}

/// Asks again and again, for as long as anything may take here.
fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let until = std::time::Instant::now() + LIMIT;
    while std::time::Instant::now() < until {
        if is_so() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_read_model_says_so() {
    let (server, _data) = start(&["--read-model", "none"]).await;
    let mut connection = Connection::open(&server);
    let (status, _, detail) = connection.ask("POST", "/v2/jobs/search", "").problem("/v2/jobs/search");
    assert_eq!(status, 501);
    assert!(detail.contains("has no read model"), "{detail}");
}
