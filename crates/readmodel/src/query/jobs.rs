//! How many jobs were created, completed and failed, by what they have in common. The fold counts them by the minute.

use std::collections::{BTreeMap, HashSet};

use super::collected::Collected;
use super::condition::{Condition, Value};
use super::entity::{Entity, Kind, Scope, field};
use super::groups::{GroupPage, Grouped, first_value};
use super::readers::{Failure, Readers};
use super::search::ANSWER_BYTES_MAX;
use super::sql::{self, Sql};
use crate::database::{Database, Result as Read, Row};
use crate::enumerations::{JOB_STATES, number_of};

/// Jobs are counted together that were created or ended in the same minute.
pub const JOB_COUNT_MILLISECONDS: i64 = 60_000;
/// Statistics show no more of an error's code.
const CODE_CHARACTERS_MAX: usize = 512;

/// What counts of jobs can be restricted by.
pub static JOB_COUNTS: Entity = Entity {
    name: "count of jobs",
    from: "job_count r",
    key: "r.time",
    key_field: "jobType",
    scope: Scope::Every,
    fields: &[field("jobType", "r.type", Kind::Text)],
};

/// What errors of jobs can be restricted by.
pub static JOB_ERRORS: Entity = Entity {
    name: "error of jobs",
    from: "job r",
    key: "r.key",
    key_field: "jobType",
    scope: Scope::Every,
    fields: &[
        field("jobType", "r.type", Kind::Text),
        field("errorCode", "coalesce(r.error_code, '')", Kind::Text),
        field("errorMessage", "coalesce(r.error_message, '')", Kind::Text),
    ],
};

/// How often something happened, and when it did last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// How often.
    pub count: i64,
    /// When it did last.
    pub last: Option<i64>,
}

/// How often jobs were created, completed, and failed or ended with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// They were created.
    pub created: Counted,
    /// They were completed.
    pub completed: Counted,
    /// A worker failed, or threw an error.
    pub failed: Counted,
}

/// What jobs are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// All together.
    All,
    /// Their type.
    Type,
    /// The worker that had them when it happened.
    Worker,
    /// So many milliseconds, in whole minutes.
    Time(i64),
}

/// A group of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsOf {
    /// Their type or worker; empty when they are counted by something else.
    pub name: String,
    /// When the time of the group begins; 0 when they are counted by something else.
    pub time: i64,
    /// The numbers.
    pub counts: JobCounts,
    /// How many workers had such jobs; 0 unless they are counted by their type.
    pub workers: i64,
}

/// An error of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobErrors {
    /// The code, if it was thrown.
    pub code: String,
    /// The message.
    pub message: String,
    /// How many workers have jobs that ended so.
    pub workers: i64,
}

impl GroupBy {
    /// What a group has in common.
    fn key(self) -> String {
        match self {
            GroupBy::All => "0".to_owned(),
            GroupBy::Type => "r.type".to_owned(),
            GroupBy::Worker => "r.worker".to_owned(),
            GroupBy::Time(resolution) => format!("r.time - r.time % {}", resolution.max(JOB_COUNT_MILLISECONDS)),
        }
    }

    /// What a cursor for such groups holds.
    pub fn kind(self) -> Kind {
        match self {
            GroupBy::Type | GroupBy::Worker => Kind::Text,
            GroupBy::All | GroupBy::Time(_) => Kind::Instant,
        }
    }
}

impl Counted {
    fn add(&mut self, (count, last): (i64, Option<i64>)) {
        self.count += count;
        self.last = self.last.max(last);
    }
}

/// A group while it is counted.
#[derive(Default)]
struct Counting {
    counts: JobCounts,
    /// The workers in other words, which are short.
    workers: HashSet<i64>,
}

