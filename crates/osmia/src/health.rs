//! `osmia health`: what a node says of itself on its management port, for containers, scripts and people.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::configuration::duration;
use crate::management_server::{self, ManagementServer, Method};
use crate::outcome::Outcome;
use crate::output::Output;

/// Which node to ask.
#[derive(Debug, Args)]
pub(crate) struct HealthArguments {
    #[command(flatten)]
    server: ManagementServer,
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
    #[error("{url} answered {status} and not with the health of a node. Is this the management port, 9600 by default?")]
    NotHealth { url: String, status: u16 },
    #[error("The node is not ready: it starts, it stops, or partitions cannot work; its log says why")]
    NotReady,
}

/// Prints what is not well, and fails when clients cannot be served.
pub(crate) fn run(arguments: &HealthArguments) -> Outcome {
    let url = arguments.server.url("/actuator/health")?;
    let answer = management_server::ask(Method::Get, &url, arguments.timeout)?;
    if !answer.body["components"]["readiness"].is_object() {
        return Err(HealthError::NotHealth { url, status: answer.status }.into());
    }
    let answer = answer.body;
    let is_ready = is_up(&answer["components"]["readiness"]);
    // The failure is told on standard error.
    let text = format!("{}{}", if is_ready { "ready" } else { "not ready" }, troubles(&answer));
    Output::new(arguments.json).say(text, || answer)?;
    if is_ready { Ok(()) } else { Err(HealthError::NotReady.into()) }
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
