//! `osmia load`: the arguments of the load generator. Each kind of run is a command with flags of its own.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use load::{
    AuditOptions, AvailabilityOptions, Database, Delivery, DrainBeside, DrainOptions, History, IdleOptions,
    MaximumOptions, MisbehavingOptions, Misbehaviour, Mode, Options, Profile, RateOptions, RestOptions, SurgeOptions,
    TimersOptions, WaitingOptions, Work, WorkerOptions,
};

use crate::client::address;
use crate::configuration::{Environment, duration};
use crate::outcome::Outcome;
use crate::output::print_line;

/// The kinds of run.
#[derive(Debug, Subcommand)]
pub(crate) enum Load {
    /// Keep a fixed rate.
    #[command(after_help = PROFILES)]
    Rate(Rate),
    /// Find the highest sustainable rate.
    #[command(after_help = PROFILES)]
    Max(Max),
    /// Normal load, the highest sustainable rate, a multiple of it, and normal load again. What the server refuses is not
    /// sent again.
    Surge(Surge),
    /// Only create instances, which then wait at their first task (with messages: for a message).
    #[command(after_help = PROFILES)]
    Wait(Wait),
    /// Complete the jobs that a run of `wait` left.
    Drain(Drain),
    /// The same while instances of a profile run, which are measured for --duration before that too.
    #[command(after_help = PROFILES)]
    DrainUnderLoad(DrainUnderLoad),
    /// Open job streams and long polls that stay idle.
    Idle(Idle),
    /// Measure a profile for --duration alone, and for --duration with a worker of another process that misbehaves.
    #[command(after_help = PROFILES)]
    Misbehave(Misbehave),
    /// Let many timers be due at the same moment, and meanwhile run one-task at a rate.
    Timers(Timers),
    /// Compare the ledger of a run with what every node finds: what is lost, doubled, stuck, or not the same everywhere.
    ///
    /// Completes the jobs that the run left, and waits for what is still on its way. Ends with 0 only when all is right.
    Audit(Audit),
}

const PROFILES: &str = "\
Profiles:
  one-task              start, service task, end
  ten-tasks             ten service tasks in sequence
  ten-tasks-two-timers  the same with a boundary timer that never fires and a timer catch event (--timer) in the middle
  parallel-N            a parallel gateway to N service tasks (parallel: 10)
  mixed                 60 % one-task, 20 % ten-tasks-two-timers, 20 % task, message catch event, task
  messages              messages at a rate, each for an instance that waits for it

A message that is not correlated exactly once, or a timer that does not fire exactly once, makes the run fail.";

/// Where the load goes, and what is reported.
#[derive(Debug, Args)]
struct Target {
    /// Addresses of the gateways, with commas or given again; connections and workers are spread evenly over them
    /// [default: OSMIA_ADDRESS, ZEEBE_ADDRESS, CAMUNDA_GRPC_ADDRESS, ZEEBE_GRPC_ADDRESS or 127.0.0.1:26500]
    #[arg(long, value_delimiter = ',')]
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
    /// Append the result to this file, and compare it with the last ten there of the same settings.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// With --history: what was measured [default: what `git describe` says of the working directory]
    #[arg(long, value_name = "TEXT", requires = "history")]
    commit: Option<String>,
}

/// Connections of all but a surge.
#[derive(Debug, Args)]
struct Connections {
    /// HTTP/2 connections for creating, and as many again for the workers.
    #[arg(long, default_value_t = 2)]
    connections: usize,
}

