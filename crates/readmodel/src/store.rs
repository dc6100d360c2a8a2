//! The file of a partition: opened, checked, written in transactions that hold the place up to which it was read.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metrics::counter;
use protocol::{PartitionId, RecordPlace};
use rusqlite::{Connection, OpenFlags, Transaction, params};

use crate::batch::{Batch, DecisionInstanceRow, SubscriptionRow};
use crate::comparable::comparable;
use crate::enumerations::JOB_STATES;
use crate::migration;
use crate::schema::{APPLICATION_ID, SCHEMA_VERSION, TABLES};

/// The pages that a writer keeps in memory, in KiB.
const WRITER_CACHE_KIB: i64 = 8 << 10;
/// Statements that are kept prepared.
const STATEMENTS: usize = 64;

/// Why a read model cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum StoreError {
    /// SQLite says so.
    #[error("the read model {path} cannot be used: {source}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    /// The directory cannot be changed.
    #[error("the directory of the read model cannot be changed: {path}: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
    /// It is of another version or partition.
    #[error("the read model {path} {problem}")]
    Other { path: PathBuf, problem: String },
}

/// Where the read model of a partition is.
pub(crate) fn path_of(directory: &Path, partition: PartitionId) -> PathBuf {
    directory.join(format!("partition-{partition}.sqlite"))
}

/// A file that is open for writing.
#[derive(Debug)]
pub(crate) struct Store {
    pub connection: Connection,
    /// Up to where the records are in it.
    pub place: RecordPlace,
}

impl Store {
    /// Opens the file, or makes a new one. A file that is damaged or was made by another version is set aside: it is said which, and
    /// what there still is in the record stream is read again.
    ///
    /// # Errors
    /// When the directory or a new file cannot be written.
    pub fn open(directory: &Path, partition: PartitionId) -> Result<Store, StoreError> {
        // What is in it is nobody else's business.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| StoreError::Directory { path: directory.to_owned(), source })?;
        let path = path_of(directory, partition);
        match open_checked(&path, partition) {
            Ok(store) => Ok(store),
            Err(error) if is_passing(&error) => Err(error),
            Err(error) => {
                set_aside(&path, partition, &error.to_string())?;
                open_checked(&path, partition)
            }
        }
    }

    /// Sets aside a file in which damage was found, and makes a new one.
    ///
    /// # Errors
    /// When the directory or a new file cannot be written.
    pub fn open_instead(directory: &Path, partition: PartitionId, damage: &str) -> Result<Store, StoreError> {
        let path = path_of(directory, partition);
        set_aside(&path, partition, damage)?;
        open_checked(&path, partition)
    }

    /// Writes a batch with the place up to which it goes.
    pub fn write(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        let Some(place) = batch.place else { return Ok(()) };
        let transaction = self.connection.transaction()?;
        write_instances(&transaction, batch)?;
        write_work(&transaction, batch)?;
        write_messages(&transaction, batch)?;
        for row in &batch.decision_instances {
            write_decision_instance(&transaction, row)?;
        }
        write_counters(&transaction, batch)?;
        transaction.prepare_cached("UPDATE place SET incarnation = ?, position = ?, number = ?")?.execute(params![
            number(place.incarnation),
            number(place.position),
            number(place.number)
        ])?;
        transaction.commit()?;
        self.place = place;
        Ok(())
    }

    /// Makes durable what was written, and the write-ahead log short; `false` when a reader was in the way of a part of it.
    pub fn checkpoint(&self) -> rusqlite::Result<bool> {
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            let (frames, moved): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(frames == moved)
        })
    }
}

/// SQLite has signed numbers; positions do not reach beyond them.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn open_checked(path: &Path, partition: PartitionId) -> Result<Store, StoreError> {
    let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    prepare(&connection).map_err(failed)?;
    let version: i64 = pragma(&connection, "user_version").map_err(failed)?;
    let application: i64 = pragma(&connection, "application_id").map_err(failed)?;
    if (version, application) == (0, 0) {
        create(&connection, partition).map_err(failed)?;
    } else if application == APPLICATION_ID && migration::is_known(version) {
        migration::migrate(&connection, version).map_err(failed)?;
    } else {
        let problem = format!("has the format {application:x}/{version}, and this version has {SCHEMA_VERSION}");
        return Err(StoreError::Other { path: path.to_owned(), problem });
    }
    let select = "SELECT partition, incarnation, position, number FROM place";
    let (of, place) = connection
        .query_row(select, [], |row| {
            let unsigned = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            let place = RecordPlace { incarnation: unsigned(1)?, position: unsigned(2)?, number: unsigned(3)? };
            Ok((row.get::<_, u16>(0)?, place))
        })
        .map_err(failed)?;
    if of != partition.0 {
        let problem = format!("is of partition {of}, but it lies where that of partition {partition} belongs");
        return Err(StoreError::Other { path: path.to_owned(), problem });
    }
    Ok(Store { connection, place })
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
         PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{WRITER_CACHE_KIB};"
    ))
}

