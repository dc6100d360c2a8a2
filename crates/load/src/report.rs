//! The report of a run, as a table and as data.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::Serialize;

use crate::availability::AvailabilityReport;
use crate::connection::Server;
use crate::drain::DrainReport;
use crate::error::LoadError;
use crate::figures::{Irregularities, Measured, MessageCounts, Quantiles};
use crate::history::Comparison;
use crate::idle::IdleReport;
use crate::maximum::MaximumReport;
use crate::misbehaving::MisbehavingReport;
use crate::model::RunNames;
use crate::options::{Misbehaviour, Options, Work};
use crate::process_statistics::ProcessUse;
use crate::profile::Profile;
use crate::surge::SurgeReport;
pub(crate) use crate::table::{completions_row, quantile_header, quantile_row, row};
use crate::timers::{BesideReport, TimersReport};
use crate::trial::RateReport;
use crate::waiting::WaitingReport;

/// Everything that a run measured. As text it is a table; serialized it holds all quantiles and settings.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// When the run started, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// What was asked for.
    pub settings: Options,
    /// What it ran against.
    pub context: Context,
    /// How long a write of 4 KiB took to be synced to the probed disk during the run.
    pub fsync: Option<Quantiles>,
    /// How long requests waited until their intent was on the disk, when there was a ledger. They count from then.
    pub ledger: Option<Quantiles>,
    /// What the server did wrong, which makes the figures worthless; in words.
    pub failure: Option<String>,
    /// What was measured.
    pub outcome: Outcome,
    /// How that compares with earlier results, if it was appended to them.
    pub history: Option<Comparison>,
}

impl Report {
    /// An error when the server did something wrong.
    pub fn verdict(&self) -> Result<(), LoadError> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(LoadError::Wrong(failure.clone())))
    }
}

/// What a run ran against.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// The server.
    pub server: Server,
    /// The processes that were deployed for the run.
    pub process_ids: Vec<String>,
    /// The type of its jobs, which a later run can drain.
    pub job_type: Option<String>,
    /// What the reader should know before the figures.
    pub note: Option<String>,
}

impl Context {
    pub(crate) fn new(
        server: Server,
        process_ids: &[Arc<str>],
        names: Option<&RunNames>,
        note: Option<String>,
    ) -> Self {
        Context {
            server,
            process_ids: process_ids.iter().map(ToString::to_string).collect(),
            job_type: names.map(|names| names.job_type.clone()),
            note,
        }
    }
}

/// What was measured, by the kind of run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A fixed rate.
    Rate(Box<RateReport>),
    /// The highest sustainable rate.
    Maximum(MaximumReport),
    /// Waiting instances.
    Waiting(WaitingReport),
    /// A worker that misbehaves.
    Misbehaving(Box<MisbehavingReport>),
    /// A surge.
    Surge(Box<SurgeReport>),
    /// Timers of the same moment.
    Timers(Box<TimersReport>),
    /// A drained backlog.
    Drain(Box<DrainReport>),
    /// Idle clients.
    Idle(IdleReport),
}

impl Outcome {
    /// What the server did wrong. A message must be correlated once and a timer must fire once.
    pub(crate) fn failure(&self) -> Option<String> {
        let mut messages = MessageCounts::default();
        match self {
            Outcome::Rate(report) => {
                if let Some(failure) = report.availability.as_ref().and_then(AvailabilityReport::failure) {
                    return Some(failure);
                }
                messages.add(report.messages.unwrap_or_default());
            }
            Outcome::Maximum(report) => {
                let availability = report.confirmation.as_ref().and_then(|report| report.availability.as_ref());
                if let Some(failure) = availability.and_then(AvailabilityReport::failure) {
                    return Some(failure);
                }
                report.trials.iter().filter_map(|trial| trial.messages).for_each(|counts| messages.add(counts));
            }
            Outcome::Surge(report) => return report.failure(),
            Outcome::Misbehaving(report) => return report.failure(),
            Outcome::Timers(report) => return timers_failure(report),
            Outcome::Waiting(_) | Outcome::Drain(_) | Outcome::Idle(_) => {}
        }
        (messages.lost > 0 || messages.repeated > 0).then(|| {
            format!(
                "Of {} published messages {} were not correlated within the drain limit, and {} jobs came of a second \
                 or foreign correlation; each message must be correlated once.",
                messages.published, messages.lost, messages.repeated
            )
        })
    }
}

