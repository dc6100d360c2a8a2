//! A node's management port as commands of this program ask it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use ureq::Agent;

use crate::configuration::{ConfigurationError, Environment, Sources, local_management_address};
use crate::variables::MANAGEMENT_ADDRESS;

/// A longer answer is none of a node.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Which node to ask.
#[derive(Debug, Args)]
pub(crate) struct ManagementServer {
    /// Address of the management port [default: where the settings of this place would have it, 127.0.0.1:9600 without any]
    #[arg(long, env = MANAGEMENT_ADDRESS, value_name = "ADDRESS")]
    management_address: Option<String>,
    /// Configuration file of the node, which may say host and port (YAML).
    #[arg(long, env = "OSMIA_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A node that does not answer.
#[derive(Debug, thiserror::Error)]
#[error("Cannot reach {url}: {reason}. Does the node run, and is this its management port?")]
pub(crate) struct Unreachable {
    url: String,
    reason: String,
}

/// What a node answered.
pub(crate) struct Answer {
    pub url: String,
    pub status: u16,
    /// Null where it is no JSON.
    pub body: Value,
}

impl Answer {
    /// The sentence of a refusal.
    pub(crate) fn message(&self) -> Option<&str> {
        self.body["message"].as_str()
    }
}

/// How something is asked.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    Get,
    Post,
}

impl ManagementServer {
    /// The address of a path.
    ///
    /// # Errors
    /// When the settings do not say where the port is.
    pub(crate) fn url(&self, path: &str) -> Result<String, ConfigurationError> {
        let address = match &self.management_address {
            Some(address) => address.clone(),
            None => local_address(self.config.as_deref())?,
        };
        let address = if address.contains("://") { address } else { format!("http://{address}") };
        Ok(format!("{}{path}", address.trim_end_matches('/')))
    }
}

/// Where a node that was started with the same environment and file has its management port.
fn local_address(file: Option<&Path>) -> Result<String, ConfigurationError> {
    let sources = Sources::new(BTreeMap::new(), Environment::of_process(), file)?;
    local_management_address(&sources)
}

/// Asks for whatever the node answers, also a refusal.
///
/// # Errors
/// When it does not answer in this time, or too much.
pub(crate) fn ask(method: Method, url: &str, timeout: Duration) -> Result<Answer, Unreachable> {
    let agent: Agent =
        Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false).proxy(None).build().into();
    let unreachable = |error: ureq::Error| Unreachable { url: url.to_owned(), reason: error.to_string() };
    let answer = match method {
        Method::Get => agent.get(url).call(),
        Method::Post => agent.post(url).send_empty(),
    };
    let mut answer = answer.map_err(unreachable)?;
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(unreachable)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Answer { url: url.to_owned(), status: answer.status().as_u16(), body })
}
