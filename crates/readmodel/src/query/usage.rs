//! How much was used.

use std::collections::BTreeSet;

use super::readers::{Failure, Readers};

/// Usage is counted for so long together.
pub const USAGE_MILLISECONDS: i64 = 300_000;

/// What was used in a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Process instances that began and that nobody called.
    pub process_instances: i64,
    /// Evaluations of decisions.
    pub decision_instances: i64,
    /// Different people to whom user tasks were given.
    pub assignees: i64,
}

impl Readers {
    /// What was used from the five minutes of one moment to those of another, over all partitions.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn usage_counts(&mut self, (from, to): (i64, i64)) -> Result<UsageCounts, Failure> {
        let (mut counts, mut assignees) = (UsageCounts::default(), BTreeSet::new());
        let from = from - from.rem_euclid(USAGE_MILLISECONDS);
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let select = "SELECT CAST(coalesce(sum(instances), 0) AS BIGINT), CAST(coalesce(sum(decisions), 0) AS BIGINT) \
                              FROM usage_count WHERE time >= ?1 AND time < ?2";
                database.query(select, &[from.into(), to.into()], |row| {
                    counts.process_instances += row.get::<i64>(0)?;
                    counts.decision_instances += row.get::<i64>(1)?;
                    Ok(())
                })?;
                let select = "SELECT DISTINCT assignee FROM usage_assignee WHERE time >= ?1 AND time < ?2";
                database.query(select, &[from.into(), to.into()], |row| {
                    assignees.insert(row.get::<i64>(0)?);
                    Ok(())
                })
            })?;
        }
        counts.assignees = i64::try_from(assignees.len()).unwrap_or(i64::MAX);
        Ok(counts)
    }
}
