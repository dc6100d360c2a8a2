//! Whether exporting is paused, which an operator says on the management port, and a restart remembers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::data_directory::checksum::{check_checksum, with_checksum};
use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::write_atomically;

const FIRST_LINE: &str = "format 1";
const HARD: &str = "exporting paused";
const SOFT: &str = "exporting soft-paused";

/// What of exporting is paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    /// Nothing.
    #[default]
    None,
    /// Exporters get records, but their acknowledgements do not count: the records are kept, and come again after a restart.
    Soft,
    /// Exporters get no records, and these are kept. What searches see goes on.
    Hard,
}

impl Pause {
    const ALL: [Pause; 3] = [Pause::None, Pause::Soft, Pause::Hard];
}

/// What an operator said last, at any node of the cluster. Of two, the later change is the larger one; of two that were made at
/// the same time at different nodes, the one that pauses more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PauseChange {
    /// Grows by one from change to change.
    pub number: u64,
    /// What is paused.
    pub pause: Pause,
}

impl PauseChange {
    /// As one number.
    pub fn bits(self) -> u64 {
        self.number << PAUSE_BITS | self.pause as u64
    }

    /// What a number means; nothing that a node would say is lost.
    pub fn of_bits(bits: u64) -> PauseChange {
        let pause = Pause::ALL.into_iter().rev().find(|pause| *pause as u64 == bits & PAUSE_MASK);
        PauseChange { number: bits >> PAUSE_BITS, pause: pause.unwrap_or(Pause::Hard) }
    }
}

const PAUSE_BITS: u32 = 2;
const PAUSE_MASK: u64 = (1 << PAUSE_BITS) - 1;

/// Pauses the exporters of a node.
#[derive(Debug)]
pub struct PauseSwitch {
    path: PathBuf,
    /// The bits of the last change.
    change: AtomicU64,
    /// Held while the file changes.
    changing: Mutex<()>,
}

impl PauseSwitch {
    /// As it was left. A damaged file counts as a pause, because a pause loses nothing.
    ///
    /// # Errors
    /// When the file system refuses, or a later version wrote the file.
    pub fn open(path: PathBuf) -> Result<Self, DataDirectoryError> {
        let change = match look(&path) {
            Ok(change) => change,
            Err(Problem::Unreadable(source)) => return Err(DataDirectoryError::Io { action: "read", path, source }),
            Err(Problem::Version(problem)) => return Err(DataDirectoryError::Positions { path, problem }),
            Err(Problem::Damage(problem)) => {
                tracing::error!(
                    file = %path.display(), problem,
                    "whether exporting is paused cannot be read, so it is paused; \
                     POST /actuator/exporting/resume on the management port ends that"
                );
                PauseChange { number: 0, pause: Pause::Hard }
            }
        };
        if change.pause != Pause::None {
            tracing::warn!(pause = ?change.pause, "exporting is paused, as it was when the node stopped");
        }
        Ok(PauseSwitch { path, change: AtomicU64::new(change.bits()), changing: Mutex::new(()) })
    }

    /// Reads what is paused without changing anything; the error says what is wrong.
    pub(crate) fn read(path: &Path) -> Result<Pause, String> {
        look(path).map(|change| change.pause).map_err(|problem| match problem {
            Problem::Unreadable(problem) => problem.to_string(),
            Problem::Version(problem) | Problem::Damage(problem) => problem,
        })
    }

    /// What is paused.
    pub fn get(&self) -> Pause {
        self.change().pause
    }

    /// What was said last.
    pub(crate) fn change(&self) -> PauseChange {
        PauseChange::of_bits(self.change.load(Ordering::Acquire))
    }

    /// Pauses or resumes, durably. After an error nothing has changed but perhaps the file.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn set(&self, pause: Pause) -> Result<(), DataDirectoryError> {
        let _changing = self.changing.lock();
        self.store(PauseChange { number: self.change().number + 1, pause })
    }

    /// Takes over what was said at another node, durably, if it is later. Returns whether that changes what is paused.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn adopt(&self, change: PauseChange) -> Result<bool, DataDirectoryError> {
        let _changing = self.changing.lock();
        let before = self.change();
        // A node that cannot read its own file is paused alone.
        if change <= before || change.number == 0 {
            return Ok(false);
        }
        self.store(change)?;
        Ok(change.pause != before.pause)
    }

    fn store(&self, change: PauseChange) -> Result<(), DataDirectoryError> {
        let PauseChange { number, pause } = change;
        let line = match pause {
            Pause::None => "exporting",
            Pause::Soft => SOFT,
            Pause::Hard => HARD,
        };
        write_atomically(&self.path, with_checksum(format!("{FIRST_LINE}\n{line}\nchange {number}\n")).as_bytes())?;
        self.change.store(change.bits(), Ordering::Release);
        Ok(())
    }
}

enum Problem {
    Unreadable(io::Error),
    Version(String),
    Damage(String),
}

fn look(path: &Path) -> Result<PauseChange, Problem> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(PauseChange::default()),
        Err(error) => Err(Problem::Unreadable(error)),
        Ok(content) => parse(&content),
    }
}

fn parse(content: &[u8]) -> Result<PauseChange, Problem> {
    let text = String::from_utf8_lossy(content);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    // Before the checksum, so that a later version is refused as one and not as damage.
    if first != FIRST_LINE && first.starts_with("format ") {
        return Err(Problem::Version(format!("its first line is '{first}', and this version reads '{FIRST_LINE}'")));
    }
    check_checksum(content).map_err(|problem| Problem::Damage(problem.to_string()))?;
    let pause = match lines.next() {
        Some("exporting") => Pause::None,
        Some(SOFT) => Pause::Soft,
        Some(HARD) => Pause::Hard,
        _ => return Err(Problem::Damage("its second line says nothing of exporting".to_owned())),
    };
    let number = lines.next().and_then(|line| line.strip_prefix("change ")?.parse().ok());
    let number = number.ok_or_else(|| Problem::Damage("its third line says no number of a change".to_owned()))?;
    Ok(PauseChange { number, pause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_remembers_the_pause_and_takes_damage_for_one() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("pause");
        let open = || PauseSwitch::open(path.clone());
        assert_eq!(open().expect("new").get(), Pause::None);
        for pause in [Pause::Hard, Pause::Soft, Pause::None] {
            let switch = open().expect("readable");
            switch.set(pause).expect("writable");
            assert_eq!((switch.get(), open().expect("readable").get()), (pause, pause));
        }
        // What was said later at another node holds, and nothing that was said before.
        let switch = open().expect("readable");
        let later = |number, pause| PauseChange { number, pause };
        assert!(!switch.adopt(later(2, Pause::Hard)).expect("writable"));
        assert!(switch.adopt(later(3, Pause::Soft)).expect("writable"), "at the same time, and it pauses more");
        assert!(switch.adopt(later(9, Pause::Hard)).expect("writable"));
        assert_eq!(open().expect("readable").change(), later(9, Pause::Hard));
        assert_eq!(PauseChange::of_bits(later(9, Pause::Soft).bits()), later(9, Pause::Soft));
        switch.set(Pause::None).expect("writable");
        assert_eq!(open().expect("readable").change(), later(10, Pause::None));
        let content = std::fs::read_to_string(&path).expect("there");
        std::fs::write(&path, content.replace("exporting", "exportind")).expect("writable");
        assert_eq!(open().expect("damage is no error").get(), Pause::Hard);
        std::fs::write(&path, content.replace("format 1", "format 2")).expect("writable");
        assert!(open().expect_err("of a later version").to_string().contains("'format 2'"));
    }
}
