//! The builder's BPMN text.

use std::collections::HashMap;

use crate::process::{Attributes, Flow, MultiInstance, Node, ProcessBuilder};
use crate::xml::{definitions, expression, optional, tag};

impl ProcessBuilder {
    /// The BPMN file with this process alone.
    pub fn to_xml(&self) -> String {
        to_xml(std::slice::from_ref(self))
    }

    fn roots(&self) -> String {
        let mut xml = String::new();
        for (index, (name, correlation_key)) in self.messages.iter().enumerate() {
            let subscription = correlation_key
                .as_ref()
                .map(|key| tag("zeebe:subscription", &[("correlationKey", key)], ""))
                .unwrap_or_default();
            let id = self.root_id("message", index);
            let content = optional("bpmn:extensionElements", &subscription);
            xml += &tag("bpmn:message", &[("id", &id), ("name", name)], &content);
        }
        for (index, code) in self.error_codes.iter().enumerate() {
            xml += &tag("bpmn:error", &[("id", &self.root_id("error", index)), ("errorCode", code)], "");
        }
        for (index, code) in self.escalation_codes.iter().enumerate() {
            let id = self.root_id("escalation", index);
            xml += &tag("bpmn:escalation", &[("id", &id), ("escalationCode", code)], "");
        }
        for (index, name) in self.signal_names.iter().enumerate() {
            xml += &tag("bpmn:signal", &[("id", &self.root_id("signal", index)), ("name", name)], "");
        }
        xml
    }

    /// The id of a root element, different from those of other processes.
    pub(crate) fn root_id(&self, kind: &str, index: usize) -> String {
        format!("{}_{kind}_{}", self.id, index + 1)
    }

    fn process(&self) -> String {
        let structure = Structure::of(self);
        let extensions = execution_listeners(&self.execution_listeners) + &self.extensions;
        let content = optional("bpmn:extensionElements", &extensions) + &self.scope(None, &structure);
        tag("bpmn:process", &[("id", &self.id), ("isExecutable", "true")], &content)
    }

    fn scope(&self, scope: Option<usize>, structure: &Structure) -> String {
        let mut xml = String::new();
        let Some(content) = structure.content.get(&scope) else {
            return xml;
        };
        for &index in &content.nodes {
            let node = &self.nodes[index];
            let inside = node.extensions()
                + &structure.incoming[index]
                + &structure.outgoing[index]
                + &node.event_definition
                + &node.multi_instance.as_ref().map(MultiInstance::xml).unwrap_or_default()
                + &self.scope(Some(index), structure);
            let default_flow = node.default_flow.map(flow_id);
            let mut attributes = vec![("id", node.id.as_str())];
            attributes.extend(borrowed(&node.attributes));
            attributes.extend(default_flow.iter().map(|id| ("default", id.as_str())));
            xml += &tag(&format!("bpmn:{}", node.kind), &attributes, &inside);
        }
        for &index in &content.flows {
            let Flow { source, target, condition } = &self.flows[index];
            let [source, target] = [source, target].map(|node| self.nodes[*node].id.as_str());
            let id = flow_id(index);
            let attributes = [("id", id.as_str()), ("sourceRef", source), ("targetRef", target)];
            let condition = condition.as_ref().map(|text| expression("bpmn:conditionExpression", text));
            xml += &tag("bpmn:sequenceFlow", &attributes, &condition.unwrap_or_default());
        }
        for (source, target) in &content.associations {
            let [source, target] = [source, target].map(|node| self.nodes[*node].id.as_str());
            let id = format!("{source}_to_{target}");
            let attributes = [("id", id.as_str()), ("associationDirection", "One")];
            let ends = [("sourceRef", source), ("targetRef", target)];
            xml += &tag("bpmn:association", &[attributes, ends].concat(), "");
        }
        xml
    }
}

/// What lies in a process or sub-process itself.
#[derive(Default)]
struct Content {
    nodes: Vec<usize>,
    flows: Vec<usize>,
    associations: Vec<(usize, usize)>,
}

