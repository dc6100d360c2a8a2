//! Names and paths from models that are longer or deeper than anything should be.

use model_builder::{Event, ProcessBuilder};

use super::{Case, cases};
use crate::victim::{Verdict, Victim};

const DEEP_SEGMENTS: usize = 10_000;
const LONG_CHARACTERS: usize = 2_000;

pub(super) fn cases() -> Vec<Case> {
    cases! { "names and paths":
        short "a mapping into a path of 10,000 segments" deep_input;
        short "a mapping into a path of 1,100 segments" path_beyond_json;
        long "an output into a path of 10,000 segments" deep_output;
        short "a mapping into a name of 2,000 characters" long_target;
        short "the same behind a timer that is due again and again" long_target_behind_a_timer;
        short "the same behind a loop that is continued" long_target_behind_a_loop;
        short "an output into such a name by a completion" long_output;
        long "a loop whose item has such a name" long_item;
        long "a loop whose collection has such a name" long_collection;
        long "a result variable with such a name" long_result;
        long "ids of 2,000 characters" long_ids;
        long "a message with a name of 2,000 characters" long_message;
        long "error and escalation codes of 2,000 characters" long_codes;
        long "a job type and headers of 2,000 characters" long_job_type;
        long "a thousand headers of 2,000 characters" many_headers;
    }
}

fn path(segments: usize) -> String {
    vec!["a"; segments].join(".")
}

fn long() -> String {
    "n".repeat(LONG_CHARACTERS)
}

fn started(id: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("start")
}

fn with_input(id: &str, target: &str) -> String {
    started(id).service_task("task", "nobody").input("=1", target).end("end").to_xml()
}

async fn deep_input(victim: Victim) -> Verdict {
    victim.stops("deep-input", with_input("deep-input", &path(DEEP_SEGMENTS)), "{}").await
}

async fn path_beyond_json(victim: Victim) -> Verdict {
    victim.stops("beyond-json", with_input("beyond-json", &path(1_100)), "{}").await
}

async fn deep_output(victim: Victim) -> Verdict {
    let xml = started("deep-output").script_task("task", "=1", "r").output("=1", &path(DEEP_SEGMENTS)).end("end");
    victim.stops("deep-output", xml.to_xml(), "{}").await
}

async fn long_target(victim: Victim) -> Verdict {
    victim.stops("long-target", with_input("long-target", &long()), "{}").await
}

async fn long_target_behind_a_timer(victim: Victim) -> Verdict {
    let xml = started("behind-timer")
        .catch_event("wait", Event::Duration("PT1S"))
        .service_task("task", "nobody")
        .input("=1", &long())
        .end("end");
    victim.stops("behind-timer", xml.to_xml(), "{}").await
}

async fn long_target_behind_a_loop(victim: Victim) -> Verdict {
    let xml = started("behind-loop")
        .manual_task("item")
        .multi_instance("=for i in 1..2000 return i", "i")
        .service_task("task", "nobody")
        .input("=1", &long())
        .end("end");
    victim.stops("behind-loop", xml.to_xml(), "{}").await
}

async fn long_output(victim: Victim) -> Verdict {
    let job_type = "hostile-long-output";
    let xml = started("long-output").service_task("task", job_type).output("=1", &long()).end("end").to_xml();
    let before = victim.incidents();
    if let Err(status) = victim.deploy("long-output.bpmn", xml).await {
        return crate::victim::refusal(&status);
    }
    victim.create("long-output", "{}").await.map_err(|status| status.to_string())?;
    super::data::complete_one(&victim, job_type).await?;
    victim.has_incident(before).await
}

async fn long_item(victim: Victim) -> Verdict {
    let xml = started("long-item").manual_task("item").multi_instance("=[1, 2]", &long()).end("end");
    victim.stops("long-item", xml.to_xml(), "{}").await
}

async fn long_collection(victim: Victim) -> Verdict {
    let looped = started("long-collection").manual_task("item").multi_instance("=[1, 2]", "i");
    victim.stops("long-collection", looped.output_collection(&long(), "=i").end("end").to_xml(), "{}").await
}

async fn long_result(victim: Victim) -> Verdict {
    let xml = started("long-result").script_task("task", "=1", &long()).end("end");
    victim.stops("long-result", xml.to_xml(), "{}").await
}

async fn long_ids(victim: Victim) -> Verdict {
    let id = long();
    let xml = ProcessBuilder::new(&id).start(&format!("s{id}")).manual_task(&format!("t{id}")).end(&format!("e{id}"));
    victim.bears(&id, xml.to_xml(), "{}").await?;
    let gateway = started("long-gateway").inclusive_gateway(&id).manual_task("a").inclusive_gateway(&format!("j{id}"));
    let joined = gateway.end("end").move_to(&id).manual_task("b").connect_to(&format!("j{id}"));
    victim.bears("long-gateway", joined.to_xml(), "{}").await
}

async fn long_message(victim: Victim) -> Verdict {
    let xml = started("long-message").receive_task("task", &long(), "=\"key\"").end("end");
    victim.bears("long-message", xml.to_xml(), "{}").await
}

async fn long_codes(victim: Victim) -> Verdict {
    let xml = started("long-codes").sub_process("sub").start("s").error_end("throw", &long()).end_sub_process();
    let xml = xml.end("end").boundary("caught", "sub", Event::Error(&long())).end("late");
    victim.bears("long-codes", xml.to_xml(), "{}").await?;
    let xml = started("long-escalation").escalation_throw("throw", &long()).end("end");
    victim.bears("long-escalation", xml.to_xml(), "{}").await
}

async fn long_job_type(victim: Victim) -> Verdict {
    let xml = started("long-job-type").service_task("task", &long()).header(&long(), &long()).end("end");
    victim.bears("long-job-type", xml.to_xml(), "{}").await
}

async fn many_headers(victim: Victim) -> Verdict {
    let mut builder = started("many-headers").service_task("task", "nobody");
    for number in 0..1_000 {
        builder = builder.header(&format!("h{number}"), &long());
    }
    victim.bears("many-headers", builder.end("end").to_xml(), "{}").await
}
