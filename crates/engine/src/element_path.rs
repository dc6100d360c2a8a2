//! Where an element instance is, for those who show it in its tree: records of its beginning and of its incidents say it.

use protocol::{ElementPath, IncidentIntent, Key, Payload, ProcessInstanceIntent};

use crate::state::State;

/// What the record of an event keeps of the way to its element instance; nothing where it follows from the record itself.
pub(crate) fn of(last: &mut LastPath, state: &State, key: Key, payload: &Payload) -> Option<Box<ElementPath>> {
    let (scope, begins) = match payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementMigrated, _) => {
            last.clear();
            return None;
        }
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
    let mut path = last.to(state, scope).clone();
    if let Some((key, process)) = begins {
        if process.is_none() && path.element_instance_path.is_empty() {
            return None;
        }
        extend(&mut path, state, key, process, scope);
    }
    Some(Box::new(path))
}

fn is_root(state: &State, process_instance: Key) -> bool {
    state.element_instance(process_instance).is_some_and(|instance| instance.is_root())
}

/// The way to the element instance behind which something began last, so that elements that begin in each other, as they do
/// in calls within calls, do not look up all that is around them each time.
#[derive(Debug, Default)]
pub(crate) struct LastPath {
    key: Key,
    path: ElementPath,
}

impl LastPath {
    /// What lies on the ways to elements has changed.
    pub fn clear(&mut self) {
        *self = LastPath::default();
    }

    /// The way to an element instance that is there.
    fn to(&mut self, state: &State, element_instance: Key) -> &ElementPath {
        let (mut at, mut above) = (element_instance, Vec::new());
        while at != self.key || at.is_none() {
            let Some(instance) = state.element_instance(at) else {
                self.clear();
                break;
            };
            let value = &instance.value;
            let is_process = value.flow_scope_key.is_none();
            let next = if is_process { value.parent_element_instance_key } else { value.flow_scope_key };
            above.push((at, instance));
            at = next;
        }
        for (key, instance) in above.into_iter().rev() {
            let value = &instance.value;
            let process = value.flow_scope_key.is_none().then_some(value.process_definition_key);
            extend(&mut self.path, state, key, process, value.parent_element_instance_key);
        }
        if !self.path.element_instance_path.is_empty() {
            self.key = element_instance;
        }
        &self.path
    }
}

/// Adds what lies on the way next: a process, with its definition and the call activity that calls it, or an element.
fn extend(path: &mut ElementPath, state: &State, key: Key, process: Option<Key>, call_activity: Key) {
    match (process, path.element_instance_path.last_mut()) {
        (None, Some(last)) => last.push(key),
        // A called process begins a list of its own behind its call activity.
        (process, _) => {
            path.calling_element_path.extend(calling_element(state, call_activity));
            path.element_instance_path.push(vec![key]);
            path.process_definition_path.extend(process);
        }
    }
}

/// The place of a call activity among those of its process.
fn calling_element(state: &State, call_activity: Key) -> Option<u32> {
    let instance = state.element_instance(call_activity)?;
    let process = state.process(instance.value.process_definition_key)?;
    let place = process.call_activities.binary_search_by(|id| (**id).cmp(&instance.value.element_id)).ok()?;
    u32::try_from(place).ok()
}
