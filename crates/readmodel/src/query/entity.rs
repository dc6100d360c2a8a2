//! What can be searched, as tables: fields with their columns, kinds, and how they are filtered.

use crate::enumerations::Enumeration;

/// Something that can be searched.
#[derive(Debug)]
pub struct Entity {
    /// What one is called, in sentences.
    pub name: &'static str,
    /// The tables, with their short names.
    pub(crate) from: &'static str,
    /// What tells rows of a partition apart, and orders them where nothing else does.
    pub(crate) key: &'static str,
    /// What the protocol calls its key.
    pub key_field: &'static str,
    /// Where its rows are.
    pub scope: Scope,
    /// In the order in which they are answered.
    pub fields: &'static [Field],
}

impl Entity {
    /// Whether no two rows of a partition have the same key. An element has a row for each instance that took it as a flow.
    pub(crate) fn has_own_keys(&self) -> bool {
        self.key != "r.element"
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Where rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each partition has its own.
    Every,
    /// All partitions have the same: one of them is asked.
    Same,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number that is written as a text; null for none.
    Key,
    /// The same, -1 for none: there are official clients that read it as a number without looking whether it is there.
    KeyOrMinusOne,
    /// A text; null for none.
    Text,
    /// The JSON of a variable, as a text that may be shortened.
    Value,
    /// Whether [`Kind::Value`] was shortened.
    IsTruncated,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// Milliseconds that are written as a date; null for none.
    Instant,
    /// A number that stands for a name.
    Enumeration(Enumeration),
    /// JSON, or an empty object or list for none.
    Object,
    /// A list as JSON.
    List,
    /// What no row has.
    Null,
    /// What all rows have.
    Constant(&'static str),
}

/// How rows are chosen by a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filter {
    /// Not at all.
    None,
    /// By its own column.
    Column,
    /// By its own column, the key of an element instance, for which there is no index: what is equal to something is looked for among the
    /// rows of the process instance that it is in.
    ElementInstance,
    /// By the numbers that another table has for it: `on` is one of those that `select` finds by `column`.
    Via { on: &'static str, select: &'static str, column: &'static str },
    /// By rows of another table: all conditions with the same `exists` are for the same row.
    Exists { exists: &'static str, column: &'static str },
    /// By entries of another table, each condition for itself: the negative ones mean that no entry is like that.
    Has { has: &'static str, column: &'static str },
}

/// What is true of no row.
pub(crate) const NEVER: &str = "(1 = 0)";

/// A field of an entity.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// As the protocol calls it.
    pub name: &'static str,
    pub(crate) sql: &'static str,
    /// What its values are.
    pub kind: Kind,
    pub(crate) filter: Filter,
    /// Whether rows can be ordered by it.
    pub is_sortable: bool,
    /// Whether it is a part of answers.
    pub is_answered: bool,
    /// Whether each row has a value.
    pub(crate) is_required: bool,
    /// Whether values may be long texts, of which only the beginning is sorted by.
    pub(crate) is_long: bool,
}

impl Field {
    /// Whether all rows have the same: there is nothing to order by.
    pub(crate) fn is_constant(&self) -> bool {
        ["NULL", "0", NEVER].contains(&self.sql)
    }

    /// Whether rows can be chosen by it.
    pub fn is_filter(&self) -> bool {
        !matches!(self.filter, Filter::None)
    }

    /// Each row has a value.
    pub(crate) const fn required(self) -> Field {
        Field { is_required: true, ..self }
    }

    /// Values may be long.
    pub(crate) const fn long(self) -> Field {
        Field { is_long: true, ..self }
    }

    pub(crate) const fn unsorted(self) -> Field {
        Field { is_sortable: false, ..self }
    }

    pub(crate) const fn unfiltered(self) -> Field {
        Field { filter: Filter::None, ..self }
    }

    /// To choose and to sort rows by.
    pub(crate) const fn unanswered(self) -> Field {
        Field { is_answered: false, ..self }
    }

    /// Only to choose rows by.
    pub(crate) const fn hidden(self) -> Field {
        self.unanswered().unsorted()
    }

    pub(crate) const fn of_element_instance(self) -> Field {
        Field { filter: Filter::ElementInstance, ..self }
    }

    pub(crate) const fn via(self, on: &'static str, select: &'static str, column: &'static str) -> Field {
        Field { filter: Filter::Via { on, select, column }, ..self }
    }
}

/// A field with a column that can be filtered and sorted by.
pub(crate) const fn field(name: &'static str, sql: &'static str, kind: Kind) -> Field {
    let filter = Filter::Column;
    Field { name, sql, kind, filter, is_sortable: true, is_answered: true, is_required: false, is_long: false }
}

/// What is answered and nothing else.
pub(crate) const fn shown(name: &'static str, sql: &'static str, kind: Kind) -> Field {
    field(name, sql, kind).unsorted().unfiltered()
}

/// What no row has yet.
pub(crate) const fn null(name: &'static str) -> Field {
    field(name, "NULL", Kind::Null)
}

/// What is chosen by the entries of a list.
pub(crate) const fn has(name: &'static str, kind: Kind, has: &'static str, column: &'static str) -> Field {
    Field { filter: Filter::Has { has, column }, ..field(name, "NULL", kind).hidden() }
}

/// What is chosen by rows of another table.
pub(crate) const fn exists(name: &'static str, kind: Kind, exists: &'static str, column: &'static str) -> Field {
    Field { filter: Filter::Exists { exists, column }, ..field(name, "NULL", kind).hidden() }
}
