//! Sequence flows: what they connect, their conditions, and default flows of gateways.

use std::sync::Arc;

use feel::Expression;
use roxmltree::Node;
use rustc_hash::FxHashMap;

use crate::draft::Draft;
use crate::expressions::required_expression;
use crate::model::{Behavior, ElementIndex, ElementType, FlowIndex, SequenceFlow};
use crate::report::Problems;
use crate::xml::{self, present};

/// Connects the elements of `draft` and returns the flows in document order. Flows with problems are left out.
pub(crate) fn connect(draft: &mut Draft, problems: &mut Problems) -> Vec<SequenceFlow> {
    let mut flows: Vec<SequenceFlow> = Vec::with_capacity(draft.flow_nodes.len());
    // The XML of `flows[i]`.
    let mut nodes: Vec<Node> = Vec::with_capacity(draft.flow_nodes.len());
    for node in std::mem::take(&mut draft.flow_nodes) {
        let source = end_of(node, "sourceRef", draft, problems);
        let target = end_of(node, "targetRef", draft, problems);
        let condition = condition(node, problems);
        let (Some(source), Some(target)) = (source, target) else {
            continue;
        };
        if !check_ends(node, source, target, draft, problems) {
            continue;
        }
        let index = u32::try_from(flows.len()).expect("the limit of XML nodes is below u32::MAX");
        draft.elements[source.0 as usize].outgoing.push(FlowIndex(index));
        draft.elements[target.0 as usize].incoming.push(FlowIndex(index));
        flows.push(SequenceFlow { id: Arc::from(node.attribute("id").unwrap_or_default()), source, target, condition });
        nodes.push(node);
    }
    check_conditions(draft, &mut flows, &nodes, problems);
    flows
}

/// Flows by BPMN id.
pub(crate) fn by_id(flows: &[SequenceFlow]) -> FxHashMap<Arc<str>, FlowIndex> {
    (0_u32..).zip(flows).map(|(index, flow)| (flow.id.clone(), FlowIndex(index))).collect()
}

/// The element that the attribute `end` of a sequence flow names.
fn end_of(flow: Node, end: &str, draft: &Draft, problems: &mut Problems) -> Option<ElementIndex> {
    let Some(id) = present(flow, end) else {
        problems.add(
            flow,
            format!("Attribute '{end}' must be present and not empty. Connect the sequence flow at both ends."),
        );
        return None;
    };
    let index = draft.index_by_id.get(id).copied();
    if index.is_none() {
        problems.add(
            flow,
            format!(
                "Attribute '{end}' refers to '{id}', but the process has no event, activity or gateway with this id. \
                 Connect the sequence flow to one."
            ),
        );
    }
    index
}

fn check_ends(flow: Node, source: ElementIndex, target: ElementIndex, draft: &Draft, problems: &mut Problems) -> bool {
    let [from, to] = [source, target].map(|index| &draft.elements[index.0 as usize]);
    if from.flow_scope != to.flow_scope {
        problems.add(
            flow,
            format!(
                "Sequence flows must not cross the border of a sub-process, but '{}' and '{}' are in different ones. \
                 Connect elements of the same process or sub-process.",
                from.id, to.id
            ),
        );
        return false;
    }
    let (element, message) = if to.element_type == ElementType::StartEvent {
        (target, "Start events must not have incoming sequence flows, but '{}' leads to it. Remove it.")
    } else if to.element_type == ElementType::BoundaryEvent {
        (
            target,
            "Cannot have incoming sequence flows, but '{}' leads to it. A boundary event is triggered by what it waits for: remove the flow.",
        )
    } else if to.element_type == ElementType::EventSubProcess {
        (
            target,
            "Event sub-processes must not have incoming sequence flows, but '{}' leads to it. Its start event triggers it: remove the flow.",
        )
    } else if from.element_type == ElementType::EventSubProcess {
        (
            source,
            "Event sub-processes must not have outgoing sequence flows, but '{}' leaves it. Put what follows into the event sub-process.",
        )
    } else if from.element_type == ElementType::EndEvent {
        (source, "End events must not have outgoing sequence flows to other elements, but '{}' leaves it. Remove it.")
    } else {
        return true;
    };
    problems.add(draft.node(element), message.replace("{}", id_of(flow)));
    false
}

fn condition(flow: Node, problems: &mut Problems) -> Option<Expression> {
    let node = flow.children().find(|node| xml::is_bpmn(*node, "conditionExpression"))?;
    required_expression(node, &xml::trimmed_text(node), problems)
}

/// Conditions only at exclusive and inclusive gateways; there, every one of several flows has one or is the default flow.
fn check_conditions(draft: &mut Draft, flows: &mut [SequenceFlow], nodes: &[Node], problems: &mut Problems) {
    let has_condition = |flow: FlowIndex| has_condition_expression(nodes[flow.0 as usize]);
    let default_flows = default_flows(draft, flows, problems);
    for ((element, node), default_flow) in draft.elements.iter_mut().zip(&draft.nodes).zip(default_flows) {
        let (Behavior::ExclusiveGateway { default } | Behavior::InclusiveGateway { default }) = &mut element.behavior
        else {
            if element.outgoing.iter().any(|flow| has_condition(*flow)) {
                problems.add_for_new(
                    *node,
                    "Conditional sequence flows are only supported at exclusive or inclusive gateway. \
                     Remove the conditions of the outgoing flows, or put a gateway behind this element.",
                );
            }
            continue;
        };
        *default = default_flow;
        for flow in &element.outgoing {
            if Some(*flow) == default_flow {
                // The default flow is taken when no other is; Zeebe does not evaluate a condition on it.
                flows[flow.0 as usize].condition = None;
            } else if element.outgoing.len() > 1 && !has_condition(*flow) {
                problems.add_for_new(
                    nodes[flow.0 as usize],
                    format!(
                        "Must have a condition or be default flow, because gateway '{}' has several outgoing flows.",
                        element.id
                    ),
                );
            }
        }
    }
}

/// The default flow of each exclusive or inclusive gateway that has one. Elsewhere the attribute has no meaning.
fn default_flows(draft: &Draft, flows: &[SequenceFlow], problems: &mut Problems) -> Vec<Option<FlowIndex>> {
    let flow_by_id = by_id(flows);
    let elements = (0_u32..).zip(draft.elements.iter().zip(&draft.nodes));
    elements
        .map(|(index, (element, node))| {
            let id = match element.behavior {
                Behavior::ExclusiveGateway { .. } | Behavior::InclusiveGateway { .. } => present(*node, "default")?,
                _ => return None,
            };
            let flow = flow_by_id.get(id).copied();
            let own = flow.filter(|flow| flows[flow.0 as usize].source == ElementIndex(index));
            if own.is_none() {
                problems.add_for_new(
                    *node,
                    format!("Default flow must start at gateway, but '{id}' is not one of its outgoing sequence flows. Choose one of them."),
                );
            }
            own
        })
        .collect()
}

fn has_condition_expression(flow: Node) -> bool {
    flow.children().any(|node| xml::is_bpmn(node, "conditionExpression"))
}

fn id_of<'a>(flow: Node<'a, '_>) -> &'a str {
    flow.attribute("id").unwrap_or_default()
}
