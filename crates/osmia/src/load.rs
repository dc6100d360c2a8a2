//! `osmia load`: the arguments of the load generator.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{
    Delivery, DrainBeside, DrainOptions, IdleOptions, MaximumOptions, MisbehavingOptions, Misbehaviour, Mode, Options,
    Profile, RateOptions, SurgeOptions, TimersOptions, WaitingOptions, Work, WorkerOptions,
};

use crate::Outcome;
use crate::client::address;
use crate::configuration::{Environment, duration};
use crate::output::print_line;

/// What to do to a cluster. Runs at a fixed rate unless --max, --surge, --wait, --drain, --beside or idle clients are
/// given.
#[derive(Debug, Args)]
#[command(after_help = PROFILES)]
pub(crate) struct LoadArguments {
    /// What is loaded: one-task, ten-tasks, ten-tasks-two-timers, parallel, parallel-N, mixed, messages or timers.
    #[arg(default_value = "one-task")]
    profile: Profile,
    /// Instances per second [default: 100], with messages: publications per second; with --max the first rate to try
    /// [default: 500]; with timers: instances per second of the other process [default: 150].
    #[arg(long)]
    rate: Option<f64>,
    /// Find the highest sustainable rate.
    #[arg(long)]
    max: bool,
    /// Surge: normal load, the highest sustainable rate, this multiple of it, and normal load again. --rate is the
    /// highest sustainable rate, as --max found it. What the server refuses is not sent again.
    #[arg(long, value_name = "FACTOR", requires = "rate", conflicts_with = "max")]
    surge: Option<f64>,
    /// With --surge: its length, and the length of the phase at the highest sustainable rate before it.
    #[arg(long, default_value = "30s", value_parser = duration)]
    surge_duration: Duration,
    /// With --surge: the normal load, as a share of --rate.
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    normal_share: f64,
    /// Only create this many instances, which then wait at their first task (with messages: for a message).
    #[arg(long, value_name = "INSTANCES", conflicts_with_all = ["max", "rate", "surge"])]
    wait: Option<u64>,
    /// Add a worker of another process that fails or ignores every job; the profile is measured for --duration without
    /// it and for --duration with it.
    #[arg(long, value_name = "HOW", value_parser = misbehaviour,
          conflicts_with_all = ["max", "surge", "wait", "drain"])]
    beside: Option<Misbehaviour>,
    /// With --beside: instances per second for the misbehaving worker.
    #[arg(long, value_name = "RATE", default_value_t = 100.0)]
    beside_rate: f64,
    /// Complete the waiting jobs of this type, as reported by a run with --wait; with --rate, while instances of the
    /// profile run, which are measured for --duration before that.
    #[arg(long, value_name = "JOB_TYPE", conflicts_with_all = ["max", "wait", "surge"])]
    drain: Option<String>,
    /// Open this many idle job streams.
    #[arg(long, value_name = "N", conflicts_with_all = ["max", "rate", "wait", "drain", "surge", "beside"])]
    idle_streams: Option<usize>,
    /// Keep this many idle long polls waiting.
    #[arg(long, value_name = "N", conflicts_with_all = ["max", "rate", "wait", "drain", "surge", "beside"])]
    idle_polls: Option<usize>,
    /// How long the timer catch event of ten-tasks-two-timers waits; does not count as overhead.
    #[arg(long, default_value = "100ms", value_parser = duration)]
    timer: Duration,
    /// How long published messages are buffered.
    #[arg(long, default_value = "10s", value_parser = duration)]
    message_ttl: Duration,
    /// With messages: this many more instances wait for a message, during the measurement and after it.
    #[arg(long, value_name = "INSTANCES", default_value_t = 0)]
    waiting: u64,
    /// With timers: this many instances have timers due at the same moment.
    #[arg(long, value_name = "INSTANCES", default_value_t = 100_000)]
    timers: u64,
    /// With timers: time from the first creation of their instances to the moment at which they are due.
    #[arg(long, default_value = "30s", value_parser = duration)]
    due_in: Duration,
    /// Length of the measurement; with timers, how long they may take at most.
    #[arg(long, default_value = "30s", value_parser = duration)]
    duration: Duration,
    /// Time before the measurement, under the same load.
    #[arg(long, value_parser = duration)]
    warm_up: Option<Duration>,
    /// Workers for each job type.
    #[arg(long)]
    workers: Option<usize>,
    /// How long a worker holds each job.
    #[arg(long, default_value = "0ms", value_parser = duration)]
    delay: Duration,
    /// Size of the variables of an instance in bytes.
    #[arg(long, default_value_t = 512)]
    payload: usize,
    /// Let workers poll instead of opening streams.
    #[arg(long)]
    poll: bool,
    /// HTTP/2 connections for creating, and as many again for the workers [default: 2, with --surge: 8].
    #[arg(long)]
    connections: Option<usize>,
    /// Addresses of the gateways [default: ZEEBE_ADDRESS, CAMUNDA_GRPC_ADDRESS or 127.0.0.1:26500]
    #[arg(long)]
    address: Vec<String>,
    /// Process of the server on this machine, whose processor time and memory are reported.
    #[arg(long, value_name = "PID")]
    server_pid: Vec<u32>,
    /// Directory on the disk of the server, whose sync latency is measured during the run.
    #[arg(long, value_name = "DIR", default_value = ".")]
    fsync_directory: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

