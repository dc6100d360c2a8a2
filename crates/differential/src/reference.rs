//! The reference side: the reference engine as a child process under `reference/Launcher.java`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::{
    CompleteJobRequest, CreateProcessInstanceWithResultRequest, JobResult, SetVariablesRequest, StringList, deployment,
};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::driver::{Answer, ChoiceRequest, Driver, DriverError, Refusal, Request, UserTaskRequest};

/// A process that has served this many engines is replaced by a new one, so that it cannot become slow.
const ENGINES_PER_PROCESS_MAX: usize = 200;
/// How long the process may take for anything.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the result of an ended instance may take.
const RESULT_TIMEOUT: Duration = Duration::from_secs(10);
const LINES_WAITING_MAX: usize = 10_000;
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// How the process is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The Java runtime.
    pub java: String,
    /// Where its classes are: the launcher and the libraries.
    pub class_path: String,
}

impl Launch {
    /// As `scripts/differential` says in the environment; `None` when the script did not run.
    pub fn from_environment() -> Option<Launch> {
        let java = std::env::var("OSMIA_REFERENCE_JAVA").ok()?;
        Some(Launch { java, class_path: std::env::var("OSMIA_REFERENCE_CLASS_PATH").ok()? })
    }
}

/// The reference engine.
pub struct Reference {
    launch: Launch,
    runtime: Runtime,
    process: Option<Process>,
    engines: usize,
    client: Option<GatewayClient<Channel>>,
    creations: usize,
    refused_creations: usize,
    awaited: Vec<(String, JoinHandle<Result<String, Status>>)>,
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

fn problem(problem: impl std::fmt::Display) -> DriverError {
    DriverError { side: "reference engine", problem: problem.to_string() }
}

impl Process {
    fn start(launch: &Launch) -> Result<Process, DriverError> {
        let mut child = Command::new(&launch.java)
            .args(["-Xmx1g", "-XX:TieredStopAtLevel=1", "-cp", &launch.class_path, "Launcher"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| problem(format!("cannot be started with '{}': {error}", launch.java)))?;
        let output = child.stdout.take().ok_or_else(|| problem("has no output"))?;
        let input = child.stdin.take();
        let (sender, lines) = sync_channel(LINES_WAITING_MAX);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Process { child, input, lines })
    }

    fn say(&mut self, line: &str) -> Result<(), DriverError> {
        let input = self.input.as_mut().ok_or_else(|| problem("has no input"))?;
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|error| problem(format!("is gone: {error}")))
    }

