//! When a node of a cluster is called ready.

use std::time::{Duration, Instant};

/// How long a node reaches no leader until it is called unready. An election takes much less, and an orchestrator must not
/// take a node out of service for that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was seen of a node, and what is made of it.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    is_ready: bool,
    /// Since when it cannot serve, as far as it was seen.
    trouble_since: Option<Instant>,
}

impl Readiness {
    /// Whether the node is ready, now that it is seen like this: at once when it can serve, and until it could not for some
    /// time without a break.
    pub(crate) fn observe(&mut self, can_serve: bool, now: Instant) -> bool {
        if can_serve {
            *self = Readiness { is_ready: true, trouble_since: None };
        } else {
            let since = *self.trouble_since.get_or_insert(now);
            self.is_ready &= now.saturating_duration_since(since) < PATIENCE;
        }
        self.is_ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_trouble_is_not_told() {
        let begin = Instant::now();
        let mut readiness = Readiness::default();
        let mut at =
            |milliseconds, can_serve| readiness.observe(can_serve, begin + Duration::from_millis(milliseconds));
        assert!(!at(0, false), "it was never ready");
        assert!(at(100, true));
        assert!(at(200, false));
        assert!(at(5_100, false));
        assert!(at(5_150, true), "it is over");
        assert!(at(5_200, false));
        assert!(at(10_199, false), "another one begins");
        assert!(!at(10_200, false));
        assert!(!at(20_000, false));
        assert!(at(20_001, true), "ready again at once");
    }
}
