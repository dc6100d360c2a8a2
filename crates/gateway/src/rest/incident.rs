//! Incidents in JSON.

use super::json::JsonObject;
use super::object::{Object, path_key};
use crate::request::incident::ResolveIncident;
use crate::rest::no_answer::NoAnswer;

pub(super) fn resolution(incident_key: &str, body: &[u8]) -> Result<ResolveIncident, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = ResolveIncident {
        incident_key: path_key("incidentKey", incident_key)?,
        operation_reference: object.take_operation_reference()?,
        batch_operation: None,
    };
    object.finish()?;
    Ok(request)
}

/// There are no batch operations yet, so this one is known by the instance that it is about; records name it so, too.
pub(super) fn resolved_of(process_instance_key: i64) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.text("batchOperationKey", &process_instance_key.to_string());
    json.text("batchOperationType", "RESOLVE_INCIDENT");
    json.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolution_may_say_nothing() {
        for body in ["", "{}", r#"{"operationReference":null}"#] {
            let request = resolution("3", body.as_bytes()).unwrap();
            assert_eq!((request.incident_key, request.operation_reference), (3, None));
        }
        assert_eq!(resolution("3", br#"{"operationReference":7}"#).unwrap().operation_reference, Some(7));
        for (key, body) in [("x", ""), ("3", r#"{"operationReference":-1}"#), ("3", r#"{"retries":1}"#)] {
            assert!(matches!(resolution(key, body.as_bytes()), Err(NoAnswer::Problem(_))), "{body}");
        }
    }
}
