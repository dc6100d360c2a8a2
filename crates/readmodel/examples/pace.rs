//! What the fold costs while a node runs one-task instances at a steady rate: the processor time of the thread that reads the
//! encoded records of one partition and writes their rows. Time goes by as the records say, so nothing is waited for, and each
//! transaction holds what it would hold in a node. Arguments: a directory, instances a second, for how many milliseconds each of
//! them lives, how many there are.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exporters::{Arguments, Context, Controller, Delivery, Kept, Opening, PartitionExporter, RecordFilter, Role};
use protocol::{
    BpmnElementType, JobBatchIntent, JobBatchValue, JobIntent, JobValue, Key, PartitionId, Payload,
    ProcessInstanceCreationIntent, ProcessInstanceCreationValue, ProcessInstanceIntent as Intent, ProcessInstanceValue,
    Record, RecordSource, VariableIntent, VariableValue,
};
use readmodel::{Audited, ReadModel, Retention};

const PARTITION: PartitionId = PartitionId(1);
const EPOCH: i64 = 1_700_000_000_000;
const DEFINITION: u64 = 1;
/// Keys of an instance.
const KEYS: u64 = 20;
/// The same as in a node: how many records come before a flush, and how long a rest is at most.
const TURN_RECORDS: usize = 1_000;
const REST_MAX: Duration = Duration::from_millis(10);

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rate, life, instances] = &given[..] else { panic!("give a directory and three numbers") };
    let [rate, life, instances] = [rate, life, instances].map(|text| text.parse::<u64>().expect("a number"));
    let records = Records::of(instances, rate, Duration::from_millis(life));
    let model = ReadModel::new(Path::new(directory), [PARTITION]).expect("threads can be started");
    let mut consumer = open(&model);
    let before = (processor_time(), written_bytes());
    let turns = feed(&mut *consumer, &records);
    let (spent, written) = (processor_time() - before.0, written_bytes() - before.1);
    println!(
        "{:.1} µs and {:.1} KiB written an instance, {} records, {turns} turns",
        spent.as_secs_f64() * 1e6 / instances as f64,
        written as f64 / 1024.0 / instances as f64,
        records.ends.len()
    );
}

/// Of this thread, with what the system did for it.
fn processor_time() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says it");
    Duration::from_nanos(said.split(' ').next().expect("a number").parse().expect("a number"))
}

/// By this process so far, to files.
fn written_bytes() -> u64 {
    let said = std::fs::read_to_string("/proc/self/io").expect("Linux says it");
    let written = said.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("Linux says it");
    written.parse().expect("a number")
}

fn open(model: &Arc<ReadModel>) -> Box<dyn PartitionExporter> {
    let configuration = model.consumer(Retention::default(), Audited::default()).expect("a good name");
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
    consumer
}

/// Hands the records over as the thread of an exporter does.
fn feed(consumer: &mut dyn PartitionExporter, records: &Records) -> u64 {
    let source = RecordSource::new(PARTITION);
    let (mut next, mut now, mut turns) = (0, Duration::ZERO, 0);
    while next < records.ends.len() {
        turns += 1;
        let (mut taken, mut passed) = (0, None);
        while taken < TURN_RECORDS && records.time(next).is_some_and(|time| time <= now) {
            let encoded = records.encoded(next);
            (next, taken) = (next + 1, taken + 1);
            let [position, number, _] = Record::peek(encoded).expect("a record");
            let place = protocol::RecordPlace { incarnation: 1, position, number };
            let subject = Record::peek_subject(encoded).expect("a record");
            if consumer.take_encoded(&subject, encoded, place, now) {
                passed = None;
                continue;
            }
            if !consumer.wants(&subject) {
                passed = Some(place);
                continue;
            }
            let record = Record::read(encoded).expect("a record");
            consumer.export(&Delivery { record: &record, source: &source }, now).expect("it is taken");
            passed = None;
        }
        if let Some(place) = passed {
            consumer.passed(place);
        }
        if consumer.flush_at().is_some_and(|at| at <= now) {
            consumer.flush(now).expect("it is written");
        }
        if taken == TURN_RECORDS {
            continue;
        }
        let Some(time) = records.time(next) else { break };
        let rest = consumer.rests_until().filter(|until| *until > now).map(|until| until.min(now + REST_MAX));
        let wakes = rest.unwrap_or(time.max(now + Duration::from_millis(1)));
        now = consumer.flush_at().map_or(wakes, |at| wakes.min(at.max(now + Duration::from_millis(1))));
    }
    consumer.close(now).expect("it is written");
    turns
}

/// What happens to an instance at a time.
type Step = fn(&mut Records, u64, Duration);

/// Encoded records, one behind the other.
struct Records {
    bytes: Vec<u8>,
    /// When each of them happened, and where it ends.
    ends: Vec<(Duration, usize)>,
}

impl Records {
    /// Each instance begins, hands its job to a worker halfway, and ends.
    fn of(instances: u64, rate: u64, life: Duration) -> Records {
        let begin = |number: u64| Duration::from_nanos(1_000_000_000 / rate * number);
        let steps: [(Duration, Step); 3] =
            [(Duration::ZERO, Records::begins), (life / 2, Records::is_worked_on), (life, Records::ends)];
        let mut all: Vec<_> = (0..instances)
            .flat_map(|number| steps.map(|(after, step)| (begin(number) + after, number, step)))
            .collect();
        all.sort_by_key(|(time, ..)| *time);
        let mut records = Records { bytes: Vec::new(), ends: Vec::new() };
        for (time, number, step) in all {
            step(&mut records, 100 + number * KEYS, time);
        }
        records
    }

