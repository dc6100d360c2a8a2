use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use crossbeam_channel::Receiver;
use engine::{Engine, EngineOptions};
use protocol::{
    Command, DEFAULT_TENANT, JobStreamIntent, JobStreamValue, Key, Payload, ProcessInstanceCreationIntent,
    ProcessInstanceCreationValue, Request, StreamId,
};

use super::*;
use crate::applying::{ApplyingNote, CommandTimes, RefusedCommand, RefusedCommands};
use crate::partition::PartitionOptions;
use crate::record_log::{RecordLog, RecordLogOptions, SegmentFile};
use crate::submit_error::SubmitError;

const PARTITION: PartitionId = PartitionId(1);
const SOON: Duration = Duration::from_secs(60);

/// A partition without threads around it.
struct Stage {
    shared: Arc<Shared>,
    inbox: Receiver<Inbound>,
    slot: Slot,
    records: Arc<RecordLog>,
    applied: u64,
    _maintenance: Receiver<Maintenance>,
}

impl Stage {
    fn new(directory: &Path) -> Stage {
        Stage::with_options(directory, PartitionOptions::default())
    }

    fn with_options(directory: &Path, partition_options: PartitionOptions) -> Stage {
        let (shared, inbox) = Shared::for_test(1, 8);
        let entrance = shared.entrances.of(PartitionId(1));
        entrance.set_role(Role::Follower);
        let options = EngineOptions::new(PARTITION, 1);
        let partition_options = PartitionOptions { node: shared.node, ..partition_options };
        let partition = Partition::new(PARTITION, Engine::in_memory(options), partition_options);
        let record_options = RecordLogOptions::for_test(PARTITION, directory, 1 << 20);
        let (records, writer) =
            RecordLog::open(record_options, RecordPlace { incarnation: 1, ..RecordPlace::default() }).expect("new");
        let (maintenance, receiver) = crossbeam_channel::unbounded();
        let policy = CheckpointPolicy { interval: SOON, overlay_bytes: u64::MAX };
        let note = ApplyingNote::open(&directory.join("applying"), PARTITION).expect("new");
        let guard = Guard { note, refused: RefusedCommands::default(), times: CommandTimes::of(PARTITION) };
        let slot = Slot::new(shared.clone(), entrance, partition, guard, writer, maintenance, policy);
        Stage { shared, inbox, slot, records, applied: 0, _maintenance: receiver }
    }

    /// A batch of one command is committed.
    fn commit(&mut self, command: &Command) {
        self.applied += 1;
        let command = protocol::encode_to_vec(command);
        let data = protocol::encode_batch(1, std::iter::once(command.as_slice())).into();
        let entry: CommittedEntry<Permit> = CommittedEntry { index: self.applied, term: 1, data, permit: None };
        self.shared.unapplied_bytes.fetch_add(entry.data.len(), Ordering::Relaxed);
        self.slot.enqueue(vec![entry], self.applied);
        self.slot.run(Instant::now());
    }

    /// From here on records cannot be written, until the answer is handed to [`Stage::repair`].
    fn break_records(&mut self) -> Box<dyn SegmentFile> {
        let unwritable = Box::new(File::open("/dev/null").expect("readable"));
        std::mem::replace(&mut self.slot.partition.records.file, unwritable)
    }

    fn repair(&mut self, file: Box<dyn SegmentFile>) {
        self.slot.partition.records.file = file;
        self.slot.run(Instant::now() + SOON);
    }

    fn lead(&mut self) {
        let leadership = self.shared.entrances.of(PartitionId(1)).leadership();
        self.slot.lead(leadership);
    }

    fn submitted(&self) -> Vec<&'static str> {
        let name = |inbound| match inbound {
            Inbound::Command(queued) => {
                protocol::decode::<Command>(&queued.bytes).expect("encoded by us").payload.intent_name()
            }
            other => panic!("unexpected {other:?}"),
        };
        self.inbox.try_iter().map(name).collect()
    }
}

/// A command that is rejected, which is a record and an answer.
fn creation(number: u64) -> Command {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: "unknown".into(),
        version: -1,
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
    let mut command = Command::new(Key::NONE, payload);
    command.request = Some(Request { node: 7, number });
    command
}

