//! Listeners of the user tasks of all processes: what is refused, what every partition has when it is answered, what workers get,
//! and what is forgotten. In which order they run, and by which of them a change goes, is in `scenarios/19-global-listeners.txt`.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::support::{Partition, options};
use engine::{EngineOptions, Limits};
use model_builder::ProcessBuilder;
use protocol::*;

fn wanted(id: &str, intent: GlobalListenerIntent, value: GlobalListenerValue) -> Payload {
    Payload::GlobalListener(intent, Box::new(GlobalListenerValue { id: id.into(), ..value }))
}

/// A listener to everything, with a type of its own.
fn audit() -> GlobalListenerValue {
    GlobalListenerValue {
        job_type: "audit".into(),
        event_types: vec![GlobalListenerEventType::All],
        ..GlobalListenerValue::default()
    }
}

fn create(id: &str) -> Payload {
    wanted(id, GlobalListenerIntent::Create, audit())
}

fn approval() -> String {
    ProcessBuilder::new("approval").start("start").user_task("approve").end("end").to_xml()
}

fn refused(partition: &mut Partition, payload: Payload) -> Option<(RejectionType, String)> {
    let output = partition.submit(Key::NONE, payload);
    let rejection = output.replies[0].rejection.clone()?;
    let events = output.records.iter().filter(|record| record.record_type == RecordType::Event);
    assert_eq!(events.count(), 0, "what is refused changes nothing");
    Some((rejection.rejection_type, rejection.reason.to_string()))
}

#[test]
fn what_no_listener_can_be_is_refused() {
    let limits = Limits { global_listeners_max: 3, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..options() });
    let long = "x".repeat(513);
    let intent = GlobalListenerIntent::Create;
    let cases = [
        (create(" "), "Expected to create global task listener with id ' ', but its id is missing"),
        (create(&long), "but its id must have at most 512 bytes, but it has 513"),
        (wanted("a", intent, GlobalListenerValue { job_type: " ".into(), ..audit() }), "but its job type is missing"),
        (
            wanted("a", intent, GlobalListenerValue { job_type: long.as_str().into(), ..audit() }),
            "but its job type must have at most 512 bytes",
        ),
        (wanted("a", intent, GlobalListenerValue { retries: 0, ..audit() }), "must have at least 1 retry, and not 0"),
        (
            wanted("a", intent, GlobalListenerValue { event_types: Vec::new(), ..audit() }),
            "but it listens to nothing; name its event types, or 'all'",
        ),
        (
            wanted("a", intent, GlobalListenerValue { event_types: vec![GlobalListenerEventType::All; 7], ..audit() }),
            "but it names event types several times; name each once",
        ),
    ];
    for (payload, expected) in cases {
        let (kind, reason) = refused(&mut partition, payload).expect(expected);
        assert!(kind == RejectionType::InvalidArgument && reason.contains(expected), "{reason}");
    }
    for id in ["a", "b", "c"] {
        assert_eq!(refused(&mut partition, create(id)), None);
    }
    let cases = [
        (create("a"), RejectionType::AlreadyExists, "but one with this id exists already"),
        (create("d"), RejectionType::InvalidState, "but there are 3 already, and there can be no more; delete one"),
        (
            wanted("d", GlobalListenerIntent::Update, audit()),
            RejectionType::NotFound,
            "Expected to update global task listener with id 'd', but no global task listener with this id was found",
        ),
        (
            wanted("d", GlobalListenerIntent::Delete, GlobalListenerValue::default()),
            RejectionType::NotFound,
            "Expected to delete global task listener with id 'd', but no",
        ),
        (
            wanted("a", GlobalListenerIntent::Update, GlobalListenerValue { retries: -1, ..audit() }),
            RejectionType::InvalidArgument,
            "Expected to update global task listener with id 'a', but its jobs must have at least 1 retry, and not -1",
        ),
        (
            wanted("a", GlobalListenerIntent::Created, audit()),
            RejectionType::InvalidArgument,
            "GLOBAL_LISTENER CREATED is none that this version processes",
        ),
    ];
    for (payload, kind, expected) in cases {
        let (found, reason) = refused(&mut partition, payload).expect(expected);
        assert!(found == kind && reason.contains(expected), "{found:?}: {reason}");
    }
    partition.check();
}

