//! Variables are read from their text only as far as an expression needs: the result and the warnings are the same as if
//! they had been read as a whole.

use feel::{Context, Environment, Expression, Scope, Value, VariableText};
use proptest::prelude::*;

/// Gives the variables as texts, as they are kept.
struct Texts<'a>(&'a [(&'static str, String)]);

impl Scope for Texts<'_> {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| VariableText::Borrowed(text))
    }
}

const EXPRESSIONS: [&str; 36] = [
    "items[a > 1]",
    "items[a > 1].b",
    "items[a > 1].missing",
    "items[a = \"x\"]",
    "items[a != \"x\"].b",
    "items[b = null].a",
    "items[a > limit].b",
    "items[item.a > 1]",
    "items[item > 1]",
    "items[a]",
    "items[-1].a",
    "items[1]",
    "items[limit].a",
    "items[a > items[1].a].b",
    "items[a = items[b > 1][1].b]",
    "items[count(items[b = 1]) > a]",
    "items[a > 1 and b > 1]",
    "items[not(a = 1)].a",
    "items[some x in list satisfies x = a]",
    "items[every x in [a, b] satisfies x > 0].b",
    "items[{c: a}.c > 1]",
    "items[{a: 5}.a > 1].a",
    "items[(function(x) x > a)(2)]",
    "items[list[item > 1][1] = 2]",
    "items[nested.a = 1].nested",
    "items[nested[a = 1].b = [2]]",
    "items[a in (1, 2)].b",
    "items[is defined(a)].b",
    "items[limit > 1]",
    "items[a > 1][b > 1].a",
    "order.items[a > 1].b",
    "order.items[a = limit]",
    "order.items[a > 1 and order.name = \"x\"]",
    "order.name = \"x\" and order.name != \"y\"",
    "name = \"x\"",
    "[items[a > 1], items[a > 0], items[b > 0], items[a > 2], items]",
];

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..4u8).prop_map(|number: u8| number.to_string()),
        Just("1.5".to_owned()),
        Just("null".to_owned()),
        Just("\"x\"".to_owned()),
        Just("\"\\u0078\"".to_owned()),
        Just("\"a \\\"b\\\" \\\\\"".to_owned()),
        Just("true".to_owned()),
        Just("[1, 2]".to_owned()),
        Just("{\"a\":1,\"b\":2}".to_owned()),
        Just("[{\"a\":1,\"b\":2}, {\"a\":2}]".to_owned()),
    ]
}

fn item() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "\\u0061", "list", "nested", "item", "other", "limit"]);
    let object = prop::collection::vec((name, value()), 0..5).prop_map(|members| {
        let members: Vec<String> = members.into_iter().map(|(name, value)| format!("\"{name}\" : {value}")).collect();
        format!("{{{}}}", members.join(", "))
    });
    prop_oneof![4 => object, 1 => value()]
}

fn items() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => prop::collection::vec(item(), 0..6).prop_map(|items| format!(" [{}] ", items.join(" ,"))),
        1 => item(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_read_in_part_is_the_same_as_the_whole(
        items in items(),
        limit in value(),
        name in value(),
        expression in prop::sample::select(EXPRESSIONS.to_vec()),
    ) {
        let order = format!("{{\"name\": {name}, \"items\": {items}, \"name\":{name}}}");
        let texts = [("items", items), ("limit", limit), ("name", name), ("order", order)];
        let mut values = Context::new();
        for (name, text) in &texts {
            values.put((*name).into(), Value::from_json(text).expect("the text is valid"));
        }
        let environment = Environment::at(0);
        let expression = Expression::parse(expression).expect("the expression is valid");
        let in_part = expression.evaluate(&Texts(&texts), &environment).expect("no limit is reached");
        let whole = expression.evaluate(&values, &environment).expect("no limit is reached");
        prop_assert_eq!(in_part.value.to_json(), whole.value.to_json());
        prop_assert_eq!(in_part.warnings, whole.warnings);
    }
}

/// Texts are looked at many bytes at a time: each character that is escaped is found wherever it stands.
#[test]
fn every_character_of_a_text_is_written_and_read_as_it_is_at_every_place() {
    for character in (0..=0x7f).map(char::from).chain(['é', '\u{2028}', '😀']) {
        for (before, behind) in (0..70).map(|before| (before, 70 - before)) {
            let text = format!("{}{character}{}", "x".repeat(before), "y".repeat(behind));
            let mut written = String::new();
            feel::json::write_string(&text, &mut written);
            let is_escaped = character < ' ' || character == '"' || character == '\\';
            assert_eq!(written.contains('\\'), is_escaped, "{text:?}");
            assert!(!written.chars().any(|character| character < ' '), "{text:?}");
            assert_eq!(feel::json::read_string(&written).as_deref(), Some(&*text));
        }
    }
}
