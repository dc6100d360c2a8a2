//! Two sizes that are multiplied: what an instance has many of, and what of much is brought to it. What nobody charged for the
//! product shows in the memory that a command takes, in its steps and in its records.

use std::sync::Arc;

use model_builder::{Event, ProcessBuilder};
use protocol::*;

use super::{Driver, TENANT};
use crate::cluster::Outcome;

/// What an instance has many of.
#[derive(Clone, Copy, Debug)]
enum Many {
    BlindConditions,
    Conditions,
    Scopes,
    Choices,
    Results,
    Signals,
    Messages,
    Jobs,
    Compensations,
    Calls,
}

const MANY: &[Many] = &[
    Many::BlindConditions,
    Many::Conditions,
    Many::Scopes,
    Many::Choices,
    Many::Results,
    Many::Signals,
    Many::Messages,
    Many::Jobs,
    Many::Compensations,
    Many::Calls,
];

/// What is brought to it.
#[derive(Clone, Copy, Debug)]
enum Much {
    Variables,
    LongNames,
    Text,
    Signal,
    Message,
    NamesOfVariables,
    Instructions,
    Cancel,
}

const MUCH: &[Much] = &[
    Much::Variables,
    Much::LongNames,
    Much::Text,
    Much::Signal,
    Much::Message,
    Much::NamesOfVariables,
    Much::Instructions,
    Much::Cancel,
];

const COUNTS: &[usize] = &[30, 300, 3_000];
const ID: &str = "pair";
const CALLED: &str = "paired";
const JOB_TYPE: &str = "pair-job";
const NAME: &str = "pair-event";
const KEY: &str = "pair-key";

impl Driver<'_, '_> {
    /// Any of the first kind with any of the second.
    pub(super) fn pair(&mut self) -> Outcome {
        let (many, much) = (self.choices.pick(MANY), self.choices.pick(MUCH));
        let (count, size) = (self.choices.pick(COUNTS), self.choices.pick(COUNTS));
        self.note(&format!("{count} {many:?} and {size} {much:?}"));
        let called = ProcessBuilder::new(CALLED).start("s").service_task("t", JOB_TYPE).end("e").to_xml();
        for xml in [called, model(many, count)] {
            let before = self.files.len();
            self.files.push((format!("{before}.bpmn"), xml));
            self.deploy_files(before..before + 1)?;
        }
        let text = if let Much::Text = much { "x".repeat(size * 10) } else { String::new() };
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: ID.into(),
            version: -1,
            variables: format!("{{\"n\":{count},\"x\":0,\"text\":\"{text}\"}}").into(),
            tenant_id: TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        self.submit_to(PartitionId(1), Key::NONE, payload)?;
        let is_pair = |key: &&Key| key.partition() == Some(PartitionId(1));
        let Some(instance) = self.cluster.known.instances.iter().rev().find(is_pair).copied() else { return Ok(()) };
        self.bring(much, instance, size)
    }

    fn bring(&mut self, much: Much, instance: Key, size: usize) -> Outcome {
        let document = |name: &dyn Fn(usize) -> String| {
            let entries: Vec<String> = (0..size).map(|number| format!("\"{}\":{number}", name(number))).collect();
            Text::from(format!("{{{}}}", entries.join(",")))
        };
        let short = |number: usize| format!("v{number}");
        let (partition, key, payload) = match much {
            Much::Variables => (PartitionId(1), Key::NONE, document_update(instance, document(&short))),
            Much::LongNames => {
                let variables = document(&|number| format!("v{number:0>499}"));
                (PartitionId(1), Key::NONE, document_update(instance, variables))
            }
            Much::Text | Much::NamesOfVariables => {
                let fetch_variables = match much {
                    Much::Text => Vec::new(),
                    _ => (0..size).map(|number| short(number).into()).collect(),
                };
                let value = JobBatchValue {
                    job_type: JOB_TYPE.into(),
                    worker: "worker".into(),
                    timeout: 1_000,
                    max_jobs_to_activate: 10_000,
                    tenant_ids: vec![TENANT.into()],
                    fetch_variables,
                    ..JobBatchValue::default()
                };
                (PartitionId(1), Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
            }
            Much::Signal => {
                let (signal_name, tenant_id) = (NAME.into(), TENANT.into());
                let value = SignalValue { signal_name, variables: document(&short), tenant_id, rest: None };
                (PartitionId(1), Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value)))
            }
            Much::Message => {
                let value = MessageValue {
                    name: NAME.into(),
                    correlation_key: KEY.into(),
                    variables: document(&short),
                    tenant_id: TENANT.into(),
                    ..MessageValue::default()
                };
                let partition = partition_for_correlation_key(KEY, self.cluster.partitions());
                (partition, Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)))
            }
            Much::Instructions => (PartitionId(1), Key::NONE, moves(instance, document(&short))),
            Much::Cancel => {
                let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
                (PartitionId(1), instance, payload)
            }
        };
        self.submit_to(partition, key, payload)
    }
}

