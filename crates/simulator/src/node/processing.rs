//! What a node does with what is committed: applies it, carries out the effects, and makes checkpoints.

use broker::replication_loop::CommittedEntry;
use protocol::{Command, JobAmount, PartitionId};
use replication::{LogStore, Position};

use super::{CheckpointState, Inbound, News, Node, index_of, open_engine};
use crate::disk::Tearing;
use crate::network::Parcel;
use crate::node::Surroundings;
use crate::oracle::Applied;
use crate::schedule::Event;
use crate::state_file::StateFile;
use crate::worker;

impl Node {
    /// Applies what is committed and looks for work.
    pub fn process(&mut self, surroundings: &mut Surroundings<'_>) {
        while let Some(running) = &mut self.running {
            running.is_processing = false;
            let Some(news) = running.news.pop_front() else { break };
            let done = match news {
                News::Install(partition, position) => self.install(partition, position, surroundings),
                News::Committed(partition, entries, up_to) => self.apply(partition, entries, up_to, surroundings),
                News::Lead(partition) => {
                    self.lead(partition, surroundings);
                    Ok(())
                }
                News::StepDown(partition) => {
                    running.slots[index_of(partition)].partition.step_down();
                    Ok(())
                }
                News::Lost(partition) => {
                    let lost = running.waiting.extract_if(.., |_, of| *of == partition);
                    for (number, _) in lost {
                        surroundings.schedule.after(1, Event::Answer(number, None));
                    }
                    Ok(())
                }
            };
            if let Err(reason) = done {
                return self.fail(&reason, surroundings);
            }
        }
        for partition in (1..=surroundings.swarm.partitions).map(PartitionId) {
            self.poll(partition, surroundings);
            self.consider_checkpoint(partition, surroundings);
        }
    }

    fn apply(
        &mut self,
        partition: PartitionId,
        entries: Vec<CommittedEntry<()>>,
        up_to: u64,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), String> {
        for entry in entries {
            let Some(running) = &mut self.running else { return Ok(()) };
            let slot = &mut running.slots[index_of(partition)];
            let batch = protocol::decode_batch(&entry.data).map_err(|error| error.to_string())?;
            slot.effects.clear();
            slot.partition.apply(entry.index, &batch, &mut slot.effects).map_err(|fault| fault.to_string())?;
            surroundings.oracles.applied(&Applied {
                node: self.id,
                partition,
                index: entry.index,
                data: &entry.data,
                records: slot.effects.records(),
                engine: slot.partition.engine(),
            });
            self.carry_out(partition, surroundings);
        }
        if let Some(running) = &mut self.running {
            running.slots[index_of(partition)].partition.advance(up_to);
        }
        Ok(())
    }

    fn lead(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let moment = self.moment(surroundings.schedule);
        let (id, life) = (self.id, self.lives);
        let Some(running) = &mut self.running else { return };
        let slot = &mut running.slots[index_of(partition)];
        slot.effects.clear();
        slot.partition.lead(moment, &mut slot.effects);
        let credit = surroundings.swarm.stream_credit;
        if credit > 0 {
            slot.effects.submit.push(worker::register(id, life, running.taken[index_of(partition)], credit));
        }
        surroundings.oracles.trace("leads", &[id.0, partition.0.into()], "");
        self.carry_out(partition, surroundings);
    }

    fn poll(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let moment = self.moment(surroundings.schedule);
        let Some(running) = &mut self.running else { return };
        let slot = &mut running.slots[index_of(partition)];
        slot.effects.clear();
        slot.partition.poll(moment, &mut slot.effects);
        self.carry_out(partition, surroundings);
    }

    /// Passes the effects on. There are none but records while this node does not lead.
    fn carry_out(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let (id, lives) = (self.id, self.lives);
        let Some(running) = &mut self.running else { return };
        let slot = &mut running.slots[index_of(partition)];
        let applied = slot.partition.engine().applied();
        let mut commands: Vec<(PartitionId, Command)> = Vec::new();
        for reply in slot.effects.replies() {
            if u64::from(reply.request.node) == id.0 && running.waiting.remove(&reply.request.number).is_some() {
                surroundings.oracles.acknowledged(partition, applied, &reply);
                let latency = surroundings.network.latency();
                surroundings.schedule.after(latency, Event::Answer(reply.request.number, Some(Box::new(reply))));
            }
        }
        for push in slot.effects.pushes() {
            // The worker sits on the node of its stream; a stream of an earlier life has nobody to push to.
            let is_here = push.stream == worker::stream(id, lives);
            surroundings.oracles.pushed(push.key, is_here);
            let taken = &mut running.taken[index_of(partition)];
            let answers = if is_here {
                *taken = taken.plus(JobAmount::of(&push.job));
                worker::answer(&push, *taken, surroundings.swarm.stream_credit, surroundings.chance)
            } else {
                vec![worker::yielded(&push)]
            };
            commands.extend(answers.into_iter().map(|command| (partition, command)));
        }
        commands.extend(slot.effects.submit.drain(..).map(|command| (partition, command)));
        let sends: Vec<_> = slot.effects.sends().collect();
        slot.effects.clear();
        for (partition, command) in commands {
            self.take(Inbound::Command(partition, protocol::encode_to_vec(&command)), surroundings);
        }
        for send in sends {
            self.send_command(send.partition, &send.command, surroundings);
        }
    }

