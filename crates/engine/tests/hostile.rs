//! Models and variables that would take all time, all memory or all disk end with a reason, and others continue.

mod support;

use std::time::{Duration, Instant};

use engine::{EngineOptions, Limits, Output};
use model_builder::{Event, ProcessBuilder};
use protocol::*;
use support::Partition;

fn partition(limits: Limits) -> Partition {
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    let healthy = ProcessBuilder::new("healthy").start("start").service_task("healthy_task", "healthy").end("end");
    deploy(&mut partition, &healthy);
    partition
}

fn deploy(partition: &mut Partition, process: &ProcessBuilder) {
    let output = partition.deploy("process.bpmn", process.to_xml().as_bytes());
    assert_eq!(output.replies[0].rejection, None);
}

fn create(partition: &mut Partition, id: &str, variables: &str) -> Output {
    partition.create(id, variables, ProcessInstanceCreationIntent::Create)
}

/// Another instance comes to its end.
fn others_go_on(partition: &mut Partition) {
    create(partition, "healthy", "{}");
    let output = partition.job(partition.jobs["healthy_task"], JobIntent::Complete, JobValue::default());
    assert!(support::describe(&output).contains("PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS healthy"));
}

/// The reasons why instances were banned.
fn bans(partition: &Partition) -> Vec<&str> {
    let reasons = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Error(ErrorIntent::Created, error) => Some(error.exception_message.as_str()),
        _ => None,
    });
    reasons.collect()
}

fn incidents(partition: &Partition) -> Vec<(ErrorType, &str)> {
    let incidents = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => {
            Some((incident.error_type, incident.error_message.as_str()))
        }
        _ => None,
    });
    incidents.collect()
}

/// The largest number of records of one command.
fn largest_command(partition: &Partition) -> usize {
    let commands = partition.records.chunk_by(|left, right| left.source_position == right.source_position);
    commands.map(<[Record]>::len).max().unwrap_or(0)
}

/// A job that does not exist is refused, and its key, which the client made up, has no effect on the keys that are given.
#[test]
fn keys_that_clients_make_up_are_never_given() {
    let mut partition = partition(Limits::default());
    create(&mut partition, "healthy", "{}");
    let before = partition.jobs["healthy_task"];
    let made_up = Key::new(PartitionId(1), before.counter() + 1_000_000);
    for key in [made_up, Key::new(PartitionId(1), (1 << 51) - 1), Key::from_raw(i64::MAX), Key::from_raw(i64::MIN)] {
        let output = partition.job(key, JobIntent::Complete, JobValue::default());
        let rejection = output.replies[0].rejection.as_ref().expect("refused");
        assert_eq!(rejection.rejection_type, RejectionType::NotFound);
        others_go_on(&mut partition);
        let given = partition.jobs["healthy_task"];
        assert!(given.counter() < before.counter() + 200, "{given} was given after {before}");
    }
    partition.check();
}

/// Two event sub-processes that trigger each other for ever.
fn endless() -> ProcessBuilder {
    let handler = |process: ProcessBuilder, number: u32, caught: &str, thrown: &str| {
        process
            .event_sub_process(&format!("handler{number}"))
            .start_event(&format!("caught{number}"), Event::Escalation(caught))
            .non_interrupting()
            .escalation_throw(&format!("thrown{number}"), thrown)
            .end(&format!("end{number}"))
            .end_sub_process()
    };
    let process = ProcessBuilder::new("endless").start("start").escalation_throw("first", "ping").end("end");
    handler(handler(process, 1, "ping", "pong"), 2, "pong", "ping")
}

