//! What is hostile or merely too much ends with an error that says so, on the stack of an ordinary thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use feel::{Budget, Environment, Evaluation, EvaluationError, Expression, JsonError, Scope, Value, VariableText, json};

fn evaluate(text: &str) -> Result<Evaluation, EvaluationError> {
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let start = Instant::now();
    let result = expression.evaluate(&(), &Environment::at(0));
    assert!(start.elapsed() < Duration::from_secs(600), "{text} took {:?}", start.elapsed());
    result
}

fn error(text: &str) -> EvaluationError {
    match evaluate(text) {
        Err(error) => error,
        Ok(evaluation) => panic!("{text} has the result {}", evaluation.value),
    }
}

#[test]
fn steps_are_limited() {
    assert!(matches!(
        error("for i in 1..1000000000 return i"),
        EvaluationError::TooManySteps(_) | EvaluationError::ListTooLong(_)
    ));
    let nested = "some a in 1..100000, b in 1..100000 satisfies a = -b";
    assert_eq!(error(nested), EvaluationError::TooManySteps(Environment::at(0).step_limit));
    assert_eq!(error(nested).to_string(), "The expression was stopped after 5000000 steps. Let it work on less data.");
}

#[test]
fn recursion_is_limited() {
    let recursive = "{f: function(g, n) g(g, n + 1), r: f(f, 0)}.r";
    assert_eq!(error(recursive), EvaluationError::TooDeep(Environment::at(0).depth_limit));
    let through_everything = "{f: function(g) for x in [1] return if some y in [2] satisfies [g(g)][item = x][1] in (1, {a: g(g)}.a) then sort([2, 1], function(a, b) g(g)) else 2, r: f(f)}.r";
    assert_eq!(error(through_everything), EvaluationError::TooDeep(Environment::at(0).depth_limit));
    let deep_enough = "{f: function(g, n) if n = 0 then 0 else 1 + g(g, n - 1), r: f(f, 50)}.r";
    assert_eq!(evaluate(deep_enough).unwrap().value, Value::from_json("50").unwrap());
}

#[test]
fn texts_and_lists_are_limited() {
    let doubling = "(for i in 1..60 return if i = 1 then \"xxxxxxxx\" else partial[-1] + partial[-1])[-1]";
    assert!(matches!(error(doubling), EvaluationError::StringTooLong(_)));
    let lists = "for i in 1..60 return if i = 1 then [1, 2] else concatenate(partial[-1], partial[-1])";
    assert!(matches!(error(lists), EvaluationError::ListTooLong(_) | EvaluationError::TooMuchMemory(_)));
    let strings = "for i in 1..100000 return upper case(string join(for j in 1..1000 return \"x\"))";
    assert!(matches!(error(strings), EvaluationError::TooManySteps(_) | EvaluationError::TooMuchMemory(_)));
}

/// Values that share their parts are small in memory but exponentially large when walked through.
#[test]
fn shared_values_cannot_explode() {
    let shared = "(for i in 1..60 return if i = 1 then [1, 1] else [partial[-1], partial[-1]])[-1]";
    assert!(matches!(error(shared), EvaluationError::ResultTooLarge(_)));
    assert!(matches!(error(&format!("string({shared})")), EvaluationError::StringTooLong(_)));
    assert!(matches!(error(&format!("to json({shared})")), EvaluationError::StringTooLong(_)));
    assert!(matches!(error(&format!("{shared} = {shared}")), EvaluationError::TooManySteps(_)));
    assert!(matches!(error(&format!("list contains([{shared}], {shared})")), EvaluationError::TooManySteps(_)));
    let flat = error(&format!("flatten({shared})"));
    assert!(matches!(flat, EvaluationError::ListTooLong(_) | EvaluationError::TooManySteps(_)), "{flat}");
    let warned = evaluate(&format!("1 + {shared}")).unwrap();
    assert!(warned.warnings[0].message.len() < 2000);
}

