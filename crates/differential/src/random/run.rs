//! Runs a random model on both sides at once.

use std::collections::{BTreeMap, BTreeSet};

use super::choice::Chooser;
use chance::Chance;

use super::{Features, known, model};
use crate::compare::{KnownDifferences, show, show_reasons};
use crate::driver::{Driver, DriverError};
use crate::model::{Item, Model};
use crate::scenario::Files;
use crate::session::Session;
use crate::step::Step;

const FILE: &str = "random.bpmn";
/// The decisions that business rule tasks of the models call, which are deployed with them.
const DECISIONS_FILE: &str = "decisions.dmn";
const DECISIONS: &str = include_str!("decisions.dmn");
const STEPS_MAX: usize = 40;
/// How often listeners that hold up a cancellation are completed at the end.
const LISTENER_ROUNDS_MAX: usize = 3;

/// The two sides of a comparison.
pub struct Sides<'a> {
    /// The reference.
    pub reference: &'a mut dyn Driver,
    /// Ours.
    pub ours: &'a mut dyn Driver,
    /// The intended differences.
    pub known: &'a KnownDifferences,
}

/// A model and what is done with it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The model.
    pub model: Model,
    /// The steps after the deployment.
    pub steps: Vec<Step>,
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The case, with no step after the one that differs.
    pub case: Case,
    /// Both sides of the step that differs.
    pub shown: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "model {FILE}")?;
        for line in self.case.model.to_string().lines() {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "\n> {}", deployment())?;
        self.case.steps.iter().try_for_each(|step| writeln!(f, "> {step}"))?;
        writeln!(f, "\n  reference -, ours +\n{}", self.shown)
    }
}

fn deployment() -> Step {
    Step::Deploy { files: vec![DECISIONS_FILE.to_owned(), FILE.to_owned()] }
}

fn files(model: &Model) -> Files {
    // A model that the generator or the shrinking made wrong cannot be deployed, on both sides alike.
    let xml = model.to_xml().unwrap_or_default();
    let inline = [(FILE, xml.as_str()), (DECISIONS_FILE, DECISIONS)];
    let inline = inline.map(|(name, content)| (name.to_owned(), content.as_bytes().to_owned()));
    Files { inline: BTreeMap::from(inline), ..Files::default() }
}

/// How the sides have taken a step.
enum Taken {
    /// In the same way.
    Same,
    /// In another way, for a reason that is known.
    Known(&'static str),
    /// In another way.
    Differs(String),
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How the sides differ, if they do.
    pub finding: Option<Finding>,
    /// The known reason why they differ, which ended the run early.
    pub known: Option<&'static str>,
    /// Steps that were taken.
    pub steps: usize,
}

/// Both sides of one run.
struct Pair<'a> {
    reference: Session<'a>,
    ours: Session<'a>,
    known: &'a KnownDifferences,
}

impl<'a> Pair<'a> {
    fn new(sides: &'a mut Sides<'_>, files: &'a Files) -> Result<Self, DriverError> {
        Ok(Pair {
            reference: Session::new(sides.reference, files)?,
            ours: Session::new(sides.ours, files)?,
            known: sides.known,
        })
    }

    /// Takes a step on both sides; returns how they differ.
    fn take(&mut self, model: &Model, step: &Step) -> Result<Taken, DriverError> {
        let reference = self.known.expected(self.reference.take(step)?);
        let ours = self.ours.take(step)?;
        if reference == ours {
            return Ok(Taken::Same);
        }
        Ok(match known::reason(model, step, &reference, &ours) {
            Some(reason) => Taken::Known(reason),
            None => Taken::Differs(show(&reference, &ours) + &show_reasons(&self.reference.reason, &self.ours.reason)),
        })
    }
}