#[test]
fn an_instance_that_never_waits_is_put_aside() {
    let mut partition = partition(Limits { continuations_max: 20, ..Limits::default() });
    deploy(&mut partition, &endless());
    create(&mut partition, "endless", "{}");
    let bans = bans(&partition);
    assert_eq!(bans.len(), 1);
    assert!(bans[0].contains("it took about 20000 steps in a row"), "{bans:?}");
    assert_eq!(partition.engine.statistics().work_entries, 0);
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn an_instance_that_never_waits_can_be_cancelled_and_lets_others_through() {
    let mut partition = Partition::new();
    deploy(&mut partition, &endless());
    let healthy = ProcessBuilder::new("healthy").start("start").service_task("healthy_task", "healthy").end("end");
    deploy(&mut partition, &healthy);
    let creation = |id: &str| {
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: id.into(),
            version: -1,
            tenant_id: support::TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        Command::new(
            Key::NONE,
            Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value)),
        )
    };
    partition.apply(vec![creation("endless")]);
    let endless = partition.instance;
    for _ in 0..5 {
        let continuation = partition.engine.continuation().expect("it goes on and on");
        partition.apply(vec![continuation, creation("healthy")]);
        assert!(partition.jobs.remove("healthy_task").is_some(), "the other instance got as far as its job");
    }
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    let output = partition.submit(endless, cancel);
    assert_eq!(output.replies[0].rejection, None);
    assert!(support::describe(&output).contains("PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS endless"));
    assert_eq!(partition.engine.statistics().work_entries, 0);
    partition.check();
}

#[test]
fn a_loop_around_a_call_activity_is_put_aside_too() {
    let mut partition = partition(Limits { continuations_max: 10, ..Limits::default() });
    deploy(&mut partition, &ProcessBuilder::new("called").start("start").manual_task("task").end("end"));
    let caller =
        ProcessBuilder::new("caller").start("start").exclusive_gateway("again").call_activity("call", "called");
    deploy(&mut partition, &caller.connect_to("again"));
    create(&mut partition, "caller", "{}");
    assert!(bans(&partition).iter().any(|reason| reason.contains("steps in a row")));
    assert_eq!(partition.engine.statistics().work_entries, 0);
    others_go_on(&mut partition);
    partition.check();
}

