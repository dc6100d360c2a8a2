//! What operations that count take and answer.

use readmodel::query::{Entity, JOB_COUNTS, JOB_ERRORS, MESSAGE_SUBSCRIPTIONS, PROCESS_DEFINITIONS, VARIABLE_NAMES};
use serde_json::{Value, json};

use super::reading::{filter, page_of, plain};
use super::shape::{array, instant, key, names, object, or_null};
use super::{Described, JSON};
use crate::rest::search::{Read, Sorts};

/// What is said of an operation that counts.
pub(super) fn described(name: &str, read: Read) -> Described {
    let with = |filter: Option<(Value, bool)>, sorts: Sorts| Described {
        request: Some((JSON, request(filter, sorts))),
        ..groups(name, read)
    };
    let of = |entity: &'static Entity| Some((or_null(filter(entity)), false));
    match read {
        Read::DefinitionErrorStatistics => {
            let filter = object([("errorHashCode", json!({"type": "integer", "format": "int32"}), true)]);
            with(Some((filter, true)), Sorts::DEFINITION_ERRORS)
        }
        Read::ErrorStatistics => with(None, Sorts::ERRORS),
        Read::SubscriptionStatistics => with(of(&MESSAGE_SUBSCRIPTIONS), Sorts::NONE),
        Read::VariableNames => with(of(&VARIABLE_NAMES), Sorts::NONE),
        Read::VersionStatistics => {
            let mut filter = filter(&PROCESS_DEFINITIONS);
            filter["required"] = vec!["processDefinitionId"].into();
            with(Some((filter, true)), Sorts::VERSIONS)
        }
        Read::JobsOfAll => all_jobs(),
        Read::UsageMetrics => usage(),
        Read::JobsByType | Read::JobsByWorker | Read::JobsByTime | Read::JobErrors => jobs(read),
        _ => with(of(&PROCESS_DEFINITIONS), Sorts::PROCESSES),
    }
}

/// A filter, whether it must be there, an order, and a page.
fn request(filter: Option<(Value, bool)>, sorts: Sorts) -> Value {
    let mut properties = Vec::new();
    if let Some((filter, is_required)) = filter {
        properties.push(("filter", filter, is_required));
    }
    let sort = object([
        ("field", names(sorts.0.iter().copied()), true),
        ("order", or_null(names(["ASC", "DESC", "asc", "desc"])), false),
    ]);
    properties.push(("sort", or_null(array(sort)), false));
    properties.push(("page", json!({"$ref": "#/components/schemas/PageRequest"}), false));
    object(properties)
}

