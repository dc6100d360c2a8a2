//! Deployed decisions: versions, references, deletion, their way to all partitions, and evaluations that go wrong.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::support::{self, Partition, TENANT};
use engine::{EngineOptions, Limits, Output, Reply};
use model_builder::ProcessBuilder;
use protocol::*;

/// A graph with one decision, a literal expression.
fn graph(id: &str, decision: &str, expression: &str, tag: Option<&str>) -> String {
    let tag = tag.map(|tag| format!("<extensionElements><zeebe:versionTag value=\"{tag}\"/></extensionElements>"));
    format!(
        "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" \
         xmlns:zeebe=\"http://camunda.org/schema/zeebe/1.0\" id=\"{id}\" name=\"Graph {id}\" namespace=\"n\">\
         <decision id=\"{decision}\" name=\"Decision {decision}\">{}<variable id=\"v-{decision}\" name=\"{decision}\"/>\
         <literalExpression id=\"l-{decision}\"><text>{expression}</text></literalExpression></decision></definitions>",
        tag.unwrap_or_default()
    )
}

fn deployment(files: &[(&str, &str)]) -> Payload {
    let resource = |(name, content): &(&str, &str)| DeploymentResource {
        resource_name: (*name).into(),
        resource: Arc::from(content.as_bytes()),
    };
    let resources = files.iter().map(resource).collect();
    let value = DeploymentValue { resources, tenant_id: TENANT.into(), ..DeploymentValue::default() };
    Payload::Deployment(DeploymentIntent::Create, Box::new(value))
}

fn deployed(reply: &Reply) -> &DeploymentValue {
    assert_eq!(reply.rejection, None);
    match &reply.payload {
        Payload::Deployment(_, value) => value,
        payload => panic!("a deployment, not {payload:?}"),
    }
}

fn deploy(partition: &mut Partition, files: &[(&str, &str)]) -> DeploymentValue {
    deployed(&partition.submit(Key::NONE, deployment(files)).replies[0]).clone()
}

fn evaluation(decision: &str, variables: &str) -> Payload {
    let value = DecisionEvaluationValue {
        decision_id: decision.into(),
        variables: variables.into(),
        tenant_id: TENANT.into(),
        ..DecisionEvaluationValue::default()
    };
    Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value))
}

fn evaluated(reply: &Reply) -> &DecisionEvaluationValue {
    assert_eq!(reply.rejection, None);
    match &reply.payload {
        Payload::DecisionEvaluation(_, value) => value,
        payload => panic!("an evaluation, not {payload:?}"),
    }
}

fn evaluate(partition: &mut Partition, decision: &str) -> DecisionEvaluationValue {
    evaluated(&partition.submit(Key::NONE, evaluation(decision, "{\"a\":2}")).replies[0]).clone()
}

fn refused(output: &Output, kind: RejectionType, expected: &[&str]) {
    let rejection = output.replies[0].rejection.as_ref().expect("a refusal");
    assert_eq!(rejection.rejection_type, kind);
    for expected in expected {
        assert!(rejection.reason.contains(expected), "'{expected}' is missing in: {}", rejection.reason);
    }
}

fn deletion(key: Key) -> Payload {
    let value = ResourceDeletionValue { resource_key: key, tenant_id: TENANT.into() };
    Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value))
}

fn delete(partition: &mut Partition, deployed: &DeploymentValue) -> String {
    let key = deployed.decision_requirements_metadata[0].decision_requirements_key;
    support::describe(&partition.submit(Key::NONE, deletion(key)))
}

#[test]
fn what_is_deployed_together_is_versioned_together() {
    let mut partition = Partition::new();
    let (one, two) = (graph("g1", "d1", "1", None), graph("g2", "d2", "2", None));
    let versions = |value: &DeploymentValue| -> Vec<(i32, bool)> {
        let graphs = value.decision_requirements_metadata.iter();
        let graphs = graphs.map(|metadata| (metadata.decision_requirements_version, metadata.duplicate));
        graphs.chain(value.decisions_metadata.iter().map(|decision| (decision.version, decision.duplicate))).collect()
    };
    let first = deploy(&mut partition, &[("1.dmn", &one), ("2.dmn", &two)]);
    assert_eq!(versions(&first), [(1, false); 4]);
    let again = deploy(&mut partition, &[("1.dmn", &one), ("2.dmn", &two)]);
    assert_eq!(versions(&again), [(1, true); 4]);
    assert_eq!(again.decisions_metadata[1].decision_key, first.decisions_metadata[1].decision_key);
    assert_eq!(again.decisions_metadata[1].deployment_key, first.deployment_key);
    let other_name = deploy(&mut partition, &[("1.dmn", &one), ("3.dmn", &two)]);
    assert_eq!(versions(&other_name), [(2, false); 4]);
    let process = ProcessBuilder::new("p").start("s").end("e").to_xml();
    let with_process = deploy(&mut partition, &[("1.dmn", &one), ("p.bpmn", &process)]);
    assert_eq!(versions(&with_process), [(3, false); 2]);
    // The decision moved to another graph: it is the newest there.
    let moved = graph("g3", "d1", "3", None);
    assert_eq!(versions(&deploy(&mut partition, &[("3.dmn", &moved)])), [(1, false), (4, false)]);
    assert_eq!(versions(&deploy(&mut partition, &[("1.dmn", &one)])), [(4, false), (5, false)]);
    assert_eq!(evaluate(&mut partition, "d1").decision_output, "1");
    partition.check();
}

