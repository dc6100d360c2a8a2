//! Searches that multiply limits: many patterns and large values, all statistics and large messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gateway_interface::FailJobRequest;
use model_builder::ProcessBuilder;

use super::searches::search;
use super::{Case, cases, data, text};
use crate::victim::{Verdict, Victim, answered};

/// A search is answered or refused by then, whatever others search: five seconds, and a second to write the answer.
const SAID_WITHIN: Duration = Duration::from_secs(6);
/// A search by key next to them takes no longer, but for one in a hundred.
const KEY_P99_MAX: Duration = Duration::from_millis(50);
/// Statistics take no longer either; their answers have at most 16 MiB, which the search checks.
const CLIENTS: usize = 8;
const FAILED_JOBS: usize = 100;
const MESSAGE_BYTES: usize = 3 << 20;

pub(super) fn cases() -> Vec<Case> {
    cases! { "dear searches":
        short "65 patterns of 1,000 characters on values of 4 MiB, by eight clients" patterns_and_values;
        short "all statistics of jobs that failed with messages of 3 MiB" statistics_and_messages;
    }
}

/// A pattern of nearly 1,000 bytes, made of a beginning, what is repeated, and an end.
const PATTERNS: [(&str, &str, &str); 6] =
    [("*", "x", "y*"), ("*", "x?", "y*"), ("*", "?", "y*"), ("*", "x*", "y"), ("*", "?x*", "y"), ("?*", "*?x?", "y*")];

/// Alternatives of patterns like this, each another one.
fn alternatives((begin, repeated, end): (&str, &str, &str)) -> String {
    let groups: Vec<String> = (0..65)
        .map(|number| {
            let pattern = format!("{begin}{}{number}{end}", repeated.repeat(990 / repeated.len()));
            format!(r#"{{"value":{{"$like":"{pattern}"}}}}"#)
        })
        .collect();
    format!(r#"{{"filter":{{"$or":[{}]}}}}"#, groups.join(","))
}

async fn patterns_and_values(victim: Victim) -> Verdict {
    let id = "hostile-large-values";
    let xml = ProcessBuilder::new(id).start("start").service_task("task", id).end("end").to_xml();
    victim.deploy("large-values.bpmn", xml).await.map_err(|status| status.to_string())?;
    let mut key = 0;
    for _ in 0..3 {
        key = victim.create(id, &text(4_000_000)).await.map_err(|status| status.to_string())?;
    }
    let address = victim.addresses.rest.clone();
    let task = tokio::task::spawn_blocking(move || {
        let (mut clients, is_over) = (Vec::new(), Arc::new(AtomicBool::new(false)));
        for client in 0..CLIENTS {
            let address = address.clone();
            clients.push(std::thread::spawn(move || -> Result<[usize; 2], String> {
                let mut said = [0; 2];
                for pattern in PATTERNS.iter().cycle().skip(client).take(PATTERNS.len()) {
                    let begin = Instant::now();
                    let answer = search(&address, "variables/search", &alternatives(*pattern))?;
                    answer.said()?;
                    let taken = begin.elapsed();
                    if taken > SAID_WITHIN {
                        return Err(format!("{pattern:?} was answered {} after {taken:?}", answer.status));
                    }
                    said[usize::from(answer.status != 200)] += 1;
                }
                Ok(said)
            }));
        }
        let by_key = {
            let (address, is_over) = (address.clone(), is_over.clone());
            std::thread::spawn(move || p99_of_searches_by_key(&address, key, &is_over))
        };
        let said: Vec<_> = clients.into_iter().map(std::thread::JoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        let p99 = by_key.join().map_err(|_| "a client failed".to_owned())??;
        let mut all = [0; 2];
        for of in said {
            let of = of.map_err(|_| "a client failed".to_owned())??;
            all = [all[0] + of[0], all[1] + of[1]];
        }
        let said = format!("{} answered, {} refused; a search by key p99 {p99:?}", all[0], all[1]);
        if p99 > KEY_P99_MAX { Err(said) } else { Ok(said) }
    });
    task.await.map_err(|error| error.to_string())?
}

/// How long it takes to look for an instance by its key, until others have ended.
fn p99_of_searches_by_key(address: &str, key: i64, is_over: &AtomicBool) -> Result<Duration, String> {
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) || times.is_empty() {
        let begin = Instant::now();
        let body = format!(r#"{{"filter":{{"processInstanceKey":"{key}"}}}}"#);
        let answer = search(address, "process-instances/search", &body)?;
        if answer.status != 200 {
            return Err(format!("a search by key was answered {}: {}", answer.status, answer.body));
        }
        times.push(begin.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    times.sort_unstable();
    Ok(times[times.len() * 99 / 100])
}

const PERIOD: &str = r#""from":"2020-01-01T00:00:00Z","to":"2120-01-01T00:00:00Z""#;
const STATISTICS: [(&str, &str); 7] = [
    ("jobs/statistics/errors", r#","jobType":"hostile-failing""#),
    ("jobs/statistics/by-types", ""),
    ("jobs/statistics/by-workers", r#","jobType":"hostile-failing""#),
    ("jobs/statistics/time-series", r#","jobType":"hostile-failing""#),
    ("incidents/statistics/process-instances-by-error", ""),
    ("process-definitions/statistics/process-instances", ""),
    ("process-definitions/statistics/message-subscriptions", ""),
];

async fn statistics_and_messages(victim: Victim) -> Verdict {
    let id = "hostile-failing";
    let xml = ProcessBuilder::new(id).start("start").service_task("task", id).end("end").to_xml();
    victim.deploy("failing.bpmn", xml).await.map_err(|status| status.to_string())?;
    for number in 0..FAILED_JOBS {
        victim.create(id, "{}").await.map_err(|status| status.to_string())?;
        let jobs = data::activate(&victim, id, 1).await.map_err(|status| status.to_string())?;
        let Some(job) = jobs.first() else { return Err("there is no job".to_owned()) };
        let error_message = format!("{number}{}", "x".repeat(MESSAGE_BYTES));
        let request = FailJobRequest { job_key: job.key, error_message, ..FailJobRequest::default() };
        answered(victim.client().fail_job(request).await)?;
    }
    let address = victim.addresses.rest.clone();
    let task = tokio::task::spawn_blocking(move || {
        let mut longest = 0;
        for (path, more) in STATISTICS {
            let pages = ["", r#","page":{"limit":10000}"#, r#","page":{"limit":9999,"from":1}"#];
            for page in pages {
                let filter =
                    if path.starts_with("jobs") { format!(r#""filter":{{{PERIOD}{more}}}"#) } else { String::new() };
                let body = format!("{{{}}}", [filter.as_str(), page].concat().trim_start_matches(','));
                let answer = search(&address, path, &body)?;
                answer.said().map_err(|wrong| format!("{path} {body}: {wrong}"))?;
                longest = longest.max(answer.body.len());
            }
        }
        Ok(format!("the longest of all answers has {longest} bytes"))
    });
    task.await.map_err(|error| error.to_string())?
}
