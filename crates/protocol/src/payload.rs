//! What a command, event or rejection is about.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer};

use crate::intent::*;
use crate::value::*;

/// Kinds of values, with the codes of the record schema. 200 to 252 are our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the record schema's own")]
#[repr(u8)]
pub enum ValueType {
    Job = 0,
    Deployment = 4,
    ProcessInstance = 5,
    Incident = 6,
    Message = 10,
    MessageSubscription = 11,
    ProcessMessageSubscription = 12,
    JobBatch = 14,
    Timer = 15,
    MessageStartEventSubscription = 16,
    Variable = 17,
    VariableDocument = 18,
    ProcessInstanceCreation = 19,
    Error = 20,
    ProcessInstanceResult = 21,
    Process = 22,
    DeploymentDistribution = 23,
    ProcessEvent = 24,
    Decision = 25,
    DecisionRequirements = 26,
    DecisionEvaluation = 27,
    ProcessInstanceModification = 28,
    Escalation = 29,
    SignalSubscription = 30,
    Signal = 31,
    ResourceDeletion = 32,
    CommandDistribution = 33,
    ProcessInstanceBatch = 34,
    MessageBatch = 35,
    Form = 36,
    UserTask = 37,
    ProcessInstanceMigration = 38,
    CompensationSubscription = 39,
    MessageCorrelation = 40,
    User = 41,
    Clock = 42,
    Authorization = 43,
    Resource = 44,
    Tenant = 45,
    Group = 46,
    MappingRule = 47,
    IdentitySetup = 48,
    Role = 49,
    BatchOperationCreation = 50,
    BatchOperationExecution = 51,
    BatchOperationChunk = 52,
    AdHocSubProcessInstruction = 53,
    BatchOperationLifecycleManagement = 54,
    BatchOperationPartitionLifecycle = 55,
    AsyncRequest = 56,
    UsageMetric = 57,
    MultiInstance = 58,
    RuntimeInstruction = 59,
    BatchOperationInitialization = 60,
    JobStream = 200,
    Work = 201,
    Outbox = 202,
    Scale = 253,
    Checkpoint = 254,
}

impl ValueType {
    /// The name in the record stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Job => "JOB",
            Self::Deployment => "DEPLOYMENT",
            Self::ProcessInstance => "PROCESS_INSTANCE",
            Self::Incident => "INCIDENT",
            Self::Message => "MESSAGE",
            Self::MessageSubscription => "MESSAGE_SUBSCRIPTION",
            Self::ProcessMessageSubscription => "PROCESS_MESSAGE_SUBSCRIPTION",
            Self::JobBatch => "JOB_BATCH",
            Self::Timer => "TIMER",
            Self::MessageStartEventSubscription => "MESSAGE_START_EVENT_SUBSCRIPTION",
            Self::Variable => "VARIABLE",
            Self::VariableDocument => "VARIABLE_DOCUMENT",
            Self::ProcessInstanceCreation => "PROCESS_INSTANCE_CREATION",
            Self::Error => "ERROR",
            Self::ProcessInstanceResult => "PROCESS_INSTANCE_RESULT",
            Self::Process => "PROCESS",
            Self::DeploymentDistribution => "DEPLOYMENT_DISTRIBUTION",
            Self::ProcessEvent => "PROCESS_EVENT",
            Self::Decision => "DECISION",
            Self::DecisionRequirements => "DECISION_REQUIREMENTS",
            Self::DecisionEvaluation => "DECISION_EVALUATION",
            Self::ProcessInstanceModification => "PROCESS_INSTANCE_MODIFICATION",
            Self::Escalation => "ESCALATION",
            Self::SignalSubscription => "SIGNAL_SUBSCRIPTION",
            Self::Signal => "SIGNAL",
            Self::ResourceDeletion => "RESOURCE_DELETION",
            Self::CommandDistribution => "COMMAND_DISTRIBUTION",
            Self::ProcessInstanceBatch => "PROCESS_INSTANCE_BATCH",
            Self::MessageBatch => "MESSAGE_BATCH",
            Self::Form => "FORM",
            Self::UserTask => "USER_TASK",
            Self::ProcessInstanceMigration => "PROCESS_INSTANCE_MIGRATION",
            Self::CompensationSubscription => "COMPENSATION_SUBSCRIPTION",
            Self::MessageCorrelation => "MESSAGE_CORRELATION",
            Self::User => "USER",
            Self::Clock => "CLOCK",
            Self::Authorization => "AUTHORIZATION",
            Self::Resource => "RESOURCE",
            Self::Tenant => "TENANT",
            Self::Group => "GROUP",
            Self::MappingRule => "MAPPING_RULE",
            Self::IdentitySetup => "IDENTITY_SETUP",
            Self::Role => "ROLE",
            Self::BatchOperationCreation => "BATCH_OPERATION_CREATION",
            Self::BatchOperationExecution => "BATCH_OPERATION_EXECUTION",
            Self::BatchOperationChunk => "BATCH_OPERATION_CHUNK",
            Self::AdHocSubProcessInstruction => "AD_HOC_SUB_PROCESS_INSTRUCTION",
            Self::BatchOperationLifecycleManagement => "BATCH_OPERATION_LIFECYCLE_MANAGEMENT",
            Self::BatchOperationPartitionLifecycle => "BATCH_OPERATION_PARTITION_LIFECYCLE",
            Self::AsyncRequest => "ASYNC_REQUEST",
            Self::UsageMetric => "USAGE_METRIC",
            Self::MultiInstance => "MULTI_INSTANCE",
            Self::RuntimeInstruction => "RUNTIME_INSTRUCTION",
            Self::BatchOperationInitialization => "BATCH_OPERATION_INITIALIZATION",
            Self::JobStream => "JOB_STREAM",
            Self::Work => "WORK",
            Self::Outbox => "OUTBOX",
            Self::Scale => "SCALE",
            Self::Checkpoint => "CHECKPOINT",
        }
    }
}

