//! A gateway in this process that runs just enough to be loaded: it knows the steps of a process, keeps everything in
//! memory and misbehaves on request.

pub mod search;
mod steps;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gateway_interface::gateway_server::{Gateway, GatewayServer};
use gateway_interface::*;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use steps::{Process, Step, correlation_key, send_number};

/// How the gateway misbehaves; zero is never.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Refuses every nth creation.
    pub refuse_every: u64,
    /// Refuses every nth creation of a surge, by their numbers: the order of their arrival does not matter.
    pub refuse_sends_every: u64,
    /// Delivers every nth job twice.
    pub deliver_twice_every: u64,
    /// Never delivers every nth job.
    pub lose_every: u64,
    /// Answers nothing for this long, once, at the given creation.
    pub stall_at: Option<(u64, Duration)>,
    /// Creations are answered one at a time, each after this long.
    pub creation_takes: Option<Duration>,
    /// Refuses every nth publication.
    pub refuse_publication_every: u64,
    /// Goes nowhere on every nth message or timer.
    pub lose_event_every: u64,
    /// Goes on twice on every nth message or timer.
    pub repeat_event_every: u64,
}

#[derive(Default)]
struct State {
    counter: i64,
    creations: u64,
    jobs: u64,
    publications: u64,
    incidents: u64,
    events: u64,
    processes: HashMap<String, Arc<Process>>,
    /// Keys of the instances, by the tag in their variables.
    instances: HashMap<String, i64>,
    waiting: HashMap<String, VecDeque<ActivatedJob>>,
    streams: HashMap<String, Vec<mpsc::Sender<ActivatedJob>>>,
    activated: HashMap<i64, Running>,
    /// By name and correlation key.
    subscriptions: HashMap<(String, String), Running>,
    /// Until when they are buffered.
    messages: HashMap<(String, String), tokio::time::Instant>,
}

/// An instance at one of its steps.
#[derive(Clone)]
struct Running {
    process: Arc<Process>,
    step: usize,
    variables: String,
}

/// Of a job that never failed.
const RETRIES: i32 = 3;

impl Running {
    /// The job of the task at this step.
    fn job(&self, key: i64, retries: i32) -> ActivatedJob {
        let Some(Step::Task(element_id)) = self.process.steps.get(self.step) else {
            panic!("only tasks have jobs");
        };
        ActivatedJob {
            key,
            r#type: self.process.job_type.clone(),
            variables: self.variables.clone(),
            element_id: element_id.clone(),
            bpmn_process_id: self.process.id.clone(),
            retries,
            ..ActivatedJob::default()
        }
    }
}

#[derive(Clone)]
pub struct FakeGateway {
    faults: Faults,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

impl FakeGateway {
    /// Serves on a free port for as long as the test runs.
    pub async fn start(faults: Faults) -> (Self, String) {
        let gateway =
            FakeGateway { faults, state: Arc::default(), changed: Arc::default(), one_at_a_time: Arc::default() };
        let address = gateway.listen().await;
        (gateway, address)
    }

    /// Serves on a free port too.
    pub async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address").to_string();
        // Without it a pushed job waits for the delayed acknowledgement of the one before.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(GatewayServer::new(self.clone()))
                .serve_with_incoming(incoming),
        );
        address
    }

    pub fn creations(&self) -> u64 {
        self.lock().creations
    }

    /// Jobs that were made, also those that were never delivered.
    pub fn jobs(&self) -> u64 {
        self.lock().jobs
    }

    /// Messages that were correlated and timers that fired, also those that went nowhere.
    pub fn events(&self) -> u64 {
        self.lock().events
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no fake handler panics")
    }

    pub fn publications(&self) -> u64 {
        self.lock().publications
    }

    /// Jobs that failed without retries.
    pub fn incidents(&self) -> u64 {
        self.lock().incidents
    }

    /// The instance with this tag in its variables.
    pub fn instance(&self, tag: &str) -> Option<i64> {
        self.lock().instances.get(tag).copied()
    }

    /// Instances that wait for a message.
    pub fn subscriptions(&self) -> usize {
        self.lock().subscriptions.len()
    }

    /// Takes an instance to its step, or ends it after the last.
    fn enter(&self, running: Running) {
        match running.process.steps.get(running.step).cloned() {
            None => {}
            Some(Step::Task(_)) => self.start_task(running),
            Some(Step::Timer(duration)) => self.fire_after(running, duration),
            Some(Step::DueDate(seconds)) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
                self.fire_after(running, Duration::from_secs(seconds).saturating_sub(now));
            }
            Some(Step::Message(name)) => {
                let subscription = (name, correlation_key(&running.variables));
                let mut state = self.lock();
                match state.messages.remove(&subscription) {
                    Some(end) if end > tokio::time::Instant::now() => {
                        drop(state);
                        self.event(running);
                    }
                    _ => drop(state.subscriptions.insert(subscription, running)),
                }
            }
        }
    }

    fn fire_after(&self, running: Running, duration: Duration) {
        let gateway = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            gateway.event(running);
        });
    }

    /// A message was correlated or a timer fired.
    fn event(&self, running: Running) {
        let mut state = self.lock();
        state.events += 1;
        let every = |nth: u64| nth != 0 && state.events.is_multiple_of(nth);
        let times = match (every(self.faults.lose_event_every), every(self.faults.repeat_event_every)) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        drop(state);
        for _ in 0..times {
            self.enter(Running { step: running.step + 1, ..running.clone() });
        }
    }

    fn start_task(&self, running: Running) {
        let mut state = self.lock();
        state.counter += 1;
        state.jobs += 1;
        let key = (1 << 51) + state.counter;
        let process = Arc::clone(&running.process);
        let job = running.job(key, RETRIES);
        state.activated.insert(key, running);
        let every = |nth: u64| nth != 0 && state.jobs.is_multiple_of(nth);
        let copies = match (every(self.faults.lose_every), every(self.faults.deliver_twice_every)) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        for _ in 0..copies {
            state.waiting.entry(process.job_type.clone()).or_default().push_back(job.clone());
        }
        state.push(&process.job_type);
        drop(state);
        self.changed.notify_waiters();
    }
}

