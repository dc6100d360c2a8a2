//! Three nodes over real sockets: founding, commands at any node, and what happens when one dies.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use broker::{Node, NodeOptions, SubmitError};
use protocol::*;
use support::cluster::{Cluster, create_at};
use support::*;

#[test]
fn any_node_serves_any_client_and_any_one_may_die() {
    let mut cluster = Cluster::of(3, 3);
    for node in 0..3 {
        eventually("all nodes in the topology", || cluster.client(node).cluster().nodes.len() == 3);
    }
    let leaders = |cluster: &Cluster| (1..=3).map(|partition| cluster.leader(partition)).collect::<Vec<_>>();
    let asked = cluster.follower(1);
    deploy(&cluster.client(asked), &one_task());
    let mut created = BTreeSet::new();
    for node in 0..3 {
        for partition in 1..=3 {
            assert!(created.insert(create_at(&cluster.client(node), partition)), "no key comes twice");
        }
    }
    let dead = leaders(&cluster)[0];
    cluster.nodes.remove(&dead).expect("it runs").crash();
    let survivors: Vec<u32> = cluster.nodes.keys().copied().collect();
    for node in &survivors {
        for partition in 1..=3 {
            assert!(created.insert(create_at(&cluster.client(*node), partition)), "no key comes twice");
        }
    }
    cluster.start(&[dead]);
    for partition in 1..=3 {
        assert!(created.insert(create_at(&cluster.client(dead), partition)), "no key comes twice");
    }
    // Every job is there, whoever asks.
    let client = cluster.client(dead);
    let mut jobs = BTreeSet::new();
    for partition in 1..=3 {
        for job in activate(&client, partition, 100, 60_000) {
            assert!(jobs.insert(job), "no job comes twice");
            assert_eq!(complete(&client, job).expect("taken").rejection, None);
        }
    }
    assert_eq!(jobs.len(), created.len());
}

#[test]
fn pushed_jobs_of_a_dead_gateway_and_of_a_dead_leader_find_another_worker() {
    let mut cluster = Cluster::of(3, 1);
    let leader = cluster.leader(1);
    let followers: Vec<u32> = cluster.nodes.keys().copied().filter(|node| *node != leader).collect();
    deploy(&cluster.client(leader), &one_task());
    let first = stream(&cluster.client(followers[0]));
    let created: BTreeSet<Key> = (0..20).map(|_| create_at(&cluster.client(followers[1]), 1)).collect();
    // Pushed through a node that does not lead, and never taken by its connection.
    let pushed = first.1.wait(created.len());
    let of_instances: BTreeSet<Key> = pushed.iter().map(|push| push.job.process_instance_key).collect();
    assert_eq!(of_instances, created);
    let (second, jobs) = stream(&cluster.client(followers[1]));
    std::mem::forget(first.0);
    cluster.nodes.remove(&followers[0]).expect("it runs").crash();
    // The stream of the survivor gets them all, long before their time-out.
    let again = jobs.wait(created.len());
    assert_eq!(again.iter().map(|push| push.job.process_instance_key).collect::<BTreeSet<_>>(), created);
    second.delivered(PartitionId(1), amount(&again));
    cluster.start(&[followers[0]]);
    // The leader dies: the stream goes on with the next one.
    cluster.nodes.remove(&leader).expect("it runs").crash();
    let created: BTreeSet<Key> = (0..20).map(|_| create_at(&cluster.client(followers[0]), 1)).collect();
    let pushed = jobs.wait(created.len());
    assert_eq!(pushed.iter().map(|push| push.job.process_instance_key).collect::<BTreeSet<_>>(), created);
}

#[test]
fn an_awaited_result_outlives_the_leader() {
    let mut cluster = Cluster::of(3, 1);
    let asked = cluster.follower(1);
    let client = cluster.client(asked);
    deploy(&client, &one_task());
    let (sender, result) = mpsc::channel();
    let command = creation(ProcessInstanceCreationIntent::CreateWithAwaitingResult, "{}");
    client.submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
    let mut jobs = Vec::new();
    eventually("the job", || {
        jobs = activate(&client, 1, 1, 60_000);
        !jobs.is_empty()
    });
    let dead = cluster.leader(1);
    cluster.nodes.remove(&dead).expect("it runs").crash();
    eventually("the completion", || match complete(&client, jobs[0]) {
        Ok(reply) => {
            assert_eq!(reply.rejection, None);
            true
        }
        Err(SubmitError::Unavailable { .. }) => false,
        Err(error) => panic!("{error}"),
    });
    let reply = result.recv_timeout(LIMIT).expect("answered").expect("it was committed");
    assert!(matches!(reply.payload, Payload::ProcessInstanceResult(..)), "{reply:?}");
}

