//! Runs cases in sequence and reports what each did to the node and to the ordinary instances.

use std::path::PathBuf;
use std::time::Duration;

use crate::bystander::{Bystander, Seen};
use crate::cases::Case;
use crate::node::{Memory, Node};
use crate::times::{CommandTimes, LONGEST_COMMAND_MAX};
use crate::victim::Victim;
use crate::{BYSTANDER_P99_MILLISECONDS_MAX, MEMORY_MEBIBYTES_MAX};

/// What runs alone with the ordinary instances after each start.
const QUIET: Duration = Duration::from_secs(1);
const CLEAN_UP_LIMIT: Duration = Duration::from_secs(30);
/// Ordinary instances must end within this after a case, whatever the case did.
const GOES_ON_WITHIN: Duration = Duration::from_secs(60);

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary of the node.
    pub binary: PathBuf,
    /// How long a case may take.
    pub limit: Duration,
    /// Ordinary instances per second.
    pub rate: u64,
    /// Whether the latency of the ordinary instances is part of the result.
    pub measures_time: bool,
    /// Whether each group has a node of its own, and not what the groups before left in its state and its memory.
    pub separates_groups: bool,
}

/// Cases and other checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Those that went well.
    pub passed: usize,
    /// Those that did not.
    pub failed: usize,
}

/// A node with its ordinary instances.
struct Stage {
    node: Node,
    bystander: Bystander,
    data: tempfile::TempDir,
}

impl Stage {
    async fn open(options: &Options, data: tempfile::TempDir) -> Result<Stage, String> {
        let (binary, directory) = (options.binary.clone(), data.path().to_owned());
        // The log is kept for long, so that a start applies much of it again.
        let start = move || Node::start(&binary, &directory, &["--partitions", "2", "--checkpoint-interval", "60s"]);
        let node = tokio::task::spawn_blocking(start).await.map_err(|error| error.to_string())??;
        let bystander = Bystander::start(&node.addresses.grpc, options.rate).await?;
        tokio::time::sleep(QUIET).await;
        Ok(Stage { node, bystander, data })
    }

    /// Kills the node and starts it on the same data.
    async fn again(self, options: &Options) -> Result<Stage, String> {
        self.bystander.stop();
        self.node.kill();
        Stage::open(options, self.data).await
    }

    /// What the node has applied since its start.
    fn times(&self) -> CommandTimes {
        CommandTimes::of(&self.node.addresses)
    }
}

struct Run<'a> {
    options: &'a Options,
    summary: Summary,
    all: Seen,
    peak: Memory,
    times: CommandTimes,
    ends: usize,
}

/// Runs these cases, group by group, and prints a line for each and a summary.
pub async fn run(options: &Options, cases: &[Case]) -> Summary {
    let summary = Summary::default();
    let (peak, times) = (Memory::default(), CommandTimes::default());
    let mut run = Run { options, summary, all: Seen::default(), peak, times, ends: 0 };
    let mut stage = run.open(new_data()).await;
    let mut group = "";
    for case in cases {
        if case.group != group {
            if !group.is_empty() {
                stage = run.start_again(stage, group).await;
                if options.separates_groups {
                    drop(stage);
                    stage = run.open(new_data()).await;
                }
            }
            group = case.group;
            println!("\n{group}");
        }
        let Some(open) = stage.as_mut() else {
            run.judge(case.name, Err("there is no node".to_owned()), "");
            stage = run.open(new_data()).await;
            continue;
        };
        let usable = run.case(open, case).await;
        let ended = open.node.ended();
        if ended.is_some() || !usable {
            run.ends += usize::from(ended.is_some());
            println!("       the next cases have a new node, with nothing in its log");
            stage = run.open(new_data()).await;
        }
    }
    if let Some(last) = run.start_again(stage, group).await {
        run.times.add(&last.times());
    }
    run.conclude();
    run.summary
}

fn new_data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for temporary files")
}

