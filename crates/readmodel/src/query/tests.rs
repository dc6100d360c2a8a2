//! Searches over the same rows in a file and on a server: they find what is there, and both find the same.

use protocol::PartitionId;

use super::entity::Filter;
use super::*;
use crate::testing::{Opened, PARTITION, both};

/// Instance 100 has a subprocess 110 with a task 111 and a call 112, which called 200 with a task 210; and a task 120 beside it.
/// Each task has an incident. Instance 300 completed. Subscriptions 1 and 2 wait in 100, 3 is closed, 4 is of a start event.
const ROWS: &str = "
    INSERT INTO process_definition VALUES (7, 'p', 'P', 1, NULL, 'r', 't', 0, NULL);
    INSERT INTO element VALUES (1, 7, 'p', NULL, 1, 3, 0, 0, 0), (2, 7, 'task', NULL, 9, 3, 0, 0, 3),
        (3, 7, 'sub', NULL, 2, 1, 0, 0, 0), (4, 7, 'call', NULL, 20, 1, 0, 0, 0);
    INSERT INTO process_instance VALUES (100, 7, NULL, NULL, 100, 0, 1, NULL, 3, NULL, 'b%1'),
        (200, 7, 100, 112, 100, 0, 1, NULL, 1, NULL, 'b%1'),
        (300, 7, NULL, NULL, 300, 1, 1, 2, 0, NULL, NULL);
    INSERT INTO element_instance VALUES (110, 100, 100, 3, 0, 1, NULL, 2, NULL), (111, 100, 110, 2, 0, 1, NULL, 1, 1111),
        (112, 100, 110, 4, 0, 1, NULL, 1, NULL), (120, 100, 100, 2, 0, 1, NULL, 1, 1120), (210, 200, 200, 2, 0, 1, NULL, 1, 1210),
        (310, 300, 300, 2, 1, 1, 2, 0, NULL);
    INSERT INTO incident VALUES (1111, 100, 111, 2, NULL, 1, 'm', 5, 0, 1), (1120, 100, 120, 2, NULL, 1, 'm', 5, 0, 1),
        (1210, 200, 210, 2, NULL, 1, 'm', 5, 0, 1), (1300, 300, 310, 2, NULL, 1, 'm', 5, 1, 1);
    INSERT INTO message_subscription VALUES (1, 0, 7, 'p', 100, 111, 'e', 'm', 'c', 0, 1, 't'),
        (2, 0, 7, 'p', 100, 112, 'e', 'm', 'd', 0, 1, 't'), (3, 0, 7, 'p', 200, 210, 'e', 'm', 'd', 2, 1, 't'),
        (4, 1, 7, 'p', NULL, NULL, 's', 'm', NULL, 0, 1, 't');";
