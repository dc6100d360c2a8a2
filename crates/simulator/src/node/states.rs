//! States on their way between nodes, and what the logs keep for nodes that need none.

use std::path::PathBuf;

use broker::replication_loop::group_of;
use broker::retention::RetentionLimits;
use broker::snapshots::CheckpointSource;
use protocol::PartitionId;
use replication::{Frame, NodeId, Round, SnapshotRequest, SnapshotSource, SnapshotStream};

use super::{FRAME_LIMIT_BYTES, Node, Running, STATE_CHUNK_BYTES, Surroundings, index_of, partition_of, step};
use crate::network::Parcel;
use crate::options::Swarm;
use crate::schedule::Event;

impl Node {
    /// Lets the followers forget what no member lacks.
    pub(super) fn say_what_everybody_has(&self, surroundings: &mut Surroundings<'_>) {
        let Some(running) = self.running.as_ref().filter(|_| surroundings.swarm.retention_bytes > 0) else { return };
        for partition in (1..=surroundings.swarm.partitions).map(PartitionId) {
            let Some(index) = running.replication.held_by_everybody(partition) else { continue };
            let status = running.replication.replicas().status(group_of(partition)).expect("it runs");
            for to in status.progress.iter().map(|member| member.node).filter(|to| *to != self.id) {
                for latency in surroundings.network.deliveries(self.id, to) {
                    let parcel = Parcel::EverybodyHas(partition, index);
                    surroundings.schedule.after(latency, Event::Arrival { from: self.id, to, parcel });
                }
            }
        }
    }

    pub(super) fn send_states(&mut self, round: &Round, surroundings: &mut Surroundings<'_>) {
        let life = self.life();
        let Some(running) = &mut self.running else { return };
        for request in &round.snapshots_to_send {
            let mut frames = Vec::new();
            if let Some(mut stream) = running.open_state(request, self.directory.join("partitions")) {
                while let Some(frame) = stream.next_frame().expect("the scratch directory is readable") {
                    let mut bytes = Vec::new();
                    frame.encode(&mut bytes);
                    frames.push(bytes);
                }
            }
            let arrive = surroundings.network.frames_that_arrive(self.id, request.to, frames.len());
            let is_whole = arrive == frames.len() && !frames.is_empty();
            frames.truncate(arrive);
            let latency = surroundings.network.latency();
            let parcel = Parcel::State { frames, is_whole };
            surroundings.schedule.after(latency, Event::Arrival { from: self.id, to: request.to, parcel });
            let sent = Event::StateSent { life, group: request.group, to: request.to, delivered: is_whole };
            surroundings.schedule.after(latency + 1, sent);
        }
    }

    pub(super) fn wanted_checkpoints(&mut self, round: &Round, surroundings: &mut Surroundings<'_>) {
        for group in &round.checkpoints_wanted {
            self.begin_checkpoint(partition_of(*group), surroundings);
        }
    }
}

impl Running {
    pub(super) fn take_state(&mut self, from: NodeId, frames: &[Vec<u8>], is_whole: bool) -> Result<(), String> {
        for bytes in frames {
            let complete = match Frame::decode(bytes, FRAME_LIMIT_BYTES).map_err(|error| error.to_string())? {
                Frame::SnapshotStart(message) => {
                    self.receiver.start(message, &mut self.received).map_err(|error| error.to_string())?;
                    None
                }
                Frame::SnapshotChunk(chunk) => self.receiver.chunk(&chunk).map_err(|error| error.to_string())?,
                Frame::Message(_) => panic!("a stream has no plain messages"),
            };
            if let Some(message) = complete {
                step(&mut self.replication, message)?;
            }
        }
        if !is_whole {
            self.receiver.disconnected(from);
        }
        Ok(())
    }

    /// The state that a follower needs, if there is one.
    fn open_state(&mut self, request: &SnapshotRequest, directory: PathBuf) -> Option<SnapshotStream> {
        let store = self.partitions[index_of(partition_of(request.group))].partition().engine().store();
        let (index, state) = CheckpointSource { store, directory }.open(request.group).ok()?;
        let message = self.replication.snapshot_message(request, index).ok()??;
        SnapshotStream::new(message, state, STATE_CHUNK_BYTES)
    }
}

/// What the logs of the nodes keep.
pub(super) fn retention(swarm: &Swarm) -> RetentionLimits {
    let (group_bytes_max, total_bytes_max) = (swarm.retention_bytes, swarm.retention_bytes.saturating_mul(4));
    RetentionLimits { group_bytes_max, sending_bytes_max: total_bytes_max, total_bytes_max }
}