/// Each level of gateways multiplies the tokens by ten.
#[test]
fn tokens_that_multiply_are_put_aside_before_they_fill_the_state() {
    let mut process = ProcessBuilder::new("bomb").start("start");
    for level in 0..8 {
        process = process.parallel_gateway(&format!("fork{level}"));
        for blade in 0..10 {
            process = process.move_to(&format!("fork{level}")).manual_task(&format!("task{level}_{blade}"));
        }
        let gateway = format!("join{level}");
        process = process.exclusive_gateway(&gateway);
        for blade in 0..9 {
            process = process.move_to(&format!("task{level}_{blade}")).connect_to(&gateway);
        }
        process = process.move_to(&gateway);
    }
    let limits = Limits { work_entries_max: 30, ..Limits::default() };
    let mut partition = partition(limits);
    deploy(&mut partition, &process.end("end"));
    create(&mut partition, "bomb", "{}");
    let bans = bans(&partition);
    assert_eq!(bans.len(), 1);
    assert!(bans[0].contains("Look for flows that multiply tokens"), "{bans:?}");
    assert!(largest_command(&partition) <= limits.records_per_command + 1_000);
    assert_eq!(partition.engine.statistics().work_entries, 0);
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn many_tokens_come_to_their_end_in_several_commands() {
    let mut process = ProcessBuilder::new("wide").start("start").parallel_gateway("fork").exclusive_gateway("join");
    process = process.end("end");
    for blade in 0..3_000 {
        process = process.move_to("fork").manual_task(&format!("task{blade}")).connect_to("join");
    }
    let mut partition = partition(Limits::default());
    deploy(&mut partition, &process);
    let output = create(&mut partition, "wide", "{}");
    assert!(support::describe(&output).contains("PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS wide\n"));
    assert_eq!(bans(&partition), Vec::<&str>::new());
    partition.check();
}

#[test]
fn the_expressions_of_an_element_are_limited_together() {
    let slow = "some i in 1..200000 satisfies i < 0";
    let mut process = ProcessBuilder::new("slow").start("start").exclusive_gateway("choice");
    for number in 0..100 {
        process = process.move_to("choice").condition(&format!("= {slow}")).end(&format!("end{number}"));
    }
    process = process.move_to("choice").default_flow().end("otherwise");
    let mut partition = partition(Limits { evaluation_steps_per_command_max: 6_000_000, ..Limits::default() });
    deploy(&mut partition, &process);
    create(&mut partition, "slow", "{}");
    let incidents = incidents(&partition);
    assert_eq!(incidents.len(), 1);
    assert!(incidents[0].1.contains("The expressions of this element were stopped after 6000000 steps together"));
    others_go_on(&mut partition);
    partition.check();
}

/// Ten thousand conditions on a variable of a megabyte: its text is lent, and read once for all of them.
#[test]
fn many_conditions_on_a_long_variable_read_it_once() {
    let mut process = ProcessBuilder::new("many").start("start").exclusive_gateway("choice");
    for number in 0..1_000 {
        process = process.move_to("choice").condition("= count(items) < 0 or doc.a = 2").end(&format!("end{number}"));
    }
    process = process.move_to("choice").default_flow().end("otherwise");
    let limits = Limits { evaluation_bytes_read_per_command_max: 4 << 20, ..Limits::default() };
    let mut partition = partition(limits);
    deploy(&mut partition, &process);
    let items = vec!["\"some text\""; 50_000].join(",");
    let output =
        create(&mut partition, "many", &format!("{{\"items\":[{items}],\"doc\":{{\"a\":1,\"b\":[{items}]}}}}"));
    assert!(incidents(&partition).is_empty(), "{:?}", incidents(&partition));
    assert!(support::describe(&output).contains("PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS many\n"));
    // Ten long variables are more than a command may read. Each says something else: what says the same is read once.
    let mut process = ProcessBuilder::new("much").start("start").service_task("task", "work");
    for number in 0..10 {
        process = process.input(&format!("=count(v{number})"), &format!("n{number}"));
    }
    deploy(&mut partition, &process.end("end"));
    let variables: Vec<String> = (0..10).map(|number| format!("\"v{number}\":[{number},{items}]")).collect();
    create(&mut partition, "much", &format!("{{{}}}", variables.join(",")));
    let raised = incidents(&partition);
    assert_eq!(raised.len(), 1, "{raised:?}");
    assert!(raised[0].1.contains("more than 4194304 bytes of variables would be read together"), "{raised:?}");
    others_go_on(&mut partition);
    partition.check();
}

/// A variable that changes is read again, also by the same command.
#[test]
fn a_long_variable_that_changes_is_read_anew() {
    let mut partition = partition(Limits::default());
    let process = ProcessBuilder::new("changes").start("start").script_task("one", "=string length(text)", "before");
    let process =
        process.script_task("two", "=text + text", "text").script_task("three", "=string length(text)", "after");
    deploy(&mut partition, &process.end("end"));
    create(&mut partition, "changes", &format!("{{\"text\":\"{}\"}}", "x".repeat(10_000)));
    let value = |name: &str| {
        partition.records.iter().find_map(|record| match &record.payload {
            Payload::Variable(_, variable) if *variable.name == *name => Some(variable.value.to_string()),
            _ => None,
        })
    };
    assert_eq!((value("before").as_deref(), value("after").as_deref()), (Some("10000"), Some("20000")));
    partition.check();
}

#[test]
fn many_slow_expressions_take_several_commands() {
    let mut partition = partition(Limits { evaluation_steps_per_command: 50_000, ..Limits::default() });
    let process = ProcessBuilder::new("slow").start("start").service_task("each", "work");
    let process = process.multi_instance("=[1, 2, 3, 4]", "item").input("=count(for i in 1..60000 return i)", "count");
    deploy(&mut partition, &process.end("end"));
    let output = create(&mut partition, "slow", "{}");
    let continued = output.records.iter().filter(|record| matches!(record.payload, Payload::Work(..))).count();
    assert!(continued >= 4, "{continued}");
    assert_eq!(support::describe(&output).matches("JOB CREATED each").count(), 4);
    partition.check();
}

#[test]
fn variables_that_are_copied_again_and_again_take_several_commands() {
    let mut partition = partition(Limits { bytes_per_command: 100_000, ..Limits::default() });
    let process = ProcessBuilder::new("copies").start("start").service_task("each", "work");
    deploy(
        &mut partition,
        &process.multi_instance("=for i in 1..50 return i", "item").input("=text", "copy").end("end"),
    );
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(30_000));
    create(&mut partition, "copies", &variables);
    let bytes = |record: &Record| match &record.payload {
        Payload::Variable(_, variable) => variable.value.len(),
        _ => 0,
    };
    let commands = partition.records.chunk_by(|left, right| left.source_position == right.source_position);
    let largest = commands.map(|records| records.iter().map(bytes).sum::<usize>()).max();
    assert!(largest <= Some(160_000), "{largest:?}");
    let jobs = partition.records.iter().filter(|record| matches!(record.payload, Payload::Job(JobIntent::Created, _)));
    assert_eq!(jobs.count(), 50);
    partition.check();
}

