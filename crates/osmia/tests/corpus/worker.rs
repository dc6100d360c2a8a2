//! A worker for everything: it does all jobs and user tasks that there are, publishes what is waited for, and moves the clock
//! when nothing else happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::plan::{Begin, Plan, Run};
use crate::support::{LIMIT, Server};

/// Where the clock stands at first: 2050-03-07T09:00:00Z, a Monday. The time of a node never goes back.
pub const BEGIN: i64 = 2_530_256_400_000;
/// What the clock is moved by when nothing else happens, one after the other and the last again and again.
const STEPS_IN_MINUTES: [i64; 5] = [1, 30, 6 * 60, 36 * 60, 24 * 60 * 40];
/// How often nothing must be seen until nothing is taken to happen, and how long to wait each time.
const QUIET_LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);

/// One request to the REST API with its answer.
pub fn ask(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    static AGENT: LazyLock<ureq::Agent> = LazyLock::new(|| {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(LIMIT));
        config.build().new_agent()
    });
    let request = AGENT.post(format!("http://{}{path}", server.rest)).header("Content-Type", "application/json");
    let mut answer = request.send(body.to_string()).expect("the node answers");
    let text = answer.body_mut().read_to_string().expect("an answer is text");
    let value = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("an answer is JSON") };
    (answer.status().as_u16(), value)
}

/// Lets the clock stand still at this time.
pub fn pin(server: &Server, time: i64) {
    let (code, answer) = server.http("POST", "/actuator/clock", &json!({"epochMilli": time}).to_string());
    assert_eq!(code, 200, "{answer}");
}

/// Whether two values are the same, however their numbers are written.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| is_same(value, other)))
        }
        _ => one == other,
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

pub struct Worker<'a> {
    server: &'a Server,
    plans: Vec<Plan>,
    /// Plan and run of each instance that was begun by its key.
    begun: BTreeMap<String, (usize, usize)>,
    /// How many jobs of a type were done in an instance.
    done: BTreeMap<(String, String), usize>,
    published: BTreeSet<String>,
    broadcast: BTreeSet<(usize, usize)>,
    time: i64,
    steps: usize,
    problems: Vec<String>,
}

impl<'a> Worker<'a> {
    pub fn new(server: &'a Server) -> Worker<'a> {
        pin(server, BEGIN);
        Worker {
            server,
            plans: Vec::new(),
            begun: BTreeMap::new(),
            done: BTreeMap::new(),
            published: BTreeSet::new(),
            broadcast: BTreeSet::new(),
            time: BEGIN,
            steps: 0,
            problems: Vec::new(),
        }
    }

    /// Drives instances of all plans to their ends, which must be as planned.
    pub fn work(&mut self, plans: Vec<Plan>) {
        self.drive(plans);
        let problems = self.problems();
        assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    }

    /// What was not as planned.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    pub fn drive(&mut self, plans: Vec<Plan>) {
        self.plans = plans;
        self.begin();
        let begin = Instant::now();
        let mut quiet = 0;
        while !self.is_all_ended() {
            assert!(begin.elapsed() < LIMIT, "these do not end: {:?}", self.active());
            let has_moved = [self.do_jobs(), self.do_tasks(), self.publish()].contains(&true);
            quiet = if has_moved { 0 } else { quiet + 1 };
            if self.has_incidents() {
                break;
            }
            if quiet < QUIET_LOOKS {
                // What follows from a time or a message comes by itself. A command that is answered went behind all that the
                // partition had been given before, so this also waits for a slow one.
                if !has_moved {
                    self.tell("/v2/signals/broadcast", &json!({"signalName": "nobody waits for this"}));
                    std::thread::sleep(BETWEEN_LOOKS);
                }
            } else if self.broadcast() {
                quiet = 0;
            } else if !self.move_clock() {
                break;
            }
        }
        self.check_ends();
    }

    fn tell(&self, path: &str, body: &Value) -> Value {
        let (code, answer) = ask(self.server, path, body);
        assert!((200..300).contains(&code), "{path} {body}: {code} {answer}");
        answer
    }

    fn search(&self, what: &str, filter: &Value) -> Vec<Value> {
        let found = self.tell(&format!("/v2/{what}/search"), &json!({"filter": filter, "page": {"limit": 1000}}));
        found["items"].as_array().expect("items").clone()
    }

