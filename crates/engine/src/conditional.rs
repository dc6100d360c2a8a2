//! Conditions that events wait for.
//!
//! A condition is looked at when its event begins to wait and whenever a variable that it reads changes where it can see it. If it
//! holds, a step triggers the event. A condition that cannot be evaluated does not hold, and is no incident, as on the reference
//! engine.

pub(crate) mod change;
pub(crate) mod evaluation;
pub(crate) mod start_event;
pub(crate) mod subscription;
pub(crate) mod trigger;