impl Readers {
    /// The jobs that fit, from the minute of one moment to that of another, in groups.
    ///
    /// # Errors
    /// When a file cannot be read, or that takes too long or too much.
    pub fn job_counts(
        &mut self,
        by: GroupBy,
        period: (i64, i64),
        condition: &Condition,
        page: &GroupPage,
    ) -> Result<Grouped<JobsOf>, Failure> {
        let key = by.key();
        let keys = self.keys_of_groups(page, |database| {
            let mut select = Sql::of(format!("SELECT {key} AS k FROM job_count r WHERE "));
            select.append(counted_in(database, by, period, condition)?);
            Ok(select)
        })?;
        let mut groups: BTreeMap<Value, Counting> = BTreeMap::new();
        let mut collected = Collected::default();
        if let Some((first, last)) = keys.ends() {
            groups.extend(keys.on_page.iter().map(|key| (key.clone(), Counting::default())));
            for partition in self.partitions().to_vec() {
                self.read(partition, |database| {
                    let worker = database.dialect().text_hash("r.worker");
                    let worker = if by == GroupBy::Type { &*worker } else { "0" };
                    let mut select = Sql::of(format!(
                        "SELECT {key}, {worker}, CAST(sum(r.created) AS BIGINT), max(r.created_at), \
                         CAST(sum(r.completed) AS BIGINT), max(r.completed_at), CAST(sum(r.failed) AS BIGINT), \
                         max(r.failed_at), max(length(r.worker)) FROM job_count r WHERE {key} >= "
                    ));
                    select.bind(first.clone()).push(&format!(" AND {key} <= ")).bind(last.clone()).push(" AND ");
                    select.append(counted_in(database, by, period, condition)?).push(" GROUP BY 1, 2");
                    database.query(&select.text, &select.bound(), |row| {
                        let Some(group) = groups.get_mut(&first_value(row)?) else { return Ok(()) };
                        group.counts.created.add((row.get(2)?, row.get(3)?));
                        group.counts.completed.add((row.get(4)?, row.get(5)?));
                        group.counts.failed.add((row.get(6)?, row.get(7)?));
                        // A job that is created has none yet.
                        let has_worker = by == GroupBy::Type && row.get::<i64>(8)? > 0;
                        if has_worker && group.workers.insert(row.get(1)?) {
                            collected.add(0)?;
                        }
                        Ok(())
                    })
                })?;
            }
        }
        Ok(keys.page(groups.into_iter().map(|(key, Counting { counts, workers })| {
            let (name, time) = match &key {
                Value::Text(name) => (name.clone(), 0),
                Value::Integer(time) => (String::new(), *time),
                Value::Null => Default::default(),
            };
            let workers = i64::try_from(workers.len()).unwrap_or(i64::MAX);
            (key, Some(JobsOf { name, time, counts, workers }))
        })))
    }

    /// The errors of the jobs that fit, that failed last or ended with an error from one moment to another,
    /// and how many workers had each; on a page, most workers first.
    ///
    /// # Errors
    /// When a file cannot be read, or that takes too long or too much.
    pub fn job_errors(
        &mut self,
        period: (i64, i64),
        condition: &Condition,
        page: &GroupPage,
    ) -> Result<Grouped<JobErrors>, Failure> {
        let keys = self.keys_of_groups(page, |database| errors_in(database, period, condition))?;
        let mut workers: BTreeMap<&Value, HashSet<i64>> =
            keys.on_page.iter().map(|key| (key, HashSet::new())).collect();
        let mut texts = Texts { keys: &keys.on_page, found: BTreeMap::new(), without_room: None };
        let (mut collected, count) = (Collected::default(), self.partitions().len().max(1));
        if let Some((first, last)) = keys.ends() {
            for partition in self.partitions().to_vec() {
                self.read(partition, |database| {
                    // Its rows are read as they were when they were counted.
                    let _snapshot = database.snapshot()?;
                    let found = || -> Read<Sql> {
                        let mut select = Sql::of("(");
                        select.append(errors_in(database, period, condition)?).push(") AS found WHERE k >= ");
                        select.bind(first.clone()).push(" AND k <= ").bind(last.clone());
                        Ok(select)
                    };
                    texts.read(database, found()?, ANSWER_BYTES_MAX / count)?;
                    let mut select = Sql::of("SELECT DISTINCT k, worker FROM ");
                    select.append(found()?);
                    database.query(&select.text, &select.bound(), |row| {
                        let Some(workers) = workers.get_mut(&first_value(row)?) else { return Ok(()) };
                        if workers.insert(row.get(1)?) { collected.add(0) } else { Ok(()) }
                    })
                })?;
            }
        }
        let Texts { found: mut errors, without_room, .. } = texts;
        if without_room.is_some() && page.is_counted() {
            return Err(Failure::LargeGroups);
        }
        // With the first one whose texts have no room, the next page begins.
        let whole = keys.on_page.iter().take_while(|key| without_room.is_none_or(|end| *key < end));
        let mut found = keys.page(whole.map(|key| {
            let workers = workers.get(key).map_or(0, HashSet::len);
            let workers = i64::try_from(workers).unwrap_or(i64::MAX);
            (key.clone(), errors.remove(key).map(|error| JobErrors { workers, ..error }))
        }));
        found.items.sort_by(|one, other| {
            (other.workers, &one.code, &one.message).cmp(&(one.workers, &other.code, &other.message))
        });
        Ok(found)
    }
}

