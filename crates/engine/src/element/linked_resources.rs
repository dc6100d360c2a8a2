//! The resources that a service task links, in the headers of its job.

use bpmn::LINKED_RESOURCES_HEADER;
use bpmn::model::{Binding, LinkedResource};
use feel::json;
use protocol::{ErrorType, Key, Text};

use super::bound_version::{Versions, deployment_of};
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;

/// The headers of a job with the resources that it links, as they are now.
pub(super) fn add(
    execution: &Execution<'_>,
    token: &Token,
    headers: &str,
    resources: &[LinkedResource],
) -> Result<Text, Problem> {
    if resources.is_empty() {
        return Ok(headers.into());
    }
    let mut list = String::from("[");
    for resource in resources {
        let key = find(execution, token, resource)?;
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str("{\"resourceKey\":\"");
        list.push_str(&key.to_string());
        list.push_str("\",\"resourceType\":");
        json::write_string(&resource.resource_type, &mut list);
        list.push_str(",\"linkName\":");
        match &resource.link_name {
            Some(name) => json::write_string(name, &mut list),
            None => list.push_str("null"),
        }
        list.push('}');
    }
    list.push(']');
    // The model has no header of this name where it links something.
    let mut all = String::from("{");
    json::write_string(LINKED_RESOURCES_HEADER, &mut all);
    all.push(':');
    json::write_string(&list, &mut all);
    if headers.len() > "{}".len() {
        all.push(',');
    }
    all.push_str(headers.strip_prefix('{').unwrap_or(headers));
    Ok(all.into())
}

/// The version of the resource that its binding means.
fn find(execution: &Execution<'_>, token: &Token, resource: &LinkedResource) -> Result<Key, Problem> {
    let id = &resource.id;
    let found = Versions::of_resources(&execution.state.tables).find(execution, token, id, &resource.binding);
    found.ok_or_else(|| {
        let message = match &resource.binding {
            Binding::Latest => format!(
                "Expected to link a resource with id '{id}', but no resource with this id is found. Deploy a resource with this \
                 id, then resolve the incident."
            ),
            Binding::Deployment => format!(
                "Expected to link a resource with id '{id}' and binding type 'deployment', but no such resource found in the \
                 deployment with key {} which contains the process. Migrate the instance to a version of its process that was \
                 deployed together with the resource.",
                deployment_of(execution, token)
            ),
            Binding::VersionTag(tag) => format!(
                "Expected to link a resource with id '{id}' and version tag '{tag}', but no such resource found. Deploy a \
                 resource with this id and version tag, then resolve the incident."
            ),
        };
        Problem::new(ErrorType::ResourceNotFound, message)
    })
}
