//! User tasks and forms in the read model: what is found is what the records say, whatever is folded together.

#[path = "support/postgresql.rs"]
mod postgresql;
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use protocol::{
    BpmnElementType, FormIntent, FormMetadata, FormValue, Key, PartitionId, Payload, ProcessInstanceIntent,
    ProcessInstanceValue, ProcessIntent, ProcessMetadata, ProcessValue, Record, UserTaskIntent, UserTaskValue,
    VariableIntent, VariableValue,
};
use readmodel::query::{Condition, FORMS, Search, Sort, Test, USER_TASKS, VARIABLES, Value, VariableScope};
use readmodel::{Audited, ReadModel};
use serde_json::Value as Json;
use support::{PARTITIONS, ask, folded};

const FIRST: PartitionId = PARTITIONS[0];
const BEGIN: i64 = 1_700_000_000_000;

fn key(number: u64) -> Key {
    Key::new(FIRST, number)
}

/// The records of a partition.
#[derive(Default)]
struct Records(Vec<Record>);

impl Records {
    fn add(&mut self, key: Key, payload: Payload) {
        let position = self.0.len() as u64 + 1;
        self.0.push(Record::event(position, BEGIN + position as i64, key, payload));
    }

    fn definition(&mut self, model: &str) {
        let metadata = ProcessMetadata {
            bpmn_process_id: "p".into(),
            version: 3,
            version_tag: "".into(),
            process_definition_key: key(1),
            resource_name: "p.bpmn".into(),
            checksum: Arc::default(),
            duplicate: false,
            deployment_key: Key::NONE,
            tenant_id: "<default>".into(),
        };
        let value = ProcessValue { metadata, resource: Arc::from(model.as_bytes()) };
        self.add(key(1), Payload::Process(ProcessIntent::Created, Box::new(value)));
    }

    fn element(&mut self, number: u64, scope: Key, id: &str, element_type: BpmnElementType) {
        let value = ProcessInstanceValue {
            bpmn_process_id: "p".into(),
            version: 3,
            process_definition_key: key(1),
            process_instance_key: key(10),
            element_id: id.into(),
            flow_scope_key: scope,
            bpmn_element_type: element_type,
            ..ProcessInstanceValue::default()
        };
        self.add(key(number), Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, Arc::new(value)));
    }

    fn variable(&mut self, number: u64, scope: u64, name: &str, json: &str) {
        let value = VariableValue {
            name: name.into(),
            value: json.into(),
            scope_key: key(scope),
            process_instance_key: key(10),
            process_definition_key: key(1),
            bpmn_process_id: "p".into(),
            tenant_id: "<default>".into(),
        };
        self.add(key(number), Payload::Variable(VariableIntent::Created, Box::new(value)));
    }

    fn form(&mut self, number: u64, version: i32, intent: FormIntent) {
        let metadata = FormMetadata {
            form_id: "greet".into(),
            version,
            version_tag: "".into(),
            form_key: key(number),
            resource_name: "greet.form".into(),
            checksum: Arc::default(),
            duplicate: false,
            deployment_key: Key::NONE,
            tenant_id: "<default>".into(),
        };
        let resource = format!("{{\"version\":{version}}}");
        let value = FormValue { metadata, resource: Arc::from(resource.as_bytes()) };
        self.add(key(number), Payload::Form(intent, Box::new(value)));
    }

    fn task(&mut self, number: u64, intent: UserTaskIntent, value: UserTaskValue) {
        let value = UserTaskValue {
            user_task_key: key(number),
            element_id: "ask".into(),
            process_definition_key: key(1),
            process_instance_key: key(10),
            tenant_id: "<default>".into(),
            ..value
        };
        self.add(key(number), Payload::UserTask(intent, Box::new(value)));
    }
}

