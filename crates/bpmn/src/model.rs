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
    /// Element by BPMN id. An activity that runs several times has two elements with its id: the multi-instance body,
    /// which is found here, and the inner activity, which follows the body.
    pub element_by_id: FxHashMap<Arc<str>, ElementIndex>,
    /// Sequence flow by BPMN id.
    pub flow_by_id: FxHashMap<Arc<str>, FlowIndex>,
    /// Start events of the process that wait for a timer, message, signal or condition, in document order.
    pub triggered_start_events: Vec<ElementIndex>,
    /// Inclusive gateways with several incoming sequence flows.
    pub joining_inclusive_gateways: Vec<ElementIndex>,
    /// The ids of its call activities, in the order of their bytes.
    pub call_activities: Vec<Arc<str>>,
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
    /// The kind of the event, if it is one, as the record stream names it.
    pub event_type: EventType,
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
    /// Boundary events attached to this activity, in document order. Those of an activity that runs several times are
    /// attached to its multi-instance body.
    pub boundary_events: Vec<ElementIndex>,
    /// Event sub-processes directly inside this process or sub-process, in document order.
    pub event_sub_processes: Vec<ElementIndex>,
    /// What is done when it begins, after its input mappings, in document order.
    pub start_listeners: Vec<Listener>,
    /// What is done when its work is done, after its output mappings, in document order.
    pub end_listeners: Vec<Listener>,
    /// Whether this is a compensation handler: an activity that no token reaches, to undo another one.
    pub is_for_compensation: bool,
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
/// The kinds of events as named in the record stream (`bpmnEventType`).
pub use protocol::BpmnEventType as EventType;

/// What listeners listen to, as named in the record stream (`jobListenerEventType`).
pub use protocol::JobListenerEventType as ListenerEventType;

pub use crate::timer::{Timer, TimerKind};

/// What an element does, with exactly the data that this needs.
#[derive(Debug)]
pub enum Behavior {
    /// The process or an embedded sub-process: runs its none start event, ends when no token is left inside.
    Container {
        /// The none start event inside; a process may have none.
        none_start_event: Option<ElementIndex>,
    },
    /// An event sub-process: runs its start event when that is triggered.
    EventSubProcess {
        /// Its one start event; its behavior is [`Behavior::StartEvent`].
        start_event: ElementIndex,
    },
    /// A none start event.
    NoneStartEvent,
    /// A start event of a process (timer, message, signal, condition) or of an event sub-process (these, error, escalation).
    StartEvent(CatchEvent),
    /// An intermediate catch event: timer, message, signal or condition.
    IntermediateCatchEvent(CatchEvent),
    /// An event attached to an activity: timer, message, signal, condition, error or escalation.
    BoundaryEvent {
        /// The activity (its multi-instance body, if it runs several times).
        attached_to: ElementIndex,
        /// What it waits for.
        event: CatchEvent,
    },
    /// An event attached to an activity that may be undone.
    CompensationBoundaryEvent {
        /// The activity (its multi-instance body, if it runs several times).
        attached_to: ElementIndex,
        /// The activity that undoes it (its multi-instance body, if it runs several times).
        handler: ElementIndex,
    },
    /// A receive task; the event is a message.
    ReceiveTask(CatchEvent),
    /// Waits for the first of several events, each an intermediate catch event behind one of its outgoing flows.
    EventBasedGateway {
        /// The targets of the outgoing flows, in document order of the flows.
        events: Vec<ElementIndex>,
    },
    /// The target of a link: completes at once.
    LinkCatchEvent,
    /// Goes on at the catch event of the same name in the same scope.
    LinkThrowEvent {
        /// The catch event.
        target: ElementIndex,
    },
    /// An intermediate throw or end event that throws an escalation.
    EscalationThrowEvent {
        /// The code; must evaluate to a non-empty string.
        code: StaticOrExpression,
    },
    /// An intermediate throw or end event that has what was completed in its scope undone, and waits for that.
    CompensationThrowEvent {
        /// The one activity that is undone (its multi-instance body, if it runs several times).
        activity: Option<ElementIndex>,
    },
    /// An end event that throws an error.
    ErrorEndEvent {
        /// The code; must evaluate to a non-empty string.
        code: StaticOrExpression,
    },
    /// An intermediate throw or end event that broadcasts a signal.
    SignalThrowEvent {
        /// Name of the signal: must evaluate to a string.
        name: StaticOrExpression,
    },
    /// An end event that ends everything else in its scope.
    TerminateEndEvent,
    /// A none end event.
    NoneEndEvent,
    /// Work for a job worker: service, send, business rule and script task, message throw and message end event with
    /// `zeebe:taskDefinition`.
    JobWorker(JobDefinition),
    /// A user task: work for a person.
    UserTask(Box<UserTask>),
    /// A script task with `zeebe:script`: the engine evaluates it, and the task is done.
    Script(Script),
    /// A business rule task with `zeebe:calledDecision`: the engine evaluates it, and the task is done.
    CalledDecision(CalledDecision),
    /// Manual or undefined task, none intermediate throw event: completes at once.
    PassThrough,
    /// Takes the first flow whose condition holds, else the default flow.
    ExclusiveGateway {
        /// The default flow, if any.
        default: Option<FlowIndex>,
    },
    /// Waits until no further token can arrive, then takes every flow whose condition holds, else the default flow.
    InclusiveGateway {
        /// The default flow, if any.
        default: Option<FlowIndex>,
    },
    /// Waits for one token per incoming flow, then takes every outgoing flow.
    ParallelGateway,
    /// Creates an instance of another process and waits for its end.
    CallActivity(CalledElement),
    /// Runs its inner activity several times.
    MultiInstanceBody(MultiInstance),
    /// Runs those of its elements that it is told to, each in an inner instance.
    AdHocSubProcess(Box<AdHocSubProcess>),
    /// The scope around one of the elements that an ad-hoc sub-process runs.
    AdHocSubProcessInnerInstance,
}