#[test]
fn mappings_that_give_too_much_are_an_incident() {
    let mut partition = partition(Limits { mapping_bytes_max: 100_000, ..Limits::default() });
    let mut process = ProcessBuilder::new("copies").start("start").service_task("task", "work");
    for copy in 0..10 {
        process = process.input("=text", &format!("copies.copy{copy}"));
    }
    deploy(&mut partition, &process.end("end"));
    create(&mut partition, "copies", &format!("{{\"text\":\"{}\"}}", "x".repeat(30_000)));
    let expected = "Expected the mappings to give at most 100000 bytes together, but they give more. Map less.";
    assert_eq!(incidents(&partition), [(ErrorType::IoMappingError, expected)]);
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn random_values_differ_from_evaluation_to_evaluation_and_are_the_same_on_every_replica() {
    let mut partition = partition(Limits::default());
    let process = ProcessBuilder::new("random").start("start").script_task("one", "=[uuid(), uuid()]", "ids");
    let process = process.script_task("two", "=uuid()", "third").service_task("task", "work");
    let process = process.input("=uuid()", "fourth").input("=string(random number())", "number").end("end");
    deploy(&mut partition, &process);
    create(&mut partition, "random", "{}");
    create(&mut partition, "random", "{}");
    let values = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Variable(VariableIntent::Created, variable) => Some(variable.value.to_string()),
        _ => None,
    });
    let all: Vec<String> = values.flat_map(|value| value.split(',').map(str::to_owned).collect::<Vec<_>>()).collect();
    let different: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), different.len()), (10, 10), "{all:?}");
    // Another engine that processes the same has the same state.
    partition.check();
}

#[test]
fn scripts_that_give_too_much_or_never_end_are_an_incident() {
    let mut partition = partition(Limits { mapping_bytes_max: 100_000, ..Limits::default() });
    let script = |id: &str, expression: &str| {
        ProcessBuilder::new(id).start("start").script_task("task", expression, "result").end("end")
    };
    for (id, expression, expected) in [
        (
            "long",
            "=[text, text, text, text]",
            "Expected the result of the expression '[text, text, text, text]' to have at most 100000 bytes, but it has \
             more. Let it give less.",
        ),
        ("endless", "=count(for i in 1..1000000000000 return i)", "Failed to evaluate expression"),
    ] {
        deploy(&mut partition, &script(id, expression));
        create(&mut partition, id, &format!("{{\"text\":\"{}\"}}", "x".repeat(30_000)));
        let raised = incidents(&partition);
        let (kind, message) = raised.last().expect("an incident");
        assert_eq!(*kind, ErrorType::ExtractValueError);
        assert!(message.starts_with(expected), "{message}");
    }
    others_go_on(&mut partition);
    partition.check();
}

