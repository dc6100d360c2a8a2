//! A node with the real engine: commands, jobs, restarts.

mod support;

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use broker::{
    Client, FeatureLevel, FlowControlOptions, Health, JobSink, Node, NodeOptions, Push, Reply, Role,
    StreamSpecification, StreamWindow, SubmitError,
};
use model_builder::{Event, ProcessBuilder};
use protocol::*;
use support::*;

#[test]
fn an_instance_runs_through_a_pushed_job() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(options(directory.path()));
    let client = node.client();
    deploy(&client, &one_task());
    let (handle, jobs) = stream(&client);
    let (sender, result) = mpsc::channel();
    let command = creation(ProcessInstanceCreationIntent::CreateWithAwaitingResult, "{\"amount\":12}");
    client.submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
    let pushed = jobs.wait(1);
    assert_eq!(&*pushed[0].job.job_type, "pay");
    assert_eq!(&*pushed[0].job.variables, "{\"amount\":12}");
    handle.delivered(PartitionId(1), amount(&pushed));
    assert_eq!(complete(&client, pushed[0].key).expect("taken").rejection, None);
    let reply = result.recv_timeout(LIMIT).expect("answered").expect("taken");
    match reply.payload {
        Payload::ProcessInstanceResult(_, value) => {
            assert!(value.variables.contains("\"paid\":true"), "{}", value.variables);
        }
        other => panic!("unexpected answer {other:?}"),
    }
    let again = complete(&client, pushed[0].key).expect("taken");
    assert_eq!(again.rejection.map(|rejection| rejection.rejection_type), Some(RejectionType::NotFound));
    assert_eq!(again.payload.intent_name(), "COMPLETE");
    handle.close(Vec::new());
    node.stop().expect("a clean stop");
}

#[test]
fn everything_acknowledged_survives_a_crash_and_a_stop() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut instances = BTreeSet::new();
    let mut node = start(options(directory.path()));
    deploy(&node.client(), &one_task());
    for round in 0..4 {
        for _ in 0..25 {
            assert!(instances.insert(create(&node.client(), 1)), "no key comes twice");
        }
        match round % 2 {
            0 => node.crash(),
            _ => node.stop().expect("a clean stop"),
        }
        node = start(options(directory.path()));
    }
    let client = node.client();
    let (_handle, jobs) = stream(&client);
    let pushed = jobs.wait(100);
    let of_instances: BTreeSet<Key> = pushed.iter().map(|push| push.job.process_instance_key).collect();
    assert_eq!(of_instances, instances);
    for push in &pushed {
        assert_eq!(complete(&client, push.key).expect("taken").rejection, None);
    }
    node.crash();
    let node = start(options(directory.path()));
    assert_eq!(activate(&node.client(), 1, 100, 1_000), [], "a completed job never comes back");
}

#[test]
fn a_crash_in_the_middle_of_load_loses_nothing_that_was_answered() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let fast = NodeOptions { checkpoint_interval: Duration::from_millis(20), ..options(directory.path()) };
    let mut acknowledged = BTreeSet::new();
    let node = start(fast.clone());
    deploy(&node.client(), &one_task());
    node.stop().expect("a clean stop");
    for _ in 0..3 {
        let node = start(fast.clone());
        let client = node.client();
        let (sender, answers) = mpsc::channel();
        let submitting = std::thread::spawn(move || {
            for _ in 0..3_000 {
                let sender = sender.clone();
                let command = creation(ProcessInstanceCreationIntent::Create, "{}");
                client.submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
                std::thread::sleep(Duration::from_micros(30));
            }
        });
        std::thread::sleep(Duration::from_millis(120));
        node.crash();
        submitting.join().expect("no panic");
        for reply in answers.iter().filter_map(Result::ok) {
            let Payload::ProcessInstanceCreation(_, value) = reply.payload else { panic!("unexpected answer") };
            assert!(acknowledged.insert(value.process_instance_key), "no key comes twice");
        }
    }
    assert!(!acknowledged.is_empty());
    let node = start(fast);
    let (_handle, jobs) = stream(&node.client());
    let mut waiting = BTreeSet::new();
    eventually("every acknowledged instance", || {
        for push in jobs.take() {
            assert!(waiting.insert(push.job.process_instance_key), "no job comes twice");
            _handle.delivered(PartitionId(1), JobAmount::of(&push.job));
        }
        acknowledged.is_subset(&waiting)
    });
}

