//! `osmia history`.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::describe;
use super::instance::scopes;
use super::question::Question;
use super::rest::{Rest, shown, text};
use super::table::{plain, shortened};
use super::time::{milliseconds, passed};
use crate::client::{ClientError, Outcome};
use crate::output::Output;

/// Of each kind of thing in a process instance, more are not looked at.
const THINGS_MAX: usize = 10_000;
/// Between two looks at what happened.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Key of the process instance.
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    key: i64,
    /// Go on with what happens, until the instance ends; with --json one line for each event
    #[arg(long)]
    watch: bool,
}

/// Something that happened.
struct Event {
    /// As the API writes times, which can be compared as texts.
    time: String,
    /// The order within a millisecond: keys are given in the order of what begins.
    order: (i64, bool, Reverse<i64>),
    /// In words.
    said: String,
    json: Value,
}

impl Question for History {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome {
        let (mut instance, mut told) = (find(self.key, rest)?, HashSet::new());
        let (mut events, mut has_more) = happened(self.key, &instance, rest)?;
        if self.watch {
            loop {
                for event in events.iter().filter(|event| told.insert(event.said.clone() + &event.time)) {
                    output.say(event.line(), || event.json())?;
                }
                if instance["state"] != "ACTIVE" && instance["state"] != "SUSPENDED" {
                    return Ok(());
                }
                sleep(PAUSE);
                instance = find(self.key, rest)?;
                (events, has_more) = happened(self.key, &instance, rest)?;
                if has_more {
                    return Err(ClientError::Question(format!("{} It is not watched any more.", too_much(self.key))));
                }
            }
        }
        let (variables, _) = rest.all("variables", &of(self.key), THINGS_MAX)?;
        let mut lines: Vec<String> = events.iter().map(Event::line).collect();
        lines.extend(variables.iter().map(variable));
        output.say(lines.join("\n"), || {
            let events: Vec<Value> = events.iter().map(Event::json).collect();
            json!({ "processInstance": instance, "events": events, "variables": variables, "hasMore": has_more })
        })?;
        if has_more {
            output.note(too_much(self.key));
        }
        Ok(())
    }
}

impl Event {
    fn line(&self) -> String {
        format!("{}  {}", self.time, plain(&self.said))
    }

    fn json(&self) -> Value {
        let mut json = self.json.clone();
        json["time"] = json!(self.time);
        json
    }
}

fn too_much(key: i64) -> String {
    format!("Process instance {key} has more than {THINGS_MAX} of something, and not all of it is told here.")
}

/// The process instance, or who it is that has the key.
fn find(key: i64, rest: &Rest) -> Outcome<Value> {
    if let Some(instance) = rest.get_if_there(&format!("/v2/process-instances/{key}"))? {
        return Ok(instance);
    }
    let (kind, found) = describe::find(key, rest)?;
    let article = if kind.starts_with(['e', 'i']) { "an" } else { "a" };
    Err(ClientError::Question(match text(&found, "processInstanceKey") {
        Some(instance) => {
            format!(
                "{key} is the key of {article} {kind} in process instance {instance}. Ask for osmia history {instance}."
            )
        }
        None => format!("{key} is the key of {article} {kind}, and only process instances have a history."),
    }))
}

fn of(key: i64) -> Value {
    json!({ "processInstanceKey": key.to_string() })
}

fn number(value: &Value, name: &str) -> i64 {
    text(value, name).and_then(|key| key.parse().ok()).unwrap_or_default()
}

/// What happened in an instance, in order, and whether that is not all.
fn happened(key: i64, instance: &Value, rest: &Rest) -> Outcome<(Vec<Event>, bool)> {
    let mut has_more = false;
    let mut all = |entity: &str, filter: &Value| -> Outcome<Vec<Value>> {
        let (found, more) = rest.all(entity, filter, THINGS_MAX)?;
        has_more |= more;
        Ok(found)
    };
    let elements = all("element-instances", &of(key))?;
    let jobs = all("jobs", &of(key))?;
    let incidents = all("incidents", &of(key))?;
    let tasks = all("user-tasks", &of(key))?;
    let decisions = all("decision-instances", &of(key))?;
    let messages = all("correlated-message-subscriptions", &of(key))?;
    let called = all("process-instances", &json!({ "parentProcessInstanceKey": key.to_string() }))?;
    let scopes = scopes(rest, &elements)?;

    let mut last =
        last_keys(&elements, &scopes, &[(&jobs, "jobKey"), (&incidents, "incidentKey"), (&tasks, "userTaskKey")]);
    let greatest = last.values().copied().max().unwrap_or(key);
    last.insert(key, greatest);
    let mut events = Vec::new();
    let of_instance = format!("process instance {key} of {}", shown(&instance["processDefinitionId"]));
    begin_and_end(&mut events, instance, ("processInstance", "processInstanceKey"), &of_instance, &last);
    for element in &elements {
        let kind = text(element, "type").unwrap_or_default().to_lowercase().replace('_', " ");
        let named = format!("{} ({kind}) {}", shown(&element["elementId"]), shown(&element["elementInstanceKey"]));
        begin_and_end(&mut events, element, ("elementInstance", "elementInstanceKey"), &named, &last);
    }
    for child in &called {
        let named = format!(
            "called process instance {} of {}",
            shown(&child["processInstanceKey"]),
            shown(&child["processDefinitionId"])
        );
        begin_and_end(&mut events, child, ("calledProcessInstance", "processInstanceKey"), &named, &last);
    }
    jobs.iter().for_each(|job| job_events(&mut events, job));
    incidents.iter().for_each(|incident| incident_event(&mut events, incident));
    tasks.iter().for_each(|task| task_events(&mut events, task));
    for decision in &decisions {
        let said = format!(
            "decision {} is evaluated: {}",
            shown(&decision["decisionDefinitionId"]),
            shown(&decision["state"])
        );
        let order = (number(decision, "decisionEvaluationKey"), false);
        tell(&mut events, decision, ("evaluationDate", "decisionEvaluated"), order, said);
    }
    for message in &messages {
        let said = format!("message {} reaches {}", shown(&message["messageName"]), shown(&message["elementId"]));
        let order = (number(message, "elementInstanceKey"), true);
        tell(&mut events, message, ("correlationTime", "messageCorrelated"), order, said);
    }
    events.sort_by(|a, b| (&a.time, &a.order).cmp(&(&b.time, &b.order)));
    Ok((events, has_more))
}

