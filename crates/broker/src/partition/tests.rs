use std::collections::BTreeSet;
use std::sync::Arc;

use engine::EngineOptions;
use model_builder::ProcessBuilder;
use protocol::*;

use super::*;

fn partition(id: u16, partition_count: u16) -> Partition {
    let options = EngineOptions::new(PartitionId(id), partition_count);
    let options_of_partition = PartitionOptions { due_commands_limit: 4, ..PartitionOptions::default() };
    Partition::new(PartitionId(id), Engine::in_memory(options), options_of_partition)
}

fn at(milliseconds: i64) -> Moment {
    Moment { clock: milliseconds, is_pinned: false, steady_milliseconds: milliseconds }
}

/// Applies commands as the next batch.
fn apply(partition: &mut Partition, timestamp: Timestamp, commands: Vec<Command>) -> Effects {
    let mut effects = Effects::default();
    let index = partition.engine().applied() + 1;
    partition.apply(index, &CommandBatch { timestamp, commands }, &mut effects).expect("no fault in memory");
    effects
}

fn poll(partition: &mut Partition, now: i64) -> Effects {
    let mut effects = Effects::default();
    partition.poll(at(now), Room::Enough, &mut effects);
    effects
}

fn deployment() -> Command {
    deployment_of(&ProcessBuilder::new("order").start("start").service_task("pay", "pay").end("end"))
}

fn deployment_of(process: &ProcessBuilder) -> Command {
    let resource = process.to_xml().into_bytes().into();
    let value = DeploymentValue {
        resources: vec![DeploymentResource { resource_name: "order.bpmn".into(), resource }],
        tenant_id: DEFAULT_TENANT.into(),
        ..DeploymentValue::default()
    };
    Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))
}

fn creation() -> Command {
    creation_of("order")
}

fn creation_of(id: &str) -> Command {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: id.into(),
        version: -1,
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    Command::new(Key::NONE, Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value)))
}

