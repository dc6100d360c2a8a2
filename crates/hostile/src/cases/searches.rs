//! Clients of the REST port that search for what is deep, wide, long or expensive to find.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use model_builder::ProcessBuilder;

use super::{Case, cases};
use crate::victim::{Verdict, Victim, refusal, short};

/// Until a search must be answered: it has five seconds with what it waits, and the machine may be busy.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// A search is answered this long after an attack at the latest.
const ANSWERED_AGAIN_WITHIN: Duration = Duration::from_secs(10);
/// No answer is larger than this with its head.
const ANSWER_BYTES_MAX: usize = 20 << 20;
const PROCESS: &str = "hostile-searched";

pub(super) fn cases() -> Vec<Case> {
    cases! { "searches":
        short "filters in filters, a few or a million of them" deep_filters;
        short "10,000 values, or a megabyte of them, in one condition" many_values;
        short "patterns that match in many ways" patterns;
        short "pages of any size, and cursors of any kind" pages_and_cursors;
        short "2,000 searches at once, each of everything" many_searches;
        short "large answers that nobody reads" unread_answers;
        long "searches without an index, for half a minute" slow_searches;
        long "searches that are given up at once" given_up;
    }
}

/// What a search is answered.
pub(super) struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    /// Carried out, or refused with a sentence.
    pub fn said(&self) -> Verdict {
        let beginning = short(&self.body.replace('\n', " "), 120);
        match self.status {
            200 => Ok(format!("200 with {} bytes", self.body.len())),
            400 | 413 | 429 | 503 | 504 if self.body.contains("\"detail\":\"") => {
                Ok(format!("{}: {beginning}", self.status))
            }
            status => Err(format!("answered {status}: {beginning}")),
        }
    }
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).map_err(|error| format!("no connection: {error}"))?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(|error| error.to_string())?;
    stream.set_write_timeout(Some(ANSWER_LIMIT)).map_err(|error| error.to_string())?;
    Ok(stream)
}

fn request(path: &str, body: &str) -> String {
    format!(
        "POST /v2/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(super) fn search(address: &str, path: &str, body: &str) -> Result<Answer, String> {
    let mut stream = connect(address)?;
    // A body that is too large is refused before its end, and then the connection may break.
    let sent = stream.write_all(request(path, body).as_bytes());
    let mut answer = Vec::new();
    let read = (&mut stream).take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut answer);
    if answer.is_empty() {
        return Err(format!("no answer to a search of {path}: {:?} {:?}", sent.err(), read.err()));
    }
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(format!("an answer of more than {ANSWER_BYTES_MAX} bytes"));
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("no answer, but '{}'", short(&text, 80)))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answer { status: status.ok_or_else(|| format!("no status in '{head}'"))?, body: body.to_owned() })
}

/// Searches one after the other; says what the last one was answered.
fn all_said(address: &str, searches: &[(&str, String)]) -> Verdict {
    let mut said = String::new();
    for (path, body) in searches {
        let answer = search(address, path, body)?;
        said = answer.said().map_err(|wrong| format!("{path} {}: {wrong}", short(body, 60)))?;
    }
    Ok(format!("{} searches, the last: {said}", searches.len()))
}

