//! An HTTP/2 connection (RFC 9113) that carries creations and nothing else.
//!
//! A general client spends more processor time on a request than the server needs to refuse it, and the load generator
//! shares the machine with the server. Here all creations of a connection are the same octets except for the tag, many
//! go out with one system call, and only the status of an answer is read.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::header_fields::{AnswerReader, RequestFields};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
/// The largest frame that either side may send by default.
const FRAME_BYTES_LIMIT: usize = 16_384;
/// How much the server may send on a connection before we grant more.
const RECEIVE_WINDOW_BYTES: u32 = 1 << 30;
const WINDOW_AT_FIRST_BYTES: u32 = 65_535;
/// Received bytes are granted again once they add up to this.
const GRANT_BYTES: u32 = 1 << 20;
/// Octets that may wait for the socket; beyond them the server does not read fast enough.
const UNSENT_BYTES_LIMIT: usize = 256 * 1024;
const READ_BYTES: usize = 128 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 0x1;
const ACKNOWLEDGED: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;

const LAST_STREAM: u32 = i32::MAX as u32;
/// How much of the server's header table the fields of a request need.
const REMEMBERED_BYTES: u32 = 1_024;

/// A request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The number of the creation.
    pub number: u32,
    /// When it was sent, in microseconds since the start of the timeline.
    pub sent: u32,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The number of a gRPC status, and occasionally its message.
    Status { code: u8, message: String },
    /// The server gave the stream up, with this error code of HTTP/2.
    Reset { code: u32 },
    /// The connection ended before.
    Lost,
}

/// The message of a request, and where in it the tag stands.
pub(super) struct RequestMessage {
    pub octets: Vec<u8>,
    pub tag: std::ops::Range<usize>,
}

pub(super) struct Connection {
    socket: TcpStream,
    reader: Arc<AnswerReader>,
    fields: RequestFields,
    output: Vec<u8>,
    input: Vec<u8>,
    filled: usize,
    /// Streams from `first_stream` on, in the order in which they were opened.
    requests: VecDeque<Option<Request>>,
    first_stream: u32,
    next_stream: u32,
    outstanding: usize,
    in_flight_limit: usize,
    streams_limit: u32,
    send_window: i64,
    stream_window: u32,
    received_since_grant: u32,
    settings_came: bool,
    server_remembers: bool,
    ending: bool,
    /// The statuses of which a message was read recently.
    messages_read: [bool; STATUSES],
}