#[test]
fn values_cannot_nest_without_end() {
    for wrap in [
        "partial",
        "[partial[-1]]",
        "{a: partial[-1]}",
        "[partial[-1]..2]",
        "function() partial",
        "context put({}, \"a\", partial[-1])",
    ] {
        let text = format!("for i in 1..100000 return {wrap}");
        assert!(matches!(error(&text), EvaluationError::ValueTooDeep(_)), "{text}");
    }
}

/// What would be too deep is refused before it is there: to drop it would already take more stack than there is.
#[test]
fn keys_in_a_list_cannot_nest_a_value_too_deep() {
    for function in ["put", "context put"] {
        let nested = |keys: usize| format!("{function}({{}}, for i in 1..{keys} return \"a\", [1])");
        assert_eq!(error(&nested(100_000)), EvaluationError::ValueTooDeep(1000), "{function}");
        assert_eq!(error(&nested(1_000)), EvaluationError::ValueTooDeep(1000), "{function}");
        assert_eq!(evaluate(&nested(999)).unwrap().value.depth(), 1000, "{function}");
    }
    let text = "put({a: {a: 1, b: 2}, c: 3}, [\"a\", \"a\", \"d\"], 4)";
    assert_eq!(evaluate(text).unwrap().value.to_json(), r#"{"a":{"a":{"d":4},"b":2},"c":3}"#);
}

/// Each `$0` is as long as the whole text: the length is looked at before each of them is written.
#[test]
fn replacements_cannot_multiply_memory() {
    let long = Long::new();
    let many = "$0".repeat(50_000);
    let replaced = |text: &str, pattern: &str| {
        long.evaluate(&format!("replace({text}, \"{pattern}\", \"{many}\")")).map(|evaluation| evaluation.memory_bytes)
    };
    assert_eq!(replaced("v", "(?s).+"), Err(EvaluationError::StringTooLong(8 << 20)));
    let matches = replaced("substring(v, 1, 1000)", ".").unwrap_err();
    assert!(matches!(matches, EvaluationError::TooManySteps(_)), "each piece takes a step: {matches}");
    let none = "replace(v, \"y\", \"$0\")";
    assert_eq!(long.evaluate(&format!("{none} = v")).unwrap().value, Value::Boolean(true));
    let pieces = evaluate("replace(\"abc\", \"(b)(x)?\", \"<$1$0\\$$2$1>\")").unwrap();
    assert_eq!(pieces.value.to_json(), r#""a<bb$b>c""#);
}

#[test]
fn expressions_cannot_nest_without_end() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{a: ", "}"),
        ("-", ""),
        ("not(", ")"),
        ("1 + (", ")"),
        ("if true then ", " else 1"),
        ("1 in (not(", "))"),
    ] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(Expression::parse(&nested(30)).is_ok(), "{}", nested(30));
        let error = Expression::parse(&nested(10_000)).unwrap_err().to_string();
        assert!(error.contains("expected at most 100 levels of nesting at line 1, column "), "{error}");
    }
    for chain in ["[1]", ".a", "(1)"] {
        let text = format!("a.b{}", chain.repeat(100_000));
        let _ = Expression::parse(&text).map(|expression| expression.evaluate(&(), &Environment::at(0)));
    }
    // The deepest tree that still compiles: it can be evaluated as far as the limit and freed.
    let level = |inner: String| format!("({inner}{}{})", "[1]".repeat(30), " = 1".repeat(30));
    let deepest = (0..45).fold("1".to_owned(), |inner, _| level(inner));
    let compiled = Expression::parse(&deepest).unwrap();
    assert!(compiled.evaluate(&(), &Environment::at(0)).is_err());
    drop(compiled);
    assert!(Expression::parse(&format!("1{}", " = 1".repeat(10_000))).is_err());
    // Long chains of operators do not nest.
    let sum = vec!["1"; 20_000].join(" + ");
    assert_eq!(evaluate(&sum).unwrap().value, Value::from_json("20000").unwrap());
    assert_eq!(evaluate(&vec!["true"; 20_000].join(" and ")).unwrap().value, Value::Boolean(true));
    assert!(Expression::parse(&vec!["2"; 20_000].join(" ** ")).is_ok());
}

