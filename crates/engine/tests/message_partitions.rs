//! Messages whose instances live on other partitions: whatever the way between partitions loses, doubles or reorders, each
//! message goes to a process once, and nothing waits for what is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Cluster, Message};
use crate::shared::{check_nothing_stays, waiting};
use engine::Limits;
use model_builder::{Event, ProcessBuilder};
use proptest::prelude::*;
use protocol::*;

/// On two partitions, the partition of this key is the second.
const KEY_A: &str = "{\"key\":\"a\"}";

/// Subscriptions of three kinds, and a start event for the same message.
fn processes() -> [String; 4] {
    let gateway = ProcessBuilder::new("gateway")
        .start("s")
        .event_based_gateway("g")
        .catch_event("a", Event::Message("m", "=key"))
        .end("ea")
        .move_to("g")
        .catch_event("b", Event::Message("n", "=key"))
        .end("eb");
    let boundary = ProcessBuilder::new("boundary")
        .start("s")
        .service_task("t", "work")
        .end("e")
        .boundary("b", "t", Event::Message("m", "=key"))
        .non_interrupting()
        .end("eb")
        .boundary("c", "t", Event::Message("n", "=key"))
        .end("ec");
    let started =
        ProcessBuilder::new("started").start_event("s", Event::Message("m", "")).service_task("t", "work").end("e");
    [waiting("waiting"), gateway.to_xml(), boundary.to_xml(), started.to_xml()]
}

/// The records of a partition about messages, one line each; refused commands begin with an exclamation mark.
fn trace(cluster: &Cluster, partition: u16) -> Vec<String> {
    let records = &cluster.nodes[usize::from(partition) - 1].records;
    let is_meant = |record: &&Record| record.payload.value_type().name().contains("MESSAGE");
    let line = |record: &Record| {
        let rejected = if record.record_type == RecordType::Event { "" } else { "!" };
        format!("{rejected}{} {}", record.payload.value_type().name(), record.payload.intent_name())
    };
    records.iter().filter(is_meant).map(line).collect()
}

/// The instances to which messages were correlated, with the message.
fn correlated(cluster: &Cluster) -> Vec<(Key, Key)> {
    let correlated = cluster.events().filter_map(|record| match &record.payload {
        Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, value) => {
            Some((value.message_key, value.process_instance_key))
        }
        _ => None,
    });
    correlated.collect()
}

#[test]
fn a_wait_on_another_partition_has_its_events_on_both() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&waiting("p"));
    let instance = cluster.create(1, "p", KEY_A);
    cluster.settle();
    let message = cluster.publish(&Message::new("m", "a")).expect("published");
    cluster.settle();
    assert_eq!(correlated(&cluster), [(message, instance)]);
    assert_eq!(
        trace(&cluster, 1),
        [
            "PROCESS_MESSAGE_SUBSCRIPTION CREATING",
            "PROCESS_MESSAGE_SUBSCRIPTION CREATED",
            "PROCESS_MESSAGE_SUBSCRIPTION CORRELATED",
        ]
    );
    assert_eq!(
        trace(&cluster, 2),
        [
            "MESSAGE_SUBSCRIPTION CREATED",
            "MESSAGE PUBLISHED",
            "MESSAGE_SUBSCRIPTION CORRELATING",
            "MESSAGE EXPIRED",
            "MESSAGE_SUBSCRIPTION CORRELATED",
        ]
    );
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_buffered_message_goes_to_an_instance_on_another_partition() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&waiting("p"));
    cluster.publish(&Message::new("m", "a").kept(1_000).with("{\"n\":1}")).expect("published");
    cluster.create(1, "p", KEY_A);
    cluster.settle();
    assert_eq!(
        trace(&cluster, 1),
        ["PROCESS_MESSAGE_SUBSCRIPTION CREATING", "PROCESS_MESSAGE_SUBSCRIPTION CORRELATED"]
    );
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_message_that_comes_too_late_goes_to_the_next_instance() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&waiting("p"));
    let ended = cluster.create(1, "p", KEY_A);
    cluster.settle();
    let next = cluster.create(1, "p", KEY_A);
    cluster.settle();
    let message = cluster.publish(&Message::new("m", "a").kept(1_000)).expect("published");
    assert_eq!(cluster.cancel(ended), None);
    cluster.settle();
    assert_eq!(correlated(&cluster), [(message, next)]);
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "REJECTED"), 1);
    // The closing of the subscription came before the rejection.
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "DELETED"), 1);
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "DELETED"), 1);
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_rejected_message_is_kept_for_who_comes_later() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&waiting("p"));
    let ended = cluster.create(1, "p", KEY_A);
    cluster.settle();
    let first = cluster.publish(&Message::new("m", "a").kept(1_000)).expect("published");
    let second = cluster.publish(&Message::new("m", "a").kept(1_000)).expect("published");
    cluster.cancel(ended);
    cluster.settle();
    assert_eq!(correlated(&cluster), []);
    let instances = [1, 1].map(|partition| {
        let instance = cluster.create(partition, "p", KEY_A);
        cluster.settle();
        instance
    });
    assert_eq!(correlated(&cluster), [(first, instances[0]), (second, instances[1])], "in the old order");
    check_nothing_stays(&mut cluster);
}

