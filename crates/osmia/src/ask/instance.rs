//! A process instance as a tree: its elements, what they wait for, what is wrong with them, and what they called.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::advice::advice;
use super::joins::{self, Join};
use super::rest::{Rest, text};
use super::table::plain;
use super::time::passed;
use crate::client::Outcome;

/// More elements of one process instance are not shown.
pub(super) const ELEMENTS_MAX: usize = 1_000;
/// More incidents of one process instance are not shown.
pub(super) const INCIDENTS_MAX: usize = 100;
/// So deep are called process instances shown.
const CALLS_MAX: usize = 16;

/// What has elements inside of it.
const SCOPES: [&str; 5] = [
    "SUB_PROCESS",
    "EVENT_SUB_PROCESS",
    "AD_HOC_SUB_PROCESS",
    "AD_HOC_SUB_PROCESS_INNER_INSTANCE",
    "MULTI_INSTANCE_BODY",
];

/// A process instance and all that is in it.
pub(super) struct Instance {
    pub value: Value,
    pub elements: Vec<Element>,
    /// Whether there are more elements than these.
    pub has_more: bool,
    /// Where tokens wait for others.
    pub joins: Vec<Join>,
    /// What the process itself waits for, in sentences.
    pub own_waits: Vec<String>,
    /// Incidents of elements that are not among these.
    pub other_incidents: Vec<Value>,
    /// Whether there are more incidents than these.
    pub has_more_incidents: bool,
}

/// The elements of a process instance in the order of their keys, and whether there are more. Of very many those that are active
/// come first: what the instance waits for is there.
fn elements(rest: &Rest, of: &Value, active: &Value) -> Outcome<(Vec<Value>, bool)> {
    let (oldest, has_more) = rest.all("element-instances", of, ELEMENTS_MAX)?;
    if !has_more {
        return Ok((oldest, false));
    }
    let mut chosen = rest.all("element-instances", active, ELEMENTS_MAX)?.0;
    let known: HashSet<String> = chosen.iter().map(key_of).collect();
    let room = ELEMENTS_MAX.saturating_sub(chosen.len());
    chosen.extend(oldest.into_iter().filter(|element| !known.contains(&key_of(element))).take(room));
    chosen.sort_by_key(|element| key_of(element).parse::<i64>().unwrap_or_default());
    Ok((chosen, true))
}

/// An element instance and all that is in it.
pub(super) struct Element {
    pub value: Value,
    pub inner: Vec<Element>,
    pub called: Vec<Instance>,
    pub incidents: Vec<Value>,
    /// In sentences.
    pub waits: Vec<String>,
}

impl Instance {
    /// With what there is now of the process instance.
    pub(super) fn load(rest: &Rest, value: Value) -> Outcome<Instance> {
        Instance::load_called(rest, value, 0)
    }

    fn load_called(rest: &Rest, value: Value, depth: usize) -> Outcome<Instance> {
        let of = json!({ "processInstanceKey": value["processInstanceKey"] });
        let active = json!({ "processInstanceKey": value["processInstanceKey"], "state": "ACTIVE" });
        let (elements, has_more) = elements(rest, &of, &active)?;
        let scopes = scopes(rest, &elements)?;
        let joins = joins::find(rest, &value, &elements)?;
        let (incidents, has_more_incidents) = rest.all("incidents", &active, INCIDENTS_MAX)?;
        let mut incidents = by_element(incidents);
        let mut waits = by_element(rest.all("element-instances/wait-states", &of, ELEMENTS_MAX)?.0);
        let created = json!({ "processInstanceKey": value["processInstanceKey"], "state": "CREATED" });
        let mut tasks = by_element(rest.all("user-tasks", &created, ELEMENTS_MAX)?.0);
        let own_waits = waits.remove(text(&value, "processInstanceKey").unwrap_or_default()).unwrap_or_default();
        let own_waits = own_waits.iter().map(wait).collect();
        let mut inner: HashMap<String, Vec<Element>> = HashMap::new();
        let mut outermost = Vec::new();
        // Inner ones have greater keys, so they come first from the end.
        for element in elements.into_iter().rev() {
            let key = key_of(&element);
            let called = match text(&element, "type") {
                Some("CALL_ACTIVITY") if depth < CALLS_MAX => called(rest, &key, depth)?,
                _ => Vec::new(),
            };
            let mut contents = inner.remove(&key).unwrap_or_default();
            contents.reverse();
            let with_people = tasks.remove(&key).unwrap_or_default();
            let mut waiting = waits.remove(&key).unwrap_or_default();
            // The task itself says more.
            waiting.retain(|wait| with_people.is_empty() || wait["details"]["waitStateType"] != "USER_TASK");
            let element = Element {
                inner: contents,
                called,
                incidents: incidents.remove(&key).unwrap_or_default(),
                waits: waiting.iter().map(wait).chain(with_people.iter().map(task)).collect(),
                value: element,
            };
            match scopes.get(&key) {
                Some(scope) => inner.entry(scope.clone()).or_default().push(element),
                None => outermost.push(element),
            }
        }
        outermost.reverse();
        let other_incidents = incidents.into_values().flatten().collect();
        Ok(Instance { value, elements: outermost, has_more, joins, own_waits, other_incidents, has_more_incidents })
    }

