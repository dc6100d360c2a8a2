//! A search: over all partitions, in one order, page by page.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::time::Instant;

use protocol::PartitionId;

use super::condition::{Condition, Test, Value};
use super::cursor::{Cursor, Direction};
use super::entities::PROCESS_INSTANCES;
use super::entity::{Entity, Field, Filter, Kind, Scope};
use super::readers::{Failure, Readers};
use super::row;
use super::sql::{self, Sql};
use crate::database::{Cell, Database, Dialect, Result as Read};
use crate::enumerations::Enumeration;
use crate::queue::Cost;

/// An answer ends with the row that makes it larger: values of variables may be large.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// So often a page is looked for whose rows change before they are read.
const TRIES_MAX: u32 = 100;
/// More rows are not counted.
pub const TOTAL_MAX: u64 = 10_000;

/// A row as JSON, and its place in the order.
type Item = (Cursor, Vec<u8>);

/// What to sort by.
#[derive(Debug, Clone, Copy)]
pub struct Sort {
    /// The field.
    pub field: &'static Field,
    /// Largest first.
    pub descending: bool,
}

/// Which rows of all that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// From the first row on. It ends early when it is large, and its cursor goes on there.
    First,
    /// From the row with this number on, counted from 0. It is whole, because the next page is counted too.
    From(u32),
    /// From a row on that an earlier answer named.
    At(Direction, Cursor),
}

/// A search.
#[derive(Debug, Clone)]
pub struct Search {
    /// What is searched.
    pub entity: &'static Entity,
    /// What rows must be like.
    pub condition: Condition,
    /// What they are sorted by, and last by their key.
    pub sort: Vec<Sort>,
    /// Which of them.
    pub page: Page,
    /// How many at most.
    pub limit: u32,
    /// Whether long values are shortened.
    pub truncates: bool,
    /// The only partition that can have one; none for all.
    pub partition: Option<PartitionId>,
}

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows as JSON.
    pub items: Vec<Vec<u8>>,
    /// How many fit, at most 10,000.
    pub total: u64,
    /// Whether there are more than that.
    pub has_more: bool,
    /// The first row and the last one.
    pub ends: Option<(Cursor, Cursor)>,
}

impl Search {
    /// All rows that fit, in the usual order.
    pub fn new(entity: &'static Entity, condition: Condition) -> Search {
        Search { entity, condition, sort: Vec::new(), page: Page::First, limit: 100, truncates: true, partition: None }
    }

    /// Searches: first for the places of the rows on the page, in all partitions, then for what is in those rows.
    ///
    /// # Errors
    /// When it takes too long or a file cannot be read.
    pub fn run(&self, readers: &mut Readers) -> Result<Found, Failure> {
        let mut partitions = readers.partitions().to_vec();
        if let Some(only) = self.partition {
            // A key may name a partition that there is not, and nothing has such a key.
            partitions.retain(|partition| *partition == only);
        }
        if self.entity.scope == Scope::Same {
            partitions.truncate(1);
        }
        let mut tries = 0;
        let (rows, total) = loop {
            let (mut places, mut total) = (Vec::new(), 0);
            for &partition in &partitions {
                let (found, count) = readers.read(partition, |database| self.places(database, partition))?;
                places.extend(found);
                total += count;
            }
            let page = self.page_of(places);
            let is_last = page.is_empty();
            let rows = self.rows(readers, page)?;
            // When all rows of the page have changed in between, an empty one would say that nothing follows.
            if !rows.is_empty() || is_last {
                break (rows, total);
            }
            tries += 1;
            if tries == TRIES_MAX || Instant::now() >= readers.deadline() {
                return Err(Failure::NotYet("the rows that it finds keep changing"));
            }
        };
        let ends = rows.first().zip(rows.last()).map(|((first, _), (last, _))| (first.clone(), last.clone()));
        let items = rows.into_iter().map(|(_, item)| item).collect();
        Ok(Found { items, total: total.min(TOTAL_MAX), has_more: total > TOTAL_MAX, ends })
    }