impl Connection {
    /// Connects, and waits until the server has said what it takes.
    pub fn open(
        address: &str,
        timeout: &str,
        in_flight_limit: usize,
        reader: &Arc<AnswerReader>,
    ) -> io::Result<Connection> {
        let authority = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
        let resolved = std::net::ToSocketAddrs::to_socket_addrs(authority)?
            .next()
            .ok_or_else(|| io::Error::new(ErrorKind::NotFound, "the name of the gateway has no address"))?;
        let socket = TcpStream::connect_timeout(&resolved, CONNECT_WITHIN)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut connection = Connection {
            socket,
            reader: Arc::clone(reader),
            fields: RequestFields { first: Vec::new(), others: Vec::new() },
            output: PREFACE.to_vec(),
            input: vec![0; READ_BYTES],
            filled: 0,
            requests: VecDeque::new(),
            first_stream: 1,
            next_stream: 1,
            outstanding: 0,
            in_flight_limit,
            streams_limit: u32::MAX,
            send_window: i64::from(WINDOW_AT_FIRST_BYTES),
            stream_window: WINDOW_AT_FIRST_BYTES,
            received_since_grant: 0,
            settings_came: false,
            server_remembers: true,
            ending: false,
            messages_read: [false; STATUSES],
        };
        connection.introduce();
        let end = Instant::now() + CONNECT_WITHIN;
        while !connection.settings_came {
            connection.flush()?;
            connection.receive(&mut |_, _| ())?;
            if Instant::now() > end {
                return Err(io::Error::new(ErrorKind::TimedOut, "the gateway does not answer in HTTP/2"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        connection.fields = RequestFields::new(CREATE_INSTANCE, authority, timeout, connection.server_remembers);
        Ok(connection)
    }

    fn introduce(&mut self) {
        // Answers use no header table, and the server pushes nothing.
        frame_head(&mut self.output, 12, SETTINGS, 0, 0);
        for setting in [HEADER_TABLE_SIZE, ENABLE_PUSH] {
            self.output.extend_from_slice(&setting.to_be_bytes());
            self.output.extend_from_slice(&0_u32.to_be_bytes());
        }
        self.grant(RECEIVE_WINDOW_BYTES - WINDOW_AT_FIRST_BYTES);
    }

    fn grant(&mut self, bytes: u32) {
        frame_head(&mut self.output, 4, WINDOW_UPDATE, 0, 0);
        self.output.extend_from_slice(&bytes.to_be_bytes());
    }

    /// Reads one message of each status again; all others are skipped, which costs less.
    pub fn read_messages(&mut self) {
        self.messages_read = [false; STATUSES];
    }

    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether a message of this size can be sent now.
    pub fn has_room(&self, message_bytes: usize) -> bool {
        let limit = self.in_flight_limit.min(usize::try_from(self.streams_limit).unwrap_or(usize::MAX));
        self.outstanding < limit
            && !self.ending
            && self.next_stream < LAST_STREAM - 2
            && self.output.len() < UNSENT_BYTES_LIMIT
            && i64::try_from(message_bytes).is_ok_and(|bytes| bytes <= self.send_window)
            && u32::try_from(message_bytes).is_ok_and(|bytes| bytes <= self.stream_window)
    }

    /// Queues a request for the socket; the tag is written as the model expects it.
    pub fn send(&mut self, request: Request, message: &RequestMessage, tag: &[u8]) {
        let stream = self.next_stream;
        let fields = if stream == 1 { &self.fields.first } else { &self.fields.others };
        frame_head(&mut self.output, fields.len(), HEADERS, END_HEADERS, stream);
        self.output.extend_from_slice(fields);
        frame_head(&mut self.output, message.octets.len(), DATA, END_STREAM, stream);
        let start = self.output.len();
        self.output.extend_from_slice(&message.octets);
        self.output[start + message.tag.start..start + message.tag.end].copy_from_slice(tag);
        self.send_window -= message.octets.len() as i64;
        self.next_stream += 2;
        self.outstanding += 1;
        self.requests.push_back(Some(request));
    }

    /// Writes as much as the socket takes.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.output.len() {
            match self.socket.write(&self.output[written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..written);
        Ok(())
    }

    /// Reads what has come and passes on each answer.
    pub fn receive(&mut self, answered: &mut impl FnMut(Request, Answer)) -> io::Result<()> {
        loop {
            match self.socket.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.filled += count;
                    let was_full = self.filled == self.input.len();
                    self.read_frames(answered)?;
                    if !was_full {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes on all requests that will never be answered.
    pub fn give_up(&mut self, answered: &mut impl FnMut(Request, Answer)) {
        self.requests.drain(..).flatten().for_each(|request| answered(request, Answer::Lost));
        self.outstanding = 0;
    }

    fn read_frames(&mut self, answered: &mut impl FnMut(Request, Answer)) -> io::Result<()> {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..self.filled];
        let result = loop {
            let Some((head, after)) = rest.split_at_checked(FRAME_HEAD_BYTES) else {
                break Ok(());
            };
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            if length > FRAME_BYTES_LIMIT {
                break Err(broken("a frame of more than 16 KiB"));
            }
            let Some((payload, after)) = after.split_at_checked(length) else {
                break Ok(());
            };
            let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
            rest = after;
            if let Err(error) = self.frame(head[3], head[4], stream, payload, answered) {
                break Err(error);
            }
        };
        let left = rest.len();
        let start = self.filled - left;
        self.input = input;
        self.input.copy_within(start..self.filled, 0);
        self.filled = left;
        result
    }

    fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        answered: &mut impl FnMut(Request, Answer),
    ) -> io::Result<()> {
        match kind {
            DATA => {
                self.received_since_grant += payload.len() as u32;
                if self.received_since_grant >= GRANT_BYTES {
                    let bytes = std::mem::take(&mut self.received_since_grant);
                    self.grant(bytes);
                }
                if flags & END_STREAM != 0 {
                    self.answer(stream, Answer::Status { code: UNKNOWN, message: String::new() }, answered);
                }
            }
            HEADERS => return self.answer_fields(flags, stream, payload, answered),
            RESET => {
                let code = number(payload)?;
                self.answer(stream, Answer::Reset { code }, answered);
            }
            SETTINGS if flags & ACKNOWLEDGED == 0 => self.settings(payload)?,
            PING if flags & ACKNOWLEDGED == 0 => {
                frame_head(&mut self.output, payload.len(), PING, ACKNOWLEDGED, 0);
                self.output.extend_from_slice(payload);
            }
            // The server answers the requests that it has seen, but takes no others.
            GO_AWAY => self.ending = true,
            WINDOW_UPDATE if stream == 0 => self.send_window += i64::from(number(payload)?),
            CONTINUATION => return Err(broken("header fields in several frames")),
            _ => {}
        }
        // A closing connection is of no use once its requests are answered.
        if self.ending && self.outstanding == 0 {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "the gateway ends the connection"));
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) -> io::Result<()> {
        for setting in payload.chunks_exact(6) {
            let value = number(&setting[2..])?;
            match u16::from_be_bytes([setting[0], setting[1]]) {
                HEADER_TABLE_SIZE => self.server_remembers = value >= REMEMBERED_BYTES,
                MAX_CONCURRENT_STREAMS => self.streams_limit = value,
                // No open stream waits for its window: each is opened with room for all it sends.
                INITIAL_WINDOW_SIZE => self.stream_window = value,
                _ => {}
            }
        }
        self.settings_came = true;
        frame_head(&mut self.output, 0, SETTINGS, ACKNOWLEDGED, 0);
        Ok(())
    }

    fn answer_fields(
        &mut self,
        flags: u8,
        stream: u32,
        payload: &[u8],
        answered: &mut impl FnMut(Request, Answer),
    ) -> io::Result<()> {
        if flags & END_HEADERS == 0 {
            return Err(broken("header fields in several frames"));
        }
        if flags & END_STREAM == 0 {
            // The status comes at the end.
            return Ok(());
        }
        let block = without_padding(flags, payload).ok_or_else(|| broken("a frame that is all padding"))?;
        let messages_read = &self.messages_read;
        let wants_message = |code: u8| messages_read.get(usize::from(code)).is_some_and(|read| !read);
        let fields = self.reader.read(block, wants_message).ok_or_else(|| broken("broken header fields"))?;
        let code = fields.status.unwrap_or(UNKNOWN);
        if let Some(read) = self.messages_read.get_mut(usize::from(code)) {
            *read = true;
        }
        self.answer(stream, Answer::Status { code, message: fields.message }, answered);
        Ok(())
    }

    fn answer(&mut self, stream: u32, answer: Answer, answered: &mut impl FnMut(Request, Answer)) {
        let Some(place) = stream.checked_sub(self.first_stream).map(|ahead| (ahead / 2) as usize) else {
            return;
        };
        let Some(request) = self.requests.get_mut(place).and_then(Option::take) else {
            return;
        };
        self.outstanding -= 1;
        while let Some(None) = self.requests.front() {
            self.requests.pop_front();
            self.first_stream += 2;
        }
        answered(request, answer);
    }
}

const CREATE_INSTANCE: &str = "/gateway_protocol.Gateway/CreateProcessInstance";
/// How many kinds of gRPC status there are.
const STATUSES: usize = 17;
/// The gRPC status of an answer without one.
const UNKNOWN: u8 = 2;

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the gateway sent {what}"))
}

fn number(payload: &[u8]) -> io::Result<u32> {
    payload
        .first_chunk()
        .map(|octets| u32::from_be_bytes(*octets) & LAST_STREAM)
        .ok_or_else(|| broken("a frame that is too short"))
}

fn without_padding(flags: u8, payload: &[u8]) -> Option<&[u8]> {
    let mut block = payload;
    let mut padding = 0;
    if flags & PADDED != 0 {
        let (length, rest) = block.split_first()?;
        (padding, block) = (usize::from(*length), rest);
    }
    if flags & PRIORITY != 0 {
        block = block.get(5..)?;
    }
    block.get(..block.len().checked_sub(padding)?)
}

fn frame_head(output: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    output.extend_from_slice(&[length[1], length[2], length[3], kind, flags]);
    output.extend_from_slice(&stream.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_and_priority_are_left_out() {
        assert_eq!(without_padding(0, b"abc"), Some(&b"abc"[..]));
        assert_eq!(without_padding(PADDED, b"\x02abcpp"), Some(&b"abc"[..]));
        assert_eq!(without_padding(PADDED | PRIORITY, b"\x01.....abcp"), Some(&b"abc"[..]));
        assert_eq!(without_padding(PADDED, b"\x09abc"), None);
        assert_eq!(without_padding(PRIORITY, b"abc"), None);
    }

    #[test]
    fn a_head_says_length_kind_and_stream() {
        let mut output = Vec::new();
        frame_head(&mut output, 0x01_0203, HEADERS, END_HEADERS, 0x0a0b_0c0d);
        assert_eq!(output, [1, 2, 3, HEADERS, END_HEADERS, 0x0a, 0x0b, 0x0c, 0x0d]);
    }
}
