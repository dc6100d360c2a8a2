//! Problems: what becomes an incident.

use protocol::ErrorType;

/// Something that a person has to put right.
#[derive(Debug)]
pub(crate) struct Problem {
    pub error_type: ErrorType,
    pub message: String,
}

impl Problem {
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Problem { error_type, message: message.into() }
    }
}