/// Of what the counts need nothing: texts in capitals and with signs, values that are none, and every table.
const MORE: &str = "
    INSERT INTO process_definition VALUES (8, 'Q', NULL, 2, 'v1', 'r', 't', 1, NULL), (9, 'a_b', 'Ä', 1, '', 'r', 't', 0, NULL);
    INSERT INTO process_instance VALUES (400, 8, NULL, NULL, 400, 2, 5, 9, 0, '[\"x\",\"a b\"]', 'B'),
        (500, 9, NULL, NULL, 500, 1, 5, 7, 0, '[\"y\"]', NULL);
    INSERT INTO variable VALUES (11, 100, 100, 'n', '1', '1'), (12, 400, 400, 'n', '1.0', '1'), (13, 500, 500, 'N', '\"a%\"', '\"a%\"'),
        (14, 500, 500, 't', '\"50%_\"', '\"50%_\"'), (15, 500, 500, 'twice', '1', '1'), (16, 500, 510, 'twice', '1', '1');
    INSERT INTO job VALUES (21, 100, 111, 2, 'work', '', 1, 0, 3, 1, NULL, 1, 1, NULL, NULL, NULL, '{}', 0, NULL, NULL),
        (22, 100, 120, 2, 'Work', 'w', 3, 1, 0, 0, 7, NULL, 2, 3, 'e', 'm', '', 2, 1, 'late'), (23, 300, 310, 2, 'a*b', 'W', 3, 0, 0, 0, 7, 1, 2, 4, 'E', NULL, '', 0, 0, NULL);
    INSERT INTO sequence_flow VALUES (100, 1), (100, 2), (300, 2);
    INSERT INTO decision_requirements VALUES (31, 'q', 'Q', 1, 'r', 't', NULL), (32, 'q', 'Q', 2, 'r', 't', NULL);
    INSERT INTO decision_definition VALUES (33, 'd', 'D', 1, 31, 'q', 't'), (34, 'd', 'D', 2, 32, 'q', 't'), (35, 'e', 'E', 1, 99, 'q', 't');
    INSERT INTO decision_instance VALUES (41, 1, '1-1', 33, 'd', 'D', 1, 0, 33, 31, 0, 5, NULL, '1', '{}', 7, 100, 111, 't'),
        (42, 2, '2-1', 34, 'd', 'D', 2, 1, 34, 32, 1, 6, 'f', 'null', '{}', NULL, NULL, NULL, 't');
    INSERT INTO correlated_message_subscription VALUES (51, 1, 61, 'm', 'c', 5, 7, 'p', 100, 111, 'e', 't'),
        (52, 4, 62, 'm', NULL, 6, NULL, 'p', NULL, NULL, 's', 't');
    INSERT INTO form VALUES (71, 'f', 1, 't', 0, '{}'), (72, 'f', 2, 't', 1, '{\"a\":1}');
    INSERT INTO start_form VALUES (7, 'f');
    INSERT INTO resource VALUES (73, 'work', 'p', 1, NULL, 5, 't'), (74, 'work', 'Q', 2, 'a*b', 7, 't');
    INSERT INTO variable_name VALUES (7, 'n'), (7, 'zero'), (8, 'a_b'), (7, 'N');
    INSERT INTO user_task VALUES (81, 100, 111, 2, 1, 'p', '[\"work\"]', '', 5, NULL, NULL, 9, NULL, 71, 50, '{}'),
        (82, 100, 120, 2, 5, NULL, '', '[\"p\",\"c\"]', 5, 8, 7, NULL, 'x', NULL, 7, '');
    INSERT INTO user_task_candidate VALUES (100, 81, 0, 'work'), (100, 82, 1, 'p'), (100, 82, 1, 'c');
    INSERT INTO global_listener VALUES (101, 'p', 'work', 3, '[\"all\"]', 0, 50, 1), (102, 'Q', 'a*b', 1, '[\"creating\",\"completing\"]', 1, 7, 0);
    INSERT INTO global_listener_event VALUES (101, 0), (102, 1), (102, 4);
    INSERT INTO timer VALUES (91, 100, 120, 'task', 9, 1), (92, 200, 210, 'border', 5, -1);";
const ENTITIES: [&Entity; 18] = [
    &GLOBAL_LISTENERS,
    &WAIT_STATES,
    &USER_TASKS,
    &FORMS,
    &RESOURCES,
    &PROCESS_INSTANCES,
    &ELEMENT_INSTANCES,
    &VARIABLES,
    &VARIABLE,
    &JOBS,
    &INCIDENTS,
    &PROCESS_DEFINITIONS,
    &DECISION_DEFINITIONS,
    &DECISION_REQUIREMENTS,
    &DECISION_INSTANCES,
    &MESSAGE_SUBSCRIPTIONS,
    &CORRELATED_MESSAGE_SUBSCRIPTIONS,
    &SEQUENCE_FLOWS,
];

fn filled(scripts: &[&str]) -> [(Opened, Readers); 2] {
    both().map(|opened| {
        for script in scripts {
            opened.store.database.script(script);
        }
        let readers = opened.readers();
        (opened, readers)
    })
}

/// What both find.
fn same(filled: &mut [(Opened, Readers); 2], search: &Search) -> Found {
    let [file, server] = filled.each_mut().map(|(_, readers)| search.run(readers));
    let (file, server) = (file.unwrap_or_else(|error| panic!("{error}: {search:?}")), server);
    let mut server = server.unwrap_or_else(|error| panic!("{error}: {search:?}"));
    if std::ptr::eq(search.entity, &WAIT_STATES) {
        // A server makes objects with spaces.
        for item in &mut server.items {
            *item = String::from_utf8_lossy(item).replace("\" : ", "\":").replace(", \"", ",\"").into_bytes();
        }
    }
    let text = |found: &Found| -> Vec<String> {
        found.items.iter().map(|item| String::from_utf8_lossy(item).into_owned()).collect()
    };
    assert_eq!(text(&file), text(&server), "{search:?}");
    assert_eq!(file, server, "{search:?}");
    file
}

#[test]
fn every_order_and_every_page_is_the_same_in_both() {
    let mut filled = filled(&[ROWS, MORE]);
    for entity in ENTITIES {
        let all = Search::new(entity, Condition::always());
        let count = same(&mut filled, &all).items.len();
        for field in entity.fields.iter().filter(|field| field.is_sortable) {
            for descending in [false, true] {
                let sort = vec![Sort { field, descending }];
                let sorted = Search { sort, limit: 2, ..all.clone() };
                let (mut found, mut next) = (0, sorted.clone());
                loop {
                    let page = same(&mut filled, &next);
                    let Some((first, last)) = page.ends else { break };
                    found += page.items.len();
                    let before = Page::At(Direction::Before, first);
                    same(&mut filled, &Search { page: before, ..sorted.clone() });
                    next = Search { page: Page::At(Direction::After, last), ..sorted.clone() };
                }
                // The flows of an instance have no key of their own.
                assert!(found == count || !entity.has_own_keys(), "{} by {}", entity.name, field.name);
            }
        }
    }
}

