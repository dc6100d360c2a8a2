//! The real binary as a process, and clients for it.
#![allow(dead_code, reason = "not every test file uses everything")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::*;
use tonic::transport::{Channel, Endpoint};

/// How long to wait for something that must happen, however slow the machine is.
pub const LIMIT: Duration = Duration::from_secs(300);
/// The same for a poll, in milliseconds.
pub const LONG_POLL: i64 = 300_000;

/// A running node.
pub struct Server {
    child: Child,
    pub ready_line: String,
    pub grpc: String,
    /// Host and port for REST.
    pub rest: String,
    pub management: String,
}

impl Server {
    pub fn start(data: &Path, flags: &[&str]) -> Server {
        Server::spawn(command(data, flags))
    }

    /// Runs this command until it says that it is ready.
    pub fn spawn(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let output = child.stdout.take().expect("it is piped");
        let (sender, ready) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines();
            let ready_line = lines.by_ref().flatten().find(|line| line.starts_with("Osmia is ready"));
            // Nobody waits any more when it came too late.
            let _ = sender.send(ready_line);
            // Whatever it prints later must not fill the pipe.
            lines.for_each(drop);
        });
        let ready_line = match ready.recv_timeout(LIMIT) {
            Ok(ready_line) => ready_line.expect("the node says that it is ready before it ends"),
            Err(_) => {
                tell_threads(child.id());
                child.kill().expect("it is a child");
                panic!("the node is not ready after {LIMIT:?}");
            }
        };
        let word_after = |word: &str| {
            let rest = ready_line.split_once(word).expect("the line names its addresses").1;
            rest.split([',', ' ']).next().expect("a word").to_owned()
        };
        let grpc = format!("http://{}", word_after("gRPC "));
        let rest = word_after("REST ").rsplit('/').next().expect("an address").to_owned();
        let management = word_after("management http://");
        Server { child, grpc, rest, management, ready_line }
    }

    pub async fn client(&self) -> GatewayClient<Channel> {
        let channel = Endpoint::from_shared(self.grpc.clone()).expect("an address");
        // Late answers to polls that were given up would end the connection after a thousand of them.
        let channel = channel.http2_max_local_error_reset_streams(None).connect().await;
        GatewayClient::new(channel.expect("the gateway listens"))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends a signal: `-STOP`, for example.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill exists").success());
    }

    /// Stops all threads, and waits until they stand still: a signal is on its way for a moment.
    pub fn freeze(&self) {
        self.signal("-STOP");
        let threads = format!("/proc/{}/task", self.pid());
        let is_still = |thread: std::io::Result<std::fs::DirEntry>| {
            let state = thread.and_then(|thread| std::fs::read_to_string(thread.path().join("stat")));
            // Behind the name in brackets. A thread that ended meanwhile stands still too.
            state.map_or(true, |state| state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')))
        };
        let begin = Instant::now();
        while !std::fs::read_dir(&threads).expect("the process is there").all(is_still) {
            assert!(begin.elapsed() < LIMIT, "the node does not stand still");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// SIGTERM; returns the exit code.
    pub fn terminate(self) -> Option<i32> {
        self.signal("-TERM");
        self.wait()
    }

    /// Waits until the process has ended; returns the exit code.
    pub fn wait(mut self) -> Option<i32> {
        let begin = Instant::now();
        while self.is_running() {
            if begin.elapsed() >= LIMIT {
                tell_threads(self.pid());
                panic!("the node does not stop");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.wait().expect("it is a child").code()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// One request to the management port: status and body.
    pub fn http(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        Self::request(&self.management, method, path, body)
    }

    /// One request to an HTTP port: status and body.
    pub fn request(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).expect("the port listens");
        stream.set_read_timeout(Some(LIMIT)).expect("it is not zero");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("it takes the request");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it answers text");
        let code = response.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (code, response.split_once("\r\n\r\n").expect("a body").1.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints what the threads of a process do that does not do what it should.
pub fn tell_threads(pid: u32) {
    let threads = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/threads");
    match Command::new(threads).arg(pid.to_string()).output() {
        Ok(told) => println!("{}", String::from_utf8_lossy(&told.stdout)),
        Err(error) => println!("{threads}: {error}"),
    }
}

/// The same for all processes that this one has begun.
pub fn tell_children() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: String = children.collect();
    children.split_whitespace().filter_map(|child| child.parse().ok()).for_each(tell_threads);
}

/// The binary, without the settings of whoever runs the tests.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osmia"));
    let is_setting = |name: &str| ["OSMIA_", "ZEEBE_", "CAMUNDA_"].iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_setting)) {
        command.env_remove(name);
    }
    command
}

/// The command that runs a node on free ports.
pub fn command(data: &Path, flags: &[&str]) -> Command {
    let mut command = program();
    command
        .args(["start", "--grpc-port", "0", "--http-port", "0", "--management-port", "0", "--data"])
        .arg(data)
        // A test may still say otherwise with a flag.
        .env("OSMIA_LOG", "warn,raft_engine=error")
        .env("OSMIA_REQUEST_TIMEOUT", "600s")
        .env("OSMIA_SEARCH_WAIT", "60s")
        .args(flags);
    command
}

/// Runs a node that is expected to fail at the start; returns what it says.
pub fn start_fails(data: &Path, flags: &[&str]) -> String {
    let output = command(data, flags).output().expect("the binary starts");
    assert!(!output.status.success(), "the node should have refused to start");
    String::from_utf8(output.stderr).expect("text")
}

/// Runs a client command.
pub fn osmia(server: &Server, arguments: &[&str]) -> Output {
    program().args(arguments).args(["--address", &server.grpc]).output().expect("the binary starts")
}

/// A process with one service task.
pub fn one_task(id: &str, job_type: &str) -> Resource {
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t" id="d">
  <bpmn:process id="{id}" isExecutable="true">
    <bpmn:startEvent id="start"/>
    <bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="task"/>
    <bpmn:serviceTask id="task">
      <bpmn:extensionElements>
        <zeebe:taskDefinition type="{job_type}"/>
        <zeebe:taskHeaders><zeebe:header key="greeting" value="hello"/></zeebe:taskHeaders>
      </bpmn:extensionElements>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="f2" sourceRef="task" targetRef="end"/>
    <bpmn:endEvent id="end"/>
  </bpmn:process>
</bpmn:definitions>"#
    );
    Resource { name: format!("{id}.bpmn"), content: content.into() }
}

/// A process that waits for a message before its service task; the variable `orderId` is the correlation key.
pub fn waiting(id: &str, message: &str, job_type: &str) -> Resource {
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t" id="d">
  <bpmn:message id="message" name="{message}">
    <bpmn:extensionElements><zeebe:subscription correlationKey="=orderId"/></bpmn:extensionElements>
  </bpmn:message>
  <bpmn:process id="{id}" isExecutable="true">
    <bpmn:startEvent id="start"/>
    <bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="wait"/>
    <bpmn:intermediateCatchEvent id="wait"><bpmn:messageEventDefinition id="e" messageRef="message"/></bpmn:intermediateCatchEvent>
    <bpmn:sequenceFlow id="f2" sourceRef="wait" targetRef="task"/>
    <bpmn:serviceTask id="task">
      <bpmn:extensionElements><zeebe:taskDefinition type="{job_type}"/></bpmn:extensionElements>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="f3" sourceRef="task" targetRef="end"/>
    <bpmn:endEvent id="end"/>
  </bpmn:process>
</bpmn:definitions>"#
    );
    Resource { name: format!("{id}.bpmn"), content: content.into() }
}

/// A process that a condition starts.
pub fn started_by_condition(id: &str, condition: &str, job_type: &str) -> Resource {
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t" id="d">
  <bpmn:process id="{id}" isExecutable="true">
    <bpmn:startEvent id="start"><bpmn:conditionalEventDefinition><bpmn:condition>{condition}</bpmn:condition></bpmn:conditionalEventDefinition></bpmn:startEvent>
    <bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="task"/>
    <bpmn:serviceTask id="task">
      <bpmn:extensionElements><zeebe:taskDefinition type="{job_type}"/></bpmn:extensionElements>
    </bpmn:serviceTask>
  </bpmn:process>
</bpmn:definitions>"#
    );
    Resource { name: format!("{id}.bpmn"), content: content.into_bytes().into() }
}

