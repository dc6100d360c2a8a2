//! Unary tests as decision tables use them, functions that cross expressions, scopes of values, known names.

use std::sync::Arc;

use feel::{
    Budget, ConstantTest, Context, Environment, Evaluation, EvaluationError, Expression, Names, NativeFunction, Scope,
    UnaryTests, Value,
};

fn value(text: &str) -> Value {
    evaluate(&Expression::parse(text).unwrap_or_else(|error| panic!("{error}")), &())
}

fn evaluate(expression: &Expression, scope: &dyn Scope) -> Value {
    expression.evaluate(scope, &Environment::at(0)).unwrap_or_else(|error| panic!("{error}")).value
}

fn context(entries: &[(&str, Value)]) -> Context {
    let mut context = Context::new();
    for (name, value) in entries {
        context.put(Arc::from(*name), value.clone());
    }
    context
}

#[test]
fn inputs_pass_or_not() {
    let scope = context(&[("limit", value("10")), ("yes", value("true")), ("no", value("false"))]);
    // Tests, input, outcome.
    for (tests, input, expected) in [
        ("-", "1", "true"),
        ("-", "null", "true"),
        ("1", "1", "true"),
        ("1, 2", "2", "true"),
        ("1, 2", "3", "false"),
        ("\"gold\", \"silver\"", "\"silver\"", "true"),
        ("true", "true", "true"),
        ("true", "false", "false"),
        ("false", "false", "true"),
        ("not(true)", "false", "true"),
        ("null", "null", "true"),
        ("not(null)", "1", "true"),
        ("not(null)", "null", "false"),
        ("not(1, 2)", "2", "false"),
        ("not(1, 2)", "3", "true"),
        ("> 3", "4", "true"),
        ("<= 3", "4", "false"),
        ("> 3", "\"a\"", "null"),
        ("= 3", "3", "true"),
        ("!= 3", "3", "false"),
        ("[1..3]", "3", "true"),
        ("[1..3)", "3", "false"),
        ("]1..3[", "1", "false"),
        ("(1..3)", "2", "true"),
        ("< 1, > 5", "7", "true"),
        ("[1..3], [7..9]", "8", "true"),
        ("> limit", "11", "true"),
        ("[1..limit]", "10", "true"),
        ("limit", "10", "true"),
        ("limit - 1", "9", "true"),
        ("? > 3", "4", "true"),
        ("? > 3 and ? < 5", "5", "false"),
        ("? < 3 or ? > 5", "7", "true"),
        ("> 3 and < 5", "4", "true"),
        ("< 3 or > 5", "4", "false"),
        ("cellInput > 3", "4", "true"),
        // Inside of a condition, `not` is the function.
        ("? = 3 or not(yes)", "4", "false"),
        ("? = 3 or not(no)", "4", "true"),
        ("? = 3 or not(missing)", "4", "null"),
        ("not(not(yes))", "7", "true"),
        ("not(not(no))", "7", "false"),
        ("not(not(5))", "5", "true"),
        ("not(not(no) = yes)", "7", "false"),
        ("? = 3 or not(no) = yes", "4", "true"),
        ("not((1..3]), 2", "2", "true"),
        ("not([1..3)), not(3)", "2", "true"),
        ("> 3 and not(5)", "5", "false"),
        // A condition on the input passes only if it is true.
        ("?", "[1]", "null"),
        ("?", "true", "true"),
        ("odd(?)", "3", "true"),
        ("not(odd(?))", "3", "false"),
        ("contains(?, \"x\"), \"y\"", "\"axb\"", "true"),
        ("contains(?, \"x\"), \"y\"", "\"y\"", "true"),
        ("[1, 2, 3]", "2", "true"),
        ("[1, 2, 3]", "4", "false"),
        ("list contains([1, 2], ?)", "2", "true"),
        ("yes", "7", "true"),
        ("no", "7", "false"),
        ("limit > 5", "7", "true"),
        ("limit > 15", "7", "false"),
        ("@\"2020-01-01\"", "@\"2020-01-01\"", "true"),
        ("> date(\"2020-01-01\")", "@\"2020-01-02\"", "true"),
        ("[date(\"2020-01-01\")..date(\"2020-02-01\")]", "@\"2020-01-02\"", "true"),
        ("if ? = 1 then true else false", "1", "true"),
        ("some x in [1, 2] satisfies x = ?", "2", "true"),
        ("?.a > 3", "{a: 4}", "true"),
        ("\"a\"", "1", "null"),
        ("-1", "-1", "true"),
        ("-limit", "-10", "true"),
    ] {
        let compiled = UnaryTests::parse(tests).unwrap_or_else(|error| panic!("{error}"));
        let outcome = compiled.evaluate(&value(input), &scope, &Environment::at(0)).unwrap().value;
        assert_eq!(outcome.to_json(), expected, "{tests} with {input}");
    }
}

