//! What a search must see at least.
//!
//! An answer to a command says where its records end, and a search that repeats this sees them, whichever gateway it asks.

use std::collections::BTreeMap;
use std::time::Duration;

use broker::Client;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use protocol::PartitionId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::object::invalid;
use super::problem::Problem;
use super::response::ApiBody;
use crate::outcome::RecordPosition;
use crate::validation::excerpt;

/// Of a request, `eventual`: it is not to wait for what others know to have happened; `strict`: it is to see what all leaders have
/// at this moment, or fail. Of an answer, `eventual`: it did not wait any longer.
const CONSISTENCY: HeaderName = HeaderName::from_static("osmia-consistency");
/// Of an answer to a command: the partition and the position up to which its records reach. Of a search: several of them, with
/// commas between, which it must have read.
const POSITION: HeaderName = HeaderName::from_static("osmia-position");

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consistency {
    /// What the request itself says.
    Eventual,
    /// Also what clients of this gateway know to have happened, for a while.
    Usual,
    /// Also what all leaders have at this moment, and it fails without that.
    Strict,
}

/// What a request waits for.
pub(super) fn of_request(headers: &HeaderMap) -> Consistency {
    match headers.get(CONSISTENCY).map(HeaderValue::as_bytes) {
        Some(b"eventual") => Consistency::Eventual,
        Some(b"strict") => Consistency::Strict,
        _ => Consistency::Usual,
    }
}

/// How often leaders are asked that have not answered: they may have changed.
const ASK_INTERVAL: Duration = Duration::from_millis(100);

/// How far all leaders are at this moment; none when that cannot be known in this time.
pub(super) async fn leaders(client: &Client, wait_max: Duration) -> Option<Vec<RecordPosition>> {
    let until = Instant::now() + wait_max;
    loop {
        let again = until.min(Instant::now() + ASK_INTERVAL);
        let (sender, receiver) = oneshot::channel();
        // Whoever gave up does not listen.
        let _pending = client.leader_positions(move |positions| drop(sender.send(positions)));
        if let Ok(Ok(positions)) = tokio::time::timeout_at(again, receiver).await {
            let at = |(partition, position)| RecordPosition { partition, position };
            return Some(positions.into_iter().map(at).collect());
        }
        if again >= until {
            return None;
        }
        tokio::time::sleep_until(again).await;
    }
}

/// Refuses a strict search that does not see what the leaders have.
pub(super) fn not_strict(wait_max: Duration, is_led: bool) -> Problem {
    let reason =
        if is_led { "this node has not come as far" } else { "this node does not reach the leaders of all partitions" };
    Problem {
        title: "UNAVAILABLE".into(),
        ..Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "The search is to see what all leaders have ({CONSISTENCY}: strict), and within {} ms {reason}. Please try again, or \
                 leave the header out.",
                wait_max.as_millis()
            ),
        )
    }
}

/// The positions that a request wants to be read, the newest of each partition.
pub(super) fn wanted(headers: &HeaderMap, partition_count: u16) -> Result<Vec<RecordPosition>, Problem> {
    let mut newest: BTreeMap<PartitionId, u64> = BTreeMap::new();
    for given in headers.get_all(POSITION) {
        let text = given.to_str().unwrap_or("bytes that are no text");
        for place in text.split(',').map(str::trim).filter(|place| !place.is_empty()) {
            let numbers = place.split_once('-').and_then(|(partition, position)| {
                Some((partition.parse::<u16>().ok()?, position.parse::<u64>().ok()?))
            });
            let (partition, position) =
                numbers.filter(|(partition, _)| (1..=partition_count).contains(partition)).ok_or_else(|| {
                    invalid(format!(
                        "The header {POSITION} has '{}', but must have the values of such headers of answers, with commas between. The partitions are 1 to {partition_count}.",
                        excerpt(place)
                    ))
                })?;
            let known = newest.entry(PartitionId(partition)).or_default();
            *known = position.max(*known);
        }
    }
    Ok(newest.into_iter().map(|(partition, position)| RecordPosition { partition, position }).collect())
}

