//! Fills a read model with instances of a process with one task, by feeding records to the fold, and measures it: bytes of each
//! table and index, and searches. Arguments: a directory, how many instances ended, how many wait. With `delete` as the fourth
//! one, what ended is deleted then, as a node does it that has nothing else to do.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use exporters::{Arguments, Context, Controller, Delivery, Kept, Opening, PartitionExporter, RecordFilter, Role};
use protocol::{
    BpmnElementType, JobIntent, JobValue, Key, PartitionId, Payload, ProcessInstanceIntent as Intent,
    ProcessInstanceValue, Record, RecordSource, VariableIntent, VariableValue,
};
use readmodel::query::{Condition, Direction, Entity, PROCESS_INSTANCES, Page, Search, Sort, Test, Value};
use readmodel::{Audited, ReadModel, Retention};

const PARTITION: PartitionId = PartitionId(1);
/// Instances that begin in the same second.
const PER_SECOND: u64 = 150;
const EPOCH: i64 = 1_700_000_000_000;
/// Definitions take the first keys.
const DEFINITIONS: u64 = 10;
/// Keys of an instance.
const KEYS: u64 = 20;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [directory, ended, waiting, rest @ ..] = &given[..] else { panic!("give a directory and two numbers") };
    let (ended, waiting): (u64, u64) = (ended.parse().expect("a number"), waiting.parse().expect("a number"));
    let directory = Path::new(directory);
    let model = ReadModel::new(directory, [PARTITION]).expect("threads can be started");
    let mut feed = Feed::open(&model, Retention::default());
    if feed.position == 0 {
        let begin = Instant::now();
        for number in 0..ended + waiting {
            feed.instance(number, number < ended);
        }
        println!("{} instances in {:.1?}", ended + waiting, begin.elapsed());
    }
    feed.consumer.close(feed.now()).expect("it is written");
    bytes(directory, ended + waiting);
    search(&model, ended);
    if rest == ["delete"] {
        delete(&model, &directory.join("partition-1.sqlite"), ended);
    }
}

/// Deletes what ended: how long that takes, how long each transaction holds up the fold, and how long the file is then.
fn delete(model: &Arc<ReadModel>, file: &Path, ended: u64) {
    let retention = Retention { completed: Some(Duration::from_secs(60)), terminated: None };
    let mut feed = Feed::open(model, retention);
    let size = || std::fs::metadata(file).expect("a file").len() >> 20;
    let (before, mut times, mut idle) = (size(), Vec::new(), Duration::ZERO);
    while let Some(at) = feed.consumer.flush_at() {
        let now = feed.now();
        let pause = at.saturating_sub(now);
        // A pass that found nothing more waits for a while.
        if pause > Duration::from_secs(2) {
            break;
        }
        std::thread::sleep(pause);
        idle += pause;
        let begin = Instant::now();
        feed.consumer.flush(feed.now()).expect("it is written");
        times.push(begin.elapsed());
    }
    times.sort();
    let (median, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "{ended} deleted in {:.1?} with {idle:.1?} of pauses, {} transactions: p50 {median:.2?}, p99 {slow:.2?}, longest {:.2?}",
        feed.now(),
        times.len(),
        times[times.len() - 1],
    );
    feed.consumer.close(feed.now()).expect("it is written");
    println!("the file had {before} MiB and has {} MiB", size());
}

struct Feed {
    consumer: Box<dyn PartitionExporter>,
    source: RecordSource,
    position: u64,
    begin: Instant,
}

impl Feed {
    fn open(model: &Arc<ReadModel>, retention: Retention) -> Feed {
        let configuration = model.consumer(retention, Audited::default()).expect("a good name");
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
            acknowledged: protocol::RecordPlace::default(),
            beginning: protocol::RecordPlace::default(),
            metadata: Arc::from(&[][..]),
            controller: Controller::new(Kept::default(), || {}),
        };
        consumer.open(opening).expect("it opens");
        let position = model.progress(PARTITION).position();
        Feed { consumer, source: RecordSource::new(PARTITION), position, begin: Instant::now() }
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn event(&mut self, time: i64, key: Key, payload: Payload) {
        self.position += 1;
        let record = Record::event(self.position, time, key, payload);
        let now = self.now();
        self.consumer.export(&Delivery { record: &record, source: &self.source }, now).expect("it is taken");
        if self.consumer.flush_at().is_some_and(|at| at <= now) {
            self.consumer.flush(now).expect("it is written");
        }
    }

