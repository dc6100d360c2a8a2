use super::*;
use crate::store::Store;
use crate::testing::{PARTITION, both};

const DAY: i64 = 24 * 60 * 60 * 1_000;
const KEEP_A_DAY: Retention = Retention {
    completed: Some(Duration::from_secs(24 * 60 * 60)),
    terminated: Some(Duration::from_secs(48 * 60 * 60)),
};

/// An instance with so many variables, in every table something.
fn insert(database: &Database, key: i64, parent: Option<i64>, root: i64, end: Option<(u8, i64)>, variables: i64) {
    let state = end.map_or(0, |(state, _)| state);
    let insert = "INSERT INTO process_instance(key, process_definition_key, parent_process_instance_key, \
                  root_process_instance_key, state, start_date, end_date) VALUES (?, 7, ?, ?, ?, 1, ?)";
    let values = [key.into(), parent.into(), root.into(), state.into(), end.map(|(_, end)| end).into()];
    let transaction = database.begin().expect("a transaction");
    database.execute(insert, &values).expect("an instance");
    transaction.commit().expect("it is written");
    database.script(&format!(
            "INSERT INTO element_instance VALUES ({key} + 1, {key}, {key}, 1, {state}, 1, NULL, 0, NULL);
             INSERT INTO sequence_flow VALUES ({key}, 2);
             INSERT INTO job VALUES ({key} + 2, {key}, {key} + 1, 1, 't', 'w', 1, 0, 3, 0, NULL, 1, 1, 1, NULL, NULL, '', 0, NULL, NULL);
             INSERT INTO incident VALUES ({key} + 3, {key}, {key} + 1, 1, NULL, 1, 'm', 5, 1, 1);
             INSERT INTO user_task VALUES ({key} + 7, {key}, {key} + 1, 1, 0, 'a', '', '', 1, NULL, NULL, NULL, NULL, NULL, 50, '');
             INSERT INTO user_task_candidate VALUES ({key}, {key} + 7, 0, 'a');
             INSERT INTO message_subscription VALUES ({key} + 4, 0, 7, 'p', {key}, {key} + 1, 'e', 'm', 'c', 2, 1, 't');
             INSERT INTO timer VALUES ({key} + 6, {key}, {key} + 1, 'e', 1, 1);
             INSERT INTO audit_log(key, entity_key, entity_type, operation_type, result, category, time, actor_type,
                 process_instance_key) VALUES ({key} + 9, {key} + 7, 1, 1, 1, 1, 1, 1, {key});
             INSERT INTO condition VALUES ({key} + 8, {key}, {key} + 1, 'e', '=x', '[]');
             INSERT INTO signal_subscription VALUES ({key} + 9, {key}, {key} + 1, 'e', 's');
             INSERT INTO correlated_message_subscription VALUES ({key} + 5, 1, 1, 'm', 'c', 1, 7, 'p', {key}, 1, 'e', 't');
             INSERT INTO decision_instance(id, evaluation_key, instance_key, decision_definition_key,
                 decision_definition_id, decision_definition_name, decision_definition_version, decision_definition_type,
                 root_decision_definition_key, decision_requirements_key, state, evaluation_date, result, details,
                 process_instance_key, tenant_id)
             VALUES ({key} + 6, {key}, '{key}-1', 1, 'd', 'd', 1, 0, 1, 1, 0, 1, '1', '', {key}, 't');
             WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {variables})
             INSERT INTO variable SELECT {key} + 10 + i, {key}, {key}, 'v', '1', '1' FROM n;"
    ));
}

fn count(database: &Database, table: &str) -> i64 {
    database.number(&format!("SELECT count(*) FROM {table}"))
}

fn instances(database: &Database) -> Vec<i64> {
    database.all("SELECT key FROM process_instance ORDER BY key", &[], |row| row.get(0)).expect("keys")
}

/// Until nothing is left to do: how many steps, and how many instances are gone.
fn run(store: &Store, retention: Retention, clock: i64) -> (u32, u64) {
    go_on(store, &mut Deletion::new(retention), clock)
}

