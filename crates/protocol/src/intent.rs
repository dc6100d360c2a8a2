//! The intents of every value type, with the names and codes of the record schema.

use minicbor::{Decode, Encode};

macro_rules! intents {
    ($($name:ident { $($variant:ident = $code:literal $text:literal),* $(,)? })*) => {$(
        /// The intents of one value type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
        #[cbor(index_only)]
        #[allow(missing_docs, reason = "the names are the record schema's own")]
        pub enum $name { $(#[n($code)] $variant),* }

        impl $name {
            /// The names in the record stream.
            pub const NAMES: &[&str] = &[$($text),*];

            /// The name in the record stream.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The code in the record schema.
            pub const fn code(self) -> u32 {
                match self { $(Self::$variant => $code),* }
            }
        }
    )*};
}

intents! {
    JobIntent {
        Created = 0 "CREATED", Complete = 1 "COMPLETE", Completed = 2 "COMPLETED", TimeOut = 3 "TIME_OUT",
        TimedOut = 4 "TIMED_OUT", Fail = 5 "FAIL", Failed = 6 "FAILED", UpdateRetries = 7 "UPDATE_RETRIES",
        RetriesUpdated = 8 "RETRIES_UPDATED", Cancel = 9 "CANCEL", Canceled = 10 "CANCELED",
        ThrowError = 11 "THROW_ERROR", ErrorThrown = 12 "ERROR_THROWN", RecurAfterBackoff = 13 "RECUR_AFTER_BACKOFF",
        RecurredAfterBackoff = 14 "RECURRED_AFTER_BACKOFF", Yield = 15 "YIELD", Yielded = 16 "YIELDED",
        UpdateTimeout = 17 "UPDATE_TIMEOUT", TimeoutUpdated = 18 "TIMEOUT_UPDATED", Migrated = 19 "MIGRATED",
        Update = 20 "UPDATE", Updated = 21 "UPDATED",
    }
    DeploymentIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Distribute = 2 "DISTRIBUTE", Distributed = 3 "DISTRIBUTED",
        FullyDistributed = 4 "FULLY_DISTRIBUTED", Reconstruct = 5 "RECONSTRUCT", Reconstructed = 6 "RECONSTRUCTED",
        ReconstructedAll = 7 "RECONSTRUCTED_ALL",
    }
    ProcessInstanceIntent {
        Cancel = 0 "CANCEL", SequenceFlowTaken = 1 "SEQUENCE_FLOW_TAKEN", ElementActivating = 2 "ELEMENT_ACTIVATING",
        ElementActivated = 3 "ELEMENT_ACTIVATED", ElementCompleting = 4 "ELEMENT_COMPLETING",
        ElementCompleted = 5 "ELEMENT_COMPLETED", ElementTerminating = 6 "ELEMENT_TERMINATING",
        ElementTerminated = 7 "ELEMENT_TERMINATED", SequenceFlowDeleted = 15 "SEQUENCE_FLOW_DELETED",
        ActivateElement = 8 "ACTIVATE_ELEMENT", CompleteElement = 9 "COMPLETE_ELEMENT",
        TerminateElement = 10 "TERMINATE_ELEMENT", ElementMigrated = 11 "ELEMENT_MIGRATED",
        CompleteExecutionListener = 12 "COMPLETE_EXECUTION_LISTENER", AncestorMigrated = 13 "ANCESTOR_MIGRATED",
        ContinueTerminatingElement = 14 "CONTINUE_TERMINATING_ELEMENT",
    }
    IncidentIntent {
        Created = 0 "CREATED", Resolve = 1 "RESOLVE", Resolved = 2 "RESOLVED", Migrated = 3 "MIGRATED",
    }
    MessageIntent {
        Publish = 0 "PUBLISH", Published = 1 "PUBLISHED", Expire = 2 "EXPIRE", Expired = 3 "EXPIRED",
    }
    MessageSubscriptionIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Correlating = 8 "CORRELATING", Correlate = 2 "CORRELATE",
        Correlated = 3 "CORRELATED", Reject = 4 "REJECT", Rejected = 5 "REJECTED", Delete = 6 "DELETE",
        Deleted = 7 "DELETED", Migrate = 9 "MIGRATE", Migrated = 10 "MIGRATED",
    }
    ProcessMessageSubscriptionIntent {
        Creating = 0 "CREATING", Create = 1 "CREATE", Created = 2 "CREATED", Correlate = 3 "CORRELATE",
        Correlated = 4 "CORRELATED", Deleting = 5 "DELETING", Delete = 6 "DELETE", Deleted = 7 "DELETED",
        Migrated = 8 "MIGRATED",
    }
    JobBatchIntent {
        Activate = 0 "ACTIVATE", Activated = 1 "ACTIVATED",
    }
    TimerIntent {
        Created = 0 "CREATED", Trigger = 1 "TRIGGER", Triggered = 2 "TRIGGERED", Cancel = 3 "CANCEL",
        Canceled = 4 "CANCELED", Migrated = 5 "MIGRATED",
    }
    MessageStartEventSubscriptionIntent {
        Created = 0 "CREATED", Correlated = 1 "CORRELATED", Deleted = 2 "DELETED",
    }
    VariableIntent {
        Created = 0 "CREATED", Updated = 1 "UPDATED", Migrated = 2 "MIGRATED",
    }
    VariableDocumentIntent {
        Update = 0 "UPDATE", Updated = 1 "UPDATED", Updating = 2 "UPDATING", UpdateDenied = 3 "UPDATE_DENIED",
    }
    ProcessInstanceCreationIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", CreateWithAwaitingResult = 2 "CREATE_WITH_AWAITING_RESULT",
    }
    ErrorIntent {
        Created = 0 "CREATED",
    }
    ProcessInstanceResultIntent {
        Completed = 0 "COMPLETED",
    }
    ProcessIntent {
        Created = 0 "CREATED", Deleting = 1 "DELETING", Deleted = 2 "DELETED",
    }
    DeploymentDistributionIntent {
        Distributing = 0 "DISTRIBUTING", Complete = 1 "COMPLETE", Completed = 2 "COMPLETED",
    }
    ProcessEventIntent {
        Triggering = 0 "TRIGGERING", Triggered = 1 "TRIGGERED",
    }
    DecisionIntent {
        Created = 0 "CREATED", Deleted = 1 "DELETED",
    }
    DecisionRequirementsIntent {
        Created = 0 "CREATED", Deleted = 1 "DELETED",
    }
    DecisionEvaluationIntent {
        Evaluated = 0 "EVALUATED", Failed = 1 "FAILED", Evaluate = 2 "EVALUATE",
    }
    ProcessInstanceModificationIntent {
        Modify = 0 "MODIFY", Modified = 1 "MODIFIED",
    }
    EscalationIntent {
        Escalated = 0 "ESCALATED", NotEscalated = 1 "NOT_ESCALATED",
    }
    SignalSubscriptionIntent {
        Created = 0 "CREATED", Deleted = 1 "DELETED", Migrated = 2 "MIGRATED",
    }
    SignalIntent {
        Broadcast = 0 "BROADCAST", Broadcasted = 1 "BROADCASTED",
    }
    ResourceDeletionIntent {
        Delete = 0 "DELETE", Deleting = 1 "DELETING", Deleted = 2 "DELETED",
    }
    CommandDistributionIntent {
        Started = 0 "STARTED", Distributing = 1 "DISTRIBUTING", Acknowledge = 2 "ACKNOWLEDGE",
        Acknowledged = 3 "ACKNOWLEDGED", Finished = 4 "FINISHED", Enqueued = 5 "ENQUEUED",
        ContinuationRequested = 6 "CONTINUATION_REQUESTED", Continued = 7 "CONTINUED", Finish = 8 "FINISH",
        Continue = 9 "CONTINUE",
    }
    ProcessInstanceBatchIntent {
        Terminate = 0 "TERMINATE", Activate = 1 "ACTIVATE", Terminated = 2 "TERMINATED", Activated = 3 "ACTIVATED",
    }
    MessageBatchIntent {
        Expire = 0 "EXPIRE",
    }
    FormIntent {
        Created = 0 "CREATED", Deleted = 1 "DELETED",
    }
    UserTaskIntent {
        Creating = 0 "CREATING", Created = 1 "CREATED", Complete = 2 "COMPLETE", Completing = 3 "COMPLETING",
        Completed = 4 "COMPLETED", Canceling = 5 "CANCELING", Canceled = 6 "CANCELED", Assign = 7 "ASSIGN",
        Assigning = 8 "ASSIGNING", Assigned = 9 "ASSIGNED", Claim = 10 "CLAIM", Update = 11 "UPDATE",
        Updating = 12 "UPDATING", Updated = 13 "UPDATED", Migrated = 14 "MIGRATED",
        CompleteTaskListener = 15 "COMPLETE_TASK_LISTENER", DenyTaskListener = 16 "DENY_TASK_LISTENER",
        CompletionDenied = 17 "COMPLETION_DENIED", Corrected = 18 "CORRECTED",
        AssignmentDenied = 19 "ASSIGNMENT_DENIED", Claiming = 20 "CLAIMING", UpdateDenied = 21 "UPDATE_DENIED",
        Create = 22 "CREATE", Cancel = 23 "CANCEL",
    }
    ProcessInstanceMigrationIntent {
        Migrate = 0 "MIGRATE", Migrated = 1 "MIGRATED",
    }
    CompensationSubscriptionIntent {
        Created = 0 "CREATED", Triggered = 1 "TRIGGERED", Completed = 2 "COMPLETED", Deleted = 3 "DELETED",
        Migrated = 4 "MIGRATED",
    }
    ConditionalSubscriptionIntent {
        Created = 0 "CREATED", Trigger = 1 "TRIGGER", Triggered = 2 "TRIGGERED", Deleted = 3 "DELETED",
        Migrated = 4 "MIGRATED",
        // Our own: further subscriptions of an instance with many are to be looked at.
        Evaluate = 100 "EVALUATE",
    }
    ConditionalEvaluationIntent {
        Evaluate = 0 "EVALUATE", Evaluated = 1 "EVALUATED",
    }
    MessageCorrelationIntent {
        Correlate = 1 "CORRELATE", Correlating = 2 "CORRELATING", Correlated = 3 "CORRELATED",
        NotCorrelated = 4 "NOT_CORRELATED",
    }
    UserIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Update = 2 "UPDATE", Updated = 3 "UPDATED", Delete = 4 "DELETE",
        Deleted = 5 "DELETED", CreateInitialAdmin = 6 "CREATE_INITIAL_ADMIN",
        InitialAdminCreated = 7 "INITIAL_ADMIN_CREATED",
    }
    ExpressionIntent {
        Evaluate = 0 "EVALUATE", Evaluated = 1 "EVALUATED",
    }
    PurgeIntent {
        Purge = 0 "PURGE", Purged = 1 "PURGED",
    }
    GlobalListenerIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Update = 2 "UPDATE", Updated = 3 "UPDATED", Delete = 4 "DELETE",
        Deleted = 5 "DELETED",
    }
    GlobalListenerBatchIntent {
        Configure = 0 "CONFIGURE", Configured = 1 "CONFIGURED",
    }
    ClockIntent {
        Pin = 0 "PIN", Pinned = 1 "PINNED", Reset = 2 "RESET", Resetted = 3 "RESETTED",
    }
    AuthorizationIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Delete = 2 "DELETE", Deleted = 3 "DELETED", Update = 4 "UPDATE",
        Updated = 5 "UPDATED",
    }
    ResourceIntent {
        Created = 0 "CREATED", Deleted = 1 "DELETED", Fetch = 2 "FETCH", Fetched = 3 "FETCHED",
    }
    TenantIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Update = 2 "UPDATE", Updated = 3 "UPDATED", Delete = 4 "DELETE",
        Deleted = 5 "DELETED", AddEntity = 6 "ADD_ENTITY", EntityAdded = 7 "ENTITY_ADDED",
        RemoveEntity = 8 "REMOVE_ENTITY", EntityRemoved = 9 "ENTITY_REMOVED",
    }
    GroupIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Update = 2 "UPDATE", Updated = 3 "UPDATED", Delete = 4 "DELETE",
        Deleted = 5 "DELETED", AddEntity = 6 "ADD_ENTITY", EntityAdded = 7 "ENTITY_ADDED",
        RemoveEntity = 8 "REMOVE_ENTITY", EntityRemoved = 9 "ENTITY_REMOVED",
    }
    MappingRuleIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Delete = 2 "DELETE", Deleted = 3 "DELETED", Update = 4 "UPDATE",
        Updated = 5 "UPDATED",
    }
    IdentitySetupIntent {
        Initialize = 0 "INITIALIZE", Initialized = 1 "INITIALIZED",
    }
    RoleIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Update = 2 "UPDATE", Updated = 3 "UPDATED", Delete = 4 "DELETE",
        Deleted = 5 "DELETED", AddEntity = 6 "ADD_ENTITY", EntityAdded = 7 "ENTITY_ADDED",
        RemoveEntity = 8 "REMOVE_ENTITY", EntityRemoved = 9 "ENTITY_REMOVED",
    }
    BatchOperationCreationIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Initialize = 2 "INITIALIZE", Initializing = 3 "INITIALIZING",
        FinishInitialization = 4 "FINISH_INITIALIZATION", Initialized = 5 "INITIALIZED", Fail = 6 "FAIL",
        Failed = 7 "FAILED", Cancel = 8 "CANCEL", Canceled = 9 "CANCELED", Suspend = 10 "SUSPEND",
        Suspended = 11 "SUSPENDED", Resume = 12 "RESUME", Resumed = 13 "RESUMED", Complete = 14 "COMPLETE",
        Completed = 15 "COMPLETED", CompletePartition = 16 "COMPLETE_PARTITION",
        PartitionCompleted = 17 "PARTITION_COMPLETED", FailPartition = 18 "FAIL_PARTITION",
        PartitionFailed = 19 "PARTITION_FAILED",
    }
    BatchOperationExecutionIntent {
        Execute = 0 "EXECUTE", Executing = 1 "EXECUTING", Executed = 2 "EXECUTED",
    }
    BatchOperationChunkIntent {
        Create = 0 "CREATE", Created = 1 "CREATED",
    }
    AdHocSubProcessInstructionIntent {
        Activate = 0 "ACTIVATE", Activated = 1 "ACTIVATED", Complete = 2 "COMPLETE", Completed = 3 "COMPLETED",
    }
    AsyncRequestIntent {
        Received = 0 "RECEIVED", Processed = 1 "PROCESSED",
    }
    UsageMetricIntent {
        Export = 0 "EXPORT", Exported = 1 "EXPORTED",
    }
    MultiInstanceIntent {
        InputCollectionEvaluated = 0 "INPUT_COLLECTION_EVALUATED",
        // Our own: the result of one inner instance of a long loop.
        OutputElementEvaluated = 100 "OUTPUT_ELEMENT_EVALUATED",
        // Our own: all results that waited are in the collection of the element.
        OutputCollectionWritten = 101 "OUTPUT_COLLECTION_WRITTEN",
    }
    RuntimeInstructionIntent {
        Interrupted = 0 "INTERRUPTED",
    }
    ScaleIntent {
        ScaleUp = 1 "SCALE_UP", ScalingUp = 2 "SCALING_UP", ScaledUp = 3 "SCALED_UP", Status = 4 "STATUS",
        StatusResponse = 5 "STATUS_RESPONSE", MarkPartitionBootstrapped = 6 "MARK_PARTITION_BOOTSTRAPPED",
        PartitionBootstrapped = 7 "PARTITION_BOOTSTRAPPED",
    }
    CheckpointIntent {
        Create = 0 "CREATE", Created = 1 "CREATED", Ignored = 2 "IGNORED", ConfirmBackup = 3 "CONFIRM_BACKUP",
        ConfirmedBackup = 4 "CONFIRMED_BACKUP",
    }
    JobStreamIntent {
        Add = 0 "ADD", Added = 1 "ADDED", Remove = 2 "REMOVE", Removed = 3 "REMOVED", Grant = 4 "GRANT",
        Granted = 5 "GRANTED", Yield = 6 "YIELD", Yielded = 7 "YIELDED",
    }
    JobPollIntent {
        Yield = 0 "YIELD", Yielded = 1 "YIELDED", Acknowledge = 2 "ACKNOWLEDGE", Acknowledged = 3 "ACKNOWLEDGED",
    }
    FeatureLevelIntent {
        Raise = 0 "RAISE", Raised = 1 "RAISED",
    }
    IncarnationIntent {
        Raise = 0 "RAISE", Raised = 1 "RAISED",
    }
    ClusterIntent {
        Bootstrap = 0 "BOOTSTRAP", Bootstrapped = 1 "BOOTSTRAPPED",
    }
    NodeIntent {
        Start = 0 "START", Started = 1 "STARTED",
    }
    SettingsIntent {
        Change = 0 "CHANGE", Changed = 1 "CHANGED",
    }
    WorkIntent {
        Enqueued = 0 "ENQUEUED", Continue = 1 "CONTINUE", Dequeued = 2 "DEQUEUED", Abandoned = 3 "ABANDONED",
    }
    OutboxIntent {
        Enqueued = 0 "ENQUEUED", Acknowledge = 1 "ACKNOWLEDGE", Acknowledged = 2 "ACKNOWLEDGED",
        Received = 3 "RECEIVED",
    }
}
