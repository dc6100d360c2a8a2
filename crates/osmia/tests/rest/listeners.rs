//! Execution listeners: their jobs are found, handed out and completed like others, and say what they are.

use super::*;

const MODEL: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="heard" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="task"/>
<serviceTask id="task"><extensionElements><zeebe:taskDefinition type="heard-work"/><zeebe:executionListeners>
<zeebe:executionListener eventType="start" type="before" retries="2"/><zeebe:executionListener eventType="end" type="after"/>
</zeebe:executionListeners></extensionElements></serviceTask>
<sequenceFlow id="g" sourceRef="task" targetRef="e"/><endEvent id="e"/></process></definitions>"#;

struct Heard {
    connection: Connection,
    instance: String,
}

impl Heard {
    fn activate(&mut self, job_type: &str) -> Value {
        let body = json!({"type": job_type, "timeout": 60_000, "maxJobsToActivate": 5, "requestTimeout": -1});
        let found = self.connection.tell("POST", "/v2/jobs/activation", &body.to_string());
        assert_eq!(found["jobs"].as_array().map(Vec::len), Some(1), "{found}");
        found["jobs"][0].clone()
    }

    fn complete(&mut self, job: &Value, variables: Value) {
        let path = format!("/v2/jobs/{}/completion", job["jobKey"].as_str().expect("a key"));
        self.connection.done("POST", &path, &json!({ "variables": variables }).to_string());
    }

    fn search(&mut self, entity: &str, mut filter: Value) -> Vec<Value> {
        filter["processInstanceKey"] = self.instance.clone().into();
        let body =
            json!({"filter": filter, "sort": [{"field": if entity == "jobs" { "jobKey" } else { "incidentKey" }}]});
        let found = self.connection.tell("POST", &format!("/v2/{entity}/search"), &body.to_string());
        found["items"].as_array().expect("items").clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_listeners_say_what_they_are_and_are_found_by_it() {
    let (server, _data) = start(&["--partitions", "1"]).await;
    let mut connection = Connection::open(&server);
    connection.deploy(&[("heard.bpmn", MODEL.as_bytes())]);
    let created = connection.tell("POST", "/v2/process-instances", r#"{"processDefinitionId":"heard"}"#);
    let instance = created["processInstanceKey"].as_str().expect("a key").to_owned();
    let mut heard = Heard { connection, instance };

    let before = heard.activate("before");
    assert_eq!((&before["kind"], &before["listenerEventType"]), (&json!("EXECUTION_LISTENER"), &json!("START")));
    assert_eq!(before["retries"], 2);
    let path = format!("/v2/jobs/{}", before["jobKey"].as_str().expect("a key"));
    let error = format!("{path}/error");
    heard.connection.refused(
        ("POST", &error, r#"{"errorCode":"E"}"#),
        409,
        "INVALID_STATE",
        "it is of the kind 'EXECUTION_LISTENER'",
    );
    heard.connection.done("POST", &format!("{path}/failure"), r#"{"retries":0,"errorMessage":"deaf"}"#);
    let incidents = heard.search("incidents", json!({}));
    assert_eq!(incidents[0]["errorType"], "EXECUTION_LISTENER_NO_RETRIES");
    heard.connection.done("PATCH", &path, r#"{"changeset":{"retries":1}}"#);
    let incident = incidents[0]["incidentKey"].as_str().expect("a key");
    heard.connection.done("POST", &format!("/v2/incidents/{incident}/resolution"), "");
    let before = heard.activate("before");
    heard.complete(&before, json!({"own": 1}));

    let work = heard.activate("heard-work");
    assert_eq!((&work["kind"], &work["listenerEventType"]), (&json!("BPMN_ELEMENT"), &json!("UNSPECIFIED")));
    assert_eq!(work["variables"], json!({"own": 1}));
    heard.complete(&work, json!({}));
    let listening = heard.search("jobs", json!({"kind": "EXECUTION_LISTENER"}));
    let seen =
        |job: &Value| ["type", "listenerEventType", "state"].map(|name| job[name].as_str().unwrap_or("").to_owned());
    let expected = [["before", "START", "COMPLETED"], ["after", "END", "CREATED"]];
    assert_eq!(listening.iter().map(seen).collect::<Vec<_>>(), expected);
    assert_eq!(heard.search("jobs", json!({"listenerEventType": "START"})).len(), 1);
    assert_eq!(heard.search("jobs", json!({"listenerEventType": {"$in": ["END", "UNSPECIFIED"]}})).len(), 2);

    let after = heard.activate("after");
    let failure = format!("/v2/jobs/{}/failure", after["jobKey"].as_str().expect("a key"));
    heard.connection.done("POST", &failure, r#"{"retries":0,"errorMessage":"dumb"}"#);
    let path = format!("/v2/process-instances/{}", heard.instance);
    heard.connection.tell("POST", &format!("{path}/incident-resolution"), "");
    let after = heard.activate("after");
    assert_eq!(after["retries"], 1, "the resolution of all incidents gives it another try");
    heard.complete(&after, json!({}));
    assert_eq!(heard.connection.tell("GET", &path, "")["state"], "COMPLETED");
}