/// Values that some rows have, and that none has.
fn values_of(kind: Kind) -> Vec<Value> {
    let texts = ["p", "Q", "a_b", "work", "a*b", "c", "", "\"50%_\"", "zero\0"];
    match kind {
        Kind::Text | Kind::Value | Kind::Null | Kind::Object | Kind::List | Kind::Constant(_) => {
            texts.iter().map(|text| Value::Text((*text).to_owned())).collect()
        }
        _ => [0, 1, 2, 5, 7, 100, 111].into_iter().map(Value::Integer).collect(),
    }
}

#[test]
fn every_filter_finds_the_same_in_both() {
    let mut filled = filled(&[ROWS, MORE]);
    let mut found = 0;
    for entity in ENTITIES {
        for field in entity.fields.iter().filter(|field| !matches!(field.filter, Filter::None)) {
            let values = values_of(field.kind);
            let mut tests = vec![
                Test::Exists(true),
                Test::Exists(false),
                Test::In(values.clone()),
                Test::NotIn(values.clone()),
                Test::In(values[..1].to_vec()),
                Test::Equal(Value::Null),
                Test::NotEqual(Value::Null),
            ];
            for value in &values {
                let of = || value.clone();
                tests.extend([Test::Equal(of()), Test::NotEqual(of())]);
                if let Kind::Integer | Kind::Instant = field.kind {
                    tests.extend([
                        Test::Greater(of()),
                        Test::GreaterOrEqual(of()),
                        Test::Less(of()),
                        Test::LessOrEqual(of()),
                    ]);
                }
            }
            if let Value::Text(_) = values[0] {
                let patterns = ["*", "?", "w*", "?ork", r"a\*b", r"*\*", "*%_*", "a_?", "[p]"];
                tests.extend(patterns.map(|pattern| Test::Like(pattern.to_owned())));
            }
            for test in tests {
                let condition = Condition::Is(field, vec![test]);
                found += same(&mut filled, &Search::new(entity, condition)).items.len();
            }
        }
    }
    assert!(found > 1_000, "only {found} rows were found");
}

#[test]
fn names_of_variables_are_the_same_in_both_and_no_more_than_a_search_counts() {
    let mut filled = filled(&[ROWS, MORE]);
    let name = VARIABLE_NAMES.field("name").expect("a field");
    for (definition, tests, expected) in [
        (7, vec![], vec!["N", "n", "zero"]),
        (7, vec![Test::Like("?".to_owned())], vec!["N", "n"]),
        (8, vec![Test::NotEqual(Value::Text("n".to_owned()))], vec!["a_b"]),
        (9, vec![], vec![]),
    ] {
        let condition = Condition::Is(name, tests);
        for (_, readers) in &mut filled {
            let names = readers.variable_names(definition, &condition).expect("names");
            assert_eq!(names.iter().collect::<Vec<_>>(), expected);
        }
    }
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10010) \
                INSERT INTO variable_name SELECT 9, 'v' || i FROM n";
    for (opened, readers) in &mut filled {
        opened.store.database.script(many);
        let names = readers.variable_names(9, &Condition::always()).expect("names");
        assert_eq!(names.len(), 10_001);
    }
}

