//! Folds records into a read model, and asks it.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use exporters::{Context, Controller, Delivery, ExporterConfiguration, Kept, Opening, PartitionExporter, Resume, Role};
use protocol::{PartitionId, Record, RecordPlace, RecordSource};
use readmodel::query::Readers;
use readmodel::{Audited, PostgreSql, ReadModel, Retention};

use super::postgresql::PostgreSqlServer;

pub const PARTITIONS: [PartitionId; 2] = [PartitionId(1), PartitionId(2)];

/// A read model of these records in a file and one on a server. At each crash, what the consumer had in memory is lost.
pub fn folded(
    audited: Audited,
    records: &[Vec<Record>],
    crashes: &[usize],
) -> [(Arc<ReadModel>, Option<tempfile::TempDir>); 2] {
    let directory = tempfile::tempdir().expect("a directory");
    let in_file = ReadModel::new(directory.path(), PARTITIONS).expect("threads can be started");
    let url = PostgreSqlServer::shared().new_database();
    let server = PostgreSql::new(&url, || Some("of-tests".to_owned())).expect("an address");
    let on_server = ReadModel::on_server(server, PARTITIONS).expect("threads can be started");
    fold(&in_file, audited, records, crashes);
    fold(&on_server, audited, records, crashes);
    [(in_file, Some(directory)), (on_server, None)]
}

fn fold(model: &Arc<ReadModel>, audited: Audited, records: &[Vec<Record>], crashes: &[usize]) {
    let configuration = model.consumer(Retention::default(), audited).expect("a good name");
    for (partition, records) in PARTITIONS.into_iter().zip(records) {
        let source = RecordSource::new(partition);
        let mut crashes = crashes.iter().map(|crash| crash % records.len().max(1));
        let (mut consumer, _) = opened(&configuration, partition);
        let mut crash = crashes.next();
        let mut index = 0;
        while index < records.len() {
            let record = &records[index];
            index += 1;
            let encoded = protocol::encode_to_vec(record);
            let subject = Record::peek_subject(&encoded).expect("a record");
            let (place, now) = (record.place(source.incarnation), Duration::from_millis(index as u64));
            // What can be taken both ways comes to the same.
            let is_taken = index % 3 > 0 && consumer.take_encoded(&subject, &encoded, place, now);
            let is_passed = !is_taken && !consumer.wants(&subject);
            if !is_taken && !is_passed {
                consumer.export(&Delivery { record, source: &source }, now).expect("it is taken");
            }
            // A node tells of what it passed when it has read a while, if nothing that was read came behind.
            if is_passed && (index % 7 == 0 || index == records.len()) {
                assert!(consumer.passed(place), "it keeps its place itself");
            }
            if index % 7 == 0 {
                consumer.flush(Duration::from_secs(index as u64)).expect("it is written");
            }
            if crash.is_some_and(|crash| crash <= index) {
                crash = crashes.next();
                drop(consumer);
                let (again, place) = opened(&configuration, partition);
                consumer = again;
                assert!(place.number as usize <= index);
                index = place.number as usize;
            }
        }
        consumer.close(Duration::from_secs(1_000)).expect("it is written");
    }
}

fn opened(configuration: &ExporterConfiguration, partition: PartitionId) -> (Box<dyn PartitionExporter>, RecordPlace) {
    let mut exporter = (configuration.factory)();
    let mut context = Context {
        name: configuration.name.clone(),
        arguments: exporters::Arguments::new(&configuration.name, configuration.arguments.clone()),
        filter: configuration.filter.clone(),
        directory: "/nowhere".into(),
    };
    exporter.configure(&mut context).expect("there is nothing to configure");
    let mut consumer = exporter.partition(partition);
    let opening = Opening {
        partition,
        incarnation: 1,
        role: Role::Leader,
        acknowledged: RecordPlace::default(),
        beginning: RecordPlace::default(),
        metadata: Arc::from(&[][..]),
        controller: Controller::new(Kept::default(), || {}),
    };
    let Resume::After(place) = consumer.open(opening).expect("it opens") else { panic!("it keeps its own place") };
    (consumer, place)
}

pub fn ask<T: Send + 'static>(model: &ReadModel, read: impl FnOnce(&mut Readers) -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    model.search(move |readers| sender.send(read(readers)).expect("somebody waits")).expect("nobody else searches");
    receiver.recv_timeout(Duration::from_secs(60)).expect("an answer")
}