/// How often something happened to jobs.
fn numbers() -> [(&'static str, Value, bool); 3] {
    ["created", "completed", "failed"].map(|name| {
        let count = ("count", json!({"type": "integer", "format": "int64"}), true);
        (name, object([count, ("lastUpdatedAt", or_null(instant()), true)]), true)
    })
}

fn all_jobs() -> Described {
    let parameter = |name: &str, schema: Value, is_required: bool| json!({"name": name, "in": "query", "required": is_required, "schema": schema});
    let properties = numbers().into_iter().chain([("isIncomplete", json!({"type": "boolean"}), true)]);
    Described {
        query: vec![
            parameter("from", instant(), true),
            parameter("to", instant(), true),
            parameter("jobType", json!({"type": "string"}), false),
        ],
        answer: Some((JSON, object(properties))),
        ..plain("How many jobs were created, completed and failed in whole minutes of a period.".to_owned())
    }
}

fn usage() -> Described {
    let parameter = |name: &str, schema: Value, is_required: bool| json!({"name": name, "in": "query", "required": is_required, "schema": schema});
    let number = || json!({"type": "integer", "format": "int64"});
    let counts =
        || [("processInstances", number(), true), ("decisionInstances", number(), true), ("assignees", number(), true)];
    let tenants = json!({"type": "object", "additionalProperties": object(counts())});
    let properties = [("activeTenants", number(), true), ("tenants", tenants, true)];
    Described {
        query: vec![
            parameter("startTime", instant(), true),
            parameter("endTime", instant(), true),
            parameter("tenantId", json!({"type": "string"}), false),
            parameter("withTenants", json!({"type": "boolean", "default": false}), false),
        ],
        answer: Some((JSON, object(properties.into_iter().chain(counts())))),
        ..plain(
            "How many process instances that nobody called began, how many decisions were evaluated, and to how many people user \
             tasks were given."
                .to_owned(),
        )
    }
}

fn jobs(read: Read) -> Described {
    let text = || json!({"type": "string"});
    let workers = || ("workers", json!({"type": "integer", "format": "int64"}), true);
    let (summary, first) = match read {
        Read::JobsByType => {
            ("How many jobs of each type were created, completed and failed.", ("jobType", text(), true))
        }
        Read::JobsByWorker => ("How many jobs of a type each worker completed and failed.", ("worker", text(), true)),
        Read::JobsByTime => {
            ("How many jobs of a type were created, completed and failed over time.", ("time", instant(), true))
        }
        _ => ("With which errors jobs of a type failed.", ("errorCode", text(), true)),
    };
    let mut item = vec![first];
    match read {
        Read::JobErrors => item.extend([("errorMessage", text(), true), workers()]),
        Read::JobsByType => item.extend(numbers().into_iter().chain([workers()])),
        _ => item.extend(numbers()),
    }
    let mut filter = filter(if read == Read::JobErrors { &JOB_ERRORS } else { &JOB_COUNTS });
    let mut required = vec!["from", "to"];
    for name in ["from", "to"] {
        filter["properties"][name] = instant();
    }
    if read != Read::JobsByType {
        required.push("jobType");
    }
    if read == Read::JobsByTime {
        filter["properties"]["resolution"] = or_null(text());
    }
    filter["required"] = required.into();
    Described {
        request: Some((JSON, request(Some((filter, true)), Sorts::NONE))),
        answer: Some((JSON, page_of(object(item)))),
        ..plain(summary.to_owned())
    }
}

/// Numbers of process instances in groups.
fn groups(name: &str, read: Read) -> Described {
    let (text, number) = (|| json!({"type": "string"}), || json!({"type": "integer", "format": "int64"}));
    let (summary, of) = match read {
        Read::ErrorStatistics => (
            "How many active process instances have an error.",
            object([
                ("errorHashCode", number(), true),
                ("errorMessage", text(), true),
                ("activeInstancesWithErrorCount", number(), true),
            ]),
        ),
        Read::DefinitionErrorStatistics => (
            "How many active process instances of each definition have an error.",
            object([
                ("processDefinitionId", text(), true),
                ("processDefinitionKey", key(), true),
                ("processDefinitionName", text(), true),
                ("processDefinitionVersion", number(), true),
                ("tenantId", text(), true),
                ("activeInstancesWithErrorCount", number(), true),
            ]),
        ),
        Read::SubscriptionStatistics => (
            "How many process instances of each definition wait for messages, and how many subscriptions they have.",
            object([
                ("processDefinitionId", text(), true),
                ("tenantId", text(), true),
                ("processDefinitionKey", key(), true),
                ("processInstancesWithActiveSubscriptions", number(), true),
                ("activeSubscriptions", number(), true),
            ]),
        ),
        Read::VariableNames => {
            ("The names that variables of a process definition have had.", object([("name", text(), true)]))
        }
        Read::VersionStatistics => (
            "How many process instances of each version are active.",
            object([
                ("processDefinitionId", text(), true),
                ("processDefinitionKey", key(), true),
                ("processDefinitionName", or_null(text()), true),
                ("tenantId", text(), true),
                ("processDefinitionVersion", number(), true),
                ("activeInstancesWithIncidentCount", number(), true),
                ("activeInstancesWithoutIncidentCount", number(), true),
            ]),
        ),
        _ => (
            "How many process instances of each process are active.",
            object([
                ("processDefinitionId", text(), true),
                ("tenantId", text(), true),
                ("latestProcessDefinitionName", or_null(text()), true),
                ("hasMultipleVersions", json!({"type": "boolean"}), true),
                ("activeInstancesWithoutIncidentCount", number(), true),
                ("activeInstancesWithIncidentCount", number(), true),
            ]),
        ),
    };
    debug_assert!(name.contains("Statistics") || read == Read::VariableNames, "{name}");
    Described { answer: Some((JSON, page_of(of))), ..plain(summary.to_owned()) }
}
