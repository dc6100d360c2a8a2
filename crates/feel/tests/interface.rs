//! What a caller relies on: names, constants, places of errors, warnings, lazy reading.

use std::cell::RefCell;

use feel::{Environment, Expression, Scope, UnaryTests, Value, VariableText};

fn parse(text: &str) -> Expression {
    Expression::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn names(text: &str) -> Vec<String> {
    parse(text).variables().iter().map(|name| name.to_string()).collect()
}

#[test]
fn variables_are_the_free_first_names() {
    assert_eq!(names("a.b + c[d > 1].e + a.f"), ["a", "c", "d"]);
    assert_eq!(names("for x in xs return x + y"), ["xs", "y"]);
    assert_eq!(names("{a: 1, b: a + c}"), ["c"]);
    assert_eq!(names("function(p) p + q"), ["q"]);
    assert_eq!(names("order value in (? > limit)"), ["order value", "limit"]);
    assert_eq!(names("list contains(list, `a b`) and date and time(text) > now()"), ["list", "a b", "text"]);
    assert_eq!(names("some x in 1..3 satisfies x = 2"), Vec::<String>::new());
}

#[test]
fn constants_are_known_without_evaluation() {
    assert_eq!(parse("1 + 2").constant().and_then(|value| value.as_i64()), Some(3));
    assert_eq!(parse("\"static\"").constant().unwrap().as_str(), Some("static"));
    assert!(parse("a").constant().is_none());
    assert!(parse("count(for i in 1..10000 return i)").constant().is_none(), "it takes too long for a constant");
    assert!(parse("[now()]").constant().is_none());
    assert!(parse("today()").constant().is_none());
}

#[test]
fn syntax_errors_name_the_place() {
    let message = |text: &str| Expression::parse(text).unwrap_err().to_string();
    assert_eq!(
        message("a > \n  and b"),
        "Failed to parse the expression 'a > \n  and b': expected an expression at line 2, column 3, but found 'and'."
    );
    assert_eq!(
        message("(1 + 2"),
        "Failed to parse the expression '(1 + 2': expected ')' at line 1, column 7, but found the end of the expression."
    );
    assert!(message("if a then 1").contains("expected 'else' at line 1, column 12"));
    assert!(message("{a: 1,}").contains("expected another item behind the comma"));
    assert!(message("1 instance of money").contains("expected the name of a type"));
    assert!(message("“quoted”").contains("column 1, but found '“quoted”'"));
}

#[test]
fn only_what_is_needed_is_asked_for_and_only_once() {
    struct Recording(RefCell<Vec<String>>);
    impl Scope for Recording {
        fn variable(&self, name: &str) -> Option<VariableText<'_>> {
            self.0.borrow_mut().push(name.to_owned());
            Some(VariableText::Borrowed("{\"b\": true, \"c\": [1, 2]}"))
        }
    }
    let scope = Recording(RefCell::default());
    let expression = parse("a.b or z and a.c[1] = y");
    let result = expression.evaluate(&scope, &Environment::at(0)).unwrap();
    assert_eq!(result.value, Value::Boolean(true));
    assert_eq!(*scope.0.borrow(), ["a"]);
    let result = parse("[a.b, a.c, a, a.b, a.b, a.b]").evaluate(&scope, &Environment::at(0)).unwrap();
    assert_eq!(result.value.as_list().unwrap().len(), 6);
    assert_eq!(*scope.0.borrow(), ["a", "a"]);
}

#[test]
fn failed_operations_warn() {
    let warnings = |text: &str| -> Vec<String> {
        let evaluation = parse(text).evaluate(&(), &Environment::at(0)).unwrap();
        assert!(evaluation.value.is_null(), "{text} gives {}", evaluation.value);
        evaluation.warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings("x > 1"),
        ["[NO_VARIABLE_FOUND] No variable found with name 'x'", "[NOT_COMPARABLE] Can't compare 'null' with '1'"]
    );
    assert_eq!(
        warnings("{a: 1, b: 2}.c"),
        ["[NO_CONTEXT_ENTRY_FOUND] No context entry found with key 'c'. Available keys: 'a', 'b'"]
    );
    assert_eq!(warnings("1 + \"a\""), ["[INVALID_TYPE] Can't add '\"a\"' to '1'"]);
    assert_eq!(warnings("nope(1)"), ["[NO_FUNCTION_FOUND] No function found with name 'nope' and 1 parameters"]);
    assert_eq!(
        warnings("upper case(1)"),
        ["[FUNCTION_INVOCATION_FAILURE] Failed to invoke function 'upper case': Illegal arguments: '1'"]
    );
    assert_eq!(
        warnings("date(\"x\")"),
        ["[FUNCTION_INVOCATION_FAILURE] Failed to invoke function 'date': Can't parse \"x\" as a date"]
    );
}

#[test]
fn a_name_that_begins_or_ends_with_not_is_objected_to_and_still_compiled() {
    let objection = |text: &str| Expression::parse_strictly(text).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(
        objection("status not in [\"a\"]").unwrap_err(),
        "Failed to parse the expression 'status not in [\"a\"]': expected not(…) around what is negated, or backticks around a \
         name of several words, at line 1, column 8, but found 'not'."
    );
    for text in ["not(a in [1])", "`a not` in [1]", "is nothing", "{not a: 1}", "knot in [1]"] {
        assert_eq!(objection(text), Ok(()), "{text}");
    }
    let tests = |text: &str| UnaryTests::parse(text).unwrap().unless_objected().is_ok();
    assert!(tests("not(1)") && tests("x, -") && !tests("not x"));
    // What is there already means what it meant.
    let evaluation = parse("x not in [1]").evaluate(&(), &Environment::at(0)).unwrap();
    assert_eq!(evaluation.value, Value::Boolean(false));
}

#[test]
fn an_entry_is_not_read_with_brackets() {
    let expression = parse("{a: 1}[\"a\"]");
    let evaluation = expression.evaluate(&(), &Environment::at(0)).unwrap();
    assert!(evaluation.value.is_null());
    assert_eq!(
        evaluation.warnings[0].to_string(),
        "[INVALID_TYPE] Expected list but found '{a:1}'. Read an entry of a context as in context.entry, or with get \
         value(context, key)."
    );
}

#[test]
fn kinds_are_the_types_of_results() {
    let kind = |text: &str| parse(text).constant().map(|value| value.kind());
    for (text, expected) in [
        ("null", "NULL"),
        ("true", "BOOLEAN"),
        ("1.5", "NUMBER"),
        ("\"\"", "STRING"),
        ("[]", "ARRAY"),
        ("{}", "OBJECT"),
        ("@\"2020-01-01\"", "DATE"),
        ("@\"10:00:00\"", "TIME"),
        ("@\"2020-01-01T10:00:00Z\"", "DATE_TIME"),
        ("@\"P1M\"", "PERIOD"),
        ("@\"PT1S\"", "DURATION"),
        ("function() 1", "FUNCTION"),
    ] {
        assert_eq!(kind(text), Some(expected), "{text}");
    }
    let time = parse("@\"2020-01-01T01:00:00+01:00\"").constant().unwrap();
    assert_eq!(time.as_epoch_milliseconds(), Some(1_577_836_800_000));
    assert_eq!(parse("@\"PT1.5S\"").constant().unwrap().as_duration_milliseconds(), Some(1500));
}
