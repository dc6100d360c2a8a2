//! Who did what: an entry for each doing that is to be noted, whatever is folded together.

#[path = "support/postgresql.rs"]
mod postgresql;
mod support;

use std::sync::Arc;

use proptest::prelude::*;
use protocol::{
    Actor, BpmnElementType, DecisionEvaluationIntent, DecisionEvaluationValue, DecisionIntent,
    DecisionRequirementsIntent, DecisionRequirementsMetadata, DecisionRequirementsValue, DecisionValue, FormIntent,
    FormMetadata, FormValue, Identity, IncidentIntent, IncidentValue, Key, Payload, ProcessInstanceCreationIntent,
    ProcessInstanceCreationValue, ProcessInstanceIntent, ProcessInstanceMigrationIntent, ProcessInstanceMigrationValue,
    ProcessInstanceModificationIntent, ProcessInstanceModificationValue, ProcessInstanceValue, ProcessIntent,
    ProcessMetadata, ProcessValue, Record, RecordType, Rejection, ResourceIntent, ResourceMetadata, ResourceValue,
    UserTaskIntent, UserTaskValue, VariableDocumentIntent, VariableDocumentUpdateSemantics, VariableDocumentValue,
    VariableIntent, VariableValue,
};
use readmodel::query::{AUDIT_LOGS, Condition, Search, Sort, Value};
use readmodel::{Audited, Noted, ReadModel};
use serde_json::{Value as Json, json};
use support::{PARTITIONS, ask, folded};

const BEGIN: i64 = 1_700_000_000_000;
const INSTANCE: u64 = 10;

fn key(number: u64) -> Key {
    Key::new(PARTITIONS[0], number)
}

/// The records of a partition, of which each command has a position too.
#[derive(Default)]
struct Records {
    records: Vec<Record>,
    position: u64,
    source: u64,
    actor: Actor,
}

impl Records {
    /// What follows is what a command of this one does.
    fn command(&mut self, actor: &Actor) {
        self.position += 1;
        self.source = self.position;
        self.actor = actor.clone();
    }

    fn event(&mut self, key: Key, payload: Payload) {
        self.position += 1;
        let of = Record::event(self.position, BEGIN + self.position as i64, key, payload);
        let number = self.records.len() as u64 + 1;
        self.records.push(Record { number, source_position: self.source, actor: self.actor.clone(), ..of });
    }

    fn refused(&mut self, key: Key, payload: Payload, rejection: Rejection) {
        self.event(key, payload);
        self.records.last_mut().expect("it was added").record_type = RecordType::Rejection(rejection);
    }

    fn element(&mut self, number: u64, intent: ProcessInstanceIntent, parent: Key) {
        let value = ProcessInstanceValue {
            bpmn_process_id: "p".into(),
            version: 1,
            process_definition_key: key(1),
            process_instance_key: key(number),
            element_id: "p".into(),
            bpmn_element_type: BpmnElementType::Process,
            parent_process_instance_key: parent,
            tenant_id: "<default>".into(),
            ..ProcessInstanceValue::default()
        };
        self.event(key(number), Payload::ProcessInstance(intent, Arc::new(value)));
    }

    fn variable(&mut self, number: u64, intent: VariableIntent, name: &str) {
        let value = VariableValue {
            name: name.into(),
            value: "1".into(),
            scope_key: key(INSTANCE),
            process_instance_key: key(INSTANCE),
            process_definition_key: key(1),
            bpmn_process_id: "p".into(),
            tenant_id: "<default>".into(),
        };
        self.event(key(number), Payload::Variable(intent, Box::new(value)));
    }

    fn document(&mut self, number: u64) {
        let value = VariableDocumentValue {
            scope_key: key(INSTANCE),
            update_semantics: VariableDocumentUpdateSemantics::Local,
            variables: "{}".into(),
            tenant_id: "<default>".into(),
        };
        self.event(key(number), Payload::VariableDocument(VariableDocumentIntent::Updated, Box::new(value)));
    }

