//! Clients of the REST port that say half of what they want, too much of it, or read nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Case, cases};
use crate::victim::{Verdict, Victim};

/// Until a port must have answered.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Until a socket that is not read takes no more.
const WRITE_LIMIT: Duration = Duration::from_millis(500);
/// More than the node may keep of anything that one client sends or does not read.
const TOO_MUCH_BYTES: usize = 64 << 20;

pub(super) fn cases() -> Vec<Case> {
    cases! { "clients of REST":
        short "1,000 connections with half a request" half_requests;
        short "headers of HTTP/1.1 without an end" headers_without_end;
        short "a body without an end" body_without_end;
        short "requests one after the other, whose answers nobody reads" unread_answers;
        short "20,000 creations over 100 connections" many_creations;
        long "5,000 connections with a request of REST each" many_connections;
        long "bodies that come byte by byte" slow_bodies;
    }
}

/// Does something to the address of the port, away from the tasks that watch.
async fn with_address(victim: Victim, attack: impl FnOnce(&str) -> Verdict + Send + 'static) -> Verdict {
    let address = victim.addresses.rest.clone();
    let task = tokio::task::spawn_blocking(move || {
        let said = attack(&address)?;
        match ask(&address, "GET /v2/status HTTP/1.1\r\nHost: localhost\r\n\r\n") {
            Ok(204) => Ok(said),
            other => Err(format!("{said}, and then nobody is answered: {other:?}")),
        }
    });
    task.await.map_err(|error| error.to_string())?
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).map_err(|error| format!("no connection: {error}"))?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(|error| error.to_string())?;
    stream.set_write_timeout(Some(WRITE_LIMIT)).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// The status of the next answer.
fn status(stream: &mut TcpStream) -> Result<u16, String> {
    let mut answer = [0; 4_096];
    let length = stream.read(&mut answer).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&answer[..length]);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| format!("no answer, but '{text}'"))
}

fn ask(address: &str, request: &str) -> Result<u16, String> {
    let mut stream = connect(address)?;
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    status(&mut stream)
}

async fn half_requests(victim: Victim) -> Verdict {
    with_address(victim, |address| {
        let halves = [
            "POST /v2/process-instances HTTP/1.1\r\nHost: osm",
            "POST /v2/process-instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
            "POST /v2/messages/publication HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nf",
            "GE",
        ];
        let mut open = Vec::new();
        for half in halves.iter().cycle().take(1_000) {
            let mut stream = connect(address)?;
            stream.write_all(half.as_bytes()).map_err(|error| error.to_string())?;
            open.push(stream);
        }
        let answered = ask(address, "GET /v2/topology HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        Ok(format!("{} half requests, and one more with {answered}", open.len()))
    })
    .await
}

/// Sends the same until it is not taken any more; says what was answered to how many bytes.
fn flood(address: &str, beginning: &str, more: &str) -> Verdict {
    let mut stream = connect(address)?;
    let mut sent = 0;
    let mut piece = beginning.as_bytes();
    while stream.write_all(piece).is_ok() {
        sent += piece.len();
        piece = more.as_bytes();
        if sent > TOO_MUCH_BYTES {
            return Err(format!("{sent} bytes are taken"));
        }
    }
    let said = status(&mut stream).map_or_else(|error| error, |status| status.to_string());
    Ok(format!("ended after {sent} bytes: {said}"))
}

async fn headers_without_end(victim: Victim) -> Verdict {
    with_address(victim, |address| {
        let header = format!("X-Hostile: {}\r\n", "x".repeat(4_000));
        flood(address, "GET /v2/topology HTTP/1.1\r\nHost: localhost\r\n", &header)
    })
    .await
}

async fn body_without_end(victim: Victim) -> Verdict {
    with_address(victim, |address| {
        let head = "POST /v2/process-instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        flood(address, head, &format!("10000\r\n{}\r\n", " ".repeat(0x1_0000)))
    })
    .await
}

async fn unread_answers(victim: Victim) -> Verdict {
    with_address(victim, |address| {
        let request = "GET /v2/topology HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
        let mut open = Vec::new();
        let mut all = 0;
        for _ in 0..20 {
            let mut stream = connect(address)?;
            // The system keeps a few MiB for each socket.
            let mut sent = 0;
            while stream.write_all(request.as_bytes()).is_ok() {
                sent += request.len();
                if sent > TOO_MUCH_BYTES {
                    return Err(format!("{sent} bytes of requests are taken, whose answers nobody reads"));
                }
            }
            open.push(stream);
            all += sent;
        }
        let answered = ask(address, "GET /v2/topology HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        Ok(format!("{} connections took {all} bytes, and one more was answered {answered}", open.len()))
    })
    .await
}

async fn many_creations(victim: Victim) -> Verdict {
    with_address(victim, |address| {
        let body = r#"{"processDefinitionId":"hostile-is-not-there"}"#;
        let request = format!(
            "POST /v2/process-instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut workers = Vec::new();
        for _ in 0..100 {
            let (address, request) = (address.to_owned(), request.clone());
            workers.push(std::thread::spawn(move || -> Result<[usize; 2], String> {
                let mut stream = connect(&address)?;
                let mut statuses = [0; 2];
                for _ in 0..200 {
                    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
                    match status(&mut stream)? {
                        404 => statuses[0] += 1,
                        503 => statuses[1] += 1,
                        other => return Err(format!("a creation of nothing is answered {other}")),
                    }
                }
                Ok(statuses)
            }));
        }
        let mut all = [0; 2];
        for worker in workers {
            let statuses = worker.join().map_err(|_| "a client failed".to_owned())??;
            all = [all[0] + statuses[0], all[1] + statuses[1]];
        }
        Ok(format!("{} answered, {} refused for now", all[0], all[1]))
    })
    .await
}

async fn many_connections(victim: Victim) -> Verdict {
    let descriptors = victim.addresses.clone();
    with_address(victim, move |address| {
        let mut open = Vec::new();
        for _ in 0..5_000 {
            // At some number the node, or this machine, has enough.
            let Ok(mut stream) = connect(address) else { break };
            let asked = stream.write_all(b"GET /v2/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
            if asked.is_err() || status(&mut stream).is_err() {
                break;
            }
            open.push(stream);
        }
        Ok(format!("{} connections, {} descriptors", open.len(), descriptors.descriptors()))
    })
    .await
}

async fn slow_bodies(victim: Victim) -> Verdict {
    with_address(victim, |address| {
        let mut open = Vec::new();
        for _ in 0..200 {
            let mut stream = connect(address)?;
            let head = "POST /v2/jobs/7/completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
            stream.write_all(head.as_bytes()).map_err(|error| error.to_string())?;
            open.push(stream);
        }
        // A byte each second would keep them for a quarter of an hour.
        for second in 0..45 {
            let is_taken = |stream: &mut TcpStream| stream.write_all(b" ").is_ok();
            open.retain_mut(is_taken);
            if open.is_empty() {
                return Ok(format!("all are ended after {second} s"));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        Err(format!("{} requests may take as long as they like", open.len()))
    })
    .await
}
