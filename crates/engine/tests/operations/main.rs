//! Operations on instances as a whole, and on deployed resources: what each refuses, what each does, and that the records
//! alone rebuild what it did.

mod business_ids;
#[path = "../support/cluster.rs"]
mod cluster;
mod creation;
mod deletion;
mod linked_resources;
mod migration;
mod modification;
mod paths;
mod random;
#[path = "../support/random_model.rs"]
mod random_model;
#[path = "../support/mod.rs"]
mod support;
mod tools;
