//! Clients that write down their answers, whatever happens to the node, and audit them through the public interface.
//!
//! Each client has its own processes and job types and does one thing after the other, so it knows what must be there.
//! What was acknowledged happened exactly once; what was refused did not happen; what got no answer happened once or not
//! at all.
#![allow(dead_code, reason = "not every test file uses everything")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chance::Chance;
use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::*;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::support::{Server, creation, deploy, message, one_task, tell_children, waiting};

pub type Client = GatewayClient<Channel>;

/// How long a request waits for its answer: longer than a node is frozen here.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node that is left in peace may take to end everything.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a job is locked. A job that was activated before a kill comes back after that.
const LOCK_MILLISECONDS: i64 = 1_000;
const MESSAGE_TIME_TO_LIVE: i64 = 3_600_000;
/// A client begins nothing new while this many of its instances run.
const RUNNING_MAX: usize = 60;
/// How many of the newest facts of each kind are looked at after a restart: few, so that most of the time is for new ones.
const RECENT: usize = 1;

/// The seed of a test: always the same unless the environment says otherwise.
pub fn seed() -> u64 {
    let seed = std::env::var("OSMIA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
    println!("seed {seed}; repeat with OSMIA_SEED={seed}");
    seed
}

/// What is known about a deed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It was acknowledged.
    Done,
    /// There was no answer.
    Unclear,
}

/// What came back.
enum Told<T> {
    Done(T),
    Unclear,
    /// Nothing happened, because the node had no room for it.
    Refused,
    Rejected(Status),
}

fn told<T>(result: Result<tonic::Response<T>, Status>) -> Told<T> {
    match result {
        Ok(response) => Told::Done(response.into_inner()),
        Err(status) => match status.code() {
            Code::ResourceExhausted => Told::Refused,
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal => {
                Told::Unclear
            }
            _ => Told::Rejected(status),
        },
    }
}

/// An instance of the process with one task.
#[derive(Debug)]
struct Order {
    key: Option<i64>,
    created: Known,
    /// The last acknowledged value of its variable `x`.
    value: i64,
    /// Values that were set since without an answer.
    unclear_values: Vec<i64>,
    /// The job that was completed, when it was.
    job: Option<i64>,
    end: Option<Known>,
}

/// An instance that waits for a message, and the message.
#[derive(Debug)]
struct Conversation {
    created: Option<Known>,
    key: Option<i64>,
    published: Option<Known>,
    message: Option<i64>,
    job: Option<i64>,
    end: Option<Known>,
}

/// What was done and told.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    pub created: usize,
    pub completed: usize,
    pub cancelled: usize,
    pub published: usize,
    pub variables: usize,
    pub refused: usize,
    pub unclear: usize,
}

/// One client's books.
pub struct Ledger {
    number: usize,
    random: Chance,
    orders: BTreeMap<i64, Order>,
    conversations: BTreeMap<i64, Conversation>,
    next: i64,
    cancelled: Vec<i64>,
    pub totals: Totals,
}

impl Ledger {
    fn new(number: usize, seed: u64) -> Self {
        Ledger {
            number,
            random: Chance::new(seed.wrapping_add(number as u64)),
            orders: BTreeMap::new(),
            conversations: BTreeMap::new(),
            next: 1,
            cancelled: Vec::new(),
            totals: Totals::default(),
        }
    }

    fn process(&self, kind: &str) -> String {
        format!("{kind}-{}", self.number)
    }

