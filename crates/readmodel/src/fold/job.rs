//! Jobs.

use protocol::{JobBatchValue, JobIntent, JobKind, JobValue};

use super::{Fold, some_text, some_time};
use crate::batch::JobRow;
use crate::database::{Database, Result};
use crate::dictionary::UNSPECIFIED;
use crate::enumerations::{JOB_KINDS, JOB_STATES, LISTENER_EVENT_TYPES, number_of};
use crate::query::JOB_COUNT_MILLISECONDS;

/// Of the name of a worker, so much counts.
const WORKER_BYTES_MAX: usize = 512;

impl Fold {
    pub(super) fn job(
        &mut self,
        database: &Database,
        key: i64,
        timestamp: i64,
        intent: JobIntent,
        value: &JobValue,
    ) -> Result<()> {
        // The states are named after the events; the others leave it as it is.
        let state = match intent {
            // It can be activated again.
            JobIntent::Yielded | JobIntent::Updated | JobIntent::RecurredAfterBackoff => None,
            _ => number_of(JOB_STATES, intent.name()),
        };
        self.job_row(database, key, timestamp, value, intent == JobIntent::Migrated)?;
        self.count_job(timestamp, intent, value);
        let Some(row) = self.batch.jobs.get_mut(&key) else { return Ok(()) };
        if state.is_some() {
            let has_ended = match intent {
                JobIntent::Completed | JobIntent::Canceled => true,
                // Told as what lives, it may have been handed out anew since.
                JobIntent::ErrorThrown => !is_handed_out(value),
                _ => false,
            };
            (row.state, row.end, row.goes_on) = (state, has_ended.then_some(timestamp), false);
        }
        match intent {
            JobIntent::Created => row.created = Some(timestamp),
            // The incident of its error is resolved.
            JobIntent::RecurredAfterBackoff => (row.end, row.goes_on) = (None, true),
            JobIntent::Completed if value.job_kind == JobKind::TaskListener => {
                row.is_denied = Some(value.result.as_ref().is_some_and(|result| result.denied));
                row.denied_reason = value.result.as_ref().and_then(|result| some_text(&result.denied_reason));
            }
            _ => {}
        }
        Ok(())
    }

    fn count_job(&mut self, timestamp: i64, intent: JobIntent, value: &JobValue) {
        if self.is_told_living {
            return;
        }
        if !matches!(intent, JobIntent::Created | JobIntent::Completed | JobIntent::Failed | JobIntent::ErrorThrown) {
            return;
        }
        let minute = timestamp - timestamp.rem_euclid(JOB_COUNT_MILLISECONDS);
        // They are the key of a row, and a worker may call itself anything.
        let worker = match value.worker.len() {
            0..=WORKER_BYTES_MAX => value.worker.clone(),
            _ => value.worker[..value.worker.floor_char_boundary(WORKER_BYTES_MAX)].into(),
        };
        let group = (minute, value.job_type.clone(), worker);
        let counted = self.batch.jobs_counted.entry(group).or_default();
        match intent {
            JobIntent::Created => counted.created.again(timestamp),
            JobIntent::Completed => counted.completed.again(timestamp),
            _ => counted.failed.again(timestamp),
        }
    }

    /// Jobs are handed to a worker.
    pub(super) fn job_batch(&mut self, database: &Database, timestamp: i64, value: &JobBatchValue) -> Result<()> {
        for (key, job) in value.job_keys.iter().zip(&value.jobs) {
            self.job_row(database, key.raw(), timestamp, job, false)?;
        }
        Ok(())
    }

    fn job_row(&mut self, database: &Database, key: i64, timestamp: i64, value: &JobValue, moves: bool) -> Result<()> {
        let before = self.batch.jobs.get(&key);
        let (state, created, end) = before.map_or((None, None, None), |row| (row.state, row.created, row.end));
        // A job that goes on, because the incident of an error is resolved, has no end.
        let end = end.filter(|_| !is_handed_out(value));
        let goes_on = before.is_some_and(|row| row.goes_on);
        let (is_denied, denied_reason) = before.map_or((None, None), |row| (row.is_denied, row.denied_reason.clone()));
        let (was_moved, known) = before.map_or((false, None), |row| (row.is_moved, Some(row.element)));
        // An error that nobody catches comes with the id of an element that does not exist.
        let element = match known {
            Some(element) if !moves => element,
            _ => {
                let definition = value.process_definition_key.raw();
                self.dictionary.element(database, definition, &value.element_id, UNSPECIFIED)?.0
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
            goes_on,
            retries: value.retries,
            deadline: some_time(value.deadline),
            created,
            updated: timestamp,
            end,
            error_code: some_text(&value.error_code),
            error_message: some_text(&value.error_message),
            headers: value.custom_headers.clone(),
            kind: number_of(JOB_KINDS, value.job_kind.name()).unwrap_or_default(),
            listener_event_type: number_of(LISTENER_EVENT_TYPES, value.job_listener_event_type.name())
                .unwrap_or_default(),
            is_denied,
            denied_reason,
        };
        self.batch.jobs.insert(key, row);
        Ok(())
    }
}

/// Whether a worker has the job: only then it has a deadline.
fn is_handed_out(value: &JobValue) -> bool {
    some_time(value.deadline).is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{Key, Payload, Record, RecordPlace};

    use super::*;
    use crate::audited::Audited;
    use crate::testing::{self, PARTITION};

    const JOB: i64 = 7;

    fn with_error(deadline: i64) -> JobValue {
        JobValue { deadline, error_code: "E".into(), job_type: "work".into(), ..JobValue::default() }
    }

    #[test]
    fn a_job_that_is_handed_out_after_its_error_has_no_end_also_when_it_is_told_as_what_lives() {
        let thrown = |deadline| Payload::Job(JobIntent::ErrorThrown, Arc::new(with_error(deadline)));
        for is_told_living in [false, true] {
            for mut opened in testing::both() {
                let database = &opened.store.database;
                let mut fold = Fold::new(database, PARTITION, Audited::default()).expect("they are read");
                fold.is_told_living = is_told_living;
                let mut take = |number: u64, payload: Payload| {
                    let place = RecordPlace { incarnation: 1, position: number, number };
                    let record = Record::event(number, 1_000 * number.cast_signed(), Key::from_raw(JOB), payload);
                    fold.take(&opened.store.database, &record, place).expect("it is taken");
                    opened.store.write(&fold.batch).expect("it is written");
                    fold.written();
                    opened.store.database.number("SELECT coalesce(end_time, 0) FROM job")
                };
                assert_eq!(take(1, thrown(-1)), 1_000, "nobody has caught it");
                let end = if is_told_living {
                    take(2, thrown(9_000))
                } else {
                    let (job_keys, jobs) = (vec![Key::from_raw(JOB)], vec![with_error(9_000)]);
                    let batch = JobBatchValue { job_keys, jobs, ..JobBatchValue::default() };
                    take(2, Payload::JobBatch(protocol::JobBatchIntent::Activated, Box::new(batch)))
                };
                assert_eq!(end, 0, "a worker has it");
                assert_eq!(take(3, thrown(-1)), 3_000, "nobody has caught it again");
                let resolved = Payload::Job(JobIntent::RecurredAfterBackoff, Arc::new(with_error(-1)));
                assert_eq!(take(4, resolved), 0, "its incident is resolved");
            }
        }
    }
}
