//! The API: takes requests off their connections, and answers them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::Clock;
use http_body::Body;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderMap};
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::sync::watch;

use super::metrics::ApiMetrics;
use super::no_answer::NoAnswer;
use super::problem::Problem;
use super::reception::Kind;
use super::response::ApiBody;
use super::routes::{Existing, Found, Parameters, Route, Routes};
use super::search::Searcher;
use super::{compression, consistency, openapi, reception, response, swagger};
use crate::executor::Executor;
use crate::guard::{self, Guard};
use crate::intake::Intake;
use crate::listener::{Answer, Answering, Caller};
use crate::long_polling::LongPolling;
use crate::outcome::{Failure, Outcome};
use crate::request::{
    Request as _, ad_hoc_sub_process, conditional, creation, decision, expression, global_listener, incident, job,
    message, process_instance, resource, signal, user_task, variable,
};
use crate::starts::Start;

/// Answers requests by handing them to the executor.
pub(crate) struct Api(Arc<Shared>);

/// What the requests of a connection share. Nearly all of it is the same for all connections.
#[derive(Clone)]
pub(super) struct Shared {
    pub executor: Executor,
    pub workers: Workers,
    pub clock: Arc<Clock>,
    intake: Intake,
    guard: Arc<Guard>,
    routes: Arc<Routes>,
    pub searcher: Searcher,
    metrics: Arc<ApiMetrics>,
}

/// What requests for jobs need.
#[derive(Clone)]
pub(crate) struct Workers {
    pub polling: Arc<LongPolling>,
    /// How long they wait that do not say.
    pub long_polling_timeout: Duration,
    /// Says when the server stops.
    pub stopping: watch::Receiver<bool>,
}

impl Existing {
    /// Whether its request starts work. A creation that turns out to wait for the end does not count any longer then.
    pub(super) fn is_start(self) -> bool {
        match self {
            Existing::CreateDeployment => resource::DeployResources::STARTS_WORK,
            Existing::DeleteResource => resource::DeleteResource::STARTS_WORK,
            Existing::GetResource | Existing::GetResourceContent | Existing::GetResourceContentBinary => {
                resource::FetchResource::STARTS_WORK
            }
            Existing::CreateProcessInstance => creation::CreateProcessInstance::STARTS_WORK,
            Existing::CancelProcessInstance => process_instance::CancelProcessInstance::STARTS_WORK,
            Existing::ModifyProcessInstance => process_instance::ModifyProcessInstance::STARTS_WORK,
            Existing::MigrateProcessInstance => process_instance::MigrateProcessInstance::STARTS_WORK,
            Existing::SetVariables => variable::SetVariables::STARTS_WORK,
            Existing::ActivateAdHocElements => ad_hoc_sub_process::ActivateElements::STARTS_WORK,
            Existing::CompleteJob => job::CompleteJob::STARTS_WORK,
            Existing::FailJob => job::FailJob::STARTS_WORK,
            Existing::ThrowJobError => job::ThrowError::STARTS_WORK,
            Existing::UpdateJob => job::UpdateJob::STARTS_WORK,
            Existing::ResolveIncident | Existing::ResolveIncidentsOfInstance => incident::ResolveIncident::STARTS_WORK,
            Existing::PublishMessage => message::PublishMessage::STARTS_WORK,
            Existing::CorrelateMessage => message::CorrelateMessage::STARTS_WORK,
            Existing::BroadcastSignal => signal::BroadcastSignal::STARTS_WORK,
            Existing::EvaluateDecision => decision::EvaluateDecision::STARTS_WORK,
            Existing::EvaluateConditionals => conditional::EvaluateConditional::STARTS_WORK,
            Existing::EvaluateExpression => expression::EvaluateExpression::STARTS_WORK,
            Existing::CompleteUserTask => user_task::CompleteTask::STARTS_WORK,
            Existing::AssignUserTask | Existing::UnassignUserTask => user_task::AssignTask::STARTS_WORK,
            Existing::UpdateUserTask => user_task::UpdateTask::STARTS_WORK,
            Existing::CreateGlobalTaskListener
            | Existing::UpdateGlobalTaskListener
            | Existing::DeleteGlobalTaskListener => global_listener::ChangeGlobalListener::STARTS_WORK,
            // Jobs that are there already, what the gateway knows itself, and what is read or changed beside the partitions.
            Existing::ActivateJobs
            | Existing::GetTopology
            | Existing::GetStatus
            | Existing::GetLicense
            | Existing::GetAuthentication
            | Existing::GetSystemConfiguration
            | Existing::PinClock
            | Existing::ResetClock
            | Existing::Read(_) => false,
        }
    }

