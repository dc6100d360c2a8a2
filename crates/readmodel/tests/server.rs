//! A server that several nodes have in common, and that may go and come back.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use exporters::{
    Context, Controller, Delivery, ExporterError, Kept, Opening, PartitionExporter, RecordFilter, Resume, Role,
};
use proptest::prelude::*;
use protocol::{
    BpmnElementType, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessInstanceValue, ProcessIntent,
    ProcessMetadata, ProcessValue, Record, RecordPlace, RecordSource,
};
use readmodel::query::{Condition, Failure, Found, PROCESS_INSTANCES, Readers, Search};
use readmodel::{Audited, PostgreSql, ReadModel, Retention};

#[path = "support/postgresql.rs"]
mod postgresql;

use postgresql::PostgreSqlServer;

const PARTITION: PartitionId = PartitionId(1);

fn model(url: &str) -> Arc<ReadModel> {
    let server = PostgreSql::new(url, || Some("of-tests".to_owned())).expect("an address");
    ReadModel::on_server(server, [PARTITION]).expect("threads can be started")
}

/// A node that leads the partition, with the records that it has derived.
struct Node {
    consumer: Box<dyn PartitionExporter>,
    /// How many records it has handed over; none while the consumer is to be opened.
    next: Option<usize>,
    now: Duration,
}

impl Node {
    fn new(model: &Arc<ReadModel>) -> Node {
        let configuration = model.consumer(Retention::default(), Audited::default()).expect("a good name");
        let mut exporter = (configuration.factory)();
        let mut context = Context {
            name: configuration.name.clone(),
            arguments: exporters::Arguments::new(&configuration.name, configuration.arguments.clone()),
            filter: RecordFilter::default(),
            directory: "/nowhere".into(),
        };
        exporter.configure(&mut context).expect("there is nothing to configure");
        Node { consumer: exporter.partition(PARTITION), next: None, now: Duration::ZERO }
    }

    fn open(&mut self) -> Result<(), ExporterError> {
        let opening = Opening {
            partition: PARTITION,
            incarnation: 1,
            role: Role::Leader,
            acknowledged: RecordPlace::default(),
            beginning: RecordPlace::default(),
            metadata: Arc::from(&[][..]),
            controller: Controller::new(Kept::default(), || {}),
        };
        let Resume::After(place) = self.consumer.open(opening)? else { panic!("it keeps its own place") };
        self.next = Some(usize::try_from(place.position).expect("few records"));
        Ok(())
    }

    /// Hands over so many records, and has them written. What is lost is to be opened again.
    fn go_on(&mut self, records: &[Record], count: usize) -> Result<(), ExporterError> {
        if self.next.is_none() {
            self.open()?;
        }
        let begin = self.next.expect("it is open");
        let end = (begin + count).min(records.len());
        let source = RecordSource::new(PARTITION);
        self.now += Duration::from_secs(2);
        let mut done = Ok(());
        for record in &records[begin.min(end)..end] {
            done = done.and_then(|()| self.consumer.export(&Delivery { record, source: &source }, self.now));
        }
        done = done.and_then(|()| self.consumer.flush(self.now));
        self.next = done.is_ok().then_some(end);
        done
    }

    fn is_through(&self, records: &[Record]) -> bool {
        self.next == Some(records.len())
    }
}

/// A definition, and instances of it of which every other one ends.
fn records(count: u64) -> Vec<Record> {
    let definition = Key::new(PARTITION, 1);
    let metadata = ProcessMetadata {
        bpmn_process_id: "process".into(),
        version: 1,
        version_tag: "".into(),
        process_definition_key: definition,
        resource_name: "model.bpmn".into(),
        checksum: Arc::from(&[][..]),
        duplicate: false,
        deployment_key: Key::NONE,
        tenant_id: "<default>".into(),
    };
    let created = ProcessValue { metadata, resource: Arc::from(&b"<no model>"[..]) };
    let mut payloads = vec![(definition, Payload::Process(ProcessIntent::Created, Box::new(created)))];
    for number in 1..=count {
        let key = Key::new(PARTITION, 100 + number);
        let value = Arc::new(ProcessInstanceValue {
            bpmn_process_id: "process".into(),
            version: 1,
            process_definition_key: definition,
            process_instance_key: key,
            element_id: "process".into(),
            bpmn_element_type: BpmnElementType::Process,
            tenant_id: "<default>".into(),
            ..ProcessInstanceValue::default()
        });
        let begun = Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value.clone());
        payloads.push((key, begun));
        if number % 2 == 0 {
            payloads.push((key, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)));
        }
    }
    let record = |(position, (key, payload))| Record::event(position, 1_000, key, payload);
    (1..).zip(payloads).map(record).collect()
}

fn ask<T: Send + 'static>(model: &ReadModel, read: impl FnOnce(&mut Readers) -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    model.search(move |readers| sender.send(read(readers)).expect("somebody waits")).expect("nobody else searches");
    receiver.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

fn all(model: &ReadModel) -> Result<Found, Failure> {
    let search = Search { limit: 1_000, ..Search::new(&PROCESS_INSTANCES, Condition::always()) };
    ask(model, move |readers| search.run(readers))
}

