//! A fuzz target of the whole engine: bytes become models with hostile sizes and a driver that deploys them, creates
//! instances and does to them whatever clients, workers, other partitions and time can do.
//!
//! What must hold for every command is checked after each ([`case::run`]): no panic and no arithmetic overflow, no event that the state
//! refuses, bounded memory, steps and bytes, no key or record that is too large, and nothing that a partition asks of
//! itself again and again.

pub mod case;
pub mod choices;
mod cluster;
mod decision;
mod driver;
pub mod expression;
pub mod measure;
pub mod memory;
pub mod minimise;
mod model;
mod names;
pub mod price;
