//! Whether exporting is paused, which an operator says on the management port, and a restart remembers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::{check_checksum, with_checksum, write_atomically};

const FIRST_LINE: &str = "format 1";
const HARD: &str = "exporting paused";
const SOFT: &str = "exporting soft-paused";

/// What of exporting is paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// Pauses the exporters of a node.
#[derive(Debug)]
pub struct PauseSwitch {
    path: PathBuf,
    pause: AtomicU8,
    /// Held while the file changes.
    changing: Mutex<()>,
}

impl PauseSwitch {
    /// As it was left. A damaged file counts as a pause, because a pause loses nothing.
    ///
    /// # Errors
    /// When the file system refuses, or a later version wrote the file.
    pub fn open(path: PathBuf) -> Result<Self, DataDirectoryError> {
        let pause = match look(&path) {
            Ok(pause) => pause,
            Err(Problem::Unreadable(source)) => return Err(DataDirectoryError::Io { action: "read", path, source }),
            Err(Problem::Version(problem)) => return Err(DataDirectoryError::Positions { path, problem }),
            Err(Problem::Damage(problem)) => {
                tracing::error!(
                    file = %path.display(), problem,
                    "whether exporting is paused cannot be read, so it is paused; \
                     POST /actuator/exporting/resume on the management port ends that"
                );
                Pause::Hard
            }
        };
        if pause != Pause::None {
            tracing::warn!(?pause, "exporting is paused, as it was when the node stopped");
        }
        Ok(PauseSwitch { path, pause: AtomicU8::new(pause as u8), changing: Mutex::new(()) })
    }

    /// Reads what is paused without changing anything; the error says what is wrong.
    pub(crate) fn read(path: &Path) -> Result<Pause, String> {
        look(path).map_err(|problem| match problem {
            Problem::Unreadable(problem) => problem.to_string(),
            Problem::Version(problem) | Problem::Damage(problem) => problem,
        })
    }

    /// What is paused.
    pub fn get(&self) -> Pause {
        Pause::ALL[usize::from(self.pause.load(Ordering::Acquire))]
    }

    /// Pauses or resumes, durably. After an error nothing has changed but perhaps the file.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn set(&self, pause: Pause) -> Result<(), DataDirectoryError> {
        let _changing = self.changing.lock();
        let line = match pause {
            Pause::None => "exporting",
            Pause::Soft => SOFT,
            Pause::Hard => HARD,
        };
        write_atomically(&self.path, with_checksum(format!("{FIRST_LINE}\n{line}\n")).as_bytes())?;
        self.pause.store(pause as u8, Ordering::Release);
        Ok(())
    }
}

enum Problem {
    Unreadable(io::Error),
    Version(String),
    Damage(String),
}

fn look(path: &Path) -> Result<Pause, Problem> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Pause::None),
        Err(error) => Err(Problem::Unreadable(error)),
        Ok(content) => parse(&content),
    }
}

fn parse(content: &[u8]) -> Result<Pause, Problem> {
    let text = String::from_utf8_lossy(content);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    // Before the checksum, so that a later version is refused as one and not as damage.
    if first != FIRST_LINE && first.starts_with("format ") {
        return Err(Problem::Version(format!("its first line is '{first}', and this version reads '{FIRST_LINE}'")));
    }
    check_checksum(content).map_err(|problem| Problem::Damage(problem.to_string()))?;
    match lines.next() {
        Some("exporting") => Ok(Pause::None),
        Some(SOFT) => Ok(Pause::Soft),
        Some(HARD) => Ok(Pause::Hard),
        _ => Err(Problem::Damage("its second line says nothing of exporting".to_owned())),
    }
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
        let content = std::fs::read_to_string(&path).expect("there");
        std::fs::write(&path, content.replace("exporting", "exportind")).expect("writable");
        assert_eq!(open().expect("damage is no error").get(), Pause::Hard);
        std::fs::write(&path, content.replace("format 1", "format 2")).expect("writable");
        assert!(open().expect_err("of a later version").to_string().contains("'format 2'"));
    }
}
