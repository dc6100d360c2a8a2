//! The first difference of two outcomes, told with the expressions that it comes from.

use feel::{Environment, UnaryTests};

use serde_json::Value;

use super::generator::Case;
use super::model::{Logic, Model, Rule, Table};

/// What differs, what it is on the reference's side and what on ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub case: String,
    pub theirs: String,
    pub ours: String,
}

fn difference(case: impl Into<String>, theirs: impl ToString, ours: impl ToString) -> Difference {
    Difference { case: case.into(), theirs: theirs.to_string(), ours: ours.to_string() }
}

/// The first difference of the outcomes of a case.
pub fn find(case: &Case, theirs: &Value, ours: &Value) -> Option<Difference> {
    if let Some(exception) = theirs["exception"].as_str() {
        return Some(difference("exception", exception, ours));
    }
    match (theirs["invalid"].as_str(), ours["invalid"].as_str()) {
        (None, None) => {}
        // The texts are those of each parser.
        (Some(_), Some(_)) => return None,
        (theirs, ours) => {
            return Some(difference("file", theirs.unwrap_or("valid"), ours.unwrap_or("valid")));
        }
    }
    let (theirs, ours) = (&once(&case.model, theirs), &once(&case.model, ours));
    let mut found = evaluated(case, theirs, ours).or_else(|| result(theirs, ours))?;
    if theirs["failure"] != ours["failure"] && found.case != "failure" {
        for (told, outcome) in [(&mut found.theirs, theirs), (&mut found.ours, ours)] {
            if let Some(message) = outcome["failure"].as_str() {
                *told += &format!("; fails: {message}");
            }
        }
    }
    Some(found)
}

/// The outcome with a decision that several others require once. The reference evaluates it for each of them.
fn once(model: &Model, outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    if model.has_shared_decision() {
        let kept: Vec<Value> = unrepeated(items(&outcome, "evaluated")).into_iter().cloned().collect();
        outcome["evaluated"] = kept.into();
    }
    outcome
}

fn items<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn evaluated(case: &Case, theirs: &Value, ours: &Value) -> Option<Difference> {
    let (theirs, ours) = (items(theirs, "evaluated"), items(ours, "evaluated"));
    let ids = |decisions: &[&Value]| decisions.iter().map(|one| one["id"].to_string()).collect::<Vec<_>>().join(" ");
    let [all_theirs, all_ours] = [theirs, ours].map(|decisions| decisions.iter().collect::<Vec<_>>());
    if ids(&all_theirs) == ids(&all_ours) {
        return theirs.iter().zip(ours).find_map(|(theirs, ours)| decision(case, theirs, ours));
    }
    let [some_theirs, some_ours] = [theirs, ours].map(unrepeated);
    let pairs = some_theirs.iter().zip(&some_ours).take_while(|(theirs, ours)| theirs["id"] == ours["id"]);
    // The parts of a decision tell more than what came after them.
    pairs.into_iter().find_map(|(theirs, ours)| decision(case, theirs, ours)).or_else(|| {
        let is_repeated = theirs.len() > ours.len() && ids(&some_theirs) == ids(&some_ours);
        let repeated = if is_repeated { " but for functions that are repeated" } else { "" };
        Some(difference(format!("decisions{repeated}"), ids(&all_theirs), ids(&all_ours)))
    })
}

/// The decisions without those that are the same as one before them: functions that were called again.
fn unrepeated(decisions: &[Value]) -> Vec<&Value> {
    let mut kept: Vec<&Value> = Vec::new();
    for decision in decisions {
        if !kept.iter().any(|known| same(known, decision)) {
            kept.push(decision);
        }
    }
    kept
}

fn decision(case: &Case, theirs: &Value, ours: &Value) -> Option<Difference> {
    let id = theirs["id"].as_str().unwrap_or_default();
    for part in ["name", "type"] {
        if !same(&theirs[part], &ours[part]) {
            return Some(difference(format!("{part} of {id}"), &theirs[part], &ours[part]));
        }
    }
    let logic = case.model.logic(id);
    let Some(Logic::Table(table)) = logic else {
        let shown = || format!("logic {}", logic.map(describe).unwrap_or_default());
        return (!same(theirs, ours)).then(|| difference(shown(), &theirs["output"], &ours["output"]));
    };
    inputs(table, theirs, ours)
        .or_else(|| rules(case, table, theirs, ours))
        .or_else(|| results(table, theirs, ours))
        .or_else(|| output(table, theirs, ours))
}

