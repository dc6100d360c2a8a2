//! Many rows for one statement: the table `given` of a connection to a file, whose rows come with the statement.
//!
//! A statement for some hundreds of rows keeps its place in the table and in its indexes from row to row; one for each row opens
//! them and looks for the place anew.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::ops::Range;
use std::rc::Rc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor};
use rusqlite::{Connection, Result, ffi};

use super::Bound;

/// What the table is called, and what tells its rows from other pointers.
const NAME: &CStr = c"given";
/// Behind the columns with values, the hidden one is the parameter of `given(?)`.
const TABLE: &CStr = c"CREATE TABLE given(v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, \
    v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23, v24, rows HIDDEN)";
const COLUMNS: usize = 24;

/// Lets statements of this connection read from `given(?)`.
pub(crate) fn register(connection: &Connection) -> Result<()> {
    const MODULE: Module<'_, Table> = Module::eponymous_only_module();
    connection.create_module(NAME, &MODULE, None)
}

/// Rows with their texts, one behind the other.
#[derive(Debug)]
pub(super) struct Rows {
    width: usize,
    values: Vec<Kept>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum Kept {
    Null,
    Integer(i64),
    Text(Range<usize>),
    Bytes(Range<usize>),
}

impl Rows {
    pub fn of<'a, const N: usize>(rows: impl Iterator<Item = [Bound<'a>; N]>) -> Rows {
        const { assert!(N > 0 && N <= COLUMNS) };
        let count = rows.size_hint().1.unwrap_or_default();
        let mut all = Rows { width: N, values: Vec::with_capacity(count * N), bytes: Vec::new() };
        for value in rows.flatten() {
            let kept = match value {
                Bound::Null => Kept::Null,
                Bound::Integer(number) => Kept::Integer(number),
                Bound::Text(text) => Kept::Text(all.keep(text.as_bytes())),
                Bound::Bytes(bytes) => Kept::Bytes(all.keep(bytes)),
            };
            all.values.push(kept);
        }
        all
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        begin..self.bytes.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// The values of each row.
    pub fn each(&self) -> impl Iterator<Item = impl Iterator<Item = ToSqlOutput<'_>>> {
        self.values.chunks(self.width).map(|row| row.iter().map(|value| ToSqlOutput::Borrowed(self.value(value))))
    }

    fn value(&self, value: &Kept) -> ValueRef<'_> {
        match value {
            Kept::Null => ValueRef::Null,
            Kept::Integer(number) => ValueRef::Integer(*number),
            Kept::Text(range) => ValueRef::Text(&self.bytes[range.clone()]),
            Kept::Bytes(range) => ValueRef::Blob(&self.bytes[range.clone()]),
        }
    }
}

/// The parameter of `given(?)`.
pub(super) struct Given(Rc<Rows>);

impl Given {
    pub fn new(rows: Rows) -> Given {
        Given(Rc::new(rows))
    }
}

impl rusqlite::ToSql for Given {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from_rc(self.0.clone(), NAME))
    }
}

#[repr(C)]
struct Table {
    base: ffi::sqlite3_vtab,
}

// SAFETY: `repr(C)` with the base first, as SQLite has to find it.
unsafe impl<'table> VTab<'table> for Table {
    type Aux = ();
    type Cursor = Cursor<'table>;

    fn connect(
        _: &mut VTabConnection,
        _: Option<&()>,
        _module: &[u8],
        _database: &[u8],
        _table: &[u8],
        _arguments: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Table)> {
        Ok((Cow::Borrowed(TABLE), Table { base: ffi::sqlite3_vtab::default() }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        const ROWS: i64 = 500;
        let mut has_rows = false;
        for (constraint, mut usage) in info.constraints_and_usages() {
            let is_parameter = usize::try_from(constraint.column()) == Ok(COLUMNS)
                && constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            if is_parameter && constraint.is_usable() {
                usage.set_argv_index(1);
                usage.set_omit(true);
                has_rows = true;
            }
        }
        info.set_estimated_rows(ROWS);
        Ok(has_rows)
    }

    fn open(&'table mut self) -> Result<Cursor<'table>> {
        Ok(Cursor { base: ffi::sqlite3_vtab_cursor::default(), rows: None, next: 0 })
    }
}

#[repr(C)]
struct Cursor<'table> {
    base: ffi::sqlite3_vtab_cursor,
    rows: Option<&'table Rows>,
    /// Where the values of the present row begin.
    next: usize,
}

// SAFETY: `repr(C)` with the base first, as SQLite has to find it.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, arguments: &Filters<'_>) -> Result<()> {
        // SAFETY: Nothing else than `Given` is bound under this name, and the parameter holds the rows as long as the statement
        // runs, with all of its cursors.
        self.rows = unsafe { arguments.get_pointer::<Rows>(0, NAME) };
        self.next = 0;
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.next += self.rows.map_or(0, |rows| rows.width);
        Ok(())
    }

