//! Every file in `tests/models` is parsed and compared with the text next to it: the model's summary, or the report and
//! what would become of the file if it had been deployed before. `UPDATE_EXPECTED=1 cargo test -p osmia-bpmn` rewrites the
//! texts; review them as a difference.

mod soundness;

use std::fmt::Write;
use std::path::Path;

use osmia_bpmn::model::{
    Behavior, CatchEvent, Element, ElementIndex, EventType, ExecutableProcess, StaticOrExpression, TimerDefinition,
    TimerSource, Trigger,
};
use osmia_bpmn::{parse, parse_deployed, render_reports};

#[test]
fn every_model_gives_the_expected_result() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut models = 0;
    let mut differing = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the folder of models can be read") {
        let path = entry.expect("the folder of models can be read").path();
        if path.extension().is_none_or(|extension| extension != "bpmn") {
            continue;
        }
        models += 1;
        let name = path.file_name().expect("a model has a name").to_string_lossy().into_owned();
        let content = std::fs::read(&path).expect("the model can be read");
        let result = parse(&name, &content);
        assert_eq!(result.is_ok(), name.starts_with("accepted-"), "{name} begins with the wrong word: {result:?}");
        let deployed = parse_deployed(&name, &content);
        deployed.iter().flatten().for_each(soundness::check);
        let found = match result {
            Ok(processes) => {
                assert_eq!(summaries(&processes), summaries(&deployed.expect("what is accepted stays accepted")));
                summaries(&processes)
            }
            Err(report) => {
                let outcome = match &deployed {
                    Ok(_) => "would be compiled".to_owned(),
                    Err(report) => format!("would have problems: {}", report.problems.len()),
                };
                let text = render_reports(&[(&name, &report)]);
                format!("{}\nIf it had been deployed before, it {outcome}.\n", text.trim_end())
            }
        };
        let expected = path.with_extension("expected");
        if update {
            std::fs::write(&expected, &found).expect("the expected text can be written");
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != found {
            differing.push(format!("--- {name}\n{found}"));
        }
    }
    assert!(models > 40, "only {models} models were found");
    assert!(differing.is_empty(), "{} models differ from what is expected:\n{}", differing.len(), differing.join("\n"));
}

fn summaries(processes: &[ExecutableProcess]) -> String {
    processes.iter().map(summary).collect::<Vec<_>>().join("\n")
}

fn summary(process: &ExecutableProcess) -> String {
    let mut text = format!("process {} name={:?} version tag={:?}\n", process.id, process.name, process.version_tag);
    if !process.triggered_start_events.is_empty() {
        let _ = writeln!(text, "triggered by {:?}", numbers(&process.triggered_start_events));
    }
    for (index, element) in process.elements.iter().enumerate() {
        let scope = element.flow_scope.map(|scope| scope.0);
        let [incoming, outgoing] =
            [&element.incoming, &element.outgoing].map(|flows| flows.iter().map(|flow| flow.0).collect::<Vec<_>>());
        let kind = if element.event_type == EventType::Unspecified {
            element.element_type.name().to_owned()
        } else {
            format!("{:?} {}", element.event_type, element.element_type.name())
        };
        let _ = writeln!(
            text,
            "{index} {kind} {} name={:?} scope={scope:?} in={incoming:?} out={outgoing:?} {}",
            element.id,
            element.name,
            behavior(element)
        );
        let attached =
            [("boundary events", &element.boundary_events), ("event sub-processes", &element.event_sub_processes)];
        for (name, attached) in attached.into_iter().filter(|(_, attached)| !attached.is_empty()) {
            let _ = writeln!(text, "    {name} {:?}", numbers(attached));
        }
        for (direction, mappings) in [("input", &element.inputs), ("output", &element.outputs)] {
            for mapping in mappings {
                let _ = writeln!(text, "    {direction} {} -> {}", value(&mapping.source), mapping.target.join("."));
            }
        }
        let found = process.find(&element.id, element.element_type);
        assert_eq!(found.map(|found| found.0 as usize), Some(index));
    }
    for (index, flow) in process.flows.iter().enumerate() {
        let condition = flow.condition.as_ref().map(feel::Expression::text);
        let _ =
            writeln!(text, "flow {index} {} {} -> {} condition={condition:?}", flow.id, flow.source.0, flow.target.0);
        assert_eq!(process.flow_by_id[&flow.id].0 as usize, index);
    }
    text
}

