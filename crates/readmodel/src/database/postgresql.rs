//! A session with a PostgreSQL server.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use protocol::RecordPlace;
use timed_postgres::error::SqlState;
use timed_postgres::types::ToSql;
use timed_postgres::{Connection, Statement};

use super::rows::without_zero;
use super::write::Of;
use super::{Bound, Error, KEPT_STATEMENT_BYTES_MAX, Result, Row, Write};

/// So much longer than a statement may take, its end is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
/// When so much of the time for reading has passed, the server is told how much is left.
const TIME_STEP: Duration = Duration::from_millis(250);
/// So many statements are kept prepared; then all are forgotten. Searches are made of parts, and few are asked twice.
const STATEMENTS_MAX: usize = 256;

/// A connection, and what its statements mean.
pub(crate) struct Session {
    connection: Connection,
    /// By schema and text.
    statements: RefCell<HashMap<String, Statement>>,
    /// Whose tables are meant.
    schema: RefCell<String>,
    /// Whether a transaction is under way.
    is_within: Cell<bool>,
    /// A transaction begins only if the rows are as they were at this place: otherwise another node has written them. None for
    /// a session that only reads.
    fence: Cell<Option<RecordPlace>>,
    /// Until when somebody reads, and how long a statement may take now.
    reading: Cell<Option<(Instant, Duration)>>,
}

impl Session {
    pub fn new(connection: Connection) -> Session {
        Session {
            connection,
            statements: RefCell::default(),
            schema: RefCell::default(),
            is_within: Cell::new(false),
            fence: Cell::new(None),
            reading: Cell::new(None),
        }
    }

    /// Carries out statements without parameters.
    pub fn run(&self, sql: &str) -> Result<()> {
        Ok(self.connection.batch_execute(sql)?)
    }

    /// How long the server may say nothing before it is given up.
    pub fn set_time_max(&self, time_max: Duration) {
        self.connection.set_time_max(time_max);
    }

    /// From now on, the tables of this schema are meant.
    pub fn turn_to(&self, schema: &str) -> Result<()> {
        self.run(&format!("SET search_path = {schema}"))?;
        schema.clone_into(&mut self.schema.borrow_mut());
        Ok(())
    }

    /// The same, for somebody who reads and has so much time for all statements together.
    pub fn turn_to_reading(&self, schema: &str, time: Duration) -> Result<()> {
        self.reading.set(Some((Instant::now() + time, time)));
        self.set_time_max(time + ANSWER_TIME_MAX);
        self.run(&format!("SET search_path = {schema}; {}", statement_timeout(time)))?;
        schema.clone_into(&mut self.schema.borrow_mut());
        Ok(())
    }

