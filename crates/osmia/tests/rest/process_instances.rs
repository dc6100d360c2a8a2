//! Process instances: created, awaited, changed and cancelled.

use std::collections::BTreeSet;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_created_worked_on_and_awaited() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut worker = server.client().await;
    let mut connection = Connection::open(&server);

    let body = r#"{"processDefinitionId":"order","variables":{"a":1.0},"tenantId":"<default>","tags":["t"]}"#;
    let created = connection.ask("POST", "/v2/process-instances", body);
    assert_eq!((created.status, created.header("content-type")), (200, Some(JSON)), "{}", created.body);
    let created = created.json();
    let names: Vec<&str> = created.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "businessId",
        "processDefinitionId",
        "processDefinitionKey",
        "processDefinitionVersion",
        "processInstanceKey",
        "tags",
        "tenantId",
        "variables",
    ];
    expected.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(created["processDefinitionVersion"], 1);
    assert_eq!((&created["tags"], &created["variables"]), (&json!(["t"]), &json!({})));

    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    assert_eq!(created["processInstanceKey"], job.process_instance_key.to_string());
    assert_eq!(job.variables, r#"{"a":1.0}"#, "variables stay as they were sent");
    let path = format!("/v2/jobs/{}/completion", job.key);
    let completed = connection.ask("POST", &path, r#"{"variables":{"b":2}}"#);
    assert_eq!((completed.status, &*completed.body), (204, ""));
    let (status, title, detail) = connection.ask("POST", &path, "").problem(&path);
    assert_eq!((status, &*title), (404, "NOT_FOUND"));
    assert!(
        detail.starts_with("Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job"),
        "{detail}"
    );

    let awaited = std::thread::spawn(move || {
        let key = created["processDefinitionKey"].as_str().unwrap();
        let body = format!(
            r#"{{"processDefinitionKey":"{key}","variables":{{"a":[1,"é"],"c":3}},"awaitCompletion":true,"requestTimeout":600000,"fetchVariables":["a","b"]}}"#
        );
        let answer = connection.ask("POST", "/v2/process-instances", &body);
        (answer, connection)
    });
    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    worker.complete_job(completion(job.key, r#"{"b":2}"#)).await.unwrap();
    let (ended, mut connection) = tokio::task::spawn_blocking(|| awaited.join().unwrap()).await.unwrap();
    assert_eq!((ended.status, &ended.json()["variables"]), (200, &json!({"a": [1, "é"], "b": 2})), "{}", ended.body);
    let body = r#"{"processDefinitionId":"order","awaitCompletion":true,"requestTimeout":1}"#;
    let (status, title, detail) =
        connection.ask("POST", "/v2/process-instances", body).problem("/v2/process-instances");
    assert_eq!((status, &*title), (504, "DEADLINE_EXCEEDED"));
    assert!(detail.contains("did not answer createProcessInstance within 1 ms"), "{detail}");
    assert!(detail.contains("Look for it before you create another one."), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_of_a_message_learns_which_instance_takes_it() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut client = server.client().await;
    deploy(&mut client, waiting("waits", "paid", "work")).await;
    let mut connection = Connection::open(&server);
    let path = "/v2/messages/correlation";
    let wrong = "No name provided.";
    connection.refused(("POST", path, r#"{"name":" "}"#), 400, "INVALID_ARGUMENT", wrong);
    let nobody = "Expected to find subscription for message with name 'paid' and correlation key 'bee'";
    let body = r#"{"name":"paid","correlationKey":"bee","variables":{"a":1},"tenantId":"<default>"}"#;
    connection.refused(("POST", path, body), 404, "NOT_FOUND", nobody);
    // Instances of both partitions wait, and take the messages one after the other.
    let mut instances = BTreeSet::new();
    for _ in 0..4 {
        let created = client.create_process_instance(creation("waits", r#"{"orderId":"bee"}"#)).await.unwrap();
        instances.insert(created.into_inner().process_instance_key.to_string());
    }
    let mut took = BTreeSet::new();
    while took.len() < instances.len() {
        let answer = connection.ask("POST", path, body);
        if answer.status == 404 {
            // Not all of them wait already.
            continue;
        }
        assert_eq!(answer.status, 200, "{}", answer.body);
        let correlated = answer.json();
        assert_eq!(correlated["tenantId"], "<default>");
        assert!(correlated["messageKey"].as_str().is_some_and(|key| key.parse::<i64>().is_ok()));
        assert!(took.insert(correlated["processInstanceKey"].as_str().unwrap().to_owned()), "each takes one");
    }
    assert_eq!(took, instances);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_changed_and_cancelled() {
    let (server, _data) = start(&[]).await;
    let mut worker = server.client().await;
    let mut connection = Connection::open(&server);
    let body = r#"{"processDefinitionId":"order","variables":{"a":1},"operationReference":9,"startInstructions":[{"elementId":"task"}]}"#;
    let created = connection.tell("POST", "/v2/process-instances", body);
    let key = created["processInstanceKey"].as_str().unwrap().to_owned();
    let path = format!("/v2/process-instances/{key}");
    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);

    let variables = format!("/v2/element-instances/{}/variables", job.element_instance_key);
    connection.done("PUT", &variables, r#"{"variables":{"own":1},"local":true,"operationReference":1}"#);
    connection.done("PUT", &format!("/v2/element-instances/{key}/variables"), r#"{"variables":{"a":2}}"#);
    connection.refused(("PUT", &variables, "{}"), 400, "INVALID_ARGUMENT", "No variables provided.");
    let unknown = "/v2/element-instances/2251799813699999/variables";
    connection.refused(("PUT", unknown, r#"{"variables":{}}"#), 404, "NOT_FOUND", "Command 'UPDATE' rejected");

    let body = format!(
        r#"{{"activateInstructions":[{{"elementId":"task","variableInstructions":[{{"variables":{{"b":3}},"scopeId":""}}],"ancestorElementInstanceKey":"-1"}}],"moveInstructions":[],"terminateInstructions":[{{"elementInstanceKey":"{}"}}]}}"#,
        job.element_instance_key
    );
    let modification = format!("{path}/modification");
    connection.done("POST", &modification, &body);
    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    assert_eq!(serde_json::from_str::<Value>(&job.variables).unwrap(), json!({"a": 2, "b": 3}));
    let body = r#"{"moveInstructions":[{"sourceElementInstruction":{"sourceType":"byId","sourceElementId":"task"},"targetElementId":"task"}]}"#;
    connection.done("POST", &modification, body);
    let moved = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    assert_ne!(moved.element_instance_key, job.element_instance_key);
    let body = r#"{"activateInstructions":[{"elementId":"nothing"}]}"#;
    connection.refused(("POST", &modification, body), 400, "INVALID_ARGUMENT", "Command 'MODIFY' rejected");

    let other = one_task("other", "work");
    let deployed = connection.deploy(&[(&other.name, &other.content)]);
    let definition = deployed["deployments"][0]["processDefinition"]["processDefinitionKey"].as_str().unwrap();
    let migration = format!("{path}/migration");
    let mapping = |source: &str| {
        format!(
            r#"{{"targetProcessDefinitionKey":"{definition}","mappingInstructions":[{{"sourceElementId":"{source}","targetElementId":"task"}}]}}"#
        )
    };
    connection.refused(("POST", &migration, &mapping("end")), 409, "INVALID_STATE", "Command 'MIGRATE' rejected");
    connection.done("POST", &migration, &mapping("task"));
    let words = "No targetProcessDefinitionKey provided. No mappingInstructions provided.";
    connection.refused(("POST", &migration, "{}"), 400, "INVALID_ARGUMENT", words);

    let cancellation = format!("{path}/cancellation");
    connection.refused(("POST", &cancellation, r#"{"operationReference":0}"#), 400, "INVALID_ARGUMENT", "must be > 0.");
    connection.done("POST", &cancellation, r#"{"operationReference":7}"#);
    connection.refused(
        ("POST", &cancellation, "{}"),
        404,
        "NOT_FOUND",
        "Command 'CANCEL' rejected with code 'NOT_FOUND'",
    );
    connection.refused(("POST", &modification, "{}"), 404, "NOT_FOUND", "Command 'MODIFY' rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_ends_after_an_element_and_who_waits_is_told() {
    let (server, _data) = start(&[]).await;
    let mut worker = server.client().await;
    let waiting = std::thread::spawn({
        let mut connection = Connection::open(&server);
        // Below zero is the usual time, as 0 is.
        let body = r#"{"processDefinitionId":"order","awaitCompletion":true,"requestTimeout":-5,"variables":{"a":1}}"#;
        move || connection.tell("POST", "/v2/process-instances", body)
    });
    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    worker.complete_job(completion(job.key, "{}")).await.unwrap();
    let ended = tokio::task::spawn_blocking(|| waiting.join().unwrap()).await.unwrap();
    assert_eq!(ended["variables"], json!({"a": 1}));

    let mut connection = Connection::open(&server);
    let body = r#"{"processDefinitionId":"order","runtimeInstructions":[{"type":"TERMINATE_PROCESS_INSTANCE","afterElementId":"task"}]}"#;
    let created = connection.tell("POST", "/v2/process-instances", body);
    let job = activate(&mut worker, poll("work", LONG_POLL)).await.remove(0);
    connection.done("POST", &format!("/v2/jobs/{}/completion", job.key), "{}");
    let path = format!("/v2/process-instances/{}/cancellation", created["processInstanceKey"].as_str().unwrap());
    connection.refused(("POST", &path, ""), 404, "NOT_FOUND", "no such process was found");
}
