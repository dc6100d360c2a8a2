//! From one executable `process` element to the model: flow elements in document order, depth first.

use std::collections::HashMap;
use std::sync::Arc;

use roxmltree::Node;
use rustc_hash::FxHashMap;

use crate::activities::{self, MULTI_INSTANCE};
use crate::draft::Draft;
use crate::events::{self, StartPlace};
use crate::extensions::{Extensions, check_children, refuse_misplaced_extension};
use crate::model::{Behavior, Element, ElementIndex, ElementType, EventType, ExecutableProcess, PROCESS};
use crate::report::Problems;
use crate::roots::Roots;
use crate::vocabulary::{self, FlowElement, NodeKind, flow_element};
use crate::xml::{self, BPMN_NAMESPACE, present};
use crate::{ad_hoc, catch_rules, compensation, flows, gateways, listeners, scopes, user_tasks};

/// Compiles one process. The result is sound only if no problem was added.
pub(crate) fn compile<'a, 'input>(
    process: Node<'a, 'input>,
    roots: &Roots<'a, 'input>,
    problems: &mut Problems,
) -> ExecutableProcess {
    let id: Arc<str> = Arc::from(process.attribute("id").unwrap_or_default());
    let mut draft =
        Draft { roots, elements: Vec::new(), nodes: Vec::new(), index_by_id: HashMap::new(), flow_nodes: Vec::new() };
    let extensions = Extensions::read(process, problems);
    user_tasks::check_embedded_forms(process, problems);
    if require_id(process, problems) {
        draft.add(process, ElementType::Process, None, Behavior::Container { none_start_event: None });
        listeners::listen(&mut draft, PROCESS, &extensions, problems);
        draft.read_container(process, PROCESS, problems);
        scopes::check_process_start(&mut draft, problems);
        scopes::attach_boundary_events(&mut draft, problems);
        scopes::connect_links(&mut draft, problems);
    }
    let flows = flows::connect(&mut draft, problems);
    gateways::connect_events(&mut draft, &flows, problems);
    compensation::connect(&mut draft, &flows, problems);
    ad_hoc::connect(&mut draft);
    catch_rules::check(&draft, problems);
    ExecutableProcess {
        id,
        name: present(process, "name").map(Arc::from),
        version_tag: extensions.version_tag(problems),
        element_by_id: by_id(&draft.elements),
        flow_by_id: flows::by_id(&flows),
        triggered_start_events: draft
            .elements_with_indexes()
            .filter(|(_, element)| element.flow_scope == Some(PROCESS))
            .filter(|(_, element)| matches!(element.behavior, Behavior::StartEvent(_)))
            .map(|(index, _)| index)
            .collect(),
        joining_inclusive_gateways: draft
            .elements_with_indexes()
            .filter(|(_, element)| matches!(element.behavior, Behavior::InclusiveGateway { .. }))
            .filter(|(_, element)| element.incoming.len() > 1)
            .map(|(index, _)| index)
            .collect(),
        call_activities: call_activities(&draft),
        elements: draft.elements,
        flows,
    }
}

fn call_activities(draft: &Draft) -> Vec<Arc<str>> {
    let elements = draft.elements.iter().filter(|element| matches!(element.behavior, Behavior::CallActivity(_)));
    let mut ids: Vec<_> = elements.map(|element| element.id.clone()).collect();
    ids.sort_unstable();
    ids
}

/// Elements by BPMN id; the body of an activity that runs several times comes before its inner activity.
fn by_id(elements: &[Element]) -> FxHashMap<Arc<str>, ElementIndex> {
    let mut by_id = FxHashMap::default();
    for (index, element) in (0_u32..).zip(elements) {
        by_id.entry(element.id.clone()).or_insert(ElementIndex(index));
    }
    by_id
}

