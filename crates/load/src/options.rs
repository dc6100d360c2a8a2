//! The options of a run.

mod availability;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::LoadError;
use crate::profile::Profile;

pub use availability::{AvailabilityOptions, Database};

/// The smallest payload: the tag by which a job finds its instance.
pub const PAYLOAD_MINIMUM_BYTES: usize = 34;
/// The largest payload; a gateway takes messages of 4 MiB at most.
pub const PAYLOAD_LIMIT_BYTES: usize = 3 * 1024 * 1024;

/// Everything that a run needs to know.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Gateways, as `host:port` or with `http://` before; connections are spread over them.
    pub addresses: Vec<String>,
    /// What to do there.
    pub mode: Mode,
    /// HTTP/2 connections for creating, and as many again for the workers.
    pub connections: usize,
    /// REST for creations, publications, completions and polls; gRPC without.
    pub rest: Option<RestOptions>,
    /// Whether some of the instances are searched for, to measure when they can be found.
    pub availability: Option<AvailabilityOptions>,
    /// How long a request may take.
    #[serde(serialize_with = "seconds")]
    pub request_timeout: Duration,
    /// How long the test instances before a measurement may take.
    #[serde(serialize_with = "seconds")]
    pub settle_limit: Duration,
    /// Processes of the server on this machine, whose processor time and memory are reported.
    pub server_pids: Vec<u32>,
    /// A directory on the disk of the server, to measure its sync latency during the run.
    pub fsync_directory: Option<PathBuf>,
    /// Whether to print a line to standard error every second.
    pub progress: bool,
    /// A new file for what is intended and acknowledged, for an audit afterwards.
    pub ledger: Option<PathBuf>,
    /// Whether the table lists each time without an acknowledgement; the data always have them.
    pub gaps: bool,
}

/// How commands go over REST.
#[derive(Clone, Debug, Serialize)]
pub struct RestOptions {
    /// REST ports, as `host:port` or with `http://` before; connections are spread over them.
    pub addresses: Vec<String>,
    /// Whether each request has a connection of its own, as with clients that keep none.
    pub connection_per_request: bool,
}

/// The kinds of run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A fixed rate.
    Rate(RateOptions),
    /// The highest sustainable rate.
    Maximum(MaximumOptions),
    /// Only create instances, which then wait at a task without a worker, or for a message that nobody publishes.
    Waiting(WaitingOptions),
    /// A multiple of the highest sustainable rate, between times of normal load.
    Surge(SurgeOptions),
    /// A fixed rate, alone and with a misbehaving worker.
    Misbehaving(MisbehavingOptions),
    /// Timers that are due at the same moment, during a fixed rate.
    Timers(TimersOptions),
    /// Complete the jobs that another run left.
    Drain(DrainOptions),
    /// Open streams and long polls and leave them alone.
    Idle(IdleOptions),
}

/// Instances created on a schedule that does not wait for the server, and completed by workers.
#[derive(Clone, Debug, Serialize)]
pub struct RateOptions {
    /// The process and its workers.
    pub work: Work,
    /// Instances per second.
    pub rate: f64,
    /// Time before the measurement, at the same rate.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// Time of the measurement.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
    /// How long to wait for the last instances afterwards.
    #[serde(serialize_with = "seconds")]
    pub drain_limit: Duration,
}

/// The search for the highest sustainable rate: trials at doubled rates, then bisection, then one run to confirm it.
#[derive(Clone, Debug, Serialize)]
pub struct MaximumOptions {
    /// The process and its workers.
    pub work: Work,
    /// The first rate to try, in instances per second.
    pub start_rate: f64,
    /// Warm-up of each trial.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// Measured time of each trial.
    #[serde(serialize_with = "seconds")]
    pub trial: Duration,
    /// Measured time of the run that confirms the result.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
    /// How long to wait for the last instances after each trial.
    #[serde(serialize_with = "seconds")]
    pub drain_limit: Duration,
    /// A rate is not sustainable when the 99th percentile of the overhead exceeds this.
    #[serde(serialize_with = "seconds")]
    pub overhead_limit: Duration,
    /// The search ends when the lowest rate that failed is within this fraction of the highest that held.
    pub resolution: f64,
}

