//! What the loop of a partition talks to: the rest of its node, and through it the world.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use broker::partition::{Moment, Room};
use broker::partition_loop::{Batch, Shell};
use broker::reception::Reception;
use broker::record_log::RecordLogError;
use broker::upkeep::Upkeep;
use broker::{Health, Permit};
use engine::{Engine, JobsAvailable, OutgoingCommand, Push, Reply, Unwatched};
use protocol::{Command, JobAmount, PartitionId, Record, Request, life_of};
use state::{Checkpoint, CheckpointStatistics, Retired, Written};

use super::{Answers, EPOCH, Inbound, Surroundings, index_of};
use crate::options::Milliseconds;
use crate::oracle::Applied;
use crate::schedule::{Event, Life};
use crate::worker;

/// A worker that waits long for its jobs does again what it did with one after this time: a refusal says that it was done.
const AGAIN_AFTER: Milliseconds = 5_000;

/// What a node knows about one of its partitions, beside the loop that drives it.
pub(super) struct Front {
    /// When its loop began.
    pub started: Milliseconds,
    /// What the worker of this node took from the partition by its stream.
    pub taken: JobAmount,
    /// The newest batch that was applied.
    applied: u64,
    /// Its records are not written yet.
    is_unwritten: bool,
    /// The term of the batches that are applied.
    pub term: u64,
    /// Gone while the state is replaced by a received one, which must not be open.
    pub upkeep: Option<Upkeep>,
    /// A checkpoint that is on the disk and not part of the state yet.
    pub written: Option<Written>,
    /// Why the partition stopped.
    pub stopped: Option<String>,
}

impl Front {
    pub fn new(upkeep: Upkeep, started: Milliseconds) -> Self {
        Front {
            started,
            taken: JobAmount::default(),
            applied: 0,
            is_unwritten: false,
            term: 0,
            upkeep: Some(upkeep),
            written: None,
            stopped: None,
        }
    }
}

/// The surroundings of one partition while its loop is called.
pub(super) struct Around<'a, 's> {
    pub partition: PartitionId,
    pub life: Life,
    pub moment: Moment,
    pub is_slow: bool,
    pub fronts: &'a mut [Front],
    pub inbox: &'a mut Vec<Inbound>,
    pub reception: &'a Reception,
    pub answers: &'a Answers,
    pub stream: Option<&'a worker::Stream>,
    pub waiting: &'a mut BTreeMap<u64, (PartitionId, Request)>,
    pub surroundings: &'a mut Surroundings<'s>,
}

impl Around<'_, '_> {
    fn front(&mut self) -> &mut Front {
        &mut self.fronts[index_of(self.partition)]
    }
}

impl Shell for Around<'_, '_> {
    type Permit = Permit;
    type Watch<'w>
        = Unwatched
    where
        Self: 'w;

