//! What searches find in a read model, and what of it lives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use exporters::{
    Arguments, Context, Controller, Delivery, Kept, Opening, PartitionExporter, RecordFilter, Resume, Role,
};
use protocol::{PartitionId, Payload, ProcessMessageSubscriptionIntent, Record, RecordPlace, RecordSource, RecordType};
use readmodel::query::Value::Integer as Number;
use readmodel::query::{
    AUDIT_LOGS, CORRELATED_MESSAGE_SUBSCRIPTIONS, Condition, DECISION_DEFINITIONS, DECISION_INSTANCES,
    DECISION_REQUIREMENTS, ELEMENT_INSTANCES, Entity, FORMS, INCIDENTS, JOBS, MESSAGE_SUBSCRIPTIONS,
    PROCESS_DEFINITIONS, PROCESS_INSTANCES, Page, Readers, SEQUENCE_FLOWS, Search, USER_TASKS, VARIABLES, WAIT_STATES,
};
use readmodel::{Audited, ReadModel, Retention};
use serde_json::Value;

/// Rows of a search that is made for a page.
const PAGE_ROWS: u32 = 1_000;
/// A search that takes too long on a slow machine is made again, so often.
const ATTEMPTS_MAX: usize = 100;

static SEARCHED: [&Entity; 15] = [
    &PROCESS_INSTANCES,
    &ELEMENT_INSTANCES,
    &VARIABLES,
    &JOBS,
    &INCIDENTS,
    &USER_TASKS,
    &FORMS,
    &PROCESS_DEFINITIONS,
    &DECISION_DEFINITIONS,
    &DECISION_REQUIREMENTS,
    &MESSAGE_SUBSCRIPTIONS,
    &WAIT_STATES,
    &DECISION_INSTANCES,
    &CORRELATED_MESSAGE_SUBSCRIPTIONS,
    &AUDIT_LOGS,
];

/// What searches find: what it is, and the row as JSON.
pub type Rows = BTreeSet<(&'static str, String)>;

/// What searches find of a partition.
pub fn found(model: &ReadModel, partition: PartitionId) -> Rows {
    let (sender, receiver) = mpsc::channel();
    let look = move |readers: &mut Readers| {
        let always = Condition::always;
        let mut rows: Rows =
            SEARCHED.iter().flat_map(|entity| of_entity(readers, entity, always(), partition)).collect();
        rows.extend(flows(readers, partition, &rows));
        sender.send(rows).expect("somebody waits");
    };
    model.search(look).expect("nobody else searches");
    receiver.recv().expect("searches come to an end")
}

/// The counters of a partition that are not what its rows say.
pub fn wrong_counts(model: &ReadModel, partition: PartitionId) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let look = move |readers: &mut Readers| {
        let wrong = (0..ATTEMPTS_MAX).find_map(|_| readers.wrong_counts(partition).ok());
        sender.send(wrong.expect("the counters can be read")).expect("somebody waits");
    };
    model.search(look).expect("nobody else searches");
    receiver.recv().expect("searches come to an end")
}

/// The sequence flows of some of the instances that are found. Flows have no keys of their own, so they are searched by instance,
/// which takes long for all of them.
fn flows(readers: &mut Readers, partition: PartitionId, rows: &Rows) -> Rows {
    let field = SEQUENCE_FLOWS.field("processInstanceKey").expect("a field");
    let instances = rows.iter().filter(|(name, _)| *name == PROCESS_INSTANCES.name);
    let keys = instances.map(|(_, row)| {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        row["processInstanceKey"].as_str().and_then(|key| key.parse::<i64>().ok()).expect("a key")
    });
    let some = keys.filter(|key| key % 8 == 0);
    some.flat_map(|key| of_entity(readers, &SEQUENCE_FLOWS, Condition::equal(field, Number(key)), partition)).collect()
}

fn of_entity(
    readers: &mut Readers,
    entity: &'static Entity,
    condition: Condition,
    partition: PartitionId,
) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    loop {
        let page = Page::From(u32::try_from(rows.len()).expect("few rows"));
        let search = Search {
            limit: PAGE_ROWS,
            page,
            truncates: false,
            partition: Some(partition),
            ..Search::new(entity, condition.clone())
        };
        let found = (0..ATTEMPTS_MAX).find_map(|_| search.run(readers).ok());
        let items = found.unwrap_or_else(|| panic!("{} cannot be searched", entity.name)).items;
        let is_last = items.len() < PAGE_ROWS as usize;
        rows.extend(items.into_iter().map(|item| (entity.name, String::from_utf8(item).expect("JSON is text"))));
        if is_last {
            return rows;
        }
    }
}

/// The rows that a read model has of records, from the first one on, if it takes them one after the other.
pub fn folded<'a>(records: impl IntoIterator<Item = &'a Record>, partition: PartitionId, directory: &Path) -> Rows {
    let model = ReadModel::new(directory, [partition]).expect("threads can be started");
    let mut consumer = consumer(&model, partition);
    let controller = Controller::new(Kept::default(), || {});
    let opening = Opening {
        partition,
        incarnation: 1,
        role: Role::Follower,
        acknowledged: RecordPlace::default(),
        beginning: RecordPlace::default(),
        metadata: Arc::from(&[][..]),
        controller,
    };
    let resume = consumer.open(opening).expect("it is new");
    assert_eq!(resume, Resume::After(RecordPlace::default()));
    let source = RecordSource::new(partition);
    for record in records {
        consumer.export(&Delivery { record, source: &source }, Duration::ZERO).expect("it is taken");
    }
    consumer.close(Duration::ZERO).expect("it is written");
    found(&model, partition)
}

