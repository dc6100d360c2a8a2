//! Feature levels: by which rules a partition works.
//!
//! The same commands must lead to the same records on every replica and at every replay, whichever build processes them.
//! Whatever changes what a command results in (a record more or less, a limit, the data of time zones, a function) is
//! therefore part of a level. Each partition is at one, in its replicated counters; a command raises it when all of its
//! replicas know the next one. A build keeps the rules of all levels.
//!
//! A rule that differs between levels is a field of [`Rules`]: a limit, or the choice among named alternatives of a step. The
//! alternative is chosen in one place, and each is written as if there were no other.

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

use crate::limits::Limits;

/// A level whose rules this build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeatureLevel(u32);

/// What belongs to a level.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The release of the time zone database with which expressions and timers compute.
    #[cfg_attr(not(test), expect(dead_code, reason = "one release comes with the program, and a test compares it"))]
    time_zones: &'static str,
    /// The release of Unicode by which expressions change cases and read names; a test there compares its tables.
    #[cfg_attr(not(test), expect(dead_code, reason = "one release comes with the program, and a test compares it"))]
    unicode: (u8, u8, u8),
    /// What a single command may do.
    pub limits: &'static Limits,
}

// Each level says what it changes of the one before. The rules of one that was released never change.

const LEVEL_1: Rules = Rules { time_zones: "2026e", unicode: (17, 0, 0), limits: &Limits::OF_LEVEL_1 };

/// All levels in order, from level 1.
static LEVELS: &[Rules] = &[LEVEL_1];

/// The one change of the test level, which shows in records of incidents.
const TEST_LIMITS: Limits = Limits { incident_message_bytes_max: 40, ..Limits::OF_LEVEL_1 };

static TEST_LEVEL: Rules = Rules { limits: &TEST_LIMITS, ..LEVEL_1 };

/// A level that is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Feature level {number} is not known: this build knows the levels up to {newest}. Use a build that knows it, at best the one \
     that raised the level."
)]
pub struct UnknownFeatureLevel {
    /// Its number.
    pub number: u32,
    /// The newest level that is known.
    pub newest: FeatureLevel,
}

impl FeatureLevel {
    /// The first level that there was.
    pub const OLDEST: FeatureLevel = FeatureLevel(1);
    /// The last one that this build knows.
    pub const NEWEST: FeatureLevel = FeatureLevel(1);
    /// A level for tests of raising levels: newer than all others, with one synthetic change. An engine knows it only when its
    /// [`EngineOptions`](crate::EngineOptions) say that it is the newest, which no production setting can.
    pub const TEST: FeatureLevel = FeatureLevel(u32::MAX);

    /// The level with this number.
    ///
    /// # Errors
    /// When this build does not know it.
    pub fn new(number: u32) -> Result<FeatureLevel, UnknownFeatureLevel> {
        Self::known_to(number, Self::NEWEST)
    }

    /// The level with this number, for a node whose newest level is `newest`.
    ///
    /// # Errors
    /// When that node does not know it.
    pub fn known_to(number: u32, newest: FeatureLevel) -> Result<FeatureLevel, UnknownFeatureLevel> {
        let level = FeatureLevel(number);
        let has_rules = (Self::OLDEST..=Self::NEWEST).contains(&level) || level == Self::TEST;
        if has_rules && level <= newest { Ok(level) } else { Err(UnknownFeatureLevel { number, newest }) }
    }

    /// All levels that this build knows, oldest first.
    pub fn all() -> impl Iterator<Item = FeatureLevel> {
        (Self::OLDEST.0..=Self::NEWEST.0).map(FeatureLevel)
    }

    /// Its number, from 1.
    pub const fn number(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn rules(self) -> &'static Rules {
        if self == Self::TEST { &TEST_LEVEL } else { &LEVELS[self.0 as usize - 1] }
    }
}

/// A partition begins at the newest one.
impl Default for FeatureLevel {
    fn default() -> Self {
        FeatureLevel::NEWEST
    }
}

impl std::fmt::Display for FeatureLevel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number().fmt(formatter)
    }
}

impl<C> Encode<C> for FeatureLevel {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        encoder.u32(self.number())?.ok()
    }
}

/// What was stored has rules here; whether the engine goes by them is looked at before.
impl<'b, C> Decode<'b, C> for FeatureLevel {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        FeatureLevel::known_to(decoder.u32()?, FeatureLevel::TEST)
            .map_err(|error| DecodeError::message(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbered_from_one_without_a_gap() {
        assert_eq!(FeatureLevel::NEWEST.number() as usize, LEVELS.len());
        for level in FeatureLevel::all() {
            assert_eq!(FeatureLevel::new(level.number()), Ok(level));
        }
    }

    #[test]
    fn a_level_of_a_newer_build_is_refused_by_name() {
        let newer = FeatureLevel::NEWEST.number() + 1;
        let error = FeatureLevel::new(newer).expect_err("unknown");
        assert!(error.to_string().starts_with(&format!("Feature level {newer} is not known")), "{error}");
        let stored = protocol::encode_to_vec(&newer);
        let error = protocol::decode::<FeatureLevel>(&stored).expect_err("unknown").to_string();
        assert!(error.contains("is not known"), "{error}");
        assert_eq!(FeatureLevel::new(0), Err(UnknownFeatureLevel { number: 0, newest: FeatureLevel::NEWEST }));
    }

    #[test]
    fn the_test_level_is_unknown_where_it_is_not_said_to_be_the_newest() {
        let number = FeatureLevel::TEST.number();
        let error = FeatureLevel::new(number).expect_err("production builds do not know it").to_string();
        assert!(error.starts_with(&format!("Feature level {number} is not known")), "{error}");
        assert_eq!(FeatureLevel::known_to(number, FeatureLevel::TEST), Ok(FeatureLevel::TEST));
    }

    /// Replicas with other zone data compute other times. Whoever takes newer data keeps the old one for the levels before.
    #[test]
    fn each_level_has_the_time_zones_that_come_with_the_program() {
        for level in FeatureLevel::all() {
            assert_eq!(Some(level.rules().time_zones), feel::zone::time_zone_data(), "of level {level}");
        }
    }

    #[test]
    fn each_level_has_the_tables_of_unicode_that_come_with_the_program() {
        for level in FeatureLevel::all() {
            assert_eq!(level.rules().unicode, feel::unicode::VERSION, "of level {level}");
        }
    }
}
