//! What a migration needs, element by element.

mod catch_events;
pub(super) mod element;
mod gateways;
pub(super) mod preconditions;
