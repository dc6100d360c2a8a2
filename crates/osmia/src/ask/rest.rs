//! The REST side of a node, for commands.

use serde_json::{Map, Value, json};
use ureq::Agent;
use ureq::http::{Method, Request, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::client::{ClientError, Outcome, Server, certificate_hint};
use crate::configuration::Environment;
use crate::models::Model;
use crate::profiles;
use crate::variables;

const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";
/// A longer answer is an error.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Of an answer that is no problem document, so much is told.
const TOLD_CHARACTERS: usize = 200;
/// Of one page, where all are wanted.
const PAGE: usize = 1_000;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestError {
    #[error("Cannot reach {url}: {reason}. {hint}")]
    Unreachable { url: String, reason: String, hint: &'static str },
    #[error("Refused ({title}): {detail}")]
    Refused { status: u16, title: String, detail: String },
    #[error("{url} answered {status} {beginning}. Is this the REST port, 8080 by default?")]
    NotRest { url: String, status: u16, beginning: String },
    #[error("{address} is no address for REST: {reason}. Use host:port or a URL like http://127.0.0.1:8080.")]
    Address { address: String, reason: String },
}

impl RestError {
    /// Whether the node says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, RestError::Refused { status: 404, .. })
    }
}

/// The address that the environment says, else this machine.
pub(crate) fn configured_address(environment: &Environment) -> String {
    variables::REST_ADDRESS.iter().find_map(|name| environment.get(name)).unwrap_or(DEFAULT_ADDRESS).to_owned()
}

/// The node that is asked.
pub(crate) struct Rest {
    agent: Agent,
    address: String,
}

impl Rest {
    /// Of the server that flags, profile and environment name. Nothing is sent yet.
    pub(crate) fn new(server: &Server) -> Outcome<Rest> {
        let environment = Environment::of_process();
        let profile = profiles::find(server.profile.as_deref(), &environment)?;
        let named = server.rest_address.clone().or(profile.rest_address);
        if named.is_none() && server.address.is_some() {
            return Err(ClientError::OnlyGrpcAddress);
        }
        let address = named.unwrap_or_else(|| configured_address(&environment));
        let address = if address.contains("://") { address } else { format!("http://{address}") };
        let certificate = server.ca_certificate.clone().or(profile.ca_certificate);
        let roots = match certificate {
            None => RootCerts::WebPki,
            Some(path) => {
                let pem = std::fs::read(&path).map_err(|source| ClientError::File { path, source })?;
                let certificates = parse_pem(&pem).filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    _ => None,
                });
                RootCerts::from(certificates.collect::<Vec<Certificate<'static>>>())
            }
        };
        let config = Agent::config_builder()
            .timeout_global(Some(server.timeout()))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("osmia/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        Ok(Rest { agent: config.new_agent(), address: address.trim_end_matches('/').to_owned() })
    }

    /// What is at a path.
    pub(crate) fn get(&self, path: &str) -> Outcome<Value> {
        self.send(&Method::GET, path, "application/json", &[])
    }

    /// What is at a path; none when the node says that nothing is.
    pub(crate) fn get_if_there(&self, path: &str) -> Outcome<Option<Value>> {
        match self.get(path) {
            Ok(found) => Ok(Some(found)),
            Err(ClientError::Rest(error)) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is at a path, which is no JSON.
    pub(crate) fn get_bytes(&self, path: &str) -> Outcome<Vec<u8>> {
        let (status, body) = self.exchange(&Method::GET, path, "application/json", &[])?;
        if status.is_success() { Ok(body) } else { Err(self.problem(path, status, &body).into()) }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        self.send(&Method::POST, path, "application/json", body.to_string().as_bytes())
    }

    /// Sends files as browsers send forms.
    pub(crate) fn post_files(&self, path: &str, files: &[Model]) -> Outcome<Value> {
        // No file may have the boundary in it.
        let is_in_a_file = |boundary: &String| {
            files.iter().any(|file| file.content.windows(boundary.len()).any(|part| part == boundary.as_bytes()))
        };
        let boundary = (0..).map(|number| format!("osmia-part-{number}")).find(|boundary| !is_in_a_file(boundary));
        let boundary = boundary.unwrap_or_default();
        let mut body = Vec::new();
        for file in files {
            let name = file.name.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], " ");
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"resources\"; filename=\"{name}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            );
            body.extend([head.as_bytes(), &file.content, b"\r\n"].concat());
        }
        body.extend(format!("--{boundary}--\r\n").into_bytes());
        self.send(&Method::POST, path, &format!("multipart/form-data; boundary={boundary}"), &body)
    }

    /// Everything of an entity that fits a filter, at most `most`, and whether there is more.
    pub(crate) fn all(&self, entity: &str, filter: &Value, most: usize) -> Outcome<(Vec<Value>, bool)> {
        let mut found = Vec::new();
        let mut page = json!({ "limit": PAGE });
        loop {
            let body = json!({ "filter": filter, "page": page });
            let mut answer = self.post(&format!("/v2/{entity}/search"), &body)?;
            let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) else { return Ok((found, false)) };
            if items.is_empty() {
                return Ok((found, false));
            }
            found.extend(items);
            if found.len() > most {
                found.truncate(most);
                return Ok((found, true));
            }
            // The usual case needs no second request. What is too much to be counted goes on.
            let counted = answer["page"]["hasMoreTotalItems"] != true;
            let total = answer["page"]["totalItems"].as_u64().filter(|_| counted);
            if total.and_then(|total| usize::try_from(total).ok()) == Some(found.len()) {
                return Ok((found, false));
            }
            let after = answer["page"]["endCursor"].clone();
            page = json!({ "limit": PAGE, "after": after });
        }
    }

    /// The answer, as JSON; null for none.
    pub(crate) fn send(&self, method: &Method, path: &str, content: &str, body: &[u8]) -> Outcome<Value> {
        let (status, body) = self.exchange(method, path, content, body)?;
        if body.is_empty() && status.is_success() {
            return Ok(Value::Null);
        }
        match serde_json::from_slice(&body) {
            Ok(answer) if status.is_success() => Ok(answer),
            _ => Err(self.problem(path, status, &body).into()),
        }
    }

    /// What a node means that did not do as it was asked.
    fn problem(&self, path: &str, status: StatusCode, body: &[u8]) -> RestError {
        match serde_json::from_slice::<Value>(body) {
            Ok(problem) if problem.get("detail").is_some() => refused(status, &problem),
            _ => {
                let beginning = String::from_utf8_lossy(body).trim().chars().take(TOLD_CHARACTERS).collect();
                RestError::NotRest { url: format!("{}{path}", self.address), status: status.as_u16(), beginning }
            }
        }
    }

    fn exchange(&self, method: &Method, path: &str, content: &str, body: &[u8]) -> Outcome<(StatusCode, Vec<u8>)> {
        let url = format!("{}{path}", self.address);
        let request = Request::builder().method(method).uri(&url).header("content-type", content);
        let address =
            |error: ureq::http::Error| RestError::Address { address: self.address.clone(), reason: error.to_string() };
        let answer = match body {
            [] => self.agent.run(request.body(()).map_err(address)?),
            body => self.agent.run(request.body(body).map_err(address)?),
        };
        let read = answer.and_then(|mut answer| {
            let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
            Ok((answer.status(), body))
        });
        read.map_err(|error| self.unreachable(&error).into())
    }

    fn unreachable(&self, error: &ureq::Error) -> RestError {
        let reason = error.to_string();
        let usual = if matches!(error, ureq::Error::Timeout(_)) {
            "It did not answer in time; --timeout gives it longer."
        } else if self.address.starts_with("https://") {
            "Does the node run, is this its REST port, and is its certificate to be trusted (--ca-certificate)?"
        } else {
            "Does the node run, and is this its REST port? One with a certificate wants an https:// address."
        };
        let hint = certificate_hint(&reason).unwrap_or(usual);
        RestError::Unreachable { url: self.address.clone(), reason, hint }
    }
}

fn refused(status: StatusCode, problem: &Value) -> RestError {
    let part = |name: &str| text(problem, name).unwrap_or_default().to_owned();
    RestError::Refused { status: status.as_u16(), title: part("title"), detail: part("detail") }
}

/// A member that is a text.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// As people read it: texts as they are, nothing for null.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An object of some members, without those that are not given.
pub(super) fn filter<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
