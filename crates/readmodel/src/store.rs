//! The rows of a partition, written in transactions that hold the place up to which the records are in them.

mod audit;
mod user_task;

use std::sync::LazyLock;
use std::time::Duration;

use protocol::RecordPlace;
use rusqlite::Connection;

use crate::batch::{Batch, JobRow};
use crate::comparable;
use crate::database::Of::{Integer, Text};
use crate::database::{Bound, Database, Result, Write};
use crate::enumerations::JOB_STATES;
use crate::file;
use crate::gate::Gate;
use crate::rebuild;

/// Rows that are open for writing.
#[derive(Debug)]
pub(crate) struct Store {
    pub database: Database,
    /// Up to where the records are in them.
    pub place: RecordPlace,
    /// What searches in the file go through.
    pub gate: Gate,
    pub log_limits: LogLimits,
}

/// When a write-ahead log is too long to wait for a moment without searches, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLimits {
    /// New searches wait for a moment, so that it can begin anew.
    long: i64,
    /// Everybody waits until the searches that are under way are over, each of which has an end.
    max: i64,
}

impl Default for LogLimits {
    fn default() -> Self {
        LogLimits { long: 64 << 20, max: 256 << 20 }
    }
}

/// How long new searches, and what is written, wait at a log that is long, and at one that must not get longer: more than a search takes.
const PATIENCE: Duration = Duration::from_millis(50);
const PATIENCE_MAX: Duration = Duration::from_secs(6);

/// What a checkpoint of a write-ahead log found, in pages: less than none when somebody else was making one.
#[derive(Debug, Clone, Copy)]
struct Log {
    is_busy: bool,
    pages: i64,
    moved: i64,
}

impl Log {
    /// Moves what is in the log into the file, in a mode that SQLite knows.
    fn checkpoint(connection: &Connection, mode: &str) -> Result<Log> {
        let log = connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            Ok(Log { is_busy: row.get(0)?, pages: row.get(1)?, moved: row.get(2)? })
        })?;
        Ok(log)
    }

    /// Whether all of it is in the file, which is synced then.
    fn is_moved(self) -> bool {
        !self.is_busy && self.pages == self.moved
    }
}

impl Store {
    /// Writes a batch with the place up to which it goes.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        let Some(place) = batch.place else { return Ok(()) };
        let transaction = self.database.begin()?;
        write_instances(&self.database, batch)?;
        write_work(&self.database, batch)?;
        user_task::write(&self.database, batch)?;
        write_messages(&self.database, batch)?;
        write_decision_instances(&self.database, batch)?;
        write_timers(&self.database, batch)?;
        write_conditions(&self.database, batch)?;
        write_signal_subscriptions(&self.database, batch)?;
        write_job_counts(&self.database, batch)?;
        audit::write(&self.database, batch)?;
        write_counters(&self.database, batch)?;
        if let Some(at) = batch.living_told_at {
            rebuild::end(&self.database, at)?;
        }
        let numbers = [place.incarnation, place.position, place.number].map(|of| Bound::Integer(number(of)));
        self.database.execute("UPDATE place SET incarnation = ?, position = ?, number = ?", &numbers)?;
        transaction.commit()?;
        if let Database::PostgreSql(session) = &self.database {
            session.fence(place);
        }
        self.place = place;
        Ok(())
    }

    /// Makes durable what was written, and the write-ahead log of a file short; `false` when a reader was in the way of that. A
    /// server has done so with each transaction.
    pub fn checkpoint(&self) -> Result<bool> {
        let Database::Sqlite(connection) = &self.database else { return Ok(true) };
        let mut log = Log::checkpoint(connection, "PASSIVE")?;
        let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let bytes = log.pages.saturating_mul(page_bytes);
        let patience = if bytes >= self.log_limits.max { PATIENCE_MAX } else { PATIENCE };
        if bytes >= self.log_limits.long
            && let Some(_closed) = self.gate.close(patience)
        {
            // Somebody else who reads, as the check of the file does, is not worth that all searches wait for long.
            connection.busy_timeout(PATIENCE)?;
            let restarted = Log::checkpoint(connection, "RESTART");
            connection.busy_timeout(file::WRITER_PATIENCE)?;
            log = restarted?;
        }
        let is_short = log.is_moved();
        if !is_short {
            // What is durable must not depend on how long others read: a transaction that is synced makes all before it so.
            sync(connection)?;
        }
        Ok(is_short)
    }
}

