//! Several partitions and the way between them.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use engine::{Engine, EngineOptions, Limits, Output, Reply};
use protocol::*;

use super::support::{TENANT, unknown_variants};

/// Partitions with the history of everything that they were given and gave back.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub time: i64,
    /// Commands on their way, with their target.
    pub way: Vec<(PartitionId, Command)>,
    requests: u64,
}

pub struct Node {
    pub options: EngineOptions,
    pub engine: Engine,
    pub batches: Vec<CommandBatch>,
    pub records: Vec<Record>,
    pub replies: Vec<Reply>,
    /// The most that one batch looked at and evaluated, in steps.
    pub steps_max: u64,
    /// Bytes of all records.
    pub record_bytes: u64,
}

impl Cluster {
    pub fn new(partitions: u16) -> Self {
        Self::with_limits(partitions, Limits::default())
    }

    pub fn with_limits(partitions: u16, limits: Limits) -> Self {
        let node = |partition| {
            let options =
                EngineOptions { limits: Some(limits), ..EngineOptions::new(PartitionId(partition), partitions) };
            let engine = Engine::in_memory(options);
            let (batches, records, replies) = (Vec::new(), Vec::new(), Vec::new());
            Node { options, engine, batches, records, replies, steps_max: 0, record_bytes: 0 }
        };
        Cluster { nodes: (1..=partitions).map(node).collect(), time: 1_000_000, way: Vec::new(), requests: 0 }
    }

    pub fn node(&mut self, partition: u16) -> &mut Node {
        &mut self.nodes[usize::from(partition) - 1]
    }

    /// Applies one batch, and then the work that it left.
    pub fn apply(&mut self, partition: u16, commands: Vec<Command>) {
        self.apply_batch(partition, commands);
        self.work(partition);
    }

    /// Applies one batch; what goes to other partitions is put on the way.
    pub fn apply_batch(&mut self, partition: u16, commands: Vec<Command>) {
        let batch = CommandBatch { timestamp: self.time, commands };
        let node = self.node(partition);
        let index = node.batches.len() as u64 + 1;
        let mut output = Output::default();
        node.engine.apply(index, &batch, &mut output).expect("the state is sound");
        node.steps_max = node.steps_max.max(output.spent.evaluation_steps + output.spent.joins_read);
        node.record_bytes += output.spent.record_bytes;
        node.batches.push(batch);
        node.records.append(&mut output.records);
        node.replies.append(&mut output.replies);
        self.way.extend(output.sends.into_iter().map(|send| (send.partition, send.command)));
    }

    /// Does all work that waits on a partition.
    pub fn work(&mut self, partition: u16) {
        while let Some(command) = self.node(partition).engine.continuation() {
            self.apply_batch(partition, vec![command]);
        }
    }

    /// Applies a client's command and answers its reply, if there is one already.
    pub fn submit(&mut self, partition: u16, key: Key, payload: Payload) -> Option<Reply> {
        self.requests += 1;
        let request = Request { node: 0, number: self.requests };
        self.apply(partition, vec![Command { request: Some(request), ..Command::new(key, payload) }]);
        self.node(partition).replies.iter().rev().find(|reply| reply.request == request).cloned()
    }