    fn process(&mut self, intent: ProcessIntent) {
        let metadata = ProcessMetadata {
            bpmn_process_id: "p".into(),
            version: 1,
            version_tag: "".into(),
            process_definition_key: key(1),
            resource_name: "p.bpmn".into(),
            checksum: Arc::default(),
            duplicate: false,
            deployment_key: key(2),
            tenant_id: "<default>".into(),
        };
        let value = ProcessValue { metadata, resource: Arc::from(&b"<p/>"[..]) };
        self.event(key(1), Payload::Process(intent, Box::new(value)));
    }

    fn decisions(&mut self, intents: (DecisionRequirementsIntent, DecisionIntent)) {
        let metadata = DecisionRequirementsMetadata {
            decision_requirements_id: "graph".into(),
            decision_requirements_name: "Graph".into(),
            decision_requirements_version: 1,
            decision_requirements_key: key(3),
            namespace: "n".into(),
            resource_name: "g.dmn".into(),
            checksum: Arc::default(),
            duplicate: false,
            tenant_id: "<default>".into(),
        };
        let value = DecisionRequirementsValue { metadata, resource: Arc::from(&b"<d/>"[..]) };
        self.event(key(3), Payload::DecisionRequirements(intents.0, Box::new(value)));
        let value = DecisionValue {
            decision_id: "dish".into(),
            decision_name: "Dish".into(),
            version: 1,
            version_tag: "".into(),
            decision_key: key(4),
            decision_requirements_id: "graph".into(),
            decision_requirements_key: key(3),
            duplicate: false,
            deployment_key: key(2),
            tenant_id: "<default>".into(),
        };
        self.event(key(4), Payload::Decision(intents.1, Box::new(value)));
    }

    fn form(&mut self, intent: FormIntent) {
        let metadata = FormMetadata {
            form_id: "f".into(),
            version: 1,
            version_tag: "".into(),
            form_key: key(5),
            resource_name: "f.form".into(),
            checksum: Arc::default(),
            duplicate: false,
            deployment_key: key(2),
            tenant_id: "<default>".into(),
        };
        let value = FormValue { metadata, resource: Arc::from(&b"{}"[..]) };
        self.event(key(5), Payload::Form(intent, Box::new(value)));
    }

    fn script(&mut self, intent: ResourceIntent) {
        let metadata = ResourceMetadata {
            resource_id: "r".into(),
            resource_key: key(6),
            resource_name: "r.rpa".into(),
            deployment_key: key(2),
            tenant_id: "<default>".into(),
            ..ResourceMetadata::default()
        };
        let value = ResourceValue { metadata, resource_prop: "{}".into() };
        self.event(key(6), Payload::Resource(intent, Box::new(value)));
    }

    fn evaluation(&mut self, number: u64, intent: DecisionEvaluationIntent, of: DecisionEvaluationValue) {
        let value = DecisionEvaluationValue {
            decision_key: key(4),
            decision_id: "dish".into(),
            decision_requirements_id: "graph".into(),
            decision_requirements_key: key(3),
            tenant_id: "<default>".into(),
            ..of
        };
        self.event(key(number), Payload::DecisionEvaluation(intent, Box::new(value)));
    }
}

fn modification() -> Payload {
    let value = ProcessInstanceModificationValue {
        process_instance_key: key(INSTANCE),
        ..ProcessInstanceModificationValue::default()
    };
    Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, Box::new(value))
}

fn migration(intent: ProcessInstanceMigrationIntent) -> Payload {
    let value = ProcessInstanceMigrationValue {
        process_instance_key: key(INSTANCE),
        target_process_definition_key: key(1),
        ..ProcessInstanceMigrationValue::default()
    };
    Payload::ProcessInstanceMigration(intent, Box::new(value))
}

fn creation() -> Payload {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: "p".into(),
        process_definition_key: key(1),
        process_instance_key: key(INSTANCE),
        tenant_id: "<default>".into(),
        ..ProcessInstanceCreationValue::default()
    };
    Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, Box::new(value))
}