#[test]
fn files_that_do_not_fit_together_are_refused_with_all_their_problems() {
    let mut partition = Partition::new();
    let good = graph("g", "d", "1", None);
    let invalid = RejectionType::InvalidArgument;
    let output = partition.submit(Key::NONE, deployment(&[("1.dmn", &good), ("2.dmn", &graph("g", "e", "1", None))]));
    refused(&output, invalid, &["decision requirements ids to be unique", "'g' in the resources '1.dmn' and '2.dmn'"]);
    let output = partition.submit(Key::NONE, deployment(&[("1.dmn", &good), ("2.dmn", &graph("h", "d", "1", None))]));
    refused(&output, invalid, &["the decision ids to be unique", "'d' in the resources '1.dmn' and '2.dmn'"]);

    let bound = ProcessBuilder::new("p").start("s").called_decision("rule", "elsewhere", "r").end("e").to_xml();
    let bound = bound.replace("resultVariable=", "bindingType=\"deployment\" resultVariable=");
    let broken = graph("h", "e", "1 +", None);
    let output = partition.submit(Key::NONE, deployment(&[("1.dmn", &good), ("2.dmn", &broken), ("p.bpmn", &bound)]));
    let missing = "'p.bpmn': - Element: rule > extensionElements > calledDecision\n    - ERROR: Expected to find decision \
                   with id 'elsewhere' in current deployment, but not found.";
    refused(&output, invalid, &["errors:\n'2.dmn': - Element: l-e", missing]);
    let output = partition.submit(Key::NONE, deployment(&[("1.dmn", "<html/>")]));
    refused(&output, invalid, &["'1.dmn': The root element is 'html'"]);
    let long = "x".repeat(600);
    let output = partition.submit(Key::NONE, deployment(&[("1.dmn", &graph(&long, "d", "1", None))]));
    refused(&output, invalid, &["Expected the decision requirements id 'xxx"]);
    let many: String = (0..1_000).map(|number| format!("<decision id=\"d{number}\"/>")).collect();
    let many = good.replace("<decision id=\"d\"", &format!("{many}<decision id=\"d\""));
    let output = partition.submit(Key::NONE, deployment(&[("1.dmn", &many)]));
    refused(&output, invalid, &["more errors"]);
    assert!(output.replies[0].rejection.as_ref().is_some_and(|rejection| rejection.reason.len() < 8 << 10));
    assert!(partition.records.iter().all(|record| record.record_type != RecordType::Event), "nothing was deployed");
    partition.check();
}

