//! The commands of a run over REST instead of gRPC: creations, publications, completions and polls. Deployments, streams
//! of jobs and questions about the cluster stay with gRPC, as with the official clients. The searches for data
//! availability take these connections too.
//!
//! Outcomes are told in the terms of gRPC, so that reports of both can be compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gateway_interface::ActivatedJob;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tonic::Status;

use crate::link::{AWAY_PAUSE, Addresses};
use crate::options::RestOptions;
use crate::worker::milliseconds;

/// Connections at once: a request that finds all of them taken waits. A Java client has a hundred.
const CONNECTIONS_MAX: usize = 256;

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections to the REST ports. Clones share them.
#[derive(Clone)]
pub(crate) struct Rest(Arc<Shared>);

struct Shared {
    addresses: Addresses,
    ports: Vec<Port>,
    /// The next address.
    turn: AtomicUsize,
    keeps_connections: bool,
    room: Semaphore,
}

/// One of the addresses.
struct Port {
    /// Open connections without a request.
    idle: Mutex<Vec<SendRequest<String>>>,
    /// Until then others are tried first, because nothing listened.
    away_until: Mutex<Option<Instant>>,
}

struct Connection {
    address: usize,
    sender: SendRequest<String>,
}

/// A new process instance.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    process_instance_key: String,
}

/// Jobs as they are activated.
#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    job_key: String,
    #[serde(rename = "type")]
    job_type: String,
    element_id: String,
    #[serde(default)]
    process_instance_key: String,
    variables: Box<RawValue>,
}

/// Why something was not done.
#[derive(Deserialize)]
struct Problem {
    title: String,
    detail: String,
}

impl Rest {
    pub(crate) fn new(options: &RestOptions) -> Rest {
        let strip = |address: &String| address.strip_prefix("http://").unwrap_or(address).to_owned();
        let addresses: Vec<String> = options.addresses.iter().map(strip).collect();
        let port = |_: &String| Port { idle: Mutex::default(), away_until: Mutex::default() };
        Rest(Arc::new(Shared {
            ports: addresses.iter().map(port).collect(),
            addresses: Addresses::new(&addresses),
            turn: AtomicUsize::new(0),
            keeps_connections: !options.connection_per_request,
            room: Semaphore::new(CONNECTIONS_MAX),
        }))
    }

    /// What was sent to each address.
    pub(crate) fn addresses(&self) -> &Addresses {
        &self.0.addresses
    }