fn incident(intent: IncidentIntent) -> Payload {
    let value = IncidentValue {
        process_definition_key: key(1),
        process_instance_key: key(INSTANCE),
        element_id: "t".into(),
        element_instance_key: key(20),
        job_key: key(21),
        ..IncidentValue::default()
    };
    Payload::Incident(intent, Box::new(value))
}

fn task(intent: UserTaskIntent, assignee: &str) -> Payload {
    let value = UserTaskValue {
        user_task_key: key(30),
        assignee: assignee.into(),
        element_id: "ask".into(),
        element_instance_key: key(31),
        process_definition_key: key(1),
        process_instance_key: key(INSTANCE),
        tenant_id: "<default>".into(),
        ..UserTaskValue::default()
    };
    Payload::UserTask(intent, Box::new(value))
}

/// Everything that can be noted, done by one actor.
fn history(actor: &Actor) -> Records {
    let mut records = Records::default();
    records.command(actor);
    records.process(ProcessIntent::Created);
    records.decisions((DecisionRequirementsIntent::Created, DecisionIntent::Created));
    records.form(FormIntent::Created);
    records.script(ResourceIntent::Created);
    records.command(actor);
    // The variables that an instance begins with are none that somebody set in it.
    records.variable(11, VariableIntent::Created, "given");
    records.element(INSTANCE, ProcessInstanceIntent::ElementActivating, Key::NONE);
    records.event(key(12), creation());
    records.element(50, ProcessInstanceIntent::ElementActivating, key(INSTANCE));
    records.command(actor);
    // Nor those that are the outcome of something in between, of which nothing is read.
    records.variable(17, VariableIntent::Created, "mapped");
    records.element(INSTANCE, ProcessInstanceIntent::ElementActivated, Key::NONE);
    for (number, intent, name) in [(13, VariableIntent::Created, "new"), (11, VariableIntent::Updated, "given")] {
        records.variable(number, intent, name);
    }
    records.document(14);
    records.command(actor);
    records.event(key(30), task(UserTaskIntent::Assigned, "ann"));
    records.command(actor);
    records.event(key(30), task(UserTaskIntent::Assigned, ""));
    records.command(actor);
    records.event(key(30), task(UserTaskIntent::Updating, ""));
    records.variable(13, VariableIntent::Updated, "new");
    records.event(key(30), task(UserTaskIntent::Updated, ""));
    records.document(15);
    records.command(actor);
    records.event(key(30), task(UserTaskIntent::Completed, ""));
    records.variable(16, VariableIntent::Created, "outcome");
    records.element(INSTANCE, ProcessInstanceIntent::ElementActivated, Key::NONE);
    records.command(actor);
    records.event(key(22), incident(IncidentIntent::Created));
    records.command(actor);
    records.event(key(22), incident(IncidentIntent::Resolved));
    records.command(actor);
    records.evaluation(40, DecisionEvaluationIntent::Evaluated, DecisionEvaluationValue::default());
    records.command(actor);
    let in_instance = DecisionEvaluationValue {
        process_definition_key: key(1),
        process_instance_key: key(INSTANCE),
        element_instance_key: key(23),
        ..DecisionEvaluationValue::default()
    };
    records.evaluation(41, DecisionEvaluationIntent::Failed, in_instance);
    records.command(actor);
    records.event(key(INSTANCE), modification());
    records.command(actor);
    records.event(key(INSTANCE), migration(ProcessInstanceMigrationIntent::Migrated));
    records.command(actor);
    records.element(INSTANCE, ProcessInstanceIntent::ElementTerminating, Key::NONE);
    records.element(50, ProcessInstanceIntent::ElementTerminating, key(INSTANCE));
    records.command(actor);
    // What ends because a called process does, or behind something else, was not cancelled by anybody.
    records.element(51, ProcessInstanceIntent::ElementTerminating, key(INSTANCE));
    records.element(52, ProcessInstanceIntent::ElementTerminating, Key::NONE);
    refusals(&mut records, actor);
    records.command(actor);
    records.decisions((DecisionRequirementsIntent::Deleted, DecisionIntent::Deleted));
    records.form(FormIntent::Deleted);
    records.script(ResourceIntent::Deleted);
    records.process(ProcessIntent::Deleted);
    records
}

