//! Deployed forms and resources that are only kept: what is read of them, versions, deletion, their way to all partitions.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::support::{Partition, TENANT};
use engine::Output;
use model_builder::ProcessBuilder;
use protocol::*;

fn deployment(files: &[(&str, &str)]) -> Payload {
    let resource = |(name, content): &(&str, &str)| DeploymentResource {
        resource_name: (*name).into(),
        resource: Arc::from(content.as_bytes()),
    };
    let resources = files.iter().map(resource).collect();
    let value = DeploymentValue { resources, tenant_id: TENANT.into(), ..DeploymentValue::default() };
    Payload::Deployment(DeploymentIntent::Create, Box::new(value))
}

fn deploy(partition: &mut Partition, files: &[(&str, &str)]) -> DeploymentValue {
    let output = partition.submit(Key::NONE, deployment(files));
    assert_eq!(output.replies[0].rejection, None);
    match &output.replies[0].payload {
        Payload::Deployment(_, value) => (**value).clone(),
        payload => panic!("a deployment, not {payload:?}"),
    }
}

fn reason(output: &Output) -> String {
    let rejection = output.replies[0].rejection.as_ref().expect("a refusal");
    format!("{:?}: {}", rejection.rejection_type, rejection.reason)
}

fn deletion(key: Key) -> Payload {
    let value = ResourceDeletionValue { resource_key: key, tenant_id: TENANT.into() };
    Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value))
}

fn fetch(key: Key) -> Payload {
    let metadata = ResourceMetadata { resource_key: key, ..ResourceMetadata::default() };
    Payload::Resource(ResourceIntent::Fetch, Box::new(ResourceValue { metadata, ..ResourceValue::default() }))
}

/// Version and whether there was one before, of the forms and then of the resources.
fn versions(value: &DeploymentValue) -> Vec<(&str, i32, bool)> {
    let forms = value.form_metadata.iter();
    let forms = forms.map(|form| (form.form_id.as_str(), form.version, form.duplicate));
    let resources = value.resource_metadata.iter();
    forms.chain(resources.map(|found| (found.resource_id.as_str(), found.version, found.duplicate))).collect()
}

fn events(output: &Output) -> Vec<String> {
    let events = output.records.iter().filter(|record| record.record_type == RecordType::Event);
    events.map(|record| format!("{} {}", record.payload.value_type().name(), record.payload.intent_name())).collect()
}

