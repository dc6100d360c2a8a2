//! What a leader was asked to append and has not handed out yet.

use raft::eraftpb::{Entry, Message, MessageType};

/// The proposals of one leadership.
///
/// They wait for the round and then enter Raft together, so that every follower gets them in one message. (Raft could
/// merge messages itself, but its `batch_append` in 0.7.0 appends entries to a waiting message that they do not follow,
/// after a follower made it step back: the follower then acknowledges entries that it never got.)
#[derive(Default)]
pub(crate) struct Proposals {
    /// The term that the proposals belong to; they are void in any other.
    term: u64,
    waiting: Vec<Entry>,
    /// Bytes that are waiting, or in Raft but not handed out yet.
    uncommitted_bytes: u64,
}

impl Proposals {
    /// Accepts an entry, unless that would exceed the limit. One entry is always accepted.
    pub(crate) fn accept(&mut self, term: u64, entry: Entry, limit_bytes: u64) -> bool {
        if self.term != term {
            *self = Self { term, ..Self::default() };
        }
        let bytes = size(&entry);
        if self.uncommitted_bytes > 0 && self.uncommitted_bytes.saturating_add(bytes) > limit_bytes {
            return false;
        }
        self.uncommitted_bytes = self.uncommitted_bytes.saturating_add(bytes);
        self.waiting.push(entry);
        true
    }

    /// The message that takes everything waiting into Raft; nothing if nothing waits or the term is over.
    pub(crate) fn take(&mut self, term: u64, leader: u64) -> Option<Message> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() || self.term != term {
            return None;
        }
        let mut message = Message { from: leader, ..Message::default() };
        message.set_msg_type(MessageType::MsgPropose);
        message.set_entries(waiting.into());
        Some(message)
    }

    /// An entry was handed out.
    pub(crate) fn handed_out(&mut self, entry: &Entry) {
        if entry.term == self.term {
            self.uncommitted_bytes = self.uncommitted_bytes.saturating_sub(size(entry));
        }
    }
}

fn size(entry: &Entry) -> u64 {
    u64::try_from(entry.data.len()).expect("a length fits")
}
