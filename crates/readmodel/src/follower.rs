//! How far another node has written the rows of a partition that several nodes have in common.

use std::time::Duration;

use protocol::PartitionId;

use crate::database::{Database, Error, Result, schema_of};
use crate::source::PostgreSql;

/// For so long the server may take to say it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// Reads the place of rows that another node writes.
pub(crate) struct Follower {
    server: PostgreSql,
    partition: PartitionId,
    /// None until it is needed, and behind trouble.
    database: Option<Database>,
}

impl Follower {
    pub fn new(server: PostgreSql, partition: PartitionId) -> Follower {
        Follower { server, partition, database: None }
    }

    /// Position of the last record that is part of the rows.
    ///
    /// # Errors
    /// When the server does not say it now.
    pub fn position(&mut self) -> Result<u64> {
        let database = match self.database.take() {
            Some(database) => database,
            None => Database::PostgreSql(Box::new(self.server.server.reader(ANSWER_TIME_MAX)?)),
        };
        if let Database::PostgreSql(session) = &database {
            session.turn_to_reading(&schema_of(self.partition), ANSWER_TIME_MAX)?;
        }
        let position = database.first("SELECT position FROM place", &[], |row| row.get::<i64>(0))?;
        self.database = Some(database);
        position.map(i64::unsigned_abs).ok_or(Error::Late)
    }
}
