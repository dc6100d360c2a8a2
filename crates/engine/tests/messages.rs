//! Messages on one partition: who gets them, in which order, and what else happens.

use crate::cluster::{self, Cluster, Message};
use crate::shared::{check_nothing_stays, waiting};
use crate::support;
use engine::Limits;
use model_builder::{Event, ProcessBuilder};
use protocol::*;

const KEY_K: &str = "{\"key\":\"k\"}";

fn started(id: &str) -> String {
    ProcessBuilder::new(id).start_event("s", Event::Message("m", "")).service_task("t", "work").end("e").to_xml()
}

fn on_boundary(is_interrupting: bool) -> String {
    let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
    let builder = builder.boundary("b", "t", Event::Message("m", "=key"));
    let builder = if is_interrupting { builder } else { builder.non_interrupting() };
    builder.end("eb").to_xml()
}

/// The events of a partition from a position in its history on, one line each.
fn trace(cluster: &Cluster, partition: u16, from: usize) -> Vec<String> {
    let records = &cluster.nodes[usize::from(partition) - 1].records[from..];
    let line = |record: &Record| {
        let what = match &record.payload {
            Payload::ProcessInstance(_, value) => value.element_id.to_string(),
            Payload::Message(_, value) => value.name.to_string(),
            Payload::MessageSubscription(_, value) => value.message_name.to_string(),
            Payload::ProcessMessageSubscription(_, value) => value.element_id.to_string(),
            Payload::MessageStartEventSubscription(_, value) => value.start_event_id.to_string(),
            Payload::ProcessEvent(_, value) => value.target_element_id.to_string(),
            Payload::Variable(_, value) => value.name.to_string(),
            _ => String::new(),
        };
        let rejected = if record.record_type == RecordType::Event { "" } else { "!" };
        format!("{rejected}{} {} {what}", record.payload.value_type().name(), record.payload.intent_name())
    };
    records.iter().map(line).map(|line| line.trim_end().to_owned()).collect()
}

fn history(cluster: &Cluster, partition: u16) -> usize {
    cluster.nodes[usize::from(partition) - 1].records.len()
}

/// The values of a variable in the order in which they were set, with the instance.
fn values_of(cluster: &Cluster, name: &str) -> Vec<(Key, String)> {
    let values = cluster.events().filter_map(|record| match &record.payload {
        Payload::Variable(_, value) if *value.name == *name => {
            Some((value.process_instance_key, value.value.to_string()))
        }
        _ => None,
    });
    values.collect()
}

/// The instances to which messages were correlated, with the message.
fn correlated(cluster: &Cluster) -> Vec<(Key, Key)> {
    let correlated = cluster.events().filter_map(|record| match &record.payload {
        Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, value) => {
            Some((value.message_key, value.process_instance_key))
        }
        Payload::MessageStartEventSubscription(MessageStartEventSubscriptionIntent::Correlated, value) => {
            Some((value.message_key, value.process_instance_key))
        }
        _ => None,
    });
    correlated.collect()
}

#[test]
fn a_wait_and_its_message_have_the_events_of_the_reference() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    let before = history(&cluster, 1);
    cluster.create(1, "p", KEY_K);
    let created = trace(&cluster, 1, before);
    let position = created.iter().position(|line| line == "PROCESS_INSTANCE ELEMENT_ACTIVATING wait").expect("waits");
    assert_eq!(
        created[position..],
        [
            "PROCESS_INSTANCE ELEMENT_ACTIVATING wait",
            "PROCESS_MESSAGE_SUBSCRIPTION CREATING wait",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED wait",
            "MESSAGE_SUBSCRIPTION CREATED m",
            "PROCESS_MESSAGE_SUBSCRIPTION CREATED wait",
        ]
    );
    let statistics = cluster.node(1).engine.statistics();
    assert_eq!((statistics.messages, statistics.message_subscriptions), (0, 1));
    let before = history(&cluster, 1);
    let message = Message::new("m", "k").with("{\"a\":1}");
    let key = cluster.publish(&message).expect("published");
    let published = trace(&cluster, 1, before);
    assert_eq!(
        published[..12],
        [
            "MESSAGE PUBLISHED m",
            "MESSAGE_SUBSCRIPTION CORRELATING m",
            "MESSAGE EXPIRED m",
            "PROCESS_MESSAGE_SUBSCRIPTION CORRELATED wait",
            "PROCESS_EVENT TRIGGERING wait",
            "PROCESS_INSTANCE ELEMENT_COMPLETING wait",
            "VARIABLE CREATED a",
            "PROCESS_INSTANCE ELEMENT_COMPLETED wait",
            "PROCESS_INSTANCE SEQUENCE_FLOW_TAKEN flow_2",
            "MESSAGE_SUBSCRIPTION CORRELATED m",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING e",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED e",
        ],
        "{published:#?}"
    );
    let value = cluster.events().find_map(|record| match &record.payload {
        Payload::ProcessMessageSubscription(ProcessMessageSubscriptionIntent::Correlated, value) => Some(value.clone()),
        _ => None,
    });
    let value = value.expect("correlated");
    assert_eq!((value.message_key, &*value.correlation_key, &*value.variables), (key, "k", "{\"a\":1}"));
    assert!(value.interrupting);
    check_nothing_stays(&mut cluster);
}

