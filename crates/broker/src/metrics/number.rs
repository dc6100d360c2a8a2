//! Numbers for metrics.

/// Prometheus counts in floating point.
#[allow(clippy::cast_precision_loss, reason = "metrics tolerate it")]
pub(super) fn number(value: impl TryInto<u64>) -> f64 {
    value.try_into().unwrap_or(u64::MAX) as f64
}
