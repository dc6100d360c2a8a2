//! Tells what happened in one step, as lines that are equal when two engines behave alike.
//!
//! For every process instance come its element transitions in order. What else belongs to an element instance (its job,
//! variables, timers, incidents and so on) is listed below the last transition of that element instance, or before all
//! transitions when there was none in this step: its order in the life of the element instance is told, its order among the
//! records of other elements is not.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use crate::START_MILLISECONDS;
use crate::tracker::{Record, Tracker};

/// What a line belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// An element instance: the index of the process instance and the label.
    Element(usize, String),
    /// A process instance as a whole.
    Instance(usize),
    /// Something outside of instances.
    Other(String),
}

/// The lines of one instance.
#[derive(Default)]
struct Story {
    before: BTreeMap<Owner, Vec<String>>,
    transitions: Vec<(Owner, Vec<String>)>,
    /// What another partition may do at any time.
    beside: BTreeMap<String, Vec<String>>,
}

/// The records of a step, which the tracker has observed already, as lines.
pub fn lines(tracker: &Tracker, records: &[Value]) -> Vec<String> {
    let mut stories: BTreeMap<usize, Story> = BTreeMap::new();
    let mut others: Vec<(String, Vec<String>)> = Vec::new();
    let mut resolved_job = 0;
    for record in records.iter().map(Record).filter(|record| record.is_event()) {
        let before = std::mem::take(&mut resolved_job);
        if record.value_type() == "INCIDENT" && record.intent() == "RESOLVED" {
            resolved_job = record.number("jobKey");
        }
        // The reference has no record of the job that the resolution of its incident makes available.
        if before == record.key() && record.intent() == "RECURRED_AFTER_BACKOFF" {
            continue;
        }
        let Some(what) = describe(record) else { continue };
        let what = if record.value_type() == "JOB" { tracker.with_resource_names(&what) } else { what };
        match owner(tracker, record) {
            Owner::Other(name) => {
                let line = format!("{name}: {what}");
                match others.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, lines)) => lines.push(line),
                    None => others.push((name, vec![line])),
                }
            }
            Owner::Instance(instance) => {
                let line = format!("{}: {what}", tracker.instances[instance].label);
                stories.entry(instance).or_default().before.entry(Owner::Instance(instance)).or_default().push(line);
            }
            Owner::Element(instance, label) => {
                let line = format!("{} {label}: {what}", tracker.instances[instance].label);
                stories.entry(instance).or_default().tell(record, Owner::Element(instance, label), line);
            }
        }
    }
    let mut lines: Vec<String> = stories.into_values().flat_map(Story::into_lines).collect();
    sort_variables(&mut lines);
    others.sort();
    lines.extend(others.into_iter().flat_map(|(_, lines)| lines));
    lines
}

/// Variables that come together come in no order: the reference takes them from a hash map.
fn sort_variables(lines: &mut [String]) {
    let place = |line: &str| {
        let (owner, rest) = line.split_once(": VARIABLE ")?;
        let (_, assignment) = rest.split_once(' ')?;
        let (name, _) = assignment.split_once(" = ")?;
        Some((owner.to_owned(), name.to_owned()))
    };
    let owner = |line: &String| place(line).map(|(owner, _)| owner);
    for together in lines.chunk_by_mut(|left, right| owner(left).is_some() && owner(left) == owner(right)) {
        together.sort_by_key(|line| place(line));
    }
}

impl Story {
    fn tell(&mut self, record: Record<'_>, owner: Owner, line: String) {
        match record.value_type() {
            "PROCESS_INSTANCE" => self.transitions.push((owner, vec![line])),
            "MESSAGE_SUBSCRIPTION" => {
                let place = line.split(": ").next().unwrap_or_default().to_owned() + record.text("messageName");
                self.beside.entry(place).or_default().push(line);
            }
            _ => match self.transitions.iter_mut().rev().find(|(known, _)| *known == owner) {
                Some((_, lines)) => lines.push(line),
                None => self.before.entry(owner).or_default().push(line),
            },
        }
    }

    fn into_lines(self) -> impl Iterator<Item = String> {
        let transitions = self.transitions.into_iter().flat_map(|(_, lines)| lines);
        self.before.into_values().flatten().chain(transitions).chain(self.beside.into_values().flatten())
    }
}