#[test]
fn buffered_messages_go_first_in_first_out() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    for variables in ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"] {
        cluster.publish(&Message::new("m", "k").kept(60_000).with(variables)).expect("published");
    }
    cluster.publish(&Message::new("m", "other").kept(60_000)).expect("published");
    assert_eq!(cluster.node(1).engine.statistics().messages, 4);
    let instances = [1, 2].map(|_| cluster.create(1, "p", KEY_K));
    assert_eq!(values_of(&cluster, "n"), [(instances[0], "1".to_owned()), (instances[1], "2".to_owned())]);
    // A message that was correlated stays for other processes.
    assert_eq!(cluster.node(1).engine.statistics().messages, 4);
    cluster.deploy(&waiting("q"));
    cluster.create(1, "q", KEY_K);
    assert_eq!(values_of(&cluster, "n")[2].1, "1");
    check_nothing_stays(&mut cluster);
}

#[test]
fn the_next_message_is_found_behind_many_that_were_taken() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    cluster.deploy(&waiting("q"));
    let mut messages = Vec::new();
    for number in 0..30 {
        // Some expire early, and with them what is remembered of those before.
        let time_to_live = if number % 7 == 6 { 1_000 } else { 60_000 };
        messages.push(cluster.publish(&Message::new("m", "k").kept(time_to_live)).expect("published"));
    }
    for _ in 0..10 {
        cluster.create(1, "p", KEY_K);
    }
    cluster.advance(1_000);
    for _ in 0..20 {
        cluster.create(1, "p", KEY_K);
    }
    let taken: Vec<Key> = correlated(&cluster).into_iter().map(|(message, _)| message).collect();
    let expected: Vec<Key> = (0..30).filter(|number| *number < 10 || number % 7 != 6).map(|at| messages[at]).collect();
    assert_eq!(taken, expected);
    // Another process starts at the front.
    let instance = cluster.create(1, "q", KEY_K);
    assert_eq!(correlated(&cluster).last(), Some(&(messages[0], instance)));
    check_nothing_stays(&mut cluster);
}

#[test]
fn messages_expire() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    cluster.publish(&Message::new("m", "k").kept(1_000)).expect("published");
    cluster.publish(&Message::new("m", "k")).expect("published, but not kept");
    cluster.publish(&Message::new("m", "k").kept(-5)).expect("published, but not kept");
    assert_eq!((cluster.count("MESSAGE", "EXPIRED"), cluster.node(1).engine.statistics().messages), (2, 1));
    assert_eq!(cluster.node(1).engine.next_due(), Some(cluster.time + 1_000));
    // After its deadline no process gets it, even if it is still there.
    cluster.time += 1_000;
    cluster.create(1, "p", KEY_K);
    assert_eq!(correlated(&cluster), []);
    cluster.advance(0);
    assert_eq!((cluster.count("MESSAGE", "EXPIRED"), cluster.node(1).engine.statistics().messages), (3, 0));
    // What is not due any more is refused.
    let value = MessageBatchValue { message_keys: vec![Key::new(PartitionId(1), 7)] };
    let payload = Payload::MessageBatch(MessageBatchIntent::Expire, Box::new(value));
    let rejection = cluster.submit(1, Key::NONE, payload).and_then(|reply| reply.rejection).expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::NotFound);
    check_nothing_stays(&mut cluster);
}