/// A process that a signal starts.
pub fn started_by_signal(id: &str, signal: &str, job_type: &str) -> Resource {
    let content = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t" id="d">
  <bpmn:signal id="signal" name="{signal}"/>
  <bpmn:process id="{id}" isExecutable="true">
    <bpmn:startEvent id="start"><bpmn:signalEventDefinition id="e" signalRef="signal"/></bpmn:startEvent>
    <bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="task"/>
    <bpmn:serviceTask id="task">
      <bpmn:extensionElements><zeebe:taskDefinition type="{job_type}"/></bpmn:extensionElements>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="f2" sourceRef="task" targetRef="end"/>
    <bpmn:endEvent id="end"/>
  </bpmn:process>
</bpmn:definitions>"#
    );
    Resource { name: format!("{id}.bpmn"), content: content.into() }
}

/// Key of the process that was deployed.
pub fn definition_key(deployed: &DeployResourceResponse) -> i64 {
    match deployed.deployments[0].metadata.as_ref() {
        Some(deployment::Metadata::Process(process)) => process.process_definition_key,
        other => panic!("not a process: {other:?}"),
    }
}

pub fn message(name: &str, correlation_key: &str, time_to_live: i64) -> PublishMessageRequest {
    PublishMessageRequest {
        name: name.to_owned(),
        correlation_key: correlation_key.to_owned(),
        time_to_live,
        ..PublishMessageRequest::default()
    }
}

