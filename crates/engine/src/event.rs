//! Events: what waits for them, and what happens when they come.
//!
//! A catch event belongs to a scope: the element instance that opens its subscription. That is the event's own instance
//! (intermediate catch event, receive task), the event-based gateway before it, the activity it is attached to
//! (boundary event), or the enclosing process or sub-process (start event of an event sub-process).

pub(crate) mod catch;
pub(crate) mod events;
mod subscribe;
mod trigger;

pub(crate) use subscribe::{subscribe, subscribe_only, unsubscribe, unsubscribe_event_sub_processes};
pub(crate) use trigger::{
    activate, bring_result, can_trigger, find_boundary_trigger, find_interrupting_trigger, find_trigger, trigger,
    trigger_process,
};
