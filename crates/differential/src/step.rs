//! What clients do, one step per line.
//!
//! | step | does |
//! |---|---|
//! | `deploy FILE…` | deploys files together |
//! | `create ID [{…}] [as NAME] [version N] [at ELEMENT,…] [until ELEMENT,…]` | creates an instance, at certain elements, to be terminated after others |
//! | `create-with-result ID [{…}] [as NAME] [fetch a,b]` | creates an instance and waits for its result |
//! | `activate TYPE N [timeout PT1M] [fetch a,b]` | activates jobs |
//! | `complete JOB [{…}] [result {…}]` | completes a job; of a task listener, with `denied`, `deniedReason` and `corrections` |
//! | `fail JOB RETRIES [{…}] [backoff PT10S] [message "…"]` | fails a job |
//! | `throw JOB CODE [{…}]` | throws an error from a job |
//! | `retries JOB N`, `timeout JOB PT1M` | changes a job |
//! | `user-task assign\|claim\|update\|complete TASK [{…}]` | a command about a user task with its attributes as they are in records |
//! | `choose ELEMENT [cancelling] activate ID [{…}] …` | says what an ad-hoc sub-process does next, perhaps instead of what it does |
//! | `decide JOB [{…}] [fulfilled] [cancelling] activate ID [{…}] …` | completes the job of an ad-hoc sub-process with what is next |
//! | `publish NAME KEY PT1H [{…}] [id ID]` | publishes a message with its time to live |
//! | `broadcast NAME [{…}]` | broadcasts a signal |
//! | `evaluate ID [{…}]` | evaluates a decision |
//! | `time PT10S` | moves the clock |
//! | `set ELEMENT {…} [later]`, `set-local ELEMENT {…} [later]` | sets variables; `later` waits for no answer |
//! | `resolve ELEMENT` | resolves the incident of an element |
//! | `cancel INSTANCE` | cancels an instance |
//! | `modify INSTANCE activate ELEMENT [in ELEMENT] [{…} [for SCOPE-ID]] … terminate ELEMENT …` | modifies an instance |
//! | `migrate INSTANCE to ID [version N] a=>b …` | migrates an instance |
//! | `delete ID [version N]` | deletes a process |
//!
//! A job or user task is named by its element. An element is named `[INSTANCE/]ID[#N]`: the Nth instance of the element, counted in the
//! process instance; without a number the first one that is there, and without a process instance the first one that has
//! it. The body of a multi-instance activity is `ID[]`. The name `missing` refers to nothing.

mod read;
mod write;

/// A name of an element instance or process instance; see the module.
pub type Name = String;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module describes the steps")]
pub enum Step {
    /// Each a file, or `NAME=FILE` to deploy it under another name.
    Deploy {
        files: Vec<String>,
    },
    Create {
        process: String,
        variables: String,
        options: CreateOptions,
    },
    Activate {
        job_type: String,
        count: i32,
        timeout: i64,
        fetch: Vec<String>,
    },
    Complete {
        job: Name,
        variables: String,
        result: Option<String>,
    },
    Fail {
        job: Name,
        retries: i32,
        variables: String,
        backoff: i64,
        message: String,
    },
    Throw {
        job: Name,
        code: String,
        variables: String,
    },
    Retries {
        job: Name,
        retries: i32,
    },
    Timeout {
        job: Name,
        timeout: i64,
    },
    UserTask {
        verb: UserTaskVerb,
        task: Name,
        attributes: String,
    },
    Choose {
        ad_hoc: Name,
        choice: Choice,
    },
    Decide {
        job: Name,
        variables: String,
        is_fulfilled: bool,
        choice: Choice,
    },
    Publish {
        name: String,
        key: String,
        time_to_live: i64,
        variables: String,
        id: String,
    },
    Broadcast {
        signal: String,
        variables: String,
    },
    Evaluate {
        decision: String,
        variables: String,
    },
    Time {
        milliseconds: i64,
    },
    Set {
        scope: Name,
        variables: String,
        local: bool,
        later: bool,
    },
    Resolve {
        element: Name,
    },
    Cancel {
        instance: Name,
    },
    Modify {
        instance: Name,
        changes: Vec<Modification>,
    },
    Migrate {
        instance: Name,
        process: String,
        version: i32,
        mappings: Vec<(String, String)>,
    },
    Delete {
        process: String,
        version: i32,
    },
}

/// What is done with a user task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the commands")]
pub enum UserTaskVerb {
    Assign,
    Claim,
    Update,
    Complete,
}

impl UserTaskVerb {
    const ALL: [UserTaskVerb; 4] =
        [UserTaskVerb::Assign, UserTaskVerb::Claim, UserTaskVerb::Update, UserTaskVerb::Complete];

    /// As it is in steps; in capitals it is the intent of the command.
    pub const fn name(self) -> &'static str {
        match self {
            UserTaskVerb::Assign => "assign",
            UserTaskVerb::Claim => "claim",
            UserTaskVerb::Update => "update",
            UserTaskVerb::Complete => "complete",
        }
    }
}

/// What an ad-hoc sub-process does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The ids of what begins, with variables or none.
    pub elements: Vec<(String, String)>,
    /// Whether what still runs is terminated.
    pub cancels: bool,
}

/// How an instance is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// Its name in later steps.
    pub name: Option<Name>,
    /// Version; -1 for the latest.
    pub version: i32,
    /// Elements to start at; none for the none start event.
    pub at: Vec<String>,
    /// Elements after which the instance is terminated.
    pub until: Vec<String>,
    /// Whether the result is waited for, with these variables (none for all).
    pub result: Option<Vec<String>>,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions { name: None, version: -1, at: Vec::new(), until: Vec::new(), result: None }
    }
}

/// One instruction of a modification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the module describes the steps")]
pub enum Modification {
    Activate { element: String, ancestor: Option<Name>, variables: Vec<(String, String)> },
    Terminate { element: Name },
}

/// A step that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("The step '{step}' cannot be read: {problem}. The steps are listed in crates/differential/src/step.rs.")]
pub struct StepError {
    /// The step as written.
    pub step: String,
    /// What is wrong with it.
    pub problem: String,
}

pub use read::{duration, read};