/// Begins elements and ends element instances.
pub fn modification(instance: i64, activate: &[&str], terminate: &[i64]) -> ModifyProcessInstanceRequest {
    use modify_process_instance_request::{ActivateInstruction, TerminateInstruction};
    let activate = activate.iter().map(|element| ActivateInstruction {
        element_id: (*element).to_owned(),
        ancestor_element_instance_key: -1,
        variable_instructions: Vec::new(),
    });
    let terminate = terminate
        .iter()
        .map(|key| TerminateInstruction { element_instance_key: *key, ..TerminateInstruction::default() });
    ModifyProcessInstanceRequest {
        process_instance_key: instance,
        activate_instructions: activate.collect(),
        terminate_instructions: terminate.collect(),
        ..ModifyProcessInstanceRequest::default()
    }
}

pub fn migration(instance: i64, definition: i64, mapping: &[(&str, &str)]) -> MigrateProcessInstanceRequest {
    use migrate_process_instance_request::{MappingInstruction, MigrationPlan};
    let mapping = mapping.iter().map(|(source, target)| MappingInstruction {
        source_element_id: (*source).to_owned(),
        target_element_id: (*target).to_owned(),
    });
    let plan = MigrationPlan { target_process_definition_key: definition, mapping_instructions: mapping.collect() };
    MigrateProcessInstanceRequest {
        process_instance_key: instance,
        migration_plan: Some(plan),
        operation_reference: None,
    }
}

pub async fn deploy(client: &mut GatewayClient<Channel>, resource: Resource) -> DeployResourceResponse {
    let request = DeployResourceRequest { resources: vec![resource], tenant_id: String::new() };
    client.deploy_resource(request).await.expect("a valid process").into_inner()
}

pub fn creation(id: &str, variables: &str) -> CreateProcessInstanceRequest {
    CreateProcessInstanceRequest {
        bpmn_process_id: id.to_owned(),
        version: -1,
        variables: variables.to_owned(),
        ..CreateProcessInstanceRequest::default()
    }
}

pub fn poll(job_type: &str, request_timeout: i64) -> ActivateJobsRequest {
    ActivateJobsRequest {
        r#type: job_type.to_owned(),
        worker: "test".to_owned(),
        timeout: 60_000,
        max_jobs_to_activate: 32,
        request_timeout,
        ..ActivateJobsRequest::default()
    }
}

/// All jobs of one poll.
pub async fn activate(client: &mut GatewayClient<Channel>, request: ActivateJobsRequest) -> Vec<ActivatedJob> {
    let mut responses = client.activate_jobs(request).await.expect("a valid request").into_inner();
    let mut jobs = Vec::new();
    while let Some(response) = responses.message().await.expect("no error") {
        assert!(!response.jobs.is_empty(), "a message without jobs");
        jobs.extend(response.jobs);
    }
    jobs
}

pub fn completion(key: i64, variables: &str) -> CompleteJobRequest {
    CompleteJobRequest { job_key: key, variables: variables.to_owned(), result: None }
}
