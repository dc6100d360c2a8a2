//! What happens at the limits of a command.

use crate::support::{self, Partition};
use engine::{Engine, EngineOptions, Limits};
use model_builder::ProcessBuilder;
use protocol::*;

const ONE_TASK: &[u8] = include_bytes!("scenarios/models/one-task.bpmn");

fn partition(limits: Limits) -> Partition {
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    partition.deploy("one-task.bpmn", ONE_TASK);
    partition
}

fn create(partition: &mut Partition, bytes: usize) {
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(bytes));
    partition.create("one-task", &variables, ProcessInstanceCreationIntent::Create);
}

fn activated(output: &engine::Output) -> &JobBatchValue {
    match &output.replies[0].payload {
        Payload::JobBatch(JobBatchIntent::Activated, batch) => batch,
        other => panic!("an activation was expected, not {other:?}"),
    }
}

#[test]
fn a_job_too_large_for_a_message_is_an_incident_and_holds_nobody_up() {
    let mut partition = partition(Limits { job_bytes_max: 2_000, ..Limits::default() });
    create(&mut partition, 5_000);
    let large = partition.jobs["work"];
    create(&mut partition, 10);
    let first = partition.activate("work", 1);
    assert!(activated(&first).job_keys.is_empty());
    assert!(activated(&first).truncated, "there is more behind the job that was too large");
    let incident = first.records.iter().find_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => Some(incident),
        _ => None,
    });
    let incident = incident.expect("the job became an incident");
    assert_eq!((incident.error_type, incident.job_key), (ErrorType::MessageSizeExceeded, large));
    assert_eq!(activated(&partition.activate("work", 1)).job_keys, [partition.jobs["work"]]);

    // With a smaller variable and the incident resolved, the job is handed out.
    let scope_key = partition.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) if record.key == large => Some(job.process_instance_key),
        _ => None,
    });
    let smaller = VariableDocumentValue {
        scope_key: scope_key.expect("the job was created"),
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: "{\"text\":1}".into(),
        tenant_id: support::TENANT.into(),
    };
    partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(smaller)));
    let key = partition.incidents["work"];
    partition.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    assert_eq!(activated(&partition.activate("work", 5)).job_keys, [large]);
    partition.check();
}

#[test]
fn a_batch_of_jobs_ends_at_its_bytes_and_says_so() {
    let mut partition = partition(Limits { job_batch_bytes_max: 3_000, ..Limits::default() });
    for _ in 0..5 {
        create(&mut partition, 1_000);
    }
    let output = partition.activate("work", 5);
    let batch = activated(&output);
    assert_eq!((batch.job_keys.len(), batch.truncated), (2, true));
    assert_eq!(activated(&partition.activate("work", 5)).job_keys.len(), 2);
    let last = partition.activate("work", 5);
    assert_eq!((activated(&last).job_keys.len(), activated(&last).truncated), (1, false));
    partition.check();
}

#[test]
fn names_that_are_too_long_are_refused_and_change_nothing() {
    let mut partition = partition(Limits::default());
    let variables = format!("{{\"{}\":1}}", "n".repeat(600));
    let output = partition.create("one-task", &variables, ProcessInstanceCreationIntent::Create);
    let rejection = output.replies[0].rejection.as_ref().expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::InvalidArgument);
    assert!(rejection.reason.starts_with("Expected the names of variables to have at most 512 bytes"), "{rejection:?}");
    let instances = partition.records.iter().filter(|record| matches!(record.payload, Payload::ProcessInstance(..)));
    assert_eq!(instances.count(), 0, "nothing was created");
}

/// Puts an instance aside, as a failure of the engine would.
fn ban(partition: &mut Partition, process_instance_key: Key) {
    let value = ErrorValue {
        exception_message: "a broken invariant".into(),
        stacktrace: Text::default(),
        error_event_position: 0,
        process_instance_key,
    };
    let record = Record::event(
        partition.engine.last_position() + 1,
        partition.time,
        Key::NONE,
        Payload::Error(ErrorIntent::Created, Box::new(value)),
    );
    partition.engine.replay(&record).expect("the state is sound");
}

