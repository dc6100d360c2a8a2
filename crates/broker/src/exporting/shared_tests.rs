//! Exporters that the nodes of a cluster have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use exporters::{Kept, RecordFilter, Role};
use parking_lot::Mutex;
use protocol::RecordPlace;

use super::tests::{Flushed, PARTITION, SECOND, START, Told, acknowledged, place, records, write};
use super::*;
use crate::record_log::RecordLog;

/// What a test says of the cluster.
#[derive(Debug, Default)]
struct Cluster {
    leads: AtomicBool,
    others_have_said: AtomicBool,
    others_can_lead: AtomicBool,
}

impl Leadership for Cluster {
    fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    fn others_have_said(&self) -> bool {
        self.others_have_said.load(Ordering::Relaxed)
    }

    fn others_can_lead(&self) -> bool {
        self.others_can_lead.load(Ordering::Relaxed)
    }
}

struct Shared {
    director: ExporterLoop,
    told: Arc<Mutex<Told>>,
    cluster: Arc<Cluster>,
    sharing: Sharing,
}

/// The exporter of a node that does not lead.
fn shared(directory: &Path, log: &Arc<RecordLog>) -> Shared {
    let (told, cluster) = (Arc::new(Mutex::new(Told::default())), Arc::<Cluster>::default());
    let exporter = Box::new(Flushed(told.clone(), None));
    let (file, kept) = PositionsFile::open(directory.join("flushed.positions")).expect("readable");
    let keeper = Arc::new(Keeper::new(file, kept));
    let progress = ExporterProgress::new("flushed", keeper.kept(PARTITION), log.clone(), 0, || {});
    let progress = Arc::new(progress.with_leadership(cluster.clone()));
    let sharing = Sharing::default();
    sharing.add(progress.clone(), keeper.clone());
    Shared { director: ExporterLoop::new(exporter, RecordFilter::default(), progress, keeper), told, cluster, sharing }
}

impl Shared {
    fn leads(&mut self, leads: bool) {
        self.cluster.leads.store(leads, Ordering::Relaxed);
        self.director.set_role(if leads { Role::Leader } else { Role::Follower });
    }

    fn says(&self, number: u64, metadata: u8) {
        let kept = Kept { acknowledged: place(number), metadata: [metadata].into() };
        self.director.progress().say(kept, true);
    }

    /// What it says to other nodes.
    fn said(&self) -> Vec<(RecordPlace, Vec<u8>)> {
        let said = self.sharing.say(PARTITION, 1, true);
        said.kept.iter().map(|said| (said.kept().acknowledged, said.kept().metadata.to_vec())).collect()
    }
}

#[test]
fn a_follower_notes_what_the_leader_keeps_and_goes_on_there_when_it_leads() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=5);
    let mut of = shared(directory.path(), &log);
    of.director.turn(START, 0);
    assert_eq!(of.director.progress().position(0).state, ExporterState::Following);
    of.says(3, 7);
    of.director.turn(START, 0);
    assert_eq!(acknowledged(&of.director), 3);
    assert_eq!(of.director.progress().saved(), place(0), "a restart would not know");
    of.director.save_now(START);
    of.director.save_now(SECOND);
    assert_eq!((of.director.progress().saved(), of.said()), (place(3), vec![(place(3), vec![7])]));
    // Of records that are not here, nothing is noted before they are; what is said meanwhile does not keep that off.
    of.says(7, 8);
    of.says(9, 9);
    of.director.turn(SECOND, 0);
    assert_eq!(acknowledged(&of.director), 3);
    assert!(of.director.deadline().is_some_and(|at| at <= SECOND * 2), "it looks again");
    write(&mut writer, 6..=8);
    of.says(12, 10);
    of.director.turn(SECOND * 2, 0);
    assert_eq!(acknowledged(&of.director), 7);
    // The leader has gone back.
    write(&mut writer, 9..=12);
    of.says(4, 11);
    of.director.turn(SECOND * 3, 0);
    assert_eq!((acknowledged(&of.director), of.director.progress().saved()), (4, place(3)));
    assert!(of.told.lock().opened.is_empty() && of.told.lock().taken.is_empty());
    of.leads(true);
    of.director.turn(SECOND * 4, 0);
    assert_eq!(of.told.lock().opened, [(place(4), vec![11], Role::Leader)]);
    assert_eq!(of.told.lock().taken, (5..=12).collect::<Vec<_>>());
    // What an earlier leader says comes too late.
    of.says(3, 1);
    of.director.turn(SECOND * 4, 0);
    assert_eq!(acknowledged(&of.director), 12);
    // Its leadership ends.
    of.told.lock().delay = SECOND * 60;
    write(&mut writer, 13..=14);
    of.director.turn(SECOND * 5, 0);
    of.leads(false);
    write(&mut writer, 15..=16);
    of.director.turn(SECOND * 5, 0);
    assert_eq!((acknowledged(&of.director), of.told.lock().taken.last()), (14, Some(&14)));
    assert_eq!(of.director.progress().position(0).state, ExporterState::Following);
}

