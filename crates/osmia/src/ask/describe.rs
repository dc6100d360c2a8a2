//! `osmia describe`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::instance::{INCIDENTS_MAX, Instance, incident_lines, wait, with_advice};
use super::question::Question;
use super::rest::{Rest, shown};
use super::table::plain;
use crate::client::{ClientError, Outcome};
use crate::output::Output;

/// What may have a key: its name, and where it is found by its key.
const KINDS: [(&str, &str); 8] = [
    ("process instance", "process-instances"),
    ("element instance", "element-instances"),
    ("incident", "incidents"),
    ("user task", "user-tasks"),
    ("process definition", "process-definitions"),
    ("variable", "variables"),
    ("decision definition", "decision-definitions"),
    ("decision requirements", "decision-requirements"),
];

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Key of a process instance, element instance, job, user task, incident, definition or variable.
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    key: i64,
}

impl Question for Describe {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let (kind, found) = find(self.key, rest)?;
        let by = match kind {
            "process instance" => Some("processInstanceKey"),
            "element instance" => Some("elementInstanceKey"),
            "job" => Some("jobKey"),
            _ => None,
        };
        let (incidents, has_more_incidents) = match by {
            Some(field) => {
                let mut conditions = Map::new();
                conditions.insert(field.to_owned(), json!(self.key.to_string()));
                conditions.insert("state".to_owned(), json!("ACTIVE"));
                rest.all("incidents", &Value::Object(conditions), INCIDENTS_MAX)?
            }
            None if kind == "incident" && found["state"] == "ACTIVE" => (vec![found.clone()], false),
            None => (Vec::new(), false),
        };
        let told: Vec<Value> = incidents.iter().map(with_advice).collect();
        let mut lines = fields(kind, self.key, &found);
        let mut json =
            json!({ "kind": kind, "item": found, "incidents": told, "hasMoreIncidents": has_more_incidents });
        match kind {
            "process instance" => {
                let instance = Instance::load(rest, found)?;
                lines.extend(instance.lines(0));
                let mut told = instance.json();
                for name in ["elements", "waitsFor", "waitingAtJoins"] {
                    json[name] = told[name].take();
                }
            }
            "element instance" => {
                let of = json!({ "elementInstanceKey": self.key.to_string() });
                let (waits, _) = rest.all("element-instances/wait-states", &of, INCIDENTS_MAX)?;
                let waits: Vec<String> = waits.iter().map(wait).collect();
                lines.extend(waits.iter().map(|wait| format!("waits for {wait}")));
                json["waitsFor"] = json!(waits);
                lines.extend(incidents.iter().flat_map(|incident| incident_lines(incident, 0)));
            }
            _ => lines.extend(incidents.iter().flat_map(|incident| incident_lines(incident, 0))),
        }
        Ok(output.say(lines.join("\n"), || json)?)
    }
}

/// What has a key, and what kind of thing it is.
pub(super) fn find(key: i64, rest: &Rest) -> Outcome<(&'static str, Value)> {
    for (kind, entity) in KINDS {
        if let Some(found) = rest.get_if_there(&format!("/v2/{entity}/{key}"))? {
            return Ok((kind, found));
        }
    }
    // A job has no path of its own.
    let (mut jobs, _) = rest.all("jobs", &json!({ "jobKey": key.to_string() }), 1)?;
    match jobs.pop() {
        Some(job) => Ok(("job", job)),
        None => Err(ClientError::Question(format!(
            "Nothing that can be searched has the key {key}. Is it of this cluster, and of something other than a timer \
             or a message?"
        ))),
    }
}

/// What is known of it, without what is not there.
fn fields(kind: &str, key: i64, found: &Value) -> Vec<String> {
    let known = found.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let line = |(name, value): (&String, &Value)| format!("  {name}: {}", plain(&shown(value)));
    std::iter::once(format!("{kind} {key}")).chain(known.map(line)).collect()
}