#[test]
fn jobs_of_a_banned_instance_neither_stay_due_nor_go_to_workers() {
    let mut partition = partition(Limits::default());
    create(&mut partition, 10);
    let activated_key = partition.jobs["work"];
    assert_eq!(activated(&partition.activate("work", 1)).job_keys, [activated_key]);
    let first = partition.instance;
    create(&mut partition, 10);
    let second = partition.instance;
    create(&mut partition, 10);
    let healthy = partition.jobs["work"];
    ban(&mut partition, first);
    ban(&mut partition, second);

    let output = partition.job(activated_key, JobIntent::Complete, JobValue::default());
    assert_eq!(output.replies[0].rejection.as_ref().expect("refused").rejection_type, RejectionType::InvalidState);
    partition.advance(60_000);
    assert_eq!(partition.engine.next_due(), None, "the time-out is done with");
    assert_eq!(activated(&partition.activate("work", 5)).job_keys, [healthy], "other instances go on");
}

#[test]
fn a_result_that_is_too_large_for_an_answer_is_told_and_the_instance_completes() {
    let mut partition = partition(Limits { result_bytes_max: 1_000, ..Limits::default() });
    let variables = |bytes: usize| format!("{{\"text\":\"{}\",\"id\":7}}", "x".repeat(bytes));
    let mut run = |bytes: usize, fetch: &[&str]| {
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: "one-task".into(),
            version: -1,
            variables: variables(bytes).into(),
            fetch_variables: fetch.iter().map(|name| Text::from(*name)).collect(),
            tenant_id: support::TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        let intent = ProcessInstanceCreationIntent::CreateWithAwaitingResult;
        partition.submit(Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)));
        let instance = partition.instance;
        let output = partition.job(partition.jobs["work"], JobIntent::Complete, JobValue::default());
        assert!(support::describe(&output).contains("PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS one-task"));
        let result = output.replies.iter().find(|reply| matches!(reply.payload, Payload::ProcessInstanceResult(..)));
        (instance, result.expect("it is answered").clone())
    };
    let (_, answered) = run(900, &[]);
    assert_eq!(answered.rejection, None);
    let (instance, refused) = run(1_000, &[]);
    let rejection = refused.rejection.expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::InvalidState);
    assert!(rejection.reason.contains(&format!("with key '{instance}', which has completed")), "{rejection:?}");
    let (_, answered) = run(1_000, &["id"]);
    assert_eq!(answered.rejection, None, "fewer variables fit");
    partition.check();
}

#[test]
fn calls_carry_variables_up_to_a_limit_in_both_directions() {
    let limits = Limits { called_variables_bytes_max: 10_000, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    let caller = ProcessBuilder::new("caller").start("start").call_activity("call", "called").end("end");
    let called = ProcessBuilder::new("called").start("start").service_task("work", "work").end("end");
    for process in [&caller, &called] {
        assert_eq!(partition.deploy("process.bpmn", process.to_xml().as_bytes()).replies[0].rejection, None);
    }
    let text = |bytes: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(bytes));
    let message = |partition: &Partition| {
        let mut incidents = partition.records.iter().filter_map(|record| match &record.payload {
            Payload::Incident(IncidentIntent::Created, incident) => Some(incident.error_message.to_string()),
            _ => None,
        });
        incidents.next_back()
    };
    partition.create("caller", &text(9_000), ProcessInstanceCreationIntent::Create);
    assert_eq!(message(&partition), None);
    partition.create("caller", &text(10_000), ProcessInstanceCreationIntent::Create);
    let into = "Expected the variables that 'call' passes to the called process to have at most 10000 bytes together";
    assert!(message(&partition).expect("an incident").starts_with(into));
    // What the called process adds makes its result too large.
    let value = JobValue { variables: text(2_000).replace("text", "more").into(), ..JobValue::default() };
    partition.job(partition.jobs["work"], JobIntent::Complete, value);
    let back = "Expected the variables of the called process 'called' to have at most 10000 bytes together";
    assert!(message(&partition).expect("an incident").starts_with(back));
    partition.check();
}

