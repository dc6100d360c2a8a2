//! Jobs.

use protocol::{JobBatchValue, JobIntent, JobValue};
use rusqlite::Connection;

use super::{Fold, some_text, some_time};
use crate::batch::JobRow;
use crate::dictionary::UNSPECIFIED;
use crate::enumerations::{JOB_STATES, number_of};

impl Fold {
    pub(super) fn job(
        &mut self,
        connection: &Connection,
        key: i64,
        timestamp: i64,
        intent: JobIntent,
        value: &JobValue,
    ) -> rusqlite::Result<()> {
        // The states are named after the events; the others leave it as it is.
        let state = match intent {
            // It can be activated again.
            JobIntent::Yielded | JobIntent::Updated | JobIntent::RecurredAfterBackoff => None,
            _ => number_of(JOB_STATES, intent.name()),
        };
        self.job_row(connection, key, timestamp, value, intent == JobIntent::Migrated)?;
        let Some(row) = self.batch.jobs.get_mut(&key) else { return Ok(()) };
        row.state = state.or(row.state);
        match intent {
            JobIntent::Created => row.created = Some(timestamp),
            JobIntent::Completed | JobIntent::Canceled | JobIntent::ErrorThrown => row.end = Some(timestamp),
            _ => {}
        }
        Ok(())
    }

    /// Jobs are handed to a worker.
    pub(super) fn job_batch(
        &mut self,
        connection: &Connection,
        timestamp: i64,
        value: &JobBatchValue,
    ) -> rusqlite::Result<()> {
        for (key, job) in value.job_keys.iter().zip(&value.jobs) {
            self.job_row(connection, key.raw(), timestamp, job, false)?;
        }
        Ok(())
    }

    fn job_row(
        &mut self,
        connection: &Connection,
        key: i64,
        timestamp: i64,
        value: &JobValue,
        moves: bool,
    ) -> rusqlite::Result<()> {
        let before = self.batch.jobs.get(&key);
        let (state, created, end) = before.map_or((None, None, None), |row| (row.state, row.created, row.end));
        let (was_moved, known) = before.map_or((false, None), |row| (row.is_moved, Some(row.element)));
        // An error that nobody catches comes with the id of an element that does not exist.
        let element = match known {
            Some(element) if !moves => element,
            _ => {
                let definition = value.process_definition_key.raw();
                self.dictionary.element(connection, definition, &value.element_id, UNSPECIFIED)?.0
            }
        };
        self.batch.bytes += value.custom_headers.len() + value.error_message.len();
        let row = JobRow {
            instance: value.process_instance_key.raw(),
            element_instance: value.element_instance_key.raw(),
            element,
            is_moved: was_moved || moves,
            job_type: value.job_type.clone(),
            worker: value.worker.clone(),
            state,
            retries: value.retries,
            deadline: some_time(value.deadline),
            created,
            updated: timestamp,
            end,
            error_code: some_text(&value.error_code),
            error_message: some_text(&value.error_message),
            headers: value.custom_headers.clone(),
        };
        self.batch.jobs.insert(key, row);
        Ok(())
    }
}
