//! Files of older formats are brought to the present one, step by step.

use rusqlite::Connection;

use crate::schema::SCHEMA_VERSION;

/// From 1 to 2: what is deleted can be given back to the file system, old things are found by state and end, instances of a
/// definition in the order of their begin, and instances by a variable without its row.
const TO_2: &str = "
DROP INDEX process_instance_by_state;
CREATE INDEX process_instance_by_state ON process_instance(state, end_date);
CREATE INDEX process_instance_by_definition_and_start ON process_instance(process_definition_key, state, start_date);
DROP INDEX variable_by_value;
CREATE INDEX variable_by_value ON variable(name, comparable, process_instance_key);
CREATE INDEX decision_instance_without_instance ON decision_instance(evaluation_date)
    WHERE process_instance_key IS NULL;
";

/// Whether files of this version can be brought to the present one.
pub(crate) fn is_known(version: i64) -> bool {
    (1..=SCHEMA_VERSION).contains(&version)
}

/// Brings a file to the present format. Each step is one transaction, with its version.
pub(crate) fn migrate(connection: &Connection, version: i64) -> rusqlite::Result<()> {
    if version < 2 {
        connection.execute_batch(&format!("BEGIN; {TO_2} PRAGMA user_version = 2; COMMIT;"))?;
        // Only a file that is written anew learns to get shorter. Without room for that it stays as it is: its free pages are
        // used again.
        if let Err(error) = connection.execute_batch("VACUUM") {
            tracing::warn!(%error, "the read model could not be written anew; its file gets no shorter when something is deleted");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use protocol::{PartitionId, RecordPlace};

    use crate::store::{Store, path_of};

    /// Indexes and tables as they are defined.
    fn schema(store: &Store) -> Vec<(String, String)> {
        let select = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
        let mut statement = store.connection.prepare(select).expect("a statement");
        let rows = statement.query_map([], |row| {
            let sql: String = row.get(1)?;
            Ok((row.get(0)?, sql.split_whitespace().collect::<Vec<_>>().join(" ")))
        });
        rows.expect("rows").collect::<rusqlite::Result<_>>().expect("a schema")
    }

    #[test]
    fn a_file_of_format_1_is_gone_on_with() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = path_of(directory.path(), PartitionId(1));
        let old = rusqlite::Connection::open(&path).expect("a file");
        old.execute_batch(include_str!("../tests/data/format-1.sql")).expect("a file as format 1 has it");
        drop(old);
        let store = Store::open(directory.path(), PartitionId(1)).expect("it is understood");
        assert_eq!(store.place, RecordPlace { incarnation: 1, position: 40, number: 17 });
        let instances = "SELECT count(*) FROM process_instance WHERE state = 1 AND end_date = 1700000000500";
        let count = |select: &str| store.connection.query_row(select, [], |row| row.get::<_, i64>(0)).expect("a count");
        assert_eq!(count(instances), 1);
        assert_eq!(count("PRAGMA auto_vacuum"), 2);
        let new = tempfile::tempdir().expect("a directory");
        let new = Store::open(new.path(), PartitionId(1)).expect("a new file");
        assert_eq!(schema(&store), schema(&new));
        drop(store);
        Store::open(directory.path(), PartitionId(1)).expect("it is of the present format now");
    }
}
