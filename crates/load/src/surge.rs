//! A surge: normal load, the highest sustainable rate, a multiple of it, and normal load again, all in an open loop.
//! What the server refuses is counted and not sent again.

mod completions;
mod connection;
mod header_fields;
mod plan;
mod recovery;
mod sender;
mod text;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::connection::{connect, describe_server};
use crate::error::LoadError;
use crate::figures::{Failures, Quantiles};
use crate::model::{Payload, RunNames, Tag};
use crate::options::{Options, SurgeOptions};
use crate::process_statistics::{ProcessUse, Usage};
use crate::report::Context;
use crate::schedule::Timeline;
use crate::session::{SETTLE, creator, deploy};
use crate::starter::Creator;
use crate::worker::{WorkerSettings, Workers};

pub use completions::SurgeIrregularities;
pub use plan::Phase;
pub use recovery::Recovery;

pub(crate) use text::surge as write_text;

use completions::{Completed, Completions, FIRST_TEST_NUMBER};
use plan::Plan;
use sender::{Numbers, Sender, SenderSettings, Sent, SentSoFar};

/// Interval between two samples of the server's memory.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// From the start of the thread to the first creation.
const BEFORE_START: Duration = Duration::from_millis(200);
const SETTLE_ATTEMPT: Duration = Duration::from_secs(10);

/// How a server took a surge.
#[derive(Clone, Debug, Serialize)]
pub struct SurgeReport {
    /// The highest sustainable rate, as it was given, in instances per second.
    pub rate: f64,
    /// What the surge multiplies it with.
    pub factor: f64,
    /// The same without the creations that were held back.
    pub sent_factor: f64,
    /// The phases in their order.
    pub phases: Vec<PhaseReport>,
    /// Instances completed per second in the surge, as a share of those in the phase before it, at the highest
    /// sustainable rate.
    pub goodput_share: f64,
    /// When latencies were normal again.
    pub recovery: Recovery,
    /// Resident memory of the server, if its process was named.
    pub memory: Option<SurgeMemory>,
    /// Creations that were sent.
    pub sent: u64,
    /// Creations that the server accepted.
    pub accepted: u64,
    /// Instances that completed.
    pub completed: u64,
    /// Accepted instances that did not complete within the drain limit.
    pub unfinished: u64,
    /// Creations without an answer within it.
    pub unanswered: u64,
    /// Instances that completed though their creation had been refused with RESOURCE_EXHAUSTED.
    pub completed_though_refused: u64,
    /// Instances that completed though the answer to their creation was another error, or none.
    pub completed_though_failed: u64,
    /// How long the last instances took after the last phase, in seconds.
    pub drain_seconds: f64,
    /// Connections that ended before the run did.
    pub lost_connections: Failures,
    /// Failures and surprises of the workers.
    pub irregularities: SurgeIrregularities,
    /// Second by second from the start of the warm-up.
    pub series: Vec<SurgeSecond>,
}

/// One phase of the run. Creations belong to the phase in which they were intended, completions to that in which they
/// happened.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// Which.
    pub phase: Phase,
    /// Its length.
    pub seconds: f64,
    /// Intended creations per second.
    pub target_rate: f64,
    /// Creations sent.
    pub sent: u64,
    /// Of those, sent more than 10 ms after their intended time.
    pub late_sends: u64,
    /// Creations that were never sent, because as many as allowed were unanswered.
    pub held_back: u64,
    /// Creations accepted.
    pub accepted: u64,
    /// Creations refused or failed.
    pub refused: Failures,
    /// Instances completed.
    pub completed: u64,
    /// Instances completed per second.
    pub completed_per_second: f64,
    /// From the intended time of the creation to the acknowledgement of the last completion.
    pub process_latency: Quantiles,
    /// From the sending of the creation.
    pub process_latency_since_sent: Quantiles,
    /// From the sending of a creation to its acceptance, in steps of half a millisecond.
    pub acceptance_latency: Quantiles,
    /// From the sending of a creation to its refusal, in the same steps.
    pub refusal_latency: Quantiles,
    /// Processor time and memory of the server.
    pub server: Option<ProcessUse>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
}

/// Resident memory of the server in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SurgeMemory {
    /// Before the first creation.
    pub start: u64,
    /// When the surge began.
    pub surge_start: u64,
    /// The most that was seen during it.
    pub surge_maximum: u64,
    /// After the last phase.
    pub end: u64,
}