fn owner(tracker: &Tracker, record: Record<'_>) -> Owner {
    let field = match record.value_type() {
        "VARIABLE" | "VARIABLE_DOCUMENT" => "scopeKey",
        "PROCESS_INSTANCE" => {
            return match tracker.element(record.key()) {
                Some(element) => Owner::Element(element.instance, element.label.clone()),
                None => of_instance(tracker, record, |instance| {
                    Owner::Element(instance, record.text("elementId").to_owned())
                }),
            };
        }
        "MESSAGE" => {
            let name = tracker.messages.get(&record.key()).map_or("?", String::as_str);
            return Owner::Other(format!("message {name}"));
        }
        "PROCESS" => return Owner::Other(format!("process {}", record.text("bpmnProcessId"))),
        "DECISION" => return Owner::Other(format!("decision {}", record.text("decisionId"))),
        "DECISION_REQUIREMENTS" => {
            return Owner::Other(format!("decisions {}", record.text("decisionRequirementsId")));
        }
        "DECISION_EVALUATION" if record.number("elementInstanceKey") < 0 => {
            return Owner::Other(format!("decision {}", record.text("decisionId")));
        }
        "MESSAGE_START_EVENT_SUBSCRIPTION" => {
            return Owner::Other(format!("process {} {}", record.text("bpmnProcessId"), record.text("startEventId")));
        }
        "SIGNAL" => return Owner::Other(format!("signal {}", record.text("signalName"))),
        "SIGNAL_SUBSCRIPTION" if record.number("catchEventInstanceKey") < 0 => {
            return Owner::Other(format!("process {} {}", record.text("bpmnProcessId"), record.text("catchEventId")));
        }
        "SIGNAL_SUBSCRIPTION" => "catchEventInstanceKey",
        "RESOURCE_DELETION" => return Owner::Other("resources".to_owned()),
        "TIMER" if record.number("elementInstanceKey") < 0 => {
            let key = record.number("processDefinitionKey");
            let process = tracker.definitions.iter().find(|definition| definition.key == key);
            let process = process.map_or("?", |definition| definition.id.as_str());
            return Owner::Other(format!("process {process} {}", record.text("targetElementId")));
        }
        "COMPENSATION_SUBSCRIPTION" => "compensableActivityInstanceKey",
        "ESCALATION" | "PROCESS_INSTANCE_MODIFICATION" | "PROCESS_INSTANCE_MIGRATION" | "ERROR" => {
            return of_instance(tracker, record, Owner::Instance);
        }
        _ => "elementInstanceKey",
    };
    match tracker.element(record.number(field)) {
        Some(element) => Owner::Element(element.instance, element.label.clone()),
        None => of_instance(tracker, record, Owner::Instance),
    }
}

fn of_instance(tracker: &Tracker, record: Record<'_>, owner: impl FnOnce(usize) -> Owner) -> Owner {
    match tracker.instance_index(record.number("processInstanceKey")) {
        Some(instance) => owner(instance),
        None => Owner::Other(format!("unknown {}", record.text("elementId"))),
    }
}

/// What a record says; `None` for what is not compared.
fn describe(record: Record<'_>) -> Option<String> {
    let intent = record.intent();
    let value_type = record.value_type();
    let details = match value_type {
        "PROCESS_INSTANCE" => {
            let intent = intent.strip_prefix("ELEMENT_").unwrap_or(intent);
            return Some(match intent {
                "ACTIVATING" | "MIGRATED" => format!("{intent} {}", record.text("bpmnElementType")),
                _ => intent.to_owned(),
            });
        }
        "JOB" => job(record),
        "USER_TASK" => user_task(record),
        "VARIABLE" if intent == "MIGRATED" => record.text("name").to_owned(),
        "VARIABLE" => {
            format!("{} = {}", record.text("name"), canonical_text(record.text("value")))
        }
        "VARIABLE_DOCUMENT" if intent == "UPDATED" => record.text("updateSemantics").to_owned(),
        "INCIDENT" => {
            let about_job = if record.number("jobKey") > 0 { " about its job" } else { "" };
            format!("{}{about_job}", record.text("errorType"))
        }
        "TIMER" => {
            let due = record.number("dueDate") - START_MILLISECONDS;
            format!(
                "{} due {} repetitions {}",
                record.text("targetElementId"),
                moment(due),
                record.number("repetitions")
            )
        }
        // The reference forgets what an expired message said.
        "MESSAGE" if intent == "EXPIRED" => String::new(),
        "MESSAGE" => message(record),
        "MESSAGE_SUBSCRIPTION" | "PROCESS_MESSAGE_SUBSCRIPTION" => {
            let element = record.text("elementId");
            let kind = if record.value("interrupting") == true { "" } else { " non-interrupting" };
            let variables = with_variables(record);
            format!("{} '{}' {element}{kind}{variables}", record.text("messageName"), record.text("correlationKey"))
        }
        "MESSAGE_START_EVENT_SUBSCRIPTION" => {
            format!("{} '{}'{}", record.text("messageName"), record.text("correlationKey"), with_variables(record))
        }
        "SIGNAL" => with_variables(record).trim().to_owned(),
        "SIGNAL_SUBSCRIPTION" => format!("{} {}", record.text("signalName"), record.text("catchEventId")),
        "ESCALATION" => format!(
            "{} from {} to {}",
            record.text("escalationCode"),
            record.text("throwElementId"),
            record.text("catchElementId")
        ),
        "COMPENSATION_SUBSCRIPTION" => compensation_subscription(record),
        "PROCESS" => {
            let tag = record.text("versionTag");
            let (before, after) = if tag.is_empty() { ("", "") } else { (" tag ", tag) };
            format!("version {}{before}{after}", record.number("version"))
        }
        "DECISION" | "DECISION_REQUIREMENTS" | "DECISION_EVALUATION" => decision(record),
        "PROCESS_INSTANCE_MODIFICATION" | "PROCESS_INSTANCE_MIGRATION" | "RESOURCE_DELETION" => String::new(),
        "ERROR" => String::new(),
        _ => return None,
    };
    Some(format!("{value_type} {intent} {details}").trim_end().to_owned())
}

