//! Searches: what is asked for, how it becomes SQL, and how the answers of all partitions become one.

mod condition;
mod cursor;
mod entities;
mod entity;
mod grouped;
mod instant;
mod readers;
mod row;
mod search;
mod sql;
mod statistics;

pub use condition::{Condition, Test, Value};
pub use cursor::{Cursor, Direction};
pub use entities::*;
pub use entity::{Entity, Field, Kind, Scope};
pub use grouped::{DefinitionErrors, SubscriptionCounts};
pub use instant::{instant, moment};
pub use readers::{Failure, Readers};
pub use search::{Found, Page, Search, Sort};
pub use statistics::{DefinitionCounts, ElementCounts, ErrorCounts, Models};