    fn next(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn running(&self) -> usize {
        let orders = self.orders.values().filter(|order| order.end.is_none()).count();
        orders + self.conversations.values().filter(|conversation| conversation.end.is_none()).count()
    }

    /// Does something. `false` when the node did not answer.
    async fn step(&mut self, client: &mut Client) -> bool {
        let before = self.totals.unclear;
        match self.random.below(20) {
            0..=4 if self.running() < RUNNING_MAX => self.create(client).await,
            5..=7 if self.running() < RUNNING_MAX => self.converse(client).await,
            8..=9 => self.set_variable(client).await,
            10 => self.cancel(client).await,
            11..=15 => self.work(client, "order", 0).await,
            _ => self.work(client, "wait", 0).await,
        }
        self.totals.unclear == before
    }

    /// Its key, if it was answered, and what is known; nothing when the node refused.
    async fn create_instance(
        &mut self,
        client: &mut Client,
        process: &str,
        variables: &str,
    ) -> Option<(Option<i64>, Known)> {
        let told = told(client.create_process_instance(creation(&self.process(process), variables)).await);
        let (key, created) = match told {
            Told::Done(response) => (Some(response.process_instance_key), Known::Done),
            Told::Unclear => (None, Known::Unclear),
            Told::Refused => {
                self.totals.refused += 1;
                return None;
            }
            Told::Rejected(status) => panic!("the creation with {variables} was rejected: {status}"),
        };
        self.count(created, |totals| &mut totals.created);
        Some((key, created))
    }

    async fn create(&mut self, client: &mut Client) {
        let number = self.next();
        let variables = format!("{{\"n\":{number},\"x\":0}}");
        let Some((key, created)) = self.create_instance(client, "order", &variables).await else { return };
        let order = Order { key, created, value: 0, unclear_values: Vec::new(), job: None, end: None };
        self.orders.insert(number, order);
    }

    fn count(&mut self, known: Known, total: impl FnOnce(&mut Totals) -> &mut usize) {
        match known {
            Known::Done => *total(&mut self.totals) += 1,
            Known::Unclear => self.totals.unclear += 1,
        }
    }

    /// A running order whose key is known.
    fn some_order(&mut self) -> Option<(i64, i64)> {
        let running = self.orders.iter().filter(|(_, order)| order.end.is_none());
        let running: Vec<_> = running.filter_map(|(number, order)| Some((*number, order.key?))).collect();
        let index = self.random.below(running.len().max(1) as u64);
        running.get(usize::try_from(index).expect("small")).copied()
    }

    async fn set_variable(&mut self, client: &mut Client) {
        let Some((number, key)) = self.some_order() else { return };
        self.set_variable_of(client, number, key).await;
    }

    async fn set_variable_of(&mut self, client: &mut Client, number: i64, key: i64) {
        let value = self.next();
        let request = SetVariablesRequest {
            element_instance_key: key,
            variables: format!("{{\"x\":{value}}}"),
            ..SetVariablesRequest::default()
        };
        let told = told(client.set_variables(request).await);
        let order = self.orders.get_mut(&number).expect("it is in the books");
        match told {
            Told::Done(_) => {
                order.value = value;
                order.unclear_values.clear();
                self.totals.variables += 1;
            }
            Told::Unclear => {
                order.unclear_values.push(value);
                self.totals.unclear += 1;
            }
            Told::Refused => self.totals.refused += 1,
            Told::Rejected(status) => panic!("the variable of {number} ({order:?}) cannot be set: {status}"),
        }
    }

    async fn cancel(&mut self, client: &mut Client) {
        let Some((number, key)) = self.some_order() else { return };
        let told = told(client.cancel_process_instance(cancellation(key)).await);
        let order = self.orders.get_mut(&number).expect("it is in the books");
        let known = match told {
            Told::Done(_) => Known::Done,
            Told::Unclear => Known::Unclear,
            Told::Refused => return self.totals.refused += 1,
            Told::Rejected(status) => panic!("{number} ({order:?}) cannot be cancelled: {status}"),
        };
        order.end = Some(known);
        if known == Known::Done {
            self.cancelled.push(key);
        }
        self.count(known, |totals| &mut totals.cancelled);
    }

    /// An instance that waits for a message and the message, in any order.
    async fn converse(&mut self, client: &mut Client) {
        let number = self.next();
        let conversation =
            Conversation { created: None, key: None, published: None, message: None, job: None, end: None };
        self.conversations.insert(number, conversation);
        if self.random.below(2) == 0 {
            self.publish(client, number).await;
            self.await_message(client, number).await;
        } else {
            self.await_message(client, number).await;
            self.publish(client, number).await;
        }
    }

    fn order_id(&self, number: i64) -> String {
        format!("{}-{number}", self.number)
    }

    async fn await_message(&mut self, client: &mut Client, number: i64) {
        let variables = format!("{{\"orderId\":\"{}\",\"n\":{number}}}", self.order_id(number));
        let Some((key, created)) = self.create_instance(client, "wait", &variables).await else { return };
        let conversation = self.conversations.get_mut(&number).expect("it is in the books");
        (conversation.key, conversation.created) = (key, Some(created));
    }

    async fn publish(&mut self, client: &mut Client, number: i64) {
        let order_id = self.order_id(number);
        let request = PublishMessageRequest {
            message_id: order_id.clone(),
            variables: format!("{{\"amount\":{number}}}"),
            ..message(&self.process("paid"), &order_id, MESSAGE_TIME_TO_LIVE)
        };
        let told = told(client.publish_message(request).await);
        let conversation = self.conversations.get_mut(&number).expect("it is in the books");
        let before = conversation.published;
        let known = match told {
            Told::Done(response) => {
                assert_ne!(before, Some(Known::Done), "message {order_id} was lost: it could be published again");
                conversation.message = Some(response.key);
                Known::Done
            }
            Told::Rejected(status) if status.code() == Code::AlreadyExists && before.is_some() => {
                conversation.published = Some(Known::Done);
                return;
            }
            Told::Unclear => {
                conversation.published = before.or(Some(Known::Unclear));
                return self.totals.unclear += 1;
            }
            Told::Refused => return self.totals.refused += 1,
            Told::Rejected(status) => panic!("message {order_id} was rejected: {status}"),
        };
        conversation.published = Some(known);
        self.count(known, |totals| &mut totals.published);
    }

    /// Activates some jobs, holds them against the books, and completes most of them.
    async fn work(&mut self, client: &mut Client, kind: &str, wait_milliseconds: i64) {
        let request = ActivateJobsRequest {
            r#type: self.process(kind),
            worker: "books".to_owned(),
            timeout: LOCK_MILLISECONDS,
            max_jobs_to_activate: 8,
            request_timeout: if wait_milliseconds == 0 { -1 } else { wait_milliseconds },
            ..ActivateJobsRequest::default()
        };
        let mut jobs = Vec::new();
        let mut responses = match told(client.activate_jobs(request).await) {
            Told::Done(responses) => responses,
            Told::Unclear => return self.totals.unclear += 1,
            Told::Refused => return self.totals.refused += 1,
            Told::Rejected(status) => panic!("jobs cannot be activated: {status}"),
        };
        loop {
            match responses.message().await {
                Ok(Some(response)) => jobs.extend(response.jobs),
                Ok(None) => break,
                Err(_) => {
                    self.totals.unclear += 1;
                    break;
                }
            }
        }
        let settling = wait_milliseconds > 0;
        for job in jobs {
            let number = self.recognise(kind, &job);
            if settling || self.random.below(8) > 0 {
                self.complete(client, kind, number, job.key).await;
            }
        }
    }

    /// Checks that a job may be there, and returns whose it is.
    fn recognise(&mut self, kind: &str, job: &ActivatedJob) -> i64 {
        let variables: serde_json::Value = serde_json::from_str(&job.variables).expect("JSON");
        let number = variables["n"].as_i64().expect("every instance has a number");
        let (key, created, end, sound) = match kind {
            "order" => {
                let order = self.orders.get_mut(&number).expect("somebody tried to create it");
                let value = variables["x"].as_i64().expect("a number");
                let sound = value == order.value || order.unclear_values.contains(&value);
                (&mut order.key, &mut order.created, order.end, sound)
            }
            _ => {
                let conversation = self.conversations.get_mut(&number).expect("somebody tried to create it");
                let sound = variables["amount"] == number && conversation.published.is_some();
                let created = conversation.created.as_mut().expect("somebody tried to create it");
                (&mut conversation.key, created, conversation.end, sound)
            }
        };
        assert_ne!(end, Some(Known::Done), "the ended instance {number} has a job again: {job:?}");
        assert!(sound, "the variables of {number} are not those that were acknowledged: {job:?}");
        let known = *key.get_or_insert(job.process_instance_key);
        assert_eq!(known, job.process_instance_key, "{kind} {number} was created twice");
        *created = Known::Done;
        number
    }

    async fn complete(&mut self, client: &mut Client, kind: &str, number: i64, job: i64) {
        let request = CompleteJobRequest { job_key: job, variables: String::new(), result: None };
        let told = told(client.complete_job(request).await);
        let (end, of) = match kind {
            "order" => {
                let order = self.orders.get_mut(&number).expect("it is in the books");
                (&mut order.end, &mut order.job)
            }
            _ => {
                let conversation = self.conversations.get_mut(&number).expect("it is in the books");
                (&mut conversation.end, &mut conversation.job)
            }
        };
        let known = match told {
            Told::Done(_) => Known::Done,
            Told::Unclear => Known::Unclear,
            Told::Refused => return self.totals.refused += 1,
            // The attempt that got no answer was carried out after the job was activated again.
            Told::Rejected(status) if status.code() == Code::NotFound && *end == Some(Known::Unclear) => Known::Done,
            Told::Rejected(status) => panic!("job {job} of {kind} {number} cannot be completed: {status}"),
        };
        (*end, *of) = (Some(known), Some(job));
        self.count(known, |totals| &mut totals.completed);
    }

    /// The newest facts must still be facts after a restart. `false` when the node did not answer.
    async fn audit_recent(&mut self, client: &mut Client) -> bool {
        let before = self.totals.unclear;
        let ended = self.orders.values().rev().filter(|order| order.end == Some(Known::Done));
        let jobs: Vec<_> = ended.filter_map(|order| order.job).take(RECENT).collect();
        let instances: Vec<_> = self.cancelled.iter().rev().take(RECENT).copied().collect();
        self.audit_ends(client, &jobs, &instances).await;
        let published = self.conversations.iter().rev();
        let published = published.filter(|(_, conversation)| conversation.published == Some(Known::Done));
        for number in published.map(|(number, _)| *number).take(RECENT).collect::<Vec<_>>() {
            self.publish(client, number).await;
        }
        let running = self.orders.iter().rev().filter(|(_, order)| order.end.is_none());
        let running: Vec<_> = running.filter_map(|(number, order)| Some((*number, order.key?))).take(RECENT).collect();
        for (number, key) in running {
            self.set_variable_of(client, number, key).await;
        }
        self.totals.unclear == before
    }

    /// What has ended cannot be ended again.
    async fn audit_ends(&mut self, client: &mut Client, jobs: &[i64], instances: &[i64]) {
        for job in jobs {
            let request = CompleteJobRequest { job_key: *job, variables: String::new(), result: None };
            self.expect_not_found(told(client.complete_job(request).await), "completed job", *job);
        }
        for key in instances {
            let told = told(client.cancel_process_instance(cancellation(*key)).await);
            self.expect_not_found(told, "ended instance", *key);
        }
    }

    fn expect_not_found<T>(&mut self, told: Told<T>, what: &str, key: i64) {
        match told {
            Told::Rejected(status) if status.code() == Code::NotFound => {}
            Told::Unclear | Told::Refused => self.totals.unclear += 1,
            Told::Rejected(status) => panic!("the {what} {key} is there again: {status}"),
            Told::Done(_) => panic!("the {what} {key} was there again"),
        }
    }

    /// On a node that is left in peace: ends everything, and holds everything against the books.
    pub async fn settle(&mut self, client: &mut Client) {
        let begin = Instant::now();
        for number in self.conversations.keys().copied().collect::<Vec<_>>() {
            self.publish(client, number).await;
            while self.conversations[&number].published != Some(Known::Done) {
                if begin.elapsed() >= SETTLE_TIMEOUT {
                    panic!("message {number} cannot be published; {}", condition(client).await);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                self.publish(client, number).await;
            }
        }
        while let Some(open) = self.open() {
            if begin.elapsed() >= SETTLE_TIMEOUT {
                panic!("{open} never gets its job, although it was acknowledged; {}", condition(client).await);
            }
            self.work(client, "order", 100).await;
            self.work(client, "wait", 100).await;
        }
        // What comes back twice, comes when its lock has ended.
        let quiet = Instant::now();
        while quiet.elapsed() < Duration::from_millis(LOCK_MILLISECONDS.unsigned_abs() + 500) {
            self.work(client, "order", 200).await;
            self.work(client, "wait", 200).await;
        }
        let before = self.totals.unclear;
        let orders = self.orders.values().filter_map(|order| order.job);
        let jobs: Vec<_> = orders.chain(self.conversations.values().filter_map(|one| one.job)).collect();
        let orders = self.orders.values().filter(|order| order.end.is_some()).filter_map(|order| order.key);
        let instances: Vec<_> = orders.chain(self.conversations.values().filter_map(|one| one.key)).collect();
        self.audit_ends(client, &jobs, &instances).await;
        assert_eq!(self.totals.unclear, before, "a node that is left in peace answers");
    }

    /// Something that was acknowledged and must still get its job. What was never answered gets it, or it does not.
    fn open(&self) -> Option<String> {
        let order = self.orders.iter().find(|(_, order)| order.created == Known::Done && order.end.is_none());
        let wait = self.conversations.iter().find(|(_, one)| one.created == Some(Known::Done) && one.end.is_none());
        let order = order.map(|(number, order)| format!("order {number} ({order:?})"));
        order.or_else(|| wait.map(|(number, wait)| format!("the instance {number} that waits ({wait:?})")))
    }

    /// The keys of all acknowledged instances, completed jobs and messages.
    pub fn acknowledged(&self) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
        let orders = self.orders.values().filter_map(|order| order.key);
        let instances = orders.chain(self.conversations.values().filter_map(|one| one.key)).collect();
        let done = |end: Option<Known>, job: Option<i64>| job.filter(|_| end == Some(Known::Done));
        let jobs = self.orders.values().filter_map(|order| done(order.end, order.job));
        let jobs = jobs.chain(self.conversations.values().filter_map(|one| done(one.end, one.job))).collect();
        let messages = self.conversations.values().filter_map(|one| one.message).collect();
        (instances, jobs, messages)
    }
}

/// What the node says of its partitions; what its threads do is printed.
async fn condition(client: &mut Client) -> String {
    tell_children();
    match client.topology(TopologyRequest {}).await {
        Ok(topology) => format!("the node says {:?}", topology.into_inner().brokers),
        Err(status) => format!("the node does not say how it is: {status}"),
    }
}

fn cancellation(process_instance_key: i64) -> CancelProcessInstanceRequest {
    CancelProcessInstanceRequest { process_instance_key, operation_reference: None }
}

pub async fn connect(address: &str) -> Result<Client, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(address.to_owned()).expect("an address").timeout(REQUEST_TIMEOUT);
    endpoint.connect_timeout(Duration::from_secs(1)).connect().await.map(GatewayClient::new)
}