/// One second of the run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SurgeSecond {
    /// Its end, in seconds since the start of the warm-up.
    pub second: u64,
    /// The phase at its end.
    pub phase: Phase,
    /// Creations sent.
    pub sent: u64,
    /// Creations held back.
    pub held_back: u64,
    /// Creations accepted.
    pub accepted: u64,
    /// Creations refused or failed.
    pub refused: u64,
    /// Instances completed.
    pub completed: u64,
    /// Creations without an answer at its end.
    pub unanswered: usize,
    /// Instances accepted and not completed at its end.
    pub outstanding: u64,
    /// Median of the process latency of those completed, in milliseconds.
    pub p50: f64,
    /// 99th percentile of it.
    pub p99: f64,
    /// Resident memory of the server in bytes.
    pub resident_bytes: Option<u64>,
}

pub(crate) async fn run(options: &Options, surge: &SurgeOptions) -> Result<(Context, SurgeReport), LoadError> {
    let creators = connect(options, 1).await?;
    let clients = connect(options, options.connections.min(surge.work.worker.workers)).await?;
    let server = describe_server(creators.any(), options.request_timeout).await?;
    let names = RunNames::unique();
    let kinds = surge.work.profile.kinds(surge.work.timer);
    let process_ids = deploy(creators.any(), &kinds, &names, options.request_timeout).await?;
    let timeline = Timeline::start_now();
    let completions = Completions::new(timeline, kinds[0]);
    let settings = WorkerSettings {
        job_type: names.job_type.clone(),
        options: surge.work.worker.clone(),
        request_timeout: options.request_timeout,
        completions_in_flight: None,
        rest: None,
        ledger: None,
    };
    let creator = creator(options, creators, Arc::clone(&process_ids), surge.work.payload_bytes);
    let _workers = Workers::start(&clients, &settings, &completions);
    settle(options, surge, &creator, &completions, u64::try_from(server.partitions).unwrap_or(1).max(1) * 2).await?;

    let plan = Plan::new(timeline.now() + BEFORE_START, surge);
    let completed = completions.begin(&plan);
    let refused = Numbers::up_to(plan.total());
    let accepted = Numbers::up_to(plan.total());
    let sender = Sender::start(SenderSettings {
        addresses: options.addresses.clone(),
        connections: options.connections,
        in_flight: surge.in_flight,
        request_timeout: options.request_timeout,
        timeline,
        plan: plan.clone(),
        message: sender::creation(&process_ids[0], &Payload::of_bytes(surge.work.payload_bytes)),
        accepted: accepted.clone(),
        refused: refused.clone(),
    })?;
    let mut watch = Watch::new(options, timeline, &plan, &sender, &completions)?;
    watch.phases().await?;
    let drain_seconds = watch.drain(surge.drain_limit).await;
    let (usages, series, memory) = (watch.usages, watch.series, watch.memory);
    let report = Found { surge, plan: &plan, accepted, refused, completed, usages, series, memory, drain_seconds }
        .report(&sender, &completions);
    Ok((Context::new(server, &process_ids, Some(&names), Some(surge.work.to_string())), report))
}

