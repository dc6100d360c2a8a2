//! Accounting: every instance was asked for by a client, a message, a signal, a condition or another instance, once, and is
//! completed, terminated or still active, by the records and by the state alike. An instance that is none of these is lost, and
//! nobody would look for it; one that nobody asked for does its work twice.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Engine, Reply};
use protocol::{
    BpmnElementType, Command, ConditionalEvaluationIntent, ConditionalSubscriptionIntent, IncidentIntent, Key,
    MessageStartEventSubscriptionIntent, PartitionId, Payload, ProcessEventIntent, ProcessInstanceCreationIntent,
    ProcessInstanceIntent, ProcessInstanceValue, ProcessIntent, Record, RecordType, SignalSubscriptionIntent, Text,
    UserTaskIntent,
};

use crate::model::{AdHoc, SIGNAL_START};

/// What the records say, as an operator would see it.
#[derive(Default)]
pub struct Accounting {
    /// Commands to create an instance that clients sent.
    asked: u64,
    /// What is known of each definition.
    totals: BTreeMap<Key, Totals>,
    /// Instances that began, by what they began with.
    by_command: BTreeSet<Key>,
    by_message: BTreeSet<Key>,
    by_signal: BTreeSet<Key>,
    by_condition: BTreeSet<Key>,
    called: BTreeSet<Key>,
    begun: BTreeSet<Key>,
    /// Instances of which somebody was told that they are to be cancelled or are terminated.
    ends: BTreeSet<Key>,
    /// Instances that live, with their caller.
    active: BTreeMap<Key, (Key, Text)>,
    /// The definition of each of them.
    definition_of: BTreeMap<Key, Key>,
    /// Open incidents, with their job if they are of one.
    incidents: BTreeMap<Key, (Key, Key)>,
    /// User tasks that are not done.
    user_tasks: BTreeSet<Key>,
    /// Waits of element instances for signals.
    signal_subscriptions: BTreeSet<Key>,
    /// Waits of element instances for conditions that go on or interrupt, with their scopes.
    conditions: BTreeMap<Key, Key>,
    /// Element instances that live, but for the instances of processes.
    elements: BTreeMap<Key, Element>,
    /// The ids that elements of each process ever had.
    element_ids: BTreeMap<Text, BTreeSet<Text>>,
    /// Definitions that were ever deployed, with the ids of their processes.
    definitions: BTreeMap<Key, Text>,
}

/// The instances of one definition.
#[derive(Default)]
struct Totals {
    created: u64,
    completed: u64,
    terminated: u64,
}

/// An element instance that lives.
pub struct Element {
    /// Its process instance.
    pub instance: Key,
    /// The id in the model.
    pub id: Text,
}