/// How commands go.
#[derive(Debug, Args)]
struct Commands {
    /// What creations, publications, completions and polls go over. All else is gRPC.
    #[arg(long, value_enum, default_value_t = Protocol::Grpc)]
    protocol: Protocol,
    /// With REST or --availability: addresses of the gateways for it [default: OSMIA_REST_ADDRESS, ZEEBE_REST_ADDRESS,
    /// CAMUNDA_REST_ADDRESS or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    rest_address: Vec<String>,
    /// With REST: open a connection for each request instead of keeping some.
    #[arg(long)]
    connection_per_request: bool,
    /// Measure the time from the intended send of a creation until a search by key and one by filter find the instance.
    #[arg(long)]
    availability: bool,
    /// The same, but search in Elasticsearch or OpenSearch, into which an exporter writes. May be given several times.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "availability")]
    availability_elasticsearch: Vec<String>,
    /// How many instances are searched for in a second.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    availability_samples: f64,
    /// Write what is intended and what is acknowledged into this new file, for `osmia load audit`. An intent is synced
    /// before its request is sent.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Print each time without an acknowledgement that is longer than 50 ms, with its wall-clock time.
    #[arg(long)]
    gaps: bool,
}

/// The protocols of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Grpc,
    Rest,
}

impl Commands {
    fn rest(&self, environment: &Environment) -> Option<RestOptions> {
        let (addresses, connection_per_request) = (self.rest_addresses(environment), self.connection_per_request);
        (self.protocol == Protocol::Rest).then_some(RestOptions { addresses, connection_per_request })
    }

    fn availability(&self, environment: &Environment) -> Option<AvailabilityOptions> {
        let elasticsearch = &self.availability_elasticsearch;
        let (database, addresses) = match (self.availability, elasticsearch.is_empty()) {
            (true, _) => (Database::ReadModel, self.rest_addresses(environment)),
            (false, false) => (Database::Elasticsearch, elasticsearch.clone()),
            (false, true) => return None,
        };
        Some(AvailabilityOptions {
            samples_per_second: self.availability_samples,
            ..AvailabilityOptions::new(database, addresses)
        })
    }

    fn rest_addresses(&self, environment: &Environment) -> Vec<String> {
        match &self.rest_address[..] {
            [] => vec![crate::ask::configured_address(environment)],
            given => given.to_vec(),
        }
    }
}

/// Who completes the jobs.
#[derive(Debug, Args)]
struct Workers {
    /// Workers for each job type.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// How long a worker holds each job.
    #[arg(long, default_value = "0ms", value_parser = duration)]
    delay: Duration,
    /// Let workers poll instead of opening streams.
    #[arg(long)]
    poll: bool,
    /// How long a job is locked for its worker. When nobody knows the outcome of a completion it is not sent again; the
    /// server hands the job out again after this time, or sooner.
    #[arg(long, default_value = "60s", value_parser = duration)]
    job_timeout: Duration,
}

/// The variables of an instance.
#[derive(Debug, Args)]
struct Payload {
    /// Size of the variables of an instance in bytes.
    #[arg(long, default_value_t = 512)]
    payload: usize,
}

/// Which processes run, and who works for them.
#[derive(Debug, Args)]
struct Processes {
    /// What is loaded, one of the profiles below.
    #[arg(default_value = "one-task")]
    profile: Profile,
    /// How long the timer catch event of ten-tasks-two-timers waits; does not count as overhead.
    #[arg(long, default_value = "100ms", value_parser = duration)]
    timer: Duration,
    /// How long published messages are buffered.
    #[arg(long, default_value = "10s", value_parser = duration)]
    message_ttl: Duration,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    workers: Workers,
}

/// Instances that wait beside the profile `messages`.
#[derive(Debug, Args)]
struct Waiting {
    /// With messages: this many more instances wait for a message, during the measurement and after it.
    #[arg(long, value_name = "INSTANCES", default_value_t = 0)]
    waiting: u64,
}

/// How long is measured.
#[derive(Debug, Args)]
struct Period {
    /// Length of the measurement.
    #[arg(long, default_value = "30s", value_parser = duration)]
    duration: Duration,
    /// Time before the measurement, under the same load.
    #[arg(long, default_value = "5s", value_parser = duration)]
    warm_up: Duration,
}