fn stream() -> Command {
    let value = JobStreamValue {
        stream: StreamId { node: 9, number: 1 },
        job_type: "pay".into(),
        tenant_ids: vec![DEFAULT_TENANT.into()],
        granted: protocol::JobAmount { jobs: 1, bytes: u64::MAX },
        ..JobStreamValue::default()
    };
    Command::new(Key::NONE, Payload::JobStream(JobStreamIntent::Add, Box::new(value)))
}

/// Counts how often the request is answered.
fn wait_for(stage: &Stage, number: u64) -> Arc<AtomicUsize> {
    let answers = Arc::new(AtomicUsize::new(0));
    let count = answers.clone();
    let function = Box::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    assert!(stage.shared.entrances.of(PartitionId(1)).requests.wait(number, 1, function).is_ok());
    answers
}

/// Its log would have it before the command that begins another life of its data.
#[test]
fn a_partition_that_may_begin_another_life_gets_nothing_before_it_is_led() {
    for restored in [None, Some(7)] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let stage =
            &mut Stage::with_options(directory.path(), PartitionOptions { restored, ..PartitionOptions::default() });
        let send = || OutgoingCommand { partition: PARTITION, command: creation(1) };
        stage.slot.surroundings.send(send());
        assert_eq!(stage.submitted().len(), usize::from(restored.is_none()), "before it is led, {restored:?}");
        stage.lead();
        stage.slot.run(Instant::now());
        let submitted = stage.submitted();
        assert_eq!(submitted.first() == Some(&"RAISE"), restored.is_some(), "{submitted:?}");
        stage.slot.surroundings.send(send());
        assert_eq!(stage.submitted(), ["CREATE"]);
    }
}

#[test]
fn nothing_is_answered_or_applied_before_the_records_of_the_batch_are_written() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut stage = Stage::new(directory.path());
    stage.lead();
    let (first, second) = (wait_for(&stage, 1), wait_for(&stage, 2));
    let file = stage.break_records();
    stage.commit(&creation(1));
    stage.commit(&creation(2));
    stage.slot.touch();
    stage.slot.run(Instant::now());
    let answers = || (first.load(Ordering::Relaxed), second.load(Ordering::Relaxed));
    assert_eq!(answers(), (0, 0), "its records are not written");
    assert_eq!(stage.slot.partition.partition().engine().applied(), 1, "the second batch waits behind the first");
    stage.repair(file);
    assert_eq!(answers(), (1, 1));
    assert_eq!(stage.records.last_place().position, stage.slot.partition.partition().engine().last_position());
}

#[test]
fn leadership_waits_behind_batches_whose_records_are_not_written() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut stage = Stage::new(directory.path());
    let file = stage.break_records();
    // A stream of an earlier leader, which the new one takes away first.
    stage.commit(&stream());
    stage.lead();
    assert_eq!(stage.submitted(), Vec::<&str>::new());
    assert_eq!(stage.shared.entrances.of(PartitionId(1)).role(), Role::Follower);
    stage.repair(file);
    assert_eq!(stage.submitted(), ["START"]);
    stage.slot.reconcile();
    assert_eq!(stage.submitted(), ["REMOVE"]);
    assert_eq!(stage.shared.entrances.of(PartitionId(1)).role(), Role::Leader);
    // A leadership that ended before its turn came is none.
    stage.slot.step_down();
    let file = stage.break_records();
    stage.commit(&stream());
    stage.lead();
    stage.slot.step_down();
    stage.repair(file);
    assert_eq!(stage.shared.entrances.of(PartitionId(1)).role(), Role::Follower);
}

