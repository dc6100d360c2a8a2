//! Which XML names of BPMN and of the `zeebe:` extensions mean what to this version.

use crate::model::{Behavior, ElementType};

/// What a child of a process or sub-process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowElement {
    /// A node that tokens visit.
    Node(NodeKind),
    /// A sequence flow.
    SequenceFlow,
    /// Part of the drawing, the documentation or the data modelling: never executed.
    NotExecuted,
    /// Everything else, also names that BPMN does not know.
    Unsupported,
}

/// The kinds of flow nodes that are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    StartEvent,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    BoundaryEvent,
    EndEvent,
    /// A task done by a job worker.
    JobTask(ElementType),
    /// A task that completes at once.
    PassThroughTask(ElementType),
    UserTask,
    ReceiveTask,
    CallActivity,
    SubProcess,
    EventSubProcess,
    AdHocSubProcess,
    ExclusiveGateway,
    InclusiveGateway,
    ParallelGateway,
    EventBasedGateway,
}

impl NodeKind {
    pub(crate) fn element_type(self) -> ElementType {
        match self {
            Self::StartEvent => ElementType::StartEvent,
            Self::IntermediateCatchEvent => ElementType::IntermediateCatchEvent,
            Self::IntermediateThrowEvent => ElementType::IntermediateThrowEvent,
            Self::BoundaryEvent => ElementType::BoundaryEvent,
            Self::EndEvent => ElementType::EndEvent,
            Self::JobTask(element_type) | Self::PassThroughTask(element_type) => element_type,
            Self::UserTask => ElementType::UserTask,
            Self::ReceiveTask => ElementType::ReceiveTask,
            Self::CallActivity => ElementType::CallActivity,
            Self::SubProcess => ElementType::SubProcess,
            Self::EventSubProcess => ElementType::EventSubProcess,
            Self::AdHocSubProcess => ElementType::AdHocSubProcess,
            Self::ExclusiveGateway => ElementType::ExclusiveGateway,
            Self::InclusiveGateway => ElementType::InclusiveGateway,
            Self::ParallelGateway => ElementType::ParallelGateway,
            Self::EventBasedGateway => ElementType::EventBasedGateway,
        }
    }

    /// Whether it is an event: what it does depends on its event definition.
    pub(crate) fn is_event(self) -> bool {
        matches!(
            self,
            Self::StartEvent
                | Self::IntermediateCatchEvent
                | Self::IntermediateThrowEvent
                | Self::BoundaryEvent
                | Self::EndEvent
        )
    }

    /// Whether it is an activity that may run several times.
    pub(crate) fn may_be_multi_instance(self) -> bool {
        matches!(
            self,
            Self::JobTask(_)
                | Self::PassThroughTask(_)
                | Self::UserTask
                | Self::ReceiveTask
                | Self::CallActivity
                | Self::SubProcess
                | Self::AdHocSubProcess
        )
    }
}

/// Whether execution listeners of the BPMN element `name` may have a meaning.
pub(crate) fn may_have_listeners(name: &str) -> bool {
    name == "process" || matches!(flow_element(name), FlowElement::Node(_))
}

/// Whether boundary events may be attached to an element of this type.
pub(crate) fn is_activity(element_type: ElementType) -> bool {
    matches!(
        element_type,
        ElementType::ServiceTask
            | ElementType::SendTask
            | ElementType::ScriptTask
            | ElementType::BusinessRuleTask
            | ElementType::ReceiveTask
            | ElementType::UserTask
            | ElementType::ManualTask
            | ElementType::Task
            | ElementType::CallActivity
            | ElementType::SubProcess
            | ElementType::AdHocSubProcess
            | ElementType::MultiInstanceBody
    )
}

/// Whether input mappings of an element take effect. Elsewhere they are checked and then have no effect, as in Zeebe.
pub(crate) fn has_input_mappings(behavior: &Behavior) -> bool {
    matches!(
        behavior,
        Behavior::JobWorker(_)
            | Behavior::UserTask(_)
            | Behavior::Script(_)
            | Behavior::CalledDecision(_)
            | Behavior::Container { .. }
            | Behavior::EventSubProcess { .. }
            | Behavior::ReceiveTask(_)
            | Behavior::IntermediateCatchEvent(_)
            | Behavior::CallActivity(_)
            | Behavior::SignalThrowEvent { .. }
            | Behavior::AdHocSubProcess(_)
    )
}

/// Whether output mappings of an element take effect.
pub(crate) fn has_output_mappings(element_type: ElementType, behavior: &Behavior) -> bool {
    has_input_mappings(behavior)
        || match behavior {
            Behavior::NoneStartEvent
            | Behavior::StartEvent(_)
            | Behavior::BoundaryEvent { .. }
            | Behavior::LinkCatchEvent
            | Behavior::LinkThrowEvent { .. }
            | Behavior::EscalationThrowEvent { .. }
            | Behavior::NoneEndEvent => true,
            // Of the elements that complete at once, only the none intermediate throw event has outputs.
            Behavior::PassThrough => element_type == ElementType::IntermediateThrowEvent,
            _ => false,
        }
}

