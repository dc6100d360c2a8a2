//! Partitions, the way between them, and what must hold for every command.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::{BrokenInvariant, Engine, EngineOptions, Limits, Output};
use protocol::*;

use crate::measure::{Cost, processor_nanoseconds};
use crate::memory::measure;

/// What a promise of the engine was broken by.
#[derive(Clone, Debug)]
pub(crate) struct Broken(pub String);

pub(crate) type Outcome<T = ()> = Result<T, Broken>;

/// Memory that one command may take.
const PEAK_BYTES_MAX: u64 = 256 << 20;
/// Records of one command. A single step is not cut, so this is above the limit after which no further step is taken.
const RECORDS_MAX: usize = 60_000;
/// Bytes of all records of one command, for the same reason above the limit of one.
const RECORD_BYTES_MAX: u64 = 160 << 20;
/// How often memory may be taken by one command: a measure of its work that is the same on every machine.
const TIMES_MAX: u64 = 12_000_000;
/// A command that is larger for another partition does not fit its log.
const SENT_BYTES_MAX: usize = 13 << 20;
/// Continuations that are carried out for one command of the driver; what is left then waits for the next.
const CONTINUATIONS_AT_ONCE: usize = 300;
/// How often what is due is looked for while time stands still.
const ROUNDS_AT_ONCE: usize = 30;
const DELIVERIES_AT_ONCE: usize = 2_000;
/// A history with more is not kept to be checked as a whole.
const KEPT_RECORDS_MAX: usize = 20_000;
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// Of the reason of a refusal, only so much is kept.
const REFUSAL_CHARACTERS: usize = 1_000;

/// Why instances are put aside although nothing in the engine is wrong.
const RIGHT_REASONS: &[&str] =
    &["to wait for something or to end some time", "to end some time, but more than", "to have at most"];

/// What the records tell of: keys of what lives, in the order in which it began.
#[derive(Default, Debug)]
pub(crate) struct Known {
    pub jobs: Vec<Key>,
    pub incidents: Vec<Key>,
    pub elements: Vec<Key>,
    pub instances: Vec<Key>,
    pub definitions: Vec<Key>,
    pub user_tasks: Vec<Key>,
    pub ad_hoc_sub_processes: Vec<Key>,
    /// What can be chosen in ad-hoc sub-processes: what was.
    pub choices: BTreeMap<Key, Vec<Text>>,
    /// The element instances of jobs that choose.
    pub of_jobs: BTreeMap<Key, Key>,
    /// The ids of global listeners, by what the first partition says.
    pub global_listeners: BTreeSet<Text>,
    /// Ids of processes.
    pub processes: Vec<Text>,
    /// What has ended.
    pub ended: Vec<Key>,
    pub banned: usize,
    /// Whether something was forgotten.
    pub is_partial: bool,
}

/// The most that is known of a kind: what came first is forgotten.
const KNOWN_MAX: usize = 4_000;
/// What has ended is remembered for a while, to be asked for once more.
const ENDED_MAX: usize = 32;

