//! One request for jobs: which partitions it asks, when it waits, what it answers.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use broker::{Reply, SubmitError};
use protocol::{Command, JobBatchIntent, JobBatchValue, Key, PartitionId, Payload, Text};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_stream::Stream;

use crate::answers::{AnswerSlot, LargeAnswer};
use crate::executor::Executor;
use crate::job_type::{Finding, JobType, Question, Ticket};
use crate::long_polling::LongPolling;
use crate::options::MESSAGE_BYTES_MAX;
use crate::outcome::{Failure, Refusal};
use crate::tenants::tenants;
use crate::undelivered::Undelivered;
use crate::validation::{job_request, texts};

/// What is left of a message for the jobs in it.
const JOBS_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1024;

/// How many jobs one command activates; a request for more asks again.
const JOBS_PER_COMMAND_MAX: usize = 1000;

/// No request waits longer than a day: clients that want longer ask again.
const WAIT_LIMIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What a client asks for.
pub(crate) struct WantedJobs {
    pub job_type: String,
    pub worker: String,
    /// Milliseconds.
    pub timeout: i64,
    pub jobs_max: i32,
    pub fetch_variables: Vec<String>,
    pub tenant_ids: Vec<String>,
    /// Milliseconds to wait for a first job: 0 for the usual time, below that not to wait.
    pub request_timeout: i64,
}

impl WantedJobs {
    /// What is to be done for it.
    ///
    /// # Errors
    /// When something of it cannot be.
    pub(crate) fn check(self, long_polling_timeout: Duration) -> Result<ActivationRequest, Failure> {
        const ACTION: &str = "activate jobs";
        job_request(ACTION, &self.job_type, self.timeout, &self.worker, &self.fetch_variables)?;
        if self.jobs_max < 1 {
            return Err(Failure::expected(ACTION, "maxJobsToActivate", "greater than zero", self.jobs_max));
        }
        let wait_limit = match u64::try_from(self.request_timeout) {
            Ok(0) => Some(long_polling_timeout),
            Ok(milliseconds) => Some(Duration::from_millis(milliseconds).min(WAIT_LIMIT_MAX)),
            Err(_) => None,
        };
        Ok(ActivationRequest {
            tenant_ids: tenants(&self.tenant_ids)?,
            job_type: self.job_type.into(),
            worker: self.worker.into(),
            timeout: self.timeout,
            jobs_max: self.jobs_max,
            fetch_variables: texts(self.fetch_variables),
            wait_limit,
        })
    }
}

/// The same, checked.
pub(crate) struct ActivationRequest {
    pub job_type: Text,
    pub worker: Text,
    /// Milliseconds.
    pub timeout: i64,
    pub jobs_max: i32,
    pub fetch_variables: Vec<Text>,
    pub tenant_ids: Vec<Text>,
    /// How long to wait for a first job; `None` answers at once.
    pub wait_limit: Option<Duration>,
}

/// What every request for jobs needs.
pub(crate) struct ActivationContext {
    pub executor: Executor,
    pub polling: Arc<LongPolling>,
    pub shutdown: watch::Receiver<bool>,
    /// Where the answer is counted until it is read.
    pub slot: AnswerSlot,
}

/// A running request.
pub(crate) struct Activation {
    context: ActivationContext,
    request: ActivationRequest,
    job_type: Arc<JobType>,
    ticket: Ticket,
    start: PartitionId,
    /// Partitions asked in this round.
    asked: BTreeSet<PartitionId>,
    /// Whether this round began because the request was woken.
    woken: bool,
    remaining: usize,
    bytes_left: usize,
    found: bool,
    overloaded: bool,
    expires: Option<Instant>,
    /// Jobs that did not fit the last message.
    overflow: Option<Undelivered>,
}

enum Answer {
    Jobs { jobs: Undelivered, drained: bool },
    Failed(Failure),
    Overloaded,
    Skipped,
}

