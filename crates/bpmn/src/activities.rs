//! Call activities and activities that run several times.

use std::sync::Arc;

use roxmltree::Node;

use crate::bindings::binding;
use crate::expressions::{required_expression, static_or_expression};
use crate::extensions::Extensions;
use crate::model::{CalledElement, ElementIndex, MultiInstance};
use crate::names;
use crate::report::Problems;
use crate::vocabulary;
use crate::xml::{self, is_bpmn, is_true, is_true_or_absent, present};

/// `multiInstanceLoopCharacteristics` of an activity.
pub(crate) const MULTI_INSTANCE: &str = "multiInstanceLoopCharacteristics";

/// What a call activity calls; `None` after a problem.
pub(crate) fn called_element(
    activity: Node,
    extensions: &Extensions,
    problems: &mut Problems,
) -> Option<CalledElement> {
    let Some(node) = extensions.called_element else {
        problems.add(
            activity,
            "Must have exactly one 'zeebe:calledElement' extension element. Set its processId to the id of the process to call.",
        );
        return None;
    };
    let binding = binding(node, problems);
    let text = node.attribute("processId").unwrap_or_default();
    if text.trim().is_empty() {
        problems.add(
            node,
            "Expected expression but not found. Attribute 'processId' must be present and not empty: set it to the id of \
             the process to call, or to an expression that starts with '='.",
        );
        return None;
    }
    let process_id = static_or_expression(node, text, problems)?;
    names::check_static(node, "processId", &process_id, problems);
    Some(CalledElement {
        process_id,
        binding: binding?,
        propagate_all_child_variables: is_true_or_absent(node, "propagateAllChildVariables"),
        propagate_all_parent_variables: is_true_or_absent(node, "propagateAllParentVariables"),
    })
}

/// How often and with what `activity` runs, if it runs several times; its inner activity gets the place `inner`. `None`
/// also after a problem.
pub(crate) fn multi_instance(activity: Node, inner: ElementIndex, problems: &mut Problems) -> Option<MultiInstance> {
    let mut found = activity.children().filter(|node| is_bpmn(*node, MULTI_INSTANCE));
    let characteristics = found.next()?;
    if found.next().is_some() {
        problems.add(
            activity,
            format!("Must have at most one '{MULTI_INSTANCE}', but there are several. Keep one and remove the others."),
        );
    }
    let extensions = Extensions::read(characteristics, problems);
    let completion_condition = completion_condition(characteristics, problems);
    let Some(node) = extensions.loop_characteristics else {
        problems.add(
            characteristics,
            "Must have exactly one 'zeebe:loopCharacteristics' extension element. Set its inputCollection to an expression \
             that gives the list of items.",
        );
        return None;
    };
    let output = output(node, problems);
    let Some(text) = present(node, "inputCollection") else {
        problems.add(
            node,
            "Expected expression but not found. Attribute 'inputCollection' must be present and not empty: set it to an \
             expression that starts with '=' and gives the list of items.",
        );
        return None;
    };
    let input_element = present(node, "inputElement");
    input_element.iter().for_each(|name| names::check(node, "inputElement", name, problems));
    Some(MultiInstance {
        inner,
        is_sequential: is_true(characteristics, "isSequential"),
        input_collection: required_expression(node, text, problems)?,
        input_element: input_element.map(Arc::from),
        output,
        completion_condition,
    })
}

fn completion_condition(characteristics: Node, problems: &mut Problems) -> Option<feel::Expression> {
    let mut condition = None;
    for node in characteristics.children().filter(Node::is_element) {
        match node.tag_name().name() {
            name if !xml::is_in(node, xml::BPMN_NAMESPACE) || vocabulary::is_annotation(name) => {}
            "completionCondition" => condition = Some(node),
            // What Zeebe reads from `zeebe:loopCharacteristics` instead, and does not look at.
            "loopCardinality"
            | "loopDataInputRef"
            | "loopDataOutputRef"
            | "inputDataItem"
            | "outputDataItem"
            | "complexBehaviorDefinition" => {}
            _ => problems.refuse_part(node),
        }
    }
    let text = xml::trimmed_text(condition?);
    if text.is_empty() { None } else { required_expression(condition?, &text, problems) }
}

pub(crate) fn output(node: Node, problems: &mut Problems) -> Option<(Arc<str>, feel::Expression)> {
    let (given, missing) = match (present(node, "outputCollection"), present(node, "outputElement")) {
        (Some(collection), Some(element)) => {
            names::check(node, "outputCollection", collection, problems);
            return Some((Arc::from(collection), required_expression(node, element, problems)?));
        }
        (None, None) => return None,
        (Some(_), None) => ("outputCollection", "outputElement"),
        (None, Some(_)) => ("outputElement", "outputCollection"),
    };
    problems.add_for_new(
        node,
        format!("Attribute '{missing}' must be present if the attribute '{given}' is set. Set both, or neither."),
    );
    None
}
