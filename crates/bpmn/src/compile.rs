//! From one executable `process` element to the model: flow elements in document order, depth first.

use std::collections::HashMap;
use std::sync::Arc;

use roxmltree::Node;

use crate::extensions::{Extensions, check_children, refuse_misplaced_extension};
use crate::flows;
use crate::model::{Behavior, Element, ElementIndex, ElementType, ExecutableProcess, PROCESS};
use crate::report::Problems;
use crate::vocabulary::{FlowElement, NodeKind, flow_element, is_event_definition};
use crate::xml::{self, BPMN_NAMESPACE, is_in, present};

/// What is known of a process while its file is read.
pub(crate) struct Draft<'a, 'input> {
    pub(crate) elements: Vec<Element>,
    /// The XML of `elements[i]`; an unsupported element has its place too, so that flows to it are no further problem.
    pub(crate) nodes: Vec<Node<'a, 'input>>,
    /// Flow nodes by BPMN id; the first of several with one id.
    pub(crate) index_by_id: HashMap<&'a str, ElementIndex>,
    /// The `sequenceFlow` elements in document order.
    pub(crate) flow_nodes: Vec<Node<'a, 'input>>,
}

/// Compiles one process. The result is sound only if no problem was added.
pub(crate) fn compile(process: Node, problems: &mut Problems) -> ExecutableProcess {
    let id: Arc<str> = Arc::from(process.attribute("id").unwrap_or_default());
    let mut draft =
        Draft { elements: Vec::new(), nodes: Vec::new(), index_by_id: HashMap::new(), flow_nodes: Vec::new() };
    let extensions = Extensions::read(process, problems);
    if require_id(process, problems) {
        draft.add(process, ElementType::Process, None, Behavior::Container { none_start_event: None });
        draft.read_container(process, PROCESS, problems);
        draft.check_process_start(problems);
    }
    let flows = flows::connect(&mut draft, problems);
    ExecutableProcess {
        id,
        name: present(process, "name").map(Arc::from),
        version_tag: extensions.version_tag(),
        element_by_id: (0_u32..)
            .zip(&draft.elements)
            .map(|(index, element)| (element.id.clone(), ElementIndex(index)))
            .collect(),
        flow_by_id: flows::by_id(&flows),
        triggered_start_events: Vec::new(),
        elements: draft.elements,
        flows,
    }
}

impl<'a, 'input> Draft<'a, 'input> {
    fn add(
        &mut self,
        node: Node<'a, 'input>,
        element_type: ElementType,
        flow_scope: Option<ElementIndex>,
        behavior: Behavior,
    ) -> ElementIndex {
        let index = u32::try_from(self.elements.len()).expect("the limit of XML nodes is below u32::MAX");
        let index = ElementIndex(index);
        let id = node.attribute("id").unwrap_or_default();
        // Sequence flows connect to flow nodes, never to the process.
        if flow_scope.is_some() {
            self.index_by_id.entry(id).or_insert(index);
        }
        self.nodes.push(node);
        self.elements.push(Element {
            id: Arc::from(id),
            name: present(node, "name").map(Arc::from),
            element_type,
            event_type: Default::default(),
            flow_scope,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            boundary_events: Vec::new(),
            event_sub_processes: Vec::new(),
            behavior,
        });
        index
    }

    /// Reads the flow elements inside a process or sub-process. Recursion is bounded by the nesting limit of the XML.
    fn read_container(&mut self, container: Node<'a, 'input>, scope: ElementIndex, problems: &mut Problems) {
        for node in container.children().filter(Node::is_element) {
            if xml::is_in(node, xml::ZEEBE_NAMESPACE) {
                refuse_misplaced_extension(container, node, problems);
            }
            if !xml::is_in(node, BPMN_NAMESPACE) {
                continue;
            }
            match flow_element(node.tag_name().name()) {
                FlowElement::NotExecuted => {}
                FlowElement::SequenceFlow => {
                    require_id(node, problems);
                    // A sequence flow has no extension elements that mean something; others are refused by name.
                    Extensions::read(node, problems);
                    self.flow_nodes.push(node);
                }
                FlowElement::Node(NodeKind::SubProcess) if xml::is_true(node, "triggeredByEvent") => {
                    problems.add(
                        node,
                        "Elements of type 'EventSubProcess' are currently not supported by this version. \
                         Remove the event sub-process, or deploy this process to a version that supports it.",
                    );
                    self.add_unsupported(node, scope);
                }
                FlowElement::Node(kind) => self.read_node(node, kind, scope, problems),
                FlowElement::Unsupported => {
                    problems.refuse_element_type(node);
                    self.add_unsupported(node, scope);
                }
            }
        }
    }

