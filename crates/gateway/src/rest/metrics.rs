//! What is measured about requests.

use std::sync::OnceLock;
use std::time::Instant;

use hyper::StatusCode;
use metrics::{Histogram, histogram};

use super::operations::OPERATIONS;
use super::routes::Route;

/// The method and path of requests that lead to no operation: what clients make up must not become names.
const UNKNOWN: &str = "UNKNOWN";

/// Times of every operation that is used. The ones for success are looked up once.
pub(super) struct ApiMetrics {
    succeeded: Vec<[OnceLock<Histogram>; 2]>,
}

/// What success is, where nothing else is said.
const SUCCESSES: [StatusCode; 2] = [StatusCode::OK, StatusCode::NO_CONTENT];

impl ApiMetrics {
    pub(super) fn new() -> ApiMetrics {
        ApiMetrics { succeeded: OPERATIONS.iter().map(|_| Default::default()).collect() }
    }

    /// A request is over.
    pub(super) fn record(&self, route: Option<&Route>, start: Instant, status: StatusCode) {
        let seconds = start.elapsed().as_secs_f64();
        let Some(route) = route else { return duration(UNKNOWN, UNKNOWN, status).record(seconds) };
        let found = || duration(route.operation.method, route.operation.path, status);
        match SUCCESSES.iter().position(|success| *success == status) {
            Some(place) => self.succeeded[route.number][place].get_or_init(found).record(seconds),
            None => found().record(seconds),
        }
    }
}

fn duration(method: &'static str, path: &'static str, status: StatusCode) -> Histogram {
    let outcome = match status.as_u16() / 100 {
        2 => "SUCCESS",
        4 => "CLIENT_ERROR",
        _ => "SERVER_ERROR",
    };
    histogram!(
        "http_server_requests_seconds",
        "method" => method,
        "uri" => path,
        "status" => status.as_u16().to_string(),
        "outcome" => outcome
    )
}
