//! A file in which damage is found while it is used gives way to a new one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exporters::{
    Context, Controller, Delivery, ExporterError, Kept, Opening, PartitionExporter, RecordFilter, Resume, Role,
};
use protocol::{
    BpmnElementType, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessInstanceValue, Record, RecordPlace,
    RecordSource,
};
use readmodel::{Audited, ReadModel, Retention};

const PARTITION: PartitionId = PartitionId(1);

fn consumer(directory: &Path) -> Box<dyn PartitionExporter> {
    let model = ReadModel::new(directory, [PARTITION]).expect("threads can be started");
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

fn open(consumer: &mut dyn PartitionExporter) -> RecordPlace {
    let opening = Opening {
        partition: PARTITION,
        incarnation: 1,
        role: Role::Leader,
        acknowledged: RecordPlace::default(),
        beginning: RecordPlace::default(),
        metadata: Arc::from(&[][..]),
        controller: Controller::new(Kept::default(), || {}),
    };
    let Resume::After(place) = consumer.open(opening).expect("it opens") else { panic!("it keeps its own place") };
    place
}

fn begun(position: u64) -> Record {
    let key = Key::new(PARTITION, position);
    let value = ProcessInstanceValue {
        bpmn_process_id: "process".into(),
        version: 1,
        process_definition_key: Key::new(PARTITION, 1),
        process_instance_key: key,
        element_id: "process".into(),
        bpmn_element_type: BpmnElementType::Process,
        tenant_id: "<default>".into(),
        ..ProcessInstanceValue::default()
    };
    let payload = Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, Arc::new(value));
    Record::event(position, 1_000, key, payload)
}

fn export(consumer: &mut dyn PartitionExporter, records: std::ops::RangeInclusive<u64>) {
    let source = RecordSource::new(PARTITION);
    for position in records {
        let record = begun(position);
        consumer.export(&Delivery { record: &record, source: &source }, Duration::ZERO).expect("it is taken");
    }
}

#[test]
fn damage_in_a_file_in_use_is_found_and_the_file_set_aside() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = consumer(directory.path());
    assert_eq!(open(&mut *first).position, 0);
    export(&mut *first, 1..=2_000);
    first.close(Duration::from_secs(1)).expect("it is written");
    drop(first);
    let path = directory.path().join("partition-1.sqlite");
    let mut bytes = std::fs::read(&path).expect("the file");
    let (page, end) = (4_096, bytes.len());
    bytes[end - 10 * page..].fill(0xA5);
    std::fs::write(&path, bytes).expect("the damaged file");

    let mut again = consumer(directory.path());
    assert_eq!(open(&mut *again).position, 2_000, "what is read when it is opened is not damaged");
    let mut found = None;
    for second in 1..6_000 {
        // The check is on a thread of its own.
        std::thread::sleep(Duration::from_millis(10));
        if let Err(error) = again.flush(Duration::from_secs(second)) {
            found = Some(error);
            break;
        }
    }
    let error = found.expect("the check finds it");
    assert!(matches!(error, ExporterError::Lost { .. }) && error.to_string().contains("damaged"), "{error}");
    assert_eq!(open(&mut *again).position, 0, "a new file is made from the beginning of the records");
    assert!(directory.path().join("partition-1.sqlite.damaged-1").exists());
    export(&mut *again, 1..=10);
    again.close(Duration::from_secs(9_999)).expect("it is written");
}
