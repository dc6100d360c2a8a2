//! Variables, messages and commands of absurd sizes and numbers.

use std::time::Duration;

use gateway_interface::*;
use model_builder::{Event, ProcessBuilder};
use tokio::task::JoinSet;
use tonic::{Code, Status};

use super::{Case, cases, text};
use crate::victim::{Verdict, Victim, answered, creation, refusal, refused};

pub(super) fn cases() -> Vec<Case> {
    cases! { "data and commands":
        short "variables in each other, a million deep" too_deep_variables;
        short "variables in each other, 999 deep, and read" deep_variables;
        long "20,000 variables, a hundred times" many_variables;
        long "3 MiB set on an instance, 300 times" growing_instance;
        short "an answer with all variables, of more than 4 MiB" large_result;
        short "a message of 3 MiB for 100 start events" message_for_many_starts;
        long "10,000 subscriptions to one message" many_subscriptions;
        long "10,000 messages for nobody" many_messages;
        short "jobs activated with absurd numbers" absurd_activation;
        long "50 jobs of 3 MiB in one activation" large_jobs;
        short "10,000 elements activated by one modification" large_modification;
        short "instances that are cancelled while they run" cancelled_while_running;
        long "a job that fails with 3 MiB, again and again" failing_with_a_text;
        short "10,000 completions of jobs that are not there" unknown_jobs;
    }
}

/// Completes one job of a type.
pub(super) async fn complete_one(victim: &Victim, job_type: &str) -> Result<(), String> {
    let jobs = activate(victim, job_type, 1).await.map_err(|status| status.to_string())?;
    let job = jobs.first().ok_or_else(|| format!("there is no job of type {job_type}"))?;
    let request = CompleteJobRequest { job_key: job.key, ..CompleteJobRequest::default() };
    // A refusal is an answer, too.
    let _ = victim.client().complete_job(request).await;
    Ok(())
}

pub(super) async fn activate(victim: &Victim, job_type: &str, count: i32) -> Result<Vec<ActivatedJob>, Status> {
    let request = ActivateJobsRequest {
        r#type: job_type.to_owned(),
        worker: "hostile".to_owned(),
        timeout: 60_000,
        max_jobs_to_activate: count,
        request_timeout: 20_000,
        ..ActivateJobsRequest::default()
    };
    let mut responses = victim.client().activate_jobs(request).await?.into_inner();
    let mut jobs = Vec::new();
    while let Some(response) = responses.message().await? {
        jobs.extend(response.jobs);
    }
    Ok(jobs)
}

/// Deploys a process with one task that only the case works on.
async fn one_task(victim: &Victim, id: &str) -> Result<(), String> {
    let xml = ProcessBuilder::new(id).start("start").service_task("task", id).end("end").to_xml();
    victim.deploy(&format!("{id}.bpmn"), xml).await.map_err(|status| status.to_string())
}

