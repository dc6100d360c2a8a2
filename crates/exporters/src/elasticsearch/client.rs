//! Requests to the nodes of the target.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ureq::Agent;
use ureq::http::{Method, Request, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};

use super::settings::Settings;

/// A longer answer is an error.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Connections that are kept open while nobody uses them.
const IDLE_CONNECTIONS: usize = 256;
/// How long such a one is kept.
const IDLE_CONNECTION_AGE: Duration = Duration::from_secs(60);
/// Of an answer that is told, so much.
const TOLD_CHARACTERS: usize = 300;
/// How long an answer is waited for that only says whether somebody is there. The node reports who stays away for 10 s.
const REACH_TIME_MAX: Duration = Duration::from_secs(4);
const WHO: &str = concat!("osmia/", env!("CARGO_PKG_VERSION"));

/// No answer came.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    /// The connection was refused or broke, or nothing came in time.
    #[error("{url} did not answer: {source}")]
    NoAnswer {
        /// The node.
        url: String,
        source: ureq::Error,
    },
    /// A setting makes no request.
    #[error("the request could not be made: {0}")]
    Request(#[from] ureq::http::Error),
}

/// What a node answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub body: Vec<u8>,
}

impl Answer {
    /// For people: the status and how the rest begins, with what to do about it where that is known.
    pub fn told(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let beginning: String = text.trim().chars().take(TOLD_CHARACTERS).collect();
        let advice = match self.status.as_u16() {
            401 => "; check authentication.username and password, or authentication.apiKey",
            403 => "; the user may not do this there",
            404 | 405 => "; check the url, and whether that server has this feature",
            429 => "; it is overloaded, and gets more time",
            _ => "",
        };
        format!("the answer is {} {beginning}{advice}", self.status)
    }

    /// Whether another node may do what this one cannot, as the clients of these servers have it: it has no master, or nothing is
    /// behind its proxy.
    fn is_of_a_dead_node(&self) -> bool {
        matches!(self.status.as_u16(), 502..=504)
    }
}

/// A client of a cluster.
pub(super) struct Client {
    agent: Agent,
    request_timeout: Duration,
    urls: Vec<String>,
    /// Which of the addresses is used, counted on when one does not answer, or only that it cannot.
    used: AtomicUsize,
    authorization: Option<String>,
}

impl Client {
    pub fn new(settings: &Settings) -> Client {
        let roots = settings.certificates.clone().map_or(RootCerts::WebPki, RootCerts::from);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Whoever is at the address is meant, and gets the password.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(IDLE_CONNECTIONS)
            .max_idle_connections_per_host(IDLE_CONNECTIONS)
            .max_idle_age(IDLE_CONNECTION_AGE)
            .user_agent(WHO)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        Client {
            agent: config.new_agent(),
            request_timeout: settings.request_timeout,
            urls: settings.urls.clone(),
            used: AtomicUsize::new(0),
            authorization: settings.authorization.clone(),
        }
    }

    /// Asks whether a node is there that takes requests of this user. An error says why not.
    pub fn reach(&self) -> Result<(), String> {
        let mut problem = String::new();
        // All addresses together have the time of one look, twice at most.
        let time_max = (REACH_TIME_MAX * 2 / u32::try_from(self.urls.len()).unwrap_or(u32::MAX)).min(REACH_TIME_MAX);
        for _ in &self.urls {
            match self.send_within(time_max, Method::GET, "/", "application/json", &[]) {
                Ok(answer) if answer.status.as_u16() == 401 || answer.is_of_a_dead_node() => problem = answer.told(),
                // Whatever else it says to this: it may be allowed to do nothing but to write.
                Ok(_) => return Ok(()),
                Err(error) => problem = error.to_string(),
            }
        }
        Err(problem)
    }

    /// Sends a request to a node, whichever answered last.
    pub fn send(&self, method: Method, path: &str, content: &str, body: &[u8]) -> Result<Answer, RequestError> {
        self.send_within(self.request_timeout, method, path, content, body)
    }

    fn send_within(
        &self,
        time_max: Duration,
        method: Method,
        path: &str,
        content: &str,
        body: &[u8],
    ) -> Result<Answer, RequestError> {
        let time_max = Some(time_max.min(self.request_timeout));
        let used = self.used.load(Ordering::Relaxed);
        let url = &self.urls[used % self.urls.len()];
        let mut request = Request::builder().method(method).uri(format!("{url}{path}")).header("content-type", content);
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = match body {
            [] => self.agent.run(self.agent.configure_request(request.body(())?).timeout_global(time_max).build()),
            body => self.agent.run(self.agent.configure_request(request.body(body)?).timeout_global(time_max).build()),
        };
        let read = answer.and_then(|mut answer| {
            let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
            Ok(Answer { status: answer.status(), body })
        });
        if read.as_ref().map_or(true, Answer::is_of_a_dead_node) {
            // The next request goes to the next node. Others may have turned to it already.
            let next = used.wrapping_add(1);
            let _ = self.used.compare_exchange(used, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        read.map_err(|source| RequestError::NoAnswer { url: url.clone(), source })
    }
}
