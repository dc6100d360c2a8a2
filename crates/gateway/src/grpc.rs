//! The gRPC protocol: messages to requests, outcomes to messages and statuses.

mod answers;
mod deadline;
mod requests;
mod rpc;
mod service;
mod status;
mod topology;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use gateway_interface::gateway_server::GatewayServer;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::{Service as HttpService, StdError};
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::pb::health_server::{Health, HealthServer};

use crate::answers::Counted;
use crate::guard::Guard;
use crate::intake::{ArrivalError, Arriving, Intake};
use crate::listener::{Answer, Answering, Caller};
use crate::options::MESSAGE_BYTES_MAX;
use deadline::Deadline;
use rpc::Rpc;
pub(crate) use service::Service;
use status::status;

/// The services of the port, by their name in the path, as one connection sees them.
pub(crate) struct Services<H: Health> {
    gateway: GatewayServer<Service>,
    health: HealthServer<H>,
    intake: Intake,
    guard: Arc<Guard>,
}

impl<H: Health> Services<H> {
    pub(crate) fn new(service: Service, health: HealthServer<H>, intake: Intake, guard: Arc<Guard>) -> Self {
        Services {
            // Some clients compress every request. The limit on messages counts what they unpack to.
            gateway: GatewayServer::new(service)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .accept_compressed(CompressionEncoding::Gzip),
            health: health.accept_compressed(CompressionEncoding::Gzip),
            intake,
            guard,
        }
    }

    /// Hands a call to its service.
    fn call(&self, mut request: Request<Incoming>, caller: &Caller) -> Answering<Body> {
        let mut names = request.uri().path().trim_start_matches('/').split('/');
        let (service, procedure) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        if service == gateway_interface::SERVICE_NAME {
            let rpc = Rpc::of_name(procedure);
            let (starts, gate) = (rpc.is_some_and(Rpc::is_start), &caller.gate);
            let start = starts.then(|| gate.start());
            let arrival = gate.arrival(starts);
            let slot = rpc.and_then(Rpc::large_answer).is_some().then(|| caller.answers.slot());
            if let Some(slot) = &slot {
                request.extensions_mut().insert(slot.clone());
            }
            if rpc == Some(Rpc::StreamActivatedJobs) {
                request.extensions_mut().insert(caller.openings.clone());
            }
            let receive = |body| Message(self.intake.receive_message(body, arrival));
            let answer = self.gateway.clone().call(request.map(receive));
            return Box::pin(async move {
                let response = answer.await.map(name_size_limit);
                drop(start);
                match slot {
                    Some(slot) => response.map(|response| response.map(|body| Body::new(Counted::new(body, slot)))),
                    None => response,
                }
            });
        }
        if service == HealthServer::<H>::NAME {
            let arrival = caller.gate.arrival(false);
            let receive = |body| Message(self.intake.receive_message(body, arrival));
            return self.health.clone().call(request.map(receive));
        }
        let path = request.uri().path();
        let message = format!("There is no method '{path}' here, only those of {}.", gateway_interface::SERVICE_NAME);
        let response = status(Code::Unimplemented, message).into_http();
        Box::pin(async move { Ok(response) })
    }
}

impl<H: Health> Answer for Services<H> {
    type Body = Body;

    fn answer(&self, request: Request<Incoming>, caller: &Caller) -> Answering<Body> {
        let foreign = self.guard.check_page(request.method(), request.uri(), request.headers());
        let foreign = foreign.map_err(|refusal| status(Code::PermissionDenied, refusal.to_string()));
        match foreign.and_then(|()| Deadline::read(request.headers())) {
            Ok(None) => self.call(request, caller),
            Ok(Some(deadline)) => {
                let procedure = request.uri().path().rsplit('/').next().unwrap_or_default();
                let is_unary = Rpc::of_name(procedure).is_some_and(Rpc::is_unary);
                deadline.limit(self.call(request, caller), is_unary)
            }
            Err(refusal) => Box::pin(async move { Ok(refusal.into_http()) }),
        }
    }
}

/// A message on its way. What is wrong with that is a status.
struct Message(Arriving<Incoming>);

impl HttpBody for Message {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let error = |error| match error {
            // The name is that of the request in the sentence, which these have none of.
            ArrivalError::Refused(failure) => status::of("the request", &failure).into(),
            ArrivalError::Ended(error) => error,
        };
        Pin::new(&mut self.0).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// A request over the size limit is answered with the code that clients know for it.
fn name_size_limit(response: Response<Body>) -> Response<Body> {
    if !response.headers().contains_key(Status::GRPC_STATUS) {
        return response;
    }
    match Status::from_header_map(response.headers()) {
        Some(found) if found.code() == Code::OutOfRange => {
            let message = format!(
                "The request is larger than the limit of {MESSAGE_BYTES_MAX} bytes for one message. Send less at once, for example fewer or smaller variables or resources. ({})",
                found.message()
            );
            status(Code::ResourceExhausted, message).into_http()
        }
        _ => response,
    }
}