#[test]
fn the_answer_is_the_listener_as_it_is() {
    let mut partition = Partition::new();
    let answer = |partition: &mut Partition, payload| match &partition.submit(Key::NONE, payload).replies[..] {
        [engine::Reply { rejection: None, key, payload: Payload::GlobalListener(intent, value), .. }] => {
            assert_eq!(*key, value.global_listener_key);
            (*intent, (**value).clone())
        }
        other => panic!("{other:?}"),
    };
    let (intent, created) = answer(&mut partition, create("a"));
    let (key, config_key) = (created.global_listener_key, created.config_key);
    assert!(key.is_some() && config_key.is_some());
    let expected = GlobalListenerValue { id: "a".into(), global_listener_key: key, config_key, ..audit() };
    assert_eq!((intent, &created), (GlobalListenerIntent::Created, &expected));
    // What is not said again is as usual.
    let other = GlobalListenerValue { job_type: "other".into(), after_non_global: true, ..audit() };
    let (intent, updated) = answer(&mut partition, wanted("a", GlobalListenerIntent::Update, other.clone()));
    let config_key = updated.config_key;
    assert!(config_key > created.config_key, "each change makes a configuration of its own");
    let expected = GlobalListenerValue { id: "a".into(), global_listener_key: key, config_key, ..other };
    assert_eq!((intent, &updated), (GlobalListenerIntent::Updated, &expected));
    // Who deletes it is told what it was.
    let delete = wanted("a", GlobalListenerIntent::Delete, GlobalListenerValue::default());
    let (intent, deleted) = answer(&mut partition, delete);
    let expected = GlobalListenerValue { config_key: deleted.config_key, ..updated };
    assert_eq!((intent, deleted), (GlobalListenerIntent::Deleted, expected));
    let json = serde_json::to_value(&partition.records.last().expect("a record").payload).expect("JSON");
    assert_eq!(json["taskListeners"], serde_json::json!([]));
    let told = partition.records.iter().find(|record| matches!(record.payload, Payload::GlobalListener(..)));
    let json = serde_json::to_value(&told.expect("a record").payload).expect("JSON");
    let expected = serde_json::json!({"globalListenerKey": key.raw(), "id": "a", "type": "audit", "retries": 3,
        "eventTypes": ["all"], "afterNonGlobal": false, "priority": 50, "source": "API", "listenerType": "USER_TASK",
        "configKey": created.config_key.raw()});
    assert_eq!(json, expected);
    partition.check();
}

