//! Creates instances: on a schedule that does not wait for the server, or one by one.

use std::sync::Arc;
use std::time::Duration;

use gateway_interface::CreateProcessInstanceRequest;
use tokio::sync::Semaphore;
use tonic::{Request, Status};

use crate::model::{Payload, Tag};
use crate::schedule::{Pacer, Schedule, Timeline};
use crate::tracker::Tracker;
use crate::worker::Client;

/// A send that cannot be made for so long is skipped.
const SKIP_AFTER: Duration = Duration::from_secs(1);

/// Creates instances of one process over several connections.
#[derive(Clone)]
pub(crate) struct Creator {
    pub clients: Vec<Client>,
    pub process_id: Arc<str>,
    pub payload: Arc<Payload>,
    pub request_timeout: Duration,
}

impl Creator {
    /// Sends one creation; the number spreads them over the connections.
    pub async fn create(&self, number: u64, tag: Tag) -> Result<(), Status> {
        let connection = (number % self.clients.len() as u64) as usize;
        let mut request = Request::new(CreateProcessInstanceRequest {
            bpmn_process_id: self.process_id.to_string(),
            version: -1,
            variables: self.payload.variables(tag),
            ..CreateProcessInstanceRequest::default()
        });
        request.set_timeout(self.request_timeout);
        let mut client = self.clients[connection].clone();
        client.create_process_instance(request).await.map(drop)
    }

    /// Sends one creation and tells the tracker.
    pub async fn create_tracked(&self, number: u64, tag: Tag, intended: Duration, tracker: &Tracker) {
        match self.create(number, tag).await {
            Ok(()) => tracker.created(tag, intended),
            Err(status) => tracker.creation_failed(tag, &status),
        }
    }
}

/// Keeps a schedule. A server that falls behind meets the same sends as one that does not, up to the bounds on
/// what is in flight; beyond them sends are late, then skipped, and both are counted.
pub(crate) async fn keep_schedule(
    creator: Creator,
    tracker: Tracker,
    timeline: Timeline,
    schedule: Schedule,
    pacer: Pacer,
    in_flight: Arc<Semaphore>,
) {
    let mut next = 0;
    loop {
        let now = timeline.now();
        let due = schedule.due(now);
        while next < due {
            let intended = schedule.intended(next);
            if now.saturating_sub(intended) > SKIP_AFTER {
                tracker.skipped(intended, 1);
                next += 1;
                continue;
            }
            let Ok(permit) = Arc::clone(&in_flight).try_acquire_owned() else {
                break;
            };
            let Some(tag) = tracker.begin(intended) else {
                break;
            };
            let (creator, tracker, number) = (creator.clone(), tracker.clone(), next);
            tokio::spawn(async move {
                creator.create_tracked(number, tag, intended, &tracker).await;
                drop(permit);
            });
            next += 1;
        }
        if now >= schedule.end {
            while next < schedule.total() {
                tracker.skipped(schedule.intended(next), 1);
                next += 1;
            }
            return;
        }
        pacer.tick().await;
    }
}
