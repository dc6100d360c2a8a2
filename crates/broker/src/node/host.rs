//! What the threads of a node are given of each partition.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use exporters::{Exporter, RecordFilter};
use peers::DirectoryId;
use protocol::{PartitionId, SettingsValue};
use replication::{NodeId, RaftEngineLog, ReplicationError};

use super::errors::StartError;
use super::opening::{self, Opened};
use super::threads::{Stage, Threads};
use crate::applying::Guard;
use crate::cluster::LeadershipOf;
use crate::data_directory::DataDirectory;
use crate::entrance::Entrance;
use crate::exporting::{
    Configured, ExporterLoop, ExporterProgress, ExporterThread, Keeper, PauseSwitch, PositionsFile, Progresses, Sharing,
};
use crate::flow_control::{FlowControlOptions, Limiter};
use crate::held::Held;
use crate::inbox::{Addition, Inbound, Work};
use crate::maintenance::{Maintained, Maintenance};
use crate::options::NodeOptions;
use crate::partition::{Partition, PartitionOptions};
use crate::partition_loop::CheckpointPolicy;
use crate::processing_thread::Slot;
use crate::record_log::RecordLogs;
use crate::requests::Requests;
use crate::restored;
use crate::shared::Shared;
use crate::state_handle::{StateHandle, StateHandles};
use crate::state_opener::StateOpener;
use crate::upkeep::Upkeep;
use crate::write_throttle::WriteThrottle;

/// Hands partitions over to the threads of a node, at its start and while it runs.
pub(super) struct Host {
    pub options: NodeOptions,
    /// The number of this node's replicas in their Raft groups.
    pub member: NodeId,
    pub shared: Arc<Shared>,
    pub log: Arc<RaftEngineLog>,
    /// To the processing threads.
    pub work: Vec<Sender<Work>>,
    pub maintenance: Sender<Maintenance>,
    /// To the thread that brings records to the disk: that a piece is there, and what there is.
    pub record_pieces: Sender<()>,
    pub records: RecordLogs,
    pub exporters: Vec<HostedExporter>,
    pub progresses: Progresses,
    /// Whether exporting is paused.
    pub pause: Arc<PauseSwitch>,
    /// The exporters that the nodes of the cluster have in common.
    pub sharing: Arc<Sharing>,
    /// Closed to stop the exporters.
    pub stop_exporters: Receiver<()>,
    /// Every thread of an exporter has one. Dropped before the node waits for them.
    pub exporters_alive: Option<Sender<()>>,
    /// Opens states.
    pub opener: StateOpener,
    /// The states of all partitions, for those who read their checkpoints.
    pub states: StateHandles,
    pub partition_options: PartitionOptions,
    pub started: Instant,
}

/// What operators must know of an exporter without positions.
const POSITIONS_LOST: &str = "Its positions were damaged when the node started, so it got again all records that were there, and \
                              numbers of its own (`sequence`) began from 1 again.";

/// An exporter of the configuration, for the partitions that come.
pub(super) struct HostedExporter {
    name: String,
    exporter: Box<dyn Exporter>,
    filter: RecordFilter,
    keeper: Arc<Keeper>,
}

/// Comes when the log takes part in a partition, or says why not.
pub(super) type TakesPart = Receiver<Result<(), ReplicationError>>;

/// Reads what the exporters have acknowledged.
pub(super) fn hosted_exporters(
    directory: &DataDirectory,
    options: &NodeOptions,
    configured: Vec<Configured>,
    pause: &Arc<PauseSwitch>,
) -> Result<Vec<HostedExporter>, StartError> {
    let hosted = |(name, (exporter, filter)): (&String, Configured)| {
        let (file, kept) = PositionsFile::open(directory.paths.exporter_positions(name))?;
        let keeper = Keeper::new(file, kept).with_pause(pause.clone());
        Ok(HostedExporter { name: name.clone(), exporter, filter, keeper: Arc::new(keeper) })
    };
    options.exporters.iter().map(|configuration| &configuration.name).zip(configured).map(hosted).collect()
}

