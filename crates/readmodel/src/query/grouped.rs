//! Counts over the rows that fit, by what they have in common. They are made for each question, within the time of a search.

use std::collections::BTreeMap;
use std::time::Instant;

use super::condition::Condition;
use super::readers::{Failure, Readers, TIME_MAX};
use super::sql::{self, Sql};
use super::statistics::ElementCounts;
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
    /// When a file cannot be read, or that takes too long.
    pub fn element_counts_where(
        &mut self,
        definition: i64,
        condition: &Condition,
    ) -> Result<BTreeMap<String, ElementCounts>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let mut counts: BTreeMap<String, ElementCounts> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |connection| {
                let mut select = Sql::of(
                    "SELECT e.element_id, count(*) FILTER (WHERE r.state = 0), count(*) FILTER (WHERE r.state = 1), \
                     count(*) FILTER (WHERE r.state = 2), count(r.incident_key) FROM element_instance r \
                     CROSS JOIN element e ON e.id = r.element WHERE r.process_instance_key IN (SELECT p.key \
                     FROM process_instance p LEFT JOIN process_definition d ON d.key = p.process_definition_key \
                     WHERE p.process_definition_key = ",
                );
                select.bind(definition).push(" AND ").append(sql::condition(connection, condition)?);
                select.push(&format!(") AND e.type NOT IN ({PROCESS}, {LOOP_BODY}) GROUP BY e.element_id"));
                let mut statement = connection.prepare_cached(&select.text)?;
                let mut rows = statement.query(rusqlite::params_from_iter(&select.parameters))?;
                while let Some(row) = rows.next()? {
                    let of = counts.entry(row.get(0)?).or_default();
                    of.active += row.get::<_, i64>(1)?;
                    of.completed += row.get::<_, i64>(2)?;
                    of.canceled += row.get::<_, i64>(3)?;
                    of.incidents += row.get::<_, i64>(4)?;
                }
                Ok(())
            })?;
        }
        Ok(counts)
    }

    /// How many process instances of each definition have an error now, most first.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn definitions_with_error(&mut self, hash_code: i64) -> Result<Vec<DefinitionErrors>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let mut counts: BTreeMap<i64, DefinitionErrors> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |connection| {
                let select = "SELECT d.key, d.id, d.name, d.version, d.tenant_id, count(DISTINCT r.process_instance_key) \
                              FROM incident r JOIN element e ON e.id = r.element \
                              JOIN process_definition d ON d.key = e.process_definition_key \
                              WHERE r.state = 0 AND r.error_hash_code = ? GROUP BY d.key";
                let mut statement = connection.prepare_cached(select)?;
                let mut rows = statement.query([hash_code])?;
                while let Some(row) = rows.next()? {
                    let key = row.get(0)?;
                    let of = counts.entry(key).or_insert(DefinitionErrors {
                        key,
                        id: row.get(1)?,
                        name: row.get(2)?,
                        version: row.get(3)?,
                        tenant: row.get(4)?,
                        instances: 0,
                    });
                    of.instances += row.get::<_, i64>(5)?;
                }
                Ok(())
            })?;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_by_key(|of| std::cmp::Reverse(of.instances));
        Ok(counts)
    }

    /// Open subscriptions that fit, by definition. Those of start events belong to no instance.
    ///
    /// # Errors
    /// When a file cannot be read, or that takes too long.
    pub fn subscription_counts(&mut self, condition: &Condition) -> Result<Vec<SubscriptionCounts>, Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let mut counts: BTreeMap<i64, SubscriptionCounts> = BTreeMap::new();
        for partition in self.partitions().to_vec() {
            self.read(partition, deadline, |connection| {
                let mut select = Sql::of(
                    "SELECT r.process_definition_key, r.process_definition_id, r.tenant_id, \
                     count(DISTINCT r.process_instance_key), count(*) FROM message_subscription r \
                     LEFT JOIN process_instance p ON p.key = r.process_instance_key \
                     LEFT JOIN process_definition d ON d.key = r.process_definition_key \
                     WHERE r.state = 0 AND r.process_instance_key IS NOT NULL AND r.process_definition_key IS NOT NULL AND ",
                );
                select.append(sql::condition(connection, condition)?).push(" GROUP BY r.process_definition_key");
                let mut statement = connection.prepare_cached(&select.text)?;
                let mut rows = statement.query(rusqlite::params_from_iter(&select.parameters))?;
                while let Some(row) = rows.next()? {
                    let key = row.get(0)?;
                    let of = counts.entry(key).or_insert(SubscriptionCounts {
                        key,
                        id: row.get(1)?,
                        tenant: row.get(2)?,
                        instances: 0,
                        subscriptions: 0,
                    });
                    of.instances += row.get::<_, i64>(3)?;
                    of.subscriptions += row.get::<_, i64>(4)?;
                }
                Ok(())
            })?;
        }
        Ok(counts.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;

    use super::*;
    use crate::query::{Condition, INCIDENTS, PROCESS_INSTANCES, Search, Value};
    use crate::store::Store;

    /// Instance 100 has a subprocess 110 with a task 111 and a call 112, which called 200 with a task 210; and a task 120 beside it.
    /// Each task has an incident. Instance 300 completed. Subscriptions 1 and 2 wait in 100, 3 is closed, 4 is of a start event.
    const ROWS: &str = "
        INSERT INTO process_definition VALUES (7, 'p', 'P', 1, NULL, 'r', 't', 0, NULL);
        INSERT INTO element VALUES (1, 7, 'p', NULL, 1, 3, 0, 0, 0), (2, 7, 'task', NULL, 9, 3, 0, 0, 0),
            (3, 7, 'sub', NULL, 2, 1, 0, 0, 0), (4, 7, 'call', NULL, 20, 1, 0, 0, 0);
        INSERT INTO process_instance VALUES (100, 7, NULL, NULL, 100, 0, 1, NULL, 3, NULL),
            (200, 7, 100, 112, 100, 0, 1, NULL, 1, NULL), (300, 7, NULL, NULL, 300, 1, 1, 2, 0, NULL);
        INSERT INTO element_instance VALUES (110, 100, 100, 3, 0, 1, NULL, 2, NULL), (111, 100, 110, 2, 0, 1, NULL, 1, 1111),
            (112, 100, 110, 4, 0, 1, NULL, 1, NULL), (120, 100, 100, 2, 0, 1, NULL, 1, 1120), (210, 200, 200, 2, 0, 1, NULL, 1, 1210),
            (310, 300, 300, 2, 1, 1, 2, 0, NULL);
        INSERT INTO incident VALUES (1111, 100, 111, 2, NULL, 1, 'm', 5, 0, 1), (1120, 100, 120, 2, NULL, 1, 'm', 5, 0, 1),
            (1210, 200, 210, 2, NULL, 1, 'm', 5, 0, 1), (1300, 300, 310, 2, NULL, 1, 'm', 5, 1, 1);
        INSERT INTO message_subscription VALUES (1, 0, 7, 'p', 100, 111, 'e', 'm', 'c', 0, 1, 't'),
            (2, 0, 7, 'p', 100, 112, 'e', 'm', 'd', 0, 1, 't'), (3, 0, 7, 'p', 200, 210, 'e', 'm', 'd', 2, 1, 't'),
            (4, 1, 7, 'p', NULL, NULL, 's', 'm', NULL, 0, 1, 't');";

    fn readers() -> (tempfile::TempDir, Readers) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), PartitionId(1)).expect("a new file");
        store.connection.execute_batch(ROWS).expect("rows");
        let readers = Readers::new(directory.path().to_owned(), vec![PartitionId(1)]);
        (directory, readers)
    }

    #[test]
    fn incidents_of_an_element_are_also_those_inside_of_it_and_in_what_it_calls() {
        let (_directory, mut readers) = readers();
        for (element, wanted) in
            [(110, &[1111, 1210][..]), (112, &[1210]), (111, &[1111]), (120, &[1120]), (310, &[1300])]
        {
            let search = Search::new(&INCIDENTS, Condition::WithinElement(element));
            let found = search.run(&mut readers).expect("found");
            let key = |item: &Vec<u8>| -> i64 {
                let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
                item["incidentKey"].as_str().expect("a key").parse().expect("a number")
            };
            assert_eq!(found.items.iter().map(key).collect::<Vec<_>>(), wanted, "in {element}");
        }
    }

    #[test]
    fn counts_are_of_what_fits() {
        let (_directory, mut readers) = readers();
        let state = PROCESS_INSTANCES.field("state").expect("a field");
        let mut counts = |condition| readers.element_counts_where(7, &condition).expect("counts");
        let active = counts(Condition::equal(state, Value::Integer(0)));
        assert_eq!(active["task"], ElementCounts { active: 3, completed: 0, canceled: 0, incidents: 3 });
        assert_eq!(active["call"].active, 1);
        let completed = counts(Condition::equal(state, Value::Integer(1)));
        assert_eq!(completed["task"], ElementCounts { active: 0, completed: 1, canceled: 0, incidents: 0 });
        assert_eq!(completed.len(), 1);

        let errors = readers.definitions_with_error(5).expect("counts");
        assert_eq!(errors.iter().map(|of| (of.key, of.instances)).collect::<Vec<_>>(), [(7, 2)]);
        assert_eq!(readers.definitions_with_error(6).expect("counts"), []);
        let waiting = readers.subscription_counts(&Condition::always()).expect("counts");
        assert_eq!(waiting.iter().map(|of| (of.key, of.instances, of.subscriptions)).collect::<Vec<_>>(), [(7, 1, 2)]);
    }
}
