//! `osmia describe`.

use std::fmt::Write;

use clap::Args;
use serde_json::{Map, Value, json};

use super::Question;
use super::advice::advice;
use super::rest::{Rest, shown, text};
use super::table::plain;
use crate::client::{ClientError, Outcome};
use crate::output::Output;

/// More incidents are not shown.
const INCIDENTS_MAX: usize = 100;

/// What may have a key: its name, and where it is found by its key.
const KINDS: [(&str, &str); 7] = [
    ("process instance", "process-instances"),
    ("element instance", "element-instances"),
    ("incident", "incidents"),
    ("process definition", "process-definitions"),
    ("variable", "variables"),
    ("decision definition", "decision-definitions"),
    ("decision requirements", "decision-requirements"),
];

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Key of a process instance, element instance, job, incident, definition or variable.
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    key: i64,
}

impl Question for Describe {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let (kind, found) = self.find(rest)?;
        let by = match kind {
            "process instance" => Some("processInstanceKey"),
            "element instance" => Some("elementInstanceKey"),
            "job" => Some("jobKey"),
            _ => None,
        };
        let incidents = match by {
            Some(field) => {
                let mut conditions = Map::new();
                conditions.insert(field.to_owned(), json!(self.key.to_string()));
                conditions.insert("state".to_owned(), json!("ACTIVE"));
                rest.all("incidents", &Value::Object(conditions), INCIDENTS_MAX)?.0
            }
            None if kind == "incident" && found["state"] == "ACTIVE" => vec![found.clone()],
            None => Vec::new(),
        };
        let told: Vec<Value> = incidents.iter().map(with_advice).collect();
        let json = || json!({ "kind": kind, "item": found, "incidents": told });
        Ok(output.say(said(kind, self.key, &found, &incidents), json)?)
    }
}

impl Describe {
    fn find(&self, rest: &Rest) -> Outcome<(&'static str, Value)> {
        for (kind, entity) in KINDS {
            if let Some(found) = rest.get_if_there(&format!("/v2/{entity}/{}", self.key))? {
                return Ok((kind, found));
            }
        }
        // A job has no path of its own.
        let (mut jobs, _) = rest.all("jobs", &json!({ "jobKey": self.key.to_string() }), 1)?;
        match jobs.pop() {
            Some(job) => Ok(("job", job)),
            None => Err(ClientError::Question(format!(
                "Nothing that can be searched has the key {}. Is it of this cluster, and of something other than a timer \
                 or a message?",
                self.key
            ))),
        }
    }
}

fn with_advice(incident: &Value) -> Value {
    let mut told = incident.clone();
    told["advice"] = json!(advice(incident));
    told
}

fn said(kind: &str, key: i64, found: &Value, incidents: &[Value]) -> String {
    let mut said = format!("{kind} {key}");
    for (name, value) in found.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        // Writing to a text cannot fail.
        let _ = write!(said, "\n  {name}: {}", plain(&shown(value)));
    }
    for incident in incidents {
        let part = |name: &str| plain(text(incident, name).unwrap_or_default());
        let _ = write!(
            said,
            "\nincident {} at {} since {}: {}\n  {}",
            part("incidentKey"),
            part("elementId"),
            part("creationTime"),
            part("errorMessage"),
            advice(incident)
        );
    }
    said
}
