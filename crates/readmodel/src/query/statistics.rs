//! Counts that are kept, or made over few rows.

use std::collections::BTreeMap;
use std::time::Instant;

use protocol::PartitionId;

use super::condition::Condition;
use super::readers::{Failure, Readers, TIME_MAX};
use super::sql;
use crate::enumerations::{LOOP_BODY, PROCESS};

const SEQUENCE_FLOW: u8 = 18;

/// How many instances of an element are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElementCounts {
    /// That go on.
    pub active: i64,
    /// That ended well.
    pub completed: i64,
    /// That were ended.
    pub canceled: i64,
    /// Open incidents.
    pub incidents: i64,
}

/// How many instances a definition has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionCounts {
    /// The key of the definition.
    pub key: i64,
    /// Its process.
    pub id: String,
    /// What the model calls it.
    pub name: Option<String>,
    /// Its version.
    pub version: i32,
    /// Its tenant.
    pub tenant: String,
    /// Instances that go on.
    pub active: i64,
    /// Those of them with an incident.
    pub with_incident: i64,
}

/// An error, and how many instances have it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorCounts {
    /// Of the message.
    pub hash_code: i32,
    /// What went wrong.
    pub message: String,
    /// Process instances.
    pub instances: i64,
}

impl Readers {
    /// How many instances the elements of a definition have, kept by the fold.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn element_counts(&mut self, definition: i64) -> Result<BTreeMap<String, ElementCounts>, Failure> {
        let select = format!(
            "SELECT element_id, active, completed, canceled, incidents FROM element WHERE process_definition_key = ?1 \
             AND type NOT IN ({PROCESS}, {LOOP_BODY}, {SEQUENCE_FLOW})"
        );
        self.counted(self.partitions().to_vec(), &select, definition)
    }

    /// How many instances the elements of a process instance have.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn element_counts_of_instance(
        &mut self,
        partition: PartitionId,
        instance: i64,
    ) -> Result<BTreeMap<String, ElementCounts>, Failure> {
        let select = format!(
            "SELECT e.element_id, r.state = 0, r.state = 1, r.state = 2, r.incident_key IS NOT NULL \
             FROM element_instance r CROSS JOIN element e ON e.id = r.element \
             WHERE r.process_instance_key = ?1 AND e.type <> {LOOP_BODY}"
        );
        self.counted(vec![partition], &select, instance)
    }

    fn counted(
        &mut self,
        partitions: Vec<PartitionId>,
        select: &str,
        key: i64,
    ) -> Result<BTreeMap<String, ElementCounts>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let mut counts: BTreeMap<String, ElementCounts> = BTreeMap::new();
        for partition in partitions {
            self.read(partition, deadline, |database| {
                database.query(select, &[key.into()], |row| {
                    let of = counts.entry(row.get(0)?).or_default();
                    of.active += row.get::<i64>(1)?;
                    of.completed += row.get::<i64>(2)?;
                    of.canceled += row.get::<i64>(3)?;
                    of.incidents += row.get::<i64>(4)?;
                    Ok(())
                })
            })?;
        }
        counts.retain(|_, of| *of != ElementCounts::default());
        Ok(counts)
    }

    /// How many instances each definition that fits has, by its key; those without any too.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn definition_counts(&mut self, condition: &Condition) -> Result<Vec<DefinitionCounts>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let mut counts: BTreeMap<i64, DefinitionCounts> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |database| {
                let condition = sql::condition(database, condition)?;
                let text = format!(
                    "SELECT r.key, r.id, r.name, r.version, r.tenant_id, coalesce(e.active, 0), coalesce(e.incidents, 0) \
                     FROM process_definition r LEFT JOIN element e ON e.process_definition_key = r.key \
                     AND e.element_id = r.id AND e.type = {PROCESS} WHERE {}",
                    condition.text
                );
                database.query(&text, &condition.bound(), |row| {
                    let key = row.get(0)?;
                    let of = counts.entry(key).or_insert(DefinitionCounts {
                        key,
                        id: row.get(1)?,
                        name: row.get(2)?,
                        version: row.get(3)?,
                        tenant: row.get(4)?,
                        active: 0,
                        with_incident: 0,
                    });
                    of.active += row.get::<i64>(5)?;
                    of.with_incident += row.get::<i64>(6)?;
                    Ok(())
                })
            })?;
        }
        Ok(counts.into_values().collect())
    }

    /// How many process instances have each error now, most first.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn error_counts(&mut self) -> Result<Vec<ErrorCounts>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let mut counts: BTreeMap<(i32, String), i64> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |database| {
                let select = "SELECT error_hash_code, error_message, count(DISTINCT process_instance_key) FROM incident \
                              WHERE state = 0 GROUP BY error_hash_code, error_message";
                database.query(select, &[], |row| {
                    *counts.entry((row.get(0)?, row.get(1)?)).or_default() += row.get::<i64>(2)?;
                    Ok(())
                })
            })?;
        }
        let counts = counts.into_iter();
        let mut counts: Vec<_> =
            counts.map(|((hash_code, message), instances)| ErrorCounts { hash_code, message, instances }).collect();
        counts.sort_by_key(|of| std::cmp::Reverse(of.instances));
        Ok(counts)
    }

    /// The file that a definition was deployed with; `Some(None)` when the definition is there without it.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn model(&mut self, table: Models, key: i64) -> Result<Option<Vec<u8>>, Failure> {
        let Some(partition) = self.partitions().first().copied() else { return Ok(None) };
        let select = match table {
            Models::Process => "SELECT xml FROM process_definition WHERE key = ?",
            Models::DecisionRequirements => "SELECT xml FROM decision_requirements WHERE key = ?",
            Models::Decision => {
                "SELECT q.xml FROM decision_definition r CROSS JOIN decision_requirements q \
                 ON q.key = r.decision_requirements_key WHERE r.key = ?"
            }
        };
        self.read(partition, Instant::now() + TIME_MAX, |database| {
            database.first(select, &[key.into()], |row| row.get(0))
        })
    }

    /// The details of a decision instance: evaluated inputs and matched rules, as JSON.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn decision_details(&mut self, partition: PartitionId, key: &str) -> Result<Option<String>, Failure> {
        self.read(partition, Instant::now() + TIME_MAX, |database| {
            let select = "SELECT details FROM decision_instance WHERE instance_key = ?";
            database.first(select, &[key.into()], |row| row.get(0))
        })
    }
}

/// Which models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Models {
    /// Of processes.
    Process,
    /// Of files with decisions.
    DecisionRequirements,
    /// The file that a decision is in.
    Decision,
}