fn timers_failure(report: &TimersReport) -> Option<String> {
    let fired = &report.fired;
    (fired.lost > 0 || fired.repeated > 0 || fired.last_completed.is_none()).then(|| {
        format!(
            "Of {} timers {} fired and {} of their instances completed in time; {} never fired, and {} jobs came of a \
             timer that fired again. Each timer must fire once; for more time give a longer limit.",
            report.created, fired.fired, fired.completed, fired.lost, fired.repeated
        )
    })
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let server = &self.context.server;
        row(
            formatter,
            "server",
            format_args!(
                "{} (version {}, {} nodes, {} partitions, replication factor {})",
                self.settings.addresses.join(", "),
                server.version,
                server.nodes,
                server.partitions,
                server.replication_factor
            ),
        )?;
        if let Some(job_type) = &self.context.job_type {
            let processes = self.context.process_ids.join(", ");
            row(formatter, "process, job type", format_args!("{processes}, {job_type}"))?;
        }
        if let Some(note) = &self.context.note {
            row(formatter, "note", note)?;
        }
        match &self.outcome {
            Outcome::Rate(report) => rate(formatter, report, self.settings.gaps)?,
            Outcome::Maximum(report) => maximum(formatter, report, self.settings.gaps)?,
            Outcome::Waiting(report) => waiting(formatter, report)?,
            Outcome::Misbehaving(report) => misbehaving(formatter, report)?,
            Outcome::Surge(report) => crate::surge::write_text(formatter, report)?,
            Outcome::Timers(report) => timers(formatter, report)?,
            Outcome::Drain(report) => drain(formatter, report)?,
            Outcome::Idle(report) => idle(formatter, report)?,
        }
        if let Some(fsync) = &self.fsync {
            row(
                formatter,
                "fsync of 4 KiB",
                format_args!(
                    "p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms (two at p50: {:.2} ms)",
                    fsync.p50,
                    fsync.p99,
                    fsync.max,
                    2.0 * fsync.p50
                ),
            )?;
        }
        if let Some(ledger) = &self.ledger {
            row(
                formatter,
                "ledger, until an intent was synced",
                format_args!("p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", ledger.p50, ledger.p99, ledger.max),
            )?;
        }
        if let Some(history) = &self.history {
            write!(formatter, "{history}")?;
        }
        if let Some(failure) = &self.failure {
            row(formatter, "FAILED", failure)?;
        }
        Ok(())
    }
}

/// Says in one line how the work was set up.
impl Display for Work {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}, {} bytes of variables, {} workers ({}) holding each job {:?}",
            self.profile,
            self.payload_bytes,
            self.worker.workers,
            match self.worker.delivery {
                crate::options::Delivery::Push => "push",
                crate::options::Delivery::Poll { .. } => "poll",
            },
            self.worker.delay
        )?;
        if matches!(self.profile, Profile::TenTasksTwoTimers | Profile::Mixed) {
            write!(formatter, ", timers of {:?}", self.timer)?;
        }
        if matches!(self.profile, Profile::Mixed | Profile::Messages) {
            write!(formatter, ", messages buffered for {:?}", self.message_ttl)?;
        }
        Ok(())
    }
}

