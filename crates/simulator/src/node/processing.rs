//! What a node does with what is committed: the loops of its partitions apply it, and its checkpoints are written.

use std::sync::Arc;
use std::time::Duration;

use broker::Permit;
use broker::partition::{Partition, PartitionOptions};
use broker::partition_loop::{CheckpointPolicy, PartitionLoop, Shell};
use broker::record_log::{RecordLog, RecordLogOptions};
use broker::replaced_state::Places;
use broker::state_handle::StateHandle;
use broker::upkeep::Upkeep;
use engine::Engine;
use protocol::PartitionId;
use replication::LogStore;
use state::Store;

use super::shell::{Around, Front};
use super::{Inbound, News, Node, index_of, open_engine};
use crate::disk::{SimulatedFiles, Tearing, passes};
use crate::model;
use crate::node::Surroundings;
use crate::options::{Milliseconds, Swarm};
use crate::schedule::Event;
use crate::state_file::StateFile;
use crate::syncs;

/// So small that a run has many of them.
const SEGMENT_BYTES: u64 = 16 << 10;

impl Node {
    /// Applies what is committed and looks for work.
    pub fn process(&mut self, surroundings: &mut Surroundings<'_>) {
        while let Some(running) = &mut self.running {
            running.is_processing = false;
            let Some(news) = running.news.pop_front() else { break };
            let done = match news {
                News::Install(partition, index) => self.install(partition, index, surroundings),
                News::Committed(partition, entries, up_to) => {
                    self.with_loop(partition, surroundings, |of, around| of.enqueue(around, entries, up_to));
                    Ok(())
                }
                News::Lead(partition, leadership) => {
                    self.with_loop(partition, surroundings, |of, around| of.lead(around, leadership));
                    Ok(())
                }
                News::StepDown(partition) => {
                    self.with_loop(partition, surroundings, |of, around| of.step_down(around));
                    Ok(())
                }
            };
            if let Err(reason) = done {
                // A received state can be put into place by the next start as well.
                return if passes(&reason) { self.start_again(surroundings) } else { self.fail(&reason, surroundings) };
            }
        }
        for partition in (1..=surroundings.swarm.partitions).map(PartitionId) {
            self.with_loop(partition, surroundings, |of, around| {
                let now = around.elapsed();
                if of.is_touched_or_due(now) {
                    of.run(around, now);
                }
            });
        }
        self.look_after(surroundings);
    }

    /// Calls the loop of a partition with what is around it.
    fn with_loop(
        &mut self,
        partition: PartitionId,
        surroundings: &mut Surroundings<'_>,
        call: impl FnOnce(&mut PartitionLoop<Permit>, &mut Around<'_, '_>),
    ) {
        let index = index_of(partition);
        self.with_loops(partition, surroundings, |loops, around| call(&mut loops[index], around));
    }

    fn with_loops(
        &mut self,
        partition: PartitionId,
        surroundings: &mut Surroundings<'_>,
        call: impl FnOnce(&mut Vec<PartitionLoop<Permit>>, &mut Around<'_, '_>),
    ) {
        let (life, is_slow) = (self.life(), self.is_slow);
        let index = index_of(partition);
        let started = self.running.as_ref().map_or(0, |running| running.fronts[index].started);
        let moment = self.moment(surroundings.schedule, started);
        let Some(running) = &mut self.running else { return };
        let mut around = Around {
            partition,
            life,
            moment,
            is_slow,
            fronts: &mut running.fronts,
            inbox: &mut running.inbox,
            reception: &running.reception,
            answers: &running.answers,
            stream: running.stream.as_ref(),
            waiting: &mut running.waiting,
            surroundings,
        };
        call(&mut running.partitions, &mut around);
        let stopped = running.fronts[index].stopped.take();
        if let Some(reason) = stopped {
            self.fail(&reason, surroundings);
        }
    }

