//! What a command, event or rejection is about.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer};

use crate::intent::*;
use crate::value::*;

macro_rules! intent_names {
    () => {
        &[]
    };
    ($intent:ident) => {
        $intent::NAMES
    };
}

macro_rules! value_types {
    ($($variant:ident = $code:literal $name:literal $($intent:ident)?),* $(,)?) => {
        /// Kinds of values, with the codes of the record schema. 200 to 252 are our own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are the record schema's own")]
        #[repr(u8)]
        pub enum ValueType { $($variant = $code),* }

        impl ValueType {
            /// Every kind of value, in the order of their codes.
            pub const ALL: &[ValueType] = &[$(Self::$variant),*];

            /// The name in the record stream.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The names of its intents in the record stream: none if there are no records of it.
            pub const fn intent_names(self) -> &'static [&'static str] {
                match self { $(Self::$variant => intent_names!($($intent)?)),* }
            }
        }
    };
}

// The intents are named where there are records: where a payload has them.
value_types! {
    Job = 0 "JOB" JobIntent,
    Deployment = 4 "DEPLOYMENT" DeploymentIntent,
    ProcessInstance = 5 "PROCESS_INSTANCE" ProcessInstanceIntent,
    Incident = 6 "INCIDENT" IncidentIntent,
    Message = 10 "MESSAGE" MessageIntent,
    MessageSubscription = 11 "MESSAGE_SUBSCRIPTION" MessageSubscriptionIntent,
    ProcessMessageSubscription = 12 "PROCESS_MESSAGE_SUBSCRIPTION" ProcessMessageSubscriptionIntent,
    JobBatch = 14 "JOB_BATCH" JobBatchIntent,
    Timer = 15 "TIMER" TimerIntent,
    MessageStartEventSubscription = 16 "MESSAGE_START_EVENT_SUBSCRIPTION" MessageStartEventSubscriptionIntent,
    Variable = 17 "VARIABLE" VariableIntent,
    VariableDocument = 18 "VARIABLE_DOCUMENT" VariableDocumentIntent,
    ProcessInstanceCreation = 19 "PROCESS_INSTANCE_CREATION" ProcessInstanceCreationIntent,
    Error = 20 "ERROR" ErrorIntent,
    ProcessInstanceResult = 21 "PROCESS_INSTANCE_RESULT" ProcessInstanceResultIntent,
    Process = 22 "PROCESS" ProcessIntent,
    DeploymentDistribution = 23 "DEPLOYMENT_DISTRIBUTION",
    ProcessEvent = 24 "PROCESS_EVENT" ProcessEventIntent,
    Decision = 25 "DECISION" DecisionIntent,
    DecisionRequirements = 26 "DECISION_REQUIREMENTS" DecisionRequirementsIntent,
    DecisionEvaluation = 27 "DECISION_EVALUATION" DecisionEvaluationIntent,
    ProcessInstanceModification = 28 "PROCESS_INSTANCE_MODIFICATION" ProcessInstanceModificationIntent,
    Escalation = 29 "ESCALATION" EscalationIntent,
    SignalSubscription = 30 "SIGNAL_SUBSCRIPTION" SignalSubscriptionIntent,
    Signal = 31 "SIGNAL" SignalIntent,
    ResourceDeletion = 32 "RESOURCE_DELETION" ResourceDeletionIntent,
    CommandDistribution = 33 "COMMAND_DISTRIBUTION" CommandDistributionIntent,
    ProcessInstanceBatch = 34 "PROCESS_INSTANCE_BATCH" ProcessInstanceBatchIntent,
    MessageBatch = 35 "MESSAGE_BATCH" MessageBatchIntent,
    Form = 36 "FORM" FormIntent,
    UserTask = 37 "USER_TASK" UserTaskIntent,
    ProcessInstanceMigration = 38 "PROCESS_INSTANCE_MIGRATION" ProcessInstanceMigrationIntent,
    CompensationSubscription = 39 "COMPENSATION_SUBSCRIPTION" CompensationSubscriptionIntent,
    MessageCorrelation = 40 "MESSAGE_CORRELATION" MessageCorrelationIntent,
    User = 41 "USER",
    Clock = 42 "CLOCK" ClockIntent,
    Authorization = 43 "AUTHORIZATION",
    Resource = 44 "RESOURCE" ResourceIntent,
    Tenant = 45 "TENANT",
    Group = 46 "GROUP",
    MappingRule = 47 "MAPPING_RULE",
    IdentitySetup = 48 "IDENTITY_SETUP",
    Role = 49 "ROLE",
    BatchOperationCreation = 50 "BATCH_OPERATION_CREATION",
    BatchOperationExecution = 51 "BATCH_OPERATION_EXECUTION",
    BatchOperationChunk = 52 "BATCH_OPERATION_CHUNK",
    AdHocSubProcessInstruction = 53 "AD_HOC_SUB_PROCESS_INSTRUCTION" AdHocSubProcessInstructionIntent,
    BatchOperationLifecycleManagement = 54 "BATCH_OPERATION_LIFECYCLE_MANAGEMENT",
    BatchOperationPartitionLifecycle = 55 "BATCH_OPERATION_PARTITION_LIFECYCLE",
    AsyncRequest = 56 "ASYNC_REQUEST",
    UsageMetric = 57 "USAGE_METRIC",
    MultiInstance = 58 "MULTI_INSTANCE" MultiInstanceIntent,
    RuntimeInstruction = 59 "RUNTIME_INSTRUCTION" RuntimeInstructionIntent,
    BatchOperationInitialization = 60 "BATCH_OPERATION_INITIALIZATION",
    JobStream = 200 "JOB_STREAM" JobStreamIntent,
    Work = 201 "WORK" WorkIntent,
    Outbox = 202 "OUTBOX" OutboxIntent,
    FeatureLevel = 203 "FEATURE_LEVEL" FeatureLevelIntent,
    Incarnation = 204 "INCARNATION" IncarnationIntent,
    Settings = 205 "SETTINGS" SettingsIntent,
    Node = 206 "NODE" NodeIntent,
    Cluster = 207 "CLUSTER" ClusterIntent,
    JobPoll = 208 "JOB_POLL" JobPollIntent,
    Expression = 220 "EXPRESSION" ExpressionIntent,
    Purge = 221 "PURGE" PurgeIntent,
    GlobalListener = 222 "GLOBAL_LISTENER" GlobalListenerIntent,
    GlobalListenerBatch = 223 "GLOBAL_LISTENER_BATCH" GlobalListenerBatchIntent,
    ConditionalSubscription = 230 "CONDITIONAL_SUBSCRIPTION" ConditionalSubscriptionIntent,
    ConditionalEvaluation = 231 "CONDITIONAL_EVALUATION" ConditionalEvaluationIntent,
    Scale = 253 "SCALE",
    Checkpoint = 254 "CHECKPOINT",
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
    #[n(30)]
    SignalSubscription(#[n(0)] SignalSubscriptionIntent, #[n(1)] Box<SignalSubscriptionValue>),
    #[n(31)]
    Signal(#[n(0)] SignalIntent, #[n(1)] Box<SignalValue>),
    #[n(32)]
    ResourceDeletion(#[n(0)] ResourceDeletionIntent, #[n(1)] Box<ResourceDeletionValue>),
    #[n(33)]
    CommandDistribution(#[n(0)] CommandDistributionIntent, #[n(1)] Box<CommandDistributionValue>),
    #[n(34)]
    ProcessInstanceBatch(#[n(0)] ProcessInstanceBatchIntent, #[n(1)] Box<ProcessInstanceBatchValue>),
    #[n(35)]
    MessageBatch(#[n(0)] MessageBatchIntent, #[n(1)] Box<MessageBatchValue>),
    #[n(36)]
    Form(#[n(0)] FormIntent, #[n(1)] Box<FormValue>),
    #[n(37)]
    UserTask(#[n(0)] UserTaskIntent, #[n(1)] Box<UserTaskValue>),
    #[n(38)]
    ProcessInstanceMigration(#[n(0)] ProcessInstanceMigrationIntent, #[n(1)] Box<ProcessInstanceMigrationValue>),
    #[n(39)]
    CompensationSubscription(#[n(0)] CompensationSubscriptionIntent, #[n(1)] Box<CompensationSubscriptionValue>),
    #[n(40)]
    MessageCorrelation(#[n(0)] MessageCorrelationIntent, #[n(1)] Box<MessageCorrelationValue>),
    #[n(42)]
    Clock(#[n(0)] ClockIntent, #[n(1)] ClockValue),
    #[n(44)]
    Resource(#[n(0)] ResourceIntent, #[n(1)] Box<ResourceValue>),
    #[n(53)]
    AdHocSubProcessInstruction(#[n(0)] AdHocSubProcessInstructionIntent, #[n(1)] Box<AdHocSubProcessInstructionValue>),
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
    #[n(203)]
    FeatureLevel(#[n(0)] FeatureLevelIntent, #[n(1)] FeatureLevelValue),
    #[n(204)]
    Incarnation(#[n(0)] IncarnationIntent, #[n(1)] Box<IncarnationValue>),
    #[n(205)]
    Settings(#[n(0)] SettingsIntent, #[n(1)] SettingsValue),
    #[n(206)]
    Node(#[n(0)] NodeIntent, #[n(1)] NodeValue),
    #[n(207)]
    Cluster(#[n(0)] ClusterIntent, #[n(1)] Box<ClusterValue>),
    #[n(208)]
    JobPoll(#[n(0)] JobPollIntent, #[n(1)] Box<JobPollValue>),
    #[n(220)]
    Expression(#[n(0)] ExpressionIntent, #[n(1)] Box<ExpressionValue>),
    #[n(221)]
    Purge(#[n(0)] PurgeIntent, #[n(1)] PurgeValue),
    #[n(222)]
    GlobalListener(#[n(0)] GlobalListenerIntent, #[n(1)] Box<GlobalListenerValue>),
    #[n(223)]
    GlobalListenerBatch(#[n(0)] GlobalListenerBatchIntent, #[n(1)] Box<GlobalListenerBatchValue>),
    #[n(230)]
    ConditionalSubscription(#[n(0)] ConditionalSubscriptionIntent, #[n(1)] Box<ConditionalSubscriptionValue>),
    #[n(231)]
    ConditionalEvaluation(#[n(0)] ConditionalEvaluationIntent, #[n(1)] Box<ConditionalEvaluationValue>),
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
            Self::SignalSubscription(..) => ValueType::SignalSubscription,
            Self::Signal(..) => ValueType::Signal,
            Self::ResourceDeletion(..) => ValueType::ResourceDeletion,
            Self::CommandDistribution(..) => ValueType::CommandDistribution,
            Self::ProcessInstanceBatch(..) => ValueType::ProcessInstanceBatch,
            Self::MessageBatch(..) => ValueType::MessageBatch,
            Self::UserTask(..) => ValueType::UserTask,
            Self::ProcessInstanceMigration(..) => ValueType::ProcessInstanceMigration,
            Self::CompensationSubscription(..) => ValueType::CompensationSubscription,
            Self::MultiInstance(..) => ValueType::MultiInstance,
            Self::RuntimeInstruction(..) => ValueType::RuntimeInstruction,
            Self::AdHocSubProcessInstruction(..) => ValueType::AdHocSubProcessInstruction,
            Self::JobStream(..) => ValueType::JobStream,
            Self::Work(..) => ValueType::Work,
            Self::Outbox(..) => ValueType::Outbox,
            Self::FeatureLevel(..) => ValueType::FeatureLevel,
            Self::Incarnation(..) => ValueType::Incarnation,
            Self::Settings(..) => ValueType::Settings,
            Self::Node(..) => ValueType::Node,
            Self::Cluster(..) => ValueType::Cluster,
            Self::JobPoll(..) => ValueType::JobPoll,
            Self::MessageCorrelation(..) => ValueType::MessageCorrelation,
            Self::Clock(..) => ValueType::Clock,
            Self::Form(..) => ValueType::Form,
            Self::Resource(..) => ValueType::Resource,
            Self::Expression(..) => ValueType::Expression,
            Self::Purge(..) => ValueType::Purge,
            Self::GlobalListener(..) => ValueType::GlobalListener,
            Self::GlobalListenerBatch(..) => ValueType::GlobalListenerBatch,
            Self::ConditionalSubscription(..) => ValueType::ConditionalSubscription,
            Self::ConditionalEvaluation(..) => ValueType::ConditionalEvaluation,
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
            Self::SignalSubscription(intent, _) => intent.name(),
            Self::Signal(intent, _) => intent.name(),
            Self::ResourceDeletion(intent, _) => intent.name(),
            Self::CommandDistribution(intent, _) => intent.name(),
            Self::ProcessInstanceBatch(intent, _) => intent.name(),
            Self::MessageBatch(intent, _) => intent.name(),
            Self::UserTask(intent, _) => intent.name(),
            Self::ProcessInstanceMigration(intent, _) => intent.name(),
            Self::CompensationSubscription(intent, _) => intent.name(),
            Self::MultiInstance(intent, _) => intent.name(),
            Self::RuntimeInstruction(intent, _) => intent.name(),
            Self::AdHocSubProcessInstruction(intent, _) => intent.name(),
            Self::JobStream(intent, _) => intent.name(),
            Self::Work(intent, _) => intent.name(),
            Self::Outbox(intent, _) => intent.name(),
            Self::FeatureLevel(intent, _) => intent.name(),
            Self::Incarnation(intent, _) => intent.name(),
            Self::Settings(intent, _) => intent.name(),
            Self::Node(intent, _) => intent.name(),
            Self::Cluster(intent, _) => intent.name(),
            Self::JobPoll(intent, _) => intent.name(),
            Self::MessageCorrelation(intent, _) => intent.name(),
            Self::Clock(intent, _) => intent.name(),
            Self::Form(intent, _) => intent.name(),
            Self::Resource(intent, _) => intent.name(),
            Self::Expression(intent, _) => intent.name(),
            Self::Purge(intent, _) => intent.name(),
            Self::GlobalListener(intent, _) => intent.name(),
            Self::GlobalListenerBatch(intent, _) => intent.name(),
            Self::ConditionalSubscription(intent, _) => intent.name(),
            Self::ConditionalEvaluation(intent, _) => intent.name(),
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
            Self::SignalSubscription(_, value) => value.serialize(serializer),
            Self::Signal(_, value) => value.serialize(serializer),
            Self::ResourceDeletion(_, value) => value.serialize(serializer),
            Self::CommandDistribution(_, value) => value.serialize(serializer),
            Self::ProcessInstanceBatch(_, value) => value.serialize(serializer),
            Self::MessageBatch(_, value) => value.serialize(serializer),
            Self::UserTask(_, value) => value.serialize(serializer),
            Self::ProcessInstanceMigration(_, value) => value.serialize(serializer),
            Self::CompensationSubscription(_, value) => value.serialize(serializer),
            Self::MultiInstance(_, value) => value.serialize(serializer),
            Self::RuntimeInstruction(_, value) => value.serialize(serializer),
            Self::AdHocSubProcessInstruction(_, value) => value.serialize(serializer),
            Self::JobStream(_, value) => value.serialize(serializer),
            Self::Work(_, value) => value.serialize(serializer),
            Self::Outbox(_, value) => value.serialize(serializer),
            Self::FeatureLevel(_, value) => value.serialize(serializer),
            Self::Incarnation(_, value) => value.serialize(serializer),
            Self::Settings(_, value) => value.serialize(serializer),
            Self::Node(_, value) => value.serialize(serializer),
            Self::Cluster(_, value) => value.serialize(serializer),
            Self::JobPoll(_, value) => value.serialize(serializer),
            Self::MessageCorrelation(_, value) => value.serialize(serializer),
            Self::Clock(_, value) => value.serialize(serializer),
            Self::Form(_, value) => value.serialize(serializer),
            Self::Resource(_, value) => value.serialize(serializer),
            Self::Expression(_, value) => value.serialize(serializer),
            Self::Purge(_, value) => value.serialize(serializer),
            Self::GlobalListener(_, value) => value.serialize(serializer),
            Self::GlobalListenerBatch(_, value) => value.serialize(serializer),
            Self::ConditionalSubscription(_, value) => value.serialize(serializer),
            Self::ConditionalEvaluation(_, value) => value.serialize(serializer),
        }
    }
}
