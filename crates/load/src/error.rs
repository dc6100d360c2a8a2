//! What can end a run early.

use std::path::PathBuf;

/// Why a run could not be made or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum LoadError {
    /// An option has an invalid value.
    #[error("{what} is {value}, but must be {expected}.")]
    Option {
        /// What the option says, at the beginning of a sentence.
        what: &'static str,
        value: String,
        expected: &'static str,
    },
    /// The address cannot be read as an address.
    #[error("\"{address}\" is not an address of a gateway: {reason}. Give a host and a port, such as 127.0.0.1:26500.")]
    Address {
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing answers at the address.
    #[error("No connection to the gateway at {address}: {reason}. Start it, or give another address.")]
    Connect {
        /// Where the gateway was expected.
        address: String,
        /// What the network said.
        reason: String,
    },
    /// A call that the run depends on was refused.
    #[error("The gateway refused {call}: {code} {message}")]
    Refused {
        /// The name of the call.
        call: &'static str,
        /// The name of the gRPC status code.
        code: &'static str,
        /// What the gateway said.
        message: String,
    },
    /// The test instances before the measurement did not complete.
    #[error(
        "None of the {created} test instances of {process} completed within {seconds} s, so there is nothing to \
         measure. Workers: {failures}"
    )]
    NothingCompletes {
        process: String,
        /// How many instances were acknowledged.
        created: u64,
        /// How long the tool waited.
        seconds: u64,
        /// What the workers received as answers.
        failures: String,
    },
    /// The instances that the measurement needs could not be created.
    #[error("Only {created} of {wanted} instances that are to wait could be created. Failures: {failures}.")]
    NotCreated {
        /// How many were acknowledged.
        created: u64,
        /// How many are needed.
        wanted: u64,
        /// What the gateway said.
        failures: String,
    },
    /// The timers would have been due before all instances waited for them.
    #[error(
        "Only {created} of {wanted} instances waited for their timer {seconds} s after the first was created, so that \
         they would not be due together. Give more time until they are due. Failures: {failures}."
    )]
    DueTooSoon {
        /// How many were acknowledged.
        created: u64,
        /// How many are needed.
        wanted: u64,
        /// The time for it.
        seconds: u64,
        /// What the gateway said.
        failures: String,
    },
    /// The run was made, but what it found is wrong.
    #[error("{0}")]
    Wrong(String),
    /// A process to observe is not there.
    #[error("Process {pid} cannot be observed: {reason}. Give the id of a running process.")]
    Process {
        pid: u32,
        /// What the system said.
        reason: String,
    },
    /// The file for the sync probe cannot be written.
    #[error(
        "The sync probe cannot write to {path}: {source}. Give a directory on the disk of the server that can be written."
    )]
    FsyncProbe {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file of earlier results cannot be used.
    #[error(
        "The history {path} cannot be used: {reason}. Give a file of results of this tool, or one that does not exist."
    )]
    History {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The ledger cannot be written or read.
    #[error(
        "The ledger {path} cannot be used: {reason}. For a run give a file that does not exist yet, for an audit that of a run."
    )]
    Ledger {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A node cannot be asked what it holds.
    #[error(
        "The node at {address} cannot be searched: {reason}. Give the addresses for REST of nodes that run and have a read model."
    )]
    Search {
        address: String,
        /// What the node or the network said.
        reason: String,
    },
    /// The system refused a thread.
    #[error("The system refused to start a thread: {0}.")]
    Thread(std::io::Error),
    /// The run was dropped by its caller.
    #[error("The run was ended before its time.")]
    Ended,
}

/// Turns a status into the error that ends a run.
pub(crate) fn refused(call: &'static str, status: &tonic::Status) -> LoadError {
    LoadError::Refused { call, code: gateway_interface::code_name(status.code()), message: status.message().to_owned() }
}
