//! Sends the creations of a run with a surge, on a separate thread: every creation at its time, or never.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::connection::{Answer, Connection, Request, RequestMessage};
use super::header_fields::AnswerReader;
use super::plan::{Phase, Plan};
use crate::error::LoadError;
use crate::figures::{Failures, Latencies};
use crate::model::{Payload, Tag};
use crate::schedule::Timeline;

/// Interval between two looks at the schedule and the connections. What falls due in between goes out together.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// Sends later than this after their intended time count as late.
const LATE: Duration = Duration::from_millis(10);
/// Reasons for refusals may change, so each connection reads one at this interval.
const READ_MESSAGES_EVERY: Duration = Duration::from_secs(1);
const PAUSE_BEFORE_RECONNECT: Duration = Duration::from_secs(1);
/// RESOURCE_EXHAUSTED.
const REFUSED: u8 = 8;

/// What became of the creations of one phase; each belongs to the phase in which it was intended.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub sent: u64,
    pub late: u64,
    /// Never sent, because as many as allowed were unanswered.
    pub held_back: u64,
    pub accepted: u64,
    pub failures: Failures,
    /// From the sending to the answer.
    pub acceptance: Latencies,
    pub refusal: Latencies,
}

impl Sent {
    fn new() -> Self {
        Sent {
            sent: 0,
            late: 0,
            held_back: 0,
            accepted: 0,
            failures: Failures::default(),
            acceptance: Latencies::new(),
            refusal: Latencies::new(),
        }
    }
}

/// Counts by the time at which something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentSoFar {
    pub sent: u64,
    pub held_back: u64,
    pub accepted: u64,
    pub refused: u64,
}

/// What the sender says about itself.
pub(super) struct Sending {
    pub phases: Vec<Sent>,
    pub so_far: SentSoFar,
    /// Connections that ended, and why.
    pub lost_connections: Failures,
    /// Creations without an answer.
    pub outstanding: usize,
    /// Whether all were sent or held back.
    pub finished: bool,
}

/// A set of the numbers of creations.
#[derive(Clone)]
pub(super) struct Numbers(Arc<[AtomicU64]>);

