//! Searches: what is asked for, how it becomes SQL, and how the answers of all partitions become one.

mod audit;
mod collected;
mod condition;
mod counted;
mod cursor;
mod entities;
mod entity;
mod grouped;
mod groups;
mod instant;
mod jobs;
mod readers;
mod row;
mod search;
mod sql;
mod statistics;
mod usage;
mod user_task;

pub use audit::AUDIT_LOGS;
pub use condition::{Condition, Test, Value, VariableScope};
pub use cursor::{Cursor, Direction};
pub use entities::*;
pub use entity::{Entity, Field, Kind, Scope};
pub use grouped::{DefinitionErrors, SubscriptionCounts};
pub use groups::{GroupPage, GroupStart, Grouped};
pub use instant::{duration, instant, moment};
pub use jobs::{Counted, GroupBy, JOB_COUNT_MILLISECONDS, JOB_COUNTS, JOB_ERRORS, JobCounts, JobErrors, JobsOf};
pub use readers::{Failure, Readers};
pub use search::{ANSWER_BYTES_MAX, Found, Page, Search, Sort, TOTAL_MAX};
pub use statistics::{DefinitionCounts, ElementCounts, ErrorCounts, ErrorOrder, Models};
pub use usage::{USAGE_MILLISECONDS, UsageCounts};
pub use user_task::TaskPlace;

#[cfg(test)]
mod paging_tests;
#[cfg(test)]
mod tests;
