//! The clock, for tests of processes.

use std::sync::Arc;

use broker::Clock;
use hyper::StatusCode;
use protocol::Timestamp;

use super::object::{Object, Violations};
use super::problem::Problem;
use crate::rest::no_answer::NoAnswer;

/// Milliseconds of the last moment that every time zone has within the year 9999.
const LATEST: Timestamp = 253_402_207_200_999;

/// The time at which the clock is to stand still.
pub(super) fn pin(body: &[u8]) -> Result<Timestamp, NoAnswer> {
    let mut object = Object::read(body)?;
    let timestamp: Option<Timestamp> = object.take("timestamp")?;
    object.finish()?;
    let mut violations = Violations::default();
    if timestamp.is_some_and(|timestamp| !(0..=LATEST).contains(&timestamp)) {
        violations.add(format!(
            "The value for timestamp is '{}' but must be >= 0 and <= {LATEST}.",
            timestamp.unwrap_or_default()
        ));
    }
    let timestamp = violations.require("timestamp", timestamp);
    violations.check()?;
    Ok(timestamp)
}

/// # Errors
/// When the clock must not be changed.
pub(super) fn change(clock: &Arc<Clock>, pinned: Option<Timestamp>) -> Result<(), Problem> {
    let changed = match pinned {
        Some(timestamp) => clock.pin(timestamp),
        None => clock.reset(),
    };
    changed.map_err(|_| {
        let detail = "The clock of this node cannot be controlled. Start it with --clock-control to allow it.";
        Problem { title: "FORBIDDEN".into(), ..Problem::new(StatusCode::FORBIDDEN, detail) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_the_calendar() {
        assert_eq!(pin(br#"{"timestamp":1735787045000}"#).unwrap(), 1_735_787_045_000);
        for (body, sentence) in [
            ("", "No timestamp provided."),
            ("{}", "No timestamp provided."),
            (r#"{"timestamp":-1}"#, "The value for timestamp is '-1' but must be >= 0"),
            (r#"{"timestamp":253402207201000}"#, "The value for timestamp is '253402207201000'"),
            (r#"{"timestamp":"now"}"#, "Request property [timestamp]"),
        ] {
            let Err(NoAnswer::Problem(problem)) = pin(body.as_bytes()) else { panic!("{body}") };
            assert!(problem.detail.starts_with(sentence), "{problem:?}");
        }
    }

    #[test]
    fn only_a_clock_that_allows_it_is_changed() {
        let clock = Arc::new(Clock::new(true));
        change(&clock, Some(5)).unwrap();
        assert_eq!((clock.is_pinned(), clock.now_milliseconds()), (true, 5));
        change(&clock, None).unwrap();
        assert!(!clock.is_pinned());
        let problem = change(&Arc::new(Clock::new(false)), Some(5)).unwrap_err();
        assert_eq!((problem.status.as_u16(), &*problem.title), (403, "FORBIDDEN"));
    }
}