/// Makes all transactions durable by one that is synced. SQLite writes and syncs nothing for a row that stays equal, so a
/// row is changed and changed back.
fn sync(connection: &Connection) -> Result<()> {
    let synced = connection.execute_batch(
        "PRAGMA synchronous = FULL; BEGIN IMMEDIATE;
         UPDATE place SET number = -1 - number; UPDATE place SET number = -1 - number; COMMIT;",
    );
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    connection.execute_batch("PRAGMA synchronous = NORMAL;")?;
    Ok(synced?)
}

/// Databases have signed numbers; positions do not reach beyond them.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

static PROCESS_INSTANCES: LazyLock<Write<10>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Integer, Integer, Integer, Integer, Integer, Text, Text],
        "INSERT INTO process_instance(key, process_definition_key, parent_process_instance_key,
             parent_element_instance_key, root_process_instance_key, state, start_date, end_date, tags, business_id)",
        "{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}",
        "ON CONFLICT(key) DO UPDATE SET process_definition_key = excluded.process_definition_key,
             state = excluded.state, end_date = excluded.end_date",
    )
});

static ELEMENT_INSTANCES: LazyLock<Write<7>> = LazyLock::new(|| {
    Write::insert(
        [Integer; 7],
        "INSERT INTO element_instance(key, process_instance_key, scope_key, element, state, start_date, end_date)",
        "{1}, {2}, {3}, {4}, {5}, {6}, {7}",
        "ON CONFLICT(key) DO UPDATE SET element = excluded.element, state = excluded.state, end_date = excluded.end_date",
    )
});

static SEQUENCE_FLOWS: LazyLock<Write<2>> = LazyLock::new(|| {
    Write::insert(
        [Integer; 2],
        "INSERT INTO sequence_flow(process_instance_key, element)",
        "{1}, {2}",
        "ON CONFLICT DO NOTHING",
    )
});

static VARIABLES: LazyLock<Write<6>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Text, Text, Text],
        "INSERT INTO variable(key, process_instance_key, scope_key, name, value, comparable)",
        "{1}, {2}, {3}, {4}, {5}, {6}",
        "ON CONFLICT(key) DO UPDATE SET value = excluded.value, comparable = excluded.comparable",
    )
});

static VARIABLE_NAMES: LazyLock<Write<2>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Text],
        "INSERT INTO variable_name(process_definition_key, name)",
        "{1}, {2}",
        "ON CONFLICT DO NOTHING",
    )
});

fn write_instances(database: &Database, batch: &Batch) -> Result<()> {
    let instances = batch.process_instances.iter().map(|(key, row)| {
        [
            (*key).into(),
            row.definition.into(),
            row.parent.into(),
            row.parent_element.into(),
            row.root.into(),
            row.state.into(),
            row.start.into(),
            row.end.into(),
            row.tags.as_deref().into(),
            row.business_id.as_deref().into(),
        ]
    });
    database.write(&PROCESS_INSTANCES, instances)?;
    let elements = batch.element_instances.iter().map(|(key, row)| {
        [
            (*key).into(),
            row.instance.into(),
            row.scope.into(),
            row.element.0.into(),
            row.state.into(),
            row.start.into(),
            row.end.into(),
        ]
    });
    database.write(&ELEMENT_INSTANCES, elements)?;
    let flows = batch.sequence_flows.iter().map(|(instance, element)| [(*instance).into(), element.0.into()]);
    database.write(&SEQUENCE_FLOWS, flows)?;
    let comparables: Vec<_> = batch.variables.values().map(|row| comparable::of_kept(&row.value)).collect();
    let variables = batch.variables.iter().zip(&comparables).map(|((key, row), comparable)| {
        [
            (*key).into(),
            row.instance.into(),
            row.scope.into(),
            (&*row.name).into(),
            (&*row.value).into(),
            (&**comparable).into(),
        ]
    });
    database.write(&VARIABLES, variables)?;
    let names = batch.variable_names.iter().map(|(definition, name)| [(*definition).into(), (&**name).into()]);
    database.write(&VARIABLE_NAMES, names)
}