impl Run<'_> {
    async fn open(&mut self, data: tempfile::TempDir) -> Option<Stage> {
        match Stage::open(self.options, data).await {
            Ok(stage) => Some(stage),
            Err(reason) => {
                self.judge("start", Err(reason), "");
                None
            }
        }
    }

    /// Kills the node and starts it again: what the log holds of the cases is applied again.
    async fn start_again(&mut self, stage: Option<Stage>, group: &str) -> Option<Stage> {
        let stage = stage?;
        self.times.add(&stage.times());
        let name = format!("kill -9 and start after {group}");
        let before = std::time::Instant::now();
        let again = stage.again(self.options).await;
        let taken = before.elapsed();
        let outcome = match &again {
            Err(reason) => Err(reason.clone()),
            Ok(stage) => {
                let peak = stage.node.addresses.peak();
                self.within_memory(peak).map(|()| format!("ready, at most {peak}"))
            }
        };
        self.judge(&name, outcome, &format!("{:.1} s", taken.as_secs_f64()));
        match again {
            Ok(stage) => Some(stage),
            Err(_) => self.open(new_data()).await,
        }
    }

    fn within_memory(&mut self, peak: Memory) -> Result<(), String> {
        self.peak = self.peak.max(peak);
        if peak.own < MEMORY_MEBIBYTES_MAX { Ok(()) } else { Err(format!("the node took {peak}")) }
    }

    /// Whether the node can be used for the next case.
    async fn case(&mut self, stage: &mut Stage, case: &Case) -> bool {
        let addresses = stage.node.addresses.clone();
        addresses.forget_peak();
        self.remember(stage.bystander.take());
        let before = stage.times();
        let verdict = match Victim::connect(&addresses, self.options.binary.clone()).await {
            Err(reason) => Err(reason),
            Ok(victim) => {
                let outcome = tokio::time::timeout(self.options.limit, (case.run)(victim.clone())).await;
                // What a case leaves open goes away with it, and the node has something to do for that.
                let _ = tokio::time::timeout(CLEAN_UP_LIMIT, victim.clean_up()).await;
                outcome.unwrap_or_else(|_| Err(format!("no end within {} s", self.options.limit.as_secs())))
            }
        };
        let goes_on = Self::goes_on(stage).await;
        let usable = goes_on.is_ok();
        let verdict = match stage.node.ended() {
            Some(ended) => Err(format!("the node ended: {ended}")),
            None => verdict.and_then(|said| goes_on.map(|()| said)),
        };
        let seen = stage.bystander.take();
        let peak = addresses.peak();
        let verdict = verdict.and_then(|said| self.within_memory(peak).map(|()| said));
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let apply = stage.times().longer_than(&before);
        let figures = format!(
            "p99 {:.1} ms, max {:.0} ms, {} failed, {peak}{apply}",
            milliseconds(seen.quantile(990)),
            milliseconds(seen.quantile(1_000)),
            seen.failures.len()
        );
        self.judge(case.name, verdict, &figures);
        self.remember(seen);
        usable
    }

    /// Ordinary instances end that are begun after the case, on each partition.
    async fn goes_on(stage: &Stage) -> Result<(), String> {
        let instances = async {
            // Partitions take turns, and the other ordinary instances come in between.
            for _ in 0..8 {
                stage.bystander.one_more().await?;
            }
            Ok(())
        };
        let limit = GOES_ON_WITHIN.as_secs();
        let ended = tokio::time::timeout(GOES_ON_WITHIN, instances).await;
        ended.unwrap_or_else(|_| Err(format!("ordinary instances do not end within {limit} s afterwards")))
    }

    fn remember(&mut self, seen: Seen) {
        self.all.latencies.extend(seen.latencies);
        self.all.failures.extend(seen.failures);
    }

    fn judge(&mut self, name: &str, outcome: Result<String, String>, figures: &str) {
        let (word, said) = match &outcome {
            Ok(said) => ("ok    ", said),
            Err(reason) => ("FAILED", reason),
        };
        match outcome {
            Ok(_) => self.summary.passed += 1,
            Err(_) => self.summary.failed += 1,
        }
        println!("{word} {name:<44} {figures}\n       {said}");
    }

    /// What holds over all cases.
    fn conclude(&mut self) {
        println!("\nall cases");
        let p99 = self.all.quantile(990);
        let said = format!(
            "{} ordinary instances: p50 {:.1} ms, p99 {:.1} ms, max {:.0} ms; {} failed{}",
            self.all.latencies.len(),
            self.all.quantile(500).as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3,
            self.all.quantile(1_000).as_secs_f64() * 1e3,
            self.all.failures.len(),
            self.all.failures.last().map(|last| format!(", the last: {last}")).unwrap_or_default()
        );
        let slow = self.options.measures_time && p99 > Duration::from_millis(BYSTANDER_P99_MILLISECONDS_MAX);
        let none = self.all.latencies.is_empty();
        self.judge("ordinary instances", if slow || none { Err(said) } else { Ok(said) }, "");
        let ends = self.ends;
        let said = format!("the node ended {ends} times; at most {}", self.peak);
        self.judge("one process", if ends == 0 { Ok(said) } else { Err(said) }, "");
        let said = self.times.to_string();
        let slow = self.options.measures_time && self.times.longest_computing() > LONGEST_COMMAND_MAX;
        self.judge("single commands", if slow { Err(said) } else { Ok(said) }, "");
    }
}
