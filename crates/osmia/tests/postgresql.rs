//! A node whose searches read a PostgreSQL server: what is acknowledged is found at once, whatever happens to the node and to the
//! server, and the node needs the server for nothing else.

#[path = "../../readmodel/tests/support/postgresql.rs"]
mod postgresql;
mod support;

use std::time::Instant;

use postgresql::PostgreSqlServer;
use serde_json::{Value, json};
use support::*;

fn ask(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let (status, text) = Server::request(&server.rest, method, path, &body.to_string());
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn create(server: &Server, number: usize) {
    let body =
        json!({"processDefinitionId": "order", "variables": {"n": number, "text": "ä'\"\\ \u{0}"}, "tags": ["t"]});
    let (status, created) = ask(server, "POST", "/v2/process-instances", &body);
    assert_eq!(status, 200, "{created}");
}

/// Waits until both threads that search have found the tables, which are made while the node starts.
fn wait_for_tables(server: &Server) {
    let (begin, mut in_a_row) = (Instant::now(), 0);
    while in_a_row < 20 {
        let (status, found) = ask(server, "POST", "/v2/process-instances/search", &json!({}));
        in_a_row = if status == 200 { in_a_row + 1 } else { 0 };
        assert!(begin.elapsed() < LIMIT, "{status} {found}");
        if status != 200 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

fn search(server: &Server, what: &str, filter: &Value) -> Value {
    let (status, found) = ask(server, "POST", &format!("/v2/{what}/search"), &json!({"filter": filter}));
    assert_eq!(status, 200, "{found}");
    found
}

fn count(server: &Server, what: &str, filter: &Value) -> u64 {
    search(server, what, filter)["page"]["totalItems"].as_u64().expect("a number")
}

/// Of the task, as the counters of the fold say.
fn active_tasks(server: &Server) -> Value {
    let definition = search(server, "process-definitions", &json!({}))["items"][0]["processDefinitionKey"].clone();
    let path = format!("/v2/process-definitions/{}/statistics/element-instances", definition.as_str().expect("a key"));
    let (status, counts) = ask(server, "POST", &path, &json!({}));
    assert_eq!(status, 200, "{counts}");
    let items = counts["items"].as_array().expect("items");
    items.iter().find(|item| item["elementId"] == "task").map_or(json!(0), |item| item["active"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_holds_up_no_search_and_is_gone_on_with() {
    let postgresql = PostgreSqlServer::start();
    let url = postgresql.new_database();
    let data = tempfile::tempdir().unwrap();
    let flags = ["--partitions", "2", "--read-model", "postgresql", "--read-model-url", &url];
    let server = Server::start(data.path(), &flags);
    deploy(&mut server.client().await, one_task("order", "work")).await;
    wait_for_tables(&server);
    create(&server, 1);
    assert_eq!(count(&server, "process-instances", &json!({"state": "ACTIVE"})), 1);

    postgresql.freeze();
    // More than there are threads that search, on connections from before and on new ones.
    for round in 0..2 {
        let searches: Vec<_> = (0..6)
            .map(|_| {
                let address = server.rest.clone();
                std::thread::spawn(move || Server::request(&address, "POST", "/v2/process-instances/search", "{}"))
            })
            .collect();
        for search in searches {
            let (status, problem) = search.join().expect("it is answered");
            assert_eq!(status, 503, "round {round}: {problem}");
            // On a slow machine those before it may have waited for long.
            let is_told =
                ["The read model is not available: ", "The search has waited "].map(|said| problem.contains(said));
            assert!(is_told.contains(&true), "{problem}");
        }
    }
    for number in 2..=10 {
        create(&server, number);
    }
    postgresql.thaw();
    let begin = Instant::now();
    let active = json!({"filter": {"state": "ACTIVE"}});
    loop {
        let (status, found) = ask(&server, "POST", "/v2/process-instances/search", &active);
        if status == 200 && found["page"]["totalItems"] == 10 {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{status} {found}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    wait_for_tables(&server);
    assert_eq!(active_tasks(&server), 10, "each record was counted once");
}

/// How a start ends that an operator has to mend: what it says.
fn refused_start(data: &std::path::Path, url: &str) -> String {
    let mut command = command(data, &["--read-model", "postgresql", "--read-model-url", url]);
    let ended = command.stdin(std::process::Stdio::null()).output().expect("it starts");
    assert_eq!(ended.status.code(), Some(1));
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_an_operator_can_mend_ends_the_start_and_is_in_the_health_later() {
    let postgresql = PostgreSqlServer::start();
    postgresql.new_user("guarded", "right");
    let url = postgresql.new_database().replace("osmia@", "guarded:right@");
    let [data, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for (wrong, said) in [
        (url.replace("right", "wrong"), "password authentication failed for user \"guarded\""),
        (url.replace(":right", ""), "password missing"),
        (format!("{url}_not_there"), "does not exist"),
    ] {
        let told = refused_start(data.path(), &wrong);
        assert!(told.contains("The read model cannot be used: the PostgreSQL server 127.0.0.1:"), "{told}");
        assert!(told.contains(said) && told.contains("Correct the user, the password and the database"), "{told}");
        assert!(!told.contains("wrong@"), "{told}");
    }
    let flags = ["--read-model", "postgresql", "--read-model-url", &url];
    let server = Server::start(data.path(), &flags);
    wait_for_tables(&server);
    let (status, health) = server.http("GET", "/actuator/health", "");
    assert_eq!(status, 200, "{health}");
    // Another cluster, which learns what it is called with its first start.
    for _ in 0..2 {
        let told = refused_start(other.path(), &url);
        assert!(told.contains("is the read model of the cluster") && told.contains("a database of its own"), "{told}");
    }
    postgresql.psql("postgres", "ALTER ROLE guarded PASSWORD 'another'");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guarded'";
    let begin = Instant::now();
    loop {
        // What the fold has to write makes it notice.
        deploy(&mut server.client().await, one_task("order", "work")).await;
        create(&server, 1);
        postgresql.psql("postgres", end);
        let (status, text) = server.http("GET", "/actuator/health", "");
        let health: Value = serde_json::from_str(&text).expect("JSON");
        if health["status"] == "DOWN" {
            assert_eq!((status, &health["components"]["readModel"]["status"]), (503, &json!("DOWN")), "{health}");
            let message = health["components"]["readModel"]["details"]["message"].as_str().expect("a sentence");
            assert!(message.contains("password authentication failed"), "{message}");
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{health}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(server.http("GET", "/actuator/health/readiness", "").0, 200, "work goes on");
    postgresql.psql("postgres", "ALTER ROLE guarded PASSWORD 'right'");
    let begin = Instant::now();
    while server.http("GET", "/actuator/health", "").0 != 200 {
        assert!(begin.elapsed() < LIMIT, "{}", server.http("GET", "/actuator/health", "").1);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_server_lost_are_made_anew_of_what_lives() {
    let postgresql = PostgreSqlServer::start();
    let url = postgresql.new_database();
    let data = tempfile::tempdir().unwrap();
    let flags = ["--read-model", "postgresql", "--read-model-url", &url];
    // Before there was a read model, nothing was kept of what happened.
    let server = Server::start(data.path(), &["--read-model", "none"]);
    deploy(&mut server.client().await, one_task("order", "work")).await;
    for number in 1..=5 {
        create(&server, number);
    }
    assert_eq!(server.terminate(), Some(0));
    let mut server = Server::start(data.path(), &flags);
    for round in 0..2 {
        let begin = Instant::now();
        loop {
            let (status, found) = ask(&server, "POST", "/v2/process-instances/search", &json!({}));
            if status == 200 && found["page"]["totalItems"] == 5 {
                break;
            }
            assert!(begin.elapsed() < LIMIT, "round {round}: {status} {found}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        wait_for_tables(&server);
        assert_eq!(active_tasks(&server), 5);
        assert_eq!(count(&server, "variables", &json!({"name": "n"})), 5);
        assert_eq!(count(&server, "jobs", &json!({"state": "CREATED"})), 5);
        server.kill();
        postgresql.psql(&url, "DROP SCHEMA osmia_1 CASCADE");
        server = Server::start(data.path(), &flags);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_read_a_server_that_may_go_and_come_back() {
    let mut postgresql = PostgreSqlServer::start();
    let url = postgresql.new_database();
    let data = tempfile::tempdir().unwrap();
    let flags = ["--partitions", "2", "--read-model", "postgresql", "--read-model-url", &url, "--search-wait", "1s"];
    let server = Server::start(data.path(), &flags);
    deploy(&mut server.client().await, one_task("order", "work")).await;
    // The tables may take long to be made.
    wait_for_tables(&server);
    for number in 1..=10 {
        create(&server, number);
        assert_eq!(count(&server, "process-instances", &json!({"state": "ACTIVE"})), number as u64);
        let by_value = json!({"variables": [{"name": "n", "value": number.to_string()}]});
        assert_eq!(count(&server, "process-instances", &by_value), 1);
    }
    assert!(!data.path().join("read-model").exists(), "there are no files");

    server.kill();
    let server = Server::start(data.path(), &flags);
    create(&server, 11);
    assert_eq!(count(&server, "process-instances", &json!({"state": "ACTIVE", "tags": ["t"]})), 11);
    assert_eq!(active_tasks(&server), 11);

    postgresql.stop();
    for number in 12..=20 {
        create(&server, number);
    }
    let mut client = server.client().await;
    let job = activate(&mut client, poll("work", LONG_POLL)).await.remove(0);
    client.complete_job(completion(job.key, "")).await.expect("work goes on");
    let (status, problem) = ask(&server, "POST", "/v2/process-instances/search", &json!({}));
    assert_eq!((status, &problem["title"]), (503, &json!("UNAVAILABLE")), "{problem}");
    let detail = problem["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("The read model is not available: ") && detail.ends_with("."), "{detail}");
    let (_, metrics) = server.http("GET", "/metrics", "");
    assert!(metrics.contains("osmia_exporter"), "the node says how its consumers are");

    // Killed while the server is away: what it was not told comes again.
    server.kill();
    let server = Server::start(data.path(), &flags);
    let (status, health) = server.http("GET", "/actuator/health", "");
    assert_eq!(status, 200, "nothing is to be done: {health}");
    create(&server, 21);
    postgresql.run();
    let begin = Instant::now();
    let active = json!({"filter": {"state": "ACTIVE"}});
    loop {
        let (status, found) = ask(&server, "POST", "/v2/process-instances/search", &active);
        if status == 200 && found["page"]["totalItems"] == 20 {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{status} {found}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(active_tasks(&server), 20, "each record was counted once");
    assert_eq!(count(&server, "process-instances", &json!({"state": "COMPLETED"})), 1);
    assert_eq!(count(&server, "variables", &json!({"name": "n"})), 21);
    create(&server, 22);
    assert_eq!(count(&server, "process-instances", &json!({"state": "ACTIVE"})), 21, "and at once again");
}
