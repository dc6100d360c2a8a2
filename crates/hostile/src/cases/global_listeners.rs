//! Listeners of the user tasks of all processes: as many as there can be, that never answer, that change all the time, and what is
//! none.

use gateway_interface::{CancelProcessInstanceRequest, CompleteJobRequest};
use model_builder::ProcessBuilder;

use super::data::activate;
use super::people::{find_key, request};
use super::{Case, cases};
use crate::victim::{Verdict, Victim, answered};

const PATH: &str = "/v2/global-task-listeners";
/// As many as there can be.
const LISTENERS_MAX: usize = 100;
/// The longest type of jobs.
const TYPE_BYTES: usize = 512;
/// How often the listeners change while tasks wait for them.
const CHANGES: usize = 300;
/// Jobs that a worker takes at once.
const JOBS_AT_ONCE: i32 = 100;

pub(super) fn cases() -> Vec<Case> {
    cases! { "listeners of all user tasks":
        short "100 global listeners that never answer, to 10,000 tasks" endless_global_listeners;
        short "100 global listeners that all answer, to 5 tasks" patient_global_listeners;
        short "100 global listeners that change 300 times, with a task that waits each time" changed_global_listeners;
        short "what is no global listener" wrong_global_listeners;
    }
}

/// The type of the jobs of a listener of a case, as long as it may be. Those of another case may wait for ever.
fn job_type(of: &str, number: usize) -> String {
    format!("{of}{number:0>width$}", width = TYPE_BYTES - of.len())
}