    fn element(&mut self, time: i64, of: (u64, u64), offset: u64, element: (&str, BpmnElementType), intent: Intent) {
        let (definition, instance) = of;
        let is_process = element.1 == BpmnElementType::Process;
        let value = ProcessInstanceValue {
            bpmn_process_id: format!("process-{definition}").into(),
            version: 1,
            process_definition_key: Key::new(PARTITION, definition),
            process_instance_key: Key::new(PARTITION, instance),
            element_id: element.0.into(),
            bpmn_element_type: element.1,
            flow_scope_key: if is_process { Key::NONE } else { Key::new(PARTITION, instance) },
            tenant_id: "<default>".into(),
            ..ProcessInstanceValue::default()
        };
        self.event(time, Key::new(PARTITION, instance + offset), Payload::ProcessInstance(intent, Arc::new(value)));
    }

    fn variable(&mut self, time: i64, of: (u64, u64), offset: u64, name: &str, value: String) {
        let instance = Key::new(PARTITION, of.1);
        let value = VariableValue {
            name: name.into(),
            value: value.into(),
            scope_key: instance,
            process_instance_key: instance,
            process_definition_key: Key::new(PARTITION, of.0),
            bpmn_process_id: format!("process-{}", of.0).into(),
            tenant_id: "<default>".into(),
        };
        let key = Key::new(PARTITION, of.1 + offset);
        self.event(time, key, Payload::Variable(VariableIntent::Created, Box::new(value)));
    }

    fn instance(&mut self, number: u64, ends: bool) {
        let definition = 1 + number % DEFINITIONS;
        let of = (definition, 100 + number * KEYS);
        let time = EPOCH + i64::try_from(number * 1_000 / PER_SECOND).expect("a moment");
        let process = format!("process-{definition}");
        let process = (&*process, BpmnElementType::Process);
        let (start, task) = (("start", BpmnElementType::StartEvent), ("task", BpmnElementType::ServiceTask));
        let (flow, end) = (BpmnElementType::SequenceFlow, ("end", BpmnElementType::EndEvent));
        self.element(time, of, 0, process, Intent::ElementActivating);
        self.variable(time, of, 1, "orderId", number.to_string());
        self.variable(time, of, 2, "customer", format!("\"customer-{}\"", number % 1_000));
        self.element(time, of, 3, start, Intent::ElementActivating);
        self.element(time, of, 3, start, Intent::ElementCompleted);
        self.element(time, of, 4, ("flow-1", flow), Intent::SequenceFlowTaken);
        self.element(time, of, 5, task, Intent::ElementActivating);
        let job = JobValue {
            job_type: "work".into(),
            worker: "worker".into(),
            retries: 3,
            element_id: "task".into(),
            process_instance_key: Key::new(PARTITION, of.1),
            element_instance_key: Key::new(PARTITION, of.1 + 5),
            process_definition_key: Key::new(PARTITION, definition),
            ..JobValue::default()
        };
        let (job, key) = (Arc::new(job), Key::new(PARTITION, of.1 + 6));
        self.event(time, key, Payload::Job(JobIntent::Created, job.clone()));
        if !ends {
            return;
        }
        let time = time + 40;
        self.event(time, key, Payload::Job(JobIntent::Completed, job));
        self.element(time, of, 5, task, Intent::ElementCompleted);
        self.element(time, of, 7, ("flow-2", flow), Intent::SequenceFlowTaken);
        self.element(time, of, 8, end, Intent::ElementActivating);
        self.element(time, of, 8, end, Intent::ElementCompleted);
        self.element(time, of, 0, process, Intent::ElementCompleted);
    }
}

fn bytes(directory: &Path, instances: u64) {
    let path = directory.join("partition-1.sqlite");
    let file = std::fs::metadata(&path).expect("a file").len();
    println!("{:.0} bytes for an instance", file as f64 / instances as f64);
    let database = rusqlite::Connection::open(path).expect("a file");
    let select = "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name ORDER BY 2 DESC LIMIT 24";
    let mut statement = database.prepare(select).expect("a statement");
    let mut rows = statement.query([]).expect("rows");
    while let Some(row) = rows.next().expect("a row") {
        let (name, bytes): (String, i64) = (row.get(0).expect("a name"), row.get(1).expect("a number"));
        println!("{:8.1}  {name}", bytes as f64 / instances as f64);
    }
}

