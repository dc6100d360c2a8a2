//! Ad-hoc sub-processes: what is chosen begins, each in an inner instance of its own.

use crate::support::{self, Partition};
use engine::{EngineOptions, Limits};
use protocol::*;

/// A process `p` with the ad-hoc sub-process `chosen`: `a`, behind which comes `c`, and `b` are work for job workers, `t` is
/// done at once.
fn process(attributes: &str, extensions: &str, condition: &str) -> String {
    let task = |id: &str| {
        format!(
            "<bpmn:serviceTask id=\"{id}\"><bpmn:extensionElements><zeebe:taskDefinition type=\"{id}\"/>\
             </bpmn:extensionElements></bpmn:serviceTask>"
        )
    };
    format!(
        "<bpmn:definitions xmlns:bpmn=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" \
         xmlns:zeebe=\"http://camunda.org/schema/zeebe/1.0\" targetNamespace=\"x\"><bpmn:process id=\"p\" isExecutable=\"true\">\
         <bpmn:startEvent id=\"start\"/><bpmn:sequenceFlow id=\"f1\" sourceRef=\"start\" targetRef=\"chosen\"/>\
         <bpmn:adHocSubProcess id=\"chosen\" {attributes}><bpmn:extensionElements>{extensions}</bpmn:extensionElements>\
         {a}{b}{c}<bpmn:task id=\"t\"/><bpmn:sequenceFlow id=\"f2\" sourceRef=\"a\" targetRef=\"c\"/>{condition}\
         </bpmn:adHocSubProcess></bpmn:process></bpmn:definitions>",
        a = task("a"),
        b = task("b"),
        c = task("c"),
    )
}

const COLLECTION: &str = "<zeebe:adHoc activeElementsCollection=\"=elements\"/>";
const RESULTS: &str =
    "<zeebe:adHoc activeElementsCollection=\"=elements\" outputCollection=\"results\" outputElement=\"=x\"/>";
const WORKER: &str = "<zeebe:taskDefinition type=\"agent\"/>";
const DONE: &str = "<bpmn:completionCondition>=done</bpmn:completionCondition>";

struct Fixture(Partition);

impl Fixture {
    fn new(model: &str) -> Self {
        Self::with_options(support::options(), model)
    }

    fn with_options(options: EngineOptions, model: &str) -> Self {
        let mut partition = Partition::with_options(options);
        let output = partition.deploy("p.bpmn", model.as_bytes());
        assert_eq!(output.replies[0].rejection, None);
        Fixture(partition)
    }

    fn create(&mut self, variables: &str) {
        self.0.create("p", variables, ProcessInstanceCreationIntent::Create);
    }

    fn complete(&mut self, element: &str, variables: &str) {
        let key = self.0.jobs.remove(element).expect("it has a job");
        let value = JobValue { variables: variables.into(), ..JobValue::default() };
        let output = self.0.job(key, JobIntent::Complete, value);
        assert_eq!(output.replies[0].rejection, None);
    }

    /// The worker of the ad-hoc sub-process chooses.
    fn choose(&mut self, elements: &[&str], is_fulfilled: bool, cancels: bool) -> Option<Rejection> {
        let key = self.0.jobs["chosen"];
        let result = JobResult {
            activate_elements: elements.iter().map(|id| element(id, "")).collect(),
            completion_condition_fulfilled: is_fulfilled,
            cancel_remaining_instances: cancels,
            ..JobResult::default()
        };
        let value = JobValue { result: Some(Box::new(result)), ..JobValue::default() };
        self.0.job(key, JobIntent::Complete, value).replies[0].rejection.clone()
    }

    fn activate(
        &mut self,
        key: Key,
        elements: Vec<AdHocSubProcessActivateElement>,
        cancels: bool,
    ) -> Option<Rejection> {
        let value = AdHocSubProcessInstructionValue {
            ad_hoc_sub_process_instance_key: key,
            activate_elements: elements,
            cancel_remaining_instances: cancels,
            ..AdHocSubProcessInstructionValue::default()
        };
        let intent = AdHocSubProcessInstructionIntent::Activate;
        let output = self.0.submit(key, Payload::AdHocSubProcessInstruction(intent, Box::new(value)));
        output.replies[0].rejection.clone()
    }

