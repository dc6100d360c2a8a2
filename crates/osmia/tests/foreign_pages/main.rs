//! What pages of other origins can do to a node, tried in a real browser.

#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::*;

/// What browsers say about who sends a request, and who the page takes its server for.
const TELLING: [&str; 4] = ["host:", "origin:", "sec-fetch-", "referer:"];

/// What a page can do.
#[derive(Clone, Copy)]
enum Doing {
    Command,
    Purge,
    Read,
}

impl Doing {
    fn name(self) -> &'static str {
        match self {
            Doing::Command => "command",
            Doing::Purge => "purge",
            Doing::Read => "read",
        }
    }
}

/// A server of pages on this machine. All that it does not know it hands on to the node, as the
/// name of a page does that points to another address after a while.
struct Foreign {
    port: u16,
    reports: Receiver<String>,
}

/// How requests are handed on.
#[derive(Clone, Copy)]
enum Relay {
    /// As the browser sends them.
    Faithful,
    /// Without all that the node could tell them from those of programs by.
    Blind,
}

impl Foreign {
    fn start(node: &Server, relay: Relay) -> Foreign {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (sender, reports) = mpsc::channel();
        let ports = [node.rest.clone(), node.management.clone()];
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (ports, sender) = (ports.clone(), sender.clone());
                // Browsers open connections that they do not use, and end them when they like.
                std::thread::spawn(move || drop(serve(stream, &ports, relay, &sender)));
            }
        });
        Foreign { port, reports }
    }
}

/// Answers one request.
fn serve(
    stream: TcpStream,
    [rest, management]: &[String; 2],
    relay: Relay,
    reports: &Sender<String>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let value = |name: &str| {
        lines.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(|rest| rest.trim().to_owned()))
    };
    let length = value("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let node = match path {
        _ if path.starts_with("/v2/") => rest,
        _ if path.starts_with("/actuator/") => management,
        "/report" => {
            // Nobody waits any more when the test has failed.
            let _ = reports.send(String::from_utf8_lossy(&body).into_owned());
            return answer(stream, "");
        }
        _ => return answer(stream, include_str!("page.html")),
    };
    let is_kept = |line: &&String| {
        let line = line.to_lowercase();
        let tells =
            TELLING.iter().any(|name| line.starts_with(name)) || length == 0 && line.starts_with("content-type:");
        !(line.starts_with("connection:") || tells && matches!(relay, Relay::Blind))
    };
    let kept: Vec<&str> = lines.iter().filter(is_kept).map(String::as_str).collect();
    let host = if matches!(relay, Relay::Blind) { "Host: localhost\r\n" } else { "" };
    let mut node = TcpStream::connect(node)?;
    node.write_all(format!("{}\r\n{host}Connection: close\r\n\r\n", kept.join("\r\n")).as_bytes())?;
    node.write_all(&body)?;
    std::io::copy(&mut node, &mut &stream)?;
    Ok(())
}

fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

/// A browser that shows one page. Its names are known to it alone.
struct Browser(Child);

