//! Counters that are kept, counted again from the rows: what is wrong with them. For tests and the simulator, because it
//! takes a look at every row.

use std::collections::{BTreeMap, BTreeSet};

use protocol::PartitionId;

use super::readers::{Failure, Readers};
use crate::database::{Database, Result};
use crate::enumerations::{ACTIVE, COMPLETED, INCIDENT_STATES, PROCESS, TERMINATED, number_of};

/// How many instances are active, completed and canceled, and how many incidents there are.
type Counts = [i64; 4];

/// Where an element instance or a called process is, and how many incidents it says that it has.
struct Place {
    /// The scope or the call activity around it; 0 for a root process.
    around: i64,
    incidents: i64,
}

impl Readers {
    /// The counters of a partition that are not what its rows say, a sentence for each. Rows must not have been removed.
    ///
    /// # Errors
    /// When the rows cannot be read, or that takes too long.
    pub fn wrong_counts(&mut self, partition: PartitionId) -> std::result::Result<Vec<String>, Failure> {
        self.read(partition, |database| {
            let mut wrong = wrong_counts_of_elements(database)?;
            wrong.extend(wrong_counts_of_instances(database)?);
            Ok(wrong)
        })
    }
}

fn wrong_counts_of_elements(database: &Database) -> Result<Vec<String>> {
    let select =
        "SELECT id, process_definition_key, element_id, type, active, completed, canceled, incidents FROM element";
    let kept = database.all(select, &[], |row| {
        let name = format!("'{}' of definition {}", row.get::<String>(2)?, row.get::<i64>(1)?);
        let counts: Counts = [row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?];
        Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<i64>(3)? == i64::from(PROCESS), name, counts))
    })?;
    let of_elements = "SELECT element, state, count(*), 0 FROM element_instance GROUP BY element, state";
    let mut counted = counted(database, of_elements)?;
    let active = number_of(INCIDENT_STATES, "ACTIVE").unwrap_or_default();
    let select = "SELECT element, count(*) FROM incident WHERE state = ? GROUP BY element";
    for (element, incidents) in database.all(select, &[active.into()], |row| Ok((row.get(0)?, row.get(1)?)))? {
        counted.entry(element).or_default()[3] = incidents;
    }
    let of_processes = "SELECT process_definition_key, state, count(*), sum(CASE WHEN incidents > 0 THEN 1 ELSE 0 END) \
                        FROM process_instance GROUP BY process_definition_key, state";
    let processes = self::counted(database, of_processes)?;
    let wrong = kept.into_iter().filter_map(|(id, definition, is_process, name, kept)| {
        let rows = if is_process { processes.get(&definition) } else { counted.get(&id) };
        let rows = rows.copied().unwrap_or_default();
        let says = |counts: Counts| {
            let [active, completed, canceled, incidents] = counts;
            format!("{active} active, {completed} completed, {canceled} canceled and {incidents} incidents")
        };
        (kept != rows).then(|| format!("{name} has {} by its counters and {} by its rows", says(kept), says(rows)))
    });
    Ok(wrong.collect())
}

/// Counts by number and state.
fn counted(database: &Database, select: &str) -> Result<BTreeMap<i64, Counts>> {
    let mut counted: BTreeMap<i64, Counts> = BTreeMap::new();
    database.query(select, &[], |row| {
        let counts = counted.entry(row.get(0)?).or_default();
        let state = u8::try_from(row.get::<i64>(1)?).unwrap_or(u8::MAX);
        if let Some(place) = [ACTIVE, COMPLETED, TERMINATED].iter().position(|known| *known == state) {
            counts[place] += row.get::<i64>(2)?;
        }
        counts[3] += row.get::<i64>(3)?;
        Ok(())
    })?;
    Ok(counted)
}

/// An instance has the incidents that are open in it, and in what is inside of it or called by it.
fn wrong_counts_of_instances(database: &Database) -> Result<Vec<String>> {
    let mut places: BTreeMap<i64, Place> = BTreeMap::new();
    let instances = [
        "SELECT key, COALESCE(parent_element_instance_key, 0), incidents FROM process_instance",
        "SELECT key, scope_key, incidents FROM element_instance",
    ];
    for select in instances {
        let rows = database
            .all(select, &[], |row| Ok((row.get(0)?, Place { around: row.get(1)?, incidents: row.get(2)? })))?;
        places.extend(rows);
    }
    let active = number_of(INCIDENT_STATES, "ACTIVE").unwrap_or_default();
    let select = "SELECT element_instance_key FROM incident WHERE state = ?";
    let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
    for element_instance in database.all(select, &[active.into()], |row| row.get::<i64>(0))? {
        let (mut at, mut passed) = (element_instance, BTreeSet::new());
        while let Some(place) = places.get(&at)
            && passed.insert(at)
        {
            *expected.entry(at).or_default() += 1;
            at = place.around;
        }
    }
    let wrong = places.into_iter().filter_map(|(key, place)| {
        let expected = expected.get(&key).copied().unwrap_or_default();
        let kept = place.incidents;
        (kept != expected).then(|| format!("{key} has {kept} incidents by its counter and {expected} by their rows"))
    });
    Ok(wrong.collect())
}
