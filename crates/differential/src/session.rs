//! Carries out steps on one side and reports what happened.

use gateway_interface::*;
use serde_json::Value;

use crate::driver::{Answer, ChoiceRequest, Driver, DriverError, Request, UserTaskRequest};
use crate::scenario::{Files, Trace};
use crate::step::{CreateOptions, Modification, Step};
use crate::trace::{self, canonical_text, moment};
use crate::tracker::{Record, Tracker};

/// A key that no engine makes.
const MISSING_KEY: i64 = (1 << 51) + 999_999_999;
/// Each step of the clock goes this much further, because an engine may see what is due at a moment right then or after it.
const CLOCK_EXTRA_MILLISECONDS: i64 = 1;
/// How long a result may be waited for, on the wire.
const RESULT_MILLISECONDS: i64 = 600_000;

/// One side of a run, from its first step on.
pub struct Session<'a> {
    driver: &'a mut dyn Driver,
    files: &'a Files,
    /// What is there on this side.
    pub tracker: Tracker,
    /// Why the last step was refused; empty when it was not.
    pub reason: String,
    results: usize,
}

/// All steps of one side.
#[derive(Debug, Default)]
pub struct Run {
    /// What happened.
    pub trace: Trace,
    /// Why steps were refused, step by step; empty where they were not.
    pub reasons: Vec<String>,
}

/// A step that names something that this side has never had.
struct Unknown(String);

/// What the worker of a task listener says, from the words of a step.
fn task_result(json: &str) -> Result<JobResult, Unknown> {
    let given: Value = serde_json::from_str(json).map_err(|error| Unknown(error.to_string()))?;
    let text = |of: &Value, name: &str| of[name].as_str().map(str::to_owned);
    let list = |of: &Value, name: &str| {
        let values = of[name].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
        Some(StringList { values: values.collect() })
    };
    let corrections = given.get("corrections").map(|of| JobResultCorrections {
        assignee: text(of, "assignee"),
        due_date: text(of, "dueDate"),
        follow_up_date: text(of, "followUpDate"),
        candidate_users: list(of, "candidateUsersList"),
        candidate_groups: list(of, "candidateGroupsList"),
        priority: of["priority"].as_i64().map(|priority| priority as i32),
    });
    Ok(JobResult {
        denied: given["denied"].as_bool(),
        denied_reason: text(&given, "deniedReason"),
        corrections,
        ..JobResult::default()
    })
}

impl<'a> Session<'a> {
    /// Starts afresh on a side.
    ///
    /// # Errors
    /// When the side cannot be started.
    pub fn new(driver: &'a mut dyn Driver, files: &'a Files) -> Result<Self, DriverError> {
        driver.reset()?;
        // What an engine does by itself when it starts.
        driver.records()?;
        Ok(Session { driver, files, tracker: Tracker::default(), reason: String::new(), results: 0 })
    }

    /// Carries out all steps.
    ///
    /// # Errors
    /// When the side is gone.
    pub fn run(driver: &'a mut dyn Driver, files: &'a Files, steps: &[Step]) -> Result<Run, DriverError> {
        let mut session = Session::new(driver, files)?;
        let mut run = Run::default();
        let in_step = |step: &Step, error: DriverError| DriverError {
            problem: format!("{} (in the step '{step}')", error.problem),
            ..error
        };
        for step in steps {
            let lines = session.take(step).map_err(|error| in_step(step, error))?;
            run.trace.push((step.to_string(), lines));
            run.reasons.push(std::mem::take(&mut session.reason));
        }
        Ok(run)
    }

    /// Carries out a step; returns what came of it.
    ///
    /// # Errors
    /// When the side is gone.
    pub fn take(&mut self, step: &Step) -> Result<Vec<String>, DriverError> {
        let mut lines = Vec::new();
        self.reason.clear();
        if let Step::Time { milliseconds } = step {
            self.driver.advance(milliseconds + CLOCK_EXTRA_MILLISECONDS)?;
        } else {
            match self.request(step) {
                Ok(request) => {
                    let mut answer = self.driver.request(request)?;
                    let records = self.driver.records()?;
                    match &mut answer {
                        Answer::Activated(jobs) => Self::in_order(jobs, &records),
                        Answer::Refused(refusal) => self.reason = std::mem::take(&mut refusal.reason),
                        _ => {}
                    }
                    self.tracker.observe(&records);
                    self.tell_answer(&answer, &mut lines);
                    lines.extend(trace::lines(&self.tracker, &records));
                }
                Err(Unknown(what)) => lines.push(format!("= there has never been '{what}'")),
            }
        }
        let records = self.driver.records()?;
        self.tracker.observe(&records);
        self.tracker.expect_nothing();
        lines.extend(trace::lines(&self.tracker, &records));
        let ended = self.tracker.awaited_completed();
        let results = self.driver.results(ended.saturating_sub(self.results))?;
        self.results += results.len();
        let said =
            |(process, variables): &(String, String)| format!("= result of {process}: {}", canonical_text(variables));
        let mut results: Vec<String> = results.iter().map(said).collect();
        // Results of one step come over several connections, in any order.
        results.sort();
        lines.extend(results);
        Ok(lines)
    }

