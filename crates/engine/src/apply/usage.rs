//! What root process instances take, counted in their rows.

use protocol::Key;

use crate::state::{ElementInstance, State, Usage};

/// The root of a process instance takes more. It may be gone: what a banned instance called can live longer.
pub(super) fn add(state: &mut State, process_instance: Key, more: Usage) {
    change(state, process_instance, |usage| usage.add(more));
}

/// The root of a process instance takes less.
pub(super) fn take(state: &mut State, process_instance: Key, less: Usage) {
    if less != Usage::default() {
        let root = state.root_of(process_instance);
        state.tables.element_instances.update(&root.raw(), |root| root.usage.take(less));
    }
}

/// The root of a process instance takes another amount, and perhaps more.
pub(super) fn change(state: &mut State, process_instance: Key, change: impl FnOnce(&mut Usage)) {
    let root = state.root_of(process_instance);
    let mut grown = None;
    state.tables.element_instances.update(&root.raw(), |instance| {
        change(&mut instance.usage);
        grown = Some((root, instance.usage));
    });
    state.grown = grown;
}

/// Changes the number of tokens in a scope, which must be there.
#[inline]
pub(super) fn change_tokens(state: &mut State, scope: i64, change: impl FnOnce(&mut u32)) {
    let mut counted = None;
    super::change::change_element(state, scope, |scope| {
        let before = scope.tokens;
        change(&mut scope.tokens);
        let (more, less) = (scope.tokens.saturating_sub(before), before.saturating_sub(scope.tokens));
        let (more, less) = (living(more), living(less));
        if scope.is_root() {
            scope.usage.add(more);
            scope.usage.take(less);
        } else {
            counted = Some((scope.value.process_instance_key, more, less));
        }
    });
    if let Some((process_instance, more, less)) = counted {
        add(state, process_instance, more);
        take(state, process_instance, less);
    }
}

fn living(count: u32) -> Usage {
    Usage { living: u64::from(count), bytes: 0 }
}

/// Counts at once what is in the scope of a root process itself; returns whether it is one.
#[inline]
pub(super) fn count_in_root(scope: &mut ElementInstance, change: impl FnOnce(&mut Usage)) -> Option<Usage> {
    scope.is_root().then(|| {
        change(&mut scope.usage);
        scope.usage
    })
}
