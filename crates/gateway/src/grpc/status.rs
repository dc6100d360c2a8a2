//! How outcomes become gRPC statuses.

use broker::SubmitError;
use prost::Message;
use protocol::RejectionType;
use tonic::{Code, Status};

use crate::outcome::Failure;

/// Room for a status in the header block: clients accept 8 KiB of headers in all.
const HEADER_BYTES_MAX: usize = 7_680;

/// `google.rpc.Status`, which clients find in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// A status that carries itself as details too, where both fit: a long report of a deployment is worth more than its copy.
pub(crate) fn status(code: Code, message: impl Into<String>) -> Status {
    let message = shorten(message.into());
    let details = RichStatus { code: code as i32, message: message.clone() }.encode_to_vec();
    let base64_bytes = details.len().div_ceil(3) * 4;
    if header_bytes(&message) + base64_bytes > HEADER_BYTES_MAX {
        return Status::new(code, message);
    }
    Status::with_details(code, message, details.into())
}

/// Why there is no answer. `request` is the name of the procedure.
pub(crate) fn of(request: &str, failure: &Failure) -> Status {
    let message = match failure {
        Failure::OtherTenant(_) => failure.message(&format!("gRPC request {request}")),
        _ => failure.message(request),
    };
    status(code(failure), message)
}

fn code(failure: &Failure) -> Code {
    match failure {
        Failure::InvalidArgument(_) | Failure::OtherTenant(_) => Code::InvalidArgument,
        Failure::Unsupported { .. } => Code::Unimplemented,
        Failure::Rejected(refusal) => code_of(refusal.rejection.rejection_type),
        Failure::NotSubmitted(error) => match error {
            SubmitError::ResourceExhausted { .. } | SubmitError::PayloadTooLarge { .. } => Code::ResourceExhausted,
            SubmitError::Unavailable { .. }
            | SubmitError::Unknown { .. }
            | SubmitError::NoSuchPartition { .. }
            | SubmitError::Stopped => Code::Unavailable,
        },
        Failure::Stopped(_) | Failure::ShuttingDown => Code::Unavailable,
        Failure::TimedOut { .. } | Failure::ArrivedTooLate(_) => Code::DeadlineExceeded,
        Failure::Exhausted(_) | Failure::AnswersUnread { .. } => Code::ResourceExhausted,
        Failure::Unreadable { .. } => Code::Internal,
    }
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

/// How long a message is in the header block, where what is not plain ASCII is percent-encoded.
fn header_bytes(message: &str) -> usize {
    message.chars().map(character_header_bytes).sum()
}

fn character_header_bytes(character: char) -> usize {
    match character {
        '%' => 3,
        ' '..='~' => 1,
        other => 3 * other.len_utf8(),
    }
}

fn shorten(mut message: String) -> String {
    if header_bytes(&message) > HEADER_BYTES_MAX {
        const REMARK_BYTES: usize = 64;
        let dropped = message.len();
        let mut used = 0;
        let mut fits = |character: char| {
            used += character_header_bytes(character);
            used <= HEADER_BYTES_MAX - REMARK_BYTES
        };
        let end = message.chars().take_while(|character| fits(*character)).map(char::len_utf8).sum();
        message.truncate(end);
        message.push_str(&format!("… ({} more bytes)", dropped - end));
    }
    message
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::{Key, PartitionId, Rejection};

    use super::*;

    #[test]
    fn a_rejection_keeps_its_frame_in_message_and_details() {
        let rejection = Rejection::invalid_state("The job is in state 'FAILED'.");
        let status = of("CompleteJob", &Failure::rejected("COMPLETE", Key::NONE, rejection));
        let text = "Command 'COMPLETE' rejected with code 'INVALID_STATE': The job is in state 'FAILED'.";
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(status.message(), text);
        let details = RichStatus::decode(status.details()).unwrap();
        assert_eq!((details.code, details.message.as_str()), (Code::FailedPrecondition as i32, text));
    }

    #[test]
    fn every_failure_has_the_code_that_clients_act_on() {
        let (partition, limit) = (PartitionId(1), Duration::from_secs(15));
        let exhausted = SubmitError::ResourceExhausted { partition, reason: "the limit".to_owned() };
        for (failure, code) in [
            (Failure::InvalidArgument("wrong".to_owned()), Code::InvalidArgument),
            (Failure::Unsupported { with: "a result", remark: "." }, Code::Unimplemented),
            (Failure::NotSubmitted(exhausted), Code::ResourceExhausted),
            (Failure::NotSubmitted(SubmitError::Stopped), Code::Unavailable),
            (Failure::Stopped(partition), Code::Unavailable),
            (Failure::TimedOut { partition, limit, late: "It may." }, Code::DeadlineExceeded),
            (Failure::Unreadable { value_type: "JOB", intent: "CREATED" }, Code::Internal),
        ] {
            assert_eq!(of("CompleteJob", &failure).code(), code, "{failure:?}");
        }
        let status = of("PublishMessage", &Failure::OtherTenant("other".to_owned()));
        assert!(status.message().starts_with("Expected to handle gRPC request PublishMessage with"), "{status}");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let status = status(Code::InvalidArgument, "ä".repeat(HEADER_BYTES_MAX));
        assert!(header_bytes(status.message()) <= HEADER_BYTES_MAX);
        assert!(status.details().is_empty(), "there is no room for a copy");
        assert!(status.message().ends_with("more bytes)"));
    }
}