/// Each loop of `for x in xs, y in ys` runs inside the one before.
#[test]
fn loops_in_a_row_cannot_nest_without_end() {
    for (start, end) in [("for", "return"), ("some", "satisfies"), ("every", "satisfies")] {
        let loops = |count: usize| format!("{start} x in [1]{} {end} true", ", x in [1]".repeat(count));
        assert!(evaluate(&loops(80)).is_ok());
        let error = Expression::parse(&loops(100_000)).unwrap_err().to_string();
        assert!(error.contains("expected at most 100 levels of nesting"), "{error}");
    }
}

#[test]
fn recursion_is_limited_through_loops_and_tests() {
    let loops = format!("for x in [1]{} return g(g)", ", x in [1]".repeat(80));
    let tests = format!("1 in ({}g(g){})", "not(".repeat(80), ")".repeat(80));
    for body in [loops, tests] {
        let text = format!("{{f: function(g) {body}, r: f(f)}}.r");
        assert_eq!(error(&text), EvaluationError::TooDeep(Environment::at(0).depth_limit));
    }
}

/// Constants take no steps, but there can be a hundred thousand of them in an expression, and a loop around them.
#[test]
fn long_rows_of_constants_take_steps() {
    let rows = [
        format!("1{}", " + 1".repeat(100_000)),
        format!("true{}", " and true".repeat(100_000)),
        format!("1 in (2{})", ", 2".repeat(100_000)),
        format!("1 in (not(2{}))", ", 2".repeat(100_000)),
        format!("1 in (< 2{})", " and < 2".repeat(100_000)),
        format!("unknown(1{})", ", 1".repeat(100_000)),
    ];
    for row in rows {
        let found = error(&format!("every i in 1..10000000 satisfies [{row}] != 1 or true"));
        assert!(matches!(found, EvaluationError::TooManySteps(_)), "{found}");
    }
    let parameters: Vec<String> = (0..20_000).map(|number| format!("a{number}")).collect();
    let arguments: Vec<String> = parameters.iter().map(|name| format!("{name}: 1")).collect();
    let named = format!("{{f: function({}) 1, r: f({})}}", parameters.join(", "), arguments.join(", "));
    assert!(matches!(error(&named), EvaluationError::TooManySteps(_)));
}

#[test]
fn many_names_are_found_quickly() {
    let start = Instant::now();
    let variables: Vec<String> = (0..100_000).map(|number| format!("a{number}")).collect();
    assert_eq!(Expression::parse(&format!("[{}]", variables.join(", "))).unwrap().variables().len(), 100_000);
    let entries: Vec<String> = (0..70_000).map(|number| format!("a{number}: b")).collect();
    assert_eq!(Expression::parse(&format!("{{{}}}", entries.join(", "))).unwrap().variables().len(), 1);
    assert!(start.elapsed() < Duration::from_secs(600), "it took {:?}", start.elapsed());
}

