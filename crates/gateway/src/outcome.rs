//! What became of a request, whatever the protocol: an answer, or the reason why there is none. The protocols only render it.

use std::fmt::Display;
use std::time::Duration;

use broker::SubmitError;
use protocol::{Key, PartitionId, Payload, Rejection};

/// A place in the records of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPosition {
    /// The partition.
    pub partition: PartitionId,
    /// The position there.
    pub position: u64,
}

/// What became of a request.
pub(crate) type Outcome<T> = Result<Answered<T>, Failure>;

/// A request that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answered<T> {
    /// What the client is told.
    pub value: T,
    /// Whoever has read the records up to here has seen all of what happened; none when that was nothing.
    pub at: Option<RecordPosition>,
}

/// Why a request was not carried out, or why that is not known. The sentences name no protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// It is wrong, whatever the state is.
    InvalidArgument(String),
    /// It is for a tenant other than the only one. Holds the beginning of its id.
    OtherTenant(String),
    /// It asks for something that this version does not have.
    Unsupported {
        /// What it asks for.
        with: &'static str,
        /// The end of the sentence.
        remark: &'static str,
    },
    /// Its command was refused.
    Rejected(Box<Refusal>),
    /// Its command did not get as far as the log.
    NotSubmitted(SubmitError),
    /// The partition stopped before it answered.
    Stopped(PartitionId),
    /// The partition did not answer in time.
    TimedOut {
        /// The partition.
        partition: PartitionId,
        /// How long it had.
        limit: Duration,
        /// What may still happen.
        late: &'static str,
    },
    /// The rest of the request did not come.
    ArrivedTooLate(Duration),
    /// A limit of this gateway is reached, as the sentence says.
    Exhausted(String),
    /// Too much of what was answered is not read.
    AnswersUnread {
        /// By whom.
        whose: &'static str,
        /// The limit that is reached.
        limit_bytes: usize,
    },
    /// The server is going down.
    ShuttingDown,
    /// It was carried out, but the answer is not one to it.
    Unreadable {
        /// What was answered.
        value_type: &'static str,
        intent: &'static str,
    },
}

/// A command that was refused, by a partition or before it could reach one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// What the command wanted.
    pub intent: &'static str,
    /// What it was about, if anything.
    pub key: Key,
    /// The kind and the sentence.
    pub rejection: Rejection,
    /// Where a partition noted it.
    pub at: Option<RecordPosition>,
}

impl Failure {
    /// `Expected to <action> with <field> to be <…>, but it was <…>`
    pub(crate) fn expected(action: &str, field: &str, rule: &str, found: impl Display) -> Failure {
        Failure::InvalidArgument(format!("Expected to {action} with {field} to be {rule}, but it was {found}"))
    }

    /// A command that no partition has to see to know that it is refused.
    pub(crate) fn rejected(intent: &'static str, key: Key, rejection: Rejection) -> Failure {
        Failure::Rejected(Box::new(Refusal { intent, key, rejection, at: None }))
    }

    /// An answer of the engine that is none to the request.
    pub(crate) fn unreadable(payload: &Payload) -> Failure {
        let (value_type, intent) = (payload.value_type().name(), payload.intent_name());
        tracing::error!(value_type, intent, "a command was answered with something else");
        Failure::Unreadable { value_type, intent }
    }
}

impl Refusal {
    /// The sentence in the frame that users look for, the same in every protocol.
    pub(crate) fn message(&self) -> String {
        let kind = self.rejection.rejection_type.name();
        format!("Command '{}' rejected with code '{kind}': {}", self.intent, self.rejection.reason)
    }
}

impl Failure {
    /// What to tell the client. `request` names the request in the client's protocol: `CompleteJob`, for example.
    pub(crate) fn message(&self, request: &str) -> String {
        match self {
            Failure::InvalidArgument(message) | Failure::Exhausted(message) => message.clone(),
            Failure::OtherTenant(tenant_id) => format!(
                "Expected to handle {request} with tenant identifier '{tenant_id}', but multi-tenancy is disabled. Leave the tenant out or use '{}'.",
                protocol::DEFAULT_TENANT
            ),
            Failure::Unsupported { with, remark } => {
                format!("{request} with {with} is not supported by this version of Osmia yet{remark}")
            }
            Failure::Rejected(refusal) => refusal.message(),
            Failure::NotSubmitted(error) => format!("Expected to execute {request}, but {error}."),
            Failure::Stopped(partition) => {
                format!("Partition {partition} stopped before it answered {request}. Please try again.")
            }
            Failure::TimedOut { partition, limit, late } => format!(
                "Time out between gateway and broker: partition {partition} did not answer {request} within {} ms. {late}",
                limit.as_millis()
            ),
            Failure::ArrivedTooLate(limit) => {
                format!("The request did not arrive within {} ms.", limit.as_millis())
            }
            Failure::AnswersUnread { whose, limit_bytes } => format!(
                "Expected to answer {request}, but {whose} has more than {limit_bytes} bytes of answers that were not read, which is the limit. Please read them, and try again after a growing pause."
            ),
            Failure::ShuttingDown => {
                "The server is shutting down. Connect again, to another node or to this one when it is back.".to_owned()
            }
            Failure::Unreadable { value_type, intent } => format!(
                "{request} was carried out, but its answer is unreadable: the engine answered {value_type} {intent}. Please report this."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_frame_whatever_the_protocol_calls_the_request() {
        let rejection = Rejection::invalid_state("The job is in state 'FAILED'.");
        let failure = Failure::rejected("COMPLETE", Key::NONE, rejection);
        let text = "Command 'COMPLETE' rejected with code 'INVALID_STATE': The job is in state 'FAILED'.";
        assert_eq!(failure.message("CompleteJob"), text);
        assert_eq!(failure.message("completeJob"), text);
    }

    #[test]
    fn other_sentences_call_the_request_what_the_client_calls_it() {
        let failure = Failure::TimedOut { partition: PartitionId(2), limit: Duration::from_secs(15), late: "It may." };
        let message = failure.message("createProcessInstance");
        assert!(
            message.contains("partition 2 did not answer createProcessInstance within 15000 ms. It may."),
            "{message}"
        );
        let failure = Failure::Unsupported { with: "business ids", remark: "." };
        let message = failure.message("createProcessInstance");
        assert_eq!(message, "createProcessInstance with business ids is not supported by this version of Osmia yet.");
    }
}
