//! Keys, names, numbers and clocks.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_and_keys_of_other_partitions() {
    let node = Node::start(&["--partitions", "3"]).await;
    let mut client = node.client.clone();
    let created = client.create_process_instance(creation("ordinary", "{}")).await.unwrap().into_inner();
    let instance = created.process_instance_key;
    let elsewhere = |partition: i64| partition << 51 | (instance & ((1 << 51) - 1));
    let mut keys = vec![0, -1, 1, i64::MIN, i64::MAX, elsewhere(4), elsewhere(4_095), 2_251_799_813_685_249 + 100_000];
    keys.extend((1..=3).map(elsewhere).filter(|key| *key != instance));
    for key in keys {
        let sentence = format!("key '{key}'");
        let outcome = client.complete_job(completion(key, "")).await;
        assert_refused(outcome.map(|_| ()), Code::NotFound, &sentence);
        let request = FailJobRequest { job_key: key, retries: 1, ..Default::default() };
        assert_refused(client.fail_job(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = ThrowErrorRequest { job_key: key, error_code: "E".into(), ..Default::default() };
        assert_refused(client.throw_error(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = UpdateJobRetriesRequest { job_key: key, retries: 1, operation_reference: None };
        assert_refused(client.update_job_retries(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = UpdateJobTimeoutRequest { job_key: key, timeout: 1, operation_reference: None };
        assert_refused(client.update_job_timeout(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = CancelProcessInstanceRequest { process_instance_key: key, operation_reference: None };
        assert_refused(client.cancel_process_instance(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = ResolveIncidentRequest { incident_key: key, operation_reference: None };
        assert_refused(client.resolve_incident(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = SetVariablesRequest { element_instance_key: key, variables: "{}".into(), ..Default::default() };
        assert_refused(client.set_variables(request).await.map(|_| ()), Code::NotFound, &sentence);
        let request = modification(key, &["task"], &[]);
        assert_refused(client.modify_process_instance(request).await.map(|_| ()), Code::NotFound, &key.to_string());
        let request = migration(key, created.process_definition_key, &[]);
        assert_refused(client.migrate_process_instance(request).await.map(|_| ()), Code::NotFound, &key.to_string());
        let request = DeleteResourceRequest { resource_key: key, ..Default::default() };
        assert_refused(client.delete_resource(request).await.map(|_| ()), Code::NotFound, &key.to_string());
    }
    // The key of another kind of entity.
    let outcome = client.complete_job(completion(instance, "")).await;
    assert_refused(outcome.map(|_| ()), Code::NotFound, "no such job was found");
    let request = CancelProcessInstanceRequest { process_instance_key: instance, operation_reference: None };
    client.cancel_process_instance(request).await.expect("it is still there");
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_at_their_ends() {
    let node = Node::start(&[]).await;
    let mut client = node.client.clone();
    for timeout in [i64::MAX, 1] {
        client.create_process_instance(creation("ordinary", "{}")).await.unwrap();
        let request = ActivateJobsRequest { timeout, max_jobs_to_activate: i32::MAX, ..poll("ordinary", -1) };
        let job = activate(&mut client, request).await.remove(0);
        let request = UpdateJobTimeoutRequest { job_key: job.key, timeout: i64::MAX, operation_reference: Some(0) };
        // The lock of a millisecond may have ended.
        let _ = client.update_job_timeout(request).await;
        let request =
            FailJobRequest { job_key: job.key, retries: i32::MAX, retry_back_off: i64::MAX, ..Default::default() };
        let _ = client.fail_job(request).await;
        let request = CancelProcessInstanceRequest {
            process_instance_key: job.process_instance_key,
            operation_reference: Some(u64::MAX),
        };
        client.cancel_process_instance(request).await.expect("it can be cancelled");
    }
    for time_to_live in [i64::MIN, i64::MAX] {
        let _ = within(SOON, client.publish_message(message("paid", "key", time_to_live))).await;
    }
    for version in [i32::MIN, 0, i32::MAX] {
        let request = CreateProcessInstanceRequest { version, ..creation("ordinary", "") };
        let outcome = client.create_process_instance(request).await;
        assert_refused(outcome.map(|_| ()), Code::NotFound, &format!("version '{version}'"));
    }
    for number in [i32::MIN, 0, -1] {
        let request = ActivateJobsRequest { max_jobs_to_activate: number, ..poll("ordinary", -1) };
        let outcome = client.activate_jobs(request).await;
        assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "maxJobsToActivate");
        let request = ActivateJobsRequest { timeout: i64::from(number), ..poll("ordinary", -1) };
        let outcome = client.activate_jobs(request).await;
        assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "timeout");
    }
    node.goes_on().await;
}

/// Text of many kinds: composed and not, from right to left, beyond 16 bits, invisible, reserved in one language or another.
const TEXTS: [&str; 12] = [
    "Größe",
    "Gro\u{308}ße",
    "注文",
    "طلب",
    "הזמנה",
    "🐝🐝\u{200d}🐝",
    "\u{202e}evil",
    "a\u{0}b",
    "\u{feff}",
    "' OR 1=1 --",
    "../../etc/passwd",
    "%s${jndi:ldap://x}{{7*7}}",
];

#[tokio::test(flavor = "multi_thread")]
async fn names_in_all_of_unicode() {
    let mut node = Node::start(&["--partitions", "2"]).await;
    let client = &mut node.client;
    let model = waiting("bestellung-注文_é", "paid", "=jobType");
    let model = Resource { name: "注文 🐝.bpmn".into(), content: model.content };
    let deployed = deploy(client, model).await;
    assert!(format!("{deployed:?}").contains("bestellung-注文_é"));
    for text in TEXTS {
        let key = serde_json::to_string(text).unwrap();
        let variables = format!("{{\"orderId\":{key},\"jobType\":{key},{key}:{key}}}");
        let created = client.create_process_instance(creation("bestellung-注文_é", &variables)).await.unwrap();
        let published = PublishMessageRequest {
            message_id: text.to_owned(),
            variables: format!("{{{key}:[{key}]}}"),
            ..message("paid", text, 60_000)
        };
        within(SOON, client.publish_message(published)).await.unwrap_or_else(|status| panic!("{text:?}: {status}"));
        let request = ActivateJobsRequest { worker: text.to_owned(), ..poll(text, LONG_POLL) };
        let jobs = within(SOON, activate(client, request)).await;
        let job = jobs.first().unwrap_or_else(|| panic!("{text:?}: no job"));
        assert_eq!((job.r#type.as_str(), job.worker.as_str()), (text, text));
        assert_eq!(job.process_instance_key, created.into_inner().process_instance_key);
        let variables: serde_json::Value = serde_json::from_str(&job.variables).unwrap();
        assert_eq!(variables[text], serde_json::json!([text]), "{text:?}");
        let request = ThrowErrorRequest {
            job_key: job.key,
            error_code: text.to_owned(),
            error_message: text.repeat(100_000),
            variables: String::new(),
        };
        within(SOON, client.throw_error(request)).await.unwrap_or_else(|status| panic!("{text:?}: {status}"));
        let outcome = client.create_process_instance(creation(text, "{}")).await;
        assert_refused(outcome.map(|_| ()), Code::NotFound, "none found");
        let request = CreateProcessInstanceRequest { tags: vec![text.to_owned()], ..creation("ordinary", "") };
        let outcome = client.create_process_instance(request).await;
        assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "Expected a tag");
    }
    node.has_incidents(TEXTS.len()).await;
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_too_long() {
    let node = Node::start(&[]).await;
    let mut client = node.client.clone();
    let long = "n".repeat(3 << 20);
    let outcome = within(SOON, client.publish_message(message(&long, "key", 1_000))).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "512 bytes");
    let outcome = within(SOON, client.publish_message(message("name", &long, 1_000))).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "512 bytes");
    let outcome = within(SOON, client.activate_jobs(poll(&long, -1))).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "at most 16384 bytes together");
    let request = StreamActivatedJobsRequest { r#type: long.clone(), timeout: 1, ..Default::default() };
    let outcome = within(SOON, client.stream_activated_jobs(request)).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "at most 16384 bytes together");
    let outcome = within(SOON, client.create_process_instance(creation(&long, "{}"))).await;
    assert_refused(outcome.map(|_| ()), Code::NotFound, "more bytes)");
    let request = CreateProcessInstanceRequest {
        start_instructions: vec![ProcessInstanceCreationStartInstruction { element_id: "task".into() }; 100_000],
        ..creation("ordinary", "{}")
    };
    let outcome = within(SOON, client.create_process_instance(request)).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "at most 10000 start instructions");
    let ids: Vec<&str> = vec!["task"; 100_000];
    let outcome = within(SOON, client.modify_process_instance(modification(1 << 51 | 1, &ids, &[]))).await;
    assert!(matches!(outcome.unwrap_err().code(), Code::NotFound | Code::InvalidArgument));
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_a_day_or_anywhere() {
    let node = Node::start(&["--clock-control"]).await;
    let mut client = node.client.clone();
    client.create_process_instance(creation("ordinary", "{}")).await.unwrap();
    let request = ActivateJobsRequest { timeout: 1_000, ..poll("ordinary", LONG_POLL) };
    let key = activate(&mut client, request).await.remove(0).key;
    let (code, body) = node.server.http("POST", "/actuator/clock/add", r#"{"offsetMilli": -86400000}"#);
    assert_eq!(code, 200, "{body}");
    client.complete_job(completion(key, "")).await.expect("the job is still locked");
    node.goes_on().await;
    // The lock of a job counts from the latest time that there was, so a day later it has ended.
    client.create_process_instance(creation("ordinary", "{}")).await.unwrap();
    let request = ActivateJobsRequest { timeout: 1_000, ..poll("ordinary", LONG_POLL) };
    assert_eq!(activate(&mut client, request).await.len(), 1);
    let (code, body) = node.server.http("POST", "/actuator/clock/add", r#"{"offsetMilli": 172800000}"#);
    assert_eq!(code, 200, "{body}");
    let job = within(SOON, activate(&mut client, poll("ordinary", LONG_POLL))).await.remove(0);
    client.complete_job(completion(job.key, "")).await.unwrap();
    for body in [
        "",
        "{}",
        "[",
        r#"{"offsetMilli": "x"}"#,
        r#"{"offsetMilli": 1e99}"#,
        r#"{"offsetMilli": 99999999999999999999}"#,
    ] {
        let (code, answer) = node.server.http("POST", "/actuator/clock/add", body);
        assert!((400..500).contains(&code), "{body}: {code} {answer}");
    }
    for offset in [i64::MIN, i64::MAX, 300_000_000_000_000] {
        let body = format!("{{\"offsetMilli\": {offset}}}");
        let (code, answer) = node.server.http("POST", "/actuator/clock/add", &body);
        assert_eq!(code, 400, "{answer}");
    }
    node.goes_on().await;
}
