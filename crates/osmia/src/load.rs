//! `osmia load`: the arguments of the load generator.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{
    Delivery, DrainOptions, IdleOptions, MaximumOptions, Mode, Options, Profile, RateOptions, WaitingOptions, Work,
    WorkerOptions,
};

use crate::Outcome;
use crate::client::address;
use crate::configuration::{Environment, duration};

/// What to do to a cluster. Without --max, --wait, --drain or idle clients: a fixed rate.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Shape of the process: one-task, ten-tasks, parallel or parallel-N.
    #[arg(default_value = "one-task")]
    profile: Profile,
    /// Instances per second; with --max the rate to begin with.
    #[arg(long)]
    rate: Option<f64>,
    /// Find the highest sustainable rate.
    #[arg(long)]
    max: bool,
    /// Only create so many instances, which then wait at their first task.
    #[arg(long, value_name = "INSTANCES", conflicts_with_all = ["max", "rate"])]
    wait: Option<u64>,
    /// Complete the waiting jobs of this type, as reported by a run with --wait.
    #[arg(long, value_name = "JOB_TYPE", conflicts_with_all = ["max", "rate", "wait"])]
    drain: Option<String>,
    /// Open so many idle job streams.
    #[arg(long, value_name = "N", conflicts_with_all = ["max", "rate", "wait", "drain"])]
    idle_streams: Option<usize>,
    /// Keep so many idle long polls waiting.
    #[arg(long, value_name = "N", conflicts_with_all = ["max", "rate", "wait", "drain"])]
    idle_polls: Option<usize>,
    /// Time of the measurement.
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
    /// HTTP/2 connections for creating, and as many again for the workers.
    #[arg(long, default_value_t = 2)]
    connections: usize,
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

/// How many jobs one poll asks for.
const POLLED_JOBS_MAX: u16 = 32;
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
            return Mode::Waiting(WaitingOptions { payload_bytes: self.payload, ..WaitingOptions::new(instances) });
        }
        if let Some(job_type) = &self.drain {
            return Mode::Drain(DrainOptions { worker: self.worker(), ..DrainOptions::new(job_type) });
        }
        let work = Work { payload_bytes: self.payload, worker: self.worker(), ..Work::new(self.profile) };
        if self.max {
            let defaults = MaximumOptions::new(work);
            return Mode::Maximum(MaximumOptions {
                start_rate: self.rate.unwrap_or(defaults.start_rate),
                duration: self.duration,
                warm_up: self.warm_up.unwrap_or(defaults.warm_up),
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
            connections: self.connections,
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
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}