#[test]
fn a_deployment_reaches_all_partitions_before_it_is_answered_also_after_a_crash() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let three = NodeOptions { partition_count: 3, ..options(directory.path()) };
    let node = start(three.clone());
    deploy(&node.client(), &one_task());
    for partition in 1..=3 {
        assert_eq!(create(&node.client(), partition).partition(), Some(PartitionId(partition)));
    }
    // The second deployment is cut off at some point of its way.
    let (sender, _answer) = mpsc::channel();
    let resource = DeploymentResource {
        resource_name: "order.bpmn".into(),
        resource: one_task().version_tag("second").to_xml().into_bytes().into(),
    };
    let tenant_id = DEFAULT_TENANT.into();
    let value = DeploymentValue { resources: vec![resource], tenant_id, ..DeploymentValue::default() };
    let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
    let command = Command::new(Key::NONE, payload);
    node.client().submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
    std::thread::sleep(Duration::from_millis(3));
    node.crash();
    let node = start(three);
    let client = node.client();
    deploy(&client, &one_task().version_tag("third"));
    for partition in 1..=3 {
        create(&client, partition);
    }
    let view = client.cluster();
    assert_eq!(view.partitions_count, 3);
    let partitions = &view.nodes[0].partitions;
    assert!(partitions.iter().all(|p| p.role == Role::Leader && p.health == Health::Healthy), "{partitions:?}");
}

#[test]
fn a_backlog_drains_through_a_stream_oldest_first() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(options(directory.path()));
    let client = node.client();
    deploy(&client, &one_task());
    let (sender, answers) = mpsc::channel();
    for _ in 0..2_000 {
        let sender = sender.clone();
        let command = creation(ProcessInstanceCreationIntent::Create, "{}");
        eventually("room", || {
            let sender = sender.clone();
            let (taken_sender, taken) = mpsc::channel();
            client.submit(PartitionId(1), command.clone(), move |answer| {
                let refused = matches!(answer, Err(SubmitError::ResourceExhausted { .. }));
                let _ = taken_sender.send(!refused);
                if !refused {
                    drop(sender.send(answer));
                }
            });
            // A refusal comes at once.
            taken.try_recv() != Ok(false)
        });
    }
    drop(sender);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2_000);
    let (handle, jobs) = stream(&client);
    let mut keys = Vec::new();
    eventually("all jobs", || {
        let pushed = jobs.take();
        handle.delivered(PartitionId(1), amount(&pushed));
        keys.extend(pushed.into_iter().map(|push| push.key));
        keys.len() >= 2_000
    });
    assert!(keys.is_sorted(), "oldest first");
    keys.dedup();
    assert_eq!(keys.len(), 2_000);
}

#[test]
fn a_stream_gets_no_more_than_its_window_and_a_closed_one_gives_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(NodeOptions { stream_window: window(8), ..options(directory.path()) });
    let client = node.client();
    deploy(&client, &one_task());
    let (handle, jobs) = stream(&client);
    for _ in 0..20 {
        create(&client, 1);
    }
    let first = jobs.wait(8);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!((first.len(), jobs.len()), (8, 0), "no credit, no jobs");
    handle.delivered(PartitionId(1), amount(&first[..4]));
    let second = jobs.wait(4);
    assert_eq!(second.len(), 4);
    assert!(second[0].key > first[7].key, "the backlog continues where it stopped");
    // Eight jobs did not reach the client: they and the rest go to the next request.
    let undelivered: Vec<_> = first.into_iter().skip(4).chain(second).collect();
    let given_back: BTreeSet<Key> = undelivered.iter().map(|push| push.key).collect();
    handle.close(undelivered);
    let mut activated = BTreeSet::new();
    eventually("16 jobs", || {
        activated.extend(activate(&client, 1, 20, 60_000));
        activated.len() >= 16
    });
    assert_eq!(activated.len(), 16);
    assert!(given_back.is_subset(&activated));
}

