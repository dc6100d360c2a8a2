//! Instances that would run for ever, grow without end, or never get anywhere.

use super::*;

/// Ordinary instances come to their end while something else keeps the node busy.
async fn others_go_on(node: &Node) {
    for _ in 0..5 {
        node.goes_on().await;
    }
}

/// Two event sub-processes that trigger each other for ever.
fn endless() -> Resource {
    let handler = |id: &str, caught: &str, thrown: &str| {
        format!(
            r#"<subProcess id="{id}" triggeredByEvent="true">
              <startEvent id="{id}_start" isInterrupting="false"><escalationEventDefinition escalationRef="{caught}"/></startEvent>
              <sequenceFlow id="{id}_1" sourceRef="{id}_start" targetRef="{id}_throw"/>
              <intermediateThrowEvent id="{id}_throw"><escalationEventDefinition escalationRef="{thrown}"/></intermediateThrowEvent>
              <sequenceFlow id="{id}_2" sourceRef="{id}_throw" targetRef="{id}_end"/><endEvent id="{id}_end"/>
            </subProcess>"#
        )
    };
    let content = format!(
        r#"<startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="throw"/>
        <intermediateThrowEvent id="throw"><escalationEventDefinition escalationRef="ping"/></intermediateThrowEvent>
        <sequenceFlow id="f2" sourceRef="throw" targetRef="end"/><endEvent id="end"/>{}{}"#,
        handler("a", "ping", "pong"),
        handler("b", "pong", "ping")
    );
    process("endless", &content)
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_loops() {
    let mut node = Node::start(&[]).await;
    let visible = r#"<startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="a"/>
        <manualTask id="a"/><sequenceFlow id="f2" sourceRef="a" targetRef="b"/>
        <manualTask id="b"/><sequenceFlow id="f3" sourceRef="b" targetRef="a"/>"#;
    let visible = process("visible", visible).content;
    node.refuses("visible.bpmn", visible, Code::InvalidArgument, "straight-through processing loop: a > b > a").await;
    deploy(&mut node.client, endless()).await;
    let mut instances = Vec::new();
    for _ in 0..3 {
        let created = within(SOON, node.client.create_process_instance(creation("endless", "{}"))).await.unwrap();
        instances.push(created.into_inner().process_instance_key);
    }
    others_go_on(&node).await;
    for process_instance_key in instances {
        let request = CancelProcessInstanceRequest { process_instance_key, operation_reference: None };
        within(SOON, node.client.cancel_process_instance(request)).await.expect("it can be cancelled");
    }
    node.comes_to_rest().await;
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_that_are_always_due() {
    let mut node = Node::start(&[]).await;
    let timer = r#"<startEvent id="start"><timerEventDefinition><timeCycle>R/PT0S</timeCycle></timerEventDefinition></startEvent>
        <sequenceFlow id="f1" sourceRef="start" targetRef="end"/><endEvent id="end"/>"#;
    let deployed = deploy(&mut node.client, process("timer", timer)).await;
    let triggered = || node.metric("zeebe_executed_instances_total");
    eventually("the timer has triggered", || triggered() >= 1.0).await;
    others_go_on(&node).await;
    let request = DeleteResourceRequest { resource_key: definition_key(&deployed), ..Default::default() };
    within(SOON, node.client.delete_resource(request)).await.expect("it can be deleted");
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recursive_calls() {
    let mut node = Node::start(&[]).await;
    let called =
        |id: &str| format!(r#"<extensionElements><zeebe:calledElement processId="{id}"/></extensionElements>"#);
    let itself = one_element("itself", "callActivity", &called("itself")).content;
    node.refuses("itself.bpmn", itself, Code::InvalidArgument, "straight-through processing loop").await;
    // Spread over two files, it cannot be seen before it happens.
    deploy(&mut node.client, one_element("first", "callActivity", &called("second"))).await;
    deploy(&mut node.client, one_element("second", "callActivity", &called("first"))).await;
    let (before, _) = node.memory();
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
    let created = within(SOON, node.client.create_process_instance(creation("first", &variables))).await.unwrap();
    others_go_on(&node).await;
    node.has_incidents(1).await;
    let (after, _) = node.memory();
    assert!(after < before + 500, "{before} MiB, then {after} MiB");
    let request = CancelProcessInstanceRequest {
        process_instance_key: created.into_inner().process_instance_key,
        operation_reference: None,
    };
    within(SOON, node.client.cancel_process_instance(request)).await.expect("the root can be cancelled");
    eventually("the incident is gone", || node.metric("zeebe_pending_incidents_total") == 0.0).await;
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_that_never_end() {
    let mut node = Node::start(&[]).await;
    let (before, _) = node.memory();
    let expressions = [
        "for i in 1..1000000000000 return i",
        "{f: function(g, n) g(g, n + 1), r: f(f, 0)}.r",
        "(for i in 1..60 return if i = 1 then &quot;xxxxxxxx&quot; else partial[-1] + partial[-1])[-1]",
        "for i in 1..60 return if i = 1 then [1, 2] else concatenate(partial[-1], partial[-1])",
        "every i in 1..1000000 satisfies text between text and text",
    ];
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    for (number, expression) in expressions.iter().enumerate() {
        let id = format!("slow{number}");
        deploy(&mut node.client, service_task(&id, "slow", &format!("= {expression}"))).await;
        within(SOON, node.client.create_process_instance(creation(&id, &text))).await.unwrap();
        node.has_incidents(number + 1).await;
        node.goes_on().await;
    }
    let timer = r#"<startEvent id="start"><timerEventDefinition><timeCycle>= string(for i in 1..1000000000 return i)</timeCycle>
        </timerEventDefinition></startEvent><sequenceFlow id="f1" sourceRef="start" targetRef="end"/><endEvent id="end"/>"#;
    let timer = process("timer", timer).content;
    node.refuses("timer.bpmn", timer, Code::InvalidArgument, "The expression was stopped").await;
    let deep = format!("= {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let deep = service_task("deep", "work", &deep).content;
    node.refuses("deep.bpmn", deep, Code::InvalidArgument, "at most 100 levels of nesting").await;
    let (after, _) = node.memory();
    assert!(after < before + 500, "{before} MiB, then {after} MiB");
    assert!(activate(&mut node.client, poll("slow", -1)).await.is_empty());
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn job_types_that_are_nothing_or_a_megabyte() {
    let mut node = Node::start(&[]).await;
    deploy(&mut node.client, service_task("typed", "= type", "= 1")).await;
    let long = "x".repeat(1 << 20);
    let types = ["null", "\"\"", "1", "[]", "{\"a\":1}", &format!("\"{long}\""), &format!("\"{}\"", "x".repeat(513))];
    for (number, job_type) in types.into_iter().enumerate() {
        let variables = format!("{{\"type\":{job_type}}}");
        within(SOON, node.client.create_process_instance(creation("typed", &variables))).await.unwrap();
        node.has_incidents(number + 1).await;
    }
    within(SOON, node.client.create_process_instance(creation("typed", "{}"))).await.unwrap();
    node.has_incidents(types.len() + 1).await;
    node.refuses("nothing.bpmn", service_task("nothing", "", "= 1").content, Code::InvalidArgument, "'type'").await;
    within(SOON, node.client.create_process_instance(creation("typed", r#"{"type":"real"}"#))).await.unwrap();
    assert_eq!(within(SOON, activate(&mut node.client, poll("real", LONG_POLL))).await.len(), 1);
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_tokens() {
    let mut node = Node::start(&[]).await;
    let content = r#"<extensionElements><zeebe:taskDefinition type="many"/></extensionElements>
        <multiInstanceLoopCharacteristics><extensionElements>
        <zeebe:loopCharacteristics inputCollection="= for i in 1..100000 return i" inputElement="item"/>
        </extensionElements></multiInstanceLoopCharacteristics>"#;
    deploy(&mut node.client, one_element("many", "serviceTask", content)).await;
    let (before, _) = node.memory();
    let created = within(SOON, node.client.create_process_instance(creation("many", "{}"))).await.unwrap();
    others_go_on(&node).await;
    let jobs_are = |action: &str| {
        let (_, text) = node.server.http("GET", "/actuator/prometheus", "");
        let action = format!("action=\"{action}\"");
        let is_of_many = |line: &&str| line.contains("type=\"many\"") && line.contains(&action);
        text.lines().filter(is_of_many).any(|line| line.ends_with(" 100000"))
    };
    eventually("all tokens are there", || jobs_are("created")).await;
    let mut client = node.client.clone();
    let jobs = within(SOON, activate(&mut client, poll("many", LONG_POLL))).await;
    assert_eq!(jobs.len(), 32);
    let request = CancelProcessInstanceRequest {
        process_instance_key: created.into_inner().process_instance_key,
        operation_reference: None,
    };
    within(SOON, client.cancel_process_instance(request)).await.expect("it can be cancelled");
    others_go_on(&node).await;
    eventually("no token is left", || jobs_are("canceled")).await;
    let (after, _) = node.memory();
    assert!(after < before + 1_000, "{before} MiB, then {after} MiB");
    assert!(activate(&mut client, poll("many", -1)).await.is_empty(), "no job is left");
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_multiply() {
    let mut content =
        String::from(r#"<startEvent id="start"/><sequenceFlow id="f" sourceRef="start" targetRef="fork0"/>"#);
    for level in 0..9 {
        content.push_str(&format!(r#"<parallelGateway id="fork{level}"/><exclusiveGateway id="join{level}"/>"#));
        for blade in 0..10 {
            content.push_str(&format!(
                r#"<sequenceFlow id="f{level}_{blade}" sourceRef="fork{level}" targetRef="task{level}_{blade}"/>
                <manualTask id="task{level}_{blade}"/>
                <sequenceFlow id="g{level}_{blade}" sourceRef="task{level}_{blade}" targetRef="join{level}"/>"#
            ));
        }
        let next = if level == 8 { "end".to_owned() } else { format!("fork{}", level + 1) };
        content.push_str(&format!(r#"<sequenceFlow id="h{level}" sourceRef="join{level}" targetRef="{next}"/>"#));
    }
    content.push_str(r#"<endEvent id="end"/>"#);
    let mut node = Node::start(&[]).await;
    deploy(&mut node.client, process("bomb", &content)).await;
    let (before, _) = node.memory();
    let created = within(SOON, node.client.create_process_instance(creation("bomb", "{}"))).await.unwrap();
    others_go_on(&node).await;
    let (after, _) = node.memory();
    assert!(after < before + 1_500, "{before} MiB, then {after} MiB");
    let request = CancelProcessInstanceRequest {
        process_instance_key: created.into_inner().process_instance_key,
        operation_reference: None,
    };
    // It may have been banned already.
    let _ = within(SOON, node.client.cancel_process_instance(request)).await;
    node.goes_on().await;
}
