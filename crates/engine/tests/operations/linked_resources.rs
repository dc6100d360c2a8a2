//! Resources that service tasks link: their keys are in a header of the job.

use std::sync::Arc;

use engine::Output;
use protocol::*;
use serde_json::{Value, json};

use crate::support::{Partition, TENANT};
use crate::tools::*;

/// A process with one service task.
fn process(id: &str, resources: &str, headers: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
<process id="{id}" isExecutable="true"><startEvent id="start"/>
<serviceTask id="task"><extensionElements><zeebe:taskDefinition type="work"/>
<zeebe:linkedResources>{resources}</zeebe:linkedResources>
<zeebe:taskHeaders>{headers}</zeebe:taskHeaders></extensionElements></serviceTask>
<sequenceFlow id="flow" sourceRef="start" targetRef="task"/></process></definitions>"#
    )
}

fn deployment(partition: &mut Partition, files: &[(&str, &str)]) -> Output {
    let resource = |(name, content): &(&str, &str)| DeploymentResource {
        resource_name: (*name).into(),
        resource: Arc::from(content.as_bytes()),
    };
    let resources = files.iter().map(resource).collect();
    let value = DeploymentValue { resources, tenant_id: TENANT.into(), ..DeploymentValue::default() };
    partition.submit(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))
}

/// The keys of the deployed resources.
fn deploy(partition: &mut Partition, files: &[(&str, &str)]) -> Vec<String> {
    let output = deployment(partition, files);
    match &accepted(&output).payload {
        Payload::Deployment(_, value) => {
            value.resource_metadata.iter().map(|resource| resource.resource_key.to_string()).collect()
        }
        payload => panic!("a deployment, not {payload:?}"),
    }
}

/// The headers of the job that was created, and what is linked in them.
fn headers(output: &Output) -> (Value, Value) {
    let created = output.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) => Some(job.custom_headers.to_string()),
        _ => None,
    });
    let headers: Value = serde_json::from_str(&created.expect("a job")).expect("JSON");
    let linked = headers["linkedResources"].as_str().map(|text| serde_json::from_str(text).expect("JSON"));
    (headers, linked.unwrap_or_default())
}

fn incident(output: &Output) -> (Key, String) {
    let found = output.records.iter().find_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => {
            Some((record.key, format!("{}: {}", incident.error_type.name(), incident.error_message)))
        }
        _ => None,
    });
    found.expect("an incident")
}

const ROBOT: (&str, &str) = ("robot.rpa", r#"{"id":"robot","versionTag":"v1"}"#);
const NEWER_ROBOT: (&str, &str) = ("robot.rpa", r#"{"id":"robot","name":"newer"}"#);

#[test]
fn the_versions_that_the_bindings_mean_are_linked() {
    let resources = r#"<zeebe:linkedResource resourceId="robot" resourceType="RPA" linkName="main"/>
        <zeebe:linkedResource resourceId="robot" resourceType="a &quot;b&quot;" bindingType="deployment"/>
        <zeebe:linkedResource resourceId="robot" resourceType="RPA" linkName="" bindingType="versionTag" versionTag="v1"/>"#;
    let given = r#"<zeebe:header key="linkedResources" value="mine"/><zeebe:header key="k" value="v"/>"#;
    let mut partition = Partition::new();
    let process = process("p", resources, given);
    let old = deploy(&mut partition, &[("p.bpmn", &process), ROBOT]).remove(0);
    let linked = |latest: &str| {
        json!([
            {"resourceKey": latest, "resourceType": "RPA", "linkName": "main"},
            {"resourceKey": old, "resourceType": "a \"b\"", "linkName": null},
            {"resourceKey": old, "resourceType": "RPA", "linkName": ""},
        ])
    };
    let (all, found) = headers(&create(&mut partition, creation("p")));
    assert_eq!((&found, &all["k"]), (&linked(&old), &json!("v")), "{all}");
    let new = deploy(&mut partition, &[NEWER_ROBOT]).remove(0);
    assert_ne!(new, old);
    assert_eq!(headers(&create(&mut partition, creation("p"))).1, linked(&new));
    partition.check();
}

#[test]
fn nothing_linked_leaves_the_headers_as_they_are() {
    let mut partition = Partition::new();
    let process = process("p", "", r#"<zeebe:header key="linkedResources" value="mine"/>"#);
    deploy(&mut partition, &[("p.bpmn", &process)]);
    let output = create(&mut partition, creation("p"));
    let created = output.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) => Some(job.custom_headers.to_string()),
        _ => None,
    });
    assert_eq!(created.as_deref(), Some(r#"{"linkedResources":"mine"}"#));
    partition.check();
}

#[test]
fn what_is_missing_is_an_incident_until_it_is_deployed() {
    let resource =
        |binding: &str| format!(r#"<zeebe:linkedResource resourceId="robot" resourceType="RPA" {binding}/>"#);
    let latest = process("latest", &resource(""), "");
    let deployed = process("deployed", &resource(r#"bindingType="deployment""#), "");
    let tagged = process("tagged", &resource(r#"bindingType="versionTag" versionTag="v1""#), "");
    let computed = process("computed", r#"<zeebe:linkedResource resourceId="=id" resourceType="RPA"/>"#, "");
    let mut partition = Partition::new();
    deploy(
        &mut partition,
        &[
            ("latest.bpmn", &latest),
            ("deployed.bpmn", &deployed),
            ("tagged.bpmn", &tagged),
            ("computed.bpmn", &computed),
        ],
    );
    let mut incidents = Vec::new();
    for (id, words) in [
        (
            "latest",
            "RESOURCE_NOT_FOUND: Expected to link a resource with id 'robot', but no resource with this id is found",
        ),
        ("deployed", "with id 'robot' and binding type 'deployment', but no such resource found in the deployment"),
        ("tagged", "with id 'robot' and version tag 'v1', but no such resource found"),
        ("computed", "with id '=id', but no resource"),
    ] {
        let (key, message) = incident(&create(&mut partition, creation(id)));
        assert!(message.contains(words), "{message}");
        incidents.push(key);
    }
    let key = deploy(&mut partition, &[ROBOT]).remove(0);
    let resolve = |partition: &mut Partition, key: Key| {
        partition.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()))
    };
    for index in [0, 2] {
        let (_, linked) = headers(&resolve(&mut partition, incidents[index]));
        assert_eq!(linked[0]["resourceKey"], key);
    }
    let (_, message) = incident(&resolve(&mut partition, incidents[1]));
    assert!(message.contains("binding type 'deployment'"), "it is in another deployment: {message}");
    partition.check();
}
