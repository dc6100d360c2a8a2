//! Expressions that take time, memory or stack without end.

use model_builder::{Event, ProcessBuilder};

use super::{Case, cases};
use crate::victim::{Verdict, Victim};

pub(super) fn cases() -> Vec<Case> {
    cases! { "expressions":
        short "put with a list of 100,000 keys" put_with_many_keys;
        short "context put with a list of 100,000 keys" context_put_with_many_keys;
        short "a list in a list in a list, 100,000 times" list_in_list;
        long "a context in a context, 100,000 times" context_in_context;
        short "replace with 50,000 times what it found" replace_that_multiplies;
        short "split by a pattern that looks ahead to the end" quadratic_split;
        long "extract by such a pattern" quadratic_extract;
        long "replace by such a pattern" quadratic_replace;
        short "patterns that are large when compiled" large_patterns;
        short "a text that doubles 60 times" doubling_text;
        short "a list that doubles 60 times" doubling_list;
        short "a loop of a million millions" endless_for;
        short "a function that calls itself" endless_recursion;
        long "a comparison of every item with every other" quadratic_lists;
        long "sort by a function without an order" sort_without_order;
        long "a search through a text for each of its characters" quadratic_text;
        short "numbers and durations beyond all bounds" beyond_all_numbers;
        short "10,000 brackets" many_brackets;
        long "an expression of 1 MB" long_expression;
        short "a correlation key of 1 MB" long_correlation_key;
        short "a job type of 1 MB" long_job_type;
        short "a timer that is due after all time" timer_after_all_time;
        long "string join of a text with itself" joined_text;
    }
}

/// A script that must not come to its end.
async fn stops(victim: &Victim, id: &str, expression: &str, variables: &str) -> Verdict {
    victim.stops(id, script(id, expression), variables).await
}

fn script(id: &str, expression: &str) -> String {
    ProcessBuilder::new(id)
        .start("start")
        .script_task("script", &format!("={expression}"), "result")
        .end("end")
        .to_xml()
}

/// One letter repeated this many times.
fn letters(letter: &str, count: usize) -> String {
    format!("{{\"text\":\"{}\"}}", letter.repeat(count))
}

async fn put_with_many_keys(victim: Victim) -> Verdict {
    stops(&victim, "put", "put({}, for i in 1..100000 return \"a\", 1)", "{}").await
}

async fn context_put_with_many_keys(victim: Victim) -> Verdict {
    stops(&victim, "context-put", "context put({}, for i in 1..100000 return \"a\", 1)", "{}").await
}

async fn list_in_list(victim: Victim) -> Verdict {
    stops(&victim, "nested-list", "(for i in 1..100000 return if i = 1 then [] else [partial[-1]])[-1]", "{}").await
}

async fn context_in_context(victim: Victim) -> Verdict {
    let expression = "(for i in 1..100000 return if i = 1 then {} else {a: partial[-1]})[-1]";
    stops(&victim, "nested-context", expression, "{}").await
}

async fn replace_that_multiplies(victim: Victim) -> Verdict {
    let expression = "replace(text, \".+\", string join(for i in 1..50000 return \"$0\"))";
    stops(&victim, "replace", expression, &letters("x", 800_000)).await
}

const LOOKS_AHEAD: &str = ".*[^A]|[A]";

async fn quadratic_split(victim: Victim) -> Verdict {
    let expression = format!("count(split(text, \"{LOOKS_AHEAD}\"))");
    stops(&victim, "split", &expression, &letters("A", 2_000_000)).await
}

async fn quadratic_extract(victim: Victim) -> Verdict {
    let expression = format!("count(extract(text, \"{LOOKS_AHEAD}\"))");
    stops(&victim, "extract", &expression, &letters("A", 2_000_000)).await
}

async fn quadratic_replace(victim: Victim) -> Verdict {
    let expression = format!("replace(text, \"{LOOKS_AHEAD}\", \"\")");
    stops(&victim, "quadratic-replace", &expression, &letters("A", 2_000_000)).await
}

async fn large_patterns(victim: Victim) -> Verdict {
    let patterns = [r"(\\w{1000}){1000}", r"((a?){1000}){1000}", r"[\\p{L}\\p{N}]{1000}{1000}", r"(a*)*(a*)*(a*)*b"];
    for (number, pattern) in patterns.iter().enumerate() {
        let id = format!("pattern{number}");
        let xml = script(&id, &format!("every i in 1..100000 satisfies not(matches(text, \"{pattern}\"))"));
        victim.bears(&id, xml, &letters("a", 100_000)).await?;
    }
    Ok(format!("{} patterns", patterns.len()))
}

