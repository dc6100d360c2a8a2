//! Workers: streams or pollers that hold each job for a while and complete it.

use std::sync::Arc;
use std::time::Duration;

use gateway_interface::{
    ActivateJobsRequest, ActivateJobsResponse, ActivatedJob, CompleteJobRequest, StreamActivatedJobsRequest,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::ledger::{Ledger, What};
use crate::link::{Client, Links, has_unknown_outcome};
use crate::options::{Delivery, WorkerOptions};
use crate::rest::Rest;

/// How a job came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From the stream or the poll of this worker.
    Worker(usize),
    /// From the poll that runs alongside the streams.
    BesideStreams,
}

/// What did not succeed.
pub(crate) enum Failed<'a> {
    /// A stream or a poll; it is opened again.
    Stream(&'a Status),
    /// A completion, for good.
    Completion(&'a Status),
    /// A completion that is sent again: the server refused it because it had too much to do.
    WillRepeat,
    /// A completion that may have been done or not. It is not sent again: when it was not done, the server hands the job
    /// out again.
    Unknown(&'a Status),
}

/// Follows what happens to jobs.
pub(crate) trait JobObserver: Clone + Send + Sync + 'static {
    /// What it keeps about a job from arrival to completion.
    type Job: Send + 'static;

    fn received(&self, source: Source, job: &ActivatedJob) -> Self::Job;
    fn completing(&self, job: &mut Self::Job);
    fn completed(&self, job: Self::Job);
    fn failed(&self, job: Option<Self::Job>, failed: Failed<'_>);
}

/// Running workers; they end when this is dropped.
pub(crate) struct Workers {
    _tasks: JoinSet<()>,
}

/// What the requests of workers share.
#[derive(Clone)]
pub(crate) struct WorkerSettings {
    pub job_type: String,
    pub options: WorkerOptions,
    pub request_timeout: Duration,
    /// How many completions of all workers may be unanswered at once; none for no limit beyond the jobs that each
    /// worker holds.
    pub completions_in_flight: Option<Arc<Semaphore>>,
    /// Over which completions and polls go, when it is not gRPC.
    pub rest: Option<Rest>,
    /// Where completions are written down before and after.
    pub ledger: Option<Ledger>,
}

/// Pause before a retry, doubled each time.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause before a stream is opened again or a poll follows one that failed.
const LONGEST_STREAM_PAUSE: Duration = Duration::from_millis(500);
/// How often a command is sent before giving up.
pub(crate) const ATTEMPTS: u32 = 6;
const POLL_BESIDE_STREAMS_EVERY: Duration = Duration::from_secs(1);
/// How long a poll waits at the server.
pub(crate) const LONG_POLL: Duration = Duration::from_secs(10);

impl Workers {
    /// Starts them, spread over the connections.
    pub fn start<O: JobObserver>(links: &Links, settings: &WorkerSettings, observer: &O) -> Self {
        let mut tasks = JoinSet::new();
        let worker = |number: usize, source| Worker {
            links: links.clone(),
            number,
            settings: Arc::new(settings.clone()),
            observer: observer.clone(),
            room: Arc::new(Semaphore::new(settings.options.jobs_in_flight)),
            source,
        };
        for number in 0..settings.options.workers {
            let worker = worker(number, Source::Worker(number));
            match settings.options.delivery {
                Delivery::Push => tasks.spawn(worker.stream()),
                Delivery::Poll { max_jobs } => tasks.spawn(worker.poll(max_jobs)),
            };
        }
        if settings.options.delivery == Delivery::Push && settings.options.poll_beside_streams {
            tasks.spawn(worker(0, Source::BesideStreams).poll_beside_streams());
        }
        Workers { _tasks: tasks }
    }
}

/// Who uses the jobs of a stream.
pub(crate) trait StreamUser: Sync {
    /// What the stream is opened with.
    fn request(&self) -> StreamActivatedJobsRequest;
    /// A job came; the next one is read when this ends.
    fn take(&self, job: ActivatedJob) -> impl Future<Output = ()> + Send;
    /// The stream ended; it is opened again.
    fn ended(&self, status: &Status);
}

/// Keeps a stream open, for ever.
pub(crate) async fn stream_jobs(client: &Client, user: &impl StreamUser) {
    let mut pause = FIRST_PAUSE;
    loop {
        let ended = match client.clone().stream_activated_jobs(user.request()).await {
            Ok(response) => {
                let mut jobs = response.into_inner();
                loop {
                    match jobs.message().await {
                        Ok(Some(job)) => {
                            pause = FIRST_PAUSE;
                            user.take(job).await;
                        }
                        Ok(None) => break Status::ok("the server ended the stream"),
                        Err(status) => break status,
                    }
                }
            }
            Err(status) => status,
        };
        user.ended(&ended);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_STREAM_PAUSE);
    }
}

struct Worker<O: JobObserver> {
    links: Links,
    /// Of the connection for its stream or its polls. Completions go over others while that one is away.
    number: usize,
    settings: Arc<WorkerSettings>,
    observer: O,
    /// Bounds the jobs that are held or being completed. At the limit nothing is read from the stream, so that
    /// the flow control of HTTP/2 tells the server.
    room: Arc<Semaphore>,
    source: Source,
}

impl<O: JobObserver> Worker<O> {
    async fn stream(self) {
        stream_jobs(&self.links.link(self.number).client, &self).await;
    }

    async fn poll(self, max_jobs: u16) {
        let mut pause = FIRST_PAUSE;
        loop {
            // A request is worth sending only when there is room for a job.
            drop(self.room().await);
            let room = u16::try_from(self.room.available_permits()).unwrap_or(u16::MAX);
            match self.poll_once(max_jobs.min(room.max(1)), Some(LONG_POLL)).await {
                Ok(_) => pause = FIRST_PAUSE,
                Err(status) => {
                    self.observer.failed(None, Failed::Stream(&status));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_STREAM_PAUSE);
                }
            }
        }
    }

    /// Jobs that a stream could not take are left to polls, so that a worker with a stream polls too.
    async fn poll_beside_streams(self) {
        loop {
            tokio::time::sleep(POLL_BESIDE_STREAMS_EVERY).await;
            loop {
                match self.poll_once(1_000, None).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(status) => {
                        self.observer.failed(None, Failed::Stream(&status));
                        break;
                    }
                }
            }
        }
    }

    /// Asks once, lets the server wait for the given time, and returns how many jobs came.
    async fn poll_once(&self, max_jobs: u16, wait: Option<Duration>) -> Result<u64, Status> {
        let limit = wait.unwrap_or_default() + self.settings.request_timeout;
        if let Some(rest) = &self.settings.rest {
            let names = (self.settings.job_type.as_str(), WORKER_NAME);
            let jobs = rest.activate(names, self.settings.options.job_timeout, max_jobs, wait, limit).await?;
            let count = jobs.len() as u64;
            for job in jobs {
                self.take(job).await;
            }
            return Ok(count);
        }
        let mut request = Request::new(activate_request(&self.settings, max_jobs, wait));
        request.set_timeout(limit);
        let link = match self.source {
            Source::Worker(_) => self.links.link(self.number),
            Source::BesideStreams => self.links.prefer(self.number),
        };
        let polled = self.take_answer(link.client.clone().activate_jobs(request)).await;
        polled.inspect_err(|status| self.links.failed(link, status))
    }

    /// Takes the jobs of a poll.
    async fn take_answer(
        &self,
        answer: impl Future<Output = Result<Response<Streaming<ActivateJobsResponse>>, Status>>,
    ) -> Result<u64, Status> {
        let mut responses = answer.await?.into_inner();
        let mut count = 0;
        while let Some(response) = responses.message().await? {
            for job in response.jobs {
                count += 1;
                self.take(job).await;
            }
        }
        Ok(count)
    }

    async fn room(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.room).acquire_owned().await.expect("the semaphore of a worker is never closed")
    }
}