    /// Lets the node work on what the loops asked for, and wakes them when the first of them has something to do.
    fn look_after(&mut self, surroundings: &mut Surroundings<'_>) {
        if self.running.is_some() && self.disk.is_crashed() {
            return self.fail("the power failed while records were written", surroundings);
        }
        let (life, now) = (self.life(), surroundings.schedule.now());
        self.receive(surroundings);
        let Some(running) = &mut self.running else { return };
        let partitions = running.partitions.iter().zip(&running.fronts);
        let deadline =
            |(of, front): (&PartitionLoop<Permit>, &Front)| Some(front.started + milliseconds(of.deadline()?));
        if let Some(at) = partitions.filter_map(deadline).min().map(|at| at.max(now + 1))
            && (running.wakes_at <= now || at < running.wakes_at)
        {
            running.wakes_at = at;
            surroundings.schedule.after(at - now, Event::Process(life));
        }
        if !running.inbox.is_empty() {
            self.work(surroundings);
        }
    }

    /// Replaces the state of a partition by one that another replica sent.
    fn install(
        &mut self,
        partition: PartitionId,
        index: u64,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), String> {
        let (directory, at) = (self.state_directory(partition), index_of(partition));
        let Some(running) = &mut self.running else { return Ok(()) };
        let handle = running.states[at].clone();
        handle.take_away();
        // Everything that holds the old file must be gone.
        let front = &mut running.fronts[at];
        (front.upkeep, front.written) = (None, None);
        if let Some(searched) = &mut running.searched {
            searched.let_go(partition, Duration::from_millis(surroundings.schedule.now()));
        }
        let mut empty = None;
        self.with_loops(partition, surroundings, |loops, around| empty = Some(loops.remove(at).empty(around)));
        let (Some(empty), Some(running)) = (empty, &mut self.running) else { return Ok(()) };
        assert!(Store::wait_until_closed(&directory, Duration::ZERO), "nobody holds the old state of {partition}");
        let records = empty.records().clone();
        let places = Places { received: &running.received, state: &directory };
        let (id, swarm, oracles) = (self.id, surroundings.swarm, &mut *surroundings.oracles);
        let installed = places.install(empty, index, || {
            let engine = open_engine(partition, &directory, swarm)?;
            // The state is in its place, also when its records cannot go on before the next start.
            oracles.installed(id, partition, index, &engine);
            Ok(engine)
        });
        let of: PartitionLoop<Permit> = installed.map_err(|error| error.to_string())?;
        let engine = of.partition().engine();
        handle.put(engine.store().handle());
        self.unsynced_states.remove(&partition);
        let (last_timestamp, applied, position) = (engine.last_timestamp(), engine.applied(), engine.last_position());
        running.replication.state_installed(partition, last_timestamp);
        running.reception.replaced(partition, of.partition().engine());
        running.partitions.insert(at, of);
        let front = &mut running.fronts[at];
        (front.upkeep, front.started) = (Some(Upkeep::new(records, position)), surroundings.schedule.now());
        self.take(Inbound::Checkpointed(partition, applied), surroundings);
        Ok(())
    }

    /// The loop of a partition on its recovered engine.
    pub(super) fn partition_loop(
        &self,
        partition: PartitionId,
        engine: Engine,
        swarm: &Swarm,
    ) -> Result<(PartitionLoop<Permit>, Upkeep), String> {
        let options = self.record_options(partition);
        let place = engine.record_place();
        let (records, writer) = RecordLog::open(options, place).map_err(|error| error.to_string())?;
        let interval = Duration::from_millis(swarm.checkpoint_interval);
        let policy = CheckpointPolicy { interval, overlay_bytes: u64::MAX };
        let node = self.number();
        let options = PartitionOptions { node, life: self.lives + 1, ..PartitionOptions::default() };
        let partition = Partition::new(partition, engine, options)
            .with_cluster_id(&format!("of-node-{node}"))
            .with_global_listeners(model::configured_listeners(swarm.configured_listeners));
        Ok((PartitionLoop::new(partition, writer, policy), Upkeep::new(records, place.position)))
    }

    pub(super) fn record_options(&self, partition: PartitionId) -> RecordLogOptions {
        RecordLogOptions {
            partition,
            directory: self.partition_directory(partition).join("records"),
            files: Arc::new(SimulatedFiles(self.disk.clone())),
            broker_version: protocol::BROKER_VERSION.into(),
            segment_bytes: SEGMENT_BYTES,
            is_read: true,
            readers: Vec::new(),
            write_back: None,
        }
    }

