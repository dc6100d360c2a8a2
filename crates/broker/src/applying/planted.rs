//! An end of the process that a test plants.
//!
//! Every known way to end the process with a command is a mistake that gets mended, so a test of what comes after such an end
//! cannot rely on one. This module is part of builds with debug assertions only: the binary that users run does not
//! know the variable. (A cargo feature would be switched on for all crates that are built together, so that the other tests would not
//! test what users run either, and the end-to-end tests would need a second binary.)

use std::sync::LazyLock;

use protocol::{Command, Payload};

/// The process ends at every creation of an instance of the process with this id.
static ABORT_AT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("OSMIA_ABORT_AT").ok());

pub(super) fn strike(command: &Command) {
    if let Some(id) = &*ABORT_AT
        && let Payload::ProcessInstanceCreation(_, value) = &command.payload
        && *value.bpmn_process_id == **id
    {
        // As an overflow of the stack does: nothing is unwound, nothing is written.
        std::process::abort();
    }
}
