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

    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("histograms of the same bounds");
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

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Failure {
    count: u64,
    first_message: String,
}

impl Failures {
    pub(crate) fn record(&mut self, status: &tonic::Status) {
        self.count(gateway_interface::code_name(status.code()), status.message());
    }

    /// One more of this name. Of the messages the first is kept that says something.
    pub(crate) fn count(&mut self, name: &'static str, message: &str) {
        let failure = self.0.entry(name).or_default();
        failure.count += 1;
        if failure.first_message.is_empty() {
            failure.first_message = message.chars().take(300).collect();
        }
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
    /// Messages whose publication was acknowledged.
    pub published: u64,
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

/// Counts and latencies of the instances of one process, in one window of time.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub created: u64,
    pub published: u64,
    pub completed: u64,
    pub jobs_completed: u64,
    pub late_sends: u64,
    pub skipped_sends: u64,
    pub unfinished: u64,
    pub process: Latencies,
    pub overhead: Latencies,
    pub creation: Latencies,
    pub publication: Latencies,
    pub completion: Latencies,
    pub activation_from_command: Latencies,
    pub activation_from_acknowledgement: Latencies,
    pub activation_after_timer: Latencies,
    pub activation_after_message: Latencies,
    pub activation_after_buffered_message: Latencies,
}

impl Figures {
    pub fn new() -> Self {
        Figures {
            created: 0,
            published: 0,
            completed: 0,
            jobs_completed: 0,
            late_sends: 0,
            skipped_sends: 0,
            unfinished: 0,
            process: Latencies::new(),
            overhead: Latencies::new(),
            creation: Latencies::new(),
            publication: Latencies::new(),
            completion: Latencies::new(),
            activation_from_command: Latencies::new(),
            activation_from_acknowledgement: Latencies::new(),
            activation_after_timer: Latencies::new(),
            activation_after_message: Latencies::new(),
            activation_after_buffered_message: Latencies::new(),
        }
    }

    pub fn add(&mut self, other: &Figures) {
        self.created += other.created;
        self.published += other.published;
        self.completed += other.completed;
        self.jobs_completed += other.jobs_completed;
        self.late_sends += other.late_sends;
        self.skipped_sends += other.skipped_sends;
        self.unfinished += other.unfinished;
        for (sum, part) in [
            (&mut self.process, &other.process),
            (&mut self.overhead, &other.overhead),
            (&mut self.creation, &other.creation),
            (&mut self.publication, &other.publication),
            (&mut self.completion, &other.completion),
            (&mut self.activation_from_command, &other.activation_from_command),
            (&mut self.activation_from_acknowledgement, &other.activation_from_acknowledgement),
            (&mut self.activation_after_timer, &other.activation_after_timer),
            (&mut self.activation_after_message, &other.activation_after_message),
            (&mut self.activation_after_buffered_message, &other.activation_after_buffered_message),
        ] {
            sum.add(part);
        }
    }

