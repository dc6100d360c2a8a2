//! Resolving incidents.

use gateway_interface::ResolveIncidentRequest;
use protocol::{IncidentIntent, IncidentValue, Payload};
use tonic::Status;

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::validation::Target;

impl Service {
    pub(crate) fn resolve(&self, request: ResolveIncidentRequest) -> Result<Pending, Status> {
        let target = Target { intent: IncidentIntent::Resolve.name(), action: "resolve incident", kind: "incident" };
        let payload = |_| {
            let value = IncidentValue { tenant_id: protocol::DEFAULT_TENANT.into(), ..IncidentValue::default() };
            Payload::Incident(IncidentIntent::Resolve, Box::new(value))
        };
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::ResolveIncident, target, request.incident_key, reference, payload)
    }
}
