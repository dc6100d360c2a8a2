//! Which nodes are started on one machine, and with which settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::configuration::{Configuration, ConfigurationError, Environment, Places, Sources};

/// From the ports of a node to those of the next one. With it, none of the default ports of nine nodes is another one's.
const PORT_STEP: u16 = 10;
/// The settings that differ between the nodes.
const OF_EACH: [&str; 2] = ["node-id", "initial-members"];

/// Why nodes cannot run on one machine like that.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error("--nodes makes a list of its own nodes, so {origin} cannot be given too. Leave out one of them.")]
    Given { origin: String },
    #[error(
        "{data} holds the data of one node, so those of several cannot be put there. Give another directory with --data."
    )]
    OneNode { data: PathBuf },
    #[error(
        "With --nodes {count}, '{name}' of node {node} would be {port}, and there is no such port. Choose a lower '{name}'."
    )]
    PortTooLarge { count: u32, name: &'static str, node: u32, port: u32 },
    #[error(
        "With --nodes, '{name}' of node {node} and '{other}' of node {other_node} would both be {port}. Each node's ports are \
         {PORT_STEP} above those of the one before it. Choose another '{name}'."
    )]
    SamePort { name: &'static str, node: u32, other: &'static str, other_node: u32, port: u16 },
    #[error(
        "The exporter '{name}' writes a file, and several nodes cannot write the same one. Leave it out with --nodes."
    )]
    FileExporter { name: String },
    #[error("No free port was found for node {node}: {error}")]
    NoFreePort { node: u32, error: std::io::Error },
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}

/// A node that is to be started.
#[derive(Debug)]
pub(super) struct NodePlan {
    pub number: u32,
    flags: BTreeMap<&'static str, String>,
    pub configuration: Configuration,
}

/// All nodes, with what was given for each of them.
pub(super) fn plan(
    count: u32,
    sources: &Sources,
    flags: BTreeMap<&'static str, String>,
    file: Option<&Path>,
) -> Result<Vec<NodePlan>, PlanError> {
    if let Some((_, origin, _)) = sources.all().find(|(name, ..)| OF_EACH.contains(name)) {
        return Err(PlanError::Given { origin });
    }
    let places = Places::read(sources)?;
    if broker::stored_partition_count(&places.data).is_some() {
        return Err(PlanError::OneNode { data: places.data });
    }
    let ports = ports(count, &places)?;
    let member = |(number, [.., cluster]): (usize, &[u16; 4])| format!("{number}=127.0.0.1:{cluster}");
    let members: Vec<_> = ports.iter().enumerate().map(member).collect();
    let members = members.join(",");
    let mut plans = Vec::new();
    for (number, [grpc, http, management, cluster]) in (0..).zip(ports) {
        let own = [
            ("data", places.data.join(format!("node-{number}")).display().to_string()),
            ("grpc-port", grpc.to_string()),
            ("http-port", http.to_string()),
            ("management-port", management.to_string()),
            ("cluster-host", "127.0.0.1".to_owned()),
            ("cluster-port", cluster.to_string()),
            ("node-id", number.to_string()),
            ("initial-members", members.clone()),
        ];
        let mut flags = flags.clone();
        flags.extend(own);
        // There is no balancer that would have to notice.
        flags.entry("shutdown-drain").or_insert_with(|| "0s".to_owned());
        if number > 0 {
            // One for the cluster.
            flags.remove("demo");
        }
        let configuration = Configuration::read(&Sources::new(flags.clone(), Environment::of_process(), file)?)?;
        if let Some((name, _)) = configuration.exporters.iter().find(|(_, exporter)| writes_a_file(&exporter.kind)) {
            return Err(PlanError::FileExporter { name: name.clone() });
        }
        plans.push(NodePlan { number, flags, configuration });
    }
    Ok(plans)
}

fn writes_a_file(kind: &str) -> bool {
    kind.replace('-', "").eq_ignore_ascii_case("jsonlines")
}

