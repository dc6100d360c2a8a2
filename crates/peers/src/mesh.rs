//! The shell: sockets and threads.
//!
//! | thread | how many | does |
//! |---|---|---|
//! | `peers listen` | 1 | accepts connections |
//! | `peers from` | one per connection | reads frames |
//! | `peers to NODE LANE` | one per peer and lane | dials, and writes what waits, as much as there is in one write |

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use socket2::SockRef;

use crate::connection::{Closed, Event, GREETING_MS_MAX, Inbound, Outbound};
use crate::hello::HELLO_BYTES_MAX;
use crate::identity::{DirectoryId, Identity, NodeNumber};
use crate::lane::Lane;
use crate::queue::{Queue, SendError};
use crate::registry::Registry;

/// How long a node is dialed before it counts as absent.
const DIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Pauses between attempts to dial: the first, and the longest after it doubled.
const DIAL_PAUSE: Duration = Duration::from_millis(20);
const DIAL_PAUSE_MAX: Duration = Duration::from_millis(500);
/// How long written bytes may stay without the other node's acknowledgement.
const USER_TIMEOUT: Duration = Duration::from_secs(2);
/// The same on the lane of bulk data.
const BULK_USER_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a thread that reads looks whether it should end or its peer is silent.
const READ_TIMEOUT: Duration = Duration::from_millis(250);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that the system keeps unsent on the lane of consensus: what waits there cannot be overtaken.
const CONSENSUS_SEND_BUFFER_BYTES: usize = 256 * 1024;
/// Connections that have not said who they are; a further one takes the place of the oldest. A member says who it is at once,
/// so it is let in however many others come that say nothing.
const STRANGERS_MAX: usize = 64;
/// Threads of strangers, with those whose connection was closed a moment ago; further connections are closed as they come.
const STRANGER_THREADS_MAX: usize = 2 * STRANGERS_MAX;

/// Takes what comes from other nodes. Called by the threads that read, so it must not block.
pub trait Receiver: Send + Sync + 'static {
    /// A frame came.
    fn received(&self, from: NodeNumber, lane: Lane, kind: u8, payload: Bytes);
    /// Frames can be sent to a node.
    fn connected(&self, to: &Identity, lane: Lane);
    /// Frames cannot be sent to a node any more; those on their way may be lost.
    fn disconnected(&self, to: NodeNumber, lane: Lane);
    /// A connection to a node could not be made.
    fn absent(&self, to: NodeNumber, lane: Lane, reason: &Absence);
}

/// Why a connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Absence {
    /// The machine answers, and nothing listens at the port: the process is gone.
    #[error("nothing listens at its address")]
    Gone,
    /// The node, or this one, refuses the connection with a sentence for the operator.
    #[error("{0}")]
    Refused(String),
    /// It does not answer.
    #[error("{0}")]
    Silent(String),
}

impl From<io::Error> for Absence {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Absence::Gone,
            _ => Absence::Silent(error.to_string()),
        }
    }
}

impl From<Closed> for Absence {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Refused(sentence) => Absence::Refused(sentence),
            Closed::Refusal(refusal) => Absence::Refused(refusal.to_string()),
            closed => Absence::Silent(closed.to_string()),
        }
    }
}

/// Where a node listens, and the other members.
#[derive(Clone, Debug)]
pub struct MeshOptions {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What the node says of itself.
    pub identity: Identity,
    /// The other members with their addresses, as HOST:PORT. Names are looked up at each attempt to dial.
    pub members: BTreeMap<NodeNumber, String>,
    /// The directories that the cluster knows them with; none before it was founded.
    pub directories: BTreeMap<NodeNumber, DirectoryId>,
}

/// The mesh could not start.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The port is taken or may not be used.
    #[error(
        "cannot listen for other nodes on {address}: {error}; set 'cluster-host' to an address of this machine, and free the port or change it in the lists of all nodes"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread for the connections between nodes: {0}")]
    Thread(io::Error),
}

/// What all threads share.
struct Shared {
    receiver: Box<dyn Receiver>,
    registry: Mutex<Registry>,
    begun: Instant,
    is_stopped: AtomicBool,
    strangers: AtomicUsize,
}

