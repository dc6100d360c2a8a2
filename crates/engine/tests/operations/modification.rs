//! Modification of running instances.

mod moves;

use engine::{EngineOptions, Limits, Output};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

use crate::support::{self, Partition};
use crate::tools::*;

/// A modification in the making.
#[derive(Clone, Default)]
struct Modify(ProcessInstanceModificationValue);

impl Modify {
    fn instance(key: Key) -> Self {
        Modify(ProcessInstanceModificationValue { process_instance_key: key, ..Default::default() })
    }

    fn activate(self, element: &str) -> Self {
        self.activate_in(element, Key::NONE)
    }

    fn activate_in(mut self, element: &str, ancestor: Key) -> Self {
        self.0.activate_instructions.push(ModificationActivateInstruction {
            element_id: element.into(),
            ancestor_scope_key: ancestor,
            ..Default::default()
        });
        self
    }

    /// Variables for the activation added last.
    fn with(mut self, variables: &str, scope: &str) -> Self {
        let instruction = ModificationVariableInstruction { variables: variables.into(), element_id: scope.into() };
        self.0.activate_instructions.last_mut().expect("an activation").variable_instructions.push(instruction);
        self
    }

    fn terminate(mut self, key: Key) -> Self {
        self.0
            .terminate_instructions
            .push(ModificationTerminateInstruction { element_instance_key: key, ..Default::default() });
        self
    }

    fn terminate_all(mut self, element: &str) -> Self {
        self.0
            .terminate_instructions
            .push(ModificationTerminateInstruction { element_id: element.into(), ..Default::default() });
        self
    }

    fn move_all(mut self, source: &str, target: &str) -> Self {
        self.0.move_instructions.push(ModificationMoveInstruction {
            source_element_id: source.into(),
            target_element_id: target.into(),
            ..Default::default()
        });
        self
    }

    fn move_one(mut self, source: Key, target: &str) -> Self {
        self.0.move_instructions.push(ModificationMoveInstruction {
            source_element_instance_key: source,
            target_element_id: target.into(),
            ..Default::default()
        });
        self
    }

    /// Changes the move added last.
    fn where_(mut self, change: impl FnOnce(&mut ModificationMoveInstruction)) -> Self {
        change(self.0.move_instructions.last_mut().expect("a move"));
        self
    }

    fn submit(self, partition: &mut Partition) -> Output {
        let intent = ProcessInstanceModificationIntent::Modify;
        partition.submit(Key::NONE, Payload::ProcessInstanceModification(intent, Box::new(self.0)))
    }
}

fn modified(output: &Output) -> &ProcessInstanceModificationValue {
    match &accepted(output).payload {
        Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, value) => value,
        payload => panic!("a modification, not {payload:?}"),
    }
}

fn two_tasks() -> ProcessBuilder {
    ProcessBuilder::new("p").start("s").service_task("a", "work").service_task("b", "work").end("e")
}

/// A task, then a sub-process in a sub-process with two tasks, and an event sub-process in the outer one.
fn nested() -> ProcessBuilder {
    ProcessBuilder::new("p")
        .start("s")
        .service_task("before", "work")
        .sub_process("outer")
        .start("os")
        .sub_process("inner")
        .start("is")
        .service_task("deep", "work")
        .service_task("deeper", "work")
        .end("ie")
        .end_sub_process()
        .service_task("shallow", "work")
        .end("oe")
        .event_sub_process("on-error")
        .start_event("error", Event::Error("E"))
        .service_task("repair", "work")
        .end("ee")
        .end_sub_process()
        .end_sub_process()
        .service_task("after", "work")
        .end("e")
}