fn inputs(table: &Table, theirs: &Value, ours: &Value) -> Option<Difference> {
    let (theirs, ours) = (items(theirs, "inputs"), items(ours, "inputs"));
    if theirs.len() != ours.len() {
        let all: Vec<&str> = table.inputs.iter().map(|input| &*input.expression).collect();
        return Some(difference(format!("inputs `{}`", all.join("` `")), theirs.len(), ours.len()));
    }
    let (place, (theirs, ours)) =
        theirs.iter().zip(ours).enumerate().find(|(_, (theirs, ours))| !same(theirs, ours))?;
    let part = ["id", "name"].into_iter().find(|part| !same(&theirs[part], &ours[part])).unwrap_or("value");
    Some(difference(format!("input {part} `{}`", table.inputs[place].expression), &theirs[part], &ours[part]))
}

/// Rules that match on one side only.
fn rules(case: &Case, table: &Table, theirs: &Value, ours: &Value) -> Option<Difference> {
    let indexes =
        |of: &Value| items(of, "rules").iter().filter_map(|rule| rule["index"].as_u64()).collect::<Vec<u64>>();
    let (in_theirs, in_ours) = (indexes(theirs), indexes(ours));
    let one_sided = |index: &&u64| in_theirs.contains(index) != in_ours.contains(index);
    let Some(index) = in_theirs.iter().chain(&in_ours).filter(one_sided).min() else {
        return (in_theirs != in_ours).then(|| difference("order of rules", theirs, ours));
    };
    let place = usize::try_from(*index).ok()?.checked_sub(1)?;
    let rule = table.rules.get(place)?;
    let told = |indexes: &[u64]| if indexes.contains(index) { "matches" } else { "does not match" };
    let kind = if table.rules[..place].iter().any(|known| is_equal(known, rule)) { "equal rule" } else { "rule" };
    let tests = rule.tests.iter().zip(items(ours, "inputs")).map(|(test, input)| (test.trim(), &input["value"]));
    let tests = tests
        .filter(|(test, input)| !matches!(*test, "-" | "") && (in_ours.contains(index) || !passes(case, test, input)));
    let tests: Vec<String> = tests.map(|(test, input)| format!("{input} | {test}")).collect();
    Some(difference(format!("{kind} {}", tests.join(" ; ")), told(&in_theirs), told(&in_ours)))
}

/// Whether two rules without ids have the same entries.
fn is_equal(left: &Rule, right: &Rule) -> bool {
    let entries = |rule: &Rule| rule.tests.iter().chain(&rule.results).map(|entry| entry.trim().to_owned()).collect();
    let [left_entries, right_entries]: [Vec<String>; 2] = [entries(left), entries(right)];
    left.id.is_none() && right.id.is_none() && left_entries == right_entries
}

/// Whether an input passes a test on our side, if the test mentions only variables.
fn passes(case: &Case, test: &str, input: &Value) -> bool {
    let variables = feel::Value::from_json(&case.variables).unwrap_or_default();
    let (Ok(tests), Some(variables)) = (UnaryTests::parse(test), variables.as_context()) else {
        return false;
    };
    let input = feel::Value::from_json(&input.to_string()).unwrap_or_default();
    let evaluation = tests.evaluate(&input, variables, &Environment::at(0));
    evaluation.is_ok_and(|evaluation| evaluation.value.as_bool() == Some(true))
}

/// Outputs of rules that match on both sides.
fn results(table: &Table, theirs: &Value, ours: &Value) -> Option<Difference> {
    let pairs = items(theirs, "rules").iter().zip(items(ours, "rules"));
    let (theirs, ours) = pairs.into_iter().find(|(theirs, ours)| !same(theirs, ours))?;
    if !same(&theirs["id"], &ours["id"]) {
        return Some(difference("id of a rule", &theirs["id"], &ours["id"]));
    }
    let rule = rule_of(table, theirs)?;
    let outputs = items(theirs, "outputs").iter().zip(items(ours, "outputs")).zip(&rule.results);
    for ((theirs, ours), expression) in outputs {
        if let Some(part) = ["id", "name", "value"].into_iter().find(|part| !same(&theirs[part], &ours[part])) {
            return Some(difference(format!("result {part} `{expression}`"), &theirs[part], &ours[part]));
        }
    }
    Some(difference("outputs of a rule", theirs, ours))
}