    /// The figures of a window of this many seconds, for the report.
    pub fn measured(&self, seconds: f64) -> Measured {
        let per_second = |count: u64| {
            if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
        };
        Measured {
            created: self.created,
            published: self.published,
            completed: self.completed,
            jobs_completed: self.jobs_completed,
            created_per_second: per_second(self.created),
            published_per_second: per_second(self.published),
            completed_per_second: per_second(self.completed),
            late_sends: self.late_sends,
            skipped_sends: self.skipped_sends,
            unfinished: self.unfinished,
            process_latency: self.process.quantiles(),
            overhead: self.overhead.quantiles(),
            activation_from_command: self.activation_from_command.quantiles(),
            activation_from_acknowledgement: self.activation_from_acknowledgement.quantiles(),
            activation_after_timer: self.activation_after_timer.quantiles(),
            activation_after_message: self.activation_after_message.quantiles(),
            activation_after_buffered_message: self.activation_after_buffered_message.quantiles(),
            creation_latency: self.creation.quantiles(),
            publication_latency: self.publication.quantiles(),
            completion_latency: self.completion.quantiles(),
        }
    }
}

/// Counts and latencies of instances, of one process or of all, in the measured time. The schedule sends creations, in
/// the profile `messages` publications.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Creations acknowledged.
    pub created: u64,
    /// Messages whose publication was acknowledged.
    pub published: u64,
    /// Instances whose last completion was acknowledged.
    pub completed: u64,
    /// Jobs whose completion was acknowledged.
    pub jobs_completed: u64,
    /// Creations acknowledged, per second.
    pub created_per_second: f64,
    /// Publications acknowledged, per second.
    pub published_per_second: f64,
    /// Instances completed, per second.
    pub completed_per_second: f64,
    /// Sends of the schedule more than 10 ms after their intended time.
    pub late_sends: u64,
    /// Sends of the schedule never made, because a bound on what is in flight was reached for a second.
    pub skipped_sends: u64,
    /// Acknowledged instances that did not complete within the drain limit; in a run at a fixed rate also those of the
    /// warm-up.
    pub unfinished: u64,
    /// From the intended time of the send to the acknowledgement of the last completion.
    pub process_latency: Quantiles,
    /// The same without the time that the workers held the jobs, the duration of the timer, and the time for which the
    /// publication of a message was put off.
    pub overhead: Quantiles,
    /// From the sending of a creation or completion to the arrival of the job that follows it at once.
    pub activation_from_command: Quantiles,
    /// From the acknowledgement of that command; zero when the job came first.
    pub activation_from_acknowledgement: Quantiles,
    /// From the sending of the completion that leads to a timer to the arrival of the job after it, without the
    /// duration of the timer.
    pub activation_after_timer: Quantiles,
    /// From the sending of a publication to the arrival of the job that follows; of messages for instances that wait.
    pub activation_after_message: Quantiles,
    /// From the sending of the completion that leads to a catch event to the arrival of the job after it; of messages
    /// that were published before.
    pub activation_after_buffered_message: Quantiles,
    /// From the intended time of a creation to its acknowledgement.
    pub creation_latency: Quantiles,
    /// From the sending of a publication to its acknowledgement; in the profile `messages` from its intended time.
    pub publication_latency: Quantiles,
    /// From the sending of a completion to its acknowledgement.
    pub completion_latency: Quantiles,
}

/// What became of the messages since the run started, inside the window or not. Each must be correlated once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageCounts {
    /// Publications acknowledged.
    pub published: u64,
    /// Messages after which the instance went on, seen by its job.
    pub correlated: u64,
    /// Publications acknowledged after which the instance did not go on within the drain limit.
    pub lost: u64,
    /// Jobs that show a second or a foreign correlation: of a task that the instance had reached before, of an
    /// instance without a message, or of one that had ended.
    pub repeated: u64,
}

impl MessageCounts {
    pub(crate) fn add(&mut self, other: MessageCounts) {
        self.published += other.published;
        self.correlated += other.correlated;
        self.lost += other.lost;
        self.repeated += other.repeated;
    }
}

/// What went wrong or came twice since the run started, inside the window or not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Irregularities {
    /// Creations that were refused.
    pub rejected_creations: Failures,
    /// Creations that may have been done or not: unavailable, timed out, or the connection was lost.
    pub unknown_creations: Failures,
    /// Publications that failed.
    pub rejected_publications: Failures,
    /// Publications that were sent again after an error that may pass.
    pub repeated_publications: u64,
    /// Completions that failed for good.
    pub rejected_completions: Failures,
    /// Completions that were sent again because the server had too much to do.
    pub repeated_completions: u64,
    /// Completions that may have been done or not; they were not sent again.
    pub unknown_completions: Failures,
    /// Streams and polls that ended with an error.
    pub failed_streams: Failures,
    /// Jobs that came a second time.
    pub duplicate_jobs: u64,
    /// Completions acknowledged of jobs whose completion had been acknowledged before.
    pub completed_twice: u64,
    /// Jobs of instances that this run does not know (any more).
    pub unknown_jobs: u64,
    /// Jobs of tasks that the instance had reached before, or cannot have reached yet.
    pub unexpected_jobs: u64,
    /// Jobs that no stream took, found by the poll that runs alongside.
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
    fn figures_of_several_processes_add_up() {
        let mut sum = Figures::new();
        for milliseconds in [10, 30] {
            let mut figures = Figures::new();
            figures.completed = milliseconds;
            figures.unfinished = 2;
            figures.process.record(Duration::from_millis(milliseconds));
            figures.activation_after_timer.record(Duration::from_millis(1));
            sum.add(&figures);
        }
        let measured = sum.measured(4.0);
        assert_eq!((measured.completed, measured.unfinished), (40, 4));
        assert!((measured.completed_per_second - 10.0).abs() < f64::EPSILON);
        assert!((measured.process_latency.mean - 20.0).abs() < 0.1, "{measured:?}");
        assert_eq!((measured.process_latency.count, measured.activation_after_timer.count), (2, 2));
        assert_eq!(measured.overhead, Quantiles::default());
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
