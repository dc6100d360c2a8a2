//! Exporters and settings of three nodes over real sockets: records go out from leaders alone, once more at most.

mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::{ExporterState, Node, NodeOptions, Pause};
use exporters::{
    Context, Controller, Delivery, Exporter, ExporterConfiguration, ExporterError, Opening, PartitionExporter, Resume,
    Role,
};
use protocol::*;
use support::cluster::{Cluster, create_at};
use support::*;

/// What the exporters of all nodes did, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// At a node, of a partition, behind the record with this number.
    Opened(u32, PartitionId, u64),
    Took(u32, PartitionId, u64),
    Closed(u32, PartitionId),
}

type Target = Arc<Mutex<Vec<Told>>>;

struct ToTarget(u32, Target);

struct PartitionToTarget(u32, PartitionId, Target, Option<Controller>);

impl Exporter for ToTarget {
    fn configure(&mut self, _context: &mut Context) -> Result<(), ExporterError> {
        Ok(())
    }

    fn partition(&self, partition: PartitionId) -> Box<dyn PartitionExporter> {
        Box::new(PartitionToTarget(self.0, partition, self.1.clone(), None))
    }
}

impl PartitionToTarget {
    fn tell(&self, told: Told) {
        self.2.lock().expect("not poisoned").push(told);
    }
}

impl PartitionExporter for PartitionToTarget {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        assert_eq!(opening.role, Role::Leader, "nothing opens at a follower");
        self.tell(Told::Opened(self.0, self.1, opening.acknowledged.number));
        self.3 = Some(opening.controller);
        Ok(Resume::AsTheNodeSays)
    }

    fn export(&mut self, delivery: &Delivery<'_>, _: Duration) -> Result<(), ExporterError> {
        self.tell(Told::Took(self.0, self.1, delivery.record.number));
        self.3.as_ref().expect("opened before").acknowledge(delivery.place());
        Ok(())
    }

    fn flush_at(&self) -> Option<Duration> {
        None
    }

    fn flush(&mut self, _: Duration) -> Result<(), ExporterError> {
        Ok(())
    }

    fn close(&mut self, _: Duration) -> Result<(), ExporterError> {
        self.tell(Told::Closed(self.0, self.1));
        Ok(())
    }
}

fn exporter(name: &str, node: u32, target: &Target) -> ExporterConfiguration {
    let target = target.clone();
    let factory = Arc::new(move || Box::new(ToTarget(node, target.clone())) as Box<dyn Exporter>);
    ExporterConfiguration::of_factory(name, factory, serde_json::Map::new()).expect("a good name")
}

/// Three nodes with the same exporter.
fn exporting_cluster(partition_count: u16) -> (Cluster, Target) {
    let target = Target::default();
    let of_nodes = target.clone();
    let set_up = move |node, options: &mut NodeOptions| {
        options.exporters = vec![exporter("warehouse", node, &of_nodes)];
        options.segment_bytes = 64 << 10;
        options.checkpoint_interval = Duration::from_millis(100);
    };
    (Cluster::with(3, partition_count, set_up), target)
}

/// The place up to which the exporter of a node needs nothing of a partition again, and what it is doing.
fn exporter_of(node: &Node, partition: u16) -> (u64, u64, ExporterState) {
    let status = node.exporters().statuses().remove(0);
    let of = status.partitions.into_iter().find(|of| of.partition.0 == partition).expect("it has all");
    (of.acknowledged, of.last, of.state)
}

/// Waits until all nodes have all records, and know that the target has them.
fn until_all_is_exported(cluster: &Cluster, partition: u16) {
    eventually("all nodes to know what is exported", || {
        let all: Vec<_> = cluster.nodes.values().map(|node| exporter_of(node, partition)).collect();
        all.iter().all(|(acknowledged, last, _)| acknowledged == last && *last == all[0].1)
    });
}

#[test]
fn leaders_alone_export_and_the_next_one_goes_on_where_the_last_one_was() {
    let (mut cluster, target) = exporting_cluster(2);
    deploy(&cluster.client(0), &one_task());
    let mut dead = None;
    for _ in 0..3 {
        let first_node = *cluster.nodes.keys().next().expect("several nodes");
        for _ in 0..30 {
            for partition in 1..=2 {
                create_at(&cluster.client(first_node), partition);
            }
        }
        (1..=2).for_each(|partition| until_all_is_exported(&cluster, partition));
        let leader = cluster.leader(1);
        for (node, running) in &cluster.nodes {
            let (.., state) = exporter_of(running, 1);
            let expected = if *node == leader { ExporterState::Exporting } else { ExporterState::Following };
            assert_eq!(state, expected, "node {node}");
        }
        if let Some(back) = dead.replace(leader) {
            cluster.start(&[back]);
            // It may lead next.
            (1..=2).for_each(|partition| until_all_is_exported(&cluster, partition));
        }
        cluster.nodes.remove(&leader).expect("it runs").crash();
        create_at(&cluster.client(*cluster.nodes.keys().next().expect("two are left")), 1);
    }
    (1..=2).for_each(|partition| until_all_is_exported(&cluster, partition));
    let told = target.lock().expect("not poisoned").clone();
    for partition in [1, 2].map(PartitionId) {
        check_told(&told, partition, partition.0 == 1);
    }
}

