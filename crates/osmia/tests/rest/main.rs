//! The REST API over real sockets: what clients get, and what those get who hold the protocol loosely.

mod audit_log;
mod business_ids;
mod described;
mod forms;
mod global_listeners;
mod http;
mod jobs;
mod listeners;
mod load;
mod process_instances;
mod resources;
mod searches;
mod spellings;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
mod task_listeners;
mod user_tasks;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use support::*;

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// An answer as it came.
struct Answer {
    status: u16,
    /// In lower case.
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    /// Status, title and detail of a problem, whose other members are right.
    fn problem(&self, path: &str) -> (u16, String, String) {
        assert_eq!(self.header("content-type"), Some(PROBLEM), "{}", self.body);
        let problem = self.json();
        assert_eq!(problem["type"], "about:blank");
        assert_eq!((&problem["status"], &problem["instance"]), (&json!(self.status), &json!(path)));
        let text = |name: &str| problem[name].as_str().expect("a text").to_owned();
        (self.status, text("title"), text("detail"))
    }
}

/// A connection that stays open between requests.
struct Connection(BufReader<TcpStream>, &'static Value);

impl Connection {
    fn open(server: &Server) -> Connection {
        let stream = TcpStream::connect(&server.rest).expect("the port listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a socket has time-outs");
        Connection(BufReader::new(stream), described::document(server))
    }

    fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).expect("it takes the request");
    }

    fn read(&mut self, has_body: bool) -> Answer {
        let mut line = || {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("it answers text");
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let headers: Vec<(String, String)> = std::iter::from_fn(|| Some(line()).filter(|line| !line.is_empty()))
            .map(|line| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned())).unwrap())
            .collect();
        let mut answer = Answer { status, headers, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; if has_body { length } else { 0 }];
        self.0.read_exact(&mut body).expect("the whole body");
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.read_chunk() {
                body.extend(chunk);
            }
        }
        answer.body = String::from_utf8(body).expect("text");
        answer
    }

    /// A piece of a body, or its end.
    fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let mut length = String::new();
        self.0.read_line(&mut length).expect("the length of a chunk");
        let length = usize::from_str_radix(length.trim_end(), 16).expect("a length");
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).expect("the whole chunk");
        chunk.truncate(length);
        Some(chunk).filter(|chunk| !chunk.is_empty())
    }

    /// Deploys files.
    fn deploy(&mut self, files: &[(&str, &[u8])]) -> Value {
        let answer = self.post_form(&form(files));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(JSON)), "{}", answer.body);
        answer.json()
    }

    fn post_form(&mut self, body: &[u8]) -> Answer {
        let length = body.len();
        self.send(&format!(
            "POST /v2/deployments HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; charset=ISO-8859-1; boundary=edge\r\nContent-Length: {length}\r\n\r\n"
        ));
        self.0.get_mut().write_all(body).expect("it takes the form");
        let answer = self.read(true);
        described::check(self.1, ("POST", "/v2/deployments", ""), &answer);
        answer
    }

    /// Does something that there is nothing to tell about.
    fn done(&mut self, method: &str, path: &str, body: &str) {
        let answer = self.ask(method, path, body);
        assert_eq!((answer.status, &*answer.body), (204, ""), "{method} {path} {body}");
    }

    /// The answer to what is right.
    fn tell(&mut self, method: &str, path: &str, body: &str) -> Value {
        let answer = self.ask(method, path, body);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some(JSON)),
            "{method} {path} {body}: {}",
            answer.body
        );
        answer.json()
    }

    /// Asks for what is refused with this status and title, and a detail that has these words.
    fn refused(&mut self, (method, path, body): (&str, &str, &str), status: u16, title: &str, words: &str) {
        let answer = self.ask(method, path, body);
        let found = answer.problem(path);
        assert_eq!((found.0, &*found.1), (status, title), "{method} {path} {body}: {}", answer.body);
        assert!(found.2.contains(words), "{method} {path} {body}: '{words}' is missing in '{}'", found.2);
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Answer {
        self.send(&request(method, path, body));
        let answer = self.read(method != "HEAD");
        if method != "HEAD" {
            described::check(self.1, (method, path, body), &answer);
        }
        answer
    }

    /// Whether nothing more comes.
    fn is_at_its_end(&mut self) -> bool {
        // A reset is an end too.
        self.0.read(&mut [0; 1]).unwrap_or(0) == 0
    }
}

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json; charset=UTF-8\r\n" };
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {length}\r\n\r\n{body}")
}

/// Files and the tenant, as official clients send them.
fn form(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, content) in files {
        let head = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"resources\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        form.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    form.extend(b"--edge\r\nContent-Disposition: form-data; name=\"tenantId\"\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\n<default>\r\n--edge--\r\n");
    form
}

async fn start(flags: &[&str]) -> (Server, tempfile::TempDir) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), flags);
    let mut client = server.client().await;
    deploy(&mut client, one_task("order", "work")).await;
    (server, data)
}