impl<O: JobObserver> StreamUser for Worker<O> {
    fn request(&self) -> StreamActivatedJobsRequest {
        StreamActivatedJobsRequest {
            r#type: self.settings.job_type.clone(),
            worker: WORKER_NAME.to_owned(),
            timeout: milliseconds(self.settings.options.job_timeout),
            ..StreamActivatedJobsRequest::default()
        }
    }

    async fn take(&self, job: ActivatedJob) {
        let tracked = self.observer.received(self.source, &job);
        let permit = self.room().await;
        let completion = Completion {
            links: self.links.clone(),
            number: self.number,
            rest: self.settings.rest.clone(),
            ledger: self.settings.ledger.clone(),
            observer: self.observer.clone(),
            request_timeout: self.settings.request_timeout,
            key: job.key,
            instance: job.process_instance_key,
            in_flight: self.settings.completions_in_flight.clone(),
        };
        let delay = self.settings.options.delay;
        tokio::spawn(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            completion.send(tracked).await;
            drop(permit);
        });
    }

    fn ended(&self, status: &Status) {
        self.links.failed(self.links.link(self.number), status);
        self.observer.failed(None, Failed::Stream(status));
    }
}

const WORKER_NAME: &str = "osmia-load";

pub(crate) fn activate_request(
    settings: &WorkerSettings,
    max_jobs: u16,
    wait: Option<Duration>,
) -> ActivateJobsRequest {
    ActivateJobsRequest {
        r#type: settings.job_type.clone(),
        worker: WORKER_NAME.to_owned(),
        timeout: milliseconds(settings.options.job_timeout),
        max_jobs_to_activate: i32::from(max_jobs),
        // A negative time-out does not wait.
        request_timeout: wait.map_or(-1, milliseconds),
        ..ActivateJobsRequest::default()
    }
}

pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

struct Completion<O: JobObserver> {
    links: Links,
    number: usize,
    rest: Option<Rest>,
    ledger: Option<Ledger>,
    observer: O,
    request_timeout: Duration,
    key: i64,
    /// The key of the process instance.
    instance: i64,
    in_flight: Option<Arc<Semaphore>>,
}

impl<O: JobObserver> Completion<O> {
    async fn complete(&self) -> Result<(), Status> {
        if let Some(rest) = &self.rest {
            return rest.complete(self.key, self.request_timeout).await;
        }
        let mut request = Request::new(CompleteJobRequest { job_key: self.key, ..CompleteJobRequest::default() });
        request.set_timeout(self.request_timeout);
        let link = self.links.prefer(self.number);
        let result = link.client.clone().complete_job(request).await.map(drop);
        self.links.count(link, &result);
        result
    }

    /// Writes down what is intended, sends it, again while the server has too much to do, and writes down the outcome.
    async fn send(self, mut job: O::Job) {
        let _permit = match &self.in_flight {
            Some(in_flight) => in_flight.acquire().await.ok(),
            None => None,
        };
        if let Some(ledger) = &self.ledger
            && let Err(status) = ledger.intend(What::Completing { job: self.key, instance: self.instance }).await
        {
            return self.observer.failed(Some(job), Failed::Completion(&status));
        }
        self.observer.completing(&mut job);
        let result = self.complete_in_the_end().await;
        match &result {
            Ok(()) => self.observer.completed(job),
            Err(status) if has_unknown_outcome(status.code()) => {
                self.observer.failed(Some(job), Failed::Unknown(status));
            }
            Err(status) => self.observer.failed(Some(job), Failed::Completion(status)),
        }
        if let Some(ledger) = &self.ledger {
            ledger.record(What::of_completion(self.key, &result)).await;
        }
    }

    async fn complete_in_the_end(&self) -> Result<(), Status> {
        let mut pause = FIRST_PAUSE;
        let mut attempt = 1;
        loop {
            match self.complete().await {
                Err(status) if attempt < ATTEMPTS && status.code() == Code::ResourceExhausted => {
                    self.observer.failed(None, Failed::WillRepeat);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}

/// Whether a command with this outcome is worth sending again.
pub(crate) fn may_pass(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Cancelled
            | Code::Unknown
    )
}
