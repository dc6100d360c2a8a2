//! A log in memory, for tests and for the simulator, which can crash in the middle of a write.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use protobuf::Message as _;
use raft::eraftpb::{Entry, HardState};

use crate::error::LogError;
use crate::log_store::{Anchor, GroupWrite, LogStore, SpaceReport, StoredGroup, WriteBatch, WriteReport};
use crate::types::GroupId;

/// What happens to a write during which the node crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// Before the sync: nothing of the batch survives.
    BeforeSync,
    /// After the sync, before anybody learns of it: the whole batch survives.
    AfterSync,
}

/// A log in memory. What was synced survives a crash, and nothing else does: open the same `MemoryLog` again after
/// [`MemoryLog::recover`].
#[derive(Debug, Default)]
pub struct MemoryLog {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    groups: BTreeMap<GroupId, Group>,
    syncs: u64,
    crash: Option<CrashPoint>,
    crashed: bool,
    refused_writes: u32,
}

#[derive(Debug, Clone, Default)]
struct Group {
    hard_state: HardState,
    anchor: Anchor,
    entries: VecDeque<Entry>,
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next write crashes the node; every call fails until [`MemoryLog::recover`].
    pub fn crash_at_next_write(&self, point: CrashPoint) {
        self.inner.lock().crash = Some(point);
    }

    /// The next `count` writes are refused as by a full disk.
    pub fn refuse_writes(&self, count: u32) {
        self.inner.lock().refused_writes = count;
    }

    /// The node comes back after a crash.
    pub fn recover(&self) {
        let mut inner = self.inner.lock();
        inner.crashed = false;
        inner.crash = None;
    }

    /// How many writes were synced.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.inner.lock().syncs
    }
}

impl Group {
    fn first_index(&self) -> u64 {
        self.anchor.compacted.index + 1
    }

    fn last_index(&self) -> u64 {
        self.entries.back().map_or(self.anchor.compacted.index, |entry| entry.index)
    }

    fn append(&mut self, new: &[Entry]) {
        let Some(first) = new.first() else { return };
        while self.entries.back().is_some_and(|entry| entry.index >= first.index) {
            self.entries.pop_back();
        }
        assert_eq!(first.index, self.last_index() + 1, "entries are appended without a gap");
        self.entries.extend(new.iter().cloned());
    }

    fn drop_compacted(&mut self) {
        let compacted = self.anchor.compacted.index;
        while self.entries.front().is_some_and(|entry| entry.index <= compacted) {
            self.entries.pop_front();
        }
    }
}

impl Inner {
    fn check(&self) -> Result<(), LogError> {
        if self.crashed { Err(LogError::Crashed) } else { Ok(()) }
    }

    fn apply(&mut self, group: GroupId, write: &GroupWrite) -> u64 {
        let sizes = |entries: &[Entry]| entries.iter().map(|entry| u64::from(entry.compute_size())).sum::<u64>();
        match write {
            GroupWrite::Replace { hard_state, anchor, entries } => {
                let mut fresh = Group { hard_state: hard_state.clone(), anchor: anchor.clone(), ..Group::default() };
                fresh.append(entries);
                self.groups.insert(group, fresh);
                sizes(entries)
            }
            GroupWrite::Append { entries, hard_state, anchor } => {
                let stored = self.groups.get_mut(&group).expect("a group is created before it is appended to");
                stored.append(entries);
                if let Some(hard_state) = hard_state {
                    stored.hard_state = hard_state.clone();
                }
                if let Some(anchor) = anchor {
                    stored.anchor = anchor.clone();
                    stored.drop_compacted();
                }
                sizes(entries)
            }
            GroupWrite::Remove => {
                self.groups.remove(&group);
                0
            }
        }
    }
}

impl LogStore for MemoryLog {
    fn groups(&self) -> Result<Vec<GroupId>, LogError> {
        let inner = self.inner.lock();
        inner.check()?;
        Ok(inner.groups.keys().copied().collect())
    }

    fn load(&self, group: GroupId) -> Result<Option<StoredGroup>, LogError> {
        let inner = self.inner.lock();
        inner.check()?;
        Ok(inner.groups.get(&group).map(|stored| StoredGroup {
            hard_state: stored.hard_state.clone(),
            anchor: stored.anchor.clone(),
            last_index: stored.last_index(),
        }))
    }

    fn write(&self, batch: &WriteBatch) -> Result<WriteReport, LogError> {
        let mut inner = self.inner.lock();
        inner.check()?;
        if batch.writes.is_empty() {
            return Ok(WriteReport::default());
        }
        if inner.refused_writes > 0 {
            inner.refused_writes -= 1;
            return Err(LogError::Io {
                action: "Writing the log",
                place: "memory".into(),
                problem: "no space left on device".to_owned(),
            });
        }
        let crash = inner.crash.take();
        inner.crashed = crash.is_some();
        if crash == Some(CrashPoint::BeforeSync) {
            return Err(LogError::Crashed);
        }
        let mut bytes = 0;
        for (group, write) in &batch.writes {
            bytes += inner.apply(*group, write);
        }
        inner.syncs += 1;
        if crash.is_some() {
            return Err(LogError::Crashed);
        }
        Ok(WriteReport { bytes, ..WriteReport::default() })
    }

    fn read(&self, group: GroupId, from: u64, to: u64, max_bytes: u64) -> Result<Vec<Entry>, LogError> {
        let inner = self.inner.lock();
        inner.check()?;
        let empty = Group::default();
        let stored = inner.groups.get(&group).unwrap_or(&empty);
        let (first_index, last_index) = (stored.first_index(), stored.last_index());
        let out_of_range = |wanted| LogError::OutOfRange { group, wanted, first_index, last_index };
        if from < first_index {
            return Err(out_of_range(from));
        }
        if to > last_index + 1 {
            return Err(out_of_range(to.saturating_sub(1)));
        }
        let mut entries = Vec::new();
        let mut bytes = 0u64;
        for index in from..to {
            let position = usize::try_from(index - first_index).expect("a log in memory fits into memory");
            let entry = &stored.entries[position];
            bytes = bytes.saturating_add(u64::from(entry.compute_size()));
            if bytes > max_bytes && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        Ok(entries)
    }

    fn reclaim_space(&self) -> Result<SpaceReport, LogError> {
        let inner = self.inner.lock();
        inner.check()?;
        let used_bytes =
            inner.groups.values().flat_map(|group| &group.entries).map(|entry| u64::from(entry.compute_size())).sum();
        Ok(SpaceReport { holding_space: Vec::new(), used_bytes })
    }
}
