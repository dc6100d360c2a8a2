//! Models and variables.

use super::*;

fn definitions(prologue: &str, content: &str) -> Vec<u8> {
    format!(
        r#"{prologue}<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d">{content}</definitions>"#
    )
    .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn malicious_xml() {
    let mut node = Node::start(&[]).await;
    let (_, before) = node.memory();
    let entities: String =
        (1..20).map(|level| format!("<!ENTITY e{level} \"{}\">", format!("&e{};", level - 1).repeat(10))).collect();
    let bomb = format!("<?xml version=\"1.0\"?><!DOCTYPE d [<!ENTITY e0 \"ha\">{entities}]>");
    node.refuses("bomb.bpmn", definitions(&bomb, "&e19;"), Code::InvalidArgument, "DOCTYPE").await;
    let external = "<!DOCTYPE d [<!ENTITY file SYSTEM \"file:///etc/passwd\">]>";
    node.refuses("external.bpmn", definitions(external, "&file;"), Code::InvalidArgument, "DOCTYPE").await;
    let nested = "<a>".repeat(1_000_000);
    node.refuses("deep.bpmn", definitions("", &nested), Code::InvalidArgument, "deeper than 256 levels").await;
    let attributes: String = (0..300_000).map(|number| format!("a{number}='' ")).collect();
    let wide = format!("<process {attributes}/>");
    node.refuses("wide.bpmn", definitions("", &wide), Code::InvalidArgument, "at most 256 attributes").await;
    let comments = definitions("", &"<!---->".repeat(500_000));
    node.refuses("comments.bpmn", comments, Code::InvalidArgument, "'comments.bpmn'").await;
    let gateways: String = (0..40_000).map(|number| format!("<complexGateway id=\"gateway{number}\"/>")).collect();
    let many = format!("<process id=\"many\" isExecutable=\"true\">{gateways}</process>");
    node.refuses("many.bpmn", definitions("", &many), Code::InvalidArgument, "more errors and/or warnings").await;
    let large = definitions("", &" ".repeat(10 << 20));
    node.refuses("large.bpmn", large, Code::ResourceExhausted, "limit of 4194304 bytes").await;
    let (_, after) = node.memory();
    assert!(after - before < 300, "{before} MiB, then {after} MiB");
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_xml() {
    let mut node = Node::start(&[]).await;
    let whole = one_task("order", "work").content.to_vec();
    let unknown = |name: &str| format!("<?xml version=\"1.0\" encoding=\"{name}\"?>");
    for name in ["EBCDIC-CP-US", "UTF-7", "IBM850", "\u{1f41d}"] {
        let content = definitions(&unknown(name), "");
        node.refuses("old.bpmn", content, Code::InvalidArgument, &format!("The encoding '{name}'")).await;
    }
    let mut wrong = whole.clone();
    wrong[200] = 0xff;
    node.refuses("wrong.bpmn", wrong, Code::InvalidArgument, "not valid UTF-8: the byte at offset 200").await;
    let half = vec![0xfe, 0xff, 0, b'<', 0xd8];
    node.refuses("half.bpmn", half, Code::InvalidArgument, "not valid UTF-16").await;
    node.refuses("cut.bpmn", whole[..300].to_vec(), Code::InvalidArgument, "'cut.bpmn': The file is not well-formed")
        .await;
    node.refuses("empty.bpmn", Vec::new(), Code::InvalidArgument, "'empty.bpmn'").await;
    node.refuses("image.bpmn", b"\x89PNG\r\n\x1a\n\0\0".to_vec(), Code::InvalidArgument, "'image.bpmn'").await;
    node.refuses("nul.bpmn", vec![0; 100_000], Code::InvalidArgument, "'nul.bpmn'").await;
    node.refuses("virus.exe", whole.clone(), Code::InvalidArgument, "'virus.exe': unknown resource type").await;
    node.refuses("", whole, Code::InvalidArgument, "the name of one is blank").await;
    let html = b"<html xmlns=\"http://www.w3.org/1999/xhtml\"/>".to_vec();
    node.refuses("page.bpmn", html, Code::InvalidArgument, "The root element is 'html'").await;
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_deployments() {
    let mut node = Node::start(&[]).await;
    let (_, before) = node.memory();
    let resources = (0..100_000).map(|number| Resource { name: format!("{number}.bpmn"), content: Vec::new().into() });
    let request = DeployResourceRequest { resources: resources.collect(), tenant_id: String::new() };
    let outcome = within(SOON, node.client.deploy_resource(request)).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "at most 1000 resources together, but 100000");
    let process = |number: usize| {
        format!("<process id=\"p{number}\" isExecutable=\"true\"><startEvent id=\"s{number}\"/></process>")
    };
    let processes: String = (0..10_000).map(process).collect();
    let sentence = "Expected the 10000 processes of the deployment to have at most";
    node.refuses("processes.bpmn", definitions("", &processes), Code::InvalidArgument, sentence).await;
    let (_, after) = node.memory();
    assert!(after - before < 300, "{before} MiB, then {after} MiB");
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_variables() {
    let mut node = Node::start(&[]).await;
    let mut client = node.client.clone();
    let no_object = "Expected the variables to be a JSON object";
    for wrong in ["[1]", "1", "\"{}\"", "nul", "{", "{}{}", "{\"a\":}", "{\"a\":1,}", "{1:2}", "\0", "{\"a\":\"\\x\"}"]
    {
        let outcome = client.create_process_instance(creation("ordinary", wrong)).await;
        assert_refused(outcome.map(|_| ()), Code::InvalidArgument, no_object);
        let outcome = client.complete_job(completion(1 << 51, wrong)).await;
        assert_refused(outcome.map(|_| ()), Code::InvalidArgument, no_object);
    }
    for levels in [1_000, 1_000_000] {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let outcome = within(SOON, client.create_process_instance(creation("ordinary", &deep))).await;
        assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "more than 1000 levels deep");
    }
    let long_name = format!("{{\"{}\":1}}", "n".repeat(513));
    let outcome = client.create_process_instance(creation("ordinary", &long_name)).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "at most 512 bytes");
    let outcome = client.create_process_instance(creation("ordinary", r#"{"a":"\ud800"}"#)).await;
    assert_refused(outcome.map(|_| ()), Code::InvalidArgument, "half of a character");
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(4 << 20));
    let outcome = within(SOON, client.create_process_instance(creation("ordinary", &large))).await;
    assert_refused(outcome.map(|_| ()), Code::ResourceExhausted, "larger than the limit of 4194304 bytes");
    node.client = client;
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_and_large_variables() {
    let mut node = Node::start(&[]).await;
    deploy(&mut node.client, one_task("order", "work")).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(999), "]".repeat(999));
    let names: Vec<String> = (0..20_000).map(|number| format!("\"v{number}\":{number}")).collect();
    let many = format!("{{{}}}", names.join(","));
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat((4 << 20) - 2_000));
    let strange = r#"{"a":1e999999999,"b":"\ud83d\ude00","c":"\u0000","a":-0.0,"":{"":[]}}"#;
    for variables in [strange, &deep, &many, &large] {
        let shown: String = variables.chars().take(20).collect();
        let created = within(SOON, node.client.create_process_instance(creation("order", variables))).await;
        let created = created.unwrap_or_else(|status| panic!("{shown}: {status}")).into_inner();
        let mut jobs = within(SOON, activate(&mut node.client, poll("work", LONG_POLL))).await;
        let job = jobs.pop().unwrap_or_else(|| panic!("{shown}: no job"));
        assert_eq!(job.process_instance_key, created.process_instance_key);
        serde_json::from_str::<serde::de::IgnoredAny>(&job.variables)
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        within(SOON, node.client.complete_job(completion(job.key, ""))).await.expect("it can be completed");
    }
    node.goes_on().await;
}
