//! Streams of jobs that are pushed as they become available.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use broker::{Client, JobSink, Push, StreamHandle, StreamSpecification};
use metrics::{Counter, Gauge, Histogram};
use parking_lot::Mutex;
use protocol::JobAmount;
use tokio::sync::{mpsc, watch};
use tokio::time::Sleep;
use tokio_stream::Stream;

use crate::openings::{Openings, Place};
use crate::outcome::Failure;

/// The open streams of this gateway.
pub struct JobStreams {
    open: Mutex<Open>,
    streams_max: usize,
    clients: Gauge,
    /// Streams that want the same count once.
    distinct: Gauge,
    /// How many streams want the same.
    together: Histogram,
    /// Nodes whose jobs the streams get: this one.
    servers: Gauge,
    pushed: Counter,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    streams: BTreeMap<u64, Arc<StreamSpecification>>,
}

/// A stream that a worker holds open.
#[derive(Debug, Clone)]
pub struct JobStreamView {
    /// Number of the stream at this gateway.
    pub id: u64,
    /// What the worker asked for.
    pub specification: Arc<StreamSpecification>,
}

impl JobStreams {
    pub(crate) fn new(streams_max: usize) -> Arc<Self> {
        Arc::new(JobStreams {
            open: Mutex::default(),
            streams_max,
            clients: metrics::gauge!("zeebe_gateway_job_stream_clients"),
            distinct: metrics::gauge!("zeebe_gateway_job_stream_streams"),
            together: metrics::histogram!("zeebe_gateway_job_stream_aggregated_stream_clients"),
            servers: metrics::gauge!("zeebe_gateway_job_stream_servers"),
            pushed: metrics::counter!("zeebe_gateway_job_stream_push_total"),
        })
    }

    /// The streams in the order in which they were opened.
    pub fn views(&self) -> Vec<JobStreamView> {
        let open = self.open.lock();
        let view = |(id, specification): (&u64, &Arc<StreamSpecification>)| JobStreamView {
            id: *id,
            specification: specification.clone(),
        };
        open.streams.iter().map(view).collect()
    }

    fn add(&self, specification: &StreamSpecification) -> Result<u64, Failure> {
        let mut open = self.open.lock();
        if open.streams.len() >= self.streams_max {
            return Err(Failure::Exhausted(format!(
                "The limit of {} job streams at this gateway is reached. Please try again later, or let fewer workers stream.",
                self.streams_max
            )));
        }
        open.next_id += 1;
        let id = open.next_id;
        open.streams.insert(id, Arc::new(specification.clone()));
        self.report(&open);
        Ok(id)
    }

    fn remove(&self, id: u64) {
        let mut open = self.open.lock();
        open.streams.remove(&id);
        self.report(&open);
    }

    fn report(&self, open: &Open) {
        self.clients.set(open.streams.len() as f64);
    }

    /// Counts what is too expensive to count at every opening and closing.
    pub(crate) fn count_distinct(&self) {
        let open = self.open.lock();
        let specification = |of: &Arc<StreamSpecification>| {
            (of.job_type.clone(), of.worker.clone(), of.timeout, of.fetch_variables.clone(), of.tenant_ids.clone())
        };
        let mut distinct: HashMap<_, usize> = HashMap::new();
        for stream in open.streams.values() {
            *distinct.entry(specification(stream)).or_default() += 1;
        }
        self.distinct.set(distinct.len() as f64);
        self.servers.set(if distinct.is_empty() { 0.0 } else { 1.0 });
        distinct.values().for_each(|together| self.together.record(*together as f64));
    }
}

/// Takes pushed jobs from the broker. Bounded by the stream's credit: no more jobs come from a partition than its window,
/// and credit goes back only when a job leaves the queue. So there is no second limit here that could disagree.
struct Queue {
    jobs: mpsc::UnboundedSender<Push>,
}

impl JobSink for Queue {
    fn push(&self, push: Push) -> bool {
        self.jobs.send(push).is_ok()
    }
}

/// The response of one stream: every pushed job, until the client goes away or the server stops.
pub(crate) struct JobStream {
    id: u64,
    streams: Arc<JobStreams>,
    jobs: mpsc::UnboundedReceiver<Push>,
    /// What is left to do until the partitions know it.
    opening: Option<Opening>,
    handle: Option<StreamHandle>,
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _place: Place,
}