#[test]
fn many_messages_expire_in_pieces_that_let_others_have_their_turn() {
    let mut cluster = Cluster::new(1);
    for number in 0..1_200 {
        cluster.publish(&Message::new("m", &format!("k{number}")).kept(1_000)).expect("published");
    }
    let time = cluster.time + 1_000;
    let due = cluster.node(1).engine.due_commands(time, 10);
    let Payload::MessageBatch(_, batch) = &due[0].payload else { panic!("unexpected {due:?}") };
    assert_eq!((due.len(), batch.message_keys.len()), (1, 500));
    assert!(batch.message_keys.is_sorted(), "the oldest first");
    cluster.advance(1_000);
    assert_eq!(cluster.count("MESSAGE", "EXPIRED"), 1_200);
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_id_is_unique_while_the_message_is_kept() {
    let mut cluster = Cluster::new(1);
    let message = Message::new("m", "k").id("id").kept(1_000);
    cluster.publish(&message).expect("published");
    let rejection = cluster.publish(&message.kept(0)).expect_err("it is there");
    assert_eq!(rejection.rejection_type, RejectionType::AlreadyExists);
    assert_eq!(
        &*rejection.reason,
        "Expected to publish a new message with id 'id', but a message with that id was already published"
    );
    cluster.publish(&Message::new("m", "other").id("id")).expect("another key");
    cluster.publish(&Message::new("n", "k").id("id")).expect("another name");
    cluster.publish(&message.id("")).expect("no id");
    cluster.publish(&message.id("").kept(0)).expect("no id again");
    cluster.advance(1_000);
    cluster.publish(&message).expect("the first one is gone");
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_message_goes_once_to_every_process_and_there_to_who_waits_longest() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("q"));
    cluster.deploy(&waiting("p"));
    let first = cluster.create(1, "p", KEY_K);
    let other = cluster.create(1, "q", KEY_K);
    // Another version is the same process.
    cluster.deploy(
        &ProcessBuilder::new("p").start("s").receive_task("wait", "m", "=key").manual_task("t").end("e").to_xml(),
    );
    let second = cluster.create(1, "p", KEY_K);
    cluster.create(1, "p", "{\"key\":\"elsewhere\"}");
    let key = cluster.publish(&Message::new("m", "k").kept(1_000)).expect("published");
    assert_eq!(correlated(&cluster), [(key, first), (key, other)]);
    let key = cluster.publish(&Message::new("m", "k")).expect("published");
    assert_eq!(correlated(&cluster)[2..], [(key, second)]);
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_message_starts_an_instance_and_locks_its_correlation_key() {
    let mut cluster = Cluster::new(1);
    cluster.publish(&Message::new("m", "k").kept(60_000)).expect("published before the deployment");
    let before = history(&cluster, 1);
    cluster.deploy(&started("p"));
    assert!(trace(&cluster, 1, before).contains(&"MESSAGE_START_EVENT_SUBSCRIPTION CREATED s".to_owned()));
    assert_eq!(correlated(&cluster), [], "a start event gets only what comes after its deployment");
    cluster.advance(60_000);
    let before = history(&cluster, 1);
    let first = cluster.publish(&Message::new("m", "k").kept(60_000).with("{\"n\":1}")).expect("published");
    assert_eq!(
        trace(&cluster, 1, before)[..8],
        [
            "MESSAGE PUBLISHED m",
            "MESSAGE_START_EVENT_SUBSCRIPTION CORRELATED s",
            "PROCESS_EVENT TRIGGERING s",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING p",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED p",
            "PROCESS_EVENT TRIGGERED s",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING s",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED s",
        ]
    );
    let second = cluster.publish(&Message::new("m", "k").kept(60_000).with("{\"n\":2}")).expect("published");
    let third = cluster.publish(&Message::new("m", "k").kept(60_000).with("{\"n\":3}")).expect("published");
    cluster.publish(&Message::new("m", "k")).expect("published, but lost");
    let other = cluster.publish(&Message::new("m", "other")).expect("published");
    let messages = |cluster: &Cluster| correlated(cluster).iter().map(|(key, _)| *key).collect::<Vec<_>>();
    assert_eq!(messages(&cluster), [first, other], "one instance at a time for each key");
    // The end of an instance lets the next one begin, be it completed or terminated.
    let (_, instance) = correlated(&cluster)[0];
    cluster.complete_jobs();
    assert_eq!(messages(&cluster), [first, other, second]);
    let values: Vec<String> = values_of(&cluster, "n").into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["1", "1", "2", "2"], "at the start event, and in the process");
    let (_, next) = correlated(&cluster)[2];
    assert_ne!(instance, next);
    assert_eq!(cluster.cancel(next), None);
    assert_eq!(messages(&cluster), [first, other, second, third]);
    // Without a correlation key there is no lock.
    for _ in 0..2 {
        cluster.publish(&Message::new("m", "")).expect("published");
    }
    assert_eq!(correlated(&cluster).len(), 6);
    check_nothing_stays(&mut cluster);
}

