//! Process instances, their elements, flows and incidents.

use protocol::{
    BpmnElementType, ElementEvent, ElementPath, IncidentIntent, IncidentValue, Key, ProcessInstanceIntent,
    ProcessInstanceValue, Record, RecordPlace, Subject, ValueType,
};

use super::{Fold, some_key};
use crate::batch::{ElementInstanceRow, IncidentRow, ProcessInstanceRow};
use crate::database::{Database, Result};
use crate::dictionary::{ElementId, UNSPECIFIED};
use crate::enumerations::{
    ACTIVE, COMPLETED, ERROR_TYPES, INCIDENT_STATES, TERMINATED, number_of, number_of_element_type,
};

/// What lies between the begin and the end of an element changes nothing that is kept.
pub(super) const READ: [ProcessInstanceIntent; 5] = [
    ProcessInstanceIntent::ElementActivating,
    ProcessInstanceIntent::ElementMigrated,
    ProcessInstanceIntent::ElementCompleted,
    ProcessInstanceIntent::ElementTerminated,
    ProcessInstanceIntent::SequenceFlowTaken,
];

/// What [`Fold::take_element`] can take: not what leaves one element for another, which takes a look at the row.
const TAKEN: [ProcessInstanceIntent; 4] = [
    ProcessInstanceIntent::ElementActivating,
    ProcessInstanceIntent::ElementCompleted,
    ProcessInstanceIntent::ElementTerminated,
    ProcessInstanceIntent::SequenceFlowTaken,
];

/// Whether [`Fold::take_element`] may take the record of this, so that it is worth a look.
pub(crate) fn can_take(subject: &Subject) -> bool {
    subject.is_event
        && subject.value_type == ValueType::ProcessInstance as u32
        && TAKEN.iter().any(|of| of.code() == subject.intent)
}

/// What an element instance is after an event, and when it ended; none for what is no begin or end of one.
fn state_after(event: &ElementEvent<'_>) -> Option<(u8, Option<i64>)> {
    match event.intent {
        ProcessInstanceIntent::ElementActivating | ProcessInstanceIntent::ElementMigrated => Some((ACTIVE, None)),
        ProcessInstanceIntent::ElementCompleted => Some((COMPLETED, Some(event.timestamp))),
        ProcessInstanceIntent::ElementTerminated => Some((TERMINATED, Some(event.timestamp))),
        _ => None,
    }
}

impl Fold {
    pub(super) fn process_instance(
        &mut self,
        database: &Database,
        record: &Record,
        intent: ProcessInstanceIntent,
        value: &ProcessInstanceValue,
    ) -> Result<()> {
        let Some(event) = ElementEvent::of(record).filter(|_| READ.contains(&intent)) else { return Ok(()) };
        let (definition, element_type) = (event.process_definition_key.raw(), event.bpmn_element_type);
        let element_type = number_of_element_type(element_type);
        let (element, is_new) = self.dictionary.element(database, definition, event.element_id, element_type)?;
        self.batch.definitions += usize::from(is_new);
        if intent == ProcessInstanceIntent::ElementMigrated {
            match event.bpmn_element_type {
                BpmnElementType::Process => self.move_instance(database, event.key, element)?,
                _ => self.move_count(database, event.key, element)?,
            }
        }
        if event.bpmn_element_type != BpmnElementType::Process {
            self.inner_element(&event, element);
            return Ok(());
        }
        let Some((state, end)) = state_after(&event) else { return Ok(()) };
        self.count(intent, element);
        if intent == ProcessInstanceIntent::ElementActivating && !value.parent_process_instance_key.is_some() {
            self.use_instance(record.timestamp);
        }
        self.root_element(record, value, state, end);
        Ok(())
    }

    /// Takes what most records say: that an element begins or ends that was seen before, or a flow is taken. `false` for what takes
    /// more of the record, or of the rows, to know.
    pub fn take_element(&mut self, event: &ElementEvent<'_>, place: RecordPlace) -> bool {
        if !TAKEN.contains(&event.intent) {
            return false;
        }
        let (definition, element_type) = (event.process_definition_key.raw(), event.bpmn_element_type);
        let known = self.dictionary.known(definition, event.element_id, number_of_element_type(element_type));
        let Some(element) = known else { return false };
        if element_type != BpmnElementType::Process {
            self.inner_element(event, element);
        } else {
            let Some((state, Some(end))) = state_after(event) else { return false };
            let Some(row) = self.batch.process_instances.get_mut(&event.key.raw()) else { return false };
            (row.definition, row.state, row.end) = (definition, state, Some(end));
            self.count(event.intent, element);
        }
        self.pass(place);
        true
    }

