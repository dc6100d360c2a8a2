//! From records to rows.
//!
//! A record states complete facts, so a row is made from its newest record without reading the row before. What few records
//! tell, and needs more, is written at once: definitions and elements that no record has named before.

mod audit;
mod condition;
mod decision;
pub(crate) mod form;
mod global_listener;
mod job;
mod message;
pub(crate) mod process_instance;
mod resource;
mod signal;
mod timer;
mod usage;
mod user_task;
mod variable;

use std::collections::HashMap;

use protocol::{
    DecisionIntent, DecisionRequirementsIntent, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessIntent,
    ProcessValue, PurgeIntent, Record, RecordPlace, RecordType, Subject, Text, ValueType,
};

use crate::audited::{Audited, Doing};
use crate::batch::Batch;
use crate::database::{Database, Result};
use crate::dictionary::{Dictionary, names_of};
use crate::enumerations::{DEFINITION_STATES, number_of};
use crate::rebuild;
use crate::schema::tables;

/// A transaction has no more rows or bytes of values, about.
const BATCH_ROWS_MAX: usize = 20_000;
const BATCH_BYTES_MAX: usize = 16 << 20;

/// What rows are made of, beside process instances and, if they are noted, their creations.
const READ: [ValueType; 21] = [
    ValueType::Variable,
    ValueType::Job,
    ValueType::JobBatch,
    ValueType::Incident,
    ValueType::Process,
    ValueType::DecisionRequirements,
    ValueType::Decision,
    ValueType::Form,
    ValueType::GlobalListener,
    ValueType::UserTask,
    ValueType::DecisionEvaluation,
    ValueType::ProcessMessageSubscription,
    ValueType::Purge,
    ValueType::Timer,
    ValueType::ConditionalSubscription,
    ValueType::SignalSubscription,
    ValueType::MessageStartEventSubscription,
    ValueType::ProcessInstanceModification,
    ValueType::ProcessInstanceMigration,
    ValueType::Resource,
    ValueType::VariableDocument,
];

/// The fold of one partition's records.
#[derive(Debug)]
pub(crate) struct Fold {
    pub batch: Batch,
    dictionary: Dictionary,
    /// How many open incidents process instances have, of those that were looked at.
    incidents: HashMap<i64, i64>,
    partition: PartitionId,
    /// Whether this partition tells of what all partitions have.
    is_first: bool,
    /// Whether what it takes is what lives, and no news: such things are not counted again.
    pub is_told_living: bool,
    audited: Audited,
    set_variables: audit::SetVariables,
    variable_names: variable::Names,
}

impl Fold {
    /// Goes on from what was written.
    pub fn new(database: &Database, partition: PartitionId, audited: Audited) -> Result<Fold> {
        let dictionary = Dictionary::read(database)?;
        let is_first = partition == PartitionId::DEPLOYMENT;
        Ok(Fold {
            batch: Batch::default(),
            dictionary,
            incidents: HashMap::new(),
            partition,
            is_first,
            is_told_living: false,
            audited,
            set_variables: audit::SetVariables::default(),
            variable_names: variable::Names::default(),
        })
    }

    /// Whether the batch is to be written before more comes.
    pub fn is_full(&self) -> bool {
        self.batch.rows() >= BATCH_ROWS_MAX || self.batch.bytes >= BATCH_BYTES_MAX
    }

    /// The batch is written: the next one begins.
    pub fn written(&mut self) {
        const INCIDENTS_KEPT_MAX: usize = 10_000;
        self.batch = Batch::default();
        if self.incidents.len() > INCIDENTS_KEPT_MAX {
            self.incidents.clear();
        }
    }

    /// Whether records about this are taken into rows: the rest need not be read.
    pub fn reads(&self, subject: &Subject) -> bool {
        let is_among = |intents: &[ProcessInstanceIntent]| intents.iter().any(|of| of.code() == subject.intent);
        if subject.value_type == ValueType::ProcessInstance as u32 {
            return !subject.is_event || is_among(&process_instance::READ) || is_among(&audit::READ);
        }
        if subject.value_type == ValueType::ProcessInstanceCreation as u32 {
            return self.audited.is_noted(Doing::CreateInstance);
        }
        READ.iter().any(|of| *of as u32 == subject.value_type)
    }

    /// Passes records that are not read, up to a place.
    pub fn pass(&mut self, place: RecordPlace) {
        self.end_variables();
        self.batch.place = Some(place);
    }

    /// Takes a record into the batch.
    pub fn take(&mut self, database: &Database, record: &Record, place: RecordPlace) -> Result<()> {
        if record.record_type == RecordType::Event {
            self.event(database, record)?;
        }
        self.audit(record);
        self.batch.place = Some(place);
        Ok(())
    }