#[test]
fn conditions_of_instances_find_the_same_in_both() {
    let mut filled = filled(&[ROWS, MORE]);
    let mut find = |entity, condition: Condition| {
        let found = same(&mut filled, &Search::new(entity, condition));
        assert_eq!(found.total, found.items.len() as u64, "all are on the first page");
        found.items.len()
    };
    let variable = |name: &str, test: Test| Condition::Variable(name.to_owned(), vec![test]);
    let json = |value: &str| Value::Text(value.to_owned());
    assert_eq!(find(&PROCESS_INSTANCES, variable("n", Test::Equal(json("1.0")))), 2);
    let two =
        |other: &str| Condition::All(vec![variable("n", Test::Exists(true)), variable(other, Test::Exists(true))]);
    assert_eq!([find(&PROCESS_INSTANCES, two("n")), find(&PROCESS_INSTANCES, two("t"))], [2, 0]);
    assert_eq!(find(&PROCESS_INSTANCES, variable("twice", Test::Equal(json("1")))), 1);
    assert_eq!(find(&PROCESS_INSTANCES, variable("N", Test::Like("\"a%*".to_owned()))), 1);
    assert_eq!(find(&PROCESS_INSTANCES, variable("n", Test::In(vec![json("1"), json("2")]))), 2);
    assert_eq!(find(&PROCESS_INSTANCES, variable("t", Test::NotEqual(json("1")))), 1);
    assert_eq!(find(&PROCESS_INSTANCES, Condition::Tag("a b".to_owned())), 1);
    assert_eq!(find(&PROCESS_INSTANCES, Condition::Tag("z".to_owned())), 0);
    assert_eq!(find(&ELEMENT_INSTANCES, Condition::OfInstance(100)), 5);
    assert_eq!(find(&PROCESS_INSTANCES, Condition::Any(Vec::new())), 0);
    let of = |scope, name: &str| Condition::VariableOf(scope, name.to_owned(), vec![Test::Equal(json("1"))]);
    assert_eq!(find(&USER_TASKS, of(VariableScope::ProcessInstance, "n")), 2);
    assert_eq!(find(&USER_TASKS, of(VariableScope::ElementInstance, "n")), 0);
    for is_effective in [false, true] {
        let seen = |element_instance| Condition::Seen { element_instance, process_instance: 100, is_effective };
        assert_eq!((find(&VARIABLES, seen(111)), find(&VARIABLES, seen(210))), (1, 0));
    }
    let instance = SEQUENCE_FLOWS.field("processInstanceKey").expect("a field");
    let of_second = Search::new(&SEQUENCE_FLOWS, Condition::equal(instance, Value::Integer(300)));
    let flow = same(&mut filled, &of_second).items.remove(0);
    assert!(
        flow.starts_with(br#"{"sequenceFlowId":"300_task","processInstanceKey":"300","#),
        "of the instance asked for"
    );
    let mut find = |entity, condition: Condition| same(&mut filled, &Search::new(entity, condition)).items.len();
    let id = PROCESS_INSTANCES.field("processDefinitionId").expect("a field");
    let some = Condition::Any(vec![Condition::equal(id, json("Q")), Condition::Tag("y".to_owned())]);
    assert_eq!(find(&PROCESS_INSTANCES, some), 2);
}

#[test]
fn incidents_of_an_element_are_also_those_inside_of_it_and_in_what_it_calls() {
    let mut filled = filled(&[ROWS]);
    for (element, wanted) in [(110, &[1111, 1210][..]), (112, &[1210]), (111, &[1111]), (120, &[1120]), (310, &[1300])]
    {
        let found = same(&mut filled, &Search::new(&INCIDENTS, Condition::WithinElement(element)));
        let key = |item: &Vec<u8>| -> i64 {
            let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
            item["incidentKey"].as_str().expect("a key").parse().expect("a number")
        };
        assert_eq!(found.items.iter().map(key).collect::<Vec<_>>(), wanted, "in {element}");
    }
}

#[test]
fn counts_are_of_what_fits() {
    for (_opened, mut readers) in filled(&[ROWS]) {
        let state = PROCESS_INSTANCES.field("state").expect("a field");
        let mut counts = |condition| readers.element_counts_where(7, &condition).expect("counts");
        let active = counts(Condition::equal(state, Value::Integer(0)));
        assert_eq!(active["task"], ElementCounts { active: 0, completed: 0, canceled: 0, incidents: 3 });
        assert_eq!(active["call"].active, 1);
        let completed = counts(Condition::equal(state, Value::Integer(1)));
        assert_eq!(completed["task"], ElementCounts { active: 0, completed: 1, canceled: 0, incidents: 0 });
        assert_eq!(completed.len(), 1);

        let errors = readers.definitions_with_error(5).expect("counts");
        assert_eq!(errors.iter().map(|of| (of.key, of.instances)).collect::<Vec<_>>(), [(7, 2)]);
        assert_eq!(readers.definitions_with_error(6).expect("counts"), []);
        let waiting = readers.subscription_counts(&Condition::always(), &GroupPage::first(9)).expect("counts").items;
        assert_eq!(waiting.iter().map(|of| (of.key, of.instances, of.subscriptions)).collect::<Vec<_>>(), [(7, 1, 2)]);

        let kept = readers.element_counts(7).expect("counts");
        assert_eq!((kept["task"], kept.contains_key("p")), (active["task"], false));
        let of_instance = readers.element_counts_of_instance(crate::testing::PARTITION, 100).expect("counts");
        assert_eq!((of_instance["task"].active, of_instance["task"].incidents), (0, 2));
        let definitions = readers.definition_counts(&Condition::always()).expect("counts");
        assert_eq!(definitions.iter().map(|of| (of.key, of.active)).collect::<Vec<_>>(), [(7, 3)]);
        let errors = readers.error_counts(&[], &GroupPage::first(9)).expect("counts").items;
        assert_eq!(
            errors.iter().map(|of| (of.hash_code, &*of.message, of.instances)).collect::<Vec<_>>(),
            [(5, "m", 2)]
        );
        assert_eq!(readers.model(Models::Process, 6).expect("it is read"), None);
        assert_eq!(readers.model(Models::Decision, 6).expect("it is read"), None);
        assert_eq!(readers.decision_details(crate::testing::PARTITION, "1-1").expect("it is read"), None);
    }
}

/// Two catch events, a gateway, and a task with a job, whose border has a timer.
const WAITING: &str = "
    INSERT INTO element VALUES (5, 7, 'e', NULL, 5, 2, 0, 0, 0), (6, 7, 'gateway', NULL, 16, 1, 0, 0, 0);
    INSERT INTO element_instance VALUES (130, 100, 100, 5, 0, 1, NULL, 0, NULL), (131, 100, 100, 5, 0, 1, NULL, 0, NULL),
        (132, 100, 100, 6, 0, 1, NULL, 0, NULL), (133, 100, 100, 5, 1, 1, 2, 0, NULL);
    INSERT INTO message_subscription VALUES (10, 0, 7, 'p', 100, 130, 'e', 'm', 'c', 0, 1, 't'),
        (11, 0, 7, 'p', 100, 132, 'behind', 'm', 'c', 0, 1, 't'), (12, 0, 7, 'p', 100, 133, 'e', 'm', 'c', 0, 1, 't');
    INSERT INTO timer VALUES (20, 100, 131, 'e', 1700000000000, 1), (21, 100, 120, 'border', 5, 1),
        (22, 100, 132, 'behind too', 6, -1);
    INSERT INTO condition VALUES (25, 100, 131, 'e', '= x > 1', '[\"create\"]'), (26, 100, 120, 'border', '=y', '[]');
    INSERT INTO signal_subscription VALUES (27, 100, 130, 'e', 's'), (28, 100, 120, 'border', 's');
    INSERT INTO user_task VALUES (33, 100, 120, 2, 1, 'ann', '[]', '[]', 1, NULL, NULL, 1700000000120, NULL, NULL, 50, '{}'),
        (34, 100, 120, 2, 5, NULL, '[]', '[]', 1, 2, NULL, NULL, NULL, NULL, 50, '{}'),
        (35, 100, 120, 2, 4, NULL, '[]', '[]', 1, NULL, NULL, 253402300800000, NULL, NULL, 50, '{}'),
        (36, 100, 120, 2, 2, NULL, '[]', '[]', 1, NULL, NULL, -377705023201000, NULL, NULL, 50, '{}'),
        (37, 100, 120, 2, 3, NULL, '[]', '[]', 1, NULL, NULL, -62135596800000, NULL, NULL, 50, '{}');
    INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind, retries,
        has_failed_with_retries_left, last_update_time, custom_headers)
        VALUES (30, 100, 120, 2, 'work', '', 2, 0, 1, 1, 1, '{}'), (31, 100, 111, 2, 'work', '', 1, 0, 1, 0, 1, '{}'),
        (32, 100, 100, 1, 'listen', '', 0, 1, 3, 0, 1, '{}'), (39, 100, 999, 2, 'work', '', 0, 0, 1, 0, 1, '{}');
    INSERT INTO message_subscription VALUES (40, 0, 7, 'p', 100, 100, 'start of an event sub-process', 'm', 'c', 0, 1, 't');";