fn activation() -> Command {
    let value = JobBatchValue {
        job_type: "pay".into(),
        worker: "worker".into(),
        timeout: 1_000,
        max_jobs_to_activate: 100,
        tenant_ids: vec![DEFAULT_TENANT.into()],
        ..JobBatchValue::default()
    };
    Command::new(Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
}

/// A partition that leads, with six jobs that time out at 1,100.
fn with_activated_jobs() -> Partition {
    let mut partition = partition(1, 1);
    partition.lead(at(0), &mut Effects::default());
    apply(&mut partition, 50, vec![deployment()]);
    apply(&mut partition, 60, vec![creation(); 6]);
    apply(&mut partition, 100, vec![activation()]);
    partition
}

#[test]
fn due_work_is_submitted_in_portions_and_never_twice() {
    let mut partition = with_activated_jobs();
    assert_eq!(partition.next_poll().clock, Some(1_100));
    assert_eq!(poll(&mut partition, 1_099).submit, []);
    let mut under_way = poll(&mut partition, 1_100).submit;
    let mut timed_out = under_way.clone();
    assert_eq!(under_way.len(), 4);
    assert_eq!(partition.next_poll().clock, None, "nothing to wait for but their application");
    // Users' commands in between change nothing, and neither does an application that leaves more than half.
    apply(&mut partition, 1_101, vec![creation(), under_way.remove(0)]);
    assert_eq!(poll(&mut partition, 1_101).submit, []);
    // The next ones follow before the others are applied.
    apply(&mut partition, 1_101, vec![under_way.remove(0)]);
    let next = poll(&mut partition, 1_101).submit;
    assert_eq!(next.len(), 2);
    timed_out.extend(next.iter().cloned());
    under_way.extend(next);
    apply(&mut partition, 1_101, under_way);
    assert_eq!(poll(&mut partition, 1_200).submit, []);
    let keys: BTreeSet<Key> = timed_out.iter().map(|command| command.key).collect();
    assert_eq!((timed_out.len(), keys.len()), (6, 6));
}

#[test]
fn due_work_that_got_lost_is_submitted_again() {
    let mut partition = with_activated_jobs();
    let commands = poll(&mut partition, 2_000).submit;
    let lost_at = partition.next_poll().steady_milliseconds.expect("it is waited for");
    assert_eq!(poll(&mut partition, lost_at - 1).submit, []);
    assert_eq!(poll(&mut partition, lost_at).submit, commands);
    // A new leader knows nothing of what the old one submitted.
    partition.step_down();
    assert_eq!(poll(&mut partition, lost_at + 1).submit, []);
    partition.lead(at(lost_at + 2), &mut Effects::default());
    assert_eq!(poll(&mut partition, lost_at + 3).submit, commands);
}

#[test]
fn a_clock_that_went_back_does_not_stop_what_is_due_in_the_engine_s_time() {
    let mut partition = with_activated_jobs();
    apply(&mut partition, 5_000, vec![creation()]);
    let effects = poll(&mut partition, 200);
    assert_eq!(effects.submit.len(), 4, "the engine has seen 5,000 already");
}

#[test]
fn every_replica_serves_its_own_node_and_only_the_leader_sends() {
    let (mut leader, mut follower, mut elsewhere) = (partition(1, 2), partition(1, 2), partition(1, 2));
    elsewhere.options.node = 5;
    leader.lead(at(0), &mut Effects::default());
    let request = Some(Request { node: 0, number: 7 });
    let commands = vec![deployment(), Command { request, ..creation() }];
    let mut of_leader = apply(&mut leader, 10, commands.clone());
    let mut of_follower = apply(&mut follower, 10, commands.clone());
    let mut of_another_node = apply(&mut elsewhere, 10, commands);
    assert_eq!(of_leader.records(), of_follower.records());
    assert_eq!((of_leader.replies().count(), of_follower.replies().count()), (1, 1));
    assert_eq!(of_another_node.replies().count(), 0);
    assert_eq!((of_leader.sends().count(), of_follower.sends().count()), (1, 0));
    assert_eq!((of_leader.available().count(), of_follower.available().count()), (1, 1));
}

#[test]
fn what_another_partition_did_not_acknowledge_is_sent_again_until_it_does() {
    let (mut first, mut second) = (partition(1, 2), partition(2, 2));
    first.lead(at(0), &mut Effects::default());
    second.lead(at(0), &mut Effects::default());
    let mut sent: Vec<OutgoingCommand> = apply(&mut first, 10, vec![deployment()]).sends().collect();
    let lost = sent.pop().expect("the deployment goes to the other partition");
    assert_eq!(lost.partition, PartitionId(2));
    assert_eq!(poll(&mut first, 1_000).sends().count(), 0, "it may be under way");
    let again: Vec<OutgoingCommand> = poll(&mut first, 2_000).sends().collect();
    // It says now that the partition keeps none before it.
    let source = lost.command.source.map(|source| OutboxSource { is_oldest: true, ..source });
    let expected = OutgoingCommand { command: Command { source, ..lost.command }, ..lost };
    assert_eq!(again, [expected]);
    // A new leader does not know what was sent.
    let mut effects = Effects::default();
    first.step_down();
    first.lead(at(2_100), &mut effects);
    assert_eq!(effects.sends().collect::<Vec<_>>(), again);
    let command = again.into_iter().next().expect("one").command;
    let acknowledgement: Vec<OutgoingCommand> = apply(&mut second, 20, vec![command.clone()]).sends().collect();
    // It comes twice, and is answered twice, but counts once.
    let repeated = apply(&mut second, 21, vec![command]);
    assert!(repeated.records().iter().all(|record| record.payload.value_type() != ValueType::Process));
    apply(&mut first, 30, acknowledgement.into_iter().map(|send| send.command).collect());
    for now in [3_200, 4_300, 5_400] {
        assert_eq!(poll(&mut first, now).sends().count(), 0);
    }
    assert_eq!(first.next_poll().steady_milliseconds, None, "nothing to wait for");
}

#[test]
fn a_partition_that_acknowledges_nothing_is_sent_the_same_less_and_less_often() {
    let mut first = partition(1, 2);
    first.lead(at(0), &mut Effects::default());
    apply(&mut first, 10, vec![deployment()]);
    // Ten minutes with a look each second.
    let sent = |partition: &mut Partition, now: i64| poll(partition, now * 1_000).sends().count();
    let times: Vec<i64> = (1..=600).filter(|now| sent(&mut first, *now) > 0).collect();
    assert_eq!(times[..6], [2, 4, 8, 16, 32, 62]);
    assert!(times.len() <= 25, "{times:?}");
}

#[test]
fn what_is_set_behind_a_time_that_was_far_ahead_comes_due_after_its_duration() {
    let mut partition = partition(1, 1);
    partition.lead(at(0), &mut Effects::default());
    let far = 36_000_000;
    apply(&mut partition, far, vec![deployment()]);
    apply(&mut partition, far, vec![creation(); 2]);
    // The clock was put right; the jobs of these time out after a second.
    assert_eq!(poll(&mut partition, 100).submit, []);
    apply(&mut partition, far, vec![activation()]);
    assert_eq!(partition.next_poll().clock, Some(far + 1_000));
    let due = partition.next_poll().steady_milliseconds.expect("the clock takes ten hours");
    assert!((1_100..1_200).contains(&due), "{due}");
    assert_eq!(partition.ahead_milliseconds(at(100)), far - 100);
    assert_eq!(poll(&mut partition, due - 1).submit, []);
    assert_eq!(poll(&mut partition, due).submit.len(), 2);
}

/// The life before had the same sequences, and the others may have taken what it sent.
#[test]
fn nothing_is_sent_to_others_before_another_life_of_the_data_has_begun() {
    let mut partition = partition(1, 2);
    partition.options.restored = Some(7);
    // A copy that has a deployment for the other partition in its outbox.
    apply(&mut partition, 50, vec![deployment()]);
    let mut effects = Effects::default();
    partition.lead(at(100), &mut effects);
    let first = effects.submit.first().map(|command| command.payload.value_type());
    assert_eq!(first, Some(ValueType::Incarnation));
    assert_eq!(effects.sends().count(), 0);
    for now in [2_000, 4_000, 40_000] {
        assert_eq!(poll(&mut partition, now).sends().count(), 0, "at {now}");
    }
    apply(&mut partition, 40_001, effects.submit);
    let sent: Vec<_> = poll(&mut partition, 42_000).sends().filter_map(|sent| sent.command.source).collect();
    assert!(!sent.is_empty() && sent.iter().all(|source| source.incarnation == 7), "{sent:?}");
}

/// What multiplies by itself must not fill what new work may not fill.
#[test]
fn interrupted_work_waits_for_room_unless_it_comes_to_an_end() {
    let mut partition = partition(1, 1);
    partition.lead(at(0), &mut Effects::default());
    let process = ProcessBuilder::new("many").start("start").service_task("each", "never");
    let process = process.multi_instance("=for i in 1..3000 return i", "item").end("end");
    apply(&mut partition, 50, vec![deployment_of(&process)]);
    let created = apply(&mut partition, 60, vec![creation_of("many")]);
    let poll_with = |partition: &mut Partition, now: i64, room: Room| {
        let mut effects = Effects::default();
        partition.poll(at(now), room, &mut effects);
        effects.submit
    };
    assert_eq!(poll_with(&mut partition, 100, Room::None), []);
    assert_eq!(poll_with(&mut partition, 110, Room::ForEnds), []);
    assert_eq!(partition.next_poll().steady_milliseconds, Some(110 + ROOM_LOOK_MILLISECONDS), "it looks again");
    let continuation = poll_with(&mut partition, 310, Room::Enough);
    assert_eq!(continuation.len(), 1, "there is room again");
    apply(&mut partition, 320, continuation);
    assert_eq!(poll_with(&mut partition, 330, Room::ForEnds), []);
    let is_process = |record: &&Record| matches!(&record.payload, Payload::ProcessInstance(_, value) if *value.element_id == *"many");
    let key = created.records().iter().find(is_process).expect("it has begun").key;
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
    apply(&mut partition, 340, vec![Command::new(key, cancel)]);
    let mut commands = 0;
    while let [continuation] = &poll_with(&mut partition, 350 + commands, Room::ForEnds)[..] {
        apply(&mut partition, 350 + commands, vec![continuation.clone()]);
        commands += 1;
    }
    assert!(commands > 0, "to end it takes several commands");
    assert_eq!(partition.engine().statistics().work_entries, 0, "it has ended");
}
