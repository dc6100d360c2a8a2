//! Signals and what waits for them: one file per subject.
//!
//! A signal reaches everything that waits for its name when it comes, on every partition, and is not kept. Element instances
//! wait where they live. Start events wait on every partition, because every partition has the definitions; an instance is
//! started only where the broadcast began, so that each starts one.

pub(crate) mod broadcast;
pub(crate) mod start_event;
pub(crate) mod subscription;
