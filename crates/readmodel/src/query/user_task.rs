//! What belongs to a user task, and the forms that are given to people.

use super::readers::{Failure, Readers};
use protocol::PartitionId;

/// Where a user task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPlace {
    /// Its element instance.
    pub element_instance: i64,
    /// Its process instance.
    pub process_instance: i64,
    /// Its form, if it has one of this engine.
    pub form: Option<i64>,
}

impl Readers {
    /// Where a user task is, and its form; none when there is no such task.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn task_place(&mut self, partition: PartitionId, task: i64) -> Result<Option<TaskPlace>, Failure> {
        let select = "SELECT element_instance_key, process_instance_key, form_key FROM user_task WHERE key = ?";
        self.read(partition, |database| {
            database.first(select, &[task.into()], |row| {
                Ok(TaskPlace { element_instance: row.get(0)?, process_instance: row.get(1)?, form: row.get(2)? })
            })
        })
    }

    /// The form that a definition begins with: the newest with the id that its start event names, if there is one.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn start_form(&mut self, definition: i64) -> Result<Option<i64>, Failure> {
        let Some(partition) = self.partitions().first().copied() else { return Ok(None) };
        let select = "SELECT f.key FROM start_form s CROSS JOIN form f ON f.id = s.form_id \
                      CROSS JOIN process_definition d ON d.key = s.process_definition_key AND d.tenant_id = f.tenant_id \
                      WHERE s.process_definition_key = ? AND f.is_deleted = 0 ORDER BY f.version DESC LIMIT 1";
        self.read(partition, |database| database.first(select, &[definition.into()], |row| row.get(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Condition, Test, USER_TASKS, Value, sql};
    use crate::testing::in_file;

    /// How a file finds tasks.
    fn plan(condition: &Condition) -> String {
        let opened = in_file();
        let database = &opened.store.database;
        let condition = sql::condition(database, condition).expect("a condition");
        let text = format!(
            "EXPLAIN QUERY PLAN SELECT r.key FROM user_task r WHERE {} ORDER BY r.creation_date, r.key LIMIT 100",
            condition.text
        );
        database.all(&text, &condition.bound(), |row| row.get::<String>(3)).expect("a plan").join("; ")
    }

    #[test]
    fn open_tasks_of_somebody_are_found_by_an_index_and_in_order() {
        let is = |name: &str, value: Value| {
            Condition::Is(USER_TASKS.field(name).expect("a field"), vec![Test::Equal(value)])
        };
        let open = || is("state", Value::Integer(1));
        let of_ann = plan(&Condition::All(vec![is("assignee", Value::Text("ann".into())), open()]));
        assert!(of_ann.contains("user_task_by_assignee (assignee=? AND state=?)"), "{of_ann}");
        assert!(!of_ann.contains("TEMP B-TREE"), "{of_ann}");
        let all = plan(&open());
        assert!(all.contains("user_task_by_state (state=?)") && !all.contains("TEMP B-TREE"), "{all}");
        let of_group = plan(&is("candidateGroup", Value::Text("sales".into())));
        assert!(of_group.contains("user_task_candidate_by_name (kind=? AND name=?)"), "{of_group}");
    }
}