fn rate(formatter: &mut Formatter<'_>, report: &RateReport, gaps: bool) -> fmt::Result {
    let sum = &report.sum;
    row(
        formatter,
        "target, measured time",
        format_args!("{:.1} sends/s, {:.1} s", report.target_rate, report.seconds),
    )?;
    throughput(formatter, sum)?;
    row(
        formatter,
        "late, skipped sends; unfinished",
        format_args!(
            "{}, {}; {} after {:.2} s of drain",
            sum.late_sends, sum.skipped_sends, sum.unfinished, report.drain_seconds
        ),
    )?;
    if report.waiting > 0 {
        row(formatter, "waiting for messages at the end", report.waiting)?;
    }
    if let Some(messages) = &report.messages {
        row(
            formatter,
            "messages",
            format_args!(
                "{} published, {} correlated, {} lost, {} repeated",
                messages.published, messages.correlated, messages.lost, messages.repeated
            ),
        )?;
    }
    quantile_header(formatter)?;
    latencies(formatter, sum)?;
    if let Some(availability) = &report.availability {
        availability.write_text(formatter)?;
    }
    for part in &report.by_process {
        writeln!(formatter)?;
        row(formatter, &part.process, format_args!("{} unfinished", part.measured.unfinished))?;
        throughput(formatter, &part.measured)?;
        latencies(formatter, &part.measured)?;
    }
    if !report.by_process.is_empty() {
        writeln!(formatter)?;
    }
    for address in report.by_address.iter().filter(|_| report.by_address.len() > 1) {
        row(
            formatter,
            &address.address,
            format_args!(
                "{} acknowledged, {} refused, {} of unknown outcome",
                address.acknowledged, address.refused, address.unknown
            ),
        )?;
    }
    report.silence.write_text(formatter, gaps)?;
    irregularities(formatter, &report.irregularities)?;
    usage(formatter, "server", report.server, report.server_cpu_microseconds_per_instance)?;
    usage(formatter, "load generator", report.own, report.own_cpu_microseconds_per_instance)
}

fn throughput(formatter: &mut Formatter<'_>, measured: &Measured) -> fmt::Result {
    if measured.published > 0 {
        row(
            formatter,
            "messages published",
            format_args!("{:.1}/s ({})", measured.published_per_second, measured.published),
        )?;
    }
    row(
        formatter,
        "created, completed",
        format_args!(
            "{:.1}/s, {:.1}/s ({} and {} instances, {} jobs)",
            measured.created_per_second,
            measured.completed_per_second,
            measured.created,
            measured.completed,
            measured.jobs_completed
        ),
    )
}

/// A row for each latency that has a value.
fn latencies(formatter: &mut Formatter<'_>, measured: &Measured) -> fmt::Result {
    for (name, quantiles) in [
        ("process latency", &measured.process_latency),
        ("overhead over the workers' time", &measured.overhead),
        ("activation (after acknowledgement)", &measured.activation_from_acknowledgement),
        ("activation (after command)", &measured.activation_from_command),
        ("activation (after timer is due)", &measured.activation_after_timer),
        ("activation (after message)", &measured.activation_after_message),
        ("activation (buffered message)", &measured.activation_after_buffered_message),
        ("creation acknowledged", &measured.creation_latency),
        ("publication acknowledged", &measured.publication_latency),
        ("completion acknowledged", &measured.completion_latency),
    ] {
        if quantiles.count > 0 {
            quantile_row(formatter, name, quantiles)?;
        }
    }
    Ok(())
}

fn irregularities(formatter: &mut Formatter<'_>, found: &Irregularities) -> fmt::Result {
    row(
        formatter,
        "duplicate, unknown jobs",
        format_args!(
            "{}, {}; {} completed twice, {} unexpected",
            found.duplicate_jobs, found.unknown_jobs, found.completed_twice, found.unexpected_jobs
        ),
    )?;
    row(formatter, "rejected creations", &found.rejected_creations)?;
    if found.unknown_creations.total() > 0 {
        row(formatter, "creations of unknown outcome", &found.unknown_creations)?;
    }
    if found.rejected_publications.total() > 0 || found.repeated_publications > 0 {
        row(
            formatter,
            "rejected publications",
            format_args!("{}; {} sent again", found.rejected_publications, found.repeated_publications),
        )?;
    }
    completions_row(formatter, &found.rejected_completions, found.repeated_completions, &found.unknown_completions)?;
    row(formatter, "failed streams and polls", &found.failed_streams)?;
    if found.polled_beside_streams > 0 {
        row(formatter, "jobs polled alongside the streams", found.polled_beside_streams)?;
    }
    Ok(())
}

