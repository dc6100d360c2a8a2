//! The answers that clients get, above all when something is wrong.

mod support;

use std::time::{Duration, Instant};

use gateway_interface::*;
use hostile::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, Raw, frame, header, message_prefix};
use support::*;
use tonic::{Code, Status};

const UNKNOWN_KEY: i64 = 2_251_799_813_685_249 + 100_000;
const FOREIGN_KEY: i64 = 9 << 51;

fn assert_status(status: Status, code: Code, message: &str) {
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(message), "'{message}' is missing in '{}'", status.message());
    assert!(!status.details().is_empty(), "the details are missing: {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_get_the_status_and_the_sentence_that_clients_know() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;

    for key in [0, -1, UNKNOWN_KEY, FOREIGN_KEY] {
        let status = client.complete_job(completion(key, "")).await.unwrap_err();
        let sentence = format!(
            "Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key '{key}', but no such job was found"
        );
        assert_status(status, Code::NotFound, &sentence);
        let request = CancelProcessInstanceRequest { process_instance_key: key, operation_reference: None };
        let status = client.cancel_process_instance(request).await.unwrap_err();
        assert_status(status, Code::NotFound, "Command 'CANCEL' rejected with code 'NOT_FOUND'");
        let request = ResolveIncidentRequest { incident_key: key, operation_reference: None };
        assert_status(client.resolve_incident(request).await.unwrap_err(), Code::NotFound, "Command 'RESOLVE'");
        let request = SetVariablesRequest { element_instance_key: key, variables: "{}".into(), ..Default::default() };
        assert_status(client.set_variables(request).await.unwrap_err(), Code::NotFound, "Command 'UPDATE'");
        let request = modification(key, &["task"], &[]);
        let sentence = "Command 'MODIFY' rejected with code 'NOT_FOUND'";
        assert_status(client.modify_process_instance(request).await.unwrap_err(), Code::NotFound, sentence);
        let sentence = "Command 'MIGRATE' rejected with code 'NOT_FOUND'";
        let status = client.migrate_process_instance(migration(key, UNKNOWN_KEY, &[])).await.unwrap_err();
        assert_status(status, Code::NotFound, sentence);
        let sentence = "Command 'DELETE' rejected with code 'NOT_FOUND'";
        let request = DeleteResourceRequest { resource_key: key, ..Default::default() };
        assert_status(client.delete_resource(request).await.unwrap_err(), Code::NotFound, sentence);
    }
    let status = client.complete_job(completion(UNKNOWN_KEY, "[1]")).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "to be a JSON object");
    let status = client.create_process_instance(creation("nothing", "")).await.unwrap_err();
    assert_status(status, Code::NotFound, "Command 'CREATE' rejected with code 'NOT_FOUND'");
    let status = client.create_process_instance(creation("", "")).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "Command 'CREATE' rejected with code 'INVALID_ARGUMENT'");
    let request = CreateProcessInstanceRequest { tenant_id: "other".into(), ..creation("order", "") };
    assert_status(client.create_process_instance(request).await.unwrap_err(), Code::InvalidArgument, "'other'");
    let request = CreateProcessInstanceRequest { tenant_id: "<default>".into(), ..creation("order", "") };
    assert_eq!(client.create_process_instance(request).await.unwrap().into_inner().tenant_id, "<default>");

    let status = client.deploy_resource(DeployResourceRequest::default()).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "at least one resource");
    let resources = vec![Resource { name: "broken.bpmn".into(), content: "<bpmn".into() }];
    let request = DeployResourceRequest { resources, tenant_id: String::new() };
    assert_status(client.deploy_resource(request).await.unwrap_err(), Code::InvalidArgument, "broken.bpmn");

    let blank = ActivateJobsRequest { r#type: " ".into(), ..poll("", -1) };
    let sentence = "Expected to activate jobs with type to be present, but it was blank";
    assert_status(client.activate_jobs(blank).await.unwrap_err(), Code::InvalidArgument, sentence);
    let request = ActivateJobsRequest { max_jobs_to_activate: 0, ..poll("work", -1) };
    assert_status(client.activate_jobs(request).await.unwrap_err(), Code::InvalidArgument, "maxJobsToActivate");
    let request = StreamActivatedJobsRequest { r#type: "work".into(), ..Default::default() };
    let sentence = "Expected to stream activated jobs with timeout to be greater than zero, but it was 0";
    assert_status(client.stream_activated_jobs(request).await.unwrap_err(), Code::InvalidArgument, sentence);
    let request = UpdateJobRetriesRequest { job_key: UNKNOWN_KEY, retries: 0, operation_reference: None };
    assert_status(client.update_job_retries(request).await.unwrap_err(), Code::InvalidArgument, "positive");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_says_so_and_what_is_too_large_names_the_limit() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    let missing = "is not supported by this version of Osmia yet";
    let request = DeleteResourceRequest { delete_history: Some(true), ..Default::default() };
    assert_status(client.delete_resource(request).await.unwrap_err(), Code::Unimplemented, missing);
    let request = CreateProcessInstanceRequest { business_id: Some("b".repeat(257)), ..creation("order", "") };
    let long = "exceeds the max length of 256";
    assert_status(client.create_process_instance(request).await.unwrap_err(), Code::InvalidArgument, long);

    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(4 << 20));
    let status = client.create_process_instance(creation("order", &variables)).await.unwrap_err();
    assert_status(status, Code::ResourceExhausted, "larger than the limit of 4194304 bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_start_events_are_evaluated() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "3"]);
    let mut client = server.client().await;
    deploy(&mut client, started_by_condition("rich", "=amount &gt; 100", "rich")).await;
    let request = |definition: Option<i64>, variables: &str| EvaluateConditionalRequest {
        process_definition_key: definition,
        variables: variables.into(),
        tenant_id: String::new(),
    };
    let response = client.evaluate_conditional(request(None, r#"{"amount":200}"#)).await.unwrap().into_inner();
    assert!(response.conditional_evaluation_key > 0);
    assert_eq!(response.tenant_id, "<default>");
    let [started] = response.process_instances[..] else { panic!("{response:?}") };
    let jobs = activate(&mut client, poll("rich", LONG_POLL)).await;
    assert_eq!(jobs[0].process_instance_key, started.process_instance_key);
    assert_eq!(jobs[0].variables, r#"{"amount":200}"#);
    let definition = Some(started.process_definition_key);
    let response = client.evaluate_conditional(request(definition, r#"{"amount":2}"#)).await.unwrap().into_inner();
    assert_eq!(response.process_instances, []);
    let status = client.evaluate_conditional(request(Some(UNKNOWN_KEY), "")).await.unwrap_err();
    assert_status(status, Code::NotFound, "Expected to evaluate conditional for process definition key");
    let status = client.evaluate_conditional(request(Some(0), "")).await.unwrap_err();
    assert_status(
        status,
        Code::InvalidArgument,
        "Expected the key of a process definition to be positive, but it is 0.",
    );
    let status = client.evaluate_conditional(request(None, "[1]")).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "Expected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_broadcast_and_starts_what_waits_for_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "3"]);
    let mut client = server.client().await;
    let status = client.broadcast_signal(BroadcastSignalRequest::default()).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "Expected the name of a signal, but it is empty or blank.");
    deploy(&mut client, started_by_signal("told", "go", "told")).await;
    let request =
        BroadcastSignalRequest { signal_name: "go".into(), variables: "{\"a\":1}".into(), tenant_id: String::new() };
    let response = client.broadcast_signal(request).await.unwrap().into_inner();
    assert!(response.key > 0);
    assert_eq!(response.tenant_id, "<default>");
    let jobs = activate(&mut client, poll("told", LONG_POLL)).await;
    assert_eq!(jobs.iter().map(|job| &*job.variables).collect::<Vec<_>>(), ["{\"a\":1}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_operations_are_invalid() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    let no_object = "to be a JSON object";

    let request = PublishMessageRequest { variables: "[1]".into(), ..message("paid", "bee", 0) };
    assert_status(client.publish_message(request).await.unwrap_err(), Code::InvalidArgument, no_object);
    let request = PublishMessageRequest { tenant_id: "other".into(), ..message("paid", "bee", 0) };
    assert_status(client.publish_message(request).await.unwrap_err(), Code::InvalidArgument, "'other'");
    let mut request = modification(UNKNOWN_KEY, &["task"], &[]);
    request.activate_instructions[0]
        .variable_instructions
        .push(modify_process_instance_request::VariableInstruction { variables: "1".into(), scope_id: String::new() });
    assert_status(client.modify_process_instance(request).await.unwrap_err(), Code::InvalidArgument, no_object);
    let request = MigrateProcessInstanceRequest { process_instance_key: UNKNOWN_KEY, ..Default::default() };
    let status = client.migrate_process_instance(request).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "'migrationPlan'");
    let request = CreateProcessInstanceRequest {
        runtime_instructions: vec![ProcessInstanceCreationRuntimeInstruction { instruction: None }],
        ..creation("order", "")
    };
    let status = client.create_process_instance(request).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "runtime instruction");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_kept_on_the_partition_of_their_correlation_key() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "3"]);
    let mut client = server.client().await;
    deploy(&mut client, waiting("order", "paid", "work")).await;
    let mut missing = std::collections::BTreeSet::new();
    // The partitions that Zeebe chooses for them.
    for (key, partition) in [("order-1", 3), ("order-42", 1), ("customer-4711", 2), ("Größe", 3), ("a", 2)] {
        let published = client.publish_message(message("paid", key, 60_000)).await.unwrap().into_inner();
        assert_eq!(published.tenant_id, "<default>");
        assert_eq!(published.key >> 51, partition, "{key}");
        for _ in 0..2 {
            let variables = format!("{{\"orderId\":\"{key}\"}}");
            let created = client.create_process_instance(creation("order", &variables)).await.unwrap().into_inner();
            missing.insert(created.process_instance_key);
            // The second instance of a key waits for a second message.
            client.publish_message(message("paid", key, 60_000)).await.unwrap();
        }
    }
    while !missing.is_empty() {
        let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
        assert!(!jobs.is_empty(), "{missing:?} wait for their messages");
        for job in jobs {
            assert!(missing.remove(&job.process_instance_key), "{job:?}");
        }
    }
    let request = || PublishMessageRequest { message_id: "once".into(), ..message("paid", "bee", 60_000) };
    client.publish_message(request()).await.unwrap();
    assert_status(client.publish_message(request()).await.unwrap_err(), Code::AlreadyExists, "'once'");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_start_anywhere_and_move() {
    let data = tempfile::tempdir().unwrap();
    // One partition: others let a definition be deleted and keep it for the instances that they run.
    let server = Server::start(data.path(), &["--partitions", "1"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let target = deploy(&mut client, one_task("other", "rest")).await;
    let definition = definition_key(&target);
    let start = |element: &str| CreateProcessInstanceRequest {
        start_instructions: vec![ProcessInstanceCreationStartInstruction { element_id: element.to_owned() }],
        ..creation("order", "")
    };
    let status = client.create_process_instance(start("nowhere")).await.unwrap_err();
    assert_status(status, Code::InvalidArgument, "'nowhere'");
    client.create_process_instance(start("task")).await.unwrap();
    let job = activate(&mut client, poll("work", LONG_POLL)).await.remove(0);

    let instance = job.process_instance_key;
    client.migrate_process_instance(migration(instance, definition, &[("task", "task")])).await.unwrap();
    client.modify_process_instance(modification(instance, &["task"], &[job.element_instance_key])).await.unwrap();
    let status = client.complete_job(completion(job.key, "")).await.unwrap_err();
    assert_status(status, Code::NotFound, "no such job");
    let job = activate(&mut client, poll("rest", LONG_POLL)).await.remove(0);
    assert_eq!((job.process_instance_key, job.process_definition_key), (instance, definition));

    let deletion = DeleteResourceRequest { resource_key: definition, ..Default::default() };
    let status = client.delete_resource(deletion).await.unwrap_err();
    assert_status(status, Code::FailedPrecondition, "still running instances");
    client.complete_job(completion(job.key, "")).await.unwrap();
    let deleted = client.delete_resource(deletion).await.unwrap().into_inner();
    assert_eq!((deleted.resource_key, deleted.batch_operation), (definition.to_string(), None));
    assert_status(client.create_process_instance(creation("other", "")).await.unwrap_err(), Code::NotFound, "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_ends_after_an_element() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let terminate = TerminateProcessInstanceInstruction { after_element_id: "start".into() };
    let instruction = process_instance_creation_runtime_instruction::Instruction::Terminate(terminate);
    let request = CreateProcessInstanceRequest {
        runtime_instructions: vec![ProcessInstanceCreationRuntimeInstruction { instruction: Some(instruction) }],
        ..creation("order", "")
    };
    client.create_process_instance(request).await.unwrap();
    assert!(activate(&mut client, poll("work", 200)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_time_outs() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let with_result = |timeout| CreateProcessInstanceWithResultRequest {
        request: Some(creation("order", r#"{"a":1,"b":2}"#)),
        request_timeout: timeout,
        fetch_variables: vec!["b".into(), "c".into()],
    };
    let status = client.create_process_instance_with_result(with_result(200)).await.unwrap_err();
    assert_status(status, Code::DeadlineExceeded, "Time out between gateway and broker");
    let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
    assert_eq!(jobs.len(), 1, "the instance keeps running");
    client.complete_job(completion(jobs[0].key, "")).await.unwrap();

    let mut other = server.client().await;
    let waiting = tokio::spawn(async move { other.create_process_instance_with_result(with_result(LONG_POLL)).await });
    let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
    client.complete_job(completion(jobs[0].key, r#"{"c":[3]}"#)).await.unwrap();
    let result = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(result.process_instance_key, jobs[0].process_instance_key);
    let variables: serde_json::Value = serde_json::from_str(&result.variables).unwrap();
    assert_eq!(variables, serde_json::json!({"b": 2, "c": [3]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_wakes_up_for_its_jobs_and_ends_quietly_without() {
    let data = tempfile::tempdir().unwrap();
    // A poll that waited although it says that it does not would wait until the test is given up.
    let server = Server::start(data.path(), &["--partitions", "3", "--long-polling-timeout", "1h"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;

    let begin = std::time::Instant::now();
    assert!(activate(&mut client, poll("work", 300)).await.is_empty());
    assert!(begin.elapsed() >= Duration::from_millis(300));
    let at_once = tokio::time::timeout(LIMIT, activate(&mut client, poll("work", -1))).await;
    assert!(at_once.expect("it does not wait").is_empty());

    for _ in 0..10 {
        let mut poller = server.client().await;
        let polled = tokio::spawn(async move { activate(&mut poller, poll("work", LONG_POLL)).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let created = client.create_process_instance(creation("order", "")).await.unwrap().into_inner();
        let jobs = polled.await.unwrap();
        assert_eq!(jobs.iter().map(|job| job.process_instance_key).collect::<Vec<_>>(), [created.process_instance_key]);
        client.complete_job(completion(jobs[0].key, "")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_client_that_is_gone_go_to_the_next_one() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    for _ in 0..5 {
        // Their lock is longer than the test waits.
        let request = ActivateJobsRequest { timeout: 10 * LONG_POLL, ..poll("work", LONG_POLL) };
        let gone = server.client().await.activate_jobs(request).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let created = tokio::spawn({
            let mut client = client.clone();
            async move { client.create_process_instance(creation("order", "")).await }
        });
        // Dropped at about the time at which its job is activated.
        drop(gone);
        created.await.unwrap().unwrap();
        let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
        assert_eq!(jobs.len(), 1, "the job waits for its time-out");
        client.complete_job(completion(jobs[0].key, "")).await.unwrap();
    }
}

/// The client says it in a header, which its own library does not look at when answers come piece by piece.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_ends_when_its_client_gives_up_and_loses_no_job() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    // Their lock is longer than the test waits.
    let request = || ActivateJobsRequest { timeout: 10 * LONG_POLL, ..poll("work", LONG_POLL) };
    let mut kept = 0;
    for milliseconds in 20..40 {
        let mut call = tonic::Request::new(request());
        call.set_timeout(Duration::from_millis(milliseconds));
        let mut poller = client.clone();
        let polled = tokio::spawn(async move {
            let mut jobs = Vec::new();
            let mut answers = poller.activate_jobs(call).await?.into_inner();
            loop {
                match answers.message().await {
                    Ok(Some(answer)) => jobs.extend(answer.jobs),
                    Ok(None) => return Ok((jobs, None)),
                    Err(status) => return Ok::<_, Status>((jobs, Some(status))),
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(25)).await;
        client.create_process_instance(creation("order", "")).await.unwrap();
        let polled = tokio::time::timeout(LIMIT / 2, polled).await.expect("it ends").unwrap();
        // A machine that is busy may need longer than that until the answer begins.
        let (mut jobs, status) = polled.unwrap_or_default();
        if let Some(status) = status {
            assert_status(status, Code::DeadlineExceeded, "that the client allows it (grpc-timeout)");
        }
        kept += jobs.len();
        if jobs.is_empty() {
            jobs = activate(&mut client, request()).await;
        }
        assert_eq!(jobs.len(), 1, "the job waits for its time-out");
        client.complete_job(completion(jobs[0].key, "")).await.unwrap();
    }
    println!("{kept} of 20 jobs came in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_one_answer_ends_when_its_client_gives_up() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let message = CreateProcessInstanceWithResultRequest {
        request: Some(creation("order", "")),
        request_timeout: LONG_POLL,
        fetch_variables: Vec::new(),
    };
    let message = prost::Message::encode_to_vec(&message);
    let grpc = server.grpc.clone();
    let answered = tokio::task::spawn_blocking(move || {
        let mut raw = Raw::open(&grpc);
        raw.wait_at_most(LIMIT / 2);
        let call = |stream: u32, time: &str| {
            let headers = [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", "/gateway_protocol.Gateway/CreateProcessInstanceWithResult"),
                (":authority", "localhost"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                ("grpc-timeout", time),
            ];
            let headers: Vec<u8> = headers.into_iter().flat_map(|(name, value)| header(name, value)).collect();
            let message = [message_prefix(u32::try_from(message.len()).unwrap()), message.clone()].concat();
            [frame(HEADERS, END_HEADERS, stream, &headers), frame(DATA, END_STREAM, stream, &message)].concat()
        };
        assert!(raw.send(&[call(1, "300m"), call(3, "0S"), call(5, "soon")].concat()));
        [raw.read_answer(), raw.read_answer(), raw.read_answer()]
    });
    for answer in answered.await.unwrap() {
        assert_eq!(answer, Some(Vec::new()), "a status without a message");
    }
    let jobs = activate(&mut client, poll("work", LONG_POLL)).await;
    assert_eq!(jobs.len(), 1, "only the call that had time was begun, and its instance keeps running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_give_up_many_requests_before_they_are_read() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    client.topology(TopologyRequest {}).await.expect("the connection is open");
    server.freeze();
    let give_up = (0..500).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move {
            tokio::time::timeout(Duration::from_millis(300), client.activate_jobs(poll("work", 60_000))).await
        })
    });
    for poll in give_up.collect::<Vec<_>>() {
        assert!(poll.await.unwrap().is_err(), "the server answers although it stands still");
    }
    server.signal("-CONT");
    client.topology(TopologyRequest {}).await.expect("the connection is still open");
    assert!(activate(&mut client, poll("work", 50)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_waiting_polls_are_refused_by_the_name_of_the_limit() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--parked-polls-max", "1"]);
    let mut client = server.client().await;
    let first = client.activate_jobs(poll("work", 60_000)).await.unwrap();
    let mut second = client.activate_jobs(poll("other", 60_000)).await.unwrap().into_inner();
    assert_status(second.message().await.unwrap_err(), Code::ResourceExhausted, "limit of 1 requests");
    drop(first);
    let begin = Instant::now();
    loop {
        let mut other = client.activate_jobs(poll("other", 100)).await.unwrap().into_inner();
        match other.message().await {
            Ok(jobs) => break assert!(jobs.is_none(), "the place of the first is free again"),
            // The server has not noticed yet that the first is gone.
            Err(status) => assert!(status.code() == Code::ResourceExhausted && begin.elapsed() < LIMIT, "{status}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_jobs_come_in_messages_that_clients_accept() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(1_500_000));
    for _ in 0..3 {
        client.create_process_instance(creation("order", &variables)).await.unwrap();
    }
    // This client takes at most 4 MiB in one message.
    let jobs = activate(&mut client, poll("work", -1)).await;
    assert!(jobs.iter().all(|job| job.variables == variables));
    let rest = activate(&mut client, poll("work", -1)).await;
    assert_eq!(jobs.len() + rest.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_checks_are_answered_and_frequent_pings_are_welcome() {
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let endpoint = tonic::transport::Endpoint::from_shared(server.grpc.clone()).unwrap();
    let pinging = endpoint
        .http2_keep_alive_interval(Duration::from_millis(20))
        .keep_alive_timeout(LIMIT)
        .keep_alive_while_idle(true);
    let channel = pinging.connect().await.unwrap();
    for service in ["", "gateway_protocol.Gateway"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let response = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner();
        assert_eq!(response.status(), ServingStatus::Serving);
    }
    let mut client = gateway_client::GatewayClient::new(channel);
    deploy(&mut client, one_task("order", "work")).await;
    let request = StreamActivatedJobsRequest { r#type: "work".into(), timeout: 60_000, ..Default::default() };
    let mut jobs = client.stream_activated_jobs(request).await.unwrap().into_inner();
    // A server that counts pings would have closed the connection by now.
    assert!(tokio::time::timeout(Duration::from_millis(1500), jobs.message()).await.is_err());
    client.create_process_instance(creation("order", "")).await.unwrap();
    assert!(jobs.message().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_comes_once_while_somebody_polls() {
    poll_and_give_up(LIMIT).await;
}

/// Whatever the order of notifications, answers and departures, no job may wait for the probe that comes every 10 seconds.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn no_job_waits_while_somebody_polls() {
    poll_and_give_up(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn a_long_poll_is_woken_by_the_notification_and_not_by_a_probe() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "3"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    for _ in 0..10 {
        let mut poller = server.client().await;
        let polled = tokio::spawn(async move { activate(&mut poller, poll("work", LONG_POLL)).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.create_process_instance(creation("order", "")).await.unwrap();
        let jobs = tokio::time::timeout(Duration::from_secs(2), polled).await.expect("it is woken").unwrap();
        client.complete_job(completion(jobs[0].key, "")).await.unwrap();
    }
}

/// Pollers for one job each, some of which keep giving up, against jobs in all partitions; each next job comes within
/// `limit`.
async fn poll_and_give_up(limit: Duration) {
    const INSTANCES: usize = 400;
    const POLLERS: u64 = 24;
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "3"]);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    let (done, mut completed) = tokio::sync::mpsc::unbounded_channel();
    for poller in 0..POLLERS {
        let (mut client, done) = (client.clone(), done.clone());
        tokio::spawn(async move {
            for round in 0.. {
                // Every third poller gives up after a few milliseconds, each time a different number. What is on the wire
                // to it by then comes back when its lock ends.
                let (timeout, patience) = match poller % 3 {
                    0 => (500, Duration::from_millis(1 + (round * 7 + poller) % 13)),
                    _ => (60_000, Duration::MAX),
                };
                let request = ActivateJobsRequest { max_jobs_to_activate: 1, timeout, ..poll("work", 60_000) };
                let polled = activate(&mut client, request);
                for job in tokio::time::timeout(patience, polled).await.unwrap_or_default() {
                    client.complete_job(completion(job.key, "")).await.unwrap();
                    done.send(job.process_instance_key).unwrap();
                }
            }
        });
    }
    let mut created = std::collections::BTreeSet::new();
    let mut finished = std::collections::BTreeSet::new();
    for number in 0..INSTANCES {
        let instance = client.create_process_instance(creation("order", "")).await.unwrap().into_inner();
        created.insert(instance.process_instance_key);
        if number % 8 == 0 {
            // Lets the pollers run dry occasionally.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    while finished.len() < INSTANCES {
        let next = tokio::time::timeout(limit, completed.recv()).await;
        let key = next.expect("a job waits although somebody polls").unwrap();
        assert!(finished.insert(key), "completed twice");
    }
    assert_eq!(created, finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_evaluated_on_every_partition_also_after_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let flags = ["--partitions", "3", "--checkpoint-interval", "100ms"];
    let server = Server::start(data.path(), &flags);
    let content = r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="graph" name="Graph" namespace="n">
  <decision id="grade" name="Grade"><decisionTable id="table">
    <input id="in"><inputExpression id="e"><text>points</text></inputExpression></input>
    <output id="out" name="grade"/>
    <rule id="good"><inputEntry id="i1"><text>&gt;= 50</text></inputEntry><outputEntry id="o1"><text>"good"</text></outputEntry></rule>
    <rule id="poor"><inputEntry id="i2"><text>&lt; 50</text></inputEntry><outputEntry id="o2"><text>"poor"</text></outputEntry></rule>
  </decisionTable></decision>
</definitions>"#;
    let file = data.path().join("grade.dmn");
    std::fs::write(&file, content).unwrap();
    let printed = |arguments: &[&str]| {
        let output = osmia(&server, arguments);
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = printed(&["deploy", file.to_str().unwrap()]);
    assert!(code == Some(0) && text.contains("decision grade version 1") && text.contains("from grade.dmn"), "{text}");
    assert_eq!(printed(&["evaluate", "grade", "--variables", "{\"points\":7}"]), (Some(0), "\"poor\"\n".to_owned()));
    let (code, text) = printed(&["evaluate", "grades"]);
    assert!(code == Some(1) && text.contains("no decision found for id 'grades'"), "{text}");
    let evaluation = |points: u32| EvaluateDecisionRequest {
        decision_id: "grade".into(),
        variables: format!("{{\"points\":{points}}}"),
        ..EvaluateDecisionRequest::default()
    };
    let all_good = async |server: &Server| {
        let mut client = server.client().await;
        for points in 50..56 {
            let response = client.evaluate_decision(evaluation(points)).await.unwrap().into_inner();
            assert_eq!((response.decision_output.as_str(), response.decision_version), ("\"good\"", 1));
        }
    };
    all_good(&server).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.kill();
    let server = Server::start(data.path(), &flags);
    all_good(&server).await;

    let mut client = server.client().await;
    let neither = client.evaluate_decision(EvaluateDecisionRequest::default()).await.unwrap_err();
    assert_status(neither, Code::InvalidArgument, "Expected either a decision id or a valid decision key");
    let unknown = EvaluateDecisionRequest { decision_key: UNKNOWN_KEY, ..EvaluateDecisionRequest::default() };
    let sentence = "Command 'EVALUATE' rejected with code 'NOT_FOUND': Expected to evaluate decision";
    assert_status(client.evaluate_decision(unknown).await.unwrap_err(), Code::NotFound, sentence);
    let wrong = EvaluateDecisionRequest { variables: "[]".into(), ..evaluation(1) };
    assert_status(client.evaluate_decision(wrong).await.unwrap_err(), Code::InvalidArgument, "to be a JSON object");
}
