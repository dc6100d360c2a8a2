//! The clients of the cluster: they deploy, create, work, publish, cancel and resolve, note the answers, and ask again when
//! there is none.

mod global_listeners;
mod listeners;
mod operators;
mod people;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Reply;
use protocol::*;

use crate::model::{self, Listened, reading};
use crate::options::Swarm;
use crate::oracle::Accounting;
use crate::worker::LONG_TIMEOUT;
use chance::Chance;

use listeners::is_of_task;
use operators::Operators;

const TENANT: &str = "<default>";
/// Instances that are asked for while there are faults, at most.
const INSTANCES_MAX: u64 = 60;
/// Instances that are asked for in any case, also when the faults left no time for them.
const INSTANCES_MIN: u64 = 8;

/// A command on its way to a partition.
pub struct Ask {
    /// Where it goes.
    pub partition: PartitionId,
    /// The number that identifies the answer.
    pub number: u64,
    /// The command without its request, which the node adds that takes it.
    pub command: Command,
}

/// What the clients know.
pub struct Clients {
    chance: Chance,
    partitions: u16,
    numbers: u64,
    /// What was asked and not answered.
    pending: BTreeMap<u64, Kind>,
    resources: Vec<DeploymentResource>,
    processes: Vec<String>,
    is_deployed: bool,
    is_deploying: bool,
    /// Instances by what their creation was answered, with their correlation key.
    instances: BTreeMap<Key, String>,
    created: u64,
    /// Jobs that a poll answered and that were not worked on, with what they listen to.
    jobs: Vec<(Key, JobListenerEventType)>,
    /// What was asked about jobs, by clients that do not give up.
    worked_on: BTreeMap<u64, (Key, JobListenerEventType)>,
    /// Whether workers have much time.
    is_patient: bool,
    /// No new instances from now on, and everything is worked on.
    is_finishing: bool,
    published: u64,
    payloads: u64,
    /// How long the longest texts in variables are.
    payload_bytes: usize,
    /// How long the variables are that processes read again and again.
    read_variable_bytes: usize,
    answers: BTreeMap<&'static str, (u64, u64)>,
    /// What operators do, if there are any.
    operators: Option<Operators>,
    /// Whether conditions of start events are evaluated.
    has_conditions: bool,
    /// Whether global listeners are defined.
    has_global_listeners: bool,
    /// How many there were, with those that became others.
    global_listeners: i32,
}

#[derive(Clone)]
enum Kind {
    Deploy,
    Create(String),
    Poll,
    Other(&'static str),
}

impl Clients {
    /// Clients with some random processes.
    pub fn new(swarm: &Swarm, mut chance: Chance) -> Self {
        let mut processes = Vec::new();
        let mut resources = vec![resource(model::CALLED, &model::called())];
        for number in 0..1 + chance.below(3) {
            let id = Listened::draw(&mut chance).name(&format!("process-{number}"));
            let room = *chance.choose(&[4, 10, 25]);
            resources.push(resource(&id, &model::random(&id, room, &mut chance)));
            processes.push(id);
        }
        if chance.one_in(2) {
            resources.push(resource(model::STARTED, &model::started_by_message()));
        }
        if chance.one_in(2) {
            resources.push(resource(model::SIGNALLED, &model::started_by_signal()));
        }
        let has_conditions = chance.one_in(2);
        if has_conditions {
            resources.push(resource(model::CONDITIONED, &model::started_by_conditions()));
        }
        add_others(&mut resources, &mut processes, &mut chance);
        let has_global_listeners = chance.one_in(2);
        let operators = swarm.has_operators.then(Operators::default);
        if operators.is_some() {
            resources.push(resource(model::VERSIONED, &model::versioned(0)));
            processes.push(model::VERSIONED.to_owned());
        }
        if swarm.read_variable_bytes > 0 {
            add_reading(&mut resources, &mut processes, &mut chance);
        }
        for resource in &resources {
            tracing::trace!(target: "model", xml = %String::from_utf8_lossy(&resource.resource));
        }
        Clients {
            chance,
            partitions: swarm.partitions,
            numbers: 0,
            pending: BTreeMap::new(),
            resources,
            processes,
            is_deployed: false,
            is_deploying: false,
            instances: BTreeMap::new(),
            created: 0,
            jobs: Vec::new(),
            worked_on: BTreeMap::new(),
            is_patient: swarm.long_activations,
            is_finishing: false,
            published: 0,
            payloads: 0,
            payload_bytes: swarm.payload_bytes,
            read_variable_bytes: swarm.read_variable_bytes,
            answers: BTreeMap::new(),
            operators,
            has_conditions,
            has_global_listeners,
            global_listeners: 0,
        }
    }

    /// From now on everything is brought to its end.
    pub fn finish(&mut self) {
        self.is_finishing = true;
    }