#[test]
fn an_element_begins_beside_what_is_there() {
    let mut partition = partition(&[two_tasks()]);
    let instance = start(&mut partition, "p", "");
    let output = Modify::instance(instance).activate("b").submit(&mut partition);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE_MODIFICATION MODIFIED",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SERVICE_TASK b",
            "JOB CREATED b work retries 3",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SERVICE_TASK b",
            "reply PROCESS_INSTANCE_MODIFICATION MODIFIED",
        ],
    );
    assert_eq!(modified(&output).ancestor_scope_keys, [instance]);
    assert_eq!(living(&partition), ["p: activated", "a: activated", "b: activated"]);
    complete(&mut partition, "b");
    assert_eq!(living(&partition), ["p: activated", "a: activated"]);
    complete(&mut partition, "a");
    complete(&mut partition, "b");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn missing_flow_scopes_begin_and_living_ones_are_used() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    let output = Modify::instance(instance).activate("deep").activate("shallow").submit(&mut partition);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SUB_PROCESS outer",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SUB_PROCESS outer",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SUB_PROCESS inner",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SUB_PROCESS inner",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SERVICE_TASK deep",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SERVICE_TASK shallow",
        ],
    );
    let (outer, inner) = (partition.elements["outer"], partition.elements["inner"]);
    assert_eq!(modified(&output).ancestor_scope_keys, [instance, outer, inner]);
    let output = Modify::instance(instance).activate("deeper").submit(&mut partition);
    did_not_happen(&output, "SUB_PROCESS");
    assert_eq!(modified(&output).ancestor_scope_keys, [instance, outer, inner]);
    partition.check();
}

#[test]
fn a_chosen_ancestor_decides_where_the_element_begins() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    accepted(&Modify::instance(instance).activate("deep").submit(&mut partition));
    let first = (partition.elements["outer"], partition.elements["inner"]);
    let output = Modify::instance(instance).activate_in("deep", instance).submit(&mut partition);
    let second = (partition.elements["outer"], partition.elements["inner"]);
    assert_ne!(first, second, "inside the chosen scope everything is new");
    assert_eq!(modified(&output).ancestor_scope_keys, [instance, second.0, second.1]);
    let output = Modify::instance(instance).activate("deep").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["flow scope with more than one active instance: 'outer'"]);
    let output = Modify::instance(instance).activate_in("deep", first.0).submit(&mut partition);
    assert_eq!(modified(&output).ancestor_scope_keys.len(), 3);
    assert_ne!(partition.elements["inner"], first.1, "a new one in the chosen one");
    let output = Modify::instance(instance).activate_in("deeper", first.1).submit(&mut partition);
    assert_eq!(modified(&output).ancestor_scope_keys, [instance, first.0, first.1]);
    partition.check();
}

/// Scopes that begin with one instruction are seen by the next, even if that makes a choice necessary.
#[test]
fn instructions_see_what_the_ones_before_began() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    let both = |first: &str| Modify::instance(instance).activate(first);
    accepted(&both("deep").activate("deeper").submit(&mut partition));
    assert_eq!(living(&partition).iter().filter(|line| line.starts_with("inner")).count(), 1);
    let output = both("deep").activate_in("deep", instance).activate("deeper").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["more than one active instance: 'outer'"]);
    partition.check();
}

#[test]
fn variables_go_to_the_scopes_that_are_named() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "{\"x\":0}");
    let modify = Modify::instance(instance)
        .activate("deep")
        .with("{\"x\":1}", "")
        .with("{\"y\":2}", "p")
        .with("{\"x\":3}", "outer")
        .with("{\"z\":4}", "deep");
    let output = modify.submit(&mut partition);
    happened(
        &output,
        &[
            "VARIABLE UPDATED x = 1",
            "VARIABLE CREATED y = 2",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SUB_PROCESS outer",
            "VARIABLE CREATED x = 3",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SUB_PROCESS outer",
            "VARIABLE CREATED z = 4",
            "PROCESS_INSTANCE_MODIFICATION MODIFIED",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SERVICE_TASK deep",
        ],
    );
    let output = partition.activate("work", 10);
    let deep = output.replies.iter().find_map(|reply| match &reply.payload {
        Payload::JobBatch(_, batch) => batch.jobs.iter().find(|job| job.element_id == "deep").cloned(),
        _ => None,
    });
    assert_eq!(&*deep.expect("activated").variables, "{\"z\":4,\"x\":3,\"y\":2}");
    complete(&mut partition, "deep");
    partition.check();
}

