//! Process instances, their elements, flows and incidents.

use protocol::{ElementPath, IncidentIntent, IncidentValue, Key, ProcessInstanceIntent, ProcessInstanceValue, Record};

use super::{Fold, some_key};
use crate::batch::{ElementInstanceRow, IncidentRow, ProcessInstanceRow};
use crate::database::{Database, Result};
use crate::dictionary::{ElementId, UNSPECIFIED};
use crate::enumerations::{
    ACTIVE, COMPLETED, ELEMENT_TYPES, ERROR_TYPES, INCIDENT_STATES, PROCESS, TERMINATED, number_of,
};

/// What lies between the begin and the end of an element changes nothing that is kept.
pub(super) const READ: [ProcessInstanceIntent; 5] = [
    ProcessInstanceIntent::ElementActivating,
    ProcessInstanceIntent::ElementMigrated,
    ProcessInstanceIntent::ElementCompleted,
    ProcessInstanceIntent::ElementTerminated,
    ProcessInstanceIntent::SequenceFlowTaken,
];

impl Fold {
    pub(super) fn process_instance(
        &mut self,
        database: &Database,
        record: &Record,
        intent: ProcessInstanceIntent,
        value: &ProcessInstanceValue,
    ) -> Result<()> {
        use ProcessInstanceIntent as Intent;
        let (state, end) = match intent {
            Intent::ElementActivating | Intent::ElementMigrated => (ACTIVE, None),
            Intent::ElementCompleted => (COMPLETED, Some(record.timestamp)),
            Intent::ElementTerminated => (TERMINATED, Some(record.timestamp)),
            Intent::SequenceFlowTaken => {
                let element = self.element(database, value)?;
                self.batch.sequence_flows.insert((value.process_instance_key.raw(), element));
                return Ok(());
            }
            // Not among those that are read.
            _ => return Ok(()),
        };
        let element = self.element(database, value)?;
        self.count(database, record, intent, element)?;
        if number_of(ELEMENT_TYPES, value.bpmn_element_type.name()) == Some(PROCESS) {
            if intent == Intent::ElementActivating && !value.parent_process_instance_key.is_some() {
                self.use_instance(record.timestamp);
            }
            self.root_element(record, value, state, end);
        } else {
            self.inner_element(record, value, element, state, end);
        }
        Ok(())
    }

    fn element(&mut self, database: &Database, value: &ProcessInstanceValue) -> Result<ElementId> {
        let element_type = number_of(ELEMENT_TYPES, value.bpmn_element_type.name()).unwrap_or(UNSPECIFIED);
        let definition = value.process_definition_key.raw();
        let (id, is_new) = self.dictionary.element(database, definition, &value.element_id, element_type)?;
        self.batch.definitions += usize::from(is_new);
        Ok(id)
    }