/// What a batch knows of the state of a job.
#[derive(Clone, Copy, PartialEq)]
enum JobState {
    /// It is what it was.
    Kept,
    /// So it is, but with no end any more.
    GoesOn,
    Known,
}

impl JobState {
    const ALL: [JobState; 3] = [JobState::Kept, JobState::GoesOn, JobState::Known];

    fn of(row: &JobRow) -> JobState {
        match row.state {
            Some(_) => JobState::Known,
            None if row.goes_on => JobState::GoesOn,
            None => JobState::Kept,
        }
    }
}

/// For jobs that moved or not, and by what is known of their states.
static JOBS: LazyLock<[[Write<20>; 3]; 2]> =
    LazyLock::new(|| [false, true].map(|is_moved| JobState::ALL.map(|state| job(is_moved, state))));

fn job(is_moved: bool, state: JobState) -> Write<20> {
    let mut update = String::from(
        "ON CONFLICT(key) DO UPDATE SET worker = excluded.worker, retries = excluded.retries, deadline = excluded.deadline,
             last_update_time = excluded.last_update_time,
             is_denied = coalesce(excluded.is_denied, job.is_denied),
             denied_reason = coalesce(excluded.denied_reason, job.denied_reason),
             error_code = excluded.error_code, error_message = excluded.error_message, custom_headers = excluded.custom_headers",
    );
    if is_moved {
        update.push_str(", element = excluded.element");
    }
    update.push_str(match state {
        JobState::Known => {
            ", state = excluded.state, end_time = excluded.end_time,
             has_failed_with_retries_left = excluded.has_failed_with_retries_left"
        }
        JobState::GoesOn => ", end_time = NULL",
        // A job that goes on, because the incident of an error is resolved, has no end: a worker has it.
        JobState::Kept => ", end_time = CASE WHEN excluded.deadline IS NULL THEN job.end_time END",
    });
    Write::insert(
        [
            Integer, Integer, Integer, Integer, Text, Text, Integer, Integer, Integer, Integer, Integer, Integer, Integer,
            Text, Text, Text, Integer, Integer, Integer, Text,
        ],
        "INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind, retries,
             has_failed_with_retries_left, deadline, creation_time, last_update_time, end_time, error_code, error_message,
             custom_headers, listener_event_type, is_denied, denied_reason)",
        "{1}, {2}, {3}, {4}, {5}, {6}, {7}, {17}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16}, {18}, {19}, {20}",
        &update,
    )
}

static INCIDENTS: LazyLock<Write<10>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Integer, Integer, Integer, Text, Integer, Integer, Integer],
        "INSERT INTO incident(key, process_instance_key, element_instance_key, element, job_key, error_type,
             error_message, error_hash_code, state, creation_time)",
        "{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}",
        "ON CONFLICT(key) DO UPDATE SET element = excluded.element, state = excluded.state",
    )
});

