//! The room on the disk of the data directory.
//!
//! A node whose disk fills up must still be able to end work, for that is what gives room back. So new work is refused
//! while less than a *low mark* is free, and below that a *reserve* is kept: a file with nothing in it that is shortened
//! piece by piece when nothing else is left, whoever filled the disk. What ends work, what reads, checkpoints and the log
//! continue in it. When there is room again, the reserve is allocated again, and then new work is taken again.

mod reserve;
mod space;
pub(crate) mod thread;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use reserve::Reserve;
use space::Space;

const MEBIBYTE: u64 = 1 << 20;
/// How much is kept free by default: this share of the volume, but at most this many bytes.
const LOW: (u64, u64) = (50, 1 << 30);
/// On a small volume a share is less than what arrives between two looks at the disk: the low mark is at least this
/// many bytes, but no more than a quarter of the volume.
const LOW_LEAST: (u64, u64) = (4, 16 * MEBIBYTE);
/// The same as [`LOW`] for the reserve.
const RESERVE: (u64, u64) = (50, 64 * MEBIBYTE);
/// How many pieces the reserve is given up in.
const RESERVE_PIECES: u64 = 8;
/// With less than this left and no reserve, nothing that writes can be relied upon.
pub(crate) const FULL_BYTES: u64 = MEBIBYTE;
/// What a start makes room for.
const START_BYTES: u64 = 4 * MEBIBYTE;
/// New work is taken again when this share of the low mark is free above it, so that the answer does not flicker.
const MARGIN_SHARE: u64 = 16;
/// The name of the reserve in the data directory.
const RESERVE_FILE: &str = "RESERVE";

/// How much room is kept on the disk of the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskOptions {
    /// Free bytes below which no new work is taken; none for a fiftieth of the volume, but at least 16 MiB (of a volume
    /// below 64 MiB a quarter) and at most 1 GiB.
    pub free_space_low_bytes: Option<u64>,
    /// Bytes that are allocated ahead, for ending work on a full disk; none for a fiftieth of the volume, but at most
    /// 64 MiB; 0 for no reserve.
    pub reserve_bytes: Option<u64>,
}

/// What the disk allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskState {
    /// Everything.
    Enough,
    /// No new work: what runs is ended.
    Low,
    /// Nothing but waiting: the reserve is used up too.
    Full,
}

/// The disk of the data directory as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskView {
    /// The data directory.
    pub directory: PathBuf,
    /// Size of the volume.
    pub total_bytes: u64,
    /// What is free on it; the reserve is not.
    pub free_bytes: u64,
    /// Free bytes below which no new work is taken.
    pub low_bytes: u64,
    /// Size of the whole reserve.
    pub reserve_bytes: u64,
    /// What is left of the reserve.
    pub reserve_left_bytes: u64,
    /// What the disk allows.
    pub state: DiskState,
}

impl fmt::Display for DiskView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (directory, free, low) = (self.directory.display(), Bytes(self.free_bytes), Bytes(self.low_bytes));
        match self.state {
            DiskState::Enough => {
                write!(formatter, "the disk of the data directory {directory} has {free} free; the low mark is {low}")
            }
            DiskState::Low => write!(
                formatter,
                "the disk of the data directory {directory} has {free} free, and new work is taken only above {low}; \
                 make room on it (running work can be completed and cancelled meanwhile, and new work is taken again by \
                 itself)"
            ),
            DiskState::Full => write!(
                formatter,
                "the disk of the data directory {directory} is full ({free} free, and the reserve is used up), so nothing \
                 can be written; make room on it (the node goes on by itself then)"
            ),
        }
    }
}

/// A number of bytes for people.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes < MEBIBYTE => write!(formatter, "{bytes} bytes"),
            bytes if bytes < 10 << 30 => write!(formatter, "{} MiB", bytes / MEBIBYTE),
            bytes => write!(formatter, "{} GiB", bytes >> 30),
        }
    }
}

/// The disk's state, shared by the thread that looks at it and those who ask.
#[derive(Debug)]
pub(crate) struct Disk {
    directory: PathBuf,
    total_bytes: u64,
    low_bytes: u64,
    reserve_bytes: u64,
    free_bytes: AtomicU64,
    reserve_left_bytes: AtomicU64,
    state: AtomicU8,
}