impl Known {
    fn note(&mut self, record: &Record) {
        use ProcessInstanceIntent::{ElementActivating, ElementCompleted, ElementTerminated};
        match &record.payload {
            Payload::Job(JobIntent::Created, job) => {
                self.begun(|known| &mut known.jobs, record.key);
                if job.job_kind == JobKind::AdHocSubProcess {
                    self.of_jobs.insert(record.key, job.element_instance_key);
                }
            }
            Payload::UserTask(UserTaskIntent::Created, _) => self.begun(|known| &mut known.user_tasks, record.key),
            Payload::UserTask(UserTaskIntent::Completed | UserTaskIntent::Canceled, _) => {
                self.ended(|known| &mut known.user_tasks, record.key);
            }
            Payload::Variable(VariableIntent::Created, variable) if *variable.name == *AD_HOC_ELEMENTS => {
                self.choices.insert(variable.scope_key, ids_in(&variable.value));
            }
            Payload::Job(JobIntent::Completed | JobIntent::Canceled, _) => {
                self.ended(|known| &mut known.jobs, record.key)
            }
            Payload::Incident(IncidentIntent::Created, _) => self.begun(|known| &mut known.incidents, record.key),
            Payload::Incident(IncidentIntent::Resolved, _) => self.ended(|known| &mut known.incidents, record.key),
            Payload::ProcessInstance(ElementActivating, value) => {
                if value.bpmn_element_type == BpmnElementType::Process {
                    self.begun(|known| &mut known.instances, record.key);
                }
                if value.bpmn_element_type == BpmnElementType::AdHocSubProcess {
                    self.begun(|known| &mut known.ad_hoc_sub_processes, record.key);
                }
                self.begun(|known| &mut known.elements, record.key);
            }
            Payload::ProcessInstance(ElementCompleted | ElementTerminated, value) => {
                if value.bpmn_element_type == BpmnElementType::Process {
                    self.ended(|known| &mut known.instances, record.key);
                }
                if value.bpmn_element_type == BpmnElementType::AdHocSubProcess {
                    self.choices.remove(&record.key);
                    self.ended(|known| &mut known.ad_hoc_sub_processes, record.key);
                }
                self.ended(|known| &mut known.elements, record.key);
            }
            Payload::Process(ProcessIntent::Created, value) => {
                self.processes.push(value.metadata.bpmn_process_id.clone());
                self.begun(|known| &mut known.definitions, record.key);
            }
            Payload::DecisionRequirements(DecisionRequirementsIntent::Created, _) => {
                self.begun(|known| &mut known.definitions, record.key);
            }
            Payload::GlobalListener(GlobalListenerIntent::Deleted, value) => {
                self.global_listeners.remove(&value.id);
            }
            Payload::GlobalListener(_, value) => {
                self.global_listeners.insert(value.id.clone());
            }
            Payload::Error(..) => self.banned += 1,
            _ => {}
        }
    }

    fn begun(&mut self, kind: fn(&mut Known) -> &mut Vec<Key>, key: Key) {
        let keys = kind(self);
        keys.push(key);
        if keys.len() > KNOWN_MAX {
            keys.drain(..KNOWN_MAX / 2);
            self.is_partial = true;
        }
    }

    fn ended(&mut self, kind: fn(&mut Known) -> &mut Vec<Key>, key: Key) {
        let keys = kind(self);
        let Some(place) = keys.iter().rposition(|known| *known == key) else { return };
        keys.remove(place);
        if self.ended.len() == ENDED_MAX {
            self.ended.remove(0);
        }
        self.ended.push(key);
    }
}

/// The variable of an ad-hoc sub-process that says what can be chosen.
const AD_HOC_ELEMENTS: &str = "adHocSubProcessElements";

/// The ids of elements in the value of that variable.
fn ids_in(elements: &str) -> Vec<Text> {
    let entries = elements.split("\"elementId\":\"").skip(1);
    entries.filter_map(|entry| entry.split('"').next()).map(Text::from).collect()
}

struct Node {
    options: EngineOptions,
    engine: Engine,
    batches: Vec<CommandBatch>,
    records: Vec<Record>,
    index: u64,
    bytes: u64,
}

/// Partitions that are driven as a leader would.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    pub time: i64,
    pub known: Known,
    /// What every command took.
    pub costs: Vec<Cost>,
    /// Whether interrupted work waits until it is asked for.
    pub is_lazy: bool,
    /// The step of the driver that is under way.
    pub step: usize,
    way: VecDeque<(PartitionId, Command)>,
    requests: u64,
}

impl Cluster {
    pub fn new(partitions: u16, steps_per_command_max: usize) -> Cluster {
        // An endless instance is put aside sooner than usual, because it would fill the whole case.
        let limits = Limits { continuations_max: 150, steps_per_command_max, ..Limits::default() };
        let node = |partition| {
            let options = EngineOptions {
                limits: Some(limits),
                broken_invariant: BrokenInvariant::Stops,
                ..EngineOptions::new(PartitionId(partition), partitions)
            };
            let engine = Engine::in_memory(options);
            Node { options, engine, batches: Vec::new(), records: Vec::new(), index: 0, bytes: 0 }
        };
        Cluster {
            nodes: (1..=partitions).map(node).collect(),
            time: 1_600_000_000_000,
            known: Known::default(),
            costs: Vec::new(),
            is_lazy: false,
            step: 0,
            way: VecDeque::new(),
            requests: 0,
        }
    }