/// What belongs to each node.
struct Structure {
    /// By the node that contains it.
    content: HashMap<Option<usize>, Content>,
    /// The references of each node to the flows that lead to it.
    incoming: Vec<String>,
    /// The references of each node to the flows that leave it.
    outgoing: Vec<String>,
}

impl Structure {
    fn of(process: &ProcessBuilder) -> Self {
        let none = vec![String::new(); process.nodes.len()];
        let mut structure = Structure { content: HashMap::new(), incoming: none.clone(), outgoing: none };
        for (index, node) in process.nodes.iter().enumerate() {
            structure.content.entry(node.scope).or_default().nodes.push(index);
        }
        for (index, flow) in process.flows.iter().enumerate() {
            structure.content.entry(process.nodes[flow.source].scope).or_default().flows.push(index);
            structure.incoming[flow.target] += &tag("bpmn:incoming", &[], &flow_id(index));
            structure.outgoing[flow.source] += &tag("bpmn:outgoing", &[], &flow_id(index));
        }
        for (source, target) in &process.associations {
            let content = structure.content.entry(process.nodes[*source].scope).or_default();
            content.associations.push((*source, *target));
        }
        structure
    }
}

impl Node {
    fn extensions(&self) -> String {
        let mut xml = String::new();
        if !self.task_definition.is_empty() {
            xml += &tag("zeebe:taskDefinition", &borrowed(&self.task_definition), "");
        }
        if self.is_native_user_task {
            xml += &tag("zeebe:userTask", &[], "");
        }
        if !self.assignment.is_empty() {
            xml += &tag("zeebe:assignmentDefinition", &borrowed(&self.assignment), "");
        }
        if !self.ad_hoc.is_empty() {
            xml += &tag("zeebe:adHoc", &borrowed(&self.ad_hoc), "");
        }
        xml += &execution_listeners(&self.execution_listeners);
        xml += &optional("zeebe:taskListeners", &all_of("zeebe:taskListener", &self.task_listeners));
        if !self.script.is_empty() {
            xml += &tag("zeebe:script", &borrowed(&self.script), "");
        }
        if !self.called_decision.is_empty() {
            xml += &tag("zeebe:calledDecision", &borrowed(&self.called_decision), "");
        }
        if !self.called_element.is_empty() {
            xml += &tag("zeebe:calledElement", &borrowed(&self.called_element), "");
        }
        xml += &optional("zeebe:taskHeaders", &self.headers);
        xml += &optional("zeebe:ioMapping", &self.mappings);
        optional("bpmn:extensionElements", &xml)
    }
}

impl MultiInstance {
    fn xml(&self) -> String {
        let loop_characteristics = tag("zeebe:loopCharacteristics", &borrowed(&self.attributes), "");
        let condition = self.completion_condition.as_ref();
        let content = tag("bpmn:extensionElements", &[], &loop_characteristics)
            + &condition.map(|text| expression("bpmn:completionCondition", text)).unwrap_or_default();
        let is_sequential = self.is_sequential.to_string();
        tag("bpmn:multiInstanceLoopCharacteristics", &[("isSequential", &is_sequential)], &content)
    }
}

fn execution_listeners(listeners: &[Attributes]) -> String {
    optional("zeebe:executionListeners", &all_of("zeebe:executionListener", listeners))
}

fn all_of(name: &str, elements: &[Attributes]) -> String {
    elements.iter().map(|attributes| tag(name, &borrowed(attributes), "")).collect()
}

fn borrowed<'a>(attributes: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    attributes.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// One BPMN file with several processes.
pub fn to_xml(processes: &[ProcessBuilder]) -> String {
    let roots = processes.iter().map(ProcessBuilder::roots);
    definitions(&roots.chain(processes.iter().map(ProcessBuilder::process)).collect::<String>())
}

fn flow_id(index: usize) -> String {
    format!("flow_{}", index + 1)
}