fn message(record: Record<'_>) -> String {
    let id = record.text("messageId");
    format!(
        "ttl {}{}{} {}",
        seconds(record.number("timeToLive")),
        if id.is_empty() { "" } else { " id " },
        id,
        canonical(record.value("variables"))
    )
}

fn decision(record: Record<'_>) -> String {
    match record.value_type() {
        "DECISION" => {
            let tag = record.text("versionTag");
            let (before, after) = if tag.is_empty() { ("", "") } else { (" tag ", tag) };
            format!("'{}' version {}{before}{after}", record.text("decisionName"), record.number("version"))
        }
        "DECISION_REQUIREMENTS" => {
            let (name, namespace) = (record.text("decisionRequirementsName"), record.text("namespace"));
            format!("'{name}' of '{namespace}' version {}", record.number("decisionRequirementsVersion"))
        }
        _ => evaluation(record),
    }
}

/// The evaluation of a decision with all its steps. Each side words its failures differently.
fn evaluation(record: Record<'_>) -> String {
    let items = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut line = format!(
        "{} version {} gives {}",
        record.text("decisionId"),
        record.number("decisionVersion"),
        canonical_text(record.text("decisionOutput"))
    );
    let failed = record.text("failedDecisionId");
    if !failed.is_empty() {
        let _ = write!(line, ", {failed} failed");
    }
    for decision in record.value("evaluatedDecisions").as_array().into_iter().flatten() {
        let _ = write!(
            line,
            "; {} '{}' version {} {}",
            text(decision, "decisionId"),
            text(decision, "decisionName"),
            decision["decisionVersion"],
            text(decision, "decisionType"),
        );
        for input in items(decision, "evaluatedInputs") {
            let (id, name) = (text(&input, "inputId"), text(&input, "inputName"));
            let _ = write!(line, " in {id} '{name}' {}", canonical_text(&text(&input, "inputValue")));
        }
        for rule in items(decision, "matchedRules") {
            let _ = write!(line, " rule {} {}", rule["ruleIndex"], text(&rule, "ruleId"));
            for output in items(&rule, "evaluatedOutputs") {
                let (id, name) = (text(&output, "outputId"), text(&output, "outputName"));
                let _ = write!(line, " out {id} '{name}' {}", canonical_text(&text(&output, "outputValue")));
            }
        }
        let _ = write!(line, " gives {}", canonical_text(&text(decision, "decisionOutput")));
    }
    line
}

fn compensation_subscription(record: Record<'_>) -> String {
    let instance = |name: &str| if record.number(name) > 0 { "" } else { " not begun" };
    format!(
        "of {} handler '{}'{} throw '{}'{}{}",
        record.text("compensableActivityId"),
        record.text("compensationHandlerId"),
        instance("compensationHandlerInstanceKey"),
        record.text("throwEventId"),
        instance("throwEventInstanceKey"),
        with_variables(record)
    )
}

