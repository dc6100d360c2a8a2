//! Which elements an instruction can start: at the creation of an instance, or by its modification.

use bpmn::model::{Behavior, ElementIndex, ElementType, ExecutableProcess};
use protocol::BpmnElementType;

/// What an id means in a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Element(ElementIndex),
    SequenceFlow,
}

/// What `id` means, if the process has it.
pub(super) fn find(process: &ExecutableProcess, id: &str) -> Option<Target> {
    let element = process.element_by_id.get(id).map(|element| Target::Element(*element));
    element.or_else(|| process.flow_by_id.contains_key(id).then_some(Target::SequenceFlow))
}

impl Target {
    pub fn index(self) -> Option<ElementIndex> {
        match self {
            Target::Element(element) => Some(element),
            Target::SequenceFlow => None,
        }
    }

    /// The element, or the name of its type when no instruction can start such elements.
    pub fn supported(self, process: &ExecutableProcess) -> Result<ElementIndex, &'static str> {
        let Target::Element(element) = self else { return Err(BpmnElementType::SequenceFlow.name()) };
        match process.element(element).element_type {
            unsupported @ (ElementType::Process
            | ElementType::StartEvent
            | ElementType::BoundaryEvent
            | ElementType::AdHocSubProcessInnerInstance
            | ElementType::Unspecified) => Err(unsupported.name()),
            _ => Ok(element),
        }
    }
}

/// Whether a multi-instance activity encloses the element.
pub(super) fn is_inside_multi_instance(process: &ExecutableProcess, element: ElementIndex) -> bool {
    let enclosing = |element: &ElementIndex| process.element(*element).flow_scope;
    std::iter::successors(enclosing(&element), enclosing)
        .any(|scope| matches!(process.element(scope).behavior, Behavior::MultiInstanceBody(_)))
}

/// Whether an ad-hoc sub-process encloses the element.
pub(super) fn is_inside_ad_hoc_sub_process(process: &ExecutableProcess, element: ElementIndex) -> bool {
    let enclosing = |element: &ElementIndex| process.element(*element).flow_scope;
    std::iter::successors(enclosing(&element), enclosing)
        .any(|scope| matches!(process.element(scope).behavior, Behavior::AdHocSubProcess(_)))
}

/// Whether the element is one of the events behind an event-based gateway.
pub(super) fn follows_event_based_gateway(process: &ExecutableProcess, element: ElementIndex) -> bool {
    process.element(element).incoming.iter().any(|flow| {
        let source = process.element(process.flow(*flow).source);
        matches!(source.behavior, Behavior::EventBasedGateway { .. })
    })
}
