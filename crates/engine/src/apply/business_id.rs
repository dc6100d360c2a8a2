//! Which instances have which business id. Those that were called have that of their caller, and are not looked for.

use protocol::{Key, ProcessInstanceValue};

use crate::state::{BusinessId, State};

/// What the instance is found by; none when it has no business id, or was called.
fn of(value: &ProcessInstanceValue) -> Option<BusinessId> {
    let is_found = !value.business_id.is_empty() && value.parent_process_instance_key.is_none();
    let id = || {
        (value.tenant_id.shared().clone(), value.bpmn_process_id.shared().clone(), value.business_id.shared().clone())
    };
    is_found.then(id)
}

pub(super) fn instance_began(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    if let Some(id) = of(value) {
        state.tables.business_ids.put((id, key.raw()), ());
    }
}

pub(super) fn instance_ended(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    if let Some(id) = of(value) {
        state.tables.business_ids.delete(&(id, key.raw()));
    }
}

/// It goes on with another process, and keeps its business id.
pub(super) fn instance_migrated(
    state: &mut State,
    key: Key,
    before: &ProcessInstanceValue,
    value: &ProcessInstanceValue,
) {
    instance_ended(state, key, before);
    instance_began(state, key, value);
}