#[test]
fn an_element_waits_for_its_own_events_and_not_for_those_at_its_border() {
    let mut filled = filled(&[ROWS, WAITING]);
    let found = same(&mut filled, &Search::new(&WAIT_STATES, Condition::always()));
    let read = |item: &Vec<u8>| serde_json::from_slice::<serde_json::Value>(item).expect("JSON");
    let found: Vec<_> = found.items.iter().map(read).collect();
    let seen = |item: &serde_json::Value| {
        let text = |name: &str| item[name].as_str().expect("a text").to_owned();
        (text("elementInstanceKey"), text("elementId"), text("elementType"), item["details"].clone())
    };
    let message = serde_json::json!({"waitStateType": "MESSAGE", "messageName": "m", "correlationKey": "c"});
    let timer = |due: i64, repetitions: i32| serde_json::json!({"waitStateType": "TIMER", "dueDate": due, "repetitions": repetitions});
    let job = serde_json::json!({"waitStateType": "JOB", "jobKey": "30", "jobType": "work", "jobKind": "BPMN_ELEMENT",
        "listenerEventType": null, "retries": 1});
    let listener = serde_json::json!({"waitStateType": "JOB", "jobKey": "32", "jobType": "listen",
        "jobKind": "EXECUTION_LISTENER", "listenerEventType": null, "retries": 3});
    let condition = serde_json::json!({"waitStateType": "CONDITION", "expression": "= x > 1", "events": ["create"]});
    let signal = serde_json::json!({"waitStateType": "SIGNAL", "signalName": "s"});
    let person = |key: &str, due: Option<&str>| serde_json::json!({"waitStateType": "USER_TASK", "taskKey": key, "dueDate": due});
    let of = |key: &str, id: &str, kind: &str, details| (key.to_owned(), id.to_owned(), kind.to_owned(), details);
    assert_eq!(
        found.iter().map(seen).collect::<Vec<_>>(),
        [
            of("130", "e", "INTERMEDIATE_CATCH_EVENT", message.clone()),
            of("132", "gateway", "EVENT_BASED_GATEWAY", message),
            of("131", "e", "INTERMEDIATE_CATCH_EVENT", timer(1_700_000_000_000, 1)),
            of("132", "gateway", "EVENT_BASED_GATEWAY", timer(6, -1)),
            of("131", "e", "INTERMEDIATE_CATCH_EVENT", condition),
            of("130", "e", "INTERMEDIATE_CATCH_EVENT", signal),
            of("120", "task", "SERVICE_TASK", job),
            // The process itself waits for its own listener, and not for what may begin an event sub-process in it.
            of("100", "p", "PROCESS", listener),
            of("120", "task", "SERVICE_TASK", person("33", Some("2023-11-14T22:13:20.120Z"))),
            // No date has a name for that year.
            of("120", "task", "SERVICE_TASK", person("35", None)),
            of("120", "task", "SERVICE_TASK", person("36", None)),
            of("120", "task", "SERVICE_TASK", person("37", Some("0001-01-01T00:00:00.000Z"))),
        ]
    );
    let kind = WAIT_STATES.field("waitStateType").expect("a field");
    let timers = Search::new(&WAIT_STATES, Condition::equal(kind, Value::Integer(2)));
    assert_eq!(same(&mut filled, &timers).total, 2);
    for (_opened, mut readers) in filled {
        let counts = readers.waiting_counts(PARTITION, 100).expect("counts");
        let counts: Vec<_> = counts.iter().map(|(id, count)| (id.as_str(), *count)).collect();
        assert_eq!(counts, [("e", 2), ("gateway", 1), ("p", 1), ("task", 1)]);
    }
}

