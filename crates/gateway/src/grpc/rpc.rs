//! The procedures of the service and what is measured about them.

use std::time::Instant;

use metrics::{Counter, Histogram, counter, histogram};
use tonic::{Code, Status};

use crate::answers::LargeAnswer;
use crate::request::{
    Request, conditional, creation, decision, incident, job, message, process_instance, resource, signal, variable,
};

macro_rules! procedures {
    ($($name:ident $kind:literal),* $(,)?) => {
        /// A procedure of the gateway service.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Rpc { $($name),* }

        impl Rpc {
            const ALL: &[Rpc] = &[$(Rpc::$name),*];

            /// The name on the wire.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Rpc::$name => stringify!($name)),* }
            }

            /// The procedure of this name.
            pub(crate) fn of_name(name: &str) -> Option<Rpc> {
                match name {
                    $(stringify!($name) => Some(Rpc::$name),)*
                    _ => None,
                }
            }

            const fn kind(self) -> &'static str {
                match self { $(Rpc::$name => $kind),* }
            }
        }
    };
}

procedures! {
    ActivateJobs "SERVER_STREAMING", StreamActivatedJobs "SERVER_STREAMING", CompleteJob "UNARY", FailJob "UNARY",
    ThrowError "UNARY", UpdateJobRetries "UNARY", UpdateJobTimeout "UNARY", CreateProcessInstance "UNARY",
    CreateProcessInstanceWithResult "UNARY", CancelProcessInstance "UNARY", ModifyProcessInstance "UNARY",
    MigrateProcessInstance "UNARY", SetVariables "UNARY", ResolveIncident "UNARY", DeployResource "UNARY",
    DeployProcess "UNARY", DeleteResource "UNARY", PublishMessage "UNARY", BroadcastSignal "UNARY",
    EvaluateDecision "UNARY", EvaluateConditional "UNARY", Topology "UNARY",
}

impl Rpc {
    /// Whether its request starts work.
    pub(crate) fn is_start(self) -> bool {
        match self {
            Rpc::CompleteJob => job::CompleteJob::STARTS_WORK,
            Rpc::FailJob => job::FailJob::STARTS_WORK,
            Rpc::ThrowError => job::ThrowError::STARTS_WORK,
            Rpc::UpdateJobRetries => job::UpdateJobRetries::STARTS_WORK,
            Rpc::UpdateJobTimeout => job::UpdateJobTimeout::STARTS_WORK,
            Rpc::CreateProcessInstance => creation::CreateProcessInstance::STARTS_WORK,
            Rpc::CreateProcessInstanceWithResult => creation::CreateProcessInstanceWithResult::STARTS_WORK,
            Rpc::CancelProcessInstance => process_instance::CancelProcessInstance::STARTS_WORK,
            Rpc::ModifyProcessInstance => process_instance::ModifyProcessInstance::STARTS_WORK,
            Rpc::MigrateProcessInstance => process_instance::MigrateProcessInstance::STARTS_WORK,
            Rpc::SetVariables => variable::SetVariables::STARTS_WORK,
            Rpc::ResolveIncident => incident::ResolveIncident::STARTS_WORK,
            Rpc::DeployResource | Rpc::DeployProcess => resource::DeployResources::STARTS_WORK,
            Rpc::DeleteResource => resource::DeleteResource::STARTS_WORK,
            Rpc::PublishMessage => message::PublishMessage::STARTS_WORK,
            Rpc::BroadcastSignal => signal::BroadcastSignal::STARTS_WORK,
            Rpc::EvaluateDecision => decision::EvaluateDecision::STARTS_WORK,
            Rpc::EvaluateConditional => conditional::EvaluateConditional::STARTS_WORK,
            // Jobs that are there already, and what the gateway knows itself.
            Rpc::ActivateJobs | Rpc::StreamActivatedJobs | Rpc::Topology => false,
        }
    }

    /// Whether its answer is one message.
    pub(crate) fn is_unary(self) -> bool {
        self.kind() == "UNARY"
    }

    /// What its answers are, if they may be large. Jobs of streams have their credit instead.
    pub(crate) fn large_answer(self) -> Option<LargeAnswer> {
        match self {
            Rpc::ActivateJobs => Some(LargeAnswer::Jobs),
            Rpc::CreateProcessInstanceWithResult => Some(LargeAnswer::ProcessInstanceResult),
            Rpc::DeployResource | Rpc::DeployProcess => Some(LargeAnswer::Deployment),
            Rpc::EvaluateDecision => Some(LargeAnswer::DecisionEvaluation),
            Rpc::Topology => Some(LargeAnswer::Topology),
            _ => None,
        }
    }
}

/// Counters and times of every procedure. The ones for success are looked up once.
pub(crate) struct RpcMetrics {
    procedures: Vec<Measured>,
}

struct Measured {
    requests: Counter,
    latency: Histogram,
    succeeded: Histogram,
}

impl RpcMetrics {
    pub(crate) fn new() -> Self {
        let measured = |rpc: &Rpc| Measured {
            requests: counter!("zeebe_gateway_total_requests_total", "requestType" => rpc.name()),
            latency: histogram!("zeebe_gateway_request_latency_seconds", "requestType" => rpc.name()),
            succeeded: duration(*rpc, Code::Ok),
        };
        RpcMetrics { procedures: Rpc::ALL.iter().map(measured).collect() }
    }

    /// A request is over.
    pub(crate) fn record<T>(&self, rpc: Rpc, start: Instant, outcome: &Result<T, Status>) {
        let seconds = start.elapsed().as_secs_f64();
        let measured = &self.procedures[rpc as usize];
        measured.requests.increment(1);
        measured.latency.record(seconds);
        match outcome {
            Ok(_) => measured.succeeded.record(seconds),
            Err(status) => {
                let (code, reason) = (status.code(), status.message());
                tracing::debug!(request = rpc.name(), ?code, reason, "a request failed");
                duration(rpc, status.code()).record(seconds);
                let error = gateway_interface::code_name(status.code());
                counter!("zeebe_gateway_failed_requests_total", "requestType" => rpc.name(), "error" => error)
                    .increment(1);
            }
        }
    }
}

fn duration(rpc: Rpc, code: Code) -> Histogram {
    histogram!(
        "grpc_server_processing_duration_seconds",
        "service" => gateway_interface::SERVICE_NAME,
        "method" => rpc.name(),
        "methodType" => rpc.kind(),
        "statusCode" => gateway_interface::code_name(code)
    )
}
