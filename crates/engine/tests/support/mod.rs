//! Drives an engine as a partition would, and reports what happened as lines of text.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod unknown_variants;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use engine::{Decision, Engine, EngineOptions, Output, Watch};
use protocol::*;

pub const TENANT: &str = "<default>";
/// In longer histories, what is counted is compared with what is there at the end alone.
const AUDITED_RECORDS_MAX: usize = 5_000;

pub fn options() -> EngineOptions {
    EngineOptions::new(PartitionId(1), 1)
}

/// Refuses all commands of a batch, or none.
pub struct Refusing(pub bool);

impl Watch for Refusing {
    fn before(&mut self, _: u32, _: &Command, _: Key) -> Decision<'_> {
        if self.0 { Decision::Refuse("an operator had it refused") } else { Decision::Process }
    }
}

/// An engine with the history of everything that it was given and gave back.
pub struct Partition {
    options: EngineOptions,
    pub engine: Engine,
    pub time: i64,
    pub batches: Vec<CommandBatch>,
    /// The indexes of the batches that an operator had refused.
    pub refused: BTreeSet<u64>,
    pub records: Vec<Record>,
    pub jobs: BTreeMap<String, Key>,
    pub incidents: BTreeMap<String, Key>,
    pub elements: BTreeMap<String, Key>,
    pub instance: Key,
    requests: u64,
}

impl Partition {
    pub fn new() -> Self {
        Self::with_options(options())
    }

    pub fn with_options(options: EngineOptions) -> Self {
        Partition {
            options,
            engine: Engine::in_memory(options),
            time: 1_000_000,
            batches: Vec::new(),
            refused: BTreeSet::new(),
            records: Vec::new(),
            jobs: BTreeMap::new(),
            incidents: BTreeMap::new(),
            elements: BTreeMap::new(),
            instance: Key::NONE,
            requests: 0,
        }
    }

    /// Applies one command with a request, and then everything that a leader would do at once.
    pub fn submit(&mut self, key: Key, payload: Payload) -> Output {
        self.requests += 1;
        let request = Some(Request { node: 0, number: self.requests });
        let mut output = self.apply(vec![Command { request, ..Command::new(key, payload) }]);
        while let Some(command) = self.engine.continuation() {
            let more = self.apply(vec![command]);
            output.records.extend(more.records);
            output.replies.extend(more.replies);
            output.pushes.extend(more.pushes);
            output.available.extend(more.available);
        }
        output
    }

    pub fn apply(&mut self, commands: Vec<Command>) -> Output {
        let mut output = Output::default();
        let batch = CommandBatch { timestamp: self.time, commands };
        let index = self.batches.len() as u64 + 1;
        let mut watch = Refusing(self.refused.contains(&index));
        self.engine.apply_watched(index, &batch, &mut watch, &mut output).expect("the state is sound");
        if let [_] = *batch.commands {
            // Whoever has read that far knows all that the command did.
            let last = output.records.last().map(|record| record.position);
            assert!(output.replies.iter().all(|reply| reply.position == last), "{:?}: {last:?}", output.replies);
        }
        self.batches.push(batch);
        for record in &output.records {
            self.remember(record);
        }
        self.records.extend(output.records.iter().cloned());
        if self.records.len() < AUDITED_RECORDS_MAX {
            self.engine.audit().expect("what is counted is there");
        }
        output
    }

    /// Applies commands that are refused, as by an operator behind the end of a process.
    pub fn refuse(&mut self, commands: Vec<Command>) -> Output {
        self.refused.insert(self.batches.len() as u64 + 1);
        self.apply(commands)
    }

    /// Goes on with what was interrupted, until nothing is left of it.
    pub fn go_on(&mut self) {
        while let Some(command) = self.engine.continuation() {
            self.apply(vec![command]);
        }
    }

