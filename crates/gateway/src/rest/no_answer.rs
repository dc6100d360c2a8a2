//! Why a request has no answer of its own.

use super::problem::Problem;
use super::reception::NotTaken;
use crate::outcome::Failure;

/// Why a request is not answered as it was meant.
#[derive(Debug)]
pub(in crate::rest) enum NoAnswer {
    Problem(Problem),
    Failure(Failure),
}

impl From<Problem> for NoAnswer {
    fn from(problem: Problem) -> Self {
        NoAnswer::Problem(problem)
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        NoAnswer::Failure(failure)
    }
}

impl From<NotTaken> for NoAnswer {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Problem(problem) => NoAnswer::Problem(problem),
            NotTaken::Failure(failure) => NoAnswer::Failure(failure),
        }
    }
}
