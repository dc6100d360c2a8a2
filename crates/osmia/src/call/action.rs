//! What a command does once it is connected.

use crate::client::{Client, Outcome};
use crate::output::Output;

/// A command that calls a running node.
pub(crate) trait Action {
    async fn carry_out(self, client: Client, output: &Output) -> Outcome;
}
