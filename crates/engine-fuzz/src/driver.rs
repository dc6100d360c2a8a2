//! What clients, workers, time and the ways between partitions do.

mod global_listeners;
mod instances;
mod jobs;
mod pairs;
mod people;

use std::ops::Range;
use std::sync::Arc;

use protocol::*;

use crate::choices::Choices;
use crate::cluster::{Broken, Cluster, Outcome};
use crate::decision::graph;
use crate::model::model;
use crate::names::{DECISIONS, JOB_TYPES, KEYS, MESSAGES, PROCESSES, name};

/// The tenant of everything.
const TENANT: &str = DEFAULT_TENANT;
/// A case that has done so much ends: it takes its share of time, and what is wrong shows in short ones too.
const RECORDS_MAX: usize = 40_000;
const EVALUATION_STEPS_MAX: u64 = 30_000_000;
const TIMES_MAX: u64 = 20_000_000;
/// Files that are refused are followed by others so often.
const DEPLOYMENTS_AT_FIRST: usize = 5;
/// Of what is done, only so much is kept to be shown.
const SHOWN_CHARACTERS: usize = 600;

/// A case while it runs.
pub(crate) struct Driver<'a, 'b> {
    pub cluster: Cluster,
    /// What models are made from.
    models: &'a mut Choices<'b>,
    choices: Choices<'b>,
    /// Ids of elements and sequence flows of the models.
    ids: Vec<String>,
    /// Files that were deployed.
    pub files: Vec<(String, String)>,
    /// What was done.
    pub steps: Vec<String>,
    streams: u64,
    /// Deliveries of which one is lost or comes twice.
    lost: u64,
    /// Whether two sizes are multiplied, and little else is done.
    is_pair: bool,
}

impl<'a, 'b> Driver<'a, 'b> {
    pub fn new(models: &'a mut Choices<'b>, mut choices: Choices<'b>) -> Self {
        let partitions = [1, 1, 2, 3][choices.below(4)];
        let steps_per_command_max = choices.pick(&[1_000, 1_000, 3, 30]);
        let mut cluster = Cluster::new(partitions, steps_per_command_max);
        cluster.is_lazy = choices.percent(15);
        let lost = choices.pick(&[0, 0, 3, 7]);
        let is_pair = choices.percent(20);
        Driver {
            cluster,
            models,
            choices,
            ids: vec!["start0".to_owned()],
            files: Vec::new(),
            steps: Vec::new(),
            streams: 0,
            lost,
            is_pair,
        }
    }

    /// Does everything that the choices say.
    pub fn run(&mut self) -> Outcome {
        if self.is_pair {
            self.pair()?;
            self.cluster.deliver(self.lost)?;
        }
        for _ in 0..DEPLOYMENTS_AT_FIRST {
            self.deploy()?;
            if !self.cluster.known.processes.is_empty() {
                break;
            }
        }
        self.create()?;
        while !self.choices.is_at_end() && !self.has_done_much() {
            self.step()?;
            self.cluster.deliver(self.lost)?;
        }
        self.end()
    }

    /// Does something, each as often as it should come.
    fn step(&mut self) -> Outcome {
        match self.choices.below(43) {
            0..=2 => self.create(),
            3..=5 => self.complete_job(),
            6..=8 => self.complete_jobs(),
            9..=11 => self.wait(),
            12..=13 => self.publish(),
            14..=15 => self.activate_jobs(),
            16 => self.throw_error(),
            17 => self.fail_job(),
            18..=19 => self.set_variables(),
            20..=21 => self.resolve_incident(),
            22 => self.cancel(),
            23..=24 => self.modify(),
            25 => self.migrate(),
            26 => self.delete(),
            27 => self.deploy(),
            28 => self.stream(),
            29 => self.update_job(),
            30 => self.evaluate(),
            31 => self.made_up(),
            32 => self.go_on(),
            33 => self.publish_often(),
            34 => self.poll(),
            35..=36 => self.user_task(),
            37 => self.global_listener(),
            38..=39 => self.broadcast(),
            40..=41 => self.choose(),
            42 => self.complete_with_result(),
            _ => self.create_with_instructions(),
        }
    }

    fn has_done_much(&self) -> bool {
        let costs = &self.cluster.costs;
        let steps: u64 = costs.iter().map(|cost| cost.spent.evaluation_steps + cost.spent.joins_read).sum();
        let times: u64 = costs.iter().map(|cost| cost.memory.times).sum();
        let records: usize = costs.iter().map(|cost| cost.records).sum();
        records > RECORDS_MAX || steps > EVALUATION_STEPS_MAX || times > TIMES_MAX
    }

    /// Says what is done next.
    fn note(&mut self, what: &str) {
        self.cluster.step = self.steps.len();
        self.steps.push(what.chars().take(SHOWN_CHARACTERS).collect());
    }