impl<'a, 'input> Draft<'_, 'a, 'input> {
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
                    let scope = self.scope_of_event_sub_processes(scope);
                    self.read_node(node, NodeKind::EventSubProcess, scope, problems);
                }
                FlowElement::Node(kind) => self.read_node(node, kind, scope, problems),
                // Was read together with the activity itself.
                FlowElement::Unsupported if is_multi_instance(node) && may_be_multi_instance(container) => {}
                FlowElement::Unsupported if is_completion_condition(node, container) => {}
                FlowElement::Unsupported => {
                    problems.refuse_element_type(node);
                    self.add(node, ElementType::Task, Some(scope), Behavior::PassThrough);
                }
            }
        }
    }

    fn read_node(&mut self, node: Node<'a, 'input>, kind: NodeKind, scope: ElementIndex, problems: &mut Problems) {
        require_id(node, problems);
        let scope = self.read_multi_instance(node, kind, scope, problems);
        let extensions = Extensions::read(node, problems);
        let (behavior, event_type) = self.behavior(node, kind, scope, &extensions, problems);
        let (inputs, outputs) = extensions.mappings(problems);
        let index = self.add(node, kind.element_type(), Some(scope), behavior);
        let element = self.element_mut(index);
        element.event_type = event_type;
        if vocabulary::has_input_mappings(&element.behavior) {
            element.inputs = inputs;
        }
        if vocabulary::has_output_mappings(element.element_type, &element.behavior) {
            element.outputs = outputs;
        }
        listeners::listen(self, index, &extensions, problems);
        match kind {
            NodeKind::SubProcess => {
                self.read_container(node, index, problems);
                scopes::check_sub_process_start(self, index, problems);
            }
            NodeKind::AdHocSubProcess => {
                let inner = ad_hoc::add_inner_instance(self, node, index);
                self.read_container(node, inner, problems);
                ad_hoc::check_content(self, index, inner, problems);
            }
            NodeKind::EventSubProcess => {
                self.read_container(node, index, problems);
                scopes::check_event_sub_process_start(self, index, problems);
                self.element_mut(scope).event_sub_processes.push(index);
            }
            _ => {
                let is_read = |name: &str| {
                    (kind.is_event() && vocabulary::is_event_definition(name))
                        || (kind.may_be_multi_instance() && name == MULTI_INSTANCE)
                };
                check_children(node, is_read, problems);
            }
        }
    }

    /// Adds the body of an activity that runs several times; returns the scope of what the activity itself is then.
    fn read_multi_instance(
        &mut self,
        node: Node<'a, 'input>,
        kind: NodeKind,
        scope: ElementIndex,
        problems: &mut Problems,
    ) -> ElementIndex {
        if !kind.may_be_multi_instance() {
            return scope;
        }
        let inner = ElementIndex(self.next_index().0 + 1);
        match activities::multi_instance(node, inner, problems) {
            Some(body) => {
                self.add(node, ElementType::MultiInstanceBody, Some(scope), Behavior::MultiInstanceBody(body))
            }
            None => scope,
        }
    }

    /// What the element does, and the type of event it is. After a problem it is something that takes its place.
    fn behavior(
        &self,
        node: Node<'a, 'input>,
        kind: NodeKind,
        scope: ElementIndex,
        extensions: &Extensions,
        problems: &mut Problems,
    ) -> (Behavior, EventType) {
        let behavior = match kind {
            NodeKind::StartEvent
            | NodeKind::IntermediateCatchEvent
            | NodeKind::IntermediateThrowEvent
            | NodeKind::BoundaryEvent
            | NodeKind::EndEvent => {
                return events::behavior(self, node, kind, self.start_place(scope), extensions, problems);
            }
            NodeKind::ReceiveTask => {
                let event = events::receive_task(self, node, problems);
                let behavior = event.map_or(Behavior::PassThrough, Behavior::ReceiveTask);
                return (behavior, EventType::Message);
            }
            NodeKind::JobTask(element_type) => {
                if element_type == ElementType::SendTask {
                    events::check_thrown_message(self, node, problems);
                }
                let behavior = if let Some(script) = extensions.script(node, problems) {
                    script.map(Behavior::Script)
                } else if let Some(called) = extensions.called_decision(node, problems) {
                    called.map(Behavior::CalledDecision)
                } else {
                    let job = extensions.job_definition(node, element_type, &Extensions::default(), problems);
                    job.map(Behavior::JobWorker)
                };
                behavior.unwrap_or(Behavior::PassThrough)
            }
            NodeKind::UserTask => user_tasks::user_task(extensions, problems)
                .map_or(Behavior::PassThrough, |task| Behavior::UserTask(Box::new(task))),
            NodeKind::PassThroughTask(_) => Behavior::PassThrough,
            NodeKind::CallActivity => activities::called_element(node, extensions, problems)
                .map_or(Behavior::PassThrough, Behavior::CallActivity),
            // Default flows, and the events behind a gateway, are found when all flows are known.
            NodeKind::ExclusiveGateway => Behavior::ExclusiveGateway { default: None },
            NodeKind::InclusiveGateway => Behavior::InclusiveGateway { default: None },
            NodeKind::ParallelGateway => Behavior::ParallelGateway,
            NodeKind::EventBasedGateway => Behavior::EventBasedGateway { events: Vec::new() },
            // Start events are found when the inside is read.
            NodeKind::SubProcess => Behavior::Container { none_start_event: None },
            NodeKind::EventSubProcess => Behavior::EventSubProcess { start_event: PROCESS },
            NodeKind::AdHocSubProcess => {
                let inner_instance = ElementIndex(self.next_index().0 + 1);
                Behavior::AdHocSubProcess(Box::new(ad_hoc::read(node, inner_instance, extensions, problems)))
            }
        };
        (behavior, EventType::Unspecified)
    }

    /// The event sub-processes in an ad-hoc sub-process wait once, not in each of its inner instances.
    fn scope_of_event_sub_processes(&self, scope: ElementIndex) -> ElementIndex {
        let element = self.element(scope);
        match element.behavior {
            Behavior::AdHocSubProcessInnerInstance => element.flow_scope.unwrap_or(scope),
            _ => scope,
        }
    }

    fn start_place(&self, scope: ElementIndex) -> StartPlace {
        match self.element(scope).element_type {
            ElementType::Process => StartPlace::Process,
            ElementType::EventSubProcess => StartPlace::EventSubProcess,
            _ => StartPlace::SubProcess,
        }
    }
}

fn is_multi_instance(node: Node) -> bool {
    node.tag_name().name() == MULTI_INSTANCE
}

/// Of the elements that have flow elements inside, only embedded sub-processes may run several times.
fn may_be_multi_instance(container: Node) -> bool {
    xml::is_bpmn(container, "adHocSubProcess")
        || (xml::is_bpmn(container, "subProcess") && !xml::is_true(container, "triggeredByEvent"))
}

fn is_completion_condition(node: Node, container: Node) -> bool {
    node.tag_name().name() == ad_hoc::COMPLETION_CONDITION && xml::is_bpmn(container, "adHocSubProcess")
}

fn require_id(node: Node, problems: &mut Problems) -> bool {
    let has_id = present(node, "id").is_some();
    if !has_id {
        problems.add(node, "Element id must be present and not empty. Set the attribute 'id'.");
    }
    has_id
}