    /// `variables` is JSON; the tag of the instance is for searches. Returns the key of the process instance.
    pub(crate) async fn create(
        &self,
        process_id: &str,
        variables: &str,
        tag: Option<String>,
        limit: Duration,
    ) -> Result<i64, Status> {
        let tags = tag.map_or(String::new(), |tag| format!(r#","tags":["{tag}"]"#));
        let body = format!(r#"{{"processDefinitionId":"{process_id}","variables":{variables}{tags}}}"#);
        let answer = self.command("/v2/process-instances", body, limit).await?;
        let unreadable =
            |error: &dyn std::fmt::Display| Status::internal(format!("the answer cannot be read: {error}"));
        let created: Created = serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
        created.process_instance_key.parse().map_err(|error| unreadable(&error))
    }

    /// `time_to_live` is in milliseconds.
    pub(crate) async fn publish(
        &self,
        name: &str,
        key: &str,
        time_to_live: i64,
        limit: Duration,
    ) -> Result<(), Status> {
        let body = format!(r#"{{"name":"{name}","correlationKey":"{key}","timeToLive":{time_to_live}}}"#);
        self.command("/v2/messages/publication", body, limit).await.map(drop)
    }

    pub(crate) async fn complete(&self, job_key: i64, limit: Duration) -> Result<(), Status> {
        self.command(&format!("/v2/jobs/{job_key}/completion"), "{}".to_owned(), limit).await.map(drop)
    }

    /// `wait` is how long the server may wait for a first job, if at all.
    pub(crate) async fn activate(
        &self,
        (job_type, worker): (&str, &str),
        job_timeout: Duration,
        jobs_max: u16,
        wait: Option<Duration>,
        limit: Duration,
    ) -> Result<Vec<ActivatedJob>, Status> {
        let (timeout, request_timeout) = (milliseconds(job_timeout), wait.map_or(-1, milliseconds));
        let body = format!(
            r#"{{"type":"{job_type}","worker":"{worker}","timeout":{timeout},"maxJobsToActivate":{jobs_max},"requestTimeout":{request_timeout}}}"#
        );
        let answer = self.post("/v2/jobs/activation", body, limit).await?;
        let unreadable = |error: &dyn std::fmt::Display| Status::internal(format!("the jobs cannot be read: {error}"));
        let jobs: Jobs = serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
        let job = |job: Job| {
            Ok(ActivatedJob {
                key: job.job_key.parse().map_err(|error| unreadable(&error))?,
                r#type: job.job_type,
                element_id: job.element_id,
                process_instance_key: job.process_instance_key.parse().unwrap_or_default(),
                variables: job.variables.get().to_owned(),
                ..ActivatedJob::default()
            })
        };
        jobs.jobs.into_iter().map(job).collect()
    }

    pub(crate) async fn get(&self, path: &str, limit: Duration) -> Result<Vec<u8>, Status> {
        self.request(Method::GET, path, String::new(), limit).await.1
    }

    pub(crate) async fn post(&self, path: &str, body: String, limit: Duration) -> Result<Vec<u8>, Status> {
        self.request(Method::POST, path, body, limit).await.1
    }

    /// A request that counts in the report.
    async fn command(&self, path: &str, body: String, limit: Duration) -> Result<Vec<u8>, Status> {
        let (address, result) = self.request(Method::POST, path, body, limit).await;
        self.0.addresses.count(address, &result);
        result
    }

    /// Returns to which address it went too, or was tried last.
    async fn request(
        &self,
        method: Method,
        path: &str,
        body: String,
        limit: Duration,
    ) -> (usize, Result<Vec<u8>, Status>) {
        let mut address = 0;
        let result = match tokio::time::timeout(limit, self.exchange(method, path, body, &mut address)).await {
            Ok(answered) => answered,
            Err(_) => Err(Status::deadline_exceeded(format!("no answer within {} ms", limit.as_millis()))),
        };
        (address, result)
    }

    async fn exchange(&self, method: Method, path: &str, body: String, address: &mut usize) -> Result<Vec<u8>, Status> {
        let _room = self.0.room.acquire().await.expect("the semaphore is never closed");
        let mut connection = self.connection(address).await?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.0.addresses.name(connection.address))
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| Status::internal(error.to_string()))?;
        let lost = |error: hyper::Error| Status::unavailable(format!("the connection was lost: {error}"));
        let response = connection.sender.send_request(request).await.map_err(lost)?;
        let (status, answer) = read(response).await.map_err(lost)?;
        if self.0.keeps_connections {
            self.0.ports[connection.address].idle.lock().push(connection.sender);
        }
        if status.is_success() { Ok(answer) } else { Err(refusal(status, &answer)) }
    }

    /// A connection to the next address, or to the next one that is there. Nothing was sent yet, so that trying others
    /// repeats nothing.
    async fn connection(&self, tried: &mut usize) -> Result<Connection, Status> {
        let now = Instant::now();
        let is_away = |address: &usize| self.0.ports[*address].away_until.lock().is_some_and(|until| until > now);
        let (away, mut there): (Vec<usize>, Vec<usize>) = (0..self.0.ports.len()).partition(is_away);
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed) % there.len().max(1);
        there.rotate_left(turn);
        let mut refused = Status::unavailable("no address is given");
        for address in there.into_iter().chain(away) {
            *tried = address;
            while let Some(mut sender) = self.idle(address) {
                // The connection may still be at the end of the last answer, or closed.
                if sender.ready().await.is_ok() {
                    return Ok(Connection { address, sender });
                }
            }
            match self.open(address).await {
                Ok(connection) => return Ok(connection),
                Err(status) => refused = status,
            }
            *self.0.ports[address].away_until.lock() = Some(Instant::now() + AWAY_PAUSE);
        }
        Err(refused)
    }

    fn idle(&self, address: usize) -> Option<SendRequest<String>> {
        self.0.ports[address].idle.lock().pop()
    }

    async fn open(&self, address: usize) -> Result<Connection, Status> {
        let name = self.0.addresses.name(address);
        let failed = |error: &dyn std::fmt::Display| Status::unavailable(format!("cannot connect to {name}: {error}"));
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(name)).await;
        let stream = connecting.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        // Whoever waits for an answer is told when it ends.
        tokio::spawn(async move { drop(driver.await) });
        Ok(Connection { address, sender })
    }
}

async fn read(response: Response<Incoming>) -> Result<(StatusCode, Vec<u8>), hyper::Error> {
    let (parts, body) = response.into_parts();
    let (mut body, mut answer) = (std::pin::pin!(body), Vec::new());
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        answer.extend_from_slice(&frame?.into_data().unwrap_or_else(|_| Bytes::new()));
    }
    Ok((parts.status, answer))
}

