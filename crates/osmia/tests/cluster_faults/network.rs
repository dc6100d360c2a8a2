//! A network of its own for each node, which can be cut.
//!
//! The test runs itself again in namespaces of mounts and networks, and makes one more network for each node there. All of it
//! goes with the last process. Root may do that, and anyone where the system allows it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cluster::Place;

/// Set where the test may mount and make networks.
const INSIDE: &str = "OSMIA_TEST_NETWORKS";
const BRIDGE: &str = "osmia";
/// Where the clients are.
const OUTSIDE: &str = "10.77.0.1/24";

/// Where a test runs.
pub enum Scene {
    /// In namespaces of its own.
    Inside,
    /// Where everybody is, because this user may not make namespaces.
    Open,
    /// It ran to its end elsewhere.
    Over,
}

/// Runs the test of this name again where it may mount and make networks, if the system allows it.
pub fn scene(test: &str) -> Scene {
    if std::env::var_os(INSIDE).is_some() {
        return Scene::Inside;
    }
    let program = std::env::current_exe().expect("it runs");
    for further in [&[][..], &["--map-root-user"]] {
        let unshare = || {
            let mut unshare = Command::new("unshare");
            unshare.args(["--net", "--mount"]).args(further);
            unshare
        };
        let mut probe = unshare();
        probe.args(["sh", "-c", "mount -t tmpfs probe /run && ip link add probe type bridge"]);
        if probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            let mut again = unshare();
            again.arg(&program).args(["--exact", test, "--ignored", "--nocapture"]).env(INSIDE, "1");
            assert!(again.status().expect("it just did").success(), "the test failed; its words are above");
            return Scene::Over;
        }
    }
    println!("this user may make no networks: no node is cut off, and no disk is full");
    Scene::Open
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().expect("ip exists");
    assert!(status.success(), "ip {words}");
}

/// Mounts a volume in memory.
pub fn mount(directory: &Path, mebibytes: u64) {
    std::fs::create_dir_all(directory).expect("it can be made");
    let size = format!("size={mebibytes}m");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &size, "osmia-test"]).arg(directory);
    assert!(mount.status().expect("mount exists").success());
}

/// The networks of some nodes, joined by a bridge.
pub struct Network;

impl Network {
    pub fn new(nodes: usize) -> Network {
        mount(Path::new("/run/netns"), 1);
        ip("link set lo up");
        ip(&format!("link add {BRIDGE} type bridge"));
        ip(&format!("link set {BRIDGE} up"));
        ip(&format!("addr add {OUTSIDE} dev {BRIDGE}"));
        for node in 0..nodes {
            let namespace = Self::namespace(node);
            ip(&format!("netns add {namespace}"));
            ip(&format!("link add to-{namespace} type veth peer name eth0 netns {namespace}"));
            ip(&format!("link set to-{namespace} master {BRIDGE} up"));
            ip(&format!("-n {namespace} link set lo up"));
            ip(&format!("-n {namespace} addr add {}/24 dev eth0", Self::host(node)));
            ip(&format!("-n {namespace} link set eth0 up"));
        }
        Network
    }

    fn namespace(node: usize) -> String {
        format!("node{node}")
    }

    fn host(node: usize) -> String {
        format!("10.77.0.1{node}")
    }

    pub fn places(&self, nodes: usize) -> Vec<Place> {
        (0..nodes).map(|node| Place::in_namespace(&Self::namespace(node), &Self::host(node))).collect()
    }

    /// Nothing comes to a node or from it.
    pub fn cut(&self, node: usize) {
        ip(&format!("link set to-{} down", Self::namespace(node)));
    }

    pub fn join(&self, node: usize) {
        ip(&format!("link set to-{} up", Self::namespace(node)));
    }

    /// A node reaches another one no more; what that one sends still comes.
    pub fn block(&self, from: usize, to: usize) {
        ip(&format!("-n {} route add blackhole {}/32", Self::namespace(from), Self::host(to)));
    }

    pub fn unblock(&self, from: usize, to: usize) {
        ip(&format!("-n {} route del blackhole {}/32", Self::namespace(from), Self::host(to)));
    }
}