#[test]
fn rejected_messages_come_before_those_that_nobody_got() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&waiting("p"));
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(cluster.create(1, "p", KEY_A));
        cluster.settle();
    }
    let publish = |cluster: &mut Cluster| cluster.publish(&Message::new("m", "a").kept(1_000)).expect("published");
    let messages: Vec<Key> = (0..8).map(|_| publish(&mut cluster)).collect();
    for ended in [5, 1, 3] {
        cluster.cancel(waiting[ended]);
    }
    cluster.settle();
    assert_eq!((correlated(&cluster).len(), cluster.count("MESSAGE_SUBSCRIPTION", "REJECTED")), (5, 3));
    let next = publish(&mut cluster);
    for expected in [messages[1], messages[3], messages[5], next] {
        let instance = cluster.create(1, "p", KEY_A);
        cluster.settle();
        assert_eq!(correlated(&cluster).last(), Some(&(expected, instance)));
    }
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_interrupted_scope_rejects_what_is_on_its_way() {
    let mut cluster = Cluster::new(2);
    for xml in processes() {
        cluster.deploy(&xml);
    }
    cluster.create(1, "gateway", KEY_A);
    cluster.settle();
    cluster.publish(&Message::new("n", "a")).expect("published");
    cluster.publish(&Message::new("m", "a").kept(1_000)).expect("published");
    cluster.settle();
    assert_eq!(correlated(&cluster).len(), 1, "the first one decides");
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "REJECTED"), 1);
    check_nothing_stays(&mut cluster);
}

#[test]
fn one_acknowledgement_is_enough_for_a_batch() {
    let mut cluster = Cluster::new(2);
    cluster.deploy(&waiting("p"));
    for _ in 0..5 {
        cluster.create(1, "p", KEY_A);
    }
    let commands: Vec<Command> = std::mem::take(&mut cluster.way).into_iter().map(|(_, command)| command).collect();
    assert_eq!(commands.len(), 5);
    // The last one is doubled and comes first, and so is taken only where it has its place.
    let early = [commands[4].clone()].into_iter().chain(commands.clone()).collect();
    cluster.apply(2, early);
    let acknowledgements: Vec<_> =
        cluster.way.iter().filter(|(_, command)| matches!(command.payload, Payload::Outbox(..))).collect();
    let Payload::Outbox(OutboxIntent::Acknowledge, value) = &acknowledgements[0].1.payload else {
        panic!("unexpected {acknowledgements:?}")
    };
    let last = commands[4].source.expect("a source").sequence;
    assert_eq!((acknowledgements.len(), value.sequence), (1, last));
    // A second one, and one for what is acknowledged already, change nothing.
    let acknowledgement = acknowledgements[0].1.clone();
    cluster.settle();
    assert_eq!(cluster.node(1).engine.outbox_partitions(), []);
    let before = cluster.node(1).records.len();
    cluster.apply(1, vec![acknowledgement]);
    let records = &cluster.node(1).records[before..];
    assert!(records.iter().all(|record| record.record_type != RecordType::Event), "{records:?}");
    // What comes too early is not acknowledged.
    let source = commands[0].source.expect("a source");
    let early = OutboxSource { sequence: last + 2, ..source };
    let command = Command { source: Some(early), ..commands[0].clone() };
    cluster.apply(2, vec![command]);
    assert_eq!(cluster.way, []);
    check_nothing_stays(&mut cluster);
}

/// What happens next; numbers choose among what is there.
#[derive(Clone, Copy, Debug)]
enum Action {
    Create { partition: u16, process: usize, key: usize },
    Publish { name: bool, key: usize, is_kept: bool },
    Cancel(usize),
    CompleteJobs,
    Wait(i64),
    Deliver { place: usize, count: usize },
    Double(usize),
    Lose(usize),
    SendAgain,
}

