//! What is refused, and with which words.

mod support;

use dmn::{MAXIMUM_PROBLEMS, parse};
use support::{decision, definitions, literal, model, report, table};

/// Each content must be refused with a report that contains the text.
fn refused(cases: &[(&str, String, &str)]) {
    for (title, content, expected) in cases {
        let found = report(content);
        assert!(found.contains(expected), "{title}: expected\n{expected}\nbut found\n{found}");
    }
}

#[test]
fn a_problem_names_the_element_and_its_line() {
    let content = decision("first", &[], &literal("1")) + &decision("second", &[], &literal("1 +"));
    let problems = parse(definitions(&content).as_bytes()).expect_err("the expression is broken").problems;
    let [problem] = &problems[..] else { panic!("one problem: {problems:?}") };
    assert_eq!(problem.element_id.as_deref(), Some("second"));
    assert_eq!(problem.element_type.as_deref(), Some("literalExpression"));
    assert_eq!(problem.path.as_deref(), Some("second > literalExpression"));
    assert_eq!(problem.line, Some(4));
    assert_eq!(
        problem.message,
        "FEEL expression: Failed to parse the expression '1 +': expected an expression at line 1, column 4, but found the end \
         of the expression."
    );
    assert_eq!(
        problem.to_string(),
        format!("- Element: second > literalExpression (line 4)\n    - ERROR: {}", problem.message)
    );
}

#[test]
fn all_problems_of_a_file_are_told() {
    let content = decision("a", &["nothing"], &literal(""))
        + &decision("b", &[], &table("hitPolicy=\"BEST\"", &["x"], &["y"], &["(;- | 1", "1;2 | 3"]));
    let found = report(&content);
    for expected in [
        "'a' requires the decision 'nothing', but there is none with this id in the file.",
        "must not be empty.",
        "The hit policy 'BEST' is unknown.",
        "FEEL unary-tests: Failed to parse the expression '('",
        "The rule has 2 input entries and 1 output entries, but the table has 1 inputs and 1 outputs.",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn missing_and_repeated_names_and_ids_are_refused() {
    refused(&[
        (
            "no name",
            format!("<decision id=\"d\">{}</decision>", literal("1")),
            "A 'decision' must have the attribute 'name'.",
        ),
        (
            "the same id",
            decision("d", &[], &literal("1")) + &decision("d", &[], &literal("2")),
            "The id 'd' is used more than once in this file.",
        ),
        (
            "a name in place of an id",
            decision("d", &[], &literal("1")) + "<inputData name=\"d\"/>",
            "The name 'd' stands for the missing id, but is used already.",
        ),
        (
            "a context entry",
            decision(
                "d",
                &[],
                &format!(
                    "<context><contextEntry>{0}</contextEntry><contextEntry>{0}</contextEntry></context>",
                    literal("1")
                ),
            ),
            "Every context entry but the last one must have a variable with a name.",
        ),
        ("an output", decision("d", &[], &table("", &["x"], &["y", ""], &[])), "no output name defined for ``."),
    ]);
}

#[test]
fn requirements_lead_to_what_there_is_and_have_no_cycles() {
    let cyclic = |names: &str| format!("Cyclic dependencies between {names} detected.");
    refused(&[
        (
            "another file",
            decision("d", &["x"], &literal("1")).replace("#x", "http://other#x"),
            "'d' requires the decision 'x' of the model 'http://other', but imports are not supported.",
        ),
        (
            "no decision",
            decision("d", &["f"], &literal("1")) + &model("f", &[], &[], &literal("1")),
            "'#f' is no decision, but one is required here.",
        ),
        (
            "decisions",
            decision("a", &["b"], &literal("1")) + &decision("b", &["a"], &literal("1")),
            &cyclic("decisions"),
        ),
        ("a model", model("f", &["f"], &[], &literal("1")), &cyclic("BKMs")),
        (
            "a service",
            "<decisionService id=\"s\" name=\"s\"><outputDecision href=\"#d\"/></decisionService>".to_owned()
                + &decision("d", &["+s"], &literal("s()")),
            &cyclic("decisions and what they call"),
        ),
        (
            "types",
            "<itemDefinition name=\"t\"><typeRef>t</typeRef></itemDefinition>".to_owned(),
            "The type 't' refers to itself",
        ),
    ]);
}

#[test]
fn what_is_not_supported_is_named() {
    refused(&[
        (
            "a language",
            decision("d", &[], "<literalExpression expressionLanguage=\"groovy\"><text>1</text></literalExpression>"),
            "Expression language 'groovy' is not supported.",
        ),
        (
            "a function of another language",
            decision("d", &[], "<functionDefinition kind=\"Java\"><context/></functionDefinition>"),
            "Functions of kind 'Java' are not supported.",
        ),
        (
            "an aggregation of several outputs",
            decision("d", &[], &table("hitPolicy=\"COLLECT\" aggregation=\"SUM\"", &["x"], &["a", "b"], &[])),
            "hit policy 'COLLECT' with aggregator is not defined for compound output.",
        ),
        (
            "a relation",
            decision("d", &[], "<relation><column name=\"a\"/><row/></relation>"),
            "expected row with '1' elements but found '0'.",
        ),
    ]);
}

#[test]
fn files_that_are_no_dmn_are_refused_as_a_whole() {
    let text = |content: &[u8]| parse(content).expect_err("the file is refused").to_string();
    assert!(text(b"").contains("The file is not well-formed XML"));
    assert!(text(b"\xff").contains("The file is not valid UTF-8"));
    assert!(text(b"<!DOCTYPE a><a/>").contains("document type declaration"));
    assert!(
        text(b"<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL'/>").contains("a DMN file starts with")
    );
}

#[test]
fn a_report_is_bounded() {
    let broken: String = (0..2_000).map(|number| decision(&format!("d{number}"), &[], &literal("((("))).collect();
    let report = parse(definitions(&broken).as_bytes()).expect_err("the expressions are broken");
    assert_eq!(report.problems.len(), MAXIMUM_PROBLEMS);
    assert_eq!(report.further_problems, 1_000);
    assert!(report.to_string().ends_with("and 1000 more errors"));
    let long = "x".repeat(100_000);
    let report =
        parse(definitions(&decision("d", &[&long], &literal("1"))).as_bytes()).expect_err("there is no such decision");
    assert!(report.to_string().len() < 3_000);
}
