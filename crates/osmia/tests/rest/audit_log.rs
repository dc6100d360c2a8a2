//! Who did what: an entry for each kind of doing, and of whom which are noted.

use super::*;

const DECISION: &str = include_str!("../../../../clients/shared/decision.dmn");
const SEARCH: &str = "/v2/audit-logs/search";

struct Audit(Connection);

impl Audit {
    fn entries(&mut self, filter: Value) -> Vec<Value> {
        let body = json!({"filter": filter, "sort": [{"field": "auditLogKey"}]});
        let found = self.0.tell("POST", SEARCH, &body.to_string());
        found["items"].as_array().expect("items").clone()
    }

    /// Operation, entity and result of each entry.
    fn told(&mut self, filter: Value) -> Vec<String> {
        let entries = self.entries(filter);
        let text = |entry: &Value, name: &str| entry[name].as_str().expect("a text").to_owned();
        let of = |entry| ["operationType", "entityType", "result"].map(|name| text(entry, name)).join(" ");
        entries.iter().map(of).collect()
    }

    fn create(&mut self) -> String {
        let created = self.0.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"order"}"#);
        created["processInstanceKey"].as_str().expect("a key").to_owned()
    }

    /// An incident of an instance whose job has no retries left, and the job.
    fn fail(&mut self, instance: &str) -> (String, String) {
        let wanted = r#"{"type":"work","worker":"w","timeout":600000,"maxJobsToActivate":1}"#;
        let jobs = self.0.tell("POST", "/v2/jobs/activation", wanted);
        assert_eq!(jobs["jobs"][0]["processInstanceKey"], instance);
        let job = jobs["jobs"][0]["jobKey"].as_str().expect("a key").to_owned();
        self.0.done("POST", &format!("/v2/jobs/{job}/failure"), r#"{"retries":0,"errorMessage":"no paper"}"#);
        let of_instance = json!({"filter": {"processInstanceKey": instance}}).to_string();
        let found = self.0.tell("POST", "/v2/incidents/search", &of_instance);
        (found["items"][0]["incidentKey"].as_str().expect("a key").to_owned(), job)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_with_instances_and_resources_is_told() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2", "--read-model-audit-anonymous", "all"]);
    let mut audit = Audit(Connection::open(&server));
    let (order, decision) = (one_task("order", "work"), DECISION.replace("PROCESS_ID", "dish"));
    let deployed = audit.0.deploy(&[(&order.name, &order.content), ("dish.dmn", decision.as_bytes())]);
    let deployment = deployed["deploymentKey"].as_str().expect("a key").to_owned();
    let process = deployed["deployments"][0]["processDefinition"]["processDefinitionKey"].clone();
    let of_deployment = audit.told(json!({"deploymentKey": deployment}));
    let decisions = of_deployment.iter().filter(|entry| *entry == "CREATE DECISION SUCCESS").count();
    assert_eq!(
        of_deployment.iter().filter(|entry| *entry == "CREATE RESOURCE SUCCESS").count(),
        1,
        "{of_deployment:?}"
    );
    assert!(decisions > 0 && decisions + 1 == of_deployment.len(), "once for both partitions: {of_deployment:?}");
    let model = &audit.entries(json!({"entityKey": process}))[0];
    assert_eq!((&model["entityDescription"], &model["tenantId"]), (&json!("order.bpmn"), &json!("<default>")));

    let instance = audit.create();
    let (incident, job) = audit.fail(&instance);
    let ended = audit.create();
    let resolution = format!("/v2/incidents/{incident}/resolution");
    audit.0.refused(("POST", &resolution, ""), 409, "INVALID_STATE", "no retries left");
    audit.0.done("PATCH", &format!("/v2/jobs/{job}"), r#"{"changeset":{"retries":1}}"#);
    audit.0.done("POST", &resolution, "");
    let variables = format!("/v2/element-instances/{instance}/variables");
    audit.0.done("PUT", &variables, r#"{"variables":{"a":1}}"#);
    audit.0.done("PUT", &variables, r#"{"variables":{"a":2}}"#);
    let modification = json!({"activateInstructions": [{"elementId": "task"}]}).to_string();
    audit.0.done("POST", &format!("/v2/process-instances/{instance}/modification"), &modification);
    audit.0.done("POST", &format!("/v2/process-instances/{instance}/cancellation"), "");
    audit.0.done("POST", &format!("/v2/process-instances/{ended}/cancellation"), "");
    let expected = [
        "CREATE PROCESS_INSTANCE SUCCESS",
        "RESOLVE INCIDENT SUCCESS",
        "CREATE VARIABLE SUCCESS",
        "UPDATE VARIABLE SUCCESS",
        "MODIFY PROCESS_INSTANCE SUCCESS",
        "CANCEL PROCESS_INSTANCE SUCCESS",
    ];
    assert_eq!(audit.told(json!({"processInstanceKey": instance})), expected);
    assert_eq!(audit.told(json!({"processInstanceKey": ended})), [expected[0], expected[5]]);
    assert_eq!(audit.told(json!({"entityKey": incident})), ["RESOLVE INCIDENT FAIL", expected[1]]);
    assert_eq!(audit.entries(json!({"jobKey": job}))[0]["entityKey"], json!(incident));
    assert_eq!(audit.told(json!({"entityDescription": "a"})), [expected[2], expected[3]]);
    for entry in audit.entries(json!({"processInstanceKey": instance})) {
        assert_eq!((&entry["category"], &entry["actorType"]), (&json!("DEPLOYED_RESOURCES"), &json!("ANONYMOUS")));
        assert_eq!(entry["processDefinitionId"], "order");
        let one = audit.0.tell("GET", &format!("/v2/audit-logs/{}", entry["auditLogKey"].as_str().unwrap()), "");
        assert_eq!(one, entry);
    }

    let evaluation = r#"{"decisionDefinitionId":"dish-discount","variables":{"orders":1}}"#;
    let found = audit.0.tell("POST", "/v2/decision-definitions/evaluation", evaluation);
    let evaluated = audit.entries(json!({"decisionEvaluationKey": found["decisionEvaluationKey"]}));
    assert_eq!(evaluated.len(), 1);
    assert_eq!(
        (&evaluated[0]["decisionDefinitionId"], &evaluated[0]["operationType"]),
        (&json!("dish-discount"), &json!("EVALUATE"))
    );
    audit.0.tell("POST", &format!("/v2/resources/{}/deletion", process.as_str().unwrap()), "");
    let of_model = ["CREATE RESOURCE SUCCESS", "DELETE RESOURCE SUCCESS"];
    assert_eq!(audit.told(json!({"entityKey": process})), of_model);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_programs_do_all_the_time_is_not_told_of_who_is_not_logged_in() {
    let (server, _data) = start(&[]).await;
    let mut audit = Audit(Connection::open(&server));
    let (order, decision) = (one_task("order", "work"), DECISION.replace("PROCESS_ID", "dish"));
    audit.0.deploy(&[(&order.name, &order.content), ("dish.dmn", decision.as_bytes())]);
    let evaluation = r#"{"decisionDefinitionId":"dish-discount","variables":{"orders":1}}"#;
    audit.0.tell("POST", "/v2/decision-definitions/evaluation", evaluation);
    let instance = audit.create();
    audit.0.done("POST", &format!("/v2/process-instances/{instance}/cancellation"), "");
    assert_eq!(audit.told(json!({"processInstanceKey": instance})), ["CANCEL PROCESS_INSTANCE SUCCESS"]);
    assert_eq!(audit.told(json!({"operationType": "EVALUATE"})), [""; 0]);
    assert!(!audit.told(json!({"entityType": "RESOURCE"})).is_empty());
}