/// Instances that wait.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingOptions {
    /// Where they wait: with [`Profile::Messages`] at a message catch event, with any other profile of one process at
    /// the first task of [`Profile::OneTask`].
    pub profile: Profile,
    /// How many to create.
    pub instances: u64,
    /// Size of the variables of each.
    pub payload_bytes: usize,
    /// Creations in flight at once.
    pub in_flight: usize,
}

/// Instances that wait for timers of the same moment, and other instances at a fixed rate meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct TimersOptions {
    /// Of [`Profile::Timers`]: the other process, its workers, and the size of all variables.
    pub work: Work,
    /// Instances that wait for a timer.
    pub timers: u64,
    /// Time from the start of their creation to the moment at which all are due, rounded up to a full second.
    #[serde(serialize_with = "seconds")]
    pub due_in: Duration,
    /// Creations of those instances in flight at once.
    pub in_flight: usize,
    /// Instances per second of the other process.
    pub rate: f64,
    /// Time just before the due date in which the other process is measured too, for comparison.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// How long after the due date the last timers are waited for.
    #[serde(serialize_with = "seconds")]
    pub limit: Duration,
}

/// Creations far beyond what the server can take, between times of normal load.
#[derive(Clone, Debug, Serialize)]
pub struct SurgeOptions {
    /// The process, of tasks in sequence, and its workers.
    pub work: Work,
    /// The highest sustainable rate, in instances per second.
    pub rate: f64,
    /// The rate of normal load, as a share of it.
    pub normal_share: f64,
    /// The rate of the surge, as a multiple of it.
    pub factor: f64,
    /// Normal load before the measurement.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// Normal load that is measured, before and after the surge.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
    /// Length of the surge, and of the time at the highest sustainable rate before it.
    #[serde(serialize_with = "seconds")]
    pub surge_duration: Duration,
    /// How long to wait for the last instances afterwards.
    #[serde(serialize_with = "seconds")]
    pub drain_limit: Duration,
    /// How many creations may be unanswered at once; beyond it creations are held back.
    pub in_flight: usize,
}

/// How a worker misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misbehaviour {
    /// It fails every job at once, without a back-off, until no retries are left.
    Failing,
    /// It takes every job and never answers, so that each comes again when its time is over.
    Ignoring,
}

/// Instances at a fixed rate, first alone, then together with instances of another process whose only worker misbehaves.
#[derive(Clone, Debug, Serialize)]
pub struct MisbehavingOptions {
    /// The process that is measured, and its workers.
    pub work: Work,
    /// Its instances per second.
    pub rate: f64,
    /// What the other worker does.
    pub behaviour: Misbehaviour,
    /// Instances per second for the other worker.
    pub rate_beside: f64,
    /// How long a job is locked for the other worker.
    #[serde(serialize_with = "seconds")]
    pub job_timeout: Duration,
    /// Time before the measurement.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// Length of the measurement, first alone and then with the other worker.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
}

/// Jobs to complete.
#[derive(Clone, Debug, Serialize)]
pub struct DrainOptions {
    /// Their type, as the run that left them reported it.
    pub job_type: String,
    /// Who completes them.
    pub worker: WorkerOptions,
    /// End after this many jobs; without it, when no job has come for `silence`.
    pub jobs: Option<u64>,
    /// End when no job has come for this long.
    #[serde(serialize_with = "seconds")]
    pub silence: Duration,
    /// What runs meanwhile.
    pub beside: Option<DrainBeside>,
}

/// Instances at a fixed rate, before and while a backlog is drained.
#[derive(Clone, Debug, Serialize)]
pub struct DrainBeside {
    /// The process and its workers.
    pub work: Work,
    /// Instances per second.
    pub rate: f64,
    /// Time before the measurement.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// Time of the measurement before the worker of the backlog comes.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
}

/// Idle clients.
#[derive(Clone, Debug, Serialize)]
pub struct IdleOptions {
    /// Open job streams.
    pub streams: usize,
    /// Long polls in flight.
    pub polls: usize,
    /// Time of the measurement.
    #[serde(serialize_with = "seconds")]
    pub duration: Duration,
}

