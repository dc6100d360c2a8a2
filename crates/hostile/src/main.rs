//! `osmia-hostile`: sends hostile input to a node, and reports what it could not withstand.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hostile::{Options, all, run};

/// Hostile models, data and clients against a node that this program starts and kills.
#[derive(Parser)]
struct Arguments {
    /// The binary of the node.
    #[arg(long, default_value = "target/release/osmia")]
    binary: PathBuf,
    /// Only cases whose name or group contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// The shortened set, which measures no time.
    #[arg(long)]
    short: bool,
    /// Only name the cases.
    #[arg(long)]
    list: bool,
    /// How long a case may take, in seconds.
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Ordinary instances per second during the cases.
    #[arg(long, default_value_t = 100)]
    rate: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut cases = all();
    let is_meant = |text: &str| text.contains(&arguments.only);
    cases.retain(|case| (is_meant(case.name) || is_meant(case.group)) && (case.is_short || !arguments.short));
    if arguments.list {
        cases.iter().for_each(|case| println!("{:<18} {}", case.group, case.name));
        println!("{} cases", cases.len());
        return ExitCode::SUCCESS;
    }
    let options = Options {
        binary: arguments.binary,
        limit: Duration::from_secs(arguments.limit),
        rate: arguments.rate,
        measures_time: !arguments.short,
        separates_groups: arguments.short,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let summary = runtime.block_on(run(&options, &cases));
    println!("{} passed, {} failed", summary.passed, summary.failed);
    // What hostile clients left behind is not waited for.
    runtime.shutdown_background();
    if summary.failed == 0 && summary.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