    fn body_kind(self) -> Kind {
        match self {
            Existing::CreateDeployment => Kind::Form,
            _ => Kind::Json,
        }
    }
}

impl Api {
    pub(crate) fn new(
        executor: Executor,
        intake: Intake,
        workers: Workers,
        clock: Arc<Clock>,
        searcher: Searcher,
        guard: Arc<Guard>,
    ) -> Api {
        let (routes, metrics) = (Arc::new(Routes::new()), Arc::new(ApiMetrics::new()));
        Api(Arc::new(Shared { executor, workers, clock, searcher, intake, guard, routes, metrics }))
    }

    /// For one more connection.
    pub(crate) fn of_connection(&self) -> Api {
        let (executor, searcher) = (self.0.executor.of_new_sender(), self.0.searcher.of_new_sender());
        Api(Arc::new(Shared { executor, searcher, ..Shared::clone(&self.0) }))
    }
}

impl Answer for Api {
    type Body = ApiBody;

    fn answer(&self, request: Request<Incoming>, caller: &Caller) -> Answering<ApiBody> {
        let (api, caller, begin) = (self.0.clone(), caller.clone(), Instant::now());
        // Over HTTP/2 the connection is not read further while too much of it is unanswered, so it must count now.
        let counts_now = request.version() == Version::HTTP_2
            && api.route(&request).and_then(|(route, _)| route.existing).is_some_and(Existing::is_start);
        let start = counts_now.then(|| caller.gate.start());
        Box::pin(async move { Ok(api.respond(request, &caller, start, begin).await) })
    }
}

impl Shared {
    fn route<'r>(&self, request: &'r Request<Incoming>) -> Option<(&Route, Parameters<'r>)> {
        match self.routes.find(method(request.method()), request.uri().path()) {
            Found::Operation(route, parameters) => Some((route, parameters)),
            _ => None,
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        caller: &Caller,
        start: Option<Start>,
        begin: Instant,
    ) -> Response<ApiBody> {
        let (parts, body) = request.into_parts();
        let mut body = Some(body);
        let path = parts.uri.path();
        let foreign = self.guard.check(&parts.method, &parts.uri, &parts.headers).err();
        let (route, answered) = match (foreign, self.routes.find(method(&parts.method), path)) {
            (Some(refusal), _) => (None, Err(Problem::new(refusal.status(), refusal.to_string()))),
            (None, Found::Operation(route, parameters)) => {
                let (headers, version) = (&parts.headers, parts.version);
                let answered = match route.existing {
                    _ if version == Version::HTTP_11 && !headers.contains_key(HOST) => Err(no_host().into()),
                    Some(existing) => {
                        let query = parts.uri.query().unwrap_or_default();
                        let body = &mut body;
                        self.operate(Taken { existing, headers, version, parameters, query, body, start }, caller).await
                    }
                    None => Err(not_yet(route).into()),
                };
                let answered = answered.map_err(|no_answer| match no_answer {
                    NoAnswer::Problem(problem) => problem,
                    NoAnswer::Failure(failure) => Problem::of(route.operation.name, &failure),
                });
                (Some(route), answered)
            }
            (None, Found::OtherMethods(methods)) => (None, other_methods(&parts.method, path, &methods)),
            (None, Found::Nothing) => {
                let is_get = method(&parts.method) == Method::GET.as_str();
                let found = is_get.then(|| described(path, &parts.headers)).flatten();
                (None, found.ok_or_else(|| nothing(&parts.method, path)))
            }
        };
        if let Some(unread) = body.filter(|body| reception::is_under_way(&parts.headers, parts.version, body)) {
            reception::discard(self.intake.receive(unread, caller.gate.arrival(false))).await;
        }
        let response =
            answered.unwrap_or_else(|problem| consistency::reached(response::problem(&problem, path), problem.at));
        let mut response = compression::compress(&parts.headers, response).await;
        guard::protect(response.headers_mut());
        self.metrics.record(route, begin, response.status());
        if parts.method == Method::HEAD { response::without_body(response) } else { response }
    }

    /// Waits for the body of a request, and for its turn if it starts work.
    pub(super) async fn receive(&self, taken: Taken<'_>, caller: &Caller) -> Result<(Bytes, Option<Start>), NoAnswer> {
        let has_body = taken.body.as_ref().is_some_and(|body| !body.is_end_stream());
        let kind = taken.existing.body_kind();
        reception::check(taken.headers, kind, has_body)?;
        let is_start = taken.existing.is_start();
        let start = match taken.start {
            None if is_start => Some(self.turn(taken.version, caller).await?),
            start => start,
        };
        let arrival = caller.gate.arrival(is_start);
        // Nobody else takes it.
        let Some(body) = taken.body.take() else { return Ok((Bytes::new(), start)) };
        let body = reception::read(self.intake.receive(body, arrival)).await?;
        Ok((reception::without_byte_order_mark(kind, body), start))
    }

    /// Over HTTP/1.1 a connection has one request at a time, and a client has many connections.
    async fn turn(&self, version: Version, caller: &Caller) -> Result<Start, Failure> {
        if version == Version::HTTP_2 {
            return Ok(caller.gate.start());
        }
        let turn = tokio::time::timeout(self.executor.request_timeout, caller.gate.turn()).await;
        turn.map_err(|_| {
            Failure::Exhausted(format!(
                "Clients want to start more than this gateway can let in, and this request has waited for {} ms. Please try again after a growing pause.",
                self.executor.request_timeout.as_millis()
            ))
        })
    }

    /// What a request came to, and where its records end.
    pub(super) async fn execute<R: crate::request::Request>(&self, request: R) -> Outcome<R::Answer> {
        self.executor.submit(request)?.outcome().await
    }
}

