//! The command line.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand};

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
        /// Attempts left; with none left, an incident is raised.
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
        /// Set them in this scope only.
        #[arg(long)]
        local: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Evaluate a deployed decision and print its output.
    Evaluate {
        /// Id of the decision; its newest version is evaluated.
        id: String,
        /// Variables, a JSON object.
        #[arg(long, default_value = "")]
        variables: String,
        #[command(flatten)]
        server: Server,
    },
    /// Publish a message.
    Publish(Publish),
    /// Modify a process instance: end elements and start others. Either all of it happens or nothing.
    Modify(Modify),
    /// Migrate a process instance to another process definition.
    Migrate(Migrate),
    /// Delete a deployed resource.
    Delete {
        /// Key of the resource: a process definition, for example.
        key: i64,
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
    /// Inspect the data directory of a stopped node, and decide about a log entry that crashes it.
    Doctor(crate::doctor::DoctorArguments),
    /// Put load on a cluster and report how it copes.
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
    /// Free bytes on the disk below which no new work is taken [default: a fiftieth of it, at least 16MB, at most 1GB]
    #[arg(long, value_name = "BYTES")]
    disk_free_space_low: Option<String>,
    /// Bytes kept for ending work on a full disk; 0 for none [default: a fiftieth of it, at most 64MB]
    #[arg(long, value_name = "BYTES")]
    disk_reserve: Option<String>,
    /// Time between two checkpoints of a partition that changes [default: 5s]
    #[arg(long, value_name = "DURATION")]
    checkpoint_interval: Option<String>,
    /// Let the management port change the clock, for tests
    #[arg(long)]
    clock_control: bool,
    /// Keep a demo process running
    #[arg(long)]
    demo: bool,
    /// How long a partition may take to answer [default: 15s]
    #[arg(long, value_name = "DURATION")]
    request_timeout: Option<String>,
    /// How long a request for jobs waits if it does not say [default: 10s]
    #[arg(long, value_name = "DURATION")]
    long_polling_timeout: Option<String>,
    /// How many requests may wait for jobs at once [default: 20000]
    #[arg(long, value_name = "N")]
    parked_polls_max: Option<String>,
    /// How many connections may be open at once, on all ports together [default: three quarters of the open files that
    /// the system allows, at most 16384]
    #[arg(long, value_name = "N")]
    connections_max: Option<String>,
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
            ("disk-free-space-low", self.disk_free_space_low),
            ("disk-reserve", self.disk_reserve),
            ("checkpoint-interval", self.checkpoint_interval),
            ("clock-control", switch(self.clock_control)),
            ("demo", switch(self.demo)),
            ("request-timeout", self.request_timeout),
            ("long-polling-timeout", self.long_polling_timeout),
            ("parked-polls-max", self.parked_polls_max),
            ("connections-max", self.connections_max),
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
    /// Start at this element instead of the start event; may be given several times.
    #[arg(long, value_name = "ELEMENT")]
    pub start_before: Vec<String>,
    /// End the instance after this element; may be given several times.
    #[arg(long, value_name = "ELEMENT")]
    pub terminate_after: Vec<String>,
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

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Name of the message.
    pub name: String,
    /// Correlation key of the waiting instance; none for a message that always starts a new one.
    #[arg(long, default_value = "")]
    pub correlation_key: String,
    /// How long to keep the message for an instance that starts to wait for it later; 0s for not at all.
    #[arg(long, default_value = "1h", value_parser = duration)]
    pub time_to_live: Duration,
    /// Unique id: the message is refused while another with the same name, correlation key and id is kept.
    #[arg(long, default_value = "")]
    pub message_id: String,
    /// Variables for the instance, a JSON object.
    #[arg(long, default_value = "")]
    pub variables: String,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("instructions").args(["activate", "terminate", "move"]).required(true).multiple(true))]
pub(crate) struct Modify {
    /// Key of the process instance.
    pub key: i64,
    /// Start this element; may be given several times.
    #[arg(long, value_name = "ELEMENT")]
    pub activate: Vec<String>,
    /// End this element instance (a key), or all of this element (an id); may be given several times.
    #[arg(long, value_name = "KEY|ELEMENT")]
    pub terminate: Vec<Source>,
    /// End as with --terminate, and start the other element for each; may be given several times.
    #[arg(long = "move", id = "move", value_name = "KEY|ELEMENT=ELEMENT", value_parser = movement)]
    pub moves: Vec<(Source, String)>,
    /// Key of the element instance in which elements start, if there are several candidates.
    #[arg(long, value_name = "KEY", default_value_t = -1)]
    pub ancestor: i64,
    /// Variables to set in the process instance before elements start, a JSON object.
    #[arg(long, default_value = "")]
    pub variables: String,
    #[command(flatten)]
    pub server: Server,
}

/// Which element instances are to end. Ids of BPMN elements never begin with a digit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Key(i64),
    Element(String),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Source, Infallible> {
        Ok(text.parse().map_or_else(|_| Source::Element(text.to_owned()), Source::Key))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Key of the process instance.
    pub key: i64,
    /// Key of the process definition to migrate to.
    #[arg(long, value_name = "KEY")]
    pub to: i64,
    /// An element of the current definition and its counterpart in the other; may be given several times.
    #[arg(long, required = true, value_name = "ELEMENT=ELEMENT", value_parser = pair)]
    pub map: Vec<(String, String)>,
    #[command(flatten)]
    pub server: Server,
}

/// Two names with `=` between them.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((source, target)) if !source.is_empty() && !target.is_empty() => {
            Ok((source.to_owned(), target.to_owned()))
        }
        _ => Err("write both names with '=' between them, for example check=review".to_owned()),
    }
}

fn movement(text: &str) -> Result<(Source, String), String> {
    let (source, target) = pair(text)?;
    let Ok(source) = source.parse();
    Ok((source, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Command, clap::Error> {
        Arguments::try_parse_from(arguments.split(' ')).map(|arguments| arguments.command)
    }

    #[test]
    fn elements_are_named_by_key_or_id() {
        let Ok(Command::Modify(modify)) = parse("osmia modify 5 --terminate 7 --terminate check --move 8=a --move b=c")
        else {
            panic!("it is a modification");
        };
        assert_eq!(modify.terminate, [Source::Key(7), Source::Element("check".into())]);
        assert_eq!(modify.moves, [(Source::Key(8), "a".into()), (Source::Element("b".into()), "c".into())]);
        assert_eq!(modify.ancestor, -1);
    }

    #[test]
    fn instructions_must_be_there_and_whole() {
        for wrong in [
            "osmia modify 5",
            "osmia modify 5 --variables {}",
            "osmia modify 5 --move a",
            "osmia modify 5 --move a=",
            "osmia migrate 5 --to 6",
            "osmia migrate 5 --to 6 --map =b",
            "osmia migrate 5 --map a=b",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let Ok(Command::Migrate(migrate)) = parse("osmia migrate 5 --to 6 --map a=b --map c=d") else {
            panic!("it is a migration");
        };
        assert_eq!(migrate.map, [("a".into(), "b".into()), ("c".into(), "d".into())]);
    }
}
