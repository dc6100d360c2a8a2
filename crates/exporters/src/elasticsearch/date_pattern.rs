//! The end of an index's name: when its records happened.

use std::fmt::Write;

use jiff::tz::TimeZone;
use protocol::Timestamp;

/// Letters of a pattern that stand for a part of the time, longest first where one begins like another.
const PARTS: &[(&str, Part)] =
    &[("yyyy", Part::Year), ("uuuu", Part::Year), ("MM", Part::Month), ("dd", Part::Day), ("HH", Part::Hour)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    Day,
    Hour,
    Other(char),
}

/// A pattern such as `yyyy-MM-dd`, in UTC. Nothing in it is finer than an hour.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DatePattern(Vec<Part>);

impl DatePattern {
    /// Reads it; an error is the rest of the sentence "the argument …".
    pub fn parse(pattern: &str) -> Result<DatePattern, &'static str> {
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            if let Some((letters, part)) = PARTS.iter().find(|(letters, _)| rest.starts_with(letters)) {
                parts.push(*part);
                rest = &rest[letters.len()..];
                if rest.starts_with(&letters[..1]) {
                    return Err("must be made of yyyy, MM, dd, HH, '-', '_' and '.', such as yyyy-MM-dd");
                }
            } else if matches!(first, '-' | '_' | '.') {
                parts.push(Part::Other(first));
                rest = &rest[1..];
            } else {
                return Err("must be made of yyyy, MM, dd, HH, '-', '_' and '.', such as yyyy-MM-dd");
            }
        }
        if !parts.contains(&Part::Year) {
            return Err("must have the year in it, such as yyyy-MM-dd, or indices of different years were one");
        }
        Ok(DatePattern(parts))
    }

    /// Appends the time in the pattern. What is out of the calendar is at its edge.
    pub fn write(&self, timestamp: Timestamp, out: &mut String) {
        let at = jiff::Timestamp::from_millisecond(timestamp).unwrap_or(match timestamp < 0 {
            true => jiff::Timestamp::MIN,
            false => jiff::Timestamp::MAX,
        });
        let at = at.to_zoned(TimeZone::UTC);
        for part in &self.0 {
            // Writing to a string cannot fail.
            let _ = match part {
                Part::Year => write!(out, "{:04}", at.year()),
                Part::Month => write!(out, "{:02}", at.month()),
                Part::Day => write!(out, "{:02}", at.day()),
                Part::Hour => write!(out, "{:02}", at.hour()),
                Part::Other(character) => write!(out, "{character}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_the_pattern() {
        for (pattern, expected) in
            [("yyyy-MM-dd", "2023-11-14"), ("uuuu.MM.dd_HH", "2023.11.14_22"), ("yyyyMM", "202311"), ("yyyy", "2023")]
        {
            let mut out = String::new();
            DatePattern::parse(pattern).expect(pattern).write(1_700_000_000_000, &mut out);
            assert_eq!(out, expected);
        }
        for wrong in ["", "MM-dd", "yy-MM-dd", "yyyyy", "yyyy-mm-dd", "yyyy/MM", "yyyy-MMM", "YYYY"] {
            assert!(DatePattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