const PROCESSES: [&str; 3] = ["waiting", "gateway", "boundary"];
const KEYS: [&str; 3] = ["a", "b", "c"];

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0..3_u16, 0..3_usize, 0..3_usize)
            .prop_map(|(partition, process, key)| Action::Create { partition, process, key }),
        6 => (any::<bool>(), 0..3_usize, any::<bool>())
            .prop_map(|(name, key, is_kept)| Action::Publish { name, key, is_kept }),
        2 => any::<usize>().prop_map(Action::Cancel),
        1 => Just(Action::CompleteJobs),
        1 => (0..2_000_i64).prop_map(Action::Wait),
        12 => (any::<usize>(), 1..6_usize).prop_map(|(place, count)| Action::Deliver { place, count }),
        2 => any::<usize>().prop_map(Action::Double),
        2 => any::<usize>().prop_map(Action::Lose),
        2 => Just(Action::SendAgain),
    ]
}

fn act(cluster: &mut Cluster, instances: &mut Vec<Key>, action: Action) {
    let place = |cluster: &Cluster, number: usize| (!cluster.way.is_empty()).then(|| number % cluster.way.len());
    match action {
        Action::Create { partition, process, key } => {
            let partition = partition % cluster.nodes.len() as u16 + 1;
            let variables = format!("{{\"key\":\"{}\"}}", KEYS[key]);
            instances.push(cluster.create(partition, PROCESSES[process], &variables));
        }
        Action::Publish { name, key, is_kept } => {
            let message = Message::new(if name { "m" } else { "n" }, KEYS[key]);
            cluster.publish(&message.kept(if is_kept { 10_000 } else { 0 })).expect("published");
        }
        Action::Cancel(number) if !instances.is_empty() => {
            let instance = instances[number % instances.len()];
            cluster.cancel(instance);
        }
        Action::Cancel(_) => {}
        Action::CompleteJobs => cluster.complete_jobs(),
        Action::Wait(milliseconds) => cluster.advance(milliseconds),
        Action::Deliver { place: number, count } => {
            // A batch of what is on the way to the same partition, from anywhere in the queue.
            let Some(place) = place(cluster, number) else { return };
            let (target, first) = cluster.way.remove(place);
            let mut batch = vec![first];
            while batch.len() < count
                && let Some(next) = cluster.way.iter().position(|(partition, _)| *partition == target)
            {
                batch.push(cluster.way.remove(next).1);
            }
            cluster.apply(target.0, batch);
        }
        Action::Double(number) => {
            let Some(place) = place(cluster, number) else { return };
            let doubled = cluster.way[place].clone();
            cluster.way.push(doubled);
        }
        Action::Lose(number) => {
            let Some(place) = place(cluster, number) else { return };
            cluster.way.remove(place);
        }
        Action::SendAgain => cluster.send_again(),
    }
}

/// What the records say about messages and those who wait for them.
#[derive(Default)]
struct Ledger {
    /// Kept messages: where, and until when.
    messages: BTreeMap<Key, (String, i64)>,
    /// Where messages went: message and process.
    taken: BTreeSet<(Key, String)>,
    /// Messages that are not kept.
    passing: BTreeSet<Key>,
    /// Subscriptions: where, of which process, and how many messages are on their way.
    waiting: BTreeMap<(Key, String), (String, String, Option<Key>)>,
    /// How often a message arrived at an instance of a process.
    arrivals: BTreeMap<(Key, String), usize>,
    /// Living instances that messages with a correlation key started.
    locks: BTreeMap<String, Key>,
}

impl Ledger {
    fn of(cluster: &Cluster) -> Ledger {
        let mut ledger = Ledger::default();
        for record in cluster.events() {
            ledger.note(record);
        }
        ledger
    }

