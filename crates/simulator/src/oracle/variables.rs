//! Variables are what clients wrote: every value that a client gave and was told of is there, byte for byte, in the instance that
//! it was given to, and a worker gets with its job what its scopes hold at that time. Otherwise an instance decides by, and a worker
//! acts on, what nobody said.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use engine::Reply;
use protocol::{
    BpmnElementType, Command, JobBatchIntent, JobIntent, JobKind, JobValue, Key, Payload, ProcessInstanceIntent,
    ProcessInstanceValue, Record, RecordType, Text, UserTaskIntent, UserTaskValue, VariableIntent, VariableValue,
};
use rustc_hash::FxHasher;
use serde_json::value::RawValue;

/// Names that only clients write.
const OF_CLIENTS: &[&str] =
    &["key", "choice", "items", "payload", "done", "back", "set", "told", "signalled", "level", "list"];
/// Of these, those whose values begin with the correlation key of the instance that they are for.
const ADDRESSED: &[&str] = &["payload", "told"];

/// A name with a hash of the JSON text.
type Written = (String, u64);

/// What was written, and what there is of it.
#[derive(Default)]
pub struct Variables {
    /// Everything that clients sent.
    sent: BTreeSet<Written>,
    /// What commands that are not answered yet would write.
    asked: BTreeMap<u64, Vec<Written>>,
    /// What was ever recorded in an instance.
    recorded: BTreeSet<(Key, Written)>,
    /// What a worker gave back for an element instance that has not completed.
    given: BTreeMap<Key, Vec<Written>>,
    /// Living element instances with the scope around each and its variables.
    scopes: BTreeMap<Key, Scope>,
    /// Living instances that were called, with their callers.
    callers: BTreeMap<Key, Key>,
    /// The correlation key of each instance that has one.
    owners: BTreeMap<Key, String>,
    /// The same, the other way round.
    owned: BTreeMap<String, Key>,
    /// The process instance of every element instance that ever was.
    instance_of: BTreeMap<Key, Key>,
    /// What comes with the change of a user task that is not done, by its element instance: its listeners see it.
    coming: BTreeMap<Key, Text>,
}

#[derive(Default)]
struct Scope {
    around: Option<Key>,
    values: BTreeMap<Text, Text>,
}

fn written(name: &str, json: &str) -> Written {
    let mut hasher = FxHasher::default();
    hasher.write(json.as_bytes());
    (name.to_owned(), hasher.finish())
}

fn entries(document: &str) -> BTreeMap<String, &RawValue> {
    if document.is_empty() {
        return BTreeMap::new();
    }
    serde_json::from_str(document).unwrap_or_else(|error| panic!("no JSON object: {error}: {document:.200}"))
}

fn all_written(document: &str) -> Vec<Written> {
    entries(document).into_iter().map(|(name, value)| written(&name, value.get())).collect()
}

impl Variables {
    /// A client sends a command.
    pub fn asked(&mut self, number: u64, command: &Command) {
        let document = match &command.payload {
            Payload::ProcessInstanceCreation(_, value) => &value.variables,
            Payload::VariableDocument(_, value) => &value.variables,
            Payload::Message(_, value) => &value.variables,
            Payload::Job(_, value) => &value.variables,
            Payload::UserTask(_, value) => &value.variables,
            Payload::Signal(_, value) => &value.variables,
            Payload::ConditionalEvaluation(_, value) => &value.variables,
            _ => return,
        };
        let all = all_written(document);
        self.sent.extend(all.iter().cloned());
        self.asked.insert(number, all);
    }

    /// A client is answered.
    pub fn answered(&mut self, reply: &Reply) {
        let Some(all) = self.asked.remove(&reply.request.number) else { return };
        if reply.rejection.is_some() {
            return;
        }
        let instance = match &reply.payload {
            Payload::ProcessInstanceCreation(_, value) => value.process_instance_key,
            Payload::ProcessInstanceResult(_, value) => value.process_instance_key,
            Payload::VariableDocument(_, value) => {
                self.instance_of.get(&value.scope_key).copied().unwrap_or(value.scope_key)
            }
            _ => return,
        };
        self.must_have(instance, &all, "a client was told that it has");
    }

