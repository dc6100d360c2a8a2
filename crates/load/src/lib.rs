//! The load generator: a client of the public gateway interface that creates process instances, completes their
//! jobs and reports what that took. It runs against any gateway that speaks the Zeebe protocol.
//!
//! The loop is open: creations are sent on a schedule that does not wait for the server, and every latency counts from
//! the intended send time, so a stalling server cannot hide it by receiving fewer requests. What is in flight is
//! bounded; sends that meet a bound are late or skipped, and counted.
//!
//! Each instance carries a tag in its variables, which links its jobs to it; so the client alone measures the process
//! latency, up to the acknowledgement of the last completion. The tag is also the correlation key of messages, and the
//! task that follows a catch event shows that a message was correlated or a timer fired. What an instance waits for by
//! its model (a worker that holds a job, a timer, a delayed message) does not count as overhead.
//!
//! Everything runs on one thread, except the creations of a surge and the clients that run alongside what is measured:
//! a worker that misbehaves, a worker that drains a backlog, the workers behind timers that are due at once. One thread
//! costs less processor time than several, which matters because the generator usually shares the machine with the
//! server.

mod audit;
mod availability;
mod beforehand;
mod connection;
mod drain;
mod error;
mod figures;
mod fsync_probe;
mod history;
mod idle;
mod instances;
mod ledger;
mod link;
mod maximum;
mod misbehaving;
mod model;
mod options;
mod own_thread;
mod process_statistics;
mod profile;
mod publisher;
mod report;
mod rest;
mod schedule;
mod session;
mod silence;
mod starter;
mod surge;
mod table;
mod timers;
mod tracker;
mod trial;
mod waiting;
mod worker;

use std::time::{SystemTime, UNIX_EPOCH};

pub use audit::{AuditOptions, AuditReport, Finding, FindingKind, NodeReport, audit};
pub use availability::{AvailabilityReport, FoundByProcess, FoundReport};
pub use connection::Server;
pub use drain::{DrainBesideReport, DrainReport};
pub use error::LoadError;
pub use figures::{Failures, Irregularities, Measured, MessageCounts, Quantiles, Second};
pub use history::{ComparedFigure, Comparison, History};
pub use idle::IdleReport;
pub use link::AddressReport;
pub use maximum::{MaximumReport, Trial};
pub use misbehaving::{MisbehavedReport, MisbehavingReport};
pub use options::{
    AvailabilityOptions, Database, Delivery, DrainBeside, DrainOptions, IdleOptions, MaximumOptions,
    MisbehavingOptions, Misbehaviour, Mode, Options, PAYLOAD_LIMIT_BYTES, PAYLOAD_MINIMUM_BYTES, RateOptions,
    RestOptions, SurgeOptions, TimersOptions, WaitingOptions, Work, WorkerOptions,
};
pub use process_statistics::ProcessUse;
pub use profile::Profile;
pub use report::{Context, Outcome, Report};
pub use silence::{Gap, SilenceReport};
pub use surge::{Phase, PhaseReport, Recovery, SurgeIrregularities, SurgeMemory, SurgeReport, SurgeSecond};
pub use timers::{BesideReport, FiredReport, TimersReport, TimersSecond};
pub use trial::{ProcessReport, RateReport};
pub use waiting::WaitingReport;

use fsync_probe::FsyncProbe;
use ledger::Ledger;
use session::Session;
use trial::TrialPlan;

/// Runs the load and reports what it found. The work is done on a thread with a runtime of its own; dropping the
/// future ends it.
pub async fn run(options: Options) -> Result<Report, LoadError> {
    options.check()?;
    let options = options.spread();
    let (mut sender, receiver) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Thread)?;
    std::thread::Builder::new()
        .name("load".into())
        .spawn(move || {
            let report = runtime.block_on(async {
                tokio::select! {
                    report = run_here(options) => Some(report),
                    () = sender.closed() => None,
                }
            });
            // Nobody waits for the report of a run that was dropped.
            if let Some(report) = report {
                let _ = sender.send(report);
            }
        })
        .map_err(LoadError::Thread)?;
    receiver.await.map_err(|_| LoadError::Ended)?
}

async fn run_here(options: Options) -> Result<Report, LoadError> {
    let started_at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let probe = match &options.fsync_directory {
        Some(directory) => Some(FsyncProbe::start(directory)?),
        None => None,
    };
    let ledger = options.ledger.as_deref().map(Ledger::create).transpose()?;
    let result = match &ledger {
        // A run that cannot be written down is none.
        Some(ledger) => tokio::select! {
            result = measure(&options, Some(ledger.clone())) => result,
            error = ledger.failed() => Err(error),
        },
        None => measure(&options, None).await,
    };
    let fsync = probe.map(FsyncProbe::finish);
    let (context, outcome) = result?;
    let ledger = match &ledger {
        Some(ledger) => Some(ledger.finish().await?),
        None => None,
    };
    let failure = outcome.failure();
    Ok(Report { started_at, settings: options, context, fsync, ledger, failure, outcome, history: None })
}

async fn measure(options: &Options, ledger: Option<Ledger>) -> Result<(Context, Outcome), LoadError> {
    let context = |session: &Session, work: &Work| {
        Context::new(session.server.clone(), &session.process_ids, Some(&session.names), Some(work.to_string()))
    };
    match &options.mode {
        Mode::Rate(rate) => {
            let session = Session::open(options, &rate.work, ledger).await?;
            let plan = TrialPlan {
                rate: rate.rate,
                warm_up: rate.warm_up,
                duration: rate.duration,
                drain_limit: rate.drain_limit,
                give_up_when_overloaded: None,
            };
            let report = session.trial(&plan).await?;
            Ok((context(&session, &rate.work), Outcome::Rate(Box::new(report))))
        }
        Mode::Maximum(maximum) => {
            let session = Session::open(options, &maximum.work, ledger).await?;
            let report = session.maximum(maximum).await?;
            Ok((context(&session, &maximum.work), Outcome::Maximum(report)))
        }
        Mode::Waiting(waiting) => {
            waiting::run(options, waiting).await.map(|(context, report)| (context, Outcome::Waiting(report)))
        }
        Mode::Surge(surge) => {
            let (context, report) = surge::run(options, surge).await?;
            Ok((context, Outcome::Surge(Box::new(report))))
        }
        Mode::Misbehaving(misbehaving) => {
            let (context, report) = misbehaving::run(options, misbehaving).await?;
            Ok((context, Outcome::Misbehaving(Box::new(report))))
        }
        Mode::Timers(timers) => {
            let (context, report) = timers::run(options, timers).await?;
            Ok((context, Outcome::Timers(Box::new(report))))
        }
        Mode::Drain(drain) => {
            drain::run(options, drain).await.map(|(context, report)| (context, Outcome::Drain(Box::new(report))))
        }
        Mode::Idle(idle) => idle::run(options, idle).await.map(|(context, report)| (context, Outcome::Idle(report))),
    }
}