    /// The state that it is in, as the API has it.
    pub(super) fn state(&self) -> &str {
        text(&self.value, "state").unwrap_or_default()
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let mut told = self.value.clone();
        told["elements"] = self.elements.iter().map(Element::json).collect();
        told["waitsFor"] = json!(self.own_waits);
        told["waitingAtJoins"] = self.joins.iter().map(Join::sentence).collect();
        told["hasMoreElements"] = json!(self.has_more);
        told["hasMoreIncidents"] = json!(self.has_more_incidents);
        told
    }

    /// For people.
    pub(super) fn lines(&self, indentation: usize) -> Vec<String> {
        let part = |name: &str| plain(text(&self.value, name).unwrap_or_default());
        let business_id = text(&self.value, "businessId");
        let mut lines = vec![format!(
            "{:indentation$}process instance {} of {} version {}{}: {}",
            "",
            part("processInstanceKey"),
            part("processDefinitionId"),
            self.value["processDefinitionVersion"],
            business_id.map(|id| format!(" with business id {}", plain(id))).unwrap_or_default(),
            state(&self.value)
        )];
        let indentation = indentation + 2;
        lines.extend(self.own_waits.iter().map(|wait| format!("{:indentation$}waits for {wait}", "")));
        lines.extend(self.elements.iter().flat_map(|element| element.lines(indentation)));
        lines.extend(self.joins.iter().map(|join| format!("{:indentation$}{}", "", plain(&join.sentence()))));
        if self.has_more {
            lines.push(format!("{:indentation$}There are more elements than these {ELEMENTS_MAX}.", ""));
        }
        lines.extend(self.other_incidents.iter().flat_map(|incident| incident_lines(incident, indentation)));
        if self.has_more_incidents {
            let more = "There are more incidents than these";
            let key = part("processInstanceKey");
            lines.push(format!("{:indentation$}{more} {INCIDENTS_MAX}: osmia incidents --instance {key}", ""));
        }
        lines
    }

    /// How many incidents there are in it and in what it called.
    pub(super) fn incident_count(&self) -> usize {
        self.other_incidents.len() + self.elements.iter().map(Element::incident_count).sum::<usize>()
    }

    /// What is waited for in it and in what it called.
    pub(super) fn waits(&self) -> Vec<String> {
        let own = self.own_waits.iter().map(|wait| format!("the process waits for {wait}"));
        let joins = self.joins.iter().map(Join::sentence);
        own.chain(self.elements.iter().flat_map(Element::all_waits)).chain(joins).collect()
    }
}

impl Element {
    fn json(&self) -> Value {
        let mut told = self.value.clone();
        told["elements"] = self.inner.iter().map(Element::json).collect();
        told["calledProcessInstances"] = self.called.iter().map(Instance::json).collect();
        told["incidents"] = self.incidents.iter().map(with_advice).collect();
        told["waitsFor"] = json!(self.waits);
        told
    }

    fn lines(&self, indentation: usize) -> Vec<String> {
        let part = |name: &str| plain(text(&self.value, name).unwrap_or_default());
        let mut lines = vec![format!(
            "{:indentation$}{} ({}) {}: {}",
            "",
            part("elementId"),
            part("type").to_lowercase().replace('_', " "),
            part("elementInstanceKey"),
            state(&self.value)
        )];
        let inner = indentation + 2;
        lines.extend(self.waits.iter().map(|wait| format!("{:inner$}waits for {wait}", "")));
        lines.extend(self.incidents.iter().flat_map(|incident| incident_lines(incident, inner)));
        lines.extend(self.inner.iter().flat_map(|element| element.lines(inner)));
        lines.extend(self.called.iter().flat_map(|called| called.lines(inner)));
        lines
    }