    /// To the leader of the other partition, if this node knows one.
    fn send_command(&mut self, partition: PartitionId, command: &Command, surroundings: &mut Surroundings<'_>) {
        let bytes = protocol::encode_to_vec(command);
        if self.is_leading(partition) {
            return self.take(Inbound::Command(partition, bytes), surroundings);
        }
        let Some(to) = self.status(partition).and_then(|status| status.leader) else { return };
        let now = surroundings.schedule.now();
        if let Some(latency) = surroundings.network.delivery_in_order(now, self.id, to) {
            let parcel = Parcel::Command { partition, bytes };
            surroundings.schedule.after(latency, Event::Arrival { from: self.id, to, parcel });
        }
    }

    /// Replaces the state of a partition by one that another replica sent.
    fn install(
        &mut self,
        partition: PartitionId,
        position: Position,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), String> {
        let directory = self.state_directory(partition);
        let Some(running) = &mut self.running else { return Ok(()) };
        let slot = running.slots.remove(index_of(partition));
        // Everything that holds the old file must be gone.
        drop(slot);
        let installed = running.received.install(partition, position.index, &directory);
        installed.map_err(|error| format!("the received state {} cannot be installed: {error}", position.index))?;
        let engine = open_engine(partition, &directory, surroundings.swarm)?;
        surroundings.oracles.installed(self.id, partition, position.index, &engine);
        running.replication.state_installed(partition, engine.last_timestamp());
        let checkpointed = engine.applied();
        running.slots.insert(index_of(partition), super::Slot::new(partition, engine, surroundings.schedule.now()));
        self.take(Inbound::Checkpointed(partition, checkpointed), surroundings);
        Ok(())
    }

    fn consider_checkpoint(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let now = surroundings.schedule.now();
        let Some(running) = &self.running else { return };
        let slot = &running.slots[index_of(partition)];
        if slot.partition.engine().applied() != slot.checkpointed
            && now >= slot.last_checkpoint + surroundings.swarm.checkpoint_interval
        {
            self.begin_checkpoint(partition, surroundings);
        }
    }

    pub(super) fn begin_checkpoint(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let life = self.life();
        let slowness = if self.is_slow { 50 } else { 1 };
        let Some(running) = &mut self.running else { return };
        let slot = &mut running.slots[index_of(partition)];
        if !matches!(slot.checkpoint, CheckpointState::Idle) {
            return;
        }
        match slot.partition.engine_mut().freeze() {
            Ok(checkpoint) => {
                slot.checkpoint = CheckpointState::Frozen(checkpoint);
                slot.last_checkpoint = surroundings.schedule.now();
                let pause = surroundings.chance.within(0..surroundings.swarm.sync_milliseconds * 10 + 1) * slowness;
                surroundings.schedule.after(pause, Event::WriteCheckpoint(life, partition));
            }
            Err(error) => self.fail(&error.to_string(), surroundings),
        }
    }

    /// Writes a frozen state, unless the power fails on the way.
    pub fn write_checkpoint(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let (life, directory) = (self.life(), self.state_directory(partition));
        let Some(running) = &mut self.running else { return };
        let slot = &mut running.slots[index_of(partition)];
        let CheckpointState::Frozen(checkpoint) = &slot.checkpoint else { return };
        let swarm = surroundings.swarm;
        let crashes = surroundings.oracles.has_faults()
            && surroundings.chance.per_mille(swarm.crash / 10)
            && surroundings.chance.per_mille(swarm.crash_in_operation);
        let before = crashes.then(|| StateFile::remember(&directory));
        match checkpoint.write() {
            Ok(written) => slot.checkpoint = CheckpointState::Written(written),
            Err(error) => return self.fail(&error.to_string(), surroundings),
        }
        let Some(before) = before else {
            surroundings.schedule.after(1, Event::CheckpointWritten(life, partition));
            return;
        };
        surroundings.oracles.trace("crashes in a checkpoint", &[self.id.0, partition.0.into()], "");
        self.stop(surroundings);
        let tearing = *surroundings.chance.choose(&[Tearing::Keeps, Tearing::Loses, Tearing::Mixes]);
        before.settle(&directory, tearing, surroundings.chance);
        surroundings.schedule.after(surroundings.chance.within(50..3_000), Event::Start(self.id));
    }

    /// Ends a checkpoint that is on the disk.
    pub fn checkpoint_written(&mut self, partition: PartitionId, surroundings: &mut Surroundings<'_>) {
        let Some(running) = &mut self.running else { return };
        let slot = &mut running.slots[index_of(partition)];
        let CheckpointState::Written(written) = std::mem::replace(&mut slot.checkpoint, CheckpointState::Idle) else {
            return;
        };
        let applied = written.statistics().applied;
        if let Err(error) = slot.partition.engine_mut().release(written) {
            return self.fail(&error.to_string(), surroundings);
        }
        slot.checkpointed = applied;
        self.take(Inbound::Checkpointed(partition, applied), surroundings);
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
