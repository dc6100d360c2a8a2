//! HTTP/2 written by hand, to send what no client library would.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a read waits by default.
const READ_LIMIT: Duration = Duration::from_secs(120);

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A part of a message.
pub const DATA: u8 = 0;
/// The headers of a request or an answer.
pub const HEADERS: u8 = 1;
/// The settings that a side sends.
pub const SETTINGS: u8 = 4;
/// A question whether the other side is there.
pub const PING: u8 = 6;
/// More headers.
pub const CONTINUATION: u8 = 9;

/// No more headers follow.
pub const END_HEADERS: u8 = 4;
/// Nothing more follows on the stream.
pub const END_STREAM: u8 = 1;

/// A frame with this payload.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    frame_of_length(u32::try_from(payload.len()).expect("it is short"), kind, flags, stream, payload)
}

/// A frame that claims this length, whatever its payload has.
pub fn frame_of_length(length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header as a literal that is not indexed.
pub fn header(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![0];
    for text in [name, value] {
        header.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).expect("it is short"));
        header.extend(text.as_bytes());
    }
    header
}

/// The headers of a request for a procedure, as one frame.
pub fn request(stream: u32, procedure: &str) -> Vec<u8> {
    let headers = [
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":path", &format!("/gateway_protocol.Gateway/{procedure}")),
        header(":authority", "localhost"),
        header("content-type", "application/grpc"),
        header("te", "trailers"),
    ];
    frame(HEADERS, END_HEADERS, stream, &headers.concat())
}

/// The beginning of a message of this length.
pub fn message_prefix(length: u32) -> Vec<u8> {
    [&[0][..], &length.to_be_bytes()].concat()
}

/// A connection that writes without ever waiting long.
pub struct Raw(TcpStream);

impl Raw {
    /// A connection on which nothing was sent yet.
    pub fn connect(grpc: &str) -> Raw {
        let stream = TcpStream::connect(grpc.trim_start_matches("http://")).expect("the gateway listens");
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket has time-outs");
        stream.set_read_timeout(Some(READ_LIMIT)).expect("a socket has time-outs");
        Raw(stream)
    }

    /// Reading gives up after this time without anything to read.
    pub fn wait_at_most(&self, limit: Duration) {
        self.0.set_read_timeout(Some(limit)).expect("a socket has time-outs");
    }

    /// A connection after the preface and the settings.
    pub fn open(grpc: &str) -> Raw {
        let mut raw = Raw::connect(grpc);
        assert!(raw.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()));
        raw
    }

    /// Sends; false when the server does not take it: it closed the connection, or does not read on.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// What the server says until it closes the connection; `None` when it does not close it.
    pub fn read_to_end(&mut self) -> Option<Vec<u8>> {
        let mut answer = Vec::new();
        let mut buffer = [0; 16_384];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return Some(answer),
                Ok(length) => answer.extend(&buffer[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
                // Closed while there was more to read.
                Err(_) => return Some(answer),
            }
        }
    }

    /// The data of the next answer that ends; none when there is no further one. Answers must not be mixed.
    pub fn read_answer(&mut self) -> Option<Vec<u8>> {
        let mut answer = Vec::new();
        loop {
            let mut frame_header = [0; 9];
            self.0.read_exact(&mut frame_header).ok()?;
            let [high, middle, low, kind, flags, ..] = frame_header;
            let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
            self.0.read_exact(&mut payload).ok()?;
            if kind == DATA {
                answer.extend(payload);
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                return Some(answer);
            }
        }
    }

    /// Whether the server answers a request: it sends headers.
    pub fn is_answered(&mut self) -> bool {
        let mut frame_header = [0; 9];
        while self.0.read_exact(&mut frame_header).is_ok() {
            let [high, middle, low, kind, ..] = frame_header;
            let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
            if kind == HEADERS {
                return true;
            }
            if self.0.read_exact(&mut payload).is_err() {
                return false;
            }
        }
        false
    }
}