/// The rule of the table that is reported.
fn rule_of<'a>(table: &'a Table, told: &Value) -> Option<&'a Rule> {
    let index = usize::try_from(told["index"].as_u64()?).ok()?;
    table.rules.get(index.checked_sub(1)?)
}

/// What the matched rules give together.
fn output(table: &Table, theirs: &Value, ours: &Value) -> Option<Difference> {
    if same(&theirs["output"], &ours["output"]) {
        return None;
    }
    let policy = [table.hit_policy, table.aggregation].map(|word| word.unwrap_or("-")).join(" ");
    let computed = if has_computed_numbers(table, ours) { " computed numbers" } else { "" };
    let rows: Vec<String> = items(ours, "rules")
        .iter()
        .map(|rule| {
            items(rule, "outputs").iter().map(|output| output["value"].to_string()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let outputs = table.outputs.iter().map(|output| {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("`{}` `{}`", part(&output.values), part(&output.default))
    });
    let outputs: Vec<String> = outputs.collect();
    let case = format!("hit {policy} of{computed} {} with {}", rows.join(" | "), outputs.join(" | "));
    Some(difference(case, &theirs["output"], &ours["output"]))
}

/// Whether a rule gave a number with a priority, but does not consist of its digits.
fn has_computed_numbers(table: &Table, ours: &Value) -> bool {
    let rules = items(ours, "rules").iter().filter_map(|rule| Some((rule, rule_of(table, rule)?)));
    let mut results = rules.flat_map(|(rule, entries)| items(rule, "outputs").iter().zip(&entries.results));
    results.any(|(output, entry)| {
        let digits = output["value"].as_number().map(serde_json::Number::to_string);
        digits.is_some_and(|digits| digits != entry.trim())
    })
}

/// The outcome as a whole.
fn result(theirs: &Value, ours: &Value) -> Option<Difference> {
    if !theirs["failure"].is_null() || !ours["failure"].is_null() {
        let (full, short) = (theirs["failure"].as_str(), ours["failure"].as_str());
        if let Some((full, short)) = full.zip(short.and_then(|short| short.strip_suffix(", …)'")))
            && full.starts_with(short)
        {
            return Some(difference("failure but for further values", full, short));
        }
        return ["failure", "failed"]
            .into_iter()
            .find(|part| !same(&theirs[part], &ours[part]))
            .map(|part| difference(part, &theirs[part], &ours[part]));
    }
    (!same(&theirs["output"], &ours["output"])).then(|| difference("output", &theirs["output"], &ours["output"]))
}

/// Whether two values are the same as a client sees them: numbers as numbers, entries in any order.
fn same(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Number(theirs), Value::Number(ours)) => {
            theirs == ours || theirs.as_f64().zip(ours.as_f64()).is_some_and(|(theirs, ours)| are_close(theirs, ours))
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| same(theirs, ours))
        }
        (Value::Object(theirs), Value::Object(ours)) => {
            let entry = |(name, value): (&String, &Value)| ours.get(name).is_some_and(|ours| same(value, ours));
            theirs.len() == ours.len() && theirs.iter().all(entry)
        }
        _ => theirs == ours,
    }
}

/// Whether two numbers are the same in 64 bits except for rounding: the reference reports no more digits.
fn are_close(theirs: f64, ours: f64) -> bool {
    (theirs - ours).abs() <= theirs.abs() * 2.0 * f64::EPSILON
}