#[test]
fn a_job_ends_with_the_beginning_of_a_long_message() {
    let process = ProcessBuilder::new("p").start("start").service_task("work", "work").end("end");
    let limits = Limits { job_error_message_bytes_max: 100, incident_message_bytes_max: 1_000, ..Limits::default() };
    for intent in [JobIntent::Fail, JobIntent::ThrowError] {
        let mut partition = with_limits(limits, &[&process]);
        partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
        let value = JobValue { error_message: "ä".repeat(200).into(), error_code: "c".into(), ..JobValue::default() };
        partition.job(partition.jobs["work"], intent, value);
        let messages = partition.records.iter().filter_map(|record| match &record.payload {
            Payload::Job(JobIntent::Failed | JobIntent::ErrorThrown, job) => Some(job.error_message.to_string()),
            _ => None,
        });
        let expected = format!("{}…", "ä".repeat(50));
        assert_eq!(messages.collect::<Vec<_>>(), [&*expected]);
        let incident = incident_messages(&partition)[0];
        assert!(incident.contains(&expected) && incident.len() < 250, "{incident}");
        partition.check();
    }
}

fn incident_messages(partition: &Partition) -> Vec<&str> {
    let incidents = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => Some(incident.error_message.as_str()),
        _ => None,
    });
    incidents.collect()
}

fn with_limits(limits: Limits, processes: &[&ProcessBuilder]) -> Partition {
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    for process in processes {
        assert_eq!(partition.deploy("process.bpmn", process.to_xml().as_bytes()).replies[0].rejection, None);
    }
    partition
}

fn set_variables(partition: &mut Partition, scope_key: Key, variables: &str) -> Option<Rejection> {
    let value = VariableDocumentValue {
        scope_key,
        update_semantics: VariableDocumentUpdateSemantics::Local,
        variables: variables.into(),
        tenant_id: support::TENANT.into(),
    };
    let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
    partition.submit(Key::NONE, payload).replies[0].rejection.clone()
}

fn text_of(name: &str, bytes: usize) -> String {
    format!("{{\"{name}\":\"{}\"}}", "x".repeat(bytes))
}

#[test]
fn the_variables_of_a_root_instance_and_of_what_it_called_are_limited_together() {
    let limits = Limits { root_variable_bytes_max: 20_000, ..Limits::default() };
    let caller = ProcessBuilder::new("caller").start("start").call_activity("call", "called").end("end");
    let called = ProcessBuilder::new("called").start("start").service_task("work", "work").input("=text", "copy");
    let mut partition = with_limits(limits, &[&caller, &called.end("end")]);
    partition.create("caller", &text_of("text", 8_000), ProcessInstanceCreationIntent::Create);
    let root = partition.records.iter().find_map(|record| match &record.payload {
        Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, value) => {
            Some(value.process_instance_key)
        }
        _ => None,
    });
    let root = root.expect("it was created");
    // The text of the caller, of the called process, and the copy in the task.
    let expected = format!(
        "Expected the variables of the root process instance with key '{root}', of all that it called and of their loops to \
         have at most 20000 bytes together, but with this there are about 24"
    );
    let messages = incident_messages(&partition);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with(&expected), "{messages:?}");

    let rejection = set_variables(&mut partition, root, &text_of("more", 5_000)).expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::InvalidState);
    assert!(rejection.reason.contains("at most 20000 bytes together"), "{rejection:?}");
    assert_eq!(set_variables(&mut partition, root, &text_of("more", 1_000)), None, "less fits");
    assert_eq!(set_variables(&mut partition, root, "{\"text\":1,\"more\":2}"), None, "what is replaced does not count");
    partition.submit(partition.incidents["work"], Payload::Incident(IncidentIntent::Resolve, Box::default()));
    let output = partition.job(partition.jobs["work"], JobIntent::Complete, JobValue::default());
    assert!(support::describe(&output).contains("PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS caller"));
    partition.check();
}

#[test]
fn what_loops_collect_counts_among_the_variables_of_their_root() {
    let limits = Limits { root_variable_bytes_max: 20_000, ..Limits::default() };
    let process = ProcessBuilder::new("loop").start("start").service_task("each", "work");
    let process = process.multi_instance("=items", "item").output_collection("results", "=item").end("end");
    let mut partition = with_limits(limits, &[&process]);
    let items =
        |count: usize| format!("{{\"items\":[{}]}}", vec![format!("\"{}\"", "x".repeat(1_000)); count].join(","));
    partition.create("loop", &items(4), ProcessInstanceCreationIntent::Create);
    assert_eq!(incident_messages(&partition), [] as [&str; 0], "the list, its items, and one in each inner instance");
    partition.create("loop", &items(9), ProcessInstanceCreationIntent::Create);
    let messages = incident_messages(&partition);
    assert!(
        !messages.is_empty() && messages.iter().all(|text| text.contains("at most 20000 bytes together")),
        "{messages:?}"
    );
    partition.check();
}

