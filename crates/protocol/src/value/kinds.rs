//! Kinds that several values name.

use minicbor::{Decode, Encode};
use serde::Serialize;

/// The type of an element, as the record stream names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are the record schema's own")]
pub enum BpmnElementType {
    #[n(0)]
    #[default]
    Unspecified,
    #[n(1)]
    Process,
    #[n(2)]
    SubProcess,
    #[n(3)]
    EventSubProcess,
    #[n(4)]
    StartEvent,
    #[n(5)]
    IntermediateCatchEvent,
    #[n(6)]
    IntermediateThrowEvent,
    #[n(7)]
    BoundaryEvent,
    #[n(8)]
    EndEvent,
    #[n(9)]
    ServiceTask,
    #[n(10)]
    ReceiveTask,
    #[n(11)]
    UserTask,
    #[n(12)]
    ManualTask,
    #[n(13)]
    Task,
    #[n(14)]
    ExclusiveGateway,
    #[n(15)]
    ParallelGateway,
    #[n(16)]
    EventBasedGateway,
    #[n(17)]
    InclusiveGateway,
    #[n(18)]
    SequenceFlow,
    #[n(19)]
    MultiInstanceBody,
    #[n(20)]
    CallActivity,
    #[n(21)]
    BusinessRuleTask,
    #[n(22)]
    ScriptTask,
    #[n(23)]
    SendTask,
    #[n(24)]
    AdHocSubProcess,
    #[n(25)]
    AdHocSubProcessInnerInstance,
}

/// The kind of an event, as the record stream names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are the record schema's own")]
pub enum BpmnEventType {
    /// Not an event.
    #[n(0)]
    #[default]
    Unspecified,
    #[n(1)]
    Conditional,
    #[n(2)]
    Error,
    #[n(3)]
    Escalation,
    #[n(4)]
    Link,
    #[n(5)]
    Message,
    #[n(6)]
    Signal,
    #[n(7)]
    Terminate,
    #[n(8)]
    Timer,
    #[n(9)]
    Compensation,
    /// An event without a definition.
    #[n(10)]
    None,
}

impl BpmnEventType {
    /// The name in the record stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::Conditional => "CONDITIONAL",
            Self::Error => "ERROR",
            Self::Escalation => "ESCALATION",
            Self::Link => "LINK",
            Self::Message => "MESSAGE",
            Self::Signal => "SIGNAL",
            Self::Terminate => "TERMINATE",
            Self::Timer => "TIMER",
            Self::Compensation => "COMPENSATION",
            Self::None => "NONE",
        }
    }
}

impl BpmnElementType {
    /// The name in the record stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::Process => "PROCESS",
            Self::SubProcess => "SUB_PROCESS",
            Self::EventSubProcess => "EVENT_SUB_PROCESS",
            Self::StartEvent => "START_EVENT",
            Self::IntermediateCatchEvent => "INTERMEDIATE_CATCH_EVENT",
            Self::IntermediateThrowEvent => "INTERMEDIATE_THROW_EVENT",
            Self::BoundaryEvent => "BOUNDARY_EVENT",
            Self::EndEvent => "END_EVENT",
            Self::ServiceTask => "SERVICE_TASK",
            Self::ReceiveTask => "RECEIVE_TASK",
            Self::UserTask => "USER_TASK",
            Self::ManualTask => "MANUAL_TASK",
            Self::Task => "TASK",
            Self::ExclusiveGateway => "EXCLUSIVE_GATEWAY",
            Self::ParallelGateway => "PARALLEL_GATEWAY",
            Self::EventBasedGateway => "EVENT_BASED_GATEWAY",
            Self::InclusiveGateway => "INCLUSIVE_GATEWAY",
            Self::SequenceFlow => "SEQUENCE_FLOW",
            Self::MultiInstanceBody => "MULTI_INSTANCE_BODY",
            Self::CallActivity => "CALL_ACTIVITY",
            Self::BusinessRuleTask => "BUSINESS_RULE_TASK",
            Self::ScriptTask => "SCRIPT_TASK",
            Self::SendTask => "SEND_TASK",
            Self::AdHocSubProcess => "AD_HOC_SUB_PROCESS",
            Self::AdHocSubProcessInnerInstance => "AD_HOC_SUB_PROCESS_INNER_INSTANCE",
        }
    }
}

/// The kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Encode, Decode, Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are the record schema's own")]
pub enum ErrorType {
    #[n(0)]
    #[default]
    Unknown,
    #[n(1)]
    IoMappingError,
    #[n(2)]
    JobNoRetries,
    #[n(3)]
    ConditionError,
    #[n(4)]
    ExtractValueError,
    #[n(5)]
    CalledElementError,
    #[n(6)]
    UnhandledErrorEvent,
    #[n(7)]
    MessageSizeExceeded,
    #[n(8)]
    CalledDecisionError,
    #[n(9)]
    DecisionEvaluationError,
    #[n(10)]
    FormNotFound,
    #[n(11)]
    ResourceNotFound,
    #[n(12)]
    ExecutionListenerNoRetries,
    #[n(13)]
    TaskListenerNoRetries,
    #[n(14)]
    AdHocSubProcessNoRetries,
}

impl ErrorType {
    /// The name in the record stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::IoMappingError => "IO_MAPPING_ERROR",
            Self::JobNoRetries => "JOB_NO_RETRIES",
            Self::ConditionError => "CONDITION_ERROR",
            Self::ExtractValueError => "EXTRACT_VALUE_ERROR",
            Self::CalledElementError => "CALLED_ELEMENT_ERROR",
            Self::UnhandledErrorEvent => "UNHANDLED_ERROR_EVENT",
            Self::MessageSizeExceeded => "MESSAGE_SIZE_EXCEEDED",
            Self::CalledDecisionError => "CALLED_DECISION_ERROR",
            Self::DecisionEvaluationError => "DECISION_EVALUATION_ERROR",
            Self::FormNotFound => "FORM_NOT_FOUND",
            Self::ResourceNotFound => "RESOURCE_NOT_FOUND",
            Self::ExecutionListenerNoRetries => "EXECUTION_LISTENER_NO_RETRIES",
            Self::TaskListenerNoRetries => "TASK_LISTENER_NO_RETRIES",
            Self::AdHocSubProcessNoRetries => "AD_HOC_SUB_PROCESS_NO_RETRIES",
        }
    }
}
