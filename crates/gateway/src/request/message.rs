//! Publishing messages, and correlating them at once.

use protocol::{
    Command, Key, MessageCorrelationIntent, MessageCorrelationValue, MessageIntent, MessageValue, Payload, Text,
};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant;
use crate::validation::Variables;

/// Has a message for whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct PublishMessage {
    pub name: Text,
    pub correlation_key: Text,
    /// Empty for a message that is never the same as another.
    pub message_id: Text,
    /// Milliseconds for which it is kept.
    pub time_to_live: i64,
    pub variables: Variables,
    pub tenant_id: String,
    pub business_id: Option<String>,
}

/// A message that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishedMessage {
    pub key: Key,
    pub tenant_id: Text,
}

impl Request for PublishMessage {
    type Answer = PublishedMessage;

    const STARTS_WORK: bool = true;

    /// A message without a name, or with a time to live below zero, is taken as Zeebe takes it: nothing waits for the
    /// one, and the other is not kept.
    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        check_business_id(self.business_id)?;
        let value = MessageValue {
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            name: self.name,
            correlation_key: self.correlation_key,
            message_id: self.message_id,
            time_to_live: self.time_to_live,
            ..MessageValue::default()
        };
        let partition = router.of_correlation_key(&value.correlation_key);
        let command = Command::new(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)));
        Ok(Submission::new(partition, command))
    }

    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::Message(_, value) => Ok(PublishedMessage { key, tenant_id: value.tenant_id }),
            other => Err(other),
        }
    }
}

/// Has a message for whoever waits for it now, and waits until one has taken it.
#[derive(Debug, Default)]
pub(crate) struct CorrelateMessage {
    pub name: Text,
    pub correlation_key: Text,
    pub variables: Variables,
    pub tenant_id: String,
    pub business_id: Option<String>,
}

/// A message that was correlated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CorrelatedMessage {
    pub key: Key,
    pub process_instance_key: Key,
    pub tenant_id: Text,
}

impl Request for CorrelateMessage {
    type Answer = CorrelatedMessage;

    const STARTS_WORK: bool = true;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        check_business_id(self.business_id)?;
        let value = MessageCorrelationValue {
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            name: self.name,
            correlation_key: self.correlation_key,
            ..MessageCorrelationValue::default()
        };
        let partition = router.of_correlation_key(&value.correlation_key);
        let payload = Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, Box::new(value));
        Ok(Submission::new(partition, Command::new(Key::NONE, payload)))
    }

    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::MessageCorrelation(_, value) => Ok(CorrelatedMessage {
                key,
                process_instance_key: value.process_instance_key,
                tenant_id: value.tenant_id,
            }),
            other => Err(other),
        }
    }
}

fn check_business_id(id: Option<String>) -> Result<(), Failure> {
    match id.is_some_and(|id| !id.is_empty()) {
        true => Err(Failure::Unsupported { with: "business ids", remark: "." }),
        false => Ok(()),
    }
}