/// They are there before their scope is, and what they take is counted when it begins.
#[test]
fn variables_of_an_element_can_be_set_twice_before_it_begins() {
    for (first, second) in [("[]", "[1,2,3]"), ("[1,2,3]", "[]")] {
        let mut partition = partition(&[two_tasks()]);
        let instance = start(&mut partition, "p", "{}");
        let (first, second) = (format!("{{\"a\":{first}}}"), format!("{{\"a\":{second},\"b\":0}}"));
        // What is counted is compared with what is there after each command.
        Modify::instance(instance).activate("b").with(&first, "b").with(&second, "b").submit(&mut partition);
        complete(&mut partition, "b");
        partition.check();
    }
}

#[test]
fn variables_that_cannot_be_set_refuse_the_modification() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    let modify = || Modify::instance(instance).activate("deep");
    let output = modify().with("{}", "nowhere").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["scope element id that could not be found: 'nowhere'"]);
    for scope in ["before", "on-error", "flow_1"] {
        let output = modify().with("{}", scope).submit(&mut partition);
        let parts = ["doesn't belong to the activating element's flow scope", scope];
        refused(&output, RejectionType::InvalidArgument, &parts);
    }
    let output = modify().with("[1]", "").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["JSON object"]);
    partition.check();
}

#[test]
fn elements_that_cannot_begin_are_refused_by_name() {
    let process = two_tasks()
        .boundary("late", "a", Event::Duration("PT1H"))
        .event_based_gateway("race")
        .catch_event("first", Event::Duration("PT1M"))
        .end("f")
        .move_to("race")
        .catch_event("second", Event::Duration("PT2M"))
        .end("g");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["nowhere", "elsewhere"], &["could not be found: 'elsewhere', 'nowhere'"]),
        (&["s"], &["unsupported: 's'", "'START_EVENT'"]),
        (&["late", "s"], &["unsupported: 'late', 's'", "'BOUNDARY_EVENT', 'START_EVENT'"]),
        (&["flow_1"], &["'flow_1'", "'SEQUENCE_FLOW'"]),
        (&["p"], &["'p'", "'PROCESS'"]),
        (&["first", "second"], &["'first', 'second'", "belonging to an event-based gateway is not supported"]),
    ];
    for (elements, parts) in cases {
        let mut modify = Modify::instance(instance).activate("b");
        for element in elements {
            modify = modify.activate(element);
        }
        let output = modify.submit(&mut partition);
        refused(&output, RejectionType::InvalidArgument, parts);
        refused(&output, RejectionType::InvalidArgument, &["Expected to modify instance of process 'p' but"]);
    }
    partition.check();
}

#[test]
fn unknown_instances_and_ending_ones_are_refused() {
    let mut partition = partition(&[two_tasks()]);
    let instance = start(&mut partition, "p", "");
    let parts = ["no process instance found with key"];
    refused(&Modify::instance(Key::from_raw(77)).submit(&mut partition), RejectionType::NotFound, &parts);
    let task = partition.elements["a"];
    refused(&Modify::instance(task).submit(&mut partition), RejectionType::NotFound, &parts);
    accepted(&Modify::instance(instance).submit(&mut partition));
    partition.submit(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    refused(&Modify::instance(instance).submit(&mut partition), RejectionType::NotFound, &parts);
    partition.check();
}

#[test]
fn ancestors_that_do_not_fit_are_refused() {
    let mut partition = partition(&[nested()]);
    let other = start(&mut partition, "p", "");
    let instance = start(&mut partition, "p", "");
    let task = partition.elements["before"];
    let cases = [
        (Key::from_raw(77), "does not exist, or is not in an active state: '77'".to_owned()),
        (other, format!("does not belong to the modified process instance: '{other}'")),
        (task, format!("instance '{task}' of element 'before' is not an ancestor of element 'deep'")),
    ];
    for (ancestor, part) in cases {
        let output = Modify::instance(instance).activate_in("deep", ancestor).submit(&mut partition);
        refused(&output, RejectionType::InvalidArgument, &[&part]);
    }
    partition.check();
}

#[test]
fn what_cannot_be_opened_in_a_new_scope_refuses_the_modification() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("a", "work")
        .sub_process("sub")
        .start("ss")
        .service_task("b", "work")
        .end("se")
        .end_sub_process()
        .end("e")
        .boundary("told", "sub", Event::Message("m", "=key"))
        .end("t");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    let output = Modify::instance(instance).activate("b").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["Expected to subscribe to catch event(s) of 'sub'"]);
    let output = Modify::instance(instance).activate("b").with("{\"key\":\"k\"}", "").submit(&mut partition);
    happened(&output, &["PROCESS_MESSAGE_SUBSCRIPTION CREATING", "JOB CREATED b work retries 3"]);
    partition.check();
}

