//! The phases of a run with a surge, and when each creation is intended to be sent.

use std::time::Duration;

use serde::Serialize;

use crate::options::SurgeOptions;
use crate::schedule::Schedule;

/// A part of a run with one rate of creations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The normal rate, not measured.
    WarmUp,
    /// The normal rate.
    Normal,
    /// The highest sustainable rate.
    Peak,
    /// A multiple of it.
    Surge,
    /// The normal rate again.
    Afterwards,
}

impl Phase {
    /// In the order in which they come.
    pub(crate) const ALL: [Phase; 5] = [Phase::WarmUp, Phase::Normal, Phase::Peak, Phase::Surge, Phase::Afterwards];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Phase::WarmUp => "warm-up",
            Phase::Normal => "normal",
            Phase::Peak => "peak",
            Phase::Surge => "surge",
            Phase::Afterwards => "afterwards",
        }
    }
}

/// The phases in sequence. Creations are numbered through all of them.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    parts: [Part; Phase::ALL.len()],
}

#[derive(Clone, Copy, Debug)]
struct Part {
    schedule: Schedule,
    /// The number of its first creation.
    first: u64,
}

impl Plan {
    pub fn new(start: Duration, options: &SurgeOptions) -> Self {
        let mut start = start;
        let mut first = 0;
        let parts = Phase::ALL.map(|phase| {
            let (rate, length) = rate_and_length(phase, options);
            let schedule = Schedule { start, end: start + length, rate };
            let part = Part { schedule, first };
            start = schedule.end;
            first += schedule.total();
            part
        });
        Plan { parts }
    }

    /// All creations.
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.schedule.total()).sum()
    }

    /// How many creations are intended to have been sent by now.
    pub fn due(&self, now: Duration) -> u64 {
        self.parts.iter().map(|part| part.schedule.due(now)).sum()
    }

    /// The index of the phase to which a creation belongs.
    pub fn place_of(&self, number: u64) -> usize {
        self.parts.iter().rposition(|part| part.first <= number).unwrap_or(0)
    }

    pub fn intended(&self, number: u64) -> Duration {
        let part = &self.parts[self.place_of(number)];
        part.schedule.intended(number.saturating_sub(part.first))
    }

    /// The index of the phase at a time; none before the first and after the last.
    pub fn place_at(&self, time: Duration) -> Option<usize> {
        self.parts.iter().position(|part| part.schedule.start <= time && time < part.schedule.end)
    }

    /// The creations per second that a phase intends.
    pub fn rate(&self, phase: Phase) -> f64 {
        self.schedule(phase).rate
    }

    pub fn start(&self, phase: Phase) -> Duration {
        self.schedule(phase).start
    }

    pub fn end(&self, phase: Phase) -> Duration {
        self.schedule(phase).end
    }

    fn schedule(&self, phase: Phase) -> &Schedule {
        &self.parts[phase as usize].schedule
    }
}

fn rate_and_length(phase: Phase, options: &SurgeOptions) -> (f64, Duration) {
    let normal = options.rate * options.normal_share;
    match phase {
        Phase::WarmUp => (normal, options.warm_up),
        Phase::Normal | Phase::Afterwards => (normal, options.duration),
        Phase::Peak => (options.rate, options.surge_duration),
        Phase::Surge => (options.rate * options.factor, options.surge_duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Work;
    use crate::profile::Profile;

    #[test]
    fn every_creation_has_its_phase_and_its_time() {
        let options = SurgeOptions {
            rate: 100.0,
            factor: 10.0,
            normal_share: 0.5,
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(2),
            surge_duration: Duration::from_secs(3),
            ..SurgeOptions::new(Work::new(Profile::OneTask), 100.0, 10.0)
        };
        let start = Duration::from_millis(250);
        let plan = Plan::new(start, &options);
        assert_eq!(plan.total(), 50 + 100 + 300 + 3_000 + 100);
        assert_eq!(plan.due(Duration::ZERO), 0);
        assert_eq!(plan.due(plan.end(Phase::Afterwards)), plan.total());
        let mut before = start;
        for number in 0..plan.total() {
            let intended = plan.intended(number);
            assert!(intended >= before, "creation {number}");
            assert!(plan.due(intended + Duration::from_nanos(1)) > number, "creation {number} is due at its time");
            assert_eq!(plan.place_at(intended), Some(plan.place_of(number)), "creation {number}");
            before = intended;
        }
        assert_eq!(plan.place_of(449), Phase::Peak as usize);
        assert_eq!(plan.place_of(450), Phase::Surge as usize);
        assert_eq!(plan.start(Phase::Surge), start + Duration::from_secs(6));
        assert_eq!(plan.place_at(plan.end(Phase::Afterwards)), None);
    }
}
