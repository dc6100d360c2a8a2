//! The fold and the searches over random records: what is found is what happened, whatever happens to the process.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use exporters::{Context, Controller, Delivery, ExporterConfiguration, Kept, Opening, PartitionExporter, Resume, Role};
use proptest::prelude::*;
use protocol::{
    BpmnElementType, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessInstanceValue, ProcessIntent,
    ProcessMetadata, ProcessValue, Record, RecordPlace, RecordSource,
};
use readmodel::query::{Condition, Cursor, Direction, Found, PROCESS_INSTANCES, Page, Readers, Search, Sort, Value};
use readmodel::{Audited, PostgreSql, ReadModel, Retention};

#[path = "support/postgresql.rs"]
mod postgresql;

use postgresql::PostgreSqlServer;

const PARTITIONS: [PartitionId; 2] = [PartitionId(1), PartitionId(2)];
const DEFINITIONS: u64 = 3;

fn definition_key(number: u64) -> Key {
    Key::new(PartitionId(1), number)
}

fn definition(number: u64) -> Payload {
    let metadata = ProcessMetadata {
        bpmn_process_id: format!("process-{number}").into(),
        version: 1,
        version_tag: "".into(),
        process_definition_key: definition_key(number),
        resource_name: "model.bpmn".into(),
        checksum: Arc::from(&[][..]),
        duplicate: false,
        deployment_key: Key::NONE,
        tenant_id: "<default>".into(),
    };
    Payload::Process(
        ProcessIntent::Created,
        Box::new(ProcessValue { metadata, resource: Arc::from(&b"<no model>"[..]) }),
    )
}

/// What happens: an instance of a definition begins, or one of those that are there ends well or badly.
#[derive(Debug, Clone)]
enum Step {
    Begin(u64),
    End { which: usize, well: bool },
}

fn steps() -> impl Strategy<Value = Vec<(usize, i64, Step)>> {
    let step = prop_oneof![
        (1..=DEFINITIONS).prop_map(Step::Begin),
        (any::<usize>(), any::<bool>()).prop_map(|(which, well)| Step::End { which, well }),
    ];
    prop::collection::vec((0..PARTITIONS.len(), 0_i64..3, step), 1..120)
}

/// An instance as it must be found: definition, state, begin, end.
type Expected = BTreeMap<i64, (u64, i64, i64, Option<i64>)>;

