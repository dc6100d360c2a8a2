//! `osmia run`.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::instance::Instance;
use super::question::Question;
use super::rest::{Rest, shown, text};
use crate::client::{ClientError, Outcome};
use crate::configuration::duration;
use crate::input::Variables;
use crate::models;
use crate::output::Output;

/// Between two looks at the instance.
const PAUSE: Duration = Duration::from_millis(200);
/// How a command ends whose instance did not complete. 1 is for mistakes, 2 for the command line.
const TERMINATED: u8 = 3;
const INCIDENT: u8 = 4;
const WAITING: u8 = 5;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The model with the process, and what it needs; directories with all the .bpmn, .dmn, .form and .rpa files in them, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// BPMN process id; not needed when the files have one process
    #[arg(long, value_name = "ID")]
    process: Option<String>,
    /// Variables: a JSON object, @FILE, or - for standard input
    #[arg(long, default_value = "")]
    variables: Variables,
    /// How long the instance may stay as it is before it counts as one that waits
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    wait: Duration,
    /// Name of the model on standard input, which determines its kind
    #[arg(long, value_name = "NAME", default_value = "process.bpmn")]
    name: String,
}

impl Question for Run {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let variables = variables(self.variables)?;
        let deployed = rest.post_files("/v2/deployments", &models::read(&self.files, &self.name)?)?;
        let process = choose(self.process.as_deref(), &deployed)?;
        let creation = json!({ "processDefinitionKey": process["processDefinitionKey"], "variables": variables });
        let created = rest.post("/v2/process-instances", &creation)?;
        let key = shown(&created["processInstanceKey"]);
        output.note(format_args!(
            "process instance {key} of {} version {}",
            shown(&process["processDefinitionId"]),
            process["processDefinitionVersion"]
        ));
        let instance = follow(&key, self.wait, rest)?;
        let (outcome, end) = outcome(&key, &instance);
        output
            .say(instance.lines(0).join("\n"), || json!({ "outcome": outcome, "processInstance": instance.json() }))?;
        match end {
            None => Ok(()),
            Some((code, reason)) => Err(ClientError::Ended { code, reason }),
        }
    }
}

/// Variables must be an object before anything is deployed.
fn variables(given: Variables) -> Outcome<Value> {
    let text = String::from(given);
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    match serde_json::from_str(&text) {
        Ok(variables @ Value::Object(_)) => Ok(variables),
        Ok(_) => Err(ClientError::Question("--variables is no JSON object.".to_owned())),
        Err(error) => Err(ClientError::Question(format!("--variables is no JSON object: {error}"))),
    }
}

/// The process that is meant, among what was deployed.
fn choose(id: Option<&str>, deployed: &Value) -> Outcome<Value> {
    let all = deployed["deployments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut processes: Vec<&Value> =
        all.iter().map(|one| &one["processDefinition"]).filter(|one| one.is_object()).collect();
    let names = processes.iter().map(|process| shown(&process["processDefinitionId"])).collect::<Vec<_>>().join(", ");
    if let Some(id) = id {
        processes.retain(|process| text(process, "processDefinitionId") == Some(id));
    }
    match (&processes[..], id) {
        ([process], _) => Ok((*process).clone()),
        (_, None) if names.is_empty() => Err(ClientError::Question(
            "What was deployed has no process that can be started. Give a BPMN file with an executable one.".to_owned(),
        )),
        (_, None) => Err(ClientError::Question(format!(
            "What was deployed has several processes: {names}. Say with --process which one to start."
        ))),
        (_, Some(id)) => Err(ClientError::Question(format!(
            "What was deployed has no process '{id}'. It has: {}.",
            if names.is_empty() { "none" } else { &names }
        ))),
    }
}

/// The instance at its end, or when nothing has changed for a while.
fn follow(key: &str, wait: Duration, rest: &Rest) -> Outcome<Instance> {
    let (mut before, mut since) = (Value::Null, Instant::now());
    loop {
        let instance = Instance::load(rest, rest.get(&format!("/v2/process-instances/{key}"))?)?;
        if instance.state() != "ACTIVE" {
            return Ok(instance);
        }
        let now = instance.json();
        if now != before {
            (before, since) = (now, Instant::now());
        } else if since.elapsed() >= wait {
            return Ok(instance);
        }
        sleep(PAUSE);
    }
}

/// What became of it, with the code and the sentence for the end of the command if it did not complete.
fn outcome(key: &str, instance: &Instance) -> (&'static str, Option<(u8, String)>) {
    let incidents = instance.incident_count();
    match instance.state() {
        "COMPLETED" => ("completed", None),
        "ACTIVE" if incidents > 0 => {
            let what = if incidents == 1 { "an incident".to_owned() } else { format!("{incidents} incidents") };
            ("incident", Some((INCIDENT, format!("Process instance {key} has {what}."))))
        }
        "ACTIVE" => {
            let waits = instance.waits();
            let what = if waits.is_empty() { "it waits for what is not searched".to_owned() } else { waits.join("; ") };
            ("waiting", Some((WAITING, format!("Process instance {key} is active: {what}."))))
        }
        state => {
            let state = state.to_lowercase();
            ("terminated", Some((TERMINATED, format!("Process instance {key} is {state}."))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_chosen_by_name_or_because_there_is_one() {
        let process = |id: &str| json!({ "processDefinition": { "processDefinitionId": id }, "form": null });
        let decision = json!({ "processDefinition": null, "decisionDefinition": {} });
        let one = json!({ "deployments": [decision, process("a")] });
        let two = json!({ "deployments": [process("a"), process("b")] });
        let chosen = |id: Option<&str>, deployed: &Value| match choose(id, deployed) {
            Ok(process) => shown(&process["processDefinitionId"]),
            Err(error) => error.to_string(),
        };
        assert_eq!(chosen(None, &one), "a");
        assert_eq!(chosen(Some("b"), &two), "b");
        assert!(chosen(None, &two).contains("several processes: a, b. Say with --process"));
        assert!(chosen(Some("c"), &two).contains("no process 'c'. It has: a, b."));
        assert!(chosen(None, &json!({ "deployments": [decision] })).contains("no process that can be started"));
    }
}
