use std::os::unix::fs::FileExt;
use std::path::Path;

use engine::{Engine, EngineOptions, Output};
use exporters::{Controller, Delivery, Opening, PartitionExporter, RecordKind, Resume};
use parking_lot::Mutex;
use protocol::{
    Command, CommandBatch, IncarnationIntent, IncarnationValue, Key, PartitionId, Payload, ProcessInstanceIntent,
    Record, RecordPlace, Subject, Timestamp, VariableIntent, VariableValue,
};

use super::exporter_loop::TURN_RECORDS;
use super::*;
use crate::record_log::{RecordLog, RecordLogOptions, RecordWriter};
use crate::state_handle::StateHandle;

pub(super) const PARTITION: PartitionId = PartitionId(1);
pub(super) const START: Duration = Duration::ZERO;
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// An exporter and what it was told. It acknowledges what it took when it is flushed, or loses it all.
#[derive(Default)]
pub(super) struct Told {
    pub opened: Vec<(RecordPlace, Vec<u8>, Role)>,
    pub taken: Vec<u64>,
    unacknowledged: Option<RecordPlace>,
    flushes: Vec<Duration>,
    roles: Vec<Role>,
    loses_next_flush: bool,
    refuses: Option<&'static str>,
    /// How long after the first record that it keeps back it wants to flush.
    pub delay: Duration,
    flush_at: Option<Duration>,
    /// Where it says that it goes on.
    own_place: Option<RecordPlace>,
    /// Of this intent it wants no records.
    unwanted: Option<VariableIntent>,
    /// Of this intent it takes records as they are encoded.
    takes_encoded: Option<VariableIntent>,
    taken_encoded: Vec<u64>,
    /// It acknowledges what it passes, as what it takes.
    keeps_what_is_passed: bool,
    passed: Vec<u64>,
    rests_until: Option<Duration>,
}

#[derive(Default)]
pub(super) struct Flushed(pub Arc<Mutex<Told>>, pub Option<Controller>);

impl PartitionExporter for Flushed {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        let mut told = self.0.lock();
        told.opened.push((opening.acknowledged, opening.metadata.to_vec(), opening.role));
        self.1 = Some(opening.controller);
        (told.unacknowledged, told.flush_at) = (None, None);
        Ok(told.own_place.map_or(Resume::AsTheNodeSays, Resume::After))
    }

    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError> {
        let mut told = self.0.lock();
        if let Some(reason) = told.refuses {
            return Err(ExporterError::target("flushed", "take a record", reason));
        }
        told.taken.push(delivery.record.position);
        told.unacknowledged = Some(delivery.place());
        let at = now + told.delay;
        told.flush_at.get_or_insert(at);
        Ok(())
    }

    fn wants(&self, subject: &Subject) -> bool {
        self.0.lock().unwanted.is_none_or(|unwanted| unwanted.code() != subject.intent)
    }

    fn take_encoded(&mut self, subject: &Subject, encoded: &[u8], place: RecordPlace, now: Duration) -> bool {
        let mut told = self.0.lock();
        if told.takes_encoded.is_none_or(|of| of.code() != subject.intent) {
            return false;
        }
        let [position, number, _] = Record::peek(encoded).expect("a record");
        assert_eq!((position, number), (place.position, place.number));
        told.taken_encoded.push(place.position);
        told.unacknowledged = Some(place);
        let at = now + told.delay;
        told.flush_at.get_or_insert(at);
        true
    }

    fn passed(&mut self, place: RecordPlace) -> bool {
        let mut told = self.0.lock();
        told.passed.push(place.position);
        if told.keeps_what_is_passed {
            told.unacknowledged = Some(place);
        }
        told.keeps_what_is_passed
    }

    fn flush_at(&self) -> Option<Duration> {
        self.0.lock().flush_at
    }

    fn rests_until(&self) -> Option<Duration> {
        self.0.lock().rests_until
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        let mut told = self.0.lock();
        told.flushes.push(now);
        if std::mem::take(&mut told.loses_next_flush) {
            return Err(ExporterError::lost("flushed", "sync its file", "the disk is gone"));
        }
        told.flush_at = None;
        if let Some(place) = told.unacknowledged.take() {
            let metadata = vec![u8::try_from(told.flushes.len()).expect("few")];
            self.1.as_ref().expect("opened").acknowledge_with(place, metadata).expect("short");
        }
        Ok(())
    }

    fn role_changed(&mut self, role: Role) {
        self.0.lock().roles.push(role);
    }

    fn close(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.flush(now)
    }
}

