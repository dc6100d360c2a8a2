//! Counts over the rows that fit, by what they have in common. They are made for each question, within the time of a search.

use std::collections::{BTreeMap, BTreeSet};

use protocol::PartitionId;

use super::collected::Collected;
use super::condition::{Condition, Value};
use super::entities::WAIT_STATES;
use super::groups::{GroupPage, Grouped};
use super::readers::{Failure, Readers};
use super::search::TOTAL_MAX;
use super::sql::{self, Sql};
use super::statistics::{ElementCounts, counted};
use crate::enumerations::{LOOP_BODY, PROCESS};

/// A definition, and how many instances of it have an error now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionErrors {
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
    /// Process instances with the error.
    pub instances: i64,
}

/// A definition, and who waits for messages in its instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionCounts {
    /// The key of the definition.
    pub key: i64,
    /// Its process.
    pub id: String,
    /// Its tenant.
    pub tenant: String,
    /// Process instances that wait for a message.
    pub instances: i64,
    /// Subscriptions that are open.
    pub subscriptions: i64,
}

impl Readers {
    /// How many instances the elements have in those process instances of a definition that fit.
    ///
    /// # Errors
    /// When the rows cannot be read, or that takes too long.
    pub fn element_counts_where(
        &mut self,
        definition: i64,
        condition: &Condition,
    ) -> Result<BTreeMap<String, ElementCounts>, Failure> {
        let (mut counts, mut collected) = (BTreeMap::<String, ElementCounts>::new(), Collected::default());
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let mut select = Sql::of(
                    "SELECT e.element_id, count(*) FILTER (WHERE r.state = 0 AND r.incident_key IS NULL), \
                     count(*) FILTER (WHERE r.state = 1), count(*) FILTER (WHERE r.state = 2), \
                     count(r.incident_key) FILTER (WHERE r.state = 0) FROM element_instance r \
                     CROSS JOIN element e ON e.id = r.element WHERE r.process_instance_key IN (SELECT p.key \
                     FROM process_instance p LEFT JOIN process_definition d ON d.key = p.process_definition_key \
                     WHERE p.process_definition_key = ",
                );
                select.bind(Value::Integer(definition)).push(" AND ").append(sql::condition(database, condition)?);
                select.push(&format!(") AND e.type NOT IN ({PROCESS}, {LOOP_BODY}) GROUP BY e.element_id"));
                database.query(&select.text, &select.bound(), |row| {
                    let of = counted(&mut counts, row.get(0)?, &mut collected)?;
                    of.active += row.get::<i64>(1)?;
                    of.completed += row.get::<i64>(2)?;
                    of.canceled += row.get::<i64>(3)?;
                    of.incidents += row.get::<i64>(4)?;
                    Ok(())
                })
            })?;
        }
        Ok(counts)
    }

    /// How many process instances of each definition have an error now, most first.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn definitions_with_error(&mut self, hash_code: i64) -> Result<Vec<DefinitionErrors>, Failure> {
        let mut counts: BTreeMap<i64, DefinitionErrors> = BTreeMap::new();
        let mut collected = Collected::default();
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let select = "SELECT d.key, d.id, d.name, d.version, d.tenant_id, count(DISTINCT r.process_instance_key) \
                              FROM incident r JOIN element e ON e.id = r.element \
                              JOIN process_definition d ON d.key = e.process_definition_key \
                              WHERE r.state = 0 AND r.error_hash_code = ? GROUP BY d.key";
                database.query(select, &[hash_code.into()], |row| {
                    let key = row.get(0)?;
                    let (id, name): (String, Option<String>) = (row.get(1)?, row.get(2)?);
                    if !counts.contains_key(&key) {
                        collected.add(id.len() + name.as_ref().map_or(0, String::len))?;
                    }
                    let of = counts.entry(key).or_insert(DefinitionErrors {
                        key,
                        id,
                        name,
                        version: row.get(3)?,
                        tenant: row.get(4)?,
                        instances: 0,
                    });
                    of.instances += row.get::<i64>(5)?;
                    Ok(())
                })
            })?;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_by_key(|of| std::cmp::Reverse(of.instances));
        Ok(counts)
    }

    /// The names that variables of a definition have had, of those that fit: the first ones in the order of their bytes, one more
    /// from each partition than a search counts.
    ///
    /// # Errors
    /// When the rows cannot be read, or that takes too long.
    pub fn variable_names(&mut self, definition: i64, condition: &Condition) -> Result<BTreeSet<String>, Failure> {
        let (mut names, mut collected) = (BTreeSet::new(), Collected::default());
        for partition in self.partitions().to_vec() {
            self.read(partition, |database| {
                let mut select = Sql::of("SELECT r.name FROM variable_name r WHERE r.process_definition_key = ");
                select.bind(Value::Integer(definition)).push(" AND ").append(sql::condition(database, condition)?);
                select.push(&format!(" ORDER BY r.name LIMIT {}", TOTAL_MAX + 1));
                database.query(&select.text, &select.bound(), |row| {
                    let name: String = row.get(0)?;
                    let bytes = name.len();
                    if names.insert(name) { collected.add(bytes) } else { Ok(()) }
                })
            })?;
        }
        Ok(names)
    }

    /// How many instances of each element wait for something in a process instance.
    ///
    /// # Errors
    /// When the rows cannot be read, or that takes too long.
    pub fn waiting_counts(&mut self, partition: PartitionId, instance: i64) -> Result<BTreeMap<String, i64>, Failure> {
        self.read(partition, |database| {
            let select = format!(
                "SELECT e.element_id, count(DISTINCT r.element_instance_key) FROM {} WHERE r.process_instance_key = ? GROUP BY e.element_id",
                database.dialect().words(WAIT_STATES.from)
            );
            let counts = database.all(&select, &[instance.into()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(counts.into_iter().collect())
        })
    }

    /// Open subscriptions that fit, by definition. Those of start events belong to no instance.
    ///
    /// # Errors
    /// When the rows cannot be read, or that takes too long or too much.
    pub fn subscription_counts(
        &mut self,
        condition: &Condition,
        page: &GroupPage,
    ) -> Result<Grouped<SubscriptionCounts>, Failure> {
        const OPEN: &str = "FROM message_subscription r \
             LEFT JOIN process_instance p ON p.key = r.process_instance_key \
             LEFT JOIN process_definition d ON d.key = r.process_definition_key \
             WHERE r.state = 0 AND r.process_instance_key IS NOT NULL AND r.process_definition_key IS NOT NULL AND ";
        let keys = self.keys_of_groups(page, |database| {
            let mut select = Sql::of(format!("SELECT r.process_definition_key AS k {OPEN}"));
            select.append(sql::condition(database, condition)?);
            Ok(select)
        })?;
        let mut counts: BTreeMap<Value, SubscriptionCounts> = BTreeMap::new();
        let mut collected = Collected::default();
        if let Some((first, last)) = keys.ends() {
            for partition in self.partitions().to_vec() {
                self.read(partition, |database| {
                    let mut select = Sql::of(format!(
                        "SELECT r.process_definition_key, min(r.process_definition_id), min(r.tenant_id), \
                         count(DISTINCT r.process_instance_key), count(*) {OPEN}"
                    ));
                    select.append(sql::condition(database, condition)?);
                    select.push(" AND r.process_definition_key >= ").bind(first.clone());
                    select.push(" AND r.process_definition_key <= ").bind(last.clone());
                    select.push(" GROUP BY r.process_definition_key");
                    database.query(&select.text, &select.bound(), |row| {
                        let (key, id, tenant): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                        collected.add(id.len() + tenant.len())?;
                        let new = SubscriptionCounts { key, id, tenant, instances: 0, subscriptions: 0 };
                        let of = counts.entry(Value::Integer(key)).or_insert(new);
                        of.instances += row.get::<i64>(3)?;
                        of.subscriptions += row.get::<i64>(4)?;
                        Ok(())
                    })
                })?;
            }
        }
        Ok(keys.page(keys.on_page.iter().map(|key| (key.clone(), counts.remove(key)))))
    }
}