/// What the clients are to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Instruction {
    /// Work with the node at this address.
    Work(String),
    /// End.
    Stop,
}

/// Several clients at work.
pub struct Load {
    orders: watch::Sender<Instruction>,
    clients: Vec<JoinHandle<Ledger>>,
}

impl Load {
    /// Deploys what the clients need and lets them begin.
    pub async fn begin(address: &str, clients: usize, seed: u64) -> Load {
        let mut client = connect(address).await.expect("the gateway listens");
        for number in 0..clients {
            let (order, wait, paid) = (format!("order-{number}"), format!("wait-{number}"), format!("paid-{number}"));
            deploy(&mut client, one_task(&order, &order)).await;
            deploy(&mut client, waiting(&wait, &paid, &wait)).await;
        }
        let (orders, receiver) = watch::channel(Instruction::Work(address.to_owned()));
        let run = |number| tokio::spawn(run(Ledger::new(number, seed), receiver.clone()));
        Load { orders, clients: (0..clients).map(run).collect() }
    }

    /// There is a new node to work with.
    pub fn go_on(&self, address: &str) {
        self.orders.send_replace(Instruction::Work(address.to_owned()));
    }

    /// Whether all clients are still at work: one that found a mistake is not.
    pub fn is_content(&self) -> bool {
        self.clients.iter().all(|client| !client.is_finished())
    }