#[test]
fn a_deleted_version_leaves_the_one_before() {
    let mut partition = Partition::new();
    let first = deploy(&mut partition, &[("1.dmn", &graph("g", "d", "a + 1", Some("t")))]);
    let second = deploy(&mut partition, &[("1.dmn", &graph("g", "d", "a + 2", Some("t")))]);
    let process =
        ProcessBuilder::new("p").start("s").called_decision("rule", "d", "r").service_task("t", "work").end("e");
    let tagged =
        process.to_xml().replace("resultVariable=", "bindingType=\"versionTag\" versionTag=\"t\" resultVariable=");
    assert_eq!(partition.deploy("p.bpmn", tagged.as_bytes()).replies[0].rejection, None);
    let result = |partition: &mut Partition| {
        let output = partition.create("p", "{\"a\":2}", ProcessInstanceCreationIntent::Create);
        let text = support::describe(&output);
        text.lines().find(|line| line.contains("VARIABLE CREATED r") || line.contains("INCIDENT")).map(str::to_owned)
    };
    assert!(result(&mut partition).is_some_and(|line| line.contains('4')));
    assert_eq!(evaluate(&mut partition, "d").decision_output, "4");

    let gone = delete(&mut partition, &second);
    let events = [
        "RESOURCE_DELETION DELETING",
        "DECISION DELETED",
        "DECISION_REQUIREMENTS DELETED",
        "RESOURCE_DELETION DELETED",
    ];
    let mut lines = gone.lines();
    for event in events {
        assert!(lines.any(|line| line.contains(event)), "{event} is missing in order in:\n{gone}");
    }
    let left = evaluate(&mut partition, "d");
    assert_eq!((left.decision_output.as_str(), left.decision_version), ("3", 1));
    assert!(result(&mut partition).is_some_and(|line| line.contains('3')), "the tag means the version that is left");
    let by_key = DecisionEvaluationValue {
        decision_key: second.decisions_metadata[0].decision_key,
        tenant_id: TENANT.into(),
        ..DecisionEvaluationValue::default()
    };
    let by_key = Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(by_key));
    refused(&partition.submit(Key::NONE, by_key), RejectionType::NotFound, &["no decision found for key '"]);
    let key = second.decision_requirements_metadata[0].decision_requirements_key;
    refused(&partition.submit(Key::NONE, deletion(key)), RejectionType::NotFound, &["no resource found with key"]);

    delete(&mut partition, &first);
    let none = "Expected to evaluate decision 'd', but no decision found for id 'd'";
    refused(&partition.submit(Key::NONE, evaluation("d", "")), RejectionType::NotFound, &[none]);
    assert!(result(&mut partition).is_some_and(|line| line.contains("CALLED_DECISION_ERROR")));
    let third = deploy(&mut partition, &[("1.dmn", &graph("g", "d", "a + 3", None))]);
    assert_eq!(third.decisions_metadata[0].version, 1, "nothing is left of those before");
    partition.check();
}

#[test]
fn a_decision_is_named_by_its_id_or_its_key() {
    let mut partition = Partition::new();
    let deployed = deploy(&mut partition, &[("1.dmn", &graph("g", "d", "{double: a * 2}", None))]);
    let ask = |decision_id: &str, decision_key: Key, variables: &str| {
        let value = DecisionEvaluationValue {
            decision_id: decision_id.into(),
            decision_key,
            variables: variables.into(),
            tenant_id: TENANT.into(),
            ..DecisionEvaluationValue::default()
        };
        Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value))
    };
    let key = deployed.decisions_metadata[0].decision_key;
    let output = partition.submit(Key::NONE, ask("", key, "{\"a\":[1],\"a\":4}"));
    let value = evaluated(&output.replies[0]);
    assert_eq!((value.decision_output.as_str(), value.decision_name.as_str()), ("{\"double\":8}", "Decision d"));
    let inner = &value.evaluated_decisions[0];
    assert_eq!(inner.decision_evaluation_instance_key, format!("{}-1", output.replies[0].key).as_str());
    assert_eq!((inner.decision_key, inner.decision_type.as_str()), (key, "LITERAL_EXPRESSION"));
    let json = serde_json_text(&output.replies[0].payload);
    assert!(json.contains("\"decisionOutput\":\"{\\\"double\\\":8}\""), "{json}");
    let neither = partition.submit(Key::NONE, ask("", Key::NONE, "{}"));
    refused(&neither, RejectionType::InvalidArgument, &["either a decision id or a valid decision key"]);
    let unreadable = partition.submit(Key::NONE, ask("d", Key::NONE, "[1]"));
    assert!(unreadable.replies[0].rejection.is_some());
    partition.check();
}

fn serde_json_text(payload: &Payload) -> String {
    serde_json::to_string(payload).expect("records are JSON")
}

