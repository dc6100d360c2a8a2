//! Connections that read.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::PartitionId;
use rusqlite::{Connection, OpenFlags};

use super::collected::COLLECTED_BYTES_MAX;
use super::search::ANSWER_BYTES_MAX;
use crate::database::functions::{self, Deadline};
use crate::database::{self, Database, Server, schema_of};
use crate::file::path_of;
use crate::gate::Gate;
use crate::source::Source;

/// So many steps of the database lie between two looks at the clock. Some read a value of 4 MiB.
const STEPS: i32 = 500;
/// What a search may take, from the moment at which it was asked for.
const TIME_MAX: Duration = Duration::from_secs(5);
/// For so long a server that was not there is not looked for again, so that searches do not wait for it one after the other.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
/// A search that comes late still has so much time, so that a server which is there is not taken for one that is not.
const TIME_MIN: Duration = if cfg!(test) { Duration::from_secs(60) } else { Duration::from_millis(100) };

const TABLES_NOT_MADE: &str = "its tables are not made yet";

/// Between two looks whether a file is made.
const MAKING_PAUSE: Duration = Duration::from_millis(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It took too long.
    #[error(
        "The search took longer than {} ms, because no index fits its filter and sort. Add a filter by key, \
         state, process definition or date, or sort by key.",
        TIME_MAX.as_millis()
    )]
    TooLong,
    /// There is nothing to search in.
    #[error("Partition {0} has no read model on this node.")]
    NoPartition(PartitionId),
    /// The database cannot be read. What it says is for the log: it names files and servers.
    #[error("The read model cannot be read. The log of the node says why.")]
    Unreadable(String),
    /// It could be read a little later.
    #[error("The read model is not available: {0}. Please try again after a growing pause.")]
    NotYet(&'static str),
    /// The database is not there now. What it says is for the log too.
    #[error("The read model is not available: its database cannot be reached. Please try again after a growing pause.")]
    Away(String),
    /// A page that is counted has to be whole.
    #[error(
        "The page has more than {ANSWER_BYTES_MAX} bytes, so it would not be whole. Use a smaller page.limit, \
         or cursors (page.after), or have values shortened (truncateValues=true)."
    )]
    LargePage,
    /// A page of groups would not be whole.
    #[error("The page has more than {ANSWER_BYTES_MAX} bytes, so it would not be whole. Use a smaller page.limit.")]
    LargeGroups,
    /// So much would have to be collected for an answer.
    #[error(
        "What is counted has more than {COLLECTED_BYTES_MAX} bytes of names. Add a filter, or use a smaller page.limit."
    )]
    TooMuch,
}

impl From<database::Error> for Failure {
    fn from(error: database::Error) -> Self {
        if let database::Error::TooMuch = error {
            Failure::TooMuch
        } else if error.is_interruption() {
            Failure::TooLong
        } else if error.is_missing_table() {
            Failure::NotYet("one of its tables is not made yet")
        } else if error.is_away() {
            Failure::Away(error.to_string())
        } else {
            Failure::Unreadable(error.to_string())
        }
    }
}

/// The connections of one thread, opened when they are needed.
pub struct Readers {
    partitions: Vec<PartitionId>,
    open: Open,
    /// Until when the search may take that is carried out; none for one that nobody asked for.
    until: Option<Instant>,
}

enum Open {
    Files {
        directory: PathBuf,
        gate: Gate,
        readers: BTreeMap<PartitionId, Reader>,
        cache_kib: i64,
    },
    Server {
        server: Arc<Server>,
        session: Option<Database>,
        away: Option<(Instant, String)>,
        made: BTreeSet<PartitionId>,
        unmade: BTreeMap<PartitionId, Instant>,
    },
}

struct Reader {
    database: Database,
    deadline: Deadline,
    /// The file that is open: one that was set aside has another place on the disk.
    file: (u64, u64),
}

impl Readers {
    pub(crate) fn new(source: Source, partitions: Vec<PartitionId>, cache_kib: i64) -> Readers {
        let open = match source {
            Source::Directory(directory, gate) => Open::Files { directory, gate, readers: BTreeMap::new(), cache_kib },
            Source::Server(of) => Open::Server {
                server: of.server,
                session: None,
                away: None,
                made: BTreeSet::new(),
                unmade: BTreeMap::new(),
            },
        };
        Readers { partitions, open, until: None }
    }

    /// A search begins that was asked for at this moment.
    pub(crate) fn begin(&mut self, asked_at: Instant) {
        self.until = Some(asked_at + TIME_MAX);
    }

