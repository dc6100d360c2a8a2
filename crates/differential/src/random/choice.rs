//! Chooses the next step by what is there on the reference's side.

use std::collections::{BTreeMap, BTreeSet};

use crate::step::{Choice, CreateOptions, Modification, Step, UserTaskVerb};
use crate::tracker::Tracker;
use chance::Chance;

const INSTANCES_MAX: usize = 3;
/// Steps of the clock, which are multiples of what the models wait for, so that nothing hangs on a millisecond.
const CLOCK_STEP_MILLISECONDS: i64 = 10_000;
const MINUTE_MILLISECONDS: i64 = 60_000;
/// Longer than a run takes.
const JOB_TIMEOUT_NEVER_MILLISECONDS: i64 = 24 * 60 * MINUTE_MILLISECONDS;

/// Chooses steps for one run.
pub(super) struct Chooser<'a> {
    pub(super) random: &'a mut Chance,
    pub(super) now: i64,
    /// Elements that modifications may begin, by process.
    pub(super) targets: BTreeMap<String, Vec<String>>,
    /// What can be chosen in ad-hoc sub-processes.
    pub(super) choices: BTreeMap<String, Vec<String>>,
    /// User tasks whose changes wait for listeners.
    pub(super) with_listeners: BTreeSet<String>,
}

