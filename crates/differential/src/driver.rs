//! The two sides of a comparison behind one interface.

use gateway_interface::*;
use serde_json::Value;
use tonic::Code;

use crate::step::UserTaskVerb;

/// A command as a client sends it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are those of the procedures")]
pub enum Request {
    Deploy(DeployResourceRequest),
    Create(CreateProcessInstanceRequest),
    CreateWithResult(CreateProcessInstanceWithResultRequest),
    Activate(ActivateJobsRequest),
    Complete(CompleteJobRequest),
    Fail(FailJobRequest),
    Throw(ThrowErrorRequest),
    UpdateRetries(UpdateJobRetriesRequest),
    UpdateTimeout(UpdateJobTimeoutRequest),
    UserTask(UserTaskRequest),
    Choose(ChoiceRequest),
    Decide(ChoiceRequest),
    Publish(PublishMessageRequest),
    Broadcast(BroadcastSignalRequest),
    Evaluate(EvaluateDecisionRequest),
    SetVariables(SetVariablesRequest),
    Resolve(ResolveIncidentRequest),
    Cancel(CancelProcessInstanceRequest),
    Modify(ModifyProcessInstanceRequest),
    /// Nobody waits for the answer.
    SetVariablesLater(SetVariablesRequest),
    Migrate(MigrateProcessInstanceRequest),
    Delete(DeleteResourceRequest),
}

/// A command about a user task, which gRPC has none of.
#[derive(Clone, Debug)]
pub struct UserTaskRequest {
    /// What is done.
    pub verb: UserTaskVerb,
    /// Key of the user task.
    pub key: i64,
    /// Attributes by their names in records.
    pub attributes: serde_json::Map<String, Value>,
}

/// What an ad-hoc sub-process is to do next, as a client or the worker of its job says it; the reference's gateway has no command
/// for the one and takes no result for the other.
#[derive(Clone, Debug)]
pub struct ChoiceRequest {
    /// Key of the ad-hoc sub-process or of its job.
    pub key: i64,
    /// What begins: the ids, with variables or none.
    pub elements: Vec<(String, String)>,
    /// Whether what still runs is terminated.
    pub cancels: bool,
    /// Whether nothing further begins; only a worker says so.
    pub is_fulfilled: bool,
    /// What the worker brings, or nothing.
    pub variables: String,
}

/// What came back.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It was done, and there is nothing to tell.
    Done,
    /// Deployed: ids with their versions.
    Deployed {
        /// Processes.
        processes: Vec<(String, i32)>,
        /// Decisions and their graphs.
        decisions: Vec<(String, i32)>,
    },
    /// Evaluated: the output of the decision, or the decision that failed.
    Evaluated(Result<String, String>),
    /// Created: the process id and version.
    Created(String, i32),
    /// Activated jobs.
    Activated(Vec<ActivatedJob>),
    /// The result is waited for.
    Awaiting,
    /// It was refused.
    Refused(Refusal),
}

/// A refused command.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Status code.
    pub code: Code,
    /// Kind of the rejection, where one is named.
    pub kind: Option<String>,
    /// The sentence, for people.
    pub reason: String,
}

/// A side that cannot continue.
#[derive(Debug, thiserror::Error)]
#[error("The {side} {problem}")]
pub struct DriverError {
    /// Which side.
    pub side: &'static str,
    /// What happened.
    pub problem: String,
}

/// One side.
pub trait Driver {
    /// Starts afresh, with nothing deployed, at [`crate::START_MILLISECONDS`].
    ///
    /// # Errors
    /// When the side cannot be started.
    fn reset(&mut self) -> Result<(), DriverError>;

    /// Carries out a command and all that follows from it.
    ///
    /// # Errors
    /// When the side is gone.
    fn request(&mut self, request: Request) -> Result<Answer, DriverError>;

    /// Moves the clock and lets everything happen that is due.
    ///
    /// # Errors
    /// When the side is gone.
    fn advance(&mut self, milliseconds: i64) -> Result<(), DriverError>;

    /// Events and rejections since the last call, as exporters see them.
    ///
    /// # Errors
    /// When the side is gone.
    fn records(&mut self) -> Result<Vec<Value>, DriverError>;

    /// Results of instances that were waited for and ended since the last call: process id and variables.
    /// `ended` is how many of those that are waited for have ended by now.
    ///
    /// # Errors
    /// When the side is gone, or a result does not come.
    fn results(&mut self, ended: usize) -> Result<Vec<(String, String)>, DriverError>;
}
