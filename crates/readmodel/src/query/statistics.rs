//! Counts that are kept, or made over few rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use protocol::PartitionId;

use super::collected::Collected;
use super::condition::{Condition, Value};
use super::groups::{GroupPage, Grouped};
use super::readers::{Failure, Readers};
use super::search::{ANSWER_BYTES_MAX, TOTAL_MAX};
use super::sql::{self, Sql};
use crate::database::{self, Row};
use crate::enumerations::{LOOP_BODY, PROCESS};

const SEQUENCE_FLOW: u8 = 18;

/// How many instances of an element are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElementCounts {
    /// That go on, without an incident.
    pub active: i64,
    /// That ended well.
    pub completed: i64,
    /// That were ended.
    pub canceled: i64,
    /// That go on, with an incident.
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

/// What errors can be ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrder {
    /// How many process instances have it.
    Instances,
    /// The beginning of its message.
    Message,
}

/// What was counted for an element so far.
pub(super) fn counted<'a, T: Default>(
    counts: &'a mut BTreeMap<String, T>,
    name: String,
    collected: &mut Collected,
) -> database::Result<&'a mut T> {
    if !counts.contains_key(&name) {
        collected.add(name.len())?;
    }
    Ok(counts.entry(name).or_default())
}

/// So many characters of a message are sorted by.
const SORTED_CHARACTERS: usize = 100;

/// An error, and one of its incidents.
struct ErrorGroup {
    hash_code: i64,
    instances: i64,
    beginning: String,
    partition: PartitionId,
    incident: i64,
}

impl ErrorGroup {
    fn read(row: &Row<'_>, partition: PartitionId) -> database::Result<ErrorGroup> {
        let (hash_code, instances, incident) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(ErrorGroup { hash_code, instances, beginning: row.get(3)?, partition, incident })
    }

    fn add(&mut self, other: &ErrorGroup) {
        self.instances += other.instances;
        if other.beginning < self.beginning {
            self.beginning.clone_from(&other.beginning);
        }
    }

