//! What each operation does with its request.

use std::time::Instant;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::activation::Found;
use super::api::{Shared, Taken};
use super::consistency::Consistency;
use super::object::{Object, path_key};
use super::process_instance::Creation;
use super::response::ApiBody;
use super::routes::Existing;
use super::search::{Asked, Read};
use super::{
    activation, ad_hoc_sub_process, clock, cluster, conditional, consistency, decision, expression, global_listener,
    incident, job, message, modification, older_client, process_instance, resource, response, search, signal,
    user_task, variable,
};
use crate::activation::{Activation, ActivationContext};
use crate::answers::LargeAnswer;
use crate::listener::Caller;
use crate::options::SEARCH_WAIT_MAX;
use crate::outcome::{Failure, RecordPosition};
use crate::request::Request;
use crate::request::incident::ResolveIncident;
use crate::rest::no_answer::NoAnswer;

type Answered = Result<Response<ApiBody>, NoAnswer>;

impl Shared {
    pub(super) async fn operate(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        match taken.existing {
            Existing::GetTopology => {
                counted(LargeAnswer::Topology, cluster::topology(&self.executor.client.cluster()), caller)
            }
            Existing::GetStatus => Ok(cluster::status(&self.executor.client.cluster())),
            Existing::GetLicense => Ok(response::json(cluster::license())),
            Existing::GetAuthentication => Ok(response::json(cluster::authentication())),
            Existing::PinClock | Existing::ResetClock => self.change_clock(taken, caller).await,
            Existing::CreateDeployment => self.deploy(taken, caller).await,
            Existing::DeleteResource => self.delete_resource(taken, caller).await,
            Existing::GetResource | Existing::GetResourceContent | Existing::GetResourceContentBinary => {
                self.fetch(taken, caller).await
            }
            Existing::CompleteUserTask => self.change(taken, caller, user_task::completion).await,
            Existing::AssignUserTask => self.change(taken, caller, user_task::assignment).await,
            Existing::UnassignUserTask => self.change(taken, caller, user_task::unassignment).await,
            Existing::UpdateUserTask => self.change(taken, caller, user_task::update).await,
            Existing::CreateProcessInstance => self.create(taken, caller).await,
            Existing::CancelProcessInstance => self.change(taken, caller, process_instance::cancellation).await,
            Existing::ModifyProcessInstance => self.change(taken, caller, modification::modification).await,
            Existing::MigrateProcessInstance => self.change(taken, caller, modification::migration).await,
            Existing::SetVariables => self.change(taken, caller, variable::change).await,
            Existing::ActivateAdHocElements => self.change(taken, caller, ad_hoc_sub_process::activation).await,
            Existing::ActivateJobs => self.activate(taken, caller).await,
            Existing::CompleteJob => self.change(taken, caller, job::completion).await,
            Existing::FailJob => self.change(taken, caller, job::failure).await,
            Existing::ThrowJobError => self.change(taken, caller, job::error).await,
            Existing::UpdateJob => self.change(taken, caller, job::update).await,
            Existing::GetSystemConfiguration => Ok(response::json(cluster::configuration())),
            Existing::ResolveIncidentsOfInstance => self.resolve_incidents(taken, caller).await,
            Existing::ResolveIncident => self.change(taken, caller, incident::resolution).await,
            Existing::PublishMessage => {
                let (body, start) = self.receive(taken, caller).await?;
                let done = self.execute(message::publication(&body)?).await?;
                drop(start);
                Ok(consistency::reached(response::json(message::published(&done.value)), done.at))
            }
            Existing::CorrelateMessage => {
                let (body, start) = self.receive(taken, caller).await?;
                let done = self.execute(message::correlation(&body)?).await?;
                drop(start);
                Ok(consistency::reached(response::json(message::correlated(&done.value)), done.at))
            }
            Existing::BroadcastSignal => {
                let (body, start) = self.receive(taken, caller).await?;
                let done = self.execute(signal::broadcast(&body)?).await?;
                drop(start);
                Ok(consistency::reached(response::json(signal::broadcasted(&done.value)), done.at))
            }
            Existing::EvaluateConditionals => {
                let (body, start) = self.receive(taken, caller).await?;
                let done = self.execute(conditional::evaluation(&body)?).await?;
                drop(start);
                let (key, value) = done.value;
                Ok(consistency::reached(response::json(conditional::evaluated(key, &value)), done.at))
            }
            Existing::EvaluateDecision => self.evaluate(taken, caller).await,
            Existing::EvaluateExpression => self.evaluate_expression(taken, caller).await,
            Existing::CreateGlobalTaskListener
            | Existing::UpdateGlobalTaskListener
            | Existing::DeleteGlobalTaskListener => self.change_global_listener(taken, caller).await,
            Existing::Read(read) => self.read(read, taken, caller).await,
        }
    }