/// An event that something outside triggers.
#[derive(Debug)]
pub struct CatchEvent {
    /// What it waits for.
    pub trigger: Trigger,
    /// Whether it ends the activity it is attached to, or the scope of its event sub-process. True wherever it makes no
    /// difference.
    pub is_interrupting: bool,
}

/// What a catch event waits for.
#[derive(Debug)]
pub enum Trigger {
    /// A point in time.
    Timer(TimerDefinition),
    /// A message.
    Message(MessageDefinition),
    /// A signal.
    Signal(SignalDefinition),
    /// A condition.
    Condition(ConditionDefinition),
    /// A BPMN error.
    Error {
        /// The code; `None` for any.
        code: Option<Arc<str>>,
    },
    /// An escalation.
    Escalation {
        /// The code; `None` for any.
        code: Option<Arc<str>>,
    },
}

/// When a timer is due.
#[derive(Debug)]
pub struct TimerDefinition {
    /// What the text says.
    pub kind: TimerKind,
    /// The text, or where it comes from.
    pub source: TimerSource,
}

/// Where the text of a timer comes from.
#[derive(Debug)]
pub enum TimerSource {
    /// Static text (or an expression without variables), understood at deployment.
    Constant(Timer),
    /// An expression over variables.
    Expression(Expression),
}

/// A message that an event waits for.
#[derive(Debug)]
pub struct MessageDefinition {
    /// Name of the message: must evaluate to a non-empty string. Always static at start events of a process.
    pub name: StaticOrExpression,
    /// Must evaluate to a string or number; `None` only at start events of a process.
    pub correlation_key: Option<Expression>,
}

/// A signal that an event waits for.
#[derive(Debug)]
pub struct SignalDefinition {
    /// Name of the signal: must evaluate to a string. Always static at start events of a process.
    pub name: StaticOrExpression,
}

/// A condition that an event waits for.
#[derive(Debug)]
pub struct ConditionDefinition {
    /// Holds when it evaluates to true.
    pub condition: Expression,
    /// Its text as it is in the file, with the `=`.
    pub text: Arc<str>,
    /// What must happen to a variable so that the condition is looked at again; either, if nothing is said.
    pub variable_events: Vec<VariableEvent>,
}

/// What happens to a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableEvent {
    /// A scope gets a variable of this name.
    Create,
    /// The variable gets another value.
    Update,
}

impl VariableEvent {
    /// Its name in BPMN files and in the record stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
        }
    }
}