    fn count(
        &mut self,
        database: &Database,
        record: &Record,
        intent: ProcessInstanceIntent,
        element: ElementId,
    ) -> Result<()> {
        if intent == ProcessInstanceIntent::ElementMigrated {
            // It leaves one element for another.
            let before = match self.batch.element_instances.get(&record.key.raw()) {
                Some(row) => Some(row.element),
                None => {
                    let select = "SELECT element FROM element_instance WHERE key = ?";
                    database.first(select, &[record.key.raw().into()], |row| row.get(0))?.map(ElementId)
                }
            };
            if let Some(before) = before {
                self.batch.counters.entry(before).or_default().active -= 1;
                self.batch.counters.entry(element).or_default().active += 1;
            }
            return Ok(());
        }
        let counters = self.batch.counters.entry(element).or_default();
        match intent {
            ProcessInstanceIntent::ElementActivating => counters.active += 1,
            ProcessInstanceIntent::ElementCompleted => {
                counters.active -= 1;
                counters.completed += 1;
            }
            ProcessInstanceIntent::ElementTerminated => {
                counters.active -= 1;
                counters.canceled += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn root_element(&mut self, record: &Record, value: &ProcessInstanceValue, state: u8, end: Option<i64>) {
        let key = record.key.raw();
        let definition = value.process_definition_key.raw();
        if let Some(row) = self.batch.process_instances.get_mut(&key) {
            (row.definition, row.state, row.end) = (definition, state, end);
            return;
        }
        let tags: Vec<&str> = value.tags.iter().map(|tag| &**tag).collect();
        let row = ProcessInstanceRow {
            definition,
            parent: some_key(value.parent_process_instance_key),
            parent_element: some_key(value.parent_element_instance_key),
            root: root_of(record, value.process_instance_key),
            state,
            start: record.timestamp,
            end,
            tags: (!tags.is_empty()).then(|| serde_json::json!(tags).to_string()),
            business_id: Some(value.business_id.clone()).filter(|id| !id.is_empty()),
        };
        self.batch.process_instances.insert(key, row);
    }

    fn inner_element(
        &mut self,
        record: &Record,
        value: &ProcessInstanceValue,
        element: ElementId,
        state: u8,
        end: Option<i64>,
    ) {
        let row = self.batch.element_instances.entry(record.key.raw()).or_insert_with(|| ElementInstanceRow {
            instance: value.process_instance_key.raw(),
            scope: value.flow_scope_key.raw(),
            element,
            state,
            start: record.timestamp,
            end,
        });
        (row.element, row.state, row.end) = (element, state, end);
    }

    pub(super) fn incident(
        &mut self,
        database: &Database,
        record: &Record,
        intent: IncidentIntent,
        value: &IncidentValue,
    ) -> Result<()> {
        let (state, change) = match intent {
            IncidentIntent::Created => ("ACTIVE", 1),
            IncidentIntent::Resolved => ("RESOLVED", -1),
            IncidentIntent::Migrated => ("MIGRATED", 0),
            IncidentIntent::Resolve => return Ok(()),
        };
        let (definition, key) = (value.process_definition_key.raw(), record.key.raw());
        let (element, _) = self.dictionary.element(database, definition, &value.element_id, UNSPECIFIED)?;
        // A migrated incident is as active as before.
        let shown = if change == 0 { "ACTIVE" } else { state };
        let row = self.batch.incidents.entry(key).or_insert_with(|| IncidentRow {
            instance: value.process_instance_key.raw(),
            element_instance: value.element_instance_key.raw(),
            element,
            job: some_key(value.job_key),
            error_type: number_of(ERROR_TYPES, value.error_type.name()).unwrap_or_default(),
            message: value.error_message.clone(),
            state: 0,
            created: record.timestamp,
        });
        (row.element, row.state) = (element, number_of(INCIDENT_STATES, shown).unwrap_or_default());
        self.batch.bytes += value.error_message.len();
        if change == 0 {
            return Ok(());
        }
        self.batch.counters.entry(element).or_default().incidents += change;
        let path = ElementPath::of(record).unwrap_or_default();
        for (keys, definition) in path.element_instance_path.iter().zip(&path.process_definition_path) {
            let Some((instance, elements)) = keys.split_first() else { continue };
            self.trouble(database, instance.raw(), definition.raw(), change)?;
            for element in elements {
                let troubled = self.batch.element_incidents.entry(element.raw()).or_default();
                troubled.incidents += change;
                if *element == value.element_instance_key {
                    troubled.own = Some((change > 0).then_some(key));
                }
            }
        }
        Ok(())
    }

    /// A process instance has an incident more or less, in itself or in what it calls.
    fn trouble(&mut self, database: &Database, instance: i64, definition: i64, change: i64) -> Result<()> {
        let before = match self.incidents.get(&instance) {
            Some(count) => *count,
            None => {
                let select = "SELECT incidents FROM process_instance WHERE key = ?";
                database.first(select, &[instance.into()], |row| row.get::<i64>(0))?.unwrap_or_default()
                    + self.batch.instance_incidents.get(&instance).copied().unwrap_or_default()
            }
        };
        let now = before + change;
        self.incidents.insert(instance, now);
        *self.batch.instance_incidents.entry(instance).or_default() += change;
        if let Some(process) = self.dictionary.process(definition) {
            let counters = self.batch.counters.entry(process).or_default();
            counters.incidents += i64::from(now > 0) - i64::from(before > 0);
        }
        Ok(())
    }
}

/// The process instance that nobody called, above this one.
fn root_of(record: &Record, own: Key) -> i64 {
    let path = ElementPath::of(record).unwrap_or_default();
    path.element_instance_path.first().and_then(|keys| keys.first()).unwrap_or(&own).raw()
}
