//! The report of a run, as a table and as data.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::connection::Server;
use crate::drain::DrainReport;
use crate::figures::{Irregularities, Quantiles};
use crate::idle::IdleReport;
use crate::maximum::MaximumReport;
use crate::model::RunNames;
use crate::options::{Options, Work};
use crate::process_statistics::ProcessUse;
use crate::trial::RateReport;
use crate::waiting::WaitingReport;

/// Everything that a run found out. As text it is a table; serialized it holds all quantiles and settings.
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
    /// What was measured.
    pub outcome: Outcome,
}

/// What a run ran against.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// The server.
    pub server: Server,
    /// The process that was deployed for the run.
    pub process_id: Option<String>,
    /// The type of its jobs, which a later run can drain.
    pub job_type: Option<String>,
    /// What the reader should know before the figures.
    pub note: Option<String>,
}

impl Context {
    pub(crate) fn new(server: Server, names: Option<&RunNames>, note: Option<String>) -> Self {
        Context {
            server,
            process_id: names.map(|names| names.process_id.clone()),
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
    /// A drained backlog.
    Drain(DrainReport),
    /// Idle clients.
    Idle(IdleReport),
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
        if let (Some(process), Some(job_type)) = (&self.context.process_id, &self.context.job_type) {
            row(formatter, "process, job type", format_args!("{process}, {job_type}"))?;
        }
        if let Some(note) = &self.context.note {
            row(formatter, "note", note)?;
        }
        match &self.outcome {
            Outcome::Rate(report) => rate(formatter, report)?,
            Outcome::Maximum(report) => maximum(formatter, report)?,
            Outcome::Waiting(report) => waiting(formatter, report)?,
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
        )
    }
}

fn row(formatter: &mut Formatter<'_>, name: &str, value: impl Display) -> fmt::Result {
    writeln!(formatter, "{name:<36} {value}")
}

fn rate(formatter: &mut Formatter<'_>, report: &RateReport) -> fmt::Result {
    row(
        formatter,
        "target, measured time",
        format_args!("{:.1} instances/s, {:.1} s", report.target_rate, report.seconds),
    )?;
    row(
        formatter,
        "created, completed",
        format_args!(
            "{:.1}/s, {:.1}/s ({} and {} instances, {} jobs)",
            report.created_per_second,
            report.completed_per_second,
            report.created,
            report.completed,
            report.jobs_completed
        ),
    )?;
    row(
        formatter,
        "late, skipped sends; unfinished",
        format_args!(
            "{}, {}; {} after {:.2} s of drain",
            report.late_sends, report.skipped_sends, report.unfinished, report.drain_seconds
        ),
    )?;
    quantile_header(formatter)?;
    for (name, quantiles) in [
        ("process latency", &report.process_latency),
        ("overhead over the workers' time", &report.overhead),
        ("activation (after acknowledgement)", &report.activation_from_acknowledgement),
        ("activation (after command)", &report.activation_from_command),
        ("creation acknowledged", &report.creation_latency),
        ("completion acknowledged", &report.completion_latency),
    ] {
        quantile_row(formatter, name, quantiles)?;
    }
    irregularities(formatter, &report.irregularities)?;
    usage(formatter, "server", report.server, report.server_cpu_microseconds_per_instance)?;
    usage(formatter, "load generator", report.own, report.own_cpu_microseconds_per_instance)
}

fn quantile_header(formatter: &mut Formatter<'_>) -> fmt::Result {
    writeln!(
        formatter,
        "{:<36} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "milliseconds", "count", "mean", "p50", "p90", "p99", "p99.9", "max"
    )
}

fn quantile_row(formatter: &mut Formatter<'_>, name: &str, quantiles: &Quantiles) -> fmt::Result {
    writeln!(
        formatter,
        "{name:<36} {:>10} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
        quantiles.count, quantiles.mean, quantiles.p50, quantiles.p90, quantiles.p99, quantiles.p999, quantiles.max
    )
}

fn irregularities(formatter: &mut Formatter<'_>, found: &Irregularities) -> fmt::Result {
    row(
        formatter,
        "duplicate, unknown jobs",
        format_args!("{}, {}; {} completed twice", found.duplicate_jobs, found.unknown_jobs, found.completed_twice),
    )?;
    row(formatter, "rejected creations", &found.rejected_creations)?;
    row(
        formatter,
        "rejected completions",
        format_args!(
            "{}; {} sent again, {} unconfirmed",
            found.rejected_completions, found.repeated_completions, found.unconfirmed_completions
        ),
    )?;
    row(formatter, "failed streams and polls", &found.failed_streams)?;
    if found.polled_beside_streams > 0 {
        row(formatter, "jobs polled beside the streams", found.polled_beside_streams)?;
    }
    Ok(())
}

fn usage(
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

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

fn maximum(formatter: &mut Formatter<'_>, report: &MaximumReport) -> fmt::Result {
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
        Some(confirmation) => rate(formatter, confirmation),
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
    row(formatter, "out of order, duplicates", format_args!("{}, {}", report.out_of_order, report.duplicate_jobs))?;
    row(formatter, "jobs polled beside the streams", report.polled_beside_streams)?;
    row(formatter, "rejected completions", &report.rejected_completions)?;
    row(formatter, "failed streams and polls", &report.failed_streams)?;
    quantile_header(formatter)?;
    quantile_row(formatter, "completion acknowledged", &report.completion_latency)?;
    usage(formatter, "server", report.server, None)?;
    usage(formatter, "load generator", report.own, None)
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
