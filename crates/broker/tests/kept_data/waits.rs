//! Directories in which instances wait for everything that there is to wait for.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;

/// The job types of all that is to be done.
const JOB_TYPES: [&str; 5] = ["work", "checked", "audit", "broken", "inner"];
/// Longer than this format is kept.
const FOR_EVER: i64 = 100 * 365 * 24 * 3_600_000;

/// Each branch waits for something else, and none of them has a default that would let it go on.
fn everything() -> ProcessBuilder {
    ProcessBuilder::new("order")
        .start("start")
        .parallel_gateway("fork")
        .user_task("review")
        .task_listener("completing", "checked")
        .end("reviewed")
        .move_to("fork")
        .catch_event("signal", Event::Signal("go"))
        .end("signalled")
        .move_to("fork")
        .catch_event("condition", Event::Condition("= ready", ""))
        .end("met")
        .move_to("fork")
        .catch_event("timer", Event::Duration("PT1S"))
        .end("timed")
        .move_to("fork")
        .ad_hoc_sub_process("choices", "= [\"choice\"]")
        .apart()
        .service_task("choice", "work")
        .end_sub_process()
        .end("chosen")
        .move_to("fork")
        .service_task("book", "book")
        .compensation("booked", "book", "cancel", "work")
        .service_task("regret", "work")
        .compensation_throw("compensate")
        .end("compensated")
        .move_to("fork")
        .service_task("each", "work")
        .multi_instance("= [1, 2]", "item")
        .output_collection("results", "= item")
        .end("all")
        .move_to("fork")
        .service_task("listened", "work")
        .execution_listener("start", "work")
        .end("heard")
        .move_to("fork")
        .event_based_gateway("which")
        .catch_event("told", Event::Message("told", "= key"))
        .end("was-told")
        .move_to("which")
        .catch_event("late", Event::Duration("P3650D"))
        .end("was-late")
        .move_to("fork")
        .service_task("first", "work")
        .receive_task("receive", "early", "= key")
        .end("received")
        .move_to("fork")
        .service_task("fails", "broken")
        .end("mended")
        .move_to("fork")
        .inclusive_gateway("some")
        .condition("= true")
        .service_task("slow", "work")
        .inclusive_gateway("gather")
        .end("gathered")
        .move_to("some")
        .condition("= true")
        .connect_to("gather")
        .move_to("fork")
        .sub_process("inside")
        .start("inside-start")
        .service_task("deep", "work")
        .end("inside-end")
        .event_sub_process("meanwhile")
        .start_event("asked", Event::Message("asked", "= key"))
        .non_interrupting()
        .service_task("answer", "work")
        .end("answered")
        .end_sub_process()
        .move_to("inside")
        .boundary("escalated", "inside", Event::Escalation("too-much"))
        .end("escaped")
        .move_to("fork")
        .call_activity("call", "called")
        .end("called-back")
}

fn called() -> ProcessBuilder {
    ProcessBuilder::new("called").start("called-start").service_task("inner", "inner").end("called-end")
}

/// What begins by an event from outside.
fn begun() -> ProcessBuilder {
    let process = ProcessBuilder::new("begun").start_event("by-message", Event::Message("begin", ""));
    let process = process.service_task("begun-work", "work").end("begun-end");
    process.start_event("by-signal", Event::Signal("go")).connect_to("begun-work")
}

fn tell(client: &Client, name: &str, key: &str) {
    publish_message(client, name, key, FOR_EVER);
}

fn key_of(value: &Value) -> Key {
    Key::from_raw(value.as_i64().expect("a key"))
}

/// Records of both partitions.
fn of(lines: &Path, value_type: &str, intent: &str) -> Vec<Value> {
    let records = [1, 2].into_iter().flat_map(|partition| records_of(partition, lines));
    records.filter(|record| record["valueType"] == value_type && record["intent"] == intent).collect()
}

/// Instances that nobody called, with the process they are of.
fn instances(lines: &Path, intent: &str) -> BTreeSet<(String, Key)> {
    let is_root = |record: &Value| {
        let value = &record["value"];
        value["bpmnElementType"] == "PROCESS" && value["parentProcessInstanceKey"] == -1
    };
    let records = of(lines, "PROCESS_INSTANCE", intent).into_iter().filter(is_root);
    let process = |record: &Value| record["value"]["bpmnProcessId"].as_str().expect("a text").to_owned();
    records.map(|record| (process(&record), key_of(&record["key"]))).collect()
}

fn order(client: &Client, key: Key, payload: Payload) {
    execute(client, key.partition().expect("a key of a partition"), Command::new(key, payload));
}

#[test]
fn everything_that_waits_in_a_directory_goes_on_to_its_end() {
    goes_on_to_its_end(false);
}

/// What waits since before the raise goes on by the rules of the new level.
#[test]
fn everything_that_waits_goes_on_when_the_level_is_raised_meanwhile() {
    goes_on_to_its_end(true);
}