/// Lets some instances run through every partition, so that during the measurement every partition has the process and
/// knows the workers.
async fn settle(
    options: &Options,
    surge: &SurgeOptions,
    creator: &Creator,
    completions: &Completions,
    instances: u64,
) -> Result<(), LoadError> {
    tokio::time::sleep(SETTLE).await;
    let timeline = Timeline::start_now();
    let (mut created, mut failures) = (0, Failures::default());
    loop {
        let before = completions.state().tests_completed;
        for number in 0..instances {
            let tag = Tag::of_send(FIRST_TEST_NUMBER, 0);
            match creator.create(0, number, tag, |_| ()).await {
                Ok(_) => created += 1,
                Err(status) => failures.record(&status),
            }
        }
        let attempt_end = timeline.now() + (SETTLE_ATTEMPT + surge.work.lasts()).min(options.settle_limit);
        while completions.state().tests_completed < before + instances && timeline.now() < attempt_end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let completed = completions.state().tests_completed;
        if completed >= before + instances || completed > 0 && timeline.now() >= options.settle_limit {
            return Ok(());
        }
        if timeline.now() >= options.settle_limit {
            let found = completions.state().irregularities.clone();
            return Err(LoadError::NothingCompletes {
                process: creator.process_ids[0].to_string(),
                created,
                seconds: options.settle_limit.as_secs(),
                failures: format!(
                    "{}; creations: {failures}; completions: {}.",
                    found.failed_streams, found.rejected_completions
                ),
            });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Samples the run while it is under way.
struct Watch<'a> {
    options: &'a Options,
    timeline: Timeline,
    plan: &'a Plan,
    sender: &'a Sender,
    completions: &'a Completions,
    /// At the start of each phase, and at the end of the last.
    usages: Vec<Usage>,
    memory: Option<SurgeMemory>,
    series: Vec<SurgeSecond>,
    so_far: SentSoFar,
}

impl<'a> Watch<'a> {
    fn new(
        options: &'a Options,
        timeline: Timeline,
        plan: &'a Plan,
        sender: &'a Sender,
        completions: &'a Completions,
    ) -> Result<Self, LoadError> {
        let start = Usage::take(&options.server_pids)?.server_resident_bytes();
        let memory =
            start.map(|bytes| SurgeMemory { start: bytes, surge_start: bytes, surge_maximum: bytes, end: bytes });
        Ok(Watch {
            options,
            timeline,
            plan,
            sender,
            completions,
            usages: Vec::with_capacity(Phase::ALL.len() + 1),
            memory,
            series: Vec::new(),
            so_far: SentSoFar::default(),
        })
    }

    /// Until the last phase ends.
    async fn phases(&mut self) -> Result<(), LoadError> {
        for phase in Phase::ALL {
            self.timeline.sleep_until(self.plan.start(phase)).await;
            let usage = Usage::take(&self.options.server_pids)?;
            self.remember_memory(phase, &usage, true);
            self.usages.push(usage);
            let end = self.plan.end(phase);
            while self.timeline.now() < end {
                let next_look = (self.timeline.now() + LOOK_EVERY).min(self.next_second()).min(end);
                self.timeline.sleep_until(next_look).await;
                let usage = Usage::take(&self.options.server_pids)?;
                self.remember_memory(phase, &usage, false);
                // After a pause several phases have passed, perhaps even the last one.
                while self.next_second() <= self.timeline.now().min(end) {
                    self.take_second(phase, usage.server_resident_bytes());
                }
            }
        }
        let usage = Usage::take(&self.options.server_pids)?;
        self.remember_memory(Phase::Afterwards, &usage, false);
        self.usages.push(usage);
        Ok(())
    }

    fn remember_memory(&mut self, phase: Phase, usage: &Usage, phase_begins: bool) {
        let (Some(memory), Some(bytes)) = (&mut self.memory, usage.server_resident_bytes()) else {
            return;
        };
        memory.end = bytes;
        if phase != Phase::Surge {
            return;
        }
        if phase_begins {
            memory.surge_start = bytes;
            memory.surge_maximum = bytes;
        }
        memory.surge_maximum = memory.surge_maximum.max(bytes);
    }

    fn next_second(&self) -> Duration {
        self.plan.start(Phase::WarmUp) + Duration::from_secs(self.series.len() as u64 + 1)
    }

    fn take_second(&mut self, phase: Phase, resident_bytes: Option<u64>) {
        let (so_far, unanswered) = {
            let sending = self.sender.sending();
            (sending.so_far, sending.outstanding)
        };
        let mut state = self.completions.state();
        let quantiles = state.second.quantiles();
        let second = SurgeSecond {
            second: self.series.len() as u64 + 1,
            phase,
            sent: so_far.sent - self.so_far.sent,
            held_back: so_far.held_back - self.so_far.held_back,
            accepted: so_far.accepted - self.so_far.accepted,
            refused: so_far.refused - self.so_far.refused,
            completed: std::mem::take(&mut state.second_completed),
            unanswered,
            outstanding: so_far.accepted.saturating_sub(state.completed),
            p50: quantiles.p50,
            p99: quantiles.p99,
            resident_bytes,
        };
        state.second.reset();
        drop(state);
        self.so_far = so_far;
        if self.options.progress {
            eprintln!(
                "{:>5} s {:>10}  sent {:>7}/s  held back {:>7}  refused {:>7}  completed {:>7}/s  outstanding {:>7}  latency ms p50 {:>8.2}  p99 {:>8.2}",
                second.second,
                phase.name(),
                second.sent,
                second.held_back,
                second.refused,
                second.completed,
                second.outstanding,
                second.p50,
                second.p99
            );
        }
        self.series.push(second);
    }

    /// Waits for the last answers and instances, and says how long that took.
    async fn drain(&self, limit: Duration) -> f64 {
        let start = self.timeline.now();
        while self.timeline.now() < start + limit {
            let (finished, unanswered, accepted) = {
                let sending = self.sender.sending();
                (sending.finished, sending.outstanding, sending.so_far.accepted)
            };
            if finished && unanswered == 0 && self.completions.state().completed >= accepted {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (self.timeline.now() - start).as_secs_f64()
    }
}

/// What a run left, for the report.
struct Found<'a> {
    surge: &'a SurgeOptions,
    plan: &'a Plan,
    accepted: Numbers,
    refused: Numbers,
    completed: Numbers,
    usages: Vec<Usage>,
    series: Vec<SurgeSecond>,
    memory: Option<SurgeMemory>,
    drain_seconds: f64,
}

impl Found<'_> {
    fn report(self, sender: &Sender, completions: &Completions) -> SurgeReport {
        let sending = sender.sending();
        let state = completions.state();
        let phases: Vec<PhaseReport> = Phase::ALL
            .into_iter()
            .map(|phase| {
                let (sent, completed) = (&sending.phases[phase as usize], &state.phases[phase as usize]);
                let used = self.usages[phase as usize + 1].since(&self.usages[phase as usize]);
                phase_report(self.plan, phase, sent, completed, used)
            })
            .collect();
        let (peak, surge) = (&phases[Phase::Peak as usize], &phases[Phase::Surge as usize]);
        let goodput_share = surge.completed_per_second / peak.completed_per_second;
        let completed_not_accepted = self.completed.missing_in(&self.accepted);
        let completed_not_refused = self.completed.missing_in(&self.refused);
        let completed_though_refused = state.completed.saturating_sub(completed_not_refused);
        SurgeReport {
            rate: self.surge.rate,
            factor: self.surge.factor,
            sent_factor: surge.sent as f64 / surge.seconds / self.surge.rate,
            goodput_share: if goodput_share.is_finite() { goodput_share } else { 0.0 },
            recovery: recovery(self.plan, &phases[Phase::Normal as usize].process_latency, &self.series),
            memory: self.memory,
            sent: sending.so_far.sent,
            accepted: sending.so_far.accepted,
            completed: state.completed,
            unfinished: self.accepted.missing_in(&self.completed),
            unanswered: sending.outstanding as u64,
            completed_though_refused,
            completed_though_failed: completed_not_accepted.saturating_sub(completed_though_refused),
            drain_seconds: self.drain_seconds,
            lost_connections: sending.lost_connections.clone(),
            irregularities: state.irregularities.clone(),
            series: self.series,
            phases,
        }
    }
}

fn phase_report(
    plan: &Plan,
    phase: Phase,
    sent: &Sent,
    completed: &Completed,
    used: (Option<ProcessUse>, Option<ProcessUse>),
) -> PhaseReport {
    let seconds = (plan.end(phase) - plan.start(phase)).as_secs_f64();
    PhaseReport {
        phase,
        seconds,
        target_rate: plan.rate(phase),
        sent: sent.sent,
        late_sends: sent.late,
        held_back: sent.held_back,
        accepted: sent.accepted,
        refused: sent.failures.clone(),
        completed: completed.count,
        completed_per_second: if seconds > 0.0 { completed.count as f64 / seconds } else { 0.0 },
        process_latency: completed.since_intended.quantiles(),
        process_latency_since_sent: completed.since_sent.quantiles(),
        acceptance_latency: sent.acceptance.quantiles(),
        refusal_latency: sent.refusal.quantiles(),
        server: used.0,
        own: used.1,
    }
}

/// Seconds count for the phase at their end.
fn recovery(plan: &Plan, normal: &Quantiles, series: &[SurgeSecond]) -> Recovery {
    let of_phase = |phase: Phase| -> Vec<Option<f64>> {
        let first = plan.start(phase) - plan.start(Phase::WarmUp);
        let in_phase = |second: &&SurgeSecond| second.phase == phase && Duration::from_secs(second.second) > first;
        series.iter().filter(in_phase).map(|second| (second.completed > 0).then_some(second.p99)).collect()
    };
    Recovery::find(normal, &of_phase(Phase::Normal), &of_phase(Phase::Afterwards))
}

impl SurgeReport {
    /// What the server did wrong, which makes the figures worthless. Refusing is not wrong, losing is.
    pub(crate) fn failure(&self) -> Option<String> {
        let wrong = self.unfinished + self.unanswered + self.completed_though_refused;
        (wrong + self.irregularities.completed_twice > 0).then(|| {
            format!(
                "Of {} accepted instances {} did not complete within {:.0} s after the last creation, {} completed \
                 twice, {} creations were never answered, and {} were carried out though they had been refused. Every \
                 creation must be accepted or refused, and every accepted instance must complete once.",
                self.accepted,
                self.unfinished,
                self.drain_seconds,
                self.irregularities.completed_twice,
                self.unanswered,
                self.completed_though_refused
            )
        })
    }
}
