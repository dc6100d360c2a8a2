//! Every file in `tests/models` is parsed and compared with the text beside it: the model's summary, or the report.
//! `UPDATE_EXPECTED=1 cargo test -p osmia-bpmn` rewrites the texts; review them as a difference.

use std::fmt::Write;
use std::path::Path;

use osmia_bpmn::model::{Behavior, Element, ExecutableProcess, StaticOrExpression};
use osmia_bpmn::{parse, render_reports};

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
        let found = match result {
            Ok(processes) => processes.iter().map(summary).collect::<Vec<_>>().join("\n"),
            Err(report) => render_reports(&[(&name, &report)]),
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

fn summary(process: &ExecutableProcess) -> String {
    let mut text = format!("process {} name={:?} version tag={:?}\n", process.id, process.name, process.version_tag);
    for (index, element) in process.elements.iter().enumerate() {
        let scope = element.flow_scope.map(|scope| scope.0);
        let [incoming, outgoing] =
            [&element.incoming, &element.outgoing].map(|flows| flows.iter().map(|flow| flow.0).collect::<Vec<_>>());
        let _ = writeln!(
            text,
            "{index} {} {} name={:?} scope={scope:?} in={incoming:?} out={outgoing:?} {}",
            element.element_type.name(),
            element.id,
            element.name,
            behavior(element)
        );
        for (direction, mappings) in [("input", &element.inputs), ("output", &element.outputs)] {
            for mapping in mappings {
                let _ = writeln!(text, "    {direction} {} -> {}", value(&mapping.source), mapping.target.join("."));
            }
        }
        assert_eq!(process.element_by_id[&element.id].0 as usize, index);
    }
    for (index, flow) in process.flows.iter().enumerate() {
        let condition = flow.condition.as_ref().map(feel::Expression::text);
        let _ =
            writeln!(text, "flow {index} {} {} -> {} condition={condition:?}", flow.id, flow.source.0, flow.target.0);
        assert_eq!(process.flow_by_id[&flow.id].0 as usize, index);
    }
    text
}

fn behavior(element: &Element) -> String {
    match &element.behavior {
        Behavior::Container { none_start_event } => {
            format!("start={:?}", none_start_event.map(|index| index.0))
        }
        Behavior::JobWorker(job) => {
            format!("type={} retries={} headers={}", value(&job.job_type), value(&job.retries), job.headers)
        }
        Behavior::ExclusiveGateway { default } => {
            format!("default={:?}", default.map(|index| index.0))
        }
        _ => String::new(),
    }
}

fn value(value: &StaticOrExpression) -> String {
    match value {
        StaticOrExpression::Static(text) => format!("{text:?}"),
        StaticOrExpression::Expression(expression) => format!("={}", expression.text()),
    }
}
