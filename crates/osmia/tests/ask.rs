//! Commands that ask a real node over REST.

mod support;

use std::process::{Command, Output};

use serde_json::Value;
use support::*;

fn ask(address: &str, arguments: &[&str]) -> Output {
    Command::new(OSMIA).args(arguments).args(["--rest-address", address]).output().expect("the binary starts")
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
        let mut command = Command::new(OSMIA);
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
