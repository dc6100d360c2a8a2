mod server;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use protocol::{
    IncidentIntent, JobIntent, JobValue, Key, PartitionId, Payload, Record, RecordPlace, RecordSource, VariableIntent,
    VariableValue,
};
use serde_json::{Map, Value, json};

use super::*;
use crate::{Arguments, Controller, Delivery, Kept, Opening, RecordFilter, Role};
use server::{Fault, Server};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn context(arguments: Value, directory: &std::path::Path) -> (Context, &'static [&'static str]) {
    let Value::Object(arguments) = arguments else { panic!("a mapping") };
    let arguments = Arguments::new("search", arguments);
    let filter = RecordFilter::default();
    (Context { name: "search".to_owned(), arguments, filter, directory: directory.to_owned() }, INDEX_ARGUMENTS)
}

/// The exporter, the filter and where it may write.
fn configured(
    flavour: Flavour,
    arguments: Value,
    directory: &std::path::Path,
) -> Result<(Elasticsearch, RecordFilter), ExporterError> {
    let (mut context, own) = context(arguments, directory);
    context.filter = RecordFilter::default().with_arguments(&mut context.arguments, own)?;
    let mut exporter = Elasticsearch::new(flavour);
    exporter.configure(&mut context)?;
    // Nobody waits in a test.
    let target = Arc::get_mut(exporter.target.as_mut().expect("configured")).expect("nobody else has it");
    target.settings.pauses = (Duration::from_millis(1), Duration::from_millis(8));
    Ok((exporter, context.filter))
}

fn record(position: u64) -> Record {
    let payload = match position % 3 {
        0 => Payload::Incident(IncidentIntent::Created, Box::default()),
        1 => {
            let job = JobValue { variables: "{\n  \"a\": \"line\\nbreak\"\r\n}".into(), ..JobValue::default() };
            Payload::Job(JobIntent::Created, Arc::new(job))
        }
        _ => Payload::Variable(
            VariableIntent::Created,
            Box::new(VariableValue {
                name: "amount".into(),
                value: "12.5".into(),
                scope_key: Key::NONE,
                process_instance_key: Key::NONE,
                process_definition_key: Key::NONE,
                bpmn_process_id: "order".into(),
                tenant_id: protocol::DEFAULT_TENANT.into(),
            }),
        ),
    };
    Record::event(position, 1_700_000_000_000, Key::NONE, payload)
}

/// Does for a partition what the node does.
struct Feeder {
    exporter: Box<dyn PartitionExporter>,
    controller: Controller,
    source: RecordSource,
    started: Instant,
    /// What `flush` said last.
    trouble: Option<String>,
}

impl Feeder {
    fn new(exporter: &Elasticsearch, partition: u16, kept: Kept) -> Feeder {
        Feeder::open(exporter, partition, kept).expect("somebody is there")
    }

