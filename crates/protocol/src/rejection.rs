//! Why a command was refused.

use minicbor::{Decode, Encode};

use crate::Text;

/// The kinds of rejections, with the names and codes of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum RejectionType {
    /// The command itself is wrong.
    #[n(0)]
    InvalidArgument,
    /// What it names does not exist.
    #[n(1)]
    NotFound,
    /// What it would create exists.
    #[n(2)]
    AlreadyExists,
    /// What it names is in a state that does not allow it.
    #[n(3)]
    InvalidState,
    /// Processing it failed inside the engine.
    #[n(4)]
    ProcessingError,
    /// Its effects do not fit the limits of one batch.
    #[n(5)]
    ExceededBatchRecordSize,
    /// The caller is not known.
    #[n(6)]
    Unauthorized,
    /// The caller may not do this.
    #[n(7)]
    Forbidden,
}

impl RejectionType {
    /// The name on the wire, e.g. `NOT_FOUND`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::InvalidState => "INVALID_STATE",
            Self::ProcessingError => "PROCESSING_ERROR",
            Self::ExceededBatchRecordSize => "EXCEEDED_BATCH_RECORD_SIZE",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Forbidden => "FORBIDDEN",
        }
    }
}

/// A refused command: it changed nothing, and says why in a full sentence.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Rejection {
    /// The kind, which decides the status code.
    #[n(0)]
    pub rejection_type: RejectionType,
    /// The sentence.
    #[n(1)]
    pub reason: Text,
}

impl Rejection {
    /// A rejection of the given kind.
    pub fn new(rejection_type: RejectionType, reason: impl Into<Text>) -> Self {
        Rejection { rejection_type, reason: reason.into() }
    }

    /// What the command names does not exist.
    pub fn not_found(reason: impl Into<Text>) -> Self {
        Self::new(RejectionType::NotFound, reason)
    }

    /// What the command names is in the wrong state.
    pub fn invalid_state(reason: impl Into<Text>) -> Self {
        Self::new(RejectionType::InvalidState, reason)
    }

    /// The command itself is wrong.
    pub fn invalid_argument(reason: impl Into<Text>) -> Self {
        Self::new(RejectionType::InvalidArgument, reason)
    }

    /// What the command would create exists.
    pub fn already_exists(reason: impl Into<Text>) -> Self {
        Self::new(RejectionType::AlreadyExists, reason)
    }
}