/// A process, or several, and the workers of their tasks.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// What is loaded.
    pub profile: Profile,
    /// Size of the variables of an instance, as JSON.
    pub payload_bytes: usize,
    /// Who completes the tasks.
    pub worker: WorkerOptions,
    /// How many creations may be unanswered at once; beyond it sends are late, then skipped.
    pub creations_in_flight: usize,
    /// How many instances may be outstanding at once; beyond it sends are late, then skipped.
    pub outstanding_instances: usize,
    /// What the timer catch event of [`Profile::TenTasksTwoTimers`] waits; no part of the overhead.
    #[serde(serialize_with = "seconds")]
    pub timer: Duration,
    /// How long the server buffers a published message.
    #[serde(serialize_with = "seconds")]
    pub message_ttl: Duration,
    /// With [`Profile::Messages`]: instances that wait for messages during the whole measurement and after it, beyond
    /// those whose messages come.
    pub waiting: u64,
}

/// How jobs are worked on.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerOptions {
    /// Streams or pollers.
    pub workers: usize,
    /// How jobs come.
    pub delivery: Delivery,
    /// With streams, whether jobs that no stream took are polled for once a second, as the official clients do.
    pub poll_beside_streams: bool,
    /// How long a worker holds each job.
    #[serde(serialize_with = "seconds")]
    pub delay: Duration,
    /// How many jobs one worker may hold at once.
    pub jobs_in_flight: usize,
    /// How long a job is locked for its worker.
    #[serde(serialize_with = "seconds")]
    pub job_timeout: Duration,
}

/// How jobs reach a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// By streams.
    Push,
    /// By long polling.
    Poll {
        /// Jobs that one request asks for.
        max_jobs: u16,
    },
}

impl Options {
    /// Options for one gateway, with a sync probe in the current directory and no server process.
    pub fn new(address: impl Into<String>, mode: Mode) -> Self {
        Options {
            addresses: vec![address.into()],
            mode,
            connections: 2,
            rest: None,
            availability: None,
            request_timeout: Duration::from_secs(10),
            settle_limit: Duration::from_secs(20),
            server_pids: Vec::new(),
            fsync_directory: Some(PathBuf::from(".")),
            progress: true,
            ledger: None,
            gaps: false,
        }
    }

    /// Connections and workers are as many for each of several addresses.
    pub(crate) fn spread(mut self) -> Self {
        let addresses = self.addresses.len();
        self.connections = self.connections.next_multiple_of(addresses);
        if let Mode::Rate(RateOptions { work, .. }) | Mode::Maximum(MaximumOptions { work, .. }) = &mut self.mode {
            work.worker.workers = work.worker.workers.next_multiple_of(addresses);
        }
        self
    }

    /// A ledger holds instances that are created and completed, and knows no messages.
    fn check_ledger(&self) -> Result<(), LoadError> {
        let profile = match &self.mode {
            Mode::Rate(options) => Some(options.work.profile),
            Mode::Maximum(options) => Some(options.work.profile),
            _ => None,
        };
        let messages = matches!(profile, None | Some(Profile::Mixed | Profile::Messages | Profile::Timers));
        require(!messages, "The ledger", "wanted", "left out, except for a rate or the highest rate without messages")
    }

    /// Checks what the types cannot say.
    pub fn check(&self) -> Result<(), LoadError> {
        within("The number of addresses", self.addresses.len(), 1, 64, "from 1 to 64")?;
        within("The number of connections", self.connections, 1, 64, "from 1 to 64")?;
        positive("The limit of a request", self.request_timeout)?;
        if let Some(rest) = &self.rest {
            require(!rest.addresses.is_empty(), "The address for REST", "missing", "given at least once")?;
            let measures = matches!(self.mode, Mode::Rate(_) | Mode::Maximum(_));
            require(measures, "The protocol", "REST", "gRPC, except for a rate and the highest rate")?;
        }
        if let Some(availability) = &self.availability {
            availability.check(&self.mode)?;
        }
        self.ledger.as_ref().map_or(Ok(()), |_| self.check_ledger())?;
        match &self.mode {
            Mode::Rate(options) => {
                options.work.check()?;
                require(
                    options.work.profile != Profile::Timers,
                    "The profile",
                    options.work.profile,
                    "another: the timers are measured by a run of their own",
                )?;
                rate("The rate", options.rate)?;
                positive("The duration", options.duration)
            }
            Mode::Maximum(options) => {
                options.work.check()?;
                require(
                    options.work.profile != Profile::Timers,
                    "The profile",
                    options.work.profile,
                    "another: the rate beside the timers is fixed",
                )?;
                rate("The rate", options.start_rate)?;
                positive("The length of a trial", options.trial)?;
                positive("The duration", options.duration)?;
                require(
                    options.resolution > 0.0 && options.resolution <= 1.0,
                    "The resolution",
                    options.resolution,
                    "above 0 and at most 1",
                )
            }
            Mode::Waiting(options) => {
                require(
                    !matches!(options.profile, Profile::Mixed | Profile::Timers),
                    "The profile",
                    options.profile,
                    "one of a single process, whose instances wait for a worker or for a message",
                )?;
                let holds = (1..=WAITING_LIMIT).contains(&options.instances);
                require(holds, "The number of waiting instances", options.instances, "from 1 to 5000000 instances")?;
                payload(options.payload_bytes)?;
                within("The number of creations in flight", options.in_flight, 1, 100_000, "from 1 to 100000")
            }
            Mode::Surge(options) => options.check(),
            Mode::Misbehaving(options) => options.check(),
            Mode::Timers(options) => options.check(),
            Mode::Drain(options) => {
                require(!options.job_type.is_empty(), "The job type", "empty", "that of waiting jobs")?;
                options.beside.as_ref().map_or(Ok(()), DrainBeside::check)?;
                options.worker.check()
            }
            Mode::Idle(options) => {
                within("The number of idle streams", options.streams, 0, 20_000, "at most 20000")?;
                within("The number of idle polls", options.polls, 0, 20_000, "at most 20000")?;
                positive("The duration", options.duration)
            }
        }
    }
}

