//! Rows of what lives are made anew from the state of the engine, when they were lost or records are missing that changed them.
//!
//! What ended stays as far as it is there. What is there of living instances goes first, in small transactions, and then
//! everything that lives is told. Until the last transaction the rows say that this is under way, so that it begins again after
//! a crash.

use protocol::RecordPlace;

use crate::database::{Database, Result};
use crate::enumerations::{DEFINITION_STATES, number_of};
use crate::retention;

/// What the rows lack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// What lives is being told: nothing is whole before that is over.
    pub is_rebuilding: bool,
    /// What ended before this moment may be missing; none when nothing is.
    pub complete_since: Option<i64>,
}

impl History {
    pub fn read(database: &Database) -> Result<History> {
        let select = "SELECT is_rebuilding, complete_since FROM history";
        let read = database.first(select, &[], |row| {
            Ok(History { is_rebuilding: row.get::<i64>(0)? != 0, complete_since: row.get(1)? })
        })?;
        Ok(read.unwrap_or_default())
    }

    /// What operators should know.
    pub fn remark(self) -> Option<String> {
        if self.is_rebuilding {
            return Some(
                "What lives is being read from the state; until that is over, searches do not find all of it."
                    .to_owned(),
            );
        }
        let since = jiff::Timestamp::from_millisecond(self.complete_since?).ok()?;
        Some(format!(
            "It was made anew from the state as it was at {since}: searches lack what ended before, and of what lived then the \
             elements, sequence flows and decisions that were over, and counts of elements and jobs begin there."
        ))
    }
}

/// Whether rows that go up to `place` lack records that are gone.
pub(crate) fn lacks_records(place: RecordPlace, beginning: RecordPlace) -> bool {
    place.number < beginning.number
}

/// From now on, until all was told, the rows are not whole. What is there of what may live goes.
pub(crate) fn begin(database: &Database) -> Result<()> {
    let transaction = database.begin()?;
    database.execute("UPDATE history SET is_rebuilding = 1", &[])?;
    // They count what lives, and nothing does for the moment.
    database.execute("UPDATE element SET active = 0, incidents = 0", &[])?;
    // What is there is told, and says so.
    let deleted = number_of(DEFINITION_STATES, "DELETED");
    database.execute("UPDATE process_definition SET state = ?", &[deleted.into()])?;
    database.execute("UPDATE form SET is_deleted = 1", &[])?;
    database.execute("DELETE FROM decision_definition", &[])?;
    database.execute("DELETE FROM decision_requirements", &[])?;
    database.execute("DELETE FROM resource", &[])?;
    database.execute("DELETE FROM global_listener", &[])?;
    database.execute("DELETE FROM global_listener_event", &[])?;
    transaction.commit()?;
    while retention::delete_living(database)? {}
    // Those that live are told anew, and of the others something may be missing that changed them.
    let mut behind = i64::MIN;
    while let Some(last) = retention::delete_variables_of_none(database, behind)? {
        behind = last;
    }
    // What is left are those of start events, and those that were being closed on another partition when their instance had ended
    // already: that they are closed may be among what is missing.
    let transaction = database.begin()?;
    database.execute("DELETE FROM message_subscription WHERE state = 0", &[])?;
    transaction.commit()?;
    Ok(())
}

/// All that lives was told and is written: what was kept of instances that may live goes, if they do not.
pub(crate) fn forget_gone(database: &Database) -> Result<()> {
    let mut behind = i64::MIN;
    while let Some(last) = retention::delete_correlations_of_none(database, behind)? {
        behind = last;
    }
    Ok(())
}

/// All that lives was told, as it was at this time: to be written together with the last of it.
pub(crate) fn end(database: &Database, at: i64) -> Result<()> {
    database.execute("UPDATE history SET is_rebuilding = 0, complete_since = ?", &[at.into()])?;
    Ok(())
}

/// Everything was forgotten, so nothing is missing.
pub(crate) fn forget(database: &Database) -> Result<()> {
    database.execute("UPDATE history SET is_rebuilding = 0, complete_since = NULL", &[])?;
    Ok(())
}