/// What is the same for all partitions of a node.
pub(super) fn partition_options(
    directory: &DataDirectory,
    options: &NodeOptions,
) -> Result<PartitionOptions, StartError> {
    let settings = SettingsValue {
        root_variable_bytes_max: options.root_variable_bytes_limit.unwrap_or_default(),
        business_ids_are_unique: options.unique_business_ids,
    };
    let resend_interval = options.outbox_resend_interval.as_millis();
    Ok(PartitionOptions {
        node: options.node_id,
        life: directory.life(),
        settings: Some(settings).filter(|settings| *settings != SettingsValue::default()),
        restored: restored::read(directory.paths.directory())?,
        resend_interval_milliseconds: i64::try_from(resend_interval).unwrap_or(i64::MAX),
        ..PartitionOptions::default()
    })
}

impl Host {
    /// The nodes that make a group which the log does not know yet.
    pub fn voters(&self) -> Vec<NodeId> {
        let configuration = self.shared.port.as_ref().and_then(|port| port.configuration());
        let own = NonZeroU64::new(self.member.0).map(DirectoryId);
        match (configuration, own) {
            (Some(configuration), Some(own)) => configuration.first_voters(own),
            _ => vec![self.member],
        }
    }

    /// Opens a partition whose state is open.
    pub fn open(&self, directory: &DataDirectory, state: (PartitionId, engine::Engine)) -> Result<Opened, StartError> {
        opening::open_partition(
            &self.options,
            directory,
            &self.log,
            &self.voters(),
            &self.record_pieces,
            &self.opener,
            state,
        )
    }

    /// Makes the way into a partition, which stays closed until the partition is led.
    pub fn announce(&self, opened: &Opened) {
        let (shared, flow_control) = (&self.shared, &self.options.flow_control);
        let state_limit_bytes = flow_control.state_limit_of(self.options.partition_count);
        let own = FlowControlOptions { state_limit_bytes, ..flow_control.clone() };
        let limiter = Arc::new(Limiter::new(opened.partition, own, shared.disk.clone()));
        let held = Held::new(flow_control.held_commands, flow_control.inflight_limit_bytes);
        let requests = Requests::new(opened.partition, self.options.waiting_requests_limit);
        let entrance = Entrance::new(opened.partition, limiter, requests, held).at(shared.node, shared.port.clone());
        entrance.next_request.store(Shared::first_number(shared.life), Ordering::Release);
        entrance.applied(&opened.engine);
        remark_refused(&entrance, &opened.guard, &opened.engine);
        shared.notes.add(opened.partition, opened.guard.note.memory());
        shared.streams.add_partition(opened.partition);
        shared.entrances.add(Arc::new(entrance));
        shared.adopt_cluster(&opened.engine);
        if opened.partition == PartitionId::DEPLOYMENT
            && let Some(pinned) = opened.engine.pinned_clock()
        {
            shared.clock.adopt(Some(pinned));
        }
    }

    /// The number of the thread that applies the commands of a partition.
    pub fn thread_of(&self, partition: PartitionId) -> usize {
        usize::from(partition.0) % self.work.len()
    }

    /// Gives a partition to all threads, to that of the log last, which hands it on to the one that owns it.
    pub fn hand_over(&self, opened: Opened, threads: &mut Threads) -> Result<TakesPart, StartError> {
        let partition = opened.partition;
        self.records.write().push(opened.records.clone());
        let state = StateHandle::new(opened.engine.store().handle());
        self.states.add(partition, state.clone());
        let exporters = self.start_exporters(&opened, &state, threads)?;
        let processing = self.work[self.thread_of(partition)].clone();
        let maintained = Maintained {
            partition,
            upkeep: Upkeep::new(opened.records.clone(), opened.engine.last_position()),
            throttle: WriteThrottle::new(self.options.write_throttle, partition),
            processing: processing.clone(),
            exporters: exporters.clone(),
        };
        drop(self.maintenance.send(Maintenance::Add(Box::new(maintained))));
        tracing::debug!(
            %partition, applied = opened.engine.applied(), position = opened.engine.last_position(),
            "the state of the partition is open; what the log has behind it is applied again"
        );
        let (done, takes_part) = crossbeam_channel::bounded(1);
        let addition = Addition {
            partition,
            voters: self.voters(),
            applied: opened.engine.applied(),
            last_timestamp: opened.engine.last_timestamp(),
            processing,
            slot: Box::new(self.slot(opened, &exporters)),
            done,
        };
        drop(self.shared.inbox.send(Inbound::Add(addition)));
        Ok(takes_part)
    }

