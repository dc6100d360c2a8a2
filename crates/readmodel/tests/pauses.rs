//! When the consumer writes what it took, and when it does not want to be woken for records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exporters::{Arguments, Context, Controller, Delivery, Kept, Opening, PartitionExporter, RecordFilter, Role};
use protocol::{Key, PartitionId, Payload, Record, RecordPlace, RecordSource, VariableIntent, VariableValue};
use readmodel::{Audited, Noted, ReadModel, Retention};

const PARTITION: PartitionId = PartitionId(1);
const MOMENT: Duration = Duration::from_micros(1);

/// A consumer, and how often it is called.
fn consumer(model: &Arc<ReadModel>) -> (Box<dyn PartitionExporter>, Arc<AtomicU64>) {
    let called = Arc::new(AtomicU64::new(0));
    let calls = called.clone();
    let call = move || {
        calls.fetch_add(1, Ordering::Relaxed);
    };
    (consumer_with(model, Controller::new(Kept::default(), call)), called)
}

fn consumer_with(model: &Arc<ReadModel>, controller: Controller) -> Box<dyn PartitionExporter> {
    keeping(model, controller, Retention::default())
}

fn keeping(model: &Arc<ReadModel>, controller: Controller, retention: Retention) -> Box<dyn PartitionExporter> {
    // Whose doing variables are is not looked for in the records behind them.
    let none = Audited { users: Noted::NONE, clients: Noted::NONE, anonymous: Noted::NONE, engine: Noted::NONE };
    let configuration = model.consumer(retention, none).expect("a good name");
    let mut exporter = (configuration.factory)();
    let mut context = Context {
        name: configuration.name.clone(),
        arguments: Arguments::new(&configuration.name, configuration.arguments.clone()),
        filter: RecordFilter::default(),
        directory: "/nowhere".into(),
    };
    exporter.configure(&mut context).expect("there is nothing to configure");
    let mut consumer = exporter.partition(PARTITION);
    let opening = Opening {
        partition: PARTITION,
        incarnation: 1,
        role: Role::Leader,
        acknowledged: RecordPlace::default(),
        beginning: RecordPlace::default(),
        metadata: Arc::from(&[][..]),
        controller,
    };
    consumer.open(opening).expect("it opens");
    consumer
}

fn take(consumer: &mut dyn PartitionExporter, position: u64, now: Duration) {
    let value = VariableValue {
        name: "amount".into(),
        value: "12".into(),
        scope_key: Key::new(PARTITION, 1),
        process_instance_key: Key::new(PARTITION, 1),
        process_definition_key: Key::new(PARTITION, 2),
        bpmn_process_id: "order".into(),
        tenant_id: protocol::DEFAULT_TENANT.into(),
    };
    let payload = Payload::Variable(VariableIntent::Created, Box::new(value));
    let record = Record::event(position, 1, Key::new(PARTITION, position), payload);
    consumer.export(&Delivery { record: &record, source: &RecordSource::new(PARTITION) }, now).expect("it is taken");
}

#[test]
fn after_a_transaction_the_consumer_rests_unless_somebody_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = ReadModel::new(directory.path(), [PARTITION]).expect("threads can be started");
    let (mut consumer, called) = consumer(&model);
    let progress = model.progress(PARTITION);
    assert_eq!(consumer.rests_until(), Some(Duration::ZERO), "the first record is written at once");
    take(&mut *consumer, 1, Duration::ZERO);
    assert_eq!(consumer.flush_at(), Some(Duration::ZERO));
    consumer.flush(Duration::ZERO).expect("it is written");
    assert_eq!(progress.position(), 1);
    let rests_until = consumer.rests_until().expect("nobody waits");
    assert!(rests_until > MOMENT, "{rests_until:?}");
    take(&mut *consumer, 2, MOMENT);
    assert_eq!(consumer.flush_at(), Some(rests_until), "with what else comes until then");

    let told = Arc::new(AtomicU64::new(0));
    let tells = told.clone();
    let waiter = progress.when(4, move || {
        tells.fetch_add(1, Ordering::Relaxed);
    });
    assert!(waiter.is_some());
    assert_eq!(called.load(Ordering::Relaxed), 1, "it learns that somebody waits");
    let soon = consumer.rests_until().expect("small transactions are not all that it does");
    assert!(
        Duration::ZERO < soon && soon <= rests_until,
        "what is waited for may come next: {soon:?}, {rests_until:?}"
    );
    assert_eq!(consumer.flush_at(), Some(rests_until), "it is not there yet");
    take(&mut *consumer, 4, Duration::ZERO);
    assert_eq!(consumer.flush_at(), Some(soon));
    consumer.flush(Duration::ZERO).expect("it is too early");
    assert_eq!((told.load(Ordering::Relaxed), progress.position()), (0, 1));
    consumer.flush(soon).expect("it is written");
    assert_eq!((told.load(Ordering::Relaxed), progress.position()), (1, 4));
    assert!(consumer.rests_until() > Some(soon), "nobody waits any more");
}

