//! Resolving incidents.

use protocol::{IncidentIntent, IncidentValue, Key, Payload};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant_by_key;
use crate::validation::Target;

/// Wants an instance to go on where an incident holds it.
#[derive(Debug, Default)]
pub(crate) struct ResolveIncident {
    pub incident_key: i64,
    pub operation_reference: Option<u64>,
    /// The batch operation that it is a part of.
    pub batch_operation: Option<i64>,
}

impl Request for ResolveIncident {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target { intent: IncidentIntent::Resolve.name(), action: "resolve incident", kind: "incident" };
        let payload = |_| {
            let value = IncidentValue { tenant_id: tenant_by_key(), ..IncidentValue::default() };
            Payload::Incident(IncidentIntent::Resolve, Box::new(value))
        };
        let mut submission = Submission::by_key(router, target, self.incident_key, self.operation_reference, payload)?;
        submission.command.batch_operation_reference = self.batch_operation.map(Key::from_raw);
        Ok(submission)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}
