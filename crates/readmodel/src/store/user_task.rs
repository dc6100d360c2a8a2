//! User tasks, each with who may do it.

use std::sync::LazyLock;

use protocol::Text;

use crate::batch::{Batch, UserTaskRow};
use crate::database::Of::{Integer, Text as Words};
use crate::database::{Bound, Database, Result, Write};

/// The kinds of candidates of a user task.
const CANDIDATE_GROUP: u8 = 0;
const CANDIDATE_USER: u8 = 1;

/// For tasks that moved or not, and whose state is known or is what it was.
static TASKS: LazyLock<[[Write<16>; 2]; 2]> =
    LazyLock::new(|| [false, true].map(|is_moved| [false, true].map(|has_state| task(is_moved, has_state))));

/// For tasks of which only the state is another one yet.
static ANNOUNCED: LazyLock<Write<16>> =
    LazyLock::new(|| task_with("ON CONFLICT(key) DO UPDATE SET state = excluded.state"));

fn task(is_moved: bool, has_state: bool) -> Write<16> {
    let mut update = String::from(
        "ON CONFLICT(key) DO UPDATE SET assignee = excluded.assignee, candidate_groups = excluded.candidate_groups,
             candidate_users = excluded.candidate_users,
             completion_date = coalesce(excluded.completion_date, user_task.completion_date),
             follow_up_date = excluded.follow_up_date, due_date = excluded.due_date,
             external_form_reference = excluded.external_form_reference, form_key = excluded.form_key,
             priority = excluded.priority, custom_headers = excluded.custom_headers",
    );
    if is_moved {
        update.push_str(", element = excluded.element");
    }
    if has_state {
        update.push_str(", state = excluded.state");
    }
    task_with(&update)
}

fn task_with(update: &str) -> Write<16> {
    Write::insert(
        [
            Integer, Integer, Integer, Integer, Integer, Words, Words, Words, Integer, Integer, Integer, Integer, Words,
            Integer, Integer, Words,
        ],
        "INSERT INTO user_task(key, process_instance_key, element_instance_key, element, state, assignee, candidate_groups,
             candidate_users, creation_date, completion_date, follow_up_date, due_date, external_form_reference, form_key,
             priority, custom_headers)",
        "{1}, {2}, {3}, {4}, coalesce({5}, 1), {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16}",
        update,
    )
}

static NO_CANDIDATES: LazyLock<Write<2>> = LazyLock::new(|| {
    Write::delete([Integer; 2], "user_task_candidate", "process_instance_key = {1} AND user_task_key = {2}")
});

static CANDIDATES: LazyLock<Write<4>> = LazyLock::new(|| {
    Write::insert(
        [Integer, Integer, Integer, Words],
        "INSERT INTO user_task_candidate(process_instance_key, user_task_key, kind, name)",
        "{1}, {2}, {3}, {4}",
        "",
    )
});

pub(super) fn write(database: &Database, batch: &Batch) -> Result<()> {
    let lists: Vec<[String; 2]> =
        batch.user_tasks.values().map(|row| [list(&row.candidate_groups), list(&row.candidate_users)]).collect();
    for is_moved in [false, true] {
        for has_state in [false, true] {
            let alike =
                |row: &UserTaskRow| !row.is_announced && row.is_moved == is_moved && row.state.is_some() == has_state;
            let tasks = batch.user_tasks.iter().zip(&lists).filter(|((_, row), _)| alike(row));
            let tasks = tasks.map(|((key, row), lists)| values(*key, row, lists));
            database.write(&TASKS[usize::from(is_moved)][usize::from(has_state)], tasks)?;
        }
    }
    let announced = batch.user_tasks.iter().zip(&lists).filter(|((_, row), _)| row.is_announced);
    database.write(&ANNOUNCED, announced.map(|((key, row), lists)| values(*key, row, lists)))?;
    let changed = || batch.user_tasks.iter().filter(|(_, row)| !row.is_announced);
    database.write(&NO_CANDIDATES, changed().map(|(key, row)| [row.instance, *key].map(Bound::Integer)))?;
    let candidates = changed().flat_map(|(key, row)| {
        let kinds = [(CANDIDATE_GROUP, &row.candidate_groups), (CANDIDATE_USER, &row.candidate_users)];
        let names = kinds.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)));
        names.map(|(kind, name)| [row.instance.into(), (*key).into(), kind.into(), (&**name).into()])
    });
    database.write(&CANDIDATES, candidates)
}

fn values<'a>(key: i64, row: &'a UserTaskRow, [groups, users]: &'a [String; 2]) -> [Bound<'a>; 16] {
    [
        key.into(),
        row.instance.into(),
        row.element_instance.into(),
        row.element.0.into(),
        row.state.into(),
        row.assignee.as_deref().into(),
        groups.into(),
        users.into(),
        row.created.into(),
        row.completed.into(),
        row.follow_up.into(),
        row.due.into(),
        row.external_form.as_deref().into(),
        row.form.into(),
        row.priority.into(),
        (&*row.headers).into(),
    ]
}

/// As a list in JSON; empty for none.
fn list(names: &[Text]) -> String {
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    if names.is_empty() { String::new() } else { serde_json::Value::from(names).to_string() }
}
