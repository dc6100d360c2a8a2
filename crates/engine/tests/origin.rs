//! Who sent a command, and what it is a part of, stays with everything that it leads to: later, and on other partitions.

use crate::cluster::{Cluster, creation};
use crate::support;
use engine::Limits;
use model_builder::ProcessBuilder;
use protocol::*;

fn origin() -> Origin {
    let identity = Identity::new("demo", Some([3; 32])).expect("a short id");
    let batch = Some(Key::new(PartitionId(1), 4_711));
    Origin { operation_reference: Some(12), actor: Actor::User(identity), batch_operation_reference: batch }
}

fn origin_of(record: &Record) -> Origin {
    Origin {
        operation_reference: record.operation_reference,
        actor: record.actor.clone(),
        batch_operation_reference: record.batch_operation_reference,
    }
}

/// A process that waits for a message on whichever partition its correlation key belongs to.
fn waiting() -> String {
    ProcessBuilder::new("waiting")
        .start("start")
        .parallel_gateway("fork")
        .service_task("work", "work")
        .end("done")
        .move_to("fork")
        .receive_task("receive", "paid", "= key")
        .end("received")
        .to_xml()
}

/// A correlation key of another partition than the first.
fn key_of_second_partition() -> String {
    let is_there = |key: &String| partition_for_correlation_key(key, 2) == PartitionId(2);
    (0..).map(|number: u32| number.to_string()).find(is_there).expect("half of all are")
}

#[test]
fn an_origin_goes_through_the_outbox_and_the_work_queue() {
    // A command takes one step, so that the others come from the queue.
    let limits = Limits { steps_per_command_max: 1, ..Limits::default() };
    let mut cluster = Cluster::with_limits(2, limits);
    cluster.deploy(&waiting());
    let before = [cluster.node(1).records.len(), cluster.node(2).records.len()];
    let variables = format!("{{\"key\":\"{}\"}}", key_of_second_partition());
    let command = Command::new(Key::NONE, creation("waiting", &variables)).following(&origin());
    cluster.apply(1, vec![command]);
    cluster.settle();
    let job = |record: &&Record| matches!(record.payload, Payload::Job(JobIntent::Created, _));
    let opened = |record: &&Record| {
        matches!(record.payload, Payload::MessageSubscription(MessageSubscriptionIntent::Created, _))
    };
    let (first, second) = (&cluster.nodes[0].records[before[0]..], &cluster.nodes[1].records[before[1]..]);
    let job = first.iter().find(job).expect("the process has come to its task");
    let opened = second.iter().find(opened).expect("the subscription is opened");
    for record in [job, opened] {
        assert_eq!(origin_of(record), origin(), "{:?}", record.payload);
    }
    // What the partition did of itself is its own.
    let queued = first.iter().filter(|record| matches!(record.payload, Payload::Work(WorkIntent::Dequeued, _)));
    assert!(queued.clone().count() > 2, "steps came from the queue");
    assert!(queued.into_iter().all(|record| record.actor == Actor::System));
    cluster.check();
}

#[test]
fn a_deployment_is_its_senders_on_all_partitions_and_to_its_end() {
    let mut cluster = Cluster::new(3);
    let resource = DeploymentResource { resource_name: "p.bpmn".into(), resource: waiting().as_bytes().into() };
    let value =
        DeploymentValue { resources: vec![resource], tenant_id: support::TENANT.into(), ..DeploymentValue::default() };
    let command = Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
    cluster.apply(1, vec![command.following(&origin())]);
    cluster.settle();
    for node in &cluster.nodes {
        let created = |record: &&Record| matches!(record.payload, Payload::Process(ProcessIntent::Created, _));
        assert_eq!(origin_of(node.records.iter().find(created).expect("it is everywhere")), origin());
    }
    let finished =
        |record: &&Record| matches!(record.payload, Payload::Deployment(DeploymentIntent::FullyDistributed, _));
    assert_eq!(origin_of(cluster.nodes[0].records.iter().find(finished).expect("it has ended")), origin());
    cluster.check();
}

#[test]
fn what_is_due_is_the_systems() {
    let mut cluster = Cluster::new(1);
    cluster.deploy(
        &ProcessBuilder::new("late")
            .start("start")
            .catch_event("later", model_builder::Event::Duration("PT1S"))
            .end("end")
            .to_xml(),
    );
    cluster.apply(1, vec![Command::new(Key::NONE, creation("late", "")).following(&origin())]);
    cluster.advance(2_000);
    let triggered = |record: &&Record| matches!(record.payload, Payload::Timer(TimerIntent::Triggered, _));
    let triggered = cluster.nodes[0].records.iter().find(triggered).expect("it was due");
    assert_eq!(origin_of(triggered), Origin { actor: Actor::System, ..Origin::default() });
}
