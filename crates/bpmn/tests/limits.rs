//! Hostile, broken and very large input.

mod soundness;

use bpmn::{
    MAPPING_TARGET_NAMES_MAX, MAXIMUM_LINKED_RESOURCES, MAXIMUM_NESTING_LEVELS, MAXIMUM_PROBLEMS, MAXIMUM_REPORT_BYTES,
    MAXIMUM_RESOURCE_BYTES, NAME_BYTES_MAX, Place, parse, parse_deployed, render_reports,
};
use chance::Chance;
use model_builder::{Event, ProcessBuilder};

const MODEL: &str = include_str!("models/accepted-parallel-and-sub-process.bpmn");

#[test]
fn every_truncation_of_a_model_is_refused() {
    let complete = MODEL.trim_end();
    for length in 0..complete.len() {
        let report = parse("cut.bpmn", &complete.as_bytes()[..length]).expect_err("a truncated model is refused");
        assert_eq!(report.problems.len(), 1);
        assert_eq!(report.problems[0].place, Place::File);
    }
}

#[test]
fn mutated_models_never_panic() {
    const PIECES: [&str; 12] =
        ["<", ">", "/>", "\"", "&", "=", "id=\"sub\"", "<subProcess>", "</subProcess>", "<!--", "-->", "\u{0}"];
    let models = [
        MODEL,
        include_str!("models/accepted-exclusive-gateway.bpmn"),
        include_str!("models/accepted-mappings.bpmn"),
        include_str!("models/loop-through-sub-process.bpmn"),
        include_str!("models/accepted-boundary-events.bpmn"),
        include_str!("models/accepted-event-sub-processes.bpmn"),
        include_str!("models/accepted-intermediate-and-end-events.bpmn"),
        include_str!("models/accepted-multi-instance.bpmn"),
        include_str!("models/accepted-start-events.bpmn"),
        include_str!("models/accepted-timers.bpmn"),
        include_str!("models/event-based-gateway-flows.bpmn"),
        include_str!("models/link-without-catch-event.bpmn"),
    ];
    let mut chance = Chance::new(42);
    let (mut accepted, mut only_compiled) = (0, 0);
    for round in 0..20_000 {
        let mut bytes = models[round % models.len()].as_bytes().to_vec();
        for _ in 0..=chance.index(3) {
            let position = chance.index(bytes.len());
            match chance.index(4) {
                0 => bytes[position] = chance.number().to_le_bytes()[0],
                1 => drop(bytes.splice(position..position, chance.copy_of(&PIECES).bytes())),
                2 => {
                    let end = (position + chance.index(40)).min(bytes.len());
                    drop(bytes.drain(position..end));
                }
                _ => {
                    let end = (position + chance.index(80)).min(bytes.len());
                    let copy = bytes[position..end].to_vec();
                    drop(bytes.splice(end..end, copy));
                }
            }
        }
        let deployed = parse_deployed("mutated.bpmn", &bytes);
        deployed.iter().flatten().for_each(soundness::check);
        match parse("mutated.bpmn", &bytes) {
            Ok(processes) => {
                accepted += 1;
                assert!(!processes.is_empty());
                processes.iter().for_each(soundness::check);
                assert!(deployed.is_ok_and(|deployed| format!("{deployed:?}") == format!("{processes:?}")));
            }
            Err(report) => {
                only_compiled += usize::from(deployed.is_ok());
                assert!(!report.problems.is_empty());
                assert!(render_reports(&[("mutated.bpmn", &report)]).len() <= MAXIMUM_REPORT_BYTES);
            }
        }
    }
    assert!(accepted > 100, "only {accepted} mutations were accepted: the loop does not reach the compiler");
    assert!(only_compiled > 100, "only {only_compiled} mutations were refused for new deployments alone");
}

#[test]
fn a_file_over_the_size_limit_is_refused() {
    let mut content = MODEL.as_bytes().to_vec();
    content.resize(MAXIMUM_RESOURCE_BYTES, b' ');
    assert!(parse("largest.bpmn", &content).is_ok());
    content.push(b' ');
    let report = parse("too-large.bpmn", &content).expect_err("the file is too large");
    assert!(report.to_string().contains("The file has 4194305 bytes, but at most 4194304 bytes are read."));
}

