//! Faults of a cluster under load: killed, stopped, frozen, cut off and wiped nodes, full disks, and workers whose gateways die.

#[path = "../support/accounting.rs"]
mod accounting;
mod books;
#[path = "../support/cluster.rs"]
mod cluster;
mod long;
mod network;
mod short;
#[path = "../support/mod.rs"]
mod support;