    /// Has the server end the next statement when the time for reading is over, unless it stands still.
    fn check_time(&self) -> Result<()> {
        let Some((until, given)) = self.reading.get() else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Late);
        }
        if given.saturating_sub(left) < TIME_STEP {
            return Ok(());
        }
        self.reading.set(Some((until, left)));
        self.set_time_max(left + ANSWER_TIME_MAX);
        self.run(&statement_timeout(left))
    }

    /// From now on, only what was written up to this place may be changed.
    pub fn fence(&self, place: RecordPlace) {
        self.fence.set(Some(place));
    }

    /// Begins a transaction, unless one is under way: what is written between two of them belongs to the next one.
    pub fn begin(&self) -> Result<()> {
        if self.is_within.get() {
            return Ok(());
        }
        self.run("BEGIN")?;
        self.is_within.set(true);
        let Some(place) = self.fence.get() else { return Ok(()) };
        // The row is locked until the end of the transaction, so two nodes write one after the other.
        let select = "SELECT 1 FROM place WHERE incarnation = ? AND position = ? AND number = ? FOR UPDATE";
        let numbers = [place.incarnation, place.position, place.number];
        let numbers = numbers.map(|number| Bound::Integer(crate::store::number(number)));
        let mut is_ours = false;
        let looked = self.query(select, &numbers, |_| {
            is_ours = true;
            Ok(())
        });
        match looked {
            Ok(()) if is_ours => Ok(()),
            other => {
                self.roll_back();
                other.and(Err(Error::Overtaken))
            }
        }
    }

    /// Begins a transaction that sees one state of the rows.
    pub fn begin_snapshot(&self) -> Result<()> {
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        self.is_within.set(true);
        Ok(())
    }

    pub fn commit(&self) -> Result<()> {
        self.is_within.set(false);
        self.run("COMMIT")
    }

    /// Undoes what is under way, if anything is.
    pub fn roll_back(&self) {
        if self.is_within.replace(false) {
            // Without a connection there is nothing to undo.
            let _ = self.run("ROLLBACK");
        }
    }

    pub fn execute(&self, sql: &str, parameters: &[Bound<'_>]) -> Result<usize> {
        if self.fence.get().is_some() {
            self.begin()?;
        }
        let statement = self.prepared(&own_words(sql, parameters))?;
        let count = self.connection.execute(&statement, &as_given(parameters))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub fn query(
        &self,
        sql: &str,
        parameters: &[Bound<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check_time()?;
        let statement = self.prepared(&own_words(sql, parameters))?;
        let rows = self.connection.query(&statement, &as_given(parameters))?;
        rows.iter().try_for_each(|row| each(&Row::PostgreSql(row)))
    }

    /// One statement for all rows, with a list of values for each column.
    pub fn write<'a, const N: usize>(
        &self,
        write: &Write<N>,
        rows: impl Iterator<Item = [Bound<'a>; N]>,
    ) -> Result<()> {
        let mut lists = write.types.map(|of| match of {
            Of::Integer => List::Integers(Vec::new()),
            Of::Text => List::Texts(Vec::new()),
        });
        let mut count = 0;
        for row in rows {
            count += 1;
            for (list, value) in lists.iter_mut().zip(row) {
                list.push(value);
            }
        }
        if count == 0 {
            return Ok(());
        }
        self.begin()?;
        let statement = self.prepared(&write.for_lists)?;
        let lists: Vec<&(dyn ToSql + Sync)> = lists.iter().map(List::as_given).collect();
        self.connection.execute(&statement, &lists)?;
        Ok(())
    }

    fn prepared(&self, sql: &str) -> Result<Statement> {
        if sql.len() > KEPT_STATEMENT_BYTES_MAX && self.fence.get().is_none() {
            return Ok(self.connection.prepare(sql)?);
        }
        let key = format!("{} {sql}", self.schema.borrow());
        if let Some(statement) = self.statements.borrow().get(&key) {
            return Ok(statement.clone());
        }
        let statement = self.connection.prepare(sql)?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(key, statement.clone());
        Ok(statement)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The setting for what a statement may take.
fn statement_timeout(time: Duration) -> String {
    // 0 would be no limit.
    format!("SET statement_timeout = {}", time.as_millis().max(1))
}

/// The values of a column.
enum List<'a> {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'a, str>>>),
}

impl<'a> List<'a> {
    fn push(&mut self, value: Bound<'a>) {
        match (self, value) {
            (List::Integers(list), Bound::Integer(number)) => list.push(Some(number)),
            (List::Texts(list), Bound::Text(text)) => list.push(Some(without_zero(text))),
            (List::Integers(list), Bound::Null) => list.push(None),
            (List::Texts(list), Bound::Null) => list.push(None),
            (_, other) => unreachable!("{other:?} is of another type than the statement says"),
        }
    }

    fn as_given(&self) -> &(dyn ToSql + Sync) {
        match self {
            List::Integers(list) => list,
            List::Texts(list) => list,
        }
    }
}

fn as_given<'a>(parameters: &'a [Bound<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| parameter as _).collect()
}

/// Parameters have numbers and types, which nothing else would say where a statement compares with them only.
fn own_words(sql: &str, parameters: &[Bound<'_>]) -> String {
    let sql = sql.replace("CROSS JOIN", "JOIN");
    let mut own = String::with_capacity(sql.len() + 16 * parameters.len());
    let (mut rest, mut next) = (&*sql, 0);
    while let Some((before, behind)) = rest.split_once('?') {
        let digits = behind.find(|character: char| !character.is_ascii_digit()).unwrap_or(behind.len());
        let number = behind[..digits].parse().unwrap_or(next + 1);
        next = number;
        own.push_str(before);
        own.push_str(&format!("${number}"));
        own.push_str(match parameters.get(number - 1) {
            Some(Bound::Integer(_)) => "::bigint",
            Some(Bound::Text(_)) => "::text",
            Some(Bound::Bytes(_)) => "::bytea",
            // As the statement has it.
            Some(Bound::Null) | None => "",
        });
        rest = &behind[digits..];
    }
    own.push_str(rest);
    own
}

/// Whether another time may be better: nothing was wrong with what was asked.
pub(super) fn is_away(error: &timed_postgres::Error) -> bool {
    let Some(code) = error.code() else { return true };
    // Connections, resources, what an operator does; and a schema that no node has made yet.
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "53" | "58" | "57" | "28" | "3D") && *code != SqlState::QUERY_CANCELED
        || [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_numbers_and_types() {
        let words = own_words(
            "SELECT a FROM b CROSS JOIN c ON d = ? WHERE e > ? AND f = ?1",
            &[Bound::Integer(1), Bound::Text("x")],
        );
        assert_eq!(words, "SELECT a FROM b JOIN c ON d = $1::bigint WHERE e > $2::text AND f = $1::bigint");
        assert_eq!(own_words("VALUES (?2, ?1)", &[Bound::Bytes(b""), Bound::Null]), "VALUES ($2, $1::bytea)");
    }
}