#[test]
fn hostile_nesting_and_namespaces_are_refused_before_a_tree_is_built() {
    let nested = "<a>".repeat(1_000_000);
    let declarations: String =
        (0..100_000).map(|number| format!("<a xmlns:n{number}=''>")).take(MAXIMUM_NESTING_LEVELS * 2).collect();
    let attributes = format!("<a {}/>", (0..300_000).map(|number| format!("a{number}='' ")).collect::<String>());
    // As many namespaces as may be in scope, and as many elements as fit that each add one more: refused, too.
    let scope: String = (0..64).map(|number| format!(" xmlns:n{number}=''")).collect();
    let many = format!("<a{scope}>{}</a>", "<a xmlns:m=''/>".repeat(200_000));
    let often = many.replace(" xmlns:n63=''", "");
    for content in [nested, declarations, attributes, many, often] {
        let report = parse("hostile.bpmn", content.as_bytes()).expect_err("the file is refused");
        let text = report.to_string();
        let refused = ["nested deeper than", "are accepted.", "Too many XML elements declare namespaces"];
        assert!(refused.iter().any(|fragment| text.contains(fragment)), "{text}");
    }
}

#[test]
fn sub_processes_nested_as_deep_as_xml_allows_are_compiled() {
    let mut builder = ProcessBuilder::new("deep").start("start");
    let levels = MAXIMUM_NESTING_LEVELS - 3;
    for level in 0..levels {
        builder = builder.sub_process(&format!("level{level}")).start(&format!("start{level}"));
    }
    let processes = parse("deep.bpmn", builder.to_xml().as_bytes()).expect("the model is valid");
    assert_eq!(processes[0].elements.len(), 2 + 2 * levels);
    let report = parse("deep.bpmn", builder.sub_process("deeper").start("last").to_xml().as_bytes());
    let text = report.expect_err("the model is nested too deep").to_string();
    assert!(text.contains("nested deeper than 256 levels"), "{text}");
}

/// Not timed: anything quadratic in this crate would make it take minutes.
#[test]
fn the_largest_model_that_fits_is_compiled() {
    let mut builder = ProcessBuilder::new("large").start("start").exclusive_gateway("gateway");
    for number in 0..4_000 {
        // A fan out of one gateway and back into it, each blade with a wait state, and one long chain of manual tasks.
        builder = builder
            .move_to("gateway")
            .condition("= x > 1")
            .service_task(&format!("task{number}"), "work")
            .connect_to("gateway");
    }
    builder = builder.move_to("gateway").default_flow();
    for number in 0..4_000 {
        builder = builder.manual_task(&format!("manual{number}"));
    }
    let xml = builder.to_xml();
    assert!(xml.len() > MAXIMUM_RESOURCE_BYTES / 2);
    let processes = parse("large.bpmn", xml.as_bytes()).expect("the model is valid");
    assert_eq!(processes[0].elements.len(), 8_003);
    assert_eq!(processes[0].flows.len(), 12_001);
    let looped = builder.connect_to("manual0").to_xml();
    let report = parse("large.bpmn", looped.as_bytes()).expect_err("the chain of manual tasks is a loop now");
    assert_eq!(report.problems.len(), 1);
    let text = report.to_string();
    assert!(text.chars().count() < 1_200, "the whole loop is in the report");
    assert!(text.contains("loop: manual0 > manual1 > "), "{text}");
    assert!(text.contains(" ... "), "{text}");
    assert!(text.ends_with("into the loop.\n"), "{text}");
}

/// Not timed: anything that is done again for every event would make it take minutes.
#[test]
fn many_events_share_one_message_one_gateway_and_one_activity() {
    let name = format!("= \"a\"{}", " + \"a\"".repeat(5_000));
    let mut builder = ProcessBuilder::new("shared").start("start").event_based_gateway("gateway");
    builder = builder.catch_event("event", Event::Duration("PT1S")).service_task("task", "work");
    for number in 0..4_000 {
        builder = builder.move_to("gateway").connect_to("event");
        builder = builder.boundary(&format!("boundary{number}"), "task", Event::Message(&name, "= key"));
        builder = builder.receive_task(&format!("receive{number}"), &name, "= key");
    }
    let report = parse("shared.bpmn", builder.to_xml().as_bytes()).expect_err("the boundary events compete");
    assert_eq!(report.problems.len(), 1);
    assert!(report.to_string().contains("Multiple message event definitions with the same name '= \"a\" + "));
    let processes = parse_deployed("shared.bpmn", builder.to_xml().as_bytes()).expect("the model is sound");
    assert_eq!(processes[0].elements.len(), 8_005);
    soundness::check(&processes[0]);
}

