//! Tells single records that the target refuses from a target that refuses what it gets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use protocol::ValueType;

/// Fewer refused records are single ones.
const REFUSED_MIN: u64 = 100;
/// The answers of so long count, or of so many records if those are fewer.
const WINDOW: Duration = Duration::from_secs(60);
const WINDOW_RECORDS_MIN: u64 = 2 * REFUSED_MIN;

/// What the target did with records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answers {
    pub taken: u64,
    pub refused: u64,
}

impl Answers {
    fn total(self) -> u64 {
        self.taken + self.refused
    }

    fn and(self, other: Answers) -> Answers {
        Answers { taken: self.taken + other.taken, refused: self.refused + other.refused }
    }
}

/// Answers by the value type of the records.
pub(super) type AnswersByType = BTreeMap<u8, Answers>;

/// Too many are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    /// Of records of this type; none for records of all types.
    pub of: Option<ValueType>,
    /// The refused ones, with those before.
    pub answers: Answers,
    /// It was not so before.
    pub is_new: bool,
}

/// What the target did with the records of a partition lately, by value type because each has an index and a mapping of its own,
/// and with all of them.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    by_type: BTreeMap<u8, Recent>,
    all: Option<Recent>,
}

#[derive(Debug)]
struct Recent {
    since: Instant,
    now: Answers,
    before: Answers,
    /// Refused since one was taken last.
    in_a_row: u64,
    /// Refused records are kept until more of them are taken than refused.
    is_stopped: bool,
}

impl Refusals {
    /// Judges the answer to a request. Refused records may be set aside if nothing is returned; otherwise they must be kept.
    pub fn judge(&mut self, now: Instant, answers: &AnswersByType) -> Option<Stop> {
        let mut stop = self.all.get_or_insert_with(|| Recent::new(now)).judge(now, sum(answers), None);
        for (code, answers) in answers {
            let recent = self.by_type.entry(*code).or_insert_with(|| Recent::new(now));
            let of = ValueType::ALL.iter().copied().find(|of| *of as u8 == *code);
            // The type says more than that there are refusals.
            stop = recent.judge(now, *answers, of).or(stop);
        }
        stop
    }

    /// Counts what the target took and what was set aside. What comes again is counted then.
    pub fn count(&mut self, answers: &AnswersByType) {
        for (code, answers) in answers {
            self.by_type.entry(*code).and_modify(|recent| recent.count(*answers));
        }
        if let Some(recent) = &mut self.all {
            recent.count(sum(answers));
        }
    }
}

fn sum(answers: &AnswersByType) -> Answers {
    answers.values().fold(Answers::default(), |sum, answers| sum.and(*answers))
}

impl Recent {
    fn new(now: Instant) -> Recent {
        Recent { since: now, now: Answers::default(), before: Answers::default(), in_a_row: 0, is_stopped: false }
    }

    fn judge(&mut self, now: Instant, answers: Answers, of: Option<ValueType>) -> Option<Stop> {
        if now.saturating_duration_since(self.since) >= WINDOW && self.now.total() >= WINDOW_RECORDS_MIN {
            (self.before, self.now, self.since) = (self.now, Answers::default(), now);
        }
        // What is taken is not sent again: an equal share may be all that ever shows that the target takes records.
        if self.is_stopped && answers.taken > 0 && answers.taken >= answers.refused {
            *self = Recent::new(now);
        }
        let recent = self.before.and(self.now).and(answers);
        let is_every_one = answers.taken == 0 && self.in_a_row + answers.refused >= REFUSED_MIN;
        let is_most = recent.refused >= REFUSED_MIN && recent.refused >= recent.taken;
        let stops = answers.refused > 0 && (self.is_stopped || is_every_one || is_most);
        stops.then(|| {
            let is_new = !std::mem::replace(&mut self.is_stopped, true);
            Stop { of, answers: recent, is_new }
        })
    }

    fn count(&mut self, answers: Answers) {
        self.now = self.now.and(answers);
        self.in_a_row = if answers.taken == 0 { self.in_a_row + answers.refused } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: u8 = ValueType::Job as u8;
    const VARIABLE: u8 = ValueType::Variable as u8;

    fn answers(of: u8, taken: u64, refused: u64) -> AnswersByType {
        AnswersByType::from([(of, Answers { taken, refused })])
    }

    /// As a request whose refused records are set aside if they may be.
    fn answered(refusals: &mut Refusals, now: Instant, answers: &AnswersByType) -> Option<Stop> {
        let stop = refusals.judge(now, answers);
        if stop.is_none() {
            refusals.count(answers);
        }
        stop
    }

    #[test]
    fn single_refusals_never_stop_and_a_refused_bulk_does() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        for number in 0..10_000 {
            assert_eq!(answered(&mut refusals, start, &answers(JOB, 3, u64::from(number % 2 == 0))), None);
        }
        let stop = answered(&mut refusals, start, &answers(JOB, 0, 100)).expect("every one");
        assert!(stop.is_new && stop.of == Some(ValueType::Job), "{stop:?}");
        // It stays so, whatever time passes, until records of that type are taken again.
        let late = start + 10 * WINDOW;
        let stop = answered(&mut refusals, late, &answers(JOB, 0, 1)).expect("still");
        assert!(!stop.is_new);
        assert_eq!(answered(&mut refusals, late, &answers(VARIABLE, 9, 1)), None, "of another index");
        assert!(answered(&mut refusals, late, &answers(JOB, 1, 2)).is_some(), "most are refused");
        // A bulk may have shrunk to one record that is taken and one that never will be.
        assert_eq!(answered(&mut refusals, late, &answers(JOB, 1, 1)), None);
        assert_eq!(answered(&mut refusals, late, &answers(JOB, 0, 1)), None);
    }

    #[test]
    fn many_small_refusals_stop_at_any_rate() {
        for pause in [Duration::ZERO, WINDOW, 10 * WINDOW] {
            let (mut refusals, mut now, mut set_aside) = (Refusals::default(), Instant::now(), 0);
            let both = || {
                AnswersByType::from([
                    (JOB, Answers { taken: 0, refused: 1 }),
                    (VARIABLE, Answers { taken: 7, refused: 0 }),
                ])
            };
            while answered(&mut refusals, now, &both()).is_none() {
                (now, set_aside) = (now + pause, set_aside + 1);
                assert!(set_aside < REFUSED_MIN, "it never stops after pauses of {pause:?}");
            }
            assert_eq!(set_aside, REFUSED_MIN - 1);
        }
    }

    #[test]
    fn what_was_taken_before_hides_nothing() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        assert_eq!(answered(&mut refusals, start, &answers(JOB, 1_000_000, 0)), None);
        let stops_after = |refusals: &mut Refusals, now: Instant, taken: u64| {
            (1..2_000).find(|_| answered(refusals, now, &answers(JOB, taken, 2)).is_some())
        };
        assert_eq!(stops_after(&mut refusals, start, 0), Some(50), "a hundred in a row");
        assert_eq!(answered(&mut refusals, start, &answers(JOB, 1_000_000, 0)), None);
        assert_eq!(stops_after(&mut refusals, start, 1), None, "a few of many");
        assert_eq!(answered(&mut refusals, start + WINDOW, &answers(JOB, 1, 0)), None);
        assert_eq!(stops_after(&mut refusals, start + WINDOW, 1), None, "still");
        assert_eq!(stops_after(&mut refusals, start + 2 * WINDOW, 1), Some(1), "two of three, for a minute");
    }
}
