//! Where a date of a timer is told: a fixed offset from UTC, or a zone with rules for its clocks.
//!
//! The rules come with the program, as those of FEEL do, so that every replica computes the same.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use super::calendar::{DAYS_PER_CYCLE, SECONDS_PER_DAY};

/// Clocks are set by dates of the calendar, which repeats after this time. Outside of the years that the library
/// computes with, the rules are those of the same date some cycles nearer.
const SECONDS_PER_CYCLE: i64 = DAYS_PER_CYCLE * SECONDS_PER_DAY;

/// 9170-01-01 and its mirror image: with one cycle more, and any offset, still within the years of the library.
const NEAR_SECONDS: i64 = 18 * SECONDS_PER_CYCLE;

fn zones() -> &'static TimeZoneDatabase {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    ZONES.get_or_init(TimeZoneDatabase::bundled)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Seconds that clocks are ahead of UTC.
    Offset(i64),
    Named(TimeZone),
}

impl Zone {
    pub(super) const UTC: Zone = Zone::Offset(0);

    /// The zone with exactly this name in the zone database.
    pub(super) fn named(name: &str) -> Option<Zone> {
        let zone = zones().get(name).ok()?;
        let known = zone.iana_name() == Some(name) && name != "Etc/Unknown";
        known.then_some(Zone::Named(zone))
    }

    /// Seconds that clocks of the zone are ahead of UTC, at a second after 1970-01-01T00:00:00Z.
    pub(super) fn offset_at(&self, second: i64) -> Option<i64> {
        match self {
            Zone::Offset(offset) => Some(*offset),
            Zone::Named(zone) => {
                let instant = Timestamp::from_second(nearer(second)).ok()?;
                Some(i64::from(zone.to_offset(instant).seconds()))
            }
        }
    }

    /// The second at which clocks of the zone show `local`, itself counted as if they were clocks of UTC. Of two such
    /// seconds the one with the `preferred` offset, or else the first; a time that is left out when clocks are set
    /// forward is as much later as they are set.
    pub(super) fn second_of_local(&self, local: i64, preferred: i64) -> Option<i64> {
        let offset = match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(zone) => {
                let civil = Offset::UTC.to_datetime(Timestamp::from_second(nearer(local)).ok()?);
                match zone.to_ambiguous_timestamp(civil).offset() {
                    AmbiguousOffset::Unambiguous { offset } => i64::from(offset.seconds()),
                    AmbiguousOffset::Gap { before, .. } => i64::from(before.seconds()),
                    AmbiguousOffset::Fold { after, .. } if i64::from(after.seconds()) == preferred => preferred,
                    AmbiguousOffset::Fold { before, .. } => i64::from(before.seconds()),
                }
            }
        };
        local.checked_sub(offset)
    }
}

/// A second at the same place of the calendar that is not far from 1970.
fn nearer(second: i64) -> i64 {
    if second > NEAR_SECONDS {
        NEAR_SECONDS + (second - NEAR_SECONDS) % SECONDS_PER_CYCLE
    } else if second < -NEAR_SECONDS {
        -NEAR_SECONDS + (second + NEAR_SECONDS) % SECONDS_PER_CYCLE
    } else {
        second
    }
}
