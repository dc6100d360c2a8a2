//! Deletion of what ended long ago.
//!
//! A process instance that nobody called goes with everything that belongs to it and to those that it called. Each
//! transaction deletes a limited number of rows, on the thread of the fold, which goes before: between two of them is at least
//! twice as long as the first one took. The row of an instance goes last, so what was begun is found again after a crash.
//! Counters of elements stay.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::database::{Database, Result};
use crate::enumerations::{ACTIVE, COMPLETED, TERMINATED};

/// Rows that one transaction deletes, about.
const ROWS_MAX: u32 = 500;
/// Instances that one transaction looks at.
const INSTANCES_MAX: u32 = 64;
/// Pages that one transaction gives back to the file system.
const PAGES_MAX: i64 = 100;
/// Free pages that a file keeps for what comes.
const PAGES_KEPT: i64 = 250;
/// The longest and the shortest time between two passes.
const PASS_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// After a transaction, the fold has so many times as long for itself.
const PAUSE_FACTOR: u32 = 2;

/// How long what ended is kept; none for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Instances that ended well; and what ends without an instance: evaluations of decisions and closed subscriptions.
    pub completed: Option<Duration>,
    /// Instances that were cancelled or terminated.
    pub terminated: Option<Duration>,
}

/// Messages that were correlated.
const CORRELATED: &str = "correlated_message_subscription";

/// Details of a process instance: tables with an index of `process_instance_key`.
const DETAILS: [&str; 13] = [
    "audit_log",
    "element_instance",
    "variable",
    "job",
    "incident",
    "user_task_candidate",
    "user_task",
    "decision_instance",
    "message_subscription",
    CORRELATED,
    "timer",
    "condition",
    "signal_subscription",
];

/// What belongs to no instance and ends with its age, in milliseconds.
const WITHOUT_INSTANCE: [&str; 4] = [
    "DELETE FROM decision_instance WHERE id IN (SELECT id FROM decision_instance \
     WHERE process_instance_key IS NULL AND evaluation_date < ?1 LIMIT ?2)",
    // A subscription of a definition that is deleted.
    "DELETE FROM message_subscription WHERE key IN (SELECT key FROM message_subscription \
     WHERE state = 2 AND process_instance_key IS NULL AND last_updated_date < ?1 LIMIT ?2)",
    // Of what is deployed there is no instance, and of what was refused it is not always known.
    "DELETE FROM audit_log WHERE key IN (SELECT key FROM audit_log \
     WHERE process_instance_key IS NULL AND time < ?1 LIMIT ?2)",
    "DELETE FROM job_count WHERE (time, type, worker) IN (SELECT time, type, worker FROM job_count WHERE time < ?1 LIMIT ?2)",
];

/// What a transaction came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Deleted {
    /// Process instances that are gone now, with those that were called.
    pub instances: u64,
    /// Whether there may be more to do.
    pub goes_on: bool,
}

/// The deletion in the tables of a partition.
#[derive(Debug)]
pub(crate) struct Deletion {
    retention: Retention,
    /// When there is something to do; none when everything is kept.
    at: Option<Duration>,
    /// Behind which instance of each age the look goes on: by end and key. Those before are kept, because the instance that called
    /// them is, and go with it; so nobody looks at them again until the next start.
    passed: [(i64, i64); 2],
}

impl Deletion {
    pub fn new(retention: Retention) -> Deletion {
        let at = (retention != Retention::default()).then_some(Duration::ZERO);
        Deletion { retention, at, passed: [(0, 0); 2] }
    }

    /// When the next transaction may begin.
    pub fn at(&self) -> Option<Duration> {
        self.at
    }

    /// Carries out one transaction. `now` is the time of the node, `clock` that of the world in milliseconds.
    pub fn step(&mut self, database: &Database, now: Duration, clock: i64) -> Result<Deleted> {
        let begin = Instant::now();
        let result = self.delete_some(database, clock);
        let goes_on = result.as_ref().is_ok_and(|deleted| deleted.goes_on);
        let pause = if goes_on { begin.elapsed() * PAUSE_FACTOR } else { self.pass_pause() };
        self.at = Some(now + pause);
        result
    }

