//! Groups that something is counted in, page by page, in the order of what their members have in common.

use std::collections::BTreeSet;

use super::collected::Collected;
use super::condition::Value;
use super::cursor::Cursor;
use super::readers::{Failure, Readers};
use super::search::TOTAL_MAX;
use super::sql::Sql;
use crate::database::{Cell, Database, Result, Row};

/// Where a page of groups begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStart {
    /// With the first one.
    First,
    /// With the one that has this number, counted from 0.
    From(u32),
    /// Behind one that an earlier answer named.
    After(Cursor),
}

/// Which groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPage {
    /// Where it begins.
    pub start: GroupStart,
    /// How many at most.
    pub limit: u32,
}

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped<T> {
    /// In their order.
    pub items: Vec<T>,
    /// How many groups there are on all pages, at most 10,000.
    pub total: u64,
    /// Whether there are more than that.
    pub has_more: bool,
    /// Where the first one and the last one are, if there are cursors for them.
    pub ends: Option<(Cursor, Cursor)>,
}

impl GroupPage {
    /// The first groups.
    pub const fn first(limit: u32) -> GroupPage {
        GroupPage { start: GroupStart::First, limit }
    }

    /// Those of all groups that are on it, where there are no cursors.
    pub fn of<T>(&self, all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        all.into_iter().skip(self.skipped() as usize).take(self.limit as usize)
    }

    pub(super) fn skipped(&self) -> u32 {
        match self.start {
            GroupStart::From(skipped) => skipped,
            GroupStart::First | GroupStart::After(_) => 0,
        }
    }

    /// Whether the next page is counted, so that this one has to be whole.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.start, GroupStart::From(_))
    }

    /// So many groups of each partition may be on it or before it.
    pub(super) fn rows(&self) -> u32 {
        self.skipped().saturating_add(self.limit)
    }
}

/// What the groups on a page have in common, and how many groups there are.
#[derive(Debug)]
pub(super) struct Keys {
    /// In their order.
    pub on_page: Vec<Value>,
    total: u64,
    has_more: bool,
}

impl Keys {
    /// The first and the last one.
    pub fn ends(&self) -> Option<(&Value, &Value)> {
        self.on_page.first().zip(self.on_page.last())
    }

    /// The page with what was counted for these of its groups; none for one that is gone meanwhile. The next
    /// page begins behind the last one.
    pub fn page<T>(&self, groups: impl IntoIterator<Item = (Value, Option<T>)>) -> Grouped<T> {
        let (keys, items): (Vec<Value>, Vec<Option<T>>) = groups.into_iter().unzip();
        let cursor = |value: &Value| Cursor::of_group(value.clone());
        let ends = keys.first().zip(keys.last()).map(|(first, last)| (cursor(first), cursor(last)));
        let items = items.into_iter().flatten().collect();
        Grouped { items, total: self.total, has_more: self.has_more, ends }
    }
}

/// What a row begins with, as a value.
pub(super) fn first_value(row: &Row<'_>) -> Result<Value> {
    Ok(match row.cell(0)? {
        Cell::Integer(number) => Value::Integer(number),
        Cell::Text(text) => Value::Text(text.to_owned()),
        _ => Value::Null,
    })
}

impl Readers {
    /// What the groups on a page have in common: `of` selects it as `k` in a partition. No more is read
    /// than the page and the number of groups need.
    pub(super) fn keys_of_groups(
        &mut self,
        page: &GroupPage,
        of: impl Fn(&Database) -> Result<Sql>,
    ) -> std::result::Result<Keys, Failure> {
        let (rows, mut found, mut collected) = (page.rows(), BTreeSet::new(), Collected::default());
        let mut is_all = !matches!(page.start, GroupStart::After(_));
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let mut select = distinct(of(database)?);
                if let GroupStart::After(cursor) = &page.start {
                    select.push(" WHERE k > ").bind(cursor.group());
                }
                select.push(&format!(" ORDER BY k LIMIT {rows}"));
                let mut count = 0;
                database.query(&select.text, &select.bound(), |row| {
                    count += 1;
                    add(&mut found, first_value(row)?, &mut collected)
                })?;
                is_all &= count < rows;
                Ok(())
            })?;
        }
        let total = if is_all { found.len() as u64 } else { self.count_groups(&of)? };
        Ok(Keys { on_page: page.of(found).collect(), total: total.min(TOTAL_MAX), has_more: total > TOTAL_MAX })
    }

    /// How many groups there are; more than a search counts are one more than that.
    fn count_groups(&mut self, of: &impl Fn(&Database) -> Result<Sql>) -> std::result::Result<u64, Failure> {
        let (mut found, mut collected) = (BTreeSet::new(), Collected::default());
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let mut select = distinct(of(database)?);
                select.push(&format!(" LIMIT {}", TOTAL_MAX + 1));
                database.query(&select.text, &select.bound(), |row| add(&mut found, first_value(row)?, &mut collected))
            })?;
        }
        Ok(found.len() as u64)
    }
}

fn distinct(of: Sql) -> Sql {
    let mut select = Sql::of("SELECT DISTINCT k FROM (");
    select.append(of).push(") AS found");
    select
}

fn add(found: &mut BTreeSet<Value>, value: Value, collected: &mut Collected) -> Result<()> {
    let bytes = match &value {
        Value::Text(text) => text.len(),
        Value::Integer(_) | Value::Null => 0,
    };
    if found.insert(value) { collected.add(bytes) } else { Ok(()) }
}
