//! The search for the highest sustainable rate.

use std::time::Duration;

use serde::Serialize;

use crate::error::LoadError;
use crate::figures::MessageCounts;
use crate::options::MaximumOptions;
use crate::session::Session;
use crate::trial::{RateReport, TrialPlan};

const LEAST_ACHIEVED: f64 = 0.98;
const LARGEST_GROWTH: f64 = 0.02;
/// This many may be missing at any rate: at a low rate they are merely in flight at the end.
const SPARED_INSTANCES: f64 = 3.0;
const TRIALS_LIMIT: usize = 24;
const CONFIRMATIONS_LIMIT: usize = 5;
/// A rate that fails its confirmation is lowered by this factor.
const LOWER_BY: f64 = 0.95;
const LOWEST_RATE: f64 = 1.0;

/// The highest sustainable rate and how it was found.
#[derive(Clone, Debug, Serialize)]
pub struct MaximumReport {
    /// What made a rate sustainable, in words.
    pub criterion: String,
    /// Instances per second; zero when no rate held.
    pub sustainable_rate: f64,
    /// Every trial in its order.
    pub trials: Vec<Trial>,
    /// The full figures at the sustainable rate.
    pub confirmation: Option<Box<RateReport>>,
}

/// One trial of the search.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Instances per second that were tried.
    pub rate: f64,
    /// Instances per second that completed.
    pub completed_per_second: f64,
    /// 99th percentile of the overhead in milliseconds.
    pub overhead_p99: f64,
    /// Outstanding instances at the start and at the end.
    pub outstanding: (usize, usize),
    /// Why the rate is not sustainable, if it is not.
    pub failed: Option<String>,
    /// What became of the messages, if there are any.
    pub messages: Option<MessageCounts>,
}

/// Doubles from a start until a rate fails, then bisects.
#[derive(Debug)]
pub(crate) struct Search {
    next: f64,
    held: Option<f64>,
    failed: Option<f64>,
    resolution: f64,
    trials_left: usize,
}

impl Search {
    pub fn new(start: f64, resolution: f64) -> Self {
        Search { next: start, held: None, failed: None, resolution, trials_left: TRIALS_LIMIT }
    }

    /// The next rate to try, or none when the search is over.
    pub fn next(&self) -> Option<f64> {
        let close_enough = match (self.held, self.failed) {
            (Some(held), Some(failed)) => failed - held <= held * self.resolution,
            (None, Some(failed)) => failed <= LOWEST_RATE,
            (_, None) => false,
        };
        (self.trials_left > 0 && !close_enough).then_some(self.next)
    }

    pub fn record(&mut self, rate: f64, sustainable: bool) {
        self.trials_left = self.trials_left.saturating_sub(1);
        if sustainable {
            self.held = Some(self.held.map_or(rate, |held| held.max(rate)));
        } else {
            self.failed = Some(self.failed.map_or(rate, |failed| failed.min(rate)));
        }
        self.next = match (self.held, self.failed) {
            (Some(held), Some(failed)) => (held + failed) / 2.0,
            (Some(held), None) => held * 2.0,
            (None, Some(failed)) => failed / 2.0,
            (None, None) => rate,
        };
    }

    /// The highest rate that held.
    pub fn held(&self) -> Option<f64> {
        self.held
    }
}

/// Says why a rate is not sustainable.
pub(crate) fn judge(report: &RateReport, options: &MaximumOptions) -> Option<String> {
    let target = report.target_rate;
    if report.seconds < options.trial.as_secs_f64() * 0.99 {
        return Some(format!(
            "given up after {:.1} s with {} instances outstanding",
            report.seconds, report.outstanding_at_end
        ));
    }
    let least = LEAST_ACHIEVED * target * report.seconds - SPARED_INSTANCES;
    if (report.sum.completed as f64) < least {
        return Some(format!("{:.0} of {target:.0} instances/s completed", report.sum.completed_per_second));
    }
    let growth = report.outstanding_at_end.saturating_sub(report.outstanding_at_start);
    let growth_limit = (target * report.seconds * LARGEST_GROWTH).max(10.0);
    if growth as f64 > growth_limit {
        return Some(format!("the backlog grew by {growth} instances"));
    }
    let limit = options.overhead_limit.as_secs_f64() * 1e3;
    if report.sum.overhead.p99 > limit {
        return Some(format!("the 99th percentile of the overhead is {:.0} ms", report.sum.overhead.p99));
    }
    None
}

