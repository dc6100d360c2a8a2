//! `osmia broadcast`.

use clap::Args;
use gateway_interface::BroadcastSignalRequest;
use serde_json::json;

use super::action::Action;
use crate::client::{Client, Outcome};
use crate::input::Variables;
use crate::output::{Output, key};

#[derive(Debug, Args)]
pub(crate) struct Broadcast {
    /// Name of the signal.
    name: String,
    /// Variables for all that the signal reaches: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for Broadcast {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = BroadcastSignalRequest {
            signal_name: self.name,
            variables: self.variables.into(),
            tenant_id: String::new(),
        };
        let response = client.gateway.broadcast_signal(client.request(request)).await?.into_inner();
        let json = || json!({ "signalKey": key(response.key), "tenantId": response.tenant_id });
        Ok(output.say(format_args!("signal {}", response.key), json)?)
    }
}