/// What `java.util.regex` tries for hours ends within the limit of steps: null, with a warning that names the pattern.
#[test]
fn patterns_that_try_too_many_ways_are_stopped() {
    let catastrophes = [
        ("(?=x)*(a+)+$", "a", "b"),
        ("^(?=(a+)+$)", "a", "b"),
        ("(a*)*\\1b", "a", "c"),
        ("(?:a|aa)+(?!.)b", "a", ""),
        ("(?<!x)(a|a)*c", "a", "b"),
        ("(?!z)(.*)*,", "a", ""),
        ("(?=w)(\\w+\\s?)*!", "word ", "?"),
        ("(?<=(a|b|ab)*)c", "ab", "d"),
        ("(x+x+)+(?=y)", "x", ""),
        ("(?=((.)(.)*)*y)", "ab", ""),
    ];
    for (pattern, part, end) in catastrophes {
        let text = part.repeat(2_000 / part.len()) + end;
        for call in ["matches", "extract", "split"] {
            let expression = format!("{call}(\"{text}\", \"{pattern}\")");
            let evaluation = evaluate(&expression).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert!(evaluation.steps < 2_100_000, "{pattern}: {} steps", evaluation.steps);
            assert!(evaluation.value.is_null(), "{call} {pattern}: {:?}", evaluation.value);
            let warning = evaluation.warnings[0].to_string();
            assert!(warning.contains("was stopped, because it tries too many ways to match"), "{warning}");
        }
    }
    // Those that need not go back take linear time.
    for pattern in ["(a+)+$", "^(a|a)*c", "(.*)*,"] {
        let expression = format!("matches(\"{}b\", \"{pattern}\")", "a".repeat(2_000));
        let evaluation = evaluate(&expression).unwrap();
        assert_eq!(evaluation.value, Value::Boolean(false), "{pattern}");
        assert!(evaluation.steps < 20_000, "{pattern}: {} steps", evaluation.steps);
    }
    // The budget of the evaluation counts all of them together.
    let many = "for i in 1..10 return matches(\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\", \"(?=(a+)+$)\")";
    assert!(matches!(error(many), EvaluationError::TooManySteps(_)));
    // A long text is no catastrophe: looking at it once takes steps by its length.
    let long = format!("matches({}, \"^(?=.*y)x\")", repeated("x", 200_000));
    let evaluation = evaluate(&long).unwrap();
    assert_eq!((evaluation.value, evaluation.warnings.len()), (Value::Boolean(false), 0));
}

/// A look behind tries the starts alone from which its pattern can reach, so a long text takes steps by its length.
#[test]
fn looks_behind_reach_as_far_as_their_pattern() {
    let text = repeated("abc;", 60_000);
    for pattern in ["(?<=;)", "(?<=;|!!)", "(?<=(?>c;){1,2})", "(?<!;?[abc](?=.*?))"] {
        let evaluation = evaluate(&format!("count(split({text}, \"{pattern}\"))")).unwrap();
        assert_eq!(evaluation.value, Value::integer(15_001), "{pattern}");
        assert!(evaluation.steps < 1_500_000, "{pattern}: {} steps", evaluation.steps);
    }
    // A start that lies before the text is not searched for.
    let far = format!("matches({text}, \"(?<=a{{100000}});\")");
    assert_eq!(evaluate(&far).unwrap().value, Value::Boolean(false));
}

#[test]
fn patterns_are_limited() {
    let huge = "matches(\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", \"(a{1,1000}){1,1000}$\")";
    let outcome = evaluate(huge).unwrap();
    assert!(outcome.value.is_null() && outcome.warnings[0].message.contains("Invalid pattern"));
    let nested = |count: usize| format!("matches(\"a\", \"{}a{}\")", "(?>".repeat(count), ")".repeat(count));
    assert_eq!(evaluate(&nested(50)).unwrap().value, Value::Boolean(true));
    let classes = format!("matches(\"a\", \"[{}]\")", "\\W".repeat(4_000));
    let instructions = "matches(\"ab\", \"(?=a)((ab|c){100}){100}\")";
    for (text, fault) in [
        (nested(51), "nested too deeply"),
        (classes, "its classes are too large"),
        (instructions.to_owned(), "it is too large"),
        ("matches(\"a\", \"(a\")".to_owned(), "a group is not closed"),
        ("matches(\"a\", \"[a\")".to_owned(), "a class is not closed"),
        ("replace(\"a\", \"a\", \"$1\")".to_owned(), "refers to a group that the pattern does not have"),
    ] {
        let outcome = evaluate(&text).unwrap();
        let message = &outcome.warnings[0].message;
        assert!(outcome.value.is_null() && message.contains(fault), "{message}");
    }
}