/// A process instance with a sub-process and two user tasks in it, one of which is done.
fn history() -> Records {
    let mut records = Records::default();
    records.definition(
        "<b:definitions xmlns:b=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" \
         xmlns:z=\"http://camunda.org/schema/zeebe/1.0\"><b:process id=\"p\" name=\"Process\"><b:startEvent id=\"s\">\
         <b:extensionElements><z:formDefinition formId=\"greet\"/></b:extensionElements></b:startEvent>\
         <b:userTask id=\"ask\" name=\"Ask\"/></b:process></b:definitions>",
    );
    for (number, version) in [(5, 1), (6, 2)] {
        records.form(number, version, FormIntent::Created);
    }
    records.element(10, Key::NONE, "p", BpmnElementType::Process);
    records.element(11, key(10), "inner", BpmnElementType::SubProcess);
    records.element(12, key(11), "ask", BpmnElementType::UserTask);
    records.element(13, key(11), "ask", BpmnElementType::UserTask);
    for (number, scope, name, json) in
        [(20, 10, "a", "1"), (21, 11, "a", "2"), (22, 12, "a", "3"), (23, 10, "b", "4"), (24, 13, "c", "5")]
    {
        records.variable(number, scope, name, json);
    }
    let open = UserTaskValue {
        element_instance_key: key(12),
        assignee: "ann".into(),
        candidate_groups_list: vec!["sales".into(), "support".into()],
        candidate_users_list: vec!["bob".into()],
        due_date: "2030-01-01T00:00Z".into(),
        form_key: key(5),
        custom_headers: "{\"h\":\"v\"}".into(),
        creation_timestamp: BEGIN,
        priority: 70,
        ..UserTaskValue::default()
    };
    records.task(30, UserTaskIntent::Creating, UserTaskValue { assignee: "".into(), ..open.clone() });
    records.task(30, UserTaskIntent::Created, UserTaskValue { assignee: "".into(), ..open.clone() });
    records.task(30, UserTaskIntent::Assigning, open.clone());
    records.task(30, UserTaskIntent::Assigned, open.clone());
    let done = UserTaskValue { element_instance_key: key(13), candidate_groups_list: vec!["old".into()], ..open };
    records.task(31, UserTaskIntent::Created, done.clone());
    let done = UserTaskValue { candidate_groups_list: vec!["sales".into()], assignee: "bob".into(), ..done };
    records.task(31, UserTaskIntent::Updated, done.clone());
    records.task(31, UserTaskIntent::Completing, done.clone());
    records.task(31, UserTaskIntent::Completed, done);
    records
}

fn found(model: &ReadModel, search: Search) -> Vec<Json> {
    let found = ask(model, move |readers| search.run(readers)).expect("it is found");
    found.items.iter().map(|item| serde_json::from_slice(item).expect("JSON")).collect()
}

