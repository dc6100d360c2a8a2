//! How long after a surge latencies are back to what they were.

use serde::Serialize;

use crate::figures::Quantiles;

/// How many seconds in a row must be normal.
const CALM_SECONDS: usize = 5;
/// A second is normal if its 99th percentile is within this multiple of the normal one,
const NORMAL_FACTOR: f64 = 2.0;
/// or exceeds it by at most this.
const NORMAL_MARGIN_MILLISECONDS: f64 = 10.0;

/// When latencies were normal again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// A second is normal when the 99th percentile of the process latency of what completed in it is at most this, in
    /// milliseconds: twice that of the normal phase, or 10 ms more.
    pub limit: f64,
    /// From the end of the surge to the first of five normal seconds in a row; none when they did not come.
    pub seconds: Option<u64>,
    /// Seconds after those five that were not normal.
    pub later_seconds_beyond: usize,
    /// Seconds of the normal phase that were not.
    pub normal_seconds_beyond: usize,
    /// All seconds of the normal phase.
    pub normal_seconds: usize,
}

/// The 99th percentile of one second in milliseconds; none when nothing completed.
pub(super) type OfSecond = Option<f64>;

impl Recovery {
    pub(super) fn find(normal: &Quantiles, normal_seconds: &[OfSecond], seconds_after: &[OfSecond]) -> Recovery {
        let limit = (normal.p99 * NORMAL_FACTOR).max(normal.p99 + NORMAL_MARGIN_MILLISECONDS);
        let is_normal = |second: &OfSecond| second.is_some_and(|p99| p99 <= limit);
        let beyond = |seconds: &[OfSecond]| seconds.iter().filter(|second| !is_normal(second)).count();
        let first = seconds_after.windows(CALM_SECONDS).position(|seconds| seconds.iter().all(is_normal));
        Recovery {
            limit,
            seconds: first.map(|first| first as u64),
            later_seconds_beyond: first.map_or(0, |first| beyond(&seconds_after[first + CALM_SECONDS..])),
            normal_seconds_beyond: beyond(normal_seconds),
            normal_seconds: normal_seconds.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(after: &[f64]) -> Recovery {
        let seconds = |values: &[f64]| values.iter().map(|value| Some(*value)).collect::<Vec<_>>();
        let normal = Quantiles { p99: 20.0, ..Quantiles::default() };
        Recovery::find(&normal, &seconds(&[10.0, 50.0]), &seconds(after))
    }

    #[test]
    fn five_normal_seconds_in_a_row_are_a_recovery() {
        let found = find(&[900.0, 45.0, 40.0, 41.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 70.0]);
        assert!((found.limit - 40.0).abs() < 1e-9);
        assert_eq!((found.seconds, found.later_seconds_beyond), (Some(4), 1));
        assert_eq!((found.normal_seconds_beyond, found.normal_seconds), (1, 2));
        assert_eq!(find(&[1.0; 5]).seconds, Some(0));
        assert_eq!(find(&[1.0, 1.0, 90.0, 1.0, 1.0, 1.0, 1.0]).seconds, None);
        assert_eq!(find(&[]).seconds, None);
    }

    #[test]
    fn a_second_without_completions_is_not_normal() {
        let normal = Quantiles { p99: 2.0, ..Quantiles::default() };
        let found = Recovery::find(&normal, &[], &[None, Some(11.0), Some(12.0)]);
        assert_eq!((found.limit, found.seconds), (12.0, None));
        let seconds = [11.0, 12.0, 11.0, 12.0, 11.0].map(Some);
        assert_eq!(Recovery::find(&normal, &[], &seconds).seconds, Some(0));
        // A run that ends too early shows no recovery.
        assert_eq!(Recovery::find(&normal, &[], &seconds[..4]).seconds, None);
    }
}
