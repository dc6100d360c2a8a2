//! The document says what the code does.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::object::ASKED;
use super::super::{
    ad_hoc_sub_process, clock, conditional, decision, expression, global_listener, incident, job, message,
    modification, process_instance, resource, signal, user_task, variable,
};
use super::*;

fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.values().flat_map(|path| path.as_object().expect("methods").values());
    operations.map(|operation| operation["operationId"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn exactly_the_operations_that_exist_are_described() {
    let exist = OPERATIONS.iter().filter(|operation| Existing::of_name(operation.name).is_some());
    let exist: BTreeSet<String> = exist.map(|operation| operation.name.to_owned()).collect();
    assert_eq!(operations(&document()), exist);
}

/// What is asked of the body of a request.
fn asked(read: impl FnOnce(&[u8]) -> bool, body: &Value) -> BTreeSet<String> {
    ASKED.take();
    // Whether the request means something is not the question.
    let _ = read(body.to_string().as_bytes());
    ASKED.take()
}

#[test]
fn commands_take_the_properties_that_are_described() {
    type Reader = fn(&[u8]) -> bool;
    let readers: [(&str, Reader); 24] = [
        ("createProcessInstance", |body| process_instance::creation(body).is_ok()),
        ("cancelProcessInstance", |body| process_instance::cancellation("1", body).is_ok()),
        ("modifyProcessInstance", |body| modification::modification("1", body).is_ok()),
        ("migrateProcessInstance", |body| modification::migration("1", body).is_ok()),
        ("createElementInstanceVariables", |body| variable::change("1", body).is_ok()),
        ("activateJobs", |body| job::activation(body).is_ok()),
        ("activateAdHocSubProcessActivities", |body| ad_hoc_sub_process::activation("1", body).is_ok()),
        ("completeJob", |body| job::completion("1", body).is_ok()),
        ("failJob", |body| job::failure("1", body).is_ok()),
        ("throwJobError", |body| job::error("1", body).is_ok()),
        ("updateJob", |body| job::update("1", body).is_ok()),
        ("resolveIncident", |body| incident::resolution("1", body).is_ok()),
        ("publishMessage", |body| message::publication(body).is_ok()),
        ("correlateMessage", |body| message::correlation(body).is_ok()),
        ("broadcastSignal", |body| signal::broadcast(body).is_ok()),
        ("evaluateConditionals", |body| conditional::evaluation(body).is_ok()),
        ("evaluateDecision", |body| decision::evaluation(body).is_ok()),
        ("completeUserTask", |body| user_task::completion("1", body).is_ok()),
        ("assignUserTask", |body| user_task::assignment("1", body).is_ok()),
        ("updateUserTask", |body| user_task::update("1", body).is_ok()),
        ("evaluateExpression", |body| expression::evaluation(body).is_ok()),
        ("createGlobalTaskListener", |body| global_listener::creation(body).is_ok()),
        ("updateGlobalTaskListener", |body| global_listener::update("a", body).is_ok()),
        ("deleteResource", |body| resource::deletion("1", body).is_ok()),
    ];
    for (name, read) in readers.into_iter().chain([("pinClock", (|body| clock::pin(body).is_ok()) as Reader)]) {
        let schema = commands::described(name).request.expect("it has a body").1;
        let described: BTreeSet<String> =
            schema["properties"].as_object().expect("an object").keys().cloned().collect();
        // Without these nothing else is looked at.
        let body = match name {
            "publishMessage" | "correlateMessage" => json!({"name": "m"}),
            "broadcastSignal" => json!({"signalName": "s"}),
            "evaluateConditionals" => json!({"variables": {}}),
            "createProcessInstance" => json!({"processDefinitionId": "p"}),
            _ => json!({}),
        };
        assert_eq!(asked(read, &body), described, "{name}");
    }
}

#[test]
fn references_lead_somewhere() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    let pointer = reference.strip_prefix('#').expect("within the document");
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                object.values().for_each(|value| check(document, value));
            }
            Value::Array(list) => list.iter().for_each(|value| check(document, value)),
            _ => {}
        }
    }
    let document = document();
    check(&document, &document);
}
