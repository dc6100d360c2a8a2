//! Commands that ask a real node over REST.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};

use gateway_interface::Resource;
use serde_json::Value;
use support::*;

fn ask(address: &str, arguments: &[&str]) -> Output {
    program().args(arguments).args(["--rest-address", address]).output().expect("the binary starts")
}

/// What is printed, and what is noted beside it.
fn told(server: &Server, arguments: &[&str]) -> (String, String) {
    let output = ask(&server.rest, arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (printed, noted) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{arguments:?}: {noted}");
    (printed, noted)
}

fn refused(output: Output) -> String {
    assert!(!output.status.success(), "it should have failed");
    String::from_utf8(output.stderr).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed_by_who_is_to_do_them() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    let model = include_str!("../../../clients/shared/user-task.bpmn").replace("PROCESS_ID", "ask");
    // What it names is deployed with it, or the task waits with an incident.
    let directory = tempfile::tempdir().unwrap();
    let form = include_str!("../../../clients/shared/user-task.form").replace("PROCESS_ID", "ask");
    std::fs::write(directory.path().join("ask.bpmn"), model).unwrap();
    std::fs::write(directory.path().join("ask.form"), form).unwrap();
    assert!(osmia(&server, &["deploy", &directory.path().display().to_string()]).status.success());
    for person in ["ann", "bob"] {
        client.create_process_instance(creation("ask", &format!("{{\"person\":\"{person}\"}}"))).await.unwrap();
    }
    let (all, noted) = told(&server, &["tasks"]);
    assert_eq!((all.lines().count(), noted.trim()), (3, "2 of 2. This is the end."), "{all}");
    let (of_ann, _) = told(&server, &["tasks", "--assignee", "ann", "--group", "sales"]);
    assert!(of_ann.lines().count() == 2 && of_ann.contains("Decide") && !of_ann.contains("bob"), "{of_ann}");
    for arguments in [["tasks", "--unassigned"].as_slice(), &["tasks", "--state", "completed"]] {
        let (none, noted) = told(&server, arguments);
        assert_eq!((none.lines().count(), noted.trim()), (1, "These are all."), "{none}");
    }
}

fn run(server: &Server, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = ask(&server.rest, &[&["run", "--wait", "300ms"], arguments].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A shared model in a file, with its process id.
fn model(directory: &std::path::Path, name: &str) -> String {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/shared");
    let text = std::fs::read_to_string(format!("{shared}/{name}")).expect("a model of the clients");
    let path = directory.join(name);
    let id = name.split('.').next().expect("a name");
    std::fs::write(&path, text.replace("PROCESS_ID", id)).expect("the model is written");
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_as_its_instance_does_or_tells_what_it_waits_for() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let models = tempfile::tempdir().unwrap();
    let file = |name: &str| model(models.path(), name);
    let (code, tree, noted) = run(&server, &[&file("straight-through.bpmn"), "--variables", r#"{"a":1}"#]);
    assert_eq!((code, noted.lines().count()), (Some(0), 1), "{tree}{noted}");
    assert!(tree.contains("of straight-through version 1: completed at"), "{tree}");
    assert!(tree.lines().last().unwrap().starts_with("  end (end event) "), "{tree}");

    // Called and inside of a loop: what waits is told wherever it is.
    let loops = [&file("multi-instance.bpmn"), "--variables", r#"{"items":[1,2]}"#];
    let (code, tree, noted) = run(&server, &loops);
    assert_eq!(code, Some(5), "{noted}");
    assert_eq!(tree.matches("\n      waits for job ").count(), 2, "{tree}");
    let (code, tree, noted) =
        run(&server, &[&file("call-activity.bpmn"), "--variables", r#"{"called":"multi-instance"}"#]);
    assert_eq!(code, Some(4), "the called process lacks its items: {noted}");
    assert!(tree.contains("\n    process instance ") && noted.contains("has an incident."), "{tree}{noted}");

    let both = [&file("user-task.bpmn"), &file("user-task.form"), "--variables", r#"{"person":"ann"}"#];
    let (code, _, noted) = run(&server, &[&both[..], &["--json"]].concat());
    assert_eq!((code, noted.matches("which ann is to do").count()), (Some(5), 1), "{noted}");

    let (code, tree, _) = run(&server, &[&file("decision.dmn")]);
    assert_eq!((code, &*tree), (Some(1), ""));
    for (arguments, words) in [
        (vec![both[0], &file("one-task.bpmn"), both[1]], "several processes: user-task, one-task. Say with --process"),
        (vec![&*file("one-task.bpmn"), "--process", "other"], "no process 'other'. It has: one-task."),
        (vec![&*file("one-task.bpmn"), "--variables", "[1]"], "--variables is no JSON object"),
        (vec![&*file("broken.bpmn")], "broken.bpmn"),
        (vec!["/no/such/file.bpmn"], "Cannot read /no/such/file.bpmn"),
    ] {
        let (code, _, noted) = run(&server, &arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {noted}");
        assert!(noted.contains(words), "{arguments:?}: {noted}");
    }
    let (_, json, _) = run(&server, &[&*file("one-task.bpmn"), "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["outcome"], &json["processInstance"]["elements"][1]["elementId"]),
        (&"waiting".into(), &"work".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_in_order_and_can_be_watched_to_its_end() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let models = tempfile::tempdir().unwrap();
    let (_, tree, _) = run(&server, &[&model(models.path(), "one-task.bpmn"), "--variables", r#"{"a":1}"#, "--json"]);
    let tree: Value = serde_json::from_str(&tree).unwrap();
    let key = tree["processInstance"]["processInstanceKey"].as_str().unwrap();
    let (jobs, _) = told(&server, &["jobs", "--instance", key, "--json"]);
    let jobs: Value = serde_json::from_str(&jobs).unwrap();
    let job = jobs["items"][0]["jobKey"].as_str().unwrap();
    assert!(osmia(&server, &["fail", job, "--retries", "0", "--message", "no paper"]).status.success());

    let mut watching = program()
        .args(["history", key, "--watch", "--rest-address", &server.rest])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // By the key of the instance the incident is resolved, and the job has another try.
    let both = ["resolve", key, "--rest-address", &server.rest];
    let resolved = osmia(&server, &both);
    assert!(String::from_utf8_lossy(&resolved.stdout).contains("the incident of process instance"), "{resolved:?}");
    let none = refused(osmia(&server, &both));
    assert!(none.contains("has no active incident"), "{none}");
    let unknown = refused(osmia(&server, &["resolve", "5", "--rest-address", &server.rest]));
    assert!(unknown.contains("incident with key '5'") && unknown.contains("no process instance"), "{unknown}");
    let elsewhere = refused(osmia(&server, &["resolve", key]));
    assert!(elsewhere.contains("Give --rest-address"), "{elsewhere}");
    assert!(osmia(&server, &["complete", job]).status.success());
    let mut watched = String::new();
    watching.stdout.take().expect("it is read").read_to_string(&mut watched).expect("text");
    assert!(watching.wait().expect("it ends").success());
    assert!(
        watched.lines().last().unwrap().contains(&format!("process instance {key} of one-task is completed")),
        "{watched}"
    );

    let (history, _) = told(&server, &["history", key]);
    let happened: Vec<&str> =
        history.lines().map(|line| line.split_once("  ").map_or(line, |(_, said)| said)).collect();
    let words = [
        "process instance ",
        "start (start event) ",
        "start (start event) ",
        "work (service task) ",
        "job ",
        "incident ",
        "job ",
        "work (service task) ",
        "end (end event) ",
        "end (end event) ",
        "process instance ",
        "variable a of ",
    ];
    assert_eq!(happened.len(), words.len(), "{history}");
    for (said, words) in happened.iter().zip(words) {
        assert!(said.starts_with(words), "'{said}' instead of '{words}': {history}");
    }
    assert!(happened[5].contains("which is resolved now") && happened[5].contains("no paper"), "{history}");
    let (json, _) = told(&server, &["history", key, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["events"][0]["event"], &json["variables"][0]["value"]),
        (&"processInstanceStarted".into(), &"1".into())
    );
    let task = tree["processInstance"]["elements"][1]["elementInstanceKey"].as_str().unwrap();
    let element = refused(ask(&server.rest, &["history", task]));
    assert!(element.contains(&format!("is the key of an element instance in process instance {key}")), "{element}");
    let nothing = refused(ask(&server.rest, &["history", "2251799813685999"]));
    assert!(nothing.contains("has the key 2251799813685999"), "{nothing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_list_is_printed_again_when_it_changes() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut watching = program()
        .args(["definitions", "--watch", "--json", "--rest-address", &server.rest])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("it is read")).lines();
    let mut total = || {
        let line = lines.next().expect("a list").expect("text");
        serde_json::from_str::<Value>(&line).expect("JSON")["page"]["totalItems"].clone()
    };
    assert_eq!(total(), 0);
    deploy(&mut server.client().await, one_task("order", "work")).await;
    assert_eq!(total(), 1);
    watching.kill().expect("it runs");
    watching.wait().expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_created_with_a_business_id_and_listed_by_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    client.create_process_instance(creation("order", "")).await.unwrap();
    let created = osmia(&server, &["create", "order", "--business-id", "b 1", "--json"]);
    let created: Value = serde_json::from_slice(&created.stdout).expect("JSON");
    assert_eq!(created["businessId"], "b 1");
    let key = created["processInstanceKey"].as_str().expect("a key");
    let (found, noted) = told(&server, &["instances", "--business-id", "b 1"]);
    assert_eq!(noted.trim(), "1 of 1. This is the end.", "{found}");
    let (head, row) = found.split_once('\n').unwrap();
    assert!(head.contains("BUSINESS ID") && row.contains(key) && row.contains("b 1"), "{found}");
    let (tree, _) = told(&server, &["describe", key]);
    assert!(tree.contains("of order version 1 with business id b 1: active since"), "{tree}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_an_end_and_an_incident_says_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let mut created = Vec::new();
    for _ in 0..3 {
        let answer = client.create_process_instance(creation("order", "{\"amount\":7}")).await.unwrap().into_inner();
        created.push(answer.process_instance_key.to_string());
    }

    let (first, noted) = told(&server, &["instances", "--process", "order", "--state", "active", "--limit", "2"]);
    let (head, rows) = first.split_once('\n').unwrap();
    assert!(head.starts_with("KEY"), "{first}");
    assert_eq!(rows.lines().count(), 2, "{first}");
    let cursor = noted.trim().strip_prefix("2 of 3. The next ones: --after ").expect("there is one more").to_owned();
    let (last, noted) = told(&server, &["instances", "--process", "order", "--after", &cursor]);
    assert_eq!((last.lines().count(), noted.trim()), (2, "1 of 3. This is the end."), "{last}");
    for key in &created {
        assert!(first.contains(key.as_str()) || last.contains(key.as_str()), "{key} is in no part");
    }
    let (none, noted) = told(&server, &["instances", "--variable", "amount=8"]);
    assert_eq!((none.lines().count(), noted.trim()), (1, "These are all."));
    let (json, noted) = told(&server, &["variables", "--instance", &created[0], "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["items"][0]["name"].as_str(), noted.as_str()), (Some("amount"), ""));

    let (jobs, _) = told(&server, &["jobs", "--instance", &created[0], "--json"]);
    let jobs: Value = serde_json::from_str(&jobs).unwrap();
    let job = jobs["items"][0]["jobKey"].as_str().unwrap();
    assert!(osmia(&server, &["fail", job, "--retries", "0", "--message", "no paper"]).status.success());
    let (incidents, _) = told(&server, &["incidents", "--instance", &created[0]]);
    assert!(incidents.contains("JOB_NO_RETRIES") && incidents.contains("no paper"), "{incidents}");
    for key in [&created[0], job] {
        let (described, _) = told(&server, &["describe", key]);
        assert!(described.contains("no paper"), "{described}");
        assert!(described.contains(&format!("osmia update-retries {job} 1")), "{described}");
    }
    let (definition, _) = told(&server, &["definitions", "--latest", "--json"]);
    let definition: Value = serde_json::from_str(&definition).unwrap();
    let key = definition["items"][0]["processDefinitionKey"].as_str().unwrap();
    assert!(told(&server, &["describe", key]).0.starts_with(&format!("process definition {key}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_at_no_element_is_described_too() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    let model = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
        xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="x">
        <process id="p" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="split"/>
        <parallelGateway id="split"/><sequenceFlow id="fa" sourceRef="split" targetRef="a"/><manualTask id="a"/>
        <sequenceFlow id="fb" sourceRef="split" targetRef="b"/><serviceTask id="b"><extensionElements>
        <zeebe:taskDefinition type="b"/></extensionElements></serviceTask>
        <sequenceFlow id="ga" sourceRef="a" targetRef="join"/><sequenceFlow id="gb" sourceRef="b" targetRef="join"/>
        <parallelGateway id="join"/></process>
        <process id="heard" isExecutable="true"><extensionElements><zeebe:executionListeners>
        <zeebe:executionListener eventType="end" type="hear"/></zeebe:executionListeners></extensionElements>
        <startEvent id="begin"/></process></definitions>"#;
    deploy(&mut client, Resource { name: "p.bpmn".into(), content: model.into() }).await;
    for (process, wait) in [
        ("p", "a token waits at the join join: it came by ga, and none came by gb"),
        ("heard", "of type hear, which has 3 retries"),
    ] {
        let created = client.create_process_instance(creation(process, "{}")).await.unwrap().into_inner();
        let (described, _) = told(&server, &["describe", &created.process_instance_key.to_string()]);
        assert!(described.contains(wait), "{described}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_and_nodes_that_cannot_answer_are_told() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let told = |arguments: &[&str]| refused(ask(&server.rest, arguments));
    let unknown = told(&["describe", "2251799813685999"]);
    assert!(unknown.contains("has the key 2251799813685999"), "{unknown}");
    let field = told(&["instances", "--sort", "colour"]);
    assert!(field.contains("Unknown sortBy: colour."), "{field}");
    let order = told(&["instances", "--sort", "state:up"]);
    assert!(order.contains("':up'"), "{order}");
    let filter = told(&["jobs", "--filter", "[1]"]);
    assert!(filter.contains("--filter is no JSON object"), "{filter}");
    let management = refused(ask(&server.management, &["instances"]));
    assert!(management.contains("Is this the REST port"), "{management}");
    let grpc = refused(osmia(&server, &["instances"]));
    assert!(grpc.contains("--rest-address"), "{grpc}");
    let profiles = data.path().join("profiles.yaml");
    std::fs::write(&profiles, format!("here:\n  rest-address: {}\n", server.rest)).unwrap();
    let named = |name: &str| {
        let mut command = program();
        command.args(["definitions", "--profile", name]).env("OSMIA_PROFILES", &profiles).output().expect("it starts")
    };
    assert!(named("here").status.success());
    assert!(refused(named("there")).contains("There is: here."));
    let address = server.rest.clone();
    assert_eq!(server.terminate(), Some(0));
    let gone = refused(ask(&address, &["instances"]));
    assert!(gone.contains("Cannot reach") && gone.contains("Does the node run"), "{gone}");

    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--read-model", "none"]);
    let without = refused(ask(&server.rest, &["incidents"]));
    assert!(without.contains("has no read model"), "{without}");
}