    fn event(&mut self, database: &Database, record: &Record) -> Result<()> {
        let (key, timestamp) = (record.key.raw(), record.timestamp);
        match &record.payload {
            Payload::ProcessInstance(intent, value) => {
                self.process_instance(database, record, *intent, value)?;
            }
            Payload::Variable(intent, value) => self.variable(key, *intent, value),
            Payload::Job(intent, value) => self.job(database, key, timestamp, *intent, value)?,
            Payload::JobBatch(_, value) => self.job_batch(database, timestamp, value)?,
            Payload::Incident(intent, value) => self.incident(database, record, *intent, value)?,
            Payload::Process(intent, value) => self.process(database, key, *intent, value)?,
            Payload::DecisionRequirements(intent, value) => {
                let key = value.metadata.decision_requirements_key;
                match intent {
                    DecisionRequirementsIntent::Created => decision::write_requirements(database, value)?,
                    DecisionRequirementsIntent::Deleted => decision::delete(database, "decision_requirements", key)?,
                }
                self.batch.definitions += 1;
            }
            Payload::Decision(intent, value) => {
                match intent {
                    DecisionIntent::Created => decision::write_decision(database, value)?,
                    DecisionIntent::Deleted => decision::delete(database, "decision_definition", value.decision_key)?,
                }
                self.batch.definitions += 1;
            }
            Payload::Form(intent, value) => {
                form::write(database, *intent, value)?;
                self.batch.definitions += 1;
            }
            Payload::Resource(intent, value) => {
                resource::write(database, *intent, value)?;
                self.batch.definitions += 1;
            }
            Payload::GlobalListener(intent, value) => {
                global_listener::write(database, *intent, value)?;
                self.batch.definitions += 1;
            }
            Payload::UserTask(intent, value) => self.user_task(database, record, *intent, value)?,
            Payload::DecisionEvaluation(intent, value) => self.decision_evaluation(key, timestamp, *intent, value),
            Payload::ProcessMessageSubscription(intent, value) => {
                self.process_message_subscription(key, timestamp, *intent, value);
            }
            Payload::Purge(PurgeIntent::Purged, _) => self.purge(database)?,
            Payload::Timer(intent, value) => self.timer(key, *intent, value),
            Payload::ConditionalSubscription(intent, value) => self.condition(key, *intent, value),
            Payload::SignalSubscription(intent, value) => self.signal_subscription(key, *intent, value),
            Payload::MessageStartEventSubscription(intent, value) => {
                self.message_start_event_subscription(key, timestamp, *intent, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Everything is forgotten, also what is not yet written. Said again after a crash, it finds less to delete.
    fn purge(&mut self, database: &Database) -> Result<()> {
        let transaction = database.begin()?;
        for table in tables().filter(|table| !["place", "history"].contains(table)) {
            database.execute(&format!("DELETE FROM {table}"), &[])?;
        }
        rebuild::forget(database)?;
        transaction.commit()?;
        *self = Fold::new(database, self.partition, self.audited)?;
        self.batch.definitions += 1;
        Ok(())
    }

    fn process(&mut self, database: &Database, key: i64, intent: ProcessIntent, value: &ProcessValue) -> Result<()> {
        let metadata = &value.metadata;
        let state = if intent == ProcessIntent::Created { "ACTIVE" } else { "DELETED" };
        let state = number_of(DEFINITION_STATES, state);
        if intent != ProcessIntent::Created {
            let update = "UPDATE process_definition SET state = ? WHERE key = ?";
            database.execute(update, &[state.into(), metadata.process_definition_key.raw().into()])?;
            if intent == ProcessIntent::Deleted {
                self.forget_variable_names(database, metadata.process_definition_key.raw())?;
            }
            self.batch.definitions += 1;
            return Ok(());
        }
        let name = names_of(&value.resource).remove(&*metadata.bpmn_process_id);
        let insert = "INSERT INTO process_definition(key, id, name, version, version_tag, resource_name, tenant_id, state, xml) \
                      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET id = excluded.id, name = excluded.name, \
                      version = excluded.version, version_tag = excluded.version_tag, resource_name = excluded.resource_name, \
                      tenant_id = excluded.tenant_id, state = excluded.state, xml = excluded.xml";
        let values = [
            key.into(),
            (&*metadata.bpmn_process_id).into(),
            name.as_deref().into(),
            metadata.version.into(),
            Some(&*metadata.version_tag).filter(|tag| !tag.is_empty()).into(),
            (&*metadata.resource_name).into(),
            (&*metadata.tenant_id).into(),
            state.into(),
            (&*value.resource).into(),
        ];
        database.execute(insert, &values)?;
        form::write_start_form(database, key, &metadata.bpmn_process_id, &value.resource)?;
        self.batch.definitions += 1;
        Ok(())
    }
}

/// The number of a key that names something.
fn some_key(key: Key) -> Option<i64> {
    key.is_some().then_some(key.raw())
}

/// A text that says something.
fn some_text(text: &Text) -> Option<Text> {
    (!text.is_empty()).then(|| text.clone())
}

/// A moment that is one.
fn some_time(time: i64) -> Option<i64> {
    (time > 0).then_some(time)
}