/// A request whose body was not read.
pub(super) struct Taken<'a> {
    pub existing: Existing,
    pub headers: &'a HeaderMap,
    version: Version,
    pub parameters: Parameters<'a>,
    pub query: &'a str,
    /// What is left here is discarded.
    body: &'a mut Option<Incoming>,
    /// Its place among what is to be started, if it has one already.
    start: Option<Start>,
}

/// What describes the API, at paths beside its own.
fn described(path: &str, headers: &HeaderMap) -> Option<Response<ApiBody>> {
    match path {
        openapi::PATH => Some(response::json_of(openapi::text())),
        _ => swagger::file(path, headers),
    }
}

/// Who asks for the head of an answer asks for the answer.
fn method(method: &Method) -> &str {
    if method == Method::HEAD { Method::GET.as_str() } else { method.as_str() }
}

fn not_yet(route: &Route) -> Problem {
    let operation = route.operation;
    let detail = format!(
        "{} ({} {}) is not supported by this version of Osmia yet.",
        operation.name, operation.method, operation.path
    );
    Problem { title: "UNIMPLEMENTED".into(), ..Problem::new(StatusCode::NOT_IMPLEMENTED, detail) }
}

/// As HTTP/1.1 wants it. A proxy that sent a request on without its host may have sent others to a wrong place.
fn no_host() -> Problem {
    Problem::bad_request("The request has no Host header, which HTTP/1.1 requires.")
}

fn other_methods(method: &Method, path: &str, methods: &[&'static str]) -> Result<Response<ApiBody>, Problem> {
    let mut allowed = methods.to_vec();
    if methods.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.push("OPTIONS");
    allowed.sort_unstable();
    allowed.dedup();
    let allowed = allowed.join(", ");
    if method == Method::OPTIONS {
        return Ok(response::options(&allowed));
    }
    let detail = format!("There is no {method} of '{path}'. There is {allowed}.");
    Err(Problem { allow: Some(allowed), ..Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail) })
}

fn nothing(method: &Method, path: &str) -> Problem {
    let detail = format!("There is no operation {method} {path} here. The operations of the API begin with /v2/.");
    Problem::new(StatusCode::NOT_FOUND, detail)
}