fn write_work(database: &Database, batch: &Batch) -> Result<()> {
    for is_moved in [false, true] {
        for (state, write) in JobState::ALL.iter().zip(&JOBS[usize::from(is_moved)]) {
            let alike = |row: &JobRow| row.is_moved == is_moved && JobState::of(row) == *state;
            let jobs = batch.jobs.iter().filter(|(_, row)| alike(row)).map(|(key, row)| job_values(*key, row));
            database.write(write, jobs)?;
        }
    }
    let incidents = batch.incidents.iter().map(|(key, row)| {
        [
            (*key).into(),
            row.instance.into(),
            row.element_instance.into(),
            row.element.0.into(),
            row.job.into(),
            row.error_type.into(),
            (&*row.message).into(),
            java_hash_code(&row.message).into(),
            row.state.into(),
            row.created.into(),
        ]
    });
    database.write(&INCIDENTS, incidents)
}

fn job_values(key: i64, row: &JobRow) -> [Bound<'_>; 20] {
    static FAILED: LazyLock<Option<usize>> = LazyLock::new(|| JOB_STATES.iter().position(|state| *state == "FAILED"));
    let has_failed = row.state.map(usize::from) == *FAILED && row.retries > 0;
    [
        key.into(),
        row.instance.into(),
        row.element_instance.into(),
        row.element.0.into(),
        (&*row.job_type).into(),
        (&*row.worker).into(),
        row.state.unwrap_or_default().into(),
        row.retries.into(),
        has_failed.into(),
        row.deadline.into(),
        row.created.into(),
        row.updated.into(),
        row.end.into(),
        row.error_code.as_deref().into(),
        row.error_message.as_deref().into(),
        (&*row.headers).into(),
        row.kind.into(),
        row.listener_event_type.into(),
        row.is_denied.map(u8::from).into(),
        row.denied_reason.as_deref().into(),
    ]
}

/// Of a text, as clients of the protocol compute it: over its UTF-16 units.
fn java_hash_code(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

static SUBSCRIPTIONS: LazyLock<Write<12>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Text, Integer, Integer, Text, Text, Text, Integer, Integer, Text],
        "INSERT INTO message_subscription(key, type, process_definition_key, process_definition_id, process_instance_key,
             element_instance_key, element_id, message_name, correlation_key, state, last_updated_date, tenant_id)",
        "{1}, {2}, coalesce({3}, (SELECT process_definition_key FROM process_instance WHERE key = {5})), {4}, {5}, {6}, {7},
             {8}, {9}, {10}, {11}, {12}",
        "ON CONFLICT(key) DO UPDATE SET process_definition_key = excluded.process_definition_key,
             process_definition_id = excluded.process_definition_id, element_id = excluded.element_id,
             state = excluded.state, last_updated_date = excluded.last_updated_date",
    )
});

static CORRELATIONS: LazyLock<Write<11>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Text, Text, Integer, Integer, Text, Integer, Integer, Text, Text],
        "INSERT INTO correlated_message_subscription(subscription_key, message_key, message_name, correlation_key,
             correlation_time, process_definition_key, process_definition_id, process_instance_key, element_instance_key,
             element_id, tenant_id)",
        "{1}, {2}, {3}, {4}, {5}, coalesce({6}, (SELECT process_definition_key FROM process_instance WHERE key = {8})), {7},
             {8}, {9}, {10}, {11}",
        "",
    )
});

fn write_messages(database: &Database, batch: &Batch) -> Result<()> {
    let subscriptions = batch.subscriptions.iter().map(|(key, row)| {
        [
            (*key).into(),
            row.is_start.into(),
            row.definition.into(),
            (&*row.process_id).into(),
            row.instance.into(),
            row.element_instance.into(),
            (&*row.element_id).into(),
            (&*row.message_name).into(),
            row.correlation_key.as_deref().into(),
            row.state.into(),
            row.updated.into(),
            (&*row.tenant).into(),
        ]
    });
    database.write(&SUBSCRIPTIONS, subscriptions)?;
    let correlations = batch.correlations.iter().map(|row| {
        [
            row.subscription.into(),
            row.message.into(),
            (&*row.message_name).into(),
            row.correlation_key.as_deref().into(),
            row.time.into(),
            row.definition.into(),
            (&*row.process_id).into(),
            row.instance.into(),
            row.element_instance.into(),
            (&*row.element_id).into(),
            (&*row.tenant).into(),
        ]
    });
    database.write(&CORRELATIONS, correlations)
}

