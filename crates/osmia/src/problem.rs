//! Why a command failed, for programs: an object like the problems of the REST API.

use std::error::Error;

use serde_json::{Value, json};

use crate::ask::RestError;
use crate::check::Refused;
use crate::client::{ClientError, refusal};

/// The problem; none where the answer was printed already, or nobody takes it.
pub(crate) fn of(error: &(dyn Error + Send + Sync + 'static)) -> Option<Value> {
    if let Some(Refused(rejection)) = error.downcast_ref() {
        return Some(json!({ "title": rejection.rejection_type.name(), "detail": &*rejection.reason }));
    }
    let error = error.downcast_ref::<ClientError>()?;
    match error {
        ClientError::Ended { .. } | ClientError::Output(_) => None,
        ClientError::Rest(RestError::Refused { status, title, detail }) => {
            Some(json!({ "status": status, "title": title, "detail": detail }))
        }
        ClientError::Refused(status) => {
            let (title, detail) = refusal(status).unwrap_or(("UNAVAILABLE", status.message()));
            Some(json!({ "title": title, "detail": detail }))
        }
        // The command, its files or the way to the node.
        _ => Some(json!({ "title": "NOT_ASKED", "detail": error.to_string() })),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    fn problem(error: impl Into<Box<dyn Error + Send + Sync>>) -> Option<Value> {
        of(&*error.into())
    }

    #[test]
    fn a_problem_says_what_the_sentence_says() {
        let refused = Status::not_found("Command 'CREATE' rejected with code 'NOT_FOUND': Expected to find a process.");
        let expected = json!({ "title": "NOT_FOUND", "detail": "Expected to find a process." });
        assert_eq!(problem(ClientError::Refused(refused)), Some(expected));
        let away = Status::unavailable("no leader");
        assert_eq!(problem(ClientError::Refused(away)), Some(json!({ "title": "UNAVAILABLE", "detail": "no leader" })));
        let of_rest = RestError::Refused { status: 404, title: "NOT_FOUND".into(), detail: "Nothing.".into() };
        let expected = json!({ "status": 404, "title": "NOT_FOUND", "detail": "Nothing." });
        assert_eq!(problem(ClientError::Rest(of_rest)), Some(expected));
        let address = problem(ClientError::Address { address: "x y".to_owned() }).expect("it was not asked");
        assert!(
            address["detail"].as_str().is_some_and(|detail| detail.contains("'x y' is not an address")),
            "{address}"
        );
        assert_eq!(problem(ClientError::Ended { code: 3, reason: "terminated".to_owned() }), None);
        assert_eq!(problem("something else"), None);
    }
}