#[test]
fn the_newest_version_of_a_process_is_started() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&started("p"));
    cluster.publish(&Message::new("m", "k")).expect("published");
    let first = cluster.publish(&Message::new("n", "k").kept(60_000)).expect("published");
    let second = cluster.publish(&Message::new("m", "k").kept(60_000)).expect("published");
    // Two start events: the next instance begins with the message that was published first.
    let xml = ProcessBuilder::new("p")
        .start_event("s", Event::Message("m", ""))
        .service_task("t", "work")
        .end("e")
        .start_event("s2", Event::Message("n", ""))
        .connect_to("t")
        .to_xml();
    cluster.deploy(&xml);
    assert_eq!(cluster.count("MESSAGE_START_EVENT_SUBSCRIPTION", "DELETED"), 1);
    assert_eq!(cluster.count("MESSAGE_START_EVENT_SUBSCRIPTION", "CREATED"), 3);
    for expected in [first, second] {
        let (_, instance) = *correlated(&cluster).last().expect("started");
        cluster.cancel(instance);
        assert_eq!(correlated(&cluster).last().expect("started").0, expected);
    }
    let version = cluster.events().filter_map(|record| match &record.payload {
        Payload::ProcessInstance(_, value) => Some(value.version),
        _ => None,
    });
    assert_eq!(version.last(), Some(2));
    // A version without a message start event is started by no message.
    cluster.deploy(&waiting("p"));
    cluster.publish(&Message::new("m", "new").kept(1_000)).expect("published");
    assert_eq!(correlated(&cluster).len(), 3);
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_interrupting_boundary_event_ends_its_task() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&on_boundary(true));
    cluster.create(1, "p", KEY_K);
    cluster.publish(&Message::new("m", "k").with("{\"a\":1}")).expect("published");
    assert_eq!(cluster.count("JOB", "CANCELED"), 1);
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "DELETED"), 0, "it ended with the message");
    assert_eq!(values_of(&cluster, "a").len(), 2, "at the event, and in the process");
    check_nothing_stays(&mut cluster);
}

#[test]
fn a_non_interrupting_boundary_event_gets_one_message_after_the_other() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&on_boundary(false));
    for _ in 0..3 {
        cluster.publish(&Message::new("m", "k").kept(60_000)).expect("published");
    }
    let before = history(&cluster, 1);
    cluster.create(1, "p", KEY_K);
    assert_eq!(correlated(&cluster).len(), 3);
    cluster.publish(&Message::new("m", "k")).expect("published");
    assert_eq!(correlated(&cluster).len(), 4);
    let opened = trace(&cluster, 1, before);
    assert!(!opened.contains(&"PROCESS_MESSAGE_SUBSCRIPTION CREATED b".to_owned()), "the first message opened it");
    cluster.complete_jobs();
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "DELETED"), 1);
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "DELETED"), 1);
    check_nothing_stays(&mut cluster);
}

#[test]
fn the_first_message_decides_at_an_event_based_gateway() {
    let mut cluster = Cluster::new(1);
    let xml = ProcessBuilder::new("p")
        .start("s")
        .event_based_gateway("g")
        .catch_event("a", Event::Message("a", "=key"))
        .end("ea")
        .move_to("g")
        .catch_event("b", Event::Message("b", "=key"))
        .end("eb")
        .to_xml();
    cluster.deploy(&xml);
    let instance = cluster.create(1, "p", KEY_K);
    cluster.publish(&Message::new("b", "k").with("{\"n\":1}")).expect("published");
    let taken = cluster.publish(&Message::new("a", "k")).expect("published");
    assert!(correlated(&cluster).iter().all(|(message, of)| *message != taken && *of == instance));
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "DELETED"), 1);
    let completed = cluster.events().filter_map(|record| match &record.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value) => Some(value.element_id.to_string()),
        _ => None,
    });
    assert_eq!(completed.collect::<Vec<_>>(), ["s", "g", "b", "eb", "p"]);
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_event_sub_process_is_started_by_a_message() {
    for is_interrupting in [true, false] {
        let builder = ProcessBuilder::new("p").start("s").service_task("t", "work").end("e");
        let builder = builder.event_sub_process("esp").start_event("se", Event::Message("m", "=key"));
        let builder = if is_interrupting { builder } else { builder.non_interrupting() };
        let mut cluster = Cluster::new(1);
        cluster.deploy(&builder.service_task("te", "work").end("ee").end_sub_process().to_xml());
        cluster.create(1, "p", KEY_K);
        for _ in 0..2 {
            cluster.publish(&Message::new("m", "k").with("{\"a\":1}")).expect("published");
        }
        let expected = if is_interrupting { (1, 1) } else { (2, 0) };
        assert_eq!((correlated(&cluster).len(), cluster.count("JOB", "CANCELED")), expected);
        cluster.complete_jobs();
        assert_eq!(cluster.count("PROCESS_INSTANCE", "ELEMENT_TERMINATED"), usize::from(is_interrupting));
        check_nothing_stays(&mut cluster);
    }
}