    /// The row with a key, if there is one.
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn first(&self, readers: &mut Readers) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.run(readers)?.items.into_iter().next())
    }

    /// What it costs: whether it looks for the row with a key, of which it compares no more than columns.
    pub fn cost(&self) -> Cost {
        let is_by_key = self.entity.has_own_keys() && equals(&self.condition, self.entity.key);
        if is_by_key && is_cheap(&self.condition) { Cost::Key } else { Cost::Any }
    }

    fn is_backward(&self) -> bool {
        matches!(self.page, Page::At(Direction::Before, _))
    }

    /// What is on the page of what all partitions have for it, in the order of the answer.
    fn page_of(&self, mut places: Vec<Cursor>) -> Vec<Cursor> {
        places.sort_by(|one, other| self.compare(one, other));
        let limit = self.limit as usize;
        match &self.page {
            Page::From(first) => places.into_iter().skip(*first as usize).take(limit).collect(),
            Page::First | Page::At(Direction::After, _) => places.into_iter().take(limit).collect(),
            Page::At(Direction::Before, _) => {
                let skipped = places.len().saturating_sub(limit);
                places.into_iter().skip(skipped).collect()
            }
        }
    }

    /// The rows at these places, as many as an answer may have bytes, and at least one: from the cursor on, so that the next page goes
    /// on behind them.
    fn rows(&self, readers: &mut Readers, mut places: Vec<Cursor>) -> Result<Vec<Item>, Failure> {
        if self.is_backward() {
            places.reverse();
        }
        let (mut rows, mut bytes) = (Vec::with_capacity(places.len()), 0);
        let mut left = places.into_iter().peekable();
        while let Some(place) = left.next() {
            let partition = PartitionId(place.partition);
            // Neighbours are mostly of the same partition: they are read together.
            let mut together = vec![place];
            while let Some(next) = left.next_if(|next| next.partition == partition.0) {
                together.push(next);
            }
            let is_whole =
                readers.read(partition, |database| self.rows_of(database, together, &mut bytes, &mut rows))?;
            if !is_whole || bytes >= ANSWER_BYTES_MAX && left.peek().is_some() {
                if let Page::From(_) = self.page {
                    return Err(Failure::LargePage);
                }
                break;
            }
        }
        if self.is_backward() {
            rows.reverse();
        }
        Ok(rows)
    }

    /// Adds the rows at these places of a partition: whether there is room for all of them.
    fn rows_of(&self, database: &Database, places: Vec<Cursor>, bytes: &mut usize, rows: &mut Vec<Item>) -> Read<bool> {
        // Both statements see the same state.
        let _snapshot = database.snapshot()?;
        let fitting = self.fitting(database, &places)?;
        let mut statement = String::from("SELECT ");
        for (index, field) in self.fields().enumerate() {
            statement.push_str(if index > 0 { ", " } else { "" });
            statement.push_str(field.sql);
        }
        statement.push_str(&format!(" FROM {} WHERE ", database.dialect().words(self.entity.from)));
        // Which of the rows with the same key, only the condition says.
        let condition = if self.entity.has_own_keys() {
            Sql::default()
        } else {
            let mut condition = sql::condition(database, &self.condition)?;
            condition.push(" AND ").clone()
        };
        statement.push_str(&format!("{}{} = ? LIMIT 1", condition.text, self.entity.key));
        for place in places.into_iter().filter(|place| fitting.contains(&place.key)) {
            if *bytes >= ANSWER_BYTES_MAX {
                return Ok(false);
            }
            let mut bound = condition.bound();
            bound.push(place.key.into());
            let item = database.first(&statement, &bound, |row| {
                let mut item = Vec::with_capacity(512);
                row::write(&mut item, row, self.fields(), 0, self.truncates)?;
                Ok(item)
            })?;
            let Some(item) = item else { continue };
            *bytes += item.len();
            rows.push((place, item));
        }
        Ok(true)
    }

    /// The keys of those rows that are there and fit still. One statement for all of them: what it needs of other tables is
    /// read once.
    fn fitting(&self, database: &Database, places: &[Cursor]) -> Read<HashSet<i64>> {
        let key = self.entity.key;
        let mut statement = Sql::of(format!("SELECT {key} FROM {} WHERE ", database.dialect().words(self.entity.from)));
        let keys: Vec<Value> = places.iter().map(|place| Value::Integer(place.key)).collect();
        statement.append(sql::in_list(database.dialect(), key, &keys));
        statement.push(" AND ").append(sql::condition(database, &self.condition)?);
        Ok(database.all(&statement.text, &statement.bound(), |row| row.get(0))?.into_iter().collect())
    }

    /// The order of two rows, as the database has it.
    fn compare(&self, one: &Cursor, other: &Cursor) -> Ordering {
        for (sort, (left, right)) in self.sort.iter().zip(one.values.iter().zip(&other.values)) {
            let ordering = left.cmp(right);
            let ordering = if sort.descending { ordering.reverse() } else { ordering };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        (one.key, one.partition).cmp(&(other.key, other.partition))
    }

    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.entity.fields.iter().filter(|field| field.is_answered)
    }

    /// The places of one partition's rows that may be on the page, and how many rows fit.
    fn places(&self, database: &Database, partition: PartitionId) -> Read<(Vec<Cursor>, u64)> {
        let condition = sql::condition(database, &self.condition)?;
        let total = self.count(database, &condition)?;
        let statement = self.statement(database.dialect(), condition, partition);
        let sorted = self.sort.len();
        let places = database.all(&statement.text, &statement.bound(), |row| {
            let value = |index| {
                Ok(match row.cell(index)? {
                    Cell::Integer(number) => Value::Integer(number),
                    Cell::Text(text) => Value::Text(text.to_owned()),
                    _ => Value::Null,
                })
            };
            let values = (0..sorted).map(value).collect::<Read<_>>()?;
            Ok(Cursor { values, key: row.get(sorted)?, partition: partition.0 })
        })?;
        Ok((places, total))
    }

    fn count(&self, database: &Database, condition: &Sql) -> Read<u64> {
        let dialect = database.dialect();
        // Instances lie far apart, so those that a variable names are not looked at: they are there as long as their variables.
        let by_variables = std::ptr::eq(self.entity, &PROCESS_INSTANCES)
            .then(|| sql::instances_by_variables(dialect, &self.condition))
            .flatten();
        let fitting = by_variables.unwrap_or_else(|| {
            let mut fitting = Sql::of(format!("{} WHERE ", dialect.words(self.entity.from)));
            fitting.append(condition.clone());
            fitting
        });
        let limit = TOTAL_MAX + 1;
        let text = format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {limit}) AS fitting", fitting.text);
        let count: Option<i64> = database.first(&text, &fitting.bound(), |row| row.get(0))?;
        Ok(count.unwrap_or_default().unsigned_abs())
    }

    fn statement(&self, dialect: Dialect, condition: Sql, partition: PartitionId) -> Sql {
        let entity = self.entity;
        let is_backward = self.is_backward();
        let mut statement = Sql::of("SELECT ");
        for sort in &self.sort {
            statement.push(&sorted_by(sort.field)).push(", ");
        }
        statement.push(entity.key).push(" FROM ").push(&dialect.words(entity.from)).push(" WHERE ").append(condition);
        if let Page::At(_, cursor) = &self.page {
            statement.append(self.bound(dialect, cursor, is_backward));
            statement.push(" AND ").append(self.beyond(dialect, cursor, is_backward, partition));
        }
        statement.push(" ORDER BY ");
        for sort in self.sort.iter().filter(|sort| !sort.field.is_constant()) {
            let grows = sort.descending == is_backward;
            statement.push(&sorted_by(sort.field)).push(match (grows, sort.field.is_required) {
                (true, true) => ", ",
                (false, true) => " DESC, ",
                (true, false) => " NULLS FIRST, ",
                (false, false) => " DESC NULLS LAST, ",
            });
        }
        statement.push(entity.key).push(if is_backward { " DESC" } else { "" });
        let rows = match self.page {
            Page::From(first) => u64::from(first) + u64::from(self.limit),
            Page::First | Page::At(..) => u64::from(self.limit),
        };
        statement.push(&format!(" LIMIT {rows}"));
        statement
    }

    /// Where the first thing that is sorted by begins or ends: the database starts there, and does not read all pages before.
    fn bound(&self, dialect: Dialect, cursor: &Cursor, is_backward: bool) -> Sql {
        let Some((sort, value)) = self.sort.iter().zip(&cursor.values).next() else { return Sql::default() };
        let grows = sort.descending == is_backward;
        if *value == Value::Null || !(grows || sort.field.is_required) {
            return Sql::default();
        }
        let mut sql = Sql::of(" AND ");
        sql.append(compared(&number_or_column(dialect, sort.field), if grows { ">=" } else { "<=" }, value));
        sql
    }

    /// What comes behind a row in the order, or before it. No value comes before all others.
    fn beyond(&self, dialect: Dialect, cursor: &Cursor, is_backward: bool, partition: PartitionId) -> Sql {
        let mut ways = Vec::new();
        let mut equal: Vec<Sql> = Vec::new();
        for (sort, value) in self.sort.iter().zip(&cursor.values) {
            let column = &*number_or_column(dialect, sort.field);
            let grows = sort.descending == is_backward;
            let further = match (grows, value) {
                (true, Value::Null) => Some(Sql::of(format!("{column} IS NOT NULL"))),
                (true, value) => Some(compared(column, ">", value)),
                (false, Value::Null) => None,
                (false, value) => {
                    let mut sql = Sql::of(format!("({column} IS NULL OR "));
                    sql.append(compared(column, "<", value)).push(")");
                    Some(sql)
                }
            };
            if let Some(further) = further {
                ways.push(Sql::all(equal.iter().cloned().chain([further]).collect()));
            }
            equal.push(match value {
                Value::Null => Sql::of(format!("{column} IS NULL")),
                value => compared(column, "=", value),
            });
        }
        // Of rows that are equal otherwise, those of the smaller partition come first.
        let operator = match (is_backward, partition.0.cmp(&cursor.partition)) {
            (false, Ordering::Greater) => ">=",
            (false, _) => ">",
            (true, Ordering::Less) => "<=",
            (true, _) => "<",
        };
        equal.push(compared(self.entity.key, operator, &Value::Integer(cursor.key)));
        ways.push(Sql::all(equal));
        Sql::any(ways)
    }
}

