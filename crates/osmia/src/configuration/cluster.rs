//! The members of a cluster, and which of them a node is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use super::values;

/// Each node holds a replica of each partition, and each leader sends to all of them.
const MEMBERS_MAX: usize = 9;
/// Where nodes listen for each other unless something else is said.
pub(super) const DEFAULT_PORT: u16 = 26_502;

/// Variables of Camunda that say what the list of members says already, so they must agree with it.
pub(super) const SIZE: [&str; 2] = ["CAMUNDA_CLUSTER_SIZE", "ZEEBE_BROKER_CLUSTER_CLUSTERSIZE"];
pub(super) const REPLICAS: [&str; 2] = ["CAMUNDA_CLUSTER_REPLICATIONFACTOR", "ZEEBE_BROKER_CLUSTER_REPLICATIONFACTOR"];
pub(super) const OWN_HOST: [&str; 2] =
    ["CAMUNDA_CLUSTER_NETWORK_INTERNALAPI_ADVERTISEDHOST", "ZEEBE_BROKER_NETWORK_INTERNALAPI_ADVERTISEDHOST"];
pub(super) const OWN_PORT: [&str; 2] =
    ["CAMUNDA_CLUSTER_NETWORK_INTERNALAPI_ADVERTISEDPORT", "ZEEBE_BROKER_NETWORK_INTERNALAPI_ADVERTISEDPORT"];

/// All variables that are only held against the list.
pub(super) fn held_against_the_list() -> impl Iterator<Item = &'static str> {
    [SIZE, REPLICAS, OWN_HOST, OWN_PORT].into_iter().flatten()
}

/// The cluster of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterSettings {
    /// The number of this node.
    pub node_id: u32,
    /// Host or address on which it listens for the others.
    pub host: String,
    /// All nodes by their numbers, from 0; this one is among them.
    pub members: BTreeMap<u32, MemberAddress>,
}

/// Where the others find a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberAddress {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for MemberAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

/// What is wrong with the settings of a cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("{origin} has the entry '{entry}', but each must be like 0=10.0.0.1:26502, or like 10.0.0.1:26502.")]
    Entry { origin: String, entry: String },
    #[error(
        "{origin} has the entry '{entry}', but a port must be a number from 1 to 65535. Others could not find the node."
    )]
    Port { origin: String, entry: String },
    #[error(
        "{origin} has the entry '{entry}', which is no address that other machines reach. Write the address of the machine."
    )]
    Unspecified { origin: String, entry: String },
    #[error(
        "{origin} gives numbers to some of its members. Write NUMBER=HOST:PORT for each of them, or HOST:PORT for each."
    )]
    SomeNumbers { origin: String },
    #[error("{origin} has {count} members, so they have the numbers 0 to {last}, each once. {number} is {wrong}.")]
    Number { origin: String, count: usize, last: usize, number: u32, wrong: &'static str },
    #[error("{origin} has the address {address} for the members {first} and {second}. Each node needs one of its own.")]
    SameAddress { origin: String, address: MemberAddress, first: u32, second: u32 },
    #[error(
        "{origin} has {count} members, but at most {MEMBERS_MAX} are possible, as each holds a replica of each partition. \
         3 go on without one of them, and 5 without two."
    )]
    Many { origin: String, count: usize },
    #[error(
        "{origin} names the members, but 'node-id' does not say which of them this node is. Set it to one of 0 to {last}."
    )]
    NoNodeId { origin: String, last: usize },
    #[error("{origin} is {node_id}, but the members have the numbers 0 to {last}. Set it to the number of this node.")]
    NotMember { origin: String, node_id: u32, last: usize },
    #[error(
        "{origin} is {value}, but 'initial-members' does not say where the other nodes are. Set it to all of them, the \
         same on each, like 0=10.0.0.1:26502,1=10.0.0.2:26502,2=10.0.0.3:26502."
    )]
    NoMembers { origin: String, value: String },
    #[error(
        "{origin} is '{value}', but 'initial-members' has {count} members. Set it to {count}, or name all nodes there."
    )]
    Size { origin: String, value: String, count: usize },
    #[error(
        "{origin} is '{value}', but in this version each of the {count} nodes holds a replica of each partition. Set it to \
         {count}, or leave it out."
    )]
    Replicas { origin: String, value: String, count: usize },
    #[error(
        "{origin} is {port}, but the others look for this node at {own}, as 'initial-members' says. Use the same port in both, \
         or leave out 'cluster-port'."
    )]
    OtherPort { origin: String, port: u16, own: MemberAddress },
    #[error(
        "{origin} is '{value}', but the others look for this node at {own}, as 'initial-members' says. Leave it out."
    )]
    Advertised { origin: String, value: String, own: MemberAddress },
    #[error(
        "'initial-members' names other machines, like {other}, but they cannot reach {host}, where this node listens for them. \
         Set 'cluster-host' to the address of this machine in their network, or to 0.0.0.0 for all of its addresses."
    )]
    Unreachable { other: MemberAddress, host: String },
    #[error(
        "'read-model' is postgresql, but in this version the nodes of a cluster cannot share a server. Set it to sqlite: each \
         node then answers searches from its own files."
    )]
    SharedReadModel,
}

