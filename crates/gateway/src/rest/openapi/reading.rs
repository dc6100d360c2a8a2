//! What reading operations take and answer, by the entities that are read.

use readmodel::query::{
    AUDIT_LOGS, DECISION_INSTANCES, Entity, FORMS, Field, GLOBAL_LISTENERS, INCIDENTS, Kind, PROCESS_INSTANCES,
    SEQUENCE_FLOWS, USER_TASKS, VARIABLE, VARIABLES,
};
use serde_json::{Value, json};

use super::shape::{array, instant, key, names, object, or_null};
use super::{Described, JSON, statistics};
use crate::rest::search::Read;

/// What is said of an operation that reads.
pub(super) fn described(name: &str, read: Read) -> Described {
    let search = |of: &'static Entity| Described {
        summary: format!("Finds rows of the entity {}, by a filter, in an order, in pages.", of.name),
        request: Some((JSON, request(of))),
        query: Vec::new(),
        status: "200",
        answer: Some((JSON, page_of(item(of)))),
    };
    let get = |of: &'static Entity| Described {
        summary: format!("The {} with this key.", of.name),
        answer: Some((JSON, item(of))),
        ..plain(String::new())
    };
    match read {
        Read::Search(of) if std::ptr::eq(of, &VARIABLES) => Described { query: vec![truncates()], ..search(of) },
        Read::Search(of) => search(of),
        Read::IncidentsOfElementInstance | Read::IncidentsOfProcessInstance => search(&INCIDENTS),
        Read::AuditOfTask => search(&AUDIT_LOGS),
        Read::Get(of) => get(of),
        Read::GetVariable => get(&VARIABLE),
        Read::GetGlobalListener => {
            Described { summary: "The global task listener with this id.".to_owned(), ..get(&GLOBAL_LISTENERS) }
        }
        Read::GetDecisionInstance => {
            let mut described = get(&DECISION_INSTANCES);
            if let Some((_, schema)) = &mut described.answer {
                // What a decision was asked and found is only told of one.
                for list in ["evaluatedInputs", "matchedRules"] {
                    schema["properties"][list] = array(json!({"type": "object"}));
                }
            }
            described
        }
        Read::GetSequenceFlows => Described {
            summary: "The sequence flows that a process instance took.".to_owned(),
            answer: Some((JSON, items(item(&SEQUENCE_FLOWS)))),
            ..plain(String::new())
        },
        Read::GetCallHierarchy => {
            let texts = ["processInstanceKey", "processDefinitionKey", "processDefinitionName"];
            let of = object(texts.map(|name| (name, json!({"type": "string"}), true)));
            Described {
                answer: Some((JSON, array(of))),
                ..plain("The process instances that led to this one.".to_owned())
            }
        }
        Read::GetModel(of, _) => Described {
            answer: Some(("text/xml", json!({"type": "string"}))),
            ..plain(format!("The model of the {}.", of.name))
        },
        Read::GetStartForm | Read::GetTaskForm => {
            let of = if read == Read::GetStartForm { "the start event" } else { "the user task" };
            Described { summary: format!("The form of {of}; 204 when it has none."), ..get(&FORMS) }
        }
        Read::TaskVariables { .. } => Described { query: vec![truncates()], ..search(&VARIABLES) },
        _ => described_statistics(name, read),
    }
}

/// What is counted.
fn described_statistics(name: &str, read: Read) -> Described {
    match read {
        Read::ElementStatisticsOfDefinition => Described {
            request: Some((JSON, object([("filter", or_null(filter(&PROCESS_INSTANCES)), false)]))),
            ..element_statistics("How often the elements of a process are active and were left.")
        },
        Read::ElementStatisticsOfInstance => {
            element_statistics("How often the elements of a process instance are active and were left.")
        }
        Read::WaitStatistics => {
            let waiting = ("waitingCount", json!({"type": "integer", "format": "int64"}), true);
            let of = object([("elementId", json!({"type": "string"}), true), waiting]);
            Described {
                answer: Some((JSON, items(of))),
                ..plain("How many instances of each element wait for something in a process instance.".to_owned())
            }
        }
        _ => statistics::described(name, read),
    }
}

pub(super) fn plain(summary: String) -> Described {
    Described { summary, request: None, query: Vec::new(), status: "200", answer: None }
}

fn element_statistics(summary: &str) -> Described {
    let number = || json!({"type": "integer", "format": "int64"});
    let of = object([
        ("elementId", json!({"type": "string"}), true),
        ("active", number(), true),
        ("canceled", number(), true),
        ("incidents", number(), true),
        ("completed", number(), true),
    ]);
    Described { answer: Some((JSON, items(of))), ..plain(summary.to_owned()) }
}

fn truncates() -> Value {
    json!({
        "name": "truncateValues", "in": "query", "required": false, "schema": {"type": "boolean", "default": true},
        "description": "Whether long values are shortened.",
    })
}