    fn ad_hoc(&self) -> Key {
        let is_one = |record: &&Record| {
            matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value)
                if value.bpmn_element_type == BpmnElementType::AdHocSubProcess)
        };
        self.0.records.iter().rfind(is_one).expect("it has begun").key
    }

    fn count(&self, intent: ProcessInstanceIntent, element_type: BpmnElementType) -> usize {
        let is_one = |record: &&Record| {
            matches!(&record.payload, Payload::ProcessInstance(found, value)
                if *found == intent && value.bpmn_element_type == element_type)
        };
        self.0.records.iter().filter(is_one).count()
    }

    fn has_ended(&self) -> bool {
        self.count(ProcessInstanceIntent::ElementCompleted, BpmnElementType::Process) > 0
    }

    fn incidents(&self) -> Vec<(ErrorType, String)> {
        let incidents = self.0.records.iter().filter_map(|record| match &record.payload {
            Payload::Incident(IncidentIntent::Created, value) => {
                Some((value.error_type, value.error_message.to_string()))
            }
            _ => None,
        });
        incidents.collect()
    }

    fn last_value(&self, name: &str) -> Option<String> {
        let mut values = self.0.records.iter().filter_map(|record| match &record.payload {
            Payload::Variable(_, variable) if variable.name == *name => Some(variable.value.to_string()),
            _ => None,
        });
        values.next_back()
    }
}

fn element(id: &str, variables: &str) -> AdHocSubProcessActivateElement {
    AdHocSubProcessActivateElement { element_id: id.into(), variables: variables.into() }
}

const INNER: BpmnElementType = BpmnElementType::AdHocSubProcessInnerInstance;

#[test]
fn it_ends_with_the_last_path_when_there_is_no_condition() {
    let mut fixture = Fixture::new(&process("", COLLECTION, ""));
    fixture.create(r#"{"elements":["a","t","b","b"]}"#);
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementActivated, INNER), 4);
    assert_eq!(
        fixture.last_value("adHocSubProcessElements").as_deref(),
        Some(r#"[{"elementId":"a"},{"elementId":"b"},{"elementId":"t"}]"#)
    );
    fixture.complete("a", "{}");
    fixture.complete("b", "{}");
    assert!(!fixture.has_ended(), "another 'b' and what follows 'a' are still there");
    fixture.complete("c", "{}");
    let first_b = fixture.0.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) if job.element_id == *"b" => Some(record.key),
        _ => None,
    });
    fixture.0.job(first_b.expect("a job"), JobIntent::Complete, JobValue::default());
    assert!(fixture.has_ended());
    fixture.0.check();
}