    /// When the search has to be over.
    pub(super) fn deadline(&self) -> Instant {
        self.until.unwrap_or_else(|| Instant::now() + TIME_MAX)
    }

    /// The partitions that can be searched.
    pub fn partitions(&self) -> &[PartitionId] {
        &self.partitions
    }

    /// Reads in a partition, for the time that is left.
    pub(crate) fn read<T>(
        &mut self,
        partition: PartitionId,
        read: impl FnOnce(&Database) -> database::Result<T>,
    ) -> Result<T, Failure> {
        if !self.partitions.contains(&partition) {
            return Err(Failure::NoPartition(partition));
        }
        let deadline = self.deadline();
        match &mut self.open {
            Open::Files { .. } if deadline <= Instant::now() => Err(Failure::TooLong),
            Open::Files { directory, gate, readers, cache_kib } => {
                read_file(readers, (directory, gate, *cache_kib), partition, deadline, read)
            }
            Open::Server { server, session, away, made, unmade } => {
                if unmade.get(&partition).is_some_and(|until| Instant::now() < *until) {
                    return Err(Failure::NotYet(TABLES_NOT_MADE));
                }
                if let Some((until, reason)) = away
                    && Instant::now() < *until
                {
                    return Err(Failure::Away(reason.clone()));
                }
                let begin = Instant::now();
                let result = read_server(server, session, made, partition, deadline, read);
                match &result {
                    // Searches that follow are not kept waiting as well.
                    Err(Failure::NotYet(TABLES_NOT_MADE)) => {
                        unmade.insert(partition, Instant::now() + AWAY_PAUSE);
                    }
                    _ => {
                        unmade.remove(&partition);
                    }
                }
                *away = match &result {
                    Err(Failure::Away(reason)) => {
                        // As long as it was waited for, so that those who come meanwhile are answered at once.
                        Some((Instant::now() + AWAY_PAUSE.max(begin.elapsed()), reason.clone()))
                    }
                    _ => None,
                };
                result
            }
        }
    }
}

fn read_file<T>(
    readers: &mut BTreeMap<PartitionId, Reader>,
    (directory, gate, cache_kib): (&Path, &Gate, i64),
    partition: PartitionId,
    deadline: Instant,
    read: impl FnOnce(&Database) -> database::Result<T>,
) -> Result<T, Failure> {
    let path = path_of(directory, partition);
    if readers.get(&partition).is_some_and(|reader| file_at(&path) != Some(reader.file)) {
        readers.remove(&partition);
    }
    let reader = match readers.entry(partition) {
        Entry::Occupied(open) => open.into_mut(),
        Entry::Vacant(closed) => closed.insert(open_made(&path, cache_kib, deadline)?),
    };
    let open = gate.read(deadline).ok_or(Failure::NotYet("its write-ahead log begins anew"))?;
    reader.deadline.set(Some(deadline));
    let result = read(&reader.database);
    reader.deadline.set(None);
    drop(open);
    if result.as_ref().is_err_and(|error| !error.is_interruption()) {
        // Whatever it was, the next search begins with a new connection.
        readers.remove(&partition);
    }
    Ok(result?)
}

/// Opens a file once there is something in it: the node takes requests while it makes its files.
fn open_made(path: &Path, cache_kib: i64, deadline: Instant) -> Result<Reader, Failure> {
    loop {
        let opened = Reader::open(path, cache_kib).and_then(|reader| Ok((reader.is_made()?, reader)));
        match opened.map_err(database::Error::from) {
            Ok((true, reader)) => return Ok(reader),
            // No time makes it whole.
            Err(error) if error.is_damage() => return Err(error.into()),
            _ if Instant::now() < deadline => std::thread::sleep(MAKING_PAUSE),
            Ok((false, _)) => return Err(Failure::NotYet("its file is not made yet")),
            Err(error) => return Err(error.into()),
        }
    }
}

