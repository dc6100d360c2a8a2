//! The format of the tables, and how tables of older formats are brought to it, step by step.

use std::borrow::Cow;

use rusqlite::Connection;

use crate::schema::{SCHEMA_VERSION, TABLES};

/// A format of the tables.
pub(crate) struct Format {
    /// Its number, from 1.
    pub version: i64,
    /// What makes new tables.
    pub tables: Cow<'static, str>,
    /// What brings tables of the format before to the one with the number, in order.
    steps: &'static [(i64, &'static str)],
}

impl Format {
    /// The one that this version writes. Who raises its number adds the step to it.
    pub const PRESENT: Format = Format { version: SCHEMA_VERSION, tables: Cow::Borrowed(TABLES), steps: &[] };

    /// Whether tables of this version can be brought to the format.
    pub fn is_reached_from(&self, version: i64) -> bool {
        (1..=self.version).contains(&version)
    }

    /// What brings tables of this version to the format, each with the number of the format that it leads to.
    pub fn steps_from(&self, version: i64) -> impl Iterator<Item = (i64, &'static str)> {
        self.steps.iter().copied().filter(move |(to, _)| *to > version)
    }

    /// Brings a file to the format. Each step is one transaction, with its version.
    pub fn migrate(&self, connection: &Connection, version: i64) -> rusqlite::Result<()> {
        for (to, step) in self.steps_from(version) {
            connection.execute_batch(&format!("BEGIN; {step} PRAGMA user_version = {to}; COMMIT;"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::{PartitionId, RecordPlace};

    use super::*;
    use crate::database::{Database, Server};
    use crate::file::{self, path_of};
    use crate::postgresql::PostgreSqlServer;
    use crate::schema::APPLICATION_ID;
    use crate::store::Store;

    const PARTITION: PartitionId = PartitionId(1);

    /// Rows of a file of the present format. (A released format keeps a whole file, with the tables that it had.)
    const ROWS: &str = include_str!("../tests/data/rows.sql");

    /// The format after the present one, with one synthetic change: signals have a note, which is their name at first.
    fn test_format() -> Format {
        const NAME: &str = "    signal_name TEXT NOT NULL\n);";
        assert_eq!(TABLES.matches(NAME).count(), 1, "the table is there");
        let tables = TABLES.replace(NAME, "    signal_name TEXT NOT NULL, note TEXT\n);");
        let step =
            "ALTER TABLE signal_subscription ADD COLUMN note TEXT; UPDATE signal_subscription SET note = signal_name;";
        const TO: i64 = SCHEMA_VERSION + 1;
        let steps: &'static [(i64, &'static str)] = Vec::leak(vec![(TO, step)]);
        Format { version: TO, tables: Cow::Owned(tables), steps }
    }

    /// Indexes and tables as they are defined.
    fn schema(store: &Store) -> Vec<(String, String)> {
        let select = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
        let rows = store.database.all(select, &[], |row| {
            let sql: String = row.get(1)?;
            Ok((row.get(0)?, sql.split_whitespace().collect::<String>()))
        });
        rows.expect("a schema")
    }

    fn write_file(path: &Path) {
        let file = rusqlite::Connection::open(path).expect("a file");
        let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};");
        let content = format!("PRAGMA auto_vacuum = INCREMENTAL; BEGIN; {TABLES} {ROWS} {marks} COMMIT;");
        file.execute_batch(&content).expect("a file as the format has it");
    }

    /// How many rows each table has.
    fn rows(store: &Store) -> Vec<(&'static str, i64)> {
        let count = |table| (table, store.database.number(&format!("SELECT count(*) FROM {table}")));
        crate::schema::tables().map(count).collect()
    }

    #[test]
    fn a_file_of_the_present_format_is_gone_on_with_in_it_and_in_the_next_one() {
        let mut counted = Vec::new();
        for format in [Format::PRESENT, test_format()] {
            let [new, kept] = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
            let new = file::open_in_format(&format, new.path(), PARTITION).expect("a new file");
            write_file(&path_of(kept.path(), PARTITION));
            let store = file::open_in_format(&format, kept.path(), PARTITION).expect("it is understood");
            assert_eq!(store.place, RecordPlace { incarnation: 1, position: 40, number: 17 });
            let is_there = |select: &str| assert_eq!(store.database.number(select), 1, "{select}");
            is_there("SELECT count(*) FROM process_instance WHERE state = 1 AND end_date = 1700000000500");
            is_there("SELECT count(*) FROM user_task WHERE assignee = 'ann'");
            is_there("SELECT count(*) FROM signal_subscription WHERE signal_name = 'go'");
            is_there("SELECT count(*) FROM resource WHERE id = 'clean'");
            if format.version > SCHEMA_VERSION {
                is_there("SELECT count(*) FROM signal_subscription WHERE note = 'go'");
            }
            assert_eq!(store.database.number("PRAGMA user_version"), format.version);
            assert_eq!(schema(&store), schema(&new), "format {}", format.version);
            counted.push(rows(&store));
            drop(store);
            file::open_in_format(&format, kept.path(), PARTITION).expect("it is of the format now");
            assert_eq!(std::fs::read_dir(kept.path()).expect("there").count(), 1, "nothing was set aside");
        }
        assert_eq!(counted[0], counted[1], "no row is lost and none is added");
    }

    /// Its rows may mean something else, so they are neither read nor changed.
    #[test]
    fn a_file_of_another_format_is_set_aside_as_it_is_and_a_new_one_begins() {
        // The next one, and as builds wrote it before format 1 was declared.
        for marks in [
            String::from("PRAGMA user_version = 2"),
            format!("PRAGMA application_id = {}; PRAGMA user_version = 8", 0x4F53_4D52),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = path_of(directory.path(), PARTITION);
            write_file(&path);
            let file = rusqlite::Connection::open(&path).expect("a file");
            file.execute_batch(&format!("PRAGMA journal_mode = WAL; {marks}")).expect("other marks");
            drop(file);
            let kept = std::fs::read(&path).expect("the file");
            let store = file::open(directory.path(), PARTITION).expect("a new file");
            assert_eq!(store.place, RecordPlace::default(), "what lives is told for it");
            assert_eq!(store.database.number("SELECT count(*) FROM process_instance"), 0);
            let aside = directory.path().join("partition-1.sqlite.damaged-1");
            assert!(std::fs::read(aside).expect("it is kept") == kept, "{marks}");
        }
    }

    #[test]
    fn tables_of_a_server_are_brought_to_the_next_format_and_those_of_others_are_left_alone() {
        let postgresql = PostgreSqlServer::shared();
        let url = postgresql.new_database();
        let server = Server::at(&url).expect("an address");
        let open = |format: &Format, cluster: &str| server.writer_in_format(format, PARTITION, cluster);
        let (database, _) = open(&Format::PRESENT, "of-tests").expect("new tables");
        let Database::PostgreSql(_) = database else { panic!("they are on the server") };
        drop(database);
        let columns = "SELECT string_agg(table_name || '.' || column_name || ' ' || data_type, ';' ORDER BY table_name, column_name) \
                       FROM information_schema.columns WHERE table_schema = 'osmia_1'";
        let present = postgresql.psql(&url, columns);
        postgresql.psql(&url, "INSERT INTO osmia_1.signal_subscription VALUES (3, 1, 2, 'wait', 'go')");
        drop(open(&Format::PRESENT, "of-tests").expect("they are understood"));
        assert_eq!(postgresql.psql(&url, columns), present);

        let next = test_format();
        drop(open(&next, "of-tests").expect("they are brought to it"));
        assert_eq!(postgresql.psql(&url, "SELECT note FROM osmia_1.signal_subscription"), "go");
        assert_eq!(postgresql.psql(&url, "SELECT version FROM osmia_1.layout"), next.version.to_string());
        let other = postgresql.new_database();
        drop(
            Server::at(&other).expect("an address").writer_in_format(&next, PARTITION, "of-tests").expect("new tables"),
        );
        assert_eq!(postgresql.psql(&url, columns), postgresql.psql(&other, columns));

        let error = open(&Format::PRESENT, "of-tests").expect_err("a later version").to_string();
        assert!(error.contains(&format!("has the format {}, and this version has 1", next.version)), "{error}");
        let error = open(&next, "another").expect_err("another cluster").to_string();
        assert!(error.contains("of the cluster of-tests, but this node is of the cluster another"), "{error}");
        // As builds wrote it before format 1 was declared.
        postgresql.psql(&url, "ALTER TABLE osmia_1.layout RENAME TO format");
        let error = open(&Format::PRESENT, "of-tests").expect_err("no format").to_string();
        assert!(error.contains("was written by a development build before format 1 of the read model"), "{error}");
        assert!(error.contains("Use an empty database"), "{error}");
        assert_eq!(
            postgresql.psql(&url, "SELECT count(*) FROM osmia_1.signal_subscription"),
            "1",
            "nothing was taken away"
        );
    }
}