    fn remember(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::Job(JobIntent::Created, job) => {
                self.jobs.insert(job.element_id.to_string(), record.key);
            }
            Payload::Incident(IncidentIntent::Created, incident) => {
                self.incidents.insert(incident.element_id.to_string(), record.key);
            }
            Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) => {
                if value.bpmn_element_type == BpmnElementType::Process {
                    self.instance = record.key;
                }
                self.elements.insert(value.element_id.to_string(), record.key);
            }
            _ => {}
        }
    }

    /// Moves the clock and applies what became due.
    pub fn advance(&mut self, milliseconds: i64) -> Output {
        self.time += milliseconds;
        let due = self.engine.due_commands(self.time, 100);
        if due.is_empty() { Output::default() } else { self.apply(due) }
    }

    pub fn deploy(&mut self, name: &str, content: &[u8]) -> Output {
        let value = DeploymentValue {
            resources: vec![DeploymentResource { resource_name: name.into(), resource: Arc::from(content) }],
            tenant_id: TENANT.into(),
            ..DeploymentValue::default()
        };
        self.submit(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))
    }

    pub fn create(&mut self, id: &str, variables: &str, intent: ProcessInstanceCreationIntent) -> Output {
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: id.into(),
            version: -1,
            variables: variables.into(),
            tenant_id: TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        self.submit(Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)))
    }

    pub fn activate(&mut self, job_type: &str, jobs_max: i32) -> Output {
        let value = JobBatchValue {
            job_type: job_type.into(),
            worker: "worker".into(),
            timeout: 60_000,
            max_jobs_to_activate: jobs_max,
            tenant_ids: vec![TENANT.into()],
            ..JobBatchValue::default()
        };
        self.submit(Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
    }

    /// A command about a stream that may have this many jobs in all, and any number of bytes.
    pub fn stream(&mut self, number: u64, job_type: &str, jobs: u32, intent: JobStreamIntent) -> Output {
        self.stream_of(number, job_type, JobAmount { jobs: jobs.into(), bytes: u64::MAX }, intent)
    }

    pub fn stream_of(&mut self, number: u64, job_type: &str, granted: JobAmount, intent: JobStreamIntent) -> Output {
        let value = JobStreamValue {
            stream: StreamId { node: 0, number },
            job_type: job_type.into(),
            worker: format!("stream-{number}").into(),
            timeout: 60_000,
            fetch_variables: Vec::new(),
            tenant_ids: vec![TENANT.into()],
            granted,
            used: JobAmount::default(),
            delivered: 0,
        };
        self.submit(Key::NONE, Payload::JobStream(intent, Box::new(value)))
    }

    pub fn job(&mut self, key: Key, intent: JobIntent, value: JobValue) -> Output {
        self.submit(key, Payload::Job(intent, Arc::new(value)))
    }

    /// Checks what must hold after any history.
    pub fn check(&self) {
        self.engine.audit().expect("what is counted is there");
        let options = self.options;
        let hash = self.engine.state_hash().expect("readable");
        let mut replica = Engine::in_memory(options);
        let mut records = Vec::new();
        for (index, batch) in self.batches.iter().enumerate() {
            let (mut output, index) = (Output::default(), index as u64 + 1);
            let mut watch = Refusing(self.refused.contains(&index));
            replica.apply_watched(index, batch, &mut watch, &mut output).expect("the state is sound");
            records.extend(output.records);
        }
        assert_eq!(records, self.records, "a replica has the same records");
        unknown_variants::check_some(&self.batches, &self.records);
        assert_eq!(replica.state_hash().expect("readable"), hash, "a replica has the same state");
        let mut folded = Engine::in_memory(options);
        for record in &self.records {
            let bytes = encode_to_vec(record);
            folded.replay(&decode::<Record>(&bytes).expect("a record reads back")).expect("the state is sound");
        }
        // Commands without a record take positions and keys too, so the counters may differ; every row must not.
        assert_eq!(rows(&folded), rows(&self.engine), "the records alone rebuild the state");
        let numbers = |engine: &Engine| {
            let statistics = engine.statistics();
            (statistics.incidents, statistics.banned_instances, statistics.job_streams, statistics.work_entries)
        };
        assert_eq!(numbers(&folded), numbers(&self.engine), "the records alone rebuild the counts");
        let positions: Vec<u64> = self.records.iter().map(|record| record.position).collect();
        assert!(positions.is_sorted_by(|left, right| left < right), "each record has a position of its own");
    }
}