    pub fn partitions(&self) -> u16 {
        self.nodes.len() as u16
    }

    fn node(&mut self, partition: PartitionId) -> &mut Node {
        &mut self.nodes[usize::from(partition.0) - 1]
    }

    /// The partition of a key, as the gateway finds it; the first one for keys that no partition can have made.
    pub fn partition_of(&self, key: Key) -> PartitionId {
        key.partition().filter(|partition| (1..=self.partitions()).contains(&partition.0)).unwrap_or(PartitionId(1))
    }

    /// A client's command, with what follows from it.
    pub fn submit(&mut self, partition: PartitionId, key: Key, payload: Payload) -> Outcome {
        self.requests += 1;
        let request = Some(Request { node: 0, number: self.requests });
        self.apply(partition, Command { request, ..Command::new(key, payload) })?;
        if self.is_lazy { Ok(()) } else { self.work(partition) }
    }

    /// Applies one command, and checks what must hold for each.
    pub fn apply(&mut self, partition: PartitionId, command: Command) -> Outcome {
        let (timestamp, step) = (self.time, self.step);
        let node = self.node(partition);
        node.index += 1;
        let index = node.index;
        let batch = CommandBatch { timestamp, commands: vec![command] };
        let mut output = Output::default();
        let before = processor_nanoseconds();
        let (applied, memory) = measure(|| node.engine.apply(index, &batch, &mut output));
        let processor_nanoseconds = processor_nanoseconds() - before;
        let command = &batch.commands[0];
        let name = format!("{} {}", command.payload.value_type().name(), command.payload.intent_name());
        let cost = Cost {
            step,
            name,
            processor_nanoseconds,
            memory,
            spent: output.spent,
            records: output.records.len(),
            refusal: refusal(&output),
            is_refused_at_once: !output.records.iter().any(|record| record.record_type == RecordType::Event),
        };
        applied.map_err(|fault| Broken(format!("the state is not sound: {fault}")))?;
        check(&cost, &output, &node.options.limits.unwrap_or_default())?;
        node.bytes += output.spent.record_bytes;
        self.costs.push(cost);
        let events = output.records.iter().filter(|record| record.record_type == RecordType::Event);
        for record in events {
            self.known.note(record);
        }
        self.way.extend(output.sends.into_iter().map(|send| (send.partition, send.command)));
        let node = self.node(partition);
        if node.bytes <= KEPT_BYTES_MAX && node.records.len() <= KEPT_RECORDS_MAX {
            node.records.append(&mut output.records);
            node.batches.push(batch);
        }
        Ok(())
    }

