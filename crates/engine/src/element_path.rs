//! Where an element instance is, for those who show it in its tree: records of its beginning and of its incidents say it.

use protocol::{ElementPath, IncidentIntent, Key, Payload, ProcessInstanceIntent};

use crate::state::State;

/// What the record of an event keeps of the way to its element instance; nothing where it follows from the record itself.
pub(crate) fn of(state: &State, key: Key, payload: &Payload) -> Option<Box<ElementPath>> {
    let (scope, begins) = match payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) => {
            let is_process = value.flow_scope_key.is_none();
            if is_process && value.parent_element_instance_key.is_none() {
                return None;
            }
            let is_direct = value.flow_scope_key == value.process_instance_key;
            if is_direct && is_root(state, value.process_instance_key) {
                return None;
            }
            let scope = if is_process { value.parent_element_instance_key } else { value.flow_scope_key };
            (scope, Some((key, is_process.then_some(value.process_definition_key))))
        }
        Payload::Incident(IncidentIntent::Created | IncidentIntent::Resolved | IncidentIntent::Migrated, value) => {
            let instance = state.element_instance(value.element_instance_key)?;
            let scope = instance.value.flow_scope_key;
            let is_direct = scope.is_none() || scope == value.process_instance_key;
            if is_direct && is_root(state, value.process_instance_key) {
                return None;
            }
            (value.element_instance_key, None)
        }
        _ => return None,
    };
    let mut path = path_to(state, scope);
    match begins {
        // A called process begins a list of its own behind its call activity.
        Some((key, Some(definition))) => {
            path.calling_element_path.extend(calling_element(state, scope));
            path.element_instance_path.push(vec![key]);
            path.process_definition_path.push(definition);
        }
        Some((key, None)) => match path.element_instance_path.last_mut() {
            Some(last) => last.push(key),
            None => return None,
        },
        None => {}
    }
    Some(Box::new(path))
}

fn is_root(state: &State, process_instance: Key) -> bool {
    state.element_instance(process_instance).is_some_and(|instance| instance.is_root())
}

/// The way to an element instance that is there.
fn path_to(state: &State, element_instance: Key) -> ElementPath {
    let mut path = ElementPath::default();
    let (mut at, mut keys) = (element_instance, Vec::new());
    while let Some(instance) = state.element_instance(at) {
        keys.push(at);
        if instance.value.flow_scope_key.is_some() {
            at = instance.value.flow_scope_key;
            continue;
        }
        keys.reverse();
        path.element_instance_path.push(std::mem::take(&mut keys));
        path.process_definition_path.push(instance.value.process_definition_key);
        at = instance.value.parent_element_instance_key;
        path.calling_element_path.extend(calling_element(state, at));
    }
    path.element_instance_path.reverse();
    path.process_definition_path.reverse();
    path.calling_element_path.reverse();
    path
}

/// The place of a call activity among those of its process.
fn calling_element(state: &State, call_activity: Key) -> Option<u32> {
    let instance = state.element_instance(call_activity)?;
    let process = state.process(instance.value.process_definition_key)?;
    let place = process.call_activities.binary_search_by(|id| (**id).cmp(&instance.value.element_id)).ok()?;
    u32::try_from(place).ok()
}