/// Not timed to the second: anything quadratic would make it take minutes.
#[test]
fn many_variables_are_joined_in_time() {
    let begin = Instant::now();
    let mut partition = partition(Limits::default());
    let variables: Vec<String> = (0..100_000).map(|number| format!("\"v{number}\":{number}")).collect();
    let document = format!("{{{}}}", variables.join(","));
    create(&mut partition, "healthy", &document);
    let output = partition.activate("healthy", 1);
    let Payload::JobBatch(_, batch) = &output.replies[0].payload else { panic!("a batch was expected") };
    assert_eq!(batch.jobs[0].variables.len(), document.len());
    let caller = ProcessBuilder::new("caller").start("start").call_activity("call", "healthy").end("end");
    deploy(&mut partition, &caller);
    create(&mut partition, "caller", &document);
    assert!(begin.elapsed() < Duration::from_secs(600), "{:?}", begin.elapsed());
}

fn deploy_all(partition: &mut Partition, resources: Vec<DeploymentResource>) -> Output {
    let value = DeploymentValue { resources, tenant_id: support::TENANT.into(), ..DeploymentValue::default() };
    partition.submit(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))
}

#[test]
fn deployments_of_too_many_files_or_processes_are_refused() {
    let mut partition = partition(Limits::default());
    let resource = |number: usize| DeploymentResource {
        resource_name: format!("{number}.bpmn").into(),
        resource: std::sync::Arc::from([].as_slice()),
    };
    let output = deploy_all(&mut partition, (0..1_001).map(resource).collect());
    let rejection = output.replies[0].rejection.as_ref().expect("refused");
    assert!(rejection.reason.contains("at most 1000 resources together, but 1001 were given"), "{rejection:?}");

    let process = |number: usize| {
        format!("<process id=\"p{number}\" isExecutable=\"true\"><startEvent id=\"s{number}\"/></process>")
    };
    let processes: String = (0..3_000).map(process).collect();
    let xml = format!("<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\">{processes}</definitions>");
    let output = partition.deploy("many.bpmn", xml.as_bytes());
    let rejection = output.replies[0].rejection.as_ref().expect("refused");
    assert!(rejection.reason.starts_with("Expected the 3000 processes of the deployment to have"), "{rejection:?}");
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn resource_names_have_a_limit() {
    let mut partition = partition(Limits::default());
    let process = ProcessBuilder::new("named").start("start").end("end").to_xml();
    let longest = format!("{}.bpmn", "n".repeat(507));
    assert_eq!(partition.deploy(&longest, process.as_bytes()).replies[0].rejection, None);
    let output = partition.deploy(&format!("n{longest}"), process.as_bytes());
    let rejection = output.replies[0].rejection.as_ref().expect("refused");
    let expected = "Expected the names of resources to have at most 512 bytes, but it has 513: 'nnnn";
    assert!(rejection.reason.starts_with(expected), "{rejection:?}");
    assert_eq!(output.records.len(), 1, "nothing but the rejection");
}

#[test]
fn deployments_that_would_not_fit_the_log_of_another_partition_are_refused() {
    let graph = "g".repeat(512);
    let decisions: String = (0..25_000)
        .map(|number| {
            format!(
                "<decision id=\"d{number}\" name=\"d\"><literalExpression><text>1</text></literalExpression></decision>"
            )
        })
        .collect();
    let xml = format!(
        "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"{graph}\" name=\"n\" namespace=\"n\">\
         {decisions}</definitions>"
    );
    let mut partition = partition(Limits::default());
    let output = partition.deploy("many.dmn", xml.as_bytes());
    let rejection = output.replies[0].rejection.as_ref().expect("refused");
    assert!(rejection.reason.contains("with the names of their 0 processes and 25000 decisions"), "{rejection:?}");
    assert_eq!(output.records.len(), 1, "nothing but the rejection");
    others_go_on(&mut partition);
}

/// How many instances of the process begin while the clock moves on by steps.
fn begun(cycle: &str, step: i64, steps: usize) -> usize {
    let mut partition = Partition::new();
    deploy(&mut partition, &ProcessBuilder::new("cycle").start_event("start", Event::Cycle(cycle)).end("end"));
    for _ in 0..steps {
        for _ in 0..20 {
            partition.advance(0);
        }
        partition.advance(step);
    }
    let begins = |record: &&Record| {
        matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    };
    partition.check();
    partition.records.iter().filter(begins).count()
}

#[test]
fn an_endless_cycle_without_time_between_comes_ten_times_a_second() {
    assert_eq!(begun("R/PT0S", 50, 20), 11);
    assert_eq!(begun("R5000/PT0.001S", 50, 20), 10);
    assert_eq!(begun("R3/PT0S", 50, 20), 3, "a short one comes at once");
}

/// The nested text of a context in a context, `levels` deep, under the name `a`.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

/// Half of what processing threads have, although nothing is optimized here.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(test).expect("a thread starts");
    thread.join().expect("the test passes");
}

