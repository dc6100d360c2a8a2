//! Publishing messages.

use gateway_interface::PublishMessageRequest;
use protocol::{Command, Key, MessageIntent, MessageValue, Payload, partition_for_correlation_key};
use tonic::Status;

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::validation::{tenant, variables};

impl Service {
    /// A message without a name, or with a time to live below zero, is taken as Zeebe takes it: nothing waits for the
    /// one, and the other is not kept.
    pub(crate) fn publish(&self, request: PublishMessageRequest) -> Result<Pending, Status> {
        let value = MessageValue {
            tenant_id: tenant(Rpc::PublishMessage.name(), &request.tenant_id)?,
            variables: variables(request.variables)?,
            name: request.name.into(),
            correlation_key: request.correlation_key.into(),
            message_id: request.message_id.into(),
            time_to_live: request.time_to_live,
            ..MessageValue::default()
        };
        let partition = partition_for_correlation_key(&value.correlation_key, self.client.partition_count());
        let command = Command::new(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)));
        Ok(self.execute(Rpc::PublishMessage, partition, command, self.request_timeout))
    }
}