const MINUTE: i64 = JOB_COUNT_MILLISECONDS;

/// In two partitions the same: in minute 1, two jobs of type a were created and one was completed; in minute 3 one of each type
/// failed.
fn with_jobs() -> [(Opened, Readers); 2] {
    both().map(|opened| {
        let second = PartitionId(2);
        let other = opened.source.open(second, None).expect("new rows");
        for (store, partition) in [(&opened.store, PARTITION), (&other, second)] {
            store.database.script(&format!(
                "INSERT INTO job_count VALUES ({MINUTE}, 'a', '', 2, {MINUTE} + 5, 0, NULL, 0, NULL),
                 ({MINUTE}, 'a', 'w{partition}', 0, NULL, 1, {MINUTE} + 9, 0, NULL),
                 (3 * {MINUTE}, 'a', 'w', 0, NULL, 0, NULL, 1, 3 * {MINUTE} + 1),
                 (3 * {MINUTE}, 'b', 'w', 0, NULL, 0, NULL, 1, 3 * {MINUTE} + {partition});
                 INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind, retries,
                 has_failed_with_retries_left, last_update_time, custom_headers, error_code, error_message)
                 VALUES (1, 1, 1, 1, 'a', 'w{partition}', 2, 0, 0, 0, 100, '{{}}', NULL, 'fire'),
                 (2, 1, 1, 1, 'a', 'w', 6, 0, 0, 0, 100, '{{}}', 'E', 'water'), (3, 1, 1, 1, 'a', 'w', 1, 0, 0, 0, 100, '{{}}', NULL, NULL)"
            ));
        }
        let readers = Readers::new(opened.source.clone(), vec![PARTITION, second], 1_024);
        (opened, readers)
    })
}

