//! The command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::ask::Ask;
use crate::call::Call;
use crate::client::Server;

/// Osmia executes BPMN processes, durably, and speaks the protocols of Camunda 8.
#[derive(Debug, Parser)]
#[command(name = "osmia", version)]
pub(crate) struct Arguments {
    /// For commands that call a node; may also come after the command.
    #[command(flatten)]
    pub server: Server,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node.
    Start(Box<Start>),
    #[command(flatten)]
    Call(Call),
    #[command(flatten)]
    Ask(Ask),
    /// Check models and forms as a deployment does, without a node.
    Check(crate::check::CheckArguments),
    /// Inspect the data directory of a stopped node, and decide about a log entry that crashes it.
    Doctor(crate::doctor::DoctorArguments),
    /// Say whether a node is ready, and what is not well; fails when it is not ready. For health checks of containers.
    Health(crate::health::HealthArguments),
    /// Show the nodes of a cluster, or replace one whose disk is gone.
    #[command(subcommand)]
    Cluster(crate::cluster::ClusterCommand),
    /// Print a template of the configuration file, or check what is configured here, without starting a node.
    #[command(subcommand)]
    Settings(crate::settings::SettingsCommand),
    /// Put load on a cluster and report how it copes.
    #[command(subcommand)]
    Load(crate::load::Load),
    /// Print the script that lets a shell complete commands and flags.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of osmia or of one of its commands, to be read with `man -l -`.
    Man {
        /// The command, for example `start` or `load rate`.
        command: Vec<String>,
    },
    /// Print the version.
    Version {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Flags of `osmia start`. Each is a setting that the environment (OSMIA_…) and the file know by the same name.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Configuration file (YAML).
    #[arg(long, env = "OSMIA_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Run so many nodes of one cluster on this machine, 1 to 9, for trying out. Each is a process of its own with its data below
    /// the directory, and its ports 10 above those of the one before it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9))]
    pub nodes: Option<u32>,
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
    /// Port for REST clients; 0 takes a free one [default: 8080]
    #[arg(long, value_name = "PORT")]
    http_port: Option<String>,
    /// Port for health, metrics and clock; 0 takes a free one [default: 9600]
    #[arg(long, value_name = "PORT")]
    management_port: Option<String>,
    /// The number of this node in initial-members, from 0 [default: 0]
    #[arg(long, value_name = "N")]
    node_id: Option<String>,
    /// All nodes of the cluster, the same list on each, with the ports on which they listen for each other:
    /// 0=a:26502,1=b:26502,2=c:26502, or without numbers in their order [default: this node alone]
    #[arg(long, value_name = "LIST")]
    initial_members: Option<String>,
    /// Host or address to listen on for the other nodes of the cluster, in a network that only they reach [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    cluster_host: Option<String>,
    /// Port for the other nodes of the cluster [default: the one of this node in initial-members, or 26502]
    #[arg(long, value_name = "PORT")]
    cluster_port: Option<String>,
    /// Where clients are sent that ask for the topology, HOST or HOST:PORT [default: the host, or for all addresses the one in
    /// initial-members, and the gRPC port]
    #[arg(long, value_name = "ADDRESS")]
    advertised_address: Option<String>,
    /// How long clients are served after the node has said that it stops, so that balancers turn to others [default: 0s alone, 2s in
    /// a cluster]
    #[arg(long, value_name = "DURATION")]
    shutdown_drain: Option<String>,
    /// Names by which the HTTP ports may be asked besides localhost, the host and, where that is no loopback address, addresses and
    /// names without a point; a list of names, patterns like *.example.com, or * for any name [default: none]
    #[arg(long, value_name = "LIST")]
    allowed_hosts: Option<String>,
    /// Free bytes on the disk below which no new work is taken [default: a fiftieth of it, at least 16MB, at most 1GB]
    #[arg(long, value_name = "BYTES")]
    disk_free_space_low: Option<String>,
    /// Bytes kept for ending work on a full disk; 0 for none [default: a fiftieth of it, at most 64MB]
    #[arg(long, value_name = "BYTES")]
    disk_reserve: Option<String>,
    /// Time between two checkpoints of a partition that changes [default: 5s]
    #[arg(long, value_name = "DURATION")]
    checkpoint_interval: Option<String>,
    /// Bytes that the variables of a process instance and of all that it called may have, from 1MB to 1TB; it is kept in the
    /// state until it is changed [default: 512MB]
    #[arg(long, value_name = "BYTES")]
    root_variable_bytes_limit: Option<String>,
    /// Whether the creation of an instance is refused when one of the same process with its business id lives, true or false; it is
    /// kept in the state until it is changed [default: false]
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, default_missing_value = "true")]
    unique_business_ids: Option<String>,
    /// Bytes of records of a partition that an exporter may hold back before new work is refused [default: 4GB]
    #[arg(long, value_name = "BYTES")]
    exporter_backlog_limit: Option<String>,
    /// Records of a partition that may wait for an exporter before new work is slowed down to what it takes [default: any number]
    #[arg(long, value_name = "RECORDS")]
    write_throttle_backlog: Option<String>,
    /// Where the data is that searches read: sqlite for files in the data directory, postgresql for a server, or none [default:
    /// sqlite]
    #[arg(long, value_name = "KIND")]
    read_model: Option<String>,
    /// The PostgreSQL server for that, like postgresql://user:password@host:5432/database?sslmode=verify-full; a variable of the
    /// environment shows the password to fewer people
    #[arg(long, value_name = "URL")]
    read_model_url: Option<String>,
    /// How long searches find instances that ended well, like 30d [default: for ever]
    #[arg(long, value_name = "AGE")]
    read_model_keep_completed: Option<String>,
    /// How long searches find instances that were cancelled or terminated, like 30d [default: for ever]
    #[arg(long, value_name = "AGE")]
    read_model_keep_terminated: Option<String>,
    /// What of the doings of people who are logged in is noted in the audit log [default: all]
    #[arg(long, value_name = "LIST")]
    read_model_audit_users: Option<String>,
    /// The same of programs that are logged in [default: none]
    #[arg(long, value_name = "LIST")]
    read_model_audit_clients: Option<String>,
    /// The same of whoever is not logged in [default: all, not create process-instance, not evaluate decision]
    #[arg(long, value_name = "LIST")]
    read_model_audit_anonymous: Option<String>,
    /// The same of the engine itself [default: user-tasks]
    #[arg(long, value_name = "LIST")]
    read_model_audit_engine: Option<String>,
    /// Let clients change the clock, over REST and the management port, and have all data deleted over the latter, for tests
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
    /// How long a search waits until it sees what was acknowledged before it [default: 1s]
    #[arg(long, value_name = "DURATION")]
    search_wait: Option<String>,
    /// How many connections may be open at once, on all ports together [default: three quarters of the open files that
    /// the system allows, at most 16384]
    #[arg(long, value_name = "N")]
    connections_max: Option<String>,
    /// Certificate (PEM) for encrypted connections of clients, gRPC and REST
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<String>,
    /// Private key (PEM) for encrypted connections of clients, gRPC and REST
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Log filter: error, warn, info, debug or trace, also by module [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// Shape of log lines: text for people, or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl Start {
    /// The settings whose flags have no value.
    pub(crate) const SWITCHES: [&str; 2] = ["clock-control", "demo"];

    /// The flags that were given, by the name of their setting.
    pub(crate) fn settings(self) -> BTreeMap<&'static str, String> {
        let switch = |on: bool| on.then(|| "true".to_owned());
        let all = [
            ("data", self.data),
            ("partitions", self.partitions),
            ("host", self.host),
            ("grpc-port", self.grpc_port),
            ("http-port", self.http_port),
            ("management-port", self.management_port),
            ("node-id", self.node_id),
            ("initial-members", self.initial_members),
            ("cluster-host", self.cluster_host),
            ("cluster-port", self.cluster_port),
            ("advertised-address", self.advertised_address),
            ("shutdown-drain", self.shutdown_drain),
            ("allowed-hosts", self.allowed_hosts),
            ("disk-free-space-low", self.disk_free_space_low),
            ("disk-reserve", self.disk_reserve),
            ("checkpoint-interval", self.checkpoint_interval),
            ("root-variable-bytes-limit", self.root_variable_bytes_limit),
            ("unique-business-ids", self.unique_business_ids),
            ("exporter-backlog-limit", self.exporter_backlog_limit),
            ("write-throttle-backlog", self.write_throttle_backlog),
            ("read-model", self.read_model),
            ("read-model-url", self.read_model_url),
            ("read-model-keep-completed", self.read_model_keep_completed),
            ("read-model-keep-terminated", self.read_model_keep_terminated),
            ("read-model-audit-users", self.read_model_audit_users),
            ("read-model-audit-clients", self.read_model_audit_clients),
            ("read-model-audit-anonymous", self.read_model_audit_anonymous),
            ("read-model-audit-engine", self.read_model_audit_engine),
            ("clock-control", switch(self.clock_control)),
            ("demo", switch(self.demo)),
            ("request-timeout", self.request_timeout),
            ("long-polling-timeout", self.long_polling_timeout),
            ("parked-polls-max", self.parked_polls_max),
            ("search-wait", self.search_wait),
            ("connections-max", self.connections_max),
            ("tls-certificate", self.tls_certificate),
            ("tls-key", self.tls_key),
            ("log", self.log),
            ("log-format", self.log_format),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(arguments.split(' '))
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
            "osmia fail 5",
            "osmia create",
            "osmia create order --definition-key 5",
            "osmia load",
            "osmia load one-task --rate 100",
            "osmia load rate timers",
            "osmia load rate --factor 10",
            "osmia load max --rate 100",
            "osmia load surge",
            "osmia load wait",
            "osmia load wait 1000 --workers 2",
            "osmia load drain",
            "osmia load drain job-type --rate 150",
            "osmia load idle",
            "osmia load misbehave sleeping",
            "osmia load timers --message-ttl 1s",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for right in [
            "osmia modify 5 --terminate 7 --terminate check --move 8=a --move b=c",
            "osmia migrate 5 --to 6 --map a=b --map c=d",
            "osmia fail 5 --retries 0",
            "osmia create --definition-key 5",
            "osmia load rate --address a:1 --address b:1 --json",
            "osmia load rate messages --rate 50 --waiting 1000",
            "osmia load max",
            "osmia load surge ten-tasks --rate 5000 --factor 3",
            "osmia load wait 1000 messages",
            "osmia load drain job-type --workers 4",
            "osmia load drain-under-load job-type mixed --rate 150",
            "osmia load idle --polls 10",
            "osmia load misbehave ignoring --misbehaving-rate 200",
            "osmia load timers 1000 --due-in 10s",
        ] {
            assert!(parse(right).is_ok(), "{right}");
        }
    }

    #[test]
    fn the_switches_are_the_flags_without_a_value() {
        let start = Start::augment_args(clap::Command::new("start"));
        let switches: Vec<_> = start
            .get_arguments()
            .filter(|flag| !flag.get_action().takes_values())
            .filter_map(|flag| flag.get_long())
            .collect();
        assert_eq!(switches, Start::SWITCHES);
        for (nodes, is_possible) in [("0", false), ("1", true), ("9", true), ("10", false)] {
            assert_eq!(parse(&format!("osmia start --nodes {nodes}")).is_ok(), is_possible, "{nodes}");
        }
    }

    #[test]
    fn the_server_may_stand_before_and_after_the_command() {
        assert!(parse("osmia --address a:1 topology --json").is_ok());
        assert!(parse("osmia --address a:1 start").unwrap().server.is_given());
    }

    #[test]
    fn the_help_names_every_variable_that_an_address_comes_from() {
        let help = <Arguments as clap::CommandFactory>::command().render_long_help().to_string();
        for variable in crate::variables::GRPC_ADDRESS.iter().chain(&crate::variables::REST_ADDRESS) {
            let is_named = help
                .split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric())
                .any(|word| word == *variable);
            assert!(is_named, "{variable} is not in the help:\n{help}");
        }
    }
}
