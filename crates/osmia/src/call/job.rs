//! `osmia activate`, `complete`, `fail`, `throw-error` and `update-retries`.

use std::time::Duration;

use clap::Args;
use gateway_interface::{
    ActivateJobsRequest, ActivatedJob, CompleteJobRequest, FailJobRequest, ThrowErrorRequest, UpdateJobRetriesRequest,
};
use serde_json::{Value, json};

use super::action::Action;
use crate::client::{Client, Outcome, milliseconds};
use crate::configuration::duration;
use crate::input::Variables;
use crate::output::{Output, document, key, print_line};

#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// Type of the jobs.
    job_type: String,
    /// How many at most.
    #[arg(long, default_value_t = 1)]
    max: i32,
    /// How long the jobs are locked.
    #[arg(long, default_value = "5m", value_parser = duration)]
    lock: Duration,
    /// Name of the worker.
    #[arg(long, default_value = "osmia")]
    worker: String,
}

impl Action for Activate {
    async fn carry_out(self, mut client: Client, _: &Output) -> Outcome {
        let request = ActivateJobsRequest {
            r#type: self.job_type,
            worker: self.worker,
            timeout: milliseconds(self.lock),
            max_jobs_to_activate: self.max,
            request_timeout: milliseconds(client.timeout()),
            ..ActivateJobsRequest::default()
        };
        let mut responses = client.gateway.activate_jobs(client.request(request)).await?.into_inner();
        while let Some(response) = responses.message().await? {
            for job in response.jobs {
                print_line(job_json(&job))?;
            }
        }
        Ok(())
    }
}

fn job_json(job: &ActivatedJob) -> Value {
    json!({
        "jobKey": key(job.key),
        "type": job.r#type,
        "processInstanceKey": key(job.process_instance_key),
        "processDefinitionId": job.bpmn_process_id,
        "processDefinitionVersion": job.process_definition_version,
        "processDefinitionKey": key(job.process_definition_key),
        "elementId": job.element_id,
        "elementInstanceKey": key(job.element_instance_key),
        "customHeaders": document(&job.custom_headers),
        "worker": job.worker,
        "retries": job.retries,
        "deadline": job.deadline,
        "variables": document(&job.variables),
        "tenantId": job.tenant_id,
        "tags": job.tags,
    })
}

/// Says that a job is as it was to be.
fn done(output: &Output, job: i64, state: &str) -> Outcome {
    Ok(output.say(format_args!("job {job} {state}"), || json!({ "jobKey": key(job) }))?)
}

#[derive(Debug, Args)]
pub(crate) struct Complete {
    /// Key of the job.
    key: i64,
    /// Variables to set: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for Complete {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = CompleteJobRequest { job_key: self.key, variables: self.variables.into(), result: None };
        client.gateway.complete_job(client.request(request)).await?;
        done(output, self.key, "is completed")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Fail {
    /// Key of the job.
    key: i64,
    /// Attempts left; 0 raises an incident.
    #[arg(long)]
    retries: i32,
    /// What went wrong.
    #[arg(long, default_value = "")]
    message: String,
    /// How long to wait before the next attempt.
    #[arg(long, default_value = "0s", value_parser = duration)]
    backoff: Duration,
    /// Variables to set: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for Fail {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = FailJobRequest {
            job_key: self.key,
            retries: self.retries,
            error_message: self.message,
            retry_back_off: milliseconds(self.backoff),
            variables: self.variables.into(),
        };
        client.gateway.fail_job(client.request(request)).await?;
        let state = match self.retries {
            1.. => format!("has failed and has {} attempt(s) left", self.retries),
            _ => "has failed and has no attempt left: it has an incident".to_owned(),
        };
        done(output, self.key, &state)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ThrowError {
    /// Key of the job.
    key: i64,
    /// Code of the error.
    code: String,
    /// What went wrong.
    #[arg(long, default_value = "")]
    message: String,
    /// Variables for who catches the error: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for ThrowError {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = ThrowErrorRequest {
            job_key: self.key,
            error_code: self.code,
            error_message: self.message,
            variables: self.variables.into(),
        };
        client.gateway.throw_error(client.request(request)).await?;
        done(output, self.key, "has thrown the error")
    }
}

#[derive(Debug, Args)]
pub(crate) struct UpdateRetries {
    /// Key of the job.
    key: i64,
    /// Attempts left.
    retries: i32,
}

impl Action for UpdateRetries {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = UpdateJobRetriesRequest { job_key: self.key, retries: self.retries, operation_reference: None };
        client.gateway.update_job_retries(client.request(request)).await?;
        done(output, self.key, &format!("has {} attempt(s) left", self.retries))
    }
}