static DECISION_INSTANCES: LazyLock<Write<18>> = LazyLock::new(|| {
    const COLUMNS: [&str; 18] = [
        "evaluation_key",
        "instance_key",
        "decision_definition_key",
        "decision_definition_id",
        "decision_definition_name",
        "decision_definition_version",
        "decision_definition_type",
        "root_decision_definition_key",
        "decision_requirements_key",
        "state",
        "evaluation_date",
        "failure",
        "result",
        "details",
        "process_definition_key",
        "process_instance_key",
        "element_instance_key",
        "tenant_id",
    ];
    let values: Vec<String> = (1..=COLUMNS.len()).map(|number| format!("{{{number}}}")).collect();
    let update: Vec<String> = COLUMNS.iter().map(|column| format!("{column} = excluded.{column}")).collect();
    Write::insert(
        [
            Integer, Text, Integer, Text, Text, Integer, Integer, Integer, Integer, Integer, Integer, Text, Text, Text,
            Integer, Integer, Integer, Text,
        ],
        &format!("INSERT INTO decision_instance({})", COLUMNS.join(", ")),
        &values.join(", "),
        &format!("ON CONFLICT(instance_key) DO UPDATE SET {}", update.join(", ")),
    )
});

fn write_decision_instances(database: &Database, batch: &Batch) -> Result<()> {
    let rows = batch.decision_instances.iter().map(|row| {
        [
            row.evaluation.into(),
            (&*row.instance_key).into(),
            row.definition.into(),
            (&*row.id).into(),
            (&*row.name).into(),
            row.version.into(),
            row.decision_type.into(),
            row.root_definition.into(),
            row.requirements.into(),
            row.state.into(),
            row.date.into(),
            row.failure.as_deref().into(),
            (&*row.result).into(),
            (&row.details).into(),
            row.process_definition.into(),
            row.process_instance.into(),
            row.element_instance.into(),
            (&*row.tenant).into(),
        ]
    });
    database.write(&DECISION_INSTANCES, rows)
}

static TIMERS: LazyLock<Write<6>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Text, Integer, Integer],
        "INSERT INTO timer(key, process_instance_key, element_instance_key, element_id, due_date, repetitions)",
        "{1}, {2}, {3}, {4}, {5}, {6}",
        "ON CONFLICT(key) DO UPDATE SET element_id = excluded.element_id, due_date = excluded.due_date,
             repetitions = excluded.repetitions",
    )
});

fn write_timers(database: &Database, batch: &Batch) -> Result<()> {
    let open = batch.timers.iter().filter_map(|(key, change)| {
        let row = change.as_ref()?;
        Some([
            (*key).into(),
            row.instance.into(),
            row.element_instance.into(),
            (&*row.element_id).into(),
            row.due.into(),
            row.repetitions.into(),
        ])
    });
    database.write(&TIMERS, open)?;
    let gone = batch.timers.iter().filter(|(_, change)| change.is_none()).map(|(key, _)| *key);
    delete(database, "timer", gone)
}

static CONDITIONS: LazyLock<Write<6>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Text, Text, Text],
        "INSERT INTO condition(key, process_instance_key, element_instance_key, element_id, expression, events)",
        "{1}, {2}, {3}, {4}, {5}, {6}",
        "ON CONFLICT(key) DO UPDATE SET element_id = excluded.element_id, expression = excluded.expression,
             events = excluded.events",
    )
});

fn write_conditions(database: &Database, batch: &Batch) -> Result<()> {
    let open = batch.conditions.iter().filter_map(|(key, change)| {
        let row = change.as_ref()?;
        Some([
            (*key).into(),
            row.instance.into(),
            row.element_instance.into(),
            (&*row.element_id).into(),
            (&*row.expression).into(),
            (&*row.events).into(),
        ])
    });
    database.write(&CONDITIONS, open)?;
    let gone = batch.conditions.iter().filter(|(_, change)| change.is_none()).map(|(key, _)| *key);
    delete(database, "condition", gone)
}

