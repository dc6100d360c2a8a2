//! Times as the API writes them.

use jiff::Timestamp;

/// How long it is from one time to another, for people.
pub(super) fn passed(from: &str, to: &str) -> String {
    match milliseconds(from, to) {
        None => "an unknown time".to_owned(),
        Some(passed) if passed < 10_000 => format!("{passed} ms"),
        Some(passed) if passed < 600_000 => format!("{} s", passed / 1_000),
        Some(passed) if passed < 36_000_000 => format!("{} min", passed / 60_000),
        Some(passed) => format!("{} h", passed / 3_600_000),
    }
}

/// How many milliseconds it is from one time to another.
pub(super) fn milliseconds(from: &str, to: &str) -> Option<i64> {
    let moment = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond);
    Some(moment(to)? - moment(from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let since = |to: &str| passed("2026-11-24T20:21:59.350Z", to);
        assert_eq!(since("2026-11-24T20:21:59.362Z"), "12 ms");
        assert_eq!(since("2026-11-24T20:22:59.350Z"), "60 s");
        assert_eq!(since("2026-11-24T21:21:59.350Z"), "60 min");
        assert_eq!(since("2026-11-26T20:21:59.350Z"), "48 h");
        assert_eq!(since("soon"), "an unknown time");
        assert_eq!(milliseconds("2026-11-24T20:21:59.350Z", "2026-11-24T20:21:59.349Z"), Some(-1));
    }
}
