//! The configuration of `osmia start`: flags, then the environment, then a file.
//!
//! Every setting has one name. `grpc-port` is the flag `--grpc-port`, the variable `OSMIA_GRPC_PORT` and the key
//! `grpc-port` of the file; where Camunda has a variable for the same thing, it is understood too.

mod cluster;
mod global_listeners;
mod sources;
mod unknown;
mod values;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use cluster::ClusterSettings;
#[cfg(test)]
pub(crate) use cluster::MemberAddress;
use protocol::GlobalListenerValue;
pub(crate) use sources::{Environment, Sources};
pub(crate) use values::duration;
use values::{
    age, backlog_bytes, bytes, directory, doings, number, port, root_variable_bytes, search_wait, switch, working_time,
};

/// A setting: its name and the variables of Camunda with the same meaning, the more specific ones first.
pub(crate) struct Setting {
    pub name: &'static str,
    pub camunda: &'static [&'static str],
}

impl Setting {
    /// Its own variable.
    pub(crate) fn variable(&self) -> String {
        format!("OSMIA_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }
}

const fn setting(name: &'static str, camunda: &'static [&'static str]) -> Setting {
    Setting { name, camunda }
}

/// All settings with a single value.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("data", &["CAMUNDA_DATA_PRIMARYSTORAGE_DIRECTORY", "ZEEBE_BROKER_DATA_DIRECTORY"]),
    setting(
        "partitions",
        &["CAMUNDA_CLUSTER_PARTITIONCOUNT", "CAMUNDA_CLUSTER_PARTITIONSCOUNT", "ZEEBE_BROKER_CLUSTER_PARTITIONSCOUNT"],
    ),
    setting(
        "host",
        &[
            "CAMUNDA_API_GRPC_ADDRESS",
            "ZEEBE_BROKER_GATEWAY_NETWORK_HOST",
            "ZEEBE_GATEWAY_NETWORK_HOST",
            "CAMUNDA_CLUSTER_NETWORK_HOST",
            "ZEEBE_BROKER_NETWORK_HOST",
        ],
    ),
    setting("grpc-port", &["CAMUNDA_API_GRPC_PORT", "ZEEBE_BROKER_GATEWAY_NETWORK_PORT", "ZEEBE_GATEWAY_NETWORK_PORT"]),
    setting("http-port", &["SERVER_PORT"]),
    setting("management-port", &["MANAGEMENT_SERVER_PORT"]),
    setting("node-id", &["CAMUNDA_CLUSTER_NODEID", "ZEEBE_BROKER_CLUSTER_NODEID"]),
    setting("initial-members", &["CAMUNDA_CLUSTER_INITIALCONTACTPOINTS", "ZEEBE_BROKER_CLUSTER_INITIALCONTACTPOINTS"]),
    setting(
        "cluster-host",
        &[
            "CAMUNDA_CLUSTER_NETWORK_INTERNALAPI_HOST",
            "ZEEBE_BROKER_NETWORK_INTERNALAPI_HOST",
            "CAMUNDA_CLUSTER_NETWORK_HOST",
            "ZEEBE_BROKER_NETWORK_HOST",
        ],
    ),
    setting("cluster-port", &["CAMUNDA_CLUSTER_NETWORK_INTERNALAPI_PORT", "ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT"]),
    setting("advertised-address", &["CAMUNDA_CLUSTER_NETWORK_ADVERTISEDHOST", "ZEEBE_BROKER_NETWORK_ADVERTISEDHOST"]),
    setting("shutdown-drain", &[]),
    setting("allowed-hosts", &[]),
    setting(
        "disk-free-space-low",
        &["CAMUNDA_DATA_PRIMARYSTORAGE_DISK_FREESPACE_PROCESSING", "ZEEBE_BROKER_DATA_DISK_FREESPACE_PROCESSING"],
    ),
    setting("disk-reserve", &[]),
    setting("checkpoint-interval", &[]),
    setting("root-variable-bytes-limit", &[]),
    setting(
        "unique-business-ids",
        &[
            "CAMUNDA_PROCESSINSTANCECREATION_BUSINESSIDUNIQUENESSENABLED",
            "ZEEBE_BROKER_EXPERIMENTAL_ENGINE_PROCESSINSTANCECREATION_BUSINESSIDUNIQUENESSENABLED",
        ],
    ),
    setting("exporter-backlog-limit", &[]),
    setting("write-throttle-backlog", &[]),
    setting("read-model", &[]),
    setting("read-model-url", &[]),
    setting("read-model-keep-completed", &[]),
    setting("read-model-keep-terminated", &[]),
    setting("read-model-audit-users", &[]),
    setting("read-model-audit-clients", &[]),
    setting("read-model-audit-anonymous", &[]),
    setting("read-model-audit-engine", &[]),
    setting("clock-control", &["CAMUNDA_SYSTEM_CLOCKCONTROLLED", "ZEEBE_CLOCK_CONTROLLED"]),
    setting("demo", &[]),
    setting(
        "request-timeout",
        &["ZEEBE_BROKER_GATEWAY_CLUSTER_REQUESTTIMEOUT", "ZEEBE_GATEWAY_CLUSTER_REQUESTTIMEOUT"],
    ),
    setting(
        "long-polling-timeout",
        &[
            "CAMUNDA_API_LONGPOLLING_TIMEOUT",
            "ZEEBE_BROKER_GATEWAY_LONGPOLLING_TIMEOUT",
            "ZEEBE_GATEWAY_LONGPOLLING_TIMEOUT",
        ],
    ),
    setting("parked-polls-max", &[]),
    setting("search-wait", &[]),
    setting("connections-max", &[]),
    setting(
        "tls-certificate",
        &["ZEEBE_BROKER_GATEWAY_SECURITY_CERTIFICATECHAINPATH", "ZEEBE_GATEWAY_SECURITY_CERTIFICATECHAINPATH"],
    ),
    setting("tls-key", &["ZEEBE_BROKER_GATEWAY_SECURITY_PRIVATEKEYPATH", "ZEEBE_GATEWAY_SECURITY_PRIVATEKEYPATH"]),
    setting("log", &["ZEEBE_LOG_LEVEL"]),
    setting("log-format", &[]),
];

/// What is logged by default.
const DEFAULT_LOG: &str = "info";
/// Libraries that say too much on the level that is asked for; naming one in the filter changes that. The log's library
/// warns of every record that a kill cut off; the node itself reports what that means.
const QUIET_LIBRARIES: [(&str, &str); 4] =
    [("raft_engine", "error"), ("h2", "info"), ("hyper", "info"), ("tower", "info")];

/// How long a node of a cluster serves after it says that it stops: as long as balancers take to notice.
const CLUSTER_DRAIN: Duration = Duration::from_secs(2);

/// How a node runs.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    /// Where all data is.
    pub data: PathBuf,
    /// Number of partitions of a new data directory; an existing one keeps its number unless another is given.
    pub partitions: Option<u16>,
    /// Host or address on which all ports listen.
    pub host: String,
    pub grpc_port: u16,
    pub http_port: u16,
    pub management_port: u16,
    /// The cluster that the node belongs to; none for a node alone.
    pub cluster: Option<ClusterSettings>,
    /// Where clients are said to find the node: a host, and a port if it is not that of the gateway.
    pub advertised_address: Option<(String, Option<u16>)>,
    /// How long clients are served after the node has said that it stops.
    pub shutdown_drain: Duration,
    /// Names by which the HTTP ports may be asked, besides those of this machine itself; the host is one of them.
    pub allowed_hosts: gateway::AllowedHosts,
    /// Free bytes below which no new work is taken.
    pub disk_free_space_low: Option<u64>,
    /// Bytes that are kept for ending work on a full disk.
    pub disk_reserve: Option<u64>,
    pub checkpoint_interval: Option<Duration>,
    /// Bytes that the variables of a root process instance and of all that it called may have; none to leave what the state says.
    pub root_variable_bytes_limit: Option<u64>,
    /// Whether no two living instances of a process that nobody called may have the same business id; none to leave what the state
    /// says.
    pub unique_business_ids: Option<bool>,
    /// Bytes of records that an exporter may hold back before new work is refused.
    pub exporter_backlog_limit: Option<u64>,
    /// Records that an exporter may have before it before new work is slowed down; none for never.
    pub write_throttle_backlog: Option<u64>,
    /// What searches read.
    pub read_model: ReadModelKind,
    /// How long searches find what ended.
    pub read_model_retention: readmodel::Retention,
    /// What is noted of whose doings.
    pub read_model_audited: readmodel::Audited,
    pub clock_control: bool,
    pub demo: bool,
    pub request_timeout: Duration,
    pub long_polling_timeout: Duration,
    pub parked_polls_max: usize,
    /// How long a search waits until it sees what was acknowledged before it.
    pub search_wait: Duration,
    /// Connections of all ports together; none for what the limit of open files allows.
    pub connections_max: Option<usize>,
    pub tls: Option<gateway::TlsFiles>,
    /// Filter of the log lines: a level, or levels by module.
    pub log: String,
    pub log_format: LogFormat,
    pub exporters: BTreeMap<String, ExporterConfiguration>,
    /// Listeners of the user tasks of all processes.
    pub global_listeners: Vec<GlobalListenerValue>,
    /// Names of variables of the environment that look like settings and have no effect.
    pub unknown_variables: Vec<String>,
}

/// Where the data is that searches read.
#[derive(Debug, Clone, Default)]
pub(crate) enum ReadModelKind {
    /// In files of this node.
    #[default]
    Sqlite,
    /// On this server.
    PostgreSql(readmodel::PostgreSql),
    /// Nowhere: nothing can be searched.
    None,
}

impl ReadModelKind {
    /// What the settings say, for a node with this data directory.
    fn read(sources: &Sources, data: &Path) -> Result<ReadModelKind, ConfigurationError> {
        let kind = sources.get("read-model", |text| match text {
            "sqlite" | "postgresql" | "none" => Ok(text.to_owned()),
            _ => Err("sqlite, postgresql or none"),
        })?;
        let url = sources.get("read-model-url", |text| Ok(text.to_owned()))?;
        match (kind.as_deref(), url) {
            (Some("postgresql"), Some(url)) => {
                let data = data.to_owned();
                let server = readmodel::PostgreSql::new(&url, move || broker::stored_cluster_id(&data));
                Ok(ReadModelKind::PostgreSql(server.map_err(ConfigurationError::ReadModelUrl)?))
            }
            (Some("postgresql"), None) => Err(ConfigurationError::NoReadModelUrl),
            (_, Some(_)) => Err(ConfigurationError::UselessReadModelUrl),
            (Some("none"), None) => Ok(ReadModelKind::None),
            (_, None) => Ok(ReadModelKind::Sqlite),
        }
    }
}

/// The shape of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object per line.
    Json,
}

