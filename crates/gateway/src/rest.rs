//! The REST protocol: JSON to requests, outcomes to JSON and problems.

mod activation;
mod api;
mod clock;
mod cluster;
mod compression;
mod decision;
mod incident;
mod job;
mod json;
mod message;
mod metrics;
mod modification;
mod object;
mod openapi;
mod operate;
mod operations;
mod problem;
mod process_instance;
mod reception;
mod resource;
mod response;
mod routes;
mod search;
mod swagger;
mod variable;

pub(crate) use api::{Api, Workers};