#[test]
fn a_partition_that_died_says_so_to_the_log_and_takes_no_part_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut stage = Stage::new(directory.path());
    stage.lead();
    assert_eq!(stage.submitted(), ["START"]);
    let unreadable = CommittedEntry { index: 1, term: 1, data: b"unreadable".as_slice().into(), permit: None };
    let bytes = unreadable.data.len();
    stage.shared.unapplied_bytes.fetch_add(bytes, Ordering::Relaxed);
    stage.slot.enqueue(vec![unreadable], 1);
    stage.slot.run(Instant::now());
    assert!(matches!(stage.inbox.try_recv(), Ok(Inbound::Died(PARTITION))));
    let entrance = stage.shared.entrances.of(PartitionId(1));
    stage.slot.step_down();
    entrance.set_role(Role::Follower);
    entrance.close();
    assert_eq!((entrance.role(), entrance.health()), (Role::Inactive, Health::Dead));
    stage.lead();
    assert!(!entrance.is_open());
    assert_eq!(stage.shared.unapplied_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_log_that_ends_before_its_records_is_not_led() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut stage = Stage::new(directory.path());
    stage.lead();
    stage.commit(&creation(1));
    stage.commit(&creation(2));
    let recorded = stage.records.last_place().position;
    drop(stage);
    // The log has lost the second batch; the records of it are there.
    let mut stage = Stage::new(directory.path());
    stage.commit(&creation(1));
    assert!(stage.slot.partition.partition().engine().last_position() < recorded);
    let reason = stage.slot.partition.check_records().expect_err("more records than commands");
    assert!(reason.contains(&format!("records up to position {recorded}, but the log ends at position")), "{reason}");
    stage.lead();
    let entrance = stage.shared.entrances.of(PartitionId(1));
    assert_eq!((entrance.role(), entrance.health()), (Role::Inactive, Health::Dead));
    // An exporter got what is not there any more.
    let other = tempfile::tempdir().expect("temporary directory");
    let mut stage = Stage::new(other.path());
    stage.commit(&creation(1));
    stage.slot.was_exported(RecordPlace { incarnation: 1, position: recorded, number: recorded });
    stage.lead();
    assert_eq!(stage.shared.entrances.of(PartitionId(1)).health(), Health::Dead);
    // With all of the log, everything is as it was.
    let mut stage = Stage::new(directory.path());
    stage.commit(&creation(1));
    stage.commit(&creation(2));
    stage.slot.was_exported(RecordPlace { incarnation: 1, position: recorded, number: recorded });
    stage.lead();
    assert_eq!(stage.shared.entrances.of(PartitionId(1)).role(), Role::Leader);
}

/// The reasons with which a request is rejected.
fn rejections(stage: &Stage, number: u64) -> Arc<parking_lot::Mutex<Vec<String>>> {
    let reasons = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let answered = reasons.clone();
    let function = Box::new(move |answer: Result<engine::Reply, SubmitError>| {
        let rejection = answer.expect("the engine answers").rejection.expect("it is rejected");
        answered.lock().push(rejection.reason.to_string());
    });
    assert!(stage.shared.entrances.of(PartitionId(1)).requests.wait(number, 1, function).is_ok());
    reasons
}

#[test]
fn a_refused_command_is_rejected_in_its_place_and_what_ended_the_process_is_forgotten_behind_it() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("applying");
    let note = ApplyingNote::open(&path, PARTITION).expect("new");
    note.begin(2);
    // Nothing is undone when a process ends.
    std::mem::forget(note);
    let mut stage = Stage::new(directory.path());
    stage.lead();
    let (first, second) = (rejections(&stage, 1), rejections(&stage, 2));
    let command = protocol::encode_to_vec(&creation(2));
    let content = protocol::encode_batch(1, std::iter::once(command.as_slice()));
    let refused = RefusedCommand { index: 2, checksum: crc32fast::hash(&content), number: Some(1) };
    stage.slot.surroundings.guard.refused.add(refused, 0);

    stage.commit(&creation(1));
    assert!(!first.lock()[0].contains("operator"), "{first:?}");
    assert_eq!(
        stage.slot.surroundings.guard.note.ended().map(|ended| ended.applying.index),
        Some(2),
        "it is still ahead"
    );
    stage.commit(&creation(2));
    assert!(second.lock()[0].contains("an operator had it refused with 'osmia doctor'"), "{second:?}");
    assert_eq!(stage.slot.surroundings.guard.note.ended(), None);
    assert_eq!(crate::applying::read(&path, PARTITION).expect("readable"), None, "nothing is being applied");
}

#[test]
fn a_partition_that_is_left_out_applies_nothing_and_says_why() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut stage = Stage::new(directory.path());
    stage.slot.leave_out("The process ended 3 times in a row.".to_owned());
    stage.slot.begin();
    stage.lead();
    stage.commit(&creation(1));
    let entrance = stage.shared.entrances.of(PartitionId(1));
    assert_eq!((entrance.role(), entrance.health()), (Role::Inactive, Health::LeftOut));
    assert_eq!(entrance.remark().as_deref(), Some("The process ended 3 times in a row."));
    assert_eq!(stage.slot.partition.partition().engine().applied(), 0);
    assert_eq!(stage.shared.unapplied_bytes.load(Ordering::Relaxed), 0, "and holds nobody up");
}