    fn hear(&mut self) -> Result<String, DriverError> {
        self.lines.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => problem(format!("did not answer within {} s", ANSWER_TIMEOUT.as_secs())),
            RecvTimeoutError::Disconnected => problem("ended; start the launcher by hand to see why"),
        })
    }

    fn ask(&mut self, line: &str, answer: &str) -> Result<String, DriverError> {
        self.say(line)?;
        let heard = self.hear()?;
        heard
            .strip_prefix(answer)
            .map(|rest| rest.trim().to_owned())
            .ok_or_else(|| problem(format!("answered '{line}' with '{heard}'")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends the process; killing it makes sure of that.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reference {
    /// The reference engine, started when it is reset.
    ///
    /// # Errors
    /// When there is no runtime for its client.
    pub fn new(launch: Launch) -> Result<Self, DriverError> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(problem)?;
        Ok(Reference {
            launch,
            runtime,
            process: None,
            engines: 0,
            client: None,
            creations: 0,
            refused_creations: 0,
            awaited: Vec::new(),
        })
    }

    fn process(&mut self) -> Result<&mut Process, DriverError> {
        self.process.as_mut().ok_or_else(|| problem("was not started"))
    }

    /// The gateway of the test engine forgets what a task listener says, so the launcher writes that too.
    fn complete_listener(&mut self, request: &CompleteJobRequest, result: &JobResult) -> Result<Answer, DriverError> {
        let list = |list: &StringList| Value::from(list.values.clone());
        let mut corrections = serde_json::Map::new();
        if let Some(given) = &result.corrections {
            let entries = [
                ("assignee", given.assignee.clone().map(Value::from)),
                ("candidateGroupsList", given.candidate_groups.as_ref().map(list)),
                ("candidateUsersList", given.candidate_users.as_ref().map(list)),
                ("dueDate", given.due_date.clone().map(Value::from)),
                ("followUpDate", given.follow_up_date.clone().map(Value::from)),
                ("priority", given.priority.map(Value::from)),
            ];
            corrections.extend(entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        let said = serde_json::json!({
            "denied": result.denied.unwrap_or_default(),
            "deniedReason": result.denied_reason.clone().unwrap_or_default(),
            "corrections": corrections,
        });
        self.write("listener", &format!("{} {said}", request.job_key))
    }

    /// Nobody waits for the answer, as a client over gRPC would.
    fn set_variables(&mut self, request: &SetVariablesRequest) -> Result<Answer, DriverError> {
        let semantics = if request.local { "LOCAL" } else { "PROPAGATE" };
        self.write("variables", &format!("{semantics} {} {}", request.element_instance_key, request.variables))
    }

    /// What gRPC has no commands for is written by the launcher.
    fn write(&mut self, name: &str, command: &str) -> Result<Answer, DriverError> {
        let kind = self.process()?.ask(&format!("{name} {command}"), name)?;
        if kind.is_empty() {
            return Ok(Answer::Done);
        }
        Ok(Answer::Refused(Refusal { code: Code::Unknown, kind: Some(kind), reason: String::new() }))
    }

    fn user_task(&mut self, request: &UserTaskRequest) -> Result<Answer, DriverError> {
        let intent = request.verb.name().to_uppercase();
        let attributes = Value::Object(request.attributes.clone());
        self.write("user-task", &format!("{intent} {} {attributes}", request.key))
    }

    fn choice(&mut self, name: &str, request: &ChoiceRequest) -> Result<Answer, DriverError> {
        let object = |text: &str| serde_json::from_str::<Value>(text).map_err(problem);
        let mut elements = Vec::new();
        for (id, variables) in &request.elements {
            let mut element = serde_json::json!({ "id": id });
            if !variables.is_empty() {
                element["variables"] = object(variables)?;
            }
            elements.push(element);
        }
        let mut choice = serde_json::json!({
            "elements": elements,
            "cancels": request.cancels,
            "fulfilled": request.is_fulfilled,
        });
        if !request.variables.is_empty() {
            choice["variables"] = object(&request.variables)?;
        }
        self.write(name, &format!("{} {choice}", request.key))
    }

    fn await_result(&mut self, request: CreateProcessInstanceWithResultRequest) -> Result<Answer, DriverError> {
        let mut client = self.client.clone().ok_or_else(|| problem("was not started"))?;
        let id = request.request.as_ref().map(|request| request.bpmn_process_id.clone()).unwrap_or_default();
        let task = self.runtime.spawn(async move {
            let response = client.create_process_instance_with_result(request).await?;
            Ok(response.into_inner().variables)
        });
        self.awaited.push((id, task));
        self.creations += 1;
        // The engine refuses at once or not at all. Its records tell when it has taken the command: an instance or a
        // rejection. Until then nothing else may be sent, or the order of commands would be left to chance.
        let until = Instant::now() + RESULT_TIMEOUT;
        loop {
            let last = self.awaited.len() - 1;
            let (_, task) = &mut self.awaited[last];
            if task.is_finished() {
                let outcome = self.runtime.block_on(task).map_err(problem)?;
                return match outcome {
                    Err(status) => {
                        self.refused_creations += 1;
                        self.awaited.pop();
                        Ok(Answer::Refused(refusal(&status)))
                    }
                    Ok(variables) => {
                        self.awaited[last].1 = self.runtime.spawn(async move { Ok(variables) });
                        Ok(Answer::Awaiting)
                    }
                };
            }
            let answer = self.process()?.ask("creations", "creations")?;
            let numbers: Vec<usize> = answer.split(' ').filter_map(|number| number.parse().ok()).collect();
            let [taken, refused] = numbers[..] else {
                return Err(problem(format!("told creations as '{answer}'")));
            };
            // A refusal is answered in a moment.
            if taken >= self.creations && refused == self.refused_creations {
                return Ok(Answer::Awaiting);
            }
            if Instant::now() > until {
                return Err(problem("did not take a command"));
            }
        }
    }
}

impl Driver for Reference {
    fn reset(&mut self) -> Result<(), DriverError> {
        self.awaited.clear();
        self.creations = 0;
        self.refused_creations = 0;
        self.client = None;
        if self.engines >= ENGINES_PER_PROCESS_MAX {
            self.process = None;
        }
        if self.process.is_none() {
            self.process = Some(Process::start(&self.launch)?);
            self.engines = 0;
        }
        self.engines += 1;
        let command = format!("engine {}", crate::START_MILLISECONDS);
        let answer = self.process()?.ask(&command, "engine");
        if answer.is_err() {
            self.process = None;
        }
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{}", answer?)).map_err(problem)?;
        let channel = self.runtime.block_on(endpoint.tcp_nodelay(true).connect()).map_err(problem)?;
        self.client = Some(GatewayClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX));
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<Answer, DriverError> {
        if let Request::CreateWithResult(request) = request {
            return self.await_result(request);
        }
        if let Request::UserTask(request) = &request {
            return self.user_task(request);
        }
        if let Request::Choose(choice) = &request {
            return self.choice("choose", choice);
        }
        if let Request::Decide(choice) = &request {
            return self.choice("decide", choice);
        }
        if let Request::SetVariablesLater(request) = &request {
            return self.set_variables(request);
        }
        if let Request::Complete(request) = &request
            && let Some(result) = &request.result
        {
            return self.complete_listener(request, result);
        }
        let client = self.client.clone().ok_or_else(|| problem("was not started"))?;
        let answer = self.runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, call(client, request)).await });
        match answer.map_err(|_| problem("did not answer a request"))? {
            Ok(answer) => Ok(answer),
            Err(status) if status.code() == Code::Unavailable => Err(problem(format!("is gone: {status}"))),
            Err(status) => Ok(Answer::Refused(refusal(&status))),
        }
    }

    fn advance(&mut self, milliseconds: i64) -> Result<(), DriverError> {
        self.process()?.ask(&format!("time {milliseconds}"), "time").map(|_| ())
    }

    fn records(&mut self) -> Result<Vec<Value>, DriverError> {
        let process = self.process()?;
        process.say("records")?;
        let mut records = Vec::new();
        loop {
            let line = process.hear()?;
            if line.starts_with("end ") {
                return Ok(records);
            }
            records.push(serde_json::from_str(&line).map_err(problem)?);
        }
    }

    fn results(&mut self, ended: usize) -> Result<Vec<(String, String)>, DriverError> {
        let until = Instant::now() + RESULT_TIMEOUT;
        let mut results = Vec::new();
        while results.len() < ended {
            let Some(index) = self.awaited.iter().position(|(_, task)| task.is_finished()) else {
                if Instant::now() > until {
                    return Err(problem("did not answer with the result of an ended instance"));
                }
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let (id, task) = self.awaited.remove(index);
            let result = self.runtime.block_on(task).map_err(problem)?;
            results.push((id, result.map_err(problem)?));
        }
        Ok(results)
    }
}

async fn call(mut client: GatewayClient<Channel>, request: Request) -> Result<Answer, Status> {
    let done = Ok(Answer::Done);
    match request {
        Request::Deploy(request) => {
            let response = client.deploy_resource(request).await?.into_inner();
            let (mut processes, mut decisions) = (Vec::new(), Vec::new());
            for metadata in response.deployments.into_iter().filter_map(|deployment| deployment.metadata) {
                match metadata {
                    deployment::Metadata::Process(process) => {
                        processes.push((process.bpmn_process_id, process.version));
                    }
                    deployment::Metadata::Decision(decision) => {
                        decisions.push((decision.dmn_decision_id, decision.version));
                    }
                    deployment::Metadata::DecisionRequirements(graph) => {
                        decisions.push((graph.dmn_decision_requirements_id, graph.version));
                    }
                    deployment::Metadata::Form(_) => {}
                }
            }
            Ok(Answer::Deployed { processes, decisions })
        }
        Request::Evaluate(request) => {
            let response = client.evaluate_decision(request).await?.into_inner();
            Ok(Answer::Evaluated(match response.failed_decision_id.as_str() {
                "" => Ok(response.decision_output),
                failed => Err(failed.to_owned()),
            }))
        }
        Request::Create(request) => {
            let response = client.create_process_instance(request).await?.into_inner();
            Ok(Answer::Created(response.bpmn_process_id, response.version))
        }
        Request::CreateWithResult(request) => {
            client.create_process_instance_with_result(request).await.map(|_| Answer::Done)
        }
        Request::Activate(request) => {
            let mut stream = client.activate_jobs(request).await?.into_inner();
            let mut jobs = Vec::new();
            while let Some(response) = stream.message().await? {
                jobs.extend(response.jobs);
            }
            Ok(Answer::Activated(jobs))
        }
        Request::UserTask(_) | Request::Choose(_) | Request::Decide(_) | Request::SetVariablesLater(_) => {
            Err(Status::unimplemented("what gRPC has no commands for is written by the launcher"))
        }
        Request::Complete(request) => client.complete_job(request).await.and(done),
        Request::Fail(request) => client.fail_job(request).await.and(done),
        Request::Throw(request) => client.throw_error(request).await.and(done),
        Request::UpdateRetries(request) => client.update_job_retries(request).await.and(done),
        Request::UpdateTimeout(request) => client.update_job_timeout(request).await.and(done),
        Request::Publish(request) => client.publish_message(request).await.and(done),
        Request::Broadcast(request) => client.broadcast_signal(request).await.and(done),
        Request::SetVariables(request) => client.set_variables(request).await.and(done),
        Request::Resolve(request) => client.resolve_incident(request).await.and(done),
        Request::Cancel(request) => client.cancel_process_instance(request).await.and(done),
        Request::Modify(request) => client.modify_process_instance(request).await.and(done),
        Request::Migrate(request) => client.migrate_process_instance(request).await.and(done),
        Request::Delete(request) => client.delete_resource(request).await.and(done),
    }
}

/// `Command 'COMPLETE' rejected with code 'NOT_FOUND': …`
fn refusal(status: &Status) -> Refusal {
    let kind = status.message().split("rejected with code '").nth(1).and_then(|rest| rest.split('\'').next());
    Refusal { code: status.code(), kind: kind.map(str::to_owned), reason: status.message().to_owned() }
}