/// Not timed: with the steps of an evaluation at run time, this would take hours.
#[test]
fn constants_that_compute_for_long_are_left_to_their_evaluation() {
    let endless = "= if every i in 1..1000000 satisfies i > 0 then \"PT1S\" else \"PT2S\"";
    let mut builder = ProcessBuilder::new("constants").start("start");
    for number in 0..2_000 {
        builder = builder.catch_event(&format!("event{number}"), Event::Duration(endless));
    }
    parse("constants.bpmn", builder.to_xml().as_bytes()).expect("the timers are computed when they start");
    let start = ProcessBuilder::new("timer").start_event("start", Event::Date(endless)).end("end");
    let report = parse("timer.bpmn", start.to_xml().as_bytes()).expect_err("the timer is needed at once");
    assert!(report.to_string().contains("was stopped after 1000 steps"), "{report}");
}

#[test]
fn event_sub_processes_and_multi_instance_activities_are_nested_as_deep_as_xml_allows() {
    let mut builder = ProcessBuilder::new("deep").start("start");
    for level in 0..(MAXIMUM_NESTING_LEVELS - 6) / 2 {
        builder = builder.sub_process(&format!("each{level}")).multi_instance("= items", "item");
        builder = builder.start(&format!("inner{level}")).event_sub_process(&format!("handler{level}"));
        builder = builder.start_event(&format!("error{level}"), Event::Error(""));
    }
    let processes = parse("deep.bpmn", builder.to_xml().as_bytes()).expect("the model is valid");
    soundness::check(&processes[0]);
}

#[test]
fn long_reports_say_how_much_was_left_out() {
    let mut builder = ProcessBuilder::new("many");
    for number in 0..2 * MAXIMUM_PROBLEMS {
        builder = builder.element("complexGateway", &format!("Aufgabe-prüfen-{number}"));
    }
    let report = parse("many.bpmn", builder.to_xml().as_bytes()).expect_err("complex gateways are refused");
    let text = render_reports(&[("many.bpmn", &report), ("again.bpmn", &report)]);
    assert!(text.starts_with(
        "Expected to deploy new resources, but encountered the following errors:\n'many.bpmn': - Element: "
    ));
    assert!(text.len() <= MAXIMUM_REPORT_BYTES);
    let shown = text.matches("ERROR").count();
    assert!(shown > 20);
    assert_eq!(report.problems.len(), MAXIMUM_PROBLEMS);
    assert_eq!(report.further_problems, MAXIMUM_PROBLEMS + 1, "2,000 user tasks, and there is no start event");
    let total = 2 * (report.problems.len() + report.further_problems);
    assert!(text.ends_with(&format!("\nand {} more errors and/or warnings", total - shown)), "{text}");
}

#[test]
fn two_files_are_reported_one_after_the_other() {
    let broken = parse("a.bpmn", b"hello").expect_err("not XML");
    let invalid = parse("b.bpmn", ProcessBuilder::new("p").manual_task("task").to_xml().as_bytes())
        .expect_err("there is no start event");
    assert_eq!(
        render_reports(&[("b.bpmn", &invalid), ("a.bpmn", &broken), ("b.bpmn", &invalid)]),
        "Expected to deploy new resources, but encountered the following errors:\n\
         'b.bpmn': - Element: p (line 3)\n    - ERROR: Must have at least one start event. Draw a none start event in the process.\n\n\
         'a.bpmn': The file is not well-formed XML: unknown token at 1:1.\n\
         'b.bpmn': - Element: p (line 3)\n    - ERROR: Must have at least one start event. Draw a none start event in the process.\n"
    );
}