    fn note(&mut self, record: &Record) {
        match &record.payload {
            Payload::Message(MessageIntent::Published, value) => {
                let place = format!("{} {}", value.name, value.correlation_key);
                self.messages.insert(record.key, (place, value.deadline));
                if value.time_to_live <= 0 {
                    self.passing.insert(record.key);
                }
            }
            Payload::Message(MessageIntent::Expired, _) => {
                self.messages.remove(&record.key);
            }
            Payload::MessageSubscription(intent, value) => self.note_subscription(*intent, value),
            Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, value) => {
                let arrival = (value.message_key, value.bpmn_process_id.to_string());
                *self.arrivals.entry(arrival).or_default() += 1;
            }
            Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Correlated, value) => {
                let arrival = (value.message_key, value.bpmn_process_id.to_string());
                self.taken.insert(arrival.clone());
                *self.arrivals.entry(arrival).or_default() += 1;
                let before = self.locks.insert(value.correlation_key.to_string(), value.process_instance_key);
                assert_eq!(before, None, "one instance at a time");
            }
            Payload::ProcessInstance(
                ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated,
                _,
            ) => self.locks.retain(|_, instance| *instance != record.key),
            _ => {}
        }
    }

    fn note_subscription(&mut self, intent: MessageSubscriptionIntent, value: &MessageSubscriptionValue) {
        let entry = (value.element_instance_key, value.message_name.to_string());
        let process = value.bpmn_process_id.to_string();
        let place = format!("{} {}", value.message_name, value.correlation_key);
        match intent {
            MessageSubscriptionIntent::Created => {
                self.waiting.insert(entry, (place, process, None));
            }
            MessageSubscriptionIntent::Correlating => {
                assert!(self.taken.insert((value.message_key, process.clone())), "it goes to a process once");
                let is_passing = self.passing.contains(&value.message_key) && !value.interrupting;
                let under_way = self.waiting.get_mut(&entry).map(|(_, _, under_way)| under_way).expect("it waits");
                assert!(under_way.is_none() || is_passing, "one message at a time, but for those that are not kept");
                under_way.get_or_insert(value.message_key);
            }
            MessageSubscriptionIntent::Correlated if value.interrupting => {
                self.waiting.remove(&entry);
            }
            MessageSubscriptionIntent::Correlated => {
                if let Some((_, _, under_way)) = self.waiting.get_mut(&entry) {
                    under_way.take_if(|message| *message == value.message_key);
                }
            }
            MessageSubscriptionIntent::Rejected => {
                self.taken.remove(&(value.message_key, process));
                self.waiting.remove(&entry);
            }
            MessageSubscriptionIntent::Deleted => {
                self.waiting.remove(&entry);
            }
            _ => {}
        }
    }

    /// What must hold when nothing is on its way.
    fn check(&self, now: i64) {
        for (arrival, count) in &self.arrivals {
            assert_eq!(*count, 1, "{arrival:?}: a message arrives at a process once");
        }
        for (subscription, (place, process, under_way)) in &self.waiting {
            assert_eq!(*under_way, None, "{subscription:?}: nothing is on its way");
            for (message, (at, deadline)) in &self.messages {
                let fits = at == place && *deadline > now && !self.taken.contains(&(*message, process.clone()));
                assert!(!fits, "{subscription:?} of {process} waits for {message}, which is there");
            }
        }
    }
}

fn run(partitions: u16, actions: &[Action], steps_per_command_max: usize) {
    let limits = Limits { steps_per_command_max, ..Limits::default() };
    let mut cluster = Cluster::with_limits(partitions, limits);
    for xml in processes() {
        cluster.deploy(&xml);
    }
    let mut instances = Vec::new();
    for action in actions {
        act(&mut cluster, &mut instances, *action);
    }
    // The way heals.
    for _ in 0..3 {
        cluster.send_again();
        cluster.settle();
    }
    Ledger::of(&cluster).check(cluster.time);
    for node in &cluster.nodes {
        assert_eq!(node.engine.outbox_partitions(), [], "nothing stays in the outbox");
    }
    check_nothing_stays(&mut cluster);
}

/// `PROPTEST_CASES` runs more than the usual ones.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_on_two_partitions(actions in prop::collection::vec(action(), 1..150)) {
        run(2, &actions, Limits::default().steps_per_command_max);
    }

    #[test]
    fn any_history_on_three_partitions(actions in prop::collection::vec(action(), 1..150)) {
        run(3, &actions, Limits::default().steps_per_command_max);
    }

    #[test]
    fn any_history_in_slices(partitions in 1..3_u16, actions in prop::collection::vec(action(), 1..150)) {
        run(partitions, &actions, 1);
    }
}