pub(super) fn write(writer: &mut RecordWriter, positions: impl IntoIterator<Item = u64>) {
    write_of(writer, VariableIntent::Created, positions);
}

fn write_of(writer: &mut RecordWriter, intent: VariableIntent, positions: impl IntoIterator<Item = u64>) {
    for position in positions {
        writer.append(&record(intent, position, 1));
    }
    writer.flush().expect("the disk has room");
}

fn record(intent: VariableIntent, position: u64, timestamp: Timestamp) -> Record {
    let value = VariableValue {
        name: "amount".into(),
        value: "12.5".into(),
        scope_key: Key::NONE,
        process_instance_key: Key::NONE,
        process_definition_key: Key::NONE,
        bpmn_process_id: "order".into(),
        tenant_id: protocol::DEFAULT_TENANT.into(),
    };
    let payload = Payload::Variable(intent, Box::new(value));
    Record { source_position: 1, ..Record::event(position, timestamp, Key::NONE, payload) }
}

pub(super) fn records(directory: &Path) -> (Arc<RecordLog>, RecordWriter) {
    let options = RecordLogOptions::for_test(PARTITION, &directory.join("records"), 16 << 20);
    RecordLog::open(options, place(0)).expect("new")
}

pub(super) fn place(number: u64) -> RecordPlace {
    RecordPlace { incarnation: 1, position: number, number }
}

/// A director that is driven by calls, and the calls that its exporter got.
fn director_of(directory: &Path, log: &Arc<RecordLog>, filter: RecordFilter) -> (ExporterLoop, Arc<Mutex<Told>>) {
    let told = Arc::new(Mutex::new(Told::default()));
    let exporter = Box::new(Flushed(told.clone(), None));
    let (file, kept) = PositionsFile::open(directory.join("flushed.positions")).expect("readable");
    let keeper = Arc::new(Keeper::new(file, kept));
    let progress = ExporterProgress::new("flushed", keeper.kept(PARTITION), log.clone(), 0, || {});
    (ExporterLoop::new(exporter, filter, Arc::new(progress), keeper), told)
}

fn director(directory: &Path, log: &Arc<RecordLog>) -> (ExporterLoop, Arc<Mutex<Told>>) {
    director_of(directory, log, RecordFilter::default())
}

pub(super) fn acknowledged(director: &ExporterLoop) -> u64 {
    director.progress().acknowledged().position
}

#[test]
fn what_cannot_be_read_is_tried_again_and_what_came_before_is_acknowledged() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=10);
    let segment = directory.path().join("records").join(format!("{:020}.records", 0));
    let bytes = std::fs::read(&segment).expect("there");
    let file = std::fs::File::options().write(true).open(&segment).expect("there");
    file.write_all_at(&[!bytes[bytes.len() / 2]], bytes.len() as u64 / 2).expect("writable");
    let (mut director, told) = director(directory.path(), &log);
    assert!(!director.turn(START, 0));
    assert!((1..10).contains(&acknowledged(&director)), "up to the damage");
    let state = director.progress().position(0).state;
    assert!(matches!(&state, ExporterState::Failing(reason) if reason.contains("is damaged at byte")), "{state:?}");
    assert_eq!(told.lock().flushes.len(), 1);
    // It is tried again when the pause is over, and not before.
    let retry = director.retry.at().expect("it failed");
    director.turn(retry - Duration::from_millis(1), 0);
    assert_eq!(director.retry.at(), Some(retry));
    director.turn(retry, 0);
    assert!(director.retry.at() > Some(retry));
    file.write_all_at(&bytes, 0).expect("writable");
    director.turn(SECOND, 0);
    assert_eq!((acknowledged(&director), director.progress().position(0).state), (10, ExporterState::Exporting));
    assert_eq!(told.lock().taken, (1..=10).collect::<Vec<_>>());
}

#[test]
fn what_an_exporter_lost_comes_again_from_the_last_acknowledgement() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    let (mut director, told) = director(directory.path(), &log);
    write(&mut writer, 1..=3);
    director.turn(START, 0);
    write(&mut writer, 4..=5);
    told.lock().loses_next_flush = true;
    director.turn(SECOND, 0);
    assert_eq!(acknowledged(&director), 3);
    told.lock().taken.clear();
    director.turn(director.retry.at().expect("it failed"), 0);
    let told = told.lock();
    assert_eq!((told.taken.as_slice(), told.opened.len()), ([4, 5].as_slice(), 2));
    assert_eq!((acknowledged(&director), director.progress().position(0).state), (5, ExporterState::Exporting));
}

