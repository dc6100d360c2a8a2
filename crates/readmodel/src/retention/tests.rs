use protocol::PartitionId;

use super::*;
use crate::store::{Store, path_of};

const DAY: i64 = 24 * 60 * 60 * 1_000;
const KEEP_A_DAY: Retention = Retention {
    completed: Some(Duration::from_secs(24 * 60 * 60)),
    terminated: Some(Duration::from_secs(48 * 60 * 60)),
};

fn opened() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path(), PartitionId(1)).expect("a new file");
    (directory, store)
}

/// An instance with so many variables, in every table something.
fn insert(connection: &Connection, key: i64, parent: Option<i64>, root: i64, end: Option<(u8, i64)>, variables: i64) {
    let state = end.map_or(0, |(state, _)| state);
    let insert = "INSERT INTO process_instance(key, process_definition_key, parent_process_instance_key, \
                  root_process_instance_key, state, start_date, end_date) VALUES (?, 7, ?, ?, ?, 1, ?)";
    connection.execute(insert, params![key, parent, root, state, end.map(|(_, end)| end)]).expect("an instance");
    connection
        .execute_batch(&format!(
            "INSERT INTO element_instance VALUES ({key} + 1, {key}, {key}, 1, {state}, 1, NULL, 0, NULL);
             INSERT INTO sequence_flow VALUES ({key}, 2);
             INSERT INTO job VALUES ({key} + 2, {key}, {key} + 1, 1, 't', 'w', 1, 0, 3, 0, NULL, 1, 1, 1, NULL, NULL, '');
             INSERT INTO incident VALUES ({key} + 3, {key}, {key} + 1, 1, NULL, 1, 'm', 5, 1, 1);
             INSERT INTO message_subscription VALUES ({key} + 4, 0, 7, 'p', {key}, {key} + 1, 'e', 'm', 'c', 2, 1, 't');
             INSERT INTO correlated_message_subscription VALUES ({key} + 5, 1, 1, 'm', 'c', 1, 7, 'p', {key}, 1, 'e', 't');
             INSERT INTO decision_instance(id, evaluation_key, instance_key, decision_definition_key,
                 decision_definition_id, decision_definition_name, decision_definition_version, decision_definition_type,
                 root_decision_definition_key, decision_requirements_key, state, evaluation_date, result, details,
                 process_instance_key, tenant_id)
             VALUES ({key} + 6, {key}, '{key}-1', 1, 'd', 'd', 1, 0, 1, 1, 0, 1, '1', '', {key}, 't');
             WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {variables})
             INSERT INTO variable SELECT {key} + 10 + i, {key}, {key}, 'v', '1', '1' FROM n;"
        ))
        .expect("its details");
}

fn count(connection: &Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a count")
}

fn instances(connection: &Connection) -> Vec<i64> {
    let mut statement = connection.prepare("SELECT key FROM process_instance ORDER BY key").expect("a statement");
    let keys = statement.query_map([], |row| row.get(0)).expect("rows");
    keys.collect::<rusqlite::Result<_>>().expect("keys")
}

/// Until nothing is left to do: how many steps, and how many instances are gone.
fn run(store: &mut Store, retention: Retention, clock: i64) -> (u32, u64) {
    let mut deletion = Deletion::new(retention);
    let (mut steps, mut instances) = (0, 0);
    loop {
        let before: i64 = DETAILS.iter().map(|table| count(&store.connection, table)).sum();
        let deleted = deletion.step(&mut store.connection, Duration::ZERO, clock).expect("a transaction");
        let after: i64 = DETAILS.iter().map(|table| count(&store.connection, table)).sum();
        assert!(before - after <= ROWS_MAX.into(), "a transaction is small");
        steps += 1;
        instances += deleted.instances;
        if !deleted.goes_on {
            return (steps, instances);
        }
    }
}

#[test]
fn what_ended_long_ago_goes_with_everything_that_belongs_to_it() {
    let (_directory, mut store) = opened();
    let connection = &store.connection;
    let (old, new) = (Some((COMPLETED, DAY)), Some((COMPLETED, 3 * DAY)));
    insert(connection, 1_000, None, 1_000, old, 2);
    insert(connection, 2_000, Some(1_000), 1_000, old, 2);
    insert(connection, 3_000, Some(2_000), 1_000, Some((TERMINATED, DAY)), 2);
    // Ended less than a day ago, or goes on with a call that ended; or was terminated, which is kept longer.
    insert(connection, 4_000, None, 4_000, new, 2);
    insert(connection, 5_000, None, 5_000, None, 2);
    insert(connection, 6_000, Some(5_000), 5_000, old, 2);
    insert(connection, 7_000, None, 7_000, Some((TERMINATED, 2 * DAY)), 2);
    // The one that called it is not known.
    insert(connection, 8_000, Some(7_777), 7_777, old, 2);
    connection
        .execute("INSERT INTO element VALUES (1, 7, 'e', NULL, 9, 1, 5, 1, 0)", [])
        .expect("an element with its counters");
    assert_eq!(run(&mut store, KEEP_A_DAY, 3 * DAY + 1).1, 4);
    let connection = &store.connection;
    assert_eq!(instances(connection), [4_000, 5_000, 6_000, 7_000]);
    for (table, of_each) in DETAILS.iter().map(|table| (*table, if *table == "variable" { 2 } else { 1 })) {
        assert_eq!(count(connection, table), 4 * of_each, "{table}");
    }
    assert_eq!(count(connection, "sequence_flow"), 4);
    let completed = connection.query_row("SELECT completed FROM element", [], |row| row.get::<_, i64>(0));
    assert_eq!(completed.expect("counters stay"), 5);
}

#[test]
fn large_instances_go_in_small_transactions_and_the_file_gets_shorter() {
    let (directory, mut store) = opened();
    for key in 1..=20 {
        insert(&store.connection, key * 100_000, None, key * 100_000, Some((COMPLETED, 1)), 5_000);
    }
    assert!(store.checkpoint().expect("a checkpoint"));
    let size = || std::fs::metadata(path_of(directory.path(), PartitionId(1))).expect("a file").len();
    let before = size();
    let (steps, instances) = run(&mut store, KEEP_A_DAY, 3 * DAY);
    assert!(steps > 100, "{steps}");
    assert_eq!(instances, 20);
    assert!(store.checkpoint().expect("a checkpoint"));
    assert!(size() < before / 3, "{before} bytes are {} now", size());
}

#[test]
fn what_belongs_to_no_instance_goes_and_what_is_kept_for_ever_asks_for_no_time() {
    let (_directory, mut store) = opened();
    insert(&store.connection, 1_000, None, 1_000, None, 1);
    store
        .connection
        .execute_batch(
            "UPDATE decision_instance SET process_instance_key = NULL; UPDATE message_subscription SET process_instance_key = NULL;",
        )
        .expect("without instance");
    assert_eq!(Deletion::new(Retention::default()).at(), None);
    run(&mut store, Retention { terminated: KEEP_A_DAY.terminated, completed: None }, 9 * DAY);
    assert_eq!(count(&store.connection, "decision_instance"), 1);
    run(&mut store, KEEP_A_DAY, 9 * DAY);
    assert_eq!(count(&store.connection, "decision_instance"), 0);
    assert_eq!(count(&store.connection, "message_subscription"), 0);
    assert_eq!(instances(&store.connection), [1_000]);
}