/// Makes instances to find, and lets an attack loose on the address of the port, away from the tasks that watch.
async fn with_instances(
    victim: Victim,
    instances: usize,
    attack: impl FnOnce(&str) -> Verdict + Send + 'static,
) -> Verdict {
    let xml = ProcessBuilder::new(PROCESS).start("start").service_task("task", PROCESS).end("end").to_xml();
    victim.deploy("hostile-searched.bpmn", xml).await.map_err(|status| status.to_string())?;
    for number in 0..instances {
        let variables = format!(r#"{{"number":{number},"text":"{}b"}}"#, "a".repeat(4_000));
        if let Err(status) = victim.create(PROCESS, &variables).await {
            return refusal(&status).and(Err(format!("no instances to find: {status}")));
        }
    }
    let address = victim.addresses.rest.clone();
    let task = tokio::task::spawn_blocking(move || {
        let said = attack(&address)?;
        let began = Instant::now();
        let afterwards = loop {
            let answer = search(&address, "process-instances/search", r#"{"page":{"limit":1}}"#)?;
            // Those that were under way when the attack ended may still wait: then a client tries again, as it is told.
            if answer.status != 503 || began.elapsed() > ANSWERED_AGAIN_WITHIN {
                break answer;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        match afterwards.status {
            200 => Ok(said),
            status => Err(format!("{said}, and then a search is answered {status}: {}", short(&afterwards.body, 120))),
        }
    });
    task.await.map_err(|error| error.to_string())?
}

async fn deep_filters(victim: Victim) -> Verdict {
    with_instances(victim, 1, |address| {
        let nested = |depth: usize| {
            format!(r#"{{"filter":{}{{"state":"ACTIVE"}}{}}}"#, r#"{"$or":["#.repeat(depth), "]}".repeat(depth))
        };
        let arrays = |depth: usize| format!(r#"{{"filter":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let objects = |depth: usize| format!(r#"{{"filter":{}1{}}}"#, r#"{"state":"#.repeat(depth), "}".repeat(depth));
        let wide = |width: usize| {
            let or = vec![r#"{"state":"ACTIVE"}"#; width].join(",");
            format!(r#"{{"filter":{{"$or":[{or}]}}}}"#)
        };
        let mut searches = Vec::new();
        for depth in [1, 3, 5, 100, 100_000] {
            for body in [nested(depth), arrays(depth), objects(depth), wide(depth)] {
                searches.push(("process-instances/search", body));
            }
        }
        all_said(address, &searches)
    })
    .await
}

async fn many_values(victim: Victim) -> Verdict {
    with_instances(victim, 1, |address| {
        let values = |operator: &str, count: u64| {
            let keys: Vec<String> = (0..count).map(|key| format!(r#""{key}""#)).collect();
            format!(r#"{{"filter":{{"processInstanceKey":{{"{operator}":[{}]}}}}}}"#, keys.join(","))
        };
        let long = format!(r#"{{"filter":{{"processDefinitionId":"{}"}}}}"#, "x".repeat(1 << 20));
        let variables = |count: u64| {
            let all: Vec<String> =
                (0..count).map(|number| format!(r#"{{"name":"number","value":"{number}"}}"#)).collect();
            format!(r#"{{"filter":{{"variables":[{}]}}}}"#, all.join(","))
        };
        let mut searches = Vec::new();
        for count in [200, 201, 10_000, 100_000] {
            for body in [values("$in", count), values("$notIn", count), variables(count), long.clone()] {
                searches.push(("process-instances/search", body));
            }
        }
        all_said(address, &searches)
    })
    .await
}

async fn patterns(victim: Victim) -> Verdict {
    with_instances(victim, 50, |address| {
        let like = |pattern: &str| format!(r#"{{"filter":{{"value":{{"$like":"{pattern}"}}}}}}"#);
        let searches: Vec<_> = [
            "*a".repeat(30),
            "*a".repeat(499),
            "*a".repeat(100_000),
            "?".repeat(999),
            format!("{}c", "*a*a?".repeat(190)),
            "\\\\".repeat(400),
            "*".repeat(1_000),
        ]
        .iter()
        .map(|pattern| ("variables/search", like(pattern)))
        .collect();
        all_said(address, &searches)
    })
    .await
}

async fn pages_and_cursors(victim: Victim) -> Verdict {
    with_instances(victim, 100, |address| {
        let mut searches = Vec::new();
        for limit in ["0", "-1", "10000", "10001", "1e308", "99999999999999999999", "\"1\"", "null", "0.5"] {
            for from in ["0", "10000", "-1", "2147483647"] {
                searches.push(("variables/search", format!(r#"{{"page":{{"limit":{limit},"from":{from}}}}}"#)));
            }
        }
        for cursor in ["", "x", "AAAA", "////", "=", "\\u0000", &"A".repeat(30_000), &"A".repeat(1 << 20)] {
            for side in ["after", "before"] {
                searches.push(("process-instances/search", format!(r#"{{"page":{{"{side}":"{cursor}"}}}}"#)));
            }
        }
        let sorts = vec![r#"{"field":"startDate","order":"DESC"}"#; 10_000].join(",");
        searches.push(("process-instances/search", format!(r#"{{"sort":[{sorts}]}}"#)));
        all_said(address, &searches)
    })
    .await
}

async fn many_searches(victim: Victim) -> Verdict {
    with_instances(victim, 200, |address| {
        let everything = r#"{"filter":{"value":{"$like":"*b*"}},"sort":[{"field":"value"}],"page":{"limit":50}}"#;
        let mut clients = Vec::new();
        for _ in 0..500 {
            let address = address.to_owned();
            clients.push(std::thread::spawn(move || -> Result<[usize; 2], String> {
                let mut found = [0; 2];
                for _ in 0..4 {
                    let answer = search(&address, "variables/search", everything)?;
                    answer.said()?;
                    found[usize::from(answer.status != 200)] += 1;
                }
                Ok(found)
            }));
        }
        let mut all = [0; 2];
        for client in clients {
            let found = client.join().map_err(|_| "a client failed".to_owned())??;
            all = [all[0] + found[0], all[1] + found[1]];
        }
        Ok(format!("{} answered, {} refused for now", all[0], all[1]))
    })
    .await
}

async fn unread_answers(victim: Victim) -> Verdict {
    with_instances(victim, 300, |address| {
        let body = r#"{"page":{"limit":10000}}"#;
        let mut open = Vec::new();
        for _ in 0..100 {
            let mut stream = connect(address)?;
            stream.write_all(request("variables/search", body).as_bytes()).map_err(|error| error.to_string())?;
            open.push(stream);
        }
        std::thread::sleep(Duration::from_secs(3));
        let answer = search(address, "process-instances/search", r#"{"page":{"limit":1}}"#)?;
        Ok(format!("{} answers are not read, and one more: {}", open.len(), answer.said()?))
    })
    .await
}

/// Does the same on a few connections until a time is over.
fn for_a_while(
    address: &str,
    seconds: u64,
    act: impl Fn(&str) -> Result<(), String> + Copy + Send + 'static,
) -> Verdict {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut clients = Vec::new();
    for _ in 0..8 {
        let address = address.to_owned();
        clients.push(std::thread::spawn(move || -> Result<usize, String> {
            let mut count = 0;
            while Instant::now() < until {
                act(&address)?;
                count += 1;
            }
            Ok(count)
        }));
    }
    let mut all = 0;
    for client in clients {
        all += client.join().map_err(|_| "a client failed".to_owned())??;
    }
    Ok(format!("{all} searches in {seconds} s"))
}

async fn slow_searches(victim: Victim) -> Verdict {
    with_instances(victim, 2_000, |address| {
        for_a_while(address, 30, |address| {
            let everything = r#"{"filter":{"value":{"$like":"*c*"},"name":{"$neq":"x"}},"sort":[{"field":"value"}]}"#;
            search(address, "variables/search", everything)?.said().map(drop)
        })
    })
    .await
}

async fn given_up(victim: Victim) -> Verdict {
    with_instances(victim, 1_000, |address| {
        for_a_while(address, 15, |address| {
            let everything = r#"{"filter":{"value":{"$like":"*c*"}},"sort":[{"field":"value"}]}"#;
            let mut stream = connect(address)?;
            stream.write_all(request("variables/search", everything).as_bytes()).map_err(|error| error.to_string())
        })
    })
    .await
}