    fn begin(&mut self) {
        for (index, plan) in self.plans.iter().enumerate() {
            for (number, run) in plan.runs.iter().enumerate() {
                let created = match &run.begin {
                    Begin::Creation => {
                        let body = json!({"processDefinitionId": plan.process, "variables": run.variables});
                        ask(self.server, "/v2/process-instances", &body)
                    }
                    Begin::Message(name) => {
                        let body = json!({"name": name, "correlationKey": "", "variables": run.variables});
                        ask(self.server, "/v2/messages/correlation", &body)
                    }
                    Begin::Signal(name) => {
                        let body = json!({"signalName": name, "variables": run.variables});
                        ask(self.server, "/v2/signals/broadcast", &body)
                    }
                    Begin::Timer => continue,
                };
                if let (200, Some(key)) = (created.0, created.1["processInstanceKey"].as_str()) {
                    self.begun.insert(key.to_owned(), (index, number));
                } else if created.0 != 200 {
                    self.problems.push(format!("{}: {}", plan.file, created.1));
                }
            }
        }
    }

    fn run_of(&self, instance: &str, process: &str) -> Option<&Run> {
        if let Some((plan, run)) = self.begun.get(instance) {
            return Some(&self.plans[*plan].runs[*run]);
        }
        self.plans.iter().find(|plan| plan.process == process).and_then(|plan| plan.runs.first())
    }

    fn active(&self) -> Vec<String> {
        let active = self.search("process-instances", &json!({"state": "ACTIVE"}));
        active.iter().map(|instance| text(instance, "processDefinitionId")).collect()
    }

    fn is_all_ended(&self) -> bool {
        let has_timer_to_come = |plan: &Plan| {
            plan.runs.iter().any(|run| matches!(run.begin, Begin::Timer | Begin::Signal(_)))
                && self.search("process-instances", &json!({"processDefinitionId": plan.process})).is_empty()
        };
        self.active().is_empty() && !self.plans.iter().any(has_timer_to_come)
    }

    fn has_incidents(&mut self) -> bool {
        let incidents = self.search("incidents", &json!({"state": "ACTIVE"}));
        for incident in &incidents {
            self.problems.push(format!(
                "{} at {}: {} {}",
                text(incident, "processDefinitionId"),
                text(incident, "elementId"),
                text(incident, "errorType"),
                text(incident, "errorMessage")
            ));
        }
        !incidents.is_empty()
    }

    fn do_jobs(&mut self) -> bool {
        let waiting = self.search("jobs", &json!({"state": {"$in": ["CREATED", "FAILED"]}}));
        let mut types = BTreeSet::new();
        for job in &waiting {
            let run = self.run_of(&text(job, "processInstanceKey"), &text(job, "processDefinitionId"));
            if run.and_then(|run| run.jobs.get(&text(job, "type"))) != Some(&json!("withhold")) {
                types.insert(text(job, "type"));
            }
        }
        let mut has_moved = false;
        for job_type in types {
            // The clock moves far.
            let body = json!({"type": job_type, "worker": "everything", "timeout": 31_536_000_000_i64,
                "maxJobsToActivate": 1000, "requestTimeout": -1});
            for job in self.tell("/v2/jobs/activation", &body)["jobs"].as_array().expect("jobs") {
                self.do_job(job);
                has_moved = true;
            }
        }
        has_moved
    }

    fn do_job(&mut self, job: &Value) {
        let (instance, job_type) = (text(job, "processInstanceKey"), text(job, "type"));
        let planned = self.run_of(&instance, &text(job, "processDefinitionId"));
        let planned = planned.and_then(|run| run.jobs.get(&job_type)).cloned().unwrap_or(Value::Null);
        let count = self.done.entry((instance, job_type)).or_default();
        let planned = match &planned {
            Value::Array(turns) => turns.get(*count).or(turns.last()).cloned().unwrap_or(Value::Null),
            once => once.clone(),
        };
        *count += 1;
        let path = |action: &str| format!("/v2/jobs/{}/{action}", text(job, "jobKey"));
        if let Some(code) = planned["$error"].as_str() {
            let body = json!({"errorCode": code, "errorMessage": "as planned", "variables": planned["variables"]});
            self.tell(&path("error"), &body);
        } else if let Some(retries) = planned["$retries"].as_i64() {
            self.tell(&path("failure"), &json!({"retries": retries, "errorMessage": "as planned"}));
        } else {
            let variables = if planned["$result"].is_object() { &planned["variables"] } else { &planned };
            let mut body = json!({"variables": variables});
            if planned["$result"].is_object() {
                body["result"] = planned["$result"].clone();
            }
            self.tell(&path("completion"), &body);
        }
    }

    fn do_tasks(&mut self) -> bool {
        let tasks = self.search("user-tasks", &json!({"state": "CREATED"}));
        let mut has_moved = false;
        for task in &tasks {
            let (key, element) = (text(task, "userTaskKey"), text(task, "elementId"));
            let run = self.run_of(&text(task, "processInstanceKey"), &text(task, "processDefinitionId"));
            let variables = run.and_then(|run| run.tasks.get(&element)).cloned().unwrap_or(json!({}));
            if variables == json!("withhold") {
                continue;
            }
            if task["formKey"].is_string() {
                let (code, form) = Server::request(&self.server.rest, "GET", &format!("/v2/user-tasks/{key}/form"), "");
                assert!(code == 200 && form.contains("components"), "{element}: {code} {form}");
            }
            self.tell(&format!("/v2/user-tasks/{key}/completion"), &json!({"variables": variables}));
            has_moved = true;
        }
        has_moved
    }

