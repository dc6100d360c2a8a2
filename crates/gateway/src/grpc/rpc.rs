//! The procedures of the service and what is measured about them.

use std::time::Instant;

use metrics::{Counter, Histogram, counter, histogram};
use tonic::{Code, Status};

use crate::answers::LargeAnswer;

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
    /// Whether it starts work, or computes for somebody. Those that also wait for the end of it do not count: that may take
    /// long, and may wait for something that comes on the same connection.
    pub(crate) fn is_start(self) -> bool {
        matches!(
            self,
            Rpc::CreateProcessInstance
                | Rpc::PublishMessage
                | Rpc::BroadcastSignal
                | Rpc::EvaluateConditional
                | Rpc::EvaluateDecision
        )
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