    /// Jobs of an answer in the order in which they were activated.
    fn in_order(jobs: &mut [ActivatedJob], records: &[Value]) {
        let batches =
            records.iter().map(Record).filter(|record| record.is_event() && record.value_type() == "JOB_BATCH");
        let keys: Vec<i64> = batches
            .filter_map(|record| record.value("jobKeys").as_array())
            .flat_map(|keys| keys.iter().filter_map(Value::as_i64))
            .collect();
        jobs.sort_by_key(|job| keys.iter().position(|key| *key == job.key));
    }

    fn tell_answer(&self, answer: &Answer, lines: &mut Vec<String>) {
        match answer {
            Answer::Done => lines.push("= done".to_owned()),
            Answer::Awaiting => lines.push("= waits for the result".to_owned()),
            Answer::Created(process, version) => lines.push(format!("= created {process} version {version}")),
            Answer::Deployed { processes, decisions } => {
                let mut decisions = decisions.clone();
                // The reference names them in no order.
                decisions.sort();
                let all: Vec<String> =
                    processes.iter().chain(&decisions).map(|(id, version)| format!("{id} version {version}")).collect();
                lines.push(format!("= deployed {}", all.join(", ")));
            }
            Answer::Evaluated(Ok(output)) => lines.push(format!("= evaluated {}", canonical_text(output))),
            Answer::Evaluated(Err(decision)) => lines.push(format!("= evaluation of {decision} failed")),
            Answer::Refused(refusal) => lines.push(match &refusal.kind {
                Some(kind) => format!("= refused {kind}"),
                None => format!("= refused with status {:?}", refusal.code),
            }),
            Answer::Activated(jobs) => {
                lines.push(format!("= activated {}", jobs.len()));
                for job in jobs {
                    let name = self.tracker.jobs.iter().find(|known| known.key == job.key);
                    lines.push(format!(
                        "= job of {} type {} retries {} deadline {} headers {} variables {}",
                        name.map_or("?".to_owned(), |job| self.tracker.name(job.element)),
                        job.r#type,
                        job.retries,
                        moment(job.deadline - crate::START_MILLISECONDS),
                        self.tracker.with_resource_names(&trace::headers(
                            &serde_json::from_str(&job.custom_headers).unwrap_or_default()
                        )),
                        canonical_text(&job.variables)
                    ));
                }
            }
        }
    }

    fn request(&mut self, step: &Step) -> Result<Request, Unknown> {
        Ok(match step {
            Step::Deploy { files } => Request::Deploy(self.deployment(files)?),
            Step::Create { process, variables, options } => self.creation(process, variables, options),
            Step::Activate { job_type, count, timeout, fetch } => Request::Activate(ActivateJobsRequest {
                r#type: job_type.clone(),
                worker: "worker".to_owned(),
                timeout: *timeout,
                max_jobs_to_activate: *count,
                fetch_variable: fetch.clone(),
                request_timeout: -1,
                ..ActivateJobsRequest::default()
            }),
            Step::Complete { job, variables, result } => Request::Complete(CompleteJobRequest {
                job_key: self.job(job)?,
                variables: variables.clone(),
                result: result.as_deref().map(task_result).transpose()?,
            }),
            Step::Fail { job, retries, variables, backoff, message } => Request::Fail(FailJobRequest {
                job_key: self.job(job)?,
                retries: *retries,
                error_message: message.clone(),
                retry_back_off: *backoff,
                variables: variables.clone(),
            }),
            Step::Throw { job, code, variables } => Request::Throw(ThrowErrorRequest {
                job_key: self.job(job)?,
                error_code: code.clone(),
                error_message: String::new(),
                variables: variables.clone(),
            }),
            Step::Retries { job, retries } => Request::UpdateRetries(UpdateJobRetriesRequest {
                job_key: self.job(job)?,
                retries: *retries,
                ..UpdateJobRetriesRequest::default()
            }),
            Step::Timeout { job, timeout } => Request::UpdateTimeout(UpdateJobTimeoutRequest {
                job_key: self.job(job)?,
                timeout: *timeout,
                ..UpdateJobTimeoutRequest::default()
            }),
            Step::Set { scope, variables, local, later } => {
                let request = SetVariablesRequest {
                    element_instance_key: self.element(scope)?,
                    variables: variables.clone(),
                    local: *local,
                    ..SetVariablesRequest::default()
                };
                if *later { Request::SetVariablesLater(request) } else { Request::SetVariables(request) }
            }
            Step::Resolve { element } => Request::Resolve(ResolveIncidentRequest {
                incident_key: self.incident(element)?,
                ..ResolveIncidentRequest::default()
            }),
            Step::Cancel { instance } => Request::Cancel(CancelProcessInstanceRequest {
                process_instance_key: self.instance(instance)?,
                ..CancelProcessInstanceRequest::default()
            }),
            _ => return self.other_request(step),
        })
    }

