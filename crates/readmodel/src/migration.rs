//! Tables of older formats are brought to the present one, step by step.

use rusqlite::Connection;

use crate::database::{Database, Result};
use crate::fold::form;
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

/// From 2 to 3: forms, the forms that processes begin with, and user tasks.
const TO_3: &str = "
CREATE TABLE form(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    tenant_id TEXT NOT NULL,
    is_deleted INTEGER NOT NULL,
    content TEXT NOT NULL
);
CREATE INDEX form_by_id ON form(id, version);
CREATE TABLE start_form(
    process_definition_key INTEGER PRIMARY KEY,
    form_id TEXT NOT NULL
);
CREATE TABLE user_task(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element INTEGER NOT NULL,
    state INTEGER NOT NULL,
    assignee TEXT,
    candidate_groups TEXT NOT NULL,
    candidate_users TEXT NOT NULL,
    creation_date INTEGER NOT NULL,
    completion_date INTEGER,
    follow_up_date INTEGER,
    due_date INTEGER,
    external_form_reference TEXT,
    form_key INTEGER,
    priority INTEGER NOT NULL,
    custom_headers TEXT NOT NULL
);
CREATE INDEX user_task_of_instance ON user_task(process_instance_key);
CREATE INDEX user_task_by_assignee ON user_task(assignee, state, creation_date);
CREATE INDEX user_task_by_state ON user_task(state, creation_date);
CREATE TABLE user_task_candidate(
    process_instance_key INTEGER NOT NULL,
    user_task_key INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL
);
CREATE INDEX user_task_candidate_of_instance ON user_task_candidate(process_instance_key, user_task_key);
CREATE INDEX user_task_candidate_by_name ON user_task_candidate(kind, name, user_task_key);
";

/// From 3 to 4: timers that are not due yet, and how many jobs were created and ended in each minute. What came before is not
/// known.
const TO_4: &str = "
CREATE TABLE timer(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    due_date INTEGER NOT NULL,
    repetitions INTEGER NOT NULL
);
CREATE INDEX timer_of_instance ON timer(process_instance_key);
CREATE TABLE job_count(
    time INTEGER NOT NULL,
    type TEXT NOT NULL,
    worker TEXT NOT NULL,
    created INTEGER NOT NULL,
    created_at INTEGER,
    completed INTEGER NOT NULL,
    completed_at INTEGER,
    failed INTEGER NOT NULL,
    failed_at INTEGER,
    PRIMARY KEY (time, type, worker)
) WITHOUT ROWID;
";

/// From 4 to 5: what the rows lack, what jobs of listeners listen to and deny, who did what, how much was used, and conditions
/// that events wait for. What came before is not known; no instance had a business id.
const TO_5: &str = "
ALTER TABLE job ADD COLUMN listener_event_type INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN is_denied INTEGER;
ALTER TABLE job ADD COLUMN denied_reason TEXT;
ALTER TABLE process_instance ADD COLUMN business_id TEXT;
CREATE INDEX process_instance_by_business_id ON process_instance(business_id) WHERE business_id IS NOT NULL;
CREATE TABLE history(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    is_rebuilding INTEGER NOT NULL,
    complete_since INTEGER
);
INSERT INTO history VALUES (1, 0, NULL);
CREATE TABLE audit_log(
    key INTEGER PRIMARY KEY,
    entity_key INTEGER NOT NULL,
    entity_type INTEGER NOT NULL,
    operation_type INTEGER NOT NULL,
    result INTEGER NOT NULL,
    category INTEGER NOT NULL,
    time INTEGER NOT NULL,
    actor_type INTEGER NOT NULL,
    actor_id TEXT,
    process_definition_key INTEGER,
    process_instance_key INTEGER,
    element_instance_key INTEGER,
    user_task_key INTEGER,
    batch_operation_key INTEGER
);
CREATE INDEX audit_log_of_instance ON audit_log(process_instance_key);
CREATE INDEX audit_log_of_task ON audit_log(user_task_key) WHERE user_task_key IS NOT NULL;
CREATE INDEX audit_log_by_time ON audit_log(time);
CREATE TABLE usage_count(
    time INTEGER PRIMARY KEY,
    instances INTEGER NOT NULL,
    decisions INTEGER NOT NULL
);
CREATE TABLE usage_assignee(
    time INTEGER NOT NULL,
    assignee INTEGER NOT NULL,
    PRIMARY KEY (time, assignee)
) WITHOUT ROWID;
CREATE TABLE condition(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    expression TEXT NOT NULL,
    events TEXT NOT NULL
);
CREATE INDEX condition_of_instance ON condition(process_instance_key);
";