fn refusals(records: &mut Records, actor: &Actor) {
    let cancel = || Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
    let resolve = || Payload::Incident(IncidentIntent::Resolve, Box::default());
    let migrate = || migration(ProcessInstanceMigrationIntent::Migrate);
    for (of, payload, rejection) in [
        (50, cancel(), Rejection::invalid_state("a child")),
        (99, cancel(), Rejection::not_found("unknown")),
        (22, resolve(), Rejection::invalid_state("no retries")),
        (22, resolve(), Rejection::not_found("gone")),
        (INSTANCE, migrate(), Rejection::invalid_state("not active there")),
        (INSTANCE, migrate(), Rejection::invalid_argument("no such element")),
        (30, task(UserTaskIntent::Claim, "eve"), Rejection::invalid_state("taken")),
        (30, task(UserTaskIntent::Complete, ""), Rejection::invalid_state("completing")),
        (INSTANCE, modification(), Rejection::invalid_state("only what was done is noted")),
        (0, creation(), Rejection::invalid_state("the same of creations")),
    ] {
        records.command(actor);
        records.refused(key(of), payload, rejection);
    }
}

/// Entries in the order in which they were made, with the fields that say something.
fn entries(model: &ReadModel, condition: Condition) -> Vec<Json> {
    let mut search = Search::new(&AUDIT_LOGS, condition);
    search.sort = vec![Sort { field: AUDIT_LOGS.field("auditLogKey").expect("a field"), descending: false }];
    let found = ask(model, move |readers| search.run(readers)).expect("a search");
    let rows = found.items.iter().map(|row| serde_json::from_slice(row).expect("JSON"));
    rows.map(|mut row: Json| {
        row.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        row
    })
    .collect()
}