    /// A tenth of the shortest age, so that what is kept for a minute does not stay for two.
    fn pass_pause(&self) -> Duration {
        let ages = [self.retention.completed, self.retention.terminated];
        let shortest = ages.into_iter().flatten().min().unwrap_or(PASS_PAUSE.1);
        (shortest / 10).clamp(PASS_PAUSE.0, PASS_PAUSE.1)
    }

    fn delete_some(&mut self, database: &Database, clock: i64) -> Result<Deleted> {
        let transaction = database.begin()?;
        let (mut rows, mut deleted) = (ROWS_MAX, Deleted::default());
        let ages = [(COMPLETED, self.retention.completed), (TERMINATED, self.retention.terminated)];
        for (passed, (state, age)) in self.passed.iter_mut().zip(ages) {
            let Some(age) = age else { continue };
            let is_through = delete_ended(database, state, before(clock, age), passed, &mut rows, &mut deleted)?;
            if is_through {
                // Time never goes back in the records, but more than one instance ends at a moment.
                *passed = (passed.0.saturating_sub(1), i64::MAX);
            } else {
                deleted.goes_on = true;
            }
        }
        if let Some(age) = self.retention.completed {
            for delete in WITHOUT_INSTANCE {
                let count = database.execute(delete, &[before(clock, age).into(), rows.into()])?;
                take(&mut rows, count);
                deleted.goes_on |= rows == 0;
            }
        }
        transaction.commit()?;
        // While more is deleted, what is written meanwhile takes the free pages: only what is left then is given back.
        if let (Database::Sqlite(connection), false) = (database, deleted.goes_on) {
            deleted.goes_on = give_back(connection)?;
        }
        Ok(deleted)
    }
}

/// So many rows less are left to delete.
fn take(rows: &mut u32, count: usize) {
    *rows = rows.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
}