#[test]
fn jobs_are_counted_by_what_is_asked_over_all_partitions() {
    for (_opened, mut readers) in with_jobs() {
        let mut counts = |by, from, to, condition: Condition| {
            let counts = readers.job_counts(by, (from, to), &condition, &GroupPage::first(9)).expect("counts").items;
            let of = |of: &JobsOf| {
                let JobCounts { created, completed, failed } = of.counts;
                (of.name.clone(), of.time / MINUTE, [created.count, completed.count, failed.count], of.workers)
            };
            counts.iter().map(of).collect::<Vec<_>>()
        };
        let (all, end) = (Condition::always, 100 * MINUTE);
        let group = |name: &str, time, counts, workers| (name.to_owned(), time, counts, workers);
        assert_eq!(counts(GroupBy::All, 0, end, all()), [group("", 0, [4, 2, 4], 0)]);
        assert_eq!(counts(GroupBy::Type, 0, end, all()), [group("a", 0, [4, 2, 2], 3), group("b", 0, [0, 0, 2], 1)]);
        assert_eq!(
            counts(GroupBy::Worker, 0, end, all()),
            [group("w", 0, [0, 0, 4], 0), group("w1", 0, [0, 1, 0], 0), group("w2", 0, [0, 1, 0], 0)]
        );
        let by_time = [group("", 1, [4, 2, 0], 0), group("", 3, [0, 0, 4], 0)];
        assert_eq!(counts(GroupBy::Time(1), 0, end, all()), by_time);
        assert_eq!(counts(GroupBy::Time(4 * MINUTE), 0, end, all()), [group("", 0, [4, 2, 4], 0)]);
        assert_eq!(counts(GroupBy::Time(1), MINUTE + 30_000, 3 * MINUTE, all()), by_time[..1], "whole minutes");
        let b = Condition::equal(JOB_COUNTS.field("jobType").expect("a field"), Value::Text("b".into()));
        assert_eq!(counts(GroupBy::All, 0, end, b), [group("", 0, [0, 0, 2], 0)]);
        let by_type = readers.job_counts(GroupBy::Type, (0, end), &all(), &GroupPage::first(9)).expect("counts");
        assert_eq!(by_type.items[1].counts.failed.last, Some(3 * MINUTE + 2));
    }
}

#[test]
fn errors_are_those_of_jobs_that_ended_so() {
    for (_opened, mut readers) in with_jobs() {
        let mut errors = |from, to, condition: Condition| {
            let errors = readers.job_errors((from, to), &condition, &GroupPage::first(9)).expect("errors");
            errors.items.into_iter().map(|of| (of.code, of.message, of.workers)).collect::<Vec<_>>()
        };
        let of = |code: &str, message: &str, workers| (code.to_owned(), message.to_owned(), workers);
        assert_eq!(errors(0, 200, Condition::always()), [of("", "fire", 2), of("E", "water", 1)]);
        assert_eq!(errors(0, 100, Condition::always()), []);
        let code = Condition::equal(JOB_ERRORS.field("errorCode").expect("a field"), Value::Text("E".into()));
        assert_eq!(errors(0, 200, code), [of("E", "water", 1)]);
    }
}

#[test]
fn a_total_by_variables_is_counted_from_their_index() {
    let [(file, _readers), _] = filled(&[ROWS, MORE]);
    let variable = |name: &str| Condition::Variable(name.to_owned(), vec![Test::Equal(Value::Text("1".to_owned()))]);
    let condition = Condition::All(vec![variable("n"), Condition::All(vec![variable("t")])]);
    let dialect = file.store.database.dialect();
    let sql = sql::instances_by_variables(dialect, &condition).expect("nothing but variables");
    let plan = format!("EXPLAIN QUERY PLAN SELECT 1 FROM {}", sql.text);
    let steps: Vec<String> = file.store.database.all(&plan, &sql.bound(), |row| row.get(3)).expect("a plan");
    let read: Vec<&String> = steps.iter().filter(|step| step.contains(" v ")).collect();
    assert_eq!(read.len(), 2, "{steps:?}");
    assert!(
        read.iter().all(|step| step.contains("USING COVERING INDEX variable_by_value (name=? AND comparable=?")),
        "{steps:?}"
    );
    assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE") || step.contains("process_instance ")), "{steps:?}");
    let state = PROCESS_INSTANCES.field("state").expect("a field");
    let more = Condition::All(vec![variable("n"), Condition::equal(state, Value::Integer(0))]);
    for other in [more, Condition::always(), Condition::Any(vec![variable("n")])] {
        assert_eq!(sql::instances_by_variables(dialect, &other), None, "{other:?}");
    }
}

#[test]
fn a_page_is_not_empty_because_its_rows_change_while_it_is_read() {
    const TIMES: u32 = 2_000;
    let [(opened, mut readers), _] = filled(&[ROWS]);
    let database = &opened.store.database;
    database.script("UPDATE process_instance SET state = 1; UPDATE process_instance SET state = 0 WHERE key = 100;");
    let state = PROCESS_INSTANCES.field("state").expect("a field");
    let search = Search { limit: 1, ..Search::new(&PROCESS_INSTANCES, Condition::equal(state, Value::Integer(0))) };
    let searching =
        std::thread::spawn(move || (0..TIMES).all(|_| !search.run(&mut readers).expect("found").items.is_empty()));
    while !searching.is_finished() {
        // One of them is active at any time.
        database.script("UPDATE process_instance SET state = 1 - state WHERE key IN (100, 200)");
    }
    assert!(searching.join().expect("it ends"));
}