#[test]
fn unusable_messages_are_refused() {
    let mut cluster = Cluster::new(2);
    let long = "x".repeat(513);
    let zeros = "\0".repeat(300);
    let elsewhere = cluster.publish_on(1, &Message::new("m", "a")).expect_err("its key belongs to partition 2");
    assert_eq!(elsewhere.rejection_type, RejectionType::InvalidState);
    let refused = [
        (Message::new(&long, "k"), "Expected the name of a message to have at most 512 bytes, but it has 513"),
        (
            Message::new("m", &long),
            "Expected the correlation key of a message to have at most 512 bytes, but it has 513",
        ),
        (
            Message::new("m", &zeros),
            "Expected the correlation key of a message to have at most 512 bytes, but it has 600",
        ),
        (Message::new("m", "k").id(&long), "Expected the id of a message to have at most 512 bytes, but it has 513"),
        (Message::new("m", "k").with("[1]"), "Expected the variables to be a JSON object"),
    ];
    for (message, reason) in refused {
        let rejection = cluster.publish(&message).expect_err(reason);
        assert_eq!(rejection.rejection_type, RejectionType::InvalidArgument);
        assert!(rejection.reason.starts_with(reason), "{}", rejection.reason);
    }
    assert_eq!(cluster.events().count(), 0, "nothing happened");
    cluster.publish(&Message::new("", "")).expect("an empty name means nobody, but is none of our business");
}

#[test]
fn an_unusable_correlation_key_is_an_incident() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    let instance = cluster.create(1, "p", "{}");
    cluster.create(1, "p", &format!("{{\"key\":\"{}\"}}", "x".repeat(513)));
    cluster.create(1, "p", "{\"key\":42}");
    let incidents: Vec<(Key, IncidentValue)> = cluster
        .events()
        .filter_map(|record| match &record.payload {
            Payload::Incident(IncidentIntent::Created, value) => Some((record.key, (**value).clone())),
            _ => None,
        })
        .collect();
    assert_eq!(incidents.len(), 2);
    assert!(incidents.iter().all(|(_, incident)| incident.error_type == ErrorType::ExtractValueError));
    assert_eq!(
        &*incidents[1].1.error_message,
        "Expected the correlation key of 'wait' to have at most 512 bytes, but it has 513"
    );
    cluster.publish(&Message::new("m", "42")).expect("published");
    assert_eq!(correlated(&cluster).len(), 1, "a number is the text of its digits");
    let keys = ["42.0", "1e3", "-7", "9007199254740993", "1.5"].map(|number| {
        cluster.create(1, "p", &format!("{{\"key\":{number}}}"));
        let keys = cluster.events().filter_map(|record| match &record.payload {
            Payload::MessageSubscription(MessageSubscriptionIntent::Created, value) => {
                Some(value.correlation_key.clone())
            }
            _ => None,
        });
        keys.last().expect("it waits").to_string()
    });
    assert_eq!(keys, ["42", "1000", "-7", "9007199254740993", "1.5"]);
    let value = VariableDocumentValue {
        scope_key: instance,
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: KEY_K.into(),
        tenant_id: support::TENANT.into(),
    };
    cluster.submit(1, Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)));
    cluster.submit(1, incidents[0].0, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    let message = cluster.publish(&Message::new("m", "k")).expect("published");
    assert_eq!(correlated(&cluster)[1..], [(message, instance)]);
    check_nothing_stays(&mut cluster);
}