/// Whether a column has to be equal to something.
fn equals(condition: &Condition, column: &str) -> bool {
    match condition {
        Condition::All(conditions) => conditions.iter().any(|one| equals(one, column)),
        Condition::Is(field, tests) => field.sql == column && tests.iter().any(|one| matches!(one, Test::Equal(_))),
        _ => false,
    }
}

/// A longer list of values is compared by the threads of dear searches.
const CHEAP_VALUES_MAX: usize = 100;

/// Whether a condition compares columns of a row with a few values, and no texts with patterns.
fn is_cheap(condition: &Condition) -> bool {
    match condition {
        Condition::All(conditions) => conditions.iter().all(is_cheap),
        Condition::Is(field, tests) => {
            let is_short = |test: &Test| match test {
                Test::Like(_) => false,
                Test::In(values) | Test::NotIn(values) => values.len() <= CHEAP_VALUES_MAX,
                _ => true,
            };
            matches!(field.filter, Filter::Column) && tests.iter().all(is_short)
        }
        _ => false,
    }
}

/// Of a text that may be long, so many characters are sorted by: cursors hold them, and so do all rows before a page.
const SORTED_CHARACTERS: usize = 100;

/// What rows are sorted by.
fn sorted_by(field: &Field) -> Cow<'static, str> {
    match field.kind {
        Kind::Enumeration(names) if !names.is_sorted() => rank(field.sql, names).into(),
        _ if field.is_long => format!("substr({}, 1, {SORTED_CHARACTERS})", field.sql).into(),
        _ => field.sql.into(),
    }
}

/// The place of a number's name in the order of the names: rows hold its place in the list.
fn rank(column: &str, names: Enumeration) -> String {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let mut sql = format!("CASE {column}");
    for (number, name) in names.iter().enumerate() {
        let rank = sorted.iter().position(|known| known == name).unwrap_or_default();
        sql.push_str(&format!(" WHEN {number} THEN {rank}"));
    }
    sql.push_str(" END");
    sql
}

/// What stands in cursors for a field.
fn number_or_column(dialect: Dialect, field: &Field) -> Cow<'static, str> {
    if field.kind == Kind::Boolean { dialect.number_of_condition(field.sql).into() } else { sorted_by(field) }
}

fn compared(column: &str, operator: &str, value: &Value) -> Sql {
    let mut sql = Sql::of(format!("{column} {operator} "));
    sql.bind(value.clone());
    sql
}