#[test]
fn mappings_nest_as_deep_as_their_targets_may_and_no_deeper_than_json() {
    let target = vec!["a"; bpmn::MAPPING_TARGET_NAMES_MAX].join(".");
    let process = ProcessBuilder::new("deep")
        .start("start")
        .script_task("merge", "=1", "result")
        .output("=1", &target.replace("a.a", "a.b"))
        .service_task("task", "work")
        .input("=2", &target)
        .end("end")
        .to_xml();
    on_a_small_stack(move || {
        let mut partition = partition(Limits::default());
        assert_eq!(partition.deploy("deep.bpmn", process.as_bytes()).replies[0].rejection, None);
        create(&mut partition, "deep", &format!("{{\"a\":{}}}", nested(998)));
        assert_eq!(incidents(&partition), []);
        assert!(partition.jobs.contains_key("task"));
        partition.check();
    });
}

#[test]
fn a_context_that_would_become_deeper_than_json_is_an_incident() {
    let process = ProcessBuilder::new("deep")
        .start("start")
        .script_task("merge", "=1", "result")
        .output("=a", "outer.inner.a")
        .end("end");
    let mut partition = partition(Limits::default());
    deploy(&mut partition, &process);
    create(&mut partition, "deep", &format!("{{\"a\":{}}}", nested(999)));
    let incidents = incidents(&partition);
    assert_eq!(incidents.len(), 1);
    assert_eq!(incidents[0].0, ErrorType::IoMappingError);
    assert!(
        incidents[0].1.starts_with("Expected the mappings to nest values at most 1000 levels deep"),
        "{incidents:?}"
    );
    partition.check();
}

#[test]
fn as_many_mappings_as_there_may_be_are_applied() {
    let mut process = ProcessBuilder::new("wide").start("start").script_task("task", "=1", "result");
    for number in 0..5_000 {
        process = process.output("=1", &format!("outer.entry{number}"));
    }
    let mut partition = partition(Limits::default());
    deploy(&mut partition, &process.end("end"));
    create(&mut partition, "wide", "{}");
    assert_eq!(incidents(&partition), []);
    let outer = partition.records.iter().find_map(|record| match &record.payload {
        Payload::Variable(VariableIntent::Created, variable) if variable.name == *"outer" => Some(&variable.value),
        _ => None,
    });
    assert_eq!(outer.expect("it is written").matches(":1").count(), 5_000);
    others_go_on(&mut partition);
}

/// What lies deep in a context is written once, with the context, and not once more for each level.
#[test]
fn a_long_value_in_a_deep_target_counts_once() {
    let target = vec!["a"; bpmn::MAPPING_TARGET_NAMES_MAX].join(".");
    let process = ProcessBuilder::new("deep").start("start").service_task("task", "work").input("=text", &target);
    let mut partition = partition(Limits { mapping_bytes_max: 100_000, ..Limits::default() });
    deploy(&mut partition, &process.end("end"));
    create(&mut partition, "deep", &format!("{{\"text\":\"{}\"}}", "x".repeat(90_000)));
    assert_eq!(incidents(&partition), []);
    assert!(partition.jobs.contains_key("task"));
    partition.check();
}