impl LogFormat {
    pub(crate) fn read(text: &str) -> Result<LogFormat, &'static str> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("text or json"),
        }
    }
}

/// An exporter by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExporterConfiguration {
    /// Which exporter it is.
    pub kind: String,
    /// Its own settings.
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    #[error("The configuration file {path} cannot be read: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("The configuration file {path} has the unknown key '{key}'. The known keys are {known}.")]
    UnknownKey { path: PathBuf, key: String, known: String },
    #[error("{origin} is '{value}', but it must be {expected}.")]
    Value { origin: String, value: String, expected: &'static str },
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    #[error("{name} is '{value}', which asks for protection that this node would not have; {instead}.")]
    Protection { name: String, value: String, instead: &'static str },
    #[error("The management port is 0, which takes a free one: say by --management-address where the node answers.")]
    AnyPort,
    #[error("'tls-certificate' and 'tls-key' belong together, but only '{given}' is given.")]
    HalfTls { given: &'static str },
    #[error("The demo is a client without TLS, so it cannot run together with 'tls-certificate'.")]
    DemoWithTls,
    #[error("'{first}' and '{second}' are both {port}, but each needs a port of its own. 0 takes a free one.")]
    SamePort { first: &'static str, second: &'static str, port: u16 },
    #[error("'read-model-url' does not name a PostgreSQL server: {0}.")]
    ReadModelUrl(readmodel::ServerError),
    #[error("'read-model' is postgresql, but 'read-model-url' does not say where the server is.")]
    NoReadModelUrl,
    #[error("'read-model-url' is given, but 'read-model' is not postgresql.")]
    UselessReadModelUrl,
    #[error("The exporter '{name}' has no type. Set exporters.{name}.type, for example to json-lines.")]
    NoExporterType { name: String },
    #[error("global-listeners.user-task[{number}] {reason}.")]
    GlobalListener { number: usize, reason: String },
}

/// Where a node with these settings is asked for its health on its own machine. One that listens on all addresses does so on this one.
pub(crate) fn local_management_address(sources: &Sources) -> Result<String, ConfigurationError> {
    let host = host(sources)?;
    let host = match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => "[::1]".to_owned(),
        // An address of version 6, perhaps with a zone, which both look otherwise in a URL.
        _ if host.contains(':') => format!("[{}]", host.replace('%', "%25")),
        _ => host,
    };
    match management_port(sources)? {
        0 => Err(ConfigurationError::AnyPort),
        port => Ok(format!("{host}:{port}")),
    }
}

/// What the ports are opened on.
fn host(sources: &Sources) -> Result<String, ConfigurationError> {
    Ok(sources.get("host", values::host)?.unwrap_or_else(|| "127.0.0.1".to_owned()))
}

/// Where the management port is.
fn management_port(sources: &Sources) -> Result<u16, ConfigurationError> {
    Ok(sources.get("management-port", port)?.unwrap_or(9_600))
}

/// Where a node has its data and listens, without the rest of its configuration.
#[derive(Debug)]
pub(crate) struct Places {
    pub data: PathBuf,
    pub grpc_port: u16,
    pub http_port: u16,
    pub management_port: u16,
    /// 0 for a free one, which only a node can take whose others are made with it.
    pub cluster_port: u16,
}

impl Places {
    pub(crate) fn read(sources: &Sources) -> Result<Places, ConfigurationError> {
        Ok(Places {
            data: sources.get("data", directory)?.unwrap_or_else(|| PathBuf::from("./osmia-data")),
            grpc_port: sources.get("grpc-port", port)?.unwrap_or(26_500),
            http_port: sources.get("http-port", port)?.unwrap_or(8_080),
            management_port: management_port(sources)?,
            cluster_port: sources.get("cluster-port", port)?.unwrap_or(cluster::DEFAULT_PORT),
        })
    }
}

impl Configuration {
    /// Reads all sources.
    pub(crate) fn read(sources: &Sources) -> Result<Configuration, ConfigurationError> {
        let tls = tls(sources)?;
        let data = sources.get("data", directory)?.unwrap_or_else(|| PathBuf::from("./osmia-data"));
        let host = host(sources)?;
        let cluster = cluster_settings(sources)?;
        let drain = if cluster.is_some() { CLUSTER_DRAIN } else { Duration::ZERO };
        let configuration = Configuration {
            unknown_variables: sources.unknown_variables(tls.is_some())?,
            partitions: sources.get("partitions", |text| number(text, 1, 4095, "a number from 1 to 4095"))?,
            allowed_hosts: sources.get("allowed-hosts", gateway::AllowedHosts::read)?.unwrap_or_default().with(&host),
            host,
            grpc_port: sources.get("grpc-port", port)?.unwrap_or(26_500),
            http_port: sources.get("http-port", port)?.unwrap_or(8_080),
            management_port: management_port(sources)?,
            cluster,
            advertised_address: sources.get("advertised-address", values::client_address)?,
            shutdown_drain: sources.get("shutdown-drain", values::drain)?.unwrap_or(drain),
            disk_free_space_low: sources.get("disk-free-space-low", bytes)?,
            disk_reserve: sources.get("disk-reserve", bytes)?,
            checkpoint_interval: sources.get("checkpoint-interval", working_time)?,
            root_variable_bytes_limit: sources.get("root-variable-bytes-limit", root_variable_bytes)?,
            unique_business_ids: sources.get("unique-business-ids", values::switch)?,
            exporter_backlog_limit: sources.get("exporter-backlog-limit", backlog_bytes)?,
            write_throttle_backlog: sources.get("write-throttle-backlog", |text| {
                number(text, 100, 1_000_000_000, "a number of records from 100 to 1000000000")
            })?,
            read_model: ReadModelKind::read(sources, &data)?,
            data,
            read_model_retention: readmodel::Retention {
                completed: sources.get("read-model-keep-completed", age)?,
                terminated: sources.get("read-model-keep-terminated", age)?,
            },
            read_model_audited: audited(sources)?,
            clock_control: sources.get("clock-control", switch)?.unwrap_or(false),
            demo: sources.get("demo", switch)?.unwrap_or(false),
            request_timeout: sources.get("request-timeout", working_time)?.unwrap_or(Duration::from_secs(15)),
            long_polling_timeout: sources.get("long-polling-timeout", duration)?.unwrap_or(Duration::from_secs(10)),
            parked_polls_max: sources
                .get("parked-polls-max", |text| number(text, 0, 1_000_000, "a number from 0 to 1000000"))?
                .unwrap_or(20_000),
            search_wait: sources.get("search-wait", search_wait)?.unwrap_or(gateway::SEARCH_WAIT_MAX),
            connections_max: sources
                .get("connections-max", |text| number(text, 2, 1_000_000, "a number from 2 to 1000000"))?,
            tls,
            log: log_filter(sources.get("log", |text| Ok(text.to_lowercase()))?.as_deref().unwrap_or(DEFAULT_LOG)),
            log_format: sources.get("log-format", LogFormat::read)?.unwrap_or_default(),
            exporters: sources.exporters()?,
            global_listeners: sources.global_listeners()?,
        };
        configuration.check_ports()?;
        if configuration.demo && configuration.tls.is_some() {
            return Err(ConfigurationError::DemoWithTls);
        }
        if configuration.cluster.is_some() && matches!(configuration.read_model, ReadModelKind::PostgreSql(_)) {
            return Err(cluster::ClusterError::SharedReadModel.into());
        }
        Ok(configuration)
    }
}

impl Configuration {
    fn check_ports(&self) -> Result<(), ConfigurationError> {
        let cluster = self.cluster.as_ref().map(|cluster| ("cluster-port", cluster.own().port));
        let ports: Vec<_> =
            [("grpc-port", self.grpc_port), ("http-port", self.http_port), ("management-port", self.management_port)]
                .into_iter()
                .chain(cluster)
                .collect();
        let pairs =
            ports.iter().enumerate().flat_map(|(at, one)| ports[at + 1..].iter().map(move |other| (*one, *other)));
        for ((first, port), (second, other)) in pairs {
            if port == other && port != 0 {
                return Err(ConfigurationError::SamePort { first, second, port });
            }
        }
        Ok(())
    }
}

/// The filter that was asked for, with libraries kept quiet that it does not name.
fn log_filter(asked: &str) -> String {
    let names = |library: &str| asked.split(',').any(|part| part.trim().starts_with(library));
    let quiet = QUIET_LIBRARIES.iter().filter(|(library, _)| !names(library));
    // The more exact directive wins, wherever it stands.
    std::iter::once(asked.to_owned())
        .chain(quiet.map(|(library, level)| format!("{library}={level}")))
        .collect::<Vec<_>>()
        .join(",")
}

fn audited(sources: &Sources) -> Result<readmodel::Audited, ConfigurationError> {
    let default = readmodel::Audited::default();
    let noted = |name, default| sources.get(name, doings).map(|noted| noted.unwrap_or(default));
    Ok(readmodel::Audited {
        users: noted("read-model-audit-users", default.users)?,
        clients: noted("read-model-audit-clients", default.clients)?,
        anonymous: noted("read-model-audit-anonymous", default.anonymous)?,
        engine: noted("read-model-audit-engine", default.engine)?,
    })
}

fn cluster_settings(sources: &Sources) -> Result<Option<ClusterSettings>, ConfigurationError> {
    let node_id = sources.get("node-id", |text| number(text, 0, u32::MAX, "a number from 0 on"))?;
    let port = sources.get("cluster-port", values::member_port)?;
    let origin = |name| sources.find(name).map(|(origin, _)| origin);
    Ok(ClusterSettings::new(cluster::Said {
        members: sources.find("initial-members").map(|(origin, text)| (origin, text.to_owned())),
        node_id: origin("node-id").zip(node_id),
        host: sources.get("cluster-host", values::host)?,
        port: origin("cluster-port").zip(port),
        size: sources.variable_of(&cluster::SIZE),
        replicas: sources.variable_of(&cluster::REPLICAS),
        own_host: sources.variable_of(&cluster::OWN_HOST),
        own_port: sources.variable_of(&cluster::OWN_PORT),
    })?)
}

fn tls(sources: &Sources) -> Result<Option<gateway::TlsFiles>, ConfigurationError> {
    match (sources.get("tls-certificate", directory)?, sources.get("tls-key", directory)?) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(gateway::TlsFiles { certificate, key })),
        (Some(_), None) => Err(ConfigurationError::HalfTls { given: "tls-certificate" }),
        (None, Some(_)) => Err(ConfigurationError::HalfTls { given: "tls-key" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        flags: &[(&'static str, &str)],
        environment: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<Configuration, ConfigurationError> {
        let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let directory = tempfile::tempdir().expect("a directory");
        let path = file.map(|text| {
            let path = directory.path().join("osmia.yaml");
            std::fs::write(&path, text).expect("a file");
            path
        });
        Configuration::read(&Sources::new(flags, Environment::new(environment), path.as_deref())?)
    }

    #[test]
    fn ports_differ_and_times_leave_time() {
        let refusal = |flags: &[(&'static str, &str)]| read(flags, &[], None).unwrap_err().to_string();
        let same = refusal(&[("http-port", "26500")]);
        assert!(same.contains("'grpc-port' and 'http-port' are both 26500"), "{same}");
        for name in ["request-timeout", "checkpoint-interval"] {
            let none = refusal(&[(name, "0s")]);
            assert!(none.contains(name) && none.contains("at least 10ms"), "{none}");
        }
        assert!(read(&[("http-port", "0"), ("grpc-port", "0"), ("management-port", "0")], &[], None).is_ok());
    }

    #[test]
    fn a_file_says_each_thing_once_and_is_short() {
        let refusal = |text: &str| read(&[], &[], Some(text)).unwrap_err().to_string();
        let twice = refusal("grpc-port: 1\n# grpc-port: 2\npartitions: 3\ngrpc-port : 2\n");
        assert!(twice.contains("the key 'grpc-port' more than once"), "{twice}");
        let long = refusal(&"- ".repeat(40_000));
        assert!(long.contains("it has 80000 bytes, but at most 65536"), "{long}");
    }

    #[test]
    fn flags_win_over_environment_over_file() {
        let file = "grpc-port: 1\nmanagement-port: 2\npartitions: 3\nclock-control: true\n";
        let environment = [("OSMIA_GRPC_PORT", "11"), ("OSMIA_MANAGEMENT_PORT", "12")];
        let read = read(&[("grpc-port", "21")], &environment, Some(file)).expect("valid");
        assert_eq!((read.grpc_port, read.management_port, read.partitions), (21, 12, Some(3)));
        assert!(read.clock_control);
        assert_eq!(read.data, PathBuf::from("./osmia-data"));
    }

    #[test]
    fn camundas_variables_are_understood_however_they_are_split() {
        let environment = [
            ("ZEEBE_BROKER_CLUSTER_PARTITIONS_COUNT", "7"),
            ("ZEEBE_BROKER_GATEWAY_NETWORK_PORT", "0"),
            ("SERVER_PORT", "8088"),
            ("ZEEBE_CLOCK_CONTROLLED", "true"),
            ("ZEEBE_BROKER_DATA_DISK_FREESPACE_PROCESSING", "2GB"),
            ("ZEEBE_BROKER_DATA_DIRECTORY", "/d"),
            ("ZEEBE_GATEWAY_CLUSTER_REQUESTTIMEOUT", "PT20S"),
        ];
        let read = read(&[], &environment, None).expect("valid");
        assert_eq!((read.partitions, read.grpc_port, read.clock_control), (Some(7), 0, true));
        assert_eq!((read.http_port, read.management_port), (8_088, 9_600));
        assert_eq!((read.data, read.request_timeout), (PathBuf::from("/d"), Duration::from_secs(20)));
        assert_eq!((read.disk_free_space_low, read.disk_reserve), (Some(2 << 30), None));
    }

    #[test]
    fn mistakes_are_named_with_their_source() {
        let error = read(&[], &[], Some("grpc-prot: 1\n")).expect_err("a typing mistake").to_string();
        assert!(error.contains("unknown key 'grpc-prot'") && error.contains("grpc-port"), "{error}");
        let error = read(&[], &[("OSMIA_GRPC_PORT", "99999")], None).expect_err("no such port").to_string();
        assert!(error.starts_with("OSMIA_GRPC_PORT is '99999'"), "{error}");
        let error = read(&[("partitions", "0")], &[], None).expect_err("no partition").to_string();
        assert!(error.starts_with("--partitions is '0'"), "{error}");
        assert!(read(&[("tls-key", "k.pem")], &[], None).is_err());
    }

    #[test]
    fn what_the_audit_log_notes_can_be_chosen_for_each_kind_of_actor() {
        let audited = |file: &str| read(&[], &[], Some(file)).map(|of| of.read_model_audited);
        let default = readmodel::Audited::default();
        assert_eq!(audited("partitions: 1\n").expect("valid"), default);
        let file = "read-model: {type: sqlite, audit-anonymous: 'user-tasks, not assign', audit-clients: all}\n";
        let anonymous = readmodel::Noted::read("update user-task, complete, unassign").expect("valid");
        let chosen = readmodel::Audited { anonymous, clients: readmodel::Noted::ALL, ..default };
        assert_eq!(audited(file).expect("valid"), chosen);
        let refusal = audited("read-model-audit-engine: everything\n").unwrap_err().to_string();
        assert!(refusal.contains("'everything', but it must be a list of what is noted"), "{refusal}");
    }

    #[test]
    fn the_read_model_may_be_on_a_server() {
        let kind =
            |environment: &[(&str, &str)], file: Option<&str>| read(&[], environment, file).map(|of| of.read_model);
        assert!(matches!(kind(&[], None), Ok(ReadModelKind::Sqlite)));
        assert!(matches!(kind(&[], Some("read-model: none\n")), Ok(ReadModelKind::None)));
        let url = "postgresql://osmia:secret@db:5432/osmia";
        let in_file = format!("read-model: {{type: postgresql, url: '{url}', keep-completed: 30d}}\n");
        assert!(matches!(kind(&[], Some(&in_file)), Ok(ReadModelKind::PostgreSql(_))));
        let retention = read(&[], &[], Some(&in_file)).expect("valid").read_model_retention;
        assert_eq!(retention.completed, Some(Duration::from_secs(30 * 24 * 60 * 60)));
        let in_environment = [("OSMIA_READ_MODEL", "postgresql"), ("OSMIA_READ_MODEL_URL", url)];
        assert!(matches!(kind(&in_environment, None), Ok(ReadModelKind::PostgreSql(_))));
        let refusal = |file: &str| kind(&[], Some(file)).unwrap_err().to_string();
        for (file, why) in [
            ("read-model: mysql\n", "must be sqlite, postgresql or none"),
            ("read-model: postgresql\n", "does not say where the server is"),
            ("read-model-url: postgresql://db/osmia\n", "'read-model' is not postgresql"),
            (
                "read-model: {type: postgresql, url: 'http://db'}\n",
                "does not name a PostgreSQL server: It must begin with",
            ),
            ("read-model: {type: postgresql, colour: red}\n", "unknown key 'read-model.colour'"),
            (
                "read-model: {type: sqlite, keep-completed: {a: 1}}\n",
                "'read-model.keep-completed' must have a single value",
            ),
            ("read-model: {type: sqlite, keep-completed: 1d}\nread-model-keep-completed: 2d\n", "more than once"),
        ] {
            let said = refusal(file);
            assert!(said.contains(why), "{file}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn libraries_are_quiet_unless_the_filter_names_them() {
        assert_eq!(log_filter("debug"), "debug,raft_engine=error,h2=info,hyper=info,tower=info");
        assert_eq!(log_filter("info,h2=trace"), "info,h2=trace,raft_engine=error,hyper=info,tower=info");
        assert_eq!(read(&[("log-format", "json")], &[], None).expect("valid").log_format, LogFormat::Json);
        assert!(read(&[("log-format", "xml")], &[], None).is_err());
    }

    #[test]
    fn exporters_come_from_file_and_environment() {
        let file = "exporters:\n  debug:\n    type: json-lines\n    path: a.jsonl\n    bulk: {size: 5, delay: 1s}\n";
        let environment = [
            ("OSMIA_EXPORTERS_DEBUG_PATH", "b.jsonl"),
            ("OSMIA_EXPORTERS_DEBUG_BULK_SIZE", "9"),
            ("OSMIA_EXPORTERS_OTHER_TYPE", "json-lines"),
        ];
        let exporters = read(&[], &environment, Some(file)).expect("valid").exporters;
        assert_eq!(exporters.keys().collect::<Vec<_>>(), ["debug", "other"]);
        let settings = serde_json::Value::from(exporters["debug"].settings.clone());
        assert_eq!(settings, serde_json::json!({"path": "b.jsonl", "bulk": {"size": 9, "delay": "1s"}}));
        assert!(read(&[], &[("OSMIA_EXPORTERS_DEBUG_PATH", "x")], None).is_err(), "an exporter without type");
    }

    #[test]
    fn exporters_come_from_the_variables_of_the_reference() {
        let file = "exporters:\n  Search:\n    className: Opensearch\n    args: {url: 'http://one', bulk: {memory-limit: 5MB}}\n";
        let environment = [
            ("ZEEBE_BROKER_EXPORTERS_SEARCH_CLASSNAME", "io.camunda.zeebe.exporter.ElasticsearchExporter"),
            ("ZEEBE_BROKER_EXPORTERS_SEARCH_ARGS_URL", "http://two"),
            ("ZEEBE_BROKER_EXPORTERS_SEARCH_ARGS_BULK_SIZE", "9"),
            ("ZEEBE_BROKER_EXPORTERS_SEARCH_ARGS_BULK_MEMORYLIMIT", "6MB"),
            ("OSMIA_EXPORTERS_SEARCH_URL", "http://three"),
            ("CAMUNDA_DATA_EXPORTERS_SEARCH_ARGS_URL", "http://four"),
            ("CAMUNDA_DATA_EXPORTERS_OTHER_CLASSNAME", "json-lines"),
            ("CAMUNDA_DATA_EXPORTERS_OTHER_JARPATH", "other.jar"),
        ];
        let exporters = read(&[], &environment, Some(file)).expect("valid").exporters;
        assert_eq!(exporters.keys().collect::<Vec<_>>(), ["Search", "other"]);
        assert_eq!(exporters["Search"].kind, "io.camunda.zeebe.exporter.ElasticsearchExporter");
        let settings = serde_json::Value::from(exporters["Search"].settings.clone());
        assert_eq!(settings, serde_json::json!({"url": "http://three", "bulk": {"size": 9, "memorylimit": "6MB"}}));
        assert!(exporters["other"].settings.is_empty(), "there is no use for the file of a class");
    }
}
