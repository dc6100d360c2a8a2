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
    connection.tell("POST", &format!("{path}/deletion"), "{}");
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
