//! Rows of a partition for tests, in a file and on a server.

use protocol::PartitionId;

use crate::database::Database;
use crate::postgresql::PostgreSqlServer;
use crate::query::Readers;
use crate::source::{PostgreSql, Source};
use crate::store::Store;

/// The partition whose rows these are.
pub(crate) const PARTITION: PartitionId = PartitionId(1);

/// New rows.
pub(crate) struct Opened {
    pub store: Store,
    pub source: Source,
    _directory: Option<tempfile::TempDir>,
}

/// In both kinds of database.
pub(crate) fn both() -> [Opened; 2] {
    [in_file(), on_server()]
}

pub(crate) fn in_file() -> Opened {
    let directory = tempfile::tempdir().expect("a directory");
    let source = Source::in_directory(directory.path());
    let store = source.open(PARTITION, None).expect("a new file");
    Opened { store, source, _directory: Some(directory) }
}

pub(crate) fn on_server() -> Opened {
    let source = server(&PostgreSqlServer::shared().new_database());
    let store = source.open(PARTITION, None).expect("new tables");
    Opened { store, source, _directory: None }
}

/// The rows of a cluster in a database.
pub(crate) fn server(url: &str) -> Source {
    Source::Server(PostgreSql::new(url, || Some("of-tests".to_owned())).expect("an address"))
}

impl Opened {
    /// Whoever searches in them.
    pub fn readers(&self) -> Readers {
        Readers::new(self.source.clone(), vec![PARTITION], 1_024)
    }
}

impl Database {
    /// Carries out statements without parameters, for good.
    pub fn script(&self, sql: &str) {
        match self {
            Database::Sqlite(connection) => connection.execute_batch(sql).expect("it is done"),
            Database::PostgreSql(session) => {
                session.begin().expect("a transaction");
                session.run(sql).expect("it is done");
                session.commit().expect("it is done");
            }
        }
    }

    /// The only number of the only row.
    pub fn number(&self, select: &str) -> i64 {
        self.first(select, &[], |row| row.get(0)).expect("it is read").expect("a row")
    }
}
