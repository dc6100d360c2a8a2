//! Whatever is nested, no recursion takes more of the stack than 256 KiB: what is too deep is refused before.

use std::sync::Arc;

use feel::{Budget, Environment, EvaluationError, Expression, Scope, UnaryTests, Value, VariableText, json};

const STACK_BYTES: usize = 256 << 10;

/// Runs on a thread with a small stack: an overflow ends the process.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread can be started");
    thread.join().expect("the thread ends without a panic");
}

/// The variable `v` is nested as deeply as a variable can be, `w` is an equal one.
struct Deep(Arc<str>);

impl Deep {
    fn lists() -> Deep {
        Deep(format!("{}{}", "[".repeat(json::DEPTH_LIMIT), "]".repeat(json::DEPTH_LIMIT)).into())
    }

    fn contexts() -> Deep {
        let levels = json::DEPTH_LIMIT - 1;
        Deep(format!("{}{{}}{}", "{\"a\":".repeat(levels), "}".repeat(levels)).into())
    }
}

impl Scope for Deep {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        matches!(name, "v" | "w").then(|| VariableText::Borrowed(&self.0))
    }
}

fn evaluate(text: &str, scope: &dyn Scope) -> Result<Value, EvaluationError> {
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{error}"));
    expression.evaluate(scope, &Environment::at(0)).map(|evaluation| evaluation.value)
}

#[test]
fn deep_values_are_read_compared_written_and_dropped() {
    on_a_small_stack(|| {
        for scope in [Deep::lists(), Deep::contexts()] {
            assert_eq!(evaluate("v = w", &scope), Ok(Value::Boolean(true)));
            assert_eq!(evaluate("v in (w)", &scope), Ok(Value::Boolean(true)));
            let written = evaluate("v", &scope).unwrap();
            let budget = Budget::of(&Environment::at(0));
            assert_eq!(budget.to_json(&written, usize::MAX).as_deref(), Ok(&*scope.0));
            assert!(evaluate("string(v)", &scope).unwrap().as_str().is_some_and(|text| text.len() >= 2_000));
            assert_eq!(evaluate("to json(v) = to json(w)", &scope), Ok(Value::Boolean(true)));
            assert_eq!(evaluate("from json(to json(v)) = w", &scope), Ok(Value::Boolean(true)));
            assert_eq!(evaluate("1 + v", &scope), Ok(Value::Null), "a warning quotes it");
            assert_eq!(evaluate("[v, w]", &scope), Err(EvaluationError::ValueTooDeep(1_000)));
            assert_eq!(evaluate("{a: v}", &scope), Err(EvaluationError::ValueTooDeep(1_000)));
        }
        let lists = Deep::lists();
        assert_eq!(evaluate("flatten(v)", &lists).unwrap().to_json(), "[]");
        for text in ["index of(v, w[1])", "list contains(v, w[1])", "distinct values(v) = w", "union(v, w) = w"] {
            let found = evaluate(text, &lists).unwrap();
            assert!(!found.is_null(), "{text}");
        }
        assert!(evaluate("sort(v, function(a, b) a = b)", &lists).is_ok());
        assert!(evaluate("v instance of list<list<Any>>", &lists).is_ok());
        assert!(evaluate("v[item = w]", &lists).is_ok());
        let tests = UnaryTests::parse("v, w, [1..2], not(v)").unwrap();
        let input = evaluate("v", &lists).unwrap();
        assert!(tests.evaluate(&input, &lists, &Environment::at(0)).is_ok());
    });
}