async fn doubling_text(victim: Victim) -> Verdict {
    let expression = "(for i in 1..60 return if i = 1 then \"xxxxxxxx\" else partial[-1] + partial[-1])[-1]";
    stops(&victim, "doubling-text", expression, "{}").await
}

async fn doubling_list(victim: Victim) -> Verdict {
    let expression = "for i in 1..60 return if i = 1 then [1, 2] else concatenate(partial[-1], partial[-1])";
    stops(&victim, "doubling-list", expression, "{}").await
}

async fn endless_for(victim: Victim) -> Verdict {
    stops(&victim, "endless-for", "for i in 1..1000000000000 return i", "{}").await
}

async fn endless_recursion(victim: Victim) -> Verdict {
    stops(&victim, "recursion", "{f: function(g, n) g(g, n + 1), r: f(f, 0)}.r", "{}").await
}

async fn quadratic_lists(victim: Victim) -> Verdict {
    let list = "(for i in 1..100000 return {a: i})";
    for (number, function) in ["distinct values", "union", "duplicate values", "mode"].iter().enumerate() {
        let id = format!("quadratic{number}");
        victim.bears(&id, script(&id, &format!("count({function}({list}))")), "{}").await?;
    }
    Ok("four functions".to_owned())
}

async fn sort_without_order(victim: Victim) -> Verdict {
    let expression = "count(sort(for i in 1..300000 return i, function(x, y) modulo(x * 7919, 13) < modulo(y, 7)))";
    victim.bears("sort", script("sort", expression), "{}").await
}

async fn quadratic_text(victim: Victim) -> Verdict {
    let expression = "every i in 1..1000000 satisfies contains(text, substring(text, i))";
    stops(&victim, "quadratic-text", expression, &letters("x", 1_000_000)).await
}

async fn beyond_all_numbers(victim: Victim) -> Verdict {
    let expressions = [
        "9 ** 9 ** 9 ** 9",
        "duration(\"P999999999Y\") * 1000000000",
        "date(\"9999-12-31\") + duration(\"P999999999Y\")",
        "number(string join(for i in 1..100000 return \"9\"))",
        "decimal(1/3, 2147483647)",
        "substring(text, -9223372036854775808, 9223372036854775807)",
        "text[9223372036854775807]",
        "insert before([], 9223372036854775807, 1)",
        "for i in -9223372036854775808..9223372036854775807 return i",
    ];
    for (number, expression) in expressions.iter().enumerate() {
        let id = format!("beyond{number}");
        victim.bears(&id, script(&id, expression), &letters("x", 10)).await?;
    }
    Ok(format!("{} expressions", expressions.len()))
}

async fn many_brackets(victim: Victim) -> Verdict {
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    stops(&victim, "brackets", &deep, "{}").await?;
    let lists = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    stops(&victim, "lists", &lists, "{}").await?;
    stops(&victim, "minus", &"-".repeat(10_000), "{}").await
}

async fn long_expression(victim: Victim) -> Verdict {
    let sum = vec!["1"; 500_000].join("+");
    victim.bears("long-expression", script("long-expression", &sum), "{}").await
}

async fn long_correlation_key(victim: Victim) -> Verdict {
    let builder = ProcessBuilder::new("long-key").start("start");
    let xml = builder.catch_event("wait", Event::Message("paid", "=text")).end("end").to_xml();
    victim.stops("long-key", xml, &letters("k", 1 << 20)).await
}

async fn long_job_type(victim: Victim) -> Verdict {
    let xml = ProcessBuilder::new("long-type").start("start").service_task("task", "=text").end("end").to_xml();
    victim.stops("long-type", xml, &letters("t", 1 << 20)).await
}

async fn timer_after_all_time(victim: Victim) -> Verdict {
    for (number, duration) in ["P9999999999Y", "PT99999999999999999999S", "-P1Y"].iter().enumerate() {
        let id = format!("after-all-time{number}");
        let builder = ProcessBuilder::new(&id).start("start");
        let xml = builder.catch_event("wait", Event::Duration(&format!("=\"{duration}\""))).end("end").to_xml();
        victim.bears(&id, xml, "{}").await?;
    }
    Ok("three durations".to_owned())
}

async fn joined_text(victim: Victim) -> Verdict {
    stops(&victim, "joined", "string join(for i in 1..100000 return text, text)", &letters("x", 1_000_000)).await
}