    fn other_request(&mut self, step: &Step) -> Result<Request, Unknown> {
        Ok(match step {
            Step::UserTask { verb, task, attributes } => Request::UserTask(UserTaskRequest {
                verb: *verb,
                key: self.user_task(task)?,
                attributes: serde_json::from_str(attributes).map_err(|error| Unknown(error.to_string()))?,
            }),
            Step::Choose { ad_hoc, choice } => Request::Choose(ChoiceRequest {
                key: self.element(ad_hoc)?,
                elements: choice.elements.clone(),
                cancels: choice.cancels,
                is_fulfilled: false,
                variables: String::new(),
            }),
            Step::Decide { job, variables, is_fulfilled, choice } => Request::Decide(ChoiceRequest {
                key: self.job(job)?,
                elements: choice.elements.clone(),
                cancels: choice.cancels,
                is_fulfilled: *is_fulfilled,
                variables: variables.clone(),
            }),
            Step::Publish { name, key, time_to_live, variables, id } => Request::Publish(PublishMessageRequest {
                name: name.clone(),
                correlation_key: key.clone(),
                time_to_live: *time_to_live,
                message_id: id.clone(),
                variables: variables.clone(),
                ..PublishMessageRequest::default()
            }),
            Step::Broadcast { signal, variables } => Request::Broadcast(BroadcastSignalRequest {
                signal_name: signal.clone(),
                variables: variables.clone(),
                ..BroadcastSignalRequest::default()
            }),
            Step::Evaluate { decision, variables } => Request::Evaluate(EvaluateDecisionRequest {
                decision_id: decision.clone(),
                variables: variables.clone(),
                ..EvaluateDecisionRequest::default()
            }),
            Step::Modify { instance, changes } => Request::Modify(self.modification(instance, changes)?),
            Step::Migrate { instance, process, version, mappings } => {
                let mapping =
                    |(source, target): &(String, String)| migrate_process_instance_request::MappingInstruction {
                        source_element_id: source.clone(),
                        target_element_id: target.clone(),
                    };
                let plan = migrate_process_instance_request::MigrationPlan {
                    target_process_definition_key: self.definition(process, *version)?,
                    mapping_instructions: mappings.iter().map(mapping).collect(),
                };
                Request::Migrate(MigrateProcessInstanceRequest {
                    process_instance_key: self.instance(instance)?,
                    migration_plan: Some(plan),
                    ..MigrateProcessInstanceRequest::default()
                })
            }
            Step::Delete { process, version } => Request::Delete(DeleteResourceRequest {
                resource_key: self.definition(process, *version)?,
                ..DeleteResourceRequest::default()
            }),
            other => return Err(Unknown(other.to_string())),
        })
    }

    fn deployment(&self, files: &[String]) -> Result<DeployResourceRequest, Unknown> {
        let resource = |file: &String| {
            let (name, file) = file.split_once('=').unwrap_or((file, file));
            let content = self.files.read(file).map_err(|error| Unknown(error.to_string()))?;
            Ok(Resource { name: name.to_owned(), content: content.into() })
        };
        let resources = files.iter().map(resource).collect::<Result<_, Unknown>>()?;
        Ok(DeployResourceRequest { resources, ..DeployResourceRequest::default() })
    }

