//! From records to rows.
//!
//! A record states complete facts, so a row is made from its newest record without reading the row before. What few records
//! tell, and needs more, is written at once: definitions and elements that no record has named before.

mod decision;
mod job;
mod message;
mod process_instance;

use std::collections::HashMap;

use protocol::{
    DecisionIntent, DecisionRequirementsIntent, Key, Payload, ProcessIntent, ProcessValue, Record, RecordPlace,
    RecordType, Text, VariableIntent, VariableValue,
};
use rusqlite::{Connection, params};

use crate::batch::{Batch, VariableRow};
use crate::dictionary::{Dictionary, names_of};
use crate::enumerations::{DEFINITION_STATES, number_of};

/// The fold of one partition's records.
#[derive(Debug)]
pub(crate) struct Fold {
    pub batch: Batch,
    dictionary: Dictionary,
    /// How many open incidents process instances have, of those that were looked at.
    incidents: HashMap<i64, i64>,
    /// Whether this partition tells of what all partitions have.
    is_first: bool,
}

impl Fold {
    /// Goes on from what is in the file.
    pub fn new(connection: &Connection, is_first: bool) -> rusqlite::Result<Fold> {
        let dictionary = Dictionary::read(connection)?;
        Ok(Fold { batch: Batch::default(), dictionary, incidents: HashMap::new(), is_first })
    }

    /// The batch is written: the next one begins.
    pub fn written(&mut self) {
        const INCIDENTS_KEPT_MAX: usize = 10_000;
        self.batch = Batch::default();
        if self.incidents.len() > INCIDENTS_KEPT_MAX {
            self.incidents.clear();
        }
    }

    /// Takes a record into the batch.
    pub fn take(&mut self, connection: &Connection, record: &Record, place: RecordPlace) -> rusqlite::Result<()> {
        if record.record_type == RecordType::Event {
            self.event(connection, record)?;
        }
        self.batch.place = Some(place);
        Ok(())
    }

    fn event(&mut self, connection: &Connection, record: &Record) -> rusqlite::Result<()> {
        let (key, timestamp) = (record.key.raw(), record.timestamp);
        match &record.payload {
            Payload::ProcessInstance(intent, value) => {
                self.process_instance(connection, record, *intent, value)?;
            }
            Payload::Variable(intent, value) => self.variable(key, *intent, value),
            Payload::Job(intent, value) => self.job(connection, key, timestamp, *intent, value)?,
            Payload::JobBatch(_, value) => self.job_batch(connection, timestamp, value)?,
            Payload::Incident(intent, value) => self.incident(connection, record, *intent, value)?,
            Payload::Process(intent, value) => self.process(connection, key, *intent, value)?,
            Payload::DecisionRequirements(intent, value) => match intent {
                DecisionRequirementsIntent::Created => decision::write_requirements(connection, value)?,
                DecisionRequirementsIntent::Deleted => {
                    decision::delete(connection, "decision_requirements", value.metadata.decision_requirements_key)?;
                }
            },
            Payload::Decision(intent, value) => match intent {
                DecisionIntent::Created => decision::write_decision(connection, value)?,
                DecisionIntent::Deleted => decision::delete(connection, "decision_definition", value.decision_key)?,
            },
            Payload::DecisionEvaluation(intent, value) => self.decision_evaluation(key, timestamp, *intent, value),
            Payload::ProcessMessageSubscription(intent, value) => {
                self.process_message_subscription(key, timestamp, *intent, value);
            }
            Payload::MessageStartEventSubscription(intent, value) => {
                self.message_start_event_subscription(key, timestamp, *intent, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn variable(&mut self, key: i64, intent: VariableIntent, value: &VariableValue) {
        // A migration changes only what is known of the instance, and says no value.
        if intent == VariableIntent::Migrated {
            return;
        }
        self.batch.bytes += value.value.len();
        let row = VariableRow {
            instance: value.process_instance_key.raw(),
            scope: value.scope_key.raw(),
            name: value.name.clone(),
            value: value.value.clone(),
        };
        self.batch.variables.insert(key, row);
    }

    fn process(
        &mut self,
        connection: &Connection,
        key: i64,
        intent: ProcessIntent,
        value: &ProcessValue,
    ) -> rusqlite::Result<()> {
        let metadata = &value.metadata;
        let state = if intent == ProcessIntent::Created { "ACTIVE" } else { "DELETED" };
        let state = number_of(DEFINITION_STATES, state);
        if intent != ProcessIntent::Created {
            let update = "UPDATE process_definition SET state = ? WHERE key = ?";
            connection.prepare_cached(update)?.execute(params![state, metadata.process_definition_key.raw()])?;
            self.batch.definitions += 1;
            return Ok(());
        }
        let name = names_of(&value.resource).remove(&*metadata.bpmn_process_id);
        let insert = "INSERT OR REPLACE INTO process_definition(key, id, name, version, version_tag, resource_name, \
                      tenant_id, state, xml) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        connection.prepare_cached(insert)?.execute(params![
            key,
            &*metadata.bpmn_process_id,
            name,
            metadata.version,
            some_text(&metadata.version_tag).as_deref(),
            &*metadata.resource_name,
            &*metadata.tenant_id,
            state,
            &*value.resource,
        ])?;
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
