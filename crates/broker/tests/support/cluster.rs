//! A cluster in this process.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use broker::{Client, ClusterOptions, Joining, Node, NodeOptions, Role, SubmitError};
use protocol::*;

use super::{LIMIT, creation, eventually};

/// Changes the options of a node.
type SetUp = Box<dyn Fn(u32, &mut NodeOptions)>;

/// A cluster whose nodes are in this process.
pub struct Cluster {
    addresses: BTreeMap<u32, SocketAddr>,
    pub nodes: BTreeMap<u32, Node>,
    partition_count: u16,
    /// Changes the options of a node.
    set_up: SetUp,
    /// Removed last of all.
    directory: tempfile::TempDir,
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Cluster {
    pub fn of(nodes: u32, partition_count: u16) -> Cluster {
        Cluster::with(nodes, partition_count, |_, _| {})
    }

    /// Of nodes with other options.
    pub fn with(nodes: u32, partition_count: u16, set_up: impl Fn(u32, &mut NodeOptions) + 'static) -> Cluster {
        let directory = tempfile::tempdir().expect("temporary directory");
        let addresses = (0..nodes).map(|node| (node, free_address())).collect();
        let mut cluster =
            Cluster { directory, addresses, nodes: BTreeMap::new(), partition_count, set_up: Box::new(set_up) };
        let all: Vec<u32> = (0..nodes).collect();
        cluster.start(&all);
        cluster
    }

    pub fn options(&self, node: u32) -> NodeOptions {
        let members = self.addresses.iter().map(|(node, address)| (*node, address.to_string())).collect();
        let cluster = ClusterOptions { listen: self.addresses[&node], members };
        let mut options = NodeOptions {
            node_id: node,
            partition_count: self.partition_count,
            cluster: Some(cluster),
            ..super::options(&self.path(node))
        };
        (self.set_up)(node, &mut options);
        options
    }

    pub fn path(&self, node: u32) -> std::path::PathBuf {
        self.directory.path().join(node.to_string())
    }

    /// Starts nodes, which may have to wait for each other.
    pub fn start(&mut self, nodes: &[u32]) {
        let mut joining: BTreeMap<u32, Joining> =
            nodes.iter().map(|node| (*node, Node::join(&self.options(*node)).expect("a free port"))).collect();
        eventually("the founding", || {
            // Each of them carries out what it has to do meanwhile.
            let mut waiting = 0;
            for joining in joining.values_mut() {
                waiting += usize::from(!joining.is_founded().expect("the disk works"));
            }
            waiting == 0
        });
        for (node, joining) in joining {
            self.nodes.insert(node, Node::start_member(self.options(node), joining).expect("it starts"));
        }
        for node in nodes {
            assert!(self.nodes[node].wait_until_ready(LIMIT), "node {node} does not get ready");
        }
    }

    pub fn client(&self, node: u32) -> Client {
        self.nodes[&node].client()
    }

    pub fn leader(&self, partition: u16) -> u32 {
        let mut leader = None;
        eventually("a leader", || {
            let leads = |node: &Node| {
                let view = node.partitions().into_iter().find(|view| view.id.0 == partition);
                view.is_some_and(|view| view.role == Role::Leader)
            };
            leader = self.nodes.iter().find(|(_, node)| leads(node)).map(|(number, _)| *number);
            leader.is_some()
        });
        leader.expect("it was found")
    }

    pub fn follower(&self, partition: u16) -> u32 {
        let leader = self.leader(partition);
        *self.nodes.keys().find(|node| **node != leader).expect("several nodes")
    }
}

/// Submits until a leader has taken it: what is refused before was not carried out.
pub fn create_at(client: &Client, partition: u16) -> Key {
    let mut key = Key::NONE;
    eventually("a creation", || {
        let (sender, answer) = mpsc::channel();
        let command = creation(ProcessInstanceCreationIntent::Create, "{}");
        client.submit(PartitionId(partition), command, move |answer| drop(sender.send(answer)));
        match answer.recv_timeout(LIMIT).expect("an answer") {
            Ok(reply) => {
                let Payload::ProcessInstanceCreation(_, value) = reply.payload else { panic!("unexpected answer") };
                assert_eq!(reply.rejection, None);
                key = value.process_instance_key;
                true
            }
            Err(SubmitError::Unavailable { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    });
    key
}
