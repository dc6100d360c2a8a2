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
use std::fmt::Write;

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
    task_definition: Option<(String, Option<String>)>,
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
        Self {
            id: id.to_owned(),
            ..Self::default()
        }
    }

    /// Sets the version tag.
    pub fn version_tag(mut self, tag: &str) -> Self {
        let _ = write!(
            self.extensions,
            "<zeebe:versionTag value=\"{}\"/>",
            escape(tag)
        );
        self
    }

    /// Adds any flow node by its XML name, connected to the element before it.
    pub fn element(mut self, kind: &'static str, id: &str) -> Self {
        self.index_by_id.insert(id.to_owned(), self.nodes.len());
        self.nodes.push(Node {
            kind,
            id: id.to_owned(),
            scope: self.scope,
            ..Node::default()
        });
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
        self.last().task_definition = Some((job_type.to_owned(), None));
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
            self.flows.push(Flow {
                source,
                target,
                condition: self.condition.take(),
            });
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
        if let Some((_, place)) = &mut self.last().task_definition {
            *place = Some(retries.to_owned());
        }
        self
    }

    /// Adds a header to the task added last.
    pub fn header(mut self, key: &str, value: &str) -> Self {
        let header = format!(
            "<zeebe:header key=\"{}\" value=\"{}\"/>",
            escape(key),
            escape(value)
        );
        self.last().headers.push_str(&header);
        self
    }

    /// Adds an input mapping to the element added last.
    pub fn input(self, source: &str, target: &str) -> Self {
        self.mapping("input", source, target)
    }

    /// Adds an output mapping to the element added last.
    pub fn output(self, source: &str, target: &str) -> Self {
        self.mapping("output", source, target)
    }

    fn mapping(mut self, kind: &str, source: &str, target: &str) -> Self {
        let mapping = format!(
            "<zeebe:{kind} source=\"{}\" target=\"{}\"/>",
            escape(source),
            escape(target)
        );
        self.last().mappings.push_str(&mapping);
        self
    }

    fn last(&mut self) -> &mut Node {
        self.nodes
            .last_mut()
            .expect("an element must be added before its properties are set")
    }

    /// The BPMN file with this process alone.
    pub fn to_xml(&self) -> String {
        to_xml(std::slice::from_ref(self))
    }

    fn write(&self, xml: &mut String) {
        let mut children = Children::new();
        for (index, node) in self.nodes.iter().enumerate() {
            children.entry(node.scope).or_default().0.push(index);
        }
        for (index, flow) in self.flows.iter().enumerate() {
            children
                .entry(self.nodes[flow.source].scope)
                .or_default()
                .1
                .push(index);
        }
        let _ = write!(
            xml,
            "<bpmn:process id=\"{}\" isExecutable=\"true\">",
            escape(&self.id)
        );
        write_extensions(xml, &self.extensions);
        self.write_scope(xml, None, &children);
        xml.push_str("\n</bpmn:process>\n");
    }

    fn write_scope(&self, xml: &mut String, scope: Option<usize>, children: &Children) {
        let Some((nodes, flows)) = children.get(&scope) else {
            return;
        };
        for &index in nodes {
            let node = &self.nodes[index];
            let default = node.default_flow.map_or_else(String::new, |flow| {
                format!(" default=\"flow_{}\"", flow + 1)
            });
            let _ = write!(
                xml,
                "\n<bpmn:{} id=\"{}\"{default}>",
                node.kind,
                escape(&node.id)
            );
            write_extensions(xml, &node.extensions());
            self.write_scope(xml, Some(index), children);
            let _ = write!(xml, "</bpmn:{}>", node.kind);
        }
        for &index in flows {
            let flow = &self.flows[index];
            let [source, target] =
                [flow.source, flow.target].map(|node| escape(&self.nodes[node].id));
            let ends = format!("sourceRef=\"{source}\" targetRef=\"{target}\"");
            let _ = write!(
                xml,
                "\n<bpmn:sequenceFlow id=\"flow_{}\" {ends}>",
                index + 1
            );
            if let Some(condition) = &flow.condition {
                let _ = write!(
                    xml,
                    "<bpmn:conditionExpression>{}</bpmn:conditionExpression>",
                    escape(condition)
                );
            }
            xml.push_str("</bpmn:sequenceFlow>");
        }
    }
}

/// Nodes and flows by the node that contains them.
type Children = HashMap<Option<usize>, (Vec<usize>, Vec<usize>)>;

impl Node {
    fn extensions(&self) -> String {
        let mut xml = String::new();
        if let Some((job_type, retries)) = &self.task_definition {
            let retries = retries.as_ref().map_or_else(String::new, |retries| {
                format!(" retries=\"{}\"", escape(retries))
            });
            let _ = write!(
                xml,
                "<zeebe:taskDefinition type=\"{}\"{retries}/>",
                escape(job_type)
            );
        }
        for (name, content) in [
            ("taskHeaders", &self.headers),
            ("ioMapping", &self.mappings),
        ] {
            if !content.is_empty() {
                let _ = write!(xml, "<zeebe:{name}>{content}</zeebe:{name}>");
            }
        }
        xml
    }
}

/// One BPMN file with several processes.
pub fn to_xml(processes: &[ProcessBuilder]) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <bpmn:definitions xmlns:bpmn=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" \
         xmlns:zeebe=\"http://camunda.org/schema/zeebe/1.0\" id=\"definitions\" \
         targetNamespace=\"http://bpmn.io/schema/bpmn\">\n",
    );
    processes.iter().for_each(|process| process.write(&mut xml));
    xml.push_str("</bpmn:definitions>\n");
    xml
}

fn write_extensions(xml: &mut String, extensions: &str) {
    if !extensions.is_empty() {
        let _ = write!(
            xml,
            "<bpmn:extensionElements>{extensions}</bpmn:extensionElements>"
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