#[test]
fn an_element_instance_ends_and_with_the_last_one_everything() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    accepted(&Modify::instance(instance).activate("deep").activate("shallow").submit(&mut partition));
    let (deep, shallow) = (partition.elements["deep"], partition.elements["shallow"]);
    let output = Modify::instance(instance).terminate(deep).submit(&mut partition);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_TERMINATING SERVICE_TASK deep",
            "JOB CANCELED deep work retries 3",
            "PROCESS_INSTANCE ELEMENT_TERMINATED SERVICE_TASK deep",
            "PROCESS_INSTANCE ELEMENT_TERMINATING SUB_PROCESS inner",
            "PROCESS_INSTANCE ELEMENT_TERMINATED SUB_PROCESS inner",
            "PROCESS_INSTANCE_MODIFICATION MODIFIED",
        ],
    );
    did_not_happen(&output, "outer");
    let before = partition.elements["before"];
    let output = Modify::instance(instance).terminate(shallow).terminate(before).submit(&mut partition);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_TERMINATED SUB_PROCESS outer",
            "PROCESS_INSTANCE ELEMENT_TERMINATED SERVICE_TASK before",
            "PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS p",
            "PROCESS_INSTANCE_MODIFICATION MODIFIED",
        ],
    );
    did_not_happen(&output, "COMPLETED");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn a_tree_ends_as_a_whole() {
    let child = ProcessBuilder::new("child").start("cs").service_task("child-task", "work").end("ce");
    let process = ProcessBuilder::new("p")
        .start("s")
        .sub_process("sub")
        .start("ss")
        .parallel_gateway("fork")
        .service_task("loop", "work")
        .multi_instance("=[1,2,3]", "item")
        .end("se")
        .move_to("fork")
        .call_activity("call", "child")
        .move_to("fork")
        .catch_event("wait", Event::Duration("PT1H"))
        .end_sub_process()
        .end("e");
    let mut partition = partition(&[child, process]);
    let instance = start(&mut partition, "p", "");
    let sub = partition.elements["sub"];
    partition.job(partition.jobs["child-task"], JobIntent::Fail, JobValue { retries: 0, ..JobValue::default() });
    let output = Modify::instance(instance).activate("sub").terminate(sub).submit(&mut partition);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_TERMINATING SUB_PROCESS sub",
            "JOB CANCELED child-task work retries 0",
            "INCIDENT RESOLVED child-task JOB_NO_RETRIES 'No more retries left.'",
            "PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS child",
            "PROCESS_INSTANCE ELEMENT_TERMINATED CALL_ACTIVITY call",
            "PROCESS_INSTANCE ELEMENT_TERMINATED SUB_PROCESS sub",
            "PROCESS_INSTANCE_MODIFICATION MODIFIED",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SUB_PROCESS sub",
        ],
    );
    assert_eq!(partition.engine.statistics().incidents, 0);
    assert_eq!(partition.engine.statistics().timers, 1, "that of the new sub-process");
    partition.check();
}

