//! The command line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::configuration::duration;

/// Osmia executes BPMN processes, durably, and speaks the protocols of Camunda 8.
#[derive(Debug, Parser)]
#[command(name = "osmia", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node.
    Start(Start),
    /// Show the cluster: nodes, partitions, leaders.
    Topology {
        #[command(flatten)]
        server: Server,
    },
    /// Deploy BPMN files, all or none.
    Deploy {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Create a process instance.
    Create(Create),
    /// Cancel a process instance.
    Cancel {
        /// Key of the process instance.
        key: i64,
        #[command(flatten)]
        server: Server,
    },
    /// Activate jobs and print each as a line of JSON.
    Activate(Activate),
    /// Complete a job.
    Complete {
        /// Key of the job.
        key: i64,
        /// Variables to set, a JSON object.
        #[arg(long, default_value = "")]
        variables: String,
        #[command(flatten)]
        server: Server,
    },
    /// Give a job back as failed.
    Fail {
        /// Key of the job.
        key: i64,
        /// Attempts left; without any, an incident is raised.
        #[arg(long, default_value_t = 0)]
        retries: i32,
        /// What went wrong.
        #[arg(long, default_value = "")]
        message: String,
        /// How long to wait before the next attempt.
        #[arg(long, default_value = "0s", value_parser = duration)]
        backoff: Duration,
        #[command(flatten)]
        server: Server,
    },
    /// Throw a BPMN error from a job.
    ThrowError {
        /// Key of the job.
        key: i64,
        /// Code of the error.
        code: String,
        /// What went wrong.
        #[arg(long, default_value = "")]
        message: String,
        #[command(flatten)]
        server: Server,
    },
    /// Set the attempts left of a job.
    UpdateRetries {
        /// Key of the job.
        key: i64,
        /// Attempts left.
        retries: i32,
        #[command(flatten)]
        server: Server,
    },
    /// Set variables in a scope.
    SetVariables {
        /// Key of the process instance or element instance.
        key: i64,
        /// The variables, a JSON object.
        variables: String,
        /// Set them in this very scope.
        #[arg(long)]
        local: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Resolve an incident.
    Resolve {
        /// Key of the incident.
        key: i64,
        #[command(flatten)]
        server: Server,
    },
    /// Put load on a cluster and report what it takes.
    Load(crate::load::LoadArguments),
}

/// Flags of `osmia start`. Each is a setting that the environment (OSMIA_…) and the file know by the same name.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Configuration file (YAML).
    #[arg(long, env = "OSMIA_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of all data [default: ./osmia-data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Number of partitions of a new data directory [default: 1]; an existing one keeps its own
    #[arg(long, value_name = "N")]
    partitions: Option<String>,
    /// Host or address to listen on [default: 127.0.0.1]
    #[arg(long)]
    host: Option<String>,
    /// Port for gRPC clients; 0 takes a free one [default: 26500]
    #[arg(long, value_name = "PORT")]
    grpc_port: Option<String>,
    /// Port for health, metrics and clock; 0 takes a free one [default: 9600]
    #[arg(long, value_name = "PORT")]
    management_port: Option<String>,
    /// Let the management port change the clock, for tests
    #[arg(long)]
    clock_control: bool,
    /// Run a small process all the time, to look at
    #[arg(long)]
    demo: bool,
    /// How long a partition may take to answer [default: 15s]
    #[arg(long, value_name = "DURATION")]
    request_timeout: Option<String>,
    /// How long a request for jobs waits that does not say how long [default: 10s]
    #[arg(long, value_name = "DURATION")]
    long_polling_timeout: Option<String>,
    /// How many requests may wait for jobs at once [default: 20000]
    #[arg(long, value_name = "N")]
    parked_polls_max: Option<String>,
    /// Certificate (PEM) for encrypted gRPC connections
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<String>,
    /// Private key (PEM) for encrypted gRPC connections
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Log filter: error, warn, info, debug or trace, also by module [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl Start {
    /// The flags that were given, by the name of their setting.
    pub(crate) fn settings(self) -> BTreeMap<&'static str, String> {
        let switch = |on: bool| on.then(|| "true".to_owned());
        let all = [
            ("data", self.data),
            ("partitions", self.partitions),
            ("host", self.host),
            ("grpc-port", self.grpc_port),
            ("management-port", self.management_port),
            ("clock-control", switch(self.clock_control)),
            ("demo", switch(self.demo)),
            ("request-timeout", self.request_timeout),
            ("long-polling-timeout", self.long_polling_timeout),
            ("parked-polls-max", self.parked_polls_max),
            ("tls-certificate", self.tls_certificate),
            ("tls-key", self.tls_key),
            ("log", self.log),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Which server a command talks to.
#[derive(Debug, Args)]
pub(crate) struct Server {
    /// Address of the gateway, host:port or a URL [default: ZEEBE_ADDRESS, CAMUNDA_GRPC_ADDRESS or 127.0.0.1:26500]
    #[arg(long)]
    pub address: Option<String>,
    /// Certificate (PEM) to trust, for https addresses
    #[arg(long, value_name = "FILE")]
    pub ca_certificate: Option<PathBuf>,
    /// How long a request may take
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// BPMN process id.
    pub id: String,
    /// Variables, a JSON object.
    #[arg(long, default_value = "")]
    pub variables: String,
    /// Version of the process; the latest if none is given.
    #[arg(long, default_value_t = -1)]
    pub version: i32,
    /// Wait until the instance is completed and print its variables.
    #[arg(long)]
    pub with_result: bool,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// Type of the jobs.
    pub job_type: String,
    /// How many at most.
    #[arg(long, default_value_t = 1)]
    pub max: i32,
    /// How long the jobs are locked.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub lock: Duration,
    /// Name of the worker.
    #[arg(long, default_value = "osmia")]
    pub worker: String,
    #[command(flatten)]
    pub server: Server,
}