impl Shared {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

/// The connections of a node to all others.
pub struct Mesh {
    shared: Arc<Shared>,
    address: SocketAddr,
    queues: BTreeMap<(NodeNumber, Lane), Arc<Queue>>,
    threads: Vec<JoinHandle<()>>,
}

impl Mesh {
    /// Listens, and dials all other members until they answer.
    ///
    /// # Errors
    /// When the port or a thread cannot be had.
    pub fn start(options: MeshOptions, receiver: impl Receiver) -> Result<Mesh, MeshError> {
        let MeshOptions { listen, identity, members, directories } = options;
        let fail = |error| MeshError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let mut registry = Registry::new(identity, members.keys().copied());
        for (node, directory) in directories {
            registry.set_directory(node, directory);
        }
        let registry = Mutex::new(registry);
        let shared = Arc::new(Shared {
            receiver: Box::new(receiver),
            registry,
            begun: Instant::now(),
            is_stopped: AtomicBool::new(false),
            strangers: AtomicUsize::new(0),
        });
        let mut mesh = Mesh { shared: shared.clone(), address, queues: BTreeMap::new(), threads: Vec::new() };
        mesh.spawn("peers listen".to_owned(), move || listen_on(&listener, &shared))?;
        for (node, address) in members {
            for lane in Lane::ALL {
                let queue = Arc::new(Queue::new(node, lane));
                mesh.queues.insert((node, lane), queue.clone());
                let (shared, address) = (mesh.shared.clone(), address.clone());
                mesh.spawn(format!("peers to {node} {lane}"), move || send_to(&shared, node, lane, &address, &queue))?;
            }
        }
        Ok(mesh)
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), MeshError> {
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(MeshError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Which connections are taken: to be changed when the cluster learns of a founding or of another directory.
    pub fn registry<R>(&self, change: impl FnOnce(&mut Registry) -> R) -> R {
        change(&mut self.shared.registry.lock())
    }

    /// Sends a frame, whose payload is made of parts. It arrives whole and in order, or is lost with its connection.
    ///
    /// # Errors
    /// When it is certain that nothing of it is sent.
    pub fn send(&self, to: NodeNumber, lane: Lane, kind: u8, payload: &[&[u8]]) -> Result<(), SendError> {
        self.queues.get(&(to, lane)).ok_or(SendError::Unknown(to))?.send(kind, payload)
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        self.queues.values().for_each(|queue| queue.stop());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn listen_on(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut readers: Vec<JoinHandle<()>> = Vec::new();
    let mut strangers = VecDeque::new();
    while !shared.is_stopped() {
        readers.retain(|reader| !reader.is_finished());
        strangers.retain(Waiting::is_stranger);
        match listener.accept() {
            Ok((stream, address)) => readers.extend(take_in(stream, address, shared, &mut strangers)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => {
                tracing::warn!("cannot accept connections of other nodes: {error}; trying again");
                std::thread::sleep(READ_TIMEOUT);
            }
        }
    }
    for reader in readers {
        let _ = reader.join();
    }
}

/// The connection of a stranger, as long as it is one.
struct Waiting {
    stream: TcpStream,
    /// Its reader, which gives this away once it knows who it is or has ended.
    reader: Weak<()>,
}

impl Waiting {
    fn is_stranger(&self) -> bool {
        self.reader.strong_count() > 0
    }
}

/// Starts a thread for a new connection, if there is room for one.
fn take_in(
    stream: TcpStream,
    address: SocketAddr,
    shared: &Arc<Shared>,
    strangers: &mut VecDeque<Waiting>,
) -> Option<JoinHandle<()>> {
    if strangers.len() >= STRANGERS_MAX
        && let Some(oldest) = strangers.pop_front()
    {
        tracing::debug!("closes a connection of a stranger: {STRANGERS_MAX} have not said who they are");
        let _ = oldest.stream.shutdown(Shutdown::Both);
    }
    if shared.strangers.fetch_add(1, Ordering::AcqRel) >= STRANGER_THREADS_MAX {
        shared.strangers.fetch_sub(1, Ordering::AcqRel);
        return None;
    }
    let mark = Arc::new(());
    if let Ok(stream) = stream.try_clone() {
        strangers.push_back(Waiting { stream, reader: Arc::downgrade(&mark) });
    }
    let of_reader = shared.clone();
    let read = move || read_from(stream, address, &of_reader, mark);
    match std::thread::Builder::new().name("peers from".to_owned()).spawn(read) {
        Ok(reader) => Some(reader),
        Err(error) => {
            shared.strangers.fetch_sub(1, Ordering::AcqRel);
            tracing::warn!(%address, "cannot start a thread for a connection of another node: {error}");
            None
        }
    }
}

/// Counts a stranger until it has said who it is, or its connection ends.
struct Stranger<'a>(Option<(&'a AtomicUsize, Arc<()>)>);

impl Stranger<'_> {
    fn is_known(&mut self) {
        if let Some((count, _)) = self.0.take() {
            count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        self.is_known();
    }
}

fn read_from(mut stream: TcpStream, address: SocketAddr, shared: &Shared, mark: Arc<()>) {
    let mut stranger = Stranger(Some((&shared.strangers, mark)));
    let is_set = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(READ_TIMEOUT)))
        .and_then(|()| stream.set_write_timeout(Some(DIAL_TIMEOUT)));
    if is_set.is_err() {
        return;
    }
    let (mut inbound, mut from) = (Inbound::new(shared.now_ms()), None);
    let (mut buffer, mut back, mut events) = (vec![0; READ_BYTES], Vec::new(), Vec::new());
    while !shared.is_stopped() {
        let read = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if is_timeout(&error) => 0,
            Err(_) => break,
        };
        let taken = match read {
            0 => inbound.tick(shared.now_ms()),
            _ => {
                let mut registry = shared.registry.lock();
                inbound.received(&buffer[..read], shared.now_ms(), &mut registry, &mut back, &mut events)
            }
        };
        for event in events.drain(..) {
            match event {
                Event::Opened { identity, lane } => {
                    stranger.is_known();
                    from = Some((identity.node, lane));
                }
                Event::Frame { kind, payload } => {
                    if let Some((node, lane)) = from {
                        shared.receiver.received(node, lane, kind, payload);
                    }
                }
            }
        }
        let is_written = back.is_empty() || stream.write_all(&back).is_ok();
        back.clear();
        if let Err(reason) = taken {
            match from {
                Some((node, lane)) => tracing::warn!(%node, %lane, "a connection of another node ends: {reason}"),
                None => tracing::debug!(%address, "a connection of a stranger ends: {reason}"),
            }
            break;
        }
        // Trickled bytes must not outlast the time for the hello.
        if !is_written || !inbound.is_open() && inbound.tick(shared.now_ms()).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn send_to(shared: &Shared, node: NodeNumber, lane: Lane, address: &str, queue: &Queue) {
    let mut pause = DIAL_PAUSE;
    let mut said = None;
    while !queue.is_stopped() {
        match dial(shared, node, lane, address) {
            Ok((mut stream, identity)) => {
                (pause, said) = (DIAL_PAUSE, None);
                queue.open();
                tracing::debug!(%node, %lane, address, "connected to another node");
                shared.receiver.connected(&identity, lane);
                let reason = write_all(&mut stream, queue);
                queue.close();
                let _ = stream.shutdown(Shutdown::Both);
                shared.receiver.disconnected(node, lane);
                if let Some(reason) = reason {
                    tracing::debug!(%node, %lane, "lost the connection to another node: {reason}");
                }
            }
            Err(absence) => {
                shared.receiver.absent(node, lane, &absence);
                // Once for each reason: an absent node is dialed twice a second.
                if lane == Lane::Consensus && said.as_ref() != Some(&absence) {
                    tracing::info!(%node, address, "cannot connect to another node: {absence}; trying again");
                    said = Some(absence);
                }
            }
        }
        queue.pause(pause);
        pause = (pause * 2).min(DIAL_PAUSE_MAX);
    }
}

/// Connects and greets.
fn dial(shared: &Shared, node: NodeNumber, lane: Lane, address: &str) -> Result<(TcpStream, Identity), Absence> {
    let addresses = address.to_socket_addrs()?;
    let mut last = Err(Absence::Silent("its name has no address".to_owned()));
    for address in addresses {
        last = TcpStream::connect_timeout(&address, DIAL_TIMEOUT).map_err(Absence::from);
        if last.is_ok() {
            break;
        }
    }
    let mut stream = last?;
    set_up(&stream, lane)?;
    let own = shared.registry.lock().own().clone();
    let (mut outbound, hello) = Outbound::new(&own, node, lane, shared.now_ms());
    stream.write_all(&hello)?;
    let mut buffer = [0; HELLO_BYTES_MAX];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(Absence::Silent("it closed the connection".to_owned())),
            Ok(read) => {
                let event = outbound.received(&buffer[..read], &mut shared.registry.lock());
                if let Some(Event::Opened { identity, .. }) = event? {
                    return Ok((stream, identity));
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error.into()),
        }
        outbound.tick(shared.now_ms())?;
    }
}

fn set_up(stream: &TcpStream, lane: Lane) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(GREETING_MS_MAX)))?;
    let socket = SockRef::from(stream);
    // Who receives a state may stop reading while its disk is busy.
    let user_timeout = if lane == Lane::Bulk { BULK_USER_TIMEOUT } else { USER_TIMEOUT };
    socket.set_tcp_user_timeout(Some(user_timeout))?;
    if lane == Lane::Consensus {
        socket.set_send_buffer_size(CONSENSUS_SEND_BUFFER_BYTES)?;
    }
    Ok(())
}

/// Writes what waits until the connection ends; why it did.
fn write_all(stream: &mut TcpStream, queue: &Queue) -> Option<io::Error> {
    let mut buffer = Vec::new();
    if let Err(error) = stream.set_write_timeout(Some(READ_TIMEOUT)) {
        return Some(error);
    }
    loop {
        queue.take(&mut buffer);
        if buffer.is_empty() {
            Outbound::keep_alive(&mut buffer);
        }
        let mut written = 0;
        while written < buffer.len() {
            if queue.is_stopped() {
                return None;
            }
            if is_closed(stream) {
                return Some(io::ErrorKind::ConnectionReset.into());
            }
            match stream.write(&buffer[written..]) {
                Ok(count) => written += count,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Some(error),
            }
        }
    }
}

/// Whether the other node has ended the connection. It says nothing after its welcome, so whatever can be read is an end.
fn is_closed(stream: &TcpStream) -> bool {
    let read = SockRef::from(stream).recv_with_flags(&mut [MaybeUninit::uninit(); 1], libc::MSG_DONTWAIT);
    !matches!(read, Err(error) if is_timeout(&error))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