/// What happened, one line each, without keys and times.
pub fn describe(output: &Output) -> String {
    let mut text = String::new();
    for record in &output.records {
        let line = describe_record(record);
        if !line.is_empty() {
            let _ = writeln!(text, "{line}");
        }
    }
    for push in &output.pushes {
        let _ =
            writeln!(text, "  push {} {} to stream {}", push.job.element_id, push.job.variables, push.stream.number);
    }
    for reply in &output.replies {
        let _ = match (&reply.rejection, &reply.payload) {
            (Some(rejection), payload) => writeln!(
                text,
                "  reply {} {}: {}",
                payload.intent_name(),
                rejection.rejection_type.name(),
                without_keys(&rejection.reason)
            ),
            (None, Payload::JobBatch(_, batch)) => {
                for job in &batch.jobs {
                    let _ = writeln!(
                        text,
                        "  job {} retries {} headers {} variables {}",
                        job.element_id, job.retries, job.custom_headers, job.variables
                    );
                }
                writeln!(
                    text,
                    "  reply ACTIVATED {} jobs{}",
                    batch.jobs.len(),
                    if batch.truncated { ", truncated" } else { "" }
                )
            }
            (None, Payload::ProcessInstanceResult(_, result)) => writeln!(text, "  result {}", result.variables),
            (None, payload) => writeln!(text, "  reply {} {}", payload.value_type().name(), payload.intent_name()),
        };
    }
    for available in &output.available {
        let _ = writeln!(text, "  available {}", available.job_type);
    }
    text
}

fn describe_record(record: &Record) -> String {
    if let RecordType::Rejection(_) = record.record_type {
        // The reply says the same.
        return String::new();
    }
    let what = match &record.payload {
        Payload::ProcessInstance(_, value) => format!("{} {}", value.bpmn_element_type.name(), value.element_id),
        Payload::Job(_, job) => {
            let mut text = format!("{} {} retries {}", job.element_id, job.job_type, job.retries);
            if !job.error_message.is_empty() {
                let _ = write!(text, " '{}'", job.error_message);
            }
            text
        }
        Payload::JobBatch(_, batch) => format!("{} {} for {}", batch.job_keys.len(), batch.job_type, batch.worker),
        Payload::Variable(_, variable) => format!("{} = {}", variable.name, variable.value),
        Payload::Incident(_, incident) => {
            format!(
                "{} {} '{}'",
                incident.element_id,
                incident.error_type.name(),
                without_keys(&incident.error_message)
            )
        }
        Payload::Process(_, process) => {
            format!("{} version {}", process.metadata.bpmn_process_id, process.metadata.version)
        }
        Payload::Deployment(_, deployment) => {
            let names: Vec<_> = deployment
                .processes_metadata
                .iter()
                .map(|process| {
                    format!(
                        "{} v{}{}",
                        process.bpmn_process_id,
                        process.version,
                        if process.duplicate { " duplicate" } else { "" }
                    )
                })
                .collect();
            names.join(", ")
        }
        Payload::ProcessInstanceCreation(_, creation) => format!("{} v{}", creation.bpmn_process_id, creation.version),
        Payload::CompensationSubscription(_, value) => {
            format!("{} undone by '{}'", value.compensable_activity_id, value.compensation_handler_id)
        }
        Payload::ConditionalSubscription(_, value) => {
            let words: Vec<&str> =
                value.variable_names.iter().chain(&value.variable_events).map(|word| &**word).collect();
            let kind = if value.interrupting { "interrupting" } else { "non-interrupting" };
            format!("{} {} reads {} {kind}", value.catch_event_id, value.condition, words.join(","))
        }
        Payload::GlobalListener(_, value) => {
            let events: Vec<&str> = value.event_types.iter().map(|of| of.name()).collect();
            let place = if value.after_non_global { "after" } else { "before" };
            format!("{} {} priority {} {place}", value.id, events.join(","), value.priority)
        }
        Payload::ConditionalEvaluation(_, value) => format!("starts {}", value.started_process_instances.len()),
        Payload::Error(_, error) => error.exception_message.to_string(),
        _ => String::new(),
    };
    format!("{} {} {what}", record.payload.value_type().name(), record.payload.intent_name()).trim_end().to_owned()
}

/// Long numbers are keys; they depend on what else happened.
pub fn without_keys(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for character in text.chars().chain(['\0']) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        out.push_str(if digits.len() > 9 { "<key>" } else { &digits });
        digits.clear();
        if character != '\0' {
            out.push(character);
        }
    }
    out
}

/// Every row of the state as text.
pub fn rows(engine: &Engine) -> Vec<String> {
    let mut dump = Vec::new();
    engine.dump(&mut dump).expect("readable");
    let dump = String::from_utf8_lossy(&dump);
    dump.lines().filter(|line| !line.starts_with("Counters")).map(str::to_owned).collect()
}
