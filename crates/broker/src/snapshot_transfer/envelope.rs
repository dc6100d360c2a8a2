//! What nodes send each other about states.

use replication::GroupId;

/// Begins a state: its bytes, and the frame that announces it.
const START: u8 = 1;
/// Goes on with a state: a frame with some of its bytes.
const PART: u8 = 2;
/// What became of a state.
const OUTCOME: u8 = 3;

/// Bytes between two nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Envelope<'a> {
    /// A state with so many bytes is announced by a frame.
    Start { state_bytes: u64, frame: &'a [u8] },
    /// A frame with a part of a state.
    Part(&'a [u8]),
    /// The receiver's answer.
    Outcome(Outcome),
}

/// What became of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The group.
    pub group: GroupId,
    /// The last log index that is part of the state.
    pub index: u64,
    /// Whether the receiver's log has it.
    pub is_taken: bool,
}

/// Bytes that no node sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes about a state that cannot be read; both nodes must be of versions that understand each other")]
pub struct EnvelopeError(usize);

impl<'a> Envelope<'a> {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Envelope::Start { state_bytes, frame } => [&[START], state_bytes.to_be_bytes().as_slice(), frame].concat(),
            Envelope::Part(frame) => [&[PART], *frame].concat(),
            Envelope::Outcome(Outcome { group, index, is_taken }) => {
                let (group, index) = (group.0.to_be_bytes(), index.to_be_bytes());
                [&[OUTCOME], group.as_slice(), index.as_slice(), &[u8::from(*is_taken)]].concat()
            }
        }
    }

    pub fn decode(bytes: &'a [u8]) -> Result<Self, EnvelopeError> {
        Self::read(bytes).ok_or(EnvelopeError(bytes.len()))
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            START => {
                let (state_bytes, frame) = rest.split_first_chunk()?;
                Some(Envelope::Start { state_bytes: u64::from_be_bytes(*state_bytes), frame })
            }
            PART => Some(Envelope::Part(rest)),
            OUTCOME => {
                let (group, rest) = rest.split_first_chunk()?;
                let (index, rest) = rest.split_first_chunk()?;
                let [is_taken @ (0 | 1)] = rest else { return None };
                let (group, index) = (GroupId(u32::from_be_bytes(*group)), u64::from_be_bytes(*index));
                Some(Envelope::Outcome(Outcome { group, index, is_taken: *is_taken == 1 }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_comes_back_and_everything_else_is_refused() {
        let outcome = Outcome { group: GroupId(7), index: 1 << 40, is_taken: true };
        let sent = [
            Envelope::Start { state_bytes: 5, frame: b"frame" },
            Envelope::Part(b"part"),
            Envelope::Outcome(outcome),
            Envelope::Outcome(Outcome { is_taken: false, ..outcome }),
        ];
        for envelope in sent {
            let bytes = envelope.encode();
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        }
        let whole = Envelope::Outcome(outcome).encode();
        let longer = [whole.as_slice(), &[0]].concat();
        for wrong in [&[][..], &[0], &[4, 1], &[START, 1], &whole[..whole.len() - 1], &longer] {
            assert_eq!(Envelope::decode(wrong), Err(EnvelopeError(wrong.len())), "{wrong:?}");
        }
    }
}