#[test]
fn deep_json_is_refused_by_name() {
    let nested = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(json::split_object(&nested(999)).is_ok() && Value::from_json(&nested(999)).is_ok());
    for text in [nested(1000), "[".repeat(1_000_000)] {
        assert!(matches!(Value::from_json(&text), Err(JsonError::TooDeep { .. })));
        assert!(matches!(json::validate(&text), Err(JsonError::TooDeep { .. })));
    }
    assert!(json::split_object(&nested(1000)).unwrap_err().to_string().contains("more than 1000 levels deep at byte"));
}

#[test]
fn a_deep_variable_can_be_read_but_not_nested_further() {
    struct Deep(String);
    impl Scope for Deep {
        fn variable(&self, _: &str) -> Option<VariableText<'_>> {
            Some(VariableText::Borrowed(&self.0))
        }
    }
    let scope = Deep(format!("{}{}", "[".repeat(1000), "]".repeat(1000)));
    let run = |text: &str| Expression::parse(text).unwrap().evaluate(&scope, &Environment::at(0));
    assert_eq!(run("v").unwrap().value.to_json(), scope.0);
    assert_eq!(run("v = w").unwrap().value, Value::Boolean(true));
    assert!(matches!(run("[v]"), Err(EvaluationError::ValueTooDeep(1000))));
}

/// A scope with one variable of about 3 MB.
struct Long(String);

impl Long {
    fn new() -> Self {
        Long(format!("\"{}\"", "x".repeat(3_000_000)))
    }

    fn evaluate(&self, text: &str) -> Result<Evaluation, EvaluationError> {
        let start = Instant::now();
        let result = Expression::parse(text).unwrap().evaluate(self, &Environment::at(0));
        assert!(start.elapsed() < Duration::from_secs(600), "{text} took {:?}", start.elapsed());
        result
    }
}

impl Scope for Long {
    fn variable(&self, _: &str) -> Option<VariableText<'_>> {
        Some(VariableText::Borrowed(&self.0))
    }
}

#[test]
fn long_texts_take_steps_wherever_they_are_compared() {
    let long = Long::new();
    for condition in ["v between v and v", "v in [v..v]", "v in ([v..v], v)", "v <= v", "[v] = [v]", "max([v, v]) = 1"]
    {
        let result = long.evaluate(&format!("every i in 1..1000000 satisfies {condition} or true"));
        assert!(matches!(result, Err(EvaluationError::TooManySteps(_))), "{condition}: {result:?}");
    }
    for condition in ["before(v, v)", "includes([v..v], v)", "coincides([v..v], [v..v])", "is(v, v)", "v in (> v)"] {
        let result = long.evaluate(&format!("every i in 1..1000000 satisfies {condition} or true"));
        assert!(matches!(result, Err(EvaluationError::TooManySteps(_))), "{condition}: {result:?}");
    }
    let texts = "{texts: for i in 1..1000 return v, r: min(texts)}.r = v";
    assert!(matches!(long.evaluate(texts), Err(EvaluationError::TooManySteps(_))));
    assert_eq!(long.evaluate("v between v and v and v in [v..v]").unwrap().value, Value::Boolean(true));
}

#[test]
fn long_texts_take_steps_wherever_they_are_read() {
    let long = Long::new();
    for call in [
        "number(v)",
        "from json(v)",
        "from base64(v)",
        "range(\"[1..2]\")",
        "replace(\"a\", \"b\", v)",
        "matches(\"a\", v)",
    ] {
        let text = format!("every i in 1..10000 satisfies {call} = null or true");
        let environment = Environment { step_limit: 200_000, ..Environment::at(0) };
        let result = Expression::parse(&text).unwrap().evaluate(&long, &environment);
        assert!(matches!(result, Err(EvaluationError::TooManySteps(_))), "{call}: {result:?}");
    }
    for call in ["date(v)", "time(v)", "date and time(v)", "date and time(@\"2020-01-01T00:00:00Z\", v)", "duration(v)"]
    {
        let result = long.evaluate(&format!("every i in 1..10000 satisfies {call} = null")).unwrap();
        assert_eq!(result.value, Value::Boolean(true), "{call}");
    }
    // The reason of an assertion that holds is not looked at.
    assert_eq!(long.evaluate("assert(1, true, v)").unwrap().value, Value::from_json("1").unwrap());
}

