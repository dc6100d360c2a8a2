//! An end of the process and a very long command that a test plants.
//!
//! Every known way to end the process with a command, or to compute for long, is a mistake that gets mended, so a test of what
//! comes after it cannot rely on one. This module is part of builds with debug assertions only: the binary that users run does not
//! know the variables. (A cargo feature would be switched on for all crates that are built together, so that the other tests would not
//! test what users run either, and the end-to-end tests would need a second binary.)

use std::sync::LazyLock;
use std::time::Instant;

use protocol::{Command, Payload};

/// The process ends at every creation of an instance of the process with this id.
static ABORT_AT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("OSMIA_ABORT_AT").ok());

/// So many seconds are computed at every creation of an instance of the process with the id before them: `slow 12`.
static COMPUTE_AT: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
    let planted = std::env::var("OSMIA_COMPUTE_AT").ok()?;
    let (id, seconds) = planted.split_once(' ')?;
    Some((id.to_owned(), seconds.parse().ok()?))
});

pub(super) fn strike(command: &Command) {
    let Payload::ProcessInstanceCreation(_, value) = &command.payload else { return };
    if ABORT_AT.as_ref().is_some_and(|id| *value.bpmn_process_id == **id) {
        // As an overflow of the stack does: nothing is unwound, nothing is written.
        std::process::abort();
    }
    if let Some((id, seconds)) = &*COMPUTE_AT
        && *value.bpmn_process_id == **id
    {
        let begin = Instant::now();
        while begin.elapsed().as_secs() < *seconds {
            std::hint::spin_loop();
        }
    }
}
