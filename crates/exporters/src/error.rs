//! What can go wrong in an exporter.

/// An exporter cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum ExporterError {
    /// There is no exporter of this class.
    #[error("The exporter '{name}' asks for the class '{class}', which does not exist. Known classes are: {known}")]
    UnknownClass {
        name: String,
        /// The class that was asked for.
        class: String,
        /// The classes that exist.
        known: &'static str,
    },
    /// An argument is missing or wrong.
    #[error("The argument '{argument}' of the exporter '{name}' {problem}")]
    Argument {
        name: String,
        argument: String,
        /// What is wrong and what to do, as the rest of the sentence.
        problem: String,
    },
    /// The target did not take the records; the same records are tried again.
    #[error("The exporter '{name}' could not {action}: {source}")]
    Target { name: String, action: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// What the exporter took since its last acknowledgement may be lost. It is opened again and gets that again.
    #[error("The exporter '{name}' could not {action}: {source}. It begins again after the last acknowledged records.")]
    Lost { name: String, action: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl ExporterError {
    /// An argument is missing or wrong; `problem` ends the sentence "the argument … of the exporter …".
    pub fn argument(name: impl Into<String>, argument: impl Into<String>, problem: impl Into<String>) -> Self {
        ExporterError::Argument { name: name.into(), argument: argument.into(), problem: problem.into() }
    }

    /// The target did not take the records.
    pub fn target(
        name: impl Into<String>,
        action: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        ExporterError::Target { name: name.into(), action: action.into(), source: source.into() }
    }

    /// What was taken and not acknowledged may be lost.
    pub fn lost(
        name: impl Into<String>,
        action: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        ExporterError::Lost { name: name.into(), action: action.into(), source: source.into() }
    }

    /// Whether what was taken and not acknowledged may be lost, so that it has to come again.
    pub fn is_loss(&self) -> bool {
        matches!(self, ExporterError::Lost { .. })
    }
}