    /// An element instance leaves one element for another.
    fn move_count(&mut self, database: &Database, key: Key, element: ElementId) -> Result<()> {
        let before = match self.batch.element_instances.get(&key.raw()) {
            Some(row) => Some(row.element),
            None => {
                let select = "SELECT element FROM element_instance WHERE key = ?";
                database.first(select, &[key.raw().into()], |row| row.get(0))?.map(ElementId)
            }
        };
        if let Some(before) = before {
            self.batch.counters.entry(before).or_default().active -= 1;
            self.batch.counters.entry(element).or_default().active += 1;
        }
        Ok(())
    }

    /// A process instance leaves one definition for another, with its incidents and those of what it calls.
    fn move_instance(&mut self, database: &Database, key: Key, process: ElementId) -> Result<()> {
        let definition = match self.batch.process_instances.get(&key.raw()) {
            Some(row) => Some(row.definition),
            None => {
                let select = "SELECT process_definition_key FROM process_instance WHERE key = ?";
                database.first(select, &[key.raw().into()], |row| row.get::<i64>(0))?
            }
        };
        let Some(before) = definition.and_then(|definition| self.dictionary.process(definition)) else { return Ok(()) };
        let troubled = i64::from(self.incidents_of(database, key.raw())? > 0);
        for (element, by) in [(before, -1), (process, 1)] {
            let counters = self.batch.counters.entry(element).or_default();
            counters.active += by;
            counters.incidents += by * troubled;
        }
        Ok(())
    }

    fn count(&mut self, intent: ProcessInstanceIntent, element: ElementId) {
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

    /// What is in a process: an element instance, or a flow that is taken.
    fn inner_element(&mut self, event: &ElementEvent<'_>, element: ElementId) {
        let instance = event.process_instance_key.raw();
        let Some((state, end)) = state_after(event) else {
            self.batch.sequence_flows.insert((instance, element));
            return;
        };
        self.count(event.intent, element);
        let row = self.batch.element_instances.entry(event.key.raw()).or_insert_with(|| ElementInstanceRow {
            instance,
            scope: event.flow_scope_key.raw(),
            element,
            state,
            start: event.timestamp,
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
        let before = if change == 0 { self.element_of_incident(database, key)? } else { None };
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
        // The incident of a process counts as that of its instance.
        if change == 0 {
            for (element, by) in before.into_iter().flat_map(|before| [(before, -1), (element, 1)]) {
                if !self.dictionary.is_process(element) {
                    self.batch.counters.entry(element).or_default().incidents += by;
                }
            }
            return Ok(());
        }
        if self.dictionary.process(definition) != Some(element) {
            self.batch.counters.entry(element).or_default().incidents += change;
        }
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

    /// How many incidents a process instance has, in itself or in what it calls.
    fn incidents_of(&self, database: &Database, instance: i64) -> Result<i64> {
        if let Some(count) = self.incidents.get(&instance) {
            return Ok(*count);
        }
        let select = "SELECT incidents FROM process_instance WHERE key = ?";
        let written = database.first(select, &[instance.into()], |row| row.get::<i64>(0))?.unwrap_or_default();
        Ok(written + self.batch.instance_incidents.get(&instance).copied().unwrap_or_default())
    }

    /// Where an incident is, as far as it is known.
    fn element_of_incident(&self, database: &Database, key: i64) -> Result<Option<ElementId>> {
        if let Some(row) = self.batch.incidents.get(&key) {
            return Ok(Some(row.element));
        }
        let select = "SELECT element FROM incident WHERE key = ?";
        Ok(database.first(select, &[key.into()], |row| row.get(0))?.map(ElementId))
    }

    /// A process instance has an incident more or less, in itself or in what it calls.
    fn trouble(&mut self, database: &Database, instance: i64, definition: i64, change: i64) -> Result<()> {
        let before = self.incidents_of(database, instance)?;
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
    // A path that is not said follows from the record, and begins with its own instance.
    let said = record.path.as_deref().and_then(|path| path.element_instance_path.first()?.first());
    said.unwrap_or(&own).raw()
}
