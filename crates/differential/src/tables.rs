//! Compares the evaluation of random decisions with the reference's decision engine: outputs, failures, and what is
//! reported of every evaluated decision.

mod difference;
mod generator;
mod model;
mod ours;

use serde_json::Value;

use crate::line_by_line::{self, Comparison, Failure, KnownReasons};
use crate::reference::Launch;
use generator::{Case, Generator};

/// Why decisions are known to differ.
const KNOWN: &str = include_str!("../known-table-differences.txt");

/// Compares so many models, each with a seed of its own; whether all agree but for reasons that are known. What is known is shown
/// only if asked for.
///
/// # Errors
/// When the reference cannot be asked.
pub fn compare(launch: &Launch, count: usize, seed: u64, with_known: bool) -> Result<bool, Failure> {
    let known = KnownReasons::read(KNOWN)?;
    let seeds = || (seed..).take(count);
    let request = |seed: u64| {
        let Case { model, decision, variables } = Generator::new(seed).case();
        Value::from(vec![model.write(), decision, variables]).to_string()
    };
    let answers = line_by_line::answers(launch, "Decisions", seeds().map(request).collect())?;
    let mut comparison = Comparison::default();
    let mut counts = Counts::default();
    for (seed, theirs) in seeds().zip(&answers) {
        let case = Generator::new(seed).case();
        let file = case.model.write();
        let ours = ours::outcome(&file, &case.decision, &case.variables);
        let theirs: Value = serde_json::from_str(theirs)?;
        counts.add(&ours);
        match difference::find(&case, &theirs, &ours) {
            None => comparison.agree(),
            Some(found) => {
                let Case { decision, variables, .. } = &case;
                let again = format!("\n    of {decision} with {variables}, TABLES=1 SEED={seed}");
                comparison.differ(&known, &found.case, [&found.theirs, &found.ours], &again);
                if count == 1 {
                    println!("{file}\n{theirs}\n{ours}");
                }
            }
        }
    }
    let agrees = comparison.agrees();
    comparison.print("decisions", with_known);
    println!("{}", counts.shown());
    Ok(agrees)
}

/// How many outcomes were of which kind, so that a generator that makes only failures is seen.
#[derive(Default)]
struct Counts {
    refused: usize,
    failed: usize,
    evaluated: usize,
    matched_rules: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Value) {
        if !outcome["invalid"].is_null() {
            self.refused += 1;
            return;
        }
        self.failed += usize::from(!outcome["failure"].is_null());
        let evaluated = outcome["evaluated"].as_array().map_or(&[][..], Vec::as_slice);
        self.evaluated += evaluated.len();
        let rules = evaluated.iter().filter_map(|decision| decision["rules"].as_array()).map(Vec::len);
        self.matched_rules += rules.sum::<usize>();
    }

    fn shown(&self) -> String {
        let Counts { refused, failed, evaluated, matched_rules } = self;
        format!("{refused} refused, {failed} failed, {evaluated} decisions evaluated, {matched_rules} rules matched")
    }
}
