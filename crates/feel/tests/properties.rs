//! Properties: whatever the text, nothing panics and everything ends; lazy and complete reading agree.

use feel::{ConstantTest, Environment, Expression, Number, Scope, UnaryTests, Value, VariableText, json};
use proptest::prelude::*;

const VARIABLES: [(&str, &str); 5] = [
    ("a", "1"),
    ("b", r#"{"a": {"b": [1, {"a": "x"}]}, "b": null}"#),
    ("list", r#"[3, 1, 2, "x", null, {"a": 1}]"#),
    ("text", r#""some text""#),
    ("order value", "12.50"),
];

struct Variables;

impl Scope for Variables {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, text)| VariableText::Borrowed(text))
    }
}

const TOKENS: &[&str] = &[
    "a",
    "b",
    "list",
    "text",
    "order value",
    "missing",
    "item",
    "partial",
    "1",
    "2.5",
    "-1",
    "0",
    "1e30",
    "\"x\"",
    "\"\"",
    "true",
    "false",
    "null",
    "+",
    "-",
    "*",
    "/",
    "**",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "and",
    "or",
    "not(",
    "in",
    "between",
    "instance of",
    "number",
    "list<",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "..",
    "?",
    "if",
    "then",
    "else",
    "for",
    "return",
    "some",
    "every",
    "satisfies",
    "function(",
    "x",
    "x in",
    "`a b`",
    "@\"P1D\"",
    "@\"2020-01-31\"",
    "@\"P1M\"",
    "@\"10:00:00+01:00\"",
    "now()",
    "date(",
    "duration(",
    "string(",
    "number(",
    "split(",
    "replace(",
    "matches(",
    "sort(",
    "append(",
    "concatenate(",
    "flatten(",
    "context put(",
    "get entries(",
    "sublist(",
    "substring(",
    "decimal(",
    "modulo(",
    "sum(",
    "min(",
    "union(",
    "[1..3]",
    "[1, 2, 3]",
    "{a: 1}",
    "[1, 2, 3][item > 1]",
    "function(x) x",
    "(function(f) f(1))(abs)",
    "@\"999999999-12-31\"",
    "@\"-999999999-01-01T00:00:00@Europe/Berlin\"",
    "@\"P1D\"",
    "@\"P9M\"",
    "for i in 1..3 return",
    "(< 3)",
    "before(",
    "range(",
    "is(",
    "uuid()",
    "from base64(",
    "cellInput",
];

const PATTERN_PIECES: &[&str] = &[
    "[",
    "]",
    "-",
    "-[",
    "]]",
    "[^",
    "a",
    "b",
    "a-z",
    "^",
    "\\\\[",
    "\\\\]",
    "\\\\",
    "&&",
    "é",
    " ",
    "{",
    "}",
    "+",
    "|",
    "(",
    ")",
    "\\\\p{InBasicLatin}",
    "\\\\P{IsGreek}",
    "\\\\p{Is",
    "\\\\P{In",
    "\\\\p{L}",
];

fn expression() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(TOKENS), 1..14).prop_map(|tokens| tokens.join(" "))
}

fn small_limits() -> Environment {
    Environment {
        step_limit: 20_000,
        list_limit_items: 1000,
        string_limit_bytes: 10_000,
        ..Environment::at(1_772_600_767_089)
    }
}

