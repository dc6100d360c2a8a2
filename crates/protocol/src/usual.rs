//! Reads the records that most are, field by field, which takes less than what is generated for all. What it does not know, or finds
//! otherwise than it is written today, is left to that.

use std::sync::Arc;

use crate::fields::Fields;
use crate::{
    Actor, JobBatchValue, JobListenerEventType, JobValue, Payload, Record, RecordType, Text, ValueType, VariableValue,
};

/// Fields of a record that are always there.
const RECORD_FIELDS: u64 = 8;
const JOB_FIELDS: u64 = 21;
const JOB_BATCH_FIELDS: u64 = 9;
const VARIABLE_FIELDS: u64 = 7;

/// The event of a job, of jobs handed out, or of a variable that `encoded` begins with; none when it is not read here.
pub(crate) fn event(encoded: &[u8]) -> Option<Record> {
    let mut fields = Fields::of(encoded);
    let count = at_least(RECORD_FIELDS, &mut fields)?;
    let (position, number, source_position) = (fields.unsigned()?, fields.unsigned()?, fields.unsigned()?);
    let (key, timestamp) = (fields.key()?, fields.signed()?);
    // An event, which has nothing with it.
    if (fields.array()?, fields.unsigned()?, fields.array()?) != (2, 0, 0) {
        return None;
    }
    Some(Record {
        position,
        number,
        source_position,
        key,
        timestamp,
        record_type: RecordType::Event,
        operation_reference: fields.optional(Fields::unsigned)?,
        payload: payload(&mut fields)?,
        actor: if count > 8 { fields.value()? } else { Actor::Anonymous },
        batch_operation_reference: if count > 9 { fields.optional(Fields::key)? } else { None },
        path: if count > 10 { fields.optional(Fields::value)? } else { None },
    })
}

/// How many fields there are, if that is enough.
#[inline]
fn at_least(least: u64, fields: &mut Fields<'_>) -> Option<u64> {
    fields.array().filter(|count| *count >= least)
}

/// Passes fields that later versions have added.
#[inline]
fn pass_later(count: u64, known: u64, fields: &mut Fields<'_>) -> Option<()> {
    (known..count).try_for_each(|_| fields.pass())
}

fn payload(fields: &mut Fields<'_>) -> Option<Payload> {
    const JOB: u64 = ValueType::Job as u64;
    const JOB_BATCH: u64 = ValueType::JobBatch as u64;
    const VARIABLE: u64 = ValueType::Variable as u64;
    let (2, of, 2) = (fields.array()?, fields.unsigned()?, fields.array()?) else { return None };
    Some(match of {
        JOB => Payload::Job(fields.value()?, Arc::new(job(fields)?)),
        JOB_BATCH => Payload::JobBatch(fields.value()?, Box::new(job_batch(fields)?)),
        VARIABLE => Payload::Variable(fields.value()?, Box::new(variable(fields)?)),
        _ => return None,
    })
}

fn job(fields: &mut Fields<'_>) -> Option<JobValue> {
    let count = at_least(JOB_FIELDS, fields)?;
    let job = JobValue {
        job_type: fields.kept()?,
        custom_headers: fields.kept()?,
        worker: fields.kept()?,
        retries: fields.small()?,
        retry_backoff: fields.signed()?,
        recurring_time: fields.signed()?,
        deadline: fields.signed()?,
        timeout: fields.signed()?,
        error_message: fields.kept()?,
        error_code: fields.kept()?,
        element_id: fields.kept()?,
        element_instance_key: fields.key()?,
        bpmn_process_id: fields.kept()?,
        process_definition_version: fields.small()?,
        process_definition_key: fields.key()?,
        job_kind: fields.value()?,
        changed_attributes: fields.all(Fields::kept)?,
        tags: fields.all(Fields::kept)?,
        process_instance_key: fields.key()?,
        variables: fields.kept()?,
        tenant_id: fields.kept()?,
        result: if count > 21 { fields.optional(Fields::value)? } else { None },
        job_listener_event_type: if count > 22 { fields.value()? } else { JobListenerEventType::default() },
        business_id: if count > 23 { fields.kept()? } else { Text::default() },
    };
    pass_later(count, 24, fields)?;
    Some(job)
}

fn job_batch(fields: &mut Fields<'_>) -> Option<JobBatchValue> {
    let count = at_least(JOB_BATCH_FIELDS, fields)?;
    let batch = JobBatchValue {
        job_type: fields.kept()?,
        worker: fields.kept()?,
        timeout: fields.signed()?,
        max_jobs_to_activate: fields.small()?,
        job_keys: fields.all(Fields::key)?,
        jobs: fields.all(job)?,
        truncated: fields.value()?,
        tenant_ids: fields.all(Fields::kept)?,
        fetch_variables: fields.all(Fields::kept)?,
        owner: if count > 9 { fields.optional(Fields::value)? } else { None },
    };
    pass_later(count, 10, fields)?;
    Some(batch)
}

fn variable(fields: &mut Fields<'_>) -> Option<VariableValue> {
    let count = at_least(VARIABLE_FIELDS, fields)?;
    let variable = VariableValue {
        name: fields.kept()?,
        value: fields.kept()?,
        scope_key: fields.key()?,
        process_instance_key: fields.key()?,
        process_definition_key: fields.key()?,
        bpmn_process_id: fields.kept()?,
        tenant_id: fields.kept()?,
    };
    pass_later(count, 7, fields)?;
    Some(variable)
}
