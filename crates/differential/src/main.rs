//! `osmia-differential`: compares the engine with the reference engine. `scripts/differential` prepares the reference
//! engine and runs this.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use differential::compare::{KnownDifferences, difference, show_reasons};
use differential::expressions;
use differential::ours::Ours;
use differential::random::{self, FEATURES, Features, Sides};
use differential::reference::{Launch, Reference};
use differential::scenario::{self, Scenario};
use differential::session::Session;
use differential::tables;

const USAGE: &str =
    "usage: osmia-differential [--filter TEXT] [--update] [--models COUNT] [--seed SEED] [--without FEATURES]
       osmia-differential --expressions COUNT [--seed SEED] [--known]
       osmia-differential --expressions-of FILE
       osmia-differential --tables COUNT [--seed SEED] [--known]

  --filter TEXT       only scenarios whose name contains this
  --update            write the traces of the scenarios, or the outcomes of decisions, from the reference's side
  --models COUNT      compare random models too
  --seed SEED         seed of the first model (1); the next model has the next seed
  --without FEATURES  leave these out of the models, separated by commas
  --expressions COUNT compare so many random expressions and nothing else
  --expressions-of FILE
                      compare the expressions in the lines of a file ('␤' means a line break) and nothing else
  --tables COUNT      compare so many random models of decisions and nothing else
  --known             show the expressions or decisions that differ for a known reason too";

/// Differences of random models after which no more models are run.
const FINDINGS_MAX: usize = 10;
/// Models between two lines of progress.
const PROGRESS_MODELS: u64 = 100;

type Failure = Box<dyn std::error::Error>;

struct Options {
    filter: String,
    update: bool,
    models: u64,
    seed: u64,
    features: Features,
    expressions: usize,
    expressions_of: Option<PathBuf>,
    tables: usize,
    with_known: bool,
}

#[derive(Default)]
struct Count {
    same: usize,
    differ: usize,
}

fn main() -> ExitCode {
    let outcome = options().and_then(|options| compare(&options));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        filter: String::new(),
        update: false,
        models: 0,
        seed: 1,
        features: Features::default(),
        expressions: 0,
        expressions_of: None,
        tables: 0,
        with_known: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n{USAGE}"));
        match argument.as_str() {
            "--filter" => options.filter = value()?,
            "--update" => options.update = true,
            "--models" => options.models = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--expressions" => options.expressions = value()?.parse()?,
            "--expressions-of" => options.expressions_of = Some(value()?.into()),
            "--tables" => options.tables = value()?.parse()?,
            "--known" => options.with_known = true,
            "--without" => options.features = Features::without(&value()?)?,
            other => {
                let features = FEATURES.join(", ");
                return Err(format!("unknown argument '{other}'\n{USAGE}\n\nfeatures: {features}").into());
            }
        }
    }
    Ok(options)
}

fn compare(options: &Options) -> Result<bool, Failure> {
    let launch = Launch::from_environment().ok_or("the reference engine is not prepared; use scripts/differential")?;
    if let Some(file) = &options.expressions_of {
        return expressions::compare_lines(&launch, &std::fs::read_to_string(file)?);
    }
    if options.expressions > 0 {
        return expressions::compare(&launch, options.expressions, options.seed, options.with_known);
    }
    if options.tables > 0 && options.update {
        tables::store(&launch, options.tables)?;
        return Ok(true);
    }
    if options.tables > 0 {
        return tables::compare(&launch, options.tables, options.seed, options.with_known);
    }
    let mut reference = Reference::new(launch)?;
    let known = KnownDifferences::stored()?;
    let mut count = Count::default();
    for scenario in scenario::read_all(&scenario::directory())? {
        if !scenario.name.contains(&options.filter) {
            continue;
        }
        match compare_scenario(&mut reference, &known, &scenario, options.update) {
            Ok(None) => count.same += 1,
            Ok(Some(shown)) => {
                count.differ += 1;
                println!("{}: {shown}", scenario.name);
            }
            Err(failure) => {
                count.differ += 1;
                println!("{}: {failure}\n", scenario.name);
            }
        }
    }
    if options.models > 0 {
        compare_models(&mut reference, &known, options, &mut count)?;
    }
    println!("{} same, {} differ", count.same, count.differ);
    Ok(count.differ == 0)
}

fn compare_scenario(
    reference: &mut Reference,
    known: &KnownDifferences,
    scenario: &Scenario,
    update: bool,
) -> Result<Option<String>, Failure> {
    let theirs = Session::run(reference, &scenario.files, &scenario.steps)?;
    let ours = Session::run(&mut Ours::new(1), &scenario.files, &scenario.steps)?;
    let expected = known.expected_trace(scenario, theirs.trace, &ours.trace);
    if update {
        std::fs::write(scenario.trace_path(), scenario::write_trace(&expected))?;
    }
    let stale = scenario.stored_trace().is_none_or(|stored| difference(&expected, &stored).is_some());
    if stale {
        println!("{}: the stored trace is not what the reference does; UPDATE_EXPECTATIONS=1 writes it", scenario.name);
    }
    let found = difference(&expected, &ours.trace);
    Ok(found.map(|(step, shown)| {
        let reason = |reasons: &[String]| reasons.get(step).cloned().unwrap_or_default();
        shown + &show_reasons(&reason(&theirs.reasons), &reason(&ours.reasons))
    }))
}

fn compare_models(
    reference: &mut Reference,
    known: &KnownDifferences,
    options: &Options,
    count: &mut Count,
) -> Result<(), Failure> {
    let mut ours = Ours::new(1);
    let mut sides = Sides { reference, ours: &mut ours, known };
    let mut steps = 0;
    let mut findings = 0;
    let mut known_reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, seed) in (options.seed..).take(usize::try_from(options.models)?).enumerate() {
        let outcome = random::run(&mut sides, seed, &options.features)?;
        steps += outcome.steps;
        if let Some(reason) = outcome.known {
            *known_reasons.entry(reason).or_default() += 1;
        }
        match outcome.finding {
            None => count.same += 1,
            Some(finding) => {
                count.differ += 1;
                findings += 1;
                let finding = random::shrink(&mut sides, finding)?;
                println!(
                    "seed {seed} (make differential FILTER=none MODELS=1 SEED={seed}), made smaller:\n\n{finding}"
                );
                if findings == FINDINGS_MAX {
                    println!("{findings} models differ; no more are run");
                    return Ok(());
                }
            }
        }
        let done = index as u64 + 1;
        if done.is_multiple_of(PROGRESS_MODELS) {
            println!("{done} models, {steps} steps, {findings} differ");
        }
    }
    for (reason, count) in known_reasons {
        println!("{count} models were compared up to where {reason}, other than on the reference");
    }
    Ok(())
}