/// A stream that waits until its connection may open another one.
struct Opening {
    client: Client,
    specification: StreamSpecification,
    sink: Arc<Queue>,
    wait: Pin<Box<Sleep>>,
}

impl JobStream {
    pub(crate) fn open(
        client: &Client,
        streams: &Arc<JobStreams>,
        openings: Option<&Openings>,
        specification: StreamSpecification,
        mut shutdown: watch::Receiver<bool>,
    ) -> Result<Self, Failure> {
        let alone;
        let openings = match openings {
            Some(openings) => openings,
            None => {
                alone = Openings::new(1);
                &alone
            }
        };
        let (place, wait) = openings.place(&specification, Instant::now())?;
        let (sender, jobs) = mpsc::unbounded_channel();
        let id = streams.add(&specification)?;
        let shutdown = async move {
            // An error means that the whole server is gone.
            let _ = shutdown.wait_for(|stopping| *stopping).await;
        };
        let mut stream = JobStream {
            id,
            streams: streams.clone(),
            jobs,
            opening: None,
            handle: None,
            shutdown: Some(Box::pin(shutdown)),
            _place: place,
        };
        let sink = Arc::new(Queue { jobs: sender });
        if wait.is_zero() {
            stream.handle = Some(open(client, specification, sink)?);
        } else {
            let wait = Box::pin(tokio::time::sleep(wait));
            stream.opening = Some(Opening { client: client.clone(), specification, sink, wait });
        }
        Ok(stream)
    }

    /// Opens the stream when its turn has come.
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Some(opening) = &mut self.opening else { return Poll::Ready(Ok(())) };
        ready!(opening.wait.as_mut().poll(context));
        let Some(Opening { client, specification, sink, .. }) = self.opening.take() else { return Poll::Pending };
        Poll::Ready(open(&client, specification, sink).map(|handle| self.handle = Some(handle)))
    }
}

fn open(client: &Client, specification: StreamSpecification, sink: Arc<Queue>) -> Result<StreamHandle, Failure> {
    client.open_stream(specification, sink).map_err(Failure::NotSubmitted)
}

impl Stream for JobStream {
    type Item = Result<Push, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(shutdown) = &mut self.shutdown else {
            return Poll::Ready(None);
        };
        if shutdown.as_mut().poll(context).is_ready() {
            self.shutdown = None;
            return Poll::Ready(Some(Err(Failure::ShuttingDown)));
        }
        if let Err(failure) = ready!(self.poll_open(context)) {
            self.shutdown = None;
            return Poll::Ready(Some(Err(failure)));
        }
        let Some(push) = ready!(self.jobs.poll_recv(context)) else {
            // The broker let go of the sink: it is stopping.
            self.shutdown = None;
            return Poll::Ready(Some(Err(Failure::ShuttingDown)));
        };
        // Taken by the connection: the partition may push the next one.
        if let (Some(handle), Some(partition)) = (&self.handle, push.key.partition()) {
            handle.delivered(partition, JobAmount::of(&push.job));
        }
        self.streams.pushed.increment(1);
        Poll::Ready(Some(Ok(push)))
    }
}

impl Drop for JobStream {
    fn drop(&mut self) {
        self.jobs.close();
        let mut undelivered = Vec::new();
        while let Ok(push) = self.jobs.try_recv() {
            undelivered.push(push);
        }
        if let Some(handle) = self.handle.take() {
            handle.close(undelivered);
        }
        self.streams.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_streams_are_refused_by_the_name_of_the_limit() {
        let streams = JobStreams::new(2);
        let specification = StreamSpecification {
            job_type: "work".into(),
            worker: "worker".into(),
            timeout: 1_000,
            fetch_variables: Vec::new(),
            tenant_ids: Vec::new(),
        };
        let first = streams.add(&specification).unwrap();
        streams.add(&specification).unwrap();
        let refusal = streams.add(&specification).unwrap_err();
        let Failure::Exhausted(message) = refusal else { panic!("{refusal:?}") };
        assert!(message.contains("limit of 2 job streams"), "{message}");
        streams.remove(first);
        streams.add(&specification).expect("there is room again");
    }
}