    /// How many commands of each kind were accepted and refused.
    pub fn into_answers(self) -> BTreeMap<&'static str, (u64, u64)> {
        self.answers
    }

    fn ask(&mut self, kind: Kind, partition: PartitionId, key: Key, payload: Payload) -> Ask {
        self.numbers += 1;
        self.pending.insert(self.numbers, kind);
        Ask { partition, number: self.numbers, command: Command::new(key, payload) }
    }

    fn any_partition(&mut self) -> PartitionId {
        PartitionId(1 + u16::try_from(self.chance.below(self.partitions.into())).expect("few partitions"))
    }

    /// What the clients ask now.
    pub fn act(&mut self, accounting: &Accounting) -> Vec<Ask> {
        if !self.is_deployed {
            return self.deploy().into_iter().collect();
        }
        let mut asks = Vec::new();
        for (job, event) in std::mem::take(&mut self.jobs) {
            let ask = if is_of_task(event) { self.hear(job, event) } else { self.work(job) };
            if self.is_patient {
                match &ask {
                    Some(ask) => drop(self.worked_on.insert(ask.number, (job, event))),
                    None => self.jobs.push((job, event)),
                }
            }
            asks.extend(ask);
        }
        match self.chance.below(30) {
            0..=3 if self.created < if self.is_finishing { INSTANCES_MIN } else { INSTANCES_MAX } => {
                asks.push(self.create());
            }
            4..=9 => asks.push(self.poll()),
            10..=13 => asks.extend(self.publish(accounting)),
            14 if !self.is_finishing => asks.extend(self.cancel()),
            15 if !self.is_finishing => asks.extend(self.set_variables()),
            16..=18 => asks.extend(self.resolve(accounting)),
            19..=22 => asks.extend(self.work_on_user_tasks(accounting)),
            23 => asks.extend(self.broadcast(accounting)),
            24 if !self.is_finishing => asks.extend(self.choose(accounting)),
            25..=26 => asks.extend(self.change_level(accounting)),
            28 if self.has_global_listeners && !self.is_finishing => asks.push(self.change_global_listeners()),
            27 if self.has_conditions && !self.is_finishing => asks.push(self.evaluate_conditions(accounting)),
            _ => asks.extend(self.operate(accounting)),
        }
        asks
    }

    /// Whether enough was asked of the cluster.
    pub fn has_begun(&self) -> bool {
        self.is_deployed && self.created >= INSTANCES_MIN
    }

    /// Ends what is still there, a few at a time.
    pub fn cancel_stuck(&mut self, accounting: &Accounting) -> Vec<Ask> {
        let roots: Vec<Key> = accounting.roots().take(5).collect();
        roots.into_iter().map(|instance| self.cancel_instance(instance)).collect()
    }

    fn deploy(&mut self) -> Option<Ask> {
        if self.is_deploying {
            return None;
        }
        self.is_deploying = true;
        let value = DeploymentValue {
            resources: self.resources.clone(),
            tenant_id: TENANT.into(),
            ..DeploymentValue::default()
        };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        Some(self.ask(Kind::Deploy, PartitionId(1), Key::NONE, payload))
    }

