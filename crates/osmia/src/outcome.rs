//! What a command of the program comes to.

/// Nothing, or the error that ends the process with its sentence.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;