    fn open(exporter: &Elasticsearch, partition: u16, kept: Kept) -> Result<Feeder, ExporterError> {
        let partition = PartitionId(partition);
        let controller = Controller::new(kept.clone(), || {});
        let mut consumer = exporter.partition(partition);
        let opening = Opening {
            partition,
            incarnation: 1,
            role: Role::Leader,
            acknowledged: kept.acknowledged,
            beginning: RecordPlace::default(),
            metadata: kept.metadata,
            controller: controller.clone(),
        };
        consumer.open(opening)?;
        let source = RecordSource::new(partition);
        Ok(Feeder { exporter: consumer, controller, source, started: Instant::now(), trouble: None })
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn export(&mut self, position: u64) {
        let record = record(position);
        let until = Instant::now() + PATIENCE;
        loop {
            let now = self.now();
            match self.exporter.export(&Delivery { record: &record, source: &self.source }, now) {
                Ok(()) => return,
                Err(error) => assert!(Instant::now() < until, "it stays so: {error}"),
            }
        }
    }

    /// Flushes if the exporter wants to.
    fn turn(&mut self) {
        if self.exporter.flush_at().is_some_and(|at| at <= self.now()) {
            self.trouble = self.exporter.flush(self.now()).err().map(|error| error.to_string());
        }
    }

    /// Waits for something, and flushes meanwhile.
    fn until(&mut self, what: &str, mut is_so: impl FnMut(&Feeder) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            self.turn();
            assert!(Instant::now() < until, "{what} does not happen; trouble: {:?}", self.trouble);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn until_acknowledged(&mut self, position: u64) {
        let what = format!("the acknowledgement of {position}");
        self.until(&what, |feeder| feeder.acknowledged() == position);
    }

    fn acknowledged(&self) -> u64 {
        self.controller.acknowledged().position
    }
}

/// Checks that every record is there once, with the sequence that it must have.
fn assert_complete(server: &Server, partition: u16, positions: std::ops::RangeInclusive<u64>) {
    let documents = server.documents();
    let mut counters: std::collections::BTreeMap<String, u64> = Default::default();
    for position in positions {
        let (index, routing, document) = &documents[&format!("{partition}-{position}")];
        let of = document["valueType"].as_str().expect("a text");
        let counter = counters.entry(of.to_owned()).or_default();
        *counter += 1;
        assert_eq!(document["sequence"], (u64::from(partition) << 51) + *counter, "{partition}-{position}");
        assert_eq!(document["position"], position);
        assert_eq!(*routing, partition.to_string());
        let expected = format!("zeebe-record_{}_8.9.0_2023-11-14", of.to_ascii_lowercase());
        assert_eq!(*index, expected);
    }
}

#[test]
fn records_arrive_with_their_names_numbers_and_templates() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let arguments =
        json!({ "url": server.url(), "bulk": { "size": 4, "delay": 0 }, "index": { "numberOfReplicas": 0 } });
    let (exporter, filter) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    assert!(filter.accepts(&record(1)));
    let mut feeder = Feeder::new(&exporter, 3, Kept::default());
    assert_eq!(feeder.exporter.flush_at(), None, "nothing to do");
    for position in 1..=10 {
        feeder.export(position);
    }
    feeder.until_acknowledged(10);
    assert_complete(&server, 3, 1..=10);
    assert_eq!(server.documents()["3-1"].2["value"]["variables"], json!({ "a": "line\nbreak" }));
    let asked = server.asked();
    let paths: BTreeSet<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert!(paths.contains("/_component_template/zeebe-record-8.9.0"), "{paths:?}");
    // Of the others that are wanted there are no records.
    let types = ["deployment", "process", "incident", "variable", "process-instance", "job", "user-task"];
    for of in types {
        assert!(paths.contains(&*format!("/_index_template/zeebe-record_{of}_8.9.0")), "{of} in {paths:?}");
    }
    assert_eq!(paths.len(), types.len() + 1, "{paths:?}");
    let job = asked.iter().find(|asked| asked.path.ends_with("_job_8.9.0")).expect("there");
    let job: Value = serde_json::from_str(&job.body).expect("JSON");
    assert_eq!(job["index_patterns"], json!(["zeebe-record_job_8.9.0_*"]));
    assert_eq!(job["composed_of"], json!(["zeebe-record-8.9.0"]));
    assert_eq!(job["template"]["aliases"], json!({ "zeebe-record-job": {} }));
    assert_eq!(job["template"]["settings"]["number_of_replicas"], 0);
    assert_eq!(job["template"]["settings"]["number_of_shards"], 3);
    let value = &job["template"]["mappings"]["properties"]["value"];
    assert_eq!(value["properties"]["retries"], json!({ "type": "long" }));
    assert_eq!(value["properties"]["variables"], json!({ "type": "object", "enabled": false }));
    feeder.exporter.close(feeder.now()).expect("everything is taken");
}

#[test]
fn an_encrypted_target_must_have_a_certificate_that_is_trusted() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let pem =
        |name: &str| [env!("CARGO_MANIFEST_DIR"), "..", "osmia", "tests", "tls", name].iter().collect::<PathBuf>();
    let server = Server::start_encrypted(&pem("certificate.pem"), &pem("key.pem"));
    let bulk = json!({ "size": 4, "delay": 0 });
    let arguments = json!({ "url": server.url(), "bulk": bulk });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let trouble = Feeder::open(&exporter, 1, Kept::default()).err().expect("it is not trusted").to_string();
    assert!(trouble.contains(&server.url()) && trouble.contains("certificate"), "{trouble}");

    let security = json!({ "certificatePath": pem("certificate.pem") });
    let authentication = json!({ "username": "osmia", "password": "secret" });
    let arguments =
        json!({ "url": server.url(), "bulk": bulk, "security": security, "authentication": authentication });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.until_acknowledged(1);
    assert!(server.documents().contains_key("1-1"));
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == "Basic b3NtaWE6c2VjcmV0"), "{asked:?}");
}