/// The greatest key of what began in each element instance: after that it ended, if it did.
fn last_keys(
    elements: &[Value],
    scopes: &HashMap<String, String>,
    others: &[(&Vec<Value>, &str)],
) -> HashMap<i64, i64> {
    let mut last: HashMap<i64, i64> = HashMap::new();
    for (values, name) in others {
        for value in *values {
            let element = last.entry(number(value, "elementInstanceKey")).or_default();
            *element = number(value, name).max(*element);
        }
    }
    // Inner ones have greater keys.
    let mut by_key: Vec<i64> = elements.iter().map(|element| number(element, "elementInstanceKey")).collect();
    by_key.sort_unstable();
    for key in by_key.into_iter().rev() {
        let own = *last.entry(key).and_modify(|last| *last = key.max(*last)).or_insert(key);
        if let Some(scope) = scopes.get(&key.to_string()).and_then(|scope| scope.parse().ok()) {
            let outer: &mut i64 = last.entry(scope).or_default();
            *outer = own.max(*outer);
        }
    }
    last
}

fn tell(events: &mut Vec<Event>, value: &Value, (field, what): (&str, &str), order: (i64, bool), said: String) {
    let Some(time) = text(value, field) else { return };
    let order = (order.0, order.1, Reverse(order.0));
    events.push(Event { time: time.to_owned(), order, said, json: json!({ "event": what, "of": value }) });
}

/// The begin and the end of what has both.
fn begin_and_end(
    events: &mut Vec<Event>,
    value: &Value,
    (kind, key): (&str, &str),
    named: &str,
    last: &HashMap<i64, i64>,
) {
    let key = number(value, key);
    let Some(start) = text(value, "startDate") else { return };
    tell(events, value, ("startDate", &format!("{kind}Started")), (key, false), format!("{named} begins"));
    if let Some(end) = text(value, "endDate") {
        let state = text(value, "state").unwrap_or_default();
        let said = format!("{named} is {} after {}", state.to_lowercase(), passed(start, end));
        let mut json = json!({ "event": format!("{kind}Ended"), "of": value });
        json["durationMilliseconds"] = json!(milliseconds(start, end));
        let order = (last.get(&key).copied().unwrap_or(key), true, Reverse(key));
        events.push(Event { time: end.to_owned(), order, said, json });
    }
}

fn job_events(events: &mut Vec<Event>, job: &Value) {
    let key = number(job, "jobKey");
    let named = format!("job {key} of type {} for {}", shown(&job["type"]), shown(&job["elementId"]));
    tell(events, job, ("creationTime", "jobCreated"), (key, false), format!("{named} is created"));
    let state = text(job, "state").unwrap_or_default();
    let by = match text(job, "worker").filter(|worker| !worker.is_empty()) {
        Some(worker) => format!(" by {worker}"),
        None => String::new(),
    };
    let why = match text(job, "errorMessage").filter(|message| !message.is_empty()) {
        Some(message) => format!(": {}", shortened(message)),
        None => String::new(),
    };
    match state {
        "CREATED" => {}
        _ if job["endTime"].is_string() => {
            let said = format!("{named} is {}{by}{why}", state.to_lowercase().replace('_', " "));
            tell(events, job, ("endTime", "jobEnded"), (key, true), said);
        }
        _ => {
            let retries = &job["retries"];
            let said =
                format!("{named} is {}{by}, with {retries} retries left{why}", state.to_lowercase().replace('_', " "));
            tell(events, job, ("lastUpdateTime", "jobChanged"), (key, true), said);
        }
    }
}

fn incident_event(events: &mut Vec<Event>, incident: &Value) {
    let key = number(incident, "incidentKey");
    let said = format!(
        "incident {key} at {}, which is {} now: {}",
        shown(&incident["elementId"]),
        shown(&incident["state"]).to_lowercase(),
        shown(&incident["errorMessage"])
    );
    tell(events, incident, ("creationTime", "incidentCreated"), (key, false), said);
}

fn task_events(events: &mut Vec<Event>, task: &Value) {
    let key = number(task, "userTaskKey");
    let named = format!("user task {key} for {}", shown(&task["elementId"]));
    tell(events, task, ("creationDate", "userTaskCreated"), (key, false), format!("{named} is created"));
    let by = match text(task, "assignee") {
        Some(assignee) => format!(", assigned to {assignee}"),
        None => String::new(),
    };
    let state = shown(&task["state"]).to_lowercase();
    tell(events, task, ("completionDate", "userTaskEnded"), (key, true), format!("{named} is {state}{by}"));
}

/// Of variables only the last values are known, without a time.
fn variable(variable: &Value) -> String {
    let part = |name: &str| shown(&variable[name]);
    plain(&format!("variable {} of {} is {}", part("name"), part("scopeKey"), shortened(&part("value"))))
}
