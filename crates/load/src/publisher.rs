//! Publishes messages, by the schedule or when an instance has reached its catch event.

use std::sync::Arc;
use std::time::Duration;

use gateway_interface::{ActivatedJob, PublishMessageRequest};
use tonic::{Request, Status};

use crate::link::Links;
use crate::model::Tag;
use crate::profile::PAUSE_BEFORE_MESSAGE;
use crate::rest::Rest;
use crate::tracker::{TrackedJob, Tracker};
use crate::worker::{ATTEMPTS, FIRST_PAUSE, Failed, JobObserver, LONGEST_PAUSE, Source, may_pass, milliseconds};

/// Publishes messages of one name over several connections.
#[derive(Clone)]
pub(crate) struct Publisher {
    pub clients: Links,
    /// Used instead of the clients when there is one.
    pub rest: Option<Rest>,
    pub message: Arc<str>,
    pub time_to_live: Duration,
    pub request_timeout: Duration,
}

impl Publisher {
    /// Sends one message with the tag as correlation key.
    pub async fn publish(&self, tag: Tag) -> Result<(), Status> {
        if let Some(rest) = &self.rest {
            let (key, time_to_live) = (tag.to_string(), milliseconds(self.time_to_live));
            return rest.publish(&self.message, &key, time_to_live, self.request_timeout).await;
        }
        let mut request = Request::new(PublishMessageRequest {
            name: self.message.to_string(),
            correlation_key: tag.to_string(),
            time_to_live: milliseconds(self.time_to_live),
            ..PublishMessageRequest::default()
        });
        request.set_timeout(self.request_timeout);
        let link = self.clients.choose(tag.0);
        let result = link.client.clone().publish_message(request).await.map(drop);
        self.clients.count(link, &result);
        result
    }

    /// Sends the message that the schedule intended for this time, once, and tells the tracker.
    pub async fn publish_tracked(&self, kind: usize, tag: Tag, intended: Duration, tracker: &Tracker) {
        match self.publish(tag).await {
            Ok(()) => tracker.published(kind, tag, intended),
            Err(status) => tracker.publication_failed(tag, &status),
        }
    }

    /// Sends the message without which an instance would wait for ever, and again after errors that may pass. If two
    /// arrive because an answer was lost, the instance takes one and the other expires.
    pub async fn publish_surely(&self, kind: usize, tag: Tag, tracker: &Tracker) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let sent = tracker.now();
            match self.publish(tag).await {
                Ok(()) => return tracker.published(kind, tag, sent),
                Err(status) if attempt < ATTEMPTS && may_pass(status.code()) => {
                    tracker.publication_will_repeat();
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(status) => return tracker.publication_failed(tag, &status),
            }
        }
    }
}

/// Tells the tracker about jobs, and publishes the message of an instance when its turn has come.
#[derive(Clone)]
pub(crate) struct InstanceObserver {
    pub tracker: Tracker,
    pub publisher: Publisher,
}

impl InstanceObserver {
    fn publish_after_pause(&self, kind: usize, tag: Tag) {
        let (tracker, publisher) = (self.tracker.clone(), self.publisher.clone());
        // At most as many as there are instances.
        tokio::spawn(async move {
            tokio::time::sleep(PAUSE_BEFORE_MESSAGE).await;
            tracker.publishing(tag);
            publisher.publish_surely(kind, tag, &tracker).await;
        });
    }
}

impl JobObserver for InstanceObserver {
    type Job = TrackedJob;

    fn received(&self, source: Source, job: &ActivatedJob) -> TrackedJob {
        self.tracker.received(source, job)
    }

    fn completing(&self, job: &mut TrackedJob) {
        self.tracker.completing(job);
    }

    fn completed(&self, job: TrackedJob) {
        if let Some((kind, tag)) = self.tracker.completed(&job) {
            self.publish_after_pause(kind, tag);
        }
    }

    fn failed(&self, job: Option<TrackedJob>, failed: Failed<'_>) {
        if let Some((kind, tag)) = self.tracker.failed(job.as_ref(), &failed) {
            self.publish_after_pause(kind, tag);
        }
    }
}
