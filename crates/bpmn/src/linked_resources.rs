//! Resources that a service task links: its worker is told their keys.

use std::sync::Arc;

use roxmltree::Node;

use crate::bindings::binding;
use crate::extensions::{required_text, zeebe_children};
use crate::model::LinkedResource;
use crate::names;
use crate::report::Problems;

/// The header that tells the worker what is linked, as the text of a JSON list.
pub const LINKED_RESOURCES_HEADER: &str = "linkedResources";
/// The most resources that an element links: each is looked for whenever a job is created.
pub const MAXIMUM_LINKED_RESOURCES: usize = 100;

/// Whether `container` has a resource.
pub(crate) fn has_any(container: Node) -> bool {
    zeebe_children(container, "linkedResource").next().is_some()
}

/// The resources in `container`, in document order; `None` after a problem. All texts are what they say: none is an expression.
pub(crate) fn read(container: Node, problems: &mut Problems) -> Option<Vec<LinkedResource>> {
    let nodes: Vec<Node> = zeebe_children(container, "linkedResource").collect();
    if nodes.len() > MAXIMUM_LINKED_RESOURCES {
        problems.add_for_new(
            container,
            format!(
                "Must link at most {MAXIMUM_LINKED_RESOURCES} resources, but there are {}. Link one that names the others.",
                nodes.len()
            ),
        );
    }
    // All are read, so that everything wrong is reported.
    let read: Vec<Option<LinkedResource>> = nodes.into_iter().map(|node| linked_resource(node, problems)).collect();
    read.into_iter().collect()
}

fn linked_resource(node: Node, problems: &mut Problems) -> Option<LinkedResource> {
    let id = required_text(node, "resourceId", "Set it to the id of the resource.", problems);
    let hint = "Set it to the type of the resource that the worker expects.";
    let resource_type = required_text(node, "resourceType", hint, problems);
    let link_name = node.attribute("linkName");
    for (attribute, text) in [("resourceId", id), ("resourceType", resource_type), ("linkName", link_name)] {
        if let Some(text) = text {
            names::check(node, attribute, text, problems);
        }
    }
    let binding = binding(node, problems)?;
    Some(LinkedResource {
        id: Arc::from(id?),
        binding,
        resource_type: Arc::from(resource_type?),
        link_name: link_name.map(Arc::from),
    })
}
