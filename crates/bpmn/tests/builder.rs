//! The generator of BPMN texts writes what it is told.

use osmia_bpmn::builder::{ProcessBuilder, to_xml};
use osmia_bpmn::model::{Behavior, ElementType, ExecutableProcess, StaticOrExpression};
use osmia_bpmn::parse;

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

fn element<'a>(process: &'a ExecutableProcess, id: &str) -> &'a osmia_bpmn::model::Element {
    process.element(process.element_by_id[id])
}

fn targets<'a>(process: &'a ExecutableProcess, id: &str) -> Vec<(&'a str, Option<&'a str>)> {
    let outgoing = element(process, id).outgoing.iter().map(|flow| process.flow(*flow));
    outgoing
        .map(|flow| (&*process.element(flow.target).id, flow.condition.as_ref().map(|condition| condition.text())))
        .collect()
}