    async fn delete_resource(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let key = taken.parameters.first();
        let wants_nothing = older_client::expects_no_content(taken.headers);
        let (body, _) = self.receive(taken, caller).await?;
        let done = self.execute(resource::deletion(key, &body)?).await?;
        let answer = match wants_nothing {
            true => response::empty(StatusCode::OK),
            false => response::json(resource::deleted(done.value)),
        };
        Ok(consistency::reached(answer, done.at))
    }

    /// Has something done to what the key in the path names. There is nothing to tell when it is done.
    async fn change<R: Request>(
        &self,
        taken: Taken<'_>,
        caller: &Caller,
        read: impl FnOnce(&str, &[u8]) -> Result<R, NoAnswer>,
    ) -> Answered {
        debug_assert_eq!(taken.existing.is_start(), R::STARTS_WORK, "{:?} makes another request", taken.existing);
        let key = taken.parameters.first();
        let (body, _) = self.receive(taken, caller).await?;
        let done = self.execute(read(key, &body)?).await?;
        Ok(consistency::reached(response::empty(StatusCode::NO_CONTENT), done.at))
    }

    /// Reads once everything can be found that clients of this gateway know to have happened.
    async fn read(&self, read: Read, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (parameter, query) = (taken.parameters.first(), taken.query);
        let mut wanted = consistency::wanted(taken.headers, self.executor.client.partition_count())?;
        consistency::check_given(&wanted, |partition| self.executor.client.last_position(partition))?;
        let consistency = consistency::of_request(taken.headers);
        let (body, _) = self.receive(taken, caller).await?;
        if consistency != Consistency::Eventual {
            wanted.extend(self.executor.acknowledged.positions());
        }
        let is_fresh = match consistency {
            Consistency::Strict => self.wait_for_leaders(wanted).await?,
            Consistency::Usual | Consistency::Eventual => self.searcher.wait_until_folded(&wanted).await,
        };
        let mut response = match self.searcher.read(read, Asked { parameter, query, body: &body }).await? {
            search::Answered::Json(text) => counted(LargeAnswer::Search, text, caller)?,
            search::Answered::Xml(text) => {
                let mut response = counted(LargeAnswer::Search, text, caller)?;
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/xml"));
                response
            }
            search::Answered::Nothing => response::empty(StatusCode::NO_CONTENT),
        };
        if !is_fresh {
            // It took too long to wait for what was acknowledged before.
            consistency::eventual(&mut response);
        }
        Ok(response)
    }

    /// Waits until everything can be found that all leaders have at this moment.
    async fn wait_for_leaders(&self, mut wanted: Vec<RecordPosition>) -> Result<bool, NoAnswer> {
        let (begin, wait_max) = (Instant::now(), self.searcher.wait_max());
        let Some(leaders) = consistency::leaders(&self.executor.client, wait_max).await else {
            return Err(consistency::not_strict(wait_max, false).into());
        };
        wanted.extend(leaders);
        let left = wait_max.saturating_sub(begin.elapsed());
        match self.searcher.wait_until_folded_within(left, &wanted).await {
            true => Ok(true),
            false => Err(consistency::not_strict(wait_max, true).into()),
        }
    }

    /// Resolves all incidents of a process instance and of those that it called.
    async fn resolve_incidents(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let key = path_key("processInstanceKey", taken.parameters.first())?;
        let (body, _) = self.receive(taken, caller).await?;
        Object::read(&body)?.finish()?;
        // However soon searches are to be answered: an incident that was just acknowledged is meant too.
        let acknowledged = self.executor.acknowledged.positions();
        self.searcher.wait_until_folded_within(SEARCH_WAIT_MAX, &acknowledged).await;
        // Those that there are now, all of them on the partition of the instance: what is resolved without a change of its cause becomes an incident again, with a new key.
        let up_to = self.searcher.newest_incident(key).await?.unwrap_or_default();
        let (mut behind, mut newest) = (0, None);
        loop {
            let incidents = self.searcher.active_incidents(key, behind, up_to).await?;
            let Some(last) = incidents.last() else { break };
            behind = last.incident_key;
            // All of a page are on their way at once.
            let mut pending = Vec::new();
            for of in &incidents {
                if let Some(request) = of.another_try() {
                    pending.push(Ok(self.executor.submit(request)?));
                }
                let request = ResolveIncident {
                    incident_key: of.incident_key,
                    batch_operation: Some(key),
                    ..ResolveIncident::default()
                };
                pending.push(Err(self.executor.submit(request)?));
            }
            for pending in pending {
                let outcome = match pending {
                    Ok(update) => update.outcome().await.map(|done| done.at),
                    Err(resolution) => resolution.outcome().await.map(|done| done.at),
                };
                let at = match outcome {
                    Ok(at) => at,
                    // What was resolved or ended in the meantime needs nothing.
                    Err(Failure::Rejected(refusal)) => refusal.at,
                    Err(failure) => return Err(failure.into()),
                };
                newest = at.into_iter().chain(newest).max_by_key(|at| at.position);
            }
        }
        Ok(consistency::reached(response::json(incident::resolved_of(key)), newest))
    }

