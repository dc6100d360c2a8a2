//! A look through a whole file for damage, beside the fold and the searches.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// A table that takes longer is left half checked: as long as it is read, the write-ahead log gets no shorter.
const TABLE_TIME_MAX: Duration = Duration::from_secs(5);
/// So many steps of the database lie between two looks at the clock.
const STEPS: i32 = 5_000;

#[derive(Debug, Default)]
struct State {
    has_ended: AtomicBool,
    is_cancelled: AtomicBool,
    damage: Mutex<Option<String>>,
}

/// A check that is under way, or has come to an end. It ends early when this is dropped.
#[derive(Debug)]
pub(crate) struct Check {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Check {
    /// Begins on a thread of its own.
    pub fn begin(path: PathBuf) -> std::io::Result<Check> {
        let state = Arc::new(State::default());
        let of_thread = state.clone();
        let thread = std::thread::Builder::new().name("check".to_owned()).spawn(move || {
            match damage_of(&path, &of_thread) {
                Ok(damage) => *of_thread.damage.lock() = damage,
                // Not being able to look is no damage.
                Err(error) => tracing::warn!(path = %path.display(), %error, "the read model could not be checked"),
            }
            of_thread.has_ended.store(true, Ordering::Release);
        })?;
        Ok(Check { state, thread: Some(thread) })
    }

    /// Whether everything was looked at.
    pub fn has_ended(&self) -> bool {
        self.state.has_ended.load(Ordering::Acquire)
    }

    /// What is damaged, once.
    pub fn take_damage(&self) -> Option<String> {
        self.state.damage.lock().take()
    }
}

impl Drop for Check {
    /// Nobody reads the file any more behind this: what is written in it can be made durable as a whole.
    fn drop(&mut self) {
        self.state.is_cancelled.store(true, Ordering::Relaxed);
        // A broken invariant in the thread was told by itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The first damage that is found. Each table is read for itself, so that no reader stays long at one state of the file.
fn damage_of(path: &std::path::Path, state: &Arc<State>) -> rusqlite::Result<Option<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(1))?;
    let deadline: Arc<Mutex<Instant>> = Arc::new(Mutex::new(Instant::now() + TABLE_TIME_MAX));
    let (until, cancelled) = (deadline.clone(), state.clone());
    let is_over = move || cancelled.is_cancelled.load(Ordering::Relaxed) || Instant::now() > *until.lock();
    connection.progress_handler(STEPS, Some(is_over))?;
    let tables = || -> rusqlite::Result<Vec<String>> {
        let mut tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
        tables.query_map([], |row| row.get(0))?.collect()
    };
    let tables = match tables() {
        Ok(tables) => tables,
        Err(error) => return as_damage(error).map(Some),
    };
    for table in tables {
        if state.is_cancelled.load(Ordering::Relaxed) {
            break;
        }
        *deadline.lock() = Instant::now() + TABLE_TIME_MAX;
        let found = connection.query_row(&format!("PRAGMA quick_check('{table}')"), [], |row| row.get::<_, String>(0));
        match found {
            Ok(fine) if fine == "ok" => {}
            Ok(damage) => return Ok(Some(format!("table {table}: {damage}"))),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                tracing::debug!(table, "the read model's table is too large to be checked as a whole");
            }
            Err(error) => return as_damage(error).map(Some),
        }
    }
    Ok(None)
}

/// The sentence of an error that says damage.
fn as_damage(error: rusqlite::Error) -> rusqlite::Result<String> {
    if is_damage(&error) { Ok(error.to_string()) } else { Err(error) }
}

/// Whether an error means that the file is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(path: PathBuf) -> Option<String> {
        let check = Check::begin(path).expect("a thread");
        while !check.has_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        check.take_damage()
    }

    #[test]
    fn damage_inside_of_a_file_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.sqlite");
        let connection = Connection::open(&path).expect("a file");
        connection
            .execute_batch(
                "CREATE TABLE some(key INTEGER PRIMARY KEY, text TEXT);
                 WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
                 INSERT INTO some SELECT i, printf('%0100d', i) FROM n;",
            )
            .expect("rows");
        drop(connection);
        assert_eq!(checked(path.clone()), None);
        let mut bytes = std::fs::read(&path).expect("the file");
        let page = 4_096;
        bytes[20 * page..21 * page].fill(0xA5);
        std::fs::write(&path, bytes).expect("the damaged file");
        let damage = checked(path).expect("damage");
        assert!(damage.contains("some"), "{damage}");
    }
}