/// JSON documents, nested a little.
fn document() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c d", "é", "\\u0061", "\\\"q"]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        (any::<i32>(), 0..1000u32).prop_map(|(whole, fraction)| format!("{whole}.{fraction:03}")),
        prop::sample::select(vec!["\"\"", "\"a\\nb\"", "\"\\ud83d\\udc34\"", "\"[1, {\"", "1e5", "-0.0"])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        let member = (name.clone(), inner.clone()).prop_map(|(name, value)| format!("\"{name}\" : {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(", "))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_tokens_never_panic(text in expression()) {
        if let Ok(compiled) = Expression::parse(&text)
            && let Ok(evaluation) = compiled.evaluate(&Variables, &small_limits())
        {
            let result = evaluation.value.to_json();
            prop_assert!(json::validate(&result).is_ok(), "{text} gives {result}");
        }
    }

    /// What is subtracted from a class, blocks and what only looks like them.
    #[test]
    fn random_patterns_never_panic(
        pieces in prop::collection::vec(prop::sample::select(PATTERN_PIECES), 1..12),
        flags in prop::sample::select(vec!["", "i", "x", "sm"]),
    ) {
        let text = format!("matches(\"ab-[é]\", \"{}\", \"{flags}\")", pieces.concat());
        let evaluation = Expression::parse(&text).expect("a call").evaluate(&Variables, &small_limits());
        let value = evaluation.expect("within the limits").value;
        prop_assert!(matches!(value, Value::Null | Value::Boolean(_)));
    }

    /// Days are added and taken back in all years, and texts are read again.
    #[test]
    fn dates_of_all_years_are_computed_with(
        year in -999_999_999..=999_999_999_i64,
        month in 1..=12_u32,
        day in 1..=28_u32,
        days in -800_000_000_000..=800_000_000_000_i64,
        zone in prop::sample::select(vec!["", "Z", "-18:00", "@Europe/Berlin", "@America/New_York"]),
    ) {
        let sign = if year < 0 { "-" } else { "" };
        let date = format!("{sign}{:04}-{month:02}-{day:02}", year.abs());
        let duration = format!("{}P{}D", if days < 0 { "-" } else { "" }, days.abs());
        let told = format!("{date}T03:30:00{zone}");
        // In the hour that a place has twice in autumn a time means the first of both.
        let (least, most) = if zone.starts_with('@') { ("-PT1H", "PT1H") } else { ("PT0S", "PT0S") };
        let text = format!(
            "{{d: @\"{date}\", t: @\"{told}\", n: @\"{duration}\", s: string(t), moved: t + n, \
             r: [date({year}, {month}, {day}) = d, if d + n = null then true else d + n - d = n, \
             if moved = null then true else moved - t - n in [@\"{least}\"..@\"{most}\"] \
                and moved - n - t in [@\"{least}\"..@\"{most}\"], \
             (day of week(d) = \"Sunday\") = (d.weekday = 7), week of year(d) in [1..53], \
             years and months duration(d, d) = @\"P0M\"]}}"
        );
        let evaluation = Expression::parse(&text).expect("a context").evaluate(&Variables, &small_limits());
        let value = evaluation.expect("within the limits").value;
        let context = value.as_context().expect("a context");
        prop_assert_eq!(context.get("s").and_then(Value::as_str), Some(&*told));
        let all = vec![Value::Boolean(true); 6];
        prop_assert_eq!(context.get("r").and_then(Value::as_list), Some(&*all), "{}", text);
    }

    #[test]
    fn random_unary_tests_never_panic(text in expression(), input in expression()) {
        let environment = small_limits();
        let input = Expression::parse(&input).ok().and_then(|input| input.evaluate(&Variables, &environment).ok());
        let input = input.map(|evaluation| evaluation.value).unwrap_or_default();
        if let Ok(compiled) = UnaryTests::parse(&text)
            && let Ok(evaluation) = compiled.evaluate(&input, &Variables, &environment)
        {
            prop_assert!(matches!(evaluation.value, Value::Null | Value::Boolean(_)), "{text} gives {}", evaluation.value);
            // What is known without an evaluation is what an evaluation finds.
            let known = compiled.constants().filter(|_| !evaluation.value.is_null());
            if let Some(known) = known {
                let passes = known.iter().any(|constant| match constant {
                    ConstantTest::Any => true,
                    ConstantTest::Equal(value) => *value == input,
                    ConstantTest::Within(range) => range.contains(&input) == Some(true),
                });
                prop_assert_eq!(Value::Boolean(passes), evaluation.value, "{} with {}", text, input);
            }
        }
    }

    #[test]
    fn random_characters_never_panic(text in "[ -~äß\\n\"`@]{0,40}") {
        if let Ok(compiled) = Expression::parse(&text) {
            let _ = compiled.evaluate(&Variables, &small_limits());
        }
        if let Ok(compiled) = UnaryTests::parse(&text) {
            let _ = compiled.evaluate(&Value::Null, &Variables, &small_limits());
        }
        let _ = Value::from_json(&text);
    }

    #[test]
    fn json_survives_reading_and_writing(text in document()) {
        let value = Value::from_json(&text).expect("a generated document is valid");
        let written = value.to_json();
        let again = Value::from_json(&written).expect("written JSON is valid");
        prop_assert_eq!(again.to_json(), written);
        prop_assert_eq!(&again, &value);
    }

    #[test]
    fn a_path_reads_the_same_lazily_and_from_the_whole(text in document()) {
        struct One(String);
        impl Scope for One {
            fn variable(&self, name: &str) -> Option<VariableText<'_>> {
                (name == "v").then_some(VariableText::Borrowed(self.0.as_str()))
            }
        }
        let scope = One(text);
        for path in ["a", "a.b", "`c d`.a", "b.a.b"] {
            let run = |expression: String| {
                let compiled = Expression::parse(&expression).expect("the expression is valid");
                compiled.evaluate(&scope, &Environment::at(0)).expect("no limit is reached").value.to_json()
            };
            prop_assert_eq!(run(format!("v.{path}")), run(format!("(if true then v else null).{path}")), "{}", path);
        }
    }

    #[test]
    fn splitting_agrees_with_reading(text in document()) {
        let value = Value::from_json(&text).expect("a generated document is valid");
        match value.as_context() {
            None => prop_assert!(json::split_object(&text).is_err()),
            Some(context) => {
                let members = json::split_object(&text).expect("an object can be split");
                prop_assert_eq!(members.len(), context.entries().len());
                for ((name, text), (expected_name, expected)) in members.iter().zip(context.entries()) {
                    prop_assert_eq!(&**name, &**expected_name);
                    prop_assert_eq!(&Value::from_json(text).expect("a member is valid"), expected);
                }
            }
        }
    }

    #[test]
    fn damaged_documents_are_refused_alike(text in document(), place in any::<prop::sample::Index>(), character in "[ -~\n\"\\\\{}\\[\\],:0-9]") {
        let characters: Vec<char> = text.chars().collect();
        let place = place.index(characters.len());
        let damaged: String = characters[..place].iter().copied().chain(character.chars()).chain(characters[place + 1..].iter().copied()).collect();
        let is_valid = json::validate(&damaged).is_ok();
        match json::split_object(&damaged) {
            Ok(members) => {
                prop_assert!(is_valid);
                prop_assert!(members.iter().all(|(_, value)| json::validate(value).is_ok()));
            }
            Err(_) => {
                let is_valid_object = is_valid && Value::from_json(&damaged).is_ok_and(|value| value.as_context().is_some());
                prop_assert!(!is_valid_object, "{}", damaged);
            }
        }
        if Value::from_json(&damaged).is_ok() {
            prop_assert!(is_valid);
        }
    }

    #[test]
    fn arithmetic_agrees_with_wide_integers(a in -10i128.pow(17)..10i128.pow(17), b in -10i128.pow(16)..10i128.pow(16), places in 0u32..12) {
        // Numbers with `places` digits behind the point: exact as long as the result has at most 34 digits.
        let number = |value: i128, places: u32| Number::parse(&format!("{value}e-{places}")).expect("a number");
        let (x, y) = (number(a, places), number(b, 3));
        let scale = 10i128.pow(places.max(3));
        let (wide_a, wide_b) = (a * (scale / 10i128.pow(places)), b * (scale / 1000));
        prop_assert_eq!(x.plus(y), Some(number(wide_a + wide_b, places.max(3))));
        prop_assert_eq!(x.minus(y), Some(number(wide_a - wide_b, places.max(3))));
        prop_assert_eq!(x.multiply(y), Some(number(a * b, places + 3)));
        prop_assert_eq!(x.cmp(&y), wide_a.cmp(&wide_b));
        if let Some(quotient) = x.divide(y) {
            // The error of the quotient is at most half of its 34th digit.
            let error = quotient.multiply(y).and_then(|product| product.minus(x)).expect("in range");
            let error = if error.is_negative() { error.negate() } else { error };
            let bound = x.multiply(Number::parse("2e-33").expect("a number")).expect("in range");
            let bound = if bound.is_negative() { bound.negate() } else { bound };
            prop_assert!(error <= bound, "{} / {} = {}", x, y, quotient);
        } else {
            prop_assert_eq!(b, 0);
        }
    }
}