const PROFILES: &str = "\
Profiles:
  one-task              start, service task, end
  ten-tasks             ten service tasks in sequence
  ten-tasks-two-timers  the same with a boundary timer that never fires and a timer catch event (--timer) in the middle
  parallel-N            a parallel gateway to N service tasks (parallel: 10)
  mixed                 60 % one-task, 20 % ten-tasks-two-timers, 20 % task, message catch event, task
  messages              messages at a rate, each for an instance that waits for it
  timers                timers that are due at once (--timers, --due-in), and meanwhile one-task at a rate

A message that is not correlated exactly once, or a timer that does not fire exactly once, makes the run fail.";

fn misbehaviour(text: &str) -> Result<Misbehaviour, String> {
    match text {
        "failing" => Ok(Misbehaviour::Failing),
        "ignoring" => Ok(Misbehaviour::Ignoring),
        other => Err(format!("\"{other}\" is no way to misbehave; give failing or ignoring")),
    }
}

/// How many jobs one poll asks for.
const POLLED_JOBS_MAX: u16 = 32;
/// Connections of a run by default.
const CONNECTIONS: usize = 2;
/// Connections of a surge, which comes from many clients.
const SURGE_CONNECTIONS: usize = 8;
/// The rate of a run that names none.
const RATE_DEFAULT: f64 = 100.0;

impl LoadArguments {
    fn mode(&self) -> Mode {
        if self.idle_streams.is_some() || self.idle_polls.is_some() {
            return Mode::Idle(IdleOptions {
                streams: self.idle_streams.unwrap_or(0),
                polls: self.idle_polls.unwrap_or(0),
                duration: self.duration,
            });
        }
        if let Some(instances) = self.wait {
            let defaults = WaitingOptions::new(instances);
            return Mode::Waiting(WaitingOptions { profile: self.profile, payload_bytes: self.payload, ..defaults });
        }
        if let Some(job_type) = &self.drain {
            return Mode::Drain(self.drain(job_type));
        }
        let work = self.work();
        if let Some(factor) = self.surge {
            let defaults = SurgeOptions::new(work, self.rate.unwrap_or(RATE_DEFAULT), factor);
            return Mode::Surge(SurgeOptions {
                normal_share: self.normal_share,
                duration: self.duration,
                surge_duration: self.surge_duration,
                warm_up: self.warm_up.unwrap_or(defaults.warm_up),
                ..defaults
            });
        }
        if let Some(behaviour) = self.beside {
            let defaults = MisbehavingOptions::new(work, self.rate.unwrap_or(RATE_DEFAULT), behaviour);
            return Mode::Misbehaving(MisbehavingOptions {
                rate_beside: self.beside_rate,
                duration: self.duration,
                warm_up: self.warm_up.unwrap_or(defaults.warm_up),
                ..defaults
            });
        }
        if self.max {
            let defaults = MaximumOptions::new(work);
            return Mode::Maximum(MaximumOptions {
                start_rate: self.rate.unwrap_or(defaults.start_rate),
                duration: self.duration,
                warm_up: self.warm_up.unwrap_or(defaults.warm_up),
                ..defaults
            });
        }
        if self.profile == Profile::Timers {
            let defaults = TimersOptions::new(work, self.timers);
            return Mode::Timers(TimersOptions {
                due_in: self.due_in,
                rate: self.rate.unwrap_or(defaults.rate),
                warm_up: self.warm_up.unwrap_or(defaults.warm_up),
                limit: self.duration,
                ..defaults
            });
        }
        let defaults = RateOptions::new(work, self.rate.unwrap_or(RATE_DEFAULT));
        Mode::Rate(RateOptions {
            duration: self.duration,
            warm_up: self.warm_up.unwrap_or(defaults.warm_up),
            ..defaults
        })
    }

    fn work(&self) -> Work {
        Work {
            payload_bytes: self.payload,
            worker: self.worker(),
            timer: self.timer,
            message_ttl: self.message_ttl,
            waiting: self.waiting,
            ..Work::new(self.profile)
        }
    }

    fn drain(&self, job_type: &str) -> DrainOptions {
        let beside = self.rate.map(|rate| DrainBeside {
            work: self.work(),
            rate,
            warm_up: self.warm_up.unwrap_or(Duration::from_secs(5)),
            duration: self.duration,
        });
        let defaults = DrainOptions::new(job_type);
        let worker = WorkerOptions { poll_beside_streams: defaults.worker.poll_beside_streams, ..self.worker() };
        DrainOptions { worker, beside, ..defaults }
    }

    fn worker(&self) -> WorkerOptions {
        let defaults = WorkerOptions::default();
        WorkerOptions {
            workers: self.workers.unwrap_or(defaults.workers),
            delivery: if self.poll { Delivery::Poll { max_jobs: POLLED_JOBS_MAX } } else { Delivery::Push },
            delay: self.delay,
            ..defaults
        }
    }

    fn options(&self) -> Options {
        let environment = Environment::of_process();
        let addresses = match &self.address[..] {
            [] => vec![address(None, &environment)],
            given => given.iter().map(|given| address(Some(given), &environment)).collect(),
        };
        Options {
            addresses,
            connections: self.connections.unwrap_or(if self.surge.is_some() { SURGE_CONNECTIONS } else { CONNECTIONS }),
            server_pids: self.server_pid.clone(),
            fsync_directory: Some(self.fsync_directory.clone()),
            ..Options::new("", self.mode())
        }
    }
}

/// Runs the load and prints its report.
pub(crate) fn run(runtime: &tokio::runtime::Runtime, arguments: LoadArguments) -> Outcome {
    let report = runtime.block_on(load::run(arguments.options()))?;
    if arguments.json {
        print_line(serde_json::to_string_pretty(&report)?)?;
    } else {
        print_line(&report)?;
    }
    Ok(report.verdict()?)
}