    fn publish(&mut self) -> bool {
        let mut has_moved = false;
        for subscription in self.search("message-subscriptions", &json!({"messageSubscriptionState": "CREATED"})) {
            let (Some(instance), Some(correlation_key)) =
                (subscription["processInstanceKey"].as_str(), subscription["correlationKey"].as_str())
            else {
                continue;
            };
            let name = text(&subscription, "messageName");
            let run = self.run_of(instance, &text(&subscription, "processDefinitionId"));
            let variables = run.and_then(|run| run.messages.get(&name)).cloned().unwrap_or(json!({}));
            if variables == json!("withhold") || !self.published.insert(text(&subscription, "messageSubscriptionKey")) {
                continue;
            }
            let body = json!({"name": name, "correlationKey": correlation_key, "variables": variables});
            self.tell("/v2/messages/publication", &body);
            has_moved = true;
        }
        has_moved
    }

    /// Broadcasts the next signal of each plan.
    fn broadcast(&mut self) -> bool {
        let mut names = BTreeSet::new();
        for (index, plan) in self.plans.iter().enumerate() {
            let next = (0..plan.signals.len()).find(|number| !self.broadcast.contains(&(index, *number)));
            if let Some(number) = next {
                self.broadcast.insert((index, number));
                names.insert(plan.signals[number].clone());
            }
        }
        names.iter().for_each(|name| drop(self.tell("/v2/signals/broadcast", &json!({"signalName": name}))));
        !names.is_empty()
    }

    /// Moves the clock on, unless it was moved for years already.
    fn move_clock(&mut self) -> bool {
        let step = STEPS_IN_MINUTES[self.steps.min(STEPS_IN_MINUTES.len() - 1)];
        self.steps += 1;
        self.time += step * 60_000;
        pin(self.server, self.time);
        self.steps < 40
    }

    fn check_ends(&mut self) {
        let mut problems = Vec::new();
        for (index, plan) in self.plans.iter().enumerate() {
            let instances = self.search("process-instances", &json!({"processDefinitionId": plan.process}));
            if instances.is_empty() {
                problems.push(format!("{}: no instance", plan.file));
            }
            for instance in &instances {
                let key = text(instance, "processInstanceKey");
                // What an interrupted call activity called ends with it.
                let is_called = instance["parentProcessInstanceKey"].is_string();
                if instance["state"] != "COMPLETED" && !(is_called && instance["state"] == "TERMINATED") {
                    let waiting =
                        self.search("element-instances", &json!({"processInstanceKey": key, "state": "ACTIVE"}));
                    let waiting: Vec<String> = waiting.iter().map(|element| text(element, "elementId")).collect();
                    problems.push(format!("{}: {} at {waiting:?}", plan.file, instance["state"]));
                }
                let run = match self.begun.get(&key) {
                    Some((begun, run)) => (*begun == index).then(|| &plan.runs[*run]),
                    // Called ones have no run of their own.
                    None if is_called => None,
                    None => plan.runs.first(),
                };
                if let Some(run) = run {
                    self.check_end(&format!("{} ({})", plan.file, run.variables), run, &key, &mut problems);
                }
            }
        }
        self.problems.extend(problems);
    }

    fn check_end(&self, place: &str, run: &Run, instance: &str, problems: &mut Vec<String>) {
        if !run.expect.is_empty() {
            let filter = json!({"processInstanceKey": instance, "scopeKey": instance});
            let found: BTreeMap<String, Value> = self
                .search("variables", &filter)
                .iter()
                .map(|variable| {
                    let value = serde_json::from_str(&text(variable, "value")).unwrap_or(Value::Null);
                    (text(variable, "name"), value)
                })
                .collect();
            for (name, expected) in &run.expect {
                let value = found.get(name);
                if !value.is_some_and(|value| is_same(value, expected)) {
                    let value = value.map_or("nothing".to_owned(), Value::to_string);
                    problems.push(format!("{place}: {name} is {value} and not {expected}"));
                }
            }
        }
        if run.completed.is_empty() {
            return;
        }
        let elements = self.search("element-instances", &json!({"processInstanceKey": instance, "state": "COMPLETED"}));
        let completed: BTreeSet<String> = elements.iter().map(|element| text(element, "elementId")).collect();
        for element in &run.completed {
            let is_as_planned =
                element.strip_prefix('!').map_or(completed.contains(element), |element| !completed.contains(element));
            if !is_as_planned {
                problems.push(format!("{place}: {element} in vain, completed were {completed:?}"));
            }
        }
    }
}
