//! The builder writes what was asked for.

use bpmn::model::{
    Behavior, Binding, ElementType, EventType, ExecutableProcess, StaticOrExpression, TimerKind, TimerSource, Trigger,
};
use bpmn::parse;
use model_builder::{Event, ProcessBuilder, to_xml};

fn order() -> ProcessBuilder {
    ProcessBuilder::new("order")
        .version_tag("v1 <beta>")
        .start("start")
        .exclusive_gateway("split")
        .condition("= total < 10 and name = \"a & b\"")
        .service_task("small", "= \"type\"")
        .retries("5")
        .header("first", "\"quoted\"")
        .header("second", "2")
        .input("= total", "amount")
        .output("= result", "order.result")
        .exclusive_gateway("merge")
        .end("end")
        .move_to("split")
        .default_flow()
        .sub_process("large")
        .start("inner-start")
        .parallel_gateway("fork")
        .job_task("sendTask", "send", "mail")
        .parallel_gateway("join")
        .end("inner-end")
        .move_to("fork")
        .manual_task("manual")
        .connect_to("join")
        .end_sub_process()
        .connect_to("merge")
}

#[test]
fn everything_that_is_built_is_in_the_model() {
    let xml = to_xml(&[order(), ProcessBuilder::new("second").start("start2")]);
    let processes = parse("order.bpmn", xml.as_bytes()).expect("the model is valid");
    let [order, second] = processes.as_slice() else { panic!("there are two processes") };
    assert_eq!((&*second.id, second.elements.len()), ("second", 2));
    assert_eq!(order.version_tag.as_deref(), Some("v1 <beta>"));

    let Behavior::JobWorker(job) = &element(order, "small").behavior else { panic!("a service task has a job") };
    assert!(matches!(&job.job_type, StaticOrExpression::Expression(expression) if expression.text() == " \"type\""));
    assert!(matches!(&job.retries, StaticOrExpression::Static(text) if &**text == "5"));
    assert_eq!(&*job.headers, r#"{"first":"\"quoted\"","second":"2"}"#);
    let [input] = element(order, "small").inputs.as_slice() else { panic!("there is one input mapping") };
    assert_eq!(input.target.iter().map(|part| &**part).collect::<Vec<_>>(), ["amount"]);
    let [output] = element(order, "small").outputs.as_slice() else { panic!("there is one output mapping") };
    assert_eq!(output.target.iter().map(|part| &**part).collect::<Vec<_>>(), ["order", "result"]);

    assert_eq!(targets(order, "split"), [("small", Some(" total < 10 and name = \"a & b\"")), ("large", None)]);
    let Behavior::ExclusiveGateway { default } = element(order, "split").behavior else { panic!("it is a gateway") };
    assert_eq!(default, element(order, "large").incoming.first().copied());
    assert_eq!(targets(order, "large"), [("merge", None)]);
    assert_eq!(targets(order, "fork"), [("send", None), ("manual", None)]);
    assert_eq!(targets(order, "manual"), [("join", None)]);
    assert_eq!(element(order, "send").element_type, ElementType::SendTask);
    assert_eq!(element(order, "send").flow_scope, order.element_by_id.get("large").copied());
    assert_eq!(element(order, "merge").incoming.len(), 2);
}

/// One of every event and activity that the builder can write.
fn events_and_activities() -> ProcessBuilder {
    ProcessBuilder::new("all")
        .start("none")
        .inclusive_gateway("fork")
        .condition("= a")
        .call_activity("call", "called")
        .bind_to_version_tag("v1")
        .propagate_all_child_variables(false)
        .input("= 1", "a")
        .output("= 2", "b")
        .receive_task("receive", "paid", "= order")
        .event_based_gateway("first")
        .catch_event("after", Event::Duration("PT1S"))
        .throw("passed")
        .link_throw("jump", "L")
        .link_catch("landed", "L")
        .message_end("told", "tell")
        .move_to("first")
        .catch_event("paid", Event::Message("paid", "= order"))
        .message_throw("tell", "tell")
        .escalation_throw("raise", "= code")
        .terminate_end("stop")
        .boundary("failed", "call", Event::Error("E1"))
        .error_end("give-up", "E2")
        .boundary("escalated", "call", Event::Escalation("X"))
        .non_interrupting()
        .escalation_end("escalate", "Y")
        .move_to("fork")
        .default_flow()
        .sub_process("each")
        .sequential_multi_instance("= items", "item")
        .output_collection("results", "= result")
        .completion_condition("= done")
        .start("inner-start")
        .send_task("mail", "mail")
        .boundary("late", "mail", Event::Cycle("R3/PT1H"))
        .non_interrupting()
        .end("reminded")
        .event_sub_process("handler")
        .start_event("any-error", Event::Error(""))
        .end("handled")
        .end_sub_process()
        .move_to("mail")
        .end("inner-end")
        .end_sub_process()
        .end("end")
        .event_sub_process("alarm")
        .start_event("alarmed", Event::Message("alarm", "= order"))
        .non_interrupting()
        .service_task("twice", "work")
        .multi_instance("= [1, 2]", "")
        .end_sub_process()
        .start_event("timed", Event::Date("2030-01-01T00:00:00Z"))
        .start_event("ordered", Event::Message("order", ""))
}

#[test]
fn every_event_and_activity_that_is_built_is_in_the_model() {
    let xml = events_and_activities().to_xml();
    let processes = parse("all.bpmn", xml.as_bytes()).expect("the model is valid");
    let [process] = processes.as_slice() else { panic!("there is one process") };
    let ids = |indexes: &[bpmn::model::ElementIndex]| -> Vec<String> {
        indexes.iter().map(|index| process.element(*index).id.to_string()).collect()
    };
    assert_eq!(ids(&process.triggered_start_events), ["timed", "ordered"]);
    assert_eq!(ids(&process.elements[0].event_sub_processes), ["alarm"]);
    assert_eq!(ids(&element(process, "call").boundary_events), ["failed", "escalated"]);

    let Behavior::CallActivity(call) = &element(process, "call").behavior else { panic!("it is a call activity") };
    assert_eq!(call.binding, Binding::VersionTag("v1".into()));
    assert!(!call.propagate_all_child_variables && call.propagate_all_parent_variables);
    let Behavior::EventBasedGateway { events } = &element(process, "first").behavior else { panic!("it is a gateway") };
    assert_eq!(ids(events), ["after", "paid"]);
    let Behavior::LinkThrowEvent { target } = element(process, "jump").behavior else { panic!("it is a link") };
    assert_eq!(&*process.element(target).id, "landed");

    let Behavior::BoundaryEvent { attached_to, event } = &element(process, "late").behavior else {
        panic!("it is one")
    };
    assert_eq!(&*process.element(*attached_to).id, "mail");
    assert!(!event.is_interrupting);
    let Trigger::Timer(timer) = &event.trigger else { panic!("it is a timer") };
    assert!(timer.kind == TimerKind::Cycle && matches!(timer.source, TimerSource::Constant(_)));

    let Behavior::MultiInstanceBody(body) = &element(process, "each").behavior else { panic!("it runs several times") };
    assert!(body.is_sequential && body.output.is_some() && body.completion_condition.is_some());
    let inner = process.element(body.inner);
    assert_eq!(
        (inner.element_type, inner.flow_scope),
        (ElementType::SubProcess, process.element_by_id.get("each").copied())
    );
    assert_eq!(ids(&inner.event_sub_processes), ["handler"]);
    assert_eq!(element(process, "mail").flow_scope, Some(body.inner));
    assert_eq!(targets(process, "each"), [("end", None)]);
    assert!(inner.outgoing.is_empty());

    let Behavior::StartEvent(alarmed) = &element(process, "alarmed").behavior else { panic!("it is a start event") };
    assert!(!alarmed.is_interrupting);
    assert_eq!(element(process, "alarmed").event_type, EventType::Message);
    assert!(matches!(&element(process, "told").behavior, Behavior::JobWorker(_)));
    assert!(matches!(
        &element(process, "give-up").behavior,
        Behavior::ErrorEndEvent { code: StaticOrExpression::Static(_) }
    ));
    assert!(matches!(
        &element(process, "raise").behavior,
        Behavior::EscalationThrowEvent { code: StaticOrExpression::Expression(_) }
    ));
    assert!(matches!(&element(process, "stop").behavior, Behavior::TerminateEndEvent));
}

fn element<'a>(process: &'a ExecutableProcess, id: &str) -> &'a bpmn::model::Element {
    process.element(process.element_by_id[id])
}

fn targets<'a>(process: &'a ExecutableProcess, id: &str) -> Vec<(&'a str, Option<&'a str>)> {
    let outgoing = element(process, id).outgoing.iter().map(|flow| process.flow(*flow));
    outgoing
        .map(|flow| (&*process.element(flow.target).id, flow.condition.as_ref().map(|condition| condition.text())))
        .collect()
}