#[test]
fn functions_take_the_room_of_what_they_capture() {
    let entries: String = (0..20_000).map(|number| format!("a{number}: 1, ")).collect();
    let text = format!("{{{entries}f: for i in 1..1000000 return function() i}}");
    assert!(matches!(error(&text), EvaluationError::TooMuchMemory(_) | EvaluationError::TooManySteps(_)));
    let text = format!("{{{entries}f: function(n) n, r: for i in 1..1000000 return f(i)}}");
    assert!(matches!(error(&text), EvaluationError::TooMuchMemory(_) | EvaluationError::TooManySteps(_)));
}

#[test]
fn warnings_stay_short_whatever_they_quote() {
    let long = Long::new();
    for text in [format!("append(1{})", ", v".repeat(100_000)), format!("{}(1)", "name".repeat(50_000))] {
        let evaluation = long.evaluate(&format!("for i in 1..10 return {text}")).unwrap();
        assert!(!evaluation.warnings.is_empty());
        assert!(evaluation.warnings.iter().all(|warning| warning.message.len() < 20_000), "{}", text.len());
    }
}

#[test]
fn too_many_parts_of_a_text_are_not_collected() {
    let long = Long::new();
    for text in ["split(v, \"\")", "extract(v, \"x\")"] {
        let error = long.evaluate(text).unwrap_err();
        assert!(matches!(error, EvaluationError::ListTooLong(_) | EvaluationError::TooManySteps(_)), "{text}: {error}");
    }
}

#[test]
fn the_steps_of_an_evaluation_are_counted() {
    assert_eq!(evaluate("1").unwrap().steps, 0);
    let steps = evaluate("for i in 1..1000 return i").unwrap().steps;
    assert!((1_000..5_000).contains(&steps), "{steps}");
}

#[test]
fn assertions_end_the_evaluation() {
    assert_eq!(
        error("1 + assert(null, 1 = 2, \"no\")").to_string(),
        "Assertion failure on evaluate the expression '1 + assert(null, 1 = 2, \"no\")': no"
    );
}

/// A search for the next match may look to the end of the text each time: what it looks at is charged, so that a hundred
/// parts of a long text are too many with such a pattern, while hundred thousands are not with one that stops early.
#[test]
fn searches_for_match_after_match_are_charged_by_what_they_look_at() {
    let looks_far = [".*[^A]|[A]", "(?:A*B)|A", "A*?B|A"];
    for pattern in looks_far {
        for call in ["split(text, pattern)", "extract(text, pattern)", "replace(text, pattern, \"\")"] {
            let text = format!("{{text: {}, pattern: \"{pattern}\", r: {call}}}.r", repeated("A", 400_000));
            assert!(matches!(error(&text), EvaluationError::TooManySteps(_)), "{call} {pattern}");
        }
    }
    let count = |pattern: &str| format!("count(split({}, \"{pattern}\"))", repeated("ab, ", 100_000));
    for pattern in [",", ", ", "\\\\s*,\\\\s*", "[,;]+"] {
        assert_eq!(evaluate(&count(pattern)).unwrap().value, Value::integer(25_001), "{pattern}");
    }
}

/// An expression for a text of this many bytes.
fn repeated(part: &str, bytes: usize) -> String {
    let count = bytes / part.len() / 1000;
    let thousand = part.repeat(1000);
    format!("string join(for i in 1..{count} return \"{thousand}\")")
}