#[test]
fn a_worker_gets_a_job_as_of_a_listener_of_the_model() {
    let mut partition = Partition::new();
    let value = GlobalListenerValue { retries: 7, ..audit() };
    partition.submit(Key::NONE, wanted("a", GlobalListenerIntent::Create, value));
    partition.deploy("p.bpmn", approval().as_bytes());
    partition.create("approval", r#"{"x":1}"#, ProcessInstanceCreationIntent::Create);
    let output = partition.activate("audit", 1);
    let Payload::JobBatch(_, batch) = &output.replies[0].payload else { panic!("jobs") };
    let job = &batch.jobs[0];
    let expected = (JobKind::TaskListener, JobListenerEventType::Creating, 7, "approve", r#"{"x":1}"#);
    let found = (job.job_kind, job.job_listener_event_type, job.retries, &*job.element_id, &*job.variables);
    assert_eq!(found, expected);
    assert!(job.custom_headers.contains(r#""io.camunda.zeebe:userTaskKey":"#), "{}", job.custom_headers);
    // It denies and corrects like one of the model.
    let result = JobResult { result_type: JobResultType::UserTask, denied: true, ..JobResult::default() };
    let refused = partition.job(
        batch.job_keys[0],
        JobIntent::Complete,
        JobValue { result: Some(Box::new(result)), ..JobValue::default() },
    );
    let reason = &refused.replies[0].rejection.as_ref().expect("a creation cannot be denied").reason;
    assert!(reason.contains("a denied result is not possible for the event type 'CREATING'"), "{reason}");
    partition.job(batch.job_keys[0], JobIntent::Complete, JobValue::default());
    let created = partition.records.iter().filter(|record| record.payload.intent_name() == "CREATED");
    assert_eq!(created.filter(|record| matches!(record.payload, Payload::UserTask(..))).count(), 1);
    partition.check();
}

#[test]
fn every_partition_has_a_listener_when_it_is_answered() {
    let mut cluster = Cluster::new(3);
    cluster.deploy(&approval());
    assert!(cluster.submit(1, Key::NONE, create("a")).is_none(), "the others do not have it yet");
    cluster.settle();
    let answered = |cluster: &Cluster, intent| {
        let is_it = |reply: &&engine::Reply| matches!(&reply.payload, Payload::GlobalListener(of, _) if *of == intent);
        cluster.nodes[0].replies.iter().filter(is_it).count()
    };
    assert_eq!(answered(&cluster, GlobalListenerIntent::Created), 1);
    assert_eq!(cluster.count("GLOBAL_LISTENER", "CREATED"), 3);
    assert_eq!(cluster.count("GLOBAL_LISTENER_BATCH", "CONFIGURED"), 3);
    for partition in 1..=3 {
        cluster.create(partition, "approval", "{}");
        let jobs = cluster.node(partition).records.iter();
        let jobs = jobs.filter(|record| matches!(record.payload, Payload::Job(JobIntent::Created, _)));
        assert_eq!(jobs.count(), 1, "the listener runs on partition {partition}");
    }
    // Lost and doubled on the way, it is there once.
    cluster.submit(1, Key::NONE, wanted("a", GlobalListenerIntent::Update, audit()));
    cluster.way.clear();
    cluster.send_again();
    cluster.send_again();
    cluster.settle();
    cluster.submit(1, Key::NONE, wanted("a", GlobalListenerIntent::Delete, audit()));
    cluster.settle();
    for (intent, count) in [(GlobalListenerIntent::Updated, 1), (GlobalListenerIntent::Deleted, 1)] {
        assert_eq!(answered(&cluster, intent), count);
        assert_eq!(cluster.count("GLOBAL_LISTENER", intent.name()), 3);
    }
    // What began with the listener goes on with it, and nothing else.
    cluster.complete_jobs();
    for partition in 1..=3 {
        let instance = cluster.create(partition, "approval", "{}");
        assert_eq!(cluster.cancel(instance), None);
    }
    assert_eq!(cluster.count("JOB", "CREATED"), 3);
    cluster.check();
}

#[test]
fn a_distribution_says_that_it_is_one_of_global_listeners() {
    let mut cluster = Cluster::new(2);
    cluster.submit(1, Key::NONE, create("a"));
    let queues: Vec<&str> = cluster
        .events()
        .filter_map(|record| match &record.payload {
            Payload::CommandDistribution(CommandDistributionIntent::Started, value) => Some(&*value.queue_id),
            _ => None,
        })
        .collect();
    assert_eq!(queues, ["GLOBAL_LISTENERS"]);
    // Many that are not acknowledged hold up further ones.
    for number in 0..Limits::default().pending_distributions_max {
        cluster.submit(1, Key::NONE, create(&format!("l{number}")));
    }
    let reply = cluster.submit(1, Key::NONE, create("one-more")).expect("it is refused at once");
    assert!(reply.rejection.expect("a refusal").reason.contains("wait, the oldest for partition 2"));
}

#[test]
fn a_banned_instance_ends_without_its_global_listeners() {
    let mut partition = Partition::new();
    partition.submit(Key::NONE, create("a"));
    partition.deploy("p.bpmn", approval().as_bytes());
    partition.create("approval", "{}", ProcessInstanceCreationIntent::Create);
    let instance = partition.instance;
    let error = ErrorValue {
        exception_message: "it fails".into(),
        stacktrace: Default::default(),
        error_event_position: 1,
        process_instance_key: instance,
    };
    let last = partition.records.last().expect("a record").clone();
    let record = Record { position: last.position + 1, number: last.number + 1, ..last };
    let banned = Record { payload: Payload::Error(ErrorIntent::Created, Box::new(error)), ..record };
    partition.engine.replay(&banned).expect("it fits");
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
    let output = partition.submit(instance, cancel);
    let ended = output.records.iter().filter(|record| record.payload.intent_name() == "ELEMENT_TERMINATED");
    assert_eq!(ended.count(), 2, "the task, and the process with it");
    partition.engine.audit().expect("nothing goes by the listener any more");
}

#[test]
fn those_of_the_configuration_replace_what_it_defined_before() {
    let mut cluster = Cluster::new(2);
    let configured = |id: &str, job_type: &str| GlobalListenerValue {
        id: id.into(),
        job_type: job_type.into(),
        source: GlobalListenerSource::Configuration,
        ..audit()
    };
    for id in ["by-request", "both"] {
        cluster.submit(1, Key::NONE, create(id));
        cluster.settle();
    }
    let configure = |cluster: &mut Cluster, listeners: &[GlobalListenerValue]| {
        assert_eq!(cluster.node(2).engine.global_listeners_command(listeners), None, "the first partition decides");
        let Some(command) = cluster.node(1).engine.global_listeners_command(listeners) else { return false };
        cluster.apply(1, vec![command]);
        cluster.settle();
        assert_eq!(cluster.node(1).engine.global_listeners_command(listeners), None, "they are there now");
        true
    };
    let changes = |cluster: &Cluster, intent: &str| cluster.count("GLOBAL_LISTENER", intent) / 2;
    assert!(!configure(&mut cluster, &[]), "those of clients are none of the configuration");
    let first = [configured("both", "x"), configured("one", "x"), configured("two", "x")];
    assert!(configure(&mut cluster, &first));
    assert!(!configure(&mut cluster, &first));
    let all = |cluster: &Cluster| ["CREATED", "UPDATED", "DELETED"].map(|intent| changes(cluster, intent));
    assert_eq!(all(&cluster), [4, 1, 0], "that with the id of another one replaces it");
    // One stays, one becomes another, and one is no more.
    assert!(configure(&mut cluster, &[configured("one", "x"), configured("two", "y")]));
    assert_eq!(all(&cluster), [4, 2, 1]);
    let configurations = cluster.count("GLOBAL_LISTENER_BATCH", "CONFIGURED") / 2;
    assert_eq!(configurations, 4, "all changes of a start make one configuration");
    // What a client deletes or changes is there again with the next start.
    cluster.submit(1, Key::NONE, wanted("one", GlobalListenerIntent::Delete, audit()));
    cluster.settle();
    cluster.submit(1, Key::NONE, wanted("two", GlobalListenerIntent::Update, audit()));
    cluster.settle();
    assert!(configure(&mut cluster, &[configured("one", "x"), configured("two", "y")]));
    assert_eq!(all(&cluster), [5, 4, 2]);
    assert!(configure(&mut cluster, &[]));
    assert_eq!(all(&cluster), [5, 4, 4]);
    // Only the one of a client is left.
    cluster.deploy(&approval());
    for partition in [1, 2] {
        cluster.create(partition, "approval", "{}");
    }
    let types = cluster.events().filter_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) => Some(&*job.job_type),
        _ => None,
    });
    assert_eq!(types.collect::<Vec<_>>(), ["audit", "audit"]);
    cluster.check();
}

#[test]
fn a_wrong_configuration_is_refused_as_a_whole() {
    let limits = Limits { global_listeners_max: 2, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..options() });
    partition.submit(Key::NONE, create("by-request"));
    let of = |id: &str| GlobalListenerValue { id: id.into(), ..audit() };
    let configure = |listeners: Vec<GlobalListenerValue>| {
        let value = GlobalListenerBatchValue { global_listener_batch_key: Key::NONE, task_listeners: listeners };
        Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configure, Box::new(value))
    };
    let wrong = GlobalListenerValue { retries: 0, ..of("b") };
    for (listeners, kind, expected) in [
        (
            vec![of("a"), wrong],
            RejectionType::InvalidArgument,
            "listener with id 'b', but its jobs must have at least 1 retry",
        ),
        (vec![of("a"), of("a")], RejectionType::InvalidArgument, "with id 'a', but another one has the same id"),
        (
            vec![of("a"), of("b")],
            RejectionType::InvalidState,
            "but there would be 3 with those that were created by requests",
        ),
    ] {
        let (found, reason) = refused(&mut partition, configure(listeners)).expect(expected);
        assert!(found == kind && reason.contains(expected), "{found:?}: {reason}");
    }
    partition.check();
}