#[test]
fn an_exporter_is_flushed_when_it_wants_and_left_alone_when_it_wants_nothing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    let (mut director, told) = director(directory.path(), &log);
    let milliseconds = Duration::from_millis;
    told.lock().delay = milliseconds(7);
    assert!(!director.turn(START, 0));
    director.save(START);
    // Once more, so that the file and the one before are the same.
    director.save(START + SECOND);
    assert_eq!(director.deadline(), None, "no reason to wake up");
    write(&mut writer, 1..=2);
    director.turn(milliseconds(100), 0);
    assert_eq!(director.deadline(), Some(milliseconds(107)));
    write(&mut writer, 3..=3);
    director.turn(milliseconds(106), 0);
    assert_eq!(director.deadline(), Some(milliseconds(107)), "not put off");
    assert_eq!(told.lock().flushes.len(), 0);
    director.turn(milliseconds(107), 0);
    assert_eq!((told.lock().flushes.as_slice(), acknowledged(&director)), ([milliseconds(107)].as_slice(), 3));
    // What was acknowledged is kept, a second after the last time.
    assert_eq!(director.deadline(), Some(SECOND * 2));
    director.save(milliseconds(1_999));
    assert_eq!(director.deadline(), Some(SECOND * 2));
    director.save(SECOND * 2);
    director.save(SECOND * 3);
    assert_eq!(director.deadline(), None);
    // Also while more records wait than a turn takes.
    told.lock().delay = Duration::ZERO;
    write(&mut writer, 4..=3 + 2 * TURN_RECORDS as u64);
    assert!(director.turn(SECOND * 4, 0), "there are more");
    assert_eq!((told.lock().flushes.len(), acknowledged(&director)), (2, 3 + TURN_RECORDS as u64));
}

#[test]
fn records_that_an_exporter_does_not_want_are_passed() {
    for keeps in [false, true] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (log, mut writer) = records(directory.path());
        let (mut director, told) = director(directory.path(), &log);
        {
            let mut told = told.lock();
            (told.unwanted, told.keeps_what_is_passed) = (Some(VariableIntent::Updated), keeps);
            told.delay = SECOND;
        }
        write(&mut writer, [1]);
        write_of(&mut writer, VariableIntent::Updated, [2]);
        write(&mut writer, [3]);
        write_of(&mut writer, VariableIntent::Updated, 4..=5);
        director.turn(START, 0);
        assert_eq!(told.lock().taken, [1, 3]);
        assert_eq!(told.lock().passed, [5]);
        assert_eq!(acknowledged(&director), 0, "what it took is not acknowledged");
        director.turn(SECOND, 0);
        assert_eq!(acknowledged(&director), 5);
        // Behind what is acknowledged, the node moves the place, unless the exporter keeps it itself.
        write_of(&mut writer, VariableIntent::Updated, 6..=7);
        director.turn(SECOND * 2, 0);
        assert_eq!(acknowledged(&director), if keeps { 5 } else { 7 });
        assert_eq!(director.progress().position(0).exported, if keeps { 7 } else { 3 });
        assert_eq!(told.lock().passed, [5, 7]);
    }
}

#[test]
fn records_are_taken_as_they_are_encoded_if_nothing_is_missing_before_and_the_filter_is_open() {
    for (filter, taken, encoded) in [
        (RecordFilter::default(), [1, 6].as_slice(), [2, 3, 7].as_slice()),
        (RecordFilter::default().only_kinds([RecordKind::Event]), [1, 2, 3, 6, 7].as_slice(), [].as_slice()),
    ] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (log, mut writer) = records(directory.path());
        let (mut director, told) = director_of(directory.path(), &log, filter);
        told.lock().takes_encoded = Some(VariableIntent::Updated);
        write(&mut writer, [1]);
        write_of(&mut writer, VariableIntent::Updated, [2, 3]);
        // Two are missing.
        write_of(&mut writer, VariableIntent::Updated, [6, 7]);
        director.turn(START, 0);
        let told = told.lock();
        assert_eq!((told.taken.as_slice(), told.taken_encoded.as_slice()), (taken, encoded));
        let position = director.progress().position(0);
        assert_eq!((acknowledged(&director), position.exported, position.missing_records), (7, 7, 2));
    }
}