/// The charge of a search grows with the text and with what the pattern repeats.
#[test]
fn large_patterns_cost_more_than_small_ones() {
    let steps = |pattern: &str, bytes: usize| {
        let text = format!("matches({}, \"{pattern}\")", repeated("x", bytes));
        evaluate(&text).unwrap().steps
    };
    assert!(steps("y{1,100}", 50_000) > 5 * steps("y{1,10}", 50_000));
    assert!(steps("[yz]{10}", 80_000) > 3 * steps("[yz]{10}", 20_000));
    let large = format!("matches({}, \"(?:x?){{1000}}y\")", repeated("x", 400_000));
    assert!(matches!(error(&large), EvaluationError::TooManySteps(_)));
}

/// Each search clears the groups of its pattern, however early it finds a match.
#[test]
fn searches_with_many_groups_are_charged_for_them() {
    let steps = |groups: usize| {
        let text = format!("count(extract({}, \"(?=x)x|{}\"))", repeated("x", 1_000), "()".repeat(groups));
        let evaluation = evaluate(&text).unwrap();
        assert_eq!(evaluation.value, Value::integer(1_001), "a match at each character, and an empty one at the end");
        evaluation.steps
    };
    assert!(steps(3_900) > steps(1) + 100_000);
}

/// A scope with one variable whose text is shared.
struct Shared(Arc<str>);

impl Scope for Shared {
    fn variable(&self, _: &str) -> Option<VariableText<'_>> {
        Some(VariableText::Shared(self.0.clone()))
    }
}

/// Many expressions on the same text read it once or a few times, whether they need a part of it or the whole.
#[test]
fn a_command_reads_a_long_variable_once() {
    let items: Vec<String> = (0..20_000).map(|number| format!("{{\"a\":{number},\"b\":[1]}}")).collect();
    let scope = Shared(format!("{{\"a\":1,\"items\":[{}]}}", items.join(",")).into());
    let environment = Environment::at(0);
    let budget = Budget::of(&environment);
    for text in ["v.a = 1", "count(v.items)", "v.a + 1", "v.items[1].a"] {
        let expression = Expression::parse(text).unwrap();
        for _ in 0..500 {
            expression.evaluate_within(&scope, &environment, &budget).unwrap();
        }
    }
    assert!(budget.bytes_read() <= 4 * scope.0.len(), "{} of {}", budget.bytes_read(), scope.0.len());
    // It is the same text, wherever it was read from.
    let expression = Expression::parse("count(v.items)").unwrap();
    let spent = [scope.0.clone(), String::from(&*scope.0).into()].map(|text| {
        let before = (budget.bytes_read(), budget.steps_used());
        expression.evaluate_within(&Shared(text), &environment, &budget).unwrap();
        (budget.bytes_read() - before.0, budget.steps_used() - before.1)
    });
    assert_eq!(spent[0], spent[1]);
    assert_eq!(spent[0].0, 0, "it is known");
    // A text that is lent for one evaluation is read by each, until too much was read.
    let long = Long::new();
    let environment = Environment { step_limit: 50_000_000, ..environment };
    let (length, budget) = (Expression::parse("v = null").unwrap(), Budget::of(&environment));
    let read = (0..1_000).map(|_| length.evaluate_within(&long, &environment, &budget)).find_map(Result::err);
    assert!(matches!(read, Some(EvaluationError::TooMuchRead(_))), "{read:?}");
    assert!(budget.bytes_read() > environment.read_limit_bytes - long.0.len());
    assert!(budget.bytes_read() <= environment.read_limit_bytes);
}

/// What several evaluations share is counted exactly, also by those that fail.
#[test]
fn a_failed_evaluation_has_used_what_it_used() {
    let environment = Environment { step_limit: 10_000, ..Environment::at(0) };
    let budget = Budget::of(&environment);
    let run = |text: &str| Expression::parse(text).unwrap().evaluate_within(&(), &environment, &budget);
    assert!(run("for i in 1..100 return assert(i, i < 50)").is_err());
    let used = budget.steps_used();
    assert!((50..1_000).contains(&used), "{used}");
    assert_eq!(run("count(for i in 1..100000 return i)").unwrap_err(), EvaluationError::TooManySteps(10_000));
    assert!(budget.steps_used() > 9_000 && budget.steps_used() <= 10_000, "{}", budget.steps_used());
    assert!(run("for i in 1..100 return i").is_err(), "nothing is left for another one");
    assert_eq!(run("1").unwrap().value, Value::integer(1), "what costs nothing goes on");
}

