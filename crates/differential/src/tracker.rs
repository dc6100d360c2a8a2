//! What is there, by the records: gives everything a name that does not depend on keys.

use std::collections::HashMap;

use serde_json::Value;

/// A record as exporters see it.
#[derive(Clone, Copy)]
pub struct Record<'a>(pub &'a Value);

impl<'a> Record<'a> {
    /// Whether it is a fact.
    pub fn is_event(self) -> bool {
        self.0["recordType"] == "EVENT"
    }

    /// Kind of its value.
    pub fn value_type(self) -> &'a str {
        self.0["valueType"].as_str().unwrap_or_default()
    }

    /// What happened.
    pub fn intent(self) -> &'a str {
        self.0["intent"].as_str().unwrap_or_default()
    }

    /// Key of the entity.
    pub fn key(self) -> i64 {
        self.0["key"].as_i64().unwrap_or(-1)
    }

    /// A field of the value.
    pub fn value(self, field: &str) -> &'a Value {
        &self.0["value"][field]
    }

    /// A field that holds text.
    pub fn text(self, field: &str) -> &'a str {
        self.value(field).as_str().unwrap_or_default()
    }

    /// A field that holds a number; -1 when there is none.
    pub fn number(self, field: &str) -> i64 {
        self.value(field).as_i64().unwrap_or(-1)
    }
}

/// A process instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name.
    pub label: String,
    /// Its key.
    pub key: i64,
    /// BPMN process id.
    pub process: String,
    /// Whether another instance called it.
    pub is_called: bool,
    /// Whether it still runs.
    pub is_open: bool,
    /// Whether a client waits for its result.
    pub is_awaited: bool,
}

/// An element instance.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its name inside the process instance.
    pub label: String,
    /// Its key.
    pub key: i64,
    /// Index of the process instance.
    pub instance: usize,
    /// BPMN id.
    pub id: String,
    /// Type, as the records name it.
    pub element_type: String,
    /// The intent of its last transition.
    pub state: String,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its key.
    pub key: i64,
    /// Index of its element instance.
    pub element: usize,
    /// Its type.
    pub job_type: String,
    /// What it is for, as the records name it.
    pub kind: String,
    /// The intent of its last record.
    pub state: String,
    /// Attempts left.
    pub retries: i64,
}

/// An incident.
#[derive(Clone, Debug)]
pub struct Incident {
    /// Its key.
    pub key: i64,
    /// Index of its element instance.
    pub element: usize,
    /// Its type.
    pub error_type: String,
    /// The job that it is about.
    pub job_key: i64,
    /// Whether it waits to be resolved.
    pub is_open: bool,
}

/// A message that something waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Key of its record.
    pub key: i64,
    /// Name of the message.
    pub name: String,
    /// Correlation key.
    pub correlation_key: String,
}

/// A deployed process.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its key.
    pub key: i64,
    /// BPMN process id.
    pub id: String,
    /// Version.
    pub version: i64,
}

/// Everything that is or was there.
#[derive(Default)]
pub struct Tracker {
    /// Process instances in the order of their beginning.
    pub instances: Vec<Instance>,
    /// Element instances in the order of their beginning; a process instance is one too.
    pub elements: Vec<Element>,
    /// Jobs in the order of their creation.
    pub jobs: Vec<Job>,
    /// User tasks in the order of their creation: key and index of the element instance.
    pub user_tasks: Vec<(i64, usize)>,
    /// Incidents in the order of their creation.
    pub incidents: Vec<Incident>,
    /// Open subscriptions of element instances.
    pub subscriptions: Vec<Subscription>,
    /// Open subscriptions of start events; their correlation keys are empty.
    pub start_subscriptions: Vec<Subscription>,
    /// Waits for signals: keys and names.
    pub signals: Vec<(i64, String)>,
    /// Timers that run: key and due date.
    pub timers: Vec<(i64, i64)>,
    /// Published messages by key: name and correlation key.
    pub messages: HashMap<i64, String>,
    /// Definitions in the order of their deployment.
    pub definitions: Vec<Definition>,
    /// Deployed resources that are only kept: keys, and ids with versions.
    pub resources: Vec<(i64, String)>,
    instance_by_key: HashMap<i64, usize>,
    element_by_key: HashMap<i64, usize>,
    counts: HashMap<(usize, String), usize>,
    instance_counts: HashMap<String, usize>,
    next_name: Option<(String, Option<String>, bool)>,
}

impl Tracker {
    /// The next instance of a process that is not called gets this name.
    pub fn expect_instance(&mut self, process: &str, name: Option<String>, is_awaited: bool) {
        self.next_name = Some((process.to_owned(), name, is_awaited));
    }

    /// No instance is expected any more.
    pub fn expect_nothing(&mut self) {
        self.next_name = None;
    }