    /// Goes on with interrupted work for a while.
    pub fn work(&mut self, partition: PartitionId) -> Outcome {
        for _ in 0..CONTINUATIONS_AT_ONCE {
            if !self.work_once(partition)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Goes on with the oldest interrupted work, and answers whether there was some.
    pub fn work_once(&mut self, partition: PartitionId) -> Outcome<bool> {
        let Some(command) = self.node(partition).engine.continuation() else { return Ok(false) };
        self.apply(partition, command.clone())?;
        if self.node(partition).engine.continuation().as_ref() == Some(&command) {
            return Err(Broken(format!("interrupted work is asked for again unchanged: {}", shown(&command))));
        }
        Ok(true)
    }

    /// Delivers what is on the way; of so many each, one is lost or comes twice.
    pub fn deliver(&mut self, lost: u64) -> Outcome {
        for _ in 0..DELIVERIES_AT_ONCE {
            let Some((partition, command)) = self.way.pop_front() else { return Ok(()) };
            if !(1..=self.partitions()).contains(&partition.0) {
                return Err(Broken(format!("a command is for partition {}, which is none", partition.0)));
            }
            self.requests += 1;
            match lost {
                1.. if self.requests.is_multiple_of(lost) => continue,
                1.. if self.requests.is_multiple_of(lost + 1) => self.apply(partition, command.clone())?,
                _ => {}
            }
            self.apply(partition, command)?;
            if !self.is_lazy {
                self.work(partition)?;
            }
        }
        Ok(())
    }

    /// Puts everything that is not acknowledged on the way once more.
    pub fn send_again(&mut self) {
        self.way.clear();
        for node in &self.nodes {
            for partition in node.engine.outbox_partitions() {
                let commands = node.engine.outbox(partition, 0, 1_000);
                self.way.extend(commands.into_iter().map(|command| (partition, command)));
            }
        }
    }

    /// Lets everything come to rest while time stands still, and answers whether it did.
    pub fn settle(&mut self) -> Outcome<bool> {
        for round in 0..ROUNDS_AT_ONCE {
            for partition in (1..=self.partitions()).map(PartitionId) {
                self.work(partition)?;
            }
            if round % 4 == 3 {
                self.send_again();
            }
            self.deliver(0)?;
            let is_at_rest = self
                .nodes
                .iter()
                .all(|node| node.engine.continuation().is_none() && node.engine.outbox_partitions().is_empty());
            if is_at_rest && self.way.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves the clock; every partition does what became due.
    pub fn advance(&mut self, milliseconds: i64) -> Outcome {
        self.time = self.time.saturating_add(milliseconds);
        for partition in (1..=self.partitions()).map(PartitionId) {
            let mut before: Vec<Command> = Vec::new();
            for _ in 0..ROUNDS_AT_ONCE {
                let time = self.time;
                let due = self.node(partition).engine.due_commands(time, 50);
                if due.is_empty() {
                    break;
                }
                if let Some(again) = due.iter().find(|command| before.contains(command)) {
                    return Err(Broken(format!("what is due is asked for again unchanged: {}", shown(again))));
                }
                for (place, command) in due.iter().enumerate() {
                    self.apply(partition, command.clone())?;
                    // What the first one did may have ended what the others are about.
                    if place == 0 {
                        self.check_was_there(command)?;
                    }
                    if !self.is_lazy {
                        self.work(partition)?;
                    }
                }
                before = due;
            }
        }
        Ok(())
    }

    /// What a partition says is due must be there. What follows from it may be refused, such as a deletion that comes to
    /// a subscription before its creation did.
    fn check_was_there(&self, command: &Command) -> Outcome {
        match self.costs.last().filter(|cost| cost.is_refused_at_once).and_then(|cost| cost.refusal.as_ref()) {
            Some(reason) if reason.contains("no such") => {
                Err(Broken(format!("what is due is not there: {reason} ({})", shown(command))))
            }
            _ => Ok(()),
        }
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Gives back what the streams and polls of all nodes were given, as a leader does that finds all nodes gone.
    pub fn lose_all(&mut self, partition: PartitionId) -> Outcome {
        let engine = &self.node(partition).engine;
        let mut commands: Vec<Command> = engine.lost_streams(|_| None).map(engine::remove_lost_stream).collect();
        commands.extend(engine.lost_polls(|_| None).map(engine::give_back_poll));
        commands.into_iter().try_for_each(|command| self.apply(partition, command))
    }

    /// Commands that were applied, as bytes that are read again: a replica does the same by them, and the records alone
    /// rebuild the state.
    pub fn check_history(&self) -> Outcome {
        for node in self.nodes.iter().filter(|node| node.batches.len() as u64 == node.index) {
            let mut replica = Engine::in_memory(node.options);
            let mut replayed = Engine::in_memory(node.options);
            let mut records = node.records.iter();
            for (index, batch) in (1..).zip(&node.batches) {
                let encoded = encode_to_vec(&batch.commands[0]);
                let bytes = encode_batch(batch.timestamp, std::iter::once(encoded.as_slice()));
                let read = decode_batch(&bytes).map_err(|error| Broken(format!("a batch cannot be read: {error}")))?;
                let mut output = Output::default();
                let applied = replica.apply(index, &read, &mut output);
                applied.map_err(|fault| Broken(format!("the state of a replica is not sound: {fault}")))?;
                for record in &output.records {
                    if records.next() != Some(record) {
                        return Err(Broken(format!("a replica has another record at {}", record.position)));
                    }
                }
            }
            for record in &node.records {
                let replay = replayed.replay(record);
                replay.map_err(|fault| Broken(format!("the records do not rebuild the state: {fault}")))?;
            }
            let expected = rows(&node.engine);
            if rows(&replica) != expected {
                return Err(Broken("a replica has another state".to_owned()));
            }
            if let Some(difference) = difference(&rows(&replayed), &expected) {
                return Err(Broken(format!("the records alone do not rebuild the state: {difference}")));
            }
        }
        Ok(())
    }

    /// A row that is left in one of these tables. Timers of start events belong to no instance.
    pub fn row_of(&self, tables: &[&str]) -> Option<String> {
        let mut all = self.nodes.iter().flat_map(|node| rows(&node.engine));
        all.find(|row| {
            let table = row.split(' ').next().unwrap_or("");
            tables.contains(&table) && !(table == "timers" && row.contains("process_instance_key: Key(-1)"))
        })
    }
}

fn refusal(output: &Output) -> Option<String> {
    let rejection = output.records.iter().find_map(|record| match &record.record_type {
        RecordType::Rejection(rejection) => Some(&rejection.reason),
        _ => None,
    });
    rejection.map(|reason| reason.chars().take(REFUSAL_CHARACTERS).collect())
}

fn rows(engine: &Engine) -> BTreeSet<String> {
    let mut dump = Vec::new();
    engine.dump(&mut dump).expect("memory can be read");
    String::from_utf8_lossy(&dump).lines().filter(|line| !line.starts_with("Counters")).map(str::to_owned).collect()
}

/// Where the first rows that only one of two states has begin to differ.
fn difference(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Option<String> {
    const BEFORE: usize = 200;
    const AFTER: usize = 100;
    let only = |here: &BTreeSet<String>, there: &BTreeSet<String>| here.difference(there).next().cloned();
    let (one, other) = (only(one, other), only(other, one));
    if one.is_none() && other.is_none() {
        return None;
    }
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let around = |row: &str| -> String { row.chars().skip(same.saturating_sub(BEFORE)).take(BEFORE + AFTER).collect() };
    let row: String = one.chars().take(100).collect();
    Some(format!("row {row} has at {same} \"{}\", but must have \"{}\"", around(&one), around(&other)))
}

/// What must hold for every command.
fn check(cost: &Cost, output: &Output, limits: &Limits) -> Outcome {
    let broken = |what: String| Err(Broken(format!("{}: {what}", cost.name)));
    let spent = &cost.spent;
    let bounds = [
        ("bytes of memory", cost.memory.peak_bytes, PEAK_BYTES_MAX),
        ("allocations", cost.memory.times, TIMES_MAX),
        ("records", cost.records as u64, RECORDS_MAX as u64),
        ("bytes of records", spent.record_bytes, RECORD_BYTES_MAX),
        ("steps of expressions", spent.evaluation_steps, limits.evaluation_steps_per_command_max),
        ("bytes read", spent.evaluation_bytes_read, limits.evaluation_bytes_read_per_command_max as u64),
        ("bytes built", spent.evaluation_bytes_built, limits.evaluation_bytes_built_per_command_max as u64),
    ];
    if let Some((what, used, max)) = bounds.iter().find(|(_, used, max)| used > max) {
        return broken(format!("more {what} than {max}: {used}"));
    }
    for record in &output.records {
        let reason = match (&record.record_type, &record.payload) {
            (RecordType::Rejection(rejection), _) => &rejection.reason,
            (_, Payload::Error(_, error))
                if !RIGHT_REASONS.iter().any(|right| error.exception_message.contains(right)) =>
            {
                return broken(format!("an instance is banned: {}", error.exception_message));
            }
            _ => continue,
        };
        if reason.contains("bytes long, and at most") {
            return broken(format!("a key is too long: {reason}"));
        }
    }
    if spent.record_bytes > limits.record_bytes_max / 4 {
        let longest = output.records.iter().map(|record| encode_to_vec(record).len()).max().unwrap_or(0);
        if longest as u64 > limits.record_bytes_max + (1 << 20) {
            return broken(format!("a record has {longest} bytes"));
        }
    }
    let longest = output.sends.iter().map(|send| encode_to_vec(&send.command).len()).max().unwrap_or(0);
    if longest > SENT_BYTES_MAX {
        return broken(format!("a command for another partition has {longest} bytes"));
    }
    Ok(())
}

fn shown(command: &Command) -> String {
    format!("{command:?}").chars().take(400).collect()
}
