//! What clients multiply: each of two sizes is within its limit, and a command does not do their product at once.

use crate::cluster::Cluster;
use crate::support::TENANT;
use engine::Limits;
use model_builder::ProcessBuilder;
use protocol::*;

const NUMBERS: &str = "=for i in 1..n return i";

fn activation(fetch_variables: Vec<Text>) -> Payload {
    let value = JobBatchValue {
        job_type: "work".into(),
        worker: "worker".into(),
        timeout: 1_000,
        max_jobs_to_activate: 10_000,
        tenant_ids: vec![TENANT.into()],
        fetch_variables,
        ..JobBatchValue::default()
    };
    Payload::JobBatch(JobBatchIntent::Activate, Box::new(value))
}

/// Activates until nothing is left; how many jobs came, and how often it was asked.
fn activate_all(cluster: &mut Cluster, names: &[Text]) -> (usize, usize) {
    let (mut jobs, mut times) = (0, 0);
    loop {
        let reply = cluster.submit(1, Key::NONE, activation(names.to_vec())).expect("it is answered at once");
        let Payload::JobBatch(_, batch) = reply.payload else { panic!("{:?}", reply.payload) };
        times += 1;
        jobs += batch.jobs.len();
        if !batch.truncated {
            return (jobs, times);
        }
    }
}

fn with_jobs(limits: Limits, variables: &str) -> Cluster {
    let mut cluster = Cluster::with_limits(1, limits);
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").multi_instance(NUMBERS, "i");
    cluster.deploy(&builder.end("e").to_xml());
    cluster.create(1, "p", variables);
    cluster.nodes[0].steps_max = 0;
    cluster
}

#[test]
fn jobs_that_see_much_more_than_a_job_may_have_are_told_apart_in_parts() {
    const JOBS: usize = 300;
    let limits = Limits { job_bytes_max: 100_000, ..Limits::default() };
    let entries: Vec<String> = (0..500).map(|number| format!("\"v{number}\":\"{}\"", "x".repeat(1_000))).collect();
    let mut cluster = with_jobs(limits, &format!("{{\"n\":{JOBS},{}}}", entries.join(",")));
    let (jobs, times) = activate_all(&mut cluster, &[]);
    assert_eq!((jobs, cluster.count("INCIDENT", "CREATED")), (0, JOBS));
    assert!(times > 1, "the jobs of one activation saw {} MB", JOBS * 500 / 1_000);
    assert!(cluster.nodes[0].steps_max < limits.evaluation_steps_per_command * 5 / 4);
}

#[test]
fn many_names_of_variables_for_many_jobs_are_looked_for_in_parts_and_each_once() {
    const JOBS: usize = 500;
    let limits = Limits::default();
    let mut cluster = with_jobs(limits, &format!("{{\"n\":{JOBS}}}"));
    let names: Vec<Text> = (0..2_000).map(|number| format!("v{number}").into()).collect();
    let (jobs, times) = activate_all(&mut cluster, &names);
    assert_eq!(jobs, JOBS);
    assert!(times > 1 && cluster.nodes[0].steps_max < limits.evaluation_steps_per_command * 5 / 4);

    let mut cluster = with_jobs(limits, "{\"n\":1,\"x\":7}");
    let reply = cluster.submit(1, Key::NONE, activation(vec!["x".into(), "i".into(), "x".into()])).expect("an answer");
    let Payload::JobBatch(_, batch) = reply.payload else { panic!("{:?}", reply.payload) };
    assert_eq!(batch.jobs[0].variables, *"{\"x\":7,\"i\":1}", "a name that is wanted twice comes once");
}

/// A stream has credit for all that wait: it gets them in parts, and none is forgotten.
#[test]
fn a_stream_gets_many_jobs_with_many_names_in_parts() {
    const JOBS: usize = 400;
    let limits = Limits::default();
    let mut cluster = with_jobs(limits, &format!("{{\"n\":{JOBS}}}"));
    let value = JobStreamValue {
        stream: StreamId { node: 0, number: 1 },
        job_type: "work".into(),
        worker: "worker".into(),
        timeout: 1_000,
        tenant_ids: vec![TENANT.into()],
        fetch_variables: (0..2_000).map(|number| format!("v{number}").into()).collect(),
        granted: JobAmount { jobs: 10_000, bytes: 64 << 20 },
        ..JobStreamValue::default()
    };
    cluster.submit(1, Key::NONE, Payload::JobStream(JobStreamIntent::Add, Box::new(value)));
    let batches = cluster.events().filter_map(|record| match &record.payload {
        Payload::JobBatch(JobBatchIntent::Activated, batch) => Some(batch.job_keys.len()),
        _ => None,
    });
    let batches: Vec<usize> = batches.collect();
    assert_eq!(batches.iter().sum::<usize>(), JOBS);
    assert!(batches.len() > 1 && cluster.nodes[0].steps_max < limits.evaluation_steps_per_command * 5 / 4);
    cluster.check();
}