#[test]
fn a_mapping_sees_those_before_it_in_its_own_context_and_in_those_around() {
    let process = ProcessBuilder::new("seen").start("start").service_task("task", "work");
    let process = process.input("=1", "a").input("=a + 1", "outer.a").input("=a + 1", "outer.inner.a");
    let process = process.input("=a + 1", "outer.inner.b").input("=a + 10", "outer.c").input("=a + 100", "d");
    let mut partition = partition(Limits::default());
    deploy(&mut partition, &process.end("end"));
    create(&mut partition, "seen", "{}");
    let values = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Variable(VariableIntent::Created, variable) => Some(format!("{}={}", variable.name, variable.value)),
        _ => None,
    });
    let values: Vec<String> = values.collect();
    assert_eq!(values, ["a=1", "outer={\"a\":2,\"inner\":{\"a\":3,\"b\":4},\"c\":12}", "d=101"]);
}

/// A partition whose names may be longer than its keys, so that what names should have kept out comes up.
fn partition_without_names() -> Partition {
    partition(Limits { name_bytes_max: 4_000, ..Limits::default() })
}

/// A job type that is too long for the key of a table.
const TOO_LONG: &str = "=string join(for i in 1..2500 return \"x\")";

fn rejections(partition: &Partition) -> usize {
    partition.records.iter().filter(|record| matches!(record.record_type, RecordType::Rejection(_))).count()
}

#[test]
fn a_timer_that_leads_to_what_cannot_be_stored_is_not_tried_for_ever() {
    let process = ProcessBuilder::new("late")
        .start("start")
        .catch_event("wait", Event::Duration("PT1S"))
        .service_task("task", TOO_LONG)
        .end("end");
    let mut partition = partition_without_names();
    deploy(&mut partition, &process);
    create(&mut partition, "late", "{}");
    partition.advance(1_000);
    let bans = bans(&partition);
    assert_eq!(bans.len(), 1);
    assert!(bans[0].contains("bytes long, and at most 1900 are allowed"), "{bans:?}");
    assert_eq!(partition.engine.next_due(), None, "nothing of it is due any more");
    assert_eq!(rejections(&partition), 1);
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn a_start_timer_that_leads_to_what_cannot_be_stored_is_cancelled_with_the_reason() {
    let process = ProcessBuilder::new("often")
        .start_event("start", Event::Cycle("R/PT1S"))
        .service_task("task", TOO_LONG)
        .end("end");
    let mut partition = partition_without_names();
    deploy(&mut partition, &process);
    partition.advance(1_000);
    let bans = bans(&partition);
    assert!(bans.iter().all(|reason| reason.contains("at most 1900 are allowed")) && !bans.is_empty(), "{bans:?}");
    assert_eq!(partition.engine.next_due(), None, "the timer is cancelled");
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn interrupted_work_that_cannot_be_stored_is_put_aside_and_lets_other_work_through() {
    let process = ProcessBuilder::new("looping")
        .start("start")
        .manual_task("each")
        .multi_instance("=for i in 1..2000 return i", "item")
        .service_task("task", TOO_LONG)
        .end("end");
    let mut partition = partition_without_names();
    deploy(&mut partition, &process);
    create(&mut partition, "looping", "{}");
    assert_eq!(bans(&partition).len(), 1);
    assert_eq!(partition.engine.statistics().work_entries, 0);
    others_go_on(&mut partition);
    partition.check();
}

#[test]
fn a_completion_that_leads_to_what_cannot_be_stored_is_refused_once() {
    let process = ProcessBuilder::new("working")
        .start("start")
        .service_task("first", "work")
        .service_task("task", TOO_LONG)
        .end("end");
    let mut partition = partition_without_names();
    deploy(&mut partition, &process);
    create(&mut partition, "working", "{}");
    let job = partition.jobs["first"];
    let mut complete = || {
        let output = partition.job(job, JobIntent::Complete, JobValue::default());
        output.replies[0].rejection.clone().expect("refused").rejection_type
    };
    assert_eq!(complete(), RejectionType::ProcessingError);
    assert_eq!(complete(), RejectionType::InvalidState, "the instance is banned");
    assert_eq!(bans(&partition).len(), 1);
    partition.check();
}
