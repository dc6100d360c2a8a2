//! How many jobs were created, completed and failed, by what they have in common. The fold counts them by the minute.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::condition::{Condition, Value};
use super::entity::{Entity, Kind, Scope, field};
use super::readers::{Failure, Readers, TIME_MAX};
use super::sql::{self, Sql};
use crate::enumerations::{JOB_STATES, number_of};

/// Jobs are counted together that were created or ended in the same minute.
pub const JOB_COUNT_MILLISECONDS: i64 = 60_000;

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
    /// How many workers had such jobs.
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
    /// The columns of the name and the time of a group.
    fn columns(self) -> (&'static str, String) {
        match self {
            GroupBy::All => ("''", "0".to_owned()),
            GroupBy::Type => ("r.type", "0".to_owned()),
            GroupBy::Worker => ("r.worker", "0".to_owned()),
            GroupBy::Time(resolution) => {
                ("''", format!("r.time - r.time % {}", resolution.max(JOB_COUNT_MILLISECONDS)))
            }
        }
    }
}

impl Counted {
    fn add(&mut self, (count, last): (i64, Option<i64>)) {
        self.count += count;
        self.last = self.last.max(last);
    }
}

impl Readers {
    /// The jobs that fit, from the minute of one moment to that of another, in groups by name and time.
    ///
    /// # Errors
    /// When a file cannot be read, or that takes too long.
    pub fn job_counts(
        &mut self,
        by: GroupBy,
        (from, to): (i64, i64),
        condition: &Condition,
    ) -> Result<Vec<JobsOf>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let (name, time) = by.columns();
        let mut groups: BTreeMap<(i64, String), (JobCounts, BTreeSet<String>)> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |database| {
                let mut select = Sql::of(format!(
                    "SELECT {time}, {name}, r.worker, CAST(sum(r.created) AS BIGINT), max(r.created_at), \
                     CAST(sum(r.completed) AS BIGINT), max(r.completed_at), CAST(sum(r.failed) AS BIGINT), max(r.failed_at) FROM job_count r WHERE r.time >= "
                ));
                select.bind(Value::Integer(from - from.rem_euclid(JOB_COUNT_MILLISECONDS)));
                select.push(" AND r.time < ").bind(Value::Integer(to));
                select.push(" AND ").append(sql::condition(database, condition)?).push(" GROUP BY 1, 2, 3");
                database.query(&select.text, &select.bound(), |row| {
                    let worker: String = row.get(2)?;
                    let (counts, workers) = groups.entry((row.get(0)?, row.get(1)?)).or_default();
                    counts.created.add((row.get(3)?, row.get(4)?));
                    counts.completed.add((row.get(5)?, row.get(6)?));
                    counts.failed.add((row.get(7)?, row.get(8)?));
                    // A job that is created has none yet.
                    if !worker.is_empty() {
                        workers.insert(worker);
                    }
                    Ok(())
                })
            })?;
        }
        let group = |((time, name), (counts, workers)): ((i64, String), (JobCounts, BTreeSet<String>))| JobsOf {
            name,
            time,
            counts,
            workers: i64::try_from(workers.len()).unwrap_or(i64::MAX),
        };
        Ok(groups.into_iter().map(group).filter(|of| by != GroupBy::Worker || !of.name.is_empty()).collect())
    }

    /// The errors of the jobs that fit, that failed last or ended with an error from one moment to another, and how many
    /// workers had each; most workers first.
    ///
    /// # Errors
    /// When a file cannot be read, or that takes too long.
    pub fn job_errors(&mut self, (from, to): (i64, i64), condition: &Condition) -> Result<Vec<JobErrors>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let states = ["FAILED", "ERROR_THROWN"].map(|name| number_of(JOB_STATES, name).map_or(-1, i64::from));
        let mut workers: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |database| {
                let mut select = Sql::of(format!(
                    "SELECT DISTINCT coalesce(r.error_code, ''), coalesce(r.error_message, ''), r.worker FROM job r \
                     WHERE r.state IN ({}, {}) AND r.last_update_time >= ",
                    states[0], states[1]
                ));
                select
                    .bind(Value::Integer(from))
                    .push(" AND r.last_update_time < ")
                    .bind(Value::Integer(to))
                    .push(" AND ");
                select.append(sql::condition(database, condition)?);
                database.query(&select.text, &select.bound(), |row| {
                    workers.entry((row.get(0)?, row.get(1)?)).or_default().insert(row.get(2)?);
                    Ok(())
                })
            })?;
        }
        let error = |((code, message), workers): ((String, String), BTreeSet<String>)| JobErrors {
            code,
            message,
            workers: i64::try_from(workers.len()).unwrap_or(i64::MAX),
        };
        let mut errors: Vec<_> = workers.into_iter().map(error).collect();
        errors.sort_by_key(|of| std::cmp::Reverse(of.workers));
        Ok(errors)
    }
}