#[test]
fn a_called_process_does_not_end_by_its_own_modification() {
    let child = ProcessBuilder::new("child").start("cs").service_task("task", "work").end("ce");
    let process = ProcessBuilder::new("p").start("s").call_activity("call", "child").end("e");
    let mut partition = partition(&[child, process]);
    let parent = start(&mut partition, "p", "");
    let (called, task, call) = (partition.instance, partition.elements["task"], partition.elements["call"]);
    assert_ne!(parent, called);
    let parts = ["'child' but the given instructions would terminate the instance", "call activity"];
    for key in [task, called] {
        let output = Modify::instance(called).terminate(key).submit(&mut partition);
        refused(&output, RejectionType::InvalidArgument, &parts);
    }
    let output = Modify::instance(called).terminate(task).activate("task").submit(&mut partition);
    did_not_happen(&output, "TERMINATED PROCESS");
    let output = Modify::instance(parent).terminate(call).submit(&mut partition);
    happened(
        &output,
        &["PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS child", "PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS p"],
    );
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn the_process_itself_can_be_ended() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    accepted(&Modify::instance(instance).activate("deep").submit(&mut partition));
    let output = Modify::instance(instance).terminate(instance).submit(&mut partition);
    happened(
        &output,
        &["PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS p", "reply PROCESS_INSTANCE_MODIFICATION MODIFIED"],
    );
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn terminations_that_cannot_be_are_refused() {
    let mut partition = partition(&[two_tasks()]);
    let other = start(&mut partition, "p", "");
    let foreign = partition.elements["a"];
    let instance = start(&mut partition, "p", "");
    let task = partition.elements["a"];
    for key in [Key::from_raw(77), foreign, other] {
        let output = Modify::instance(instance).terminate(task).terminate(key).submit(&mut partition);
        let part = format!("element instance that could not be found: '{key}'");
        refused(&output, RejectionType::InvalidArgument, &[&part]);
    }
    let output = Modify::instance(instance).terminate_all("").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["neither an element instance key nor element id"]);
    let mut both = Modify::instance(instance).terminate(task);
    both.0.terminate_instructions[0].element_id = "a".into();
    refused(
        &both.submit(&mut partition),
        RejectionType::InvalidArgument,
        &["both element instance key and element id"],
    );
    partition.check();
}

#[test]
fn what_begins_must_not_end_with_its_scope() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    accepted(&Modify::instance(instance).activate("deep").submit(&mut partition));
    let (outer, inner) = (partition.elements["outer"], partition.elements["inner"]);
    for (ending, ancestor) in [(outer, Key::NONE), (inner, Key::NONE), (inner, inner), (outer, inner)] {
        let output =
            Modify::instance(instance).activate_in("deeper", ancestor).terminate(ending).submit(&mut partition);
        let part = format!("element 'deeper' requires flow scope instance '{ending}' which is being terminated");
        refused(&output, RejectionType::InvalidArgument, &[&part]);
    }
    let output = Modify::instance(instance).activate_in("deeper", outer).terminate(inner).submit(&mut partition);
    happened(&output, &["PROCESS_INSTANCE ELEMENT_TERMINATED SUB_PROCESS inner"]);
    let expected = ["p: activated", "before: activated", "outer: activated", "inner: activated", "deeper: activated"];
    assert_eq!(living(&partition), expected);
    partition.check();
}

#[test]
fn all_instances_of_an_element_end() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    for _ in 0..2 {
        accepted(&Modify::instance(instance).activate_in("deep", instance).submit(&mut partition));
    }
    let output = Modify::instance(instance).terminate_all("deep").terminate_all("nowhere").submit(&mut partition);
    assert_eq!(modified(&output).terminate_instructions.len(), 2);
    assert_eq!(living(&partition), ["p: activated", "before: activated"]);
    partition.check();
}