#[test]
fn results_are_collected_and_a_condition_ends_what_remains() {
    let mut fixture = Fixture::new(&process("", RESULTS, DONE));
    fixture.create(r#"{"elements":["a","b"],"done":false}"#);
    fixture.complete("a", r#"{"x":1}"#);
    fixture.complete("c", r#"{"x":2}"#);
    assert_eq!(fixture.last_value("results").as_deref(), Some("[2]"));
    let key = fixture.ad_hoc();
    assert_eq!(fixture.activate(key, vec![element("a", r#"{"y":5}"#)], false), None);
    assert_eq!(fixture.last_value("y").as_deref(), Some("5"));
    fixture.complete("b", r#"{"x":3,"done":true}"#);
    assert!(fixture.has_ended());
    assert_eq!(fixture.last_value("results").as_deref(), Some("[2,3]"));
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementTerminated, INNER), 1);
    fixture.0.check();
}

/// A collection that was written with every result would take the square of their number.
#[test]
fn large_results_are_written_once_and_conditions_see_them_before() {
    const RESULTS: usize = 500;
    let results = "<zeebe:adHoc activeElementsCollection=\"=for i in 1..n return &quot;t&quot;\" \
                   outputCollection=\"results\" outputElement=\"=big + string(count(results))\"/>";
    let condition = "<bpmn:completionCondition>=count(results) = n</bpmn:completionCondition>";
    let mut fixture = Fixture::new(&process("", results, condition));
    let big = "x".repeat(1_600);
    fixture.create(&format!(r#"{{"n":{RESULTS},"big":"{big}"}}"#));
    assert!(fixture.has_ended());
    let expected: Vec<String> = (0..RESULTS).map(|number| format!("\"{big}{number}\"")).collect();
    assert_eq!(fixture.last_value("results"), Some(format!("[{}]", expected.join(","))));
    let written: usize = fixture.0.records.iter().map(|record| encode_to_vec(record).len()).sum();
    let of_results: usize = expected.iter().map(String::len).sum();
    let lifecycle = RESULTS * 4_000;
    assert!(written <= 3 * of_results + lifecycle, "{written} bytes of records for {of_results} bytes of results");
    fixture.0.check();
}

/// A long list is divided, and nothing of it is lost because what began first has ended already.
#[test]
fn all_of_a_long_list_begin() {
    const ELEMENTS: usize = 3_210;
    let results = "<zeebe:adHoc activeElementsCollection=\"=for i in 1..n return &quot;t&quot;\" \
                   outputCollection=\"results\" outputElement=\"=7 + 0\"/>";
    let mut fixture = Fixture::new(&process("", results, ""));
    fixture.create(&format!(r#"{{"n":{ELEMENTS}}}"#));
    assert!(fixture.has_ended());
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementCompleted, INNER), ELEMENTS);
    assert_eq!(fixture.last_value("results"), Some(format!("[{}]", vec!["7"; ELEMENTS].join(","))));
    fixture.0.check();
}

/// The end is tried again after an incident: results that waited are in the collection once.
#[test]
fn an_end_that_is_tried_again_writes_each_result_once() {
    const RESULTS: usize = 100;
    let extensions = "<zeebe:adHoc activeElementsCollection=\"=for i in 1..n return &quot;t&quot;\" \
                      outputCollection=\"results\" outputElement=\"=big + &quot;y&quot;\"/><zeebe:ioMapping>\
                      <zeebe:output source=\"=assert(count(results), count(results) = expected)\" target=\"counted\"/>\
                      </zeebe:ioMapping>";
    let mut fixture = Fixture::new(&process("", extensions, ""));
    let big = "x".repeat(1_000);
    fixture.create(&format!(r#"{{"n":{RESULTS},"big":"{big}","expected":0}}"#));
    let incidents = fixture.incidents();
    assert!(matches!(incidents.as_slice(), [(ErrorType::IoMappingError, _)]), "{incidents:?}");
    let ad_hoc = fixture.ad_hoc();
    let resolve = |fixture: &mut Fixture| {
        let is_incident = |record: &&Record| matches!(record.payload, Payload::Incident(IncidentIntent::Created, _));
        let incident = fixture.0.records.iter().rfind(is_incident).expect("there is one").key;
        fixture.0.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    };
    resolve(&mut fixture);
    assert_eq!(fixture.incidents().len(), 2, "the mapping fails again");
    let value = VariableDocumentValue {
        scope_key: ad_hoc,
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: format!(r#"{{"expected":{RESULTS}}}"#).into(),
        tenant_id: support::TENANT.into(),
    };
    let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
    assert_eq!(fixture.0.submit(Key::NONE, payload).replies[0].rejection, None);
    resolve(&mut fixture);
    assert!(fixture.has_ended(), "{:?}", fixture.incidents().last());
    assert_eq!(fixture.last_value("counted"), Some(RESULTS.to_string()));
    assert_eq!(fixture.last_value("results"), Some(format!("[{}]", vec![format!("\"{big}y\""); RESULTS].join(","))));
    fixture.0.check();
}

/// Small results are written with each of them, but not without end: then they wait, and come after those that are there.
#[test]
fn a_collection_of_many_small_results_is_updated_so_often_and_no_more() {
    const RESULTS: usize = 60;
    const UPDATES: usize = 20;
    let limits = Limits { output_collection_updates_max: UPDATES as u32, ..Limits::default() };
    let results = "<zeebe:adHoc activeElementsCollection=\"=for i in 1..n return &quot;t&quot;\" \
                   outputCollection=\"results\" outputElement=\"=[&quot;,&quot;, count(results)]\"/>";
    let options = EngineOptions { limits: Some(limits), ..support::options() };
    let mut fixture = Fixture::with_options(options, &process("", results, ""));
    fixture.create(&format!(r#"{{"n":{RESULTS}}}"#));
    assert!(fixture.has_ended());
    let expected: Vec<String> = (0..RESULTS).map(|number| format!("[\",\",{number}]")).collect();
    assert_eq!(fixture.last_value("results"), Some(format!("[{}]", expected.join(","))));
    let updates = fixture.0.records.iter().filter(|record| {
        matches!(&record.payload, Payload::Variable(VariableIntent::Updated, variable) if variable.name == *"results")
    });
    assert_eq!(updates.count(), UPDATES);
    fixture.0.check();
}

/// What a client makes of the collection meanwhile stays, as long as it is a list.
#[test]
fn a_collection_that_is_changed_while_results_wait_is_what_they_come_behind() {
    let results =
        "<zeebe:adHoc activeElementsCollection=\"=elements\" outputCollection=\"results\" outputElement=\"=x\"/>";
    let mut fixture = Fixture::new(&process("", results, ""));
    fixture.create(r#"{"elements":["a","b"],"x":1}"#);
    let big = "x".repeat(20_000);
    fixture.complete("b", &format!(r#"{{"x":"{big}"}}"#));
    let ad_hoc = fixture.ad_hoc();
    let set = |fixture: &mut Fixture, variables: &str| {
        let value = VariableDocumentValue {
            scope_key: ad_hoc,
            update_semantics: VariableDocumentUpdateSemantics::Local,
            variables: variables.into(),
            tenant_id: support::TENANT.into(),
        };
        let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
        assert_eq!(fixture.0.submit(Key::NONE, payload).replies[0].rejection, None);
    };
    assert_eq!(fixture.last_value("results").as_deref(), Some("[]"));
    set(&mut fixture, r#"{"results":"none","x":3}"#);
    let key = fixture.ad_hoc();
    assert_eq!(fixture.activate(key, vec![element("t", "")], false), None);
    assert_eq!(
        fixture.incidents().last().map(|(_, message)| message.clone()).as_deref(),
        Some("The output collection has the wrong type. Expected ARRAY but was STRING.")
    );
    set(&mut fixture, r#"{"results":[ 0 ]}"#);
    let is_incident = |record: &&Record| matches!(record.payload, Payload::Incident(IncidentIntent::Created, _));
    let incident = fixture.0.records.iter().rfind(is_incident).expect("there is one").key;
    fixture.0.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    fixture.complete("a", "{}");
    fixture.complete("c", "{}");
    assert!(fixture.has_ended());
    assert_eq!(fixture.last_value("results"), Some(format!("[0,\"{big}\",null,null]")));
    fixture.0.check();
}

#[test]
fn without_cancellation_the_rest_runs_to_its_end() {
    let mut fixture = Fixture::new(&process("cancelRemainingInstances=\"false\"", COLLECTION, DONE));
    fixture.create(r#"{"elements":["a","b"],"done":true}"#);
    fixture.complete("b", "{}");
    fixture.complete("a", "{}");
    assert!(!fixture.has_ended());
    fixture.complete("c", "{}");
    assert!(fixture.has_ended());
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementTerminated, INNER), 0);
    fixture.0.check();
}

#[test]
fn collections_that_name_nothing_useful_are_incidents() {
    for (elements, expected) in [
        (r#"["a","nope","c"]"#, "but the given elements [nope, c] do not exist."),
        (r#""a""#, "Expected result of the expression 'elements' to be 'ARRAY', but was 'STRING'."),
        (r#"["a",1]"#, "but was 'ARRAY' containing at least one non-'STRING' item."),
    ] {
        let mut fixture = Fixture::new(&process("", COLLECTION, ""));
        fixture.create(&format!(r#"{{"elements":{elements}}}"#));
        let incidents = fixture.incidents();
        let [(error_type, message)] = incidents.as_slice() else { panic!("{incidents:?}") };
        assert_eq!(*error_type, ErrorType::ExtractValueError);
        assert!(message.ends_with(expected), "{message}");
        assert_eq!(fixture.count(ProcessInstanceIntent::ElementActivated, INNER), 0);
        fixture.0.check();
    }
}

#[test]
fn an_empty_choice_waits_and_clients_choose() {
    let mut fixture = Fixture::new(&process("", COLLECTION, ""));
    fixture.create(r#"{"elements":[]}"#);
    let key = fixture.ad_hoc();
    let rejection = fixture.activate(key, vec![element("a", ""), element("nope", "")], false).expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::NotFound);
    assert!(rejection.reason.ends_with("but the given elements [nope] do not exist."), "{}", rejection.reason);
    assert!(
        fixture.activate(Key::from_raw(key.raw() - 1), vec![element("a", "")], false).is_some(),
        "it is another element"
    );
    assert!(fixture.activate(key, vec![element("a", "[]")], false).is_some(), "these are no variables");
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementActivated, INNER), 0);
    assert_eq!(fixture.activate(key, vec![element("a", ""), element("a", "")], false), None);
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementActivated, INNER), 2, "the same may begin twice");
    assert_eq!(fixture.activate(key, vec![element("b", "")], true), None);
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementTerminated, INNER), 2);
    fixture.complete("b", "{}");
    assert!(fixture.has_ended());
    let rejection = fixture.activate(key, vec![element("a", "")], false).expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::NotFound);
    fixture.0.check();
}

#[test]
fn ten_thousand_elements_begin_in_slices() {
    let mut fixture = Fixture::new(&process("", COLLECTION, ""));
    fixture.create(r#"{"elements":[]}"#);
    let key = fixture.ad_hoc();
    let before = fixture.0.records.len();
    assert_eq!(fixture.activate(key, vec![element("t", ""); 10_000], false), None);
    let sizes = fixture.0.records[before..].chunk_by(|left, right| left.source_position == right.source_position);
    let largest = sizes.map(<[Record]>::len).max().expect("there are records");
    assert!(largest < 10_000, "one command wrote {largest} records");
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementCompleted, INNER), 10_000);
    assert!(fixture.has_ended());
    fixture.0.check();
}

#[test]
fn thousands_of_inner_instances_end_in_slices_and_what_begins_with_their_end_goes_on() {
    let mut fixture = Fixture::new(&process("", COLLECTION, ""));
    fixture.create(r#"{"elements":[]}"#);
    let key = fixture.ad_hoc();
    assert_eq!(fixture.activate(key, vec![element("a", ""); 3_000], false), None);
    let before = fixture.0.records.len();
    assert_eq!(fixture.activate(key, vec![element("b", ""); 2], true), None);
    let records = &fixture.0.records[before..];
    let queued = records.iter().filter_map(|record| match &record.payload {
        Payload::Work(WorkIntent::Enqueued, work) => Some(work.commands.len()),
        _ => None,
    });
    let most = queued.max().expect("other commands come in between");
    assert!(most < 500, "an entry of the work queue holds {most} steps");
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementTerminated, INNER), 3_000);
    fixture.complete("b", "{}");
    assert!(!fixture.has_ended(), "there was another one");
    let is_b =
        |record: &&Record| matches!(&record.payload, Payload::Job(JobIntent::Created, job) if job.element_id == *"b");
    let first = fixture.0.records.iter().find(is_b).expect("it was created").key;
    fixture.0.job(first, JobIntent::Complete, JobValue::default());
    assert!(fixture.has_ended());
    fixture.0.check();
}

#[test]
fn a_worker_chooses_until_it_says_that_it_is_done() {
    let mut fixture = Fixture::new(&process("", WORKER, ""));
    fixture.create("{}");
    let first = fixture.0.jobs["chosen"];
    let rejection = fixture.choose(&["a", "c"], false, false).expect("refused");
    assert!(rejection.reason.ends_with("but the given elements [c] do not exist."), "{}", rejection.reason);
    assert_eq!(fixture.choose(&["a", "b"], false, false), None);
    fixture.complete("b", "{}");
    let second = fixture.0.jobs["chosen"];
    assert_ne!(first, second, "each end of a path is told to the worker");
    fixture.complete("a", "{}");
    fixture.complete("c", "{}");
    assert_ne!(second, fixture.0.jobs["chosen"]);
    let rejection = fixture.0.job(second, JobIntent::Complete, JobValue::default()).replies[0].rejection.clone();
    assert!(rejection.is_some(), "the job about less was cancelled");
    assert_eq!(fixture.choose(&[], true, false), None);
    assert!(fixture.has_ended());
    fixture.0.check();
}

#[test]
fn a_worker_cancels_what_remains() {
    let mut fixture = Fixture::new(&process("", WORKER, ""));
    fixture.create("{}");
    assert_eq!(fixture.choose(&["a", "t"], false, false), None);
    assert_eq!(fixture.choose(&[], true, true), None);
    assert!(fixture.has_ended());
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementTerminated, INNER), 1);
    fixture.0.check();
}

#[test]
fn a_worker_that_fails_leaves_an_incident_of_its_own_kind() {
    let mut fixture = Fixture::new(&process("", WORKER, ""));
    fixture.create("{}");
    let key = fixture.0.jobs["chosen"];
    fixture.0.job(key, JobIntent::Fail, JobValue { retries: 0, ..JobValue::default() });
    let incidents = fixture.incidents();
    assert_eq!(incidents, [(ErrorType::AdHocSubProcessNoRetries, "No more retries left.".to_owned())]);
    let created = fixture.0.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) => Some(job.job_kind),
        _ => None,
    });
    assert_eq!(created, Some(JobKind::AdHocSubProcess));
    fixture.0.check();
}

/// What undoes an element can be chosen, as on the reference engine; the event that it belongs to cannot.
#[test]
fn compensation_events_are_no_choices() {
    let compensation = "<bpmn:boundaryEvent id=\"undo\" attachedToRef=\"a\"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>\
        <bpmn:task id=\"handler\" isForCompensation=\"true\"/><bpmn:association id=\"x\" sourceRef=\"undo\" targetRef=\"handler\"/>";
    let mut partition = Partition::new();
    partition.deploy("p.bpmn", process("", COLLECTION, compensation).as_bytes());
    for elements in [r#"{"elements":["undo"]}"#, r#"{"elements":["a","handler"]}"#] {
        partition.create("p", elements, ProcessInstanceCreationIntent::Create);
    }
    let documents: Vec<&str> = partition
        .records
        .iter()
        .filter_map(|record| match &record.payload {
            Payload::Variable(VariableIntent::Created, value) if *value.name == *"adHocSubProcessElements" => {
                Some(&*value.value)
            }
            _ => None,
        })
        .collect();
    let entries: Vec<String> =
        ["a", "b", "handler", "t"].iter().map(|id| format!("{{\"elementId\":\"{id}\"}}")).collect();
    let document = format!("[{}]", entries.join(","));
    assert_eq!(documents, [&*document; 2]);
    let incidents: Vec<&str> = partition
        .records
        .iter()
        .filter_map(|record| match &record.payload {
            Payload::Incident(IncidentIntent::Created, value) => Some(&*value.error_message),
            _ => None,
        })
        .collect();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    assert!(incidents.iter().all(|message| message.contains("undo")), "{incidents:?}");
    partition.check();
}

/// The same with other ids: `picked` with `x`, behind which comes `c`, `b` and `u`.
fn renamed(attributes: &str, extensions: &str, condition: &str) -> String {
    let names = [
        ("process id=\"p\"", "process id=\"q\""),
        ("\"chosen\"", "\"picked\""),
        ("serviceTask id=\"a\"", "serviceTask id=\"x\""),
        ("sourceRef=\"a\"", "sourceRef=\"x\""),
        ("task id=\"t\"", "task id=\"u\""),
    ];
    names.iter().fold(process(attributes, extensions, condition), |model, (from, to)| model.replace(from, to))
}

/// Migrates the newest instance to the newest definition.
fn migrate(fixture: &mut Fixture, mapping: &[(&str, &str)]) -> Option<Rejection> {
    let definition = fixture.0.records.iter().rev().find_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, value) => Some(value.metadata.process_definition_key),
        _ => None,
    });
    let instruction = |(from, to): &(&str, &str)| MigrationMappingInstruction {
        source_element_id: (*from).into(),
        target_element_id: (*to).into(),
    };
    let value = ProcessInstanceMigrationValue {
        process_instance_key: fixture.0.instance,
        target_process_definition_key: definition.expect("a definition"),
        mapping_instructions: mapping.iter().map(instruction).collect(),
        tenant_id: support::TENANT.into(),
    };
    let payload = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value));
    fixture.0.submit(fixture.0.instance, payload).replies[0].rejection.clone()
}

#[test]
fn it_is_migrated_with_what_was_chosen_and_says_what_can_be_chosen_now() {
    let mut fixture = Fixture::new(&process("", RESULTS, ""));
    fixture.create(r#"{"elements":["a","b"],"x":7}"#);
    fixture.0.deploy("q.bpmn", renamed("", RESULTS, "").as_bytes());
    for (mapping, reason) in [
        (&[("a", "x"), ("b", "b")][..], "no mapping instruction defined for active element with id 'chosen'"),
        (&[("chosen", "picked"), ("a", "x")], "no mapping instruction defined for active element with id 'b'"),
        (&[("chosen", "x"), ("a", "x"), ("b", "b")], "different type 'SERVICE_TASK'"),
        (
            &[("chosen", "picked"), ("chosen#innerInstance", "none"), ("a", "x")],
            "non-existing target element id 'none'",
        ),
        (&[("chosen", "picked"), ("chosen#innerInstance", "picked"), ("a", "x")], "'AD_HOC_SUB_PROCESS'"),
    ] {
        let rejection = migrate(&mut fixture, mapping).expect("refused");
        assert!(rejection.reason.contains(reason), "{}", rejection.reason);
    }
    assert_eq!(migrate(&mut fixture, &[("chosen", "picked"), ("a", "x"), ("b", "b")]), None);
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementMigrated, BpmnElementType::AdHocSubProcess), 1);
    assert_eq!(fixture.count(ProcessInstanceIntent::ElementMigrated, INNER), 2);
    let ad_hoc = fixture.ad_hoc();
    let said = fixture.0.records.iter().rev().find_map(|record| match &record.payload {
        Payload::Variable(VariableIntent::Updated, value) if *value.name == *"adHocSubProcessElements" => Some(value),
        _ => None,
    });
    let said = said.expect("it says what can be chosen");
    assert_eq!(&*said.value, r#"[{"elementId":"b"},{"elementId":"u"},{"elementId":"x"}]"#);
    assert_eq!((said.scope_key, &*said.bpmn_process_id), (ad_hoc, "q"));
    let refused = fixture.activate(ad_hoc, vec![element("t", "")], false).expect("t is of the other process");
    assert_eq!(refused.rejection_type, RejectionType::NotFound);
    assert_eq!(fixture.activate(ad_hoc, vec![element("u", "")], false), None);
    fixture.complete("a", r#"{"x":1}"#);
    fixture.complete("b", r#"{"x":2}"#);
    assert!(!fixture.has_ended(), "c comes behind x");
    fixture.complete("c", r#"{"x":3}"#);
    assert!(fixture.has_ended());
    assert_eq!(fixture.last_value("results").as_deref(), Some("[null,2,3]"));
    fixture.0.check();
}

#[test]
fn a_worker_decides_on_behind_a_migration() {
    let mut fixture = Fixture::new(&process("", WORKER, ""));
    fixture.create("{}");
    assert_eq!(fixture.choose(&["a"], false, false), None);
    fixture.0.deploy("q.bpmn", renamed("", WORKER, "").as_bytes());
    let plan = [("chosen", "picked"), ("chosen#innerInstance", "picked#innerInstance"), ("a", "x")];
    assert_eq!(migrate(&mut fixture, &plan), None);
    fixture.complete("a", "{}");
    fixture.complete("c", "{}");
    let key = fixture.0.jobs["picked"];
    fixture.0.jobs.insert("chosen".into(), key);
    assert!(fixture.choose(&["t"], false, false).is_some(), "t is of the other process");
    assert_eq!(fixture.choose(&["u"], true, false), None);
    assert!(fixture.has_ended());
    fixture.0.check();
}

#[test]
fn it_is_migrated_in_a_loop() {
    let body = "<bpmn:multiInstanceLoopCharacteristics><bpmn:extensionElements><zeebe:loopCharacteristics \
        inputCollection=\"=[1,2]\"/></bpmn:extensionElements></bpmn:multiInstanceLoopCharacteristics>";
    let mut fixture = Fixture::new(&process("", COLLECTION, body));
    fixture.create(r#"{"elements":["b"]}"#);
    fixture.0.deploy("q.bpmn", renamed("", COLLECTION, body).as_bytes());
    assert_eq!(migrate(&mut fixture, &[("chosen", "picked"), ("b", "b")]), None);
    let migrated = |of| fixture.count(ProcessInstanceIntent::ElementMigrated, of);
    let counted = [BpmnElementType::MultiInstanceBody, BpmnElementType::AdHocSubProcess, INNER].map(migrated);
    assert_eq!(counted, [1, 2, 2]);
    let jobs: Vec<Key> = fixture
        .0
        .records
        .iter()
        .filter(|record| matches!(record.payload, Payload::Job(JobIntent::Created, _)))
        .map(|record| record.key)
        .collect();
    for job in jobs {
        assert_eq!(fixture.0.job(job, JobIntent::Complete, JobValue::default()).replies[0].rejection, None);
    }
    assert!(fixture.has_ended());
    fixture.0.check();
}
