//! Our side: the engine in memory, driven as a leader drives it.

mod command;

use std::collections::{BTreeMap, VecDeque};

use engine::{Engine, EngineOptions, Output, Reply};
use gateway_interface::{ActivateJobsRequest, ActivatedJob};
use protocol::{
    Command, CommandBatch, JobBatchIntent, JobBatchValue, JobValue, Key, PartitionId, Payload, RecordSource,
    RejectionType, Request as RequestId,
};
use serde_json::Value;
use tonic::Code;

use crate::driver::{Answer, Driver, DriverError, Refusal, Request};

/// Commands that one step may cause; more never end.
const COMMANDS_PER_STEP_MAX: usize = 100_000;
/// Commands that are taken together when they are due.
const DUE_BATCH: usize = 100;

/// The partitions of one run, all led here.
pub struct Ours {
    partition_count: u16,
    partitions: Vec<Partition>,
    now: i64,
    requests: u64,
    next_partition: usize,
    unread: Vec<Value>,
    replies: BTreeMap<u64, Reply>,
    awaited: Vec<u64>,
    results: Vec<(String, String)>,
}

struct Partition {
    engine: Engine,
    index: u64,
}

fn problem(problem: impl std::fmt::Display) -> DriverError {
    DriverError { side: "engine", problem: problem.to_string() }
}

impl Ours {
    /// A side with this many partitions. Nothing runs before it is reset.
    pub fn new(partition_count: u16) -> Self {
        Ours {
            partition_count,
            partitions: Vec::new(),
            now: 0,
            requests: 0,
            next_partition: 0,
            unread: Vec::new(),
            replies: BTreeMap::new(),
            awaited: Vec::new(),
            results: Vec::new(),
        }
    }

    fn turn(&mut self) -> PartitionId {
        let partition = self.next_partition;
        self.next_partition = (partition + 1) % usize::from(self.partition_count);
        PartitionId(partition as u16 + 1)
    }

    /// Applies a command with a waiting request; returns the number of the request.
    fn submit(&mut self, partition: PartitionId, command: Command) -> Result<u64, DriverError> {
        self.requests += 1;
        let request = Some(RequestId { node: 0, number: self.requests });
        self.apply(partition, vec![Command { request, ..command }])?;
        Ok(self.requests)
    }

    /// Applies commands and everything that follows on all partitions.
    fn apply(&mut self, partition: PartitionId, commands: Vec<Command>) -> Result<(), DriverError> {
        let mut waiting = VecDeque::from([(partition, commands)]);
        for _ in 0..COMMANDS_PER_STEP_MAX {
            let Some((partition, commands)) = waiting.pop_front().or_else(|| self.follow_up()) else {
                return Ok(());
            };
            let output = self.apply_batch(partition, commands)?;
            for send in output.sends {
                waiting.push_back((send.partition, vec![send.command]));
            }
        }
        Err(problem(format!("did not come to rest after {COMMANDS_PER_STEP_MAX} commands")))
    }

    /// What a leader does by itself: what was interrupted, then what is due.
    fn follow_up(&self) -> Option<(PartitionId, Vec<Command>)> {
        let each = || (1..).map(PartitionId).zip(&self.partitions);
        let continued = each().find_map(|(id, partition)| Some((id, vec![partition.engine.continuation()?])));
        continued.or_else(|| {
            each()
                .map(|(id, partition)| (id, partition.engine.due_commands(self.now, DUE_BATCH)))
                .find(|(_, commands)| !commands.is_empty())
        })
    }

    fn apply_batch(&mut self, id: PartitionId, commands: Vec<Command>) -> Result<Output, DriverError> {
        let partition = usize::from(id.0).checked_sub(1).and_then(|index| self.partitions.get_mut(index));
        let partition = partition.ok_or_else(|| problem(format!("has no partition {id}")))?;
        partition.index += 1;
        let mut output = Output::default();
        let batch = CommandBatch { timestamp: self.now, commands };
        partition.engine.apply(partition.index, &batch, &mut output).map_err(problem)?;
        let source = RecordSource::new(id);
        for record in &output.records {
            let json = record.to_json(&source).map_err(problem)?;
            self.unread.push(serde_json::from_str(&json).map_err(problem)?);
        }
        for reply in output.replies.drain(..) {
            let number = reply.request.number;
            match &reply.payload {
                Payload::ProcessInstanceResult(_, result) if self.awaited.contains(&number) => {
                    self.results.push((result.bpmn_process_id.to_string(), result.variables.to_string()));
                }
                _ => {
                    self.replies.insert(number, reply);
                }
            }
        }
        Ok(output)
    }