/// The records of each partition, and what they come to.
fn happen(steps: &[(usize, i64, Step)]) -> (Vec<Vec<Record>>, Expected) {
    let (mut records, mut expected): (Vec<Vec<Record>>, Expected) =
        (vec![Vec::new(); PARTITIONS.len()], Expected::new());
    let mut time = 1_000_000;
    let mut add = |of: usize, time: i64, key: Key, payload: Payload| {
        let position = records[of].len() as u64 + 1;
        records[of].push(Record::event(position, time, key, payload));
    };
    for of in 0..PARTITIONS.len() {
        for number in 1..=DEFINITIONS {
            add(of, time, definition_key(number), definition(number));
        }
    }
    let mut counters = [100_u64; PARTITIONS.len()];
    for (of, later, step) in steps {
        time += later;
        let (key, definition, intent) = match step {
            Step::Begin(definition) => {
                counters[*of] += 1;
                let key = Key::new(PARTITIONS[*of], counters[*of]);
                expected.insert(key.raw(), (*definition, 0, time, None));
                (key, *definition, ProcessInstanceIntent::ElementActivating)
            }
            Step::End { which, well } => {
                let open = expected.iter_mut().filter(|(key, (_, state, ..))| {
                    *state == 0 && Key::from_raw(**key).partition() == Some(PARTITIONS[*of])
                });
                let mut open: Vec<_> = open.collect();
                if open.is_empty() {
                    continue;
                }
                let index = which % open.len();
                let (key, row) = &mut open[index];
                (row.1, row.3) = (if *well { 1 } else { 2 }, Some(time));
                let intent = if *well {
                    ProcessInstanceIntent::ElementCompleted
                } else {
                    ProcessInstanceIntent::ElementTerminated
                };
                (Key::from_raw(**key), row.0, intent)
            }
        };
        let value = ProcessInstanceValue {
            bpmn_process_id: format!("process-{definition}").into(),
            version: 1,
            process_definition_key: definition_key(definition),
            process_instance_key: key,
            element_id: format!("process-{definition}").into(),
            bpmn_element_type: BpmnElementType::Process,
            tenant_id: "<default>".into(),
            ..ProcessInstanceValue::default()
        };
        add(*of, time, key, Payload::ProcessInstance(intent, Arc::new(value)));
    }
    (records, expected)
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

/// Where the rows are.
enum Place {
    Directory(tempfile::TempDir),
    Server(String),
}

impl Place {
    /// A new one of each kind.
    fn both() -> [Place; 2] {
        let directory = tempfile::tempdir().expect("a directory");
        [Place::Directory(directory), Place::Server(PostgreSqlServer::shared().new_database())]
    }

    fn model(&self) -> Arc<ReadModel> {
        let model = match self {
            Place::Directory(directory) => ReadModel::new(directory.path(), PARTITIONS),
            Place::Server(url) => {
                let server = PostgreSql::new(url, || Some("of-tests".to_owned())).expect("an address");
                ReadModel::on_server(server, PARTITIONS)
            }
        };
        model.expect("threads can be started")
    }
}

/// Folds all records. At each crash, what the consumer had in memory is lost.
fn fold(place: &Place, records: &[Vec<Record>], crashes: &[usize]) -> Arc<ReadModel> {
    let model = place.model();
    let configuration = model.consumer(Retention::default(), Audited::default()).expect("a good name");
    for (partition, records) in PARTITIONS.into_iter().zip(records) {
        let source = RecordSource::new(partition);
        let mut crashes = crashes.iter().map(|crash| crash % records.len());
        let (mut consumer, _) = opened(&configuration, partition);
        let mut crash = crashes.next();
        let mut index = 0;
        while index < records.len() {
            let record = &records[index];
            index += 1;
            let delivery = Delivery { record, source: &source };
            consumer.export(&delivery, Duration::from_millis(index as u64)).expect("it is taken");
            if index % 7 == 0 {
                consumer.flush(Duration::from_secs(index as u64)).expect("it is written");
            }
            if crash.is_some_and(|crash| crash <= index) {
                crash = crashes.next();
                drop(consumer);
                let (again, place) = opened(&configuration, partition);
                consumer = again;
                assert!(place.position as usize <= index);
                index = place.position as usize;
            }
        }
        consumer.close(Duration::from_secs(1_000)).expect("it is written");
    }
    model
}

fn ask<T: Send + 'static>(model: &ReadModel, read: impl FnOnce(&mut Readers) -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    model.search(move |readers| sender.send(read(readers)).expect("somebody waits")).expect("nobody else searches");
    receiver.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

fn run(model: &ReadModel, search: Search) -> Found {
    ask(model, move |readers| search.run(readers)).expect("it is found")
}

fn keys(found: &Found) -> Vec<i64> {
    let key = |item: &Vec<u8>| {
        let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
        item["processInstanceKey"].as_str().expect("a key").parse().expect("a number")
    };
    found.items.iter().map(key).collect()
}

fn sort_by(name: &str, descending: bool) -> Sort {
    Sort { field: PROCESS_INSTANCES.field(name).expect("a field"), descending }
}

/// In the order of these fields, and last of the keys.
fn ordered(expected: &Expected, sort: &[(&str, bool)]) -> Vec<i64> {
    let mut rows: Vec<_> = expected.iter().collect();
    rows.sort_by(|(one, left), (other, right)| {
        for (name, descending) in sort {
            let ordering = match *name {
                "processDefinitionId" => left.0.cmp(&right.0),
                "state" => left.1.cmp(&right.1),
                "startDate" => left.2.cmp(&right.2),
                // None comes before all others.
                _ => left.3.cmp(&right.3),
            };
            let ordering = if *descending { ordering.reverse() } else { ordering };
            if ordering.is_ne() {
                return ordering;
            }
        }
        one.cmp(other)
    });
    rows.into_iter().map(|(key, _)| *key).collect()
}

fn sorts() -> impl Strategy<Value = Vec<(&'static str, bool)>> {
    let field = prop::sample::select(vec!["processDefinitionId", "state", "startDate", "endDate"]);
    prop::collection::vec((field, any::<bool>()), 0..3)
}

fn pages_are_right(
    model: &ReadModel,
    expected: &Expected,
    sort: &[(&str, bool)],
    limit: u32,
) -> Result<(), TestCaseError> {
    let wanted = ordered(expected, sort);
    let mut search = Search::new(&PROCESS_INSTANCES, Condition::always());
    search.sort = sort.iter().map(|(name, descending)| sort_by(name, *descending)).collect();
    search.limit = limit;
    let turned = |search: &Search, direction, cursor: &Cursor| {
        // As it comes back from a client.
        let cursor =
            Cursor::decode(&cursor.encode(), search.sort.iter().map(|sort| sort.field.kind)).expect("a cursor");
        Search { page: Page::At(direction, cursor), ..search.clone() }
    };
    let (mut pages, mut next) = (Vec::new(), search.clone());
    loop {
        let found = run(model, next);
        prop_assert_eq!(found.total as usize, expected.len());
        let Some((_, last)) = found.ends.clone() else { break };
        next = turned(&search, Direction::After, &last);
        pages.push(found);
    }
    let read: Vec<i64> = pages.iter().flat_map(keys).collect();
    prop_assert_eq!(&read, &wanted);
    for pair in pages.windows(2) {
        let (first, _) = pair[1].ends.clone().expect("a row");
        prop_assert_eq!(&run(model, turned(&search, Direction::Before, &first)).items, &pair[0].items);
    }
    for (number, page) in pages.iter().enumerate() {
        let from = u32::try_from(number).expect("few pages") * limit;
        let same = Search { page: Page::From(from), ..search.clone() };
        prop_assert_eq!(&run(model, same).items, &page.items);
    }
    Ok(())
}

fn filters_are_right(model: &ReadModel, expected: &Expected, state: i64) -> Result<(), TestCaseError> {
    let of_state = Condition::equal(PROCESS_INSTANCES.field("state").expect("a field"), Value::Integer(state));
    let id = PROCESS_INSTANCES.field("processDefinitionId").expect("a field");
    let of_process = Condition::equal(id, Value::Text("process-2".into()));
    let all = Condition::All(vec![of_state.clone(), of_process.clone()]);
    let any = Condition::Any(vec![of_state, of_process]);
    let find = |condition| {
        let mut search = Search::new(&PROCESS_INSTANCES, condition);
        search.limit = 1_000;
        keys(&run(model, search))
    };
    let wanted = |fits: &dyn Fn(u64, i64) -> bool| -> Vec<i64> {
        expected.iter().filter(|(_, row)| fits(row.0, row.1)).map(|(key, _)| *key).collect()
    };
    prop_assert_eq!(find(all), wanted(&|definition, of| definition == 2 && of == state));
    prop_assert_eq!(find(any), wanted(&|definition, of| definition == 2 || of == state));
    let counts = ask(model, |readers| readers.definition_counts(&Condition::always())).expect("counts");
    for of in counts {
        let number = Key::from_raw(of.key).counter();
        prop_assert_eq!(of.active as usize, wanted(&|definition, state| definition == number && state == 0).len());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn pages_in_any_order_show_each_row_once(
        steps in steps(),
        crashes in prop::collection::vec(any::<usize>(), 0..4),
        sort in sorts(),
        limit in 1_u32..9,
    ) {
        let (records, expected) = happen(&steps);
        for place in Place::both() {
            let model = fold(&place, &records, &crashes);
            pages_are_right(&model, &expected, &sort, limit)?;
        }
    }

    #[test]
    fn filters_find_what_they_say(steps in steps(), crashes in prop::collection::vec(any::<usize>(), 0..4), state in 0_i64..3) {
        let (records, expected) = happen(&steps);
        for place in Place::both() {
            let model = fold(&place, &records, &crashes);
            filters_are_right(&model, &expected, state)?;
        }
    }
}