#[test]
fn files_of_a_deployment_become_versions_in_their_order_and_together() {
    let mut partition = Partition::new();
    let files = [
        ("a.form", r#"{"id":"greet","versionTag":"v1","components":[{"id":"not this"}]}"#),
        ("a.rpa", r#"{"id":"robot"}"#),
        ("B.FORM", "\u{feff} {\"id\" : 12} "),
    ];
    let output = partition.submit(Key::NONE, deployment(&files));
    assert_eq!(events(&output), ["FORM CREATED", "RESOURCE CREATED", "FORM CREATED", "DEPLOYMENT CREATED"]);
    let again = deploy(&mut partition, &files);
    assert_eq!(versions(&again), [("greet", 1, true), ("12", 1, true), ("robot", 1, true)]);
    assert_eq!(again.form_metadata[0].version_tag, "v1");
    assert_ne!(again.form_metadata[0].deployment_key, again.deployment_key);
    let changed = deploy(&mut partition, &[files[0], ("a.rpa", r#"{"id":"robot","versionTag":"r2"}"#)]);
    assert_eq!(versions(&changed), [("greet", 2, false), ("robot", 2, false)]);
    let process = ProcessBuilder::new("p").start("s").end("e").to_xml();
    let with_process = deploy(&mut partition, &[("p.bpmn", &process), files[0]]);
    assert_eq!(versions(&with_process), [("greet", 3, false)]);
    let other_name = deploy(&mut partition, &[("b.form", files[0].1)]);
    assert_eq!(versions(&other_name), [("greet", 4, false)]);
    partition.check();
}

#[test]
fn a_file_that_cannot_be_read_is_refused_and_nothing_is_deployed() {
    let mut partition = Partition::new();
    let frame = "InvalidArgument: Expected to deploy new resources, but encountered the following errors:\n";
    for (name, content, expected) in [
        ("a.form", "{}", "Expected the form id to be present, but none given"),
        ("a.form", r#"{"id":null}"#, "Expected the form id to be present, but none given"),
        ("a.form", r#"{"id":" \t"}"#, "Expected the form id to be filled, but it is blank"),
        ("a.rpa", "{}", "Expected the resource id to be present, but none given"),
        ("a.rpa", r#"{"id":""}"#, "Expected the resource id to be filled, but it is blank"),
        ("a.form", "{\"id\": }", "Failed to parse form JSON. 'a.form': Expected a JSON value at byte 7"),
        ("a.rpa", "[1]", "Failed to parse resource JSON. 'a.rpa': Expected an object in braces at byte 0"),
        ("a.form", "", "Failed to parse form JSON. 'a.form': "),
        ("a.form", r#"{"id":"a"} x"#, "Failed to parse form JSON. 'a.form': "),
        ("a.form", r#"{"id":{"a":1}}"#, "Failed to parse form JSON. 'a.form': Expected 'id' to be a text."),
        ("a.form", r#"{"id":"a","versionTag":[]}"#, "Failed to parse form JSON. 'a.form': Expected 'versionTag'"),
    ] {
        let output = partition.submit(Key::NONE, deployment(&[("good.form", r#"{"id":"good"}"#), (name, content)]));
        let found = reason(&output);
        assert!(found.starts_with(&format!("{frame}{expected}")), "{content}: {found}");
        assert_eq!(events(&output), Vec::<String>::new());
    }
    let both = partition.submit(Key::NONE, deployment(&[("a.form", "{}"), ("b.form", "{\"id\":\"\"}")]));
    assert!(reason(&both).ends_with("but none given\nExpected the form id to be filled, but it is blank"));
    let twice = deployment(&[("a.form", r#"{"id":"x"}"#), ("x.rpa", r#"{"id":"x"}"#), ("b.form", r#"{"id":"x"}"#)]);
    let expected = "Expected the form ids to be unique within a deployment but found a duplicated id 'x' in the resources \
                    'a.form' and 'b.form'.";
    assert_eq!(reason(&partition.submit(Key::NONE, twice)), format!("{frame}{expected}"));
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(600));
    assert!(
        reason(&partition.submit(Key::NONE, deployment(&[("a.form", &long)]))).contains("to have at most 512 bytes")
    );
    let no_text = DeploymentResource { resource_name: "a.form".into(), resource: Arc::from(&b"{\"id\":\"\xff\"}"[..]) };
    let value = DeploymentValue { resources: vec![no_text], tenant_id: TENANT.into(), ..DeploymentValue::default() };
    let output = partition.submit(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
    assert!(reason(&output).contains("'a.form': Expected a text in UTF-8, but byte 7 is none of one."));
    assert_eq!(deploy(&mut partition, &[("good.form", r#"{"id":"good"}"#)]).form_metadata[0].version, 1);
    partition.check();
}

#[test]
fn a_deleted_version_is_gone_and_its_number_is_not_given_again() {
    let mut partition = Partition::new();
    let first = deploy(&mut partition, &[("a.form", r#"{"id":"f"}"#), ("a.rpa", r#"{"id":"r","x":1}"#)]);
    let second = deploy(&mut partition, &[("a.form", r#"{"id":"f","x":2}"#), ("a.rpa", r#"{"id":"r","x":2}"#)]);
    let robot = |value: &DeploymentValue| value.resource_metadata[0].resource_key;
    let form = |value: &DeploymentValue| value.form_metadata[0].form_key;
    let output = partition.submit(Key::NONE, fetch(robot(&first)));
    let Payload::Resource(ResourceIntent::Fetched, fetched) = &output.replies[0].payload else {
        panic!("a resource, not {:?}", output.replies)
    };
    assert_eq!((&*fetched.resource_prop, fetched.metadata.version), (r#"{"id":"r","x":1}"#, 1));
    // Forms are read from what searches see.
    let of_form = partition.submit(Key::NONE, fetch(form(&first)));
    let missing = |key: Key| format!("NotFound: Expected to fetch resource but no resource found with key `{key}`");
    assert_eq!(reason(&of_form), missing(form(&first)));

    let output = partition.submit(Key::NONE, deletion(form(&second)));
    assert_eq!(events(&output), ["RESOURCE_DELETION DELETING", "FORM DELETED", "RESOURCE_DELETION DELETED"]);
    assert_eq!(output.records[1].key, form(&second), "the record has the key of what is gone");
    let output = partition.submit(Key::NONE, deletion(robot(&second)));
    assert_eq!(events(&output), ["RESOURCE_DELETION DELETING", "RESOURCE DELETED", "RESOURCE_DELETION DELETED"]);
    assert_eq!(output.records[1].key, robot(&second));
    let gone = reason(&partition.submit(Key::NONE, deletion(form(&second))));
    let expected = format!("Expected to delete resource but no resource found with key `{}`", form(&second));
    assert_eq!(gone, format!("NotFound: {expected}"));
    assert_eq!(reason(&partition.submit(Key::NONE, fetch(robot(&second)))), missing(robot(&second)));
    // The first is the newest again: its file is a duplicate, another is the third version.
    let again = deploy(&mut partition, &[("a.form", r#"{"id":"f"}"#), ("a.rpa", r#"{"id":"r","x":1}"#)]);
    assert_eq!(versions(&again), [("f", 1, true), ("r", 1, true)]);
    let third = deploy(&mut partition, &[("a.form", r#"{"id":"f","x":2}"#), ("a.rpa", r#"{"id":"r","x":2}"#)]);
    assert_eq!(versions(&third), [("f", 3, false), ("r", 3, false)]);
    for key in [form(&first), form(&third), robot(&first), robot(&third)] {
        assert_eq!(partition.submit(Key::NONE, deletion(key)).replies[0].rejection, None);
    }
    assert_eq!(versions(&deploy(&mut partition, &[("a.form", r#"{"id":"f"}"#)])), [("f", 4, false)]);
    partition.check();
}

#[test]
fn forms_and_resources_come_to_all_partitions_and_go_from_all() {
    let mut cluster = Cluster::new(3);
    cluster.submit(1, Key::NONE, deployment(&[("a.form", r#"{"id":"f"}"#), ("a.rpa", r#"{"id":"r"}"#)]));
    assert_eq!(cluster.node(1).replies.len(), 0, "the client waits for all partitions");
    cluster.settle();
    let Payload::Deployment(_, deployed) = cluster.node(1).replies[0].payload.clone() else { panic!("an answer") };
    assert_eq!(versions(&deployed), [("f", 1, false), ("r", 1, false)]);
    assert_eq!((cluster.count("FORM", "CREATED"), cluster.count("RESOURCE", "CREATED")), (3, 3));
    let robot = deployed.resource_metadata[0].resource_key;
    for partition in 1..=3 {
        let reply = cluster.submit(partition, Key::NONE, fetch(robot)).expect("an answer");
        assert_eq!(reply.rejection, None, "on partition {partition}");
    }
    for key in [deployed.form_metadata[0].form_key, robot] {
        cluster.submit(1, Key::NONE, deletion(key));
        cluster.settle();
    }
    assert_eq!((cluster.count("FORM", "DELETED"), cluster.count("RESOURCE", "DELETED")), (3, 3));
    assert_eq!(cluster.count("RESOURCE_DELETION", "DELETED"), 6);
    let kept = ["outbox_sequences", "inbox_sequences", "deleted_form_versions", "deleted_resource_versions"];
    assert_eq!(cluster.rows_but(&kept), Vec::<String>::new());
    cluster.check();
}

#[test]
fn files_of_the_same_name_are_told_apart_on_every_partition() {
    let process = |id: &str| ProcessBuilder::new(id).start("s").end("e").to_xml();
    let graph = |id: &str| {
        format!(
            r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="{id}" name="n" namespace="x">
            <decision id="of-{id}" name="d"><literalExpression><text>1</text></literalExpression></decision></definitions>"#
        )
    };
    let form = |id: &str| format!(r#"{{"id":"{id}"}}"#);
    let (bpmn, dmn, forms) = (["p", "q"].map(process), ["g", "h"].map(graph), ["f", "i"].map(form));
    let files = bpmn.iter().map(|file| ("a.bpmn", file)).chain(dmn.iter().map(|file| ("a.dmn", file)));
    let files: Vec<(&str, &str)> =
        files.chain(forms.iter().map(|file| ("a.form", file))).map(|(name, file)| (name, file.as_str())).collect();
    let mut cluster = Cluster::new(2);
    cluster.submit(1, Key::NONE, deployment(&files));
    cluster.settle();
    for node in &cluster.nodes {
        let held: Vec<(String, Arc<[u8]>)> = node
            .records
            .iter()
            .filter_map(|record| match &record.payload {
                Payload::Process(_, value) => {
                    Some((value.metadata.bpmn_process_id.to_string(), value.resource.clone()))
                }
                Payload::DecisionRequirements(_, value) => {
                    Some((value.metadata.decision_requirements_id.to_string(), value.resource.clone()))
                }
                Payload::Form(_, value) => Some((value.metadata.form_id.to_string(), value.resource.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(held.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["p", "q", "g", "h", "f", "i"]);
        for (id, content) in held {
            let content = String::from_utf8_lossy(&content).into_owned();
            assert!(
                content.contains(&format!("id=\"{id}\"")) || content.contains(&format!(":\"{id}\"")),
                "{id}: {content}"
            );
        }
    }
    cluster.check();
}
