use std::os::unix::fs::FileExt;
use std::path::Path;

use protocol::{Key, Payload, Record, RecordType, VariableIntent, VariableValue};

use super::exporter_loop::TURN_RECORDS;
use super::*;
use crate::record_log::{RecordLogOptions, RecordWriter};

const FIRST: PartitionId = PartitionId(1);
const SECOND: PartitionId = PartitionId(2);

/// Acknowledges what it took when it is flushed, or loses it all.
#[derive(Default)]
struct Told {
    opened: usize,
    taken: Vec<(PartitionId, u64)>,
    unacknowledged: Vec<(PartitionId, u64)>,
    flushes: usize,
    loses_next_flush: bool,
}

#[derive(Default)]
struct Flushed(Arc<Mutex<Told>>, Option<Controller>);

impl Exporter for Flushed {
    fn configure(&mut self, _: &mut exporters::Context) -> Result<(), ExporterError> {
        Ok(())
    }

    fn open(&mut self, controller: Controller) -> Result<(), ExporterError> {
        self.0.lock().opened += 1;
        self.1 = Some(controller);
        Ok(())
    }

    fn export(&mut self, partition: PartitionId, record: &Record) -> Result<(), ExporterError> {
        let mut told = self.0.lock();
        told.taken.push((partition, record.position));
        told.unacknowledged.push((partition, record.position));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExporterError> {
        let mut told = self.0.lock();
        told.flushes += 1;
        let unacknowledged = std::mem::take(&mut told.unacknowledged);
        if std::mem::take(&mut told.loses_next_flush) {
            return Err(ExporterError::lost("flushed", "sync its file", "the disk is gone"));
        }
        for (partition, position) in unacknowledged {
            self.1.as_ref().expect("opened").acknowledge(partition, position);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExporterError> {
        Ok(())
    }
}

fn write(writer: &mut RecordWriter, positions: impl IntoIterator<Item = u64>) {
    for position in positions {
        let value = VariableValue {
            name: "amount".into(),
            value: "12.5".into(),
            scope_key: Key::NONE,
            process_instance_key: Key::NONE,
            process_definition_key: Key::NONE,
            bpmn_process_id: "order".into(),
            tenant_id: protocol::DEFAULT_TENANT.into(),
        };
        writer.append(&Record {
            position,
            source_position: 1,
            key: Key::NONE,
            timestamp: 1,
            record_type: RecordType::Event,
            operation_reference: None,
            payload: Payload::Variable(VariableIntent::Created, Box::new(value)),
        });
    }
    writer.flush().expect("the disk has room");
}

fn records(directory: &Path, partition: PartitionId) -> (Arc<RecordLog>, RecordWriter) {
    let directory = directory.join(partition.to_string());
    RecordLog::open(RecordLogOptions::for_test(partition, &directory, 16 << 20), 0).expect("new")
}

/// A director that is driven by calls, and the calls that its exporter got.
fn director(directory: &Path, logs: &[Arc<RecordLog>]) -> (ExporterLoop, Arc<Mutex<Told>>) {
    let told = Arc::new(Mutex::new(Told::default()));
    let exporter = Box::new(Flushed(told.clone(), None));
    let (positions, acknowledged) = PositionsFile::open(directory.join("flushed.positions"), 2).expect("new");
    let progress = Arc::new(ExporterProgress::new("flushed", &acknowledged, logs, 0));
    let configured: (Box<dyn Exporter>, _) = (exporter, RecordFilter::default());
    (ExporterLoop::new(configured, progress, positions), told)
}

#[test]
fn a_partition_that_cannot_be_read_holds_up_no_acknowledgement_of_another_under_load() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (damaged, mut damaged_writer) = records(directory.path(), FIRST);
    let (sound, mut sound_writer) = records(directory.path(), SECOND);
    write(&mut damaged_writer, 1..=10);
    let segment = directory.path().join("1").join(format!("{:020}.records", 0));
    let bytes = std::fs::read(&segment).expect("there");
    let file = std::fs::File::options().write(true).open(&segment).expect("there");
    file.write_all_at(&[!bytes[bytes.len() / 2]], bytes.len() as u64 / 2).expect("writable");
    let (mut director, told) = director(directory.path(), &[damaged, sound]);
    let turn_records = TURN_RECORDS as u64;
    write(&mut sound_writer, 1..=2 * turn_records);
    let start = Duration::ZERO;
    for turn in 1..=5 {
        // There is always more than one turn takes.
        write(&mut sound_writer, (turn + 1) * turn_records + 1..=(turn + 2) * turn_records);
        assert!(director.turn(start, 0), "more waits in the sound partition");
        let acknowledged = |partition| director.progress.acknowledged(partition);
        assert_eq!(acknowledged(SECOND), turn * turn_records);
        assert!((1..10).contains(&acknowledged(FIRST)), "up to the damage");
    }
    let status = director.progress.status(0);
    assert!(
        matches!(&status.state, ExporterState::Failing(reason) if reason.contains("is damaged at byte")),
        "{status:?}"
    );
    assert_eq!(told.lock().flushes, 5);
    // The damaged partition is tried again when its pause is over, and not before.
    let before = director.sources[0].retry.at().expect("it failed");
    director.turn(before - Duration::from_millis(1), 0);
    assert_eq!(director.sources[0].retry.at(), Some(before));
    director.turn(before, 0);
    assert!(director.sources[0].retry.at() > Some(before));
}

#[test]
fn what_an_exporter_lost_comes_again_from_the_last_acknowledgement() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (first, mut first_writer) = records(directory.path(), FIRST);
    let (second, mut second_writer) = records(directory.path(), SECOND);
    let (mut director, told) = director(directory.path(), &[first, second]);
    write(&mut first_writer, 1..=3);
    director.turn(Duration::ZERO, 0);
    write(&mut first_writer, 4..=5);
    write(&mut second_writer, 1..=2);
    told.lock().loses_next_flush = true;
    director.turn(Duration::ZERO, 0);
    assert_eq!(director.progress.acknowledged(FIRST), 3);
    assert_eq!(director.progress.acknowledged(SECOND), 0);
    told.lock().taken.clear();
    director.turn(director.retry.at().expect("it failed"), 0);
    let told = told.lock();
    assert_eq!(told.taken, [(FIRST, 4), (FIRST, 5), (SECOND, 1), (SECOND, 2)]);
    assert_eq!(told.opened, 2);
    assert_eq!((director.progress.acknowledged(FIRST), director.progress.acknowledged(SECOND)), (5, 2));
    assert_eq!(director.progress.status(0).state, ExporterState::Exporting);
}