fn document_update(scope_key: Key, variables: Text) -> Payload {
    let value = VariableDocumentValue {
        scope_key,
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables,
        tenant_id: TENANT.into(),
    };
    Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
}

/// Each instance of an element is moved, with variables.
fn moves(process_instance_key: Key, variables: Text) -> Payload {
    let of_scope = ModificationVariableInstruction { variables, ..ModificationVariableInstruction::default() };
    let instruction = ModificationMoveInstruction {
        source_element_id: "item".into(),
        target_element_id: "last".into(),
        infer_ancestor_scope: true,
        variable_instructions: vec![of_scope],
        ..ModificationMoveInstruction::default()
    };
    let value = ProcessInstanceModificationValue {
        process_instance_key,
        move_instructions: vec![instruction],
        ..ProcessInstanceModificationValue::default()
    };
    Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value))
}

/// A process with many of something, and a task behind it.
fn model(many: Many, count: usize) -> String {
    const NUMBERS: &str = "=for i in 1..n return i";
    let started = || ProcessBuilder::new(ID).start("start");
    let each = || started().sub_process("each").multi_instance(NUMBERS, "i").start("inside");
    let around = |builder: ProcessBuilder| builder.end("done").end_sub_process();
    let builder = match many {
        Many::BlindConditions => around(each().catch_event("item", Event::Condition("=now() = null", ""))),
        Many::Conditions => around(each().catch_event("item", Event::Condition("=x > 1000000", ""))),
        Many::Scopes => nested(count.min(80)),
        Many::Choices => {
            let builder = started().ad_hoc_sub_process("choices", "=for i in 1..n return \"item\"");
            let builder = builder.ad_hoc_output("results", "=text + string(count(results))");
            builder.apart().manual_task("item").end_sub_process()
        }
        Many::Results => {
            started().manual_task("item").multi_instance(NUMBERS, "i").output_collection("results", "=[text, results]")
        }
        Many::Signals => around(each().catch_event("item", Event::Signal(NAME))),
        Many::Messages => around(each().receive_task("item", NAME, &format!("=\"{KEY}\""))),
        Many::Jobs => started().service_task("item", JOB_TYPE).multi_instance(NUMBERS, "i"),
        Many::Compensations => {
            let builder = each().manual_task("item").compensation("on-undo", "item", "undo", JOB_TYPE);
            around(builder).compensation_throw("throw")
        }
        Many::Calls => started().call_activity("item", CALLED).multi_instance(NUMBERS, "i"),
    };
    builder.service_task("last", JOB_TYPE).end("end").to_xml()
}

fn nested(levels: usize) -> ProcessBuilder {
    let mut builder = ProcessBuilder::new(ID).start("start");
    for level in 0..levels {
        builder = builder.sub_process(&format!("sub{level}")).input("=x", &format!("level{level}"));
        builder = builder.start(&format!("start{level}"));
    }
    builder = builder.service_task("item", JOB_TYPE);
    for level in (0..levels).rev() {
        builder = builder.end(&format!("end{level}")).end_sub_process();
    }
    builder
}
