//! What a migration needs, element by element.

mod catch_events;
pub(super) mod element;
mod gateways;
pub(super) mod preconditions;

pub(crate) use preconditions::is_started_by_message;
