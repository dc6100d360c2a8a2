//! Slows new work down while an exporter is behind, so that its backlog stays about as long as it may be.
//!
//! A partition whose exporter has more records before it than it may have takes as much new work as that exporter has taken
//! lately, times the share of the backlog that is acceptable: so the rate meets the exporter's where the backlog is as long
//! as it may be. Ending work is not slowed down. The limit of bytes (`flow_control::Backlog`) holds beside it.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::flow_control::RESUME;
use metrics::{Gauge, gauge};
use protocol::PartitionId;

/// The rate of an exporter is the mean of about this time.
const MEAN_OVER: Duration = Duration::from_secs(2);
/// What may be written at once, as a time at the present rate.
const BURST: Duration = Duration::from_secs(1);
/// What new work is taken for in records, until it is known.
const FIRST_COST: f64 = 10.0;

/// When new work is slowed down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteThrottleOptions {
    /// Records of a partition that an exporter may have before it without any effect.
    pub acceptable_records: u64,
    /// So many records per second may be written whatever an exporter does.
    pub minimum_records_per_second: u64,
}

impl WriteThrottleOptions {
    /// Slows down when more than so many records wait for an exporter.
    pub fn above(acceptable_records: u64) -> Self {
        WriteThrottleOptions { acceptable_records, minimum_records_per_second: 100 }
    }
}

/// How far the slowest exporter of a partition is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slowest<'a> {
    pub exporter: &'a str,
    /// An operator paused exporting.
    pub is_paused: bool,
    /// Number of its last record. Positions would not do: they leave some out, and many where another life of the data begins.
    pub exported: u64,
    /// Number of the last record there is.
    pub written: u64,
    /// How many commands were admitted so far.
    pub admitted: u64,
}

/// What is told of the rates of a partition, in records per second.
struct WriteRateMetrics {
    exporting: Gauge,
    /// As on the reference engine, -1 while there is no limit.
    limit: Gauge,
    /// What is written over the limit; 0 while there is none.
    load: Gauge,
}

impl WriteRateMetrics {
    fn new(partition: PartitionId) -> Self {
        let partition = partition.0.to_string();
        let metrics = WriteRateMetrics {
            exporting: gauge!("zeebe_flow_control_exporting_rate", "partition" => partition.clone()),
            limit: gauge!("zeebe_flow_control_write_rate_limit", "partition" => partition.clone()),
            load: gauge!("zeebe_flow_control_partition_load", "partition" => partition),
        };
        metrics.publish(0.0, 0.0, None);
        metrics
    }

    fn publish(&self, exporting: f64, written: f64, limit: Option<f64>) {
        self.exporting.set(exporting);
        self.limit.set(limit.unwrap_or(-1.0));
        self.load.set(limit.map_or(0.0, |limit| written / limit));
    }
}

/// Finds out how fast a partition may write.
pub(crate) struct WriteThrottle {
    /// Without them the rates are told, and nothing is slowed down.
    options: Option<WriteThrottleOptions>,
    metrics: WriteRateMetrics,
    /// When it was looked last, and what was seen then.
    last: Option<(Duration, u64, u64, u64)>,
    exported_per_second: f64,
    written_per_second: f64,
    /// Records that a command leads to.
    cost: f64,
    /// Records that may still be written.
    allowance: f64,
}

impl WriteThrottle {
    pub fn new(options: Option<WriteThrottleOptions>, partition: PartitionId) -> Self {
        WriteThrottle {
            options,
            metrics: WriteRateMetrics::new(partition),
            last: None,
            exported_per_second: 0.0,
            written_per_second: 0.0,
            cost: FIRST_COST,
            allowance: 0.0,
        }
    }