fn goes_on_to_its_end(is_raised: bool) {
    let directory = tempfile::tempdir().expect("temporary directory");
    write_with_everything_that_waits(directory.path());
    let (before, lines) = (directory.path().join("before.jsonl"), directory.path().join("lines.jsonl"));
    let waiting = instances(&before, "ELEMENT_ACTIVATED");
    assert_eq!(waiting.len(), 2, "one for each partition");
    let options = with_exporter(&directory.path().join("data"), &lines);
    let node = start(NodeOptions { newest_feature_level: FeatureLevel::TEST, ..options });
    let client = node.client();
    if is_raised {
        raise(&client);
    }
    for incident in of(&before, "INCIDENT", "CREATED") {
        let value = JobValue { retries: 1, ..JobValue::default() };
        order(&client, key_of(&incident["value"]["jobKey"]), Payload::Job(JobIntent::UpdateRetries, Arc::new(value)));
        order(&client, key_of(&incident["key"]), Payload::Incident(IncidentIntent::Resolve, Box::default()));
    }
    for task in of(&before, "USER_TASK", "CREATED") {
        let key = key_of(&task["key"]);
        let command = Command::new(key, Payload::UserTask(UserTaskIntent::Complete, Box::default()));
        // It is answered when the listeners are done.
        client.submit(key.partition().expect("a key of a partition"), command, |_| {});
    }
    for (_, instance) in &waiting {
        let value = VariableDocumentValue {
            scope_key: *instance,
            variables: "{\"ready\":true}".into(),
            update_semantics: VariableDocumentUpdateSemantics::Propagate,
            tenant_id: DEFAULT_TENANT.into(),
        };
        order(&client, *instance, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)));
    }
    let value = SignalValue { signal_name: "go".into(), tenant_id: DEFAULT_TENANT.into(), ..SignalValue::default() };
    let signal = Payload::Signal(SignalIntent::Broadcast, Box::new(value));
    execute(&client, PartitionId::DEPLOYMENT, Command::new(Key::NONE, signal));
    tell(&client, "begin", "nobody");
    for key in ["a", "b"] {
        tell(&client, "asked", key);
        tell(&client, "told", key);
    }
    eventually("the questions", || of(&lines, "PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED").len() >= 4);
    eventually("the ends", || {
        for job_type in JOB_TYPES {
            for (job, _) in activate_of(&client, job_type) {
                order(&client, job, Payload::Job(JobIntent::Complete, Arc::new(JobValue::default())));
            }
        }
        eventually("the records", || is_exported(&node));
        let ended = instances(&lines, "ELEMENT_COMPLETED");
        // One was begun by the message, and one by the signal.
        ended.is_superset(&waiting) && ended.iter().filter(|(process, _)| process == "begun").count() == 2
    });
    node.stop().expect("a clean stop");
    // What was undone, and what was asked meanwhile.
    for element in ["cancel", "answer"] {
        let jobs = of(&lines, "JOB", "COMPLETED").into_iter();
        assert_eq!(jobs.filter(|job| job["value"]["elementId"] == element).count(), 2, "{element} in each instance");
    }
}

/// Writes a directory, and the records that its exporter has got.
fn write_with_everything_that_waits(directory: &Path) {
    let (data, lines) = (directory.join("data"), directory.join("before.jsonl"));
    let node = start(with_exporter(&data, &lines));
    let client = node.client();
    let listener = GlobalListenerValue {
        id: "audit".into(),
        job_type: "audit".into(),
        event_types: vec![GlobalListenerEventType::Completing],
        ..GlobalListenerValue::default()
    };
    let listener = Payload::GlobalListener(GlobalListenerIntent::Create, Box::new(listener));
    execute(&client, PartitionId::DEPLOYMENT, Command::new(Key::NONE, listener));
    for process in [called(), begun(), everything()] {
        deploy(&client, &process);
    }
    for (partition, key) in [(1, "a"), (2, "b")] {
        tell(&client, "early", key);
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: "order".into(),
            version: -1,
            variables: format!("{{\"key\":\"{key}\",\"ready\":false}}").into(),
            tenant_id: DEFAULT_TENANT.into(),
            business_id: format!("order-{key}").into(),
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        execute(&client, PartitionId(partition), Command::new(Key::NONE, payload));
    }
    for (job, _) in activate_of(&client, "book") {
        assert_eq!(complete(&client, job).expect("taken").rejection, None);
    }
    for (job, _) in activate_of(&client, "broken") {
        order(&client, job, Payload::Job(JobIntent::Fail, Arc::new(JobValue::default())));
    }
    eventually("the subscriptions", || of(&lines, "MESSAGE_SUBSCRIPTION", "CREATED").len() >= 4);
    eventually("the incidents", || of(&lines, "INCIDENT", "CREATED").len() == 2);
    eventually("the records", || is_exported(&node));
    node.stop().expect("a clean stop");
}