/// `zeebe:calledElement`.
#[derive(Debug)]
pub struct CalledElement {
    /// BPMN process id of the called process.
    pub process_id: StaticOrExpression,
    /// Which version is called.
    pub binding: Binding,
    /// Whether all variables of the ended child process go to the caller.
    pub propagate_all_child_variables: bool,
    /// Whether all variables visible to the caller go to the child process; otherwise those of the call activity itself.
    pub propagate_all_parent_variables: bool,
}

/// Which version of a resource is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// The newest.
    Latest,
    /// The one of the same deployment.
    Deployment,
    /// The newest with this version tag.
    VersionTag(Arc<str>),
}

/// `bpmn:multiInstanceLoopCharacteristics` with `zeebe:loopCharacteristics`.
#[derive(Debug)]
pub struct MultiInstance {
    /// The activity that runs once per item.
    pub inner: ElementIndex,
    /// Whether the items are processed one at a time.
    pub is_sequential: bool,
    /// Must evaluate to a list.
    pub input_collection: Expression,
    /// The variable that holds the item in each inner instance.
    pub input_element: Option<Arc<str>>,
    /// The variable that collects the results, and how each result is computed.
    pub output: Option<(Arc<str>, Expression)>,
    /// Evaluated after each completion; when it holds, the rest is left out.
    pub completion_condition: Option<Expression>,
}

/// What a user task says of its work.
#[derive(Debug)]
pub struct UserTask {
    /// Whether the engine leads it through its life (`zeebe:userTask`); otherwise it is a job for a task list.
    pub is_native: bool,
    /// Who is to do it.
    pub assignee: Option<StaticOrExpression>,
    /// Groups whose members may do it.
    pub candidate_groups: Option<Candidates>,
    /// Who may do it.
    pub candidate_users: Option<Candidates>,
    /// When it is to be done: a date-time with offset, as [`crate::timer::date_text`] writes it, or what gives one.
    pub due_date: Option<StaticOrExpression>,
    /// When to look at it again, likewise.
    pub follow_up_date: Option<StaticOrExpression>,
    /// From 0 to 100, if the engine leads it and it says one.
    pub priority: Option<Priority>,
    /// The form to fill in.
    pub form: Option<UserTaskForm>,
    /// Headers as one JSON object text (`{}` when there are none).
    pub headers: Arc<str>,
    /// What is done while it changes, in document order, if the engine leads it. Their jobs have the headers of the task.
    pub listeners: Vec<Listener>,
}

/// Who may do a user task.
#[derive(Debug)]
pub enum Candidates {
    /// Names.
    Static(Vec<Arc<str>>),
    /// Must evaluate to a list of strings.
    Expression(Expression),
}

/// How urgent a user task is.
#[derive(Debug)]
pub enum Priority {
    /// From 0 to 100.
    Static(i32),
    /// Must evaluate to a whole number from 0 to 100.
    Expression(Expression),
}

/// The form of a user task.
#[derive(Debug)]
pub enum UserTaskForm {
    /// Text that the task list understands, of a task that is a job.
    Key(Arc<str>),
    /// A deployed form.
    Id {
        /// Its id: must evaluate to a string.
        id: StaticOrExpression,
        /// Which version.
        binding: Binding,
    },
    /// A form elsewhere, of a task that the engine leads.
    Reference(StaticOrExpression),
}

/// `bpmn:adHocSubProcess` with `zeebe:adHoc`.
#[derive(Debug)]
pub struct AdHocSubProcess {
    /// The scope that each element gets when it is activated; the flow scope of what is inside.
    pub inner_instance: ElementIndex,
    /// The elements that can be activated.
    pub choices: Arc<AdHocChoices>,
    /// Must evaluate to a list of ids of elements, which are activated at once.
    pub active_elements_collection: Option<Expression>,
    /// The job whose worker says what is activated, if a worker does.
    pub job: Option<JobDefinition>,
    /// The variable that collects the results, and how each result is computed.
    pub output: Option<(Arc<str>, Expression)>,
    /// Evaluated after each inner instance; when it holds, the ad-hoc sub-process comes to its end.
    pub completion_condition: Option<Expression>,
    /// Whether what still runs is terminated then.
    pub cancel_remaining_instances: bool,
}

/// What can be activated in an ad-hoc sub-process.
#[derive(Debug)]
pub struct AdHocChoices {
    /// The elements inside without incoming sequence flow, in the order of their ids.
    pub elements: Vec<ElementIndex>,
    /// What is known of these elements, as a JSON list for whoever chooses among them.
    pub document: Arc<str>,
}