    /// To be called from time to time. Returns the pace to keep until the next call, if the backlog is too long.
    pub fn look(&mut self, now: Duration, slowest: Slowest<'_>) -> Option<Pace> {
        let Slowest { exporter, is_paused, exported, written, admitted } = slowest;
        let (before, was_exported, was_written, was_admitted) =
            self.last.replace((now, exported, written, admitted)).unwrap_or((now, exported, written, admitted));
        let since = now.saturating_sub(before).as_secs_f64();
        let difference = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64;
        if since > 0.0 {
            let share = (since / MEAN_OVER.as_secs_f64()).min(1.0);
            let mean = |of: f64, later, earlier| of + share * (difference(later, earlier) / since - of);
            self.exported_per_second = mean(self.exported_per_second, exported, was_exported);
            self.written_per_second = mean(self.written_per_second, written, was_written);
            let commands = difference(admitted, was_admitted);
            if commands > 0.0 {
                let lately = (difference(written, was_written) / commands).max(1.0);
                self.cost += share * (lately - self.cost);
            }
        }
        let backlog = written.saturating_sub(exported);
        let Some(options) = self.options.filter(|options| backlog > options.acceptable_records) else {
            self.allowance = 0.0;
            self.metrics.publish(self.exported_per_second, self.written_per_second, None);
            return None;
        };
        let acceptable = options.acceptable_records as f64 / backlog as f64;
        let rate = (self.exported_per_second * acceptable).max(options.minimum_records_per_second as f64);
        self.metrics.publish(self.exported_per_second, self.written_per_second, Some(rate));
        self.allowance -= difference(written, was_written);
        // Debts are bounded too: what was written before the pace was known, and by ending work, is not held against the next minute.
        let burst = rate * BURST.as_secs_f64();
        self.allowance = (self.allowance + rate * since).clamp(-burst, burst);
        Some(Pace {
            exporter: exporter.to_owned(),
            is_paused,
            backlog,
            acceptable: options.acceptable_records,
            records_per_second: rate as u64,
            allowance: AtomicI64::new(self.allowance as i64),
            cost: self.cost as i64,
        })
    }
}

/// How fast a partition may write now.
#[derive(Debug)]
pub(crate) struct Pace {
    exporter: String,
    is_paused: bool,
    backlog: u64,
    acceptable: u64,
    records_per_second: u64,
    allowance: AtomicI64,
    cost: i64,
}

impl Pace {
    /// Takes what a command is likely to write. `false` if there is nothing left.
    pub fn admits(&self) -> bool {
        self.allowance.load(Ordering::Relaxed) > 0 && self.allowance.fetch_sub(self.cost, Ordering::Relaxed) > 0
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pace { exporter, is_paused, backlog, acceptable, records_per_second, .. } = self;
        let way_out = if *is_paused { RESUME } else { "try again after a growing pause" };
        write!(
            formatter,
            "{backlog} records wait for the exporter '{exporter}', and {acceptable} may, so new work is slowed down to \
             {records_per_second} records per second; {way_out}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    /// Records before the exporter and records written per second, second by second, of a partition that would write
    /// `demand` records per second with commands of 20 records.
    fn run(options: WriteThrottleOptions, demand: u64, exported_per_second: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut throttle = WriteThrottle::new(Some(options), PartitionId(1));
        let (mut written, mut exported, mut admitted) = (0u64, 0u64, 0u64);
        let mut seconds = Vec::new();
        for second in 0..300 {
            let begin = written;
            for step in 0..10 {
                let now = Duration::from_secs(second) + STEP * step;
                let pace =
                    throttle.look(now, Slowest { exporter: "slow", is_paused: false, exported, written, admitted });
                let wanted = demand / 10 / 20;
                let taken = (0..wanted).filter(|_| pace.as_ref().is_none_or(Pace::admits)).count() as u64;
                admitted += taken;
                written += 20 * taken;
                exported = written.min(exported + exported_per_second(second) / 10);
            }
            seconds.push((written - exported, written - begin));
        }
        seconds
    }

    #[test]
    fn the_backlog_of_a_slow_exporter_stays_about_as_long_as_it_may_be() {
        let seconds = run(WriteThrottleOptions::above(50_000), 20_000, |_| 5_000);
        for (second, (backlog, written)) in seconds.iter().enumerate().skip(60) {
            assert!((45_000..=65_000).contains(backlog), "second {second}: a backlog of {backlog}");
            assert!((3_500..=6_500).contains(written), "second {second}: {written} written");
        }
    }

    #[test]
    fn an_exporter_that_keeps_up_slows_nothing_down() {
        let seconds = run(WriteThrottleOptions::above(50_000), 20_000, |_| 25_000);
        assert!(seconds.iter().all(|(_, written)| *written == 20_000), "{seconds:?}");
    }

    #[test]
    fn a_dead_exporter_leaves_the_minimum_and_one_that_comes_back_gets_its_turn() {
        let seconds = run(WriteThrottleOptions::above(50_000), 20_000, |second| match second {
            20..100 => 0,
            _ => 40_000,
        });
        let (_, written) = seconds[90];
        assert!(written <= 400, "{written} written while the exporter is dead");
        let (backlog, written) = seconds[150];
        assert!(backlog < 50_000 && written == 20_000, "{backlog} left, {written} written");
    }
}