/// One connection reads in all partitions.
fn read_server<T>(
    server: &Server,
    session: &mut Option<Database>,
    made: &mut BTreeSet<PartitionId>,
    partition: PartitionId,
    deadline: Instant,
    read: impl FnOnce(&Database) -> database::Result<T>,
) -> Result<T, Failure> {
    let schema = schema_of(partition);
    let left = || deadline.saturating_duration_since(Instant::now()).max(TIME_MIN);
    let turn = |database: &Database| {
        let Database::PostgreSql(session) = database else { unreachable!("it is a session with a server") };
        session.turn_to_reading(&schema, left())
    };
    // A connection from before the server was started anew is noticed here.
    let kept = match session.take() {
        Some(kept) => match turn(&kept) {
            Ok(()) => Some(kept),
            // A new one would not be answered either.
            Err(silent) if silent.is_silence() => return Err(silent.into()),
            Err(_) => None,
        },
        None => None,
    };
    let database = match kept {
        Some(kept) => kept,
        None => {
            let new = Database::PostgreSql(Box::new(server.reader(left())?));
            turn(&new)?;
            new
        }
    };
    if !made.contains(&partition) {
        if let Err(failure) = wait_for_tables(&database, deadline) {
            // The server is there, and may have tables of other partitions.
            *session = matches!(failure, Failure::NotYet(_)).then_some(database);
            return Err(failure);
        }
        made.insert(partition);
        // With the time that is left.
        turn(&database)?;
    }
    let result = read(&database);
    if result.as_ref().is_err_and(|error| !error.is_interruption()) {
        // Whoever has dropped the tables has them made anew.
        made.remove(&partition);
    }
    if result.as_ref().map_or_else(database::Error::is_interruption, |_| true) {
        *session = Some(database);
    }
    Ok(result?)
}

/// Waits until the tables that a session turned to are made.
fn wait_for_tables(database: &Database, deadline: Instant) -> Result<(), Failure> {
    const ARE_THERE: &str = "SELECT to_regclass('place') IS NOT NULL";
    loop {
        let is_late = match database.first(ARE_THERE, &[], |row| row.get::<bool>(0)) {
            Ok(Some(true)) => return Ok(()),
            Ok(_) => Instant::now() >= deadline,
            // The time ran out in the middle of a look.
            Err(error) if error.is_interruption() => true,
            Err(error) => return Err(error.into()),
        };
        if is_late {
            return Err(Failure::NotYet(TABLES_NOT_MADE));
        }
        std::thread::sleep(MAKING_PAUSE);
    }
}

/// What tells files apart that have had the same name.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl Reader {
    fn open(path: &Path, cache_kib: i64) -> rusqlite::Result<Reader> {
        // Before it is opened: if it is replaced in between, the next search notices.
        let file = file_at(path).unwrap_or_default();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(&format!("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{cache_kib};"))?;
        let deadline = Deadline::default();
        let until = deadline.clone();
        connection.progress_handler(STEPS, Some(move || until.get().is_some_and(|until| Instant::now() > until)))?;
        functions::register(&connection, &deadline)?;
        Ok(Reader { database: Database::Sqlite(connection), deadline, file })
    }

    /// Whether the file has its tables, which come with its version at once.
    fn is_made(&self) -> rusqlite::Result<bool> {
        let Database::Sqlite(connection) = &self.database else { return Ok(true) };
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).map(|version| version != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_being_made_is_waited_for_and_one_that_never_is_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let partition = PartitionId(1);
        let path = path_of(directory.path(), partition);
        // As a node leaves it in the middle of making it.
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL;").unwrap();
        let soon = Instant::now() + MAKING_PAUSE;
        assert!(matches!(open_made(&path, 1_024, soon), Err(Failure::NotYet(_))));
        drop(connection);
        let reading =
            std::thread::spawn(move || open_made(&path, 1_024, Instant::now() + Duration::from_secs(600)).is_ok());
        crate::file::open(directory.path(), partition).unwrap();
        assert!(reading.join().unwrap());
        let missing = open_made(&directory.path().join("other"), 1_024, Instant::now());
        assert!(matches!(missing, Err(Failure::Away(_))), "it may be made later");
    }

    #[test]
    fn tables_that_a_server_is_to_get_are_waited_for_or_it_is_told() {
        let source = crate::testing::server(&crate::postgresql::PostgreSqlServer::shared().new_database());
        let partition = PartitionId(1);
        let count = |deadline| {
            let mut readers = Readers::new(source.clone(), vec![partition], 1_024);
            readers.until = Some(deadline);
            readers.read(partition, |database| Ok(database.number("SELECT count(*) FROM process_instance")))
        };
        let missing = count(Instant::now());
        assert!(matches!(missing, Err(Failure::NotYet("its tables are not made yet"))), "{missing:?}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(MAKING_PAUSE);
                source.open(partition, None).unwrap();
            });
            assert_eq!(count(Instant::now() + Duration::from_secs(600)).unwrap(), 0);
        });
    }
}