impl Numbers {
    pub fn up_to(total: u64) -> Self {
        Numbers((0..total.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// True when it was not there.
    pub fn insert(&self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        self.0.get((number / 64) as usize).is_some_and(|bits| bits.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// How many are in this set and not in the other.
    pub fn missing_in(&self, other: &Numbers) -> u64 {
        let missing = |(here, there): (&AtomicU64, &AtomicU64)| {
            u64::from((here.load(Ordering::Relaxed) & !there.load(Ordering::Relaxed)).count_ones())
        };
        self.0.iter().zip(other.0.iter()).map(missing).sum()
    }
}

/// What the thread needs.
pub(super) struct SenderSettings {
    pub addresses: Vec<String>,
    pub connections: usize,
    /// How many creations may be unanswered at once.
    pub in_flight: usize,
    pub request_timeout: Duration,
    pub timeline: Timeline,
    pub plan: Plan,
    pub message: RequestMessage,
    /// The creations that the server accepted.
    pub accepted: Numbers,
    /// The creations that the server refused because it had too much to do.
    pub refused: Numbers,
}

/// The running thread; it ends when this is dropped.
pub(super) struct Sender {
    sending: Arc<Mutex<Sending>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    pub fn start(settings: SenderSettings) -> Result<Self, LoadError> {
        let sending = Arc::new(Mutex::new(Sending {
            phases: vec![Sent::new(); Phase::ALL.len()],
            so_far: SentSoFar::default(),
            lost_connections: Failures::default(),
            outstanding: 0,
            finished: false,
        }));
        let mut work = SenderThread::connect(settings, &sending)?;
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::Builder::new()
            .name("load-surge".into())
            .spawn(move || work.run(&end))
            .map_err(LoadError::Thread)?;
        Ok(Sender { sending, ended, thread: Some(thread) })
    }

    pub fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().expect("the sender does not panic")
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread checks every half millisecond; a panic was already printed.
            let _ = thread.join();
        }
    }
}

struct SenderThread {
    settings: SenderSettings,
    sending: Arc<Mutex<Sending>>,
    reader: Arc<AnswerReader>,
    connections: Vec<Place>,
    /// The next creation of the schedule.
    next: u64,
    /// The connection whose turn it is.
    turn: usize,
    read_messages_at: Duration,
}

/// A connection, or when to try for one again.
struct Place {
    address: String,
    connection: Option<Connection>,
    again_at: Duration,
}

impl SenderThread {
    fn connect(settings: SenderSettings, sending: &Arc<Mutex<Sending>>) -> Result<Self, LoadError> {
        let reader = Arc::new(AnswerReader::new());
        let mut thread = SenderThread {
            connections: Vec::with_capacity(settings.connections),
            sending: Arc::clone(sending),
            reader,
            next: 0,
            turn: 0,
            read_messages_at: Duration::ZERO,
            settings,
        };
        for number in 0..thread.settings.connections {
            let address = thread.settings.addresses[number % thread.settings.addresses.len()].clone();
            let connection = thread
                .open(&address)
                .map_err(|error| LoadError::Connect { address: address.clone(), reason: error.to_string() })?;
            let place = Place { address, connection: Some(connection), again_at: Duration::ZERO };
            thread.connections.push(place);
        }
        Ok(thread)
    }

    fn open(&self, address: &str) -> std::io::Result<Connection> {
        let timeout = format!("{}m", self.settings.request_timeout.as_millis().clamp(1, 99_999_999));
        let in_flight = self.settings.in_flight.div_ceil(self.settings.connections);
        Connection::open(address, &timeout, in_flight, &self.reader)
    }

    fn run(&mut self, ended: &AtomicBool) {
        let sending = Arc::clone(&self.sending);
        while !ended.load(Ordering::Relaxed) {
            self.reconnect();
            {
                let mut sending = sending.lock().expect("nothing that holds the figures panics");
                let sending = &mut *sending;
                self.exchange(sending);
                sending.finished = self.next >= self.settings.plan.total();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends what is due and reads the answers.
    fn exchange(&mut self, sending: &mut Sending) {
        let now = self.settings.timeline.now();
        let due = self.settings.plan.due(now);
        while self.next < due {
            let number = self.next;
            let Some(place) = self.place_with_room() else {
                // There is no room for the later ones either.
                self.hold_back(sending, due);
                break;
            };
            self.next += 1;
            let phase = self.settings.plan.place_of(number);
            let sent = &mut sending.phases[phase];
            sent.sent += 1;
            sent.late += u64::from(now.saturating_sub(self.settings.plan.intended(number)) > LATE);
            sending.so_far.sent += 1;
            if let Some(connection) = &mut self.connections[place].connection {
                let request = Request { number: number as u32, sent: microseconds(now) };
                let mut tag = [0; Tag::DIGITS];
                write!(&mut tag[..], "{}", Tag::of_send(request.number, request.sent)).expect("a tag has its size");
                connection.send(request, &self.settings.message, &tag);
            }
        }
        let reads_messages = now >= self.read_messages_at;
        if reads_messages {
            self.read_messages_at = now + READ_MESSAGES_EVERY;
        }
        let (settings, mut outstanding) = (&self.settings, 0);
        for place in &mut self.connections {
            let Some(connection) = &mut place.connection else { continue };
            if reads_messages {
                connection.read_messages();
            }
            let mut answered = |request, answer| settings.answered(sending, request, answer);
            let result = connection.flush().and_then(|()| connection.receive(&mut answered));
            if let Err(error) = result {
                connection.give_up(&mut answered);
                sending.lost_connections.record(&tonic::Status::unavailable(error.to_string()));
                place.connection = None;
                place.again_at = now + PAUSE_BEFORE_RECONNECT;
                continue;
            }
            outstanding += connection.outstanding();
        }
        sending.outstanding = outstanding;
    }

    /// The next connection in turn that can take a creation.
    fn place_with_room(&mut self) -> Option<usize> {
        let bytes = self.settings.message.octets.len();
        let count = self.connections.len();
        let found = (self.turn..self.turn + count).map(|place| place % count).find(|place| {
            self.connections[*place].connection.as_ref().is_some_and(|connection| connection.has_room(bytes))
        })?;
        self.turn = found + 1;
        Some(found)
    }

    fn hold_back(&mut self, sending: &mut Sending, due: u64) {
        while self.next < due {
            sending.phases[self.settings.plan.place_of(self.next)].held_back += 1;
            sending.so_far.held_back += 1;
            self.next += 1;
        }
    }

    fn reconnect(&mut self) {
        let now = self.settings.timeline.now();
        for place in 0..self.connections.len() {
            let lost = &self.connections[place];
            if lost.connection.is_some() || now < lost.again_at {
                continue;
            }
            let opened = self.open(&lost.address);
            let lost = &mut self.connections[place];
            lost.connection = opened.ok();
            lost.again_at = self.settings.timeline.now() + PAUSE_BEFORE_RECONNECT;
        }
    }
}

impl SenderSettings {
    /// Counts an answer. Latencies have the resolution of the interval at which connections are read.
    fn answered(&self, sending: &mut Sending, request: Request, answer: Answer) {
        let latency = Duration::from_micros(u64::from(microseconds(self.timeline.now()).wrapping_sub(request.sent)));
        let sent = &mut sending.phases[self.plan.place_of(u64::from(request.number))];
        let status = match answer {
            Answer::Status { code: 0, .. } => {
                sent.accepted += 1;
                sent.acceptance.record(latency);
                sending.so_far.accepted += 1;
                self.accepted.insert(request.number);
                return;
            }
            Answer::Status { code, message } => {
                if code == REFUSED {
                    self.refused.insert(request.number);
                }
                (gateway_interface::code_name(tonic::Code::from_i32(i32::from(code))), message)
            }
            Answer::Reset { code } => ("RESET_STREAM", format!("HTTP/2 error {code}")),
            Answer::Lost => ("CONNECTION_LOST", String::new()),
        };
        sending.so_far.refused += 1;
        sent.refusal.record(latency);
        sent.failures.count(status.0, &status.1);
    }
}

/// No run is long enough to overflow this.
fn microseconds(time: Duration) -> u32 {
    time.as_micros() as u32
}

/// A creation of the latest version of a process, as a gRPC message.
pub(super) fn creation(process_id: &str, payload: &Payload) -> RequestMessage {
    const PROCESS_ID: u8 = 2 << 3 | 2;
    const VERSION: u8 = 3 << 3;
    const VARIABLES: u8 = 4 << 3 | 2;
    let variables = payload.variables(Tag(0));
    // Not compressed; then the length, which is written at the end.
    let mut octets = vec![0; 5];
    octets.push(PROCESS_ID);
    push_number(&mut octets, process_id.len() as u64);
    octets.extend_from_slice(process_id.as_bytes());
    octets.push(VERSION);
    push_number(&mut octets, (-1_i64).cast_unsigned());
    octets.push(VARIABLES);
    push_number(&mut octets, variables.len() as u64);
    let tag = octets.len() + payload.tag_at();
    octets.extend_from_slice(variables.as_bytes());
    let length = (octets.len() - 5) as u32;
    octets[1..5].copy_from_slice(&length.to_be_bytes());
    RequestMessage { octets, tag: tag..tag + Tag::DIGITS }
}

fn push_number(octets: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        octets.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    octets.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_stands_where_the_message_says() {
        let message = creation("process", &Payload::of_bytes(300));
        assert_eq!(&message.octets[message.tag.clone()], b"0000000000000000");
        let length = (message.octets.len() - 5) as u32;
        assert_eq!(message.octets[..5], [&[0][..], &length.to_be_bytes()].concat());
        assert_eq!(message.octets[5..7], [0x12, 7]);
        assert!(message.octets.ends_with(b"\"}"));
    }

    #[test]
    fn numbers_are_told_apart() {
        let (here, there) = (Numbers::up_to(130), Numbers::up_to(130));
        for number in [0, 63, 64, 129] {
            assert!(here.insert(number));
            assert!(!here.insert(number));
        }
        there.insert(64);
        there.insert(5);
        assert_eq!((here.missing_in(&there), there.missing_in(&here)), (3, 1));
        assert!(!here.insert(1_000_000), "beyond its end nothing is held");
    }
}