/// What gRPC calls it.
fn refusal(status: StatusCode, answer: &[u8]) -> Status {
    let problem = serde_json::from_slice(answer).unwrap_or_else(|_| Problem {
        title: String::new(),
        detail: format!("status {status} without a problem that can be read"),
    });
    let detail = problem.detail;
    match (status.as_u16(), problem.title.as_str()) {
        (400 | 415, _) => Status::invalid_argument(detail),
        (404, _) => Status::not_found(detail),
        (409, "ALREADY_EXISTS") => Status::already_exists(detail),
        (409, _) => Status::failed_precondition(detail),
        (408 | 504, _) => Status::deadline_exceeded(detail),
        (413 | 503, "RESOURCE_EXHAUSTED") => Status::resource_exhausted(detail),
        (503, _) => Status::unavailable(detail),
        (501, _) => Status::unimplemented(detail),
        _ => Status::unknown(detail),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;
    use tonic::Code;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Answers one request after the other on each connection, and returns how many connections came.
    async fn serve(listener: TcpListener, answers: &[&str]) -> usize {
        let (mut answers, mut connections) = (answers.iter(), 0);
        while answers.len() > 0 {
            let (stream, _) = listener.accept().await.expect("a client");
            let mut stream = BufReader::new(stream);
            connections += 1;
            while let Some(length) = request(&mut stream).await {
                stream.read_exact(&mut vec![0; length]).await.expect("the body");
                let Some(answer) = answers.next() else { return connections };
                stream.write_all(answer.as_bytes()).await.expect("it reads");
                if answers.len() == 0 {
                    return connections;
                }
            }
        }
        connections
    }

    /// The length of the body of the next request; none at the end of the connection.
    async fn request(stream: &mut BufReader<TcpStream>) -> Option<usize> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => return Some(length),
                line => {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                        length = value.parse().expect("a length");
                    }
                }
            }
        }
    }

    async fn start(connection_per_request: bool) -> (TcpListener, Rest) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let rest = Rest::new(&RestOptions { addresses: vec![address], connection_per_request });
        (listener, rest)
    }

    #[tokio::test]
    async fn requests_follow_each_other_on_one_connection_or_have_one_each() {
        const DONE: &str = "HTTP/1.1 204 No Content\r\n\r\n";
        for (connection_per_request, connections) in [(false, 1), (true, 3)] {
            let (listener, rest) = start(connection_per_request).await;
            let server = tokio::spawn(serve(listener, &[DONE; 3]));
            for key in 1..=3 {
                rest.complete(key, LIMIT).await.expect("it is done");
            }
            assert_eq!(server.await.expect("it serves"), connections);
        }
    }

    #[tokio::test]
    async fn jobs_and_problems_are_read() {
        let jobs = r#"{"jobs":[{"jobKey":"7","type":"t","elementId":"e","variables":{"a": 1.0},"other":null}]}"#;
        let jobs = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{jobs}", jobs.len());
        let problem =
            r#"{"type":"about:blank","title":"RESOURCE_EXHAUSTED","status":503,"detail":"full","instance":"/"}"#;
        let problem = format!("HTTP/1.1 503 No\r\ncontent-length: {}\r\n\r\n{problem}", problem.len());
        let (listener, rest) = start(false).await;
        let server = tokio::spawn(async move { serve(listener, &[&jobs, &problem]).await });
        let found = rest.activate(("t", "w"), LIMIT, 5, None, LIMIT).await.expect("it is read");
        assert_eq!((found[0].key, &*found[0].element_id, &*found[0].variables), (7, "e", r#"{"a": 1.0}"#));
        let refused = rest.create("p", "{}", None, LIMIT).await.expect_err("it is full");
        assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, "full"));
        assert_eq!(server.await.expect("it serves"), 1);
        let refused = rest.create("p", "{}", None, LIMIT).await.expect_err("nobody listens");
        assert_eq!(refused.code(), Code::Unavailable);
    }

    #[tokio::test]
    async fn an_address_where_nobody_listens_is_passed_over() {
        const DONE: &str = "HTTP/1.1 204 No Content\r\n\r\n";
        let mut addresses = vec!["127.0.0.1:1".to_owned()];
        let mut servers = Vec::new();
        for _ in 0..2 {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            addresses.push(listener.local_addr().expect("an address").to_string());
            servers.push(tokio::spawn(serve(listener, &[DONE; 3])));
        }
        let rest = Rest::new(&RestOptions { addresses, connection_per_request: false });
        for key in 1..=6 {
            rest.complete(key, LIMIT).await.expect("another address takes it");
        }
        let acknowledged: Vec<u64> = rest.addresses().report().iter().map(|report| report.acknowledged).collect();
        assert_eq!(acknowledged[0], 0);
        assert_eq!(acknowledged[1..].iter().sum::<u64>(), 6, "{acknowledged:?}");
        assert!(acknowledged[1..].iter().all(|count| *count > 0), "{acknowledged:?}");
        servers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
