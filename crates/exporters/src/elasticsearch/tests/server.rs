//! A server that plays the target: it takes bulks and templates, and fails as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// The answer has this status, and nothing is taken.
    Status(u16),
    /// The connection breaks before anything is taken.
    CutBefore,
    /// The connection breaks when everything is taken.
    CutAfter,
    /// Every document whose number in the bulk has this rest by three is answered with this status.
    Some(u16, usize),
    /// The answer is no answer to a bulk.
    Nonsense,
    /// The answer takes some milliseconds.
    Slow(u64),
}

/// A request that came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

#[derive(Default)]
struct Taken {
    /// By document id: index, routing and record.
    documents: BTreeMap<String, (String, String, Value)>,
    /// Records in each bulk that was taken.
    bulks: Vec<usize>,
    /// Everything else.
    asked: Vec<Asked>,
    faults: VecDeque<Fault>,
    /// Faults of what is no bulk.
    schema_faults: VecDeque<Fault>,
    /// Ids of documents that are never taken.
    refused: Vec<String>,
    /// In indices with this in their name no document is taken.
    refused_index: Option<String>,
    /// Status of the answer to who asks whether somebody is there.
    greeting: Option<u16>,
    /// How many times more a document that is there is not found.
    unfound: usize,
    /// A larger bulk is refused.
    bytes_max: Option<usize>,
    under_way: usize,
    most_under_way: usize,
}

/// The server, until it is dropped.
pub(super) struct Server {
    pub address: SocketAddr,
    scheme: &'static str,
    taken: Arc<Mutex<Taken>>,
}

impl Server {
    pub fn start() -> Server {
        Server::with("http", serve)
    }

    /// One whose connections are encrypted.
    pub fn start_encrypted(certificate: &Path, key: &Path) -> Server {
        let certificate = CertificateDer::from_pem_file(certificate).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(key).expect("a key");
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth().with_single_cert(vec![certificate], key);
        let config = Arc::new(config.expect("they belong together"));
        Server::with("https", move |stream, taken| {
            let connection = ServerConnection::new(config.clone()).expect("a configuration");
            serve(StreamOwned::new(connection, stream), taken);
        })
    }

    fn with(scheme: &'static str, serve: impl Fn(TcpStream, &Mutex<Taken>) + Clone + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let taken = Arc::new(Mutex::new(Taken::default()));
        let shared = taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, serve) = (shared.clone(), serve.clone());
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Server { address, scheme, taken }
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// What goes wrong with the next bulks. Then nothing does.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.taken.lock().faults.extend(faults);
    }

    /// What goes wrong with the next requests for templates and policies.
    pub fn fail_schema(&self, faults: impl IntoIterator<Item = Fault>) {
        self.taken.lock().schema_faults.extend(faults);
    }

    /// A document is never taken.
    pub fn refuse(&self, id: &str) {
        self.taken.lock().refused.push(id.to_owned());
    }

    /// No document is taken in indices with this in their name, or all are again.
    pub fn refuse_index(&self, part: Option<&str>) {
        self.taken.lock().refused_index = part.map(str::to_owned);
    }

    /// Answers whoever asks whether somebody is there with this status.
    pub fn greet(&self, status: Option<u16>) {
        self.taken.lock().greeting = status;
    }

    /// The next searches find nothing.
    pub fn hide(&self, searches: usize) {
        self.taken.lock().unfound = searches;
    }

    /// Searches that found nothing are left.
    pub fn hidden(&self) -> usize {
        self.taken.lock().unfound
    }

    pub fn limit(&self, bytes: usize) {
        self.taken.lock().bytes_max = Some(bytes);
    }

    pub fn documents(&self) -> BTreeMap<String, (String, String, Value)> {
        self.taken.lock().documents.clone()
    }

    pub fn bulks(&self) -> Vec<usize> {
        self.taken.lock().bulks.clone()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.taken.lock().asked.clone()
    }

    pub fn most_under_way(&self) -> usize {
        self.taken.lock().most_under_way
    }
}