/// Operation, entity with its key, result, and what else is said than the category, the time, the actor and the tenant.
fn expected() -> Vec<(&'static str, &'static str, u64, &'static str, Json)> {
    let of = |number| key(number).to_string();
    let (instance, process) = (of(INSTANCE), of(1));
    let running = json!({"processInstanceKey": instance, "rootProcessInstanceKey": instance,
        "processDefinitionKey": process, "processDefinitionId": "p"});
    let with = |more: Json| {
        let mut all = running.clone();
        all.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        all
    };
    let graph = json!({"decisionRequirementsKey": of(3), "decisionRequirementsId": "graph",
        "entityDescription": "g.dmn"});
    let decision = json!({"decisionRequirementsKey": of(3), "decisionRequirementsId": "graph", "deploymentKey": of(2),
        "decisionDefinitionKey": of(4), "decisionDefinitionId": "dish", "entityDescription": "Dish"});
    let evaluated = |number| {
        json!({"decisionRequirementsKey": of(3), "decisionRequirementsId": "graph",
        "decisionDefinitionKey": of(4), "decisionDefinitionId": "dish", "decisionEvaluationKey": of(number)})
    };
    let form = json!({"formKey": of(5), "deploymentKey": of(2), "entityDescription": "f.form"});
    let script = json!({"resourceKey": of(6), "deploymentKey": of(2), "entityDescription": "r.rpa"});
    let model = json!({"processDefinitionKey": process, "processDefinitionId": "p", "deploymentKey": of(2),
        "entityDescription": "p.bpmn"});
    let task = with(json!({"userTaskKey": of(30), "elementInstanceKey": of(31)}));
    let refused = json!({"entityDescription": "INVALID_STATE"});
    let task_refused = with(json!({"userTaskKey": of(30), "elementInstanceKey": of(31),
        "entityDescription": "INVALID_STATE"}));
    let variable = |name| with(json!({"elementInstanceKey": instance, "entityDescription": name}));
    let mut called = with(json!({"processInstanceKey": of(50), "entityDescription": "INVALID_STATE"}));
    called["rootProcessInstanceKey"] = json!(of(50));
    vec![
        ("CREATE", "RESOURCE", 1, "SUCCESS", model.clone()),
        ("CREATE", "RESOURCE", 3, "SUCCESS", graph.clone()),
        ("CREATE", "DECISION", 4, "SUCCESS", decision.clone()),
        ("CREATE", "RESOURCE", 5, "SUCCESS", form.clone()),
        ("CREATE", "RESOURCE", 6, "SUCCESS", script.clone()),
        ("CREATE", "PROCESS_INSTANCE", 12, "SUCCESS", running.clone()),
        ("CREATE", "VARIABLE", 13, "SUCCESS", variable("new")),
        ("UPDATE", "VARIABLE", 11, "SUCCESS", variable("given")),
        ("ASSIGN", "USER_TASK", 30, "SUCCESS", task.clone()),
        ("UNASSIGN", "USER_TASK", 30, "SUCCESS", task.clone()),
        ("UPDATE", "VARIABLE", 13, "SUCCESS", variable("new")),
        ("UPDATE", "USER_TASK", 30, "SUCCESS", task.clone()),
        ("COMPLETE", "USER_TASK", 30, "SUCCESS", task),
        ("RESOLVE", "INCIDENT", 22, "SUCCESS", with(json!({"elementInstanceKey": of(20), "jobKey": of(21)}))),
        ("EVALUATE", "DECISION", 40, "SUCCESS", evaluated(40)),
        ("EVALUATE", "DECISION", 41, "FAIL", {
            let mut of_task = with(evaluated(41));
            of_task["elementInstanceKey"] = json!(of(23));
            of_task
        }),
        ("MODIFY", "PROCESS_INSTANCE", INSTANCE, "SUCCESS", running.clone()),
        ("MIGRATE", "PROCESS_INSTANCE", INSTANCE, "SUCCESS", running.clone()),
        ("CANCEL", "PROCESS_INSTANCE", INSTANCE, "SUCCESS", running.clone()),
        ("CANCEL", "PROCESS_INSTANCE", 50, "FAIL", called),
        ("RESOLVE", "INCIDENT", 22, "FAIL", refused.clone()),
        ("MIGRATE", "PROCESS_INSTANCE", INSTANCE, "FAIL", with(refused)),
        ("ASSIGN", "USER_TASK", 30, "FAIL", task_refused.clone()),
        ("COMPLETE", "USER_TASK", 30, "FAIL", task_refused),
        ("DELETE", "RESOURCE", 3, "SUCCESS", graph),
        ("DELETE", "DECISION", 4, "SUCCESS", decision),
        ("DELETE", "RESOURCE", 5, "SUCCESS", form),
        ("DELETE", "RESOURCE", 6, "SUCCESS", script),
        ("DELETE", "RESOURCE", 1, "SUCCESS", model),
    ]
}

fn user() -> Actor {
    Actor::User(Identity::new("ann", None).expect("a short id"))
}

fn client() -> Actor {
    Actor::Client(Identity::new("robot", None).expect("a short id"))
}

#[test]
fn every_doing_of_a_user_has_an_entry_with_what_it_was_done_with() {
    // The other partition has the same definitions, and does not tell of them again.
    let mut other = Records::default();
    other.command(&user());
    other.process(ProcessIntent::Created);
    other.form(FormIntent::Created);
    let audited = Audited { clients: Noted::ALL, ..Audited::default() };
    for (actor, actor_type) in [(user(), "USER"), (client(), "CLIENT")] {
        for (model, _directory) in &folded(audited, &[history(&actor).records, other.records.clone()], &[]) {
            let entries = entries(model, Condition::always());
            let expected = expected();
            assert_eq!(entries.len(), expected.len(), "{entries:#?}");
            for (entry, (operation, entity, number, result, mut said)) in entries.iter().zip(expected) {
                said["operationType"] = json!(operation);
                said["entityType"] = json!(entity);
                said["entityKey"] = json!(key(number).to_string());
                said["result"] = json!(result);
                said["category"] = json!(if entity == "USER_TASK" { "USER_TASKS" } else { "DEPLOYED_RESOURCES" });
                said["actorType"] = json!(actor_type);
                said["actorId"] = json!(if actor_type == "USER" { "ann" } else { "robot" });
                if (operation, result) != ("RESOLVE", "FAIL") {
                    // Of this refusal, nothing but the incident is known.
                    said["tenantId"] = json!("<default>");
                }
                for of_entry in ["auditLogKey", "timestamp"] {
                    said[of_entry] = entry[of_entry].clone();
                }
                assert_eq!(*entry, said, "{operation} {entity}");
            }
        }
    }
}