#[test]
fn a_new_exporter_asks_the_others_before_it_begins() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=5);
    let mut of = shared(directory.path(), &log);
    of.leads(true);
    of.director.turn(START, 0);
    of.director.save_now(START);
    assert!(of.told.lock().opened.is_empty() && of.said().is_empty(), "where it begins is not decided");
    let ExporterState::Failing(reason) = of.director.progress().position(0).state else { panic!("it waits") };
    assert!(reason.contains("have not said yet"), "{reason}");
    for number in [2, 4, 3] {
        of.director.progress().say(Kept { acknowledged: place(number), metadata: [1].into() }, false);
    }
    of.cluster.others_have_said.store(true, Ordering::Relaxed);
    of.director.turn(SECOND, 0);
    assert_eq!(of.told.lock().taken, [5]);
    of.director.save_now(SECOND * 2);
    assert_eq!(of.said()[0].0, place(5));
}

#[test]
fn a_leader_that_lacks_records_says_so_and_waits_for_another_one() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=3);
    write(&mut writer, 1_001..=1_003);
    drop(writer);
    // A received state took the place of the own one.
    let mut writer = log.go_on_behind(place(2_000)).expect("writable");
    write(&mut writer, 2_001..=2_002);
    let mut of = shared(directory.path(), &log);
    of.says(1_002, 1);
    of.director.turn(START, 0);
    of.cluster.others_can_lead.store(true, Ordering::Relaxed);
    of.leads(true);
    of.director.turn(SECOND, 0);
    assert!(!of.sharing.say(PARTITION, 1, false).has_records);
    let lacks = of.director.progress().lacks().expect("997 are missing");
    assert!(lacks.contains("997 records are missing, from 1004 to 2000"), "{lacks}");
    assert!(of.told.lock().opened.is_empty());
    // Another one leads for a while, and knows no more.
    of.leads(false);
    of.director.turn(SECOND, 0);
    assert_eq!(of.director.progress().lacks(), None);
    of.leads(true);
    of.director.turn(SECOND * 20, 0);
    of.director.turn(SECOND * 29, 0);
    assert!(of.told.lock().opened.is_empty());
    // Nobody else takes the lead: the gap is said, and it goes on.
    of.director.turn(SECOND * 40, 0);
    let position = of.director.progress().position(0);
    assert_eq!((position.missing_records, position.state), (997, ExporterState::Exporting));
    assert_eq!(of.told.lock().taken, [1_003, 2_001, 2_002]);
    assert!(of.sharing.say(PARTITION, 1, true).has_records, "it has what it needs now");
    assert_eq!(of.director.progress().lacks(), None);
}

#[test]
fn records_are_kept_for_exporters_that_only_other_nodes_have() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, _writer) = records(directory.path());
    let (of, theirs) = (shared(directory.path(), &log), Sharing::default());
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    assert_eq!(of.sharing.held_back(PARTITION), None);
    of.sharing.others_have(&names(&["flushed", "theirs"]));
    assert_eq!(of.sharing.held_back(PARTITION), Some(("theirs".to_owned(), 0)), "the leader has not said where it is");
    let (file, _) = PositionsFile::open(directory.path().join("theirs.positions")).expect("readable");
    let kept = KeptByPartition::from([(PARTITION, Kept { acknowledged: place(40), metadata: Arc::default() })]);
    let keeper = Arc::new(Keeper::new(file, kept));
    let progress = ExporterProgress::new("theirs", keeper.kept(PARTITION), log, 0, || {});
    theirs.add(Arc::new(progress), keeper);
    let said = theirs.say(PARTITION, 3, true);
    assert_eq!(protocol::decode::<Said>(&protocol::encode_to_vec(&said)).expect("it was encoded"), said);
    of.sharing.heard(2, &said);
    assert!(of.sharing.has_heard(2, PARTITION) && !of.sharing.has_heard(1, PARTITION));
    assert!(of.sharing.has_records(2, PARTITION) && !of.sharing.has_records(1, PARTITION));
    assert_eq!(of.sharing.held_back(PARTITION), Some(("theirs".to_owned(), 40)));
    of.sharing.others_have(&names(&["flushed"]));
    assert_eq!(of.sharing.held_back(PARTITION), None, "it was taken out of all configurations");
}
