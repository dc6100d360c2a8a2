//! What each operation does with its request.

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::activation::Found;
use super::api::{NoAnswer, Shared, Taken};
use super::process_instance::Creation;
use super::response::ApiBody;
use super::routes::Existing;
use super::search::{Asked, Read};
use super::{
    activation, clock, cluster, decision, incident, job, message, modification, process_instance, resource, response,
    search, variable,
};
use crate::activation::{Activation, ActivationContext};
use crate::answers::LargeAnswer;
use crate::listener::Caller;
use crate::request::Request;

/// With the value `eventual`: of a request, that it is not to wait for anything; of an answer, that it did not wait any longer.
const CONSISTENCY: HeaderName = HeaderName::from_static("osmia-consistency");

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
            Existing::DeleteResource => {
                let key = taken.parameters.first();
                let (body, _) = self.receive(taken, caller).await?;
                let resource_key = self.execute(resource::deletion(key, &body)?).await?;
                Ok(response::json(resource::deleted(resource_key)))
            }
            Existing::CreateProcessInstance => self.create(taken, caller).await,
            Existing::CancelProcessInstance => self.change(taken, caller, process_instance::cancellation).await,
            Existing::ModifyProcessInstance => self.change(taken, caller, modification::modification).await,
            Existing::MigrateProcessInstance => self.change(taken, caller, modification::migration).await,
            Existing::SetVariables => self.change(taken, caller, variable::change).await,
            Existing::ActivateJobs => self.activate(taken, caller).await,
            Existing::CompleteJob => self.change(taken, caller, job::completion).await,
            Existing::FailJob => self.change(taken, caller, job::failure).await,
            Existing::ThrowJobError => self.change(taken, caller, job::error).await,
            Existing::UpdateJob => self.change(taken, caller, job::update).await,
            Existing::ResolveIncident => self.change(taken, caller, incident::resolution).await,
            Existing::PublishMessage => {
                let (body, start) = self.receive(taken, caller).await?;
                let message = self.execute(message::publication(&body)?).await?;
                drop(start);
                Ok(response::json(message::published(&message)))
            }
            Existing::EvaluateDecision => self.evaluate(taken, caller).await,
            Existing::Read(read) => self.read(read, taken, caller).await,
        }
    }

    /// Has something done to what the key in the path names. There is nothing to tell when it is done.
    async fn change<R: Request>(
        &self,
        taken: Taken<'_>,
        caller: &Caller,
        read: impl FnOnce(&str, &[u8]) -> Result<R, NoAnswer>,
    ) -> Answered {
        let key = taken.parameters.first();
        let (body, _) = self.receive(taken, caller).await?;
        self.execute(read(key, &body)?).await?;
        Ok(response::empty(StatusCode::NO_CONTENT))
    }

    /// Reads once everything can be found that clients of this gateway know to have happened.
    async fn read(&self, read: Read, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (parameter, query) = (taken.parameters.first(), taken.query);
        let is_relaxed = taken.headers.get(CONSISTENCY).is_some_and(|given| given.as_bytes() == b"eventual");
        let (body, _) = self.receive(taken, caller).await?;
        let is_fresh = is_relaxed || self.searcher.wait_until_folded(&self.executor.acknowledged.positions()).await;
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
            response.headers_mut().insert(CONSISTENCY, HeaderValue::from_static("eventual"));
        }
        Ok(response)
    }

    async fn create(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let (body, start) = self.receive(taken, caller).await?;
        match process_instance::creation(&body)? {
            Creation::Started(request) => {
                let value = self.execute(request).await?;
                drop(start);
                Ok(response::json(process_instance::created(&value)))
            }
            Creation::Awaited(request) => {
                drop((body, start));
                let value = self.execute(request).await?;
                counted(LargeAnswer::ProcessInstanceResult, process_instance::ended(&value), caller)
            }
        }
    }

    async fn deploy(&self, taken: Taken<'_>, caller: &Caller) -> Answered {
        let headers = taken.headers;
        let (body, _) = self.receive(taken, caller).await?;
        let request = resource::deployment(headers, body).await?;
        let (key, value) = self.execute(request).await?;
        counted(LargeAnswer::Deployment, resource::deployed(key, &value), caller)
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
        let (key, value) = self.execute(request).await?;
        let text = decision::evaluated(key, &value);
        reserved.settle(text.len())?;
        slot.put(reserved);
        Ok(response::counted_json(text, slot))
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
