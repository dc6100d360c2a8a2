//! The connection to a running gateway.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gateway_interface::gateway_client::GatewayClient;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::ask::{Rest, RestError};
use crate::configuration::{Environment, duration};
use crate::profiles::{self, ProfileError};
use crate::variables;

const DEFAULT_ADDRESS: &str = "127.0.0.1:26500";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a client allows beyond the time limit given to the server.
const SLACK: Duration = Duration::from_secs(10);

/// Which server a command talks to, and how it answers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Server {
    /// Address of the gateway, host:port or a URL [default: OSMIA_ADDRESS, ZEEBE_ADDRESS, CAMUNDA_GRPC_ADDRESS,
    /// ZEEBE_GRPC_ADDRESS or 127.0.0.1:26500]
    #[arg(long)]
    pub address: Option<String>,
    /// Address for REST, of commands that list and describe [default: OSMIA_REST_ADDRESS, ZEEBE_REST_ADDRESS,
    /// CAMUNDA_REST_ADDRESS or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub rest_address: Option<String>,
    /// Take the addresses from this profile of the file profiles.yaml [default: OSMIA_PROFILE]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Certificate (PEM) to trust, for https addresses
    #[arg(long, value_name = "FILE")]
    pub ca_certificate: Option<PathBuf>,
    /// How long a request may take [default: 10s]
    #[arg(long, value_parser = duration)]
    timeout: Option<Duration>,
    /// Print the answer as JSON, with the names that the REST API uses
    #[arg(long)]
    pub json: bool,
}

impl Server {
    /// What is not given here is taken from the other.
    pub(crate) fn or(self, other: Server) -> Server {
        Server {
            address: self.address.or(other.address),
            rest_address: self.rest_address.or(other.rest_address),
            profile: self.profile.or(other.profile),
            ca_certificate: self.ca_certificate.or(other.ca_certificate),
            timeout: self.timeout.or(other.timeout),
            json: self.json || other.json,
        }
    }

    /// Whether something is said about a server.
    pub(crate) fn is_given(&self) -> bool {
        self.address.is_some()
            || self.rest_address.is_some()
            || self.profile.is_some()
            || self.ca_certificate.is_some()
            || self.timeout.is_some()
            || self.json
    }

