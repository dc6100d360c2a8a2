//! The builder of a process.

use std::collections::HashMap;

use crate::xml::tag;

/// Names and values of an XML element.
pub(crate) type Attributes = Vec<(&'static str, String)>;

/// Builds one executable process. A wrong use (an unknown id, say) is not caught here but when the file is read.
#[derive(Clone, Debug, Default)]
pub struct ProcessBuilder {
    pub(crate) id: String,
    pub(crate) extensions: String,
    /// The attributes of each execution listener of the process itself.
    pub(crate) execution_listeners: Vec<Attributes>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) index_by_id: HashMap<String, usize>,
    pub(crate) scope: Option<usize>,
    pub(crate) cursor: Option<usize>,
    pub(crate) condition: Option<String>,
    pub(crate) is_default: bool,
    /// Name and correlation key.
    pub(crate) messages: Vec<(String, Option<String>)>,
    pub(crate) error_codes: Vec<String>,
    pub(crate) escalation_codes: Vec<String>,
    pub(crate) signal_names: Vec<String>,
    /// From compensation boundary events to their handlers.
    pub(crate) associations: Vec<(usize, usize)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) scope: Option<usize>,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) task_definition: Vec<(&'static str, String)>,
    pub(crate) called_element: Vec<(&'static str, String)>,
    pub(crate) script: Vec<(&'static str, String)>,
    pub(crate) called_decision: Vec<(&'static str, String)>,
    /// Whether it is a user task that the engine leads through its life.
    pub(crate) is_native_user_task: bool,
    /// Who is to do a user task.
    pub(crate) assignment: Vec<(&'static str, String)>,
    pub(crate) ad_hoc: Vec<(&'static str, String)>,
    /// The attributes of each listener of a user task.
    pub(crate) task_listeners: Vec<Attributes>,
    /// The attributes of each execution listener.
    pub(crate) execution_listeners: Vec<Attributes>,
    pub(crate) headers: String,
    pub(crate) mappings: String,
    pub(crate) event_definition: String,
    pub(crate) multi_instance: Option<MultiInstance>,
    pub(crate) default_flow: Option<usize>,
}

impl Node {
    fn is_event_sub_process(&self) -> bool {
        self.attributes.iter().any(|(name, _)| *name == "triggeredByEvent")
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MultiInstance {
    pub(crate) is_sequential: bool,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) completion_condition: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) condition: Option<String>,
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

    /// Adds a user task that the engine leads through its life.
    pub fn user_task(mut self, id: &str) -> Self {
        self = self.element("userTask", id);
        self.last().is_native_user_task = true;
        self
    }

    /// Sets who has the user task that was added last (an expression if it starts with `=`).
    pub fn assignee(self, assignee: &str) -> Self {
        self.assignment("assignee", assignee)
    }

    /// Sets who may do the user task that was added last (an expression if it starts with `=`).
    pub fn candidate_users(self, users: &str) -> Self {
        self.assignment("candidateUsers", users)
    }

    fn assignment(mut self, name: &'static str, value: &str) -> Self {
        self.last().assignment.push((name, value.to_owned()));
        self
    }

    /// Gives the user task that was just added a listener.
    pub fn task_listener(mut self, event_type: &str, job_type: &str) -> Self {
        self.last().task_listeners.push(listener(event_type, job_type));
        self
    }

    /// Gives the element that was just added an execution listener (`start` or `end`); the process, when there is none yet.
    pub fn execution_listener(mut self, event_type: &str, job_type: &str) -> Self {
        let listeners = match self.nodes.last_mut() {
            Some(node) => &mut node.execution_listeners,
            None => &mut self.execution_listeners,
        };
        listeners.push(listener(event_type, job_type));
        self
    }

    /// Sets the retries of all listeners so far of the element that was just added, or of the process, that have none.
    pub fn listener_retries(mut self, retries: &str) -> Self {
        let listeners: Vec<&mut Attributes> = match self.nodes.last_mut() {
            Some(node) => node.execution_listeners.iter_mut().chain(&mut node.task_listeners).collect(),
            None => self.execution_listeners.iter_mut().collect(),
        };
        for listener in listeners {
            if !listener.iter().any(|(name, _)| *name == "retries") {
                listener.push(("retries", retries.to_owned()));
            }
        }
        self
    }

    /// Adds a script task with an expression (that starts with `=`) and the variable of its result.
    pub fn script_task(mut self, id: &str, expression: &str, result_variable: &str) -> Self {
        self = self.element("scriptTask", id);
        let attributes = [("expression", expression), ("resultVariable", result_variable)];
        self.last().script = attributes.map(|(name, value)| (name, value.to_owned())).to_vec();
        self
    }

    /// Adds a business rule task with the id of a decision (an expression if it starts with `=`) and the variable of its
    /// result.
    pub fn called_decision(mut self, id: &str, decision_id: &str, result_variable: &str) -> Self {
        self = self.element("businessRuleTask", id);
        let attributes = [("decisionId", decision_id), ("resultVariable", result_variable)];
        self.last().called_decision = attributes.map(|(name, value)| (name, value.to_owned())).to_vec();
        self
    }

    /// Adds a send task with a job type.
    pub fn send_task(self, id: &str, job_type: &str) -> Self {
        self.job_task("sendTask", id, job_type)
    }

    /// Adds a call activity that calls a process (an expression if it starts with `=`).
    pub fn call_activity(mut self, id: &str, process_id: &str) -> Self {
        self = self.element("callActivity", id);
        self.called_element("processId", process_id)
    }

    /// Makes the call activity added last call the version of the same deployment.
    pub fn bind_to_deployment(self) -> Self {
        self.called_element("bindingType", "deployment")
    }

    /// Makes the call activity added last call the newest version with this version tag.
    pub fn bind_to_version_tag(self, version_tag: &str) -> Self {
        self.called_element("bindingType", "versionTag").called_element("versionTag", version_tag)
    }

    /// Sets whether all variables of the called process go to the caller; they do if this is not set.
    pub fn propagate_all_child_variables(self, all: bool) -> Self {
        self.called_element("propagateAllChildVariables", &all.to_string())
    }

    /// Sets whether all variables of the caller go to the called process; they do if this is not set.
    pub fn propagate_all_parent_variables(self, all: bool) -> Self {
        self.called_element("propagateAllParentVariables", &all.to_string())
    }

    fn called_element(mut self, name: &'static str, value: &str) -> Self {
        self.last().called_element.push((name, value.to_owned()));
        self
    }

    /// Makes the activity added last run once for each item, all at the same time.
    pub fn multi_instance(mut self, input_collection: &str, input_element: &str) -> Self {
        let attributes = [("inputCollection", input_collection.to_owned()), ("inputElement", input_element.to_owned())];
        let given = attributes.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        self.last().multi_instance = Some(MultiInstance { attributes: given, ..MultiInstance::default() });
        self
    }

    /// Makes the activity added last run once for each item, one after the other.
    pub fn sequential_multi_instance(mut self, input_collection: &str, input_element: &str) -> Self {
        self = self.multi_instance(input_collection, input_element);
        self.last_multi_instance().is_sequential = true;
        self
    }

    /// Collects a result of each instance of the multi-instance activity added last.
    pub fn output_collection(mut self, output_collection: &str, output_element: &str) -> Self {
        let attributes = &mut self.last_multi_instance().attributes;
        attributes.push(("outputCollection", output_collection.to_owned()));
        attributes.push(("outputElement", output_element.to_owned()));
        self
    }

    /// Ends the multi-instance activity added last as soon as the condition holds.
    pub fn completion_condition(mut self, expression: &str) -> Self {
        self.last_multi_instance().completion_condition = Some(expression.to_owned());
        self
    }

    fn last_multi_instance(&mut self) -> &mut MultiInstance {
        self.last().multi_instance.get_or_insert_default()
    }

    /// Adds a manual task.
    pub fn manual_task(self, id: &str) -> Self {
        self.element("manualTask", id)
    }

    /// Adds an exclusive gateway.
    pub fn exclusive_gateway(self, id: &str) -> Self {
        self.element("exclusiveGateway", id)
    }

    /// Adds an inclusive gateway.
    pub fn inclusive_gateway(self, id: &str) -> Self {
        self.element("inclusiveGateway", id)
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

    /// Opens an event sub-process in the current scope, connected to nothing: what follows is inside until
    /// [`Self::end_sub_process`].
    pub fn event_sub_process(mut self, id: &str) -> Self {
        self.cursor = None;
        self = self.sub_process(id);
        self.last().attributes.push(("triggeredByEvent", "true".to_owned()));
        self
    }

    /// Opens an ad-hoc sub-process: what follows is inside until [`Self::end_sub_process`], and begins as this expression names it
    /// (with its `=`; nothing if it is empty). Each path inside begins with [`Self::apart`].
    pub fn ad_hoc_sub_process(mut self, id: &str, active_elements: &str) -> Self {
        self = self.element("adHocSubProcess", id);
        if !active_elements.is_empty() {
            self.last().ad_hoc.push(("activeElementsCollection", active_elements.to_owned()));
        }
        self.scope = self.cursor.take();
        self
    }

    /// Collects a result of each path in the ad-hoc sub-process that was added last.
    pub fn ad_hoc_output(mut self, output_collection: &str, output_element: &str) -> Self {
        let attributes = [("outputCollection", output_collection), ("outputElement", output_element)];
        self.last().ad_hoc.extend(attributes.map(|(name, value)| (name, value.to_owned())));
        self
    }

    /// What follows is connected to nothing before it.
    pub fn apart(mut self) -> Self {
        self.cursor = None;
        self
    }

    /// Closes the sub-process; what follows is connected to it, but not to an event sub-process.
    pub fn end_sub_process(mut self) -> Self {
        self.cursor = self.scope;
        self.scope = self.cursor.and_then(|index| self.nodes[index].scope);
        self.cursor = self.cursor.filter(|index| !self.nodes[*index].is_event_sub_process());
        self
    }

    /// Continues at the element `id`, in its scope; nothing is connected if there is none.
    pub fn move_to(mut self, id: &str) -> Self {
        self.cursor = self.index_by_id.get(id).copied();
        self.scope = self.cursor.and_then(|index| self.nodes[index].scope);
        self
    }

    /// The id of the current element; empty if there is none.
    pub fn current(&self) -> &str {
        self.cursor.map_or("", |index| &self.nodes[index].id)
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

    pub(crate) fn last(&mut self) -> &mut Node {
        self.nodes.last_mut().expect("an element must be added before its properties are set")
    }
}

fn listener(event_type: &str, job_type: &str) -> Attributes {
    vec![("eventType", event_type.to_owned()), ("type", job_type.to_owned())]
}