#[test]
fn what_grows_deeper_step_by_step_is_stopped() {
    on_a_small_stack(|| {
        for wrap in [
            "[partial[-1]]",
            "{a: partial[-1]}",
            "[partial[-1]..2]",
            "function() partial",
            "{f: function() partial[-1]}",
            "context put({}, \"a\", partial[-1])",
            "put({}, [\"a\", \"b\", \"c\"], partial[-1])",
            "append([], partial[-1])",
            "concatenate([partial[-1]], [1])",
            "insert before([], 1, partial[-1])",
            "get entries({a: partial[-1]})",
            "partition([partial[-1]], 1)",
            "context merge({a: partial[-1]}, {b: 1})",
            "context([{key: \"a\", value: partial[-1]}])",
            "list replace([1], 1, partial[-1])",
        ] {
            let text = format!("for i in 1..100000 return {wrap}");
            assert_eq!(evaluate(&text, &()), Err(EvaluationError::ValueTooDeep(1_000)), "{text}");
        }
        let keys = "put({}, for i in 1..100000 return \"a\", 1)";
        assert_eq!(evaluate(keys, &()), Err(EvaluationError::ValueTooDeep(1_000)));
        let nested = format!("from json({:?})", "[".repeat(100_000));
        assert_eq!(evaluate(&nested, &()), Ok(Value::Null));
        assert!(Value::from_json(&"[".repeat(100_000)).is_err());
        assert!(json::split_object(&format!("{{\"a\":{}", "{\"a\":".repeat(100_000))).is_err());
    });
}

#[test]
fn deep_expressions_are_refused_or_evaluated() {
    on_a_small_stack(|| {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{a: ", "}"),
            ("-", ""),
            ("not(", ")"),
            ("1 + (", ")"),
            ("1 * 2 ** (", ")"),
            ("if true then ", " else 1"),
            ("if ", " then 1 else 2"),
            ("1 in (not(", "))"),
            ("for x in [1] return ", ""),
            ("some x in [1] satisfies ", ""),
            ("function(x) ", ""),
            ("[1][", "]"),
            ("string(", ")"),
            ("{f: function() ", "}"),
            ("1 = (", ")"),
            ("true and (", ")"),
            ("1 between 0 and (", ")"),
        ] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let deepest = (1..=100).rev().find_map(|depth| Expression::parse(&nested(depth)).ok());
            let deepest = deepest.unwrap_or_else(|| panic!("{open} cannot be nested at all"));
            let _ = deepest.evaluate(&(), &Environment::at(0));
            drop(deepest);
            assert!(Expression::parse(&nested(100_000)).is_err(), "{open}");
        }
        for chain in ["[1]", ".a", "(1)", " = 1", " instance of number"] {
            let _ = Expression::parse(&format!("a.b{}", chain.repeat(100_000)));
        }
        // Each level of parentheses adds filters and comparisons, as many as still compile.
        let level = |inner: String| format!("({inner}{}{})", "[1]".repeat(30), " = 1".repeat(30));
        let deepest = (0..45).fold("1".to_owned(), |inner, _| level(inner));
        let compiled = Expression::parse(&deepest).unwrap();
        assert!(compiled.evaluate(&(), &Environment::at(0)).is_err());
    });
}

#[test]
fn recursion_of_functions_is_stopped() {
    on_a_small_stack(|| {
        let loops = format!("for x in [1]{} return g(g)", ", x in [1]".repeat(80));
        let tests = format!("1 in ({}g(g){})", "not(".repeat(80), ")".repeat(80));
        for body in [
            "g(g)",
            "1 + g(g)",
            "if true then g(g) else 1",
            "[g(g)]",
            "{a: g(g)}.a",
            "for x in [1] return g(g)",
            "some x in [1] satisfies g(g)",
            "[1][g(g)]",
            "sort([2, 1], function(a, b) g(g))",
            "list replace([1], function(a, b) g(g), 2)",
            "g(g) between g(g) and g(g)",
            "1 in (g(g))",
            "{h: function() g(g), r: h()}.r",
            "for x in [1] return if some y in [2] satisfies [g(g)][item = x][1] in (1, {a: g(g)}.a) then sort([2, 1], function(a, b) g(g)) else 2",
            &loops,
            &tests,
        ] {
            let text = format!("{{f: function(g) {body}, r: f(f)}}.r");
            assert!(matches!(evaluate(&text, &()), Err(EvaluationError::TooDeep(_))), "{text}");
        }
        // A chain of functions, each of which holds the one before.
        let chain = "for i in 1..900 return if i = 1 then function() 1 else {p: partial[-1], f: function() p()}.f";
        assert!(matches!(
            evaluate(&format!("{{l: {chain}, f: l[-1], r: f()}}.r"), &()),
            Err(_) | Ok(Value::Null | Value::Number(_))
        ));
    });
}
