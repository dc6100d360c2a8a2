//! What operators use: command line, management port, configuration.

#[path = "support/dashboard.rs"]
mod dashboard;
mod support;

use serde_json::Value;
use support::*;

/// What the dashboards of the reference read.
const REFERENCE_METRICS: &str = include_str!("support/reference_metrics.txt");

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

/// Waits until something holds.
fn eventually(holds: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LIMIT, "what was waited for has not come about");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("keys are strings").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feature_level_is_shown_and_raised_once() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2", "--root-variable-bytes-limit", "2MB"]);
    let level = |answer: &str| json(answer)["partitions"][1]["level"].clone();
    let (code, shown) = server.http("GET", "/cluster/feature-level", "");
    assert_eq!((code, level(&shown)), (200, json(&shown)["newestKnownByAllNodes"].clone()), "{shown}");
    let raise = format!("{{\"level\": {}}}", level(&shown));
    let (code, again) = server.http("POST", "/cluster/feature-level", &raise);
    assert_eq!((code, json(&again)), (200, json(&shown)), "raising what is there already changes nothing");
    // No request leads to the level for tests.
    for unknown in [999, engine::FeatureLevel::TEST.number()] {
        let (code, body) = server.http("POST", "/cluster/feature-level", &format!("{{\"level\": {unknown}}}"));
        assert_eq!(code, 400);
        assert!(
            body.contains(&format!("Feature level {unknown} is not known: this build knows the levels up to 1")),
            "{body}"
        );
    }
    assert_eq!(server.http("POST", "/cluster/feature-level", "{}").0, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_moves_only_with_clock_control_and_takes_jobs_with_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--clock-control"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    client.create_process_instance(creation("order", "")).await.unwrap();
    assert_eq!(activate(&mut client, poll("work", LONG_POLL)).await.len(), 1);
    assert!(activate(&mut client, poll("work", -1)).await.is_empty(), "the job is locked for a minute");
    let (code, body) = server.http("POST", "/actuator/clock/add", r#"{"offsetMilli": 120000}"#);
    assert_eq!(code, 200, "{body}");
    assert_eq!(activate(&mut client, poll("work", LONG_POLL)).await.len(), 1, "its lock has ended");

    let (code, body) = server.http("POST", "/actuator/clock", r#"{"epochMilli": 1735787045000}"#);
    assert_eq!((code, json(&body)), (200, json(r#"{"epochMilli":1735787045000,"instant":"2025-01-02T03:04:05Z"}"#)));
    for (path, body) in
        [("/actuator/clock", r#"{"epochMilli":-5}"#), ("/actuator/clock/add", r#"{"offsetMilli":-1735787045001}"#)]
    {
        assert_eq!(server.http("POST", path, body).0, 400, "partitions know no time before 1970");
    }
    assert_eq!(json(&server.http("GET", "/actuator/clock", "").1)["epochMilli"], 1_735_787_045_000i64);
    assert_eq!(server.http("POST", "/actuator/clock", "{}").0, 422);
    let (_, body) = server.http("DELETE", "/actuator/clock", "");
    assert!(json(&body)["epochMilli"].as_i64().unwrap() > 1_735_787_045_000);
    // The engine's time did not go back, so the clock did not either, and what is added moves both.
    let (code, body) = server.http("POST", "/actuator/clock/add", r#"{"offsetMilli": 120000}"#);
    assert_eq!(code, 200, "{body}");
    assert_eq!(activate(&mut client, poll("work", LONG_POLL)).await.len(), 1, "its lock has ended again");

    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let (code, body) = server.http("POST", "/actuator/clock/add", r#"{"offsetMilli": 1}"#);
    assert_eq!(code, 403);
    assert!(body.contains("--clock-control"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_management_port_reports_health_metrics_and_streams() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    for path in ["", "/readiness", "/liveness", "/startup", "/status"] {
        let (code, body) = server.http("GET", &format!("/actuator/health{path}"), "");
        assert_eq!((code, json(&body)["status"].as_str()), (200, Some("UP")), "{path}: {body}");
    }
    for path in ["/ready", "/health", "/startup"] {
        assert_eq!(server.http("GET", path, "").0, 200);
    }
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let request = gateway_interface::StreamActivatedJobsRequest {
        r#type: "work".into(),
        worker: "w".into(),
        timeout: 1_000,
        ..Default::default()
    };
    let stream = client.stream_activated_jobs(request).await.unwrap();
    let streams = json(&server.http("GET", "/actuator/jobstreams", "").1);
    assert_eq!(streams["client"][0]["jobType"], "work");
    assert_eq!(streams["remote"][0]["metadata"]["worker"], "w");
    drop(stream);
    let (code, text) = server.http("GET", "/actuator/prometheus", "");
    assert_eq!(code, 200);
    for name in [
        "grpc_server_processing_duration_seconds_bucket",
        "zeebe_gateway_total_requests_total{requestType=\"DeployResource\"} 1",
        "zeebe_gateway_request_latency_seconds_count",
        "zeebe_gateway_job_stream_clients",
        "process_resident_memory_bytes",
    ] {
        assert!(text.contains(name), "{name} is missing");
    }
    let (code, body) = server.http("GET", "/actuator/nothing", "");
    assert_eq!(code, 404, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_does_the_daily_work() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let run = |arguments: &[&str]| {
        let output = osmia(&server, arguments);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let file = data.path().join("order.bpmn");
    std::fs::write(&file, &one_task("order", "work").content).unwrap();
    std::fs::create_dir(data.path().join("models")).unwrap();
    std::fs::write(data.path().join("models/other.bpmn"), &one_task("other", "work").content).unwrap();
    let variables = data.path().join("variables.json");
    std::fs::write(&variables, r#"{"a":2}"#).unwrap();
    let (ok, out, err) = run(&["deploy", file.to_str().unwrap()]);
    assert!(ok && out.starts_with("process order version 1 key "), "{out}{err}");
    let (ok, out, err) = run(&["create", "order", "--version", "1", "--variables", r#"{"a":1}"#]);
    assert!(ok && out.contains(" of order version 1"), "{out}{err}");
    let (ok, out, _) = run(&["activate", "work"]);
    assert!(ok, "{out}");
    let job = json(out.trim());
    assert_eq!(job["variables"], json(r#"{"a":1}"#));
    let key = text_of(&job["jobKey"]);
    assert!(run(&["fail", &key, "--retries", "0", "--message", "no"]).0);
    let (ok, _, err) = run(&["complete", &key]);
    assert!(!ok && err.contains("Refused (INVALID_STATE): Expected"), "{err}");
    assert!(run(&["cancel", &text_of(&job["processInstanceKey"])]).0);
    let (ok, out, _) = run(&["topology"]);
    assert!(ok && out.contains("partition 2: leader, healthy"), "{out}");
    assert!(out.contains(server.grpc.trim_start_matches("http://")), "the advertised address is wrong: {out}");
    let (ok, _, err) = run(&["create", "nothing"]);
    assert!(!ok && err.contains("Refused (NOT_FOUND): Expected"), "{err}");
    let (ok, out, err) = run(&["create", "order", "--variables", &format!("@{}", variables.display()), "--json"]);
    assert!(
        ok && json(&out)["processDefinitionId"] == "order" && json(&out)["processInstanceKey"].is_string(),
        "{out}{err}"
    );
    let (ok, out, err) = run(&["deploy", data.path().join("models").to_str().unwrap(), "--json"]);
    assert!(ok && json(&out)["deployments"][0]["processDefinition"]["resourceName"] == "other.bpmn", "{out}{err}");
}

#[test]
fn health_is_told_by_text_json_and_exit_code() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let health = |address: &str, more: &[&str]| {
        let mut command = program();
        let output = command.arg("health").args(["--management-address", address]).args(more).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(health(&server.management, &[]), (Some(0), "ready\n".to_owned(), String::new()));
    let (code, out, _) = health(&server.management, &["--json"]);
    assert_eq!(
        (code, json(&out)["components"]["partitions"]["details"]["partition2"]["status"].as_str()),
        (Some(0), Some("UP"))
    );
    // Without an address, it is where a node that is set up alike has it.
    let port = server.management.rsplit_once(':').expect("host and port").1;
    let mut alike = program();
    assert_eq!(alike.arg("health").env("OSMIA_MANAGEMENT_PORT", port).output().unwrap().stdout, b"ready\n");
    let file = data.path().join("settings.yaml");
    std::fs::write(&file, format!("management-port: {port}\n")).unwrap();
    let mut alike = program();
    assert_eq!(alike.arg("health").arg("--config").arg(&file).output().unwrap().stdout, b"ready\n");
    let (code, out, err) = health(&server.rest, &[]);
    assert!(code == Some(1) && out.is_empty() && err.contains("Is this the management port"), "{out}{err}");
    let management = server.management.clone();
    drop(server);
    let (code, out, err) = health(&management, &[]);
    assert!(code == Some(1) && out.is_empty() && err.starts_with("osmia: Cannot reach http://"), "{out}{err}");
}

#[test]
fn what_needs_no_node_has_json_too() {
    let data = tempfile::tempdir().unwrap();
    let (model, settings) = (data.path().join("order.bpmn"), data.path().join("osmia.yaml"));
    std::fs::write(&model, &one_task("order", "work").content).unwrap();
    let listener = "{id: audit, type: audit-log, event-types: [all]}";
    let exporters = "exporters:\n  a: {type: json-lines, path: r.jsonl}";
    let content = format!("partitions: 2\n{exporters}\nglobal-listeners:\n  user-task: [{listener}]\n");
    std::fs::write(&settings, content).unwrap();
    let run = |arguments: &[&str]| {
        let output = program().args(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        json(&String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["version"])["version"], env!("CARGO_PKG_VERSION"));
    let manual = |words: &[&str]| {
        let output = program().arg("man").args(words).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    for (words, has) in [
        (&[][..], ["\nosmia\\-doctor(1)\n", "\nosmia\\-start(1)\n"]),
        (&["start"], [".TH osmia-start 1", "\\-\\-management\\-port"]),
        (&["load", "rate"], [".TH osmia-load-rate 1", "\\-\\-rate"]),
    ] {
        let (succeeds, page) = manual(words);
        assert!(succeeds && has.iter().all(|part| page.contains(part)), "{words:?}: {page}");
    }
    let (succeeds, refused) = manual(&["load", "nothing"]);
    assert!(!succeeds && refused.contains("There is no command 'load nothing'"), "{refused}");
    let checked = run(&["check", model.to_str().unwrap()]);
    assert_eq!(checked["deployments"][0]["processDefinition"]["processDefinitionId"], "order");
    let refused = |arguments: &[&str]| {
        let output = program().args(arguments).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = json(&String::from_utf8(output.stdout).unwrap());
        assert!(String::from_utf8(output.stderr).unwrap().contains(said["detail"].as_str().unwrap()), "{said}");
        said["title"].as_str().unwrap().to_owned()
    };
    let broken = data.path().join("broken.bpmn");
    std::fs::write(&broken, "<definitions/>").unwrap();
    assert_eq!(refused(&["check", broken.to_str().unwrap()]), "INVALID_ARGUMENT");
    assert_eq!(refused(&["deploy", broken.to_str().unwrap(), "--address", "127.0.0.1:1"]), "NOT_ASKED");
    let checked =
        run(&["settings", "check", "--config", settings.to_str().unwrap(), "--data", data.path().to_str().unwrap()]);
    assert_eq!(checked["settings"]["partitions"]["value"], "2");
    assert_eq!(checked["exporters"]["a"]["type"], "json-lines");
    assert_eq!(checked["globalListeners"]["audit"]["type"], "audit-log");
    assert_eq!(checked["unknownVariables"], Value::Array(Vec::new()));
}

#[test]
fn every_line_of_a_node_that_logs_json_is_json() {
    use std::io::BufRead;
    let data = tempfile::tempdir().unwrap();
    let node = || {
        let mut command = command(data.path(), &["--log-format", "json", "--log", "info", "--demo"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    };
    let mut first = node().spawn().unwrap();
    let mut lines = std::io::BufReader::new(first.stdout.take().unwrap()).lines();
    let ready = json(&lines.next().expect("it gets ready").unwrap());
    assert!(ready["message"].as_str().unwrap().starts_with("Osmia is ready: gRPC "), "{ready}");
    assert!(ready["management"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{ready}");

    let refused = node().output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    let last = said.lines().map(json).next_back().expect("it says why");
    assert_eq!((refused.status.code(), last["level"].as_str()), (Some(1), Some("ERROR")), "{said}");
    assert!(last["message"].as_str().unwrap().contains(data.path().to_str().unwrap()), "{last}");

    // Settings are refused before there is a log.
    for (name, value, says) in
        [("OSMIA_PARTITIONS", "0", "a number from 1 to 4095"), ("OSMIA_CHECKPOINT_INTERVAL", "soon", "soon")]
    {
        let refused = node().env(name, value).env("OSMIA_LOG_FORMAT", "json").output().unwrap();
        let last = json(String::from_utf8(refused.stderr).unwrap().trim());
        assert_eq!((refused.status.code(), last["level"].as_str()), (Some(1), Some("ERROR")), "{last}");
        assert!(last["message"].as_str().unwrap().contains(says), "{last}");
    }

    assert!(std::process::Command::new("kill").arg(first.id().to_string()).status().unwrap().success());
    lines.for_each(|line| drop(json(&line.unwrap())));
    let output = first.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.lines().map(json).any(|line| line["message"] == "Osmia starts"), "{said}");
}

/// What a node logs at a level, in which a client comes, is refused something and goes, and the node ends.
fn logged(level: &str) -> Vec<Value> {
    use std::io::BufRead;
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), &["--log-format", "json", "--log", level]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut node = command.spawn().unwrap();
    let ready = std::io::BufReader::new(node.stdout.take().unwrap()).lines().next().expect("it gets ready").unwrap();
    let address = format!("http://{}", json(&ready)["grpc"].as_str().unwrap());
    let mut client = program();
    assert!(!client.args(["--address", &address, "complete", "42"]).output().unwrap().status.success());
    assert!(std::process::Command::new("kill").arg(node.id().to_string()).status().unwrap().success());
    String::from_utf8(node.wait_with_output().unwrap().stderr).unwrap().lines().map(json).collect()
}

#[test]
fn debug_lines_tell_of_clients_streams_of_records_and_refusals() {
    let says = |lines: &[Value], what: &str| lines.iter().any(|line| line["message"] == what);
    let (debug, info) = (logged("debug"), logged("info"));
    let refused = debug.iter().find(|line| line["message"] == "a request failed").expect("it is said");
    assert_eq!((refused["request"].as_str(), refused["code"].as_str()), (Some("CompleteJob"), Some("NotFound")));
    for what in ["a client has connected", "a checkpoint of the state was written"] {
        assert!(says(&debug, what) && !says(&info, what), "{what}: {debug:?}");
    }
    assert!(says(&info, "Osmia has stopped; everything acknowledged is on the disk"));
    assert!(!says(&info, "a request failed"));
}

#[test]
fn nobody_who_reads_is_no_panic() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let call = |out: std::process::Stdio| {
        let mut command = program();
        // Before the command the address may stand as well.
        command.args(["--address", &server.grpc, "topology"]).stdout(out).stderr(std::process::Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(call(writer.into()), (Some(0), String::new()));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (code, said) = call(full.into());
    assert!(code == Some(1) && said.starts_with("osmia: Cannot write the answer: "), "{code:?} {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_publishes_broadcasts_moves_and_deletes() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let run = |arguments: &[&str]| {
        let output = osmia(&server, arguments);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let mut client = server.client().await;
    let waiting_key = definition_key(&deploy(&mut client, waiting("order", "paid", "work")).await).to_string();
    let other_key = definition_key(&deploy(&mut client, one_task("other", "rest")).await).to_string();

    let publish = ["publish", "paid", "--correlation-key", "bee", "--time-to-live", "5m", "--message-id", "once"];
    let (ok, out, err) = run(&[&publish[..], &["--variables", r#"{"amount":3}"#]].concat());
    assert!(ok && out.starts_with("message "), "{out}{err}");
    let (ok, _, err) = run(&publish);
    assert!(!ok && err.contains("Refused (ALREADY_EXISTS): Expected"), "{err}");
    assert!(run(&["create", "order", "--variables", r#"{"orderId":"bee"}"#]).0);
    let job = json(run(&["activate", "work"]).1.trim());
    assert_eq!(job["variables"], json(r#"{"orderId":"bee","amount":3}"#));
    let instance = text_of(&job["processInstanceKey"]);

    deploy(&mut client, started_by_signal("told", "go", "told")).await;
    let (ok, out, err) = run(&["broadcast", "go", "--variables", r#"{"a":1}"#]);
    assert!(ok && out.starts_with("signal "), "{out}{err}");
    assert_eq!(json(run(&["activate", "told"]).1.trim())["variables"], json(r#"{"a":1}"#));
    let (ok, _, err) = run(&["broadcast", " "]);
    assert!(!ok && err.contains("Expected the name of a signal"), "{err}");

    let rich = started_by_condition("rich", "=amount &gt; 100", "rich");
    let definition = definition_key(&deploy(&mut client, rich).await).to_string();
    let evaluate = ["evaluate-conditions", "--process-definition-key", &definition, "--variables"];
    let (ok, out, err) = run(&[&evaluate[..], &[r#"{"amount":200}"#]].concat());
    assert!(ok && out.starts_with("instance "), "{out}{err}");
    assert_eq!(json(run(&["activate", "rich"]).1.trim())["variables"], json(r#"{"amount":200}"#));
    let (ok, out, _) = run(&[&evaluate[..], &[r#"{"amount":2}"#, "--json"]].concat());
    assert!(ok && json(&out)["processInstances"] == json("[]"), "{out}");
    let (ok, _, err) = run(&["evaluate-conditions", "--process-definition-key", "0"]);
    assert!(!ok && err.contains("Expected the key of a process definition"), "{err}");

    let (ok, _, err) = run(&["migrate", &instance, "--to", &other_key, "--map", "task=task"]);
    assert!(ok, "{err}");
    let (ok, _, err) = run(&["modify", &instance, "--move", "task=task", "--variables", r#"{"moved":true}"#]);
    assert!(ok, "{err}");
    let job = json(run(&["activate", "rest"]).1.trim());
    assert_eq!(job["processInstanceKey"], instance);
    assert_eq!(job["variables"]["moved"], true);
    let (ok, _, err) = run(&["delete", &other_key]);
    assert!(!ok && err.contains("Refused (INVALID_STATE): Expected"), "{err}");
    let element = text_of(&job["elementInstanceKey"]);
    let (ok, _, err) = run(&["modify", &instance, "--terminate", &element]);
    assert!(ok, "{err}");
    assert!(!run(&["cancel", &instance]).0, "nothing is left of the instance");
    for key in [&waiting_key, &other_key] {
        let (ok, _, err) = run(&["delete", key]);
        assert!(ok, "{err}");
    }
    let (ok, _, err) = run(&["create", "order", "--start-before", "task", "--terminate-after", "task"]);
    assert!(!ok && err.contains("Refused (NOT_FOUND): Expected"), "{err}");
}

/// The end of the terminal in which a node was started stops it as orderly as Ctrl+C.
#[test]
fn each_signal_to_stop_ends_a_node_in_order() {
    for signal in ["-HUP", "-INT", "-TERM"] {
        let data = tempfile::tempdir().expect("writable");
        let mut server = Server::start(data.path(), &[]);
        assert!(server.is_running(), "before {signal}");
        server.signal(signal);
        assert_eq!(server.wait(), Some(0), "{signal}");
    }
}

#[test]
fn wrong_configuration_is_refused_by_name() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("osmia.yaml");
    std::fs::write(&file, "grpc-prot: 5\n").unwrap();
    let refusal = start_fails(data.path(), &["--config", file.to_str().unwrap()]);
    assert!(refusal.contains("unknown key 'grpc-prot'"), "{refusal}");
    let refusal = start_fails(data.path(), &["--partitions", "none"]);
    assert!(refusal.contains("--partitions is 'none'"), "{refusal}");
}

#[test]
fn a_variable_that_asks_for_protection_stops_the_start() {
    let data = tempfile::tempdir().unwrap();
    for name in
        ["CAMUNDA_SECURITY_AUTHORIZATIONS_ENABLED", "zeebe.broker.gateway.security.enabled", "SERVER_SSL_ENABLED"]
    {
        let output = command(data.path(), &[]).env(name, "true").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("{name} is 'true', which asks for protection")), "{said}");
        assert_eq!(data.path().read_dir().unwrap().count(), 0, "something was made");
    }
}

/// Else a start that comes to nothing would have brought the data to a newer format.
#[test]
fn a_port_for_clients_that_is_taken_stops_the_start_before_the_data_is_opened() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    for (taken, free, protocol) in [("--grpc-port", "--http-port", "gRPC"), ("--http-port", "--grpc-port", "REST")] {
        let data = tempfile::tempdir().unwrap();
        let data = data.path();
        let mut start = program();
        start.args(["start", taken, &port, free, "0", "--management-port", "0", "--data", data.to_str().unwrap()]);
        let output = start.output().unwrap();
        let refusal = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{refusal}");
        assert!(refusal.contains(&format!("Cannot listen for {protocol} clients on 127.0.0.1:{port}")), "{refusal}");
        assert_eq!(data.read_dir().unwrap().count(), 0, "something was made");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_exporter_writes_records() {
    let data = tempfile::tempdir().unwrap();
    let target = data.path().join("records.jsonl");
    let file = data.path().join("osmia.yaml");
    let yaml = format!("exporters:\n  debug:\n    type: json-lines\n    path: {}\n", target.display());
    std::fs::write(&file, yaml).unwrap();
    let server = Server::start(&data.path().join("data"), &["--config", file.to_str().unwrap()]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let created = client.create_process_instance(creation("order", "")).await.unwrap().into_inner();
    assert_eq!(server.terminate(), Some(0));
    let records: Vec<Value> = std::fs::read_to_string(&target).unwrap().lines().map(json).collect();
    let activated = records.iter().find(|record| {
        record["valueType"] == "PROCESS_INSTANCE"
            && record["intent"] == "ELEMENT_ACTIVATED"
            && record["value"]["bpmnElementType"] == "PROCESS"
    });
    assert_eq!(activated.expect("the record of the instance")["key"], created.process_instance_key);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_says_what_it_means() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    client.create_process_instance(creation("order", "")).await.unwrap();
    assert_eq!(activate(&mut client, poll("work", LONG_POLL)).await.len(), 1);
    let text = server.http("GET", "/metrics", "").1;
    let first_words = |prefix: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        lines.filter_map(|rest| rest.split_whitespace().next()).map(str::to_owned).collect()
    };
    let (types, helps) = (first_words("# TYPE "), first_words("# HELP "));
    let missing: Vec<_> = types.iter().filter(|name| !helps.contains(name)).collect();
    assert!(missing.is_empty(), "without a description: {missing:?}");
    assert!(types.len() > 50 && text.contains("osmia_build_info{version="), "{text}");
}

#[test]
fn an_exporter_that_fails_is_seen() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("osmia.yaml");
    std::fs::write(&file, "exporters:\n  lost:\n    type: json-lines\n    path: /no/such/directory/r.jsonl\n").unwrap();
    let server = Server::start(&data.path().join("data"), &["--config", file.to_str().unwrap()]);
    let exporter = || {
        let (code, body) = server.http("GET", "/actuator/health", "");
        assert_eq!(code, 200, "the node itself is well: {body}");
        json(&body)["components"]["exporters"]["details"]["lost"].clone()
    };
    eventually(|| exporter()["status"] == "DOWN");
    let message = exporter()["details"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("/no/such/directory"), "{message}");
    eventually(|| {
        let metrics = server.http("GET", "/actuator/prometheus", "").1;
        metrics.contains("osmia_exporter_failing{exporter=\"lost\",partition=\"1\"} 1")
            && metrics.contains("zeebe_exporter_state{")
    });
}

#[test]
fn exporting_is_paused_and_resumed_under_the_paths_of_the_reference() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("osmia.yaml");
    let records = data.path().join("records.jsonl");
    std::fs::write(&file, format!("exporters:\n  file:\n    type: json-lines\n    path: {}\n", records.display()))
        .unwrap();
    let flags = ["--config", file.to_str().unwrap()];
    let server = Server::start(&data.path().join("data"), &flags);
    let is_in = |server: &Server, state: &str| {
        let health = json(&server.http("GET", "/actuator/health", "").1);
        health["components"]["exporters"]["details"]["file"]["details"]["state"] == state
    };
    eventually(|| is_in(&server, "EXPORTING"));
    for (path, state, number) in
        [("pause?soft=true", "SOFT_PAUSED", 2), ("resume", "EXPORTING", 0), ("pause", "PAUSED", 1)]
    {
        assert_eq!(server.http("POST", &format!("/actuator/exporting/{path}"), ""), (204, String::new()));
        eventually(|| is_in(&server, state));
        let metric = format!("zeebe_exporter_state{{exporter=\"file\",partition=\"1\"}} {number}");
        eventually(|| server.http("GET", "/metrics", "").1.contains(&metric));
    }
    assert_eq!(server.http("POST", "/actuator/exporting/stop", "").0, 404);
    assert_eq!(server.http("POST", "/actuator/exporting/pause?soft=perhaps", "").0, 400);
    drop(server);
    let server = Server::start(&data.path().join("data"), &flags);
    eventually(|| is_in(&server, "PAUSED"));
    assert_eq!(server.http("POST", "/actuator/exporting/resume?soft=false", "").0, 204);
    eventually(|| is_in(&server, "EXPORTING"));
}

/// A node with an exporter that has done some work of each kind.
async fn after_some_work() -> (Server, tempfile::TempDir) {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("osmia.yaml");
    let records = data.path().join("records.jsonl");
    std::fs::write(&file, format!("exporters:\n  file:\n    type: json-lines\n    path: {}\n", records.display()))
        .unwrap();
    let flags = ["--config", file.to_str().unwrap(), "--checkpoint-interval", "100ms"];
    let server = Server::start(&data.path().join("data"), &flags);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    for _ in 0..2 {
        client.create_process_instance(creation("order", "")).await.unwrap();
    }
    let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
    let complete = |job_key| gateway_interface::CompleteJobRequest { job_key, ..Default::default() };
    client.complete_job(complete(jobs[0].key)).await.unwrap();
    client.complete_job(complete(jobs[0].key)).await.expect_err("it is complete already");
    let fail = gateway_interface::FailJobRequest { job_key: jobs[1].key, ..Default::default() };
    client.fail_job(fail).await.unwrap();
    let content = r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="graph" name="Graph" namespace="n">
        <decision id="answer" name="Answer"><literalExpression><text>42</text></literalExpression></decision></definitions>"#;
    deploy(&mut client, gateway_interface::Resource { name: "answer.dmn".into(), content: content.into() }).await;
    let evaluation = gateway_interface::EvaluateDecisionRequest { decision_id: "answer".into(), ..Default::default() };
    client.evaluate_decision(evaluation).await.unwrap();
    assert_eq!(Server::request(&server.rest, "GET", "/v2/topology", "").0, 200);
    (server, data)
}

/// After some work of each kind, a node publishes what the dashboard asks for, with the labels by which it is shown.
#[tokio::test(flavor = "multi_thread")]
async fn every_query_of_the_dashboard_finds_something() {
    let needed = dashboard::needed(include_str!("../../../packaging/grafana-dashboard.json"));
    assert!(needed.len() > 30, "{needed:?}");
    let (server, _data) = after_some_work().await;
    eventually(|| {
        let (_, text) = server.http("GET", "/actuator/prometheus", "");
        let missing: Vec<_> = needed.iter().filter(|needed| !needed.is_in(&text)).collect();
        println!("{missing:?}");
        missing.is_empty()
    });
}

/// What the dashboards of the reference read is published, or the page on conformance says why it is not.
#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_the_reference_are_published_or_explained() {
    let page = include_str!("../../../docs/conformance.md");
    let section = page.split("\n## ").find(|section| section.starts_with("Metrics\n")).expect("a section on metrics");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    let explained: Vec<&str> =
        rows.flat_map(|(names, _)| names.split(['`', ',', ' '])).filter(|name| !name.is_empty()).collect();
    let (server, _data) = after_some_work().await;
    eventually(|| {
        let text = server.http("GET", "/actuator/prometheus", "").1;
        let is_published = |name: &str| text.contains(&format!("# TYPE {name} "));
        let wrongly_explained: Vec<_> = explained.iter().filter(|name| is_published(name)).collect();
        assert!(wrongly_explained.is_empty(), "published all the same: {wrongly_explained:?}");
        let mut missing: Vec<_> = REFERENCE_METRICS.lines().collect();
        missing.retain(|name| !is_published(name) && !explained.contains(name));
        let counted = [
            "zeebe_job_life_time_seconds_count{partition=\"1\"} 1",
            "zeebe_job_activation_time_seconds_count{partition=\"1\"} 2",
            "zeebe_process_instance_execution_time_seconds_count{partition=\"1\"} 1",
            "zeebe_execution_latency_current_cached_instances{partition=\"1\",type=\"processInstances\"} 1",
            "zeebe_evaluated_dmn_elements_total{partition=\"1\",action=\"evaluated_successfully\"} 1",
            "zeebe_broker_health_nodes{partition=\"1\",id=\"Partition-1\",path=\"Broker-0/Partition-1\"} 1",
            "zeebe_stream_processor_state{partition=\"1\"} 2",
            "zeebe_flow_control_write_rate_limit{partition=\"1\"} -1",
            "zeebe_leader_transition_latency_seconds_count{partition=\"1\"} 1",
        ];
        missing.extend(counted.iter().filter(|line| !text.lines().any(|other| other == **line)));
        println!("{missing:?}");
        missing.is_empty()
    });
    let unknown: Vec<_> =
        explained.iter().filter(|name| !REFERENCE_METRICS.lines().any(|other| other == **name)).collect();
    assert!(unknown.is_empty(), "the reference has no such metrics: {unknown:?}");
}

#[test]
fn connections_are_encrypted_when_there_is_a_certificate() {
    let pem = |name: &str| format!("{}/tests/tls/{name}.pem", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = (pem("certificate"), pem("key"));
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--tls-certificate", &certificate, "--tls-key", &key]);
    let port = server.grpc.rsplit(':').next().unwrap();
    let topology = |address: &str| {
        program()
            .args(["topology", "--ca-certificate", &certificate, "--timeout", "300s", "--address", address])
            .output()
            .unwrap()
    };
    let output = topology(&format!("https://localhost:{port}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!topology(&format!("http://localhost:{port}")).status.success(), "it talks without encryption");

    let refusal =
        start_fails(&data.path().join("other"), &["--tls-certificate", &certificate, "--tls-key", &certificate]);
    assert!(refusal.contains("TLS file") && refusal.contains("must belong to the certificate"), "{refusal}");
}

#[test]
fn a_certificate_that_clients_do_not_take_is_explained_for_both_protocols() {
    let pem = |name: &str| format!("{}/tests/tls/{name}.pem", env!("CARGO_MANIFEST_DIR"));
    // Made as `openssl req -x509` does by default: it says that it is an authority's own.
    let (authority, key, other) = (pem("authority"), pem("key"), pem("certificate"));
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--tls-certificate", &authority, "--tls-key", &key]);
    let local = |address: &str| format!("https://localhost:{}", address.rsplit(':').next().unwrap());
    let (grpc, rest) = (local(&server.grpc), local(&server.rest));
    let refusal = |arguments: &[&str]| {
        let output = program().args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for call in [["topology", "--address", &grpc], ["instances", "--rest-address", &rest]] {
        let trusted = refusal(&[&call[..], &["--ca-certificate", &authority]].concat());
        assert!(trusted.contains("-addext basicConstraints=critical,CA:FALSE"), "{trusted}");
        let strange = refusal(&[&call[..], &["--ca-certificate", &other]].concat());
        assert!(strange.contains("is an authority's own") || strange.contains("Name the certificate"), "{strange}");
    }
}
