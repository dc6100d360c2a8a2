//! Forms, and resources that are only kept.

use super::*;

const GREET: &[u8] = br#"{"id":"greet","versionTag":"v1","components":[],"type":"default"}"#;
const ROBOT: &[u8] = br#"{"id":"robot","versionTag":"r1","script":"*** Tasks ***"}"#;

/// A process that begins with a form, unless its id is empty.
fn process(id: &str, form: &str) -> String {
    let extension = match form {
        "" => String::new(),
        form => format!(r#"<extensionElements><z:formDefinition formId="{form}"/></extensionElements>"#),
    };
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0"
        targetNamespace="t"><process id="{id}" isExecutable="true"><startEvent id="s">{extension}<outgoing>f</outgoing>
        </startEvent><sequenceFlow id="f" sourceRef="s" targetRef="e"/><endEvent id="e"><incoming>f</incoming></endEvent>
        </process></definitions>"#
    )
}

fn key(deployed: &Value, kind: &str) -> String {
    let all = deployed["deployments"].as_array().expect("a list");
    let found = all.iter().find(|found| !found[kind].is_null()).expect("it was deployed");
    found[kind][format!("{kind}Key")].as_str().expect("a key").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_deployed_read_and_deleted() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    let (with, without) = (process("with", "greet"), process("without", ""));
    let first = connection.deploy(&[("greet.form", GREET), ("with.bpmn", with.as_bytes())]);
    let form = key(&first, "form");
    let schema = String::from_utf8(GREET.to_vec()).unwrap();
    let expected = json!({"tenantId": "<default>", "formId": "greet", "schema": schema, "version": 1, "formKey": form});
    assert_eq!(connection.tell("GET", &format!("/v2/forms/{form}"), ""), expected);
    let definition = first["deployments"][0]["processDefinition"]["processDefinitionKey"].as_str().unwrap().to_owned();
    let start_form = format!("/v2/process-definitions/{definition}/form");
    assert_eq!(connection.tell("GET", &start_form, ""), expected);
    let found = connection.tell("GET", &format!("/v2/process-definitions/{definition}"), "");
    assert_eq!(found["hasStartForm"], true);
    let other = connection.deploy(&[("without.bpmn", without.as_bytes())]);
    let other = other["deployments"][0]["processDefinition"]["processDefinitionKey"].as_str().unwrap().to_owned();
    connection.done("GET", &format!("/v2/process-definitions/{other}/form"), "");

    let again = connection.deploy(&[("greet.form", GREET)]);
    assert_eq!((key(&again, "form"), &again["deployments"][0]["form"]["version"]), (form.clone(), &json!(1)));
    let changed = connection.deploy(&[("greet.form", &[GREET, b"\n"].concat())]);
    assert_eq!(changed["deployments"][0]["form"]["version"], 2);
    let second = key(&changed, "form");
    assert_eq!(connection.tell("GET", &start_form, "")["formKey"], second.as_str(), "the newest one is meant");
    let deletion = format!("/v2/resources/{second}/deletion");
    assert_eq!(connection.tell("POST", &deletion, ""), json!({"resourceKey": second, "batchOperation": null}));
    assert_eq!(connection.tell("GET", &start_form, "")["formKey"], form.as_str());
    connection.refused(("POST", &deletion, ""), 404, "NOT_FOUND", "Command 'DELETE' rejected with code 'NOT_FOUND'");
    let missing = format!("/v2/forms/{definition}");
    connection.refused(("GET", &missing, ""), 404, "NOT_FOUND", "Form with key");
    connection.refused(("GET", "/v2/process-definitions/7/form", ""), 404, "NOT_FOUND", "Process definition with key");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_variables_are_told_once_for_each_definition() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    let (one, two) = (one_task("one", "one").content, one_task("two", "two").content);
    let deployed = connection.deploy(&[("one.bpmn", &one), ("two.bpmn", &two)]);
    let definition = |index: usize| deployed["deployments"][index]["processDefinition"]["processDefinitionKey"].clone();
    // Some in each partition.
    for (process, names) in [("one", ["b", "a"]), ("one", ["b", "B"]), ("one", ["a", "\u{e4}_%"]), ("two", ["c", "a"])]
    {
        for _ in 0..2 {
            let variables: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!(1))).collect();
            let creation = json!({"processDefinitionId": process, "variables": variables});
            connection.tell("POST", "/v2/process-instances", &creation.to_string());
        }
    }
    let mut names = |definition: &Value, search: Value| {
        let path = format!("/v2/process-definitions/{}/variable-names/search", definition.as_str().unwrap_or("7"));
        let found = connection.tell("POST", &path, &search.to_string());
        let items = found["items"].as_array().expect("items").iter();
        (items.map(|item| item["name"].clone()).collect::<Vec<_>>(), found["page"]["totalItems"].clone())
    };
    let (first, second) = (definition(0), definition(1));
    assert_eq!(names(&first, json!({})), (vec![json!("B"), json!("a"), json!("b"), json!("\u{e4}_%")], json!(4)));
    assert_eq!(names(&second, json!({})), (vec![json!("a"), json!("c")], json!(2)));
    assert_eq!(names(&Value::Null, json!({})), (vec![], json!(0)));
    let like = json!({"filter": {"name": {"$like": "*_%"}}});
    assert_eq!(names(&first, like), (vec![json!("\u{e4}_%")], json!(1)));
    let page = json!({"filter": {"name": {"$neq": "a"}}, "page": {"from": 1, "limit": 1}});
    assert_eq!(names(&first, page), (vec![json!("b")], json!(3)));
    let path = format!("/v2/process-definitions/{}/variable-names/search", first.as_str().expect("a key"));
    let cursor = r#"{"page":{"after":"WzFd"}}"#;
    connection.refused(("POST", &path, cursor), 400, "INVALID_ARGUMENT", "This search has no cursors.");
    connection.refused(("POST", &path, r#"{"sort":[{"field":"name"}]}"#), 400, "INVALID_ARGUMENT", "Unknown sortBy");
    // What is left of the second one goes with it, on each partition when it learns of that.
    let path = format!("/v2/process-definitions/{}/variable-names/search", second.as_str().expect("a key"));
    let instances = r#"{"filter":{"processDefinitionId":"two","state":"ACTIVE"}}"#;
    let instances = connection.tell("POST", "/v2/process-instances/search", instances)["items"].clone();
    assert_eq!(instances.as_array().expect("items").len(), 2);
    for instance in instances.as_array().expect("items") {
        let instance = instance["processInstanceKey"].as_str().expect("a key");
        assert_eq!(connection.ask("POST", &format!("/v2/process-instances/{instance}/cancellation"), "").status, 204);
    }
    assert_eq!(connection.tell("POST", &path, "{}")["page"]["totalItems"], 2);
    connection.tell("POST", &format!("/v2/resources/{}/deletion", second.as_str().expect("a key")), "{}");
    let begin = std::time::Instant::now();
    while connection.tell("POST", &path, "{}")["page"]["totalItems"] != 0 {
        assert!(begin.elapsed() < LIMIT, "the names of a deleted definition stay");
    }
    let none = "/v2/process-definitions/x/variable-names/search";
    connection.refused(("POST", none, "{}"), 400, "Bad Request", "Expected processDefinitionKey");
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_that_are_only_kept_can_be_read_as_they_were_deployed() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    let deployed = connection.deploy(&[("robot.rpa", ROBOT)]);
    let robot = key(&deployed, "resource");
    let path = format!("/v2/resources/{robot}");
    assert_eq!(
        connection.tell("GET", &path, ""),
        json!({"resourceName": "robot.rpa", "version": 1, "versionTag": "r1", "resourceId": "robot",
            "tenantId": "<default>", "resourceKey": robot})
    );
    let content = connection.ask("GET", &format!("{path}/content"), "");
    assert_eq!((content.status, content.body.as_bytes()), (200, ROBOT));
    let content = connection.ask("GET", &format!("{path}/content/binary"), "");
    assert_eq!((content.status, content.body.as_bytes()), (200, ROBOT));
    assert_eq!(content.header("content-type"), Some("application/octet-stream"));
    let found = |connection: &mut Connection, search: Value| -> Vec<Value> {
        let found = connection.tell("POST", "/v2/resources/search", &search.to_string());
        found["items"].as_array().expect("items").clone()
    };
    let other = key(&connection.deploy(&[("other.rpa", br#"{"id":"other"}"#)]), "resource");
    let all = found(&mut connection, json!({"sort": [{"field": "deploymentKey"}]}));
    assert_eq!(all[0], connection.tell("GET", &path, ""));
    assert_eq!((all.len(), &all[1]["resourceKey"], &all[1]["versionTag"]), (2, &json!(other), &Value::Null));
    for (filter, expected) in [
        (json!({"deploymentKey": deployed["deploymentKey"]}), vec!["robot"]),
        (json!({"resourceId": {"$like": "*o*"}, "versionTag": {"$exists": false}}), vec!["other"]),
        (json!({"version": {"$gt": 1}}), vec![]),
    ] {
        let found = found(&mut connection, json!({"filter": filter}));
        assert_eq!(found.iter().map(|of| &of["resourceId"]).collect::<Vec<_>>(), expected, "{filter}");
    }
    connection.tell("POST", &format!("{path}/deletion"), "{}");
    assert_eq!(found(&mut connection, json!({})), all[1..]);
    for path in [path.clone(), format!("{path}/content"), format!("{path}/content/binary")] {
        connection.refused(("GET", &path, ""), 404, "NOT_FOUND", "no resource found with key");
    }
    connection.refused(("GET", "/v2/resources/x", ""), 400, "Bad Request", "Expected resourceKey");
    let answer = connection.post_form(&form(&[("a.form", b"{}"), ("b.rpa", br#"{"id":" "}"#)]));
    let (status, title, detail) = answer.problem("/v2/deployments");
    assert_eq!((status, &*title), (400, "INVALID_ARGUMENT"));
    for words in ["Expected the form id to be present, but none given", "Expected the resource id to be filled"] {
        assert!(detail.contains(words), "{detail}");
    }
}