    /// Takes note of records.
    pub fn observe(&mut self, records: &[Value]) {
        for record in records.iter().map(Record).filter(|record| record.is_event()) {
            match record.value_type() {
                "PROCESS_INSTANCE" => self.observe_transition(record),
                "JOB" => self.observe_job(record),
                "USER_TASK" => {
                    let element = self.element_by_key.get(&record.number("elementInstanceKey"));
                    if let (Some(&element), "CREATING") = (element, record.intent()) {
                        self.user_tasks.push((record.key(), element));
                    }
                }
                "JOB_BATCH" => self.observe_activation(record),
                "INCIDENT" => self.observe_incident(record),
                "PROCESS_MESSAGE_SUBSCRIPTION" => self.observe_subscription(record),
                "MESSAGE_START_EVENT_SUBSCRIPTION" => {
                    self.start_subscriptions.retain(|subscription| subscription.key != record.key());
                    if record.intent() != "DELETED" {
                        self.start_subscriptions.push(subscription(record));
                    }
                }
                "MESSAGE" if record.intent() == "PUBLISHED" => {
                    let name = format!("{}/{}", record.text("name"), record.text("correlationKey"));
                    self.messages.insert(record.key(), name);
                }
                "SIGNAL_SUBSCRIPTION" => {
                    self.signals.retain(|(key, _)| *key != record.key());
                    if record.intent() != "DELETED" {
                        self.signals.push((record.key(), record.text("signalName").to_owned()));
                    }
                }
                "TIMER" => {
                    self.timers.retain(|(key, _)| *key != record.key());
                    if matches!(record.intent(), "CREATED" | "MIGRATED") {
                        self.timers.push((record.key(), record.number("dueDate")));
                    }
                }
                "PROCESS" if record.intent() == "CREATED" => self.definitions.push(Definition {
                    key: record.number("processDefinitionKey"),
                    id: record.text("bpmnProcessId").to_owned(),
                    version: record.number("version"),
                }),
                "RESOURCE" if record.intent() == "CREATED" => {
                    let name = format!("{} v{}", record.text("resourceId"), record.number("version"));
                    self.resources.push((record.number("resourceKey"), name));
                }
                "PROCESS" if record.intent() == "DELETED" => {
                    let key = record.number("processDefinitionKey");
                    self.definitions.retain(|definition| definition.key != key);
                }
                _ => {}
            }
        }
    }

    /// A text with the names of resources in place of their keys.
    pub fn with_resource_names(&self, text: &str) -> String {
        self.resources.iter().fold(text.to_owned(), |text, (key, name)| text.replace(&key.to_string(), name))
    }

    fn observe_transition(&mut self, record: Record<'_>) {
        let intent = record.intent();
        if matches!(intent, "SEQUENCE_FLOW_TAKEN" | "SEQUENCE_FLOW_DELETED") {
            return;
        }
        let key = record.key();
        if intent == "ELEMENT_ACTIVATING" && !self.element_by_key.contains_key(&key) {
            self.begin(record);
        }
        let Some(&index) = self.element_by_key.get(&key) else { return };
        let element = &mut self.elements[index];
        element.state = intent.to_owned();
        if intent == "ELEMENT_MIGRATED" {
            element.id = record.text("elementId").to_owned();
        }
        if element.element_type == "PROCESS" && matches!(intent, "ELEMENT_COMPLETED" | "ELEMENT_TERMINATED") {
            self.instances[element.instance].is_open = false;
        }
    }

    fn begin(&mut self, record: Record<'_>) {
        let element_type = record.text("bpmnElementType").to_owned();
        let id = record.text("elementId").to_owned();
        if element_type == "PROCESS" {
            self.begin_instance(record);
        }
        let Some(&instance) = self.instance_by_key.get(&record.number("processInstanceKey")) else { return };
        let base = if element_type == "MULTI_INSTANCE_BODY" { format!("{id}[]") } else { id.clone() };
        let label = numbered(&base, self.counts.entry((instance, base.clone())).or_default());
        let state = record.intent().to_owned();
        self.element_by_key.insert(record.key(), self.elements.len());
        self.elements.push(Element { label, key: record.key(), instance, id, element_type, state });
    }

    fn begin_instance(&mut self, record: Record<'_>) {
        let process = record.text("bpmnProcessId").to_owned();
        let is_called = record.number("parentProcessInstanceKey") > 0;
        let expected = self.next_name.take_if(|(expected, ..)| *expected == process && !is_called);
        let (name, is_awaited) = expected.map_or((None, false), |(_, name, is_awaited)| (name, is_awaited));
        let label =
            name.unwrap_or_else(|| numbered(&process, self.instance_counts.entry(process.clone()).or_default()));
        let key = record.key();
        self.instance_by_key.insert(key, self.instances.len());
        self.instances.push(Instance { label, key, process, is_called, is_open: true, is_awaited });
    }

