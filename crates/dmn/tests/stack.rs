//! Whatever a model nests, evaluating it and dropping what it gave takes no more of the stack than 256 KiB, and reading it no
//! more than 640 KiB in a build that checks: what is too deep is refused before.

mod support;

use dmn::MAXIMUM_NESTING_LEVELS;
use feel::json;
use support::{decision, evaluate, graph, literal, model, table};

/// Reading a model recurses with its XML elements, which may be 256 levels deep.
const READING_STACK_BYTES: usize = 640 << 10;
const STACK_BYTES: usize = 256 << 10;

/// Runs on a thread with a small stack: an overflow ends the process.
fn on_a_stack_of<T: Send + 'static>(bytes: usize, run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(run).expect("a thread can be started");
    thread.join().expect("the thread ends without a panic")
}

/// Reads a model on a small stack, and evaluates a decision on a smaller one.
fn evaluated(content: String, decision: &'static str, variables: &str) -> Result<String, String> {
    let graph = on_a_stack_of(READING_STACK_BYTES, move || graph(&content));
    let variables = variables.to_owned();
    on_a_stack_of(STACK_BYTES, move || {
        let result = evaluate(&graph, decision, &variables).result;
        result.map(|value| value.to_json()).map_err(|failure| failure.to_string())
    })
}

/// Boxed expressions that hold another one, and how many XML elements they take.
fn wrappers() -> Vec<(&'static str, String, String, usize)> {
    let one = literal("1");
    let wrapper = |name, before: &str, after: &str| {
        let levels = before.matches('<').count() - 2 * before.matches("</").count() - before.matches("/>").count();
        (name, before.to_owned(), after.to_owned(), levels)
    };
    vec![
        wrapper("list", "<list>", "</list>"),
        wrapper("context", "<context><contextEntry><variable name=\"k\"/>", "</contextEntry></context>"),
        wrapper("result of a context", "<context><contextEntry>", "</contextEntry></context>"),
        wrapper("relation", "<relation><column name=\"c\"/><row>", "</row></relation>"),
        wrapper(
            "conditional",
            &format!("<conditional><if>{}</if><then>", literal("true")),
            &format!("</then><else>{one}</else></conditional>"),
        ),
        wrapper("if", "<conditional><if>", &format!("</if><then>{one}</then><else>{one}</else></conditional>")),
        wrapper("loop", &format!("<for iteratorVariable=\"i\"><in>{one}</in><return>"), "</return></for>"),
        wrapper("collection", "<for iteratorVariable=\"i\"><in>", &format!("</in><return>{one}</return></for>")),
        wrapper("filter", "<filter><in>", &format!("</in><match>{}</match></filter>", literal("true"))),
        wrapper("match", &format!("<filter><in>{one}</in><match>"), "</match></filter>"),
        wrapper("some", &format!("<some iteratorVariable=\"i\"><in>{one}</in><satisfies>"), "</satisfies></some>"),
        wrapper("every", &format!("<every iteratorVariable=\"i\"><in>{one}</in><satisfies>"), "</satisfies></every>"),
        wrapper("function", "<functionDefinition>", "</functionDefinition>"),
        wrapper(
            "argument",
            &format!("<invocation>{}<binding><parameter name=\"n\"/>", literal("function(n) n")),
            "</binding></invocation>",
        ),
    ]
}

#[test]
fn boxed_expressions_of_every_kind_nest_as_deep_as_xml_allows() {
    // The deepest FEEL expression inside of the deepest boxed one.
    let levels = feel::NESTING_LIMIT as usize / 2 - 2;
    let deepest = format!("{}x{}", "(".repeat(levels), ")".repeat(levels));
    for (name, before, after, levels) in wrappers() {
        let count = (MAXIMUM_NESTING_LEVELS - 5) / levels;
        let logic = before.repeat(count) + &literal(&deepest) + &after.repeat(count);
        let result = evaluated(decision("d", &[], &logic), "d", r#"{"x": true}"#);
        assert!(result.is_ok(), "{name}: {result:?}");
    }
}

#[test]
fn boxed_expressions_that_call_themselves_are_stopped() {
    let call = decision("d", &["+itself"], &literal("itself(itself)"));
    let stopped = |name: &str, logic: &str| {
        let content = model("itself", &[], &["f"], logic) + &call;
        let failure = evaluated(content, "d", "{}").expect_err("it has no end");
        assert!(failure.contains("nested more than 400 levels deep"), "{name}: {failure}");
    };
    // A function that is only defined calls nothing.
    for (name, before, after, _) in wrappers().into_iter().filter(|(name, ..)| *name != "function") {
        for count in [1, 10] {
            stopped(name, &(before.repeat(count) + &literal("f(f)") + &after.repeat(count)));
        }
    }
    stopped("table", &table("hitPolicy=\"COLLECT\"", &["f(f)"], &["z"], &["f(f) | f(f)"]));
}

/// A decision table whose ids are given once in a file.
fn table_of(id: &str, attributes: &str, rules: &[&str]) -> String {
    let table = table(attributes, &["x"], &["z"], rules);
    ["i0", "o0", "r0", "r1"]
        .iter()
        .fold(table, |table, old| table.replace(&format!("\"{old}\""), &format!("\"{old}{id}\"")))
}

#[test]
fn values_as_deep_as_json_pass_through_decisions() {
    let levels = json::DEPTH_LIMIT - 2;
    let lists = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let contexts = format!("{}{{}}{}", "{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
    let filter = format!("<filter><in>{}</in><match>{}</match></filter>", literal("x"), literal("item = x[1]"));
    let typed = format!(
        "<decision id=\"typed\" name=\"typed\"><variable name=\"typed\" typeRef=\"tList\"/>{}</decision>",
        literal("x")
    );
    let content = "<itemDefinition name=\"tList\" isCollection=\"true\"><typeRef>Any</typeRef></itemDefinition>"
        .to_owned()
        + &decision("literal", &[], &literal("x"))
        + &decision("next", &["literal"], &literal("if literal = x then literal else null"))
        + &decision("tested", &[], &table_of("t", "hitPolicy=\"FIRST\"", &["x | x"]))
        + &decision("any", &[], &table_of("a", "hitPolicy=\"ANY\"", &["- | x", "- | x"]))
        + &model("same", &[], &["n"], &literal("n"))
        + &decision("called", &["+same"], &literal("same(x)"))
        + &decision("filtered", &[], &filter)
        + &typed;
    for text in [&lists, &contexts] {
        let variables = format!("{{\"x\":{text}}}");
        for name in ["literal", "next", "any", "called"] {
            assert_eq!(evaluated(content.clone(), name, &variables).as_ref(), Ok(text), "{name}");
        }
        for name in ["tested", "filtered", "typed"] {
            // What comes out matters less than that it comes to an end.
            drop(evaluated(content.clone(), name, &variables));
        }
    }
    let deeper = decision("deeper", &[], &("<list>".repeat(5) + &literal("x") + &"</list>".repeat(5)));
    let failure =
        evaluated(deeper, "deeper", &format!("{{\"x\":{lists}}}")).expect_err("it is deeper than JSON may be");
    assert!(failure.contains("nested more than 1000 levels deep"), "{failure}");
}