#[test]
fn loops_end_with_their_last_instance() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("loop", "work")
        .multi_instance("=[1,2]", "item")
        .service_task("after", "work")
        .end("e");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    let last = partition.elements["loop"];
    let output = Modify::instance(instance).terminate(last).submit(&mut partition);
    did_not_happen(&output, "MULTI_INSTANCE_BODY");
    let first = partition.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) if job.element_id == "loop" => Some(record.key),
        _ => None,
    });
    let output = partition.job(first.expect("a job"), JobIntent::Complete, JobValue::default());
    happened(
        &output,
        &["PROCESS_INSTANCE ELEMENT_COMPLETED MULTI_INSTANCE_BODY loop", "JOB CREATED after work retries 3"],
    );
    accepted(&Modify::instance(instance).activate("loop").terminate_all("after").submit(&mut partition));
    let output = Modify::instance(instance).activate("after").terminate_all("loop").submit(&mut partition);
    happened(&output, &["PROCESS_INSTANCE ELEMENT_TERMINATED MULTI_INSTANCE_BODY loop"]);
    complete(&mut partition, "after");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn elements_inside_of_loops_begin_only_in_a_living_instance() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("a", "work")
        .sub_process("many")
        .multi_instance("=[1,2]", "item")
        .start("ms")
        .service_task("b", "work")
        .service_task("c", "work")
        .end("me")
        .end_sub_process()
        .end("e");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    let output = Modify::instance(instance).activate("b").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["activation of multi-instance element 'many'"]);
    complete(&mut partition, "a");
    let inner = partition.elements["many"];
    let output = Modify::instance(instance).activate("c").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["more than one active instance: 'many'"]);
    let output = Modify::instance(instance).activate_in("c", inner).submit(&mut partition);
    happened(&output, &["JOB CREATED c work retries 3"]);
    let output = Modify::instance(instance).activate_in("c", instance).submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["activation of multi-instance element 'many'"]);
    partition.check();
}

#[test]
fn gateways_begin_although_tokens_are_missing() {
    for kind in ["parallelGateway", "inclusiveGateway"] {
        let process = ProcessBuilder::new("p")
            .start("s")
            .parallel_gateway("fork")
            .service_task("a", "work")
            .element(kind, "join")
            .service_task("after", "work")
            .end("e")
            .move_to("fork")
            .service_task("b", "work")
            .connect_to("join");
        let mut partition = partition(&[process]);
        let instance = start(&mut partition, "p", "");
        complete(&mut partition, "a");
        let output = Modify::instance(instance).activate("join").submit(&mut partition);
        happened(&output, &["JOB CREATED after work retries 3"]);
        complete(&mut partition, "after");
        // The token that waited still waits for the other one.
        let output = complete(&mut partition, "b");
        happened(&output, &["JOB CREATED after work retries 3"]);
        complete(&mut partition, "after");
        partition.check();
        check_nothing_is_left(&partition);
    }
}

/// What is left may be exactly what an inclusive gateway waited for.
#[test]
fn a_gateway_that_waited_for_what_ended_begins() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .parallel_gateway("fork")
        .service_task("a", "work")
        .inclusive_gateway("join")
        .service_task("after", "work")
        .end("e")
        .move_to("fork")
        .service_task("b", "work")
        .connect_to("join");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    complete(&mut partition, "a");
    let output = Modify::instance(instance).terminate_all("b").submit(&mut partition);
    happened(&output, &["PROCESS_INSTANCE_MODIFICATION MODIFIED", "JOB CREATED after work retries 3"]);
    complete(&mut partition, "after");
    partition.check();
    check_nothing_is_left(&partition);
}

/// A scope in which a token waits at a gateway is not empty.
#[test]
fn a_scope_with_a_waiting_token_stays() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .parallel_gateway("fork")
        .service_task("a", "work")
        .parallel_gateway("join")
        .service_task("after", "work")
        .end("e")
        .move_to("fork")
        .service_task("b", "work")
        .connect_to("join");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    complete(&mut partition, "a");
    accepted(&Modify::instance(instance).terminate_all("b").submit(&mut partition));
    assert_eq!(living(&partition), ["p: activated"]);
    accepted(&Modify::instance(instance).activate("b").submit(&mut partition));
    happened(&complete(&mut partition, "b"), &["JOB CREATED after work retries 3"]);
    partition.check();
}