    fn submit(&mut self, key: Key, payload: Payload) -> Outcome {
        let partition = self.cluster.partition_of(key);
        self.submit_to(partition, key, payload)
    }

    fn submit_to(&mut self, partition: PartitionId, key: Key, payload: Payload) -> Outcome {
        self.note(&format!("partition {} at {}: {key} {payload:?}", partition.0, self.cluster.time));
        self.cluster.submit(partition, key, payload)
    }

    /// One of the keys, mostly a recent one; now and then one of something that has ended, or one that is made up.
    fn key(&mut self, among: fn(&Cluster) -> &Vec<Key>) -> Key {
        let number = self.choices.byte();
        let keys = match number {
            0..=234 => among(&self.cluster),
            _ => &self.cluster.known.ended,
        };
        match keys.iter().rev().nth(usize::from(number) % keys.len().clamp(1, 12)) {
            Some(key) if number < 250 => *key,
            _ => self.made_up_key(),
        }
    }

    fn made_up_key(&mut self) -> Key {
        let partition = PartitionId(u16::from(self.choices.byte() % 5));
        match self.choices.below(5) {
            0 => Key::new(partition, u64::from(self.choices.byte())),
            1 => Key::from_raw(self.choices.pick(&[i64::MAX, i64::MIN, 0, -1, -2, 1])),
            _ => Key::new(partition, (1 << 51) - 1 - u64::from(self.choices.byte())),
        }
    }

    fn partition(&mut self) -> PartitionId {
        PartitionId(1 + self.choices.below(usize::from(self.cluster.partitions())) as u16)
    }

    fn element_id(&mut self) -> Text {
        self.ids[self.choices.below(self.ids.len())].as_str().into()
    }

    fn deploy(&mut self) -> Outcome {
        if self.models.is_at_end() && !self.cluster.known.processes.is_empty() {
            return self.deploy_again();
        }
        let before = self.files.len();
        let mut files = Vec::new();
        if self.models.percent(60) {
            files.push(("dmn", graph(self.models)));
        }
        let first = self.models.below(PROCESSES.len());
        let process = |number: usize| PROCESSES[(first + number) % PROCESSES.len()];
        let mut models = vec![if self.models.percent(25) { vec![process(0), process(1)] } else { vec![process(0)] }];
        if self.models.percent(25) {
            models.push(vec![process(2)]);
        }
        for processes in models {
            let file = model(self.models, &processes);
            self.ids.extend(file.ids);
            files.push(("bpmn", file.xml));
        }
        self.ids.sort_unstable();
        self.ids.dedup();
        for (kind, content) in files {
            self.files.push((format!("{}.{kind}", self.files.len()), content));
        }
        if self.models.percent(30) {
            return self.deploy_files(before..self.files.len());
        }
        for number in before..self.files.len() {
            self.deploy_files(number..number + 1)?;
        }
        Ok(())
    }

    /// Another version of a file, as it was some time.
    fn deploy_again(&mut self) -> Outcome {
        let number = self.choices.below(self.files.len());
        self.deploy_files(number..number + 1)
    }

    fn deploy_files(&mut self, numbers: Range<usize>) -> Outcome {
        self.note(&format!("deploy files {numbers:?}"));
        let resource = |(name, content): &(String, String)| DeploymentResource {
            resource_name: name.as_str().into(),
            resource: Arc::from(content.as_bytes()),
        };
        let resources = self.files[numbers].iter().map(resource).collect();
        let value = DeploymentValue { resources, tenant_id: TENANT.into(), ..DeploymentValue::default() };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        self.cluster.submit(PartitionId::DEPLOYMENT, Key::NONE, payload)
    }