/// Refuses a position that no answer has said: whoever waited for it would wait in vain.
pub(super) fn check_given(wanted: &[RecordPosition], last: impl Fn(PartitionId) -> Option<u64>) -> Result<(), Problem> {
    for RecordPosition { partition, position } in wanted {
        if let Some(last) = last(*partition).filter(|last| position > last) {
            return Err(invalid(format!(
                "The header {POSITION} has {partition}-{position}, but partition {partition} has come to position {last} only. \
                 Send the value of such a header of an answer of this cluster."
            )));
        }
    }
    Ok(())
}

/// Says with an answer where the records of its command end.
pub(super) fn reached(mut response: Response<ApiBody>, at: Option<RecordPosition>) -> Response<ApiBody> {
    let place = at.map(|RecordPosition { partition, position }| format!("{partition}-{position}"));
    if let Some(value) = place.and_then(|place| HeaderValue::from_str(&place).ok()) {
        response.headers_mut().insert(POSITION, value);
    }
    response
}

/// Says with an answer that it did not wait any longer.
pub(super) fn eventual(response: &mut Response<ApiBody>) {
    response.headers_mut().insert(CONSISTENCY, HeaderValue::from_static("eventual"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::response::empty;

    fn at(partition: u16, position: u64) -> RecordPosition {
        RecordPosition { partition: PartitionId(partition), position }
    }

    #[test]
    fn what_an_answer_says_is_understood() {
        let answer = reached(empty(StatusCode::NO_CONTENT), Some(at(2, 4_711)));
        let mut headers = answer.headers().clone();
        assert_eq!(wanted(&headers, 2).expect("it is right"), [at(2, 4_711)]);
        headers.append(POSITION, HeaderValue::from_static("1-5, 2-4000,1-7,"));
        assert_eq!(wanted(&headers, 2).expect("they are right"), [at(1, 7), at(2, 4_711)]);
        assert!(reached(empty(StatusCode::NO_CONTENT), None).headers().is_empty());
        assert_eq!(wanted(&HeaderMap::new(), 2).expect("nothing is right"), []);
    }

    #[test]
    fn a_request_says_what_it_waits_for() {
        for (given, expected) in [
            (None, Consistency::Usual),
            (Some("other"), Consistency::Usual),
            (Some("eventual"), Consistency::Eventual),
            (Some("strict"), Consistency::Strict),
        ] {
            let values = given.map(|given| (CONSISTENCY, HeaderValue::from_static(given)));
            assert_eq!(of_request(&values.into_iter().collect()), expected);
        }
        let problem = not_strict(Duration::from_secs(1), false);
        assert_eq!((problem.status, &*problem.title), (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"));
        assert!(problem.detail.contains("within 1000 ms this node does not reach the leaders"), "{problem:?}");
    }

    #[test]
    fn what_no_answer_has_said_is_refused() {
        let last = |partition: PartitionId| (partition.0 < 3).then_some(9);
        assert!(check_given(&[at(1, 9), at(2, 1), at(3, 100)], last).is_ok());
        let problem = check_given(&[at(1, 9), at(2, 10)], last).expect_err("it is not there yet");
        assert_eq!(problem.status, StatusCode::BAD_REQUEST);
        assert!(problem.detail.contains("has 2-10, but partition 2 has come to position 9 only"), "{problem:?}");
    }

    #[test]
    fn anything_else_is_a_mistake() {
        for wrong in ["1", "3-1", "0-1", "1:5", "x-1", "1--1", "1-1-1", "1-99999999999999999999"] {
            let mut headers = HeaderMap::new();
            headers.insert(POSITION, HeaderValue::from_static(wrong));
            let problem = wanted(&headers, 2).expect_err(wrong);
            assert!(problem.status.as_u16() == 400 && problem.detail.contains(wrong), "{problem:?}");
        }
    }
}