// The row of the element that waits is there before, unless it is the process instance itself.
static SIGNAL_SUBSCRIPTIONS: LazyLock<Write<4>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Text, Text],
        "INSERT INTO signal_subscription(key, process_instance_key, element_instance_key, element_id, signal_name)",
        "{1}, coalesce((SELECT process_instance_key FROM element_instance WHERE key = {2}), {2}), {2}, {3}, {4}",
        "ON CONFLICT(key) DO UPDATE SET element_id = excluded.element_id, signal_name = excluded.signal_name",
    )
});

fn write_signal_subscriptions(database: &Database, batch: &Batch) -> Result<()> {
    let open = batch.signal_subscriptions.iter().filter_map(|(key, change)| {
        let row = change.as_ref()?;
        Some([(*key).into(), row.element_instance.into(), (&*row.element_id).into(), (&*row.signal_name).into()])
    });
    database.write(&SIGNAL_SUBSCRIPTIONS, open)?;
    let gone = batch.signal_subscriptions.iter().filter(|(_, change)| change.is_none()).map(|(key, _)| *key);
    delete(database, "signal_subscription", gone)
}

/// Deletes rows by their keys.
fn delete(database: &Database, table: &str, keys: impl Iterator<Item = i64>) -> Result<()> {
    let keys: Vec<String> = keys.map(|key| key.to_string()).collect();
    for keys in keys.chunks(500) {
        database.execute(&format!("DELETE FROM {table} WHERE key IN ({})", keys.join(",")), &[])?;
    }
    Ok(())
}

static JOB_COUNTS: LazyLock<Write<9>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Text, Text, Integer, Integer, Integer, Integer, Integer, Integer],
        "INSERT INTO job_count(time, type, worker, created, created_at, completed, completed_at, failed, failed_at)",
        "{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}",
        "ON CONFLICT(time, type, worker) DO UPDATE SET created = job_count.created + excluded.created,
             created_at = coalesce(excluded.created_at, job_count.created_at),
             completed = job_count.completed + excluded.completed,
             completed_at = coalesce(excluded.completed_at, job_count.completed_at),
             failed = job_count.failed + excluded.failed, failed_at = coalesce(excluded.failed_at, job_count.failed_at)",
    )
});

fn write_job_counts(database: &Database, batch: &Batch) -> Result<()> {
    let counts = batch.jobs_counted.iter().map(|((time, job_type, worker), of)| {
        [
            (*time).into(),
            (&**job_type).into(),
            (&**worker).into(),
            of.created.count.into(),
            of.created.last.into(),
            of.completed.count.into(),
            of.completed.last.into(),
            of.failed.count.into(),
            of.failed.last.into(),
        ]
    });
    database.write(&JOB_COUNTS, counts)
}

static COUNTERS: LazyLock<Write<5>> = LazyLock::new(|| {
    Write::update(
        [Integer; 5],
        "UPDATE element SET active = active + {2}, completed = completed + {3}, canceled = canceled + {4},
             incidents = incidents + {5}",
        "id = {1}",
    )
});

static INSTANCE_INCIDENTS: LazyLock<Write<2>> = LazyLock::new(|| {
    Write::update([Integer; 2], "UPDATE process_instance SET incidents = incidents + {2}", "key = {1}")
});

static ELEMENT_INCIDENTS: LazyLock<Write<4>> = LazyLock::new(|| {
    Write::update(
        [Integer; 4],
        "UPDATE element_instance SET incidents = incidents + {2},
             incident_key = CASE WHEN {3} > 0 THEN {4} ELSE incident_key END",
        "key = {1}",
    )
});

