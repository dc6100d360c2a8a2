//! What waits to be sent to one peer on one lane.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::connection::KEEP_ALIVE_MS;
use crate::frame;
use crate::identity::NodeNumber;
use crate::lane::Lane;

/// Why a frame was not taken. Nothing of it will be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The node is not a member.
    #[error("node {0} is not a member of the cluster")]
    Unknown(NodeNumber),
    /// There is no connection.
    #[error("node {0} cannot be reached")]
    Unreachable(NodeNumber),
    /// As many bytes wait as may.
    #[error("node {node} takes less on the lane of {lane} than it is sent: {bytes} bytes wait")]
    Full {
        /// The addressee.
        node: NodeNumber,
        /// The lane.
        lane: Lane,
        /// What waits.
        bytes: usize,
    },
    /// The payload is larger than a frame of the lane may be.
    #[error("a frame of {bytes} bytes is too large for the lane of {lane}")]
    TooLarge {
        /// The lane.
        lane: Lane,
        /// The payload.
        bytes: usize,
    },
}

/// Frames in their order, as bytes.
#[derive(Debug)]
pub(crate) struct Queue {
    node: NodeNumber,
    lane: Lane,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    is_open: bool,
    is_stopped: bool,
}

impl Queue {
    pub fn new(node: NodeNumber, lane: Lane) -> Queue {
        Queue { node, lane, waiting: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds a frame, made of parts, if there is room for it and a connection.
    pub fn send(&self, kind: u8, payload: &[&[u8]]) -> Result<(), SendError> {
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        if bytes > self.lane.frame_bytes_max() {
            return Err(SendError::TooLarge { lane: self.lane, bytes });
        }
        let mut waiting = self.waiting.lock();
        if !waiting.is_open {
            return Err(SendError::Unreachable(self.node));
        }
        // A frame that is larger than the budget alone is sent when nothing else waits.
        if !waiting.bytes.is_empty() && waiting.bytes.len().saturating_add(bytes) > self.lane.queue_bytes_max() {
            return Err(SendError::Full { node: self.node, lane: self.lane, bytes: waiting.bytes.len() });
        }
        frame::write(kind, payload, &mut waiting.bytes);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// From now on frames are taken. What waited for an earlier connection is gone: it was lost with it.
    pub fn open(&self) {
        *self.waiting.lock() = Waiting { is_open: true, ..Waiting::default() };
    }

    /// No more frames are taken, and what waits is lost.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.bytes = Vec::new();
        waiting.is_open = false;
    }

    /// Ends the thread that sends, whatever it waits for.
    pub fn stop(&self) {
        self.waiting.lock().is_stopped = true;
        self.changed.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.waiting.lock().is_stopped
    }

    /// Waits so long, or until the mesh stops.
    pub fn pause(&self, time: Duration) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_stopped {
            self.changed.wait_while_for(&mut waiting, |waiting| !waiting.is_stopped, time);
        }
    }

    /// Everything that waits, in exchange for an empty buffer; nothing after a while without a frame.
    pub fn take(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        let mut waiting = self.waiting.lock();
        if waiting.bytes.is_empty() && !waiting.is_stopped {
            let is_idle = |waiting: &mut Waiting| waiting.bytes.is_empty() && !waiting.is_stopped;
            self.changed.wait_while_for(&mut waiting, is_idle, Duration::from_millis(KEEP_ALIVE_MS));
        }
        std::mem::swap(buffer, &mut waiting.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_takes_frames_up_to_its_budget_and_only_while_it_is_open() {
        let queue = Queue::new(NodeNumber(2), Lane::Bulk);
        assert_eq!(queue.send(20, &[b"x"]), Err(SendError::Unreachable(NodeNumber(2))));
        queue.open();
        let part = vec![1; 1024 * 1024];
        let taken = (0..10).take_while(|_| queue.send(20, &[&part]).is_ok()).count();
        assert_eq!(taken, 3, "with their headers four would be more than 4 MiB");
        assert!(matches!(queue.send(20, &[&part]), Err(SendError::Full { lane: Lane::Bulk, .. })));
        let mut buffer = Vec::new();
        queue.take(&mut buffer);
        assert!(buffer.len() > 3 * part.len());
        assert_eq!(queue.send(20, &[&part, &part]), Ok(()), "there is room again");
        let too_large = vec![0; Lane::Bulk.frame_bytes_max() + 1];
        assert!(matches!(queue.send(20, &[&too_large]), Err(SendError::TooLarge { .. })));
        queue.close();
        queue.open();
        assert_eq!(queue.send(20, &[b"new"]), Ok(()));
        queue.take(&mut buffer);
        assert_eq!(buffer.len(), 8 + 1 + 3, "what waited for the earlier connection is not sent on the new one");
    }
}
