//! Scenarios as data: each file in `tests/scenarios` holds steps (lines that start with `> `) and what must happen after
//! each. `UPDATE_EXPECTATIONS=1 cargo test -p engine --test scenarios` writes what happens now into the files; the
//! difference is then to be read.

use std::path::Path;
use std::sync::Arc;

use crate::support::{self, Partition, describe};
use engine::Output;
use protocol::*;

#[test]
fn scenarios() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .expect("scenarios")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are scenarios");
    let update = std::env::var_os("UPDATE_EXPECTATIONS").is_some();
    let mut failures = Vec::new();
    for file in &files {
        let expected = std::fs::read_to_string(file).expect("readable scenario");
        let actual = run(&directory, &expected);
        if actual != expected {
            if update {
                std::fs::write(file, &actual).expect("writable scenario");
            } else {
                failures.push(format!("{}:\n{}", file.display(), difference(&expected, &actual)));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} scenarios differ:\n{}", failures.len(), files.len(), failures.join("\n"));
}

/// Runs the steps of a scenario and answers the file as it should be.
fn run(directory: &Path, scenario: &str) -> String {
    let mut partition = Partition::new();
    let mut actual = String::new();
    for line in scenario.lines() {
        if let Some(step) = line.strip_prefix("> ") {
            let output = take(&mut partition, directory, step);
            actual.push_str(line);
            actual.push('\n');
            actual.push_str(&describe(&output));
        } else if line.starts_with('#') || line.is_empty() {
            actual.push_str(line);
            actual.push('\n');
        }
    }
    partition.check();
    actual
}

fn take(partition: &mut Partition, directory: &Path, step: &str) -> Output {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    let mut words = rest.splitn(2, ' ');
    let first = words.next().unwrap_or("");
    let second = words.next().unwrap_or("");
    let job = |partition: &Partition| *partition.jobs.get(first).unwrap_or(&Key::new(PartitionId(1), 999_999));
    match verb {
        "deploy" => {
            let content = std::fs::read(directory.join("models").join(first)).expect("model");
            partition.deploy(first, &content)
        }
        "create" => partition.create(first, second, ProcessInstanceCreationIntent::Create),
        "create-with-result" => {
            partition.create(first, second, ProcessInstanceCreationIntent::CreateWithAwaitingResult)
        }
        "activate" => partition.activate(first, second.parse().unwrap_or(10)),
        "stream" => partition.stream(
            number(first),
            second.split(' ').next().unwrap_or(""),
            last_number(second),
            JobStreamIntent::Add,
        ),
        "grant" => partition.stream(number(first), "", last_number(second), JobStreamIntent::Grant),
        "remove-stream" => partition.stream(number(first), "", 0, JobStreamIntent::Remove),
        "complete" => {
            let key = job(partition);
            partition.job(key, JobIntent::Complete, JobValue { variables: second.into(), ..JobValue::default() })
        }
        "fail" => {
            let key = job(partition);
            let mut parts = second.splitn(3, ' ');
            let value = JobValue {
                retries: parts.next().map_or(0, |retries| retries.parse().expect("retries")),
                retry_backoff: parts.next().map_or(0, |backoff| backoff.parse().expect("back-off")),
                error_message: parts.next().unwrap_or("").into(),
                ..JobValue::default()
            };
            partition.job(key, JobIntent::Fail, value)
        }
        "throw" => {
            let key = job(partition);
            partition.job(key, JobIntent::ThrowError, JobValue { error_code: second.into(), ..JobValue::default() })
        }
        "retries" => {
            let key = job(partition);
            let retries = second.parse().expect("retries");
            partition.job(key, JobIntent::UpdateRetries, JobValue { retries, ..JobValue::default() })
        }
        "timeout" => {
            let key = job(partition);
            let timeout = second.parse().expect("milliseconds");
            partition.job(key, JobIntent::UpdateTimeout, JobValue { timeout, ..JobValue::default() })
        }
        "yield" => {
            let key = job(partition);
            partition.job(key, JobIntent::Yield, JobValue::default())
        }
        "resolve" => {
            let key = *partition.incidents.get(first).unwrap_or(&Key::new(PartitionId(1), 999_999));
            partition.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()))
        }
        "cancel" => {
            let key = if first.is_empty() { partition.instance } else { partition.elements[first] };
            partition.submit(key, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default()))
        }
        "set" | "set-local" => {
            let scope_key = *partition.elements.get(first).unwrap_or(&Key::new(PartitionId(1), 999_999));
            let update_semantics = if verb == "set" {
                VariableDocumentUpdateSemantics::Propagate
            } else {
                VariableDocumentUpdateSemantics::Local
            };
            let value = VariableDocumentValue {
                scope_key,
                update_semantics,
                variables: second.into(),
                tenant_id: support::TENANT.into(),
            };
            partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)))
        }
        "evaluate" => {
            let value = ConditionalEvaluationValue {
                variables: format!("{first} {second}").trim().into(),
                tenant_id: support::TENANT.into(),
                ..ConditionalEvaluationValue::default()
            };
            let intent = ConditionalEvaluationIntent::Evaluate;
            partition.submit(Key::NONE, Payload::ConditionalEvaluation(intent, Box::new(value)))
        }
        "assign" => {
            let value = UserTaskValue { assignee: second.into(), ..UserTaskValue::default() };
            user_task(partition, first, UserTaskIntent::Assign, value)
        }
        "finish-task" => user_task(partition, first, UserTaskIntent::Complete, UserTaskValue::default()),
        "listener" => listener(partition, first, second),
        "wait" => partition.advance(first.parse().expect("milliseconds")),
        other => panic!("'{other}' is no step"),
    }
}

fn user_task(partition: &mut Partition, element: &str, intent: UserTaskIntent, value: UserTaskValue) -> Output {
    let created = partition.records.iter().rev().find(|record| {
        matches!(&record.payload, Payload::UserTask(UserTaskIntent::Creating, task) if &*task.element_id == element)
    });
    let key = created.expect("a user task").key;
    partition.submit(key, Payload::UserTask(intent, Box::new(value)))
}

/// A change of a global listener: its id, which is its job type too, its event types, and what is not as usual.
fn listener(partition: &mut Partition, verb: &str, words: &str) -> Output {
    let mut words = words.split(' ');
    let id = words.next().unwrap_or("");
    let events = words.next().into_iter().flat_map(|events| events.split(','));
    let event_type = |name: &str| GlobalListenerEventType::EVERY.into_iter().find(|of| of.name() == name);
    let mut value = GlobalListenerValue {
        id: id.into(),
        job_type: id.into(),
        event_types: events.map(|name| event_type(name).expect("an event type")).collect(),
        ..GlobalListenerValue::default()
    };
    for word in words {
        match word.split_once('=') {
            Some(("priority", priority)) => value.priority = priority.parse().expect("a number"),
            _ => value.after_non_global = word == "after",
        }
    }
    let intent = match verb {
        "create" => GlobalListenerIntent::Create,
        "update" => GlobalListenerIntent::Update,
        _ => GlobalListenerIntent::Delete,
    };
    partition.submit(Key::NONE, Payload::GlobalListener(intent, Box::new(value)))
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn last_number(text: &str) -> u32 {
    text.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number at the end")
}

fn difference(expected: &str, actual: &str) -> String {
    let line = expected.lines().zip(actual.lines()).take_while(|(left, right)| left == right).count();
    let show = |text: &str| text.lines().skip(line.saturating_sub(3)).take(12).collect::<Vec<_>>().join("\n    ");
    format!("  from line {}:\n  expected\n    {}\n  but happened\n    {}", line + 1, show(expected), show(actual))
}
