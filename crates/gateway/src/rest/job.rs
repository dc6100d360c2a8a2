//! Jobs in JSON.

use serde_json::value::RawValue;

use super::api::NoAnswer;
use super::object::{Object, path_key};
use crate::outcome::Failure;
use crate::request::job::CompleteJob;

pub(super) fn completion(job_key: &str, body: &[u8]) -> Result<CompleteJob, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = CompleteJob {
        job_key: path_key("jobKey", job_key)?,
        variables: object.take("variables")?.unwrap_or_default(),
        has_result: object.take::<&RawValue>("result")?.is_some(),
    };
    if object.take::<String>("jobLeaseToken")?.is_some() {
        return Err(Failure::Unsupported { with: "a lease token", remark: "." }.into());
    }
    if object.take::<String>("businessId")?.is_some() {
        return Err(Failure::Unsupported { with: "a business id", remark: "." }.into());
    }
    object.finish()?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_may_say_nothing() {
        for body in ["", "{}", r#"{"variables":null,"result":null}"#] {
            let request = completion("7", body.as_bytes()).unwrap();
            assert_eq!((request.job_key, request.has_result), (7, false));
            assert_eq!(request.variables.check().unwrap(), "");
        }
        let request = completion("7", br#"{"variables":{"b":2},"result":{"type":"userTask"}}"#).unwrap();
        assert!(request.has_result);
        assert_eq!(request.variables.check().unwrap(), r#"{"b":2}"#);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (key, body) in [("x", "{}"), ("7", r#"{"variables":[]}"#), ("7", r#"{"other":1}"#)] {
            assert!(matches!(completion(key, body.as_bytes()), Err(NoAnswer::Problem(_))), "{body}");
        }
        let outcome = completion("7", br#"{"jobLeaseToken":"t"}"#);
        assert!(matches!(outcome, Err(NoAnswer::Failure(Failure::Unsupported { .. }))));
    }
}
