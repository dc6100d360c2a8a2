//! User tasks where the reference engine is not followed to the letter, or was not asked: limits, refusals that change nothing,
//! and jobs that go on as tasks.

use crate::support::{Partition, TENANT, options, without_keys};
use engine::{EngineOptions, Output};
use protocol::*;

fn model(id: &str, extensions: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="{id}" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
<userTask id="t"><extensionElements>{extensions}</extensionElements></userTask>
<sequenceFlow id="g" sourceRef="t" targetRef="e"/><endEvent id="e"/></process></definitions>"#
    )
}

/// A partition with a task of a process, and the key of the task.
fn with_task(extensions: &str, variables: &str) -> (Partition, Key) {
    let mut partition = Partition::new();
    partition.deploy("p.bpmn", model("p", &format!("<zeebe:userTask/>{extensions}")).as_bytes());
    partition.create("p", variables, ProcessInstanceCreationIntent::Create);
    let task = task_of(&partition);
    (partition, task)
}

fn task_of(partition: &Partition) -> Key {
    let created = partition.records.iter().rev().find(|record| record.payload.intent_name() == "CREATING");
    created.map(|record| record.key).expect("a user task")
}

fn command(partition: &mut Partition, key: Key, intent: UserTaskIntent, value: UserTaskValue) -> Output {
    partition.submit(key, Payload::UserTask(intent, Box::new(value)))
}

/// What the client is told of a refusal, which leaves no event behind.
fn refusal(output: &Output) -> (RejectionType, String) {
    assert!(output.records.iter().all(|record| record.record_type != RecordType::Event), "{:?}", output.records);
    let [reply] = &output.replies[..] else { panic!("one answer, and not {:?}", output.replies) };
    let rejection = reply.rejection.as_ref().expect("a refusal");
    (rejection.rejection_type, without_keys(&rejection.reason))
}

fn last_task(partition: &Partition) -> UserTaskValue {
    let last = partition.records.iter().rev().find_map(|record| match (&record.payload, &record.record_type) {
        (Payload::UserTask(_, value), RecordType::Event) => Some((**value).clone()),
        _ => None,
    });
    last.expect("a user task")
}

fn incident(partition: &Partition) -> (ErrorType, String) {
    let last = partition.records.iter().rev().find_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, value) => Some((value.error_type, value.error_message.to_string())),
        _ => None,
    });
    last.expect("an incident")
}

const MANY_CANDIDATES: &str =
    r#"<zeebe:assignmentDefinition candidateUsers="=for i in 1..count return group + string(1000000 + i)"/>"#;

/// Variables for so many candidates, each of 100 characters.
fn candidates(count: usize) -> String {
    format!("{{\"count\":{count},\"group\":\"{}\"}}", "g".repeat(93))
}

#[test]
fn more_candidates_than_a_task_can_have_are_an_incident_that_can_be_put_right() {
    let mut partition = Partition::new();
    partition.deploy("p.bpmn", model("p", &format!("<zeebe:userTask/>{MANY_CANDIDATES}")).as_bytes());
    partition.create("p", &candidates(42_000), ProcessInstanceCreationIntent::Create);
    let (error_type, message) = incident(&partition);
    assert_eq!(error_type, ErrorType::ExtractValueError);
    assert!(message.contains("at most 4194304 bytes together, but these have 4536002; name groups"), "{message}");
    let scope_key = partition.elements["t"];
    let variables = VariableDocumentValue {
        scope_key,
        variables: r#"{"count":2,"group":""}"#.into(),
        tenant_id: TENANT.into(),
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
    };
    partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(variables)));
    let key = partition.incidents["t"];
    partition.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    assert_eq!(last_task(&partition).candidate_users_list, ["1000001", "1000002"].map(Text::from));
    partition.check();
}