    fn add_unsupported(&mut self, node: Node<'a, 'input>, scope: ElementIndex) {
        self.add(node, ElementType::Task, Some(scope), Behavior::PassThrough);
    }

    fn read_node(&mut self, node: Node<'a, 'input>, kind: NodeKind, scope: ElementIndex, problems: &mut Problems) {
        require_id(node, problems);
        if xml::is_true(node, "isForCompensation") {
            problems.add(
                node,
                "Compensation handlers are currently not supported by this version. \
                 Remove the element, or deploy this process to a version that supports it.",
            );
        }
        let extensions = Extensions::read(node, problems);
        let behavior = match kind {
            NodeKind::StartEvent => Behavior::NoneStartEvent,
            NodeKind::EndEvent => Behavior::NoneEndEvent,
            NodeKind::JobTask(element_type) => match extensions.job_definition(node, element_type, problems) {
                Some(job) => Behavior::JobWorker(job),
                None => Behavior::PassThrough,
            },
            NodeKind::PassThroughTask(_) => Behavior::PassThrough,
            // The default flow is found when all flows are known.
            NodeKind::ExclusiveGateway => Behavior::ExclusiveGateway { default: None },
            NodeKind::ParallelGateway => Behavior::ParallelGateway,
            NodeKind::SubProcess => Behavior::Container { none_start_event: None },
        };
        let (inputs, outputs) = extensions.mappings(problems);
        let index = self.add(node, kind.element_type(), Some(scope), behavior);
        let element = &mut self.elements[index.0 as usize];
        if kind.has_input_mappings() {
            element.inputs = inputs;
        }
        if kind.has_output_mappings() {
            element.outputs = outputs;
        }
        if kind == NodeKind::SubProcess {
            self.read_container(node, index, problems);
            self.check_sub_process_start(index, problems);
        } else {
            check_children(node, problems);
        }
    }

    /// The start events of `scope`. What is inside a scope follows it, so the search begins there.
    fn start_events(&self, scope: ElementIndex) -> Vec<ElementIndex> {
        (scope.0..)
            .zip(&self.elements[scope.0 as usize..])
            .filter(|(_, element)| element.flow_scope == Some(scope) && element.element_type == ElementType::StartEvent)
            .map(|(index, _)| ElementIndex(index))
            .collect()
    }

    fn check_process_start(&mut self, problems: &mut Problems) {
        let mut starts = self.start_events(PROCESS);
        if starts.is_empty() {
            problems.add(self.nodes[0], "Must have at least one start event. Draw a none start event in the process.");
        }
        starts.retain(|index| is_none_event(self.nodes[index.0 as usize]));
        match starts.as_slice() {
            [] => {}
            [start] => self.set_start(PROCESS, *start),
            _ => problems.add(
                self.nodes[0],
                format!(
                    "Multiple none start events are not allowed, but there are {}: {}. Keep one and remove the others.",
                    starts.len(),
                    self.ids(&starts)
                ),
            ),
        }
    }

    fn check_sub_process_start(&mut self, sub_process: ElementIndex, problems: &mut Problems) {
        let starts = self.start_events(sub_process);
        let node = self.nodes[sub_process.0 as usize];
        match starts.as_slice() {
            [start] if is_none_event(self.nodes[start.0 as usize]) => self.set_start(sub_process, *start),
            [_] => problems.add(
                node,
                "Start events in subprocesses must be of type none. Remove the event definition from the start event.",
            ),
            _ => problems.add(
                node,
                format!(
                    "Must have exactly one start event, but there are {}. A sub-process begins at its one none start event.",
                    starts.len()
                ),
            ),
        }
    }

    fn set_start(&mut self, scope: ElementIndex, start: ElementIndex) {
        self.elements[scope.0 as usize].behavior = Behavior::Container { none_start_event: Some(start) };
    }

    fn ids(&self, indexes: &[ElementIndex]) -> String {
        let ids: Vec<&str> = indexes.iter().map(|index| &*self.elements[index.0 as usize].id).collect();
        ids.join(", ")
    }
}

fn is_none_event(event: Node) -> bool {
    !event.children().any(|node| is_in(node, BPMN_NAMESPACE) && is_event_definition(node.tag_name().name()))
}

fn require_id(node: Node, problems: &mut Problems) -> bool {
    let has_id = present(node, "id").is_some();
    if !has_id {
        problems.add(node, "Element id must be present and not empty. Set the attribute 'id'.");
    }
    has_id
}
