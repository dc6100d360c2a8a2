//! Every file in `tests/models` is parsed and compared with the text next to it: the model's summary, or the report and
//! what would become of the file if it had been deployed before. `UPDATE_EXPECTED=1 cargo test -p bpmn` rewrites the
//! texts; review them as a difference.

mod soundness;

use std::fmt::Write;
use std::path::Path;

use bpmn::model::{
    Behavior, Candidates, CatchEvent, ConditionDefinition, Element, ElementIndex, EventType, ExecutableProcess,
    Priority, StaticOrExpression, TimerDefinition, TimerSource, Trigger, UserTask, UserTaskForm,
};
use bpmn::{parse, parse_deployed, render_reports};

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
                // A deployment keeps what `parse` compiled, and a start compiles the file again: it must be the same.
                let deployed = deployed.expect("what is accepted stays accepted");
                assert_eq!(format!("{processes:?}"), format!("{deployed:?}"), "{name}");
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
        for listener in element.start_listeners.iter().chain(&element.end_listeners) {
            let job = &listener.job;
            let (job_type, retries) = (value(&job.job_type), value(&job.retries));
            let event_type = listener.event_type.name();
            let _ =
                writeln!(text, "    listener {event_type} type={job_type} retries={retries} headers={}", job.headers);
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
        Behavior::UserTask(task) => user_task(task),
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
        Behavior::CompensationBoundaryEvent { attached_to, handler } => {
            format!("at={} undone by {}", attached_to.0, handler.0)
        }
        Behavior::CompensationThrowEvent { activity } => format!("undoes {:?}", activity.map(|index| index.0)),
        Behavior::EventBasedGateway { events } => format!("events={:?}", numbers(events)),
        Behavior::LinkThrowEvent { target } => format!("link to {}", target.0),
        Behavior::LinkCatchEvent => "link".to_owned(),
        Behavior::EscalationThrowEvent { code } | Behavior::ErrorEndEvent { code } => format!("code={}", value(code)),
        Behavior::SignalThrowEvent { name } => format!("signal {}", value(name)),
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
        Behavior::AdHocSubProcess(ad_hoc) => {
            let mut text = format!(
                "inner={} cancels={} chooses {:?} of {}",
                ad_hoc.inner_instance.0,
                ad_hoc.cancel_remaining_instances,
                numbers(&ad_hoc.choices.elements),
                ad_hoc.choices.document
            );
            if let Some(collection) = &ad_hoc.active_elements_collection {
                let _ = write!(text, " begins ={}", collection.text());
            }
            if let Some(job) = &ad_hoc.job {
                let _ = write!(text, " asks {}", value(&job.job_type));
            }
            if let Some((collection, element)) = &ad_hoc.output {
                let _ = write!(text, " results ={} in {collection}", element.text());
            }
            if let Some(condition) = &ad_hoc.completion_condition {
                let _ = write!(text, " until ={}", condition.text());
            }
            text
        }
        Behavior::AdHocSubProcessInnerInstance => String::new(),
        Behavior::NoneStartEvent | Behavior::NoneEndEvent | Behavior::PassThrough | Behavior::ParallelGateway => {
            String::new()
        }
    }
}

fn user_task(task: &UserTask) -> String {
    let mut text = if task.is_native { "native" } else { "job" }.to_owned();
    let attributes = [("assignee", &task.assignee), ("due", &task.due_date), ("follow-up", &task.follow_up_date)];
    for (name, attribute) in attributes {
        let _ = attribute.as_ref().map(|attribute| write!(text, " {name}={}", value(attribute)));
    }
    for (name, candidates) in [("groups", &task.candidate_groups), ("users", &task.candidate_users)] {
        let _ = match candidates {
            None => Ok(()),
            Some(Candidates::Static(names)) => write!(text, " {name}={names:?}"),
            Some(Candidates::Expression(expression)) => write!(text, " {name}=={}", expression.text()),
        };
    }
    let _ = match &task.priority {
        None => Ok(()),
        Some(Priority::Static(priority)) => write!(text, " priority={priority}"),
        Some(Priority::Expression(expression)) => write!(text, " priority=={}", expression.text()),
    };
    let _ = match &task.form {
        None => Ok(()),
        Some(UserTaskForm::Key(key)) => write!(text, " form key={key:?}"),
        Some(UserTaskForm::Id { id, binding }) => write!(text, " form={} {binding:?}", value(id)),
        Some(UserTaskForm::Reference(reference)) => write!(text, " form elsewhere={}", value(reference)),
    };
    for listener in &task.listeners {
        let (event_type, job) = (listener.event_type.name(), &listener.job);
        let _ = write!(text, " {event_type} type={} retries={}", value(&job.job_type), value(&job.retries));
    }
    text + " headers=" + &task.headers
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
        Trigger::Signal(signal) => format!("signal {}", value(&signal.name)),
        Trigger::Condition(definition) => {
            let ConditionDefinition { condition, text, variable_events } = definition;
            format!("condition {text:?} reads {:?} on {variable_events:?}", condition.variables())
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