/// A message that was on its way while the instance migrated is told with the process that waited for it, and with the definition of
/// that process.
#[test]
fn a_message_on_its_way_during_a_migration_names_the_definition_of_the_process_that_it_names() {
    for is_late in [true, false] {
        let mut cluster = Cluster::new(2);
        cluster.deploy(&waiting("before"));
        cluster.deploy(&waiting("after"));
        let definitions: BTreeMap<String, Key> = cluster.nodes[0]
            .records
            .iter()
            .filter_map(|record| match &record.payload {
                Payload::Process(ProcessIntent::Created, value) => {
                    Some((value.metadata.bpmn_process_id.to_string(), value.metadata.process_definition_key))
                }
                _ => None,
            })
            .collect();
        let instance = cluster.create(1, "before", KEY_A);
        cluster.settle();
        let mapping =
            MigrationMappingInstruction { source_element_id: "wait".into(), target_element_id: "wait".into() };
        let migration = ProcessInstanceMigrationValue {
            process_instance_key: instance,
            target_process_definition_key: definitions["after"],
            mapping_instructions: vec![mapping],
            ..ProcessInstanceMigrationValue::default()
        };
        let migrate = Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(migration));
        if is_late {
            cluster.publish(&Message::new("m", "a")).expect("it is published");
        }
        let reply = cluster.submit(1, instance, migrate).expect("an answer");
        assert_eq!(reply.rejection, None, "it migrates");
        cluster.settle();
        if !is_late {
            cluster.publish(&Message::new("m", "a")).expect("it is published");
            cluster.settle();
        }
        let told: Vec<_> = cluster
            .events()
            .filter_map(|record| match &record.payload {
                Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, value) => {
                    Some((value.bpmn_process_id.to_string(), value.process_definition_key))
                }
                _ => None,
            })
            .collect();
        let process = if is_late { "before" } else { "after" };
        assert_eq!(told, [(process.to_owned(), definitions[process])], "late: {is_late}");
        cluster.check();
        check_nothing_stays(&mut cluster);
    }
}

/// Processes that take a message again and again while a task goes on.
fn never_interrupted() -> [String; 2] {
    let boundary = ProcessBuilder::new("boundary").start("s").service_task("t", "work").end("e");
    let boundary = boundary.boundary("b", "t", Event::Message("m", "=key")).non_interrupting().end("eb");
    let within = ProcessBuilder::new("within").start("s").service_task("t", "work").end("e");
    let within = within.event_sub_process("sub").start_event("b", Event::Message("m", "=key")).non_interrupting();
    [boundary.to_xml(), within.end("eb").end_sub_process().to_xml()]
}

#[test]
fn messages_that_are_not_kept_all_reach_who_waits_again_wherever_it_lives() {
    for partition in [1, 2] {
        let mut cluster = Cluster::new(2);
        never_interrupted().iter().for_each(|process| cluster.deploy(process));
        let instances = ["boundary", "within"].map(|id| cluster.create(partition, id, KEY_A));
        cluster.settle();
        // One that is kept takes its turn between them.
        let mut messages = Vec::new();
        for number in 0..13 {
            let message = Message::new("m", "a");
            let message = if number == 6 { message.kept(60_000) } else { message };
            messages.push(cluster.publish(&message).expect("published"));
        }
        cluster.settle();
        let mut taken = correlated(&cluster);
        taken.sort_unstable();
        let mut expected: Vec<(Key, Key)> =
            messages.iter().flat_map(|message| instances.map(|instance| (*message, instance))).collect();
        expected.sort_unstable();
        assert_eq!(taken, expected, "with instances on partition {partition}");
        let subscriptions = |intent| cluster.count("MESSAGE_SUBSCRIPTION", intent);
        assert_eq!([subscriptions("CORRELATING"), subscriptions("CORRELATED")], [26, 26]);
        cluster.advance(60_000);
        cluster.complete_jobs();
        check_nothing_stays(&mut cluster);
    }
}

#[test]
fn messages_that_are_not_kept_are_refused_while_too_many_are_on_their_way() {
    let limits = Limits { outbox_commands_max: 5, ..Limits::default() };
    let mut cluster = Cluster::with_limits(2, limits);
    cluster.deploy(&never_interrupted()[0]);
    cluster.create(1, "boundary", KEY_A);
    cluster.settle();
    let publish = |cluster: &mut Cluster| cluster.publish(&Message::new("m", "a"));
    let refusal = (0..6).find_map(|_| publish(&mut cluster).err()).expect("they are too many");
    assert_eq!(refusal.rejection_type, RejectionType::InvalidState);
    assert!(refusal.reason.contains("commands wait for that partition"), "{}", refusal.reason);
    cluster.settle();
    let before = correlated(&cluster).len();
    publish(&mut cluster).expect("there is room again");
    cluster.settle();
    assert_eq!(correlated(&cluster).len(), before + 1);
    cluster.complete_jobs();
    check_nothing_stays(&mut cluster);
}