#[test]
fn events_of_one_activity_whose_messages_turn_out_to_be_the_same_do_not_get_in_each_others_way() {
    let mut cluster = Cluster::new(1);
    let xml = ProcessBuilder::new("p")
        .start("s")
        .service_task("t", "work")
        .end("e")
        .boundary("b1", "t", Event::Message("=name", "=key"))
        .end("e1")
        .boundary("b2", "t", Event::Message("=\"m\"", "=key"))
        .end("e2")
        .to_xml();
    cluster.deploy(&xml);
    cluster.create(1, "p", "{\"key\":\"k\",\"name\":\"m\"}");
    cluster.create(1, "p", "{\"key\":\"k2\",\"name\":\"n\"}");
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CREATED"), 3);
    cluster.publish(&Message::new("m", "k")).expect("published");
    cluster.publish(&Message::new("n", "k2")).expect("published");
    let triggered = cluster.events().filter_map(|record| match &record.payload {
        Payload::ProcessEvent(ProcessEventIntent::Triggering, value) => Some(value.target_element_id.to_string()),
        _ => None,
    });
    assert_eq!(triggered.collect::<Vec<_>>(), ["b2", "b1"]);
    check_nothing_stays(&mut cluster);
}

/// Replays an event that no command has caused.
fn happen(cluster: &mut Cluster, key: Key, payload: Payload) {
    let time = cluster.time;
    let node = cluster.node(1);
    let record = Record::event(node.engine.last_position() + 1, time, key, payload);
    node.engine.replay(&record).expect("the state is sound");
}

#[test]
fn a_banned_instance_swallows_no_messages() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    let banned = cluster.create(1, "p", KEY_K);
    let healthy = cluster.create(1, "p", KEY_K);
    let value = ErrorValue {
        exception_message: "a broken invariant".into(),
        stacktrace: Text::default(),
        error_event_position: 0,
        process_instance_key: banned,
    };
    happen(&mut cluster, Key::NONE, Payload::Error(ErrorIntent::Created, Box::new(value)));
    let message = cluster.publish(&Message::new("m", "k").kept(1_000)).expect("published");
    assert_eq!(correlated(&cluster), [(message, healthy)]);
    assert_eq!(cluster.node(1).engine.statistics().message_subscriptions, 0);
}

#[test]
fn a_banned_instance_holds_no_lock() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&started("p"));
    cluster.publish(&Message::new("m", "k")).expect("published");
    let (_, banned) = correlated(&cluster)[0];
    let value = ErrorValue {
        exception_message: "a broken invariant".into(),
        stacktrace: Text::default(),
        error_event_position: 0,
        process_instance_key: banned,
    };
    happen(&mut cluster, Key::NONE, Payload::Error(ErrorIntent::Created, Box::new(value)));
    cluster.publish(&Message::new("m", "k").kept(60_000)).expect("published");
    assert_eq!(correlated(&cluster).len(), 2);
    let next = cluster.publish(&Message::new("m", "k").kept(60_000)).expect("published");
    let (_, second) = correlated(&cluster)[1];
    cluster.cancel(second);
    assert_eq!(correlated(&cluster)[2].0, next);
}

/// A waiting instance that cannot be processed, because its definition is nowhere.
fn broken_instance(cluster: &mut Cluster, counter: u64) -> Key {
    let key = Key::new(PartitionId(1), counter);
    let instance = ProcessInstanceValue {
        bpmn_process_id: "p".into(),
        process_definition_key: Key::new(PartitionId(1), 999_999),
        process_instance_key: key,
        element_id: "p".into(),
        bpmn_element_type: BpmnElementType::Process,
        tenant_id: support::TENANT.into(),
        ..ProcessInstanceValue::default()
    };
    for intent in [ProcessInstanceIntent::ElementActivating, ProcessInstanceIntent::ElementActivated] {
        happen(cluster, key, Payload::ProcessInstance(intent, instance.clone().into()));
    }
    let at_instance = ProcessMessageSubscriptionValue {
        process_instance_key: key,
        element_instance_key: key,
        bpmn_process_id: "p".into(),
        message_name: "m".into(),
        correlation_key: "k".into(),
        element_id: "wait".into(),
        interrupting: true,
        tenant_id: support::TENANT.into(),
        ..ProcessMessageSubscriptionValue::default()
    };
    let subscription = Key::new(PartitionId(1), counter + 1);
    let creating = ProcessMessageSubscriptionIntent::Creating;
    happen(cluster, subscription, Payload::ProcessMessageSubscription(creating, Box::new(at_instance)));
    let at_message = MessageSubscriptionValue {
        process_instance_key: key,
        element_instance_key: key,
        bpmn_process_id: "p".into(),
        message_name: "m".into(),
        correlation_key: "k".into(),
        interrupting: true,
        tenant_id: support::TENANT.into(),
        ..MessageSubscriptionValue::default()
    };
    let created = Payload::MessageSubscription(MessageSubscriptionIntent::Created, Box::new(at_message));
    happen(cluster, Key::new(PartitionId(1), counter + 2), created);
    key
}

