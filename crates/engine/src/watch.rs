//! Watching how a batch is applied.
//!
//! The engine does no I/O, so it cannot record where it is. A watch can, so that this is known even if the process ends
//! in the middle of a command; it can also refuse a command that must not be processed again.

use protocol::{Command, Key, Payload};

use crate::state::State;

/// Whether a command is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// It is.
    Process,
    /// It is not. It leaves a rejection with this reason, and the instance that it is about is banned.
    Refuse(&'a str),
}

/// Sees every command before it is processed.
pub trait Watch {
    /// The command with this number in its batch, from 1, comes next. `process_instance` is the instance that the command
    /// itself names; none when it names none, and what is only found in the state is not looked up.
    ///
    /// The decision must be the same on every replica and at every replay of the batch, as everything that follows from it
    /// is part of the state.
    fn before(&mut self, number: u32, command: &Command, process_instance: Key) -> Decision<'_>;
}

/// Watches nothing: every command is processed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn before(&mut self, _number: u32, _command: &Command, _process_instance: Key) -> Decision<'_> {
        Decision::Process
    }
}

/// The instance that a command names.
pub(crate) fn named(command: &Command) -> Key {
    match &command.payload {
        // A command for an instance has the key of the instance.
        Payload::ProcessInstance(..) => command.key,
        Payload::Work(_, value) => value.process_instance_key,
        Payload::ProcessMessageSubscription(_, value) => value.process_instance_key,
        Payload::ProcessInstanceModification(_, value) => value.process_instance_key,
        Payload::ProcessInstanceMigration(_, value) => value.process_instance_key,
        _ => Key::NONE,
    }
}

/// What a command is about, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The process instance.
    pub process_instance: Option<Key>,
    /// The process of that instance, or the process that the command creates an instance of.
    pub bpmn_process_id: Option<String>,
}

/// What a command is about in this state.
pub(crate) fn subject(state: &State, command: &Command) -> Subject {
    let process_instance =
        Some(crate::state::owning_instance::owning_instance(state, command)).filter(|key| key.is_some());
    let instance = process_instance.and_then(|key| state.element_instance(key));
    let created = match &command.payload {
        Payload::ProcessInstanceCreation(_, value) => Some(&value.bpmn_process_id),
        _ => None,
    };
    let bpmn_process_id = instance.as_ref().map(|instance| &instance.value.bpmn_process_id).or(created);
    let bpmn_process_id = bpmn_process_id.map(ToString::to_string).filter(|id| !id.is_empty());
    Subject { process_instance, bpmn_process_id }
}
