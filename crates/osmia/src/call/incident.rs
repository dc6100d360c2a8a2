//! `osmia resolve`.

use clap::Args;
use gateway_interface::ResolveIncidentRequest;
use serde_json::json;
use tonic::Code;

use super::action::Action;
use crate::ask::Rest;
use crate::client::{Client, ClientError, Outcome};
use crate::output::{Output, key};

#[derive(Debug, Args)]
pub(crate) struct Resolve {
    /// Key of the incident, or of a process instance, of which all are resolved, and those of what it called.
    key: i64,
}

impl Action for Resolve {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = ResolveIncidentRequest { incident_key: self.key, operation_reference: None };
        match client.gateway.resolve_incident(client.request(request)).await {
            Err(status) if status.code() == Code::NotFound => {
                // Only REST knows instances. It is asked without the runtime, as other commands ask it.
                tokio::task::block_in_place(|| self.of_instance(&client, status.into(), output))
            }
            Err(status) => Err(status.into()),
            Ok(_) => Ok(output
                .say(format_args!("incident {} is resolved", self.key), || json!({ "incidentKey": key(self.key) }))?),
        }
    }
}

impl Resolve {
    /// Resolves the incidents of a process instance, if the key is one's.
    fn of_instance(&self, client: &Client, no_incident: ClientError, output: &Output) -> Outcome {
        let refused = |why: String| Err(ClientError::Question(format!("{no_incident}. {why}")));
        let rest = match client.rest() {
            Ok(rest) => rest,
            Err(error) => {
                return refused(format!("Whether it is the key of a process instance cannot be told. {error}"));
            }
        };
        match rest.get_if_there(&format!("/v2/process-instances/{}", self.key)) {
            Ok(Some(_)) => self.resolve_all(&rest, output),
            Ok(None) => refused("There is no process instance with this key either.".to_owned()),
            Err(error) => refused(format!("Whether it is the key of a process instance cannot be told. {error}")),
        }
    }

    fn resolve_all(&self, rest: &Rest, output: &Output) -> Outcome {
        let path = format!("/v2/process-instances/{}", self.key);
        let active = json!({ "filter": { "state": "ACTIVE" }, "page": { "limit": 1 } });
        let count =
            rest.post(&format!("{path}/incidents/search"), &active)?["page"]["totalItems"].as_u64().unwrap_or(0);
        if count == 0 {
            return Err(ClientError::Question(format!("Process instance {} has no active incident.", self.key)));
        }
        rest.post(&format!("{path}/incident-resolution"), &json!({}))?;
        let text = match count {
            1 => format!("the incident of process instance {} is resolved", self.key),
            _ => format!("{count} incidents of process instance {} are resolved", self.key),
        };
        Ok(output.say(text, || json!({ "processInstanceKey": key(self.key), "resolvedIncidents": count }))?)
    }
}
