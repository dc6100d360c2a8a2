//! A read model that lacks records that are gone is told what lives, in a file and on a server.

#[path = "support/postgresql.rs"]
mod postgresql;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use exporters::{Context, Controller, Delivery, Kept, Opening, PartitionExporter, RecordFilter, Resume, Role};
use postgresql::PostgreSqlServer;
use protocol::{
    BpmnElementType, Key, MessageStartEventSubscriptionIntent, MessageStartEventSubscriptionValue, PartitionId,
    Payload, ProcessInstanceIntent, ProcessInstanceValue, ProcessIntent, ProcessMessageSubscriptionIntent,
    ProcessMessageSubscriptionValue, ProcessMetadata, ProcessValue, PurgeIntent, PurgeValue, Record, RecordPlace,
    RecordSource,
};
use readmodel::query::{AUDIT_LOGS, CORRELATED_MESSAGE_SUBSCRIPTIONS, Condition, PROCESS_INSTANCES, Search};
use readmodel::{Audited, PostgreSql, ReadModel, Retention};

const PARTITION: PartitionId = PartitionId(1);

fn place(position: u64) -> RecordPlace {
    RecordPlace { incarnation: 1, position, number: position }
}

fn consumer(model: &Arc<ReadModel>) -> Box<dyn PartitionExporter> {
    let configuration = model.consumer(Retention::default(), Audited::default()).expect("a good name");
    let mut exporter = (configuration.factory)();
    let mut context = Context {
        name: configuration.name.clone(),
        arguments: exporters::Arguments::new(&configuration.name, configuration.arguments.clone()),
        filter: RecordFilter::default(),
        directory: "/nowhere".into(),
    };
    exporter.configure(&mut context).expect("there is nothing to configure");
    exporter.partition(PARTITION)
}

fn open(consumer: &mut dyn PartitionExporter, beginning: u64) -> (Resume, Controller) {
    let controller = Controller::new(Kept::default(), || {});
    let opening = Opening {
        partition: PARTITION,
        incarnation: 1,
        role: Role::Leader,
        acknowledged: RecordPlace::default(),
        beginning: place(beginning),
        metadata: Arc::from(&[][..]),
        controller: controller.clone(),
    };
    (consumer.open(opening).expect("it opens"), controller)
}

fn definition() -> Record {
    let metadata = ProcessMetadata {
        bpmn_process_id: "p".into(),
        version: 1,
        version_tag: "".into(),
        process_definition_key: Key::new(PARTITION, 1),
        resource_name: "p.bpmn".into(),
        checksum: Arc::from(&[][..]),
        duplicate: false,
        deployment_key: Key::NONE,
        tenant_id: "<default>".into(),
    };
    let value = ProcessValue { metadata, resource: b"<p/>".as_slice().into() };
    Record::event(1, 1_000, Key::new(PARTITION, 1), Payload::Process(ProcessIntent::Created, Box::new(value)))
}

fn instance(number: u64, position: u64, intent: ProcessInstanceIntent) -> Record {
    let key = Key::new(PARTITION, number);
    let value = ProcessInstanceValue {
        bpmn_process_id: "p".into(),
        version: 1,
        process_definition_key: Key::new(PARTITION, 1),
        process_instance_key: key,
        element_id: "p".into(),
        bpmn_element_type: BpmnElementType::Process,
        tenant_id: "<default>".into(),
        ..ProcessInstanceValue::default()
    };
    Record::event(position, 1_000, key, Payload::ProcessInstance(intent, Arc::new(value)))
}

/// A message started an instance, or came to an event of it.
fn correlated(number: u64, position: u64, is_start: bool) -> Record {
    let key = Key::new(PARTITION, 500 + position);
    let instance = Key::new(PARTITION, number);
    let payload = if is_start {
        let value = MessageStartEventSubscriptionValue {
            process_instance_key: instance,
            process_definition_key: Key::new(PARTITION, 1),
            ..MessageStartEventSubscriptionValue::default()
        };
        Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Correlated, Box::new(value))
    } else {
        let value = ProcessMessageSubscriptionValue {
            process_instance_key: instance,
            element_instance_key: instance,
            ..ProcessMessageSubscriptionValue::default()
        };
        Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, Box::new(value))
    };
    Record::event(position, 1_000, key, payload)
}

fn export(consumer: &mut dyn PartitionExporter, record: &Record) {
    consumer.export(&Delivery { record, source: &RecordSource::new(PARTITION) }, Duration::ZERO).expect("it is taken");
}

