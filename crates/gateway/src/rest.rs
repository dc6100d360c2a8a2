//! The REST protocol: JSON to requests, outcomes to JSON and problems.

mod activation;
mod ad_hoc_sub_process;
mod api;
mod clock;
mod cluster;
mod compression;
mod conditional;
mod consistency;
mod decision;
mod disposition;
mod expression;
mod global_listener;
mod incident;
mod job;
mod json;
mod message;
mod metrics;
mod modification;
mod object;
mod older_client;
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
mod signal;
mod swagger;
mod user_task;
mod variable;

pub(crate) use api::{Api, Workers};
pub(crate) use search::Searcher;