#[test]
fn the_headers_of_a_job_for_a_task_list_have_the_same_limit() {
    let mut partition = Partition::new();
    partition.deploy("p.bpmn", model("p", MANY_CANDIDATES).as_bytes());
    partition.create("p", &candidates(42_000), ProcessInstanceCreationIntent::Create);
    assert!(incident(&partition).1.contains("at most 4194304 bytes together"));
    partition.create("p", r#"{"count":1,"group":""}"#, ProcessInstanceCreationIntent::Create);
    let output = partition.activate("io.camunda.zeebe:userTask", 5);
    let Payload::JobBatch(_, batch) = &output.replies[0].payload else { panic!("jobs") };
    assert_eq!(&*batch.jobs[0].custom_headers, r#"{"io.camunda.zeebe:candidateUsers":"[\"1000001\"]"}"#);
    partition.check();
}

#[test]
fn what_does_not_fit_a_task_is_refused_and_changes_nothing() {
    let (mut partition, task) = with_task("", "{}");
    let before = last_task(&partition);
    let long: Text = "x".repeat(600).as_str().into();
    let list = |count: usize| vec!["y".repeat(500).as_str().into(); count];
    let update = |name: &str, value: UserTaskValue| UserTaskValue { changed_attributes: vec![name.into()], ..value };
    let default = UserTaskValue::default;
    let cases = [
        (UserTaskIntent::Assign, UserTaskValue { assignee: long.clone(), ..default() }, "at most 512 bytes, but 'xxx"),
        (UserTaskIntent::Claim, UserTaskValue { assignee: long, ..default() }, "at most 512 bytes, but 'xxx"),
        (
            UserTaskIntent::Update,
            update("candidateGroupsList", UserTaskValue { candidate_groups_list: list(10_000), ..default() }),
            "at most 4194304 bytes together, but these have 5080",
        ),
        (
            UserTaskIntent::Update,
            update("priority", UserTaskValue { priority: 101, ..default() }),
            "its priority must be from 0 to 100, and not '101'",
        ),
        (
            UserTaskIntent::Update,
            update("dueDate", UserTaskValue { due_date: "tomorrow".into(), ..default() }),
            "its due date must be a date-time with offset, as in 2030-01-31T09:00:00Z, and not 'tomorrow'",
        ),
        (
            UserTaskIntent::Update,
            update("followUpDate", UserTaskValue { follow_up_date: "2030-01-01".into(), ..default() }),
            "its follow-up date must be",
        ),
        (UserTaskIntent::Complete, UserTaskValue { variables: "[1]".into(), ..default() }, "to be a JSON object"),
        (UserTaskIntent::Create, default(), "USER_TASK CREATE is none that this version processes"),
        (UserTaskIntent::Completed, default(), "USER_TASK COMPLETED is none that this version processes"),
    ];
    for (intent, value, expected) in cases {
        let (rejection_type, reason) = refusal(&command(&mut partition, task, intent, value));
        assert_eq!(rejection_type, RejectionType::InvalidArgument, "{reason}");
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(last_task(&partition), before);
    partition.check();
}

#[test]
fn only_the_key_of_a_living_task_is_a_task() {
    let (mut partition, task) = with_task("", "{}");
    let element = partition.elements["t"];
    let elsewhere = Key::new(PartitionId(2), 1);
    for key in [Key::NONE, element, partition.instance, elsewhere] {
        let output = command(&mut partition, key, UserTaskIntent::Complete, UserTaskValue::default());
        let (rejection_type, reason) = refusal(&output);
        assert_eq!(rejection_type, RejectionType::NotFound);
        assert!(reason.ends_with("but no such user task was found"), "{reason}");
    }
    // Its element ends meanwhile.
    let instance = partition.instance;
    partition.submit(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    for intent in [UserTaskIntent::Assign, UserTaskIntent::Claim, UserTaskIntent::Update, UserTaskIntent::Complete] {
        let value = UserTaskValue { assignee: "a".into(), ..UserTaskValue::default() };
        assert_eq!(refusal(&command(&mut partition, task, intent, value)).0, RejectionType::NotFound);
    }
    partition.check();
}

#[test]
fn variables_for_which_there_is_no_room_leave_the_task_as_it_is() {
    let limits = engine::Limits { root_variable_bytes_max: 2_000, ..engine::Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..options() });
    partition.deploy("p.bpmn", model("p", "<zeebe:userTask/>").as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    let document = |bytes: usize| VariableDocumentValue {
        scope_key: Key::NONE,
        variables: format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes)).as_str().into(),
        tenant_id: TENANT.into(),
        update_semantics: VariableDocumentUpdateSemantics::Local,
    };
    let scope_key = partition.elements["t"];
    let set = |partition: &mut Partition, bytes| {
        let value = VariableDocumentValue { scope_key, ..document(bytes) };
        partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)))
    };
    let (rejection_type, _) = refusal(&set(&mut partition, 5_000));
    assert_eq!(rejection_type, RejectionType::InvalidState);
    let output = set(&mut partition, 10);
    let names: Vec<&str> = output.records.iter().map(|record| record.payload.intent_name()).collect();
    assert_eq!(names, ["UPDATING", "UPDATING", "CREATED", "UPDATED", "UPDATED"]);
    let task = task_of(&partition);
    command(&mut partition, task, UserTaskIntent::Complete, UserTaskValue::default());
    partition.check();
}

/// Migrates the newest instance to the newest definition.
fn migrate(partition: &mut Partition) -> Output {
    let definition = partition.records.iter().rev().find_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, value) => Some(value.metadata.process_definition_key),
        _ => None,
    });
    let value = ProcessInstanceMigrationValue {
        process_instance_key: partition.instance,
        target_process_definition_key: definition.expect("a definition"),
        mapping_instructions: vec![MigrationMappingInstruction {
            source_element_id: "t".into(),
            target_element_id: "t".into(),
        }],
        tenant_id: TENANT.into(),
    };
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
    partition.submit(partition.instance, payload)
}

