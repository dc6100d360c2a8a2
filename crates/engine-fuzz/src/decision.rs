//! Random graphs of decisions.

use model_builder::xml::{escape, tag};

use crate::choices::Choices;
use crate::expression::expression;
use crate::names::{DECISIONS, TAGS};

const HIT_POLICIES: &[(&str, &str)] = &[
    ("UNIQUE", ""),
    ("FIRST", ""),
    ("ANY", ""),
    ("COLLECT", ""),
    ("COLLECT", "SUM"),
    ("COLLECT", "COUNT"),
    ("COLLECT", "MIN"),
    ("RULE ORDER", ""),
    ("OUTPUT ORDER", ""),
    ("PRIORITY", ""),
];

/// Makes a DMN file. A decision may require those before it and the business knowledge model `again`.
pub(crate) fn graph(choices: &mut Choices<'_>) -> String {
    let count = 1 + choices.below(DECISIONS.len());
    let mut content = String::new();
    for (number, id) in DECISIONS[..count].iter().enumerate() {
        let mut inside = String::new();
        if choices.percent(15) {
            let version_tag = choices.pick(TAGS);
            inside += &tag("extensionElements", &[], &tag("zeebe:versionTag", &[("value", version_tag)], ""));
        }
        inside += &tag("variable", &[("id", &format!("v-{id}")), ("name", id)], "");
        for required in &DECISIONS[..number] {
            let reference = tag("requiredDecision", &[("href", &format!("#{required}"))], "");
            inside += &tag("informationRequirement", &[("id", &format!("r-{id}-{required}"))], &reference);
        }
        let reference = tag("requiredKnowledge", &[("href", "#again")], "");
        inside += &tag("knowledgeRequirement", &[("id", &format!("k-{id}"))], &reference);
        inside += &logic(choices, number, 0);
        content += &tag("decision", &[("id", id), ("name", id)], &inside);
    }
    let body = literal(&expression(choices, 'a').replace("missing", "n(n)"));
    let function = tag("encapsulatedLogic", &[], &(tag("formalParameter", &[("name", "n")], "") + &body));
    let knowledge = tag("variable", &[("id", "v-again"), ("name", "again")], "") + &function;
    content = with_own_ids(&content);
    content += &tag("businessKnowledgeModel", &[("id", "again"), ("name", "again")], &knowledge);
    let attributes = [
        ("xmlns", "https://www.omg.org/spec/DMN/20191111/MODEL/"),
        ("xmlns:zeebe", "http://camunda.org/schema/zeebe/1.0"),
        ("id", choices.pick(&["g0", "g1"])),
        ("name", "graph"),
        ("namespace", "n"),
    ];
    tag("definitions", &attributes, &content)
}

/// Gives every id that is marked with `@` a number of its own.
fn with_own_ids(content: &str) -> String {
    let mut parts = content.split(" id=\"@");
    let mut out = parts.next().unwrap_or("").to_owned();
    for (number, part) in parts.enumerate() {
        out += &format!(" id=\"i{number}-{part}");
    }
    out
}

/// An expression in which what is missing elsewhere is a decision before this one.
fn asking(choices: &mut Choices<'_>, number: usize, kind: char) -> String {
    let text = expression(choices, kind);
    match number.checked_sub(1) {
        Some(before) => text.replace("missing", DECISIONS[before]),
        None => text.replace("missing", "again(again)"),
    }
}

fn literal(text: &str) -> String {
    tag("literalExpression", &[], &tag("text", &[], &escape(text)))
}

fn logic(choices: &mut Choices<'_>, number: usize, depth: usize) -> String {
    let kind = if depth > 3 { 0 } else { choices.below(10) };
    match kind {
        4..=6 => table(choices, number),
        7 => {
            let one = logic(choices, number, depth + 1);
            let copies = copies(choices, &one);
            tag("list", &[], &one.repeat(copies))
        }
        8 => {
            let entry = |name: usize, logic: &str| {
                let variable = tag("variable", &[("name", &format!("e{name}"))], "");
                tag("contextEntry", &[], &(variable + logic))
            };
            let one = logic(choices, number, depth + 1);
            let entries: String = (0..copies(choices, &one)).map(|name| entry(name, &one)).collect();
            tag("context", &[], &entries)
        }
        9 => {
            let list = literal(&asking(choices, number, 'l'));
            let inside = logic(choices, number, depth + 1);
            let content = tag("in", &[], &list) + &tag("return", &[], &inside);
            tag("for", &[("iteratorVariable", "x")], &content)
        }
        _ => literal(&asking(choices, number, 'a')),
    }
}

/// How often something is there. What is repeated may be repetitions itself: more than a few times what a deployment may have
/// would be refused for its size, and only the making of it would be tested.
fn copies(choices: &mut Choices<'_>, one: &str) -> usize {
    const ALL_BYTES_MAX: usize = 16 << 20;
    (1 + choices.size(200)).min(1 + ALL_BYTES_MAX / one.len().max(1))
}

fn table(choices: &mut Choices<'_>, number: usize) -> String {
    let (policy, aggregation) = choices.pick(HIT_POLICIES);
    let mut attributes = vec![("hitPolicy", policy)];
    if !aggregation.is_empty() {
        attributes.push(("aggregation", aggregation));
    }
    let input = tag("text", &[], &escape(&asking(choices, number, 'n')));
    let input = tag("inputExpression", &[("id", "@expression")], &input);
    let mut content = tag("input", &[("id", "@in")], &input);
    let outputs = if aggregation.is_empty() { 1 + choices.below(2) } else { 1 };
    for output in 0..outputs {
        content += &tag("output", &[("id", &format!("@out{output}")), ("name", &format!("o{output}"))], "");
    }
    let rules = choices.size(1_000);
    let texts: Vec<String> = (0..4).map(|_| asking(choices, number, 'a')).collect();
    for rule in 0..rules {
        let test = match rule % 4 {
            0 => "-".to_owned(),
            1 => format!("< {rule}"),
            2 => format!("[{}..{}]", rule, rule + 2),
            _ => format!("? = {rule} or count(items) = n"),
        };
        let mut cells = tag("inputEntry", &[("id", &format!("@i{rule}"))], &tag("text", &[], &escape(&test)));
        for output in 0..outputs {
            let text = tag("text", &[], &escape(&texts[(rule + output) % texts.len()]));
            cells += &tag("outputEntry", &[("id", &format!("@o{rule}-{output}"))], &text);
        }
        content += &tag("rule", &[("id", &format!("@r{rule}"))], &cells);
    }
    attributes.push(("id", "@table"));
    tag("decisionTable", &attributes, &content)
}
