//! The report of a run with a surge, for a reader.

use std::fmt::{self, Formatter};

use super::{Phase, PhaseReport, SurgeReport};
use crate::figures::Quantiles;
use crate::report::{completions_row, mebibytes, quantile_header, quantile_row, row, usage};

pub(crate) fn surge(formatter: &mut Formatter<'_>, report: &SurgeReport) -> fmt::Result {
    row(
        formatter,
        "goodput in the surge",
        format_args!(
            "{:.1} % of that at the highest sustainable rate of {:.1}/s; of {} times that rate {:.1} times was sent",
            report.goodput_share * 100.0,
            report.rate,
            report.factor,
            report.sent_factor
        ),
    )?;
    recovery(formatter, report)?;
    if let Some(memory) = &report.memory {
        row(
            formatter,
            "resident memory of the server",
            format_args!(
                "{:.1} MiB at the start, {:.1} when the surge began, at most {:.1} in it, {:.1} at the end",
                mebibytes(memory.start),
                mebibytes(memory.surge_start),
                mebibytes(memory.surge_maximum),
                mebibytes(memory.end)
            ),
        )?;
    }
    row(
        formatter,
        "sent, accepted, completed",
        format_args!(
            "{}, {}, {}; {} unfinished, {} unanswered after {:.2} s of drain",
            report.sent, report.accepted, report.completed, report.unfinished, report.unanswered, report.drain_seconds
        ),
    )?;
    for part in report.phases.iter().filter(|part| part.phase != Phase::WarmUp && part.seconds > 0.0) {
        phase(formatter, part)?;
    }
    writeln!(formatter)?;
    irregularities(formatter, report)
}

fn recovery(formatter: &mut Formatter<'_>, report: &SurgeReport) -> fmt::Result {
    let recovery = &report.recovery;
    let when = match recovery.seconds {
        Some(seconds) => format!("{seconds} s after the surge"),
        None => "not within the time of the run".to_owned(),
    };
    row(
        formatter,
        "latency normal again",
        format_args!(
            "{when}: five seconds in a row with a p99 of at most {:.1} ms; {} of the seconds after that had more, of the \
             {} before the surge {}",
            recovery.limit, recovery.later_seconds_beyond, recovery.normal_seconds, recovery.normal_seconds_beyond
        ),
    )
}

fn phase(formatter: &mut Formatter<'_>, part: &PhaseReport) -> fmt::Result {
    writeln!(formatter)?;
    let per_second = |count: u64| count as f64 / part.seconds;
    row(formatter, part.phase.name(), format_args!("{:.1}/s intended for {:.1} s", part.target_rate, part.seconds))?;
    row(
        formatter,
        "sent, accepted, completed",
        format_args!(
            "{:.1}/s, {:.1}/s, {:.1}/s",
            per_second(part.sent),
            per_second(part.accepted),
            part.completed_per_second
        ),
    )?;
    row(
        formatter,
        "held back, late",
        format_args!("{} ({:.1}/s), {}", part.held_back, per_second(part.held_back), part.late_sends),
    )?;
    row(formatter, "refused", &part.refused)?;
    quantile_header(formatter)?;
    for (name, quantiles) in [
        ("process latency (intended send)", &part.process_latency),
        ("process latency (actual send)", &part.process_latency_since_sent),
        ("creation accepted", &part.acceptance_latency),
        ("creation refused", &part.refusal_latency),
    ] {
        if *quantiles != Quantiles::default() {
            quantile_row(formatter, name, quantiles)?;
        }
    }
    let each = |used: Option<crate::ProcessUse>| used.and_then(|used| used.cpu_microseconds_per(part.completed));
    usage(formatter, "server", part.server, each(part.server))?;
    usage(formatter, "load generator", part.own, each(part.own))
}

fn irregularities(formatter: &mut Formatter<'_>, report: &SurgeReport) -> fmt::Result {
    let found = &report.irregularities;
    row(formatter, "completed twice, unknown jobs", format_args!("{}, {}", found.completed_twice, found.unknown_jobs))?;
    row(
        formatter,
        "completed though refused, failed",
        format_args!("{}, {}", report.completed_though_refused, report.completed_though_failed),
    )?;
    completions_row(formatter, &found.rejected_completions, found.repeated_completions, &found.unknown_completions)?;
    row(formatter, "failed streams and polls", &found.failed_streams)?;
    row(formatter, "lost connections", &report.lost_connections)?;
    if found.polled_beside_streams > 0 {
        row(formatter, "jobs polled alongside the streams", found.polled_beside_streams)?;
    }
    Ok(())
}