fn go_on(store: &Store, deletion: &mut Deletion, clock: i64) -> (u32, u64) {
    let (mut steps, mut instances) = (0, 0);
    loop {
        let before: i64 = DETAILS.iter().map(|table| count(&store.database, table)).sum();
        let deleted = deletion.step(&store.database, Duration::ZERO, clock).expect("a transaction");
        let after: i64 = DETAILS.iter().map(|table| count(&store.database, table)).sum();
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
    for opened in both() {
        let database = &opened.store.database;
        let (old, new) = (Some((COMPLETED, DAY)), Some((COMPLETED, 3 * DAY)));
        insert(database, 1_000, None, 1_000, old, 2);
        insert(database, 2_000, Some(1_000), 1_000, old, 2);
        insert(database, 3_000, Some(2_000), 1_000, Some((TERMINATED, DAY)), 2);
        // Ended less than a day ago, or goes on with a call that ended; or was terminated, which is kept longer.
        insert(database, 4_000, None, 4_000, new, 2);
        insert(database, 5_000, None, 5_000, None, 2);
        insert(database, 6_000, Some(5_000), 5_000, old, 2);
        insert(database, 7_000, None, 7_000, Some((TERMINATED, 2 * DAY)), 2);
        // The one that called it is not known.
        insert(database, 8_000, Some(7_777), 7_777, old, 2);
        // An element with its counters.
        database.script("INSERT INTO element VALUES (1, 7, 'e', NULL, 9, 1, 5, 1, 0)");
        assert_eq!(run(&opened.store, KEEP_A_DAY, 3 * DAY + 1).1, 4);
        assert_eq!(instances(database), [4_000, 5_000, 6_000, 7_000]);
        for (table, of_each) in DETAILS.iter().map(|table| (*table, if *table == "variable" { 2 } else { 1 })) {
            assert_eq!(count(database, table), 4 * of_each, "{table}");
        }
        assert_eq!(count(database, "sequence_flow"), 4);
        assert_eq!(database.number("SELECT completed FROM element"), 5, "counters stay");
    }
}

#[test]
fn what_a_living_instance_called_is_looked_at_once_and_goes_with_it() {
    const CALLED: i64 = 300;
    for opened in both() {
        let (store, database) = (&opened.store, &opened.store.database);
        insert(database, 1_000, None, 1_000, None, 1);
        for number in 1..=CALLED {
            let of = Some((COMPLETED, number / 2));
            let insert = "INSERT INTO process_instance(key, process_definition_key, parent_process_instance_key, \
                          root_process_instance_key, state, start_date, end_date) VALUES (?, 7, 1000, 1000, ?, 1, ?)";
            let values = [(2_000 + number).into(), COMPLETED.into(), of.map(|(_, end)| end).into()];
            let transaction = database.begin().expect("a transaction");
            database.execute(insert, &values).expect("an instance");
            transaction.commit().expect("it is written");
        }
        let mut deletion = Deletion::new(KEEP_A_DAY);
        let first = go_on(store, &mut deletion, 3 * DAY);
        assert!(first.0 > 3, "it looks at some at a time: {first:?}");
        // One that ended at the same moment as the last one, but has a smaller key, and one that ends later.
        insert(database, 1_500, None, 1_500, Some((COMPLETED, CALLED / 2)), 1);
        insert(database, 9_000, None, 9_000, Some((COMPLETED, DAY)), 1);
        assert_eq!(go_on(store, &mut deletion, 3 * DAY), (1, 2), "and not again at those that it has looked at");
        database.script("UPDATE process_instance SET state = 1, end_date = 172800000 WHERE key = 1000");
        assert_eq!(go_on(store, &mut deletion, 9 * DAY).1, 1 + CALLED as u64, "all of them go with it");
        assert!(instances(database).is_empty());
    }
}

#[test]
fn large_instances_go_in_small_transactions_and_a_file_gets_shorter() {
    for opened in both() {
        let store = &opened.store;
        for key in 1..=20 {
            insert(&store.database, key * 100_000, None, key * 100_000, Some((COMPLETED, 1)), 5_000);
        }
        assert!(store.checkpoint().expect("a checkpoint"));
        let size = || opened.source.file(PARTITION).map(|path| std::fs::metadata(path).expect("a file").len());
        let before = size();
        let (steps, instances) = run(store, KEEP_A_DAY, 3 * DAY);
        assert!(steps > 100, "{steps}");
        assert_eq!(instances, 20);
        assert!(store.checkpoint().expect("a checkpoint"));
        if let (Some(before), Some(now)) = (before, size()) {
            assert!(now < before / 3, "{before} bytes are {now} now");
        }
    }
}

#[test]
fn what_belongs_to_no_instance_goes_and_what_is_kept_for_ever_asks_for_no_time() {
    assert_eq!(Deletion::new(Retention::default()).at(), None);
    for opened in both() {
        let database = &opened.store.database;
        insert(database, 1_000, None, 1_000, None, 1);
        database.script(
            "UPDATE decision_instance SET process_instance_key = NULL; UPDATE message_subscription SET process_instance_key = NULL;",
        );
        run(&opened.store, Retention { terminated: KEEP_A_DAY.terminated, completed: None }, 9 * DAY);
        assert_eq!(count(database, "decision_instance"), 1);
        run(&opened.store, KEEP_A_DAY, 9 * DAY);
        assert_eq!(count(database, "decision_instance"), 0);
        assert_eq!(count(database, "message_subscription"), 0);
        assert_eq!(instances(database), [1_000]);
    }
}

#[test]
fn what_may_live_goes_with_the_variables_of_instances_that_were_still_to_begin() {
    for opened in both() {
        let database = &opened.store.database;
        insert(database, 1_000, None, 1_000, Some((COMPLETED, 1)), 2);
        insert(database, 2_000, None, 2_000, None, 2);
        // Called, with its variables, by what waits to be done.
        database
            .script("INSERT INTO variable VALUES (3001, 3000, 3000, 'v', '1', '1'), (500, 499, 499, 'v', '1', '1')");
        crate::rebuild::begin(database).expect("room for what lives");
        assert_eq!(instances(database), [1_000]);
        let variables = database.all("SELECT key FROM variable ORDER BY key", &[], |row| row.get::<i64>(0));
        assert_eq!(variables.expect("keys"), [1_011, 1_012]);
    }
}
