//! Models in the shapes in which modelers write them, deployed to the real binary and driven to their ends.
//!
//! Beside `NAME.bpmn` may stand `NAME.json`, which says what people and workers do in its instances, and what comes out;
//! beside `NAME.dmn` one with inputs and outputs of its decisions.

mod plan;
#[path = "../support/mod.rs"]
mod support;
mod worker;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gateway_interface::{DeployResourceRequest, Resource};
use serde_json::{Value, json};

use plan::Plan;
use support::{Server, osmia};
use worker::Worker;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The files of a kind, in the order of their names.
fn files(extension: &str) -> Vec<PathBuf> {
    let folders = ["processes", "decisions", "forms"].map(|folder| directory().join(folder));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("the models are there"));
    let paths = entries.map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

/// What stands beside a model.
fn beside(model: &Path) -> Value {
    let path = model.with_extension("json");
    std::fs::read(&path).map_or(Value::Null, |text| {
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    })
}

/// Deploys each model by itself, what is referred to first.
async fn deploy_all(server: &Server) {
    let mut client = server.client().await;
    for path in ["form", "dmn", "bpmn"].iter().flat_map(|extension| files(extension)) {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let resource = Resource { name, content: std::fs::read(&path).expect("a file").into() };
        let request = DeployResourceRequest { resources: vec![resource], tenant_id: String::new() };
        if let Err(status) = client.deploy_resource(request).await {
            panic!("{}: {}", path.display(), status.message());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_process_is_driven_to_its_end() {
    let data = tempfile::tempdir().expect("a directory");
    let server = Server::start(data.path(), &["--clock-control"]);
    let mut worker = Worker::new(&server);
    deploy_all(&server).await;
    let plans: Vec<Plan> = files("bpmn").iter().map(|path| Plan::read(path, &beside(path))).collect();
    let count = plans.len();
    worker.work(plans);
    assert!(count >= 100, "there are {count} processes");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_decision_gives_what_its_author_meant() {
    let data = tempfile::tempdir().expect("a directory");
    let server = Server::start(data.path(), &["--clock-control"]);
    worker::pin(&server, worker::BEGIN);
    deploy_all(&server).await;
    let mut evaluated = BTreeSet::new();
    let mut wrong = Vec::new();
    for path in files("dmn") {
        let cases = beside(&path);
        for case in cases.as_array().unwrap_or_else(|| panic!("{} has no cases", path.display())) {
            let decision = case["decision"].as_str().expect("the id of a decision");
            let body = json!({"decisionDefinitionId": decision, "variables": case["variables"]});
            let (code, answer) = worker::ask(&server, "/v2/decision-definitions/evaluation", &body);
            let output = answer["output"].as_str().map(|text| serde_json::from_str(text).expect("an output is JSON"));
            if !output.is_some_and(|output| worker::is_same(&output, &case["output"])) {
                wrong.push(format!("{}: {case}\n  gave {code} {answer}", path.display()));
            }
            evaluated.insert(decision.to_owned());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(evaluated.len() >= 20, "only {evaluated:?}");
}

#[test]
fn all_models_together_pass_the_check_of_the_command_line() {
    let checked = support::program().arg("check").arg(directory()).output().expect("it runs");
    let (said, refused) = (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(checked.status.success(), "{refused}");
    let count = |kind: &str| said.lines().filter(|line| line.starts_with(kind)).count();
    assert!(count("process ") >= 100 && count("decisions ") >= 20 && count("form ") >= 20, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_not_met_is_told() {
    let data = tempfile::tempdir().expect("a directory");
    let server = Server::start(data.path(), &["--clock-control"]);
    let path = directory().join("processes/expert-opinion.bpmn");
    assert!(osmia(&server, &["deploy", &path.to_string_lossy()]).status.success());
    let plan = Plan::read(&path, &json!({"runs": [{"expect": {"no such variable": 1}}]}));
    let mut worker = Worker::new(&server);
    worker.drive(vec![plan]);
    let problems = worker.problems();
    assert!(problems.len() == 1 && problems[0].contains("no such variable"), "{problems:?}");
}
