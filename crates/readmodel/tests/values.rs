//! Values of variables in both stores: found by any spelling.

#[path = "support/postgresql.rs"]
mod postgresql;
mod support;

use std::sync::Arc;

use protocol::{
    BpmnElementType, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessInstanceValue, ProcessIntent,
    ProcessMetadata, ProcessValue, Record, VariableIntent, VariableValue,
};
use readmodel::query::{Condition, Readers, Search, Test, VARIABLES, Value};
use readmodel::{Audited, Noted};
use support::{PARTITIONS, ask, folded};

const FIRST: PartitionId = PARTITIONS[0];

/// A definition, and an instance of it.
fn beginning() -> [Record; 2] {
    let metadata = ProcessMetadata {
        bpmn_process_id: "p".into(),
        version: 1,
        version_tag: "".into(),
        process_definition_key: Key::new(FIRST, 2),
        resource_name: "p.bpmn".into(),
        checksum: Arc::default(),
        duplicate: false,
        deployment_key: Key::NONE,
        tenant_id: protocol::DEFAULT_TENANT.into(),
    };
    let process = Payload::Process(
        ProcessIntent::Created,
        Box::new(ProcessValue { metadata, resource: Arc::from(&b"<no model>"[..]) }),
    );
    let instance = ProcessInstanceValue {
        bpmn_process_id: "p".into(),
        version: 1,
        process_definition_key: Key::new(FIRST, 2),
        process_instance_key: Key::new(FIRST, 1),
        element_id: "p".into(),
        bpmn_element_type: BpmnElementType::Process,
        tenant_id: protocol::DEFAULT_TENANT.into(),
        ..ProcessInstanceValue::default()
    };
    let begun = Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, Arc::new(instance));
    [Record::event(1, 1, Key::new(FIRST, 2), process), Record::event(2, 1, Key::new(FIRST, 1), begun)]
}

fn variable(position: u64, value: &str) -> Record {
    let payload = VariableValue {
        name: "v".into(),
        value: value.into(),
        scope_key: Key::new(FIRST, 1),
        process_instance_key: Key::new(FIRST, 1),
        process_definition_key: Key::new(FIRST, 2),
        bpmn_process_id: "p".into(),
        tenant_id: protocol::DEFAULT_TENANT.into(),
    };
    let payload = Payload::Variable(VariableIntent::Created, Box::new(payload));
    Record::event(position, 1, Key::new(FIRST, 10 + position), payload)
}

#[test]
fn equal_values_are_found_in_both_stores() {
    let long = |number: &str| format!("{{\"text\":\"{}\",\"number\":{number}}}", "ü".repeat(500));
    let values = ["\"Zürich\"", "1.0", r#"{"id":7,"lines":[1,2]}"#, &long("1.0"), &long("2"), r#""\u0000""#];
    let variables = (3..).zip(values).map(|(position, value)| variable(position, value));
    let records = beginning().into_iter().chain(variables).collect();
    // Whose doing variables are is not looked for in the records behind them.
    let none = Audited { users: Noted::NONE, clients: Noted::NONE, anonymous: Noted::NONE, engine: Noted::NONE };
    let folded = folded(none, &[records, Vec::new()], &[]);
    let field = VARIABLES.field("value").expect("a field");
    let text = |value: &str| Value::Text(value.to_owned());
    for (model, _directory) in &folded {
        for (test, expected) in [
            (Test::Equal(text(r#""Z\u00fcrich""#)), vec![0]),
            (Test::Equal(text("1")), vec![1]),
            (Test::In(vec![text("10e-1"), text("{\"id\": 7, \"lines\": [1, 2.0]}")]), vec![1, 2]),
            (Test::Equal(text(&long("1").replace('ü', "\\u00fc"))), vec![3]),
            (Test::Equal(text(r#""\u0000""#)), vec![5]),
            (Test::NotEqual(text("1")), vec![0, 2, 3, 4, 5]),
            (Test::NotIn(vec![text("1e0"), text(&long("2.0"))]), vec![0, 2, 3, 5]),
            (Test::Like("*rich\"".to_owned()), vec![0]),
            (Test::Equal(text("Zürich")), vec![]),
        ] {
            let search = Search::new(&VARIABLES, Condition::Is(field, vec![test.clone()]));
            let found = ask(model, move |readers| find(readers, &search));
            let expected: Vec<i64> = expected.into_iter().map(|at| Key::new(FIRST, 13 + at).raw()).collect();
            assert_eq!(found, expected, "{test:?}");
        }
    }
}

fn find(readers: &mut Readers, search: &Search) -> Vec<i64> {
    let found = search.run(readers).expect("it is found");
    let key = |item: &Vec<u8>| {
        let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
        item["variableKey"].as_str().expect("a key").parse().expect("a number")
    };
    found.items.iter().map(key).collect()
}