#[test]
fn the_input_can_have_a_name_of_its_own() {
    let tests = UnaryTests::parse_with("age > 18 and ? < minimum age", "age", &Names::default()).unwrap();
    assert_eq!(tests.variables().iter().map(|name| &**name).collect::<Vec<_>>(), ["minimum age"]);
    let scope = context(&[("minimum age", value("30"))]);
    let outcome = tests.evaluate(&value("20"), &scope, &Environment::at(0)).unwrap();
    assert_eq!(outcome.value, Value::Boolean(true));
}

#[test]
fn tests_that_are_none_name_the_place() {
    for text in ["", "1,", "not()", "> ", "1 2", "not(1", "and"] {
        assert!(UnaryTests::parse(text).is_err(), "{text}");
    }
    assert_eq!(
        UnaryTests::parse("\"a\" \"b\"").unwrap_err().to_string(),
        "Failed to parse the expression '\"a\" \"b\"': expected ',' or the end of the unary tests at line 1, column 5, \
         but found '\"b\"'."
    );
}

#[test]
fn constants_can_be_indexed() {
    let constants = |text: &str| UnaryTests::parse(text).unwrap().constants();
    assert!(matches!(constants("-").as_deref(), Some([ConstantTest::Any])));
    let Some(found) = constants("1, \"a\", [2..5), > 7, true") else { panic!("all of them are constants") };
    let [ConstantTest::Equal(one), ConstantTest::Equal(_), within, above, ConstantTest::Equal(_)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(*one, value("1"));
    let (ConstantTest::Within(within), ConstantTest::Within(above)) = (within, above) else { panic!("{found:?}") };
    assert!(within.contains(&value("2")) == Some(true) && within.contains(&value("5")) == Some(false));
    assert!(above.contains(&value("7")) == Some(false) && above.contains(&value("8")) == Some(true));
    for text in ["? > 1", "x", "not(1)", "[1, 2]", "null", "!= 1", "1, x", "[x..2]"] {
        assert!(constants(text).is_none(), "{text}");
    }
}

#[test]
fn known_names_need_no_backticks() {
    let names = Names::new(["Pre-bureau risk", "a+b", "in stock", "a", "Pre-bureau risk category", "it's"]);
    let scope = context(&[
        ("Pre-bureau risk", value("2")),
        ("Pre-bureau risk category", value("\"HIGH\"")),
        ("a+b", value("5")),
        ("a", value("1")),
        ("in stock", value("true")),
        ("it's", value("{x-y: 3}")),
    ]);
    let known = |text: &str| evaluate(&Expression::parse_with(text, &names).unwrap(), &scope).to_json();
    assert_eq!(known("Pre-bureau risk*3"), "6");
    assert_eq!(known("Pre-bureau risk category = \"HIGH\" and in stock"), "true");
    assert_eq!(known("a+b - a + bc"), "null");
    assert_eq!(known("[a+b, a + b, a+a]"), "[5,null,2]");
    assert_eq!(known("`it's`"), known("it's"));
    let cell = UnaryTests::parse_with("> Pre-bureau risk", "x", &names).unwrap();
    assert_eq!(cell.evaluate(&value("3"), &scope, &Environment::at(0)).unwrap().value, Value::Boolean(true));
}

#[test]
fn functions_leave_their_expression() {
    let definition = Expression::parse("function(x) x * factor + offset").unwrap();
    let function = evaluate(&definition, &context(&[("factor", value("3"))]));
    let scope = context(&[("scale", function.clone()), ("factor", value("100")), ("offset", value("1"))]);
    assert_eq!(evaluate(&Expression::parse("scale(2)").unwrap(), &scope), Value::Null);
    let definition = Expression::parse("{offset: 7, scale: function(x) x * factor + offset}").unwrap();
    let module = evaluate(&definition, &context(&[("factor", value("3"))]));
    let scope = context(&[("module", module), ("factor", value("100"))]);
    let run = |text: &str| evaluate(&Expression::parse(text).unwrap(), &scope).to_json();
    assert_eq!(run("module.scale(2) + factor"), "113");
    assert_eq!(run("module.scale(x: 2)"), "13");
    assert_eq!(run("sort([3, 1, 2], function(a, b) module.scale(a) < module.scale(b))"), "[1,2,3]");
    assert_eq!(run("for f in [module.scale] return f(1)"), "[10]");
    let direct = scope.get("module").and_then(Value::as_context).and_then(|module| module.get("scale")).unwrap();
    let environment = Environment::at(0);
    let Value::Function(direct) = direct else { panic!("{direct}") };
    assert_eq!(direct.call(&[value("1")], &environment, &Budget::of(&environment)).unwrap().value.to_json(), "10");
    assert_eq!(direct.call(&[], &environment, &Budget::of(&environment)).unwrap().warnings.len(), 1);
}

/// Evaluates an expression with its parameters as the scope, and itself under a name.
struct Model {
    parameters: Vec<Arc<str>>,
    body: Expression,
}

impl NativeFunction for Model {
    fn parameters(&self) -> &[Arc<str>] {
        &self.parameters
    }

    fn call(
        &self,
        arguments: &[Value],
        environment: &Environment,
        budget: &Budget,
    ) -> Result<Evaluation, EvaluationError> {
        let mut scope = Context::new();
        for (name, argument) in self.parameters.iter().zip(arguments) {
            scope.put(name.clone(), argument.clone());
        }
        let own = Model { parameters: self.parameters.clone(), body: self.body.clone() };
        scope.put(Arc::from("model"), Value::function(Arc::new(own)));
        self.body.evaluate_within(&scope, environment, budget)
    }
}

fn model(body: &str) -> Context {
    let model = Model { parameters: vec![Arc::from("n"), Arc::from("f")], body: Expression::parse(body).unwrap() };
    context(&[("model", Value::function(Arc::new(model)))])
}

#[test]
fn functions_of_the_caller_can_be_called() {
    let scope = model("if n = 0 then f(1) else n + model(n - 1, f)");
    let run = |text: &str| Expression::parse(text).unwrap().evaluate(&scope, &Environment::at(0));
    assert_eq!(run("model(3, function(x) x * 100)").unwrap().value.to_json(), "106");
    assert_eq!(run("{k: 5, r: model(f: function(x) x * k, n: 1)}.r").unwrap().value.to_json(), "6");
    let wrong = run("model(1)").unwrap();
    assert!(wrong.value.is_null() && wrong.warnings.len() == 1);
    assert!(run("model(2, nothing)").unwrap().value.is_null());
}

#[test]
fn functions_of_the_caller_are_within_the_limits() {
    let environment = Environment::at(0);
    let run = |body: &str| Expression::parse("model(1, 1)").unwrap().evaluate(&model(body), &environment).unwrap_err();
    assert_eq!(run("model(n + 1, f)"), EvaluationError::TooDeep(environment.depth_limit));
    assert_eq!(run("some i in 1..10000000 satisfies i < 0"), EvaluationError::TooManySteps(environment.step_limit));
    let many = "count(for i in 1..1000 return model(0, function(x) count(for j in 1..100000 return j)))";
    let scope = model("f(1)");
    let error = Expression::parse(many).unwrap().evaluate(&scope, &environment).unwrap_err();
    assert!(matches!(error, EvaluationError::TooManySteps(_) | EvaluationError::TooMuchMemory(_)), "{error}");
}
