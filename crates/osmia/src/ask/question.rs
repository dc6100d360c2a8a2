//! What a command asks.

use super::rest::Rest;
use crate::client::Outcome;
use crate::output::Output;

/// A command that asks a running node over REST.
pub(crate) trait Question {
    fn ask(self, rest: &Rest, output: &Output) -> Outcome;
}