/// Arguments of `osmia load rate`.
#[derive(Debug, Args)]
pub(crate) struct Rate {
    #[command(flatten)]
    processes: Processes,
    /// Instances per second; with messages, publications per second.
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    commands: Commands,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load max`.
#[derive(Debug, Args)]
pub(crate) struct Max {
    #[command(flatten)]
    processes: Processes,
    /// The first rate to try.
    #[arg(long, value_name = "RATE", default_value_t = 500.0)]
    start_rate: f64,
    #[command(flatten)]
    waiting: Waiting,
    /// Length of the run that confirms the rate.
    #[arg(long, default_value = "30s", value_parser = duration)]
    duration: Duration,
    /// Time before the measurement of each trial, under the same load.
    #[arg(long, default_value = "3s", value_parser = duration)]
    warm_up: Duration,
    #[command(flatten)]
    commands: Commands,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load surge`.
#[derive(Debug, Args)]
pub(crate) struct Surge {
    /// What is loaded: one-task or ten-tasks.
    #[arg(default_value = "one-task")]
    profile: Profile,
    /// The highest sustainable rate, as `osmia load max` found it.
    #[arg(long)]
    rate: f64,
    /// The surge, as a multiple of that rate.
    #[arg(long, default_value_t = 10.0)]
    factor: f64,
    /// Length of the surge, and of the phase at the highest sustainable rate before it.
    #[arg(long, default_value = "30s", value_parser = duration)]
    surge_duration: Duration,
    /// The normal load, as a share of that rate.
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    normal_share: f64,
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    workers: Workers,
    /// HTTP/2 connections for creating, and as many again for the workers: a surge comes from many clients.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load wait`.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// How many instances to create.
    instances: u64,
    /// What is loaded: messages, or any other profile of one process.
    #[arg(default_value = "one-task")]
    profile: Profile,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load drain`.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Type of the jobs, as `osmia load wait` reported it.
    job_type: String,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load drain-under-load`.
#[derive(Debug, Args)]
pub(crate) struct DrainUnderLoad {
    /// Type of the jobs, as `osmia load wait` reported it.
    job_type: String,
    #[command(flatten)]
    processes: Processes,
    /// Instances per second.
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Which clients are idle.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct IdleClients {
    /// Open this many job streams.
    #[arg(long, value_name = "N", default_value_t = 0)]
    streams: usize,
    /// Keep this many long polls waiting.
    #[arg(long, value_name = "N", default_value_t = 0)]
    polls: usize,
}

/// Arguments of `osmia load idle`.
#[derive(Debug, Args)]
pub(crate) struct Idle {
    #[command(flatten)]
    clients: IdleClients,
    /// Length of the measurement.
    #[arg(long, default_value = "30s", value_parser = duration)]
    duration: Duration,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// What the worker of the other process does.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// It fails every job at once, until no retries are left.
    Failing,
    /// It takes every job and never answers.
    Ignoring,
}

/// Arguments of `osmia load misbehave`.
#[derive(Debug, Args)]
pub(crate) struct Misbehave {
    /// What the worker of the other process does.
    how: How,
    #[command(flatten)]
    processes: Processes,
    /// Instances per second of the profile.
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
    /// Instances per second for the worker that misbehaves.
    #[arg(long, value_name = "RATE", default_value_t = 100.0)]
    misbehaving_rate: f64,
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load timers`.
#[derive(Debug, Args)]
pub(crate) struct Timers {
    /// This many instances have timers due at the same moment.
    #[arg(default_value_t = 100_000)]
    timers: u64,
    /// Time from the first creation of their instances to the moment at which they are due.
    #[arg(long, default_value = "30s", value_parser = duration)]
    due_in: Duration,
    /// How long after that moment the last timers are waited for.
    #[arg(long, default_value = "30s", value_parser = duration)]
    limit: Duration,
    /// Instances per second of one-task.
    #[arg(long, default_value_t = 150.0)]
    rate: f64,
    /// Time just before that moment in which one-task is measured too, for comparison.
    #[arg(long, default_value = "5s", value_parser = duration)]
    warm_up: Duration,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    connections: Connections,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `osmia load audit`.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// The file that a run wrote.
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// Addresses for REST of all nodes, with commas or given again [default: OSMIA_REST_ADDRESS, ZEEBE_REST_ADDRESS,
    /// CAMUNDA_REST_ADDRESS or 127.0.0.1:8080]
    #[arg(long, value_delimiter = ',')]
    address: Vec<String>,
    /// How long something may be wrong without a change before it counts.
    #[arg(long, default_value = "30s", value_parser = duration)]
    settle: Duration,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

impl Audit {
    fn run(self, runtime: &tokio::runtime::Runtime, environment: &Environment) -> Outcome {
        let addresses = match &self.address[..] {
            [] => vec![crate::ask::configured_address(environment)],
            given => given.to_vec(),
        };
        let options = AuditOptions { ledger: self.ledger, addresses, settle: self.settle, progress: true };
        let report = runtime.block_on(load::audit(&options))?;
        if self.json {
            print_line(serde_json::to_string_pretty(&report)?)?;
        } else {
            print_line(&report)?;
        }
        Ok(report.verdict()?)
    }
}

/// How many jobs one poll asks for.
const POLLED_JOBS_MAX: u16 = 32;

impl Workers {
    fn options(&self) -> WorkerOptions {
        WorkerOptions {
            workers: self.workers,
            delivery: if self.poll { Delivery::Poll { max_jobs: POLLED_JOBS_MAX } } else { Delivery::Push },
            delay: self.delay,
            job_timeout: self.job_timeout,
            ..WorkerOptions::default()
        }
    }
}

impl Processes {
    fn work(&self) -> Work {
        Work { timer: self.timer, message_ttl: self.message_ttl, ..work(self.profile, &self.payload, &self.workers) }
    }
}

fn work(profile: Profile, payload: &Payload, workers: &Workers) -> Work {
    Work { payload_bytes: payload.payload, worker: workers.options(), ..Work::new(profile) }
}

fn drain(job_type: &str, workers: &Workers, beside: Option<DrainBeside>) -> Mode {
    let defaults = DrainOptions::new(job_type);
    let worker = WorkerOptions { poll_beside_streams: defaults.worker.poll_beside_streams, ..workers.options() };
    Mode::Drain(DrainOptions { worker, beside, ..defaults })
}

impl Rate {
    fn mode(&self) -> Mode {
        let work = Work { waiting: self.waiting.waiting, ..self.processes.work() };
        let Period { duration, warm_up } = self.period;
        Mode::Rate(RateOptions { duration, warm_up, ..RateOptions::new(work, self.rate) })
    }
}

impl Max {
    fn mode(&self) -> Mode {
        let work = Work { waiting: self.waiting.waiting, ..self.processes.work() };
        Mode::Maximum(MaximumOptions {
            start_rate: self.start_rate,
            duration: self.duration,
            warm_up: self.warm_up,
            ..MaximumOptions::new(work)
        })
    }
}

impl Surge {
    fn mode(&self) -> Mode {
        let Period { duration, warm_up } = self.period;
        Mode::Surge(SurgeOptions {
            normal_share: self.normal_share,
            duration,
            surge_duration: self.surge_duration,
            warm_up,
            ..SurgeOptions::new(work(self.profile, &self.payload, &self.workers), self.rate, self.factor)
        })
    }
}

impl Wait {
    fn mode(&self) -> Mode {
        let defaults = WaitingOptions::new(self.instances);
        Mode::Waiting(WaitingOptions { profile: self.profile, payload_bytes: self.payload.payload, ..defaults })
    }
}

impl DrainUnderLoad {
    fn mode(&self) -> Mode {
        let Period { duration, warm_up } = self.period;
        let beside = DrainBeside { work: self.processes.work(), rate: self.rate, warm_up, duration };
        drain(&self.job_type, &self.processes.workers, Some(beside))
    }
}

impl Idle {
    fn mode(&self) -> Mode {
        let IdleClients { streams, polls } = self.clients;
        Mode::Idle(IdleOptions { streams, polls, duration: self.duration })
    }
}

impl Misbehave {
    fn mode(&self) -> Mode {
        let behaviour = match self.how {
            How::Failing => Misbehaviour::Failing,
            How::Ignoring => Misbehaviour::Ignoring,
        };
        let Period { duration, warm_up } = self.period;
        Mode::Misbehaving(MisbehavingOptions {
            rate_beside: self.misbehaving_rate,
            duration,
            warm_up,
            ..MisbehavingOptions::new(self.processes.work(), self.rate, behaviour)
        })
    }
}

impl Timers {
    fn mode(&self) -> Mode {
        let work = work(Profile::Timers, &self.payload, &self.workers);
        Mode::Timers(TimersOptions {
            due_in: self.due_in,
            rate: self.rate,
            warm_up: self.warm_up,
            limit: self.limit,
            ..TimersOptions::new(work, self.timers)
        })
    }
}

impl Load {
    /// How commands go, where that can be said.
    fn commands(&self) -> Option<&Commands> {
        match self {
            Load::Rate(run) => Some(&run.commands),
            Load::Max(run) => Some(&run.commands),
            _ => None,
        }
    }

    /// What a run needs; an audit is none.
    fn parts(self) -> Result<(Mode, usize, Target), Audit> {
        Ok(match self {
            Load::Rate(run) => (run.mode(), run.connections.connections, run.target),
            Load::Max(run) => (run.mode(), run.connections.connections, run.target),
            Load::Surge(run) => (run.mode(), run.connections, run.target),
            Load::Wait(run) => (run.mode(), run.connections.connections, run.target),
            Load::Drain(run) => (drain(&run.job_type, &run.workers, None), run.connections.connections, run.target),
            Load::DrainUnderLoad(run) => (run.mode(), run.connections.connections, run.target),
            Load::Idle(run) => (run.mode(), run.connections.connections, run.target),
            Load::Misbehave(run) => (run.mode(), run.connections.connections, run.target),
            Load::Timers(run) => (run.mode(), run.connections.connections, run.target),
            Load::Audit(audit) => return Err(audit),
        })
    }
}

/// What git says of the working directory; nothing outside of a checkout.
fn described_commit() -> Option<String> {
    let mut git = std::process::Command::new("git");
    let output = git.args(["describe", "--always", "--dirty", "--abbrev=12"]).output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !name.is_empty()).then_some(name)
}

/// Runs the load and prints its report.
pub(crate) fn run(runtime: &tokio::runtime::Runtime, load: Load) -> Outcome {
    let environment = Environment::of_process();
    let rest = load.commands().and_then(|commands| commands.rest(&environment));
    let availability = load.commands().and_then(|commands| commands.availability(&environment));
    let (ledger, gaps) = load.commands().map_or((None, false), |commands| (commands.ledger.clone(), commands.gaps));
    let (mode, connections, target) = match load.parts() {
        Ok(parts) => parts,
        Err(audit) => return audit.run(runtime, &environment),
    };
    let addresses = match &target.address[..] {
        [] => vec![address(None, &environment)],
        given => given.iter().map(|given| address(Some(given), &environment)).collect(),
    };
    let options = Options {
        addresses,
        connections,
        rest,
        availability,
        server_pids: target.server_pid,
        fsync_directory: Some(target.fsync_directory),
        ledger,
        gaps,
        ..Options::new("", mode)
    };
    // A file that cannot be used is found before the run, not after it.
    let history = target.history.map(History::open).transpose()?;
    let mut report = runtime.block_on(load::run(options))?;
    if let Some(history) = history {
        report.history = Some(history.append(&report, target.commit.or_else(described_commit))?);
    }
    if target.json {
        print_line(serde_json::to_string_pretty(&report)?)?;
    } else {
        print_line(&report)?;
    }
    Ok(report.verdict()?)
}