fn create(connection: &Connection, partition: PartitionId) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN; {TABLES} INSERT INTO place VALUES (1, {partition}, 0, 0, 0);
         PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    ))
}

/// Whether the same file may be fine another time: nothing says that it is damaged.
fn is_passing(error: &StoreError) -> bool {
    use rusqlite::ErrorCode;
    match error {
        StoreError::Sqlite { source, .. } => !matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None
        ),
        StoreError::Directory { .. } => true,
        StoreError::Other { .. } => false,
    }
}

/// Moves a file out of the way, with those that SQLite keeps beside it, and says so.
fn set_aside(path: &Path, partition: PartitionId, damage: &str) -> Result<(), StoreError> {
    let failed = |source| StoreError::Directory { path: path.to_owned(), source };
    let with = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let free = (1..).map(|count| format!(".damaged-{count}")).find(|suffix| !with(suffix).exists());
    let suffix = free.expect("there are more numbers than files");
    for beside in ["", "-wal"] {
        if with(beside).exists() {
            std::fs::rename(with(beside), with(&format!("{suffix}{beside}"))).map_err(failed)?;
        }
    }
    // Only an index of the other two.
    let _ = std::fs::remove_file(with("-shm"));
    counter!("osmia_read_model_set_aside_total", "partition" => partition.to_string()).increment(1);
    tracing::error!(
        %partition, damage, set_aside = %with(&suffix).display(),
        "the read model was set aside; a new one is made of the records that are still there, and searches lack what happened before them"
    );
    Ok(())
}

fn write_instances(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO process_instance(key, process_definition_key, parent_process_instance_key,
             parent_element_instance_key, root_process_instance_key, state, start_date, end_date, tags)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(key) DO UPDATE SET
             process_definition_key = ?2, state = ?6, end_date = ?8",
    )?;
    for (key, row) in &batch.process_instances {
        insert.execute(params![
            key,
            row.definition,
            row.parent,
            row.parent_element,
            row.root,
            row.state,
            row.start,
            row.end,
            row.tags
        ])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO element_instance(key, process_instance_key, scope_key, element, state, start_date, end_date)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(key) DO UPDATE SET element = ?4, state = ?5, end_date = ?7",
    )?;
    for (key, row) in &batch.element_instances {
        insert.execute(params![key, row.instance, row.scope, row.element.0, row.state, row.start, row.end])?;
    }
    let mut insert = transaction.prepare_cached("INSERT OR IGNORE INTO sequence_flow VALUES (?, ?)")?;
    for (instance, element) in &batch.sequence_flows {
        insert.execute(params![instance, element.0])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO variable(key, process_instance_key, scope_key, name, value, comparable)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(key) DO UPDATE SET value = ?5, comparable = ?6",
    )?;
    for (key, row) in &batch.variables {
        let comparable = comparable(&row.value);
        insert.execute(params![key, row.instance, row.scope, &*row.name, &*row.value, comparable.prefix()])?;
    }
    Ok(())
}

fn write_work(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind, retries,
             has_failed_with_retries_left, deadline, creation_time, last_update_time, end_time, error_code, error_message,
             custom_headers)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, 0), 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT(key) DO UPDATE SET element = iif(?17, ?4, element), worker = ?6, state = coalesce(?7, state),
             retries = ?8, has_failed_with_retries_left = iif(?7 IS NULL, has_failed_with_retries_left, ?9), deadline = ?10,
             last_update_time = ?12, end_time = coalesce(?13, end_time), error_code = ?14, error_message = ?15,
             custom_headers = ?16",
    )?;
    let failed = JOB_STATES.iter().position(|state| *state == "FAILED");
    for (key, row) in &batch.jobs {
        let has_failed = row.state.map(usize::from) == failed && row.retries > 0;
        insert.execute(params![
            key,
            row.instance,
            row.element_instance,
            row.element.0,
            &*row.job_type,
            &*row.worker,
            row.state,
            row.retries,
            has_failed,
            row.deadline,
            row.created,
            row.updated,
            row.end,
            row.error_code.as_deref(),
            row.error_message.as_deref(),
            &*row.headers,
            row.is_moved,
        ])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO incident(key, process_instance_key, element_instance_key, element, job_key, error_type,
             error_message, error_hash_code, state, creation_time)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT(key) DO UPDATE SET element = ?4, state = ?9",
    )?;
    for (key, row) in &batch.incidents {
        insert.execute(params![
            key,
            row.instance,
            row.element_instance,
            row.element.0,
            row.job,
            row.error_type,
            &*row.message,
            java_hash_code(&row.message),
            row.state,
            row.created,
        ])?;
    }
    Ok(())
}

