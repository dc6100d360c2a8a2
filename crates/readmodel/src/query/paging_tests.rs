//! Pages of rows and groups: nothing is left out, nothing is there twice, and nothing grows without a limit.

use super::search::ANSWER_BYTES_MAX;
use super::*;
use crate::database::Database;
use crate::queue::Cost;
use crate::testing::{Opened, PARTITION, both, in_file};
use protocol::PartitionId;

/// Two partitions with jobs of types a to e, by workers, in minutes; each job has failed with an error of
/// its own or of others. Definition 7 to 9 have subscriptions.
fn with_groups() -> [(Opened, Readers); 2] {
    both().map(|opened| {
        let second = PartitionId(2);
        let other = opened.source.open(second, None).expect("new rows");
        for (store, partition) in [(&opened.store, 1), (&other, 2)] {
            for (number, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate().skip(partition - 1) {
                let minute = JOB_COUNT_MILLISECONDS * i64::try_from(number).expect("few");
                store.database.script(&format!(
                    "INSERT INTO job_count VALUES ({minute}, '{name}', 'w{partition}', 1, 1, 0, NULL, 1, 2);
                     INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind,
                     retries, has_failed_with_retries_left, last_update_time, custom_headers, error_code, error_message)
                     VALUES ({number}, 1, 1, 1, '{name}', 'w{partition}', 2, 0, 0, 0, 100, '{{}}', NULL, '{name}');
                     INSERT INTO message_subscription VALUES ({number}, 0, {number}, 'p', 1, 1, 'e', 'm', 'c', 0, 1, 't');
                     INSERT INTO incident VALUES ({number}, {partition}, 1, 2, NULL, 1, '{name}', {number}, 0, 1)"
                ));
            }
        }
        let readers = Readers::new(opened.source.clone(), vec![PARTITION, second], 1_024);
        (opened, readers)
    })
}

/// All groups, two at a time: by their cursors and by their numbers, which must come to the same.
fn page_by_page<T: Clone + PartialEq + std::fmt::Debug>(
    mut read: impl FnMut(&GroupPage) -> Grouped<T>,
    has_cursors: bool,
) -> Vec<T> {
    let mut counted: Vec<T> = Vec::new();
    loop {
        let start = GroupStart::From(u32::try_from(counted.len()).expect("few"));
        let page = read(&GroupPage { start, limit: 2 });
        if page.items.is_empty() {
            break;
        }
        counted.extend(page.items);
        assert_eq!((page.total, page.has_more), (5, false));
    }
    if has_cursors {
        let (mut found, mut start) = (Vec::new(), GroupStart::First);
        loop {
            let page = read(&GroupPage { start, limit: 2 });
            let Some((_, last)) = page.ends else { break };
            let last = Cursor::decode(&last.encode(), [Kind::Instant]).or(Cursor::decode(&last.encode(), [Kind::Text]));
            start = GroupStart::After(last.expect("a cursor"));
            found.extend(page.items);
            assert_eq!(page.total, 5);
        }
        assert_eq!(found, counted);
    }
    counted
}

