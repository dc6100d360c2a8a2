//! User tasks, signals, ad-hoc sub-processes and compensation, each of which is much more than it should be.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use gateway_interface::{BroadcastSignalRequest, Resource};
use model_builder::{Event, ProcessBuilder};

use super::{Case, cases};
use crate::victim::{Verdict, Victim, answered, refusal};

/// Until the REST port must have answered.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// How much of a name signals and jobs may have.
const NAME_BYTES: usize = 512;
/// The answers of a search are read so far.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

pub(super) fn cases() -> Vec<Case> {
    cases! { "people, signals, choices and undoing":
        short "10,000 open user tasks in one instance" many_user_tasks;
        long "100,000 open user tasks in one instance" very_many_user_tasks;
        short "an assignee of 3 MB" long_assignee;
        short "100,000 candidates for a task" many_candidates;
        short "a client that wants 100,000 candidates" many_wanted_candidates;
        short "a form of 3.9 MB" huge_form;
        long "300 forms of 10 kB" many_forms;
        short "signals with names of 512 bytes" long_signal_names;
        short "a signal to 10,000 that wait for it" signal_to_some;
        short "10,000 elements of an ad-hoc sub-process" many_choices;
        short "10,000 inner instances that are cancelled" many_cancelled_choices;
        short "10,000 results of an ad-hoc sub-process" many_results;
        short "compensation of 10,000 activities" many_compensations;
        long "compensation inside of compensation, 60 deep" deep_compensation;
    }
}

fn started(id: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("start")
}

fn numbers(count: usize) -> String {
    format!("=for i in 1..{count} return i")
}

/// An answer of the REST port: its status and the beginning of its body.
fn ask(address: &str, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(text)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(text)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).map_err(text)?;
    // What is too long is answered before all of it is read.
    let _ = stream.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status {
        Some(status) => Ok((status, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())),
        None => Err(format!("no answer: {read:?}")),
    }
}

pub(super) async fn request(
    victim: &Victim,
    method: &'static str,
    path: String,
    body: String,
) -> Result<(u16, String), String> {
    let address = victim.addresses.rest.clone();
    let task = tokio::task::spawn_blocking(move || ask(&address, method, &path, &body));
    task.await.map_err(|error| error.to_string())?
}

/// A key that is the first of this name in an answer.
fn key_in(answer: &str, name: &str) -> Option<String> {
    let behind = answer.split(&format!("\"{name}\":\"")).nth(1)?;
    behind.split('"').next().map(str::to_owned)
}