/// A value, and where it was found.
pub(super) type Found<T = String> = Option<(String, T)>;

/// What all sources say about the cluster.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub members: Found,
    pub node_id: Found<u32>,
    pub host: Option<String>,
    pub port: Found<u16>,
    /// Of [`SIZE`], and so on.
    pub size: Found,
    pub replicas: Found,
    pub own_host: Found,
    pub own_port: Found,
}

impl ClusterSettings {
    /// What that comes to; none for a node alone.
    pub(super) fn new(said: Said) -> Result<Option<ClusterSettings>, ClusterError> {
        let Some((origin, text)) = &said.members else { return said.check_alone().map(|()| None) };
        let members = members(origin, text)?;
        let (count, last) = (members.len(), members.len() - 1);
        let other_count = |said: Found| said.filter(|(_, value)| *value != count.to_string());
        if let Some((origin, value)) = other_count(said.size) {
            return Err(ClusterError::Size { origin, value, count });
        }
        if let Some((origin, value)) = other_count(said.replicas) {
            return Err(ClusterError::Replicas { origin, value, count });
        }
        let Some((node_id_origin, node_id)) = said.node_id else {
            return Err(ClusterError::NoNodeId { origin: origin.clone(), last });
        };
        let Some(own) = members.get(&node_id).cloned() else {
            return Err(ClusterError::NotMember { origin: node_id_origin, node_id, last });
        };
        if let Some((origin, port)) = said.port.filter(|(_, port)| *port != own.port) {
            return Err(ClusterError::OtherPort { origin, port, own });
        }
        for (said, expected) in [(said.own_host, own.host.clone()), (said.own_port, own.port.to_string())] {
            if let Some((origin, value)) = said.filter(|(_, value)| !value.eq_ignore_ascii_case(&expected)) {
                return Err(ClusterError::Advertised { origin, value, own });
            }
        }
        let host = said.host.unwrap_or_else(|| "127.0.0.1".to_owned());
        let other = members.iter().find(|(number, member)| **number != node_id && !is_loopback(&member.host));
        if let Some((_, other)) = other.filter(|_| is_loopback(&host)) {
            return Err(ClusterError::Unreachable { other: other.clone(), host });
        }
        // One node needs no others to agree with it.
        Ok((count > 1).then_some(ClusterSettings { node_id, host, members }))
    }

    /// Where the others find this node.
    pub(crate) fn own(&self) -> &MemberAddress {
        &self.members[&self.node_id]
    }

    /// What is possible and most likely not meant.
    pub(crate) fn remark(&self) -> Option<String> {
        let count = self.members.len();
        let spare = (count - 1) / 2;
        (count.is_multiple_of(2)).then(|| {
            format!(
                "a cluster of {count} nodes goes on without {spare} of them, as one of {} does, and has one more that can \
                 fail; use an odd number of nodes",
                count - 1
            )
        })
    }
}