    fn activate(&mut self, request: &ActivateJobsRequest) -> Result<Answer, DriverError> {
        let mut jobs = Vec::new();
        for partition in (1..=self.partition_count).map(PartitionId) {
            let left = request.max_jobs_to_activate - i32::try_from(jobs.len()).unwrap_or(i32::MAX);
            if left < 1 && !jobs.is_empty() {
                break;
            }
            let value = JobBatchValue {
                job_type: request.r#type.as_str().into(),
                worker: request.worker.as_str().into(),
                timeout: request.timeout,
                max_jobs_to_activate: left,
                fetch_variables: request.fetch_variable.iter().map(|name| name.as_str().into()).collect(),
                tenant_ids: vec![protocol::DEFAULT_TENANT.into()],
                ..JobBatchValue::default()
            };
            let payload = Payload::JobBatch(JobBatchIntent::Activate, Box::new(value));
            let number = self.submit(partition, Command::new(Key::NONE, payload))?;
            let reply = self.reply(number)?;
            match (&reply.rejection, &reply.payload) {
                (None, Payload::JobBatch(_, batch)) => {
                    jobs.extend(batch.job_keys.iter().zip(&batch.jobs).map(|(key, job)| activated(*key, job)));
                }
                _ => return Ok(answer(&reply)),
            }
        }
        Ok(Answer::Activated(jobs))
    }

    fn reply(&mut self, number: u64) -> Result<Reply, DriverError> {
        self.replies.remove(&number).ok_or_else(|| problem("did not answer a command"))
    }
}

impl Driver for Ours {
    fn reset(&mut self) -> Result<(), DriverError> {
        *self = Ours::new(self.partition_count);
        self.now = crate::START_MILLISECONDS;
        self.partitions = (1..=self.partition_count)
            .map(|id| {
                let options = EngineOptions::new(PartitionId(id), self.partition_count);
                Partition { engine: Engine::in_memory(options), index: 0 }
            })
            .collect();
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<Answer, DriverError> {
        let awaits = matches!(request, Request::CreateWithResult(_));
        // The answer may have to wait for listeners.
        let is_done_later = matches!(request, Request::UserTask(_) | Request::SetVariablesLater(_));
        if let Request::Activate(request) = &request {
            return self.activate(request);
        }
        let target = match command::build(request, self.partition_count) {
            Ok(target) => target,
            Err(refusal) => return Ok(Answer::Refused(refusal)),
        };
        let partition = match target.partition {
            Some(partition) => partition,
            None => self.turn(),
        };
        if awaits {
            self.awaited.push(self.requests + 1);
        }
        let number = self.submit(partition, target.command)?;
        if awaits && !self.replies.contains_key(&number) {
            return Ok(Answer::Awaiting);
        }
        if is_done_later && !self.replies.contains_key(&number) {
            return Ok(Answer::Done);
        }
        let reply = self.reply(number)?;
        Ok(answer(&reply))
    }

    fn advance(&mut self, milliseconds: i64) -> Result<(), DriverError> {
        self.now += milliseconds;
        match self.follow_up() {
            Some((partition, commands)) => self.apply(partition, commands),
            None => Ok(()),
        }
    }

    fn records(&mut self) -> Result<Vec<Value>, DriverError> {
        Ok(std::mem::take(&mut self.unread))
    }

    fn results(&mut self, _ended: usize) -> Result<Vec<(String, String)>, DriverError> {
        Ok(std::mem::take(&mut self.results))
    }
}

fn answer(reply: &Reply) -> Answer {
    if let Some(rejection) = &reply.rejection {
        return Answer::Refused(refusal(rejection.rejection_type, &rejection.reason));
    }
    match &reply.payload {
        Payload::Deployment(_, deployment) => {
            let processes = deployment.processes_metadata.iter();
            let processes = processes.map(|process| (process.bpmn_process_id.to_string(), process.version));
            let decisions = deployment.decisions_metadata.iter();
            let decisions = decisions.map(|decision| (decision.decision_id.to_string(), decision.version));
            let graphs = deployment.decision_requirements_metadata.iter();
            let graphs =
                graphs.map(|graph| (graph.decision_requirements_id.to_string(), graph.decision_requirements_version));
            Answer::Deployed { processes: processes.collect(), decisions: decisions.chain(graphs).collect() }
        }
        Payload::DecisionEvaluation(_, value) => Answer::Evaluated(match value.failed_decision_id.as_str() {
            "" => Ok(value.decision_output.to_string()),
            failed => Err(failed.to_owned()),
        }),
        Payload::ProcessInstanceCreation(_, creation) => {
            Answer::Created(creation.bpmn_process_id.to_string(), creation.version)
        }
        _ => Answer::Done,
    }
}

/// As the gateway answers it.
fn refusal(kind: RejectionType, reason: &str) -> Refusal {
    let code = match kind {
        RejectionType::InvalidArgument => Code::InvalidArgument,
        RejectionType::NotFound => Code::NotFound,
        RejectionType::AlreadyExists => Code::AlreadyExists,
        RejectionType::InvalidState => Code::FailedPrecondition,
        RejectionType::ProcessingError => Code::Internal,
        RejectionType::ExceededBatchRecordSize => Code::Unknown,
        RejectionType::Unauthorized | RejectionType::Forbidden => Code::PermissionDenied,
    };
    Refusal { code, kind: Some(kind.name().to_owned()), reason: reason.to_owned() }
}

fn activated(key: Key, job: &JobValue) -> ActivatedJob {
    ActivatedJob {
        key: key.raw(),
        r#type: job.job_type.to_string(),
        element_id: job.element_id.to_string(),
        element_instance_key: job.element_instance_key.raw(),
        process_instance_key: job.process_instance_key.raw(),
        custom_headers: job.custom_headers.to_string(),
        retries: job.retries,
        deadline: job.deadline,
        variables: job.variables.to_string(),
        ..ActivatedJob::default()
    }
}
