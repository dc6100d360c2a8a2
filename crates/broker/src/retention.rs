//! How much of the log a group keeps for members that lack it.
//!
//! An entry stays until every member of the group has it, so that a node that was away goes on with entries and needs no
//! copy of the whole state. What that costs is bounded in bytes: a member that lags further gets a snapshot. While one is
//! on its way, the entries after it stay, or the receiver would need the next one as soon as it had the first.

use std::collections::{BTreeMap, VecDeque};

use replication::{GroupStatus, NodeId, Role};

/// What the log takes for an entry besides its content.
const ENTRY_OVERHEAD_BYTES: u64 = 64;
/// Into so many parts a group's bytes are divided: what is dropped at once is at most one of them too much.
const PARTS: u64 = 256;
/// Places of which a group knows how many bytes came before them. When there are more, every other one is forgotten.
const PLACES_MAX: usize = 4_096;

/// The most bytes of entries that the groups of a node keep for members that lack them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Of one group.
    pub group_bytes_max: u64,
    /// Of one group while a snapshot of it is on its way to a member.
    pub sending_bytes_max: u64,
    /// Of all groups together, each of which has an equal share.
    pub total_bytes_max: u64,
}

/// The usual most of one group.
const GROUP_BYTES_MAX: u64 = 256 << 20;
/// The usual most of a group while a snapshot of it is on its way.
const SENDING_BYTES_MAX: u64 = 1 << 30;

impl Default for RetentionLimits {
    fn default() -> Self {
        RetentionLimits {
            group_bytes_max: GROUP_BYTES_MAX,
            sending_bytes_max: SENDING_BYTES_MAX,
            total_bytes_max: u64::MAX,
        }
    }
}

impl RetentionLimits {
    /// The most that so many groups keep, as long as none of them sends a snapshot.
    pub fn kept_bytes_max(self, groups: u16) -> u64 {
        let groups = groups.max(1);
        self.of_each(groups.into()).group_bytes_max.saturating_mul(groups.into())
    }

    /// Of each of so many groups.
    fn of_each(self, groups: usize) -> Self {
        let share = self.total_bytes_max / u64::try_from(groups.max(1)).unwrap_or(u64::MAX);
        let group_bytes_max = self.group_bytes_max.min(share);
        // Few groups send at once, so these may have more than their share.
        let sending_bytes_max = self.sending_bytes_max.min(self.total_bytes_max / 4).max(group_bytes_max);
        RetentionLimits { group_bytes_max, sending_bytes_max, ..self }
    }
}

/// A snapshot on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sending {
    /// The last index that is part of it.
    index: u64,
    /// The receiver has it, and has not answered with entries of its own yet.
    is_delivered: bool,
}

/// What one group keeps.
#[derive(Debug, Default)]
pub struct Retention {
    /// How many bytes of entries came up to some indexes, in order.
    places: VecDeque<(u64, u64)>,
    /// The last index that was handed out, and the bytes up to it.
    newest: (u64, u64),
    /// The index up to which every member has the log, as the leader said last.
    everybody_has: u64,
    sending: BTreeMap<NodeId, Sending>,
}

impl Retention {
    /// Of a log that begins after the index `compacted` and whose state is durable up to `applied`.
    ///
    /// Nobody knows how many bytes lie between. The log kept at most what it may keep, so that is assumed, evenly spread.
    pub fn new(limits: RetentionLimits, groups: usize, compacted: u64, applied: u64) -> Self {
        let mut retention = Retention { newest: (compacted, 0), ..Retention::default() };
        retention.places.push_back(retention.newest);
        let (entries, bytes) = (applied.saturating_sub(compacted), limits.of_each(groups).group_bytes_max);
        if bytes == 0 {
            // Nothing is kept. Entries that are assumed to have no bytes would all fit.
            retention.reached(applied);
            return retention;
        }
        let parts = PARTS.min(entries);
        for part in 1..=parts {
            let of = |whole: u64| u64::try_from(u128::from(whole) * u128::from(part) / u128::from(parts));
            let place = (compacted + of(entries).unwrap_or(entries), of(bytes).unwrap_or(bytes));
            retention.places.push_back(place);
            retention.newest = place;
        }
        retention
    }