impl Work {
    /// A profile with variables of 512 bytes and pushed jobs that are completed at once.
    pub fn new(profile: Profile) -> Self {
        Work {
            profile,
            payload_bytes: 512,
            worker: WorkerOptions::default(),
            creations_in_flight: 2_000,
            outstanding_instances: 200_000,
            timer: Duration::from_millis(100),
            message_ttl: Duration::from_secs(10),
            waiting: 0,
        }
    }

    /// How long its longest instance lasts by the model and the workers alone.
    pub(crate) fn lasts(&self) -> Duration {
        let kinds = self.profile.kinds(self.timer);
        kinds.iter().map(|kind| kind.lasts(self.worker.delay)).max().unwrap_or_default()
    }

    fn check(&self) -> Result<(), LoadError> {
        if let Profile::Parallel { tasks } = self.profile {
            within("The number of parallel tasks", usize::from(tasks), 1, 1_000, "from 1 to 1000")?;
        }
        payload(self.payload_bytes)?;
        between("The time of the timer", self.timer, Duration::from_millis(1), TIMER_LIMIT, "from 1 ms to 1 h")?;
        between("The time to live of messages", self.message_ttl, Duration::ZERO, MESSAGE_TTL_LIMIT, "at most 24 h")?;
        require(
            self.message_ttl >= SHORTEST_BUFFERING || self.profile != Profile::Mixed,
            "The time to live of messages",
            format!("{:?}", self.message_ttl),
            "at least 1 s with the profile mixed, in which messages are published before they are waited for",
        )?;
        require(
            self.waiting <= WAITING_LIMIT,
            "The number of waiting instances",
            self.waiting,
            "at most 5000000 instances",
        )?;
        require(
            self.waiting == 0 || self.profile == Profile::Messages,
            "The number of waiting instances",
            self.waiting,
            "0 with any profile but messages; a run that only creates instances lets them wait at a task",
        )?;
        within("The number of creations in flight", self.creations_in_flight, 1, 100_000, "from 1 to 100000")?;
        within("The number of outstanding instances", self.outstanding_instances, 1, 5_000_000, "from 1 to 5000000")?;
        self.worker.check()
    }
}

impl Default for WorkerOptions {
    fn default() -> Self {
        WorkerOptions {
            workers: 2,
            delivery: Delivery::Push,
            poll_beside_streams: true,
            delay: Duration::ZERO,
            jobs_in_flight: 1_000,
            job_timeout: Duration::from_secs(60),
        }
    }
}

impl WorkerOptions {
    fn check(&self) -> Result<(), LoadError> {
        within("The number of workers", self.workers, 1, 10_000, "from 1 to 10000")?;
        within("The number of jobs in flight", self.jobs_in_flight, 1, 100_000, "from 1 to 100000")?;
        require(
            self.job_timeout > self.delay,
            "The delay of workers",
            format!("{:?}", self.delay),
            "shorter than the time-out of a job, or every job is handed out twice",
        )?;
        match self.delivery {
            Delivery::Poll { max_jobs: 0 } => {
                require(false, "The number of jobs of a poll", "0 jobs", "at least 1 job per request")
            }
            Delivery::Push | Delivery::Poll { .. } => Ok(()),
        }
    }
}