    fn compare(&self, other: &ErrorGroup, sort: &[(ErrorOrder, bool)]) -> Ordering {
        let given = sort.iter().map(|(by, is_descending)| {
            let order = match by {
                ErrorOrder::Instances => self.instances.cmp(&other.instances),
                ErrorOrder::Message => self.beginning.cmp(&other.beginning),
            };
            if *is_descending { order.reverse() } else { order }
        });
        let usual = [other.instances.cmp(&self.instances), self.hash_code.cmp(&other.hash_code)];
        given.chain(usual).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// The first errors of a partition in an order, one more than a search counts.
fn errors_in_order(sort: &[(ErrorOrder, bool)]) -> String {
    // The beginning is only read where it is sorted by.
    let is_by_message = sort.iter().any(|(by, _)| *by == ErrorOrder::Message);
    let beginning = match is_by_message {
        true => format!("min(substr(error_message, 1, {SORTED_CHARACTERS}))"),
        false => "''".to_owned(),
    };
    let mut select = format!(
        "SELECT error_hash_code, count(DISTINCT process_instance_key), min(key), {beginning} FROM incident \
         WHERE state = 0 GROUP BY error_hash_code ORDER BY "
    );
    for (by, is_descending) in sort {
        select.push_str(match by {
            ErrorOrder::Instances => "2",
            ErrorOrder::Message => "4",
        });
        select.push_str(if *is_descending { " DESC, " } else { ", " });
    }
    select.push_str(&format!("2 DESC, 1 LIMIT {}", TOTAL_MAX + 1));
    select
}

impl Readers {
    /// How many instances the elements of a definition have, kept by the fold.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn element_counts(&mut self, definition: i64) -> Result<BTreeMap<String, ElementCounts>, Failure> {
        let select = format!(
            "SELECT element_id, active - incidents, completed, canceled, incidents FROM element \
             WHERE process_definition_key = ?1 AND type NOT IN ({PROCESS}, {LOOP_BODY}, {SEQUENCE_FLOW})"
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
            "SELECT e.element_id, r.state = 0 AND r.incident_key IS NULL, r.state = 1, r.state = 2, \
             r.state = 0 AND r.incident_key IS NOT NULL \
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
        let (mut counts, mut collected) = (BTreeMap::<String, ElementCounts>::new(), Collected::default());
        for partition in partitions {
            self.read(partition, |database| {
                database.query(select, &[key.into()], |row| {
                    let of = counted(&mut counts, row.get(0)?, &mut collected)?;
                    of.active += row.get::<i64>(1)?.max(0);
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
        let mut counts: BTreeMap<i64, DefinitionCounts> = BTreeMap::new();
        let mut collected = Collected::default();
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let condition = sql::condition(database, condition)?;
                let text = format!(
                    "SELECT r.key, r.id, r.name, r.version, r.tenant_id, coalesce(e.active, 0), coalesce(e.incidents, 0) \
                     FROM process_definition r LEFT JOIN element e ON e.process_definition_key = r.key \
                     AND e.element_id = r.id AND e.type = {PROCESS} WHERE {}",
                    condition.text
                );
                database.query(&text, &condition.bound(), |row| {
                    let key = row.get(0)?;
                    let of = match counts.entry(key) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => {
                            let (id, name, tenant): (String, Option<String>, String) =
                                (row.get(1)?, row.get(2)?, row.get(4)?);
                            collected.add(id.len() + name.as_ref().map_or(0, String::len) + tenant.len())?;
                            let version = row.get(3)?;
                            new.insert(DefinitionCounts { key, id, name, version, tenant, active: 0, with_incident: 0 })
                        }
                    };
                    of.active += row.get::<i64>(5)?;
                    of.with_incident += row.get::<i64>(6)?;
                    Ok(())
                })
            })?;
        }
        Ok(counts.into_values().collect())
    }

    /// How many process instances have each error now: in the order that is asked for, then most first.
    /// Errors are told apart by the hash code of their message.
    ///
    /// # Errors
    /// When the rows cannot be read, that takes too long, or the page is too large.
    pub fn error_counts(
        &mut self,
        sort: &[(ErrorOrder, bool)],
        page: &GroupPage,
    ) -> Result<Grouped<ErrorCounts>, Failure> {
        let (mut groups, mut is_cut) = (BTreeMap::new(), false);
        for partition in self.partitions().to_vec() {
            let rows = self.read(partition, |database| {
                let select = errors_in_order(sort);
                database.all(&select, &[], |row| ErrorGroup::read(row, partition))
            })?;
            is_cut |= rows.len() as u64 > TOTAL_MAX;
            for of in rows {
                groups.entry(of.hash_code).and_modify(|known: &mut ErrorGroup| known.add(&of)).or_insert(of);
            }
        }
        let total = groups.len() as u64;
        let mut groups: Vec<ErrorGroup> = groups.into_values().collect();
        groups.sort_by(|one, other| one.compare(other, sort));
        let mut on_page: Vec<ErrorGroup> = page.of(groups).collect();
        if is_cut && self.partitions().len() > 1 {
            self.count_exactly(&mut on_page)?;
        }
        let items = self.error_messages(on_page)?;
        Ok(Grouped { items, total: total.min(TOTAL_MAX), has_more: total > TOTAL_MAX, ends: None })
    }

    /// Counts groups that some partition may have left out because it has too many others.
    fn count_exactly(&mut self, groups: &mut [ErrorGroup]) -> Result<(), Failure> {
        let codes: Vec<Value> = groups.iter().map(|of| Value::Integer(of.hash_code)).collect();
        let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let mut select = Sql::of(
                    "SELECT error_hash_code, count(DISTINCT process_instance_key) FROM incident WHERE state = 0 AND ",
                );
                select.append(sql::in_list(database.dialect(), "error_hash_code", &codes));
                select.push(" GROUP BY error_hash_code");
                database.query(&select.text, &select.bound(), |row| {
                    *counts.entry(row.get(0)?).or_default() += row.get::<i64>(1)?;
                    Ok(())
                })
            })?;
        }
        for of in groups {
            of.instances = counts.get(&of.hash_code).copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Groups with the message of one of their incidents each.
    fn error_messages(&mut self, groups: Vec<ErrorGroup>) -> Result<Vec<ErrorCounts>, Failure> {
        let (mut errors, mut bytes) = (Vec::with_capacity(groups.len()), 0);
        for of in groups {
            let select = "SELECT error_message FROM incident WHERE key = ?";
            let message: Option<String> =
                self.read(of.partition, |database| database.first(select, &[of.incident.into()], |row| row.get(0)))?;
            let Some(message) = message else { continue };
            bytes += message.len();
            if bytes > ANSWER_BYTES_MAX {
                return Err(Failure::LargeGroups);
            }
            let hash_code = i32::try_from(of.hash_code).unwrap_or_default();
            errors.push(ErrorCounts { hash_code, message, instances: of.instances });
        }
        Ok(errors)
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
        self.read(partition, |database| database.first(select, &[key.into()], |row| row.get(0)))
    }

    /// The details of a decision instance: evaluated inputs and matched rules, as JSON.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn decision_details(&mut self, partition: PartitionId, key: &str) -> Result<Option<String>, Failure> {
        self.read(partition, |database| {
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