#[test]
fn decisions_that_never_end_or_give_too_much_fail_alone() {
    let limits = Limits { decision_evaluation_bytes_max: 100_000, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    deploy(&mut partition, &[("1.dmn", &graph("g1", "endless", "count(for i in 1..1000000000000 return i)", None))]);
    deploy(&mut partition, &[("2.dmn", &graph("g2", "long", "[text, text, text, text]", None))]);
    deploy(&mut partition, &[("3.dmn", &graph("g3", "asserts", "assert(a, a > 100)", None))]);
    // Each item is the same value in memory, but not as text.
    deploy(&mut partition, &[("4.dmn", &graph("g4", "multiplied", "for i in 1..100000 return text", None))]);
    let text = format!("{{\"a\":2,\"text\":\"{}\"}}", "x".repeat(30_000));
    for (decision, expected) in [
        ("endless", "was stopped after 2500000 steps"),
        ("long", "at most 100000 bytes together"),
        ("multiplied", "stopped because its result would be larger"),
        ("asserts", "'asserts'"),
    ] {
        let output = partition.submit(Key::NONE, evaluation(decision, &text));
        let value = evaluated(&output.replies[0]);
        assert_eq!((value.failed_decision_id.as_str(), value.decision_output.as_str()), (decision, "null"));
        assert!(value.evaluation_failure_message.contains(expected), "{}", value.evaluation_failure_message);
        let task = ProcessBuilder::new("p").start("s").called_decision("rule", decision, "r").end("e").to_xml();
        assert_eq!(partition.deploy("p.bpmn", task.as_bytes()).replies[0].rejection, None);
        let output = partition.create("p", &text, ProcessInstanceCreationIntent::Create);
        assert!(support::describe(&output).contains("DECISION_EVALUATION_ERROR"));
    }
    partition.check();
}

#[test]
fn incidents_say_why_a_decision_gave_nothing() {
    let mut partition = Partition::new();
    deploy(&mut partition, &[("1.dmn", &graph("g", "asserts", "assert(a, false)", None))]);
    let called = "CALLED_DECISION_ERROR 'Expected to evaluate decision";
    for (binding, variables, expected) in [
        ("", "{\"which\":\"none\"}", format!("{called} 'none', but no decision found for id 'none''")),
        (
            "bindingType=\"deployment\" ",
            "{\"which\":\"none\"}",
            format!(
                "{called} 'none' with binding type 'deployment', but no such decision found in the deployment with key "
            ),
        ),
        (
            "bindingType=\"versionTag\" versionTag=\"v9\" ",
            "{\"which\":\"asserts\"}",
            format!("{called} with id 'asserts' and version tag 'v9', but no such decision found."),
        ),
        (
            "",
            "{\"which\":\"asserts\",\"a\":2}",
            "DECISION_EVALUATION_ERROR 'Expected to evaluate decision 'asserts', but Assertion failure on evaluate the \
             expression 'assert(a, false)': The condition is not fulfilled'"
                .to_owned(),
        ),
        (
            "",
            "{\"which\":5}",
            "EXTRACT_VALUE_ERROR 'Expected result of the expression 'which' to be 'STRING', but was 'NUMBER'.'".to_owned(),
        ),
    ] {
        let task = ProcessBuilder::new("p").start("s").called_decision("rule", "=which", "r").end("e").to_xml();
        let task = task.replace("resultVariable=", &format!("{binding}resultVariable="));
        assert_eq!(partition.deploy("p.bpmn", task.as_bytes()).replies[0].rejection, None);
        let output = support::describe(&partition.create("p", variables, ProcessInstanceCreationIntent::Create));
        let expected = format!("INCIDENT CREATED rule {expected}");
        assert!(output.contains(&expected), "'{expected}' is missing in:\n{output}");
    }
    partition.check();
}

#[test]
fn every_partition_has_every_decision() {
    let mut cluster = Cluster::new(3);
    cluster.submit(1, Key::NONE, deployment(&[("1.dmn", &graph("g", "d", "a + 1", None))]));
    cluster.settle();
    let answers = |cluster: &mut Cluster| -> Vec<Option<String>> {
        (1..=3)
            .map(|partition| {
                let reply = cluster.submit(partition, Key::NONE, evaluation("d", "{\"a\":2}")).expect("an answer");
                reply.rejection.is_none().then(|| evaluated(&reply).decision_output.to_string())
            })
            .collect()
    };
    assert_eq!(answers(&mut cluster), ["3", "3", "3"].map(|text| Some(text.to_owned())));
    let reply = cluster.node(1).replies.iter().find(|reply| matches!(reply.payload, Payload::Deployment(..)));
    let key = deployed(reply.expect("an answer")).decision_requirements_metadata[0].decision_requirements_key;
    let (before, after) = (cluster.count("DECISION", "DELETED"), cluster.submit(1, Key::NONE, deletion(key)));
    assert_eq!((before, after.map(|reply| reply.rejection)), (0, None), "it is answered when all have heard of it");
    cluster.settle();
    let reply = cluster.node(1).replies.last().cloned().expect("an answer");
    assert!(matches!(reply.payload, Payload::ResourceDeletion(ResourceDeletionIntent::Deleted, _)));
    assert_eq!(cluster.count("DECISION", "DELETED"), 3);
    for node in &cluster.nodes {
        for record in &node.records {
            match &record.payload {
                Payload::Decision(DecisionIntent::Deleted, value) => assert_eq!(record.key, value.decision_key),
                Payload::DecisionRequirements(DecisionRequirementsIntent::Deleted, _) => assert_eq!(record.key, key),
                _ => {}
            }
        }
    }
    assert_eq!(answers(&mut cluster), [None, None, None]);
    assert_eq!(cluster.rows_but(&["outbox_sequences", "inbox_sequences"]), Vec::<String>::new());
    cluster.check();
}
