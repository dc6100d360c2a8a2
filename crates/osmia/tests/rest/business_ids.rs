//! Business ids: given at creation, found everywhere, and alone when that is wanted.

use super::*;

const OUTER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:process id="outer" isExecutable="true">
    <bpmn:startEvent id="start" />
    <bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="inner" /></bpmn:extensionElements></bpmn:callActivity>
    <bpmn:sequenceFlow id="a" sourceRef="start" targetRef="call" />
  </bpmn:process>
</bpmn:definitions>"#;

/// A decision, and then a person, a worker and a message, side by side.
const INNER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:message id="message" name="paid"><bpmn:extensionElements><zeebe:subscription correlationKey="=key" /></bpmn:extensionElements></bpmn:message>
  <bpmn:process id="inner" isExecutable="true">
    <bpmn:startEvent id="start" />
    <bpmn:businessRuleTask id="rate"><bpmn:extensionElements><zeebe:calledDecision decisionId="rating" resultVariable="rating" /></bpmn:extensionElements></bpmn:businessRuleTask>
    <bpmn:parallelGateway id="fork" />
    <bpmn:serviceTask id="pack"><bpmn:extensionElements><zeebe:taskDefinition type="pack" /></bpmn:extensionElements></bpmn:serviceTask>
    <bpmn:userTask id="look"><bpmn:extensionElements><zeebe:userTask /></bpmn:extensionElements></bpmn:userTask>
    <bpmn:intermediateCatchEvent id="money"><bpmn:messageEventDefinition messageRef="message" /></bpmn:intermediateCatchEvent>
    <bpmn:sequenceFlow id="a" sourceRef="start" targetRef="rate" />
    <bpmn:sequenceFlow id="b" sourceRef="rate" targetRef="fork" />
    <bpmn:sequenceFlow id="c" sourceRef="fork" targetRef="pack" />
    <bpmn:sequenceFlow id="d" sourceRef="fork" targetRef="look" />
    <bpmn:sequenceFlow id="e" sourceRef="fork" targetRef="money" />
  </bpmn:process>
</bpmn:definitions>"#;

const RATING: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="graph" name="graph" namespace="t">
  <decision id="rating" name="rating"><literalExpression id="text"><text>1 + 1</text></literalExpression></decision>
</definitions>"#;

fn create(connection: &mut Connection, process: &str, business_id: &str) -> Value {
    let body = json!({"processDefinitionId": process, "variables": {"key": "k-1"}, "businessId": business_id});
    connection.tell("POST", "/v2/process-instances", &body.to_string())
}

/// What is found, until so much of it is: a subscription is opened on the partition of its messages, which says so afterwards.
fn found(connection: &mut Connection, what: &str, filter: &Value, count: usize) -> Vec<Value> {
    let body = json!({"filter": filter, "sort": [{"field": "businessId", "order": "DESC"}]}).to_string();
    let until = std::time::Instant::now() + LIMIT;
    loop {
        let found = connection.tell("POST", &format!("/v2/{what}/search"), &body)["items"].clone();
        let found = found.as_array().expect("items").clone();
        if found.len() == count {
            return found;
        }
        assert!(std::time::Instant::now() < until, "{what} with {filter}: {count} of them, not {found:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_belongs_to_an_instance_is_found_by_its_business_id() {
    let (server, _data) = start(&["--partitions", "3"]).await;
    let mut connection = Connection::open(&server);
    let files: [(&str, &[u8]); 3] =
        [("outer.bpmn", OUTER.as_bytes()), ("inner.bpmn", INNER.as_bytes()), ("rating.dmn", RATING.as_bytes())];
    connection.deploy(&files);
    let created = create(&mut connection, "outer", "b-1");
    assert_eq!(created["businessId"], "b-1");
    create(&mut connection, "outer", "b-2");
    assert_eq!(create(&mut connection, "order", "")["businessId"], Value::Null, "an empty one is none");

    let of_first = json!({"businessId": "b-1"});
    for (what, count) in
        [("process-instances", 2), ("decision-instances", 1), ("user-tasks", 1), ("message-subscriptions", 1)]
    {
        let items = found(&mut connection, what, &of_first, count);
        assert!(items.iter().all(|item| item["businessId"] == "b-1"), "{what}: {items:?}");
    }
    let both = found(&mut connection, "process-instances", &json!({"businessId": {"$like": "b-*"}}), 4);
    let ids: Vec<&str> = both.iter().filter_map(|item| item["businessId"].as_str()).collect();
    assert_eq!(ids, ["b-2", "b-2", "b-1", "b-1"], "they are sorted by it");
    let without = found(&mut connection, "process-instances", &json!({"businessId": {"$exists": false}}), 1);
    assert_eq!((&without[0]["processDefinitionId"], &without[0]["businessId"]), (&json!("order"), &Value::Null));
    let path = format!("/v2/process-instances/{}", created["processInstanceKey"].as_str().unwrap());
    assert_eq!(connection.tell("GET", &path, "")["businessId"], "b-1");

    let polled = r#"{"type":"pack","timeout":60000,"maxJobsToActivate":10,"requestTimeout":10000}"#;
    let jobs = connection.tell("POST", "/v2/jobs/activation", polled)["jobs"].clone();
    assert!(jobs[0]["businessId"].as_str().is_some_and(|id| id.starts_with("b-")), "{jobs}");
    let body = json!({"filter": {"type": "pack"}}).to_string();
    let jobs = connection.tell("POST", "/v2/jobs/search", &body)["items"].clone();
    assert!(jobs[1]["businessId"].as_str().is_some_and(|id| id.starts_with("b-")), "{jobs}");
    connection.tell("POST", "/v2/messages/publication", r#"{"name":"paid","correlationKey":"k-1","timeToLive":0}"#);
    let correlated = json!({"messageName": "paid", "businessId": "b-1"});
    found(&mut connection, "correlated-message-subscriptions", &correlated, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_instance_is_refused_when_business_ids_are_unique() {
    let (server, data) = start(&["--partitions", "3", "--unique-business-ids"]).await;
    let body = |business_id: &str| json!({"processDefinitionId": "order", "businessId": business_id}).to_string();
    let path = "/v2/process-instances";
    let first = create(&mut Connection::open(&server), "order", "b-1");
    let refused = |server: &Server| {
        let mut connection = Connection::open(server);
        // Whatever partition has its turn: one business id is on one partition.
        for _ in 0..6 {
            let words = "with this business id already exists for process definition 'order'";
            connection.refused(("POST", path, &body("b-1")), 409, "ALREADY_EXISTS", words);
        }
        let long = body(&"b".repeat(257));
        connection.refused(("POST", path, &long), 400, "INVALID_ARGUMENT", "exceeds the max length of 256");
    };
    refused(&server);
    server.kill();
    let server = Server::start(data.path(), &["--partitions", "3"]);
    refused(&server);
    let mut connection = Connection::open(&server);
    let cancellation = format!("{path}/{}/cancellation", first["processInstanceKey"].as_str().unwrap());
    connection.done("POST", &cancellation, "{}");
    let second = create(&mut connection, "order", "b-1");
    assert_ne!(second["processInstanceKey"], first["processInstanceKey"]);
    server.kill();
    let server = Server::start(data.path(), &["--partitions", "3", "--unique-business-ids", "false"]);
    create(&mut Connection::open(&server), "order", "b-1");
}