/// Ten workers that take nothing, and more large jobs on three partitions than they may hold.
#[test]
fn what_slow_workers_hold_is_bounded_in_bytes() {
    const WORKERS: usize = 10;
    const WINDOW_BYTES: usize = 300 << 10;
    const JOB_BYTES: usize = 64 << 10;
    let directory = tempfile::tempdir().expect("temporary directory");
    let window = StreamWindow { bytes: WINDOW_BYTES, ..StreamWindow::default() };
    let node = start(NodeOptions { partition_count: 3, stream_window: window, ..options(directory.path()) });
    let client = node.client();
    deploy(&client, &one_task());
    let streams: Vec<_> = (0..WORKERS).map(|_| stream(&client)).collect();
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(JOB_BYTES));
    for number in 0..100 {
        let command = creation(ProcessInstanceCreationIntent::Create, &variables);
        submit(&client, PartitionId(1 + number % 3), command).expect("an answer");
    }
    let held: Vec<u64> = streams.iter().map(|(_, jobs)| amount(&jobs.take()).bytes).collect();
    // Of each partition a third of the window, and one job that passes it.
    let most = (WINDOW_BYTES + 3 * (JOB_BYTES + 1_000)) as u64;
    assert!(held.iter().all(|bytes| (JOB_BYTES as u64..=most).contains(bytes)), "{held:?} bytes, at most {most}");
    // Nothing is lost: who takes what it has gets more.
    let (handle, jobs) = &streams[0];
    assert_eq!(jobs.len(), 0);
    let taken = JobAmount { jobs: 2, bytes: 2 * JOB_BYTES as u64 };
    handle.delivered(PartitionId(2), taken);
    jobs.wait(1);
}

/// What the default says of ten slow workers.
#[test]
fn the_usual_window_is_of_four_mebibytes_and_128_jobs() {
    let window = StreamWindow::default();
    assert_eq!((window.jobs, window.bytes, window.node_bytes), (128, 4 << 20, 256 << 20));
}

#[test]
fn the_settings_are_taken_and_stay_in_the_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(NodeOptions { root_variable_bytes_limit: Some(1 << 20), ..options(directory.path()) });
    deploy(&node.client(), &one_task());
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(2 << 20));
    let create = |client: &Client| {
        let reply = submit(client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, &large));
        reply.expect("taken").rejection.map(|rejection| rejection.reason.to_string())
    };
    eventually("the setting", || create(&node.client()).is_some());
    node.crash();
    let node = start(options(directory.path()));
    let reason = create(&node.client()).expect("it is still too large");
    assert!(reason.contains("to have at most 1048576 bytes together"), "{reason}");
    node.stop().expect("a clean stop");
}

/// The first partition comes last, and a build without the level leaves the data to the one that raised it.
#[test]
fn partitions_are_raised_to_a_level_and_a_build_without_it_refuses_them() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let older = NodeOptions { partition_count: 2, ..options(directory.path()) };
    let newer = NodeOptions { newest_feature_level: FeatureLevel::TEST, ..older.clone() };
    let test = FeatureLevel::TEST.number();
    let node = start(older.clone());
    let raise = |client: &Client, partition, level| {
        let (sender, answer) = mpsc::channel();
        client.raise_feature_level(PartitionId(partition), level, move |reply| drop(sender.send(reply)))?;
        Ok::<_, broker::RaiseError>(answer.recv_timeout(LIMIT).expect("answered").expect("taken").rejection)
    };
    for unknown in [2, 999, test] {
        let error = raise(&node.client(), 2, unknown).expect_err("unknown").to_string();
        let expected = format!("Feature level {unknown} is not known: this build knows the levels up to 1.");
        assert!(error.starts_with(&expected), "{error}");
    }
    node.stop().expect("a clean stop");
    let node = start(newer.clone());
    let client = node.client();
    let error = raise(&client, 1, test).expect_err("partition 2 comes first").to_string();
    assert!(error.contains("partition 2 is at level 1. Raise that one first"), "{error}");
    assert_eq!(raise(&client, 2, test).expect("known"), None);
    assert_eq!(raise(&client, 1, test).expect("known"), None);
    let is_raised = |client: &Client| client.feature_levels().iter().all(|partition| partition.level == test);
    eventually("the levels", || is_raised(&client));
    let lowered = raise(&client, 1, 1).expect("known").expect("refused").reason.to_string();
    assert!(lowered.contains(&format!("at level {test} already, and a level is never lowered")), "{lowered}");
    node.stop().expect("a clean stop");
    let error = Node::start(older).expect_err("the level is not known").to_string();
    let expected = format!("Partition 1 cannot go on with this build: Feature level {test} is not known");
    assert!(error.starts_with(&expected), "{error}");
    let node = start(newer);
    assert!(is_raised(&node.client()));
    node.stop().expect("a clean stop");
}