    fn eof(&self) -> bool {
        self.rows.is_none_or(|rows| self.next >= rows.values.len())
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let column = usize::try_from(column).unwrap_or(COLUMNS);
        let Some(rows) = self.rows.filter(|rows| column < rows.width) else { return Ok(()) };
        let Some(value) = rows.values.get(self.next + column) else { return Ok(()) };
        context.set_result(ToSqlOutput::Borrowed(rows.value(value)))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(i64::try_from(self.next).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Database, Of, ROWS_AT_ONCE, ROWS_TOGETHER, Write};
    use super::*;

    /// Every kind of value, in rows that come again with others.
    fn rows(count: usize) -> Vec<(i64, Option<i64>, String)> {
        (0..count)
            .map(|number| {
                let key = i64::try_from(number).expect("a few") - 7;
                (key, (number % 3 > 0).then_some(i64::MAX - 10_000 + key), "\0é".repeat(number % 40))
            })
            .collect()
    }

    #[test]
    fn many_rows_are_written_like_one_by_one() {
        let write = Write::insert(
            [Of::Integer, Of::Integer, Of::Text, Of::Integer],
            "INSERT INTO t(key, number, text, times)",
            "{1}, coalesce({2}, (SELECT max(number) FROM s)), {3}, {4}",
            "ON CONFLICT(key) DO UPDATE SET number = excluded.number, times = t.times + excluded.times",
        );
        let written = |write: &Write<4>, count: usize| {
            let connection = Connection::open_in_memory().expect("in memory");
            register(&connection).expect("a table");
            connection
                .execute_batch(
                    "CREATE TABLE s(number); INSERT INTO s VALUES (3), (5);
                     CREATE TABLE t(key INTEGER PRIMARY KEY, number, text TEXT, times INTEGER)",
                )
                .expect("tables");
            let database = Database::Sqlite(connection);
            let given = rows(count);
            // A third of them twice in one list, and all of them again.
            for part in [&given[..], &given[..count / 3], &given[..]] {
                let both = part.iter().chain(&part[..part.len() / 3]);
                let values =
                    both.map(|(key, number, text)| [(*key).into(), (*number).into(), text.into(), 1_i64.into()]);
                database.write(write, values).expect("it is written");
            }
            let read = "SELECT key, number, text, times FROM t ORDER BY rowid";
            let of = |row: &super::super::Row<'_>| {
                Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<String>(2)?, row.get::<i64>(3)?))
            };
            database.all(read, &[], of).expect("rows")
        };
        let one_by_one = Write { for_rows: None, ..write.clone() };
        for count in [0, 1, ROWS_TOGETHER - 1, ROWS_TOGETHER, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 2 * ROWS_AT_ONCE + 1] {
            let rows = written(&write, count);
            assert_eq!((rows.len(), &rows), (count, &written(&one_by_one, count)));
        }
    }

    #[test]
    fn there_are_no_rows_but_those_of_a_statement() {
        let connection = Connection::open_in_memory().expect("in memory");
        register(&connection).expect("a table");
        assert!(connection.prepare("SELECT count(*) FROM given").is_err(), "nothing was given");
        let count = |rows: Rows| {
            let select = "SELECT count(*) FROM given(?1)";
            connection.prepare_cached(select)?.query_row([Given::new(rows)], |row| row.get::<_, i64>(0))
        };
        let rows = |count: i64| Rows::of((0..count).map(|number| [Bound::Integer(number)]));
        assert_eq!([3, 0, 5].map(|number| count(rows(number)).expect("a count")), [3, 0, 5]);
    }
}