pub(crate) fn usage(
    formatter: &mut Formatter<'_>,
    name: &str,
    used: Option<ProcessUse>,
    microseconds_per_instance: Option<f64>,
) -> fmt::Result {
    let Some(used) = used else {
        return Ok(());
    };
    let each = microseconds_per_instance
        .map(|microseconds| format!(", {microseconds:.1} us per instance"))
        .unwrap_or_default();
    row(
        formatter,
        name,
        format_args!(
            "{:.2} s of CPU ({:.1} %{each}), resident {:.1} MiB (peak {:.1})",
            used.cpu_seconds,
            used.cpu_percent,
            mebibytes(used.resident_bytes),
            mebibytes(used.resident_peak_bytes)
        ),
    )
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

fn maximum(formatter: &mut Formatter<'_>, report: &MaximumReport, gaps: bool) -> fmt::Result {
    row(formatter, "sustainable means", &report.criterion)?;
    for trial in &report.trials {
        row(
            formatter,
            "trial",
            format_args!(
                "{:>9.1}/s: {:.1}/s completed, overhead p99 {:.1} ms, {}",
                trial.rate,
                trial.completed_per_second,
                trial.overhead_p99,
                trial.failed.as_deref().unwrap_or("sustainable")
            ),
        )?;
    }
    row(formatter, "highest sustainable rate", format_args!("{:.1} instances/s", report.sustainable_rate))?;
    match &report.confirmation {
        Some(confirmation) => rate(formatter, confirmation, gaps),
        None => Ok(()),
    }
}

fn waiting(formatter: &mut Formatter<'_>, report: &WaitingReport) -> fmt::Result {
    row(
        formatter,
        "created",
        format_args!("{} instances in {:.1} s ({:.1}/s)", report.created, report.seconds, report.created_per_second),
    )?;
    row(formatter, "rejected creations", &report.rejected_creations)?;
    quantile_header(formatter)?;
    quantile_row(formatter, "creation acknowledged", &report.creation_latency)?;
    usage(formatter, "server", report.server, report.server_cpu_microseconds_per_instance)?;
    usage(formatter, "load generator", report.own, None)
}

fn timers(formatter: &mut Formatter<'_>, report: &TimersReport) -> fmt::Result {
    let fired = &report.fired;
    let after = |time: Option<f64>| time.map_or("never".to_owned(), |time| format!("after {time:.1} ms"));
    row(
        formatter,
        "timers",
        format_args!(
            "{} created in {:.1} s ({:.1}/s), due at {}",
            report.created, report.creation_seconds, report.created_per_second, report.due
        ),
    )?;
    row(formatter, "rejected creations", &report.rejected_creations)?;
    row(
        formatter,
        "fired",
        format_args!(
            "{}, first {}, last {} ({} lost, {} repeated, {} early)",
            fired.fired,
            after(fired.first_fired),
            after(fired.last_fired),
            fired.lost,
            fired.repeated,
            fired.early
        ),
    )?;
    row(formatter, "completed", format_args!("{}, last {}", fired.completed, after(fired.last_completed)))?;
    quantile_header(formatter)?;
    quantile_row(formatter, "job after due date", &fired.fired_after)?;
    quantile_row(formatter, "completed after due date", &fired.completed_after)?;
    row(
        formatter,
        "jobs after timers",
        format_args!(
            "{} duplicate, {} polled alongside the streams; rejected completions: {}; failed streams: {}",
            fired.duplicate_jobs, fired.polled_beside_streams, fired.rejected_completions, fired.failed_streams
        ),
    )?;
    beside(formatter, "before the due date", report.rate_beside, &report.before)?;
    beside(formatter, "while the timers fired", report.rate_beside, &report.while_firing)?;
    if report.while_completing.measured.process_latency.count > 0 {
        beside(formatter, "while their instances completed", report.rate_beside, &report.while_completing)?;
    }
    writeln!(formatter)?;
    irregularities(formatter, &report.irregularities)?;
    usage(formatter, "server", report.server, report.server_cpu_microseconds_per_instance)?;
    usage(formatter, "load generator", report.own, None)
}

fn beside(formatter: &mut Formatter<'_>, when: &str, rate: f64, report: &BesideReport) -> fmt::Result {
    let measured = &report.measured;
    writeln!(formatter)?;
    row(
        formatter,
        when,
        format_args!(
            "{rate:.1} instances/s meanwhile for {:.1} s: {} late, {} skipped sends, {} unfinished",
            report.seconds, measured.late_sends, measured.skipped_sends, measured.unfinished
        ),
    )?;
    throughput(formatter, measured)?;
    latencies(formatter, measured)
}

fn drain(formatter: &mut Formatter<'_>, report: &DrainReport) -> fmt::Result {
    let first = report.first_job_milliseconds.map_or("never".to_owned(), |first| format!("after {first:.2} ms"));
    row(formatter, "first job", first)?;
    row(
        formatter,
        "received, completed",
        format_args!(
            "{}, {} in {:.2} s ({:.1}/s)",
            report.received, report.completed, report.seconds, report.completed_per_second
        ),
    )?;
    if let (Some(slowest), Some(fastest)) = (report.slowest_second, report.fastest_second) {
        let series = &report.series;
        row(
            formatter,
            "completed in one second",
            format_args!(
                "{slowest} in the slowest, {fastest} in the fastest, {} in the first, {} in the last whole one",
                series[0],
                series[(report.seconds as usize).clamp(1, series.len()) - 1]
            ),
        )?;
    }
    row(formatter, "out of order, duplicates", format_args!("{}, {}", report.out_of_order, report.duplicate_jobs))?;
    row(formatter, "jobs polled alongside the streams", report.polled_beside_streams)?;
    row(formatter, "rejected completions", &report.rejected_completions)?;
    row(formatter, "failed streams and polls", &report.failed_streams)?;
    quantile_header(formatter)?;
    quantile_row(formatter, "completion acknowledged", &report.completion_latency)?;
    usage(formatter, "server", report.server, None)?;
    usage(formatter, "load generator", report.own, None)?;
    let Some(beside_it) = &report.beside else {
        return Ok(());
    };
    beside(formatter, "before the backlog was drained", beside_it.rate, &beside_it.before)?;
    usage(formatter, "server", beside_it.server_before, None)?;
    beside(formatter, "while it was drained", beside_it.rate, &beside_it.while_draining)?;
    writeln!(formatter)?;
    irregularities(formatter, &beside_it.irregularities)
}

fn misbehaving(formatter: &mut Formatter<'_>, report: &MisbehavingReport) -> fmt::Result {
    let worker = &report.worker;
    let name = match report.behaviour {
        Misbehaviour::Failing => "worker that fails every job",
        Misbehaviour::Ignoring => "worker that ignores every job",
    };
    row(
        formatter,
        name,
        format_args!(
            "{:.1} instances/s for it: {} created, {} held back; {} jobs ({:.1} % of all)",
            report.rate_beside,
            worker.created,
            worker.held_back,
            worker.received,
            report.share_of_jobs * 100.0
        ),
    )?;
    row(formatter, "its rejected creations", &worker.rejected_creations)?;
    if report.behaviour == Misbehaviour::Failing {
        row(
            formatter,
            "its failures",
            format_args!("{} acknowledged, {} of them an incident", worker.failed, worker.incidents),
        )?;
        row(formatter, "its rejected failures", &worker.rejected_failures)?;
    }
    row(formatter, "its failed streams", &worker.failed_streams)?;
    quantile_header(formatter)?;
    if worker.failure_latency.count > 0 {
        quantile_row(formatter, "failure acknowledged", &worker.failure_latency)?;
    }
    let each = |used: Option<ProcessUse>, part: &BesideReport| {
        used.and_then(|used| used.cpu_microseconds_per(part.measured.completed))
    };
    beside(formatter, "before it came", report.rate, &report.before)?;
    usage(formatter, "server", report.server_before, each(report.server_before, &report.before))?;
    beside(formatter, "while it was there", report.rate, &report.while_there)?;
    usage(formatter, "server", report.server_while_there, each(report.server_while_there, &report.while_there))?;
    usage(formatter, "load generator", report.own, None)?;
    writeln!(formatter)?;
    irregularities(formatter, &report.irregularities)
}

fn idle(formatter: &mut Formatter<'_>, report: &IdleReport) -> fmt::Result {
    row(
        formatter,
        "idle streams, long polls",
        format_args!("{}, {} for {:.1} s", report.streams, report.polls, report.seconds),
    )?;
    row(formatter, "failures", &report.failures)?;
    if let Some(bytes) = report.server_resident_bytes_before {
        row(formatter, "server before", format_args!("resident {:.1} MiB", mebibytes(bytes)))?;
    }
    usage(formatter, "server", report.server, None)?;
    usage(formatter, "load generator", report.own, None)
}