fn numbers(indexes: &[ElementIndex]) -> Vec<u32> {
    indexes.iter().map(|index| index.0).collect()
}

fn behavior(element: &Element) -> String {
    match &element.behavior {
        Behavior::Container { none_start_event } => {
            format!("start={:?}", none_start_event.map(|index| index.0))
        }
        Behavior::EventSubProcess { start_event } => format!("start={}", start_event.0),
        Behavior::JobWorker(job) => {
            format!("type={} retries={} headers={}", value(&job.job_type), value(&job.retries), job.headers)
        }
        Behavior::Script(script) => format!("script ={} in {}", script.expression.text(), script.result_variable),
        Behavior::CalledDecision(called) => {
            format!("decides {} {:?} in {}", value(&called.decision_id), called.binding, called.result_variable)
        }
        Behavior::ExclusiveGateway { default } | Behavior::InclusiveGateway { default } => {
            format!("default={:?}", default.map(|index| index.0))
        }
        Behavior::StartEvent(event) | Behavior::IntermediateCatchEvent(event) | Behavior::ReceiveTask(event) => {
            catch_event(event)
        }
        Behavior::BoundaryEvent { attached_to, event } => format!("at={} {}", attached_to.0, catch_event(event)),
        Behavior::EventBasedGateway { events } => format!("events={:?}", numbers(events)),
        Behavior::LinkThrowEvent { target } => format!("link to {}", target.0),
        Behavior::LinkCatchEvent => "link".to_owned(),
        Behavior::EscalationThrowEvent { code } | Behavior::ErrorEndEvent { code } => format!("code={}", value(code)),
        Behavior::TerminateEndEvent => "terminate".to_owned(),
        Behavior::CallActivity(called) => format!(
            "calls {} {:?} all child variables={} all parent variables={}",
            value(&called.process_id),
            called.binding,
            called.propagate_all_child_variables,
            called.propagate_all_parent_variables
        ),
        Behavior::MultiInstanceBody(body) => {
            let mut text = format!("inner={} sequential={}", body.inner.0, body.is_sequential);
            let _ = write!(text, " items ={} as {:?}", body.input_collection.text(), body.input_element);
            if let Some((collection, element)) = &body.output {
                let _ = write!(text, " results ={} in {collection}", element.text());
            }
            if let Some(condition) = &body.completion_condition {
                let _ = write!(text, " until ={}", condition.text());
            }
            text
        }
        Behavior::NoneStartEvent | Behavior::NoneEndEvent | Behavior::PassThrough | Behavior::ParallelGateway => {
            String::new()
        }
    }
}

fn catch_event(event: &CatchEvent) -> String {
    let trigger = match &event.trigger {
        Trigger::Timer(TimerDefinition { kind, source: TimerSource::Constant(timer) }) => {
            format!("{kind:?} due at {:?}", timer.first_due(0))
        }
        Trigger::Timer(TimerDefinition { kind, source: TimerSource::Expression(expression) }) => {
            format!("{kind:?} ={}", expression.text())
        }
        Trigger::Message(message) => {
            let key = message.correlation_key.as_ref().map(feel::Expression::text);
            format!("message {} key={key:?}", value(&message.name))
        }
        Trigger::Error { code } => format!("error {code:?}"),
        Trigger::Escalation { code } => format!("escalation {code:?}"),
    };
    if event.is_interrupting { trigger } else { format!("{trigger} non-interrupting") }
}

fn value(value: &StaticOrExpression) -> String {
    match value {
        StaticOrExpression::Static(text) => format!("{text:?}"),
        StaticOrExpression::Expression(expression) => format!("={}", expression.text()),
    }
}