impl State {
    /// Gives waiting jobs to streams that have room.
    fn push(&mut self, job_type: &str) {
        let Some(streams) = self.streams.get_mut(job_type) else {
            return;
        };
        let Some(waiting) = self.waiting.get_mut(job_type) else {
            return;
        };
        streams.retain(|stream| !stream.is_closed());
        for stream in streams {
            while let Some(job) = waiting.front() {
                if stream.try_send(job.clone()).is_err() {
                    break;
                }
                waiting.pop_front();
            }
        }
    }
}

type Jobs<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The calls that the load generator does not make.
macro_rules! not_faked {
    ($($method:ident: $request:ident -> $response:ident;)*) => {
        $(fn $method<'life, 'call>(
            &'life self,
            _request: Request<$request>,
        ) -> Pin<Box<dyn Future<Output = Result<Response<$response>, Status>> + Send + 'call>>
        where
            'life: 'call,
            Self: 'call,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($method))) })
        })*
    };
}

#[tonic::async_trait]
impl Gateway for FakeGateway {
    type ActivateJobsStream = Jobs<ActivateJobsResponse>;
    type StreamActivatedJobsStream = Jobs<ActivatedJob>;

    async fn topology(&self, _request: Request<TopologyRequest>) -> Result<Response<TopologyResponse>, Status> {
        Ok(Response::new(TopologyResponse {
            cluster_size: 1,
            partitions_count: 1,
            replication_factor: 1,
            gateway_version: "fake".into(),
            ..TopologyResponse::default()
        }))
    }

    async fn deploy_resource(
        &self,
        request: Request<DeployResourceRequest>,
    ) -> Result<Response<DeployResourceResponse>, Status> {
        let request = request.into_inner();
        for resource in &request.resources {
            let process = Process::read(&String::from_utf8_lossy(&resource.content));
            self.lock().processes.insert(process.id.clone(), Arc::new(process));
        }
        Ok(Response::new(DeployResourceResponse::default()))
    }

    async fn create_process_instance(
        &self,
        request: Request<CreateProcessInstanceRequest>,
    ) -> Result<Response<CreateProcessInstanceResponse>, Status> {
        let request = request.into_inner();
        let (process, number) = {
            let mut state = self.lock();
            state.creations += 1;
            let process = state.processes.get(&request.bpmn_process_id).cloned();
            (process.ok_or_else(|| Status::not_found("no such process"))?, state.creations)
        };
        let turn = self.one_at_a_time.lock().await;
        if let Some(time) = self.faults.creation_takes {
            tokio::time::sleep(time).await;
        }
        if let Some((at, time)) = self.faults.stall_at
            && number == at
        {
            tokio::time::sleep(time).await;
        }
        drop(turn);
        let is_nth = |number: u64, every: u64| every != 0 && number.is_multiple_of(every);
        let send = || send_number(&request.variables) + 1;
        let every = self.faults.refuse_sends_every;
        if is_nth(number, self.faults.refuse_every) || every != 0 && is_nth(send(), every) {
            return Err(Status::resource_exhausted("every nth is refused"));
        }
        let key = (1 << 50) + number as i64;
        self.lock().instances.insert(correlation_key(&request.variables), key);
        let at = |step| Running { process: Arc::clone(&process), step, variables: request.variables.clone() };
        let steps = if process.parallel { process.steps.len() } else { 1 };
        (0..steps).for_each(|step| self.enter(at(step)));
        Ok(Response::new(CreateProcessInstanceResponse {
            process_instance_key: key,
            ..CreateProcessInstanceResponse::default()
        }))
    }

