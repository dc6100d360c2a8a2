//! A whole cluster and its clients in one thread, under a seeded clock, network and disk.
//!
//! Each node is made of the code of production: the loops of the broker that drive replication and each partition, the log on
//! `raft-engine`, the engine on its file. Only the threads, the sockets and the clock are missing, and the files of the log go
//! through a layer that knows what was synced. So whatever a power failure, a network or a disk can do is done here, as
//! often as there are seeds, and a seed repeats its run exactly.
//!
//! A run has two phases: in the first there are faults, and nothing wrong may ever happen; in the second there are none, and
//! everything has to come to its end. What must hold stands in `oracle`, one file for each promise.

mod clients;
mod disk;
mod model;
mod network;
mod node;
mod options;
mod oracle;
mod rows;
mod schedule;
mod simulation;
mod state_file;
mod syncs;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use options::{Milliseconds, Spending, Swarm};
pub use simulation::Report;

/// The mixture of faults of a seed.
pub fn swarm(seed: u64) -> Swarm {
    Swarm::of(seed)
}

/// Runs a seed with its own mixture of faults, in a scratch directory that is removed afterwards.
///
/// # Errors
/// The broken promise.
pub fn run_seed(seed: u64) -> Result<Report, String> {
    run_with(seed, swarm(seed))
}

/// Runs a seed with a mixture of faults.
///
/// # Errors
/// The broken promise.
pub fn run_with(seed: u64, swarm: Swarm) -> Result<Report, String> {
    // The simulation syncs thousands of times, and no power fails for real.
    let scratch = rows::scratch();
    let run = AssertUnwindSafe(|| simulation::run(seed, swarm, scratch.path()));
    catch_unwind(run).map_err(|panic| panic_text(panic.as_ref()))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
