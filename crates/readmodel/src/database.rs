//! Where the rows are: a file of SQLite, or a PostgreSQL server. The only place that knows how the two differ.
//!
//! Everybody else writes one SQL, in what both understand: `?` and `?1` for parameters, whole numbers for everything that is not a
//! text or bytes, `CROSS JOIN` where SQLite is to begin with the table on the left. What has no common words is a method here.

pub(crate) mod functions;
pub(crate) mod given;
mod postgresql;
mod rows;
mod server;
mod write;

use crate::database::given::Given;
use crate::database::postgresql::Session;

pub(crate) use rows::{Bound, Cell, Row};
pub use server::{Looked, ServerError};
pub(crate) use server::{Server, schema_of};
pub(crate) use write::{Of, Write};

/// A connection to where the rows are.
#[derive(Debug)]
pub(crate) enum Database {
    Sqlite(rusqlite::Connection),
    PostgreSql(Box<Session>),
}

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    PostgreSql(#[from] timed_postgres::Error),
    #[error("a value has another type than was asked for: column {0}")]
    Type(usize),
    #[error("another node has written to the read model meanwhile")]
    Overtaken,
    #[error("the time for reading is over")]
    Late,
    #[error("an answer would need more than it may have")]
    TooMuch,
}

impl From<timed_postgres::error::Error> for Error {
    fn from(error: timed_postgres::error::Error) -> Error {
        Error::PostgreSql(error.into())
    }
}

/// So many rows a statement for a file takes at most. While it runs, SQLite keeps a copy of each page that it changes.
const ROWS_AT_ONCE: usize = 500;
/// Fewer rows are written one by one, which costs less than copies of their pages.
const ROWS_TOGETHER: usize = 16;
/// The text of a longer statement is not kept prepared: those are searches, of which few are asked twice.
const KEPT_STATEMENT_BYTES_MAX: usize = 4 << 10;

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether it took longer than it may.
    pub fn is_interruption(&self) -> bool {
        match self {
            Error::Sqlite(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted),
            Error::PostgreSql(error) => error.code() == Some(&timed_postgres::error::SqlState::QUERY_CANCELED),
            Error::Late => true,
            Error::Type(_) | Error::Overtaken | Error::TooMuch => false,
        }
    }

    /// Whether a server has said nothing within a limit.
    pub fn is_silence(&self) -> bool {
        matches!(self, Error::PostgreSql(timed_postgres::Error::Silent(_)))
    }

    /// Whether a table is asked for that a server does not have: it is of a later format, or all have just been dropped.
    pub fn is_missing_table(&self) -> bool {
        matches!(self, Error::PostgreSql(error) if error.code() == Some(&timed_postgres::error::SqlState::UNDEFINED_TABLE))
    }

    /// Whether it means that a file is damaged.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Sqlite(error) if crate::check::is_damage(error))
    }
}

/// What holds together: it is undone unless it is committed.
pub(crate) enum Transaction<'a> {
    Sqlite(rusqlite::Transaction<'a>),
    PostgreSql(Undo<'a>),
}

/// Takes back what was not committed.
pub(crate) struct Undo<'a>(&'a Session);

impl Transaction<'_> {
    pub fn commit(self) -> Result<()> {
        match self {
            Transaction::Sqlite(transaction) => Ok(transaction.commit()?),
            Transaction::PostgreSql(undo) => undo.0.commit(),
        }
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        self.0.roll_back();
    }
}

