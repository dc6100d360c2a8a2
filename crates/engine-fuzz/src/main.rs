//! Runs cases by their seeds or files, and tells what is wrong and what commands take.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use engine_fuzz::case::{self, Failure, Report};
use engine_fuzz::choices::bytes_of_seed;
use engine_fuzz::measure::{Cost, Distribution, processor_nanoseconds};
use engine_fuzz::minimise::minimise;
use engine_fuzz::price::{Price, price};

/// Looks for commands that break a promise of the engine.
#[derive(Parser, Debug)]
struct Options {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Run these files instead.
    files: Vec<PathBuf>,
    /// Attempts to make a failing case small; 0 shows it as it is.
    #[arg(long, default_value_t = 600)]
    attempts: usize,
    /// Ends after so many different failures.
    #[arg(long, default_value_t = 10)]
    failures: usize,
    /// Tells what commands have taken after so many cases, too.
    #[arg(long, default_value_t = 10_000)]
    tell_every: u64,
    /// Evaluates an expression of each seed instead, and tells those that take the longest.
    #[arg(long)]
    expressions: bool,
    /// Evaluates this expression with the variables of each seed instead.
    #[arg(long)]
    expression: Option<String>,
    /// Shows the files and steps of each case.
    #[arg(long)]
    show: bool,
    /// Tells how often commands were refused, and why.
    #[arg(long)]
    refusals: bool,
    /// Where the bytes of failing cases are written.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// What all commands took, and the worst of them.
#[derive(Default)]
struct Totals {
    commands: u64,
    time: Distribution,
    memory: Distribution,
    steps: Distribution,
    slowest: Vec<(u64, String)>,
    /// Commands by their kind, and how many of them were refused.
    kinds: BTreeMap<String, (u64, u64)>,
    refusals: BTreeMap<String, u64>,
}

/// How many of the slowest commands are told.
const SLOWEST: usize = 12;

impl Totals {
    fn add(&mut self, case: &str, costs: &[Cost]) {
        for cost in costs {
            self.commands += 1;
            self.time.add(cost.processor_nanoseconds / 1_000);
            self.memory.add(cost.memory.peak_bytes);
            self.steps.add(cost.spent.evaluation_steps);
            let kind = self.kinds.entry(cost.name.clone()).or_default();
            kind.0 += 1;
            if let Some(reason) = &cost.refusal {
                kind.1 += 1;
                let reason: String = reason.chars().filter(|character| !character.is_ascii_digit()).collect();
                *self.refusals.entry(format!("{}: {}", cost.name, reason.replace('\n', " "))).or_default() += 1;
            }
            if self.slowest.len() < SLOWEST
                || self.slowest.last().is_some_and(|(time, _)| *time < cost.processor_nanoseconds)
            {
                self.slowest.push((cost.processor_nanoseconds, described(case, cost)));
                self.slowest.sort_by(|first, second| second.cmp(first));
                self.slowest.truncate(SLOWEST);
            }
        }
    }

    fn tell(&self, cases: u64) {
        let seconds = processor_nanoseconds() / 1_000_000_000;
        println!("{cases} cases, {} commands, {seconds} s of processor time", self.commands);
        println!("  processor time of one command, us: {}", self.time);
        println!("  memory of one command, bytes: {}", self.memory);
        println!("  evaluation steps of one command: {}", self.steps);
        for (_, command) in &self.slowest {
            println!("  {command}");
        }
    }
}

impl Totals {
    fn tell_refusals(&self) {
        for (kind, (all, refused)) in &self.kinds {
            println!("{kind}: {all}, of which {refused} were refused");
        }
        let mut reasons: Vec<_> = self.refusals.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons.iter().take(REASONS) {
            println!("{count} times {reason}");
        }
    }
}

/// How many reasons of refusals are told.
const REASONS: usize = 60;

fn described(case: &str, cost: &Cost) -> String {
    let (memory, spent) = (&cost.memory, &cost.spent);
    format!(
        "{:.1} ms, {} in step {} of {case}: {} records of {} bytes, {} steps, {} read, {} built, {} joins, {} MiB at once, {} allocations",
        cost.processor_nanoseconds as f64 / 1e6,
        cost.name,
        cost.step,
        cost.records,
        spent.record_bytes,
        spent.evaluation_steps,
        spent.evaluation_bytes_read,
        spent.evaluation_bytes_built,
        spent.joins_read,
        memory.peak_bytes >> 20,
        memory.times,
    )
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.expressions || options.expression.is_some() {
        tell_prices(&options);
        return ExitCode::SUCCESS;
    }
    let mut totals = Totals::default();
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    let mut cases = 0;
    let seeds =
        (options.first..).take(options.seeds as usize).map(|seed| (format!("seed {seed}"), bytes_of_seed(seed)));
    let read = |file: &PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file.display().to_string(), bytes)
    };
    let files = options.files.iter().map(read);
    let all: Box<dyn Iterator<Item = (String, Vec<u8>)>> =
        if options.files.is_empty() { Box::new(seeds) } else { Box::new(files) };
    for (name, bytes) in all {
        let Report { costs, story, failure } = case::run(&bytes);
        if options.show {
            println!("=== {name}\n{story}");
        }
        cases += 1;
        totals.add(&name, &costs);
        if let Some(failure) = failure {
            let seen = failures.entry(failure.kind()).or_default();
            *seen += 1;
            if *seen == 1 {
                show(&options, &name, &bytes, &failure);
            }
        }
        if failures.len() >= options.failures {
            break;
        }
        if cases % options.tell_every == 0 {
            totals.tell(cases);
        }
    }
    totals.tell(cases);
    if options.refusals {
        totals.tell_refusals();
    }
    for (kind, count) in &failures {
        println!("{count} times: {kind}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many expressions are told.
const EXPRESSIONS: usize = 40;

fn tell_prices(options: &Options) {
    let mut prices: Vec<Price> = Vec::new();
    for seed in (options.first..).take(options.seeds as usize) {
        prices.extend(price(&bytes_of_seed(seed), options.expression.as_deref()));
        if prices.len() >= 4 * EXPRESSIONS || seed + 1 == options.first + options.seeds {
            prices.sort_by_key(|price| std::cmp::Reverse(price.nanoseconds));
            prices.truncate(EXPRESSIONS);
        }
    }
    for price in prices {
        println!(
            "{:.1} ms, {} steps, {} built, {} MiB at once, {} allocations, {:.1} ns a step: {}",
            price.nanoseconds as f64 / 1e6,
            price.steps,
            price.built,
            price.memory.peak_bytes >> 20,
            price.memory.times,
            price.nanoseconds as f64 / price.steps.max(1) as f64,
            price.text
        );
    }
}

fn show(options: &Options, name: &str, bytes: &[u8], failure: &Failure) {
    println!("=== {name}: {}", failure.0);
    let bytes = match options.attempts {
        0 => bytes.to_vec(),
        attempts => minimise(bytes, &failure.kind(), attempts),
    };
    let report = case::run(&bytes);
    println!("{}=> {}\n", report.story, report.failure.as_ref().unwrap_or(failure).0);
    if let Some(directory) = &options.keep {
        let file = directory.join(name.replace(['/', ' '], "-"));
        std::fs::write(&file, &bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        println!("kept as {}\n", file.display());
    }
}
