//! Values on their way to a database and back.

use std::borrow::Cow;

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, ValueRef};
use timed_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::{Error, Result};

/// A value that a statement is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

macro_rules! bound_from_numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Bound<'_> {
            fn from(number: $number) -> Self {
                Bound::Integer(number.into())
            }
        }
    )*};
}

bound_from_numbers!(i64, i32, u8, u16, u32, bool);

impl<'a> From<&'a str> for Bound<'a> {
    fn from(text: &'a str) -> Self {
        Bound::Text(text)
    }
}

impl<'a> From<&'a String> for Bound<'a> {
    fn from(text: &'a String) -> Self {
        Bound::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Bound<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Bound::Bytes(bytes)
    }
}

impl<'a, T: Into<Bound<'a>>> From<Option<T>> for Bound<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Bound::Null, Into::into)
    }
}

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Bound::Null => ValueRef::Null,
            Bound::Integer(number) => ValueRef::Integer(*number),
            Bound::Text(text) => ValueRef::Text(text.as_bytes()),
            Bound::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// PostgreSQL has no byte 0 in texts. Something else that nobody writes stands for it, in what is kept and in what is asked for.
pub(super) fn without_zero(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Bound::Null => Ok(IsNull::Yes),
            Bound::Integer(number) => number.to_sql(of, out),
            Bound::Text(text) => without_zero(text).to_sql(of, out),
            Bound::Bytes(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(of: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(of)
    }

    to_sql_checked!();
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A row that was found.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    PostgreSql(&'a timed_postgres::Row),
}

impl Row<'_> {
    /// The value of a column. What says yes or no is 1 or 0.
    pub fn cell(&self, column: usize) -> Result<Cell<'_>> {
        match self {
            Row::Sqlite(row) => Ok(match row.get_ref(column)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(number) => Cell::Integer(number),
                ValueRef::Text(text) => Cell::Text(std::str::from_utf8(text).map_err(|_| Error::Type(column))?),
                ValueRef::Blob(bytes) => Cell::Bytes(bytes),
                ValueRef::Real(_) => return Err(Error::Type(column)),
            }),
            Row::PostgreSql(row) => {
                let of = row.columns().get(column).ok_or(Error::Type(column))?.type_();
                let cell = if *of == Type::INT8 {
                    row.try_get::<_, Option<i64>>(column)?.map(Cell::Integer)
                } else if *of == Type::INT4 {
                    row.try_get::<_, Option<i32>>(column)?.map(|number| Cell::Integer(number.into()))
                } else if *of == Type::BOOL {
                    row.try_get::<_, Option<bool>>(column)?.map(|flag| Cell::Integer(flag.into()))
                } else if *of == Type::BYTEA {
                    row.try_get::<_, Option<&[u8]>>(column)?.map(Cell::Bytes)
                } else {
                    row.try_get::<_, Option<&str>>(column)?.map(Cell::Text)
                };
                Ok(cell.unwrap_or(Cell::Null))
            }
        }
    }

    /// The value of a column as what is wanted.
    pub fn get<T: FromCell>(&self, column: usize) -> Result<T> {
        T::from_cell(self.cell(column)?).ok_or(Error::Type(column))
    }
}

/// What a value can be read as.
pub(crate) trait FromCell: Sized {
    /// None when it is something else.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

macro_rules! numbers_from_cell {
    ($($number:ty),*) => {$(
        impl FromCell for $number {
            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                let Cell::Integer(number) = cell else { return None };
                number.try_into().ok()
            }
        }
    )*};
}

numbers_from_cell!(i64, i32, u8, u16);

impl FromCell for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}

impl FromCell for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        let Cell::Text(text) = cell else { return None };
        Some(text.to_owned())
    }
}

impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        let Cell::Bytes(bytes) = cell else { return None };
        Some(bytes.to_vec())
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}
