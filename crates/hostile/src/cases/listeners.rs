//! Listeners and conditions, each of which is much more than it should be.

use gateway_interface::{CancelProcessInstanceRequest, SetVariablesRequest};
use model_builder::{Event, ProcessBuilder};

use super::{Case, cases};
use crate::victim::{Verdict, Victim, answered};

/// The most conditions that an instance may wait for.
const CONDITIONS: usize = 10_000;
/// How often their variable changes.
const CHANGES: usize = 30;

pub(super) fn cases() -> Vec<Case> {
    cases! { "listeners and conditions":
        short "10,000 elements whose listeners never end" endless_listeners;
        short "10,000 ends of elements whose listeners never end" endless_end_listeners;
        short "10,000 tasks whose ends wait for listeners that never end" endless_canceling_listeners;
        short "10,000 conditions in one scope whose variable changes again and again" many_conditions;
        short "10,000 conditions that hold together" many_conditions_that_hold;
        short "one condition more than an instance may wait for" too_many_conditions;
        short "10,000 conditions, each long to evaluate" long_conditions;
        short "a variable that only inner scopes hide, under 10,000 conditions" hidden_variable;
    }
}

fn started(id: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("start")
}

fn numbers(count: usize) -> String {
    format!("=for i in 1..{count} return i")
}

async fn endless_listeners(victim: Victim) -> Verdict {
    let builder = started("listened").service_task("task", "nobody").execution_listener("start", "nobody at all");
    let xml = builder.multi_instance(&numbers(10_000), "i").end("end").to_xml();
    victim.bears("listened", xml, "{}").await?;
    cancel_all(&victim, "listened").await
}

async fn endless_end_listeners(victim: Victim) -> Verdict {
    let builder = started("listened-at-end").manual_task("task").execution_listener("end", "nobody at all");
    let xml = builder.multi_instance(&numbers(10_000), "i").end("end").to_xml();
    victim.bears("listened-at-end", xml, "{}").await?;
    cancel_all(&victim, "listened-at-end").await
}

/// The end of the instance waits for all of them, and others do not notice.
async fn endless_canceling_listeners(victim: Victim) -> Verdict {
    let builder = started("listened-tasks").user_task("task").task_listener("canceling", "nobody at all");
    let xml = builder.multi_instance(&numbers(10_000), "i").end("end").to_xml();
    victim.bears("listened-tasks", xml, "{}").await?;
    cancel_all(&victim, "listened-tasks").await
}

/// Cancels one more instance than there is, so that the outcome is known.
async fn cancel_all(victim: &Victim, id: &str) -> Verdict {
    let process_instance_key = victim.create(id, "{}").await.map_err(|status| status.to_string())?;
    victim.comes_to_rest().await;
    let request = CancelProcessInstanceRequest { process_instance_key, ..CancelProcessInstanceRequest::default() };
    let canceled = answered(victim.client().cancel_process_instance(request).await)?;
    Ok(format!("canceled: {canceled}, {}", victim.comes_to_rest().await))
}

/// So many waits for a condition in one instance.
fn waiting(id: &str, condition: &str, count: usize) -> String {
    let builder = started(id).sub_process("each").multi_instance(&numbers(count), "i").start("inside");
    let builder = builder.catch_event("catch", Event::Condition(condition, "")).end("caught").end_sub_process();
    builder.move_to("each").end("end").to_xml()
}

async fn waits(victim: &Victim, id: &str, condition: &str, variables: &str) -> Result<i64, String> {
    let xml = waiting(id, condition, CONDITIONS);
    victim.deploy(&format!("{id}.bpmn"), xml).await.map_err(|status| status.to_string())?;
    let instance = victim.create(id, variables).await.map_err(|status| status.to_string())?;
    victim.comes_to_rest().await;
    Ok(instance)
}

async fn change(victim: &Victim, scope: i64, variables: String) -> Verdict {
    let request = SetVariablesRequest { element_instance_key: scope, variables, ..SetVariablesRequest::default() };
    answered(victim.client().set_variables(request).await)
}

async fn changes(victim: &Victim, instance: i64) -> Verdict {
    for number in 0..CHANGES {
        change(victim, instance, format!("{{\"x\":{number}}}")).await?;
    }
    Ok(format!("{CHANGES} changes, {}", victim.comes_to_rest().await))
}

async fn many_conditions(victim: Victim) -> Verdict {
    let instance = waits(&victim, "conditions", "=x > 1000000", "{\"x\":0}").await?;
    changes(&victim, instance).await
}

async fn many_conditions_that_hold(victim: Victim) -> Verdict {
    let instance = waits(&victim, "holding", "=x > 0", "{\"x\":0}").await?;
    change(&victim, instance, "{\"x\":1}".to_owned()).await?;
    Ok(format!("all hold, {}", victim.comes_to_rest().await))
}

async fn too_many_conditions(victim: Victim) -> Verdict {
    victim.stops("too-many-conditions", waiting("too-many-conditions", "=x > 0", CONDITIONS + 1), "{\"x\":0}").await
}

async fn long_conditions(victim: Victim) -> Verdict {
    let condition = "=count(for i in 1..1000000 return i + x) < 0";
    let instance = waits(&victim, "long-conditions", condition, "{\"x\":0}").await?;
    changes(&victim, instance).await
}

/// Each condition has a scope with a variable of the same name, and a way of many scopes to it.
async fn hidden_variable(victim: Victim) -> Verdict {
    const DEPTH: usize = 40;
    let mut builder = started("hidden");
    for level in 0..DEPTH {
        builder = builder.sub_process(&format!("sub{level}")).start(&format!("start{level}"));
    }
    builder = builder.receive_task("wait", "never", "=\"never\"").multi_instance(&numbers(CONDITIONS), "i");
    builder = builder.input("=i", "x").boundary("on", "wait", Event::Condition("=x < 0", "")).end("on-end");
    builder = builder.move_to("wait").end("end");
    for level in (0..DEPTH).rev() {
        builder = builder.end_sub_process().end(&format!("end{level}"));
    }
    victim.deploy("hidden.bpmn", builder.to_xml()).await.map_err(|status| status.to_string())?;
    let instance = victim.create("hidden", "{\"x\":0}").await.map_err(|status| status.to_string())?;
    victim.comes_to_rest().await;
    changes(&victim, instance).await
}
