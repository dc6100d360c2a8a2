//! Models that multiply, never end, or nest what seldom is nested.

use std::time::Duration;

use gateway_interface::BroadcastSignalRequest;
use model_builder::{Event, ProcessBuilder};
use tonic::Code;

use super::{Case, cases};
use crate::victim::{Verdict, Victim, refusal, refused};

pub(super) fn cases() -> Vec<Case> {
    cases! { "flows and events":
        short "an error start inside an error start" error_start_inside;
        short "a timer start inside an error start" timer_start_inside;
        long "event sub-processes in each other, 40 deep" event_sub_process_chain;
        short "an inclusive gateway with 6,000 branches" wide_inclusive_gateway;
        short "an inclusive join whose other path ends in a gateway" path_that_ends_in_a_gateway;
        short "10,000 conditions on a variable of 3 MiB" many_conditions;
        short "tokens that multiply by ten, nine times" fork_bomb;
        short "events that trigger each other for ever" endless_events;
        long "a signal to 100,000 that wait for it" signal_to_many;
        short "a signal that starts what broadcasts it" signal_that_starts_itself;
        short "a flow that leads back without a wait" visible_loop;
        short "two processes that call each other" recursive_calls;
        long "two processes that call each other ten times" branching_calls;
        short "a start timer that is always due" timer_that_is_always_due;
        long "a cycle of a million dates in the past" cycle_in_the_past;
        long "a non-interrupting timer that is always due" boundary_that_is_always_due;
        long "10,000 timers of no duration" many_timers;
        long "a thousand boundary events on one task" many_boundary_events;
        long "a thousand events behind one gateway" wide_event_gateway;
        long "sub-processes in each other, 100 deep" nested_sub_processes;
        short "sub-processes in each other, 2,000 deep" too_deep_sub_processes;
        long "15,000 elements in one process" many_elements;
        long "an error that 100 scopes pass on" error_through_scopes;
    }
}

fn started(id: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("start")
}

async fn error_start_inside(victim: Victim) -> Verdict {
    let inner = started("error-inside")
        .error_end("fail", "one")
        .event_sub_process("outer")
        .start_event("outer-start", Event::Error("one"))
        .error_end("outer-fail", "two")
        .event_sub_process("inner")
        .start_event("inner-start", Event::Error("two"))
        .end("inner-end");
    victim.ends("error-inside", inner.end_sub_process().end_sub_process().to_xml(), "{}").await
}

async fn timer_start_inside(victim: Victim) -> Verdict {
    let inner = started("timer-inside")
        .error_end("fail", "one")
        .event_sub_process("outer")
        .start_event("outer-start", Event::Error("one"))
        .service_task("outer-task", "nobody")
        .end("outer-end")
        .event_sub_process("inner")
        .start_event("inner-start", Event::Duration("PT0S"))
        .end("inner-end");
    victim.ends("timer-inside", inner.end_sub_process().end_sub_process().to_xml(), "{}").await
}

async fn event_sub_process_chain(victim: Victim) -> Verdict {
    const DEPTH: usize = 40;
    let mut builder = started("event-chain").error_end("fail", "e0");
    for level in 0..DEPTH {
        builder = builder
            .event_sub_process(&format!("sub{level}"))
            .start_event(&format!("start{level}"), Event::Error(&format!("e{level}")));
        builder = match level + 1 < DEPTH {
            true => builder.error_end(&format!("fail{level}"), &format!("e{}", level + 1)),
            false => builder.end("last"),
        };
    }
    for _ in 0..DEPTH {
        builder = builder.end_sub_process();
    }
    victim.ends("event-chain", builder.to_xml(), "{}").await
}

async fn wide_inclusive_gateway(victim: Victim) -> Verdict {
    let builder = started("inclusive").inclusive_gateway("fork").condition("=true").manual_task("t0");
    let mut builder = builder.inclusive_gateway("join").end("end");
    for number in 1..6_000 {
        builder = builder.move_to("fork").condition("=true").manual_task(&format!("t{number}")).connect_to("join");
    }
    victim.bears("inclusive", builder.to_xml(), "{}").await
}

async fn path_that_ends_in_a_gateway(victim: Victim) -> Verdict {
    let builder = started("gateway-end")
        .inclusive_gateway("fork")
        .condition("=true")
        .manual_task("a")
        .inclusive_gateway("join")
        .end("end")
        .move_to("fork")
        .condition("=true")
        .catch_event("wait", Event::Duration("PT1S"))
        .exclusive_gateway("choice")
        .condition("=false")
        .connect_to("join")
        .move_to("choice")
        .default_flow()
        .exclusive_gateway("last");
    victim.ends("gateway-end", builder.to_xml(), "{}").await
}