#[test]
fn groups_of_all_partitions_are_found_page_by_page() {
    for (_opened, mut readers) in with_groups() {
        let all = Condition::always();
        let period = (0, i64::MAX / 2);
        let types = page_by_page(|page| readers.job_counts(GroupBy::Type, period, &all, page).expect("counts"), true);
        let of: Vec<_> = types.iter().map(|of| (&*of.name, of.counts.created.count, of.workers)).collect();
        assert_eq!(of, [("a", 1, 1), ("b", 2, 2), ("c", 2, 2), ("d", 2, 2), ("e", 2, 2)]);
        let times =
            page_by_page(|page| readers.job_counts(GroupBy::Time(1), period, &all, page).expect("counts"), true);
        assert_eq!(times.iter().map(|of| of.time / JOB_COUNT_MILLISECONDS).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let mut errors = page_by_page(|page| readers.job_errors(period, &all, page).expect("errors"), true);
        errors.sort_by(|one, other| one.message.cmp(&other.message));
        let of: Vec<_> = errors.iter().map(|of| (&*of.message, of.workers)).collect();
        assert_eq!(of, [("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 2)]);
        let waiting = page_by_page(|page| readers.subscription_counts(&all, page).expect("counts"), true);
        assert_eq!(
            waiting.iter().map(|of| (of.key, of.subscriptions)).collect::<Vec<_>>(),
            [(0, 1), (1, 2), (2, 2), (3, 2), (4, 2)]
        );
        for (sort, expected) in [
            (&[][..], [(1, 2), (2, 2), (3, 2), (4, 2), (0, 1)]),
            (&[(ErrorOrder::Message, true)], [(4, 2), (3, 2), (2, 2), (1, 2), (0, 1)]),
            (&[(ErrorOrder::Instances, false)], [(0, 1), (1, 2), (2, 2), (3, 2), (4, 2)]),
        ] {
            let errors = page_by_page(|page| readers.error_counts(sort, page).expect("counts"), false);
            assert_eq!(errors.iter().map(|of| (of.hash_code, of.instances)).collect::<Vec<_>>(), expected, "{sort:?}");
        }
        let by_worker = readers.job_counts(GroupBy::Worker, period, &all, &GroupPage::first(1)).expect("counts");
        assert_eq!((by_worker.items.len(), by_worker.total), (1, 2));
    }
}

/// Jobs with messages of 1 MiB, of which 16 are an answer.
fn with_large_rows(database: &Database, count: u32) {
    let message = format!("{} MiB ", "m".repeat((1 << 20) - 8));
    for key in 1..=i64::from(count) {
        let insert =
            "INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind,
             retries, has_failed_with_retries_left, last_update_time, custom_headers, error_message)
             VALUES (?1, 1, 1, 1, 'a', 'w', 2, 0, 0, 0, 100, '{}', ?2)";
        let message = format!("{message}{key}");
        database.execute(insert, &[key.into(), (&message).into()]).expect("a row");
    }
}

#[test]
fn a_counted_page_is_whole_or_refused_and_cursors_find_all_large_rows() {
    let opened = in_file();
    with_large_rows(&opened.store.database, 20);
    let mut readers = opened.readers();
    let all = Search { limit: 20, ..Search::new(&JOBS, Condition::always()) };
    let counted = |from, limit| Search { page: Page::From(from), limit, ..all.clone() };
    let refused = counted(0, 20).run(&mut readers).expect_err("it is too large");
    assert!(refused.to_string().contains("truncateValues"), "{refused}");
    assert_eq!(counted(5, 15).run(&mut readers).expect("15 MiB").items.len(), 15);
    let (mut found, mut page) = (0, Page::First);
    while let Found { items, ends: Some((_, last)), .. } =
        (Search { page: page.clone(), ..all.clone() }).run(&mut readers).expect("a page")
    {
        assert!(items.iter().map(Vec::len).sum::<usize>() < ANSWER_BYTES_MAX + (2 << 20));
        found += items.len();
        page = Page::At(Direction::After, last);
    }
    assert_eq!(found, 20);
    // Statistics of the same.
    let period = (0, 1_000);
    let mut errors = |start| readers.job_errors(period, &Condition::always(), &GroupPage { start, limit: 20 });
    assert!(matches!(errors(GroupStart::From(0)), Err(Failure::LargeGroups)));
    let (mut found, mut start) = (0, GroupStart::First);
    while let Grouped { items, ends: Some((_, last)), .. } = errors(start).expect("a page") {
        found += items.len();
        start = GroupStart::After(last);
    }
    assert_eq!(found, 20);
}

#[test]
fn rows_are_sorted_by_the_names_of_what_they_hold_as_numbers() {
    let opened = in_file();
    for state in 0..9 {
        opened.store.database.script(&format!(
            "INSERT INTO job(key, process_instance_key, element_instance_key, element, type, worker, state, kind, retries,
             has_failed_with_retries_left, last_update_time, custom_headers)
             VALUES ({state} + 1, 1, 1, 1, 'a', 'w', {state}, 0, 0, 0, 100, '{{}}')"
        ));
    }
    let mut readers = opened.readers();
    let sort = vec![Sort { field: JOBS.field("state").expect("a field"), descending: false }];
    let (mut found, mut page) = (Vec::new(), Page::First);
    while let Found { items, ends: Some((_, last)), .. } =
        (Search { sort: sort.clone(), page, limit: 2, ..Search::new(&JOBS, Condition::always()) })
            .run(&mut readers)
            .expect("a page")
    {
        found.extend(items.iter().map(|item| {
            let item: serde_json::Value = serde_json::from_slice(item).expect("JSON");
            item["state"].as_str().expect("a name").to_owned()
        }));
        page = Page::At(Direction::After, last);
    }
    let mut sorted = crate::enumerations::JOB_STATES.to_vec();
    sorted.sort_unstable();
    assert_eq!(found, sorted);
}

#[test]
fn statements_do_not_grow_with_the_rows() {
    let element = ELEMENT_INSTANCES.field("elementId").expect("a field");
    let others = Condition::Is(element, vec![Test::NotEqual(Value::Text("e1".into()))]);
    let texts = [10, 2_000].map(|count| {
        both().map(|opened| {
            opened.store.database.script(&format!(
                "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {count})
                 INSERT INTO element SELECT i, 7, 'e' || i, NULL, 9, 0, 0, 0, 0 FROM n;
                 WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {count})
                 INSERT INTO element_instance SELECT i, 1, 1, i, 0, 1, NULL, 0, NULL FROM n"
            ));
            let found = Search::new(&ELEMENT_INSTANCES, others.clone()).run(&mut opened.readers()).expect("found");
            assert_eq!(found.total, count - 1);
            sql::condition(&opened.store.database, &others).expect("a condition").text.len()
        })
    });
    assert!(texts.as_flattened().iter().all(|length| *length < 200), "{texts:?}");
}

#[test]
fn only_what_compares_columns_of_the_row_with_a_key_costs_no_more() {
    let is = |name: &str, test: Test| Condition::Is(VARIABLES.field(name).expect("a field"), vec![test]);
    let key = || is("variableKey", Test::Equal(Value::Integer(1)));
    let cost = |condition| Search::new(&VARIABLES, condition).cost();
    assert_eq!(cost(key()), Cost::Key);
    assert_eq!(cost(Condition::All(vec![is("name", Test::Exists(true)), key()])), Cost::Key);
    for dear in [
        Condition::always(),
        Condition::All(vec![key(), is("value", Test::Like("*".into()))]),
        Condition::Any(vec![key(), Condition::always()]),
        is("variableKey", Test::NotEqual(Value::Integer(1))),
        is("processInstanceKey", Test::Equal(Value::Integer(1))),
        Condition::All(vec![key(), Condition::OfInstance(1)]),
        Condition::All(vec![key(), is("tenantId", Test::Equal(Value::Text("t".into())))]),
    ] {
        assert_eq!(cost(dear.clone()), Cost::Any, "{dear:?}");
    }
}