#[test]
fn interrupted_scopes_go_on() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    complete(&mut partition, "before");
    let value = JobValue { error_code: "E".into(), ..JobValue::default() };
    partition.job(partition.jobs["deep"], JobIntent::ThrowError, value);
    assert_eq!(living(&partition), ["p: activated", "outer: activated", "on-error: activated", "repair: activated"]);
    let output = Modify::instance(instance).activate("shallow").submit(&mut partition);
    happened(&output, &["JOB CREATED shallow work retries 3"]);
    complete(&mut partition, "repair");
    let output = complete(&mut partition, "shallow");
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED SUB_PROCESS outer", "JOB CREATED after work retries 3"]);
    partition.check();
}

#[test]
fn event_sub_processes_can_be_begun() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    let output = Modify::instance(instance).activate("on-error").submit(&mut partition);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_ACTIVATED EVENT_SUB_PROCESS on-error",
            "PROCESS_INSTANCE ELEMENT_COMPLETED START_EVENT error",
            "JOB CREATED repair work retries 3",
        ],
    );
    let output = Modify::instance(instance).activate("repair").terminate_all("before").submit(&mut partition);
    did_not_happen(&output, "EVENT_SUB_PROCESS");
    partition.check();
}

#[test]
fn a_modification_that_is_too_large_is_refused() {
    let limits = Limits { elements_per_operation_max: 4, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("loop", "work")
        .multi_instance("=[1,2,3,4]", "item")
        .service_task("after", "work")
        .end("e");
    deploy(&mut partition, &process);
    let instance = start(&mut partition, "p", "");
    let parts = ["exceeds the maximum batch size", "more than 4 element instances"];
    let output = Modify::instance(instance).activate("after").terminate_all("loop").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &parts);
    let mut many = Modify::instance(instance);
    for _ in 0..5 {
        many = many.activate("after");
    }
    refused(&many.submit(&mut partition), RejectionType::InvalidArgument, &parts);
    complete(&mut partition, "loop");
    let output = Modify::instance(instance).activate("after").terminate_all("loop").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &parts);
    partition.check();
}

/// An element with an incident on the way can be left, and one that has not begun takes nothing in.
#[test]
fn incidents_go_with_what_ends() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .sub_process("sub")
        .multi_instance("=missing", "item")
        .start("ss")
        .service_task("a", "work")
        .end("se")
        .end_sub_process()
        .service_task("b", "work")
        .end("e");
    let mut partition = partition(&[process]);
    let instance = start(&mut partition, "p", "");
    assert_eq!(partition.engine.statistics().incidents, 1);
    let output = Modify::instance(instance).activate("a").submit(&mut partition);
    refused(&output, RejectionType::InvalidState, &["'sub'", "it has not begun; resolve its incident first"]);
    let output = Modify::instance(instance).move_all("sub", "b").submit(&mut partition);
    happened(&output, &["PROCESS_INSTANCE ELEMENT_TERMINATED MULTI_INSTANCE_BODY sub"]);
    assert_eq!(partition.engine.statistics().incidents, 0);
    complete(&mut partition, "b");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn somebody_who_waits_for_the_result_waits_on() {
    let mut partition = partition(&[two_tasks()]);
    let output = partition.create("p", "{\"x\":1}", ProcessInstanceCreationIntent::CreateWithAwaitingResult);
    assert!(output.replies.is_empty());
    let instance = partition.instance;
    accepted(&Modify::instance(instance).move_all("a", "b").submit(&mut partition));
    let output = partition.job(partition.jobs["b"], JobIntent::Complete, JobValue::default());
    happened(&output, &["result {\"x\":1}"]);
    partition.check();
    check_nothing_is_left(&partition);
}
