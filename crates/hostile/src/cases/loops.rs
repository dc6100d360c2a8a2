//! Multi-instance activities with too many or too large items and results.

use model_builder::ProcessBuilder;

use super::{Case, cases};
use crate::victim::{Verdict, Victim};

pub(super) fn cases() -> Vec<Case> {
    cases! { "loops":
        short "1,000 results of 3 MiB each" large_results;
        short "1,000 results, one after the other" results_in_sequence;
        long "the same of 100 kB each" large_results_in_sequence;
        short "100,000 tokens that wait" many_tokens;
        long "100,000 tokens, one after the other" many_in_sequence;
        long "loops in loops: 300 times 300 times 300" nested_loops;
        long "100 items of 2 MiB each" large_items;
        long "a completion condition on 10,000 results" completion_condition;
        long "10,000 called processes with 100 kB" many_calls;
    }
}

fn numbers(count: usize) -> String {
    format!("=for i in 1..{count} return i")
}

fn started(id: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("start")
}

/// The result is more than the name of a variable, which would be the inner instance's own, and null.
async fn large_results(victim: Victim) -> Verdict {
    let looped = started("large-results").manual_task("item").multi_instance(&numbers(1_000), "i");
    let xml = looped.output_collection("results", "=[text]").end("end").to_xml();
    victim.stops("large-results", xml, &super::text(3 << 20)).await
}

async fn results_in_sequence(victim: Victim) -> Verdict {
    let looped = started("sequence").manual_task("item").sequential_multi_instance(&numbers(1_000), "i");
    victim.bears("sequence", looped.output_collection("results", "=i").end("end").to_xml(), "{}").await
}

async fn large_results_in_sequence(victim: Victim) -> Verdict {
    let looped = started("large-sequence").manual_task("item").sequential_multi_instance(&numbers(1_000), "i");
    let xml = looped.output_collection("results", "=[text]").end("end").to_xml();
    victim.bears("large-sequence", xml, &super::text(100_000)).await
}

async fn many_tokens(victim: Victim) -> Verdict {
    let looped = started("tokens").service_task("item", "nobody").multi_instance(&numbers(100_000), "i");
    victim.bears("tokens", looped.end("end").to_xml(), "{}").await
}

async fn many_in_sequence(victim: Victim) -> Verdict {
    let looped = started("long-sequence").manual_task("item").sequential_multi_instance(&numbers(100_000), "i");
    victim.bears("long-sequence", looped.end("end").to_xml(), "{}").await
}

async fn nested_loops(victim: Victim) -> Verdict {
    let mut builder = started("nested-loops");
    for level in 0..2 {
        let (sub, start) = (format!("sub{level}"), format!("start{level}"));
        builder = builder.sub_process(&sub).multi_instance(&numbers(300), "i").start(&start);
    }
    builder = builder.manual_task("item").multi_instance(&numbers(300), "i");
    for level in 0..2 {
        builder = builder.end(&format!("end{level}")).end_sub_process();
    }
    victim.bears("nested-loops", builder.end("end").to_xml(), "{}").await
}

async fn large_items(victim: Victim) -> Verdict {
    let collection = "=for i in 1..100 return text";
    let looped = started("large-items").service_task("item", "nobody").multi_instance(collection, "i");
    victim.bears("large-items", looped.end("end").to_xml(), &super::text(2 << 20)).await
}

async fn completion_condition(victim: Victim) -> Verdict {
    let looped = started("condition").manual_task("item").multi_instance(&numbers(10_000), "i");
    let looped = looped.output_collection("results", "=i").completion_condition("=sum(results) = -1");
    victim.bears("condition", looped.end("end").to_xml(), "{}").await
}

async fn many_calls(victim: Victim) -> Verdict {
    let called = started("called").service_task("task", "nobody").end("end").to_xml();
    victim.deploy("called.bpmn", called).await.map_err(|status| status.to_string())?;
    let looped = started("calls").call_activity("item", "called").multi_instance(&numbers(10_000), "i");
    victim.bears("calls", looped.end("end").to_xml(), &super::text(100_000)).await
}