fn nested(levels: usize) -> String {
    format!("{{\"text\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
}

/// How many of these were carried out, and what was said last to the others.
async fn count(mut tasks: JoinSet<Result<(), Status>>) -> Verdict {
    let (mut done, mut said) = (0, String::new());
    while let Some(task) = tasks.join_next().await {
        match task.map_err(|error| error.to_string())? {
            Ok(()) => done += 1,
            Err(status) if status.code() == Code::Unavailable => return Err(status.to_string()),
            Err(status) => said = format!(", the others: {}", refusal(&status)?),
        }
    }
    Ok(format!("{done} carried out{said}"))
}

async fn too_deep_variables(victim: Victim) -> Verdict {
    one_task(&victim, "too-deep-data").await?;
    refused(victim.create("too-deep-data", &nested(1_000_000)).await, Code::InvalidArgument, "levels")
}

async fn deep_variables(victim: Victim) -> Verdict {
    let builder = ProcessBuilder::new("deep-data").start("start").script_task("script", "=[text, {a: text}]", "more");
    let builder = builder.script_task("again", "=count(flatten(more)) + count(string(more))", "count");
    victim.bears("deep-data", builder.end("end").to_xml(), &nested(998)).await
}

async fn many_variables(victim: Victim) -> Verdict {
    one_task(&victim, "many-variables").await?;
    let names: Vec<String> = (0..20_000).map(|number| format!("\"v{number}\":{number}")).collect();
    let variables = format!("{{{}}}", names.join(","));
    for _ in 0..100 {
        if let Err(status) = victim.create("many-variables", &variables).await {
            return refusal(&status);
        }
    }
    Ok("100 instances".to_owned())
}

async fn growing_instance(victim: Victim) -> Verdict {
    one_task(&victim, "growing").await?;
    let instance = victim.create("growing", "{}").await.map_err(|status| status.to_string())?;
    for number in 0..300 {
        let request = SetVariablesRequest {
            element_instance_key: instance,
            variables: format!("{{\"v{number}\":\"{}\"}}", "x".repeat(3 << 20)),
            ..SetVariablesRequest::default()
        };
        if let Err(status) = victim.client().set_variables(request).await {
            return refusal(&status).map(|said| format!("after {number}: {said}"));
        }
    }
    Ok("900 MiB in one instance".to_owned())
}

async fn large_result(victim: Victim) -> Verdict {
    let mut builder = ProcessBuilder::new("large-result").start("start");
    for number in 0..20 {
        builder = builder.script_task(&format!("script{number}"), "=text", &format!("copy{number}"));
    }
    let xml = builder.end("end").to_xml();
    if let Err(status) = victim.deploy("large-result.bpmn", xml).await {
        return refusal(&status);
    }
    let request = CreateProcessInstanceWithResultRequest {
        request: Some(creation("large-result", &text(1 << 20))),
        request_timeout: 30_000,
        fetch_variables: Vec::new(),
    };
    // A client takes 4 MiB by default, and must learn the reason from the node and not from its library.
    let client = victim.another_client().await?.max_decoding_message_size(4 << 20);
    let outcome = client.clone().create_process_instance_with_result(request).await;
    match outcome {
        Err(status) if status.message().contains("decoded message length too large") => {
            Err(status.message().to_owned())
        }
        outcome => answered(outcome),
    }
}

async fn message_for_many_starts(victim: Victim) -> Verdict {
    for number in 0..100 {
        let id = format!("started-by-message{number}");
        let builder = ProcessBuilder::new(&id).start_event("start", Event::Message("hostile-start", ""));
        let xml = builder.service_task("task", "nobody").end("end").to_xml();
        victim.deploy(&format!("{id}.bpmn"), xml).await.map_err(|status| status.to_string())?;
    }
    answered(publish(&victim, "hostile-start", "key", &text(3 << 20), 0).await)
}

async fn publish(victim: &Victim, name: &str, key: &str, variables: &str, time_to_live: i64) -> Result<(), Status> {
    let request = PublishMessageRequest {
        name: name.to_owned(),
        correlation_key: key.to_owned(),
        variables: variables.to_owned(),
        time_to_live,
        ..PublishMessageRequest::default()
    };
    victim.client().publish_message(request).await.map(drop)
}

async fn many_subscriptions(victim: Victim) -> Verdict {
    let builder = ProcessBuilder::new("subscribed").start("start").sub_process("sub");
    let builder = builder.multi_instance("=for i in 1..10000 return i", "i").start("s");
    let builder = builder.receive_task("wait", "hostile-many", "=\"key\"").end("e").end_sub_process().end("end");
    victim.bears("subscribed", builder.to_xml(), "{}").await?;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let victim = victim.clone();
        tasks.spawn(async move { publish(&victim, "hostile-many", "key", &text(100_000), 60_000).await });
    }
    count(tasks).await
}

async fn many_messages(victim: Victim) -> Verdict {
    let mut tasks = JoinSet::new();
    for number in 0..10_000 {
        let victim = victim.clone();
        tasks
            .spawn(async move { publish(&victim, "hostile-nobody", &number.to_string(), &text(10_000), 60_000).await });
    }
    count(tasks).await
}