/// Element instances that live.
fn living(partition: &Partition) -> usize {
    let mut living = std::collections::BTreeSet::new();
    for record in &partition.records {
        match &record.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, _) => living.insert(record.key),
            Payload::ProcessInstance(
                ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated,
                _,
            ) => living.remove(&record.key),
            _ => false,
        };
    }
    living.len()
}

/// A process that calls another one ten times at once.
fn ten_calls(id: &str, called: &str) -> ProcessBuilder {
    let mut process = ProcessBuilder::new(id).start("start").parallel_gateway("fork");
    for number in 0..10 {
        process = process.move_to("fork").call_activity(&format!("call{number}"), called).end(&format!("end{number}"));
    }
    process
}

#[test]
fn processes_that_call_each_other_stop_at_the_living_element_instances_of_their_root() {
    let limits = Limits { root_element_instances_max: 500, ..Limits::default() };
    let mut partition = with_limits(limits, &[&ten_calls("one", "two"), &ten_calls("two", "one")]);
    partition.create("one", "{}", ProcessInstanceCreationIntent::Create);
    let root = partition.records.iter().find(|record| matches!(record.payload, Payload::ProcessInstance(..)));
    let root = root.expect("it began").key;
    assert!((300..=500).contains(&living(&partition)), "{} live", living(&partition));
    let messages = incident_messages(&partition);
    let expected =
        format!("Expected the root process instance with key '{root}' and all that it called to have at most 500");
    assert!(!messages.is_empty() && messages.iter().all(|message| message.starts_with(&expected)), "{messages:?}");
    assert_eq!(partition.engine.statistics().banned_instances, 0);

    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    assert_eq!(partition.submit(root, cancel).replies[0].rejection, None);
    assert_eq!((living(&partition), partition.engine.statistics().incidents), (0, 0));
    partition.check();
}

#[test]
fn flows_and_loops_that_multiply_stop_at_the_living_element_instances_of_their_root() {
    let limits = Limits { root_element_instances_max: 100, ..Limits::default() };
    let mut forks = ProcessBuilder::new("forks").start("start").parallel_gateway("fork");
    for number in 0..20 {
        let id = format!("inner{number}");
        forks = forks.move_to("fork").parallel_gateway(&id);
        for task in 0..20 {
            forks = forks
                .move_to(&id)
                .service_task(&format!("task{number}-{task}"), "work")
                .end(&format!("end{number}-{task}"));
        }
    }
    let each = ProcessBuilder::new("loop").start("start").service_task("each", "work").multi_instance("=items", "item");
    let mut partition = with_limits(limits, &[&forks, &each.end("end")]);
    partition.create("forks", "{}", ProcessInstanceCreationIntent::Create);
    assert!(living(&partition) <= 100, "{} live", living(&partition));
    assert!(incident_messages(&partition).len() > 10);
    // What has room when others have ended continues.
    let before = incident_messages(&partition).len();
    let tasks: Vec<Key> = partition.jobs.values().copied().collect();
    for job in tasks {
        partition.job(job, JobIntent::Complete, JobValue::default());
    }
    let (gateway, _) = partition.incidents.iter().next().expect("an incident");
    let incident = partition.incidents[gateway];
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    assert_eq!(incident_messages(&partition).len(), before, "there is room for one gateway now");

    let items = |count: usize| format!("{{\"items\":[{}]}}", vec!["1"; count].join(","));
    partition.create("loop", &items(98), ProcessInstanceCreationIntent::Create);
    assert_eq!(incident_messages(&partition).len(), before, "the process, the loop and its items");
    partition.create("loop", &items(99), ProcessInstanceCreationIntent::Create);
    assert_eq!(incident_messages(&partition).len(), before + 1);
    partition.check();
}

