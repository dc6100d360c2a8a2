//! Sends what the schedule wants, without waiting for the server: creations, or messages for instances made beforehand.

use std::sync::Arc;
use std::time::Duration;

use gateway_interface::CreateProcessInstanceRequest;
use tokio::sync::Semaphore;
use tonic::{Request, Status};

use crate::availability::{Availability, Wanted};
use crate::ledger::{Ledger, What};
use crate::link::Links;
use crate::model::{Payload, Tag};
use crate::profile::{Kind, Profile};
use crate::publisher::Publisher;
use crate::rest::Rest;
use crate::schedule::{Pacer, Schedule, Timeline};
use crate::tracker::Tracker;

/// A send that cannot be made for this long is skipped.
const SKIP_AFTER: Duration = Duration::from_secs(1);

/// Creates instances over several connections.
#[derive(Clone)]
pub(crate) struct Creator {
    pub clients: Links,
    /// Used instead of the clients when there is one.
    pub rest: Option<Rest>,
    /// The processes, in the order of the profile.
    pub process_ids: Arc<[Arc<str>]>,
    pub payload: Arc<Payload>,
    pub request_timeout: Duration,
    /// Where creations are written down before and after.
    pub ledger: Option<Ledger>,
}

impl Creator {
    /// Writes one creation down, sends it, and writes its outcome down. `sending` is called in between with the time
    /// that writing took. Returns the key of the process instance.
    pub async fn create(
        &self,
        kind: usize,
        number: u64,
        tag: Tag,
        sending: impl FnOnce(Duration),
    ) -> Result<i64, Status> {
        let Some(ledger) = &self.ledger else {
            return self.send(kind, number, tag).await;
        };
        sending(ledger.intend(What::Creating { tag, kind }).await?);
        let result = self.send(kind, number, tag).await;
        ledger.record(What::of_creation(tag, &result)).await;
        result
    }

    /// The number spreads the creations over the connections.
    async fn send(&self, kind: usize, number: u64, tag: Tag) -> Result<i64, Status> {
        // An audit finds the instance by it.
        let of_instance = self.ledger.is_some().then(|| tag.of_instance());
        if let Some(rest) = &self.rest {
            let variables = self.payload.variables(tag);
            return rest.create(&self.process_ids[kind], &variables, of_instance, self.request_timeout).await;
        }
        let mut request = Request::new(CreateProcessInstanceRequest {
            bpmn_process_id: self.process_ids[kind].to_string(),
            version: -1,
            variables: self.payload.variables(tag),
            tags: of_instance.into_iter().collect(),
            ..CreateProcessInstanceRequest::default()
        });
        request.set_timeout(self.request_timeout);
        let link = self.clients.choose(number);
        let result = link.client.clone().create_process_instance(request).await;
        self.clients.count(link, &result);
        Ok(result?.into_inner().process_instance_key)
    }
}

/// What one send of the schedule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The number of the process.
    pub kind: usize,
    /// Whether the message that the instance will wait for is published together with the creation.
    pub buffered: bool,
}

impl Turn {
    /// What the profile sends at this point of the schedule.
    pub fn of(profile: Profile, number: u64) -> Turn {
        let turns = profile.turns();
        let length = turns.len() as u64;
        Turn { kind: turns[(number % length) as usize], buffered: (number / length).is_multiple_of(2) }
    }
}

/// Sends creations or messages, and tells the tracker.
#[derive(Clone)]
pub(crate) struct Sender {
    pub profile: Profile,
    pub kinds: Arc<[Kind]>,
    pub creator: Creator,
    pub publisher: Publisher,
    pub tracker: Tracker,
    /// Looks for some of the instances, if that is asked for.
    pub availability: Option<Availability>,
}

impl Sender {
    /// Announces a send. None when a bound on what is outstanding is reached, or no instance waits for a message.
    pub fn begin(&self, turn: Turn, intended: Duration) -> Option<Tag> {
        if self.profile.sends_messages() {
            self.tracker.begin_publication(intended)
        } else {
            self.tracker.begin(turn.kind, turn.buffered, intended)
        }
    }

    /// Makes the send that was announced with this tag, and waits for its answer.
    pub async fn send(&self, turn: Turn, number: u64, tag: Tag, intended: Duration) {
        let tracker = &self.tracker;
        if self.profile.sends_messages() {
            return self.publisher.publish_tracked(turn.kind, tag, intended, tracker).await;
        }
        let create = async {
            let mut intended = intended;
            let sending = |waited| {
                tracker.put_off(tag, waited);
                intended += waited;
            };
            match self.creator.create(turn.kind, number, tag, sending).await {
                Ok(key) => {
                    tracker.created(turn.kind, tag, intended, key);
                    if let Some(availability) = &self.availability {
                        availability.created(number, Wanted { kind: turn.kind, key, tag, intended });
                    }
                }
                Err(status) => tracker.creation_failed(tag, &status),
            }
        };
        if turn.buffered && self.kinds[turn.kind].waits_for_message() {
            tokio::join!(create, self.publisher.publish_surely(turn.kind, tag, tracker));
        } else {
            create.await;
        }
    }
}

/// Keeps a schedule. A server that falls behind meets the same sends as one that does not, up to the bounds on
/// what is in flight; beyond them sends are late, then skipped, and both are counted.
pub(crate) async fn keep_schedule(
    sender: Sender,
    timeline: Timeline,
    schedule: Schedule,
    pacer: Pacer,
    in_flight: Arc<Semaphore>,
) {
    let turn = |number| Turn::of(sender.profile, number);
    let mut next = 0;
    loop {
        let now = timeline.now();
        let due = schedule.due(now);
        while next < due {
            let intended = schedule.intended(next);
            if now.saturating_sub(intended) > SKIP_AFTER {
                sender.tracker.skipped(turn(next).kind, intended);
                next += 1;
                continue;
            }
            let Ok(permit) = Arc::clone(&in_flight).try_acquire_owned() else {
                break;
            };
            let (turn, number) = (turn(next), next);
            let Some(tag) = sender.begin(turn, intended) else {
                break;
            };
            let sender = sender.clone();
            tokio::spawn(async move {
                sender.send(turn, number, tag, intended).await;
                drop(permit);
            });
            next += 1;
        }
        if now >= schedule.end {
            while next < schedule.total() {
                sender.tracker.skipped(turn(next).kind, schedule.intended(next));
                next += 1;
            }
            return;
        }
        pacer.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_message_of_a_mix_is_published_with_the_creation() {
        let turns: Vec<Turn> = (0..20).map(|number| Turn::of(Profile::Mixed, number)).collect();
        let messages: Vec<bool> = turns.iter().filter(|turn| turn.kind == 2).map(|turn| turn.buffered).collect();
        assert_eq!(messages, [true, false, true, false]);
        assert_eq!(turns.iter().filter(|turn| turn.kind == 0).count(), 12);
    }
}