fn items(of: Value) -> Value {
    object([("items", array(of), true)])
}

pub(super) fn page_of(of: Value) -> Value {
    object([("items", array(of), true), ("page", json!({"$ref": "#/components/schemas/Page"}), true)])
}

/// Where a page is among all that was found.
pub(super) fn page() -> Value {
    object([
        ("totalItems", json!({"type": "integer", "format": "int64"}), true),
        ("hasMoreTotalItems", json!({"type": "boolean"}), true),
        ("startCursor", or_null(json!({"type": "string"})), true),
        ("endCursor", or_null(json!({"type": "string"})), true),
    ])
}

/// Which page is wanted.
pub(super) fn page_request() -> Value {
    let number = |least: i32| or_null(json!({"type": "integer", "minimum": least, "maximum": 10_000}));
    let cursor = || or_null(json!({"type": "string"}));
    object([
        ("limit", number(1), false),
        ("from", number(0), false),
        ("after", cursor(), false),
        ("before", cursor(), false),
    ])
}

fn request(of: &'static Entity) -> Value {
    let sortable = of.fields.iter().filter(|field| field.is_sortable).map(|field| field.name);
    let sort =
        object([("field", names(sortable), true), ("order", or_null(names(["ASC", "DESC", "asc", "desc"])), false)]);
    object([
        ("filter", or_null(filter(of)), false),
        ("sort", or_null(array(sort)), false),
        ("page", json!({"$ref": "#/components/schemas/PageRequest"}), false),
    ])
}

/// All conditions hold, and one of the alternatives.
pub(super) fn filter(of: &'static Entity) -> Value {
    let filters = of.fields.iter().filter(|field| field.is_filter());
    let mut schema = object(filters.map(|field| (field.name, or_null(condition(field.kind)), false)));
    schema["properties"]["$or"] = or_null(array(json!({"type": "object"})));
    if std::ptr::eq(of, &PROCESS_INSTANCES) {
        let variable = object([("name", json!({"type": "string"}), true), ("value", condition(Kind::Value), true)]);
        schema["properties"]["variables"] = or_null(array(variable));
        schema["properties"]["tags"] = or_null(array(json!({"type": "string"})));
    }
    if std::ptr::eq(of, &GLOBAL_LISTENERS) {
        // Each of them is met by one of the event types.
        let each = schema["properties"]["eventTypes"].take();
        schema["properties"]["eventTypes"] = or_null(array(each));
    }
    if std::ptr::eq(of, &USER_TASKS) {
        for name in ["processInstanceVariables", "localVariables"] {
            let variable = object([("name", json!({"type": "string"}), true), ("value", condition(Kind::Value), true)]);
            schema["properties"][name] = or_null(array(variable));
        }
        schema["properties"]["tags"] = or_null(array(json!({"type": "string"})));
    }
    schema
}

/// A value, or operators with theirs.
fn condition(kind: Kind) -> Value {
    // A variable is looked for by its JSON as a text.
    let one = value(kind);
    let mut operators = vec![("$eq", one.clone(), false), ("$exists", json!({"type": "boolean"}), false)];
    operators.push(("$in", array(one.clone()), false));
    if kind != Kind::Boolean {
        operators.push(("$neq", one.clone(), false));
    }
    if matches!(kind, Kind::Integer | Kind::Instant) {
        operators.extend(["$gt", "$gte", "$lt", "$lte"].map(|operator| (operator, one.clone(), false)));
    } else {
        operators.push(("$notIn", array(one.clone()), false));
    }
    if matches!(kind, Kind::Text | Kind::Value | Kind::Null | Kind::Enumeration(_)) {
        operators.push(("$like", json!({"type": "string"}), false));
    }
    json!({"oneOf": [one, object(operators)]})
}

/// A row as it is answered.
fn item(of: &'static Entity) -> Value {
    object(of.fields.iter().filter(|field| field.is_answered).map(answered))
}

fn answered(field: &Field) -> (&'static str, Value, bool) {
    let schema = value(field.kind);
    let is_never_null = matches!(
        field.kind,
        Kind::IsTruncated | Kind::KeyOrMinusOne | Kind::Object | Kind::List | Kind::Constant(_) | Kind::Value
    );
    (field.name, if is_never_null { schema } else { or_null(schema) }, true)
}

fn value(kind: Kind) -> Value {
    match kind {
        Kind::Key | Kind::KeyOrMinusOne => key(),
        Kind::Text | Kind::Value | Kind::Null => json!({"type": "string"}),
        Kind::Integer => json!({"type": "integer", "format": "int64"}),
        Kind::Boolean | Kind::IsTruncated => json!({"type": "boolean"}),
        Kind::Instant => instant(),
        Kind::Enumeration(of) => names(of.iter().copied()),
        Kind::Object => json!({"type": "object", "additionalProperties": true}),
        Kind::List => array(json!({"type": "string"})),
        Kind::Constant(text) => names([text]),
    }
}