#[test]
fn an_emptied_directory_does_not_vote_for_what_it_has_forgotten() {
    let mut cluster = Cluster::of(3, 1);
    deploy(&cluster.client(0), &one_task());
    let leader = cluster.leader(1);
    let emptied = cluster.follower(1);
    cluster.nodes.remove(&emptied).expect("it runs").crash();
    std::fs::remove_dir_all(cluster.path(emptied)).expect("it is ours");
    let mut joining = Node::join(&cluster.options(emptied)).expect("a free port");
    let mut waits_for = None;
    eventually("the reason", || {
        assert!(!joining.is_founded().expect("the disk works"));
        waits_for = joining.waits_for();
        waits_for.as_ref().is_some_and(|reason| reason.contains("osmia cluster replace"))
    });
    cluster.nodes.remove(&leader).expect("it runs").crash();
    let last = *cluster.nodes.keys().next().expect("one is left");
    let (sender, answer) = mpsc::channel();
    let command = creation(ProcessInstanceCreationIntent::Create, "{}");
    cluster.client(last).submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
    let refused = answer.recv_timeout(Duration::from_secs(3));
    assert!(!matches!(refused, Ok(Ok(_))), "two of three disks are gone: {refused:?}");
}

#[test]
fn a_lost_directory_is_replaced_and_votes_when_it_has_everything() {
    let mut cluster = Cluster::of(3, 1);
    deploy(&cluster.client(0), &one_task());
    let lost = cluster.follower(1);
    let created: BTreeSet<Key> = (0..10).map(|_| create_at(&cluster.client(lost), 1)).collect();
    cluster.nodes.remove(&lost).expect("it runs").crash();
    std::fs::remove_dir_all(cluster.path(lost)).expect("it is ours");
    let other = *cluster.nodes.keys().next().expect("two are left");
    eventually("the loss is noticed", || {
        let error = cluster.client(other).replace_member(lost).expect_err("nobody has asked for the place").to_string();
        error.contains("with an empty data directory has asked to join")
    });
    let mut joining = Node::join(&cluster.options(lost)).expect("a free port");
    eventually("the replacement", || {
        assert!(!joining.is_founded().expect("the disk works") || cluster.client(other).replace_member(lost).is_err());
        cluster.client(other).replace_member(lost).is_ok()
    });
    eventually("the configuration", || joining.is_founded().expect("the disk works"));
    let node = Node::start_member(cluster.options(lost), joining).expect("it starts");
    assert!(node.wait_until_ready(LIMIT), "it hears from the leader");
    cluster.nodes.insert(lost, node);
    // It votes once it is a voter: with it, two of three are a majority again.
    let leader = cluster.leader(1);
    let keys: BTreeSet<Key> = (0..10).map(|_| create_at(&cluster.client(lost), 1)).collect();
    eventually("the vote", || cluster.client(lost).is_voter(1));
    let dead = if leader == lost { other } else { leader };
    cluster.nodes.remove(&dead).expect("it runs").crash();
    let last = create_at(&cluster.client(lost), 1);
    let mut jobs = BTreeSet::new();
    eventually("all jobs", || {
        let (sender, answer) = mpsc::channel();
        let client = cluster.client(lost);
        client.submit(PartitionId(1), activation(100, 60_000), move |answer| drop(sender.send(answer)));
        if let Ok(Ok(reply)) = answer.recv_timeout(LIMIT)
            && let Payload::JobBatch(JobBatchIntent::Activated, value) = reply.payload
        {
            jobs.extend(value.jobs.iter().map(|job| job.process_instance_key));
        }
        jobs.len() == created.len() + keys.len() + 1
    });
    assert!(created.is_subset(&jobs) && keys.is_subset(&jobs) && jobs.contains(&last));
}

