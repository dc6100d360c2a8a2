//! What of its own work a partition goes on with.

use super::{Admission, Limiter};
use crate::disk::DiskState;
use crate::partition::Room;

impl Limiter {
    /// What of its own work the partition may go on with: it stops at the marks at which new work is refused, and what comes to an
    /// end at those for ending work.
    pub fn room_for_own_work(&self) -> Room {
        let backlog = self.backlog.read();
        let refuses = |admission| backlog.as_ref().is_some_and(|backlog| backlog.refuses(admission));
        match self.disk.state() {
            DiskState::Full => Room::None,
            _ if refuses(Admission::Preferred) => Room::None,
            DiskState::Low => Room::ForEnds,
            DiskState::Enough if refuses(Admission::Growth) || self.full_state_file.read().is_some() => Room::ForEnds,
            DiskState::Enough => Room::Enough,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::PartitionId;

    use super::super::{Backlog, FlowControlOptions};
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn own_work_stops_at_the_marks_for_new_work_and_its_end_at_those_for_ends() {
        let disk = Arc::new(Disk::measured(1_000 << 20, 100 << 20, 0));
        let limiter = Limiter::new(PartitionId(2), FlowControlOptions::default(), disk);
        assert_eq!(limiter.room_for_own_work(), Room::Enough);
        let backlog = |bytes| Backlog { exporter: "slow".to_owned(), bytes, limit_bytes: 100, is_paused: false };
        for (bytes, room) in [(101, Room::ForEnds), (201, Room::None)] {
            limiter.set_backlog(Some(backlog(bytes)));
            assert_eq!(limiter.room_for_own_work(), room);
        }
        limiter.set_backlog(None);
        for (free_bytes, room) in [(50 << 20, Room::ForEnds), (1 << 10, Room::None), (500 << 20, Room::Enough)] {
            limiter.disk.note(free_bytes, 0);
            assert_eq!(limiter.room_for_own_work(), room, "{free_bytes} bytes are free");
        }
        limiter.set_full_state_file(Some("it is full"));
        assert_eq!(limiter.room_for_own_work(), Room::ForEnds);
    }
}