#[test]
fn a_job_that_becomes_a_task_keeps_who_has_it_and_all_that_its_headers_say() {
    let mut partition = Partition::new();
    let job = r#"<zeebe:assignmentDefinition assignee="me" candidateGroups="=[&quot;a&quot;&quot;b&quot;, &quot;c&quot;]"/>
<zeebe:taskSchedule dueDate="2030-01-31T09:00:00+01:00"/><zeebe:formDefinition formKey="k"/>
<zeebe:taskHeaders><zeebe:header key="h" value="v&quot;"/></zeebe:taskHeaders>"#;
    let job = job.replace("&quot;a&quot;&quot;b&quot;", "&quot;a\\&quot;b&quot;");
    partition.deploy("p.bpmn", model("p", &job).as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    let job = partition.jobs["t"];
    partition.job(job, JobIntent::Fail, JobValue::default());
    assert_eq!(partition.engine.statistics().incidents, 1);
    let native = r#"<zeebe:userTask/><zeebe:assignmentDefinition assignee="you"/><zeebe:priorityDefinition priority="=40 + 2"/>"#;
    partition.deploy("q.bpmn", model("q", native).as_bytes());
    migrate(&mut partition);
    let task = last_task(&partition);
    let expected = UserTaskValue {
        user_task_key: task.user_task_key,
        assignee: "me".into(),
        candidate_groups_list: vec!["a\"b".into(), "c".into()],
        due_date: "2030-01-31T09:00+01:00".into(),
        external_form_reference: "k".into(),
        custom_headers: r#"{"h":"v\""}"#.into(),
        priority: 42,
        bpmn_process_id: "q".into(),
        element_id: "t".into(),
        process_definition_version: 1,
        ..task.clone()
    };
    assert_eq!(task, expected);
    assert_eq!(partition.engine.statistics().incidents, 0, "the job is gone with its incident");
    let output = partition.job(job, JobIntent::Complete, JobValue::default());
    assert_eq!(refusal(&output).0, RejectionType::NotFound);
    // Back again it cannot.
    partition.deploy("r.bpmn", model("r", "").as_bytes());
    let (rejection_type, reason) = refusal(&migrate(&mut partition));
    assert_eq!(rejection_type, RejectionType::InvalidState);
    assert!(reason.contains("and implementation 'zeebe user task' is mapped to a user task with id 't'"), "{reason}");
    let output = command(&mut partition, task.user_task_key, UserTaskIntent::Complete, UserTaskValue::default());
    assert!(output.replies[0].rejection.is_none());
    partition.check();
}

#[test]
fn a_job_does_not_become_a_task_whose_expressions_fail() {
    let mut partition = Partition::new();
    partition.deploy("p.bpmn", model("p", "").as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    let native = r#"<zeebe:userTask/><zeebe:priorityDefinition priority="=missing"/>"#;
    partition.deploy("q.bpmn", model("q", native).as_bytes());
    let (rejection_type, reason) = refusal(&migrate(&mut partition));
    assert_eq!(rejection_type, RejectionType::InvalidState);
    assert!(reason.contains("Expected result of the expression 'missing' to be 'NUMBER', but was 'NULL'."), "{reason}");
    let job = partition.jobs["t"];
    assert!(partition.job(job, JobIntent::Complete, JobValue::default()).replies[0].rejection.is_none());
    partition.check();
}

#[test]
fn dates_are_shown_in_one_form() {
    let dates = [
        (r#""2030-01-31T09:00:00Z""#, "2030-01-31T09:00Z"),
        (r#""2030-07-01T10:00:10+01:00[Europe/Berlin]""#, "2030-07-01T11:00:10+02:00[Europe/Berlin]"),
        (r#""2030-01-31T09:00:00.123456-05:30""#, "2030-01-31T09:00:00.123456-05:30"),
        (r#""2030-01-31T09:00:00.5Z""#, "2030-01-31T09:00:00.500Z"),
        (r#""""#, ""),
        ("null", ""),
    ];
    for (given, shown) in dates {
        let schedule =
            r#"<zeebe:taskSchedule dueDate="=due" followUpDate="=date and time(&quot;2030-01-31T09:00:00&quot;)"/>"#;
        let (partition, _) = with_task(schedule, &format!(r#"{{"due":{given}}}"#));
        assert_eq!(last_task(&partition).due_date, *shown);
        assert_eq!(last_task(&partition).follow_up_date, *"2030-01-31T09:00Z", "without a zone it is UTC");
    }
}