    async fn create(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (body, start) = self.receive(taken, caller).await?;
        match process_instance::creation(&body)? {
            Creation::Started(request) => {
                let done = self.execute(request).await?;
                drop(start);
                Ok(consistency::reached(response::json(process_instance::created(&done.value)), done.at))
            }
            Creation::Awaited(request) => {
                drop((body, start));
                let done = self.execute(request).await?;
                let answer = counted(LargeAnswer::ProcessInstanceResult, process_instance::ended(&done.value), caller)?;
                Ok(consistency::reached(answer, done.at))
            }
        }
    }

    async fn deploy(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let headers = taken.headers;
        let (body, _) = self.receive(taken, caller).await?;
        let request = resource::deployment(headers, body).await?;
        let done = self.execute(request).await?;
        let (key, value) = &done.value;
        let answer = counted(LargeAnswer::Deployment, resource::deployed(*key, value), caller)?;
        Ok(consistency::reached(answer, done.at))
    }

    async fn fetch(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (key, existing) = (taken.parameters.first(), taken.existing);
        self.receive(taken, caller).await?;
        let resource = self.execute(resource::fetch(key)?).await?.value;
        if existing == Existing::GetResource {
            return Ok(response::json(resource::fetched(&resource.metadata)));
        }
        let mut answer = counted(LargeAnswer::Search, resource.resource_prop.as_bytes().to_vec(), caller)?;
        if existing == Existing::GetResourceContentBinary {
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        }
        Ok(answer)
    }

    async fn activate(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (body, _) = self.receive(taken, caller).await?;
        let workers = &self.workers;
        let request = job::activation(&body)?.check(workers.long_polling_timeout)?;
        // It may wait for long.
        drop(body);
        let slot = caller.answers.slot();
        let context = ActivationContext {
            executor: self.executor.clone(),
            polling: workers.polling.clone(),
            shutdown: workers.stopping.clone(),
            slot: slot.clone(),
        };
        Ok(match activation::first(Activation::new(context, request)).await? {
            Found::Nothing(text) => response::json(text.to_vec()),
            Found::Jobs(jobs) => response::jobs(jobs, slot),
        })
    }

    async fn evaluate(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (body, _) = self.receive(taken, caller).await?;
        let request = decision::evaluation(&body)?;
        // Nothing is evaluated as long as there is no room for what it gives.
        let slot = caller.answers.slot();
        let mut reserved = slot.reserve(LargeAnswer::DecisionEvaluation, self.executor.request_timeout).await?;
        let done = self.execute(request).await?;
        let (key, value) = &done.value;
        let text = decision::evaluated(*key, value);
        reserved.settle(text.len())?;
        slot.put(reserved);
        Ok(consistency::reached(response::counted_json(text, slot), done.at))
    }

    async fn evaluate_expression(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (body, _) = self.receive(taken, caller).await?;
        let request = expression::evaluation(&body)?;
        let slot = caller.answers.slot();
        let mut reserved = slot.reserve(LargeAnswer::DecisionEvaluation, self.executor.request_timeout).await?;
        let done = self.execute(request).await?;
        let text = expression::evaluated(&done.value);
        reserved.settle(text.len())?;
        slot.put(reserved);
        Ok(consistency::reached(response::counted_json(text, slot), done.at))
    }

    async fn change_global_listener(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (existing, id) = (taken.existing, taken.parameters.first());
        let (body, _) = self.receive(taken, caller).await?;
        let (request, status) = match existing {
            Existing::CreateGlobalTaskListener => (global_listener::creation(&body)?, StatusCode::CREATED),
            Existing::UpdateGlobalTaskListener => (global_listener::update(id, &body)?, StatusCode::OK),
            _ => (global_listener::deletion(id, &body)?, StatusCode::NO_CONTENT),
        };
        let done = self.execute(request).await?;
        let mut answer = match status {
            StatusCode::NO_CONTENT => response::empty(status),
            _ => response::json(global_listener::rendered(&done.value)),
        };
        *answer.status_mut() = status;
        Ok(consistency::reached(answer, done.at))
    }

    async fn change_clock(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let is_pin = taken.existing == Existing::PinClock;
        let (body, _) = self.receive(taken, caller).await?;
        let pinned = is_pin.then(|| clock::pin(&body)).transpose()?;
        clock::change(&self.clock, pinned)?;
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}

/// An answer that may be large has its place among those that were not read.
fn counted(kind: LargeAnswer, text: Vec<u8>, caller: &Caller) -> Answered {
    let slot = caller.answers.slot();
    slot.put(slot.take(kind, text.len())?);
    Ok(response::counted_json(text, slot))
}