    fn slot(&self, opened: Opened, exporters: &[Arc<ExporterProgress>]) -> Slot {
        let policy = CheckpointPolicy {
            interval: self.options.checkpoint_interval,
            overlay_bytes: self.options.checkpoint_bytes_of_each(),
        };
        let cluster_id = self.shared.cluster_id.lock().clone();
        let partition = Partition::new(opened.partition, opened.engine, self.partition_options)
            .with_cluster_id(&cluster_id)
            .with_global_listeners(self.options.global_listeners.clone())
            .with_settings_gate(self.shared.decides_settings.clone());
        let (shared, entrance) = (self.shared.clone(), self.shared.entrances.of(opened.partition));
        let maintenance = self.maintenance.clone();
        let mut slot = Slot::new(shared, entrance, partition, opened.guard, opened.writer, maintenance, policy);
        slot.was_exported(exporters.iter().map(|exporter| exporter.kept_at_start()).max().unwrap_or_default());
        if let Some(reason) = opened.left_out {
            slot.leave_out(reason);
        }
        slot
    }

    fn start_exporters(
        &self,
        opened: &Opened,
        state: &StateHandle,
        threads: &mut Threads,
    ) -> Result<Vec<Arc<ExporterProgress>>, StartError> {
        let (partition, now) = (opened.partition, self.shared.clock.now_milliseconds());
        let mut progresses = Vec::new();
        for (hosted, written) in self.exporters.iter().zip(&opened.written) {
            let HostedExporter { name, exporter, filter, keeper } = hosted;
            let (call, called) = crossbeam_channel::bounded(1);
            let role_changed = call.clone();
            // A full channel means that the thread already knows.
            let wake = move || {
                let _ = call.try_send(());
            };
            let kept = keeper.kept(partition);
            let progress = ExporterProgress::new(name, kept, opened.records.clone(), now, wake)
                .with_pause(self.pause.clone(), exporter.stops_when_paused());
            let is_shared = self.shared.port.is_some() && !exporter.is_local();
            let progress = match is_shared {
                true => {
                    let entrance = self.shared.entrances.of(partition);
                    entrance.watch_role(role_changed);
                    progress
                        .with_leadership(Arc::new(LeadershipOf { entrance, sharing: Arc::downgrade(&self.sharing) }))
                }
                false => progress,
            };
            if keeper.is_lost() {
                progress.controller().set_remark(Some(POSITIONS_LOST.to_owned()));
            }
            let progress = Arc::new(progress);
            progresses.push(progress.clone());
            if is_shared {
                self.sharing.add(progress.clone(), keeper.clone());
            }
            let exporter = ExporterLoop::new(exporter.partition(partition), filter.clone(), progress, keeper.clone())
                .with_state(state.clone());
            let thread = ExporterThread {
                shared: self.shared.clone(),
                exporter,
                written: written.clone(),
                called,
                stop: self.stop_exporters.clone(),
                started: self.started,
            };
            let alive = self.exporters_alive.clone();
            let run = move || {
                let _alive = alive;
                thread.run();
            };
            threads.start(&self.shared, Stage::Exporting, format!("exporter {name} {partition}"), run)?;
        }
        self.progresses.write().extend(progresses.iter().cloned());
        Ok(progresses)
    }
}

/// Says once what the partition will not process.
fn remark_refused(entrance: &Entrance, guard: &Guard, engine: &engine::Engine) {
    let ahead = guard.refused.all().iter().filter(|refused| refused.index > engine.applied());
    let names: Vec<String> = ahead.map(ToString::to_string).collect();
    if !names.is_empty() {
        let remark = format!("Refused by an operator and not processed: {}.", names.join("; "));
        tracing::warn!(partition = %entrance.id, "{remark}");
        entrance.set_remark(&remark);
    }
}