    /// The log begins again after a snapshot of this index.
    pub fn replaced(&mut self, index: u64) {
        self.newest = (index, self.newest.1);
        self.places.clear();
        self.places.push_back(self.newest);
        self.sending.clear();
    }

    /// An entry with so many bytes of content is committed.
    pub fn handed_out(&mut self, limits: RetentionLimits, index: u64, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(ENTRY_OVERHEAD_BYTES);
        self.newest = (index, self.newest.1.saturating_add(bytes));
        let last = self.places.back().map_or(0, |(_, bytes)| *bytes);
        if self.newest.1 - last < (limits.group_bytes_max / PARTS).max(1) {
            return;
        }
        self.places.push_back(self.newest);
        if self.places.len() > PLACES_MAX {
            let mut number = 0_usize;
            self.places.retain(|_| {
                number += 1;
                number.is_multiple_of(2)
            });
        }
    }

    /// Everything up to an index is committed: after the entries that were handed out, the log has some of its own.
    pub fn reached(&mut self, index: u64) {
        self.newest.0 = self.newest.0.max(index);
        // Between the last place and this one there is nothing of which bytes are counted.
        if let Some(last) = self.places.back_mut().filter(|last| last.1 == self.newest.1) {
            last.0 = self.newest.0;
        }
    }

    /// The leader says up to which index every member has the log.
    pub fn everybody_has(&mut self, index: u64) {
        self.everybody_has = index;
    }

    /// A snapshot that includes this index goes to a member.
    pub fn sending(&mut self, to: NodeId, index: u64) {
        self.sending.insert(to, Sending { index, is_delivered: false });
    }

    /// A snapshot reached the member, or did not.
    pub fn sent(&mut self, to: NodeId, delivered: bool) {
        match self.sending.get_mut(&to) {
            Some(sending) if delivered => sending.is_delivered = true,
            _ => drop(self.sending.remove(&to)),
        }
    }

    /// The index up to which the log may forget, in a group of a node that has so many. The state must be durable up to it.
    pub fn may_forget(&mut self, limits: RetentionLimits, groups: usize, status: &GroupStatus, durable: u64) -> u64 {
        if is_alone(status) {
            self.forget_places(durable);
            return durable;
        }
        let limits = limits.of_each(groups);
        if let Some(everybody_has) = everybody_has(status) {
            self.everybody_has = everybody_has;
            self.forget_sendings(status);
        } else {
            self.sending.clear();
        }
        let mut up_to = self.everybody_has.max(self.beyond(limits.group_bytes_max));
        if let Some(sent) = self.sending.values().map(|sending| sending.index).min() {
            up_to = up_to.min(sent.max(self.beyond(limits.sending_bytes_max)));
        }
        let up_to = up_to.min(durable);
        self.forget_places(up_to);
        up_to
    }

    /// The last index after which the log has no more than so many bytes.
    fn beyond(&self, bytes_max: u64) -> u64 {
        let (newest, bytes) = self.newest;
        let fits = self.places.partition_point(|(_, before)| bytes - before > bytes_max);
        self.places.get(fits).map_or(newest, |(index, _)| *index)
    }

    /// The receiver goes on with entries, or does not answer any more, or is no member.
    fn forget_sendings(&mut self, status: &GroupStatus) {
        self.sending.retain(|to, sending| {
            let member = status.progress.iter().find(|member| member.node == *to);
            member.is_some_and(|member| {
                member.matched < sending.index && (!sending.is_delivered || member.recently_active)
            })
        });
    }

    fn forget_places(&mut self, up_to: u64) {
        while self.places.len() > 1 && self.places.get(1).is_some_and(|(index, _)| *index <= up_to) {
            self.places.pop_front();
        }
    }
}

/// Whether nobody else could ever ask for entries.
fn is_alone(status: &GroupStatus) -> bool {
    let members = &status.membership;
    members.voters.len() <= 1 && members.learners.is_empty() && members.outgoing_voters.is_empty()
}

/// On a leader, the index up to which every member has the log.
pub fn everybody_has(status: &GroupStatus) -> Option<u64> {
    let matched = status.progress.iter().map(|member| member.matched).min();
    matched.filter(|_| status.role == Role::Leader)
}

#[cfg(test)]
mod tests;
