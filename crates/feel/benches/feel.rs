//! The figures of FEEL's marks: compile and evaluate a condition, a filter with a projection, a loop.
//! Run with `cargo bench -p feel`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use feel::{Environment, Expression, Scope, VariableText, json};

/// The allocator of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Variables(Vec<(String, String)>);

impl Scope for Variables {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, text)| VariableText::Borrowed(text))
    }
}

fn marks(criterion: &mut Criterion) {
    let items: Vec<String> =
        (0..100).map(|number| format!(r#"{{"name":"item {number}","price":{},"quantity":1}}"#, number % 20)).collect();
    let variables = [
        ("customer", r#"{"name":"Ada","tier":"gold","address":{"city":"Berlin"}}"#.to_owned()),
        ("orderValue", "120".to_owned()),
        ("items", format!("[{}]", items.join(","))),
    ];
    let scope = Variables(variables.map(|(name, text)| (name.to_owned(), text)).to_vec());
    let environment = Environment::at(1_772_600_767_089);

    let condition = "orderValue > 100 and customer.tier = \"gold\"";
    criterion
        .bench_function("compile the condition", |bencher| bencher.iter(|| Expression::parse(black_box(condition))));
    for (title, text) in [
        ("evaluate the condition", condition),
        ("evaluate items[price > 10].name over 100 items", "items[price > 10].name"),
        ("evaluate for i in 1..1000 return i*i", "for i in 1..1000 return i*i"),
    ] {
        let expression = Expression::parse(text).expect("the expression is valid");
        criterion.bench_function(title, |bencher| {
            bencher.iter(|| expression.evaluate(black_box(&scope), &environment).expect("no limit is reached"));
        });
    }

    let document = format!("{{\"items\":{},\"a\":1,\"text\":\"some text\"}}", scope.0[2].1);
    criterion.bench_function(&format!("split a document of {} bytes", document.len()), |bencher| {
        bencher.iter(|| json::split_object(black_box(&document)).expect("the document is valid").len());
    });
}

criterion_group!(benches, marks);
criterion_main!(benches);