#[test]
fn a_purge_forgets_them() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&approval());
    cluster.submit(1, Key::NONE, create("a"));
    cluster.settle();
    cluster.create(2, "approval", "{}");
    for partition in [1, 2] {
        let purge = Payload::Purge(PurgeIntent::Purge, PurgeValue { incarnation: 2 });
        let reply = cluster.submit(partition, Key::NONE, purge).expect("it is answered at once");
        assert_eq!(reply.rejection, None);
    }
    cluster.settle();
    cluster.deploy(&approval());
    let instance = cluster.create(2, "approval", "{}");
    assert_eq!(cluster.count("JOB", "CREATED"), 1, "the one of before");
    assert_eq!(cluster.cancel(instance), None);
    assert!(cluster.submit(1, Key::NONE, create("a")).is_none(), "its id is free, and it goes to the other partition");
    cluster.settle();
    assert_eq!(cluster.count("GLOBAL_LISTENER", "CREATED"), 4);
    cluster.check();
}

#[test]
fn whoever_has_a_configuration_defined_is_answered_when_every_partition_has_it() {
    let configure = || {
        let value = GlobalListenerBatchValue {
            global_listener_batch_key: Key::NONE,
            task_listeners: vec![GlobalListenerValue { id: "a".into(), ..audit() }],
        };
        Payload::GlobalListenerBatch(GlobalListenerBatchIntent::Configure, Box::new(value))
    };
    let is_answered = |cluster: &Cluster| {
        let is_it = |reply: &&engine::Reply| matches!(&reply.payload, Payload::GlobalListenerBatch(..));
        cluster.nodes[0].replies.iter().filter(is_it).filter(|reply| reply.rejection.is_none()).count()
    };
    let mut alone = Cluster::new(1);
    let reply = alone.submit(1, Key::NONE, configure()).expect("there is nobody to wait for");
    assert_eq!((reply.rejection, reply.payload.intent_name()), (None, "CONFIGURED"));
    let mut cluster = Cluster::new(3);
    for round in 1..=2 {
        // The second time there is nothing to change.
        assert!(cluster.submit(1, Key::NONE, configure()).is_none(), "the others may not have it yet");
        cluster.settle();
        assert_eq!(is_answered(&cluster), round);
        assert_eq!(cluster.count("GLOBAL_LISTENER", "CREATED"), 3);
    }
    cluster.check();
}