/// What is found, and what was counted on the way.
fn assert_complete(model: &ReadModel, count: u64) {
    assert_eq!(all(model).expect("it is found").total, count);
    let counts = ask(model, |readers| readers.definition_counts(&Condition::always())).expect("counts");
    assert_eq!(counts.iter().map(|of| of.active).collect::<Vec<_>>(), [i64::try_from(count.div_ceil(2)).unwrap()]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn two_nodes_that_lead_at_once_write_each_record_once(
        turns in prop::collection::vec((0_usize..2, 0_usize..9, any::<bool>()), 1..40),
    ) {
        const INSTANCES: u64 = 40;
        let url = PostgreSqlServer::shared().new_database();
        let (models, records) = ([model(&url), model(&url)], records(INSTANCES));
        let mut nodes = models.each_ref().map(Node::new);
        let mut overtaken = 0;
        for (which, count, ends) in turns {
            if ends {
                // Killed, and started again.
                nodes[which] = Node::new(&models[which]);
            }
            if let Err(error) = nodes[which].go_on(&records, count) {
                prop_assert!(error.is_loss() && error.to_string().contains("another node has written"), "{error}");
                overtaken += 1;
            }
        }
        let mut rounds = 0;
        while !nodes.iter().all(|node| node.is_through(&records)) {
            for node in &mut nodes {
                // Whoever is overtaken begins again behind the other one.
                let _ = node.go_on(&records, records.len());
            }
            rounds += 1;
            prop_assert!(rounds < 5, "they come to an end; {overtaken} were overtaken before");
        }
        assert_complete(&models[0], INSTANCES);
    }
}

#[test]
fn a_search_at_a_node_that_does_not_lead_waits_for_the_one_that_does() {
    const INSTANCES: u64 = 10;
    let url = PostgreSqlServer::shared().new_database();
    let (models, records) = ([model(&url), model(&url)], records(INSTANCES));
    let [mut leader, mut follower] = models.each_ref().map(Node::new);
    leader.go_on(&records, 5).expect("it is there");
    let (called, calls) = mpsc::channel();
    let controller = Controller::new(Kept::default(), move || {
        let _ = called.send(());
    });
    assert_eq!(follower.consumer.follow(&controller, Duration::ZERO), None, "nobody waits");
    let (sender, reached) = mpsc::channel();
    let progress = models[1].progress(PARTITION);
    let waits_for = |position: u64| {
        let sender = sender.clone();
        progress.when(position, move || {
            let _ = sender.send(position);
        })
    };
    let _waiters = [5, 8].map(waits_for);
    assert!(calls.try_recv().is_ok(), "who waits calls the thread of the consumer");
    let again = follower.consumer.follow(&controller, Duration::ZERO);
    assert_eq!(reached.try_iter().collect::<Vec<_>>(), [5], "the leader has written so much");
    assert!(again.is_some_and(|at| at < Duration::from_secs(1)), "it looks again soon: {again:?}");
    leader.go_on(&records, records.len()).expect("it is there");
    assert_eq!(follower.consumer.follow(&controller, Duration::from_secs(1)), None, "nobody waits any more");
    assert_eq!(reached.try_iter().collect::<Vec<_>>(), [8]);
    assert_complete(&models[1], INSTANCES);
    // It has written nothing, so the leader is not overtaken.
    leader.go_on(&records, 1).expect("nobody else writes");
}

#[test]
fn an_encrypted_connection_is_one_to_the_server_that_is_meant() {
    let tls = concat!(env!("CARGO_MANIFEST_DIR"), "/../osmia/tests/tls");
    let certificate = format!("{tls}/certificate.pem");
    let read = |path: &str| std::fs::read(path).expect("a file");
    let server = PostgreSqlServer::start_encrypted(&read(&certificate), &read(&format!("{tls}/key.pem")));
    let url = server.new_database();
    let encrypted = |mode: &str| Node::new(&model(&format!("{url}?{mode}")));
    let mut node = encrypted(&format!("sslmode=verify-full&sslrootcert={certificate}"));
    node.open().expect("it is the server that is meant");
    let count =
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'osmia' AND ssl";
    assert_eq!(server.psql(&url, count), "1");
    drop(node);
    let error = encrypted("sslmode=verify-full").open().expect_err("nobody knows who signed this").to_string();
    assert!(error.contains("certificate"), "{error}");

    let plain = PostgreSqlServer::shared().new_database();
    let error =
        Node::new(&model(&format!("{plain}?sslmode=require"))).open().expect_err("it cannot encrypt").to_string();
    assert!(error.contains("TLS"), "{error}");
}

#[test]
fn a_server_that_is_away_is_waited_for() {
    const INSTANCES: u64 = 10;
    let mut server = PostgreSqlServer::start();
    let url = server.new_database();
    let (model, records) = (model(&url), records(INSTANCES));
    let mut node = Node::new(&model);
    let error = all(&model).expect_err("no node has made the tables yet").to_string();
    assert!(error.starts_with("The read model is not available: "), "{error}");
    node.go_on(&records, 5).expect("it is there");
    // Past the pause in which the server is not looked for again.
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(all(&model).expect("it is found").total, 3);

    server.stop();
    let error = node.go_on(&records, 3).expect_err("it is away");
    assert!(error.is_loss(), "what was taken comes again: {error}");
    let error = node.go_on(&records, 3).expect_err("it is away still");
    assert!(!error.is_loss() && error.to_string().contains("could not open its rows"), "{error}");
    for _ in 0..3 {
        let error = all(&model).expect_err("there is nothing to search in");
        assert!(matches!(error, Failure::Away(_)), "{error}");
    }

    server.run();
    node.go_on(&records, records.len()).expect("it is there again");
    assert!(node.is_through(&records));
    std::thread::sleep(Duration::from_millis(1_100));
    assert_complete(&model, INSTANCES);
    node.consumer.close(Duration::from_secs(999)).expect("everything is written");
}