fn serve(stream: impl Read + Write, taken: &Mutex<Taken>) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        let is_bulk = asked.path.starts_with("/_bulk?");
        let is_look = asked.path == "/" || asked.path.contains("/_search?");
        let fault = if is_look {
            Fault::None
        } else {
            let mut taken = taken.lock();
            taken.under_way += 1;
            taken.most_under_way = taken.most_under_way.max(taken.under_way);
            let faults = if is_bulk { &mut taken.faults } else { &mut taken.schema_faults };
            faults.pop_front().unwrap_or(Fault::None)
        };
        let answer = match fault {
            Fault::CutBefore => None,
            Fault::Status(status) => Some((status, json!({ "error": { "type": "x", "reason": "told to" } }))),
            Fault::Nonsense => Some((200, json!("<html>"))),
            fault => {
                if let Fault::Slow(milliseconds) = fault {
                    std::thread::sleep(Duration::from_millis(milliseconds));
                }
                let answer = match () {
                    () if is_look => look(taken, &asked),
                    () if is_bulk => bulk(taken, &asked.body, fault),
                    () => other(taken, asked),
                };
                (fault != Fault::CutAfter).then_some(answer)
            }
        };
        taken.lock().under_way -= usize::from(!is_look);
        let Some((status, body)) = answer else { return };
        let body = body.to_string();
        let head =
            format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        if reader.get_mut().write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<impl Read>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body: String::from_utf8(body).expect("text") })
}

fn bulk(taken: &Mutex<Taken>, body: &str, fault: Fault) -> (u16, Value) {
    let mut taken = taken.lock();
    if taken.bytes_max.is_some_and(|max| body.len() > max) {
        return (413, json!("too large"));
    }
    assert!(body.ends_with('\n'), "a bulk ends with a line break");
    let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut items = Vec::new();
    for (number, pair) in lines.chunks(2).enumerate() {
        let action = &pair[0]["index"];
        let text = |name: &str| action[name].as_str().expect("a text").to_owned();
        let id = text("_id");
        let (status, error) = match fault {
            Fault::Some(status, rest) if number % 3 == rest => {
                (status, json!({ "type": "es_rejected_execution_exception" }))
            }
            _ if taken.refused.contains(&id)
                || taken.refused_index.as_ref().is_some_and(|part| text("_index").contains(part)) =>
            {
                (400, json!({ "type": "document_parsing_exception", "reason": "odd" }))
            }
            _ => {
                taken.documents.insert(id, (text("_index"), text("routing"), pair[1].clone()));
                (201, Value::Null)
            }
        };
        items.push(json!({ "index": { "status": status, "error": error } }));
    }
    taken.bulks.push(items.len());
    let errors = items.iter().any(|item| item["index"]["status"] != 201);
    (200, json!({ "took": 7, "errors": errors, "items": items }))
}

fn look(taken: &Mutex<Taken>, asked: &Asked) -> (u16, Value) {
    let mut taken = taken.lock();
    if asked.path == "/" {
        return (taken.greeting.unwrap_or(200), json!({ "tagline": "You Know, for Tests" }));
    }
    let query: Value = serde_json::from_str(&asked.body).expect("JSON");
    let id = query["query"]["ids"]["values"][0].as_str().expect("a text");
    let is_there = taken
        .documents
        .get(id)
        .is_some_and(|(index, routing, _)| asked.path.starts_with(&format!("/{index}/_search?routing={routing}&")));
    let is_found = is_there && taken.unfound == 0;
    taken.unfound = taken.unfound.saturating_sub(1);
    (200, json!({ "hits": { "total": { "value": usize::from(is_found) } } }))
}

fn other(taken: &Mutex<Taken>, asked: Asked) -> (u16, Value) {
    let is_unknown = asked.method == "GET";
    taken.lock().asked.push(asked);
    if is_unknown { (404, json!({})) } else { (200, json!({ "acknowledged": true })) }
}