#[test]
fn what_is_of_an_element_instance_is_looked_for_in_its_process_instance() {
    let entities = [&JOBS, &INCIDENTS, &USER_TASKS, &MESSAGE_SUBSCRIPTIONS, &WAIT_STATES];
    let mut filled = filled(&[ROWS, WAITING]);
    filled[0].0.store.database.script(OF_A_PROCESS);
    filled[1].0.store.database.script(OF_A_PROCESS);
    let of = |entity: &'static Entity, test: Test| {
        Condition::Is(entity.field("elementInstanceKey").expect("a field"), vec![test])
    };
    let number = Value::Integer;
    for (entity, key, total) in [
        (&JOBS, 120, 1),
        (&JOBS, 100, 2),
        (&INCIDENTS, 210, 1),
        (&USER_TASKS, 120, 5),
        (&MESSAGE_SUBSCRIPTIONS, 111, 1),
        (&WAIT_STATES, 132, 2),
        (&WAIT_STATES, 100, 2),
        (&WAIT_STATES, 999, 0),
    ] {
        let search = Search::new(entity, of(entity, Test::Equal(number(key))));
        assert_eq!(same(&mut filled, &search).total, total, "{} of {key}", entity.name);
        let others = Search::new(entity, of(entity, Test::NotEqual(number(key))));
        let all = same(&mut filled, &Search::new(entity, Condition::always())).total;
        assert_eq!(same(&mut filled, &others).total + total, all, "{} not of {key}", entity.name);
    }
    let both = Search::new(&JOBS, of(&JOBS, Test::In(vec![number(100), number(120), number(999)])));
    assert_eq!(same(&mut filled, &both).total, 4);

    let database = &filled[0].0.store.database;
    for entity in entities {
        let mut conditions = vec![of(entity, Test::Equal(number(120)))];
        conditions.extend(entity.field("state").map(|state| Condition::equal(state, number(0))));
        let condition = sql::condition(database, &Condition::All(conditions)).expect("a condition");
        let from = database.dialect().words(entity.from);
        let text = format!("EXPLAIN QUERY PLAN SELECT 1 FROM (SELECT 1 FROM {from} WHERE {} LIMIT 10)", condition.text);
        let plan = database.all(&text, &condition.bound(), |row| row.get::<String>(3)).expect("a plan").join("; ");
        assert!(plan.contains("_of_instance (process_instance_key=?)"), "{plan}");
        assert!(!plan.contains("_by_state") && !plan.contains("SCAN t"), "{plan}");
    }
}

/// A job that listens to a process instance itself.
const OF_A_PROCESS: &str = "INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind, retries,
    has_failed_with_retries_left, last_update_time, custom_headers) VALUES (40, 100, 100, 1, 'listen', '', 0, 1, 1, 0, 1, '{}')";

#[test]
fn instances_of_a_definition_with_a_value_that_few_have_are_found_by_the_value() {
    let [(opened, _), _] = filled(&[ROWS, MORE]);
    let database = &opened.store.database;
    let is = |name: &str, value: i64| {
        Condition::equal(PROCESS_INSTANCES.field(name).expect("a field"), Value::Integer(value))
    };
    let of = |value: &str| Condition::Variable("n".to_owned(), vec![Test::Equal(Value::Text(value.to_owned()))]);
    let plan = |value: &str| {
        let all = Condition::All(vec![is("processDefinitionKey", 7), is("state", 0), Condition::All(vec![of(value)])]);
        let condition = sql::condition(database, &all).expect("a condition");
        let text = format!("EXPLAIN QUERY PLAN SELECT p.key FROM {} WHERE {}", PROCESS_INSTANCES.from, condition.text);
        database.all(&text, &condition.bound(), |row| row.get::<String>(3)).expect("a plan").join("; ")
    };
    let few = plan("1");
    assert!(few.starts_with("SEARCH p USING INTEGER PRIMARY KEY (rowid=?)"), "{few}");
    // Of very many the definition may have fewer.
    database.script(
        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 101)
         INSERT INTO variable SELECT 9000 + i, 9000 + i, 9000 + i, 'n', '1', '1' FROM n",
    );
    let many = plan("1");
    assert!(many.contains("process_instance_by_definition"), "{many}");
}
