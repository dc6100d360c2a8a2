//! Messages in JSON.

use super::json::JsonObject;
use super::object::{Object, invalid};
use crate::request::message::{CorrelateMessage, CorrelatedMessage, PublishMessage, PublishedMessage};
use crate::rest::no_answer::NoAnswer;

pub(super) fn publication(body: &[u8]) -> Result<PublishMessage, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = PublishMessage {
        name: object.require("name")?,
        correlation_key: object.take("correlationKey")?.unwrap_or_default(),
        message_id: object.take("messageId")?.unwrap_or_default(),
        time_to_live: object.take("timeToLive")?.unwrap_or_default(),
        variables: object.take("variables")?.unwrap_or_default(),
        tenant_id: object.take_tenant()?,
        business_id: object.take("businessId")?,
    };
    object.finish()?;
    check_name(&request.name)?;
    Ok(request)
}

pub(super) fn correlation(body: &[u8]) -> Result<CorrelateMessage, NoAnswer> {
    let mut object = Object::read(body)?;
    let request = CorrelateMessage {
        name: object.require("name")?,
        correlation_key: object.take("correlationKey")?.unwrap_or_default(),
        variables: object.take("variables")?.unwrap_or_default(),
        tenant_id: object.take_tenant()?,
        business_id: object.take("businessId")?,
    };
    object.finish()?;
    check_name(&request.name)?;
    Ok(request)
}

fn check_name(name: &str) -> Result<(), NoAnswer> {
    match name.trim().is_empty() {
        true => Err(invalid("No name provided.").into()),
        false => Ok(()),
    }
}

pub(super) fn published(message: &PublishedMessage) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.text("tenantId", &message.tenant_id).key("messageKey", message.key);
    json.finish()
}

pub(super) fn correlated(message: &CorrelatedMessage) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.text("tenantId", &message.tenant_id).key("messageKey", message.key);
    json.key("processInstanceKey", message.process_instance_key);
    json.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_needs_no_more_than_a_name() {
        let request = publication(br#"{"name":"m"}"#).unwrap();
        assert_eq!((&*request.name, &*request.correlation_key, request.time_to_live), ("m", "", 0));
        let body = br#"{"name":"m","correlationKey":"k","timeToLive":3600000,"variables":{},"tenantId":"<default>"}"#;
        let request = publication(body).unwrap();
        assert_eq!(
            (&*request.correlation_key, request.time_to_live, &*request.tenant_id),
            ("k", 3_600_000, "<default>")
        );
        for wrong in [
            "",
            "{}",
            r#"{"name":" "}"#,
            r#"{"name":null}"#,
            r#"{"name":"m","timeToLive":"1"}"#,
            r#"{"name":"m","tenantId":""}"#,
        ] {
            assert!(matches!(publication(wrong.as_bytes()), Err(NoAnswer::Problem(_))), "{wrong}");
        }
    }
}