#[test]
fn an_exporter_may_rest_once_it_is_open() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, _writer) = records(directory.path());
    let (mut director, told) = director(directory.path(), &log);
    told.lock().rests_until = Some(SECOND);
    assert_eq!(director.rests_until(), None, "it has to be opened first");
    director.turn(START, 0);
    assert_eq!(director.rests_until(), Some(SECOND));
}

#[test]
fn an_exporter_gets_its_metadata_again_and_goes_on_where_the_node_says() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=3);
    let (mut first, told) = director(directory.path(), &log);
    first.set_role(Role::Leader);
    first.turn(START, 0);
    first.close(|| START, 0, || true);
    first.save_now(START);
    assert_eq!(told.lock().opened, [(place(0), vec![], Role::Leader)]);
    write(&mut writer, 4..=4);
    let (mut second, told) = director(directory.path(), &log);
    second.turn(START, 0);
    second.set_role(Role::Leader);
    second.set_role(Role::Leader);
    let told = told.lock();
    assert_eq!(told.opened, [(place(3), vec![1], Role::Follower)]);
    assert_eq!((told.taken.as_slice(), told.roles.as_slice()), ([4].as_slice(), [Role::Leader].as_slice()));
}

#[test]
fn an_exporter_that_keeps_its_own_place_goes_on_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=5);
    for own in [2, 4, 0] {
        let (mut director, told) = director(directory.path(), &log);
        told.lock().own_place = Some(place(own));
        director.turn(START, 0);
        director.save_now(START);
        assert_eq!(told.lock().taken, (own + 1..=5).collect::<Vec<_>>());
        assert_eq!(director.progress().missing_records(), 0);
    }
}

#[test]
fn missing_records_are_told_once() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    write(&mut writer, 1..=2);
    write(&mut writer, 6..=7);
    let (mut director, told) = director(directory.path(), &log);
    director.turn(START, 0);
    // Once more from the beginning.
    write(&mut writer, 8..=8);
    told.lock().own_place = Some(place(0));
    told.lock().loses_next_flush = true;
    director.turn(SECOND, 0);
    director.turn(SECOND * 2, 0);
    assert_eq!(told.lock().taken, [1, 2, 6, 7, 8, 1, 2, 6, 7, 8]);
    let position = director.progress().position(0);
    assert_eq!(position.missing_records, 3);
    let gap = "In the record stream, 3 records are missing, from 3 to 5, between the positions 2 and 6.";
    assert_eq!(position.gap.as_deref(), Some(gap));
    assert_eq!(position.state, ExporterState::Exporting, "it goes on");
}

#[test]
fn skipped_records_are_acknowledged_when_nothing_before_them_is_kept_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    let (mut director, _) =
        director_of(directory.path(), &log, RecordFilter::default().only_kinds([RecordKind::Rejection]));
    write(&mut writer, 1..=5);
    director.turn(START, 0);
    assert_eq!((acknowledged(&director), director.progress().position(0).lag_records), (5, 0));
}

#[test]
fn the_lag_is_the_age_of_the_oldest_record_that_is_not_acknowledged() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, mut writer) = records(directory.path());
    let (mut director, told) = director(directory.path(), &log);
    told.lock().delay = SECOND * 60;
    let lag = |director: &ExporterLoop, now: Timestamp| director.progress().position(now).lag_milliseconds;
    let mut write = |position: u64, timestamp: Timestamp| {
        writer.append(&record(VariableIntent::Created, position, timestamp));
        writer.flush().expect("the disk has room");
    };
    write(1, 1_000);
    director.turn(START, 0);
    assert_eq!(lag(&director, 1_500), 500);
    write(2, 50_000);
    director.turn(SECOND, 0);
    assert_eq!(lag(&director, 61_000), 60_000, "it still has the first one");
    director.turn(SECOND * 60, 0);
    assert_eq!((acknowledged(&director), lag(&director, 70_000)), (2, 0));
    write(3, 80_000);
    director.turn(SECOND * 61, 0);
    assert_eq!(lag(&director, 80_007), 7);
}