#[test]
fn many_variables_that_are_looked_for_in_many_scopes_are_refused() {
    const LEVELS: usize = 10;
    let limits = Limits { variable_looks_max: 9_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let mut builder = ProcessBuilder::new("p").start("s");
    for level in 0..LEVELS {
        builder = builder.sub_process(&format!("sub{level}")).input("=x", &format!("level{level}"));
        builder = builder.start(&format!("start{level}"));
    }
    builder = builder.service_task("t", "work");
    for level in 0..LEVELS {
        builder = builder.end(&format!("end{level}")).end_sub_process();
    }
    cluster.deploy(&builder.end("e").to_xml());
    cluster.create(1, "p", "{\"x\":1}");
    let innermost = cluster.events().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) => Some(job.element_instance_key),
        _ => None,
    });
    let update = |count: usize| {
        let entries: Vec<String> = (0..count).map(|number| format!("\"v{number}\":1")).collect();
        let value = VariableDocumentValue {
            scope_key: innermost.expect("there is a job"),
            update_semantics: VariableDocumentUpdateSemantics::Propagate,
            variables: format!("{{{}}}", entries.join(",")).into(),
            tenant_id: TENANT.into(),
        };
        Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
    };
    let refused = cluster.submit(1, Key::NONE, update(1_000)).expect("an answer").rejection.expect("it is too much");
    assert_eq!(
        &*refused.reason,
        "Expected to look for variables in at most 9000 places, but each of 1000 variables is looked for in 11 scopes. Set fewer \
         variables at once, or set them in an outer scope."
    );
    assert_eq!(cluster.submit(1, Key::NONE, update(999)).expect("an answer").rejection, None);
    cluster.check();
}

#[test]
fn a_move_of_many_with_large_variables_is_refused_before_they_are_copied() {
    let mut cluster = Cluster::new(1);
    let builder = ProcessBuilder::new("p").start("s").sub_process("each").multi_instance(NUMBERS, "i");
    let builder = builder.start("is").service_task("t", "work").end("e").end_sub_process().end("end");
    cluster.deploy(&builder.to_xml());
    let process_instance_key = cluster.create(1, "p", "{\"n\":100}");
    let of_scope = ModificationVariableInstruction {
        variables: format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20)).into(),
        ..ModificationVariableInstruction::default()
    };
    let instruction = ModificationMoveInstruction {
        source_element_id: "t".into(),
        target_element_id: "e".into(),
        infer_ancestor_scope: true,
        variable_instructions: vec![of_scope],
        ..ModificationMoveInstruction::default()
    };
    let value = ProcessInstanceModificationValue {
        process_instance_key,
        move_instructions: vec![instruction],
        ..ProcessInstanceModificationValue::default()
    };
    let payload = Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value));
    let refused = cluster.submit(1, Key::NONE, payload).expect("an answer").rejection.expect("it is too much");
    assert_eq!(
        &*refused.reason,
        "Expected to modify instance of process 'p' but it sets variables of more than 33554432 bytes together, because what moves \
         an element does so for each of its instances. Set fewer variables, or set them in a scope around"
    );
    assert_eq!(cluster.count("PROCESS_INSTANCE", "ELEMENT_TERMINATED"), 0, "nothing has changed");
    cluster.check();
}

/// Scopes without variables are passed once for a whole document, and do not count as places to look in.
#[test]
fn many_variables_are_found_through_scopes_without_any() {
    const LEVELS: usize = 50;
    const VARIABLES: usize = 5_000;
    let limits = Limits { variable_looks_max: 2 * VARIABLES, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    let mut builder = ProcessBuilder::new("p").start("s");
    for level in 0..LEVELS {
        builder = builder.sub_process(&format!("sub{level}"));
        if level == 25 {
            builder = builder.input("=x", "v7");
        }
        builder = builder.start(&format!("start{level}"));
    }
    builder = builder.service_task("t", "work");
    for level in 0..LEVELS {
        builder = builder.end(&format!("end{level}")).end_sub_process();
    }
    cluster.deploy(&builder.end("e").to_xml());
    cluster.create(1, "p", "{\"x\":1}");
    let records: Vec<Payload> = cluster.events().map(|record| record.payload.clone()).collect();
    let innermost = records.iter().find_map(|payload| match payload {
        Payload::Job(JobIntent::Created, job) => Some(job.element_instance_key),
        _ => None,
    });
    let of_v7 = |payload: &Payload| match payload {
        Payload::Variable(VariableIntent::Created, variable) if &*variable.name == "v7" => Some(variable.scope_key),
        _ => None,
    };
    let middle = records.iter().find_map(of_v7).expect("the input mapping gives it");
    let entries: Vec<String> = (0..VARIABLES).map(|number| format!("\"v{number}\":2")).collect();
    let value = VariableDocumentValue {
        scope_key: innermost.expect("there is a job"),
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: format!("{{{}}}", entries.join(",")).into(),
        tenant_id: TENANT.into(),
    };
    cluster.nodes[0].steps_max = 0;
    let update = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
    assert_eq!(cluster.submit(1, Key::NONE, update).expect("an answer").rejection, None);
    let set = cluster.events().skip(records.len()).filter_map(|record| match &record.payload {
        Payload::Variable(intent, variable) => Some((*intent, variable.scope_key == middle, variable.name.clone())),
        _ => None,
    });
    let set: Vec<(VariableIntent, bool, Text)> = set.collect();
    assert_eq!(set.len(), VARIABLES);
    for (intent, is_middle, name) in &set {
        let is_v7 = &**name == "v7";
        let expected = if is_v7 { VariableIntent::Updated } else { VariableIntent::Created };
        assert_eq!((*intent, *is_middle), (expected, is_v7), "{name}");
    }
    let looks = cluster.nodes[0].steps_max / 25;
    assert!(looks >= 2 * VARIABLES as u64 && looks < 3 * VARIABLES as u64, "{looks} looks");
    cluster.check();
}
