//! What happens on a connection, without a socket: bytes and times in, bytes and events out.

use bytes::Bytes;

use crate::frame::{self, FrameError, FrameReader, KIND_MIN};
use crate::hello::{HELLO_BYTES_MAX, Hello, HelloError, REFUSAL_BYTES_MAX, Refusal, VERSIONS, cut};
use crate::identity::{Identity, NodeNumber};
use crate::lane::Lane;
use crate::registry::Registry;

/// How long the hello and its answer may take, in milliseconds.
pub(crate) const GREETING_MS_MAX: u64 = 2_000;
/// How often an idle connection says that it lives, in milliseconds.
pub(crate) const KEEP_ALIVE_MS: u64 = 1_000;
/// After so many milliseconds without a byte the other node counts as gone.
pub(crate) const SILENCE_MS_MAX: u64 = 5_000;

/// Kinds of frames of the transport itself.
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REFUSAL: u8 = 3;
const KEEP_ALIVE: u8 = 4;

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The other node refused it, with its reason.
    #[error("it was refused: {0}")]
    Refused(String),
    /// This node refuses the other one.
    #[error("{0}")]
    Refusal(#[from] Refusal),
    /// Bytes that are no frame.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The first frame is no hello.
    #[error("{0}")]
    Hello(#[from] HelloError),
    /// A frame that has no place there.
    #[error("a frame of the kind {0} has no place there")]
    Kind(u8),
    /// Nothing came for too long.
    #[error("nothing came for {0} ms")]
    Silent(u64),
}

/// What a connection brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other node was admitted.
    Opened {
        /// Who it is.
        identity: Identity,
        /// The lane of the connection.
        lane: Lane,
    },
    /// A frame came.
    Frame {
        /// Its kind, at least [`KIND_MIN`].
        kind: u8,
        /// What it carries.
        payload: Bytes,
    },
}

/// The side that dialed and sends.
#[derive(Debug)]
pub struct Outbound {
    to: NodeNumber,
    lane: Lane,
    reader: FrameReader,
    since_ms: u64,
    is_open: bool,
}

impl Outbound {
    /// A connection to a node and the bytes that it begins with.
    pub fn new(own: &Identity, to: NodeNumber, lane: Lane, now_ms: u64) -> (Outbound, Vec<u8>) {
        let hello = Hello { identity: own.clone(), to, lane, versions: VERSIONS };
        let mut bytes = Vec::new();
        frame::write(HELLO, &[&hello.encode()], &mut bytes);
        (Outbound { to, lane, reader: FrameReader::default(), since_ms: now_ms, is_open: false }, bytes)
    }

    /// Whether the other node has welcomed this one.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes bytes of the other node, which says nothing after its answer to the hello.
    ///
    /// # Errors
    /// When the connection ends, with the reason.
    pub fn received(&mut self, bytes: &[u8], registry: &mut Registry) -> Result<Option<Event>, Closed> {
        self.reader.extend(bytes);
        let Some((kind, payload)) = self.reader.next(HELLO_BYTES_MAX)? else { return Ok(None) };
        match kind {
            REFUSAL => Err(Closed::Refused(String::from_utf8_lossy(&payload).into_owned())),
            WELCOME if !self.is_open => {
                let welcome = Hello::decode(&payload)?;
                registry.admit(&welcome)?;
                if welcome.identity.node != self.to {
                    let (from, to) = (registry.own().node, welcome.identity.node);
                    return Err(Refusal::WrongNode { from, wanted: self.to, to }.into());
                }
                self.is_open = true;
                Ok(Some(Event::Opened { identity: welcome.identity, lane: self.lane }))
            }
            kind => Err(Closed::Kind(kind)),
        }
    }

    /// Whether the answer to the hello is late.
    ///
    /// # Errors
    /// When it is.
    pub fn tick(&self, now_ms: u64) -> Result<(), Closed> {
        let waited = now_ms.saturating_sub(self.since_ms);
        if !self.is_open && waited > GREETING_MS_MAX { Err(Closed::Silent(waited)) } else { Ok(()) }
    }