impl Accounting {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::ProcessInstance(intent, value) => {
                let is_process = value.bpmn_element_type == BpmnElementType::Process;
                if is_process {
                    self.instance(*intent, record.key, value);
                } else {
                    self.element(*intent, record.key, value);
                }
            }
            Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, value) => {
                let is_new = self.by_command.insert(value.process_instance_key);
                assert!(is_new, "the instance {} was created twice", value.process_instance_key);
            }
            Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Correlated, value) => {
                let is_new = self.by_message.insert(value.process_instance_key);
                assert!(is_new, "the instance {} was started twice by messages", value.process_instance_key);
            }
            Payload::ProcessEvent(ProcessEventIntent::Triggering, value)
                if *value.target_element_id == *SIGNAL_START =>
            {
                let is_new = self.by_signal.insert(value.process_instance_key);
                assert!(is_new, "the instance {} was started twice by signals", value.process_instance_key);
            }
            Payload::UserTask(intent, _) => match intent {
                UserTaskIntent::Created => drop(self.user_tasks.insert(record.key)),
                UserTaskIntent::Completed | UserTaskIntent::Canceled => drop(self.user_tasks.remove(&record.key)),
                _ => {}
            },
            Payload::SignalSubscription(intent, value) if value.catch_event_instance_key.is_some() => match intent {
                SignalSubscriptionIntent::Created => drop(self.signal_subscriptions.insert(record.key)),
                SignalSubscriptionIntent::Deleted => drop(self.signal_subscriptions.remove(&record.key)),
                SignalSubscriptionIntent::Migrated => {}
            },
            Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluated, value) => {
                for started in &value.started_process_instances {
                    let key = started.process_instance_key;
                    assert!(self.by_condition.insert(key), "the instance {key} was started twice by conditions");
                }
            }
            Payload::ConditionalSubscription(intent, value) if value.interrupting && value.scope_key.is_some() => {
                match intent {
                    ConditionalSubscriptionIntent::Created => drop(self.conditions.insert(record.key, value.scope_key)),
                    ConditionalSubscriptionIntent::Triggered | ConditionalSubscriptionIntent::Deleted => {
                        self.conditions.remove(&record.key);
                    }
                    _ => {}
                }
            }
            Payload::Process(ProcessIntent::Created, value) => {
                self.definitions.insert(record.key, value.metadata.bpmn_process_id.clone());
            }
            Payload::Incident(IncidentIntent::Created, value) => {
                self.incidents.insert(record.key, (value.process_instance_key, value.job_key));
            }
            Payload::Incident(IncidentIntent::Resolved, _) => {
                self.incidents.remove(&record.key);
            }
            _ => {}
        }
    }

    fn element(&mut self, intent: ProcessInstanceIntent, key: Key, value: &ProcessInstanceValue) {
        match intent {
            ProcessInstanceIntent::ElementActivating => {
                let (instance, id) = (value.process_instance_key, value.element_id.clone());
                self.element_ids.entry(value.bpmn_process_id.clone()).or_default().insert(id.clone());
                self.elements.insert(key, Element { instance, id });
            }
            ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                self.elements.remove(&key);
            }
            _ => {}
        }
    }

    fn instance(&mut self, intent: ProcessInstanceIntent, key: Key, value: &ProcessInstanceValue) {
        let definition = value.process_definition_key;
        match intent {
            ProcessInstanceIntent::ElementActivating => {
                let parent = value.parent_process_instance_key;
                if parent != Key::NONE {
                    // It may have ended meanwhile; then what it called ends at once.
                    assert!(self.begun.contains(&parent), "{key} is called by {parent}, which never began");
                    self.called.insert(key);
                }
                self.begun.insert(key);
                self.totals.entry(definition).or_default().created += 1;
                self.active.insert(key, (parent, value.bpmn_process_id.clone()));
                self.definition_of.insert(key, definition);
            }
            ProcessInstanceIntent::ElementTerminating => drop(self.ends.insert(key)),
            ProcessInstanceIntent::ElementMigrated => {
                // It counts for the definition that it goes on with.
                if let Some(before) = self.definition_of.insert(key, definition) {
                    self.totals.entry(before).or_default().created -= 1;
                    self.totals.entry(definition).or_default().created += 1;
                }
            }
            ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                assert!(self.active.remove(&key).is_some(), "the instance {key} ends, and is not there");
                let of = self.definition_of.remove(&key);
                assert!(of == Some(definition), "the instance {key} ends as one of {definition}, and was of {of:?}");
                let totals = self.totals.entry(definition).or_default();
                match intent {
                    ProcessInstanceIntent::ElementCompleted => totals.completed += 1,
                    _ => totals.terminated += 1,
                }
            }
            _ => {}
        }
    }

    /// A client sends a command.
    pub fn asked(&mut self, command: &Command) {
        self.asked += u64::from(matches!(command.payload, Payload::ProcessInstanceCreation(..)));
    }

    /// A client is answered: what it is told is in the records.
    pub fn answered(&self, reply: &Reply) {
        if reply.rejection.is_some() {
            return;
        }
        match &reply.payload {
            Payload::ProcessInstanceCreation(_, value) => {
                let key = value.process_instance_key;
                assert!(self.by_command.contains(&key), "a client was told of the instance {key}, which never began");
            }
            Payload::ProcessInstance(ProcessInstanceIntent::Cancel | ProcessInstanceIntent::ElementTerminating, _) => {
                let key = reply.key;
                assert!(self.ends.contains(&key), "a client was told that {key} is cancelled, and it never ended");
            }
            _ => {}
        }
    }

    /// How many instances there were.
    pub fn created(&self) -> u64 {
        self.begun.len() as u64
    }

    /// What the records say is there is what the state says, after a batch.
    pub fn check_counts(&self, partition: PartitionId, engine: &Engine) {
        let incidents = self.incidents.keys().filter(|key| key.partition() == Some(partition)).count() as u64;
        let counted = engine.statistics().incidents;
        assert!(
            counted == incidents,
            "{partition} counts {counted} incidents in its state and {incidents} by its records"
        );
    }

    /// Instances that live and were not called by others.
    pub fn roots(&self) -> impl Iterator<Item = Key> + '_ {
        self.active.iter().filter(|(_, (parent, _))| *parent == Key::NONE).map(|(key, _)| *key)
    }

    /// The process of an instance that lives.
    pub fn process_of(&self, instance: Key) -> Option<&Text> {
        self.active.get(&instance).map(|(_, process)| process)
    }

    /// What lives in an instance.
    pub fn elements_in(&self, instance: Key) -> Vec<(Key, &Element)> {
        self.elements.iter().filter(|(_, element)| element.instance == instance).map(|(key, of)| (*key, of)).collect()
    }

    /// User tasks that are not done.
    pub fn user_tasks(&self) -> impl Iterator<Item = Key> + '_ {
        self.user_tasks.iter().copied()
    }

    /// Whether element instances wait for signals.
    pub fn waits_for_signals(&self) -> bool {
        !self.signal_subscriptions.is_empty()
    }

    /// The scopes of the conditions that element instances wait for, but of those that do not interrupt.
    pub fn waits_for_conditions(&self) -> impl Iterator<Item = Key> + '_ {
        self.conditions.values().copied()
    }

    /// The ad-hoc sub-processes that live, with their ids.
    pub fn ad_hoc_sub_processes(&self) -> impl Iterator<Item = (Key, &Text)> + '_ {
        let all = self.elements.iter().filter(|(_, element)| AdHoc::read(&element.id).is_some());
        all.map(|(key, element)| (*key, &element.id))
    }

    /// The ids of all elements of a process that ever began.
    pub fn element_ids(&self, process: &Text) -> Vec<&Text> {
        self.element_ids.get(process).into_iter().flatten().collect()
    }

    /// The definitions of a process that were ever deployed: an operator may name one that is deleted meanwhile.
    pub fn definitions(&self, process: &str) -> Vec<Key> {
        let of = |(key, id): (&Key, &Text)| (id.as_str() == process).then_some(*key);
        self.definitions.iter().filter_map(of).collect()
    }

    /// How many instances live.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Open incidents with their jobs.
    pub fn incidents(&self) -> impl Iterator<Item = (Key, Key)> + '_ {
        self.incidents.iter().map(|(incident, (_, job))| (*incident, *job))
    }

    /// At the end: by the records nobody is missing, and nobody is there whom nobody asked for.
    pub fn check(&self) {
        for (definition, totals) in &self.totals {
            let active = self.definition_of.values().filter(|of| *of == definition).count() as u64;
            assert!(
                totals.created == totals.completed + totals.terminated + active,
                "of {definition} {} instances were created, {} completed, {} terminated and {active} are active",
                totals.created,
                totals.completed,
                totals.terminated
            );
        }
        let kinds = [&self.by_command, &self.by_message, &self.by_signal, &self.by_condition, &self.called];
        let asked_for: BTreeSet<Key> = kinds.into_iter().flatten().copied().collect();
        let differs: Vec<&Key> = self.begun.symmetric_difference(&asked_for).take(3).collect();
        assert!(differs.is_empty(), "not both asked for and begun: {differs:?}");
        let kinds: usize = kinds.into_iter().map(BTreeSet::len).sum();
        assert!(kinds == asked_for.len(), "{kinds} beginnings of {} instances", asked_for.len());
        let by_command = self.by_command.len() as u64;
        assert!(by_command <= self.asked, "{} commands created {by_command} instances", self.asked);
    }

    /// At the end: the state of a partition counts the same instances of each definition.
    pub fn check_rows(&self, partition: PartitionId, rows: &[String]) {
        let here = self.active.keys().filter(|key| key.partition() == Some(partition)).count();
        let there = rows
            .iter()
            .filter(|row| row.starts_with("element_instances ") && row.contains("bpmn_element_type: Process,"));
        let there = there.count();
        assert!(here == there, "{partition} has {there} instances in its state and {here} by its records");
    }
}