impl Activation {
    pub(crate) fn new(context: ActivationContext, request: ActivationRequest) -> Self {
        let job_type = context.polling.job_type(&request.job_type, &request.tenant_ids);
        let (ticket, start) = job_type.enter();
        Activation {
            asked: BTreeSet::new(),
            woken: false,
            remaining: usize::try_from(request.jobs_max).unwrap_or(0),
            bytes_left: JOBS_BYTES_MAX,
            found: false,
            overloaded: false,
            expires: request.wait_limit.map(|wait_limit| Instant::now() + wait_limit),
            overflow: None,
            context,
            request,
            job_type,
            ticket,
            start,
        }
    }

    /// The next message for the client, or the end.
    async fn next(&mut self) -> Option<Result<Undelivered, Failure>> {
        if let Some(mut jobs) = self.overflow.take() {
            return Some(Ok(self.message(&mut jobs)));
        }
        loop {
            if let Some(partition) = self.next_partition() {
                match self.ask(partition).await {
                    Answer::Jobs { mut jobs, drained } if jobs.len() > 0 => {
                        if !drained {
                            self.asked.remove(&partition);
                        }
                        self.found = true;
                        self.remaining = self.remaining.saturating_sub(jobs.len());
                        let message = self.message(&mut jobs);
                        return Some(Ok(message));
                    }
                    Answer::Jobs { .. } | Answer::Skipped => {}
                    Answer::Overloaded => self.overloaded = true,
                    Answer::Failed(failure) => return Some(Err(failure)),
                }
            } else if self.found {
                return None;
            } else if self.overloaded {
                return Some(Err(self.nothing_found_but_overload()));
            } else {
                match self.wait().await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(failure) => return Some(Err(failure)),
                }
            }
        }
    }

    /// Splits what fits one message from the jobs and keeps the rest for the next one.
    fn message(&mut self, jobs: &mut Undelivered) -> Undelivered {
        let message = jobs.take_fitting(JOBS_BYTES_MAX);
        self.bytes_left = self.bytes_left.saturating_sub(message.bytes());
        if jobs.len() > 0 {
            self.overflow = Some(jobs.take_fitting(usize::MAX));
        }
        message
    }

    fn next_partition(&self) -> Option<PartitionId> {
        // A worker with enough to do for a while should start working.
        if self.remaining == 0 || (self.found && self.bytes_left == 0) {
            return None;
        }
        if self.expires.is_some() {
            return self.job_type.choose(self.start, &self.asked, self.woken);
        }
        // A request that does not wait asks all partitions, whatever the hints say.
        self.job_type.choose_any(self.start, &self.asked)
    }

    /// Waits for a reason to ask again. False when the time is over.
    async fn wait(&mut self) -> Result<bool, Failure> {
        let Some(expires) = self.expires else {
            return Ok(false);
        };
        let mut shutdown = self.context.shutdown.clone();
        let polling = self.context.polling.clone();
        let parked = polling.park(&self.job_type, self.ticket)?;
        let is_over = match parked {
            Some(parked) => tokio::select! {
                () = parked.woken() => false,
                () = tokio::time::sleep_until(expires) => true,
                _ = shutdown.wait_for(|stopping| *stopping) => return Err(Failure::ShuttingDown),
            },
            None => Instant::now() >= expires,
        };
        if is_over {
            polling.give_way().await;
            return Ok(false);
        }
        self.asked.clear();
        self.woken = true;
        Ok(true)
    }

    async fn ask(&mut self, partition: PartitionId) -> Answer {
        self.asked.insert(partition);
        // Nothing is activated as long as there is no room for what that gives.
        let (slot, limit) = (&self.context.slot, self.context.executor.request_timeout);
        let mut reserved = match slot.reserve(LargeAnswer::Jobs, limit).await {
            Ok(reserved) => reserved,
            Err(failure) => return Answer::Failed(failure),
        };
        let executor = self.context.executor.clone();
        let question = self.job_type.ask(partition);
        let wanted = self.remaining.min(JOBS_PER_COMMAND_MAX);
        let (sender, receiver) = oneshot::channel();
        self.context.executor.client.submit(partition, self.command(wanted), move |result| {
            // When the request is gone, this drops the answer, which gives the jobs back.
            let _ = sender.send(answer(&executor, question, partition, wanted, result));
        });
        match tokio::time::timeout(limit, receiver).await {
            Ok(answer) => {
                let answer = answer.unwrap_or(Answer::Skipped);
                if let Answer::Jobs { jobs, .. } = &answer {
                    if let Err(failure) = reserved.settle(jobs.bytes()) {
                        return Answer::Failed(failure);
                    }
                    if jobs.len() > 0 {
                        self.context.slot.put(reserved);
                    }
                }
                answer
            }
            Err(_) => {
                tracing::warn!(%partition, "a partition did not answer a request for jobs in time");
                Answer::Skipped
            }
        }
    }

    fn command(&self, wanted: usize) -> Command {
        let value = JobBatchValue {
            job_type: self.request.job_type.clone(),
            worker: self.request.worker.clone(),
            timeout: self.request.timeout,
            max_jobs_to_activate: wanted as i32,
            tenant_ids: self.request.tenant_ids.clone(),
            fetch_variables: self.request.fetch_variables.clone(),
            ..JobBatchValue::default()
        };
        Command::new(Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
    }

    fn nothing_found_but_overload(&self) -> Failure {
        Failure::Exhausted(format!(
            "Expected to activate jobs of type '{}', but no jobs available and at least one broker returned 'RESOURCE_EXHAUSTED'. Please try again later.",
            self.request.job_type
        ))
    }
}