    fn observe_job(&mut self, record: Record<'_>) {
        let Some(&element) = self.element_by_key.get(&record.number("elementInstanceKey")) else { return };
        let state = record.intent().to_owned();
        let retries = record.number("retries");
        match self.jobs.iter_mut().find(|job| job.key == record.key()) {
            Some(job) => {
                job.retries = retries;
                if !matches!(state.as_str(), "RETRIES_UPDATED" | "TIMEOUT_UPDATED" | "UPDATED" | "MIGRATED") {
                    job.state = state;
                }
            }
            None => {
                let job_type = record.text("type").to_owned();
                let kind = record.text("jobKind").to_owned();
                self.jobs.push(Job { key: record.key(), element, job_type, kind, state, retries });
            }
        }
    }

    fn observe_activation(&mut self, record: Record<'_>) {
        let keys = record.value("jobKeys").as_array().cloned().unwrap_or_default();
        for key in keys.iter().filter_map(Value::as_i64) {
            if let Some(job) = self.jobs.iter_mut().find(|job| job.key == key) {
                job.state = "ACTIVATED".to_owned();
            }
        }
    }

    fn observe_incident(&mut self, record: Record<'_>) {
        let known = self.incidents.iter_mut().find(|incident| incident.key == record.key());
        match (known, self.element_by_key.get(&record.number("elementInstanceKey"))) {
            (Some(incident), _) => incident.is_open = record.intent() != "RESOLVED",
            (None, Some(&element)) => self.incidents.push(Incident {
                key: record.key(),
                element,
                error_type: record.text("errorType").to_owned(),
                job_key: record.number("jobKey"),
                is_open: true,
            }),
            (None, None) => {}
        }
    }

    fn observe_subscription(&mut self, record: Record<'_>) {
        match record.intent() {
            "CREATED" => {
                self.subscriptions.retain(|subscription| subscription.key != record.key());
                self.subscriptions.push(subscription(record));
            }
            "DELETING" | "DELETED" => self.subscriptions.retain(|subscription| subscription.key != record.key()),
            "CORRELATED" if record.value("interrupting") == true => {
                self.subscriptions.retain(|subscription| subscription.key != record.key());
            }
            _ => {}
        }
    }

    /// The element instance of a key.
    pub fn element(&self, key: i64) -> Option<&Element> {
        self.element_by_key.get(&key).map(|index| &self.elements[*index])
    }

    /// Index of the process instance of a key.
    pub fn instance_index(&self, key: i64) -> Option<usize> {
        self.instance_by_key.get(&key).copied()
    }

    /// The full name of an element instance.
    pub fn name(&self, element: usize) -> String {
        let element = &self.elements[element];
        format!("{}/{}", self.instances[element.instance].label, element.label)
    }

    /// The process instance of a name.
    pub fn find_instance(&self, name: &str) -> Option<&Instance> {
        self.instances.iter().find(|instance| instance.label == name)
    }

    /// Element instances that a name may mean, best first: those that are there, then those that ended, newest first.
    pub fn find_elements(&self, name: &str) -> Vec<usize> {
        let (instance, element) = match name.split_once('/') {
            Some((instance, element)) => (Some(instance), element),
            None => (None, name),
        };
        let fits = |candidate: &Element| {
            let in_instance = instance.is_none_or(|label| self.instances[candidate.instance].label == label);
            let base = candidate.label.split('#').next().unwrap_or_default();
            in_instance && (candidate.label == element || base == element)
        };
        let all = (0..self.elements.len()).filter(|index| fits(&self.elements[*index]));
        let (open, mut ended): (Vec<usize>, Vec<usize>) = all.partition(|index| self.elements[*index].is_open());
        ended.reverse();
        open.into_iter().chain(ended).collect()
    }

    /// How many instances whose result is waited for have completed.
    pub fn awaited_completed(&self) -> usize {
        let completed = |element: &&Element| {
            element.element_type == "PROCESS"
                && element.state == "ELEMENT_COMPLETED"
                && self.instances[element.instance].is_awaited
        };
        self.elements.iter().filter(completed).count()
    }
}

impl Element {
    /// Whether it has not ended yet.
    pub fn is_open(&self) -> bool {
        !matches!(self.state.as_str(), "ELEMENT_COMPLETED" | "ELEMENT_TERMINATED")
    }
}

impl Job {
    /// Whether it can still be completed.
    pub fn is_open(&self) -> bool {
        !matches!(self.state.as_str(), "COMPLETED" | "CANCELED" | "ERROR_THROWN")
    }
}

fn subscription(record: Record<'_>) -> Subscription {
    Subscription {
        key: record.key(),
        name: record.text("messageName").to_owned(),
        correlation_key: record.text("correlationKey").to_owned(),
    }
}

fn numbered(base: &str, count: &mut usize) -> String {
    *count += 1;
    if *count == 1 { base.to_owned() } else { format!("{base}#{count}") }
}