impl Chooser<'_> {
    /// A step that makes sense most of the time.
    pub(super) fn next(&mut self, tracker: &Tracker) -> Step {
        let open_jobs = tracker.jobs.iter().filter(|job| job.is_open() && tracker.elements[job.element].is_open());
        let jobs: Vec<usize> = open_jobs.map(|job| job.element).collect();
        let incidents: Vec<usize> =
            (0..tracker.incidents.len()).filter(|index| tracker.incidents[*index].is_open).collect();
        let open_instances = tracker.instances.iter().filter(|instance| instance.is_open).count();
        let waits = !tracker.subscriptions.is_empty() || !tracker.start_subscriptions.is_empty();
        // The reference keeps the timers of what waits for an incident or a listener before it completes, and refuses them
        // until then.
        let is_stuck = tracker.elements.iter().any(|element| element.state == "ELEMENT_COMPLETING");
        let tasks: Vec<usize> = tracker.user_tasks.iter().map(|(_, element)| *element).collect();
        let tasks: Vec<usize> = tasks.into_iter().filter(|element| tracker.elements[*element].is_open()).collect();
        let ad_hoc: Vec<usize> = (0..tracker.elements.len()).filter(|index| is_ad_hoc(tracker, *index)).collect();
        let may_create = tracker.instances.len() < INSTANCES_MAX || open_instances == 0;
        let kinds = [
            (if may_create { 3 } else { 0 }, "create"),
            (if jobs.is_empty() { 0 } else { 12 }, "job"),
            (3, "activate"),
            (if tasks.is_empty() { 0 } else { 9 }, "user-task"),
            (if ad_hoc.is_empty() { 0 } else { 4 }, "choose"),
            (if tracker.signals.is_empty() { 0 } else { 4 }, "broadcast"),
            (if incidents.is_empty() { 0 } else { 8 }, "incident"),
            (if waits { 6 } else { 1 }, "publish"),
            (
                if is_stuck {
                    0
                } else if tracker.timers.is_empty() {
                    1
                } else {
                    4
                },
                "time",
            ),
            (if tracker.elements.is_empty() { 0 } else { 1 }, "set"),
            (usize::from(open_instances > 0 && self.random.percent(30)), "cancel"),
            (if self.modifiable(tracker).is_empty() { 0 } else { 2 }, "modify"),
        ];
        match self.random.weighted(&kinds).copied().unwrap_or("activate") {
            "create" => self.create(),
            "job" => self.job(tracker, &jobs),
            "user-task" => self.user_task(tracker, &tasks),
            "choose" => {
                let element = *self.random.choose(&ad_hoc);
                Step::Choose { ad_hoc: tracker.name(element), choice: self.choice(&tracker.elements[element].id) }
            }
            "broadcast" => {
                let (_, signal) = self.random.choose(&tracker.signals).clone();
                Step::Broadcast { signal, variables: self.result() }
            }
            "incident" => self.incident(tracker, &incidents),
            "publish" => self.publish(tracker),
            "time" => self.time(tracker),
            "set" => self.set(tracker),
            "cancel" => self.cancel(tracker),
            "modify" => self.modify(tracker),
            _ => {
                let job_type = self.random.choose(&["a", "b"]).to_string();
                let count = 1 + self.random.index(3) as i32;
                // Different threads of the reference look for jobs and timers that are due, in any order.
                let timeout = if tracker.timers.is_empty() { 40_000 } else { JOB_TIMEOUT_NEVER_MILLISECONDS };
                Step::Activate { job_type, count, timeout, fetch: Vec::new() }
            }
        }
    }

    /// What ends the run: everything that runs is cancelled.
    pub(super) fn cleanup(tracker: &Tracker) -> Vec<Step> {
        let open = tracker.instances.iter().filter(|instance| instance.is_open && !instance.is_called);
        open.map(|instance| Step::Cancel { instance: instance.label.clone() }).collect()
    }

    /// What lets cancelled instances end that wait for the listeners of their user tasks.
    pub(super) fn last_listeners(tracker: &Tracker) -> Vec<Step> {
        let open = tracker.jobs.iter().filter(|job| job.is_open() && tracker.elements[job.element].is_open());
        let complete = |job: &crate::tracker::Job| {
            let job = tracker.name(job.element);
            Step::Complete { job, variables: String::new(), result: None }
        };
        open.map(complete).collect()
    }

    fn create(&mut self) -> Step {
        let variables = self.variables(90);
        let result = self.random.percent(20).then(Vec::new);
        Step::Create { process: "main".to_owned(), variables, options: CreateOptions { result, ..Default::default() } }
    }

    /// Variables that the expressions of the models read, each present with this percentage.
    fn variables(&mut self, percent: usize) -> String {
        let choice = self.random.index(4);
        let all = [
            ("choice", choice.to_string()),
            ("key", self.random.choose(&["\"k1\"", "\"k2\"", "7"]).to_string()),
            ("items", self.random.choose(&["[1,2,3]", "[\"a\"]", "[]", "[{\"n\":1},null]"]).to_string()),
            ("more", self.random.choose(&["[1,2]", "5"]).to_string()),
            ("ok", self.random.choose(&["true", "true", "false"]).to_string()),
            ("flag", self.random.choose(&["true", "false"]).to_string()),
            ("jobType", "\"b\"".to_owned()),
            ("delay", "\"PT20S\"".to_owned()),
        ];
        let mut kept = Vec::new();
        for (name, value) in all {
            if self.random.percent(percent) {
                kept.push(format!("\"{name}\":{value}"));
            }
        }
        format!("{{{}}}", kept.join(","))
    }

    /// What a worker brings.
    fn result(&mut self) -> String {
        let mut kept = Vec::new();
        let all = [
            ("result", self.random.choose(&["1", "2", "\"r\"", "[1]", "null"]).to_string()),
            ("choice", self.random.index(4).to_string()),
            ("again", self.random.choose(&["true", "false", "false"]).to_string()),
            ("done", self.random.choose(&["true", "false"]).to_string()),
            ("x", self.random.choose(&["\"k1\"", "1"]).to_string()),
        ];
        for (name, value) in all {
            if self.random.percent(35) {
                kept.push(format!("\"{name}\":{value}"));
            }
        }
        if kept.is_empty() && self.random.percent(50) { String::new() } else { format!("{{{}}}", kept.join(",")) }
    }

    fn user_task(&mut self, tracker: &Tracker, tasks: &[usize]) -> Step {
        let task = tracker.name(*self.random.choose(tasks));
        let person = self.random.copy_of(&["ada", "ben", ""]);
        let (verb, attributes) = match self.random.index(10) {
            0 => (UserTaskVerb::Assign, format!("{{\"assignee\":\"{person}\"}}")),
            1 => (UserTaskVerb::Claim, format!("{{\"assignee\":\"{person}\"}}")),
            2 => (UserTaskVerb::Update, "{\"priority\":60,\"candidateUsersList\":[\"ben\"]}".to_owned()),
            _ => match self.result() {
                variables if variables.is_empty() => (UserTaskVerb::Complete, "{}".to_owned()),
                variables => (UserTaskVerb::Complete, format!("{{\"variables\":{variables}}}")),
            },
        };
        Step::UserTask { verb, task, attributes }
    }

    fn choice(&mut self, ad_hoc: &str) -> Choice {
        let known = self.choices.get(ad_hoc).cloned().unwrap_or_default();
        let mut choice = Choice { cancels: self.random.percent(30), ..Choice::default() };
        for _ in 0..1 + self.random.index(2) {
            let element = if known.is_empty() || self.random.percent(5) {
                "nothing".to_owned()
            } else {
                self.random.choose(&known).clone()
            };
            let variables = if self.random.percent(30) { self.result() } else { String::new() };
            choice.elements.push((element, variables));
        }
        choice
    }

    /// The worker of an ad-hoc sub-process says what is next.
    fn decide(&mut self, tracker: &Tracker, element: usize) -> Step {
        let is_fulfilled = self.random.percent(40);
        let mut choice = self.choice(&tracker.elements[element].id);
        if is_fulfilled && self.random.percent(60) {
            choice.elements.clear();
        }
        Step::Decide { job: tracker.name(element), variables: self.result(), is_fulfilled, choice }
    }

    /// What the worker of a task listener says: mostly that the change may happen, as it is or corrected.
    fn listen(&mut self, job: String) -> Step {
        let corrections = [
            "{\"assignee\":\"ben\"}",
            "{\"assignee\":\"\"}",
            "{\"priority\":7,\"candidateUsersList\":[\"ada\"]}",
            "{\"dueDate\":\"2031-01-01T00:00:00Z\",\"candidateGroupsList\":[\"g\"]}",
            "{\"followUpDate\":\"\"}",
        ];
        let result = match self.random.index(10) {
            0..4 => None,
            4..6 => Some("{\"denied\":true,\"deniedReason\":\"no\"}".to_owned()),
            6 => Some("{\"denied\":false}".to_owned()),
            _ => Some(format!("{{\"corrections\":{}}}", self.random.copy_of(&corrections))),
        };
        let variables = if result.is_none() && self.random.percent(10) { self.result() } else { String::new() };
        Step::Complete { job, variables, result }
    }

    fn job(&mut self, tracker: &Tracker, jobs: &[usize]) -> Step {
        let element = *self.random.choose(jobs);
        let job = tracker.name(element);
        let mut of_element = tracker.jobs.iter().filter(|job| job.element == element && job.is_open());
        let kind = of_element.next().map(|job| job.kind.as_str()).unwrap_or_default();
        if kind == "TASK_LISTENER" && self.random.percent(75) {
            return self.listen(job);
        }
        if kind == "AD_HOC_SUB_PROCESS" && self.random.percent(80) {
            return self.decide(tracker, element);
        }
        let element_type = tracker.elements[element].element_type.as_str();
        // The reference forgets what a listener of a parallel gateway brings.
        let variables = if element_type == "PARALLEL_GATEWAY" { String::new() } else { self.result() };
        // The reference fails internally on errors that are thrown from the jobs of throw and end events.
        let is_event = matches!(element_type, "END_EVENT" | "INTERMEDIATE_THROW_EVENT");
        let throws = !is_event || kind == "EXECUTION_LISTENER";
        match self.random.index(if throws { 102 } else { 87 }) {
            0..70 => Step::Complete { job, variables, result: None },
            70..83 => {
                let retries = self.random.index(3) as i32;
                // Different threads of the reference look for jobs and timers that are due, in any order.
                let may_wait = self.random.percent(25) && tracker.timers.is_empty();
                let backoff = if may_wait { CLOCK_STEP_MILLISECONDS } else { 0 };
                let message = if self.random.percent(50) { "broken".to_owned() } else { String::new() };
                Step::Fail { job, retries, variables, backoff, message }
            }
            83..86 => Step::Retries { job, retries: self.random.index(3) as i32 },
            86 => Step::Timeout { job, timeout: 3 * CLOCK_STEP_MILLISECONDS },
            _ => {
                let code = self.random.choose(&["E1", "E2", "E3"]).to_string();
                Step::Throw { job, code, variables }
            }
        }
    }

    /// Repairs first, most of the time.
    fn incident(&mut self, tracker: &Tracker, incidents: &[usize]) -> Step {
        let incident = &tracker.incidents[*self.random.choose(incidents)];
        let element = tracker.name(incident.element);
        let job = tracker.jobs.iter().find(|job| job.key == incident.job_key);
        if job.is_some_and(|job| job.retries < 1) && self.random.percent(70) {
            return Step::Retries { job: element, retries: 1 };
        }
        if job.is_none() && self.random.percent(50) {
            let instance = &tracker.instances[tracker.elements[incident.element].instance];
            let scope = format!("{}/{}", instance.label, instance.process);
            return Step::Set { scope, variables: self.variables(100), local: false, later: false };
        }
        Step::Resolve { element }
    }

    fn publish(&mut self, tracker: &Tracker) -> Step {
        let all: Vec<_> = tracker.subscriptions.iter().chain(&tracker.start_subscriptions).collect();
        let (name, key) = match self.random.percent(80) && !all.is_empty() {
            true => {
                let subscription = self.random.choose(&all);
                (subscription.name.clone(), subscription.correlation_key.clone())
            }
            false => (
                self.random.choose(&["m1", "m2", "m3"]).to_string(),
                self.random.choose(&["k1", "k2", "7", ""]).to_string(),
            ),
        };
        let time_to_live = if self.random.percent(40) { 60 * MINUTE_MILLISECONDS } else { 0 };
        let id = if self.random.percent(15) { "id1".to_owned() } else { String::new() };
        Step::Publish { name, key, time_to_live, variables: self.result(), id }
    }

    fn time(&mut self, tracker: &Tracker) -> Step {
        let next = tracker.timers.iter().map(|(_, due)| due - self.now).filter(|wait| *wait > 0).min();
        let some = CLOCK_STEP_MILLISECONDS * (1 + self.random.index(3) as i64);
        let milliseconds = next.filter(|_| self.random.percent(60)).unwrap_or(some);
        // A run stays on its day, so that durations and dates cannot be far away from each other.
        Step::Time { milliseconds: milliseconds.min(60 * MINUTE_MILLISECONDS) }
    }

    fn set(&mut self, tracker: &Tracker) -> Step {
        let open: Vec<usize> = (0..tracker.elements.len()).filter(|index| tracker.elements[*index].is_open()).collect();
        let from = if open.is_empty() { (0..tracker.elements.len()).collect() } else { open };
        let scope = *self.random.choose(&from);
        let later = self.with_listeners.contains(&tracker.elements[scope].id);
        let (variables, local) = (self.result_object(), self.random.percent(50));
        Step::Set { scope: tracker.name(scope), variables, local, later }
    }

    fn result_object(&mut self) -> String {
        let result = self.result();
        if result.is_empty() { "{}".to_owned() } else { result }
    }

    /// Indexes of the instances that may be modified. Where a scope has not begun or cannot complete because of an
    /// incident or a listener, the reference accepts what should begin in it and then forgets it.
    fn modifiable(&self, tracker: &Tracker) -> Vec<usize> {
        let scopes = ["PROCESS", "SUB_PROCESS", "AD_HOC_SUB_PROCESS", "EVENT_SUB_PROCESS", "MULTI_INSTANCE_BODY"];
        let waits = |index: usize| {
            let element = &tracker.elements[index];
            let has_incident =
                || tracker.incidents.iter().any(|incident| incident.is_open && incident.element == index);
            matches!(element.state.as_str(), "ELEMENT_ACTIVATING" | "ELEMENT_COMPLETING") || has_incident()
        };
        let is_stuck = |instance: usize| {
            (0..tracker.elements.len()).any(|index| {
                let element = &tracker.elements[index];
                // It also forgets tasks that wait for their canceling listeners when what is around them is ended.
                let is_ending = element.state == "ELEMENT_TERMINATING";
                let is_scope = scopes.contains(&element.element_type.as_str());
                element.instance == instance && (is_ending || is_scope && waits(index))
            })
        };
        let may = |index: &usize| {
            let instance = &tracker.instances[*index];
            instance.is_open && self.targets.contains_key(&instance.process) && !is_stuck(*index)
        };
        (0..tracker.instances.len()).filter(may).collect()
    }

    fn modify(&mut self, tracker: &Tracker) -> Step {
        let modifiable = self.modifiable(tracker);
        let instance = *self.random.choose(&modifiable);
        let all = 0..tracker.elements.len();
        let is_inside =
            |index: &usize| tracker.elements[*index].instance == instance && tracker.elements[*index].is_open();
        let open: Vec<usize> = all.filter(is_inside).collect();
        let is_container =
            |index: &usize| matches!(tracker.elements[*index].element_type.as_str(), "PROCESS" | "SUB_PROCESS");
        let containers: Vec<usize> = open.iter().copied().filter(is_container).collect();
        let mut changes = Vec::new();
        let ended = if open.is_empty() { 0 } else { self.random.index(3) };
        let begun = self.random.index(3).max(usize::from(ended == 0));
        for _ in 0..begun {
            let element = self.random.choose(&self.targets[&tracker.instances[instance].process]).clone();
            let is_chosen = self.random.percent(15) && !containers.is_empty();
            let ancestor = is_chosen.then(|| tracker.name(*self.random.choose(&containers)));
            let variables =
                if self.random.percent(30) { vec![(self.result_object(), String::new())] } else { Vec::new() };
            changes.push(Modification::Activate { element, ancestor, variables });
        }
        // The reference does not notice when what is around a chosen ancestor ends, and lets a called process end by its key.
        let is_called = tracker.instances[instance].is_called;
        let has_ancestor =
            changes.iter().any(|change| matches!(change, Modification::Activate { ancestor: Some(_), .. }));
        let may_end: Vec<usize> =
            open.into_iter().filter(|index| !(has_ancestor || is_called) || !containers.contains(index)).collect();
        for _ in 0..ended.min(may_end.len()) {
            changes.push(Modification::Terminate { element: tracker.name(*self.random.choose(&may_end)) });
        }
        Step::Modify { instance: tracker.instances[instance].label.clone(), changes }
    }

    fn cancel(&mut self, tracker: &Tracker) -> Step {
        let open: Vec<_> = tracker.instances.iter().filter(|instance| instance.is_open).collect();
        let instance = self.random.choose(&open).label.clone();
        Step::Cancel { instance }
    }
}

/// Whether an element is an ad-hoc sub-process that can be told what to do.
fn is_ad_hoc(tracker: &Tracker, index: usize) -> bool {
    let element = &tracker.elements[index];
    element.element_type == "AD_HOC_SUB_PROCESS" && element.state == "ELEMENT_ACTIVATED"
}
