//! What a run is asked to do.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::LoadError;

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
}

/// The kinds of run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A fixed rate.
    Rate(RateOptions),
    /// The highest sustainable rate.
    Maximum(MaximumOptions),
    /// Only create instances, which then wait at a task without a worker.
    Waiting(WaitingOptions),
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
    /// How many to create.
    pub instances: u64,
    /// Size of the variables of each.
    pub payload_bytes: usize,
    /// Creations in flight at once.
    pub in_flight: usize,
}

/// Jobs to complete.
#[derive(Clone, Debug, Serialize)]
pub struct DrainOptions {
    /// Their type, as the run that left them reported it.
    pub job_type: String,
    /// Who completes them.
    pub worker: WorkerOptions,
    /// End after so many; without it, when no job has come for `silence`.
    pub jobs: Option<u64>,
    /// End when no job has come for so long.
    #[serde(serialize_with = "seconds")]
    pub silence: Duration,
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

/// A process and the workers of its tasks.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// The shape of the process.
    pub profile: Profile,
    /// Size of the variables of an instance, as JSON.
    pub payload_bytes: usize,
    /// Who completes the tasks.
    pub worker: WorkerOptions,
    /// Creations without an answer at once; beyond it sends are late, then skipped.
    pub creations_in_flight: usize,
    /// Instances neither completed nor failed at once; beyond it sends are late, then skipped.
    pub outstanding_instances: usize,
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
    /// Jobs that one worker holds at once.
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

/// The shape of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Start, service task, end.
    OneTask,
    /// Ten service tasks in sequence.
    TenTasks,
    /// A parallel gateway to so many service tasks, joined by another.
    Parallel {
        /// How many.
        tasks: u16,
    },
}

impl Profile {
    /// Jobs of one instance.
    pub fn tasks(self) -> u16 {
        match self {
            Profile::OneTask => 1,
            Profile::TenTasks => 10,
            Profile::Parallel { tasks } => tasks,
        }
    }

    /// Whether each task starts when the one before it is done.
    pub fn in_sequence(self) -> bool {
        !matches!(self, Profile::Parallel { .. })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::OneTask => formatter.write_str("one-task"),
            Profile::TenTasks => formatter.write_str("ten-tasks"),
            Profile::Parallel { tasks } => write!(formatter, "parallel-{tasks}"),
        }
    }
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Profile {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        match text {
            "one-task" => Ok(Profile::OneTask),
            "ten-tasks" => Ok(Profile::TenTasks),
            "parallel" => Ok(Profile::Parallel { tasks: 10 }),
            other => other
                .strip_prefix("parallel-")
                .and_then(|tasks| tasks.parse().ok())
                .map(|tasks| Profile::Parallel { tasks })
                .ok_or_else(|| LoadError::Option {
                    option: "profile",
                    value: format!("\"{other}\""),
                    expected: "one-task, ten-tasks, parallel or parallel-N with a number of tasks",
                }),
        }
    }
}

impl Options {
    /// Options for one gateway, with a sync probe in the current directory and no server process.
    pub fn new(address: impl Into<String>, mode: Mode) -> Self {
        Options {
            addresses: vec![address.into()],
            mode,
            connections: 2,
            request_timeout: Duration::from_secs(10),
            settle_limit: Duration::from_secs(20),
            server_pids: Vec::new(),
            fsync_directory: Some(PathBuf::from(".")),
            progress: true,
        }
    }