    fn creation(&mut self, process: &str, variables: &str, options: &CreateOptions) -> Request {
        use process_instance_creation_runtime_instruction::Instruction;
        self.tracker.expect_instance(process, options.name.clone(), options.result.is_some());
        let until = |element: &String| ProcessInstanceCreationRuntimeInstruction {
            instruction: Some(Instruction::Terminate(TerminateProcessInstanceInstruction {
                after_element_id: element.clone(),
            })),
        };
        let at = |element: &String| ProcessInstanceCreationStartInstruction { element_id: element.clone() };
        let request = CreateProcessInstanceRequest {
            bpmn_process_id: process.to_owned(),
            version: options.version,
            variables: variables.to_owned(),
            start_instructions: options.at.iter().map(at).collect(),
            runtime_instructions: options.until.iter().map(until).collect(),
            ..CreateProcessInstanceRequest::default()
        };
        match &options.result {
            None => Request::Create(request),
            Some(fetch_variables) => Request::CreateWithResult(CreateProcessInstanceWithResultRequest {
                request: Some(request),
                request_timeout: RESULT_MILLISECONDS,
                fetch_variables: fetch_variables.clone(),
            }),
        }
    }

    fn modification(&self, instance: &str, changes: &[Modification]) -> Result<ModifyProcessInstanceRequest, Unknown> {
        use modify_process_instance_request::*;
        let mut request = ModifyProcessInstanceRequest {
            process_instance_key: self.instance(instance)?,
            ..ModifyProcessInstanceRequest::default()
        };
        for change in changes {
            match change {
                Modification::Activate { element, ancestor, variables } => {
                    let ancestor = ancestor.as_ref().map(|name| self.element(name)).transpose()?;
                    let variable = |(variables, scope): &(String, String)| VariableInstruction {
                        variables: variables.clone(),
                        scope_id: scope.clone(),
                    };
                    request.activate_instructions.push(ActivateInstruction {
                        element_id: element.clone(),
                        ancestor_element_instance_key: ancestor.unwrap_or(-1),
                        variable_instructions: variables.iter().map(variable).collect(),
                    });
                }
                Modification::Terminate { element } => request.terminate_instructions.push(TerminateInstruction {
                    element_instance_key: self.element(element)?,
                    ..TerminateInstruction::default()
                }),
            }
        }
        Ok(request)
    }

    fn element(&self, name: &str) -> Result<i64, Unknown> {
        if name == "missing" {
            return Ok(MISSING_KEY);
        }
        let found = self.tracker.find_elements(name);
        found.first().map(|index| self.tracker.elements[*index].key).ok_or_else(|| Unknown(name.to_owned()))
    }

    /// The job of an element: the open one, else the newest.
    fn job(&self, name: &str) -> Result<i64, Unknown> {
        if name == "missing" {
            return Ok(MISSING_KEY);
        }
        let jobs = &self.tracker.jobs;
        let found = self.tracker.find_elements(name).into_iter();
        let mut jobs: Vec<_> =
            found.flat_map(|element| jobs.iter().rev().filter(move |job| job.element == element)).collect();
        jobs.sort_by_key(|job| !job.is_open());
        jobs.first().map(|job| job.key).ok_or_else(|| Unknown(format!("job of {name}")))
    }

    fn user_task(&self, name: &str) -> Result<i64, Unknown> {
        if name == "missing" {
            return Ok(MISSING_KEY);
        }
        let tasks = &self.tracker.user_tasks;
        let mut found = self.tracker.find_elements(name).into_iter();
        let task = found.find_map(|element| tasks.iter().rev().find(|(_, of)| *of == element));
        task.map(|(key, _)| *key).ok_or_else(|| Unknown(format!("user task of {name}")))
    }

    fn incident(&self, name: &str) -> Result<i64, Unknown> {
        if name == "missing" {
            return Ok(MISSING_KEY);
        }
        let incidents = &self.tracker.incidents;
        let found = self.tracker.find_elements(name).into_iter();
        let mut incidents: Vec<_> =
            found.flat_map(|element| incidents.iter().rev().filter(move |one| one.element == element)).collect();
        incidents.sort_by_key(|incident| !incident.is_open);
        incidents.first().map(|incident| incident.key).ok_or_else(|| Unknown(format!("incident of {name}")))
    }

    fn instance(&self, name: &str) -> Result<i64, Unknown> {
        if name == "missing" {
            return Ok(MISSING_KEY);
        }
        self.tracker.find_instance(name).map(|instance| instance.key).ok_or_else(|| Unknown(name.to_owned()))
    }

    fn definition(&self, process: &str, version: i32) -> Result<i64, Unknown> {
        if process == "missing" {
            return Ok(MISSING_KEY);
        }
        let fits = |definition: &&crate::tracker::Definition| {
            definition.id == process && (version < 0 || definition.version == i64::from(version))
        };
        let found = self.tracker.definitions.iter().rev().find(fits);
        found.map(|definition| definition.key).ok_or_else(|| Unknown(format!("{process} version {version}")))
    }
}