/// Searches until there is something with a key of this name.
pub(super) async fn find_key(victim: &Victim, path: &str, filter: &str, name: &str) -> Result<String, String> {
    let mut last = String::new();
    for _ in 0..100 {
        let (status, answer) = request(victim, "POST", path.to_owned(), filter.to_owned()).await?;
        if let Some(key) = key_in(&answer, name) {
            return Ok(key);
        }
        last = format!("{status} {answer:.300}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err(format!("{path} does not find {filter}, but answers {last}"))
}

/// Neither more nor less than carried out or refused.
fn is_answered((status, body): (u16, String)) -> Verdict {
    let shown: String = body.chars().take(160).collect();
    if (200..500).contains(&status) { Ok(format!("{status} {shown}")) } else { Err(format!("{status} {shown}")) }
}

async fn user_tasks(victim: Victim, id: &str, count: usize) -> Verdict {
    let xml = started(id).user_task("task").assignee("ada").multi_instance(&numbers(count), "i").end("end").to_xml();
    let begun = victim.bears(id, xml, "{}").await?;
    let found = find_key(
        &victim,
        "/v2/user-tasks/search",
        r#"{"filter":{"state":"CREATED"},"page":{"limit":1}}"#,
        "userTaskKey",
    )
    .await?;
    let path = format!("/v2/user-tasks/{found}/completion");
    let completed = is_answered(request(&victim, "POST", path, "{}".to_owned()).await?)?;
    Ok(format!("{begun}; one is completed: {completed}"))
}

async fn many_user_tasks(victim: Victim) -> Verdict {
    user_tasks(victim, "user-tasks", 10_000).await
}

async fn very_many_user_tasks(victim: Victim) -> Verdict {
    user_tasks(victim, "many-user-tasks", 100_000).await
}

async fn long_assignee(victim: Victim) -> Verdict {
    let xml = started("assignee").user_task("task").assignee("=text").end("end").to_xml();
    victim.stops("assignee", xml, &super::text(3 << 20)).await
}

async fn many_candidates(victim: Victim) -> Verdict {
    let candidates = "=for i in 1..100000 return \"somebody \" + string(i)";
    let xml = started("candidates").user_task("task").candidate_users(candidates).end("end").to_xml();
    victim.bears("candidates", xml, "{}").await
}

async fn many_wanted_candidates(victim: Victim) -> Verdict {
    let xml = started("wanted").user_task("wanted-task").end("end").to_xml();
    victim.bears("wanted", xml, "{}").await?;
    let filter = r#"{"filter":{"elementId":"wanted-task"}}"#;
    let key = find_key(&victim, "/v2/user-tasks/search", filter, "userTaskKey").await?;
    let candidates: Vec<String> = (0..100_000).map(|number| format!("\"somebody {number}\"")).collect();
    let body = format!("{{\"changeset\":{{\"candidateUsers\":[{}]}}}}", candidates.join(","));
    let updated = is_answered(request(&victim, "PATCH", format!("/v2/user-tasks/{key}"), body).await?)?;
    let body = format!("{{\"assignee\":\"{}\"}}", "a".repeat(3 << 20));
    let path = format!("/v2/user-tasks/{key}/assignment");
    let (status, said) = request(&victim, "POST", path, body).await?;
    match status {
        400 => Ok(format!("candidates: {updated}; an assignee of 3 MiB: 400")),
        _ => Err(format!("an assignee of 3 MiB is answered {status} {said:.160}")),
    }
}

fn form(id: &str, bytes: usize) -> Resource {
    let content = format!(
        "{{\"id\":\"{id}\",\"type\":\"default\",\"schemaVersion\":16,\"components\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}",
        "x".repeat(bytes)
    );
    Resource { name: format!("{id}.form"), content: content.into_bytes().into() }
}

async fn huge_form(victim: Victim) -> Verdict {
    answered(victim.deploy_all(vec![form("huge", 3_900_000)]).await)
}

async fn many_forms(victim: Victim) -> Verdict {
    answered(victim.deploy_all((0..300).map(|number| form(&format!("form-{number}"), 10_000)).collect()).await)
}

async fn broadcast(victim: &Victim, name: &str) -> Verdict {
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000));
    let request = BroadcastSignalRequest { signal_name: name.to_owned(), variables, tenant_id: String::new() };
    match victim.client().broadcast_signal(request).await {
        Ok(_) => Ok(format!("broadcast, {}", victim.comes_to_rest().await)),
        Err(status) => refusal(&status),
    }
}

/// The longest name is one like any other; one more byte is refused or an incident.
async fn long_signal_names(victim: Victim) -> Verdict {
    let name = "s".repeat(NAME_BYTES);
    let waits = |id: &str, name: &str| started(id).catch_event("catch", Event::Signal(name)).end("end").to_xml();
    victim.deploy("longest.bpmn", waits("longest", "=text")).await.map_err(|status| status.to_string())?;
    victim.create("longest", &super::text(NAME_BYTES)).await.map_err(|status| status.to_string())?;
    let reached = broadcast(&victim, &name).await?;
    let longer = "s".repeat(NAME_BYTES + 1);
    let request = BroadcastSignalRequest { signal_name: longer, ..BroadcastSignalRequest::default() };
    match victim.client().broadcast_signal(request).await {
        Ok(_) => return Err("a signal with a name that is too long was broadcast".to_owned()),
        Err(status) => refusal(&status)?,
    };
    let before = victim.incidents();
    victim.create("longest", &super::text(NAME_BYTES + 1)).await.map_err(|status| status.to_string())?;
    victim.has_incident(before).await?;
    Ok(format!("{reached}; what waits for a longer name is an incident"))
}