#[test]
fn a_node_that_was_away_hears_of_a_replacement() {
    let mut cluster = Cluster::of(5, 1);
    let leader = cluster.leader(1);
    let followers: Vec<u32> = (0..5).filter(|node| *node != leader).collect();
    let (away, lost) = (followers[0], followers[1]);
    let known = |cluster: &Cluster, node: u32| {
        let reports = cluster.client(node).member_reports();
        reports.into_iter().find(|member| member.node == lost).and_then(|member| member.directory)
    };
    let before = known(&cluster, leader);
    for node in [away, lost] {
        cluster.nodes.remove(&node).expect("it runs").crash();
    }
    std::fs::remove_dir_all(cluster.path(lost)).expect("it is ours");
    let mut joining = Node::join(&cluster.options(lost)).expect("a free port");
    eventually("the replacement", || {
        assert!(!joining.is_founded().expect("the disk works"));
        cluster.client(leader).replace_member(lost).is_ok()
    });
    let after = known(&cluster, leader);
    assert_ne!(before, after);
    cluster.start(&[away]);
    eventually("the news", || known(&cluster, away) == after);
}

#[test]
fn leaders_move_by_hand_and_no_request_fails() {
    let mut cluster = Cluster::of(3, 1);
    deploy(&cluster.client(0), &one_task());
    let mut moves = 0;
    for _ in 0..10 {
        let leader = cluster.leader(1);
        let (sender, answers) = mpsc::channel();
        let clients: Vec<_> = (0..3).map(|node| cluster.client(node)).collect();
        let submitting = std::thread::spawn(move || {
            for number in 0..300 {
                let sender = sender.clone();
                let command = creation(ProcessInstanceCreationIntent::Create, "{}");
                clients[number % 3].submit(PartitionId(1), command, move |answer| drop(sender.send(answer)));
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        std::thread::sleep(Duration::from_millis(30));
        cluster.nodes[&leader].hand_over_leaders();
        submitting.join().expect("no panic");
        let answers: Vec<_> = answers.iter().collect();
        assert_eq!(answers.len(), 300);
        for answer in answers {
            answer.expect("no request fails");
        }
        moves += u32::from(cluster.leader(1) != leader);
    }
    assert!(moves >= 5, "a slow machine may elect the same node again, but not always: {moves} of 10");
    // A node that stops hands over first.
    let leader = cluster.leader(1);
    let node = cluster.nodes.remove(&leader).expect("it runs");
    node.hand_over_leaders();
    node.stop().expect("a clean stop");
    let next = cluster.leader(1);
    create_at(&cluster.client(next), 1);
}

#[test]
fn a_directory_belongs_to_a_member_or_to_a_node_alone() {
    let cluster = Cluster::of(3, 1);
    let alone = |path: &Path| NodeOptions { partition_count: 1, ..options(path) };
    let (path, number) = (cluster.path(0), 0);
    cluster.nodes.into_values().for_each(Node::crash);
    let error = Node::start(NodeOptions { node_id: number, ..alone(&path) }).expect_err("it is a member's").to_string();
    assert!(error.contains("belongs to a node of a cluster"), "{error}");
}

#[test]
fn any_node_knows_how_far_the_leaders_are_and_one_alone_does_not() {
    let mut cluster = Cluster::of(3, 2);
    deploy(&cluster.client(0), &one_task());
    let how_far = |cluster: &Cluster, node: u32| {
        let (sender, told) = mpsc::channel();
        let _pending = cluster.client(node).leader_positions(move |positions| drop(sender.send(positions)));
        told.recv_timeout(Duration::from_millis(500)).ok()
    };
    for round in 0..3 {
        let written = cluster.follower(1);
        create_at(&cluster.client(written), 1);
        let applied = cluster.client(written).applied_position(PartitionId(1)).expect("it holds a replica");
        for node in cluster.nodes.keys() {
            let mut positions = None;
            eventually("the leaders to say it", || {
                positions = how_far(&cluster, *node);
                positions.is_some()
            });
            let positions = positions.expect("it was just there");
            assert_eq!(positions.iter().map(|(partition, _)| partition.0).collect::<Vec<_>>(), [1, 2]);
            assert!(positions[0].1 >= applied, "round {round}, node {node}: {positions:?} after {applied}");
        }
    }
    for node in [1, 2] {
        cluster.nodes.remove(&node).expect("it runs").crash();
    }
    assert_eq!(how_far(&cluster, 0), None, "it cannot know what the others have");
}