    /// Appends the frame that says that an idle connection lives.
    pub fn keep_alive(out: &mut Vec<u8>) {
        frame::write(KEEP_ALIVE, &[], out);
    }
}

/// The side that listens and receives.
#[derive(Debug)]
pub struct Inbound {
    reader: FrameReader,
    lane: Option<Lane>,
    last_ms: u64,
}

impl Inbound {
    /// A connection that a stranger has opened.
    pub fn new(now_ms: u64) -> Inbound {
        Inbound { reader: FrameReader::default(), lane: None, last_ms: now_ms }
    }

    /// Whether the other node was admitted.
    pub fn is_open(&self) -> bool {
        self.lane.is_some()
    }

    /// Takes bytes of the other node. What is to be written back is appended to `out`, also when the connection ends.
    ///
    /// # Errors
    /// When the connection ends, with the reason. The events before hold.
    pub fn received(
        &mut self,
        bytes: &[u8],
        now_ms: u64,
        registry: &mut Registry,
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Closed> {
        // Before the hello, bytes that trickle do not extend its time.
        if self.is_open() {
            self.last_ms = now_ms;
        }
        self.reader.extend(bytes);
        loop {
            let bytes_max = self.lane.map_or(HELLO_BYTES_MAX, Lane::frame_bytes_max);
            let Some((kind, payload)) = self.reader.next(bytes_max)? else { return Ok(()) };
            match (self.lane, kind) {
                (None, HELLO) => {
                    let event = greet(&payload, registry, out)?;
                    if let Event::Opened { lane, .. } = &event {
                        self.lane = Some(*lane);
                    }
                    self.last_ms = now_ms;
                    events.push(event);
                }
                (Some(_), KEEP_ALIVE) => {}
                (Some(_), kind) if kind >= KIND_MIN => events.push(Event::Frame { kind, payload }),
                (_, kind) => return Err(Closed::Kind(kind)),
            }
        }
    }

    /// Whether the other node has been silent for too long.
    ///
    /// # Errors
    /// When it has.
    pub fn tick(&self, now_ms: u64) -> Result<(), Closed> {
        let silent = now_ms.saturating_sub(self.last_ms);
        let silent_max = if self.is_open() { SILENCE_MS_MAX } else { GREETING_MS_MAX };
        if silent > silent_max { Err(Closed::Silent(silent)) } else { Ok(()) }
    }
}

/// Answers a hello.
fn greet(payload: &[u8], registry: &mut Registry, out: &mut Vec<u8>) -> Result<Event, Closed> {
    // Strangers learn nothing of the cluster.
    let hello = Hello::decode(payload)?;
    if let Err(refusal) = registry.admit(&hello) {
        frame::write(REFUSAL, &[cut(&refusal.to_string(), REFUSAL_BYTES_MAX).as_bytes()], out);
        return Err(refusal.into());
    }
    let own = registry.own().clone();
    let welcome = Hello { identity: own, to: hello.identity.node, lane: hello.lane, versions: VERSIONS };
    frame::write(WELCOME, &[&welcome.encode()], out);
    Ok(Event::Opened { identity: hello.identity, lane: hello.lane })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::tests::identity;

    fn registry(node: u32) -> Registry {
        let mut registry = Registry::new(identity(node), [0, 1, 2].map(NodeNumber));
        (0..3).for_each(|node| registry.set_directory(NodeNumber(node), identity(node).directory));
        registry
    }

    /// Node 1 dials node 0; what both say of it.
    fn dial(dialing: &mut Registry, listening: &mut Registry) -> (Result<Option<Event>, Closed>, Result<(), Closed>) {
        let (mut outbound, hello) = Outbound::new(dialing.own(), NodeNumber(0), Lane::Requests, 0);
        let (mut back, mut events) = (Vec::new(), Vec::new());
        let taken = Inbound::new(0).received(&hello, 0, listening, &mut back, &mut events);
        (outbound.received(&back, dialing), taken)
    }

    #[test]
    fn two_members_greet_each_other_and_frames_follow() {
        let (mut dialing, mut listening) = (registry(1), registry(0));
        let (mut outbound, mut bytes) = Outbound::new(dialing.own(), NodeNumber(0), Lane::Requests, 0);
        // Frames may follow the hello at once.
        frame::write(20, &[b"command"], &mut bytes);
        Outbound::keep_alive(&mut bytes);
        let (mut inbound, mut back, mut events) = (Inbound::new(0), Vec::new(), Vec::new());
        for byte in &bytes {
            inbound.received(&[*byte], 1, &mut listening, &mut back, &mut events).expect("taken");
        }
        let opened = |node| Event::Opened { identity: identity(node), lane: Lane::Requests };
        let payload = Bytes::from_static(b"command");
        assert_eq!(events, [opened(1), Event::Frame { kind: 20, payload }]);
        assert_eq!(outbound.received(&back, &mut dialing), Ok(Some(opened(0))));
        assert!(outbound.is_open() && inbound.is_open());
    }

    #[test]
    fn a_refusal_reaches_the_node_that_dialed_as_a_sentence() {
        let (mut dialing, mut listening) = (registry(1), registry(0));
        listening.join("c2".to_owned());
        let (dialed, taken) = dial(&mut dialing, &mut listening);
        assert!(matches!(taken, Err(Closed::Refusal(Refusal::WrongCluster { .. }))), "{taken:?}");
        let Err(Closed::Refused(reason)) = dialed else { panic!("{dialed:?}") };
        assert!(reason.contains("belongs to cluster 'c1', and node 0 to 'c2'"), "{reason}");
    }

    #[test]
    fn the_dialing_node_refuses_an_old_copy_that_listens() {
        let (mut dialing, mut listening) = (registry(1), registry(0));
        let mut newer = Hello { identity: identity(0), to: NodeNumber(1), lane: Lane::Bulk, versions: VERSIONS };
        newer.identity.boot = 9;
        dialing.admit(&newer).expect("the newest life");
        let (dialed, _) = dial(&mut dialing, &mut listening);
        assert!(matches!(dialed, Err(Closed::Refusal(Refusal::OldCopy { theirs: 1, seen: 9, .. }))), "{dialed:?}");
    }

    #[test]
    fn strangers_get_no_answer_and_no_time() {
        for garbage in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0xff; 64], &[0; 64]] {
            let (mut back, mut events) = (Vec::new(), Vec::new());
            let taken = Inbound::new(0).received(garbage, 0, &mut registry(0), &mut back, &mut events);
            assert!(taken.is_err() && back.is_empty() && events.is_empty(), "{garbage:?}");
        }
        let mut slow = Inbound::new(0);
        for now in 0..GREETING_MS_MAX {
            slow.received(&[], now, &mut registry(0), &mut Vec::new(), &mut Vec::new()).expect("nothing yet");
        }
        assert_eq!(slow.tick(GREETING_MS_MAX), Ok(()));
        assert_eq!(slow.tick(GREETING_MS_MAX + 1), Err(Closed::Silent(GREETING_MS_MAX + 1)));
    }

    #[test]
    fn frames_before_a_hello_and_a_second_hello_end_the_connection() {
        let (_, hello) = Outbound::new(&identity(1), NodeNumber(0), Lane::Bulk, 0);
        let mut early = Vec::new();
        frame::write(20, &[b"x"], &mut early);
        for (bytes, kind) in [(early, 20), ([hello.clone(), hello].concat(), HELLO)] {
            let taken = Inbound::new(0).received(&bytes, 0, &mut registry(0), &mut Vec::new(), &mut Vec::new());
            assert_eq!(taken, Err(Closed::Kind(kind)));
        }
    }
}