impl Said {
    /// Nothing may ask for a cluster whose nodes are unknown.
    fn check_alone(self) -> Result<(), ClusterError> {
        let node_id = self.node_id.map(|(origin, number)| (origin, number.to_string())).filter(|(_, id)| id != "0");
        let count = self.size.or(self.replicas).filter(|(_, count)| count != "1");
        match node_id.or(count) {
            Some((origin, value)) => Err(ClusterError::NoMembers { origin, value }),
            None => Ok(()),
        }
    }
}

/// The list: with numbers, or without where the place is the number.
fn members(origin: &str, text: &str) -> Result<BTreeMap<u32, MemberAddress>, ClusterError> {
    let entries: Vec<_> = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    let (count, origin) = (entries.len(), origin.to_owned());
    match count {
        0 => return Err(ClusterError::Entry { origin, entry: text.to_owned() }),
        1..=MEMBERS_MAX => {}
        _ => return Err(ClusterError::Many { origin, count }),
    }
    let numbered = entries.iter().filter(|entry| entry.contains('=')).count();
    if numbered != 0 && numbered != count {
        return Err(ClusterError::SomeNumbers { origin });
    }
    let mut members: BTreeMap<u32, MemberAddress> = BTreeMap::new();
    for (place, entry) in (0..).zip(entries) {
        let (number, address) = match entry.split_once('=') {
            Some((number, address)) => (number.trim().parse().ok(), address.trim()),
            None => (Some(place), entry),
        };
        let Some(number) = number else { return Err(ClusterError::Entry { origin, entry: entry.to_owned() }) };
        let address = member(&origin, entry, address)?;
        let wrong = match members.contains_key(&number) {
            true => Some("there twice"),
            false => (number as usize >= count).then_some("none of them"),
        };
        if let Some(wrong) = wrong {
            return Err(ClusterError::Number { origin, count, last: count - 1, number, wrong });
        }
        if let Some((first, _)) = members.iter().find(|(_, other)| **other == address) {
            return Err(ClusterError::SameAddress { origin, address, first: *first, second: number });
        }
        members.insert(number, address);
    }
    Ok(members)
}

/// `host:port`, `[::1]:port`, or a host alone.
fn member(origin: &str, entry: &str, address: &str) -> Result<MemberAddress, ClusterError> {
    let wrong = || ClusterError::Entry { origin: origin.to_owned(), entry: entry.to_owned() };
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong)?) })
        }
        None => address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
    };
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '%');
    let is_host = !host.is_empty() && host.chars().all(is_name) && host.contains(':') == address.starts_with('[');
    if !is_host || address.contains('/') {
        return Err(wrong());
    }
    if host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified()) {
        return Err(ClusterError::Unspecified { origin: origin.to_owned(), entry: entry.to_owned() });
    }
    let port = port.map_or(Ok(DEFAULT_PORT), |port| values::number(port, 1, u16::MAX, ""));
    let port = port.map_err(|_| ClusterError::Port { origin: origin.to_owned(), entry: entry.to_owned() })?;
    Ok(MemberAddress { host: host.to_ascii_lowercase(), port })
}

