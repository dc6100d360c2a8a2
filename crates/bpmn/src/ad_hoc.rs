//! Ad-hoc sub-processes: no flow says what inside is done, and in which order.
//!
//! Everything inside except event sub-processes lies in an element of its own between: the inner instance, of which there is
//! one for each element that was activated.

use std::sync::Arc;

use feel::json;
use roxmltree::Node;

use crate::activities;
use crate::draft::Draft;
use crate::expressions::required_expression;
use crate::extensions::Extensions;
use crate::model::{AdHocChoices, AdHocSubProcess, Behavior, ElementIndex, ElementType};
use crate::report::Problems;
use crate::xml::{self, is_bpmn, is_true_or_absent, present};

/// What the id of an inner instance has behind that of its ad-hoc sub-process. No id in a file has this character.
const INNER_INSTANCE: &str = "#innerInstance";
/// The condition at which an ad-hoc sub-process is done.
pub(crate) const COMPLETION_CONDITION: &str = "completionCondition";

/// What the element says of itself; its elements are found when all flows are known.
pub(crate) fn read(
    node: Node,
    inner_instance: ElementIndex,
    extensions: &Extensions,
    problems: &mut Problems,
) -> AdHocSubProcess {
    let collection = extensions.ad_hoc.and_then(|ad_hoc| Some((ad_hoc, present(ad_hoc, "activeElementsCollection")?)));
    let condition = node.children().find(|node| is_bpmn(*node, COMPLETION_CONDITION));
    let condition = condition.map(|node| (node, xml::trimmed_text(node))).filter(|(_, text)| !text.is_empty());
    let job = extensions.optional_job_definition(problems);
    if job.is_some() {
        check_left_to_worker(node, collection.is_some(), condition.is_some(), problems);
    }
    AdHocSubProcess {
        inner_instance,
        choices: Arc::new(AdHocChoices { elements: Vec::new(), document: Arc::from("[]") }),
        active_elements_collection: collection.and_then(|(node, text)| required_expression(node, text, problems)),
        job: job.flatten(),
        output: extensions.ad_hoc.and_then(|node| activities::output(node, problems)),
        completion_condition: condition.and_then(|(node, text)| required_expression(node, &text, problems)),
        cancel_remaining_instances: is_true_or_absent(node, "cancelRemainingInstances"),
    }
}

/// What a worker decides is not decided by the model too.
fn check_left_to_worker(node: Node, has_collection: bool, has_condition: bool, problems: &mut Problems) {
    let given = [
        ("activeElementsCollection", has_collection),
        ("completionCondition", has_condition),
        ("cancelRemainingInstances", !is_true_or_absent(node, "cancelRemainingInstances")),
    ];
    for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        problems.add(
            node,
            format!(
                "Must not define {name} in combination with zeebe:taskDefinition. The job worker decides it: remove one of them."
            ),
        );
    }
}

/// Adds the scope of what is inside.
pub(crate) fn add_inner_instance<'a, 'input>(
    draft: &mut Draft<'_, 'a, 'input>,
    node: Node<'a, 'input>,
    ad_hoc: ElementIndex,
) -> ElementIndex {
    let element_type = ElementType::AdHocSubProcessInnerInstance;
    let inner = draft.add(node, element_type, Some(ad_hoc), Behavior::AdHocSubProcessInnerInstance);
    let id = Arc::from(format!("{}{INNER_INSTANCE}", draft.element(ad_hoc).id));
    let element = draft.element_mut(inner);
    element.id = id;
    element.name = None;
    inner
}

/// What may be inside, when all of it was read.
pub(crate) fn check_content(draft: &Draft, ad_hoc: ElementIndex, inner: ElementIndex, problems: &mut Problems) {
    let node = draft.node(ad_hoc);
    let types = || draft.elements[inner.0 as usize..].iter().filter(|element| element.flow_scope == Some(inner));
    if types().any(|element| element.element_type == ElementType::StartEvent) {
        problems.add(node, "Must not contain a start event. Remove it: what begins is chosen when the process runs.");
    }
    if types().any(|element| element.element_type == ElementType::EndEvent) {
        problems.add(node, "Must not contain an end event. Remove it: a path ends behind its last element.");
    }
    if !types().any(|element| element.element_type != ElementType::BoundaryEvent) {
        problems.add(node, "Must have at least one activity. Draw the tasks or sub-processes that can be chosen.");
    }
    for event_sub_process in &draft.element(ad_hoc).event_sub_processes {
        let Behavior::EventSubProcess { start_event } = draft.element(*event_sub_process).behavior else { continue };
        if draft.element(start_event).catch_event().is_some_and(|event| event.is_interrupting) {
            problems.add(
                draft.node(*event_sub_process),
                "An interrupting event subprocess is not allowed inside an ad-hoc subprocess. Set isInterrupting=\"false\" \
                 on its start event.",
            );
        }
    }
}

/// Finds what can be activated, when all flows are known.
pub(crate) fn connect(draft: &mut Draft) {
    let ad_hocs: Vec<(ElementIndex, ElementIndex)> = draft
        .elements_with_indexes()
        .filter_map(|(index, element)| match &element.behavior {
            Behavior::AdHocSubProcess(ad_hoc) => Some((index, ad_hoc.inner_instance)),
            _ => None,
        })
        .collect();
    for (index, inner) in ad_hocs {
        let mut elements: Vec<ElementIndex> = draft
            .elements_with_indexes()
            .skip(inner.0 as usize)
            .filter(|(_, element)| element.flow_scope == Some(inner) && element.incoming.is_empty())
            .filter(|(_, element)| {
                !matches!(
                    element.behavior,
                    Behavior::BoundaryEvent { .. }
                        | Behavior::LinkCatchEvent
                        | Behavior::CompensationBoundaryEvent { .. }
                )
            })
            .map(|(index, _)| index)
            .collect();
        elements.sort_by(|one, other| draft.element(*one).id.cmp(&draft.element(*other).id));
        let choices = choices(draft, elements);
        if let Behavior::AdHocSubProcess(ad_hoc) = &mut draft.element_mut(index).behavior {
            ad_hoc.choices = choices;
        }
    }
}

fn choices(draft: &Draft, elements: Vec<ElementIndex>) -> Arc<AdHocChoices> {
    Arc::new(AdHocChoices { document: document(draft, &elements), elements })
}

/// Id, name and documentation of elements.
fn document(draft: &Draft, elements: &[ElementIndex]) -> Arc<str> {
    let mut text = String::from("[");
    for index in elements {
        let (element, node) = (draft.element(*index), draft.node(*index));
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str("{\"elementId\":");
        json::write_string(&element.id, &mut text);
        if let Some(name) = &element.name {
            text.push_str(",\"elementName\":");
            json::write_string(name, &mut text);
        }
        let documentation = node.children().find(|node| is_bpmn(*node, "documentation")).map(xml::trimmed_text);
        if let Some(documentation) = documentation.filter(|text| !text.is_empty()) {
            text.push_str(",\"documentation\":");
            json::write_string(&documentation, &mut text);
        }
        text.push('}');
    }
    text.push(']');
    Arc::from(text)
}