    fn time(&self, index: usize) -> Option<Duration> {
        self.ends.get(index).map(|(time, _)| *time)
    }

    fn encoded(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[begin..self.ends[index].1]
    }

    fn event(&mut self, time: Duration, key: u64, payload: Payload) {
        let timestamp = EPOCH + i64::try_from(time.as_millis()).expect("a moment");
        let record = Record::event(self.ends.len() as u64 + 1, timestamp, Key::new(PARTITION, key), payload);
        protocol::encode(&record, &mut self.bytes);
        self.ends.push((time, self.bytes.len()));
    }

    fn element(
        &mut self,
        time: Duration,
        instance: u64,
        offset: u64,
        id: &str,
        of: BpmnElementType,
        intents: &[Intent],
    ) {
        for intent in intents {
            let value = ProcessInstanceValue {
                bpmn_process_id: "one-task".into(),
                version: 1,
                process_definition_key: Key::new(PARTITION, DEFINITION),
                process_instance_key: Key::new(PARTITION, instance),
                element_id: id.into(),
                bpmn_element_type: of,
                flow_scope_key: if offset == 0 { Key::NONE } else { Key::new(PARTITION, instance) },
                tenant_id: "<default>".into(),
                ..ProcessInstanceValue::default()
            };
            self.event(time, instance + offset, Payload::ProcessInstance(*intent, Arc::new(value)));
        }
    }

    fn job(instance: u64) -> JobValue {
        JobValue {
            job_type: "one-task".into(),
            custom_headers: "{}".into(),
            worker: "load".into(),
            retries: 3,
            element_id: "task".into(),
            bpmn_process_id: "one-task".into(),
            process_instance_key: Key::new(PARTITION, instance),
            element_instance_key: Key::new(PARTITION, instance + 5),
            process_definition_key: Key::new(PARTITION, DEFINITION),
            tenant_id: "<default>".into(),
            ..JobValue::default()
        }
    }

    fn begins(&mut self, instance: u64, time: Duration) {
        const BEGIN: [Intent; 2] = [Intent::ElementActivating, Intent::ElementActivated];
        const END: [Intent; 2] = [Intent::ElementCompleting, Intent::ElementCompleted];
        let creation = ProcessInstanceCreationValue { bpmn_process_id: "one-task".into(), ..Default::default() };
        let created = ProcessInstanceCreationIntent::Created;
        self.event(time, instance + 9, Payload::ProcessInstanceCreation(created, Box::new(creation)));
        let text = format!("\"{}\"", "abcdefghijklmnopqrstuvwxyz ".repeat(15));
        let order = "{\"id\":4711,\"express\":true,\"total\":129.95}";
        let variables = [("loadTag", format!("\"{instance:016x}\"")), ("order", order.to_owned()), ("text", text)];
        for (offset, (name, value)) in (11..).zip(variables) {
            let variable = VariableValue {
                name: name.into(),
                value: value.into(),
                scope_key: Key::new(PARTITION, instance),
                process_instance_key: Key::new(PARTITION, instance),
                process_definition_key: Key::new(PARTITION, DEFINITION),
                bpmn_process_id: "one-task".into(),
                tenant_id: "<default>".into(),
            };
            let payload = Payload::Variable(VariableIntent::Created, Box::new(variable));
            self.event(time, instance + offset, payload);
        }
        self.element(time, instance, 0, "one-task", BpmnElementType::Process, &BEGIN);
        self.element(time, instance, 3, "start", BpmnElementType::StartEvent, &BEGIN);
        self.element(time, instance, 3, "start", BpmnElementType::StartEvent, &END);
        self.element(time, instance, 4, "to-task", BpmnElementType::SequenceFlow, &[Intent::SequenceFlowTaken]);
        self.element(time, instance, 5, "task", BpmnElementType::ServiceTask, &BEGIN);
        self.event(time, instance + 6, Payload::Job(JobIntent::Created, Arc::new(Self::job(instance))));
    }

    fn is_worked_on(&mut self, instance: u64, time: Duration) {
        let variables = format!("{{\"text\":\"{}\"}}", "abcdefghijklmnopqrstuvwxyz ".repeat(18));
        let job = JobValue { deadline: EPOCH, variables: variables.into(), ..Self::job(instance) };
        let batch = JobBatchValue {
            job_type: "one-task".into(),
            worker: "load".into(),
            job_keys: vec![Key::new(PARTITION, instance + 6)],
            jobs: vec![job],
            ..JobBatchValue::default()
        };
        self.event(time, instance + 10, Payload::JobBatch(JobBatchIntent::Activated, Box::new(batch)));
    }

    fn ends(&mut self, instance: u64, time: Duration) {
        const END: [Intent; 2] = [Intent::ElementCompleting, Intent::ElementCompleted];
        self.event(time, instance + 6, Payload::Job(JobIntent::Completed, Arc::new(Self::job(instance))));
        self.element(time, instance, 5, "task", BpmnElementType::ServiceTask, &END);
        self.element(time, instance, 7, "to-end", BpmnElementType::SequenceFlow, &[Intent::SequenceFlowTaken]);
        self.element(
            time,
            instance,
            8,
            "end",
            BpmnElementType::EndEvent,
            &[Intent::ElementActivating, Intent::ElementActivated, END[0], END[1]],
        );
        self.element(time, instance, 0, "one-task", BpmnElementType::Process, &END);
    }
}