async fn many_conditions(victim: Victim) -> Verdict {
    let mut builder = started("conditions").exclusive_gateway("choice").default_flow().end("end");
    for number in 0..10_000 {
        let condition = format!("=contains(text, \"y{number}\")");
        builder = builder.move_to("choice").condition(&condition).connect_to("end");
    }
    victim.bears("conditions", builder.to_xml(), &super::text(3 << 20)).await
}

async fn fork_bomb(victim: Victim) -> Verdict {
    let mut builder = started("bomb");
    for level in 0..9 {
        let (fork, join) = (format!("fork{level}"), format!("join{level}"));
        builder = builder.parallel_gateway(&fork).manual_task(&format!("t{level}_0")).exclusive_gateway(&join);
        for blade in 1..10 {
            builder = builder.move_to(&fork).manual_task(&format!("t{level}_{blade}")).connect_to(&join);
        }
        builder = builder.move_to(&join);
    }
    victim.bears("bomb", builder.end("end").to_xml(), "{}").await
}

async fn endless_events(victim: Victim) -> Verdict {
    let handler = |builder: ProcessBuilder, id: &str, caught: &str, thrown: &str| {
        builder
            .event_sub_process(id)
            .start_event(&format!("{id}_start"), Event::Escalation(caught))
            .non_interrupting()
            .escalation_throw(&format!("{id}_throw"), thrown)
            .end(&format!("{id}_end"))
            .end_sub_process()
    };
    let builder = started("endless").escalation_throw("throw", "ping").end("end");
    let builder = handler(handler(builder, "a", "ping", "pong"), "b", "pong", "ping");
    victim.bears("endless", builder.to_xml(), "{}").await
}

async fn signal_to_many(victim: Victim) -> Verdict {
    let builder = started("waiting").sub_process("each").multi_instance("=for i in 1..10000 return i", "i");
    let builder = builder.start("inside").catch_event("catch", Event::Signal("all")).end("caught").end_sub_process();
    let xml = builder.move_to("each").end("end").to_xml();
    victim.deploy("waiting.bpmn", xml).await.map_err(|status| status.to_string())?;
    for _ in 0..10 {
        victim.create("waiting", "{}").await.map_err(|status| status.to_string())?;
    }
    victim.comes_to_rest().await;
    broadcast(&victim, "all").await
}

async fn signal_that_starts_itself(victim: Victim) -> Verdict {
    let builder = ProcessBuilder::new("echo").start_event("start", Event::Signal("echo")).signal_end("end", "echo");
    victim.deploy("echo.bpmn", builder.to_xml()).await.map_err(|status| status.to_string())?;
    let verdict = broadcast(&victim, "echo").await;
    // There is always one that runs, so the process cannot be deleted. A version without the signal ends it, even if it is answered
    // late because it waits behind the broadcasts to the other partition.
    let silent = ProcessBuilder::new("echo").start("start").end("end");
    let _ = victim.deploy("echo.bpmn", silent.to_xml()).await;
    verdict
}

async fn broadcast(victim: &Victim, name: &str) -> Verdict {
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000));
    let request = BroadcastSignalRequest { signal_name: name.to_owned(), variables, tenant_id: String::new() };
    victim.client().broadcast_signal(request).await.map_err(|status| status.to_string())?;
    Ok(format!("broadcast, {}", victim.comes_to_rest().await))
}

async fn visible_loop(victim: Victim) -> Verdict {
    let builder = started("visible").exclusive_gateway("again").manual_task("task").connect_to("again");
    refused(victim.deploy("visible.bpmn", builder.to_xml()).await, Code::InvalidArgument, "loop")
}

async fn recursive_calls(victim: Victim) -> Verdict {
    for (id, called) in [("first", "second"), ("second", "first")] {
        let xml = started(id).call_activity("call", called).end("end").to_xml();
        victim.deploy(&format!("{id}.bpmn"), xml).await.map_err(|status| status.to_string())?;
    }
    let before = victim.incidents();
    victim.create("first", &super::text(100_000)).await.map_err(|status| status.to_string())?;
    victim.has_incident(before).await
}

