//! Resources, decisions, messages and the clock.

use super::*;

const DEPLOYMENTS: &str = "/v2/deployments";
const GRAPH: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="graph" name="Discounts" namespace="http://example.org/discounts">
  <decision id="discount" name="Discount">
    <decisionTable id="table" hitPolicy="UNIQUE">
      <input id="level" label="Level"><inputExpression id="levelExpression"><text>level</text></inputExpression></input>
      <output id="percent" label="Percent" name="percent"/>
      <rule id="gold"><inputEntry id="goldInput"><text>"gold"</text></inputEntry><outputEntry id="goldOutput"><text>assert(10, rich)</text></outputEntry></rule>
    </decisionTable>
  </decision>
</definitions>"#;

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_deployed_together_and_deleted_by_key() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let mut connection = Connection::open(&server);
    let order = one_task("order", "work");
    let deployed = connection.deploy(&[(&order.name, &order.content), ("discounts.dmn", GRAPH.as_bytes())]);
    assert_eq!(deployed["tenantId"], "<default>");
    assert!(deployed["deploymentKey"].is_string());
    let [process, decision, graph] = &deployed["deployments"].as_array().unwrap()[..] else { panic!("{deployed}") };
    let process_key = process["processDefinition"]["processDefinitionKey"].as_str().unwrap();
    assert_eq!(
        process,
        &json!({"processDefinition": {"processDefinitionId": "order", "processDefinitionVersion": 1, "resourceName": "order.bpmn",
            "tenantId": "<default>", "processDefinitionKey": process_key},
            "decisionDefinition": null, "decisionRequirements": null, "form": null, "resource": null})
    );
    assert_eq!(decision["decisionDefinition"]["name"], "Discount");
    let graph_key = &graph["decisionRequirements"]["decisionRequirementsKey"];
    assert_eq!(&decision["decisionDefinition"]["decisionRequirementsKey"], graph_key);

    let again = connection.deploy(&[(&order.name, &order.content)]);
    assert_eq!(again["deployments"][0], *process, "the same file is the same definition");
    assert_ne!(again["deploymentKey"], deployed["deploymentKey"]);

    let deletion = format!("/v2/resources/{process_key}/deletion");
    let instance = connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"order"}"#);
    connection.refused(("POST", &deletion, "{}"), 409, "INVALID_STATE", "running instances");
    let key = instance["processInstanceKey"].as_str().unwrap();
    connection.done("POST", &format!("/v2/process-instances/{key}/cancellation"), "");
    connection.refused(("POST", &deletion, r#"{"deleteHistory":true}"#), 501, "UNIMPLEMENTED", "deleteHistory");
    let deleted = connection.tell("POST", &deletion, r#"{"deleteHistory":false}"#);
    assert_eq!(deleted, json!({"resourceKey": process_key, "batchOperation": null}));
    connection.refused(("POST", &deletion, ""), 404, "NOT_FOUND", "Command 'DELETE' rejected with code 'NOT_FOUND'");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_java_client_gets_no_content_for_a_deletion_but_the_problem() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let definitions = connection.tell("POST", "/v2/process-definitions/search", "{}");
    let key = definitions["items"][0]["processDefinitionKey"].as_str().unwrap();
    let path = format!("/v2/resources/{key}/deletion");
    let deletion = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: camunda-client-java/8.8.12\r\nContent-Type: {JSON}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    connection.send(&deletion);
    let deleted = connection.read(true);
    assert_eq!((deleted.status, &*deleted.body, deleted.header("content-type")), (200, "", None));
    connection.send(&deletion);
    assert_eq!(connection.read(true).problem(&path).0, 404, "it is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_its_name_and_what_clients_stored_runs_in_no_browser() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let order = String::from_utf8(one_task("order", "work").content.to_vec()).unwrap();
    // As .NET sends it.
    let name = r#"filename="=?utf-8?B?UHJvemXDny5icG1u?="; filename*=utf-8''Proze%C3%9F.bpmn"#;
    let form =
        format!("--edge\r\nContent-Disposition: form-data; name=resources; {name}\r\n\r\n{order}\r\n--edge--\r\n");
    let deployed = connection.post_form(form.as_bytes()).json();
    let definition = &deployed["deployments"][0]["processDefinition"];
    assert_eq!(definition["resourceName"], "Prozeß.bpmn", "{deployed}");
    let xml = format!("/v2/process-definitions/{}/xml", definition["processDefinitionKey"].as_str().unwrap());
    for path in [&*xml, "/v2/topology", "/v2/nothing"] {
        let answer = connection.ask("GET", path, "");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.contains("sandbox") && policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
    }
    let unreadable = form.replace("%C3%9F", "%C3");
    let (status, _, detail) = connection.post_form(unreadable.as_bytes()).problem(DEPLOYMENTS);
    assert_eq!(status, 400);
    assert!(detail.contains("filename* in Content-Disposition is not what its encoding says"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_deployed_says_why() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let answer = connection.post_form(&form(&[("order.txt", b"text")]));
    let (status, title, detail) = answer.problem(DEPLOYMENTS);
    assert_eq!((status, &*title), (400, "INVALID_ARGUMENT"));
    assert!(
        detail.contains("Command 'CREATE' rejected with code 'INVALID_ARGUMENT'") && detail.contains("order.txt"),
        "{detail}"
    );
    let answer = connection.post_form(&form(&[("order.bpmn", b"<broken")]));
    assert_eq!(answer.problem(DEPLOYMENTS).1, "INVALID_ARGUMENT");
    for (body, words) in [
        (form(&[]), "Required part 'resources' is not present."),
        (b"--other--\r\n".to_vec(), "not multipart/form-data that can be read"),
        (form(&[("a.bpmn", b"<a/>")])[..40].to_vec(), "not multipart/form-data that can be read"),
    ] {
        let (status, title, detail) = connection.post_form(&body).problem(DEPLOYMENTS);
        assert_eq!((status, &*title), (400, "Bad Request"), "{detail}");
        assert!(detail.contains(words), "{detail}");
    }
    connection.refused(("POST", DEPLOYMENTS, "{}"), 415, "Unsupported Media Type", "Send 'multipart/form-data'.");
    connection.refused(("POST", DEPLOYMENTS, ""), 415, "Unsupported Media Type", "Send 'multipart/form-data'.");
    let large = connection.post_form(&form(&[("large.bpmn", &[b'x'; 4 << 20])]));
    assert_eq!(large.problem(DEPLOYMENTS).0, 413);
    connection.done("GET", "/v2/status", "");
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_evaluated_and_say_why_they_fail() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut connection = Connection::open(&server);
    let deployed = connection.deploy(&[("discounts.dmn", GRAPH.as_bytes())]);
    let key = deployed["deployments"][0]["decisionDefinition"]["decisionDefinitionKey"].as_str().unwrap().to_owned();
    let path = "/v2/decision-definitions/evaluation";
    let body = r#"{"decisionDefinitionId":"discount","variables":{"level":"gold","rich":true},"tenantId":"<default>"}"#;
    let found = connection.tell("POST", path, body);
    assert_eq!((&found["output"], &found["decisionDefinitionKey"]), (&json!("10"), &json!(key)));
    assert_eq!((&found["failureMessage"], &found["failedDecisionDefinitionId"]), (&json!(null), &json!(null)));
    let evaluated = &found["evaluatedDecisions"][0];
    assert_eq!((&evaluated["decisionDefinitionType"], &evaluated["output"]), (&json!("DECISION_TABLE"), &json!("10")));
    assert_eq!(
        evaluated["evaluatedInputs"],
        json!([{"inputId": "level", "inputName": "Level", "inputValue": "\"gold\""}])
    );
    assert_eq!(evaluated["matchedRules"][0]["evaluatedOutputs"][0]["outputName"], "Percent");
    let instance = format!("/v2/decision-instances/{}-1", found["decisionEvaluationKey"].as_str().unwrap());
    let read = connection.tell("GET", &instance, "");
    assert_eq!(read["matchedRules"], evaluated["matchedRules"], "with its rule at each output");
    for none in ["processDefinitionKey", "processInstanceKey", "elementInstanceKey"] {
        assert_eq!(read[none], "-1", "no process asked");
    }

    let body = format!(r#"{{"decisionDefinitionKey":"{key}","variables":{{"level":"gold","rich":false}}}}"#);
    let found = connection.tell("POST", path, &body);
    assert_eq!(found["failedDecisionDefinitionId"], "discount");
    assert!(found["failureMessage"].as_str().unwrap().contains("discount"), "{found}");

    connection.refused(
        ("POST", path, "{}"),
        400,
        "INVALID_ARGUMENT",
        "[decisionDefinitionId, decisionDefinitionKey] is required.",
    );
    connection.refused(
        ("POST", path, r#"{"decisionDefinitionId":"none"}"#),
        404,
        "NOT_FOUND",
        "Command 'EVALUATE' rejected",
    );
    connection.refused(("POST", path, r#"{"decisionDefinitionKey":"x"}"#), 400, "Bad Request", "expected a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_changed_only_where_that_is_allowed() {
    let (server, _data) = start(&["--clock-control"]).await;
    let mut connection = Connection::open(&server);
    connection.done("PUT", "/v2/clock", r#"{"timestamp":1735787045000}"#);
    let (_, clock) = server.http("GET", "/actuator/clock", "");
    assert!(clock.contains("1735787045000"), "{clock}");
    connection.refused(("PUT", "/v2/clock", "{}"), 400, "INVALID_ARGUMENT", "No timestamp provided.");
    connection.refused(("PUT", "/v2/clock", r#"{"timestamp":-1}"#), 400, "INVALID_ARGUMENT", "'-1' but must be >= 0");
    connection.done("POST", "/v2/clock/reset", "");
    let (_, clock) = server.http("GET", "/actuator/clock", "");
    assert!(!clock.contains("1735787045000"), "{clock}");

    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    for (method, path, body) in [("PUT", "/v2/clock", r#"{"timestamp":5}"#), ("POST", "/v2/clock/reset", "")] {
        connection.refused((method, path, body), 403, "FORBIDDEN", "Start it with --clock-control");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_to_say_who_they_are() {
    let (server, _data) = start(&[]).await;
    let me = Connection::open(&server).tell("GET", "/v2/authentication/me", "");
    assert_eq!((&me["username"], &me["canLogout"]), (&json!("anonymous"), &json!(false)));
    assert_eq!(me["tenants"], json!([{"name": "Default", "tenantId": "<default>", "description": null}]));
    assert_eq!(me.as_object().unwrap().len(), 10);
}
