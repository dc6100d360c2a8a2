//! The test cases of the DMN Technology Compatibility Kit, read from the directory in the environment variable `DMN_TCK`
//! (the one with `compliance-level-2`). A report of every test is written into the target directory.
//!
//! Cases that are known to fail are listed with their reason in `tck/known-failures.tsv`. The test fails if another one
//! fails, or if one of them passes.

#[path = "tck/cases.rs"]
mod cases;
#[path = "tck/values.rs"]
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use cases::{Case, Suite};
use dmn::{DecisionRequirementsGraph, ValidationReport, parse_with_imports};
use feel::{Environment, Value};

const LEVELS: [&str; 2] = ["compliance-level-2", "compliance-level-3"];
const KNOWN_FAILURES: &str = include_str!("tck/known-failures.tsv");

/// One expected result that was looked at.
struct Outcome {
    level: &'static str,
    /// Test, case and result node, as in the list of known failures.
    name: String,
    /// What was found instead of what.
    failure: Option<String>,
    /// The text of the decision.
    logic: String,
}

#[test]
fn the_compatibility_kit_passes() {
    let Some(directory) = std::env::var_os("DMN_TCK") else {
        println!("Skipped: set DMN_TCK to the directory of the kit's test cases to run them.");
        return;
    };
    let outcomes = run_all(Path::new(&directory));
    assert!(outcomes.len() > 1_000, "only {} result nodes were found", outcomes.len());
    let report = report(&outcomes);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dmn-tck-report.txt");
    std::fs::write(&path, &report).expect("the report can be written");
    println!("{}\nThe report of every test is in {}.", totals(&outcomes), path.display());
    if let Some(path) = std::env::var_os("DMN_TCK_GAPS") {
        std::fs::write(path, gaps(&outcomes)).expect("the list of gaps can be written");
    }
    let known: BTreeSet<&str> = KNOWN_FAILURES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split('\t').next().unwrap_or_default())
        .collect();
    let is_known = |name: &str| known.contains(name) || known.contains(name.split('/').next().unwrap_or_default());
    let mut unexpected = String::new();
    for outcome in &outcomes {
        match &outcome.failure {
            Some(failure) if !is_known(&outcome.name) => {
                let _ = writeln!(unexpected, "{} fails: {failure}", outcome.name);
            }
            None if known.contains(outcome.name.as_str()) => {
                let _ = writeln!(unexpected, "{} passes, but is listed as failing", outcome.name);
            }
            _ => {}
        }
    }
    for name in known.iter().filter(|name| !name.contains('/')) {
        let of_test = |outcome: &&Outcome| outcome.name.split('/').next() == Some(name);
        assert!(outcomes.iter().filter(of_test).all(|outcome| outcome.failure.is_some()), "{name} passes partly");
    }
    assert!(unexpected.is_empty(), "{unexpected}");
}

fn run_all(directory: &Path) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for level in LEVELS {
        for test in sorted(&directory.join(level)).into_iter().filter(|path| path.is_dir()) {
            for file in sorted(&test) {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if name.contains("-test-") && name.ends_with(".xml") {
                    run_suite(level, &test, &file, &mut outcomes);
                }
            }
        }
    }
    outcomes
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn run_suite(level: &'static str, test: &Path, file: &Path, outcomes: &mut Vec<Outcome>) {
    let suite = Suite::read(file);
    let model = test.join(&suite.model);
    let xml = std::fs::read_to_string(&model).unwrap_or_else(|error| panic!("{}: {error}", model.display()));
    let imported = imported(&model, &xml);
    let graph = match parse_with_imports(xml.as_bytes(), &imported) {
        // To list every gap, what is refused can be left out of the model.
        Err(report) if std::env::var_os("DMN_TCK_GAPS").is_some() => {
            parse_with_imports(cases::without_refused(&xml, &report).as_bytes(), &imported).map_err(|_| report)
        }
        parsed => parsed,
    };
    let test = test.file_name().unwrap_or_default().to_string_lossy();
    for case in &suite.cases {
        for (node, expected) in &case.results {
            let failure = result(&graph, case, node).and_then(|found| expected.check(&found)).err();
            let name = format!("{test}/{}/{node}", case.id);
            outcomes.push(Outcome { level, name, failure, logic: cases::logic(&xml, node) });
        }
    }
}

/// The models that a model imports, which are other files in its directory.
fn imported(file: &Path, xml: &str) -> Vec<DecisionRequirementsGraph> {
    let namespaces = cases::imported_namespaces(xml);
    if namespaces.is_empty() {
        return Vec::new();
    }
    let directory = file.parent().unwrap_or(file);
    let others = sorted(directory).into_iter().filter(|path| path != file && path.extension() == Some("dmn".as_ref()));
    let mut models = Vec::new();
    for path in others {
        let xml = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if namespaces.contains(&cases::namespace(&xml)) {
            let parsed = parse_with_imports(xml.as_bytes(), &imported(&path, &xml));
            models.push(parsed.unwrap_or_else(|report| panic!("{}: {report}", path.display())));
        }
    }
    models
}

/// The value of a result node. A failure of the evaluation counts as null, as the standard has it.
fn result(
    graph: &Result<DecisionRequirementsGraph, ValidationReport>,
    case: &Case,
    node: &str,
) -> Result<Value, String> {
    let graph = graph.as_ref().map_err(|report| format!("the model is refused: {report}"))?;
    let environment = Environment::at(1_700_000_000_000);
    if let Some(service) = &case.service {
        let found = graph.decision_services().find(|(_, name)| name == service);
        let (id, _) = found.ok_or_else(|| format!("there is no decision service '{service}'"))?;
        let value = graph.evaluate_service(id, &case.inputs, &environment).result.unwrap_or_default();
        let entry = value.as_context().and_then(|context| context.get(node)).cloned();
        return Ok(entry.unwrap_or(value));
    }
    let found = graph.decisions().find(|decision| decision.name == node);
    let decision = found.ok_or_else(|| format!("there is no decision '{node}'"))?;
    let evaluation = graph.evaluate(decision.id, &case.inputs, &environment);
    Ok(evaluation.result.unwrap_or_default())
}

fn totals(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for level in LEVELS {
        let of_level = || outcomes.iter().filter(|outcome| outcome.level == level);
        let passed = of_level().filter(|outcome| outcome.failure.is_none()).count();
        let _ = writeln!(text, "{level}: {passed} of {} result nodes pass", of_level().count());
    }
    text
}

fn report(outcomes: &[Outcome]) -> String {
    let mut tests: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for outcome in outcomes {
        let counts = tests.entry(outcome.name.split('/').next().unwrap_or_default()).or_default();
        counts.0 += usize::from(outcome.failure.is_none());
        counts.1 += 1;
    }
    let mut text = totals(outcomes);
    for (test, (passed, all)) in tests {
        let _ = writeln!(text, "{test}: {passed} of {all}");
    }
    for outcome in outcomes {
        if let Some(failure) = &outcome.failure {
            let _ = writeln!(text, "{} fails: {failure}\n    {}", outcome.name, outcome.logic.replace('\n', "\n    "));
        }
    }
    text
}

/// What fails, grouped by test, with the expressions.
fn gaps(outcomes: &[Outcome]) -> String {
    let mut text = totals(outcomes);
    for outcome in outcomes {
        if let Some(failure) = &outcome.failure {
            let logic = outcome.logic.replace('\n', " ");
            let _ = writeln!(text, "{}\n    expression: {logic}\n    {failure}", outcome.name);
        }
    }
    text
}