/// A listener to everything, with a type of its own.
fn listener(of: &str, number: usize, priority: usize) -> (String, String) {
    let job_type = job_type(of, number);
    let id = format!("{number:~>256}");
    let described = format!(r#""type":"{job_type}","eventTypes":["all"],"retries":2147483647,"priority":{priority}"#);
    (id, described)
}

async fn create(victim: &Victim, of: &str, number: usize) -> Result<(u16, String), String> {
    let (id, described) = listener(of, number, number);
    request(victim, "POST", PATH.to_owned(), format!(r#"{{"id":"{id}",{described}}}"#)).await
}

/// As many as there can be; one more is refused.
async fn create_all(victim: &Victim, of: &str) -> Verdict {
    for number in 0..LISTENERS_MAX {
        let (status, said) = create(victim, of, number).await?;
        if status != 201 {
            return Err(format!("listener {number} is answered {status} {said:.160}"));
        }
    }
    match create(victim, of, LISTENERS_MAX).await? {
        (409, said) => Ok(format!("one more is refused: {said:.160}")),
        (status, said) => Err(format!("one listener too many is answered {status} {said:.160}")),
    }
}

/// They would listen to the tasks of all other cases.
async fn delete_all(victim: &Victim) -> Verdict {
    for number in 0..=LISTENERS_MAX {
        let (id, _) = listener("", number, number);
        let (status, said) = request(victim, "DELETE", format!("{PATH}/{id}"), String::new()).await?;
        if !matches!(status, 204 | 404) {
            return Err(format!("the deletion of listener {number} is answered {status} {said:.160}"));
        }
    }
    Ok("deleted".to_owned())
}

/// What was done among them, and that they are gone afterwards.
async fn among_listeners(victim: Victim, of: &str, outcome: impl AsyncFnOnce(&Victim) -> Verdict) -> Verdict {
    // Those of a case that had no time to delete them are in the way.
    delete_all(&victim).await?;
    let created = create_all(&victim, of).await;
    let done = if created.is_ok() { outcome(&victim).await } else { created.clone() };
    let deleted = delete_all(&victim).await;
    Ok(format!("{}; {}; {}", done?, created?, deleted?))
}

fn tasks(id: &str, count: usize) -> String {
    let builder = ProcessBuilder::new(id).start("start").user_task(&format!("{id}-task")).assignee("ada");
    builder.multi_instance(&format!("=for i in 1..{count} return i"), "i").end("end").to_xml()
}

async fn begin(victim: &Victim, id: &str) -> Result<i64, String> {
    victim.create(id, "{}").await.map_err(|status| status.to_string())
}

/// The end of the instance waits for all of them, and others do not notice.
async fn endless_global_listeners(victim: Victim) -> Verdict {
    among_listeners(victim, "endless", async |victim| {
        let begun = victim.bears("globally-listened", tasks("globally-listened", 10_000), "{}").await?;
        let process_instance_key = begin(victim, "globally-listened").await?;
        let cancellation =
            CancelProcessInstanceRequest { process_instance_key, ..CancelProcessInstanceRequest::default() };
        let canceled = answered(victim.client().cancel_process_instance(cancellation).await)?;
        Ok(format!("{begun}; canceled: {canceled}, {}", victim.comes_to_rest().await))
    })
    .await
}

/// Each of them is asked of each task, one after the other, those with a higher priority first.
async fn patient_global_listeners(victim: Victim) -> Verdict {
    const TASKS: usize = 5;
    among_listeners(victim, "patient", async |victim| {
        let id = "patiently-listened";
        victim.deploy(&format!("{id}.bpmn"), tasks(id, TASKS)).await.map_err(|status| status.to_string())?;
        begin(victim, id).await?;
        let mut done = 0;
        for number in (0..LISTENERS_MAX).rev() {
            done += complete(victim, number, TASKS).await?;
        }
        let filter = format!(r#"{{"filter":{{"elementId":"{id}-task","state":"ASSIGNING"}},"page":{{"limit":1}}}}"#);
        find_key(victim, "/v2/user-tasks/search", &filter, "userTaskKey").await?;
        Ok(format!("{done} jobs, then the tasks are assigned"))
    })
    .await
}

/// Completes so many jobs of a listener, as they come.
async fn complete(victim: &Victim, number: usize, count: usize) -> Result<usize, String> {
    let text = |status: tonic::Status| format!("listener {number}: {status}");
    let (job_type, mut done) = (job_type("patient", number), 0);
    while done < count {
        for job in activate(victim, &job_type, JOBS_AT_ONCE).await.map_err(text)? {
            let completion = CompleteJobRequest { job_key: job.key, ..CompleteJobRequest::default() };
            victim.client().complete_job(completion).await.map_err(text)?;
            done += 1;
        }
    }
    Ok(done)
}

/// Each time all listeners are kept as long as the task goes by them.
async fn changed_global_listeners(victim: Victim) -> Verdict {
    among_listeners(victim, "changed", async |victim| {
        let id = "changing";
        victim.deploy(&format!("{id}.bpmn"), tasks(id, 1)).await.map_err(|status| status.to_string())?;
        for change in 0..CHANGES {
            begin(victim, id).await?;
            let (id, described) = listener("changed", change % LISTENERS_MAX, change);
            let body = format!("{{{described}}}");
            let (status, said) = request(victim, "PUT", format!("{PATH}/{id}"), body).await?;
            if status != 200 {
                return Err(format!("change {change} is answered {status} {said:.160}"));
            }
        }
        Ok(format!("{CHANGES} changes, {}", victim.comes_to_rest().await))
    })
    .await
}

/// Each is refused, and nothing is there afterwards.
async fn wrong_global_listeners(victim: Victim) -> Verdict {
    let long = "x".repeat(3 << 20);
    let of = |id: &str, rest: &str| format!(r#"{{"id":"{id}","type":"t","eventTypes":["all"]{rest}}}"#);
    let bodies = [
        of(&long, ""),
        of(&"x".repeat(257), ""),
        of("a/../b", ""),
        of("\\u0000", ""),
        of(" ", ""),
        of("a", r#","retries":2147483648"#),
        of("a", r#","retries":-2147483648"#),
        of("a", r#","priority":1e99"#),
        of("a", r#","priority":9223372036854775807"#),
        of("a", r#","afterNonGlobal":"yes""#),
        of("a", r#","id":"b","id":"c","configKey":1"#),
        format!(r#"{{"id":"a","type":"{long}","eventTypes":["all"]}}"#),
        format!(r#"{{"id":"a","type":"{}","eventTypes":["all"]}}"#, "x".repeat(TYPE_BYTES + 1)),
        format!(r#"{{"id":"a","type":"t","eventTypes":[{}"done"]}}"#, r#""all","#.repeat(300_000)),
        format!(r#"{{"id":"a","type":"t","eventTypes":["{long}"]}}"#),
        format!(r#"{{"id":"a","type":"t","eventTypes":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        r#"{"id":"a","type":"t","eventTypes":[]}"#.to_owned(),
        r#"{"id":"a","type":"t","eventTypes":"all"}"#.to_owned(),
        "[]".to_owned(),
        String::new(),
    ];
    let mut refused = 0;
    for body in bodies {
        refused += is_refused(&victim, ("POST", PATH.to_owned(), body)).await?;
    }
    let described = r#"{"type":"t","eventTypes":["all"]}"#;
    for path in ["%", "%zz", "%00", "%ff%fe", "nobody", &"%61".repeat(257)].map(|id| format!("{PATH}/{id}")) {
        for (method, body) in [("PUT", described), ("DELETE", ""), ("GET", "")] {
            refused += is_refused(&victim, (method, path.clone(), body.to_owned())).await?;
        }
    }
    for filter in [
        format!(r#"{{"id":"{long}{long}"}}"#),
        r#"{"eventTypes":["done"]}"#.to_owned(),
        r#"{"retries":{"$in":"all"}}"#.to_owned(),
        r#"{"nobody":1}"#.to_owned(),
    ] {
        let search = format!(r#"{{"filter":{filter}}}"#);
        refused += is_refused(&victim, ("POST", format!("{PATH}/search"), search)).await?;
    }
    let (_, found) = request(&victim, "POST", format!("{PATH}/search"), "{}".to_owned()).await?;
    match found.contains(r#""items":[]"#) {
        true => Ok(format!("{refused} refused")),
        false => Err(format!("there is one nevertheless: {found:.300}")),
    }
}

/// Refused with a reason.
async fn is_refused(victim: &Victim, (method, path, body): (&'static str, String, String)) -> Result<usize, String> {
    let what = format!("{method} {path:.80} {body:.80}");
    match request(victim, method, path, body).await? {
        (400..500, said) if said.contains("\"detail\":") || said.is_empty() => Ok(1),
        (status, said) => Err(format!("{what} is answered {status} {said:.160}")),
    }
}
