//! Decisions that multiply, recurse or copy.

use gateway_interface::EvaluateDecisionRequest;

use super::{Case, cases};
use crate::victim::{Verdict, Victim, answered, refusal};

pub(super) fn cases() -> Vec<Case> {
    cases! { "decisions":
        short "a list of 10,000 times a text of 8 MiB" boxed_list;
        long "a table that collects such texts" collecting_table;
        long "1,000 decisions that give such a text back" many_decisions;
        long "a thousand decisions in a row" long_chain;
        long "a thousand decisions, each of which doubles the one before" doubling_chain;
        short "a business knowledge model that calls itself" recursive_knowledge;
        long "a boxed loop over a variable of 3 MiB" boxed_loop;
        long "10,000 rules on a variable of 3 MiB" many_rules;
        short "boxed contexts in each other, 5,000 deep" deep_contexts;
        long "lists in lists, by a decision for each level" nested_lists;
    }
}

/// Evaluates a decision of such a graph, and takes any answer that is one.
async fn evaluates(victim: &Victim, graph: &str, decision: &str, content: &str, variables: &str) -> Verdict {
    let xml = format!(
        "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"{graph}\" name=\"{graph}\" \
         namespace=\"hostile\">{content}</definitions>"
    );
    if let Err(status) = victim.deploy(&format!("{graph}.dmn"), xml).await {
        return refusal(&status);
    }
    let request = EvaluateDecisionRequest {
        decision_id: decision.to_owned(),
        variables: variables.to_owned(),
        ..EvaluateDecisionRequest::default()
    };
    match victim.client().evaluate_decision(request).await {
        Ok(response) => {
            let response = response.into_inner();
            match response.failure_message.is_empty() {
                true => Ok(format!("evaluated to {} bytes", response.decision_output.len())),
                false => Ok(crate::victim::short(&response.failure_message, 160)),
            }
        }
        status => answered(status),
    }
}

fn requires(decisions: &[&str]) -> String {
    let one = |decision: &&str| {
        format!(
            "<informationRequirement id=\"r_{decision}\"><requiredDecision href=\"#{decision}\"/></informationRequirement>"
        )
    };
    decisions.iter().map(one).collect()
}

fn decision(id: &str, required: &[&str], logic: &str) -> String {
    let requires = requires(required);
    format!("<decision id=\"{id}\" name=\"{id}\"><variable name=\"{id}\"/>{requires}{logic}</decision>")
}

fn literal(expression: &str) -> String {
    format!("<literalExpression><text>{expression}</text></literalExpression>")
}

/// A decision `d0` that gives a text of 8 MiB.
fn large_text() -> String {
    let doubled = "(for i in 1..21 return if i = 1 then \"xxxxxxxx\" else partial[-1] + partial[-1])[-1]";
    decision("d0", &[], &literal(doubled))
}

async fn boxed_list(victim: Victim) -> Verdict {
    let list = format!("<list>{}</list>", literal("d0").repeat(10_000));
    let content = large_text() + &decision("d1", &["d0"], &list);
    evaluates(&victim, "boxed-list", "d1", &content, "{}").await
}

async fn collecting_table(victim: Victim) -> Verdict {
    let rule = |number: usize| {
        format!(
            "<rule id=\"r{number}\"><inputEntry id=\"i{number}\"><text>-</text></inputEntry><outputEntry id=\"o{number}\"><text>d0</text></outputEntry></rule>"
        )
    };
    let rules: String = (0..2_000).map(rule).collect();
    let table = format!(
        "<decisionTable id=\"table\" hitPolicy=\"COLLECT\"><input id=\"in\"><inputExpression id=\"e\"><text>1</text>\
         </inputExpression></input><output id=\"out\" name=\"out\"/>{rules}</decisionTable>"
    );
    let content = large_text() + &decision("d1", &["d0"], &table);
    evaluates(&victim, "collecting", "d1", &content, "{}").await
}

async fn many_decisions(victim: Victim) -> Verdict {
    let names: Vec<String> = (1..=1_000).map(|number| format!("c{number}")).collect();
    let copies: String = names.iter().map(|name| decision(name, &["d0"], &literal("d0"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let content = large_text() + &copies + &decision("last", &names, &literal("string length(c1)"));
    evaluates(&victim, "many-decisions", "last", &content, "{}").await
}

fn chain(length: usize, logic: impl Fn(&str) -> String) -> String {
    let link = |number: usize| {
        let before = format!("d{}", number - 1);
        decision(&format!("d{number}"), &[&before], &literal(&logic(&before)))
    };
    decision("d0", &[], &literal("[1]")) + &(1..=length).map(link).collect::<String>()
}

async fn long_chain(victim: Victim) -> Verdict {
    evaluates(&victim, "chain", "d999", &chain(999, str::to_owned), "{}").await
}

async fn doubling_chain(victim: Victim) -> Verdict {
    let content = chain(999, |before| format!("concatenate({before}, {before})"));
    evaluates(&victim, "doubling", "d999", &content, "{}").await
}

async fn nested_lists(victim: Victim) -> Verdict {
    evaluates(&victim, "nested-lists", "d999", &chain(999, |before| format!("[{before}, {before}]")), "{}").await
}

async fn recursive_knowledge(victim: Victim) -> Verdict {
    let knowledge = "<businessKnowledgeModel id=\"again\" name=\"again\"><variable name=\"again\"/>\
         <encapsulatedLogic><formalParameter name=\"n\"/><literalExpression><text>again(n + 1)</text></literalExpression>\
         </encapsulatedLogic><knowledgeRequirement id=\"k\"><requiredKnowledge href=\"#again\"/></knowledgeRequirement>\
         </businessKnowledgeModel>";
    let asks = "<knowledgeRequirement id=\"k1\"><requiredKnowledge href=\"#again\"/></knowledgeRequirement>";
    let content = format!(
        "{knowledge}<decision id=\"d1\" name=\"d1\"><variable name=\"d1\"/>{asks}{}</decision>",
        literal("again(0)")
    );
    evaluates(&victim, "recursive", "d1", &content, "{}").await
}

async fn boxed_loop(victim: Victim) -> Verdict {
    let looped = format!(
        "<for iteratorVariable=\"i\"><in>{}</in><return>{}</return></for>",
        literal("1..100000"),
        literal("contains(text, string(i))")
    );
    evaluates(&victim, "boxed-loop", "d1", &decision("d1", &[], &looped), &super::text(3 << 20)).await
}

async fn many_rules(victim: Victim) -> Verdict {
    let rule = |number: usize| {
        format!(
            "<rule id=\"r{number}\"><inputEntry id=\"i{number}\"><text>contains(?, \"y{number}\")</text></inputEntry><outputEntry id=\"o{number}\"><text>{number}</text></outputEntry></rule>"
        )
    };
    let rules: String = (0..10_000).map(rule).collect();
    let table = format!(
        "<decisionTable id=\"table\" hitPolicy=\"FIRST\"><input id=\"in\"><inputExpression id=\"e\"><text>text</text>\
         </inputExpression></input><output id=\"out\" name=\"out\"/>{rules}</decisionTable>"
    );
    evaluates(&victim, "rules", "d1", &decision("d1", &[], &table), &super::text(3 << 20)).await
}

async fn deep_contexts(victim: Victim) -> Verdict {
    const DEPTH: usize = 5_000;
    let open = "<context><contextEntry><variable name=\"a\"/>".repeat(DEPTH);
    let close = "</contextEntry></context>".repeat(DEPTH);
    evaluates(&victim, "contexts", "d1", &decision("d1", &[], &(open + &literal("1") + &close)), "{}").await
}