/// A model with one name of every kind, each with `bytes` bytes; what differs is the first letter.
fn model_of_names(bytes: usize, targets: usize) -> String {
    let name = |letter: &str| letter.repeat(bytes);
    let target = vec!["t"; targets].join(".");
    ProcessBuilder::new("P")
        .version_tag(&name("v"))
        .start(&name("s"))
        .service_task(&name("j"), &name("J"))
        .input("=1", &target)
        .output("=1", &format!("{}.{}", name("o"), name("O")))
        .service_task("loop", "work")
        .multi_instance("=[1]", &name("i"))
        .output_collection(&name("c"), "=1")
        .script_task("script", "=1", &name("r"))
        .called_decision("decision", &name("d"), "result")
        .call_activity("call", &name("a"))
        .bind_to_version_tag(&name("b"))
        .catch_event("catch", Event::Message(&name("m"), "=1"))
        .exclusive_gateway(&name("g"))
        .error_end("failed", &name("e"))
        .to_xml()
        .replace("process id=\"P\"", &format!("process id=\"{}\"", name("p")))
}

#[test]
fn names_of_every_kind_have_a_limit_that_names_their_element() {
    let longest = model_of_names(NAME_BYTES_MAX, MAPPING_TARGET_NAMES_MAX);
    parse("longest.bpmn", longest.as_bytes()).expect("names at the limit are accepted");

    let too_long = model_of_names(NAME_BYTES_MAX + 1, MAPPING_TARGET_NAMES_MAX + 1);
    let report = parse("long.bpmn", too_long.as_bytes()).expect_err("the names are too long");
    for (letter, attribute) in [
        ("p", "id"),
        ("v", "value"),
        ("s", "id"),
        ("j", "id"),
        ("J", "type"),
        ("o", "target"),
        ("i", "inputElement"),
        ("c", "outputCollection"),
        ("r", "resultVariable"),
        ("d", "decisionId"),
        ("a", "processId"),
        ("b", "versionTag"),
        ("m", "name"),
        ("g", "id"),
        ("e", "errorCode"),
    ] {
        let expected = format!(
            "Attribute '{attribute}' must have at most 512 bytes, but it has 513: '{}…'. Choose a shorter name.",
            letter.repeat(40)
        );
        let problem = report.problems.iter().find(|problem| problem.message == expected);
        assert!(matches!(&problem.expect(&expected).place, Place::Element(path) if !path.is_empty()));
    }
    let targets = "Attribute 'target' must have at most 64 names with dots between, but it has 65:";
    assert!(report.problems.iter().any(|problem| problem.message.starts_with(targets)), "{report}");
    // What was deployed before stays as it is.
    parse_deployed("long.bpmn", too_long.as_bytes()).expect("a deployed model is still read");
}

#[test]
fn a_target_of_a_megabyte_is_refused_by_name() {
    let target = vec!["a"; 500_000].join(".");
    let process = ProcessBuilder::new("deep").start("start").service_task("task", "work").input("=1", &target);
    let report = parse("deep.bpmn", process.to_xml().as_bytes()).expect_err("the target is too deep").to_string();
    assert!(report.contains("- Element: task > extensionElements > ioMapping > input"), "{report}");
    assert!(report.contains("at most 64 names with dots between, but it has 500000"), "{report}");
}

#[test]
fn a_service_task_links_a_limited_number_of_resources() {
    let model = |count: usize, name: &str| {
        let resource = format!("<zeebe:linkedResource resourceId=\"{name}\" resourceType=\"t\"/>");
        let resources = format!("<zeebe:linkedResources>{}</zeebe:linkedResources>", resource.repeat(count));
        let xml = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e").to_xml();
        xml.replacen("<zeebe:taskDefinition", &format!("{resources}<zeebe:taskDefinition"), 1)
    };
    parse("p.bpmn", model(MAXIMUM_LINKED_RESOURCES, &"n".repeat(NAME_BYTES_MAX)).as_bytes())
        .expect("as many as possible");
    let report = parse("p.bpmn", model(MAXIMUM_LINKED_RESOURCES + 1, "n").as_bytes()).expect_err("one more");
    let text = report.to_string();
    assert!(text.contains("Must link at most 100 resources, but there are 101."), "{text}");
    let report = parse("p.bpmn", model(1, &"n".repeat(NAME_BYTES_MAX + 1)).as_bytes()).expect_err("a long name");
    assert!(report.to_string().contains("Attribute 'resourceId' must have at most 512 bytes"), "{report}");
}