fn is(name: &str, tests: Vec<Test>) -> Condition {
    Condition::Is(USER_TASKS.field(name).expect("a field"), tests)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// The history in both kinds of read models.
fn both() -> [(Arc<ReadModel>, Option<tempfile::TempDir>); 2] {
    folded(Audited::default(), &[history().0, without_tasks()], &[])
}

/// What the other partition has.
fn without_tasks() -> Vec<Record> {
    let mut records = Records::default();
    records.definition("<no model>");
    records.0
}

#[test]
fn a_task_is_shown_with_all_that_is_known_of_it() {
    for (model, _directory) in &both() {
        is_shown(model);
    }
}

fn is_shown(model: &ReadModel) {
    let mut search = Search::new(&USER_TASKS, Condition::always());
    search.sort = vec![Sort { field: USER_TASKS.field("creationDate").expect("a field"), descending: false }];
    let tasks = found(model, search);
    assert_eq!(tasks.len(), 2);
    assert_eq!(
        tasks[0],
        serde_json::json!({
            "name": "Ask", "state": "CREATED", "assignee": "ann", "elementId": "ask",
            "candidateGroups": ["sales", "support"], "candidateUsers": ["bob"], "processDefinitionId": "p",
            "creationDate": "2023-11-14T22:13:20.000Z", "completionDate": null, "followUpDate": null,
            "dueDate": "2030-01-01T00:00:00.000Z", "tenantId": "<default>", "externalFormReference": null,
            "processDefinitionVersion": 3, "customHeaders": {"h": "v"}, "userTaskKey": key(30).to_string(),
            "elementInstanceKey": key(12).to_string(), "processName": "Process",
            "processDefinitionKey": key(1).to_string(), "processInstanceKey": key(10).to_string(),
            "rootProcessInstanceKey": key(10).to_string(), "businessId": null, "formKey": key(5).to_string(),
            "tags": [], "priority": 70,
        })
    );
    assert_eq!((&tasks[1]["state"], &tasks[1]["completionDate"].is_null()), (&"COMPLETED".into(), &false));
    assert_eq!(tasks[1]["candidateGroups"], serde_json::json!(["sales"]));
}

#[test]
fn filters_find_tasks_by_what_they_are_and_by_variables() {
    for (model, _directory) in &both() {
        is_found(model);
    }
}

fn is_found(model: &ReadModel) {
    let of = |scope, name: &str, json: &str| Condition::VariableOf(scope, name.into(), vec![Test::Equal(text(json))]);
    let open = Value::Integer(1);
    let (first, second) = (vec![30], vec![31]);
    let both = vec![30, 31];
    for (condition, expected) in [
        (is("assignee", vec![Test::Equal(text("ann"))]), &first),
        (is("state", vec![Test::Equal(open)]), &first),
        (is("candidateGroup", vec![Test::Equal(text("support"))]), &first),
        (is("candidateGroup", vec![Test::In(vec![text("sales"), text("x")])]), &both),
        (is("candidateGroup", vec![Test::Equal(text("old"))]), &Vec::new()),
        (is("candidateUser", vec![Test::Like("b*".into())]), &both),
        (is("name", vec![Test::Equal(text("Ask"))]), &both),
        (is("priority", vec![Test::Greater(Value::Integer(70))]), &Vec::new()),
        (is("completionDate", vec![Test::Exists(true)]), &second),
        (is("dueDate", vec![Test::Less(Value::Integer(i64::MAX))]), &both),
        (of(VariableScope::ProcessInstance, "a", "1"), &both),
        (of(VariableScope::ProcessInstance, "a", "3"), &Vec::new()),
        (of(VariableScope::ElementInstance, "a", "3"), &first),
        (of(VariableScope::ElementInstance, "c", "5"), &second),
        (of(VariableScope::ElementInstance, "b", "4"), &Vec::new()),
    ] {
        let told = format!("{condition:?}");
        let mut keys: Vec<u64> = found(model, Search::new(&USER_TASKS, condition))
            .iter()
            .map(|task| task["userTaskKey"].as_str().expect("a key").parse().map(Key::from_raw).expect("a number"))
            .map(Key::counter)
            .collect();
        keys.sort_unstable();
        assert_eq!(&keys, expected, "{told}");
    }
}

#[test]
fn a_task_sees_variables_from_the_inside_out() {
    for (model, _directory) in &both() {
        sees_variables(model);
    }
}

fn sees_variables(model: &ReadModel) {
    let place = ask(model, |readers| readers.task_place(FIRST, key(30).raw())).expect("readable").expect("a task");
    assert_eq!((place.element_instance, place.form), (key(12).raw(), Some(key(5).raw())));
    let seen = |is_effective| {
        let condition = Condition::Seen {
            element_instance: place.element_instance,
            process_instance: place.process_instance,
            is_effective,
        };
        let rows = found(model, Search::new(&VARIABLES, condition));
        let mut seen: Vec<String> =
            rows.iter().map(|row| format!("{}={}", row["name"], row["value"]).replace('"', "")).collect();
        seen.sort();
        seen
    };
    assert_eq!(seen(false), ["a=1", "a=2", "a=3", "b=4"]);
    assert_eq!(seen(true), ["a=3", "b=4"]);
    assert_eq!(ask(model, |readers| readers.task_place(FIRST, key(12).raw())).expect("readable"), None);
}

#[test]
fn a_process_begins_with_the_newest_form_that_is_left() {
    let mut records = history();
    let start_form = |records: &Records| {
        let [of_file, of_server] =
            folded(Audited::default(), &[records.0.clone(), without_tasks()], &[]).map(|(model, _directory)| {
                let forms = found(&model, Search::new(&FORMS, Condition::always()));
                assert_eq!(forms.len(), 2, "a deleted form can be read");
                ask(&model, |readers| readers.start_form(key(1).raw())).expect("readable")
            });
        assert_eq!(of_file, of_server);
        of_file
    };
    assert_eq!(start_form(&records), Some(key(6).raw()));
    records.form(6, 2, FormIntent::Deleted);
    assert_eq!(start_form(&records), Some(key(5).raw()));
    records.form(5, 1, FormIntent::Deleted);
    assert_eq!(start_form(&records), None);
}

/// What may happen to a task, with the state that it is in afterwards.
const STEPS: &[(UserTaskIntent, Option<&str>)] = &[
    (UserTaskIntent::Assigning, Some("ASSIGNING")),
    (UserTaskIntent::Claiming, Some("ASSIGNING")),
    (UserTaskIntent::Assigned, Some("CREATED")),
    (UserTaskIntent::Updating, Some("UPDATING")),
    (UserTaskIntent::Updated, Some("CREATED")),
    (UserTaskIntent::Corrected, None),
    (UserTaskIntent::Completing, Some("COMPLETING")),
    (UserTaskIntent::CompletionDenied, Some("CREATED")),
    (UserTaskIntent::Canceling, Some("CANCELING")),
    (UserTaskIntent::Migrated, None),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_read_model_is_the_fold_of_the_records(
        steps in prop::collection::vec((0_u64..4, 0..STEPS.len(), 0_u8..3, 0..100), 1..60),
        crashes in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let mut records = Records::default();
        records.definition("<no model>");
        let mut expected: BTreeMap<u64, (String, String, i32)> = BTreeMap::new();
        for (task, step, who, priority) in steps {
            let number = 100 + task;
            let names = ["", "ann", "bob"];
            let value = UserTaskValue {
                element_instance_key: key(12),
                assignee: names[usize::from(who)].into(),
                candidate_groups_list: vec![names[usize::from(who)].into()],
                priority,
                creation_timestamp: BEGIN,
                ..UserTaskValue::default()
            };
            let (intent, state) = match expected.contains_key(&number) {
                true => STEPS[step],
                false => (UserTaskIntent::Creating, Some("CREATING")),
            };
            let row = expected.entry(number).or_default();
            if let Some(state) = state {
                row.0 = state.to_owned();
            }
            // What is announced or corrected is not true before no listener can deny it.
            let is_true = !matches!(
                intent,
                UserTaskIntent::Assigning
                    | UserTaskIntent::Claiming
                    | UserTaskIntent::Updating
                    | UserTaskIntent::Completing
                    | UserTaskIntent::Corrected
            );
            if is_true {
                (row.1, row.2) = (value.assignee.to_string(), priority);
            }
            records.task(number, intent, value);
        }
        for (model, _directory) in &folded(Audited::default(), &[records.0, without_tasks()], &crashes) {
        let tasks = found(model, Search::new(&USER_TASKS, Condition::always()));
        let shown: BTreeMap<u64, (String, String, i32)> = tasks
            .iter()
            .map(|task| {
                let text = |name: &str| task[name].as_str().unwrap_or_default().to_owned();
                let number = Key::from_raw(text("userTaskKey").parse().expect("a key")).counter();
                (number, (text("state"), text("assignee"), task["priority"].as_i64().expect("a number") as i32))
            })
            .collect();
        prop_assert_eq!(shown, expected.clone());
        let of_ann = found(model, Search::new(&USER_TASKS, is("candidateGroup", vec![Test::Equal(text("ann"))])));
        prop_assert_eq!(of_ann.len(), expected.values().filter(|(_, who, _)| who == "ann").count());
        }
    }
}