/// From 5 to 6: who did what with all that can be noted, and not with user tasks and running instances alone, and listeners of the
/// user tasks of all processes, of which there were none before.
const TO_6: &str = "
ALTER TABLE audit_log ADD COLUMN job_key INTEGER;
ALTER TABLE audit_log ADD COLUMN decision_definition_key INTEGER;
ALTER TABLE audit_log ADD COLUMN decision_definition_id TEXT;
ALTER TABLE audit_log ADD COLUMN decision_requirements_key INTEGER;
ALTER TABLE audit_log ADD COLUMN decision_requirements_id TEXT;
ALTER TABLE audit_log ADD COLUMN deployment_key INTEGER;
ALTER TABLE audit_log ADD COLUMN form_key INTEGER;
ALTER TABLE audit_log ADD COLUMN resource_key INTEGER;
ALTER TABLE audit_log ADD COLUMN description TEXT;
ALTER TABLE audit_log ADD COLUMN tenant_id TEXT;
CREATE TABLE global_listener(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    retries INTEGER NOT NULL,
    event_types TEXT NOT NULL,
    after_non_global INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    source INTEGER NOT NULL
);
CREATE TABLE global_listener_event(
    listener_key INTEGER NOT NULL,
    event_type INTEGER NOT NULL,
    PRIMARY KEY (listener_key, event_type)
) WITHOUT ROWID;
";

/// From 6 to 7: signals that events wait for, of which those that waited before are not known; and counters of elements, which
/// migrations of instances and incidents of processes had made wrong.
const TO_7: &str = "
CREATE TABLE signal_subscription(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    signal_name TEXT NOT NULL
);
CREATE INDEX signal_subscription_of_instance ON signal_subscription(process_instance_key);
UPDATE element SET active = 0, incidents = 0;
UPDATE element SET active = counted.instances FROM
    (SELECT i.element AS element, count(*) AS instances FROM element_instance i WHERE i.state = 0 GROUP BY i.element) counted
    WHERE element.id = counted.element;
UPDATE element SET active = counted.instances FROM
    (SELECT p.process_definition_key AS definition, count(*) AS instances FROM process_instance p WHERE p.state = 0
    GROUP BY p.process_definition_key) counted
    WHERE element.type = 1 AND element.process_definition_key = counted.definition;
UPDATE element SET incidents = counted.incidents FROM
    (SELECT i.element AS element, count(*) AS incidents FROM incident i WHERE i.state = 0 GROUP BY i.element) counted
    WHERE element.type <> 1 AND element.id = counted.element;
UPDATE element SET incidents = counted.instances FROM
    (SELECT p.process_definition_key AS definition, count(*) AS instances FROM process_instance p WHERE p.incidents > 0
    GROUP BY p.process_definition_key) counted
    WHERE element.type = 1 AND element.process_definition_key = counted.definition;
";

/// From 7 to 8: resources that are only kept, of which those that were deployed before are not known, and the names that
/// variables of a definition have.
const TO_8: &str = "
CREATE TABLE resource(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    version_tag TEXT,
    deployment_key INTEGER NOT NULL,
    tenant_id TEXT NOT NULL
);
CREATE INDEX resource_by_id ON resource(id, version);
CREATE TABLE variable_name(
    process_definition_key INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (process_definition_key, name)
) WITHOUT ROWID;
INSERT INTO variable_name(process_definition_key, name)
    SELECT DISTINCT p.process_definition_key, v.name FROM variable v JOIN process_instance p ON p.key = v.process_instance_key
    JOIN process_definition d ON d.key = p.process_definition_key WHERE d.state = 0 OR p.state = 0;
";

/// Whether files of this version can be brought to the present one.
pub(crate) fn is_known(version: i64) -> bool {
    (1..=SCHEMA_VERSION).contains(&version)
}