    /// How long a request may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// Why a client command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("'{address}' is not an address. Use host:port or a URL like http://127.0.0.1:26500.")]
    Address { address: String },
    #[error("Cannot connect to {address}: {reason}")]
    Connect { address: String, reason: String },
    #[error("Cannot read {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("There is no .bpmn, .dmn, .form or .rpa file in {path}")]
    NoModels { path: PathBuf },
    #[error("{0}")]
    Evaluation(String),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Rest(#[from] RestError),
    #[error("--address is for gRPC, and this command uses REST. Give --rest-address, 127.0.0.1:8080 for example.")]
    OnlyGrpcAddress,
    #[error("{0}")]
    Question(String),
    /// It was done, and the exit code says how it ended.
    #[error("{reason}")]
    Ended { code: u8, reason: String },
    #[error("{}", describe(.0))]
    Refused(#[from] Status),
    #[error("Cannot write the answer: {0}")]
    Output(#[from] std::io::Error),
}

pub(crate) type Outcome<T = ()> = Result<T, ClientError>;

/// What the server said, without the frame that clients parse.
fn describe(status: &Status) -> String {
    let message = status.message();
    if message.contains("compression flag") || message.contains("grpc-status header missing") {
        return format!(
            "The answer is not one of a gRPC server ({message}). Is this the gRPC port, 26500 by default, and not the \
             management port?"
        );
    }
    if message == "transport error" || message.contains("h2 protocol error") {
        return format!(
            "The connection ended before there was an answer ({message}). Does the server run, and does it have a certificate? \
             Then it wants an https:// address."
        );
    }
    match refusal(status) {
        Some((code, reason)) => format!("Refused ({code}): {reason}"),
        None => format!("{:?}: {message}", status.code()),
    }
}

/// The kind and the reason of a refusal, as the REST API gives them; none when the server could not answer.
pub(crate) fn refusal(status: &Status) -> Option<(&str, &str)> {
    let message = status.message();
    let framed = message.strip_prefix("Command '").and_then(|rest| rest.split_once("rejected with code '"));
    let code = || match status.code() {
        Code::InvalidArgument => Some("INVALID_ARGUMENT"),
        Code::NotFound => Some("NOT_FOUND"),
        Code::AlreadyExists => Some("ALREADY_EXISTS"),
        Code::FailedPrecondition => Some("INVALID_STATE"),
        Code::ResourceExhausted => Some("RESOURCE_EXHAUSTED"),
        Code::Unimplemented => Some("UNIMPLEMENTED"),
        Code::PermissionDenied => Some("FORBIDDEN"),
        _ => None,
    };
    framed.and_then(|(_, rest)| rest.split_once("': ")).or_else(|| Some((code()?, message)))
}

/// The address to use: the flag, else the environment, else this machine.
pub(crate) fn address(flag: Option<&str>, environment: &Environment) -> String {
    let configured = || variables::GRPC_ADDRESS.iter().find_map(|name| environment.get(name));
    let address = flag.or_else(configured).unwrap_or(DEFAULT_ADDRESS);
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

/// A connected client.
pub(crate) struct Client {
    pub gateway: GatewayClient<Channel>,
    server: Server,
}

impl Client {
    pub(crate) async fn connect(server: &Server) -> Outcome<Client> {
        let environment = Environment::of_process();
        let profile = profiles::find(server.profile.as_deref(), &environment)?;
        let address = address(server.address.as_deref().or(profile.grpc_address.as_deref()), &environment);
        let mut endpoint =
            Endpoint::from_shared(address.clone()).map_err(|_| ClientError::Address { address: address.clone() })?;
        if address.starts_with("https://") {
            let mut tls = ClientTlsConfig::new();
            if let Some(path) = server.ca_certificate.as_ref().or(profile.ca_certificate.as_ref()) {
                let pem = std::fs::read(path).map_err(|source| ClientError::File { path: path.clone(), source })?;
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            endpoint = endpoint.tls_config(tls).map_err(|error| connect_error(&address, &error))?;
        }
        let timeout = server.timeout();
        let channel =
            endpoint.connect_timeout(timeout).connect().await.map_err(|error| connect_error(&address, &error))?;
        let gateway = GatewayClient::new(channel).max_decoding_message_size(usize::MAX);
        Ok(Client { gateway, server: server.clone() })
    }

    /// How long a request may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.server.timeout()
    }

    /// The REST side of the same node.
    pub(crate) fn rest(&self) -> Outcome<Rest> {
        Rest::new(&self.server)
    }

    /// A request with the time limit.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout() + SLACK);
        request
    }
}

fn connect_error(address: &str, error: &tonic::transport::Error) -> ClientError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = cause.to_string();
    let hint = hint(address, &cause);
    ClientError::Connect { address: address.to_owned(), reason: format!("{cause}. {hint}") }
}

/// What to do about a connection that does not come about.
fn hint(address: &str, cause: &str) -> &'static str {
    let usual = match address.starts_with("https://") {
        true => "Is the server running, is this its gRPC port, and does it have a certificate (--tls-certificate)?",
        false => "Is the server running, and is this its gRPC port? One with a certificate wants an https:// address.",
    };
    certificate_hint(cause).unwrap_or(usual)
}

/// What to do about a certificate that a client does not take, whatever it speaks.
pub(crate) fn certificate_hint(cause: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 3] = [
        (
            "CaUsedAsEndEntity",
            "The certificate of the server says that it is an authority's own. Make it one of a server, with openssl by \
             -addext basicConstraints=critical,CA:FALSE and a subjectAltName with the server's name.",
        ),
        ("UnknownIssuer", "Name the certificate of the authority that issued the server's with --ca-certificate."),
        ("NotValidForName", "Use a name of the server that is a subjectAltName of its certificate."),
    ];
    HINTS.into_iter().find(|(word, _)| cause.contains(word)).map(|(_, hint)| hint)
}

/// Of a duration, as the protocol counts.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_lose_the_frame_that_clients_parse() {
        let status = Status::not_found(
            "Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key '5', but no such job was found",
        );
        let said = describe(&status);
        assert_eq!(said, "Refused (NOT_FOUND): Expected to complete job with key '5', but no such job was found");
        assert_eq!(describe(&Status::unavailable("no leader")), "Unavailable: no leader");
        assert_eq!(describe(&Status::invalid_argument("no object")), "Refused (INVALID_ARGUMENT): no object");
        let other = describe(&Status::internal("protocol error: received message with invalid compression flag: 123"));
        assert!(other.contains("management port"), "{other}");
        let ended = describe(&Status::unknown("transport error"));
        assert!(ended.contains("https://"), "{ended}");
    }

    #[test]
    fn what_stands_after_the_command_wins() {
        let server =
            |address: Option<&str>, json| Server { address: address.map(str::to_owned), json, ..Server::default() };
        let merged = server(Some("after"), false).or(server(Some("before"), true));
        assert_eq!((merged.address.as_deref(), merged.json), (Some("after"), true));
        assert_eq!(server(None, false).or(server(Some("before"), false)).address.as_deref(), Some("before"));
        assert!(!Server::default().is_given());
    }
}