    fn now(&self) -> Moment {
        self.moment
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.moment.steady_milliseconds).unwrap_or(0))
    }

    fn room(&self) -> Room {
        Room::Enough
    }

    fn begin(&mut self, _: u64) {}

    fn watch(&self, _: u64, _: &[u8], _: usize) -> Unwatched {
        Unwatched
    }

    fn began(&mut self, term: u64) {
        self.front().term = term;
        self.reception.began(self.partition, term);
    }

    fn awaits(&mut self, request: Request) {
        self.reception.awaits(self.partition, request);
    }

    fn end(&mut self, _: u64) {}

    fn taken(&mut self, _: usize) {}

    fn applied(&mut self, content: &[u8], records: &[Record], engine: &Engine) {
        let index = engine.applied();
        self.front().applied = index;
        self.front().is_unwritten = true;
        let (node, partition) = (self.life.node, self.partition);
        let now = EPOCH + i64::try_from(self.surroundings.schedule.now()).unwrap_or(i64::MAX - EPOCH);
        self.surroundings.oracles.applied(&Applied { node, partition, index, now, data: content, records, engine });
    }

    fn records_flushed(&mut self, result: Result<(), &RecordLogError>) {
        if result.is_ok() {
            self.front().is_unwritten = false;
        }
        self.reception.records_flushed(self.partition, result);
    }

    fn written(&mut self, _: Range<Duration>, permit: Option<Permit>, _: &[Record], _: bool) {
        self.reception.written(self.partition, permit);
    }

    fn finished(&mut self, _: &Batch) {}

    fn answer(&mut self, reply: Reply) {
        assert!(!self.front().is_unwritten, "node {} answers before its records are written", self.life.node);
        let (partition, applied) = (self.partition, self.front().applied);
        let (node, request) = (reply.request.node, reply.request);
        // What was answered before is about something else.
        let before = self.answers.lock().len();
        self.reception.answer(partition, reply);
        for answer in self.answers.lock().split_off(before) {
            // Clients know their requests by numbers of their own.
            let (number, Ok(mut reply)) = answer else { continue };
            reply.request = Request { node, number };
            let of = self.waiting.remove(&number);
            assert!(of == Some((partition, request)), "request {number} {of:?} gets the answer to {request:?}");
            let Surroundings { oracles, network, schedule, .. } = self.surroundings;
            oracles.request_answered(partition, request);
            oracles.acknowledged(partition, applied, &reply);
            schedule.after(network.latency(), Event::Answer(number, Some(Box::new(reply))));
        }
    }

    fn push(&mut self, push: Push) {
        assert!(!self.front().is_unwritten, "node {} pushes before its records are written", self.life.node);
        let (partition, applied) = (self.partition, self.front().applied);
        // What was activated for an earlier life is applied again.
        if life_of(push.stream.number) == self.life.number {
            self.surroundings.oracles.pushed(partition, applied, push.key, push.stream);
        }
        let amount = JobAmount::of(&push.job);
        let front = &mut self.fronts[index_of(partition)];
        let (credit, mut late_grant) = (self.surroundings.swarm.stream_credit, None);
        if self.stream.is_some_and(|stream| stream.id() == push.stream) {
            // The worker takes it at once.
            let before = front.taken;
            front.taken = before.plus(amount);
            if self.surroundings.chance.one_in(8) {
                late_grant = Some(worker::late_grant(push.stream, before, credit));
            }
            self.surroundings.oracles.offered(partition, push.stream, worker::offer(front.taken, credit));
        }
        self.reception.push(partition, push);
        late_grant.into_iter().for_each(|grant| self.reception.submit_to(partition, &grant));
        while let Some(push) = self.stream.and_then(|stream| stream.take(partition)) {
            let is_patient = self.surroundings.swarm.long_activations;
            if is_patient {
                // What the worker does may get lost with its gateway, and then it does it again.
                let event = push.job.job_listener_event_type;
                self.surroundings.schedule.after(AGAIN_AFTER, Event::Unfinished(push.key, event));
            }
            if let Some(command) = worker::answer(&push, is_patient, self.surroundings.chance) {
                self.reception.submit_to(partition, &command);
            }
        }
    }

    fn available(&mut self, _: &JobsAvailable) {}

    fn send(&mut self, send: OutgoingCommand) {
        self.reception.submit_to(send.partition, &send.command);
    }

    fn submit(&mut self, command: Command) {
        self.inbox.push(Inbound::Command(self.partition, protocol::encode_to_vec(&command), None));
    }

    fn is_current(&self, leadership: u64) -> bool {
        self.reception.leadership(self.partition) == leadership
    }

    fn lead(&mut self, leadership: u64, _: &Engine) {
        if let Some(stream) = self.stream {
            let offer = worker::offer(self.front().taken, self.surroundings.swarm.stream_credit);
            self.surroundings.oracles.offered(self.partition, stream.id(), offer);
        }
        self.reception.lead(self.partition, leadership);
        self.surroundings.oracles.trace("leads", &[self.life.node.0, self.partition.0.into()], "");
    }

    fn step_down(&mut self) {
        self.reception.step_down(self.partition);
    }

    fn unsaved(&mut self, overlay_bytes: u64) {
        self.reception.unsaved(self.partition, overlay_bytes);
    }

    fn write_checkpoint(&mut self, checkpoint: Checkpoint, position: u64) {
        let now = self.elapsed();
        if let Some(upkeep) = &mut self.front().upkeep {
            upkeep.begin(checkpoint, position, now);
        }
        let slowness = if self.is_slow { 50 } else { 1 };
        let Surroundings { schedule, chance, swarm, .. } = self.surroundings;
        let longest = swarm.checkpoint_milliseconds.max(swarm.sync_milliseconds * 10);
        let pause = chance.within(0..longest + 1) * slowness;
        schedule.after(pause, Event::WriteCheckpoint(self.life, self.partition));
    }

    fn checkpointed(&mut self, retired: Retired, statistics: &CheckpointStatistics, _: Duration) {
        drop(retired);
        self.surroundings.oracles.checkpointed(self.life.node, self.partition, statistics.applied);
        self.inbox.push(Inbound::Checkpointed(self.partition, statistics.applied));
    }

    fn statistics(&mut self, _: i64, _: bool, _: &Engine) {}

    fn stop(&mut self, _: Health, reason: &str) {
        self.front().stopped = Some(reason.to_owned());
    }

    fn refuse_all(&mut self) {}
}
