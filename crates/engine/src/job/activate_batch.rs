//! JOB_BATCH ACTIVATE: a worker polls.

use protocol::{JobBatchIntent, JobBatchValue, JobOwner, Payload, Rejection, Text};

use super::delivery::{Activation, take_jobs};
use crate::execution::{Execution, Outcome};

pub(crate) fn activate(execution: &mut Execution<'_>, value: &JobBatchValue) -> Outcome {
    check(value)?;
    let owner = execution.request.map(|poll| JobOwner::Poll(poll, 1));
    let mut batch = JobBatchValue { job_keys: Vec::new(), jobs: Vec::new(), owner, ..value.clone() };
    let jobs_max = (value.max_jobs_to_activate as usize).min(execution.limits.job_batch_jobs_max);
    let mut bytes_left = execution.limits.job_batch_bytes_max;
    for tenant in tenants(value) {
        if execution.has_answered_much() {
            // The worker is told that there is more, and asks again.
            batch.truncated = true;
            break;
        }
        let queue = (tenant.shared().clone(), value.job_type.shared().clone());
        let activation = Activation {
            worker: &value.worker,
            timeout: value.timeout,
            fetch_variables: &value.fetch_variables,
            jobs_max: jobs_max - batch.job_keys.len(),
            bytes_max: bytes_left,
        };
        let taken = take_jobs(execution, &queue, &activation);
        bytes_left = bytes_left.saturating_sub(taken.jobs.iter().map(|job| job.variables.len()).sum());
        batch.truncated |= taken.truncated;
        batch.job_keys.extend(taken.keys);
        batch.jobs.extend(taken.jobs);
        if batch.job_keys.len() >= jobs_max || batch.truncated {
            break;
        }
    }
    let payload = Payload::JobBatch(JobBatchIntent::Activated, Box::new(batch));
    let key = execution.state.next_key();
    // An empty batch changes nothing, so nothing is recorded of it.
    if let Payload::JobBatch(_, batch) = &payload
        && !batch.job_keys.is_empty()
    {
        execution.emit(key, payload.clone());
        if let Some(poll) = execution.request {
            super::poll::forget_oldest(execution, poll);
        }
    }
    execution.reply(key, payload);
    Ok(())
}

fn tenants(value: &JobBatchValue) -> Vec<Text> {
    let mut tenants = value.tenant_ids.clone();
    tenants.sort();
    tenants.dedup();
    tenants
}

fn check(value: &JobBatchValue) -> Result<(), Rejection> {
    let refuse = |attribute: &str, expected: &str, found: &dyn std::fmt::Display| {
        Err(Rejection::invalid_argument(format!(
            "Expected to activate job batch with {attribute} to be {expected}, but it was '{found}'"
        )))
    };
    if value.job_type.is_empty() {
        return refuse("type", "present", &"blank");
    }
    if value.timeout < 1 {
        return refuse("timeout", "greater than zero", &value.timeout);
    }
    if value.max_jobs_to_activate < 1 {
        return refuse("max jobs to activate", "greater than zero", &value.max_jobs_to_activate);
    }
    Ok(())
}