    /// Delivers what is on the way, in order, until nothing is.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            if self.way.is_empty() {
                return;
            }
            let (partition, command) = self.way.remove(0);
            self.apply(partition.0, vec![command]);
        }
        panic!("the partitions do not come to rest");
    }

    /// Puts everything unacknowledged on the way once more.
    pub fn send_again(&mut self) {
        for node in &self.nodes {
            for partition in node.engine.outbox_partitions() {
                let commands = node.engine.outbox(partition, 0, 1_000);
                self.way.extend(commands.into_iter().map(|command| (partition, command)));
            }
        }
    }

    /// Moves the clock; every partition does what became due.
    pub fn advance(&mut self, milliseconds: i64) {
        self.time += milliseconds;
        let time = self.time;
        for partition in 1..=self.nodes.len() as u16 {
            loop {
                let due = self.node(partition).engine.due_commands(time, 100);
                if due.is_empty() {
                    break;
                }
                self.apply(partition, due);
            }
        }
    }

    /// Deploys on the first partition, and brings it to the others.
    pub fn deploy(&mut self, xml: &str) {
        let resource = DeploymentResource { resource_name: "p.bpmn".into(), resource: Arc::from(xml.as_bytes()) };
        let value =
            DeploymentValue { resources: vec![resource], tenant_id: TENANT.into(), ..DeploymentValue::default() };
        let reply = self.submit(1, Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
        assert_eq!(reply.and_then(|reply| reply.rejection), None, "the deployment is accepted");
        self.settle();
    }

    /// Creates an instance and answers its key.
    pub fn create(&mut self, partition: u16, id: &str, variables: &str) -> Key {
        match self.submit(partition, Key::NONE, creation(id, variables)).expect("an answer").payload {
            Payload::ProcessInstanceCreation(_, created) => created.process_instance_key,
            other => panic!("unexpected answer {other:?}"),
        }
    }

    pub fn cancel(&mut self, instance: Key) -> Option<Rejection> {
        let partition = instance.partition().expect("a key of an instance").0;
        let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
        self.submit(partition, instance, payload).expect("an answer").rejection
    }

    /// Completes every job that there is.
    pub fn complete_jobs(&mut self) {
        for partition in 1..=self.nodes.len() as u16 {
            let jobs = self.node(partition).records.iter().filter_map(|record| match record.payload {
                Payload::Job(JobIntent::Created, _) => Some(record.key),
                _ => None,
            });
            for job in jobs.collect::<Vec<_>>() {
                self.submit(partition, job, Payload::Job(JobIntent::Complete, Arc::default()));
            }
        }
    }

    /// Publishes on the partition of the correlation key.
    pub fn publish(&mut self, message: &Message<'_>) -> Result<Key, Rejection> {
        let partition = partition_for_correlation_key(message.correlation_key, self.nodes.len() as u16);
        self.publish_on(partition.0, message)
    }

    pub fn publish_on(&mut self, partition: u16, message: &Message<'_>) -> Result<Key, Rejection> {
        let value = MessageValue {
            name: message.name.into(),
            correlation_key: message.correlation_key.into(),
            message_id: message.id.into(),
            time_to_live: message.time_to_live,
            variables: message.variables.into(),
            tenant_id: TENANT.into(),
            ..MessageValue::default()
        };
        let payload = Payload::Message(MessageIntent::Publish, Box::new(value));
        let reply = self.submit(partition, Key::NONE, payload).expect("publishing is answered at once");
        match reply.rejection {
            Some(rejection) => Err(rejection),
            None => Ok(reply.key),
        }
    }

    /// Events of all partitions, in the order of the partitions.
    pub fn events(&self) -> impl Iterator<Item = &Record> {
        let records = self.nodes.iter().flat_map(|node| &node.records);
        records.filter(|record| record.record_type == RecordType::Event)
    }

    /// How often an event happened, by its value type and intent.
    pub fn count(&self, value_type: &str, intent: &str) -> usize {
        let is_meant = |record: &&Record| {
            record.payload.value_type().name() == value_type && record.payload.intent_name() == intent
        };
        self.events().filter(is_meant).count()
    }

    /// Rows whose table is none of these, by partition.
    pub fn rows_but(&self, stays: &[&str]) -> Vec<String> {
        let mut left = Vec::new();
        for node in &self.nodes {
            let rows = rows(&node.engine).into_iter();
            left.extend(rows.filter(|row| !stays.contains(&row.split(' ').next().unwrap_or(""))));
        }
        left
    }

    /// Checks on every partition that a replica does the same and that the records alone rebuild the state.
    pub fn check(&self) {
        for node in &self.nodes {
            node.engine.audit().expect("what is counted is there");
            let mut replica = Engine::in_memory(node.options);
            let mut records = Vec::new();
            for (index, batch) in node.batches.iter().enumerate() {
                let mut output = Output::default();
                replica.apply(index as u64 + 1, batch, &mut output).expect("the state is sound");
                records.append(&mut output.records);
            }
            assert_eq!(records, node.records, "a replica has the same records");
            unknown_variants::check_some(&node.batches, &node.records);
            let hash = |engine: &Engine| engine.state_hash().expect("readable");
            assert_eq!(hash(&replica), hash(&node.engine), "a replica has the same state");
            let mut folded = Engine::in_memory(node.options);
            for record in &node.records {
                let bytes = encode_to_vec(record);
                folded.replay(&decode::<Record>(&bytes).expect("a record reads back")).expect("the state is sound");
            }
            assert_eq!(rows(&folded), rows(&node.engine), "the records alone rebuild the state");
            let numbers = |engine: &Engine| {
                let statistics = engine.statistics();
                (statistics.messages, statistics.message_subscriptions, statistics.work_entries)
            };
            assert_eq!(numbers(&folded), numbers(&node.engine), "the records alone rebuild the counts");
        }
    }
}

/// What is published.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    pub name: &'a str,
    pub correlation_key: &'a str,
    pub id: &'a str,
    pub time_to_live: i64,
    pub variables: &'a str,
}

impl<'a> Message<'a> {
    pub fn new(name: &'a str, correlation_key: &'a str) -> Self {
        Message { name, correlation_key, id: "", time_to_live: 0, variables: "" }
    }

    pub fn kept(self, time_to_live: i64) -> Self {
        Message { time_to_live, ..self }
    }

    pub fn with(self, variables: &'a str) -> Self {
        Message { variables, ..self }
    }

    pub fn id(self, id: &'a str) -> Self {
        Message { id, ..self }
    }
}

pub fn creation(id: &str, variables: &str) -> Payload {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: id.into(),
        version: -1,
        variables: variables.into(),
        tenant_id: TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value))
}

fn rows(engine: &Engine) -> Vec<String> {
    let mut dump = Vec::new();
    engine.dump(&mut dump).expect("readable");
    let dump = String::from_utf8_lossy(&dump);
    dump.lines().filter(|line| !line.starts_with("Counters")).map(str::to_owned).collect()
}