/// What brings tables of this version to the present one, step by step.
pub(crate) fn steps_from(version: i64) -> impl Iterator<Item = &'static str> {
    let steps = [(2, TO_2), (3, TO_3), (4, TO_4), (5, TO_5), (6, TO_6), (7, TO_7), (8, TO_8)];
    steps.into_iter().filter(move |(to, _)| *to > version).map(|(_, step)| step)
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
    if version < 3 {
        connection.execute_batch(&format!("BEGIN; {TO_3}"))?;
        fill_start_forms(connection)?;
        connection.execute_batch("PRAGMA user_version = 3; COMMIT;")?;
    }
    if version < 4 {
        connection.execute_batch(&format!("BEGIN; {TO_4} PRAGMA user_version = 4; COMMIT;"))?;
    }
    if version < 5 {
        connection.execute_batch(&format!("BEGIN; {TO_5} PRAGMA user_version = 5; COMMIT;"))?;
    }
    if version < 6 {
        connection.execute_batch(&format!("BEGIN; {TO_6} PRAGMA user_version = 6; COMMIT;"))?;
    }
    if version < 7 {
        connection.execute_batch(&format!("BEGIN; {TO_7} PRAGMA user_version = 7; COMMIT;"))?;
    }
    if version < 8 {
        connection.execute_batch(&format!("BEGIN; {TO_8} PRAGMA user_version = 8; COMMIT;"))?;
    }
    Ok(())
}

/// What definitions begin with that were deployed before it was noted.
fn fill_start_forms(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT key, id, xml FROM process_definition WHERE xml IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, id, xml): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let Some(form_id) = form::start_form(&id, &xml) {
            connection.execute(form::WRITE_START_FORM, rusqlite::params![key, form_id])?;
        }
    }
    Ok(())
}