    fn publish(&mut self) -> Outcome {
        let correlation_key = name(&mut self.choices, KEYS);
        let time_to_live = self.choices.pick(&[0, 10_000, 100_000, i64::MAX, -1]);
        let value = MessageValue {
            name: name(&mut self.choices, MESSAGES).into(),
            correlation_key: correlation_key.as_str().into(),
            message_id: (self.choices.pick(&["", "", "one"])).into(),
            time_to_live,
            variables: self.variables(),
            tenant_id: TENANT.into(),
            ..MessageValue::default()
        };
        let partition = partition_for_correlation_key(&correlation_key, self.cluster.partitions());
        // A message that has expired before it comes is also one whose sender waits for the instance that takes it.
        let payload = if time_to_live < 0 {
            let value = MessageCorrelationValue {
                name: value.name,
                correlation_key: value.correlation_key,
                variables: value.variables,
                tenant_id: value.tenant_id,
                ..MessageCorrelationValue::default()
            };
            Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, Box::new(value))
        } else {
            Payload::Message(MessageIntent::Publish, Box::new(value))
        };
        self.submit_to(partition, Key::NONE, payload)
    }

    fn publish_often(&mut self) -> Outcome {
        let count = 1 + self.choices.size(300);
        let key = self.choices.pick(KEYS);
        let value = MessageValue {
            name: (self.choices.pick(MESSAGES)).into(),
            correlation_key: key.into(),
            time_to_live: 1_000,
            tenant_id: TENANT.into(),
            ..MessageValue::default()
        };
        self.note(&format!("publish {count} times: {value:?}"));
        let partition = partition_for_correlation_key(key, self.cluster.partitions());
        for _ in 0..count {
            let payload = Payload::Message(MessageIntent::Publish, Box::new(value.clone()));
            self.cluster.submit(partition, Key::NONE, payload)?;
        }
        Ok(())
    }

    fn set_variables(&mut self) -> Outcome {
        let semantics = [VariableDocumentUpdateSemantics::Propagate, VariableDocumentUpdateSemantics::Local];
        let scope_key = self.key(|cluster| &cluster.known.elements);
        let value = VariableDocumentValue {
            scope_key,
            update_semantics: self.choices.pick(&semantics),
            variables: self.variables(),
            tenant_id: TENANT.into(),
        };
        let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
        let partition = self.cluster.partition_of(scope_key);
        self.submit_to(partition, Key::NONE, payload)
    }

    fn resolve_incident(&mut self) -> Outcome {
        let key = self.key(|cluster| &cluster.known.incidents);
        self.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()))
    }

    fn delete(&mut self) -> Outcome {
        if !self.choices.percent(30) {
            return self.wait();
        }
        let resource_key = self.key(|cluster| &cluster.known.definitions);
        let value = ResourceDeletionValue { resource_key, tenant_id: TENANT.into() };
        let payload = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
        self.submit_to(PartitionId::DEPLOYMENT, Key::NONE, payload)
    }

    fn evaluate(&mut self) -> Outcome {
        if self.choices.percent(50) {
            return self.evaluate_conditions();
        }
        let decision_key = match self.choices.percent(10) {
            true => self.made_up_key(),
            false => Key::NONE,
        };
        let value = DecisionEvaluationValue {
            decision_key,
            decision_id: name(&mut self.choices, DECISIONS).into(),
            variables: self.variables(),
            tenant_id: TENANT.into(),
            ..DecisionEvaluationValue::default()
        };
        let payload = Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value));
        let partition = self.partition();
        self.submit_to(partition, Key::NONE, payload)
    }

    /// Has the conditions of start events evaluated, of all definitions or of one.
    fn evaluate_conditions(&mut self) -> Outcome {
        let of_one = self.choices.percent(30);
        let process_definition_key = if of_one { self.key(|cluster| &cluster.known.definitions) } else { Key::NONE };
        let value = ConditionalEvaluationValue {
            process_definition_key,
            variables: self.variables(),
            tenant_id: TENANT.into(),
            started_process_instances: Vec::new(),
        };
        let payload = Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluate, Box::new(value));
        let partition = self.partition();
        self.submit_to(partition, Key::NONE, payload)
    }

    fn wait(&mut self) -> Outcome {
        let times = [1, 10_000, 20_000, 100, 3_600_000, 86_400_000 * 400, 0, 1_000];
        let milliseconds = self.choices.pick(&times);
        self.note(&format!("wait {milliseconds} ms"));
        self.cluster.advance(milliseconds)
    }

    /// Goes on with interrupted work, or sends again what may be lost.
    fn go_on(&mut self) -> Outcome {
        let partition = self.partition();
        match self.choices.below(4) {
            0 => {
                self.note("send again");
                self.cluster.send_again();
                Ok(())
            }
            1 => {
                self.note("lose all streams and polls");
                self.cluster.lose_all(partition)
            }
            _ => {
                self.note(&format!("go on with work of partition {}", partition.0));
                self.cluster.work_once(partition).map(|_| ())
            }
        }
    }

    /// Commands that no client can send, or for what there is not.
    fn made_up(&mut self) -> Outcome {
        if !self.choices.percent(40) {
            return self.complete_jobs();
        }
        let key = self.made_up_key();
        let payload = match self.choices.below(8) {
            0 => Payload::Timer(TimerIntent::Trigger, Box::default()),
            1 => Payload::Job(JobIntent::TimeOut, Arc::default()),
            2 => Payload::Job(JobIntent::RecurAfterBackoff, Arc::default()),
            3 => Payload::Work(WorkIntent::Continue, Box::default()),
            4 => {
                let value = MessageBatchValue { message_keys: vec![key, Key::NONE, key] };
                Payload::MessageBatch(MessageBatchIntent::Expire, Box::new(value))
            }
            5 => Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default()),
            6 => Payload::Incident(IncidentIntent::Resolve, Box::default()),
            _ => Payload::Job(JobIntent::Complete, Arc::default()),
        };
        let partition = self.partition();
        self.submit_to(partition, key, payload)
    }

    /// A JSON object: none, a usual one, or one that is hostile.
    fn variables(&mut self) -> Text {
        let choices = &mut self.choices;
        let byte = choices.byte();
        let numbers = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        match byte {
            0..=99 => "{\"key\":\"k0\",\"choice\":1,\"n\":3,\"items\":[1,2,3],\"text\":\"abc\"}".into(),
            100..=149 => "".into(),
            150..=199 => format!(
                "{{\"key\":\"{}\",\"choice\":{},\"n\":{},\"items\":[{}],\"document\":{{\"a\":{{\"b\":[1,{{\"c\":null}}]}}}}}}",
                choices.pick(KEYS),
                choices.below(4),
                choices.pick(&["0", "-1", "1e3", "123456789012345678901234567890123456", "1E-9999"]),
                numbers(choices.size(2_000)),
            )
            .into(),
            200..=229 => format!("{{\"text\":\"{}\"}}", "a".repeat(choices.size(4 << 10))).into(),
            230..=236 => {
                let text = choices.pick(&["a", "xy", "\\u0000", "😀", "$0"]);
                let long = text.repeat(choices.below(2 << 20) / text.len());
                format!("{{\"text\":\"{long}\",\"key\":\"k0\"}}").into()
            }
            237..=241 => format!("{{\"items\":[{}]}}", numbers(choices.below(20_000))).into(),
            242..=246 => {
                let depth = choices.below(1_100);
                format!("{{\"document\":{}1{}}}", "{\"a\":".repeat(depth), "}".repeat(depth)).into()
            }
            247..=249 => {
                let depth = choices.below(1_100);
                format!("{{\"items\":{}{}}}", "[".repeat(depth + 1), "]".repeat(depth + 1)).into()
            }
            250..=252 => {
                let names: Vec<String> = (0..choices.below(3_000)).map(|number| format!("\"v{number}\":{number}")).collect();
                format!("{{{}}}", names.join(",")).into()
            }
            _ => format!("{{\"{}\":1}}", "v".repeat(choices.below(1_000))).into(),
        }
    }

    /// Everything is ended. What is wrong with what is left shows now.
    fn end(&mut self) -> Outcome {
        self.note("end");
        self.cluster.is_lazy = false;
        self.cluster.check_history()?;
        if self.has_done_much() || !self.cluster.settle()? {
            return Ok(());
        }
        self.delete_listeners()?;
        if !self.cluster.settle()? {
            return Ok(());
        }
        // A message that waited for the end of an instance may start the next one.
        for _ in 0..CANCELLATIONS_MAX {
            let known = &self.cluster.known;
            if known.banned > 0 || known.is_partial || self.has_done_much() {
                return Ok(());
            }
            // The end of an instance waits for what listens to the end of its user tasks: for ever, where that is an incident.
            let waits =
                ["element_instances", "user_tasks"].iter().all(|table| self.cluster.row_of(&[*table]).is_some());
            if self.cluster.known.instances.is_empty() && waits {
                self.agree()?;
            } else if self.cluster.known.instances.is_empty() {
                let left = self.cluster.row_of(OF_INSTANCES);
                return left.map_or(Ok(()), |row| {
                    let row: String = row.chars().take(400).collect();
                    Err(Broken(format!("something of instances that have ended is left: {row}")))
                });
            }
            self.cancel_all()?;
            if !self.cluster.settle()? {
                return Ok(());
            }
        }
        Ok(())
    }
}

const CANCELLATIONS_MAX: usize = 30;

/// Tables that hold nothing when all instances have ended.
const OF_INSTANCES: &[&str] = &[
    "element_instances",
    "children",
    "waiting_tokens",
    "variables",
    "jobs",
    "available_jobs",
    "job_deadlines",
    "job_backoffs",
    "incidents",
    "work",
    "outbox",
    "distributions",
    "pending_distributions",
    "awaited_results",
    "event_triggers",
    "timers",
    "loop_items",
    "loop_outputs",
    "message_subscriptions",
    "waiting_subscriptions",
    "busy_subscriptions",
    "process_message_subscriptions",
    "message_locks",
    "message_lock_keys",
    "runtime_instructions",
    "living_instances",
    "deleting_processes",
    "user_tasks",
    "global_listeners",
    "pinned_global_listeners",
    "compensation_subscriptions",
    "compensation_scopes",
    "compensable",
    "compensable_activities",
    "compensation_activities",
    "compensation_throw_events",
    "compensation_handlers",
    "compensations",
];