/// Numbers of an earlier life do not come again, also when nobody knows how often the node was started.
#[test]
fn an_answer_to_a_request_of_an_earlier_life_goes_to_nobody_else() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let awaiting = || creation(ProcessInstanceCreationIntent::CreateWithAwaitingResult, "{}");
    let node = start(options(directory.path()));
    deploy(&node.client(), &one_task());
    node.client().submit(PartitionId(1), awaiting(), |_| ());
    let old = activate(&node.client(), 1, 1, 1);
    node.crash();
    std::fs::remove_file(directory.path().join("STARTS")).expect("there");
    let node = start(options(directory.path()));
    let client = node.client();
    // As many requests as in the life before.
    deploy(&client, &one_task());
    let (sender, result) = mpsc::channel();
    client.submit(PartitionId(1), awaiting(), move |answer| drop(sender.send(answer)));
    let new = activate(&client, 1, 2, 60_000).into_iter().find(|job| !old.contains(job)).expect("a second job");
    assert_eq!(complete(&client, old[0]).expect("taken").rejection, None);
    assert_eq!(result.try_recv().err(), Some(mpsc::TryRecvError::Empty), "the first instance is none of its");
    assert_eq!(complete(&client, new).expect("taken").rejection, None);
    let reply = result.recv_timeout(LIMIT).expect("answered").expect("taken");
    assert_eq!(reply.payload.intent_name(), "COMPLETED");
    node.stop().expect("a clean stop");
}

#[test]
fn a_pinned_clock_stays_pinned_over_restarts_until_it_is_reset() {
    let directory = tempfile::tempdir().expect("temporary directory");
    // Ahead of every other time.
    let pinned = 4_000_000_000_000;
    let fast = NodeOptions { checkpoint_interval: Duration::from_millis(20), ..options(directory.path()) };
    let mut node = start(options(directory.path()));
    node.clock().pin(pinned).expect("controllable");
    deploy(&node.client(), &one_task());
    for round in 0..4 {
        match round % 2 {
            0 => node.crash(),
            _ => node.stop().expect("a clean stop"),
        }
        // Once it is in the log alone, and then in the state too.
        node = start(if round < 2 { options(directory.path()) } else { fast.clone() });
        assert_eq!(node.clock().now_milliseconds(), pinned, "after restart {round}");
    }
    node.clock().reset().expect("controllable");
    deploy(&node.client(), &one_task());
    node.crash();
    let node = start(options(directory.path()));
    assert!(!node.clock().is_pinned());
    node.stop().expect("a clean stop");
}

#[test]
fn jobs_time_out_on_the_node_s_clock_and_are_announced() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(options(directory.path()));
    let client = node.client();
    deploy(&client, &one_task());
    let (sender, announced) = mpsc::channel();
    client.on_jobs_available(std::sync::Arc::new(move |partition, available| {
        drop(sender.send((partition, available.job_type.to_string())));
    }));
    create(&client, 1);
    assert_eq!(announced.recv_timeout(LIMIT), Ok((PartitionId(1), "pay".to_owned())));
    // On the real clock: not early.
    let before = Instant::now();
    let [job] = activate(&client, 1, 10, 300)[..] else { panic!("one job") };
    announced.recv_timeout(LIMIT).expect("the job is available again");
    let waited = before.elapsed();
    assert!(waited >= Duration::from_millis(299), "{waited:?}");
    // On a moved clock: at once, although an hour has to pass.
    assert_eq!(activate(&client, 1, 10, 3_600_000), [job]);
    node.clock().add(3_600_001).expect("controllable");
    announced.recv_timeout(LIMIT).expect("the job is available again");
    // Time never goes back, and does not stop working when the clock does.
    node.clock().reset().expect("controllable");
    assert_eq!(activate(&client, 1, 10, 60_000), [job]);
    node.crash();
    let node = start(options(directory.path()));
    assert_eq!(complete(&node.client(), job).expect("taken").rejection, None);
}