#[test]
fn entries_are_found_by_what_they_are_about() {
    for (model, _directory) in &folded(Audited::default(), &[history(&user()).records, Vec::new()], &[]) {
        for (field, value, count) in [
            ("jobKey", Value::Integer(key(21).raw()), 1),
            ("deploymentKey", Value::Integer(key(2).raw()), 8),
            ("formKey", Value::Integer(key(5).raw()), 2),
            ("resourceKey", Value::Integer(key(6).raw()), 2),
            ("decisionEvaluationKey", Value::Integer(key(41).raw()), 1),
            ("decisionDefinitionId", Value::Text("dish".into()), 4),
            ("decisionRequirementsKey", Value::Integer(key(3).raw()), 6),
            ("entityDescription", Value::Text("new".into()), 2),
            ("tenantId", Value::Text("<default>".into()), 28),
        ] {
            let field = AUDIT_LOGS.field(field).expect("a field");
            let found = entries(model, Condition::equal(field, value));
            assert_eq!(found.len(), count, "{}: {found:#?}", field.name);
        }
    }
}

#[test]
fn of_whom_nothing_is_to_be_noted_nothing_is() {
    type IsNoted = fn(&str, &str) -> bool;
    let all: Vec<(&str, &str)> = expected().into_iter().map(|(operation, entity, ..)| (operation, entity)).collect();
    let cancellations = Noted::read("cancel, variable, not update").expect("a list");
    let chosen = Audited { anonymous: cancellations, ..Audited::default() };
    let cases: [(Actor, Audited, IsNoted); 4] = [
        (client(), Audited::default(), |_, _| false),
        (Actor::Anonymous, Audited::default(), |operation, entity| {
            ![("CREATE", "PROCESS_INSTANCE"), ("EVALUATE", "DECISION")].contains(&(operation, entity))
        }),
        (Actor::System, Audited::default(), |_, entity| entity == "USER_TASK"),
        (Actor::Anonymous, chosen, |operation, entity| {
            [("CANCEL", "PROCESS_INSTANCE"), ("CREATE", "VARIABLE")].contains(&(operation, entity))
        }),
    ];
    for (actor, audited, is_noted) in cases {
        for (model, _directory) in &folded(audited, &[history(&actor).records, Vec::new()], &[]) {
            let entries = entries(model, Condition::always());
            let text = |entry: &Json, name: &str| entry[name].as_str().expect("a text").to_owned();
            let noted: Vec<(String, String)> =
                entries.iter().map(|entry| (text(entry, "operationType"), text(entry, "entityType"))).collect();
            let expected: Vec<(String, String)> =
                all.iter().filter(|of| is_noted(of.0, of.1)).map(|of| (of.0.to_owned(), of.1.to_owned())).collect();
            assert_eq!(noted, expected, "{actor:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Also of variables, of which a record that comes later says that somebody set them.
    #[test]
    fn whatever_is_folded_together_and_lost_the_entries_are_the_same(
        crashes in prop::collection::vec(0_usize..1_000, 0..6),
    ) {
        let records = [history(&user()).records, Vec::new()];
        let whole = folded(Audited::default(), &records, &[]);
        let mut crashes = crashes;
        crashes.iter_mut().for_each(|crash| *crash %= records[0].len());
        crashes.sort_unstable();
        for ((model, _directory), (expected, _)) in folded(Audited::default(), &records, &crashes).iter().zip(&whole) {
            prop_assert_eq!(entries(model, Condition::always()), entries(expected, Condition::always()));
        }
    }
}