fn job(record: Record<'_>) -> String {
    let mut text = match record.intent() {
        "CREATED" => {
            let headers = headers(record.value("customHeaders"));
            let event_type = record.text("jobListenerEventType");
            let listener = match record.text("jobKind") {
                kind @ ("EXECUTION_LISTENER" | "TASK_LISTENER") => format!(" {kind} {event_type}"),
                _ => String::new(),
            };
            format!("{} retries {} headers {headers}{listener}", record.text("type"), record.number("retries"))
        }
        "FAILED" => {
            let backoff = record.number("retryBackoff");
            let mut text = format!("retries {}", record.number("retries"));
            if backoff > 0 {
                let _ = write!(text, " backoff {}", seconds(backoff));
            }
            text + &quoted(record.text("errorMessage"))
        }
        "RETRIES_UPDATED" => format!("retries {}", record.number("retries")),
        "TIMEOUT_UPDATED" => format!("deadline {}", moment(record.number("deadline") - START_MILLISECONDS)),
        "ERROR_THROWN" => format!("code {}", record.text("errorCode")) + &quoted(record.text("errorMessage")),
        _ => String::new(),
    };
    if matches!(record.intent(), "COMPLETED" | "FAILED" | "ERROR_THROWN") {
        text += &with_variables(record);
    }
    text.trim().to_owned()
}

/// A user task with all that it says as it begins, then with what changes and what comes with that.
fn user_task(record: Record<'_>) -> String {
    let mut text = String::new();
    let lists = ["candidateGroupsList", "candidateUsersList", "changedAttributes"];
    for name in ["assignee", "dueDate", "followUpDate", "externalFormReference", "action", "deniedReason"] {
        text += &named(name, record.text(name));
    }
    for name in lists {
        let list = record.value(name);
        if list.as_array().is_some_and(|items| !items.is_empty()) {
            text += &format!(" {name} {}", canonical(list));
        }
    }
    if record.number("formKey") > 0 {
        text += " with a form";
    }
    let headers = canonical(record.value("customHeaders"));
    format!("{text} priority {} headers {headers}{}", record.number("priority"), with_variables(record))
        .trim()
        .to_owned()
}

/// Headers of a job, without the keys of the user task that it listens to and of a form.
pub fn headers(headers: &Value) -> String {
    let mut headers = headers.clone();
    if let Some(headers) = headers.as_object_mut() {
        headers.remove("io.camunda.zeebe:userTaskKey");
        if let Some(form) = headers.get_mut("io.camunda.zeebe:formKey")
            && form.as_str().is_some_and(|key| key.parse::<i64>().is_ok())
        {
            *form = "a form".into();
        }
    }
    canonical(&headers)
}

fn named(name: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {name} '{text}'") }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" '{text}'") }
}

fn with_variables(record: Record<'_>) -> String {
    match record.value("variables") {
        Value::Object(variables) if !variables.is_empty() => format!(" {}", canonical(record.value("variables"))),
        _ => String::new(),
    }
}

/// A moment after the start, without the milliseconds that each step of the clock adds.
pub fn moment(milliseconds: i64) -> String {
    format!("{}s", milliseconds.div_euclid(1_000))
}

/// Milliseconds as seconds, with fractions where there are any.
pub fn seconds(milliseconds: i64) -> String {
    if milliseconds % 1_000 == 0 { format!("{}s", milliseconds / 1_000) } else { format!("{milliseconds}ms") }
}

/// A JSON text with its names in order and its numbers in one form.
pub fn canonical_text(text: &str) -> String {
    match serde_json::from_str(text) {
        Ok(value) => canonical(&value),
        Err(_) => text.to_owned(),
    }
}

/// A JSON value with its names in order and its numbers in one form.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let entries: Vec<String> = sorted
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(items) => {
            // What can be chosen in an ad-hoc sub-process, the reference lists in no order (docs/conformance.md).
            let are_choices = items.iter().all(|item| item.get("elementId").is_some());
            let mut items: Vec<String> = items.iter().map(canonical).collect();
            if are_choices {
                items.sort();
            }
            format!("[{}]", items.join(","))
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.as_i64().is_none() && float.fract() == 0.0 && float.abs() < 1e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_form() {
        assert_eq!(canonical_text(r#"{"b": 1.0, "a": [1.50, null, "x"]}"#), r#"{"a":[1.5,null,"x"],"b":1}"#);
        assert_eq!(canonical_text("no json"), "no json");
        assert_eq!(seconds(1_500), "1500ms");
        assert_eq!(seconds(-60_000), "-60s");
    }
}
