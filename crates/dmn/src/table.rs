//! Decision tables, from XML to what is evaluated.

use std::sync::Arc;

use feel::{ConstantTest, Expression, Names, Value};
use roxmltree::Node;

use crate::expressions::{expression, unary_tests};
use crate::index::RuleIndex;
use crate::model::{Aggregation, DecisionTable, HitPolicy, InputTest, Rule, RuleResult, TableInput, TableOutput};
use crate::report::Problems;
use crate::xml::{child, children, present, trimmed_text};

/// How much of an input expression is shown if the input has no label.
const SHOWN_CHARACTERS: usize = 30;

/// The decision table, or none if a problem was added.
pub(crate) fn table(node: Node, names: &Names, problems: &mut Problems) -> Option<DecisionTable> {
    let hit_policy = hit_policy(node, problems);
    let inputs: Vec<Option<TableInput>> =
        children(node, "input").map(|input| self::input(input, names, problems)).collect();
    let outputs: Vec<Node> = children(node, "output").collect();
    if outputs.is_empty() {
        problems.add(node, "A decision table must have an output. Add the column with the results.");
        return None;
    }
    if outputs.len() > 1 {
        check_compound(node, &outputs, hit_policy, problems);
    }
    let outputs: Vec<Option<TableOutput>> =
        outputs.into_iter().map(|output| self::output(output, names, problems)).collect();
    let rules: Vec<Option<Rule>> =
        children(node, "rule").map(|rule| self::rule(rule, inputs.len(), outputs.len(), names, problems)).collect();
    let rules: Vec<Rule> = rules.into_iter().collect::<Option<_>>()?;
    Some(DecisionTable {
        hit_policy: hit_policy?,
        inputs: inputs.into_iter().collect::<Option<_>>()?,
        outputs: outputs.into_iter().collect::<Option<_>>()?,
        index: RuleIndex::build(&rules),
        rules,
    })
}

fn hit_policy(node: Node, problems: &mut Problems) -> Option<HitPolicy> {
    let aggregation = match present(node, "aggregation") {
        None => None,
        Some("SUM") => Some(Aggregation::Sum),
        Some("MIN") => Some(Aggregation::Minimum),
        Some("MAX") => Some(Aggregation::Maximum),
        Some("COUNT") => Some(Aggregation::Count),
        Some(other) => {
            problems.add(node, format!("The aggregation '{other}' is unknown. Use SUM, MIN, MAX or COUNT."));
            return None;
        }
    };
    match present(node, "hitPolicy").unwrap_or("UNIQUE") {
        "UNIQUE" => Some(HitPolicy::Unique),
        "FIRST" => Some(HitPolicy::First),
        "PRIORITY" => Some(HitPolicy::Priority),
        "ANY" => Some(HitPolicy::Any),
        "COLLECT" => Some(HitPolicy::Collect(aggregation)),
        "RULE ORDER" => Some(HitPolicy::RuleOrder),
        "OUTPUT ORDER" => Some(HitPolicy::OutputOrder),
        other => {
            problems.add(
                node,
                format!(
                    "The hit policy '{other}' is unknown. Use UNIQUE, FIRST, PRIORITY, ANY, COLLECT, RULE ORDER or OUTPUT \
                     ORDER."
                ),
            );
            None
        }
    }
}

fn check_compound(node: Node, outputs: &[Node], hit_policy: Option<HitPolicy>, problems: &mut Problems) {
    if let Some(HitPolicy::Collect(Some(_))) = hit_policy {
        problems.add(
            node,
            "hit policy 'COLLECT' with aggregator is not defined for compound output. Keep one output, or remove the aggregation.",
        );
    }
    for output in outputs {
        if present(*output, "name").is_none() {
            let label = output.attribute("label").unwrap_or_default();
            problems.add(*output, format!("no output name defined for `{label}`. Give every output a name."));
        }
    }
}

fn input(node: Node, names: &Names, problems: &mut Problems) -> Option<TableInput> {
    let Some(node_of_expression) = child(node, "inputExpression") else {
        problems.add(node, "An input of a decision table must have an input expression. Add one.");
        return None;
    };
    let expression = expression(node_of_expression, names, problems)?;
    let name = match node.attribute("label") {
        Some(label) => Arc::from(label),
        None => expression.text().chars().take(SHOWN_CHARACTERS).collect::<String>().into(),
    };
    Some(TableInput { id: Arc::from(node.attribute("id").unwrap_or_default()), name, expression })
}

fn output(node: Node, names: &Names, problems: &mut Problems) -> Option<TableOutput> {
    let default = match child(node, "defaultOutputEntry") {
        Some(entry) => Some(expression(entry, names, problems)?),
        None => None,
    };
    let name = node.attribute("name").unwrap_or_default();
    let values = child(node, "outputValues").and_then(|values| child(values, "text")).map(trimmed_text);
    Some(TableOutput {
        id: Arc::from(node.attribute("id").unwrap_or_default()),
        name: Arc::from(name),
        shown_name: Arc::from(node.attribute("label").unwrap_or(name)),
        priorities: values.map(|text| priorities(&text)).unwrap_or_default(),
        default,
    })
}

/// The output values. What is no list of constants is taken literally, piece by piece between the commas.
fn priorities(text: &str) -> Vec<Value> {
    let list = Expression::parse(&format!("[{text}]")).ok().and_then(|expression| expression.constant());
    match list {
        Some(Value::List(items)) => items.to_vec(),
        _ => text.split(',').map(|value| Value::string(value.trim().trim_matches(['"', '\'']))).collect(),
    }
}

fn rule(node: Node, inputs: usize, outputs: usize, names: &Names, problems: &mut Problems) -> Option<Rule> {
    let mut complete = true;
    let mut tests = Vec::with_capacity(inputs);
    for entry in children(node, "inputEntry") {
        match unary_tests(entry, names, problems) {
            Ok(None) => tests.push(InputTest::Any),
            Ok(Some(found)) => tests.push(match found.constants() {
                Some(constants) if constants.iter().any(|test| matches!(test, ConstantTest::Any)) => InputTest::Any,
                Some(constants) => InputTest::Constants(constants.into()),
                None => InputTest::Tests(found),
            }),
            Err(()) => complete = false,
        }
    }
    let mut results = Vec::with_capacity(outputs);
    for entry in children(node, "outputEntry") {
        match expression(entry, names, problems) {
            Some(found) => results.push(match found.constant() {
                Some(value) => RuleResult::Constant(value),
                None => RuleResult::Expression(found),
            }),
            None => complete = false,
        }
    }
    if complete && (tests.len(), results.len()) != (inputs, outputs) {
        complete = false;
        problems.add(
            node,
            format!(
                "The rule has {} input entries and {} output entries, but the table has {inputs} inputs and {outputs} outputs. \
                 Give the rule one entry for each.",
                tests.len(),
                results.len()
            ),
        );
    }
    complete.then(|| Rule { id: Arc::from(node.attribute("id").unwrap_or_default()), tests, results })
}