#[test]
fn what_is_passed_need_not_come_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = ReadModel::new(directory.path(), [PARTITION]).expect("threads can be started");
    let (mut consumer, _) = consumer(&model);
    take(&mut *consumer, 1, Duration::ZERO);
    let place = RecordPlace { incarnation: 1, position: 9, number: 5 };
    assert!(consumer.passed(place), "it acknowledges that itself");
    consumer.flush(Duration::ZERO).expect("it is written");
    assert_eq!(model.progress(PARTITION).position(), 9, "searches need not wait for it");
    consumer.close(MOMENT).expect("it is written");
    drop(consumer);
    consumer = self::consumer(&model).0;
    assert_eq!(model.progress(PARTITION).position(), 9, "it goes on there");
    consumer.close(MOMENT).expect("nothing is left");
}

/// Else the records would be kept for as long as searches follow each other, and new work refused in the end.
#[test]
fn what_is_written_is_acknowledged_also_while_somebody_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = ReadModel::new(directory.path(), [PARTITION]).expect("threads can be started");
    let controller = Controller::new(Kept::default(), || {});
    let mut consumer = consumer_with(&model, controller.clone());
    let files = std::fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "sqlite")).expect("a file");
    let reader = rusqlite::Connection::open(file).expect("it can be read");
    let count = || reader.query_row("SELECT count(*) FROM variable", [], |row| row.get::<_, i64>(0)).expect("readable");
    reader.execute_batch("BEGIN").expect("a transaction");
    assert_eq!(count(), 0);
    take(&mut *consumer, 1, Duration::ZERO);
    for now in 0..5 {
        consumer.flush(Duration::from_secs(now)).expect("it is written");
    }
    assert_eq!(count(), 0, "it reads still what there was");
    assert_eq!(controller.acknowledged().position, 1);
    consumer.close(Duration::from_secs(5)).expect("nothing is left");
}

/// With many clients, one of them waits always.
#[test]
fn what_is_not_kept_is_deleted_also_while_somebody_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = ReadModel::new(directory.path(), [PARTITION]).expect("threads can be started");
    let second = Duration::from_secs(1);
    let retention = Retention { completed: Some(second), terminated: Some(second) };
    let mut consumer = keeping(&model, Controller::new(Kept::default(), || {}), retention);
    let file = directory.path().join("partition-1.sqlite");
    let other = rusqlite::Connection::open(file).expect("it can be written");
    let script = "INSERT INTO process_instance(key, process_definition_key, root_process_instance_key, state, start_date, end_date) \
                  VALUES (7, 1, 7, 1, 1, 2)";
    other.execute_batch(script).expect("it is written");
    let count =
        || other.query_row("SELECT count(*) FROM process_instance", [], |row| row.get::<_, i64>(0)).expect("a count");
    let waiter = model.progress(PARTITION).when(1_000, || {});
    assert!(waiter.is_some());
    consumer.flush(Duration::ZERO).expect("nothing is to be done");
    assert_eq!(count(), 1, "who waits goes before");
    let at = consumer.flush_at().expect("it is to be deleted");
    assert!(Duration::ZERO < at && at < second, "{at:?}");
    consumer.flush(at).expect("it is deleted");
    assert_eq!(count(), 0);
}