fn equal(name: &str, value: Value) -> Condition {
    Condition::equal(PROCESS_INSTANCES.field(name).expect("a field"), value)
}

/// Runs a search with changing values: how long the slowest in a hundred takes.
fn measure(model: &Arc<ReadModel>, what: &str, searches: impl Fn(u64) -> Search) {
    const ROUNDS: u64 = 200;
    let mut times = Vec::new();
    let mut found = 0;
    for round in 0..ROUNDS {
        let (sender, receiver) = mpsc::channel();
        let search = searches(round.wrapping_mul(0x9E37_79B9));
        let task = move |readers: &mut readmodel::query::Readers| {
            let begin = Instant::now();
            let found = search.run(readers).map(|found| found.items.len());
            sender.send((begin.elapsed(), found)).expect("somebody waits");
        };
        model.search(task).expect("nobody else searches");
        let (time, rows) = receiver.recv().expect("an answer");
        match rows {
            Ok(rows) => found += rows,
            Err(failure) => return println!("{what}: {failure}"),
        }
        times.push(time);
    }
    times.sort();
    let (median, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{what}: p50 {median:.2?}, p99 {slow:.2?}, {} rows each", found as f64 / ROUNDS as f64);
}

fn search(model: &Arc<ReadModel>, ended: u64) {
    let entity: &'static Entity = &PROCESS_INSTANCES;
    let with = |condition: Condition, sort: &[(&str, bool)]| {
        let mut search = Search::new(entity, condition);
        let sorts = sort
            .iter()
            .map(|(name, descending)| Sort { field: entity.field(name).expect("a field"), descending: *descending });
        search.sort = sorts.collect();
        search.limit = 50;
        search
    };
    let key = |number: u64| Value::Integer(Key::new(PARTITION, 100 + (number % ended.max(1)) * KEYS).raw());
    let definition = |number: u64| Value::Integer(Key::new(PARTITION, 1 + number % DEFINITIONS).raw());
    let state = |state| equal("state", Value::Integer(state));
    measure(model, "by key", |number| with(equal("processInstanceKey", key(number)), &[]));
    for (name, of) in [("active", 0), ("completed", 1)] {
        let both = move |number| Condition::All(vec![state(of), equal("processDefinitionKey", definition(number))]);
        measure(model, &format!("by state ({name}) and definition"), move |number| with(both(number), &[]));
        measure(model, &format!("by state ({name}) and definition, newest first"), move |number| {
            with(both(number), &[("startDate", true)])
        });
    }
    measure(model, "by variable that one has", |number| {
        let test = Test::Equal(Value::Text((number % ended.max(1)).to_string()));
        with(Condition::Variable("orderId".into(), vec![test]), &[])
    });
    measure(model, "by variable that a thousandth has", |number| {
        let test = Test::Equal(Value::Text(format!("\"customer-{}\"", number % 1_000)));
        with(Condition::Variable("customer".into(), vec![test]), &[])
    });
    let start = entity.field("startDate").expect("a field");
    let day = |number: u64| {
        let from = EPOCH + i64::try_from((number % ended.max(1)) * 1_000 / PER_SECOND).expect("a moment");
        let tests = vec![Test::GreaterOrEqual(Value::Integer(from)), Test::Less(Value::Integer(from + 3_600_000))];
        Condition::Is(start, tests)
    };
    measure(model, "by date, in its order", |number| with(day(number), &[("startDate", false)]));
    measure(model, "all, newest first", |_| with(Condition::always(), &[("startDate", true)]));
    let (sender, receiver) = mpsc::channel();
    let first = with(Condition::always(), &[("startDate", true)]);
    let task = move |readers: &mut readmodel::query::Readers| {
        let mut search = first.clone();
        for _ in 1..1_000 {
            let Some((_, last)) = search.run(readers).expect("a page").ends else { break };
            search.page = Page::At(Direction::After, last);
        }
        sender.send(search).expect("somebody waits");
    };
    model.search(task).expect("nobody else searches");
    let thousandth = receiver.recv().expect("a page");
    measure(model, "all, newest first, page 1,000", |_| thousandth.clone());
}