    async fn complete_job(
        &self,
        request: Request<CompleteJobRequest>,
    ) -> Result<Response<CompleteJobResponse>, Status> {
        let running = self
            .lock()
            .activated
            .remove(&request.into_inner().job_key)
            .ok_or_else(|| Status::not_found("no such job"))?;
        if !running.process.parallel {
            self.enter(Running { step: running.step + 1, ..running });
        }
        Ok(Response::new(CompleteJobResponse {}))
    }

    async fn fail_job(&self, request: Request<FailJobRequest>) -> Result<Response<FailJobResponse>, Status> {
        let FailJobRequest { job_key, retries, .. } = request.into_inner();
        let mut state = self.lock();
        let running = state.activated.get(&job_key).cloned().ok_or_else(|| Status::not_found("no such job"))?;
        if retries > 0 {
            let job = running.job(job_key, retries);
            let job_type = job.r#type.clone();
            state.waiting.entry(job_type.clone()).or_default().push_back(job);
            state.push(&job_type);
        } else {
            state.incidents += 1;
        }
        Ok(Response::new(FailJobResponse {}))
    }

    async fn publish_message(
        &self,
        request: Request<PublishMessageRequest>,
    ) -> Result<Response<PublishMessageResponse>, Status> {
        let request = request.into_inner();
        let subscription = (request.name, request.correlation_key);
        let mut state = self.lock();
        state.publications += 1;
        let refuse = self.faults.refuse_publication_every;
        if refuse != 0 && state.publications.is_multiple_of(refuse) {
            return Err(Status::resource_exhausted("every nth is refused"));
        }
        if let Some(running) = state.subscriptions.remove(&subscription) {
            drop(state);
            self.event(running);
        } else if request.time_to_live > 0 {
            let time_to_live = Duration::from_millis(request.time_to_live.unsigned_abs());
            state.messages.insert(subscription, tokio::time::Instant::now() + time_to_live);
        }
        Ok(Response::new(PublishMessageResponse::default()))
    }

    async fn stream_activated_jobs(
        &self,
        request: Request<StreamActivatedJobsRequest>,
    ) -> Result<Response<Self::StreamActivatedJobsStream>, Status> {
        let job_type = request.into_inner().r#type;
        let (sender, receiver) = mpsc::channel(100_000);
        let mut state = self.lock();
        state.streams.entry(job_type.clone()).or_default().push(sender);
        state.push(&job_type);
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver).map(Ok))))
    }

    async fn activate_jobs(
        &self,
        request: Request<ActivateJobsRequest>,
    ) -> Result<Response<Self::ActivateJobsStream>, Status> {
        let request = request.into_inner();
        let wait = Duration::from_millis(u64::try_from(request.request_timeout).unwrap_or(0));
        let end = tokio::time::Instant::now() + wait;
        loop {
            let changed = self.changed.notified();
            let jobs: Vec<ActivatedJob> = {
                let mut state = self.lock();
                let waiting = state.waiting.entry(request.r#type.clone()).or_default();
                let count = waiting.len().min(request.max_jobs_to_activate as usize);
                waiting.drain(..count).collect()
            };
            if !jobs.is_empty() {
                let responses = [Ok(ActivateJobsResponse { jobs })];
                return Ok(Response::new(Box::pin(tokio_stream::iter(responses))));
            }
            if tokio::time::timeout_at(end, changed).await.is_err() {
                return Ok(Response::new(Box::pin(tokio_stream::empty())));
            }
        }
    }

    not_faked! {
        broadcast_signal: BroadcastSignalRequest -> BroadcastSignalResponse;
        cancel_process_instance: CancelProcessInstanceRequest -> CancelProcessInstanceResponse;
        create_process_instance_with_result:
            CreateProcessInstanceWithResultRequest -> CreateProcessInstanceWithResultResponse;
        delete_resource: DeleteResourceRequest -> DeleteResourceResponse;
        deploy_process: DeployProcessRequest -> DeployProcessResponse;
        evaluate_conditional: EvaluateConditionalRequest -> EvaluateConditionalResponse;
        evaluate_decision: EvaluateDecisionRequest -> EvaluateDecisionResponse;
        migrate_process_instance: MigrateProcessInstanceRequest -> MigrateProcessInstanceResponse;
        modify_process_instance: ModifyProcessInstanceRequest -> ModifyProcessInstanceResponse;
        resolve_incident: ResolveIncidentRequest -> ResolveIncidentResponse;
        set_variables: SetVariablesRequest -> SetVariablesResponse;
        throw_error: ThrowErrorRequest -> ThrowErrorResponse;
        update_job_retries: UpdateJobRetriesRequest -> UpdateJobRetriesResponse;
        update_job_timeout: UpdateJobTimeoutRequest -> UpdateJobTimeoutResponse;
    }
}
