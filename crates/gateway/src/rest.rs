//! The REST protocol: JSON to requests, outcomes to JSON and problems.

mod api;
mod cluster;
mod job;
mod json;
mod message;
mod metrics;
mod object;
mod operations;
mod problem;
mod process_instance;
mod reception;
mod response;
mod routes;

pub(crate) use api::Api;