impl Browser {
    fn open(url: &str, more: &[&str]) -> (Browser, tempfile::TempDir) {
        let profile = tempfile::tempdir().expect("a directory");
        let browser = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            // The newest browsers ask their user before a page reaches this machine. The node does
            // not count on that.
            .arg("--disable-features=LocalNetworkAccessChecks")
            .arg("--host-resolver-rules=MAP *.example 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(more)
            .arg(url)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a chromium; scripts/install-tools test installs it");
        (Browser(browser), profile)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node with something to command and to read.
struct Victim {
    node: Server,
    instances: Vec<i64>,
    order: i64,
    other: i64,
    _data: tempfile::TempDir,
}

impl Victim {
    async fn start() -> Victim {
        let data = tempfile::tempdir().expect("a directory");
        // Only such a node can be purged.
        let node = Server::start(data.path(), &["--clock-control"]);
        let mut client = node.client().await;
        let order = definition_key(&deploy(&mut client, one_task("order", "work")).await);
        let other = definition_key(&deploy(&mut client, one_task("other", "work")).await);
        let mut instances = Vec::new();
        for _ in 0..3 {
            let created = client.create_process_instance(creation("order", r#"{"secret":"honey"}"#)).await;
            instances.push(created.expect("it is created").into_inner().process_instance_key);
        }
        Victim { node, instances, order, other, _data: data }
    }

    /// What a page at an address does to the node that it knows by others, and what it reads of it.
    fn visit(&self, foreign: &Foreign, host: &str, [rest, management]: [&str; 2], doing: Doing) -> String {
        let instances: Vec<String> = self.instances.iter().map(i64::to_string).collect();
        let url = format!(
            "http://{host}:{}/page?do={}&rest={rest}&management={management}&order={}&other={}&instances={}",
            foreign.port,
            doing.name(),
            self.order,
            self.other,
            instances.join(",")
        );
        let _browser = Browser::open(&url, &[]);
        let found = foreign.reports.recv_timeout(LIMIT).expect("the page comes to its end");
        assert!(!found.contains("the page failed"), "{found}");
        found
    }

    fn search(&self, of: &str) -> Vec<Value> {
        let (status, found) = Server::request(&self.node.rest, "POST", &format!("/v2/{of}/search"), "{}");
        assert_eq!(status, 200, "{found}");
        let found: Value = serde_json::from_str(&found).expect("it is JSON");
        found["items"].as_array().expect("items").clone()
    }

    /// Waits for a state: browsers say nothing of a form when the answer is that there is nothing
    /// to show.
    fn becomes(&self, expected: &(usize, Vec<String>)) {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT && self.state() != *expected {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.state(), *expected);
    }

    /// How many instances are active, and which processes are.
    fn state(&self) -> (usize, Vec<String>) {
        let instances = self.search("process-instances");
        let active = instances.iter().filter(|instance| instance["state"] == json!("ACTIVE")).count();
        // Those that are deleted stay in sight.
        let definitions = self.search("process-definitions").into_iter().filter(|of| of["state"] == json!("ACTIVE"));
        let mut definitions: Vec<String> =
            definitions.map(|of| of["processDefinitionId"].as_str().expect("an id").to_owned()).collect();
        definitions.sort();
        (active, definitions)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_neither_command_nor_read_a_node() {
    let victim = Victim::start().await;
    let foreign = Foreign::start(&victim.node, Relay::Faithful);
    let untouched = (3, vec!["order".to_owned(), "other".to_owned()]);
    assert_eq!(victim.state(), untouched);
    let port = |address: &str| address.rsplit(':').next().expect("a port").to_owned();
    let [rest, management] = [port(&victim.node.rest), port(&victim.node.management)];
    let of = |host: &str| [format!("http://{host}:{rest}"), format!("http://{host}:{management}")];
    for (page, node) in [
        // Another port is the same site.
        ("localhost", of("localhost")),
        ("127.0.0.1", of("localhost")),
        ("evil.example", of("127.0.0.1")),
        // The node by a name of the page.
        ("evil.example", of("node.evil.example")),
        // The page's own name, which points to the node now.
        ("rebound.example", [String::new(), String::new()]),
    ] {
        let node = [&*node[0], &*node[1]];
        for doing in [Doing::Read, Doing::Command, Doing::Purge] {
            let found = victim.visit(&foreign, page, node, doing);
            assert_eq!(victim.state(), untouched, "{page} did {} to {node:?}", doing.name());
            let has_read = ["honey", "isExecutable", "diskSpace"].iter().any(|text| found.contains(text));
            assert!(!has_read, "{page} has read of {node:?}: {found}");
        }
    }
}

/// Without this, the other test could pass because the page does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_pages_do_all_that_to_a_node_that_cannot_tell_them_from_programs() {
    let victim = Victim::start().await;
    let foreign = Foreign::start(&victim.node, Relay::Blind);
    let node = [format!("http://localhost:{}", foreign.port), format!("http://localhost:{}", foreign.port)];
    let node = [&*node[0], &*node[1]];
    let found = victim.visit(&foreign, "rebound.example", ["", ""], Doing::Read);
    assert!(["honey", "isExecutable", "diskSpace"].iter().all(|text| found.contains(text)), "{found}");
    victim.visit(&foreign, "evil.example", node, Doing::Command);
    let processes = ["by-fetch", "by-form", "order"].map(str::to_owned).to_vec();
    // All are cancelled, two are deployed, one is deleted.
    victim.becomes(&(0, processes));
    victim.visit(&foreign, "evil.example", node, Doing::Purge);
    victim.becomes(&(0, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_node_itself_shows_its_operations() {
    let data = tempfile::tempdir().expect("a directory");
    let node = Server::start(data.path(), &[]);
    let url = format!("http://{}/swagger", node.rest);
    // It shows them after it has read them from the node.
    let (mut browser, _profile) = Browser::open(&url, &["--virtual-time-budget=60000", "--dump-dom"]);
    let mut page = String::new();
    browser.0.stdout.take().expect("it is piped").read_to_string(&mut page).expect("it is text");
    assert!(page.contains(r#"data-tag="process-instances""#), "{page}");
}
