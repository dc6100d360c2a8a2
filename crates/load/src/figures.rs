//! What is counted and timed, and the form in which it is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies with three significant digits from a microsecond to an hour.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

const LATENCY_LIMIT_NANOSECONDS: u64 = 3_600_000_000_000;

impl Latencies {
    pub fn new() -> Self {
        Latencies(
            Histogram::new_with_bounds(1_000, LATENCY_LIMIT_NANOSECONDS, 3)
                .expect("the bounds of the histogram are valid"),
        )
    }

    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_LIMIT_NANOSECONDS);
        self.0.saturating_record(nanoseconds);
    }

    pub fn reset(&mut self) {
        self.0.reset();
    }

    pub fn quantiles(&self) -> Quantiles {
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let at = |quantile: f64| milliseconds(self.0.value_at_quantile(quantile));
        if self.0.is_empty() {
            return Quantiles::default();
        }
        Quantiles {
            count: self.0.len(),
            mean: self.0.mean() / 1e6,
            min: milliseconds(self.0.min()),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: milliseconds(self.0.max()),
        }
    }
}

/// Quantiles of a latency in milliseconds; all zero when nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many values there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// 75 % are at most this.
    pub p75: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 95 % are at most this.
    pub p95: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// 99.9 % are at most this.
    pub p999: f64,
    /// 99.99 % are at most this.
    pub p9999: f64,
    /// The largest.
    pub max: f64,
}

/// Failures by the name of their status code, and one message of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Failures(BTreeMap<&'static str, Failure>);

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Failure {
    count: u64,
    first_message: String,
}

impl Failures {
    pub(crate) fn record(&mut self, status: &tonic::Status) {
        let code = crate::error::code_name(status.code());
        self.0
            .entry(code)
            .or_insert_with(|| Failure { count: 0, first_message: status.message().chars().take(300).collect() })
            .count += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.values().map(|failure| failure.count).sum()
    }
}

impl std::fmt::Display for Failures {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("none");
        }
        for (number, (code, failure)) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(formatter, "{comma}{} {code} ({})", failure.count, failure.first_message)?;
        }
        Ok(())
    }
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Second {
    /// Since the start of the warm-up.
    pub second: u64,
    /// Creations acknowledged.
    pub created: u64,
    /// Instances completed.
    pub completed: u64,
    /// Instances neither completed nor failed at its end.
    pub outstanding: usize,
    /// Median of the process latency of those completed, in milliseconds.
    pub p50: f64,
    /// 99th percentile of it.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Counts and latencies of one window of time.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub created: u64,
    pub completed: u64,
    pub jobs_completed: u64,
    pub late_sends: u64,
    pub skipped_sends: u64,
    pub process: Latencies,
    pub overhead: Latencies,
    pub creation: Latencies,
    pub completion: Latencies,
    pub activation_from_command: Latencies,
    pub activation_from_acknowledgement: Latencies,
}

impl Figures {
    pub fn new() -> Self {
        Figures {
            created: 0,
            completed: 0,
            jobs_completed: 0,
            late_sends: 0,
            skipped_sends: 0,
            process: Latencies::new(),
            overhead: Latencies::new(),
            creation: Latencies::new(),
            completion: Latencies::new(),
            activation_from_command: Latencies::new(),
            activation_from_acknowledgement: Latencies::new(),
        }
    }
}

/// What went wrong or came twice since the run started, inside the window or not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Irregularities {
    /// Creations that failed.
    pub rejected_creations: Failures,
    /// Completions that failed for good.
    pub rejected_completions: Failures,
    /// Completions that were sent again after an error that may pass.
    pub repeated_completions: u64,
    /// Completions refused as unknown after one that was never answered, so probably done.
    pub unconfirmed_completions: u64,
    /// Streams and polls that ended with an error.
    pub failed_streams: Failures,
    /// Jobs that came a second time.
    pub duplicate_jobs: u64,
    /// Completions acknowledged of jobs whose completion had been acknowledged before.
    pub completed_twice: u64,
    /// Jobs of instances that this run does not know (any more).
    pub unknown_jobs: u64,
    /// Jobs that no stream took and the poll beside the streams found.
    pub polled_beside_streams: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_milliseconds() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.quantiles(), Quantiles::default());
        for milliseconds in 1..=1000 {
            latencies.record(Duration::from_millis(milliseconds));
        }
        latencies.record(Duration::from_secs(100_000));
        let quantiles = latencies.quantiles();
        assert_eq!(quantiles.count, 1001);
        assert!((quantiles.p50 - 501.0).abs() < 1.0, "{quantiles:?}");
        assert!((quantiles.p99 - 991.0).abs() < 1.5, "{quantiles:?}");
        assert!((quantiles.min - 1.0).abs() < 0.01, "{quantiles:?}");
        // Beyond the limit a value counts as the limit.
        assert!((quantiles.max / 3_600_000.0 - 1.0).abs() < 0.01, "{quantiles:?}");
    }

    #[test]
    fn failures_keep_one_message_by_code() {
        let mut failures = Failures::default();
        assert_eq!(failures.to_string(), "none");
        failures.record(&tonic::Status::not_found("no job 1"));
        failures.record(&tonic::Status::not_found("no job 2"));
        failures.record(&tonic::Status::unavailable("gone"));
        assert_eq!(failures.total(), 3);
        assert_eq!(failures.to_string(), "2 NOT_FOUND (no job 1), 1 UNAVAILABLE (gone)");
    }
}
