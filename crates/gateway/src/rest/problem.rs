//! Why a request has no answer, as `application/problem+json`.

use std::borrow::Cow;

use broker::SubmitError;
use hyper::StatusCode;
use protocol::RejectionType;

use super::json::JsonObject;
use crate::outcome::{Failure, RecordPosition};

/// A longer sentence is cut: it quotes what somebody sent, and nobody counts the bytes of problems that wait to be read.
const DETAIL_BYTES_MAX: usize = 8 << 10;

/// What is wrong with a request, or with this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub status: StatusCode,
    /// The name of the kind, which programs look at.
    pub title: Cow<'static, str>,
    /// The sentence.
    pub detail: String,
    /// The methods that would be right.
    pub allow: Option<String>,
    /// Where a partition noted that it refused.
    pub at: Option<RecordPosition>,
}

impl Problem {
    /// Of the protocol itself: the title is what the status means.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let title = status.canonical_reason().unwrap_or("Error");
        Problem { status, title: title.into(), detail: detail.into(), allow: None, at: None }
    }

    /// A body or a parameter that cannot be read.
    pub(super) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// `operation` is what the API calls the request.
    pub(super) fn of(operation: &str, failure: &Failure) -> Problem {
        let (status, title) = kind(failure);
        let detail = match failure {
            Failure::OtherTenant(_) => failure.message(&format!("request {operation}")),
            _ => failure.message(operation),
        };
        let at = match failure {
            Failure::Rejected(refusal) => refusal.at,
            _ => None,
        };
        Problem { status, title: title.into(), detail, allow: None, at }
    }

    /// The text. `path` is where the problem is.
    pub(super) fn render(&self, path: &str) -> Vec<u8> {
        let mut json = JsonObject::new();
        json.text("type", "about:blank").text("title", &self.title);
        json.number("status", self.status.as_u16()).text("detail", &shortened(&self.detail)).text("instance", path);
        json.finish()
    }
}

fn shortened(detail: &str) -> Cow<'_, str> {
    if detail.len() <= DETAIL_BYTES_MAX {
        return detail.into();
    }
    let end = detail.floor_char_boundary(DETAIL_BYTES_MAX);
    format!("{}… ({} more bytes)", &detail[..end], detail.len() - end).into()
}

/// Status and title.
fn kind(failure: &Failure) -> (StatusCode, &'static str) {
    match failure {
        Failure::InvalidArgument(_) | Failure::OtherTenant(_) => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
        Failure::Unsupported { .. } => (StatusCode::NOT_IMPLEMENTED, "UNIMPLEMENTED"),
        Failure::Rejected(refusal) => {
            let kind = refusal.rejection.rejection_type;
            (status_of(kind), kind.name())
        }
        Failure::NotSubmitted(error) => match error {
            SubmitError::ResourceExhausted { .. } => (StatusCode::SERVICE_UNAVAILABLE, "RESOURCE_EXHAUSTED"),
            SubmitError::PayloadTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "RESOURCE_EXHAUSTED"),
            SubmitError::Unavailable { .. }
            | SubmitError::Unknown { .. }
            | SubmitError::NoSuchPartition { .. }
            | SubmitError::Stopped => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        },
        Failure::Stopped(_) | Failure::ShuttingDown => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        Failure::TimedOut { .. } => (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"),
        Failure::ArrivedTooLate(_) => (StatusCode::REQUEST_TIMEOUT, "DEADLINE_EXCEEDED"),
        Failure::Exhausted(_) | Failure::AnswersUnread { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "RESOURCE_EXHAUSTED")
        }
        Failure::Unreadable { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    }
}

fn status_of(kind: RejectionType) -> StatusCode {
    match kind {
        RejectionType::InvalidArgument => StatusCode::BAD_REQUEST,
        RejectionType::NotFound => StatusCode::NOT_FOUND,
        RejectionType::AlreadyExists | RejectionType::InvalidState => StatusCode::CONFLICT,
        RejectionType::ProcessingError | RejectionType::ExceededBatchRecordSize => StatusCode::INTERNAL_SERVER_ERROR,
        RejectionType::Unauthorized => StatusCode::UNAUTHORIZED,
        RejectionType::Forbidden => StatusCode::FORBIDDEN,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::{Key, PartitionId, Rejection};

    use super::*;

    #[test]
    fn a_rejection_keeps_its_type_and_its_frame() {
        let of = |kind| {
            let failure = Failure::rejected("COMPLETE", Key::NONE, Rejection::new(kind, "no such job"));
            let problem = Problem::of("completeJob", &failure);
            (problem.status.as_u16(), problem.title.into_owned(), problem.detail)
        };
        for (kind, status, title) in [
            (RejectionType::InvalidArgument, 400, "INVALID_ARGUMENT"),
            (RejectionType::NotFound, 404, "NOT_FOUND"),
            (RejectionType::AlreadyExists, 409, "ALREADY_EXISTS"),
            (RejectionType::InvalidState, 409, "INVALID_STATE"),
            (RejectionType::ProcessingError, 500, "PROCESSING_ERROR"),
            (RejectionType::ExceededBatchRecordSize, 500, "EXCEEDED_BATCH_RECORD_SIZE"),
            (RejectionType::Unauthorized, 401, "UNAUTHORIZED"),
            (RejectionType::Forbidden, 403, "FORBIDDEN"),
        ] {
            let detail = format!("Command 'COMPLETE' rejected with code '{title}': no such job");
            assert_eq!(of(kind), (status, title.to_owned(), detail));
        }
    }

    #[test]
    fn overload_is_what_clients_try_again_after() {
        let partition = PartitionId(1);
        let exhausted = SubmitError::ResourceExhausted { partition, reason: "the limit is reached".to_owned() };
        let problem = Problem::of("publishMessage", &Failure::NotSubmitted(exhausted));
        assert_eq!((problem.status.as_u16(), &*problem.title), (503, "RESOURCE_EXHAUSTED"));
        let late = Failure::TimedOut { partition, limit: Duration::from_secs(1), late: "It may." };
        let problem = Problem::of("publishMessage", &late);
        assert_eq!((problem.status.as_u16(), &*problem.title), (504, "DEADLINE_EXCEEDED"));
    }

    #[test]
    fn what_a_problem_quotes_does_not_make_it_long() {
        let said = format!("It is '{}'.", "ä".repeat(1 << 20));
        let rendered = Problem::bad_request(&*said).render("/v2/jobs/search");
        assert!(rendered.len() < 2 * DETAIL_BYTES_MAX);
        let read: serde_json::Value = serde_json::from_slice(&rendered).expect("it is JSON");
        let detail = read["detail"].as_str().expect("a text");
        assert!(detail.starts_with("It is 'ää") && detail.ends_with(" more bytes)"), "{detail:.20}");
    }

    #[test]
    fn a_problem_is_an_object_with_all_its_members() {
        let text = String::from_utf8(Problem::bad_request("It is \"wrong\".").render("/v2/jobs")).unwrap();
        assert_eq!(
            text,
            r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"It is \"wrong\".","instance":"/v2/jobs"}"#
        );
    }
}