/// An intent together with a value of its type, so that the two always fit. The same value describes the wish (command),
/// the fact (event) and the refusal (rejection).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[allow(missing_docs, reason = "the names are the record schema's own")]
pub enum Payload {
    #[n(0)]
    Job(
        #[n(0)] JobIntent,
        #[n(1)]
        #[cbor(with = "crate::shared")]
        Arc<JobValue>,
    ),
    #[n(4)]
    Deployment(#[n(0)] DeploymentIntent, #[n(1)] Box<DeploymentValue>),
    #[n(5)]
    ProcessInstance(
        #[n(0)] ProcessInstanceIntent,
        #[n(1)]
        #[cbor(with = "crate::shared")]
        Arc<ProcessInstanceValue>,
    ),
    #[n(6)]
    Incident(#[n(0)] IncidentIntent, #[n(1)] Box<IncidentValue>),
    #[n(10)]
    Message(#[n(0)] MessageIntent, #[n(1)] Box<MessageValue>),
    #[n(11)]
    MessageSubscription(#[n(0)] MessageSubscriptionIntent, #[n(1)] Box<MessageSubscriptionValue>),
    #[n(12)]
    ProcessMessageSubscription(#[n(0)] ProcessMessageSubscriptionIntent, #[n(1)] Box<ProcessMessageSubscriptionValue>),
    #[n(14)]
    JobBatch(#[n(0)] JobBatchIntent, #[n(1)] Box<JobBatchValue>),
    #[n(15)]
    Timer(#[n(0)] TimerIntent, #[n(1)] Box<TimerValue>),
    #[n(16)]
    MessageStartEventSubscription(
        #[n(0)] MessageStartEventSubscriptionIntent,
        #[n(1)] Box<MessageStartEventSubscriptionValue>,
    ),
    #[n(17)]
    Variable(#[n(0)] VariableIntent, #[n(1)] Box<VariableValue>),
    #[n(18)]
    VariableDocument(#[n(0)] VariableDocumentIntent, #[n(1)] Box<VariableDocumentValue>),
    #[n(19)]
    ProcessInstanceCreation(#[n(0)] ProcessInstanceCreationIntent, #[n(1)] Box<ProcessInstanceCreationValue>),
    #[n(20)]
    Error(#[n(0)] ErrorIntent, #[n(1)] Box<ErrorValue>),
    #[n(21)]
    ProcessInstanceResult(#[n(0)] ProcessInstanceResultIntent, #[n(1)] Box<ProcessInstanceResultValue>),
    #[n(22)]
    Process(#[n(0)] ProcessIntent, #[n(1)] Box<ProcessValue>),
    #[n(24)]
    ProcessEvent(#[n(0)] ProcessEventIntent, #[n(1)] Box<ProcessEventValue>),
    #[n(25)]
    Decision(#[n(0)] DecisionIntent, #[n(1)] Box<DecisionValue>),
    #[n(26)]
    DecisionRequirements(#[n(0)] DecisionRequirementsIntent, #[n(1)] Box<DecisionRequirementsValue>),
    #[n(27)]
    DecisionEvaluation(#[n(0)] DecisionEvaluationIntent, #[n(1)] Box<DecisionEvaluationValue>),
    #[n(28)]
    ProcessInstanceModification(
        #[n(0)] ProcessInstanceModificationIntent,
        #[n(1)] Box<ProcessInstanceModificationValue>,
    ),
    #[n(29)]
    Escalation(#[n(0)] EscalationIntent, #[n(1)] Box<EscalationValue>),
    #[n(32)]
    ResourceDeletion(#[n(0)] ResourceDeletionIntent, #[n(1)] Box<ResourceDeletionValue>),
    #[n(33)]
    CommandDistribution(#[n(0)] CommandDistributionIntent, #[n(1)] Box<CommandDistributionValue>),
    #[n(34)]
    ProcessInstanceBatch(#[n(0)] ProcessInstanceBatchIntent, #[n(1)] Box<ProcessInstanceBatchValue>),
    #[n(35)]
    MessageBatch(#[n(0)] MessageBatchIntent, #[n(1)] Box<MessageBatchValue>),
    #[n(38)]
    ProcessInstanceMigration(#[n(0)] ProcessInstanceMigrationIntent, #[n(1)] Box<ProcessInstanceMigrationValue>),
    #[n(58)]
    MultiInstance(#[n(0)] MultiInstanceIntent, #[n(1)] Box<MultiInstanceValue>),
    #[n(59)]
    RuntimeInstruction(#[n(0)] RuntimeInstructionIntent, #[n(1)] Box<RuntimeInstructionValue>),
    #[n(200)]
    JobStream(#[n(0)] JobStreamIntent, #[n(1)] Box<JobStreamValue>),
    #[n(201)]
    Work(#[n(0)] WorkIntent, #[n(1)] Box<WorkValue>),
    #[n(202)]
    Outbox(#[n(0)] OutboxIntent, #[n(1)] Box<OutboxValue>),
}

impl Payload {
    /// The kind of the value.
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::Job(..) => ValueType::Job,
            Self::Deployment(..) => ValueType::Deployment,
            Self::ProcessInstance(..) => ValueType::ProcessInstance,
            Self::Incident(..) => ValueType::Incident,
            Self::Message(..) => ValueType::Message,
            Self::MessageSubscription(..) => ValueType::MessageSubscription,
            Self::ProcessMessageSubscription(..) => ValueType::ProcessMessageSubscription,
            Self::JobBatch(..) => ValueType::JobBatch,
            Self::Timer(..) => ValueType::Timer,
            Self::MessageStartEventSubscription(..) => ValueType::MessageStartEventSubscription,
            Self::Variable(..) => ValueType::Variable,
            Self::VariableDocument(..) => ValueType::VariableDocument,
            Self::ProcessInstanceCreation(..) => ValueType::ProcessInstanceCreation,
            Self::Error(..) => ValueType::Error,
            Self::ProcessInstanceResult(..) => ValueType::ProcessInstanceResult,
            Self::Process(..) => ValueType::Process,
            Self::ProcessEvent(..) => ValueType::ProcessEvent,
            Self::Decision(..) => ValueType::Decision,
            Self::DecisionRequirements(..) => ValueType::DecisionRequirements,
            Self::DecisionEvaluation(..) => ValueType::DecisionEvaluation,
            Self::ProcessInstanceModification(..) => ValueType::ProcessInstanceModification,
            Self::Escalation(..) => ValueType::Escalation,
            Self::ResourceDeletion(..) => ValueType::ResourceDeletion,
            Self::CommandDistribution(..) => ValueType::CommandDistribution,
            Self::ProcessInstanceBatch(..) => ValueType::ProcessInstanceBatch,
            Self::MessageBatch(..) => ValueType::MessageBatch,
            Self::ProcessInstanceMigration(..) => ValueType::ProcessInstanceMigration,
            Self::MultiInstance(..) => ValueType::MultiInstance,
            Self::RuntimeInstruction(..) => ValueType::RuntimeInstruction,
            Self::JobStream(..) => ValueType::JobStream,
            Self::Work(..) => ValueType::Work,
            Self::Outbox(..) => ValueType::Outbox,
        }
    }

    /// The name of the intent.
    pub const fn intent_name(&self) -> &'static str {
        match self {
            Self::Job(intent, _) => intent.name(),
            Self::Deployment(intent, _) => intent.name(),
            Self::ProcessInstance(intent, _) => intent.name(),
            Self::Incident(intent, _) => intent.name(),
            Self::Message(intent, _) => intent.name(),
            Self::MessageSubscription(intent, _) => intent.name(),
            Self::ProcessMessageSubscription(intent, _) => intent.name(),
            Self::JobBatch(intent, _) => intent.name(),
            Self::Timer(intent, _) => intent.name(),
            Self::MessageStartEventSubscription(intent, _) => intent.name(),
            Self::Variable(intent, _) => intent.name(),
            Self::VariableDocument(intent, _) => intent.name(),
            Self::ProcessInstanceCreation(intent, _) => intent.name(),
            Self::Error(intent, _) => intent.name(),
            Self::ProcessInstanceResult(intent, _) => intent.name(),
            Self::Process(intent, _) => intent.name(),
            Self::ProcessEvent(intent, _) => intent.name(),
            Self::Decision(intent, _) => intent.name(),
            Self::DecisionRequirements(intent, _) => intent.name(),
            Self::DecisionEvaluation(intent, _) => intent.name(),
            Self::ProcessInstanceModification(intent, _) => intent.name(),
            Self::Escalation(intent, _) => intent.name(),
            Self::ResourceDeletion(intent, _) => intent.name(),
            Self::CommandDistribution(intent, _) => intent.name(),
            Self::ProcessInstanceBatch(intent, _) => intent.name(),
            Self::MessageBatch(intent, _) => intent.name(),
            Self::ProcessInstanceMigration(intent, _) => intent.name(),
            Self::MultiInstance(intent, _) => intent.name(),
            Self::RuntimeInstruction(intent, _) => intent.name(),
            Self::JobStream(intent, _) => intent.name(),
            Self::Work(intent, _) => intent.name(),
            Self::Outbox(intent, _) => intent.name(),
        }
    }
}

/// Serialises the value alone, as the `value` of an exported record.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Job(_, value) => value.serialize(serializer),
            Self::Deployment(_, value) => value.serialize(serializer),
            Self::ProcessInstance(_, value) => value.serialize(serializer),
            Self::Incident(_, value) => value.serialize(serializer),
            Self::Message(_, value) => value.serialize(serializer),
            Self::MessageSubscription(_, value) => value.serialize(serializer),
            Self::ProcessMessageSubscription(_, value) => value.serialize(serializer),
            Self::JobBatch(_, value) => value.serialize(serializer),
            Self::Timer(_, value) => value.serialize(serializer),
            Self::MessageStartEventSubscription(_, value) => value.serialize(serializer),
            Self::Variable(_, value) => value.serialize(serializer),
            Self::VariableDocument(_, value) => value.serialize(serializer),
            Self::ProcessInstanceCreation(_, value) => value.serialize(serializer),
            Self::Error(_, value) => value.serialize(serializer),
            Self::ProcessInstanceResult(_, value) => value.serialize(serializer),
            Self::Process(_, value) => value.serialize(serializer),
            Self::ProcessEvent(_, value) => value.serialize(serializer),
            Self::Decision(_, value) => value.serialize(serializer),
            Self::DecisionRequirements(_, value) => value.serialize(serializer),
            Self::DecisionEvaluation(_, value) => value.serialize(serializer),
            Self::ProcessInstanceModification(_, value) => value.serialize(serializer),
            Self::Escalation(_, value) => value.serialize(serializer),
            Self::ResourceDeletion(_, value) => value.serialize(serializer),
            Self::CommandDistribution(_, value) => value.serialize(serializer),
            Self::ProcessInstanceBatch(_, value) => value.serialize(serializer),
            Self::MessageBatch(_, value) => value.serialize(serializer),
            Self::ProcessInstanceMigration(_, value) => value.serialize(serializer),
            Self::MultiInstance(_, value) => value.serialize(serializer),
            Self::RuntimeInstruction(_, value) => value.serialize(serializer),
            Self::JobStream(_, value) => value.serialize(serializer),
            Self::Work(_, value) => value.serialize(serializer),
            Self::Outbox(_, value) => value.serialize(serializer),
        }
    }
}