/// Every record came, in order from each opening on, and an opening repeats little of what came before.
fn check_told(told: &[Told], partition: PartitionId, has_changed: bool) {
    let (mut newest, mut openings, mut expected) = (0, Vec::new(), 0);
    let mut nodes = BTreeSet::new();
    for told in told {
        match *told {
            Told::Opened(node, of, after) if of == partition => {
                assert!(after <= newest, "nothing is left out before {after}");
                nodes.insert(node);
                openings.push((after, newest));
                expected = after + 1;
            }
            Told::Took(_, of, number) if of == partition => {
                assert_eq!(number, expected, "in order");
                (expected, newest) = (number + 1, newest.max(number));
            }
            _ => {}
        }
    }
    assert!(newest > 0, "there was something");
    if !has_changed {
        return;
    }
    assert!(openings.len() >= 4 && nodes.len() >= 2, "{openings:?} at {nodes:?}");
    // Each change of leaders came after all nodes knew that everything before was exported.
    let repeats = openings.iter().skip(1).all(|(after, newest)| newest - after < 60 && *after > 0);
    assert!(repeats, "{openings:?}");
}

#[test]
fn a_pause_at_one_node_pauses_all_of_them() {
    let (mut cluster, target) = exporting_cluster(1);
    deploy(&cluster.client(0), &one_task());
    until_all_is_exported(&cluster, 1);
    let (leader, asked) = (cluster.leader(1), cluster.follower(1));
    cluster.nodes[&asked].exporters().set_pause(Pause::Hard).expect("writable");
    eventually("the pause everywhere", || cluster.nodes.values().all(|node| node.exporters().pause() == Pause::Hard));
    eventually("the pause of the leader", || exporter_of(&cluster.nodes[&leader], 1).2 == ExporterState::Paused);
    let count = || target.lock().expect("not poisoned").iter().filter(|told| matches!(told, Told::Took(..))).count();
    let before = count();
    create_at(&cluster.client(asked), 1);
    // Also who leads next, and who was away when it ended.
    cluster.nodes.remove(&leader).expect("it runs").crash();
    create_at(&cluster.client(asked), 1);
    let next = cluster.leader(1);
    eventually("the pause of the next leader", || exporter_of(&cluster.nodes[&next], 1).2 == ExporterState::Paused);
    assert_eq!(count(), before);
    cluster.nodes[&asked].exporters().set_pause(Pause::None).expect("writable");
    cluster.start(&[leader]);
    eventually("the end of the pause", || cluster.nodes.values().all(|node| node.exporters().pause() == Pause::None));
    until_all_is_exported(&cluster, 1);
    let told = target.lock().expect("not poisoned").clone();
    check_told(&told, PartitionId(1), false);
}

#[test]
fn nodes_that_lack_an_exporter_are_named() {
    let target = Target::default();
    let of_nodes = target.clone();
    let set_up = move |node, options: &mut NodeOptions| {
        let name = if node == 2 { "other" } else { "warehouse" };
        options.exporters = vec![exporter(name, node, &of_nodes)];
    };
    let cluster = Cluster::with(3, 1, set_up);
    deploy(&cluster.client(0), &one_task());
    let says = |node: u32, begin: &str| {
        let said = cluster.client(node).disagreements();
        said.iter().any(|sentence| sentence.starts_with(begin))
    };
    eventually("a warning at the node", || says(2, "Node 2 lacks the exporter warehouse that node 0 has"));
    eventually("a warning at another node", || says(0, "Node 2 lacks the exporter warehouse that node 0 has"));
    eventually("a warning of the other exporter", || says(1, "Node 1 lacks the exporter other that node 2 has"));
}

#[test]
fn the_settings_of_the_lowest_node_hold_whoever_leads() {
    let set_up = |node, options: &mut NodeOptions| options.unique_business_ids = Some(node != 1);
    let mut cluster = Cluster::with(3, 1, set_up);
    deploy(&cluster.client(0), &one_task());
    let create = |cluster: &Cluster, id: &str| {
        let asked = *cluster.nodes.keys().next().expect("several nodes");
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: "order".into(),
            version: -1,
            variables: "{}".into(),
            tenant_id: DEFAULT_TENANT.into(),
            business_id: id.into(),
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        submit(&cluster.client(asked), PartitionId(1), Command::new(Key::NONE, payload))
            .ok()
            .map(|reply| reply.rejection.is_none())
    };
    let mut number = 0;
    let mut is_unique = |cluster: &Cluster| {
        number += 1;
        let id = format!("id-{number}");
        create(cluster, &id) == Some(true) && create(cluster, &id) == Some(false)
    };
    for node in [0, 1] {
        eventually("a warning", || {
            let said = cluster.client(node).disagreements();
            said.iter()
                .any(|sentence| sentence.starts_with("Nodes 0 and 1 have different settings (unique-business-ids)"))
        });
    }
    let change_leader = |cluster: &mut Cluster| {
        let leader = cluster.leader(1);
        cluster.nodes.remove(&leader).expect("it runs").crash();
        eventually("a creation", || create(cluster, "").is_some());
        cluster.start(&[leader]);
    };
    while cluster.leader(1) == 1 {
        change_leader(&mut cluster);
    }
    eventually("the settings of node 0", || is_unique(&cluster));
    while cluster.leader(1) != 1 {
        change_leader(&mut cluster);
    }
    // Leaders look at the settings once a second.
    let until = std::time::Instant::now() + Duration::from_millis(2_500);
    while std::time::Instant::now() < until {
        assert!(is_unique(&cluster), "node 1 leaves them");
    }
}
