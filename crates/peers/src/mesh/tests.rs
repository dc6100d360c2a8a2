//! Real sockets on loopback: whole meshes, garbage and strangers.

use std::sync::mpsc;

use super::*;
use crate::hello::tests::identity;

/// How long what must happen may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Frame { from: u32, lane: Lane, kind: u8, bytes: usize },
    Connected(u32, Lane),
    Disconnected(u32, Lane),
}

struct Recorder(mpsc::Sender<Seen>);

impl Receiver for Recorder {
    fn received(&self, from: NodeNumber, lane: Lane, kind: u8, payload: Bytes) {
        let _ = self.0.send(Seen::Frame { from: from.0, lane, kind, bytes: payload.len() });
    }

    fn connected(&self, to: &Identity, lane: Lane) {
        let _ = self.0.send(Seen::Connected(to.node.0, lane));
    }

    fn disconnected(&self, to: NodeNumber, lane: Lane) {
        let _ = self.0.send(Seen::Disconnected(to.0, lane));
    }

    fn absent(&self, _: NodeNumber, _: Lane, _: &Absence) {}
}

fn node(number: u32, listen: SocketAddr, members: &[(u32, SocketAddr)]) -> (Mesh, Sight) {
    let (sender, seen) = mpsc::channel();
    let members = members.iter().map(|(node, address)| (NodeNumber(*node), address.to_string())).collect();
    let options = MeshOptions { listen, identity: identity(number), members, directories: BTreeMap::new() };
    (Mesh::start(options, Recorder(sender)).expect("a free port"), Sight(seen, Vec::new()))
}

/// A port that is free for now.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// What a node saw and no test has waited for yet.
struct Sight(mpsc::Receiver<Seen>, Vec<Seen>);

impl Sight {
    fn wait_for(&mut self, wanted: &Seen) {
        while !self.1.contains(wanted) {
            let seen = self.0.recv_timeout(PATIENCE);
            self.1.push(seen.unwrap_or_else(|_| panic!("{wanted:?} did not happen, but {:?}", self.1)));
        }
        self.1.retain(|seen| seen != wanted);
    }
}

#[test]
fn frames_travel_between_nodes_on_each_lane_and_again_after_a_restart() {
    let addresses = [free(), free()];
    let (one, mut seen_by_one) = node(1, addresses[1], &[(0, addresses[0])]);
    // It dials before the other one listens.
    let (zero, mut seen_by_zero) = node(0, addresses[0], &[(1, addresses[1])]);
    for lane in Lane::ALL {
        seen_by_one.wait_for(&Seen::Connected(0, lane));
        let large = vec![7; lane.frame_bytes_max()];
        one.send(NodeNumber(0), lane, 20, &[&large[..1], &large[1..]]).expect("connected");
        seen_by_zero.wait_for(&Seen::Frame { from: 1, lane, kind: 20, bytes: large.len() });
    }
    drop(zero);
    seen_by_one.wait_for(&Seen::Disconnected(0, Lane::Consensus));
    assert_eq!(one.send(NodeNumber(5), Lane::Bulk, 20, &[]), Err(SendError::Unknown(NodeNumber(5))));
    let (_zero, mut seen_by_zero) = node(0, addresses[0], &[(1, addresses[1])]);
    seen_by_one.wait_for(&Seen::Connected(0, Lane::Consensus));
    one.send(NodeNumber(0), Lane::Consensus, 21, &[b"again"]).expect("connected");
    seen_by_zero.wait_for(&Seen::Frame { from: 1, lane: Lane::Consensus, kind: 21, bytes: 5 });
}

#[test]
fn strangers_are_closed_and_members_still_come_in() {
    let address = free();
    let (_zero, mut seen_by_zero) = node(0, address, &[(1, free())]);
    let mut strangers: Vec<TcpStream> =
        (0..4 * STRANGERS_MAX).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    for (index, stranger) in strangers.iter_mut().enumerate() {
        let garbage: &[u8] = [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100], &[0; 9], b""][index % 4];
        let _ = stranger.write_all(garbage);
    }
    // All are closed, those that said nothing too.
    for mut stranger in strangers {
        stranger.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let read = stranger.read(&mut [0; 16]);
        assert!(!matches!(&read, Err(error) if is_timeout(error)), "it stays open");
        assert!(!matches!(read, Ok(1..)), "a stranger gets no answer");
    }
    let (one, mut seen_by_one) = node(1, free(), &[(0, address)]);
    seen_by_one.wait_for(&Seen::Connected(0, Lane::Requests));
    one.send(NodeNumber(0), Lane::Requests, 20, &[b"x"]).expect("connected");
    seen_by_zero.wait_for(&Seen::Frame { from: 1, lane: Lane::Requests, kind: 20, bytes: 1 });
}

#[test]
fn a_member_comes_in_while_strangers_hold_all_places() {
    let address = free();
    let (_zero, mut seen_by_zero) = node(0, address, &[(1, free())]);
    // They say nothing, and their time is not over.
    let connect = || TcpStream::connect(address).expect("a connection");
    let mut strangers: Vec<TcpStream> = (0..STRANGERS_MAX).map(|_| connect()).collect();
    let mut newest = connect();
    let (identity, to) = (identity(1), NodeNumber(0));
    let (_, hello) = Outbound::new(&identity, to, Lane::Requests, 0);
    newest.write_all(&hello).expect("it is open");
    let mut frame = Vec::new();
    crate::frame::write(20, &[b"x"], &mut frame);
    newest.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    assert!(newest.read(&mut [0; 16]).is_ok_and(|read| read > 0), "it is welcome");
    newest.write_all(&frame).expect("it is open");
    seen_by_zero.wait_for(&Seen::Frame { from: 1, lane: Lane::Requests, kind: 20, bytes: 1 });
    strangers[0].set_read_timeout(Some(PATIENCE)).expect("a time-out");
    assert!(strangers[0].read(&mut [0; 16]).is_ok_and(|read| read == 0), "the oldest made room");
}