/// What counts are made of.
fn counted_in(database: &Database, by: GroupBy, (from, to): (i64, i64), condition: &Condition) -> Read<Sql> {
    if from >= to {
        // Not even what happened in the minute of both.
        return Ok(Sql::of("FALSE"));
    }
    let mut sql = Sql::of("r.time >= ");
    sql.bind(Value::Integer(from - from.rem_euclid(JOB_COUNT_MILLISECONDS)));
    sql.push(" AND r.time < ").bind(Value::Integer(to));
    sql.push(" AND ").append(sql::condition(database, condition)?);
    if by == GroupBy::Worker {
        sql.push(" AND r.worker <> ''");
    }
    Ok(sql)
}

/// The jobs with errors, each with a number `k` that stands for its code and message, which may be long,
/// and another one for its worker. The limit has them made before anything is sorted, so that the texts are not.
fn errors_in(database: &Database, (from, to): (i64, i64), condition: &Condition) -> Read<Sql> {
    let states = ["FAILED", "ERROR_THROWN"].map(|name| number_of(JOB_STATES, name).map_or(-1, i64::from));
    let dialect = database.dialect();
    let mut select = Sql::of(format!(
        "SELECT {} AS k, {} AS worker, r.key AS key FROM job r WHERE r.state IN ({}, {}) AND r.last_update_time >= ",
        // The length of the code tells where the message begins.
        dialect.text_hash(
            "CAST(length(coalesce(r.error_code, '')) AS text) || ' ' || coalesce(r.error_code, '') || ' ' || \
             coalesce(r.error_message, '')"
        ),
        dialect.text_hash("r.worker"),
        states[0],
        states[1]
    ));
    select.bind(Value::Integer(from)).push(" AND r.last_update_time < ").bind(Value::Integer(to)).push(" AND ");
    select.append(sql::condition(database, condition)?).push(&format!(" LIMIT {}", i64::MAX));
    Ok(select)
}

/// The texts of the errors on a page.
struct Texts<'a> {
    keys: &'a [Value],
    found: BTreeMap<Value, JobErrors>,
    /// The first one for which there was no room.
    without_room: Option<&'a Value>,
}

impl Texts<'_> {
    /// Reads those that a partition has, as many as there is room for, and at least one.
    fn read(&mut self, database: &Database, found: Sql, bytes_max: usize) -> Read<()> {
        let mut select = Sql::of("SELECT k, min(key) FROM ");
        select.append(found).push(" GROUP BY k ORDER BY k");
        let of = |row: &Row<'_>| Ok((first_value(row)?, row.get::<i64>(1)?));
        let jobs: BTreeMap<Value, i64> = database.all(&select.text, &select.bound(), of)?.into_iter().collect();
        let mut bytes = 0;
        for (group, job) in self.keys.iter().filter_map(|key| Some((key, *jobs.get(key)?))) {
            if self.found.contains_key(group) {
                continue;
            }
            if bytes >= bytes_max {
                self.without_room = Some(self.without_room.map_or(group, |known| known.min(group)));
                break;
            }
            let select = format!(
                "SELECT substr(coalesce(error_code, ''), 1, {CODE_CHARACTERS_MAX}), coalesce(error_message, '') \
                 FROM job WHERE key = ?"
            );
            let error = database.first(&select, &[job.into()], |row| {
                Ok(JobErrors { code: row.get(0)?, message: row.get(1)?, workers: 0 })
            })?;
            if let Some(error) = error {
                bytes += error.code.len() + error.message.len();
                self.found.insert(group.clone(), error);
            }
        }
        Ok(())
    }
}