impl Disk {
    /// Measures the disk of an existing directory.
    pub fn measure(directory: &Path, options: DiskOptions) -> io::Result<Disk> {
        let space = Space::of(directory)?;
        if let Some(reserve) = options.reserve_bytes.filter(|reserve| *reserve >= space.total_bytes) {
            let (reserve, total) = (Bytes(reserve), Bytes(space.total_bytes));
            let problem =
                format!("the reserve of {reserve} does not fit on the disk, which has {total}; give a smaller one");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let share = |(share, most): (u64, u64)| (space.total_bytes / share).min(most);
        let disk = Disk {
            directory: directory.to_owned(),
            total_bytes: space.total_bytes,
            low_bytes: options.free_space_low_bytes.unwrap_or_else(|| share(LOW).max(share(LOW_LEAST))),
            reserve_bytes: options.reserve_bytes.unwrap_or_else(|| share(RESERVE)),
            free_bytes: AtomicU64::new(space.free_bytes),
            reserve_left_bytes: AtomicU64::new(Reserve::of(directory).left_bytes()),
            state: AtomicU8::new(DiskState::Enough as u8),
        };
        disk.note(space.free_bytes, disk.reserve_left_bytes.load(Ordering::Relaxed));
        Ok(disk)
    }

    /// An empty disk of this size.
    pub fn measured(total_bytes: u64, low_bytes: u64, reserve_bytes: u64) -> Disk {
        Disk {
            directory: PathBuf::from("data"),
            total_bytes,
            low_bytes,
            reserve_bytes,
            free_bytes: AtomicU64::new(total_bytes),
            reserve_left_bytes: AtomicU64::new(reserve_bytes),
            state: AtomicU8::new(DiskState::Enough as u8),
        }
    }

    /// A disk that never fills up.
    pub fn unlimited() -> Disk {
        Disk::measured(u64::MAX, 0, 0)
    }

    /// What the disk allows.
    pub fn state(&self) -> DiskState {
        match self.state.load(Ordering::Relaxed) {
            state if state == DiskState::Enough as u8 => DiskState::Enough,
            state if state == DiskState::Low as u8 => DiskState::Low,
            _ => DiskState::Full,
        }
    }

    /// Everything that is known.
    pub fn view(&self) -> DiskView {
        DiskView {
            directory: self.directory.clone(),
            total_bytes: self.total_bytes,
            free_bytes: self.free_bytes.load(Ordering::Relaxed),
            low_bytes: self.low_bytes,
            reserve_bytes: self.reserve_bytes,
            reserve_left_bytes: self.reserve_left_bytes.load(Ordering::Relaxed),
            state: self.state(),
        }
    }

    /// Takes note of what is free and left. Returns the state when it has changed.
    pub(crate) fn note(&self, free_bytes: u64, reserve_left_bytes: u64) -> Option<DiskState> {
        let before = self.state();
        let state = self.judge(before, free_bytes, reserve_left_bytes);
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        self.reserve_left_bytes.store(reserve_left_bytes, Ordering::Relaxed);
        self.state.store(state as u8, Ordering::Relaxed);
        (state != before).then_some(state)
    }

    /// Called before a start writes anything: gives up as much of the reserve as a start needs. Returns what is free
    /// then.
    pub fn relieve(&self) -> io::Result<u64> {
        let mut reserve = Reserve::of(&self.directory);
        let mut free = Space::of(&self.directory)?.free_bytes;
        while free < START_BYTES && reserve.left_bytes() > 0 {
            reserve.give_up(START_BYTES)?;
            free = Space::of(&self.directory)?.free_bytes;
        }
        self.note(free, reserve.left_bytes());
        Ok(free)
    }

    /// What lacks in the reserve counts as used: it is allocated before new work is taken.
    fn judge(&self, before: DiskState, free_bytes: u64, reserve_left_bytes: u64) -> DiskState {
        let missing = self.reserve_bytes.saturating_sub(reserve_left_bytes);
        let needed = self.low_bytes.saturating_add(missing);
        let needed = if before == DiskState::Enough { needed } else { needed.saturating_add(self.margin_bytes()) };
        match free_bytes {
            free if free >= needed => DiskState::Enough,
            free if free < FULL_BYTES.min(self.low_bytes) && reserve_left_bytes == 0 => DiskState::Full,
            _ => DiskState::Low,
        }
    }

    fn margin_bytes(&self) -> u64 {
        self.low_bytes / MARGIN_SHARE
    }

    /// What is to be done about the reserve.
    fn plan(&self, free_bytes: u64, reserve_left_bytes: u64) -> Plan {
        let piece = (self.reserve_bytes / RESERVE_PIECES).max(FULL_BYTES);
        let missing = self.reserve_bytes.saturating_sub(reserve_left_bytes);
        // A reserve that was made larger than it is to be now is given up without need.
        if reserve_left_bytes > self.reserve_bytes {
            return Plan::GiveUp(reserve_left_bytes - self.reserve_bytes);
        }
        if free_bytes < piece && reserve_left_bytes > 0 {
            return Plan::GiveUp(piece.min(reserve_left_bytes));
        }
        let needed = self.low_bytes.saturating_add(missing).saturating_add(self.margin_bytes());
        if missing > 0 && free_bytes >= needed { Plan::Allocate(self.reserve_bytes) } else { Plan::Nothing }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// Shorten the reserve by this many bytes.
    GiveUp(u64),
    /// Make the reserve so large.
    Allocate(u64),
}

#[cfg(test)]
mod tests;
