//! Moments as the protocol writes them.

use jiff::{Span, SpanRelativeTo, Timestamp};

/// The text of a moment, to the millisecond, in UTC. One beyond the years that a date can name is the last of those, or the first.
pub fn instant(milliseconds: i64) -> String {
    let timestamp = Timestamp::from_millisecond(milliseconds);
    let timestamp = timestamp.unwrap_or(if milliseconds > 0 { Timestamp::MAX } else { Timestamp::MIN });
    format!("{timestamp:.3}")
}

/// The milliseconds of a date and time with an offset (RFC 3339, section 5.6).
pub fn moment(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|timestamp| timestamp.as_millisecond())
}

/// The milliseconds of a duration (ISO 8601), where a day has 24 hours; none for months and years, which have no length.
pub fn duration(text: &str) -> Option<i64> {
    let span: Span = text.strip_prefix('P').and_then(|_| text.parse().ok())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    i64::try_from(duration.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read() {
        assert_eq!(instant(1_763_700_000_120), "2025-11-21T04:40:00.120Z");
        assert_eq!(instant(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(instant(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(moment("2025-11-21T05:40:00.12+01:00"), Some(1_763_700_000_120));
        for wrong in ["", "yesterday", "2025-11-21", "2025-11-21T05:40:00"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, milliseconds) in [("PT1M", 60_000), ("P1DT1H", 90_000_000), ("PT0.5S", 500)] {
            assert_eq!(duration(text), Some(milliseconds), "{text}");
        }
        for wrong in ["", "P", "5m", "P1M", "P1Y", "PT"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