/// `zeebe:script`.
#[derive(Debug)]
pub struct Script {
    /// Gives the result.
    pub expression: Expression,
    /// The variable that the result becomes.
    pub result_variable: Arc<str>,
}

/// `zeebe:calledDecision`.
#[derive(Debug)]
pub struct CalledDecision {
    /// Id of the decision.
    pub decision_id: StaticOrExpression,
    /// Which version is evaluated.
    pub binding: Binding,
    /// The variable that the output becomes.
    pub result_variable: Arc<str>,
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
    /// Resources whose keys the worker is told in a further header.
    pub linked_resources: Vec<LinkedResource>,
}

/// `zeebe:linkedResource`: a deployed file that only the worker understands.
#[derive(Debug)]
pub struct LinkedResource {
    /// Id of the resource.
    pub id: Arc<str>,
    /// Which version of it.
    pub binding: Binding,
    /// What the worker takes it for.
    pub resource_type: Arc<str>,
    /// What the worker calls it; may be absent.
    pub link_name: Option<Arc<str>>,
}

/// `zeebe:executionListener` or `zeebe:taskListener`: a job besides the work of an element.
#[derive(Debug)]
pub struct Listener {
    /// What it listens to.
    pub event_type: ListenerEventType,
    /// What it does.
    pub job: JobDefinition,
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

    /// The element of the record stream's `element_id` and `element_type`: of an activity that runs several times, the type
    /// tells the body from the inner activity.
    pub fn find(&self, id: &str, element_type: ElementType) -> Option<ElementIndex> {
        let index = *self.element_by_id.get(id)?;
        match &self.element(index).behavior {
            Behavior::MultiInstanceBody(body) if element_type != ElementType::MultiInstanceBody => Some(body.inner),
            _ => Some(index),
        }
    }

    /// The element with this id that waits for an event: of an activity that runs several times, the inner activity.
    pub fn find_event(&self, id: &str) -> Option<ElementIndex> {
        let index = *self.element_by_id.get(id)?;
        match &self.element(index).behavior {
            Behavior::MultiInstanceBody(body) => Some(body.inner),
            _ => Some(index),
        }
    }

    /// The start event of an event sub-process.
    pub fn start_event_of(&self, event_sub_process: ElementIndex) -> Option<ElementIndex> {
        match self.element(event_sub_process).behavior {
            Behavior::EventSubProcess { start_event } => Some(start_event),
            _ => None,
        }
    }

    /// The event sub-process that an element starts, if it does.
    pub fn event_sub_process_of(&self, start: ElementIndex) -> Option<ElementIndex> {
        let scope = self.element(start).flow_scope?;
        (self.start_event_of(scope) == Some(start)).then_some(scope)
    }

    /// Whether what the event belongs to ends when the event comes.
    pub fn is_interrupting(&self, event: ElementIndex) -> bool {
        self.element(event).catch_event().is_some_and(|event| event.is_interrupting)
    }

    /// The compensation boundary event of an activity and its handler, if it has one.
    pub fn compensation_of(&self, activity: ElementIndex) -> Option<(ElementIndex, ElementIndex)> {
        self.element(activity).boundary_events.iter().find_map(|event| match self.element(*event).behavior {
            Behavior::CompensationBoundaryEvent { handler, .. } => Some((*event, handler)),
            _ => None,
        })
    }

    /// Whether messages start the process.
    pub fn is_started_by_message(&self) -> bool {
        let mut starts = self.triggered_start_events.iter().map(|start| self.element(*start));
        starts.any(|start| start.catch_event().is_some_and(|event| matches!(event.trigger, Trigger::Message(_))))
    }

    /// The none start event at process level, if there is one.
    pub fn none_start_event(&self) -> Option<ElementIndex> {
        match self.element(PROCESS).behavior {
            Behavior::Container { none_start_event } => none_start_event,
            _ => None,
        }
    }
}

impl Element {
    /// What the element waits for, if it is an event (or receive task) that something triggers.
    pub fn catch_event(&self) -> Option<&CatchEvent> {
        match &self.behavior {
            Behavior::StartEvent(event)
            | Behavior::IntermediateCatchEvent(event)
            | Behavior::BoundaryEvent { event, .. }
            | Behavior::ReceiveTask(event) => Some(event),
            _ => None,
        }
    }
}