    pub(super) fn begin_checkpoint(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        self.with_loop(partition, surroundings, |of, around| of.begin_checkpoint_now(around));
    }

    /// Writes a frozen state, unless the power fails on the way.
    pub fn write_checkpoint(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let (life, directory) = (self.life(), self.state_directory(partition));
        let now = surroundings.schedule.now();
        let Some(running) = &mut self.running else { return };
        let front = &mut running.fronts[index_of(partition)];
        let Some(upkeep) = front.upkeep.as_mut().filter(|upkeep| upkeep.retry_at().is_some()) else { return };
        let swarm = surroundings.swarm;
        let crashes = surroundings.oracles.has_faults()
            && surroundings.chance.per_mille(swarm.crash / 10)
            && surroundings.chance.per_mille(swarm.crash_in_operation);
        let (before, syncs) = (StateFile::remember(&directory), syncs::count());
        let committed_bytes = match upkeep.write(Duration::from_millis(now - front.started)) {
            None => return,
            Some(Ok(written)) => {
                let committed_bytes = written.statistics().committed_file_bytes;
                front.written = Some(written);
                committed_bytes
            }
            Some(Err(error)) if self.disk.is_crashed() || error.needs_restart() => {
                return self.fail(&error.to_string(), surroundings);
            }
            Some(Err(error)) => {
                tracing::debug!(%partition, %error, "a checkpoint waits");
                let retry_at = upkeep.retry_at().map_or(0, milliseconds) + front.started;
                let again = Event::WriteCheckpoint(life, partition);
                return surroundings.schedule.after(retry_at.saturating_sub(now).max(1), again);
            }
        };
        if !crashes {
            if syncs::count() == syncs {
                self.unsynced_states.entry(partition).or_insert(before);
            }
            surroundings.schedule.after(1, Event::CheckpointWritten(life, partition));
            return;
        }
        surroundings.oracles.trace("crashes in a checkpoint", &[self.id.0, partition.0.into()], "");
        self.stop(surroundings);
        let tearing = *surroundings.chance.choose(&[Tearing::Keeps, Tearing::Loses, Tearing::Mixes]);
        before.settle(&directory, committed_bytes, tearing, surroundings.chance);
        surroundings.schedule.after(surroundings.chance.within(50..3_000), Event::Start(self.id));
    }

    /// Ends a checkpoint that is on the disk.
    pub fn checkpoint_written(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let Some(running) = &mut self.running else { return };
        let front = &mut running.fronts[index_of(partition)];
        let Some(written) = front.written.take() else { return };
        self.with_loop(partition, surroundings, |of, around| of.checkpoint_written(around, written));
        self.delete_records(partition);
        self.look_after(surroundings);
        if let Some(running) = &self.running
            && surroundings.chance.one_in(3)
        {
            // In production the maintenance thread does this beside everything else; it may fail and is tried again.
            drop(running.replication.replicas().log().reclaim_space());
        }
    }

    /// All jobs, messages and instances that the state still holds, as text.
    pub fn rows(&self, partition: PartitionId) -> Vec<String> {
        let mut dump = Vec::new();
        if let Some(engine) = self.engine(partition) {
            engine.dump(&mut dump).expect("the state is readable");
        }
        String::from_utf8_lossy(&dump).lines().skip(1).map(str::to_owned).collect()
    }
}

/// The record streams of all partitions.
pub(super) fn logs(fronts: &[Front]) -> Vec<Arc<RecordLog>> {
    fronts.iter().filter_map(|front| Some(front.upkeep.as_ref()?.records().clone())).collect()
}

/// The states of all partitions.
pub(super) fn states(partitions: &[PartitionLoop<Permit>]) -> Vec<StateHandle> {
    partitions.iter().map(|of| StateHandle::new(of.partition().engine().store().handle())).collect()
}

/// Rounded up: what is due then is due.
fn milliseconds(duration: Duration) -> Milliseconds {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
