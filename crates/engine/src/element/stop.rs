//! Why the work of an element could not begin.

use crate::execution::Failure;
use crate::execution::problem::Problem;

/// Why the work of an element could not begin.
pub(crate) enum Stop {
    /// Something that a person has to put right.
    Problem(Problem),
    /// A broken invariant.
    Failure(Failure),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Stop::Problem(problem)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failure(failure)
    }
}
