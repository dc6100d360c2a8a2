//! User tasks.

use protocol::{Record, Text, UserTaskIntent, UserTaskValue};

use super::{Fold, some_key, some_text, some_time};
use crate::batch::UserTaskRow;
use crate::database::{Database, Result};
use crate::dictionary::UNSPECIFIED;
use crate::enumerations::{USER_TASK_STATES, number_of};
use crate::query::moment;

impl Fold {
    pub(super) fn user_task(
        &mut self,
        database: &Database,
        record: &Record,
        intent: UserTaskIntent,
        value: &UserTaskValue,
    ) -> Result<()> {
        // What listeners correct becomes true with the change itself.
        if intent == UserTaskIntent::Corrected {
            return Ok(());
        }
        let (key, timestamp) = (record.key.raw(), record.timestamp);
        if is_announced(intent)
            && let Some(row) = self.batch.user_tasks.get_mut(&key)
        {
            row.state = state_after(intent).and_then(|name| number_of(USER_TASK_STATES, name));
            return Ok(());
        }
        let before = self.batch.user_tasks.get(&key);
        let state = state_after(intent).and_then(|name| number_of(USER_TASK_STATES, name));
        let state = state.or(before.and_then(|row| row.state));
        let has_ended = matches!(intent, UserTaskIntent::Completed | UserTaskIntent::Canceled);
        let completed = has_ended.then_some(timestamp).or(before.and_then(|row| row.completed));
        let was_moved = before.is_some_and(|row| row.is_moved);
        let moves = intent == UserTaskIntent::Migrated;
        let element = match before.map(|row| row.element) {
            Some(element) if !moves => element,
            _ => {
                let definition = value.process_definition_key.raw();
                self.dictionary.element(database, definition, &value.element_id, UNSPECIFIED)?.0
            }
        };
        if intent == UserTaskIntent::Assigned {
            self.use_assignee(timestamp, &value.assignee);
        }
        self.batch.bytes += value.custom_headers.len() + value.assignee.len();
        let row = UserTaskRow {
            instance: value.process_instance_key.raw(),
            element_instance: value.element_instance_key.raw(),
            element,
            is_moved: was_moved || moves,
            is_announced: is_announced(intent),
            state,
            assignee: some_text(&value.assignee),
            candidate_groups: value.candidate_groups_list.clone(),
            candidate_users: value.candidate_users_list.clone(),
            created: some_time(value.creation_timestamp).unwrap_or(timestamp),
            completed,
            follow_up: date(&value.follow_up_date),
            due: date(&value.due_date),
            external_form: some_text(&value.external_form_reference),
            form: some_key(value.form_key),
            priority: value.priority,
            headers: value.custom_headers.clone(),
        };
        self.batch.user_tasks.insert(key, row);
        Ok(())
    }
}

/// Whether an event says what a task is to be, if no listener denies it.
fn is_announced(intent: UserTaskIntent) -> bool {
    matches!(
        intent,
        UserTaskIntent::Assigning | UserTaskIntent::Claiming | UserTaskIntent::Updating | UserTaskIntent::Completing
    )
}

/// What a task is after an event; none when it stays what it is.
fn state_after(intent: UserTaskIntent) -> Option<&'static str> {
    Some(match intent {
        UserTaskIntent::Creating => "CREATING",
        UserTaskIntent::Assigning | UserTaskIntent::Claiming => "ASSIGNING",
        UserTaskIntent::Updating => "UPDATING",
        UserTaskIntent::Completing => "COMPLETING",
        UserTaskIntent::Completed => "COMPLETED",
        UserTaskIntent::Canceling => "CANCELING",
        UserTaskIntent::Canceled => "CANCELED",
        UserTaskIntent::Created
        | UserTaskIntent::Assigned
        | UserTaskIntent::Updated
        | UserTaskIntent::CompletionDenied
        | UserTaskIntent::AssignmentDenied
        | UserTaskIntent::UpdateDenied => "CREATED",
        _ => return None,
    })
}

/// A date of the record, which may have its seconds left out or name its zone behind the offset.
fn date(text: &Text) -> Option<i64> {
    let text = text.split('[').next().unwrap_or_default().trim();
    if text.is_empty() {
        return None;
    }
    moment(text).or_else(|| {
        // As in 2030-01-01T00:00Z: the seconds stand behind the minutes.
        let (day, time) = text.split_once('T')?;
        let zone = time.find(['Z', '+', '-'])?;
        let (time, zone) = time.split_at(zone);
        moment(&format!("{day}T{time}:00{zone}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_records_write_them() {
        for (text, expected) in [
            ("", None),
            ("1970-01-01T00:00Z", Some(0)),
            ("1970-01-01T00:00:01Z", Some(1_000)),
            ("1970-01-01T01:00+01:00", Some(0)),
            ("1970-01-01T01:00:00.5+01:00[Europe/Berlin]", Some(500)),
            ("soon", None),
        ] {
            assert_eq!(date(&text.into()), expected, "{text}");
        }
    }
}
