//! `osmia-simulate`: runs seeds and prints what they break, and how fast it went.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Parser;
use simulator::{Report, run_seed, run_with, swarm};

/// Runs a simulated cluster with the faults of many seeds.
#[derive(Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many run at once; 0 for one on each core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Stop after this many broken promises.
    #[arg(long, default_value_t = 10)]
    failures: usize,
    /// Run the seeds that once found something, before all others.
    #[arg(long)]
    regressions: bool,
    /// Run each seed twice and compare what happened.
    #[arg(long)]
    twice: bool,
    /// Run without faults.
    #[arg(long)]
    without_faults: bool,
    /// Print every panic with its place, also those that nodes are expected to stop with.
    #[arg(long)]
    panics: bool,
    /// Say everything that happens (best with one seed).
    #[arg(long)]
    trace: bool,
}

/// Seeds that once found something, each with what it was.
const REGRESSIONS: &str = include_str!("../regressions.txt");

/// The number of each line that is no remark.
fn regressions() -> Vec<u64> {
    let lines = REGRESSIONS.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let number = |line: &str| line.split(' ').next().and_then(|number| number.parse().ok());
    lines.map(|line| number(line).unwrap_or_else(|| panic!("regressions.txt: no seed in '{line}'"))).collect()
}

#[derive(Default)]
struct Totals {
    report: Report,
    failures: Vec<(u64, String)>,
}

fn main() {
    let arguments = Arguments::parse();
    if arguments.trace {
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(std::io::stderr).init();
    } else if !arguments.panics {
        // What nodes say about their faults is expected, and so are the panics that the log library stops with.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let threads = match arguments.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    };
    let mut seeds = if arguments.regressions { regressions() } else { Vec::new() };
    seeds.extend(arguments.first..arguments.first + arguments.seeds);
    let (next, totals, started) = (AtomicUsize::new(0), Mutex::new(Totals::default()), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| run_seeds(&arguments, &seeds, &next, &totals));
        }
    });
    let totals = totals.into_inner().expect("no thread panicked");
    let seconds = started.elapsed().as_secs_f64();
    let done = next.load(Ordering::Relaxed).min(seeds.len());
    let report = &totals.report;
    println!(
        "{done} seeds in {seconds:.1} s: {:.0} seeds a minute, {:.0} virtual seconds a second; {} batches, {} instances, \
         {} faults",
        done as f64 * 60.0 / seconds,
        report.virtual_milliseconds as f64 / 1_000.0 / seconds,
        report.batches,
        report.instances,
        report.faults
    );
    let answers = report.answers.iter().map(|(kind, (accepted, refused))| format!("{kind} {accepted} ({refused})"));
    println!("accepted (refused): {}", answers.collect::<Vec<_>>().join(", "));
    println!("{} passed, {} failed", done - totals.failures.len(), totals.failures.len());
    std::process::exit(i32::from(!totals.failures.is_empty()));
}

fn run_seeds(arguments: &Arguments, seeds: &[u64], next: &AtomicUsize, totals: &Mutex<Totals>) {
    loop {
        let enough = |totals: &Totals| totals.failures.len() >= arguments.failures;
        if enough(&totals.lock().expect("no thread panicked")) {
            return;
        }
        let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return };
        let outcome = run_one(arguments, seed);
        let mut totals = totals.lock().expect("no thread panicked");
        match outcome {
            Ok(report) => {
                let sum = &mut totals.report;
                sum.virtual_milliseconds += report.virtual_milliseconds;
                sum.batches += report.batches;
                for (kind, (accepted, refused)) in report.answers {
                    let counts = sum.answers.entry(kind).or_default();
                    *counts = (counts.0 + accepted, counts.1 + refused);
                }
                sum.instances += report.instances;
                sum.faults += report.faults;
            }
            Err(reason) => {
                println!("seed {seed}: {reason}\n  {:?}", swarm(seed));
                totals.failures.push((seed, reason));
            }
        }
    }
}

fn run_one(arguments: &Arguments, seed: u64) -> Result<Report, String> {
    let run = || {
        if arguments.without_faults { run_with(seed, swarm(seed).without_faults()) } else { run_seed(seed) }
    };
    let report = run()?;
    if arguments.twice {
        let again = run()?;
        if again != report {
            return Err(format!("the same seed did something else the second time: {report:?} and {again:?}"));
        }
    }
    Ok(report)
}