    fn create(&mut self) -> Ask {
        self.created += 1;
        let key = format!("key-{}", self.created);
        let choice = self.chance.below(4);
        let payload = self.payload(&key);
        let level = self.chance.below(8);
        let process = self.chance.choose(&self.processes).clone();
        let list = if process.starts_with(reading::READING) {
            format!(r#","{}":{}"#, reading::LIST, reading::list(self.read_variable_bytes, &mut self.chance))
        } else {
            String::new()
        };
        let variables = format!(
            r#"{{"key":"{key}","choice":{choice},"items":[1,2,3],"level":{level},"payload":"{payload}"{list}}}"#
        );
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: process.as_str().into(),
            version: -1,
            variables: variables.as_str().into(),
            tenant_id: TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        let intent = if self.chance.one_in(8) {
            ProcessInstanceCreationIntent::CreateWithAwaitingResult
        } else {
            ProcessInstanceCreationIntent::Create
        };
        let partition = self.any_partition();
        let payload = Payload::ProcessInstanceCreation(intent, Box::new(value));
        self.ask(Kind::Create(key), partition, Key::NONE, payload)
    }

    /// A text that nobody else has, which says whose it is; sometimes a long one.
    fn payload(&mut self, key: &str) -> String {
        self.payloads += 1;
        let bytes = if self.chance.one_in(4) { self.payload_bytes } else { 0 };
        let mut text = format!("{key}:{}:", self.payloads);
        while text.len() < bytes {
            text += &format!("{:x}", self.chance.below(u64::MAX));
        }
        text
    }

    fn poll(&mut self) -> Ask {
        let timeout = i64::try_from(self.chance.within(500..5_000)).expect("a short time");
        let value = JobBatchValue {
            job_type: model::JOB_TYPE.into(),
            worker: "poll".into(),
            timeout: if self.is_patient { LONG_TIMEOUT } else { timeout },
            max_jobs_to_activate: 5,
            tenant_ids: vec![TENANT.into()],
            ..JobBatchValue::default()
        };
        let partition = self.any_partition();
        self.ask(Kind::Poll, partition, Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
    }

    fn work(&mut self, job: Key) -> Option<Ask> {
        let partition = job.partition()?;
        let (kind, intent, value) = match self.chance.below(if self.is_finishing { 1 } else { 13 }) {
            10 => return None,
            12 => {
                let value = JobValue { timeout: 4_000, ..JobValue::default() };
                ("update time-out", JobIntent::UpdateTimeout, value)
            }
            11 => {
                let retries = i32::try_from(self.chance.below(3)).unwrap_or(0);
                let retry_backoff = if self.chance.one_in(2) { 1_000 } else { 0 };
                ("fail", JobIntent::Fail, JobValue { retries, retry_backoff, ..JobValue::default() })
            }
            9 => {
                let value = JobValue { error_code: model::ERROR.into(), ..JobValue::default() };
                ("throw", JobIntent::ThrowError, value)
            }
            _ => {
                let (done, back) = (self.chance.below(100), self.chance.below(100));
                let level =
                    if self.chance.one_in(4) { format!(r#","level":{}"#, self.chance.below(8)) } else { String::new() };
                let variables = format!(r#"{{"done":{done},"back":{back}{level}}}"#);
                let value = JobValue { variables: variables.as_str().into(), ..JobValue::default() };
                ("complete", JobIntent::Complete, value)
            }
        };
        Some(self.ask(Kind::Other(kind), partition, job, Payload::Job(intent, Arc::new(value))))
    }

    /// A message for one of the instances, or at the end for each of them.
    fn publish(&mut self, accounting: &Accounting) -> Vec<Ask> {
        let alive: Vec<Key> = accounting.roots().collect();
        let mut known: Vec<String> = alive.iter().filter_map(|key| self.instances.get(key).cloned()).collect();
        if self.is_finishing && known.len() > 2 {
            // Enough for all in the end, and never more than the cluster can handle.
            known = vec![self.chance.choose(&known).clone(), self.chance.choose(&known).clone()];
        }
        if !self.is_finishing {
            // Also for instances that are gone, or whose creation was not answered.
            known = vec![format!("key-{}", 1 + self.chance.below(self.created + 1))];
        }
        let mut asks = Vec::new();
        for correlation_key in known {
            self.published += 1;
            let starts = !self.is_finishing && self.chance.one_in(4);
            let message_id = self.message_id();
            let variables = format!(r#"{{"told":"{}"}}"#, self.payload(&correlation_key));
            let value = MessageValue {
                name: if starts { model::START_MESSAGE } else { model::MESSAGE }.into(),
                correlation_key: correlation_key.as_str().into(),
                message_id: message_id.as_str().into(),
                variables: variables.as_str().into(),
                time_to_live: if self.chance.one_in(2) { 10_000 } else { 0 },
                tenant_id: TENANT.into(),
                ..MessageValue::default()
            };
            let partition = partition_for_correlation_key(&correlation_key, self.partitions);
            let payload = Payload::Message(MessageIntent::Publish, Box::new(value));
            asks.push(self.ask(Kind::Other("publish"), partition, Key::NONE, payload));
        }
        asks
    }

    /// Most messages have no id, some have one of their own, and some one that was used before.
    fn message_id(&mut self) -> String {
        match self.chance.below(6) {
            0 => format!("id-{}", self.published),
            1 => format!("again-{}", self.chance.below(3)),
            _ => String::new(),
        }
    }

    fn any_instance(&mut self) -> Option<Key> {
        let instances: Vec<Key> = self.instances.keys().copied().collect();
        (!instances.is_empty()).then(|| *self.chance.choose(&instances))
    }

    fn cancel(&mut self) -> Option<Ask> {
        self.any_instance().map(|instance| self.cancel_instance(instance))
    }

    fn cancel_instance(&mut self, instance: Key) -> Ask {
        let partition = instance.partition().unwrap_or(PartitionId(1));
        let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
        self.ask(Kind::Other("cancel"), partition, instance, payload)
    }

    fn set_variables(&mut self) -> Option<Ask> {
        let instance = self.any_instance()?;
        let key = self.instances[&instance].clone();
        let variables = format!(r#"{{"set":true,"payload":"{}"}}"#, self.payload(&key));
        let value = VariableDocumentValue {
            scope_key: instance,
            update_semantics: VariableDocumentUpdateSemantics::Local,
            variables: variables.as_str().into(),
            tenant_id: TENANT.into(),
        };
        let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
        Some(self.ask(Kind::Other("set variables"), instance.partition()?, Key::NONE, payload))
    }

    /// What an operator does who sees the incidents.
    fn resolve(&mut self, accounting: &Accounting) -> Vec<Ask> {
        let incidents: Vec<(Key, Key)> = accounting.incidents().collect();
        if incidents.is_empty() {
            return Vec::new();
        }
        let (incident, job) = *self.chance.choose(&incidents);
        let Some(partition) = incident.partition() else { return Vec::new() };
        let mut asks = Vec::new();
        if job.partition().is_some() {
            let value = JobValue { retries: 3, ..JobValue::default() };
            let payload = Payload::Job(JobIntent::UpdateRetries, Arc::new(value));
            asks.push(self.ask(Kind::Other("update retries"), partition, job, payload));
        }
        let payload = Payload::Incident(IncidentIntent::Resolve, Box::default());
        asks.push(self.ask(Kind::Other("resolve"), partition, incident, payload));
        asks
    }

    /// A worker has a job, and does not know what became of what it did with it.
    pub fn adopt(&mut self, job: Key, event: JobListenerEventType) {
        self.jobs.push((job, event));
    }

    fn take_jobs(&mut self, batch: &JobBatchValue) {
        let events = batch.jobs.iter().map(|job| job.job_listener_event_type);
        self.jobs.extend(batch.job_keys.iter().copied().zip(events));
    }

    /// The outcome of a command; none if it is unknown.
    pub fn answered(&mut self, number: u64, reply: Option<&Reply>) {
        let worked_on = self.worked_on.remove(&number);
        // Whoever has much time tries something else with a job that is still there.
        let is_left = |reply: &Reply| {
            reply.rejection.as_ref().is_some_and(|rejection| rejection.rejection_type != RejectionType::NotFound)
        };
        if reply.is_none_or(is_left) {
            self.jobs.extend(worked_on);
        }
        let Some(kind) = self.pending.remove(&number) else {
            // The answer to a poll that comes late is an answer.
            if let Some(Reply { payload: Payload::JobBatch(_, batch), .. }) = reply {
                self.take_jobs(batch);
            }
            return;
        };
        if matches!(kind, Kind::Deploy) {
            self.is_deploying = false;
        }
        let Some(reply) = reply else { return };
        let name = match kind {
            Kind::Deploy => "deploy",
            Kind::Create(_) => "create",
            Kind::Poll => "poll",
            Kind::Other(name) => name,
        };
        let counts = self.answers.entry(name).or_default();
        if let Some(rejection) = &reply.rejection {
            counts.1 += 1;
            assert!(name != "deploy" && name != "poll", "the cluster refuses to {name}: {}", rejection.reason);
            return;
        }
        counts.0 += 1;
        match (kind, &reply.payload) {
            (Kind::Deploy, _) => self.is_deployed = true,
            (Kind::Create(key), Payload::ProcessInstanceCreation(_, created)) => {
                self.instances.insert(created.process_instance_key, key);
            }
            (Kind::Poll, Payload::JobBatch(_, batch)) => {
                self.take_jobs(batch);
            }
            _ => {}
        }
    }
}

fn resource(id: &str, xml: &str) -> DeploymentResource {
    DeploymentResource { resource_name: format!("{id}.bpmn").as_str().into(), resource: Arc::from(xml.as_bytes()) }
}

/// Processes that are written for one thing each; each is there in every second run.
fn add_others(resources: &mut Vec<DeploymentResource>, processes: &mut Vec<String>, chance: &mut Chance) {
    let others = [
        (model::CROWD, model::crowd()),
        (model::UNDONE, model::undone()),
        (model::LISTENING, model::listening()),
        (model::REPEATING, model::repeating()),
        (model::TROUBLED, model::troubled()),
        (model::ADVISED, model::advised()),
        (model::WATCHING, model::watching()),
        (model::HEARD, model::heard()),
    ];
    for (id, xml) in others {
        if chance.one_in(2) {
            resources.push(resource(id, &xml));
            processes.push(id.to_owned());
        }
    }
}

/// Adds processes that read long variables, as many as there are others, so that half the instances are of them.
fn add_reading(resources: &mut Vec<DeploymentResource>, processes: &mut Vec<String>, chance: &mut Chance) {
    resources.push(resource(reading::CALLED, &reading::called()));
    resources.push(DeploymentResource {
        resource_name: "sums.dmn".into(),
        resource: Arc::from(reading::decision().as_bytes()),
    });
    for number in 0..processes.len() {
        let id = format!("{}-{number}", reading::READING);
        resources.push(resource(&id, &reading::random(&id, chance)));
        processes.push(id);
    }
}