/// Submits this many creations without waiting in between.
fn create_at_once(client: &Client, count: usize) -> Vec<Result<Reply, SubmitError>> {
    let (sender, answers) = mpsc::channel();
    for _ in 0..count {
        let sender = sender.clone();
        let command = creation(ProcessInstanceCreationIntent::Create, "{}");
        client.submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
    }
    drop(sender);
    answers.iter().collect()
}

#[test]
fn what_finds_no_room_waits_and_is_carried_out_once() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let flow_control = FlowControlOptions {
        initial_commands: 2,
        continuing_commands: 2,
        min_commands: 2,
        max_commands: 2,
        ..FlowControlOptions::default()
    };
    let node = start(NodeOptions { flow_control, ..options(directory.path()) });
    let client = node.client();
    deploy(&client, &one_task());
    let answers = create_at_once(&client, 200);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 200, "nothing is refused");
    assert_eq!(activate(&client, 1, 500, 60_000).len(), 200);
}

#[test]
fn refusals_name_the_limit() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let flow_control = FlowControlOptions {
        initial_commands: 2,
        continuing_commands: 2,
        min_commands: 2,
        max_commands: 2,
        held_commands: 3,
        ..FlowControlOptions::default()
    };
    let node = start(NodeOptions { flow_control, ..options(directory.path()) });
    let client = node.client();
    deploy(&client, &one_task());
    let answers = create_at_once(&client, 200);
    assert_eq!(answers.len(), 200, "every command is answered exactly once");
    let refused = answers.iter().find_map(|answer| answer.as_ref().err()).expect("some are refused");
    assert!(refused.to_string().contains("partition 1 has 2 commands in flight, and its limit is 2 now"), "{refused}");
    assert!(answers.iter().any(Result::is_ok), "some are taken");

    let unknown = submit(&client, PartitionId(9), activation(1, 1_000)).expect_err("no such partition");
    assert!(unknown.to_string().starts_with("there is no partition 9, the partitions are 1 to 1;"), "{unknown}");
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(5 << 20));
    let large = submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, &large));
    assert!(matches!(large, Err(SubmitError::PayloadTooLarge { limit_bytes: 4_194_304, .. })), "{large:?}");
    node.stop().expect("a clean stop");
    assert_eq!(submit(&client, PartitionId(1), activation(1, 1_000)).map(drop), Err(SubmitError::Stopped));
}

struct Broken;

impl JobSink for Broken {
    fn push(&self, _: Push) -> bool {
        panic!("a fault in the gateway");
    }
}

#[test]
fn a_node_that_lost_a_thread_says_so_and_refuses() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(options(directory.path()));
    let client = node.client();
    deploy(&client, &one_task());
    let specification = StreamSpecification {
        job_type: "pay".into(),
        worker: "broken".into(),
        timeout: 1_000,
        fetch_variables: Vec::new(),
        tenant_ids: vec![DEFAULT_TENANT.into()],
    };
    let _handle = client.open_stream(specification, std::sync::Arc::new(Broken)).expect("there is room for a stream");
    // Its own answer may come before the push or not.
    let _ = submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}"));
    eventually("the failure", || node.failure().is_some());
    assert!(!node.is_ready());
    assert_eq!(node.partitions()[0].health, Health::Dead);
    let refused = submit(&client, PartitionId(1), creation(ProcessInstanceCreationIntent::Create, "{}"));
    assert!(matches!(refused, Err(SubmitError::Unavailable { .. })), "{refused:?}");
    let error = node.stop().expect_err("it failed before").to_string();
    assert!(error.contains("the thread 'processing 0' ended with a panic"), "{error}");
    // The job was activated for the stream of the failed node, and is there again when that time is over.
    let node = start(options(directory.path()));
    node.clock().add(1_001).expect("controllable");
    eventually("the job", || activate(&node.client(), 1, 1, 1_000).len() == 1);
}