    /// Ends the work and hands over the books.
    pub async fn end(self) -> Vec<Ledger> {
        self.orders.send_replace(Instruction::Stop);
        let mut ledgers = Vec::new();
        for client in self.clients {
            ledgers.push(client.await.expect("the books are in order"));
        }
        ledgers
    }
}

async fn run(mut ledger: Ledger, mut orders: watch::Receiver<Instruction>) -> Ledger {
    loop {
        let address = match orders.borrow_and_update().clone() {
            Instruction::Work(address) => address,
            Instruction::Stop => return ledger,
        };
        let is_old = |orders: &watch::Receiver<Instruction>| orders.has_changed().unwrap_or(true);
        if let Ok(mut client) = connect(&address).await {
            let mut answers = ledger.audit_recent(&mut client).await;
            while answers && !is_old(&orders) {
                answers = ledger.step(&mut client).await;
            }
        }
        if !is_old(&orders) {
            // The node is gone, frozen or stuck: tries again until there is another one or it continues.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Ends the clients, settles all books, and ends the node.
pub async fn end_and_settle(load: Load, server: Server) {
    let mut ledgers = load.end().await;
    let totals = settle(&mut ledgers, &server.grpc).await;
    println!("{totals:?}");
    assert!(totals.created > 5 && totals.completed > 5, "{totals:?}");
    assert_eq!(server.terminate(), Some(0));
}

/// Settles all books on a node that is left in peace and adds up what they hold.
pub async fn settle(ledgers: &mut Vec<Ledger>, address: &str) -> Totals {
    let mut tasks = Vec::new();
    for mut ledger in ledgers.drain(..) {
        let mut client = connect(address).await.expect("the gateway listens");
        tasks.push(tokio::spawn(async move {
            ledger.settle(&mut client).await;
            ledger
        }));
    }
    for task in tasks {
        ledgers.push(task.await.expect("the books are in order"));
    }
    let mut sum = Totals::default();
    for Totals { created, completed, cancelled, published, variables, refused, unclear } in
        ledgers.iter().map(|ledger| ledger.totals)
    {
        sum.created += created;
        sum.completed += completed;
        sum.cancelled += cancelled;
        sum.published += published;
        sum.variables += variables;
        sum.refused += refused;
        sum.unclear += unclear;
    }
    sum
}