/// Of a text, as clients of the protocol compute it: over its UTF-16 units.
fn java_hash_code(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn write_messages(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    const DEFINITION: &str = "(SELECT process_definition_key FROM process_instance WHERE key = ?4)";
    let mut insert = transaction.prepare_cached(&format!(
        "INSERT INTO message_subscription(key, type, process_definition_key, process_definition_id, process_instance_key,
             element_instance_key, element_id, message_name, correlation_key, state, last_updated_date, tenant_id)
         VALUES (?1, ?2, coalesce(?3, {DEFINITION}), ?5, ?4, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT(key) DO UPDATE SET process_definition_key = coalesce(?3, {DEFINITION}),
             process_definition_id = ?5, element_id = ?7, state = ?10, last_updated_date = ?11"
    ))?;
    for (key, row) in &batch.subscriptions {
        write_subscription(&mut insert, *key, row)?;
    }
    let mut insert = transaction.prepare_cached(&format!(
        "INSERT INTO correlated_message_subscription(subscription_key, message_key, message_name, correlation_key,
             correlation_time, process_definition_key, process_definition_id, process_instance_key, element_instance_key,
             element_id, tenant_id)
         VALUES (?1, ?2, ?3, ?11, ?5, coalesce(?6, {DEFINITION}), ?7, ?4, ?8, ?9, ?10)"
    ))?;
    for row in &batch.correlations {
        insert.execute(params![
            row.subscription,
            row.message,
            &*row.message_name,
            row.instance,
            row.time,
            row.definition,
            &*row.process_id,
            row.element_instance,
            &*row.element_id,
            &*row.tenant,
            row.correlation_key.as_deref(),
        ])?;
    }
    Ok(())
}

fn write_subscription(
    insert: &mut rusqlite::CachedStatement<'_>,
    key: i64,
    row: &SubscriptionRow,
) -> rusqlite::Result<()> {
    insert.execute(params![
        key,
        row.is_start,
        row.definition,
        row.instance,
        &*row.process_id,
        row.element_instance,
        &*row.element_id,
        &*row.message_name,
        row.correlation_key.as_deref(),
        row.state,
        row.updated,
        &*row.tenant,
    ])?;
    Ok(())
}

fn write_decision_instance(transaction: &Transaction<'_>, row: &DecisionInstanceRow) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO decision_instance(evaluation_key, instance_key, decision_definition_key,
             decision_definition_id, decision_definition_name, decision_definition_version, decision_definition_type,
             root_decision_definition_key, decision_requirements_key, state, evaluation_date, failure, result, details,
             process_definition_key, process_instance_key, element_instance_key, tenant_id)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    insert.execute(params![
        row.evaluation,
        &*row.instance_key,
        row.definition,
        &*row.id,
        &*row.name,
        row.version,
        row.decision_type,
        row.root_definition,
        row.requirements,
        row.state,
        row.date,
        row.failure.as_deref(),
        &*row.result,
        row.details,
        row.process_definition,
        row.process_instance,
        row.element_instance,
        &*row.tenant,
    ])?;
    Ok(())
}

fn write_counters(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut update = transaction.prepare_cached(
        "UPDATE element SET active = active + ?2, completed = completed + ?3, canceled = canceled + ?4,
             incidents = incidents + ?5 WHERE id = ?1",
    )?;
    for (element, counted) in &batch.counters {
        let counts = params![element.0, counted.active, counted.completed, counted.canceled, counted.incidents];
        update.execute(counts)?;
    }
    let mut update =
        transaction.prepare_cached("UPDATE process_instance SET incidents = incidents + ?2 WHERE key = ?1")?;
    for (instance, change) in batch.instance_incidents.iter().filter(|(_, change)| **change != 0) {
        update.execute(params![instance, change])?;
    }
    let mut update = transaction.prepare_cached(
        "UPDATE element_instance SET incidents = incidents + ?2, incident_key = iif(?3, ?4, incident_key) WHERE key = ?1",
    )?;
    for (element, troubled) in &batch.element_incidents {
        update.execute(params![element, troubled.incidents, troubled.own.is_some(), troubled.own.flatten()])?;
    }
    Ok(())
}
