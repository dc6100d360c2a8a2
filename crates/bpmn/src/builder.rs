//! Small BPMN texts for tests, benchmarks and the demo.
//!
//! Each element is connected to the one before it; [`ProcessBuilder::move_to`] goes back to an element to continue there.
//!
//! ```
//! let xml = osmia_bpmn::builder::ProcessBuilder::new("order")
//!     .start("received")
//!     .exclusive_gateway("large")
//!     .condition("=total > 100").service_task("check", "check-order").end("checked")
//!     .move_to("large").default_flow().end("accepted")
//!     .to_xml();
//! assert_eq!(osmia_bpmn::parse("order.bpmn", xml.as_bytes()).unwrap()[0].elements.len(), 6);
//! ```

use std::collections::HashMap;

/// Builds one executable process. A wrong use (an unknown id, say) is not caught here but by [`crate::parse`].
#[derive(Clone, Debug, Default)]
pub struct ProcessBuilder {
    id: String,
    extensions: String,
    nodes: Vec<Node>,
    flows: Vec<Flow>,
    index_by_id: HashMap<String, usize>,
    scope: Option<usize>,
    cursor: Option<usize>,
    condition: Option<String>,
    is_default: bool,
}

#[derive(Clone, Debug, Default)]
struct Node {
    kind: &'static str,
    id: String,
    scope: Option<usize>,
    task_definition: Vec<(&'static str, String)>,
    headers: String,
    mappings: String,
    default_flow: Option<usize>,
}

#[derive(Clone, Debug)]
struct Flow {
    source: usize,
    target: usize,
    condition: Option<String>,
}

impl ProcessBuilder {
    /// A process with this BPMN process id.
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Sets the version tag.
    pub fn version_tag(mut self, version_tag: &str) -> Self {
        self.extensions += &tag("zeebe:versionTag", &[("value", version_tag)], "");
        self
    }

    /// Adds any flow node by its XML name, connected to the element before it.
    pub fn element(mut self, kind: &'static str, id: &str) -> Self {
        self.index_by_id.insert(id.to_owned(), self.nodes.len());
        self.nodes.push(Node { kind, id: id.to_owned(), scope: self.scope, ..Node::default() });
        self.connect_to(id).move_to(id)
    }

    /// Adds a none start event.
    pub fn start(self, id: &str) -> Self {
        self.element("startEvent", id)
    }

    /// Adds a none end event.
    pub fn end(self, id: &str) -> Self {
        self.element("endEvent", id)
    }

    /// Adds a service task with a job type (an expression if it starts with `=`).
    pub fn service_task(self, id: &str, job_type: &str) -> Self {
        self.job_task("serviceTask", id, job_type)
    }

    /// Adds a task done by a job worker: `serviceTask`, `sendTask`, `scriptTask` or `businessRuleTask`.
    pub fn job_task(mut self, kind: &'static str, id: &str, job_type: &str) -> Self {
        self = self.element(kind, id);
        self.last().task_definition.push(("type", job_type.to_owned()));
        self
    }

    /// Adds a manual task.
    pub fn manual_task(self, id: &str) -> Self {
        self.element("manualTask", id)
    }

    /// Adds an exclusive gateway.
    pub fn exclusive_gateway(self, id: &str) -> Self {
        self.element("exclusiveGateway", id)
    }

    /// Adds a parallel gateway.
    pub fn parallel_gateway(self, id: &str) -> Self {
        self.element("parallelGateway", id)
    }

    /// Opens an embedded sub-process: what follows is inside until [`Self::end_sub_process`].
    pub fn sub_process(mut self, id: &str) -> Self {
        self = self.element("subProcess", id);
        self.scope = self.cursor.take();
        self
    }

    /// Closes the sub-process; what follows is connected to it.
    pub fn end_sub_process(mut self) -> Self {
        self.cursor = self.scope;
        self.scope = self.cursor.and_then(|index| self.nodes[index].scope);
        self
    }

    /// Continues at the element `id`, in its scope; nothing is connected if there is none.
    pub fn move_to(mut self, id: &str) -> Self {
        self.cursor = self.index_by_id.get(id).copied();
        self.scope = self.cursor.and_then(|index| self.nodes[index].scope);
        self
    }

    /// Draws a sequence flow from the current element to the existing element `id`.
    pub fn connect_to(mut self, id: &str) -> Self {
        if let (Some(source), Some(&target)) = (self.cursor, self.index_by_id.get(id)) {
            if std::mem::take(&mut self.is_default) {
                self.nodes[source].default_flow = Some(self.flows.len());
            }
            self.flows.push(Flow { source, target, condition: self.condition.take() });
        }
        self
    }

    /// Puts a condition (with its `=`) on the next sequence flow.
    pub fn condition(mut self, expression: &str) -> Self {
        self.condition = Some(expression.to_owned());
        self
    }

    /// Makes the next sequence flow the default flow of the current gateway.
    pub fn default_flow(mut self) -> Self {
        self.is_default = true;
        self
    }

    /// Sets the retries of the task added last.
    pub fn retries(mut self, retries: &str) -> Self {
        self.last().task_definition.push(("retries", retries.to_owned()));
        self
    }

    /// Adds a header to the task added last.
    pub fn header(mut self, key: &str, value: &str) -> Self {
        self.last().headers += &tag("zeebe:header", &[("key", key), ("value", value)], "");
        self
    }

    /// Adds an input mapping to the element added last.
    pub fn input(mut self, source: &str, target: &str) -> Self {
        self.last().mappings += &tag("zeebe:input", &[("source", source), ("target", target)], "");
        self
    }

    /// Adds an output mapping to the element added last.
    pub fn output(mut self, source: &str, target: &str) -> Self {
        self.last().mappings += &tag("zeebe:output", &[("source", source), ("target", target)], "");
        self
    }

    fn last(&mut self) -> &mut Node {
        self.nodes.last_mut().expect("an element must be added before its properties are set")
    }

    /// The BPMN file with this process alone.
    pub fn to_xml(&self) -> String {
        to_xml(std::slice::from_ref(self))
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
            let content = node.extensions() + &self.scope(Some(index), children);
            let default_flow = node.default_flow.map(flow_id);
            let mut attributes = vec![("id", node.id.as_str())];
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
            let attributes: Vec<_> = self.task_definition.iter().map(|(name, value)| (*name, value.as_str())).collect();
            xml += &tag("zeebe:taskDefinition", &attributes, "");
        }
        xml += &optional("zeebe:taskHeaders", &self.headers);
        xml += &optional("zeebe:ioMapping", &self.mappings);
        optional("bpmn:extensionElements", &xml)
    }
}

/// One BPMN file with several processes.
pub fn to_xml(processes: &[ProcessBuilder]) -> String {
    let attributes = [
        ("xmlns:bpmn", "http://www.omg.org/spec/BPMN/20100524/MODEL"),
        ("xmlns:zeebe", "http://camunda.org/schema/zeebe/1.0"),
        ("id", "definitions"),
        ("targetNamespace", "http://bpmn.io/schema/bpmn"),
    ];
    let content: String = processes.iter().map(ProcessBuilder::process).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{}\n", tag("bpmn:definitions", &attributes, &content))
}

fn flow_id(index: usize) -> String {
    format!("flow_{}", index + 1)
}

fn optional(name: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { tag(name, &[], content) }
}

fn tag(name: &str, attributes: &[(&str, &str)], content: &str) -> String {
    let attributes: String = attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escape(value))).collect();
    format!("\n<{name}{attributes}>{content}</{name}>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
