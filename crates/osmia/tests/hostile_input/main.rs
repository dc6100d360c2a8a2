//! Each kind of hostile input gets a clear error in bounded time and memory, and the node keeps working.

mod connections;
mod documents;
mod held;
mod instances;
mod requests;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::*;
use support::*;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Generous: a debug build on a machine with other work.
const SOON: Duration = LIMIT;

/// A node with an ordinary process, to see that it keeps working.
struct Node {
    server: Server,
    client: GatewayClient<Channel>,
    _data: tempfile::TempDir,
}

impl Node {
    async fn start(flags: &[&str]) -> Node {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), flags);
        let mut client = server.client().await;
        deploy(&mut client, one_task("ordinary", "ordinary")).await;
        Node { server, client, _data: data }
    }

    /// An ordinary instance completes, on a separate connection.
    async fn goes_on(&self) {
        let mut client = self.server.client().await;
        let request = CreateProcessInstanceWithResultRequest {
            request: Some(creation("ordinary", r#"{"a":1}"#)),
            request_timeout: SOON.as_millis() as i64,
            fetch_variables: Vec::new(),
        };
        let mut other = client.clone();
        let created = tokio::spawn(async move { other.create_process_instance_with_result(request).await });
        for job in within(SOON, jobs(&mut client, "ordinary")).await {
            client.complete_job(completion(job.key, "")).await.expect("an ordinary job can be completed");
        }
        let result = within(SOON, created).await.unwrap().expect("an ordinary instance ends");
        assert_eq!(result.into_inner().variables, r#"{"a":1}"#);
    }

    /// The status and the sentence with which a deployment is refused.
    async fn refuses(&mut self, name: &str, content: impl Into<Vec<u8>>, code: Code, sentence: &str) {
        let resources = vec![Resource { name: name.to_owned(), content: content.into().into() }];
        let request = DeployResourceRequest { resources, tenant_id: String::new() };
        let outcome = within(SOON, self.client.deploy_resource(request)).await;
        assert_refused(outcome.map(|_| ()), code, sentence);
    }

    /// A number that the node publishes.
    fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.server.http("GET", "/actuator/prometheus", "");
        let values = text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
        values.filter_map(|value| value.parse::<f64>().ok()).sum()
    }

    /// Waits until this many incidents are open.
    async fn has_incidents(&self, count: usize) {
        eventually("the incidents are there", || self.metric("zeebe_pending_incidents_total") >= count as f64).await;
    }

    /// Waits until nothing happens any more.
    async fn comes_to_rest(&self) {
        // It is published once a second.
        let position = || self.metric("zeebe_stream_processor_last_processed_position");
        let mut before = position();
        eventually("the node comes to rest", || {
            std::thread::sleep(Duration::from_millis(2_500));
            let now = position();
            now == std::mem::replace(&mut before, now)
        })
        .await;
    }

    /// Memory in MiB, now and at most so far.
    fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(self.process_file("status")).expect("the node runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field is there");
            line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    fn process_file(&self, name: &str) -> PathBuf {
        ["/proc", &self.server.pid().to_string(), name].iter().collect()
    }
}

/// Jobs as soon as there are some. A node that is busy may refuse; workers ask again then.
async fn jobs(client: &mut GatewayClient<Channel>, job_type: &str) -> Vec<ActivatedJob> {
    loop {
        let mut answers = client.activate_jobs(poll(job_type, LONG_POLL)).await.expect("a valid request").into_inner();
        match answers.message().await {
            Ok(Some(answer)) => return answer.jobs,
            Ok(None) => {}
            Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
        }
    }
}

/// Waits for something that must happen soon.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.expect("it takes too long")
}

/// Polls until something holds.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < 3 * LIMIT, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn assert_refused(outcome: Result<(), Status>, code: Code, sentence: &str) {
    let status = outcome.expect_err(sentence);
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(sentence), "'{sentence}' is missing in '{}'", status.message());
}

/// A process with this content.
fn process(id: &str, content: &str) -> Resource {
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t" id="definitions">
  <escalation id="ping" escalationCode="ping"/><escalation id="pong" escalationCode="pong"/>
  <process id="{id}" isExecutable="true">{content}</process>
</definitions>"#
    );
    Resource { name: format!("{id}.bpmn"), content: content.into() }
}

/// A process of one element between start and end.
fn one_element(id: &str, element: &str, content: &str) -> Resource {
    process(
        id,
        &format!(
            r#"<startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="element"/>
            <{element} id="element">{content}</{element}>
            <sequenceFlow id="f2" sourceRef="element" targetRef="end"/><endEvent id="end"/>"#
        ),
    )
}

/// A service task whose job type is `job_type` and which maps `source` into a variable.
fn service_task(id: &str, job_type: &str, source: &str) -> Resource {
    let content = format!(
        r#"<extensionElements><zeebe:taskDefinition type="{job_type}"/>
        <zeebe:ioMapping><zeebe:input source="{source}" target="mapped"/></zeebe:ioMapping></extensionElements>"#
    );
    one_element(id, "serviceTask", &content)
}
