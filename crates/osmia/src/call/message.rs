//! `osmia publish`.

use std::time::Duration;

use clap::Args;
use gateway_interface::PublishMessageRequest;
use serde_json::json;

use super::action::Action;
use crate::client::{Client, Outcome, milliseconds};
use crate::configuration::duration;
use crate::input::Variables;
use crate::output::{Output, key};

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Name of the message.
    name: String,
    /// Correlation key of the waiting instance; none for a message that always starts a new one.
    #[arg(long, default_value = "")]
    correlation_key: String,
    /// How long to keep the message for an instance that starts to wait for it later; 0s for not at all.
    #[arg(long, default_value = "1h", value_parser = duration)]
    time_to_live: Duration,
    /// Unique id: the message is refused while another with the same name, correlation key and id is kept.
    #[arg(long, default_value = "")]
    message_id: String,
    /// Variables for the instance: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for Publish {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = PublishMessageRequest {
            name: self.name,
            correlation_key: self.correlation_key,
            time_to_live: milliseconds(self.time_to_live),
            message_id: self.message_id,
            variables: self.variables.into(),
            tenant_id: String::new(),
        };
        let response = client.gateway.publish_message(client.request(request)).await?.into_inner();
        let json = || json!({ "messageKey": key(response.key), "tenantId": response.tenant_id });
        Ok(output.say(format_args!("message {}", response.key), json)?)
    }
}