impl Database {
    /// Begins what holds together.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        match self {
            Database::Sqlite(connection) => Ok(Transaction::Sqlite(connection.unchecked_transaction()?)),
            Database::PostgreSql(session) => {
                session.begin()?;
                Ok(Transaction::PostgreSql(Undo(session)))
            }
        }
    }

    /// Begins reading at one state of the rows.
    pub fn snapshot(&self) -> Result<Transaction<'_>> {
        match self {
            Database::Sqlite(_) => self.begin(),
            Database::PostgreSql(session) => {
                session.begin_snapshot()?;
                Ok(Transaction::PostgreSql(Undo(session)))
            }
        }
    }

    /// Changes rows; how many.
    pub fn execute(&self, sql: &str, parameters: &[Bound<'_>]) -> Result<usize> {
        match self {
            Database::Sqlite(connection) => {
                Ok(connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(parameters))?)
            }
            Database::PostgreSql(session) => session.execute(sql, parameters),
        }
    }

    /// Adds a row; the number that the database gave it.
    pub fn insert(&self, sql: &str, column: &str, parameters: &[Bound<'_>]) -> Result<i64> {
        match self {
            Database::Sqlite(connection) => {
                self.execute(sql, parameters)?;
                Ok(connection.last_insert_rowid())
            }
            Database::PostgreSql(session) => {
                session.begin()?;
                let number = self.first(&format!("{sql} RETURNING {column}"), parameters, |row| row.get(0))?;
                number.ok_or(Error::Type(0))
            }
        }
    }

    /// Reads rows, one after the other.
    pub fn query(
        &self,
        sql: &str,
        parameters: &[Bound<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Database::Sqlite(connection) => with_statement(connection, sql, |statement| {
                let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
                while let Some(row) = rows.next()? {
                    each(&Row::Sqlite(row))?;
                }
                Ok(())
            }),
            Database::PostgreSql(session) => session.query(sql, parameters, each),
        }
    }

    /// What all rows come to.
    pub fn all<T>(
        &self,
        sql: &str,
        parameters: &[Bound<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.query(sql, parameters, |row| {
            all.push(read(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// What the first row comes to, if there is one.
    pub fn first<T>(
        &self,
        sql: &str,
        parameters: &[Bound<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        match self {
            Database::Sqlite(connection) => with_statement(connection, sql, |statement| {
                let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
                // What comes behind it is not looked for.
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }),
            Database::PostgreSql(session) => {
                let mut first = None;
                session.query(sql, parameters, |row| {
                    if first.is_none() {
                        first = Some(read(row)?);
                    }
                    Ok(())
                })?;
                Ok(first)
            }
        }
    }

    /// Writes many rows by the same statement: some hundreds at once to a file, and all at once to a server, which is far away.
    pub fn write<'a, const N: usize>(
        &self,
        write: &Write<N>,
        rows: impl Iterator<Item = [Bound<'a>; N]>,
    ) -> Result<()> {
        match self {
            Database::Sqlite(connection) => {
                let mut rows = rows.peekable();
                while rows.peek().is_some() {
                    write_some(connection, write, given::Rows::of(rows.by_ref().take(ROWS_AT_ONCE)))?;
                }
                Ok(())
            }
            Database::PostgreSql(session) => session.write(write, rows),
        }
    }

    /// Which words it understands.
    pub fn dialect(&self) -> Dialect {
        match self {
            Database::Sqlite(_) => Dialect::Sqlite,
            Database::PostgreSql(_) => Dialect::PostgreSql,
        }
    }
}

/// Has a statement used that is kept prepared if it is short.
fn with_statement<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    using: impl FnOnce(&mut rusqlite::Statement<'_>) -> Result<T>,
) -> Result<T> {
    if sql.len() > KEPT_STATEMENT_BYTES_MAX {
        using(&mut connection.prepare(sql)?)
    } else {
        using(&mut *connection.prepare_cached(sql)?)
    }
}

fn write_some<const N: usize>(connection: &rusqlite::Connection, write: &Write<N>, rows: given::Rows) -> Result<()> {
    match &write.for_rows {
        Some(for_rows) if rows.len() >= ROWS_TOGETHER => {
            connection.prepare_cached(for_rows)?.execute([Given::new(rows)])?;
        }
        _ => {
            let mut statement = connection.prepare_cached(&write.for_one)?;
            for row in rows.each() {
                statement.execute(rusqlite::params_from_iter(row))?;
            }
        }
    }
    Ok(())
}

/// The words of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    PostgreSql,
}

impl Dialect {
    /// Tables in which objects are made of fields, and moments (`instant_text(column)`) are told as texts.
    pub fn words(self, from: &'static str) -> std::borrow::Cow<'static, str> {
        if !from.contains("json_object(") {
            return from.into();
        }
        let mut parts = from.split("instant_text(");
        let mut own = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (column, rest) = part.split_once(')').unwrap_or((part, ""));
            own.extend([&*self.instant_text(column), rest]);
        }
        match self {
            Dialect::Sqlite => own.into(),
            Dialect::PostgreSql => own.replace("json_object(", "json_build_object(").into(),
        }
    }

    /// A moment as the protocol writes it; nothing for one beyond the years that both databases can name alike.
    fn instant_text(self, column: &str) -> String {
        const YEAR_1: i64 = -62_135_596_800_000;
        const YEAR_10000: i64 = 253_402_300_800_000;
        let text = match self {
            Dialect::Sqlite => format!("strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1000.0, 'unixepoch')"),
            Dialect::PostgreSql => format!(
                "to_char(timezone('UTC', to_timestamp({column} / 1000.0)), 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
            ),
        };
        format!("CASE WHEN {column} >= {YEAR_1} AND {column} < {YEAR_10000} THEN {text} END")
    }

    /// A condition as a number, which can be compared and ordered.
    pub fn number_of_condition(self, condition: &str) -> String {
        match self {
            Dialect::Sqlite => condition.to_owned(),
            Dialect::PostgreSql => format!("({condition})::int"),
        }
    }

    /// A row is one of the first of its table that a condition finds: the only ones that are looked at.
    pub fn is_among_first(self, table: &str, condition: &str, limit: &str) -> String {
        let first = |id: &str| format!("SELECT {id} FROM {table} WHERE {condition} LIMIT {limit}");
        match self {
            Dialect::Sqlite => format!("rowid IN ({})", first("rowid")),
            Dialect::PostgreSql => format!("ctid = ANY(ARRAY({}))", first("ctid")),
        }
    }

    /// A text is like a pattern, which is bound.
    pub fn is_like(self, column: &str) -> String {
        match self {
            Dialect::Sqlite => format!("is_like(?, {column})"),
            Dialect::PostgreSql => format!("CAST({column} AS text) LIKE ?"),
        }
    }

    /// The pattern for that, in its own words: those of [`Pattern`](crate::Pattern) in a file.
    pub fn pattern(self, pattern: &str) -> String {
        if self == Dialect::Sqlite {
            return pattern.to_owned();
        }
        let mut own = String::with_capacity(pattern.len() + 8);
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            match character {
                '*' => own.push('%'),
                '?' => own.push('_'),
                other => {
                    let literal = if other == '\\' { characters.next().unwrap_or('\\') } else { other };
                    own.extend(matches!(literal, '%' | '_' | '\\').then_some('\\'));
                    own.push(literal);
                }
            }
        }
        own
    }

    /// A number that is the same for the same text.
    pub fn text_hash(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("text_hash({text})"),
            Dialect::PostgreSql => format!("hashtextextended({text}, 0)"),
        }
    }

    /// A value is one of a list, which is bound as JSON: one parameter, however long it is.
    pub fn is_in_list(self, column: &str, holds_numbers: bool) -> String {
        match self {
            Dialect::Sqlite => format!("{column} IN (SELECT value FROM json_each(?))"),
            Dialect::PostgreSql => {
                let of = if holds_numbers { "bigint" } else { "text" };
                format!("{column} = ANY(ARRAY(SELECT v::{of} FROM json_array_elements_text((?)::json) AS v))")
            }
        }
    }

    /// A list for that.
    pub fn list(self, mut values: Vec<serde_json::Value>) -> String {
        if self == Dialect::PostgreSql {
            for value in &mut values {
                if let serde_json::Value::String(text) = value
                    && text.contains('\0')
                {
                    *text = rows::without_zero(text).into_owned();
                }
            }
        }
        serde_json::Value::Array(values).to_string()
    }

    /// What a recursion named `of` goes on with, in two ways: `{}` stands before the table that it is joined with.
    pub fn further(self, of: &str, ways: [&str; 2]) -> String {
        match self {
            Dialect::Sqlite => {
                ways.map(|way| format!(" UNION {}", way.replace("{}", &format!("{of} CROSS JOIN")))).concat()
            }
            // It may name itself only once.
            Dialect::PostgreSql => {
                let ways = ways.map(|way| way.replace("{}", "")).join(" UNION ALL ");
                format!(" UNION SELECT further.* FROM {of} JOIN LATERAL ({ways}) AS further ON TRUE")
            }
        }
    }

    /// A list of texts, which is kept as JSON, has one, which is bound.
    pub fn has_text(self, list: &str) -> String {
        match self {
            Dialect::Sqlite => format!("EXISTS (SELECT 1 FROM json_each({list}) WHERE value = ?)"),
            Dialect::PostgreSql => {
                format!("EXISTS (SELECT 1 FROM json_array_elements_text({list}::json) AS v WHERE v = ?)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_written_in_the_words_of_each() {
        for (pattern, like) in [
            ("a*", "a%"),
            ("a?c", "a_c"),
            (r"a\*c", "a*c"),
            ("[x]", "[x]"),
            (r"\\a", r"\\a"),
            (r"a\", r"a\\"),
            ("50%_", r"50\%\_"),
        ] {
            assert_eq!(Dialect::PostgreSql.pattern(pattern), like);
            assert_eq!(Dialect::Sqlite.pattern(pattern), pattern);
        }
    }
}
