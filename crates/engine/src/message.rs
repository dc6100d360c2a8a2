//! Messages and what waits for them.

pub(crate) mod start_event;
pub(crate) mod subscription;