/// What the BPMN element `name` is as a child of a process or sub-process.
pub(crate) fn flow_element(name: &str) -> FlowElement {
    use FlowElement::{Node, NotExecuted, SequenceFlow, Unsupported};
    match name {
        "startEvent" => Node(NodeKind::StartEvent),
        "intermediateCatchEvent" => Node(NodeKind::IntermediateCatchEvent),
        "intermediateThrowEvent" => Node(NodeKind::IntermediateThrowEvent),
        "boundaryEvent" => Node(NodeKind::BoundaryEvent),
        "endEvent" => Node(NodeKind::EndEvent),
        "serviceTask" => Node(NodeKind::JobTask(ElementType::ServiceTask)),
        "sendTask" => Node(NodeKind::JobTask(ElementType::SendTask)),
        "scriptTask" => Node(NodeKind::JobTask(ElementType::ScriptTask)),
        "businessRuleTask" => Node(NodeKind::JobTask(ElementType::BusinessRuleTask)),
        "manualTask" => Node(NodeKind::PassThroughTask(ElementType::ManualTask)),
        "task" => Node(NodeKind::PassThroughTask(ElementType::Task)),
        "userTask" => Node(NodeKind::UserTask),
        "receiveTask" => Node(NodeKind::ReceiveTask),
        "callActivity" => Node(NodeKind::CallActivity),
        "exclusiveGateway" => Node(NodeKind::ExclusiveGateway),
        "inclusiveGateway" => Node(NodeKind::InclusiveGateway),
        "parallelGateway" => Node(NodeKind::ParallelGateway),
        "eventBasedGateway" => Node(NodeKind::EventBasedGateway),
        "subProcess" => Node(NodeKind::SubProcess),
        "adHocSubProcess" => Node(NodeKind::AdHocSubProcess),
        "sequenceFlow" => SequenceFlow,
        _ if is_annotation(name) => NotExecuted,
        _ => Unsupported,
    }
}

/// Whether the BPMN element `name` may be inside any flow element without a meaning for execution.
pub(crate) fn is_annotation(name: &str) -> bool {
    matches!(
        name,
        "association"
            | "auditing"
            | "categoryValueRef"
            | "correlationSubscription"
            | "dataInput"
            | "dataInputAssociation"
            | "dataObject"
            | "dataObjectReference"
            | "dataOutput"
            | "dataOutputAssociation"
            | "dataStoreReference"
            | "documentation"
            | "extensionElements"
            | "group"
            | "humanPerformer"
            | "incoming"
            | "inputSet"
            | "ioBinding"
            | "ioSpecification"
            | "laneSet"
            | "monitoring"
            | "outgoing"
            | "outputSet"
            | "performer"
            | "potentialOwner"
            | "property"
            | "rendering"
            | "resourceRole"
            | "script"
            | "supportedInterfaceRef"
            | "supports"
            | "textAnnotation"
    )
}

/// Whether the BPMN element `name` says what kind of event an event is.
pub(crate) fn is_event_definition(name: &str) -> bool {
    name.ends_with("EventDefinition") || name == "eventDefinitionRef"
}

/// The name of the type of an element: `userTask` is written `UserTask`.
pub(crate) fn type_name(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The alternative to `zeebe:taskDefinition` that a job task or message event of this type may have, if any, and what to
/// set when it has neither.
pub(crate) fn alternative_to_task_definition(element_type: ElementType) -> Option<(&'static str, &'static str)> {
    const THIS_VERSION: &str =
        "This version executes it with 'zeebe:taskDefinition': set its type to the type of the job worker.";
    match element_type {
        ElementType::SendTask | ElementType::IntermediateThrowEvent | ElementType::EndEvent => {
            Some(("publishMessage", THIS_VERSION))
        }
        ElementType::ScriptTask => Some((
            "script",
            "Set the script to an expression that starts with '=', or the type of the task definition to the type of the \
             job worker.",
        )),
        ElementType::BusinessRuleTask => Some((
            "calledDecision",
            "Set the called decision to the id of a decision, or the type of the task definition to the type of the job \
             worker.",
        )),
        _ => None,
    }
}

/// Whether the `zeebe:` extension element `name` below `parent` has no meaning for execution, so that it may be ignored:
/// properties are for connectors and reports, forms of a start event and embedded forms for the task list.
pub(crate) fn is_ignored_extension(name: &str, parent: &str) -> bool {
    match name {
        "properties" => true,
        "formDefinition" => parent == "startEvent",
        "userTaskForm" => parent == "process",
        _ => false,
    }
}