fn write_counters(database: &Database, batch: &Batch) -> Result<()> {
    let counters = batch.counters.iter().map(|(element, counted)| {
        [element.0, counted.active, counted.completed, counted.canceled, counted.incidents].map(Bound::Integer)
    });
    database.write(&COUNTERS, counters)?;
    let changes = batch.instance_incidents.iter().filter(|(_, change)| **change != 0);
    database.write(&INSTANCE_INCIDENTS, changes.map(|(instance, change)| [*instance, *change].map(Bound::Integer)))?;
    let troubled = batch.element_incidents.iter().map(|(element, troubled)| {
        let own = troubled.own.flatten();
        [(*element).into(), troubled.incidents.into(), troubled.own.is_some().into(), own.into()]
    });
    database.write(&ELEMENT_INCIDENTS, troubled)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::query::Readers;
    use crate::testing::{self, PARTITION};

    /// Searches for a millisecond each, one behind the other, until that is over.
    fn search(mut readers: Readers, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            readers.begin(Instant::now() + Duration::from_secs(60));
            let read = readers.read(PARTITION, |database| {
                let _snapshot = database.snapshot()?;
                database.number("SELECT count(*) FROM variable");
                std::thread::sleep(Duration::from_millis(1));
                Ok(())
            });
            read.expect("it is read");
        }
    }

    /// Another program does that with a file that it knows nothing of.
    #[test]
    fn a_checkpoint_that_was_not_made_is_not_taken_for_one() {
        use std::os::fd::AsRawFd;

        /// In the file of shared memory, as the format of SQLite says.
        const CHECKPOINT_LOCK: libc::off_t = 121;
        let opened = testing::in_file();
        opened.store.database.script("INSERT INTO variable VALUES (1, 1, 1, 'v', '1', '1')");
        let file = opened.source.file(PARTITION).expect("a file").with_extension("sqlite-shm");
        let shared = std::fs::File::options().read(true).write(true).open(file).expect("it is there");
        let mut lock = libc::flock {
            l_type: libc::F_WRLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: CHECKPOINT_LOCK,
            l_len: 1,
            l_pid: 0,
        };
        // SAFETY: the call reads a structure that lives until it returns. The lock is of this open file, and so in the way of others
        // of the same process.
        let locked = unsafe { libc::fcntl(shared.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        assert_eq!(locked, 0, "nobody else has it");
        let log = opened.source.file(PARTITION).expect("a file").with_extension("sqlite-wal");
        let bytes = || std::fs::metadata(&log).expect("a log").len();
        let before = bytes();
        assert!(!opened.store.checkpoint().expect("it is passed over"));
        // What SQLite does not write, it does not sync either.
        assert!(bytes() > before, "a transaction that is synced makes all before it durable");
        assert_eq!(opened.store.database.number("SELECT number FROM place"), 0);
        drop(shared);
        assert!(opened.store.checkpoint().expect("a checkpoint"));
    }

    #[test]
    fn searches_that_overlap_without_a_pause_do_not_make_the_write_ahead_log_grow() {
        const ROUNDS: i64 = 200;
        let mut opened = testing::in_file();
        opened.store.log_limits = LogLimits { long: 1 << 20, max: 4 << 20 };
        let file = opened.source.file(PARTITION).expect("a file");
        let log = file.with_extension("sqlite-wal");
        let is_over = AtomicBool::new(false);
        let mut longest = 0;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let readers = opened.readers();
                scope.spawn(|| search(readers, &is_over));
            }
            for round in 0..ROUNDS {
                // More than a quarter of a megabyte each.
                opened
                    .store
                    .database
                    .script(&format!("INSERT INTO variable VALUES ({round}, 1, 1, 'v', hex(zeroblob(131072)), 'x')"));
                opened.store.checkpoint().expect("a checkpoint");
                longest = longest.max(std::fs::metadata(&log).expect("a log").len());
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(longest < 6 << 20, "{longest} bytes of {} that were written", ROUNDS << 18);
        assert_eq!(opened.store.database.number("SELECT count(*) FROM variable"), ROUNDS);
    }
}