#[test]
fn a_restart_goes_on_with_the_sequences() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let arguments = json!({ "url": server.url(), "bulk": { "size": 5, "delay": "1h", "inFlight": 1 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    for position in 1..=13 {
        feeder.export(position);
    }
    feeder.until("two bulks", |feeder| feeder.acknowledged() >= 10);
    let (kept, _) = feeder.controller.kept();
    // What is collected is lost with the process.
    drop(feeder);
    let mut feeder = Feeder::new(&exporter, 1, kept.clone());
    for position in kept.acknowledged.position + 1..=17 {
        feeder.export(position);
    }
    feeder.exporter.close(feeder.now()).expect("everything is taken");
    assert_eq!(feeder.acknowledged(), 17);
    assert_complete(&server, 1, 1..=17);
}

#[test]
fn bulks_are_full_under_load_and_the_delay_counts_from_the_last_one() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let arguments = json!({ "url": server.url(), "bulk": { "size": 100, "delay": "1h", "memoryLimit": "1MB" } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    assert_eq!(feeder.exporter.flush_at(), Some(Duration::ZERO), "after a silence, at once");
    feeder.turn();
    feeder.until_acknowledged(1);
    assert_eq!(feeder.exporter.flush_at(), None, "nothing to send");
    for position in 2..=501 {
        feeder.export(position);
        feeder.turn();
    }
    feeder.until_acknowledged(501);
    feeder.export(502);
    let hour = Duration::from_secs(3_600);
    assert!(
        feeder.exporter.flush_at().is_some_and(|at| at > hour / 2 && at < feeder.now() + hour),
        "an hour after the last"
    );
    let mut bulks = server.bulks();
    bulks.sort_unstable();
    assert_eq!(bulks, [1, 100, 100, 100, 100, 100]);
}

#[test]
fn a_bulk_has_no_more_bytes_than_it_may() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let arguments = json!({ "url": server.url(), "bulk": { "delay": "1h", "memoryLimit": 2000 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    for position in 1..=30 {
        feeder.export(position);
    }
    feeder.exporter.close(feeder.now()).expect("everything is taken");
    assert!(server.bulks().iter().all(|records| *records <= 4), "{:?}", server.bulks());
    assert_complete(&server, 1, 1..=30);
}

#[test]
fn several_bulks_are_under_way_and_no_more_than_allowed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.fail([Fault::None, Fault::Slow(3_000), Fault::Slow(2_000), Fault::Slow(2_500), Fault::Slow(50)]);
    let arguments = json!({ "url": server.url(), "bulk": { "size": 1, "delay": "1h", "inFlight": 3 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.until_acknowledged(1);
    for position in 2..=12 {
        feeder.export(position);
    }
    feeder.until_acknowledged(12);
    assert_eq!(server.most_under_way(), 3);
    assert_complete(&server, 1, 1..=12);
}

#[test]
fn a_target_that_is_away_is_told_and_forgotten_when_it_is_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.fail_schema([Fault::Status(503), Fault::CutBefore, Fault::None, Fault::Status(500)]);
    server.fail(vec![Fault::Status(401); 200]);
    let arguments = json!({ "url": server.url(), "bulk": { "size": 2, "delay": 0 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.export(2);
    feeder.until("trouble", |feeder| feeder.trouble.as_ref().is_some_and(|trouble| trouble.contains("401")));
    let trouble = feeder.trouble.clone().expect("just seen");
    assert!(trouble.contains("'search' could not send records of partition 1"), "{trouble}");
    assert!(trouble.contains("check authentication.username"), "{trouble}");
    feeder.until_acknowledged(2);
    feeder.until("no trouble, although nothing else happens", |feeder| feeder.trouble.is_none());
    assert_eq!(feeder.exporter.flush_at(), None);
    feeder.export(3);
    feeder.until_acknowledged(3);
    assert_eq!(feeder.exporter.flush_at(), None);
    assert_complete(&server, 1, 1..=3);
}

#[test]
fn what_is_refused_for_its_content_is_set_aside_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.refuse("1-4");
    server.refuse("1-5");
    server.fail([Fault::Some(429, 0)]);
    let arguments = json!({ "url": server.url(), "bulk": { "size": 10, "delay": "1h" } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    for position in 1..=10 {
        feeder.export(position);
    }
    feeder.until_acknowledged(10);
    let ids: Vec<String> = server.documents().into_keys().collect();
    assert_eq!(ids.len(), 8, "{ids:?}");
    let path = directory.path().join("search.rejected.jsonl");
    let text = std::fs::read_to_string(&path).expect("there");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut positions: Vec<u64> = lines.iter().filter_map(|line| line["record"]["position"].as_u64()).collect();
    positions.sort_unstable();
    assert_eq!(positions, [4, 5]);
    assert_eq!((&lines[0]["status"], &lines[0]["error"]["reason"]), (&json!(400), &json!("odd")));
    assert!(lines[0]["action"]["index"]["_index"].is_string() && lines[0]["format"] == 1);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
}

/// What hits every document of an index is the target's trouble: nothing is set aside or acknowledged until it is mended.
#[test]
fn a_target_that_refuses_all_records_of_a_kind_stops_the_exporter() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.refuse_index(Some("_job_"));
    let arguments = json!({ "url": server.url(), "bulk": { "size": 400, "delay": "1h" } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    for position in 1..=400 {
        feeder.export(position);
    }
    feeder.until("trouble", |feeder| feeder.trouble.is_some());
    let trouble = feeder.trouble.clone().expect("just seen");
    for part in ["refuses 134 of the last 134 records of value type JOB", "status 400", "odd", "rejected.stopWhenMany"]
    {
        assert!(trouble.contains(part), "{part} in {trouble}");
    }
    feeder.until("more tries", |_| server.bulks().len() > 5);
    assert_eq!(server.bulks()[1..5], [134; 4], "what was taken is not sent again");
    let rejected = directory.path().join("search.rejected.jsonl");
    assert!(feeder.acknowledged() == 0 && !rejected.exists());
    // A single odd record among them is set aside when the others are taken.
    server.refuse("1-7");
    server.refuse_index(None);
    feeder.until_acknowledged(400);
    feeder.until("no trouble", |feeder| feeder.trouble.is_none());
    assert_eq!(server.documents().len(), 399);
    assert_eq!(std::fs::read_to_string(&rejected).expect("there").lines().count(), 1);
}

#[test]
fn small_bulks_that_are_refused_stop_the_exporter_too_unless_it_shall_not() {
    for stops in [true, false] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = Server::start();
        server.refuse_index(Some("_job_"));
        let arguments = json!({
            "url": server.url(), "bulk": { "size": 3, "delay": 0, "inFlight": 1 }, "rejected": { "stopWhenMany": stops },
        });
        let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
        let mut feeder = Feeder::new(&exporter, 1, Kept::default());
        let is_stopped =
            |feeder: &Feeder| feeder.trouble.as_ref().is_some_and(|trouble| trouble.contains("stopWhenMany"));
        let mut position = 0;
        while position < 600 && !is_stopped(&feeder) {
            position += 1;
            feeder.export(position);
            feeder.turn();
            if position % 3 == 0 {
                feeder.until("an answer", |feeder| is_stopped(feeder) || feeder.exporter.flush_at().is_none());
            }
        }
        // The hundredth refusal is that of record 298; on a slow machine its bulk is sent before two more have come.
        assert!(if stops { (298..=300).contains(&position) } else { position == 600 }, "{position}");
        if !stops {
            feeder.until_acknowledged(600);
        }
        let text = std::fs::read_to_string(directory.path().join("search.rejected.jsonl")).expect("there");
        assert_eq!(text.lines().count(), if stops { 99 } else { 200 });
    }
}

#[test]
fn an_exporter_is_not_open_before_somebody_is_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let (exporter, _) =
        configured(Flavour::Elasticsearch, json!({ "url": server.url() }), directory.path()).expect("right");
    for (status, part) in [(503, "503"), (401, "check authentication.username")] {
        server.greet(Some(status));
        let trouble = Feeder::open(&exporter, 1, Kept::default()).err().expect("it cannot").to_string();
        assert!(trouble.contains("'search' could not reach the target") && trouble.contains(part), "{trouble}");
    }
    // It may be allowed to do nothing but to write.
    server.greet(Some(403));
    Feeder::new(&exporter, 1, Kept::default());
}

#[test]
fn a_document_that_was_taken_is_looked_for_until_it_is_found() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.hide(3);
    let arguments = json!({ "url": server.url(), "bulk": { "delay": 0 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.until_acknowledged(1);
    feeder.until("three looks", |_| server.hidden() == 0);
}

#[test]
fn rejected_records_never_fill_more_than_two_files() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("new").join("rejected.jsonl");
    let file = RejectedFile::new(path.clone(), 100);
    for number in 0..10 {
        let mut lines = rejected::RejectedLines::default();
        let record = format!(r#"{{"number":{number}}}"#);
        lines.push((b"{}", record.as_bytes()), 400, None).expect("JSON");
        file.append(&lines).expect("written");
    }
    let numbers = |path: &std::path::Path| -> Vec<u64> {
        let text = std::fs::read_to_string(path).expect("there");
        let line = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["record"]["number"].as_u64();
        text.lines().filter_map(line).collect()
    };
    let (full, active) = (numbers(&path.with_extension("jsonl.1")), numbers(&path));
    assert_eq!([full.clone(), active.clone()].concat(), (full[0]..10).collect::<Vec<_>>(), "the newest");
    assert!(full.len() <= 3 && active.len() <= 3);
    // A line that a crash cut off keeps to itself.
    std::fs::write(&path, "{\"form").expect("written");
    let file = RejectedFile::new(path.clone(), 1_000);
    let mut lines = rejected::RejectedLines::default();
    lines.push((b"{}", b"{}"), 400, None).expect("JSON");
    file.append(&lines).expect("written");
    assert!(std::fs::read_to_string(&path).expect("there").starts_with("{\"form\n{\"format\":1,"));
}

#[test]
fn a_file_that_cannot_be_written_holds_up_what_would_be_lost() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.refuse("1-1");
    let obstacle = directory.path().join("obstacle");
    std::fs::write(&obstacle, "").expect("written");
    let arguments = json!({
        "url": server.url(), "bulk": { "size": 2, "delay": 0 }, "rejected": { "path": obstacle.join("file") },
    });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.export(2);
    feeder.until("trouble", |feeder| feeder.trouble.as_ref().is_some_and(|trouble| trouble.contains("obstacle")));
    assert_eq!(feeder.acknowledged(), 0);
    std::fs::remove_file(&obstacle).expect("there");
    feeder.until_acknowledged(2);
    assert_eq!(server.documents().len(), 1);
}

#[test]
fn a_bulk_that_is_too_large_is_divided() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    server.limit(2_000);
    let arguments = json!({ "url": server.url(), "bulk": { "size": 20, "delay": "1h" } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    for position in 1..=20 {
        feeder.export(position);
    }
    feeder.until_acknowledged(20);
    assert_complete(&server, 1, 1..=20);
    server.limit(100);
    for position in 21..=40 {
        feeder.export(position);
    }
    feeder.until_acknowledged(40);
    let text = std::fs::read_to_string(directory.path().join("search.rejected.jsonl")).expect("there");
    assert_eq!((server.documents().len(), text.lines().count()), (20, 20), "what is too large alone is set aside");
}

#[test]
fn a_bulk_that_is_refused_again_and_again_as_a_whole_is_divided() {
    for fault in [Fault::Status(429), Fault::CutBefore] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = Server::start();
        server.fail([fault; 3]);
        let arguments = json!({ "url": server.url(), "bulk": { "size": 20, "delay": "1h" } });
        let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
        let mut feeder = Feeder::new(&exporter, 1, Kept::default());
        for position in 1..=20 {
            feeder.export(position);
        }
        feeder.until_acknowledged(20);
        assert_complete(&server, 1, 1..=20);
        assert_eq!(server.bulks(), [10, 10], "{fault:?}");
    }
}

#[test]
fn after_a_restore_documents_have_names_of_their_own_and_older_versions_indices_of_theirs() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let arguments = json!({ "url": server.url(), "bulk": { "size": 100, "delay": 0 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.source.broker_version = "8.8.7-SNAPSHOT".into();
    feeder.source.incarnation = 2;
    feeder.export(1);
    feeder.until("both", |feeder| {
        feeder.controller.acknowledged() == RecordPlace { incarnation: 2, position: 1, number: 1 }
    });
    let indices: Vec<(String, String)> = server.documents().into_iter().map(|(id, (index, ..))| (id, index)).collect();
    assert_eq!(
        indices,
        [
            ("1-1".to_owned(), "zeebe-record_job_8.9.0_2023-11-14".to_owned()),
            ("1-1-2".to_owned(), "zeebe-record_job_8.8.7-snapshot_2023-11-14".to_owned()),
        ]
    );
    let asked = server.asked();
    assert!(asked.iter().any(|asked| asked.path == "/_index_template/zeebe-record_job_8.8.7-snapshot"));
}

#[test]
fn retention_is_made_as_each_of_the_two_wants_it() {
    for (flavour, policy) in
        [(Flavour::Elasticsearch, "/_ilm/policy/old"), (Flavour::OpenSearch, "/_plugins/_ism/policies/old")]
    {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = Server::start();
        let retention = json!({ "enabled": true, "minimumAge": "7d", "policyName": "old" });
        let arguments = json!({
            "url": format!("{}/", server.url()), "retention": retention, "bulk": { "delay": 0 },
            "authentication": { "username": "osmia", "password": "secret" },
        });
        let (exporter, _) = configured(flavour, arguments, directory.path()).expect("right");
        let mut feeder = Feeder::new(&exporter, 1, Kept::default());
        feeder.export(1);
        feeder.until_acknowledged(1);
        let asked = server.asked();
        assert!(asked.iter().all(|asked| asked.headers["authorization"] == "Basic b3NtaWE6c2VjcmV0"));
        let made = asked.iter().find(|asked| asked.method == "PUT" && asked.path == policy).expect("a policy");
        assert!(made.body.contains("\"7d\""), "{}", made.body);
        let job = asked.iter().find(|asked| asked.path.ends_with("_job_8.9.0")).expect("a template");
        let applied = asked.last().expect("something");
        match flavour {
            Flavour::Elasticsearch => {
                assert!(job.body.contains(r#""index.lifecycle.name":"old""#), "{}", job.body);
                assert_eq!(applied.path, "/zeebe-record_*/_settings?allow_no_indices=true");
            }
            Flavour::OpenSearch => {
                assert!(!job.body.contains("lifecycle") && made.body.contains("ism_template"));
                assert_eq!(applied.path, "/_plugins/_ism/add/zeebe-record_*");
            }
        }
    }
}

/// What was deleted by a policy until now is kept from now on.
#[test]
fn retention_that_is_switched_off_is_undone() {
    for (flavour, paths) in [
        (Flavour::Elasticsearch, &["/zeebe-record_*/_settings?allow_no_indices=true"][..]),
        (Flavour::OpenSearch, &["/_plugins/_ism/remove/zeebe-record_*", "/_plugins/_ism/policies/old"]),
    ] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = Server::start();
        let retention = json!({ "enabled": false, "policyName": "old" });
        let arguments = json!({ "url": server.url(), "retention": retention, "bulk": { "delay": 0 } });
        let (exporter, _) = configured(flavour, arguments, directory.path()).expect("right");
        let mut feeder = Feeder::new(&exporter, 1, Kept::default());
        feeder.export(1);
        feeder.until_acknowledged(1);
        let asked = server.asked();
        let about = |asked: &&server::Asked| !asked.path.contains("_template/");
        let undone: Vec<&str> = asked.iter().filter(about).map(|asked| asked.path.as_str()).collect();
        assert_eq!(undone, paths);
        assert!(asked.iter().all(|asked| !asked.body.contains("\"old\"")));
    }
}

#[test]
fn another_node_is_asked_when_one_cannot() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (server, other) = (Server::start(), Server::start());
    server.fail_schema([Fault::Status(502); 100]);
    let arguments = json!({ "url": format!("{},{}", server.url(), other.url()), "bulk": { "delay": 0 } });
    let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.until_acknowledged(1);
    assert_complete(&other, 1, 1..=1);
}

#[test]
fn another_node_is_asked_when_one_does_not_answer() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = Server::start();
    let away = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let arguments = json!({
        "url": format!("http://{away},{}", server.url()), "bulk": { "delay": 0 },
        "authentication": { "apiKey": "a2V5" },
    });
    let (exporter, _) = configured(Flavour::OpenSearch, arguments, directory.path()).expect("right");
    let mut feeder = Feeder::new(&exporter, 1, Kept::default());
    feeder.export(1);
    feeder.until_acknowledged(1);
    assert_eq!(server.asked()[0].headers["authorization"], "ApiKey a2V5");
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let no_pem = directory.path().join("no.pem");
    std::fs::write(&no_pem, "nothing").expect("written");
    for (arguments, part) in [
        (json!({ "url": "localhost:9200" }), "'url' of the exporter 'search' is no address"),
        (json!({ "url": "http://a:b@localhost:9200" }), "set authentication.username"),
        (
            json!({ "index": { "prefix": "zeebe_record" } }),
            "'index.prefix' of the exporter 'search' must not contain '_'",
        ),
        (json!({ "index": { "prefix": "Zeebe" } }), "lower-case"),
        (json!({ "index": { "indexSuffixDatePattern": "dd.MM" } }), "must have the year"),
        (json!({ "index": { "numberOfShards": 0 } }), "'index.numberOfShards'"),
        (json!({ "index": { "jobs": true } }), "there is no such value type"),
        (json!({ "bulk": { "delay": "soon" } }), "'bulk.delay' of the exporter 'search' must be a number of seconds"),
        (json!({ "bulk": { "memoryLimit": "1GB" } }), "'bulk.memoryLimit'"),
        (json!({ "bulk": { "sizes": 1 } }), "'bulk.sizes' of the exporter 'search' is not known; known are 'size'"),
        (json!({ "retention": { "minimumAge": "a month" } }), "'retention.minimumAge'"),
        (json!({ "retention": { "policyName": "a b" } }), "'retention.policyName'"),
        (
            json!({ "authentication": { "username": "a" } }),
            "'authentication.password' of the exporter 'search' is missing",
        ),
        (json!({ "authentication": { "apiKey": "a b" } }), "'authentication.apiKey'"),
        (json!({ "security": { "certificatePath": "/nowhere/x.pem" } }), "names /nowhere/x.pem, which cannot be read"),
        (json!({ "security": { "certificatePath": no_pem } }), "there is no certificate in it"),
        (json!({ "interceptorPlugins": [] }), "'interceptorPlugins' of the exporter 'search' is not known"),
        (json!({ "index": { "event": false } }), "leave out every record"),
    ] {
        let error = configured(Flavour::Elasticsearch, arguments.clone(), directory.path()).err();
        let error = error.unwrap_or_else(|| panic!("{arguments} is taken")).to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("a:b@"), "a password is not repeated: {error}");
    }
    configured(Flavour::OpenSearch, Value::Object(Map::new()), directory.path()).expect("everything has a default");
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => Just(Fault::None),
        1 => prop_oneof![Just(429), Just(503), Just(500), Just(404), Just(302)].prop_map(Fault::Status),
        1 => Just(Fault::CutBefore),
        1 => Just(Fault::CutAfter),
        2 => (prop_oneof![Just(429u16), Just(503), Just(403)], 0..3usize).prop_map(|(status, rest)| Fault::Some(status, rest)),
        1 => Just(Fault::Nonsense),
        1 => (0..5u64).prop_map(Fault::Slow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever goes wrong with requests and with the node, every record is there once, under one name.
    #[test]
    fn every_record_arrives_exactly_once(
        faults in prop::collection::vec(fault(), 0..40),
        schema_faults in prop::collection::vec(fault(), 0..6),
        records in 1..80u64,
        (size, in_flight) in (1..20usize, 1..4usize),
        crashes in prop::collection::vec(1..80u64, 0..3),
    ) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = Server::start();
        server.fail(faults);
        server.fail_schema(schema_faults);
        let arguments = json!({ "url": server.url(), "bulk": { "size": size, "delay": "2ms", "inFlight": in_flight } });
        let (exporter, _) = configured(Flavour::Elasticsearch, arguments, directory.path()).expect("right");
        std::thread::scope(|scope| {
            for partition in [1, 2] {
                let (exporter, mut crashes) = (&exporter, crashes.clone());
                let mut feeder = Feeder::new(exporter, partition, Kept::default());
                scope.spawn(move || {
                    let mut position = 0;
                    while position < records {
                        position += 1;
                        feeder.export(position);
                        feeder.turn();
                        if let Some(crash) = crashes.iter().position(|crash| *crash == position) {
                            crashes.remove(crash);
                            let (kept, _) = feeder.controller.kept();
                            position = kept.acknowledged.position;
                            feeder = Feeder::new(exporter, partition, kept);
                        }
                    }
                    feeder.until_acknowledged(records);
                });
            }
        });
        for partition in [1, 2] {
            assert_complete(&server, partition, 1..=records);
        }
        prop_assert_eq!(server.documents().len() as u64, 2 * records);
        prop_assert!(!directory.path().join("search.rejected.jsonl").exists());
    }
}