/// Runs the model of a seed.
///
/// # Errors
/// When a side is gone.
pub fn run(sides: &mut Sides<'_>, seed: u64, features: &Features) -> Result<Outcome, DriverError> {
    let mut random = Chance::new(seed);
    let model = model::generate(&mut random, features);
    let files = files(&model);
    let mut pair = Pair::new(sides, &files)?;
    let mut steps = Vec::new();
    let deploy = deployment();
    if let Taken::Differs(shown) = pair.take(&model, &deploy)? {
        let finding = Some(Finding { case: Case { model, steps }, shown });
        return Ok(Outcome { finding, known: None, steps: 1 });
    }
    if pair.reference.tracker.definitions.is_empty() {
        // Both sides refuse the model: nothing can be done with it.
        return Ok(Outcome { steps: 1, ..Outcome::default() });
    }
    let targets = if features.has("modify") { modification_targets(&model) } else { BTreeMap::new() };
    let choices = choices(&model);
    let with_listeners = updated_with_listeners(&model);
    let mut chooser = Chooser { random: &mut random, now: crate::START_MILLISECONDS, targets, choices, with_listeners };
    let mut planned = Vec::new();
    let mut listener_rounds = 0;
    while steps.len() < STEPS_MAX || !planned.is_empty() {
        let step = planned.pop().unwrap_or_else(|| chooser.next(&pair.reference.tracker));
        if let Step::Time { milliseconds } = &step {
            chooser.now += milliseconds;
        }
        steps.push(step.clone());
        let in_step = |error: DriverError| {
            // The side is gone, so the case cannot be made smaller.
            let case = Case { model: model.clone(), steps: steps.clone() };
            let shown = format!("seed {seed}:\n\n{}", Finding { case, shown: String::new() });
            DriverError { problem: format!("{} (in the last step of {shown})", error.problem), ..error }
        };
        match pair.take(&model, &step).map_err(in_step)? {
            Taken::Same => {}
            Taken::Known(reason) => return Ok(Outcome { known: Some(reason), steps: steps.len(), finding: None }),
            Taken::Differs(shown) => {
                let count = steps.len();
                let finding = Some(Finding { case: Case { model, steps }, shown });
                return Ok(Outcome { finding, known: None, steps: count });
            }
        }
        if steps.len() == STEPS_MAX {
            planned = Chooser::cleanup(&pair.reference.tracker);
        } else if steps.len() > STEPS_MAX && planned.is_empty() && listener_rounds < LISTENER_ROUNDS_MAX {
            listener_rounds += 1;
            planned = Chooser::last_listeners(&pair.reference.tracker);
        }
    }
    Ok(Outcome { steps: steps.len(), ..Outcome::default() })
}

/// What modifications may begin, by process. Tokens that wait at joins are counted differently afterwards
/// (docs/conformance.md), so that models with joins are not modified.
fn modification_targets(model: &Model) -> BTreeMap<String, Vec<String>> {
    fn collect(items: &[Item], targets: &mut Vec<String>, has_joins: &mut bool) {
        for item in items {
            match item.keyword.as_str() {
                "parallel" | "inclusive" => *has_joins = true,
                "on" | "event" | "branch" | "loop" | "goto" | "stop" | "start" => {}
                // A scope is empty for the reference when a path ends in a gateway, whatever else has begun in it.
                "exclusive" if item.items.is_empty() => {}
                _ => targets.push(item.id.clone()),
            }
            // What begins in an ad-hoc sub-process by a modification is another matter.
            if item.keyword != "ad-hoc" {
                collect(&item.items, targets, has_joins);
            }
        }
    }
    let mut by_process = BTreeMap::new();
    for process in &model.processes {
        let (mut targets, mut has_joins) = (Vec::new(), false);
        collect(&process.items, &mut targets, &mut has_joins);
        if !has_joins && !targets.is_empty() {
            by_process.insert(process.id.clone(), targets);
        }
    }
    by_process
}

/// User tasks whose changes wait for listeners.
fn updated_with_listeners(model: &Model) -> BTreeSet<String> {
    fn collect(items: &[Item], found: &mut BTreeSet<String>) {
        for item in items {
            if item.has("listen.updating") {
                found.insert(item.id.clone());
            }
            collect(&item.items, found);
        }
    }
    let mut found = BTreeSet::new();
    model.processes.iter().for_each(|process| collect(&process.items, &mut found));
    found
}

/// What can be chosen in each ad-hoc sub-process.
fn choices(model: &Model) -> BTreeMap<String, Vec<String>> {
    fn collect(items: &[Item], choices: &mut BTreeMap<String, Vec<String>>) {
        for item in items {
            if item.keyword == "ad-hoc" {
                let inside = item.items.iter().filter(|inner| !matches!(inner.keyword.as_str(), "on" | "event"));
                choices.insert(item.id.clone(), inside.map(|inner| inner.id.clone()).collect());
            }
            collect(&item.items, choices);
        }
    }
    let mut found = BTreeMap::new();
    model.processes.iter().for_each(|process| collect(&process.items, &mut found));
    found
}

/// Runs a case; returns how the sides differ.
///
/// # Errors
/// When a side is gone.
pub fn replay(sides: &mut Sides<'_>, case: &Case) -> Result<Option<Finding>, DriverError> {
    let files = files(&case.model);
    let mut pair = Pair::new(sides, &files)?;
    let deploy = deployment();
    for (index, step) in std::iter::once(&deploy).chain(&case.steps).enumerate() {
        match pair.take(&case.model, step)? {
            Taken::Same => {}
            Taken::Known(_) => return Ok(None),
            Taken::Differs(shown) => {
                let case = Case { model: case.model.clone(), steps: case.steps[..index].to_vec() };
                return Ok(Some(Finding { case, shown }));
            }
        }
    }
    Ok(None)
}
