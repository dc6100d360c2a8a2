//! The builder's BPMN text.

use std::collections::HashMap;

use super::{Flow, MultiInstance, Node, ProcessBuilder};

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
        xml
    }

    /// The id of a root element, different from those of other processes.
    pub(super) fn root_id(&self, kind: &str, index: usize) -> String {
        format!("{}_{kind}_{}", self.id, index + 1)
    }

    fn process(&self) -> String {
        let mut children = Children::new();
        for (index, node) in self.nodes.iter().enumerate() {
            children.entry(node.scope).or_default().0.push(index);
        }
        for (index, flow) in self.flows.iter().enumerate() {
            children.entry(self.nodes[flow.source].scope).or_default().1.push(index);
        }
        let content = optional("bpmn:extensionElements", &self.extensions) + &self.scope(None, &children);
        tag("bpmn:process", &[("id", &self.id), ("isExecutable", "true")], &content)
    }

    fn scope(&self, scope: Option<usize>, children: &Children) -> String {
        let mut xml = String::new();
        let Some((nodes, flows)) = children.get(&scope) else {
            return xml;
        };
        for &index in nodes {
            let node = &self.nodes[index];
            let content = node.extensions()
                + &node.event_definition
                + &node.multi_instance.as_ref().map(MultiInstance::xml).unwrap_or_default()
                + &self.scope(Some(index), children);
            let default_flow = node.default_flow.map(flow_id);
            let mut attributes = vec![("id", node.id.as_str())];
            attributes.extend(borrowed(&node.attributes));
            attributes.extend(default_flow.iter().map(|id| ("default", id.as_str())));
            xml += &tag(&format!("bpmn:{}", node.kind), &attributes, &content);
        }
        for &index in flows {
            let Flow { source, target, condition } = &self.flows[index];
            let [source, target] = [source, target].map(|node| self.nodes[*node].id.as_str());
            let id = flow_id(index);
            let attributes = [("id", id.as_str()), ("sourceRef", source), ("targetRef", target)];
            let condition = condition.as_ref().map(|text| tag("bpmn:conditionExpression", &[], &escape(text)));
            xml += &tag("bpmn:sequenceFlow", &attributes, &condition.unwrap_or_default());
        }
        xml
    }
}

/// Nodes and flows by the node that contains them.
type Children = HashMap<Option<usize>, (Vec<usize>, Vec<usize>)>;

impl Node {
    fn extensions(&self) -> String {
        let mut xml = String::new();
        if !self.task_definition.is_empty() {
            xml += &tag("zeebe:taskDefinition", &borrowed(&self.task_definition), "");
        }
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
            + &condition.map(|text| tag("bpmn:completionCondition", &[], &escape(text))).unwrap_or_default();
        let is_sequential = self.is_sequential.to_string();
        tag("bpmn:multiInstanceLoopCharacteristics", &[("isSequential", &is_sequential)], &content)
    }
}

fn borrowed<'a>(attributes: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    attributes.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// One BPMN file with several processes.
pub fn to_xml(processes: &[ProcessBuilder]) -> String {
    let attributes = [
        ("xmlns:bpmn", "http://www.omg.org/spec/BPMN/20100524/MODEL"),
        ("xmlns:zeebe", "http://camunda.org/schema/zeebe/1.0"),
        ("id", "definitions"),
        ("targetNamespace", "http://bpmn.io/schema/bpmn"),
    ];
    let roots = processes.iter().map(ProcessBuilder::roots);
    let content: String = roots.chain(processes.iter().map(ProcessBuilder::process)).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{}\n", tag("bpmn:definitions", &attributes, &content))
}

fn flow_id(index: usize) -> String {
    format!("flow_{}", index + 1)
}

fn optional(name: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { tag(name, &[], content) }
}

pub(super) fn tag(name: &str, attributes: &[(&str, &str)], content: &str) -> String {
    let attributes: String = attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escape(value))).collect();
    format!("\n<{name}{attributes}>{content}</{name}>")
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
