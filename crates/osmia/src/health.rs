//! `osmia health`: what a node says of itself on its management port, for containers, scripts and people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use ureq::Agent;

use crate::configuration::{ConfigurationError, Environment, Sources, duration, local_management_address};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::variables::MANAGEMENT_ADDRESS;

/// A longer answer is none of a node.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Which node to ask.
#[derive(Debug, Args)]
pub(crate) struct HealthArguments {
    /// Address of the management port [default: where the settings of this place would have it, 127.0.0.1:9600 without any]
    #[arg(long, env = MANAGEMENT_ADDRESS, value_name = "ADDRESS")]
    management_address: Option<String>,
    /// Configuration file of the node, which may say host and port (YAML).
    #[arg(long, env = "OSMIA_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long the answer may take
    #[arg(long, value_parser = duration, default_value = "3s")]
    timeout: Duration,
    /// Print what the node answers, as JSON
    #[arg(long)]
    json: bool,
}

/// Why a node is not to be used now.
#[derive(Debug, thiserror::Error)]
enum HealthError {
    #[error("Cannot reach {url}: {reason}. Does the node run, and is this its management port?")]
    Unreachable { url: String, reason: String },
    #[error("{url} answered {status} and not with the health of a node. Is this the management port, 9600 by default?")]
    NotHealth { url: String, status: u16 },
    #[error("The node is not ready: it starts, it stops, or partitions cannot work; its log says why")]
    NotReady,
}

/// Prints what is not well, and fails when clients cannot be served.
pub(crate) fn run(arguments: &HealthArguments) -> Outcome {
    let address = match &arguments.management_address {
        Some(address) => address.clone(),
        None => local_address(arguments.config.as_deref())?,
    };
    let address = if address.contains("://") { address.clone() } else { format!("http://{address}") };
    let answer = ask(&format!("{}/actuator/health", address.trim_end_matches('/')), arguments.timeout)?;
    let is_ready = is_up(&answer["components"]["readiness"]);
    // The failure is told on standard error.
    let text = format!("{}{}", if is_ready { "ready" } else { "not ready" }, troubles(&answer));
    Output::new(arguments.json).say(text, || answer)?;
    if is_ready { Ok(()) } else { Err(HealthError::NotReady.into()) }
}

/// Where a node that was started with the same environment and file has its management port.
fn local_address(file: Option<&Path>) -> Result<String, ConfigurationError> {
    let sources = Sources::new(BTreeMap::new(), Environment::of_process(), file)?;
    local_management_address(&sources)
}

fn ask(url: &str, timeout: Duration) -> Result<Value, HealthError> {
    let agent: Agent =
        Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false).proxy(None).build().into();
    let unreachable = |error: ureq::Error| HealthError::Unreachable { url: url.to_owned(), reason: error.to_string() };
    let mut answer = agent.get(url).call().map_err(unreachable)?;
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(unreachable)?;
    let read = serde_json::from_slice(&body).ok().filter(|read: &Value| read["components"]["readiness"].is_object());
    read.ok_or_else(|| HealthError::NotHealth { url: url.to_owned(), status: answer.status().as_u16() })
}

fn is_up(component: &Value) -> bool {
    component["status"] == "UP"
}

/// An exporter that is paused is well, and holds back records.
fn is_paused(component: &Value) -> bool {
    component["details"]["state"].as_str().is_some_and(|state| state.ends_with("PAUSED"))
}

/// A line for each part that is not well, with what it says about that.
fn troubles(answer: &Value) -> String {
    let mut lines = String::new();
    let mut tell = |name: &str, component: &Value| {
        if !component.is_null() && (!is_up(component) || is_paused(component)) {
            let message = component["details"]["message"].as_str().unwrap_or("no more is known");
            // Writing to a text cannot fail.
            let _ = write!(lines, "\n{name}: {message}");
        }
    };
    for (name, component) in answer["components"].as_object().into_iter().flatten() {
        match name.as_str() {
            // That is what the first line says.
            "readiness" | "liveness" => {}
            "partitions" | "exporters" => {
                for (part, component) in component["details"].as_object().into_iter().flatten() {
                    tell(&if name == "exporters" { format!("exporter {part}") } else { part.clone() }, component);
                }
            }
            name => tell(name, component),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_part_that_is_not_well_has_a_line() {
        let down = |message: &str| json!({ "status": "DOWN", "details": { "message": message } });
        let up = json!({ "status": "UP" });
        let paused = json!({ "status": "UP", "details": { "state": "SOFT_PAUSED", "message": "kept" } });
        let answer = json!({ "status": "DOWN", "components": {
            "diskSpace": down("almost full"),
            "exporters": { "status": "DOWN", "details": { "a": down("refused"), "b": up, "c": paused } },
            "partitions": { "status": "DOWN", "details": { "partition1": up, "partition2": { "status": "DOWN" } } }, "readiness": up,
        }});
        assert_eq!(
            troubles(&answer),
            "\ndiskSpace: almost full\nexporter a: refused\nexporter c: kept\npartition2: no more is known"
        );
        assert_eq!(troubles(&json!({ "components": { "diskSpace": null, "readiness": { "status": "DOWN" } } })), "");
    }
}