/// Whether only this machine finds it, as far as the name says.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::{Configuration, Environment, Sources};
    use super::*;

    const LIST: &str = "0=10.0.0.1:26502,1=10.0.0.2:26502,2=10.0.0.3:26502";

    fn read(flags: &[(&'static str, &str)], environment: &[(&str, &str)]) -> Result<Configuration, String> {
        let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let sources = Sources::new(flags, Environment::new(environment), None).map_err(|error| error.to_string())?;
        Configuration::read(&sources).map_err(|error| error.to_string())
    }

    fn refusal(flags: &[(&'static str, &str)], environment: &[(&str, &str)]) -> String {
        match read(flags, environment) {
            Ok(read) => panic!("{flags:?} {environment:?} is taken: {:?}", read.cluster),
            Err(said) => said,
        }
    }

    #[test]
    fn one_list_is_enough_for_all_nodes() {
        let flags = [("node-id", "1"), ("initial-members", LIST), ("cluster-host", "0.0.0.0")];
        let read = read(&flags, &[]).expect("a cluster");
        let cluster = read.cluster.expect("a cluster");
        assert_eq!((cluster.node_id, cluster.host.as_str(), cluster.members.len()), (1, "0.0.0.0", 3));
        assert_eq!(cluster.own().to_string(), "10.0.0.2:26502");
        assert_eq!(cluster.remark(), None);
        assert_eq!(read.shutdown_drain, std::time::Duration::from_secs(2));
    }

    #[test]
    fn places_are_numbers_and_the_port_may_be_left_out() {
        let members = members("x", "a, [::1]:7 ,c:8,").expect("a list");
        let shown: Vec<_> = members.iter().map(|(number, member)| format!("{number}={member}")).collect();
        assert_eq!(shown, ["0=a:26502", "1=[::1]:7", "2=c:8"]);
    }

    #[test]
    fn camundas_variables_describe_the_same_cluster() {
        let environment = [
            ("ZEEBE_BROKER_CLUSTER_NODEID", "2"),
            ("ZEEBE_BROKER_CLUSTER_CLUSTERSIZE", "3"),
            ("ZEEBE_BROKER_CLUSTER_REPLICATIONFACTOR", "3"),
            ("ZEEBE_BROKER_CLUSTER_PARTITIONSCOUNT", "3"),
            ("ZEEBE_BROKER_CLUSTER_INITIALCONTACTPOINTS", "zeebe-0:26502,zeebe-1:26502,zeebe-2:26502"),
            ("ZEEBE_BROKER_NETWORK_HOST", "0.0.0.0"),
            ("ZEEBE_BROKER_NETWORK_INTERNALAPI_PORT", "26502"),
            ("ZEEBE_BROKER_NETWORK_INTERNALAPI_ADVERTISEDHOST", "zeebe-2"),
            ("ZEEBE_BROKER_NETWORK_ADVERTISEDHOST", "zeebe-2.zeebe"),
        ];
        let read = read(&[], &environment).expect("a cluster");
        assert_eq!((&read.unknown_variables, read.partitions), (&vec![], Some(3)));
        assert_eq!(read.advertised_address, Some(("zeebe-2.zeebe".to_owned(), None)));
        let cluster = read.cluster.expect("a cluster");
        assert_eq!((cluster.own().to_string().as_str(), cluster.host.as_str()), ("zeebe-2:26502", "0.0.0.0"));
    }

    #[test]
    fn a_cluster_of_one_is_a_node_alone() {
        for (flags, environment) in [
            (vec![("node-id", "0"), ("initial-members", "a:26502")], vec![]),
            (vec![], vec![("CAMUNDA_CLUSTER_SIZE", "1"), ("CAMUNDA_CLUSTER_REPLICATIONFACTOR", "1")]),
            (vec![("node-id", "0"), ("cluster-port", "26502")], vec![]),
        ] {
            let read = read(&flags, &environment);
            let read = read.unwrap_or_else(|said| panic!("{flags:?}: {said}"));
            assert_eq!((read.cluster, read.shutdown_drain), (None, std::time::Duration::ZERO));
        }
    }

    #[test]
    fn an_even_number_of_nodes_is_remarked() {
        let cluster = |count: u32| {
            let member = |number| (number, MemberAddress { host: format!("n{number}"), port: 1 });
            ClusterSettings { node_id: 0, host: "0.0.0.0".to_owned(), members: (0..count).map(member).collect() }
        };
        let remark = cluster(4).remark().expect("it is even");
        assert!(remark.starts_with("a cluster of 4 nodes goes on without 1 of them, as one of 3 does"), "{remark}");
        assert!(cluster(2).remark().expect("it is even").contains("without 0 of them"));
        assert_eq!([cluster(3).remark(), cluster(5).remark()], [None, None]);
    }

    #[test]
    fn lists_that_no_cluster_can_have_are_refused() {
        for (list, why) in [
            ("0=a:1,1=b:1,1=c:1", "1 is there twice"),
            ("0=a:1,1=b:1,3=c:1", "the numbers 0 to 2, each once. 3 is none of them"),
            ("0=a:1,b:1", "gives numbers to some"),
            ("0=a:1,1=A:1", "the address a:1 for the members 0 and 1"),
            ("a:0,b:1", "'a:0', but a port must be"),
            ("a:99999,b:1", "'a:99999', but a port must be"),
            ("0.0.0.0:1,b:1", "no address that other machines reach"),
            ("http://a:1,b:1", "'http://a:1', but each must be like"),
            ("x=a:1,1=b:1", "'x=a:1', but each must be like"),
            ("::1,b:1", "'::1', but each must be like"),
            (" , ", "each must be like"),
            ("a,b,c,d,e,f,g,h,i,j", "has 10 members, but at most 9"),
        ] {
            let said = refusal(&[("node-id", "0"), ("initial-members", list), ("cluster-host", "0.0.0.0")], &[]);
            assert!(said.starts_with("--initial-members has") || said.contains(why), "{list}: {said}");
            assert!(said.contains(why), "{list}: {said}");
        }
    }

    #[test]
    fn settings_that_contradict_the_list_are_refused() {
        type Given = Vec<(&'static str, &'static str)>;
        let cases: [(Given, Given, &str); 11] = [
            (vec![("initial-members", LIST)], vec![], "'node-id' does not say which of them"),
            (
                vec![("initial-members", LIST), ("node-id", "3")],
                vec![],
                "--node-id is 3, but the members have the numbers 0 to 2",
            ),
            (vec![("node-id", "1")], vec![], "--node-id is 1, but 'initial-members' does not say"),
            (
                vec![],
                vec![("CAMUNDA_CLUSTER_SIZE", "3")],
                "CAMUNDA_CLUSTER_SIZE is 3, but 'initial-members' does not say",
            ),
            (
                vec![("initial-members", LIST), ("node-id", "0")],
                vec![("ZEEBE_BROKER_CLUSTER_CLUSTERSIZE", "5")],
                "ZEEBE_BROKER_CLUSTER_CLUSTERSIZE is '5', but 'initial-members' has 3 members",
            ),
            (
                vec![("initial-members", LIST), ("node-id", "0")],
                vec![("ZEEBE_BROKER_CLUSTER_REPLICATIONFACTOR", "1")],
                "each of the 3 nodes holds a replica of each partition. Set it to 3",
            ),
            (
                vec![("initial-members", LIST), ("node-id", "0"), ("cluster-port", "26503")],
                vec![],
                "--cluster-port is 26503, but the others look for this node at 10.0.0.1:26502",
            ),
            (vec![("initial-members", LIST), ("node-id", "0")], vec![], "Set 'cluster-host' to the address"),
            (
                vec![("initial-members", LIST), ("node-id", "0"), ("cluster-host", "localhost")],
                vec![],
                "they cannot reach localhost",
            ),
            (
                vec![("initial-members", "localhost:26500,localhost:1"), ("node-id", "0")],
                vec![],
                "'grpc-port' and 'cluster-port' are both 26500",
            ),
            (
                vec![("initial-members", LIST), ("node-id", "0"), ("cluster-host", "0.0.0.0")],
                vec![("ZEEBE_BROKER_NETWORK_INTERNALAPI_ADVERTISEDPORT", "31002")],
                "ADVERTISEDPORT is '31002', but the others look for this node at",
            ),
        ];
        for (flags, environment, why) in cases {
            let said = refusal(&flags, &environment);
            assert!(said.contains(why), "{flags:?} {environment:?}: {said}");
        }
        let server = [("OSMIA_READ_MODEL", "postgresql"), ("OSMIA_READ_MODEL_URL", "postgresql://db/osmia")];
        let flags = [("initial-members", LIST), ("node-id", "0"), ("cluster-host", "10.0.0.1")];
        assert!(refusal(&flags, &server).contains("cannot share a server"));
    }
}
