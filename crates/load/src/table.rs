//! The rows of reports as text.

use std::fmt::{self, Display, Formatter};

use crate::figures::{Failures, Quantiles};

pub(crate) fn row(formatter: &mut Formatter<'_>, name: &str, value: impl Display) -> fmt::Result {
    writeln!(formatter, "{name:<36} {value}")
}

pub(crate) fn quantile_header(formatter: &mut Formatter<'_>) -> fmt::Result {
    writeln!(
        formatter,
        "{:<36} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "milliseconds", "count", "mean", "p50", "p90", "p99", "p99.9", "max"
    )
}

pub(crate) fn quantile_row(formatter: &mut Formatter<'_>, name: &str, quantiles: &Quantiles) -> fmt::Result {
    writeln!(
        formatter,
        "{name:<36} {:>10} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
        quantiles.count, quantiles.mean, quantiles.p50, quantiles.p90, quantiles.p99, quantiles.p999, quantiles.max
    )
}

pub(crate) fn completions_row(
    formatter: &mut Formatter<'_>,
    rejected: &Failures,
    repeated: u64,
    unknown: &Failures,
) -> fmt::Result {
    row(formatter, "rejected completions", format_args!("{rejected}; {repeated} sent again"))?;
    match unknown.total() {
        0 => Ok(()),
        _ => row(formatter, "completions of unknown outcome", unknown),
    }
}