impl RateOptions {
    /// Half a minute at this rate after 5 seconds of warm-up.
    pub fn new(work: Work, rate: f64) -> Self {
        RateOptions {
            work,
            rate,
            warm_up: Duration::from_secs(5),
            duration: Duration::from_secs(30),
            drain_limit: Duration::from_secs(30),
        }
    }
}

impl MaximumOptions {
    /// Trials of 8 seconds from 500 instances per second, to within 5 %.
    pub fn new(work: Work) -> Self {
        MaximumOptions {
            work,
            start_rate: 500.0,
            warm_up: Duration::from_secs(3),
            trial: Duration::from_secs(8),
            duration: Duration::from_secs(30),
            drain_limit: Duration::from_secs(30),
            overhead_limit: Duration::from_secs(1),
            resolution: 0.05,
        }
    }
}

impl WaitingOptions {
    /// So many instances with variables of 512 bytes, waiting at a task.
    pub fn new(instances: u64) -> Self {
        WaitingOptions { profile: Profile::OneTask, instances, payload_bytes: 512, in_flight: 512 }
    }
}

impl TimersOptions {
    /// This many timers, due half a minute after the first is created, and 150 instances per second meanwhile.
    pub fn new(work: Work, timers: u64) -> Self {
        TimersOptions {
            work,
            timers,
            due_in: Duration::from_secs(30),
            in_flight: 512,
            rate: 150.0,
            warm_up: Duration::from_secs(5),
            limit: Duration::from_secs(60),
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        self.work.check()?;
        require(
            self.work.profile == Profile::Timers,
            "The profile",
            self.work.profile,
            "timers, for a run that lets timers come due at once",
        )?;
        require(
            (1..=WAITING_LIMIT).contains(&self.timers),
            "The number of timers",
            self.timers,
            "from 1 to 5000000 instances",
        )?;
        within("The number of creations in flight", self.in_flight, 1, 100_000, "from 1 to 100000")?;
        rate("The rate", self.rate)?;
        positive("The warm-up", self.warm_up)?;
        positive("The duration", self.limit)?;
        require(
            self.due_in > self.warm_up && self.due_in <= DUE_LIMIT,
            "The time until the timers are due",
            format!("{:?}", self.due_in),
            "longer than the warm-up, by the time that creating the instances takes, and at most 24 h",
        )
    }
}

impl SurgeOptions {
    /// Half a minute each of seven tenths of the rate, the rate, a multiple of it, and seven tenths again.
    pub fn new(work: Work, rate: f64, factor: f64) -> Self {
        SurgeOptions {
            work,
            rate,
            normal_share: 0.7,
            factor,
            warm_up: Duration::from_secs(5),
            duration: Duration::from_secs(30),
            surge_duration: Duration::from_secs(30),
            drain_limit: Duration::from_secs(60),
            in_flight: 20_000,
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        self.work.check()?;
        require(
            matches!(self.work.profile, Profile::OneTask | Profile::TenTasks),
            "The profile",
            self.work.profile,
            "one-task or ten-tasks for a surge",
        )?;
        within(
            "The payload",
            self.work.payload_bytes,
            PAYLOAD_MINIMUM_BYTES,
            SURGE_PAYLOAD_LIMIT_BYTES,
            "from 34 bytes to 15 KiB for a surge",
        )?;
        rate("The rate", self.rate)?;
        let factor = (1.0..=1_000.0).contains(&self.factor);
        require(factor, "The factor of the surge", self.factor, "from 1 to 1000 times the sustainable rate")?;
        let share = self.normal_share > 0.0 && self.normal_share <= 1.0;
        require(share, "The normal share", self.normal_share, "above 0 and at most 1")?;
        for (what, length) in [("The duration", self.duration), ("The length of the surge", self.surge_duration)] {
            between(what, length, Duration::from_millis(1), SURGE_PART_LIMIT, "from 1 ms to 10 min for a surge")?;
        }
        between("The warm-up", self.warm_up, Duration::ZERO, SURGE_PART_LIMIT, "at most 10 min for a surge")?;
        let sends = self.rate
            * (self.surge_duration.as_secs_f64() * (self.factor + 1.0)
                + (self.warm_up + self.duration * 2).as_secs_f64());
        require(
            sends <= SURGE_SENDS_LIMIT,
            "The number of all creations",
            sends,
            "at most 500 million: make the surge shorter or smaller",
        )?;
        within("The number of creations in flight", self.in_flight, 1, 1_000_000, "from 1 to 1000000")
    }
}

impl MisbehavingOptions {
    /// Half a minute alone, and half a minute with 100 instances per second for the other worker.
    pub fn new(work: Work, rate: f64, behaviour: Misbehaviour) -> Self {
        MisbehavingOptions {
            work,
            rate,
            behaviour,
            rate_beside: 100.0,
            job_timeout: match behaviour {
                Misbehaviour::Failing => Duration::from_secs(60),
                Misbehaviour::Ignoring => Duration::from_secs(1),
            },
            warm_up: Duration::from_secs(5),
            duration: Duration::from_secs(30),
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        self.work.check()?;
        beside(self.work.profile)?;
        rate("The rate", self.rate)?;
        rate("The rate of the misbehaving worker's instances", self.rate_beside)?;
        positive("The duration", self.duration)
    }
}

impl DrainBeside {
    fn check(&self) -> Result<(), LoadError> {
        self.work.check()?;
        beside(self.work.profile)?;
        rate("The rate", self.rate)?;
        positive("The duration", self.duration)
    }
}

/// Profiles whose instances are created by the schedule can run together with something else.
fn beside(profile: Profile) -> Result<(), LoadError> {
    require(
        !matches!(profile, Profile::Messages | Profile::Timers),
        "The profile",
        profile,
        "one of instances at a fixed rate, not messages or timers, to run together with something else",
    )
}

impl DrainOptions {
    /// Drains a type until no job has come for 3 seconds.
    pub fn new(job_type: impl Into<String>) -> Self {
        DrainOptions {
            job_type: job_type.into(),
            worker: WorkerOptions {
                // Polls would compete with the streams for the backlog that is to be measured.
                poll_beside_streams: false,
                ..WorkerOptions::default()
            },
            jobs: None,
            silence: Duration::from_secs(3),
            beside: None,
        }
    }
}

/// The longest wait of a timer catch event.
const TIMER_LIMIT: Duration = Duration::from_secs(3_600);
const MESSAGE_TTL_LIMIT: Duration = Duration::from_secs(24 * 3_600);
/// A message that is published before its subscription opens must be kept at least this long.
const SHORTEST_BUFFERING: Duration = Duration::from_secs(1);
const DUE_LIMIT: Duration = Duration::from_secs(24 * 3_600);
/// One message fits into one frame of HTTP/2.
const SURGE_PAYLOAD_LIMIT_BYTES: usize = 15 * 1024;
/// All parts together are shorter than the times that a tag can hold.
const SURGE_PART_LIMIT: Duration = Duration::from_secs(600);
/// A tag can number more.
const SURGE_SENDS_LIMIT: f64 = 500e6;
/// Instances that a run leaves waiting.
const WAITING_LIMIT: u64 = 5_000_000;

fn require(holds: bool, what: &'static str, value: impl fmt::Display, expected: &'static str) -> Result<(), LoadError> {
    if holds {
        return Ok(());
    }
    Err(LoadError::Option { what, value: value.to_string(), expected })
}

fn within(
    what: &'static str,
    value: usize,
    least: usize,
    most: usize,
    expected: &'static str,
) -> Result<(), LoadError> {
    require((least..=most).contains(&value), what, value, expected)
}

fn between(
    what: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
    expected: &'static str,
) -> Result<(), LoadError> {
    require((least..=most).contains(&value), what, format!("{value:?}"), expected)
}

fn positive(what: &'static str, value: Duration) -> Result<(), LoadError> {
    require(!value.is_zero(), what, "zero", "longer than zero")
}

fn rate(what: &'static str, value: f64) -> Result<(), LoadError> {
    let holds = value.is_finite() && (0.01..=1_000_000.0).contains(&value);
    require(holds, what, value, "from 0.01 to 1000000 instances per second")
}

fn payload(bytes: usize) -> Result<(), LoadError> {
    within("The payload", bytes, PAYLOAD_MINIMUM_BYTES, PAYLOAD_LIMIT_BYTES, "from 34 bytes to 3 MiB")
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests;