#[test]
fn an_exporter_that_does_not_come_back_is_reported_by_those_who_watch() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (log, _writer) = records(directory.path());
    let (director, _) = director(directory.path(), &log);
    let progress = director.progress();
    let state = || progress.position(0).state;
    progress.call(progress::Call::Export, || {
        progress.watch(SECOND, SECOND * 10);
        assert_eq!(state(), ExporterState::Opening);
        progress.watch(SECOND * 11, SECOND * 10);
        let ExporterState::Stuck(reason) = state() else { panic!("{:?}", state()) };
        assert_eq!(reason, "It has not come back from taking a record for 10 s.");
    });
    progress.watch(SECOND * 12, SECOND * 10);
    assert_eq!(state(), ExporterState::Opening);
    // Many calls, however long they take together, are no single one.
    for second in 13..40 {
        progress.call(progress::Call::Export, || progress.watch(SECOND * second, SECOND * 10));
        assert_eq!(state(), ExporterState::Opening);
    }
}

/// A state with a checkpoint behind as many records as commands were refused.
struct Checkpointed {
    engine: Engine,
    batches: u64,
}

impl Checkpointed {
    fn new(directory: &Path) -> Checkpointed {
        let engine = Engine::open(EngineOptions::new(PARTITION, 1), directory).expect("a new state");
        Checkpointed { engine, batches: 0 }
    }

    fn go_on(&mut self, commands: Vec<Command>) {
        self.batches += 1;
        let batch = CommandBatch { timestamp: 1, commands };
        self.engine.apply(self.batches, &batch, &mut Output::default()).expect("the state is sound");
        let checkpoint = self.engine.freeze().expect("none is under way");
        let written = checkpoint.write().expect("the disk takes it");
        drop(checkpoint);
        drop(self.engine.release(written).expect("it can be read"));
    }

    fn refuse(&mut self, commands: u64) {
        let cancel = || Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
        self.go_on((0..commands).map(|_| Command::new(Key::new(PARTITION, 1), cancel())).collect());
    }
}

/// An exporter that is told what lives when records are missing, and in what order it was told things.
#[derive(Clone, Default)]
struct Rebuilt(Arc<Mutex<(bool, Vec<String>, bool)>>);

impl PartitionExporter for Rebuilt {
    fn open(&mut self, _: Opening) -> Result<Resume, ExporterError> {
        let lacks = self.0.lock().0;
        Ok(if lacks { Resume::FromState } else { Resume::After(place(0)) })
    }

    fn export(&mut self, delivery: &Delivery<'_>, _: Duration) -> Result<(), ExporterError> {
        self.0.lock().1.push(format!("record {}", delivery.record.number));
        Ok(())
    }

    fn living_told(&mut self, place: RecordPlace, _: Timestamp, _: Duration) -> Result<(), ExporterError> {
        let mut told = self.0.lock();
        if told.2 {
            return Err(ExporterError::target("rebuilt", "keep what lives", "its target is away"));
        }
        told.0 = false;
        told.1.push(format!("living up to {} of {}", place.number, place.incarnation));
        Ok(())
    }

    fn records_missing(&mut self, up_to: RecordPlace, _: Duration) -> Result<(), ExporterError> {
        let mut told = self.0.lock();
        told.0 = true;
        told.1.push(format!("missing up to {}", up_to.number));
        Err(ExporterError::lost("rebuilt", "go on", "records are missing"))
    }

    fn flush_at(&self) -> Option<Duration> {
        None
    }

    fn flush(&mut self, _: Duration) -> Result<(), ExporterError> {
        Ok(())
    }

    fn close(&mut self, _: Duration) -> Result<(), ExporterError> {
        Ok(())
    }
}

/// Records 1 to 4, and from 8 on, in a state whose newest checkpoint ends with record 4; and what the exporter was told when it
/// came to the hole and was opened again.
fn at_a_hole(directory: &Path, state: &mut Checkpointed) -> (ExporterLoop, Rebuilt, RecordWriter) {
    let (log, mut writer) = records(directory);
    state.refuse(4);
    assert_eq!(state.engine.record_place().number, 4);
    write(&mut writer, 1..=4);
    write(&mut writer, 8..=9);
    let rebuilt = Rebuilt::default();
    let (file, kept) = PositionsFile::open(directory.join("rebuilt.positions")).expect("readable");
    let keeper = Arc::new(Keeper::new(file, kept));
    let progress = ExporterProgress::new("rebuilt", keeper.kept(PARTITION), log, 0, || {});
    let director = ExporterLoop::new(Box::new(rebuilt.clone()), RecordFilter::default(), Arc::new(progress), keeper)
        .with_state(StateHandle::new(state.engine.store().handle()));
    (director, rebuilt, writer)
}

