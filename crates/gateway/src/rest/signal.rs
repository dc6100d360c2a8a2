//! Signals in JSON.

use super::json::JsonObject;
use super::object::{Object, invalid};
use crate::request::signal::{BroadcastSignal, BroadcastedSignal};
use crate::rest::no_answer::NoAnswer;

pub(super) fn broadcast(body: &[u8]) -> Result<BroadcastSignal, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = BroadcastSignal {
        signal_name: object.require("signalName")?,
        variables: object.take("variables")?.unwrap_or_default(),
        tenant_id: object.take_tenant()?,
    };
    object.finish()?;
    match request.signal_name.trim().is_empty() {
        true => Err(invalid("No signalName provided.").into()),
        false => Ok(request),
    }
}

pub(super) fn broadcasted(signal: &BroadcastedSignal) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.text("tenantId", &signal.tenant_id).key("signalKey", signal.key);
    json.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broadcast_needs_no_more_than_a_name() {
        let request = broadcast(br#"{"signalName":"s"}"#).unwrap();
        assert_eq!((&*request.signal_name, &*request.tenant_id), ("s", ""));
        let request = broadcast(br#"{"signalName":"s","variables":{"a":1},"tenantId":"<default>"}"#).unwrap();
        assert_eq!(&*request.tenant_id, "<default>");
        for wrong in [
            "",
            "{}",
            r#"{"signalName":" "}"#,
            r#"{"signalName":null}"#,
            r#"{"signalName":"s","variables":[]}"#,
            r#"{"signalName":"s","tenantId":" "}"#,
        ] {
            assert!(matches!(broadcast(wrong.as_bytes()), Err(NoAnswer::Problem(_))), "{wrong}");
        }
    }
}
