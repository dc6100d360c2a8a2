//! The tests of the engine in one program: one for each file would compile and link the same support again and again.
//! Those that might end a process (`hostile`, `stack`) and the random models (`properties`) are programs of their own.

mod support;

#[path = "support/cluster.rs"]
mod cluster;
#[path = "support/messages.rs"]
mod shared;

mod ad_hoc_sub_processes;
mod bans;
mod compensation;
mod conditions;
mod decisions;
mod distribution;
mod feature_levels;
mod forms;
mod global_listeners;
mod incarnation;
mod inclusive_gateways;
mod job_owners;
mod job_streams;
mod limits;
mod listeners;
mod living;
mod loops;
mod message_correlation;
mod message_limits;
mod message_partitions;
mod messages;
mod node_starts;
mod origin;
mod products;
mod routing;
mod scenarios;
mod signals;
mod task_listeners;
mod unknown_variants;
mod user_tasks;
mod watch;
