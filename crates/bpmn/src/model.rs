//! The executable form of a process: what the engine walks, compiled once at deployment.

use std::sync::Arc;

use feel::Expression;
use rustc_hash::FxHashMap;

/// The place of an element in its process. Elements are numbered in document order and the process itself is 0, so the
/// same document gives the same numbers in every version of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementIndex(pub u32);

/// The place of a sequence flow in its process, in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(pub u32);

/// The process as the root element of itself.
pub const PROCESS: ElementIndex = ElementIndex(0);

/// A validated process, ready for execution.
#[derive(Debug)]
pub struct ExecutableProcess {
    /// BPMN process id.
    pub id: Arc<str>,
    /// Display name, if any.
    pub name: Option<Arc<str>>,
    /// `zeebe:versionTag`, if any.
    pub version_tag: Option<Arc<str>>,
    /// Flow elements other than sequence flows; 0 is the process.
    pub elements: Vec<Element>,
    /// Sequence flows.
    pub flows: Vec<SequenceFlow>,
    /// Element by BPMN id.
    pub element_by_id: FxHashMap<Arc<str>, ElementIndex>,
    /// Sequence flow by BPMN id.
    pub flow_by_id: FxHashMap<Arc<str>, FlowIndex>,
}

/// A flow element (or the process itself).
#[derive(Debug)]
pub struct Element {
    /// BPMN id.
    pub id: Arc<str>,
    /// Display name, if any.
    pub name: Option<Arc<str>>,
    /// The element's type as the record stream names it.
    pub element_type: ElementType,
    /// The element that contains this one; `None` only for the process.
    pub flow_scope: Option<ElementIndex>,
    /// Incoming sequence flows in document order.
    pub incoming: Vec<FlowIndex>,
    /// Outgoing sequence flows in document order.
    pub outgoing: Vec<FlowIndex>,
    /// Input mappings in document order.
    pub inputs: Vec<Mapping>,
    /// Output mappings in document order.
    pub outputs: Vec<Mapping>,
    /// What happens when a token arrives.
    pub behavior: Behavior,
}

/// A sequence flow.
#[derive(Debug)]
pub struct SequenceFlow {
    /// BPMN id.
    pub id: Arc<str>,
    /// The element it leaves.
    pub source: ElementIndex,
    /// The element it enters.
    pub target: ElementIndex,
    /// Condition, on outputs of exclusive (and later inclusive) gateways.
    pub condition: Option<Expression>,
}

/// The types of elements as named in the record stream (`bpmnElementType`).
pub use protocol::BpmnElementType as ElementType;

/// What an element does, with exactly the data that this needs.
#[derive(Debug)]
pub enum Behavior {
    /// The process or an embedded sub-process: runs its none start event, ends when no token is left inside.
    Container {
        /// The none start event inside.
        none_start_event: Option<ElementIndex>,
    },
    /// A none start event.
    NoneStartEvent,
    /// A none end event.
    NoneEndEvent,
    /// Work for a job worker: service, send, business rule and script task with `zeebe:taskDefinition`.
    JobWorker(JobDefinition),
    /// Manual or undefined task: passes at once.
    PassThrough,
    /// Takes the first flow whose condition holds, else the default flow.
    ExclusiveGateway {
        /// The default flow, if any.
        default: Option<FlowIndex>,
    },
    /// Waits for one token per incoming flow, then takes every outgoing flow.
    ParallelGateway,
}

/// `zeebe:taskDefinition` and `zeebe:taskHeaders`.
#[derive(Debug)]
pub struct JobDefinition {
    /// Job type: must evaluate to a non-empty string.
    pub job_type: StaticOrExpression,
    /// Retries: must evaluate to a number.
    pub retries: StaticOrExpression,
    /// Headers as one JSON object text (`{}` when there are none).
    pub headers: Arc<str>,
}

/// An attribute that is static text, or a FEEL expression when it starts with `=`.
#[derive(Debug, Clone)]
pub enum StaticOrExpression {
    /// Plain text.
    Static(Arc<str>),
    /// A compiled expression (its source is without the leading `=`).
    Expression(Expression),
}

/// One input or output mapping.
#[derive(Debug)]
pub struct Mapping {
    /// Where the value comes from.
    pub source: StaticOrExpression,
    /// The path it is written to, split at dots (`a.b.c`); never empty.
    pub target: Vec<Arc<str>>,
}

impl ExecutableProcess {
    /// The element at `index`.
    pub fn element(&self, index: ElementIndex) -> &Element {
        &self.elements[index.0 as usize]
    }

    /// The sequence flow at `index`.
    pub fn flow(&self, index: FlowIndex) -> &SequenceFlow {
        &self.flows[index.0 as usize]
    }

    /// The none start event at process level, if there is one.
    pub fn none_start_event(&self) -> Option<ElementIndex> {
        match self.element(PROCESS).behavior {
            Behavior::Container { none_start_event } => none_start_event,
            _ => None,
        }
    }
}