/// The moment that is so long ago.
fn before(clock: i64, age: Duration) -> i64 {
    clock.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// Deletes instances of a state that ended before a moment, as long as `rows` are left; `true` when there are no more.
fn delete_ended(
    database: &Database,
    state: u8,
    before: i64,
    passed: &mut (i64, i64),
    rows: &mut u32,
    deleted: &mut Deleted,
) -> Result<bool> {
    let select = "SELECT key, end_date, EXISTS (SELECT 1 FROM process_instance r WHERE r.key = p.root_process_instance_key \
                  AND r.key <> p.key) FROM process_instance p WHERE state = ?1 AND end_date < ?2 \
                  AND (end_date, key) > (?3, ?4) ORDER BY end_date, key LIMIT ?5";
    let bounds = [state.into(), before.into(), passed.0.into(), passed.1.into(), INSTANCES_MAX.into()];
    let found: Vec<(i64, i64, bool)> =
        database.all(select, &bounds, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    for (key, end, is_called) in &found {
        if !is_called && (*rows == 0 || !delete_with_called(database, *key, rows, deleted)?) {
            return Ok(false);
        }
        *passed = (*end, *key);
    }
    Ok(found.len() < INSTANCES_MAX as usize)
}

/// Deletes an instance behind those that it called; `false` when something is left.
fn delete_with_called(database: &Database, root: i64, rows: &mut u32, deleted: &mut Deleted) -> Result<bool> {
    let select = "SELECT key FROM process_instance WHERE parent_process_instance_key = ? LIMIT 1";
    loop {
        let mut last = root;
        while let Some(called) = database.first(select, &[last.into()], |row| row.get(0))? {
            last = called;
        }
        if !delete_instance(database, Of::Ended, last, rows)? {
            return Ok(false);
        }
        deleted.instances += 1;
        if last == root {
            return Ok(true);
        }
    }
}

/// Deletes some instances that are active, with everything that belongs to them; `false` when there are no more.
pub(crate) fn delete_living(database: &Database) -> Result<bool> {
    const LIVING_ROWS_MAX: u32 = 20_000;
    let transaction = database.begin()?;
    let select = "SELECT key FROM process_instance WHERE state = ? LIMIT ?";
    let found: Vec<i64> = database.all(select, &[ACTIVE.into(), INSTANCES_MAX.into()], |row| row.get(0))?;
    let mut rows = LIVING_ROWS_MAX;
    for key in &found {
        if !delete_instance(database, Of::Living, *key, &mut rows)? {
            break;
        }
    }
    transaction.commit()?;
    Ok(!found.is_empty())
}

/// Deletes variables of instances that are not there themselves, because they had variables and were still to begin: among the next
/// ones behind a key. Returns the last one of these; none when there are no more.
pub(crate) fn delete_variables_of_none(database: &Database, behind: i64) -> Result<Option<i64>> {
    delete_of_none(database, "variable", "key", "", behind)
}

/// Deletes messages that started instances of which nothing is there, in the same way.
pub(crate) fn delete_correlations_of_none(database: &Database, behind: i64) -> Result<Option<i64>> {
    // A message may have started an instance on another partition, whose number is above these bits of its key.
    const OF_HERE: &str = "AND process_instance_key >> 51 = (SELECT partition FROM place)";
    delete_of_none(database, CORRELATED, "id", OF_HERE, behind)
}

fn delete_of_none(database: &Database, table: &str, id: &str, and: &str, behind: i64) -> Result<Option<i64>> {
    const ORPHANS_MAX: u32 = 20_000;
    let transaction = database.begin()?;
    let select =
        format!("SELECT max({id}) FROM (SELECT {id} FROM {table} WHERE {id} > ? ORDER BY {id} LIMIT ?) AS next");
    let last =
        database.first(&select, &[behind.into(), ORPHANS_MAX.into()], |row| row.get::<Option<i64>>(0))?.flatten();
    if let Some(last) = last {
        let delete = format!(
            "DELETE FROM {table} WHERE {id} > ? AND {id} <= ? {and} AND NOT EXISTS \
             (SELECT 1 FROM process_instance p WHERE p.key = {table}.process_instance_key)"
        );
        database.execute(&delete, &[behind.into(), last.into()])?;
    }
    transaction.commit()?;
    Ok(last)
}

/// Which instance is deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// One that ended, with everything.
    Ended,
    /// One that may live and is told again: without what the state does not tell.
    Living,
}

impl Of {
    /// Which details of an instance, whose key is the first parameter, are deleted in a table.
    fn details(self, table: &str) -> Option<&'static str> {
        match (self, table) {
            (Of::Living, "audit_log") => None,
            // The messages that started instances.
            (Of::Living, CORRELATED) => Some("process_instance_key = ?1 AND element_instance_key IS NOT NULL"),
            _ => Some("process_instance_key = ?1"),
        }
    }
}

fn delete_instance(database: &Database, of: Of, key: i64, rows: &mut u32) -> Result<bool> {
    for table in DETAILS {
        let Some(details) = of.details(table) else { continue };
        if *rows == 0 {
            return Ok(false);
        }
        let first = database.dialect().is_among_first(table, details, "?2");
        let delete = format!("DELETE FROM {table} WHERE {first}");
        take(rows, database.execute(&delete, &[key.into(), (*rows).into()])?);
    }
    if *rows == 0 {
        // There may be more of the last table.
        return Ok(false);
    }
    // As many as the model has.
    let delete = "DELETE FROM sequence_flow WHERE process_instance_key = ?";
    let flows = database.execute(delete, &[key.into()])?;
    database.execute("DELETE FROM process_instance WHERE key = ?", &[key.into()])?;
    take(rows, flows + 1);
    Ok(true)
}

/// Makes the file shorter by some of the pages that are free; `true` when there are more.
fn give_back(connection: &Connection) -> Result<bool> {
    let free: i64 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    let pages = (free - PAGES_KEPT).min(PAGES_MAX);
    if pages <= 0 {
        return Ok(false);
    }
    // Each step of the statement gives back one page.
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    // A file that was made without this stays as long as it is.
    let left: i64 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(left < free && left > PAGES_KEPT)
}

#[cfg(test)]
mod tests;