async fn absurd_activation(victim: Victim) -> Verdict {
    one_task(&victim, "absurd").await?;
    for _ in 0..3 {
        victim.create("absurd", &text(1 << 20)).await.map_err(|status| status.to_string())?;
    }
    let jobs = activate(&victim, "absurd", i32::MAX).await.map_err(|status| status.to_string())?;
    for number in [i32::MIN, -1, 0] {
        refused(activate(&victim, "absurd", number).await, Code::InvalidArgument, "maxJobsToActivate")?;
    }
    Ok(format!("{} jobs", jobs.len()))
}

async fn large_jobs(victim: Victim) -> Verdict {
    one_task(&victim, "large-jobs").await?;
    for _ in 0..50 {
        if let Err(status) = victim.create("large-jobs", &text(3 << 20)).await {
            return refusal(&status);
        }
    }
    let jobs = activate(&victim, "large-jobs", 50).await.map_err(|status| status.to_string())?;
    Ok(format!("{} of 50 jobs at once", jobs.len()))
}

async fn large_modification(victim: Victim) -> Verdict {
    use modify_process_instance_request::ActivateInstruction;

    one_task(&victim, "modified").await?;
    let instance = victim.create("modified", "{}").await.map_err(|status| status.to_string())?;
    let activate = ActivateInstruction {
        element_id: "task".to_owned(),
        ancestor_element_instance_key: -1,
        variable_instructions: Vec::new(),
    };
    let request = ModifyProcessInstanceRequest {
        process_instance_key: instance,
        activate_instructions: vec![activate; 10_000],
        ..ModifyProcessInstanceRequest::default()
    };
    answered(victim.client().modify_process_instance(request).await)
}

async fn cancelled_while_running(victim: Victim) -> Verdict {
    let builder = ProcessBuilder::new("cancelled").start("start").sub_process("sub");
    let builder = builder.multi_instance("=for i in 1..20000 return i", "i").start("s").manual_task("t").end("e");
    let xml = builder.end_sub_process().end("end").to_xml();
    victim.deploy("cancelled.bpmn", xml).await.map_err(|status| status.to_string())?;
    for _ in 0..10 {
        let instance = victim.create("cancelled", "{}").await.map_err(|status| status.to_string())?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let request = CancelProcessInstanceRequest { process_instance_key: instance, operation_reference: None };
        answered(victim.client().cancel_process_instance(request).await)?;
    }
    Ok(format!("ten instances, {}", victim.comes_to_rest().await))
}

async fn failing_with_a_text(victim: Victim) -> Verdict {
    one_task(&victim, "failing").await?;
    victim.create("failing", "{}").await.map_err(|status| status.to_string())?;
    for _ in 0..50 {
        let jobs = activate(&victim, "failing", 1).await.map_err(|status| status.to_string())?;
        let Some(job) = jobs.first() else {
            return Err("the job did not come back".to_owned());
        };
        let request = FailJobRequest {
            job_key: job.key,
            retries: i32::MAX,
            error_message: "x".repeat(3 << 20),
            ..FailJobRequest::default()
        };
        answered(victim.client().fail_job(request).await)?;
    }
    Ok("50 failures".to_owned())
}

async fn unknown_jobs(victim: Victim) -> Verdict {
    let mut tasks = JoinSet::new();
    for number in 0..10_000 {
        let mut client = victim.client();
        let job_key = (1 << 51) + 4_000_000_000 + number;
        let request = CompleteJobRequest { job_key, variables: text(1_000), result: None };
        tasks.spawn(async move {
            match client.complete_job(request).await {
                Ok(_) => Err(Status::unavailable(format!("job {job_key} was completed, which was never there"))),
                Err(status) if status.code() == Code::NotFound => Ok(()),
                Err(status) => Err(status),
            }
        });
    }
    count(tasks).await.map(|said| said.replace("carried out", "were not there"))
}
