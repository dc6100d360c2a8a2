//! How outcomes become gRPC statuses.

use broker::SubmitError;
use prost::Message;
use protocol::{Rejection, RejectionType};
use tonic::{Code, Status};

use crate::rpc::Rpc;

/// Longest message of a status. It travels twice in the header block, once as Base64, and clients accept 8 KiB of headers.
const MESSAGE_BYTES_MAX: usize = 2048;

/// `google.rpc.Status`, which clients find in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// A status that carries itself as details too.
pub(crate) fn status(code: Code, message: impl Into<String>) -> Status {
    let message = shorten(message.into());
    let details = RichStatus { code: code as i32, message: message.clone() }.encode_to_vec();
    Status::with_details(code, message, details.into())
}

/// A request that is wrong whatever the state is.
pub(crate) fn invalid_argument(message: impl Into<String>) -> Status {
    status(Code::InvalidArgument, message)
}

/// A command that was refused, by a partition or before it could reach one.
pub(crate) fn rejected(intent: &str, rejection: &Rejection) -> Status {
    let kind = rejection.rejection_type;
    status(code_of(kind), format!("Command '{intent}' rejected with code '{}': {}", kind.name(), rejection.reason))
}

/// A command that the broker did not take.
pub(crate) fn not_submitted(rpc: Rpc, error: &SubmitError) -> Status {
    let code = match error {
        SubmitError::ResourceExhausted { .. } | SubmitError::PayloadTooLarge { .. } => Code::ResourceExhausted,
        SubmitError::Unavailable { .. } | SubmitError::NoSuchPartition { .. } | SubmitError::Stopped => {
            Code::Unavailable
        }
    };
    status(code, format!("Expected to execute {}, but {error}.", rpc.name()))
}

/// The server is going down; the client should connect again.
pub(crate) fn shutting_down() -> Status {
    status(
        Code::Unavailable,
        "The server is shutting down. Connect again, to another node or to this one when it is back.",
    )
}

fn code_of(kind: RejectionType) -> Code {
    match kind {
        RejectionType::InvalidArgument => Code::InvalidArgument,
        RejectionType::NotFound => Code::NotFound,
        RejectionType::AlreadyExists => Code::AlreadyExists,
        RejectionType::InvalidState => Code::FailedPrecondition,
        RejectionType::ProcessingError => Code::Internal,
        RejectionType::ExceededBatchRecordSize => Code::Unknown,
        RejectionType::Unauthorized | RejectionType::Forbidden => Code::PermissionDenied,
    }
}

fn shorten(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let dropped = message.len();
        let mut end = MESSAGE_BYTES_MAX - 32;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(&format!("… ({} more bytes)", dropped - end));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_keeps_its_frame_in_message_and_details() {
        let status = rejected("COMPLETE", &Rejection::invalid_state("The job is in state 'FAILED'."));
        let text = "Command 'COMPLETE' rejected with code 'INVALID_STATE': The job is in state 'FAILED'.";
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(status.message(), text);
        let details = RichStatus::decode(status.details()).unwrap();
        assert_eq!((details.code, details.message.as_str()), (Code::FailedPrecondition as i32, text));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let status = invalid_argument("ä".repeat(MESSAGE_BYTES_MAX));
        assert!(status.message().len() <= MESSAGE_BYTES_MAX);
        assert!(status.message().ends_with("more bytes)"));
    }
}
