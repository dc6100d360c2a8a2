//! A read model whose file or records were lost: what lives is found again as it was, and what is gone is said.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gateway_interface::*;
use serde_json::{Value, json};
use support::*;

/// Everything at which an instance can wait, side by side.
fn order() -> Resource {
    let branch = |id: &str, element: &str| {
        format!("{element}<b:sequenceFlow id=\"to-{id}\" sourceRef=\"fork\" targetRef=\"{id}\"/>")
    };
    let service = |id: &str| {
        let task = format!("<b:extensionElements><z:taskDefinition type=\"{id}\"/></b:extensionElements>");
        branch(id, &format!("<b:serviceTask id=\"{id}\">{task}</b:serviceTask>"))
    };
    let services: String = ["open", "taken", "retried", "stuck"].into_iter().map(service).collect();
    let user = branch(
        "approve",
        "<b:userTask id=\"approve\"><b:extensionElements><z:userTask/><z:assignmentDefinition assignee=\"ann\" candidateGroups=\"g1,g2\"/></b:extensionElements></b:userTask>",
    );
    let catch = branch(
        "paid",
        "<b:intermediateCatchEvent id=\"paid\"><b:messageEventDefinition messageRef=\"m\"/></b:intermediateCatchEvent>",
    );
    let timer = branch(
        "later",
        "<b:intermediateCatchEvent id=\"later\"><b:timerEventDefinition><b:timeDuration>P30D</b:timeDuration></b:timerEventDefinition></b:intermediateCatchEvent>",
    );
    let signal = branch(
        "told",
        "<b:intermediateCatchEvent id=\"told\"><b:signalEventDefinition signalRef=\"s\"/></b:intermediateCatchEvent>",
    );
    let call = branch(
        "call",
        "<b:callActivity id=\"call\"><b:extensionElements><z:calledElement processId=\"called\"/></b:extensionElements></b:callActivity>",
    );
    let content = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><b:definitions xmlns:b=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" \
         xmlns:z=\"http://camunda.org/schema/zeebe/1.0\" targetNamespace=\"t\" id=\"d\"><b:signal id=\"s\" name=\"go\"/><b:message id=\"m\" name=\"payment\">\
         <b:extensionElements><z:subscription correlationKey=\"=id\"/></b:extensionElements></b:message>\
         <b:process id=\"order\" name=\"An order\" isExecutable=\"true\"><b:startEvent id=\"start\"/>\
         <b:sequenceFlow id=\"f\" sourceRef=\"start\" targetRef=\"fork\"/><b:parallelGateway id=\"fork\"/>\
         {services}{user}{catch}{timer}{signal}{call}</b:process></b:definitions>"
    );
    Resource { name: "order.bpmn".to_owned(), content: content.into() }
}

fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let (status, text) = Server::request(&server.rest, method, path, &body.to_string());
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// What searches find, by kind and key; and of each element what lives in it.
type Found = BTreeMap<String, Value>;

const KINDS: [(&str, &str, &[&str]); 11] = [
    ("process-definitions", "processDefinitionKey", &[]),
    ("process-instances", "processInstanceKey", &["endDate"]),
    ("element-instances", "elementInstanceKey", &["endDate"]),
    ("variables", "variableKey", &[]),
    ("jobs", "jobKey", &["endTime"]),
    ("incidents", "incidentKey", &[]),
    ("user-tasks", "userTaskKey", &["completionDate"]),
    ("message-subscriptions", "messageSubscriptionKey", &[]),
    ("decision-definitions", "decisionDefinitionKey", &[]),
    ("resources", "resourceKey", &[]),
    // Each element waits for one thing here.
    ("element-instances/wait-states", "elementInstanceKey", &[]),
];

/// What lives, as searches show it.
fn living(server: &Server) -> Found {
    let mut found = Found::new();
    let items = |kind: &str| {
        let all = ask(server, "POST", &format!("/v2/{kind}/search"), &json!({"page": {"limit": 1_000}}));
        all["items"].as_array().expect("items").clone()
    };
    let instances: BTreeSet<String> = items("process-instances")
        .iter()
        .filter(|instance| instance["state"] == "ACTIVE")
        .map(|instance| instance["processInstanceKey"].as_str().expect("a key").to_owned())
        .collect();
    for (kind, key, ends) in KINDS {
        for item in items(kind) {
            let of = item["processInstanceKey"].as_str();
            // A subscription that has correlated is history.
            let is_open = item["messageSubscriptionState"].as_str().is_none_or(|state| state == "CREATED");
            let is_living =
                is_open && of.is_none_or(|of| instances.contains(of)) && ends.iter().all(|end| item[end].is_null());
            if is_living {
                found.insert(format!("{kind} {}", item[key].as_str().expect(key)), item);
            }
        }
    }
    for definition in items("process-definitions") {
        let key = definition["processDefinitionKey"].as_str().expect("a key");
        let path = format!("/v2/process-definitions/{key}/variable-names/search");
        found.insert(format!("variable-names {key}"), ask(server, "POST", &path, &json!({}))["items"].clone());
        let path = format!("/v2/process-definitions/{key}/statistics/element-instances");
        for counted in ask(server, "POST", &path, &json!({}))["items"].as_array().expect("items") {
            if counted["active"] != 0 || counted["incidents"] != 0 {
                let name = format!("counted {key} {}", counted["elementId"]);
                found.insert(name, json!([counted["active"], counted["incidents"]]));
            }
        }
    }
    found
}

