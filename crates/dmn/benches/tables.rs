//! The figures of DMN's marks: small and large decision tables. Run with `cargo bench -p dmn`.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use dmn::{DecisionRequirementsGraph, parse};
use feel::{Environment, Scope, VariableText};

/// The allocator of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Variables(Vec<(String, String)>);

impl Scope for Variables {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, text)| VariableText::Borrowed(text))
    }
}

/// A table with the inputs a, b, … whose rules have these tests, and their number as output.
fn table(hit_policy: &str, rules: impl Iterator<Item = Vec<String>>) -> String {
    let mut inputs = 0;
    let mut xml = String::new();
    for (number, tests) in rules.enumerate() {
        inputs = tests.len();
        xml.push_str("<rule>");
        for test in tests {
            let _ = write!(xml, "<inputEntry><text>{}</text></inputEntry>", test.replace('<', "&lt;"));
        }
        let _ = write!(xml, "<outputEntry><text>{number}</text></outputEntry></rule>");
    }
    let columns: String = ('a'..='z')
        .take(inputs)
        .map(|name| format!("<input><inputExpression><text>{name}</text></inputExpression></input>"))
        .collect();
    format!(
        r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="d" name="d" namespace="n">
        <decision id="decision" name="decision"><decisionTable hitPolicy="{hit_policy}">{columns}<output/>{xml}</decisionTable></decision>
        </definitions>"#
    )
}

fn compiled(xml: &str) -> DecisionRequirementsGraph {
    parse(xml.as_bytes()).unwrap_or_else(|report| panic!("{report}"))
}

fn variables<const N: usize>(values: [(&str, &str); N]) -> Variables {
    Variables(values.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec())
}

fn evaluate(criterion: &mut Criterion, title: &str, xml: &str, scope: &Variables, expected: &str) {
    let graph = compiled(xml);
    let environment = Environment::at(0);
    let found = graph.evaluate("decision", scope, &environment).result.expect("the decision has an output");
    assert_eq!(found.to_json(), expected, "{title}");
    criterion.bench_function(title, |bencher| {
        bencher.iter(|| graph.evaluate(black_box("decision"), black_box(scope), &environment));
    });
}

fn marks(criterion: &mut Criterion) {
    let tiers = ["\"gold\"", "\"silver\"", "\"bronze\"", "-"];
    let small = table(
        "FIRST",
        (0..20).map(|rule| {
            vec![
                tiers[rule % 4].to_owned(),
                format!("[{}..{})", rule * 10, rule * 10 + 10),
                if rule % 2 == 0 { "> 5".to_owned() } else { "<= 5".to_owned() },
                "true".to_owned(),
            ]
        }),
    );
    let scope = variables([("a", "\"bronze\""), ("b", "185"), ("c", "7"), ("d", "true")]);
    evaluate(criterion, "20 rules, 4 inputs", &small, &scope, "18");

    let any = || "-".to_owned();
    let evaluated = table("FIRST", (0..20).map(|rule| vec![format!("? = limit + {rule}"), any(), any(), any()]));
    let scope = variables([("a", "119"), ("b", "1"), ("c", "1"), ("d", "1"), ("limit", "100")]);
    evaluate(criterion, "20 rules, 4 inputs, tests with variables", &evaluated, &scope, "19");

    let large = table(
        "UNIQUE",
        (0..10_000).map(|rule| {
            vec![
                format!("\"{}\"", rule % 10),
                format!("[{}..{})", rule / 10 % 10, rule / 10 % 10 + 1),
                format!("{}", rule / 100 % 10),
                format!("{}", rule / 1000 * 100),
            ]
        }),
    );
    let scope = variables([("a", "\"7\""), ("b", "6.5"), ("c", "5"), ("d", "400")]);
    evaluate(criterion, "10,000 rules, 4 inputs of 10 values", &large, &scope, "4567");

    let intervals = table("UNIQUE", (0..10_000).map(|rule| vec![format!("[{}..{})", rule * 5, rule * 5 + 5), any()]));
    let scope = variables([("a", "34567"), ("b", "null")]);
    evaluate(criterion, "10,000 rules with intervals", &intervals, &scope, "6913");

    criterion.bench_function("compile 10,000 rules", |bencher| bencher.iter(|| compiled(black_box(&large))));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = marks
}
criterion_main!(benches);