/// Lets it try again from a second on, when the pauses after its failures are over, until it has told so much.
fn until_told(director: &mut ExporterLoop, from: u32, rebuilt: &Rebuilt, count: usize) {
    for second in from..from + 20 {
        if rebuilt.0.lock().1.len() >= count {
            return;
        }
        director.turn(SECOND * 10 * second, 0);
    }
}

#[test]
fn what_lives_is_told_of_a_checkpoint_behind_the_records_that_are_missing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut state = Checkpointed::new(&directory.path().join("state"));
    let (mut director, rebuilt, _writer) = at_a_hole(directory.path(), &mut state);
    let before: Vec<String> =
        (1..=4).map(|number| format!("record {number}")).chain(["missing up to 7".into()]).collect();
    // The newest checkpoint ends before the hole: what lives would be told of it again and again.
    until_told(&mut director, 1, &rebuilt, 6);
    assert_eq!(rebuilt.0.lock().1, before);
    let ExporterState::Failing(reason) = director.progress().position(0).state else { panic!("it waits") };
    assert!(reason.contains("the newest checkpoint ends with record"), "{reason}");
    // Also of one in the midst of it.
    state.refuse(2);
    director.turn(SECOND * 2_000, 0);
    assert_eq!(rebuilt.0.lock().1, before);
    state.refuse(2);
    assert_eq!(state.engine.record_place().number, 8);
    for second in 3_000..3_003 {
        director.turn(SECOND * second, 0);
    }
    let behind = rebuilt.0.lock().1.split_off(before.len());
    assert_eq!(behind.first().map(String::as_str), Some("living up to 8 of 1"));
    assert!(!behind.iter().any(|told| told.starts_with("missing")), "it does not come to the hole again: {behind:?}");
}

#[test]
fn a_state_that_is_replaced_is_held_no_longer_and_what_lives_is_told_of_the_next() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (old, new) = (directory.path().join("state"), directory.path().join("other"));
    let mut state = Checkpointed::new(&old);
    let (director, rebuilt, _writer) = at_a_hole(directory.path(), &mut state);
    let handle = StateHandle::new(state.engine.store().handle());
    let mut director = director.with_state(handle.clone());
    rebuilt.0.lock().2 = true;
    state.refuse(4);
    let is_held = |director: &ExporterLoop| director.living_is_held();
    for second in 1..20 {
        director.turn(SECOND * 10 * second, 0);
        if is_held(&director) {
            break;
        }
    }
    assert!(is_held(&director), "it is about to tell what lives");
    handle.take_away();
    drop(state);
    assert!(!state::Store::wait_until_closed(&old, Duration::ZERO), "the exporter holds it");
    director.let_go_of_replaced_state(SECOND * 300);
    assert!(state::Store::wait_until_closed(&old, Duration::ZERO));
    director.turn(SECOND * 400, 0);
    let ExporterState::Failing(reason) = director.progress().position(0).state else { panic!("it waits") };
    assert!(reason.contains("takes the place of the partition's state"), "{reason}");
    let mut other = Checkpointed::new(&new);
    other.refuse(10);
    handle.put(other.engine.store().handle());
    *rebuilt.0.lock() = (true, Vec::new(), false);
    until_told(&mut director, 100, &rebuilt, 1);
    assert_eq!(rebuilt.0.lock().1.first().map(String::as_str), Some("living up to 10 of 1"));
}

#[test]
fn what_lives_is_told_of_a_state_that_was_restored_whatever_its_number() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut state = Checkpointed::new(&directory.path().join("state"));
    let (mut director, rebuilt, _writer) = at_a_hole(directory.path(), &mut state);
    until_told(&mut director, 1, &rebuilt, 6);
    // The older state that takes its place has fewer records, in another life.
    let mut restored = Checkpointed::new(&directory.path().join("restored"));
    restored.refuse(1);
    let value = IncarnationValue { incarnation: 2, key_counter: 1_000, position: 100 };
    restored
        .go_on(vec![Command::of_system(Key::NONE, Payload::Incarnation(IncarnationIntent::Raise, Box::new(value)))]);
    let mut director = director.with_state(StateHandle::new(restored.engine.store().handle()));
    until_told(&mut director, 100, &rebuilt, 6);
    assert_eq!(rebuilt.0.lock().1.last().map(String::as_str), Some("living up to 2 of 2"));
}