async fn branching_calls(victim: Victim) -> Verdict {
    for (id, called) in [("ten", "times"), ("times", "ten")] {
        let xml = started(id).call_activity("call", called).multi_instance("=for i in 1..10 return i", "i").end("end");
        victim.deploy(&format!("{id}.bpmn"), xml.to_xml()).await.map_err(|status| status.to_string())?;
    }
    victim.create("ten", "{}").await.map_err(|status| status.to_string())?;
    Ok(format!("begun, {}", victim.comes_to_rest().await))
}

async fn timer_that_is_always_due(victim: Victim) -> Verdict {
    let xml = ProcessBuilder::new("always").start_event("start", Event::Cycle("R/PT0S")).end("end").to_xml();
    match victim.deploy("always.bpmn", xml).await {
        Err(status) => refusal(&status),
        Ok(()) => {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok(format!("deployed, {}", victim.comes_to_rest().await))
        }
    }
}

async fn cycle_in_the_past(victim: Victim) -> Verdict {
    let cycle = Event::Cycle("R1000000/2000-01-01T00:00:00Z/PT1S");
    let xml = ProcessBuilder::new("past").start_event("start", cycle).end("end").to_xml();
    match victim.deploy("past.bpmn", xml).await {
        Err(status) => refusal(&status),
        Ok(()) => {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok(format!("deployed, {}", victim.comes_to_rest().await))
        }
    }
}

async fn boundary_that_is_always_due(victim: Victim) -> Verdict {
    let builder = started("due").service_task("task", "nobody").end("end");
    let builder = builder.boundary("again", "task", Event::Cycle("R/PT0S")).non_interrupting().end("ended");
    victim.bears("due", builder.to_xml(), "{}").await
}

async fn many_timers(victim: Victim) -> Verdict {
    let builder = started("many-timers").sub_process("sub").multi_instance("=for i in 1..10000 return i", "i");
    let builder = builder.start("s").catch_event("wait", Event::Duration("PT0S")).end("e").end_sub_process().end("end");
    victim.bears("many-timers", builder.to_xml(), "{}").await
}

async fn many_boundary_events(victim: Victim) -> Verdict {
    let mut builder = started("boundaries").service_task("task", "nobody").end("end");
    for number in 0..1_000 {
        let event = format!("event{number}");
        builder = builder.boundary(&event, "task", Event::Duration("PT1S")).non_interrupting().connect_to("end");
    }
    victim.bears("boundaries", builder.to_xml(), "{}").await
}

async fn wide_event_gateway(victim: Victim) -> Verdict {
    let mut builder = started("wide-events").event_based_gateway("choice");
    builder = builder.catch_event("event", Event::Duration("PT0S")).end("end");
    for number in 0..1_000 {
        let (event, message) = (format!("event{number}"), format!("message{number}"));
        builder = builder.move_to("choice").catch_event(&event, Event::Message(&message, "=\"key\"")).connect_to("end");
    }
    victim.bears("wide-events", builder.to_xml(), "{}").await
}

fn nested(id: &str, depth: usize) -> String {
    let mut builder = started(id);
    for level in 0..depth {
        builder = builder.sub_process(&format!("sub{level}")).start(&format!("start{level}"));
    }
    for level in (0..depth).rev() {
        builder = builder.end(&format!("end{level}")).end_sub_process();
    }
    builder.end("end").to_xml()
}

async fn nested_sub_processes(victim: Victim) -> Verdict {
    victim.bears("nested", nested("nested", 100), "{}").await
}

async fn too_deep_sub_processes(victim: Victim) -> Verdict {
    victim.stops("too-deep", nested("too-deep", 2_000), "{}").await
}

async fn many_elements(victim: Victim) -> Verdict {
    let mut builder = started("elements");
    for number in 0..15_000 {
        builder = builder.manual_task(&format!("t{number}"));
    }
    victim.bears("elements", builder.end("end").to_xml(), "{}").await
}

async fn error_through_scopes(victim: Victim) -> Verdict {
    const DEPTH: usize = 100;
    let mut builder = started("scopes");
    for level in 0..DEPTH {
        builder = builder.sub_process(&format!("sub{level}")).start(&format!("start{level}"));
    }
    builder = builder.error_end("fail", "up");
    for _ in 0..DEPTH {
        builder = builder.end_sub_process();
    }
    let builder = builder.end("end").boundary("caught", "sub0", Event::Error("up")).end("late");
    victim.bears("scopes", builder.to_xml(), "{}").await
}
