//! `osmia resolve`.

use clap::Args;
use gateway_interface::ResolveIncidentRequest;
use serde_json::json;

use super::Action;
use crate::client::{Client, Outcome};
use crate::output::{Output, key};

#[derive(Debug, Args)]
pub(crate) struct Resolve {
    /// Key of the incident.
    key: i64,
}

impl Action for Resolve {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = ResolveIncidentRequest { incident_key: self.key, operation_reference: None };
        client.gateway.resolve_incident(client.request(request)).await?;
        Ok(output.say(format_args!("incident {} is resolved", self.key), || json!({ "incidentKey": key(self.key) }))?)
    }
}
