//! Compares the evaluation of random decisions with the reference's decision engine: outputs, failures, and what is
//! reported of every evaluated decision.

mod difference;
mod generator;
mod model;
mod ours;

use std::path::Path;

use serde_json::Value;

use crate::line_by_line::{self, Comparison, Failure, KnownReasons};
use crate::reference::Launch;
use generator::{Case, Generator};

/// Why decisions are known to differ.
const KNOWN: &str = include_str!("../known-table-differences.txt");

/// Outcomes of the reference, for a comparison without it: in each line the fingerprint of a request and its answer.
const STORED: &str = "tests/table-outcomes.txt";
/// The seed of the first of them.
const STORED_SEED: u64 = 1;

fn request(seed: u64) -> String {
    let Case { model, decision, variables } = Generator::new(seed).case();
    Value::from(vec![model.write(), decision, variables]).to_string()
}

/// Compares this many models, each with its own seed; returns whether all agree except for known reasons. What is known is
/// shown only if asked for.
///
/// # Errors
/// When the reference cannot be asked.
pub fn compare(launch: &Launch, count: usize, seed: u64, with_known: bool) -> Result<bool, Failure> {
    let seeds = || (seed..).take(count);
    let answers = line_by_line::answers(launch, "Decisions", seeds().map(request).collect())?;
    let (comparison, counts) = judge(seeds().zip(answers.iter().map(String::as_str)))?;
    if count == 1 {
        println!("{}\n{}", Generator::new(seed).case().model.write(), answers.join("\n"));
    }
    let agrees = comparison.agrees();
    comparison.print("decisions", with_known);
    println!("{}", counts.shown());
    Ok(agrees)
}

/// Compares the answers of the reference for the models of these seeds with ours.
fn judge<'a>(answers: impl Iterator<Item = (u64, &'a str)>) -> Result<(Comparison, Counts), Failure> {
    let known = KnownReasons::read(KNOWN)?;
    let mut comparison = Comparison::default();
    let mut counts = Counts::default();
    for (seed, theirs) in answers {
        let case = Generator::new(seed).case();
        let ours = ours::outcome(&case.model.write(), &case.decision, &case.variables);
        counts.add(&ours);
        match difference::find(&case, &serde_json::from_str(theirs)?, &ours) {
            None => comparison.agree(),
            Some(found) => {
                let Case { decision, variables, .. } = &case;
                let again = format!("\n    of {decision} with {variables}, TABLES=1 SEED={seed}");
                comparison.differ(&known, &found.case, [&found.theirs, &found.ours], &again);
            }
        }
    }
    Ok((comparison, counts))
}

/// Stores what the reference says about this many models.
///
/// # Errors
/// When the reference cannot be asked, or the file not written.
pub fn store(launch: &Launch, count: usize) -> Result<(), Failure> {
    let requests: Vec<String> = (STORED_SEED..).take(count).map(request).collect();
    let fingerprints: Vec<u64> = requests.iter().map(|request| fingerprint(request)).collect();
    let answers = line_by_line::answers(launch, "Decisions", requests)?;
    let lines = fingerprints.iter().zip(answers).map(|(fingerprint, answer)| format!("{fingerprint:016x} {answer}\n"));
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(STORED), lines.collect::<String>())?;
    Ok(())
}

/// How many stored outcomes there are, and which are not ours for a reason that is not known.
///
/// # Errors
/// When they cannot be read, or are those of other models than the generator makes.
pub fn differences_from_stored() -> Result<(usize, Vec<String>), Failure> {
    let stored = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(STORED))?;
    let mut answers = Vec::new();
    for (seed, line) in (STORED_SEED..).zip(stored.lines()) {
        let (stored, answer) = line.split_once(' ').ok_or_else(|| format!("{STORED}: the line of {seed} is empty"))?;
        if stored != format!("{:016x}", fingerprint(&request(seed))) {
            let remedy = "UPDATE_EXPECTATIONS=1 make differential TABLES=COUNT asks the reference again";
            return Err(format!("{STORED}: the outcome of {seed} is that of another model; {remedy}").into());
        }
        answers.push((seed, answer));
    }
    let (comparison, _) = judge(answers.iter().copied())?;
    Ok((answers.len(), comparison.unexplained()))
}

/// A hash that stays the same (FNV-1a).
fn fingerprint(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// How many outcomes were of which kind, so that a generator that makes only failures is noticed.
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
