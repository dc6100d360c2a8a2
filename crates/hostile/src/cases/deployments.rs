//! Files that are large, many, or no models.

use gateway_interface::Resource;
use model_builder::ProcessBuilder;
use tonic::Code;

use super::{Case, cases};
use crate::victim::{Verdict, Victim, answered, refused};

pub(super) fn cases() -> Vec<Case> {
    cases! { "deployments":
        short "a name of 3.9 MB and 300 processes" long_name;
        short "a name of 2 MiB and nine processes" medium_name;
        short "a name of 2,000 characters" name_of_two_thousand;
        short "30,000 decisions with a long graph id" many_decisions;
        short "100,000 resources" many_resources;
        long "the same process, 300 versions" many_versions;
        long "900 processes in one file" many_processes;
        short "entities that multiply" entities;
        short "elements in each other, a million deep" deep_elements;
        short "300,000 attributes" many_attributes;
        short "bytes that are no model" no_model;
        long "a text of 3 MiB in an expression" long_text;
    }
}

fn minimal(id: &str) -> String {
    format!("<process id=\"{id}\" isExecutable=\"true\"><startEvent id=\"s{id}\"/></process>")
}

fn definitions(prologue: &str, content: &str) -> String {
    format!(
        "{prologue}<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" id=\"d\">{content}</definitions>"
    )
}

fn processes(prefix: &str, count: usize) -> String {
    let content: String = (0..count).map(|number| minimal(&format!("{prefix}{number}"))).collect();
    definitions("", &content)
}

fn name(characters: usize) -> String {
    format!("{}.bpmn", "n".repeat(characters))
}

async fn long_name(victim: Victim) -> Verdict {
    answered(victim.deploy(&name(3_900_000), processes("p", 300)).await)
}

async fn medium_name(victim: Victim) -> Verdict {
    answered(victim.deploy(&name(2 << 20), processes("m", 9)).await)
}

async fn name_of_two_thousand(victim: Victim) -> Verdict {
    answered(victim.deploy(&name(2_000), processes("t", 9)).await)
}

async fn many_decisions(victim: Victim) -> Verdict {
    let one = |number: usize| {
        format!(
            "<decision id=\"d{number}\" name=\"d\"><literalExpression><text>1</text></literalExpression></decision>"
        )
    };
    let decisions: String = (0..30_000).map(one).collect();
    let xml = format!(
        "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"{}\" name=\"n\" namespace=\"n\">{decisions}</definitions>",
        "g".repeat(512)
    );
    answered(victim.deploy("decisions.dmn", xml).await)
}

async fn many_resources(victim: Victim) -> Verdict {
    let resource = |number: usize| Resource { name: format!("{number}.bpmn"), content: Vec::new().into() };
    let outcome = victim.deploy_all((0..100_000).map(resource).collect()).await;
    refused(outcome, Code::InvalidArgument, "at most 1000 resources")
}

async fn many_versions(victim: Victim) -> Verdict {
    for number in 0..300 {
        let mut builder = ProcessBuilder::new("versions").version_tag(&number.to_string()).start("start");
        for task in 0..100 {
            builder = builder.manual_task(&format!("t{task}"));
        }
        answered(victim.deploy("versions.bpmn", builder.end("end").to_xml()).await)?;
    }
    Ok("300 versions".to_owned())
}

async fn many_processes(victim: Victim) -> Verdict {
    answered(victim.deploy("processes.bpmn", processes("many", 900)).await)
}

async fn entities(victim: Victim) -> Verdict {
    let entity = |level: usize| format!("<!ENTITY e{level} \"{}\">", format!("&e{};", level - 1).repeat(10));
    let entities: String = (1..20).map(entity).collect();
    let prologue = format!("<?xml version=\"1.0\"?><!DOCTYPE d [<!ENTITY e0 \"ha\">{entities}]>");
    let outcome = victim.deploy("entities.bpmn", definitions(&prologue, "&e19;")).await;
    refused(outcome, Code::InvalidArgument, "DOCTYPE")
}

async fn deep_elements(victim: Victim) -> Verdict {
    let outcome = victim.deploy("deep.bpmn", definitions("", &"<a>".repeat(1_000_000))).await;
    refused(outcome, Code::InvalidArgument, "levels")
}

async fn many_attributes(victim: Victim) -> Verdict {
    let attributes: String = (0..300_000).map(|number| format!("a{number}='' ")).collect();
    let outcome = victim.deploy("wide.bpmn", definitions("", &format!("<process {attributes}/>"))).await;
    refused(outcome, Code::InvalidArgument, "attributes")
}

async fn no_model(victim: Victim) -> Verdict {
    let contents: [&[u8]; 5] = [b"", &[0; 100_000], &[0xff; 100_000], b"<definitions", b"\x1f\x8b\x08\0\0\0\0\0"];
    for content in contents {
        refused(victim.deploy("nothing.bpmn", content).await, Code::InvalidArgument, "'nothing.bpmn'")?;
        refused(victim.deploy("nothing.dmn", content).await, Code::InvalidArgument, "'nothing.dmn'")?;
    }
    Ok("ten files".to_owned())
}

async fn long_text(victim: Victim) -> Verdict {
    let expression = format!("=\"{}\"", "x".repeat(3 << 20));
    let builder = ProcessBuilder::new("long-text").start("start").script_task("script", &expression, "result");
    victim.bears("long-text", builder.end("end").to_xml(), "{}").await
}