    /// Checks what the types cannot say.
    pub fn check(&self) -> Result<(), LoadError> {
        require(!self.addresses.is_empty(), "--address", "missing", "given at least once")?;
        within("--connections", self.connections, 1, 64, "from 1 to 64")?;
        positive("--request-timeout", self.request_timeout)?;
        match &self.mode {
            Mode::Rate(options) => {
                options.work.check()?;
                rate("--rate", options.rate)?;
                positive("--duration", options.duration)
            }
            Mode::Maximum(options) => {
                options.work.check()?;
                rate("--rate", options.start_rate)?;
                positive("--trial", options.trial)?;
                positive("--duration", options.duration)?;
                require(
                    options.resolution > 0.0 && options.resolution <= 1.0,
                    "--resolution",
                    options.resolution,
                    "above 0 and at most 1",
                )
            }
            Mode::Waiting(options) => {
                payload(options.payload_bytes)?;
                within("--in-flight", options.in_flight, 1, 100_000, "from 1 to 100000")
            }
            Mode::Drain(options) => {
                require(!options.job_type.is_empty(), "--drain", "empty", "a job type")?;
                options.worker.check()
            }
            Mode::Idle(options) => {
                within("--idle-streams", options.streams, 0, 20_000, "at most 20000")?;
                within("--idle-polls", options.polls, 0, 20_000, "at most 20000")?;
                positive("--duration", options.duration)
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
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        within("parallel-N", usize::from(self.profile.tasks()), 1, 1_000, "from 1 to 1000")?;
        payload(self.payload_bytes)?;
        within("--in-flight", self.creations_in_flight, 1, 100_000, "from 1 to 100000")?;
        within("--outstanding", self.outstanding_instances, 1, 5_000_000, "from 1 to 5000000")?;
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
        within("--workers", self.workers, 1, 10_000, "from 1 to 10000")?;
        within("--max-jobs", self.jobs_in_flight, 1, 100_000, "from 1 to 100000")?;
        require(
            self.job_timeout > self.delay,
            "--delay",
            format!("{:?}", self.delay),
            "shorter than the time-out of a job, or every job is handed out twice",
        )?;
        match self.delivery {
            Delivery::Poll { max_jobs: 0 } => require(false, "--poll", "0 jobs", "at least 1 job per request"),
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
    /// So many instances with variables of 512 bytes.
    pub fn new(instances: u64) -> Self {
        WaitingOptions { instances, payload_bytes: 512, in_flight: 512 }
    }
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
        }
    }
}

fn require(
    holds: bool,
    option: &'static str,
    value: impl fmt::Display,
    expected: &'static str,
) -> Result<(), LoadError> {
    if holds {
        return Ok(());
    }
    Err(LoadError::Option { option, value: value.to_string(), expected })
}

fn within(
    option: &'static str,
    value: usize,
    least: usize,
    most: usize,
    expected: &'static str,
) -> Result<(), LoadError> {
    require((least..=most).contains(&value), option, value, expected)
}

fn positive(option: &'static str, value: Duration) -> Result<(), LoadError> {
    require(!value.is_zero(), option, "zero", "longer than zero")
}

fn rate(option: &'static str, value: f64) -> Result<(), LoadError> {
    let holds = value.is_finite() && (0.01..=1_000_000.0).contains(&value);
    require(holds, option, value, "from 0.01 to 1000000 instances per second")
}

fn payload(bytes: usize) -> Result<(), LoadError> {
    within("--payload", bytes, PAYLOAD_MINIMUM_BYTES, PAYLOAD_LIMIT_BYTES, "from 34 bytes to 3 MiB")
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_as_they_are_written() {
        for text in ["one-task", "ten-tasks", "parallel-7"] {
            assert_eq!(text.parse::<Profile>().expect("a known profile").to_string(), text);
        }
        assert_eq!("parallel".parse::<Profile>().expect("a known profile").tasks(), 10);
        let error = "two-tasks".parse::<Profile>().expect_err("an unknown profile");
        assert!(error.to_string().contains("\"two-tasks\""), "{error}");
    }

    #[test]
    fn senseless_options_are_refused_by_name() {
        let mut rate = RateOptions::new(Work::new(Profile::OneTask), f64::NAN);
        let refused = |mode: &RateOptions| {
            Options::new("127.0.0.1:26500", Mode::Rate(mode.clone())).check().expect_err("must be refused").to_string()
        };
        assert!(refused(&rate).starts_with("The option --rate is NaN"));
        rate.rate = 10.0;
        rate.work.worker.delay = Duration::from_secs(61);
        assert!(refused(&rate).contains("--delay"));
        rate.work.payload_bytes = 3;
        assert!(refused(&rate).contains("--payload"));
    }
}
