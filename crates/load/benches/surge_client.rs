//! Processor time of the load generator for one refused creation: with the connection of the surge, and with the general
//! client of `tonic`. The server answers each request with the same refusal.
//!
//! `cargo bench -p load --bench surge_client -- [REQUESTS] [REQUESTS PER SECOND]`

#[allow(dead_code, unused_imports, reason = "the bench uses only a part of the module")]
#[path = "../src/surge/connection.rs"]
mod connection;
#[allow(dead_code, reason = "the bench uses only a part of the module")]
#[path = "../src/surge/header_fields.rs"]
mod header_fields;

use std::io::{BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use connection::{Answer, Connection, Request, RequestMessage};
use gateway_interface::CreateProcessInstanceRequest;
use gateway_interface::gateway_client::GatewayClient;
use header_fields::AnswerReader;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::transport::Endpoint;

const IN_FLIGHT_MAX: usize = 1_000;
/// As in a surge: the schedule is looked at this often, and what is due goes out together.
const LOOK_INTERVAL: Duration = Duration::from_micros(500);
const TAG_DIGITS: usize = 16;

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (requests, rate) = (numbers.first().copied().unwrap_or(100_000), numbers.get(1).copied().unwrap_or(20_000));
    for _ in 0..3 {
        for (name, run) in [("surge", with_connection as fn(&str, Schedule) -> f64), ("tonic", with_tonic)] {
            let schedule = Schedule { start: Instant::now(), requests, rate };
            let cpu = run(&server(), schedule);
            let (each, rate) =
                (cpu * 1e6 / f64::from(requests), f64::from(requests) / schedule.start.elapsed().as_secs_f64());
            println!("{name}: {each:.2} µs of processor time for a request, at {rate:.0}/s");
        }
    }
}

#[derive(Clone, Copy)]
struct Schedule {
    start: Instant,
    requests: u32,
    rate: u32,
}

impl Schedule {
    fn due(self) -> u32 {
        ((self.start.elapsed().as_secs_f64() * f64::from(self.rate)) as u32).min(self.requests)
    }
}

fn with_connection(address: &str, schedule: Schedule) -> f64 {
    let mut connection =
        Connection::open(address, "10000m", IN_FLIGHT_MAX, &Arc::new(AnswerReader::new())).expect("the server listens");
    let octets = framed(&creation());
    let tag = octets.len() - TAG_DIGITS - 2..octets.len() - 2;
    let message = RequestMessage { octets, tag };
    let before = processor_time();
    let (mut sent, mut answered) = (0, 0);
    while answered < schedule.requests {
        while sent < schedule.due() && connection.has_room(message.octets.len()) {
            connection.send(Request { number: sent, sent: 0 }, &message, b"0123456789abcdef");
            sent += 1;
        }
        connection.flush().expect("the server reads");
        let mut count = |_, answer| {
            assert!(
                matches!(answer, Answer::Status { code, .. } if code == Code::ResourceExhausted as u8),
                "{answer:?}"
            );
            answered += 1;
        };
        connection.receive(&mut count).expect("the server answers");
        std::thread::sleep(LOOK_INTERVAL);
    }
    processor_time() - before
}

fn with_tonic(address: &str, schedule: Schedule) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let channel = Endpoint::from_shared(address.to_owned()).expect("an address").tcp_nodelay(true);
        let client = GatewayClient::new(channel.connect().await.expect("the server listens"));
        let (template, before) = (creation(), processor_time());
        let (mut sent, mut answered, mut waiting) = (0, 0, JoinSet::new());
        while answered < schedule.requests {
            while sent < schedule.due() && waiting.len() < IN_FLIGHT_MAX {
                let (mut client, mut request) = (client.clone(), tonic::Request::new(template.clone()));
                request.set_timeout(Duration::from_secs(10));
                waiting.spawn(async move { client.create_process_instance(request).await.map(|_| ()) });
                sent += 1;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
            while let Some(answer) = waiting.try_join_next() {
                assert_eq!(answer.expect("no panic").expect_err("a refusal").code(), Code::ResourceExhausted);
                answered += 1;
            }
        }
        processor_time() - before
    })
}

fn creation() -> CreateProcessInstanceRequest {
    let variables = format!("{{\"text\":\"{}\",\"loadTag\":\"{}\"}}", "x".repeat(471), "0".repeat(TAG_DIGITS));
    CreateProcessInstanceRequest { bpmn_process_id: "one-task".into(), version: -1, variables, ..Default::default() }
}

/// A message as gRPC frames it; its last field are the variables, which end with the tag.
fn framed(message: &CreateProcessInstanceRequest) -> Vec<u8> {
    const VARIABLES: u8 = 4 << 3 | 2;
    let variables = message.variables.as_bytes();
    let mut octets = vec![0; 5];
    octets.extend_from_slice(&[2 << 3 | 2, message.bpmn_process_id.len() as u8]);
    octets.extend_from_slice(message.bpmn_process_id.as_bytes());
    octets.extend_from_slice(&[VARIABLES, 0x80 | (variables.len() & 0x7f) as u8, (variables.len() >> 7) as u8]);
    octets.extend_from_slice(variables);
    let length = (octets.len() - 5) as u32;
    octets[1..5].copy_from_slice(&length.to_be_bytes());
    octets
}

/// A server for one connection, on a thread of its own, and its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().expect("a client");
        // Ends when the client closes the connection.
        let _ = refuse_all(&socket);
    });
    format!("http://{address}")
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACKNOWLEDGED: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;

fn refuse_all(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let (mut input, mut output) =
        (BufReader::with_capacity(1 << 17, socket), BufWriter::with_capacity(1 << 17, socket));
    let refusal = refusal();
    input.read_exact(&mut [0; 24])?;
    write_frame(&mut output, SETTINGS, 0, 0, &[])?;
    write_frame(&mut output, WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())?;
    let mut payload = Vec::new();
    loop {
        if input.buffer().is_empty() {
            output.flush()?;
        }
        let mut head = [0; 9];
        input.read_exact(&mut head)?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        payload.resize(u32::from_be_bytes([0, high, middle, low]) as usize, 0);
        input.read_exact(&mut payload)?;
        match kind {
            DATA if flags & END_STREAM != 0 => {
                write_frame(&mut output, HEADERS, END_STREAM_AND_HEADERS, u32::from_be_bytes(stream), &refusal)?;
            }
            SETTINGS if flags & ACKNOWLEDGED == 0 => write_frame(&mut output, SETTINGS, ACKNOWLEDGED, 0, &[])?,
            PING if flags & ACKNOWLEDGED == 0 => write_frame(&mut output, PING, ACKNOWLEDGED, 0, &payload)?,
            _ => {}
        }
    }
}

fn write_frame(output: &mut impl Write, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
    let length = (payload.len() as u32).to_be_bytes();
    output.write_all(&[length[1], length[2], length[3], kind, flags])?;
    output.write_all(&stream.to_be_bytes())?;
    output.write_all(payload)
}

/// The header fields of a refusal: status 200, then literals.
fn refusal() -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let field = |name: &str, value: &str| [vec![0], text(name), text(value)].concat();
    let message = "Expected to handle the command, but the limit of commands in flight is reached";
    let fields = [field("content-type", "application/grpc"), field("grpc-status", "8"), field("grpc-message", message)];
    [vec![0x88], fields.concat()].concat()
}

/// Seconds that this thread has used.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only the structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
