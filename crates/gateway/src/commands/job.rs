//! Completing, failing and changing jobs.

use std::sync::Arc;

use gateway_interface::*;
use protocol::{JobIntent, JobValue, Payload, Rejection};
use tonic::{Code, Status};

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{rejected, status};
use crate::validation::{Target, variables};

impl Service {
    pub(crate) fn complete(&self, request: CompleteJobRequest) -> Result<Pending, Status> {
        if request.result.is_some_and(|result| result != JobResult::default()) {
            return Err(status(
                Code::Unimplemented,
                "CompleteJob with a result is not supported by this version of Osmia yet: jobs of listeners and ad-hoc sub-processes are missing.",
            ));
        }
        let value = JobValue { variables: variables(request.variables)?, ..JobValue::default() };
        let target = Target { intent: JobIntent::Complete.name(), action: "complete job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Complete, Arc::new(value));
        self.execute_by_key(Rpc::CompleteJob, target, request.job_key, None, payload)
    }

    pub(crate) fn fail(&self, request: FailJobRequest) -> Result<Pending, Status> {
        let value = JobValue {
            variables: variables(request.variables)?,
            retries: request.retries,
            retry_backoff: request.retry_back_off,
            error_message: request.error_message.into(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::Fail.name(), action: "fail job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Fail, Arc::new(value));
        self.execute_by_key(Rpc::FailJob, target, request.job_key, None, payload)
    }

    pub(crate) fn throw(&self, request: ThrowErrorRequest) -> Result<Pending, Status> {
        let value = JobValue {
            variables: variables(request.variables)?,
            error_code: request.error_code.into(),
            error_message: request.error_message.into(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::ThrowError.name(), action: "throw an error for job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::ThrowError, Arc::new(value));
        self.execute_by_key(Rpc::ThrowError, target, request.job_key, None, payload)
    }

    pub(crate) fn set_retries(&self, request: UpdateJobRetriesRequest) -> Result<Pending, Status> {
        if request.retries < 1 {
            return Err(rejected(
                JobIntent::UpdateRetries.name(),
                &Rejection::invalid_argument(format!(
                    "Expected to update retries of job with key '{}' with a positive amount of retries, but the amount given was '{}'",
                    request.job_key, request.retries
                )),
            ));
        }
        let value = JobValue { retries: request.retries, ..JobValue::default() };
        let target = Target { intent: JobIntent::UpdateRetries.name(), action: "update retries of job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::UpdateRetries, Arc::new(value));
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::UpdateJobRetries, target, request.job_key, reference, payload)
    }

    pub(crate) fn set_timeout(&self, request: UpdateJobTimeoutRequest) -> Result<Pending, Status> {
        let value = JobValue { timeout: request.timeout, ..JobValue::default() };
        let target = Target { intent: JobIntent::UpdateTimeout.name(), action: "update timeout of job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::UpdateTimeout, Arc::new(value));
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::UpdateJobTimeout, target, request.job_key, reference, payload)
    }
}