#[test]
fn time_does_not_go_back_with_a_restart() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(options(directory.path()));
    deploy(&node.client(), &one_task());
    create(&node.client(), 1);
    node.clock().add(86_400_000).expect("controllable");
    let [job] = activate(&node.client(), 1, 1, 60_000)[..] else { panic!("one job") };
    node.crash();
    // The clock shows yesterday now, but a minute after the activation has not passed in the engine's time.
    let node = start(options(directory.path()));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(activate(&node.client(), 1, 1, 60_000), []);
    node.clock().add(86_400_000 + 60_001).expect("controllable");
    eventually("the job", || activate(&node.client(), 1, 1, 60_000) == [job]);
}

/// In whole seconds.
fn since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

#[test]
fn timers_that_came_due_while_the_node_was_down_fire_in_their_order_when_it_is_back() {
    let process = ProcessBuilder::new("order")
        .start("start")
        .catch_event("wait", Event::Date("=date and time(\"1970-01-01T00:00:00Z\") + duration(due)"))
        .service_task("pay", "pay")
        .end("end");
    // On a slow machine the first timers come due before the node stops, and everything begins again with later ones.
    for seconds in [3, 15, 75] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let node = start(options(directory.path()));
        deploy(&node.client(), &process);
        let due = since_1970() + seconds;
        let begin = |due: u64| {
            let variables = format!("{{\"due\": \"PT{due}S\"}}");
            let command = creation(ProcessInstanceCreationIntent::Create, &variables);
            match execute(&node.client(), PartitionId(1), command).payload {
                Payload::ProcessInstanceCreation(_, value) => value.process_instance_key,
                other => panic!("unexpected answer {other:?}"),
            }
        };
        // More than may be in flight at once, and not due in the order of their creation.
        let (mut late, mut early) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..150 {
            late.insert(begin(due + 1));
            early.insert(begin(due));
        }
        begin(due + 3_600);
        node.stop().expect("a clean stop");
        if since_1970() >= due {
            continue;
        }
        while since_1970() <= due + 1 {
            std::thread::sleep(Duration::from_millis(100));
        }
        let node = start(NodeOptions { stream_window: window(1_000), ..options(directory.path()) });
        let (_handle, jobs) = stream(&node.client());
        let fired: Vec<Key> = jobs.wait(300).iter().map(|push| push.job.process_instance_key).collect();
        assert_eq!(fired[..150].iter().copied().collect::<BTreeSet<_>>(), early);
        assert_eq!(
            fired[150..].iter().copied().collect::<BTreeSet<_>>(),
            late,
            "once each, and not the one of an hour"
        );
        return;
    }
    panic!("300 instances are not begun within 75 s");
}

#[test]
fn wrong_starts_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(options(directory.path()));
    let error = Node::start(options(directory.path())).expect_err("the directory is in use").to_string();
    assert!(error.contains(&format!("is in use by process {}", std::process::id())), "{error}");
    node.stop().expect("a clean stop");
    let more = NodeOptions { partition_count: 4, ..options(directory.path()) };
    let error = Node::start(more).expect_err("the data has one partition").to_string();
    assert!(error.contains("was made with partition count 1, and it cannot be changed to 4"), "{error}");
    for count in [0, 4_096] {
        let wrong = NodeOptions { partition_count: count, ..options(directory.path()) };
        let error = Node::start(wrong).expect_err("an impossible count").to_string();
        assert!(
            error.starts_with(&format!("The partition count is {count}, and it must be between 1 and 4095")),
            "{error}"
        );
    }
}

#[test]
fn a_node_starts_with_more_partitions_than_the_address_space_has_tebibytes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let node = start(NodeOptions { partition_count: 140, ..options(directory.path()) });
    assert_eq!(node.partitions().len(), 140);
    node.stop().expect("a clean stop");
}