fn criterion(options: &MaximumOptions) -> String {
    format!(
        "completed at least {:.0} % of the target rate, backlog growth at most {:.0} % of the instances, \
         99th percentile of the overhead at most {} ms",
        LEAST_ACHIEVED * 100.0,
        LARGEST_GROWTH * 100.0,
        options.overhead_limit.as_millis()
    )
}

impl Session {
    /// Searches the highest sustainable rate and confirms it with a longer run.
    pub async fn maximum(&self, options: &MaximumOptions) -> Result<MaximumReport, LoadError> {
        let mut search = Search::new(options.start_rate, options.resolution);
        let mut trials = Vec::new();
        while let Some(rate) = search.next() {
            let (_, failed) = self.attempt(rate, options.trial, options, &mut trials).await?;
            search.record(rate, failed.is_none());
        }
        let mut confirmation = None;
        let mut rate = search.held();
        for _ in 0..CONFIRMATIONS_LIMIT {
            let Some(candidate) = rate else { break };
            let (report, failed) = self.attempt(candidate, options.duration, options, &mut trials).await?;
            if failed.is_none() {
                confirmation = Some(Box::new(report));
                break;
            }
            rate = Some(candidate * LOWER_BY);
        }
        Ok(MaximumReport {
            criterion: criterion(options),
            sustainable_rate: confirmation.as_ref().map_or(0.0, |report| report.target_rate),
            trials,
            confirmation,
        })
    }

    async fn attempt(
        &self,
        rate: f64,
        duration: Duration,
        options: &MaximumOptions,
        trials: &mut Vec<Trial>,
    ) -> Result<(RateReport, Option<String>), LoadError> {
        if self.progress {
            eprintln!("trying {rate:.0} instances/s for {} s", duration.as_secs());
        }
        let report = self
            .trial(&TrialPlan {
                rate,
                warm_up: options.warm_up,
                duration,
                drain_limit: options.drain_limit,
                give_up_when_overloaded: Some(options.work.lasts()),
            })
            .await?;
        let judged = MaximumOptions { trial: duration, ..options.clone() };
        let failed = judge(&report, &judged);
        if self.progress {
            let verdict = failed.as_deref().unwrap_or("sustainable");
            eprintln!("{rate:.0} instances/s: {verdict}");
        }
        trials.push(Trial {
            rate,
            completed_per_second: report.sum.completed_per_second,
            overhead_p99: report.sum.overhead.p99,
            outstanding: (report.outstanding_at_start, report.outstanding_at_end),
            failed: failed.clone(),
            messages: report.messages,
        });
        Ok((report, failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches against a server that holds every rate up to its capacity.
    fn search(capacity: f64, start: f64) -> (Option<f64>, usize) {
        let mut search = Search::new(start, 0.05);
        let mut trials = 0;
        while let Some(rate) = search.next() {
            trials += 1;
            search.record(rate, rate <= capacity);
        }
        (search.held(), trials)
    }

    #[test]
    fn the_search_comes_close_to_the_capacity_from_both_sides() {
        for capacity in [3.0, 47.0, 554.0, 5_321.0, 60_000.0] {
            for start in [1.0, 500.0, 100_000.0] {
                let (held, trials) = search(capacity, start);
                let held = held.expect("some rate holds");
                assert!(held <= capacity, "{held} of {capacity} from {start}");
                assert!(held >= capacity / 1.051, "{held} of {capacity} from {start}");
                assert!(trials <= TRIALS_LIMIT, "{trials} trials");
            }
        }
        let (_, trials) = search(5_321.0, 500.0);
        assert!(trials <= 10, "{trials} trials");
    }

    #[test]
    fn the_search_ends_when_nothing_holds() {
        assert_eq!(search(0.0, 500.0).0, None);
    }

    #[test]
    fn the_search_ends_when_everything_holds() {
        let (held, trials) = search(f64::INFINITY, 500.0);
        assert!(held.is_some() && trials == TRIALS_LIMIT, "{held:?} after {trials}");
    }
}