/// The consumer that fills a read model.
pub fn consumer(model: &Arc<ReadModel>, partition: PartitionId) -> Box<dyn PartitionExporter> {
    let configuration = model.consumer(Retention::default(), Audited::default()).expect("a good name");
    let mut exporter = (configuration.factory)();
    let mut context = Context {
        name: configuration.name.clone(),
        arguments: Arguments::new(&configuration.name, configuration.arguments),
        filter: RecordFilter::default(),
        directory: "/nowhere".into(),
    };
    exporter.configure(&mut context).expect("there is nothing to configure");
    exporter.partition(partition)
}

/// The rows without what others say of what they are about: those may be gone.
pub fn alone(rows: &Rows) -> Rows {
    const OF_LOGS: &[&str] = &[
        "processInstanceKey",
        "rootProcessInstanceKey",
        "elementInstanceKey",
        "processDefinitionId",
        "processDefinitionKey",
        "tenantId",
    ];
    // A subscription may be closed after its instance has ended.
    const OF_SUBSCRIPTIONS: &[&str] =
        &["rootProcessInstanceKey", "processDefinitionKey", "processDefinitionName", "processDefinitionVersion"];
    const OF_CORRELATIONS: &[&str] = &["rootProcessInstanceKey"];
    let of_others = |name: &str| match name {
        name if name == AUDIT_LOGS.name => OF_LOGS,
        name if name == MESSAGE_SUBSCRIPTIONS.name => OF_SUBSCRIPTIONS,
        name if name == CORRELATED_MESSAGE_SUBSCRIPTIONS.name => OF_CORRELATIONS,
        _ => &[],
    };
    let alone = |(name, row): &(&'static str, String)| {
        let mut row: Value = serde_json::from_str(row).expect("a row is JSON");
        if let Some(fields) = row.as_object_mut() {
            fields.retain(|field, _| !of_others(name).contains(&field.as_str()));
        }
        (*name, row.to_string())
    };
    rows.iter().map(alone).collect()
}

/// The subscriptions to messages that are being closed, and their element instances. The state does not say whether they were
/// opened before, so they are not made anew.
pub fn closing<'a>(records: impl IntoIterator<Item = &'a Record>) -> BTreeSet<String> {
    let mut closing = BTreeMap::new();
    for record in records.into_iter().filter(|record| record.record_type == RecordType::Event) {
        match &record.payload {
            Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Deleting, value) => {
                closing.insert(record.key, value.element_instance_key);
            }
            Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Deleted, _) => {
                closing.remove(&record.key);
            }
            _ => {}
        }
    }
    closing.into_iter().flat_map(|(subscription, element)| [subscription, element]).map(|key| key.to_string()).collect()
}

/// Of the rows those of what lives, which are made anew from the state when they were lost.
pub fn living(rows: &Rows, closing: &BTreeSet<String>) -> Rows {
    let json: Vec<(&(&'static str, String), Value)> =
        rows.iter().map(|row| (row, serde_json::from_str(&row.1).expect("a row is JSON"))).collect();
    let keys = |name: &str, field: &str| -> BTreeSet<String> {
        let active = json.iter().filter(|(row, value)| row.0 == name && value["state"] == "ACTIVE");
        active.filter_map(|(_, value)| Some(value[field].as_str()?.to_owned())).collect()
    };
    let mut scopes = keys(PROCESS_INSTANCES.name, "processInstanceKey");
    scopes.extend(keys(ELEMENT_INSTANCES.name, "elementInstanceKey"));
    // An error that nobody caught ends with its incident: then the state has no job any more, though its element may still be
    // ending.
    let incidents = keys("incident", "jobKey");
    let has_ended = |value: &Value| {
        value["state"] == "ERROR_THROWN" && !incidents.contains(value["jobKey"].as_str().unwrap_or_default())
    };
    let ended = json.iter().filter(|(row, value)| row.0 == "job" && has_ended(value));
    let ended: BTreeSet<&str> = ended.filter_map(|(_, value)| value["elementInstanceKey"].as_str()).collect();
    let lives = |name: &str, value: &Value| {
        let text = |field: &str| value[field].as_str().unwrap_or_default();
        match name {
            "process instance" | "element instance" | "incident" => text("state") == "ACTIVE",
            "variable" => scopes.contains(text("scopeKey")),
            "job" => {
                scopes.contains(text("elementInstanceKey"))
                    && !["COMPLETED", "CANCELED"].contains(&text("state"))
                    && !has_ended(value)
            }
            "user task" => !["COMPLETED", "CANCELED"].contains(&text("state")),
            "message subscription" => {
                text("messageSubscriptionState") == "CREATED" && !closing.contains(text("messageSubscriptionKey"))
            }
            "wait state" => {
                let (element, kind) = (text("elementInstanceKey"), &value["details"]["waitStateType"]);
                !(kind == "MESSAGE" && closing.contains(element) || kind == "JOB" && ended.contains(element))
            }
            "process definition" => text("state") != "DELETED",
            "decision definition" | "decision requirements definition" => true,
            _ => false,
        }
    };
    json.iter().filter(|(row, value)| lives(row.0, value)).map(|(row, _)| (*row).clone()).collect()
}

/// Whether rows of this name say what was deployed.
pub fn is_definition(name: &str) -> bool {
    [&PROCESS_DEFINITIONS, &DECISION_DEFINITIONS, &DECISION_REQUIREMENTS, &FORMS]
        .iter()
        .any(|entity| entity.name == name)
}

/// Whether a record changes such rows.
pub fn defines(record: &Record) -> bool {
    let defines = matches!(
        record.payload,
        Payload::Process(..) | Payload::DecisionRequirements(..) | Payload::Decision(..) | Payload::Form(..)
    );
    record.record_type == RecordType::Event && defines
}

/// A directory that is removed afterwards, in memory where the system has such a place.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    scratch.expect("there is a place for a scratch directory")
}