/// Memory is counted as it is taken: small values in long lists, objects without entries, text that grows.
#[test]
fn values_take_the_memory_that_they_take() {
    let read = |text: String| {
        let environment = Environment { memory_limit_bytes: 8 << 20, ..Environment::at(0) };
        Expression::parse("count(v)").unwrap().evaluate(&Shared(text.into()), &environment)
    };
    let list = |item: &str, count: usize| format!("[{}1]", format!("{item},").repeat(count));
    for (item, count) in [("1", 200_000), ("[]", 80_000), ("{}", 50_000), ("\"\"", 120_000), ("{\"a\":1}", 40_000)] {
        assert!(matches!(read(list(item, count)), Err(EvaluationError::TooMuchMemory(_))), "{item}");
        assert!(read(list(item, count / 10)).is_ok(), "{item}");
    }
    for (text, count) in [("{a: i}", 600_000), ("[i, i, i]", 950_000), ("function() i", 950_000)] {
        let text = format!("count(for i in 1..{count} return {text})");
        let error = error(&text);
        assert!(
            matches!(error, EvaluationError::TooMuchMemory(_) | EvaluationError::TooManySteps(_)),
            "{text}: {error}"
        );
    }
}

/// What takes memory takes time: the most that a command may build by small values alone takes all of its steps, too.
#[test]
fn memory_that_is_taken_costs_steps() {
    let evaluation = evaluate("for i in 1..100000 return null").unwrap();
    let least = evaluation.memory_bytes / 16;
    assert!(evaluation.steps as usize >= least, "{} steps for {} bytes", evaluation.steps, evaluation.memory_bytes);
    let text = "count(for i in 1..1000 return string join(for j in 1..1000 return \"xxxxxxxxxx\"))";
    assert!(matches!(error(text), EvaluationError::TooManySteps(_)), "{}", error(text));
}

/// The text of a value is charged while it grows, and not longer than allowed.
#[test]
fn a_value_becomes_text_within_its_bounds() {
    let environment = Environment { memory_limit_bytes: 1 << 20, ..Environment::at(0) };
    let shared = (0..20).fold(Value::string("x".repeat(1_000)), |part, _| Value::list(vec![part.clone(), part]));
    let budget = Budget::of(&environment);
    assert_eq!(budget.to_json(&shared, 10_000), Err(EvaluationError::ResultTooLarge(10_000)));
    assert!(budget.bytes_built() <= 30_000, "{}", budget.bytes_built());
    assert_eq!(budget.to_json(&shared, usize::MAX), Err(EvaluationError::TooMuchMemory(1 << 20)));
    assert!(budget.bytes_built() <= 1 << 20);
    let deep = (0..1_001).fold(Value::Null, |part, _| Value::list(vec![part]));
    assert_eq!(Budget::of(&environment).to_json(&deep, 10_000), Err(EvaluationError::ValueTooDeep(1_000)));
    let text = Budget::of(&environment).to_json(&Value::list(vec![Value::integer(1)]), 3);
    assert_eq!(text.as_deref(), Ok("[1]"));
}

/// Real functions come from a separate library, so that every build gives the same digits.
#[test]
fn real_functions_give_the_same_digits_everywhere() {
    for (text, expected) in [
        ("exp(1)", "2.7182818284590455"),
        ("log(10)", "2.302585092994046"),
        ("2 ** 0.5", "1.4142135623730951"),
        ("10 ** 0.1", "1.2589254117941673"),
    ] {
        assert_eq!(evaluate(text).unwrap().value.to_json(), expected, "{text}");
    }
}