fn differences(before: &Found, after: &Found) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differs.map(|key| format!("{key}: {:?} and {:?}", before.get(key), after.get(key))).collect()
}

/// Waits until searches show the same again.
fn assert_shows_again(server: &Server, before: &Found) {
    let begin = Instant::now();
    loop {
        let different = differences(before, &living(server));
        if different.is_empty() {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{different:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn create(client: &mut gateway_client::GatewayClient<tonic::transport::Channel>, number: usize) {
    let variables = json!({"id": format!("o-{number}"), "amount": number, "text": "ä\" \\"}).to_string();
    client.create_process_instance(creation("order", &variables)).await.expect("it begins");
}

/// Instances that wait at everything, each in another way.
async fn prepare(server: &Server) {
    let mut client = server.client().await;
    deploy(&mut client, one_task("called", "inner")).await;
    deploy(&mut client, order()).await;
    deploy(&mut client, Resource { name: "robot.rpa".to_owned(), content: br#"{"id":"robot"}"#.to_vec().into() }).await;
    deploy(&mut client, one_task("short", "short")).await;
    for number in 1..=5 {
        create(&mut client, number).await;
        client.create_process_instance(creation("short", "{}")).await.expect("it begins");
    }
    work_on(&mut client).await;
    for job in activate(&mut client, poll("short", LONG_POLL)).await {
        client.complete_job(completion(job.key, "")).await.expect("it was activated");
    }
}

async fn work_on(client: &mut gateway_client::GatewayClient<tonic::transport::Channel>) {
    // However slow the machine is, nobody gives them back meanwhile.
    let for_a_day = ActivateJobsRequest { timeout: 24 * 3_600_000, ..poll("taken", LONG_POLL) };
    activate(client, for_a_day).await;
    for (job_type, retries) in [("retried", 2), ("stuck", 0)] {
        for job in activate(client, poll(job_type, LONG_POLL)).await {
            let error_message = format!("{job_type} failed");
            let failure = FailJobRequest { job_key: job.key, retries, error_message, ..FailJobRequest::default() };
            client.fail_job(failure).await.expect("it was activated");
        }
    }
}

/// Takes away what matches below a directory.
fn files(directory: &Path, matches: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if matches(&path) {
            found.push(path.clone());
        } else if path.is_dir() {
            files(&path, matches, found);
        }
    }
}

fn found(data: &Path, matches: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(data, &matches, &mut all);
    assert!(!all.is_empty(), "there is something to take away");
    all
}

fn lose_records(data: &Path) {
    for directory in found(data, |path| path.ends_with("records")) {
        std::fs::remove_dir_all(directory).expect("it can be taken away");
    }
}

fn remarks(server: &Server) -> Vec<String> {
    let (_, health) = server.http("GET", "/actuator/health", "");
    let health: Value = serde_json::from_str(&health).expect("JSON");
    let partitions = &health["components"]["exporters"]["details"]["read-model"]["details"]["partitions"];
    let each = partitions.as_object().into_iter().flat_map(|partitions| partitions.values());
    each.filter_map(|partition| partition["remark"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lives_is_found_again_when_a_file_and_its_records_are_lost() {
    let data = tempfile::tempdir().unwrap();
    let flags = ["--partitions", "2"];
    let server = Server::start(data.path(), &flags);
    prepare(&server).await;
    assert_eq!(remarks(&server), Vec::<String>::new());
    assert_eq!(server.terminate(), Some(0));

    // What the last checkpoint does not hold comes from the records behind it.
    let server = Server::start(data.path(), &flags);
    let mut client = server.client().await;
    for number in 6..=8 {
        create(&mut client, number).await;
    }
    work_on(&mut client).await;
    client.publish_message(message("payment", "o-1", 0)).await.expect("it is taken");
    let count = |found: &Found, kind: &str| found.keys().filter(|key| key.starts_with(kind)).count();
    // The instance that waited may live in the other partition, and learns of the message later.
    let begin = Instant::now();
    let before = loop {
        let found = living(&server);
        let (subscriptions, elements) = (count(&found, "message-subscriptions"), count(&found, "element-instances "));
        if (subscriptions, elements) == (7, 8 * 10 - 1) {
            break found;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{subscriptions} subscriptions, {elements} elements");
        std::thread::sleep(Duration::from_millis(20));
    };
    for (kind, expected) in [
        ("process-instances", 16),
        ("resources", 1),
        ("variable-names", 3),
        ("jobs", 8 * 5),
        ("incidents", 8),
        ("user-tasks", 8),
        ("message-subscriptions", 7),
        ("variables", 8 * 3 * 2),
        ("element-instances/wait-states", 8 * 9 - 1),
    ] {
        assert_eq!(count(&before, kind), expected, "{kind}: {:?}", before.keys().collect::<Vec<_>>());
    }
    let order = before.iter().find(|(_, of)| of["processDefinitionId"] == "order").expect("its definition").1;
    let names = &before[&format!("variable-names {}", order["processDefinitionKey"].as_str().expect("a key"))];
    assert_eq!(*names, json!([{"name": "amount"}, {"name": "id"}, {"name": "text"}]));
    // Within a second or two the partition knows that the polled jobs are delivered; otherwise it gives them to others.
    std::thread::sleep(Duration::from_secs(4));
    server.kill();

    let sqlite = |path: &Path| path.extension().is_some_and(|extension| extension == "sqlite");
    std::fs::remove_dir_all(data.path().join("read-model")).expect("it is there");
    lose_records(data.path());
    let server = Server::start(data.path(), &flags);
    assert_shows_again(&server, &before);
    let said = remarks(&server);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|said| said.contains("searches lack what ended before")), "{said:?}");
    let ended = ask(&server, "POST", "/v2/process-instances/search", &json!({"filter": {"state": "COMPLETED"}}));
    assert_eq!(ended["page"]["totalItems"], 0, "what ended is gone");
    server.kill();

    // The same for damage, on top of a file that was made anew; and the remark is there after each start.
    for file in found(data.path(), sqlite) {
        let mut bytes = std::fs::read(&file).expect("a file");
        bytes.iter_mut().take(64).for_each(|byte| *byte = !*byte);
        std::fs::write(&file, bytes).expect("it is writable");
    }
    lose_records(data.path());
    let server = Server::start(data.path(), &flags);
    assert_shows_again(&server, &before);
    assert_eq!(server.terminate(), Some(0));
    let server = Server::start(data.path(), &flags);
    assert_shows_again(&server, &before);
    let begin = Instant::now();
    while remarks(&server).len() != 2 {
        assert!(begin.elapsed() < Duration::from_secs(120), "also after the next start: {:?}", remarks(&server));
        std::thread::sleep(Duration::from_millis(50));
    }

    // And everything goes on.
    let mut client = server.client().await;
    for job_type in ["open", "inner"] {
        let jobs = activate(&mut client, poll(job_type, LONG_POLL)).await;
        for job in &jobs {
            client.complete_job(completion(job.key, "")).await.expect("it was activated");
        }
    }
    let after = living(&server);
    assert_eq!((count(&after, "process-instances"), count(&after, "jobs")), (8, 8 * 3));
    let counted = |found: &Found| -> i64 {
        let active = found.iter().filter(|(key, _)| key.starts_with("counted")).map(|(_, value)| value[0].as_i64());
        active.flatten().sum()
    };
    assert_eq!(
        counted(&before) - counted(&after),
        8 * 3,
        "a task, the task of a called process and the call have ended"
    );
    server.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_missed_is_made_good_and_what_ended_before_stays() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    prepare(&server).await;
    // Searches see it, so it is written.
    assert_eq!(living(&server).keys().filter(|key| key.starts_with("process-instances")).count(), 10);
    assert_eq!(server.terminate(), Some(0));

    // While there is no read model, an instance ends, another one begins, and records of that are not kept.
    let server = Server::start(data.path(), &["--read-model", "none"]);
    let mut client = server.client().await;
    for job in activate(&mut client, poll("inner", LONG_POLL)).await.into_iter().take(1) {
        client.complete_job(completion(job.key, "")).await.expect("it was activated");
    }
    create(&mut client, 6).await;
    drop(client);
    assert_eq!(server.terminate(), Some(0));
    // A record more, so that what is missing lies between two that are there.
    let server = Server::start(data.path(), &[]);
    let begin = Instant::now();
    loop {
        let found = living(&server);
        let count = |kind: &str| found.keys().filter(|key| key.starts_with(kind)).count();
        if (count("process-instances"), count("user-tasks"), count("jobs")) == (11, 6, 6 * 5 - 1) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", found.keys().collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(remarks(&server).len(), 1);
    let ended = ask(&server, "POST", "/v2/process-instances/search", &json!({"filter": {"state": "COMPLETED"}}));
    assert_eq!(ended["page"]["totalItems"], 5, "what ended before stays");
    server.kill();
}