    fn must_have(&self, instance: Key, all: &[Written], why: &str) {
        for one in all {
            let is_there = self.recorded.contains(&(instance, one.clone()));
            assert!(is_there, "the instance {instance} never had a value of '{}' that {why}", one.0);
        }
    }

    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::Variable(VariableIntent::Created | VariableIntent::Updated, value) => self.variable(value),
            Payload::ProcessInstance(intent, value) => self.element(*intent, record.key, value),
            Payload::Job(JobIntent::Completed, job) => {
                let given = self.given.entry(job.element_instance_key).or_default();
                given.extend(all_written(&job.variables));
            }
            Payload::UserTask(intent, task) => self.user_task(*intent, task),
            Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                batch.job_keys.iter().zip(&batch.jobs).for_each(|(key, job)| self.activated(*key, job));
            }
            _ => {}
        }
    }

    fn user_task(&mut self, intent: UserTaskIntent, task: &UserTaskValue) {
        let element = task.element_instance_key;
        match intent {
            UserTaskIntent::Completing | UserTaskIntent::Updating => {
                self.coming.insert(element, task.variables.clone());
            }
            UserTaskIntent::Corrected | UserTaskIntent::Migrated => {}
            _ => drop(self.coming.remove(&element)),
        }
        if intent == UserTaskIntent::Completed {
            self.given.entry(element).or_default().extend(all_written(&task.variables));
        }
    }

    fn element(&mut self, intent: ProcessInstanceIntent, key: Key, value: &ProcessInstanceValue) {
        let is_process = value.bpmn_element_type == BpmnElementType::Process;
        match intent {
            ProcessInstanceIntent::ElementActivating => {
                self.scopes.entry(key).or_default().around = Some(value.flow_scope_key);
                self.instance_of.insert(key, value.process_instance_key);
                if is_process && value.parent_process_instance_key != Key::NONE {
                    self.callers.insert(key, value.parent_process_instance_key);
                }
                // A scope may get variables before it is there.
                let early: Vec<(Text, Text)> =
                    self.scopes.get(&key).into_iter().flat_map(|scope| scope.values.clone()).collect();
                early.iter().for_each(|(name, text)| self.belongs(value.process_instance_key, name, text));
            }
            ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                let given = self.given.remove(&key).unwrap_or_default();
                if intent == ProcessInstanceIntent::ElementCompleted {
                    self.must_have(value.process_instance_key, &given, "who worked on it gave back");
                }
                self.scopes.remove(&key);
                self.callers.remove(&key);
            }
            _ => {}
        }
    }

    fn variable(&mut self, value: &VariableValue) {
        let (name, instance) = (value.name.as_str(), value.process_instance_key);
        self.scopes.entry(value.scope_key).or_default().values.insert(value.name.clone(), value.value.clone());
        let one = written(name, &value.value);
        if OF_CLIENTS.contains(&name) {
            assert!(self.sent.contains(&one), "nobody sent the value of '{name}' in {instance}: {:.100}", value.value);
        }
        self.recorded.insert((instance, one));
        if self.scopes.get(&instance).is_some_and(|scope| scope.around.is_some()) {
            self.belongs(instance, name, &value.value);
        }
    }

    /// A value is in the instance that it was sent to, and its key in one instance only.
    fn belongs(&mut self, instance: Key, name: &str, text: &str) {
        if name == "key" && !self.callers.contains_key(&instance) {
            self.owners.insert(instance, text.to_owned());
            let before = self.owned.insert(text.to_owned(), instance).filter(|before| *before != instance);
            assert!(before.is_none(), "the instances {before:?} and {instance} were created by the same command");
        }
        if ADDRESSED.contains(&name)
            && let Some(owner) = self.owner(instance)
        {
            let to = format!("{}:", owner.trim_end_matches('"'));
            assert!(text.starts_with(&to), "'{name}' in {instance} of {owner} is of another: {text:.40}");
        }
    }

    /// Whether what is in a scope can be seen from another, because it is that or lies around it.
    pub fn sees(&self, from: Key, scope: Key) -> bool {
        self.outwards(from).any(|(key, _)| key == scope)
    }

    /// The number that a variable has where it is seen from a scope.
    pub fn visible(&self, from: Key, name: &str) -> Option<i64> {
        let found = self.outwards(from).find_map(|(_, scope)| scope.values.iter().find(|(of, _)| of.as_str() == name));
        found.and_then(|(_, value)| value.parse().ok())
    }

    /// A scope and those around it, the nearest first.
    fn outwards(&self, from: Key) -> impl Iterator<Item = (Key, &Scope)> {
        let first = self.scopes.get_key_value(&from);
        let around = |(_, scope): &(&Key, &Scope)| scope.around.and_then(|around| self.scopes.get_key_value(&around));
        std::iter::successors(first, around).map(|(key, scope)| (*key, scope))
    }

    /// The correlation key of an instance, or of the one that called it first.
    fn owner(&self, mut instance: Key) -> Option<&String> {
        while let Some(caller) = self.callers.get(&instance) {
            instance = *caller;
        }
        self.owners.get(&instance)
    }

    /// A job was given to a worker, who wanted all variables.
    fn activated(&self, key: Key, job: &JobValue) {
        let mut visible: BTreeMap<&str, &str> = BTreeMap::new();
        let mut scope = job.element_instance_key;
        while let Some(here) = self.scopes.get(&scope) {
            for (name, value) in &here.values {
                visible.entry(name.as_str()).or_insert(value.as_str());
            }
            scope = here.around.unwrap_or(Key::NONE);
        }
        let none = Text::default();
        let coming =
            if job.job_kind == JobKind::TaskListener { self.coming.get(&job.element_instance_key) } else { None };
        let coming = entries(coming.unwrap_or(&none));
        visible.extend(coming.iter().map(|(name, value)| (name.as_str(), value.get())));
        let given = entries(&job.variables);
        let differs = visible
            .keys()
            .copied()
            .chain(given.keys().map(String::as_str))
            .find(|name| visible.get(name).copied() != given.get(*name).map(|value| value.get()));
        if let Some(name) = differs {
            let (there, here) = (visible.get(name), given.get(name).map(|value| value.get()));
            panic!("the job {key} came with another '{name}' than its scopes hold: {here:.100?} for {there:.100?}");
        }
    }
}