#[test]
fn the_answers_to_one_batch_are_limited_together() {
    let limits = Limits { reply_bytes_per_batch: 3_000, ..Limits::default() };
    let mut partition = partition(limits);
    for _ in 0..4 {
        create(&mut partition, 2_000);
    }
    let value = JobBatchValue {
        job_type: "work".into(),
        worker: "worker".into(),
        timeout: 60_000,
        max_jobs_to_activate: 1,
        tenant_ids: vec![support::TENANT.into()],
        ..JobBatchValue::default()
    };
    let poll = |number| {
        let payload = Payload::JobBatch(JobBatchIntent::Activate, Box::new(value.clone()));
        Command { request: Some(Request { node: 0, number }), ..Command::new(Key::NONE, payload) }
    };
    let told = |output: &engine::Output| -> Vec<(usize, bool)> {
        let batches = output.replies.iter().map(|reply| match &reply.payload {
            Payload::JobBatch(_, batch) => (batch.jobs.len(), batch.truncated),
            other => panic!("an activation was expected, not {other:?}"),
        });
        batches.collect()
    };
    let output = partition.apply((1..=4).map(poll).collect());
    assert_eq!(told(&output), [(1, false), (1, false), (0, true), (0, true)]);
    let output = partition.apply((5..=6).map(poll).collect());
    assert_eq!(told(&output), [(1, false), (1, false)], "the next batch begins anew");
    partition.check();
}

#[test]
fn results_that_leave_together_are_limited_and_their_instances_complete() {
    let limits = Limits { reply_bytes_per_batch: 3_000, ..Limits::default() };
    let mut partition = partition(limits);
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(2_000));
        partition.create("one-task", &variables, ProcessInstanceCreationIntent::CreateWithAwaitingResult);
        jobs.push(partition.jobs["work"]);
    }
    let complete = |job: &Key| Command::new(*job, Payload::Job(JobIntent::Complete, Default::default()));
    let output = partition.apply(jobs.iter().map(complete).collect());
    let results: Vec<Option<&str>> =
        output.replies.iter().map(|reply| reply.rejection.as_ref().map(|rejection| &*rejection.reason)).collect();
    assert_eq!(results[..2], [None, None]);
    assert!(results[2].is_some_and(|reason| reason.contains("other answers have 3000 bytes already")), "{results:?}");
    let ended = support::describe(&output).matches("PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS").count();
    assert_eq!(ended, 3);
    partition.check();
}

/// How much of its work a command does depends on what its expressions read, so that must cost the same whether a long variable is
/// still in memory or lies in the file already: replicas write their checkpoints at different times.
#[test]
fn a_long_variable_costs_the_same_wherever_it_is_kept() {
    let items = "=for i in 1..60 return i";
    let builder = ProcessBuilder::new("sums").start("start").service_task("wait", "wait");
    let builder = builder.manual_task("item").multi_instance(items, "i").completion_condition("=sum(list) = -1");
    let model = builder.end("end").to_xml();
    let list: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let variables = format!("{{\"list\":[{}]}}", list.join(","));
    let run = |is_in_file: bool| {
        let directory = tempfile::tempdir().expect("a directory");
        let mut partition = Partition::new();
        partition.engine = Engine::open(support::options(), directory.path()).expect("a new state");
        partition.deploy("sums.bpmn", model.as_bytes());
        partition.create("sums", &variables, ProcessInstanceCreationIntent::Create);
        partition.activate("wait", 1);
        if is_in_file {
            let checkpoint = partition.engine.freeze().expect("none is under way");
            let written = checkpoint.write().expect("the disk takes it");
            drop(partition.engine.release(written).expect("it can be read"));
        }
        partition.job(partition.jobs["wait"], JobIntent::Complete, JobValue::default());
        let ended = partition.records.last().map(|record| (record.key, &record.payload));
        let is_process = |value: &ProcessInstanceValue| value.bpmn_element_type == BpmnElementType::Process;
        assert!(
            matches!(ended, Some((key, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)))
                if key == partition.instance && is_process(value)),
            "the instance ends: {ended:?}"
        );
        partition.records
    };
    let (in_memory, in_file) = (run(false), run(true));
    let interruptions =
        in_memory.iter().filter(|record| matches!(record.payload, Payload::Work(WorkIntent::Enqueued, _)));
    assert!(interruptions.count() > 1, "it takes more than one command");
    let first = in_memory.iter().zip(&in_file).find(|(one, other)| one != other);
    assert_eq!(first, None, "the first that differs");
    assert_eq!(in_memory.len(), in_file.len());
}