#[test]
fn an_instance_that_cannot_take_its_message_is_put_aside_and_the_next_one_gets_it() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(&waiting("p"));
    let broken = [100, 200].map(|counter| broken_instance(&mut cluster, counter));
    let healthy = cluster.create(1, "p", KEY_K);
    let message = cluster.publish(&Message::new("m", "k").kept(1_000)).expect("the publisher is not to blame");
    let banned = cluster.events().filter_map(|record| match &record.payload {
        Payload::Error(ErrorIntent::Created, value) => Some(value.process_instance_key),
        _ => None,
    });
    assert_eq!(banned.collect::<Vec<_>>(), broken);
    assert_eq!(correlated(&cluster), [(message, healthy)]);
    let statistics = cluster.node(1).engine.statistics();
    assert_eq!((statistics.banned_instances, statistics.message_subscriptions), (2, 0));
    let positions: Vec<u64> = cluster.node(1).records.iter().map(|record| record.position).collect();
    assert!(positions.is_sorted_by(|left, right| left < right), "each record has a position of its own");
}

#[test]
fn commands_that_wait_in_the_work_queue_lose_nothing() {
    let limits = Limits { steps_per_command_max: 1, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    for id in ["p1", "p2", "p3"] {
        cluster.deploy(&waiting(id));
        cluster.create(1, id, KEY_K);
    }
    cluster.publish(&Message::new("m", "k")).expect("published");
    assert_eq!(correlated(&cluster).len(), 3);
    assert_eq!(cluster.count("PROCESS_INSTANCE", "ELEMENT_COMPLETED"), 12);
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_end_that_overtakes_the_opening_of_a_subscription_closes_it() {
    // The opening is the fifth step of an instance; a cancellation takes four.
    let limits = Limits { steps_per_command_max: 4, ..Limits::default() };
    let mut cluster = Cluster::with_limits(1, limits);
    cluster.deploy(&waiting("p"));
    cluster.apply_batch(1, vec![Command::new(Key::NONE, cluster::creation("p", KEY_K))]);
    let subscriptions = |cluster: &Cluster| {
        let count = |intent| cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", intent);
        (count("CREATING"), count("DELETED"), cluster.count("MESSAGE_SUBSCRIPTION", "CREATED"))
    };
    assert_eq!(subscriptions(&cluster), (1, 0, 0));
    let created = cluster.events().find_map(|record| match &record.payload {
        Payload::ProcessInstanceCreation(_, value) => Some(value.process_instance_key),
        _ => None,
    });
    let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    cluster.apply_batch(1, vec![Command::new(created.expect("created"), payload)]);
    assert_eq!(subscriptions(&cluster), (1, 1, 0), "it was closed before it was opened");
    cluster.work(1);
    assert_eq!(subscriptions(&cluster), (1, 1, 0), "and is not opened any more");
    check_nothing_stays(&mut cluster);
}

#[test]
fn an_incident_says_what_is_no_correlation_key() {
    let mut partition = support::Partition::new();
    assert_eq!(partition.deploy("p.bpmn", waiting("p").as_bytes()).replies[0].rejection, None);
    for (variables, kind) in [("{\"key\":true}", "BOOLEAN"), ("{\"key\":[1]}", "ARRAY"), ("{}", "NULL")] {
        let output = support::describe(&partition.create("p", variables, ProcessInstanceCreationIntent::Create));
        let expected = format!(
            "INCIDENT CREATED wait EXTRACT_VALUE_ERROR 'Failed to extract the correlation key for 'key': The value must be \
             either a string or a number, but was '{kind}'."
        );
        assert!(output.contains(&expected), "'{expected}' is missing in:\n{output}");
    }
}