    fn incident_count(&self) -> usize {
        let inner: usize = self.inner.iter().map(Element::incident_count).sum();
        self.incidents.len() + inner + self.called.iter().map(Instance::incident_count).sum::<usize>()
    }

    fn all_waits(&self) -> Vec<String> {
        let here = self
            .waits
            .iter()
            .map(|wait| format!("{} waits for {wait}", plain(text(&self.value, "elementId").unwrap_or_default())));
        let inner = self.inner.iter().flat_map(Element::all_waits);
        here.chain(inner).chain(self.called.iter().flat_map(Instance::waits)).collect()
    }
}

/// Which scope each element inside of another is in, by their keys.
pub(super) fn scopes(rest: &Rest, elements: &[Value]) -> Outcome<HashMap<String, String>> {
    let mut scopes = HashMap::new();
    for scope in elements.iter().filter(|element| text(element, "type").is_some_and(|kind| SCOPES.contains(&kind))) {
        let key = key_of(scope);
        let (inner, _) = rest.all("element-instances", &json!({ "elementInstanceScopeKey": key }), ELEMENTS_MAX)?;
        scopes.extend(inner.iter().map(|element| (key_of(element), key.clone())));
    }
    Ok(scopes)
}

fn called(rest: &Rest, key: &str, depth: usize) -> Outcome<Vec<Instance>> {
    let (found, _) = rest.all("process-instances", &json!({ "parentElementInstanceKey": key }), ELEMENTS_MAX)?;
    found.into_iter().map(|value| Instance::load_called(rest, value, depth + 1)).collect()
}

fn by_element(values: Vec<Value>) -> BTreeMap<String, Vec<Value>> {
    let mut by_element: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for value in values {
        by_element.entry(key_of(&value)).or_default().push(value);
    }
    by_element
}

fn key_of(element: &Value) -> String {
    text(element, "elementInstanceKey").unwrap_or_default().to_owned()
}

/// The state of an instance in words, with its times.
fn state(value: &Value) -> String {
    let state = text(value, "state").unwrap_or_default().to_lowercase();
    match (text(value, "startDate"), text(value, "endDate")) {
        (Some(start), Some(end)) => format!("{state} at {end} after {}", passed(start, end)),
        (Some(start), None) => format!("{state} since {start}"),
        _ => state,
    }
}

/// What an element instance waits for, of a wait state.
pub(super) fn wait(wait: &Value) -> String {
    let details = &wait["details"];
    let part = |name: &str| plain(text(details, name).unwrap_or_default());
    match text(details, "waitStateType") {
        Some("JOB") => {
            format!("job {} of type {}, which has {} retries", part("jobKey"), part("jobType"), details["retries"])
        }
        Some("MESSAGE") => match text(details, "correlationKey") {
            Some(key) => format!("message {} with the correlation key {}", part("messageName"), plain(key)),
            None => format!("message {}", part("messageName")),
        },
        Some("TIMER") => format!("the time {}", part("dueDate")),
        Some("USER_TASK") => format!("user task {}", part("taskKey")),
        Some("SIGNAL") => format!("signal {}", part("signalName")),
        Some("CONDITION") => format!("the condition {}", part("expression")),
        Some(other) => format!("{} {details}", other.to_lowercase()),
        None => details.to_string(),
    }
}

fn task(task: &Value) -> String {
    let key = text(task, "userTaskKey").unwrap_or_default();
    match text(task, "assignee") {
        Some(assignee) => format!("user task {key}, which {} is to do", plain(assignee)),
        None => format!("user task {key}, which nobody has taken"),
    }
}

/// An incident and what to do about it.
pub(super) fn with_advice(incident: &Value) -> Value {
    let mut told = incident.clone();
    told["advice"] = json!(advice(incident));
    told
}

pub(super) fn incident_lines(incident: &Value, indentation: usize) -> [String; 2] {
    let part = |name: &str| plain(text(incident, name).unwrap_or_default());
    let first = format!(
        "{:indentation$}incident {} at {} since {}: {}",
        "",
        part("incidentKey"),
        part("elementId"),
        part("creationTime"),
        part("errorMessage")
    );
    [first, format!("{:indentation$}  {}", "", advice(incident))]
}