/// The same on a server, where it was not done before format 5.
pub(crate) fn fill_start_forms_on_server(database: &Database) -> Result<()> {
    // Models may be large, so few of them are in memory at once.
    const DEFINITIONS_AT_ONCE: i64 = 16;
    let select = "SELECT key, id, xml FROM process_definition WHERE xml IS NOT NULL AND key > ? ORDER BY key LIMIT ?";
    let mut behind = i64::MIN;
    loop {
        let definitions: Vec<(i64, String, Vec<u8>)> =
            database.all(select, &[behind.into(), DEFINITIONS_AT_ONCE.into()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let Some((last, ..)) = definitions.last() else { return Ok(()) };
        behind = *last;
        for (key, id, xml) in &definitions {
            form::write_start_form(database, *key, id, xml)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::{PartitionId, RecordPlace};

    use super::{SCHEMA_VERSION, steps_from};
    use crate::database::Database;
    use crate::file::{self, path_of};
    use crate::postgresql::PostgreSqlServer;
    use crate::store::Store;
    use crate::testing;

    /// Indexes and tables as they are defined.
    fn schema(store: &Store) -> Vec<(String, String)> {
        let select = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
        let rows = store.database.all(select, &[], |row| {
            let sql: String = row.get(1)?;
            Ok((row.get(0)?, sql.split_whitespace().collect::<String>()))
        });
        rows.expect("a schema")
    }

    /// Files of all formats, as the versions that had them wrote them. There was none with format 3 or 4: those came with 5.
    const KEPT: [(i64, &str); 6] = [
        (1, include_str!("../tests/data/format-1.sql")),
        (2, include_str!("../tests/data/format-2.sql")),
        (5, include_str!("../tests/data/format-5.sql")),
        (6, include_str!("../tests/data/format-6.sql")),
        (7, include_str!("../tests/data/format-7.sql")),
        (8, include_str!("../tests/data/format-8.sql")),
    ];

    /// A file of a format with one ended instance: a kept one, or one that the steps lead to.
    fn write_file_of_format(version: i64, path: &Path) {
        let (from, text) = *KEPT.iter().rfind(|(kept, _)| *kept <= version).expect("an older one");
        let old = rusqlite::Connection::open(path).expect("a file");
        old.execute_batch(text).expect("a file as that format has it");
        for (step, to) in steps_from(from).zip(from + 1..=version) {
            old.execute_batch(&format!("BEGIN; {step} PRAGMA user_version = {to}; COMMIT;")).expect("a step");
        }
        assert_eq!(old.query_row("PRAGMA user_version", [], |row| row.get(0)), Ok(version));
    }

    #[test]
    fn files_of_all_formats_are_gone_on_with() {
        let new = tempfile::tempdir().expect("a directory");
        let new = file::open(new.path(), PartitionId(1)).expect("a new file");
        for version in 1..=SCHEMA_VERSION {
            let directory = tempfile::tempdir().expect("a directory");
            write_file_of_format(version, &path_of(directory.path(), PartitionId(1)));
            let store = file::open(directory.path(), PartitionId(1)).expect("it is understood");
            assert_eq!(store.place, RecordPlace { incarnation: 1, position: 40, number: 17 }, "format {version}");
            let instances = "SELECT count(*) FROM process_instance WHERE state = 1 AND end_date = 1700000000500";
            assert_eq!(store.database.number(instances), 1, "format {version}");
            let done = i64::from(version >= 5);
            assert_eq!(store.database.number("SELECT count(*) FROM audit_log WHERE job_key IS NULL"), done);
            assert_eq!(store.database.number("SELECT count(*) FROM user_task WHERE assignee = 'ann'"), done);
            let listeners = "SELECT count(*) FROM global_listener JOIN global_listener_event ON listener_key = key";
            assert_eq!(store.database.number(listeners), i64::from(version >= 6), "format {version}");
            let signals = "SELECT count(*) FROM signal_subscription WHERE signal_name = 'go'";
            assert_eq!(store.database.number(signals), i64::from(version >= 7), "format {version}");
            let resources = "SELECT count(*) FROM resource WHERE id = 'clean'";
            assert_eq!(store.database.number(resources), i64::from(version >= 8), "format {version}");
            let names =
                "SELECT count(*) FROM variable_name WHERE process_definition_key = 2251799813685249 AND name = 'total'";
            assert_eq!(store.database.number(names), 1, "format {version}");
            assert_eq!(store.database.number("PRAGMA user_version"), SCHEMA_VERSION);
            if version == 1 {
                assert_eq!(store.database.number("PRAGMA auto_vacuum"), 2, "a file of format 1 learns to get shorter");
            }
            assert_eq!(schema(&store), schema(&new), "format {version}");
            drop(store);
            file::open(directory.path(), PartitionId(1)).expect("it is of the present format now");
            assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 1, "nothing was set aside");
        }
    }

    #[test]
    fn counters_of_older_formats_are_counted_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = path_of(directory.path(), PartitionId(1));
        write_file_of_format(6, &path);
        let old = rusqlite::Connection::open(&path).expect("a file");
        old.execute_batch(
            "DELETE FROM element; DELETE FROM element_instance; DELETE FROM process_instance; DELETE FROM incident;
             INSERT INTO element VALUES (1, 7, 'p', NULL, 1, 9, 3, 2, -4), (2, 7, 'task', NULL, 5, -1, 1, 0, 8),
                 (3, 8, 'p', NULL, 1, 9, 0, 0, 9), (4, 8, 'task', NULL, 5, 9, 0, 0, 9);
             INSERT INTO process_instance(key, process_definition_key, root_process_instance_key, state, start_date, incidents)
                 VALUES (100, 7, 100, 0, 1, 2), (200, 7, 200, 0, 1, 0), (300, 7, 300, 1, 1, 0);
             INSERT INTO element_instance(key, process_instance_key, scope_key, element, state, start_date)
                 VALUES (101, 100, 100, 2, 0, 1), (102, 100, 100, 2, 0, 1), (201, 200, 200, 2, 0, 1), (301, 300, 300, 2, 1, 1);
             INSERT INTO incident VALUES (103, 100, 101, 2, NULL, 1, 'm', 5, 0, 1), (104, 100, 100, 1, NULL, 1, 'm', 5, 0, 1),
                 (105, 100, 102, 2, NULL, 1, 'm', 5, 1, 1);",
        )
        .expect("counters as a migration of instances left them");
        drop(old);
        let store = file::open(directory.path(), PartitionId(1)).expect("it is understood");
        let select = "SELECT active, completed, canceled, incidents FROM element ORDER BY id";
        let counters =
            store.database.all(select, &[], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get::<i64>(3)?]));
        assert_eq!(counters.expect("counters"), [[2, 3, 2, 1], [3, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]);
    }

    /// Its rows may mean something else, so they are neither read nor changed.
    #[test]
    fn a_file_of_a_later_format_is_set_aside_as_it_is_and_a_new_one_begins() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = path_of(directory.path(), PartitionId(1));
        write_file_of_format(5, &path);
        let later = rusqlite::Connection::open(&path).expect("a file");
        let version = SCHEMA_VERSION + 1;
        let number = format!("PRAGMA journal_mode = WAL; PRAGMA user_version = {version}");
        later.execute_batch(&number).expect("another number");
        drop(later);
        let kept = std::fs::read(&path).expect("the file");
        let store = file::open(directory.path(), PartitionId(1)).expect("a new file");
        assert_eq!(store.place, RecordPlace::default(), "what lives is told for it");
        assert_eq!(store.database.number("SELECT count(*) FROM process_instance"), 0);
        let aside = directory.path().join("partition-1.sqlite.damaged-1");
        assert!(std::fs::read(aside).expect("it is kept") == kept);
    }

    #[test]
    fn tables_of_a_server_are_brought_to_the_present_format_and_those_of_others_are_left_alone() {
        let server = PostgreSqlServer::shared();
        let url = server.new_database();
        let source = testing::server(&url);
        let indexes =
            "SELECT string_agg(indexdef, ';' ORDER BY indexname) FROM pg_indexes WHERE schemaname = 'osmia_1'";
        let store = source.open(PartitionId(1), None).expect("new tables");
        let Database::PostgreSql(_) = store.database else { panic!("they are on the server") };
        drop(store);
        let present = server.psql(&url, indexes);
        // As format 1 had them.
        server.psql(
            &url,
            "SET search_path = osmia_1; UPDATE format SET version = 1; DROP INDEX process_instance_by_state;
             CREATE INDEX process_instance_by_state ON process_instance(state);
             DROP INDEX process_instance_by_definition_and_start, variable_by_value, decision_instance_without_instance;
             CREATE INDEX variable_by_value ON variable(name, comparable);
             DROP TABLE form, start_form, user_task, user_task_candidate, timer, job_count, history, audit_log,
             usage_count, usage_assignee, condition, global_listener, global_listener_event, signal_subscription,
             resource, variable_name;
             ALTER TABLE process_instance DROP COLUMN business_id;
             ALTER TABLE job DROP COLUMN denied_reason;
             ALTER TABLE job DROP COLUMN is_denied;
             ALTER TABLE job DROP COLUMN listener_event_type",
        );
        let model = "<d xmlns:z=\"http://camunda.org/schema/zeebe/1.0\"><process id=\"p\"><startEvent><extensionElements>\
                     <z:formDefinition formId=\"ask\"/></extensionElements></startEvent></process></d>";
        server.psql(
            &url,
            &format!(
                "INSERT INTO osmia_1.process_definition(key, id, version, resource_name, tenant_id, state, xml) \
                 SELECT n, 'p', n, 'p.bpmn', '<default>', 0, '{model}'::bytea FROM generate_series(1, 20) n"
            ),
        );
        source.open(PartitionId(1), None).expect("it is understood");
        assert_eq!(server.psql(&url, indexes), present);
        let forms = "SELECT count(*) || ' ' || max(form_id) FROM osmia_1.start_form";
        assert_eq!(server.psql(&url, forms), "20 ask", "what processes begin with is known of those that were there");
        assert_eq!(server.psql(&url, "SELECT version FROM osmia_1.format"), "8");

        server.psql(&url, "UPDATE osmia_1.format SET version = 9");
        let error = source.open(PartitionId(1), None).expect_err("a later version").to_string();
        assert!(error.contains("has the format 9, and this version has 8"), "{error}");
        server.psql(&url, "UPDATE osmia_1.format SET version = 8, cluster = 'other'");
        let error = source.open(PartitionId(1), None).expect_err("another cluster").to_string();
        assert!(error.contains("of the cluster other, but this node is of the cluster of-tests"), "{error}");
        assert_eq!(server.psql(&url, "SELECT count(*) FROM osmia_1.place"), "1", "nothing was taken away");
    }
}