/// The expressions of a logic.
fn describe(logic: &Logic) -> String {
    match logic {
        Logic::Literal(expression) => format!("`{expression}`"),
        Logic::Context(entries) => {
            let entry = |(name, value): &(Option<String>, Logic)| {
                format!("{}: {}", name.as_deref().unwrap_or_default(), describe(value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Logic::List(items) => format!("[{}]", items.iter().map(describe).collect::<Vec<_>>().join(", ")),
        Logic::Relation(_, rows) => {
            let row = |row: &Vec<Logic>| row.iter().map(describe).collect::<Vec<_>>().join(", ");
            format!("[[{}]]", rows.iter().map(row).collect::<Vec<_>>().join("; "))
        }
        Logic::Function(parameter, body) => format!("({parameter}) `{body}`"),
        Logic::Invocation(name, bindings) => {
            let bindings: Vec<String> = bindings.iter().map(|(name, value)| format!("{name}: `{value}`")).collect();
            format!("{name}({})", bindings.join(", "))
        }
        Logic::Table(table) => {
            let inputs: Vec<&str> = table.inputs.iter().map(|input| &*input.expression).collect();
            let rules = table.rules.iter().map(|rule| {
                let entries: Vec<&str> = rule.tests.iter().chain(&rule.results).map(|entry| &**entry).collect();
                entries.join(" | ")
            });
            let rules: Vec<String> = rules.collect();
            format!("{}({}: {})", table.hit_policy.unwrap_or("-"), inputs.join(" | "), rules.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::generator::Generator;
    use super::super::model::{Decision, Input, Output};
    use super::super::ours::outcome;
    use super::*;

    /// A table that gives 1 for an `a` above 1.
    fn case() -> Case {
        let mut case = Generator::new(1).case();
        let entries = |text: &str| vec![text.to_owned()];
        let rule = Rule { id: None, tests: entries("> 1"), results: entries("0 + 1") };
        let input = Input { id: None, label: None, expression: "a".to_owned(), values: None };
        let output =
            Output { id: None, name: Some("one".to_owned()), label: None, values: None, default: Some("0".to_owned()) };
        let table = Table { inputs: vec![input], outputs: vec![output], rules: vec![rule], ..Table::default() };
        let decision = Decision {
            id: "d1".to_owned(),
            variable: None,
            decisions: Vec::new(),
            knowledge: Vec::new(),
            logic: Logic::Table(table),
        };
        case.model.knowledge.clear();
        case.model.decisions = vec![decision];
        Case { decision: "d1".to_owned(), variables: "{\"a\":2}".to_owned(), ..case }
    }

    fn shown(change: impl FnOnce(&mut Value)) -> String {
        let case = case();
        let ours = outcome(&case.model.write(), &case.decision, &case.variables);
        let mut theirs = ours.clone();
        change(&mut theirs);
        find(&case, &theirs, &ours).map_or_else(String::new, |found| {
            let Difference { case, theirs, ours } = found;
            format!("{case}: {theirs}, {ours}")
        })
    }

    #[test]
    fn whatever_differs_is_found() {
        assert_eq!(shown(|_| {}), "");
        assert_eq!(shown(|of| of["output"] = json!(1.0)), "");
        assert_eq!(shown(|of| of["output"] = json!(2)), "output: 2, 1");
        assert_eq!(shown(|of| *of = json!({"invalid": "no file"})), "file: no file, valid");
        assert_eq!(shown(|of| of["evaluated"][0]["name"] = json!("x")), "name of d1: \"x\", \"Decision d1\"");
        assert_eq!(shown(|of| of["evaluated"][0]["inputs"][0]["value"] = json!("2")), "input value `a`: \"2\", 2");
        assert_eq!(shown(|of| of["evaluated"][0]["inputs"][0]["name"] = json!("b")), "input name `a`: \"b\", \"a\"");
        assert_eq!(shown(|of| of["evaluated"][0]["rules"] = json!([])), "rule 2 | > 1: does not match, matches");
        assert_eq!(
            shown(|of| of["evaluated"][0]["rules"][0]["outputs"][0]["value"] = json!(3)),
            "result value `0 + 1`: 3, 1"
        );
        assert_eq!(
            shown(|of| of["evaluated"][0]["output"] = json!(3)),
            "hit - - of computed numbers 1 with `` `0`: 3, 1"
        );
        assert_eq!(
            shown(|of| {
                let twice = of["evaluated"][0].clone();
                of["evaluated"] = json!([twice, twice]);
            }),
            "decisions but for functions that are repeated: \"d1\" \"d1\", \"d1\""
        );
        assert_eq!(
            shown(|of| {
                of["failure"] = json!("no");
                of["failed"] = json!("d1");
            }),
            "failure: \"no\", null"
        );
    }

    #[test]
    fn a_seed_makes_the_same_case_and_no_case_is_like_another() {
        let texts = |seed: u64| {
            let case = Generator::new(seed).case();
            (case.model.write(), case.variables)
        };
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }
}
