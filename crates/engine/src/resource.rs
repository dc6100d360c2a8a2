//! RESOURCE FETCH: a client reads a resource that is only kept. It changes nothing.

use protocol::{Payload, Rejection, ResourceIntent, ResourceValue};

use crate::execution::{Execution, Outcome};

pub(crate) fn fetch(execution: &mut Execution<'_>, value: &ResourceValue) -> Outcome {
    let wanted = value.metadata.resource_key;
    let tenant = &value.metadata.tenant_id;
    let row = execution.state.tables.resources.get(&wanted.raw());
    let row = row.filter(|row| tenant.is_empty() || *tenant == row.metadata.tenant_id).ok_or_else(|| {
        Rejection::not_found(format!("Expected to fetch resource but no resource found with key `{wanted}`"))
    })?;
    let fetched = ResourceValue { metadata: row.metadata.clone(), resource_prop: row.resource.clone() };
    execution.reply(wanted, Payload::Resource(ResourceIntent::Fetched, Box::new(fetched)));
    Ok(())
}