async fn signal_to_some(victim: Victim) -> Verdict {
    let builder = started("listening").sub_process("each").multi_instance(&numbers(5_000), "i").start("inside");
    let builder = builder.catch_event("catch", Event::Signal("some")).end("caught").end_sub_process();
    let xml = builder.move_to("each").end("end").to_xml();
    victim.deploy("listening.bpmn", xml).await.map_err(|status| status.to_string())?;
    for _ in 0..2 {
        victim.create("listening", "{}").await.map_err(|status| status.to_string())?;
    }
    victim.comes_to_rest().await;
    broadcast(&victim, "some").await
}

/// An ad-hoc sub-process from which this task is chosen 10,000 times.
fn chosen(id: &str, has_worker: bool) -> ProcessBuilder {
    let active = "=for i in 1..10000 return \"choice\"";
    let builder =
        started(id).ad_hoc_sub_process(&format!("{id}-chosen"), active).ad_hoc_output("results", "=[text]").apart();
    if has_worker { builder.service_task("choice", "nobody") } else { builder.manual_task("choice") }
}

async fn many_choices(victim: Victim) -> Verdict {
    let active = "=for i in 1..10000 return \"choice\"";
    let builder = started("choices").ad_hoc_sub_process("chosen", active).apart().manual_task("choice");
    victim.ends("choices", builder.end_sub_process().end("end").to_xml(), "{}").await
}

async fn many_cancelled_choices(victim: Victim) -> Verdict {
    let builder = chosen("cancelled-choices", true).apart().service_task("other", "nobody");
    let xml = builder.end_sub_process().end("end").to_xml();
    victim.bears("cancelled-choices", xml, "{}").await?;
    let filter = r#"{"filter":{"elementId":"cancelled-choices-chosen","type":"AD_HOC_SUB_PROCESS"}}"#;
    let key = find_key(&victim, "/v2/element-instances/search", filter, "elementInstanceKey").await?;
    let path = format!("/v2/element-instances/ad-hoc-activities/{key}/activation");
    let body = r#"{"elements":[{"elementId":"other"}],"cancelRemainingInstances":true}"#.to_owned();
    match request(&victim, "POST", path, body).await? {
        (204, _) => Ok(format!("others were chosen instead, {}", victim.comes_to_rest().await)),
        (status, said) => Err(format!("the choice is answered {status} {said:.160}")),
    }
}

async fn many_results(victim: Victim) -> Verdict {
    let xml = chosen("choice-results", false).end_sub_process().end("end").to_xml();
    victim.bears("choice-results", xml, &super::text(1_000)).await
}

async fn many_compensations(victim: Victim) -> Verdict {
    let builder = started("undone").sub_process("each").multi_instance(&numbers(10_000), "i").start("inside");
    let builder = builder.manual_task("task").compensation("undo", "task", "handler", "nobody").end("done");
    let builder = builder.end_sub_process().move_to("each").compensation_throw("compensate").end("end");
    victim.bears("undone", builder.to_xml(), "{}").await
}

async fn deep_compensation(victim: Victim) -> Verdict {
    const DEPTH: usize = 60;
    let mut builder = started("undone-inside");
    for level in 0..DEPTH {
        builder = builder.sub_process(&format!("sub{level}")).start(&format!("start{level}"));
    }
    builder = builder.manual_task("task").compensation("undo", "task", "handler", "nobody").end("done");
    for level in (0..DEPTH).rev() {
        builder = builder.end_sub_process().compensation_throw(&format!("compensate{level}"));
        builder = builder.end(&format!("end{level}"));
    }
    victim.bears("undone-inside", builder.to_xml(), "{}").await
}
