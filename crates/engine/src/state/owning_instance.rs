//! Which process instance a command is about.

use protocol::{Command, Key, Payload};

use crate::state::State;

/// The process instance that a command is about, or none.
pub(crate) fn owning_instance(state: &State, command: &Command) -> Key {
    let of_element = |key| state.element_instance(key).map(|instance| instance.value.process_instance_key);
    let found = match &command.payload {
        Payload::Job(..) => state.job(command.key).map(|job| job.value.process_instance_key),
        Payload::UserTask(..) => state.user_task(command.key).map(|task| task.value.process_instance_key),
        Payload::Incident(..) => {
            state.tables.incidents.get(&command.key.raw()).map(|row| row.value.process_instance_key)
        }
        Payload::ProcessInstance(..) => of_element(command.key),
        Payload::VariableDocument(_, value) => of_element(value.scope_key),
        Payload::Work(_, value) => Some(value.process_instance_key),
        Payload::Timer(..) => state.tables.timers.get(&command.key.raw()).map(|row| row.value.process_instance_key),
        Payload::ProcessMessageSubscription(_, value) => Some(value.process_instance_key),
        Payload::ConditionalSubscription(_, value) => Some(value.process_instance_key),
        Payload::ProcessInstanceModification(_, value) => Some(value.process_instance_key),
        Payload::ProcessInstanceMigration(_, value) => Some(value.process_instance_key),
        _ => None,
    };
    found.unwrap_or(Key::NONE)
}