/// For gRPC, HTTP, management and the other nodes, of each node.
fn ports(count: u32, places: &Places) -> Result<Vec<[u16; 4]>, PlanError> {
    let names = ["grpc-port", "http-port", "management-port", "cluster-port"];
    let first = [places.grpc_port, places.http_port, places.management_port, places.cluster_port];
    let mut all: Vec<[u16; 4]> = Vec::new();
    let mut taken: BTreeMap<u16, (&'static str, u32)> = BTreeMap::new();
    for node in 0..count {
        let mut own = [0; 4];
        for (at, (name, first)) in names.into_iter().zip(first).enumerate() {
            if first == 0 {
                continue;
            }
            let port = u32::from(first) + node * u32::from(PORT_STEP);
            let Ok(port) = u16::try_from(port) else {
                return Err(PlanError::PortTooLarge { count, name, node, port });
            };
            if let Some((other, other_node)) = taken.insert(port, (name, node)) {
                return Err(PlanError::SamePort { name, node, other, other_node, port });
            }
            own[at] = port;
        }
        all.push(own);
    }
    if places.cluster_port == 0 {
        // All nodes must know them before the first one listens. Held until all are found, so that they differ.
        let mut held = Vec::new();
        for (node, own) in (0..).zip(&mut all) {
            let failed = |error| PlanError::NoFreePort { node, error };
            let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
            own[3] = listener.local_addr().map_err(failed)?.port();
            held.push(listener);
        }
    }
    Ok(all)
}

impl NodePlan {
    /// The arguments of its process.
    pub(super) fn arguments(&self, file: Option<&Path>, switches: &[&str]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["start".into()];
        if let Some(file) = file {
            arguments.push("--config".into());
            arguments.push(file.into());
        }
        let flag = |(name, value): (&&'static str, &String)| match switches.contains(name) {
            true => format!("--{name}").into(),
            false => format!("--{name}={value}").into(),
        };
        arguments.extend(self.flags.iter().map(flag));
        arguments
    }

    /// A line that says where it is.
    pub(super) fn introduction(&self) -> String {
        let Configuration { data, host, grpc_port, http_port, management_port, .. } = &self.configuration;
        let port = |port: u16| if port == 0 { "a free port".to_owned() } else { format!("{host}:{port}") };
        format!(
            "node {}: gRPC {}, REST {}, management {}, cluster {}, data in {}",
            self.number,
            port(*grpc_port),
            port(*http_port),
            port(*management_port),
            self.flags["cluster-port"],
            data.display()
        )
    }

    /// The same for programs. A port of 0 is a free one, which the node says itself.
    pub(super) fn to_json(&self) -> Value {
        let of = &self.configuration;
        json!({
            "node": self.number, "host": of.host, "grpcPort": of.grpc_port, "httpPort": of.http_port,
            "managementPort": of.management_port, "data": of.data.display().to_string(),
        })
    }
}

/// What can be put into a shell.
pub(super) fn command_line(program: &Path, arguments: &[OsString]) -> String {
    let words = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsString::as_os_str));
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(count: u32, flags: &[(&'static str, &str)]) -> Result<Vec<NodePlan>, String> {
        let flags: BTreeMap<_, _> = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let sources = Sources::new(flags.clone(), Environment::default(), None).expect("it is read");
        plan(count, &sources, flags, None).map_err(|error| error.to_string())
    }

    #[test]
    fn nine_nodes_have_ports_and_data_of_their_own() {
        let plans = planned(9, &[("data", "/d"), ("demo", "true")]).expect("a plan");
        let last = &plans[8].configuration;
        assert_eq!((last.grpc_port, last.http_port, last.management_port), (26_580, 8_160, 9_680));
        let cluster = last.cluster.as_ref().expect("a cluster");
        assert_eq!((cluster.node_id, cluster.own().to_string().as_str()), (8, "127.0.0.1:26582"));
        assert_eq!(last.data, PathBuf::from("/d/node-8"));
        assert_eq!(plans.iter().filter(|plan| plan.configuration.demo).count(), 1);
        assert_eq!(
            plans[1].introduction(),
            "node 1: gRPC 127.0.0.1:26510, REST 127.0.0.1:8090, management 127.0.0.1:9610, cluster 26512, data in /d/node-1"
        );
    }

    #[test]
    fn a_node_is_started_again_by_a_command_for_a_shell() {
        let plans = planned(2, &[("data", "/my data"), ("clock-control", "true")]).expect("a plan");
        let arguments = plans[0].arguments(Some(Path::new("o'.yaml")), &["clock-control", "demo"]);
        let line = command_line(Path::new("/bin/osmia"), &arguments);
        assert!(line.starts_with(r"/bin/osmia start --config 'o'\''.yaml' --clock-control "), "{line}");
        assert!(line.contains("'--data=/my data/node-0'") && line.contains("--node-id=0"), "{line}");
        assert!(line.contains("--initial-members=0=127.0.0.1:26502,1=127.0.0.1:26512"), "{line}");
    }

    #[test]
    fn free_ports_differ() {
        let any = [("grpc-port", "0"), ("http-port", "0"), ("management-port", "0"), ("cluster-port", "0")];
        let plans = planned(3, &any).expect("a plan");
        let cluster = plans[0].configuration.cluster.as_ref().expect("a cluster");
        let ports: std::collections::BTreeSet<_> = cluster.members.values().map(|member| member.port).collect();
        assert_eq!(ports.len(), 3);
        assert!(plans[0].introduction().contains("gRPC a free port"));
    }

    #[test]
    fn what_nodes_on_one_machine_cannot_have_is_refused() {
        for (flags, why) in [
            (vec![("node-id", "1")], "--node-id cannot be given too"),
            (vec![("grpc-port", "65530")], "'grpc-port' of node 1 would be 65540"),
            (vec![("grpc-port", "9610")], "'management-port' of node 1 and 'grpc-port' of node 0 would both be 9610"),
        ] {
            let said = planned(3, &flags).expect_err("it is impossible");
            assert!(said.contains(why), "{flags:?}: {said}");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let options = broker::NodeOptions { data_directory: directory.path().to_owned(), ..Default::default() };
        broker::Node::start(options).expect("it starts").stop().expect("it stops");
        let said = planned(2, &[("data", directory.path().to_str().expect("text"))]).expect_err("it is one node's");
        assert!(said.contains("holds the data of one node"), "{said}");
    }
}