/// Reads the answer of a partition, and passes its meaning on to other requests for the same type.
fn answer(
    executor: &Executor,
    question: Question,
    partition: PartitionId,
    wanted: usize,
    result: Result<Reply, SubmitError>,
) -> Answer {
    let at = result.as_ref().ok().and_then(|reply| executor.acknowledged.answered(partition, reply));
    match result {
        Ok(Reply { rejection: Some(rejection), payload, key, .. }) => {
            question.settle(Finding::NotAnswered);
            let intent = payload.intent_name();
            Answer::Failed(Failure::Rejected(Box::new(Refusal { intent, key, rejection, at })))
        }
        Ok(Reply { payload: Payload::JobBatch(_, batch), request, .. }) => {
            let delivery = executor.client.delivery(partition, request);
            let batch = *batch;
            let drained = !batch.truncated && batch.jobs.len() < wanted;
            question.settle(if drained { Finding::Drained } else { Finding::MayHaveMore });
            Answer::Jobs {
                drained,
                jobs: Undelivered::new(executor.client.clone(), delivery, batch.job_keys, batch.jobs),
            }
        }
        Ok(reply) => {
            tracing::error!(%partition, kind = reply.payload.value_type().name(), "a request for jobs was answered with something else");
            Answer::Skipped
        }
        Err(SubmitError::ResourceExhausted { .. }) => Answer::Overloaded,
        Err(error) => {
            tracing::warn!(%partition, %error, "a partition cannot be asked for jobs");
            Answer::Skipped
        }
    }
}

type Step = Pin<Box<dyn Future<Output = (Option<Result<Undelivered, Failure>>, Box<Activation>)> + Send>>;

/// The parts of an answer, made one by one as the client takes them.
pub(crate) struct ActivationStream {
    step: Option<Step>,
}

impl ActivationStream {
    pub(crate) fn new(activation: Activation) -> Self {
        ActivationStream { step: Some(step(Box::new(activation))) }
    }
}

fn step(mut activation: Box<Activation>) -> Step {
    Box::pin(async move {
        let item = activation.next().await;
        (item, activation)
    })
}

impl Stream for ActivationStream {
    type Item = Result<Undelivered, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(current) = &mut self.step else {
            return Poll::Ready(None);
        };
        let (item, activation) = ready!(current.as_mut().poll(context));
        self.step = matches!(item, Some(Ok(_))).then(|| step(activation));
        Poll::Ready(item)
    }
}