/// Keys of the instances, and how many are active as the counters say.
fn seen(model: &ReadModel) -> (Vec<i64>, i64) {
    let (sender, receiver) = mpsc::channel();
    let look = move |readers: &mut readmodel::query::Readers| {
        let found = Search::new(&PROCESS_INSTANCES, Condition::always()).run(readers).expect("rows");
        let keys = found.items.iter().map(|item| {
            let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
            item["processInstanceKey"].as_str().expect("a key").parse::<i64>().expect("a number")
        });
        let mut keys: Vec<i64> = keys.collect();
        keys.sort_unstable();
        let counts = readers.definition_counts(&Condition::always()).expect("counts");
        sender.send((keys, counts.iter().map(|of| of.active).sum())).expect("somebody waits");
    };
    model.search(look).expect("nobody else searches");
    receiver.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

/// The instances to which messages came.
fn messages(model: &ReadModel) -> Vec<i64> {
    let (sender, receiver) = mpsc::channel();
    let look = move |readers: &mut readmodel::query::Readers| {
        let found = Search::new(&CORRELATED_MESSAGE_SUBSCRIPTIONS, Condition::always()).run(readers).expect("rows");
        let key = |item: &Vec<u8>| {
            let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
            item["processInstanceKey"].as_str().expect("a key").parse().expect("a number")
        };
        sender.send(found.items.iter().map(key).collect()).expect("somebody waits");
    };
    model.search(look).expect("nobody else searches");
    receiver.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

/// How many entries say who did what.
fn entries(model: &ReadModel) -> u64 {
    let (sender, receiver) = mpsc::channel();
    let look = move |readers: &mut readmodel::query::Readers| {
        let found = Search::new(&AUDIT_LOGS, Condition::always()).run(readers).expect("rows");
        sender.send(found.total).expect("somebody waits");
    };
    model.search(look).expect("nobody else searches");
    receiver.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

fn keys(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().map(|number| Key::new(PARTITION, *number).raw()).collect()
}

fn check(model: &Arc<ReadModel>) {
    use ProcessInstanceIntent::{ElementActivating, ElementCompleted};
    let second = Duration::from_secs(1);
    let mut first = consumer(model);
    assert_eq!(open(&mut *first, 0).0, Resume::After(RecordPlace::default()));
    export(&mut *first, &definition());
    // The first one ends; the second one ends where records are missing; the third one lives.
    for (number, position) in [(10, 2), (11, 3), (12, 4)] {
        export(&mut *first, &instance(number, position, ElementActivating));
    }
    export(&mut *first, &instance(10, 5, ElementCompleted));
    for (number, position, is_start) in [(10, 6, true), (11, 7, true), (12, 8, true), (12, 9, false)] {
        export(&mut *first, &correlated(number, position, is_start));
    }
    // A hole is come to: what was taken before it is kept.
    let error = first.records_missing(place(90), second).expect_err("it is told what lives");
    assert!(error.is_loss(), "{error}");
    let (resume, controller) = open(&mut *first, 0);
    assert_eq!(resume, Resume::FromState);
    assert!(controller.remark().is_some_and(|remark| remark.contains("searches do not find all of it")));
    first.take_living(&definition(), second).expect("it is taken");
    first.take_living(&instance(12, 100, ElementActivating), second).expect("it is taken");
    first.flush(Duration::from_secs(9)).expect("some of it is written");
    drop(first);

    // It did not come to its end, so it begins again, wherever the records begin.
    let mut again = consumer(model);
    let (resume, controller) = open(&mut *again, 0);
    assert_eq!(resume, Resume::FromState);
    let told = Record { position: 100, ..definition() };
    for record in [told, instance(12, 100, ElementActivating), instance(13, 100, ElementActivating)] {
        again.take_living(&record, second).expect("it is taken");
    }
    again.living_told(place(100), 1_700_000_000_000, second).expect("it is written");
    let remark = controller.remark().expect("what is gone is said");
    assert!(remark.contains("2023-11-14T22:13:20Z: searches lack what ended before"), "{remark}");
    assert_eq!(seen(model), (keys(&[10, 12, 13]), 2), "what had ended stays, and what lives is counted once");
    assert_eq!(messages(model), keys(&[10, 12]), "of the start of what lives nothing else tells");
    assert_eq!(entries(model), 1, "that the definition lives is no news of who deployed it");
    export(&mut *again, &instance(14, 101, ElementActivating));
    export(&mut *again, &instance(12, 102, ElementCompleted));
    again.close(second).expect("it is written");
    assert_eq!(controller.acknowledged(), place(102));
    assert_eq!(seen(model), (keys(&[10, 12, 13, 14]), 2));

    // The next start goes on there, and still says what is gone, until everything is forgotten.
    let mut next = consumer(model);
    let (resume, controller) = open(&mut *next, 90);
    assert_eq!((resume, controller.remark()), (Resume::After(place(102)), Some(remark)));
    let purged = Payload::Purge(PurgeIntent::Purged, PurgeValue::default());
    export(&mut *next, &Record::event(103, 1_000, Key::NONE, purged));
    assert_eq!(controller.remark(), None);
    next.close(second).expect("it is written");
    // New records are missing.
    let mut last = consumer(model);
    assert_eq!(open(&mut *last, 104).0, Resume::FromState);
}

#[test]
fn what_lives_is_told_once_and_the_records_behind_it_follow() {
    let directory = tempfile::tempdir().expect("a directory");
    check(&ReadModel::new(directory.path(), [PARTITION]).expect("threads can be started"));
    let url = PostgreSqlServer::shared().new_database();
    let server = PostgreSql::new(&url, || Some("of-tests".to_owned())).expect("an address");
    check(&ReadModel::on_server(server, [PARTITION]).expect("threads can be started"));
}
